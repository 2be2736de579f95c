//! Values as they were typed, before anything is parsed.

use std::borrow::Cow;
use std::fmt;

use crate::{Place, Problem};

/// One value as it was typed, with its source.
#[derive(Clone, PartialEq, Eq)]
pub struct RawValue {
    /// The text.
    pub text: String,
    /// Name of its source, for messages: `--rate`, `run.rate`, `PLIMSOLL_RATE`.
    pub by: Cow<'static, str>,
    /// Place of the value, if a plan file has it.
    pub place: Option<Place>,
    /// Meaning of this flag's letter in other tools: the advice when the text makes no sense here.
    pub habit: Option<&'static str>,
    /// Set if the value is known to be wrong and has been reported. It causes no further messages.
    pub reported: bool,
}

impl RawValue {
    /// `text`, given by the flag `by`.
    pub fn new(by: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { text: text.into(), by: by.into(), place: None, habit: None, reported: false }
    }

    /// Returns the value with a place in the plan file: paths in it are relative to the folder of the plan.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// A problem with this value, at its place.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(message).at(self.place)
    }

    /// Returns the value with advice for people who know the letter of the flag from another tool.
    #[must_use]
    pub fn with_habit(mut self, habit: &'static str) -> Self {
        self.habit = Some(habit);
        self
    }
}

/// Without the text: it may be a secret.
impl fmt::Debug for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.by)
    }
}
