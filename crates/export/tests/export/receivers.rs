//! Receivers that take figures, and others: the reports about them, and an end that none of them holds up.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver as Channel, channel};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use plimsoll_core::Nanos;
use plimsoll_export::{PushReport, Pusher, Receiver, Totals, push};
use prost::Message as _;

use crate::fixture;

/// A request as it came: its head, and its body.
type Request = (String, Vec<u8>);

fn request(stream: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).expect("it sends");
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            assert!(read > 0, "it ended within its head");
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text").to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|text| text.parse().ok()).expect("it has a length");
        if bytes.len() >= end + 4 + length {
            return (head, bytes.split_off(end + 4));
        }
    }
}

/// A receiver that answers each request with these bytes, or stays silent if empty; its address, and its
/// requests.
fn receiver(reply: &'static [u8]) -> (String, Channel<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (send, requests) = channel();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            if send.send(request(&mut stream)).is_err() {
                return;
            }
            match reply {
                // The connection stays open, and no answer comes.
                b"" => silent.push(stream),
                reply => stream.write_all(reply).expect("it reads"),
            }
        }
    });
    (url, requests)
}

fn pusher(url: &str, totals: Totals) -> Pusher {
    let receiver = Receiver::below(url).expect("a URL");
    let receiver = receiver.with_headers(vec![("api-key".to_owned(), "secret".to_owned())]).expect("headers");
    let resource = vec![("service.name".to_owned(), "plimsoll".to_owned())];
    // Sent at the end alone: there is no need to wait.
    let totals = Arc::new(Mutex::new(totals));
    Pusher::start(receiver, resource, Nanos::from_secs(3_600), totals).expect("it starts")
}

fn pushed(url: &str) -> PushReport {
    pusher(url, fixture::totals()).finish()
}

fn failed(error: &str) -> PushReport {
    PushReport { sent: 0, failed: 1, last_error: Some(error.to_owned()) }
}

#[test]
fn what_is_sent_last_is_what_the_totals_are_then() {
    let (url, requests) = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let totals = Arc::new(Mutex::new(fixture::totals()));
    let receiver =
        Receiver::below(&url).expect("a URL").with_headers(vec![("Api-Key".to_owned(), "s".to_owned())]);
    let receiver = receiver.expect("headers");
    let pusher = Pusher::start(receiver, Vec::new(), Nanos::from_secs(3_600), Arc::clone(&totals));
    totals.lock().expect("nobody panicked").end(false);
    assert_eq!(pusher.expect("it starts").finish(), PushReport { sent: 1, failed: 0, last_error: None });
    let (head, body) = requests.recv().expect("it came");
    assert!(head.starts_with("post /v1/metrics http/1.1"), "{head}");
    for field in ["content-type: application/x-protobuf", "api-key: s", "host: 127.0.0.1:"] {
        assert!(head.contains(field), "{field}: {head}");
    }
    let request = ExportMetricsServiceRequest::decode(body.as_slice()).expect("it is such a request");
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.iter().any(|metric| metric.name == "plimsoll.valid"), "the end is told");
    assert!(metrics.iter().any(|metric| metric.name == "plimsoll.generator_cpu"), "what it cost is told");
}

#[test]
fn a_receiver_that_refuses_is_told_with_its_status() {
    let (url, _requests) = receiver(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(pushed(&url), failed("the receiver answered 500"));
}

#[test]
fn a_receiver_that_takes_a_part_is_told_with_its_reason() {
    let (url, _requests) =
        receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n\x0a\x06\x08\x03\x12\x02no");
    assert_eq!(pushed(&url), failed("the receiver rejected 3 points: no"));
}

#[test]
fn a_receiver_that_is_dead_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let report = pushed(&format!("http://{address}"));
    let error = report.last_error.expect("it failed");
    assert!(error.starts_with(&format!("cannot connect to {address}: Connection refused")), "{error}");
}

#[test]
fn a_receiver_that_never_answers_is_given_up() {
    let (url, requests) = receiver(b"");
    assert_eq!(pushed(&url), failed("the receiver gave no answer in time"));
    assert!(requests.recv().is_ok(), "the request came");
}

#[test]
fn a_receiver_that_speaks_something_else_or_hangs_up_is_told() {
    let (url, _requests) = receiver(b"220 mail.test ESMTP\r\n\r\n");
    let error = pushed(&url).last_error.expect("it failed");
    assert!(error.starts_with("the receiver speaks no HTTP"), "{error}");
    let (url, _requests) = receiver(b"HTTP/1.1 200 OK\r\ncontent-le");
    let error = pushed(&url).last_error.expect("it failed");
    assert_eq!(error, "the receiver closed the connection without a response");
}

#[test]
fn a_name_without_an_address_is_told_and_a_run_that_never_began_tells_nothing() {
    let report = pushed("http://no such.invalid".replace(' ', "-").as_str());
    let error = report.last_error.expect("it failed");
    assert!(error.contains("no-such.invalid"), "{error}");
    let (url, _requests) = receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(pusher(&url, fixture::nothing()).finish(), PushReport::default());
    assert!(push::LAST_WORDS.as_secs() <= 3);
}
