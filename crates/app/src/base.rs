//! Foundations of the command: exit codes, streams, colour, the terminal, messages, the environment.

pub(crate) mod advice;
pub(crate) mod certificate;
pub(crate) mod color;
pub(crate) mod diagnostics;
pub(crate) mod environment;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod foreign_flags;
pub(crate) mod foreign_text;
pub(crate) mod handed_values;
pub(crate) mod messages;
pub(crate) mod plan_parts;
pub(crate) mod problems;
pub(crate) mod process;
pub(crate) mod script_host;
pub(crate) mod signals;
pub(crate) mod stdout;
pub(crate) mod streams;
pub(crate) mod terminal;
pub(crate) mod wording;
