//! Writing messages of protocol buffers: as much of the encoding as two formats need.
//!
//! <https://protobuf.dev/programming-guides/encoding/>. Fields with the default value are left out, as the
//! encoding of proto3 does, except for those that a `oneof` or `optional` makes explicit.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// Types of fields on the wire.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The message behind its length, as it stands in a stream of them.
    pub(crate) fn delimited(self, out: &mut Vec<u8>) {
        push_varint(out, self.0.len() as u64);
        out.extend_from_slice(&self.0);
    }

    fn key(&mut self, field: u32, wire: u32) {
        push_varint(&mut self.0, u64::from(field << 3 | wire));
    }

    /// `uint64`, `uint32`, `bool` and enumerations.
    pub(crate) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, VARINT);
            push_varint(&mut self.0, value);
        }
    }

    /// `sint32` and `sint64`.
    pub(crate) fn signed(&mut self, field: u32, value: i64) {
        self.varint(field, zigzag(value));
    }

    /// `fixed64` and `sfixed64`, also if it is zero.
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// `double`, also if it is zero.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// `string`.
    pub(crate) fn text(&mut self, field: u32, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    /// A message within this one, also if it is empty.
    pub(crate) fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// `repeated sint64`, packed.
    pub(crate) fn packed_signed(&mut self, field: u32, values: impl Iterator<Item = i64>) {
        self.packed(field, values.map(zigzag));
    }

    /// `repeated uint64`, packed.
    pub(crate) fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let mut packed = Vec::new();
        values.for_each(|value| push_varint(&mut packed, value));
        if !packed.is_empty() {
            self.bytes(field, &packed);
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH);
        push_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Small numbers of both signs become small ones without.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The fields of a message: numbers and contents; it ends where the message does or breaks off.
pub(crate) fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let key = take_varint(&mut message)?;
        let field = match key as u32 & 7 {
            VARINT => Field::Number(take_varint(&mut message)?),
            FIXED64 => {
                let (fixed, rest) = message.split_first_chunk::<8>()?;
                message = rest;
                Field::Number(u64::from_le_bytes(*fixed))
            }
            LENGTH => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            5 => {
                let (fixed, rest) = message.split_first_chunk::<4>()?;
                message = rest;
                Field::Number(u32::from_le_bytes(*fixed).into())
            }
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// Of a number of any kind, its bits.
    Number(u64),
    /// A text or a message.
    Bytes(&'a [u8]),
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut message = Message::new();
        message.varint(1, 150);
        message.text(2, "testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
        let mut packed = Message::new();
        packed.packed(6, [3, 270, 86_942].into_iter());
        assert_eq!(packed.0, b"\x32\x06\x03\x8e\x02\x9e\xa7\x05");
        let pairs = [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)];
        assert!(pairs.iter().all(|&(value, expected)| zigzag(value) == expected));
    }

    #[test]
    fn what_is_written_is_read_and_what_is_cut_ends() {
        let mut inner = Message::new();
        inner.varint(1, u64::MAX);
        let mut message = Message::new();
        message.message(1, &inner);
        message.double(2, 0.5);
        let read: Vec<_> = fields(&message.0).collect();
        assert_eq!(read[1], (2, Field::Number(0.5_f64.to_bits())));
        let Field::Bytes(bytes) = read[0].1 else { panic!("{read:?}") };
        assert_eq!(fields(bytes).collect::<Vec<_>>(), [(1, Field::Number(u64::MAX))]);
        for end in 0..message.0.len() {
            assert!(fields(&message.0[..end]).count() < 2, "{end}");
        }
    }
}
