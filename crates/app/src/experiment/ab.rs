//! `plimsoll ab`: two targets under one load at the same time.

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems, RawValue};
use plimsoll_engine::Progress;
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Dealing, Disk, Load, Plan, PlanPatch, Resolved, is_plan_name};
use plimsoll_report::comparison::{Comparison, Question};
use plimsoll_report::html::render_comparison_page;
use plimsoll_report::interleaved::{Broken, InterleavedResult, Interleaving, NotInterleaved, brief};
use plimsoll_report::result::ModelKind;
use plimsoll_report::{Style, rfc3339};
use plimsoll_system::clock;

use crate::args::ab::{AbArgs, without_thresholds};
use crate::base::environment::{self, RunEnvironment};
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::{self, EndFile};
use crate::base::messages;
use crate::experiment::campaign::{self, Seen};
use crate::experiment::comparison;
use crate::session::describe;
use crate::session::request::PlanRequest;

/// Length of a block: the differences of many short ones tell chance from a change sooner, and one that is
/// shorter than the time for which requests depend on each other is joined to others.
const BLOCK: Nanos = Nanos::from_millis(250);
/// Blocks from one look to the next: a second.
const BLOCKS_PER_LOOK: usize = 4;
/// Longest measured part where nothing says another.
const LONGEST: &str = "2m";
/// Warm-up where nothing says how long the run is: connections are opened in it.
const WARMUP: &str = "1s";

/// Two sides in one plan.
struct Sides {
    plan: Plan,
    names: [String; 2],
    /// The first scenario of B.
    first_of_b: usize,
}

/// The command.
pub(crate) fn command(args: &AbArgs, style: &Style) -> Result<Exit, Failure> {
    let (sides, question) = match (sides(args), args.to_question()) {
        (Ok(sides), Ok(question)) => (sides, question),
        (Ok(_), Err(problems)) => return Err(Failure::usage(problems)),
        (Err(mut failure), question) => {
            question
                .err()
                .unwrap_or_default()
                .iter()
                .for_each(|problem| failure.problems.push(problem.clone()));
            return Err(failure);
        }
    };
    let json = files::json_file(args.output.json.as_ref())?;
    let page = args.output.report.as_ref().map(|path| EndFile::new("--report", path)).transpose()?;
    let (comparison, interrupted) = carry_out(sides, question, args)?;
    files::write_table(
        json.as_ref(),
        |out| args.output.output.write(&comparison, style, out),
        |out| comparison.write_json(out),
    )?;
    if let Some(file) = &page {
        let mut page = Vec::new();
        render_comparison_page(&comparison, &mut page)
            .map_err(|error| Problem::new(format!("cannot make the page: {error}")))
            .and_then(|()| file.write(&page))
            .map_err(Failure::environment)?;
        messages::say(args.output.quiet)(&format!("wrote {}", file.path.display()));
    }
    Ok(match (interrupted, comparison.broken()) {
        (Some(signal), _) => Exit::Interrupted(signal),
        (None, Some(Broken::A | Broken::Both)) => Exit::NothingSucceeded,
        (None, Some(Broken::B)) => Exit::Regression,
        (None, None) if comparison.refused.is_some() => Exit::Invalid,
        (None, None) => comparison::exit_of(comparison.verdict, args.strict()),
    })
}

/// Carries out the run, until all figures have an answer or its time is over. Returns the comparison, and the
/// signal that ended the run, if one did.
fn carry_out(sides: Sides, question: Question, args: &AbArgs) -> Result<(Comparison, Option<i32>), Failure> {
    let Sides { mut plan, names, first_of_b } = sides;
    (plan.interval, plan.statistics) = (BLOCK, BLOCK);
    let is_closed = matches!(plan.load, Load::Closed);
    if is_closed {
        // Users who turned to both would be held up by the slower side, and give it as many requests.
        plan = plan.with_users_apart(first_of_b).map_err(Failure::usage)?;
    }
    let model = if is_closed { ModelKind::Closed } else { ModelKind::Open };
    let is_b = plan.scenarios.iter().enumerate().flat_map(|(number, scenario)| {
        let of_b = number >= first_of_b;
        scenario.steps.clone().map(move |_| of_b)
    });
    let mut interleaving = Interleaving::new(question, model, is_b.collect()).map_err(|refused| {
        let NotInterleaved(why) = refused;
        Failure::usage(Problem::new(format!("--metric: {why}")))
    })?;
    // Without loops and conditions an iteration has each of its steps once.
    let longest = plan.scenarios.iter().map(|scenario| scenario.steps.len() as u32).max();
    let is_dealt = !is_closed && !plan.paces_requests() && plan.requests_per_arrival().is_some();
    if let Some(longest) = longest.filter(|_| is_dealt) {
        interleaving = interleaving.dealing(longest);
    }
    let campaign = campaign::watching(&args.watch, &mut plan, args.output.quiet)?;
    let started_at = rfc3339(clock::unix());
    let (mut decided, mut known) = (false, None);
    let record = campaign.run_shown(0, &plan, &mut |progress: &Progress<'_>| {
        let interval = progress.interval;
        interleaving.add(interval);
        if !interval.warmup && !interval.drain && interleaving.blocks().is_multiple_of(BLOCKS_PER_LOOK) {
            let metrics = interleaving.look();
            known = Some(brief(&metrics));
            decided = decided || interleaving.is_decided(&metrics);
        }
        Seen { go_on: !decided, known: Some(known.clone().unwrap_or_default()) }
    })?;
    let interrupted = campaign.interrupted();
    let run = InterleavedResult {
        ended: if interrupted.is_some() {
            "stopped"
        } else if decided {
            "decided"
        } else {
            "time"
        }
        .to_owned(),
        id: describe::run_id(clock::unix()),
        started_at,
        seed: plan.seed,
        args: describe::redacted(std::env::args(), &plan.redaction),
        plan_hash: plan.fingerprint().to_string(),
        host: describe::host(),
        load: describe::model(&plan).description.first().cloned().unwrap_or_default(),
        block_s: BLOCK.as_secs_f64(),
        apart: is_closed,
        ..interleaving.result(&record)
    };
    let comparison = Comparison::of_interleaving(describe::tool(), names, &interleaving, run, doubt(&record));
    Ok((comparison, interrupted))
}

/// The reason why nothing should be concluded from a run.
fn doubt(record: &RunRecord) -> Option<String> {
    let codes = record.verdict.codes();
    (!record.verdict.valid).then(|| format!("the measurement is invalid ({})", codes.join(", ")))
}

/// Resolves both sides.
fn sides(args: &AbArgs) -> Result<Sides, Failure> {
    let quiet = args.output.quiet;
    if let [a, b] = args.plan.urls()
        && is_plan_name(a)
        && is_plan_name(b)
    {
        let resolve = |file: &String| {
            until_decided(|amend| {
                let environment = RunEnvironment { quiet, ..environment::surroundings() };
                let mut command = args.plan.to_command_of_file(file, environment);
                without_thresholds(&command.flags).map_err(Failure::usage)?;
                amend(&mut command.flags);
                Ok(command.resolve(&Disk)?)
            })
        };
        let (a_plan, b_plan) = (resolve(a)?.plan, resolve(b)?.plan);
        tell_unjudged(a_plan.thresholds.len() + b_plan.thresholds.len(), quiet);
        let first_of_b = a_plan.scenarios.len();
        let plan = a_plan.interleaved(b_plan).map_err(Failure::usage)?;
        return Ok(Sides { plan, names: [a.clone(), b.clone()], first_of_b });
    }
    let resolved = until_decided(|amend| {
        PlanRequest::named(&args.plan, quiet).resolve_amended(|flags| {
            without_thresholds(flags)?;
            amend(flags);
            Ok(())
        })
    })?;
    let plan = resolved.plan;
    tell_unjudged(plan.thresholds.len(), quiet);
    let [a, b] = plan.scenarios.as_slice() else {
        let count = plan.scenarios.len();
        let problem = Problem::new(format!("two sides are compared, {count} given"));
        let is_url = args.plan.urls().iter().any(|url| url.contains("://"));
        let hint = match is_url && count == 1 {
            true => "name two URLs; ApacheBench's load of one URL is `plimsoll run URL -n 100 -c 10`",
            false => "name two URLs, two plan files, or a plan with two scenarios",
        };
        return Err(Failure::usage(problem.with_hint(hint)));
    };
    let mut problems = Problems::default();
    if a.weight != b.weight {
        let problem = Problem::new(format!("the weights of `{}` and `{}` differ", a.name, b.name));
        problems.push(problem.with_hint("leave `weight` out: both sides get as many iterations"));
    }
    if a.start_after != b.start_after {
        let problem = Problem::new(format!("`{}` and `{}` do not start together", a.name, b.name));
        problems
            .push(problem.with_hint("leave `start_after` out: both sides have the load at the same time"));
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems));
    }
    let names = [a.name.clone(), b.name.clone()];
    let plan = Plan { dealing: Dealing::Shuffled, thresholds: Vec::new(), ..plan };
    Ok(Sides { plan, names, first_of_b: 1 })
}

/// Tells that thresholds of plans are left alone.
fn tell_unjudged(thresholds: usize, quiet: bool) {
    if thresholds > 0 {
        messages::say(quiet)("note: thresholds of the plan are not judged, but changes from A to B");
    }
}

/// Resolves a plan; where nothing says how long it is, again with the length of a comparison.
fn until_decided(
    resolve: impl Fn(&dyn Fn(&mut PlanPatch)) -> Result<Resolved, Failure>,
) -> Result<Resolved, Failure> {
    let resolved = resolve(&|_| ())?;
    let patch = &resolved.layered.patch;
    let lengths = [&patch.duration, &patch.iterations, &patch.stages, &patch.user_stages];
    let has_phases = patch.document.as_ref().is_some_and(|loaded| !loaded.document.phases.is_empty());
    if has_phases || lengths.iter().any(|given| given.is_some()) {
        return Ok(resolved);
    }
    let has_warmup = patch.warmup.is_some();
    resolve(&|flags| {
        flags.duration = Some(RawValue::new("--duration", LONGEST));
        if !has_warmup {
            flags.warmup = Some(RawValue::new("--warmup", WARMUP));
        }
    })
}
