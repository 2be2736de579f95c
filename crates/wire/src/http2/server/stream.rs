//! State of one open stream.

use crate::http2::flow::Flow;
use crate::http2::window::ReceiveWindow;

/// One request and as much of its reply as has been given.
#[derive(Debug)]
pub(super) struct Stream {
    /// The outgoing reply, with the identifier of the stream.
    pub(super) flow: Flow,
    pub(super) receive_window: ReceiveWindow,
    pub(super) state: State,
    pub(super) head_request: bool,
    /// The request has not come whole. Only a server that hands over [parts](super::Request::whole) answers
    /// before that.
    pub(super) receiving: bool,
    /// The DATA frame that is coming ends the request.
    pub(super) ending: bool,
    /// Header block of the trailers that follow the content that waits; empty if none do.
    pub(super) trailers: Vec<u8>,
    /// Content that came or is announced by a DATA frame that is coming.
    pub(super) body_bytes: u64,
    /// Final value that `body_bytes` must reach, or [`ANY_LENGTH`].
    pub(super) expected_bytes: u64,
    /// The number of the call of `receive` in which the request became whole, modulo 2^32.
    pub(super) whole_at: u32,
}

/// No length is expected of the content.
pub(super) const ANY_LENGTH: u64 = u64::MAX;

/// The progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Content or trailers of the request are still to come.
    Requesting,
    /// The request is whole and was handed over.
    Waiting,
    /// The head of the reply was given.
    Replying,
}

impl Stream {
    /// A slot without a stream.
    pub(super) const fn vacant() -> Self {
        Self {
            flow: Flow::vacant(),
            receive_window: ReceiveWindow::new(0),
            state: State::Requesting,
            head_request: false,
            receiving: false,
            ending: false,
            trailers: Vec::new(),
            body_bytes: 0,
            expected_bytes: ANY_LENGTH,
            whole_at: 0,
        }
    }

    /// Returns `true` if the content has the length that the head announced.
    pub(super) fn is_whole(&self) -> bool {
        self.expected_bytes == ANY_LENGTH || self.body_bytes == self.expected_bytes
    }
}
