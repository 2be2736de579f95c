//! Connections that are slow on purpose: as many bytes per second as on a narrow link, both ways.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::Nanos;
use plimsoll_system::clock;

use super::Epoll;
use crate::slots::Token;

/// Limit on the bytes that each connection moves in each direction, applied slice by slice.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_s: u64,
    /// Bytes that are moved at once.
    slice: usize,
    /// When connections may move bytes again, which may wait for that or not.
    waking: BinaryHeap<Reverse<(Nanos, Token)>>,
}

impl Pace {
    /// Duration of a slice, unless a single byte takes longer. A peer sees a steady trickle, and a thousand
    /// connections cost 20,000 system calls per second.
    const SLICE: Nanos = Nanos::from_millis(50);
    /// Of receive buffers, so that unread bytes soon hold up the peer. The kernel's least is below.
    pub(super) const BUFFER_BYTES: usize = 4096;

    pub(super) fn new(bytes_per_s: u64) -> Self {
        let bytes_per_s = bytes_per_s.max(1);
        let slice = bytes_per_s as f64 * Self::SLICE.as_secs_f64();
        Self { bytes_per_s, slice: (slice as usize).max(1), waking: BinaryHeap::new() }
    }

    fn time_of(&self, bytes: usize) -> Nanos {
        Nanos((bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s)) as u64)
    }

    /// The time at which a connection that has just moved this many bytes may move more; it is woken then.
    fn moved(&mut self, token: Token, bytes: usize) -> Nanos {
        let next = clock::monotonic() + self.time_of(bytes);
        self.waking.push(Reverse((next, token)));
        next
    }
}

/// Returns the number of bytes that may be moved now on a connection that has to wait until `next`.
#[inline]
pub(super) fn allowance(pace: Option<&Pace>, next: Nanos) -> usize {
    match pace {
        None => usize::MAX,
        Some(pace) if next <= clock::monotonic() => pace.slice,
        Some(_) => 0,
    }
}

impl Epoll {
    /// Notes that bytes were sent.
    pub(super) fn note_sent(&mut self, token: Token, bytes: usize) {
        let Some(pace) = &mut self.pace else { return };
        if let Some(connection) = self.slots.by_token(token)
            && bytes > 0
        {
            connection.send_at = pace.moved(token, bytes);
        }
    }

    /// Notes that bytes were received. Returns `true` if it is paced: then it is scheduled again.
    pub(super) fn note_received(&mut self, token: Token, bytes: usize) -> bool {
        let Some(pace) = &mut self.pace else { return false };
        if let Some(connection) = self.slots.by_token(token) {
            connection.receive_at = pace.moved(token, bytes);
        }
        true
    }

    /// Lets connections go on that may; when the next one may.
    pub(super) fn wake_paced(&mut self, now: Nanos) -> Nanos {
        loop {
            let Some(pace) = &mut self.pace else { return Nanos::MAX };
            let Some(&Reverse((at, token))) = pace.waking.peek() else { return Nanos::MAX };
            if at > now {
                return at;
            }
            pace.waking.pop();
            let Some(connection) = self.slots.by_token(token) else { continue };
            if connection.readable {
                self.list(token);
            }
            self.send(token);
        }
    }
}
