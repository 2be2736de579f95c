//! The flags of `plimsoll grpc`.

use std::collections::BTreeMap;

use clap::Args;
use plimsoll_app::{Failure, LoadArgs, RunArgs};
use plimsoll_core::Nanos;
use plimsoll_document::{MadeDocument, Problem, RawValue};
use plimsoll_plan::PlanPatch;
use plimsoll_schedule::parse_duration;
use plimsoll_workloads::WorkloadError;

use crate::load::{Data, GrpcLoad, SchemaFile};
use crate::reflected;

/// Line of the command in the list of commands.
pub(crate) const SUMMARY: &str =
    "Call a method of a gRPC service: messages from JSON, statuses as classes of errors";

/// Description of the command.
pub(crate) const DETAILS: &str = "By default for 10 seconds, as fast as calls are answered, on 64 connections; --streams has several \
     calls share a connection. The service is described by a .proto file, without protoc, by a descriptor \
     set, or by the server itself (reflection). The flags make a plan, which --print-plan shows; all flags \
     of `run` hold. Without a service at hand, `plimsoll sink --grpc` is one.";

/// The note about ghz's templates, which are sent as they are written.
pub(crate) fn note(words: &[&str]) -> Option<&'static str> {
    words.iter().any(|word| word.contains("{{")).then_some(
        "ghz's {{.RequestNumber}}, {{.UUID}} and the like are sent as they are written: they are ${sequence}, \
         ${uuid} … here; `plimsoll import ghz` translates its configurations",
    )
}

#[derive(Debug, Args)]
// Aliases are ghz's names.
#[command(override_usage = USAGE)]
#[command(mut_arg("duration", |arg| arg.short(None).short_alias(None).short_alias('z')))]
#[command(mut_arg("iterations", |arg| arg.visible_alias("total")))]
#[command(mut_arg("users", |arg| arg.visible_alias("concurrency")))]
#[command(mut_arg("rate", |arg| arg.short_alias('r')))]
#[command(mut_arg("headers", |arg| arg.visible_alias("metadata").short_alias('m').help(HEADERS_HELP)))]
#[command(mut_arg("max_concurrent_streams", |arg| arg.short(None)))]
#[command(mut_arg("insecure", |arg| arg.alias("skipTLS")))]
pub(crate) struct GrpcArgs {
    #[command(flatten)]
    call: CallArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Call")]
    pub(crate) print_plan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl LoadArgs for GrpcArgs {
    fn run(&self) -> &RunArgs {
        &self.run
    }

    fn print_plan(&self) -> bool {
        self.print_plan
    }

    fn plan(&self) -> Result<MadeDocument, Failure> {
        let load = self.to_load(|server, method| reflected::reflected(self, server, method))?;
        load.document().map_err(|error| Failure::usage(problem(&error)))
    }

    fn amend(&self, flags: &mut PlanPatch) -> Result<(), Problem> {
        Self::spell_metadata(flags)
    }
}

const USAGE: &str = "plimsoll grpc [OPTIONS] <HOST:PORT> <package.Service/Method>";
const HEADERS_HELP: &str = "Metadata of each call: 'NAME: VALUE', or ghz's object of JSON; repeatable";

#[derive(Debug, Args)]
#[command(next_help_heading = "Call")]
struct CallArgs {
    /// The method, in place of the second argument
    #[arg(long, value_name = "METHOD")]
    call: Option<String>,
    /// File with the service, as protobuf writes it; its imports are looked for beside it [default: the
    /// server is asked, by reflection]
    #[arg(long, value_name = "FILE", conflicts_with = "descriptors")]
    proto: Option<String>,
    /// File with the service as a descriptor set, in place of --proto
    #[arg(long, value_name = "FILE", visible_alias = "protoset")]
    descriptors: Option<String>,
    /// The message as JSON, whose texts may have functions such as ${sequence}; @FILE is --data-file
    #[arg(short = 'd', long, value_name = "JSON", conflicts_with = "data_file")]
    data: Option<String>,
    /// File with an array of messages as JSON, which are sent in turn
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<String>,
    /// Compress messages by gzip, and let the server compress its own
    #[arg(long, visible_alias = "enable-compression")]
    gzip: bool,
    /// Send the message, or the array of --data, N times in a call that streams to the server; with
    /// --data-file, send N of its messages [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    send: Option<u32>,
    /// Cancel a call that streams from the server after N messages, as a success
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    take: Option<u32>,
    /// In a call that streams in both directions, send each message but the first when one of the server has
    /// come
    #[arg(long)]
    wait: bool,
    /// Deadline of each call, which the server is told (grpc-timeout): 500ms
    ///
    /// A call that has no answer by then has timed out. A server that keeps deadlines ends it with
    /// DEADLINE_EXCEEDED.
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
}

impl GrpcArgs {
    /// The workload that the flags describe. Where they name no description of the service, `reflect` asks
    /// the server for one, a descriptor set, by the server and the method as they were typed.
    ///
    /// # Errors
    /// A value that no load can have, or a combination of flags that is refused.
    pub(crate) fn to_load(
        &self,
        reflect: impl FnOnce(&str, &str) -> Result<Vec<u8>, Failure>,
    ) -> Result<GrpcLoad, Failure> {
        let call = &self.call;
        let (server, method) = self.server_and_method().map_err(Failure::usage)?;
        let data = self.data().map_err(Failure::usage)?;
        let deadline = self.deadline().map_err(Failure::usage)?;
        let schema = match (&call.proto, &call.descriptors) {
            (Some(file), _) => SchemaFile::Proto(file.clone()),
            (None, Some(file)) => SchemaFile::DescriptorSet(file.clone()),
            (None, None) => SchemaFile::Reflected(reflect(server, method)?),
        };
        Ok(GrpcLoad {
            server: server.to_owned(),
            method: method.to_owned(),
            schema,
            data,
            gzip: call.gzip,
            send: call.send,
            take: call.take,
            wait: call.wait,
            deadline,
        })
    }

    /// Writes metadata that was given as an object of JSON as fields.
    ///
    /// # Errors
    /// An object that is none of texts.
    pub(crate) fn spell_metadata(flags: &mut PlanPatch) -> Result<(), Problem> {
        let mut headers = Vec::new();
        for given in std::mem::take(&mut flags.headers) {
            if !given.text.trim_start().starts_with('{') {
                headers.push(given);
                continue;
            }
            let fields: BTreeMap<String, String> = serde_json::from_str(&given.text).map_err(|error| {
                let problem = Problem::new(format!("{}: no object of texts: {error}", given.by));
                problem.with_hint("write it as in --metadata '{\"trace\": \"a\"}', or 'trace: a'")
            })?;
            headers.extend(
                fields
                    .into_iter()
                    .map(|(name, value)| RawValue { text: format!("{name}: {value}"), ..given.clone() }),
            );
        }
        flags.headers = headers;
        Ok(())
    }

    fn server_and_method(&self) -> Result<(&str, &str), Problem> {
        const EXAMPLE: &str =
            "write them as in `plimsoll grpc 127.0.0.1:50051 package.Service/Method --proto api.proto`";
        match (self.run.arguments(), &self.call.call) {
            ([server, method], None) | ([server], Some(method)) => Ok((server.as_str(), method.as_str())),
            ([_, _], Some(_)) => {
                let problem = Problem::new("the method is given twice: by --call and by the second argument");
                Err(problem.with_hint("leave one of them out"))
            }
            _ => {
                let problem = Problem::new("`plimsoll grpc` calls one method of one server");
                Err(problem.with_hint(EXAMPLE))
            }
        }
    }

    fn data(&self) -> Result<Data, Problem> {
        Ok(match (&self.call.data, &self.call.data_file) {
            (None, None) => Data::Empty,
            (None, Some(file)) => Data::File(file.clone()),
            (Some(text), _) => match text.strip_prefix('@') {
                Some(file) => Data::File(file.to_owned()),
                None => Data::Message(serde_json::from_str(text).map_err(|error| {
                    let problem = Problem::new(format!("--data: not JSON: {error}"));
                    problem.with_hint("write the message as in --data '{\"id\": \"a\"}', or @FILE for a file")
                })?),
            },
        })
    }

    fn deadline(&self) -> Result<Option<Nanos>, Problem> {
        let deadline = self.call.deadline.as_deref().map(|text| match parse_duration(text) {
            Ok(Nanos::ZERO) => Err(Problem::new("--deadline: a deadline must be above 0")),
            Ok(time) => Ok(time),
            Err(error) => Err(Problem::from_line(&format!("--deadline: {error}"))),
        });
        deadline.transpose()
    }
}

/// Converts an error of the workload to a problem with the flags that were typed.
pub(crate) fn problem(error: &WorkloadError) -> Problem {
    Problem::new(error.to_string()).with_hint(error.hint())
}
