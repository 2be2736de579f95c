//! The client's half: replies, one after the other, out of a byte stream.

use plimsoll_wire::http1::LONGEST_KEPT_BODY;

use super::{Kind, LENGTH_BYTES, LONGEST_FRAME, MISSING_TEXT, Operation, ProtocolError, Truncated, number};

/// Bytes of an error's text that a client remembers, to name the failure by.
pub const LONGEST_ERROR_TEXT: usize = 256;

/// Bytes before the content of a reply that has one: length, kind, and length of the content.
const LONG_HEAD: usize = 2 * LENGTH_BYTES + 1;

/// Bytes of a reply without content: length and kind.
const SHORT_REPLY: usize = LENGTH_BYTES + 1;

/// Bytes of [`MISSING_TEXT`], as the length that stands before it.
const MISSING_BYTES: u32 = MISSING_TEXT.len() as u32;

/// Facts about the oldest unanswered request that are needed to read its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The operation that was asked for.
    pub operation: Operation,
    /// Set to keep the value, or the text of an error.
    pub keep: bool,
}

/// The server's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server is there (PONG).
    Pong,
    /// The PUT or DELETE was carried out (OK).
    Done,
    /// The value of the key (VALUE).
    Value,
    /// There is no such key: NOT_FOUND, or [`MISSING_TEXT`] as an error in answer to a GET.
    Missing,
    /// The request was refused (ERROR): see [`ReplyClient::error_text`].
    Refused,
}

/// One whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The server's answer.
    pub answer: Answer,
    /// Bytes of its frame, its length included.
    pub wire_bytes: u64,
    /// Bytes of the value, or of the text of an error; 0 for everything else, which includes both forms of
    /// [`Answer::Missing`].
    pub body_bytes: u64,
}

/// Reads the replies of one connection. One per connection; 40 bytes, and nothing on the heap until a request
/// is refused.
///
/// Call [`next_into`](Self::next_into) with the received bytes until it returns `None`,
/// [`finish`](Self::finish) when the server has closed, and [`reset`](Self::reset) before use on another
/// connection. After an error only `reset` makes sense.
///
/// It never asks for more than one reply at a time: `next_into` leaves the bytes of the next in its input.
#[derive(Debug, Default)]
pub struct ReplyClient {
    /// The front of the text of the error that is being read, or that was read last.
    error: Vec<u8>,
    /// Received bytes of the reply's head.
    head: [u8; LONG_HEAD],
    /// Bytes in `head`; 0 between replies.
    gathered: u8,
    /// Bytes of the content consumed so far.
    content: u32,
}

impl ReplyClient {
    /// A client on a new connection.
    pub const fn new() -> Self {
        Self { error: Vec::new(), head: [0; LONG_HEAD], gathered: 0, content: 0 }
    }

    /// Consumes from the front of `input` until one reply is complete (`Some`) or the input is used up
    /// (`None`).
    ///
    /// `owed` must be the same in every call for one reply. If it asks for that, the value, or the text of an
    /// error, is appended to `kept` as it comes, up to [`LONGEST_KEPT_BODY`] bytes in all.
    #[inline]
    pub fn next_into(
        &mut self,
        owed: PendingRequest,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<Option<Reply>, ProtocolError> {
        if self.gathered == 0
            && let Some(reply) = usual_reply(owed, input, kept)
        {
            return Ok(Some(reply));
        }
        self.advance(owed, input, kept)
    }

    /// The server closed the connection. The client is as after [`reset`](Self::reset) then, except for
    /// [`error_text`](Self::error_text).
    pub fn finish(&mut self) -> Result<(), Truncated> {
        let result = if self.in_reply() { Err(Truncated) } else { Ok(()) };
        self.begin();
        result
    }

    /// Returns `true` if bytes of a reply were consumed and it is not complete.
    pub fn in_reply(&self) -> bool {
        self.gathered > 0
    }

    /// The text of the error that came last, its first [`LONGEST_ERROR_TEXT`] bytes: of the reply just given
    /// if that is [`Answer::Refused`].
    pub fn error_text(&self) -> &[u8] {
        &self.error
    }

    /// Forgets everything, for use on a new connection.
    pub fn reset(&mut self) {
        self.error.clear();
        self.begin();
    }

    fn begin(&mut self) {
        self.gathered = 0;
        self.content = 0;
    }

    /// Reads bytes, in pieces of any size.
    fn advance(
        &mut self,
        owed: PendingRequest,
        input: &mut &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<Option<Reply>, ProtocolError> {
        let Some(head) = self.read_head(owed.operation, input)? else {
            return Ok(None);
        };
        // A text that may mean a miss is not kept before it is known to be another one.
        let undecided =
            head.kind == Kind::Error && owed.operation == Operation::Get && head.content == MISSING_BYTES;
        if head.kind == Kind::Error && self.content == 0 {
            self.error.clear();
        }
        let part = self.take_content(head.content, input);
        if head.kind == Kind::Error {
            let room = LONGEST_ERROR_TEXT - self.error.len();
            self.error.extend_from_slice(&part[..part.len().min(room)]);
        }
        if owed.keep && !undecided {
            keep(part, kept);
        }
        if self.content < head.content {
            return Ok(None);
        }
        let missing = undecided && self.error == MISSING_TEXT.as_bytes();
        if owed.keep && undecided && !missing {
            keep(&self.error, kept);
        }
        self.begin();
        Ok(Some(head.reply(missing)))
    }

    /// The head of the reply, once it is whole and right.
    fn read_head(&mut self, operation: Operation, input: &mut &[u8]) -> Result<Option<Head>, ProtocolError> {
        if !self.gather(LENGTH_BYTES, input) {
            return Ok(None);
        }
        let frame = self.number_at(0);
        check_frame(frame)?;
        if !self.gather(SHORT_REPLY, input) {
            return Ok(None);
        }
        let reply = self.head[LENGTH_BYTES];
        let kind = Kind::of_code(reply).ok_or(ProtocolError::UnknownReply(reply))?;
        if !kind.answers(operation) {
            return Err(ProtocolError::WrongReply { operation, reply });
        }
        let rest = frame - 1;
        if !kind.has_content() {
            return match rest {
                0 => Ok(Some(Head { kind, frame, content: 0 })),
                _ => Err(ProtocolError::LengthsDisagree { reply, frame, content: 0 }),
            };
        }
        let Some(room) = rest.checked_sub(LENGTH_BYTES as u32) else {
            return Err(ProtocolError::LengthsDisagree { reply, frame, content: 0 });
        };
        if !self.gather(LONG_HEAD, input) {
            return Ok(None);
        }
        let content = self.number_at(SHORT_REPLY);
        if content != room {
            return Err(ProtocolError::LengthsDisagree { reply, frame, content });
        }
        Ok(Some(Head { kind, frame, content }))
    }

    /// Takes bytes of the head until there are `wanted` of them. Returns `true` once there are.
    fn gather(&mut self, wanted: usize, input: &mut &[u8]) -> bool {
        let have = usize::from(self.gathered);
        if have >= wanted {
            return true;
        }
        let part = take(wanted - have, input);
        self.head[have..have + part.len()].copy_from_slice(part);
        self.gathered += part.len() as u8;
        usize::from(self.gathered) == wanted
    }

    /// Takes the bytes of the content that are in the input; `bytes` is the length of the whole content.
    fn take_content<'i>(&mut self, bytes: u32, input: &mut &'i [u8]) -> &'i [u8] {
        let part = take((bytes - self.content) as usize, input);
        self.content += part.len() as u32;
        part
    }

    fn number_at(&self, place: usize) -> u32 {
        number(&self.head[place..]).expect("the head has room for both of its numbers")
    }
}

/// The usual case at once: a whole reply in the input, and nothing about it wrong. Else `None`, and nothing
/// has changed.
#[inline]
fn usual_reply(owed: PendingRequest, input: &mut &[u8], kept: &mut Vec<u8>) -> Option<Reply> {
    let (head, rest) = input.split_first_chunk::<SHORT_REPLY>()?;
    let frame = number(head)?;
    let kind = Kind::of_code(head[LENGTH_BYTES])?;
    if frame == 1 {
        if kind.has_content() || !kind.answers(owed.operation) {
            return None;
        }
        *input = rest;
        return Some(Head { kind, frame, content: 0 }.reply(false));
    }
    if owed.operation != Operation::Get || frame as usize > LONGEST_FRAME {
        return None;
    }
    let content = number(rest)?;
    if frame.checked_sub(SHORT_REPLY as u32) != Some(content) {
        return None;
    }
    let body = rest.get(LENGTH_BYTES..LENGTH_BYTES + content as usize)?;
    let missing = match kind {
        Kind::Value => false,
        Kind::Error if body == MISSING_TEXT.as_bytes() => true,
        _ => return None,
    };
    *input = &rest[LENGTH_BYTES + body.len()..];
    if owed.keep && !missing {
        keep(body, kept);
    }
    Some(Head { kind, frame, content }.reply(missing))
}

/// The head of a reply in which nothing is wrong.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: Kind,
    /// Bytes of the frame.
    frame: u32,
    /// Bytes of its content.
    content: u32,
}

impl Head {
    /// The whole reply; `missing` if its text is the one that means that.
    #[inline]
    fn reply(self, missing: bool) -> Reply {
        let answer = match self.kind {
            Kind::Pong => Answer::Pong,
            Kind::Ok => Answer::Done,
            Kind::Value => Answer::Value,
            Kind::NotFound => Answer::Missing,
            Kind::Error if missing => Answer::Missing,
            Kind::Error => Answer::Refused,
        };
        Reply {
            answer,
            wire_bytes: u64::from(self.frame) + LENGTH_BYTES as u64,
            body_bytes: if missing { 0 } else { u64::from(self.content) },
        }
    }
}

fn check_frame(frame: u32) -> Result<(), ProtocolError> {
    match frame {
        0 => Err(ProtocolError::EmptyFrame),
        _ if frame.to_be_bytes() == *b"HTTP" => Err(ProtocolError::SpeaksHttp),
        _ if frame as usize > LONGEST_FRAME => Err(ProtocolError::FrameTooLong(frame)),
        _ => Ok(()),
    }
}

/// Takes this many bytes off the front of the input, or as many as there are.
#[inline]
fn take<'i>(wanted: usize, input: &mut &'i [u8]) -> &'i [u8] {
    let (part, rest) = input.split_at(wanted.min(input.len()));
    *input = rest;
    part
}

#[inline]
fn keep(part: &[u8], kept: &mut Vec<u8>) {
    let room = LONGEST_KEPT_BODY.saturating_sub(kept.len());
    kept.extend_from_slice(&part[..part.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_costs_little_and_a_miss_nothing() {
        assert!(size_of::<ReplyClient>() <= 40);
        let mut client = ReplyClient::new();
        let owed = PendingRequest { operation: Operation::Get, keep: false };
        let bytes = b"\0\0\0\x1A\x04\0\0\0\x15Get failed: not found";
        assert!(client.next_into(owed, &mut &bytes[..], &mut Vec::new()).unwrap().is_some());
        assert_eq!(client.error.capacity(), 0, "no text is gathered of what means that a key is missing");
    }
}
