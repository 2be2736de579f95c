//! Random words that cannot be guessed.

use std::fs::File;
use std::io::{self, Read as _};

use plimsoll_core::text::hex;
use subtle::ConstantTimeEq as _;

/// Bytes of a token and of a session: 256 bits.
pub(crate) const SECRET_BYTES: usize = 32;

/// Returns this many random bytes of the system, as hexadecimal digits.
///
/// # Errors
/// The system gives none.
pub(crate) fn random_hex(bytes: usize) -> io::Result<String> {
    let mut drawn = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    Ok(hex(&drawn))
}

/// Returns `true` if both words are the same, after a time that depends on their lengths only.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_drawn_anew_and_have_their_length() {
        let drawn: Vec<String> = (0..8).map(|_| random_hex(SECRET_BYTES).unwrap()).collect();
        assert!(drawn.iter().all(|word| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit())));
        let mut distinct = drawn.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), drawn.len());
    }

    #[test]
    fn words_of_other_lengths_differ() {
        assert!(is_same("abc", "abc") && is_same("", ""));
        for (one, other) in [("abc", "abd"), ("abc", "ab"), ("", "a"), ("abc", "abcabc")] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
