//! Clients that are slow on purpose, beside the load.

use serde_json::Value;

use crate::loopback::foreign::Nginx;
use crate::loopback::process::{Folder, run};
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered};

/// The accounts of the slow clients, which balance: started, ok, failed and under way.
fn slow(result: &Value) -> [u64; 4] {
    let of = |key: &str| count(result, &format!("/slow_clients/{key}"));
    let accounts = [of("started"), of("ok"), of("failed"), of("in_flight_at_stop")];
    assert_eq!(accounts[0], accounts[1..].iter().sum::<u64>(), "{}", result["slow_clients"]);
    accounts
}

#[test]
fn slow_clients_are_in_no_figure_of_the_load() {
    let folder = Folder::new();
    for (speaks, least_ms) in [("", 100), ("--pipeline 2", 100), ("--http2", 0)] {
        let sink = Sink::start("");
        let load = "--rate 500 -d 2s -c 4 --slow-clients 8 --slow-client-rate 400B/s -o json";
        let finished =
            run(&format!("run {} {load} {speaks} --report {}", sink.url(), folder.file("page.html")));
        let result = finished.result();
        assert_balance(&result);
        assert_eq!((account(&result, "scheduled"), account(&result, "ok")), (1_000, 1_000), "{speaks}");
        assert_eq!(count(&result, "/response_time/count"), 1_000, "{speaks}");
        let [started, ok, failed, under_way] = slow(&result);
        assert!(ok >= 8 && failed == 0 && under_way <= 8, "{speaks}: {}", result["slow_clients"]);
        assert_eq!(count(&result, "/slow_clients/clients"), 8);
        assert_eq!(count(&result, "/slow_clients/connections"), 8);
        // Some 70 bytes, and at most 20 of them at once.
        let fastest = count(&result, "/slow_clients/service_time/min");
        assert!(fastest >= least_ms * 1_000_000, "{speaks}: {fastest}");
        assert_eq!(account(&result, "unmeasured"), started + 1, "{speaks}: theirs, and the preflight");
        // The sink has seen a part of the requests that were under way.
        let saw = sink.stop().requests;
        assert!((delivered(&result) - under_way..=delivered(&result)).contains(&saw), "{speaks}: {saw}");
    }
}

#[test]
fn a_response_is_read_as_slowly_as_a_request_is_sent() {
    let sink = Sink::start("--body-size 4000");
    let load = "-n 50 -c 1 --rate 25 --slow-clients 2 --slow-client-rate 4kB -o json";
    let result = run(&format!("run {} {load}", sink.url())).result();
    let [_, ok, failed, _] = slow(&result);
    assert!(ok >= 1 && failed == 0, "{}", result["slow_clients"]);
    // 4,000 bytes and a head, of which 200 come at once.
    let fastest = count(&result, "/slow_clients/service_time/min");
    assert!((950_000_000..1_500_000_000).contains(&fastest), "{fastest}");
    let median = count(&result, "/response_time/p/50");
    assert!(median < 100_000_000, "the load's own are as fast as ever: {median}");
}

#[test]
fn a_server_that_gives_up_on_slow_clients_is_told() {
    let Some(nginx) = Nginx::start() else { return };
    let load = "--rate 100 -d 3s -c 2 --slow-clients 5 --slow-client-rate 20";
    let finished = run(&format!("run http://{}/ {load}", nginx.impatient));
    let text = finished.stdout.clone();
    assert!(text.contains("5 slow clients beside the load, 20 B/s each"), "{text}");
    let result = run(&format!("run http://{}/ {load} -o json", nginx.impatient)).result();
    assert_balance(&result);
    assert_eq!((account(&result, "ok"), account(&result, "failed")), (300, 0));
    let [_, ok, failed, _] = slow(&result);
    assert!(ok == 0 && failed >= 5, "{}", result["slow_clients"]);
    assert!(count(&result, "/slow_clients/connections") > 5);
    let errors = result["slow_clients"]["errors"].as_object().expect("an object");
    assert_eq!(errors.values().filter_map(Value::as_u64).sum::<u64>(), failed, "{errors:?}");
}

#[test]
fn slow_clients_that_make_no_sense_are_refused() {
    let url = "http://127.0.0.1:1/";
    for (flags, said) in [
        ("--slow-client-rate 5", "has no effect without --slow-clients"),
        ("--slow-clients 2 --slow-client-rate 0", "nothing would ever be sent"),
        ("--slow-clients 2 --slow-client-rate fast", "is not a size"),
        ("--slow-clients 0", "0 is not in 1..=100000"),
        ("--slow-clients 2 --repeat 2", "--slow-clients and --repeat exclude each other"),
    ] {
        run(&format!("run {url} {flags}")).assert_refused(2, said);
    }
    let sink = Sink::start("");
    let verified = format!("crud --leader {} --verify --slow-clients 2", sink.url());
    run(&verified).assert_refused(2, "--verify and --slow-clients exclude each other");
}
