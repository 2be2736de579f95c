//! gRPC: the key `grpc` of plans, the command `plimsoll grpc`, the service of `plimsoll sink --grpc`, and
//! importers of services and of ghz's configurations.
//!
//! A call is a POST over HTTP/2 whose body is messages by the descriptors of the service, made at run time,
//! and whose answer is judged by the status of the call.
#![forbid(unsafe_code)]

mod args;
mod calls;
mod error;
pub mod fields;
mod import;
mod judge;
mod load;
mod message;
mod reflected;
mod reflection;
mod schema;
mod service;
mod spec;

use crate::fields::CODES;
pub use calls::CALL;
pub use import::{ghz, proto};
pub use judge::judge;
pub use load::{Data, GrpcLoad, SchemaFile, deadline_of, method_name, origin};
use plimsoll_app::{Example, Extension, Importer, LoadCommand, ServiceCodes, SinkService};
use plimsoll_plan::PlanParts;
pub use reflection::Reflection;
pub use schema::{FileDescription, MethodDescription, Schema, SchemaError};
pub use spec::GrpcSpec;

/// Keys of plan files that this crate reads, and its classes of errors.
pub const PARTS: PlanParts = PlanParts { bodies: &[&CALL], errors: &error::ROWS, ..PlanParts::NONE };

/// The extension.
pub const EXTENSION: Extension = Extension {
    name: "grpc",
    plan: PARTS,
    loads: &[LoadCommand::of::<args::GrpcArgs>("grpc", args::SUMMARY, args::DETAILS).with_note(args::note)],
    importers: &[
        Importer::of::<import::ProtoArgs>(
            "proto",
            "A service of gRPC as protobuf writes it",
            "Every method becomes a step, with a message that is made up from its type.",
        ),
        Importer::of::<import::GhzArgs>(
            "ghz",
            "A configuration of ghz, in JSON",
            "Its call becomes a step, its load that of the plan.",
        ),
    ],
    services: &[SinkService::of::<service::GrpcServiceArgs>().with_codes(ServiceCodes {
        names: &CODES,
        elsewhere: "only gRPC fails with a status such as UNAVAILABLE: add --grpc, or write a number from 200 to 599",
    })],
    examples: &[Example {
        group: "Protocols",
        name: "grpc",
        title: "Calls of a gRPC service",
        text: include_str!("../../../examples/grpc.yaml"),
        files: &[("sink.proto", include_str!("service/sink.proto"))],
    }],
    ..Extension::NONE
};

#[cfg(test)]
mod tests {
    use plimsoll_app::inspect;

    use super::*;

    /// Makes the extension a part of the program within the tests.
    pub(crate) fn install() {
        static ALONE: [Extension; 1] = [EXTENSION];
        plimsoll_app::install(&ALONE);
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_commands_are_a_part_of_the_program() {
        install();
        assert!(plimsoll_app::plan_parts().bodies.iter().any(|body| body.key() == "grpc"));
        let program = inspect::commands();
        assert!(program.find_subcommand("grpc").is_some());
        let formats = program.find_subcommand("import").expect("the command");
        assert!(formats.find_subcommand("proto").is_some() && formats.find_subcommand("ghz").is_some());
        let both = words("sink --grpc --websocket");
        assert!(inspect::sink(&both).unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn thresholds_and_results_have_the_classes_of_statuses() {
        install();
        let line = "run http://127.0.0.1:1/ -n 1 --threshold grpc_unavailable<1%";
        let printed = inspect::printed(&words(line)).unwrap().unwrap().expect("a plan");
        assert_eq!(printed.plan.thresholds[0].to_string(), "grpc_unavailable<1%");
        let misspelt = line.replace("unavailable", "unavailabel");
        let refused = inspect::printed(&words(&misspelt)).unwrap().unwrap_err().to_string();
        assert!(refused.contains("`grpc_unavailabel` is not a figure"), "{refused}");
        // The name in a file has what is known about it.
        let read = plimsoll_core::ErrorClass::read("grpc_unavailable").unwrap();
        assert!(read.is_answer() && read.is_of_server());
    }

    #[test]
    fn templates_of_ghz_are_told() {
        assert!(args::note(&["h:1", "a.B/C", "-d", "{\"id\": \"{{.UUID}}\"}"]).is_some());
        assert_eq!(args::note(&["h:1", "a.B/C", "-d", "{\"id\": \"${uuid}\"}"]), None);
    }

    #[test]
    fn flags_are_a_plan_with_the_key() {
        install();
        let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.proto");
        let line = format!("grpc 127.0.0.1:1 echo.v1.Echo/Say --proto {proto} --deadline 2s");
        let printed = inspect::printed(&words(&line)).unwrap().unwrap().expect("a plan");
        assert!(printed.yaml.contains("grpc:"), "{}", printed.yaml);
        assert_eq!(printed.plan.steps[0].deadline, Some(plimsoll_core::Nanos::from_secs(2)));
        // A problem of the plan is one of the flag that it comes from.
        let refused = inspect::printed(&words(&format!("{line} --take 0"))).unwrap_err();
        assert!(refused.contains("--take"), "{refused}");
        let refused = inspect::printed(&words(&format!("{line} --take 1"))).unwrap().unwrap_err();
        assert!(refused.to_string().contains("--take: "), "{refused}");
    }
}
