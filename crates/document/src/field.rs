//! Values with their place in the file.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Place;

/// A value that may be absent, or wrong; what is wrong with it has been reported then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Field<T> {
    /// The plan file does not have the value.
    #[default]
    Absent,
    /// The plan file has a value that could not be understood.
    Bad(Place),
    /// The value, and where the plan file has it.
    Given(T, Place),
}

impl<T> Field<T> {
    /// A value that was not read from a file: an import's.
    pub fn new(value: T) -> Self {
        Self::Given(value, Place::default())
    }

    /// Returns `true` if it is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, if it is there and could be understood.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent | Self::Bad(_) => None,
        }
    }

    /// Returns the place of the value, if the plan file has one.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Given(_, place) | Self::Bad(place) => Some(*place),
            Self::Absent => None,
        }
    }
}

impl Field<Text> {
    /// A text that was not read from a file.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Text(text.into()))
    }
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

/// A scalar as it was typed: `007`, `5k/s`, `true`, `"text"` without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(pub String);

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Into<String>> From<S> for Text {
    fn from(text: S) -> Self {
        Self(text.into())
    }
}

/// A text that is no template, of which `$${` is `${` as in templates.
pub fn unescaped(text: &str) -> String {
    text.replace("$${", "${")
}

/// A mapping in the order of the file. Names are unique: a second one was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed<T>(pub Vec<(Text, Place, T)>);

impl<T> Default for Keyed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Keyed<T> {
    /// Returns `true` if it has no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A mapping with one entry that was not read from a file.
    pub fn one(name: impl Into<Text>, value: T) -> Self {
        Self(vec![(name.into(), Place::default(), value)])
    }

    /// Adds an entry that was not read from a file.
    pub fn push(&mut self, name: impl Into<Text>, value: T) {
        self.0.push((name.into(), Place::default(), value));
    }
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(value, _) => value.serialize(serializer),
            Self::Absent | Self::Bad(_) => serializer.serialize_none(),
        }
    }
}

/// The name by which a [`Field`] asks the reader for its place; see [`super::reader`].
pub(crate) const FIELD: &str = "(field)";
/// The name by which a [`Keyed`] asks the reader for the places of its keys.
pub(crate) const KEYED: &str = "(keyed)";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Field<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
                T::deserialize(inner).map(Field::new)
            }
            /// From the reader: the place, and the value unless it is wrong.
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let place = place(&mut parts)?;
                Ok(match parts.next_element()? {
                    Some(value) => Field::Given(value, place),
                    None => Field::Bad(place),
                })
            }
        }
        deserializer.deserialize_newtype_struct(FIELD, Visitor(PhantomData))
    }
}

/// The place that the reader puts in front of a value: both ends in one number.
fn place<'de, A: SeqAccess<'de>>(parts: &mut A) -> Result<Place, A::Error> {
    let ends: u64 = parts.next_element()?.unwrap_or_default();
    Ok(Place { start: (ends >> 32) as u32, end: ends as u32 })
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// Numbers and truth values are written as such where that reads back to the same text.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.as_str();
        match text {
            "true" => return serializer.serialize_bool(true),
            "false" => return serializer.serialize_bool(false),
            _ => {}
        }
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => return serializer.serialize_u64(number),
            _ => {}
        }
        match text.parse().ok().and_then(serde_json::Number::from_f64) {
            Some(number) if number.to_string() == text => number.serialize(serializer),
            _ => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or number")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Text, E> {
                Ok(Text(serde_json::Number::from_f64(value).map_or_else(String::new, |n| n.to_string())))
            }
        }
        // The reader of plan files gives every scalar as it was typed.
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["string", "number", "boolean"]})
    }
}

impl<T: Serialize> Serialize for Keyed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, _, value)| (name, value)))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Keyed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Keyed<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
                inner.deserialize_map(self)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<Text, T>()? {
                    entries.push((name, Place::default(), value));
                }
                Ok(Keyed(entries))
            }
            /// From the reader: name, place of the name, value; and again.
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = parts.next_element::<Text>()? {
                    let place = place(&mut parts)?;
                    let value = parts.next_element::<Field<T>>()?;
                    // A wrong value was reported; its name still counts as known.
                    let value = match value {
                        Some(Field::Given(value, _)) => value,
                        _ => T::default(),
                    };
                    entries.push((name, place, value));
                }
                Ok(Keyed(entries))
            }
        }
        deserializer.deserialize_newtype_struct(KEYED, Visitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Keyed<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        schemars::json_schema!({"type": "object", "additionalProperties": value})
    }
}
