//! Out of the kernel: the effects of completions on connections, and the ends of connections.

use std::net::Shutdown;
use std::os::fd::{FromRawFd, OwnedFd};

use io_uring::cqueue;
use plimsoll_core::Nanos;

use super::connection::{Closing, Connection};
use super::{
    ACCEPT, ACCEPT_RETRY, CANCEL, CONNECT, HANG_UP, MESSAGE_HEAD, Pending, RECEIVE, RENEW, SEND, Uring, What,
    connection_token, is_about_connection,
};
use crate::slots::Token;
use crate::{clock, socket};

impl Uring {
    /// Takes all completions, and turns them into state and pending events.
    pub(super) fn drain(&mut self, at: Nanos) {
        while let Some(completion) = self.ring.pop() {
            let token = Token::from_bits(completion.user_data());
            self.completed(token, completion.result(), completion.flags(), at);
        }
    }

    pub(super) fn completed(&mut self, token: Token, result: i32, flags: u32, at: Nanos) {
        let last = !cqueue::more(flags);
        if last {
            self.in_kernel -= 1;
        }
        if !is_about_connection(token) {
            return self.accepted(token, result, last, at);
        }
        let Some(connection) = self.slots.by_token(token) else {
            debug_assert!(false, "a slot was freed with a request in the kernel");
            return;
        };
        if last {
            connection.in_kernel -= 1;
        }
        // Events of an open connection never free it; only its owner ends it. A connection can be gone now
        // only if it was closing before, so the usual completion needs no second look.
        let closing = connection.closing != Closing::Open;
        match token.kind {
            RECEIVE => self.received(token, result, flags, at),
            SEND => self.sent(token, result, at),
            CONNECT => self.connected(token, result, at),
            HANG_UP => self.hung_up(token),
            _ => {}
        }
        if closing {
            self.release_if_gone(token);
        }
    }

    pub(super) fn received(&mut self, token: Token, result: i32, flags: u32, at: Nanos) {
        let buffer = cqueue::buffer_select(flags);
        if buffer.is_some() {
            self.buffers.taken();
        }
        let connections = self.slots.len();
        let Some(connection) = self.slots.by_token(token) else { return };
        let last = !cqueue::more(flags);
        connection.receiving &= !last;
        let head = if self.style.stamps { MESSAGE_HEAD as i32 } else { 0 };
        if let Some(buffer) = buffer {
            if result > head {
                if last {
                    self.requests.push_back(token);
                } else if connection.hung_up {
                    self.requests.push_back(Token { kind: RENEW, ..token });
                }
                if connection.closing == Closing::Open {
                    let what = What::Received { buffer, length: result as u32 };
                    self.pending.push_back(Pending { token, at, what });
                } else {
                    self.buffers.recycle(buffer);
                }
                return;
            }
            // A header without a message: the end.
            self.buffers.recycle(buffer);
        }
        match -result {
            libc::ENOBUFS => {
                self.buffers.grow(connections);
                self.starved.push(token);
            }
            libc::EINTR | libc::EAGAIN => self.requests.push_back(token),
            // The request is made again, unless the connection is closing and so canceled all of its
            // requests.
            libc::ECANCELED if connection.closing != Closing::Gone => self.requests.push_back(token),
            error if last => self.receive_ended(token, error.max(0), at),
            _ => {}
        }
    }

    /// The connection has broken, or both directions have ended. As a rule the receive reports that. It does
    /// not where a reset came with the last bytes: the kernel wakes it once for both, it takes the bytes, and
    /// waits for more (seen on Linux 6.18). Made again, it meets the error.
    fn hung_up(&mut self, token: Token) {
        if let Some(connection) = self.slots.by_token(token) {
            connection.hung_up = true;
            self.requests.push_back(Token { kind: RENEW, ..token });
        }
    }

    /// Nothing more will come: the peer's end (`error` 0) or an error.
    pub(super) fn receive_ended(&mut self, token: Token, error: i32, at: Nanos) {
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.ended = true;
        match connection.closing {
            Closing::Open => {
                let error = if connection.send_error == 0 { error } else { connection.send_error };
                let what = if error == 0 { What::Closed } else { What::Failed(error) };
                self.pending.push_back(Pending { token, at, what });
            }
            Closing::Sending if error != 0 => self.abandon(token),
            Closing::Lingering => self.abandon(token),
            Closing::Sending | Closing::Gone => {}
        }
    }

    pub(super) fn sent(&mut self, token: Token, result: i32, at: Nanos) {
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.sending = false;
        if result <= 0 && result != -libc::EINTR {
            return self.send_failed(token, if result == 0 { libc::EPIPE } else { -result }, at);
        }
        connection.outbox.advance(usize::try_from(result).unwrap_or(0), &mut self.pool);
        let rest = connection.outbox.unsent() > 0;
        match connection.closing {
            Closing::Open if connection.outbox.has_sealed() => self.resend.push(token),
            Closing::Sending if rest => self.resend.push(token),
            Closing::Sending => self.sent_everything(token),
            _ => {}
        }
    }

    pub(super) fn send_failed(&mut self, token: Token, error: i32, at: Nanos) {
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.outbox.clear(&mut self.pool);
        match connection.closing {
            Closing::Open => {
                connection.send_error = error;
                if connection.ended {
                    // The end of the peer was reported; the error is reported all the same.
                    self.pending.push_back(Pending { token, at, what: What::Failed(error) });
                } else {
                    // Data that came before the connection broke is still to be received. Shutting down makes
                    // sure that receiving ends.
                    socket::shutdown(&connection.fd, Shutdown::Both);
                }
            }
            Closing::Sending => self.abandon(token),
            Closing::Lingering | Closing::Gone => {}
        }
    }

    pub(super) fn connected(&mut self, token: Token, result: i32, at: Nanos) {
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.connected();
        let failed = result < 0;
        match connection.closing {
            Closing::Open if failed => {
                connection.ended = true;
                self.pending.push_back(Pending { token, at, what: What::ConnectFailed(-result) });
            }
            Closing::Sending if failed => self.abandon(token),
            Closing::Open | Closing::Sending => {
                if connection.closing == Closing::Open {
                    self.pending.push_back(Pending { token, at, what: What::Connected });
                }
                if connection.outbox.has_sealed() || connection.closing == Closing::Sending {
                    self.resend.push(token);
                }
                self.requests.push_back(Token { kind: RECEIVE, ..token });
            }
            Closing::Lingering | Closing::Gone => {}
        }
    }

    fn accepted(&mut self, token: Token, result: i32, last: bool, at: Nanos) {
        // SAFETY: the result of an accept request that is not negative is a descriptor that was opened for
        // it, and nothing else owns it. The result of a cancellation is a number of requests.
        let fd = (result >= 0 && token.kind == ACCEPT).then(|| unsafe { OwnedFd::from_raw_fd(result) });
        let Some(entry) = self.listeners.get_mut(token.slot as usize) else { return };
        let Some(listening) = entry else { return };
        if last && token.kind == ACCEPT {
            listening.accepting = false;
        }
        if listening.closed {
            if !listening.accepting && token.kind == ACCEPT {
                *entry = None;
            }
            return;
        }
        if let Some(fd) = fd {
            let conn = self.slots.insert(Connection::accepted(fd));
            let what = What::Accepted { listener: token.slot };
            self.pending.push_back(Pending { token: connection_token(RECEIVE, conn), at, what });
            self.requests.push_back(connection_token(RECEIVE, conn));
        }
        if last {
            // Without an error the kernel wants to be asked again; an error (no descriptor left) would return
            // at once.
            if result >= 0 {
                self.requests.push_back(token);
            } else {
                listening.retry_at = Some(at + ACCEPT_RETRY);
            }
        }
    }
}

/// Closing.
impl Uring {
    /// All bytes of a closed connection are with the kernel: ends our direction, and waits for the peer to do
    /// the same, if it has not.
    pub(super) fn sent_everything(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.ended {
            return self.abandon(token);
        }
        socket::shutdown(&connection.fd, Shutdown::Write);
        connection.closing = Closing::Lingering;
        self.lingering.push(token, clock::monotonic());
    }

    /// Closes at once: makes the requests in the kernel end, the last of which frees the slot.
    pub(super) fn abandon(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.closing = Closing::Gone;
        if connection.connecting {
            self.requests.push_back(Token { kind: CANCEL, ..token });
        } else if connection.in_kernel > 0 {
            socket::shutdown(&connection.fd, Shutdown::Both);
        }
        self.release_if_gone(token);
    }

    /// Like `abandon`, but the close of the socket shall send a reset, so it must not be shut down before.
    pub(super) fn reset(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        socket::reset_on_close(&connection.fd);
        connection.closing = Closing::Gone;
        self.requests.push_back(Token { kind: CANCEL, ..token });
        self.release_if_gone(token);
    }

    pub(super) fn release_if_gone(&mut self, token: Token) {
        if let Some(connection) = self.slots.by_token(token)
            && connection.closing == Closing::Gone
            && connection.in_kernel == 0
            && let Some(mut connection) = self.slots.release(token)
        {
            connection.outbox.clear(&mut self.pool);
        }
    }
}
