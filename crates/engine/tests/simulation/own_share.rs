//! Our own share in each time, over a table of connections, pacings, rates and worlds: what is measured is
//! what the server and the network took, whatever the generator waited for meanwhile.

use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;
use plimsoll_testkit::{Answer, Behaviour, Framing, Law, SimOptions};

use super::*;

/// One way.
const LATENCY: Nanos = Nanos::from_micros(100);
const SERVICE: Nanos = Nanos::from_millis(1);
/// Most of a time that may be ours, beside [`SHARE`] of it.
const OURS: Nanos = Nanos::from_micros(100);
const SHARE: f64 = 0.05;

type Flags = &'static [(&'static str, &'static str)];

/// A way of using connections.
struct Shape {
    name: &'static str,
    flags: Flags,
    behaviour: fn() -> Behaviour,
    /// `true` if each request has a connection of its own.
    connects: bool,
    /// One way through the network for each request beside those of HTTP/1.1: of settings, or of an end.
    ways: u64,
}

fn plain() -> Behaviour {
    Behaviour { service: Law::Constant(SERVICE), ..Behaviour::default() }
}

fn closing(announced: bool) -> Behaviour {
    let mut behaviour = plain();
    (behaviour.faults.close_after, behaviour.faults.announce_close) = (Some(1), announced);
    behaviour
}

fn until_close() -> Behaviour {
    Behaviour { answer: Answer { framing: Framing::UntilClose, ..Answer::with_body("body") }, ..plain() }
}

fn chunked() -> Behaviour {
    Behaviour { answer: Answer { framing: Framing::Chunked(2), ..Answer::with_body("body") }, ..plain() }
}

const SHAPES: &[Shape] = &[
    Shape { name: "kept", flags: &[], behaviour: plain, connects: false, ways: 0 },
    Shape { name: "chunked", flags: &[], behaviour: chunked, connects: false, ways: 0 },
    Shape {
        name: "not kept by the client",
        flags: &[("--disable-keepalive", "")],
        behaviour: plain,
        connects: true,
        ways: 0,
    },
    Shape {
        name: "one request a connection",
        flags: &[("--max-requests-per-connection", "1")],
        behaviour: plain,
        connects: true,
        ways: 0,
    },
    Shape { name: "close announced", flags: &[], behaviour: || closing(true), connects: true, ways: 0 },
    Shape { name: "closed in silence", flags: &[], behaviour: || closing(false), connects: true, ways: 0 },
    Shape { name: "until close", flags: &[], behaviour: until_close, connects: true, ways: 0 },
    Shape { name: "pipelined", flags: &[("--pipeline", "4")], behaviour: plain, connects: false, ways: 0 },
    Shape {
        name: "short lives",
        flags: &[("--connection-lifetime", "300ms")],
        behaviour: plain,
        connects: true,
        ways: 0,
    },
    Shape {
        name: "h2c, few streams",
        flags: &[("--http2", ""), ("-m", "4")],
        behaviour: plain,
        connects: false,
        ways: 0,
    },
    Shape { name: "h2c", flags: &[("--http2", "")], behaviour: plain, connects: false, ways: 0 },
    Shape {
        name: "h2c, one request a connection",
        flags: &[("--http2", ""), ("--max-requests-per-connection", "1")],
        behaviour: plain,
        connects: true,
        ways: 2,
    },
];

const PACINGS: &[Flags] = &[&[], &[("--pacing", "shared")], &[("--precise", "")]];

/// Rates with lengths for some 50 arrivals at least.
const RATES: &[(&str, &str)] = &[("5", "10s"), ("20", "3s"), ("200", "1s"), ("1000", "500ms")];

/// Every combination, each with what it is called.
fn cells() -> impl Iterator<Item = (String, &'static Shape, Vec<(&'static str, &'static str)>, SimOptions)> {
    let worlds = [(true, true), (true, false), (false, true), (false, false)];
    SHAPES.iter().flat_map(move |shape| {
        PACINGS.iter().flat_map(move |pacing| {
            RATES.iter().flat_map(move |&(rate, length)| {
                ["uniform", "poisson"].into_iter().flat_map(move |process| {
                    worlds.into_iter().map(move |(receive_stamps, coalesce)| {
                        let mut flags = vec![("--rate", rate), ("-d", length), ("--arrival", process)];
                        flags.extend(shape.flags.iter().chain(*pacing));
                        let options = SimOptions {
                            latency: LATENCY,
                            receive_stamps,
                            coalesce,
                            ..world((shape.behaviour)())
                        };
                        let name = format!("{}: {flags:?}, {receive_stamps} {coalesce}", shape.name);
                        (name, shape, flags, options)
                    })
                })
            })
        })
    })
}

#[test]
fn a_connect_ends_at_once_while_others_wait_for_ever() {
    for seed in 0..20 {
        let mut behaviour = plain();
        behaviour.faults.silent_connect = 0.75;
        let flags = [("--rate", "200"), ("-d", "500ms"), ("-c", "16"), ("--connect-timeout", "300ms")];
        let (record, _) = carry_out(&plan(&flags), SimOptions { latency: LATENCY, seed, ..world(behaviour) });
        let connect = &record.connections.connect_time;
        assert!(connect.count() > 0);
        let longest = Nanos(connect.max().unwrap_or(0));
        assert!(longest <= LATENCY * 2 + OURS, "{seed}: {longest:?}");
    }
}

#[test]
fn what_is_sent_again_does_not_wait_for_the_next_arrival() {
    for seed in 0..5 {
        let mut behaviour = plain();
        behaviour.faults.reset = 0.2;
        let flags = [("--rate", "20"), ("-d", "10s")];
        let (record, _) = carry_out(&plan(&flags), SimOptions { latency: LATENCY, seed, ..world(behaviour) });
        assert!(record.accounting.resent > 20, "{:?}", record.accounting);
        // Two attempts, and perhaps a connection between them.
        let truth = (SERVICE + LATENCY * 2) * 2 + LATENCY * 2;
        let slow = percentile(&record, 90.0);
        assert!(slow <= truth + OURS + OURS, "{seed}: {slow:?} where {truth:?} is true");
    }
}

#[test]
fn times_are_those_of_the_server_and_the_network() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, shape, flags, options) in cells() {
        count += 1;
        let (record, truth) = carry_out(&plan(&flags), options);
        if record.total.ok < record.accounting.started || truth.is_empty() {
            wrong.push(format!("{name}: {:?}", record.accounting));
            continue;
        }
        let connect = record.connections.connect_time.percentile(50.0).map(Nanos);
        let mut times = vec![
            ("response", percentile(&record, 50.0), shape.connects, SERVICE + LATENCY * 2),
            ("slowest decile", percentile(&record, 90.0), shape.connects, SERVICE + LATENCY * 2),
            (
                "service",
                Nanos(record.total.service_time.percentile(50.0).unwrap()),
                false,
                SERVICE + LATENCY * 2,
            ),
        ];
        times.extend(connect.map(|connect| ("connect", connect, false, LATENCY * 2)));
        for (what, measured, connects, truth) in times {
            let truth = if connects { truth + LATENCY * (2 + shape.ways) } else { truth };
            let most = truth + OURS + Nanos((truth.0 as f64 * SHARE) as u64);
            if measured > most {
                wrong.push(format!("{name}: {what} {measured:?} where {truth:?} is true"));
            }
        }
    }
    assert_eq!(count, 1_152);
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A response in pieces whose first one comes long before the last: a generator that slept past all of them
/// would have read them together, with the time of the last.
#[test]
fn the_first_byte_of_a_response_in_pieces_has_a_time_of_its_own() {
    const GAP: Nanos = Nanos::from_millis(1);
    let kept = |shape: &&Shape| ["kept", "not kept by the client", "h2c"].contains(&shape.name);
    let mut wrong = Vec::new();
    let mut count = 0;
    for shape in SHAPES.iter().filter(kept) {
        for (pacing, (rate, length)) in
            PACINGS.iter().flat_map(|pacing| RATES.iter().map(move |rate| (pacing, *rate)))
        {
            for coalesce in [true, false] {
                count += 1;
                let mut flags = vec![("--rate", rate), ("-d", length)];
                flags.extend(shape.flags.iter().chain(*pacing));
                let behaviour = Behaviour { answer: Answer::with_body([b'x'; 256]), ..(shape.behaviour)() };
                let (segment_bytes, segment_gap) = (64, GAP);
                let options =
                    SimOptions { latency: LATENCY, coalesce, segment_bytes, segment_gap, ..world(behaviour) };
                let (record, _) = carry_out(&plan(&flags), options);
                let p50 = |times: &Histogram| Nanos(times.percentile(50.0).unwrap_or(0));
                let (first, service) = (p50(&record.total.first_byte_time), p50(&record.total.service_time));
                let name = format!("{}: {flags:?}, {coalesce}", shape.name);
                if record.total.ok < record.accounting.started || service < first + GAP * 3 {
                    wrong.push(format!("{name}: {first:?} {service:?} {:?}", record.accounting));
                }
                let truth = SERVICE + LATENCY * 2;
                if first > truth + OURS + Nanos((truth.0 as f64 * SHARE) as u64) {
                    wrong.push(format!("{name}: first byte {first:?} where {truth:?} is true"));
                }
            }
        }
    }
    assert_eq!(count, 72);
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
