//! Bodies of requests.

mod multipart;

use std::sync::Arc;

use schemars::JsonSchema;
use serde_json::Value;

use super::{Added, AddedBodies, GivenKey, Part as _, part};
use crate::{BodyKey, BodyValue, Field, Text};

pub use multipart::FormPartSpec;

/// Body of a request: at most one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct BodySpec {
    /// Body; a template.
    pub body: Field<Text>,
    /// File with the body, sent as it is.
    pub body_file: Field<Text>,
    /// File with the body; a template.
    pub template_file: Field<Text>,
    /// Body as JSON, with `content-type: application/json`; its texts are templates.
    pub json: Field<Value>,
    /// Body as a form with files, `multipart/form-data`: a list of parts, `{name: title, value: Report}` or
    /// `{name: report, file: report.pdf, content_type: application/pdf}`.
    pub multipart: Vec<Field<FormPartSpec>>,
    /// Body of a key that another crate adds.
    #[schemars(flatten)]
    pub added: AddedBodies,
}

/// The keys of bodies, in the order in which they are written.
pub(super) const KEYS: [&str; 5] = ["body", "body_file", "template_file", "json", "multipart"];

part!(BodySpec {
    "body": body,
    "body_file": body_file,
    "template_file": template_file,
    "json": json,
    "multipart": multipart,
    ..added,
});

impl BodySpec {
    /// The forms of a body that are given.
    pub fn given(&self) -> Vec<GivenKey> {
        let mut given = Vec::new();
        self.add_given(&mut given);
        given
    }

    /// Makes the body the value of a key that another crate adds.
    pub fn add(&mut self, key: &'static BodyKey, value: Arc<dyn BodyValue>) {
        self.added.push(Added { key, value: Field::new(value) });
    }
}
