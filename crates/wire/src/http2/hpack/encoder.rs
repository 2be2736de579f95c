//! Literals and strings, as they are written.

use super::huffman;
use super::integer::put_integer;
use super::static_table::find_name;

/// The representation of a literal field (RFC 7541 section 6.2): the bits in front of the index of its name,
/// and the number of bits left for that index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Representation {
    first: u8,
    prefix_bits: u8,
}

impl Representation {
    /// With incremental indexing: the field enters the dynamic table (section 6.2.1).
    pub(crate) const INSERTED: Self = Self { first: 0x40, prefix_bits: 6 };
    /// Without indexing (section 6.2.2).
    pub(crate) const PLAIN: Self = Self { first: 0, prefix_bits: 4 };
    /// Never indexed, not by any intermediary either (section 6.2.3).
    pub(crate) const NEVER_INDEXED: Self = Self { first: 0x10, prefix_bits: 4 };
}

/// Appends a string: Huffman-coded if that makes it shorter, else as it is (RFC 7541 section 5.2). It reads
/// each byte twice, so it is meant for strings that are encoded once.
pub fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let coded = huffman::encoded_len(bytes);
    if coded < bytes.len() {
        put_integer(out, 7, 0x80, coded as u64);
        huffman::encode(bytes, out);
    } else {
        put_integer(out, 7, 0, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// Appends a literal field that does not enter the dynamic table (RFC 7541 sections 6.2.2 and 6.2.3). The
/// name has to be in lower case (RFC 9113 section 8.2.1); it is an index if the static table has it.
pub fn put_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8], never_indexed: bool) {
    let representation = if never_indexed { Representation::NEVER_INDEXED } else { Representation::PLAIN };
    put_literal_name(out, name, representation);
    put_string(out, value);
}

/// Appends a literal field up to its value.
pub(crate) fn put_literal_name(out: &mut Vec<u8>, name: &[u8], representation: Representation) {
    let Representation { first, prefix_bits } = representation;
    match find_name(name) {
        Some(index) => put_integer(out, prefix_bits, first, u64::from(index)),
        None => {
            out.push(first);
            put_string(out, name);
        }
    }
}

/// Appends a field that a table has (RFC 7541 section 6.1).
#[inline]
pub(crate) fn put_indexed(out: &mut Vec<u8>, index: u32) {
    put_integer(out, 7, 0x80, u64::from(index));
}

/// Appends a dynamic table size update (RFC 7541 section 6.3), which may stand at the start of a block only.
pub(crate) fn put_size_update(out: &mut Vec<u8>, size: u32) {
    put_integer(out, 5, 0x20, u64::from(size));
}

/// Appends a string that is not Huffman-coded and is written by `render`, which may only append to the vector
/// that it is given.
#[inline]
pub(crate) fn put_rendered(out: &mut Vec<u8>, render: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    render(out);
    let length = out.len() - at - 1;
    if length < 0x7f {
        out[at] = length as u8;
    } else {
        lengthen(out, at, length);
    }
}

/// Puts `length` where one byte was left for it, and moves the bytes behind it.
#[cold]
fn lengthen(out: &mut Vec<u8>, at: usize, length: usize) {
    let mut integer = Vec::with_capacity(10);
    put_integer(&mut integer, 7, 0, length as u64);
    out.splice(at..=at, integer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_coded_only_if_that_is_shorter() {
        let written = |text: &[u8]| {
            let mut out = Vec::new();
            put_string(&mut out, text);
            out
        };
        assert_eq!(written(b""), [0]);
        assert_eq!(written(b"a"), [1, b'a']);
        assert_eq!(written(b"302"), [0x82, 0x64, 0x02]);
        assert_eq!(written(b"{}"), [2, b'{', b'}']);
    }

    #[test]
    fn rendered_strings_have_their_length_in_front_however_long_they_are() {
        for length in [0, 1, 126, 127, 128, 254, 255, 5000, 20_000] {
            let mut out = b"before".to_vec();
            put_rendered(&mut out, |out| out.resize(out.len() + length, b'v'));
            let mut expected = b"before".to_vec();
            put_integer(&mut expected, 7, 0, length as u64);
            expected.resize(expected.len() + length, b'v');
            assert_eq!(out, expected, "{length} bytes");
        }
    }

    #[test]
    fn names_of_the_static_table_are_indices() {
        let written = |name: &[u8], never_indexed| {
            let mut out = Vec::new();
            put_literal(&mut out, name, b"", never_indexed);
            out
        };
        assert_eq!(written(b":path", false), [4, 0]);
        assert_eq!(written(b"accept-encoding", false), [0x0f, 1, 0]);
        assert_eq!(written(b"authorization", true), [0x1f, 8, 0]);
        assert_eq!(written(b"{}", false), [0, 2, b'{', b'}', 0]);
    }
}
