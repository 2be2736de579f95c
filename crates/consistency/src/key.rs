//! Keys that tell items apart.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The id of an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A UUID (RFC 9562) in its usual spelling.
    Uuid([u8; 16]),
    /// Any other text.
    Text(Box<str>),
}

impl Key {
    pub(crate) fn new(text: &[u8]) -> Self {
        match uuid(text) {
            Some(uuid) => Self::Uuid(uuid),
            None => Self::Text(String::from_utf8_lossy(text).into()),
        }
    }

    /// Reads a key from the last segment of a path, which may be percent-encoded.
    pub(crate) fn of_segment(segment: &str) -> Self {
        let (mut bytes, mut rest) = (Vec::with_capacity(segment.len()), segment.as_bytes());
        while let Some((&byte, after)) = rest.split_first() {
            let digit = |at: usize| after.get(at).and_then(|&digit| char::from(digit).to_digit(16));
            match (byte, digit(0).zip(digit(1))) {
                (b'%', Some((high, low))) => {
                    bytes.push((high << 4 | low) as u8);
                    rest = &after[2..];
                }
                _ => {
                    bytes.push(byte);
                    rest = after;
                }
            }
        }
        Self::new(&bytes)
    }

    /// A hash of it, always the same.
    pub(crate) fn hash64(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                    write!(f, "{hyphen}{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// The bytes of a UUID, if the text is their canonical form.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let (mut bytes, mut at) = ([0; 16], 0);
    for (place, &character) in text.iter().enumerate() {
        if matches!(place, 8 | 13 | 18 | 23) {
            if character != b'-' {
                return None;
            }
            continue;
        }
        let digit = match character {
            b'0'..=b'9' => character - b'0',
            b'a'..=b'f' => character - b'a' + 10,
            _ => return None,
        };
        bytes[at / 2] = bytes[at / 2] << 4 | digit;
        at += 1;
    }
    Some(bytes)
}

/// A map from keys, which takes little for a UUID.
#[derive(Clone, Debug)]
pub(crate) struct KeyMap<V> {
    uuids: HashMap<[u8; 16], V>,
    texts: HashMap<Box<str>, V>,
}

impl<V> Default for KeyMap<V> {
    fn default() -> Self {
        Self { uuids: HashMap::new(), texts: HashMap::new() }
    }
}

impl<V> KeyMap<V> {
    pub(crate) fn get(&self, key: &Key) -> Option<&V> {
        match key {
            Key::Uuid(uuid) => self.uuids.get(uuid),
            Key::Text(text) => self.texts.get(text),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut V> {
        match key {
            Key::Uuid(uuid) => self.uuids.get_mut(uuid),
            Key::Text(text) => self.texts.get_mut(text),
        }
    }

    pub(crate) fn insert(&mut self, key: &Key, value: V) -> Option<V> {
        match key {
            Key::Uuid(uuid) => self.uuids.insert(*uuid, value),
            Key::Text(text) => self.texts.insert(text.clone(), value),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &V)> {
        let uuids = self.uuids.iter().map(|(uuid, value)| (Key::Uuid(*uuid), value));
        uuids.chain(self.texts.iter().map(|(text, value)| (Key::Text(text.clone()), value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_they_were_read() {
        for text in
            ["0192f0c1-aaaa-7bbb-8ccc-0123456789ab", "0192F0C1-aaaa-7bbb-8ccc-0123456789ab", "7", "a/b"]
        {
            assert_eq!(Key::new(text.as_bytes()).to_string(), text);
        }
        assert!(matches!(Key::new(b"0192f0c1-aaaa-7bbb-8ccc-0123456789ab"), Key::Uuid(_)));
        assert!(matches!(Key::new(b"0192f0c1-aaaa-7bbb-8ccc-0123456789a"), Key::Text(_)));
        assert!(matches!(Key::new(b"0192f0c1xaaaa-7bbb-8ccc-0123456789ab"), Key::Text(_)));
        assert_eq!(Key::of_segment("a%2Fb%"), Key::new(b"a/b%"));
    }
}
