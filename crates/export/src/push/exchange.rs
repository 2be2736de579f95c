//! One request to a receiver and its response, on a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::Nanos;
use plimsoll_driver::resolve::{Family, resolve};
use plimsoll_driver::{Backend, Close, ConnId, Endpoint, Event, Open, SocketOptions, Wait};
use plimsoll_wire::http1::{Capture, HeadMemo, Limits, PendingRequest, Response, ResponseClient};
use plimsoll_wire::tls::{ClientConfig, Session};

use super::{GRACE, Receiver};
use crate::otlp;

/// A stop is noticed within this time.
const STOP_POLL: Nanos = Nanos::from_millis(50);
/// Bytes of a reply that are read: a few suffice to say what was not taken.
const REPLY_BYTES: usize = 64 * 1024;

/// Sends requests to a receiver.
pub(super) struct Exchange<O> {
    pub(super) open: O,
    pub(super) receiver: Receiver,
    pub(super) tls: Option<ClientConfig>,
    /// Set when the run has ended: then a request that is not the last one is given up after [`GRACE`].
    pub(super) stop: Arc<AtomicBool>,
}

/// An error of an exchange with one address.
enum Trouble {
    /// There is no connection: another address may do.
    NotConnected(String),
    Other(String),
}

impl<O: Open> Exchange<O> {
    /// Sends a request and waits for its response, no longer than `limit`.
    ///
    /// # Errors
    /// The reason why the receiver did not take it, in one line.
    pub(super) fn post(&self, body: &[u8], limit: Nanos, last: bool) -> Result<(), String> {
        let Receiver { host, port, .. } = &self.receiver;
        let addresses = resolve(host, *port, Family::Any).map_err(|error| error.to_string())?;
        let mut io = self.open.open().map_err(|error| error.to_string())?;
        let mut patience = Deadline { until: io.now() + limit, stop: (!last).then_some(&*self.stop) };
        let mut trouble = "the receiver has no address".to_owned();
        for address in addresses {
            match self.post_to(&mut io, &Endpoint::Tcp(address), body, &mut patience) {
                Ok((response, reply)) => return taken(response.status, &reply),
                Err(Trouble::Other(error)) => return Err(error),
                Err(Trouble::NotConnected(error)) => {
                    trouble = format!("cannot connect to {address}: {error}");
                }
            }
        }
        Err(trouble)
    }

    fn post_to(
        &self,
        io: &mut O::Backend,
        endpoint: &Endpoint,
        body: &[u8],
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
        let request = self.request(body);
        let (reader, memo, reply) = (ResponseClient::new(), HeadMemo::new(), Vec::new());
        let mut talk = Talk { conn, tls, request, reader, memo, reply, connected: false };
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

    fn request(&self, body: &[u8]) -> Vec<u8> {
        let Receiver { authority, path, headers, .. } = &self.receiver;
        let (kind, length) = (otlp::CONTENT_TYPE, body.len());
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: {authority}\r\nuser-agent: plimsoll\r\nconnection: close\r\n\
             content-type: {kind}\r\ncontent-length: {length}\r\n"
        )
        .into_bytes();
        for (name, value) in headers {
            request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        request
    }
}

/// Checks that a receiver took a request completely, by its status and its reply.
fn taken(status: u16, reply: &[u8]) -> Result<(), String> {
    if !(200..300).contains(&status) {
        return Err(format!("the receiver answered {status}"));
    }
    match otlp::rejected(reply) {
        Some((points, message)) => {
            Err(format!("the receiver rejected {points} points: {}", message.escape_debug()))
        }
        None => Ok(()),
    }
}

/// The end of a wait.
struct Deadline<'a> {
    until: Nanos,
    /// Set when the run ends; `None` if the end is known already.
    stop: Option<&'a AtomicBool>,
}

impl Deadline<'_> {
    fn is_over(&mut self, now: Nanos, connected: bool) -> Option<Trouble> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.until = self.until.min(now + GRACE);
            self.stop = None;
        }
        let what = if connected { "gave no answer in time" } else { "was not reached in time" };
        (now >= self.until).then(|| Trouble::Other(format!("the receiver {what}")))
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
                _ => Err(Trouble::Other("the receiver closed the connection without a response".to_owned())),
            },
            Event::Failed { conn, error, .. } if conn == self.conn => Err(Trouble::Other(error.to_string())),
            _ => Ok(None),
        }
    }

    fn read(&mut self, mut plain: &[u8]) -> Result<Option<Response>, Trouble> {
        let owed = PendingRequest { head_request: false, capture: Capture::Body };
        let next =
            self.reader.next_into(&Limits::default(), &mut self.memo, owed, &mut plain, &mut self.reply);
        if self.reply.len() > REPLY_BYTES {
            return Err(Trouble::Other("the receiver answers with more than it should".to_owned()));
        }
        next.map_err(|error| Trouble::Other(format!("the receiver speaks no HTTP: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_a_partial_success_are_told() {
        assert_eq!(taken(200, b""), Ok(()));
        assert_eq!(taken(503, b""), Err("the receiver answered 503".to_owned()));
        // partial_success { rejected_data_points: 3, error_message: "no" }
        let partial = b"\x0a\x06\x08\x03\x12\x02no";
        assert_eq!(taken(200, partial), Err("the receiver rejected 3 points: no".to_owned()));
        // A warning alone is not a rejection.
        assert_eq!(taken(200, b"\x0a\x04\x12\x02no"), Ok(()));
    }
}
