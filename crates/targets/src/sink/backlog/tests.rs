//! Clients that ask for more than they read, on a backend without a kernel.

use std::sync::Arc;

use plimsoll_core::{Nanos, Rate};
use plimsoll_driver::{
    Backend, Chunk, Close, ConnId, Endpoint, Event, Flush, ListenerId, SocketOptions, SystemError, Wait,
};
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{Client, ClientOptions, Payload, Submit};
use plimsoll_wire::tls::{ClientConfig, ClientOptions as TlsOptions, ServerConfig, Session};

use super::*;
use crate::server::draining::RECALL_AFTER;
use crate::sink::options::{Delay, SinkOptions, Truth};
use crate::sink::service::{Body, Reply, Service};
use crate::sink::setup::Setup;
use crate::sink::truth::TruthRow;
use crate::truth_log::Sheet;

const CONN: ConnId = ConnId::new(0, 1);
const BODY: usize = 4 << 20;
/// Upper bound of unsent bytes: the limit, the turn that crosses it, and the heads of frames and records.
const BOUND: usize = UNSENT_BYTES + TURN_PIECES * PIECE_BYTES + 8 * 1024;

/// One connection, and a kernel that takes as much as it is set to.
#[derive(Debug, Default)]
struct Kernel {
    time: Nanos,
    events: VecDeque<Event>,
    /// Bytes received and not read yet.
    came: Vec<u8>,
    outbox: Vec<u8>,
    /// Most bytes that were ever unsent.
    peak: usize,
    /// Bytes that the next flushes take, each.
    takes: usize,
    taken: Vec<u8>,
    closed: bool,
}

impl Backend for Kernel {
    fn name(&self) -> &'static str {
        "a test"
    }
    fn preemptions(&self) -> u64 {
        0
    }
    fn now(&self) -> Nanos {
        self.time
    }
    fn poll_until(&mut self, at: Nanos) -> Nanos {
        self.time = self.time.max(at);
        self.time
    }
    fn connect(&mut self, _: &Endpoint, _: &SocketOptions) -> Result<ConnId, SystemError> {
        Err(SystemError { errno: 1 })
    }
    fn listen(&mut self, on: &Endpoint, _: bool) -> Result<(ListenerId, Endpoint), SystemError> {
        Ok((ListenerId(0), on.clone()))
    }
    fn close_listener(&mut self, _: ListenerId) {}
    fn outbox(&mut self, _: ConnId) -> &mut Vec<u8> {
        &mut self.outbox
    }
    fn send_shared(&mut self, _: ConnId, body: Arc<[u8]>) {
        self.outbox.extend_from_slice(&body);
    }
    fn unsent(&self, _: ConnId) -> usize {
        self.outbox.len()
    }
    fn flush(&mut self) -> Flush {
        self.peak = self.peak.max(self.outbox.len());
        let count = self.takes.min(self.outbox.len());
        self.taken.extend(self.outbox.drain(..count));
        Flush { first: self.time, last: self.time, sends: 1 }
    }
    fn close(&mut self, _: ConnId, _: Close) {
        self.closed = true;
    }
    fn wait(&mut self, wait: Wait) -> Option<Nanos> {
        self.time = self.time.max(wait.until);
        None
    }
    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn bytes(&self, data: Chunk) -> &[u8] {
        &self.came[data.offset as usize..][..data.length as usize]
    }
}

fn worker(change: impl FnOnce(&mut SinkOptions)) -> Worker<Kernel> {
    let body: Arc<[u8]> = (0..BODY as u32).map(|i| (i % 251) as u8).collect();
    let mut options = SinkOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()));
    options.service = Service::Reply(Reply { body: Body::Fixed(body), ..Reply::default() });
    options.truth = Truth::Memory;
    change(&mut options);
    let setup = Arc::new(Setup::new(options));
    let mut kernel = Kernel::default();
    kernel.events.push_back(Event::Accepted { listener: ListenerId(0), conn: CONN, at: Nanos::ZERO });
    let sheet = Sheet::open(&Truth::Memory, 0, "").expect("memory is there");
    Worker::new(setup, kernel, ListenerId(0), sheet, Nanos::ZERO, 0)
}

impl Worker<Kernel> {
    fn hear(&mut self, bytes: &[u8]) {
        let kernel = &mut self.writer.backend;
        let data = Chunk { buffer: 0, offset: kernel.came.len() as u32, length: bytes.len() as u32 };
        kernel.came.extend_from_slice(bytes);
        if !bytes.is_empty() {
            kernel.events.push_back(Event::Received { conn: CONN, at: kernel.time, stamped: false, data });
        }
    }

    /// A pass at a later time; bytes that the kernel took meanwhile go before it.
    fn go_on(&mut self) -> Vec<u8> {
        self.writer.backend.time += RECALL_AFTER * 2;
        self.writer.backend.flush();
        self.pass();
        std::mem::take(&mut self.writer.backend.taken)
    }

    fn rows(&self) -> &[TruthRow] {
        self.sheet.rows()
    }
}

/// A client, its first bytes, and `count` requests.
fn client(options: &ClientOptions, count: usize) -> (Client, Vec<u8>, Vec<u32>) {
    let (mut client, mut out) = (Client::new(options), Vec::new());
    client.start(&mut out);
    let head = |_: &mut _, out: &mut Vec<u8>| {
        for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")] {
            put_literal(out, name.as_bytes(), value.as_bytes(), false);
        }
    };
    let submit = Submit {
        head_request: false,
        capture: false,
        keep_body: false,
        tell_content: false,
        body: Payload::None,
    };
    let tickets = (0..count).map(|_| client.submit(submit, head, &mut out)).collect();
    (client, out, tickets)
}

#[test]
fn many_streams_of_a_client_that_reads_slowly_fill_no_memory() {
    for delay in [Delay::None, Delay::Constant(Nanos(1))] {
        let mut worker = worker(|options| options.delay = delay);
        let (mut client, out, _) = client(&ClientOptions::default(), 16);
        worker.hear(&out);
        for _ in 0..20 {
            assert!(worker.go_on().is_empty());
        }
        assert!(worker.writer.backend.outbox.len() >= UNSENT_BYTES, "it is not idle either");
        worker.writer.backend.takes = 300_000;
        let (mut events, mut passes) = (Vec::new(), 0);
        while client.active() > 0 {
            let mut out = Vec::new();
            client.receive(&worker.go_on(), &mut out, &mut events).unwrap();
            worker.hear(&out);
            passes += 1;
            assert!(passes < 2000, "{:?}", worker.tally);
        }
        let whole = |event: &plimsoll_wire::http2::Event| match event {
            plimsoll_wire::http2::Event::Response { response, .. } => response.body_bytes == BODY as u64,
            _ => false,
        };
        assert_eq!(events.iter().filter(|event| whole(event)).count(), 16);
        assert!(worker.writer.backend.peak <= BOUND, "{}", worker.writer.backend.peak);
        assert_eq!((worker.tally.replied, worker.rows().len()), (16, 16));
        assert_eq!(worker.table.get(CONN).map(|connection| connection.state.outstanding), Some(0));
        assert_eq!(worker.stalled.next(), Nanos::MAX);
    }
}

#[test]
fn windows_that_are_opened_all_at_once_fill_no_memory() {
    let mut worker = worker(|_| {});
    let options = ClientOptions { stream_window: 1, connection_window: 65_535, ..ClientOptions::default() };
    let (_, out, _) = client(&options, 50);
    worker.hear(&out);
    worker.go_on();
    assert!(worker.writer.backend.outbox.len() < 10_000);
    // SETTINGS_INITIAL_WINDOW_SIZE, and WINDOW_UPDATE of the connection.
    let size = (1_u32 << 30).to_be_bytes();
    worker.hear(&[&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4][..], &size].concat());
    worker.hear(&[&[0, 0, 4, 8, 0, 0, 0, 0, 0][..], &size].concat());
    (0..10).for_each(|_| _ = worker.go_on());
    let held = 50 * (PIECE_BYTES + 9);
    assert!(worker.writer.backend.peak <= BOUND + held, "{}", worker.writer.backend.peak);
    worker.writer.backend.takes = usize::MAX;
    let mut sent = 0;
    for _ in 0..1000 {
        sent += worker.go_on().len();
    }
    assert!(sent > 50 * BODY);
    assert_eq!(worker.tally.replied, 50);
    assert!(worker.writer.backend.peak <= BOUND + held, "{}", worker.writer.backend.peak);
}

#[test]
fn what_is_begun_is_abandoned_with_its_stream_and_with_its_connection() {
    let mut worker = worker(|_| {});
    let (mut client, out, tickets) = client(&ClientOptions::default(), 5);
    worker.hear(&out);
    worker.go_on();
    let mut out = Vec::new();
    tickets[..2].iter().for_each(|&ticket| client.cancel(ticket, &mut out));
    worker.hear(&out);
    worker.writer.backend.takes = 3 * UNSENT_BYTES;
    worker.go_on();
    worker.go_on();
    assert_eq!((worker.tally.abandoned, worker.tally.cancelled), (2, 0));
    let error = SystemError { errno: 104 };
    worker.writer.backend.events.push_back(Event::Failed { conn: CONN, at: Nanos::ZERO, error });
    worker.go_on();
    assert_eq!((worker.tally.abandoned, worker.tally.cancelled, worker.tally.replied), (5, 2, 0));
    let mut numbers: Vec<_> = worker.rows().iter().map(|row| row.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert!(worker.writer.backend.closed);
    worker.go_on();
    assert_eq!(worker.stalled.next(), Nanos::MAX);
}

#[test]
fn who_ends_its_side_opens_no_windows() {
    let mut worker = worker(|_| {});
    let options = ClientOptions { stream_window: 100, ..ClientOptions::default() };
    worker.hear(&client(&options, 3).1);
    worker.writer.backend.takes = usize::MAX;
    worker.go_on();
    assert!(!worker.writer.backend.closed);
    worker.writer.backend.events.push_back(Event::Closed { conn: CONN, at: Nanos::ZERO });
    worker.go_on();
    assert_eq!((worker.tally.abandoned, worker.writer.backend.closed), (3, true));
}

#[test]
fn a_connection_with_tls_keeps_the_order_of_its_replies_and_fills_no_memory() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let alpn = vec![b"http/1.1".to_vec()];
    let tls = ServerConfig::new(cert.as_bytes(), key.as_bytes(), &alpn, None).unwrap();
    let ca_pem = vec![cert.into_bytes()];
    let config = ClientConfig::new(&TlsOptions { ca_pem, alpn, ..TlsOptions::default() }).unwrap();
    for capacity in [None, Some(Rate::per_second(1_000_000))] {
        let mut worker = worker(|options| {
            options.tls = Some(tls.clone());
            options.capacity = capacity;
            options.faults.close_idle_after = Some(6);
        });
        let mut session = Session::client(&config, "localhost").unwrap();
        worker.writer.backend.takes = usize::MAX;
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        session.transmit(&mut out);
        while session.is_handshaking() {
            worker.hear(&std::mem::take(&mut out));
            session.receive(&worker.go_on(), &mut plain).unwrap();
            session.transmit(&mut out);
        }
        session.send(&b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(6), &mut out);
        worker.hear(&out);
        worker.writer.backend.takes = 0;
        (0..10).for_each(|_| _ = worker.go_on());
        worker.writer.backend.takes = 200_000;
        let mut passes = 0;
        while !worker.writer.backend.closed {
            session.receive(&worker.go_on(), &mut plain).unwrap();
            passes += 1;
            assert!(passes < 2000, "{:?}", worker.tally);
        }
        worker.writer.backend.takes = usize::MAX;
        worker.writer.backend.flush();
        let rest = std::mem::take(&mut worker.writer.backend.taken);
        session.receive(&rest, &mut plain).unwrap();
        assert!(worker.writer.backend.peak <= BOUND, "{}", worker.writer.backend.peak);
        let mut rest = plain.as_slice();
        for _ in 0..6 {
            let end = rest.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            let (body, more) = rest[end..].split_at(BODY);
            assert!(rest.starts_with(b"HTTP/1.1 200"));
            assert!(body.iter().zip(0_u32..).all(|(&byte, i)| byte == (i % 251) as u8));
            rest = more;
        }
        assert!(rest.is_empty());
        assert_eq!(worker.tally.replied, 6);
        let numbers: Vec<_> = worker.rows().iter().map(|row| row.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    }
}
