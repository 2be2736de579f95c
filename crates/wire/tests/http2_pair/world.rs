//! A client, a server, the bytes between them, and the expected results.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_wire::http2::{
    Client, ClientOptions, ErrorCode, Event, LONGEST_QUOTE, Payload, Request, Server, ServerOptions,
    StreamFailure, Submit,
};

use super::books::{Replies, Requests, STATUSES, id_of, is_head, may_have_content, path_of};

/// The end of a request, as far as the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Response { status: u16, bytes: u64 },
    Refused,
    Reset(ErrorCode),
    Unprocessed,
    Cancelled,
}

/// The server's decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// With a status by its place in [`STATUSES`], and content of this many bytes.
    Answer {
        status: usize,
        bytes: usize,
    },
    Reset(ErrorCode),
}

/// A request from begin to end. Its number is its place among those submitted, its stream `2 n + 1`.
#[derive(Debug)]
struct Exchange {
    ask: usize,
    bytes: usize,
    ticket: u32,
    capture: bool,
    captured: bool,
    began: bool,
    /// Set once the server received it.
    heard: bool,
    fate: Option<Fate>,
    end: Option<End>,
}

/// A reply of which content is still to be given to the server.
#[derive(Debug)]
struct Slow {
    stream: u32,
    left: usize,
}

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) server: Server,
    requests: Requests,
    replies: Replies,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    courses: Vec<Exchange>,
    /// Requests that the server has not decided about, in the order in which they came.
    waiting: Vec<Request>,
    slow: Vec<Slow>,
    content: Arc<[u8]>,
    pings: u64,
    pongs: u64,
    ready: bool,
    server_leaves: bool,
}

impl World {
    pub(crate) fn new(client: &ClientOptions, server: &ServerOptions) -> Self {
        let mut world = Self {
            client: Client::new(client),
            server: Server::new(server),
            requests: Requests::new(),
            replies: Replies::new(),
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            courses: Vec::new(),
            waiting: Vec::new(),
            slow: Vec::new(),
            content: Arc::from(vec![b'c'; 300_000]),
            pings: 0,
            pongs: 0,
            ready: false,
            server_leaves: false,
        };
        let mut out = Vec::new();
        world.client.start(&mut out);
        world.to_server.extend(out.drain(..));
        world.server.start(&mut out);
        world.to_client.extend(out);
        world
    }

    // ---- what may be done --------------------------------------------------------------------------------

    /// Submits a request if there is capacity.
    pub(crate) fn submit(&mut self, ask: usize, bytes: usize, capture: bool) {
        if self.client.capacity() == 0 {
            return;
        }
        let number = self.courses.len() as u32;
        let bytes = if may_have_content(ask) { bytes } else { 0 };
        let body = payload(&self.content, bytes);
        let mut out = Vec::new();
        let requests = &self.requests;
        let ticket = self.client.submit(
            Submit { head_request: is_head(ask), capture, keep_body: capture, tell_content: false, body },
            |indexing, out| requests.write(ask, number, indexing, out),
            &mut out,
        );
        assert!(!self.courses.iter().any(|course| course.end.is_none() && course.ticket == ticket));
        self.courses.push(Exchange {
            ask,
            bytes,
            ticket,
            capture,
            captured: false,
            began: false,
            heard: false,
            fate: None,
            end: None,
        });
        self.to_server.extend(out);
    }

    /// Cancels one of the open requests.
    pub(crate) fn cancel(&mut self, which: usize) {
        let open: Vec<u32> = self.client.tickets().collect();
        let Some(&ticket) = open.get(which % open.len().max(1)) else { return };
        let mut out = Vec::new();
        self.client.cancel(ticket, &mut out);
        self.to_server.extend(out);
        self.course_of(ticket).end = Some(End::Cancelled);
    }

    /// Decides about one of the waiting requests.
    pub(crate) fn decide(&mut self, which: usize, fate: Fate, slowly: bool) {
        if self.waiting.is_empty() {
            return;
        }
        let request = self.waiting.remove(which % self.waiting.len());
        let (stream, mut out) = (request.stream, Vec::new());
        let open = self.server.is_open(stream);
        match fate {
            Fate::Reset(code) => self.server.reset(stream, code, &mut out),
            Fate::Answer { status, bytes } => {
                let number = stream / 2;
                let path = path_of(self.courses[number as usize].ask, number);
                let replies = &self.replies;
                let replied = if slowly {
                    let write =
                        |indexing: &mut _, out: &mut _| replies.write(status, &path, bytes, indexing, out);
                    self.server.reply_head(stream, write, &mut out)
                } else {
                    let write =
                        |indexing: &mut _, out: &mut _| replies.write(status, &path, bytes, indexing, out);
                    self.server.reply(stream, write, payload(&self.content, bytes), &mut out)
                };
                assert_eq!(replied, open);
                assert_eq!(replied, !out.is_empty());
                if slowly && replied {
                    self.slow.push(Slow { stream, left: bytes });
                }
            }
        }
        if open {
            self.courses[stream as usize / 2].fate = Some(fate);
        }
        self.to_client.extend(out);
    }

    /// Gives the server more content of a slow reply.
    pub(crate) fn more(&mut self, which: usize, bytes: usize) {
        if self.slow.is_empty() {
            return;
        }
        let which = which % self.slow.len();
        let slow = &mut self.slow[which];
        let now = bytes.min(slow.left);
        slow.left -= now;
        let (stream, end) = (slow.stream, slow.left == 0);
        let mut out = Vec::new();
        let open = self.server.is_open(stream);
        assert_eq!(self.server.data(stream, payload(&self.content, now), end, &mut out), open);
        if end || !open {
            self.slow.remove(which);
        }
        self.to_client.extend(out);
    }

    pub(crate) fn ping(&mut self) {
        let mut out = Vec::new();
        self.pings += 1;
        self.client.ping(self.pings, &mut out);
        self.to_server.extend(out);
    }

    pub(crate) fn server_goes_away(&mut self) {
        self.server_leaves = true;
        let mut out = Vec::new();
        self.server.go_away(ErrorCode::NoError, &mut out);
        self.to_client.extend(out);
    }

    pub(crate) fn client_goes_away(&mut self) {
        let mut out = Vec::new();
        self.client.go_away(&mut out);
        self.to_server.extend(out);
    }

    /// Lets the server read at most this many bytes.
    pub(crate) fn deliver_to_server(&mut self, bytes: usize) {
        let input: Vec<u8> = self.to_server.drain(..bytes.min(self.to_server.len())).collect();
        let (mut out, mut requests) = (Vec::new(), Vec::new());
        let result = self.server.receive(&input, &mut out, &mut requests);
        assert_eq!(result, Ok(()), "the client broke a rule");
        for request in requests {
            self.check_request(&request);
            self.waiting.push(request);
        }
        self.to_client.extend(out);
    }

    fn check_request(&mut self, request: &Request) {
        let number = request.stream / 2;
        let course = &mut self.courses[number as usize];
        assert!(!std::mem::replace(&mut course.heard, true), "request {number} came twice");
        let text = |span| String::from_utf8(self.server.text(span).to_vec()).expect("text");
        let methods = ["GET", "POST", "HEAD", "GET", "PUT"];
        assert_eq!(text(request.method), methods[course.ask]);
        assert_eq!(text(request.path), path_of(course.ask, number));
        assert_eq!(request.id.map(text), id_of(course.ask, number));
        assert_eq!((request.head_request, request.body_bytes), (is_head(course.ask), course.bytes as u64));
    }

    /// Lets the client read at most this many bytes.
    pub(crate) fn deliver_to_client(&mut self, bytes: usize) {
        let input: Vec<u8> = self.to_client.drain(..bytes.min(self.to_client.len())).collect();
        let (mut out, mut events) = (Vec::new(), Vec::new());
        let result = self.client.receive(&input, &mut out, &mut events);
        assert_eq!(result, Ok(()), "the server broke a rule");
        for event in &events {
            self.note(event);
        }
        self.to_server.extend(out);
    }

    fn note(&mut self, event: &Event) {
        match *event {
            Event::Ready => assert!(!std::mem::replace(&mut self.ready, true)),
            Event::Pong { payload } => {
                self.pongs += 1;
                assert_eq!(payload, self.pongs);
            }
            Event::GoAway { code, .. } => assert!(self.server_leaves && code == ErrorCode::NoError),
            Event::Began { ticket } => {
                assert!(!std::mem::replace(&mut self.course_of(ticket).began, true), "began twice");
            }
            Event::Content { .. } => panic!("nobody asked for it"),
            Event::Head { ticket, ref fields } => {
                let answers = self.client.captured_header(fields, "X-Answers").map(<[u8]>::to_vec);
                let number = self.number_of(ticket);
                let course = &mut self.courses[number];
                assert!(course.capture && !std::mem::replace(&mut course.captured, true));
                let Some(Fate::Answer { status, .. }) = course.fate else { panic!("{course:?}") };
                let expected =
                    (STATUSES[status] == 201).then(|| path_of(course.ask, number as u32).into_bytes());
                assert_eq!(answers, expected, "the tables disagree");
            }
            Event::Response { ticket, response } => {
                let end = End::Response { status: response.status, bytes: response.body_bytes };
                let body = self.client.body(ticket).to_vec();
                let course = self.course_of(ticket);
                let kept = match response.status {
                    _ if course.capture => response.body_bytes,
                    // The beginning of an unsuccessful response is kept in any case.
                    300.. => response.body_bytes.min(LONGEST_QUOTE as u64),
                    _ => 0,
                };
                assert_eq!(body.len() as u64, kept);
                assert!(body.iter().all(|&byte| byte == b'c'), "content of the server alone");
                assert_eq!(course.captured, course.capture);
                course.end = Some(end);
                self.client.reuse(ticket);
            }
            Event::Failed { ticket, failure } => {
                self.course_of(ticket).end = Some(match failure {
                    StreamFailure::Refused => End::Refused,
                    StreamFailure::Reset(code) => End::Reset(code),
                    StreamFailure::Unprocessed => End::Unprocessed,
                    other => panic!("{other:?}"),
                });
                self.client.reuse(ticket);
            }
        }
    }

    /// The open request that has this ticket.
    fn number_of(&self, ticket: u32) -> usize {
        let open = |course: &Exchange| course.end.is_none() && course.ticket == ticket;
        self.courses.iter().position(open).expect("an event of a ticket that is free")
    }

    fn course_of(&mut self, ticket: u32) -> &mut Exchange {
        let number = self.number_of(ticket);
        &mut self.courses[number]
    }

    // ---- what has to be -----------------------------------------------------------------------------------

    /// Answers everything and lets everything arrive, `cut` bytes at a time; then checks how all ended.
    pub(crate) fn settle(&mut self, cut: usize) {
        let mut moves = 0;
        loop {
            let idle = self.to_server.is_empty() && self.to_client.is_empty();
            if idle && self.waiting.is_empty() && self.slow.is_empty() {
                break;
            }
            self.deliver_to_server(cut);
            self.deliver_to_client(cut);
            self.decide(moves, Fate::Answer { status: moves % STATUSES.len(), bytes: moves % 50 }, false);
            self.more(moves, 100_000);
            moves += 1;
            assert!(moves < 5_000_000, "it goes round in circles");
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!((self.client.active(), self.server.active()), (0, 0), "something waits for ever");
        assert_eq!(self.client.tickets().count(), 0);
        assert_eq!(self.pongs, self.pings);
        assert!(self.ready);
        assert_eq!(Arc::strong_count(&self.content), 1, "content is still held");
        let mut cancelled = 0;
        for (number, course) in self.courses.iter().enumerate() {
            let end = course.end.expect("every request ends");
            cancelled += u64::from(end == End::Cancelled);
            let what = format!("{number}: {course:?}");
            match (end, course.fate) {
                (End::Response { status, bytes }, Some(Fate::Answer { status: planned, bytes: content })) => {
                    let content = if is_head(course.ask) { 0 } else { content };
                    assert_eq!((status, bytes), (STATUSES[planned], content as u64), "{what}");
                }
                (End::Reset(code), Some(Fate::Reset(planned))) => assert_eq!(code, planned, "{what}"),
                (End::Refused, Some(Fate::Reset(planned))) => {
                    assert_eq!(planned, ErrorCode::RefusedStream, "{what}");
                }
                (End::Refused, None) => assert!(!course.heard, "{what}"),
                (End::Unprocessed, None) => assert!(!course.heard && self.server_leaves, "{what}"),
                (End::Cancelled, _) => {}
                _ => panic!("{what}"),
            }
        }
        assert!(self.server.cancelled() <= cancelled);
    }

    /// Returns the number of requests whose end matches.
    pub(crate) fn count(&self, matches: impl Fn(End) -> bool) -> usize {
        self.courses.iter().filter(|course| course.end.is_some_and(&matches)).count()
    }
}

/// Large content is shared, small content is copied.
fn payload(content: &Arc<[u8]>, bytes: usize) -> Payload<'_> {
    match bytes {
        0 => Payload::None,
        _ if bytes == content.len() => Payload::Shared(content),
        _ => Payload::Bytes(&content[..bytes]),
    }
}
