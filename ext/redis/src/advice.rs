//! Hints for users of redis-benchmark.

use plimsoll_app::{Advice, OtherProgram};

/// Names and flags of other load generators for Redis.
pub(crate) const ADVICE: Advice = Advice {
    programs: &[OtherProgram::plain(
        &["redis-benchmark", "valkey-benchmark"],
        "Redis' own benchmark",
        "plimsoll redis",
    )],
    flags: &[
        (
            &["-P"],
            "commands ahead of their replies are --pipeline (redis-benchmark's and curl's `-P` are others)",
        ),
        (&["--keyspacelen"], "the number of keys is --keys, with --key random"),
    ],
    ..Advice::NONE
};
