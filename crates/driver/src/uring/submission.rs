//! Into the kernel: requests, and the ways to enter it.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{CancelBuilder, Fd};
use plimsoll_core::Nanos;
use plimsoll_system::clock;

use super::connection::Closing;
use super::{
    ACCEPT, CANCEL, CANCEL_ACCEPT, CONNECT, HANG_UP, POLL_FIRST, RECEIVE, RENEW, SEND, SPINS_PER_POLL,
    SUBMIT_ATTEMPTS, Uring, buffers, is_about_connection,
};
use crate::slots::Token;

impl Uring {
    /// Does the work that is due before each wait. Returns the latest time at which to call this again.
    pub(super) fn begin_wait(&mut self, now: Nanos) -> Nanos {
        let mut again = Nanos::MAX;
        while let Some(token) = self.lingering.pop_over(now) {
            if self.slots.by_token(token).is_some_and(|connection| connection.closing == Closing::Lingering) {
                self.abandon(token);
            }
        }
        for (id, listening) in self.listeners.iter_mut().enumerate() {
            let Some(listening) = listening else { continue };
            let Some(at) = listening.retry_at else { continue };
            if at > now {
                again = again.min(at);
            } else {
                listening.retry_at = None;
                self.requests.push_back(Token { kind: ACCEPT, slot: id as u32, birth: 0 });
            }
        }
        self.send_rest(now);
        again
    }

    /// Sends the rest after a short send. Apart from waiting, so that the completions of sends, which come at
    /// once as a rule, do not count towards what is waited for.
    pub(super) fn send_rest(&mut self, now: Nanos) {
        if !self.resend.is_empty() {
            self.queue_rest();
            self.submit();
            self.drain(now);
        }
    }

    /// Lets the kernel do its work, without waiting.
    pub(super) fn poll(&mut self) {
        // It fails for lack of memory, or because the completion queue is full, which is emptied now.
        let _ = self.ring.poll();
        let now = clock::monotonic();
        self.drain(now);
        self.send_rest(now);
    }

    /// Polls until `until` or the first event.
    pub(super) fn spin(&mut self, until: Nanos) {
        let mut turn = 0_u32;
        loop {
            // The flag does not cover work that an earlier pass left over, so look anyway now and then.
            if turn.is_multiple_of(SPINS_PER_POLL) || self.ring.has_work() {
                self.poll();
                if !self.pending.is_empty() {
                    return;
                }
            }
            if clock::monotonic() >= until {
                return;
            }
            turn = turn.wrapping_add(1);
            std::hint::spin_loop();
        }
    }

    pub(super) fn submit(&mut self) {
        for _ in 0..SUBMIT_ATTEMPTS {
            if self.ring.submit().is_ok() {
                return;
            }
            // EBUSY: completions must be taken first. EAGAIN: want of memory.
            let _ = self.ring.poll();
            self.drain(clock::monotonic());
        }
        // Entries that are still queued go along with the next call into the kernel.
    }

    /// Queues a request that was made for `token`.
    pub(super) fn push(&mut self, entry: Entry, token: Token) {
        let entry = entry.user_data(token.bits());
        self.in_kernel += 1;
        if is_about_connection(token)
            && let Some(connection) = self.slots.by_token(token)
        {
            connection.in_kernel += 1;
        }
        for _ in 0..SUBMIT_ATTEMPTS {
            // SAFETY: requests are made by the functions below and by `Connection`. They point to: the sealed
            // part of an outbox, which is not changed while `sending` is set; the pieces and the address of a
            // connection, boxed, changed only when no send or connect is under way; the message header, boxed
            // and never changed; all of these belong to slots, which are not released while `in_kernel`
            // counts this request, or to `self`, whose `drop` waits for the requests or leaks the memory. The
            // kernel writes to nothing but the receive buffers, which are read between completion and
            // recycling only.
            if unsafe { self.ring.push(&entry) }.is_ok() {
                return;
            }
            let _ = self.ring.poll();
            self.drain(clock::monotonic());
        }
        // The kernel is out of memory: the request never reaches it, and has failed.
        self.completed(token, -libc::ENOMEM, 0, clock::monotonic());
    }

    /// Queues a send for every connection written to since the last flush, as far as none is under way.
    /// Returns how many connections that were.
    pub(super) fn queue_dirty(&mut self) -> u32 {
        let mut sends = 0;
        let mut dirty = std::mem::take(&mut self.dirty);
        for token in dirty.drain(..) {
            let Some(connection) = self.slots.by_token(token) else { continue };
            connection.dirty = false;
            connection.outbox.seal();
            if connection.outbox.has_sealed() {
                sends += 1;
                self.queue_send(token);
            } else {
                // Nothing was written, so no send is under way either: the buffer goes back.
                connection.outbox.clear(&mut self.pool);
            }
        }
        self.dirty = dirty;
        sends
    }

    pub(super) fn queue_rest(&mut self) {
        while let Some(token) = self.resend.pop() {
            if let Some(connection) = self.slots.by_token(token)
                && connection.closing != Closing::Open
            {
                connection.outbox.seal();
            }
            self.queue_send(token);
        }
    }

    pub(super) fn queue_send(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.closing == Closing::Gone {
            return;
        }
        if let Some(entry) = connection.send_request() {
            self.push(entry, Token { kind: SEND, ..token });
        }
    }

    /// Queues the other requests.
    pub(super) fn queue_requests(&mut self) {
        while let Some(token) = self.requests.pop_front() {
            match token.kind {
                ACCEPT | CANCEL_ACCEPT => self.queue_accept(token),
                CANCEL => {
                    // Cancels all requests on the socket, which stays open until they have ended.
                    let Some(connection) = self.slots.by_token(token) else { continue };
                    let entry = cancel_all(&connection.fd);
                    self.push(entry, token);
                }
                CONNECT => {
                    let Some(connection) = self.slots.by_token(token) else { continue };
                    let Some(entry) = connection.connect_request() else { continue };
                    self.push(entry, token);
                }
                RENEW => {
                    let receive = Token { kind: RECEIVE, ..token };
                    let Some(connection) = self.slots.by_token(token) else { continue };
                    if connection.receiving && !connection.ended {
                        let cancel = CancelBuilder::user_data(receive.bits());
                        self.push(opcode::AsyncCancel2::new(cancel).build(), token);
                    }
                }
                _ => self.queue_receive(token),
            }
        }
    }

    pub(super) fn queue_receive(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.receiving || connection.ended || connection.closing == Closing::Gone {
            return;
        }
        connection.receiving = true;
        let fd = Fd(connection.fd.as_raw_fd());
        let entry = if self.style.stamps {
            let poll_first = if connection.poll_first { POLL_FIRST } else { 0 };
            let message = &raw const **self.message;
            opcode::RecvMsgMulti::new(fd, message, buffers::GROUP).ioprio(poll_first).build()
        } else {
            opcode::RecvMulti::new(fd, buffers::GROUP).build()
        };
        connection.poll_first = false;
        let is_watched = std::mem::replace(&mut connection.watched, true);
        self.push(entry, Token { kind: RECEIVE, ..token });
        if !is_watched {
            // Errors and hang-ups need not be asked for.
            self.push(opcode::PollAdd::new(fd, 0).build(), Token { kind: HANG_UP, ..token });
        }
    }

    pub(super) fn queue_accept(&mut self, token: Token) {
        let Some(Some(listening)) = self.listeners.get_mut(token.slot as usize) else { return };
        let fd = &listening.socket.fd;
        if token.kind == CANCEL_ACCEPT {
            let entry = cancel_all(fd);
            self.push(entry, token);
        } else if !listening.closed {
            listening.accepting = true;
            let entry = opcode::AcceptMulti::new(Fd(fd.as_raw_fd())).flags(libc::SOCK_CLOEXEC).build();
            self.push(entry, token);
        }
    }
}

/// A request to cancel every request on `fd`.
fn cancel_all(fd: &OwnedFd) -> Entry {
    opcode::AsyncCancel2::new(CancelBuilder::fd(Fd(fd.as_raw_fd())).all()).build()
}
