//! The small server of ports beside the load: requests of people, scripts, web pages and others, in one piece
//! and in many, and the bounds for its clients.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_http::serve::{Access, Reply, Request, ServeOptions, Server, serve};
use plimsoll_http::{Client, Deadline, Origin};
use plimsoll_system::clock;

const LONG: Nanos = Nanos::from_secs(30);

fn start(access: Access, answer: impl Fn(&Request) -> Reply + Send + 'static) -> (Server, SocketAddr) {
    let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let options = ServeOptions { listen, access, name: "test" };
    let server = serve(options, Box::new(answer)).expect("it starts");
    let Endpoint::Tcp(address) = *server.endpoint() else { panic!("it listens on TCP") };
    (server, address)
}

/// A server whose replies have this many bytes.
fn start_with(bytes: usize) -> (Server, SocketAddr) {
    start(Access::Anyone, move |_| Reply::text(200, "x".repeat(bytes)))
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("it is open");
    stream
}

/// The next reply: its status, its body, and whether the connection stays.
fn reply(stream: &mut TcpStream, is_head: bool) -> io::Result<(u16, String, bool)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text").to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; if is_head { 0 } else { length }];
    stream.read_exact(&mut body)?;
    let status = head[9..12].parse().expect("a status");
    let body = String::from_utf8(body).expect("a body is text");
    Ok((status, body, !head.contains("\r\nconnection: close\r\n")))
}

/// A request, and the status of its reply where anyone may ask, programs of this machine, programs of this
/// machine that only read, and bearers of a token.
type Row = (&'static str, &'static str, [u16; 4]);

const ROWS: &[Row] = &[
    ("a question", "GET /a?b HTTP/1.1\r\nhost: localhost\r\n\r\n", [200, 200, 200, 401]),
    ("of a head", "HEAD /a HTTP/1.1\r\nhost: localhost\r\n\r\n", [200, 200, 200, 401]),
    ("after an empty line", "\r\nGET / HTTP/1.1\r\nhost: [::1]:8\r\n\r\n", [200, 200, 200, 401]),
    ("without a host", "GET / HTTP/1.1\r\n\r\n", [200, 200, 200, 401]),
    ("an order", "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n5k", [200, 403, 200, 401]),
    (
        "an order that no page sends",
        "POST / HTTP/1.1\r\nx-plimsoll-control: 1\r\ncontent-length: 2\r\n\r\n5k",
        [200, 200, 200, 401],
    ),
    (
        "with the token",
        "POST / HTTP/1.1\r\nauthorization: Bearer secret\r\ncontent-length: 2\r\n\r\n5k",
        [200, 403, 200, 200],
    ),
    ("with another", "GET / HTTP/1.1\r\nauthorization: Bearer guess\r\n\r\n", [200, 200, 200, 401]),
    ("by a name", "GET / HTTP/1.1\r\nhost: evil.test\r\n\r\n", [200, 403, 403, 401]),
    ("of a page", "GET / HTTP/1.1\r\norigin: http://evil.test\r\n\r\n", [200, 403, 403, 401]),
    ("of an old client", "GET / HTTP/1.0\r\n\r\n", [200, 200, 200, 401]),
    ("a last one", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n", [200, 200, 200, 401]),
    ("two hosts", "GET / HTTP/1.1\r\nhost: a\r\nhost: localhost\r\n\r\n", [400; 4]),
    ("chunked", "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n5\r\n0\r\n\r\n", [411; 4]),
    ("another protocol", "SSH-2.0-x y z\r\n\r\n", [400; 4]),
    ("of HTTP/2", "PRI * HTTP/2.0\r\n\r\n", [400; 4]),
];

/// Rows whose connection ends after the reply, whoever asks.
const LAST: &[&str] =
    &["of an old client", "a last one", "two hosts", "chunked", "another protocol", "of HTTP/2"];

#[test]
fn each_request_has_its_reply_however_it_comes_and_whoever_asks() {
    let accesses = [Access::Anyone, Access::Local, Access::LocalReaders, Access::Token("secret".to_owned())];
    for (number, access) in accesses.into_iter().enumerate() {
        let (_server, address) = start(access.clone(), |request| {
            Reply::text(
                200,
                format!("{} {} {} {}", request.method, request.path, request.query, request.body),
            )
        });
        for (name, request, statuses) in ROWS {
            let (front, back) = request.as_bytes().split_at(request.len() / 2);
            let bytes: Vec<&[u8]> = request.as_bytes().chunks(1).collect();
            for pieces in [vec![request.as_bytes()], vec![front, back], bytes] {
                let mut stream = connect(address);
                // A reply may come before the end of a request that is none.
                let written = pieces.iter().try_for_each(|piece| stream.write_all(piece));
                assert!(written.is_ok() || statuses[number] == 400, "{name}: {written:?}");
                let is_head = request.starts_with("HEAD");
                let (status, body, stays) = reply(&mut stream, is_head).expect("a reply");
                let case = format!("{name}, {access:?}, {} pieces: {body}", pieces.len());
                assert_eq!((status, stays), (statuses[number], !LAST.contains(name)), "{case}");
                assert!(status == 200 || is_head || body.starts_with("error: "), "{case}");
                if *name == "a question" && status == 200 {
                    assert_eq!(body, "GET /a b \n");
                }
                if stays {
                    stream.write_all(request.as_bytes()).expect("it stays");
                    assert_eq!(reply(&mut stream, is_head).expect("another").0, status, "{case}");
                } else {
                    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "{case}");
                }
            }
        }
    }
}

#[test]
fn the_client_beside_the_load_is_understood() {
    let (_server, address) = start(Access::Local, |request| {
        Reply::json(200, request.body.clone())
            .with_field("x-path", &format!("{}?{}", request.path, request.query))
    });
    let client = Client::plain(Origin::from(address), 1_000);
    let request = plimsoll_http::Request::new("POST", "/a?b").with_field("x-plimsoll-control", "1");
    let answer = client.ask(&request.with_json("{\"a\":1}"), Deadline::within(LONG)).expect("an answer");
    assert_eq!(
        (answer.status, &*answer.body, answer.field("x-path")),
        (200, &b"{\"a\":1}"[..], Some("/a?b"))
    );
}

#[test]
fn connections_heads_and_bodies_are_bounded() {
    let (_server, address) = start_with(5);
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(address)).collect();
    let mut ask = |number: usize, request: &[u8]| {
        streams[number].write_all(request).expect("it is open");
        reply(&mut streams[number], false).expect("a reply").0
    };
    for number in 0..8 {
        assert_eq!(ask(number, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"), 200);
    }
    let mut ninth = connect(address);
    assert_eq!(reply(&mut ninth, false).expect("a reply").0, 503);
    assert_eq!(ninth.read(&mut [0]).unwrap_or(0), 0);
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(8 << 10));
    assert_eq!(ask(0, long.as_bytes()), 400);
    let head = |length: usize| format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    let of = |length: usize, sent: usize| format!("{}{}", head(length), "z".repeat(sent));
    assert_eq!(ask(1, of(2 << 20, (1 << 20) + (8 << 10)).as_bytes()), 413);
    // Values of a setup may be as long as this.
    assert_eq!(ask(2, of(600 << 10, 600 << 10).as_bytes()), 200);
}

fn pause(milliseconds: u64) {
    clock::sleep_until(clock::monotonic() + Nanos::from_millis(milliseconds));
}

/// A connection whose last reply nobody read was kept for ever, outside the places that are counted.
#[test]
fn a_last_reply_that_nobody_reads_is_not_kept() {
    let (_server, address) = start_with(8 << 20);
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let streams: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(request).expect("it is open");
            stream
        })
        .collect();
    let status = || {
        let mut stream = connect(address);
        stream.write_all(request).expect("it is open");
        let mut head = [0; 12];
        stream.read_exact(&mut head).map(|()| head.to_vec())
    };
    let comes = |line: &[u8]| {
        (0..300).any(|_| {
            pause(100);
            status().is_ok_and(|head| head == line)
        })
    };
    assert!(comes(b"HTTP/1.1 503"), "they have no place");
    assert!(comes(b"HTTP/1.1 200"), "they are kept");
    drop(streams);
}

/// Unread replies were kept for as long as requests came.
#[test]
fn who_does_not_read_is_cut_off() {
    let (_server, address) = start_with(1 << 20);
    let mut stream = connect(address);
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut sent = 0;
    // Requests that are received together are refused: the pause is for them to come one by one. Either way
    // the connection ends, in ten seconds at most.
    while sent < 4_000 && stream.write_all(request).is_ok() {
        sent += 1;
        pause(5);
    }
    assert!(sent < 4_000, "nothing ends it");
    // The replies before the end are limited to the buffers of the server and of the kernel.
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    assert!(read.len() < 64 << 20, "{}", read.len());
}
