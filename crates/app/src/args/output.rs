//! The flags of what is written at the end: of a single run, and of everything else.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, Args, ValueEnum};
use plimsoll_report::{Format, TableFormat};

use crate::args::compare::ComparisonFormat;

/// Flags for the formats and files of a run's output.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the report on stdout
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Summary, value_name = "FORMAT")]
    pub(crate) output: OutputFormat,
    /// The whole report, with all that was measured: the same as --output text
    #[arg(long, conflicts_with = "output")]
    pub(crate) long: bool,
    /// Write the result to a file, too, in a format of --output; repeatable: --out markdown=report.md
    ///
    /// A file that cannot be written is an error, before the load where that can be known. The result on
    /// stdout is written first in any case.
    #[arg(long, value_name = "FORMAT=FILE", hide_short_help = true)]
    pub(crate) out: Vec<String>,
    /// Write the result as JSON to a file, too: the same as --out json=FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Append the report as Markdown to the file that GITHUB_STEP_SUMMARY names
    #[arg(long, hide_short_help = true)]
    pub(crate) step_summary: bool,
    /// No progress and no messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Format of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people, on half a screen
    #[default]
    Summary,
    /// For people, in full
    Text,
    /// The result contract
    Json,
    /// One line per interval
    Csv,
    /// For a pull request
    Markdown,
    /// The thresholds as test cases of JUnit, in XML
    Junit,
    /// A line of JSON per interval, then the result
    Ndjson,
    /// HdrHistogram's spectrum of percentiles
    Hgrm,
    /// HdrHistogram's interval log
    Hlog,
    /// The summary that k6 exports
    K6,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Summary => Self::Summary,
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::Csv => Self::Csv,
            OutputFormat::Markdown => Self::Markdown,
            OutputFormat::Junit => Self::Junit,
            OutputFormat::Ndjson => Self::Ndjson,
            OutputFormat::Hgrm => Self::Hgrm,
            OutputFormat::Hlog => Self::Hlog,
            OutputFormat::K6 => Self::K6,
        }
    }
}

/// The flag of the format on stdout for a search or a sweep, which has fewer formats than a run.
pub(crate) fn of_searches(flag: Arg) -> Arg {
    let formats = OutputFormat::value_variants().iter().filter(|format| format.is_of_searches());
    let formats = PossibleValuesParser::new(formats.filter_map(OutputFormat::to_possible_value));
    let read = |name: String| OutputFormat::from_str(&name, false);
    flag.value_parser(formats.try_map(read)).default_value("text")
}

impl OutputArgs {
    /// The format on stdout.
    pub(crate) const fn format(&self) -> OutputFormat {
        if self.long { OutputFormat::Text } else { self.output }
    }

    /// The flags of files that no plan can say, and whether each is given.
    pub(crate) const fn beside_plans(&self) -> [(&'static str, bool); 3] {
        let (has_files, has_json) = (!self.out.is_empty(), self.json.is_some());
        [("--out", has_files), ("--json", has_json), ("--step-summary", self.step_summary)]
    }
}

impl OutputFormat {
    /// Returns true for the formats of searches; the short report is the whole one there.
    fn is_of_searches(self) -> bool {
        self != Self::Summary && Format::from(self).is_of_searches()
    }

    /// Returns true for the formats that people read, and programs do not.
    pub(crate) const fn is_for_people(self) -> bool {
        matches!(self, Self::Summary | Self::Text)
    }

    /// Returns the format of a comparison with this name; `None` if comparisons have no such format.
    pub(crate) const fn for_comparison(self) -> Option<ComparisonFormat> {
        match self {
            Self::Summary | Self::Text => Some(ComparisonFormat::Text),
            Self::Json => Some(ComparisonFormat::Json),
            Self::Markdown => Some(ComparisonFormat::Markdown),
            _ => None,
        }
    }

    /// Returns the format of a report on several runs with this name; `None` if such reports have no such
    /// format.
    pub(crate) fn for_table(self) -> Option<TableFormat> {
        match self {
            Self::Summary | Self::Text => Some(TableFormat::Text),
            Self::Json => Some(TableFormat::Json),
            Self::Csv => Some(TableFormat::Csv),
            _ => None,
        }
    }
}

/// Flags for the output of a command that is not a single run.
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
    /// Returns these flags as those of a single run.
    pub(crate) fn for_run(&self) -> OutputArgs {
        let output = match self.output {
            TableOutputFormat::Text => OutputFormat::Summary,
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
