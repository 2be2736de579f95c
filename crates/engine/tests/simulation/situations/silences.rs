//! Situations of loads that were over before they showed much.

use super::table::{USERS, constant, exponential};
use super::*;

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
];
