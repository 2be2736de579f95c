//! Numbers, truth values and names of enums, by the JSON mapping and in the wire format.

use std::collections::HashMap;
use std::sync::Arc;

use prost_reflect::Kind;

use super::write_varint;

/// A type of numbers.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
    Bool,
    /// The numbers of names.
    Enum(Arc<HashMap<String, i32>>),
}

/// A number as the wire format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoded {
    Varint(u64),
    Four([u8; 4]),
    Eight([u8; 8]),
}

impl Encoded {
    /// Returns `true` for zero, which a field without presence leaves out.
    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::Varint(value) => value == 0,
            Self::Four(bytes) => bytes == [0; 4],
            Self::Eight(bytes) => bytes == [0; 8],
        }
    }

    /// Appends the number.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Varint(value) => write_varint(value, out),
            Self::Four(bytes) => out.extend_from_slice(&bytes),
            Self::Eight(bytes) => out.extend_from_slice(&bytes),
        }
    }
}

impl Number {
    /// The type of a field that is no string, no bytes and no message.
    pub(super) fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Int32 => Self::Int32,
            Kind::Uint32 => Self::Uint32,
            Kind::Uint64 => Self::Uint64,
            Kind::Sint32 => Self::Sint32,
            Kind::Sint64 => Self::Sint64,
            Kind::Fixed32 => Self::Fixed32,
            Kind::Fixed64 => Self::Fixed64,
            Kind::Sfixed32 => Self::Sfixed32,
            Kind::Sfixed64 => Self::Sfixed64,
            Kind::Float => Self::Float,
            Kind::Double => Self::Double,
            Kind::Bool => Self::Bool,
            Kind::Enum(one) => {
                let names = one.values().map(|value| (value.name().to_owned(), value.number()));
                Self::Enum(Arc::new(names.collect()))
            }
            Kind::Int64 | Kind::String | Kind::Bytes | Kind::Message(_) => Self::Int64,
        }
    }

    /// The name of the type.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Sint32 => "sint32",
            Self::Sint64 => "sint64",
            Self::Fixed32 => "fixed32",
            Self::Fixed64 => "fixed64",
            Self::Sfixed32 => "sfixed32",
            Self::Sfixed64 => "sfixed64",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bool => "bool",
            Self::Enum(_) => "name of the enum",
        }
    }

    /// The wire type.
    pub(super) const fn wire_type(&self) -> u64 {
        match self {
            Self::Fixed64 | Self::Sfixed64 | Self::Double => 1,
            Self::Fixed32 | Self::Sfixed32 | Self::Float => 5,
            _ => 0,
        }
    }

    /// Reads a text as the JSON mapping reads it; `None` if it is no such number.
    pub(super) fn read(&self, text: &[u8]) -> Option<Encoded> {
        let text = str::from_utf8(text).ok()?;
        let signed = |low: i64, high: i64| integer(text).filter(|value| (low..=high).contains(value));
        let of_32 = || signed(i32::MIN.into(), i32::MAX.into());
        let of_64 = || signed(i64::MIN, i64::MAX);
        let zigzag = |value: i64| Encoded::Varint((value << 1 ^ value >> 63) as u64);
        Some(match self {
            Self::Int32 => Encoded::Varint(of_32()? as u64),
            Self::Int64 => Encoded::Varint(of_64()? as u64),
            Self::Sint32 => zigzag(of_32()?),
            Self::Sint64 => zigzag(of_64()?),
            Self::Uint32 => Encoded::Varint(signed(0, u32::MAX.into())? as u64),
            Self::Uint64 => Encoded::Varint(unsigned(text)?),
            Self::Fixed32 => Encoded::Four((signed(0, u32::MAX.into())? as u32).to_le_bytes()),
            Self::Fixed64 => Encoded::Eight(unsigned(text)?.to_le_bytes()),
            Self::Sfixed32 => Encoded::Four((of_32()? as i32).to_le_bytes()),
            Self::Sfixed64 => Encoded::Eight(of_64()?.to_le_bytes()),
            Self::Float => {
                let value = float(text)? as f32;
                let overflows = value.is_infinite() && !text.ends_with("Infinity");
                (!overflows).then_some(Encoded::Four(value.to_le_bytes()))?
            }
            Self::Double => Encoded::Eight(float(text)?.to_le_bytes()),
            Self::Bool => match text {
                "true" => Encoded::Varint(1),
                "false" => Encoded::Varint(0),
                _ => return None,
            },
            Self::Enum(names) => {
                let number = names.get(text).copied().or_else(|| text.parse().ok())?;
                Encoded::Varint(i64::from(number) as u64)
            }
        })
    }
}

/// A whole number; also with an exponent or zeros behind a point, as JSON may have it.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| {
        // 2^63 itself is too large.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        let value = whole(text)?;
        (-LIMIT..LIMIT).contains(&value).then_some(value as i64)
    })
}

fn unsigned(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        const LIMIT: f64 = 18_446_744_073_709_551_616.0;
        let value = whole(text)?;
        (0.0..LIMIT).contains(&value).then_some(value as u64)
    })
}

/// A number of JSON without a fraction, which is no plain integer.
fn whole(text: &str) -> Option<f64> {
    let is_json = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let value: f64 = text.parse().ok().filter(|_| is_json)?;
    (value.fract() == 0.0).then_some(value)
}

fn float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}
