//! A hostile server on a port of its own.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::ServerConfig;

use super::wire::{Wire, config, gone};
use super::{Act, Case, Speaks, Suite};

/// The longest time for which an end of ours is followed by reading on.
const LINGER: Duration = Duration::from_secs(30);

/// A running server. It takes no more connections when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

/// The acts on each connection.
struct Script {
    case: Case,
    speaks: Speaks,
    tls: Option<Arc<ServerConfig>>,
    good: Vec<Act>,
    good_connections: u32,
}

impl Server {
    /// Listens on a free port of 127.0.0.1, and plays the case there.
    ///
    /// # Errors
    /// If there is no such port, or rustls refuses the handshake.
    pub fn start(suite: &Suite, case: &Case) -> io::Result<Self> {
        let script = Arc::new(Script {
            case: case.clone(),
            speaks: suite.speaks,
            tls: case.handshake.as_ref().map(config).transpose()?,
            good: suite.good.clone(),
            good_connections: suite.good_connections,
        });
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = Self { address: listener.local_addr()?, over: Arc::default() };
        let over = Arc::clone(&server.over);
        std::thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().map_while(Result::ok)) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let script = Arc::clone(&script);
                // The client has seen enough, or hears of its mistake in the result of the run.
                std::thread::spawn(move || drop(script.serve(stream, number)));
            }
        });
        Ok(server)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts. If that fails, the thread has ended already.
        let _ = TcpStream::connect(self.address);
    }
}

impl Script {
    fn serve(&self, stream: TcpStream, number: u32) -> io::Result<()> {
        let mut wire = Wire::new(stream, self.speaks)?;
        if number < self.good_connections {
            return play(&mut wire, &self.good);
        }
        if let (Some(handshake), Some(config)) = (&self.case.handshake, &self.tls)
            && let Err(error) = wire.shake(handshake, config)
        {
            // Our alert would be lost with a connection that is closed before all bytes are read.
            wire.close()?;
            wire.linger(LINGER)?;
            return Err(error);
        }
        play(&mut wire, &self.case.acts)
    }
}

/// Carries out the acts.
fn play(wire: &mut Wire, acts: &[Act]) -> io::Result<()> {
    let first = acts.iter().position(|act| matches!(act, Act::Await)).unwrap_or(acts.len());
    let mut from = 0;
    loop {
        for act in &acts[from..] {
            perform(wire, act)?;
        }
        if !matches!(acts.last(), Some(Act::Again)) {
            return Ok(());
        }
        from = first;
    }
}

fn perform(wire: &mut Wire, act: &Act) -> io::Result<()> {
    match act {
        Act::Await => wire.await_request(),
        Act::Send(bytes) => wire.send(bytes),
        Act::Below(bytes) => wire.send_below(bytes),
        Act::Frame(frame) => {
            let bytes = frame.bytes(wire.stream_id);
            wire.send(&bytes)
        }
        Act::Part(frame, length) => {
            let bytes = frame.bytes(wire.stream_id);
            wire.send(&bytes[..*length])
        }
        Act::Record(kind, content) => wire.record(*kind, content),
        Act::UpdateKeys => wire.update_keys(),
        Act::Repeat(times, act) => (0..*times).try_for_each(|_| perform(wire, act)),
        Act::Drip(bytes, pause) => bytes.iter().try_for_each(|byte| {
            wire.send(&[*byte])?;
            if pause.is_zero() { Ok(()) } else { wire.pause(*pause) }
        }),
        Act::Again => Ok(()),
        Act::Close => {
            wire.close()?;
            wire.linger(LINGER)
        }
        Act::Notify => {
            wire.notify()?;
            wire.close()?;
            wire.linger(LINGER)
        }
        Act::Reset => {
            wire.reset()?;
            Err(gone())
        }
        Act::Hold => wire.linger(LINGER),
    }
}
