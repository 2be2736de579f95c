//! A walk over protobuf (<https://protobuf.dev/programming-guides/encoding/>): one field after the other.

use std::fmt;

use super::super::rows::TOO_LARGE;

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The bytes are not a message.
    Broken,
    /// Its rows take more memory than those of one payload may.
    TooLarge,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "the payload is not a valid protobuf message",
            Self::TooLarge => TOO_LARGE,
        })
    }
}

impl<'a> Wire<'a> {
    /// The bytes of a message, a text or bytes.
    pub(crate) const fn bytes(self) -> Result<&'a [u8], Refused> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Refused::Broken),
        }
    }

    /// The number of anything that is neither a text nor a message.
    pub(crate) const fn number(self) -> Result<u64, Refused> {
        match self {
            Self::Varint(number) | Self::Fixed64(number) => Ok(number),
            Self::Fixed32(number) => Ok(number as u64),
            Self::Bytes(_) => Err(Refused::Broken),
        }
    }
}

/// Name and value of a label: the fields 1 and 2 of its message; one that is not there is empty.
pub(crate) fn pair(message: &[u8]) -> Result<(&[u8], &[u8]), Refused> {
    let [mut name, mut value] = [&b""[..]; 2];
    fields(message, |number, field| {
        match number {
            1 => name = field.bytes()?,
            2 => value = field.bytes()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, value))
}

/// Passes every field of a message, by its number.
pub(crate) fn fields<'a>(
    mut message: &'a [u8],
    mut each: impl FnMut(u64, Wire<'a>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let value = match key & 7 {
            0 => Wire::Varint(varint(&mut message)?),
            1 => Wire::Fixed64(u64::from_le_bytes(array(&mut message)?)),
            2 => {
                let length = usize::try_from(varint(&mut message)?).map_err(|_| Refused::Broken)?;
                let (bytes, rest) = message.split_at_checked(length).ok_or(Refused::Broken)?;
                message = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(array(&mut message)?)),
            _ => return Err(Refused::Broken),
        };
        each(key >> 3, value)?;
    }
    Ok(())
}

fn varint(message: &mut &[u8]) -> Result<u64, Refused> {
    let mut number = 0;
    // Ten bytes of seven bits hold any number of 64.
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = message.split_first().ok_or(Refused::Broken)?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Refused::Broken)
}

fn array<const N: usize>(message: &mut &[u8]) -> Result<[u8; N], Refused> {
    let (bytes, rest) = message.split_first_chunk().ok_or(Refused::Broken)?;
    *message = rest;
    Ok(*bytes)
}
