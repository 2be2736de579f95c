//! Values of keys that other crates add.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::{GivenKey, Part};
use crate::parts::{AddedKey, PartField, PartKind};
use crate::{BodyPart, PlanParts, StepPart};

/// Value of a key that another crate adds, as it is given.
#[derive(Debug)]
#[non_exhaustive]
pub struct Added<P: PartKind + ?Sized + 'static> {
    /// The key.
    pub key: &'static AddedKey<P>,
    /// The value.
    pub value: PartField<P>,
}

impl<P: PartKind + ?Sized> Clone for Added<P> {
    fn clone(&self) -> Self {
        Self { key: self.key, value: self.value.clone() }
    }
}

impl<P: PartKind + ?Sized> PartialEq for Added<P> {
    fn eq(&self, other: &Self) -> bool {
        let written = |added: &Self| serde_json::to_value(&added.value).ok();
        self.key == other.key && self.value.place() == other.value.place() && written(self) == written(other)
    }
}

impl<P: PartKind + ?Sized> Eq for Added<P> {}

/// Values of keys that other crates add, in the order in which they are given. A sound step has at most one
/// of a kind.
#[derive(Debug)]
pub struct AddedKeys<P: PartKind + ?Sized + 'static>(Vec<Added<P>>);

/// Bodies of keys that other crates add.
pub type AddedBodies = AddedKeys<dyn BodyPart>;

/// A request of another protocol than HTTP.
pub type AddedStep = AddedKeys<dyn StepPart>;

impl<P: PartKind + ?Sized> Clone for AddedKeys<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: PartKind + ?Sized> PartialEq for AddedKeys<P> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<P: PartKind + ?Sized> Eq for AddedKeys<P> {}

impl<P: PartKind + ?Sized> Default for AddedKeys<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P: PartKind + ?Sized> AddedKeys<P> {
    /// Returns the first one.
    pub fn first(&self) -> Option<&Added<P>> {
        self.0.first()
    }

    /// Adds one.
    pub(crate) fn push(&mut self, added: Added<P>) {
        self.0.push(added);
    }

    /// Returns the keys that are given.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|added| added.key.key())
    }
}

impl<P: PartKind + ?Sized> Part for AddedKeys<P> {
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<bool, M::Error> {
        let mut keys = P::keys(PlanParts::current()).iter().copied();
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

impl<P: PartKind + ?Sized> JsonSchema for AddedKeys<P> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AddedKeys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = P::keys(PlanParts::current()).iter();
        let properties: Map<String, Value> =
            keys.map(|key| (key.key().to_owned(), key.schema(generator).to_value())).collect();
        schemars::json_schema!({"type": "object", "properties": properties})
    }
}
