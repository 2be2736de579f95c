//! The flags of the commands that look at a plan: `check`, `explain` and `try`.

use clap::{Args, ValueEnum};

use crate::args::plan::PlanArgs;

/// A plan, and the format of the report on it.
#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Format on stdout
    #[arg(short, long, value_enum, default_value_t = DocumentFormat::Text, value_name = "FORMAT")]
    #[arg(help_heading = "Output")]
    pub(crate) output: DocumentFormat,
}

/// Format of the report on a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// For people
    Text,
    /// For editors and other programs; problems of the plan are part of it
    Json,
}
