//! WebSockets in all their stages, against the servers' own log.

use plimsoll_core::Nanos;
use plimsoll_plan::PlanParts;
use plimsoll_simulation::{CELLS, LOADS, Shape, agreement, of, run_of, times};
use plimsoll_testkit::Law;
use plimsoll_testkit::protocol::websocket::WebSocket;

use super::MS;

const SHAPES: [Shape; 3] = [
    Shape {
        name: "a message",
        target: "ws://sim.test",
        steps: "{set: {m: 'm${sequence}'}}, {name: open, websocket: {open: /}}, \
                {name: message, websocket: {send: '${m}', receive: {body: '${m}'}}}, \
                {name: close, websocket: {close: '1000'}}",
        parts: PlanParts::NONE,
        speaks: || WebSocket::default().speaks(),
        unlogged: 1,
    },
    Shape {
        name: "messages that are greeted and asked for signs of life",
        target: "ws://sim.test",
        steps: "{set: {m: 'm${sequence}'}}, {name: open, websocket: {open: /}}, \
                {repeat: 4, steps: [{name: message, websocket: {send: '${m}', receive: {body: '${m}'}}}]}, \
                {name: close, websocket: {close: '1000'}}",
        parts: PlanParts::NONE,
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
        parts: PlanParts::NONE,
        speaks: || WebSocket::default().speaks(),
        unlogged: 0,
    },
];

#[test]
fn every_shape_agrees_with_its_servers_whatever_they_do() {
    let (cells, wrong) = agreement(&SHAPES);
    assert_eq!(cells, SHAPES.len() * CELLS);
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn times_are_those_of_the_server_and_the_network() {
    times(&SHAPES);
}

/// A server that ends the WebSocket while an iteration thinks.
#[test]
fn a_websocket_that_its_server_closes_ends_its_iteration() {
    let shape = Shape {
        name: "closed by the server",
        target: "ws://sim.test",
        steps: "{name: open, websocket: {open: /}, think: 20ms}, \
                {name: message, websocket: {send: a, receive: {any: true}}}",
        parts: PlanParts::NONE,
        speaks: || WebSocket { leaves: Some(MS * 10), ..WebSocket::default() }.speaks(),
        unlogged: 0,
    };
    for load in ["rate: 50, duration: 1s", "connections: 4, duration: 1s"] {
        let (record, truth) = run_of(&shape, load, of(Law::Constant(MS)));
        assert!(record.steps[0].ok > 40, "{load}: {:?}", record.accounting);
        assert_eq!(record.steps[1].ok, 0, "{load}");
        assert_eq!(truth.len() as u64, record.steps[0].ok, "{load}");
    }
}

/// Copies of an answer are answers that nobody asked for.
#[test]
fn answers_that_nobody_asked_for_are_never_ok_twice() {
    let shape = Shape { speaks: || WebSocket { more: 1, ..WebSocket::default() }.speaks(), ..SHAPES[0] };
    for load in LOADS {
        let (record, truth) = run_of(&shape, load, of(Law::Constant(MS)));
        let closes = record.steps[2].ok;
        assert!(record.accounting.ok - closes <= truth.len() as u64, "{load}: {:?}", record.accounting);
    }
}
