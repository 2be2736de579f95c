//! Servers that break TLS, have no good certificate, or use TLS to do harm.

use plimsoll_core::ErrorClass;

use super::{
    Act, CLOSED_BEFORE, CLOSED_WITHIN, Case, Ends, Identity, Load, OK, PROTOCOL, RESET, Speaks, Suite,
    TIMED_OUT, flooded, kept, once,
};

const TLS: &[Ends] = &[Ends::Failed(ErrorClass::Tls)];
const TRUNCATED: &[Ends] = &[Ends::Failed(ErrorClass::TlsTruncated)];

/// A handshake that is carried out before anything else is done.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// The certificate that the server shows.
    pub identity: Identity,
    /// The version that it speaks.
    pub version: Version,
    /// The application protocols that it speaks.
    pub alpn: Alpn,
    /// Tickets that it sends at once.
    pub tickets: usize,
    /// The damage to its bytes.
    pub tamper: Tamper,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.2.
    Tls12,
    /// 1.3.
    Tls13,
}

/// A server's part in ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// The server does not know ALPN.
    Unknown,
    /// The server speaks HTTP/1.1.
    Http1,
    /// The server speaks HTTP/2.
    Http2,
}

/// Damage to the bytes that a server sends in its handshake.
#[derive(Clone, Debug)]
pub enum Tamper {
    /// Nothing.
    Nothing,
    /// Only this many bytes are sent, and then the acts follow in place of the rest.
    Cut(usize),
    /// The one at this place is another.
    Flip(usize),
    /// Others are sent before the one at this place.
    Insert(usize, Vec<u8>),
}

impl Default for Handshake {
    fn default() -> Self {
        Self {
            identity: Identity::Good,
            version: Version::Tls13,
            alpn: Alpn::Http1,
            tickets: 2,
            tamper: Tamper::Nothing,
        }
    }
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
/// A response whose body ends with the connection.
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";

const TRUST: &str = "--cacert {ca}";
/// The lengths of the records with which a server begins in TLS 1.3, with their heads of five bytes: its
/// hello, and the change of ciphers that is there for old middleboxes (RFC 8446 appendix D.4).
const HELLO: usize = 127;
const CHANGE: usize = 6;

/// Servers that do not get as far as a handshake.
pub(super) fn records() -> Suite {
    let parts = [alerts(), wrong_hellos(), floods(), early_ends()];
    Suite {
        name: "TLS, before the handshake",
        speaks: Speaks::Records,
        command,
        good_connections: 0,
        good: Vec::new(),
        cases: parts.into_iter().flatten().map(|case| case.with(TRUST)).collect(),
    }
}

/// The version in the head of records, whatever is spoken.
const V12: [u8; 2] = [3, 3];

fn record(kind: u8, version: [u8; 2], content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[kind], &version[..], &length, content].concat()
}

fn alert(level: u8, code: u8) -> Vec<u8> {
    record(21, V12, &[level, code])
}

/// A record of the handshake.
fn handshake(content: &[u8]) -> Vec<u8> {
    record(22, V12, content)
}

/// A hello of a server, with a legacy version, a suite and extensions.
fn hello(version: [u8; 2], suite: [u8; 2], extensions: &[u8]) -> Vec<u8> {
    let length = (extensions.len() as u16).to_be_bytes();
    let body = [&version[..], &[7; 32], &[0], &suite, &[0], &length, extensions].concat();
    handshake(&message(2, &body))
}

/// A message of the handshake (RFC 8446 section 4): a type, and three bytes of length.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

/// Every alert of RFC 8446 section 6.2, as an answer to the hello of the client.
fn alerts() -> Vec<Case> {
    let mut cases = Vec::new();
    for (code, name) in [
        (10, "unexpected_message"),
        (20, "bad_record_mac"),
        (22, "record_overflow"),
        (40, "handshake_failure"),
        (42, "bad_certificate"),
        (47, "illegal_parameter"),
        (48, "unknown_ca"),
        (50, "decode_error"),
        (51, "decrypt_error"),
        (70, "protocol_version"),
        (71, "insufficient_security"),
        (80, "internal_error"),
        (86, "inappropriate_fallback"),
        (90, "user_canceled"),
        (109, "missing_extension"),
        (110, "unsupported_extension"),
        (112, "unrecognized_name"),
        (116, "certificate_required"),
        (120, "no_application_protocol"),
        (255, "nobody knows"),
    ] {
        // A client may go on after user_canceled, and finds the end (RFC 8446 section 6.1).
        let ends = if code == 90 { TLS_OR_CLOSED } else { TLS };
        cases.push(Case::new(format!("the alert {name}"), ends, once(alert(2, code))));
    }
    cases
}

/// Answers to the hello of the client that are no hello for it.
fn wrong_hellos() -> Vec<Case> {
    let in_13: &[u8] = &[0, 43, 0, 2, 3, 4];
    let bad: [(&str, Vec<u8>); 15] = [
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ("SMTP", b"220 mail.example ESMTP ready\r\n".to_vec()),
        ("SETTINGS of HTTP/2", b"\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("bytes of nothing", vec![0xff; 1_000]),
        ("a record of no type", record(99, V12, b"what is this")),
        ("a record of no version", record(22, [9, 9], &[2, 0, 0, 1, 0])),
        ("a record longer than allowed", handshake(&[2; 0x4800])),
        ("an alert of three bytes", record(21, V12, &[2, 40, 0])),
        ("application data before the handshake", record(23, V12, b"hello")),
        ("the hello of a client", handshake(&[1, 0, 0, 4, 3, 3, 0, 0])),
        ("a hello of SSL 3", hello([3, 0], [0, 0x2f], &[])),
        ("a hello of TLS 1.0", hello([3, 1], [0, 0x2f], &[])),
        ("a suite that was not offered", hello(V12, [0, 0x05], &[])),
        ("a suite of 1.2 in 1.3", hello(V12, [0xc0, 0x2f], in_13)),
        ("a hello of 1.3 without a key", hello(V12, [0x13, 0x01], in_13)),
    ];
    bad.map(|(name, bytes)| Case::new(name, TLS, once(bytes))).into()
}

/// Records that go on and on, and messages that claim to.
fn floods() -> Vec<Case> {
    vec![
        Case::new("a message of 16 MiB", TLS, once(handshake(&[2, 0xff, 0xff, 0xff]))),
        Case::new(
            "a message of 16 MiB that comes",
            TLS,
            vec![
                Act::Await,
                Act::Send(handshake(&[11, 0xff, 0xff, 0xff])),
                flooded(&handshake(&[0; 16_384]), 1_100),
                Act::Hold,
            ],
        ),
        Case::new(
            "empty records without an end",
            TLS_OR_TIMED_OUT,
            vec![Act::Await, flooded(&handshake(&[]).repeat(1_000), 1_000), Act::Hold],
        ),
        Case::new(
            "changes of ciphers without an end",
            TLS,
            vec![Act::Await, flooded(&record(20, V12, &[1]).repeat(1_000), 1_000), Act::Hold],
        ),
        Case::new(
            "warnings without an end",
            TLS,
            vec![Act::Await, flooded(&alert(1, 90).repeat(1_000), 1_000), Act::Hold],
        ),
        Case::new(
            "HelloRequest without an end",
            TLS,
            vec![Act::Await, flooded(&handshake(&[0; 4]).repeat(1_000), 1_000), Act::Hold],
        ),
    ]
}

/// Ends of connections within the hello or in its place, and silence.
fn early_ends() -> Vec<Case> {
    vec![
        Case::new("close_notify in place of a hello", TLS_OR_CLOSED, once(alert(1, 0))),
        Case::new("half a record, and the end", TLS_OR_CLOSED, once(&handshake(&[2; 100])[..50])),
        Case::new(
            "half a record, and silence",
            TIMED_OUT,
            vec![Act::Await, Act::Send(handshake(&[2; 100])[..50].to_vec()), Act::Hold],
        ),
        Case::new("silence", TIMED_OUT, vec![Act::Await, Act::Hold]),
        Case::new("silence that does not read", TIMED_OUT, vec![Act::Hold]),
        Case::new("the end", TLS_OR_CLOSED, vec![Act::Await, Act::Close]),
        Case::new("a reset", RESET_OR_TLS, vec![Act::Await, Act::Reset]),
    ]
}

/// The end of a connection within its handshake is one of the handshake, or of the connection.
const TLS_OR_CLOSED: &[Ends] =
    &[Ends::Failed(ErrorClass::Tls), Ends::Failed(ErrorClass::ClosedBeforeResponse)];
const RESET_OR_TLS: &[Ends] = &[Ends::Failed(ErrorClass::Reset), Ends::Failed(ErrorClass::Tls)];
/// Records of nothing may be refused (RFC 8446 section 5.1), or be waited out.
const TLS_OR_TIMED_OUT: &[Ends] = &[Ends::Failed(ErrorClass::Tls), Ends::TimedOut];

/// Servers that shake hands, and break TLS in it or after it.
pub(super) fn suite() -> Suite {
    let parts = [
        certificates(),
        agreements(),
        handshakes(),
        endings(),
        records_behind(),
        messages_behind(),
        updates_of_keys(),
        tickets(),
        renegotiations(),
    ];
    Suite {
        name: "TLS",
        speaks: Speaks::Http1,
        command,
        good_connections: 0,
        good: Vec::new(),
        cases: parts.into_iter().flatten().collect(),
    }
}

fn command(load: Load<'_>) -> String {
    let Load { address, requests, connections, timeout } = load;
    format!("https://{address}/ -n {requests} -c {connections} --timeout {timeout}s")
}

/// A server that shakes hands like this, and then acts.
fn shaking(name: &str, ends: &[Ends], handshake: Handshake, acts: Vec<Act>) -> Case {
    Case { handshake: Some(handshake), ..Case::new(name, ends, acts).with(TRUST) }
}

/// Certificates that are not to be accepted.
fn certificates() -> Vec<Case> {
    let bad = [
        ("a certificate that has expired", Identity::Expired),
        ("a certificate that is not valid yet", Identity::Early),
        ("a certificate for another host", Identity::OtherHost),
        ("a certificate for no host", Identity::NoHost),
        ("a certificate of an unknown authority", Identity::OtherAuthority),
        ("a certificate that signs itself", Identity::SelfSigned),
        ("the certificate of the authority", Identity::Authority),
        ("a certificate for clients", Identity::ClientsOnly),
        ("a certificate by no authority", Identity::NoAuthority),
        ("a certificate by an authority of other names", Identity::Constrained),
        ("a certificate by an authority that is not shown", Identity::Gap),
        ("a certificate with a critical extension", Identity::CriticalExtension),
        ("a certificate with a bad signature", Identity::BadSignature),
        ("a certificate with a weak signature", Identity::WeakSignature),
        ("a certificate without its key", Identity::OtherKey),
        ("a certificate of garbage", Identity::Garbage),
        ("half a certificate", Identity::Half),
        ("a hundred certificates", Identity::LongChain),
    ];
    let shown = |identity, version| Handshake { identity, version, ..Handshake::default() };
    let mut cases: Vec<Case> = Vec::new();
    for (name, identity) in bad {
        cases.push(shaking(name, TLS, shown(identity, Version::Tls13), kept(GOOD)));
    }
    cases.push(shaking(
        "a certificate without its key, in 1.2",
        TLS,
        shown(Identity::OtherKey, Version::Tls12),
        kept(GOOD),
    ));
    cases.push(shaking("a good certificate", OK, Handshake::default(), kept(GOOD)));
    cases.push(shaking("a good certificate, in 1.2", OK, shown(Identity::Good, Version::Tls12), kept(GOOD)));
    cases
}

/// Versions and protocols that the two sides do not have in common.
fn agreements() -> Vec<Case> {
    let spoken = |version, alpn| Handshake { version, alpn, ..Handshake::default() };
    let http1 = Handshake::default;
    vec![
        shaking("1.2 where 1.3 is wanted", TLS, spoken(Version::Tls12, Alpn::Http1), kept(GOOD))
            .with("--cacert {ca} --tls 1.3"),
        shaking("1.3 where 1.2 is wanted", TLS, http1(), kept(GOOD)).with("--cacert {ca} --tls 1.2"),
        shaking("HTTP/1.1 where HTTP/2 is wanted", TLS, http1(), kept(GOOD)).with("--cacert {ca} --http2"),
        shaking("HTTP/2 where HTTP/1.1 is wanted", TLS, spoken(Version::Tls13, Alpn::Http2), kept(GOOD)),
        // Without ALPN the client assumes the protocol that it wanted; the bytes of the server are neither.
        shaking(
            "no protocol where HTTP/2 is wanted",
            &[Ends::Failed(ErrorClass::Tls), Ends::Failed(ErrorClass::WrongProtocol)],
            spoken(Version::Tls13, Alpn::Unknown),
            once(GOOD),
        )
        .with("--cacert {ca} --http2"),
    ]
}

/// Handshakes that are cut, damaged or interrupted, at each place.
fn handshakes() -> Vec<Case> {
    let tampered = |version, tamper| Handshake { version, tamper, ..Handshake::default() };
    let (v12, v13) = (Version::Tls12, Version::Tls13);
    let mut cases = Vec::new();
    for (place, bytes) in [
        ("in the head of the first record", 3),
        ("in the hello", 60),
        ("behind the hello", HELLO),
        ("behind the change of ciphers", HELLO + CHANGE),
        ("in the head of the encrypted record", HELLO + CHANGE + 4),
        ("in the certificate", HELLO + CHANGE + 300),
    ] {
        let at = || tampered(v13, Tamper::Cut(bytes));
        cases.push(shaking(&format!("the end {place}"), TLS_OR_CLOSED, at(), vec![Act::Close]));
        cases.push(shaking(&format!("silence {place}"), TIMED_OUT, at(), vec![Act::Hold]));
        cases.push(shaking(&format!("a reset {place}"), RESET_OR_TLS, at(), vec![Act::Reset]));
    }
    for (place, bytes) in [("in the hello, in 1.2", 60), ("in the certificate, in 1.2", 300)] {
        let cut = tampered(v12, Tamper::Cut(bytes));
        cases.push(shaking(&format!("the end {place}"), TLS_OR_CLOSED, cut, vec![Act::Close]));
    }
    for (name, at) in [
        ("another type of the first record", 0),
        ("another kind of the first message", 5),
        ("another length of the hello", 7),
        ("another suite", 5 + 4 + 2 + 32 + 1 + 32),
        ("another key share", HELLO - 1),
        ("another byte of the certificate", HELLO + CHANGE + 300),
    ] {
        cases.push(shaking(name, TLS, tampered(v13, Tamper::Flip(at)), kept(GOOD)));
    }
    let empty = [22, 3, 3, 0, 0].repeat(10_000);
    let change = [20, 3, 3, 0, 1, 1].repeat(10_000);
    let plain_alert = vec![21, 3, 3, 0, 2, 2, 80];
    for (name, at, bytes) in [
        ("empty records behind the hello", HELLO, empty),
        ("changes of ciphers behind the hello", HELLO, change),
        ("an alert behind the hello", HELLO, plain_alert),
        ("garbage behind the hello", HELLO, vec![0xff; 100]),
        ("a second hello", HELLO, vec![22, 3, 3, 0, 4, 2, 0, 0, 0]),
        (
            "plain text behind the change of ciphers",
            HELLO + CHANGE,
            vec![23, 3, 3, 0, 5, b'h', b'e', b'l', b'l', b'o'],
        ),
    ] {
        cases.push(shaking(name, TLS, tampered(v13, Tamper::Insert(at, bytes)), kept(GOOD)));
    }
    cases
}

/// Ends of connections, with close_notify and without.
fn endings() -> Vec<Case> {
    let good = Handshake::default;
    let say = |bytes: &[u8], end: Act| vec![Act::Await, Act::Send(bytes.to_vec()), end];
    let part = &GOOD[..GOOD.len() - 2];
    vec![
        shaking(
            "the end without close_notify before the response",
            CLOSED_BEFORE,
            good(),
            vec![Act::Await, Act::Close],
        ),
        shaking("close_notify before the response", CLOSED_BEFORE, good(), vec![Act::Await, Act::Notify]),
        shaking(
            "the end without close_notify in the head",
            CLOSED_WITHIN,
            good(),
            say(&GOOD[..20], Act::Close),
        ),
        shaking("the end without close_notify in the body", CLOSED_WITHIN, good(), say(part, Act::Close)),
        shaking("close_notify in the body", CLOSED_WITHIN, good(), say(part, Act::Notify)),
        // The response is whole; the next request may be under way.
        shaking(
            "the end without close_notify behind the response",
            OK_OR_LOST,
            good(),
            say(GOOD, Act::Close),
        ),
        shaking(
            "the end without close_notify of a body without a length",
            TRUNCATED,
            good(),
            say(UNTIL_CLOSE, Act::Close),
        ),
        shaking("close_notify behind a body without a length", OK, good(), say(UNTIL_CLOSE, Act::Notify)),
        shaking(
            "close_notify behind a body without a length, and silence",
            OK,
            good(),
            vec![Act::Await, Act::Send(UNTIL_CLOSE.to_vec()), Act::Record(21, vec![1, 0]), Act::Hold],
        ),
        shaking(
            "a fatal alert in the body",
            TLS,
            good(),
            vec![Act::Await, Act::Send(part.to_vec()), Act::Record(21, vec![2, 80]), Act::Hold],
        ),
        shaking(
            "a fatal alert behind a body without a length",
            TLS,
            good(),
            vec![Act::Await, Act::Send(UNTIL_CLOSE.to_vec()), Act::Record(21, vec![2, 80]), Act::Close],
        ),
        shaking("a reset behind the handshake", RESET, good(), vec![Act::Await, Act::Reset]),
        shaking("a reset in the body", RESET, good(), say(part, Act::Reset)),
        shaking("silence behind the handshake", TIMED_OUT, good(), vec![Act::Await, Act::Hold]),
    ]
}

/// A good response, after which the connection ends.
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello";

const OK_OR_LOST: &[Ends] =
    &[Ends::Ok, Ends::Failed(ErrorClass::ClosedBeforeResponse), Ends::Failed(ErrorClass::Reset)];

/// A server that sends a record of this kind so often behind its handshake.
fn behind(kind: u8, content: &[u8], times: u32) -> Vec<Act> {
    vec![Act::Await, Act::Repeat(times, Box::new(Act::Record(kind, content.to_vec()))), Act::Hold]
}

/// Records behind the handshake that no library sends.
fn records_behind() -> Vec<Case> {
    let good = Handshake::default;
    let raw = |bytes: Vec<u8>| vec![Act::Await, Act::Below(bytes), Act::Hold];
    vec![
        shaking("HTTP/1.1 that is none", PROTOCOL, good(), once("220 mail.example ESMTP ready\r\n")),
        shaking(
            "empty records without an end, behind the handshake",
            TLS_OR_TIMED_OUT,
            good(),
            behind(23, b"", 100_000),
        ),
        shaking(
            "records of one byte",
            OK,
            good(),
            [
                vec![Act::Await],
                // The server has handed out its keys for this, and cannot read a second request.
                LAST.iter().map(|byte| Act::Record(23, vec![*byte])).collect(),
                vec![Act::Hold],
            ]
            .concat(),
        ),
        shaking("a record without a type", TLS, good(), behind(0, b"", 1)),
        shaking("a record of no type, behind the handshake", TLS, good(), behind(99, b"hello", 1)),
        shaking("a record of 16,385 bytes", TLS, good(), behind(23, &[b'x'; 16_385], 1)),
        shaking(
            "a record that cannot be decrypted",
            TLS,
            good(),
            raw([&[23, 3, 3, 0, 32][..], &[7; 32]].concat()),
        ),
        shaking(
            "a record beyond the limit, behind the handshake",
            TLS,
            good(),
            raw(vec![23, 3, 3, 0xff, 0xff]),
        ),
        shaking(
            "plain HTTP behind the handshake",
            TLS,
            good(),
            raw(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ),
        shaking("an alert that is half", TLS, good(), behind(21, &[2], 1)),
        shaking("warnings without an end, behind the handshake", TLS, good(), behind(21, &[1, 90], 10_000)),
        shaking("a change of ciphers behind the handshake", TLS, good(), behind(20, &[1], 1)),
    ]
}

/// Messages of the handshake behind it.
fn messages_behind() -> Vec<Case> {
    let good = Handshake::default;
    vec![
        shaking("a hello behind the handshake", TLS, good(), behind(22, &message(2, &[0; 40]), 1)),
        shaking("a certificate behind the handshake", TLS, good(), behind(22, &message(11, &[0; 40]), 1)),
        shaking("an unknown message after the handshake", TLS, good(), behind(22, &message(99, &[0; 40]), 1)),
        shaking(
            "a certificate is asked for behind the handshake",
            TLS,
            good(),
            behind(22, &message(13, &[0, 0, 0]), 1),
        ),
        shaking(
            "a half message, and application data",
            TLS,
            good(),
            [
                vec![Act::Await, Act::Record(22, vec![4, 0, 1, 0, 0])],
                vec![Act::Record(23, GOOD.to_vec()), Act::Hold],
            ]
            .concat(),
        ),
        shaking(
            "a message of 16 MiB behind the handshake",
            TLS,
            good(),
            [
                vec![Act::Await, Act::Record(22, vec![4, 0xff, 0xff, 0xff])],
                vec![Act::Repeat(1_100, Box::new(Act::Record(22, vec![0; 16_000]))), Act::Hold],
            ]
            .concat(),
        ),
    ]
}

fn updates_of_keys() -> Vec<Case> {
    let good = Handshake::default;
    vec![
        shaking("an update of keys that is none", TLS, good(), behind(22, &message(24, &[9]), 1)),
        shaking(
            "an update of keys, and the old ones",
            TLS,
            good(),
            [
                vec![Act::Await, Act::Record(22, message(24, &[0]))],
                vec![Act::Record(23, GOOD.to_vec()), Act::Hold],
            ]
            .concat(),
        ),
        // Each is a message of its own kind that the other side has to derive keys for.
        shaking(
            "an update of keys before each response",
            OK,
            good(),
            vec![Act::Await, Act::UpdateKeys, Act::Send(GOOD.to_vec()), Act::Again],
        ),
        shaking(
            "updates of keys without an end",
            TLS_OR_TIMED_OUT,
            good(),
            vec![Act::Await, Act::Repeat(100_000, Box::new(Act::UpdateKeys)), Act::Hold],
        ),
    ]
}

fn tickets() -> Vec<Case> {
    let good = Handshake::default;
    vec![
        shaking("20 tickets", OK, Handshake { tickets: 20, ..good() }, kept(GOOD)),
        // More than rustls takes at once.
        shaking("1,000 tickets", OK_OR_TLS, Handshake { tickets: 1_000, ..good() }, kept(GOOD)),
        shaking("a ticket of garbage", TLS, good(), behind(22, &message(4, &[0xff; 40]), 1)),
        shaking(
            "tickets without an end",
            TLS_OR_TIMED_OUT,
            good(),
            behind(22, &message(4, &ticket()), 50_000),
        ),
    ]
}

/// Requests for another handshake, which only TLS 1.2 has.
fn renegotiations() -> Vec<Case> {
    let in_12 = || Handshake { version: Version::Tls12, ..Handshake::default() };
    vec![
        shaking("HelloRequest, in 1.2", TIMED_OUT_OR_TLS, in_12(), behind(22, &[0; 4], 1)),
        shaking(
            "HelloRequest without an end, in 1.2",
            TIMED_OUT_OR_TLS,
            in_12(),
            behind(22, &[0; 4], 10_000),
        ),
        shaking("a hello behind the handshake, in 1.2", TLS, in_12(), behind(22, &message(2, &[0; 40]), 1)),
    ]
}

const OK_OR_TLS: &[Ends] = &[Ends::Ok, Ends::Failed(ErrorClass::Tls)];

/// A renegotiation may be declined and the connection go on (RFC 5746 section 4.5), or be given up.
const TIMED_OUT_OR_TLS: &[Ends] = &[Ends::TimedOut, Ends::Failed(ErrorClass::Tls)];

/// The body of a NewSessionTicket (RFC 8446 section 4.6.1): lifetime, age, nonce, ticket, no extensions.
fn ticket() -> Vec<u8> {
    [&[0, 0, 0x0e, 0x10][..], &[7; 4], &[1, 0], &[0, 32], &[7; 32], &[0, 0]].concat()
}
