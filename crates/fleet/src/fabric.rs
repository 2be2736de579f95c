//! The way of messages from one process to others.

use plimsoll_core::Nanos;

/// A message as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The subject that it was published on.
    pub subject: String,
    /// Its content.
    pub payload: Vec<u8>,
}

/// Carrier of messages: a broker, or a simulation of one in virtual time.
///
/// A message may be lost, come twice, or overtake others; it is never changed. What arrives is handed to the
/// state machine by whoever drives it. There are no requests with an answer at this level: orders are
/// repeated until they were answered, so that one rule covers a lost order, a lost answer and a broker that
/// was away.
pub trait Fabric {
    /// Hands over a message for everybody who has subscribed to its subject.
    fn publish(&mut self, subject: &str, payload: Vec<u8>);

    /// Asks for the messages of a subject from now on: `*` stands for one word, `>` for all that follow.
    fn subscribe(&mut self, pattern: &str);
}

/// The present, on both clocks of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// A clock that is never set: for time limits.
    pub monotonic: Nanos,
    /// Unix time, as this machine knows it: for instants that others are told.
    pub unix: Nanos,
}
