//! A walk over messages of protobuf (<https://protobuf.dev/programming-guides/encoding/>), one field after
//! another, for readers that know the numbers of their fields.

/// A value as it is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// Bytes that are not a message, or a value of another type than its field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl<'a> Value<'a> {
    /// The bytes of a message, a text or bytes.
    ///
    /// # Errors
    /// The value is a number.
    pub const fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed),
        }
    }

    /// The number of anything that is neither a text nor a message.
    ///
    /// # Errors
    /// The value is no number.
    pub const fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => Ok(number),
            Self::Fixed32(number) => Ok(number as u64),
            Self::Bytes(_) => Err(Malformed),
        }
    }
}

/// Passes every field of a message, by its number.
///
/// # Errors
/// The bytes are not a message, or `each` fails.
pub fn fields<'a, E: From<Malformed>>(
    mut message: &'a [u8],
    mut each: impl FnMut(u64, Value<'a>) -> Result<(), E>,
) -> Result<(), E> {
    while !message.is_empty() {
        let (number, value) = next(&mut message)?;
        each(number, value)?;
    }
    Ok(())
}

/// Takes the next field off the front of a message.
fn next<'a>(message: &mut &'a [u8]) -> Result<(u64, Value<'a>), Malformed> {
    let key = varint(message)?;
    let value = match key & 7 {
        0 => Value::Varint(varint(message)?),
        1 => Value::Fixed64(u64::from_le_bytes(array(message)?)),
        2 => {
            let length = usize::try_from(varint(message)?).map_err(|_| Malformed)?;
            let (bytes, rest) = message.split_at_checked(length).ok_or(Malformed)?;
            *message = rest;
            Value::Bytes(bytes)
        }
        5 => Value::Fixed32(u32::from_le_bytes(array(message)?)),
        _ => return Err(Malformed),
    };
    Ok((key >> 3, value))
}

fn varint(message: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    // Ten bytes of seven bits hold any number of 64.
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first().ok_or(Malformed)?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Malformed)
}

fn array<const N: usize>(message: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (bytes, rest) = message.split_first_chunk().ok_or(Malformed)?;
    *message = rest;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8]) -> Result<Vec<(u64, Value<'_>)>, Malformed> {
        let mut found = Vec::new();
        fields(message, |number, value| {
            found.push((number, value));
            Ok(())
        })
        .map(|()| found)
    }

    #[test]
    fn every_type_of_a_field_is_read() {
        let message = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\0\x1a\x02hi\xa5\x01\x02\0\0\0";
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Fixed64(1)),
            (3, Value::Bytes(b"hi")),
            (20, Value::Fixed32(2)),
        ];
        assert_eq!(read(message).unwrap(), expected);
        assert_eq!(expected.map(|(_, value)| value.number()), [Ok(150), Ok(1), Err(Malformed), Ok(2)]);
        assert_eq!((expected[2].1.bytes(), expected[3].1.bytes()), (Ok(&b"hi"[..]), Err(Malformed)));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for broken in [&b"\x08"[..], b"\x0a\x05abc", b"\x11\0", b"\x25\0\0\0", b"\x0b", &[0xff; 11]] {
            assert_eq!(read(broken), Err(Malformed), "{}", broken.escape_ascii());
        }
    }
}
