//! Servers of WebSocket that refuse, lie about the upgrade, or break the rules of frames.

use plimsoll_core::ErrorClass;

use super::{
    Act, CHECK, CLOSED_BEFORE, CLOSED_WITHIN, Case, Ends, Load, RESET, Speaks, Suite, TIMED_OUT, flooded,
    held, once,
};

/// The answer to the key of RFC 6455 section 1.3, which the command sends.
const UPGRADE: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                       Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The upgrade succeeds, and the message fails.
const VIOLATED: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Protocol)];
const CLOSED: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::WebSocketClosed)];
const DROPPED: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::WebSocketDropped)];
const UNANSWERED: &[Ends] = &[Ends::Ok, Ends::TimedOut];
const NO_HANDSHAKE: &[Ends] = &[Ends::Failed(ErrorClass::WebSocketHandshake)];

/// The table. Every case opens a WebSocket and sends one message.
pub(super) fn suite() -> Suite {
    Suite {
        name: "WebSocket",
        speaks: Speaks::Http1,
        command,
        good_connections: 0,
        good: Vec::new(),
        cases: handshakes().into_iter().chain(frames()).chain(compressed()).collect(),
    }
}

fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "ws ws://{address}/ --messages 1 -n {requests} -c {connections} --timeout {timeout}s \
         -H Sec-WebSocket-Key:dGhlIHNhbXBsZSBub25jZQ=="
    )
}

/// An answer that upgrades, with a part of it replaced.
fn upgrade(from: &str, to: &str) -> String {
    UPGRADE.replace(from, to)
}

fn handshakes() -> Vec<Case> {
    let more = |field: &str| upgrade("\r\n\r\n", &format!("\r\n{field}\r\n\r\n"));
    let wrong: [(&str, String); 9] = [
        ("a wrong accept", upgrade("s3p", "S3p")),
        ("no accept", upgrade("Sec-WebSocket-Accept", "X-Accept")),
        ("an accept twice", more("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        ("an upgrade to HTTP/2", upgrade("websocket", "h2c")),
        ("no upgrade in Connection", upgrade("Connection: Upgrade", "Connection: close")),
        ("a subprotocol that was not offered", more("Sec-WebSocket-Protocol: chat")),
        ("permessage-deflate that was not offered", more("Sec-WebSocket-Extensions: permessage-deflate")),
        ("a line that is no field", more("nonsense")),
        ("a head of 100 KB", more(&format!("x: {}", "a".repeat(100_000)))),
    ];
    let mut cases: Vec<Case> = wrong.map(|(name, answer)| Case::new(name, NO_HANDSHAKE, once(answer))).into();
    let refused = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno");
    cases.extend([
        Case::new("403", &[Ends::Failed(ErrorClass::Status4xx)], once(refused("403 Forbidden"))),
        Case::new("503 that stays", &[Ends::Failed(ErrorClass::Status5xx)], held(refused("503 Busy"))),
        Case::new("200", CHECK, once(refused("200 OK"))),
        Case::new("garbage", &[Ends::Failed(ErrorClass::Protocol)], once("SSH-2.0-OpenSSH_9.2\r\n")),
        Case::new("half an answer", CLOSED_WITHIN, once(&UPGRADE[..60])),
        Case::new("no answer, and a close", CLOSED_BEFORE, vec![Act::Await, Act::Close]),
        Case::new("no answer", TIMED_OUT, vec![Act::Await, Act::Hold]),
        Case::new("a reset", RESET, vec![Act::Await, Act::Reset]),
    ]);
    cases
}

fn frames() -> Vec<Case> {
    let after = |frames: &[u8]| [UPGRADE.as_bytes(), frames].concat();
    let long = [&[0x82, 127, 0, 0, 0, 0, 1, 0, 0, 1][..], &[0; 100]].concat();
    let bad: [(&str, &[u8]); 17] = [
        ("a masked frame", &[0x81, 0x81, 1, 2, 3, 4, 5]),
        ("a reserved bit", &[0xc1, 1, b'a']),
        ("an opcode of 3", &[0x83, 0]),
        ("an opcode of 15", &[0x8f, 0]),
        ("a ping in parts", &[0x09, 0]),
        ("a ping of 126 bytes", &[0x89, 126, 0, 126]),
        ("a continuation of nothing", &[0x80, 1, b'a']),
        ("a message within another", &[0x01, 1, b'a', 0x81, 1, b'b']),
        ("a length in too many bytes", &[0x82, 126, 0, 5]),
        ("a length of 2^63", &[0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0]),
        ("a message of 16 MiB and a byte", &long),
        ("text that is not UTF-8", &[0x81, 2, 0xc3, 0x28]),
        ("text that ends within a letter", &[0x81, 1, 0xc3]),
        ("a close of one byte", &[0x88, 1, 3]),
        ("a close with 1005", &[0x88, 2, 0x03, 0xed]),
        ("a close with a reason that is not UTF-8", &[0x88, 3, 0x03, 0xe8, 0xff]),
        ("bytes of 255", &[0xff; 100]),
    ];
    let mut cases: Vec<Case> =
        bad.map(|(name, frames)| Case::new(name, VIOLATED, held(after(frames)))).into();
    cases.extend([
        Case::new("a close with 1001", CLOSED, held(after(&[0x88, 2, 0x03, 0xe9]))),
        Case::new("a close without a status", CLOSED, held(after(&[0x88, 0]))),
        Case::new(
            "a close, and more behind it",
            CLOSED,
            held(after(&[0x88, 2, 0x03, 0xe9, 0x89, 0, 0x81, 1, b'a', 0xff])),
        ),
        Case::new("an end without a close", DROPPED, once(UPGRADE)),
        Case::new("an end within a message", DROPPED, once(after(&[0x81, 100, b'a']))),
        Case::new("an end within a head", DROPPED, once(after(&[0x81]))),
        Case::new("an end between fragments", DROPPED, once(after(&[0x01, 1, b'a']))),
        Case::new(
            "a reset after the upgrade",
            &[Ends::Ok, Ends::Failed(ErrorClass::Reset)],
            vec![Act::Await, Act::Send(UPGRADE.into()), Act::Reset],
        ),
        Case::new("no message", UNANSWERED, held(UPGRADE)),
        Case::new("half a message", UNANSWERED, held(after(&[0x81, 100, b'a']))),
        Case::new(
            "10,000 pings",
            UNANSWERED,
            vec![Act::Await, Act::Send(UPGRADE.into()), flooded(&[0x89, 1, b'p'], 10_000), Act::Hold],
        ),
        Case::new(
            "20,000 messages that are not the answer",
            UNANSWERED,
            vec![Act::Await, Act::Send(UPGRADE.into()), flooded(&[0x81, 1, b'a'], 20_000), Act::Hold],
        )
        .with("--expect pong"),
    ]);
    cases
}

/// Violations of a server with which compression was agreed on.
fn compressed() -> Vec<Case> {
    let upgrade = upgrade("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    let bad: [(&str, &[u8]); 6] = [
        ("a message that is no DEFLATE", &[0xc1, 3, 0xff, 0xff, 0xff]),
        ("a block of a length that does not hold", &[0xc1, 5, 0x00, 0x05, 0x00, 0xfa, 0x00]),
        ("a compressed text that is not UTF-8", &[0xc1, 7, 0x00, 0x01, 0x00, 0xfe, 0xff, 0xc3, 0x00]),
        ("a compressed ping", &[0xc9, 0]),
        ("a later fragment that says that it is compressed", &[0x41, 1, 0xf2, 0xc0, 1, 0x48]),
        ("another reserved bit", &[0xe1, 0]),
    ];
    let after = |frames: &[u8]| [upgrade.as_bytes(), frames].concat();
    let case = |(name, frames)| Case::new(name, VIOLATED, held(after(frames))).with("--compress");
    bad.map(case).into()
}
