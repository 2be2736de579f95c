//! Messages out of frames.

use super::deflate::Inflater;
use super::frame::{COMPRESSED, Head, HeadBuffer, LONGEST_CONTROL, Opcode, RESERVED, apply_mask};
use super::{Deflate, Role, WebSocketError, close_code, is_valid_close_code};

/// Memory that is kept for messages in parts, in bytes.
const USUAL_MESSAGE: usize = 4 << 10;
/// Most fragments of a message without a byte.
const MOST_EMPTY: u32 = 100_000;

/// Something whole that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message, which was appended to the buffer.
    Message {
        /// `true` if it is not text.
        binary: bool,
        /// Bytes of the message.
        length: usize,
    },
    /// A ping: a pong with its [payload](MessageReader::control) is owed.
    Ping,
    /// A pong.
    Pong,
    /// The close frame. Bytes that come after it are discarded (RFC 6455 section 1.4).
    Close {
        /// The status; `None` if there is none.
        code: Option<u16>,
    },
}

/// Reads the messages of one direction of a connection, from any cut of its bytes.
///
/// It holds the message that is not whole, up to the limit, and no more.
#[derive(Debug)]
pub struct MessageReader {
    role: Role,
    /// Most bytes of a message.
    limit: usize,
    head: HeadBuffer,
    /// The frame whose payload is coming.
    frame: Option<Frame>,
    /// Payload of the frame that has come.
    read: u64,
    /// The message whose fragments are coming: its opcode.
    message: Option<Opcode>,
    /// Bytes so far of the message whose fragments are coming.
    partial: Vec<u8>,
    /// Number of these that are known to be UTF-8.
    checked: usize,
    control: [u8; LONGEST_CONTROL],
    control_length: usize,
    closed: bool,
    /// Fragments without a byte of the message that is coming.
    empty: u32,
    /// Messages may be compressed.
    inflater: Option<Box<Inflater>>,
    /// The message whose fragments are coming is.
    is_compressed: bool,
}

/// A frame whose payload is coming.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    fin: bool,
    mask: Option<[u8; 4]>,
    length: u64,
    is_compressed: bool,
}

impl MessageReader {
    /// Nothing has come. Messages have at most `limit` bytes.
    pub const fn new(role: Role, limit: usize) -> Self {
        Self {
            role,
            limit,
            head: HeadBuffer::new(),
            frame: None,
            read: 0,
            message: None,
            partial: Vec::new(),
            checked: 0,
            control: [0; LONGEST_CONTROL],
            control_length: 0,
            closed: false,
            empty: 0,
            inflater: None,
            is_compressed: false,
        }
    }

    /// Lets messages be compressed as both ends have agreed.
    pub fn inflate(&mut self, agreed: Deflate) {
        self.inflater = Some(Box::new(Inflater::new(agreed)));
    }

    /// Reads up to the next whole thing out of `input`, whose rest is left there; `None` if all of it was
    /// read and more has to come. A message is appended to `into`.
    ///
    /// # Errors
    /// The first violation; nothing is to be read after it.
    #[inline]
    pub fn next(
        &mut self,
        input: &mut &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<Received>, WebSocketError> {
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None if input.is_empty() => return Ok(None),
                None if self.closed => {
                    *input = &[];
                    return Ok(None);
                }
                None => {
                    let head = self.head.take(input);
                    let Some(head) = head else {
                        // A violation in the first bytes need not wait for the rest of the head.
                        self.head.front().map_or(Ok(()), |front| self.check_front(front))?;
                        return Ok(None);
                    };
                    let frame = self.begin(&head)?;
                    if self.is_whole(frame, input.len()) {
                        return self.take_whole(frame, input, into).map(Some);
                    }
                    self.frame = Some(frame);
                    self.read = 0;
                    frame
                }
            };
            self.take_payload(frame, input)?;
            if self.read < frame.length {
                return Ok(None);
            }
            self.frame = None;
            if let Some(received) = self.end(frame, into)? {
                return Ok(Some(received));
            }
        }
    }

    /// The payload of the control frame that was told last.
    pub fn control(&self) -> &[u8] {
        &self.control[..self.control_length]
    }

    /// The reason in the close frame that was told.
    pub fn close_reason(&self) -> &str {
        std::str::from_utf8(self.control().get(2..).unwrap_or_default()).unwrap_or_default()
    }

    /// Returns `true` if a part of a frame or of a message has come, and not all of it.
    pub const fn is_in_message(&self) -> bool {
        self.frame.is_some() || self.message.is_some() || self.head.is_begun()
    }

    /// Returns `true` once the close frame has come.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The usual case: a message of one frame that is there as a whole.
    #[inline]
    fn is_whole(&self, frame: Frame, available: usize) -> bool {
        frame.fin && matches!(frame.opcode, Opcode::Text | Opcode::Binary) && frame.length <= available as u64
    }

    #[inline]
    fn take_whole(
        &mut self,
        frame: Frame,
        input: &mut &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Received, WebSocketError> {
        let (payload, rest) = input.split_at(frame.length as usize);
        *input = rest;
        let start = into.len();
        into.extend_from_slice(payload);
        if let Some(mask) = frame.mask {
            apply_mask(mask, 0, &mut into[start..]);
        }
        if frame.is_compressed {
            self.partial.extend(into.drain(start..));
            return self.unpack(frame.opcode == Opcode::Binary, into);
        }
        let binary = frame.opcode == Opcode::Binary;
        if !binary && std::str::from_utf8(&into[start..]).is_err() {
            return Err(WebSocketError::NotUtf8);
        }
        Ok(Received::Message { binary, length: payload.len() })
    }

    /// Appends the message that has come in compressed form.
    fn unpack(&mut self, binary: bool, into: &mut Vec<u8>) -> Result<Received, WebSocketError> {
        let Some(inflater) = &mut self.inflater else { return Err(WebSocketError::ReservedBits) };
        let start = into.len();
        let length = inflater.inflate(&self.partial, self.limit, into)?;
        self.partial.clear();
        self.partial.shrink_to(USUAL_MESSAGE);
        if !binary && std::str::from_utf8(&into[start..]).is_err() {
            return Err(WebSocketError::NotUtf8);
        }
        Ok(Received::Message { binary, length })
    }

    fn check_front(&self, [first, second]: [u8; 2]) -> Result<(), WebSocketError> {
        let bits = first & 0x0f;
        let reserved = first & RESERVED;
        let may_be_compressed = self.inflater.is_some() && matches!(bits, 1 | 2);
        if reserved != 0 && (reserved != COMPRESSED || !may_be_compressed) {
            return Err(WebSocketError::ReservedBits);
        }
        let opcode = Opcode::read(bits).ok_or(WebSocketError::Opcode(bits))?;
        match (self.role, second & 0x80 != 0) {
            (Role::Client, true) => return Err(WebSocketError::Masked),
            (Role::Server, false) => return Err(WebSocketError::Unmasked),
            _ => {}
        }
        if opcode.is_control() {
            if first & 0x80 == 0 {
                return Err(WebSocketError::FragmentedControl);
            }
            if usize::from(second & 0x7f) > LONGEST_CONTROL {
                return Err(WebSocketError::LongControl);
            }
        }
        match (opcode, self.message) {
            (Opcode::Continuation, None) => Err(WebSocketError::NothingToContinue),
            (Opcode::Text | Opcode::Binary, Some(_)) => Err(WebSocketError::Interleaved),
            _ => Ok(()),
        }
    }

    /// A frame begins.
    #[inline]
    fn begin(&mut self, head: &Head) -> Result<Frame, WebSocketError> {
        self.check_front(head.front)?;
        if !head.is_short {
            return Err(WebSocketError::Length);
        }
        let opcode = Opcode::read(head.front[0] & 0x0f).unwrap_or(Opcode::Continuation);
        if !opcode.is_control() {
            let before = if opcode == Opcode::Continuation { self.partial.len() as u64 } else { 0 };
            if before.saturating_add(head.length) > self.limit as u64 {
                return Err(WebSocketError::TooLong);
            }
        }
        let is_compressed = head.front[0] & COMPRESSED != 0;
        Ok(Frame { opcode, fin: head.fin(), mask: head.mask, length: head.length, is_compressed })
    }

    /// Takes what has come of the payload of a frame.
    fn take_payload(&mut self, frame: Frame, input: &mut &[u8]) -> Result<(), WebSocketError> {
        let count = input.len().min(usize::try_from(frame.length - self.read).unwrap_or(usize::MAX));
        let (bytes, rest) = input.split_at(count);
        *input = rest;
        // A mask has a period of four bytes.
        let offset = (self.read % 4) as usize;
        if frame.opcode.is_control() {
            let start = self.read as usize;
            let into = &mut self.control[start..start + count];
            into.copy_from_slice(bytes);
            if let Some(mask) = frame.mask {
                apply_mask(mask, offset, into);
            }
        } else {
            if frame.opcode != Opcode::Continuation && self.message.is_none() {
                self.message = Some(frame.opcode);
                self.is_compressed = frame.is_compressed;
                self.partial.clear();
                self.checked = 0;
            }
            let start = self.partial.len();
            self.partial.extend_from_slice(bytes);
            if let Some(mask) = frame.mask {
                apply_mask(mask, offset, &mut self.partial[start..]);
            }
            if self.message == Some(Opcode::Text) && !self.is_compressed {
                self.check_text()?;
            }
        }
        self.read += count as u64;
        Ok(())
    }

    /// Checks the bytes of a text that have come since the last check. A letter may be cut.
    fn check_text(&mut self) -> Result<(), WebSocketError> {
        match std::str::from_utf8(&self.partial[self.checked..]) {
            Ok(text) => self.checked += text.len(),
            Err(error) if error.error_len().is_none() => self.checked += error.valid_up_to(),
            Err(_) => return Err(WebSocketError::NotUtf8),
        }
        Ok(())
    }

    /// All of a frame has come.
    fn end(&mut self, frame: Frame, into: &mut Vec<u8>) -> Result<Option<Received>, WebSocketError> {
        if frame.opcode.is_control() {
            self.control_length = frame.length as usize;
        }
        match frame.opcode {
            Opcode::Ping => Ok(Some(Received::Ping)),
            Opcode::Pong => Ok(Some(Received::Pong)),
            Opcode::Close => self.end_close().map(Some),
            Opcode::Continuation | Opcode::Text | Opcode::Binary if !frame.fin => {
                self.empty += u32::from(frame.length == 0);
                if self.empty > MOST_EMPTY { Err(WebSocketError::EmptyFragments) } else { Ok(None) }
            }
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                self.empty = 0;
                let text = self.message.take() == Some(Opcode::Text);
                if self.is_compressed {
                    return self.unpack(!text, into).map(Some);
                }
                if text && self.checked < self.partial.len() {
                    return Err(WebSocketError::NotUtf8);
                }
                let length = self.partial.len();
                into.append(&mut self.partial);
                self.partial.shrink_to(USUAL_MESSAGE);
                Ok(Some(Received::Message { binary: !text, length }))
            }
        }
    }

    fn end_close(&mut self) -> Result<Received, WebSocketError> {
        self.closed = true;
        let payload = self.control();
        if payload.len() == 1 {
            return Err(WebSocketError::ShortClose);
        }
        let code = close_code(payload);
        if let Some(code) = code.filter(|code| !is_valid_close_code(*code)) {
            return Err(WebSocketError::CloseCode(code));
        }
        if payload.get(2..).is_some_and(|reason| std::str::from_utf8(reason).is_err()) {
            return Err(WebSocketError::NotUtf8);
        }
        Ok(Received::Close { code })
    }
}
