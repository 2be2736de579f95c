//! The flags of what is written by commands that are no single run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plimsoll_report::TableFormat;

use crate::flags::{OutputArgs, OutputFormat};

/// What is written where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TableOutputArgs {
    /// Format of the report on stdout
    #[arg(short, long, value_enum, default_value_t = TableOutputFormat::Text, value_name = "FORMAT")]
    pub(crate) output: TableOutputFormat,
    /// Write the result as JSON to a file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress and no messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Format of a report that is not of a single run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableOutputFormat {
    /// For people
    Text,
    /// The result contract
    Json,
    /// A table
    Csv,
}

impl TableOutputArgs {
    /// The same for a single run.
    pub(crate) fn for_run(&self) -> OutputArgs {
        let output = match self.output {
            TableOutputFormat::Text => OutputFormat::Text,
            TableOutputFormat::Json => OutputFormat::Json,
            TableOutputFormat::Csv => OutputFormat::Csv,
        };
        OutputArgs { output, json: self.json.clone(), quiet: self.quiet, ..OutputArgs::default() }
    }
}

impl From<TableOutputFormat> for TableFormat {
    fn from(format: TableOutputFormat) -> Self {
        match format {
            TableOutputFormat::Text => Self::Text,
            TableOutputFormat::Json => Self::Json,
            TableOutputFormat::Csv => Self::Csv,
        }
    }
}
