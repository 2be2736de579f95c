//! The simulated servers speak HTTP/2 as their behaviour says. Times are exact: the clock is virtual. The
//! client's frames are made by hand, so nothing here depends on the product's HTTP/2.

use core::net::{Ipv4Addr, SocketAddr};

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close, ConnId, Endpoint, Event, Open, SocketOptions, Wait};
use plimsoll_testkit::{
    Action, Answer, Behaviour, Concurrency, Faults, Framing, Http2, Law, Pause, SimBackend, SimOpen,
    SimOptions, Truth, TruthLog,
};

const LATENCY: Nanos = Nanos::from_micros(50);
const MS: Nanos = Nanos::from_millis(1);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END: u8 = 1;
const END_HEADERS: u8 = 4;

/// GET, http, / and the authority `sim`.
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 3, b's', b'i', b'm'];
/// POST, http, / and the authority `sim`.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 3, b's', b'i', b'm'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn setting(id: u8, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&[0, id][..], &value.to_be_bytes()].concat())
}

fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END, stream, GET)
}

fn word(stream: u32, kind: u8, word: u32) -> Vec<u8> {
    frame(kind, 0, stream, &word.to_be_bytes())
}

/// A frame from the server, and when its last byte came.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    at: Nanos,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn word(&self) -> u32 {
        u32::from_be_bytes(*self.payload.first_chunk().expect("the payload has a word"))
    }
}

/// State of the connection: open, or its end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Open,
    Closed(Nanos),
    Failed(Nanos),
}

/// One connection of one simulated server.
struct Talk {
    sim: SimBackend,
    truth: TruthLog,
    conn: ConnId,
    inbox: Vec<u8>,
    frames: Vec<Frame>,
    end: End,
}

impl Talk {
    /// A connection whose preface and SETTINGS are answered.
    fn new(behaviour: Behaviour) -> Self {
        Self::with(SimOptions::default(), behaviour)
    }

    fn with(options: SimOptions, behaviour: Behaviour) -> Self {
        let mut talk = Self::connected(options, behaviour);
        talk.say(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
        talk.wait(MS);
        talk
    }

    fn connected(options: SimOptions, behaviour: Behaviour) -> Self {
        let endpoint = Endpoint::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 80)));
        let open = SimOpen::new(SimOptions {
            servers: vec![(endpoint.clone(), behaviour)],
            keep_requests: true,
            ..options
        });
        let truth = open.truth();
        let mut sim = open.open().expect("a world always opens");
        let conn = sim.connect(&endpoint, &SocketOptions::default()).expect("a descriptor is left");
        let mut talk = Self { sim, truth, conn, inbox: Vec::new(), frames: Vec::new(), end: End::Open };
        talk.wait(MS);
        talk
    }

    fn now(&self) -> Nanos {
        self.sim.now()
    }

    fn say(&mut self, bytes: &[u8]) {
        self.sim.outbox(self.conn).extend_from_slice(bytes);
        self.sim.flush();
    }

    /// Lets time pass and takes in the received bytes.
    fn wait(&mut self, time: Nanos) {
        let until = self.now() + time;
        while self.now() < until {
            self.sim.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            while let Some(event) = self.sim.next_event() {
                match event {
                    Event::Received { at, data, .. } => {
                        self.inbox.extend_from_slice(self.sim.bytes(data));
                        self.take_frames(at);
                    }
                    Event::Closed { at, .. } => self.end = End::Closed(at),
                    Event::Failed { at, .. } => self.end = End::Failed(at),
                    Event::Connected { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn take_frames(&mut self, at: Nanos) {
        while let Some((&[a, b, c, kind, flags, s0, s1, s2, s3], rest)) = self.inbox.split_first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else { return };
            let stream = u32::from_be_bytes([s0, s1, s2, s3]);
            self.inbox.drain(..9 + length);
            self.frames.push(Frame { at, kind, flags, stream, payload });
        }
    }

    /// The frames that have come since the last call.
    fn heard(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.frames)
    }

    /// Returns the reply on a stream: the header block, the content, and when it ended.
    fn reply(&self, stream: u32) -> (Vec<u8>, Vec<u8>, Option<Nanos>) {
        let of_stream = || self.frames.iter().filter(|frame| frame.stream == stream);
        let part = |kind| of_stream().filter(|f| f.kind == kind).flat_map(|f| f.payload.clone()).collect();
        let end = of_stream().find(|f| f.kind <= HEADERS && f.flags & END != 0).map(|f| f.at);
        (part(HEADERS), part(DATA), end)
    }

    fn entry(&self, index: usize) -> Truth {
        self.truth.entries().remove(index)
    }

    fn actions(&self) -> Vec<(Action, bool)> {
        self.truth.entries().iter().map(|truth| (truth.action, truth.replied.is_some())).collect()
    }
}

fn serving(service: Nanos, body: &str) -> Behaviour {
    Behaviour { service: Law::Constant(service), answer: Answer::with_body(body), ..Behaviour::default() }
}

fn with(faults: Faults) -> Behaviour {
    Behaviour { faults, ..serving(MS, "hello") }
}

#[test]
fn a_request_takes_a_round_trip_and_the_service_time() {
    let mut talk = Talk::new(serving(MS * 3, "hi"));
    let opening: Vec<_> = talk.heard().iter().map(|f| (f.kind, f.flags, f.payload.len())).collect();
    assert_eq!(opening, [(SETTINGS, 0, 0), (SETTINGS, END, 0)]);
    let sent = talk.now();
    talk.say(&get(1));
    talk.wait(MS * 10);
    // `:status 200` and a literal content-length.
    let head = [&[0x88, 0, 14][..], b"content-length", &[1], b"2"].concat();
    assert_eq!(talk.reply(1), (head, b"hi".to_vec(), Some(sent + LATENCY * 2 + MS * 3)));
    let entry = talk.entry(0);
    assert_eq!((entry.conn, entry.index, entry.action), (0, 0, Action::Reply(200)));
    assert_eq!((entry.received, entry.replied), (sent + LATENCY, Some(sent + LATENCY + MS * 3)));
    assert_eq!(entry.request, b"GET / HTTP/2\r\nhost: sim\r\n\r\n");
    assert_eq!(talk.end, End::Open);
}

#[test]
fn streams_overtake_each_other_unless_the_server_has_one_place() {
    let law = Law::Bimodal { fast: MS, slow: MS * 20, slow_share: 0.5 };
    for (concurrency, in_order) in [(Concurrency::Infinite, false), (Concurrency::PerConnection, true)] {
        let mut talk = Talk::new(Behaviour { service: law, concurrency, ..serving(MS, "") });
        talk.say(&(0..20).flat_map(|n| get(2 * n + 1)).collect::<Vec<u8>>());
        talk.wait(MS * 1_000);
        let order: Vec<_> = talk.heard().iter().filter(|f| f.kind == HEADERS).map(|f| f.stream).collect();
        assert_eq!(order.len(), 20);
        assert_eq!(order.is_sorted(), in_order, "{order:?}");
    }
}

#[test]
fn the_preface_may_come_byte_by_byte_and_a_server_need_not_speak_http2() {
    let mut talk = Talk::connected(SimOptions::default(), serving(MS, "hi"));
    for byte in [PREFACE, &frame(SETTINGS, 0, 0, &[]), &get(1)].concat() {
        talk.say(&[byte]);
        talk.wait(Nanos::from_micros(1));
    }
    talk.wait(MS * 5);
    assert_eq!(talk.reply(1).1, b"hi");
    let http2 = Http2 { spoken: false, ..Http2::default() };
    let mut talk = Talk::connected(SimOptions::default(), Behaviour { http2, ..serving(MS, "") });
    talk.say(PREFACE);
    talk.wait(MS * 5);
    assert!(talk.inbox.starts_with(b"HTTP/1.1 400 "));
    assert!(matches!(talk.end, End::Closed(_)));
    assert_eq!(talk.entry(0).action, Action::Reject);
}

#[test]
fn content_of_requests_is_kept_and_windows_open_at_once() {
    let mut talk = Talk::new(serving(MS, ""));
    talk.say(&[frame(HEADERS, END_HEADERS, 1, POST), frame(DATA, 0, 1, b"abc")].concat());
    talk.wait(MS * 5);
    let updates: Vec<_> = talk.heard().iter().filter(|f| f.kind == WINDOW_UPDATE).map(Frame::word).collect();
    assert_eq!(updates, [3, 3]);
    assert!(talk.truth.is_empty(), "it is not whole");
    talk.say(&frame(DATA, END | 8, 1, b"\x02de\0\0"));
    talk.wait(MS * 5);
    assert_eq!(talk.entry(0).request, b"POST / HTTP/2\r\nhost: sim\r\n\r\nabcde");
    assert!(talk.reply(1).2.is_some());
}

#[test]
fn the_clients_windows_hold_content_back() {
    let mut talk = Talk::connected(SimOptions::default(), serving(MS, &"x".repeat(70_000)));
    talk.say(&[PREFACE, &setting(4, 10), &get(1)].concat());
    talk.wait(MS * 5);
    assert_eq!((talk.reply(1).1.len(), talk.reply(1).2), (10, None));
    assert_eq!(talk.entry(0).replied, None, "it is not handed over whole");
    talk.say(&word(1, WINDOW_UPDATE, 100_000));
    talk.wait(MS * 5);
    assert_eq!(talk.reply(1).1.len(), 65_535, "the connection's window holds the rest");
    let sent = talk.now();
    talk.say(&word(0, WINDOW_UPDATE, 100_000));
    talk.wait(MS * 5);
    assert_eq!((talk.reply(1).1.len(), talk.reply(1).2), (70_000, Some(sent + LATENCY * 2)));
    assert_eq!(talk.entry(0).replied, Some(sent + LATENCY));
    assert!(talk.frames.iter().all(|frame| frame.payload.len() <= 16_384));
}

#[test]
fn framings_are_frames() {
    let rows = [(Framing::Chunked(2), vec![2, 2, 1], false), (Framing::UntilClose, vec![5], false)];
    for (framing, sizes, has_length) in rows {
        let answer = Answer { framing, interim: 2, ..Answer::with_body("hello") };
        let mut talk = Talk::new(Behaviour { answer, ..serving(MS, "") });
        talk.say(&get(1));
        talk.wait(MS * 5);
        let lengths: Vec<_> =
            talk.frames.iter().filter(|f| f.kind == DATA).map(|f| f.payload.len()).collect();
        assert_eq!(lengths, sizes);
        assert_eq!(talk.frames.iter().filter(|f| f.kind == HEADERS).count(), 3, "two interim heads");
        assert_eq!(talk.reply(1).0.windows(6).any(|part| part == b"length"), has_length);
    }
    let mut talk = Talk::new(serving(MS, "hello"));
    let head = [&[2, 4][..], b"HEAD", &GET[1..]].concat();
    talk.say(&frame(HEADERS, END_HEADERS | END, 1, &head));
    talk.wait(MS * 5);
    assert!(talk.reply(1).0.ends_with(b"5") && talk.reply(1).1.is_empty() && talk.reply(1).2.is_some());
}

#[test]
fn faults_of_a_stream_leave_the_others_alone() {
    // Half of the streams meet with the fault, the others are answered.
    type Case = (Action, fn(f64) -> Faults);
    let rows: [Case; 6] = [
        (Action::Drop, |p| Faults { drop_reply: p, ..Faults::default() }),
        (Action::Reset, |p| Faults { reset: p, ..Faults::default() }),
        (Action::Refuse, |p| Faults { refuse_stream: p, ..Faults::default() }),
        (Action::Truncate, |p| Faults { truncated_body: p, ..Faults::default() }),
        (Action::Excess, |p| Faults { excess_body: p, ..Faults::default() }),
        (Action::Reply(503), |p| Faults { statuses: vec![(503, p)], ..Faults::default() }),
    ];
    for (action, faults) in rows {
        let mut talk = Talk::new(with(faults(0.5)));
        talk.say(&(0..100).flat_map(|n| get(2 * n + 1)).collect::<Vec<u8>>());
        talk.wait(MS * 50);
        assert_eq!(talk.end, End::Open, "{action:?}");
        let mut faulty = 0;
        for (number, truth) in talk.truth.entries().iter().enumerate() {
            let stream = 2 * number as u32 + 1;
            let (head, content, end) = talk.reply(stream);
            let reset = talk.frames.iter().find(|f| f.kind == RST_STREAM && f.stream == stream);
            let code = reset.map(Frame::word);
            if truth.action == Action::Reply(200) {
                assert_eq!((&content[..], end.is_some(), code), (&b"hello"[..], true, None));
                continue;
            }
            assert_eq!(truth.action, action);
            faulty += 1;
            assert_eq!(truth.replied.is_some(), action != Action::Drop);
            match action {
                Action::Drop => assert!(head.is_empty() && end.is_none() && code.is_none()),
                Action::Reset => assert_eq!((head.len(), code), (0, Some(2))),
                Action::Refuse => assert_eq!((head.len(), code), (0, Some(7))),
                Action::Truncate => assert!(head.ends_with(b"\x0211") && content == b"hello"),
                Action::Excess => assert!(head.ends_with(b"\x012") && content == b"hello"),
                _ => assert!(head.windows(3).any(|part| part == b"503") && content == b"hello"),
            }
        }
        // Five standard deviations of a binomial count.
        assert!((25..=75).contains(&faulty), "{action:?}: {faulty}");
    }
}

#[test]
fn a_close_says_which_streams_were_not_processed() {
    let mut talk = Talk::new(with(Faults { close_before_reply: 1.0, ..Faults::default() }));
    let sent = talk.now();
    talk.say(&[get(1), get(3)].concat());
    talk.wait(MS * 5);
    let goodbye = talk.heard().pop().expect("GOAWAY");
    assert_eq!((goodbye.kind, goodbye.word(), &goodbye.payload[4..]), (GOAWAY, 1, &[0, 0, 0, 0][..]));
    assert_eq!(talk.end, End::Closed(sent + LATENCY * 2 + MS));
    assert_eq!(talk.actions(), [(Action::Close, true), (Action::Ignore, false)]);
}

#[test]
fn an_announced_close_waits_for_the_streams_before_it() {
    let law = Law::Bimodal { fast: MS, slow: MS * 30, slow_share: 0.5 };
    for announce_close in [true, false] {
        let faults = Faults { close_after: Some(10), announce_close, ..Faults::default() };
        let mut talk = Talk::new(Behaviour { service: law, ..with(faults) });
        talk.say(&(0..12).flat_map(|n| get(2 * n + 1)).collect::<Vec<u8>>());
        talk.wait(MS * 100);
        let answered = (0..12).filter(|n| talk.reply(2 * n + 1).2.is_some()).count();
        let away = talk.frames.iter().find(|f| f.kind == GOAWAY).map(|f| (f.word(), f.at));
        let last = talk.reply(19).2.expect("the tenth is answered");
        let End::Closed(closed) = talk.end else { panic!("{:?}", talk.end) };
        if announce_close {
            assert_eq!((answered, away), (10, Some((19, last))));
        } else {
            assert!(answered <= 10 && away.is_none());
            assert_eq!(closed, last);
        }
        let replied = talk.actions().iter().filter(|(_, replied)| *replied).count();
        assert_eq!(replied, answered, "the log says what was handed over");
        assert_eq!(talk.truth.count(|action| action == Action::Ignore), 2);
    }
}

#[test]
fn garbage_and_endless_heads_break_the_connection() {
    let mut talk = Talk::new(with(Faults { garbage: 1.0, ..Faults::default() }));
    talk.say(&[get(1), get(3)].concat());
    talk.wait(MS * 5);
    assert!(talk.inbox.starts_with(b"\x16\x03 no HTTP"), "{:?}", talk.inbox);
    assert_eq!(talk.actions(), [(Action::Garbage, true), (Action::Ignore, false)]);

    let mut talk = Talk::new(with(Faults { endless_head: 1.0, ..Faults::default() }));
    talk.heard();
    talk.say(&get(1));
    talk.wait(MS * 100);
    let frames = talk.heard();
    assert_eq!((frames[0].kind, frames[0].flags), (HEADERS, 0));
    assert!(frames.len() > 900 && frames[1..].iter().all(|f| (f.kind, f.flags) == (CONTINUATION, 0)));
}

#[test]
fn a_stream_that_the_client_resets_is_not_answered() {
    let mut talk = Talk::new(serving(MS * 10, "hello"));
    talk.say(&[get(1), get(3)].concat());
    talk.wait(MS * 5);
    talk.say(&word(1, RST_STREAM, 8));
    talk.wait(MS * 20);
    assert_eq!((talk.reply(1).2, talk.reply(3).1), (None, b"hello".to_vec()));
    assert_eq!(talk.actions(), [(Action::Reply(200), false), (Action::Reply(200), true)]);
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let http2 = Http2 { max_streams: Some(2), ..Http2::default() };
    let mut talk = Talk::new(Behaviour { http2, ..serving(MS, "") });
    assert_eq!(talk.heard()[0].payload, [0, 3, 0, 0, 0, 2]);
    talk.say(&[get(1), get(3), get(5)].concat());
    talk.wait(MS * 5);
    let refused: Vec<_> = talk.frames.iter().filter(|f| f.kind == RST_STREAM).collect();
    assert_eq!((refused.len(), refused[0].stream, refused[0].word()), (1, 5, 7));
    assert_eq!(talk.truth.count(|action| action == Action::Refuse), 1);
    talk.say(&get(7));
    talk.wait(MS * 5);
    assert!(talk.reply(7).2.is_some());
    assert_eq!(talk.truth.count(|action| action == Action::Reply(200)), 3);
}

#[test]
fn broken_rules_are_rejected() {
    let table: [(Vec<u8>, u8); 9] = [
        (frame(PING, 0, 0, &[0; 7]), 6),
        (frame(DATA, 0, 1, b"a"), 1),
        (frame(HEADERS, END_HEADERS | END, 2, GET), 1),
        (frame(HEADERS, END_HEADERS | END, 1, &[0xff, 0xff, 0x7f]), 9),
        (frame(HEADERS, END_HEADERS | END, 1, &GET[1..]), 1),
        ([frame(HEADERS, 0, 1, GET), frame(PING, 0, 0, &[0; 8])].concat(), 1),
        ([get(1), frame(DATA, END, 1, b"a")].concat(), 5),
        (word(0, WINDOW_UPDATE, 0x7fff_ffff), 3),
        (setting(4, 1 << 31), 3),
    ];
    for (bytes, code) in table {
        let mut talk = Talk::new(serving(MS * 50, ""));
        talk.say(&bytes);
        talk.wait(MS * 5);
        let goodbye = talk.heard().pop().expect("GOAWAY");
        assert_eq!((goodbye.kind, goodbye.payload[7]), (GOAWAY, code), "{bytes:?}");
        assert!(matches!(talk.end, End::Closed(_)));
        assert_eq!(talk.truth.count(|action| action == Action::Reject), 1, "{bytes:?}");
    }
}

#[test]
fn a_server_that_stands_still_answers_pings_afterwards() {
    let start = SimOptions::default().start;
    let pause = Pause { at: start + MS * 10, length: MS * 100 };
    let mut talk = Talk::new(Behaviour { pauses: vec![pause], ..serving(MS, "hi") });
    talk.wait(start + MS * 20 - talk.now());
    talk.heard();
    talk.say(&[frame(PING, 0, 0, b"12345678"), get(1)].concat());
    talk.wait(MS * 200);
    let frames = talk.heard();
    assert_eq!((frames[0].kind, frames[0].flags, &frames[0].payload[..]), (PING, END, &b"12345678"[..]));
    assert_eq!(frames[0].at, pause.end() + LATENCY);
    assert_eq!(frames[1].at, pause.end() + LATENCY + MS);
}

#[test]
fn a_client_that_leaves_takes_its_streams_along() {
    let mut talk = Talk::new(serving(MS * 10, "hello"));
    talk.say(&get(1));
    talk.wait(MS);
    talk.sim.close(talk.conn, Close::Now);
    talk.wait(MS * 50);
    assert_eq!(talk.actions(), [(Action::Reply(200), false)]);
}

#[test]
fn single_bytes_make_no_difference() {
    let run = |segment_bytes| {
        let faults = Faults { reset: 0.2, truncated_body: 0.1, ..Faults::default() };
        let options = SimOptions { segment_bytes, partial_write: 0.5, ..SimOptions::default() };
        let mut talk = Talk::with(options, with(faults));
        talk.say(&(0..50).flat_map(|n| get(2 * n + 1)).collect::<Vec<u8>>());
        talk.wait(MS * 50);
        let frames = talk.heard().into_iter().map(|f| (f.kind, f.flags, f.stream, f.payload));
        (frames.collect::<Vec<_>>(), talk.truth.entries())
    };
    assert_eq!(run(1), run(usize::MAX));
}
