//! HTTP/1.1, and behaviour that does not depend on the protocol.

use std::sync::Arc;

use plimsoll_core::{Nanos, Rate};
use plimsoll_driver::{Endpoint, KernelBackend};
use plimsoll_targets::{
    Action, Body, Delay, FaultModel, Faults, Freeze, Intent, Reply, RequestId, SingleServer, SinkOptions,
    SinkReport, SlowData, TokenServer, Truth,
};
use plimsoll_testkit::on_every_backend;
use plimsoll_wire::tls::{ClientConfig, ClientOptions, ServerConfig};

use crate::sink::client::{Client, End, connect_tls};
use crate::sink::{assert_identity, plain, replying, start};

pub(crate) const GET: &[u8] = b"GET /any?x=1 HTTP/1.1\r\nhost: sink\r\n\r\n";

on_every_backend! {
    counts_from_zero_in_exact_cbor,
    tells_persons_in_json,
    accepts_any_method_target_and_body,
    keeps_the_order_of_pipelined_requests,
    closes_when_asked_and_says_so,
    answers_expect_continue,
    refuses_what_is_not_http,
    sends_large_bodies_whole,
    counts_over_all_threads_without_gaps,
    speaks_tls,
    listens_on_a_unix_socket,
    delays_by_the_drawn_time,
    serves_one_queue,
    serves_a_fixed_capacity,
    serves_each_connection_serially,
    keeps_the_order_of_delayed_pipelined_requests,
    is_silent_in_a_freeze,
    drops_resets_and_fails_its_shares,
    answers_nothing_behind_a_dropped_reply,
    sends_slow_bodies_in_pieces,
    announces_the_end_of_a_connection,
    works_for_each_reply,
    cuts_off_a_client_that_does_not_read,
    closes_connections_without_announcing_it,
    writes_its_log_to_one_file,
    stops_after_its_duration,
    abandons_what_is_unanswered_at_the_stop,
}

/// `requests` requests over `connections` connections, one outstanding on each; every one is answered.
fn closed_load(client: &mut Client, to: &Endpoint, connections: usize, requests: usize) {
    let all: Vec<_> = (0..connections).map(|_| client.connect(to)).collect();
    all.iter().for_each(|&conn| client.send(conn, GET));
    let (mut sent, mut answered) = (connections, 0);
    while answered < requests {
        for &conn in &all {
            if client.try_response(conn).is_some() {
                answered += 1;
                if sent < requests {
                    client.send(conn, GET);
                    sent += 1;
                }
            }
            assert_eq!(client.try_end(conn), None);
        }
        if answered < requests {
            let patience = client.now() + Nanos::from_secs(1);
            client.pump(patience);
        }
    }
}

/// Symptom: the answer to somebody's first curl was CBOR.
fn tells_persons_in_json(backend: KernelBackend) {
    let paced = SinkOptions { delay: Delay::Constant(Nanos::from_millis(1)), ..plain() };
    let fixed = replying(Reply { body: Body::Cbor, ..Reply::default() });
    for (options, tells) in [(plain(), true), (paced, true), (fixed, false)] {
        let sink = start(options, backend);
        let mut client = Client::new();
        let conn = client.connect(sink.endpoint());
        for (number, (line, accept, json)) in [
            ("GET /", "accept: */*\r\n", true),
            ("POST /a", "Accept: application/json\r\n", true),
            ("GET /", "", false),
            ("POST /a", "accept: */*\r\n", false),
            ("GET /", "accept: application/cbor\r\n", false),
            ("GET /api/v2/status", "accept: */*\r\n", false),
        ]
        .into_iter()
        .enumerate()
        {
            client.send(conn, format!("{line} HTTP/1.1\r\nhost: a\r\n{accept}\r\n").as_bytes());
            let response = client.response(conn);
            if json && tells {
                let text = String::from_utf8(response.body).unwrap();
                assert!(response.head.contains("content-type: application/json\r\n"), "{}", response.head);
                assert!(text.len() == 32 && text.starts_with(&format!("{{\"counter\":{number} ")), "{text}");
            } else {
                assert!(response.head.contains("content-type: application/cbor\r\n"), "{}", response.head);
                assert_eq!(response.counter(), number as u32, "{line} {accept}");
            }
        }
    }
}

fn counts_from_zero_in_exact_cbor(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    for number in 0..300_u32 {
        client.send(conn, GET);
        let response = client.response(conn);
        assert_eq!(response.status, 200);
        assert!(response.head.contains("content-type: application/cbor\r\n"), "{}", response.head);
        assert_eq!(response.body[..28], *b"\xa2fstatusgreplied\x65reply\xa1carg\x44");
        assert_eq!(response.counter(), number);
    }
    assert_eq!(sink.counter(), 300);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied, report.connections), (300, 300, 1));
    assert!(report.truth.iter().all(|row| row.reply.unwrap() > row.recv && row.status == Some(200)));
}

fn accepts_any_method_target_and_body(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, b"DELETE * HTTP/1.1\r\nhost: a\r\nx-plimsoll-id: 4711\r\n\r\n");
    assert_eq!(client.response(conn).counter(), 0);
    client.send(conn, b"POST /p HTTP/1.1\r\nhost: a\r\nx-plimsoll-id: a-b\r\ncontent-length: 5\r\n\r\nGET /");
    assert_eq!(client.response(conn).counter(), 1);
    client.send(
        conn,
        b"BREW /p HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert_eq!(client.response(conn).counter(), 2);
    client.send(conn, b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n");
    let head = client.head_response(conn);
    assert!(head.head.contains("content-length: 32"), "{}", head.head);
    client.send(conn, GET);
    assert_eq!(client.response(conn).counter(), 4, "HEAD was answered without a body");
    let report = sink.stop();
    assert_identity(&report);
    let ids: Vec<_> = report.truth.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids[..3], [RequestId::Number(4711), RequestId::Text("a-b".into()), RequestId::Number(2)]);
}

fn keeps_the_order_of_pipelined_requests(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    let mut batch = GET.repeat(200);
    let rest = batch.split_off(GET.len() * 100 + 9);
    client.send(conn, &batch);
    (0..100).for_each(|number| assert_eq!(client.response(conn).counter(), number));
    client.send(conn, &rest);
    (100..200).for_each(|number| assert_eq!(client.response(conn).counter(), number));
    assert_identity(&sink.stop());
}

fn closes_when_asked_and_says_so(backend: KernelBackend) {
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(2))] {
        let sink = start(SinkOptions { delay, ..plain() }, backend);
        let mut client = Client::new();
        let conn = client.connect(sink.endpoint());
        client.send(conn, b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let response = client.response(conn);
        assert!(response.head.contains("connection: close\r\n"), "{}", response.head);
        assert_eq!(client.end(conn), End::Closed);
        let conn = client.connect(sink.endpoint());
        client.send(conn, b"GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.response(conn).counter(), 1);
        assert_eq!(client.end(conn), End::Closed);
        let conn = client.connect(sink.endpoint());
        for _ in 0..2 {
            client.send(conn, b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
            assert!(client.response(conn).head.contains("connection: keep-alive\r\n"));
        }
        assert_identity(&sink.stop());
    }
}

fn answers_expect_continue(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(client.response(conn).status, 100);
    client.send(conn, b"abc");
    assert_eq!(client.response(conn).counter(), 0);
    assert_identity(&sink.stop());
}

fn refuses_what_is_not_http(backend: KernelBackend) {
    let sink = start(plain(), backend);
    let mut client = Client::new();
    for (bytes, status) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
    ] {
        let conn = client.connect(sink.endpoint());
        client.send(conn, bytes);
        let response = client.response(conn);
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.head.contains("connection: close\r\n"));
        client.end(conn);
    }
    // A good request before the bad one is answered first.
    let conn = client.connect(sink.endpoint());
    client.send(conn, &[GET, b"\0\0\0\0\r\n\r\n"].concat());
    assert_eq!(client.response(conn).counter(), 0);
    assert_eq!(client.response(conn).status, 400);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.refused), (1, 4));
}

fn sends_large_bodies_whole(backend: KernelBackend) {
    let fixed: Arc<[u8]> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let body = Body::Fixed(Arc::clone(&fixed));
    let reply = Reply { status: 201, content_type: "text/x".to_owned(), body, slow: None };
    let sink = start(replying(reply), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, &GET.repeat(3));
    for _ in 0..3 {
        let response = client.response(conn);
        assert_eq!(response.status, 201);
        assert!(response.head.contains("content-type: text/x\r\n"));
        assert!(response.body == *fixed, "{} bytes, or others", response.body.len());
    }
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!(report.replied, 3);
}

fn counts_over_all_threads_without_gaps(backend: KernelBackend) {
    let sink = start(SinkOptions { threads: 3, ..plain() }, backend);
    let mut client = Client::new();
    let conns: Vec<_> = (0..24).map(|_| client.connect(sink.endpoint())).collect();
    let mut counters = Vec::new();
    for _ in 0..20 {
        conns.iter().for_each(|&conn| client.send(conn, GET));
        counters.extend(conns.iter().map(|&conn| client.response(conn).counter()));
    }
    counters.sort_unstable();
    assert_eq!(counters, (0..480).collect::<Vec<_>>());
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.connections), (480, 24));
}

fn speaks_tls(backend: KernelBackend) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = ServerConfig::new(cert.as_bytes(), key.as_bytes(), &[b"http/1.1".to_vec()], None).unwrap();
    let client_options = ClientOptions {
        ca_pem: vec![cert.into_bytes()],
        alpn: vec![b"http/1.1".to_vec()],
        ..ClientOptions::default()
    };
    let config = ClientConfig::new(&client_options).unwrap();
    for (delay, body) in [
        (Delay::None, Body::Counter),
        (Delay::Constant(Nanos::from_millis(1)), Body::Counter),
        (Delay::None, Body::Bytes(300_000)),
    ] {
        let reply = Reply { body: body.clone(), ..Reply::default() };
        let sink = start(SinkOptions { tls: Some(server.clone()), delay, ..replying(reply) }, backend);
        let mut client = Client::new();
        let conn = connect_tls(&mut client, sink.endpoint(), &config);
        client.send(conn, &GET.repeat(10));
        for number in 0..10 {
            let response = client.response(conn);
            match body {
                Body::Counter => assert_eq!(response.counter(), number),
                _ => assert_eq!(response.body, [b'x'; 300_000]),
            }
        }
        client.send(conn, b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        client.response(conn);
        assert_eq!(client.end(conn), End::Closed);
        // Someone without TLS gets no reply, and nothing is counted.
        let conn = client.connect(sink.endpoint());
        client.send(conn, GET);
        client.end(conn);
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.counter, report.refused), (11, 1));
    }
}

fn listens_on_a_unix_socket(backend: KernelBackend) {
    let path = format!("{}/sink-{}.sock", env!("CARGO_TARGET_TMPDIR"), backend.name());
    let sink = start(SinkOptions { listen: Endpoint::Unix(path.clone().into()), ..plain() }, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, GET);
    assert_eq!(client.response(conn).counter(), 0);
    assert_identity(&sink.stop());
    assert!(!std::path::Path::new(&path).exists(), "the socket's file is gone");
}

/// Returns the lateness of each row's answer after `due`, sorted. Panics if a row is early.
fn overshoots(report: &SinkReport, mut due: impl FnMut(&plimsoll_targets::TruthRow) -> Nanos) -> Vec<Nanos> {
    let mut late: Vec<_> = report
        .truth
        .iter()
        .map(|row| {
            let (reply, due) = (row.reply.unwrap(), due(row));
            assert!(reply >= due, "{row:?} was answered before {due:?}");
            reply - due
        })
        .collect();
    late.sort_unstable();
    late
}

/// Most replies leave within 2 ms of their time. The median, because a machine that is busy with other tests
/// takes the processor away for longer than that; lateness that accumulated would move the median, too.
fn assert_punctual(late: &[Nanos]) {
    assert!(late[late.len() / 2] < Nanos::from_millis(2), "{:?}", &late[late.len() / 2..]);
}

fn delays_by_the_drawn_time(backend: KernelBackend) {
    for delay in [
        Delay::Constant(Nanos::from_millis(2)),
        Delay::Exponential { mean: Nanos::from_millis(3) },
        Delay::Lognormal { median: Nanos::from_millis(3), sigma: 0.8 },
        Delay::Bimodal { first: Nanos::from_millis(1), second: Nanos::from_millis(20), share_of_second: 0.1 },
    ] {
        let options = SinkOptions { delay, ..plain() };
        let law = FaultModel::new(&options);
        let sink = start(options, backend);
        closed_load(&mut Client::new(), sink.endpoint(), 8, 400);
        let report = sink.stop();
        assert_identity(&report);
        let late = overshoots(&report, |row| row.recv + law.fate(row.number).service);
        assert_punctual(&late);
        if let Delay::Exponential { mean } = delay {
            let mut taken: Vec<_> = report.truth.iter().map(|row| row.reply.unwrap() - row.recv).collect();
            taken.sort_unstable();
            let n = taken.len() as f64;
            let distance = taken.iter().enumerate().map(|(i, &time)| {
                let cdf = 1.0 - (-(time.0 as f64) / mean.0 as f64).exp();
                (cdf - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf).abs())
            });
            // Kolmogorov-Smirnov: 1.95 / sqrt(400) = 0.098 at the level 0.001, and as much again for
            // overshoots.
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 0.2, "{distance}");
        }
    }
}

fn serves_one_queue(backend: KernelBackend) {
    let delay = Delay::Exponential { mean: Nanos::from_millis(1) };
    let options = SinkOptions { delay, queue: true, ..plain() };
    let law = FaultModel::new(&options);
    let sink = start(options, backend);
    closed_load(&mut Client::new(), sink.endpoint(), 6, 500);
    let report = sink.stop();
    assert_identity(&report);
    let mut server = SingleServer::default();
    let late = overshoots(&report, |row| server.admit(row.recv, law.fate(row.number).service));
    assert_punctual(&late);
}

fn serves_a_fixed_capacity(backend: KernelBackend) {
    let rate = Rate::per_second(600);
    let sink = start(SinkOptions { capacity: Some(rate), ..plain() }, backend);
    closed_load(&mut Client::new(), sink.endpoint(), 6, 300);
    let report = sink.stop();
    assert_identity(&report);
    let mut server = TokenServer::new(rate);
    let late = overshoots(&report, |row| server.admit(row.recv));
    assert_punctual(&late);
    let span = report.truth.last().unwrap().reply.unwrap() - report.truth[0].recv;
    assert!(span >= rate.arrival_at(299), "300 requests at 600/s took {span:?}");
}

fn serves_each_connection_serially(backend: KernelBackend) {
    let service = Nanos::from_millis(5);
    let options = SinkOptions { delay: Delay::Constant(service), per_connection_serial: true, ..plain() };
    let sink = start(options, backend);
    let mut client = Client::new();
    let (one, other) = (client.connect(sink.endpoint()), client.connect(sink.endpoint()));
    client.send(one, &GET.repeat(10));
    client.send(other, b"GET / HTTP/1.1\r\nhost: a\r\nx-plimsoll-id: other\r\n\r\n");
    (0..10).for_each(|_| drop(client.response(one)));
    client.response(other);
    let report = sink.stop();
    assert_identity(&report);
    // Which of the connections is read first is open, so the rows are distinguished by their id.
    let (mut of_one, mut of_other) = (SingleServer::default(), SingleServer::default());
    let late = overshoots(&report, |row| {
        let is_other = row.id == RequestId::Text("other".into());
        let server = if is_other { &mut of_other } else { &mut of_one };
        server.admit(row.recv, service)
    });
    assert_punctual(&late);
    let other = report.truth.iter().find(|row| row.id == RequestId::Text("other".into())).unwrap();
    assert!(other.reply.unwrap() - other.recv < service * 5, "it did not wait for the other connection");
}

fn keeps_the_order_of_delayed_pipelined_requests(backend: KernelBackend) {
    let delay = Delay::Exponential { mean: Nanos::from_millis(2) };
    let sink = start(SinkOptions { delay, ..plain() }, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, &GET.repeat(60));
    client.send(conn, b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n");
    (0..60).for_each(|number| assert_eq!(client.response(conn).counter(), number));
    assert_eq!(client.response(conn).status, 100, "after the replies before it");
    client.send(conn, b"x");
    assert_eq!(client.response(conn).counter(), 60);
    assert_identity(&sink.stop());
}

fn is_silent_in_a_freeze(backend: KernelBackend) {
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let freeze = Freeze { at: Nanos::from_millis(100), length: Nanos::from_millis(200) };
        let sink = start(SinkOptions { freezes: vec![freeze], delay, ..plain() }, backend);
        let (begin, end) = (sink.started() + freeze.at, sink.started() + freeze.at + freeze.length);
        let mut client = Client::new();
        let conns: Vec<_> = (0..2).map(|_| client.connect(sink.endpoint())).collect();
        while client.now() < end + Nanos::from_millis(20) {
            conns.iter().for_each(|&conn| client.send(conn, GET));
            conns.iter().for_each(|&conn| drop(client.response(conn)));
        }
        let report = sink.stop();
        assert_identity(&report);
        let replies = || report.truth.iter().map(|row| row.reply.unwrap());
        assert!(replies().any(|reply| reply < begin) && replies().any(|reply| reply >= end));
        // A flush that was decided upon before the freeze may end in it.
        let margin = Nanos::from_millis(1);
        let within: Vec<_> = replies().filter(|&reply| reply >= begin + margin && reply < end).collect();
        assert!(within.is_empty(), "{begin:?} {within:?} {end:?}");
        // Requests that came before or during the freeze and were not answered waited for its end.
        let waited = report.truth.iter().map(|row| row.reply.unwrap() - row.recv).max().unwrap();
        assert!(waited > Nanos::from_millis(150), "{waited:?}");
    }
}

fn drops_resets_and_fails_its_shares(backend: KernelBackend) {
    let faults =
        Faults { drop: 0.03, reset: 0.05, refuse: 0.03, statuses: vec![(503, 0.1)], ..Faults::default() };
    for delay in [Delay::None, Delay::Constant(Nanos::from_micros(200))] {
        let options = SinkOptions { faults: faults.clone(), delay, ..plain() };
        let law = FaultModel::new(&options);
        let sink = start(options, backend);
        let mut client = Client::new();
        let (mut ok, mut failed, mut reset, mut dropped) = (0, 0, 0, 0);
        let mut conn = client.connect(sink.endpoint());
        for number in 0..600 {
            client.send(conn, GET);
            // One request at a time: the law says what happens to each.
            match law.fate(number).intent {
                Intent::Reply => {
                    assert_eq!(client.response(conn).counter(), number as u32);
                    ok += 1;
                }
                Intent::Status(status) => {
                    let response = client.response(conn);
                    assert_eq!((response.status, response.counter()), (status, number as u32));
                    failed += 1;
                }
                Intent::Reject | Intent::Garbage => panic!("nobody asked for these"),
                // HTTP/1.1 has no word for a refusal.
                Intent::Reset | Intent::Refuse => {
                    assert_eq!(client.end(conn), End::Reset);
                    client.close(conn);
                    conn = client.connect(sink.endpoint());
                    reset += 1;
                }
                Intent::Drop => {
                    // Nothing comes until long after the reply would have been due; the counter shows that it
                    // was read.
                    let until = client.now() + Nanos::from_millis(5);
                    while client.now() < until || sink.counter() <= number {
                        let soon = client.now() + Nanos::from_millis(5);
                        client.pump(soon);
                    }
                    assert_eq!((client.try_response(conn), client.try_end(conn)), (None, None));
                    client.close(conn);
                    conn = client.connect(sink.endpoint());
                    dropped += 1;
                }
            }
        }
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.replied, report.statuses), (ok, failed));
        assert_eq!((report.resets, report.dropped), (reset, dropped));
        assert_eq!((report.counter, report.abandoned), (600, 0));
        assert!(ok > 0 && failed > 0 && reset > 0 && dropped > 0);
        let logged =
            report.truth.iter().filter(|row| row.action == Action::Dropped && row.reply.is_none()).count();
        assert_eq!(logged as u64, dropped);
    }
}

fn answers_nothing_behind_a_dropped_reply(backend: KernelBackend) {
    let faults = Faults { drop: 0.2, ..Faults::default() };
    let seeded = |seed| SinkOptions {
        faults: faults.clone(),
        delay: Delay::Constant(Nanos::from_millis(1)),
        seed,
        ..plain()
    };
    let first_drop =
        |law: &FaultModel, from| (from..).find(|&number| law.fate(number).intent == Intent::Drop).unwrap();
    // A seed by which some of the first 20 replies come before a dropped one, and some of the next are sent.
    let fits = |seed: &u64| {
        let law = FaultModel::new(&seeded(*seed));
        (3..17).contains(&first_drop(&law, 0)) && first_drop(&law, 20) > 25
    };
    let options = seeded((0..).find(fits).unwrap());
    let law = FaultModel::new(&options);
    let replies = first_drop(&law, 0);
    let sink = start(options, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, &GET.repeat(20));
    (0..replies).for_each(|number| assert_eq!(client.response(conn).counter(), number as u32));
    while sink.counter() < 20 {
        let soon = client.now() + Nanos::from_millis(1);
        client.pump(soon);
    }
    // Another connection is served as before: only the one with the dropped reply is silent.
    let other = client.connect(sink.endpoint());
    let next = first_drop(&law, 20);
    for number in 20..next {
        client.send(other, GET);
        assert_eq!(client.response(other).counter(), number as u32);
    }
    assert_eq!((client.try_response(conn), client.try_end(conn)), (None, None));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!(report.counter, next);
    assert_eq!((report.dropped, report.abandoned), (1, 20 - replies - 1));
}

fn sends_slow_bodies_in_pieces(backend: KernelBackend) {
    let (every, bytes) = (Nanos::from_millis(4), 10);
    let slow = Some(SlowData { bytes, every });
    let reply = Reply { slow, ..Reply::default() };
    let sink =
        start(SinkOptions { delay: Delay::Constant(Nanos::from_millis(1)), ..replying(reply) }, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    // Replies behind a slow one wait for its end; a HEAD has no body to be slow with.
    client.send(conn, &[GET, b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n", GET].concat());
    assert_eq!(client.response(conn).counter(), 0);
    assert_eq!(client.head_response(conn).status, 200);
    assert_eq!(client.response(conn).counter(), 2);
    // One that goes away in the middle is abandoned.
    client.send(conn, GET);
    while sink.counter() < 4 {
        let soon = client.now() + Nanos::from_millis(1);
        client.pump(soon);
    }
    client.close(conn);
    let other = client.connect(sink.endpoint());
    client.send(other, GET);
    assert_eq!(client.response(other).counter(), 4);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.replied, report.abandoned), (4, 1));
    // The counter has 32 bytes: the last of four pieces leaves three intervals after the due time.
    let came = report.truth[0].recv + Nanos::from_millis(1);
    for (number, intervals) in [(0, 3), (1, 3), (2, 6)] {
        let row = &report.truth[number];
        assert!(row.reply.unwrap() >= came + every * intervals, "{row:?}");
    }
}

fn announces_the_end_of_a_connection(backend: KernelBackend) {
    let faults = Faults { go_away_after: Some(3), ..Faults::default() };
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let sink = start(SinkOptions { faults: faults.clone(), delay, ..plain() }, backend);
        let mut client = Client::new();
        let conn = client.connect(sink.endpoint());
        client.send(conn, &GET.repeat(5));
        for number in 0..3 {
            let response = client.response(conn);
            assert_eq!(response.counter(), number);
            assert_eq!(response.head.contains("connection: close"), number == 2, "{}", response.head);
        }
        assert_eq!(client.end(conn), End::Closed);
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.counter, report.replied), (3, 3));
    }
}

fn works_for_each_reply(backend: KernelBackend) {
    let work = Nanos::from_millis(1);
    let faults = Faults { statuses: vec![(503, 0.3)], ..Faults::default() };
    let sink = start(SinkOptions { work, faults, ..plain() }, backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    client.send(conn, &GET.repeat(30));
    (0..30).for_each(|number| assert_eq!(client.response(conn).counter(), number));
    let report = sink.stop();
    assert_identity(&report);
    assert!(report.statuses > 0);
    // Each was sent by itself, after its own work.
    let sent: Vec<_> = report.truth.iter().map(|row| row.reply.unwrap()).collect();
    assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= work), "{sent:?}");
}

fn cuts_off_a_client_that_does_not_read(backend: KernelBackend) {
    let reply = Reply { body: Body::Bytes(1 << 20), ..Reply::default() };
    let sink = start(replying(reply), backend);
    let mut client = Client::new();
    let conn = client.connect(sink.endpoint());
    // 2 GB, of which the sink holds only one body.
    client.send(conn, &GET.repeat(2000));
    // The sink looks at unread bytes before it reads each piece, and the requests come in one piece or in
    // several. So the cut comes with one of these, or with the next one, but not before this many replies.
    while sink.counter() < 320 {
        std::thread::yield_now();
    }
    client.send(conn, GET);
    assert_eq!(client.end(conn), End::Reset);
    let report = sink.stop();
    assert_identity(&report);
    assert!((320..=2000).contains(&report.counter), "{report:?}");
    assert_eq!(report.refused, 1);
}

fn closes_connections_without_announcing_it(backend: KernelBackend) {
    let faults = Faults { close_idle_after: Some(3), ..Faults::default() };
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let sink = start(SinkOptions { faults: faults.clone(), delay, ..plain() }, backend);
        let mut client = Client::new();
        for _ in 0..3 {
            let conn = client.connect(sink.endpoint());
            for _ in 0..3 {
                client.send(conn, GET);
                assert!(!client.response(conn).head.contains("connection: close"));
            }
            assert_eq!(client.end(conn), End::Closed);
        }
        let report = sink.stop();
        assert_identity(&report);
        assert_eq!((report.counter, report.replied, report.connections), (9, 9, 3));
    }
}

fn writes_its_log_to_one_file(backend: KernelBackend) {
    let path =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("truth-{}.csv", backend.name()));
    let sink = start(SinkOptions { threads: 3, truth: Truth::File(path.clone()), ..plain() }, backend);
    let mut client = Client::new();
    let conns: Vec<_> = (0..12).map(|_| client.connect(sink.endpoint())).collect();
    for (index, &conn) in conns.iter().enumerate() {
        client.send(
            conn,
            format!("GET / HTTP/1.1\r\nhost: a\r\nx-plimsoll-id: {}\r\n\r\n", 500 + index).as_bytes(),
        );
        client.response(conn);
    }
    let report = sink.stop();
    assert_identity(&report);
    assert!(report.truth.is_empty());
    let log = std::fs::read_to_string(&path).unwrap();
    let (header, rows) = log.split_once('\n').unwrap();
    assert_eq!(header, "id,recv_ns,reply_ns,action,status,number");
    let mut ids = Vec::new();
    for row in rows.lines() {
        let fields: Vec<_> = row.split(',').collect();
        let [id, recv, reply, "replied", "200", _number] = fields[..] else { panic!("{row}") };
        assert!(recv.parse::<u64>().unwrap() < reply.parse::<u64>().unwrap(), "{row}");
        ids.push(id.parse::<u64>().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (500..512).collect::<Vec<_>>());
    let parts: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!parts.iter().any(|p| p != &path && p.to_string_lossy().starts_with(&*path.to_string_lossy())));
}

fn stops_after_its_duration(backend: KernelBackend) {
    let duration = Nanos::from_millis(60);
    let sink = start(SinkOptions { duration: Some(duration), threads: 2, ..plain() }, backend);
    let started = sink.started();
    let report = sink.wait();
    assert!(plimsoll_system::clock::monotonic() >= started + duration);
    assert_eq!((report.counter, report.connections), (0, 0));
}

fn abandons_what_is_unanswered_at_the_stop(backend: KernelBackend) {
    let sink = start(SinkOptions { delay: Delay::Constant(Nanos::from_secs(3600)), ..plain() }, backend);
    let mut client = Client::new();
    let stays = client.connect(sink.endpoint());
    let leaves = client.connect(sink.endpoint());
    client.send(stays, &GET.repeat(2));
    client.send(leaves, GET);
    while sink.counter() < 3 {
        let soon = client.now() + Nanos::from_millis(1);
        client.pump(soon);
    }
    client.close(leaves);
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.abandoned), (3, 3));
    assert_ne!(client.end(stays), End::Reset);
}
