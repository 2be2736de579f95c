//! Loads on a cache in a simulated world, against the servers' own log.

mod server;

use plimsoll_cache::PARTS;
use plimsoll_simulation::{CELLS, Shape, agreement, times};

use server::Cache;

const SHAPES: [Shape; 2] = [
    Shape {
        name: "put and get",
        target: "carbon://sim.test:80/c",
        steps: "{set: {v: 'of ${sequence}'}}, {cache: {put: 'k${sequence}', value: '${v}'}}, \
                {cache: {get: 'k${sequence}'}, expect: {body: [{equals: '${v}'}]}}",
        parts: PARTS,
        speaks: Cache::speaks,
        unlogged: 0,
    },
    Shape {
        name: "put, get and delete",
        target: "carbon://sim.test:80/c",
        steps: "{cache: {put: 'k${sequence}', value: v}}, {cache: {get: 'k${sequence}'}}, \
                {cache: {delete: 'k${sequence}'}}",
        parts: PARTS,
        speaks: Cache::speaks,
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
