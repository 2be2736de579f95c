//! Hints for users of other generators of load on language models.

use plimsoll_app::Advice;

/// Flags of theirs.
pub(crate) const ADVICE: Advice = Advice {
    flags: &[(
        &["--streaming"],
        "answers of `plimsoll llm` are streams; a plan can say `stream: false` in `completion`",
    )],
    ..Advice::NONE
};
