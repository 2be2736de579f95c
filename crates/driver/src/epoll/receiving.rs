//! Connections and bytes that come.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use plimsoll_core::Nanos;

use super::pacing::allowance;
use super::{ACCEPT_RETRY, Epoll, Phase};
use crate::slots::Token;
use crate::socket::errno;
use crate::{Chunk, Event, ListenerId, SystemError, clock, socket};

impl Epoll {
    pub(super) fn accept(&mut self, token: Token) -> Option<Event> {
        let listening = self.listeners.get_mut(token.slot as usize)?.as_mut()?;
        loop {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: the listener is open, and the peer's address is not asked for (both pointers null).
            let fd = unsafe {
                libc::accept4(
                    listening.socket.fd.as_raw_fd(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    flags,
                )
            };
            if fd >= 0 {
                // SAFETY: the descriptor was opened just now and nothing else owns it.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                let Ok(conn) = self.insert(fd, Phase::Open) else { return None };
                // There may be more connections; other sockets get their turn in between.
                self.ready.push_back(token);
                let listener = ListenerId(token.slot);
                return Some(Event::Accepted { listener, conn: conn.conn(), at: clock::monotonic() });
            }
            match errno(&io::Error::last_os_error()) {
                libc::EAGAIN => return None,
                libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                    listening.retry_at = Some(clock::monotonic() + ACCEPT_RETRY);
                    return None;
                }
                // This connection failed before it was accepted (ECONNABORTED and network errors).
                libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP | libc::EFAULT => return None,
                _ => {}
            }
        }
    }

    pub(super) fn look_at(&mut self, token: Token) -> Option<Event> {
        let live = self.slots.get(token.conn()).is_some();
        let connection = self.slots.by_token(token)?;
        connection.listed = false;
        match connection.phase {
            Phase::Reached(at) => {
                if let Some(error) = socket::connect_error(&connection.fd) {
                    return self.connect_failed(token, error);
                }
                connection.phase = Phase::Open;
                if live {
                    if connection.readable {
                        self.list(token);
                    }
                    self.send_unless_dirty(token);
                    Some(Event::Connected { conn: token.conn(), at })
                } else {
                    self.finish(token, false);
                    None
                }
            }
            Phase::Refused(error) => self.connect_failed(token, error),
            Phase::Open if connection.readable => self.receive(token),
            _ => None,
        }
    }

    pub(super) fn connect_failed(&mut self, token: Token, errno: i32) -> Option<Event> {
        let live = self.slots.get(token.conn()).is_some();
        self.release(token);
        let (conn, at, error) = (token.conn(), clock::monotonic(), SystemError { errno });
        live.then_some(Event::ConnectFailed { conn, at, error })
    }

    pub(super) fn receive(&mut self, token: Token) -> Option<Event> {
        let connection = self.slots.by_token(token)?;
        let most = allowance(self.pace.as_ref(), connection.receive_at).min(self.buffer.len());
        if most == 0 {
            // The task is woken when it may go on.
            return None;
        }
        let (result, stamp) = receive(&connection.fd, &mut self.buffer[..most], self.style.stamps);
        let conn = token.conn();
        let now = clock::monotonic();
        let error = match result {
            Ok(0) => connection.send_error,
            Ok(length) => {
                // With edge triggering, fewer bytes than asked for mean that all was read. The end needs a
                // read of its own.
                connection.readable = length == most || connection.hangup;
                let readable = connection.readable;
                if !self.note_received(token, length) && readable {
                    self.list(token);
                }
                let mapped = stamp.and_then(|stamp| self.stamps.map(stamp, now));
                let data = Chunk { buffer: 0, offset: 0, length: length as u32 };
                return Some(Event::Received {
                    conn,
                    at: mapped.unwrap_or(now),
                    stamped: mapped.is_some(),
                    data,
                });
            }
            Err(libc::EAGAIN) => {
                connection.readable = false;
                return None;
            }
            Err(error) if connection.send_error == 0 => error,
            Err(_) => connection.send_error,
        };
        connection.phase = Phase::Ended;
        connection.readable = false;
        Some(if error == 0 {
            Event::Closed { conn, at: now }
        } else {
            Event::Failed { conn, at: now, error: SystemError { errno: error } }
        })
    }

    /// Reads and drops the remaining input of a lingering connection, up to its end.
    pub(super) fn discard(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        loop {
            match receive(&connection.fd, &mut self.buffer, false).0 {
                Err(libc::EAGAIN) => return,
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        self.release(token);
    }
}

/// One read: bytes or the error's number, and the kernel's stamp if `stamps` asks for it and there is one.
fn receive(fd: &OwnedFd, buffer: &mut [u8], stamps: bool) -> (Result<usize, i32>, Option<Nanos>) {
    /// Control data, aligned as the kernel's header wants it.
    #[repr(C, align(8))]
    struct Control([u8; socket::STAMP_SPACE]);

    loop {
        let mut control = Control([0; socket::STAMP_SPACE]);
        let mut stamp = None;
        let length = if stamps {
            let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            // SAFETY: a msghdr is plain pointers and integers, for all of which zero is a value.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_iov = &raw mut piece;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = control.0.len() as _;
            // SAFETY: `message` points to one piece, which spans the exclusively borrowed buffer, and to the
            // control bytes with their length; all three outlive the call. There is no address.
            let length = unsafe { libc::recvmsg(fd.as_raw_fd(), &mut message, 0) };
            let filled = (message.msg_controllen as usize).min(control.0.len());
            if length > 0 {
                stamp = socket::receive_stamp(&control.0[..filled]);
            }
            length
        } else {
            // SAFETY: the buffer is exclusively borrowed and valid for writing its whole length.
            unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) }
        };
        match usize::try_from(length) {
            Ok(length) => return (Ok(length), stamp),
            Err(_) => match errno(&io::Error::last_os_error()) {
                libc::EINTR => {}
                error => return (Err(error), None),
            },
        }
    }
}
