//! Simulated servers of protocols other than HTTP.
//!
//! The work, the pauses and the faults of a server are those of every server; a [`SimProtocol`] is the part
//! that knows how requests and answers are written. Like [`request`](crate::request) these are deliberately
//! simple, and share nothing with the product.

pub mod websocket;

use std::fmt;
use std::sync::Arc;

use plimsoll_core::Nanos;

pub use crate::request::NotARequest;

/// The server's half of one connection.
pub trait SimProtocol: fmt::Debug + Send {
    /// Takes every whole message out of `input`, and gives orders in their turn.
    ///
    /// # Errors
    /// If there is something else at the front: the server ends the connection.
    fn receive(&mut self, input: &mut Vec<u8>, orders: &mut Vec<Order>) -> Result<(), NotARequest>;
}

/// What a server is to do on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// To answer a request when its work is done, unless a fault comes in between. It is in the truth log.
    Answer(Exchange),
    /// To say something at once, whatever the faults are: in answer to what is no request.
    Say(Saying),
}

/// A request, and the answers to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request.
    pub request: Vec<u8>,
    /// The good answer.
    pub answer: Vec<u8>,
    /// The answer in place of a status that is a [fault](crate::Faults::statuses).
    pub refusal: Vec<u8>,
    /// What is said unasked after a good answer, each so long after it.
    pub then: Vec<(Nanos, Saying)>,
}

/// Something that a server says on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saying {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end of the connection.
    End,
}

/// A maker of the server's half for each connection.
#[derive(Clone)]
pub struct Speaks(Arc<dyn Fn() -> Box<dyn SimProtocol> + Send + Sync>);

impl Speaks {
    /// A server whose connections each begin with what `half` gives.
    pub fn new<P: SimProtocol + 'static>(half: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(half())))
    }

    pub(crate) fn begin(&self) -> Box<dyn SimProtocol> {
        self.0()
    }
}

impl fmt::Debug for Speaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Speaks")
    }
}

impl PartialEq for Speaks {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
