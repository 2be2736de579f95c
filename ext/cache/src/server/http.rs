//! The HTTP port: reading requests, and writing replies.

use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_targets::http_reply::HttpReply;
use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};

use super::api::Api;
use super::setup::{CacheReport, Setup};

/// The most bytes of a body: the limit of the real server.
const LONGEST_BODY: u64 = 2 << 20;
/// Memory that a connection keeps for bodies.
const USUAL_BODY: usize = 16 * 1024;

/// One connection of the HTTP port.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    reader: RequestServer,
    /// Body of the present request, as far as it has come.
    body: Vec<u8>,
}

impl Caller {
    /// Bytes of memory that it keeps for a body that did not come whole.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.body.capacity()
    }
}

/// Answers the HTTP requests of one thread.
#[derive(Debug)]
pub(crate) struct HttpDesk {
    api: Api,
    limits: Limits,
    memo: RequestMemo,
    requests: u64,
}

impl HttpDesk {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self { api: Api::new(setup), limits: Limits::default(), memo: RequestMemo::new(), requests: 0 }
    }

    /// Answers all requests that are whole with `input`, which came at `now`. Gives whether the connection
    /// goes on, or an error if this is not HTTP.
    pub(crate) fn read(
        &mut self,
        caller: &mut Caller,
        now: Nanos,
        mut input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, NoHttp> {
        loop {
            let Caller { reader, body } = caller;
            let request = match reader.next_into(&self.limits, &mut self.memo, &mut input, Some(body)) {
                Ok(Some(request)) => request,
                Ok(None) => {
                    if reader.wants_continue() {
                        out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    return Ok(true);
                }
                Err(_) => {
                    HttpReply::empty(400).write(out, false, false);
                    return Err(NoHttp);
                }
            };
            let reply = if request.body_bytes > LONGEST_BODY {
                HttpReply::text(413, "length limit exceeded")
            } else {
                self.api.answer(&request, body, now)
            };
            // An HTTP/1.0 client would need a field that says that the connection is kept.
            let stays = request.keep_alive && request.version_minor > 0;
            reply.write(out, request.head_request, stays);
            self.requests += 1;
            body.clear();
            if body.capacity() > USUAL_BODY {
                *body = Vec::new();
            }
            if !stays {
                return Ok(false);
            }
        }
    }

    /// Writes the reason why a connection ends that exceeds the `most` bytes for unfinished requests.
    pub(crate) fn refuse_for_memory(most: u64, out: &mut Vec<u8>) {
        let why = format!("unfinished requests of all connections have {most} bytes");
        HttpReply::text(503, why).write(out, false, false);
    }

    /// Returns the counts.
    pub(crate) fn finish(self) -> CacheReport {
        CacheReport { http_requests: self.requests, ..CacheReport::default() }
    }
}

/// Error for bytes that are not HTTP/1.1. The reply that says so is already written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoHttp;
