//! Values of any type, of which little matters: servers differ in what they send, and an odd value of a
//! member is no reason to give an answer up.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A count that is none: negative, broken, or larger than any.
const ABSURD: u64 = u64::MAX;
/// From here on a float is no exact whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Something that is read of a value of any type; of those that it does not expect it is empty.
pub(super) trait FromAny<'de>: Default {
    fn text(_text: &str) -> Self {
        Self::default()
    }

    fn flag(_flag: bool) -> Self {
        Self::default()
    }

    /// A number, as the count that it is.
    fn number(_count: u64) -> Self {
        Self::default()
    }

    fn list(_is_empty: bool) -> Self {
        Self::default()
    }

    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a value of any type.
pub(super) fn any<'de, T: FromAny<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(AnyVisitor(PhantomData))
}

struct AnyVisitor<T>(PhantomData<T>);

impl<'de, T: FromAny<'de>> Visitor<'de> for AnyVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::number(u64::try_from(value).unwrap_or(ABSURD)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        let is_count = value.fract() == 0.0 && (0.0..EXACT).contains(&value);
        Ok(T::number(if is_count { value as u64 } else { ABSURD }))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        let mut is_empty = true;
        while list.next_element::<IgnoredAny>()?.is_some() {
            is_empty = false;
        }
        Ok(T::list(is_empty))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        T::members(&mut map)
    }
}

/// Set by a value that is there and not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Something(pub(super) bool);

impl<'de> FromAny<'de> for Something {
    fn text(text: &str) -> Self {
        Self(!text.is_empty())
    }

    fn flag(flag: bool) -> Self {
        Self(flag)
    }

    fn number(_: u64) -> Self {
        Self(true)
    }

    fn list(is_empty: bool) -> Self {
        Self(!is_empty)
    }

    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let mut any = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(Self(any))
    }
}

impl<'de> Deserialize<'de> for Something {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

/// A number of tokens, if it is one; [`u64::MAX`] for a number that cannot be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

impl FromAny<'_> for Count {
    fn number(count: u64) -> Self {
        Self(Some(count))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

/// What an event is by its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// The event has no type.
    #[default]
    None,
    /// An error, of any dialect.
    Error,
    /// A piece of a response.
    Delta { reasoning: bool },
    /// An item of a response begins: a message, a call of a tool, reasoning.
    ItemStart,
    /// A response is complete, or cut off at its longest.
    Complete,
    /// A response has failed.
    Failed,
    /// Another event of a response.
    OfResponse,
    /// A message begins.
    MessageStart,
    /// A block of a message begins.
    BlockStart,
    /// A piece of a block.
    BlockDelta,
    /// What a message says of itself at its end.
    MessageDelta,
    /// A message is complete.
    MessageStop,
    /// Another event of a message.
    OfMessage,
    /// Another one.
    Other,
}

impl FromAny<'_> for Kind {
    fn text(text: &str) -> Self {
        if let Some(what) = text.strip_prefix("response.") {
            return match what {
                "completed" | "incomplete" => Self::Complete,
                "failed" | "cancelled" => Self::Failed,
                "output_item.added" => Self::ItemStart,
                // Of text, a refusal, the arguments of a call, reasoning or its summary, audio.
                what if what.ends_with(".delta") => Self::Delta { reasoning: what.starts_with("reasoning") },
                _ => Self::OfResponse,
            };
        }
        match text {
            "error" => Self::Error,
            "message_start" => Self::MessageStart,
            "content_block_start" => Self::BlockStart,
            "content_block_delta" => Self::BlockDelta,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::MessageStop,
            "content_block_stop" | "ping" => Self::OfMessage,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}
