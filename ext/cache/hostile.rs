//! Servers that break the Carbon cache's protocol: a length of four bytes, the kind of the reply, content.

use plimsoll_testkit::hostile::{
    Act, CLOSED_BEFORE, CLOSED_WITHIN, Case, DamagedRequests, Ends, ErrorClass, Load, OK, PROTOCOL, RESET,
    Speaks, Suite, TIMED_OUT, flooded, held, kept, once,
};

/// The kinds of replies.
const PONG: u8 = 0;
const DONE: u8 = 1;
const VALUE: u8 = 2;
const NOT_FOUND: u8 = 3;
const ERROR: u8 = 4;

/// Returns the table. Every case does only PUTs, whose good reply is [`DONE`]; the first connection is that
/// of the question for the cache, which is a GET.
pub(crate) fn suite() -> Suite {
    Suite {
        name: "cache",
        speaks: Speaks::By(length),
        command,
        good_connections: 1,
        good: kept(frame(&value(b"v"))),
        cases: cases().into_iter().map(|case| Case { args: "--mix put", ..case }).collect(),
    }
}

fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "cache --server {address} --no-verify --requests {requests} -c {connections} --timeout {timeout}s"
    )
}

/// The content of a reply with a value.
fn value(value: &[u8]) -> Vec<u8> {
    [&[VALUE], &(value.len() as u32).to_be_bytes()[..], value].concat()
}

fn cases() -> Vec<Case> {
    let done = frame(&[DONE]);
    let bad: [(&str, Vec<u8>); 16] = [
        ("a frame of nothing", frame(b"")),
        ("a frame of 8 MiB and a byte", b"\0\x80\0\x01\x01".to_vec()),
        ("a frame of 4 GiB", b"\xff\xff\xff\xff\x01".to_vec()),
        ("an unknown kind", frame(&[9])),
        ("a kind of 255", frame(&[255])),
        ("a pong in answer to PUT", frame(&[PONG])),
        ("a value in answer to PUT", frame(&value(b"v"))),
        ("not found in answer to PUT", frame(&[NOT_FOUND])),
        ("content behind the kind", frame(&[DONE, 1, 2, 3])),
        ("an error without a length", frame(&[ERROR])),
        ("an error with half a length", frame(&[ERROR, 0, 0])),
        ("an error longer than its frame", frame(&[ERROR, 0, 0, 0, 9, b'x'])),
        ("an error shorter than its frame", frame(&[ERROR, 0, 0, 0, 1, b'x', b'y'])),
        ("an error of 4 GiB", frame(&[ERROR, 0xff, 0xff, 0xff, 0xff, b'x'])),
        ("bytes of nothing", vec![0xff; 100]),
        ("a handshake of TLS", b"\x16\x03\x03\0\x7a\x02\0\0\x76\x03\x03".to_vec()),
    ];
    let refused = &[Ends::Failed(ErrorClass::Status5xx)];
    let http = &[Ends::Failed(ErrorClass::WrongProtocol)];
    let mut cases: Vec<Case> = bad.map(|(name, bytes)| Case::new(name, PROTOCOL, once(bytes))).into();
    cases.extend([
        Case::new("a good reply", OK, kept(done.clone())),
        Case::new("HTTP", http, once("HTTP/1.1 400 Bad Request\r\n\r\n")),
        Case::new("an error", refused, kept(frame(&error(b"Put failed: full")))),
        Case::new("an error of no text", refused, kept(frame(&error(b"")))),
        Case::new("an error with escapes", refused, kept(frame(&error(b"\x1b[31m\x1b]0;owned\x07\xff\0")))),
        Case::new("an error of 8 MB", refused, kept(frame(&error(&vec![b'x'; 8_000_000])))),
        Case::new("the end before a reply", CLOSED_BEFORE, vec![Act::Await, Act::Close]),
        Case::new("the end in a length", CLOSED_WITHIN, once(&done[..2])),
        Case::new("the end behind a length", CLOSED_WITHIN, once(&done[..4])),
        Case::new("the end in an error", CLOSED_WITHIN, once(&frame(&error(b"Put failed"))[..12])),
        Case::new("a reset before a reply", RESET, vec![Act::Await, Act::Reset]),
        Case::new("a reset in a reply", RESET, vec![Act::Await, Act::Send(done[..2].to_vec()), Act::Reset]),
        Case::new("silence", TIMED_OUT, vec![Act::Await, Act::Hold]),
        Case::new("silence in a reply", TIMED_OUT, held(&done[..2])),
        // The second one may meet the next request.
        Case::new(
            "two replies to each request",
            &[Ends::Ok, Ends::Failed(ErrorClass::UnsolicitedData)],
            kept([&done[..], &done].concat()),
        ),
        Case::new(
            "replies without an end",
            &[Ends::Ok, Ends::Failed(ErrorClass::UnsolicitedData)],
            vec![Act::Await, flooded(&done.repeat(1_000), 10_000), Act::Hold],
        ),
        Case::new("garbage behind a reply", OK, held([&done[..], &[0xff; 10]].concat())),
    ]);
    cases
}

/// The length of the frame that bytes begin with.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk()?;
    Some(length.len() + u32::from_be_bytes(*length) as usize)
}

/// Returns requests for the built-in cache.
pub(crate) fn requests() -> DamagedRequests {
    DamagedRequests {
        server: "cache",
        // PING, and its answer.
        probe: b"\0\0\0\x01\0",
        answer: b"\0\0\0\x01\0",
        requests: vec![
            frame(b"\x01\0\0\0\x09perf_test\0\0\0\x01\0\0\0\x01kv"),
            frame(b"\x02\0\0\0\x09perf_test\0\0\0\x01k"),
            frame(b"\x03\0\0\0\x09perf_test\0\0\0\x01k"),
            frame(b"\0"),
        ],
    }
}

/// A frame of this content.
fn frame(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes()[..], content].concat()
}

/// The content of a reply with an error.
fn error(text: &[u8]) -> Vec<u8> {
    [&[4], &(text.len() as u32).to_be_bytes()[..], text].concat()
}
