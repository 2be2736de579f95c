//! gRPC: files of services, and configurations of ghz.

pub mod ghz;
pub mod proto;

use clap::Args;
use plimsoll_app::{ImportSource, ImporterArgs, NamingFileArgs};
use plimsoll_document::{Document, Field, Problems, Settings, StepSpec, TargetSpec};
use plimsoll_import::Unchecked;
use plimsoll_import::draft::{self, text};
use plimsoll_plan::body_value;

use crate::{CALL, GrpcSpec};

/// The flags of `plimsoll import proto`.
#[derive(Debug, Args)]
pub(crate) struct ProtoArgs {
    #[command(flatten)]
    from: NamingFileArgs,
    /// The server that is called
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:50051")]
    server: String,
}

impl ImporterArgs for ProtoArgs {
    fn file(&self) -> &NamingFileArgs {
        &self.from
    }

    fn import(&self, source: &ImportSource<'_>) -> Result<Unchecked, Problems> {
        let options = proto::Options { server: self.server.clone() };
        proto::import(source.name, &options, source.folder, source.files)
    }
}

/// The flags of `plimsoll import ghz`.
#[derive(Debug, Args)]
pub(crate) struct GhzArgs {
    #[command(flatten)]
    from: NamingFileArgs,
}

impl ImporterArgs for GhzArgs {
    fn file(&self) -> &NamingFileArgs {
        &self.from
    }

    fn import(&self, source: &ImportSource<'_>) -> Result<Unchecked, Problems> {
        ghz::import(&source.content()?)
    }
}

/// A step that calls the method at a path, which is its name, too.
fn call(path: &str, spec: GrpcSpec) -> StepSpec {
    let mut step = draft::request("POST", draft::escaped(path));
    step.name = draft::literal(path.trim_start_matches('/'));
    step.request_mut().body.add(&CALL, body_value(spec));
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
