//! A backend with idle connections that goes from one run of a worker thread to the next.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Close};

use crate::connection::{Client, Conn, State};
use crate::worker::{Worker, wait_for_one};

/// A worker's backend between two runs, and the connections on it.
pub(crate) struct Kept<B> {
    pub(crate) io: B,
    pub(crate) conns: Vec<Conn>,
}

impl<B> Kept<B> {
    /// A backend without connections.
    pub(crate) const fn new(io: B) -> Self {
        Self { io, conns: Vec::new() }
    }

    /// Lets none of the connections be taken over: their addresses have other numbers than in the next run,
    /// which begins with those of the start of this one.
    pub(crate) fn retire(&mut self) {
        for conn in self.conns.iter_mut().filter(|conn| conn.state != State::Free) {
            conn.state = State::Draining;
        }
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Takes over connections of the run before, which was of the same targets, as if they had been opened
    /// in preparation: those that are idle, as many as there may be. The others are closed. It precedes
    /// [`prepare`](Self::prepare), which opens those that are missing.
    pub(crate) fn take_over(&mut self, conns: Vec<Conn>) {
        let now = self.io.now();
        // A plan that opens connections at a pace, or one per request, wants them new.
        let keeps = self.plan.connections.keep_alive && !self.dialing.ramp.is_paced();
        for conn in conns.into_iter().filter(|conn| conn.state != State::Free) {
            let pool = self.pools.get_mut(conn.pool as usize);
            let is_fresh = !matches!(&conn.client, Client::WebSocket(socket) if !socket.is_fresh());
            let idle = conn.state == State::Open && conn.requests.is_empty() && is_fresh;
            let Some(pool) = pool.filter(|pool| keeps && idle && pool.open < pool.max) else {
                self.io.close(conn.id, Close::Now);
                continue;
            };
            pool.target_addresses.take_at(conn.target_address);
            pool.open += 1;
            self.dialing.note_connecting();
            let record = &mut self.records.measured.connections;
            record.peak_open = record.peak_open.max(self.dialing.open());
            record.kept += 1;
            if let Some(tls) = &conn.tls {
                self.records.count_tls(tls.session.version());
            }
            let slot = conn.id.slot();
            if self.conns.len() <= slot {
                self.conns.resize_with(slot + 1, Conn::free);
            }
            // Timers, lists and flushes are those of another worker.
            self.conns[slot] = Conn {
                armed: Nanos::MAX,
                listed: false,
                mark: (0, 0),
                fills: false,
                barred: false,
                since: now,
                served_before: conn.served,
                ..conn
            };
            self.put_into_service(slot as u32, now);
        }
        self.flush();
        // Servers may have closed some of them meanwhile.
        self.io.wait(wait_for_one(now));
        self.handle_events();
        self.flush();
    }
}
