//! Requests as they come, and replies, at once or later.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};

use super::api::{Answer, Api, Moment};
use super::setup::{IngestCounts, Setup};
use crate::http_reply::HttpReply;

/// Memory for bodies that a thread keeps, for whoever sends next.
const SPARE_BODIES: usize = 64;
/// The most bytes of each of them.
const USUAL_BODY: usize = 1 << 20;

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    reader: RequestServer,
    /// What came of the present request's body.
    body: Vec<u8>,
    /// When the last of its replies goes out that wait: those after it wait as long.
    held_until: Nanos,
}

/// A reply that waits for its time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) due: Nanos,
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection ends with it.
    pub(crate) ends: bool,
}

/// How a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    GoesOn,
    /// It ends when what is written is sent, and what is held.
    Ends,
    /// It is reset.
    Reset,
}

/// Answers the requests of one thread.
#[derive(Debug)]
pub(crate) struct HttpDesk {
    api: Api,
    limits: Limits,
    memo: RequestMemo,
    most: u64,
    spare: Vec<Vec<u8>>,
    /// Replies; the caller's to send, and to clear.
    pub(crate) out: Vec<u8>,
    /// Replies for later, of the connection that was read last; the caller's to take.
    pub(crate) held: Vec<Held>,
    violations: u64,
}

impl HttpDesk {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self {
            most: setup.options.max_payload,
            api: Api::new(setup),
            limits: Limits::default(),
            memo: RequestMemo::new(),
            spare: Vec::new(),
            out: Vec::new(),
            held: Vec::new(),
            violations: 0,
        }
    }

    /// Answers all requests that are whole with `input`, which came at `moment`.
    pub(crate) fn read(&mut self, caller: &mut Caller, moment: Moment, mut input: &[u8]) -> Course {
        if caller.body.capacity() == 0 {
            caller.body = self.spare.pop().unwrap_or_default();
        }
        let course = loop {
            let Caller { reader, body, held_until } = caller;
            let next = reader.next_into(&self.limits, &mut self.memo, &mut input, Some(body));
            let (answer, head_request, stays) = match next {
                Ok(None) => {
                    if reader.wants_continue() {
                        self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    break if body.len() as u64 > self.most { self.violation() } else { Course::GoesOn };
                }
                // The real server closes as soon as it has read so much.
                Ok(Some(request)) if request.body_bytes > self.most => break self.violation(),
                Ok(Some(request)) => {
                    // A client of HTTP/1.0 would have to be told that it is kept.
                    let stays = request.keep_alive && request.version_minor > 0;
                    (self.api.answer(&request, body, moment), request.head_request, stays)
                }
                Err(_) => {
                    self.violations += 1;
                    (HttpReply::empty(400).into(), false, false)
                }
            };
            body.clear();
            match answer {
                Answer::Reset => break Course::Reset,
                Answer::Reply(reply, service) => {
                    let due = (moment.at + service).max(*held_until);
                    if due > moment.at {
                        *held_until = due;
                        let mut bytes = Vec::new();
                        reply.write(&mut bytes, head_request, stays);
                        self.held.push(Held { due, bytes, ends: !stays });
                    } else {
                        reply.write(&mut self.out, head_request, stays);
                    }
                }
            }
            if !stays {
                break Course::Ends;
            }
        };
        self.keep(caller);
        course
    }

    #[cfg(test)]
    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    /// What was counted.
    pub(crate) fn finish(self) -> IngestCounts {
        let mut counts = self.api.counts;
        counts.violations += self.violations;
        counts
    }

    fn violation(&mut self) -> Course {
        self.violations += 1;
        Course::Reset
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
