//! `plimsoll find`: the search for a server's capacity.

use plimsoll_core::{Nanos, figure};
use plimsoll_document::{Files, Problem};
use plimsoll_engine::Progress;
use plimsoll_metrics::Objective;
use plimsoll_plan::{Disk, Plan};
use plimsoll_report::capacity::SearchResult;
use plimsoll_report::capacity_search::{CapacitySearch, purpose_name};
use plimsoll_report::evidence::Course;
use plimsoll_report::trial_run::{TrialCounts, TrialRun, finding_name};
use plimsoll_report::{Searched, Style};
use plimsoll_statistics::{Finding, Trial};

use crate::args::control::ControlSpec;
use crate::args::find::{FindArgs, SearchSpec};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::{environment, messages};
use crate::experiment::campaign;
use crate::experiment::search::{Begun, Found, KeptTrials};
use crate::experiment::trials::{FleetTrials, Trials};
use crate::experiment::{fleet_run, sweep};
use crate::session::fleet::parcel::{Parcel, RecordedFiles};
use crate::session::request::PlanRequest;
use crate::session::search::{objectives, shortest_trial};
use crate::session::searched::Destinations;
use crate::session::{describe, search};

/// Trials without which a search has no answer: at a rate, beside it, and of the lower one again.
const FEWEST_TRIALS: u64 = 3;

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
    let destinations = destinations.proving(&args.evidence)?;
    let text = patch.document.as_ref().map(|file| file.source().without_secrets(&plan.redaction));
    let kept = destinations.wants_evidence().then(|| KeptTrials::new(text));
    let quiet = args.output.quiet;
    let found = if let Some(fleet) = fleet {
        fleet_run::admit_search(args, &fleet, &plan).map_err(Failure::usage)?;
        let parcel = Parcel::new(&patch, &recorded, &ControlSpec::default()).map_err(Failure::usage)?;
        let threads = patch.threads.is_some().then_some(plan.threads);
        let mut trials = FleetTrials::begin(fleet, &plan, parcel, threads, quiet)?;
        let found = Finder::new(plan, &mut trials, objectives, &spec, quiet).find(kept);
        trials.end();
        found?
    } else {
        let mut trials = campaign::watching(&args.watch, &mut plan, quiet)?.keeping_connections();
        Finder::new(plan, &mut trials, objectives, &spec, quiet).find(kept)?
    };
    let exit = found.exit();
    destinations.write(found.result, found.evidence, style)?;
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

/// The finding of a level in words. Later trials at its rate, or beside it, may change it.
fn so_far(finding: &str) -> String {
    match finding {
        "holds" | "breaks" | "unclear" => format!("{finding} so far"),
        other => other.replace('_', " "),
    }
}

/// A search under way, which carries out its trials.
struct Finder<'a, T: Trials> {
    plan: Plan,
    carrier: &'a mut T,
    search: CapacitySearch,
    begun: Begun,
    known: SearchResult,
    quiet: bool,
}

impl<'a, T: Trials> Finder<'a, T> {
    fn new(
        plan: Plan,
        carrier: &'a mut T,
        objectives: Vec<Objective>,
        spec: &SearchSpec,
        quiet: bool,
    ) -> Self {
        let begun = Begun::now();
        let load = search::described(&plan, &objectives);
        let known = SearchResult { load, ..begun.circumstances(&plan) };
        let search = CapacitySearch::new(search::settings(&plan, spec), objectives);
        Self { plan, carrier, search, begun, known, quiet }
    }

    /// Carries the search out, to its end or as far as it may go, and keeps its trials if it is to.
    fn find(mut self, mut kept: Option<KeptTrials>) -> Result<Found, Failure> {
        let asked = loop {
            let at = self.begun.passed();
            let Some(trial) = self.search.next(at) else { break at };
            self.announce(&trial, at);
            let measured = self.carry_out(&trial);
            if self.carrier.interrupted().is_some() {
                break at;
            }
            let (plan, run, counts) = measured?;
            self.search.note(&trial, at, &run, &counts);
            if let Some(kept) = &mut kept {
                kept.keep(at, "", (&plan, &self.known), &run, counts)?;
            }
            self.tell();
        };
        let Self { search, begun, known, .. } = self;
        let (ended, interrupted) = (begun.passed(), self.carrier.interrupted());
        let stopped = interrupted.is_some();
        let evidence = kept.map(|kept| {
            let settings = search.settings().clone();
            let course = Course::Search { settings, begun: begun.at, asked, ended, stopped };
            kept.of(course, search.objectives())
        });
        let result = Searched::Capacity(search.result(known, describe::tool(), ended, stopped));
        Ok(Found { result, evidence, interrupted })
    }

    /// Carries out a trial. Returns its plan, too.
    fn carry_out(&mut self, trial: &Trial) -> Result<(Plan, TrialRun, TrialCounts), Failure> {
        let (search, objectives) = (&self.search, self.search.objectives());
        let load = search::load(trial, search.settings(), objectives);
        let plan = search::trial_plan(&self.plan, &load, search.trials().len());
        let plan =
            plan.map_err(|error| Failure::usage(Problem::new(format!("at {}/s: {error}", trial.rate))))?;
        let mut counts = TrialCounts::new(objectives.len());
        let mut go_on = |progress: &Progress<'_>| {
            counts.note(progress.interval, objectives);
            progress.interval.warmup || !search.is_clear(trial, &counts)
        };
        let argument = load.argument().map_err(|error| Failure::usage(Problem::new(error.to_string())))?;
        let run = self.carrier.carry_out(&plan, &[argument], &mut go_on)?;
        Ok((plan, run, counts))
    }

    /// A line on stderr for a trial that begins, for a page that shows the search.
    fn announce(&self, trial: &Trial, at: Nanos) {
        if !environment::tells_trials() {
            return;
        }
        let line = format!(
            "trying {}, {}, for {:.1} s, at {:.1} s of {:.1} s",
            figure::per_second(trial.rate),
            purpose_name(trial.purpose).replace('_', " "),
            self.search.length(trial).as_secs_f64(),
            at.as_secs_f64(),
            self.search.settings().max_time.as_secs_f64(),
        );
        messages::say(self.quiet)(&line);
    }

    /// A line on stderr for the last trial.
    fn tell(&self) {
        let Some(trial) = self.search.trials().last() else { return };
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
            so_far(&trial.finding),
        );
        if trial.finding == finding_name(Finding::NotApplied)
            && let Some(found) = trial.figures.cause()
        {
            line.push_str(&format!(": {}", found.evidence));
        }
        messages::say(self.quiet)(&line);
    }
}
