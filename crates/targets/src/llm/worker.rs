//! The loop of one thread of a server of completions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::AddAssign;
use std::sync::Arc;

use plimsoll_core::{Nanos, Random};
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait};
use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};
use plimsoll_wire::tls::Session;

use super::Setup;
use super::api::{self, Completion, Wish};
use super::chunk::{Answer, write_end, write_event, write_head};
use super::options::StreamFaults;
use super::truth::{LlmTruthRow, StreamEnd};
use crate::http_reply::HttpReply;
use crate::sink::RequestId;
use crate::sink::reply_writer::sent_at;
use crate::sink::truth::{FinishedSheet, Sheet};
use crate::table::Table;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Events of one pass: bounds how long chunks that are due wait behind reading.
const PASS_EVENTS: u32 = 256;
/// Chunks of one flush: bounds how long the first of them waits for the last. At some 2 µs each the wait is
/// of the order of what a chunk takes through the kernel.
const FLUSH_CHUNKS: u32 = 64;
/// Bytes of a request, and of what comes behind one that is being answered.
const MOST_BYTES: usize = 16 << 20;
/// A client that leaves more than this many bytes unread is cut off, lest it fill the memory.
const UNREAD_BYTES: usize = 64 << 20;

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
}

impl AddAssign for LlmCounts {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.completions += other.completions;
        self.others += other.others;
        self.refused += other.refused;
        self.whole += other.whole;
        self.faults += other.faults;
        self.abandoned += other.abandoned;
        self.tokens += other.tokens;
        self.violations += other.violations;
    }
}

/// One connection.
#[derive(Debug, Default)]
struct Peer {
    reader: RequestServer,
    /// Body of the present request, as far as it has come.
    body: Vec<u8>,
    /// Bytes that came behind a request that is being answered.
    behind: Vec<u8>,
    answer: Option<Box<Stream>>,
    tls: Option<Box<Session>>,
    /// The flush in which it was written to last, and its place among those written to in it.
    mark: (u64, u32),
}

/// A completion that waits for its slot or is being sent.
#[derive(Debug)]
struct Stream {
    completion: Completion,
    random: Random,
    fault: Option<StreamEnd>,
    stays: bool,
    head_request: bool,
    /// The head of the response is written.
    has_head: bool,
    runs: bool,
    row: LlmTruthRow,
}

/// A part of an answer that is due, in the order of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    order: u64,
    slot: usize,
    number: u64,
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
    /// Completions that wait for a slot, each with the number it had when it was queued.
    waiting: VecDeque<(ConnId, u64)>,
    sheet: Sheet<LlmTruthRow>,
    counts: LlmCounts,
    /// Number of the next flush, from 1.
    flush_number: u64,
    /// Connections written to since the last flush.
    sends: u32,
    /// Chunks written since the last flush: the place of their connection in it, and their answers.
    written: Vec<(u32, ConnId, u64)>,
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
            sheet,
            counts: LlmCounts::default(),
            flush_number: 1,
            sends: 0,
            written: Vec::new(),
            ended: Vec::new(),
            closings: Vec::new(),
            out: Vec::new(),
            ends_at: setup.options.duration.map_or(Nanos::MAX, |duration| start + duration),
            setup,
        }
    }

    /// Serves until the server is stopped or its time is over.
    pub(super) fn run(mut self) -> (LlmCounts, FinishedSheet<LlmTruthRow>) {
        loop {
            let now = self.backend.now();
            if self.setup.stopper.is_stopped() || now >= self.ends_at {
                break;
            }
            let next = self.due.peek().map_or(Nanos::MAX, |Reverse(due)| due.at);
            let until = (now + STOP_POLL).min(self.ends_at).min(next);
            self.backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            for _ in 0..PASS_EVENTS {
                let Some(event) = self.backend.next_event() else { break };
                self.handle(event);
            }
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
                self.table.insert(conn, Peer { tls, ..Peer::default() });
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
        if self.backend.unsent(conn) > UNREAD_BYTES {
            self.counts.violations += 1;
            return self.forget(conn, Close::Reset);
        }
        let Some(peer) = self.table.get(conn) else { return };
        let Some(session) = &mut peer.tls else {
            let bytes = self.backend.bytes(data).to_vec();
            return self.take_in(conn, at, &bytes);
        };
        let mut plain = Vec::new();
        let received = session.receive(self.backend.bytes(data), &mut plain);
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

    /// Reads the requests in what came, up to a completion: what comes behind it waits for its end.
    fn take_in(&mut self, conn: ConnId, at: Nanos, mut input: &[u8]) {
        loop {
            let Some(peer) = self.table.get(conn) else { return };
            if peer.answer.is_some() {
                peer.behind.extend_from_slice(input);
                if peer.behind.len() > MOST_BYTES {
                    self.counts.violations += 1;
                    self.forget(conn, Close::Reset);
                }
                return;
            }
            let next = peer.reader.next_into(&self.limits, &mut self.memo, &mut input, Some(&mut peer.body));
            match next {
                Ok(None) => {
                    let wants_continue = peer.reader.wants_continue();
                    if peer.body.len() > MOST_BYTES {
                        self.counts.violations += 1;
                        return self.forget(conn, Close::Reset);
                    }
                    if wants_continue {
                        self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                        self.transmit(conn);
                    }
                    return;
                }
                Err(_) => {
                    self.counts.violations += 1;
                    return self.reply(conn, &HttpReply::empty(400), false, false);
                }
                Ok(Some(request)) => {
                    let stays = request.keep_alive && request.version_minor > 0;
                    let head_request = request.head_request;
                    let wish = api::read(&request, &peer.body, &self.setup.options);
                    let id = request.id.map(<[u8]>::to_vec);
                    peer.body.clear();
                    match wish {
                        Wish::Reply(reply) => {
                            self.counts.others += 1;
                            self.reply(conn, &reply, head_request, stays);
                        }
                        Wish::Completion(completion) => {
                            let number = self.setup.count();
                            let row = LlmTruthRow {
                                id: RequestId::new(id.as_deref(), number),
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
                                stays,
                                head_request,
                                has_head: false,
                                runs: false,
                                row,
                            };
                            self.admit(conn, stream, at);
                        }
                    }
                    if !stays && self.table.get(conn).is_none_or(|peer| peer.answer.is_none()) {
                        return;
                    }
                }
            }
        }
    }

    /// Begins a completion, or lets it wait for a slot.
    fn admit(&mut self, conn: ConnId, stream: Stream, at: Nanos) {
        self.counts.completions += 1;
        let options = &self.setup.options;
        let is_free = options.slots.is_none_or(|slots| self.running < slots);
        let number = stream.row.number;
        if !is_free && options.queue.is_some_and(|queue| self.waiting.len() as u64 >= queue) {
            self.counts.refused += 1;
            let reply = api::error(429, "rate_limit_error", "the queue is full");
            return self.reply(conn, &reply, stream.head_request, stream.stays);
        }
        if let Some(peer) = self.table.get(conn) {
            peer.answer = Some(Box::new(stream));
        }
        if is_free {
            self.start(conn, at);
        } else {
            self.waiting.push_back((conn, number));
        }
    }

    /// A completion has its slot since `at`.
    fn start(&mut self, conn: ConnId, at: Nanos) {
        let setup = Arc::clone(&self.setup);
        let options = &setup.options;
        let Some(Peer { answer: Some(stream), .. }) = self.table.get(conn) else { return };
        stream.runs = true;
        stream.row.start = Some(at);
        let mut due = at + options.ttft.draw(&mut stream.random);
        let Completion { chat, stream: is_stream, tokens, .. } = stream.completion;
        if !is_stream {
            for _ in 1..tokens.div_ceil(options.tokens_per_chunk) {
                due += options.gap.draw(&mut stream.random);
            }
        }
        let number = stream.row.number;
        if is_stream && chat && options.role_chunk {
            let answer = Answer { completion: &stream.completion, model: &options.model, number };
            stream.has_head = true;
            write_head(&mut self.out, stream.stays);
            write_event(&mut self.out, &answer.role());
            self.transmit(conn);
        }
        self.running += 1;
        self.put_off(conn, number, due);
    }

    fn put_off(&mut self, conn: ConnId, number: u64, at: Nanos) {
        self.order += 1;
        self.due.push(Reverse(Due { at, order: self.order, slot: conn.slot(), number }));
    }

    /// Sends what is due.
    fn release(&mut self) {
        let now = self.backend.now();
        while let Some(Reverse(due)) = self.due.peek().copied().filter(|Reverse(due)| due.at <= now) {
            self.due.pop();
            let Some(conn) = self.ids.get(due.slot).copied().flatten() else { continue };
            // It may belong to another answer by now.
            let is_there = self.table.get(conn).is_some_and(|peer| {
                peer.answer.as_ref().is_some_and(|stream| stream.row.number == due.number)
            });
            if is_there {
                self.go_on(conn, due.at);
            }
            if self.written.len() as u32 >= FLUSH_CHUNKS {
                self.flush();
            }
        }
    }

    /// Sends the part of an answer that was due `at`.
    fn go_on(&mut self, conn: ConnId, at: Nanos) {
        let setup = Arc::clone(&self.setup);
        let options = &setup.options;
        let Some(Peer { answer: Some(stream), .. }) = self.table.get(conn) else { return };
        let Stream { completion, random, fault, stays, head_request, has_head, row, .. } = &mut **stream;
        let answer = Answer { completion, model: &options.model, number: row.number };
        let (number, mut next, mut chunks) = (row.number, at, 0);
        let mut end = None;
        if completion.stream {
            if !std::mem::replace(has_head, true) {
                write_head(&mut self.out, *stays);
            }
            for _ in 0..options.burst {
                if row.tokens == completion.tokens {
                    break;
                }
                if fault.is_some() && row.tokens >= (completion.tokens / 2).max(1) {
                    break;
                }
                let tokens = options.tokens_per_chunk.min(completion.tokens - row.tokens);
                write_event(&mut self.out, &answer.content(row.tokens, tokens));
                row.tokens += tokens;
                chunks += 1;
                next += options.gap.draw(random);
            }
            let broken = fault.filter(|_| row.tokens >= (completion.tokens / 2).max(1));
            if let (Some(fault), true) = (broken, chunks == 0 || row.tokens == completion.tokens) {
                if fault == StreamEnd::Error {
                    let error = api::error(500, "internal_server_error", "the engine has failed on purpose");
                    write_event(&mut self.out, &error.body);
                    write_event(&mut self.out, "[DONE]");
                    write_end(&mut self.out);
                }
                end = Some(fault);
            } else if row.tokens == completion.tokens {
                write_event(&mut self.out, &answer.finish());
                if completion.include_usage {
                    write_event(&mut self.out, &answer.usage(row.tokens));
                }
                write_event(&mut self.out, "[DONE]");
                write_end(&mut self.out);
                end = Some(StreamEnd::Whole);
            }
        } else {
            answer.document().write(&mut self.out, *head_request, *stays);
            row.tokens = completion.tokens;
            chunks = 1;
            end = Some(StreamEnd::Whole);
        }
        let place = self.transmit(conn);
        if self.sheet.is_on() {
            self.written.extend((0..chunks).map(|_| (place, conn, number)));
        }
        match end {
            Some(end) => self.finish(conn, end),
            None => self.put_off(conn, number, next),
        }
    }

    /// An answer is over.
    fn finish(&mut self, conn: ConnId, end: StreamEnd) {
        let Some(peer) = self.table.get(conn) else { return };
        let Some(stream) = peer.answer.take() else { return };
        let behind = std::mem::take(&mut peer.behind);
        let stays = stream.stays;
        self.conclude(*stream, end);
        match end {
            StreamEnd::Whole | StreamEnd::Error if stays => {
                let now = self.backend.now();
                self.take_in(conn, now, &behind);
            }
            StreamEnd::Whole | StreamEnd::Error | StreamEnd::Cut => {
                self.closings.push((conn, Close::AfterSend));
            }
            // The client waits for what never comes; only it ends the connection.
            StreamEnd::Stalled | StreamEnd::Abandoned => {}
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
            return;
        }
        self.running -= 1;
        while let Some((conn, number)) = self.waiting.pop_front() {
            let waits = self.table.get(conn).is_some_and(|peer| {
                peer.answer.as_ref().is_some_and(|other| other.row.number == number && !other.runs)
            });
            if waits {
                let now = self.backend.now();
                return self.start(conn, now);
            }
        }
    }

    fn reply(&mut self, conn: ConnId, reply: &HttpReply, head_request: bool, stays: bool) {
        reply.write(&mut self.out, head_request, stays);
        self.transmit(conn);
        if !stays {
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
            for (place, conn, number) in std::mem::take(&mut self.written) {
                let at = sent_at(flush, place, self.sends);
                let ended = self.ended.iter_mut().find(|row| row.number == number);
                let row = match ended {
                    Some(row) => Some(row),
                    None => self.table.get(conn).and_then(|peer| peer.answer.as_mut()).map(|s| &mut s.row),
                };
                if let Some(row) = row.filter(|row| row.number == number) {
                    row.content.push(at);
                }
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

    /// Ends a connection; an answer that it is owed is abandoned.
    fn forget(&mut self, conn: ConnId, how: Close) {
        if let Some(mut peer) = self.table.remove(conn) {
            self.ids[conn.slot()] = None;
            if let (Close::AfterSend, Some(session)) = (how, &mut peer.tls) {
                session.close_notify(self.backend.outbox(conn));
            }
            if let Some(stream) = peer.answer {
                self.conclude(*stream, StreamEnd::Abandoned);
            }
        }
        self.backend.close(conn, how);
    }

    fn leave(mut self) -> (LlmCounts, FinishedSheet<LlmTruthRow>) {
        self.flush();
        self.backend.close_listener(self.listener);
        self.waiting.clear();
        for conn in self.table.ids() {
            self.forget(conn, Close::AfterSend);
        }
        self.flush();
        (self.counts, self.sheet.finish())
    }
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
