//! Requests to a port, from their bytes to their permissions.

use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};

use super::{Access, BODY_BYTES, HEAD_BYTES, Reply, Request};

/// Reads the requests of one connection, one after the other.
#[derive(Debug, Default)]
pub struct RequestReader {
    server: RequestServer,
    /// The bytes of the present request so far.
    raw: Vec<u8>,
}

/// The result of reading the bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The request is incomplete.
    Pending {
        /// `true` if the client waits for `100 Continue`.
        wants_continue: bool,
    },
    /// A request that may be answered.
    Request {
        /// The request.
        request: Request,
        /// `true` if another request may follow on the connection.
        stays: bool,
    },
    /// A request that is refused, with the reply.
    Refused {
        /// The reply.
        reply: Reply,
        /// `true` for a HEAD request, whose reply has no body.
        head_request: bool,
        /// `true` if another request may follow on the connection.
        stays: bool,
    },
}

impl RequestReader {
    /// Takes the new bytes of the connection. Once a request is returned or refused, the next bytes are those
    /// of another one.
    pub fn take(&mut self, fresh: &[u8], access: &Access, memo: &mut RequestMemo) -> Reading {
        self.raw.extend_from_slice(fresh);
        let begin = self.raw.len() - fresh.len();
        let mut input = &self.raw[begin..];
        let refused = |status, message| Reading::Refused {
            reply: Reply::problem(status, message),
            head_request: false,
            stays: false,
        };
        let limits = Limits { head_bytes: HEAD_BYTES, ..Limits::default() };
        let reading = match self.server.next(&limits, memo, &mut input) {
            Ok(None) if self.raw.len() > HEAD_BYTES + BODY_BYTES => refused(413, "the request is too large"),
            Ok(None) => return Reading::Pending { wants_continue: self.server.wants_continue() },
            Err(_) => refused(400, "that is not an HTTP/1.1 request"),
            Ok(Some(whole)) => {
                // An HTTP/1.0 client would need a field that says that the connection is kept.
                let (stays, head_request) = (whole.keep_alive && whole.version_minor > 0, whole.head_request);
                match Request::new(&whole, &self.raw) {
                    Ok(request) => match access.refusal(&request) {
                        Some(reply) => Reading::Refused { reply, head_request, stays },
                        None => Reading::Request { request, stays },
                    },
                    Err(reply) => Reading::Refused { reply, head_request, stays: false },
                }
            }
        };
        self.raw.clear();
        reading
    }
}
