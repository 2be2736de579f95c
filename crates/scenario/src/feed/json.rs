//! Objects of JSON lines.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Takes an object apart: calls `take` with the position of each of `members` that it has, and its value, as
/// JSON text. One that it has twice comes twice; others are not examined.
///
/// # Errors
/// The text is not a JSON object, or the error of `take`.
pub(super) fn members<'r>(
    text: &'r [u8],
    members: &[String],
    take: &mut dyn FnMut(usize, &'r str) -> Result<(), String>,
) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut refused = None;
    let visited = json.deserialize_map(Object { members, take, refused: &mut refused });
    match (refused, visited.and_then(|()| json.end())) {
        (Some(reason), _) => Err(reason),
        (None, Ok(())) => Ok(()),
        // The parser counts lines within the text, which is one: only the column says anything.
        (None, Err(error)) => {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            Err(format!("not a JSON object: {reason} at column {}", error.column()))
        }
    }
}

struct Object<'o, 'r> {
    members: &'o [String],
    take: &'o mut dyn FnMut(usize, &'r str) -> Result<(), String>,
    refused: &'o mut Option<String>,
}

impl<'r> Visitor<'r> for Object<'_, 'r> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'r>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key_seed(Member(self.members))? {
            match member {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(position) => {
                    let value: &RawValue = map.next_value()?;
                    if let Err(reason) = (self.take)(position, value.get()) {
                        self.refused.get_or_insert(reason);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The position of a name among the members.
struct Member<'m>(&'m [String]);

impl<'r> DeserializeSeed<'r> for Member<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'r>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Member<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| known == name))
    }
}

/// Replaces the content of `into` by a value: a string without quotes and escapes, anything else as it is
/// written. `text` is JSON.
///
/// # Errors
/// A string with half of a surrogate pair, which is not text (RFC 8259 section 8.2).
pub(super) fn write(text: &str, into: &mut Vec<u8>) -> Result<(), String> {
    into.clear();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let Some(mut rest) = inner else {
        into.extend_from_slice(text.as_bytes());
        return Ok(());
    };
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        into.extend_from_slice(&rest.as_bytes()[..at]);
        let (value, length) = escaped(&rest[at..]).ok_or("a string with half of a surrogate pair")?;
        into.extend_from_slice(value.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + length..];
    }
    into.extend_from_slice(rest.as_bytes());
    Ok(())
}

/// The character that the escape in front stands for, and the escape's length (RFC 8259 section 7).
fn escaped(text: &str) -> Option<(char, usize)> {
    let value = match text.as_bytes().get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = |at: usize| u32::from_str_radix(text.get(at..at + 4)?, 16).ok();
            let first = unit(2)?;
            if let Some(value) = char::from_u32(first) {
                return Some((value, 6));
            }
            let second = if text.get(6..8)? == "\\u" { unit(8)? } else { return None };
            let is_pair = (0xD800..0xDC00).contains(&first) && (0xDC00..0xE000).contains(&second);
            let value = 0x1_0000 + ((first & 0x3FF) << 10) + (second & 0x3FF);
            return if is_pair { Some((char::from_u32(value)?, 12)) } else { None };
        }
        &byte => char::from(byte),
    };
    Some((value, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(text: &str) -> Result<Vec<(usize, String)>, String> {
        let names = ["id".to_owned(), "näme".to_owned()];
        let mut found = Vec::new();
        members(text.as_bytes(), &names, &mut |position, value| {
            let mut bytes = b"before".to_vec();
            write(value, &mut bytes)?;
            found.push((position, String::from_utf8(bytes).unwrap()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn strings_lose_their_quotes_and_other_values_are_as_written() {
        for (text, expected) in [
            (r#"{"id":"a b","näme":"c"}"#, vec![(0, "a b"), (1, "c")]),
            (r#" { "n\u00e4me" : 1.50e3 , "x": {"id":[1,"}"]}, "id": -0 } "#, vec![(1, "1.50e3"), (0, "-0")]),
            (r#"{"id":null,"näme":[1, {"a":"b"}]}"#, vec![(0, "null"), (1, r#"[1, {"a":"b"}]"#)]),
            (r#"{"id":"\"\\\/\u0041\ud83d\uDE00\t"}"#, vec![(0, "\"\\/A😀\t")]),
            (r#"{"id":1,"id":true}"#, vec![(0, "1"), (0, "true")]),
            ("{}", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(at, text)| (at, text.to_owned())).collect();
            assert_eq!(row(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for (text, reason) in [
            ("[1]", "not a JSON object: invalid type: sequence, expected an object"),
            ("{\"id\":1", "not a JSON object: EOF while parsing an object at column 7"),
            ("{\"id\":1} x", "not a JSON object: trailing characters at column 10"),
            ("{\"id\":tru}", "not a JSON object: expected ident at column 10"),
            ("{\"id\":\"\\ud83d\"}", "a string with half of a surrogate pair"),
            ("{\"id\":\"\\udc00\\ud83d\"}", "a string with half of a surrogate pair"),
        ] {
            let error = row(text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
        assert!(row("{\"x\":\"\u{0}\"}").is_err());
    }

    proptest! {
        #[test]
        fn strings_are_what_serde_json_reads(text in any::<String>(), ascii in any::<bool>()) {
            let mut written = serde_json::to_string(&text).unwrap();
            if ascii {
                let mut units = [0; 2];
                let escape = |c: char| c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04X}")).collect();
                written = written.chars().map(if_ascii(escape)).collect();
            }
            let mut found = Vec::new();
            write(&written, &mut found).unwrap();
            prop_assert_eq!(String::from_utf8(found).unwrap(), text);
        }
    }

    /// Leaves ASCII as it is.
    fn if_ascii(mut escape: impl FnMut(char) -> String) -> impl FnMut(char) -> String {
        move |c| if c.is_ascii() { c.to_string() } else { escape(c) }
    }
}
