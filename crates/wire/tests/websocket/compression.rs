//! permessage-deflate: the messages of RFC 7692, what is agreed on, and what is refused.

use flate2::{Compress, Compression, FlushCompress};
use plimsoll_wire::websocket::{
    ClientHandshake, Deflate, Deflater, HandshakeError, HandshakeProgress, MessageReader, Opcode, Received,
    Role, WebSocketError, accept_of, write_frame,
};
use proptest::prelude::*;

const LIMIT: usize = 100_000;

/// What is agreed on if a client offers and a server answers this.
fn agreed(offer: &str, answer: &str) -> Result<Option<Deflate>, HandshakeError> {
    let request =
        format!("GET / HTTP/1.1\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Extensions: {offer}\r\n\r\n");
    let accept = String::from_utf8(accept_of(b"abc").to_vec()).expect("letters");
    let response = format!(
        "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\
         Sec-WebSocket-Extensions: {answer}\r\n\r\n"
    );
    let mut handshake = ClientHandshake::new(request.as_bytes());
    let mut input = response.as_bytes();
    handshake.read(&mut input).map(|progress| {
        assert!(matches!(progress, HandshakeProgress::Open { .. }));
        handshake.deflate()
    })
}

fn usual() -> Deflate {
    agreed(Deflate::OFFER, "permessage-deflate").expect("agreement").expect("compression")
}

fn reader() -> MessageReader {
    let mut reader = MessageReader::new(Role::Client, LIMIT);
    reader.inflate(usual());
    reader
}

/// The messages in some bytes, which come in pieces of this size.
fn read(
    reader: &mut MessageReader,
    bytes: &[u8],
    size: usize,
) -> Result<Vec<(bool, Vec<u8>)>, WebSocketError> {
    let mut told = Vec::new();
    for mut piece in bytes.chunks(size) {
        let mut into = b"before".to_vec();
        while let Some(received) = reader.next(&mut piece, &mut into)? {
            if let Received::Message { binary, length } = received {
                let message = into.split_off(into.len() - length);
                told.push((binary, message));
            }
            assert_eq!(into, b"before");
        }
    }
    Ok(told)
}

/// A frame with a compressed payload, of a server.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(true, Opcode::Binary, None, payload, &mut out);
    out[0] = first;
    out
}

fn deflated(payload: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(payload.len() + 100);
    compress.compress_vec(payload, &mut out, FlushCompress::Sync).expect("compression");
    out.truncate(out.len() - 4);
    out
}

/// Section 7.2.3, in its order.
const EXAMPLES: [(&str, &[u8], &str); 7] = [
    ("a compressed message", b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", "Hello"),
    ("two fragments", b"\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00", "Hello"),
    ("the window of the one before", b"\xc1\x05\xf2\x00\x11\x00\x00", "Hello"),
    ("a block without compression", b"\xc1\x0b\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", "Hello"),
    ("a last block", b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00", "Hello"),
    ("two blocks", b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", "Hello"),
    ("an empty one", b"\xc1\x01\x00", ""),
];

#[test]
fn messages_of_the_rfc_are_read_however_they_are_cut() {
    for size in [1, 2, 3, 5, 1_000] {
        let mut reader = reader();
        for (name, bytes, expected) in EXAMPLES {
            let told = read(&mut reader, bytes, size);
            assert_eq!(told, Ok(vec![(false, expected.as_bytes().to_vec())]), "{name} by {size}");
        }
        // One that is not compressed, and a ping between fragments.
        assert_eq!(read(&mut reader, b"\x82\x01a", size), Ok(vec![(true, b"a".to_vec())]));
        let told = read(&mut reader, b"\x41\x03\xf2\x48\xcd\x89\x01p\x80\x04\xc9\xc9\x07\x00", size);
        assert_eq!(told, Ok(vec![(false, b"Hello".to_vec())]));
    }
}

#[test]
fn what_cannot_be_unpacked_is_named() {
    let bomb = frame(0xc2, &deflated(&vec![0; 50 * LIMIT]));
    let at_limit = frame(0xc2, &deflated(&vec![0; LIMIT]));
    assert!(bomb.len() < LIMIT / 4);
    let cases: [(&str, &[u8], WebSocketError); 8] = [
        ("a bomb", &bomb, WebSocketError::TooLong),
        ("no DEFLATE", b"\xc1\x03\xff\xff\xff", WebSocketError::Deflate),
        ("text that is none", &frame(0xc1, &deflated(b"a\xff")), WebSocketError::NotUtf8),
        ("a ping", b"\xc9\x00", WebSocketError::ReservedBits),
        ("a close", b"\xc8\x00", WebSocketError::ReservedBits),
        ("a later fragment", b"\x41\x03\xf2\x48\xcd\xc0\x04\xc9\xc9\x07\x00", WebSocketError::ReservedBits),
        ("another bit", b"\xe1\x00", WebSocketError::ReservedBits),
        ("only another bit", b"\xa1\x00", WebSocketError::ReservedBits),
    ];
    for (name, bytes, error) in cases {
        for size in [1, 7, 1 << 20] {
            assert_eq!(read(&mut reader(), bytes, size), Err(error), "{name} by {size}");
        }
    }
    assert_eq!(read(&mut reader(), &at_limit, 1 << 20).map(|told| told[0].1.len()), Ok(LIMIT));
    let mut into = Vec::new();
    assert_eq!(reader().next(&mut &bomb[..], &mut into), Err(WebSocketError::TooLong));
    assert!(into.capacity() < 8 * LIMIT, "{}", into.capacity());
    // It was not agreed on.
    let mut plain = MessageReader::new(Role::Client, LIMIT);
    assert_eq!(read(&mut plain, EXAMPLES[0].1, 100), Err(WebSocketError::ReservedBits));
}

#[test]
fn only_what_was_offered_is_agreed_on() {
    let plain = "permessage-deflate";
    for (offer, answer, good) in [
        (plain, plain, true),
        (plain, "permessage-deflate; server_no_context_takeover; client_no_context_takeover", true),
        (plain, "permessage-deflate; server_max_window_bits=8", true),
        (plain, "permessage-deflate; server_max_window_bits=\"15\"", true),
        (plain, "permessage-deflate ; server_max_window_bits = 10", true),
        (plain, "permessage-deflate; client_max_window_bits=10", false),
        (Deflate::OFFER, "permessage-deflate; client_max_window_bits=10", true),
        ("x-own, permessage-deflate; client_max_window_bits", plain, true),
        (Deflate::OFFER, "permessage-deflate; client_max_window_bits", false),
        (Deflate::OFFER, "permessage-deflate; client_max_window_bits=16", false),
        (Deflate::OFFER, "permessage-deflate; client_max_window_bits=7", false),
        (plain, "permessage-deflate; server_max_window_bits=08", false),
        (plain, "permessage-deflate; server_max_window_bits", false),
        (plain, "permessage-deflate; server_no_context_takeover=1", false),
        (plain, "permessage-deflate; server_no_context_takeover; server_no_context_takeover", false),
        (plain, "permessage-deflate; unheard_of", false),
        (plain, "permessage-deflate, permessage-deflate", false),
        (plain, "x-webkit-deflate-frame", false),
        ("x-own", "x-own", false),
        ("x-own", plain, false),
        ("", plain, false),
    ] {
        let result = agreed(offer, answer);
        assert_eq!(matches!(result, Ok(Some(_))), good, "{offer} → {answer}: {result:?}");
        if let Err(error) = result {
            assert!(
                matches!(error, HandshakeError::Extension(_) | HandshakeError::Deflate(_)),
                "{answer}: {error}"
            );
        }
    }
    assert_eq!(agreed(plain, ""), Ok(None));
}

proptest! {
    #[test]
    fn what_is_compressed_is_read_by_a_server(
        messages in prop::collection::vec((
            any::<bool>(),
            prop_oneof!["[a-c]{0,2000}", "(hello ){0,1000}", ".{0,100}", Just("abc".repeat(30_000))],
        ), 1..4),
        window in 8..=15_u8,
        mask: [u8; 4],
    ) {
        let answer = format!("permessage-deflate; client_max_window_bits={window}");
        let agreed = agreed(Deflate::OFFER, &answer).expect("agreement").expect("compression");
        let (mut deflater, mut out) = (Deflater::default(), Vec::new());
        let mut expected = Vec::new();
        for (binary, text) in &messages {
            let opcode = if *binary { Opcode::Binary } else { Opcode::Text };
            deflater.write(agreed, opcode, Some(mask), text.as_bytes(), &mut out);
            expected.push((*binary, text.as_bytes().to_vec()));
        }
        for forgets in ["", "; server_no_context_takeover"] {
            let mut reader = MessageReader::new(Role::Server, LIMIT);
            let answer = format!("permessage-deflate{forgets}");
            reader.inflate(crate::websocket::compression::agreed(Deflate::OFFER, &answer).unwrap().unwrap());
            prop_assert_eq!(read(&mut reader, &out, 1_000), Ok(expected.clone()));
        }
        if messages.iter().all(|(_, text)| text.len() > 10_000) {
            prop_assert!(out.len() < expected.iter().map(|(_, text)| text.len()).sum::<usize>() / 10);
        }
    }
}
