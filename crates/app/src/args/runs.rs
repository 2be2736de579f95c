//! The flags of the commands on the history: `runs`, `show`, `export` and `rm`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::args::output::{OutputFormat, TableOutputFormat};
use crate::args::save::PlaceArgs;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Runs of this name only
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Runs with this tag only: a word, or WORD=VALUE; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Runs that began since then: an age such as 7d, or a date
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// The latest N of them; 0 is all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Format of the list on stdout
    #[arg(short, long, value_enum, default_value_t = TableOutputFormat::Text, value_name = "FORMAT")]
    pub(crate) output: TableOutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Run to show: its id, or the beginning of it, its name (the latest run of it), latest, latest~1, or a
    /// file
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Format of the report on stdout
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text, value_name = "FORMAT")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Run to export: its id, or the beginning of it, its name (the latest run of it), latest, latest~1, or a
    /// file
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: ExportFormat,
    /// File to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The shards, all of them, in any order: files that `export -o saved` wrote, ids or names of saved runs
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Format on stdout, or in the file
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    #[arg(default_value_t = ExportFormat::Run(OutputFormat::Summary))]
    pub(crate) output: ExportFormat,
    /// File to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// Format of a run that is exported: one of those of every run, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    /// As `run` writes it.
    Run(OutputFormat),
    /// The whole run with its histograms and its plan, for this program on another machine.
    Saved,
}

impl ValueEnum for ExportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        use OutputFormat::{Csv, Hgrm, Hlog, Json, Junit, K6, Markdown, Ndjson, Summary, Text};
        const ALL: &[ExportFormat] = &[
            ExportFormat::Run(Summary),
            ExportFormat::Run(Text),
            ExportFormat::Run(Json),
            ExportFormat::Run(Csv),
            ExportFormat::Run(Markdown),
            ExportFormat::Run(Junit),
            ExportFormat::Run(Ndjson),
            ExportFormat::Run(Hgrm),
            ExportFormat::Run(Hlog),
            ExportFormat::Run(K6),
            ExportFormat::Saved,
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Run(format) => format.to_possible_value(),
            Self::Saved => {
                let help =
                    "The whole run with its histograms and its plan, for this program on another machine";
                Some(PossibleValue::new("saved").help(help))
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Ids, or their beginnings, names (the latest run of each), latest, latest~1
    #[arg(value_name = "RUN", required_unless_present = "older_than")]
    pub(crate) runs: Vec<String>,
    /// Every run that began before: an age such as 30d, or a date
    #[arg(long, value_name = "TIME", conflicts_with = "runs", allow_hyphen_values = true)]
    pub(crate) older_than: Option<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}
