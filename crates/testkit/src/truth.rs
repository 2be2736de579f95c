//! The truth log: the requests that the simulated servers received, and their actions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;

/// A server's decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Answered with a whole response of this status.
    Reply(u16),
    /// Not answered: the reply was dropped, and the connection (in HTTP/2 the stream) fell silent.
    Drop,
    /// The connection (in HTTP/2 the stream) was reset instead.
    Reset,
    /// The connection was closed instead, in HTTP/2 after GOAWAY.
    Close,
    /// Answered with a part of the announced body, and closed (in HTTP/2 the stream was ended).
    Truncate,
    /// Answered with more than the announced body.
    Excess,
    /// Answered with something that is not HTTP.
    Garbage,
    /// Answered with header fields without an end.
    EndlessHead,
    /// The stream was refused (HTTP/2), because of a fault or of the limit of streams.
    Refuse,
    /// Not a request: answered with 400 (in HTTP/2 with GOAWAY and the code of the broken rule), and
    /// closed.
    Reject,
    /// Received on a connection that was silent or about to close: not answered.
    Ignore,
}

/// One request as its server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Whose world: the number of the worker, in the first run of a [`SimOpen`](crate::SimOpen).
    pub world: u32,
    /// Number of the connection within the world, in the order of connecting, from 0.
    pub conn: u64,
    /// Number of the request on its connection, from 0.
    pub index: u64,
    /// When the last byte of the request reached the server's machine.
    pub received: Nanos,
    /// When the server carried out the action: handed over the whole response, closed or reset. `None` if it
    /// never did, or if the client had gone or had reset the stream by then.
    pub replied: Option<Nanos>,
    /// Action that the server took, or would have taken.
    pub action: Action,
    /// The request's bytes, if [`SimOptions::keep_requests`](crate::SimOptions::keep_requests) asked for
    /// them. One of HTTP/2 is written as if it were of HTTP/1.1: `GET /path HTTP/2`, `host` for `:authority`,
    /// the other fields in their order, and the body.
    pub request: Vec<u8>,
}

/// The log of all requests of all worlds. Clones share one log, so it can be read after the backend is gone.
#[derive(Clone, Debug, Default)]
pub struct TruthLog(Arc<Mutex<BTreeMap<u32, Vec<Truth>>>>);

impl TruthLog {
    /// A copy of the whole log, in the order in which requests were received; those of the same instant by
    /// their worlds.
    pub fn entries(&self) -> Vec<Truth> {
        let mut entries: Vec<Truth> = self.lock().values().flatten().cloned().collect();
        entries.sort_by_key(|entry| entry.received);
        entries
    }

    /// Returns the number of requests received.
    pub fn len(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    /// Returns `true` if no request was received.
    pub fn is_empty(&self) -> bool {
        self.lock().values().all(Vec::is_empty)
    }

    /// Counts the requests whose action `matches`.
    pub fn count(&self, matches: impl Fn(Action) -> bool) -> usize {
        self.lock().values().flatten().filter(|truth| matches(truth.action)).count()
    }

    /// Adds an entry, and returns its number within its world.
    pub(crate) fn push(&self, truth: Truth) -> usize {
        let mut worlds = self.lock();
        let entries = worlds.entry(truth.world).or_default();
        entries.push(truth);
        entries.len() - 1
    }

    pub(crate) fn note_reply(&self, world: u32, entry: usize, at: Nanos) {
        if let Some(entries) = self.lock().get_mut(&world) {
            entries[entry].replied = Some(at);
        }
    }

    /// A panic of one worker must not hide the entries of the others.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<Truth>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
