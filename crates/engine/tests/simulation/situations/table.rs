//! The situations, each with its claim and the words that an expert would use.

use plimsoll_core::ErrorClass;
use plimsoll_metrics::{
    AcceptQueue, Awaited, CoreUse, MachineInterval, NetworkUse, OwnSegments, ProcessUse, Stall,
    TargetProcess, Throttling,
};
use plimsoll_testkit::{Concurrency, Faults, Http2, Law, Pause};

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

pub(super) fn constant(service: Nanos) -> Behaviour {
    Behaviour { service: Law::Constant(service), ..Behaviour::default() }
}

pub(super) fn exponential(mean: Nanos) -> Behaviour {
    Behaviour { service: Law::Exponential { mean }, ..Behaviour::default() }
}

fn bimodal(slow: Nanos, probability: f64) -> Behaviour {
    let service = Law::Bimodal { fast: MS * 2, slow, slow_share: probability };
    Behaviour { service, ..Behaviour::default() }
}

/// One that answers so many requests per second.
pub(super) fn capacity(per_second: u64) -> Behaviour {
    let service = Law::Constant(Nanos(1_000_000_000 / per_second));
    Behaviour { service, concurrency: Concurrency::SingleQueue, ..Behaviour::default() }
}

/// One that stands still from `at` on for `length`, in milliseconds since the start of the load.
pub(super) fn freezing(at: u64, length: u64) -> Behaviour {
    // The load begins a moment after the clock of its world.
    let at = SimOptions::default().start + MS * at + MS * 5;
    Behaviour { pauses: vec![Pause { at, length: MS * length }], ..constant(MS * 2) }
}

fn faulty(faults: Faults) -> Behaviour {
    Behaviour { faults, ..constant(MS * 2) }
}

fn statuses(status: u16, probability: f64) -> Behaviour {
    faulty(Faults { statuses: vec![(status, probability)], ..Faults::default() })
}

fn dropping(drop_reply: f64) -> Behaviour {
    faulty(Faults { drop_reply, ..Faults::default() })
}

/// One that allows so many streams, and none after so many replies.
fn streams(max_streams: Option<u32>, bars_after: Option<u64>) -> Behaviour {
    Behaviour { http2: Http2 { max_streams, bars_after, ..Http2::default() }, ..constant(MS * 10) }
}

/// The machine of a run, with half of its processors in use, and the target on it.
fn on_machine(record: &mut RunRecord, change: impl Fn(&mut MachineInterval)) {
    record.machine.facts.target = Some(TargetProcess { name: "sink".to_owned(), ..TargetProcess::default() });
    let process =
        ProcessUse { cpu: MS * 500, busiest_thread: Some(MS * 500), threads: 1, ..ProcessUse::default() };
    let second = |interval: &plimsoll_metrics::Interval| {
        let mut part = MachineInterval {
            at: interval.at,
            length: interval.length,
            warmup: interval.warmup,
            generator: Some(process),
            target: Some(process),
            cores: vec![CoreUse { busy: MS * 500, ..CoreUse::default() }; 2],
            network: NetworkUse {
                segments_sent: Some(4_000),
                retransmitted: Some(0),
                listen_overflows: Some(0),
                listen_drops: Some(0),
                ..NetworkUse::default()
            },
            target_queue: Some(AcceptQueue { limit: 128, ..AcceptQueue::default() }),
            own_segments: Some(OwnSegments { segments: 4_000, ..OwnSegments::default() }),
            ..MachineInterval::default()
        };
        change(&mut part);
        part
    };
    record.machine.intervals = record.intervals.iter().filter(|one| !one.drain).map(second).collect();
}

fn target_of(part: &mut MachineInterval) -> &mut ProcessUse {
    part.target.as_mut().expect("there is one")
}

/// Connects of which some had to ask twice.
fn slow_connects(record: &mut RunRecord) {
    for time in [MS, MS, MS * 1_040] {
        record.connections.connect_time.record(time.0);
    }
}

pub(super) const BASE: Situation = Situation {
    name: "",
    server: || constant(MS * 2),
    flags: &[],
    claim: Claim::Delivered,
    perhaps: None,
    words: &["was delivered on time, and requests in flight did not grow at that rate ("],
    hint: "",
    outcome: RunOutcome::Done,
    on_http2: true,
    beside: None,
};

pub(super) const UNKNOWN: Situation = Situation {
    claim: Claim::GrowthUnknown,
    words: &["was delivered on time", "whether requests in flight grew does not show"],
    hint: "run longer",
    ..BASE
};
pub(super) const OVERLOADED: Situation =
    Situation { claim: Claim::Overload, words: &["fewer than arrive"], hint: "use a lower rate", ..BASE };
const EBBED: Situation =
    Situation { claim: Claim::OverloadForAWhile, hint: "look at the target at that time", ..BASE };
const NOTHING: Situation = Situation { claim: Claim::NothingAnswered, hint: "wait longer", ..BASE };
/// Nearly all of the time of an answer of 128 KiB passes after its first byte.
fn sends_slowly(record: &mut RunRecord) {
    record.total.bytes_received = record.total.ok << 17;
    record.total.first_byte_time = Histogram::new();
    record.total.first_byte_time.record_many(MS.0, record.total.ok);
}

/// The answers are streams, whose first contents came after these times.
fn streamed(record: &mut RunRecord, first: fn(&mut Histogram, u64)) {
    let count = record.total.ok;
    let step = &mut record.steps[0];
    step.awaited = Awaited::Stream;
    first(&mut step.event_streams.get_or_insert_default().ttft, count);
}

/// The answers are messages that nobody owes.
fn subscribes(record: &mut RunRecord) {
    record.steps[0].awaited = Awaited::Push;
}

const STILL: Situation =
    Situation { claim: Claim::StoodStill, hint: "look at the target and its log at that time", ..BASE };
const STOPPED: Situation = Situation {
    claim: Claim::StoppedAnswering,
    hint: "look at the target and its log at that time",
    outcome: RunOutcome::Fail,
    ..BASE
};
const NEVER: Situation =
    Situation { claim: Claim::NeverAnswered, hint: "look at the target's own log", ..BASE };
const NOT_SERVED: Situation = Situation { claim: Claim::NotServed, hint: "the target's own log", ..BASE };
const REFUSED: Situation = Situation { claim: Claim::Refused, hint: "ask for less", ..BASE };
const QUEUE: Situation =
    Situation { claim: Claim::Queue, hint: "the load that the target carries", on_http2: false, ..BASE };
const FEW: Situation = Situation {
    claim: Claim::FewConnections,
    hint: "-c ",
    outcome: RunOutcome::NoVerdict,
    on_http2: false,
    ..BASE
};
pub(super) const USERS: Situation =
    Situation { claim: Claim::FewUsers, hint: "use more connections", on_http2: false, ..BASE };
pub(super) const GENERATOR: Situation =
    Situation { claim: Claim::Generator, outcome: RunOutcome::NoVerdict, on_http2: false, ..BASE };
const BUSY: Situation = Situation { on_http2: false, hint: "the target", ..OVERLOADED };

pub(super) const SITUATIONS: &[Situation] = &[
    // Nothing is wrong.
    Situation { name: "healthy, 1 s", flags: &[("--rate", "200"), ("-d", "1s")], ..BASE },
    Situation { name: "healthy, 3 s", flags: &[("--rate", "200"), ("-d", "3s")], ..BASE },
    Situation { name: "healthy, 10 s", flags: &[("--rate", "200"), ("-d", "10s")], ..BASE },
    Situation { name: "healthy, counted", flags: &[("--rate", "50"), ("-n", "100")], ..BASE },
    Situation {
        name: "healthy, poisson",
        flags: &[("--rate", "200"), ("-d", "5s"), ("--arrival", "poisson")],
        ..BASE
    },
    Situation { name: "healthy, rare", flags: &[("--rate", "1"), ("-d", "20s")], ..BASE },
    Situation {
        name: "half busy queue",
        server: || Behaviour {
            service: Law::Exponential { mean: MS * 2 },
            concurrency: Concurrency::SingleQueue,
            ..Behaviour::default()
        },
        flags: &[("--rate", "250"), ("-d", "10s"), ("--arrival", "poisson")],
        ..BASE
    },
    Situation {
        name: "slow answers that come",
        server: || constant(SECOND * 2),
        flags: &[("--rate", "100"), ("-d", "12s")],
        ..BASE
    },
    Situation {
        name: "a ramp",
        server: || constant(MS * 100),
        flags: &[("--stages", "5s@500,5s@1000")],
        ..BASE
    },
    Situation {
        name: "some slow answers",
        server: || bimodal(SECOND, 0.1),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &[
            "did not grow",
            "% of the answers took more than 21.0 ms",
            "half of all took at most 2.10 ms",
        ],
        ..BASE
    },
    Situation {
        name: "a slow group",
        server: || bimodal(MS * 200, 0.05),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["did not grow", "% of the answers took more than 21.0 ms, up to 200 ms"],
        ..BASE
    },
    Situation {
        name: "an outage in the warm-up",
        server: || freezing(500, 1_500),
        flags: &[("--rate", "100"), ("--warmup", "4s"), ("-d", "5s")],
        ..BASE
    },
    Situation {
        name: "some 404",
        server: || statuses(404, 0.3),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["did not grow", "% of the requests failed"],
        ..BASE
    },
    // Chance decided whether a target was the limit that had its load in full and kept up with it.
    Situation {
        name: "a few errors at any time",
        server: || statuses(500, 0.012),
        flags: &[("--rate", "200"), ("-d", "10s")],
        words: &["did not grow", "% of the requests failed"],
        ..BASE
    },
    Situation {
        name: "a few errors at any rate",
        server: || statuses(500, 0.02),
        flags: &[("--stages", "5s@100,5s@400")],
        words: &["did not grow", "% of the requests failed"],
        ..BASE
    },
    // What a run cannot show.
    Situation {
        name: "answers slower than the run",
        server: || constant(SECOND * 3),
        flags: &[("--rate", "100"), ("-d", "2s")],
        ..UNKNOWN
    },
    Situation {
        name: "filling up",
        server: || bimodal(SECOND * 5, 0.1),
        flags: &[("--rate", "200"), ("-d", "6s")],
        ..UNKNOWN
    },
    Situation {
        name: "too short",
        server: || constant(MS * 200),
        flags: &[("--rate", "200"), ("-d", "1s")],
        ..UNKNOWN
    },
    Situation {
        name: "nothing answered",
        server: || dropping(1.0),
        flags: &[("--rate", "50"), ("-d", "2s"), ("--drain", "2s")],
        words: &["no request was answered"],
        outcome: RunOutcome::Fail,
        ..NOTHING
    },
    // Overload.
    Situation {
        name: "twice the capacity, 2 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "2s")],
        ..OVERLOADED
    },
    Situation {
        name: "twice the capacity, 3 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "3s")],
        ..OVERLOADED
    },
    Situation {
        name: "four times the capacity, 3 s",
        server: || capacity(100),
        flags: &[("--rate", "400"), ("-d", "3s")],
        ..OVERLOADED
    },
    Situation {
        name: "twice the capacity, 10 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "10s")],
        ..OVERLOADED
    },
    Situation {
        name: "a tenth above the capacity",
        server: || capacity(100),
        flags: &[("--rate", "110"), ("-d", "10s")],
        ..OVERLOADED
    },
    Situation {
        name: "overload after a warm-up",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("--warmup", "3s"), ("-d", "4s")],
        ..OVERLOADED
    },
    Situation {
        name: "overload, then calm",
        server: || capacity(150),
        flags: &[("--stages", "2s@300,1ms@50,4s@50")],
        words: &["grew to 302 until 2.00 s", "and fell to 0 again", "fewer than arrived"],
        ..EBBED
    },
    Situation {
        name: "few connections before a queue",
        server: || capacity(500),
        flags: &[("--rate", "1000"), ("-c", "5"), ("-d", "3s")],
        words: &["wait for one another"],
        outcome: RunOutcome::NoVerdict,
        ..QUEUE
    },
    // Standstills.
    Situation {
        name: "frozen at the end, thawed in the drain",
        server: || freezing(6_000, 6_000),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 6.00 s to 12.0 s, with 399 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen in the middle",
        server: || freezing(4_000, 3_500),
        flags: &[("--rate", "100"), ("-d", "12s")],
        words: &["no answer from 4.00 s to 7.50 s, with 350 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen for most of the run",
        server: || freezing(2_000, 7_500),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 2.00 s to 9.50 s, with 750 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen from the start",
        server: || freezing(0, 3_500),
        flags: &[("--rate", "100"), ("-d", "12s")],
        words: &["no answer from 2.10 ms to 3.50 s, with 350 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen twice",
        server: || {
            let again = freezing(8_000, 2_500).pauses;
            let once = freezing(3_000, 3_500);
            Behaviour { pauses: [once.pauses, again].concat(), ..constant(MS * 2) }
        },
        flags: &[("--rate", "100"), ("-d", "14s")],
        words: &["no answer from 3.00 s to 6.50 s, with 350 requests", ", and once more"],
        ..STILL
    },
    Situation {
        name: "frozen for good",
        server: || freezing(2_000, 900_000),
        flags: &[("--rate", "100"), ("-d", "6s"), ("--drain", "5s")],
        words: &["the target stopped answering: no answer from 2.00 s on", "waited for until 11.0 s"],
        ..STOPPED
    },
    Situation {
        name: "frozen for good, few connections",
        server: || freezing(1_500, 900_000),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "5s")],
        words: &["the target stopped answering"],
        ..STOPPED
    },
    Situation {
        name: "frozen for good, dropping",
        server: || freezing(1_500, 900_000),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "5s"), ("--overload", "drop")],
        words: &["the target stopped answering"],
        ..STOPPED
    },
    Situation {
        name: "frozen, closed",
        server: || freezing(3_000, 3_500),
        flags: &[("-c", "8"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 6.50 s, with 8 requests in flight"],
        on_http2: false,
        ..STILL
    },
    Situation {
        name: "frozen for good, closed",
        server: || freezing(3_000, 900_000),
        flags: &[("-c", "8"), ("-d", "8s"), ("--drain", "5s")],
        words: &["the target stopped answering: no answer from 3.00 s on", "waited for until 13.0 s"],
        on_http2: false,
        ..STOPPED
    },
    Situation {
        name: "frozen, one user",
        server: || freezing(3_000, 3_500),
        flags: &[("-c", "1"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 6.50 s, with 1 request in flight"],
        on_http2: false,
        ..STILL
    },
    // What hangs.
    Situation {
        name: "some are never answered",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--drain", "2s")],
        words: &["of the requests were never answered", "took 2.10 ms at most"],
        ..NEVER
    },
    Situation {
        name: "some hang, few connections",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "2s")],
        words: &["the target stopped answering", "with 8 requests in flight"],
        on_http2: false,
        ..STOPPED
    },
    Situation {
        name: "some time out",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--timeout", "500ms")],
        words: &["not served, all of them timed out"],
        ..NOT_SERVED
    },
    Situation {
        name: "some time out, few connections",
        server: || dropping(0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "5s"), ("--timeout", "500ms")],
        words: &["not served, all of them timed out"],
        on_http2: false,
        ..NOT_SERVED
    },
    // What is refused, or fails.
    Situation {
        name: "a limiter",
        server: || statuses(429, 0.74),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["the target refused ", "with 429"],
        ..REFUSED
    },
    Situation {
        name: "a limiter, closed",
        server: || statuses(429, 0.74),
        flags: &[("-c", "4"), ("-d", "2s")],
        words: &["the target refused ", "with 429"],
        ..REFUSED
    },
    Situation {
        name: "load shedding",
        server: || statuses(503, 0.3),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["the target refused ", "with 503"],
        ..REFUSED
    },
    Situation {
        name: "errors",
        server: || statuses(500, 0.1),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["were not served, all of them status_5xx"],
        ..NOT_SERVED
    },
    Situation {
        name: "a few errors of a target that is overloaded",
        server: || Behaviour { faults: statuses(500, 0.03).faults, ..capacity(100) },
        flags: &[("--rate", "150"), ("-d", "5s")],
        words: &["were not served, all of them status_5xx"],
        ..NOT_SERVED
    },
    Situation {
        name: "resets",
        server: || faulty(Faults { reset: 0.1, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--no-resend", "")],
        words: &["were not served"],
        // Over HTTP/1.1 a kept connection was lost, which has advice of its own.
        hint: "",
        ..NOT_SERVED
    },
    Situation {
        name: "truncated bodies",
        server: || faulty(Faults { truncated_body: 0.25, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["were not served"],
        ..NOT_SERVED
    },
    Situation {
        name: "refused connections",
        server: || faulty(Faults { refuse_connect: 1.0, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "2s")],
        words: &["were not served, all of them connect_refused"],
        outcome: RunOutcome::Fail,
        ..NOT_SERVED
    },
    // Too little was asked with.
    Situation {
        name: "few connections",
        server: || constant(MS * 10),
        flags: &[("--rate", "1000"), ("-c", "5"), ("-d", "3s")],
        words: &["carry at most 495/s of the 1,000/s asked for"],
        ..FEW
    },
    Situation {
        name: "few connections for some slow answers",
        server: || bimodal(MS * 500, 0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "4s")],
        words: &["4 connections"],
        ..FEW
    },
    Situation {
        name: "few connections, dropping",
        server: || bimodal(MS * 500, 0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "4s"), ("--overload", "drop")],
        words: &["4 connections"],
        ..FEW
    },
    Situation {
        name: "few users",
        server: || constant(MS * 10),
        flags: &[("-c", "32"), ("-d", "2s")],
        words: &["32 users"],
        ..USERS
    },
    Situation {
        name: "users before a queue",
        server: || capacity(1_000),
        flags: &[("-c", "32"), ("-d", "2s")],
        words: &["wait for one another"],
        ..QUEUE
    },
    // Two causes at once: the one that explains more comes first.
    Situation {
        name: "errors and a standstill",
        server: || Behaviour { pauses: freezing(3_000, 3_500).pauses, ..statuses(500, 0.1) },
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 6.50 s"],
        ..STILL
    },
    Situation {
        name: "a limiter before a queue",
        server: || Behaviour { faults: statuses(429, 0.3).faults, ..capacity(100) },
        flags: &[("--rate", "200"), ("-d", "5s")],
        words: &["the target refused"],
        ..REFUSED
    },
    Situation {
        name: "overload of few connections",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-c", "16"), ("-d", "5s")],
        words: &["wait for one another"],
        outcome: RunOutcome::NoVerdict,
        ..QUEUE
    },
    Situation {
        name: "a limiter that stands still",
        server: || Behaviour { pauses: freezing(3_000, 3_500).pauses, ..statuses(429, 0.3) },
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 6.50 s"],
        ..STILL
    },
    Situation {
        name: "a target without a processor that stands still",
        server: || freezing(3_000, 3_500),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 6.50 s", "; the target's process (sink) was ready to run"],
        beside: Some(|record| on_machine(record, |part| target_of(part).run_delay = Some(MS * 400))),
        ..STILL
    },
    Situation {
        name: "overload and a stall of the generator",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        words: &["the generator itself stood still for 500 ms"],
        hint: "keep other work off this machine",
        beside: Some(|record| {
            let stall = Stall { worker: 0, at: SECOND, length: MS * 500 };
            record.workers[0].stalls.push(stall);
        }),
        ..GENERATOR
    },
    Situation {
        name: "overload while another program's queue is full",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        beside: Some(|record| {
            slow_connects(record);
            on_machine(record, |part| part.network.listen_overflows = Some(50));
        }),
        ..OVERLOADED
    },
    // Standstills that begin or end within an interval.
    Situation {
        name: "frozen across one edge",
        server: || freezing(3_200, 1_300),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 3.20 s to 4.50 s, with 130 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen across one edge, closed",
        server: || freezing(3_200, 1_300),
        flags: &[("-c", "2"), ("-d", "6s")],
        words: &["no answer from 3.20 s to 4.50 s, with 2 requests in flight"],
        on_http2: false,
        ..STILL
    },
    Situation {
        name: "frozen in a run of 3 s",
        server: || freezing(500, 1_500),
        flags: &[("--rate", "100"), ("-d", "3s")],
        words: &["no answer from 502 ms to 2.00 s, with 150 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen for less than a second",
        server: || freezing(3_200, 700),
        flags: &[("--rate", "100"), ("-d", "10s")],
        claim: Claim::SlowIntervals,
        words: &["in 1 of 10 intervals, first in the one that ended at 4.00 s"],
        hint: "look at the target at that time",
        ..BASE
    },
    Situation {
        name: "frozen for good just before the end",
        server: || freezing(9_500, 900_000),
        flags: &[("--rate", "100"), ("-d", "10s"), ("--drain", "5s")],
        words: &[
            "the target stopped answering: no answer from 9.50 s on, with 49 requests in flight; they were waited for until 15.0 s",
        ],
        ..STOPPED
    },
    Situation {
        name: "frozen for good just before the end, closed",
        server: || freezing(4_500, 900_000),
        flags: &[("-c", "2"), ("-d", "5s"), ("--drain", "5s")],
        words: &[
            "the target stopped answering: no answer from 4.50 s on, with 2 requests in flight; they were waited for until 10.0 s",
        ],
        on_http2: false,
        ..STOPPED
    },
    Situation {
        name: "frozen, two threads",
        server: || freezing(3_200, 1_300),
        flags: &[("--rate", "100"), ("-d", "10s"), ("-t", "2")],
        words: &["no answer from 3.20 s to 4.50 s, with 130 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen, rare",
        server: || freezing(6_200, 5_000),
        flags: &[("--rate", "2"), ("-d", "20s")],
        words: &["no answer from 6.00 s to 11.2 s, with 10 requests in flight"],
        ..STILL
    },
    Situation {
        name: "frozen while requests time out",
        server: || freezing(3_200, 2_300),
        flags: &[("--rate", "100"), ("-d", "10s"), ("--timeout", "500ms")],
        words: &["no answer from 3.20 s to 5.50 s"],
        ..STILL
    },
    // Rare answers that take long, by chance several in a row.
    Situation {
        name: "rare and slow",
        server: || exponential(SECOND * 2),
        flags: &[("--rate", "1"), ("-d", "40s"), ("--drain", "40s")],
        // Chance decides how long the slowest takes, and by that whether the run shows growth.
        perhaps: Some(Claim::GrowthUnknown),
        words: &["was delivered on time"],
        ..BASE
    },
    Situation {
        name: "rare and now and then slow",
        server: || bimodal(SECOND * 3, 0.25),
        flags: &[("--rate", "2"), ("-d", "30s"), ("--drain", "10s")],
        perhaps: Some(Claim::GrowthUnknown),
        words: &["was delivered on time"],
        ..BASE
    },
    Situation {
        name: "one user whose answers vary",
        server: || exponential(MS * 500),
        flags: &[("-c", "1"), ("-d", "20s"), ("--drain", "20s")],
        words: &["1 user with a mean service time"],
        ..USERS
    },
    Situation {
        name: "stragglers",
        server: || dropping(0.005),
        flags: &[("-c", "8"), ("-n", "400"), ("--timeout", "4s")],
        // Chance decides whether a hundredth of the requests hangs.
        perhaps: Some(Claim::NotServed),
        words: &["8 users"],
        // How many hang decides how the users are asked for.
        hint: "use more",
        ..USERS
    },
    Situation {
        name: "no connections",
        server: || faulty(Faults { silent_connect: 1.0, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-c", "16"), ("-d", "3s")],
        claim: Claim::NoConnections,
        words: &["a target took no connections", "never started"],
        hint: "is its backlog full",
        outcome: RunOutcome::Fail,
        ..BASE
    },
    Situation {
        name: "no connections that are asked for again and again",
        server: || faulty(Faults { silent_connect: 1.0, ..Faults::default() }),
        flags: &[("--rate", "20"), ("-d", "2s"), ("--drain", "0s")],
        claim: Claim::NoConnections,
        words: &["a target took no connections: 40 requests waited for one to it to the end"],
        hint: "is its backlog full",
        outcome: RunOutcome::Fail,
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.own_segments = Some(OwnSegments { segments: 60, resent: 34, out_of_order: 0 });
            });
        }),
        ..BASE
    },
    Situation {
        name: "no connections at the target's own queue",
        server: || faulty(Faults { silent_connect: 1.0, ..Faults::default() }),
        flags: &[("--rate", "20"), ("-d", "2s"), ("--drain", "0s")],
        claim: Claim::AcceptQueue,
        words: &["100 were turned away, and ours were not established by the end"],
        hint: "raise the target's backlog",
        outcome: RunOutcome::Fail,
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.target_queue = Some(AcceptQueue { length: 1, limit: 0, drops: 50 });
            });
        }),
        ..BASE
    },
    // Streams.
    Situation {
        name: "no streams",
        server: || streams(None, Some(1)),
        flags: &[("--http2", ""), ("--rate", "50"), ("-d", "3s")],
        claim: Claim::NoStreams,
        words: &["the target allows no streams"],
        hint: "nothing can be asked of it",
        on_http2: false,
        ..BASE
    },
    Situation {
        name: "few streams",
        server: || streams(Some(2), None),
        flags: &[("--http2", ""), ("-c", "1"), ("-m", "20"), ("-d", "3s")],
        claim: Claim::FewStreams,
        words: &["allows 2 streams on each connection, 20 were asked for"],
        hint: "use more connections",
        on_http2: false,
        ..BASE
    },
    // Connections.
    Situation {
        name: "a freeze of few connections",
        server: || freezing(3_000, 600),
        flags: &[("--rate", "400"), ("-c", "5"), ("-d", "6s")],
        claim: Claim::OneFreeze,
        words: &["the target kept requests for up to 60", "usually for 2."],
        hint: "look at the target at that time",
        on_http2: false,
        ..BASE
    },
    Situation {
        name: "few connections before a queue of times that vary",
        server: || Behaviour { concurrency: Concurrency::SingleQueue, ..exponential(MS * 2) },
        flags: &[("--rate", "1000"), ("-c", "5"), ("-d", "3s")],
        claim: Claim::PerhapsQueue,
        // Few requests in one queue and times that vary look alike, and chance may show which it is.
        perhaps: Some(Claim::Queue),
        words: &["wait for one another"],
        hint: "",
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
        ..BASE
    },
    Situation {
        name: "a few requests that hold connections",
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "10s")],
        claim: Claim::HeldConnections,
        words: &["3 requests without an answer held connections, of which there are 8"],
        hint: "look at the target's own log",
        on_http2: false,
        beside: Some(|record| {
            record.accounting.scheduled += 3;
            record.accounting.started += 3;
            record.accounting.in_flight_at_stop += 3;
            record.total.service_time.record_many((SECOND * 4).0, 3);
            record.connections.blocked_at_limit = SECOND * 2;
        }),
        ..BASE
    },
    Situation {
        name: "a narrow way",
        server: || constant(MS * 10),
        flags: &[("-c", "8"), ("-d", "3s")],
        claim: Claim::Transfer,
        words: &["passed between the first and the last byte of responses of"],
        hint: "compare with the bandwidth",
        on_http2: false,
        beside: Some(|record| {
            sends_slowly(record);
            record.peers[0].addresses = vec!["192.0.2.1:80".to_owned()];
        }),
        ..BASE
    },
    Situation {
        name: "a target on this machine that sends slowly",
        server: || constant(MS * 10),
        flags: &[("-c", "8"), ("-d", "3s")],
        claim: Claim::SlowSending,
        words: &["passed between the first and the last byte of responses of"],
        hint: "the target sends its responses slowly",
        on_http2: false,
        beside: Some(|record| {
            sends_slowly(record);
            record.peers[0].addresses = vec!["[::1]:80".to_owned(), "unix:/run/target".to_owned()];
        }),
        ..BASE
    },
    // Users that have nothing left to do do not pause.
    Situation {
        name: "counted requests, of which some take long",
        server: || bimodal(MS * 300, 0.02),
        flags: &[("-c", "10"), ("-n", "200")],
        words: &[" in flight on average: users ended before the last answers came, which took up to 300 ms"],
        hint: "use more requests (-n)",
        ..USERS
    },
    Situation {
        name: "a model that takes its time for each token",
        server: || constant(MS * 10),
        flags: &[("-c", "8"), ("-d", "3s")],
        claim: Claim::FewUsers,
        words: &["8 users with a mean service time of 10"],
        hint: "use more connections",
        on_http2: false,
        beside: Some(|record| {
            sends_slowly(record);
            streamed(record, |times, count| times.record_many(MS.0, count));
        }),
        ..BASE
    },
    Situation {
        name: "a model whose answers differ in length",
        server: || exponential(MS * 10),
        flags: &[("-c", "8"), ("-d", "3s")],
        claim: Claim::FewUsers,
        words: &["8 users with a mean service time of"],
        hint: "use more connections",
        on_http2: false,
        beside: Some(|record| {
            // A few were short.
            record.total.service_time.record_many(MS.0 / 10, 5);
            streamed(record, |times, count| times.record_many(MS.0, count));
        }),
        ..BASE
    },
    Situation {
        name: "a model before which requests wait",
        server: || constant(MS * 10),
        flags: &[("-c", "8"), ("-d", "3s")],
        claim: Claim::Queue,
        words: &["half of the streams began after 8.00 ms or more; the first began after 1.00 ms"],
        hint: "the load that the target carries",
        on_http2: false,
        beside: Some(|record| {
            streamed(record, |times, count| {
                times.record_many(MS.0, 1);
                times.record_many(MS.0 * 8, count);
            });
        }),
        ..BASE
    },
    Situation {
        name: "subscribers of a publisher that says nothing for a while",
        server: || freezing(2_000, 3_000),
        flags: &[("-c", "8"), ("-d", "6s")],
        claim: Claim::FewUsers,
        words: &["was spent in waiting for messages that come by themselves"],
        hint: "more connections",
        on_http2: false,
        beside: Some(subscribes),
        ..BASE
    },
    Situation {
        name: "subscribers that arrive while a publisher says nothing",
        server: || freezing(2_000, 3_000),
        flags: &[("--rate", "20"), ("-d", "6s")],
        claim: Claim::GrowthUnknown,
        words: &["was spent in waiting for messages that come by themselves"],
        hint: "",
        on_http2: false,
        beside: Some(subscribes),
        ..BASE
    },
    // The plan.
    Situation {
        name: "all 404",
        server: || statuses(404, 1.0),
        flags: &[("--rate", "100"), ("-d", "3s")],
        claim: Claim::NothingSucceeded,
        words: &["nothing ended well"],
        hint: "look at the errors",
        outcome: RunOutcome::Fail,
        ..BASE
    },
    Situation {
        name: "a scenario that fails",
        flags: &[("--rate", "100"), ("-d", "3s")],
        claim: Claim::PlanFails,
        words: &["of the requests failed in the plan's own scenario"],
        hint: "fix the scenario",
        beside: Some(|record| {
            record.total.errors[ErrorClass::Scenario] = record.accounting.started;
        }),
        ..BASE
    },
    Situation {
        name: "arrivals that never started",
        flags: &[("--rate", "100"), ("-d", "5s")],
        claim: Claim::LessThanAsked,
        words: &["neither the times nor the machine show why"],
        hint: "watch the target",
        outcome: RunOutcome::NoVerdict,
        beside: Some(|record| {
            record.accounting.scheduled += 100;
            record.accounting.never_started += 100;
        }),
        ..BASE
    },
    Situation {
        name: "arrivals that never started, while another program lost segments",
        flags: &[("--rate", "100"), ("-d", "5s")],
        claim: Claim::LessThanAsked,
        words: &["5.0 % of the TCP segments of this machine were sent again, of any program"],
        hint: "watch the target",
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
        beside: Some(|record| {
            record.accounting.scheduled += 100;
            record.accounting.never_started += 100;
            on_machine(record, |part| {
                part.network.retransmitted = Some(200);
                part.own_segments = None;
            });
        }),
        ..BASE
    },
    // The generator and its machine.
    Situation {
        name: "a generator that was held up",
        flags: &[("--rate", "100"), ("-d", "5s")],
        claim: Claim::GeneratorThrottled,
        words: &["the control group of the generator had used up its CPU time"],
        hint: "raise the limit of the container",
        beside: Some(|record| {
            let stall = Stall { worker: 0, at: SECOND, length: MS * 500 };
            record.workers[0].stalls.push(stall);
            on_machine(record, |part| {
                let throttling = Throttling { periods: 10, throttled: 5, time: MS * 300 };
                part.generator.as_mut().expect("there is one").throttling = Some(throttling);
            });
        }),
        ..GENERATOR
    },
    // The machine of the target.
    Situation {
        name: "a target that is held up",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        claim: Claim::TargetThrottled,
        words: &["the target's control group (sink) had used up its CPU time in 50.0 % of the periods"],
        beside: Some(|record| {
            on_machine(record, |part| {
                let throttling = Throttling { periods: 10, throttled: 5, time: MS * 300 };
                target_of(part).throttling = Some(throttling);
            });
        }),
        ..BUSY
    },
    Situation {
        name: "a target without a processor",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        claim: Claim::TargetStarved,
        words: &["was ready to run but had no CPU for 40.0 % of the time"],
        beside: Some(|record| on_machine(record, |part| target_of(part).run_delay = Some(MS * 400))),
        ..BUSY
    },
    Situation {
        name: "a target with one busy thread",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        claim: Claim::BusyThread,
        words: &["a thread of the target's process (sink) used 99.0 % of its core"],
        hint: "",
        beside: Some(|record| {
            on_machine(record, |part| target_of(part).busiest_thread = Some(MS * 990));
        }),
        ..BUSY
    },
    Situation {
        name: "a target that takes the machine",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        claim: Claim::BusyMachine,
        words: &["all cores were busy, and the target's process (sink) used 80.0 % of them"],
        beside: Some(|record| {
            on_machine(record, |part| {
                target_of(part).cpu = MS * 1_600;
                part.cores.iter_mut().for_each(|core| core.busy = MS * 990);
            });
        }),
        ..BUSY
    },
    // Sockets.
    Situation {
        name: "the target's own queue is full",
        flags: &[("--rate", "100"), ("-d", "5s")],
        claim: Claim::AcceptQueue,
        words: &[
            "of the 128 that it holds, up to 129 waited, 250 were turned away, and ours took up to 1.04 s",
        ],
        hint: "raise the target's backlog",
        on_http2: false,
        beside: Some(|record| {
            slow_connects(record);
            on_machine(record, |part| {
                part.target_queue = Some(AcceptQueue { length: 129, limit: 128, drops: 50 });
            });
        }),
        ..BASE
    },
    Situation {
        name: "connects that time out at the target's own queue",
        server: || faulty(Faults { silent_connect: 0.5, ..Faults::default() }),
        flags: &[("--rate", "20"), ("-d", "5s"), ("--connect-timeout", "500ms"), ("--disable-keepalive", "")],
        claim: Claim::AcceptQueue,
        words: &["250 were turned away, and ours took up to their time limit"],
        hint: "raise the target's backlog",
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.target_queue = Some(AcceptQueue { length: 129, limit: 128, drops: 50 });
            });
        }),
        ..BASE
    },
    Situation {
        name: "connects that time out",
        server: || faulty(Faults { silent_connect: 0.5, ..Faults::default() }),
        flags: &[("--rate", "20"), ("-d", "5s"), ("--connect-timeout", "500ms"), ("--disable-keepalive", "")],
        words: &["were not served, all of them connect_timeout"],
        on_http2: false,
        ..NOT_SERVED
    },
    Situation {
        name: "another program's queue is full",
        flags: &[("--rate", "100"), ("-d", "5s")],
        on_http2: false,
        beside: Some(|record| {
            slow_connects(record);
            on_machine(record, |part| part.network.listen_overflows = Some(500));
        }),
        ..BASE
    },
    Situation {
        name: "our own segments are lost",
        server: || bimodal(MS * 210, 0.03),
        flags: &[("--rate", "100"), ("-d", "5s")],
        claim: Claim::Loss,
        words: &["3.0 % of the TCP segments of our own connections were sent again, or came out of order"],
        hint: "look for loss on the way",
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.own_segments = Some(OwnSegments { segments: 4_000, resent: 80, out_of_order: 40 });
            });
        }),
        ..BASE
    },
    Situation {
        name: "another program's segments are lost",
        flags: &[("--rate", "100"), ("-d", "5s")],
        on_http2: false,
        beside: Some(|record| on_machine(record, |part| part.network.retransmitted = Some(400))),
        ..BASE
    },
    Situation {
        name: "our own segments are lost before a queue",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "5s")],
        claim: Claim::Loss,
        words: &["3.0 % of the TCP segments of our own connections"],
        hint: "look for loss on the way",
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.own_segments = Some(OwnSegments { segments: 4_000, resent: 120, out_of_order: 0 });
            });
        }),
        ..BASE
    },
    Situation {
        name: "errors while our own segments are lost",
        server: || statuses(500, 0.2),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["were not served, all of them status_5xx"],
        on_http2: false,
        beside: Some(|record| {
            on_machine(record, |part| {
                part.own_segments = Some(OwnSegments { segments: 4_000, resent: 120, out_of_order: 0 });
            });
        }),
        ..NOT_SERVED
    },
];

/// A server whose backlog is full answers no connect. Arrivals for it waited for a connection until the end
/// and were never started, which was called the generator's fault, or that of too few connections.
#[test]
fn a_target_that_takes_no_connections_makes_no_run_invalid() {
    let full = || faulty(Faults { silent_connect: 1.0, ..Faults::default() });
    let other = Endpoint::Tcp(([127, 0, 0, 2], 80).into());
    let loads: [Flags; 6] = [
        &[("--timeout", "300ms")],
        &[("-c", "16")],
        &[("-c", "16"), ("-t", "2")],
        &[("-c", "16"), ("--connect-timeout", "300ms")],
        &[("-c", "16"), ("--overload", "drop")],
        &[("-c", "16"), ("--http2", ""), ("-m", "1")],
    ];
    for load in loads {
        for is_alone in [true, false] {
            let second = if is_alone { vec![] } else { vec![("--url", "http://other.test/")] };
            let flags = [&second[..], &[("--rate", "100"), ("-d", "3s")], load].concat();
            let servers = vec![(server(), full()), (other.clone(), constant(MS * 2))];
            let addresses = [server(), other.clone()].map(|endpoint| vec![endpoint.into()].into());
            let targets = if is_alone { &addresses[..1] } else { &addresses[..] };
            let options = SimOptions { servers, ..SimOptions::default() };
            let (record, _) = carry_out_at(&plan(&flags), options, targets, &Control::default());
            let verdict = &record.verdict;
            assert!(verdict.valid, "{flags:?}: {:?} {:?}", verdict.reasons, record.accounting);
            assert_eq!(verdict.limited_by.what, LimitedBy::Target, "{flags:?}: {:?}", verdict.limited_by);
        }
    }
}
