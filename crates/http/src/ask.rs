//! Requests to a server, and its answers.

mod deadline;
mod error;
mod link;
mod request;

use core::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use plimsoll_driver::epoll::Epoll;
use plimsoll_system::{
    clock,
    resolve::{Family, resolve},
};
use plimsoll_wire::tls::{ClientConfig, ClientOptions, TlsConfigError};

pub use deadline::Deadline;
pub use error::AskError;
pub use request::{Origin, Request};

use crate::open;
use deadline::STOP_POLL;
use link::Link;

/// A server's answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names and values of the header fields, in the order of the head.
    pub fields: Vec<(String, String)>,
    /// The payload, without the framing of chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the first field of this name, in any case of letters.
    pub fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A client of one server, with a connection for each request: one that was kept may be that of a server
/// which has died.
#[derive(Clone, Debug)]
pub struct Client {
    origin: Origin,
    tls: Option<ClientConfig>,
    /// The most bytes of an answer's body.
    most: usize,
}

impl Client {
    /// Creates a client of `origin`, which takes answers of `most` bytes at most. Certificates are judged by
    /// the authorities of the system.
    ///
    /// # Errors
    /// The origin is to be asked over TLS, and the system has no authorities.
    pub fn new(origin: Origin, most: usize) -> Result<Self, TlsConfigError> {
        let tls = origin.is_secure().then(|| ClientConfig::new(&ClientOptions::default())).transpose()?;
        Ok(Self { origin, tls, most })
    }

    /// Creates a client that asks without TLS.
    pub const fn plain(origin: Origin, most: usize) -> Self {
        Self { origin, tls: None, most }
    }

    /// Creates a client that asks over TLS with these settings.
    pub const fn with_tls(origin: Origin, most: usize, tls: ClientConfig) -> Self {
        Self { origin, tls: Some(tls), most }
    }

    /// Sends a request and waits for the whole of its answer. Blocks until the deadline at the latest.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn ask(&self, request: &Request<'_>, mut deadline: Deadline<'_>) -> Result<Answer, AskError> {
        let bytes = request.bytes(&self.origin, false)?;
        let addresses = self.addresses(&mut deadline)?;
        let mut io = open().map_err(AskError::System)?;
        let mut link = Link::open(self, &mut io, &addresses, &mut deadline)?;
        let answer = link.exchange(&mut io, bytes, request.is_head(), self.most, &mut deadline);
        link.close(&mut io);
        answer
    }

    /// Makes it a client that keeps its connection, for many requests in a row from one thread.
    pub const fn keeping(self) -> KeptClient {
        KeptClient { client: self, io: None, link: None }
    }

    /// The addresses of the server. A name is resolved by a thread of its own, which is left alone when it
    /// takes too long: `getaddrinfo` cannot be interrupted.
    fn addresses(&self, deadline: &mut Deadline<'_>) -> Result<Vec<SocketAddr>, AskError> {
        let (host, port) = (self.origin.host().to_owned(), self.origin.port());
        if self.origin.is_address() {
            return resolve(&host, port, Family::Any).map_err(AskError::NoAddress);
        }
        let (tell, told) = channel();
        // It is no matter if nobody waits for the result any more.
        let work = move || drop(tell.send(resolve(&host, port, Family::Any)));
        Builder::new()
            .name("resolver".to_owned())
            .spawn(work)
            .map_err(|error| AskError::System(error.into()))?;
        loop {
            let now = clock::monotonic();
            if deadline.is_over(now) {
                return Err(AskError::NotReached);
            }
            let poll = deadline.left(now).min(STOP_POLL);
            match told.recv_timeout(Duration::from_nanos(poll.0)) {
                Ok(found) => return found.map_err(AskError::NoAddress),
                Err(RecvTimeoutError::Timeout) => {}
                // The thread has panicked, and said so.
                Err(RecvTimeoutError::Disconnected) => return Err(AskError::NotReached),
            }
        }
    }
}

/// A client of one server that keeps its connection from one request to the next. A connection that the
/// server has closed meanwhile is replaced; a request that was sent is not sent again.
pub struct KeptClient {
    client: Client,
    /// Opened by the first request, on the thread that asks.
    io: Option<Epoll>,
    link: Option<Link>,
}

impl std::fmt::Debug for KeptClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_connected = self.link.is_some();
        f.debug_struct("KeptClient")
            .field("client", &self.client)
            .field("is_connected", &is_connected)
            .finish()
    }
}

impl KeptClient {
    /// Sends a request and waits for the whole of its answer. Blocks until the deadline at the latest.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn ask(&mut self, request: &Request<'_>, mut deadline: Deadline<'_>) -> Result<Answer, AskError> {
        let bytes = request.bytes(&self.client.origin, true)?;
        let client = &self.client;
        let io = match &mut self.io {
            Some(io) => io,
            io => io.insert(open().map_err(AskError::System)?),
        };
        let mut link = match self.link.take().and_then(|link| link.still_open(io)) {
            Some(link) => link,
            None => Link::open(client, io, &client.addresses(&mut deadline)?, &mut deadline)?,
        };
        let answer = link.exchange(io, bytes, request.is_head(), client.most, &mut deadline);
        if answer.is_ok() && link.is_reusable() {
            self.link = Some(link);
        } else {
            link.close(io);
        }
        answer
    }
}
