//! One WebSocket: its handshake, its messages, and the iteration that it belongs to.

mod inbox;
mod rules;

use plimsoll_core::ErrorClass;
use plimsoll_scenario::{Answered, SentRequest, WebSocketAction};
use plimsoll_wire::http2::{ClientOptions, Response, StreamFailure};
use plimsoll_wire::websocket::{
    ClientHandshake, ClientStream, Deflate, Deflater, HandshakeProgress, MessageReader, Opcode, Received,
    Role, write_close, write_frame,
};

use crate::connection::Fault;
use crate::request::NO_SESSION;
use inbox::USUAL_INBOX;
pub(crate) use inbox::{Inbox, Receipt};
pub(crate) use rules::{MessageRoom, Rules};

/// The status of a reply that stands for a message.
pub(crate) const MESSAGE: u16 = 200;
/// Longest message that is read, in bytes.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Most pings and pongs between two messages. Each ping is answered, whether or not the answers are read.
const MOST_PINGS: u32 = 100_000;

/// Stage in the life of a WebSocket.
#[derive(Debug)]
enum Stage {
    /// No upgrade was asked for.
    Fresh,
    /// The answer to the upgrade is awaited.
    Upgrading(Box<ClientHandshake>),
    /// The answer to the request for a stream of HTTP/2 is awaited.
    Asking,
    /// Messages can be sent.
    Open,
    /// We have sent a close frame, and await the other one.
    Closing,
}

/// The protocol state of a connection that is to be a WebSocket.
///
/// [`write`](Self::write) comes with the action that opens it first. It is given to one iteration then, its
/// owner, until it is closed.
#[derive(Debug)]
pub(crate) struct WebSocket {
    stage: Stage,
    /// The stream of HTTP/2 that carries it, instead of the connection itself.
    stream: Option<Box<CarryingStream>>,
    reader: MessageReader,
    inbox: Inbox,
    /// How messages are compressed, if they are.
    deflate: Option<Deflate>,
    /// State of the generator of masks.
    mask: u32,
    /// Pings since the last message.
    pings: u32,
    /// The session that it belongs to.
    pub(crate) owner: u32,
    /// The step that has opened it, if that has rules by which messages are answered.
    pub(crate) ruled_by: Option<u32>,
}

/// A stream of HTTP/2 that is to be a WebSocket.
#[derive(Debug)]
struct CarryingStream {
    stream: ClientStream,
    /// The scheme of its target.
    scheme: &'static str,
    /// Bytes that came on the stream, and frames for it.
    content: Vec<u8>,
    frames: Vec<u8>,
}

/// The answer that has opened a WebSocket.
#[derive(Debug)]
pub(crate) enum Opening {
    /// An upgrade of the connection, whose head had this many bytes.
    Upgrade(Box<ClientHandshake>, u64),
    /// A stream of HTTP/2.
    Stream(Response),
}

/// Events of a piece of input beside the messages, which are in the inbox.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The server's settings of HTTP/2 have come.
    pub(crate) ready: bool,
    /// The server has opened the WebSocket.
    pub(crate) opened: Option<Opening>,
    /// The server has not upgraded the connection: the first bytes of its response.
    pub(crate) refused: Option<Vec<u8>>,
    /// The server has not opened the stream of HTTP/2: its whole response.
    pub(crate) answered: Option<Response>,
    /// The stream of HTTP/2 has ended in another way.
    pub(crate) failed: Option<StreamFailure>,
    /// The server has ended its side of the stream.
    pub(crate) ended: bool,
    /// The server has sent a close frame: its status and reason.
    pub(crate) closed: Option<(Option<u16>, String)>,
    /// Violation of the protocol by the server.
    pub(crate) fault: Option<Fault>,
    /// Messages that came, and their bytes.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Messages among them that rules have dealt with, the answers to them, and the bytes of these.
    pub(crate) ruled: u64,
    pub(crate) answers: u64,
    pub(crate) answer_bytes: u64,
    pub(crate) pings: u64,
}

impl WebSocket {
    /// A connection that was just established; `seed` differs from those of others.
    pub(crate) fn new(seed: u64) -> Box<Self> {
        Box::new(Self {
            stage: Stage::Fresh,
            stream: None,
            reader: MessageReader::new(Role::Client, LONGEST_MESSAGE),
            inbox: Inbox::default(),
            deflate: None,
            pings: 0,
            // The state must not be 0.
            mask: (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1,
            owner: NO_SESSION,
            ruled_by: None,
        })
    }

    /// A connection on a stream of HTTP/2; `seed` differs from those of others. Appends the first bytes of
    /// the connection to `out`.
    pub(crate) fn over_http2(
        seed: u64,
        options: &ClientOptions,
        scheme: &'static str,
        out: &mut Vec<u8>,
    ) -> Box<Self> {
        let mut stream = ClientStream::new(options);
        stream.start(out);
        let stream = CarryingStream { stream, scheme, content: Vec::new(), frames: Vec::new() };
        Box::new(Self { stream: Some(Box::new(stream)), ..*Self::new(seed) })
    }

    /// Returns `true` if the server takes WebSockets on streams of HTTP/2. It is known once its settings have
    /// come.
    pub(crate) fn is_offered(&self) -> bool {
        self.stream.as_ref().is_none_or(|carrying| carrying.stream.is_offered())
    }

    /// Returns `true` if a stream of HTTP/2 carries it.
    pub(crate) const fn is_over_http2(&self) -> bool {
        self.stream.is_some()
    }

    /// Makes of an upgrade request, as it was rendered, the request that is sent in its place on a stream of
    /// HTTP/2, if that is how the WebSocket is opened.
    pub(crate) fn amend_logged(&self, action: Option<WebSocketAction>, sent: &mut SentRequest) {
        if self.is_over_http2() && action == Some(WebSocketAction::Open) {
            sent.method = b"CONNECT".to_vec();
            sent.fields.retain(|name, _| name != b"sec-websocket-key");
            sent.fields.push(b":protocol", b"websocket");
        }
    }

    /// Gives the fields of the answer that has just opened it, or that refuses it, to `look`: of a stream of
    /// HTTP/2 alone.
    pub(crate) fn each_header(&self, look: impl FnMut(&[u8], &[u8])) {
        if let Some(carrying) = &self.stream {
            carrying.stream.each_header(look);
        }
    }

    /// The body of the response that refuses it, of a stream of HTTP/2 alone.
    pub(crate) fn refusal(&self) -> &[u8] {
        self.stream.as_ref().map_or(&[], |carrying| carrying.stream.body())
    }

    /// Returns `true` before an upgrade was asked for.
    pub(crate) const fn is_fresh(&self) -> bool {
        matches!(self.stage, Stage::Fresh)
    }

    /// Returns `true` while messages can be sent.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Returns `true` once the handshake is over.
    pub(crate) const fn was_opened(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Closing)
    }

    /// Returns `true` once we have sent a close frame.
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing)
    }

    /// Returns `true` if a part of a message or of the answer to the upgrade has come.
    pub(crate) fn is_in_message(&self) -> bool {
        match &self.stage {
            Stage::Upgrading(handshake) => !handshake.held().is_empty(),
            Stage::Asking => false,
            _ => self.reader.is_in_message(),
        }
    }

    /// The messages that came, and that no step has awaited yet.
    pub(crate) const fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    /// Writes what an action sends: a request for an upgrade, or a message, as it was rendered.
    pub(crate) fn write(
        &mut self,
        action: WebSocketAction,
        rendered: &[u8],
        deflater: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        match action {
            WebSocketAction::Open if let Some(carrying) = &mut self.stream => {
                self.stage = Stage::Asking;
                carrying.stream.open(rendered, carrying.scheme, out);
            }
            WebSocketAction::Open => {
                self.stage = Stage::Upgrading(Box::new(ClientHandshake::new(rendered)));
                out.extend_from_slice(rendered);
            }
            WebSocketAction::Send { binary, answered } => {
                if answered {
                    // Earlier messages do not answer this one.
                    self.inbox.skip_all();
                }
                self.emit_message(binary, rendered, deflater, out);
            }
            WebSocketAction::Receive => {}
            WebSocketAction::Close(code) => self.close(code, out),
        }
    }

    /// Writes a close frame, unless one was written.
    pub(crate) fn close(&mut self, code: u16, out: &mut Vec<u8>) {
        if self.is_open() {
            self.stage = Stage::Closing;
            let mask = self.next_mask();
            self.emit(out, |out| write_close(Some(code), "", Some(mask), out));
        }
    }

    /// Writes a message.
    fn emit_message(&mut self, binary: bool, payload: &[u8], deflater: &mut Deflater, out: &mut Vec<u8>) {
        let opcode = if binary { Opcode::Binary } else { Opcode::Text };
        let mask = Some(self.next_mask());
        match self.deflate {
            None => self.emit(out, |out| write_frame(true, opcode, mask, payload, out)),
            Some(agreed) => self.emit(out, |out| deflater.write(agreed, opcode, mask, payload, out)),
        }
    }

    /// The connection is open, and messages are compressed as was agreed.
    fn agree(&mut self, deflate: Option<Deflate>) {
        self.stage = Stage::Open;
        self.deflate = deflate;
        deflate.into_iter().for_each(|agreed| self.reader.inflate(agreed));
    }

    /// Writes frames to where they go.
    fn emit(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(carrying) = &mut self.stream else { return write(out) };
        write(&mut carrying.frames);
        carrying.stream.send(&carrying.frames, out);
        carrying.frames.clear();
        carrying.frames.shrink_to(USUAL_INBOX);
    }

    /// Returns the number of messages that counted and were skipped since the last call.
    pub(crate) const fn take_skipped(&mut self) -> u64 {
        self.inbox.take_skipped()
    }

    /// Reads what came. Pings, and messages that the rules are for, are answered in `control`.
    pub(crate) fn read(
        &mut self,
        came: Receipt,
        input: &[u8],
        mut rules: Option<Rules<'_>>,
        control: &mut Vec<u8>,
    ) -> News {
        let mut news = News::default();
        let rules = &mut rules;
        let Some(carrying) = &mut self.stream else {
            self.read_bytes(came, input, rules, &mut news, control);
            return news;
        };
        let mut content = std::mem::take(&mut carrying.content);
        let (told, result) = carrying.stream.receive(input, &mut content, control);
        news.ready = told.ready;
        news.answered = told.refused;
        news.failed = told.failed;
        news.ended = told.ended;
        if let Some(error) = told.fault {
            news.fault = Some(Fault::new(ErrorClass::WebSocketHandshake, error.to_string()));
        } else if let Some(response) = told.opened {
            let deflate = carrying.stream.deflate();
            self.agree(deflate);
            news.opened = Some(Opening::Stream(response));
        }
        if news.fault.is_none() && !content.is_empty() {
            self.read_bytes(came, &content, rules, &mut news, control);
        }
        if let Err(error) = result
            && news.fault.is_none()
        {
            news.fault = Some(error.into());
        }
        if let Some(carrying) = &mut self.stream {
            content.clear();
            content.shrink_to(USUAL_INBOX);
            carrying.content = content;
        }
        news
    }

    /// Reads bytes of the WebSocket itself.
    fn read_bytes(
        &mut self,
        came: Receipt,
        mut input: &[u8],
        rules: &mut Option<Rules<'_>>,
        news: &mut News,
        control: &mut Vec<u8>,
    ) {
        if let Stage::Upgrading(handshake) = &mut self.stage {
            match handshake.read(&mut input) {
                Ok(HandshakeProgress::Incomplete) => return,
                Ok(HandshakeProgress::Refused) => {
                    news.refused = Some(handshake.held().to_vec());
                    return;
                }
                Ok(HandshakeProgress::Open { head_bytes }) => {
                    if let Stage::Upgrading(handshake) = std::mem::replace(&mut self.stage, Stage::Open) {
                        self.agree(handshake.deflate());
                        news.opened = Some(Opening::Upgrade(handshake, head_bytes as u64));
                    }
                }
                Err(error) => {
                    news.fault = Some(Fault::new(ErrorClass::WebSocketHandshake, error.to_string()));
                    return;
                }
            }
        }
        if self.is_fresh() {
            let reason = format!("{} bytes that no request had asked for", input.len());
            news.fault = Some(Fault::new(ErrorClass::UnsolicitedData, reason));
            return;
        }
        loop {
            match self.reader.next(&mut input, &mut self.inbox.bytes) {
                Ok(None) => return,
                Ok(Some(Received::Message { length, .. })) => {
                    self.pings = 0;
                    news.messages += 1;
                    news.bytes += length as u64;
                    if rules.as_mut().is_none_or(|rules| !self.answer(length, rules, news, control)) {
                        self.inbox.add(length, came);
                    }
                }
                Ok(Some(received @ (Received::Ping | Received::Pong))) => {
                    self.pings += 1;
                    if self.pings > MOST_PINGS {
                        self.close(1008, control);
                        let what = if received == Received::Ping { "pings" } else { "pongs" };
                        let reason = format!("more than {MOST_PINGS} {what} without a message between them");
                        news.fault = Some(Fault::new(ErrorClass::Protocol, reason));
                        return;
                    }
                    if received == Received::Pong {
                        continue;
                    }
                    news.pings += 1;
                    if self.is_open() {
                        let mask = self.next_mask();
                        let payload = self.reader.control().to_vec();
                        self.emit(control, |out| {
                            write_frame(true, Opcode::Pong, Some(mask), &payload, out);
                        });
                    }
                }
                Ok(Some(Received::Close { code })) => {
                    news.closed = Some((code, self.reader.close_reason().to_owned()));
                }
                Err(error) => {
                    self.close(error.close_code(), control);
                    news.fault = Some(Fault::new(ErrorClass::Protocol, error.to_string()));
                    return;
                }
            }
        }
    }

    /// Deals with the message that came last by the rules. Returns `false` if none is for it.
    fn answer(
        &mut self,
        length: usize,
        rules: &mut Rules<'_>,
        news: &mut News,
        control: &mut Vec<u8>,
    ) -> bool {
        let Some(answered) = rules.answer(self.inbox.last(length)) else { return false };
        if answered != Answered::Silently && !self.is_open() {
            // Nothing is sent behind our close frame.
            return false;
        }
        self.inbox.drop_last(length);
        news.ruled += 1;
        let bytes = self.emit_made(answered, rules, control);
        news.answers += u64::from(bytes > 0);
        news.answer_bytes += bytes;
        true
    }

    /// Writes a heartbeat: its bytes, 0 if there is none.
    pub(crate) fn beat(&mut self, mut rules: Rules<'_>, control: &mut Vec<u8>) -> u64 {
        if !self.is_open() {
            return 0;
        }
        rules.beat().map_or(0, |made| self.emit_made(made, &mut rules, control))
    }

    /// Writes the message that was made by a rule, if it is one: its bytes.
    fn emit_made(&mut self, made: Answered, rules: &mut Rules<'_>, control: &mut Vec<u8>) -> u64 {
        if made == Answered::Silently {
            return 0;
        }
        let before = control.len();
        let MessageRoom { text, deflater, .. } = &mut *rules.room;
        self.emit_message(made == Answered::Binary, text, deflater, control);
        (control.len() - before) as u64
    }

    /// A mask for the next frame. It is not a secret: it keeps the bytes of a message from being chosen.
    fn next_mask(&mut self) -> [u8; 4] {
        // Xorshift (G. Marsaglia, *Xorshift RNGs*, 2003).
        self.mask ^= self.mask << 13;
        self.mask ^= self.mask >> 17;
        self.mask ^= self.mask << 5;
        self.mask.to_ne_bytes()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Nanos, Random};
    use plimsoll_scenario::{
        AnswerSpec, Body, CheckSpec, Context, Matching, ReactionSpec, ResponseHandler, Scope, Session, Source,
    };
    use plimsoll_wire::websocket::{accept_of, write_upgrade_response};

    use super::inbox::{MOST_WAITING, MOST_WAITING_BYTES};
    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    const fn came(at: u64) -> Receipt {
        Receipt { at: Nanos(at), counts: true }
    }

    fn opened(more: &[u8]) -> (WebSocket, News) {
        let mut socket = *WebSocket::new(7);
        let (mut out, mut input) = (Vec::new(), Vec::new());
        assert!(socket.is_fresh());
        socket.write(WebSocketAction::Open, REQUEST, &mut Deflater::default(), &mut out);
        assert_eq!(out, REQUEST);
        write_upgrade_response(&accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), None, &mut input);
        input.extend_from_slice(more);
        let news = socket.read(came(5), &input, None, &mut Vec::new());
        (socket, news)
    }

    #[test]
    fn messages_may_come_with_the_answer_to_the_upgrade() {
        let (mut socket, news) = opened(b"\x81\x02hi\x82\x01x\x89\x01p");
        assert!(news.opened.is_some() && news.fault.is_none() && socket.is_open());
        assert_eq!((news.messages, news.bytes, news.pings), (2, 3, 1));
        assert_eq!(socket.inbox().first(), Some((&b"hi"[..], Nanos(5))));
        socket.inbox().take();
        assert_eq!(socket.inbox().first(), Some((&b"x"[..], Nanos(5))));
        let mut out = Vec::new();
        socket.write(
            WebSocketAction::Send { binary: false, answered: true },
            b"a",
            &mut Deflater::default(),
            &mut out,
        );
        assert_eq!(socket.inbox().first(), None, "an earlier message is no answer");
        assert_eq!(out.len(), 7);
    }

    #[test]
    fn a_ping_is_answered_by_a_masked_pong() {
        let (mut socket, _) = opened(b"");
        let mut control = Vec::new();
        socket.read(came(6), b"\x89\x02ab", None, &mut control);
        let mut reader = MessageReader::new(Role::Server, 100);
        assert_eq!(reader.next(&mut &control[..], &mut Vec::new()), Ok(Some(Received::Pong)));
        assert_eq!(reader.control(), b"ab");
    }

    #[test]
    fn refusals_closes_and_violations_are_told() {
        let mut socket = *WebSocket::new(7);
        socket.write(WebSocketAction::Open, REQUEST, &mut Deflater::default(), &mut Vec::new());
        assert!(socket.read(came(1), b"HTT", None, &mut Vec::new()).refused.is_none());
        let news = socket.read(came(1), b"P/1.1 403 No\r\n\r\n", None, &mut Vec::new());
        assert_eq!(news.refused.as_deref(), Some(&b"HTTP/1.1 403 No\r\n\r\n"[..]));
        let (_, news) = opened(b"\x88\x04\x03\xe9by");
        assert_eq!(news.closed, Some((Some(1001), "by".to_owned())));
        let (mut socket, _) = opened(b"");
        let mut control = Vec::new();
        let news = socket.read(came(1), b"\x81\x01a\xc1\x00", None, &mut control);
        assert_eq!(news.fault.map(|fault| fault.class), Some(ErrorClass::Protocol));
        assert_eq!(socket.inbox().first(), Some((&b"a"[..], Nanos(1))), "what came before is valid");
        assert!(!control.is_empty() && socket.is_closing());
        let mut fresh = *WebSocket::new(1);
        let news = fresh.read(came(1), b"\x81\x00", None, &mut control);
        assert_eq!(news.fault.map(|fault| fault.class), Some(ErrorClass::UnsolicitedData));
        let mut socket = *WebSocket::new(7);
        socket.write(WebSocketAction::Open, REQUEST, &mut Deflater::default(), &mut Vec::new());
        let news = socket.read(came(1), b"HTTP/1.1 101 a\r\n\r\n", None, &mut control);
        assert_eq!(news.fault.map(|fault| fault.class), Some(ErrorClass::WebSocketHandshake));
    }

    #[test]
    fn messages_that_nobody_awaits_are_bounded() {
        let (mut socket, _) = opened(b"");
        for _ in 0..3_000 {
            socket.read(came(1), b"\x81\x01a", None, &mut Vec::new());
        }
        assert_eq!(socket.take_skipped(), 3_000 - MOST_WAITING as u64);
        let large = [&[0x82, 126, 0xff, 0xff][..], &[7; 65_535]].concat();
        for _ in 0..200 {
            socket.read(came(1), &large, None, &mut Vec::new());
        }
        assert!(socket.inbox().bytes.len() <= 3 * MOST_WAITING_BYTES);
        assert!(socket.inbox().first().is_some_and(|(message, _)| message.len() == 65_535));
        socket.inbox().skip_all();
        assert!(socket.inbox().bytes.capacity() <= USUAL_INBOX);
    }

    /// A rule holds for each message as it comes: many that come together do not push one out before.
    #[test]
    fn messages_that_rules_are_for_are_answered_and_not_kept() {
        let checked = |text: &str| CheckSpec {
            source: Source::Body,
            matching: Matching::Equals(text.to_owned()),
            negated: false,
        };
        let rule = |receive: &str, send: Body, binary| AnswerSpec {
            receive: vec![checked(receive)],
            extract: Vec::new(),
            send,
            binary,
        };
        let spec = ReactionSpec {
            answers: vec![
                rule("2", Body::Text(b"3".to_vec()), false),
                rule("b", Body::Raw([0xff].into()), true),
                rule("n", Body::None, false),
            ],
            ..ReactionSpec::default()
        };
        let handler = ResponseHandler::compile(&spec, &Scope::default()).unwrap();
        let (mut session, mut random) = (Session::new(0), Random::new(1, 1));
        let mut room = MessageRoom::default();
        let mut read = |socket: &mut WebSocket, input: &[u8]| {
            let mut control = Vec::new();
            let rules = Rules {
                handler: &handler,
                session: &mut session,
                context: Context::default(),
                random: &mut random,
                room: &mut room,
            };
            let news = socket.read(came(1), input, Some(rules), &mut control);
            let (mut reader, mut said, mut input) =
                (MessageReader::new(Role::Server, 100), Vec::new(), &control[..]);
            let mut message = Vec::new();
            while let Ok(Some(Received::Message { binary, .. })) = reader.next(&mut input, &mut message) {
                said.push((binary, std::mem::take(&mut message)));
            }
            assert_eq!((news.answers, news.answer_bytes), (said.len() as u64, control.len() as u64));
            (news, said)
        };
        let (mut socket, _) = opened(b"");
        let flood = [&b"\x81\x012\x82\x01b\x81\x01n"[..], &b"\x81\x01a".repeat(3 * MOST_WAITING)].concat();
        let (news, said) = read(&mut socket, &flood);
        assert_eq!(said, [(false, b"3".to_vec()), (true, vec![0xff])]);
        assert_eq!((news.messages, news.ruled), (3 + 3 * MOST_WAITING as u64, 3));
        assert_eq!(socket.inbox().first(), Some((&b"a"[..], Nanos(1))));
        // A fragment at a time, with a message before it that stays.
        let (mut socket, _) = opened(b"\x81\x01k");
        assert!(read(&mut socket, b"\x01\x00\x80").1.is_empty());
        assert_eq!(read(&mut socket, b"\x012").1, [(false, b"3".to_vec())]);
        assert_eq!(socket.inbox().first(), Some((&b"k"[..], Nanos(5))));
        socket.inbox().take();
        assert_eq!(socket.inbox().first(), None);
        // Nothing is sent behind a close frame.
        socket.close(1000, &mut Vec::new());
        let (news, said) = read(&mut socket, b"\x81\x012");
        assert_eq!((news.ruled, said.len()), (0, 0));
    }

    #[test]
    fn what_is_skipped_is_counted_however_it_goes() {
        let (mut socket, _) = opened(b"");
        let send = WebSocketAction::Send { binary: false, answered: true };
        let receive = |socket: &mut WebSocket, counts| {
            let came = Receipt { at: Nanos(1), counts };
            socket.read(came, &b"\x81\x01a".repeat(3), None, &mut Vec::new());
        };
        receive(&mut socket, true);
        socket.inbox().take();
        assert_eq!(socket.take_skipped(), 0);
        socket.inbox().skip();
        assert_eq!((socket.take_skipped(), socket.take_skipped()), (1, 0));
        socket.write(send, b"q", &mut Deflater::default(), &mut Vec::new());
        assert_eq!(socket.take_skipped(), 1);
        receive(&mut socket, true);
        receive(&mut socket, false);
        socket.inbox().skip_all();
        assert_eq!(socket.take_skipped(), 3, "what came outside of the measured part does not count");
        socket.inbox().skip();
        assert_eq!(socket.take_skipped(), 0);
    }

    #[test]
    fn masks_differ() {
        let mut socket = *WebSocket::new(0);
        let mut masks: Vec<_> = (0..100).map(|_| socket.next_mask()).collect();
        masks.sort_unstable();
        masks.dedup();
        assert_eq!(masks.len(), 100);
    }
}
