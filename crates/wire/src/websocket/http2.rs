//! WebSockets over HTTP/2 (RFC 8441): a stream that an extended CONNECT request opens. It has its connection
//! to itself.

use crate::http2::hpack::put_literal;
use crate::http2::{
    Captured, Client, ClientOptions, ConnectionError, Event, HeaderBlockCache, Payload, Request, Response,
    Server, ServerOptions, StreamFailure,
};

use super::Deflate;
use super::handshake::{HandshakeError, Offered, fields_of, key_of};

/// Fields of an upgrade request that an extended CONNECT does not have: HTTP/2 has other means, and needs no
/// proof that the server has read the request (RFC 8441 section 5).
const ONLY_HTTP1: [&[u8]; 4] = [b"host", b"upgrade", b"connection", b"sec-websocket-key"];

/// A WebSocket's stream, seen from the client.
///
/// Call [`start`](Self::start) first, [`open`](Self::open) once the server's settings have come and
/// [offer](Self::is_offered) WebSocket, and [`send`](Self::send) once it has opened. Each call appends output
/// for the server to `out`.
#[derive(Debug)]
pub struct ClientStream {
    client: Client,
    /// Nothing is appended to the peer's table: a connection has one request.
    book: HeaderBlockCache,
    ticket: Option<u32>,
    /// The final head has come: its fields, until the next `receive`.
    head: Option<Captured>,
    offered: Offered,
    deflate: Option<Deflate>,
    events: Vec<Event>,
}

/// Events of a piece of input, beside content.
#[derive(Debug, Default)]
pub struct ClientNews {
    /// The server's settings have come.
    pub ready: bool,
    /// The server has opened the stream: the head of its response.
    pub opened: Option<Response>,
    /// The server has opened the stream in a way that is against the rules.
    pub fault: Option<HandshakeError>,
    /// The server has answered with another status than success. Its response is whole.
    pub refused: Option<Response>,
    /// The server has ended its side of an open stream, or goes away before there is one.
    pub ended: bool,
    /// The stream ended in another way.
    pub failed: Option<StreamFailure>,
}

impl ClientStream {
    /// A stream on a fresh connection.
    pub fn new(options: &ClientOptions) -> Self {
        Self {
            client: Client::new(options),
            book: HeaderBlockCache::new(),
            ticket: None,
            head: None,
            offered: Offered::default(),
            deflate: None,
            events: Vec::new(),
        }
    }

    /// Appends the first bytes of a client.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        self.client.start(out);
    }

    /// Returns `true` if the server's settings offer WebSocket over HTTP/2 (RFC 8441 section 3) and allow a
    /// stream.
    pub fn is_offered(&self) -> bool {
        self.client.allows_extended_connect() && self.client.capacity() > 0
    }

    /// Opens the stream by a request that is written as an upgrade request of HTTP/1.1. Nothing is sent if
    /// the server allows no stream any more.
    pub fn open(&mut self, request: &[u8], scheme: &str, out: &mut Vec<u8>) {
        if self.client.capacity() == 0 {
            return;
        }
        self.offered = Offered::read(request);
        let authority = key_of(request, "host").unwrap_or_default();
        // `GET path HTTP/1.1`
        let path = request.split(|byte| *byte == b' ').nth(1).unwrap_or(b"/");
        let book = &self.book;
        let head = |indexing: &mut _, out: &mut Vec<u8>| {
            book.begin(indexing, out);
            let pseudo = [
                (":method", &b"CONNECT"[..]),
                (":protocol", b"websocket"),
                (":scheme", scheme.as_bytes()),
                (":path", path),
                (":authority", authority),
            ];
            for (name, value) in pseudo {
                put_literal(out, name.as_bytes(), value, false);
            }
            for (name, value) in fields_of(request) {
                let name = name.to_ascii_lowercase();
                if !ONLY_HTTP1.contains(&name.as_slice()) {
                    put_literal(out, &name, value, false);
                }
            }
        };
        self.ticket = Some(self.client.connect(head, out));
    }

    /// How messages may be compressed, once the stream is open.
    pub const fn deflate(&self) -> Option<Deflate> {
        self.deflate
    }

    /// Sends bytes of the WebSocket.
    pub fn send(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Some(ticket) = self.ticket {
            self.client.send(ticket, bytes, out);
        }
    }

    /// Reads what came. Bytes of the WebSocket are appended to `content`.
    ///
    /// # Errors
    /// The server broke a rule of HTTP/2. The news before it are valid, and the connection is over.
    pub fn receive(
        &mut self,
        input: &[u8],
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> (ClientNews, Result<(), ConnectionError>) {
        let mut news = ClientNews::default();
        let mut events = std::mem::take(&mut self.events);
        let result = self.client.receive(input, out, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Ready => news.ready = true,
                Event::Head { ticket, fields } if self.head.is_none() => {
                    self.head = Some(fields);
                    let response = self.client.response(ticket).filter(is_success);
                    if response.is_some() {
                        let all = |name| self.client.captured(&fields).filter(named(name)).map(value);
                        match self.offered.check(all) {
                            Ok(deflate) => self.deflate = deflate,
                            Err(fault) => news.fault = Some(fault),
                        }
                    }
                    news.opened = response;
                }
                Event::Content { ticket, status } if is_success_status(status) => {
                    self.client.take_body(ticket, content);
                }
                Event::Response { response, .. } if is_success(&response) => news.ended = true,
                Event::Response { response, .. } => news.refused = Some(response),
                Event::Failed { failure, .. } => news.failed = Some(failure),
                Event::GoAway { .. } => news.ended |= self.ticket.is_none(),
                // The content of a refusal is kept.
                Event::Head { .. } | Event::Content { .. } | Event::Began { .. } | Event::Pong { .. } => {}
            }
        }
        self.events = events;
        (news, result)
    }

    /// Gives the fields of the response's head to `look`, until the `receive` after the one that told of it.
    pub fn each_header(&self, mut look: impl FnMut(&[u8], &[u8])) {
        if let Some(head) = &self.head {
            self.client.captured(head).for_each(|(name, value)| look(name, value));
        }
    }

    /// The content of a refusal.
    pub fn body(&self) -> &[u8] {
        self.ticket.map_or(&[], |ticket| self.client.body(ticket))
    }
}

fn named<'f>(name: &'static str) -> impl Fn(&(&'f [u8], &'f [u8])) -> bool {
    move |(found, _)| *found == name.as_bytes()
}

const fn value<'f>((_, value): (&'f [u8], &'f [u8])) -> &'f [u8] {
    value.trim_ascii()
}

const fn is_success_status(status: u16) -> bool {
    matches!(status, 200..=299)
}

const fn is_success(response: &Response) -> bool {
    is_success_status(response.status)
}

/// A WebSocket's stream, seen from a server that speaks nothing but WebSocket.
///
/// It takes one stream at a time: clients that want several WebSockets open as many connections. Call
/// [`start`](Self::start) first, and answer [`ServerNews::asked`] by [`accept`](Self::accept) or
/// [`refuse`](Self::refuse).
#[derive(Debug)]
pub struct ServerStream {
    server: Server,
    book: HeaderBlockCache,
    /// The stream of the WebSocket.
    stream: Option<u32>,
    requests: Vec<Request>,
}

/// Events of a piece of input, beside content.
#[derive(Debug, Default)]
pub struct ServerNews {
    /// A WebSocket is to be opened, with the subprotocol that the client likes best, if it offers any.
    pub asked: Option<Option<Box<[u8]>>>,
    /// Requests that do not ask for a WebSocket: their streams.
    pub others: Vec<u32>,
    /// The client has ended its side of the stream, or given it up.
    pub ended: bool,
}

impl ServerStream {
    /// Bytes that are kept until the client opens its windows.
    pub const fn held_bytes(&self) -> usize {
        self.server.held_bytes()
    }

    /// A stream on a fresh connection.
    pub fn new() -> Self {
        let options = ServerOptions {
            max_streams: 1,
            keeps_content: true,
            tells_parts: true,
            extended_connect: true,
            ..ServerOptions::default()
        };
        Self {
            server: Server::new(&options),
            book: HeaderBlockCache::new(),
            stream: None,
            requests: Vec::new(),
        }
    }

    /// Appends the first bytes of a server.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        self.server.start(out);
    }

    /// Reads what came. Bytes of the WebSocket are appended to `content`.
    ///
    /// # Errors
    /// The client broke a rule of HTTP/2. The news before it are valid, and the connection is over.
    pub fn receive(
        &mut self,
        input: &[u8],
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> (ServerNews, Result<(), ConnectionError>) {
        let mut news = ServerNews::default();
        let mut requests = std::mem::take(&mut self.requests);
        let result = self.server.receive(input, out, &mut requests);
        // Each part of a request has all content that was not consumed, so the last one counts.
        let mut last: Option<&Request> = None;
        for request in &requests {
            let protocol = request.protocol.map(|protocol| self.server.text(protocol));
            match self.stream {
                Some(stream) if stream == request.stream => last = Some(request),
                None if protocol == Some(b"websocket") => {
                    self.stream = Some(request.stream);
                    let offered = request.subprotocols.map(|offered| self.server.text(offered));
                    let best = offered.and_then(|offered| offered.split(|byte| *byte == b',').next());
                    news.asked = Some(best.map(|name| name.trim_ascii().into()));
                    last = Some(request);
                }
                _ if request.whole => news.others.push(request.stream),
                _ => {}
            }
        }
        if let Some(last) = last {
            let bytes = self.server.text(last.content);
            content.extend_from_slice(bytes);
            news.ended = last.whole;
            let length = bytes.len();
            self.server.consume(last.stream, length);
        }
        news.ended |= self.stream.is_some_and(|stream| !self.server.is_open(stream));
        requests.clear();
        self.requests = requests;
        (news, result)
    }

    /// Opens the WebSocket, with the subprotocol that was chosen.
    pub fn accept(&mut self, subprotocol: Option<&[u8]>, out: &mut Vec<u8>) {
        let Some(stream) = self.stream else { return };
        let book = &self.book;
        let head = |indexing: &mut _, out: &mut Vec<u8>| {
            book.begin(indexing, out);
            put_literal(out, b":status", b"200", false);
            if let Some(subprotocol) = subprotocol {
                put_literal(out, b"sec-websocket-protocol", subprotocol, false);
            }
        };
        self.server.reply_head(stream, head, out);
    }

    /// Answers the request on a stream with a status and a text; `None` is the stream that asked for the
    /// WebSocket.
    pub fn refuse(&mut self, stream: Option<u32>, status: u16, text: &str, out: &mut Vec<u8>) {
        let Some(stream) = stream.or(self.stream) else { return };
        let book = &self.book;
        let head = |indexing: &mut _, out: &mut Vec<u8>| {
            book.begin(indexing, out);
            put_literal(out, b":status", status.to_string().as_bytes(), false);
            put_literal(out, b"content-type", b"text/plain", false);
        };
        self.server.reply(stream, head, Payload::Bytes(text.as_bytes()), out);
    }

    /// Sends bytes of the WebSocket.
    pub fn send(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Some(stream) = self.stream.filter(|_| !bytes.is_empty()) {
            self.server.data(stream, Payload::Bytes(bytes), false, out);
        }
    }

    /// Bytes that wait for the client's windows.
    pub fn waiting(&self) -> usize {
        self.stream.map_or(0, |stream| self.server.waiting(stream))
    }
}

impl Default for ServerStream {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::FieldLimits;
    use crate::http2::hpack::Decoder;

    const UPGRADE: &[u8] = b"GET /chat?a=1 HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n\
        Sec-WebSocket-Protocol: chat, superchat\r\nCookie: a=b\r\n\r\n";

    /// Both ends, and the bytes between them.
    struct Pair {
        client: ClientStream,
        server: ServerStream,
        to_server: Vec<u8>,
        to_client: Vec<u8>,
        at_server: Vec<u8>,
        at_client: Vec<u8>,
    }

    impl Pair {
        fn new() -> Self {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            let (mut client, mut server) =
                (ClientStream::new(&ClientOptions::default()), ServerStream::new());
            client.start(&mut to_server);
            server.start(&mut to_client);
            Self { client, server, to_server, to_client, at_server: Vec::new(), at_client: Vec::new() }
        }

        /// Opens the WebSocket up to the server's answer.
        fn asked(size: usize) -> Self {
            let mut pair = Self::new();
            assert!(!pair.client.is_offered());
            assert!(pair.client_reads(size).ready && pair.client.is_offered());
            pair.client.open(UPGRADE, "http", &mut pair.to_server);
            let news = pair.server_reads(size);
            assert_eq!(news.asked, Some(Some(Box::from(&b"chat"[..]))));
            assert!(!news.ended && pair.at_server.is_empty());
            pair
        }

        fn client_reads(&mut self, size: usize) -> ClientNews {
            let mut all = ClientNews::default();
            for piece in std::mem::take(&mut self.to_client).chunks(size) {
                let (news, result) = self.client.receive(piece, &mut self.at_client, &mut self.to_server);
                result.unwrap();
                all.ready |= news.ready;
                all.ended |= news.ended;
                all.opened = all.opened.or(news.opened);
                all.refused = all.refused.or(news.refused);
                all.failed = all.failed.or(news.failed);
                all.fault = all.fault.or(news.fault);
            }
            all
        }

        fn server_reads(&mut self, size: usize) -> ServerNews {
            let mut all = ServerNews::default();
            for piece in std::mem::take(&mut self.to_server).chunks(size) {
                let (news, result) = self.server.receive(piece, &mut self.at_server, &mut self.to_client);
                result.unwrap();
                all.asked = all.asked.or(news.asked);
                all.ended |= news.ended;
                all.others.extend(news.others);
            }
            all
        }
    }

    /// Those of more than 256 were left out, with the path.
    #[test]
    fn however_many_fields_there_are_all_are_sent() {
        let mut pair = Pair::new();
        pair.client_reads(1000);
        let more: String = (0..300).map(|number| format!("X-{number}: {number}\r\n")).collect();
        let upgrade = String::from_utf8(UPGRADE.to_vec()).unwrap().replace("Cookie: a=b\r\n", &more);
        pair.to_server.clear();
        pair.client.open(upgrade.as_bytes(), "http", &mut pair.to_server);
        // One HEADERS frame, whose head has 9 bytes.
        let limits = FieldLimits { list_bytes: 1 << 16, fields: 1000 };
        let mut fields = Vec::new();
        let keep = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
        Decoder::new(4096).decode(&pair.to_server[9..], &limits, keep).unwrap();
        // Five pseudo-header fields, the version and the subprotocols.
        assert_eq!(fields.len(), 5 + 2 + 300);
        assert!(fields.contains(&(b":path".to_vec(), b"/chat?a=1".to_vec())));
        assert!(fields.contains(&(b"x-299".to_vec(), b"299".to_vec())));
    }

    #[test]
    fn bytes_go_both_ways_in_any_pieces() {
        for size in [1, 7, 100_000] {
            let mut pair = Pair::asked(size);
            pair.server.accept(Some(b"superchat"), &mut pair.to_client);
            let opened = pair.client_reads(size);
            assert_eq!(opened.opened.map(|response| response.status), Some(200));
            assert_eq!((opened.fault, opened.ended), (None, false));
            // More than the windows allow at once.
            let large = vec![7; 3 << 20];
            pair.client.send(b"hello", &mut pair.to_server);
            pair.client.send(&large, &mut pair.to_server);
            pair.server.send(b"world", &mut pair.to_client);
            for _ in 0..1000 {
                if pair.to_client.is_empty() && pair.to_server.is_empty() {
                    break;
                }
                assert!(!pair.server_reads(size.max(1000)).ended);
                assert!(!pair.client_reads(size.max(1000)).ended);
            }
            assert!(pair.at_server == [&b"hello"[..], &large].concat());
            assert_eq!(pair.at_client, b"world");
        }
    }

    #[test]
    fn a_refusal_has_its_status_and_its_words() {
        let mut pair = Pair::asked(1000);
        pair.server.refuse(None, 403, "not you", &mut pair.to_client);
        let news = pair.client_reads(3);
        assert_eq!(news.refused.map(|response| response.status), Some(403));
        assert!(news.opened.is_none() && pair.at_client.is_empty());
        assert_eq!(pair.client.body(), b"not you");
    }

    #[test]
    fn what_was_not_offered_is_a_fault() {
        let mut pair = Pair::asked(1000);
        pair.server.accept(Some(b"other"), &mut pair.to_client);
        let news = pair.client_reads(1000);
        assert_eq!(news.fault, Some(HandshakeError::Subprotocol("other".to_owned())));
    }

    #[test]
    fn other_requests_are_told_and_a_client_that_gives_up_ends_the_stream() {
        let mut pair = Pair::new();
        pair.server_reads(1000);
        let mut client = Client::new(&ClientOptions::default());
        let mut out = Vec::new();
        client.receive(&std::mem::take(&mut pair.to_client), &mut out, &mut Vec::new()).unwrap();
        let get = |_: &mut _, out: &mut Vec<u8>| {
            for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/")] {
                put_literal(out, name.as_bytes(), value.as_bytes(), false);
            }
        };
        let spec = crate::http2::Submit {
            head_request: false,
            capture: false,
            keep_body: false,
            tell_content: false,
            body: Payload::None,
        };
        client.submit(spec, get, &mut pair.to_server);
        assert_eq!(pair.server_reads(1000).others, [1]);
        pair.server.refuse(Some(1), 426, "no", &mut pair.to_client);
        let mut events = Vec::new();
        client.receive(&std::mem::take(&mut pair.to_client), &mut out, &mut events).unwrap();
        assert!(matches!(events[..], [Event::Response { response: Response { status: 426, .. }, .. }]));

        let mut pair = Pair::asked(1000);
        pair.client.client.cancel(0, &mut pair.to_server);
        assert!(pair.server_reads(1000).ended);
    }
}
