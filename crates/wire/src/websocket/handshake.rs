//! The opening handshake (RFC 6455 section 4), over HTTP/1.1.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::Deflate;

/// RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Most fields of an answer.
const MOST_FIELDS: usize = 100;
/// The status line up to the status: of an upgrade it begins like this.
const UPGRADES: &[u8] = b"HTTP/1.1 101";

/// The value of Sec-WebSocket-Accept: the proof that a server has read the key.
pub type Accept = [u8; 28];

/// The proof for a key, as it stands in the request.
pub fn accept_of(key: &[u8]) -> Accept {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    let mut accept = [0; 28];
    // 20 bytes are 28 letters.
    let written = STANDARD.encode_slice(hash.as_ref(), &mut accept);
    debug_assert_eq!(written.ok(), Some(accept.len()));
    accept
}

/// The value of a field of an upgrade request as it was written.
pub fn key_of<'r>(request: &'r [u8], name: &str) -> Option<&'r [u8]> {
    let named = |(field, value): (&[u8], _)| field.eq_ignore_ascii_case(name.as_bytes()).then_some(value);
    fields_of(request).find_map(named)
}

/// Names and values of the fields of an upgrade request, as it was written.
pub(super) fn fields_of(request: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = request.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii);
    lines.filter_map(|line| {
        let (field, value) = line.split_at_checked(line.iter().position(|byte| *byte == b':')?)?;
        Some((field, value[1..].trim_ascii()))
    })
}

/// Appends the answer to an upgrade request with this proof, and the subprotocol that was chosen.
pub fn write_upgrade_response(accept: &Accept, subprotocol: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    );
    out.extend_from_slice(b"Sec-WebSocket-Accept: ");
    out.extend_from_slice(accept);
    if let Some(subprotocol) = subprotocol {
        out.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
        out.extend_from_slice(subprotocol);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Fault in an answer that says it upgrades.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The head is not one of HTTP/1.1.
    Malformed,
    /// The head is too long.
    TooLong,
    /// The field Upgrade does not say websocket, or Connection does not say upgrade.
    NotWebSocket,
    /// There is no Sec-WebSocket-Accept, or not the one that belongs to the key.
    Accept,
    /// The server chose a subprotocol that was not offered.
    Subprotocol(String),
    /// The server chose an extension that was not offered, or that is not known here.
    Extension(String),
    /// The server accepts permessage-deflate with a parameter that cannot be (RFC 7692 section 7.1).
    Deflate(String),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the answer to the upgrade is not HTTP/1.1"),
            Self::TooLong => f.write_str("the head of the answer to the upgrade is too long"),
            Self::NotWebSocket => f.write_str("the server switches protocols, but not to websocket"),
            Self::Accept => f.write_str("Sec-WebSocket-Accept is missing, or does not belong to the key"),
            Self::Subprotocol(name) => {
                write!(f, "the server chose the subprotocol `{}`, which was not offered", name.escape_debug())
            }
            Self::Extension(name) => {
                write!(f, "the server chose the extension `{}`, which was not offered", name.escape_debug())
            }
            Self::Deflate(parameter) => {
                let parameter = parameter.escape_debug();
                write!(f, "the server accepts permessage-deflate with a wrong `{parameter}`")
            }
        }
    }
}

impl std::error::Error for HandshakeError {}

/// State of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeProgress {
    /// More has to come.
    Incomplete,
    /// The answer is no upgrade: an ordinary response, of which [`ClientHandshake::held`] are the first
    /// bytes.
    Refused,
    /// The connection speaks WebSocket from here on. The head had this many bytes.
    Open {
        /// Bytes of the head.
        head_bytes: usize,
    },
}

/// Reads the answer to an upgrade request, from any cut of its bytes.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    head: Vec<u8>,
    accept: Accept,
    offered: Offered,
    deflate: Option<Deflate>,
}

impl ClientHandshake {
    /// The answer to this request, whose key and offers are read out of it.
    pub fn new(request: &[u8]) -> Self {
        Self {
            head: Vec::new(),
            accept: accept_of(key_of(request, "sec-websocket-key").unwrap_or_default()),
            offered: Offered::read(request),
            deflate: None,
        }
    }

    /// How messages may be compressed, once the connection is open.
    pub const fn deflate(&self) -> Option<Deflate> {
        self.deflate
    }

    /// Reads on. Bytes behind the head are left in `input`.
    ///
    /// # Errors
    /// The answer says that it upgrades, and is not valid.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<HandshakeProgress, HandshakeError> {
        let before = self.head.len();
        self.head.extend_from_slice(input);
        let told = self.head.len().min(UPGRADES.len());
        if self.head[..told] != UPGRADES[..told] {
            *input = &[];
            return Ok(HandshakeProgress::Refused);
        }
        // The end may have begun in the piece before.
        let from = before.saturating_sub(3);
        let Some(end) = memmem::find(&self.head[from..], b"\r\n\r\n").map(|at| from + at + 4) else {
            *input = &[];
            return match self.head.len() {
                0..=LONGEST_HEAD => Ok(HandshakeProgress::Incomplete),
                _ => Err(HandshakeError::TooLong),
            };
        };
        if end > LONGEST_HEAD {
            return Err(HandshakeError::TooLong);
        }
        *input = &input[end - before..];
        self.head.truncate(end);
        self.deflate = self.check()?;
        Ok(HandshakeProgress::Open { head_bytes: end })
    }

    /// The bytes that were read.
    pub fn held(&self) -> &[u8] {
        &self.head
    }

    /// Gives the fields of an answer that was read as a whole to `look`.
    pub fn each_header(&self, mut look: impl FnMut(&str, &[u8])) {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        if response.parse(&self.head).is_ok() {
            response.headers.iter().for_each(|field| look(field.name, field.value));
        }
    }

    fn check(&self) -> Result<Option<Deflate>, HandshakeError> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(&self.head) {
            Ok(httparse::Status::Complete(_)) if response.code == Some(101) => {}
            _ => return Err(HandshakeError::Malformed),
        }
        let fields = Fields(response.headers);
        if !fields.lists("upgrade", "websocket") || !fields.lists("connection", "upgrade") {
            return Err(HandshakeError::NotWebSocket);
        }
        let mut accepts = fields.all("sec-websocket-accept");
        if accepts.next() != Some(&self.accept[..]) || accepts.next().is_some() {
            return Err(HandshakeError::Accept);
        }
        self.offered.check(|name| fields.all(name))
    }
}

/// What a client has offered, as it stands in its request.
#[derive(Clone, Debug, Default)]
pub(super) struct Offered {
    subprotocols: Vec<u8>,
    extensions: Vec<u8>,
}

impl Offered {
    pub(super) fn read(request: &[u8]) -> Self {
        let list = |name: &str| {
            let named = fields_of(request).filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
            named.map(|(_, value)| value).collect::<Vec<_>>().join(&b',')
        };
        Self { subprotocols: list("sec-websocket-protocol"), extensions: list("sec-websocket-extensions") }
    }

    /// Checks what a server has chosen; how messages may be compressed. `all` gives the values of the fields
    /// of a name.
    pub(super) fn check<'v, V: Iterator<Item = &'v [u8]>>(
        &self,
        all: impl Fn(&'static str) -> V,
    ) -> Result<Option<Deflate>, HandshakeError> {
        let extensions: Vec<_> = all("sec-websocket-extensions").filter(|value| !value.is_empty()).collect();
        let deflate = Deflate::chosen(&self.extensions, &extensions.join(&b','))?;
        let was_offered = |name: &[u8]| {
            self.subprotocols.split(|byte| *byte == b',').any(|offered| offered.trim_ascii() == name)
        };
        let mut chosen = all("sec-websocket-protocol");
        match (chosen.next(), chosen.next()) {
            (None, _) => Ok(deflate),
            (Some(name), None) if !name.is_empty() && was_offered(name) => Ok(deflate),
            (Some(name), _) => Err(HandshakeError::Subprotocol(String::from_utf8_lossy(name).into_owned())),
        }
    }
}

/// A request for an upgrade that a server can grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeRequest {
    /// The proof that the answer has to have.
    pub accept: Accept,
    /// The subprotocol that the client likes best, if it offers any.
    pub subprotocol: Option<Box<[u8]>>,
}

/// State of a request to a server that speaks nothing but WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeProgress {
    /// More has to come.
    Incomplete,
    /// The request is to be refused with this status: 400 for what is not HTTP/1.1 or lacks its key, 426 for
    /// what asks for no upgrade to this version of WebSocket.
    Refused(u16),
    /// An upgrade.
    Upgrade(UpgradeRequest),
}

/// Reads an upgrade request, from any cut of its bytes.
#[derive(Clone, Debug, Default)]
pub struct ServerHandshake {
    head: Vec<u8>,
}

impl ServerHandshake {
    /// Reads on. Bytes behind the head are left in `input`.
    pub fn read(&mut self, input: &mut &[u8]) -> UpgradeProgress {
        let before = self.head.len();
        self.head.extend_from_slice(input);
        let from = before.saturating_sub(3);
        let Some(end) = memmem::find(&self.head[from..], b"\r\n\r\n").map(|at| from + at + 4) else {
            *input = &[];
            let is_long = self.head.len() > LONGEST_HEAD;
            return if is_long { UpgradeProgress::Refused(400) } else { UpgradeProgress::Incomplete };
        };
        if end > LONGEST_HEAD {
            return UpgradeProgress::Refused(400);
        }
        *input = &input[end - before..];
        self.head.truncate(end);
        self.judge()
    }

    fn judge(&self) -> UpgradeProgress {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        if !matches!(request.parse(&self.head), Ok(httparse::Status::Complete(_)))
            || request.version != Some(1)
        {
            return UpgradeProgress::Refused(400);
        }
        let fields = Fields(request.headers);
        let is_upgrade = fields.lists("upgrade", "websocket") && fields.lists("connection", "upgrade");
        if request.method != Some("GET") || !is_upgrade || !fields.lists("sec-websocket-version", "13") {
            return UpgradeProgress::Refused(426);
        }
        let Some(key) = fields.all("sec-websocket-key").next() else { return UpgradeProgress::Refused(400) };
        let mut offered =
            fields.all("sec-websocket-protocol").flat_map(|value| value.split(|byte| *byte == b','));
        let subprotocol = offered.next().map(|name| name.trim_ascii().into());
        UpgradeProgress::Upgrade(UpgradeRequest { accept: accept_of(key), subprotocol })
    }
}

/// The fields of a head.
struct Fields<'h, 'b>(&'h [httparse::Header<'b>]);

impl<'h, 'b> Fields<'h, 'b> {
    /// The values of the fields of this name.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'b [u8]> + use<'h, 'b> {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value.trim_ascii())
    }

    /// Returns `true` if a token is in a list of them.
    fn lists(&self, name: &'static str, token: &str) -> bool {
        let mut tokens = self.all(name).flat_map(|value| value.split(|byte| *byte == b','));
        tokens.any(|found| found.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        sec-websocket-key:  dGhlIHNhbXBsZSBub25jZQ== \r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Protocol: chat, superchat\r\n\r\n";

    fn read(answer: &[u8], size: usize) -> Result<HandshakeProgress, HandshakeError> {
        let mut handshake = ClientHandshake::new(REQUEST);
        for piece in answer.chunks(size) {
            let mut input = piece;
            match handshake.read(&mut input)? {
                HandshakeProgress::Incomplete => assert!(input.is_empty()),
                told => return Ok(told),
            }
        }
        Ok(HandshakeProgress::Incomplete)
    }

    fn answer(fields: &str) -> Vec<u8> {
        format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\r\n").into_bytes()
    }

    #[test]
    fn the_sample_of_the_rfc() {
        assert_eq!(&accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut response = Vec::new();
        write_upgrade_response(
            &accept_of(key_of(REQUEST, "Sec-WebSocket-Key").unwrap()),
            Some(b"superchat"),
            &mut response,
        );
        let head_bytes = response.len();
        for size in [1, 2, 3, 5, 1000] {
            assert_eq!(read(&response, size), Ok(HandshakeProgress::Open { head_bytes }));
        }
        let mut handshake = ClientHandshake::new(REQUEST);
        let both = [&response[..], b"\x81\x00"].concat();
        let mut input = &both[..];
        handshake.read(&mut input).unwrap();
        assert_eq!(input, b"\x81\x00");
        let mut chosen = Vec::new();
        handshake.each_header(|name, value| {
            chosen.extend(name.eq_ignore_ascii_case("sec-websocket-protocol").then(|| value.to_vec()));
        });
        assert_eq!(chosen, [b"superchat"]);
    }

    #[test]
    fn a_server_reads_the_request_from_any_cut() {
        let with = |from: &str, to: &str| {
            String::from_utf8(REQUEST.to_vec()).unwrap().replace(from, to).into_bytes()
        };
        let upgrade = UpgradeProgress::Upgrade(UpgradeRequest {
            accept: *b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            subprotocol: Some(b"chat".as_slice().into()),
        });
        for (request, expected) in [
            (REQUEST.to_vec(), upgrade),
            (with("GET", "POST"), UpgradeProgress::Refused(426)),
            (with("Upgrade: websocket", "Upgrade: h2c"), UpgradeProgress::Refused(426)),
            (with("13", "8"), UpgradeProgress::Refused(426)),
            (with("sec-websocket-key", "a"), UpgradeProgress::Refused(400)),
            (with("HTTP/1.1", "HTTP/1.0"), UpgradeProgress::Refused(400)),
            (b"\x16\x03\x01\r\n\r\n".to_vec(), UpgradeProgress::Refused(400)),
            (b"GET / HTTP/1.1\r\n".to_vec(), UpgradeProgress::Incomplete),
            (vec![b'a'; LONGEST_HEAD + 1], UpgradeProgress::Refused(400)),
        ] {
            for size in [1, 3, 100_000] {
                let (mut handshake, mut told) = (ServerHandshake::default(), UpgradeProgress::Incomplete);
                for mut piece in request.chunks(size) {
                    told = handshake.read(&mut piece);
                    if told != UpgradeProgress::Incomplete {
                        break;
                    }
                }
                assert_eq!(told, expected, "{}", request[..request.len().min(300)].escape_ascii());
            }
        }
    }

    #[test]
    fn an_ordinary_response_is_a_refusal() {
        for response in
            ["HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 101 a\r\n\r\n", "<"]
        {
            for size in [1, 100] {
                assert_eq!(read(response.as_bytes(), size), Ok(HandshakeProgress::Refused), "{response}");
            }
        }
    }

    #[test]
    fn wrong_answers_are_named() {
        const GOOD: &str = "upgrade: WebSocket\r\nconnection: keep-alive, Upgrade\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        assert!(matches!(read(&answer(GOOD), 7), Ok(HandshakeProgress::Open { .. })));
        let with = |more: &str| answer(&format!("{GOOD}\r\n{more}"));
        let without = |part: &str| answer(&GOOD.replace(part, "x"));
        for (response, error) in [
            (without("WebSocket"), HandshakeError::NotWebSocket),
            (without("Upgrade"), HandshakeError::NotWebSocket),
            (without("s3p"), HandshakeError::Accept),
            (without("sec-websocket-accept"), HandshakeError::Accept),
            (with("Sec-WebSocket-Protocol: other"), HandshakeError::Subprotocol("other".to_owned())),
            (
                with("Sec-WebSocket-Extensions: permessage-deflate"),
                HandshakeError::Extension("permessage-deflate".to_owned()),
            ),
            (answer("no field"), HandshakeError::Malformed),
            ([b"HTTP/1.1 101 ".as_slice(), &[b'a'; 70_000]].concat(), HandshakeError::TooLong),
            (with(&format!("x: {}", "a".repeat(70_000))), HandshakeError::TooLong),
        ] {
            for size in [1000, 100_000] {
                assert_eq!(read(&response, size), Err(error.clone()), "{}", response.escape_ascii());
            }
        }
    }
}
