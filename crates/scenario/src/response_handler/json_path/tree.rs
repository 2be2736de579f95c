//! A tree of JSON, each look at which is counted.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::mem;

use jsonpath_rust::query::queryable::Queryable;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::response_handler::budget::{Budget, Excess};

/// Bytes of a path, and of a text, for which one step is taken.
const BYTES: u64 = 32;

/// Members of which each is compared with each.
const FEW: usize = 16;

/// A value with all that is in it.
///
/// The query library asks a value for its elements, and then builds a path of text for each: so the steps
/// that are taken for elements grow with the length of their paths. Once the budget is spent there are no
/// elements.
#[derive(Clone, Debug, Default)]
pub(in crate::response_handler) struct Tree<'b> {
    /// None in a value that the library has made.
    budget: Option<&'b Budget>,
    value: Value<'b>,
    /// Bytes of the path that the library builds for it.
    path: u32,
    level: u8,
}

#[derive(Clone, Debug, Default)]
enum Value<'b> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Tree<'b>>),
    /// Members, each name once.
    Object(Vec<(String, Tree<'b>)>),
}

/// Parses a text; `None` if it is not JSON, or has too many values.
pub(in crate::response_handler) fn parse<'b>(body: &[u8], budget: &'b Budget) -> Option<Tree<'b>> {
    budget.count_anew();
    if !budget.spend(body.len() as u64 / 64) {
        return None;
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let tree = TreeSeed::root(budget).deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(tree)
}

impl Tree<'_> {
    /// Writes a string as it is, and other JSON without white space.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        match &self.value {
            Value::String(text) => out.extend_from_slice(text.as_bytes()),
            _ => serde_json::to_writer(out, self).ok()?,
        }
        Some(())
    }

    /// Takes steps for so many elements.
    fn spend(&self, elements: usize) -> bool {
        self.budget.is_none_or(|budget| {
            let each = budget.price() + u64::from(self.level) / 8 + u64::from(self.path) / BYTES;
            budget.spend(1 + elements as u64 * each)
        })
    }

    fn spend_text(&self, length: usize) -> bool {
        self.budget.is_none_or(|budget| budget.spend(1 + length as u64 / BYTES))
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(elements) => serializer.collect_seq(elements),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        let goes_on = match &self.value {
            Value::String(text) => self.spend_text(text.len()) && other.spend_text(0),
            _ => self.spend_text(0) && other.spend_text(0),
        };
        goes_on
            && match (&self.value, &other.value) {
                (Value::Null, Value::Null) => true,
                (Value::Bool(one), Value::Bool(two)) => one == two,
                (Value::Number(one), Value::Number(two)) => one == two,
                (Value::String(one), Value::String(two)) => one == two,
                (Value::Array(one), Value::Array(two)) => one == two,
                (Value::Object(one), Value::Object(two)) => {
                    let is_in_two = |(name, value): &(String, Self)| other.get(name) == Some(value);
                    one.len() == two.len() && one.iter().all(is_in_two)
                }
                _ => false,
            }
    }
}

impl<'b> From<Value<'b>> for Tree<'b> {
    fn from(value: Value<'b>) -> Self {
        Self { value, ..Self::default() }
    }
}

impl From<&str> for Tree<'_> {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned()).into()
    }
}

impl From<String> for Tree<'_> {
    fn from(text: String) -> Self {
        Value::String(text).into()
    }
}

impl From<bool> for Tree<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value).into()
    }
}

impl From<i64> for Tree<'_> {
    fn from(number: i64) -> Self {
        Value::Number(number.into()).into()
    }
}

impl From<f64> for Tree<'_> {
    fn from(number: f64) -> Self {
        Number::from_f64(number).map_or(Value::Null, Value::Number).into()
    }
}

impl<'b> From<Vec<Tree<'b>>> for Tree<'b> {
    fn from(elements: Vec<Tree<'b>>) -> Self {
        Value::Array(elements).into()
    }
}

impl Queryable for Tree<'_> {
    fn get(&self, key: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else { return None };
        (self.spend_text(members.len()) && self.spend(1)).then(|| member(members, key)).flatten()
    }

    fn as_array(&self) -> Option<&Vec<Self>> {
        let Value::Array(elements) = &self.value else { return None };
        self.spend(elements.len()).then_some(elements)
    }

    fn as_object(&self) -> Option<Vec<(&str, &Self)>> {
        let Value::Object(members) = &self.value else { return None };
        let bytes = members.iter().map(|(name, _)| name.len()).sum();
        let goes_on = self.spend(members.len()) && self.spend_text(bytes);
        goes_on.then(|| members.iter().map(|(name, value)| (name.as_str(), value)).collect())
    }

    fn as_str(&self) -> Option<&str> {
        let Value::String(text) = &self.value else { return None };
        self.spend_text(text.len()).then_some(text)
    }

    fn as_i64(&self) -> Option<i64> {
        let Value::Number(number) = &self.value else { return None };
        number.as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        let Value::Number(number) = &self.value else { return None };
        number.as_f64()
    }

    fn as_bool(&self) -> Option<bool> {
        let Value::Bool(value) = &self.value else { return None };
        Some(*value)
    }

    fn null() -> Self {
        Self::default()
    }

    /// Functions that RFC 9535 does not have, and those that [`Filters`](super::filters::Filters) has put in
    /// the place of `match` and `search`: their names are the numbers of patterns, their arguments a text and
    /// the root.
    fn extension_custom(name: &str, arguments: Vec<Cow<'_, Self>>) -> Self {
        let [left, right] = arguments.as_slice() else {
            return if name.parse::<usize>().is_ok() { false.into() } else { Self::null() };
        };
        if let Ok(pattern) = name.parse() {
            let text = left.as_str();
            let matches = |text| right.budget.is_some_and(|budget| budget.is_filtered(pattern, text));
            return text.is_some_and(matches).into();
        }
        let Some(list) = right.as_array() else { return Self::null() };
        let has = |element: &Self| list.iter().any(|known| known == element);
        match (name, left.as_array()) {
            ("in", _) => has(left).into(),
            ("nin", _) => (!has(left)).into(),
            ("any_of", Some(elements)) => elements.iter().any(has).into(),
            ("none_of", Some(elements)) => (!elements.iter().any(has)).into(),
            ("subset_of", Some(elements)) => elements.iter().all(has).into(),
            _ => Self::null(),
        }
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
pub(super) struct TreeSeed<'b> {
    budget: &'b Budget,
    path: u32,
    level: u8,
}

impl<'b> TreeSeed<'b> {
    pub(super) fn root(budget: &'b Budget) -> Self {
        Self { budget, path: 1, level: 0 }
    }

    fn with(self, value: Value<'b>) -> Tree<'b> {
        Tree { budget: Some(self.budget), value, path: self.path, level: self.level }
    }

    /// For a value in this one, whose part of the path has so many bytes.
    fn inner(self, bytes: usize) -> Self {
        let path = self.path.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        Self { path, level: self.level.saturating_add(1), ..self }
    }
}

impl<'de, 'b> DeserializeSeed<'de> for TreeSeed<'b> {
    type Value = Tree<'b>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'b>, D::Error> {
        if !self.budget.count_value() {
            return Err(Error::custom(Excess::Values));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'b> Visitor<'de> for TreeSeed<'b> {
    type Value = Tree<'b>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree<'b>, E> {
        Ok(self.with(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Tree<'b>, E> {
        Ok(self.with(Value::Number(number.into())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree<'b>, E> {
        Ok(self.with(Value::Number(number.into())))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Tree<'b>, E> {
        Ok(self.with(Number::from_f64(number).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree<'b>, E> {
        Ok(self.with(Value::String(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree<'b>, E> {
        Ok(self.with(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Tree<'b>, A::Error> {
        // `[4294967295]` is longer than no place.
        let inner = self.inner(12);
        let mut all = Vec::new();
        while let Some(element) = elements.next_element_seed(inner)? {
            all.push(element);
        }
        Ok(self.with(Value::Array(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree<'b>, A::Error> {
        // Most objects in a body without end have one member.
        let mut all = Vec::with_capacity(1);
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self.inner(in_path(&name)))?;
            all.push((name, value));
        }
        keep_last(&mut all);
        Ok(self.with(Value::Object(all)))
    }
}

fn member<'o, 'b>(members: &'o [(String, Tree<'b>)], name: &str) -> Option<&'o Tree<'b>> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Of members with the same name, keeps the last value in the place of the first.
fn keep_last(members: &mut Vec<(String, Tree<'_>)>) {
    let mut places = HashMap::new();
    let mut again = Vec::new();
    if members.len() <= FEW {
        for (place, (name, _)) in members.iter().enumerate() {
            let first = members[..place].iter().position(|(known, _)| known == name);
            again.extend(first.map(|first| (first, place)));
        }
    } else {
        for (place, (name, _)) in members.iter().enumerate() {
            let first = *places.entry(name.as_str()).or_insert(place);
            if first != place {
                again.push((first, place));
            }
        }
    }
    if again.is_empty() {
        return;
    }
    let mut is_kept = vec![true; members.len()];
    for (first, place) in again {
        members[first].1 = mem::take(&mut members[place].1);
        is_kept[place] = false;
    }
    let mut is_kept = is_kept.into_iter();
    members.retain(|_| is_kept.next().unwrap_or(true));
}

/// Bytes of a name in a path, as the library writes it.
fn in_path(name: &str) -> usize {
    let bytes = name.bytes().map(|byte| match byte {
        b'\'' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    });
    4 + bytes.sum::<usize>()
}
