//! The faults of a run so far, for results that are asked for while it goes on.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_report::fault::FaultMark;

/// Faults so far, shared between the thread that makes them and those that answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultLog(Arc<Mutex<Vec<FaultMark>>>);

impl FaultLog {
    /// Replaces them by those that there are now.
    pub(crate) fn set(&self, faults: Vec<FaultMark>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Returns them in the order of their begins.
    pub(crate) fn get(&self) -> Vec<FaultMark> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
