//! Settings of a workload that do not go together.

use std::fmt;

/// Settings that exclude each other, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    message: String,
    hint: String,
}

impl WorkloadError {
    /// Settings that exclude each other, with advice.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// Returns advice on how to fix the problem.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WorkloadError {}
