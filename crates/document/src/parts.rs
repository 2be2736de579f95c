//! Keys of plan files that crates above this one add.
//!
//! A [`BodyKey`] is a key of a request whose value becomes the body, a [`StepKey`] one of a step whose value
//! becomes a request of another protocol than HTTP. This crate reads, checks, describes and writes such
//! values with those of its own keys, and knows nothing else of them: `plan` compiles them.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::ErrorRow;
use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeSeed;
use serde::{Deserializer, Serialize};

use crate::Field;

/// Value of a [`BodyKey`] as it stands in a plan. Two are equal if they are written alike.
pub trait BodyValue: Any + fmt::Debug + erased_serde::Serialize + Send + Sync {}

erased_serde::serialize_trait_object!(BodyValue);

/// Value of a [`StepKey`] as it stands in a plan. Two are equal if they are written alike.
pub trait StepValue: Any + fmt::Debug + erased_serde::Serialize + Send + Sync {
    /// Returns the name of the request in reports, unless it is known only during the run.
    fn title(&self) -> Option<String>;
}

erased_serde::serialize_trait_object!(StepValue);

/// Key of a step whose value another crate reads.
#[derive(Debug)]
pub struct AddedKey<V: ?Sized> {
    key: &'static str,
    description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    read: ReadValue<V>,
}

/// Reader of the values of a key.
pub type ReadValue<V> =
    fn(&mut dyn erased_serde::Deserializer<'_>) -> Result<ValueField<V>, erased_serde::Error>;

/// Value of an [`AddedKey`], or the place of one that is wrong.
pub type ValueField<V> = Field<Arc<V>>;

/// Key of a request whose value becomes the body of it.
pub type BodyKey = AddedKey<dyn BodyValue>;

/// Key of a step whose value becomes a request of another protocol than HTTP.
pub type StepKey = AddedKey<dyn StepValue>;

impl<V: ?Sized> AddedKey<V> {
    /// A key whose values have this schema and are read so. The description becomes a part of the schema of
    /// plans: whole sentences.
    pub const fn new(
        key: &'static str,
        description: &'static str,
        schema: fn(&mut SchemaGenerator) -> Schema,
        read: ReadValue<V>,
    ) -> Self {
        Self { key, description, schema, read }
    }

    /// Returns the key as it is written.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// Returns the schema of the values, with the description.
    pub(crate) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.schema)(generator);
        schema.insert("description".to_owned(), self.description.into());
        schema
    }
}

impl<V: ?Sized> PartialEq for AddedKey<V> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<V: ?Sized> Eq for AddedKey<V> {}

/// Reads a value of the key.
impl<'de, V: ?Sized> DeserializeSeed<'de> for &'static AddedKey<V> {
    type Value = ValueField<V>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ValueField<V>, D::Error> {
        let mut erased = <dyn erased_serde::Deserializer<'_>>::erase(deserializer);
        (self.read)(&mut erased).map_err(serde::de::Error::custom)
    }
}

/// Kind of the values of keys: where the keys of the kind are found.
pub trait ValueKind: fmt::Debug + Serialize + Send + Sync {
    /// Returns the keys of the kind.
    fn keys(parts: DocumentParts) -> &'static [&'static AddedKey<Self>];
}

impl ValueKind for dyn BodyValue {
    fn keys(parts: DocumentParts) -> &'static [&'static AddedKey<Self>] {
        parts.bodies
    }
}

impl ValueKind for dyn StepValue {
    fn keys(parts: DocumentParts) -> &'static [&'static AddedKey<Self>] {
        parts.steps
    }
}

/// Keys that a program adds to plan files, and words of thresholds.
#[derive(Clone, Copy, Debug)]
pub struct DocumentParts {
    /// Keys of bodies, in the order in which they are written and described.
    pub bodies: &'static [&'static BodyKey],
    /// Keys of requests of other protocols than HTTP, in that order.
    pub steps: &'static [&'static StepKey],
    /// Classes of errors that thresholds may name beside those of the core.
    pub errors: &'static [&'static ErrorRow],
    /// Returns `true` if a text is the condition of a threshold, which may name these classes of errors.
    pub is_condition: fn(&str, &[&'static ErrorRow]) -> bool,
}

thread_local! {
    /// Parts of the plan that is being read or described. Serde and schemars hand no context to the types of
    /// a document.
    static CURRENT: Cell<DocumentParts> = const { Cell::new(DocumentParts::NONE) };
}

impl DocumentParts {
    /// No keys beside those of this crate, and no conditions.
    pub const NONE: Self = Self { bodies: &[], steps: &[], errors: &[], is_condition: |_, _| false };

    /// Calls `work` with these as the parts of the plan that this thread reads, checks or describes.
    pub fn within<T>(self, work: impl FnOnce() -> T) -> T {
        struct Restore(DocumentParts);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self));
        work()
    }

    /// Returns the parts of the plan that this thread reads or describes.
    pub(crate) fn current() -> Self {
        CURRENT.get()
    }

    /// Returns the keys of bodies.
    pub(crate) fn body_keys(self) -> impl Iterator<Item = &'static str> {
        self.bodies.iter().map(|body| body.key)
    }

    /// Returns the keys of requests of other protocols.
    pub(crate) fn request_keys(self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|step| step.key)
    }

    /// Returns the keys of steps.
    pub(crate) fn step_keys(self) -> impl Iterator<Item = &'static str> {
        self.request_keys().chain(self.body_keys())
    }
}
