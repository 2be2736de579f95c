//! Requests that their server has not processed are sent again: once, with their intended time and their time
//! limit, and in an account of their own.

use plimsoll_core::ErrorClass;
use plimsoll_testkit::{Action, Answer, Faults, Law, Truth};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// A way in which a server loses requests that it does not process.
struct Shape {
    name: &'static str,
    flags: Flags,
    faults: fn() -> Faults,
    /// `true` if requests of HTTP/1.1 are lost, which a server may have seen.
    closed: bool,
    /// The class of the failures without `--no-resend`.
    classes: &'static [ErrorClass],
}

/// Closes connections after so many replies, and soon after them.
fn closing(after: u64, announced: bool) -> Faults {
    Faults {
        close_after: Some(after),
        announce_close: announced,
        close_delay: Nanos::from_micros(300),
        ..Faults::default()
    }
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "closed in silence",
        flags: &[],
        faults: || closing(5, false),
        closed: true,
        classes: &[ErrorClass::Reset, ErrorClass::ClosedBeforeResponse],
    },
    Shape {
        name: "pipelined, closed in silence",
        flags: &[("--pipeline", "4")],
        faults: || closing(50, false),
        closed: true,
        classes: &[ErrorClass::Reset, ErrorClass::ClosedBeforeResponse],
    },
    Shape {
        name: "pipelined, close announced",
        flags: &[("--pipeline", "4")],
        faults: || closing(50, true),
        closed: true,
        classes: &[ErrorClass::ClosedBeforeResponse],
    },
    Shape {
        name: "GOAWAY",
        flags: &[("--http2", ""), ("-m", "8")],
        faults: || closing(40, true),
        closed: false,
        classes: &[ErrorClass::GoAway],
    },
];

/// Loads that keep connections busy, so that requests cross the end of theirs.
const MODES: &[(&str, Flags)] = &[
    ("counted", &[("-n", "2000"), ("-c", "4")]),
    ("timed", &[("-d", "500ms"), ("-c", "4")]),
    ("two workers", &[("-n", "2000"), ("-c", "4"), ("-t", "2")]),
    ("warm-up", &[("-d", "500ms"), ("-c", "4"), ("--warmup", "200ms")]),
    ("no drain", &[("-d", "500ms"), ("-c", "4"), ("--drain", "0s")]),
    ("uniform", &[("--rate", "3000"), ("-d", "500ms"), ("-c", "4")]),
    ("poisson", &[("--rate", "3000"), ("-d", "500ms"), ("-c", "4"), ("--arrival", "poisson")]),
    ("growing", &[("--rate", "3000"), ("-d", "500ms"), ("--arrival", "poisson")]),
    ("dropping", &[("--rate", "5000"), ("-d", "500ms"), ("-c", "4"), ("--overload", "drop")]),
    ("users", &[("--users", "12"), ("-d", "500ms")]),
    ("paced connections", &[("-d", "500ms"), ("-c", "4"), ("--connection-rate", "2000")]),
];

fn losing(faults: Faults) -> Behaviour {
    Behaviour { service: Law::Constant(MS), faults, ..Behaviour::default() }
}

#[test]
fn what_a_server_has_not_processed_is_sent_again() {
    let mut wrong = Vec::new();
    for shape in SHAPES {
        for (mode, flags) in MODES {
            for post in [false, true] {
                let mut flags: Vec<_> = shape.flags.iter().chain(*flags).copied().collect();
                if post {
                    flags.extend([("-X", "POST"), ("-b", "some words")]);
                }
                let name = format!("{}, {mode}: {flags:?}", shape.name);
                let (record, truth) = carry_out(&plan(&flags), world(losing((shape.faults)())));
                let a = record.accounting;
                // A server that has closed its connection in silence may have processed a request before.
                let repeats = !post || shape.classes.len() == 1;
                let lost: u64 = shape.classes.iter().map(|class| record.total.errors[*class]).sum();
                let lost_in_sight = if repeats { a.resent } else { lost };
                let counted = a.resent_closed == if shape.closed { a.resent } else { 0 };
                // Every answer is that of one request: nothing is recorded twice.
                let answered = truth.entries().iter().filter(|entry| entry.replied.is_some()).count() as u64;
                let answers = a.ok..=a.ok + a.unmeasured + a.in_flight_at_stop;
                if lost_in_sight == 0
                    || lost != a.failed
                    // What is lost for the second time has failed.
                    || repeats && a.failed * 20 > a.resent
                    || !repeats && a.resent > 0
                    || a.timed_out + a.undelivered > 0
                    || !counted
                    || !answers.contains(&answered)
                    || truth.len() as u64 > delivered(&record)
                {
                    wrong.push(format!("{name}: {a:?}, {lost} lost, {answered} answered"));
                }

                flags.push(("--no-resend", ""));
                let (record, _) = carry_out(&plan(&flags), world(losing((shape.faults)())));
                let a = record.accounting;
                let lost: u64 = shape.classes.iter().map(|class| record.total.errors[*class]).sum();
                if a.resent + a.resent_closed > 0 || lost == 0 || lost != a.failed {
                    wrong.push(format!("{name}, not sent again: {a:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Each refusal is provable, however often it comes; but a request is sent twice at most.
#[test]
fn a_request_is_sent_again_once() {
    let refusing = losing(Faults { refuse_stream: 1.0, ..Faults::default() });
    let flags = [("--http2", ""), ("-n", "100"), ("-c", "2"), ("-m", "4"), ("-X", "POST")];
    let (record, truth) = simulate(&plan(&flags), world(refusing));
    let a = record.accounting;
    assert_eq!((a.ok, a.failed, a.resent, a.resent_closed), (0, 100, 100, 0), "{a:?}");
    assert_eq!(record.total.errors[ErrorClass::StreamRefused], 100);
    assert_eq!(truth.count(|action| action == Action::Refuse), 200);
}

/// A server that closes every connection before its first answer has not closed an idle one.
#[test]
fn a_connection_that_never_answered_is_no_reason_to_send_again() {
    for faults in
        [Faults { close_before_reply: 1.0, ..Faults::default() }, Faults { reset: 1.0, ..Faults::default() }]
    {
        for pipeline in ["1", "4"] {
            let flags = [("-n", "100"), ("-c", "4"), ("--pipeline", pipeline)];
            let (record, _) = carry_out(&plan(&flags), world(losing(faults.clone())));
            let a = record.accounting;
            assert_eq!((a.ok, a.failed, a.resent), (0, 100, 0), "{pipeline}: {a:?}");
        }
    }
}

/// The wait for the answer began with the first attempt: for the response time, and for the time limit.
#[test]
fn the_times_of_a_request_that_is_sent_again_go_on() {
    let service = Nanos::from_millis(50);
    let lost_for = Nanos::from_millis(30);
    let closed = [("-c", "4"), ("-d", "10s")];
    let open = [("--rate", "100"), ("-d", "10s"), ("-c", "7")];
    // An arrival may find a connection that is about to be closed, and wait for less.
    for (load, every) in [(&closed[..], true), (&open, false)] {
        for (timeout, in_time) in [("200ms", true), ("70ms", false)] {
            let faults = Faults { close_after: Some(4), close_delay: lost_for, ..Faults::default() };
            let behaviour = Behaviour { service: Law::Constant(service), faults, ..Behaviour::default() };
            let flags = [load, &[("--timeout", timeout)]].concat();
            let (record, _) = carry_out(&plan(&flags), world(behaviour));
            let a = record.accounting;
            assert!(a.resent > 20 && a.failed == 0, "{flags:?}: {a:?}");
            let took_longer = |time: u64| time > service.0 + lost_for.0 / 2;
            let buckets = record.total.response_time.buckets();
            let longer: u64 = buckets.filter(|b| took_longer(b.highest)).map(|bucket| bucket.count).sum();
            let (slow, fast) = if in_time { (longer, a.timed_out) } else { (a.timed_out, 0) };
            let least = if every { a.resent } else { 20 };
            assert!((least..=a.resent).contains(&slow) && fast == 0, "{flags:?}: {slow} of {a:?}");
            assert_eq!(record.total.censored_response.count, a.timed_out, "{flags:?}");
        }
    }
}

/// Streams that one connection gives back share the connection that takes its place.
#[test]
fn streams_that_are_sent_again_do_not_have_a_connection_each() {
    let flags = [("--http2", ""), ("-m", "100"), ("--rate", "20000"), ("-d", "500ms")];
    // Those of a round trip are under way when the last answer comes.
    let far = SimOptions { latency: Nanos::from_millis(2), ..world(losing(closing(400, true))) };
    let (record, _) = carry_out(&plan(&flags), far);
    let (a, connections) = (record.accounting, &record.connections);
    let ended: u64 = connections.http2.go_aways.values().sum();
    assert!(a.resent > 10 * ended && ended > 15, "{ended}: {a:?}");
    assert!(connections.opened < 3 * ended, "{} for {ended}", connections.opened);
}

#[test]
fn over_http1_only_idempotent_methods_are_repeated() {
    let methods = [
        ("GET", true),
        ("HEAD", true),
        ("OPTIONS", true),
        ("PUT", true),
        ("DELETE", true),
        ("POST", false),
        ("PATCH", false),
        ("PURGE", false),
    ];
    for (method, repeats) in methods {
        let flags = [("-n", "400"), ("-c", "2"), ("-X", method)];
        let (record, _) = carry_out(&plan(&flags), world(losing(closing(5, false))));
        let a = record.accounting;
        assert_eq!((a.resent > 0, a.failed > 0), (repeats, !repeats), "{method}: {a:?}");
    }
}

#[test]
fn iterations_go_on_over_requests_that_are_sent_again() {
    let text = "scenarios:
- steps:
  - {get: /items, expect: {status: 201}, extract: {item: {header: location, as_path: true}}}
  - {put: '${item}', body: some words, expect: {status: 201}}
";
    let headers = vec![("Location".to_owned(), "/items/7".to_owned())];
    let answer = Answer { status: 201, headers, ..Answer::default() };
    for (protocol, faults) in [("http1: true", closing(7, false)), ("http2: true", closing(30, true))] {
        for load in ["iterations: 300, connections: 4", "rate: 600, duration: 500ms, connections: 4"] {
            let streams = if protocol.starts_with("http2") { ", max_concurrent_streams: 8" } else { "" };
            let settings = format!("{load}, {protocol}{streams}");
            let behaviour = Behaviour { answer: answer.clone(), ..losing(faults.clone()) };
            let options = SimOptions { keep_requests: true, ..world(behaviour) };
            let (record, truth) = carry_out(&plans::plan(&settings, text), options);
            let (a, i) = (record.accounting, record.iterations);
            assert_eq!((i.completed, i.failed, i.unfinished), (300, 0, 0), "{settings}: {a:?}");
            assert!(a.resent > 10, "{settings}: {a:?}");
            let answered = |line: &str| {
                let is_one = |truth: &&Truth| truth.request.starts_with(line.as_bytes());
                truth.entries().iter().filter(|truth| truth.replied.is_some()).filter(is_one).count()
            };
            assert_eq!((answered("GET /items "), answered("PUT /items/7 ")), (300, 300), "{settings}");
        }
    }
}
