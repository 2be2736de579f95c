//! HTTP/2 connections of the simulated servers.

use plimsoll_core::Nanos;

use super::{ENDLESS_PERIOD, GARBAGE, Happening, Message, SimBackend};
use crate::http2::{Heard, Http2, INTERNAL_ERROR, NO_ERROR, PREFACE, REFUSED_STREAM};
use crate::server::{Decision, Farewell, LinkState, advance};
use crate::truth::Action;

impl SimBackend {
    /// Returns `true` if a link speaks HTTP/2, or may be about to: its first bytes are the preface or the
    /// beginning of one.
    pub(super) fn speaks_http2(&mut self, index: usize) -> bool {
        let link = &mut self.links[index];
        let behaviour = self.servers[link.server].behaviour.http2;
        if link.http2.is_some() {
            return true;
        }
        if !behaviour.spoken || link.received > 0 {
            return false;
        }
        if link.inbox.starts_with(PREFACE) {
            link.inbox.drain(..PREFACE.len());
            link.http2 = Some(Box::new(Http2::new(behaviour)));
            return true;
        }
        PREFACE.starts_with(&link.inbox)
    }

    /// Takes every whole request out of a link's inbox, and lets the server decide.
    pub(super) fn take_streams(&mut self, at: Nanos, index: usize) {
        let link = &mut self.links[index];
        let Some(http2) = &mut link.http2 else { return };
        let bytes = std::mem::take(&mut link.inbox);
        for heard in http2.hear(&bytes) {
            match heard {
                Heard::Request { stream, head_request, text } => {
                    let link = &mut self.links[index];
                    let decision = self.servers[link.server].decide_stream(link, at);
                    let entry = self.note_request(at, index, decision.action, text);
                    if !matches!(decision.action, Action::Ignore | Action::Drop) || decision.close {
                        let act =
                            Happening::ActOnStream { link: index, stream, decision, head_request, entry };
                        self.timeline.push(decision.at, act);
                    }
                }
                Heard::Refused => {
                    self.links[index].received += 1;
                    let entry = self.note_request(at, index, Action::Refuse, Vec::new());
                    self.truth.note_reply(self.world, entry, at);
                }
                Heard::Breach(code) => {
                    self.links[index].received += 1;
                    let entry = self.note_request(at, index, Action::Reject, Vec::new());
                    self.truth.note_reply(self.world, entry, at);
                    self.end_http2(at, index, 0, code);
                    return;
                }
            }
        }
        // Acknowledgements and data that fit the windows now come from the process, which may stand still.
        let pauses = &self.servers[self.links[index].server].behaviour.pauses;
        let says = advance(pauses, at, Nanos::ZERO);
        if says > at {
            self.timeline.push(says, Happening::Say { link: index });
        } else {
            self.say(at, index);
        }
    }

    /// A server carries out its decision about a stream, unless the connection has ended meanwhile, or the
    /// client has given the stream up and only the stream is concerned.
    pub(super) fn act_on_stream(
        &mut self,
        at: Nanos,
        index: usize,
        stream: u32,
        decision: Decision,
        head_request: bool,
        entry: usize,
    ) {
        let link = &mut self.links[index];
        let Some(http2) = &mut link.http2 else { return };
        if matches!(link.state, LinkState::Gone | LinkState::Closed) {
            return;
        }
        let answer = &self.servers[link.server].behaviour.answer;
        let mut done = false;
        match decision.action {
            // These end, and are noted, with the last byte of the reply.
            Action::Reply(status) => _ = http2.reply(stream, answer.reply(status, head_request), entry),
            Action::Truncate => _ = http2.reply(stream, answer.reply_truncated(), entry),
            Action::Excess => _ = http2.reply(stream, answer.reply_excess(), entry),
            Action::Reset => done = http2.reset(stream, INTERNAL_ERROR),
            Action::Refuse => done = http2.reset(stream, REFUSED_STREAM),
            Action::Garbage => {
                http2.break_off(GARBAGE);
                done = true;
            }
            Action::EndlessHead => {
                http2.begin_endless_head(stream);
                self.timeline.push(at + ENDLESS_PERIOD, Happening::MoreHead { link: index, stream });
                done = true;
            }
            Action::Close => {
                self.truth.note_reply(self.world, entry, at);
                return self.end_http2(at, index, stream, NO_ERROR);
            }
            Action::Drop | Action::Ignore | Action::Reject => {}
        }
        if done {
            self.truth.note_reply(self.world, entry, at);
        }
        if decision.announce {
            http2.go_away(stream, NO_ERROR);
        }
        if decision.close {
            link.farewell = Some(match decision.announce {
                true => Farewell::AfterAllUntil(stream),
                false => Farewell::After(stream),
            });
        }
        self.say(at, index);
    }

    /// Sends the output of an HTTP/2 connection, and closes it if it is time.
    pub(super) fn say(&mut self, at: Nanos, index: usize) {
        let link = &mut self.links[index];
        let Some(http2) = &mut link.http2 else { return };
        let (client, bytes) = (link.client, http2.take_out());
        for entry in http2.take_sent() {
            self.truth.note_reply(self.world, entry, at);
        }
        let over = match link.farewell {
            Some(Farewell::After(stream)) => !http2.is_open(stream),
            Some(Farewell::AfterAllUntil(last)) => !http2.has_open_until(last),
            None => false,
        };
        if !bytes.is_empty() {
            self.send_to_conn(at, client, Message::Data(bytes));
        }
        if over {
            self.close_http2(at, index);
        }
    }

    /// Sends GOAWAY and closes: streams above `last` were not processed.
    fn end_http2(&mut self, at: Nanos, index: usize, last: u32, code: u32) {
        if let Some(http2) = &mut self.links[index].http2 {
            http2.go_away(last, code);
        }
        self.say(at, index);
        self.close_http2(at, index);
    }

    fn close_http2(&mut self, at: Nanos, index: usize) {
        let link = &mut self.links[index];
        if link.http2.take().is_some() {
            link.state = LinkState::Closed;
            let client = link.client;
            self.send_to_conn(at, client, Message::Fin);
        }
    }
}
