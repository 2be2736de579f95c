//! Values of keys that other crates add.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::{GivenKey, Part};
use crate::parts::{AddedKey, ValueField, ValueKind};
use crate::{BodyValue, DocumentParts, StepValue};

/// Value of a key that another crate adds, as it is given.
#[derive(Debug)]
#[non_exhaustive]
pub struct Added<V: ValueKind + ?Sized + 'static> {
    /// The key.
    pub key: &'static AddedKey<V>,
    /// The value.
    pub value: ValueField<V>,
}

impl<V: ValueKind + ?Sized> Clone for Added<V> {
    fn clone(&self) -> Self {
        Self { key: self.key, value: self.value.clone() }
    }
}

impl<V: ValueKind + ?Sized> PartialEq for Added<V> {
    fn eq(&self, other: &Self) -> bool {
        let written = |added: &Self| serde_json::to_value(&added.value).ok();
        self.key == other.key && self.value.place() == other.value.place() && written(self) == written(other)
    }
}

impl<V: ValueKind + ?Sized> Eq for Added<V> {}

/// Values of keys that other crates add, in the order in which they are given. A sound step has at most one
/// of a kind.
#[derive(Debug)]
pub struct AddedKeys<V: ValueKind + ?Sized + 'static>(Vec<Added<V>>);

/// Bodies of keys that other crates add.
pub type AddedBodies = AddedKeys<dyn BodyValue>;

/// A request of another protocol than HTTP.
pub type AddedStep = AddedKeys<dyn StepValue>;

impl<V: ValueKind + ?Sized> Clone for AddedKeys<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: ValueKind + ?Sized> PartialEq for AddedKeys<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V: ValueKind + ?Sized> Eq for AddedKeys<V> {}

impl<V: ValueKind + ?Sized> Default for AddedKeys<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V: ValueKind + ?Sized> AddedKeys<V> {
    /// The value of one key.
    pub fn new(key: &'static AddedKey<V>, value: ValueField<V>) -> Self {
        Self(vec![Added { key, value }])
    }

    /// Returns the first one.
    pub fn first(&self) -> Option<&Added<V>> {
        self.0.first()
    }

    /// Adds one.
    pub(crate) fn push(&mut self, added: Added<V>) {
        self.0.push(added);
    }

    /// Returns the keys that are given.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|added| added.key.key())
    }
}

impl<V: ValueKind + ?Sized> Part for AddedKeys<V> {
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<bool, M::Error> {
        let mut keys = V::keys(DocumentParts::current()).iter().copied();
        let Some(key) = keys.find(|known| known.key() == key) else { return Ok(false) };
        self.push(Added { key, value: map.next_value_seed(key)? });
        Ok(true)
    }

    fn write<M: SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error> {
        let given = self.0.iter().find(|added| added.key.key() == key);
        given.map_or(Ok(()), |added| map.serialize_entry(key, &added.value))
    }

    fn add_given(&self, given: &mut Vec<GivenKey>) {
        given.extend(self.0.iter().filter_map(|added| Some((added.key.key(), added.value.place()?))));
    }

    fn add_keys(&self, keys: &mut Vec<&'static str>) {
        keys.extend(self.keys());
    }
}

impl<V: ValueKind + ?Sized> JsonSchema for AddedKeys<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AddedKeys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = V::keys(DocumentParts::current()).iter();
        let properties: Map<String, Value> =
            keys.map(|key| (key.key().to_owned(), key.schema(generator).to_value())).collect();
        schemars::json_schema!({"type": "object", "properties": properties})
    }
}
