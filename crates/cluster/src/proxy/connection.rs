//! One connection through a link.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use rustix::net::connect_unspec;

use super::link::{Link, STACK};

/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// Pieces that wait to be written: what a slow link holds of each direction.
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
                // What the client sends gets nowhere. It ends when the client does, or the link.
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
            // As nearly as can be what a server that is not there says.
            Err(_) => return self.reset(),
        };
        // Without it small messages would only be later.
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

    /// Passes what comes from one side to the other, on this thread and one more.
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
            // What comes later is not delivered earlier: it is one stream.
            last_due = last_due.max(clock::monotonic() + link_impairment.delay + Nanos(spread));
            // The writer has gone when nobody takes it any more.
            if !hand_on(&send, last_due, passing) || is_last {
                return;
            }
        }
    }

    /// Writes what is due.
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
                            // Who still sends hears of it when the next bytes come.
                            return self.broke();
                        }
                        rest = &rest[portion..];
                    }
                }
                // It may have ended by itself meanwhile.
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

    /// Closes the server's side. The client is told nothing, now and later.
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

/// Hands on what has come; whether somebody takes it.
fn hand_on(send: &SyncSender<(Nanos, Passing)>, due: Nanos, passing: Passing) -> bool {
    send.send((due, passing)).is_ok()
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name("link".to_owned()).stack_size(STACK).spawn(work).map(|_| ())
}

/// Resets a connection: to connect it to nowhere does that on Linux, whoever else has its descriptor.
pub(super) fn reset(stream: &TcpStream) {
    // It fails for one that was reset before.
    let _ = connect_unspec(stream);
}
