//! Answers of servers that mean well and of others: each of them in one piece and in many, over TCP and over
//! TLS, on a connection of its own and on one that could be kept.

use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plimsoll_core::Nanos;
use plimsoll_driver::SystemError;
use plimsoll_http::{Answer, AskError, Client, Deadline, Origin, Request};
use plimsoll_testkit::hostile::{Act, Case, Handshake, Server, Speaks, Suite, authority_pem};
use plimsoll_wire::http1::ProtocolError;
use plimsoll_wire::tls::{ClientConfig, ClientOptions};

/// Far more than a test takes.
const LONG: Nanos = Nanos::from_secs(30);
/// For servers of which nothing more comes.
const SHORT: Nanos = Nanos::from_millis(300);
/// The most bytes of an answer, where a row names no other number.
const MOST: usize = 10_000;
/// Longer pieces are not sent byte by byte.
const DRIPPED: usize = 300;

/// The end of a connection after the bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
    /// Nothing more comes.
    Held,
}

/// A server, and the result of asking it.
struct Row {
    name: &'static str,
    method: &'static str,
    answer: Vec<u8>,
    end: End,
    most: usize,
    limit: Nanos,
    expected: Result<(u16, Vec<u8>), AskError>,
}

fn row(
    name: &'static str,
    answer: impl Into<Vec<u8>>,
    end: End,
    expected: Result<(u16, Vec<u8>), AskError>,
) -> Row {
    let limit = if expected == Err(AskError::Late) { SHORT } else { LONG };
    Row { name, method: "GET", answer: answer.into(), end, most: MOST, limit, expected }
}

fn of_length(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn hello(status: u16) -> Result<(u16, Vec<u8>), AskError> {
    Ok((status, b"hello".to_vec()))
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\nhello";

fn rows() -> Vec<Row> {
    use End::{Closed, Held, Reset};
    let ok = of_length("200 OK", b"hello");
    let redirect = "HTTP/1.1 302 Found\r\nlocation: /there\r\ncontent-length: 5\r\n\r\nhello";
    let interim = [b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(), &ok].concat();
    let long = vec![b'x'; MOST];
    let longer = vec![b'x'; MOST + 1];
    let too_large = |most| Err(AskError::TooLarge(most));
    let not_http = |error| Err(AskError::NotHttp(error));
    let two = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!";
    let head_only = || "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
    let fields = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(70_000));
    let broken = Err(AskError::Broken(SystemError { errno: 104 }));
    // More than the reader of responses keeps at once.
    let huge = vec![b'z'; 17 << 20];
    vec![
        row("of a known length", ok.clone(), Held, hello(200)),
        row("of a known length, and closed", ok.clone(), Closed, hello(200)),
        row("chunked", CHUNKED, Held, hello(200)),
        row("until the end", UNTIL_CLOSE, Closed, hello(200)),
        row("without a body", "HTTP/1.1 204 No Content\r\n\r\n", Held, Ok((204, Vec::new()))),
        row("not modified", "HTTP/1.1 304 Not Modified\r\n\r\n", Held, Ok((304, Vec::new()))),
        row("after an interim response", interim, Held, hello(200)),
        row("a redirect is not followed", redirect, Held, hello(302)),
        row("a failure", of_length("503 Busy", b"hello"), Held, hello(503)),
        row("a failure with a long body", of_length("500 No", &long), Held, Ok((500, long.clone()))),
        row("of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", Closed, hello(200)),
        row("another follows that nobody asked for", [&*ok, &*ok].concat(), Held, hello(200)),
        Row { method: "HEAD", ..row("to HEAD", head_only(), Held, Ok((200, Vec::new()))) },
        row("as large as may be", of_length("200 OK", &long), Held, Ok((200, long))),
        row("larger", of_length("200 OK", &longer), Held, too_large(MOST)),
        Row { most: 4, ..row("chunked, larger", CHUNKED, Held, too_large(4)) },
        Row { most: 4, ..row("until the end, larger", UNTIL_CLOSE, Held, too_large(4)) },
        Row { most: 32 << 20, ..row("huge", of_length("200 OK", &huge), Held, Ok((200, huge))) },
        row("none", "", Closed, Err(AskError::Closed)),
        row("only an interim one", "HTTP/1.1 100 Continue\r\n\r\n", Closed, Err(AskError::Closed)),
        row("cut in its head", "HTTP/1.1 200 OK\r\ncontent-le", Closed, Err(AskError::Closed)),
        row("cut before its body", head_only(), Closed, Err(AskError::Closed)),
        row("cut in its body", &ok[..ok.len() - 1], Closed, Err(AskError::Closed)),
        row("cut in a chunk", &CHUNKED[..CHUNKED.len() - 9], Closed, Err(AskError::Closed)),
        row("cut before the last chunk", &CHUNKED[..CHUNKED.len() - 5], Closed, Err(AskError::Closed)),
        row("a reset", "", Reset, broken),
        row("another protocol", "220 mail.test ESMTP\r\n\r\n", Held, not_http(ProtocolError::NotHttp)),
        row("a head without an end", fields, Held, not_http(ProtocolError::HeadTooLarge)),
        row("two lengths", two, Held, not_http(ProtocolError::ConflictingLength)),
        row("late", "", Held, Err(AskError::Late)),
        row("late in its head", "HTTP/1.1 200 OK\r\n", Held, Err(AskError::Late)),
        row("late in its body", &ok[..ok.len() - 1], Held, Err(AskError::Late)),
        row("late with its end", UNTIL_CLOSE, Held, Err(AskError::Late)),
    ]
}

/// A server with these acts on each connection.
fn server(acts: Vec<Act>, handshake: Option<Handshake>) -> Server {
    let case = Case { name: String::new(), acts, handshake, ends: Vec::new(), args: "" };
    let suite = Suite {
        name: "",
        speaks: Speaks::Http1,
        command: |_| String::new(),
        good_connections: 0,
        good: Vec::new(),
        cases: Vec::new(),
    };
    Server::start(&suite, &case).expect("loopback")
}

/// The ways to cut an answer.
fn cuts(answer: &[u8]) -> Vec<Vec<Act>> {
    let (front, back) = answer.split_at(answer.len() / 2);
    let mut cuts =
        vec![vec![Act::Send(answer.to_vec())], vec![Act::Send(front.to_vec()), Act::Send(back.to_vec())]];
    if answer.len() <= DRIPPED {
        cuts.push(vec![Act::Drip(answer.to_vec(), Duration::ZERO)]);
    }
    cuts
}

/// A client of a server, by TCP or TLS.
fn client(server: &Server, is_tls: bool, most: usize) -> Client {
    let address = server.address();
    if !is_tls {
        return Client::plain(Origin::from(address), most);
    }
    let options = ClientOptions { ca_pem: vec![authority_pem().into()], ..ClientOptions::default() };
    let tls = ClientConfig::new(&options).expect("a good authority");
    let (authority, host) = (address.to_string(), address.ip().to_string());
    Client::with_tls(Origin::new(true, authority, host, address.port()), most, tls)
}

fn told(asked: Result<Answer, AskError>) -> Result<(u16, Vec<u8>), AskError> {
    asked.map(|answer| (answer.status, answer.body))
}

#[test]
fn an_answer_is_whole_and_bounded_however_it_comes_or_an_error_says_why_there_is_none() {
    let rows = rows();
    // Many of them wait for something that does not come.
    std::thread::scope(|scope| {
        for row in &rows {
            scope.spawn(|| try_out(row));
        }
    });
}

/// Asks the server of a row in each way.
fn try_out(Row { name, method, answer, end, most, limit, expected }: &Row) {
    for (cut, pieces) in cuts(answer).into_iter().enumerate() {
        for is_tls in [false, true] {
            let ended = match end {
                End::Closed if is_tls => Act::Notify,
                End::Closed => Act::Close,
                End::Reset => Act::Reset,
                End::Held => Act::Hold,
            };
            let acts = [vec![Act::Await], pieces.clone(), vec![ended]].concat();
            let server = server(acts, is_tls.then(Handshake::default));
            let (request, client) = (Request::new(method, "/a?b"), client(&server, is_tls, *most));
            let once = told(client.ask(&request, Deadline::within(*limit)));
            let kept = told(client.keeping().ask(&request, Deadline::within(*limit)));
            for found in [once, kept] {
                let is_expected = found == *expected;
                let shown = found.map(|(status, body)| (status, body.len()));
                assert!(is_expected, "{name}, cut {cut}, TLS: {is_tls}: {shown:?}");
            }
        }
    }
}

#[test]
fn fields_are_found_in_any_case() {
    let answer = "HTTP/1.1 200 OK\r\nX-A:  1 \r\nx-a: 2\r\ncontent-length: 0\r\n\r\n";
    let server = server(vec![Act::Await, Act::Send(answer.into()), Act::Hold], None);
    let asked = client(&server, false, MOST).ask(&Request::new("GET", "/"), Deadline::within(LONG));
    let answer = asked.expect("an answer");
    assert_eq!((answer.field("x-A"), answer.field("x-b")), (Some("1"), None));
}

#[test]
fn a_connection_is_kept_as_long_as_the_server_keeps_it() {
    let last = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb";
    for (name, second) in [("said", last.into()), ("done", of_length("200 OK", b"b"))] {
        let first = Act::Send(of_length("200 OK", b"a"));
        let acts = vec![Act::Await, first, Act::Await, Act::Send(second), Act::Close];
        for is_tls in [false, true] {
            let server = server(acts.clone(), is_tls.then(Handshake::default));
            let mut client = client(&server, is_tls, MOST).keeping();
            let mut ask = || client.ask(&Request::new("GET", "/"), Deadline::within(LONG));
            for wanted in [b"a", b"b", b"a", b"b"] {
                let mut asked = ask();
                // The end may come after the next request was sent.
                if name == "done" && wanted == b"a" && asked.is_err() {
                    asked = ask();
                }
                let found = asked.map(|answer| answer.body);
                assert_eq!(found.as_deref(), Ok(&wanted[..]), "{name}, TLS: {is_tls}");
            }
        }
    }
}

#[test]
fn a_server_that_is_not_there_or_not_trusted_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let get = Request::new("GET", "/");
    let error = Client::plain(Origin::from(address), MOST).ask(&get, Deadline::within(LONG)).unwrap_err();
    assert_eq!(error, AskError::NotConnected(address, SystemError { errno: 111 }));
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    let message = error.about("the receiver");
    assert!(message.starts_with(&format!("cannot connect to {address}: Connection refused")), "{message}");

    let name = "nothing.invalid";
    let origin = Origin::new(false, name.to_owned(), name.to_owned(), 80);
    let error = Client::plain(origin, MOST).ask(&get, Deadline::within(SHORT)).unwrap_err();
    assert!(matches!(error, AskError::NoAddress(_) | AskError::NotReached), "{error}");

    let server = server(vec![Act::Hold], Some(Handshake::default()));
    let address = server.address();
    let origin = Origin::new(true, address.to_string(), address.ip().to_string(), address.port());
    // The authorities of the system know nothing of that of the tests.
    let client = Client::new(origin, MOST).expect("authorities");
    let error = client.ask(&get, Deadline::within(LONG)).unwrap_err();
    assert!(matches!(error, AskError::Tls(_)), "{error:?}");
}

#[test]
fn a_stop_ends_a_wait_after_its_grace() {
    let server = server(vec![Act::Await, Act::Hold], None);
    let stop = AtomicBool::new(true);
    let deadline = Deadline::within(LONG * 100).or_after(&stop, SHORT);
    let error = client(&server, false, MOST).ask(&Request::new("GET", "/"), deadline).unwrap_err();
    assert_eq!(error.about("the receiver"), "the receiver gave no answer in time");
}

#[test]
fn a_part_of_a_request_cannot_become_another() {
    let server = server(vec![Act::Await, Act::Send(of_length("200 OK", b"")), Act::Hold], None);
    let client = client(&server, false, MOST);
    let get = |target| Request::new("GET", target);
    for (request, part) in [
        (get("/a b"), "/a b"),
        (get("/a\r\nx: y"), "/a\r\nx: y"),
        (get(""), ""),
        (Request::new("GET /x HTTP/1.1\r\n\r\nGET", "/"), "GET /x HTTP/1.1\r\n\r\nGET"),
        (get("/").with_field("a b", "c"), "a b"),
        (get("/").with_field("a", "b\nc: d"), "b\nc: d"),
        (get("/").with_body("text/plain\r\nx: y", b""), "text/plain\r\nx: y"),
    ] {
        let error = client.ask(&request, Deadline::within(LONG)).unwrap_err();
        assert_eq!(error, AskError::Unwritable(part.to_owned()));
    }
    let fine = get("/ä?b=%0d").with_field("a", "b c").with_json("{\"a\": \"\\r\\n\"}");
    assert!(client.ask(&fine, Deadline::within(LONG)).is_ok());
}
