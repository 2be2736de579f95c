//! Tests that nothing is lost or made up: the sink's counter matches the result's accounts in every fault
//! mode.

use serde_json::Value;

use crate::loopback::backends::on_each;
use crate::loopback::process::run;
use crate::loopback::sink::{Saw, Sink};
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered, errors};

/// One run against a sink of its own; the accounts balance.
fn observe(backend: &str, sink: &str, load: &str) -> (Value, Saw) {
    let sink = Sink::start(&format!("{sink} --backend {backend}"));
    let result = run(&format!("{} {load} -o json --backend {backend}", sink.url())).result();
    assert_balance(&result);
    (result, sink.stop())
}

/// One run whose accounts balance, and whose delivered requests equal the counter of the sink.
fn reconcile(backend: &str, sink: &str, load: &str) -> (Value, Saw) {
    let (result, saw) = observe(backend, sink, load);
    assert_eq!(saw.requests, delivered(&result), "{backend} {sink} {load}: {}", result["accounting"]);
    (result, saw)
}

#[test]
fn without_faults() {
    on_each(|backend| {
        for load in ["-n 3000 -c 16", "-n 3000 -c 16 --pipeline 4", "-n 3000 -c 16 -t 2", "--rate 2k -d 1s"] {
            let (result, saw) = reconcile(backend, "", load);
            assert_eq!(account(&result, "unmeasured"), 1, "the preflight");
            assert_eq!(saw.truth.ended(&result, "replied"), account(&result, "ok"));
        }
    });
}

#[test]
fn several_targets_share_the_load() {
    for load in ["-n 3000 -c 15", "--rate 3k -d 1s", "-n 3000 -c 15 -t 2"] {
        let sinks = [Sink::start(""), Sink::start(""), Sink::start("")];
        let urls: Vec<String> = sinks.iter().map(Sink::url).collect();
        let result = run(&format!("run {} {load} -o json", urls.join(" "))).result();
        assert_balance(&result);
        assert_eq!(account(&result, "unmeasured"), 3, "a preflight each");
        let shares = sinks.map(|sink| sink.stop().requests);
        assert_eq!(shares.iter().sum::<u64>(), delivered(&result));
        let steps = result["by_step"].as_array().expect("a list");
        assert_eq!(steps.iter().map(|step| count(step, "/ok") + 1).collect::<Vec<_>>(), shares);
        if load.contains("rate") {
            assert_eq!(shares, [1_001; 3]);
        }
    }
}

#[test]
fn with_a_warm_up() {
    on_each(|backend| {
        for load in ["-c 8 --warmup 300ms -d 700ms", "--rate 1k --warmup 300ms -d 700ms"] {
            let (result, _) = reconcile(backend, "", load);
            assert!(account(&result, "unmeasured") > 100, "{}", result["accounting"]);
        }
    });
}

#[test]
fn dropped_replies_time_out() {
    on_each(|backend| {
        for load in ["-n 1000 -c 16", "--rate 1k -d 1s"] {
            let (result, saw) = reconcile(backend, "--drop 3%", &format!("{load} --timeout 300ms"));
            let dropped = saw.truth.ended(&result, "dropped");
            assert!(dropped > 10, "{dropped} of some 1,000 at 3 %");
            assert_eq!(account(&result, "timed_out"), dropped);
            assert_eq!(count(&result, "/response_time/censored"), dropped);
            assert_eq!(saw.truth.ended(&result, "replied"), account(&result, "ok"));
        }
    });
}

#[test]
fn resets_and_statuses_are_classes_of_failures() {
    on_each(|backend| {
        for load in ["-n 2000 -c 16", "--rate 2k -d 1s"] {
            let faults = "--reset 3% --fail 7%:503 --fail 5%:404";
            let (result, saw) = reconcile(backend, faults, load);
            let reset = saw.truth.ended(&result, "reset");
            assert!(reset > 20, "{reset} of some 2,000 at 3 %");
            // What is reset on a kept connection is sent again.
            let resent = account(&result, "resent");
            assert!(resent > 10 && resent == account(&result, "resent_closed"), "{}", result["accounting"]);
            assert_eq!(errors(&result, "reset") + resent, reset, "{}", result["errors"]);
            for (status, class) in [("503", "status_5xx"), ("404", "status_4xx")] {
                let sent = saw.truth.ended(&result, &format!("status {status}"));
                assert!(sent > 40, "{sent} of some 2,000");
                assert_eq!(errors(&result, class), sent);
                assert_eq!(count(&result, &format!("/statuses/{status}")), sent);
            }
            assert_eq!(saw.truth.ended(&result, "replied"), account(&result, "ok"));
        }
    });
}

#[test]
fn connections_that_the_client_closes() {
    on_each(|backend| {
        let (result, saw) = reconcile(backend, "", "-n 500 -c 8 --disable-keepalive");
        assert_eq!(account(&result, "ok"), 500);
        assert_eq!(count(&result, "/connections/opened"), 500);
        assert_eq!(saw.connections, 501, "with the preflight's");
        let (result, saw) = reconcile(backend, "", "-n 500 -c 10 --max-requests-per-connection 5");
        assert_eq!(account(&result, "ok"), 500);
        // 100 if all are used up; each of the ten users may end within one.
        let opened = count(&result, "/connections/opened");
        assert!((100..110).contains(&opened), "{}", result["connections"]);
        assert_eq!(saw.connections, opened + 1);
    });
}

/// Requests that were handed to a connection which the server had closed by then. No client can tell whether
/// they were read: they are delivered, as far as it knows.
fn lost(result: &Value) -> u64 {
    let failed = errors(result, "closed_before_response") + errors(result, "reset");
    let sent_again = account(result, "resent");
    failed + sent_again + errors(result, "connect_refused") - account(result, "undelivered")
}

/// A server that closes without a word may find the next request on its way. Such requests are sent again,
/// and nothing else is amiss.
#[test]
fn connections_that_the_server_closes() {
    on_each(|backend| {
        for load in ["-n 2000 -c 8", "--rate 1k -d 1s"] {
            let (result, saw) = observe(backend, "--max-requests-per-connection 10", load);
            assert_eq!(saw.truth.ended(&result, "replied"), account(&result, "ok"));
            assert_eq!(saw.requests + lost(&result), delivered(&result), "{load}: {}", result["accounting"]);
            assert!(account(&result, "failed") <= account(&result, "resent") / 10, "{}", result["errors"]);
            assert!(count(&result, "/connections/opened") >= account(&result, "ok") / 10);
        }
    });
}

/// A server that ends may find the next requests on their way. Later ones are refused, and were not
/// delivered.
#[test]
fn a_server_that_ends() {
    on_each(|backend| {
        for load in ["-c 4 -d 2s", "--rate 500 -d 2s"] {
            let sink = Sink::start(&format!("-d 1s --delay constant:1ms --backend {backend}"));
            let result = run(&format!("{} {load} -o json --backend {backend}", sink.url())).result();
            assert_balance(&result);
            let saw = sink.wait();
            let refused = errors(&result, "connect_refused");
            assert!(refused > 0, "{}", result["errors"]);
            // Of one on each connection that there was the first attempt was delivered.
            let sent_before = count(&result, "/connections/opened");
            let undelivered = account(&result, "undelivered");
            assert!(undelivered + sent_before >= refused, "{}", result["accounting"]);
            assert!(saw.requests <= delivered(&result), "{}", result["accounting"]);
            // The sink reads and counts some of the last requests before it ends, without an answer to them.
            assert!(delivered(&result) <= saw.requests + lost(&result), "{}", result["accounting"]);
        }
    });
}

#[test]
fn a_drain_that_ends_too_early() {
    on_each(|backend| {
        let load = "--rate 500 -d 500ms --drain 0s";
        let (result, _) = reconcile(backend, "--delay constant:200ms", load);
        let waiting = account(&result, "in_flight_at_stop");
        // 500/s are on their way for 200 ms: Little's law.
        assert!((90..=110).contains(&waiting), "{}", result["accounting"]);
    });
}

#[test]
fn arrivals_that_find_no_connection_are_dropped_or_wait() {
    on_each(|backend| {
        let slow = "--delay constant:50ms";
        let (result, _) = reconcile(backend, slow, "--rate 500 -d 1s -c 5 --overload drop");
        assert!(account(&result, "dropped") > 300, "{}", result["accounting"]);
        let (result, _) = reconcile(backend, slow, "--rate 500 -d 1s -c 5 --overload queue");
        assert!(account(&result, "never_started") > 300, "{}", result["accounting"]);
        assert_eq!(account(&result, "scheduled"), 500);
        let reasons = result["verdict"]["invalid_reasons"].to_string();
        assert!(reasons.contains("rate_not_met") && reasons.contains("connection_limit"), "{reasons}");
    });
}
