//! Contract of every backend: one suite, run on each. The peer is another connection of the same backend
//! where that is enough, and a plain blocking socket where the test is about an independent peer's view.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{
    Backend, BackendOptions, Close, ConnId, Endpoint, Event, ListenerId, Open, OpenEpoll, OpenUring,
    SocketOptions, SystemError, Wait, uring_available,
};
use plimsoll_system::{clock, usage};

/// Far beyond the time of any step here; reaching it is a failure.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// An event with its bytes copied out.
#[derive(Clone, Debug)]
enum Seen {
    Connected(ConnId),
    ConnectFailed(ConnId, SystemError),
    Accepted(ListenerId, ConnId),
    Received { conn: ConnId, at: Nanos, stamped: bool, bytes: Vec<u8> },
    Closed(ConnId),
    Failed(ConnId, SystemError),
}

struct Bench<B> {
    backend: B,
}

impl<B: Backend> Bench<B> {
    fn open<O: Open<Backend = B>>(open: &O) -> Self {
        let backend = open.open().expect("the backend opens");
        assert_eq!(backend.name(), open.name());
        Self { backend }
    }

    /// The next event, if it is there already.
    fn ready(&mut self) -> Option<Seen> {
        let event = self.backend.next_event()?;
        Some(match event {
            Event::Connected { conn, .. } => Seen::Connected(conn),
            Event::ConnectFailed { conn, error, .. } => Seen::ConnectFailed(conn, error),
            Event::Accepted { listener, conn, .. } => Seen::Accepted(listener, conn),
            Event::Received { conn, at, stamped, data } => {
                let bytes = self.backend.bytes(data).to_vec();
                assert!(!bytes.is_empty(), "a receive of nothing");
                assert_eq!(bytes.len(), data.length as usize);
                Seen::Received { conn, at, stamped, bytes }
            }
            Event::Closed { conn, .. } => Seen::Closed(conn),
            Event::Failed { conn, error, .. } => Seen::Failed(conn, error),
        })
    }

    /// The next event, waited for.
    fn next(&mut self) -> Seen {
        let until = self.backend.now() + PATIENCE;
        loop {
            if let Some(seen) = self.ready() {
                return seen;
            }
            assert!(self.backend.now() < until, "nothing came");
            self.backend.flush();
            self.backend.wait(first_event(until));
        }
    }

    /// Lets the backend work without expecting an event.
    fn pump(&mut self) {
        assert!(self.ready().is_none());
        let until = self.backend.now() + Nanos::from_millis(1);
        self.backend.wait(first_event(until));
    }

    fn write(&mut self, conn: ConnId, bytes: &[u8]) {
        self.backend.outbox(conn).extend_from_slice(bytes);
    }

    /// The bytes of `conn` until there are `length`; nothing else must happen meanwhile.
    fn read(&mut self, conn: ConnId, length: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < length {
            match self.next() {
                Seen::Received { conn: from, bytes, .. } if from == conn => all.extend(bytes),
                other => panic!("{other:?} while reading, after {} bytes", all.len()),
            }
        }
        assert_eq!(all.len(), length);
        all
    }

    fn listen(&mut self, on: &Endpoint) -> (ListenerId, Endpoint) {
        self.backend.listen(on, false).expect("listens")
    }

    fn connect(&mut self, to: &Endpoint) -> ConnId {
        self.backend.connect(to, &SocketOptions::default()).expect("a socket")
    }

    /// Both ends of a connection, client first.
    fn pair(&mut self, on: &Endpoint) -> (ConnId, ConnId) {
        let (listener, bound) = self.listen(on);
        let pair = self.connect_to(listener, &bound);
        self.backend.close_listener(listener);
        pair
    }

    fn connect_to(&mut self, listener: ListenerId, bound: &Endpoint) -> (ConnId, ConnId) {
        let client = self.connect(bound);
        let (mut connected, mut server) = (false, None);
        while !connected || server.is_none() {
            match self.next() {
                Seen::Connected(conn) if conn == client => connected = true,
                Seen::Accepted(by, conn) if by == listener => server = Some(conn),
                other => panic!("{other:?} while connecting"),
            }
        }
        (client, server.expect("accepted"))
    }

    /// A connection to a blocking socket.
    fn plain_peer(&mut self) -> (ConnId, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let conn = self.connect(&Endpoint::Tcp(listener.local_addr().expect("an address")));
        assert!(matches!(self.next(), Seen::Connected(c) if c == conn));
        let (stream, _) = listener.accept().expect("accepts");
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(Duration::from(PATIENCE))).expect("an option");
        (conn, stream)
    }

    /// Works until the thread has ended.
    fn until_done<T>(&mut self, thread: JoinHandle<T>) -> T {
        let until = self.backend.now() + PATIENCE;
        while !thread.is_finished() {
            assert!(self.backend.now() < until, "the peer does not end");
            while let Some(seen) = self.ready() {
                assert!(matches!(seen, Seen::Received { .. }), "{seen:?}");
            }
            let until = self.backend.now() + Nanos::from_millis(1);
            self.backend.wait(first_event(until));
        }
        thread.join().expect("the peer is content")
    }
}

fn first_event(until: Nanos) -> Wait {
    Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO }
}

fn loopback() -> Endpoint {
    Endpoint::Tcp("127.0.0.1:0".parse().expect("an address"))
}

fn socket_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()))
}

/// Bytes whose order shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

const LARGE: usize = 5_000_000;

fn refused_connections_are_told<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let free = TcpListener::bind("127.0.0.1:0").expect("listens").local_addr().expect("an address");
    let conn = bench.connect(&Endpoint::Tcp(free));
    match bench.next() {
        Seen::ConnectFailed(failed, error) => {
            assert_eq!((failed, error.class()), (conn, ErrorClass::ConnectRefused), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // The id is gone without a close.
    assert_eq!(bench.backend.unsent(conn), 0);
    bench.backend.close(conn, Close::Now);
    let missing = bench.connect(&Endpoint::Unix(socket_file("missing")));
    match bench.next() {
        Seen::ConnectFailed(failed, error) => {
            assert_eq!((failed, error.class()), (missing, ErrorClass::ConnectFailed), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

fn a_connect_ends_when_it_was_seen_and_not_when_its_turn_comes<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
    for _ in 0..2 {
        bench.connect(&to);
    }
    let until = bench.backend.now() + PATIENCE;
    bench.backend.wait(Wait { until, want: 2, floor: Nanos::from_secs(1), spin: Nanos::ZERO });
    let seen = bench.backend.now();
    for _ in 0..2 {
        let Some(Event::Connected { at, .. }) = bench.backend.next_event() else { panic!("not connected") };
        assert!(at <= seen, "{:?} late", at.since(seen));
        // The owner takes its time, for a handshake.
        clock::sleep_until(bench.backend.now() + Nanos::from_millis(2));
    }
}

fn echo(bench: &mut Bench<impl Backend>, client: ConnId, server: ConnId) {
    for (index, length) in [1_usize, 100, 3_000, 70_000].into_iter().enumerate() {
        let sent = pattern(length);
        bench.write(client, &sent[..length / 2]);
        bench.write(client, &sent[length / 2..]);
        let flush = bench.backend.flush();
        assert_eq!(flush.sends, 1);
        assert!(flush.first <= flush.last);
        let received = bench.read(server, length);
        assert_eq!(received, sent, "message {index}");
        bench.write(server, &received);
        bench.backend.flush();
        assert_eq!(bench.read(client, length), sent, "answer {index}");
        assert_eq!(bench.backend.unsent(client) + bench.backend.unsent(server), 0);
    }
    bench.backend.close(client, Close::Now);
    assert!(matches!(bench.next(), Seen::Closed(conn) if conn == server));
    bench.backend.close(server, Close::Now);
    bench.pump();
}

fn bytes_come_as_they_were_sent<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (client, server) = bench.pair(&loopback());
    echo(&mut bench, client, server);
    let v6 = Endpoint::Tcp("[::1]:0".parse().expect("an address"));
    let (client, server) = bench.pair(&v6);
    echo(&mut bench, client, server);
    let path = socket_file(&format!("echo-{}", open.name()));
    let (client, server) = bench.pair(&Endpoint::Unix(path));
    echo(&mut bench, client, server);
}

fn what_is_written_while_connecting_is_sent<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (listener, bound) = bench.listen(&loopback());
    let client = bench.connect(&bound);
    bench.write(client, b"early ");
    bench.backend.flush();
    bench.write(client, b"bird");
    let server = loop {
        match bench.next() {
            Seen::Connected(conn) => assert_eq!(conn, client),
            Seen::Accepted(by, conn) => {
                assert_eq!(by, listener);
                break conn;
            }
            other => panic!("{other:?}"),
        }
    };
    let mut all = Vec::new();
    while all.len() < 10 {
        match bench.next() {
            Seen::Connected(conn) => assert_eq!(conn, client),
            Seen::Received { conn, bytes, .. } if conn == server => all.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(all, b"early bird");
    // The connection is closed before it is established, and its bytes are delivered all the same.
    let client = bench.connect(&bound);
    bench.write(client, b"last words");
    bench.backend.close(client, Close::AfterSend);
    let Seen::Accepted(_, server) = bench.next() else { panic!("not accepted") };
    assert_eq!(bench.read(server, 10), b"last words");
    assert!(matches!(bench.next(), Seen::Closed(conn) if conn == server));
}

fn large_transfers_go_both_ways_at_once<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (client, server) = bench.pair(&loopback());
    let up = pattern(LARGE);
    let down: Vec<u8> = up.iter().map(|byte| !byte).collect();
    bench.write(client, &up);
    bench.write(server, &down);
    assert_eq!(bench.backend.unsent(client), LARGE);
    bench.backend.flush();
    let (mut at_server, mut at_client) = (Vec::new(), Vec::new());
    while at_server.len() < LARGE || at_client.len() < LARGE {
        match bench.next() {
            Seen::Received { conn, bytes, .. } if conn == server => at_server.extend(bytes),
            Seen::Received { conn, bytes, .. } if conn == client => at_client.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert!(at_server == up && at_client == down);
}

fn a_slow_reader_holds_up_nothing_else<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (slow, mut peer) = bench.plain_peer();
    let sent = pattern(4 * LARGE);
    bench.write(slow, &sent[..LARGE]);
    bench.backend.flush();
    bench.write(slow, &sent[LARGE..]);
    bench.backend.flush();
    bench.pump();
    // More bytes than two socket buffers hold, and no reader.
    assert!(bench.backend.unsent(slow) > 0);
    let (client, server) = bench.pair(&loopback());
    bench.write(client, b"meanwhile");
    bench.backend.flush();
    assert_eq!(bench.read(server, 9), b"meanwhile");
    let reader = std::thread::spawn(move || {
        let mut all = vec![0; 4 * LARGE];
        peer.read_exact(&mut all).expect("reads");
        (all, peer)
    });
    let (all, _peer) = bench.until_done(reader);
    assert!(all == sent);
    bench.pump();
    assert_eq!(bench.backend.unsent(slow), 0);
}

fn shared_bodies_keep_their_place<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (client, server) = bench.pair(&loopback());
    let body: Arc<[u8]> = pattern(300_000).into();
    let mut expected = Vec::new();
    for round in 0..20_u8 {
        bench.write(client, &[round; 10]);
        bench.backend.send_shared(client, Arc::clone(&body));
        bench.backend.send_shared(client, Arc::from(&b"small"[..]));
        bench.write(client, &[round; 20]);
        expected.extend([round; 10]);
        expected.extend_from_slice(&body);
        expected.extend_from_slice(b"small");
        expected.extend([round; 20]);
        if round % 3 == 0 {
            assert_eq!(bench.backend.flush().sends, 1);
        }
    }
    bench.backend.flush();
    assert!(bench.read(server, expected.len()) == expected);
    bench.pump();
    assert_eq!(Arc::strong_count(&body), 1, "kept after it was sent");
    // A body alone, with nothing before or after.
    bench.backend.send_shared(server, Arc::from(&b"alone"[..]));
    assert_eq!(bench.backend.flush().sends, 1);
    assert_eq!(bench.read(client, 5), b"alone");
}

fn bytes_can_come_one_by_one<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    for byte in 0..=255_u8 {
        peer.write_all(&[byte]).expect("writes");
        assert_eq!(bench.read(conn, 1), [byte]);
    }
}

fn the_peers_end_is_told_after_its_bytes<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    let sent = pattern(200_000);
    let writer = {
        let sent = sent.clone();
        std::thread::spawn(move || peer.write_all(&sent).expect("writes"))
    };
    assert!(bench.read(conn, sent.len()) == sent);
    writer.join().expect("writes");
    assert!(matches!(bench.next(), Seen::Closed(closed) if closed == conn));
    bench.backend.close(conn, Close::Now);
    bench.pump();
}

fn an_answer_can_follow_the_peers_end<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    peer.write_all(b"question").expect("writes");
    peer.shutdown(Shutdown::Write).expect("half-closes");
    assert_eq!(bench.read(conn, 8), b"question");
    assert!(matches!(bench.next(), Seen::Closed(closed) if closed == conn));
    let answer = pattern(LARGE);
    bench.write(conn, &answer);
    bench.backend.flush();
    bench.backend.close(conn, Close::AfterSend);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("reads");
        all
    });
    assert!(bench.until_done(reader) == answer);
}

fn a_reset_by_the_peer_is_a_failure<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, peer) = bench.plain_peer();
    // Closing with unread bytes resets.
    bench.write(conn, b"never read");
    bench.backend.flush();
    let mut one = [0];
    peer.peek(&mut one).expect("there is something to read");
    drop(peer);
    match bench.next() {
        Seen::Failed(failed, error) => assert_eq!((failed, error.class()), (conn, ErrorClass::Reset)),
        other => panic!("{other:?}"),
    }
    bench.write(conn, b"into the void");
    bench.backend.flush();
    bench.backend.close(conn, Close::AfterSend);
    bench.pump();
}

fn bytes_before_a_reset_are_delivered<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    let rejecting = std::thread::spawn(move || {
        let mut some = [0; 1000];
        peer.read_exact(&mut some).expect("reads");
        peer.write_all(b"too much").expect("writes");
        // Closes with the rest unread.
    });
    bench.write(conn, &pattern(4 * LARGE));
    bench.backend.flush();
    let mut got = Vec::new();
    let error = loop {
        match bench.next() {
            Seen::Received { bytes, .. } => got.extend(bytes),
            Seen::Failed(failed, error) if failed == conn => break error,
            other => panic!("{other:?}"),
        }
    };
    rejecting.join().expect("rejects");
    assert_eq!(error.class(), ErrorClass::Reset);
    assert_eq!(got, b"too much");
    bench.backend.close(conn, Close::Now);
    bench.pump();
}

/// The reset is there when the bytes are read, and the kernel does not report it a second time.
fn bytes_and_a_reset_that_come_at_once_are_both_told<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    for round in 0..20 {
        let (conn, mut peer) = bench.plain_peer();
        if round % 2 == 0 {
            // Waits in the kernel by then.
            bench.pump();
        }
        bench.write(conn, b"never read");
        bench.backend.flush();
        let mut one = [0];
        peer.peek(&mut one).expect("there is something to read");
        peer.write_all(b"bytes").expect("writes");
        // Closing with unread bytes resets.
        drop(peer);
        match bench.next() {
            Seen::Received { bytes, .. } => assert_eq!(bytes, b"bytes"),
            other => panic!("{other:?}"),
        }
        match bench.next() {
            Seen::Failed(failed, error) => assert_eq!((failed, error.class()), (conn, ErrorClass::Reset)),
            other => panic!("{other:?}"),
        }
        bench.backend.close(conn, Close::Now);
        bench.pump();
    }
}

fn closing_after_send_delivers_everything<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    for length in [5, LARGE] {
        let (conn, mut peer) = bench.plain_peer();
        let sent = pattern(length);
        bench.write(conn, &sent);
        // The bytes are not flushed, and bytes from the peer are not read.
        bench.backend.close(conn, Close::AfterSend);
        assert_eq!(bench.backend.unsent(conn), 0, "the id is stale");
        let reader = std::thread::spawn(move || {
            peer.write_all(&[7; 10_000]).expect("writes");
            let mut all = Vec::new();
            peer.read_to_end(&mut all).expect("no reset");
            all
        });
        let all = bench.until_done(reader);
        assert!(all == sent, "{} of {length} bytes", all.len());
        bench.pump();
    }
}

fn a_reset_is_seen_by_the_peer<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    bench.write(conn, b"dropped");
    bench.backend.close(conn, Close::Reset);
    let reader = std::thread::spawn(move || peer.read(&mut [0; 10]).map_err(|error| error.kind()));
    assert_eq!(bench.until_done(reader), Err(std::io::ErrorKind::ConnectionReset));
}

fn closing_now_ends_the_peers_reading<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    bench.write(conn, b"first");
    bench.backend.flush();
    bench.write(conn, b"dropped");
    bench.backend.close(conn, Close::Now);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).expect("an orderly end");
    assert_eq!(all, b"first");
    // Also in the middle of a send that does not fit.
    let (conn, mut peer) = bench.plain_peer();
    bench.write(conn, &pattern(4 * LARGE));
    bench.backend.flush();
    assert!(bench.backend.unsent(conn) > 0);
    bench.backend.close(conn, Close::Now);
    let reader = std::thread::spawn(move || peer.read_to_end(&mut Vec::new()).unwrap_or(0));
    assert!(bench.until_done(reader) < 4 * LARGE);
}

fn closing_while_connecting_leaves_nothing<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (listener, bound) = bench.listen(&loopback());
    for how in [Close::Now, Close::Reset, Close::AfterSend] {
        let conn = bench.connect(&bound);
        bench.backend.close(conn, how);
        let conn = bench.connect(&bound);
        bench.backend.flush();
        bench.backend.close(conn, how);
    }
    // Only the server side may have noticed, as connections that came and went.
    let client = bench.connect(&bound);
    bench.write(client, b"still works");
    loop {
        match bench.next() {
            Seen::Connected(conn) => assert_eq!(conn, client),
            Seen::Accepted(by, _) => assert_eq!(by, listener),
            Seen::Closed(conn) | Seen::Failed(conn, _) => {
                assert_ne!(conn, client);
                bench.backend.close(conn, Close::Now);
            }
            Seen::Received { bytes, .. } => {
                assert_eq!(bytes, b"still works");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

fn stale_ids_do_no_harm<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (listener, bound) = bench.listen(&loopback());
    let (old, old_server) = bench.connect_to(listener, &bound);
    bench.backend.close(old, Close::Now);
    assert!(matches!(bench.next(), Seen::Closed(conn) if conn == old_server));
    bench.backend.close(old_server, Close::Now);
    bench.pump();
    let (client, server) = bench.connect_to(listener, &bound);
    let reused = [client, server].map(ConnId::slot);
    assert!(reused.contains(&old.slot()) && reused.contains(&old_server.slot()), "{reused:?}");
    for stale in [old, old_server, ConnId::new(9999, 0)] {
        bench.write(stale, b"lost");
        assert!(bench.backend.outbox(stale).is_empty());
        bench.backend.send_shared(stale, Arc::from(&b"lost"[..]));
        assert_eq!(bench.backend.unsent(stale), 0);
        assert_eq!(bench.backend.flush().sends, 0);
        for how in [Close::AfterSend, Close::Now, Close::Reset] {
            bench.backend.close(stale, how);
        }
    }
    bench.backend.close_listener(ListenerId(9999));
    bench.write(client, b"sound");
    bench.backend.flush();
    assert_eq!(bench.read(server, 5), b"sound");
}

fn events_of_a_closed_connection_are_dropped<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (client, server) = bench.pair(&loopback());
    bench.write(client, b"too late");
    bench.backend.flush();
    let until = bench.backend.now() + PATIENCE;
    bench.backend.wait(first_event(until));
    // The bytes are there, but the connection is closed.
    bench.backend.close(server, Close::Now);
    assert!(matches!(bench.next(), Seen::Closed(conn) | Seen::Failed(conn, _) if conn == client));
}

fn slots_are_used_again<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (listener, bound) = bench.listen(&loopback());
    let mut ids = Vec::new();
    for _ in 0..300 {
        let (client, server) = bench.connect_to(listener, &bound);
        bench.write(client, b"ping");
        bench.backend.flush();
        assert_eq!(bench.read(server, 4), b"ping");
        bench.backend.close(client, Close::Now);
        assert!(matches!(bench.next(), Seen::Closed(conn) if conn == server));
        bench.backend.close(server, Close::AfterSend);
        assert!(client.slot() < 8 && server.slot() < 8, "{client:?} {server:?}");
        ids.extend([client, server]);
    }
    let unique: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "an id was given twice");
}

fn many_connections_live_at_once<O: Open>(open: &O) {
    const CONNECTIONS: usize = 500;
    let mut bench = Bench::open(open);
    let (_, bound) = bench.listen(&loopback());
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| bench.connect(&bound)).collect();
    let (mut connected, mut servers) = (0, Vec::new());
    while connected < CONNECTIONS || servers.len() < CONNECTIONS {
        match bench.next() {
            Seen::Connected(_) => connected += 1,
            Seen::Accepted(_, conn) => servers.push(conn),
            other => panic!("{other:?}"),
        }
    }
    let most = clients.iter().chain(&servers).map(|conn| conn.slot()).max().expect("some");
    assert!(most < 2 * CONNECTIONS, "slot {most}");
    let mut answers = vec![Vec::new(); 2 * CONNECTIONS];
    for round in 0..5_u8 {
        for (index, client) in clients.iter().enumerate() {
            let mut message = vec![round; 100 + index];
            message[0] = index as u8;
            bench.write(*client, &message);
        }
        assert_eq!(bench.backend.flush().sends as usize, CONNECTIONS);
        let owed: usize = (0..CONNECTIONS).map(|index| 100 + index).sum();
        let mut answered = 0;
        while answered < owed {
            let Seen::Received { conn, bytes, .. } = bench.next() else { panic!("not a receive") };
            if servers.contains(&conn) {
                bench.write(conn, &bytes);
            } else {
                answered += bytes.len();
                answers[conn.slot()].extend(bytes);
            }
        }
        for (index, client) in clients.iter().enumerate() {
            let answer = std::mem::take(&mut answers[client.slot()]);
            assert_eq!((answer.len(), answer[0], answer[99]), (100 + index, index as u8, round));
        }
    }
    for client in clients {
        bench.backend.close(client, Close::Now);
    }
    for _ in 0..CONNECTIONS {
        assert!(matches!(bench.next(), Seen::Closed(_)));
    }
}

fn a_source_address_is_used<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let to = Endpoint::Tcp(listener.local_addr().expect("an address"));
    let source =
        SocketOptions { source: Some("127.0.0.2".parse().expect("an address")), ..Default::default() };
    bench.backend.connect(&to, &source).expect("a socket");
    assert!(matches!(bench.next(), Seen::Connected(_)));
    let (_peer, from) = listener.accept().expect("accepts");
    assert_eq!(from.ip().to_string(), "127.0.0.2");
    // TEST-NET-1 is not assigned to any host (RFC 5737).
    let foreign =
        SocketOptions { source: Some("192.0.2.1".parse().expect("an address")), ..Default::default() };
    let error = bench.backend.connect(&to, &foreign).expect_err("not our address");
    assert_eq!(error.errno, libc::EADDRNOTAVAIL);
}

fn a_closed_listener_refuses<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let path = socket_file(&format!("closed-{}", open.name()));
    for on in [loopback(), Endpoint::Unix(path)] {
        let (listener, bound) = bench.listen(&on);
        let (client, server) = bench.connect_to(listener, &bound);
        bench.backend.close_listener(listener);
        bench.backend.close_listener(listener);
        let late = bench.connect(&bound);
        match bench.next() {
            Seen::ConnectFailed(conn, error) => {
                assert_eq!(conn, late);
                assert!(error.class().is_connect(), "{error}");
            }
            other => panic!("{other:?}"),
        }
        // Accepted connections stay open.
        bench.write(client, b"on");
        bench.backend.flush();
        assert_eq!(bench.read(server, 2), b"on");
        // And the address is free, at the latest once the backend has worked.
        bench.pump();
        let (listener, _) = bench.listen(&bound);
        bench.backend.close_listener(listener);
    }
}

fn one_port_can_have_several_listeners<O: Open>(open: &O) {
    let mut first = Bench::open(open);
    let mut second = Bench::open(open);
    let (_, bound) = first.backend.listen(&loopback(), true).expect("listens");
    let (_, same) = second.backend.listen(&bound, true).expect("listens there too");
    assert_eq!(bound, same);
    let error = first.backend.listen(&bound, false).expect_err("in use");
    assert_eq!(error.errno, libc::EADDRINUSE);
}

/// Three connections with one unread message each, sent before this returns.
fn three_messages(bench: &mut Bench<impl Backend>) -> Vec<(ConnId, TcpStream)> {
    let mut plain: Vec<_> = (0..3).map(|_| bench.plain_peer()).collect();
    bench.pump();
    for (_, peer) in &mut plain {
        peer.write_all(b"message").expect("writes");
    }
    plain
}

fn count_ready(bench: &mut Bench<impl Backend>) -> usize {
    std::iter::from_fn(|| bench.ready()).count()
}

fn a_wait_ends_when_it_should<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let ms = Nanos::from_millis;
    let _plain = three_messages(&mut bench);
    // A time that is past: no blocking, but what is there is found.
    bench.backend.wait(first_event(Nanos::ZERO));
    assert_eq!(count_ready(&mut bench), 3);

    // Nothing comes: the end is `until`, in each of the ways to get there.
    for (want, floor, spin) in
        [(1, 0, 0), (1, 0, 1), (1, 0, 9), (64, 1, 0), (64, 9, 0), (64, 1, 2), (0, 9, 0)]
    {
        let until = bench.backend.now() + ms(3);
        bench.backend.wait(Wait { until, want, floor: ms(floor), spin: ms(spin) });
        assert!(bench.backend.now() >= until, "want {want} floor {floor} spin {spin}");
        assert_eq!(count_ready(&mut bench), 0);
    }

    // Something is there: the first is enough, also while spinning.
    let mut plain = Vec::new();
    for spin in [Nanos::ZERO, PATIENCE] {
        plain.extend(three_messages(&mut bench));
        let until = bench.backend.now() + PATIENCE;
        bench.backend.wait(Wait { until, want: 1, floor: PATIENCE, spin });
        assert!(bench.backend.now() < until);
        assert!((1..=3).contains(&count_ready(&mut bench)));
        bench.backend.wait(first_event(Nanos::ZERO));
        count_ready(&mut bench);
    }

    // As many as wanted are there: no waiting for the floor.
    let _plain = three_messages(&mut bench);
    let until = bench.backend.now() + PATIENCE;
    bench.backend.wait(Wait { until, want: 3, floor: ms(10_000), spin: Nanos::ZERO });
    assert!(bench.backend.now() < until);
    assert_eq!(count_ready(&mut bench), 3);

    // Fewer: they are gathered until the floor, not until the end.
    let _plain = three_messages(&mut bench);
    let start = bench.backend.now();
    bench.backend.wait(Wait { until: start + PATIENCE, want: 64, floor: ms(5), spin: Nanos::ZERO });
    let end = bench.backend.now();
    assert!(end >= start + ms(5) && end < start + PATIENCE, "{:?}", end - start);
    assert_eq!(count_ready(&mut bench), 3);

    // "Sleep until then, and gather what comes."
    let _plain = three_messages(&mut bench);
    let until = bench.backend.now() + ms(5);
    bench.backend.wait(Wait { until, want: u32::MAX, floor: PATIENCE, spin: Nanos::ZERO });
    assert!(bench.backend.now() >= until);
    assert_eq!(count_ready(&mut bench), 3);
}

fn an_event_after_the_floor_ends_the_wait<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (conn, mut peer) = bench.plain_peer();
    let start = bench.backend.now();
    let late = std::thread::spawn(move || {
        clock::sleep_until(start + Nanos::from_millis(20));
        peer.write_all(b"late").expect("writes");
        peer
    });
    let (floor, until) = (Nanos::from_millis(2), start + PATIENCE);
    bench.backend.wait(Wait { until, want: 64, floor, spin: Nanos::ZERO });
    let end = bench.backend.now();
    assert!(end >= start + Nanos::from_millis(20) && end < until, "{:?}", end - start);
    let _peer = late.join().expect("writes");
    assert!(matches!(bench.ready(), Some(Seen::Received { conn: from, .. }) if from == conn));
}

/// "Gather all that comes until then" is a sleep: a count that the kernel cannot represent must not make it
/// spin.
fn a_wait_for_everything_sleeps<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (_conn, mut peer) = bench.plain_peer();
    peer.write_all(b"early").expect("writes");
    let before = usage::thread_cpu();
    let (now, length) = (bench.backend.now(), Nanos::from_millis(100));
    let until = now + length;
    bench.backend.wait(Wait { until, want: u32::MAX, floor: length, spin: Nanos::ZERO });
    assert!(bench.backend.now() >= until);
    let after = usage::thread_cpu();
    let spent = (after.user - before.user) + (after.system - before.system);
    assert!(spent < Nanos(length.0 / 2), "{spent:?} of CPU time in a wait of {length:?}");
    assert_eq!(count_ready(&mut bench), 1);
}

fn sending_does_not_count_as_an_event<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let plain: Vec<_> = (0..8).map(|_| bench.plain_peer()).collect();
    for (conn, _) in &plain {
        bench.write(*conn, b"one way");
    }
    assert_eq!(bench.backend.flush().sends, 8);
    let until = bench.backend.now() + Nanos::from_millis(3);
    bench.backend.wait(Wait { until, want: 4, floor: Nanos::from_millis(1), spin: Nanos::ZERO });
    assert!(bench.backend.now() >= until, "a send ended the wait");
    assert_eq!(count_ready(&mut bench), 0);
}

fn stamps_tell_when_bytes_came<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let delay = Nanos::from_millis(50);
    // The error of the mapping from the kernel's clock is below this.
    let slack = Nanos::from_micros(50);
    let (client, server) = bench.pair(&loopback());
    for (from, to) in [(client, server), (server, client)] {
        bench.write(from, b"when?");
        let flush = bench.backend.flush();
        // Reading late must not make the bytes late.
        clock::sleep_until(flush.last + delay);
        let Seen::Received { conn, at, stamped, .. } = bench.next() else { panic!("not a receive") };
        assert!(stamped && conn == to);
        assert!(at + slack >= flush.first, "{at:?} is before the send at {:?}", flush.first);
        assert!(at <= flush.last + Nanos(delay.0 / 2), "{at:?}, but sent until {:?}", flush.last);
        assert!(at <= bench.backend.now());
    }
    let path = socket_file(&format!("stamps-{}", open.name()));
    let (client, server) = bench.pair(&Endpoint::Unix(path));
    bench.write(client, b"when?");
    let flush = bench.backend.flush();
    let Seen::Received { conn, at, stamped, .. } = bench.next() else { panic!("not a receive") };
    assert!(!stamped && conn == server, "unix sockets have no stamps");
    assert!(at >= flush.first && at <= bench.backend.now());
}

fn stamps_can_be_left_out<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (client, server) = bench.pair(&loopback());
    bench.write(client, &pattern(10_000));
    bench.backend.flush();
    let mut all = Vec::new();
    while all.len() < 10_000 {
        let Seen::Received { conn, stamped, bytes, .. } = bench.next() else { panic!("not a receive") };
        assert!(!stamped && conn == server);
        all.extend(bytes);
    }
    assert_eq!(all, pattern(10_000));
    bench.backend.close(client, Close::Now);
    assert!(matches!(bench.next(), Seen::Closed(conn) if conn == server));
}

fn dropping_a_backend_closes_everything<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let (_, bound) = bench.listen(&loopback());
    let (conn, mut peer) = bench.plain_peer();
    // A send that is stuck, a connect and an accept that are under way.
    bench.write(conn, &pattern(4 * LARGE));
    bench.backend.flush();
    bench.connect(&bound);
    bench.backend.flush();
    drop(bench);
    peer.read_to_end(&mut Vec::new()).expect("an end");
    let Endpoint::Tcp(address) = bound else { panic!("a TCP endpoint") };
    assert!(TcpStream::connect::<SocketAddr>(address).is_err(), "still listening");
}

fn a_failed_bind_is_an_error<O: Open>(open: &O) {
    let mut bench = Bench::open(open);
    let path = socket_file(&format!("taken-{}", open.name()));
    let taken = UnixListener::bind(&path).expect("listens");
    let error = bench.backend.listen(&Endpoint::Unix(path.clone()), false).expect_err("taken");
    assert_eq!(error.errno, libc::EADDRINUSE);
    assert!(path.exists(), "the file is somebody else's");
    drop(taken);
    std::fs::remove_file(path).expect("removes");
}

macro_rules! contract {
    ($($test:ident),+ $(,)?) => {
        mod epoll {
            $(#[test] fn $test() { super::$test(&super::OpenEpoll::default()); })+
            #[test]
            fn stamps_can_be_left_out() {
                let options = super::without_stamps();
                super::stamps_can_be_left_out(&super::OpenEpoll(options));
            }
        }
        mod paced {
            $(#[test] fn $test() { super::$test(&super::paced(50_000_000)); })+
        }
        mod uring {
            $(#[test] fn $test() { if super::uring() { super::$test(&super::OpenUring::default()); } })+
            #[test]
            fn stamps_can_be_left_out() {
                let options = super::without_stamps();
                if super::uring() { super::stamps_can_be_left_out(&super::OpenUring(options)); }
            }
        }
    };
}

fn without_stamps() -> BackendOptions {
    BackendOptions { receive_stamps: false, ..BackendOptions::default() }
}

/// Connections that move this many bytes per second in each direction.
fn paced(bytes_per_s: u64) -> OpenEpoll {
    OpenEpoll(BackendOptions { bytes_per_s: Some(bytes_per_s), ..BackendOptions::default() })
}

#[test]
fn a_paced_connection_moves_so_many_bytes_per_second_each_way() {
    let mut bench = Bench::open(&paced(1_000));
    let (conn, mut peer) = bench.plain_peer();
    let begin = bench.backend.now();
    bench.write(conn, &pattern(60));
    bench.backend.send_shared(conn, Arc::from(pattern(140)));
    let reader = std::thread::spawn(move || {
        let mut pieces = Vec::new();
        let mut buffer = [0; 256];
        while pieces.iter().map(Vec::len).sum::<usize>() < 200 {
            let length = peer.read(&mut buffer).expect("bytes");
            pieces.push(buffer[..length].to_vec());
        }
        (pieces, peer)
    });
    bench.backend.flush();
    // The last of the bytes leave 150 ms after the first, and a piece has no more than 50 of them.
    let (pieces, mut peer) = bench.until_done(reader);
    let took = bench.backend.now().since(begin);
    assert_eq!(pieces.concat(), [pattern(60), pattern(140)].concat());
    assert!(pieces.len() >= 2 && took >= Nanos::from_millis(150), "{took:?} in {} pieces", pieces.len());
    // All bytes at once: only the reader takes its time.
    peer.write_all(&pattern(150)).expect("writes");
    let begin = bench.backend.now();
    let mut pieces = Vec::new();
    while pieces.iter().map(Vec::len).sum::<usize>() < 150 {
        match bench.next() {
            Seen::Received { bytes, .. } => pieces.push(bytes),
            other => panic!("{other:?}"),
        }
    }
    let took = bench.backend.now().since(begin);
    assert_eq!(pieces.concat(), pattern(150));
    assert!(pieces.iter().all(|piece| piece.len() <= 50), "{:?}", pieces.iter().map(Vec::len));
    assert!(took >= Nanos::from_millis(90), "{took:?}");
}

/// Returns `true` if io_uring can be tested here; prints the reason if not.
fn uring() -> bool {
    let available = uring_available();
    if let Err(reason) = &available {
        // Past the capture of the test harness, which hides what passing tests print.
        let _ = writeln!(std::io::stderr(), "SKIPPED: io_uring does not work on this machine: {reason}");
    }
    available.is_ok()
}

contract!(
    refused_connections_are_told,
    a_connect_ends_when_it_was_seen_and_not_when_its_turn_comes,
    bytes_come_as_they_were_sent,
    what_is_written_while_connecting_is_sent,
    large_transfers_go_both_ways_at_once,
    a_slow_reader_holds_up_nothing_else,
    shared_bodies_keep_their_place,
    bytes_can_come_one_by_one,
    the_peers_end_is_told_after_its_bytes,
    an_answer_can_follow_the_peers_end,
    a_reset_by_the_peer_is_a_failure,
    bytes_before_a_reset_are_delivered,
    bytes_and_a_reset_that_come_at_once_are_both_told,
    closing_after_send_delivers_everything,
    a_reset_is_seen_by_the_peer,
    closing_now_ends_the_peers_reading,
    closing_while_connecting_leaves_nothing,
    stale_ids_do_no_harm,
    events_of_a_closed_connection_are_dropped,
    slots_are_used_again,
    many_connections_live_at_once,
    a_source_address_is_used,
    a_closed_listener_refuses,
    one_port_can_have_several_listeners,
    a_wait_ends_when_it_should,
    an_event_after_the_floor_ends_the_wait,
    a_wait_for_everything_sleeps,
    sending_does_not_count_as_an_event,
    stamps_tell_when_bytes_came,
    dropping_a_backend_closes_everything,
    a_failed_bind_is_an_error,
);

/// `Backend::wait` on io_uring wakes for the last event that is wanted. Epoll cannot do that: it sleeps for
/// the floor.
#[test]
fn uring_wakes_for_the_wanted_number() {
    if !uring() {
        return;
    }
    let mut bench = Bench::open(&OpenUring::default());
    let mut plain: Vec<_> = (0..3).map(|_| bench.plain_peer()).collect();
    bench.pump();
    let start = bench.backend.now();
    let peers = std::thread::spawn(move || {
        for (index, (_, peer)) in plain.iter_mut().enumerate() {
            clock::sleep_until(start + Nanos::from_millis(5 * (index as u64 + 1)));
            peer.write_all(b"message").expect("writes");
        }
        plain
    });
    bench.backend.wait(Wait { until: start + PATIENCE, want: 3, floor: PATIENCE, spin: Nanos::ZERO });
    let end = bench.backend.now();
    assert!(end >= start + Nanos::from_millis(15) && end < start + PATIENCE, "{:?}", end - start);
    assert_eq!(count_ready(&mut bench), 3);
    peers.join().expect("writes");
}
