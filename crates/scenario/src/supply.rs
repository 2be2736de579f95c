//! Bodies that are made while the run goes on, or were made before it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The source of the bodies of requests with [`Body::Supplied`](crate::Body::Supplied).
#[derive(Clone, Debug)]
pub struct BodySupply {
    /// Records that each body has, for reports.
    pub records: u32,
    /// The bodies.
    pub bodies: Bodies,
    /// Bodies that were made before the run, each of which is taken before any other, and once.
    pub stock: Arc<[SuppliedBody]>,
}

/// The bodies of a supply.
#[derive(Clone)]
pub enum Bodies {
    /// Another one for each request.
    Fresh(Arc<dyn BodySource>),
    /// These over and over, in their order. There is at least one.
    Ready(Arc<[SuppliedBody]>),
}

/// A body, with its metadata.
#[derive(Clone, Debug)]
pub struct SuppliedBody {
    /// The body.
    pub body: Arc<[u8]>,
    /// Inquiry after its outcome, to be sent later; `None` if the outcome is not asked for.
    pub follow_up: Option<FollowUp>,
    /// When it may be sent, in nanoseconds since 1970: signatures expire.
    pub window: RangeInclusive<u64>,
    /// Bodies that its session sends after it in place of further ones of the supply, the last one first.
    pub turns: Vec<Arc<[u8]>>,
}

/// Inquiry after the outcome of a request.
#[derive(Clone, Debug)]
pub struct FollowUp {
    /// Identifier by which its answers are known: a request id, say.
    pub id: [u8; 32],
    /// The body of the request that asks.
    pub inquiry: Arc<[u8]>,
}

impl SuppliedBody {
    /// A body with nothing beside it, which may be sent at any time.
    pub fn plain(body: Arc<[u8]>) -> Self {
        Self { body, follow_up: None, window: ALWAYS, turns: Vec::new() }
    }
}

/// The window of bodies that never expire.
pub const ALWAYS: RangeInclusive<u64> = 0..=u64::MAX;

/// Source of bodies.
pub trait BodySource: fmt::Debug + Send + Sync {
    /// Opens a maker of bodies for one thread: with the same seed, the same bodies.
    fn open(&self, seed: u64) -> Box<dyn BodyMaker>;

    /// For how long the times in one body go on, in nanoseconds, at least 1: see
    /// [`SequenceAllocator`](plimsoll_core::SequenceAllocator).
    fn span_ns(&self) -> u64;

    /// When the times of the first body begin, in nanoseconds since 1970; `None` for when it is made.
    fn start_ns(&self) -> Option<u64> {
        None
    }

    /// Returns the number of bodies that are made and handed over at a time: more than one where they are
    /// small and many.
    fn batch(&self) -> usize {
        1
    }

    /// Reports whether the bodies are signed: if too few are made ahead, signing limits a run.
    fn is_signed(&self) -> bool {
        false
    }

    /// Threads that make bodies ahead, for each worker.
    fn makers(&self) -> usize {
        1
    }
}

/// Makes bodies.
pub trait BodyMaker: Send {
    /// Replaces the content of `out` by body `number`, whose times begin at `unix_ns` (nanoseconds since
    /// 1970). No two bodies of one source that are sent have the same number; they are made in any order.
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>);

    /// Replaces the content of `out` by the inquiry after the body that was made last, if there is one to
    /// make: the id by which answers to both are known.
    fn inquire(&mut self, _out: &mut Vec<u8>) -> Option<[u8; 32]> {
        None
    }

    /// Replaces the content of `out` by the body that belongs behind the one that was made last, by its place
    /// from 1: a later turn of the same conversation. Returns `false` if there is none.
    fn follow(&mut self, _turn: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// When the body that was made last may be sent, in nanoseconds since 1970.
    fn window(&self) -> RangeInclusive<u64> {
        ALWAYS
    }
}

impl dyn BodyMaker {
    /// Makes body `number`, with its metadata; `scratch` is room to make it in.
    pub fn made(&mut self, number: u64, unix_ns: u64, scratch: &mut Vec<u8>) -> SuppliedBody {
        self.make(number, unix_ns, scratch);
        let (body, window) = (Arc::from(&scratch[..]), self.window());
        let follow_up = self.inquire(scratch).map(|id| FollowUp { id, inquiry: Arc::from(&scratch[..]) });
        let mut turns: Vec<Arc<[u8]>> = Vec::new();
        while self.follow(turns.len() + 1, scratch) {
            turns.push(Arc::from(&scratch[..]));
        }
        turns.reverse();
        SuppliedBody { body, follow_up, window, turns }
    }
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
