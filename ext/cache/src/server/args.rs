//! `plimsoll target cache`: the flags, and the server that they ask for.

use clap::Args;
use plimsoll_app::{
    PlaceArgs, Reader, ServerSpec, TargetServer, TargetServerArgs, parse_endpoint, parse_positive, parse_seed,
};
use plimsoll_document::Problems;
use plimsoll_driver::Endpoint;
use plimsoll_plan::{BackendChoice, parse_backend, parse_size};

use super::{CacheOptions, Lie, LieKind, running};

/// The server as a subcommand of `plimsoll target`.
pub(crate) const SERVER: TargetServer = TargetServer::of::<CacheServerArgs>("cache", SUMMARY, DETAILS);

const SUMMARY: &str =
    "A cache that speaks the Carbon cache's binary protocol, and its HTTP API on a second port";

const DETAILS: &str = "\
PING, PUT, GET and DELETE in frames, answered in order, as the real server does: a missing key is the error \
text `Get failed: not found`, an unknown cache `Cache not found: NAME`, and only a frame above 8 MiB ends a \
connection. Over HTTP: /health, /auth/login, /admin/caches and /cache/CACHE/KEY, with Basic or Bearer. \
Values are kept in memory.";

#[derive(Debug, Args)]
#[command(mut_arg("listen", |listen| listen.default_value("127.0.0.1:5500").help(LISTEN_HELP)))]
#[command(mut_arg("threads", |threads| threads.help("Threads, which share the ports")))]
pub(crate) struct CacheServerArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Address of the HTTP API, or `off`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    http: String,
    /// User of the HTTP API, except for /health
    #[arg(long, value_name = "USER:PASSWORD", default_value = "admin:admin123")]
    user: String,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    truth: TruthArgs,
    /// System interface: auto, epoll or uring
    #[arg(long, value_name = "NAME", default_value = "auto", help_heading = "Connection")]
    backend: String,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

const LISTEN_HELP: &str = "Address of the binary protocol: IP:PORT, or unix:PATH; port 0 takes a free one";

#[derive(Debug, Args)]
#[command(next_help_heading = "Caches")]
struct StoreArgs {
    /// A cache that exists from the start; repeatable. The HTTP API makes more
    #[arg(long = "cache", value_name = "NAME", default_value = "perf_test")]
    caches: Vec<String>,
    /// Memory that the values of one cache may take
    #[arg(long, value_name = "SIZE", default_value = "512MiB", allow_negative_numbers = true)]
    max_memory: String,
    /// Lifetime of a value
    #[arg(long, value_name = "TIME", default_value = "30m", allow_negative_numbers = true)]
    ttl: String,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answers")]
struct TruthArgs {
    /// Answer a GET of a missing key with NOT_FOUND, and not with the error text of the real server
    #[arg(long)]
    not_found: bool,
    /// Answer a share of the GETs wrongly, on the binary port: wrong, stale or swapped, such as stale:2%
    ///
    /// `wrong` is a value that was never put; `stale` is the value before the last PUT; `swapped` are
    /// two replies of one connection in each other's place, or, where no second GET came with the first, the
    /// reply to the GET before it. Without a share it is 1%. HTTP always answers correctly.
    #[arg(long, value_name = "KIND[:SHARE]")]
    lie: Option<String>,
    /// Seed of the choice of the GETs that are answered wrongly
    #[arg(long, value_name = "SEED", default_value = "0", allow_negative_numbers = true)]
    seed: String,
}

/// Settings of a cache server.
#[derive(Debug)]
struct CacheServerSpec {
    options: CacheOptions,
    backend: BackendChoice,
    quiet: bool,
}

impl TargetServerArgs for CacheServerArgs {
    fn server(&self) -> Result<ServerSpec, Problems> {
        let CacheServerSpec { options, backend, quiet } = self.to_spec()?;
        let start = Box::new(|backend| running::start(options, backend));
        Ok(ServerSpec { backend, quiet, start })
    }
}

impl CacheServerArgs {
    /// Parses and checks everything; all problems at once.
    fn to_spec(&self) -> Result<CacheServerSpec, Problems> {
        let mut reader = Reader::default();
        let place = self.place.read(&mut reader);
        let mut options = CacheOptions::new(place.listen);
        options.threads = place.threads;
        options.duration = place.duration;
        options.http = reader.read("--http", &self.http, parse_http).flatten();
        if let Some((user, password)) = reader.read("--user", &self.user, parse_user) {
            (options.user, options.password) = (user, password);
        }
        options.caches.clone_from(&self.store.caches);
        let store = &self.store;
        if let Some(bytes) = reader.read("--max-memory", &store.max_memory, parse_size) {
            options.max_bytes = bytes;
        }
        if let Some(time) = reader.read("--ttl", &store.ttl, parse_positive) {
            options.time_to_live = time;
        }
        options.not_found = self.truth.not_found;
        options.lie = reader.maybe("--lie", self.truth.lie.as_ref(), parse_lie);
        options.seed = reader.read("--seed", &self.truth.seed, parse_seed).unwrap_or(0);
        let backend = reader.read("--backend", &self.backend, parse_backend);
        let backend = reader.conclude(backend, || options.problems())?;
        Ok(CacheServerSpec { options, backend, quiet: self.quiet })
    }
}

/// An address, or `off`.
fn parse_http(text: &str) -> Result<Option<Endpoint>, String> {
    if text == "off" { Ok(None) } else { parse_endpoint(text).map(Some) }
}

fn parse_user(text: &str) -> Result<(String, String), String> {
    let (user, password) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not USER:PASSWORD, such as admin:admin123"))?;
    Ok((user.to_owned(), password.to_owned()))
}

/// `wrong`, `stale:2%`.
fn parse_lie(text: &str) -> Result<Lie, String> {
    let kinds = [("wrong", LieKind::Wrong), ("stale", LieKind::Stale), ("swapped", LieKind::Swapped)];
    plimsoll_app::parse_lie(text, &kinds, "stale:2%")
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use plimsoll_core::Nanos;

    use super::*;

    fn spec(args: &[&str]) -> Result<CacheServerSpec, Problems> {
        let command = CacheServerArgs::augment_args(clap::Command::new("cache")).no_binary_name(true);
        let found = command.try_get_matches_from(args).unwrap();
        CacheServerArgs::from_arg_matches(&found).unwrap().to_spec()
    }

    #[test]
    fn the_plain_server_stands_where_the_real_one_does() {
        let options = spec(&[]).unwrap().options;
        let at = |port| Endpoint::Tcp(([127, 0, 0, 1], port).into());
        assert_eq!((options.listen, options.http), (at(5500), Some(at(8080))));
        assert_eq!((options.user.as_str(), options.password.as_str()), ("admin", "admin123"));
        assert_eq!((options.caches, options.max_bytes), (vec!["perf_test".to_owned()], 512 << 20));
        assert_eq!(options.time_to_live, Nanos::from_secs(1800));
        assert_eq!((options.not_found, options.lie), (false, None));
    }

    #[test]
    fn what_is_given_is_taken() {
        let options = spec(&[
            "--cache=a",
            "--cache",
            "b",
            "--max-memory=2MiB",
            "--ttl=5s",
            "--not-found",
            "--http=off",
            "--lie=stale:2.5%",
            "--seed=9",
            "--user=me:a:b",
            "-t2",
            "-d",
            "3s",
            "--listen=:7",
        ])
        .unwrap()
        .options;
        assert_eq!((options.caches, options.max_bytes), (vec!["a".to_owned(), "b".to_owned()], 2 << 20));
        assert_eq!(
            (options.time_to_live, options.duration),
            (Nanos::from_secs(5), Some(Nanos::from_secs(3)))
        );
        assert_eq!((options.not_found, options.http, options.threads, options.seed), (true, None, 2, 9));
        assert_eq!(options.lie, Some(Lie { kind: LieKind::Stale, share: 0.025 }));
        assert_eq!((options.user.as_str(), options.password.as_str()), ("me", "a:b"));
        assert_eq!(parse_lie("swapped"), Ok(Lie { kind: LieKind::Swapped, share: 0.01 }));
    }

    #[test]
    fn problems_are_told_at_once() {
        let problems = spec(&[
            "--listen=x",
            "--http=y",
            "--user=z",
            "--max-memory=?",
            "--ttl=0",
            "--lie=white",
            "--seed=s",
            "--backend=b",
        ])
        .unwrap_err();
        assert_eq!(problems.iter().count(), 8, "{problems}");
        for bad in ["--cache=a b", "--max-memory=1KiB", "--lie=wrong:101%"] {
            assert_eq!(spec(&[bad]).unwrap_err().iter().count(), 1, "{bad}");
        }
    }
}
