//! Working memory of the hot loop.

use plimsoll_wire::http2;

use crate::connection::Completed;
use crate::websocket::MessageRoom;

/// Buffers that keep their memory between uses, so that the loop allocates nothing per request.
///
/// Each is filled and emptied within one call of the worker; lists are taken out while they are worked off,
/// because that may use the worker as a whole, and put back afterwards.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Replies that came in turn, decoded and not yet handled.
    pub(super) completed: Vec<Completed>,
    /// Events of HTTP/2 that came, decoded and not yet handled.
    pub(super) events: Vec<http2::Event>,
    /// Tickets of the requests on one connection whose time is over.
    pub(super) overdue: Vec<u32>,
    /// Requests on one connection of whose responses enough has come, each with the status of the response.
    pub(super) enough: Vec<(u32, u16)>,
    /// Decrypted bytes of the present event.
    pub(super) plain: Vec<u8>,
    /// Content of an answer that is judged as it comes.
    pub(super) content: Vec<u8>,
    /// Bytes that a protocol wants to send by itself.
    pub(super) control: Vec<u8>,
    /// WebSocket: room for messages.
    pub(super) messages: MessageRoom,
}
