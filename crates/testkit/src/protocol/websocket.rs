//! WebSockets (RFC 6455): the upgrade, messages that come back, and what a server says unasked.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::Nanos;

use super::{Exchange, NotARequest, Order, Saying, SimProtocol, Speaks};
use crate::request::recognise;

/// What RFC 6455 appends to the key of an upgrade.
const APPENDED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Kinds of frames.
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// An echo.
#[derive(Clone, Debug, Default)]
pub struct WebSocket {
    /// Messages that follow the answer to the upgrade, each so long after it.
    pub greetings: Vec<(Nanos, Vec<u8>)>,
    /// Asks the client for a sign of life so long after the answer to the upgrade.
    pub pings: Vec<Nanos>,
    /// Ends the connection so long after the answer to the upgrade, by a close frame.
    pub leaves: Option<Nanos>,
    /// Copies of each message that come back, beside the first.
    pub more: usize,
}

/// The server's half of a connection.
#[derive(Debug)]
struct Half {
    socket: WebSocket,
    is_open: bool,
}

impl WebSocket {
    /// A server whose connections are all like this one.
    pub fn speaks(self) -> Speaks {
        Speaks::new(move || self.begin())
    }

    fn begin(&self) -> Half {
        Half { socket: self.clone(), is_open: false }
    }

    fn upgrade(&self, request: Vec<u8>, orders: &mut Vec<Order>) -> Result<(), NotARequest> {
        let text = std::str::from_utf8(&request).map_err(|_| NotARequest)?;
        let key = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim())
        });
        let key = key.ok_or(NotARequest)?;
        let accept =
            STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{APPENDED}").as_bytes()));
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        );
        let refusal = b"HTTP/1.1 503 Simulated\r\ncontent-length: 0\r\n\r\n".to_vec();
        let say = |after: &Nanos, kind, content: &[u8]| (*after, Saying::Bytes(frame(kind, content)));
        let greetings = self.greetings.iter().map(|(after, text)| say(after, TEXT, text));
        let pings = self.pings.iter().map(|after| say(after, PING, b"?"));
        let leaves = self
            .leaves
            .iter()
            .flat_map(|after| [say(after, CLOSE, &1_001_u16.to_be_bytes()), (*after, Saying::End)]);
        let then = greetings.chain(pings).chain(leaves).collect();
        orders.push(Order::Answer(Exchange { request, answer: answer.into_bytes(), refusal, then }));
        Ok(())
    }
}

impl SimProtocol for Half {
    fn receive(&mut self, input: &mut Vec<u8>, orders: &mut Vec<Order>) -> Result<(), NotARequest> {
        if !self.is_open {
            let Some(recognised) = recognise(input)? else { return Ok(()) };
            let request: Vec<u8> = input.drain(..recognised.length).collect();
            self.socket.upgrade(request, orders)?;
            self.is_open = true;
        }
        let say = |kind, content: &[u8]| Order::Say(Saying::Bytes(frame(kind, content)));
        while let Some((length, kind, content)) = client_frame(input)? {
            let request: Vec<u8> = input.drain(..length).collect();
            match kind {
                PING => orders.push(say(PONG, &content)),
                PONG => {}
                CLOSE => orders.extend([say(CLOSE, &content), Order::Say(Saying::End)]),
                _ => {
                    let answer = frame(kind, &content).repeat(1 + self.socket.more);
                    let (refusal, then) = (frame(TEXT, b"no"), Vec::new());
                    orders.push(Order::Answer(Exchange { request, answer, refusal, then }));
                }
            }
        }
        Ok(())
    }
}

/// A whole frame of a server.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | kind];
    match content.len() {
        short @ ..126 => bytes.push(short as u8),
        long @ ..0x1_0000 => {
            bytes.push(126);
            bytes.extend_from_slice(&(long as u16).to_be_bytes());
        }
        long => {
            bytes.push(127);
            bytes.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

/// Length, kind and content of the frame at the front, which a client masks; `None` while it is incomplete.
fn client_frame(input: &[u8]) -> Result<Option<(usize, u8, Vec<u8>)>, NotARequest> {
    let &[first, second, ref rest @ ..] = input else { return Ok(None) };
    if first & 0xf0 != 0x80 || second & 0x80 == 0 {
        return Err(NotARequest);
    }
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some((extended_length, rest)) = rest.split_at_checked(extended) else { return Ok(None) };
    let length = match extended {
        0 => usize::from(second & 0x7f),
        _ => extended_length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
    };
    let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(masked) = rest.get(..length) else { return Ok(None) };
    let content = masked.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Ok(Some((2 + extended + 4 + length, first & 0x0f, content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    /// A masked frame.
    fn masked(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = frame(kind, content);
        let head = bytes.len() - content.len();
        bytes[1] |= 0x80;
        let mask = [1, 2, 3, 4];
        let body: Vec<u8> = content.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        bytes.truncate(head);
        [bytes, mask.to_vec(), body].concat()
    }

    #[test]
    fn messages_come_back_whatever_their_length() {
        for length in [0, 125, 126, 70_000] {
            let socket = WebSocket { more: 1, ..WebSocket::default() };
            let (mut socket, mut orders) = (socket.begin(), Vec::new());
            let content = vec![b'x'; length];
            let message = masked(TEXT, &content);
            let mut input = Vec::new();
            for part in [UPGRADE, &message].concat().chunks(7) {
                input.extend_from_slice(part);
                socket.receive(&mut input, &mut orders).unwrap();
            }
            assert!(input.is_empty());
            // The example of RFC 6455, section 1.3.
            let Order::Answer(upgrade) = &orders[0] else { panic!("{orders:?}") };
            assert!(String::from_utf8_lossy(&upgrade.answer).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
            let Order::Answer(echo) = &orders[1] else { panic!("{orders:?}") };
            assert_eq!(echo.answer, frame(TEXT, &content).repeat(2));
        }
    }

    #[test]
    fn a_server_says_what_it_is_to_say() {
        let socket = WebSocket {
            greetings: vec![(Nanos(5), b"hello".to_vec())],
            pings: vec![Nanos(7)],
            leaves: Some(Nanos(9)),
            ..WebSocket::default()
        };
        let (mut socket, mut orders) = (socket.begin(), Vec::new());
        let mut input = [UPGRADE, &masked(PING, b"a"), &masked(CLOSE, b"\x03\xe8")].concat();
        socket.receive(&mut input, &mut orders).unwrap();
        let Order::Answer(upgrade) = &orders[0] else { panic!("{orders:?}") };
        let bytes = |after: u64, kind, content: &[u8]| (Nanos(after), Saying::Bytes(frame(kind, content)));
        let then = [
            bytes(5, TEXT, b"hello"),
            bytes(7, PING, b"?"),
            bytes(9, CLOSE, b"\x03\xe9"),
            (Nanos(9), Saying::End),
        ];
        assert_eq!(upgrade.then, then);
        let said =
            [frame(PONG, b"a"), frame(CLOSE, b"\x03\xe8")].map(|bytes| Order::Say(Saying::Bytes(bytes)));
        assert_eq!(orders[1..], [&said[..], &[Order::Say(Saying::End)]].concat());
        assert_eq!(socket.receive(&mut b"GET".to_vec(), &mut orders), Err(NotARequest));
    }
}
