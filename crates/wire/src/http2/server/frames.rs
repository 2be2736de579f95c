//! Handling of the client's frames, one by one. Sections are those of RFC 9113.

use crate::http2::error::{ConnectionError, ErrorCode};
use crate::http2::frame::{
    FrameHead, PREFACE, flag, header_fragment, kind, put_go_away, put_rst_stream, put_window_update,
};
use crate::http2::frame_reader::{FrameReader, Piece};
use crate::http2::heads::{HeadFault, decode_trailers, decode_unused};
use crate::http2::window::ReceiveWindow;

use super::head::RequestHead;
use super::stream::{ANY_LENGTH, State, Stream};
use super::{LONGEST_KEPT_CONTENT, Request, Server, Span};

/// A buffer for text that grew beyond this is given back before the next one. It holds the heads of a
/// thousand ordinary requests.
const TEXT_KEPT: usize = 64 * 1024;

/// The outputs of a frame's effects.
pub(super) struct Sinks<'s> {
    pub(super) out: &'s mut Vec<u8>,
    pub(super) requests: &'s mut Vec<Request>,
}

impl Server {
    /// Consumes all of `input`; of a frame that is not complete the beginning is kept, of DATA nothing.
    /// Appends answers and content that may be sent to `out`, and requests that became whole to `requests`: a
    /// request may be among them that the client has reset again, [`is_open`](Self::is_open) is false for it
    /// then.
    ///
    /// The way in which the client's bytes are cut makes no difference, with one exception: a client that
    /// resets a stream behind its whole request is a flood if it does so over and over in one piece, and not
    /// if it has given the caller the time to answer. After an error the requests before it are valid, GOAWAY
    /// is in `out`, and every further call gives the same error.
    pub fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        requests: &mut Vec<Request>,
    ) -> Result<(), ConnectionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.calls = self.calls.wrapping_add(1);
        self.text.clear();
        self.text.shrink_to(TEXT_KEPT);
        let mut frame_reader = std::mem::take(&mut self.frame_reader);
        let mut sinks = Sinks { out, requests };
        let result = self.read(&mut frame_reader, input, &mut sinks);
        self.frame_reader = frame_reader;
        if let Err(error) = result {
            self.error = Some(error);
            put_go_away(sinks.out, self.last.unwrap_or(self.highest), error.code);
        }
        result
    }

    #[inline]
    fn read(
        &mut self,
        frame_reader: &mut FrameReader,
        mut input: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        if !self.settled {
            self.read_first(frame_reader, &mut input, sinks)?;
        }
        while let Some(piece) = frame_reader.next(&mut input, self.options.max_frame_size)? {
            self.piece(piece, sinks)?;
        }
        Ok(())
    }

    /// The preface, and the SETTINGS that have to follow it (section 3.4).
    #[cold]
    fn read_first(
        &mut self,
        frame_reader: &mut FrameReader,
        input: &mut &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        while let Some(&expected) = PREFACE.get(usize::from(self.prefaced)) {
            let Some((&byte, rest)) = input.split_first() else { return Ok(()) };
            if byte != expected {
                return Err(ConnectionError::wrong_protocol(
                    "the client does not begin with the HTTP/2 preface",
                ));
            }
            self.prefaced += 1;
            *input = rest;
        }
        match frame_reader.next(input, self.options.max_frame_size)? {
            None => Ok(()),
            Some(Piece::Whole { head, payload }) if head.kind == kind::SETTINGS && !head.has(flag::ACK) => {
                self.settled = true;
                self.settings(head, payload, sinks)
            }
            Some(_) => Err(ConnectionError::protocol("the client's first frame is not SETTINGS")),
        }
    }

    #[inline]
    fn piece(&mut self, piece: Piece<'_>, sinks: &mut Sinks<'_>) -> Result<(), ConnectionError> {
        match piece {
            Piece::Whole { head, payload } => {
                self.block.admit(head)?;
                if head.kind == kind::HEADERS {
                    self.headers(head, payload, sinks)
                } else {
                    self.other_frame(head, payload, sinks)
                }
            }
            Piece::Data { head, content } => {
                self.block.admit(head)?;
                self.data_frame(head, content, sinks)
            }
            Piece::Content { stream, bytes } => {
                let slot = self.streams.find(stream);
                if let Some(kept) = slot.and_then(|slot| self.contents.get_mut(slot as usize)) {
                    let taken = bytes.len().min(LONGEST_KEPT_CONTENT.saturating_sub(kept.len()));
                    kept.extend_from_slice(&bytes[..taken]);
                    self.content_bytes += taken;
                }
                if let Some(slot) = slot
                    && self.options.tells_parts
                    && !self.slots[slot as usize].ending
                {
                    self.tell(slot, false, sinks);
                }
                Ok(())
            }
            Piece::End { stream } => {
                if let Some(slot) = self.streams.find(stream) {
                    self.request_ends(slot, sinks);
                }
                Ok(())
            }
            Piece::Unknown { head } => {
                self.block.admit(head)?;
                self.budget.spend()
            }
        }
    }

    /// Section 6.2.
    #[inline]
    fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let fragment = header_fragment(head, payload)?;
        // A stream that a client opens has an odd number (section 5.1.1).
        if head.stream & 1 == 0 {
            return Err(ConnectionError::protocol("HEADERS on a stream that a client cannot open"));
        }
        if !head.has(flag::END_HEADERS) {
            return self.block.begin(head, fragment);
        }
        self.header_block(head.stream, head.has(flag::END_STREAM), fragment, sinks)
    }

    /// Section 6.10.
    pub(super) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        match self.block.go_on(head, payload)? {
            Some(whole) => self.header_block(whole.stream, whole.end_stream, &whole.bytes, sinks),
            None => Ok(()),
        }
    }

    #[inline]
    fn header_block(
        &mut self,
        stream: u32,
        end: bool,
        block: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        if stream <= self.highest {
            return self.later_block(stream, end, block, sinks);
        }
        self.highest = stream;
        if self.last.is_some() {
            // GOAWAY has informed the client that this stream is not processed (section 6.8).
            return self.ignore(stream, block);
        }
        if self.streams.len() >= self.options.max_streams {
            return self.refuse(stream, block, sinks);
        }
        let epoch = self.decoder.epoch();
        if let Some(remembered) = self.memo.recall(block, epoch) {
            if end && matches!(remembered.content_length, None | Some(0)) {
                // The usual request: it is whole.
                let request = hand_over(stream, remembered, 0, &mut self.text);
                sinks.requests.push(request);
                self.open(stream, request.head_request, State::Waiting);
                return Ok(());
            }
            self.reader.head.clone_from(remembered);
        } else {
            match self.reader.read(&mut self.decoder, &self.options.limits, block)? {
                Ok(()) if self.reader.head.connect && self.reader.head.protocol.is_none() => {
                    return self.break_off(stream, ErrorCode::ConnectError, sinks);
                }
                // A head with an id does not come again.
                Ok(()) if epoch == self.decoder.epoch() && self.reader.head.id.is_none() => {
                    self.memo.remember(block, epoch, |head| head.clone_from(&self.reader.head));
                }
                Ok(()) => {}
                Err(fault) => return self.break_off(stream, code_of(fault), sinks),
            }
        }
        self.request_begins(stream, end, sinks)
    }

    /// A valid head, in `reader`, that opens a stream.
    fn request_begins(
        &mut self,
        stream: u32,
        end: bool,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let head = &self.reader.head;
        let (head_request, length) = (head.head_request, head.content_length);
        if end {
            if !matches!(length, None | Some(0)) {
                return self.break_off(stream, ErrorCode::ProtocolError, sinks);
            }
            sinks.requests.push(hand_over(stream, head, 0, &mut self.text));
            self.open(stream, head_request, State::Waiting);
            return Ok(());
        }
        let slot = self.open(stream, head_request, State::Requesting) as usize;
        self.slots[slot].expected_bytes = length.unwrap_or(ANY_LENGTH);
        if self.heads.len() <= slot {
            self.heads.resize_with(slot + 1, RequestHead::default);
        }
        self.heads[slot].clone_from(&self.reader.head);
        if self.options.keeps_content && self.contents.len() <= slot {
            self.contents.resize_with(slot + 1, Vec::new);
        }
        if self.heads[slot].protocol.is_some() {
            // Its content waits for the answer.
            self.tell(slot as u32, false, sinks);
        }
        Ok(())
    }

    #[inline]
    fn open(&mut self, stream: u32, head_request: bool, state: State) -> u32 {
        let slot = self.streams.insert(stream);
        if slot as usize == self.slots.len() {
            self.slots.push(Stream::vacant());
        }
        let entry = &mut self.slots[slot as usize];
        entry.flow.open(stream, &self.peer);
        entry.receive_window = ReceiveWindow::new(self.options.stream_window);
        entry.state = state;
        entry.receiving = state == State::Requesting;
        entry.ending = false;
        entry.head_request = head_request;
        entry.body_bytes = 0;
        entry.expected_bytes = ANY_LENGTH;
        entry.whole_at = self.calls;
        slot
    }

    /// A block on a stream that was opened before: trailers, if anything.
    #[cold]
    fn later_block(
        &mut self,
        stream: u32,
        end: bool,
        block: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let Some(slot) = self.streams.find(stream) else {
            return if stream <= self.reset { self.ignore(stream, block) } else { Err(closed()) };
        };
        if !self.slots[slot as usize].receiving {
            decode_unused(&mut self.decoder, &self.options.limits, block)?;
            return self.fail(slot, ErrorCode::StreamClosed, sinks);
        }
        match decode_trailers(&mut self.decoder, &self.options.limits, block, |_, _| ())? {
            Ok(()) if end => {
                self.request_ends(slot, sinks);
                Ok(())
            }
            Ok(()) => self.fail(slot, ErrorCode::ProtocolError, sinks),
            Err(fault) => self.fail(slot, code_of(fault), sinks),
        }
    }

    /// The last frame of a request came.
    fn request_ends(&mut self, slot: u32, sinks: &mut Sinks<'_>) {
        let entry = &mut self.slots[slot as usize];
        if !entry.is_whole() {
            // Section 8.1.1.
            let stream = entry.flow.stream;
            put_rst_stream(sinks.out, stream, ErrorCode::ProtocolError);
            self.reset = self.reset.max(stream);
            return self.release(slot);
        }
        if entry.state == State::Requesting {
            entry.state = State::Waiting;
        }
        entry.receiving = false;
        entry.whole_at = self.calls;
        self.tell(slot, true, sinks);
    }

    /// Hands over a request that had content, or is going to have some.
    fn tell(&mut self, slot: u32, whole: bool, sinks: &mut Sinks<'_>) {
        let Stream { flow, body_bytes, .. } = &self.slots[slot as usize];
        let head = &self.heads[slot as usize];
        let mut request = hand_over(flow.stream, head, *body_bytes, &mut self.text);
        request.whole = whole;
        if let Some(content) = self.contents.get(slot as usize) {
            request.content = Span { start: self.text.len() as u32, len: content.len() as u32 };
            self.text.extend_from_slice(content);
        }
        sinks.requests.push(request);
        if whole {
            self.forget_content(slot);
        }
    }

    /// Decodes a block for the dynamic table only.
    fn ignore(&mut self, stream: u32, block: &[u8]) -> Result<(), ConnectionError> {
        self.reset = self.reset.max(stream);
        decode_unused(&mut self.decoder, &self.options.limits, block)?;
        self.budget.spend()
    }

    /// Section 5.1.2.
    fn refuse(&mut self, stream: u32, block: &[u8], sinks: &mut Sinks<'_>) -> Result<(), ConnectionError> {
        decode_unused(&mut self.decoder, &self.options.limits, block)?;
        self.break_off(stream, ErrorCode::RefusedStream, sinks)
    }

    /// Resets a stream that was not opened here.
    #[cold]
    fn break_off(
        &mut self,
        stream: u32,
        code: ErrorCode,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        put_rst_stream(sinks.out, stream, code);
        self.reset = self.reset.max(stream);
        self.budget.spend()
    }

    /// The client broke a rule on an open stream.
    #[cold]
    pub(super) fn fail(
        &mut self,
        slot: u32,
        code: ErrorCode,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let stream = self.slots[slot as usize].flow.stream;
        self.release(slot);
        self.break_off(stream, code, sinks)
    }

    /// Section 6.1.
    fn data_frame(
        &mut self,
        head: FrameHead,
        content: u32,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        self.expect_opened(head.stream)?;
        if !self.receive_window.take(head.length) {
            return Err(ConnectionError::flow_control("more DATA than the connection's window allows"));
        }
        if let Some(increment) = self.receive_window.replenish() {
            put_window_update(sinks.out, 0, increment);
        }
        let Some(slot) = self.streams.find(head.stream) else {
            return if head.stream <= self.reset { self.budget.spend() } else { Err(closed()) };
        };
        let entry = &mut self.slots[slot as usize];
        if !entry.receiving {
            return self.fail(slot, ErrorCode::StreamClosed, sinks);
        }
        let window = &mut entry.receive_window;
        let allowed =
            if self.awaits_ack { window.take_unsettled(head.length) } else { window.take(head.length) };
        if !allowed {
            return self.fail(slot, ErrorCode::FlowControlError, sinks);
        }
        entry.body_bytes += u64::from(content);
        if entry.body_bytes > entry.expected_bytes {
            return self.fail(slot, ErrorCode::ProtocolError, sinks);
        }
        if head.has(flag::END_STREAM) {
            entry.ending = true;
            return Ok(());
        }
        if let Some(increment) = entry.receive_window.replenish() {
            put_window_update(sinks.out, head.stream, increment);
        }
        if content == 0 { self.budget.spend() } else { Ok(()) }
    }

    /// Only HEADERS may come on a stream that is not open yet (section 5.1).
    #[inline]
    pub(super) fn expect_opened(&self, stream: u32) -> Result<(), ConnectionError> {
        if stream & 1 == 1 && stream <= self.highest {
            return Ok(());
        }
        Err(ConnectionError::protocol(match stream {
            0 => "a frame on stream 0 that belongs to a request",
            _ => "a frame on a stream that no request has opened",
        }))
    }
}

/// Builds the request of a head, and appends its text to `text`.
#[inline]
fn hand_over(stream: u32, head: &RequestHead, body_bytes: u64, text: &mut Vec<u8>) -> Request {
    let at = text.len();
    text.extend_from_slice(&head.text);
    Request {
        stream,
        method: head.method.shifted(at),
        path: head.path.shifted(at),
        id: head.id.map(|id| id.shifted(at)),
        status: head.status.map(|status| status.shifted(at)),
        timeout: head.timeout.map(|timeout| timeout.shifted(at)),
        protocol: head.protocol.map(|protocol| protocol.shifted(at)),
        subprotocols: head.subprotocols.map(|subprotocols| subprotocols.shifted(at)),
        accept: head.accept.map(|accept| accept.shifted(at)),
        whole: true,
        head_request: head.head_request,
        body_bytes,
        content: Span::default(),
    }
}

/// A frame on a stream that both sides had ended (section 5.1).
#[cold]
fn closed() -> ConnectionError {
    ConnectionError::new(ErrorCode::StreamClosed, "a frame on a stream that is closed")
}

fn code_of(fault: HeadFault) -> ErrorCode {
    match fault {
        HeadFault::Malformed(_) => ErrorCode::ProtocolError,
        HeadFault::TooLarge => ErrorCode::EnhanceYourCalm,
    }
}
