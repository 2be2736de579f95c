//! Bodies of requests.

mod canister;
mod completion;
mod grpc;
mod multipart;

use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::{GivenKey, Part as _, part};
use crate::Place;
use crate::document::{Field, Text};

pub use canister::CanisterSpec;
pub use completion::CompletionSpec;
pub use grpc::GrpcSpec;
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
    /// Body as a batch of synthesized metrics, logs, traces or events, another one each time, with the
    /// headers that its format needs: what `plimsoll ingest --print-plan` shows.
    pub batch: Field<Value>,
    /// Body as a signed message for a canister of the Internet Computer, another one each time: what
    /// `plimsoll canister --print-plan` shows.
    pub canister: Field<CanisterSpec>,
    /// Body as a request for a completion of a language model, another prompt each time: what `plimsoll llm
    /// --print-plan` shows. Its answers are streams: write `stream: llm` beside it.
    pub completion: Field<CompletionSpec>,
    /// Body as a message of gRPC. The status of the call decides whether it succeeded; checks and values
    /// read the answer as JSON.
    pub grpc: Field<GrpcSpec>,
}

/// The keys of bodies, in the order in which they are written.
pub(super) const KEYS: [&str; 9] =
    ["body", "body_file", "template_file", "json", "multipart", "batch", "canister", "completion", "grpc"];

part!(BodySpec {
    "body": body,
    "body_file": body_file,
    "template_file": template_file,
    "json": json,
    "multipart": multipart,
    "batch": batch,
    "canister": canister,
    "completion": completion,
    "grpc": grpc,
});

/// Adds to the description of what makes a response an answer which bodies know that by themselves.
pub(super) fn describe_judged(schema: &mut Schema) {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = format!("{description} A canister's `state` recognises its answer by itself.");
    schema.insert("description".to_owned(), described.into());
}

impl BodySpec {
    /// The forms of a body that are given.
    pub(crate) fn given(&self) -> Vec<GivenKey> {
        let mut given = Vec::new();
        self.add_given(&mut given);
        given
    }

    /// Returns the variable that the answer to the body sets, with the place of that.
    pub(crate) fn variable(&self) -> Option<(&Text, Option<Place>)> {
        Some((self.canister.get()?.pending.get()?, self.canister.place()))
    }

    /// Returns `true` if the body brings a judge that knows when its answer has come.
    pub(crate) fn is_judged(&self) -> bool {
        self.canister.get().is_some_and(|message| !message.state.is_absent())
    }
}
