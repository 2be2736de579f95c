//! The server behind `plimsoll ui`: one page for a browser, and its requests.
//!
//! Processes of the same program do nearly all of the work: plans are checked, explained, tried and run by
//! `plimsoll check`, `explain`, `try` and `run`. So the page agrees with the command line, and a crash here
//! ends no run. The server itself only lists and reads the history, and the plans of a folder.
//!
//! ```text
//! browser ──► server ──► access ──► router ──► plans, runs, comparison ──► Program: short processes
//!                                          ├─► folder: files below the folder that was opened
//!                                          └─► live: runs under way ──► their control ports
//! ```
//!
//! One thread of the lowest priority does all of it, with an async runtime of its own: load that is generated
//! on the same machine comes first. Processes that generate or take load are started by another thread, whose
//! priority is the usual one, because children inherit it.
//!
//! Everything that is asked for passes `access`: access is decided there, once. Nothing here prints, or reads
//! the environment: that is the command's.
#![forbid(unsafe_code)]

mod access;
mod address;
mod answer;
mod child_starter;
mod comparison;
mod events;
mod example_servers;
mod examples;
mod fleet;
mod folder;
mod forms;
mod history;
mod import_kind;
mod line_tail;
mod live;
mod options;
mod page;
mod places;
mod plans;
mod program;
mod refusal;
mod router;
mod runs;
mod secret;
mod server;
mod tls;

pub use example_servers::EXAMPLE_VARIABLES;
pub use examples::{Example, add_examples};
pub use options::{CommandFlags, FlagValue, Identity, Listen, Options, PermittedFlag, Process, RefusedFlag};
pub use program::{CONFINED, ENDS_WITH, TELL_TRIALS};
pub use server::{ServeError, serve};
