//! HTTP/2, beside HTTP/1.1 on the same port.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::KernelBackend;
use plimsoll_targets::{
    Action, Body, Delay, FaultModel, Faults, Intent, Reply, RequestId, SingleServer, Sink, SinkOptions,
    SlowData,
};
use plimsoll_testkit::on_every_backend;
use plimsoll_wire::http2::{ClientOptions, ErrorCode, PREFACE, StreamFailure};
use plimsoll_wire::tls::{ClientConfig, ClientOptions as TlsOptions, ServerConfig};

use crate::sink::client::{Client, End, connect_tls};
use crate::sink::http1::GET;
use crate::sink::streams::{Extra, Streams};
use crate::sink::{assert_identity, plain, replying, start};

on_every_backend! {
    counts_streams_in_exact_cbor,
    tells_persons_in_json,
    accepts_any_method_path_and_body,
    tells_the_protocols_apart_however_the_preface_comes,
    negotiates_by_alpn,
    ends_what_breaks_the_protocol,
    counts_over_all_threads,
    lets_streams_overtake_each_other,
    serves_the_streams_of_one_connection_serially,
    works_for_each_stream,
    drops_resets_refuses_and_fails_its_shares,
    fails_the_same_shares_of_many_streams_at_once,
    abandons_what_the_client_cancels,
    bears_with_clients_that_time_out,
    sends_large_bodies_whole,
    obeys_small_windows,
    sends_slow_bodies_in_pieces,
    goes_away_after_so_many_requests,
    stays_for_dropped_streams_when_it_goes_away,
    closes_connections_without_announcing_it,
    abandons_streams_at_the_stop,
}

fn connect(client: &mut Client, sink: &Sink) -> Streams {
    Streams::connect(client, sink.endpoint(), &ClientOptions::default())
}

/// Waits until the sink has read this many requests.
fn wait_for_count(client: &mut Client, sink: &Sink, count: u64) {
    while sink.counter() < count {
        let soon = client.now() + Nanos::from_millis(1);
        client.pump(soon);
    }
}

fn tells_persons_in_json(backend: KernelBackend) {
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let sink = start(SinkOptions { delay, ..plain() }, backend);
        let mut client = Client::new();
        let mut streams = connect(&mut client, &sink);
        for (path, accept, content_type) in [
            ("/", "*/*", "application/json"),
            ("/", "application/cbor", "application/cbor"),
            ("/api/v3/canister/a/query", "*/*", "application/cbor"),
        ] {
            let extra = Extra { fields: &[("accept", accept)], ..Extra::default() };
            let request = streams.request("GET", path, extra);
            let reply = streams.reply(&mut client, request);
            assert_eq!((reply.field("content-type"), reply.body.len()), (Some(content_type), 32), "{accept}");
        }
    }
}

fn counts_streams_in_exact_cbor(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    for round in 0..10 {
        let sent: Vec<_> = (0..64).map(|_| streams.get()).collect();
        for request in sent {
            let reply = streams.reply(&mut client, request);
            assert_eq!(reply.status, 200);
            assert_eq!(reply.field("content-type"), Some("application/cbor"));
            assert_eq!(reply.field("content-length"), Some("32"));
            assert_eq!(reply.body[..28], *b"\xa2fstatusgreplied\x65reply\xa1carg\x44");
            // Streams of one connection are read, and answered at once, in their order.
            assert_eq!(reply.counter(), request, "round {round}");
        }
    }
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied), (640, 640));
    assert_eq!((report.connections, report.http1_connections, report.http2_connections), (1, 0, 1));
    assert!(report.truth.iter().all(|row| row.status == Some(200)));
}

fn accepts_any_method_path_and_body(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let body = vec![b'x'; 3_000_000];
    let named = [("x-plimsoll-id", "4711")];
    let sent = [
        streams.request("POST", "/p", Extra { body: &body, fields: &named }),
        streams.request("BREW", "/", Extra { fields: &[("x-plimsoll-id", "a-b")], ..Extra::default() }),
        streams.request("HEAD", "/", Extra::default()),
        streams.request("DELETE", "*", Extra { body: b"y", ..Extra::default() }),
    ];
    let replies = sent.map(|request| streams.reply(&mut client, request));
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!((replies[2].body.len(), replies[2].field("content-length")), (0, Some("32")));
    let report = sink.stop();
    assert_identity(&report);
    // The first request ended last: its body took the longest.
    let ids: Vec<_> = report.truth.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids[0], RequestId::Text("a-b".into()));
    assert_eq!(ids[3], RequestId::Number(4711));
}

fn tells_the_protocols_apart_however_the_preface_comes(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let mut number = 0;
    // A preface in pieces of any size: the counter shows that nothing is lost.
    for size in (1..=PREFACE.len() + 9).chain([1000]) {
        let index = client.connect(sink.endpoint());
        let mut streams = Streams::silent(index, &ClientOptions::default());
        let request = streams.get();
        streams.unsent().chunks(size).for_each(|piece| client.send(index, piece));
        assert_eq!(streams.reply(&mut client, request).counter(), number);
        number += 1;
    }
    let of_http2 = u64::from(number);
    for begin in ["P /", "PR /", "PRI *", "PRINT /"] {
        let conn = client.connect(sink.endpoint());
        let request = format!("{begin} HTTP/1.1\r\nhost: a\r\n\r\n");
        request.as_bytes().chunks(1).for_each(|byte| client.send(conn, byte));
        assert_eq!(client.response(conn).counter(), number);
        number += 1;
    }
    // One that says nothing, and one that says too little, speak neither.
    let silent = client.connect(sink.endpoint());
    let short = client.connect(sink.endpoint());
    client.send(short, &PREFACE[..10]);
    client.close(silent);
    client.close(short);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.http1_connections, report.http2_connections), (4, of_http2));
    assert_eq!((report.replied, report.refused), (of_http2 + 4, 0));
}

fn negotiates_by_alpn(backend: KernelBackend) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let alpn = [b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = ServerConfig::new(cert.as_bytes(), key.as_bytes(), &alpn, None).unwrap();
    let config = |alpn: &[&[u8]]| {
        let alpn = alpn.iter().map(|name| name.to_vec()).collect();
        let ca_pem = vec![cert.clone().into_bytes()];
        ClientConfig::new(&TlsOptions { ca_pem, alpn, ..TlsOptions::default() }).unwrap()
    };
    for (delay, body) in [
        (Delay::None, Body::Counter),
        (Delay::Constant(Nanos::from_millis(1)), Body::Counter),
        (Delay::None, Body::Bytes(300_000)),
    ] {
        let reply = Reply { body: body.clone(), ..Reply::default() };
        let sink = start(SinkOptions { tls: Some(server.clone()), delay, ..replying(reply) }, backend);
        let mut client = Client::new();
        // Without ALPN, prior knowledge works over TLS, too.
        for offer in [&[&b"h2"[..], b"http/1.1"][..], &[b"h2"], &[]] {
            let mut streams = Streams::connect_tls(&mut client, sink.endpoint(), &config(offer));
            assert_eq!(client.alpn(streams.index), offer.first().copied());
            let sent: Vec<_> = (0..10).map(|_| streams.get()).collect();
            for request in sent {
                let reply = streams.reply(&mut client, request);
                assert_eq!(reply.body.len(), if body == Body::Counter { 32 } else { 300_000 });
            }
        }
        for offer in [&[&b"http/1.1"[..]][..], &[]] {
            let conn = connect_tls(&mut client, sink.endpoint(), &config(offer));
            assert_eq!(client.alpn(conn), offer.first().copied());
            client.send(conn, GET);
            assert_eq!(client.response(conn).status, 200);
        }
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.replied, report.refused), (32, 0));
        assert_eq!((report.http1_connections, report.http2_connections), (2, 3));
    }
}

fn ends_what_breaks_the_protocol(backend: KernelBackend) {
    let sink = start(SinkOptions { delay: Delay::Constant(Nanos::from_secs(3600)), ..plain() }, backend);
    let mut client = Client::new();
    // A preface that goes wrong behind its first line, and DATA on stream 0.
    for bytes in [&b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..], b"\0\0\x01\0\0\0\0\0\0x"] {
        let index = client.connect(sink.endpoint());
        let mut streams = Streams::silent(index, &ClientOptions::default());
        let mut said = Vec::new();
        if !bytes.starts_with(b"PRI") {
            streams.get();
            said = streams.unsent();
        }
        said.extend_from_slice(bytes);
        client.send(index, &said);
        assert_eq!(client.end(index), End::Closed);
        streams.receive(&mut client);
        assert_eq!(streams.went_away().map(|away| away.0), Some(ErrorCode::ProtocolError));
    }
    let report = sink.stop();
    assert_identity(&report);
    // The request before the violation was read, and nobody waits an hour for its reply.
    assert_eq!((report.counter, report.abandoned, report.refused), (1, 1, 2));
}

fn counts_over_all_threads(backend: KernelBackend) {
    let sink = start(SinkOptions { threads: 3, ..plain() }, backend);
    let mut client = Client::new();
    let mut all: Vec<_> = (0..12).map(|_| connect(&mut client, &sink)).collect();
    let plain: Vec<_> = (0..12).map(|_| client.connect(sink.endpoint())).collect();
    let mut counters = Vec::new();
    for _ in 0..5 {
        for streams in &mut all {
            let sent: Vec<_> = (0..8).map(|_| streams.get()).collect();
            counters.extend(sent.into_iter().map(|request| streams.reply(&mut client, request).counter()));
        }
        plain.iter().for_each(|&conn| client.send(conn, GET));
        counters.extend(plain.iter().map(|&conn| client.response(conn).counter()));
    }
    counters.sort_unstable();
    assert_eq!(counters, (0..540).collect::<Vec<_>>());
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.connections), (540, 24));
    assert_eq!((report.http1_connections, report.http2_connections), (12, 12));
}

fn lets_streams_overtake_each_other(backend: KernelBackend) {
    let delay =
        Delay::Bimodal { first: Nanos::from_millis(1), second: Nanos::from_secs(3600), share_of_second: 0.5 };
    let options = SinkOptions { delay, ..plain() };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..40).map(|_| streams.get()).collect();
    let quick = |number: u32| law.fate(u64::from(number)).service < Nanos::from_secs(1);
    let expected: Vec<_> = sent.into_iter().filter(|&request| quick(request)).collect();
    assert!(
        expected.len() > 5 && expected.last() > Some(&30) && expected.first() < Some(&10),
        "{expected:?}"
    );
    for &request in &expected {
        assert_eq!(streams.reply(&mut client, request).counter(), request);
    }
    assert_eq!(streams.active() as usize, 40 - expected.len());
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied), (40, expected.len() as u64));
}

fn serves_the_streams_of_one_connection_serially(backend: KernelBackend) {
    let service = Nanos::from_millis(2);
    let options = SinkOptions { delay: Delay::Constant(service), per_connection_serial: true, ..plain() };
    let sink = start(options, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..20).map(|_| streams.get()).collect();
    for request in sent {
        assert_eq!(streams.reply(&mut client, request).counter(), request);
    }
    let report = sink.stop();
    assert_identity(&report);
    let mut server = SingleServer::default();
    for row in &report.truth {
        let due = server.admit(row.recv, service);
        assert!(row.reply.unwrap() >= due, "{row:?} was answered before {due:?}");
    }
}

fn works_for_each_stream(backend: KernelBackend) {
    let work = Nanos::from_millis(1);
    let sink = start(SinkOptions { work, ..plain() }, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..30).map(|_| streams.get()).collect();
    for request in sent {
        assert_eq!(streams.reply(&mut client, request).counter(), request);
    }
    let report = sink.stop();
    assert_identity(&report);
    // Each was sent by itself, after its own work.
    let sent: Vec<_> = report.truth.iter().map(|row| row.reply.unwrap()).collect();
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= work), "{sent:?}");
}

fn faults() -> Faults {
    Faults { drop: 0.05, reset: 0.05, refuse: 0.05, statuses: vec![(503, 0.1)], ..Faults::default() }
}

const RESET: StreamFailure = StreamFailure::Reset(ErrorCode::InternalError);

fn drops_resets_refuses_and_fails_its_shares(backend: KernelBackend) {
    for delay in [Delay::None, Delay::Constant(Nanos::from_micros(200))] {
        let options = SinkOptions { faults: faults(), delay, ..plain() };
        let law = FaultModel::new(&options);
        let sink = start(options, backend);
        let mut client = Client::new();
        let mut streams = connect(&mut client, &sink);
        let mut dropped = Vec::new();
        let (mut ok, mut failed, mut resets, mut refusals) = (0, 0, 0, 0);
        for number in 0..400_u32 {
            let request = streams.get();
            // One request at a time, all on one connection: the law says what happens to each.
            let intent = law.fate(u64::from(number)).intent;
            if intent == Intent::Drop {
                streams.flush(&mut client);
                wait_for_count(&mut client, &sink, u64::from(number) + 1);
                dropped.push(request);
                continue;
            }
            match (intent, streams.wait(&mut client, request)) {
                (Intent::Reply, Ok(reply)) => {
                    assert_eq!((reply.status, reply.counter()), (200, number));
                    ok += 1;
                }
                (Intent::Status(status), Ok(reply)) => {
                    assert_eq!((reply.status, reply.counter()), (status, number));
                    failed += 1;
                }
                (Intent::Reset, Err(failure)) => {
                    assert_eq!(failure, RESET);
                    resets += 1;
                }
                (Intent::Refuse, Err(failure)) => {
                    assert_eq!(failure, StreamFailure::Refused);
                    refusals += 1;
                }
                (intent, end) => panic!("{intent:?} became {end:?}"),
            }
        }
        // The dropped ones are still open, until the client gives them up.
        assert_eq!(streams.active() as usize, dropped.len());
        assert!(dropped.iter().all(|&request| streams.try_end(request).is_none()));
        dropped.iter().for_each(|&request| streams.cancel(request));
        let last = streams.get();
        let _ = streams.wait(&mut client, last);
        let report = sink.stop();
        assert_identity(&report);
        match law.fate(400).intent {
            Intent::Reply => ok += 1,
            other => panic!("take another seed: {other:?}"),
        }
        assert_eq!((report.replied, report.statuses), (ok, failed));
        assert_eq!((report.resets, report.refusals), (resets, refusals));
        assert_eq!((report.dropped, report.cancelled), (dropped.len() as u64, dropped.len() as u64));
        assert_eq!((report.counter, report.abandoned, report.connections), (401, 0, 1));
        assert!(ok > 0 && failed > 0 && resets > 0 && refusals > 0 && !dropped.is_empty());
        let refused = report.truth.iter().filter(|row| row.action == Action::Refused && row.reply.is_none());
        assert_eq!(refused.count() as u64, refusals);
    }
}

fn fails_the_same_shares_of_many_streams_at_once(backend: KernelBackend) {
    let delay = Delay::Exponential { mean: Nanos::from_micros(300) };
    let options = SinkOptions { faults: faults(), delay, ..plain() };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    let mut client = Client::new();
    let mut all: Vec<_> = (0..4).map(|_| connect(&mut client, &sink)).collect();
    for streams in &mut all {
        (0..100).for_each(|_| _ = streams.get());
        streams.flush(&mut client);
    }
    let count = |wanted: Intent| (0..400).filter(|&number| law.fate(number).intent == wanted).count();
    let drops = count(Intent::Drop);
    let (mut ok, mut failed, mut reset, mut refused) = (0, 0, 0, 0);
    while ok + failed + reset + refused + drops < 400 {
        for streams in &mut all {
            streams.receive(&mut client);
            for end in (0..100).filter_map(|request| streams.try_end(request)) {
                match end {
                    Ok(reply) if reply.status == 200 => ok += 1,
                    Ok(_) => failed += 1,
                    Err(RESET) => reset += 1,
                    Err(StreamFailure::Refused) => refused += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
        let soon = client.now() + Nanos::from_millis(10);
        client.pump(soon);
    }
    assert_eq!((ok, failed), (count(Intent::Reply), count(Intent::Status(503))));
    assert_eq!((reset, refused), (count(Intent::Reset), count(Intent::Refuse)));
    // A connection that ends takes its dropped streams with it; they are dropped, not abandoned.
    all.iter().for_each(|streams| client.close(streams.index));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.dropped as usize, report.abandoned), (drops, 0));
}

fn abandons_what_the_client_cancels(backend: KernelBackend) {
    let sink = start(SinkOptions { delay: Delay::Constant(Nanos::from_millis(20)), ..plain() }, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..10).map(|_| streams.get()).collect();
    streams.flush(&mut client);
    sent.iter().filter(|&&request| request % 2 == 0).for_each(|&request| streams.cancel(request));
    for request in sent.into_iter().filter(|request| request % 2 == 1) {
        assert_eq!(streams.reply(&mut client, request).counter(), request);
    }
    // At once, and in one piece with its request: there is nothing left to answer.
    let quick = start(plain(), backend);
    let mut other = connect(&mut client, &quick);
    let request = other.get();
    other.cancel(request);
    let request = other.get();
    assert_eq!(other.reply(&mut client, request).status, 200);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied, report.abandoned, report.cancelled), (10, 5, 5, 5));
    let abandoned = report.truth.iter().filter(|row| row.action == Action::Abandoned);
    assert!(abandoned.clone().all(|row| row.number % 2 == 0) && abandoned.count() == 5);
    let report = quick.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.abandoned, report.cancelled), (1, 1, 1));
}

fn bears_with_clients_that_time_out(backend: KernelBackend) {
    let faults = Faults { drop: 1.0, ..Faults::default() };
    let sink = start(SinkOptions { faults, ..plain() }, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let (rounds, at_once) = (110, 100);
    for round in 1..=rounds {
        let sent: Vec<_> = (0..at_once).map(|_| streams.get()).collect();
        streams.flush(&mut client);
        wait_for_count(&mut client, &sink, round * at_once);
        sent.into_iter().for_each(|request| streams.cancel(request));
    }
    streams.flush(&mut client);
    let request = streams.get();
    streams.flush(&mut client);
    wait_for_count(&mut client, &sink, rounds * at_once + 1);
    streams.receive(&mut client);
    assert_eq!((streams.went_away(), streams.try_end(request).is_none()), (None, true));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.dropped, report.cancelled), (rounds * at_once + 1, rounds * at_once));
}

fn sends_large_bodies_whole(backend: KernelBackend) {
    let fixed: Arc<[u8]> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let reply = Reply { body: Body::Fixed(Arc::clone(&fixed)), ..Reply::default() };
    let faults = Faults { statuses: vec![(503, 0.3)], ..Faults::default() };
    let options = SinkOptions { faults, ..replying(reply) };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..12).map(|_| streams.get()).collect();
    for request in sent {
        let reply = streams.reply(&mut client, request);
        let failed = law.fate(u64::from(request)).intent != Intent::Reply;
        assert_eq!(reply.status, if failed { 503 } else { 200 });
        assert!(reply.body == *fixed, "{} bytes, or others", reply.body.len());
    }
    let head = streams.request("HEAD", "/", Extra::default());
    assert_eq!(streams.reply(&mut client, head).field("content-length"), Some("3000000"));
    // Replies that have begun when their client leaves are abandoned.
    let options = ClientOptions { stream_window: 100_000, ..ClientOptions::default() };
    let mut leaves = Streams::connect(&mut client, sink.endpoint(), &options);
    (0..12).for_each(|_| _ = leaves.get());
    leaves.flush(&mut client);
    wait_for_count(&mut client, &sink, 25);
    client.close(leaves.index);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied + report.statuses, report.abandoned), (13, 12), "{report:?}");
}

fn obeys_small_windows(backend: KernelBackend) {
    // Inline and shared bodies; windows far below them.
    for length in [10_000_u32, 100_000] {
        let fixed: Arc<[u8]> = (0..length).map(|i| (i % 251) as u8).collect();
        let sink =
            start(replying(Reply { body: Body::Fixed(Arc::clone(&fixed)), ..Reply::default() }), backend);
        let mut client = Client::new();
        let options = ClientOptions { stream_window: 999, connection_window: 65_535, ..Default::default() };
        let mut streams = Streams::connect(&mut client, sink.endpoint(), &options);
        let sent: Vec<_> = (0..80).map(|_| streams.get()).collect();
        for request in sent {
            let reply = streams.reply(&mut client, request);
            assert!(reply.body == *fixed, "{} bytes, or others", reply.body.len());
            assert!(streams.pieces(request) > (length / 999) as usize, "{}", streams.pieces(request));
        }
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!(report.replied, 80);
    }
}

fn sends_slow_bodies_in_pieces(backend: KernelBackend) {
    let (every, bytes) = (Nanos::from_millis(4), 10);
    let slow = Some(SlowData { bytes, every });
    let sink = start(replying(Reply { slow, ..Reply::default() }), backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..5).map(|_| streams.get()).collect();
    let head = streams.request("HEAD", "/", Extra::default());
    assert_eq!(streams.reply(&mut client, head).body, b"");
    for &request in &sent {
        assert_eq!(streams.reply(&mut client, request).counter(), request);
        assert_eq!(streams.pieces(request), 4);
    }
    // One that is given up after its first piece is abandoned.
    let request = streams.get();
    streams.flush(&mut client);
    client.wait_for("a piece", |client| {
        streams.receive(client);
        (streams.pieces(request) > 0).then_some(())
    });
    streams.cancel(request);
    let request = streams.get();
    assert_eq!(streams.reply(&mut client, request).counter(), 7);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.abandoned, report.cancelled), (7, 1, 1));
    for row in report.truth.iter().filter(|row| row.number < 5) {
        assert!(row.reply.unwrap() >= row.recv + every * 3, "{row:?}");
    }
}

fn goes_away_after_so_many_requests(backend: KernelBackend) {
    let faults = Faults { go_away_after: Some(3), ..Faults::default() };
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(5))] {
        let sink = start(SinkOptions { faults: faults.clone(), delay, ..plain() }, backend);
        let mut client = Client::new();
        let mut streams = connect(&mut client, &sink);
        let first = streams.get();
        assert_eq!(streams.reply(&mut client, first).counter(), 0);
        assert_eq!(streams.went_away(), None);
        // Requests in the same piece as the last one are served; these two are sent together, and nothing
        // after them.
        let sent = [streams.get(), streams.get()];
        for request in sent {
            assert_eq!(streams.reply(&mut client, request).status, 200);
        }
        assert_eq!(client.end(streams.index), End::Closed);
        streams.receive(&mut client);
        assert_eq!(streams.went_away(), Some((ErrorCode::NoError, 0)));
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.counter, report.replied, report.refused), (3, 3, 0));
    }
    // Streams behind the last one are left unprocessed, whenever they come.
    let delay = Delay::Constant(Nanos::from_millis(50));
    let sink = start(SinkOptions { faults, delay, ..plain() }, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent: Vec<_> = (0..3).map(|_| streams.get()).collect();
    streams.flush(&mut client);
    wait_for_count(&mut client, &sink, 3);
    let late = streams.get();
    assert_eq!(streams.wait(&mut client, late).unwrap_err(), StreamFailure::Unprocessed);
    assert!(sent.into_iter().all(|request| streams.reply(&mut client, request).status == 200));
    assert_eq!(client.end(streams.index), End::Closed);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied), (3, 3));
}

fn stays_for_dropped_streams_when_it_goes_away(backend: KernelBackend) {
    let faults = Faults { drop: 1.0, go_away_after: Some(2), ..Faults::default() };
    let sink = start(SinkOptions { faults, ..plain() }, backend);
    let mut client = Client::new();
    let mut streams = connect(&mut client, &sink);
    let sent = [streams.get(), streams.get()];
    streams.flush(&mut client);
    client.wait_for("a GOAWAY", |client| {
        streams.receive(client);
        streams.went_away()
    });
    assert_eq!(client.try_end(streams.index), None);
    // Once the client has given the streams up, nothing keeps the connection open.
    sent.into_iter().for_each(|request| streams.cancel(request));
    streams.flush(&mut client);
    assert_eq!(client.end(streams.index), End::Closed);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.dropped, report.cancelled), (2, 2));
}

fn closes_connections_without_announcing_it(backend: KernelBackend) {
    let faults = Faults { close_idle_after: Some(3), ..Faults::default() };
    // Small windows: begun replies are sent before the connection is closed.
    let options = ClientOptions { stream_window: 100, ..Default::default() };
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let reply = Reply { body: Body::Bytes(5000), ..Reply::default() };
        let sink = start(SinkOptions { faults: faults.clone(), delay, ..replying(reply) }, backend);
        let mut client = Client::new();
        for _ in 0..3 {
            let mut streams = Streams::connect(&mut client, sink.endpoint(), &options);
            let sent: Vec<_> = (0..3).map(|_| streams.get()).collect();
            for request in sent {
                assert_eq!(streams.reply(&mut client, request).body.len(), 5000);
            }
            assert_eq!(client.end(streams.index), End::Closed);
            streams.receive(&mut client);
            assert_eq!((streams.went_away(), streams.body_bytes()), (None, 0));
        }
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.counter, report.replied, report.connections), (9, 9, 3));
    }
}

fn abandons_streams_at_the_stop(backend: KernelBackend) {
    let sink = start(SinkOptions { delay: Delay::Constant(Nanos::from_secs(3600)), ..plain() }, backend);
    let mut client = Client::new();
    let (mut stays, mut leaves) = (connect(&mut client, &sink), connect(&mut client, &sink));
    for streams in [&mut stays, &mut leaves] {
        (0..3).for_each(|_| _ = streams.get());
        streams.flush(&mut client);
    }
    wait_for_count(&mut client, &sink, 6);
    client.close(leaves.index);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.abandoned), (6, 6));
    assert_ne!(client.end(stays.index), End::Reset);
}
