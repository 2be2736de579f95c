//! Loads on a server in a simulated world, against its own log.

use plimsoll_redis::PARTS;
use plimsoll_simulation::{CELLS, LOADS, Shape, agreement, of, run_of, times};
use plimsoll_testkit::Law;

use super::server::Redis;

const URL: &str = "redis://sim.test:80";

const SHAPES: [Shape; 3] = [
    Shape {
        name: "set and get",
        target: URL,
        steps: "{set: {v: 'of ${sequence}'}}, {redis: [SET, 'k${sequence}', '${v}']}, \
                {redis: 'GET k${sequence}', expect: {body: [{equals: '${v}'}]}}",
        parts: PARTS,
        speaks: Redis::speaks,
        unlogged: 0,
    },
    Shape {
        name: "counters and what is not there",
        target: URL,
        steps: "{redis: 'INCR c${sequence}', expect: {body: '1'}}, {redis: 'DEL c${sequence}', expect: {body: '1'}}, \
                {redis: 'GET c${sequence}', expect: {status: 404}}",
        parts: PARTS,
        speaks: Redis::speaks,
        unlogged: 0,
    },
    Shape {
        name: "with a password",
        target: "redis://:pw@sim.test:80",
        steps: "{redis: SET k v}, {redis: GET k, expect: {body: v}}",
        parts: PARTS,
        speaks: Redis::wants_password,
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
    times(&SHAPES[..2]);
}

/// A connection whose password is wrong is never used.
#[test]
fn a_wrong_password_is_a_refused_connection() {
    let shape = Shape { target: "redis://:no@sim.test:80", ..SHAPES[2] };
    for load in LOADS {
        let (record, truth) = run_of(&shape, load, of(Law::Constant(plimsoll_core::Nanos::from_millis(1))));
        assert_eq!((record.accounting.ok, truth.len()), (0, 0), "{load}");
        let said = record.error_examples.values().any(|said| said.contains("WRONGPASS"));
        assert!(said, "{load}: {:?}", record.error_examples);
    }
}
