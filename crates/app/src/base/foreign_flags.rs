//! Flags of other tools, which are tried here.

use crate::base::advice;

/// Hint on the flags of the scripts for all kinds of data at once.
const OF_UNIFIED: &str = "`ingest unified` shares one --rate, --batch-size, --workers and --database among its kinds; for others, \
     run `ingest metrics`, `ingest logs` and so on side by side";

/// Flags of other tools, and what they are called here.
const FLAGS: &[(&[&str], &str)] = &[
    (&["-T"], "hey's `-T` is -H 'Content-Type: …' here, wrk's --timeout, h2load's --connection-lifetime"),
    (&["-L"], "percentiles are always shown (wrk's `-L`); curl's `-L` is --follow-redirects"),
    (&["-l", "--latency", "--histogram"], "percentiles and a histogram are always shown"),
    (&["--latency-correction"], "response times always count from the intended start"),
    (
        &["-p"],
        "ab's `-p FILE` is -b @FILE here, with -X PUT its `-u FILE`; oha's `-p` is -m (HTTP/2) or \
         --pipeline; h2load's `-p h2c` is --http2",
    ),
    (&["--no-tls-proto"], "write --http2 for h2c, --http1.1 for http/1.1"),
    (
        &["-u"],
        "the number of users (Locust's, JMeter's) is --users; curl's `-u` is --basic user:password; ab's \
         `-u FILE` is -X PUT -b @FILE; aiperf's is the URL, without a flag",
    ),
    (&["--user", "-a"], "user and password are --basic user:password"),
    (&["-m"], "`-m` is the number of streams of `run`; the figure of `compare` and `history` is --metric"),
    (&["--host"], "Locust's `--host` is the URL, without a flag"),
    (
        &["--headless", "--no-web", "--only-summary"],
        "it runs at once, without a click (--no-tui leaves the live screen out)",
    ),
    (&["--run-time"], "the length of the run is -d"),
    (
        &["--spawn-rate", "--hatch-rate", "--ramp-up", "--rampup", "--ramp"],
        "users or rates that rise are stages: --user-stages 1ms@0,30s@100 starts 100 users within 30s, \
         --stages 1ms@0,30s@100 rises to 100/s",
    ),
    (
        &["--summary-trend-stats"],
        "p50 to p99.99, mean, min and max are always shown; --out k6=FILE writes k6's summary",
    ),
    (&["--summary-mode"], "the report has --output FORMAT, --out FORMAT=FILE and --quiet"),
    (&["-A"], "hey's `-A` is -H 'Accept: …' here, curl's -H 'User-Agent: …', ab's --basic user:password"),
    (&["--user-agent"], "write -H 'User-Agent: …'"),
    (&["-I", "--head"], "a request for the head alone is -X HEAD"),
    (&["-x"], "a proxy is --proxy http://HOST:PORT here, or socks5://"),
    (&["-w"], "oha's `-w` is --drain here, h2load's --window-bits"),
    (&["-W"], "h2load's `-W` is --connection-window-bits here"),
    (&["-f"], "h2load's `-f` is --max-frame-size here"),
    (&["-N", "--connection-inactivity-timeout"], "the time without use is --connection-inactivity"),
    (&["--connection-active-timeout"], "the age of a connection is --connection-lifetime"),
    (
        &["--config-file"],
        "h2loadrunner's configuration is --h2loadrunner FILE; a plan is named without a flag",
    ),
    (&["--rps-input-file", "--request-per-second-feed-file"], "the file with the rate is --rate-file"),
    (&["--log-file"], "the file with a line for every request is --log"),
    (&["--ciphers"], "ciphers cannot be chosen: the usual safe ones are offered"),
    (&["--rate-period"], "connections per second are --connection-rate, requests per second --rate"),
    (&["--warm-up-time"], "the time before measuring is --warmup"),
    (&["--interval-between-ping-frames"], "the time between PINGs is --ping-interval"),
    (&["--alpn-list", "--npn-list"], "the protocols to offer are --alpn h2,http/1.1"),
    (&["--wait-ongoing-requests-after-deadline"], "the wait for owed responses is --drain"),
    (
        &["-i", "--input-file"],
        "h2load's `-i` is a list of URLs: write them one after another, or as steps of a plan; the number \
         of iterations is -n",
    ),
    (&["--requests"], "the number of iterations is -n"),
    (
        &["-v", "--verbose"],
        "--log FILE has a line for every request, --failed FILE both messages of those that failed",
    ),
    (
        &["-B", "--base-uri"],
        "URLs are written whole, and h2load's `-B unix:PATH` is --unix-socket PATH; in a plan, the paths of \
         steps are put behind the URL of one of its `targets`",
    ),
    (
        &["--timing-script-file"],
        "`plimsoll import har` keeps the gaps between the requests of a recording, --rate-file has a rate \
         over time",
    ),
    (&["--qlog-file-base"], "qlog is of HTTP/3, which is not supported yet"),
    (
        &["-r"],
        "requests per second are --rate, for the whole run (where -n was seconds, they are -d); new \
         connections --connection-rate",
    ),
    (&["--qps", "--arrival-rate"], "the rate is --rate, for the whole run"),
    (&["--data", "--data-raw", "--data-binary", "--data-ascii", "--payload"], "the body is -b"),
    (&["--data-urlencode", "--url-query"], "a body is -b, and it and the URL are written as they are sent"),
    (
        &["-F", "--form"],
        "a form is `multipart` of a step in a plan: `plimsoll import curl -- -F … URL > plan.yaml` \
         writes one",
    ),
    (&["--request"], "the method is -X"),
    (&["--url"], "the URL is written without a flag: `plimsoll http://127.0.0.1:8080/`"),
    (&["--html"], "the page of HTML is --report FILE"),
    (
        &["--clients", "--workers", "--concurrency", "--max-workers", "--max-connections"],
        "the number of connections is -c",
    ),
    (&["--vus"], "the number of users is --users"),
    (
        &["--stage"],
        "k6 rises to the target of a stage, and the first one here holds: k6's `10s:50` is \
         --user-stages 1ms@0,10s@50 (users), or --stages 1ms@0,10s@50 (a rate)",
    ),
    (&["--cpus", "--gomaxprocs"], "the number of threads is -t"),
    (
        &["--objective", "--goal"],
        "the objective of a search is --slo 'p99<25ms'; a limit of a run is --threshold",
    ),
    (&["--follow", "--location"], "redirects are followed with --follow-redirects"),
    (&["--max-redirs"], "write --follow-redirects=N"),
    (
        &["--evaluate-max-rps"],
        "`plimsoll find` looks for the highest rate that holds: it takes a plan, which \
         --print-plan writes",
    ),
    (&["--http2-only"], "write --http2, and for `false` nothing"),
    (
        &["--pool-max-idle-per-host", "--pool-idle-timeout-secs"],
        "the number of connections is -c, the time without use --connection-inactivity",
    ),
    (
        &["--perf-path", "--perf-bytes"],
        "one path again and again is `plimsoll run 'URL/perf/json?bytes=1024' -n 20000 -c 64`",
    ),
    (&["--accept-encoding"], "write -H 'Accept-Encoding: gzip'"),
    (&["--h1"], "write --http1.1, or nothing"),
    (&["--h2", "--h2c"], "write --http2"),
    (&["--http3", "--h3"], "HTTP/3 is not supported yet"),
    (&["--output-format", "--format"], "write --output text, json or csv"),
    (&["--output-file"], "write --json FILE"),
    (&["--summary-export"], "write --out k6=FILE"),
    (&["--max-time"], "the limit for a response is --timeout, the length of the run --duration"),
];

/// Returns a hint on a flag of another tool: its name here.
pub(crate) fn foreign(flag: &str) -> Option<&'static str> {
    let mut all = FLAGS.iter().chain(advice::all().flat_map(|advice| advice.flags));
    let known = all.find(|(flags, _)| flags.contains(&flag)).map(|(_, hint)| *hint);
    known.or_else(|| is_of_unified(flag).then_some(OF_UNIFIED))
}

/// Returns `true` for the flags of Arc's script for all kinds of data at once: `--metrics-rps` and the like.
fn is_of_unified(flag: &str) -> bool {
    let words = flag.strip_prefix("--").and_then(|flag| flag.split_once('-'));
    words.is_some_and(|(kind, what)| {
        ["metrics", "logs", "traces", "events"].contains(&kind)
            && ["rps", "batch", "workers", "database"].contains(&what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_another_tool_has_one_hint() {
        let mut flags: Vec<&str> = FLAGS.iter().flat_map(|(flags, _)| flags.iter().copied()).collect();
        let count = flags.len();
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), count);
        for flag in flags {
            assert!(flag.starts_with('-') && !is_of_unified(flag), "{flag}");
        }
        assert_eq!(foreign("--metrics-rps"), Some(OF_UNIFIED));
        assert_eq!(foreign("--metrics"), None);
    }
}
