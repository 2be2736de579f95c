//! Why a case could not be measured.

use std::fmt::{self, Display};

/// Why a case could not be measured: one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

/// Result of everything in this program that can fail.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// `what` failed because of `error`.
    pub(crate) fn because(what: impl Display, error: impl Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
