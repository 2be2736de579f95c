//! The receive buffers that are lent to the kernel.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::ring::Ring;

/// The group's number; there is but one.
pub(super) const GROUP: u16 = 0;

/// Bytes of one buffer, headers included. A completion costs as much as copying some kilobytes, so a smaller
/// one makes large bodies dear: per megabyte received over loopback (2 busy processors, 16 connections, up to
/// 256 buffers, median of three) 4 KiB cost 235 us of processor time, 8 KiB 144, 16 KiB 141, 32 KiB 124, and
/// epoll with 64 KiB reads 120. A small response uses the first page alone.
const BUFFER_BYTES: usize = 16 << 10;
/// Buffers lent at first: half a megabyte of small responses, two of large bodies.
const FIRST: usize = 128;
/// Buffers lent at most, and places of the ring (16 bytes each). A power of two.
const LARGEST: usize = 4096;

/// Buffers in a ring that is shared with the kernel: it takes the one at the head for each receive, and we
/// put those that are done with back at the tail.
///
/// The address space for all buffers is reserved at once; memory is used by those that were ever lent. When
/// the kernel runs out, [`grow`](Self::grow) lends more, up to about one per connection. A receive that finds
/// none ends, and is made again when some have come back.
pub(super) struct Buffers {
    ring: Mapping,
    bytes: Mapping,
    tail: u16,
    /// Buffers that exist: in the ring, or taken by the kernel and not yet recycled.
    lent: usize,
    /// Buffers in the ring, as far as the completions seen so far tell.
    available: usize,
}

impl Buffers {
    pub(super) fn register(ring: &Ring) -> io::Result<Self> {
        let entries = Mapping::new(LARGEST * size_of::<BufRingEntry>())?;
        let bytes = Mapping::new(LARGEST * BUFFER_BYTES)?;
        // SAFETY: the mapping is page-aligned, has room for LARGEST entries, and is unmapped only when `self`
        // is dropped, which the backend does after the ring is closed, or never.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                entries.base.as_ptr() as u64,
                LARGEST as u16,
                GROUP,
                0,
            )?;
        }
        let mut buffers = Self { ring: entries, bytes, tail: 0, lent: 0, available: 0 };
        buffers.lend(FIRST);
        Ok(buffers)
    }

    /// Notes that the kernel filled a buffer.
    pub(super) fn taken(&mut self) {
        self.available = self.available.saturating_sub(1);
    }

    /// Returns `true` if a receive could get a buffer.
    pub(super) fn any_available(&self) -> bool {
        self.available > 0
    }

    /// Gives a buffer that the kernel filled back to it.
    pub(super) fn recycle(&mut self, buffer: u16) {
        let index = usize::from(self.tail) & (LARGEST - 1);
        let address = self.bytes.base.as_ptr().wrapping_add(usize::from(buffer) * BUFFER_BYTES);
        let first = self.ring.base.cast::<BufRingEntry>();
        // SAFETY: `index` is below LARGEST, the number of entries in the mapping, which is zeroed, a value of
        // the entry, and page-aligned. The kernel does not read this entry before the tail has passed it, and
        // it was read long ago if it was used before: no more than LARGEST buffers exist.
        let entry = unsafe { &mut *first.as_ptr().add(index) };
        entry.set_addr(address as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry is valid, and its reserved field is by definition the ring's tail; it is
        // aligned to 2. `entry` is not used any more, and setting its fields does not touch the tail.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first.as_ptr()).cast_mut()) };
        // Release: the kernel must see the entry filled in when it sees the tail.
        tail.store(self.tail, Ordering::Release);
        self.available += 1;
    }

    /// Lends more buffers, after the kernel had none left. Few connections get few: a ring that fits the
    /// cache is worth more to a large body than one that never runs out.
    pub(super) fn grow(&mut self, connections: usize) {
        let most = connections.next_power_of_two().clamp(FIRST, LARGEST);
        if self.lent < most {
            self.lend(self.lent);
        }
    }

    fn lend(&mut self, count: usize) {
        let until = (self.lent + count).min(LARGEST);
        for buffer in self.lent..until {
            self.recycle(buffer as u16);
        }
        self.lent = until;
    }

    /// Bytes of a buffer that the kernel filled and that was not recycled; nothing if they are not in it.
    pub(super) fn bytes(&self, buffer: u16, offset: usize, length: usize) -> &[u8] {
        if usize::from(buffer) >= self.lent || offset.checked_add(length).is_none_or(|end| end > BUFFER_BYTES)
        {
            return &[];
        }
        let start = usize::from(buffer) * BUFFER_BYTES + offset;
        // SAFETY: the range lies inside the mapping (checked above), which is initialised (zeros, or what the
        // kernel wrote). The kernel does not write to it, because the caller asks for a buffer between its
        // completion and its recycling; recycling needs `&mut self`, which ends this borrow.
        unsafe { std::slice::from_raw_parts(self.bytes.base.as_ptr().add(start), length) }
    }
}

/// Zeroed, page-aligned memory that takes up room only where it is used.
struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(length: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Huge pages would use two megabytes where four kilobytes are needed. A kernel without them refuses.
        // SAFETY: the range is the mapping made just now; the advice does not change what is in it.
        unsafe { libc::madvise(base, length, libc::MADV_NOHUGEPAGE) };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { base, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, unmapped once; borrows of it ended before the drop.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}
