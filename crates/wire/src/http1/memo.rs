//! The last head seen, so that the same bytes need not be parsed again.

use super::Limits;
use super::request::RequestHead;
use super::response::ResponseHead;

/// The parsed form of a head, with the count of its fields.
pub(super) trait ParsedHead: Copy {
    fn fields(&self) -> usize;
}

/// One head and its parsed form.
///
/// Invariant: `bytes` is a whole head, from its start line to its first empty line. So an input that begins
/// with these bytes begins with this very head, whatever bytes follow.
#[derive(Clone, Debug)]
pub(super) struct Memo<H> {
    bytes: Vec<u8>,
    head: Option<H>,
}

impl<H: ParsedHead> Memo<H> {
    /// Returns the parsed form of the head at the front of `input`, and that head, if it is the remembered
    /// one.
    #[inline]
    pub(super) fn recognise<'i>(&self, limits: &Limits, input: &'i [u8]) -> Option<(H, &'i [u8])> {
        let head = self.head?;
        // A memo that was filled under wider limits must not bypass these limits.
        let within = self.bytes.len() <= limits.head_bytes && head.fields() <= limits.headers;
        if within && input.starts_with(&self.bytes) { Some((head, &input[..self.bytes.len()])) } else { None }
    }

    pub(super) fn remember(&mut self, bytes: &[u8], head: H) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.head = Some(head);
    }
}

impl<H> Default for Memo<H> {
    fn default() -> Self {
        Self { bytes: Vec::new(), head: None }
    }
}

/// Remembers the last response head of one step. One per worker and step, shared by all connections.
#[derive(Clone, Debug, Default)]
pub struct HeadMemo(pub(super) Memo<ResponseHead>);

impl HeadMemo {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Remembers the last request head. One per worker of a server, shared by all its connections.
#[derive(Clone, Debug, Default)]
pub struct RequestMemo(pub(super) Memo<RequestHead>);

impl RequestMemo {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}
