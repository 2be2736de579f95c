//! Received responses and sent requests, as far as a scenario reads them.

use std::ops::Range;

/// The fields of a head, in their order; names in lower case. Used again without allocating.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldList {
    bytes: Vec<u8>,
    fields: Vec<(Range<u32>, Range<u32>)>,
}

impl FieldList {
    /// Forgets the fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Adds a field. The name is put into lower case.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_with(name, |out| out.extend_from_slice(value));
    }

    /// Adds a field whose value `write` appends to its argument; it must not change the argument otherwise.
    /// The name is put into lower case.
    pub(crate) fn push_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.bytes[start as usize..].make_ascii_lowercase();
        let middle = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.fields.push((start..middle, middle..self.bytes.len() as u32));
    }

    /// The value of the first field of this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name.as_bytes()).map(|(_, value)| value)
    }

    /// The values of all fields of this name, which is in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(known, _)| *known == name.as_bytes()).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let text = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        self.fields.iter().map(move |(name, value)| (text(name), text(value)))
    }

    /// Removes the fields of which `keep` does not hold. Their bytes stay until all are forgotten.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let bytes = &self.bytes;
        let text = |range: &Range<u32>| &bytes[range.start as usize..range.end as usize];
        self.fields.retain(|(name, value)| keep(text(name), text(value)));
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns `true` if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// A whole response. It has the fields and the body that the step [needs](Needs).
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The status code; 0 if there was no response.
    pub status: u16,
    /// The fields, without `:status`.
    pub fields: &'a FieldList,
    /// The content, without the framing of chunks; unpacked if the [handler asks for
    /// that](crate::ResponseHandler::decodes).
    pub body: &'a [u8],
    /// The host that was asked, without a port: cookies belong to it.
    pub host: &'a [u8],
    /// `host[:port]` that was asked: references are resolved against it.
    pub authority: &'a [u8],
    /// `true` if the connection was over TLS: only then may a cookie be for such connections alone.
    pub secure: bool,
    /// Wall-clock time in seconds since 1970, for the age of cookies.
    pub unix_s: u64,
    /// Identifies answers to the last supplied body: the id of the session's [follow-up](crate::FollowUp).
    pub id: Option<[u8; 32]>,
}

impl<'a> Received<'a> {
    /// A response for which cookies do not matter.
    pub const fn new(status: u16, fields: &'a FieldList, body: &'a [u8]) -> Self {
        Self { status, fields, body, host: b"", authority: b"", secure: false, unix_s: 0, id: None }
    }

    /// Returns `true` if there was no response. Then only values of the request can be taken.
    pub const fn is_missing(&self) -> bool {
        self.status == 0
    }
}

/// A request as it was sent, as far as the step [needs](Needs) it. Its memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentRequest {
    /// The method.
    pub method: Vec<u8>,
    /// Path and query.
    pub path: Vec<u8>,
    /// `host[:port]`.
    pub authority: Vec<u8>,
    /// The other fields, without pseudo-headers.
    pub fields: FieldList,
    /// The content.
    pub body: Vec<u8>,
}

/// Which fields of a response's head are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldNeeds {
    /// None.
    #[default]
    Nothing,
    /// Every field of these names, in lower case.
    Named(Vec<String>),
    /// All of them.
    All,
}

/// Parts of an exchange that are kept for the logic of its step. Other parts are not built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Fields of the response.
    pub fields: FieldNeeds,
    /// `true` if the body of the response is kept, up to [`Needs::LONGEST_BODY`] bytes.
    pub body: bool,
    /// `true` if the body of the response is read as it comes, as a stream of events.
    pub events: bool,
    /// `true` if the content of the request goes out message by message, each but the first after an event.
    pub in_turn: bool,
    /// `true` if the path of the request is kept.
    pub path: bool,
    /// `true` if the whole request is kept.
    pub request: bool,
}

impl Needs {
    /// Bytes of a body that are kept at most: a response with more fails where its body is read.
    pub const LONGEST_BODY: usize = 16 << 20;

    /// Returns `true` if nothing of the response is kept.
    pub fn is_nothing(&self) -> bool {
        !self.body && self.fields == FieldNeeds::Nothing
    }
}
