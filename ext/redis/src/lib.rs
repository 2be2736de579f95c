//! Redis: its protocol as one of targets (`redis://HOST:PORT`), the key `redis` of plans, the command
//! `plimsoll redis`, and a server to try them on.
//!
//! A step is one command of any kind. Replies come in the order of the commands, and commands may be sent
//! ahead of them (`--pipeline`).
#![forbid(unsafe_code)]

mod advice;
mod args;
mod elements;
mod frame;
mod load;
mod protocol;
mod reply;
mod server;
mod spec;
mod words;

use plimsoll_app::{Example, Extension, LoadCommand};
use plimsoll_document::StepKey;
use plimsoll_plan::{PlanParts, step_key};
pub use protocol::PROTOCOL;
pub use spec::CommandSpec;

/// The key of a command.
pub static COMMAND: StepKey = step_key::<CommandSpec>(
    "redis",
    "Send a command to Redis, which is a target with a URL like `redis://127.0.0.1:6379`: `GET key`, or a list \
     of words. A reply without a value has the status 404, an error 500, 401, 403 or 503; several replies in \
     one are lines of the body.",
);

/// The key and the protocol of plan files.
pub const PARTS: PlanParts = PlanParts { steps: &[&COMMAND], protocols: &[&PROTOCOL], ..PlanParts::NONE };

/// The extension.
pub const EXTENSION: Extension = Extension {
    name: "redis",
    plan: PARTS,
    loads: &[LoadCommand::of::<args::RedisArgs>("redis", args::SUMMARY, args::DETAILS)],
    servers: &[server::SERVER],
    advice: advice::ADVICE,
    examples: &[Example {
        group: "Protocols",
        name: "redis",
        title: "Commands to a Redis server",
        text: include_str!("../../../examples/redis.yaml"),
        files: &[],
    }],
    ..Extension::NONE
};
