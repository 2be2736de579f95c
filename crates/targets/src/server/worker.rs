//! One thread of a server whose protocol is a [`Handler`].

use std::collections::BTreeMap;

use plimsoll_core::Nanos;
use plimsoll_driver::{
    Backend, Chunk, Close, ConnId, Endpoint, KernelBackend, ListenerId, Open, OpenEpoll, OpenUring,
};
use plimsoll_wire::tls::Session;

use super::draining::Draining;
use super::event_loop::{EventLoop, FLUSH_REPLIES, LoopBounds};
use super::output::{Channel, Output, Sends};
use super::{Bounds, Fate, Handler, LoopCounts, Outgoing};
use crate::budget::{FREE_BYTES, Part};
use crate::start_error::StartError;
use crate::table::Table;

/// Listening sockets of one thread, of a backend whose type is hidden.
pub(super) trait Listening {
    /// Serves until the server is stopped, or its time is over, which counts from `start`.
    fn serve(self: Box<Self>, handler: &mut dyn Handler, bounds: &Bounds, start: Nanos) -> LoopCounts;
}

/// Opens a backend and listens on these endpoints. Gives them with the ports that were found.
pub(super) fn listen(
    backend: KernelBackend,
    place: &[Endpoint],
    reuse_port: bool,
) -> Result<(Box<dyn Listening>, Vec<Endpoint>), StartError> {
    fn boxed<O: Open<Backend: 'static>>(
        open: &O,
        place: &[Endpoint],
        reuse_port: bool,
    ) -> Result<(Box<dyn Listening>, Vec<Endpoint>), StartError> {
        let (sockets, found) = Sockets::open(open, place, reuse_port)?;
        Ok((Box::new(sockets), found))
    }
    match backend {
        KernelBackend::Epoll(options) => boxed(&OpenEpoll(options), place, reuse_port),
        KernelBackend::Uring(options) => boxed(&OpenUring(options), place, reuse_port),
    }
}

/// A backend with its listeners.
pub(crate) struct Sockets<B> {
    pub(crate) backend: B,
    pub(crate) listeners: Vec<ListenerId>,
}

impl<B: Backend> Sockets<B> {
    /// Opens a backend and listens on these endpoints. Gives them with the ports that were found.
    pub(crate) fn open<O: Open<Backend = B>>(
        open: &O,
        place: &[Endpoint],
        reuse_port: bool,
    ) -> Result<(Self, Vec<Endpoint>), StartError> {
        let mut backend = open.open().map_err(StartError::Open)?;
        let (mut listeners, mut found) = (Vec::new(), Vec::new());
        for endpoint in place {
            let (listener, at) = backend
                .listen(endpoint, reuse_port)
                .map_err(|error| StartError::Listen { endpoint: endpoint.clone(), error })?;
            listeners.push(listener);
            found.push(at);
        }
        Ok((Self { backend, listeners }, found))
    }
}

impl<B: Backend> Listening for Sockets<B> {
    fn serve(self: Box<Self>, handler: &mut dyn Handler, bounds: &Bounds, start: Nanos) -> LoopCounts {
        let options = &bounds.options;
        let counts = LoopCounts { accepted: vec![0; self.listeners.len()], ..LoopCounts::default() };
        let mut worker = Worker {
            bounds,
            of_loop: LoopBounds::new(options.stopper.clone(), start, options.duration, options.pass_events),
            output: Output::new(self.backend),
            listeners: self.listeners,
            handler,
            table: Table::default(),
            draining: Draining::default(),
            later: BTreeMap::new(),
            replies_for_later: 0,
            out: Outgoing::default(),
            plain: Vec::new(),
            counts,
            now: start,
        };
        worker.run();
        worker.leave()
    }
}

/// One connection.
#[derive(Debug)]
struct Peer {
    channel: Channel,
    /// Memory that it takes.
    part: Part,
    /// Bytes of that for requests that are not answered.
    held: usize,
    /// Replies for later.
    owed: u32,
    /// Set once it is to end with the last reply for later, and is read no more.
    is_deaf: bool,
    /// Set once it is to end with the next flush.
    ends: bool,
    /// Set while its handler does not write to it.
    is_paused: bool,
    /// Set while its unread bytes are looked at again and again.
    is_draining: bool,
}

impl Peer {
    fn new(channel: Channel) -> Self {
        Self {
            channel,
            part: Part::default(),
            held: 0,
            owed: 0,
            is_deaf: false,
            ends: false,
            is_paused: false,
            is_draining: false,
        }
    }
}

/// Times of sending of one flush, by connection.
#[derive(Debug)]
pub struct Flushed<'t> {
    sends: Sends,
    table: &'t mut Table<Peer>,
}

impl Flushed<'_> {
    /// Returns when the bytes were handed to the kernel that were written for this connection since the flush
    /// before.
    pub fn at(&mut self, conn: ConnId) -> Nanos {
        self.sends.to(self.table.get(conn).map(|peer| &peer.channel))
    }
}

/// One thread of a server.
struct Worker<'s, B> {
    bounds: &'s Bounds,
    of_loop: LoopBounds,
    output: Output<B>,
    listeners: Vec<ListenerId>,
    handler: &'s mut dyn Handler,
    table: Table<Peer>,
    /// Connections whose unread bytes are looked at again.
    draining: Draining,
    /// Replies for later, by their times and their numbers.
    later: BTreeMap<(Nanos, u64), (ConnId, Vec<u8>)>,
    /// Number of replies that have ever been for later.
    replies_for_later: u64,
    /// Replies to one connection.
    out: Outgoing,
    /// Decrypted bytes of the connection that is being read.
    plain: Vec<u8>,
    counts: LoopCounts,
    /// The time before the present pass.
    now: Nanos,
}

impl<B: Backend> EventLoop for Worker<'_, B> {
    type Backend = B;

    fn output(&mut self) -> &mut Output<B> {
        &mut self.output
    }

    fn bounds(&self) -> &LoopBounds {
        &self.of_loop
    }

    fn accepted(&mut self, listener: ListenerId, conn: ConnId) {
        let tls = match self.bounds.options.tls.as_ref().map(Session::server).transpose() {
            Ok(session) => session.map(Box::new),
            Err(_) => {
                self.counts.tls_errors += 1;
                return self.output.backend.close(conn, Close::Now);
            }
        };
        let index = self.listeners.iter().position(|of| *of == listener).unwrap_or_default();
        self.counts.accepted[index] += 1;
        self.table.insert(conn, Peer::new(Channel::new(conn, tls)));
        self.handler.accepted(conn, index);
    }

    fn received(&mut self, conn: ConnId, at: Nanos, data: Chunk) {
        if self.leaves_unread(conn) {
            return self.cut_off(conn);
        }
        let Some(peer) = self.table.get(conn).filter(|peer| !peer.ends && !peer.is_deaf) else { return };
        let bytes = self.output.backend.bytes(data);
        let Some(session) = &mut peer.channel.tls else {
            let fate = self.handler.received(conn, at, bytes, &mut self.out);
            self.hold_back(at);
            return self.follow(conn, fate, false);
        };
        self.plain.clear();
        let mut fate = Fate::GoesOn { held: peer.held };
        let received = session.receive(bytes, &mut self.plain);
        if received.as_ref().is_ok_and(|received| received.handshake_done_now) {
            self.handler.negotiated(conn, session.alpn(), &mut self.out);
        }
        if received.is_err() {
            // Only the alert remains to be sent.
            self.counts.tls_errors += 1;
            fate = Fate::Ends;
        } else if !self.plain.is_empty() {
            fate = self.handler.received(conn, at, &self.plain, &mut self.out);
            self.hold_back(at);
        }
        self.follow(conn, fate, false);
        if received.is_ok_and(|received| received.closed) {
            self.closed(conn);
        }
    }

    fn closed(&mut self, conn: ConnId) {
        let Some(peer) = self.table.get(conn).filter(|peer| !peer.ends) else { return };
        if self.handler.closed(conn) {
            return;
        }
        if peer.owed > 0 {
            peer.is_deaf = true;
        } else {
            self.part(conn, Close::AfterSend);
        }
    }

    fn forget(&mut self, conn: ConnId) {
        if let Some(mut peer) = self.table.remove(conn) {
            self.bounds.budget.release(&mut peer.part);
            self.handler.gone(conn);
        }
    }

    fn next_due(&mut self, now: Nanos) -> Nanos {
        self.now = now;
        let later = self.later.first_key_value().map_or(Nanos::MAX, |((due, _), _)| *due);
        self.handler.next_due(now).min(later).min(self.draining.next())
    }

    fn release(&mut self) -> bool {
        self.recall();
        if self.later.is_empty() && self.handler.next_due(self.now) == Nanos::MAX {
            return false;
        }
        let now = self.output.backend.now();
        while let Some((conn, fate)) = self.next_reply(now) {
            if self.leaves_unread(conn) {
                self.out.clear();
                self.cut_off(conn);
            } else {
                self.follow(conn, fate, true);
            }
            if self.output.replies >= FLUSH_REPLIES {
                self.flush();
            }
        }
        false
    }

    fn flush(&mut self) {
        if !self.output.is_waiting() {
            return;
        }
        if let Some(sends) = self.output.flush() {
            self.handler.flushed(&mut Flushed { sends, table: &mut self.table });
        }
        // Mostly empty, which takes no memory.
        let gone: Vec<ConnId> = self.output.close_all().collect();
        gone.into_iter().for_each(|conn| self.forget(conn));
    }
}

impl<B: Backend> Worker<'_, B> {
    /// Returns `true` if a client has left more unread than it may.
    fn leaves_unread(&mut self, conn: ConnId) -> bool {
        let most = self.bounds.options.unread_bytes;
        if self.output.backend.unsent(conn) <= most {
            return false;
        }
        // It may just not have been sent yet.
        self.flush();
        self.output.backend.unsent(conn) > most
    }

    /// Keeps the replies to requests that came `at` this time until the delay of the server is over.
    fn hold_back(&mut self, at: Nanos) {
        match self.bounds.options.delay {
            Nanos::ZERO => {}
            delay => self.out.hold_back(at + delay),
        }
    }

    /// Writes the next reply that is due, and gives its connection.
    fn next_reply(&mut self, now: Nanos) -> Option<(ConnId, Fate)> {
        while let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) {
            let (conn, reply) = first.remove();
            let Some(peer) = self.table.get(conn) else { continue };
            peer.owed -= 1;
            self.out.bytes.extend_from_slice(&reply);
            self.out.replies += 1;
            let is_last = peer.is_deaf && peer.owed == 0;
            return Some((conn, if is_last { Fate::Ends } else { Fate::GoesOn { held: peer.held } }));
        }
        self.handler.due(now, &mut self.out)
    }

    /// Sends what was written for a connection, because it `is_due` or in reply to bytes that came, and goes
    /// on with it.
    fn follow(&mut self, conn: ConnId, mut fate: Fate, is_due: bool) {
        let Bounds { budget, options } = self.bounds;
        self.output.replies += std::mem::take(&mut self.out.replies);
        let Some(peer) = self.table.get(conn).filter(|peer| !peer.ends) else { return self.out.clear() };
        for (due, reply) in self.out.later.drain(..) {
            peer.owed += 1;
            self.replies_for_later += 1;
            self.later.insert((due, self.replies_for_later), (conn, reply));
        }
        if fate == Fate::Ends && peer.owed > 0 {
            peer.is_deaf = true;
            fate = Fate::GoesOn { held: 0 };
        }
        // What is unread counts where handlers pause for it.
        let (unsent, queued) = match options.high_water {
            Some(_) => {
                let unsent = self.output.backend.unsent(conn);
                (unsent, unsent + self.out.length())
            }
            None => (0, 0),
        };
        let mut is_paused = options.high_water.is_some_and(|most| queued >= most);
        let has_room = match fate {
            Fate::GoesOn { held } => {
                peer.held = held;
                budget.note(&mut peer.part, held + queued)
            }
            Fate::Ends | Fate::Reset => true,
        };
        if !has_room && is_due && options.high_water.is_some() {
            is_paused = true;
        } else if !has_room {
            self.counts.over_memory += 1;
            let before = self.out.length();
            self.handler.over_memory(conn, budget.most(), &mut self.out);
            // Bytes that wait for their reader go, so that there is room at once.
            fate = if unsent == 0 && self.out.length() > before { Fate::Ends } else { Fate::Reset };
        }
        self.transmit(conn);
        match fate {
            Fate::GoesOn { .. } if is_paused || queued > FREE_BYTES => self.drain(conn, is_paused),
            Fate::GoesOn { .. } => {}
            Fate::Ends => {
                self.part(conn, Close::AfterSend);
            }
            Fate::Reset => {
                self.part(conn, Close::Reset);
            }
        }
    }

    /// Queues what was written for a connection.
    fn transmit(&mut self, conn: ConnId) {
        let Some(Peer { channel, .. }) = self.table.get(conn) else { return self.out.clear() };
        let Outgoing { bytes, shared, .. } = &mut self.out;
        let mut from = 0;
        for (place, body) in shared.drain(..) {
            self.output.transmit(channel, &bytes[from..place]);
            self.output.transmit_body(channel, &body);
            from = place;
        }
        self.output.transmit(channel, &bytes[from..]);
        bytes.clear();
    }

    /// Looks again at what a client leaves unread, and has nothing written for it meanwhile if it is paused.
    fn drain(&mut self, conn: ConnId, is_paused: bool) {
        let Some(peer) = self.table.get(conn) else { return };
        if !std::mem::replace(&mut peer.is_draining, true) {
            self.draining.push(conn);
        }
        if is_paused && !std::mem::replace(&mut peer.is_paused, true) {
            self.handler.pause_writing(conn);
        }
    }

    /// Notes what the kernel has taken, and goes on with the connections of which that is enough.
    fn recall(&mut self) {
        let Some(now) = self.draining.due(&self.output.backend) else { return };
        for _ in 0..self.draining.len() {
            let Some(conn) = self.draining.pop() else { break };
            let Some(peer) = self.table.get(conn).filter(|peer| !peer.ends) else { continue };
            let unsent = self.output.backend.unsent(conn);
            self.bounds.budget.note(&mut peer.part, peer.held + unsent);
            if unsent > FREE_BYTES {
                self.draining.push(conn);
                continue;
            }
            peer.is_draining = false;
            if std::mem::take(&mut peer.is_paused) {
                self.handler.resume_writing(conn, now);
            }
        }
        self.draining.pause(now, false);
    }

    /// Resets the connection of a client that has left too much unread.
    fn cut_off(&mut self, conn: ConnId) {
        self.counts.unread += u64::from(self.part(conn, Close::Reset));
    }

    /// Ends a connection with the next flush. Returns `false` if it was to end already.
    fn part(&mut self, conn: ConnId, how: Close) -> bool {
        let Some(peer) = self.table.get(conn).filter(|peer| !peer.ends) else { return false };
        peer.ends = true;
        self.bounds.budget.release(&mut peer.part);
        self.output.close(&mut peer.channel, how);
        true
    }

    fn leave(mut self) -> LoopCounts {
        self.flush();
        for listener in std::mem::take(&mut self.listeners) {
            self.output.backend.close_listener(listener);
        }
        for conn in self.table.ids() {
            self.part(conn, Close::AfterSend);
        }
        self.flush();
        self.counts
    }
}
