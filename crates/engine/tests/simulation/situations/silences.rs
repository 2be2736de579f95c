//! Situations of loads that were over before they showed much, of arrivals that never started, and of
//! silences beside a generator that is busy itself.

use super::table::{BASE, GENERATOR, USERS, constant, exponential, freezing};
use super::*;

/// The worker used all of its core.
fn uses_its_core(record: &mut RunRecord) {
    for worker in &mut record.workers {
        (worker.cpu_user, worker.cpu_system, worker.polled) = (worker.wall, Nanos::ZERO, Nanos::ZERO);
    }
}

/// A freeze to nearly the end of a load that has few connections: no request fails, and half of them never
/// start.
const FROZEN: Situation = Situation {
    server: || freezing(2_000, 1_950),
    claim: Claim::StoodStill,
    words: &["no answer from 2.00 s to 3.95 s"],
    hint: "look at the target and its log at that time",
    on_http2: false,
    ..BASE
};

/// A silence beside a generator that is busy itself, in the closed model.
const BUSY: Situation =
    Situation { flags: &[("-c", "16"), ("-d", "4s")], hint: "", beside: Some(uses_its_core), ..GENERATOR };

pub(super) const SILENCES: &[Situation] = &[
    // A load that is over before more connections could matter. (Seen: "use more connections" of ten bulks.)
    Situation {
        name: "ten requests of ten users",
        server: || constant(MS * 40),
        flags: &[("-c", "10"), ("-n", "10")],
        words: &["10 users with a mean service time of 40"],
        hint: "use more requests (-n), or a length (-d)",
        ..USERS
    },
    Situation {
        name: "two requests of each user",
        server: || exponential(MS * 40),
        flags: &[("-c", "32"), ("-n", "64")],
        words: &["32 users with a mean service time of"],
        hint: "use more requests (-n), or a length (-d)",
        ..USERS
    },
    // Of arrivals that never started nobody knows how they would have ended. (Seen: PASS.)
    Situation {
        name: "a freeze of all connections, beside a limit of errors",
        flags: &[("--rate", "400"), ("-c", "5"), ("-d", "4s"), ("--threshold", "errors<0.1%")],
        outcome: RunOutcome::NoVerdict,
        ..FROZEN
    },
    Situation {
        name: "a freeze of all connections, beside a number of errors",
        flags: &[("--rate", "400"), ("-c", "5"), ("-d", "4s"), ("--threshold", "errors<10")],
        outcome: RunOutcome::NoVerdict,
        ..FROZEN
    },
    Situation {
        name: "a freeze of all connections, beside a limit that holds in any case",
        flags: &[("--rate", "400"), ("-c", "5"), ("-d", "4s"), ("--threshold", "errors<90%")],
        outcome: RunOutcome::Pass,
        ..FROZEN
    },
    // (Seen: a generator that was blamed, as no time of a measured request showed the freeze.)
    Situation {
        name: "a freeze of all connections that begins in the warm-up",
        server: || freezing(2_000, 3_000),
        flags: &[("--rate", "500"), ("-c", "100"), ("--warmup", "3s"), ("-d", "10s")],
        words: &["no answer from"],
        ..FROZEN
    },
    // (Seen: a report that told of the generator alone.)
    Situation {
        name: "a silence to the end, and a generator that uses its core",
        server: || freezing(1_000, 60_000),
        words: &[
            "the generator used 100.0 % of its core",
            "; no answer from 1.00 s on, with 16 requests in flight",
        ],
        ..BUSY
    },
    Situation {
        name: "a silence for a while, and a generator that uses its core",
        server: || freezing(1_000, 1_500),
        words: &[
            "the generator used 100.0 % of its core",
            "; no answer from 1.00 s to 2.50 s, with 16 requests",
        ],
        ..BUSY
    },
];
