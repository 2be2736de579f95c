//! `plimsoll ingest`: observability data for a store, as a plan made from a few flags.

use plimsoll_core::{SequenceAllocator, Shard, figure};
use plimsoll_document::{MadeDocument, Problem, RawValue};
use plimsoll_plan::{Plan, PlanPatch};
use plimsoll_report::{RunResult, SavedRun, Style};
use plimsoll_scenario::{Bodies, SuppliedBody};
use plimsoll_synth::Compression;
use plimsoll_system::clock;
use plimsoll_workloads::ingest::{IngestLoad, advice};

use crate::args::workload::ingest::{IngestArgs, InsteadOfLoad, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages::{self, Notify};
use crate::experiment::repeat;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::experiment::sweep::{Level, Sweep};
use crate::session::background::Background;
use crate::session::live::progress::Preparing;
use crate::session::refusals::Refusals;
use crate::session::request::PlanRequest;
use crate::session::searched::Destinations;
use crate::workload::auxiliary_request::transport;
use crate::workload::ingest_demo;
use crate::workload::printed_plan::PrintedPlan;
use crate::workload::store::reach;
use crate::workload::verification::Verification;

/// The load that the flags describe.
fn load_of(args: &IngestArgs) -> Result<IngestLoad, Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    if args.run.plan.has_urls() {
        let problem = Problem::new("`plimsoll ingest` takes no URL and no plan file");
        return Err(Failure::usage(problem.with_hint("name the store with --url")));
    }
    Ok(load)
}

/// The plan of a load.
fn made(load: &IngestLoad) -> Result<MadeDocument, Failure> {
    load.document().map_err(|error| Failure::usage(problem(&error)))
}

/// The plan made from the flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn printed(args: &IngestArgs) -> Result<PrintedPlan, Failure> {
    let made = made(&load_of(args)?)?;
    let amend = |flags: &mut PlanPatch| {
        authorize(args, flags);
        Ok(())
    };
    let beside = [("--pregenerate", args.pregenerated().is_some()), ("--verify", args.store.verify)];
    PrintedPlan::new(&args.run, made, amend, &beside)
}

/// The command.
pub(crate) fn command(args: &IngestArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if let Some(InsteadOfLoad::Demo(demo)) = &args.instead {
        return ingest_demo::command(demo, style);
    }
    if args.prints_plan() {
        return printed(args)?.show(args.run.output.quiet);
    }
    let load = load_of(args)?;
    if let Some(sizes) = args.sweep().map_err(Failure::usage)? {
        return sweep(args, &load, &sizes, style);
    }
    let company = args.run.probe.is_some() || args.run.slow_clients.is_some();
    for (given, flag, why) in [
        (args.run.repeat.is_some(), "--repeat", "runs are verified one by one"),
        (company, "--probe or --slow-clients", "requests beside the load are not recorded"),
    ] {
        if args.store.verify && given {
            let problem = Problem::new(format!("--verify and {flag} exclude each other: {why}"));
            return Err(Failure::usage(problem.with_hint("leave out one of them")));
        }
    }
    let request = RunRequest::made(&args.run, made(&load)?);
    // Problems of the plan are reported before the first request to the server.
    let resolved = request.plan(true).resolve()?;
    let say = messages::say(args.run.output.quiet);
    args.notes().for_each(|note| say(&format!("note: {note}")));
    let notes = load.notes(resolved.plan.threads, resolved.plan.connections.max);
    notes.iter().for_each(|note| say(&format!("note: {note}")));
    let is_point = load.streams.iter().any(|stream| stream.spec.knows_points_by_time());
    if is_point && args.pregenerated().is_some() {
        say(
            "note: batches that are sent again have the series and times that they had, and a store that knows \
             records by these has them already: make as many as are sent, or leave --pregenerate out",
        );
    }
    let mut patch = resolved.layered.patch;
    authorize(args, &mut patch);
    let flags = transport(&patch);
    reach(load.origin(), flags.clone())?;
    let flags = PlanPatch { bearer: patch.bearer, ..flags };
    let mut workload = Ingest { args, load: &load, flags, verification: None };
    run::carry_out(&request, &mut workload, look, style)
}

/// Reports advice for each way in which batches failed, the most frequent first.
fn explain(result: &RunResult, say: &Notify) {
    let examples = &result.error_examples;
    let refused = result.statuses.iter().filter_map(|(status, &count)| {
        let status: u16 = status.parse().ok().filter(|status| *status >= 400)?;
        let start = format!("status {status}, ");
        let said = examples.values().find(|said| said.contains(&start)).map_or("", |said| said);
        // The text in front of it says what was expected.
        let words = said.splitn(3, ": ").nth(2).map_or(String::new(), |words| format!(": {words}"));
        Some((count, format!("answered with {status}{words}"), advice(Some(status), "", said)))
    });
    let lost =
        result.errors.iter().filter(|(class, _)| !class.starts_with("status_")).map(|(class, &count)| {
            let said = examples.get(class).map_or("", |said| said);
            (count, format!("lost with {class}"), advice(None, class, said))
        });
    let late = result.accounting.timed_out;
    let late = (late > 0).then(|| (late, "not answered in time".to_owned(), advice(None, "timeout", "")));
    let open = result.accounting.in_flight_at_stop;
    let open =
        (open > 0).then(|| (open, "without an answer at the end".to_owned(), advice(None, "timeout", "")));
    let mut all: Vec<(u64, String, &str)> = refused.chain(lost).chain(late).chain(open).collect();
    all.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    for (count, how, hint) in all {
        say(&format!("note: {} batches were {how}\nhint: {hint}", figure::count(count)));
    }
}

/// A run with batches of each size.
fn sweep(args: &IngestArgs, load: &IngestLoad, sizes: &[u32], style: &Style) -> Result<Exit, Failure> {
    args.run.admit_several("--sweep", &[]).map_err(Failure::usage)?;
    let destinations = Destinations::of(&args.run.output, args.run.report.as_deref(), &args.run.save)?;
    let quiet = args.run.output.quiet;
    let mut plans = Vec::new();
    for &size in sizes {
        let mut load = load.clone();
        load.streams.iter_mut().for_each(|stream| stream.spec.batch_size = size);
        let made = made(&load)?;
        let made = MadeDocument { name: format!("{}, {size} records a batch", made.name), ..made };
        let is_quiet = quiet || !plans.is_empty();
        let request = PlanRequest::made(&args.run.plan, made, is_quiet);
        let resolved = request.resolve_amended(|flags| {
            authorize(args, flags);
            Ok(())
        })?;
        if plans.is_empty() {
            let patch = &resolved.layered.patch;
            let control = args.run.control.to_spec(Some(patch)).map_err(Failure::usage)?;
            let live = args.run.live.or(Some(patch));
            repeat::admit("--sweep", &resolved.plan, &live, Some(&control)).map_err(Failure::usage)?;
            reach(load.origin(), transport(patch))?;
        }
        plans.push(Level::here(size.to_string(), resolved.plan));
    }
    let watch = &args.run.live.watch;
    let levels = Sweep { setting: "batch-size", is_scaling: false, watch, quiet, destinations, text: None };
    levels.write(plans, None, style)
}

/// The token of the store, among the flags of a run.
fn authorize(args: &IngestArgs, flags: &mut PlanPatch) {
    if let Some(token) = &args.store.token {
        flags.bearer = Some(RawValue::new("--token", &**token));
    }
}

struct Ingest<'a> {
    args: &'a IngestArgs,
    load: &'a IngestLoad,
    /// Flags for requests to the store beside the load.
    flags: PlanPatch,
    verification: Option<Verification<'a>>,
}

impl Workload for Ingest<'_> {
    fn amend(&mut self, flags: &mut PlanPatch) -> Result<(), Problem> {
        authorize(self.args, flags);
        Ok(())
    }

    fn prepare(&mut self, plan: &mut Plan) -> Result<(), Failure> {
        // Set before any record is made: verified records have times from then on.
        if self.args.store.verify {
            let verification = Verification::begin(self.load, self.args, self.flags.clone())?;
            self.verification = Some(verification);
        }
        match self.args.pregenerated() {
            Some(count) => {
                let compressed =
                    self.load.streams.iter().any(|stream| stream.spec.compression != Compression::None);
                pregenerate(plan, count, compressed, self.args.run.output.quiet)
            }
            None => Ok(()),
        }
    }

    fn obstacle(&self) -> Option<&'static str> {
        let verifies = self.args.store.verify.then_some("--verify");
        verifies.or_else(|| self.args.pregenerated().map(|_| "--pregenerate"))
    }

    fn background(&mut self) -> Background {
        Background { observers: vec![Box::new(Refusals::start)], ..Background::default() }
    }

    fn conclude(&mut self, run: &mut SavedRun) -> Result<Exit, Failure> {
        let result = &mut run.result;
        explain(result, &messages::say(self.args.run.output.quiet));
        match self.verification.take() {
            Some(verification) => verification.end(result),
            None => Ok(Exit::Success),
        }
    }
}

/// Makes batches of each supply of a plan, which are sent instead of new ones.
fn pregenerate(plan: &mut Plan, count: u32, compressed: bool, quiet: bool) -> Result<(), Failure> {
    let say = messages::say(quiet);
    for number in 0..plan.supplies.len() {
        let Bodies::Fresh(source) = &plan.supplies[number].bodies else { continue };
        let start = clock::monotonic();
        let mut maker = source.open(plan.supply_seed(number));
        // They follow each other in time as they would if they were made for the run.
        let turns = SequenceAllocator::new(source.span_ns(), Shard::WHOLE).starting_at(source.start_ns());
        let mut out = Vec::new();
        let mut bar = Preparing::new(count, quiet);
        let bodies: Vec<SuppliedBody> = (0..count)
            .map(|made| {
                bar.show(made);
                let (number, begin) = turns.take(clock::unix().0);
                maker.made(number, begin, &mut out)
            })
            .collect();
        drop(bar);
        let bytes: usize = bodies.iter().map(|made| made.body.len()).sum();
        let records = u64::from(count) * u64::from(plan.supplies[number].records);
        let records = figure::count(records);
        let compressed = if compressed { " compressed" } else { "" };
        say(&format!(
            "made {count} batches with {records} records in {:.1} s: {:.1} KB{compressed} on average, {:.1} MB in \
             all; they are sent over and over",
            clock::monotonic().since(start).as_secs_f64(),
            bytes as f64 / f64::from(count) / 1e3,
            bytes as f64 / 1e6,
        ));
        plan.supplies[number].bodies = Bodies::Ready(bodies.into());
    }
    Ok(())
}
