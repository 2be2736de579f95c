//! Handling of the server's frames, one by one: its responses. Sections are those of RFC 9113.

use crate::http2::error::{ConnectionError, ErrorCode};
use crate::http2::frame::{
    FrameHead, HEAD_BYTES, flag, header_fragment, kind, put_go_away, put_rst_stream, put_window_update,
};
use crate::http2::frame_reader::{FrameReader, Piece};
use crate::http2::heads::{HeadFault, decode_trailers, decode_unused};

use super::captured::{Captured, KnownBlock};
use super::head::{ResponseHead, decode_head};
use super::stream::Retention;
use super::{Client, Event, LONGEST_KEPT_BODY, LONGEST_QUOTE, QUOTED_FROM, StreamFailure};

/// The outputs of a frame's effects.
pub(super) struct Sinks<'s> {
    pub(super) out: &'s mut Vec<u8>,
    pub(super) events: &'s mut Vec<Event>,
    /// Set if content of a response is to be quoted although its request did not ask for it.
    quotes: bool,
}

impl Client {
    /// Consumes all of `input`; of a frame that is not complete the beginning is kept, of DATA nothing.
    /// Appends answers and content that may be sent to `out`, and events to `events`.
    ///
    /// The way in which the server's bytes are cut makes no difference except for [`Event::Began`]. After an
    /// error the events before it are valid, GOAWAY is in `out`, and every further call gives the same error.
    pub fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), ConnectionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.captured.clear();
        let mut sinks = Sinks { out, events, quotes: false };
        let result = self.read(input, &mut sinks);
        self.tell_begun(sinks.events);
        if let Err(error) = result {
            self.error = Some(error);
            put_go_away(sinks.out, 0, error.code);
        }
        result
    }

    fn read(&mut self, input: &[u8], sinks: &mut Sinks<'_>) -> Result<(), ConnectionError> {
        if !self.ready {
            let mut room = [0; HEAD_BYTES];
            self.check_first(self.frame_reader.peek(input, &mut room))?;
        }
        // The pieces borrow from the reader, while handling them changes everything else.
        let mut frame_reader = std::mem::take(&mut self.frame_reader);
        let result = self.read_pieces(&mut frame_reader, input, sinks);
        self.frame_reader = frame_reader;
        self.begin_cut();
        result
    }

    fn read_pieces(
        &mut self,
        frame_reader: &mut FrameReader,
        mut input: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        loop {
            if frame_reader.is_between_frames() {
                self.read_responses(&mut input, sinks)?;
            }
            if sinks.quotes {
                frame_reader.tell_content();
            }
            match frame_reader.next(&mut input, self.bounds.max_frame_size)? {
                Some(piece) => self.piece(piece, sinks)?,
                None => return Ok(()),
            }
        }
    }

    /// The usual case at once: takes whole frames of responses from the front of `input`, up to the first
    /// that is cut, padded or of another kind. That changes nothing but the time it takes.
    #[inline]
    fn read_responses(&mut self, input: &mut &[u8], sinks: &mut Sinks<'_>) -> Result<(), ConnectionError> {
        while let Some((head, rest)) = input.split_first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::read(head);
            let is_usual = matches!(head.kind, kind::DATA | kind::HEADERS) && !head.has(flag::PADDED);
            if !is_usual || head.length > self.bounds.max_frame_size {
                return Ok(());
            }
            let Some((payload, rest)) = rest.split_at_checked(head.length as usize) else {
                return Ok(());
            };
            self.block.admit(head)?;
            if head.kind == kind::HEADERS {
                self.headers(head, payload, sinks)?;
            } else if let Some(ticket) = self.data(head, head.length, sinks)? {
                self.keep_content(ticket, payload, sinks);
                if head.has(flag::END_STREAM) {
                    self.complete(ticket, sinks);
                }
            }
            *input = rest;
        }
        Ok(())
    }

    /// Sees from the first bytes of the connection whether they can be those of SETTINGS (RFC 9113 section
    /// 3.4). Bytes that are not a frame belong to another protocol.
    fn check_first(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let &[a, b, c, ref rest @ ..] = bytes else {
            return Ok(());
        };
        if bytes.starts_with(b"HTT") {
            return Err(ConnectionError::wrong_protocol("the server speaks HTTP/1, not HTTP/2"));
        }
        let too_long = u32::from_be_bytes([0, a, b, c]) > self.bounds.max_frame_size;
        match rest {
            [] if !too_long => Ok(()),
            [kind::SETTINGS, flags, ..] if !too_long && flags & flag::ACK != 0 => {
                Err(ConnectionError::protocol("the server's first frame is an acknowledgement"))
            }
            [kind::SETTINGS, ..] if !too_long => Ok(()),
            [..=kind::CONTINUATION, ..] if !too_long => {
                Err(ConnectionError::protocol("the server's first frame is not SETTINGS"))
            }
            _ => Err(ConnectionError::wrong_protocol("the server does not speak HTTP/2")),
        }
    }

    #[inline]
    fn piece(&mut self, piece: Piece<'_>, sinks: &mut Sinks<'_>) -> Result<(), ConnectionError> {
        match piece {
            Piece::Data { head, content } => {
                self.block.admit(head)?;
                self.data(head, content, sinks).map(|_| ())
            }
            Piece::Content { stream, bytes } => {
                if let Some(ticket) = self.streams.find(stream) {
                    self.keep_content(ticket, bytes, sinks);
                }
                Ok(())
            }
            Piece::End { stream } => {
                if let Some(ticket) = self.streams.find(stream) {
                    self.complete(ticket, sinks);
                }
                Ok(())
            }
            Piece::Whole { head, payload } if head.kind == kind::HEADERS => {
                self.block.admit(head)?;
                self.headers(head, payload, sinks)
            }
            Piece::Whole { head, payload } => self.other_frame(head, payload, sinks),
            Piece::Unknown { head } => {
                self.block.admit(head)?;
                self.budget.spend()
            }
        }
    }

    fn other_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        self.block.admit(head)?;
        match head.kind {
            kind::CONTINUATION => self.continuation(head, payload, sinks),
            kind::PRIORITY => self.priority(head, payload, sinks),
            kind::RST_STREAM => self.rst_stream(head, payload, sinks),
            kind::SETTINGS => self.settings(head, payload, sinks),
            kind::PING => self.ping_frame(head, payload, sinks),
            kind::GOAWAY => self.go_away_frame(head, payload, sinks),
            kind::WINDOW_UPDATE => self.window_update(head, payload, sinks),
            _ => {
                // Section 8.4; the settings that this side sends turn pushes off.
                debug_assert_eq!(head.kind, kind::PUSH_PROMISE);
                Err(ConnectionError::protocol("PUSH_PROMISE although pushes are off"))
            }
        }
    }

    /// Frames may come only on streams that were opened by a request (section 5.1.1).
    #[inline]
    pub(super) fn expect_opened(&self, stream: u32) -> Result<(), ConnectionError> {
        if stream & 1 == 1 && stream < self.next_stream {
            return Ok(());
        }
        Err(ConnectionError::protocol(match stream {
            0 => "a frame on stream 0 that belongs to a request",
            _ => "a frame on a stream that no request has opened",
        }))
    }

    /// Section 6.1. Takes the head of a frame, whose content is dropped; gives the ticket if the request goes
    /// on.
    #[inline]
    fn data(
        &mut self,
        head: FrameHead,
        content: u32,
        sinks: &mut Sinks<'_>,
    ) -> Result<Option<u32>, ConnectionError> {
        self.expect_opened(head.stream)?;
        if !self.receive_window.take(head.length) {
            return Err(ConnectionError::flow_control("more DATA than the connection's window allows"));
        }
        if let Some(increment) = self.receive_window.replenish() {
            put_window_update(sinks.out, 0, increment);
        }
        let end = head.has(flag::END_STREAM);
        if content == 0 && !end {
            self.budget.spend()?;
        }
        let Some(ticket) = self.streams.find(head.stream) else {
            return Ok(None);
        };
        let stream = &mut self.slots[ticket as usize];
        stream.count_frame(head.length);
        stream.body_bytes += u64::from(content);
        self.traffic.content_received += u64::from(content);
        if !stream.has_head() {
            self.malformed(ticket, "DATA before the head of the response", sinks);
        } else if !stream.receive_window.take(head.length) {
            let failure = StreamFailure::Malformed("more DATA than the stream's window allows");
            self.fail(ticket, failure, ErrorCode::FlowControlError, sinks);
        } else if stream.body_bytes > stream.expected_bytes {
            self.malformed(ticket, "more content than the head of the response announces", sinks);
        } else {
            if content > 0 {
                self.budget.renew();
            }
            if !end && let Some(increment) = stream.receive_window.replenish() {
                put_window_update(sinks.out, head.stream, increment);
            }
            return Ok(Some(ticket));
        }
        Ok(None)
    }

    /// Content came, which is kept if it is wanted, or if it explains an error.
    #[inline]
    fn keep_content(&mut self, ticket: u32, content: &[u8], sinks: &mut Sinks<'_>) {
        let stream = &self.slots[ticket as usize];
        let most = match stream.keeps {
            Retention::Nothing => return,
            Retention::Quote => LONGEST_QUOTE,
            Retention::Whole | Retention::Told => LONGEST_KEPT_BODY,
        };
        if stream.keeps == Retention::Told && !content.is_empty() {
            let told = Event::Content { ticket, status: stream.status };
            if sinks.events.last() != Some(&told) {
                sinks.events.push(told);
            }
        }
        let body = &mut self.bodies[ticket as usize];
        let room = most.saturating_sub(body.len());
        body.extend_from_slice(&content[..content.len().min(room)]);
    }

    /// The response is a failure: the start of its content is kept.
    #[cold]
    fn quote(&mut self, ticket: u32, sinks: &mut Sinks<'_>) {
        sinks.quotes = true;
        self.slots[ticket as usize].keeps = Retention::Quote;
        self.clear_body(ticket);
    }

    /// Section 6.2.
    #[inline]
    fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        self.expect_opened(head.stream)?;
        let fragment = header_fragment(head, payload)?;
        let ticket = self.streams.find(head.stream);
        if let Some(ticket) = ticket {
            self.slots[ticket as usize].count_frame(head.length);
            self.begin(ticket);
        }
        if !head.has(flag::END_HEADERS) {
            return self.block.begin(head, fragment);
        }
        let Some(ticket) = ticket else {
            return decode_unused(&mut self.decoder, &self.bounds.limits, fragment);
        };
        self.header_block(ticket, head.has(flag::END_STREAM), fragment, sinks)
    }

    /// Section 6.10.
    fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        // The request may have been given up since its HEADERS came.
        let ticket = self.streams.find(head.stream);
        if let Some(ticket) = ticket {
            self.slots[ticket as usize].count_frame(head.length);
        }
        let Some(whole) = self.block.go_on(head, payload)? else {
            return Ok(());
        };
        match ticket {
            Some(ticket) => self.header_block(ticket, whole.end_stream, &whole.bytes, sinks),
            None => decode_unused(&mut self.decoder, &self.bounds.limits, &whole.bytes),
        }
    }

    /// A whole header block of an open stream: a head, or trailers.
    #[inline]
    fn header_block(
        &mut self,
        ticket: u32,
        end: bool,
        block: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let stream = &self.slots[ticket as usize];
        if stream.has_head() {
            return self.trailers(ticket, end, block, sinks);
        }
        let (capture, mark) = (stream.capture, self.captured.mark());
        let head = match self.recall(block, capture, |known| known.head.ok()) {
            Some(head) => {
                if capture {
                    sinks.events.push(Event::Head { ticket, fields: self.captured.since(mark) });
                }
                Ok(head)
            }
            None => self.decode_head(ticket, block, sinks)?,
        };
        if let Ok(head) = head {
            self.count_block(block, head.field_bytes);
        }
        match head {
            Ok(head) if head.status < 200 => self.interim_head(ticket, end, sinks),
            Ok(head) => {
                let stream = &mut self.slots[ticket as usize];
                stream.take_head(head.status, head.content_length, block.len());
                let quotes = head.status >= QUOTED_FROM && stream.keeps == Retention::Nothing;
                if end {
                    self.complete(ticket, sinks);
                } else if quotes {
                    self.quote(ticket, sinks);
                }
            }
            Err(fault) => self.head_fault(ticket, fault, sinks),
        }
        Ok(())
    }

    fn decode_head(
        &mut self,
        ticket: u32,
        block: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<Result<ResponseHead, HeadFault>, ConnectionError> {
        let (epoch, mark) = (self.decoder.epoch(), self.captured.mark());
        let capture = self.slots[ticket as usize].capture;
        let captured = if capture { Some(&mut self.captured) } else { None };
        let decoded = decode_head(&mut self.decoder, &self.bounds.limits, block, captured)?;
        match decoded {
            // An interim head would replace a final one, which is the useful one.
            Ok(head) if head.status >= 200 => {
                let fields = capture.then(|| self.captured.since(mark));
                self.remember(block, epoch, Ok(head), fields);
                if let Some(fields) = fields {
                    sinks.events.push(Event::Head { ticket, fields });
                }
            }
            _ => self.captured.truncate(mark),
        }
        Ok(decoded)
    }

    /// Takes of a block that came before what `read` takes of it, and captures its fields if that is wanted.
    /// `None` if it has to be decoded.
    #[inline]
    fn recall<T>(
        &mut self,
        block: &[u8],
        capture: bool,
        read: impl FnOnce(&KnownBlock) -> Option<T>,
    ) -> Option<T> {
        let known = self.memo.recall(block, self.decoder.epoch())?;
        let taken = read(known)?;
        if capture {
            self.captured.append(known.fields.as_ref()?);
        }
        Some(taken)
    }

    /// Remembers a block that was decoded from this epoch on, with its fields if they were captured: a head,
    /// or trailers with so many bytes of names and values.
    fn remember(
        &mut self,
        block: &[u8],
        epoch: u64,
        head: Result<ResponseHead, u32>,
        fields: Option<Captured>,
    ) {
        if epoch != self.decoder.epoch() {
            return;
        }
        self.memo.remember(block, epoch, |known| {
            known.head = head;
            match fields {
                Some(fields) => self.captured.copy_to(fields, known.fields.get_or_insert_default()),
                None => known.fields = None,
            }
        });
    }

    fn interim_head(&mut self, ticket: u32, end: bool, sinks: &mut Sinks<'_>) {
        let stream = &mut self.slots[ticket as usize];
        if end {
            self.malformed(ticket, "an interim response that ends the stream", sinks);
        } else if stream.interim >= self.bounds.interim {
            self.malformed(ticket, "too many interim responses before the final one", sinks);
        } else {
            stream.interim += 1;
        }
    }

    fn trailers(
        &mut self,
        ticket: u32,
        end: bool,
        block: &[u8],
        sinks: &mut Sinks<'_>,
    ) -> Result<(), ConnectionError> {
        let capture = self.slots[ticket as usize].capture;
        let (epoch, mark) = (self.decoder.epoch(), self.captured.mark());
        let decoded = match self.recall(block, capture, |known| known.head.err()) {
            Some(bytes) => Ok(bytes),
            None => {
                let mut bytes = 0;
                let keep = |name: &[u8], value: &[u8]| {
                    bytes += (name.len() + value.len()) as u32;
                    if capture {
                        self.captured.push(name, value);
                    }
                };
                let decoded = decode_trailers(&mut self.decoder, &self.bounds.limits, block, keep)?;
                if decoded.is_ok() {
                    let fields = capture.then(|| self.captured.since(mark));
                    self.remember(block, epoch, Err(bytes), fields);
                }
                decoded.map(|()| bytes)
            }
        };
        match decoded {
            Ok(bytes) if end => {
                self.count_block(block, bytes);
                if self.captured.mark() > mark {
                    sinks.events.push(Event::Head { ticket, fields: self.captured.since(mark) });
                }
                self.complete(ticket, sinks);
            }
            Ok(_) => self.malformed(ticket, "a second head, or trailers that do not end the stream", sinks),
            Err(fault) => self.head_fault(ticket, fault, sinks),
        }
        Ok(())
    }

    /// Counts a header block of a response with so many bytes of names and values.
    #[inline]
    fn count_block(&mut self, block: &[u8], field_bytes: u32) {
        self.traffic.heads_received += block.len() as u64;
        self.traffic.fields_received += u64::from(field_bytes);
    }

    fn head_fault(&mut self, ticket: u32, fault: HeadFault, sinks: &mut Sinks<'_>) {
        match fault {
            HeadFault::Malformed(what) => self.malformed(ticket, what, sinks),
            HeadFault::TooLarge => self.fail(ticket, StreamFailure::HeadTooLarge, ErrorCode::Cancel, sinks),
        }
    }

    /// The last byte of a response came.
    #[inline]
    fn complete(&mut self, ticket: u32, sinks: &mut Sinks<'_>) {
        let stream = &self.slots[ticket as usize];
        if !stream.is_whole() {
            return self.malformed(ticket, "less content than the head of the response announces", sinks);
        }
        sinks.events.push(Event::Response { ticket, response: stream.response() });
        if self.is_sending(ticket) {
            // Section 8.1: the server has answered without waiting for the end of the request.
            put_rst_stream(sinks.out, stream.id(), ErrorCode::Cancel);
        }
        self.budget.renew();
        self.release(ticket);
    }

    /// The server broke a rule on a stream.
    pub(super) fn malformed(&mut self, ticket: u32, what: &'static str, sinks: &mut Sinks<'_>) {
        self.fail(ticket, StreamFailure::Malformed(what), ErrorCode::ProtocolError, sinks);
    }

    /// Ends a request from this side.
    #[cold]
    pub(super) fn fail(
        &mut self,
        ticket: u32,
        failure: StreamFailure,
        code: ErrorCode,
        sinks: &mut Sinks<'_>,
    ) {
        put_rst_stream(sinks.out, self.slots[ticket as usize].id(), code);
        self.release(ticket);
        sinks.events.push(Event::Failed { ticket, failure });
    }

    /// A HEADERS frame of an open stream came.
    #[inline]
    fn begin(&mut self, ticket: u32) {
        let stream = &mut self.slots[ticket as usize];
        if !stream.began {
            stream.began = true;
            self.begun.push(ticket);
        }
    }

    /// A HEADERS frame that is cut begins its response, too.
    #[inline]
    fn begin_cut(&mut self) {
        if let Some(head) = self.frame_reader.cut_head()
            && head.kind == kind::HEADERS
            && let Some(ticket) = self.streams.find(head.stream)
        {
            self.begin(ticket);
        }
    }

    /// Lists the responses that began and are not complete.
    #[inline]
    fn tell_begun(&mut self, events: &mut Vec<Event>) {
        // No request is submitted during a `receive`, so a ticket that is in use is still the same one.
        for ticket in self.begun.drain(..) {
            if self.slots[ticket as usize].id() != 0 {
                events.push(Event::Began { ticket });
            }
        }
    }
}
