//! State of one connection: its stage of life, its protocol, and the requests on it.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::ConnId;
use plimsoll_metrics::Recorder;
use plimsoll_plan::{InTurnProtocol, Plan};
use plimsoll_scenario::{FieldNeeds, Needs};
use plimsoll_wire::http1::{
    Capture, HeadMemo, Limits, PendingRequest, ProtocolError, Response, ResponseClient, Truncated,
};
use plimsoll_wire::http2;
use plimsoll_wire::in_turn::{Answer, InTurnClient, Owed};
use plimsoll_wire::tls::{Session, TlsError};
use plimsoll_wire::tunnel::{TunnelClient, TunnelError};

use crate::capture::{Captures, NO_CAPTURE};
use crate::event_stream::{Receipt, StreamedStep};
use crate::request::{InFlight, Requests};
use crate::websocket::WebSocket;

/// Stage in the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot has no connection.
    Free,
    /// The TCP handshake goes on.
    Connecting,
    /// The proxy is being asked for a tunnel.
    Tunnelling,
    /// The TLS handshake goes on.
    Handshaking,
    /// HTTP/2: the server's settings have not come. They say how many streams there may be.
    Greeting,
    /// Ready for requests.
    Open,
    /// Takes no more requests; closes when the ones that it has are answered or abandoned.
    Draining,
}

impl State {
    /// Returns `true` while the connection is being established.
    pub(crate) const fn is_early(self) -> bool {
        matches!(self, Self::Connecting | Self::Tunnelling | Self::Handshaking | Self::Greeting)
    }

    /// Returns `true` once the connection has been established.
    pub(crate) const fn is_established(self) -> bool {
        matches!(self, Self::Open | Self::Draining)
    }
}

/// The protocol state of a connection.
#[derive(Debug)]
pub(crate) enum Client {
    /// Not known before the handshakes are over.
    Undecided,
    /// Not known either, and a proxy is spoken to first.
    Tunnel(Box<TunnelClient>),
    InTurn(InTurn),
    Http2(Box<http2::Client>),
    WebSocket(Box<WebSocket>),
}

/// State of a protocol whose replies come in the order of the requests. The plan limits the number of
/// requests in flight on one connection, and a fault ends the connection.
#[derive(Debug)]
pub(crate) enum InTurn {
    Http1(ResponseClient),
    Foreign(Foreign),
}

/// State of a protocol of another crate.
#[derive(Debug)]
pub(crate) struct Foreign {
    client: Box<dyn InTurnClient>,
    protocol: &'static InTurnProtocol,
    /// Place of the protocol among those of the plan.
    number: usize,
    /// Answers to the opening of the connection that have not come.
    opening: u32,
}

impl Client {
    /// The name of the protocol, as in ALPN if it has one there.
    pub(crate) const fn protocol(&self) -> &'static str {
        match self {
            Self::InTurn(InTurn::Foreign(foreign)) => foreign.protocol.name,
            other => PROTOCOLS[other.protocol_number()],
        }
    }

    /// The place of the protocol among [`PROTOCOLS`]; behind them come those of other crates.
    #[inline]
    pub(crate) const fn protocol_number(&self) -> usize {
        match self {
            Self::Undecided | Self::Tunnel(_) | Self::InTurn(InTurn::Http1(_)) => 0,
            Self::Http2(_) => 1,
            Self::WebSocket(_) => 2,
            Self::InTurn(InTurn::Foreign(foreign)) => PROTOCOLS.len() + foreign.number,
        }
    }
}

/// The names of the protocols that this crate speaks.
pub(crate) const PROTOCOLS: [&str; 3] = ["http/1.1", "h2", "websocket"];

impl InTurn {
    /// A client of a protocol of another crate, which has this place among those of the plan. So many answers
    /// belong to the opening of the connection.
    pub(crate) fn foreign(protocol: &'static InTurnProtocol, number: usize, opening: u32) -> Self {
        Self::Foreign(Foreign { client: (protocol.client)(), protocol, number, opening })
    }

    /// Reads answers to the opening of the connection; returns `true` once all have come.
    pub(crate) fn open(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        let Self::Foreign(Foreign { client, opening, .. }) = self else { return Ok(true) };
        while *opening > 0 {
            let owed = Owed { kind: 0, keep: false };
            match client.next(owed, input, &mut Vec::new()) {
                Ok(None) => return Ok(false),
                Ok(Some(Answer { status, refusal, .. })) if status >= 400 => {
                    let refusal = refusal.unwrap_or_else(|| format!("status {status}"));
                    let reason = format!("the server refuses the connection: {refusal}");
                    return Err(Fault::new(ErrorClass::Rejected, reason));
                }
                Ok(Some(_)) => *opening -= 1,
                Err(violation) => return Err(Fault::new(violation.class, violation.reason)),
            }
        }
        Ok(true)
    }

    /// Notes that the peer has closed. Returns the reply that this has completed, if there is one.
    pub(crate) fn finish(&mut self) -> Result<Option<Reply>, Truncated> {
        match self {
            Self::Http1(client) => {
                Ok(client.finish()?.map(|response| Reply { keep_alive: false, ..Reply::of(&response) }))
            }
            Self::Foreign(foreign) => foreign.client.finish().map(|()| None),
        }
    }

    /// Returns the next reply out of `input`, which came at `at` and belongs to `request`; `None` if it is
    /// not whole yet. Keeps the parts of it that are needed.
    #[inline]
    fn next(
        &mut self,
        plan: &Plan,
        keeping: &mut Keeping<'_>,
        request: &mut InFlight,
        (input, at): (&mut &[u8], Nanos),
    ) -> Result<Option<Completed>, Fault> {
        match self {
            Self::Http1(client) => next_response(client, &plan.limits, keeping, request, (input, at)),
            Self::Foreign(foreign) => next_answer(&mut *foreign.client, plan, keeping, request, input),
        }
    }
}

/// The next response of HTTP/1.1.
#[inline]
fn next_response(
    client: &mut ResponseClient,
    limits: &Limits,
    keeping: &mut Keeping<'_>,
    request: &mut InFlight,
    (input, at): (&mut &[u8], Nanos),
) -> Result<Option<Completed>, Fault> {
    if let Some(response) = keeping.next_good(client, limits, request, input) {
        return Ok(Some(Completed::of(Reply { is_good: true, ..Reply::of(&response) })));
    }
    let index = request.step as usize;
    let needs = &keeping.needs[index];
    let capture = Capture::of(needs.fields != FieldNeeds::Nothing, needs.body);
    if capture != Capture::Nothing && request.capture == NO_CAPTURE && !request.is_given_up() {
        request.capture = keeping.captures.begin();
    }
    let owed = PendingRequest { head_request: request.head_request, capture };
    let memo = &mut keeping.memos[index];
    let before = *input;
    let response = match request.capture {
        // The text of a failure response is kept even without a capture.
        NO_CAPTURE => {
            keeping.captures.quoting(request, |words| client.next_into(limits, memo, owed, input, words))
        }
        kept => {
            let captured = keeping.captures.get_mut(kept);
            let response = client.next_into(limits, memo, owed, input, &mut captured.body);
            if let Some(step) = keeping.streams[index] {
                let record = keeping.recorders.of(request).event_streams(request.step);
                let came = Receipt { at, behind: keeping.behind };
                captured.read_events(step, (client.status(), came), record);
            }
            response
        }
    };
    match response {
        Ok(None) => Ok(None),
        Ok(Some(response)) => {
            if capture.head() {
                let captured = keeping.captures.get_mut(request.capture);
                client.each_header(|name, value| captured.keep(&needs.fields, name.as_bytes(), value));
            }
            Ok(Some(Completed::of(Reply::of(&response))))
        }
        Err(error) => Err(Fault::new(error.class(), reason_of(error, before))),
    }
}

/// Returns the reason why bytes are not a response. A server that speaks TLS answers input that is not TLS
/// with an alert (RFC 8446 section 5.1: its type is 21, and the first byte of its version 3).
#[cold]
fn reason_of(error: ProtocolError, input: &[u8]) -> String {
    match (error, input) {
        (ProtocolError::NotHttp, [21, 3, ..]) => "the server answers with a TLS alert".to_owned(),
        _ => error.to_string(),
    }
}

/// The next answer of a protocol of another crate.
#[inline]
fn next_answer(
    client: &mut dyn InTurnClient,
    plan: &Plan,
    keeping: &mut Keeping<'_>,
    request: &mut InFlight,
    input: &mut &[u8],
) -> Result<Option<Completed>, Fault> {
    let index = request.step as usize;
    let keep = keeping.needs[index].body;
    let owed = Owed { kind: plan.steps[index].request.frame_kind(), keep };
    let begins = request.capture == NO_CAPTURE && !request.is_given_up();
    let answer = match keeping.is_good.as_mut().filter(|_| keep && begins) {
        Some(is_good) => {
            keeping.content.clear();
            let answer = client.next(owed, input, keeping.content);
            if let Ok(Some(Answer { status, wire_bytes, refusal: None })) = answer
                && is_good(index, status, keeping.content)
            {
                let reply = Reply { status, wire_bytes, keep_alive: true, is_good: true };
                return Ok(Some(Completed::of(reply)));
            }
            request.capture = keeping.captures.begin();
            keeping.captures.get_mut(request.capture).body.extend_from_slice(keeping.content);
            answer
        }
        None => {
            if keep && begins {
                request.capture = keeping.captures.begin();
            }
            client.next(owed, input, &mut keeping.captures.get_mut(request.capture).body)
        }
    };
    match answer {
        Ok(None) => Ok(None),
        Ok(Some(Answer { status, wire_bytes, refusal })) => {
            let reply = Reply { status, wire_bytes, keep_alive: true, is_good: false };
            Ok(Some(Completed { reply, refusal }))
        }
        Err(violation) => Err(Fault::new(violation.class, violation.reason)),
    }
}

/// TLS on one connection.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) session: Session,
    /// Written, and encrypted at the next flush: requests of one flush share a record.
    pub(crate) plain: Vec<u8>,
}

/// One connection slot.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    pub(crate) pool: u32,
    /// Address of the connection: one of the pool's sites.
    pub(crate) target_address: u32,
    pub(crate) state: State,
    /// `true` while it is in its pool's list of connections that can take a request.
    pub(crate) listed: bool,
    /// The time of its entry among the timers that counts; never, if it has none.
    pub(crate) armed: Nanos,
    /// Number of the connection among those that the worker has opened, from 1.
    pub(crate) number: u64,
    /// When the connect call was made; when established, when the TCP handshake and the tunnel were over.
    pub(crate) since: Nanos,
    /// When its life is over; never, if it is not limited.
    pub(crate) retires: Nanos,
    /// When something came last.
    pub(crate) heard: Nanos,
    /// When the next PING is due; never, if none is to be sent.
    pub(crate) ping: Nanos,
    /// Requests sent on it.
    pub(crate) served: u64,
    /// Requests sent on it in runs before this one, of [`served`](Self::served).
    pub(crate) served_before: u64,
    /// Set once a whole response has come on it.
    pub(crate) answered: bool,
    /// HTTP/2: set while the server allows no streams on it.
    pub(crate) barred: bool,
    /// Closed model with a ramp: its users but one begin when it is open.
    pub(crate) fills: bool,
    /// The flush in which it was written to last, and its place among those written to in it.
    pub(crate) mark: (u64, u32),
    pub(crate) requests: Requests,
    pub(crate) client: Client,
    pub(crate) tls: Option<Box<Tls>>,
}

/// A whole response, in any protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Bytes on the wire, without TLS framing.
    pub(crate) wire_bytes: u64,
    /// `true` if the connection can be used again after this reply.
    pub(crate) keep_alive: bool,
    /// `true` if the response was judged as it came, and is good: nothing of it was kept.
    pub(crate) is_good: bool,
}

impl Reply {
    /// Of HTTP/1.1.
    fn of(response: &Response) -> Self {
        let Response { status, wire_bytes, keep_alive, .. } = *response;
        Self { status, wire_bytes, keep_alive, is_good: false }
    }
}

/// A whole reply, as decoded from a piece of input.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) reply: Reply,
    /// Reason why the server refused the request, in its own words; only where the protocol has them.
    pub(crate) refusal: Option<String>,
}

impl Completed {
    const fn of(reply: Reply) -> Self {
        Self { reply, refusal: None }
    }
}

/// The recorders of the measured part and of the warm-up.
pub(crate) struct Recorders<'k> {
    pub(crate) measured: &'k mut Recorder,
    pub(crate) warmup: &'k mut Recorder,
}

impl Recorders<'_> {
    /// The recorder that a request belongs to.
    pub(crate) const fn of(&mut self, request: &InFlight) -> &mut Recorder {
        if request.measured { self.measured } else { self.warmup }
    }
}

/// Returns `true` if a response with this step, status and body is certainly good.
pub(crate) type IsGood<'k> = &'k mut dyn FnMut(usize, u16, &[u8]) -> bool;

/// Working state for reading replies that come in turn, beside their connection.
pub(crate) struct Keeping<'k> {
    /// By step.
    pub(crate) memos: &'k mut [HeadMemo],
    /// By step.
    pub(crate) needs: &'k [Needs],
    pub(crate) captures: &'k mut Captures,
    /// By step: those whose responses are streams of events.
    pub(crate) streams: &'k [Option<StreamedStep>],
    /// Time for which what came may have waited to be read.
    pub(crate) behind: Nanos,
    /// For what streams record as they come.
    pub(crate) recorders: Recorders<'k>,
    /// Set if exchanges are kept only because they may fail, or to be judged. Reports whether a whole
    /// response to this step with this status and body is good, and need not be kept.
    pub(crate) is_good: Option<IsGood<'k>>,
    /// Room for the content of an answer that is judged as it comes.
    pub(crate) content: &'k mut Vec<u8>,
}

impl Keeping<'_> {
    /// The next response, if it stands whole in `input` and is good, so that nothing of it has to be kept.
    #[inline]
    fn next_good(
        &mut self,
        client: &mut ResponseClient,
        limits: &Limits,
        request: &InFlight,
        input: &mut &[u8],
    ) -> Option<Response> {
        let (is_good, index) = (self.is_good.as_mut()?, request.step as usize);
        let mut rest = *input;
        let response = client.next_known(limits, &self.memos[index], request.head_request, &mut rest)?;
        // The body is complete here, and nothing precedes its head.
        let body = &input[response.head_bytes as usize..response.wire_bytes as usize];
        is_good(index, response.status, body).then(|| {
            *input = rest;
            response
        })
    }
}

/// Reason why input could not be decoded.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) class: ErrorClass,
    pub(crate) reason: String,
    /// HTTP/2: the code of the error.
    pub(crate) code: Option<&'static str>,
    /// Advice for TLS errors.
    pub(crate) hint: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(class: ErrorClass, reason: impl Into<String>) -> Self {
        Self { class, reason: reason.into(), code: None, hint: None }
    }
}

impl From<TlsError> for Fault {
    fn from(error: TlsError) -> Self {
        Self { hint: error.hint(), ..Self::new(ErrorClass::Tls, error.to_string()) }
    }
}

impl From<TunnelError> for Fault {
    fn from(error: TunnelError) -> Self {
        Self::new(ErrorClass::Proxy, error.to_string())
    }
}

impl From<http2::ConnectionError> for Fault {
    fn from(error: http2::ConnectionError) -> Self {
        let class = if error.wrong_protocol { ErrorClass::WrongProtocol } else { ErrorClass::Protocol };
        let code = (!error.wrong_protocol).then(|| error.code.name());
        Self { class, reason: error.to_string(), code, hint: None }
    }
}

impl Conn {
    pub(crate) fn free() -> Self {
        Self {
            id: ConnId::new(u32::MAX, 0),
            pool: 0,
            target_address: 0,
            state: State::Free,
            listed: false,
            armed: Nanos::MAX,
            number: 0,
            since: Nanos::ZERO,
            retires: Nanos::MAX,
            heard: Nanos::ZERO,
            ping: Nanos::MAX,
            served: 0,
            served_before: 0,
            answered: false,
            barred: false,
            fills: false,
            mark: (0, 0),
            requests: Requests::default(),
            client: Client::Undecided,
            tls: None,
        }
    }

    /// Returns `true` if the connection can take one more request. `pipeline` is the depth where replies come
    /// in turn; `expected` is the depth that a connection which is still being established will probably
    /// have.
    #[inline]
    pub(crate) fn has_room(&self, pipeline: u32, expected: u32, max_requests: Option<u64>) -> bool {
        let room = match (self.state, &self.client) {
            (State::Open, Client::InTurn(_)) => self.requests.len() < pipeline as usize,
            (State::Open, Client::Http2(client)) => client.capacity() > 0,
            // One that was opened belongs to its iteration.
            (State::Open, Client::WebSocket(socket)) => socket.is_fresh() && self.requests.is_empty(),
            (state, _) if state.is_early() => self.requests.len() < expected as usize,
            _ => false,
        };
        // A connection that has sent its last request waits for the response and is then closed.
        room && max_requests.is_none_or(|max| {
            let waiting = if self.state == State::Open { 0 } else { self.requests.len() as u64 };
            self.served + waiting < max
        })
    }

    /// Stops new requests from being put on this connection after a fault: bytes that follow a fault belong
    /// to no request.
    pub(crate) fn take_no_more(&mut self) {
        if self.state == State::Open {
            self.state = State::Draining;
        }
    }

    /// Requests that it takes at once; of one that takes none for now, one.
    pub(crate) fn depth(&self, pipeline: u32) -> u32 {
        match &self.client {
            Client::Http2(client) => (client.capacity() + client.active()).max(1),
            _ => pipeline,
        }
    }

    /// Returns `true` if the connection is idle and will never take a request again: it has served as many as
    /// it may, or all of its stream identifiers are used.
    #[inline]
    pub(crate) fn is_spent(&self, max_requests: Option<u64>) -> bool {
        self.requests.is_empty()
            && (max_requests.is_some_and(|max| self.served >= max)
                || match &self.client {
                    Client::Http2(client) => {
                        let limited = client.is_going_away() || client.server_limit() == Some(0);
                        client.capacity() == 0 && !limited
                    }
                    _ => false,
                })
    }

    /// When something has to be done about it if nothing comes.
    pub(crate) fn deadline(&self, plan: &Plan) -> Nanos {
        let own = match self.state {
            State::Free => return Nanos::MAX,
            state if state.is_early() => self.since + plan.connect_timeout,
            _ => self.retires.min(self.silent_until(plan)).min(self.ping),
        };
        let waiting = self.requests.iter().filter(|request| !request.is_given_up());
        own.min(waiting.map(|request| request.deadline(plan)).min().unwrap_or(Nanos::MAX))
    }

    /// When it has been silent for too long, unless something comes.
    pub(crate) fn silent_until(&self, plan: &Plan) -> Nanos {
        plan.connections.inactivity.map_or(Nanos::MAX, |limit| self.heard + limit)
    }

    /// Decodes `input`, which arrived at `at`, into whole replies that come in turn.
    ///
    /// # Errors
    /// The fault that ends the connection. Responses that were completed before it are valid.
    pub(crate) fn decode_in_turn(
        &mut self,
        plan: &Plan,
        keeping: &mut Keeping<'_>,
        mut input: &[u8],
        at: Nanos,
        completed: &mut Vec<Completed>,
    ) -> Result<(), Fault> {
        let Client::InTurn(client) = &mut self.client else { return Ok(()) };
        while !input.is_empty() {
            let Some(request) = self.requests.nth_mut(completed.len()) else {
                let reason = format!("{} bytes that no request had asked for", input.len());
                return Err(Fault::new(ErrorClass::UnsolicitedData, reason));
            };
            if request.is_unsent() {
                let reason = "a response came before its request was sent";
                return Err(Fault::new(ErrorClass::UnsolicitedData, reason));
            }
            if request.first_byte == Nanos::MAX {
                request.first_byte = at;
            }
            match client.next(plan, keeping, request, (&mut input, at))? {
                Some(reply) => completed.push(reply),
                None => break,
            }
        }
        Ok(())
    }
}
