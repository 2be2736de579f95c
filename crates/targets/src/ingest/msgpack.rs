//! A walk over MessagePack (<https://github.com/msgpack/msgpack/blob/master/spec.md>): one item after the
//! other, without copies and without a tree.

use std::fmt;

use super::column::Value;

/// Reason why bytes are not MessagePack, in the words of the real server's decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// The bytes end within an item, or there are none.
    End,
    /// The one code that means nothing.
    UnknownCode(u8),
    /// A key that is not a text begins with this.
    NoText(u8),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("unexpected EOF"),
            Self::UnknownCode(code) => write!(f, "msgpack: unknown code {code:x} decoding interface{{}}"),
            Self::NoText(code) => {
                write!(f, "msgpack: invalid code={code:x} decoding string/bytes length")
            }
        }
    }
}

/// One item; for an array or a map its head, whose items follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Item<'a> {
    /// A value, and the real server's name of its type.
    Value(Value<'a>, &'static str),
    /// An extension type, which has no place in a store.
    Extension,
    /// An array; this many items follow.
    Array(usize),
    /// A map; this many pairs follow.
    Map(usize),
}

impl Item<'_> {
    /// Returns the real server's name for its type.
    pub(crate) const fn go_type(&self) -> &'static str {
        match self {
            Self::Value(_, go_type) => go_type,
            Self::Extension => "time.Time",
            Self::Array(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
        }
    }

    /// Items that belong to it and follow it.
    const fn inside(&self) -> u64 {
        match self {
            Self::Value(..) | Self::Extension => 0,
            Self::Array(count) => *count as u64,
            Self::Map(count) => 2 * *count as u64,
        }
    }
}

/// Reads one item after the other. A copy goes on from the same place by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are left: no more items than that can follow.
    pub(crate) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next item.
    #[inline]
    pub(crate) fn item(&mut self) -> Result<Item<'a>, Malformed> {
        let (&code, rest) = self.rest.split_first().ok_or(Malformed::End)?;
        self.rest = rest;
        let int = |int: i64, go_type| Item::Value(Value::Int(int), go_type);
        Ok(match code {
            0x00..=0x7f => int(i64::from(code), "int8"),
            0xe0..=0xff => int(i64::from(code as i8), "int8"),
            0xa0..=0xbf => self.text(usize::from(code & 0x1f))?,
            0xcb => Item::Value(Value::Float(f64::from_be_bytes(self.array()?)), "float64"),
            0xca => Item::Value(Value::Float(f64::from(f32::from_be_bytes(self.array()?))), "float32"),
            0xcf => match u64::from_be_bytes(self.array()?) {
                large if large > i64::MAX as u64 => Item::Value(Value::Large(large), "uint64"),
                number => int(number as i64, "uint64"),
            },
            0xd3 => int(i64::from_be_bytes(self.array()?), "int64"),
            0xce => int(i64::from(u32::from_be_bytes(self.array()?)), "uint32"),
            0xd2 => int(i64::from(i32::from_be_bytes(self.array()?)), "int32"),
            0xcd => int(i64::from(u16::from_be_bytes(self.array()?)), "uint16"),
            0xd1 => int(i64::from(i16::from_be_bytes(self.array()?)), "int16"),
            0xcc => int(i64::from(u8::from_be_bytes(self.array()?)), "uint8"),
            0xd0 => int(i64::from(i8::from_be_bytes(self.array()?)), "int8"),
            0xc0 => Item::Value(Value::Null, "<nil>"),
            0xc2 => Item::Value(Value::Bool(false), "bool"),
            0xc3 => Item::Value(Value::Bool(true), "bool"),
            0xd9..=0xdb | 0xc4..=0xc6 => {
                let length = self.length(code)?;
                self.text(length)?
            }
            0x80..=0x8f => Item::Map(usize::from(code & 0x0f)),
            0x90..=0x9f => Item::Array(usize::from(code & 0x0f)),
            0xdc | 0xdd => Item::Array(self.length(code)?),
            0xde | 0xdf => Item::Map(self.length(code)?),
            0xd4..=0xd8 => {
                // A byte that says which type it is, and 1 to 16 bytes of data.
                self.take(1 + (1 << (code - 0xd4)))?;
                Item::Extension
            }
            0xc7..=0xc9 => {
                let length = self.length(code)?;
                self.take(1)?;
                self.take(length)?;
                Item::Extension
            }
            0xc1 => return Err(Malformed::UnknownCode(code)),
        })
    }

    /// Takes floats of 64 bits as long as one follows another, at most `most`; returns their number.
    pub(crate) fn floats(&mut self, most: usize, out: &mut Vec<f64>) -> usize {
        let mut taken = 0;
        while taken < most
            && let Some(([0xcb, bytes @ ..], rest)) = self.rest.split_first_chunk::<9>()
        {
            out.push(f64::from_be_bytes(*bytes));
            self.rest = rest;
            taken += 1;
        }
        taken
    }

    /// Takes whole numbers, of 64 bits or small, as long as one follows another, at most `most`; returns
    /// their number.
    pub(crate) fn ints(&mut self, most: usize, out: &mut Vec<i64>) -> usize {
        let mut taken = 0;
        while taken < most {
            match self.rest {
                [small @ 0x00..=0x7f, rest @ ..] => {
                    out.push(i64::from(*small));
                    self.rest = rest;
                }
                [code @ (0xcf | 0xd3), rest @ ..] => {
                    let Some((bytes, rest)) = rest.split_first_chunk() else { break };
                    let number = i64::from_be_bytes(*bytes);
                    // Above what an `i64` holds.
                    if *code == 0xcf && number < 0 {
                        break;
                    }
                    out.push(number);
                    self.rest = rest;
                }
                _ => break,
            }
            taken += 1;
        }
        taken
    }

    /// Takes texts of fewer than 32 bytes as long as one follows another, at most `most`; returns their
    /// number. `bytes` gets the texts, one behind the other, and `ends` where each of them ends.
    pub(crate) fn short_texts(&mut self, most: usize, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) -> usize {
        let mut taken = 0;
        while taken < most
            && let [code @ 0xa0..=0xbf, rest @ ..] = self.rest
            && let Some((text, rest)) = rest.split_at_checked(usize::from(code & 0x1f))
        {
            bytes.extend_from_slice(text);
            ends.push(bytes.len() as u32);
            self.rest = rest;
            taken += 1;
        }
        taken
    }

    /// A text where nothing else may be: the key of a map.
    pub(crate) fn key(&mut self) -> Result<&'a [u8], Malformed> {
        let code = self.rest.first().copied().ok_or(Malformed::End)?;
        match self.item()? {
            Item::Value(Value::Text(text), _) => Ok(text),
            _ => Err(Malformed::NoText(code)),
        }
    }

    /// The next item with all that is in it, which is passed over.
    pub(crate) fn whole(&mut self) -> Result<Item<'a>, Malformed> {
        let item = self.item()?;
        self.pass_over(&item)?;
        Ok(item)
    }

    /// Skips the contents of an item. Each item has at least a byte, so this ends.
    pub(crate) fn pass_over(&mut self, item: &Item<'_>) -> Result<(), Malformed> {
        let mut due = item.inside();
        while due > 0 {
            if due > self.rest.len() as u64 {
                return Err(Malformed::End);
            }
            due = due - 1 + self.item()?.inside();
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, length: usize) -> Result<Item<'a>, Malformed> {
        Ok(Item::Value(Value::Text(self.take(length)?), "string"))
    }

    /// The length behind one of the codes that have one.
    fn length(&mut self, code: u8) -> Result<usize, Malformed> {
        Ok(match code {
            0xc4 | 0xc7 | 0xd9 => usize::from(u8::from_be_bytes(self.array()?)),
            0xc5 | 0xc8 | 0xda | 0xdc | 0xde => usize::from(u16::from_be_bytes(self.array()?)),
            _ => u32::from_be_bytes(self.array()?) as usize,
        })
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::End)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::End)?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes a value with a foreign encoder, and reads the item back.
    fn read(value: &rmpv::Value) -> Item<'static> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        let bytes: &'static [u8] = bytes.leak();
        let mut reader = Reader::new(bytes);
        let item = reader.item().unwrap();
        if item.inside() == 0 {
            assert_eq!(reader.left(), 0, "{value}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(Reader::new(&bytes[..cut]).whole(), Err(Malformed::End), "{value} cut at {cut}");
        }
        item
    }

    #[test]
    fn every_form_of_the_specification_is_read() {
        for number in
            [0, 1, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, i64::MAX as u64]
        {
            assert!(matches!(read(&number.into()), Item::Value(Value::Int(int), _) if int == number as i64));
        }
        for number in
            [-1, -32, -33, -128, -129, -32_768, -32_769, i64::from(i32::MIN), i64::from(i32::MIN) - 1]
        {
            assert!(matches!(read(&number.into()), Item::Value(Value::Int(int), _) if int == number));
        }
        assert_eq!(read(&u64::MAX.into()), Item::Value(Value::Large(u64::MAX), "uint64"));
        assert_eq!(read(&rmpv::Value::F32(1.5)), Item::Value(Value::Float(1.5), "float32"));
        assert_eq!(read(&rmpv::Value::F64(-2.5)), Item::Value(Value::Float(-2.5), "float64"));
        assert_eq!(read(&rmpv::Value::Nil), Item::Value(Value::Null, "<nil>"));
        assert_eq!(read(&true.into()), Item::Value(Value::Bool(true), "bool"));
        for length in [0, 1, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "é".repeat(length / 2) + &"x".repeat(length % 2);
            assert_eq!(read(&text.clone().into()), Item::Value(Value::Text(text.as_bytes()), "string"));
            let bytes = vec![7; length];
            assert_eq!(read(&bytes.clone().into()), Item::Value(Value::Text(&bytes), "string"));
            let items = vec![rmpv::Value::Nil; length.min(300)];
            assert_eq!(read(&rmpv::Value::Array(items.clone())), Item::Array(items.len()));
            let pairs = items.into_iter().map(|item| ("k".into(), item)).collect::<Vec<_>>();
            assert_eq!(read(&rmpv::Value::Map(pairs.clone())), Item::Map(pairs.len()));
        }
        for length in [1, 2, 3, 4, 8, 16, 17, 255, 256] {
            assert_eq!(read(&rmpv::Value::Ext(5, vec![0; length])), Item::Extension);
        }
    }

    #[test]
    fn what_is_no_messagepack_is_told() {
        let told = |bytes: &[u8]| Reader::new(bytes).whole().unwrap_err().to_string();
        assert_eq!(told(b"\xc1"), "msgpack: unknown code c1 decoding interface{}");
        assert_eq!(told(b"\x92\x01\xc1"), "msgpack: unknown code c1 decoding interface{}");
        assert_eq!(told(b""), "unexpected EOF");
        assert_eq!(
            told(b"\xdd\xff\xff\xff\xff"),
            "unexpected EOF",
            "no memory is taken for what cannot come"
        );
        assert_eq!(Reader::new(b"\x01").key(), Err(Malformed::NoText(1)));
        // An array in an array in an array: no recursion.
        let deep = [vec![0x91; 1 << 20], vec![0xc0]].concat();
        assert!(Reader::new(&deep).whole().is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail_otherwise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            let mut left = reader.left();
            while reader.whole().is_ok() {
                prop_assert!(reader.left() < left);
                left = reader.left();
            }
        }
    }
}
