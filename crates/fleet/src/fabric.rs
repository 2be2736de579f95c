//! The transport of messages between processes.

use plimsoll_core::Nanos;

/// A message as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The subject that it was published on.
    pub subject: String,
    /// Content of the message.
    pub payload: Vec<u8>,
}

/// A transport of messages: a broker, or a simulation of one in virtual time.
///
/// A message may be lost, duplicated or reordered, but is never changed. The driver of a state machine hands
/// it the messages that arrive. This level has no requests with an answer: orders are repeated until they
/// are answered, so that one rule covers a lost order, a lost answer and an unreachable broker.
pub trait Fabric {
    /// Publishes a message to all subscribers of its subject.
    fn publish(&mut self, subject: &str, payload: Vec<u8>);

    /// Subscribes to a subject from now on: `*` stands for one word, `>` for all that follow.
    fn subscribe(&mut self, pattern: &str);
}

/// The present, on both clocks of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// A clock that is never set: for time limits.
    pub monotonic: Nanos,
    /// Unix time by the clock of this machine: for instants in messages.
    pub unix: Nanos,
}
