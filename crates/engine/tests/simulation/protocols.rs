//! Protocols other than HTTP: the cache, and WebSockets in all their stages. Shapes × behaviours × loads,
//! against the servers' own log.

use plimsoll_core::Nanos;
use plimsoll_metrics::RunRecord;
use plimsoll_testkit::protocol::cache::Cache;
use plimsoll_testkit::protocol::websocket::WebSocket;
use plimsoll_testkit::{
    Action, Behaviour, Concurrency, Faults, Law, Pause, SimOptions, SlowAccept, Speaks, Truth, TruthLog,
};

use super::plans::of_text;
use super::{MS, carry_out, delivered, percentile, world};

/// A protocol, and the steps of an iteration in it.
struct Shape {
    name: &'static str,
    target: &'static str,
    steps: &'static str,
    speaks: fn() -> Speaks,
    /// Requests of an iteration that the server's log does not have: those that close a WebSocket.
    unlogged: u64,
}

const SHAPES: [Shape; 5] = [
    Shape {
        name: "put and get",
        target: "carbon://sim.test:80/c",
        steps: "{set: {v: 'of ${sequence}'}}, {cache: {put: 'k${sequence}', value: '${v}'}}, \
                {cache: {get: 'k${sequence}'}, expect: {body: [{equals: '${v}'}]}}",
        speaks: Cache::speaks,
        unlogged: 0,
    },
    Shape {
        name: "put, get and delete",
        target: "carbon://sim.test:80/c",
        steps: "{cache: {put: 'k${sequence}', value: v}}, {cache: {get: 'k${sequence}'}}, \
                {cache: {delete: 'k${sequence}'}}",
        speaks: Cache::speaks,
        unlogged: 0,
    },
    Shape {
        name: "a message",
        target: "ws://sim.test",
        steps: "{set: {m: 'm${sequence}'}}, {name: open, websocket: {open: /}}, \
                {name: message, websocket: {send: '${m}', receive: {body: '${m}'}}}, \
                {name: close, websocket: {close: '1000'}}",
        speaks: || WebSocket::default().speaks(),
        unlogged: 1,
    },
    Shape {
        name: "messages that are greeted and asked for signs of life",
        target: "ws://sim.test",
        steps: "{set: {m: 'm${sequence}'}}, {name: open, websocket: {open: /}}, \
                {repeat: 4, steps: [{name: message, websocket: {send: '${m}', receive: {body: '${m}'}}}]}, \
                {name: close, websocket: {close: '1000'}}",
        speaks: || {
            let at = |n: u64| Nanos::from_micros(700 * n);
            let greetings = (1..4).map(|n| (at(n), b"news".to_vec())).collect();
            WebSocket { greetings, pings: (1..4).map(at).collect(), ..WebSocket::default() }.speaks()
        },
        unlogged: 1,
    },
    Shape {
        name: "messages of a connection that is not closed",
        target: "ws://sim.test",
        steps: "{name: open, websocket: {open: /}}, \
                {repeat: 2, steps: [{name: message, websocket: {send: 'm${sequence}', receive: {any: true}}}]}",
        speaks: || WebSocket::default().speaks(),
        unlogged: 0,
    },
];

const LOADS: [&str; 8] = [
    "rate: 50, duration: 1s",
    "rate: 50, duration: 1s, arrival: poisson, pacing: shared",
    "rate: 150, rate_of: requests, duration: 1s",
    "stages: '500ms@20,500ms@80'",
    "rate: 50, warmup: 500ms, duration: 1s",
    "connections: 4, duration: 500ms",
    "connections: 4, iterations: 60, threads: 2",
    "rate: 50, duration: 1s, overload: drop, connections: 12",
];

fn of(service: Law) -> Behaviour {
    Behaviour { service, ..Behaviour::default() }
}

fn failing(faults: Faults) -> Behaviour {
    Behaviour { faults, ..of(Law::Constant(MS)) }
}

/// Behaviours, each with the share of its requests that may end badly.
fn behaviours() -> Vec<(&'static str, Behaviour, f64)> {
    let none = Faults::default;
    let stands_still = |at: u64, length: Nanos| Behaviour {
        pauses: vec![Pause { at: Nanos::from_secs(1_000) + Nanos::from_millis(at), length }],
        ..of(Law::Constant(MS))
    };
    vec![
        ("constant", of(Law::Constant(MS)), 0.0),
        ("exponential", of(Law::Exponential { mean: MS * 2 }), 0.0),
        (
            "a queue",
            Behaviour { concurrency: Concurrency::SingleQueue, ..of(Law::Exponential { mean: MS }) },
            0.0,
        ),
        ("refusals", failing(Faults { statuses: vec![(503, 0.2)], ..none() }), 0.9),
        ("silence", failing(Faults { drop_reply: 0.1, ..none() }), 0.9),
        ("resets", failing(Faults { reset: 0.1, ..none() }), 0.9),
        ("closes", failing(Faults { close_before_reply: 0.1, ..none() }), 0.9),
        ("cut answers", failing(Faults { truncated_body: 0.1, ..none() }), 0.9),
        ("answers twice", failing(Faults { excess_body: 0.1, ..none() }), 0.9),
        ("garbage", failing(Faults { garbage: 0.1, ..none() }), 0.9),
        ("a close after each fifth answer", failing(Faults { close_after: Some(5), ..none() }), 0.9),
        ("refused connections", failing(Faults { refuse_connect: 0.2, ..none() }), 0.9),
        ("silent connections", failing(Faults { silent_connect: 0.1, ..none() }), 0.9),
        (
            "late accepts",
            failing(Faults { slow_accept: Some(SlowAccept { probability: 0.3, delay: MS * 20 }), ..none() }),
            0.0,
        ),
        ("a freeze", stands_still(300, MS * 100), 0.0),
        ("frozen for good", stands_still(300, Nanos::from_secs(3_600)), 1.0),
    ]
}

fn run_of(shape: &Shape, load: &str, options: SimOptions) -> (RunRecord, TruthLog) {
    let text = format!(
        "run: {{{load}, timeout: 200ms, connect_timeout: 200ms}}\ntargets: {{api: '{}'}}\n\
         scenarios: [{{steps: [{}]}}]",
        shape.target, shape.steps
    );
    carry_out(&of_text(text), options)
}

/// What differs between a record and the servers' log.
fn compare(shape: &Shape, share: f64, record: &RunRecord, truth: &TruthLog) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let entries = truth.entries();
    let closes: u64 = match shape.unlogged {
        0 => 0,
        _ => record.steps.last().map_or(0, |step| step.ok + step.failed + step.timed_out),
    };
    let (sent, logged) = (delivered(record), entries.len() as u64);
    let accounting = &record.accounting;
    // Requests whose connection had ended, or ended meanwhile, may have been read by nobody. What became of
    // those of the warm-up is not told.
    let lost =
        accounting.failed + accounting.timed_out + accounting.in_flight_at_stop + accounting.resent_closed;
    let unknown = if share > 0.0 || shape.unlogged > 0 { accounting.unmeasured } else { 0 };
    check(logged <= sent, format!("{sent} were sent, the server has {logged}"));
    check(
        logged + closes + lost + unknown >= sent,
        format!("{sent} were sent, of which {closes} are closes, the server has {logged}"),
    );
    // A second answer to a message may be that to the next one, which has the same text; where any message
    // is an answer, a refusal is one, too.
    let answers = |entry: &Truth| match entry.action {
        Action::Reply(200) => 1,
        Action::Excess => 2,
        Action::Reply(_) if shape.steps.contains("any") => 1,
        _ => 0,
    };
    let replied = entries.iter().filter(|entry| entry.replied.is_some());
    let (answered, ok) = (replied.map(answers).sum::<u64>(), accounting.ok.saturating_sub(closes));
    check(ok <= answered, format!("{ok} are ok, the server has answered {answered}"));
    let bad = accounting.failed + accounting.timed_out;
    check(
        bad as f64 <= share * accounting.started as f64,
        format!("{bad} of {} ended badly: {:?}", accounting.started, record.error_examples),
    );
    check(share == 1.0 || accounting.ok > 20, format!("only {} are ok", accounting.ok));
    let ends = accounting.ok + bad + accounting.in_flight_at_stop;
    check(ends == accounting.started, format!("{ends} of {} have an end", accounting.started));
    wrong
}

#[test]
fn every_shape_agrees_with_its_servers_whatever_they_do() {
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for shape in &SHAPES {
        for (name, behaviour, share) in behaviours() {
            for load in LOADS {
                for (coalesce, segment_bytes, partial_write) in [(true, usize::MAX, 0.0), (false, 1, 0.3)] {
                    let behaviour = Behaviour { speaks: Some((shape.speaks)()), ..behaviour.clone() };
                    let options = SimOptions { coalesce, segment_bytes, partial_write, ..world(behaviour) };
                    let (record, truth) = run_of(shape, load, options);
                    cells += 1;
                    let found = compare(shape, share, &record, &truth);
                    let cell = format!("{}, {name}, {load}, {segment_bytes}", shape.name);
                    wrong.extend(found.into_iter().map(|what| format!("{cell}: {what}")));
                }
            }
        }
    }
    assert_eq!(cells, 5 * 16 * 8 * 2);
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}

/// One way through the network, and the time that the servers of these tests take.
const SERVICE: Nanos = MS;

#[test]
fn times_are_those_of_the_server_and_the_network() {
    for shape in &SHAPES {
        for load in LOADS {
            let behaviour = Behaviour { speaks: Some((shape.speaks)()), ..of(Law::Constant(SERVICE)) };
            let (record, _) = run_of(shape, load, world(behaviour));
            let step = record.steps.iter().find(|step| step.ok > 0 && step.service_time.count() > 0);
            let step = step.expect("a step has answers");
            let truth = SERVICE + Nanos::from_micros(100);
            let cell = format!("{}, {load}", shape.name);
            for p in [50.0, 99.0] {
                let shown = Nanos(step.service_time.percentile(p).expect("there are answers"));
                let most = truth + Nanos::from_micros(20) + Nanos(truth.0 / 100);
                assert!((truth..most).contains(&shown), "{cell}: p{p} is {shown:?}");
            }
            // In the open model a request of the first step counts from its arrival; it waits for the
            // connection of its WebSocket.
            let connect = if shape.target.starts_with("ws") { Nanos::from_micros(100) } else { Nanos::ZERO };
            let response = Nanos(step.response_time.percentile(50.0).expect("there are answers"));
            let most = truth + connect + Nanos::from_micros(120);
            assert!(response < most, "{cell}: {response:?}");
            assert!(percentile(&record, 50.0) < most, "{cell}");
        }
    }
}

/// A server that ends the WebSocket while an iteration thinks.
#[test]
fn a_websocket_that_its_server_closes_ends_its_iteration() {
    let shape = Shape {
        name: "closed by the server",
        target: "ws://sim.test",
        steps: "{name: open, websocket: {open: /}, think: 20ms}, \
                {name: message, websocket: {send: a, receive: {any: true}}}",
        speaks: || WebSocket { leaves: Some(MS * 10), ..WebSocket::default() }.speaks(),
        unlogged: 0,
    };
    for load in ["rate: 50, duration: 1s", "connections: 4, duration: 1s"] {
        let behaviour = Behaviour { speaks: Some((shape.speaks)()), ..of(Law::Constant(MS)) };
        let (record, truth) = run_of(&shape, load, world(behaviour));
        assert!(record.steps[0].ok > 40, "{load}: {:?}", record.accounting);
        assert_eq!(record.steps[1].ok, 0, "{load}");
        assert_eq!(truth.len() as u64, record.steps[0].ok, "{load}");
    }
}

/// Copies of an answer are answers that nobody asked for.
#[test]
fn answers_that_nobody_asked_for_are_never_ok_twice() {
    let shape = Shape { speaks: || WebSocket { more: 1, ..WebSocket::default() }.speaks(), ..SHAPES[2] };
    for load in LOADS {
        let behaviour = Behaviour { speaks: Some((shape.speaks)()), ..of(Law::Constant(MS)) };
        let (record, truth) = run_of(&shape, load, world(behaviour));
        let closes = record.steps[2].ok;
        assert!(record.accounting.ok - closes <= truth.len() as u64, "{load}: {:?}", record.accounting);
    }
}
