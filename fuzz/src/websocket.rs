//! However the bytes of either side of a WebSocket are cut, the messages and the violation are the same; and
//! what was read is written and read again, compressed or not.

use plimsoll_wire::http2::{ClientOptions, PREFACE};
use plimsoll_wire::websocket::{
    ClientHandshake, ClientStream, Deflate, Deflater, HandshakeProgress, MessageReader, Opcode, Received,
    Role, ServerHandshake, ServerStream, UpgradeProgress, WebSocketError, accept_of, write_close,
    write_frame,
};

use crate::Cutting;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: 0123456789abcdef01234A==\r\n\r\n";

/// Things that came, each with its payload, and the end: a violation, or whether it was cut within a message.
type Told = (Vec<(Received, Vec<u8>)>, Result<bool, WebSocketError>);

/// The agreement on compression that these bits choose, if they choose one.
fn agreed(choices: u8) -> Option<Deflate> {
    let answer = match choices >> 2 & 3 {
        0 => return None,
        1 => "permessage-deflate",
        2 => "permessage-deflate; server_no_context_takeover",
        _ => "permessage-deflate; client_max_window_bits=8",
    };
    let request = format!(
        "GET / HTTP/1.1\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Extensions: {}\r\n\r\n",
        Deflate::OFFER
    );
    let accept = accept_of(b"abc").map(char::from).iter().collect::<String>();
    let response = format!(
        "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\
         Sec-WebSocket-Extensions: {answer}\r\n\r\n"
    );
    let mut handshake = ClientHandshake::new(request.as_bytes());
    handshake.read(&mut response.as_bytes()).expect("an agreement");
    handshake.deflate()
}

fn read<'p>(
    role: Role,
    limit: usize,
    deflate: Option<Deflate>,
    pieces: impl Iterator<Item = &'p [u8]>,
) -> Told {
    let (mut reader, mut told, mut message) = (MessageReader::new(role, limit), Vec::new(), Vec::new());
    deflate.into_iter().for_each(|agreed| reader.inflate(agreed));
    for mut input in pieces {
        loop {
            match reader.next(&mut input, &mut message) {
                Ok(Some(received)) => {
                    let payload = match received {
                        Received::Message { length, .. } => {
                            assert!(length == message.len() && length <= limit);
                            std::mem::take(&mut message)
                        }
                        _ => reader.control().to_vec(),
                    };
                    told.push((received, payload));
                }
                Ok(None) => break,
                Err(error) => return (told, Err(error)),
            }
        }
        assert!(input.is_empty());
    }
    (told, Ok(reader.is_in_message()))
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let role = if cutting.choices & 1 == 0 { Role::Client } else { Role::Server };
    let limit = if cutting.choices & 2 == 0 { 1 << 20 } else { 100 };
    let deflate = agreed(cutting.choices);
    let (told, end) = read(role, limit, deflate, std::iter::once(cutting.stream));
    assert_eq!(read(role, limit, deflate, cutting.pieces()), (told.clone(), end));
    let mask = (role == Role::Server).then_some([1, 2, 3, 250]);
    let (mut written, mut deflater) = (Vec::new(), Deflater::default());
    for (received, payload) in &told {
        match *received {
            Received::Message { binary, .. } => {
                let opcode = if binary { Opcode::Binary } else { Opcode::Text };
                assert!(binary || std::str::from_utf8(payload).is_ok());
                match deflate {
                    None => write_frame(true, opcode, mask, payload, &mut written),
                    Some(agreed) => deflater.write(agreed, opcode, mask, payload, &mut written),
                }
            }
            Received::Ping => write_frame(true, Opcode::Ping, mask, payload, &mut written),
            Received::Pong => write_frame(true, Opcode::Pong, mask, payload, &mut written),
            Received::Close { code } => {
                let reason =
                    std::str::from_utf8(payload.get(2..).unwrap_or_default()).expect("it was checked");
                write_close(code, reason, mask, &mut written);
            }
        }
    }
    // What cannot be compressed grows by a little.
    let limit = limit + limit / 8 + 64;
    assert_eq!(read(role, limit, deflate, std::iter::once(&written[..])), (told, Ok(false)));
    handshakes(&cutting);
    streams(&cutting);
}

/// Nor does the content of a stream of HTTP/2, on either side of it.
fn streams(cutting: &Cutting<'_>) {
    // Without a setting, and with that of RFC 8441.
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const OFFER: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x08\0\0\0\x01";
    let client = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut client = ClientStream::new(&ClientOptions::default());
        let (mut content, mut out) = (Vec::new(), Vec::new());
        client.start(&mut out);
        let (news, result) = client.receive(OFFER, &mut content, &mut out);
        assert!(news.ready && client.is_offered() && result.is_ok());
        client.open(REQUEST, "http", &mut out);
        let mut told = (None, None, None, false);
        for piece in pieces {
            let (news, result) = client.receive(piece, &mut content, &mut out);
            told.0 = told.0.or(news.opened.map(|response| response.status));
            told.1 = told.1.or(news.refused);
            told.2 = told.2.or(news.failed);
            told.3 |= news.ended;
            client.send(b"more", &mut out);
            if let Err(error) = result {
                return (told, content, Some(error));
            }
        }
        (told, content, None)
    };
    assert_eq!(client(&mut std::iter::once(cutting.stream)), client(&mut cutting.pieces()));
    let server = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut server, mut content, mut out) = (ServerStream::new(), Vec::new(), Vec::new());
        server.start(&mut out);
        let start = [PREFACE, SETTINGS].concat();
        assert!(server.receive(&start, &mut content, &mut out).1.is_ok());
        let mut asked = None;
        for piece in pieces {
            let (news, result) = server.receive(piece, &mut content, &mut out);
            asked = asked.or(news.asked);
            if let Err(error) = result {
                return (asked, content, Some(error));
            }
        }
        (asked, content, None)
    };
    assert_eq!(server(&mut std::iter::once(cutting.stream)), server(&mut cutting.pieces()));
}

/// The answers of both sides of the handshake do not depend on cuts, either.
fn handshakes(cutting: &Cutting<'_>) {
    let client = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut handshake = ClientHandshake::new(REQUEST);
        for mut piece in pieces {
            match handshake.read(&mut piece) {
                Ok(HandshakeProgress::Incomplete) => {}
                told => return Some(told),
            }
        }
        None
    };
    let whole = client(&mut std::iter::once(cutting.stream));
    let cut = client(&mut cutting.pieces());
    assert_eq!(whole.as_ref().map(Result::is_ok), cut.as_ref().map(Result::is_ok));
    let server = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut handshake = ServerHandshake::default();
        for mut piece in pieces {
            match handshake.read(&mut piece) {
                UpgradeProgress::Incomplete => {}
                told => return told,
            }
        }
        UpgradeProgress::Incomplete
    };
    if cutting.stream.len() < 1 << 15 {
        assert_eq!(server(&mut std::iter::once(cutting.stream)), server(&mut cutting.pieces()));
    }
}
