//! Servers that break the protocol of Redis.

use plimsoll_testkit::hostile::{
    Act, CLOSED_BEFORE, CLOSED_WITHIN, Case, Ends, ErrorClass, Load, OK, PROTOCOL, RESET, Speaks, Suite,
    TIMED_OUT, flooded, held, kept, once,
};

/// Returns the table. Every case does only SETs of a few bytes.
pub(crate) fn suite() -> Suite {
    Suite {
        name: "redis",
        speaks: Speaks::By(length),
        command,
        good_connections: 0,
        good: Vec::new(),
        cases: cases(),
    }
}

fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!("redis {address} -n {requests} -c {connections} --timeout {timeout}s SET k v")
}

/// The length of `SET k v`, which every request is.
fn length(bytes: &[u8]) -> Option<usize> {
    (bytes.len() >= SET.len()).then_some(SET.len())
}

const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";

fn cases() -> Vec<Case> {
    const DONE: &[u8] = b"+OK\r\n";
    let bad: [(&str, &[u8]); 14] = [
        ("an empty line", b"\r\n"),
        ("an unknown type", b"?1\r\n"),
        ("a type of version 3", b"%1\r\n+a\r\n+b\r\n"),
        ("a line feed alone", b"+OK\n"),
        ("a length that is none", b"$x\r\n"),
        ("a length below -1", b"$-2\r\n"),
        ("a length without digits", b"$\r\n"),
        ("a value of 16 EiB", b"$18446744073709551615\r\n"),
        ("a value that is longer than it said", b"$2\r\nabc\r\n"),
        ("a value without its end", b"$2\r\nab\rx"),
        ("more replies than there may be", b"*9999999999\r\n"),
        ("a number that is none", b":a\r\n"),
        ("bytes of nothing", &[0xff; 100]),
        ("a handshake of TLS", b"\x16\x03\x03\0\x7a\x02\0\0\x76\x03\x03\r\n"),
    ];
    let refused = &[Ends::Failed(ErrorClass::Status5xx)];
    let unasked = &[Ends::Ok, Ends::Failed(ErrorClass::UnsolicitedData)];
    let mut cases: Vec<Case> = bad
        .map(|(name, bytes)| {
            Case::new(name, if bytes[0] == 0xff { CLOSED_WITHIN } else { PROTOCOL }, once(bytes))
        })
        .into();
    cases.extend([
        Case::new("a good reply", OK, kept(DONE)),
        Case::new(
            "HTTP",
            &[Ends::Failed(ErrorClass::WrongProtocol)],
            once("HTTP/1.1 400 Bad Request\r\n\r\n"),
        ),
        Case::new("an error", refused, kept("-ERR no\r\n")),
        Case::new("an error of no text", refused, kept("-\r\n")),
        Case::new("an error with escapes", refused, kept(b"-\x1b[31m\x1b]0;owned\x07\xff\0\r\n".to_vec())),
        Case::new("no value", OK, kept("$-1\r\n")),
        Case::new("an array of nothing", OK, kept("*0\r\n")),
        Case::new("arrays within arrays", OK, kept("*1\r\n".repeat(1_000) + "+OK\r\n")),
        Case::new("arrays within arrays without an end", TIMED_OUT, held("*2\r\n".repeat(200_000))),
        Case::new("a line without an end", PROTOCOL, held(vec![b'+'; 1 << 20])),
        Case::new("a value of 4 GiB that does not come", TIMED_OUT, held("$4294967296\r\nabc")),
        Case::new("the end before a reply", CLOSED_BEFORE, vec![Act::Await, Act::Close]),
        Case::new("the end in a line", CLOSED_WITHIN, once("+O")),
        Case::new("the end in a value", CLOSED_WITHIN, once("$9\r\nab")),
        Case::new("the end in an array", CLOSED_WITHIN, once("*2\r\n+a\r\n")),
        Case::new("a reset before a reply", RESET, vec![Act::Await, Act::Reset]),
        Case::new("a reset in a reply", RESET, vec![Act::Await, Act::Send(b"+O".to_vec()), Act::Reset]),
        Case::new("silence", TIMED_OUT, vec![Act::Await, Act::Hold]),
        Case::new("silence in a reply", TIMED_OUT, held("$9\r\nab")),
        // The second one may meet the next request.
        Case::new("two replies to each request", unasked, kept(DONE.repeat(2))),
        Case::new(
            "replies without an end",
            unasked,
            vec![Act::Await, flooded(&DONE.repeat(1_000), 10_000), Act::Hold],
        ),
    ]);
    cases
}
