//! `plimsoll run --repeat N`: several runs of one plan, each with new connections and its own seed.

use plimsoll_driver::{BackendOptions, Open, OpenEpoll, OpenUring};
use plimsoll_engine::Watched;
use plimsoll_plan::{Plan, Problem, Problems};
use plimsoll_report::{RepeatedResult, RunResult, SavedRun, Style, TableFormat, render_repeated};

use crate::campaign::Campaign;
use crate::control_flags::ControlSpec;
use crate::flags::{LiveArgs, OutputArgs};
use crate::outputs::{self, EndFile};
use crate::run::{self, Before};
use crate::saving::Keeper;
use crate::{Exit, Failure, describe, report};

/// Says what cannot go together with several runs.
///
/// # Errors
/// All of it.
pub(crate) fn admit(plan: &Plan, live: &LiveArgs, control: &ControlSpec) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let files = [("--stats", &live.stats), ("--log", &live.log), ("--failed", &live.failed)];
    for (flag, _) in files.iter().filter(|(_, file)| file.is_some()) {
        let message = format!("--repeat and {flag} exclude each other: each run would overwrite the file");
        problems.push(Problem::new(message).with_hint("make the runs one by one, or leave one of them away"));
    }
    let steering = [("--rate-file", control.rate_file.is_some()), ("--control", control.listen.is_some())];
    for (flag, _) in steering.iter().filter(|(_, given)| *given) {
        let message = format!("--repeat and {flag} exclude each other: runs that are steered are not alike");
        problems
            .push(Problem::new(message).with_hint("steer a single run, or repeat one that is not steered"));
    }
    for flag in live.exports.given() {
        let message = format!("--repeat and {flag} exclude each other: exports are of a single run");
        problems.push(Problem::new(message).with_hint("make the runs one by one, or leave one of them away"));
    }
    if plan.wrk.is_some() {
        let message = "--repeat and --script exclude each other: the script has one beginning and one end";
        problems
            .push(Problem::new(message).with_hint("make the runs one by one, and `compare` their results"));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Carries out the plan `runs` times, and writes what came of it. The first run has the plan's seed, each of
/// the others the next one.
pub(crate) fn command(
    plan: Plan,
    runs: u32,
    live: &LiveArgs,
    output: &OutputArgs,
    before: &Before,
    style: &Style,
) -> Result<Exit, Failure> {
    let (format, json) = outputs(output)?;
    let options = BackendOptions::default();
    let Made { results, exit, mut unsaved, shown } = if run::uses_uring(plan.backend)? {
        carry_out(plan, &OpenUring(options), runs, live, output, before)?
    } else {
        carry_out(plan, &OpenEpoll(options), runs, live, output, before)?
    };
    let result = RepeatedResult::new(describe::tool(), u64::from(runs), results);
    outputs::write_table(
        json.as_ref(),
        |out| render_repeated(&result, format, style, out),
        |out| render_repeated(&result, TableFormat::Json, style, out),
    )?;
    if let Some(file) = &before.report {
        unsaved = unsaved.or(report::write_runs(shown, file, output.quiet).err());
    }
    match unsaved {
        None => Ok(exit),
        Some(failure) => Err(Failure { exit: worse(exit, failure.exit), ..failure }),
    }
}

/// What there is of several runs: a table on stdout, and JSON in a file.
fn outputs(output: &OutputArgs) -> Result<(TableFormat, Option<EndFile>), Failure> {
    let mut problems = Problems::default();
    let hint = "write --json FILE, and use `compare`, or make the runs one by one";
    let files = [("--out", !output.out.is_empty()), ("--step-summary", output.step_summary)];
    for (flag, _) in files.iter().filter(|(_, given)| *given) {
        let message = format!("--repeat and {flag} exclude each other: that is of a single run");
        problems.push(Problem::new(message).with_hint(hint));
    }
    let format = output.output.for_table().unwrap_or_else(|| {
        let message = "--repeat: several runs are written as text, json or csv only";
        problems.push(Problem::new(message).with_hint(hint));
        TableFormat::Text
    });
    if !problems.is_empty() {
        return Err(Failure::usage(problems));
    }
    Ok((format, outputs::json_file(output.json.as_ref())?))
}

/// What came of the runs.
struct Made {
    results: Vec<RunResult>,
    /// How to end for them.
    exit: Exit,
    /// Why the first one that could not be saved was not.
    unsaved: Option<Failure>,
    /// The runs for a page of HTML; empty if none is wanted.
    shown: Vec<SavedRun>,
}

fn carry_out<O: Open + Clone + 'static>(
    mut plan: Plan,
    open: &O,
    runs: u32,
    live: &LiveArgs,
    output: &OutputArgs,
    before: &Before,
) -> Result<Made, Failure> {
    let named = live.watch.named()?;
    let campaign = Campaign::begin(&mut plan, open, output.quiet, live.watch.descriptors())?;
    let mut campaign = campaign.watching(Watched::Machine(named));
    let say = run::say(output.quiet);
    let (mut results, mut exit, mut unsaved, mut shown) = (Vec::new(), Exit::Success, None, Vec::new());
    let seed = plan.seed;
    for number in 0..runs {
        plan.seed = seed.wrapping_add(u64::from(number));
        say(&format!("run {} of {runs}, seed {}", number + 1, plan.seed));
        let first = campaign.take_first();
        let context = run::context(&plan, &first, before, runs > 1);
        let mut keeper = before.keep(&plan, &context)?;
        let record = campaign.run(&plan, &mut |progress| {
            keeper.iter_mut().for_each(|keeper| keeper.note(progress));
            true
        });
        let mut record = match record {
            Ok(record) => record,
            Err(failure) => {
                keeper.into_iter().for_each(Keeper::abandon);
                return match campaign.interrupted() {
                    Some(signal) if results.is_empty() => {
                        Err(Failure { exit: Exit::Interrupted(signal), ..failure })
                    }
                    Some(signal) => Ok(Made { results, exit: Exit::Interrupted(signal), unsaved, shown }),
                    None => Err(failure),
                };
            }
        };
        record.interrupted = campaign.interrupted();
        let (result, of_run) = run::conclude((&mut record, None), &plan, &first, context, before, &say);
        let saved = || SavedRun::new(&record, result.clone(), before.plan.clone());
        if before.report.is_some() {
            shown.push(saved());
        }
        if let Some(keeper) = keeper {
            unsaved = unsaved.or(keeper.finish(Box::new(saved())).err());
        }
        exit = worse(exit, of_run);
        results.push(result);
        if campaign.interrupted().is_some() {
            break;
        }
    }
    Ok(Made { results, exit, unsaved, shown })
}

/// What two runs come to together: interrupted, bad scripts, invalid, thresholds, in this order.
pub(crate) fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit: Exit| match exit {
        Exit::Interrupted(_) => 5,
        Exit::Environment => 4,
        Exit::Usage => 3,
        Exit::Invalid => 2,
        Exit::Thresholds => 1,
        Exit::Success | Exit::Regression | Exit::Undecided => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_run_decides_how_the_process_ends() {
        let order = [
            Exit::Success,
            Exit::Thresholds,
            Exit::Invalid,
            Exit::Usage,
            Exit::Environment,
            Exit::Interrupted(2),
        ];
        for pair in order.windows(2) {
            assert_eq!(worse(pair[0], pair[1]), pair[1]);
            assert_eq!(worse(pair[1], pair[0]), pair[1]);
        }
    }
}
