//! Bodies of keys that other crates add.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use crate::parts::PartField;
use crate::{BodyKey, PlanParts};

use super::super::{GivenKey, Part};

/// Body of a key that another crate adds, as it is given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AddedBody {
    /// The key.
    pub key: &'static BodyKey,
    /// The value.
    pub value: PartField,
}

impl PartialEq for AddedBody {
    fn eq(&self, other: &Self) -> bool {
        let written = |body: &Self| serde_json::to_value(&body.value).ok();
        self.key == other.key && self.value.place() == other.value.place() && written(self) == written(other)
    }
}

impl Eq for AddedBody {}

/// Bodies of keys that other crates add, in the order in which they are given. A request has at most one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedBodies(Vec<AddedBody>);

impl AddedBodies {
    /// Returns the first one.
    pub fn first(&self) -> Option<&AddedBody> {
        self.0.first()
    }

    /// Adds one.
    pub(crate) fn push(&mut self, body: AddedBody) {
        self.0.push(body);
    }

    /// Returns the keys that are given.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|body| body.key.key())
    }
}

impl Part for AddedBodies {
    fn read<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<bool, M::Error> {
        let Some(key) = PlanParts::current().body(key) else { return Ok(false) };
        self.push(AddedBody { key, value: map.next_value_seed(key)? });
        Ok(true)
    }

    fn write<M: SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error> {
        let given = self.0.iter().find(|body| body.key.key() == key);
        given.map_or(Ok(()), |body| map.serialize_entry(key, &body.value))
    }

    fn add_given(&self, given: &mut Vec<GivenKey>) {
        given.extend(self.0.iter().filter_map(|body| Some((body.key.key(), body.value.place()?))));
    }

    fn add_keys(&self, keys: &mut Vec<&'static str>) {
        keys.extend(self.keys());
    }
}

impl JsonSchema for AddedBodies {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AddedBodies".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bodies = PlanParts::current().bodies.iter();
        let properties: Map<String, Value> =
            bodies.map(|body| (body.key().to_owned(), body.schema(generator).to_value())).collect();
        schemars::json_schema!({"type": "object", "properties": properties})
    }
}
