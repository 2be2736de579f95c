//! The ingest server on real sockets.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, Open, OpenEpoll};
use plimsoll_targets::ingest::{IngestOptions, IngestServer, Lie, LieKind};
use plimsoll_targets::{Delay, StartError};

use crate::client::{Client, End, Response};

on_every_backend! {
    what_many_connections_write_is_counted,
    a_large_payload_is_taken_and_a_larger_one_ends_the_connection,
    replies_wait_and_connections_are_reset_on_purpose,
}

fn options() -> IngestOptions {
    IngestOptions {
        flush_delay: Nanos::ZERO,
        ..IngestOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()))
    }
}

fn start<O: Open + 'static>(options: IngestOptions, open: &Arc<O>) -> IngestServer {
    IngestServer::start(options, Arc::clone(open)).expect("the server starts")
}

/// A columnar payload of so many rows of one column.
fn batch(rows: u32) -> Vec<u8> {
    let column = rmpv::Value::Array(vec![rmpv::Value::F64(1.5); rows as usize]);
    let columns = rmpv::Value::Map(vec![("v".into(), column)]);
    let payload = rmpv::Value::Map(vec![("m".into(), "cpu".into()), ("columns".into(), columns)]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &payload).expect("memory takes it");
    bytes
}

fn request(line: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{line} HTTP/1.1\r\n{fields}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn write(body: &[u8]) -> Vec<u8> {
    request("POST /api/v1/write/msgpack", "", body)
}

fn query(client: &mut Client, index: usize, sql: &str) -> String {
    let body = serde_json::json!({"sql": sql}).to_string();
    let fields = "content-type: application/json\r\n";
    client.send(index, &request("POST /api/v1/query", fields, body.as_bytes()));
    let Response { status, body, .. } = client.response(index);
    let told = String::from_utf8(body).expect("it is text");
    assert_eq!(status, 200, "{told}");
    told
}

fn what_many_connections_write_is_counted<O: Open + 'static>(open: &Arc<O>) {
    let server = start(IngestOptions { threads: 2, ..options() }, open);
    let mut client = Client::new();
    let connections: Vec<usize> = (0..8).map(|_| client.connect(server.endpoint())).collect();
    // Several requests are on their way on each connection, and they come in pieces of any size.
    let stream = write(&batch(1000)).repeat(5);
    let (first, second) = stream.split_at(stream.len() / 3);
    for piece in [first, second] {
        for index in &connections {
            client.send(*index, piece);
        }
    }
    for index in &connections {
        for _ in 0..5 {
            assert_eq!(client.response(*index).status, 204);
        }
    }
    let told = query(&mut client, connections[0], "SELECT COUNT(*) AS n, SUM(v) AS s FROM cpu");
    assert!(told.contains(r#""data":[[40000,60000]]"#), "{told}");
    let report = server.stop();
    assert_eq!((report.counts.writes, report.counts.connections, report.counts.queries), (40, 8, 1));
    let [of] = &report.acknowledged[..] else { panic!("{report:?}") };
    assert_eq!((of.rows, of.visible, of.batches), (40_000, 40_000, 40));
}

fn a_large_payload_is_taken_and_a_larger_one_ends_the_connection<O: Open + 'static>(open: &Arc<O>) {
    let server = start(IngestOptions { max_payload: 2 << 20, ..options() }, open);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    client.send(index, &write(&batch(200_000)));
    assert_eq!(client.response(index).status, 204);
    client.send(index, &write(&batch(300_000)));
    assert_eq!(client.end(index), End::Reset);
    let report = server.stop();
    assert_eq!((report.counts.violations, report.acknowledged[0].rows), (1, 200_000));
}

fn replies_wait_and_connections_are_reset_on_purpose<O: Open + 'static>(open: &Arc<O>) {
    let delay = Delay::Constant(Nanos::from_millis(30));
    let server = start(IngestOptions { delay, ..options() }, open);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    let sent = client.now();
    client.send(index, &[write(&batch(1)), request("GET /ready", "", b"")].concat());
    assert_eq!(client.response(index).status, 204);
    assert!(client.now().since(sent) >= Nanos::from_millis(30), "it came too early");
    assert_eq!(client.response(index).status, 200, "what comes behind it waits for it");
    assert_eq!(server.stop().acknowledged[0].rows, 1);

    let lie = Some(Lie { kind: LieKind::Unacknowledged, share: 1.0 });
    let server = start(IngestOptions { lie, ..options() }, open);
    let index = client.connect(server.endpoint());
    client.send(index, &write(&batch(3)));
    assert_eq!(client.end(index), End::Reset);
    let of = server.stop().acknowledged.remove(0);
    assert_eq!((of.rows, of.visible, of.unacknowledged), (0, 3, 3));
}

#[test]
fn what_cannot_be_started_is_explained() {
    let open = Arc::new(OpenEpoll(BackendOptions::default()));
    let taken = start(options(), &open);
    let again = IngestOptions { listen: taken.endpoint().clone(), ..options() };
    let expected =
        format!("the server cannot listen on {}: Address already in use (os error 98)", taken.endpoint());
    assert_eq!(IngestServer::start(again, Arc::clone(&open)).unwrap_err().to_string(), expected);
    let none = IngestServer::start(IngestOptions { threads: 0, ..options() }, open);
    assert!(matches!(none, Err(StartError::Options(_))));
}
