//! A text that is replaced while templates render it.

use std::sync::{Arc, Mutex, PoisonError};

/// A text that one thread replaces while others render it: a value that a setup has set, and that is set
/// again during the load. Clones are the same text.
#[derive(Clone, Default)]
pub struct SharedText(Arc<Mutex<Vec<u8>>>);

impl SharedText {
    /// A text with this value.
    pub fn new(text: &[u8]) -> Self {
        Self(Arc::new(Mutex::new(text.to_vec())))
    }

    /// Replaces the value.
    pub fn set(&self, text: &[u8]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.to_vec();
    }

    /// The value as it is now.
    pub fn value(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Appends the value. The lock is held for the time of a copy, and taken once per variable and iteration.
    pub(crate) fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Values are often secrets.
impl std::fmt::Debug for SharedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedText")
    }
}

/// Two are equal if they are the same text, and not if they have the same value now.
impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedText {}
