//! Brokers that send more than there can be to say.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};

use plimsoll_core::Nanos;
use plimsoll_fleet::{Fabric as _, LinkError, LinkEvent, NatsAddress, NatsEvent, NatsLink};

/// Longer than any test takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_secs(60);
/// Greeting of a broker.
const INFO: &str =
    r#"INFO {"server_id":"x","version":"2.10.0","host":"x","port":1,"max_payload":1048576,"proto":1}"#;

/// A broker for one connection, which greets if `greets`, sends `begin`, and then `again` for as long as it
/// may.
fn broker(greets: bool, begin: &'static str, again: Vec<u8>) -> (NatsAddress, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("nats://127.0.0.1:{}", listener.local_addr().expect("it is bound").port());
    let serving = spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        if greets {
            greet(&mut stream);
        }
        let mut sent = stream.write(begin.as_bytes()).expect("it reads");
        while stream.write_all(&again).is_ok() {
            sent += again.len();
        }
        sent
    });
    (NatsAddress { url, credentials: None, authorities: None, name: "test".to_owned() }, serving)
}

/// Says what a broker says, up to the first subscription.
fn greet(stream: &mut TcpStream) {
    stream.write_all(format!("{INFO}\r\n").as_bytes()).expect("it reads");
    let reader = BufReader::new(stream.try_clone().expect("it is open"));
    for line in reader.lines().map_while(Result::ok) {
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n").expect("it reads");
        }
        if line.starts_with("SUB") {
            return;
        }
    }
}

/// Waits for the end of a link, past the messages that it delivers.
fn flooded(link: &NatsLink) -> u64 {
    loop {
        match link.receive(PATIENCE) {
            Some(NatsEvent::Link(LinkEvent::Flooded(bytes))) => return bytes,
            Some(NatsEvent::Delivery(_)) => {}
            other => assert!(matches!(other, Some(NatsEvent::Link(LinkEvent::Connected))), "{other:?}"),
        }
    }
}

/// Symptom: an agent grew by 410 MB in 5 s.
#[test]
fn a_line_without_an_end_ends_the_connection() {
    let (address, serving) = broker(false, "INFO ", vec![b'x'; 1 << 20]);
    let error = NatsLink::connect(address).expect_err("that is no broker");
    assert!(matches!(error, LinkError::Flooded { bytes, .. } if bytes > 64 << 20), "{error}");
    assert!(error.to_string().contains("sends more than a fleet does: "), "{error}");
    serving.join().expect("it ended with the connection");
}

/// Symptom: 283 MB of an announced message of 900 MB were kept.
#[test]
fn what_is_no_message_that_anybody_waits_for_ends_the_connection() {
    for (begin, again) in [
        ("MSG a 1 900000000\r\n", vec![b'x'; 1 << 20]),
        ("MSG a 1 ", vec![b'1'; 1 << 20]),
        ("", b"PING\r\n".repeat(100_000)),
        ("", b"MSG b 77 1000\r\n".iter().copied().chain([b'x'; 1000]).chain(*b"\r\n").collect()),
    ] {
        let (address, serving) = broker(true, begin, again);
        let mut link = NatsLink::connect(address).expect("it greets");
        link.subscribe("a");
        let bytes = flooded(&link);
        assert!(bytes > 64 << 20, "{bytes}");
        assert!(!link.is_connected());
        assert!(link.flooded(bytes).to_string().contains("64 MiB") || bytes >= 65 << 20);
        serving.join().expect("it ended with the connection");
    }
}

#[test]
fn messages_that_are_taken_are_no_flood() {
    // Twice as many bytes as there may be without a message.
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("nats://127.0.0.1:{}", listener.local_addr().expect("it is bound").port());
    let serving = spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        greet(&mut stream);
        let message = [b"MSG a 1 1000000\r\n".as_slice(), &[b'x'; 1_000_000], b"\r\n"].concat();
        (0..128).for_each(|_| stream.write_all(&message).expect("it reads"));
        stream
    });
    let address = NatsAddress { url, credentials: None, authorities: None, name: "test".to_owned() };
    let mut link = NatsLink::connect(address).expect("it greets");
    link.subscribe("a");
    let mut heard = 0;
    while heard < 128 {
        match link.receive(PATIENCE) {
            Some(NatsEvent::Delivery(delivery)) => heard += usize::from(delivery.payload.len() == 1_000_000),
            Some(NatsEvent::Link(LinkEvent::Connected)) => {}
            other => panic!("{other:?} after {heard} messages"),
        }
    }
    drop(serving.join().expect("it ends"));
    link.close();
}
