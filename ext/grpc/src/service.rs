//! The flags of `plimsoll sink` that make it a server of gRPC.

mod reflection;
mod server;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plimsoll_app::{Reader, SERVICE_GROUP, SinkServiceArgs, parse_positive};
use plimsoll_core::Nanos;
use plimsoll_document::Files as _;
use plimsoll_plan::Disk;
use plimsoll_schedule::parse_count;
use plimsoll_targets::{Faults, Service};

use crate::{Schema, SchemaError};
use server::{DescribedMethod, GrpcOptions, GrpcServer, PROTOS};

#[derive(Debug, Args)]
#[command(next_help_heading = "gRPC")]
pub(crate) struct GrpcServiceArgs {
    /// Act as a server of gRPC: every method answers with the messages that it is called with
    ///
    /// It has a service of its own, `plimsoll.sink.v1.Sink`, with a method of each kind, and the standard
    /// ones for health and reflection. A call whose metadata have `x-plimsoll-status: 14` fails with that
    /// code.
    #[arg(long, conflicts_with_all = ["status", "body", "body_size", "content_type", "slow_data"], group = SERVICE_GROUP)]
    grpc: bool,
    /// File with further services, as protobuf writes it: reflection lists them, and their streaming methods
    /// answer with streams; repeatable
    #[arg(long, value_name = "FILE", requires = "grpc")]
    proto: Vec<PathBuf>,
    /// File with further services as a descriptor set; repeatable
    #[arg(long, value_name = "FILE", requires = "grpc")]
    descriptors: Vec<PathBuf>,
    /// Messages of an answer that is a stream, and perhaps the time between them: 10, or 10/20ms [default:
    /// 10]
    #[arg(long, value_name = "N[/TIME]", requires = "grpc", allow_negative_numbers = true)]
    messages: Option<String>,
}

/// Messages of a stream where nothing is said.
const MESSAGES: u32 = 10;

impl SinkServiceArgs for GrpcServiceArgs {
    fn read(&self, reader: &mut Reader, _: &mut Faults) -> Option<Service> {
        self.options(reader).map(|options| Service::Added(Arc::new(GrpcServer::new(options))))
    }
}

impl GrpcServiceArgs {
    /// The options of the service, if it is asked for.
    fn options(&self, reader: &mut Reader) -> Option<GrpcOptions> {
        if !self.grpc {
            return None;
        }
        let (messages, every) = reader
            .maybe("--messages", self.messages.as_ref(), parse_messages)
            .unwrap_or((MESSAGES, Nanos::ZERO));
        let mut grpc = GrpcOptions { files: Vec::new(), methods: Vec::new(), messages, every };
        for (name, text) in PROTOS {
            let own = |path: &str| match path == name {
                true => Ok(text.as_bytes().to_vec()),
                false => Err(io::ErrorKind::NotFound.into()),
            };
            add(reader.read("--grpc", name, |name| Schema::of_proto(name, &own)), &mut grpc);
        }
        for path in &self.proto {
            let of_disk = |path: &str| Disk.read(Path::new(path));
            let text = path.display().to_string();
            add(reader.read("--proto", &text, |path| Schema::of_proto(path, &of_disk)), &mut grpc);
        }
        for path in &self.descriptors {
            let content = reader.file("--descriptors", path, &Disk);
            let of_set = |_: &str| -> Result<Option<Schema>, SchemaError> {
                content.as_deref().map(Schema::of_descriptor_set).transpose()
            };
            add(reader.read("--descriptors", "", of_set).flatten(), &mut grpc);
        }
        Some(grpc)
    }
}

/// Adds the services of a schema.
fn add(schema: Option<Schema>, to: &mut GrpcOptions) {
    let Some(schema) = schema else { return };
    for file in schema.files() {
        if to.files.iter().all(|known| known.name != file.name) {
            to.files.push(file);
        }
    }
    to.methods.extend(schema.methods().into_iter().map(|method| DescribedMethod {
        path: method.path(),
        client_streams: method.client_streams,
        server_streams: method.server_streams,
    }));
}

/// `10`, `10/20ms`.
fn parse_messages(text: &str) -> Result<(u32, Nanos), String> {
    let (number, every) = text.split_once('/').unwrap_or((text, ""));
    let count = parse_count(number.trim()).map_err(|error| error.to_string())?;
    let count = u32::try_from(count).map_err(|_| format!("`{number}` is too many messages"))?;
    let every = if every.is_empty() { Nanos::ZERO } else { parse_positive(every.trim())? };
    Ok((count, every))
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use plimsoll_app::inspect;
    use plimsoll_document::Problems;
    use plimsoll_targets::{Service, SinkOptions};

    use super::*;
    use crate::tests::install;

    fn read(args: &[&str]) -> Result<SinkOptions, Problems> {
        install();
        let words: Vec<String> = ["sink"].iter().chain(args).map(ToString::to_string).collect();
        inspect::sink(&words).expect("flags of a sink")
    }

    fn grpc(args: &[&str]) -> GrpcOptions {
        let service = read(args).unwrap().service;
        let Service::Added(service) = &service else { panic!("{service:?}") };
        let server = (&**service as &dyn Any).downcast_ref::<GrpcServer>().expect("the server of gRPC");
        server.options.clone()
    }

    #[test]
    fn services_are_described() {
        let own = grpc(&["--grpc"]);
        assert_eq!((own.messages, own.every), (10, Nanos::ZERO));
        let names: Vec<&str> = own.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["sink.proto", "health.proto"]);
        assert!(own.files[0].symbols.contains(&"plimsoll.sink.v1.Sink.Repeat".to_owned()), "{own:?}");
        let chat = own.methods.iter().find(|method| method.path == "/plimsoll.sink.v1.Sink/Chat");
        assert!(chat.is_some_and(|chat| chat.client_streams && chat.server_streams));
        let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.proto");
        let more = grpc(&["--grpc", "--proto", proto, "--messages", "3/20ms"]);
        assert_eq!((more.messages, more.every), (3, Nanos::from_millis(20)));
        assert!(more.files.iter().any(|file| file.name == "google/protobuf/timestamp.proto"), "{more:?}");
        assert!(more.methods.iter().any(|method| method.path == "/echo.v1.Echo/Repeat"));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (args, said) in [
            (&["--grpc", "--proto", "none.proto"][..], "cannot read `none.proto`"),
            (&["--grpc", "--descriptors", "none.pb"], "cannot read `none.pb`"),
            (&["--grpc", "--messages", "0"], "1 to 1000000"),
            (&["--grpc", "--messages", "1/0s"], "above 0"),
            (&["--fail", "5%:UNAVAILABLE"], "add --grpc"),
        ] {
            let problems = read(args).unwrap_err().to_string();
            assert!(problems.contains(said), "{args:?}: {problems}");
        }
        assert_eq!(read(&["--grpc", "--fail", "5%:UNAVAILABLE"]).unwrap().faults.statuses, [(14, 0.05)]);
        assert_eq!(read(&["--grpc", "--fail", "5%:503"]).unwrap().faults.statuses, [(503, 0.05)]);
    }
}
