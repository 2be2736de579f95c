//! A small blocking HTTP/2 client: the state machine of the engine on the connections of [`Client`].

use std::collections::BTreeMap;

use plimsoll_driver::Endpoint;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{ClientOptions, ErrorCode, Event, Payload, StreamFailure, Submit};
use plimsoll_wire::tls::ClientConfig;
use plimsoll_wire::{http2, http2::PREFACE};

use crate::sink::client::{Client, connect_tls};

/// One HTTP/2 connection. Requests are named by their order, from 0.
pub(crate) struct Streams {
    /// The connection of the [`Client`] that carries it.
    pub(crate) index: usize,
    wire: http2::Client,
    /// The request of each ticket that is in use.
    requests: BTreeMap<u32, u32>,
    sent: u32,
    received: Received,
    /// Bytes to send with the next request.
    out: Vec<u8>,
}

/// Everything received so far, by request.
#[derive(Default)]
struct Received {
    /// Frames that are not whole.
    partial: Vec<u8>,
    bodies: BTreeMap<u32, Vec<u8>>,
    /// DATA frames of each request.
    pieces: BTreeMap<u32, usize>,
    heads: BTreeMap<u32, Vec<(String, String)>>,
    ended: BTreeMap<u32, Result<http2::Response, StreamFailure>>,
    went_away: Option<(ErrorCode, u32)>,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The counter in a CBOR reply.
    pub(crate) fn counter(&self) -> u32 {
        assert_eq!(self.body.len(), 32, "{self:?}");
        u32::from_le_bytes(self.body[28..].try_into().unwrap())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1.as_str())
    }
}

/// The fields and the body of a request, beside its method and path.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extra<'a> {
    pub(crate) fields: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

impl Streams {
    /// Opens a connection with prior knowledge.
    pub(crate) fn connect(client: &mut Client, to: &Endpoint, options: &ClientOptions) -> Self {
        let index = client.connect(to);
        Self::begin(client, index, options)
    }

    /// Opens a connection with TLS.
    pub(crate) fn connect_tls(client: &mut Client, to: &Endpoint, config: &ClientConfig) -> Self {
        let index = connect_tls(client, to, config);
        Self::begin(client, index, &ClientOptions::default())
    }

    /// Says the client's preface on a connection.
    fn begin(client: &mut Client, index: usize, options: &ClientOptions) -> Self {
        let mut streams = Self::silent(index, options);
        assert!(streams.out.starts_with(PREFACE));
        streams.flush(client);
        streams
    }

    /// Prepares the client's preface without sending anything: see [`unsent`](Self::unsent).
    pub(crate) fn silent(index: usize, options: &ClientOptions) -> Self {
        let mut wire = http2::Client::new(options);
        let mut out = Vec::new();
        wire.start(&mut out);
        Self { index, wire, requests: BTreeMap::new(), sent: 0, received: Received::default(), out }
    }

    /// Takes the bytes that would be sent next.
    pub(crate) fn unsent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Sends the prepared bytes.
    pub(crate) fn flush(&mut self, client: &mut Client) {
        let out = self.unsent();
        if !out.is_empty() {
            client.send(self.index, &out);
        }
    }

    /// Prepares a GET.
    pub(crate) fn get(&mut self) -> u32 {
        self.request("GET", "/any?x=1", Extra::default())
    }

    /// Prepares a request and gives its name.
    pub(crate) fn request(&mut self, method: &str, path: &str, extra: Extra<'_>) -> u32 {
        assert!(self.wire.capacity() > 0);
        let body = if extra.body.is_empty() { Payload::None } else { Payload::Bytes(extra.body) };
        let submit = Submit {
            head_request: method == "HEAD",
            capture: true,
            keep_body: false,
            tell_content: false,
            body,
        };
        let head = |_: &mut http2::Indexing, out: &mut Vec<u8>| {
            let pseudo = [(":method", method), (":scheme", "http"), (":authority", "sink"), (":path", path)];
            for (name, value) in pseudo.iter().chain(extra.fields) {
                put_literal(out, name.as_bytes(), value.as_bytes(), false);
            }
        };
        let ticket = self.wire.submit(submit, head, &mut self.out);
        self.requests.insert(ticket, self.sent);
        self.sent += 1;
        self.sent - 1
    }

    /// Prepares a reset of a request that is in flight.
    pub(crate) fn cancel(&mut self, request: u32) {
        let ticket = self.requests.iter().find(|found| *found.1 == request).map(|found| *found.0);
        let ticket = ticket.expect("the request is in flight");
        self.requests.remove(&ticket);
        self.wire.cancel(ticket, &mut self.out);
    }

    /// Takes in the received bytes.
    pub(crate) fn receive(&mut self, client: &mut Client) {
        let bytes = client.take(self.index);
        if bytes.is_empty() {
            return;
        }
        self.received.frames(&bytes);
        let mut events = Vec::new();
        self.wire.receive(&bytes, &mut self.out, &mut events).expect("the sink keeps to the protocol");
        for event in events {
            match event {
                Event::Head { ticket, fields } => {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    let fields = self.wire.captured(&fields).map(|field| (text(field.0), text(field.1)));
                    // Trailers follow the fields of the head.
                    self.received.heads.entry(self.requests[&ticket]).or_default().extend(fields);
                }
                Event::Response { ticket, response } => self.end(ticket, Ok(response)),
                Event::Failed { ticket, failure } => self.end(ticket, Err(failure)),
                Event::GoAway { code, unprocessed } => self.received.went_away = Some((code, unprocessed)),
                Event::Ready | Event::Began { .. } | Event::Content { .. } | Event::Pong { .. } => {}
            }
        }
        self.flush(client);
    }

    fn end(&mut self, ticket: u32, end: Result<http2::Response, StreamFailure>) {
        let request = self.requests.remove(&ticket).expect("the ticket is in use");
        self.received.ended.insert(request, end);
    }

    /// Sends the prepared bytes and waits for the end of a request.
    pub(crate) fn wait(&mut self, client: &mut Client, request: u32) -> Result<Reply, StreamFailure> {
        self.flush(client);
        client.wait_for("the end of a request", |client| {
            self.receive(client);
            self.try_end(request)
        })
    }

    /// Sends the prepared bytes and waits for the reply to a request that is answered.
    pub(crate) fn reply(&mut self, client: &mut Client, request: u32) -> Reply {
        self.wait(client, request).unwrap()
    }

    /// Returns the end of a request, if it has ended. Only one call returns it.
    pub(crate) fn try_end(&mut self, request: u32) -> Option<Result<Reply, StreamFailure>> {
        let received = &mut self.received;
        received.ended.remove(&request).map(|end| {
            let body = received.bodies.remove(&request).unwrap_or_default();
            end.map(|response| {
                assert_eq!(response.body_bytes, body.len() as u64);
                let fields = received.heads.remove(&request).unwrap();
                Reply { status: response.status, fields, body }
            })
        })
    }

    /// In how many DATA frames the body of a request came.
    pub(crate) fn pieces(&self, request: u32) -> usize {
        self.received.pieces.get(&request).copied().unwrap_or(0)
    }

    /// Bytes of bodies that came and were not taken.
    pub(crate) fn body_bytes(&self) -> usize {
        self.received.bodies.values().map(Vec::len).sum()
    }

    /// The code of a GOAWAY that came, and how many requests it left unprocessed.
    pub(crate) fn went_away(&self) -> Option<(ErrorCode, u32)> {
        self.received.went_away
    }

    /// Requests in flight.
    pub(crate) fn active(&self) -> u32 {
        self.wire.active()
    }
}

impl Received {
    /// Collects the bodies: the state machine counts and drops them.
    fn frames(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        while let Some((head, rest)) = self.partial.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let Some(payload) = rest.get(..length) else { return };
            // Streams of a client are the odd numbers in order. The sink does not pad.
            const DATA: u8 = 0;
            if head[3] == DATA && length > 0 {
                let request = stream / 2;
                self.bodies.entry(request).or_default().extend_from_slice(payload);
                *self.pieces.entry(request).or_default() += 1;
            }
            self.partial.drain(..9 + length);
        }
    }
}
