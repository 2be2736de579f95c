//! A service of another crate.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::KernelBackend;
use plimsoll_targets::sink::service::{
    AddedAnswer, AddedBody, AddedForm, AddedPart, AddedReply, AddedRequest, AddedService, TimeoutField,
};
use plimsoll_targets::{Delay, Faults, Service, SinkOptions, SlowData, Truth};
use plimsoll_testkit::on_every_backend;
use plimsoll_wire::http2::ClientOptions;

use crate::sink::client::Client;
use crate::sink::streams::{Extra, Reply, Streams};
use crate::sink::{assert_identity, plain, start};

on_every_backend! {
    answers_over_both_protocols,
    numbers_its_answers,
    answers_in_parts,
    fails_with_its_own_codes,
    sends_bodies_in_its_own_pieces,
}

/// Answers with the body that came: as a stream over HTTP/2, else as a whole.
#[derive(Debug, Default)]
struct Echo {
    pace: Option<SlowData>,
}

const STREAMED: u16 = 0;
const WHOLE: u16 = 1;
const NUMBER: u16 = 2;
const NONE: u16 = 3;

/// A code of failures.
const LOST: u16 = 1;

impl AddedService for Echo {
    fn problems(&self) -> Vec<String> {
        self.pace.filter(|pace| pace.every == Nanos::ZERO).map(|_| "no pace".to_owned()).into_iter().collect()
    }

    fn replies(&self) -> Vec<AddedReply> {
        let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let streamed = |kind, body, trailers: &[(&str, &str)]| AddedForm::Streamed {
            fields: vec![text(("x-kind", kind))],
            body,
            trailers: trailers.iter().copied().map(text).collect(),
            piece: |body| body.len().min(2),
        };
        let whole = |body| AddedForm::Whole { content_type: "text/plain".to_owned(), body };
        vec![
            AddedReply { status: 200, form: streamed("echo", AddedBody::Given, &[("x-end", "fine")]) },
            AddedReply { status: 201, form: whole(AddedBody::Given) },
            AddedReply { status: 200, form: whole(AddedBody::Number(b"n: ".to_vec())) },
            AddedReply { status: 404, form: AddedForm::Bare },
            AddedReply { status: LOST, form: streamed("lost", AddedBody::Empty, &[]) },
        ]
    }

    fn answer<'a>(&self, request: &AddedRequest<'_, 'a>) -> AddedAnswer<'a> {
        let reply = match (request.target, request.is_http2) {
            (b"/none", _) => NONE,
            (b"/number", _) => NUMBER,
            (_, true) => STREAMED,
            (_, false) => WHOLE,
        };
        match (reply, request.status) {
            (_, Some(LOST)) => AddedAnswer::plain(NONE + LOST),
            (STREAMED | WHOLE, _) => AddedAnswer { reply, body: request.body.into() },
            _ => AddedAnswer::plain(reply),
        }
    }

    fn answer_part<'a>(&self, target: &[u8], body: &'a [u8], at_once: bool) -> Option<AddedPart<'a>> {
        let is_answered = target == b"/parts" && at_once;
        is_answered.then(|| AddedPart { body: body.into(), consumed: body.len() })
    }

    fn pace(&self) -> Option<SlowData> {
        self.pace
    }

    fn codes(&self) -> &'static [&'static str] {
        &["FINE", "LOST"]
    }

    fn timeout(&self) -> Option<TimeoutField> {
        let read = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok().map(Nanos::from_millis);
        Some(TimeoutField { name: "x-wait", read, status: LOST })
    }
}

fn echo(service: Echo) -> SinkOptions {
    SinkOptions { service: Service::Added(Arc::new(service)), truth: Truth::Memory, ..plain() }
}

fn post<'a>(fields: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Extra<'a> {
    Extra { fields, body }
}

fn ask(client: &mut Client, streams: &mut Streams, path: &str, extra: Extra<'_>) -> Reply {
    let request = streams.request("POST", path, extra);
    streams.reply(client, request)
}

fn answers_over_both_protocols(backend: KernelBackend) {
    for delay in [Delay::None, Delay::Constant(Nanos::from_millis(1))] {
        let sink = start(SinkOptions { delay, ..echo(Echo::default()) }, backend);
        let mut client = Client::new();
        let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
        let streamed = ask(&mut client, &mut streams, "/", post(&[], b"over HTTP/2"));
        assert_eq!((streamed.status, &streamed.body[..]), (200, &b"over HTTP/2"[..]));
        let fields = ["x-kind", "content-length", "x-end"].map(|name| streamed.field(name));
        assert_eq!(fields, [Some("echo"), None, Some("fine")]);
        let none = ask(&mut client, &mut streams, "/none", post(&[], b"x"));
        assert_eq!((none.status, none.body.len()), (404, 0));
        let http1 = client.connect(sink.endpoint());
        client.send(http1, b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc");
        let whole = client.response(http1);
        assert_eq!((whole.status, &whole.body[..]), (201, &b"abc"[..]));
        assert!(whole.head.contains("content-type: text/plain\r\n"), "{}", whole.head);
        client.send(http1, b"POST /none HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(client.response(http1).status, 404);
        let report = sink.stop();
        assert_identity(&report);
        let statuses: Vec<_> = report.truth.iter().map(|row| row.status).collect();
        assert_eq!(statuses, [Some(200), Some(404), Some(201), Some(404)]);
    }
}

fn numbers_its_answers(backend: KernelBackend) {
    let sink = start(echo(Echo::default()), backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    for number in 0..3_u64 {
        let reply = ask(&mut client, &mut streams, "/number", post(&[], b""));
        assert_eq!(reply.body, [&b"n: "[..], &number.to_le_bytes()].concat());
        assert_eq!(reply.field("content-length"), Some("11"));
    }
    assert_eq!(sink.stop().replied, 3);
}

fn answers_in_parts(backend: KernelBackend) {
    let sink = start(echo(Echo::default()), backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let body = vec![7; 50_000];
    let reply = ask(&mut client, &mut streams, "/parts", post(&[], &body));
    assert_eq!((reply.status, reply.body == body), (200, true));
    let report = sink.stop();
    assert_identity(&report);
    assert_eq!((report.counter, report.replied), (1, 1));
}

fn fails_with_its_own_codes(backend: KernelBackend) {
    let late = SinkOptions { delay: Delay::Constant(Nanos::from_secs(60)), ..echo(Echo::default()) };
    let faults = Faults { statuses: vec![(LOST, 1.0)], ..Faults::default() };
    let faulty = SinkOptions { faults: faults.clone(), ..echo(Echo::default()) };
    let asked: &[(&str, &str)] = &[("x-plimsoll-status", "1")];
    for (options, fields) in [(late, &[("x-wait", "5")][..]), (faulty, &[]), (echo(Echo::default()), asked)] {
        let sink = start(options, backend);
        let mut client = Client::new();
        let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
        let reply = ask(&mut client, &mut streams, "/", post(fields, b"abc"));
        assert_eq!((reply.status, reply.field("x-kind"), reply.body.len()), (200, Some("lost"), 0));
        assert_eq!(sink.stop().truth[0].status, Some(LOST));
    }
    // Others have no codes.
    let problems = SinkOptions { faults, ..plain() }.problems();
    assert_eq!(problems, ["the status of a fault is between 200 and 599, or a code of the service"]);
}

fn sends_bodies_in_its_own_pieces(backend: KernelBackend) {
    let pace = |every| Some(SlowData { bytes: 1, every });
    assert_eq!(echo(Echo { pace: pace(Nanos::ZERO) }).problems(), ["no pace"]);
    let sink = start(echo(Echo { pace: pace(Nanos::from_millis(1)) }), backend);
    let mut client = Client::new();
    let mut streams = Streams::connect(&mut client, sink.endpoint(), &ClientOptions::default());
    let request = streams.request("POST", "/", post(&[], b"abcde"));
    let reply = streams.reply(&mut client, request);
    assert_eq!((&reply.body[..], streams.pieces(request)), (&b"abcde"[..], 3));
    sink.stop();
}
