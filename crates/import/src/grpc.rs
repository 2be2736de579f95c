//! gRPC: files of services, and configurations of ghz.

pub mod ghz;
pub mod proto;

use plimsoll_plan::document::{Document, Field, Settings, StepSpec, TargetSpec};
use plimsoll_workloads::grpc::{CALL, GrpcSpec};

use crate::draft::{self, text};

/// A step that calls the method at a path, which is its name, too.
fn call(path: &str, spec: GrpcSpec) -> StepSpec {
    let mut step = draft::request("POST", draft::escaped(path));
    step.name = draft::literal(path.trim_start_matches('/'));
    step.request_mut().body.add(&CALL, spec);
    step
}

/// A document with one server, which is asked over HTTP/2.
fn document(server: &str, name: &str, steps: Vec<StepSpec>) -> (Document, Settings) {
    let mut document = Document::default();
    let mut target = TargetSpec::default();
    target.url = text(draft::escaped(server));
    document.targets.push("server", target);
    document.scenarios.push(Field::new(draft::scenario(name, steps)));
    let mut settings = Settings::default();
    settings.http2 = Field::new(true);
    (document, settings)
}
