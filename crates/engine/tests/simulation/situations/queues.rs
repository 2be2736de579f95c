//! Situations of users before a queue, and of answers that come too late.

use plimsoll_testkit::Concurrency;

use super::table::{BASE, capacity, constant};
use super::*;

const OUTGROWN: Situation = Situation {
    claim: Claim::Outgrown,
    words: &["answers took longer and longer", "none came within the 1.00 s"],
    hint: "use a lower rate or fewer users",
    outcome: RunOutcome::Fail,
    ..BASE
};
const PERHAPS: Situation = Situation {
    claim: Claim::PerhapsQueue,
    words: &["they may wait for one another, or only vary"],
    hint: "try other numbers of connections",
    on_http2: false,
    ..BASE
};

pub(super) const QUEUES: &[Situation] = &[
    // Each of few users waits for the others, and more of them would be answered no faster.
    Situation {
        name: "two users before a queue",
        server: || capacity(200),
        flags: &[("-c", "2"), ("-d", "3s")],
        ..PERHAPS
    },
    Situation {
        name: "three users before a queue",
        server: || capacity(200),
        flags: &[("-c", "3"), ("-d", "3s")],
        ..PERHAPS
    },
    Situation {
        name: "twice as many users as are served at once",
        server: || Behaviour { concurrency: Concurrency::Capacity(10), ..constant(MS * 50) },
        flags: &[("-c", "20"), ("-d", "5s")],
        ..PERHAPS
    },
    // Answers that come, and too late.
    Situation {
        name: "overload until requests time out",
        server: || capacity(200),
        flags: &[("--rate", "260"), ("-d", "10s"), ("--timeout", "1s")],
        ..OUTGROWN
    },
    Situation {
        name: "users who wait for less time than they have to",
        server: || capacity(200),
        flags: &[("-c", "800"), ("-d", "10s"), ("--timeout", "1s")],
        ..OUTGROWN
    },
];
