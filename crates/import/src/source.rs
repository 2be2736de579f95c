//! Sources in JSON: a strict tree, and objects whose members are all accounted for.

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_document::Problems;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use crate::amount::Ratio;
use crate::findings::{Findings, quoted};

/// Reads JSON. Members of the same name are an error, not a silent choice.
pub fn json(text: &[u8]) -> Result<Value, Problems> {
    // A byte order mark is what some editors on Windows put in front.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    match serde_json::from_slice::<Strict>(text) {
        Ok(Strict(value)) => Ok(value),
        Err(error) => {
            let at = match error.line() {
                0 => String::new(),
                line => format!("line {line}, column {}", error.column()),
            };
            let shown = error.to_string();
            let message = shown.split(" at line ").next().unwrap_or_default();
            Err(Findings::fail(&at, message, "the file has to be JSON (RFC 8259)"))
        }
    }
}

/// A tree in which no mapping has two members of the same name.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number without a value"))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(Strict(key)) = members.next_key()? {
            let key = match key {
                Value::String(key) => key,
                _ => return Err(serde::de::Error::custom("a key has to be a text")),
            };
            if map.contains_key(&key) {
                let message = format!("`{}` is given twice", quoted(&key));
                return Err(serde::de::Error::custom(message));
            }
            let Strict(value) = members.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// `at` with another part behind it, as JSON Pointers are written (RFC 6901).
pub(crate) fn below(at: &str, part: impl fmt::Display) -> String {
    format!("{at}/{}", part.to_string().replace('~', "~0").replace('/', "~1"))
}

/// `value` in short, for messages.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// An object that is read member by member. At the end, [`rest`](Self::rest) says which were not.
#[derive(Debug)]
pub struct Object<'a> {
    /// JSON Pointer of the object.
    pub at: String,
    members: &'a Map<String, Value>,
    read: BTreeSet<&'static str>,
}

impl<'a> Object<'a> {
    /// `value` as an object; `None` if it is something else, which is reported.
    pub fn new(value: &'a Value, at: impl Into<String>, findings: &mut Findings) -> Option<Self> {
        let at = at.into();
        match value {
            Value::Object(members) => Some(Self { at, members, read: BTreeSet::new() }),
            other => {
                let place = if at.is_empty() { "the document" } else { &at };
                findings.problem(place, format!("`{}` is not an object", shown(other)));
                None
            }
        }
    }

    /// The place of the member `key`.
    pub fn place(&self, key: &str) -> String {
        below(&self.at, key)
    }

    /// A member; `null` is as good as nothing.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.read.insert(key);
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// Returns `true` if there is such a member, and it is not `null`.
    pub fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some_and(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&mut self, key: &'static str, findings: &mut Findings) -> Option<&'a str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            other => self.wrong(key, other, "a text", findings),
        }
    }

    /// A text that is not empty.
    pub fn filled(&mut self, key: &'static str, findings: &mut Findings) -> Option<&'a str> {
        self.text(key, findings).filter(|text| !text.is_empty())
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str, findings: &mut Findings) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(*flag),
            other => self.wrong(key, other, "true or false", findings),
        }
    }

    /// A whole number from 0.
    pub fn count(&mut self, key: &'static str, findings: &mut Findings) -> Option<u64> {
        let value = self.value(key)?;
        let whole = |number: f64| number.fract() == 0.0 && (0.0..=9e15).contains(&number);
        match value.as_u64().or_else(|| value.as_f64().filter(|&number| whole(number)).map(|n| n as u64)) {
            Some(number) => Some(number),
            None => self.wrong(key, value, "a whole number from 0", findings),
        }
    }

    /// A number from 0 with at most nine decimals.
    pub fn number(&mut self, key: &'static str, findings: &mut Findings) -> Option<Ratio> {
        let value = self.value(key)?;
        let number = match value {
            Value::Number(number) => Ratio::decimal(&number.to_string()),
            _ => None,
        };
        match number {
            Some(number) => Some(number),
            None => self.wrong(key, value, "a number from 0", findings),
        }
    }

    /// The items of a list, each with its place; none if it is absent.
    pub(crate) fn list(&mut self, key: &'static str, findings: &mut Findings) -> Vec<(&'a Value, String)> {
        let at = self.place(key);
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| (item, below(&at, index))).collect()
            }
            Some(other) => self.wrong(key, other, "a list", findings).unwrap_or_default(),
        }
    }

    /// The objects of a list.
    pub(crate) fn objects(&mut self, key: &'static str, findings: &mut Findings) -> Vec<Self> {
        let items = self.list(key, findings);
        items.into_iter().filter_map(|(item, at)| Self::new(item, at, findings)).collect()
    }

    /// An object within this one.
    pub fn object(&mut self, key: &'static str, findings: &mut Findings) -> Option<Self> {
        let at = self.place(key);
        Self::new(self.value(key)?, at, findings)
    }

    /// All members, read or not.
    pub fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Members that say nothing about requests.
    pub fn skip(&mut self, keys: &[&'static str]) {
        self.read.extend(keys);
    }

    /// A note for every member that was not read, except for comments.
    pub fn rest(&self, findings: &mut Findings, comment: impl Fn(&str) -> bool) {
        for (key, value) in self.members {
            if !self.read.contains(key.as_str()) && !comment(key) {
                findings.note(
                    self.place(key),
                    &shown(value),
                    "the format has no such field, and it is left out",
                );
            }
        }
    }

    fn wrong<T>(&self, key: &str, value: &Value, expected: &str, findings: &mut Findings) -> Option<T> {
        findings.problem(&self.place(key), format!("`{}` is not {expected}", shown(value)));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_twice_is_an_error_with_its_place() {
        let problems = json(b"{\"a\": 1,\n \"a\": 2}").unwrap_err();
        assert_eq!(problems.to_string(), "line 2, column 4: `a` is given twice");
        assert!(json(b"{").unwrap_err().to_string().starts_with("line 1, column 1: "));
        assert!(json(b"\xff").is_err());
    }

    #[test]
    fn wrong_types_and_unknown_members_are_named() {
        let value = serde_json::json!({"n": "1", "s": 1, "b": 0, "l": {}, "c": -1, "_x": 1, "y/z": [1]});
        let mut findings = Findings::default();
        let mut object = Object::new(&value, "", &mut findings).unwrap();
        assert!(object.number("n", &mut findings).is_none());
        assert!(object.text("s", &mut findings).is_none());
        assert!(object.flag("b", &mut findings).is_none());
        assert!(object.list("l", &mut findings).is_empty());
        assert!(object.count("c", &mut findings).is_none());
        object.rest(&mut findings, |key| key.starts_with('_'));
        let problems = findings.into_problems().to_string();
        assert_eq!(
            problems,
            "/n: `1` is not a number from 0\n/s: `1` is not a text\n/b: `0` is not true or false\n\
             /l: `an object` is not a list\n/c: `-1` is not a whole number from 0"
        );
        let mut findings = Findings::default();
        object.rest(&mut findings, |key| key.starts_with('_'));
        let notes = findings.finish(Default::default()).unwrap().notes;
        assert!(notes.iter().any(|note| note.at == "/y~1z" && note.said == "a list"), "{notes:?}");
    }
}
