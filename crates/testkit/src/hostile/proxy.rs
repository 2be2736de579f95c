//! Proxies that refuse, break their protocol, or use it to do harm, before there is a tunnel. Some open one
//! and play the target, too.

use std::time::Duration;

use plimsoll_core::ErrorClass;

use super::{Act, Case, Ends, Load, OK, Speaks, Suite, flooded, held, once};

const PROXY: &[Ends] = &[Ends::Failed(ErrorClass::Proxy)];
const TLS: &[Ends] = &[Ends::Failed(ErrorClass::Tls)];
const CONNECT_TIMEOUT: &[Ends] = &[Ends::Failed(ErrorClass::ConnectTimeout)];
const UNSOLICITED: &[Ends] = &[Ends::Failed(ErrorClass::UnsolicitedData)];

/// For a proxy that would be waited for.
const SOON: &str = "--connect-timeout 400ms";

/// A response of the target, and its end by an empty line.
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// The tables.
pub(super) fn suites() -> [Suite; 2] {
    let suite = |name, command, cases| Suite {
        name,
        speaks: Speaks::Http1,
        command,
        good_connections: 0,
        good: Vec::new(),
        cases,
    };
    [
        suite("proxy by CONNECT", connect_command, connect()),
        suite("proxy by SOCKS5", socks5_command, socks5()),
    ]
}

/// No byte leaves for the target, so that any will do.
fn connect_command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "https://127.0.0.1:1/ --proxy http://me:secret@{address} -n {requests} -c {connections} \
         --timeout {timeout}s"
    )
}

fn socks5_command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!(
        "http://target.test/ --proxy socks5h://me:secret@{address} -n {requests} -c {connections} \
         --timeout {timeout}s"
    )
}

/// Answers to CONNECT.
fn connect() -> Vec<Case> {
    let refused = [
        ("407", "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n"),
        ("403 with a body", "HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\n<html>"),
        (
            "502 in chunks",
            "HTTP/1.1 502 Bad Gateway\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        ),
        ("a redirect", "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n"),
        ("101", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"),
        ("a status of 999", "HTTP/1.1 999 x\r\n\r\n"),
        ("a status of letters", "HTTP/1.1 abc OK\r\n\r\n"),
        ("escapes in the reason", "HTTP/1.1 403 \x1b]0;owned\x07\r\n\r\n"),
        ("conflicting lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
        ("SSH", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        ("HTML", "<html><body>hello</body></html>\n"),
    ];
    let bytes: [(&str, &[u8]); 3] = [
        ("SOCKS5", b"\x05\0"),
        ("an alert of TLS", b"\x15\x03\x03\0\x02\x02\x46"),
        ("NUL, a thousand times", &[0; 1_000]),
    ];
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(refused.map(|(name, text)| Case::new(name, PROXY, once(text))));
    cases.extend(bytes.map(|(name, bytes)| Case::new(name, PROXY, once(bytes))));
    let field = [b"x: ".as_slice(), &[b'y'; 4093]].concat();
    let flood = |first: &str, more: &[u8], times| {
        vec![Act::Await, Act::Send(first.into()), flooded(more, times), Act::Hold]
    };
    let drip =
        |pause| vec![Act::Await, Act::Drip(b"HTTP/1.1 403 no\r\nx: y\r\n\r\n".to_vec(), pause), Act::Hold];
    cases.extend([
        Case::new("a field without an end", PROXY, flood("HTTP/1.1 200 OK\r\n", &field, 4096)),
        Case::new("fields without an end", PROXY, flood("HTTP/1.1 200 OK\r\n", b"x: y\r\n", 100_000)),
        Case::new("interim responses without an end", PROXY, flood("", b"HTTP/1.1 102 x\r\n\r\n", 10_000)),
        Case::new("empty lines without an end", PROXY, flood("", b"\r\n", 10_000)),
        Case::new("a byte at a time", PROXY, drip(Duration::ZERO)),
        Case::new("a byte at a time, slowly", CONNECT_TIMEOUT, drip(Duration::from_millis(100))).with(SOON),
        Case::new("silence", CONNECT_TIMEOUT, held("")).with(SOON),
        Case::new("half a head", CONNECT_TIMEOUT, held("HTTP/1.1 200 OK\r\nvia: ")).with(SOON),
        Case::new("an interim response alone", CONNECT_TIMEOUT, held("HTTP/1.1 100 x\r\n\r\n")).with(SOON),
        Case::new("a close before the head", PROXY, vec![Act::Await, Act::Close]),
        Case::new("a close in the head", PROXY, once("HTTP/1.1 200 OK\r\nvia")),
        Case::new("a reset", PROXY, vec![Act::Await, Act::Reset]),
        Case::new("a close behind the head", TLS, once("HTTP/1.1 200 OK\r\n\r\n")),
        Case::new("silence behind the head", CONNECT_TIMEOUT, held("HTTP/1.1 200 OK\r\n\r\n")).with(SOON),
        Case::new("HTTP behind the head", TLS, once([b"HTTP/1.1 200 OK\r\n\r\n", GOOD].concat())),
        // Its body, which is none by the rules, is read as the target's.
        Case::new("a body", TLS, once("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")),
    ]);
    cases
}

/// Answers of SOCKS5, which come without being waited for.
fn socks5() -> Vec<Case> {
    const GRANTED: &[u8] = b"\x05\x02\x01\0\x05\0\0\x01\x7f\0\0\x01\0\x01";
    let told = |bytes: &[u8], then: Act| vec![Act::Send(bytes.to_vec()), then];
    let refused: [(&str, &[u8]); 12] = [
        ("no method", b"\x05\xff"),
        ("a method that was not offered", b"\x05\x01"),
        ("a wrong password", b"\x05\x02\x01\x01"),
        ("not allowed", b"\x05\0\x05\x02\0\x01\0\0\0\0\0\0"),
        ("host unreachable", b"\x05\0\x05\x04\0\x01\0\0\0\0\0\0"),
        ("a code that is none", b"\x05\0\x05\xee\0\x01\0\0\0\0\0\0"),
        ("an address that is none", b"\x05\0\x05\0\0\x02\0\0"),
        ("SOCKS4", b"\0\x5a\0\0\0\0\0\0"),
        ("SOCKS4 in the reply", b"\x05\0\x04\0\0\x01\0\0\0\0\0\0"),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("an alert of TLS", b"\x15\x03\x03\0\x02\x02\x46"),
        ("NUL, a hundred times", &[0; 100]),
    ];
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(refused.map(|(name, bytes)| Case::new(name, PROXY, told(bytes, Act::Close))));
    let answered = vec![Act::Send(GRANTED.to_vec()), Act::Await, Act::Send(GOOD.to_vec()), Act::Again];
    let drip = Act::Drip(GRANTED.to_vec(), Duration::ZERO);
    let dripped = vec![drip, Act::Await, Act::Send(GOOD.to_vec()), Act::Again];
    let names = [b"\x05\0\x05\0\0\x03\xff".as_slice(), &[b'n'; 255], b"\0\x01"].concat();
    let named = vec![Act::Send(names), Act::Await, Act::Send(GOOD.to_vec()), Act::Again];
    cases.extend([
        Case::new("a tunnel to a good server", OK, answered),
        Case::new("a tunnel, a byte at a time", OK, dripped),
        Case::new("a tunnel from a long name", OK, named),
        Case::new("silence", CONNECT_TIMEOUT, vec![Act::Hold]).with(SOON),
        Case::new("silence after the method", CONNECT_TIMEOUT, told(b"\x05\0", Act::Hold)).with(SOON),
        Case::new("half a reply", CONNECT_TIMEOUT, told(&GRANTED[..9], Act::Hold)).with(SOON),
        Case::new("a close after the method", PROXY, told(b"\x05\0", Act::Close)),
        Case::new("a close in the reply", PROXY, told(&GRANTED[..9], Act::Close)),
        Case::new("a response behind the reply", UNSOLICITED, told(&[GRANTED, GOOD].concat(), Act::Close)),
    ]);
    cases
}
