//! The flags of `plimsoll find`.

use std::path::PathBuf;

use clap::{Arg, Args};
use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems, RawValue};
use plimsoll_plan::PlanPatch;
use plimsoll_schedule::{parse_duration, parse_rate};

use crate::args::fleet::FleetRunArgs;
use crate::args::output::OutputArgs;
use crate::args::plan::PlanArgs;
use crate::args::save::SaveArgs;
use crate::args::share::parse_percent;
use crate::args::verify::EvidenceArgs;
use crate::args::watch::WatchArgs;

/// Rate of the first trial where nothing says another.
const FROM: &str = "100";
/// Length of the shortest trial where nothing says another.
const TRIAL: &str = "2s";
/// Limit of the search where nothing says another.
const MAX_TIME: Nanos = Nanos::from_secs(120);
/// Width of the answer that is aimed at where nothing says another.
const PRECISION: f64 = 0.05;

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Write the report as a page of HTML, too: the objective on the load line, or charts of the sweep
    #[arg(long, visible_alias = "html", value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetRunArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) print_plan: bool,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
struct SearchArgs {
    /// Objective, such as 'p99<10ms' or 'error_rate<0.1%', repeatable, beside the plan's thresholds
    ///
    /// Upper limits of percentiles of the response time, of the error rate and of the timeout rate. Without
    /// one about errors, 'error_rate<1%' is added.
    #[arg(long, value_name = "THRESHOLD")]
    slo: Vec<String>,
    /// Instead of a search, make a run at each level of a setting: connections, streams, threads or rate
    ///
    /// Such as connections=1,2,4,8,16,32: then the report has the curve, and from six levels on the Universal
    /// Scalability Law that fits it. Levels of a rate are open runs, the others closed ones.
    #[arg(long, value_name = "SETTING=N,N,…", conflicts_with_all = ["from", "to", "precision", "max_time", "at_least"])]
    sweep: Option<String>,
    /// First rate to try, in iterations per second [default: 100]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    from: Option<String>,
    /// Try no higher rate
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    to: Option<String>,
    /// Fail (exit code 99) if the capacity is below this rate, and pass only if it is shown not to be
    ///
    /// With --to at the same rate the search ends as soon as that is shown.
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    at_least: Option<String>,
    /// Width of the answer to aim at [default: 5%]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    precision: Option<String>,
    /// End the search after this time, with its result so far [default: 2m]
    ///
    /// Two minutes find the capacity of a server of some 1,000/s to 10 to 25 %, six to 5 %; one of 100/s
    /// takes ten times as long.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    max_time: Option<String>,
}

/// Help on the number of connections, where rates are tried.
pub(crate) const CONNECTIONS_OF_TRIALS: &str =
    "Connections [default: as many as a rate needs; with --sweep of another setting 64]";

/// The length of a run, where it is that of trials.
pub(crate) fn of_trials(flag: Arg) -> Arg {
    let help = "Length of the shortest trial, or of each level of a sweep [default: 2s]";
    flag.help(help).long_help(help)
}

/// Settings of a search.
#[derive(Debug)]
pub(crate) struct SearchSpec {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// The rate that is asked for.
    pub(crate) at_least: Option<f64>,
    pub(crate) precision: f64,
    pub(crate) max_time: Nanos,
}

/// The setting whose levels are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweptSetting {
    Connections,
    Streams,
    Threads,
    Rate,
}

impl SweptSetting {
    const ALL: [Self; 4] = [Self::Connections, Self::Streams, Self::Threads, Self::Rate];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Streams => "streams",
            Self::Threads => "threads",
            Self::Rate => "rate",
        }
    }

    /// Takes it out of the flags of a plan, and returns it as an argument of `plimsoll run`.
    pub(crate) fn take(self, flags: &mut PlanPatch) -> Option<String> {
        let (flag, given) = match self {
            Self::Connections => ("--connections", flags.connections.take()),
            Self::Streams => ("--max-concurrent-streams", flags.max_concurrent_streams.pop()),
            Self::Threads => ("--threads", flags.threads.take()),
            Self::Rate => ("--rate", flags.rate.take()),
        };
        given.map(|given| format!("{flag}={}", given.text))
    }

    /// Sets it in the flags of a plan.
    pub(crate) fn set(self, value: &str, flags: &mut PlanPatch) {
        let given = RawValue::new("--sweep", value);
        match self {
            Self::Connections => flags.connections = Some(given),
            Self::Streams => flags.max_concurrent_streams = vec![given],
            Self::Threads => flags.threads = Some(given),
            Self::Rate => flags.rate = Some(given),
        }
    }
}

/// A setting and the levels of it that are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SweepSpec {
    pub(crate) setting: SweptSetting,
    pub(crate) levels: Vec<String>,
}

impl SweepSpec {
    fn parse(text: &str) -> Result<Self, Problem> {
        const HINT: &str = "write it as in --sweep connections=1,2,4,8,16,32";
        let problem = |message: String| Problem::new(message).with_hint(HINT);
        let (name, levels) =
            text.split_once('=').ok_or_else(|| problem(format!("--sweep: `{text}` has no levels")))?;
        let setting =
            SweptSetting::ALL.into_iter().find(|setting| setting.name() == name).ok_or_else(|| {
                problem(format!("--sweep: `{name}` is not one of connections, streams, threads, rate"))
            })?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        if levels.iter().any(String::is_empty) {
            return Err(problem(format!("--sweep: `{text}` has an empty level")));
        }
        Ok(Self { setting, levels })
    }
}

impl FindArgs {
    /// Reads the flags of the search itself.
    pub(crate) fn to_spec(&self) -> Result<SearchSpec, Problems> {
        let mut problems = Problems::default();
        let search = &self.search;
        let from = rate("--from", search.from.as_deref().unwrap_or(FROM), &mut problems);
        let to = search.to.as_deref().map(|text| rate("--to", text, &mut problems));
        let at_least = search.at_least.as_deref().map(|text| rate("--at-least", text, &mut problems));
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
        if problems.is_empty() && at_least.is_some_and(|asked| asked > to) {
            let hint = "give --to the same rate, or leave it out";
            problems.push(Problem::new("--at-least is above --to: no such rate is tried").with_hint(hint));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (precision, max_time) = (precision.unwrap_or(PRECISION), max_time.unwrap_or(MAX_TIME));
        Ok(SearchSpec { from, to, at_least, precision, max_time })
    }

    /// The flags that no plan can say, and whether each is given.
    pub(crate) fn beside_plans(&self) -> Vec<(&'static str, bool)> {
        let search = &self.search;
        let own = [
            ("--sweep", search.sweep.is_some()),
            ("--from", search.from.is_some()),
            ("--to", search.to.is_some()),
            ("--at-least", search.at_least.is_some()),
            ("--precision", search.precision.is_some()),
            ("--max-time", search.max_time.is_some()),
            ("--watch-pid", self.watch.descriptors() > 0),
            ("--report", self.report.is_some()),
            ("--evidence", self.evidence.evidence.is_some()),
            ("--save", self.save.is_given()),
        ];
        own.into_iter().chain(self.output.beside_plans()).collect()
    }

    /// The sweep that was asked for instead of a search.
    pub(crate) fn sweep(&self) -> Option<Result<SweepSpec, Problem>> {
        self.search.sweep.as_deref().map(SweepSpec::parse)
    }

    /// Makes the flags of a plan those of its first trial.
    ///
    /// # Errors
    /// Refuses flags that have no place in a search.
    pub(crate) fn amend(&self, flags: &mut PlanPatch) -> Result<(), Problem> {
        if self.search.sweep.is_some() {
            flags.duration.get_or_insert_with(|| RawValue::new("--duration", TRIAL));
            flags.thresholds.extend(self.search.slo.iter().map(|text| RawValue::new("--slo", text.as_str())));
            return Ok(());
        }
        let chosen = [&flags.rate, &flags.rps, &flags.stages].into_iter().flatten().next();
        if let Some(given) = chosen {
            let message = format!("{} has no place here: the search chooses the rates", given.by);
            return Err(Problem::new(message).with_hint("use --from and --to to say where it looks"));
        }
        if let Some(given) = &flags.iterations {
            let message = format!("{} has no place here: trials end by their length", given.by);
            return Err(Problem::new(message).with_hint("use -d for the length of the shortest trial"));
        }
        flags.rate = Some(RawValue::new("--from", self.search.from.as_deref().unwrap_or(FROM)));
        flags.duration.get_or_insert_with(|| RawValue::new("--duration", TRIAL));
        flags.thresholds.extend(self.search.slo.iter().map(|text| RawValue::new("--slo", text.as_str())));
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
    match parse_percent(text) {
        Some(share) if (0.005..=0.5).contains(&share) => share,
        _ => {
            let problem = Problem::new(format!("--precision: `{text}` is not a share from 0.5% to 50%"));
            problems.push(problem.with_hint("write it as in --precision 5%"));
            PRECISION
        }
    }
}
