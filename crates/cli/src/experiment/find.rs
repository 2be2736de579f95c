//! `plimsoll find`: the search for a server's capacity.

use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use plimsoll_engine::Progress;
use plimsoll_metrics::{Objective, figure};
use plimsoll_plan::{Disk, Files, Plan, Problem, TrialLoad};
use plimsoll_report::capacity::{Capacity, CapacityResult, LevelResult, ShareResult, TrialResult};
use plimsoll_report::result::OutcomeResult;
use plimsoll_report::{CAPACITY_SCHEMA_VERSION, Searched, Style};
use plimsoll_statistics::{
    End, Finding, Level, Outcome, Purpose, Search, Settings, SliceCount, Trial, share_interval,
};

use crate::args::control::ControlSpec;
use crate::args::find::{FindArgs, SearchSpec};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::experiment::campaign;
use crate::experiment::search::{Begun, finding_name, objectives};
use crate::experiment::trials::{FleetTrials, TrialRun, Trials};
use crate::experiment::{fleet_run, sweep};
use crate::session::describe;
use crate::session::fleet::parcel::{Parcel, RecordedFiles};
use crate::session::request::PlanRequest;
use crate::session::searched::Destinations;

/// Shortest lead-in of a trial: time to open further connections and to fill caches.
const SHORTEST_LEAD: Nanos = Nanos::from_secs(1);
/// Longest wait for owed responses after a trial: the rest of an overload is not worth more.
const LONGEST_DRAIN: Nanos = Nanos::from_secs(2);
/// Confidence at which a trial whose outcome is clear is ended before its time. Strict, since this question
/// is asked after every interval.
const EARLY_CONFIDENCE: f64 = 0.999;
/// Limit of the connections, as a multiple of those that Little's law asks for within the SLO. With more, a
/// server that is overloaded would only have longer queues.
const SPARE_CONNECTIONS: f64 = 4.0;
/// Trials without which a search has no answer: at a rate, beside it, and of the lower one again.
const FEWEST_TRIALS: u64 = 3;
/// A search that has this part of its time left when it ends says why.
const MUCH_LEFT: u64 = 5;
/// Connections that are always allowed.
const FEWEST_CONNECTIONS: u32 = 64;

/// The command.
pub(crate) fn command(args: &FindArgs, style: &Style) -> Result<Exit, Failure> {
    let fleet = args.fleet.to_spec().map_err(Failure::usage)?;
    if let Some(sweep) = args.sweep() {
        return sweep::command(args, &sweep.map_err(Failure::usage)?, fleet, style);
    }
    let spec = args.to_spec();
    let recorded = RecordedFiles::default();
    let files: &dyn Files = if fleet.is_some() { &recorded } else { &Disk };
    let resolved =
        PlanRequest::named(&args.plan, args.output.quiet).resolve_from(files, |flags| args.amend(flags));
    let (spec, mut plan, patch) = match (spec, resolved) {
        (Ok(spec), Ok(resolved)) => (spec, resolved.plan, resolved.layered.patch),
        (Err(problems), Ok(_)) => return Err(Failure::usage(problems)),
        (spec, Err(mut failure)) => {
            spec.err().unwrap_or_default().iter().for_each(|problem| failure.problems.push(problem.clone()));
            return Err(failure);
        }
    };
    check_time(&plan, &spec).map_err(Failure::usage)?;
    let objectives = objectives(&plan).map_err(Failure::usage)?;
    let destinations = Destinations::of(&args.output, args.report.as_deref(), &args.save)?;
    let destinations = destinations.or_named(patch.document.as_deref().and_then(describe::plan_name));
    let quiet = args.output.quiet;
    let (result, interrupted) = if let Some(fleet) = fleet {
        fleet_run::admit_search(args, &fleet, &plan).map_err(Failure::usage)?;
        let parcel = Parcel::new(&patch, &recorded, &ControlSpec::default()).map_err(Failure::usage)?;
        let threads = patch.threads.is_some().then_some(plan.threads);
        let mut trials = FleetTrials::begin(fleet, &plan, parcel, threads, quiet)?;
        let found = Finder::new(plan, &mut trials, objectives, &spec, quiet).find();
        trials.end();
        found?
    } else {
        let mut trials = campaign::watching(&args.watch, &mut plan, quiet)?.keeping_connections();
        Finder::new(plan, &mut trials, objectives, &spec, quiet).find()?
    };
    let exit = interrupted.map_or_else(|| exit_of(result.capacity.outcome()), Exit::Interrupted);
    destinations.write(Searched::Capacity(result), style)?;
    Ok(exit)
}

/// Refuses a search that has no time for a trial, one beside it, and a confirmation.
fn check_time(plan: &Plan, spec: &SearchSpec) -> Result<(), Problem> {
    let trial = shortest_trial(plan);
    let least = Nanos(trial.0.saturating_mul(FEWEST_TRIALS));
    if spec.max_time >= least {
        return Ok(());
    }
    let [given, trial, least] = [spec.max_time, trial, least].map(figure::nanos);
    let problem =
        Problem::new(format!("--max-time: {given} leave no room for {FEWEST_TRIALS} trials of {trial}"));
    Err(problem.with_hint(format!("write --max-time {least} or more, or shorter trials with -d")))
}

/// Length of the shortest trial of a search.
fn shortest_trial(plan: &Plan) -> Nanos {
    plan.end.duration.unwrap_or(SHORTEST_LEAD)
}

/// A search under way.
struct Finder<'a, T: Trials> {
    plan: Plan,
    carrier: &'a mut T,
    objectives: Vec<Objective>,
    search: Search,
    spec: &'a SearchSpec,
    /// Length of the shortest trial.
    unit: Nanos,
    lead: Nanos,
    trials: Vec<TrialResult>,
    /// The rate of the last confirmation that contradicted the lower end, and how.
    contradiction: Option<(f64, String)>,
    /// Length of the first trial for which there was no time, and the time that was kept for closing trials.
    unfitting: Option<[Nanos; 2]>,
    begun: Begun,
    quiet: bool,
}

/// Measurements of one trial.
struct Measured {
    run: TrialRun,
    /// Slices of each objective.
    portions: Vec<Vec<SliceCount>>,
}

impl<'a, T: Trials> Finder<'a, T> {
    fn new(
        plan: Plan,
        carrier: &'a mut T,
        objectives: Vec<Objective>,
        spec: &'a SearchSpec,
        quiet: bool,
    ) -> Self {
        let unit = shortest_trial(&plan);
        let lead = if plan.warmup > Nanos::ZERO { plan.warmup } else { Nanos(unit.0 / 5).max(SHORTEST_LEAD) };
        let limits = objectives.iter().map(|objective| objective.limit).collect();
        let settings = Settings {
            to: spec.to,
            precision: spec.precision,
            unit: unit.as_secs_f64(),
            ..Settings::new(spec.from, limits)
        };
        Self {
            plan,
            carrier,
            objectives,
            search: Search::new(settings),
            spec,
            unit,
            lead,
            trials: Vec::new(),
            contradiction: None,
            unfitting: None,
            begun: Begun::now(),
            quiet,
        }
    }

    /// Carries the search out, to its end or as far as it may go. Returns the signal that ended it, too.
    fn find(mut self) -> Result<(CapacityResult, Option<i32>), Failure> {
        while let Some(trial) = self.search.next() {
            let begun = clock::monotonic();
            let length = Nanos(self.unit.0.saturating_mul(u64::from(trial.length)));
            let passed = begun - self.begun.at;
            let kept = self.closing_time();
            if !trial.purpose.is_closing() && passed + length + kept > self.spec.max_time {
                self.unfitting = Some([length, kept]);
                self.search.conclude();
                continue;
            }
            if passed + length > self.spec.max_time {
                self.unfitting.get_or_insert([length, Nanos::ZERO]);
                self.search.end();
                break;
            }
            let measured = self.carry_out(&trial);
            if self.carrier.interrupted().is_some() {
                break;
            }
            let measured = measured?;
            let outcome = self.outcome(&measured);
            if let (Purpose::Confirmation, Outcome::Measured(portions)) = (trial.purpose, &outcome) {
                self.contradiction = self.missed(portions).map(|missed| (trial.rate, missed));
            }
            // A trial whose outcome was clear ends early.
            let carried_out = measured.run.record.duration.as_secs_f64() / length.as_secs_f64();
            let finding = self.search.note(&trial, carried_out, outcome);
            self.add_trial(&trial, begun, &measured, finding);
        }
        let interrupted = self.carrier.interrupted();
        Ok((self.result(interrupted.is_some()), interrupted))
    }

    /// Time reserved for the confirmation and its lead-ins: at most a third of `--max-time`.
    fn closing_time(&self) -> Nanos {
        let trials = Nanos(self.unit.0.saturating_mul(u64::from(self.search.closing_length())));
        (trials + self.lead * 3).min(Nanos(self.spec.max_time.0 / 3))
    }

    fn carry_out(&mut self, trial: &Trial) -> Result<Measured, Failure> {
        let load = self.load_of(trial);
        let plan = self.plan.as_trial(&load);
        let mut plan =
            plan.map_err(|error| Failure::usage(Problem::new(format!("at {}/s: {error}", trial.rate))))?;
        plan.seed = plan.seed.wrapping_add(self.trials.len() as u64);
        let mut portions: Vec<Vec<SliceCount>> = vec![Vec::new(); self.objectives.len()];
        let (search, objectives) = (&self.search, &self.objectives);
        let mut go_on = |progress: &Progress<'_>| {
            let interval = progress.interval;
            if interval.warmup {
                return true;
            }
            for (portions, objective) in portions.iter_mut().zip(objectives) {
                let portion = objective.portion(&interval.steps);
                match portions.last_mut() {
                    // Requests that end after the load belong to its last arrivals.
                    Some(last) if interval.drain => last.merge(portion),
                    _ => portions.push(portion),
                }
            }
            !search.is_clear(trial, &portions, EARLY_CONFIDENCE)
        };
        let argument = load.argument().map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
        let run = self.carrier.carry_out(&plan, &[argument], &mut go_on)?;
        // Requests that did not end in time violate every objective.
        for last in portions.iter_mut().filter_map(|portions| portions.last_mut()) {
            last.merge(SliceCount { count: run.unended(), marked: run.unended() });
        }
        Ok(Measured { run, portions })
    }

    fn load_of(&self, trial: &Trial) -> TrialLoad {
        let scaled = |length: Nanos| Nanos(length.0.saturating_mul(u64::from(trial.scale)));
        let before = trial.after.map(|before| (before, scaled(self.unit)));
        let longest = self.objectives.iter().filter_map(Objective::time_limit).max();
        let connections = longest.map(|longest| {
            let most = trial.rate.max(trial.after.unwrap_or(0.0));
            let needed = most * longest as f64 / 1e9 * SPARE_CONNECTIONS;
            (needed.ceil() as u32).max(FEWEST_CONNECTIONS)
        });
        TrialLoad {
            lead: before.into_iter().chain([(trial.rate, scaled(self.lead))]).collect(),
            rate: trial.rate,
            duration: Nanos(self.unit.0.saturating_mul(u64::from(trial.length))),
            unit: self.unit,
            connections,
            drain: LONGEST_DRAIN,
        }
    }

    /// Returns the outcome of a trial for the server.
    fn outcome(&self, measured: &Measured) -> Outcome {
        if !measured.run.applied.is_whole(&self.objectives) {
            return Outcome::NotApplied;
        }
        // The limit of connections was reached although the generator had time: responses come too slowly for
        // this rate.
        if measured.run.applied.is_overload() {
            return Outcome::Overloaded;
        }
        Outcome::Measured(measured.portions.clone())
    }

    /// The objective of which more requests are bad than may be, in words.
    fn missed(&self, portions: &[Vec<SliceCount>]) -> Option<String> {
        self.objectives.iter().zip(portions).find_map(|(objective, portions)| {
            let SliceCount { count, marked } = SliceCount::sum(portions);
            let is_missed = marked as f64 > objective.limit * count as f64;
            let share = |part: f64| figure::share(part / count.max(1) as f64);
            is_missed.then(|| format!("{} of its requests broke {}", share(marked as f64), objective.spec))
        })
    }

    /// The lowest rate that breaks an objective, if none that was tried may hold: each of the others has more
    /// bad requests than may be, too, or so few requests that they say nothing.
    fn lowest_breaking(&self) -> Option<f64> {
        let may_hold = |level: &Level| {
            let mut all = self.objectives.iter().zip(level.portions());
            level.finding != Finding::Breaks
                && all.all(|(Objective { limit, .. }, portions)| {
                    let SliceCount { count, marked } = SliceCount::sum(portions);
                    count as f64 * limit >= 1.0 && marked as f64 <= limit * count as f64
                })
        };
        let levels = self.search.levels();
        let breaking = levels.iter().find(|level| level.finding == Finding::Breaks)?;
        (!levels.iter().any(may_hold)).then_some(breaking.rate)
    }

    fn add_trial(&mut self, trial: &Trial, begun: Nanos, measured: &Measured, finding: Finding) {
        self.trials.push(TrialResult {
            purpose: match trial.purpose {
                Purpose::Ramp => "ramp",
                Purpose::Bisection => "bisection",
                Purpose::Estimation => "estimation",
                Purpose::Confirmation => "confirmation",
                Purpose::FromAbove => "from_above",
            }
            .to_owned(),
            rate_per_s: trial.rate,
            after_per_s: trial.after,
            at_s: (begun - self.begun.at).as_secs_f64(),
            figures: measured.run.figures.clone(),
            finding: finding_name(finding).to_owned(),
        });
        self.tell();
    }

    /// A line on stderr for the last trial.
    fn tell(&self) {
        let Some(trial) = self.trials.last() else { return };
        let time = |value: Option<u64>| value.map_or("-".to_owned(), |value| figure::nanos_f64(value as f64));
        let mut line = format!(
            "{:>4.0} s  {:<12} {:>12}  {:>4.0} s  p50 {}  p99 {}  errors {}  {}",
            trial.at_s,
            trial.purpose.replace('_', " "),
            figure::per_second(trial.rate_per_s),
            trial.figures.measured_s,
            time(trial.figures.p50),
            time(trial.figures.p99),
            figure::share(trial.figures.error_rate),
            trial.finding.replace('_', " "),
        );
        if trial.finding == finding_name(Finding::NotApplied)
            && let Some(found) = trial.figures.cause()
        {
            line.push_str(&format!(": {}", found.evidence));
        }
        messages::say(self.quiet)(&line);
    }

    fn result(&self, stopped: bool) -> CapacityResult {
        let settings = self.search.settings();
        let search = self.begun.result(
            &self.plan,
            &self.objectives,
            settings.confidence,
            self.spec.precision,
            self.unit,
        );
        CapacityResult {
            schema_version: CAPACITY_SCHEMA_VERSION,
            tool: describe::tool(),
            search,
            capacity: self.capacity(stopped),
            levels: self.search.levels().iter().map(|level| self.level(level)).collect(),
            trials: self.trials.clone(),
        }
    }

    /// The trials that a level rests on.
    fn trials_at(&self, rate: f64) -> impl Iterator<Item = &TrialResult> {
        let not_applied = finding_name(Finding::NotApplied);
        self.trials.iter().filter(move |trial| {
            trial.rate_per_s == rate && trial.after_per_s.is_none() && trial.finding != not_applied
        })
    }

    fn level(&self, level: &Level) -> LevelResult {
        let share = |(objective, portions): (&Objective, &Vec<SliceCount>)| {
            let interval = share_interval(portions, self.search.settings().confidence);
            let all = SliceCount::sum(portions);
            ShareResult {
                slo: objective.spec.to_string(),
                limit: objective.limit,
                share: if all.count == 0 { 0.0 } else { all.marked as f64 / all.count as f64 },
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                variance_inflation: interval.map(|interval| interval.variance_inflation),
            }
        };
        LevelResult {
            rate_per_s: level.rate,
            finding: finding_name(level.finding).to_owned(),
            measured_s: self
                .trials_at(level.rate)
                .map(|trial| trial.figures.measured_s)
                .fold(0.0, |sum, length| sum + length),
            shares: self.objectives.iter().zip(level.portions()).map(share).collect(),
        }
    }

    /// The lowest rate above another one that the generator could not apply.
    fn lowest_not_applied(&self, above: Option<f64>) -> Option<f64> {
        let not_applied = finding_name(Finding::NotApplied);
        let spoiled = self.trials.iter().filter(|trial| trial.finding == not_applied);
        let rates = spoiled.map(|trial| trial.rate_per_s).filter(|rate| above.is_none_or(|low| *rate > low));
        rates.reduce(f64::min)
    }

    /// Why a search ended with much of its time left; `None` if it did not, or its statement says that.
    fn why_time_is_left(&self, end: End) -> Option<String> {
        let (used, most) = (clock::monotonic() - self.begun.at, self.spec.max_time);
        let left = Nanos(most.0.saturating_sub(used.0));
        if left.0 < most.0 / MUCH_LEFT {
            return None;
        }
        let why = match (end, self.unfitting) {
            (End::Narrow, _) => "the interval is as narrow as --precision asks for".to_owned(),
            (End::Unclear, Some([length, Nanos::ZERO])) => {
                format!("the next trial would have taken {}", figure::nanos(length))
            }
            (End::Unclear, Some(times)) => {
                let [length, kept] = times.map(figure::nanos);
                format!("the next trial would have taken {length}, and {kept} were kept for the confirmation")
            }
            (End::Unclear, None) => "trials near the capacity have taken as long as they may".to_owned(),
            _ => return None,
        };
        let [left, most] = [left, most].map(figure::nanos);
        Some(format!("{left} of --max-time {most} were left: {why}"))
    }

    /// The answer in figures and words.
    fn capacity(&self, stopped: bool) -> Capacity {
        let answer = self.search.answer(stopped);
        let mut notes = Vec::new();
        let steps = self.plan.requests_per_arrival();
        let tried_from_above = self.trials.iter().any(|trial| trial.after_per_s.is_some());
        match (answer.low, answer.from_above) {
            (Some(low), Some(from_above)) if from_above < low => notes.push(format!(
                "right after an overload it holds {} only: it recovers slowly",
                figure::per_second(from_above)
            )),
            (Some(_), None) if tried_from_above && matches!(answer.end, End::Narrow | End::Unclear) => {
                notes.push("right after an overload all of the rates near it break".to_owned());
            }
            _ => {}
        }
        if answer.low.is_some() && !answer.confirmed {
            let contradiction = self.contradiction.as_ref().filter(|(rate, _)| Some(*rate) == answer.low);
            notes.push(match contradiction {
                Some((_, missed)) => {
                    format!("the lower end was not confirmed: in a trial of its own {missed}")
                }
                None => "the lower end was not confirmed by another trial".to_owned(),
            });
        }
        let limit = self.trials.iter().rev().find(|trial| trial.finding == finding_name(Finding::NotApplied));
        if let (End::Generator, Some(found)) = (answer.end, limit.and_then(|trial| trial.figures.cause())) {
            notes.push(found.in_words());
        }
        notes.extend(self.why_time_is_left(answer.end));
        let width = answer.low.zip(answer.high).map(|(low, high)| high / low - 1.0);
        let used = figure::nanos(clock::monotonic() - self.begun.at);
        let statement = match answer.end {
            End::Narrow => "the lower rate meets the objectives, the upper one does not".to_owned(),
            End::Unclear => match width {
                Some(width) => format!(
                    "the capacity lies between them, {} wide: that is the precision of {used}; a longer \
                     --max-time narrows it",
                    figure::share(width),
                ),
                None => match self.lowest_breaking().filter(|_| answer.low.is_none()) {
                    Some(rate) => {
                        let is_lowest = self.search.levels().first().is_some_and(|level| level.rate == rate);
                        let rest =
                            if is_lowest { "" } else { ", and lower ones have too few requests to tell" };
                        let rate = figure::per_second(rate);
                        format!("no rate that was tried meets the objectives: {rate} breaks them{rest}")
                    }
                    None => format!(
                        "rates beside it were tried for {used} and stayed unclear: give a longer --max-time"
                    ),
                },
            },
            End::Highest => "the highest rate that may be tried does not break it".to_owned(),
            End::Generator if answer.high.is_some() => {
                "this generator could not apply the last trials, so that the search ended early".to_owned()
            }
            End::Generator => match (answer.low, self.lowest_not_applied(answer.low)) {
                (Some(_), Some(rate)) => format!(
                    "the highest rate that was shown to hold; this generator could not put {} on the server, \
                     whose limit was not found",
                    figure::per_second(rate)
                ),
                (None, Some(rate)) => format!(
                    "this generator could not put even {} on the server, whose limit was not found",
                    figure::per_second(rate)
                ),
                (_, None) => "this generator ended the search before the server's limit was found".to_owned(),
            },
            End::Lowest => "no rate that was tried meets the objectives".to_owned(),
            End::Stopped => "the search was ended before it was done".to_owned(),
        };
        Capacity {
            low_per_s: answer.low,
            high_per_s: answer.high,
            asked_per_s: self.spec.at_least,
            requests_per_iteration: steps,
            confirmed: answer.confirmed,
            after_overload_per_s: answer.from_above,
            end: name_of(answer.end).to_owned(),
            statement,
            notes,
        }
    }
}

const fn name_of(end: End) -> &'static str {
    match end {
        End::Narrow => "narrow",
        End::Unclear => "unclear",
        End::Highest => "highest",
        End::Generator => "generator",
        End::Lowest => "lowest",
        End::Stopped => "stopped",
    }
}

/// The exit code of a search with this outcome.
const fn exit_of(outcome: OutcomeResult) -> Exit {
    match outcome {
        OutcomeResult::Pass | OutcomeResult::Done => Exit::Success,
        OutcomeResult::Fail => Exit::Thresholds,
        OutcomeResult::NoVerdict => Exit::Invalid,
    }
}
