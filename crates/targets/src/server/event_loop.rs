//! The loop of one thread of a server: waits, takes in events, sends replies that are due, and flushes.

use plimsoll_core::Nanos;
use plimsoll_driver::{Backend, Chunk, Close, ConnId, Event, ListenerId, Wait};

use super::output::Output;
use crate::server_threads::Stopper;

/// A stop is noticed within this time.
pub(crate) const STOP_POLL: Nanos = Nanos::from_millis(20);
/// Replies of one flush: bounds how long the first of them waits for the last. At 1 µs each the wait is of
/// the order of a reply's time through the kernel, and the system call of the flush is shared by enough.
pub(crate) const FLUSH_REPLIES: u32 = 64;

/// End of a loop, and size of its passes.
#[derive(Debug)]
pub(crate) struct LoopBounds {
    pub(crate) stopper: Stopper,
    pub(crate) ends_at: Nanos,
    /// Events of one pass: bounds how long replies that are due wait behind reading.
    pub(crate) pass_events: u32,
}

impl LoopBounds {
    /// Bounds of a loop that began at `start`.
    pub(crate) fn new(stopper: Stopper, start: Nanos, duration: Option<Nanos>, pass_events: u32) -> Self {
        Self { stopper, ends_at: duration.map_or(Nanos::MAX, |duration| start + duration), pass_events }
    }

    /// Returns `true` if the server has been stopped, or its time is over.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.stopper.is_stopped() || now >= self.ends_at
    }
}

/// One thread of a server, which [`run`](Self::run) drives. A trait for types and no `dyn` value, so that the
/// sink pays for no indirect call.
pub(crate) trait EventLoop {
    /// Backend of its connections.
    type Backend: Backend;

    /// The output, with the backend.
    fn output(&mut self) -> &mut Output<Self::Backend>;

    /// The end of the loop, and the size of its passes.
    fn bounds(&self) -> &LoopBounds;

    /// Takes in a connection of this listener.
    fn accepted(&mut self, listener: ListenerId, conn: ConnId);

    /// Reads bytes, which came `at` this time.
    fn received(&mut self, conn: ConnId, at: Nanos, data: Chunk);

    /// The client sends nothing more.
    fn closed(&mut self, conn: ConnId);

    /// Forgets a connection, which is gone.
    fn forget(&mut self, conn: ConnId);

    /// Returns the latest time of the next pass; [`Nanos::MAX`] if only events call for one.
    fn next_due(&mut self, now: Nanos) -> Nanos;

    /// Sends replies that are due. Returns `true` if there are more.
    fn release(&mut self) -> bool;

    /// Hands everything to the kernel, and ends the connections whose time has come.
    fn flush(&mut self);

    /// Returns `true` if it has stood still from `now` on for a while.
    fn stand_still(&mut self, now: Nanos) -> bool {
        let _ = now;
        false
    }

    /// Serves until the server is stopped or its time is over.
    fn run(&mut self) {
        let mut is_cut_short = false;
        loop {
            let now = self.output().backend.now();
            if self.bounds().is_over(now) {
                return;
            }
            if self.stand_still(now) {
                continue;
            }
            let until = match is_cut_short {
                true => now,
                false => (now + STOP_POLL).min(self.next_due(now)).min(self.bounds().ends_at),
            };
            self.output().backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
            is_cut_short = self.pass();
        }
    }

    /// Takes in the events that are there, and sends replies that are due. Returns `true` if there may be
    /// more to do without waiting.
    fn pass(&mut self) -> bool {
        let mut events = 0;
        let most = self.bounds().pass_events;
        while events < most
            && let Some(event) = self.output().backend.next_event()
        {
            match event {
                Event::Accepted { listener, conn, .. } => self.accepted(listener, conn),
                Event::Received { conn, at, data, .. } => self.received(conn, at, data),
                Event::Closed { conn, .. } => self.closed(conn),
                Event::Failed { conn, .. } => {
                    self.output().backend.close(conn, Close::Now);
                    self.forget(conn);
                }
                // A server connects nowhere.
                Event::Connected { .. } | Event::ConnectFailed { .. } => {}
            }
            if self.output().replies >= FLUSH_REPLIES {
                self.flush();
            }
            events += 1;
        }
        let has_more = self.release();
        self.flush();
        has_more || events == most
    }
}
