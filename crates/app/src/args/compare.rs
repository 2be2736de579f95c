//! The flags of `plimsoll compare` and `plimsoll history`.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use plimsoll_document::{Problem, Problems};
use plimsoll_report::Style;
use plimsoll_report::comparison::{Comparison, Question};
use plimsoll_report::measure::{Measure, UnknownMeasure};

use crate::args::save::PlaceArgs;
use crate::args::share::parse_percent;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Two groups of runs, A and B: files that `run --json FILE` wrote, folders of such files, patterns such
    /// as 'base/*.json' (quoted), names, tags and ids of saved runs, or lists of these with commas; or two
    /// plan files (.yaml), which are run in turn
    #[arg(value_name = "GROUP")]
    pub(crate) groups: Vec<String>,
    /// Runs of each of two plan files, in alternating order (A B, B A, …), each pair with the next seed
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Judge these figures only: p50 to p99.99, mean, service_time.p99, rate, errors, cpu
    ///
    /// Without it p50, p90, p99, p99.9 where all runs have it, rate and errors are judged, and cpu, what the
    /// generator cost, is shown. Times are response times in the open model and service times in the closed
    /// one. The fewer figures are judged, the fewer runs it takes.
    #[arg(long, value_name = "FIGURE", value_delimiter = ',')]
    metric: Vec<String>,
    /// The smallest change that matters
    #[arg(long, value_name = "PERCENT", default_value = "5%", allow_negative_numbers = true)]
    effect: String,
    /// The smallest difference of the shares of errors that matters
    #[arg(long, value_name = "PERCENT", default_value = "0.1%", allow_negative_numbers = true)]
    error_effect: String,
    /// Confidence of intervals; the rest is the share of false alarms
    #[arg(long, value_name = "PERCENT", default_value = "95%", allow_negative_numbers = true)]
    confidence: String,
    /// Exit with 5 if it is undecided
    #[arg(long)]
    pub(crate) strict: bool,
    /// Judge invalid runs, too
    #[arg(long)]
    allow_invalid: bool,
    /// Compare runs of different models, arrivals or protocols, too
    #[arg(long)]
    force: bool,
    /// Judge one run a side by its --slices, although the variation between runs is unknown
    ///
    /// Without it such figures are undecided, with the interval of the two runs.
    #[arg(long)]
    single_runs: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Format of the comparison on stdout
    #[arg(short, long, value_enum, default_value_t = ComparisonFormat::Text, value_name = "FORMAT")]
    pub(crate) output: ComparisonFormat,
    /// No progress and no messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComparisonFormat {
    /// For people
    Text,
    /// Described by `schema comparison`
    Json,
    /// For a pull request
    Markdown,
}

impl ComparisonFormat {
    /// Writes a comparison in this format.
    ///
    /// # Errors
    /// Errors of the writer.
    pub(crate) fn write(self, comparison: &Comparison, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Text => out.write_all(comparison.text(style).as_bytes()),
            Self::Markdown => out.write_all(comparison.markdown().as_bytes()),
            Self::Json => comparison.write_json(out),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Files that `run --json FILE` wrote, folders of such files, quoted patterns, or names, tags and ids of
    /// saved runs, in any order
    #[arg(value_name = "FILES", required = true)]
    pub(crate) files: Vec<String>,
    /// The figure: p50 to p99.99, mean, service_time.p99, rate, errors or cpu
    #[arg(long, value_name = "FIGURE", default_value = "p99")]
    metric: String,
    /// The smallest change that counts
    #[arg(long, value_name = "PERCENT", default_value = "5%", allow_negative_numbers = true)]
    effect: String,
    /// Use invalid runs, too
    #[arg(long)]
    pub(crate) allow_invalid: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Format of the history on stdout
    #[arg(short, long, value_enum, default_value_t = HistoryFormat::Text, value_name = "FORMAT")]
    pub(crate) output: HistoryFormat,
}

/// Format of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// For people
    Text,
    /// Described by `schema history`
    Json,
    /// One line per run
    Csv,
}

impl CompareArgs {
    /// Returns the question that the flags ask.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn to_question(&self) -> Result<Question, Problems> {
        let limits = [self.effect.as_str(), &self.error_effect, &self.confidence];
        let question = question(&self.metric, limits)?;
        let (allow_invalid, force, single_runs) = (self.allow_invalid, self.force, self.single_runs);
        Ok(Question { allow_invalid, force, single_runs, ..question })
    }
}

impl HistoryArgs {
    /// The figure, and the smallest change that counts.
    ///
    /// # Errors
    /// All problems with them.
    pub(crate) fn to_question(&self) -> Result<(Measure, f64), Problems> {
        let mut problems = Problems::default();
        match (measure(&self.metric), percent("--effect", &self.effect, f64::INFINITY)) {
            (Ok(measure), Ok(effect)) => return Ok((measure, effect)),
            (measure, effect) => {
                [measure.err(), effect.err()]
                    .into_iter()
                    .flatten()
                    .for_each(|problem| problems.push(problem));
            }
        }
        Err(problems)
    }
}

/// The question about these figures, with the values of --effect, --error-effect and --confidence.
///
/// # Errors
/// Every problem with them.
pub(crate) fn question(
    metric: &[String],
    [effect, error_effect, confidence]: [&str; 3],
) -> Result<Question, Problems> {
    let mut problems = Problems::default();
    let mut percent = |flag: &str, text: &str, limit: f64| match percent(flag, text, limit) {
        Ok(share) => share,
        Err(problem) => {
            problems.push(problem);
            0.0
        }
    };
    let effect = percent("--effect", effect, f64::INFINITY);
    let error_effect = percent("--error-effect", error_effect, 1.0);
    let confidence = percent("--confidence", confidence, 1.0);
    let mut measures: Vec<Measure> = Vec::new();
    for name in metric {
        match measure(name) {
            Ok(measure) if !measures.contains(&measure) => measures.push(measure),
            Ok(_) => problems.push(Problem::new(format!("--metric: `{name}` is given twice"))),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(Question { measures, effect, error_effect, confidence, ..Question::default() })
    } else {
        Err(problems)
    }
}

fn measure(name: &str) -> Result<Measure, Problem> {
    name.trim().parse().map_err(|error: UnknownMeasure| {
        Problem::new(format!("--metric: {error}")).with_hint(UnknownMeasure::HINT)
    })
}

/// A share above 0 and below `limit`, written in percent.
fn percent(flag: &str, text: &str, limit: f64) -> Result<f64, Problem> {
    match parse_percent(text) {
        Some(share) if share > 0.0 && share < limit => Ok(share),
        Some(_) if limit <= 1.0 => Err(Problem::new(format!("{flag}: `{text}` is not between 0% and 100%"))),
        Some(_) => Err(Problem::new(format!("{flag}: `{text}` is not above 0%"))),
        None => {
            Err(Problem::new(format!("{flag}: `{text}` is not a percentage")).with_hint("write it as in 5%"))
        }
    }
}
