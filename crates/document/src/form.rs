//! Formats that are read as plan files are: with places, and everything that is wrong at once.

use std::cell::RefCell;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reader::{Reader, Wrong};
use super::{Source, schema, tree};
use crate::Problems;

/// A format in YAML or JSON, read and described as plan files are. Its types have [`Field`](super::Field)s
/// and [`Keyed`](super::Keyed) mappings.
#[derive(Clone, Copy, Debug)]
pub struct DocumentFormat {
    /// Noun for a file of this format in messages: "plan".
    pub noun: &'static str,
    /// The word of `plimsoll schema` that describes it.
    pub schema: &'static str,
    /// Title of its schema.
    pub title: &'static str,
    /// Types that may be written short, as one of their fields alone; and the name of that field.
    pub short_forms: &'static [(&'static str, &'static str)],
}

impl DocumentFormat {
    /// Reads a file and reports everything that is wrong with its form. `None`: nothing could be read. What
    /// was read despite problems may lack some of its parts ([`Field::Bad`](super::Field::Bad)).
    pub fn read<T: DeserializeOwned>(&self, source: &Source, problems: &mut Problems) -> Option<T> {
        let root = tree::parse(self, &source.name, &source.text, problems)?;
        let shared = RefCell::new(std::mem::take(problems));
        let name = format!("the {}", self.noun);
        let reader = Reader { node: &root, name: &name, problems: &shared, form: self };
        let document = T::deserialize(reader);
        let document = document.map_err(|error: Wrong| shared.borrow_mut().push(error.0)).ok();
        *problems = shared.into_inner();
        document
    }

    /// The JSON Schema (2020-12) of such files: from the types, with what may be written short.
    pub fn schema<T: JsonSchema>(&self) -> Value {
        let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
        schema::finished(schema.to_value(), self)
    }
}
