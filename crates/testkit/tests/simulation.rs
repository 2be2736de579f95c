//! The simulated backend keeps the contract of the driver's interface, and its servers follow their
//! behaviour. Times are exact: the clock is virtual.

use core::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use plimsoll_core::{Nanos, Random, Rate};
use plimsoll_driver::{Backend, Close, ConnId, Endpoint, Event, Open, SocketOptions, Wait};
use plimsoll_testkit::oracle::{self, Mm1};
use plimsoll_testkit::{
    Action, Answer, Behaviour, Concurrency, Faults, Framing, Law, Pause, SimBackend, SimOpen, SimOptions,
    SlowAccept, TruthLog,
};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: sim\r\n\r\n";
const START: Nanos = Nanos::from_secs(1_000);
const LATENCY: Nanos = Nanos::from_micros(50);

fn endpoint() -> Endpoint {
    Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)))
}

fn open(options: SimOptions) -> (SimBackend, TruthLog) {
    let open = SimOpen::new(options);
    let truth = open.truth();
    (open.open().expect("a world always opens"), truth)
}

fn world(behaviour: Behaviour) -> SimOptions {
    SimOptions { servers: vec![(endpoint(), behaviour)], ..SimOptions::default() }
}

fn first_event(until: Nanos) -> Wait {
    Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO }
}

/// An event, with the bytes copied out.
#[derive(Debug, PartialEq)]
enum Seen {
    Connected,
    Refused,
    Accepted(ConnId),
    Received(Nanos, Vec<u8>),
    Closed,
    Failed,
}

fn drain(sim: &mut SimBackend) -> Vec<(ConnId, Seen)> {
    let mut seen = Vec::new();
    while let Some(event) = sim.next_event() {
        seen.push(match event {
            Event::Connected { conn, .. } => (conn, Seen::Connected),
            Event::ConnectFailed { conn, .. } => (conn, Seen::Refused),
            Event::Accepted { conn, .. } => (conn, Seen::Accepted(conn)),
            Event::Received { conn, at, data, .. } => (conn, Seen::Received(at, sim.bytes(data).to_vec())),
            Event::Closed { conn, .. } => (conn, Seen::Closed),
            Event::Failed { conn, .. } => (conn, Seen::Failed),
        });
    }
    seen
}

/// Waits until `until` and returns everything that came by then.
fn gather(sim: &mut SimBackend, until: Nanos) -> Vec<(ConnId, Seen)> {
    sim.wait(Wait { until, want: u32::MAX, floor: Nanos::MAX, spin: Nanos::ZERO });
    drain(sim)
}

fn connect(sim: &mut SimBackend) -> ConnId {
    let conn = sim.connect(&endpoint(), &SocketOptions::default()).expect("a descriptor is left");
    sim.wait(first_event(Nanos::MAX));
    assert_eq!(drain(sim), [(conn, Seen::Connected)]);
    conn
}

fn send(sim: &mut SimBackend, conn: ConnId, bytes: &[u8]) {
    sim.outbox(conn).extend_from_slice(bytes);
    assert_eq!(sim.flush().sends, 1);
}

/// Bytes received, and other events, after one request on a new connection and a second of waiting.
fn exchange(behaviour: Behaviour) -> (Vec<u8>, Vec<Seen>, TruthLog) {
    let (mut sim, truth) = open(world(behaviour));
    let conn = connect(&mut sim);
    send(&mut sim, conn, GET);
    let mut bytes = Vec::new();
    let mut others = Vec::new();
    let until = sim.now() + Nanos::from_secs(1);
    for (_, seen) in gather(&mut sim, until) {
        match seen {
            Seen::Received(_, received) => bytes.extend(received),
            other => others.push(other),
        }
    }
    (bytes, others, truth)
}

#[test]
fn a_request_takes_a_round_trip_and_the_service_time() {
    let service = Nanos::from_millis(3);
    let behaviour = Behaviour {
        service: Law::Constant(service),
        answer: Answer::with_body("hi"),
        ..Behaviour::default()
    };
    let (mut sim, truth) = open(world(behaviour));
    let conn = connect(&mut sim);
    assert_eq!(sim.now(), START + LATENCY * 2);
    let sent = sim.now();
    send(&mut sim, conn, GET);
    sim.wait(first_event(Nanos::MAX));
    let done = sent + LATENCY * 2 + service;
    assert_eq!(sim.now(), done);
    let response = b"HTTP/1.1 200 Simulated\r\ncontent-length: 2\r\n\r\nhi".to_vec();
    assert_eq!(drain(&mut sim), [(conn, Seen::Received(done, response))]);
    let entry = &truth.entries()[0];
    assert_eq!((entry.conn, entry.index, entry.action), (0, 0, Action::Reply(200)));
    assert_eq!((entry.received, entry.replied), (sent + LATENCY, Some(sent + LATENCY + service)));
}

#[test]
fn a_wait_returns_as_soon_as_enough_is_ready() {
    // Ten connections whose responses come 1, 2, … 10 ms after the start.
    let prepare = || {
        let behaviour = Behaviour {
            service: Law::Constant(Nanos::from_millis(1)),
            concurrency: Concurrency::SingleQueue,
            ..Behaviour::default()
        };
        let (mut sim, _) = open(world(behaviour));
        let conns: Vec<_> = (0..10).map(|_| connect(&mut sim)).collect();
        for &conn in &conns {
            sim.outbox(conn).extend_from_slice(GET);
        }
        assert_eq!(sim.flush().sends, 10);
        let sent = sim.now() + LATENCY * 2;
        (sim, sent)
    };
    let ms = Nanos::from_millis;
    // (want, floor, spin, until, expected return, expected events), all in ms after the last byte could be
    // there.
    let rows = [
        (1, 0, 0, 100, 1, 1),
        (0, 50, 0, 100, 1, 1),
        (4, 50, 0, 100, 4, 4),
        (4, 2, 0, 100, 2, 2),
        (u32::MAX, 0, 0, 100, 1, 1),
        (u32::MAX, 1_000, 0, 7, 7, 7),
        (u32::MAX, 1_000, 4, 8, 4, 4),
        (u32::MAX, 1_000, 0, 100, 100, 10),
    ];
    for (want, floor, spin, until, returned, events) in rows {
        let (mut sim, sent) = prepare();
        // The floor counts from the call, which is a round trip before `sent`.
        let floor = if floor == 0 { Nanos::ZERO } else { ms(floor) + LATENCY * 2 };
        sim.wait(Wait { until: sent + ms(until), want, floor, spin: ms(spin) });
        assert_eq!(sim.now().since(sent), ms(returned), "{want} {floor:?} {spin}");
        assert_eq!(drain(&mut sim).len(), events, "{want} {floor:?} {spin}");
    }
    let (mut sim, sent) = prepare();
    sim.wait(first_event(Nanos::ZERO));
    assert!(sim.now() < sent && drain(&mut sim).is_empty(), "a time that is past does not block");
}

#[test]
fn wake_ups_overshoot_unless_they_spin() {
    let options = SimOptions { overshoot: Nanos::from_micros(20), ..world(Behaviour::default()) };
    let (mut sim, _) = open(options);
    let at = START + Nanos::from_millis(1);
    sim.wait(first_event(at));
    assert_eq!(sim.now(), at + Nanos::from_micros(20));
    let at = START + Nanos::from_millis(2);
    sim.wait(Wait { spin: Nanos::from_micros(50), ..first_event(at) });
    assert_eq!(sim.now(), at);
}

#[test]
fn a_stall_holds_the_generator_and_the_kernel_stamps_show_it() {
    let stall = Pause { at: START + Nanos::from_millis(1), length: Nanos::from_millis(500) };
    for receive_stamps in [true, false] {
        let behaviour = Behaviour { service: Law::Constant(Nanos::from_millis(10)), ..Behaviour::default() };
        let (mut sim, truth) = open(SimOptions { stalls: vec![stall], receive_stamps, ..world(behaviour) });
        let conn = connect(&mut sim);
        send(&mut sim, conn, GET);
        sim.wait(first_event(Nanos::MAX));
        assert_eq!(sim.now(), stall.end());
        let arrived = truth.entries()[0].replied.unwrap() + LATENCY;
        let Some((_, Seen::Received(at, _))) = drain(&mut sim).pop() else { panic!("nothing received") };
        assert_eq!(at, if receive_stamps { arrived } else { stall.end() });
    }
}

#[test]
fn responses_come_in_segments_down_to_single_bytes() {
    let answer = Answer { framing: Framing::Chunked(2), ..Answer::with_body("hello") };
    let behaviour = Behaviour { answer, ..Behaviour::default() };
    let (whole, _, _) = exchange(behaviour.clone());
    let gap = Nanos::from_micros(3);
    for coalesce in [false, true] {
        let options = SimOptions { segment_bytes: 1, segment_gap: gap, coalesce, ..world(behaviour.clone()) };
        let (mut sim, _) = open(options);
        let conn = connect(&mut sim);
        let sent = sim.now();
        send(&mut sim, conn, GET);
        let seen = gather(&mut sim, sent + Nanos::from_secs(1));
        assert_eq!(seen.len(), if coalesce { 1 } else { whole.len() });
        let Some((_, Seen::Received(last, _))) = seen.last() else { panic!("nothing received") };
        assert_eq!(*last, sent + LATENCY * 2 + gap * (whole.len() as u64 - 1));
        let bytes: Vec<u8> = seen
            .into_iter()
            .flat_map(|(_, seen)| match seen {
                Seen::Received(_, bytes) => bytes,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(bytes, whole);
    }
}

#[test]
fn partial_writes_delay_the_request_and_lose_nothing() {
    let options = SimOptions { partial_write: 0.9, keep_requests: true, ..world(Behaviour::default()) };
    let (mut sim, truth) = open(options);
    let conn = connect(&mut sim);
    sim.outbox(conn).extend_from_slice(b"POST / HTTP/1.1\r\nhost: sim\r\ncontent-length: 1000\r\n\r\n");
    sim.send_shared(conn, Arc::from(vec![b'x'; 990]));
    sim.outbox(conn).extend_from_slice(b"0123456789");
    let total = sim.unsent(conn);
    let began = sim.now();
    sim.flush();
    let left = sim.unsent(conn);
    assert!(0 < left && left < total, "{left} of {total}");
    gather(&mut sim, began + Nanos::from_secs(1));
    assert_eq!(sim.unsent(conn), 0);
    let entry = truth.entries().remove(0);
    assert_eq!(entry.request.len(), total);
    assert!(entry.request.ends_with(b"x0123456789"));
    assert!(entry.received > began + LATENCY, "the rest needs at least one more round trip");
}

#[test]
fn stale_ids_do_no_harm_and_slots_are_used_again() {
    let (mut sim, truth) = open(world(Behaviour::default()));
    let first = connect(&mut sim);
    send(&mut sim, first, GET);
    sim.close(first, Close::Now);
    let second = connect(&mut sim);
    assert_eq!(second.slot(), first.slot());
    assert_ne!(second.generation(), first.generation());
    sim.outbox(first).extend_from_slice(GET);
    sim.send_shared(first, Arc::from(GET));
    assert_eq!((sim.flush().sends, sim.unsent(first)), (0, 0));
    sim.close(first, Close::Reset);
    let until = sim.now() + Nanos::from_secs(1);
    assert!(gather(&mut sim, until).is_empty(), "an event for a closed connection");
    assert_eq!(truth.len(), 1, "what was flushed before the close arrived");
    assert_eq!(truth.entries()[0].replied, None);
}

#[test]
fn a_close_after_send_sends_first() {
    for how in [Close::AfterSend, Close::Now] {
        let (mut sim, truth) = open(SimOptions { partial_write: 0.5, ..world(Behaviour::default()) });
        let conn = connect(&mut sim);
        sim.outbox(conn).extend_from_slice(GET);
        sim.close(conn, how);
        let until = sim.now() + Nanos::from_secs(1);
        assert!(gather(&mut sim, until).is_empty());
        assert_eq!(truth.len(), usize::from(how == Close::AfterSend));
    }
}

#[test]
fn two_ends_of_one_backend_talk_to_each_other() {
    let (mut sim, _) = open(SimOptions { segment_bytes: 2, ..SimOptions::default() });
    let on = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let (listener, bound) = sim.listen(&on, false).unwrap();
    assert!(sim.listen(&bound, false).is_err());
    let client = sim.connect(&bound, &SocketOptions::default()).unwrap();
    let until = sim.now() + Nanos::from_millis(1);
    let seen = gather(&mut sim, until);
    let [(_, Seen::Accepted(server)), (connected, Seen::Connected)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(connected, client);
    send(&mut sim, client, b"ping");
    let until = sim.now() + Nanos::from_millis(1);
    let halves: Vec<_> = gather(&mut sim, until)
        .into_iter()
        .map(|(conn, seen)| {
            let Seen::Received(_, bytes) = seen else { panic!("{seen:?}") };
            assert_eq!(conn, server);
            bytes
        })
        .collect();
    assert_eq!(halves, [b"pi".to_vec(), b"ng".to_vec()]);
    sim.outbox(server).extend_from_slice(b"!");
    sim.close(server, Close::AfterSend);
    let until = sim.now() + Nanos::from_millis(1);
    let seen = gather(&mut sim, until);
    assert!(
        matches!(&seen[..], [(_, Seen::Received(_, bytes)), (_, Seen::Closed)] if bytes == b"!"),
        "{seen:?}"
    );
    sim.close_listener(listener);
    sim.connect(&bound, &SocketOptions::default()).unwrap();
    sim.wait(first_event(Nanos::MAX));
    assert_eq!(drain(&mut sim).pop().unwrap().1, Seen::Refused);
}

#[test]
fn each_fault_shows_as_what_it_is() {
    let with = |faults| Behaviour { faults, answer: Answer::with_body("hello"), ..Behaviour::default() };
    let action = |truth: &TruthLog| (truth.entries()[0].action, truth.entries()[0].replied.is_some());

    let (bytes, others, truth) = exchange(with(Faults { drop_reply: 1.0, ..Faults::default() }));
    assert!(bytes.is_empty() && others.is_empty());
    assert_eq!(action(&truth), (Action::Drop, false));

    let (bytes, others, truth) = exchange(with(Faults { reset: 1.0, ..Faults::default() }));
    assert!(bytes.is_empty());
    assert_eq!((others, action(&truth)), (vec![Seen::Failed], (Action::Reset, true)));

    let (bytes, others, truth) = exchange(with(Faults { close_before_reply: 1.0, ..Faults::default() }));
    assert!(bytes.is_empty());
    assert_eq!((others, action(&truth)), (vec![Seen::Closed], (Action::Close, true)));

    let (bytes, others, _) = exchange(with(Faults { truncated_body: 1.0, ..Faults::default() }));
    assert!(bytes.ends_with(b"content-length: 11\r\n\r\nhello"));
    assert_eq!(others, [Seen::Closed]);

    let (bytes, others, _) = exchange(with(Faults { excess_body: 1.0, ..Faults::default() }));
    assert!(bytes.ends_with(b"content-length: 2\r\n\r\nhello") && others.is_empty());

    let (bytes, others, _) = exchange(with(Faults { garbage: 1.0, ..Faults::default() }));
    assert!(!bytes.starts_with(b"HTTP") && !bytes.is_empty() && others.is_empty());

    let (bytes, others, _) = exchange(with(Faults { endless_head: 1.0, ..Faults::default() }));
    assert!(bytes.len() > 30_000_000 && !bytes.windows(4).any(|end| end == b"\r\n\r\n"), "{}", bytes.len());
    assert!(others.is_empty());

    let (bytes, _, truth) = exchange(with(Faults { statuses: vec![(503, 1.0)], ..Faults::default() }));
    assert!(bytes.starts_with(b"HTTP/1.1 503 "));
    assert_eq!(action(&truth), (Action::Reply(503), true));

    let close = Faults { close_after: Some(1), announce_close: true, ..Faults::default() };
    let (bytes, others, _) = exchange(with(close));
    assert!(bytes.windows(17).any(|field| field == b"connection: close") && bytes.ends_with(b"hello"));
    assert_eq!(others, [Seen::Closed]);
}

#[test]
fn connects_are_refused_unanswered_or_read_late() {
    let with = |faults| Behaviour { faults, ..Behaviour::default() };
    let (mut sim, _) = open(world(with(Faults { refuse_connect: 1.0, ..Faults::default() })));
    let conn = sim.connect(&endpoint(), &SocketOptions::default()).unwrap();
    sim.wait(first_event(Nanos::MAX));
    assert_eq!(drain(&mut sim), [(conn, Seen::Refused)]);
    assert_eq!(sim.now(), START + LATENCY * 2);
    let again = sim.connect(&endpoint(), &SocketOptions::default()).unwrap();
    assert_eq!(again.slot(), conn.slot(), "a refused connection leaves its slot");

    let (mut sim, _) = open(world(with(Faults { silent_connect: 1.0, ..Faults::default() })));
    sim.connect(&endpoint(), &SocketOptions::default()).unwrap();
    assert!(gather(&mut sim, START + Nanos::from_secs(60)).is_empty());

    let delay = Nanos::from_millis(200);
    let slow_accept = Some(SlowAccept { probability: 1.0, delay });
    let (mut sim, truth) = open(world(with(Faults { slow_accept, ..Faults::default() })));
    let conn = connect(&mut sim);
    let established = sim.now();
    send(&mut sim, conn, GET);
    sim.wait(first_event(Nanos::MAX));
    assert_eq!(truth.entries()[0].received, established + delay);

    let (mut sim, _) = open(SimOptions { descriptors: 1, ..world(Behaviour::default()) });
    let conn = connect(&mut sim);
    let error = sim.connect(&endpoint(), &SocketOptions::default()).unwrap_err();
    assert_eq!(error.class(), plimsoll_core::ErrorClass::DescriptorsExhausted);
    sim.close(conn, Close::Now);
    connect(&mut sim);
}

#[test]
fn what_is_no_request_is_rejected() {
    let (mut sim, truth) = open(world(Behaviour::default()));
    let conn = connect(&mut sim);
    send(&mut sim, conn, b"nonsense\r\n\r\n");
    let until = sim.now() + Nanos::from_millis(1);
    let seen = gather(&mut sim, until);
    let [(_, Seen::Received(_, bytes)), (_, Seen::Closed)] = &seen[..] else { panic!("{seen:?}") };
    assert!(bytes.starts_with(b"HTTP/1.1 400 "));
    assert_eq!(truth.entries()[0].action, Action::Reject);
}

/// Sends `GET` at each of `arrivals` (since `begin`) on one pipelined connection, and returns the truth.
fn pipeline(options: SimOptions, arrivals: impl IntoIterator<Item = Nanos>) -> (Nanos, TruthLog) {
    let (mut sim, truth) = open(options);
    let conn = connect(&mut sim);
    let begin = START + Nanos::from_millis(1);
    for at in arrivals {
        gather(&mut sim, begin + at);
        send(&mut sim, conn, GET);
    }
    let until = sim.now() + Nanos::from_secs(10);
    gather(&mut sim, until);
    (begin, truth)
}

#[test]
fn a_single_queue_with_poisson_arrivals_is_mm1() {
    let queue = Mm1 { arrivals_per_s: 800.0, services_per_s: 1_000.0 };
    let behaviour = Behaviour {
        service: Law::Exponential { mean: Nanos::from_millis(1) },
        concurrency: Concurrency::SingleQueue,
        ..Behaviour::default()
    };
    let mut random = Random::new(42, 0);
    let mut at = 0.0;
    let arrivals = (0..400_000).map(|_| {
        at += random.exponential(1.0 / 800.0);
        Nanos::from_secs_f64(at)
    });
    let (_, truth) = pipeline(world(behaviour), arrivals);
    let entries = truth.entries();
    let mut times: Vec<Nanos> = entries.iter().map(|truth| truth.replied.unwrap() - truth.received).collect();
    // Every 2,000th response time is practically independent of the one before: the queue forgets after about
    // 1 / (μ (1 − √ρ)²) = 90 ms (Cohen's relaxation time), that is 72 arrivals.
    let mut sparse: Vec<f64> = times.iter().step_by(2_000).map(|time| time.as_secs_f64()).collect();
    let distance = oracle::ks_statistic(&mut sparse, |t| queue.cdf(t));
    assert!(distance < oracle::ks_critical(sparse.len(), 0.01), "{distance}");
    times.sort_unstable();
    for (p, tolerance) in [(0.5, 0.05), (0.99, 0.10)] {
        let got = oracle::nearest_rank(&times, p).unwrap().as_secs_f64();
        assert!((got / queue.quantile(p) - 1.0).abs() < tolerance, "p{p}: {got} s");
    }
}

#[test]
fn a_paused_server_gives_exactly_the_oracles_response_times() {
    let rate = Rate::per_second(1_000);
    let service = Nanos::from_millis(1);
    let pause = Pause { at: Nanos::from_secs(3), length: Nanos::from_secs(1) };
    // The oracle's clock starts when the first request reaches the server.
    let offset = START + Nanos::from_millis(1) + LATENCY;
    let behaviour = Behaviour {
        service: Law::Constant(service),
        pauses: vec![Pause { at: offset + pause.at, length: pause.length }],
        ..Behaviour::default()
    };
    let arrivals = (0..10_000).map(|index| rate.arrival_at(index));
    let (begin, truth) = pipeline(world(behaviour), arrivals);
    assert_eq!(truth.entries()[0].received, begin + LATENCY);
    let mut times: Vec<Nanos> = truth
        .entries()
        .iter()
        .enumerate()
        .map(|(index, truth)| truth.replied.unwrap() - (offset + rate.arrival_at(index as u64)))
        .collect();
    times.sort_unstable();
    assert_eq!(times, oracle::pause_truth(rate, 10_000, service, pause));
}

#[test]
fn the_same_seed_gives_the_same_world_and_another_seed_another() {
    let run = |seed| {
        let behaviour = Behaviour {
            service: Law::LogNormal { median: Nanos::from_millis(1), sigma: 1.0 },
            faults: Faults { statuses: vec![(500, 0.3)], ..Faults::default() },
            ..Behaviour::default()
        };
        let options = SimOptions { seed, partial_write: 0.3, ..world(behaviour) };
        pipeline(options, (0..500).map(Nanos::from_millis)).1.entries()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
#[should_panic(expected = "nothing will ever happen again")]
fn a_wait_for_nothing_is_caught() {
    let (mut sim, _) = open(SimOptions::default());
    sim.wait(first_event(Nanos::MAX));
}

#[test]
#[should_panic(expected = "time stands still")]
fn a_loop_that_never_blocks_is_caught() {
    let (mut sim, _) = open(SimOptions::default());
    loop {
        sim.wait(first_event(Nanos::ZERO));
    }
}

#[test]
#[should_panic(expected = "read after the next one")]
fn bytes_that_are_read_too_late_are_caught() {
    let (mut sim, _) = open(SimOptions { segment_bytes: 1, ..world(Behaviour::default()) });
    let conn = connect(&mut sim);
    send(&mut sim, conn, GET);
    sim.wait(first_event(Nanos::MAX));
    let Some(Event::Received { data, .. }) = sim.next_event() else { panic!("nothing received") };
    assert_eq!(sim.bytes(data).len(), 1);
    sim.next_event();
    sim.bytes(data);
}
