//! The first contact with a target: it changes nothing there, and one slow path is not a reason to refuse.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_engine::{Backends, Control, FirstContact, RunError, TargetAddress, preflight};
use plimsoll_plan::Plan;
use plimsoll_testkit::{Answer, Behaviour, Faults, Law, SimOpen, SimOptions, TruthLog};

use super::plans::{answering, good, plan};
use super::{server, world};

/// Carries out the first contact. Returns its result, and the requests that the server saw.
fn contact(plan: &Plan, behaviour: Behaviour) -> (Result<Vec<FirstContact>, RunError>, TruthLog) {
    let open = SimOpen::new(SimOptions { keep_requests: true, ..world(behaviour) });
    let target_addresses: Arc<[TargetAddress]> = vec![server().into()].into();
    let found = preflight(plan, &Backends::of(open.clone()), &mut [target_addresses], &Control::default());
    (found, open.truth())
}

fn scenarios(steps: &str) -> String {
    let data = if steps.contains("${n}") { "data: {n: {range: [0, 7], at_end: stop}}\n" } else { "" };
    format!("{data}scenarios: [{{cookies: true, steps: [{steps}]}}]")
}

#[test]
fn what_may_change_something_or_is_not_known_yet_is_not_sent() {
    for protocol in ["", ", http2: true"] {
        for steps in [
            "{post: /items, body: x}",
            "{put: \"/${n}\", body: \"${n}\"}, {delete: /a}",
            "{get: \"/items/${n}\"}",
            "{post: /login}, {get: \"/account\"}",
        ] {
            let plan = plan(&format!("connections: 1, iterations: 3{protocol}"), &scenarios(steps));
            let (found, truth) = contact(&plan, good());
            let found = found.unwrap_or_else(|error| panic!("{steps}: {error}"));
            let record = found[0].record().expect("it was connected to");
            assert_eq!((found[0].step, found[0].status(), truth.len()), (None, None, 0), "{steps}");
            assert_eq!((record.connections.opened, record.accounting.started), (1, 0), "{steps}");
            assert_eq!(record.peers[0].protocol, if protocol.is_empty() { "http/1.1" } else { "h2" });
            assert_eq!(found[0].note(&plan), None);
        }
    }
}

/// Symptom: "the first response has status 404 (get)" before every load of a cache, whose GET asks for the
/// value of the PUT before it.
#[test]
fn what_reads_what_was_written_before_it_is_not_sent() {
    let steps = "scenarios: [{steps: [{put: /items/1, body: x}, {get: /items/1}]}]";
    let (found, truth) = contact(&plan("iterations: 3", steps), good());
    assert_eq!((found.expect("a connection")[0].step, truth.len()), (None, 0));
    // Another scenario may have one that can be sent.
    let other = format!("{}, {{steps: [{{get: /health}}]}}]", &steps[..steps.len() - 1]);
    let (found, truth) = contact(&plan("iterations: 3", &other), good());
    assert_eq!((found.expect("an answer")[0].step, truth.len()), (Some(2), 1));
}

#[test]
fn the_first_safe_request_is_sent_as_the_run_sends_it() {
    let plan = plan("iterations: 3", &scenarios("{get: \"/a?n=${sequence}\"}, {post: /b}"));
    let (found, truth) = contact(&plan, good());
    let found = found.expect("an answer");
    assert_eq!((found[0].step, found[0].status()), (Some(0), Some(200)));
    assert_eq!(truth.len(), 1);
    assert!(truth.entries().iter().all(|request| request.request.starts_with(b"GET /a?n=0 HTTP/1.1")));
}

/// Symptom: a server that redirects every request was "100 ok", and nothing said that nobody went there.
#[test]
fn a_redirect_that_nobody_follows_is_told() {
    let moved = || answering(Answer { status: 302, ..Answer::with_body("") });
    for (run, step, told) in [
        ("iterations: 3", "{get: /a}", true),
        ("iterations: 3, follow_redirects: 3", "{get: /a}", false),
        ("iterations: 3", "{get: /a, expect: {status: 302}}", false),
        ("iterations: 3", "{get: /a, extract: {there: {header: location}}}", false),
    ] {
        let plan = plan(run, &format!("scenarios: [{{steps: [{step}]}}]"));
        let (found, _) = contact(&plan, moved());
        let note = found.expect("an answer")[0].note(&plan).unwrap_or_default();
        assert_eq!(note.contains("--follow-redirects follows them"), told, "{run} {step}: {note}");
    }
}

#[test]
fn a_status_that_is_not_expected_is_told() {
    let refusing = || answering(Answer { status: 401, ..Answer::with_body("who are you?\nsay it") });
    let asks = plan("iterations: 3", "scenarios: [{steps: [{get: /a}]}]");
    let (found, _) = contact(&asks, refusing());
    let note = found.expect("an answer")[0].note(&asks).expect("a note");
    assert_eq!(note, "the first response has status 401 (GET /a): who are you?");
    let expects = plan("iterations: 3", "scenarios: [{steps: [{get: /a, expect: {status: 401}}]}]");
    let (found, _) = contact(&expects, refusing());
    assert_eq!(found.expect("an answer")[0].note(&expects), None);
}

#[test]
fn plain_http_where_tls_is_spoken_is_named() {
    for body in [
        "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>",
        "Client sent an HTTP request to an HTTPS server.\n",
        "<html><head>\n<title>400 Bad Request</title>\n</head><body>\n<h1>Bad Request</h1>\n<p>Your browser sent \
         a request that this server could not understand.<br />\nReason: You're speaking plain HTTP to an \
         SSL-enabled server port.<br />\n</p>",
    ] {
        let tls = answering(Answer { status: 400, ..Answer::with_body(body) });
        let (found, _) = contact(&plan("iterations: 3", "scenarios: [{steps: [{get: /a}]}]"), tls);
        let error = found.expect_err("it speaks TLS");
        assert_eq!(error.hint(), Some("this port speaks TLS: use https://sim.test"), "{error}");
    }
}

/// Symptom: the first contact took 6 s with a timeout of 2 s, and 34 s with the usual one.
#[test]
fn a_server_that_hangs_is_refused_in_little_more_than_the_timeout() {
    let faults = Faults { drop_reply: 1.0, ..Faults::default() };
    let hangs = Behaviour { faults, ..good() };
    let steps = "scenarios: [{steps: [{get: /a}]}]";
    let (found, truth) = contact(&plan("iterations: 3, timeout: 1s", steps), hangs.clone());
    let error = found.expect_err("no response");
    assert!(error.to_string().contains("no response within 1s"), "{error}");
    assert_eq!(truth.len(), 3);
    // Where the plan gives it more time, or asks for more, the run shows whether it answers.
    for (settings, steps) in [
        ("iterations: 3", steps),
        ("iterations: 3, timeout: 1s", "scenarios: [{steps: [{get: /a}, {post: /b}]}]"),
    ] {
        let plan = plan(settings, steps);
        let (found, _) = contact(&plan, hangs.clone());
        let found = found.expect("the run may begin");
        let spent: Nanos = found[0].records.iter().fold(Nanos::ZERO, |sum, record| sum + record.duration);
        assert!(spent <= Nanos::from_millis(2_600), "{settings}: {spent:?}");
        let note = found[0].note(&plan).expect("a note");
        assert!(note.starts_with("no response to the first request (GET /a) within"), "{note}");
    }
}

#[test]
fn a_reply_that_is_lost_is_no_reason_to_give_up() {
    let faults = Faults { drop_reply: 0.3, close_before_reply: 0.1, ..Faults::default() };
    let behaviour = Behaviour { faults, service: Law::Constant(Nanos::from_millis(1)), ..good() };
    let plan = plan("iterations: 3, timeout: 1s", "scenarios: [{steps: [{get: /a}]}]");
    let refused = (0..50).filter(|seed| {
        let options = SimOptions { seed: *seed, ..world(behaviour.clone()) };
        let target_addresses: Arc<[TargetAddress]> = vec![server().into()].into();
        preflight(&plan, &Backends::of(SimOpen::new(options)), &mut [target_addresses], &Control::default())
            .is_err()
    });
    // 0.4 to the third power are 6 %.
    assert!(refused.count() <= 8);
}
