//! Bodies of requests.

mod multipart;

use std::sync::Arc;

use plimsoll_core::Nanos;
use schemars::JsonSchema;
use serde_json::Value;

use super::{Added, AddedBodies, GivenKey, Part as _, part};
use crate::document::{Field, Text};
use crate::{BodyKey, BodyPart, Place};

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
    pub(crate) fn given(&self) -> Vec<GivenKey> {
        let mut given = Vec::new();
        self.add_given(&mut given);
        given
    }

    /// Makes the body the value of a key that another crate adds.
    pub fn add(&mut self, key: &'static BodyKey, value: impl BodyPart + 'static) {
        self.added.push(Added { key, value: Field::new(Arc::new(value)) });
    }

    /// Returns the variable that the answer to the body sets, with the place of that.
    pub(crate) fn variable(&self) -> Option<(&Text, Option<Place>)> {
        let body = self.added.first()?;
        Some((body.value.get()?.variable()?, body.value.place()))
    }

    /// Returns the deadline that these header fields of the request tell the server.
    pub(crate) fn deadline(&self, headers: &[(String, String)]) -> Option<Nanos> {
        self.added.first()?.value.get()?.deadline(headers)
    }

    /// Returns `true` if the body brings a judge that knows when its answer has come.
    pub(crate) fn is_judged(&self) -> bool {
        self.added.first().and_then(|body| body.value.get()).is_some_and(|part| part.is_judged())
    }
}
