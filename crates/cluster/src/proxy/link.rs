//! One link: its listener, its connections, and its impairments.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::Duration;

use plimsoll_core::{Nanos, Random};
use plimsoll_system::clock;

use super::connection::{Connection, reset};
use crate::fault::Impairment;
use crate::link_impairment::LinkImpairment;

/// Stacks of the proxy's threads, in bytes: they have a buffer of 16 KiB on the heap, and little else.
pub(super) const STACK: usize = 128 << 10;

/// A link that serves.
#[derive(Debug)]
pub(super) struct Link {
    to: SocketAddr,
    state: Mutex<State>,
    /// Something about the state has changed.
    changed: Condvar,
    /// Draws of delays so far.
    draws: AtomicU64,
    seed: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The impairments in force, each with the number by which it is ended.
    impairments: Vec<(u64, Impairment)>,
    connections: Vec<Weak<Connection>>,
    closed: bool,
}

impl Link {
    /// Serves the connections of a listener.
    pub(super) fn serve(listener: TcpListener, to: SocketAddr, seed: u64) -> io::Result<Arc<Self>> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let link = Arc::new(Self { to, state, changed, draws: AtomicU64::new(0), seed });
        let served = link.clone();
        Builder::new().name("link".to_owned()).stack_size(STACK).spawn(move || {
            for accepted in listener.incoming() {
                if served.state().closed {
                    return;
                }
                // The client has gone, or descriptors have run out: the next accept may succeed.
                let Ok(client) = accepted else { continue };
                served.take(client);
            }
        })?;
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic with this lock leaves at most one list changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number from 0 up to below 1, another one each time.
    pub(super) fn draw(&self) -> f64 {
        Random::new(self.seed, self.draws.fetch_add(1, Ordering::Relaxed)).unit()
    }

    /// Takes up a new connection.
    fn take(self: &Arc<Self>, client: TcpStream) {
        let link_impairment = self.state().link_impairment();
        if link_impairment.resets || link_impairment.loss > 0.0 && self.draw() < link_impairment.loss {
            reset(&client);
            return;
        }
        let connection = Connection::begin(client, self.to, self, link_impairment.is_half_open);
        // Without threads or descriptors there is no connection: it was dropped, which closes it.
        let Ok(connection) = connection else { return };
        let mut state = self.state();
        state.connections.retain(|connection| connection.strong_count() > 0);
        state.connections.push(Arc::downgrade(&connection));
    }

    pub(super) fn begin(&self, number: u64, impairment: Impairment) {
        let mut state = self.state();
        state.impairments.push((number, impairment));
        let connections: Vec<Arc<Connection>> = state.connections.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        match impairment {
            Impairment::Reset => connections.iter().for_each(|connection| connection.reset()),
            Impairment::HalfOpen => connections.iter().for_each(|connection| connection.half_open()),
            _ => {}
        }
        self.changed.notify_all();
    }

    pub(super) fn end(&self, number: u64) {
        self.state().impairments.retain(|(of, _)| *of != number);
        self.changed.notify_all();
    }

    /// Ends it with its connections. `port` is that of its listener.
    pub(super) fn close(&self, port: u16) {
        let mut state = self.state();
        state.closed = true;
        let connections: Vec<Arc<Connection>> = state.connections.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        connections.iter().for_each(|connection| connection.reset());
        self.changed.notify_all();
        // The listener's thread notices when a connection comes. If none can be made, it ends with the
        // process.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    }

    /// Returns the impairments in force, combined.
    pub(super) fn link_impairment(&self) -> LinkImpairment {
        self.state().link_impairment()
    }

    /// Waits until nothing is cut; whether the link still serves.
    pub(super) fn await_open(&self) -> bool {
        let mut state = self.state();
        while state.link_impairment().is_cut && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.closed
    }

    /// Waits until an instant, and until nothing is cut; whether the link still serves.
    pub(super) fn await_due(&self, due: Nanos) -> bool {
        let mut state = self.state();
        loop {
            let now = clock::monotonic();
            if state.closed || now >= due {
                break;
            }
            let left = Duration::from_nanos(due.since(now).0);
            let (next, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        drop(state);
        self.await_open()
    }
}

impl State {
    fn link_impairment(&self) -> LinkImpairment {
        LinkImpairment::of(self.impairments.iter().map(|(_, impairment)| *impairment))
    }
}
