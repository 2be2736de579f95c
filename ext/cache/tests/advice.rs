//! Command lines that begin with Carbon's programs, or have constants of them.

use crate::program::run;

#[test]
fn carbons_programs_and_constants_are_known_by_name() {
    for (line, hint) in [
        ("load-test-tcp.rs", "`plimsoll cache`"),
        ("load-test-unique-keys.rs", "--compare-http"),
        ("run ./scripts/load-test-tcp.rs", "`plimsoll cache`"),
        ("cargo run --release --bin carbon-server", "`plimsoll target cache`"),
        ("cargo run --release --bin server-tcp", "`plimsoll target cache`"),
        ("./scripts/monitor-memory.sh", "--watch-process"),
        ("monitor-memory.sh", "--watch-process"),
        ("rust-script load-test-tcp.rs", "`plimsoll cache`"),
        ("load-test-tcp --TARGET_RPS 5 --CACHE_NAME x", "`plimsoll cache --rate 5 --cache x`"),
        ("cache --TARGET_RPS 0", "`plimsoll cache`"),
        ("cache TARGET_RPS=0 --mix put", "`plimsoll cache --mix put`"),
        (
            "cache --target-rps 5_000 --total-requests=100_000 --CONCURRENT_CONNECTIONS 50 SERVER_ADDR=a:1 --cache-name x",
            "`plimsoll cache --rate 5000 -n 100000 -c 50 --server a:1 --cache x`",
        ),
        ("cache --connection-timeout-secs 10", "`plimsoll cache --connect-timeout 10`"),
    ] {
        let refused = run(line);
        assert_eq!(refused.code, Some(2), "{line}: {refused:?}");
        let said = refused.stderr.split_once("hint: ").unwrap_or_default().1;
        assert!(said.contains(hint), "{line}: {}", refused.stderr);
    }
    // A name is one of a cache, and an unknown flag has a hint.
    let plan = run("cache --cache TARGET_RPS --rate 5 --print-plan");
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let refused = run("run http://127.0.0.1:1 --cache-name x");
    assert!(refused.stderr.contains("--server and --cache of `plimsoll cache`"), "{}", refused.stderr);
}
