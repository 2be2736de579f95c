//! Situations of targets that get slower all the time, and of a generator that shares its processor.

use plimsoll_testkit::Concurrency;

use super::table::{BASE, GENERATOR, OVERLOADED, UNKNOWN, constant};
use super::*;

/// The worker was ready to run, and waited for its processor, for an eighth of the time.
fn shares_its_processor(record: &mut RunRecord) {
    let wall = record.workers[0].wall;
    record.workers[0].run_delay = Some(Nanos(wall.0 * 12 / 100));
}

pub(super) const SLOWING: &[Situation] = &[
    // It gets slower all the time. (Seen: times that rose from 12 to 150 ms, and "did not grow".)
    Situation {
        name: "slower and slower, few in flight",
        server: || Behaviour { slowing: MS * 20, ..constant(MS * 2) },
        flags: &[("--rate", "50"), ("-d", "8s")],
        words: &["the median of the times rose from "],
        ..UNKNOWN
    },
    Situation {
        name: "slower and slower, many in flight",
        server: || Behaviour { slowing: MS * 50, ..constant(MS * 2) },
        flags: &[("--rate", "200"), ("-d", "12s")],
        words: &["fewer than arrive"],
        ..OVERLOADED
    },
    // As many in flight as are few at that rate: "did not grow" above a warning of overload.
    Situation {
        name: "slower and slower, ten in flight",
        server: || Behaviour { slowing: MS * 10, ..constant(MS) },
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["fewer than arrive"],
        ..OVERLOADED
    },
    Situation {
        name: "slower and slower, five in flight",
        server: || Behaviour { slowing: MS * 5, ..constant(MS) },
        flags: &[("--rate", "50"), ("-d", "20s")],
        words: &["the median of the times rose from "],
        ..UNKNOWN
    },
    // The generator had to share its processor, and began all requests on time.
    Situation {
        name: "an overload, and a generator that shares its processor",
        server: || Behaviour { concurrency: Concurrency::SingleQueue, ..constant(MS * 3) },
        flags: &[("--rate", "600"), ("-d", "8s")],
        words: &["fewer than arrive", "with the generator on time"],
        outcome: RunOutcome::NoVerdict,
        beside: Some(shares_its_processor),
        ..OVERLOADED
    },
    Situation {
        name: "timeouts, and a generator that shares its processor",
        server: || Behaviour { concurrency: Concurrency::SingleQueue, ..constant(MS * 5) },
        flags: &[("--rate", "300"), ("-d", "8s"), ("--timeout", "1s")],
        claim: Claim::Outgrown,
        words: &["overloaded: "],
        hint: "use a lower rate",
        outcome: RunOutcome::NoVerdict,
        beside: Some(shares_its_processor),
        ..BASE
    },
    Situation {
        name: "a healthy target, and a generator that shares its processor",
        flags: &[("--rate", "200"), ("-d", "3s")],
        words: &["had no CPU for 12.0 % of the time"],
        hint: "",
        beside: Some(shares_its_processor),
        ..GENERATOR
    },
];
