use super::*;

fn typed(line: &str) -> Vec<OsString> {
    std::iter::once("plimsoll").chain(line.split(' ')).map(OsString::from).collect()
}

/// Symptom: names of programs and of their scripts were taken for those of hosts.
#[test]
fn other_programs_and_their_scripts_are_known_by_name() {
    for (line, hint) in [
        ("http_loadgen_demo --leader http://a", "`plimsoll crud --preset lithair --leader http://a`"),
        ("./target/release/http_loadgen_demo", "`plimsoll crud --preset lithair`"),
        ("./examples/raft_replication_demo/bench_1000_crud_parallel.sh 3000", "--total 3000`"),
        ("ic-workload-generator -n 2", "it signs each message, and this load only with --pem-file"),
        ("ic-workload-generator", "speaks HTTP/2 (--http2)"),
        ("load-sink", "`plimsoll sink`"),
        ("metrics_load_test.py --token T", "`plimsoll ingest metrics --preset arc --token T`"),
        ("./scripts/synthetic_logs_load_test.py", "`plimsoll ingest logs --preset arc`"),
        ("demo_scenario_marketing_campaign.py", "`plimsoll ingest demo`"),
        ("h2loadrunner http://a -c 2", "--http2"),
        ("hey -z 2s http://a", "`plimsoll http://a -z 2s -c 50`"),
        ("hey -z 20s -m GET http://localhost:8080", "`plimsoll http://localhost:8080 -z 20s -X GET -c 50`"),
        (
            "hey -n 10 -c 5 -q 3 -T a/b -d x=1 http://a",
            "`plimsoll http://a -n 10 -H 'Content-Type: a/b' -b 'x=1' -c 5 -q 15`",
        ),
        ("hey -h2 -cpus 2 -disable-keepalive http://a", "-H 'Connection: close'"),
        ("hey", "`plimsoll URL -n 200 -c 50`"),
        (
            "cargo run --release -- --query-timeout-secs 3 -n 20 -r 400 http://a",
            " --query-timeout-secs 3 -n 20 -r 400 http://a` here",
        ),
        (
            "cargo build --release -p raft_replication_demo --bin http_loadgen_demo",
            "`plimsoll crud --preset lithair`",
        ),
        (
            "cargo run -p raft_replication_demo --bin http_loadgen_demo -- --total 3",
            "`plimsoll crud --preset lithair --total 3`",
        ),
        (
            "cargo run --release -- --leader http://a --mode bulk",
            "`plimsoll crud --preset lithair --leader http://a --mode bulk`",
        ),
        ("cargo run --release", "`plimsoll sink`"),
        ("cargo install rust-script", "nothing is built"),
        ("workload_generator -n 20", " -n 20` here"),
        ("http-loadgen --total 3", "`plimsoll crud --preset lithair --total 3`"),
        ("http_loadgen_demo --total 3 --mode bulk", "`plimsoll crud --preset lithair --total 3 --mode bulk`"),
        ("lithair", "`plimsoll crud --preset lithair`"),
        ("python3 ./scripts/metrics_load_test.py --rps 5", "`plimsoll ingest metrics --preset arc --rps 5`"),
        ("attack -rate 50", "--rate 50"),
        ("k6 run x.js", "plimsoll import k6 FILE"),
        ("script.js", "`plimsoll import k6 script.js > plan.yaml`"),
        ("run plan.jmx", "`plimsoll import jmeter plan.jmx > plan.yaml`"),
        ("./flows/locustfile.py", "plimsoll import locust"),
    ] {
        let problem = problem(&typed(line)).unwrap_or_else(|| panic!("{line}"));
        let said = problem.hint.as_deref().unwrap_or_default();
        assert!(said.contains(hint), "{line}: {problem:?}");
    }
    for line in ["http://a/x.js", "example.py", "run plan.yaml", "-c 8 http://a", "sink", "a.test/x", "bash"]
    {
        assert!(problem(&typed(line)).is_none(), "{line}");
    }
}

/// Symptom: "`-h` lists the flags" of everything that one command has and another does not.
#[test]
fn what_a_command_has_no_flag_for_is_told() {
    for (line, flag, hint) in [
        ("ab http://a http://b --evidence x", "--evidence", "evidence is of a run or a search"),
        ("ab http://a http://b --name x", "--name", "--json FILE"),
        ("ab http://a http://b --step-summary", "--step-summary", "-o text, json or markdown"),
        ("compare a b --report x", "--report", "`plimsoll report A B`"),
        ("compare a b --json x", "--json", "-o json"),
        ("history a --json x", "--json", "-o json"),
        ("show a --report x", "--report", "`plimsoll report RUN`"),
    ] {
        let said = owner(flag, &typed(line)).unwrap_or_default();
        assert!(said.contains(hint), "{line}: {said}");
    }
}

/// Symptom: `--leader` was said to mean `--header`, and `--total` `--trial`.
#[test]
fn flags_of_ready_made_loads_are_known_elsewhere() {
    for (flag, command) in [("--leader", "crud"), ("--read-pct", "crud"), ("--token", "ingest")] {
        let hint = owner(flag, &typed("run http://a")).unwrap_or_default();
        assert_eq!(hint, format!("it is a flag of `plimsoll {command}`"), "{flag}");
        assert_eq!(owner(flag, &typed(command)), None, "{flag}");
    }
    assert_eq!(owner("--print-plan-of-all", &typed("run")), None);
    assert_eq!(owner("--print-plan", &typed("find")), None, "many have it");
}
