//! Payloads in protobuf, one field after the other, and the reasons to refuse them.

use std::fmt;

pub(crate) use plimsoll_wire::protobuf::Value as Wire;
use plimsoll_wire::protobuf::{self, Malformed};

use super::super::rows::TOO_LARGE;

/// Reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The bytes are not a message.
    Broken,
    /// The rows of the payload take more memory than those of one payload may.
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

impl From<Malformed> for Refused {
    fn from(Malformed: Malformed) -> Self {
        Self::Broken
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
    message: &'a [u8],
    each: impl FnMut(u64, Wire<'a>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    protobuf::fields(message, each)
}
