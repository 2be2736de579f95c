//! `plimsoll target cache`: the flags, and the server that they ask for.

use clap::Args;
use plimsoll_app::{
    HostArgs, Reader, ServerSpec, TargetServer, TargetServerArgs, parse_endpoint, parse_positive,
};
use plimsoll_document::Problems;
use plimsoll_driver::Endpoint;
use plimsoll_plan::parse_size;

use super::{CacheOptions, LieKind, running};

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
#[command(mut_arg("lie", |lie| lie.help(LIE_HELP).long_help(format!("{LIE_HELP}\n\n{LIES_HELP}"))))]
pub(crate) struct CacheServerArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Address of the HTTP API, or `off`
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    http: String,
    /// User of the HTTP API, except for /health
    #[arg(long, value_name = "USER:PASSWORD", default_value = "admin:admin123")]
    user: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Answer a GET of a missing key with NOT_FOUND, and not with the error text of the real server
    #[arg(long, help_heading = "Answers")]
    not_found: bool,
}

/// The kinds of `--lie`.
const LIES: [(&str, LieKind, &str); 3] = [
    ("wrong", LieKind::Wrong, "a wrong value"),
    ("stale", LieKind::Stale, "the value before the last PUT"),
    ("swapped", LieKind::Swapped, "each other's reply"),
];

const LIE_HELP: &str =
    "Answer a share of the GETs wrongly, on the binary port: wrong, stale or swapped, such as stale:2%";

const LIES_HELP: &str = "`wrong` is a value that was never put; `stale` is the value before the last PUT; \
     `swapped` are two replies of one connection in each other's place, or, where no second GET came with \
     the first, the reply to the GET before it. Without a share it is 1%. HTTP always answers correctly.";

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

impl TargetServerArgs for CacheServerArgs {
    fn server(&self) -> Result<ServerSpec, Problems> {
        let mut reader = Reader::default();
        let (options, faults) = self.to_options(&mut reader);
        let problems = options.problems();
        self.host.server(reader, problems, Box::new(|backend| running::start(options, faults, backend)))
    }
}

impl CacheServerArgs {
    /// Parses everything but the system interface; returns the faults in words, too. Problems go to the
    /// reader.
    fn to_options(&self, reader: &mut Reader) -> (CacheOptions, Option<String>) {
        let host = self.host.read(&LIES, reader);
        let http = reader.read("--http", &self.http, parse_http).flatten();
        let user = reader.read("--user", &self.user, parse_user);
        let (user, password) = user.unwrap_or_default();
        let options = CacheOptions {
            listen: host.listen,
            threads: host.threads,
            duration: host.duration,
            delay: host.delay,
            http,
            caches: self.store.caches.clone(),
            max_bytes: reader.read("--max-memory", &self.store.max_memory, parse_size).unwrap_or_default(),
            time_to_live: reader.read("--ttl", &self.store.ttl, parse_positive).unwrap_or_default(),
            not_found: self.not_found,
            lie: host.lie,
            seed: host.seed,
            user,
            password,
        };
        (options, host.faults)
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use plimsoll_core::Nanos;

    use super::*;
    use crate::server::Lie;

    fn options(args: &[&str]) -> Result<CacheOptions, Problems> {
        let command = CacheServerArgs::augment_args(clap::Command::new("cache")).no_binary_name(true);
        let found = command.try_get_matches_from(args).unwrap();
        let args = CacheServerArgs::from_arg_matches(&found).unwrap();
        args.server().map(|_| args.to_options(&mut Reader::default()).0)
    }

    #[test]
    fn the_plain_server_stands_where_the_real_one_does() {
        let options = options(&[]).unwrap();
        let at = |port| Endpoint::Tcp(([127, 0, 0, 1], port).into());
        assert_eq!((options.listen, options.http), (at(5500), Some(at(8080))));
        assert_eq!((options.user.as_str(), options.password.as_str()), ("admin", "admin123"));
        assert_eq!((options.caches, options.max_bytes), (vec!["perf_test".to_owned()], 512 << 20));
        assert_eq!(options.time_to_live, Nanos::from_secs(1800));
        assert_eq!((options.not_found, options.lie), (false, None));
    }

    #[test]
    fn what_is_given_is_taken() {
        let options = options(&[
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
        .unwrap();
        assert_eq!((options.caches, options.max_bytes), (vec!["a".to_owned(), "b".to_owned()], 2 << 20));
        assert_eq!(
            (options.time_to_live, options.duration),
            (Nanos::from_secs(5), Some(Nanos::from_secs(3)))
        );
        assert_eq!((options.not_found, options.http, options.threads, options.seed), (true, None, 2, 9));
        assert_eq!(options.lie, Some(Lie { kind: LieKind::Stale, share: 0.025 }));
        assert_eq!((options.user.as_str(), options.password.as_str()), ("me", "a:b"));
        let swapped = Lie { kind: LieKind::Swapped, share: 0.01 };
        assert_eq!(super::tests::options(&["--lie=swapped"]).unwrap().lie, Some(swapped));
    }

    #[test]
    fn problems_are_told_at_once() {
        let problems = options(&[
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
            assert_eq!(options(&[bad]).unwrap_err().iter().count(), 1, "{bad}");
        }
    }
}
