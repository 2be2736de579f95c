//! Compressed messages, against a server that has flate2 and nothing of ours.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use serde_json::{Value, json};
use tungstenite::handshake::server::{Request, Response};

use crate::loopback::process::Folder;
use crate::loopback::websocket::{at, result_of};
use crate::loopback::websocket_http2::Server;

const SESSIONS: u64 = 3;
const QUESTIONS: u64 = 3;
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Reads a frame of a client: its first byte, and its payload.
fn read_frame(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let length = match head[1] & 0x7f {
        126 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            usize::from(u16::from_be_bytes(length))
        }
        127 => panic!("a long message"),
        length => usize::from(length),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Ok((head[0], payload))
}

/// Reads a message, which is compressed, and with nothing of the ones before. `None`: the close frame.
fn read_message(stream: &mut impl Read) -> Option<String> {
    loop {
        let (first, mut payload) = read_frame(stream).ok()?;
        match first {
            0xc1 => {
                payload.extend(TAIL);
                let mut text = Vec::with_capacity(100_000);
                let mut decompress = Decompress::new(false);
                decompress.decompress_vec(&payload, &mut text, FlushDecompress::Sync).expect("DEFLATE");
                assert_eq!(decompress.total_in(), payload.len() as u64);
                return Some(String::from_utf8(text).expect("text"));
            }
            0x88 => return None,
            0x8a => {}
            _ => panic!("a frame that begins with {first:x}"),
        }
    }
}

fn write_frame(stream: &mut impl Write, first: u8, payload: &[u8]) {
    let mut frame = vec![first];
    match payload.len() {
        length @ ..126 => frame.push(length as u8),
        length => {
            frame.push(126);
            frame.extend((length as u16).to_be_bytes());
        }
    }
    frame.extend(payload);
    stream.write_all(&frame).expect("it is sent");
}

fn compressed(compress: &mut Compress, text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(100_000);
    compress.compress_vec(text.as_bytes(), &mut out, FlushCompress::Sync).expect("compression");
    out.truncate(out.len() - TAIL.len());
    out
}

/// The server's part: each question comes back behind a message that is not compressed, and, if it is JSON,
/// behind a heartbeat.
fn converse<S: Read + Write>(stream: &mut S, keeps_window: bool) {
    let mut compress = Compress::new(Compression::best(), false);
    let mut say = |stream: &mut S, text: &str| {
        if !keeps_window {
            compress.reset();
        }
        let payload = compressed(&mut compress, text);
        let (front, back) = payload.split_at(payload.len() / 2);
        write_frame(stream, 0x41, front);
        write_frame(stream, 0x89, b"between");
        write_frame(stream, 0x80, back);
    };
    while let Some(question) = read_message(stream) {
        write_frame(stream, 0x81, b"plain");
        if question.starts_with('{') {
            say(stream, "2");
            assert_eq!(read_message(stream).as_deref(), Some("3"));
        }
        say(stream, &question);
    }
    write_frame(stream, 0x88, &1000_u16.to_be_bytes());
}

/// A server over HTTP/1.1 that agrees in these words, and lasts as long as the test.
fn serve(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    #[allow(clippy::result_large_err)]
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let agree = |request: &Request, mut response: Response| {
                    let offer = request.headers()["sec-websocket-extensions"].to_str().expect("an offer");
                    assert!(offer.starts_with("permessage-deflate"), "{offer}");
                    let headers = response.headers_mut();
                    headers.insert("sec-websocket-extensions", answer.parse().expect("a value"));
                    Ok(response)
                };
                let mut socket = tungstenite::accept_hdr(stream, agree).expect("a handshake");
                converse(socket.get_mut(), !answer.contains("server_no_context_takeover"));
            });
        }
    });
    address
}

fn plan(folder: &Folder, address: &str) -> String {
    let text = "to be or not to be, ".repeat(500);
    let question = json!({"id": "${id}", "text": text}).to_string();
    let steps = json!([
        {"websocket": {
            "open": "/", "compress": true, "answer": {"receive": "2", "send": "3"},
            "subprotocols": "v2", "headers": {"x-user": "ann"},
        }},
        {"repeat": QUESTIONS, "steps": [
            {"set": {"id": "${uuid}"}},
            {
                "name": "ask",
                "websocket": {"send": question, "receive": {"json": {"/id": "${id}"}}},
                "expect": {"json": {"/text": text}},
            },
        ]},
        {"websocket": {"close": 1000}},
    ]);
    let plan = json!({
        "targets": {"chat": format!("ws://{address}")},
        "run": {"iterations": SESSIONS, "connections": SESSIONS},
        "scenarios": [{"steps": steps}],
    });
    folder.write("plan.json", plan.to_string())
}

fn check(result: &Value, name: &str) {
    let asked = SESSIONS * QUESTIONS;
    assert_eq!(at(result, "/accounting/ok"), asked + 2 * SESSIONS, "{name}: {:#}", result["error_examples"]);
    let count = |key: &str| at(result, &format!("/websocket/{key}")).as_u64().expect("a count");
    assert_eq!((count("answered"), count("skipped")), (asked, asked), "{name}");
    assert_eq!((count("messages_sent"), count("messages_received")), (2 * asked, 3 * asked), "{name}");
    // 10,000 bytes each came, and far fewer went.
    assert!(count("bytes_received") > 10_000 * asked, "{name}");
    assert!(count("bytes_sent") < 1_500 * asked, "{name}: {}", count("bytes_sent"));
}

#[test]
fn messages_are_compressed_as_both_agree() {
    for answer in [
        "permessage-deflate",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        "permessage-deflate; client_max_window_bits=9; server_max_window_bits=15",
    ] {
        let folder = Folder::new();
        let file = plan(&folder, &serve(answer));
        let result = result_of(&format!("run {file} --no-preflight --quiet -o json"));
        check(&result, answer);
    }
    let server = Server::talking(200, Arc::new(|_, mut socket, _| converse(socket.get_mut(), true)));
    let folder = Folder::new();
    let file = plan(&folder, &server.address);
    let result = result_of(&format!("run {file} --http2 --no-preflight --quiet -o json"));
    check(&result, "over HTTP/2");
}

#[test]
fn a_header_that_was_typed_offers_compression() {
    for flags in ["--compress", "-H Sec-WebSocket-Extensions:permessage-deflate"] {
        let address = serve("permessage-deflate");
        let line = format!("ws ws://{address}/ {flags} -n 2 -c 1 --messages 3 --message x-1 --expect x-1");
        let result = result_of(&format!("{line} --no-preflight --quiet -o json"));
        assert_eq!(at(&result, "/accounting/ok"), 10, "{flags}: {:#}", result["error_examples"]);
        assert_eq!(at(&result, "/websocket/messages_received"), 12, "{flags}");
    }
}
