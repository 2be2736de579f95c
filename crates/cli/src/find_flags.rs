//! The flags of `plimsoll find`.

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_plan::{Given, PlanPatch, Problem, Problems};
use plimsoll_schedule::{parse_duration, parse_rate};

use crate::flags::{OutputArgs, PlanArgs};

/// Rate of the first trial where nothing says another.
const FROM: &str = "100";
/// Length of the shortest trial where nothing says another.
const TRIAL: &str = "5s";
/// Limit of the search where nothing says another.
const MAX_TIME: Nanos = Nanos::from_secs(600);
/// Width of the answer that is aimed at where nothing says another.
const PRECISION: f64 = 0.05;

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
struct SearchArgs {
    /// What has to hold, such as 'p99<10ms' or 'error_rate<0.1%', repeatable [default: the plan's thresholds]
    ///
    /// Upper limits of percentiles of the response time, of the error rate and of the timeout rate. Without
    /// one about errors, 'error_rate<1%' is added.
    #[arg(long, value_name = "THRESHOLD")]
    slo: Vec<String>,
    /// First rate to try, in iterations per second [default: 100]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    from: Option<String>,
    /// Try no higher rate
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    to: Option<String>,
    /// Width of the answer to aim at [default: 5%]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    precision: Option<String>,
    /// End the search after this time, with what is known then [default: 10m]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    max_time: Option<String>,
}

/// What a search is to do.
#[derive(Debug)]
pub(crate) struct SearchSpec {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) precision: f64,
    pub(crate) max_time: Nanos,
}

impl FindArgs {
    /// Reads the flags of the search itself.
    pub(crate) fn to_spec(&self) -> Result<SearchSpec, Problems> {
        let mut problems = Problems::default();
        let search = &self.search;
        let from = rate("--from", search.from.as_deref().unwrap_or(FROM), &mut problems);
        let to = search.to.as_deref().map(|text| rate("--to", text, &mut problems));
        let precision = search.precision.as_deref().map(|text| share(text, &mut problems));
        let max_time = search.max_time.as_deref().map(|text| {
            parse_duration(text).unwrap_or_else(|error| {
                problems.push(Problem::new(format!("--max-time: {error}")));
                Nanos::ZERO
            })
        });
        let to = to.unwrap_or(f64::INFINITY);
        if problems.is_empty() && to < from {
            let hint = "give --from a lower rate, or --to a higher one";
            problems.push(Problem::new("--to is below --from").with_hint(hint));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (precision, max_time) = (precision.unwrap_or(PRECISION), max_time.unwrap_or(MAX_TIME));
        Ok(SearchSpec { from, to, precision, max_time })
    }

    /// Makes the flags of a plan those of its first trial.
    ///
    /// # Errors
    /// What has no place in a search.
    pub(crate) fn amend(&self, flags: &mut PlanPatch) -> Result<(), Problem> {
        let chosen = [&flags.rate, &flags.rps, &flags.stages].into_iter().flatten().next();
        if let Some(given) = chosen {
            let message = format!("{} has no place here: the search chooses the rates", given.by);
            return Err(Problem::new(message).with_hint("use --from and --to to say where it looks"));
        }
        if let Some(given) = &flags.iterations {
            let message = format!("{} has no place here: trials end by their length", given.by);
            return Err(Problem::new(message).with_hint("use -d for the length of the shortest trial"));
        }
        flags.rate = Some(Given::new("--from", self.search.from.as_deref().unwrap_or(FROM)));
        flags.duration.get_or_insert_with(|| Given::new("--duration", TRIAL));
        flags.thresholds.extend(self.search.slo.iter().map(|text| Given::new("--slo", text.as_str())));
        Ok(())
    }
}

fn rate(by: &str, text: &str, problems: &mut Problems) -> f64 {
    match parse_rate(text) {
        Ok(rate) => rate.per_second_f64(),
        Err(error) => {
            problems.push(Problem::new(format!("{by}: {error}")));
            1.0
        }
    }
}

/// A share in percent from 0.5 to 50.
fn share(text: &str, problems: &mut Problems) -> f64 {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.5..=50.0).contains(&percent) => percent / 100.0,
        _ => {
            let problem = Problem::new(format!("--precision: `{text}` is no share from 0.5% to 50%"));
            problems.push(problem.with_hint("write it as in --precision 5%"));
            PRECISION
        }
    }
}
