//! State that the threads of a sink share, and the counts of each.

use std::sync::atomic::{AtomicU64, Ordering};

use super::options::SinkOptions;
use super::reply::Forms;
use super::truth::Action;
use crate::server_threads::Stopper;

/// State that the threads of a sink share. Only the counter is written to while requests are served.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) options: SinkOptions,
    pub(crate) forms: Forms,
    counter: OwnLine,
    pub(crate) stopper: Stopper,
}

/// The counter on a cache line of its own (128 bytes: x86 fetches lines in pairs), so that counting does not
/// take the options away from the other threads.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLine(AtomicU64);

impl Setup {
    pub(crate) fn new(options: SinkOptions) -> Self {
        let forms = Forms::new(&options);
        Self { options, forms, counter: OwnLine::default(), stopper: Stopper::default() }
    }

    /// Counts one request and gives it its number.
    // Relaxed: numbers have to be unique and without gaps, nothing else is published by them.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.counter.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn counted(&self) -> u64 {
        self.counter.0.load(Ordering::Relaxed)
    }
}

/// Counts of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) connections: u64,
    /// Connections that turned out to speak HTTP/1.1.
    pub(crate) http1: u64,
    /// Connections that turned out to speak HTTP/2.
    pub(crate) http2: u64,
    /// Streams that clients reset.
    pub(crate) cancelled: u64,
    pub(crate) replied: u64,
    pub(crate) statuses: u64,
    pub(crate) dropped: u64,
    pub(crate) resets: u64,
    pub(crate) refusals: u64,
    pub(crate) rejections: u64,
    pub(crate) garbage: u64,
    pub(crate) abandoned: u64,
    pub(crate) refused: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, action: Action) {
        let counter = match action {
            Action::Replied => &mut self.replied,
            Action::Status(_) => &mut self.statuses,
            Action::Dropped => &mut self.dropped,
            Action::Reset => &mut self.resets,
            Action::Refused => &mut self.refusals,
            Action::Rejected => &mut self.rejections,
            Action::Garbage => &mut self.garbage,
            Action::Abandoned => &mut self.abandoned,
        };
        *counter += 1;
    }
}

crate::add_fields!(Tally {
    connections,
    http1,
    http2,
    cancelled,
    replied,
    statuses,
    dropped,
    resets,
    refusals,
    rejections,
    garbage,
    abandoned,
    refused
});
