//! Reads whole byte streams, cut in any way, into responses and requests.

use plimsoll_wire::http1::{
    Capture, HeadMemo, Limits, PendingRequest, ProtocolError, Request, RequestMemo, RequestServer, Response,
    ResponseClient, Truncated,
};

pub(crate) const GET: PendingRequest = PendingRequest { head_request: false, capture: Capture::Nothing };
pub(crate) const HEAD: PendingRequest = PendingRequest { head_request: true, capture: Capture::Nothing };

/// The result of a connection to a server: its responses, its end, and the bytes consumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Responses {
    pub(crate) responses: Vec<Response>,
    /// The kept payload of each response.
    pub(crate) bodies: Vec<Vec<u8>>,
    pub(crate) end: Result<(), ResponsesEnd>,
    pub(crate) consumed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponsesEnd {
    Error(ProtocolError),
    Truncated(Truncated),
}

/// The lifetime of the memo: across responses, or fresh for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Kept,
    FreshEveryTime,
}

/// Reads `pieces`, then the end of the stream. `owed` is about the first, second… response, and begins again
/// after its last.
pub(crate) fn read_responses<'p>(
    limits: &Limits,
    memory: Memory,
    owed: &[PendingRequest],
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Responses {
    let mut client = ResponseClient::new();
    let mut memo = HeadMemo::new();
    let mut all = Responses { responses: Vec::new(), bodies: Vec::new(), end: Ok(()), consumed: 0 };
    let mut kept = Vec::new();
    for piece in pieces {
        let mut input = piece;
        while !input.is_empty() {
            if memory == Memory::FreshEveryTime {
                memo = HeadMemo::new();
            }
            let now = owed[all.responses.len() % owed.len()];
            let before = input.len();
            let result = client.next_into(limits, &mut memo, now, &mut input, &mut kept);
            all.consumed += (before - input.len()) as u64;
            match result {
                Ok(Some(response)) => {
                    all.responses.push(response);
                    all.bodies.push(std::mem::take(&mut kept));
                }
                Ok(None) => assert!(input.is_empty(), "None leaves no input"),
                Err(error) => {
                    all.end = Err(ResponsesEnd::Error(error));
                    return all;
                }
            }
        }
    }
    match client.finish() {
        Ok(last) => {
            all.bodies.extend(last.is_some().then_some(kept));
            all.responses.extend(last);
        }
        Err(truncated) => all.end = Err(ResponsesEnd::Truncated(truncated)),
    }
    all
}

/// Reads `bytes` in one piece with the default limits, then the end of the stream.
pub(crate) fn read_at_once(owed: &[PendingRequest], bytes: &[u8]) -> Responses {
    read_responses(&Limits::default(), Memory::Kept, owed, [bytes])
}

/// A request that owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version_minor: u8,
    pub(crate) keep_alive: bool,
    pub(crate) head_request: bool,
    pub(crate) body_bytes: u64,
    pub(crate) expects_continue: bool,
    pub(crate) id: Option<String>,
}

impl From<Request<'_>> for OwnedRequest {
    fn from(request: Request<'_>) -> Self {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        Self {
            method: text(request.method),
            target: text(request.target),
            version_minor: request.version_minor,
            keep_alive: request.keep_alive,
            head_request: request.head_request,
            body_bytes: request.body_bytes,
            expects_continue: request.expects_continue,
            id: request.id.map(text),
        }
    }
}

/// The result of a connection from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) requests: Vec<OwnedRequest>,
    pub(crate) error: Option<ProtocolError>,
    /// `true` if the stream ended inside a request.
    pub(crate) cut: bool,
}

pub(crate) fn read_requests<'p>(
    limits: &Limits,
    memory: Memory,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Requests {
    let mut server = RequestServer::new();
    let mut memo = RequestMemo::new();
    let mut all = Requests { requests: Vec::new(), error: None, cut: false };
    for piece in pieces {
        let mut input = piece;
        while !input.is_empty() {
            if memory == Memory::FreshEveryTime {
                memo = RequestMemo::new();
            }
            match server.next(limits, &mut memo, &mut input) {
                Ok(Some(request)) => all.requests.push(request.into()),
                Ok(None) => assert!(input.is_empty(), "None leaves no input"),
                Err(error) => {
                    all.error = Some(error);
                    return all;
                }
            }
        }
    }
    all.cut = server.in_request();
    all
}
