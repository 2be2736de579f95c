//! Streams of events in the body of a response: server-sent events (WHATWG HTML, section 9.2), JSON in lines,
//! and length-prefixed messages.
//!
//! [`EventReader`] takes the payload of a body in any pieces and returns each event as soon as its last byte
//! is there. It knows no time: its caller knows when a piece came.

use std::fmt;

use memchr::{memchr, memchr2};

use crate::length_prefixed::{FrameError, PREFIX};

/// Bytes of one event, and of one line, at most. A server that sends more than this without an end would
/// fill the memory; chunks of language models have some hundred bytes.
pub const LONGEST_EVENT: usize = 1 << 20;

/// Bytes of one length-prefixed message at most: the usual limit of clients.
pub const LONGEST_MESSAGE: usize = 4 << 20;

/// Bytes that a buffer keeps for the next event.
const USUAL_EVENT: usize = 4 << 10;

/// The mark of UTF-8 that may begin a stream of server-sent events.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The format that separates events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFormat {
    /// Server-sent events, `text/event-stream`.
    Sse,
    /// One JSON value per line, `application/x-ndjson`. An empty line is not an event.
    Ndjson,
    /// [Length-prefixed](crate::length_prefixed) messages.
    LengthPrefixed,
    /// JSON in lines if the first thing in the body is an object, else server-sent events, no field of which
    /// begins like that.
    SseOrNdjson,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'e> {
    /// Data of the event: of server-sent events the values of the `data` fields, joined by LF; of JSON the
    /// line; of length-prefixed messages the prefix and the message.
    pub data: &'e [u8],
    /// The value of its `event` field; empty if it has none.
    pub name: &'e [u8],
    /// The last `id` of the stream so far; empty if there was none.
    pub id: &'e [u8],
    /// The last `retry` of the stream so far, in milliseconds.
    pub retry: Option<u64>,
}

/// Why a body is read no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// An event has more than [`LONGEST_EVENT`] bytes.
    TooLong,
    /// A length-prefixed message has more than [`LONGEST_MESSAGE`] bytes.
    MessageTooLong,
    /// The first byte of a prefix is neither 0 nor 1.
    NoMessage,
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "an event has more than {} MiB", LONGEST_EVENT >> 20),
            Self::MessageTooLong => write!(f, "a message has more than {} MiB", LONGEST_MESSAGE >> 20),
            Self::NoMessage => f.write_str(FrameError::Malformed.describe()),
        }
    }
}

impl std::error::Error for EventError {}

/// Reads the events of one body.
///
/// Call [`feed`](Self::feed) with each piece of the payload, in order, and [`finish`](Self::finish) at its
/// end; [`reset`](Self::reset) makes it ready for another body and keeps its memory. The events do not
/// depend on how the payload was cut. Between two calls it holds the event that is not whole, at most twice
/// [`LONGEST_EVENT`] bytes, or one [`LONGEST_MESSAGE`]; it allocates only while such a buffer grows.
#[derive(Debug)]
pub struct EventReader {
    format: EventFormat,
    /// The line, or the length-prefixed message, that is not whole.
    line: Vec<u8>,
    /// Data of the event that is not whole, each line with an LF behind it.
    data: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    retry: Option<u64>,
    /// Set once the first line is over: only that may begin with a byte order mark.
    begun: bool,
    /// The last line ended with a CR: an LF at the front of what comes next belongs to it.
    after_cr: bool,
    fault: Option<EventError>,
}

impl EventReader {
    /// A reader at the start of a body.
    pub const fn new(format: EventFormat) -> Self {
        Self {
            format,
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            id: Vec::new(),
            retry: None,
            begun: false,
            after_cr: false,
            fault: None,
        }
    }

    /// Forgets everything, for the start of another body.
    pub fn reset(&mut self, format: EventFormat) {
        self.format = format;
        for buffer in [&mut self.line, &mut self.data, &mut self.name, &mut self.id] {
            buffer.clear();
            buffer.shrink_to(USUAL_EVENT);
        }
        self.retry = None;
        (self.begun, self.after_cr, self.fault) = (false, false, None);
    }

    /// Bytes of memory that it holds.
    pub const fn held_bytes(&self) -> usize {
        self.line.capacity() + self.data.capacity() + self.name.capacity() + self.id.capacity()
    }

    /// Returns `true` if the events are lines of JSON.
    pub const fn is_in_lines(&self) -> bool {
        matches!(self.format, EventFormat::Ndjson)
    }

    /// Passes the events that this piece of the payload completes to `tell`.
    ///
    /// # Errors
    /// If an event is too long, or is none. Events told before it are valid; the rest of the body is not
    /// read.
    pub fn feed(&mut self, input: &[u8], tell: impl FnMut(Event<'_>)) -> Result<(), EventError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.format == EventFormat::SseOrNdjson {
            self.choose(input);
        }
        let told = match self.format {
            EventFormat::Sse | EventFormat::Ndjson | EventFormat::SseOrNdjson => self.feed_lines(input, tell),
            EventFormat::LengthPrefixed => self.feed_messages(input, tell),
        };
        self.fault = told.err();
        told
    }

    /// Chooses the format by the first byte that is neither white space nor of the mark. What comes before is
    /// the front of a line in both.
    fn choose(&mut self, input: &[u8]) {
        let first = input.iter().find(|byte| !byte.is_ascii_whitespace() && !BOM.contains(byte));
        match first {
            Some(b'{') => self.format = EventFormat::Ndjson,
            Some(_) => self.format = EventFormat::Sse,
            None => {}
        }
    }

    /// The length-prefixed messages that are whole with this piece.
    fn feed_messages(&mut self, mut input: &[u8], mut tell: impl FnMut(Event<'_>)) -> Result<(), EventError> {
        let mut tell = |data: &[u8]| tell(Event { data, name: &[], id: &[], retry: None });
        while !input.is_empty() {
            if self.line.is_empty() {
                // Messages that came in one piece are not copied.
                let length = message_length(input)?;
                let Some((message, rest)) = input.split_at_checked(length) else {
                    self.line.extend_from_slice(input);
                    return Ok(());
                };
                tell(message);
                input = rest;
                continue;
            }
            let length = message_length(&self.line)?;
            let (part, rest) = input.split_at(input.len().min(length - self.line.len()));
            self.line.extend_from_slice(part);
            input = rest;
            // With the prefix the length becomes known.
            if message_length(&self.line)? == self.line.len() {
                tell(&self.line);
                self.line.clear();
                self.line.shrink_to(USUAL_EVENT);
            }
        }
        Ok(())
    }

    fn feed_lines(&mut self, mut input: &[u8], mut tell: impl FnMut(Event<'_>)) -> Result<(), EventError> {
        while !input.is_empty() {
            if std::mem::take(&mut self.after_cr) && input[0] == b'\n' {
                input = &input[1..];
                continue;
            }
            let end = match self.format {
                EventFormat::Sse | EventFormat::SseOrNdjson => memchr2(b'\n', b'\r', input),
                EventFormat::Ndjson | EventFormat::LengthPrefixed => memchr(b'\n', input),
            };
            let part = &input[..end.unwrap_or(input.len())];
            if self.line.len() + self.data.len() + part.len() > LONGEST_EVENT {
                return Err(EventError::TooLong);
            }
            let Some(end) = end else {
                self.line.extend_from_slice(part);
                return Ok(());
            };
            self.after_cr = input[end] == b'\r';
            input = &input[end + 1..];
            if self.line.is_empty() {
                self.end_line(part, &mut tell);
            } else {
                self.line.extend_from_slice(part);
                let line = std::mem::take(&mut self.line);
                self.end_line(&line, &mut tell);
                // Given back for its memory.
                self.line = line;
                self.line.clear();
                self.line.shrink_to(USUAL_EVENT);
            }
        }
        Ok(())
    }

    /// The body is over. Passes the last line of JSON, which needs no line end, to `tell`; returns `true` if
    /// nothing was cut off. A server-sent event without the empty line behind it does not count (WHATWG HTML,
    /// section 9.2.6).
    pub fn finish(&mut self, mut tell: impl FnMut(Event<'_>)) -> bool {
        if self.format == EventFormat::Ndjson && !self.line.is_empty() && self.fault.is_none() {
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut tell);
        }
        self.line.is_empty() && self.data.is_empty() && self.fault.is_none()
    }

    fn end_line(&mut self, line: &[u8], tell: &mut impl FnMut(Event<'_>)) {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let line = if is_first { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        match self.format {
            EventFormat::Ndjson | EventFormat::LengthPrefixed => {
                let data = line.trim_ascii();
                if !data.is_empty() {
                    tell(Event { data, name: &[], id: &[], retry: None });
                }
            }
            EventFormat::Sse | EventFormat::SseOrNdjson if line.is_empty() => self.end_event(tell),
            EventFormat::Sse | EventFormat::SseOrNdjson => self.field(line),
        }
    }

    fn end_event(&mut self, tell: &mut impl FnMut(Event<'_>)) {
        if let Some((_, data)) = self.data.split_last() {
            tell(Event { data, name: &self.name, id: &self.id, retry: self.retry });
        }
        self.data.clear();
        self.data.shrink_to(USUAL_EVENT);
        self.name.clear();
    }

    /// A line of server-sent events that has something in it. One that begins with a colon is a comment.
    fn field(&mut self, line: &[u8]) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => value.clone_into(&mut self.name),
            b"id" if !value.contains(&0) => value.clone_into(&mut self.id),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // Digits are text; more of them than a number has say nothing.
                self.retry = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }
}

/// Bytes of the length-prefixed message that begins with these, its prefix included; those of the prefix
/// alone, if that is not whole.
fn message_length(front: &[u8]) -> Result<usize, EventError> {
    if front.first().is_some_and(|flag| *flag > 1) {
        return Err(EventError::NoMessage);
    }
    let Some([_, length @ ..]) = front.first_chunk::<PREFIX>() else { return Ok(PREFIX) };
    match u32::from_be_bytes(*length) as usize {
        length if length > LONGEST_MESSAGE => Err(EventError::MessageTooLong),
        length => Ok(PREFIX + length),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Data, name, id and retry of each event, and whether nothing was cut off.
    type Read = (Vec<(String, String, String, Option<u64>)>, bool);

    fn read(format: EventFormat, pieces: &[&[u8]]) -> Read {
        let mut reader = EventReader::new(format);
        let mut events = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut tell = |event: Event<'_>| {
            events.push((text(event.data), text(event.name), text(event.id), event.retry));
        };
        for piece in pieces {
            if reader.feed(piece, &mut tell).is_err() {
                return (events, false);
            }
        }
        let whole = reader.finish(&mut tell);
        (events, whole)
    }

    fn data(format: EventFormat, body: &str) -> (Vec<String>, bool) {
        let (events, whole) = read(format, &[body.as_bytes()]);
        (events.into_iter().map(|(data, ..)| data).collect(), whole)
    }

    #[test]
    fn server_sent_events() {
        let cases: &[(&str, &[&str], bool)] = &[
            ("", &[], true),
            ("data: a\n\n", &["a"], true),
            ("data: a\r\n\r\ndata: b\r\rdata:c\n\n", &["a", "b", "c"], true),
            ("\u{feff}data: a\n\ndata: b\n\n", &["a", "b"], true),
            (": comment\n\n:\ndata: a\n: another\n\n", &["a"], true),
            ("data: a\ndata: b\ndata\n\n", &["a\nb\n"], true),
            ("data\n\ndata:\n\n", &["", ""], true),
            ("data:  two\n\n", &[" two"], true),
            ("datum: a\ndata : b\n\n", &[], true),
            ("event: only\n\n", &[], true),
            ("\n\n\r\r\r\n", &[], true),
            ("data: cut\n", &[], false),
            ("data: a\n\ndata: cu", &["a"], false),
        ];
        for (body, expected, whole) in cases {
            let (events, is_whole) = data(EventFormat::Sse, body);
            assert_eq!((events.as_slice(), is_whole), (&expected.map_text()[..], *whole), "{body:?}");
        }
    }

    #[test]
    fn the_first_byte_tells_lines_of_json_from_server_sent_events() {
        for (body, lines) in [
            ("data: {}\n\n", false),
            ("\u{feff}\r\n\ndata: {}\n\n", false),
            (": {}\n\ndata: {}\n\n", false),
            ("{}\n", true),
            ("\u{feff}{}", true),
            ("\r\n \n {}", true),
        ] {
            let (mut reader, mut told) = (EventReader::new(EventFormat::SseOrNdjson), Vec::new());
            for byte in body.as_bytes().chunks(1) {
                reader.feed(byte, |event| told.push(event.data.to_vec())).unwrap();
            }
            assert!(reader.finish(|event| told.push(event.data.to_vec())), "{body:?}");
            assert_eq!((told, reader.is_in_lines()), (vec![b"{}".to_vec()], lines), "{body:?}");
        }
    }

    trait MapText {
        fn map_text(&self) -> Vec<String>;
    }

    impl MapText for &[&str] {
        fn map_text(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn names_ids_and_retries_of_events() {
        let body =
            b"id: 1\nevent: add\nretry: 50\ndata: a\n\ndata: b\nid\nretry: 5x\n\nid: a\0b\ndata: c\n\n";
        let (events, _) = read(EventFormat::Sse, &[body]);
        let row = |data: &str, name: &str, id: &str| (data.into(), name.into(), id.into(), Some(50));
        assert_eq!(events, [row("a", "add", "1"), row("b", "", ""), row("c", "", "")]);
    }

    #[test]
    fn json_in_lines() {
        let cases: &[(&str, &[&str], bool)] = &[
            ("{\"a\":1}\n{\"b\":2}\r\n", &["{\"a\":1}", "{\"b\":2}"], true),
            ("\n \n1\n\n2", &["1", "2"], true),
            ("1\r2\n", &["1\r2"], true),
            ("", &[], true),
        ];
        for (body, expected, whole) in cases {
            let (events, is_whole) = data(EventFormat::Ndjson, body);
            assert_eq!((events.as_slice(), is_whole), (&expected.map_text()[..], *whole), "{body:?}");
        }
    }

    #[test]
    fn what_has_no_end_is_not_kept_for_ever() {
        let line = [b"data: ".as_slice(), &vec![b'x'; LONGEST_EVENT / 2], b"\n"].concat();
        for format in [EventFormat::Sse, EventFormat::Ndjson] {
            let mut reader = EventReader::new(format);
            let mut told = 0;
            let mut feed = |bytes: &[u8]| reader.feed(bytes, |_| told += 1);
            feed(b"data: a\n\n").unwrap();
            let bytes = if format == EventFormat::Sse { &line[..] } else { &line[..line.len() - 1] };
            feed(bytes).unwrap();
            assert_eq!(feed(bytes), Err(EventError::TooLong));
            assert_eq!(feed(b"\n\ndata: b\n\n"), Err(EventError::TooLong));
            assert_eq!(told, 1, "{format:?}");
            assert!(!reader.finish(|_| panic!("an event behind one that is too long")));
            assert!(reader.held_bytes() <= 3 * LONGEST_EVENT);
            reader.reset(format);
            assert!(reader.held_bytes() <= 4 * USUAL_EVENT);
            reader.feed(b"data: c\n\n", |_| told += 1).unwrap();
            assert_eq!(told, 2);
        }
    }

    #[test]
    fn length_prefixed_messages() {
        /// A body, the messages in it, and `true` if it ends with one.
        type Case = (&'static [u8], &'static [&'static [u8]], bool);
        let cases: &[Case] = &[
            (b"", &[], true),
            (b"\0\0\0\0\0\x01\0\0\0\x02ab", &[b"\0\0\0\0\0", b"\x01\0\0\0\x02ab"], true),
            (b"\0\0\0\0\x02ab\0\0\0", &[b"\0\0\0\0\x02ab"], false),
            (b"\0\0\0\0\x02a", &[], false),
            (b"\0\0\0\0\0<html>", &[b"\0\0\0\0\0"], false),
            (b"\0\0\x40\0\x01", &[], false),
        ];
        for (body, expected, whole) in cases {
            for size in [1, 2, 6, 100] {
                let (mut reader, mut told) = (EventReader::new(EventFormat::LengthPrefixed), Vec::new());
                for piece in body.chunks(size) {
                    let _ = reader.feed(piece, |event| told.push(event.data.to_vec()));
                }
                assert_eq!(told, *expected, "{}", body.escape_ascii());
                assert_eq!(reader.finish(|_| ()), *whole, "{}", body.escape_ascii());
            }
        }
        let fault =
            |body: &[u8]| EventReader::new(EventFormat::LengthPrefixed).feed(body, |_| ()).unwrap_err();
        assert_eq!(fault(b"<html>"), EventError::NoMessage);
        assert_eq!(fault(b"\0\0\x40\0\x01"), EventError::MessageTooLong);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_cuts(
            parts in prop::collection::vec(prop::sample::select(vec![
                "data: ", "data", ":", " ", "\n", "\r", "\r\n", "\n\n", "x", "{\"a\":1}", "id: 7", "event: e",
                "retry: 9", "\u{feff}", "é", "\0\0\0\0\0", "\u{1}\0\0\0\u{2}ab", "\0\0",
            ]), 0..40),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
            format in prop::sample::select(vec![
                EventFormat::Sse, EventFormat::Ndjson, EventFormat::LengthPrefixed, EventFormat::SseOrNdjson,
            ]),
        ) {
            let body = parts.concat().into_bytes();
            let whole = read(format, &[&body]);
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            places.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for place in places.into_iter().chain([body.len()]) {
                pieces.push(&body[from..place]);
                from = place;
            }
            prop_assert_eq!(&read(format, &pieces), &whole);
            let single: Vec<&[u8]> = body.chunks(1).collect();
            prop_assert_eq!(&read(format, &single), &whole);
        }
    }
}
