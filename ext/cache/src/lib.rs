//! The Carbon cache: its protocol as one of targets (`carbon://HOST:PORT/NAME`), the key `cache` of plans,
//! the command `plimsoll cache`, and a server, `plimsoll target cache`.
//!
//! A request is one frame, and answers come in the order of the requests.
#![forbid(unsafe_code)]

mod advice;
mod args;
mod figures;
mod frame;
mod load;
mod protocol;
mod reach;
mod spec;

pub mod server;
pub mod wire;

use plimsoll_app::{Example, Extension, LoadCommand, LoadGroup};
use plimsoll_document::StepKey;
use plimsoll_plan::{PlanParts, step_key};
pub use protocol::PROTOCOL;
pub use spec::CacheSpec;

/// The key of a request to a cache.
pub static REQUEST: StepKey = step_key::<CacheSpec>(
    "cache",
    "Ask a cache, which is a target with a URL like `carbon://127.0.0.1:5500/name`.",
);

/// The key and the protocol of plan files.
pub const PARTS: PlanParts = PlanParts { steps: &[&REQUEST], protocols: &[&PROTOCOL], ..PlanParts::NONE };

/// The extension.
pub const EXTENSION: Extension = Extension {
    name: "cache",
    plan: PARTS,
    loads: &[LoadCommand::of::<args::CacheArgs>("cache", args::SUMMARY, args::DETAILS)
        .within(LoadGroup::ReadyMade)],
    servers: &[server::SERVER],
    advice: advice::ADVICE,
    examples: &[Example {
        group: "Protocols",
        name: "cache",
        title: "Values of a Carbon cache",
        text: include_str!("../../../examples/cache.yaml"),
        files: &[],
    }],
    ..Extension::NONE
};
