//! Captures: the parts of requests and responses that are kept until their exchange has ended.

use std::sync::Arc;

use plimsoll_metrics::log::Message;
use plimsoll_metrics::{EventStreamRecord, SERVER_TIMING};
use plimsoll_scenario::{DynamicRequest, FieldList, FieldNeeds, Needs, RequestTemplate, SentRequest};

use crate::event_stream::{Receipt, StreamState, StreamedStep};
use crate::request::InFlight;

/// The capture of a request of which nothing is kept, or nothing yet.
pub(crate) const NO_CAPTURE: u32 = u32::MAX;

/// The first status of a response whose body is quoted, even if no step needs it.
pub(crate) const QUOTED_FROM: u16 = 300;

/// Fields about a connection of HTTP/1.1, which HTTP/2 does not send.
const ONLY_HTTP1: [&[u8]; 6] =
    [b"connection", b"host", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Bytes that the buffer of a body keeps for the next one.
const BODY_ROOM: usize = 64 << 10;

/// The form in which a request is written, if it differs from that of its step in the plan.
#[derive(Clone, Debug)]
pub(crate) enum Detour {
    /// From this template: after a redirect, or for another server.
    Template(Arc<RequestTemplate>),
    /// As a script has made it.
    Made(Arc<DynamicRequest>),
}

/// The kept parts of one exchange.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) fields: FieldList,
    pub(crate) body: Vec<u8>,
    /// The request as text, if failed ones are logged.
    pub(crate) request: Message,
    /// The form in which the request is written, if it is not that of its step.
    pub(crate) detour: Option<Detour>,
    /// The request, if its step wants to know of it. A session has several at once, so that it is not kept
    /// there.
    pub(crate) sent: SentRequest,
    /// The events of the response, if it is a stream of them; what an earlier exchange left, unless `streams`
    /// is set.
    pub(crate) stream: Option<Box<StreamState>>,
    /// Set once the body of this exchange's response has begun to be read as events.
    pub(crate) streams: bool,
}

impl Captured {
    /// Reads the part of a streamed body that has come at this instant, if its response is a success.
    pub(crate) fn read_events(
        &mut self,
        step: StreamedStep,
        (status, came): (u16, Receipt),
        record: &mut EventStreamRecord,
    ) {
        if !(200..300).contains(&status) {
            return;
        }
        let state = match &mut self.stream {
            Some(state) => {
                if !self.streams {
                    state.reset(step.stream);
                }
                state
            }
            none => none.insert(Box::new(StreamState::new(step.stream))),
        };
        self.streams = true;
        state.read(step, &mut self.body, came, record);
    }

    /// The events of the response so far; `None` before any of its body has come.
    pub(crate) fn events(&self) -> Option<&StreamState> {
        self.stream.as_deref().filter(|_| self.streams)
    }

    /// Returns `true` if as many events of the response have come as the step wants.
    pub(crate) fn has_enough(&self, step: StreamedStep) -> bool {
        let enough = step.stream.enough().map(u64::from);
        enough.is_some_and(|enough| self.events().is_some_and(|state| state.events() >= enough))
    }

    /// The events of the response so far, to take something of them; `None` before any of its body has come.
    pub(crate) fn events_mut(&mut self) -> Option<&mut StreamState> {
        self.stream.as_deref_mut().filter(|_| self.streams)
    }

    /// Keeps a field if it is needed.
    pub(crate) fn keep(&mut self, needs: &FieldNeeds, name: &[u8], value: &[u8]) {
        let needed = match needs {
            FieldNeeds::Nothing => false,
            FieldNeeds::Named(names) => names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name)),
            FieldNeeds::All => true,
        };
        if needed {
            self.fields.push(name, value);
        }
    }
}

impl Captured {
    fn clear_request(&mut self) {
        self.request.head.clear();
        self.request.body.clear();
        self.request.cut = 0;
    }

    fn keep_head(&mut self, bytes: &[u8], longest: usize) {
        let room = longest.saturating_sub(self.request.head.len());
        self.request.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn keep_content(&mut self, bytes: &[u8], longest: usize) {
        let room = longest.saturating_sub(self.request.body.len());
        let kept = bytes.len().min(room);
        self.request.body.extend_from_slice(&bytes[..kept]);
        self.request.cut += (bytes.len() - kept) as u64;
    }
}

/// The captures of one worker. Ended ones are used again with their memory.
#[derive(Debug)]
pub(crate) struct Captures {
    /// Bytes that are kept of a request's head, and of its body.
    longest: usize,
    all: Vec<Captured>,
    free: Vec<u32>,
    /// Takes the responses to requests that were given up.
    unwanted: Captured,
    /// Takes the responses to requests of which nothing is kept.
    words: Vec<u8>,
}

impl Captures {
    /// An empty store of captures, which keep up to this many bytes of a request's head and of its body.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, all: Vec::new(), free: Vec::new(), unwanted: Captured::default(), words: Vec::new() }
    }

    /// Begins one: its number.
    pub(crate) fn begin(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Captured::default());
            (self.all.len() - 1) as u32
        })
    }

    /// Lets `read` read a part of a response to `request`, which has no capture. It gets one if there is text
    /// in it: the server's explanation of an error.
    #[inline]
    pub(crate) fn quoting<T>(&mut self, request: &mut InFlight, read: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let result = read(&mut self.words);
        if !self.words.is_empty() {
            self.keep_words(request);
        }
        result
    }

    #[cold]
    fn keep_words(&mut self, request: &mut InFlight) {
        if !request.is_given_up() {
            request.capture = self.begin();
            self.all[request.capture as usize].body.extend_from_slice(&self.words);
        }
        self.words.clear();
        self.words.shrink_to(BODY_ROOM);
    }

    /// The capture, or a place for unwanted data.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Captured {
        match self.all.get_mut(number as usize) {
            Some(captured) => captured,
            None => {
                self.unwanted.fields.clear();
                self.unwanted.body.clear();
                &mut self.unwanted
            }
        }
    }

    /// Keeps the sent bytes, and gives other memory for them; begins a capture if there is none.
    pub(crate) fn keep_sent(&mut self, number: &mut u32, sent: &mut SentRequest) {
        if *number == NO_CAPTURE {
            *number = self.begin();
        }
        std::mem::swap(&mut self.get_mut(*number).sent, sent);
    }

    /// Keeps the bytes of a request of HTTP/1.1, of which `more` is the rest; begins a capture if there is
    /// none.
    pub(crate) fn keep_bytes(&mut self, number: &mut u32, bytes: &[u8], more: &[u8]) {
        // Empty lines before a request do not belong to it, and secrets are looked for in its head.
        let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
        let bytes = &bytes[start..];
        let end = memchr::memmem::find(bytes, b"\r\n\r\n");
        let (head, body) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 4..]));
        let longest = self.longest;
        let captured = self.kept(number);
        captured.keep_head(head, longest);
        captured.keep_content(body, longest);
        captured.keep_content(more, longest);
    }

    /// Keeps a request that is not a text on the wire, as lines of its fields; begins a capture if there is
    /// none.
    pub(crate) fn keep_lines(&mut self, number: &mut u32, scheme: &str, sent: &SentRequest) {
        let longest = self.longest;
        let captured = self.kept(number);
        let pseudo = [
            (&b":method"[..], &sent.method[..]),
            (b":scheme", scheme.as_bytes()),
            (b":authority", &sent.authority),
            (b":path", &sent.path),
        ];
        let fields = sent.fields.iter().filter(|(name, _)| !ONLY_HTTP1.contains(name));
        for (name, value) in pseudo.into_iter().chain(fields) {
            if !captured.request.head.is_empty() {
                captured.keep_head(b"\n", longest);
            }
            for part in [name, b": ", value] {
                captured.keep_head(part, longest);
            }
        }
        captured.keep_content(&sent.body, longest);
    }

    fn kept(&mut self, number: &mut u32) -> &mut Captured {
        if *number == NO_CAPTURE {
            *number = self.begin();
        }
        let captured = self.get_mut(*number);
        captured.clear_request();
        captured
    }

    /// Notes that a request is written in another form than its step's. Begins a new capture, and forgets the
    /// one of the exchange before.
    pub(crate) fn send_by(&mut self, number: &mut u32, detour: Detour) {
        self.end(*number);
        *number = self.begin();
        self.get_mut(*number).detour = Some(detour);
    }

    /// Returns the form in which the request is written; `None` if it is that of its step.
    pub(crate) fn detour(&self, number: u32) -> Option<&Detour> {
        self.all.get(number as usize)?.detour.as_ref()
    }

    /// Path and query of the request, if its step wants to know of it.
    pub(crate) fn sent_path(&self, number: u32) -> &[u8] {
        self.all.get(number as usize).map_or(&[], |captured| &captured.sent.path)
    }

    /// Forgets the capture of an exchange that is about to start over, except the form of its request.
    pub(crate) fn renew(&mut self, number: &mut u32) {
        let detour = self.detour(*number).cloned();
        self.end(*number);
        *number = NO_CAPTURE;
        if let Some(detour) = detour {
            self.send_by(number, detour);
        }
    }

    /// Gives the capture back, if there is one.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) {
        if number != NO_CAPTURE {
            self.give_back(number);
        }
    }

    fn give_back(&mut self, number: u32) {
        let captured = self.get_mut(number);
        captured.fields.clear();
        captured.body.clear();
        captured.body.shrink_to(BODY_ROOM);
        captured.clear_request();
        captured.detour = None;
        captured.sent.path.clear();
        captured.streams = false;
        self.free.push(number);
    }
}

/// Returns the needs of a step with all fields and the body added: the log of failed requests needs whole
/// responses.
pub(crate) fn whole(needs: &Needs) -> Needs {
    Needs { fields: FieldNeeds::All, body: true, ..needs.clone() }
}

/// Returns the needs of a step with the server's own times added, which stand beside slow requests.
pub(crate) fn with_timing(mut needs: Needs) -> Needs {
    add_field(&mut needs, SERVER_TIMING);
    needs
}

/// Adds a field to the needs.
fn add_field(needs: &mut Needs, field: &str) {
    match &mut needs.fields {
        FieldNeeds::Nothing => needs.fields = FieldNeeds::Named(vec![field.to_owned()]),
        FieldNeeds::Named(names) if !names.iter().any(|name| name == field) => names.push(field.to_owned()),
        FieldNeeds::Named(_) | FieldNeeds::All => {}
    }
}

/// Returns the needs of a step whose exchange is to be kept: those of its logic, and the `location` field if
/// redirects are to be followed.
pub(crate) fn with_location(needs: &Needs, redirects: u32) -> Needs {
    let mut needs = needs.clone();
    if redirects > 0 {
        add_field(&mut needs, "location");
    }
    needs
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::FailedExchange;

    use super::*;

    #[test]
    fn requests_are_kept_as_text_up_to_a_limit() {
        let mut captures = Captures::new(FailedExchange::LONGEST);
        let mut number = NO_CAPTURE;
        captures.keep_bytes(&mut number, b"\r\n\r\nPUT / HTTP/1.1\r\nhost: a\r\n\r\nab", b"cd");
        let request = &captures.get_mut(number).request;
        assert_eq!(*request, Message::new(b"PUT / HTTP/1.1\r\nhost: a", b"abcd", 99));
        let kept = number;
        let body = vec![7; FailedExchange::LONGEST];
        captures.keep_bytes(&mut number, b"PUT / HTTP/1.1\r\n\r\nabc", &body);
        let request = &captures.get_mut(number).request;
        assert_eq!((request.body.len(), request.cut), (FailedExchange::LONGEST, 3));
        let mut sent = SentRequest {
            method: b"GET".to_vec(),
            path: b"/x".to_vec(),
            authority: b"a:1".to_vec(),
            body: b"b".to_vec(),
            ..SentRequest::default()
        };
        sent.fields.push(b"connection", b"close");
        sent.fields.push(b"accept", b"*/*");
        captures.keep_lines(&mut number, "http", &sent);
        let lines = b":method: GET\n:scheme: http\n:authority: a:1\n:path: /x\naccept: */*";
        assert_eq!(captures.get_mut(number).request, Message::new(lines, b"b", 99));
        assert_eq!(number, kept);
        captures.end(number);
        assert_eq!(captures.begin(), kept);
        assert_eq!(captures.get_mut(kept).request, Message::default());
    }

    #[test]
    fn what_nobody_wants_is_not_kept() {
        let mut captures = Captures::new(FailedExchange::LONGEST);
        let number = captures.begin();
        let needs = with_location(&Needs::default(), 1);
        let captured = captures.get_mut(number);
        captured.keep(&needs.fields, b"Location", b"/a");
        captured.keep(&needs.fields, b"etag", b"1");
        assert_eq!(captured.fields.get("location"), Some(&b"/a"[..]));
        assert_eq!(captured.fields.len(), 1);
        captures.get_mut(NO_CAPTURE).body.extend_from_slice(b"late");
        assert!(captures.get_mut(NO_CAPTURE).body.is_empty());
        captures.end(number);
        captures.end(NO_CAPTURE);
        assert_eq!(captures.begin(), number);
        assert!(captures.get_mut(number).fields.is_empty());
        assert_ne!(captures.begin(), number);
    }
}
