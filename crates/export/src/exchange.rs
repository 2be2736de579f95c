//! One request to a server and its response, on a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close, ConnId, Endpoint, Event, Open, SocketOptions, Wait};
use plimsoll_system::resolve::{Family, resolve};
use plimsoll_wire::http1::{Capture, HeadMemo, Limits, PendingRequest, Response, ResponseClient};
use plimsoll_wire::tls::{ClientConfig, ClientOptions, Session, TlsConfigError};

use crate::Receiver;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(50);
/// Time that a request under way may still take after the run has ended.
pub(crate) const GRACE: Nanos = Nanos::from_millis(500);

/// Sends requests to a server.
#[derive(Debug)]
pub(crate) struct Exchange<O> {
    open: O,
    receiver: Receiver,
    tls: Option<ClientConfig>,
    /// The server in messages: `the receiver`.
    name: &'static str,
    /// Bytes of a reply that are read at most.
    most: usize,
    /// Set when the run has ended: then a request that is not the last one is given up after [`GRACE`].
    stop: Arc<AtomicBool>,
}

/// An error of an exchange with one address.
enum Trouble {
    /// There is no connection: another address may do.
    NotConnected(String),
    Other(String),
}

impl<O: Open> Exchange<O> {
    /// Exchanges with a server, called so in messages, whose replies have `most` bytes at most.
    ///
    /// # Errors
    /// No TLS for one that wants it.
    pub(crate) fn new(
        open: O,
        receiver: Receiver,
        (name, most): (&'static str, usize),
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TlsConfigError> {
        let tls = receiver.is_secure().then(|| ClientConfig::new(&ClientOptions::default())).transpose()?;
        Ok(Self { open, receiver, tls, name, most, stop: Arc::clone(stop) })
    }

    /// Posts a body of this media type to the path of the receiver, and waits for the status and the content
    /// of the response, no longer than `limit`.
    ///
    /// # Errors
    /// The reason why there is no response, in one line.
    pub(crate) fn post(
        &self,
        (kind, body): (&str, &[u8]),
        limit: Nanos,
        last: bool,
    ) -> Result<(u16, Vec<u8>), String> {
        let length = body.len();
        let more = format!("content-type: {kind}\r\ncontent-length: {length}\r\n");
        let mut request = self.head("POST", "", &more);
        request.extend_from_slice(body);
        self.carry_out(&request, limit, last)
    }

    /// Asks for the path of the receiver with this query, and waits likewise.
    ///
    /// # Errors
    /// The reason why there is no response, in one line.
    pub(crate) fn get(&self, query: &str, limit: Nanos, last: bool) -> Result<(u16, Vec<u8>), String> {
        self.carry_out(&self.head("GET", query, ""), limit, last)
    }

    /// The head of a request, with more fields.
    fn head(&self, method: &str, query: &str, more: &str) -> Vec<u8> {
        let Receiver { authority, path, headers, .. } = &self.receiver;
        let mut head = format!(
            "{method} {path}{query} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: plimsoll\r\n\
             connection: close\r\n{more}"
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn carry_out(&self, request: &[u8], limit: Nanos, last: bool) -> Result<(u16, Vec<u8>), String> {
        let Receiver { host, port, .. } = &self.receiver;
        let addresses = resolve(host, *port, Family::Any).map_err(|error| error.to_string())?;
        let mut io = self.open.open().map_err(|error| error.to_string())?;
        let stop = (!last).then_some(&*self.stop);
        let mut patience = Deadline { until: io.now() + limit, stop, name: self.name };
        let mut trouble = format!("{} has no address", self.name);
        for address in addresses {
            match self.carry_out_at(&mut io, &Endpoint::Tcp(address), request, &mut patience) {
                Ok((response, reply)) => return Ok((response.status, reply)),
                Err(Trouble::Other(error)) => return Err(error),
                Err(Trouble::NotConnected(error)) => {
                    trouble = format!("cannot connect to {address}: {error}");
                }
            }
        }
        Err(trouble)
    }

    fn carry_out_at(
        &self,
        io: &mut O::Backend,
        endpoint: &Endpoint,
        request: &[u8],
        patience: &mut Deadline<'_>,
    ) -> Result<(Response, Vec<u8>), Trouble> {
        let tls = self.tls.as_ref().map(|config| {
            let name = self.receiver.host.trim_matches(['[', ']']);
            Session::client(config, name).map_err(|error| Trouble::Other(error.to_string()))
        });
        let tls = tls.transpose()?;
        let conn = io
            .connect(endpoint, &SocketOptions::default())
            .map_err(|error| Trouble::NotConnected(error.to_string()))?;
        let mut talk = Talk {
            conn,
            tls,
            request: request.to_vec(),
            reader: ResponseClient::new(),
            memo: HeadMemo::new(),
            reply: Vec::new(),
            name: self.name,
            most: self.most,
            connected: false,
        };
        let ended = loop {
            io.flush();
            if let Some(error) = patience.is_over(io.now(), talk.connected) {
                break Err(error);
            }
            io.wait(Wait { until: io.now() + STOP_POLL, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            let mut found = None;
            while let Some(event) = io.next_event() {
                // Events of an address that was given up are ignored.
                found = found.or_else(|| talk.hear(io, event).transpose());
            }
            if let Some(found) = found {
                break found;
            }
        };
        io.close(conn, Close::Now);
        io.flush();
        ended.map(|response| (response, talk.reply))
    }
}

/// The end of a wait.
struct Deadline<'a> {
    until: Nanos,
    /// Set when the run ends; `None` if the end is known already.
    stop: Option<&'a AtomicBool>,
    name: &'static str,
}

impl Deadline<'_> {
    fn is_over(&mut self, now: Nanos, connected: bool) -> Option<Trouble> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.until = self.until.min(now + GRACE);
            self.stop = None;
        }
        let what = if connected { "gave no answer in time" } else { "was not reached in time" };
        (now >= self.until).then(|| Trouble::Other(format!("{} {what}", self.name)))
    }
}

/// One connection.
struct Talk {
    conn: ConnId,
    tls: Option<Session>,
    request: Vec<u8>,
    reader: ResponseClient,
    memo: HeadMemo,
    reply: Vec<u8>,
    name: &'static str,
    most: usize,
    connected: bool,
}

impl Talk {
    /// Takes an event; the response when it is whole.
    fn hear<B: Backend>(&mut self, io: &mut B, event: Event) -> Result<Option<Response>, Trouble> {
        match event {
            Event::Connected { conn, .. } if conn == self.conn => {
                self.connected = true;
                match &mut self.tls {
                    Some(tls) => tls.transmit(io.outbox(conn)),
                    None => io.outbox(conn).append(&mut self.request),
                }
                Ok(None)
            }
            Event::ConnectFailed { conn, error, .. } if conn == self.conn => {
                Err(Trouble::NotConnected(error.to_string()))
            }
            Event::Received { conn, data, .. } if conn == self.conn => {
                let bytes = io.bytes(data).to_vec();
                let plain = match &mut self.tls {
                    None => bytes,
                    Some(tls) => {
                        let mut plain = Vec::new();
                        let received = tls.receive(&bytes, &mut plain);
                        let out = io.outbox(conn);
                        tls.transmit(out);
                        let received = received.map_err(|error| Trouble::Other(error.to_string()))?;
                        if received.handshake_done_now {
                            tls.send(&std::mem::take(&mut self.request), out);
                        }
                        plain
                    }
                };
                self.read(&plain)
            }
            Event::Closed { conn, .. } if conn == self.conn => match self.reader.finish() {
                Ok(Some(response)) => Ok(Some(response)),
                _ => Err(Trouble::Other(format!("{} closed the connection without a response", self.name))),
            },
            Event::Failed { conn, error, .. } if conn == self.conn => Err(Trouble::Other(error.to_string())),
            _ => Ok(None),
        }
    }

    fn read(&mut self, mut plain: &[u8]) -> Result<Option<Response>, Trouble> {
        let owed = PendingRequest { head_request: false, capture: Capture::Body };
        let next =
            self.reader.next_into(&Limits::default(), &mut self.memo, owed, &mut plain, &mut self.reply);
        if self.reply.len() > self.most {
            let most = self.most;
            return Err(Trouble::Other(format!("{} answers with more than {most} bytes", self.name)));
        }
        next.map_err(|error| Trouble::Other(format!("{} speaks no HTTP: {error}", self.name)))
    }
}
