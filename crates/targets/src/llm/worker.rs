//! The loop of one thread of a server of completions.

mod turn;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use plimsoll_core::{Nanos, Random};
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait};
use plimsoll_histogram::Histogram;
use plimsoll_wire::http1::{Limits, RequestMemo};
use plimsoll_wire::http2::ServerOptions;
use plimsoll_wire::tls::Session;

use super::api::{self, Completion, Wish};
use super::chunk::{Answer, AnswerWriter, To};
use super::dialect::Dialect;
use super::options::StreamFaults;
use super::truth::{LlmTruthRow, StreamEnd};
use super::{Ended, Setup};
use crate::budget::{FREE_BYTES, Part};
use crate::http_reply::HttpReply;
use crate::sink::RequestId;
use crate::sink::connection::{DetectedProtocol, Protocol};
use crate::sink::reply_writer::sent_at;
use crate::sink::truth::Sheet;
use crate::table::Table;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Events of one pass: bounds how long chunks that are due wait behind reading.
const PASS_EVENTS: u32 = 256;
/// Chunks of one flush: bounds how long the first of them waits for the last. At some 2 µs each the wait is
/// of the order of what a chunk takes through the kernel.
const FLUSH_CHUNKS: u32 = 64;
/// Bytes of a request, and of what comes behind one that is being answered, on HTTP/1.1.
const LONGEST_PROMPT: usize = 16 << 20;
/// A client that sends requests and leaves more than this many bytes of the replies unread is cut off, lest
/// it fill the memory. Completions wait for it long before.
const UNREAD_BYTES: usize = 4 << 20;
/// Entries of answers that their clients gave up, beside as many of others, that a queue may have.
const STALE_ENTRIES: u64 = 1024;

/// Counts of one thread, or of the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlmCounts {
    /// Connections.
    pub connections: u64,
    /// Requests for a completion.
    pub completions: u64,
    /// Other requests, and completions that could not be made.
    pub others: u64,
    /// Completions that were refused because the queue was full.
    pub refused: u64,
    /// Completions that were sent whole.
    pub whole: u64,
    /// Completions that went wrong on purpose.
    pub faults: u64,
    /// Completions that their client, or the end of the server, broke off.
    pub abandoned: u64,
    /// Tokens that were sent.
    pub tokens: u64,
    /// Connections that were ended for what the client sent or did not read.
    pub violations: u64,
    /// Connections that were ended because all together held more memory than they may.
    pub over_memory: u64,
}

crate::add_fields!(LlmCounts {
    connections,
    completions,
    others,
    refused,
    whole,
    faults,
    abandoned,
    tokens,
    violations,
    over_memory
});

/// One connection.
#[derive(Debug)]
struct Peer {
    protocol: Protocol,
    /// Body of the present request on HTTP/1.1, as far as it has come.
    body: Vec<u8>,
    /// Bytes that came behind a request of HTTP/1.1 that is being answered...
    behind: Vec<u8>,
    /// ...and how many of them are read.
    behind_read: usize,
    /// The completions that it is owed, by their numbers; on HTTP/1.1 there is one at most.
    answers: HashMap<u64, Stream>,
    /// Those of them that go on when the client has read what it was sent.
    held: Vec<u64>,
    /// Set while the connection is asked again and again how much of that the kernel has taken.
    stalled: bool,
    /// The memory that it has.
    part: Part,
    tls: Option<Box<Session>>,
    /// The flush in which it was written to last, and its place among those written to in it.
    mark: (u64, u32),
}

impl Peer {
    fn new(tls: Option<Box<Session>>) -> Self {
        Self {
            protocol: Protocol::Open(0),
            body: Vec::new(),
            behind: Vec::new(),
            behind_read: 0,
            answers: HashMap::new(),
            held: Vec::new(),
            stalled: false,
            part: Part::default(),
            tls,
            mark: (0, 0),
        }
    }

    /// Bytes that it has beside what it was sent: of requests that are not answered yet, and of answers that
    /// its client's windows hold back.
    fn held_bytes(&self) -> usize {
        let of_streams = match &self.protocol {
            Protocol::Http2(server) => server.held_bytes(),
            _ => 0,
        };
        self.body.capacity() + self.behind.capacity() + of_streams
    }
}

/// A completion that waits for its slot or is being sent.
#[derive(Debug)]
struct Stream {
    completion: Completion,
    random: Random,
    fault: Option<StreamEnd>,
    to: To,
    /// The head of the response is written.
    has_head: bool,
    runs: bool,
    /// When the next part is due, by the laws. An answer that is not a stream is due as a whole, once the
    /// gaps are drawn that it takes.
    due: Nanos,
    /// When the part behind it is.
    next: Nanos,
    /// Chunks of the present burst that are written.
    burst: u64,
    /// Gaps that are still to be drawn, of an answer that is not a stream.
    gaps: u64,
    /// When it went on after it had waited for its client, which is no lateness of the server.
    resumed: Nanos,
    row: LlmTruthRow,
}

/// An answer that goes on, in the order of the time. That is the one when it is due, or the one when it had
/// its last turn if that is later: whoever has waited longest is next, however late all are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    order: u64,
    slot: usize,
    number: u64,
}

/// A chunk with content that the next flush sends.
#[derive(Clone, Copy, Debug)]
struct WrittenChunk {
    /// The place of its connection in the flush.
    place: u32,
    conn: ConnId,
    /// The number of its answer.
    number: u64,
    due: Nanos,
}

/// One thread of a server of completions.
#[derive(Debug)]
pub(super) struct Worker<B> {
    setup: Arc<Setup>,
    backend: B,
    listener: ListenerId,
    table: Table<Peer>,
    /// The connections by their slots, for what is due.
    ids: Vec<Option<ConnId>>,
    limits: Limits,
    memo: RequestMemo,
    due: BinaryHeap<Reverse<Due>>,
    order: u64,
    /// Completions that have a slot.
    running: u64,
    /// Completions that wait for a slot, and others that were given up while they did.
    waiting: VecDeque<(ConnId, u64)>,
    /// How many of them do wait.
    queued: u64,
    /// Connections whose answers go on when the kernel has taken more.
    stalled: VecDeque<ConnId>,
    /// When to ask it.
    recall_at: Nanos,
    sheet: Sheet<LlmTruthRow>,
    counts: LlmCounts,
    /// Number of the next flush, from 1.
    flush_number: u64,
    /// Connections written to since the last flush.
    sends: u32,
    /// Chunks written since the last flush.
    written: Vec<WrittenChunk>,
    /// From when chunks were due until they were handed to the kernel.
    lateness: Histogram,
    /// Rows that are complete with the next flush.
    ended: Vec<LlmTruthRow>,
    closings: Vec<(ConnId, Close)>,
    out: Vec<u8>,
    ends_at: Nanos,
}

impl<B: Backend> Worker<B> {
    /// A thread that listens already and counts its time from `start`.
    pub(super) fn new(
        setup: Arc<Setup>,
        backend: B,
        listener: ListenerId,
        sheet: Sheet<LlmTruthRow>,
        start: Nanos,
    ) -> Self {
        Self {
            backend,
            listener,
            table: Table::default(),
            ids: Vec::new(),
            limits: Limits::default(),
            memo: RequestMemo::new(),
            due: BinaryHeap::new(),
            order: 0,
            running: 0,
            waiting: VecDeque::new(),
            queued: 0,
            stalled: VecDeque::new(),
            recall_at: Nanos::MAX,
            sheet,
            counts: LlmCounts::default(),
            flush_number: 1,
            sends: 0,
            written: Vec::new(),
            lateness: Histogram::default(),
            ended: Vec::new(),
            closings: Vec::new(),
            out: Vec::new(),
            ends_at: setup.options.duration.map_or(Nanos::MAX, |duration| start + duration),
            setup,
        }
    }

    /// Serves until the server is stopped or its time is over.
    pub(super) fn run(mut self) -> Ended {
        loop {
            let now = self.backend.now();
            if self.setup.stopper.is_stopped() || now >= self.ends_at {
                break;
            }
            let next = self.due.peek().map_or(Nanos::MAX, |Reverse(due)| due.at);
            let until = (now + STOP_POLL).min(self.ends_at).min(next).min(self.recall_at);
            self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            for _ in 0..PASS_EVENTS {
                let Some(event) = self.backend.next_event() else { break };
                self.handle(event);
            }
            self.recall();
            self.release();
            self.flush();
        }
        self.leave()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Accepted { conn, .. } => {
                let tls = match self.setup.options.tls.as_ref().map(Session::server).transpose() {
                    Ok(session) => session.map(Box::new),
                    Err(_) => {
                        self.counts.violations += 1;
                        return self.backend.close(conn, Close::Now);
                    }
                };
                self.counts.connections += 1;
                self.table.insert(conn, Peer::new(tls));
                if self.ids.len() <= conn.slot() {
                    self.ids.resize(conn.slot() + 1, None);
                }
                self.ids[conn.slot()] = Some(conn);
            }
            Event::Received { conn, at, data, .. } => self.receive(conn, at, data),
            // Who waits for no end of an answer wants none of it.
            Event::Closed { conn, .. } | Event::Failed { conn, .. } => self.forget(conn, Close::Now),
            // It connects nowhere.
            Event::Connected { .. } | Event::ConnectFailed { .. } => {}
        }
    }

    fn receive(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        let Some(peer) = self.table.get(conn) else { return };
        let Some(session) = &mut peer.tls else {
            let bytes = self.backend.bytes(data).to_vec();
            return self.take_in(conn, at, &bytes);
        };
        let mut plain = Vec::new();
        let received = session.receive(self.backend.bytes(data), &mut plain);
        if received.as_ref().is_ok_and(|received| received.handshake_done_now) {
            peer.protocol = begin(DetectedProtocol::by_alpn(session.alpn()), &mut self.out);
        }
        // What the session has to say by itself: its part of a handshake, or an alert.
        self.transmit(conn);
        match received {
            Ok(received) if received.closed => self.forget(conn, Close::AfterSend),
            Ok(_) => self.take_in(conn, at, &plain),
            Err(_) => {
                self.counts.violations += 1;
                self.closings.push((conn, Close::AfterSend));
            }
        }
    }

    /// Cuts a client off that has left too much unread; `false` if it was.
    fn reads(&mut self, conn: ConnId) -> bool {
        if self.backend.unsent(conn) <= UNREAD_BYTES {
            return true;
        }
        // It may just not have been sent yet.
        self.flush();
        if self.backend.unsent(conn) <= UNREAD_BYTES {
            return true;
        }
        self.counts.violations += 1;
        self.forget(conn, Close::Reset);
        false
    }

    /// Notes the memory of a connection; `false` if it has grown to more than there is for all.
    fn has_room(&mut self, conn: ConnId) -> bool {
        let Some(peer) = self.table.get(conn) else { return true };
        let unsent = self.backend.unsent(conn);
        let bytes = peer.held_bytes() + unsent;
        let has_room = self.setup.budget.note(&mut peer.part, bytes);
        if unsent > FREE_BYTES {
            // What the kernel takes is noted then.
            self.stall(conn);
        }
        has_room
    }

    /// Notes the memory of a connection that has received something, and ends it if that was too much.
    fn note(&mut self, conn: ConnId) {
        if self.has_room(conn) {
            return;
        }
        let Some(peer) = self.table.get(conn) else { return };
        self.counts.over_memory += 1;
        let message = format!(
            "unread answers and unfinished requests of all connections have {} bytes, which are used up",
            self.setup.budget.most()
        );
        // In the middle of an answer nothing can be said.
        let is_free = matches!(peer.protocol, Protocol::Http1(_)) && peer.answers.is_empty();
        if is_free && self.backend.unsent(conn) == 0 {
            let to = To { stream: 0, head_request: false, stays: false };
            self.reply(conn, &api::error(503, "overloaded_error", &message), to);
            self.flush();
        } else {
            self.forget(conn, Close::Reset);
        }
    }

    /// Reads the requests in what came, and goes on with what waited for it.
    fn take_in(&mut self, conn: ConnId, at: Nanos, input: &[u8]) {
        self.read(conn, at, input);
        self.resume(conn);
        self.note(conn);
    }

    /// Reads the requests in what came.
    fn read(&mut self, conn: ConnId, at: Nanos, input: &[u8]) {
        let Some(peer) = self.table.get(conn) else { return };
        let held_back = peer.protocol.learn(input, |told| begin(told, &mut self.out));
        for bytes in [held_back, input] {
            match self.table.get(conn).map(|peer| &peer.protocol) {
                Some(Protocol::Http1(_)) => {
                    let left = self.take_in_http1(conn, at, bytes);
                    self.put_behind(conn, &bytes[bytes.len() - left..]);
                }
                Some(Protocol::Http2(_)) => self.take_in_http2(conn, at, bytes),
                _ => {}
            }
        }
    }

    /// Keeps what came behind a request of HTTP/1.1 that is being answered.
    fn put_behind(&mut self, conn: ConnId, input: &[u8]) {
        let Some(peer) = self.table.get(conn).filter(|_| !input.is_empty()) else { return };
        // Moved rarely enough that many short requests in a row do not cost their square.
        if peer.behind_read > peer.behind.len() / 2 {
            peer.behind.drain(..std::mem::take(&mut peer.behind_read));
        }
        peer.behind.extend_from_slice(input);
        if peer.behind.len() - peer.behind_read > LONGEST_PROMPT {
            self.counts.violations += 1;
            self.forget(conn, Close::Reset);
        }
    }

    /// Reads on behind a completion of HTTP/1.1 that is over.
    fn read_behind(&mut self, conn: ConnId) {
        let at = self.backend.now();
        let Some(peer) = self.table.get(conn) else { return };
        let (behind, read) = (std::mem::take(&mut peer.behind), std::mem::take(&mut peer.behind_read));
        let left = self.take_in_http1(conn, at, &behind[read..]);
        if let Some(peer) = self.table.get(conn).filter(|_| left > 0) {
            peer.behind_read = behind.len() - left;
            peer.behind = behind;
        }
        self.note(conn);
    }

    /// Reads the requests in what came on a connection of HTTP/2.
    fn take_in_http2(&mut self, conn: ConnId, at: Nanos, input: &[u8]) {
        if !self.reads(conn) {
            return;
        }
        let Some(Peer { protocol: Protocol::Http2(server), answers, .. }) = self.table.get(conn) else {
            return;
        };
        let (mut requests, cancelled) = (Vec::new(), server.cancelled());
        let outcome = server.receive(input, &mut self.out, &mut requests);
        let given_up: Vec<u64> = match server.cancelled() == cancelled {
            true => Vec::new(),
            false => {
                let gone = answers.iter().filter(|(_, stream)| !server.is_open(stream.to.stream));
                gone.map(|(number, _)| *number).collect()
            }
        };
        let asked = requests.iter().filter(|request| server.is_open(request.stream)).map(|request| {
            let (method, path) = (server.text(request.method), server.text(request.path));
            let content = server.text(request.content);
            let wish = match request.body_bytes == content.len() as u64 {
                true => api::read(method, path, content, &self.setup.options),
                false => Wish::Reply(api::error(413, "invalid_request_error", "the body is too long")),
            };
            let to = To { stream: request.stream, head_request: request.head_request, stays: true };
            (to, wish, request.id.map(|id| server.text(id).to_vec()))
        });
        let asked: Vec<(To, Wish, Option<Vec<u8>>)> = asked.collect();
        // Acknowledgements, and content that windows had held back.
        self.transmit(conn);
        for number in given_up {
            let Some(peer) = self.table.get(conn) else { break };
            peer.held.retain(|held| *held != number);
            let stream = peer.answers.remove(&number);
            stream.into_iter().for_each(|stream| self.conclude(stream, StreamEnd::Abandoned));
        }
        if outcome.is_err() {
            self.counts.violations += 1;
            self.closings.push((conn, Close::AfterSend));
            return;
        }
        for (to, wish, id) in asked {
            self.grant(conn, at, to, wish, id.as_deref());
        }
    }

    /// Reads the requests in what came on a connection of HTTP/1.1, up to a completion: gives how many of the
    /// bytes are behind it, and wait for its end.
    fn take_in_http1(&mut self, conn: ConnId, at: Nanos, mut input: &[u8]) -> usize {
        loop {
            if !self.reads(conn) {
                return 0;
            }
            let Some(peer) = self.table.get(conn) else { return 0 };
            let Protocol::Http1(reader) = &mut peer.protocol else { return 0 };
            if !peer.answers.is_empty() {
                return input.len();
            }
            let next = reader.next_into(&self.limits, &mut self.memo, &mut input, Some(&mut peer.body));
            match next {
                Ok(None) => {
                    let wants_continue = reader.wants_continue();
                    if peer.body.len() > LONGEST_PROMPT {
                        self.counts.violations += 1;
                        self.forget(conn, Close::Reset);
                    } else if wants_continue {
                        self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                        self.transmit(conn);
                    }
                    return 0;
                }
                Err(_) => {
                    self.counts.violations += 1;
                    let to = To { stream: 0, head_request: false, stays: false };
                    self.reply(conn, &HttpReply::empty(400), to);
                    return 0;
                }
                Ok(Some(request)) => {
                    let stays = request.keep_alive && request.version_minor > 0;
                    let to = To { stream: 0, head_request: request.head_request, stays };
                    let wish = api::read(request.method, request.target, &peer.body, &self.setup.options);
                    let id = request.id.map(<[u8]>::to_vec);
                    peer.body.clear();
                    peer.body.shrink_to(FREE_BYTES);
                    self.grant(conn, at, to, wish, id.as_deref());
                    if !stays && self.table.get(conn).is_none_or(|peer| peer.answers.is_empty()) {
                        return 0;
                    }
                }
            }
        }
    }

    /// Answers a request, or begins its completion.
    fn grant(&mut self, conn: ConnId, at: Nanos, to: To, wish: Wish, id: Option<&[u8]>) {
        let completion = match wish {
            Wish::Reply(reply) => {
                self.counts.others += 1;
                return self.reply(conn, &reply, to);
            }
            Wish::Completion(completion) => completion,
        };
        let number = self.setup.count();
        let row = LlmTruthRow {
            id: RequestId::new(id, number),
            number,
            recv: at,
            start: None,
            end: StreamEnd::Abandoned,
            prompt_tokens: completion.prompt_tokens,
            tokens: 0,
            content: Vec::new(),
        };
        let mut random = Random::new(self.setup.options.seed, number);
        let fault = fault(&self.setup.options.faults, random.unit());
        let stream = Stream {
            completion,
            random,
            fault,
            to,
            has_head: false,
            runs: false,
            due: Nanos::ZERO,
            next: Nanos::ZERO,
            burst: 0,
            gaps: 0,
            resumed: Nanos::ZERO,
            row,
        };
        self.admit(conn, stream, at);
    }

    /// Begins a completion, or lets it wait for a slot.
    fn admit(&mut self, conn: ConnId, stream: Stream, at: Nanos) {
        self.counts.completions += 1;
        let options = &self.setup.options;
        let is_free = options.slots.is_none_or(|slots| self.running < slots);
        let number = stream.row.number;
        if !is_free && options.queue.is_some_and(|queue| self.queued >= queue) {
            self.counts.refused += 1;
            let reply = stream.completion.dialect.error(429, "rate_limit_error", "the queue is full");
            return self.reply(conn, &reply, stream.to);
        }
        if let Some(peer) = self.table.get(conn) {
            peer.answers.insert(number, stream);
        }
        if is_free {
            self.start(conn, number, at);
        } else {
            self.queued += 1;
            self.waiting.push_back((conn, number));
        }
    }

    /// A completion has its slot since `at`.
    fn start(&mut self, conn: ConnId, number: u64, at: Nanos) {
        let setup = Arc::clone(&self.setup);
        let options = &setup.options;
        let Some(Peer { protocol, answers, .. }) = self.table.get(conn) else { return };
        let Some(stream) = answers.get_mut(&number) else { return };
        stream.runs = true;
        stream.row.start = Some(at);
        let due = at + options.ttft.draw(&mut stream.random);
        (stream.due, stream.next) = (due, due);
        let Completion { dialect, stream: is_stream, tokens, .. } = stream.completion;
        if !is_stream {
            stream.gaps = tokens.div_ceil(options.tokens_per_chunk) - 1;
        }
        let has_role = dialect == Dialect::Chat || dialect.has_envelope();
        if is_stream && has_role && options.role_chunk {
            let answer = Answer { completion: &stream.completion, model: &options.model, number };
            stream.has_head = true;
            let mut writer = AnswerWriter { protocol, to: stream.to, in_lines: false, out: &mut self.out };
            writer.head();
            answer.begin(&mut writer);
            self.transmit(conn);
        }
        self.running += 1;
        self.put_off(conn, number, due);
    }

    /// Lets an answer have its next turn `at`.
    fn put_off(&mut self, conn: ConnId, number: u64, at: Nanos) {
        if self.due.len() as u64 > 2 * self.running + STALE_ENTRIES {
            let (ids, table) = (&self.ids, &mut self.table);
            self.due.retain(|Reverse(due)| {
                let conn = ids.get(due.slot).copied().flatten();
                let peer = conn.and_then(|conn| table.get(conn));
                peer.is_some_and(|peer| peer.answers.contains_key(&due.number))
            });
        }
        self.order += 1;
        self.due.push(Reverse(Due { at, order: self.order, slot: conn.slot(), number }));
    }

    /// An answer is over.
    fn finish(&mut self, conn: ConnId, number: u64, end: StreamEnd) {
        let Some(peer) = self.table.get(conn) else { return };
        let Some(stream) = peer.answers.remove(&number) else { return };
        let (stays, is_alone) = (stream.to.stays, matches!(peer.protocol, Protocol::Http1(_)));
        self.conclude(stream, end);
        match end {
            // The other streams of the connection go on.
            _ if !is_alone => {}
            StreamEnd::Whole | StreamEnd::Error if stays => self.read_behind(conn),
            StreamEnd::Whole | StreamEnd::Error | StreamEnd::Cut => {
                self.closings.push((conn, Close::AfterSend));
            }
            // The client waits for what never comes; only it ends the connection.
            StreamEnd::Stalled | StreamEnd::Abandoned => {
                if let Some(peer) = self.table.get(conn) {
                    (peer.behind, peer.behind_read) = (Vec::new(), 0);
                }
            }
        }
    }

    /// Counts and logs an answer that is over, and gives its slot to another one.
    fn conclude(&mut self, stream: Stream, end: StreamEnd) {
        self.counts.tokens += stream.row.tokens;
        match end {
            StreamEnd::Whole => self.counts.whole += 1,
            StreamEnd::Abandoned => self.counts.abandoned += 1,
            StreamEnd::Error | StreamEnd::Cut | StreamEnd::Stalled => self.counts.faults += 1,
        }
        if self.sheet.is_on() {
            self.ended.push(LlmTruthRow { end, ..stream.row });
        }
        if !stream.runs {
            self.queued -= 1;
            if self.waiting.len() as u64 > 2 * self.queued + STALE_ENTRIES {
                let table = &mut self.table;
                self.waiting.retain(|(conn, number)| waits(table, *conn, *number));
            }
            return;
        }
        self.running -= 1;
        while let Some((conn, number)) = self.waiting.pop_front() {
            if waits(&mut self.table, conn, number) {
                self.queued -= 1;
                let now = self.backend.now();
                return self.start(conn, number, now);
            }
        }
    }

    fn reply(&mut self, conn: ConnId, reply: &HttpReply, to: To) {
        let Some(Peer { protocol, .. }) = self.table.get(conn) else { return };
        AnswerWriter { protocol, to, in_lines: false, out: &mut self.out }.reply(reply);
        self.transmit(conn);
        if !to.stays {
            self.closings.push((conn, Close::AfterSend));
        }
    }

    /// Queues what was written for a connection; its place among those of the next flush.
    fn transmit(&mut self, conn: ConnId) -> u32 {
        let Some(peer) = self.table.get(conn) else {
            self.out.clear();
            return 0;
        };
        if peer.mark.0 != self.flush_number {
            peer.mark = (self.flush_number, self.sends);
            self.sends += 1;
        }
        let place = peer.mark.1;
        match &mut peer.tls {
            None => self.backend.outbox(conn).append(&mut self.out),
            Some(session) => {
                let outbox = self.backend.outbox(conn);
                session.transmit(outbox);
                if !self.out.is_empty() {
                    session.send(&self.out, outbox);
                    self.out.clear();
                }
            }
        }
        place
    }

    /// Hands everything to the kernel, and notes when.
    fn flush(&mut self) {
        if self.sends > 0 {
            let flush = self.backend.flush();
            for WrittenChunk { place, conn, number, due } in self.written.drain(..) {
                let at = sent_at(flush, place, self.sends);
                self.lateness.record(at.since(due).0);
                if !self.sheet.is_on() {
                    continue;
                }
                let ended = self.ended.iter_mut().find(|row| row.number == number);
                let row = match ended {
                    Some(row) => Some(row),
                    None => {
                        let peer = self.table.get(conn);
                        peer.and_then(|peer| peer.answers.get_mut(&number)).map(|stream| &mut stream.row)
                    }
                };
                row.into_iter().for_each(|row| row.content.push(at));
            }
            self.sends = 0;
            self.flush_number += 1;
        }
        for row in std::mem::take(&mut self.ended) {
            self.sheet.push(row);
        }
        for (conn, how) in std::mem::take(&mut self.closings) {
            self.forget(conn, how);
        }
    }

    /// Ends a connection; the answers that it is owed are abandoned.
    fn forget(&mut self, conn: ConnId, how: Close) {
        if let Some(mut peer) = self.table.remove(conn) {
            self.setup.budget.release(&mut peer.part);
            self.ids[conn.slot()] = None;
            if let (Close::AfterSend, Some(session)) = (how, &mut peer.tls) {
                session.close_notify(self.backend.outbox(conn));
            }
            for stream in peer.answers.into_values() {
                self.conclude(stream, StreamEnd::Abandoned);
            }
        }
        self.backend.close(conn, how);
    }

    fn leave(mut self) -> Ended {
        self.flush();
        self.backend.close_listener(self.listener);
        self.waiting.clear();
        for conn in self.table.ids() {
            self.forget(conn, Close::AfterSend);
        }
        self.flush();
        Ended { counts: self.counts, lateness: self.lateness, sheet: self.sheet.finish() }
    }
}

/// Begins the protocol of a connection, whose requests have bodies.
fn begin(detected: DetectedProtocol, out: &mut Vec<u8>) -> Protocol {
    Protocol::begin(detected, &ServerOptions { keeps_content: true, ..ServerOptions::default() }, out)
}

/// Returns `true` if this completion waits for a slot.
fn waits(table: &mut Table<Peer>, conn: ConnId, number: u64) -> bool {
    table.get(conn).and_then(|peer| peer.answers.get(&number)).is_some_and(|stream| !stream.runs)
}

/// The fault that a number from 0 to 1 chooses.
fn fault(faults: &StreamFaults, chance: f64) -> Option<StreamEnd> {
    let StreamFaults { error, cut, stall } = *faults;
    match chance {
        chance if chance < error => Some(StreamEnd::Error),
        chance if chance < error + cut => Some(StreamEnd::Cut),
        chance if chance < error + cut + stall => Some(StreamEnd::Stalled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_their_shares_and_exclude_each_other() {
        let faults = StreamFaults { error: 0.1, cut: 0.2, stall: 0.3 };
        for (chance, end) in [
            (0.0, Some(StreamEnd::Error)),
            (0.15, Some(StreamEnd::Cut)),
            (0.35, Some(StreamEnd::Stalled)),
            (0.65, None),
        ] {
            assert_eq!(fault(&faults, chance), end, "{chance}");
        }
    }
}
