//! CBOR (RFC 8949), as far as messages of the Internet Computer use it: a reader that borrows, allocates
//! nothing and bounds how deep it looks, and a writer of canonical heads.

use std::fmt;

/// Tags that may follow each other.
const MAX_TAGS: usize = 4;
/// Indefinite-length containers that may be open at a time while something is skipped.
const MAX_INDEFINITE: usize = 16;
/// The tag of self-described CBOR (RFC 8949 section 3.4.6), encoded.
pub(crate) const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Reason why bytes are not the CBOR that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Byte offset at which the problem was found.
    pub at: usize,
    /// Description of the problem, without the position.
    pub problem: &'static str,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.at)
    }
}

impl std::error::Error for Undecodable {}

/// One data item, or the head of one that contains others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A natural number.
    Unsigned(u64),
    /// The number `-1 - n`.
    Negative(u64),
    /// A byte string.
    Bytes(&'a [u8]),
    /// A text string, whose UTF-8 was not checked.
    Text(&'a [u8]),
    /// An array of this many items, or of all up to a [`Break`](Self::Break).
    Array(Option<u64>),
    /// A map of this many pairs, or of all up to a [`Break`](Self::Break).
    Map(Option<u64>),
    /// A tag; the tagged item follows.
    Tag(u64),
    /// A simple value or a float, as its bits.
    Simple(u64),
    /// The end of a container of indefinite length.
    Break,
}

/// Reads one item after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read so far.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// An error at this place.
    pub const fn error(&self, problem: &'static str) -> Undecodable {
        Undecodable { at: self.at, problem }
    }

    #[inline]
    fn take(&mut self, length: u64) -> Result<&'a [u8], Undecodable> {
        let rest = self.rest();
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.error("the bytes end within a CBOR item")),
        }
    }

    /// The next item. A string is read whole, of a container only its head.
    ///
    /// # Errors
    /// The bytes end, or are not CBOR; strings of indefinite length, which do not occur here, are refused.
    #[inline]
    pub fn next_item(&mut self) -> Result<Item<'a>, Undecodable> {
        let Some(&initial) = self.bytes.get(self.at) else {
            return Err(self.error("the bytes end where a CBOR item is expected"));
        };
        let (major, info) = (initial >> 5, initial & 31);
        let head = self.at;
        self.at += 1;
        let argument = match info {
            0..24 => Some(u64::from(info)),
            24..28 => {
                let bytes = self.take(1 << (info - 24))?;
                Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
            }
            31 => None,
            _ => return Err(Undecodable { at: head, problem: "a reserved length of a CBOR item" }),
        };
        Ok(match (major, argument) {
            (0, Some(number)) => Item::Unsigned(number),
            (1, Some(number)) => Item::Negative(number),
            (2, Some(length)) => Item::Bytes(self.take(length)?),
            (3, Some(length)) => Item::Text(self.take(length)?),
            (4, length) => Item::Array(length),
            (5, length) => Item::Map(length),
            (6, Some(tag)) => Item::Tag(tag),
            (7, Some(bits)) => Item::Simple(bits),
            (7, None) => Item::Break,
            _ => return Err(Undecodable { at: head, problem: "a CBOR string of indefinite length" }),
        })
    }

    /// The next item behind any tags.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item).
    #[inline]
    pub fn untagged(&mut self) -> Result<Item<'a>, Undecodable> {
        for _ in 0..=MAX_TAGS {
            match self.next_item()? {
                Item::Tag(_) => {}
                item => return Ok(item),
            }
        }
        Err(self.error("CBOR tags without an end"))
    }

    /// Passes over one whole item with all that it contains.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); more than 16 containers of indefinite length in each other.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Undecodable> {
        // Items that are still promised, up to the innermost open container of indefinite length. Definite
        // containers need no stack: they only add items.
        let mut promised: u64 = 1;
        let mut open = [0_u64; MAX_INDEFINITE];
        let mut depth = 0;
        loop {
            let item = self.next_item()?;
            if item == Item::Break {
                if depth == 0 || promised > 0 {
                    return Err(self.error("a CBOR break where no container can end"));
                }
                depth -= 1;
                promised = open[depth];
            } else {
                promised = promised.saturating_sub(1);
                promised = promised.saturating_add(match item {
                    Item::Array(Some(items)) => items,
                    Item::Map(Some(pairs)) => pairs.saturating_mul(2),
                    Item::Tag(_) => 1,
                    Item::Array(None) | Item::Map(None) => {
                        let place = open.get_mut(depth);
                        *place.ok_or(self.error("CBOR containers too deep in each other"))? = promised;
                        depth += 1;
                        promised = 0;
                        continue;
                    }
                    _ => 0,
                });
            }
            if depth == 0 && promised == 0 {
                return Ok(());
            }
        }
    }

    /// Calls `see` with each key of the map that comes next, behind any tags, and this reader before the
    /// value, until `see` gives something. `see` must not read past the value; unread bytes are skipped. Keys
    /// that are not text are skipped with their values.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); the item is not a map; errors of `see`.
    #[inline]
    pub fn each<T>(
        &mut self,
        mut see: impl FnMut(&'a [u8], Self) -> Result<Option<T>, Undecodable>,
    ) -> Result<Option<T>, Undecodable> {
        let Item::Map(pairs) = self.untagged()? else { return Err(self.error("no CBOR map")) };
        let mut left = pairs.unwrap_or(u64::MAX);
        while left > 0 {
            left -= 1;
            let before = *self;
            match self.next_item()? {
                Item::Text(key) => {
                    if let Some(seen) = see(key, *self)? {
                        return Ok(Some(seen));
                    }
                }
                Item::Break if pairs.is_none() => break,
                _ => {
                    *self = before;
                    self.skip()?;
                }
            }
            self.skip()?;
        }
        Ok(None)
    }

    /// A text that comes next, behind any tags.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); it is something else, or no UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Undecodable> {
        match self.untagged()? {
            Item::Text(text) => str::from_utf8(text).map_err(|_| self.error("a CBOR text that is not UTF-8")),
            _ => Err(self.error("no CBOR text")),
        }
    }

    /// A byte string that comes next, behind any tags.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); it is something else.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Undecodable> {
        match self.untagged()? {
            Item::Bytes(bytes) => Ok(bytes),
            _ => Err(self.error("no CBOR byte string")),
        }
    }

    /// A natural number that comes next, behind any tags.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item); it is something else.
    pub fn number(&mut self) -> Result<u64, Undecodable> {
        match self.untagged()? {
            Item::Unsigned(number) => Ok(number),
            _ => Err(self.error("no natural number in CBOR")),
        }
    }

    /// Reads the head of the next array, behind any tags, and returns its number of items.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item). Anything other than an array is an error, and so is an array of
    /// indefinite length.
    pub fn array(&mut self) -> Result<u64, Undecodable> {
        match self.untagged()? {
            Item::Array(Some(items)) => Ok(items),
            _ => Err(self.error("no CBOR array of a known length")),
        }
    }
}

/// Finds the value under these keys, from the outermost map inwards: a reader that is about to read it.
///
/// # Errors
/// The bytes up to there are not CBOR, or a value on the way is not a map.
pub fn find<'a>(bytes: &'a [u8], path: &[&str]) -> Result<Option<Reader<'a>>, Undecodable> {
    let mut reader = Reader::new(bytes);
    for wanted in path {
        let found = reader.each(|key, value| Ok((key == wanted.as_bytes()).then_some(value)))?;
        match found {
            Some(value) => reader = value,
            None => return Ok(None),
        }
    }
    Ok(Some(reader))
}

/// Appends the shortest head of this major type and argument (RFC 8949 section 3).
#[inline]
fn write_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let major = major << 5;
    let bytes = argument.to_be_bytes();
    match argument {
        // Each `as` keeps what the pattern has room for.
        0..24 => out.push(major | argument as u8),
        24..0x100 => out.extend_from_slice(&[major | 24, argument as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend_from_slice(&bytes[6..]);
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a natural number.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    write_head(out, 0, number);
}

/// Appends a byte string.
pub fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_head(out, 2, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a text.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, 3, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the head of an array.
pub fn write_array(out: &mut Vec<u8>, items: u64) {
    write_head(out, 4, items);
}

/// Appends the head of a map.
pub fn write_map(out: &mut Vec<u8>, pairs: u64) {
    write_head(out, 5, pairs);
}

/// Appends the tag that says that CBOR follows.
pub fn write_self_described(out: &mut Vec<u8>) {
    out.extend_from_slice(&SELF_DESCRIBED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(bytes: &[u8]) -> Result<usize, &'static str> {
        let mut reader = Reader::new(bytes);
        reader.skip().map(|()| reader.position()).map_err(|error| error.problem)
    }

    /// Examples of RFC 8949, appendix A.
    #[test]
    fn items_of_the_standard() {
        for (bytes, item) in [
            (&[0x00][..], Item::Unsigned(0)),
            (&[0x17], Item::Unsigned(23)),
            (&[0x18, 0x18], Item::Unsigned(24)),
            (&[0x19, 0x03, 0xe8], Item::Unsigned(1000)),
            (&[0x1a, 0x00, 0x0f, 0x42, 0x40], Item::Unsigned(1_000_000)),
            (&[0x1b, 0, 0, 0, 0xe8, 0xd4, 0xa5, 0x10, 0x00], Item::Unsigned(1_000_000_000_000)),
            (&[0x29], Item::Negative(9)),
            (&[0x44, 1, 2, 3, 4], Item::Bytes(&[1, 2, 3, 4])),
            (&[0x64, 0x49, 0x45, 0x54, 0x46], Item::Text(b"IETF")),
            (&[0x83], Item::Array(Some(3))),
            (&[0xbf], Item::Map(None)),
            (&[0xf5], Item::Simple(21)),
            (&[0xff], Item::Break),
        ] {
            assert_eq!(Reader::new(bytes).next_item(), Ok(item), "{bytes:x?}");
            if let Item::Unsigned(number) = item {
                let mut out = Vec::new();
                write_number(&mut out, number);
                assert_eq!(out, bytes);
            }
        }
    }

    #[test]
    fn whole_items_are_passed_over_whatever_they_contain() {
        for bytes in [
            &[0x83, 1, 0x82, 2, 3, 0x82, 4, 5][..],
            &[0x9f, 1, 0x82, 2, 3, 0x9f, 4, 5, 0xff, 0xff],
            &[0x83, 1, 0x82, 2, 3, 0x9f, 4, 5, 0xff],
            &[0xbf, 0x61, 0x61, 1, 0x61, 0x62, 0x9f, 2, 3, 0xff, 0xff],
            &[0xd9, 0xd9, 0xf7, 0xa1, 0x61, 0x61, 0xf6],
            &[0x9f, 0xff],
            &[0x80],
        ] {
            let with_more = [bytes, &[0, 0]].concat();
            assert_eq!(skipped(&with_more), Ok(bytes.len()), "{bytes:x?}");
            for length in 0..bytes.len() {
                assert!(skipped(&bytes[..length]).is_err(), "{bytes:x?} up to {length}");
            }
        }
        assert!(skipped(&[0xff]).unwrap_err().contains("break"));
        assert!(skipped(&[0x82, 0xff, 0]).unwrap_err().contains("break"));
        assert!(skipped(&[0x9f; 100]).unwrap_err().contains("too deep"));
        assert!(skipped(&[0x81; 100_000]).is_err(), "and takes no stack for it");
        assert!(skipped(&[0x5f, 0x41, 0, 0xff]).unwrap_err().contains("indefinite"));
        assert!(skipped(&[0x9b, 255, 255, 255, 255, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn values_are_found_by_their_path() {
        // {1: 2, "a": {"b": 7}, "c": [..]} with the tag of CBOR.
        let bytes = [0xd9, 0xd9, 0xf7, 0xa3, 1, 2, 0x61, b'a', 0xa1, 0x61, b'b', 7, 0x61, b'c', 0x80];
        assert_eq!(find(&bytes, &["a", "b"]).unwrap().unwrap().number(), Ok(7));
        assert_eq!(find(&bytes, &["c"]).unwrap().unwrap().array(), Ok(0));
        assert!(find(&bytes, &["a", "c"]).unwrap().is_none());
        assert!(find(&bytes, &["c", "b"]).unwrap_err().to_string().starts_with("no CBOR map at byte"));
        assert!(find(&bytes[..9], &["a", "b"]).is_err());
    }
}
