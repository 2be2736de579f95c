//! Bytes that go, and the end of connections that still have some.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;

use super::pacing::allowance;
use super::{Connection, Epoll, Phase};
use crate::outbox::{BufferPool, MAX_PIECES};
use crate::slots::Token;
use crate::socket::errno;
use crate::{clock, socket};

impl Epoll {
    /// Gives the kernel the queued bytes, as far as it takes them.
    pub(super) fn send(&mut self, token: Token) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.blocked
            || matches!(connection.phase, Phase::Connecting | Phase::Reached(_) | Phase::Refused(_))
        {
            return;
        }
        let most = allowance(self.pace.as_ref(), connection.send_at);
        if most == 0 {
            // The task is woken when it may go on.
            return;
        }
        match transmit(connection, &mut self.pool, most) {
            Ok(sent) => {
                let goes_on = connection.phase == Phase::Sending && !connection.blocked;
                self.note_sent(token, sent);
                if goes_on {
                    self.finish(token, false);
                }
            }
            Err(_) if connection.phase == Phase::Sending => self.release(token),
            Err(error) => {
                // Data that came before the connection broke is still to be read. Shutting down makes sure
                // that reading ends.
                connection.outbox.clear(&mut self.pool);
                if connection.send_error == 0 {
                    connection.send_error = error;
                    socket::shutdown(&connection.fd, Shutdown::Both);
                    // The end of the peer may have been reported already; the error is reported all the same.
                    connection.phase = Phase::Open;
                    connection.readable = true;
                    connection.hangup = true;
                    self.list(token);
                }
            }
        }
    }

    /// Sends the bytes that were queued while connecting, unless the next flush does it.
    pub(super) fn send_unless_dirty(&mut self, token: Token) {
        if self.slots.by_token(token).is_some_and(|connection| !connection.dirty) {
            self.send(token);
        }
    }

    /// Goes on closing a connection whose id has expired: sends the rest, then ends our direction, then waits
    /// for the peer to do the same, which it may have done already (`ended`).
    pub(super) fn finish(&mut self, token: Token, ended: bool) {
        let Some(connection) = self.slots.by_token(token) else { return };
        if connection.outbox.unsent() > 0 {
            connection.phase = Phase::Sending;
            if !connection.blocked {
                self.send(token);
            }
        } else if ended {
            self.release(token);
        } else {
            socket::shutdown(&connection.fd, Shutdown::Write);
            connection.phase = Phase::Lingering;
            self.lingering.push(token, clock::monotonic());
            // Earlier edges were not examined.
            self.discard(token);
        }
    }
}

/// Sends until nothing is left, it was the `most` bytes that it may be, or the kernel takes no more, which
/// sets `blocked`. The bytes that were sent.
fn transmit(connection: &mut Connection, pool: &mut BufferPool, most: usize) -> Result<usize, i32> {
    let mut left = most;
    while connection.outbox.unsent() > 0 {
        if left == 0 {
            return Ok(most);
        }
        let (asked, result) = if let Some(bytes) = connection.outbox.only_open() {
            let bytes = &bytes[..bytes.len().min(left)];
            // SAFETY: `bytes` is borrowed through the call and valid for reading its whole length.
            let sent = unsafe {
                libc::send(connection.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
            };
            (bytes.len(), sent)
        } else {
            send_pieces(connection, left)
        };
        let Ok(sent) = usize::try_from(result) else {
            match errno(&io::Error::last_os_error()) {
                libc::EINTR => continue,
                libc::EAGAIN => {
                    connection.blocked = true;
                    return Ok(most - left);
                }
                error => return Err(error),
            }
        };
        if connection.outbox.has_sealed() {
            connection.outbox.advance(sent, pool);
        } else {
            connection.outbox.advance_open(sent, pool);
        }
        left -= sent;
        if sent < asked {
            // The socket buffer is full. As the kernel was asked for more, there is an edge once there is
            // room again.
            connection.blocked = true;
            return Ok(most - left);
        }
    }
    // Nothing was written, or all is gone: an empty buffer goes back.
    connection.outbox.clear(pool);
    Ok(most - left)
}

/// One gathering send of the sealed segments, of `most` bytes: the requested length, and the system's answer.
fn send_pieces(connection: &mut Connection, most: usize) -> (usize, isize) {
    connection.outbox.seal();
    let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_PIECES];
    let mut count = connection.outbox.gather(&mut pieces);
    let mut asked: usize = pieces[..count].iter().map(|piece| piece.iov_len).sum();
    if asked > most {
        asked = 0;
        count = 0;
        while asked < most {
            pieces[count].iov_len = pieces[count].iov_len.min(most - asked);
            asked += pieces[count].iov_len;
            count += 1;
        }
    }
    // SAFETY: a msghdr is plain pointers and integers, for all of which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = count as _;
    // SAFETY: the first `count` pieces are initialised and point into segments that the outbox, which nothing
    // touches during the call, owns or shares; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(connection.fd.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    (asked, sent)
}
