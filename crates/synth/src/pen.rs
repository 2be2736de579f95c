//! Writing into a buffer that is used again.

/// A buffer of bytes, and how much of it is written. Room is made for whole columns or records at a time
/// ([`Pen::ensure`]), so that single pieces only compare and copy.
#[derive(Debug, Default)]
pub(crate) struct Pen {
    bytes: Vec<u8>,
    at: usize,
}

/// A message of protobuf that is being written: where its length belongs.
#[derive(Debug)]
#[must_use]
pub(crate) struct NestedMessage {
    length_at: usize,
    reserved: usize,
}

impl Pen {
    /// Starts over.
    pub(crate) fn clear(&mut self) {
        self.at = 0;
    }

    /// Returns the bytes written so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// Makes room for `more` bytes.
    pub(crate) fn ensure(&mut self, more: usize) {
        let needed = self.at + more;
        if self.bytes.len() < needed {
            self.bytes.resize(needed + needed / 2, 0);
        }
    }

    /// The room that was made and is not used yet; report the used part to [`Pen::advance`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// The first `count` bytes of the room are written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.at += count;
    }

    /// Appends bytes, making room for them.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.ensure(bytes.len());
        self.copy(bytes);
    }

    /// Appends bytes, for which there is room.
    #[inline]
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        self.bytes[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    /// Appends the first `used` bytes of a chunk, if there is room for all of it. The size is known to the
    /// compiler.
    #[inline]
    pub(crate) fn chunk<const WIDTH: usize>(&mut self, chunk: &[u8; WIDTH], used: usize) {
        self.bytes[self.at..self.at + WIDTH].copy_from_slice(chunk);
        self.at += used;
    }

    /// Begins a message of protobuf with the key `key`, whose length will probably take `reserved` bytes.
    /// There has to be room for them, the message and three bytes more.
    pub(crate) fn open(&mut self, key: u8, reserved: usize) -> NestedMessage {
        self.bytes[self.at] = key;
        let length_at = self.at + 1;
        self.at = length_at + reserved;
        NestedMessage { length_at, reserved }
    }

    /// Ends a message: its length is written, and the content is moved if it takes another number of bytes.
    pub(crate) fn close(&mut self, nest: &NestedMessage) {
        let begin = nest.length_at + nest.reserved;
        let mut length = self.at - begin;
        let needed = varint_length(length as u64);
        if needed != nest.reserved {
            self.ensure(4);
            self.bytes.copy_within(begin..self.at, nest.length_at + needed);
            self.at = nest.length_at + needed + length;
        }
        for byte in &mut self.bytes[nest.length_at..nest.length_at + needed] {
            *byte = length as u8 | 0x80;
            length >>= 7;
        }
        self.bytes[nest.length_at + needed - 1] &= 0x7f;
    }

    /// Appends a varint, if there is room for ten bytes.
    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.at] = value as u8 | 0x80;
            self.at += 1;
            value >>= 7;
        }
        self.bytes[self.at] = value as u8;
        self.at += 1;
    }
}

/// Returns the number of bytes that a varint takes: one for each seven bits.
pub(crate) fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (size, reserved) in [(0, 1), (127, 1), (128, 1), (20_000, 1), (20_000, 3), (5, 3), (2_097_152, 2)]
        {
            let mut pen = Pen::default();
            pen.ensure(size + 10);
            let nest = pen.open(0x0a, reserved);
            pen.put(&vec![7; size]);
            pen.close(&nest);
            let mut expected = Pen::default();
            expected.ensure(20);
            expected.varint(0x0a);
            expected.varint(size as u64);
            expected.put(&vec![7; size]);
            assert_eq!(pen.written(), expected.written(), "{size} in {reserved}");
        }
        assert_eq!([0, 127, 128, u64::MAX].map(varint_length), [1, 1, 2, 10]);
    }
}
