//! A server of a protocol that is made up here, on real sockets.
//!
//! Requests are lines: `say TEXT`, `body N` (N bytes that are shared), `later N TEXT` and `held N TEXT` (N ms
//! later, written then or at once), `bye` and `reset`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::AddAssign;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, ConnId, Endpoint, KernelBackend};
use plimsoll_targets::StartError;
use plimsoll_targets::server::{Fate, Handler, LoopCounts, Outgoing, Protocol, Server, ServerOptions, Table};
use plimsoll_testkit::on_every_backend;

use crate::sink::client::{Client, End};

on_every_backend! {
    replies_and_shared_bodies_keep_their_order,
    what_is_due_goes_out_in_time,
    every_reply_is_held_back,
    a_closed_client_gets_what_it_is_owed,
    listeners_are_told_apart,
    threads_add_their_reports_up,
    unfinished_requests_share_a_bound,
    a_client_that_reads_nothing_is_reset,
    a_duration_ends_it,
}

#[derive(Debug)]
struct Lines;

#[derive(Debug, Default)]
struct LinesHandler {
    table: Table<Line>,
    /// Replies for later, the next one last.
    later: Vec<(Nanos, ConnId, String)>,
    report: Report,
}

#[derive(Debug, Default)]
struct Line {
    input: Vec<u8>,
    owed: usize,
    is_closed: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    accepted: Vec<u64>,
    gone: u64,
    lines: u64,
    unread: u64,
    over_memory: u64,
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.accepted.resize(self.accepted.len().max(other.accepted.len()), 0);
        self.accepted.iter_mut().zip(&other.accepted).for_each(|(sum, count)| *sum += count);
        self.gone += other.gone;
        self.lines += other.lines;
        self.unread += other.unread;
        self.over_memory += other.over_memory;
    }
}

impl Protocol for Lines {
    type Handler = LinesHandler;
    type Report = Report;

    fn handler(self: &Arc<Self>) -> LinesHandler {
        LinesHandler::default()
    }

    fn report(handler: LinesHandler, LoopCounts { accepted, unread, over_memory, .. }: LoopCounts) -> Report {
        Report { accepted, unread, over_memory, ..handler.report }
    }
}

impl Handler for LinesHandler {
    fn accepted(&mut self, conn: ConnId, _listener: usize) {
        self.table.insert(conn, Line::default());
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        let line = self.table.get(conn).expect("it was accepted, and is not gone");
        line.input.extend_from_slice(bytes);
        while let Some(end) = line.input.iter().position(|byte| *byte == b'\n') {
            let request: Vec<u8> = line.input.drain(..=end).collect();
            let request = String::from_utf8(request).unwrap();
            let (word, rest) = request.trim_end().split_once(' ').unwrap_or((request.trim_end(), ""));
            self.report.lines += 1;
            out.replies += 1;
            match word {
                "say" => out.bytes.extend_from_slice(format!("{rest}\n").as_bytes()),
                "body" => out.share(vec![b'b'; rest.parse().unwrap()].into()),
                "later" => {
                    let (millis, text) = rest.split_once(' ').unwrap();
                    let due = at + Nanos::from_millis(millis.parse().unwrap());
                    line.owed += 1;
                    self.later.push((due, conn, format!("{text}\n")));
                    self.later.sort_by_key(|(due, ..)| std::cmp::Reverse(*due));
                }
                "held" => {
                    let (millis, text) = rest.split_once(' ').unwrap();
                    let due = at + Nanos::from_millis(millis.parse().unwrap());
                    out.send_later(due, format!("{text}\n").into_bytes());
                }
                "bye" => return Fate::Ends,
                _ => return Fate::Reset,
            }
        }
        Fate::GoesOn { held: line.input.len() }
    }

    fn closed(&mut self, conn: ConnId) -> bool {
        let line = self.table.get(conn).expect("it is not gone");
        line.is_closed = true;
        line.owed > 0
    }

    fn over_memory(&mut self, _conn: ConnId, most: u64, out: &mut Outgoing) {
        out.bytes.extend_from_slice(format!("more than {most} bytes\n").as_bytes());
    }

    fn gone(&mut self, conn: ConnId) {
        self.table.remove(conn).expect("once for each connection");
        self.report.gone += 1;
    }

    fn next_due(&self, _now: Nanos) -> Nanos {
        self.later.last().map_or(Nanos::MAX, |(due, ..)| *due)
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        while let Some((_, conn, text)) = self.later.pop_if(|(due, ..)| *due <= now) {
            let Some(line) = self.table.get(conn) else { continue };
            out.bytes.extend_from_slice(text.as_bytes());
            line.owed -= 1;
            let is_over = line.is_closed && line.owed == 0;
            return Some((conn, if is_over { Fate::Ends } else { Fate::GoesOn { held: 0 } }));
        }
        None
    }
}

fn anywhere() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 0).into())
}

fn options() -> ServerOptions {
    ServerOptions::new("lines", vec![anywhere()])
}

fn start(options: ServerOptions, backend: KernelBackend) -> Server<Lines> {
    Server::start(options, Lines, backend).expect("the server starts")
}

fn only(server: &Server<Lines>) -> &Endpoint {
    let [endpoint] = server.endpoints() else { panic!("it listens once") };
    endpoint
}

/// Waits for this many bytes.
fn replies(client: &mut Client, index: usize, bytes: usize) -> String {
    let mut told = Vec::new();
    client.wait_for("replies", |client| {
        told.append(&mut client.take(index));
        (told.len() >= bytes).then_some(())
    });
    String::from_utf8(told).unwrap()
}

fn replies_and_shared_bodies_keep_their_order(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    let index = client.connect(only(&server));
    client.send(index, b"say one\nbody 3\nbody 2\nsay two\nsay thr");
    client.send(index, b"ee\nbody 1\nbye\nsay nothing\n");
    assert_eq!(replies(&mut client, index, 20), "one\nbbbbbtwo\nthree\nb");
    assert_eq!(client.end(index), End::Closed);
    let index = client.connect(only(&server));
    client.send(index, b"reset\n");
    assert_eq!(client.end(index), End::Reset);
    let report = server.stop();
    assert_eq!(report, Report { accepted: vec![2], gone: 2, lines: 8, ..Report::default() });
}

fn what_is_due_goes_out_in_time(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    let [one, other] = [(); 2].map(|()| client.connect(only(&server)));
    let began = client.now();
    client.send(one, b"held 30 third\nlater 1 first\n");
    client.send(other, b"later 15 second\n");
    assert_eq!(replies(&mut client, one, 12), "first\nthird\n");
    assert!(client.now() - began >= Nanos::from_millis(30), "none of it is early");
    assert_eq!(replies(&mut client, other, 7), "second\n");
    assert_eq!(server.stop().gone, 2);
}

fn every_reply_is_held_back(backend: KernelBackend) {
    let delay = Nanos::from_millis(20);
    let server = start(ServerOptions { delay, ..options() }, backend);
    let mut client = Client::new();
    let [one, other] = [(); 2].map(|()| client.connect(only(&server)));
    let began = client.now();
    client.send(one, b"say one\nbody 3\nsay two\nbye\n");
    client.send(one, b"say nothing\n");
    client.send(other, b"reset\n");
    assert_eq!(replies(&mut client, one, 11), "one\nbbbtwo\n");
    assert!(client.now() - began >= delay, "it is not early");
    assert_eq!((client.end(one), client.end(other)), (End::Closed, End::Reset));
    let Endpoint::Tcp(address) = only(&server) else { panic!("it listens on TCP") };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"say now\nlater 30 later\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert_eq!(told, "now\nlater\n");
    assert_eq!(server.stop(), Report { accepted: vec![3], gone: 3, lines: 7, ..Report::default() });
}

fn a_closed_client_gets_what_it_is_owed(backend: KernelBackend) {
    let server = start(options(), backend);
    let Endpoint::Tcp(address) = only(&server) else { panic!("it listens on TCP") };
    for (request, reply) in [
        ("say now\n", "now\n"),
        ("later 20 later\nlater 10 soon\n", "soon\nlater\n"),
        ("held 20 later\nheld 10 soon\nsay now\n", "now\nsoon\nlater\n"),
        ("held 10 last\nbye\nsay nothing\n", "last\n"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert_eq!(told, reply);
    }
    assert_eq!(server.stop().gone, 4);
}

fn listeners_are_told_apart(backend: KernelBackend) {
    let server = start(ServerOptions { listen: vec![anywhere(), anywhere()], ..options() }, backend);
    let mut client = Client::new();
    let [first, second] = server.endpoints() else { panic!("it listens twice") };
    for endpoint in [second, first, second] {
        let index = client.connect(endpoint);
        client.send(index, b"say hi\n");
        replies(&mut client, index, 3);
    }
    // Connections that are open at the end are gone with it.
    assert_eq!(server.stop(), Report { accepted: vec![1, 2], gone: 3, lines: 3, ..Report::default() });
}

fn threads_add_their_reports_up(backend: KernelBackend) {
    let server = start(ServerOptions { threads: 3, ..options() }, backend);
    let mut client = Client::new();
    for _ in 0..20 {
        let index = client.connect(only(&server));
        client.send(index, b"say hi\n");
        replies(&mut client, index, 3);
    }
    assert_eq!(server.stop(), Report { accepted: vec![20], gone: 20, lines: 20, ..Report::default() });
}

fn unfinished_requests_share_a_bound(backend: KernelBackend) {
    let server = start(ServerOptions { memory: 100_000, ..options() }, backend);
    let mut client = Client::new();
    let [one, other] = [(); 2].map(|()| client.connect(only(&server)));
    let half = vec![b'x'; 60_000];
    client.send(one, &[b"say ", &half[..]].concat());
    client.send(other, &[b"say ", &half[..]].concat());
    let ended =
        client.wait_for("an end", |client| [one, other].into_iter().find(|of| client.try_end(*of).is_some()));
    assert_eq!(client.take(ended), b"more than 100000 bytes\n");
    let left = if ended == one { other } else { one };
    client.send(left, b"\n");
    assert_eq!(replies(&mut client, left, 60_001).len(), 60_001);
    // There is room again.
    let again = client.connect(only(&server));
    client.send(again, &[b"say ", &half[..], b"\n"].concat());
    assert_eq!(replies(&mut client, again, 60_001).len(), 60_001);
    assert_eq!(server.stop().over_memory, 1);
}

fn a_client_that_reads_nothing_is_reset(backend: KernelBackend) {
    let server = start(ServerOptions { unread_bytes: 1 << 20, ..options() }, backend);
    let Endpoint::Tcp(address) = only(&server) else { panic!("it listens on TCP") };
    let mut stream = TcpStream::connect(address).unwrap();
    // More than the kernel takes of what nobody reads.
    stream.write_all(b"body 50000000\n").unwrap();
    let requests = 5_000_000;
    let sent = (0..requests).take_while(|_| stream.write_all(b"say more\n").is_ok()).count();
    assert!(sent < requests, "nothing ends it");
    assert_eq!(server.stop().unread, 1);
}

fn a_duration_ends_it(backend: KernelBackend) {
    let server = start(ServerOptions { duration: Some(Nanos::from_millis(10)), ..options() }, backend);
    assert_eq!(server.wait(), Report { accepted: vec![0], ..Report::default() });
}

#[test]
fn what_cannot_be_started_is_explained() {
    let backend = KernelBackend::Epoll(BackendOptions::default());
    let refused = |options| Server::start(options, Lines, backend).unwrap_err();
    let unix = Endpoint::Unix("s".into());
    for (threads, listen) in [(0, anywhere()), (2, unix)] {
        let refused = refused(ServerOptions { threads, listen: vec![listen], ..options() });
        assert!(matches!(&refused, StartError::Options(problems) if problems.len() == 1), "{refused}");
    }
    let taken = start(options(), backend);
    let again = refused(ServerOptions { listen: taken.endpoints().to_vec(), ..options() });
    assert!(matches!(again, StartError::Listen { .. }), "{again}");
}
