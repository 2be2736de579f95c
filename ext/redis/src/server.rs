//! `plimsoll target redis`: a server of strings and counters, for others to test against.

mod connections;
mod request;
mod store;

use std::sync::Mutex;

use clap::Args;
use plimsoll_app::{Failure, HostArgs, Reader, ServerSpec, TargetServer, TargetServerArgs, running};
use plimsoll_core::figure;
use plimsoll_document::Problems;
use plimsoll_plan::parse_size;
use plimsoll_targets::server::Server;

use connections::{Redis, Report};
use store::Store;

/// The server as a subcommand of `plimsoll target`.
pub(crate) const SERVER: TargetServer = TargetServer::of::<ServerArgs>("redis", SUMMARY, DETAILS);

const SUMMARY: &str = "A Redis server with strings and counters, in memory";

const DETAILS: &str = "\
PING, ECHO, SET (with EX, PX, NX and XX), GET, MGET, INCR, INCRBY, DECR, DEL, EXISTS, FLUSHALL, SELECT 0, \
AUTH and QUIT, with the answers of Redis 7. Other commands are errors, as there.";

const LISTEN_HELP: &str = "Address: IP:PORT, or unix:PATH; port 0 takes a free one";

const LIE_HELP: &str =
    "Answer a share of the GETs wrongly: wrong or missing, such as wrong:2% [default share: 1%]";

/// The kinds of `--lie`.
const LIES: [(&str, LieKind, &str); 2] =
    [("wrong", LieKind::Wrong, "a wrong value"), ("missing", LieKind::Missing, "no value")];

const ELSEWHERE: &str = "take another address: --listen; port 0 takes a free one";

/// A wrong answer to a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LieKind {
    /// A value that was never set.
    Wrong,
    /// No value, where there is one.
    Missing,
}

#[derive(Debug, Args)]
#[command(mut_arg("listen", |listen| listen.default_value("127.0.0.1:6379").help(LISTEN_HELP)))]
#[command(mut_arg("lie", |lie| lie.help(LIE_HELP)))]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Password that connections have to give
    #[arg(long, value_name = "PASSWORD", help_heading = "Answers")]
    password: Option<String>,
    /// Memory that keys and values may take: then SET is answered with an OOM error
    #[arg(long, value_name = "SIZE", default_value = "512MiB", help_heading = "Answers")]
    max_memory: String,
}

impl TargetServerArgs for ServerArgs {
    fn server(&self) -> Result<ServerSpec, Problems> {
        let mut reader = Reader::default();
        let host = self.host.read(&LIES, &mut reader);
        let options = host.options("redis");
        let max_bytes = reader.read("--max-memory", &self.max_memory, parse_size).unwrap_or(0);
        let redis = Redis {
            password: self.password.clone(),
            lie: host.lie,
            seed: host.seed,
            store: Mutex::new(Store::new(max_bytes)),
        };
        let problems = options.problems();
        let start = Box::new(move |backend| {
            let server = Server::start(options, redis, backend);
            let server = server.map_err(|error| Failure::start(&error, ELSEWHERE))?;
            let place = server.endpoints().iter().map(|endpoint| format!("listening on {endpoint}"));
            let opening = place.chain(host.faults).collect();
            Ok(running(server, opening, summary))
        });
        self.host.server(reader, problems, start)
    }
}

/// Describes what the server did.
fn summary(report: &Report) -> Vec<String> {
    let Report { connections, commands, refused, lies, ended } = *report;
    let [all, on, errors] = [commands, connections, refused].map(figure::count);
    let mut lines = vec![format!("{all} commands on {on} connections, {errors} answered with an error")];
    for (count, what) in [(lies, "answered wrongly on purpose"), (ended, "connections ended for a violation")]
    {
        lines.extend((count > 0).then(|| format!("{} {what}", figure::count(count))));
    }
    lines
}
