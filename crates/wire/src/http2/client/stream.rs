//! State of one open stream.

use crate::http2::flow::Flow;
use crate::http2::frame::HEAD_BYTES;
use crate::http2::settings::PeerSettings;
use crate::http2::window::ReceiveWindow;

use super::{Response, Submit};

/// No length is expected of the content.
const ANY_LENGTH: u64 = u64::MAX;

/// The part of a response's content that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    Nothing,
    /// Only the beginning, for a failure response.
    Quote,
    Whole,
    /// The whole, with events to the owner as it comes.
    Told,
}

/// One request and as much of its response as has come. 64 bytes: content that waits to be sent is kept
/// elsewhere.
#[derive(Debug)]
pub(super) struct Stream {
    /// With the identifier of the stream.
    pub(super) flow: Flow,
    pub(super) receive_window: ReceiveWindow,
    /// Bytes of HEADERS, CONTINUATION and DATA frames, their heads included.
    pub(super) wire_bytes: u64,
    /// Content that came or is announced by a DATA frame that is coming.
    pub(super) body_bytes: u64,
    /// Final value that `body_bytes` must reach, or [`ANY_LENGTH`].
    pub(super) expected_bytes: u64,
    pub(super) head_bytes: u32,
    pub(super) interim: u32,
    /// 0 until the final head came.
    pub(super) status: u16,
    pub(super) head_request: bool,
    pub(super) capture: bool,
    pub(super) keeps: Retention,
    /// Set once a HEADERS frame came.
    pub(super) began: bool,
}

impl Stream {
    /// A slot without a stream.
    pub(super) const fn vacant() -> Self {
        Self {
            flow: Flow::vacant(),
            receive_window: ReceiveWindow::new(0),
            wire_bytes: 0,
            body_bytes: 0,
            expected_bytes: ANY_LENGTH,
            head_bytes: 0,
            interim: 0,
            status: 0,
            head_request: false,
            capture: false,
            keeps: Retention::Nothing,
            began: false,
        }
    }

    /// Begins a request in this slot, which is vacant.
    #[inline]
    pub(super) fn open(&mut self, id: u32, peer: &PeerSettings, window: u32, spec: &Submit<'_>) {
        self.flow.open(id, peer);
        self.receive_window = ReceiveWindow::new(window);
        self.wire_bytes = 0;
        self.body_bytes = 0;
        self.expected_bytes = ANY_LENGTH;
        self.head_bytes = 0;
        self.interim = 0;
        self.status = 0;
        self.head_request = spec.head_request;
        self.capture = spec.capture;
        self.keeps = match spec.keep_body {
            true if spec.tell_content => Retention::Told,
            true => Retention::Whole,
            false => Retention::Nothing,
        };
        self.began = false;
    }

    /// The identifier; 0 if the slot is vacant.
    #[inline]
    pub(super) fn id(&self) -> u32 {
        self.flow.stream
    }

    /// Returns `true` once the final head came.
    #[inline]
    pub(super) fn has_head(&self) -> bool {
        self.status != 0
    }

    /// Takes in the final head.
    #[inline]
    pub(super) fn take_head(&mut self, status: u16, content_length: Option<u64>, head_bytes: usize) {
        self.status = status;
        self.head_bytes = head_bytes as u32;
        // RFC 9110 section 6.4.1: these have no content, whatever content-length says.
        let no_content = self.head_request || matches!(status, 204 | 304);
        self.expected_bytes = if no_content { 0 } else { content_length.unwrap_or(ANY_LENGTH) };
    }

    /// Counts a frame of the response with `length` bytes of payload.
    #[inline]
    pub(super) fn count_frame(&mut self, length: u32) {
        self.wire_bytes += HEAD_BYTES as u64 + u64::from(length);
    }

    /// Returns `true` if the content has the length that the head announced.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.expected_bytes == ANY_LENGTH || self.body_bytes == self.expected_bytes
    }

    #[inline]
    pub(super) fn response(&self) -> Response {
        Response {
            status: self.status,
            head_bytes: u64::from(self.head_bytes),
            body_bytes: self.body_bytes,
            wire_bytes: self.wire_bytes,
            interim: self.interim,
        }
    }
}
