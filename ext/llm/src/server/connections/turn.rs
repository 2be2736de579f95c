//! Turns of answers: each is made as it comes due, no faster than its client reads.
//!
//! While a client leaves [`AHEAD_BYTES`] unread, or its windows of HTTP/2 hold a part of an answer back, that
//! answer stands still and takes no memory but what it has. Once all connections together have used up
//! [their memory](super::super::BUDGET_BYTES), the limit is
//! [free bytes](plimsoll_targets::server::FREE_BYTES). Laws and draws are those of an answer that never stood
//! still.

use std::cmp::Reverse;

use plimsoll_core::Nanos;
use plimsoll_driver::ConnId;
use plimsoll_targets::server::http::HttpProtocol;

use super::{Connections, Outgoing, Peer, Stream, WrittenChunk};
use crate::server::AHEAD_BYTES;
use crate::server::chunk::{Answer, AnswerWriter, words};
use crate::server::truth::StreamEnd;

/// Chunks of one pass: bounds how long reading, and a stop, wait behind them. At 2 µs each it is 2 ms.
const PASS_CHUNKS: u64 = 1024;
/// Chunks of one turn, of a burst that has more.
const TURN_CHUNKS: u64 = 64;
/// Words of a turn of an answer that is not a stream: 16 KB at most, as long as a frame of HTTP/2.
const TURN_WORDS: u64 = 2048;
/// Gaps that are drawn in a turn of an answer that is not a stream...
const TURN_GAPS: u64 = 1024;
/// ...and the chunks whose time such a turn takes, or one with words.
const TURN_COST: u64 = 16;

/// The result of a turn.
enum Turn {
    /// The answer goes on at this time.
    At(Nanos),
    /// The answer goes on when its client has read more.
    Held,
    /// The answer is over.
    Ended(StreamEnd),
}

impl Connections {
    /// Gives the next answer that is due its turn, up to a bounded number of chunks in a pass.
    pub(super) fn take_turn(&mut self, now: Nanos, out: &mut Outgoing) -> Option<ConnId> {
        while self.turns_cost < PASS_CHUNKS
            && let Some(Reverse(due)) = self.due.peek().copied().filter(|Reverse(due)| due.at <= now)
        {
            self.due.pop();
            let cost = self.go_on(due.conn(), due.number, now, out);
            self.turns_cost += cost.unwrap_or(1);
            if let Some(cost) = cost {
                // Below the chunks of a pass.
                out.replies += cost as u32;
                return Some(due.conn());
            }
        }
        self.turns_cost = 0;
        None
    }

    /// Gives an answer its turn, unless it is over; the chunks whose time that took, one at least.
    fn go_on(&mut self, conn: ConnId, number: u64, now: Nanos, out: &mut Outgoing) -> Option<u64> {
        let Peer { answers, held, is_paused, .. } = self.table.get(conn)?;
        // The slot may belong to another answer by now.
        let stream = answers.get_mut(&number)?;
        let options = &self.setup.options;
        if stream.gaps > 0 {
            let gaps = stream.gaps.min(TURN_GAPS);
            for _ in 0..gaps {
                stream.due += options.gap.draw(&mut stream.random);
            }
            stream.gaps -= gaps;
            let at = stream.due.max(now);
            self.put_off(conn, number, at);
            return Some(TURN_COST);
        }
        if stream.owes_role {
            let at = stream.due;
            self.write_role(conn, number, out);
            self.put_off(conn, number, at);
            return Some(1);
        }
        if *is_paused {
            held.push(number);
            return Some(1);
        }
        let due = stream.due.max(stream.resumed);
        let (turn, chunks, cost) = match stream.completion.stream {
            true => {
                let (turn, chunks) = self.write_chunks(conn, number, out);
                (turn, chunks, chunks.max(1))
            }
            false => {
                let turn = self.write_words(conn, number, out);
                let is_over = matches!(turn, Turn::Ended(_));
                (turn, u64::from(is_over), TURN_COST)
            }
        };
        self.written.extend((0..chunks).map(|_| WrittenChunk { conn, number, due }));
        match turn {
            Turn::Ended(end) => self.end_answer(conn, number, end, now, out),
            Turn::At(at) => self.put_off(conn, number, at.max(now)),
            Turn::Held => self.table.get(conn).into_iter().for_each(|peer| peer.held.push(number)),
        }
        Some(cost)
    }

    /// Writes the chunk of a stream that says the role, behind its head.
    fn write_role(&mut self, conn: ConnId, number: u64, out: &mut Outgoing) {
        let Some(Peer { protocol, answers, .. }) = self.table.get(conn) else { return };
        let Some(stream) = answers.get_mut(&number) else { return };
        (stream.owes_role, stream.has_head) = (false, true);
        let answer = Answer { completion: &stream.completion, model: &self.setup.options.model, number };
        let mut writer = AnswerWriter { protocol, to: stream.to, in_lines: false, out: &mut out.bytes };
        writer.head();
        answer.begin(&mut writer);
    }

    /// Writes the chunks of a stream that are due; the number of them with content.
    fn write_chunks(&mut self, conn: ConnId, number: u64, out: &mut Outgoing) -> (Turn, u64) {
        let options = &self.setup.options;
        let Some(Peer { protocol, answers, .. }) = self.table.get(conn) else { return (Turn::Held, 0) };
        let Some(stream) = answers.get_mut(&number) else { return (Turn::Held, 0) };
        let Stream { completion, random, fault, to, has_head, due, next, burst, row, .. } = stream;
        let answer = Answer { completion, model: &options.model, number };
        let (in_lines, has_envelope) = (completion.dialect.is_in_lines(), completion.dialect.has_envelope());
        let mut writer = AnswerWriter { protocol, to: *to, in_lines, out: &mut out.bytes };
        if !std::mem::replace(has_head, true) {
            writer.head();
            if has_envelope {
                answer.begin(&mut writer);
            }
        }
        let middle = (completion.tokens / 2).max(1);
        let mut chunks = 0;
        let is_held = loop {
            let goes_wrong = fault.is_some() && row.tokens >= middle;
            if row.tokens == completion.tokens || goes_wrong || *burst == options.burst {
                break false;
            }
            if !writer.is_read(AHEAD_BYTES) {
                break true;
            }
            if chunks == TURN_CHUNKS {
                return (Turn::At(*due), chunks);
            }
            // Reasoning and the answer are in chunks of their own.
            let end = match row.tokens < completion.reasoning {
                true => completion.reasoning,
                false => completion.tokens,
            };
            let tokens = options.tokens_per_chunk.min(end - row.tokens);
            answer.content(&mut writer, row.tokens, tokens);
            row.tokens += tokens;
            *burst += 1;
            chunks += 1;
            *next += options.gap.draw(random);
        };
        if is_held {
            return (Turn::Held, chunks);
        }
        let broken = fault.filter(|_| row.tokens >= middle);
        if let (Some(fault), true) = (broken, *burst == 0 || row.tokens == completion.tokens) {
            if fault == StreamEnd::Error {
                answer.fail(&mut writer);
                writer.end();
            } else if fault == StreamEnd::Cut {
                writer.cut();
            }
            return (Turn::Ended(fault), chunks);
        }
        if row.tokens == completion.tokens {
            answer.finish(&mut writer, row.tokens);
            writer.end();
            return (Turn::Ended(StreamEnd::Whole), chunks);
        }
        (*due, *burst) = (*next, 0);
        (Turn::At(*due), chunks)
    }

    /// Writes the next part of an answer that is one document.
    fn write_words(&mut self, conn: ConnId, number: u64, out: &mut Outgoing) -> Turn {
        let options = &self.setup.options;
        let Some(Peer { protocol, answers, .. }) = self.table.get(conn) else { return Turn::Held };
        let Some(stream) = answers.get_mut(&number) else { return Turn::Held };
        let Stream { completion, to, has_head, due, row, .. } = stream;
        let document = Answer { completion, model: &options.model, number }.document();
        let mut writer = AnswerWriter { protocol, to: *to, in_lines: false, out: &mut out.bytes };
        if !writer.is_read(AHEAD_BYTES) {
            return Turn::Held;
        }
        if !std::mem::replace(has_head, true) {
            writer.document_head(document.length());
            writer.part(&document.front, false);
        }
        let count = TURN_WORDS.min(completion.tokens - row.tokens);
        let is_last = row.tokens + count == completion.tokens;
        let mut part = words(row.tokens, count);
        row.tokens += count;
        if is_last {
            part.push_str(&document.back);
        }
        writer.part(&part, is_last);
        if is_last { Turn::Ended(StreamEnd::Whole) } else { Turn::At(*due) }
    }

    /// Goes on with the answers of a connection that stood still, if they may.
    pub(super) fn resume(&mut self, conn: ConnId, now: Nanos) {
        let Some(peer) = self.table.get(conn).filter(|peer| !peer.is_paused) else { return };
        let Peer { protocol, answers, held, .. } = peer;
        let mut moved = Vec::new();
        held.retain(|number| {
            let Some(stream) = answers.get_mut(number) else { return false };
            if matches!(protocol, HttpProtocol::Http2(server) if server.waiting(stream.to.stream) > 0) {
                // A WINDOW_UPDATE of the client continues it.
                return true;
            }
            stream.resumed = now;
            moved.push(*number);
            false
        });
        moved.into_iter().for_each(|number| self.put_off(conn, number, now));
    }
}
