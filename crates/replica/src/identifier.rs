//! Ids of items: UUIDs.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Mutex;

use plimsoll_core::Random;

/// Parses a UUID into a number; `None` if it is invalid. Hyphens stand where they have to, digits
/// are of either case.
pub(crate) fn parse(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 || [8, 13, 18, 23].iter().any(|&at| bytes[at] != b'-') {
        return None;
    }
    let mut id = 0_u128;
    for (at, &byte) in bytes.iter().enumerate() {
        if ![8, 13, 18, 23].contains(&at) {
            id = id << 4 | u128::from((byte as char).to_digit(16)?);
        }
    }
    Some(id)
}

/// The way in which an id is written.
pub(crate) fn format(id: u128) -> String {
    let [time, middle, high, clock] =
        [(id >> 96) as u32, (id >> 80) as u32, (id >> 64) as u32, (id >> 48) as u32];
    let node = id as u64 & 0xffff_ffff_ffff;
    format!("{time:08x}-{:04x}-{:04x}-{:04x}-{node:012x}", middle as u16, high as u16, clock as u16)
}

/// Makes new ids, version 4. They differ from those of any other process: the seed is the system's.
#[derive(Debug)]
pub(crate) struct Identifiers(Mutex<Random>);

impl Identifiers {
    pub(crate) fn new() -> Self {
        // The one source of the system's random numbers in the standard library.
        let draw = |salt: u8| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u8(salt);
            hasher.finish()
        };
        Self(Mutex::new(Random::new(draw(0), draw(1))))
    }

    pub(crate) fn next(&self) -> u128 {
        let mut random = self.0.lock().expect("no panic while it is locked");
        let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
        // RFC 9562, 5.4: the version is 4, the variant 10.
        bits & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.lock().expect("no panic while it is locked").below(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let text = "01234567-89ab-4def-8123-456789abcdef";
        assert_eq!(format(parse(text).unwrap()), text);
        assert_eq!(parse(&text.to_uppercase()), parse(text));
        for bad in ["", "01234567-89ab-4def-8123-456789abcde", "0123456789ab-4def-8123-456789abcdef0-", "é"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&text.replace('f', "g")), None);
    }

    #[test]
    fn new_ids_are_of_version_4_and_differ() {
        let ids = Identifiers::new();
        let (one, other) = (ids.next(), Identifiers::new().next());
        assert_ne!(one, other);
        assert_ne!(one, ids.next());
        let text = format(one);
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]), "{text}");
    }
}
