//! The cache server on real sockets: its binary port.

mod http;

use plimsoll_cache::server::{CacheOptions, CacheReport, CacheServer, Lie, LieKind};
use plimsoll_cache::wire::{Answer, LONGEST_FRAME, Operation, PendingRequest, ReplyClient, write_request};
use plimsoll_core::Nanos;
use plimsoll_driver::{BackendOptions, Endpoint, KernelBackend};
use plimsoll_targets::StartError;
use plimsoll_testkit::client::Client;
use plimsoll_testkit::on_every_backend;

on_every_backend! {
    the_bytes_are_those_of_the_real_server,
    values_of_any_size_come_back_in_order,
    what_is_too_long_or_no_frame_ends_a_connection,
    a_half_closed_connection_is_answered,
    several_threads_share_the_caches,
    unfinished_frames_of_all_connections_share_a_bound,
}

pub(crate) fn options() -> CacheOptions {
    CacheOptions::new(Endpoint::Tcp(([127, 0, 0, 1], 0).into()))
}

pub(crate) fn start(options: CacheOptions, backend: KernelBackend) -> CacheServer {
    CacheServer::start(options, backend).expect("the server starts")
}

fn epoll() -> KernelBackend {
    KernelBackend::Epoll(BackendOptions::default())
}

/// One connection of a client that knows the protocol.
struct Caller<'c> {
    client: &'c mut Client,
    index: usize,
    reader: ReplyClient,
}

impl<'c> Caller<'c> {
    fn connect(client: &'c mut Client, to: &Endpoint) -> Self {
        let index = client.connect(to);
        Self { client, index, reader: ReplyClient::new() }
    }

    /// Sends these requests in one write, and waits for all replies: returns the answers, with the value or
    /// text.
    fn ask(&mut self, requests: &[(Operation, &[u8], &[u8])]) -> Vec<(Answer, Vec<u8>)> {
        let mut bytes = Vec::new();
        for (operation, key, value) in requests {
            write_request(*operation, b"perf_test", key, value, &mut bytes).expect("it fits a frame");
        }
        self.client.send(self.index, &bytes);
        let (mut told, index) = (Vec::new(), self.index);
        let reader = &mut self.reader;
        let mut kept = Vec::new();
        self.client.wait_for("replies", |client| {
            let taken = client.take(index);
            let mut input = &taken[..];
            while told.len() < requests.len() {
                let owed = PendingRequest { operation: requests[told.len()].0, keep: true };
                let Some(reply) = reader.next_into(owed, &mut input, &mut kept).expect("it is sound") else {
                    break;
                };
                told.push((reply.answer, std::mem::take(&mut kept)));
            }
            assert!(input.is_empty(), "more than was asked for");
            (told.len() == requests.len()).then_some(())
        });
        told
    }

    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let (answer, value) = self.ask(&[(Operation::Get, key, b"")]).remove(0);
        (answer == Answer::Value).then_some(value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        assert_eq!(self.ask(&[(Operation::Put, key, value)]), [(Answer::Done, vec![])]);
    }
}

/// A frame of this payload.
fn frame(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_be_bytes(), payload].concat()
}

fn refused(text: &str) -> Vec<u8> {
    frame(&[&[4], &(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat())
}

fn the_bytes_are_those_of_the_real_server(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    let get = b"\x02\0\0\0\x09perf_test\0\0\0\x02k1";
    let steps: [(&[u8], Vec<u8>); 12] = [
        (b"\0", frame(b"\0")),
        (b"\0trailing", frame(b"\0")),
        (get, refused("Get failed: not found")),
        (b"\x01\0\0\0\x09perf_test\0\0\0\x02\0\0\0\x05k1hello", frame(b"\x01")),
        (get, frame(b"\x02\0\0\0\x05hello")),
        (b"\x03\0\0\0\x09perf_test\0\0\0\x02k1", frame(b"\x01")),
        (b"\x03\0\0\0\x09perf_test\0\0\0\x02k1", frame(b"\x01")),
        (get, refused("Get failed: not found")),
        (b"\x02\0\0\0\x04nope\0\0\0\x01k", refused("Cache not found: nope")),
        (b"\x7F", refused("Unknown command: 0x7F")),
        (b"", refused("Empty buffer")),
        (b"\x01\0\0\0\x09perf_test\0\0\0\x05\0\0\0\x05kv", refused("Invalid PUT: expected 10 bytes, got 2")),
    ];
    // One by one, byte by byte, and all at once.
    for (payload, reply) in &steps {
        let request = frame(payload);
        for byte in &request {
            client.send(index, &[*byte]);
        }
        let mut told = Vec::new();
        client.wait_for("a reply", |client| {
            told.append(&mut client.take(index));
            (told.len() >= reply.len()).then_some(())
        });
        assert_eq!(told, *reply, "{payload:?}");
    }
    let all: Vec<_> = steps.iter().flat_map(|(payload, _)| frame(payload)).collect();
    let expected: Vec<_> = steps.iter().flat_map(|(_, reply)| reply.clone()).collect();
    client.send(index, &all);
    let mut told = Vec::new();
    client.wait_for("replies", |client| {
        told.append(&mut client.take(index));
        (told.len() >= expected.len()).then_some(())
    });
    assert_eq!(told, expected);
    let report = server.stop();
    let expected = CacheReport {
        connections: 1,
        pings: 4,
        puts: 2,
        gets: 6,
        hits: 2,
        deletes: 4,
        refusals: 8,
        ..CacheReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(report.operations(), 24);
}

fn values_of_any_size_come_back_in_order(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    let mut caller = Caller::connect(&mut client, server.endpoint());
    let longest = LONGEST_FRAME - 1 - 4 - "perf_test".len() - 8 - 1;
    let sizes = [0, 1, 100, 16 * 1024, 16 * 1024 + 1, 100_000, longest];
    let values: Vec<Vec<u8>> = sizes.iter().map(|size| vec![*size as u8; *size]).collect();
    let keys: Vec<[u8; 1]> = (0..sizes.len()).map(|key| [key as u8]).collect();
    let pairs = || keys.iter().zip(&values);
    let puts: Vec<_> = pairs().map(|(key, value)| (Operation::Put, &key[..], &value[..])).collect();
    assert!(caller.ask(&puts).iter().all(|(answer, _)| *answer == Answer::Done));
    // Pings among them: short replies must not overtake shared ones.
    let gets: Vec<_> = keys
        .iter()
        .flat_map(|key| [(Operation::Get, &key[..], &b""[..]), (Operation::Ping, &b""[..], &b""[..])])
        .collect();
    let told = caller.ask(&gets);
    for (number, value) in values.iter().enumerate() {
        assert_eq!(told[2 * number].0, Answer::Value);
        assert!(told[2 * number].1 == *value, "value of {} bytes", value.len());
        assert_eq!(told[2 * number + 1].0, Answer::Pong);
    }
}

fn what_is_too_long_or_no_frame_ends_a_connection(backend: KernelBackend) {
    let server = start(options(), backend);
    let mut client = Client::new();
    for bytes in [&(LONGEST_FRAME as u32 + 1).to_be_bytes()[..], b"GET / HTTP/1.1\r\n\r\n"] {
        let index = client.connect(server.endpoint());
        client.send(index, &[&frame(b"\0"), bytes].concat());
        client.end(index);
    }
    let report = server.stop();
    assert_eq!((report.pings, report.refused), (2, 2), "{report:?}");
}

fn a_half_closed_connection_is_answered(backend: KernelBackend) {
    let server = start(options(), backend);
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, &frame(b"\0")).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut told = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut told).unwrap();
    assert_eq!(told, frame(b"\0"));
}

fn several_threads_share_the_caches(backend: KernelBackend) {
    let server = start(CacheOptions { threads: 3, ..options() }, backend);
    let mut client = Client::new();
    Caller::connect(&mut client, server.endpoint()).put(b"k", b"v");
    for _ in 0..20 {
        assert_eq!(Caller::connect(&mut client, server.endpoint()).get(b"k"), Some(b"v".to_vec()));
    }
    let report = server.stop();
    assert_eq!((report.connections, report.puts, report.hits), (21, 1, 20), "{report:?}");
}

fn unfinished_frames_of_all_connections_share_a_bound(backend: KernelBackend) {
    let server = start(CacheOptions { max_bytes: 1 << 20, ..options() }, backend);
    let mut client = Client::new();
    // There is room for two of the longest frames. Of three, all but a byte comes.
    let whole = frame(&vec![0; LONGEST_FRAME]);
    let connections: Vec<usize> = (0..3).map(|_| client.connect(server.endpoint())).collect();
    for index in &connections {
        client.send(*index, &whole[..whole.len() - 1]);
    }
    let ended = client
        .wait_for("an end", |client| connections.iter().copied().find(|of| client.try_end(*of).is_some()));
    let text = "Out of memory: unfinished requests of all connections have 16777224 bytes";
    assert_eq!(client.take(ended), refused(text));
    // The others may go on, and there is room again.
    let again = client.connect(server.endpoint());
    for (index, rest) in connections
        .into_iter()
        .filter(|of| *of != ended)
        .map(|of| (of, &whole[whole.len() - 1..]))
        .chain([(again, &whole[..])])
    {
        client.send(index, rest);
        let mut told = Vec::new();
        client.wait_for("a reply", |client| {
            told.append(&mut client.take(index));
            (told.len() >= 5).then_some(())
        });
        assert_eq!(told, frame(b"\0"), "a PING");
    }
    let report = server.stop();
    assert_eq!((report.over_memory, report.refused, report.pings), (1, 0, 3));
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let server = start(options(), epoll());
    let Endpoint::Tcp(address) = server.endpoint() else { panic!("it listens on TCP") };
    Caller::connect(&mut Client::new(), server.endpoint()).put(b"k", &[7; 1 << 20]);
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let get = frame(b"\x02\0\0\0\x09perf_test\0\0\0\x01k");
    let sent = (0..100_000).take_while(|_| std::io::Write::write_all(&mut stream, &get).is_ok()).count();
    assert!(sent < 100_000, "nothing ends it");
    assert_eq!(server.stop().refused, 1);
}

#[test]
fn a_missing_key_is_told_as_the_description_says_if_that_is_asked_for() {
    let server = start(CacheOptions { not_found: true, ..options() }, epoll());
    let mut client = Client::new();
    let index = client.connect(server.endpoint());
    client.send(index, &frame(b"\x02\0\0\0\x09perf_test\0\0\0\x02k1"));
    let told = client.wait_for("a reply", |client| Some(client.take(index)).filter(|told| told.len() >= 5));
    assert_eq!(told, frame(b"\x03"));
}

/// A server that answers every GET with a lie of this kind.
fn injector(kind: LieKind) -> CacheServer {
    start(CacheOptions { lie: Some(Lie { kind, share: 1.0 }), ..options() }, epoll())
}

#[test]
fn a_injector_answers_with_wrong_values() {
    let server = injector(LieKind::Wrong);
    let mut client = Client::new();
    let mut caller = Caller::connect(&mut client, server.endpoint());
    caller.put(b"k", b"value");
    let told = caller.get(b"k").unwrap();
    assert!(told != b"value" && told.len() == 5, "{told:?}");
    assert_eq!(caller.get(b"none"), None, "a lie about what is not there would be no value at all");
    assert_eq!(server.stop().lies, 1);
}

#[test]
fn a_injector_answers_with_stale_values() {
    let server = injector(LieKind::Stale);
    let mut client = Client::new();
    let mut caller = Caller::connect(&mut client, server.endpoint());
    caller.put(b"k", b"one");
    assert_eq!(caller.get(b"k"), None);
    caller.put(b"k", b"two");
    assert_eq!(caller.get(b"k"), Some(b"one".to_vec()));
    assert_eq!(server.stop().lies, 2);
}

#[test]
fn a_injector_swaps_replies() {
    let server = injector(LieKind::Swapped);
    let mut client = Client::new();
    let mut caller = Caller::connect(&mut client, server.endpoint());
    caller.put(b"a", b"of a");
    caller.put(b"b", b"the value of b");
    let told = caller.ask(&[
        (Operation::Get, b"a", b""),
        (Operation::Ping, b"", b""),
        (Operation::Get, b"b", b""),
        (Operation::Get, b"b", b""),
    ]);
    let values: Vec<_> = told.iter().map(|(_, value)| value.escape_ascii().to_string()).collect();
    assert_eq!(values, ["the value of b", "", "of a", "of a"], "the last one found no partner");
    assert_eq!(server.stop().lies, 3);
}

#[test]
fn the_same_seed_tells_the_same_lies() {
    let told = |seed: u64| {
        let lie = Some(Lie { kind: LieKind::Wrong, share: 0.3 });
        let server = start(CacheOptions { lie, seed, ..options() }, epoll());
        let mut client = Client::new();
        let mut caller = Caller::connect(&mut client, server.endpoint());
        caller.put(b"k", b"v");
        let wrong: Vec<_> = (0..40).map(|_| caller.get(b"k") != Some(b"v".to_vec())).collect();
        let lies = wrong.iter().filter(|wrong| **wrong).count();
        assert_eq!(server.stop().lies, lies as u64);
        wrong
    };
    let first = told(1);
    assert_eq!(told(1), first);
    assert_ne!(told(2), first);
    assert!(first.contains(&true) && first.contains(&false));
}

#[test]
fn what_cannot_be_started_is_explained() {
    let message = |options| CacheServer::start(options, epoll()).unwrap_err();
    let taken = start(options(), epoll());
    let again = CacheOptions { listen: taken.endpoint().clone(), ..options() };
    let expected =
        format!("the server cannot listen on {}: Address already in use (os error 98)", taken.endpoint());
    assert_eq!(message(again).to_string(), expected);
    let http = CacheOptions { http: Some(taken.endpoint().clone()), ..options() };
    assert_eq!(message(http).to_string(), expected);
    assert!(matches!(message(CacheOptions { threads: 0, ..options() }), StartError::Options(_)));
}

#[test]
fn a_value_is_gone_after_its_time() {
    let server = start(CacheOptions { time_to_live: Nanos::from_millis(1), ..options() }, epoll());
    let mut client = Client::new();
    let mut caller = Caller::connect(&mut client, server.endpoint());
    caller.put(b"k", b"v");
    // However fast this machine is, the time has passed after this many round trips.
    assert!((0..1_000_000).any(|_| caller.get(b"k").is_none()));
}
