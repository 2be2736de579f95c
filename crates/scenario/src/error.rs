//! Errors in templates and requests.

use std::fmt;

/// Reason why a template or a request could not be compiled, with advice.
///
/// Neither text ever contains a header's value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    message: String,
    hint: Option<String>,
}

impl TemplateError {
    /// An error without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds advice to the error.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place of the error to its message: `place: message`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Returns the description of the error, without a full stop.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns advice on how to fix it, if there is any.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}
