//! The content of an item as numbers: its members, and a hash of each value.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use plimsoll_scenario::pointer::{JsonPointer, JsonText};
use serde_json::Value;

/// The members of an object: numbers of their names, in rising order, with hashes of their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content(Vec<(u16, u64)>);

/// A hash over the values of some members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Witness {
    /// Which members: a number of [`Names`].
    pub(crate) shape: u16,
    /// Of their values.
    pub(crate) hash: u64,
}

/// The names of members, and the sets of them that came together. An item is remembered by numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Box<[u8]>, u16>,
    shapes: Vec<Vec<u16>>,
    numbers_of_shapes: HashMap<Vec<u16>, u16>,
}

impl Content {
    /// Reads an object. `None` if the text is not one, or if there are more names than can be distinguished.
    pub(crate) fn read(object: &[u8], names: &mut Names) -> Option<Self> {
        Self::read_by(object, |name| names.number(name))
    }

    /// Reads an object without the members whose names have not occurred so far. `None` if the text is not
    /// one.
    pub(crate) fn read_known(object: &[u8], names: &Names) -> Option<Self> {
        let mut members = Vec::new();
        let each = |name: &[u8], value: JsonText<'_>| {
            if let Some(&number) = names.numbers.get(&*plain(name)) {
                members.push((number, hash_of(value.raw())));
            }
        };
        JsonPointer::default().find(object)?.each_member(each)?;
        Some(Self::sorted(members))
    }

    fn read_by(object: &[u8], mut number: impl FnMut(&[u8]) -> Option<u16>) -> Option<Self> {
        let (mut members, mut complete) = (Vec::new(), true);
        let each = |name: &[u8], value: JsonText<'_>| match number(&plain(name)) {
            Some(number) => members.push((number, hash_of(value.raw()))),
            None => complete = false,
        };
        JsonPointer::default().find(object)?.each_member(each)?;
        complete.then(|| Self::sorted(members))
    }

    fn sorted(mut members: Vec<(u16, u64)>) -> Self {
        members.sort_unstable();
        members.dedup_by_key(|(name, _)| *name);
        Self(members)
    }

    pub(crate) fn value(&self, name: u16) -> Option<u64> {
        self.0.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| self.0[at].1)
    }

    /// Returns `true` if this has all members that the other has.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(name, _)| self.value(*name).is_some())
    }

    /// The names of members that the other one does not have.
    pub(crate) fn others_than<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u16> + 'a {
        self.0.iter().map(|(name, _)| *name).filter(|name| other.value(*name).is_none())
    }

    /// The names of members that both have with different values.
    pub(crate) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u16> + 'a {
        let differs =
            |(name, value): &(u16, u64)| other.value(*name).filter(|other| other != value).map(|_| *name);
        self.0.iter().filter_map(differs)
    }

    /// The witness of its members, except for some.
    pub(crate) fn witness(&self, without: &[u16], names: &mut Names) -> Option<Witness> {
        let shape: Vec<u16> =
            self.0.iter().map(|(name, _)| *name).filter(|name| !without.contains(name)).collect();
        let hash = self.hash_over(&shape)?;
        Some(Witness { shape: names.shape(shape)?, hash })
    }

    /// Returns `true` if the members of the witness are there with the same values.
    pub(crate) fn shows(&self, witness: Witness, names: &Names) -> bool {
        names.members_of(witness.shape).is_some_and(|shape| self.hash_over(shape) == Some(witness.hash))
    }

    /// The hash over these members, if it has them all.
    pub(crate) fn hash_over(&self, shape: &[u16]) -> Option<u64> {
        shape.iter().try_fold(0_u64, |sum, &name| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u16(name);
            hasher.write_u64(self.value(name)?);
            Some(sum.wrapping_add(hasher.finish()))
        })
    }
}

impl Names {
    pub(crate) fn number(&mut self, name: &[u8]) -> Option<u16> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let next = u16::try_from(self.numbers.len()).ok()?;
        self.numbers.insert(name.into(), next);
        Some(next)
    }

    fn shape(&mut self, members: Vec<u16>) -> Option<u16> {
        if let Some(&number) = self.numbers_of_shapes.get(&members) {
            return Some(number);
        }
        let next = u16::try_from(self.shapes.len()).ok()?;
        self.shapes.push(members.clone());
        self.numbers_of_shapes.insert(members, next);
        Some(next)
    }

    pub(crate) fn members_of(&self, shape: u16) -> Option<&[u16]> {
        self.shapes.get(usize::from(shape)).map(Vec::as_slice)
    }

    /// All sets of members that came together.
    pub(crate) fn all_shapes(&self) -> impl Iterator<Item = (u16, &[u16])> {
        (0..).zip(self.shapes.iter().map(Vec::as_slice))
    }

    /// The names of these members, for people.
    pub(crate) fn texts(&self, members: &[u16]) -> Vec<String> {
        let named = self.numbers.iter().filter(|(_, number)| members.contains(number));
        let mut texts: Vec<String> =
            named.map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        texts.sort();
        texts
    }
}

/// A name without its escapes.
fn plain(name: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !name.contains(&b'\\') {
        return name.into();
    }
    let quoted = [b"\"", name, b"\""].concat();
    match serde_json::from_slice::<String>(&quoted) {
        Ok(text) => text.into_bytes().into(),
        Err(_) => name.into(),
    }
}

/// A hash of a value, the same for all spellings of it: white space, escapes, 1.50 and 1.5.
fn hash_of(raw: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let is_easy = match raw.first() {
        Some(b'"') if !raw.contains(&b'\\') => {
            hasher.write_u8(1);
            hasher.write(&raw[1..raw.len() - 1]);
            true
        }
        _ => false,
    };
    if !is_easy {
        match serde_json::from_slice(raw) {
            Ok(value) => hash_value(&value, &mut hasher),
            Err(_) => hasher.write(raw),
        }
    }
    hasher.finish()
}

fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => hasher.write_u8(2),
        Value::Bool(value) => hasher.write(&[3, u8::from(*value)]),
        Value::String(text) => {
            hasher.write_u8(1);
            hasher.write(text.as_bytes());
        }
        Value::Number(number) => {
            hasher.write_u8(4);
            let as_float = number.as_f64().unwrap_or(f64::NAN);
            // Whole numbers that a float cannot represent stay distinct.
            match number.as_i64().filter(|whole| as_float as i64 != *whole) {
                Some(whole) => hasher.write_i64(whole),
                None => hasher.write_u64(if as_float == 0.0 { 0 } else { as_float.to_bits() }),
            }
        }
        Value::Array(elements) => {
            hasher.write_u8(5);
            elements.iter().for_each(|element| hash_value(element, hasher));
            hasher.write_u8(6);
        }
        Value::Object(members) => {
            hasher.write_u8(7);
            // In any order.
            let sum = members.iter().fold(0_u64, |sum, (name, value)| {
                let mut of_member = DefaultHasher::new();
                of_member.write(name.as_bytes());
                hash_value(value, &mut of_member);
                sum.wrapping_add(of_member.finish())
            });
            hasher.write_u64(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_value_are_one_value() {
        for same in [
            &["1.50", "1.5", "15e-1"][..],
            &["\"\\u0041b\"", "\"Ab\""],
            &["{\"a\":1,\"b\":[2,{}]}", " { \"b\" : [ 2.0 , { } ] , \"a\" : 1 } "],
            &["0", "-0", "0.0"],
        ] {
            let hashes: Vec<u64> = same.iter().map(|text| hash_of(text.as_bytes())).collect();
            assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{same:?}");
        }
        let others = [
            "1",
            "\"1\"",
            "true",
            "null",
            "[1]",
            "{\"a\":1}",
            "9007199254740993",
            "9007199254740992",
            "[[1]]",
        ];
        let mut hashes: Vec<u64> = others.iter().map(|text| hash_of(text.as_bytes())).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), others.len());
    }

    #[test]
    fn a_witness_sees_its_members_and_no_others() {
        let mut names = Names::default();
        let sent = Content::read(br#"{"b":2,"a":1}"#, &mut names).unwrap();
        let witness = sent.witness(&[], &mut names).unwrap();
        for (stored, holds) in [
            (r#"{"a":1,"id":"x","b":2.0}"#, true),
            (r#"{"a":1,"b":3}"#, false),
            (r#"{"a":2,"b":1}"#, false),
            (r#"{"a":1}"#, false),
        ] {
            let stored_content = Content::read_known(stored.as_bytes(), &names).unwrap();
            assert_eq!(stored_content.shows(witness, &names), holds, "{stored}");
        }
        assert!(
            Content::read(b"[1]", &mut names).is_none() && Content::read(b"{\"a\":", &mut names).is_none()
        );
    }
}
