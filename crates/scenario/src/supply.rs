//! Bodies that are made while the run goes on, or were made before it.

use std::fmt;
use std::sync::Arc;

/// Where the bodies of requests with [`Body::Supplied`](crate::Body::Supplied) come from.
#[derive(Clone, Debug)]
pub struct Supply {
    /// Records that each body has, for reports.
    pub records: u32,
    /// The bodies.
    pub bodies: Bodies,
}

/// The bodies of a supply.
#[derive(Clone)]
pub enum Bodies {
    /// Another one for each request.
    Fresh(Arc<dyn BodySource>),
    /// These over and over, in their order. There is at least one.
    Ready(Arc<[Arc<[u8]>]>),
}

/// What can make bodies.
pub trait BodySource: fmt::Debug + Send + Sync {
    /// What makes them, for one thread: with the same seed, the same bodies.
    fn open(&self, seed: u64) -> Box<dyn BodyMaker>;

    /// For how long the times in one body go on, in nanoseconds, at least 1: see
    /// [`Turns`](plimsoll_core::Turns).
    fn span_ns(&self) -> u64;

    /// When the times of the first body begin, in nanoseconds since 1970; `None` for when it is made.
    fn start_ns(&self) -> Option<u64> {
        None
    }
}

/// Makes bodies.
pub trait BodyMaker: Send {
    /// Replaces what `out` has by body `number`, whose times begin at `unix_ns` (nanoseconds since 1970). No
    /// two bodies of one source that are sent have the same number; they are made in any order.
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>);
}

/// Without the bodies.
impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh(source) => f.debug_tuple("Fresh").field(source).finish(),
            Self::Ready(bodies) => f.debug_tuple("Ready").field(&bodies.len()).finish(),
        }
    }
}
