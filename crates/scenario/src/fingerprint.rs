//! A hash that means the same in every version.

use std::fmt;

/// FNV-1a with 128 bits (Fowler, Noll, Vo; RFC 9923): identifies the plan of a stored run.
///
/// Written out because the standard library's hasher may change between versions of Rust, and a stored run
/// must stay comparable. It distinguishes plans, and does not protect against forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The offset basis of the 128-bit variant: the hash of nothing.
    pub const EMPTY: Self = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    /// The prime of the 128-bit variant.
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    /// This hash, continued over `bytes`.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
        self
    }

    /// This hash, continued over one field: its length and its bytes, so that `ab`,`c` and `a`,`bc` differ.
    #[must_use]
    pub fn with_field(self, bytes: &[u8]) -> Self {
        self.with(&(bytes.len() as u64).to_le_bytes()).with(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_test_vectors_of_fnv1a_128() {
        // Fowler, Noll and Vo publish these for the strings "" , "a" and "foobar".
        for (text, hash) in [
            ("", "6c62272e07bb014262b821756295c58d"),
            ("a", "d228cb696f1a8caf78912b704e4a8964"),
            ("foobar", "343e1662793c64bf6f0d3597ba446f18"),
        ] {
            assert_eq!(Fingerprint::EMPTY.with(text.as_bytes()).to_string(), hash, "{text:?}");
        }
    }

    #[test]
    fn the_border_between_fields_counts() {
        let of = |a: &str, b: &str| Fingerprint::EMPTY.with_field(a.as_bytes()).with_field(b.as_bytes());
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }
}
