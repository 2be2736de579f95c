//! The small server of a run's control port: the bounds for its clients.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, OpenEpoll};
use plimsoll_system::clock;
use plimsoll_targets::{Access, ControlOptions, ControlReply, ControlServer};

use crate::sink::client::{Client, End};

/// A server whose replies have this many bytes.
fn start(bytes: usize) -> ControlServer {
    let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let options = ControlOptions { listen, access: Access::Anyone, name: "test" };
    let open = OpenEpoll(BackendOptions::default());
    let answer = Box::new(move |_: &_| ControlReply::text(200, "x".repeat(bytes)));
    ControlServer::start(options, open, answer).expect("it starts")
}

fn pause(milliseconds: u64) {
    clock::sleep_until(clock::monotonic() + Nanos::from_millis(milliseconds));
}

#[test]
fn connections_heads_and_bodies_are_bounded() {
    let server = start(5);
    let mut client = Client::new();
    let indices: Vec<usize> = (0..8).map(|_| client.connect(server.endpoint())).collect();
    for index in &indices {
        client.send(*index, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.response(*index).status, 200);
    }
    let ninth = client.connect(server.endpoint());
    assert_eq!((client.response(ninth).status, client.end(ninth)), (503, End::Closed));
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(8 << 10));
    client.send(indices[0], long.as_bytes());
    assert_eq!(client.response(indices[0]).status, 400);
    let head = |length: usize| format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    client.send(indices[1], format!("{}{}", head(2 << 20), "z".repeat((1 << 20) + (8 << 10))).as_bytes());
    assert_eq!(client.response(indices[1]).status, 413);
    // Values of a setup may be as long as this.
    client.send(indices[2], format!("{}{}", head(600 << 10), "z".repeat(600 << 10)).as_bytes());
    assert_eq!(client.response(indices[2]).status, 200);
}

/// A connection whose last reply nobody read was kept for ever, outside the places that are counted.
#[test]
fn a_last_reply_that_nobody_reads_is_not_kept() {
    let server = start(8 << 20);
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let streams: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(request).expect("it is open");
            stream
        })
        .collect();
    let status = || {
        let mut stream = TcpStream::connect(address).expect("it listens");
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
    let server = start(1 << 20);
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("it is open");
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
