//! Decoding of the header block of a response head.

use crate::http2::fields::{check_field, content_length};
use crate::http2::heads::{HeadFault, decode};
use crate::http2::hpack::Decoder;
use crate::http2::{ConnectionError, FieldLimits};

use super::captured::CapturedFields;

/// A valid response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    /// From 100 to 999, but never 101.
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    /// Bytes of the names and values of its fields.
    pub(super) field_bytes: u32,
}

/// Decodes the block of a response head. With `captured` its fields, but not `:status`, are added there.
pub(super) fn decode_head(
    decoder: &mut Decoder,
    limits: &FieldLimits,
    block: &[u8],
    captured: Option<&mut CapturedFields>,
) -> Result<Result<ResponseHead, HeadFault>, ConnectionError> {
    let mut reader = HeadReader {
        status: None,
        content_length: None,
        regular: false,
        field_bytes: 0,
        fault: None,
        captured,
    };
    let large = decode(decoder, limits, block, |name, value| reader.field(name, value))?;
    Ok(if large { Err(HeadFault::TooLarge) } else { reader.finish().map_err(HeadFault::Malformed) })
}

#[derive(Debug)]
struct HeadReader<'c> {
    status: Option<u16>,
    content_length: Option<u64>,
    /// Set once a field came that is not a pseudo-header field.
    regular: bool,
    field_bytes: u32,
    fault: Option<&'static str>,
    captured: Option<&'c mut CapturedFields>,
}

impl HeadReader<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        self.field_bytes += (name.len() + value.len()) as u32;
        let taken = if let [b':', ..] = name { self.pseudo(name, value) } else { self.regular(name, value) };
        self.fault = taken.err();
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if name != b":status" {
            return Err("an unknown pseudo-header field");
        }
        if self.regular {
            return Err(":status after other fields");
        }
        if self.status.is_some() {
            return Err("several :status fields");
        }
        let digits = match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => [a, b, c],
            _ => return Err(":status is not a number from 100 to 999"),
        };
        self.status = Some(digits.iter().fold(0, |status, &&digit| status * 10 + u16::from(digit - b'0')));
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        self.regular = true;
        check_field(name, value)?;
        if name == b"content-length" {
            self.content_length = Some(content_length(value, self.content_length)?);
        }
        if let Some(captured) = &mut self.captured {
            captured.push(name, value);
        }
        Ok(())
    }

    fn finish(self) -> Result<ResponseHead, &'static str> {
        match (self.fault, self.status) {
            (Some(fault), _) => Err(fault),
            (None, None) => Err("no :status"),
            // RFC 9113 section 8.6: HTTP/2 has no upgrade.
            (None, Some(101)) => Err("status 101"),
            (None, Some(status)) => {
                let Self { content_length, field_bytes, .. } = self;
                Ok(ResponseHead { status, content_length, field_bytes })
            }
        }
    }
}
