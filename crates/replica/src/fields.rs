//! JSON objects whose values stay as they were written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields that the server keeps itself.
pub(crate) const OWN: [&str; 3] = ["id", "created_at", "updated_at"];

/// An object as its names and the text of its values, in order. Of a name that comes twice the last counts.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object; `None` if the text is not one.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The text of a value.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// A value that is a string; `None` also if it is something else.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Iterates over the fields that the server does not keep itself.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&str, &'a str)> {
        let others = self.0.iter().filter(|(name, _)| !OWN.contains(&name.as_ref()));
        others.map(|(name, value)| (name.as_ref(), value.get()))
    }

    fn set(&mut self, name: Cow<'a, str>, value: &'a RawValue) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }
}

/// Returns the content of a JSON string; `None` if the text is not a string.
pub(crate) fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// An object as it is stored: the id first, then the other fields, then both instants.
pub(crate) fn object<'a>(
    id: &str,
    others: impl Iterator<Item = (&'a str, &'a str)>,
    created_at: &str,
    updated_at: &str,
) -> String {
    let mut text = String::with_capacity(256);
    text.push_str(r#"{"id":""#);
    text.push_str(id);
    text.push('"');
    for (name, value) in others {
        text.push(',');
        push_string(&mut text, name);
        text.push(':');
        text.push_str(value);
    }
    for (name, at) in [(r#","created_at":""#, created_at), (r#","updated_at":""#, updated_at)] {
        text.push_str(name);
        text.push_str(at);
        text.push('"');
    }
    text.push('}');
    text
}

/// The text of an object as [`object`] writes it, with another id of the same length.
pub(crate) fn with_id(object: &str, id: &str) -> String {
    const BEFORE: &str = r#"{"id":""#;
    format!("{BEFORE}{id}{}", &object[BEFORE.len() + id.len()..])
}

/// Adds a JSON string.
pub(crate) fn push_string(text: &mut String, value: &str) {
    if value.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        text.push_str(&serde_json::Value::from(value).to_string());
    } else {
        text.push('"');
        text.push_str(value);
        text.push('"');
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(Name(name)) = map.next_key()? {
                    fields.set(name, map.next_value()?);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_were_written() {
        let text = br#" {"a\u0041": 1.50, "id":"x", "n":{"b":[1 ,2]}, "n":null} "#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.others().collect::<Vec<_>>(), [("aA", "1.50"), ("n", "null")]);
        assert_eq!(fields.text("id").as_deref(), Some("x"));
        assert_eq!(fields.text("aA"), None);
        let made = object("i", fields.others(), "c", "u");
        assert_eq!(made, r#"{"id":"i","aA":1.50,"n":null,"created_at":"c","updated_at":"u"}"#);
        assert_eq!(with_id(&made, "j"), made.replace(r#""i""#, r#""j""#));
    }

    #[test]
    fn what_is_no_object_is_none() {
        for bad in ["", "[]", "{", "{} x", "\"a\"", "{\"a\"}"] {
            assert!(Fields::parse(bad.as_bytes()).is_none(), "{bad}");
        }
        assert_eq!(string(r#""a\n""#).as_deref(), Some("a\n"));
        assert_eq!(string("1"), None);
    }

    #[test]
    fn names_with_quotes_are_written_with_escapes() {
        let mut text = String::new();
        push_string(&mut text, "a\"b\n");
        assert_eq!(text, r#""a\"b\n""#);
    }
}
