//! Bytes that wait to be sent on one connection, and the buffers that hold them.

use std::collections::VecDeque;
use std::sync::Arc;

/// Most pieces of one gathering send. The kernel's limit is 1024; more than a head, a body and the next head
/// are rare.
pub(crate) const MAX_PIECES: usize = 16;

/// The bytes queued on one connection, in order: the sealed segments, then the open buffer.
///
/// The owner of the connection appends to the open buffer. [`seal`](Self::seal) moves it to the end of the
/// segments, whose bytes are never touched again and do not move until [`advance`](Self::advance) says that
/// the kernel has taken them: it may read them at any time between. A connection that has nothing to send
/// holds no buffer.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    open: Vec<u8>,
    /// The first sealed segment. Apart, because there is seldom a second.
    first: Option<Segment>,
    /// The sealed segments after it.
    rest: VecDeque<Segment>,
    /// Bytes of the first segment that the kernel has taken.
    taken: usize,
    /// Bytes in the segments that the kernel has not taken.
    sealed_bytes: usize,
}

#[derive(Debug)]
enum Segment {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Outbox {
    /// The buffer to append to.
    #[inline]
    pub(crate) fn open(&mut self, pool: &mut BufferPool) -> &mut Vec<u8> {
        if self.open.capacity() == 0 {
            self.open = pool.take();
        }
        &mut self.open
    }

    /// Queues `body` after the content of the open buffer.
    pub(crate) fn push_shared(&mut self, body: Arc<[u8]>) {
        self.seal();
        if !body.is_empty() {
            self.append(Segment::Shared(body));
        }
    }

    /// Closes the open buffer: later bytes go into another one.
    #[inline]
    pub(crate) fn seal(&mut self) {
        if !self.open.is_empty() {
            let segment = Segment::Own(std::mem::take(&mut self.open));
            self.append(segment);
        }
    }

    #[inline]
    fn append(&mut self, segment: Segment) {
        self.sealed_bytes += segment.bytes().len();
        if self.first.is_none() {
            self.first = Some(segment);
        } else {
            self.rest.push_back(segment);
        }
    }

    /// Bytes that the kernel has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.sealed_bytes + self.open.len()
    }

    /// Returns `true` if there are sealed bytes that the kernel has not taken.
    pub(crate) fn has_sealed(&self) -> bool {
        self.sealed_bytes > 0
    }

    /// The open buffer, if it is all there is to send.
    pub(crate) fn only_open(&self) -> Option<&[u8]> {
        if self.first.is_none() { Some(&self.open) } else { None }
    }

    /// Returns the sealed bytes that the kernel has not taken if they are one piece, which is the usual case.
    #[inline]
    pub(crate) fn only_sealed(&self) -> Option<&[u8]> {
        if self.rest.is_empty() {
            self.first.as_ref().map(|first| &first.bytes()[self.taken..])
        } else {
            None
        }
    }

    /// The first sealed pieces that the kernel has not taken: how many there are in `pieces`.
    pub(crate) fn gather(&self, pieces: &mut [libc::iovec; MAX_PIECES]) -> usize {
        let mut skip = self.taken;
        let mut count = 0;
        for (piece, segment) in pieces.iter_mut().zip(self.first.iter().chain(&self.rest)) {
            let bytes = &segment.bytes()[skip..];
            // A send only reads through this pointer, which is mutable by the convention of the C interface.
            *piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            skip = 0;
            count += 1;
        }
        count
    }

    /// The kernel took `bytes` more of the sealed segments. Those it took wholly are freed.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize, pool: &mut BufferPool) {
        let mut left = bytes.min(self.sealed_bytes);
        self.sealed_bytes -= left;
        while let Some(first) = &self.first {
            let remaining = first.bytes().len() - self.taken;
            if left < remaining {
                self.taken += left;
                return;
            }
            left -= remaining;
            self.taken = 0;
            if let Some(Segment::Own(buffer)) = self.first.take() {
                pool.put(buffer);
            }
            if self.rest.is_empty() {
                return;
            }
            self.first = self.rest.pop_front();
        }
    }

    /// The kernel took `bytes` of the open buffer, and there are no sealed segments.
    pub(crate) fn advance_open(&mut self, bytes: usize, pool: &mut BufferPool) {
        if bytes >= self.open.len() {
            pool.put(std::mem::take(&mut self.open));
        } else {
            self.seal();
            self.advance(bytes, pool);
        }
    }

    /// Drops everything. The kernel must not be reading any of it.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        self.advance(self.sealed_bytes, pool);
        self.advance_open(usize::MAX, pool);
        // A burst may have made the queue of segments long; an idle connection is to be small.
        self.rest.shrink_to(MAX_PIECES);
    }
}

/// Buffers that have been sent, kept for the next to be sent. Last in, first out: buffers that are handed out
/// are warm in the cache, and ten thousand idle connections share a few.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    buffers: Vec<Vec<u8>>,
    /// Their capacities together.
    held_bytes: usize,
}

impl BufferPool {
    /// A larger buffer is freed, so that one burst does not stay in memory: the largest pipe's worth of data
    /// that common socket buffers take at once.
    const BUFFER_BYTES: usize = 256 << 10;
    /// Enough for a request of 400 bytes on each of 10,000 connections at once.
    const HELD_BYTES: usize = 4 << 20;

    pub(crate) fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.held_bytes -= buffer.capacity();
        buffer
    }

    pub(crate) fn put(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity > 0 && capacity <= Self::BUFFER_BYTES && self.held_bytes + capacity <= Self::HELD_BYTES {
            buffer.clear();
            self.held_bytes += capacity;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(outbox: &Outbox) -> Vec<u8> {
        let mut all = Vec::new();
        let mut skip = outbox.taken;
        for segment in outbox.first.iter().chain(&outbox.rest) {
            all.extend_from_slice(&segment.bytes()[skip..]);
            skip = 0;
        }
        all.extend_from_slice(&outbox.open);
        all
    }

    #[test]
    fn bytes_leave_in_the_order_they_came() {
        let mut pool = BufferPool::default();
        let mut outbox = Outbox::default();
        outbox.open(&mut pool).extend_from_slice(b"head ");
        outbox.push_shared(Arc::from(&b"body "[..]));
        outbox.push_shared(Arc::from(&b""[..]));
        outbox.open(&mut pool).extend_from_slice(b"next");
        assert_eq!((queued(&outbox).as_slice(), outbox.unsent()), (&b"head body next"[..], 14));
        assert_eq!(outbox.only_open(), None);

        outbox.seal();
        // Every way of cutting it in three.
        for first in 0..=14 {
            for second in 0..=14 - first {
                let mut outbox = Outbox::default();
                outbox.open(&mut pool).extend_from_slice(b"head ");
                outbox.push_shared(Arc::from(&b"body "[..]));
                outbox.open(&mut pool).extend_from_slice(b"next");
                outbox.seal();
                outbox.advance(first, &mut pool);
                assert_eq!(queued(&outbox), b"head body next"[first..]);
                outbox.advance(second, &mut pool);
                assert_eq!(queued(&outbox), b"head body next"[first + second..]);
                assert_eq!(outbox.unsent(), 14 - first - second);
                assert_eq!(outbox.has_sealed(), first + second < 14);
                outbox.advance(usize::MAX, &mut pool);
                assert_eq!((outbox.unsent(), outbox.rest.len(), outbox.taken), (0, 0, 0));
                assert!(outbox.first.is_none());
            }
        }
    }

    #[test]
    fn what_the_kernel_may_read_does_not_move() {
        let mut pool = BufferPool::default();
        let mut outbox = Outbox::default();
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_PIECES];
        outbox.open(&mut pool).extend_from_slice(b"in flight");
        outbox.seal();
        assert_eq!(outbox.gather(&mut pieces), 1);
        let address = pieces[0].iov_base;
        for _ in 0..100 {
            outbox.open(&mut pool).extend_from_slice(&[7; 1000]);
            outbox.push_shared(Arc::from(&[8; 1000][..]));
        }
        assert_eq!(outbox.gather(&mut pieces), MAX_PIECES);
        assert_eq!((pieces[0].iov_base, pieces[0].iov_len), (address, 9));
        assert_eq!((pieces[1].iov_len, pieces[2].iov_len), (1000, 1000));
    }

    #[test]
    fn a_partly_sent_open_buffer_keeps_its_rest() {
        let mut pool = BufferPool::default();
        let mut outbox = Outbox::default();
        outbox.open(&mut pool).extend_from_slice(b"abcdef");
        assert_eq!(outbox.only_open(), Some(&b"abcdef"[..]));
        outbox.advance_open(2, &mut pool);
        assert_eq!((queued(&outbox).as_slice(), outbox.unsent()), (&b"cdef"[..], 4));
        outbox.clear(&mut pool);
        assert_eq!((outbox.unsent(), outbox.open.capacity()), (0, 0));
    }

    #[test]
    fn buffers_go_round_and_large_ones_are_freed() {
        let mut pool = BufferPool::default();
        let mut outbox = Outbox::default();
        outbox.open(&mut pool).extend_from_slice(b"x");
        let address = outbox.open.as_ptr();
        outbox.advance_open(1, &mut pool);
        assert_eq!(outbox.open(&mut pool).as_ptr(), address);
        assert!(outbox.open.is_empty());
        assert_eq!(pool.held_bytes, 0);

        pool.put(Vec::with_capacity(BufferPool::BUFFER_BYTES + 1));
        pool.put(Vec::new());
        assert_eq!(pool.buffers.len(), 0);
        for _ in 0..100 {
            pool.put(Vec::with_capacity(BufferPool::BUFFER_BYTES));
        }
        assert_eq!(pool.held_bytes, BufferPool::HELD_BYTES);
    }
}
