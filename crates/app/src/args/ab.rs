//! The flags of `plimsoll ab`.

use std::path::PathBuf;

use clap::{Arg, Args};
use plimsoll_document::{Problem, Problems};
use plimsoll_plan::PlanPatch;
use plimsoll_report::comparison::Question;

use crate::args::compare::{ComparisonFormat, question};
use crate::args::plan::PlanArgs;
use crate::args::watch::WatchArgs;

pub(crate) const AB_HELP: &str = "\
Exit codes:
  0 better, the same or undecided    1 no request to A succeeded, or unexpected error    2 bad usage
  3 nothing judged, because the measurement is invalid    4 worse, or no request to B alone succeeded
  5 undecided, with --strict
  130/143 interrupted, the result so far was written";

/// Help on the length of a run that ends once it has an answer.
pub(crate) const LONGEST_COMPARISON: &str =
    "Longest measured part: it ends as soon as all figures have an answer [default: 2m]";

/// A flag where changes from A to B are judged: thresholds are of one target, and help leaves them out.
pub(crate) fn of_comparisons(flag: Arg) -> Arg {
    if flag.get_help_heading() == Some("Thresholds") { flag.hide(true) } else { flag }
}

/// Refuses thresholds, which are of one run of one target.
pub(crate) fn without_thresholds(flags: &PlanPatch) -> Result<(), Problem> {
    let Some(given) = flags.thresholds.first() else { return Ok(()) };
    let problem = Problem::new(format!("{} has no place here: changes from A to B are judged", given.by));
    Err(problem.with_hint("say by --metric and --effect what matters, or use `run`, which judges one target"))
}

const USAGE: &str = "plimsoll ab [OPTIONS] <URL_A> <URL_B>\n       \
    plimsoll ab [OPTIONS] <A.yaml> <B.yaml>\n       \
    plimsoll ab [OPTIONS] <PLAN WITH TWO SCENARIOS>";

#[derive(Debug, Args)]
#[command(override_usage = USAGE)]
pub(crate) struct AbArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    asked: AskedArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) output: AbOutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
struct AskedArgs {
    /// Compare by these figures only: p50 to p99.99, mean, errors; rate without --rate [default: p50, p99,
    /// errors]
    ///
    /// Times are response times in the open model and service times in the closed one. The fewer figures, the
    /// sooner there is an answer.
    #[arg(long, value_name = "FIGURE", value_delimiter = ',')]
    metric: Vec<String>,
    /// The smallest change that matters
    #[arg(long, value_name = "PERCENT", default_value = "1%", allow_negative_numbers = true)]
    effect: String,
    /// The smallest difference of the shares of errors that matters
    #[arg(long, value_name = "PERCENT", default_value = "0.1%", allow_negative_numbers = true)]
    error_effect: String,
    /// Confidence of all intervals together, at all times of the run; the rest is the share of false alarms
    #[arg(long, value_name = "PERCENT", default_value = "95%", allow_negative_numbers = true)]
    confidence: String,
    /// Exit with 5 if it is undecided
    #[arg(long)]
    strict: bool,
    /// Judge an invalid measurement, too
    #[arg(long)]
    allow_invalid: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct AbOutputArgs {
    /// Format of the comparison on stdout
    #[arg(short, long, value_enum, default_value_t = ComparisonFormat::Text, value_name = "FORMAT")]
    pub(crate) output: ComparisonFormat,
    /// Write the comparison as JSON to a file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the comparison as a page of HTML with charts, too
    #[arg(long, visible_alias = "html", value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// No progress and no messages on stderr
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl AbArgs {
    /// Returns the question that the flags ask.
    ///
    /// # Errors
    /// Every problem with the flags.
    pub(crate) fn to_question(&self) -> Result<Question, Problems> {
        let AskedArgs { metric, effect, error_effect, confidence, allow_invalid, .. } = &self.asked;
        let question = question(metric, [effect, error_effect, confidence])?;
        Ok(Question { allow_invalid: *allow_invalid, ..question })
    }

    /// Returns `true` if an undecided comparison is a failure.
    pub(crate) const fn strict(&self) -> bool {
        self.asked.strict
    }
}
