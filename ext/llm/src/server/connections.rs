//! The connections of one thread, and the completions that they are owed.

mod turn;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use plimsoll_core::{Nanos, Random};
use plimsoll_driver::ConnId;
use plimsoll_histogram::Histogram;
use plimsoll_system::clock;
use plimsoll_targets::RequestId;
use plimsoll_targets::http_reply::HttpReply;
use plimsoll_targets::server::http::{DetectedProtocol, HttpProtocol};
use plimsoll_targets::server::{FREE_BYTES, Fate, Flushed, Handler, LoopCounts, Outgoing, Table};
use plimsoll_targets::truth_log::Sheet;
use plimsoll_wire::http1::{Limits, RequestMemo};
use plimsoll_wire::http2::ServerOptions;

use super::api::{self, Completion, Wish};
use super::chunk::{AnswerWriter, To};
use super::dialect::Dialect;
use super::options::StreamFaults;
use super::truth::{LlmTruthRow, StreamEnd};
use super::{Ended, Setup, UNREAD_BYTES};

/// Bytes of a request, and of what comes behind one that is being answered, on HTTP/1.1.
const LONGEST_PROMPT: usize = 16 << 20;
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

plimsoll_targets::add_fields!(LlmCounts {
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
    protocol: HttpProtocol,
    /// Body of the present request on HTTP/1.1, as far as it has come.
    body: Vec<u8>,
    /// Bytes that came behind a request of HTTP/1.1 that is being answered...
    behind: Vec<u8>,
    /// ...and how many of them are read.
    behind_read: usize,
    /// The completions that it is owed, by their numbers; on HTTP/1.1 there is one at most.
    answers: HashMap<u64, Stream>,
    /// Numbers of the completions that go on when the client has read what it was sent.
    held: Vec<u64>,
    /// Set while the client leaves much unread.
    is_paused: bool,
}

impl Peer {
    fn new() -> Self {
        Self {
            protocol: HttpProtocol::Open(0),
            body: Vec::new(),
            behind: Vec::new(),
            behind_read: 0,
            answers: HashMap::new(),
            held: Vec::new(),
            is_paused: false,
        }
    }

    /// Bytes that it has beside what it was sent: of requests that are not answered yet, and of answers that
    /// its client's windows hold back.
    fn held_bytes(&self) -> usize {
        let of_streams = match &self.protocol {
            HttpProtocol::Http2(server) => server.held_bytes(),
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
    /// A chunk that says the role is due before everything else.
    owes_role: bool,
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
    /// Connection, by its slot and generation.
    conn: (u32, u32),
    number: u64,
}

/// A chunk with content that the next flush sends.
#[derive(Clone, Copy, Debug)]
struct WrittenChunk {
    conn: ConnId,
    /// The number of its answer.
    number: u64,
    due: Nanos,
}

/// Connections of one thread.
#[derive(Debug)]
pub(super) struct Connections {
    setup: Arc<Setup>,
    table: Table<Peer>,
    limits: Limits,
    memo: RequestMemo,
    due: BinaryHeap<Reverse<Due>>,
    order: u64,
    /// Chunks that the turns of the present pass have taken the time of.
    turns_cost: u64,
    /// Completions that have a slot.
    running: u64,
    /// Completions that wait for a slot, and others that were given up while they did.
    waiting: VecDeque<(ConnId, u64)>,
    /// Number of completions that wait, without those that were given up.
    queued: u64,
    /// End of the connection that is being read or written, if it comes to one.
    end: Option<Fate>,
    sheet: Sheet<LlmTruthRow>,
    counts: LlmCounts,
    /// Chunks written since the last flush.
    written: Vec<WrittenChunk>,
    /// From when chunks were due until they were handed to the kernel.
    lateness: Histogram,
    /// Rows that are complete with the next flush.
    ended: Vec<LlmTruthRow>,
}

impl Handler for Connections {
    fn accepted(&mut self, conn: ConnId, _listener: usize) {
        self.table.insert(conn, Peer::new());
    }

    fn negotiated(&mut self, conn: ConnId, alpn: Option<&[u8]>, out: &mut Outgoing) {
        if let Some(peer) = self.table.get(conn) {
            peer.protocol = begin(DetectedProtocol::by_alpn(alpn), &mut out.bytes);
        }
    }

    fn received(&mut self, conn: ConnId, at: Nanos, bytes: &[u8], out: &mut Outgoing) -> Fate {
        self.read(conn, at, bytes, out);
        if self.table.get(conn).is_some_and(|peer| !peer.held.is_empty()) {
            // The client may have opened windows.
            self.resume(conn, clock::monotonic());
        }
        self.fate(conn)
    }

    fn over_memory(&mut self, conn: ConnId, most: u64, out: &mut Outgoing) {
        let Some(peer) = self.table.get(conn) else { return };
        // In the middle of an answer nothing can be said.
        if matches!(peer.protocol, HttpProtocol::Http1(_)) && peer.answers.is_empty() {
            let message = format!(
                "unread answers and unfinished requests of all connections have {most} bytes, which are \
                 used up"
            );
            let to = To { stream: 0, head_request: false, stays: false };
            self.reply(conn, &api::error(503, "overloaded_error", &message), to, out);
            // The loop ends it.
            self.end = None;
        }
    }

    /// Breaks off the answers that a client does not wait for.
    fn gone(&mut self, conn: ConnId) {
        let streams = self.table.remove(conn).into_iter().flat_map(|peer| peer.answers.into_values());
        streams.for_each(|stream| self.conclude(stream, StreamEnd::Abandoned));
    }

    fn next_due(&self, _now: Nanos) -> Nanos {
        match self.queued > 0 && self.has_slot() {
            true => Nanos::ZERO,
            false => self.due.peek().map_or(Nanos::MAX, |Reverse(due)| due.at),
        }
    }

    fn due(&mut self, now: Nanos, out: &mut Outgoing) -> Option<(ConnId, Fate)> {
        self.fill_slots(now);
        let conn = self.take_turn(now, out)?;
        Some((conn, self.fate(conn)))
    }

    fn pause_writing(&mut self, conn: ConnId) {
        if let Some(peer) = self.table.get(conn) {
            peer.is_paused = true;
        }
    }

    fn resume_writing(&mut self, conn: ConnId, now: Nanos) {
        if let Some(peer) = self.table.get(conn) {
            peer.is_paused = false;
            self.resume(conn, now);
        }
    }

    fn flushed(&mut self, flushed: &mut Flushed<'_>) {
        for WrittenChunk { conn, number, due } in self.written.drain(..) {
            let at = flushed.at(conn);
            self.lateness.record(at.since(due).0);
            if !self.sheet.is_on() {
                continue;
            }
            let row = match self.ended.iter_mut().find(|row| row.number == number) {
                Some(row) => Some(row),
                None => {
                    let peer = self.table.get(conn);
                    peer.and_then(|peer| peer.answers.get_mut(&number)).map(|stream| &mut stream.row)
                }
            };
            row.into_iter().for_each(|row| row.content.push(at));
        }
        self.ended.drain(..).for_each(|row| self.sheet.push(row));
    }
}

impl Connections {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        Self {
            table: Table::default(),
            limits: Limits::default(),
            memo: RequestMemo::new(),
            due: BinaryHeap::new(),
            order: 0,
            turns_cost: 0,
            running: 0,
            waiting: VecDeque::new(),
            queued: 0,
            end: None,
            sheet: setup.sheet(),
            counts: LlmCounts::default(),
            written: Vec::new(),
            lateness: Histogram::default(),
            ended: Vec::new(),
            setup,
        }
    }

    /// The report of a thread that has ended.
    pub(super) fn finish(mut self, of_loop: LoopCounts) -> Ended {
        self.ended.drain(..).for_each(|row| self.sheet.push(row));
        let LoopCounts { accepted, unread, over_memory, tls_errors } = of_loop;
        self.counts.connections += accepted.iter().sum::<u64>();
        self.counts.violations += unread + tls_errors;
        self.counts.over_memory += over_memory;
        Ended { counts: self.counts, lateness: self.lateness, sheet: self.sheet.finish() }
    }

    /// Course of the connection that was read or written.
    fn fate(&mut self, conn: ConnId) -> Fate {
        let held = self.table.get(conn).map_or(0, |peer| peer.held_bytes());
        self.end.take().unwrap_or(Fate::GoesOn { held })
    }

    /// Resets the connection for what the client sent.
    fn refuse_to_go_on(&mut self) {
        self.counts.violations += 1;
        self.end = Some(Fate::Reset);
    }

    /// Reads the requests in what came.
    fn read(&mut self, conn: ConnId, at: Nanos, input: &[u8], out: &mut Outgoing) {
        let Some(peer) = self.table.get(conn) else { return };
        let held_back = peer.protocol.learn(input, |told| begin(told, &mut out.bytes));
        for bytes in [held_back, input] {
            match self.table.get(conn).map(|peer| &peer.protocol) {
                Some(HttpProtocol::Http1(_)) => {
                    let left = self.take_in_http1(conn, at, bytes, out);
                    self.put_behind(conn, &bytes[bytes.len() - left..]);
                }
                Some(HttpProtocol::Http2(_)) => self.take_in_http2(conn, at, bytes, out),
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
            self.refuse_to_go_on();
        }
    }

    /// Reads on behind a completion of HTTP/1.1 that is over.
    fn read_behind(&mut self, conn: ConnId, now: Nanos, out: &mut Outgoing) {
        let Some(peer) = self.table.get(conn) else { return };
        let (behind, read) = (std::mem::take(&mut peer.behind), std::mem::take(&mut peer.behind_read));
        let left = self.take_in_http1(conn, now, &behind[read..], out);
        if let Some(peer) = self.table.get(conn).filter(|_| left > 0) {
            peer.behind_read = behind.len() - left;
            peer.behind = behind;
        }
    }

    /// Reads the requests in what came on a connection of HTTP/2.
    fn take_in_http2(&mut self, conn: ConnId, at: Nanos, input: &[u8], out: &mut Outgoing) {
        let Some(Peer { protocol: HttpProtocol::Http2(server), answers, held, .. }) = self.table.get(conn)
        else {
            return;
        };
        let (mut requests, cancelled) = (Vec::new(), server.cancelled());
        let outcome = server.receive(input, &mut out.bytes, &mut requests);
        let given_up: Vec<Stream> = match server.cancelled() == cancelled {
            true => Vec::new(),
            false => answers
                .extract_if(|_, stream| !server.is_open(stream.to.stream))
                .map(|(_, stream)| stream)
                .collect(),
        };
        held.retain(|number| answers.contains_key(number));
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
        given_up.into_iter().for_each(|stream| self.conclude(stream, StreamEnd::Abandoned));
        if outcome.is_err() {
            self.counts.violations += 1;
            self.end = Some(Fate::Ends);
            return;
        }
        for (to, wish, id) in asked {
            self.grant(conn, at, to, wish, id.as_deref(), out);
        }
    }

    /// Reads the requests in what came on a connection of HTTP/1.1, up to a completion: gives how many of the
    /// bytes are behind it, and wait for its end.
    fn take_in_http1(&mut self, conn: ConnId, at: Nanos, mut input: &[u8], out: &mut Outgoing) -> usize {
        while self.end.is_none() {
            let Some(peer) = self.table.get(conn) else { return 0 };
            let HttpProtocol::Http1(reader) = &mut peer.protocol else { return 0 };
            if !peer.answers.is_empty() {
                return input.len();
            }
            if out.bytes.len() > UNREAD_BYTES {
                self.refuse_to_go_on();
                return 0;
            }
            let next = reader.next_into(&self.limits, &mut self.memo, &mut input, Some(&mut peer.body));
            match next {
                Ok(None) => {
                    let wants_continue = reader.wants_continue();
                    if peer.body.len() > LONGEST_PROMPT {
                        self.refuse_to_go_on();
                    } else if wants_continue {
                        out.bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    return 0;
                }
                Err(_) => {
                    self.counts.violations += 1;
                    let to = To { stream: 0, head_request: false, stays: false };
                    self.reply(conn, &HttpReply::empty(400), to, out);
                }
                Ok(Some(request)) => {
                    let stays = request.keep_alive && request.version_minor > 0;
                    let to = To { stream: 0, head_request: request.head_request, stays };
                    let wish = api::read(request.method, request.target, &peer.body, &self.setup.options);
                    let id = request.id.map(<[u8]>::to_vec);
                    peer.body.clear();
                    peer.body.shrink_to(FREE_BYTES);
                    self.grant(conn, at, to, wish, id.as_deref(), out);
                }
            }
        }
        0
    }

    /// Answers a request, or begins its completion.
    fn grant(&mut self, conn: ConnId, at: Nanos, to: To, wish: Wish, id: Option<&[u8]>, out: &mut Outgoing) {
        let completion = match wish {
            Wish::Reply(reply) => {
                self.counts.others += 1;
                return self.reply(conn, &reply, to, out);
            }
            Wish::Completion(completion) => completion,
        };
        self.counts.completions += 1;
        let number = self.setup.count();
        self.fill_slots(at);
        let options = &self.setup.options;
        if !self.has_slot() && options.queue.is_some_and(|queue| self.queued >= queue) {
            self.counts.refused += 1;
            let reply = completion.dialect.error(429, "rate_limit_error", "the queue is full");
            return self.reply(conn, &reply, to, out);
        }
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
        let mut random = Random::new(options.seed, number);
        let fault = fault(&options.faults, random.unit());
        let stream = Stream {
            completion,
            random,
            fault,
            to,
            has_head: false,
            owes_role: false,
            runs: false,
            due: Nanos::ZERO,
            next: Nanos::ZERO,
            burst: 0,
            gaps: 0,
            resumed: Nanos::ZERO,
            row,
        };
        let Some(peer) = self.table.get(conn) else { return };
        peer.answers.insert(number, stream);
        self.queued += 1;
        self.waiting.push_back((conn, number));
        self.fill_slots(at);
    }

    /// Returns `true` if a completion could begin.
    fn has_slot(&self) -> bool {
        self.setup.options.slots.is_none_or(|slots| self.running < slots)
    }

    /// Gives free slots to the completions that have waited longest.
    fn fill_slots(&mut self, at: Nanos) {
        while self.queued > 0
            && self.has_slot()
            && let Some((conn, number)) = self.waiting.pop_front()
        {
            if waits(&mut self.table, conn, number) {
                self.queued -= 1;
                self.start(conn, number, at);
            }
        }
    }

    /// A completion has its slot since `at`.
    fn start(&mut self, conn: ConnId, number: u64, at: Nanos) {
        let options = &self.setup.options;
        let stream = self.table.get(conn).and_then(|peer| peer.answers.get_mut(&number));
        let Some(stream) = stream else { return };
        stream.runs = true;
        stream.row.start = Some(at);
        let due = at + options.ttft.draw(&mut stream.random);
        (stream.due, stream.next) = (due, due);
        let Completion { dialect, stream: is_stream, tokens, .. } = stream.completion;
        if !is_stream {
            stream.gaps = tokens.div_ceil(options.tokens_per_chunk) - 1;
        }
        let has_role = dialect == Dialect::Chat || dialect.has_envelope();
        stream.owes_role = is_stream && has_role && options.role_chunk;
        let first = if stream.owes_role { at } else { due };
        self.running += 1;
        self.put_off(conn, number, first);
    }

    /// Lets an answer have its next turn `at`.
    fn put_off(&mut self, conn: ConnId, number: u64, at: Nanos) {
        if self.due.len() as u64 > 2 * self.running + STALE_ENTRIES {
            let table = &mut self.table;
            self.due.retain(|Reverse(due)| {
                table.get(due.conn()).is_some_and(|peer| peer.answers.contains_key(&due.number))
            });
        }
        self.order += 1;
        // Slots of a thread are fewer than descriptors.
        let conn = (conn.slot() as u32, conn.generation());
        self.due.push(Reverse(Due { at, order: self.order, conn, number }));
    }

    /// An answer is over.
    fn end_answer(&mut self, conn: ConnId, number: u64, end: StreamEnd, now: Nanos, out: &mut Outgoing) {
        let Some(peer) = self.table.get(conn) else { return };
        let Some(stream) = peer.answers.remove(&number) else { return };
        let (stays, is_alone) = (stream.to.stays, matches!(peer.protocol, HttpProtocol::Http1(_)));
        if is_alone && matches!(end, StreamEnd::Stalled | StreamEnd::Abandoned) {
            // The client waits for what never comes; only it ends the connection.
            (peer.behind, peer.behind_read) = (Vec::new(), 0);
        }
        self.conclude(stream, end);
        match end {
            // The other streams of the connection go on.
            _ if !is_alone => {}
            StreamEnd::Whole | StreamEnd::Error if stays => self.read_behind(conn, now, out),
            StreamEnd::Whole | StreamEnd::Error | StreamEnd::Cut => self.end = Some(Fate::Ends),
            StreamEnd::Stalled | StreamEnd::Abandoned => {}
        }
    }

    /// Counts and logs an answer that is over, and frees its slot.
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
        if stream.runs {
            self.running -= 1;
            return;
        }
        self.queued -= 1;
        if self.waiting.len() as u64 > 2 * self.queued + STALE_ENTRIES {
            let table = &mut self.table;
            self.waiting.retain(|(conn, number)| waits(table, *conn, *number));
        }
    }

    fn reply(&mut self, conn: ConnId, reply: &HttpReply, to: To, out: &mut Outgoing) {
        let Some(Peer { protocol, .. }) = self.table.get(conn) else { return };
        AnswerWriter { protocol, to, in_lines: false, out: &mut out.bytes }.reply(reply);
        out.replies += 1;
        if !to.stays {
            self.end = Some(Fate::Ends);
        }
    }
}

impl Due {
    const fn conn(&self) -> ConnId {
        ConnId::new(self.conn.0, self.conn.1)
    }
}

/// Begins the protocol of a connection, whose requests have bodies.
fn begin(detected: DetectedProtocol, out: &mut Vec<u8>) -> HttpProtocol {
    HttpProtocol::begin(detected, &ServerOptions { keeps_content: true, ..ServerOptions::default() }, out)
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
