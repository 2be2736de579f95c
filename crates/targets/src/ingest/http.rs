//! Requests as they come, and replies, at once or later.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};
use serde_json::json;

use super::api::{Answer, Api, Moment, overloaded};
use super::queries::{Pending, Queries};
use super::setup::{IngestCounts, Setup};
use crate::http_reply::HttpReply;
use crate::server::Outgoing;

/// Memory for bodies that a thread keeps, for the next sender.
const SPARE_BODIES: usize = 64;
/// The most bytes of each of them.
const USUAL_BODY: usize = 1 << 20;
/// Bytes that may follow a query in addition to a payload: the head of a request.
const HEAD_BYTES: usize = 64 << 10;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    reader: RequestServer,
    /// Body of the present request, as far as it has come.
    body: Vec<u8>,
    /// When the last of its replies goes out that wait: those after it wait as long.
    held_until: Nanos,
    /// The query that has to be answered before anything else is read.
    owed: Option<RunningQuery>,
    /// Bytes that came after the query.
    behind: Vec<u8>,
    /// Set when the client has sent everything that it will.
    pub(crate) is_closed: bool,
}

#[derive(Debug)]
struct RunningQuery {
    pending: Pending,
    form: ReplyForm,
}

/// The form of a reply that its request asks for.
#[derive(Clone, Copy, Debug)]
struct ReplyForm {
    /// `true`: without its body.
    head_request: bool,
    /// `false`: the connection ends with it.
    stays: bool,
}

impl Caller {
    /// Returns `true` if a query has to be answered.
    pub(crate) const fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    /// Bytes of memory that it keeps for unanswered requests.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.body.capacity() + self.behind.capacity()
    }
}

/// The fate of a connection after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFate {
    GoesOn,
    Ends,
    Reset,
}

/// Answers the requests of one thread.
#[derive(Debug)]
pub(crate) struct HttpHandler {
    setup: Arc<Setup>,
    api: Api,
    limits: Limits,
    memo: RequestMemo,
    most: u64,
    spare: Vec<Vec<u8>>,
    violations: u64,
    queries_refused: u64,
}

impl HttpHandler {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self {
            most: setup.options.max_payload,
            api: Api::new(Arc::clone(&setup)),
            setup,
            limits: Limits::default(),
            memo: RequestMemo::new(),
            spare: Vec::new(),
            violations: 0,
            queries_refused: 0,
        }
    }

    /// Answers all requests that are whole with `input`, which came at `moment`, up to a query: that is
    /// [owed](Caller::is_owed) until [`settle`](Self::settle) has its reply.
    pub(crate) fn read(
        &mut self,
        caller: &mut Caller,
        moment: Moment,
        input: &[u8],
        out: &mut Outgoing,
    ) -> ConnectionFate {
        if caller.is_owed() {
            caller.behind.extend_from_slice(input);
            let most = self.most as usize + HEAD_BYTES;
            return if caller.behind.len() > most { self.violation() } else { ConnectionFate::GoesOn };
        }
        self.go_on(caller, moment, input, out)
    }

    /// Answers the query of a connection if its result is there, and reads on. `None`: it is not there.
    pub(crate) fn settle(
        &mut self,
        caller: &mut Caller,
        moment: Moment,
        out: &mut Outgoing,
    ) -> Option<ConnectionFate> {
        let reply = caller.owed.as_ref()?.pending.reply()?;
        let RunningQuery { form, .. } = caller.owed.take()?;
        self.put(&mut caller.held_until, &reply, moment, Nanos::ZERO, form, out);
        let behind = std::mem::take(&mut caller.behind);
        Some(if form.stays { self.go_on(caller, moment, &behind, out) } else { ConnectionFate::Ends })
    }

    /// Writes the reason why a connection ends that exceeds the `most` bytes for unfinished requests.
    pub(crate) fn refuse_for_memory(most: u64, out: &mut Vec<u8>) {
        let why = format!("unfinished requests of all connections have {most} bytes: send less at once");
        HttpReply::json(503, &json!({"error": why})).write(out, false, false);
    }

    fn go_on(
        &mut self,
        caller: &mut Caller,
        moment: Moment,
        mut input: &[u8],
        out: &mut Outgoing,
    ) -> ConnectionFate {
        if caller.body.capacity() == 0 {
            caller.body = self.spare.pop().unwrap_or_default();
        }
        let course = loop {
            let Caller { reader, body, held_until, .. } = caller;
            let next = reader.next_into(&self.limits, &mut self.memo, &mut input, Some(body));
            let (answer, form) = match next {
                Ok(None) => {
                    if reader.wants_continue() {
                        out.bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    break if body.len() as u64 > self.most {
                        self.violation()
                    } else {
                        ConnectionFate::GoesOn
                    };
                }
                // The real server closes as soon as it has read that much.
                Ok(Some(request)) if request.body_bytes > self.most => break self.violation(),
                Ok(Some(request)) => {
                    // An HTTP/1.0 client would need a field that says that the connection is kept.
                    let stays = request.keep_alive && request.version_minor > 0;
                    let form = ReplyForm { head_request: request.head_request, stays };
                    (self.api.answer(&request, body, moment), form)
                }
                Err(_) => {
                    self.violations += 1;
                    (HttpReply::empty(400).into(), ReplyForm { head_request: false, stays: false })
                }
            };
            body.clear();
            match answer {
                Answer::Reset => break ConnectionFate::Reset,
                Answer::Query(question) => {
                    let timestamp = question.timestamp.clone();
                    if let Some(pending) = Queries::ask(&self.setup, question) {
                        caller.owed = Some(RunningQuery { pending, form });
                        caller.behind.extend_from_slice(input);
                        break ConnectionFate::GoesOn;
                    }
                    self.queries_refused += 1;
                    self.put(held_until, &overloaded(&timestamp), moment, Nanos::ZERO, form, out);
                }
                Answer::Reply(reply, service) => {
                    self.put(held_until, &reply, moment, service, form, out);
                }
            }
            if !form.stays {
                break ConnectionFate::Ends;
            }
        };
        self.keep(caller);
        course
    }

    #[cfg(test)]
    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> IngestCounts {
        let mut counts = self.api.counts;
        counts.violations += self.violations;
        counts.queries_refused += self.queries_refused;
        counts
    }

    /// Writes a reply, or holds it back: it goes out `delay` after the request came, and not before those
    /// that were held before it.
    fn put(
        &mut self,
        held_until: &mut Nanos,
        reply: &HttpReply,
        moment: Moment,
        service: Nanos,
        form: ReplyForm,
        out: &mut Outgoing,
    ) {
        let ReplyForm { head_request, stays } = form;
        let due = (moment.at + service).max(*held_until);
        if due <= moment.at {
            return reply.write(&mut out.bytes, head_request, stays);
        }
        *held_until = due;
        let mut bytes = Vec::new();
        reply.write(&mut bytes, head_request, stays);
        out.send_later(due, bytes);
    }

    fn violation(&mut self) -> ConnectionFate {
        self.violations += 1;
        ConnectionFate::Reset
    }

    /// Takes the memory of a body back that is not in use.
    fn keep(&mut self, caller: &mut Caller) {
        if caller.body.is_empty() {
            let body = std::mem::take(&mut caller.body);
            if (1..=USUAL_BODY).contains(&body.capacity()) && self.spare.len() < SPARE_BODIES {
                self.spare.push(body);
            }
        }
    }
}
