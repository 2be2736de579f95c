//! The content of a message on its way out.

use std::sync::Arc;

use super::frame::{flag, kind, put_head};
use super::window::SendWindow;

/// The content of a request or a reply.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// No content: the message ends with its head.
    None,
    /// Content of this message; the part that the windows hold back is copied.
    Bytes(&'a [u8]),
    /// Content of many messages; the part that the windows hold back is shared.
    Shared(&'a Arc<[u8]>),
}

impl<'a> Payload<'a> {
    /// The content; empty for [`Payload::None`].
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match *self {
            Self::None => &[],
            Self::Bytes(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// Bytes of content.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns `true` if there is no content.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }
}

/// Bytes of an allocation that are kept for the next content that has to wait in the same place: those of a
/// thousand streams are a few megabytes.
const ROOM_KEPT: usize = 4096;

/// Content that waits for a window. Keeps a small allocation for the next that has to wait in the same place.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    copied: Vec<u8>,
    shared: Option<Arc<[u8]>>,
    /// Bytes already sent of either.
    sent: usize,
}

impl Unsent {
    /// Returns `true` if nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Returns the bytes that wait.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        let bytes = self.shared.as_deref().unwrap_or(&self.copied);
        &bytes[self.sent..]
    }

    /// Appends `payload` without its first `sent` bytes to the waiting content.
    pub(super) fn keep(&mut self, payload: Payload<'_>, sent: usize) {
        match payload {
            Payload::Shared(bytes) if self.is_empty() => {
                self.copied.clear();
                self.shared = Some(Arc::clone(bytes));
                self.sent = sent;
            }
            _ => self.append(&payload.bytes()[sent..]),
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        match self.shared.take() {
            Some(shared) => {
                self.copied.clear();
                self.copied.extend_from_slice(&shared[self.sent..]);
            }
            None => drop(self.copied.drain(..self.sent)),
        }
        self.sent = 0;
        self.copied.extend_from_slice(bytes);
    }

    /// Drops everything that waits.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.copied.clear();
        self.copied.shrink_to(ROOM_KEPT);
        self.shared = None;
        self.sent = 0;
    }

    /// Appends one DATA frame of the waiting content, as large as the windows and `max_frame_size` allow;
    /// with END_STREAM if it is the last and `end` is set. Gives the bytes of content sent.
    pub(super) fn send_frame(&mut self, to: &mut StreamOutput<'_>, end: bool, out: &mut Vec<u8>) -> usize {
        let sent = to.put_frame(self.rest(), end, out);
        self.sent += sent;
        if self.is_empty() {
            self.clear();
        }
        sent
    }
}

/// The destination of DATA of one stream: the stream, the windows that it needs, and the peer's limit.
#[derive(Debug)]
pub(super) struct StreamOutput<'w> {
    pub(super) stream: u32,
    pub(super) connection: &'w mut SendWindow,
    pub(super) window: &'w mut SendWindow,
    /// The peer's SETTINGS_MAX_FRAME_SIZE.
    pub(super) max_frame_size: u32,
}

impl StreamOutput<'_> {
    /// Appends DATA frames with as much of `bytes` as the windows allow; END_STREAM goes with the last byte
    /// if
    /// `end` is set. Gives the bytes of content sent.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.put_frame(&bytes[sent..], end, out) {
                0 => break,
                more => sent += more,
            }
        }
        sent
    }

    fn put_frame(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let allowed = self.max_frame_size.min(self.connection.available()).min(self.window.available());
        let length = bytes.len().min(allowed as usize);
        if length == 0 {
            return 0;
        }
        let flags = if end && length == bytes.len() { flag::END_STREAM } else { 0 };
        put_head(out, length as u32, kind::DATA, flags, self.stream);
        out.extend_from_slice(&bytes[..length]);
        self.connection.take(length as u32);
        self.window.take(length as u32);
        length
    }
}
