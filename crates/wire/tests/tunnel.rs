//! Tunnels: what is sent to a proxy, and what its answers mean, however they are cut.

use std::net::SocketAddr;
use std::sync::Arc;

use plimsoll_wire::http1::Limits;
use plimsoll_wire::tunnel::{Credentials, Destination, TunnelClient, TunnelError, TunnelRequest};
use proptest::prelude::*;

/// The course of asking a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Course {
    /// Everything that was sent to it.
    sent: Vec<u8>,
    /// Result of the negotiation; `None` until the proxy has answered in full.
    end: Option<Result<(), TunnelError>>,
    /// The bytes behind the proxy's last one.
    left: Vec<u8>,
}

/// Asks for a tunnel; the proxy's answers come in these pieces.
fn asked<'p>(request: &TunnelRequest, pieces: impl IntoIterator<Item = &'p [u8]>) -> Course {
    let mut course = Course { sent: Vec::new(), end: None, left: Vec::new() };
    let mut client = TunnelClient::begin(Arc::new(request.clone()), &mut course.sent);
    for piece in pieces {
        let mut input = piece;
        if course.end.is_none() {
            match client.receive(&Limits::default(), &mut input, &mut course.sent) {
                Ok(false) => assert!(input.is_empty(), "what belongs to nobody yet is the proxy's"),
                Ok(true) => course.end = Some(Ok(())),
                Err(error) => course.end = Some(Err(error)),
            }
        }
        if course.end == Some(Ok(())) {
            course.left.extend_from_slice(input);
        }
    }
    course
}

fn name(host: &str, port: u16) -> Destination {
    Destination::Name(host.to_owned(), port)
}

fn address(text: &str) -> Destination {
    Destination::Address(text.parse::<SocketAddr>().expect("an address"))
}

fn me() -> Credentials {
    Credentials { user: "me".to_owned(), password: "secret".to_owned() }
}

fn socks5(destination: &Destination, credentials: Option<&Credentials>) -> TunnelRequest {
    TunnelRequest::socks5(destination, credentials).expect("short texts")
}

#[test]
fn the_head_of_connect_names_the_destination_twice() {
    let version = env!("CARGO_PKG_VERSION");
    for (destination, shown, authorization) in [
        (name("a.test", 443), "a.test:443", None),
        (address("127.0.0.1:8443"), "127.0.0.1:8443", Some("Basic bWU6c2VjcmV0")),
        (address("[::1]:443"), "[::1]:443", None),
    ] {
        let request = TunnelRequest::connect(&destination, authorization);
        let field =
            authorization.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
        let expected = format!(
            "CONNECT {shown} HTTP/1.1\r\nHost: {shown}\r\nUser-Agent: plimsoll/{version}\r\n{field}\r\n"
        );
        assert_eq!(String::from_utf8(asked(&request, []).sent).unwrap(), expected);
        assert!(!format!("{request:?}").contains("bWU6"), "{request:?}");
    }
}

/// RFC 9110 section 9.3.6: any 2xx opens the tunnel at the end of its head, whatever its fields say.
#[test]
fn a_success_ends_with_its_head() {
    let request = TunnelRequest::connect(&name("a.test", 443), None);
    for head in [
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.0 200\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nvia: 1.1 p\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\n\n",
    ] {
        let bytes = [head.as_bytes(), b"\x16\x03\x03peer"].concat();
        let course = asked(&request, [bytes.as_slice()]);
        assert_eq!((course.end, course.left), (Some(Ok(())), b"\x16\x03\x03peer".to_vec()), "{head}");
    }
}

#[test]
fn a_refusal_is_told_by_its_status_line() {
    let request = TunnelRequest::connect(&name("a.test", 443), None);
    let refused = |text: &str| TunnelError::Refused(text.to_owned());
    let long = format!("HTTP/1.1 403 {}", "x".repeat(1_000));
    for (head, expected) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n<html>",
            refused("HTTP/1.1 407 Proxy Authentication Required"),
        ),
        ("HTTP/1.1 502 Bad\tGateway\r\n\r\n", refused("HTTP/1.1 502 Bad Gateway")),
        ("HTTP/1.1 304\r\n\r\n", refused("HTTP/1.1 304")),
        (&format!("{long}\r\n\r\n"), refused(&long[..200])),
    ] {
        assert_eq!(asked(&request, [head.as_bytes()]).end, Some(Err(expected)), "{head}");
    }
}

#[test]
fn what_is_no_answer_to_connect_is_invalid() {
    let request = TunnelRequest::connect(&name("a.test", 443), None);
    let endless = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'y'; 70_000]].concat();
    let fields = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"x: y\r\n".repeat(300), b"\r\n"].concat();
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(40);
    for bytes in [
        b"\x05\x00".as_slice(),
        b"\x15\x03\x03\0\x02\x02\x46",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        &endless,
        &fields,
        &interim,
    ] {
        let end = asked(&request, [bytes]).end;
        assert!(matches!(end, Some(Err(TunnelError::Invalid(_)))), "{end:?}");
    }
    assert_eq!(asked(&request, [&b"HTTP/1.1 200 OK\r\nvia: p"[..]]).end, None, "it goes on");
}

/// The messages of RFC 1928 and RFC 1929, byte by byte.
#[test]
fn socks5_says_what_its_documents_say() {
    let v4 = socks5(&address("127.0.0.1:8080"), None);
    let granted = b"\x05\0\0\x01\x7f\0\0\x01\x1f\x90".as_slice();
    let course = asked(&v4, [b"\x05\0".as_slice(), granted]);
    assert_eq!(course.sent, b"\x05\x01\0\x05\x01\0\x01\x7f\0\0\x01\x1f\x90");
    assert_eq!(course.end, Some(Ok(())));

    let named = socks5(&name("a.test", 443), Some(&me()));
    let course = asked(&named, [b"\x05\x02".as_slice(), b"\x01\0", b"\x05\0\0\x03\x01p\0\x01peer"]);
    assert_eq!(course.sent, b"\x05\x02\0\x02\x01\x02me\x06secret\x05\x01\0\x03\x06a.test\x01\xbb");
    assert_eq!((course.end, course.left), (Some(Ok(())), b"peer".to_vec()));

    // A proxy that wants no credentials is not told any.
    let v6 = socks5(&address("[::1]:443"), Some(&me()));
    let course = asked(&v6, [b"\x05\0\x05\0\0\x04".as_slice(), &[0; 16], b"\0\x01"]);
    let expected = [b"\x05\x02\0\x02\x05\x01\0\x04".as_slice(), &[0; 15], b"\x01\x01\xbb"].concat();
    assert_eq!((course.sent, course.end), (expected, Some(Ok(()))));
}

#[test]
fn socks5_refuses_in_words() {
    let (plain, with_user) =
        (socks5(&address("127.0.0.1:1"), None), socks5(&address("127.0.0.1:1"), Some(&me())));
    let refused = |text: &str| Some(Err(TunnelError::Refused(text.to_owned())));
    let invalid = |text: &str| Some(Err(TunnelError::Invalid(text.to_owned())));
    for (request, bytes, expected) in [
        (&plain, b"\x05\xff".as_slice(), refused("it wants credentials, and the proxy's URL has none")),
        (&with_user, b"\x05\xff", refused("it takes no user and password")),
        (&with_user, b"\x05\x02\x01\x01", refused("the user or the password is wrong (status 1)")),
        (&plain, b"\x05\0\x05\x02", refused("connection not allowed by ruleset (SOCKS reply 2)")),
        (&plain, b"\x05\0\x05\x05", refused("connection refused (SOCKS reply 5)")),
        (&plain, b"\x05\0\x05\x63", refused("unassigned code (SOCKS reply 99)")),
        (&plain, b"H", invalid("it does not speak SOCKS5: its first byte is 72")),
        (&plain, b"\x05\x02", invalid("it chose the authentication method 2, which was not offered")),
        (&plain, b"\x05\0\x04", invalid("it does not speak SOCKS5: its first byte is 4")),
        (&plain, b"\x05\0\x05\0\0\x02", invalid("2 is not a type of address of SOCKS5")),
        (&plain, b"\x05\0\x05\0\0\x01\x7f\0\0\x01\x1f", None),
    ] {
        assert_eq!(asked(request, [bytes]).end, expected, "{bytes:?}");
    }
}

#[test]
fn texts_that_socks5_cannot_say_are_refused() {
    let long = "x".repeat(256);
    let with = |user: &str, password: &str| {
        let credentials = Credentials { user: user.to_owned(), password: password.to_owned() };
        TunnelRequest::socks5(&name("a", 1), Some(&credentials)).err()
    };
    assert_eq!(
        TunnelRequest::socks5(&name(&long, 1), None).err(),
        Some("the name of the host is too long for SOCKS5")
    );
    assert_eq!(with(&long, "p"), Some("the user is too long for SOCKS5"));
    assert_eq!(with("u", &long), Some("the password is too long for SOCKS5"));
    assert_eq!(with(&long[1..], ""), None);
}

/// Requests, and answers to them: good ones, refusals and garbage.
fn dialogues() -> Vec<(TunnelRequest, Vec<u8>)> {
    let connect = || TunnelRequest::connect(&name("a.test", 443), None);
    let socks5 = || socks5(&name("a.test", 443), Some(&me()));
    let named = [b"\x05\x02\x01\0\x05\0\0\x03\xff".as_slice(), &[b'n'; 255], b"\0\x01SETTINGS"].concat();
    vec![
        (
            connect(),
            b"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK\r\nvia: 1.1 p\r\n\r\npeer\r\n\r\nspeaks".to_vec(),
        ),
        (
            connect(),
            b"\r\nHTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 3\r\n\r\nabc".to_vec(),
        ),
        (connect(), b"HTTP/1.1 200 OK\r\nbad field\r\n\r\n".to_vec()),
        (connect(), b"\x16\x03\x01garbage".to_vec()),
        (socks5(), b"\x05\x02\x01\0\x05\0\0\x01\x7f\0\0\x01\x1f\x90peer".to_vec()),
        (socks5(), named),
        (socks5(), b"\x05\0\x05\x04\0\x01".to_vec()),
        (socks5(), b"\x05\x02\x01\x07".to_vec()),
        (socks5(), b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ]
}

proptest! {
    #[test]
    fn the_course_does_not_depend_on_how_the_bytes_were_cut(
        which in 0..9_usize,
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let (request, bytes) = dialogues().swap_remove(which);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|edges| &bytes[edges[0]..edges[1]]);
        prop_assert_eq!(asked(&request, pieces), asked(&request, [bytes.as_slice()]));
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), which in 0..9_usize, kept in 0..12_usize,
    ) {
        let (request, good) = dialogues().swap_remove(which);
        let bytes = [&good[..kept.min(good.len())], &bytes].concat();
        let whole = asked(&request, [bytes.as_slice()]);
        prop_assert_eq!(asked(&request, bytes.chunks(1)), whole);
    }
}

#[test]
fn every_byte_alone_gives_the_same() {
    let dialogues = dialogues();
    assert_eq!(dialogues.len(), 9, "the properties choose among them");
    for (request, bytes) in dialogues {
        assert_eq!(asked(&request, bytes.chunks(1)), asked(&request, [bytes.as_slice()]));
    }
}
