//! The ingest server on real sockets.

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_targets::ingest::{IngestOptions, IngestServer, Lie, LieKind};
use plimsoll_targets::{Delay, StartError};
use plimsoll_testkit::on_every_backend;

use crate::sink::client::{Client, End, Response};

on_every_backend! {
    what_many_connections_write_is_counted,
    a_large_payload_is_taken_and_a_larger_one_ends_the_connection,
    replies_wait_and_connections_are_reset_on_purpose,
    queries_that_last_hold_up_nobody_and_end_with_the_server,
    what_comes_behind_a_query_waits_for_it,
    unfinished_payloads_of_all_connections_share_a_bound,
}

fn options() -> IngestOptions {
    IngestOptions {
        flush_delay: Nanos::ZERO,
        ..IngestOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()))
    }
}

fn start(options: IngestOptions, backend: KernelBackend) -> IngestServer {
    IngestServer::start(options, backend).expect("the server starts")
}

/// A columnar payload of this many rows of one column.
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

fn what_many_connections_write_is_counted(backend: KernelBackend) {
    let server = start(IngestOptions { threads: 2, ..options() }, backend);
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

fn a_large_payload_is_taken_and_a_larger_one_ends_the_connection(backend: KernelBackend) {
    let server = start(IngestOptions { max_payload: 2 << 20, ..options() }, backend);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    client.send(index, &write(&batch(200_000)));
    assert_eq!(client.response(index).status, 204);
    client.send(index, &write(&batch(300_000)));
    assert_eq!(client.end(index), End::Reset);
    let report = server.stop();
    assert_eq!((report.counts.violations, report.acknowledged[0].rows), (1, 200_000));
}

fn replies_wait_and_connections_are_reset_on_purpose(backend: KernelBackend) {
    let delay = Delay::Constant(Nanos::from_millis(30));
    let server = start(IngestOptions { delay, ..options() }, backend);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    let sent = client.now();
    client.send(index, &[write(&batch(1)), request("GET /ready", "", b"")].concat());
    assert_eq!(client.response(index).status, 204);
    assert!(client.now().since(sent) >= Nanos::from_millis(30), "it came too early");
    assert_eq!(client.response(index).status, 200, "what comes behind it waits for it");
    assert_eq!(server.stop().acknowledged[0].rows, 1);

    let lie = Some(Lie { kind: LieKind::Unacknowledged, share: 1.0 });
    let server = start(IngestOptions { lie, ..options() }, backend);
    let index = client.connect(server.endpoint());
    client.send(index, &write(&batch(3)));
    assert_eq!(client.end(index), End::Reset);
    let of = server.stop().acknowledged.remove(0);
    assert_eq!((of.rows, of.visible, of.unacknowledged), (0, 3, 3));
}

/// A query that ends when it is made to.
const ENDLESS: &str =
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT COUNT(*) FROM t";

fn asked(sql: &str) -> Vec<u8> {
    let body = serde_json::json!({"sql": sql}).to_string();
    request("POST /api/v1/query", "content-type: application/json\r\n", body.as_bytes())
}

fn queries_that_last_hold_up_nobody_and_end_with_the_server(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    // As many as run and wait. The answer to the request before each of them shows that it was taken up.
    for _ in 0..4 + 64 {
        let index = client.connect(server.endpoint());
        client.send(index, &[request("GET /ready", "", b""), asked(ENDLESS)].concat());
        assert_eq!(client.response(index).status, 200);
    }
    let index = client.connect(server.endpoint());
    client.send(index, &[asked(ENDLESS), write(&batch(5)), request("GET /health", "", b"")].concat());
    let refused = client.response(index);
    let told = String::from_utf8(refused.body).expect("it is text");
    assert!(refused.status == 503 && refused.head.contains("retry-after: 1"), "{} {told}", refused.head);
    assert!(
        told.contains("this target runs 4 queries at once, and 64 wait already: ask again later"),
        "{told}"
    );
    assert_eq!(client.response(index).status, 204);
    assert_eq!(client.response(index).status, 200);
    // A query has 30 s: longer than this client waits for anything.
    let began = client.now();
    let report = server.stop();
    assert!(client.now().since(began) < Nanos::from_secs(10), "it waited for its queries");
    assert_eq!((report.counts.queries, report.counts.queries_refused), (69, 1));
    assert_eq!((report.counts.writes, report.acknowledged[0].rows), (1, 5));
}

fn what_comes_behind_a_query_waits_for_it(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    let count = asked("SELECT COUNT(*) AS n, 1 FROM cpu");
    // The second query sees the write behind the first, and the first does not. All come in small pieces.
    let all = [write(&batch(1)), count.clone(), write(&batch(2)), count, request("GET /ready", "", b"")];
    for piece in all.concat().chunks(50) {
        client.send(index, piece);
    }
    let mut expect = |status: u16, text: &str| {
        let Response { status: found, body, .. } = client.response(index);
        let told = String::from_utf8(body).expect("it is text");
        assert!(found == status && told.contains(text), "{found} {told}");
    };
    expect(204, "");
    expect(200, r#""data":[[1,1]]"#);
    expect(204, "");
    expect(200, r#""data":[[3,1]]"#);
    expect(200, "ready");

    // A client that has sent everything still gets the result.
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    std::io::Write::write_all(&mut stream, &asked("SELECT 6 * 7")).expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut told = String::new();
    std::io::Read::read_to_string(&mut stream, &mut told).expect("it is text");
    assert!(told.contains(r#""data":[[42]]"#), "{told}");

    // The bytes that wait while a query runs are bounded, too.
    let index = client.connect(server.endpoint());
    client.send(index, &[asked(ENDLESS), vec![b'x'; 17 << 20]].concat());
    assert_eq!(client.end(index), End::Reset);
    let report = server.stop();
    assert_eq!((report.counts.queries, report.counts.violations), (4, 1));
}

fn unfinished_payloads_of_all_connections_share_a_bound(backend: KernelBackend) {
    let server = start(IngestOptions { max_memory: 1 << 20, max_payload: 4 << 20, ..options() }, backend);
    let mut client = Client::new();
    // Two payloads of the longest kind have room, and 3 MB of each is 9.
    let whole = write(&batch(333_333));
    let connections: Vec<usize> = (0..3).map(|_| client.connect(server.endpoint())).collect();
    for index in &connections {
        client.send(*index, &whole[..whole.len() - 1]);
    }
    let ended = client
        .wait_for("an end", |client| connections.iter().copied().find(|i| client.try_end(*i).is_some()));
    let refused = client.response(ended);
    let told = String::from_utf8(refused.body).expect("it is text");
    assert!(
        refused.status == 503 && told.contains("unfinished requests of all connections have 8388608 bytes"),
        "{told}"
    );
    // The others may go on, and there is room again.
    let again = client.connect(server.endpoint());
    client.send(again, &write(&batch(1000)));
    assert_eq!(client.response(again).status, 204);
    for index in connections.into_iter().filter(|index| *index != ended) {
        client.send(index, &whole[whole.len() - 1..]);
        assert_eq!(client.response(index).status, 204);
    }
    let report = server.stop();
    assert_eq!((report.counts.over_memory, report.counts.writes), (1, 3));
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let server = start(options(), KernelBackend::Epoll(BackendOptions::default()));
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    // All of them come at once: nothing further is read while they are answered.
    let queries = asked("SELECT printf('%.*c', 15000000, 'x')").repeat(40);
    std::io::Write::write_all(&mut stream, &queries).expect("it reads");
    let clock = Client::new();
    let began = clock.now();
    // The error is reported once, even if there are bytes to read.
    while stream.take_error().expect("it is a socket").is_none() {
        assert!(clock.now().since(began) < Nanos::from_secs(60), "nothing ends it");
        std::thread::yield_now();
    }
    let report = server.stop();
    assert_eq!(report.counts.violations, 1, "{report:?}");
}

#[test]
fn what_cannot_be_started_is_explained() {
    let backend = KernelBackend::Epoll(BackendOptions::default());
    let taken = start(options(), backend);
    let again = IngestOptions { listen: taken.endpoint().clone(), ..options() };
    let expected =
        format!("the server cannot listen on {}: Address already in use (os error 98)", taken.endpoint());
    assert_eq!(IngestServer::start(again, backend).unwrap_err().to_string(), expected);
    let none = IngestServer::start(IngestOptions { threads: 0, ..options() }, backend);
    assert!(matches!(none, Err(StartError::Options(_))));
}
