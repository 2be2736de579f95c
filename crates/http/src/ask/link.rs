//! A connection to a server, and the exchanges on it.

use core::net::SocketAddr;

use plimsoll_core::Nanos;
use plimsoll_driver::epoll::Epoll;
use plimsoll_driver::{Backend as _, Close, ConnId, Endpoint, Event, SocketOptions, SystemError, Wait};
use plimsoll_wire::http1::{Capture, HeadMemo, Limits, PendingRequest, Response, ResponseClient};
use plimsoll_wire::tls::Session;

use super::deadline::STOP_POLL;
use super::{Answer, AskError, Client, Deadline};

/// An open connection: TCP, and TLS on top of it where the server wants it.
pub(super) struct Link {
    conn: ConnId,
    tls: Option<Session>,
    reader: ResponseClient,
    memo: HeadMemo,
    /// The server has ended its side, or the connection broke.
    has_ended: bool,
    /// The server will read another request.
    stays: bool,
}

impl Link {
    /// Connects to the first of the addresses that takes a connection. A handshake of TLS comes with the
    /// first request.
    pub(super) fn open(
        client: &Client,
        io: &mut Epoll,
        addresses: &[SocketAddr],
        deadline: &mut Deadline<'_>,
    ) -> Result<Self, AskError> {
        let session = |config| Session::client(config, client.origin.bare_host());
        let tls = client.tls.as_ref().map(session).transpose();
        let tls = tls.map_err(|error| AskError::Tls(error.to_string()))?;
        let mut failure = AskError::NotReached;
        for &address in addresses {
            match connect(io, address, deadline)? {
                Ok(conn) => {
                    let (reader, memo) = (ResponseClient::new(), HeadMemo::new());
                    return Ok(Self { conn, tls, reader, memo, has_ended: false, stays: false });
                }
                Err(error) => failure = AskError::NotConnected(address, error),
            }
        }
        Err(failure)
    }

    /// Sends a request, and reads its answer, whose body has `most` bytes at most.
    pub(super) fn exchange(
        &mut self,
        io: &mut Epoll,
        mut request: Vec<u8>,
        head_request: bool,
        most: usize,
        deadline: &mut Deadline<'_>,
    ) -> Result<Answer, AskError> {
        let out = io.outbox(self.conn);
        match &mut self.tls {
            // In the first exchange this begins the handshake, and the request follows it.
            Some(tls) => tls.send(&request, out),
            None => out.append(&mut request),
        }
        let pending = PendingRequest { head_request, capture: Capture::Whole };
        let (mut plain, mut body) = (Vec::new(), Vec::new());
        let mut response = None;
        let response = await_events(io, deadline, |io, event| {
            plain.clear();
            self.hear(io, event, &mut plain)?;
            match response {
                None => response = self.read(pending, &plain, most, &mut body)?,
                // What nobody asked for belongs to nothing.
                Some(_) => self.has_ended |= !plain.is_empty(),
            }
            Ok(response)
        })?;
        self.stays = response.keep_alive;
        let mut fields = Vec::new();
        self.reader.each_header(|name, value| {
            fields.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
        });
        Ok(Answer { status: response.status, fields, body })
    }

    /// Takes an event. The bytes that it brings are appended to `plain`, without TLS.
    fn hear(&mut self, io: &mut Epoll, event: Event, plain: &mut Vec<u8>) -> Result<(), AskError> {
        match event {
            Event::Received { conn, data, .. } if conn == self.conn => match &mut self.tls {
                None => plain.extend_from_slice(io.bytes(data)),
                Some(tls) => {
                    let received = tls.receive(io.bytes(data), plain);
                    // The answer of a handshake, or an alert.
                    tls.transmit(io.outbox(conn));
                    let received = received.map_err(|error| AskError::Tls(error.to_string()))?;
                    self.has_ended |= received.closed;
                }
            },
            Event::Closed { conn, .. } if conn == self.conn => self.has_ended = true,
            Event::Failed { conn, error, .. } if conn == self.conn => {
                self.has_ended = true;
                return Err(AskError::Broken(error));
            }
            // Those of an address that was given up.
            _ => {}
        }
        Ok(())
    }

    /// Reads on in the answer; returns the response when it is whole.
    fn read(
        &mut self,
        pending: PendingRequest,
        mut plain: &[u8],
        most: usize,
        body: &mut Vec<u8>,
    ) -> Result<Option<Response>, AskError> {
        // The reader keeps a part of a long body: what it has kept is taken from it each time.
        let mut part = Vec::new();
        let next = self.reader.next_into(&Limits::default(), &mut self.memo, pending, &mut plain, &mut part);
        body.append(&mut part);
        if body.len() > most {
            return Err(AskError::TooLarge(most));
        }
        match next.map_err(AskError::NotHttp)? {
            Some(response) => {
                self.has_ended |= !plain.is_empty();
                Ok(Some(response))
            }
            None if self.has_ended => match self.reader.finish() {
                Ok(Some(response)) => Ok(Some(response)),
                _ => Err(AskError::Closed),
            },
            None => Ok(None),
        }
    }

    /// Returns `true` if another request may follow.
    pub(super) const fn is_reusable(&self) -> bool {
        self.stays && !self.has_ended
    }

    /// Returns the connection unless the server has ended it since the last exchange.
    pub(super) fn still_open(mut self, io: &mut Epoll) -> Option<Self> {
        io.wait(Wait { until: Nanos::ZERO, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        let mut unasked = Vec::new();
        while let Some(event) = io.next_event() {
            self.has_ended |= self.hear(io, event, &mut unasked).is_err();
        }
        if self.has_ended || !unasked.is_empty() {
            self.close(io);
            return None;
        }
        Some(self)
    }

    /// Ends the connection. Nothing of it is left to be sent.
    pub(super) fn close(self, io: &mut Epoll) {
        io.close(self.conn, Close::Now);
        io.flush();
    }
}

/// Connects to one address; the inner error is that of this address, another may do.
fn connect(
    io: &mut Epoll,
    address: SocketAddr,
    deadline: &mut Deadline<'_>,
) -> Result<Result<ConnId, SystemError>, AskError> {
    let conn = match io.connect(&Endpoint::Tcp(address), &SocketOptions::default()) {
        Ok(conn) => conn,
        Err(error) => return Ok(Err(error)),
    };
    let connected = await_events(io, deadline, |_, event| {
        Ok(match event {
            Event::Connected { conn: id, .. } if id == conn => Some(Ok(conn)),
            Event::ConnectFailed { conn: id, error, .. } if id == conn => Some(Err(error)),
            _ => None,
        })
    });
    connected.map_err(|error| {
        io.close(conn, Close::Now);
        match error {
            AskError::Late => AskError::NotReached,
            other => other,
        }
    })
}

/// Passes events to `take` until it has found something, and then those that are there as well: one of them
/// may be the end of the connection.
fn await_events<T>(
    io: &mut Epoll,
    deadline: &mut Deadline<'_>,
    mut take: impl FnMut(&mut Epoll, Event) -> Result<Option<T>, AskError>,
) -> Result<T, AskError> {
    loop {
        io.flush();
        let now = io.now();
        if deadline.is_over(now) {
            return Err(AskError::Late);
        }
        let until = now + deadline.left(now).min(STOP_POLL);
        io.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        let mut found = None;
        while let Some(event) = io.next_event() {
            found = take(io, event)?.or(found);
        }
        if let Some(found) = found {
            return Ok(found);
        }
    }
}
