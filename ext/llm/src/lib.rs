//! Language models: completions over the APIs of OpenAI, Anthropic and Ollama as a load (`plimsoll llm`, the
//! key `completion` of plans), and a server with these APIs to try it on.
//!
//! How an answer is read token by token is a stream of the core: `stream: llm` of a step.
#![forbid(unsafe_code)]

mod advice;
mod args;
mod before;
mod load;
pub mod server;
mod target;

use plimsoll_app::{Extension, LoadCommand};
use plimsoll_plan::PlanParts;

/// The body of plan files.
pub const PARTS: PlanParts = PlanParts { bodies: &[&load::PROMPT], ..PlanParts::NONE };

/// The extension.
pub const EXTENSION: Extension = Extension {
    name: "llm",
    plan: PARTS,
    loads: &[LoadCommand::of::<args::LlmArgs>("llm", args::SUMMARY, args::DETAILS)],
    servers: &[target::SERVER],
    advice: advice::ADVICE,
    ..Extension::NONE
};
