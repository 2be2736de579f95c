//! Common parts of request and response heads: the decoding of their blocks, and the memory of blocks that
//! came before.

use super::fields::check_field;
use super::hpack::Decoder;
use super::{ConnectionError, ErrorCode, FieldLimits, HpackError};

/// A fault in a head; the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    Malformed(&'static str),
    TooLarge,
}

/// Decodes a block. Returns `true` if the list was too large: its fields are incomplete then.
#[inline]
pub(super) fn decode(
    decoder: &mut Decoder,
    limits: &FieldLimits,
    block: &[u8],
    field: impl FnMut(&[u8], &[u8]),
) -> Result<bool, ConnectionError> {
    match decoder.decode(block, limits, field) {
        Ok(()) => Ok(false),
        Err(HpackError::ListTooLarge) => Ok(true),
        Err(error) => Err(broken(error)),
    }
}

#[cold]
fn broken(error: HpackError) -> ConnectionError {
    let reason = match error {
        HpackError::Truncated => "a header block ends in the middle of a field",
        HpackError::Integer => "a header block has an integer that is too large",
        HpackError::Huffman => "a header block has an invalid Huffman code",
        HpackError::Index => "a header block has an index that does not exist",
        HpackError::TableSize => "a header block changes the table size against the rules",
        HpackError::ListTooLarge => "a list of fields is too large",
    };
    ConnectionError::new(ErrorCode::CompressionError, reason)
}

/// Decodes the block of trailers (RFC 9113 section 8.1), and gives its fields to `field`.
pub(super) fn decode_trailers(
    decoder: &mut Decoder,
    limits: &FieldLimits,
    block: &[u8],
    mut field: impl FnMut(&[u8], &[u8]),
) -> Result<Result<(), HeadFault>, ConnectionError> {
    let mut found = Ok(());
    let large = decode(decoder, limits, block, |name, value| {
        field(name, value);
        if found.is_ok() {
            found = match name {
                [b':', ..] => Err("a pseudo-header field in trailers"),
                _ => check_field(name, value),
            };
        }
    })?;
    Ok(if large { Err(HeadFault::TooLarge) } else { found.map_err(HeadFault::Malformed) })
}

/// Decodes a block that is not needed: only the dynamic table has to follow it.
pub(super) fn decode_unused(
    decoder: &mut Decoder,
    limits: &FieldLimits,
    block: &[u8],
) -> Result<(), ConnectionError> {
    decode(decoder, limits, block, |_, _| ()).map(|_| ())
}

/// Remembers the last heads of a connection by their header blocks. A block that did not change the decoder's
/// table means the same again, byte for byte, as long as nothing else changes the table; this applies to
/// nearly every message of a load test, and the comparison costs a few nanoseconds.
#[derive(Debug)]
pub(super) struct HeadMemo<H> {
    /// The remembered heads, at most `ENTRIES`.
    entries: Vec<Remembered<H>>,
    /// The tag of each entry, side by side, because most lookups are decided by them.
    tags: [u64; ENTRIES],
    /// The entry that makes room for the next, once there are `ENTRIES`.
    oldest: usize,
}

/// Several, because the requests of a test may go to several resources in turn.
const ENTRIES: usize = 8;

/// Longer blocks are not remembered, so that a connection stays small; the usual ones have less than a
/// hundred bytes.
const BLOCK_BYTES: usize = 1024;

#[derive(Debug)]
struct Remembered<H> {
    block: Vec<u8>,
    epoch: u64,
    head: H,
}

impl<H> Default for HeadMemo<H> {
    fn default() -> Self {
        Self { entries: Vec::new(), tags: [0; ENTRIES], oldest: 0 }
    }
}

impl<H: Default> HeadMemo<H> {
    /// Returns the head of `block`, if it came before and the decoder is in the same epoch.
    #[inline]
    pub(super) fn recall(&self, block: &[u8], epoch: u64) -> Option<&H> {
        let tag = tag_of(block);
        let tagged = self.entries.iter().zip(&self.tags).filter(|(_, known)| **known == tag);
        tagged.map(|(entry, _)| entry).find(|e| e.epoch == epoch && e.block == block).map(|e| &e.head)
    }

    /// Remembers a block that left the decoder in the epoch that it found. `write` makes its head of that of
    /// another block, whose memory it may use.
    pub(super) fn remember(&mut self, block: &[u8], epoch: u64, write: impl FnOnce(&mut H)) {
        if block.len() > BLOCK_BYTES {
            return;
        }
        let at = self.entries.iter().position(|entry| entry.block == block).unwrap_or_else(|| self.room());
        self.tags[at] = tag_of(block);
        let entry = &mut self.entries[at];
        entry.block.clear();
        entry.block.extend_from_slice(block);
        write(&mut entry.head);
        entry.epoch = epoch;
    }

    /// An entry for another block: one more, or the oldest.
    fn room(&mut self) -> usize {
        if self.entries.len() < ENTRIES {
            self.entries.push(Remembered { block: Vec::new(), epoch: 0, head: H::default() });
            return self.entries.len() - 1;
        }
        let oldest = self.oldest;
        self.oldest = (oldest + 1) % ENTRIES;
        oldest
    }
}

/// The length and the last bytes, where blocks of one peer differ most: paths, lengths, dates and tags.
#[inline]
fn tag_of(block: &[u8]) -> u64 {
    let last = block.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    last ^ (block.len() as u64).rotate_right(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_recalled_in_its_epoch_only() {
        let mut memo = HeadMemo::default();
        assert_eq!(memo.recall(b"block", 1), None);
        memo.remember(b"block", 1, |head| *head = 7);
        assert_eq!(memo.recall(b"block", 1), Some(&7));
        assert_eq!(memo.recall(b"block", 2), None);
        assert_eq!(memo.recall(b"blocks", 1), None);
        assert_eq!(memo.recall(b"", 1), None);
        memo.remember(b"block", 2, |head| *head = 8);
        assert_eq!(memo.recall(b"block", 2), Some(&8));
        let long = [0; BLOCK_BYTES + 1];
        memo.remember(&long, 2, |head| *head = 9);
        assert_eq!(memo.recall(&long, 2), None);
    }

    #[test]
    fn the_last_blocks_are_remembered_however_alike_they_are() {
        let blocks: Vec<[u8; 9]> = (0..100).map(|first| [first, 0, 0, 0, 0, 0, 0, 0, 0]).collect();
        let mut memo = HeadMemo::default();
        for (number, block) in blocks.iter().enumerate() {
            memo.remember(block, 1, |head| *head = number);
            memo.remember(block, 2, |head| *head = number);
        }
        let kept: Vec<_> = blocks.iter().filter_map(|block| memo.recall(block, 2).copied()).collect();
        assert_eq!(kept, (100 - ENTRIES..100).collect::<Vec<_>>());
    }
}
