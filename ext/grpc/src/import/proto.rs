//! Services as protobuf writes them. Every method becomes a step, with a message that is made up from its
//! type.

use std::path::Path;

use plimsoll_document::{Field, Files, MOST_STEPS, Problems};
use plimsoll_import::Unchecked;
use plimsoll_import::draft::{Url, literal};
use plimsoll_import::findings::Findings;

use super::{call, document};
use crate::{GrpcSpec, Schema};

/// Options for reading a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The URL of the server.
    pub server: String,
}

/// Reads the file of this name, and those that it imports, from `folder`. The plan names the file as a
/// neighbour.
///
/// # Errors
/// Everything that is wrong with it.
pub fn import(
    name: &str,
    options: &Options,
    folder: &Path,
    files: &dyn Files,
) -> Result<Unchecked, Problems> {
    let mut findings = Findings::default();
    let read = |path: &str| files.read(&folder.join(path));
    let schema = match Schema::of_proto(name, &read) {
        Ok(schema) => schema,
        Err(error) => {
            return Err(Findings::fail("", error, "the file has to be one of protobuf, with a service"));
        }
    };
    let server = match Url::parse(&options.server) {
        Ok(url) => url.origin,
        Err(wrong) => {
            findings.hinted("--server", format!("it is not a URL: {wrong}"), "write http://host:port");
            return Err(findings.into_problems());
        }
    };
    let mut steps = Vec::new();
    for method in schema.methods().into_iter().take(MOST_STEPS) {
        let path = method.path();
        let mut spec = GrpcSpec { proto: literal(name), ..GrpcSpec::default() };
        if method.example != serde_json::json!({}) {
            spec.message = Field::new(method.example);
        }
        if method.server_streams {
            let becomes = "it answers with a stream, which the server ends: add `take` to cancel it before";
            findings.note(&path, "", becomes);
        }
        steps.push(call(&path, spec));
    }
    if steps.is_empty() {
        findings.hinted("", "the file has no service with a method", "import the file that has the service");
        return Err(findings.into_problems());
    }
    let (mut document, settings) = document(&server, "methods", steps);
    document.run = Field::new(settings);
    findings.finish_whole(document)
}
