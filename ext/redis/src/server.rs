//! `plimsoll target redis`: a server of strings and counters, for others to test against.

mod request;
mod running;
mod store;

use clap::Args;
use plimsoll_app::{
    PlaceArgs, Reader, ServerSpec, TargetServer, TargetServerArgs, parse_lie, parse_positive, parse_seed,
};
use plimsoll_core::Nanos;
use plimsoll_document::Problems;
use plimsoll_plan::{parse_backend, parse_size};
use plimsoll_targets::Lies;
use plimsoll_targets::server::ServerOptions;

/// The server as a subcommand of `plimsoll target`.
pub(crate) const SERVER: TargetServer = TargetServer::of::<ServerArgs>("redis", SUMMARY, DETAILS);

const SUMMARY: &str = "A Redis server with strings and counters, in memory";

const DETAILS: &str = "\
PING, ECHO, SET (with EX, PX, NX and XX), SETEX, GET, MGET, MSET, INCR, INCRBY, DECR, DEL, EXISTS, STRLEN, \
EXPIRE, TTL, DBSIZE, FLUSHALL, SELECT 0, AUTH and QUIT, with the answers of Redis 7. Other commands are \
errors, as there.";

const LISTEN_HELP: &str = "Address: IP:PORT, or unix:PATH; port 0 takes a free one";

/// Settings of the server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) password: Option<String>,
    pub(crate) max_bytes: u64,
    pub(crate) delay: Nanos,
    pub(crate) lie: Option<Lies<LieKind>>,
    pub(crate) seed: u64,
}

/// A wrong answer to a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LieKind {
    /// A value that was never set.
    Wrong,
    /// No value, where there is one.
    Missing,
}

#[derive(Debug, Args)]
#[command(mut_arg("listen", |listen| listen.default_value("127.0.0.1:6379").help(LISTEN_HELP)))]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Password that connections have to give
    #[arg(long, value_name = "PASSWORD", help_heading = "Answers")]
    password: Option<String>,
    /// Memory that keys and values may take: then SET is answered with an OOM error
    #[arg(long, value_name = "SIZE", default_value = "512MiB", help_heading = "Answers")]
    max_memory: String,
    /// Time that each answer is held back
    #[arg(long, value_name = "TIME", help_heading = "Answers")]
    delay: Option<String>,
    /// Answer a share of the GETs wrongly: wrong or missing, such as wrong:2% [default share: 1%]
    #[arg(long, value_name = "KIND[:SHARE]", help_heading = "Answers")]
    lie: Option<String>,
    /// Seed of the choice of the GETs that are answered wrongly
    #[arg(long, value_name = "SEED", default_value = "0", help_heading = "Answers")]
    seed: String,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connection")]
    backend: String,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

impl TargetServerArgs for ServerArgs {
    fn server(&self) -> Result<ServerSpec, Problems> {
        let mut reader = Reader::default();
        let place = self.place.read(&mut reader);
        let mut options = ServerOptions::new("redis", vec![place.listen]);
        options.threads = place.threads;
        options.duration = place.duration;
        let kinds = [("wrong", LieKind::Wrong), ("missing", LieKind::Missing)];
        let lie = |text: &str| parse_lie(text, &kinds, "wrong:2%");
        let settings = Settings {
            password: self.password.clone(),
            max_bytes: reader.read("--max-memory", &self.max_memory, parse_size).unwrap_or(0),
            delay: reader.maybe("--delay", self.delay.as_ref(), parse_positive).unwrap_or(Nanos::ZERO),
            lie: reader.maybe("--lie", self.lie.as_ref(), lie),
            seed: reader.read("--seed", &self.seed, parse_seed).unwrap_or(0),
        };
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || options.problems())?;
        let start = Box::new(|backend| running::start(options, settings, backend));
        Ok(ServerSpec { backend, quiet: self.quiet, start })
    }
}
