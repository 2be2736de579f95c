//! Waiting, and the handling of edges.

use std::io;
use std::os::fd::AsRawFd;

use plimsoll_core::Nanos;
use plimsoll_system::clock;

use super::{Epoll, LISTENER, Phase, Timeout};
use crate::slots::Token;
use crate::socket::errno;

impl Epoll {
    /// Does the work that is due before each wait. Returns the latest time at which to call this again.
    pub(super) fn begin_wait(&mut self, now: Nanos) -> Nanos {
        let mut again = self.wake_paced(now);
        while let Some(token) = self.lingering.pop_over(now) {
            if self.slots.by_token(token).is_some_and(|connection| connection.phase == Phase::Lingering) {
                self.release(token);
            }
        }
        for (id, listening) in self.listeners.iter_mut().enumerate() {
            let Some(listening) = listening else { continue };
            let Some(at) = listening.retry_at else { continue };
            if at > now {
                again = again.min(at);
            } else {
                listening.retry_at = None;
                self.ready.push_back(Token { kind: LISTENER, slot: id as u32, birth: 0 });
            }
        }
        again
    }

    /// Takes all edges from the kernel, waiting up to `timeout` for the first. `false` if a signal came.
    pub(super) fn gather(&mut self, timeout: Timeout) -> bool {
        let mut count = self.take_edges(timeout);
        loop {
            let Ok(taken) = count else { return false };
            for index in 0..taken {
                let edge = self.edges[index];
                self.edge(edge.events as i32, Token::from_bits(edge.u64));
            }
            if taken < self.edges.len() {
                return true;
            }
            count = self.take_edges(Timeout::None);
        }
    }

    pub(super) fn take_edges(&mut self, timeout: Timeout) -> io::Result<usize> {
        let (epoll, room) = (self.epoll.as_raw_fd(), self.edges.len() as i32);
        let mut count = -1;
        if let Timeout::Span(span) = timeout {
            let span = clock::timespec(span);
            if self.fine_wait {
                // SAFETY: `edges` is valid for writing `room` events, `span` for reading, and a null signal
                // mask (whose size is then ignored) leaves the mask as it is.
                count = unsafe {
                    libc::syscall(
                        libc::SYS_epoll_pwait2,
                        epoll,
                        self.edges.as_mut_ptr(),
                        room,
                        &raw const span,
                        std::ptr::null::<libc::sigset_t>(),
                        0_usize,
                    )
                };
                self.fine_wait = count >= 0 || errno(&io::Error::last_os_error()) != libc::ENOSYS;
            }
            if !self.fine_wait {
                // An epoll descriptor can be polled itself, and ppoll has always had nanoseconds.
                let mut poll = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
                // SAFETY: one pollfd, valid for writing; `span` valid for reading; no mask.
                count = i64::from(unsafe { libc::ppoll(&mut poll, 1, &span, std::ptr::null()) });
                if count > 0 {
                    return self.take_edges(Timeout::None);
                }
            }
        } else {
            // SAFETY: `edges` is valid for writing `room` events.
            count = i64::from(unsafe { libc::epoll_wait(epoll, self.edges.as_mut_ptr(), room, 0) });
        }
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    pub(super) fn edge(&mut self, mask: i32, token: Token) {
        const END: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
        if token.kind == LISTENER {
            self.ready.push_back(token);
            return;
        }
        let Some(connection) = self.slots.by_token(token) else { return };
        connection.readable |= mask & (libc::EPOLLIN | END) != 0;
        connection.hangup |= mask & END != 0;
        let writable = mask & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        match connection.phase {
            Phase::Connecting if writable => {
                // The events before this one may take their time.
                connection.phase = Phase::Reached(clock::monotonic());
                self.list(token);
            }
            Phase::Lingering => self.discard(token),
            Phase::Open if connection.readable => {
                if writable && connection.blocked {
                    connection.blocked = false;
                    self.send(token);
                }
                self.list(token);
            }
            Phase::Open | Phase::Ended | Phase::Sending if writable && connection.blocked => {
                connection.blocked = false;
                self.send(token);
            }
            _ => {}
        }
    }
}
