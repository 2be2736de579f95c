//! SHA-256, and the representation-independent hash of the interface specification, which is a message's
//! request id: it depends on the content of a message and not on its encoding.

use sha2::{Digest as _, Sha256};

/// A hash of SHA-256.
pub type Hash = [u8; 32];

/// The SHA-256 of several parts in a row.
pub(crate) fn sha256(parts: &[&[u8]]) -> Hash {
    let mut state = Sha256::new();
    parts.iter().for_each(|part| state.update(part));
    state.finalize().into()
}

/// A value that has a representation-independent hash ("Representation-independent hashing of structured
/// data" in the interface specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A blob.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
    /// A natural number.
    Number(u64),
    /// A sequence of sequences of blobs, as the paths of a `read_state` request are.
    Paths(&'a [&'a [&'a [u8]]]),
    /// A map.
    Map(&'a [(&'a str, Self)]),
}

impl Value<'_> {
    /// The hash of this value.
    pub fn hash(self) -> Hash {
        match self {
            Self::Bytes(bytes) => sha256(&[bytes]),
            Self::Text(text) => sha256(&[text.as_bytes()]),
            Self::Number(number) => hash_number(number),
            Self::Map(fields) => hash_of_map(fields),
            Self::Paths(paths) => {
                let mut state = Sha256::new();
                for path in paths {
                    let mut of_path = Sha256::new();
                    path.iter().for_each(|label| of_path.update(sha256(&[label])));
                    state.update(of_path.finalize());
                }
                state.finalize().into()
            }
        }
    }
}

/// The hash of a natural number: that of its unsigned LEB128 encoding.
fn hash_number(mut number: u64) -> Hash {
    // 64 bits, seven at a time.
    let mut leb128 = [0; 10];
    let mut length = 0;
    loop {
        // The low seven bits.
        let low = (number & 0x7f) as u8;
        number >>= 7;
        leb128[length] = if number == 0 { low } else { low | 0x80 };
        length += 1;
        if number == 0 {
            return sha256(&[&leb128[..length]]);
        }
    }
}

/// The hash of a map: that of the concatenated pairs of the hashes of key and value, in order.
pub fn hash_of_map(fields: &[(&str, Value<'_>)]) -> Hash {
    let mut pairs: Vec<[Hash; 2]> =
        fields.iter().map(|(key, value)| [sha256(&[key.as_bytes()]), value.hash()]).collect();
    pairs.sort_unstable();
    hash_of_pairs(&pairs)
}

/// The hash of a map whose pairs of hashes are in order already.
pub(crate) fn hash_of_pairs(pairs: &[[Hash; 2]]) -> Hash {
    sha256(&[pairs.as_flattened().as_flattened()])
}

#[cfg(test)]
mod tests {
    use plimsoll_core::text::hex;

    use super::*;

    /// The published example of the interface specification for request ids without the fields that came
    /// later.
    #[test]
    fn the_first_published_example_has_its_request_id() {
        let id = hash_of_map(&[
            ("request_type", Value::Text("call")),
            ("canister_id", Value::Bytes(&[0, 0, 0, 0, 0, 0, 4, 0xd2])),
            ("method_name", Value::Text("hello")),
            ("arg", Value::Bytes(b"DIDL\x00\xfd*")),
        ]);
        assert_eq!(hex(&id), "8781291c347db32a9d8c10eb62b710fce5a93be676474c42babc74c51858f94b");
    }

    #[test]
    fn numbers_are_hashed_as_leb128() {
        for (number, leb128) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (624_485, &[0xe5, 0x8e, 0x26]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            assert_eq!(Value::Number(number).hash(), sha256(&[leb128]), "{number}");
        }
    }
}
