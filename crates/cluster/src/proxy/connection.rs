//! One connection through a link.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use rustix::net::connect_unspec;

use super::link::{Link, STACK};

/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// Pieces that wait to be written: the buffer of a slow link in each direction.
const PIECES: usize = 64;

/// Both sides of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    client: TcpStream,
    /// `None` while there is none: the link is cut, or the server's side was closed.
    server: Mutex<Option<TcpStream>>,
}

/// An event in one direction of a connection, in the order received.
enum Passing {
    Bytes(Vec<u8>),
    /// The sender has closed its side.
    End,
    /// The sender's connection broke.
    Break,
}

impl Connection {
    /// Connects a client to the server, as soon as the link lets it. One that is half open from its beginning
    /// has no server.
    pub(super) fn begin(
        client: TcpStream,
        to: SocketAddr,
        link: &Arc<Link>,
        half_open: bool,
    ) -> io::Result<Arc<Self>> {
        client.set_nodelay(true)?;
        let connection = Arc::new(Self { client, server: Mutex::new(None) });
        let (own, link) = (connection.clone(), link.clone());
        spawn(move || {
            if half_open {
                // The client's bytes are discarded. This ends when the client or the link does.
                own.swallow();
            } else if link.await_open() {
                own.carry(to, &link);
            }
        })?;
        Ok(connection)
    }

    /// Carries bytes in both directions until both have ended.
    fn carry(self: &Arc<Self>, to: SocketAddr, link: &Arc<Link>) {
        let server = match TcpStream::connect(to) {
            Ok(server) => server,
            // The nearest thing to the refusal of a server that is not there.
            Err(_) => return self.reset(),
        };
        // Without it, small messages would merely be delayed.
        let _ = server.set_nodelay(true);
        let Ok((up, down)) = server.try_clone().and_then(|up| Ok((up, server.try_clone()?))) else {
            return self.reset();
        };
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        let Ok((from_client, to_client)) =
            self.client.try_clone().and_then(|one| Ok((one, self.client.try_clone()?)))
        else {
            return self.reset();
        };
        let (own, its_link) = (self.clone(), link.clone());
        let back = spawn(move || own.pass(down, to_client, &its_link));
        if back.is_err() {
            return self.reset();
        }
        self.pass(from_client, up, link);
    }

    /// Passes bytes from one side to the other, on this thread and one more.
    fn pass(self: &Arc<Self>, mut from: TcpStream, to: TcpStream, link: &Arc<Link>) {
        let (send, receive) = sync_channel(PIECES);
        let (own, its_link) = (self.clone(), link.clone());
        if spawn(move || own.write(to, &receive, &its_link)).is_err() {
            return self.reset();
        }
        let mut last_due = Nanos::ZERO;
        let mut buffer = vec![0; PIECE];
        loop {
            let passing = match from.read(&mut buffer) {
                Ok(0) => Passing::End,
                Ok(length) => Passing::Bytes(buffer[..length].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => Passing::Break,
            };
            let is_last = !matches!(passing, Passing::Bytes(_));
            let link_impairment = link.link_impairment();
            let spread = (link_impairment.spread.0 as f64 * link.draw()) as u64;
            // A later piece must not be delivered before an earlier one: it is one stream.
            last_due = last_due.max(clock::monotonic() + link_impairment.delay + Nanos(spread));
            // The channel fails once the writer has gone.
            if !hand_on(&send, last_due, passing) || is_last {
                return;
            }
        }
    }

    /// Writes the pieces that are due.
    fn write(&self, mut to: TcpStream, receive: &Receiver<(Nanos, Passing)>, link: &Link) {
        let mut free_at = Nanos::ZERO;
        for (due, passing) in receive {
            if !link.await_due(due) {
                return;
            }
            match passing {
                Passing::Bytes(bytes) => {
                    let mut rest = bytes.as_slice();
                    while !rest.is_empty() {
                        let (portion, takes) = link.link_impairment().portion(rest.len());
                        // The last of its bits arrives when the line has carried all of them.
                        free_at = free_at.max(clock::monotonic()) + takes;
                        if takes > Nanos::ZERO && !link.await_due(free_at) {
                            return;
                        }
                        if to.write_all(&rest[..portion]).is_err() {
                            // The sender notices at its next bytes.
                            return self.broke();
                        }
                        rest = &rest[portion..];
                    }
                }
                // The connection may have ended by itself meanwhile.
                Passing::End => return drop(to.shutdown(Shutdown::Write)),
                Passing::Break => return self.broke(),
            }
        }
    }

    /// One side broke: so does the other, unless it is half open, of which it hears nothing.
    fn broke(&self) {
        if self.server.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.reset();
        }
    }

    /// Resets both sides.
    pub(super) fn reset(&self) {
        reset(&self.client);
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reset(&server);
        }
    }

    /// Closes the server's side. The client's stays open, now and later.
    pub(super) fn half_open(&self) {
        if let Some(server) = self.server.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reset(&server);
        }
    }

    fn swallow(&self) {
        let mut buffer = vec![0; PIECE];
        while (&self.client).read(&mut buffer).is_ok_and(|length| length > 0) {}
    }
}

/// Hands a piece on; returns `false` if the writer has gone.
fn hand_on(send: &SyncSender<(Nanos, Passing)>, due: Nanos, passing: Passing) -> bool {
    send.send((due, passing)).is_ok()
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name("link".to_owned()).stack_size(STACK).spawn(work).map(|_| ())
}

/// Resets a connection: connecting it to nowhere does that on Linux, even if its descriptor is shared.
pub(super) fn reset(stream: &TcpStream) {
    // The call fails if the connection was reset before.
    let _ = connect_unspec(stream);
}
