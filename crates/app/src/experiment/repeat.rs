//! `plimsoll run --repeat N`: several runs of one plan, each with new connections and its own seed. Several
//! plans take turns.

use std::path::Path;

use plimsoll_core::{Nanos, figure};
use plimsoll_document::{Problem, Problems};
use plimsoll_engine::Watched;
use plimsoll_plan::Plan;
use plimsoll_report::{RepeatedResult, RunContext, RunResult, SavedRun, Style, TableFormat, render_repeated};

use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::base::exit::{Exit, worse};
use crate::base::failure::Failure;
use crate::base::files::{self, EndFile};
use crate::base::messages;
use crate::experiment::campaign::Campaign;
use crate::session::done_once::sent_in_all;
use crate::session::queries::Queries;
use crate::session::run::{self, RunPreparation};
use crate::session::saving::RunSaver;
use crate::session::{describe, page};

/// Refuses settings that cannot be combined with several runs, which `flag` asks for. `alike` has the ways to
/// steer runs of which each has to be like the others; `None`: they differ by design.
///
/// # Errors
/// All of it.
pub(crate) fn admit(
    flag: &str,
    plan: &Plan,
    live: &LiveArgs,
    alike: Option<&ControlSpec>,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut refuse = |other: &str, why: &str, hint: &str| {
        let message = format!("{flag} and {other} exclude each other: {why}");
        problems.push(Problem::new(message).with_hint(hint));
    };
    let singly = "make the runs one by one, or leave out one of them";
    for (other, _) in live.files_of_records().iter().filter(|(_, file)| file.is_some()) {
        refuse(other, "each run would overwrite the file", singly);
    }
    let steering = alike.map_or([false; 2], |spec| [spec.rate_file.is_some(), spec.listen.is_some()]);
    let steering = ["--rate-file", "--control"].into_iter().zip(steering);
    for (other, _) in steering.filter(|(_, given)| *given) {
        let hint = "steer a single run, or repeat one that is not steered";
        refuse(other, "runs that are steered are not alike", hint);
    }
    for other in live.exports.given() {
        refuse(other, "exports are of a single run", singly);
    }
    if plan.wrk.is_some() {
        let hint = "make the runs one by one, and `compare` their results";
        refuse("--script", "the script has one beginning and one end", hint);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Carries out the plan in these rounds, and writes the result. The first run has the plan's seed, each of
/// the others the next one.
pub(crate) fn command(
    plan: Plan,
    rounds: Rounds,
    live: &LiveArgs,
    output: &OutputArgs,
    before: &RunPreparation,
    style: &Style,
) -> Result<Exit, Failure> {
    let (format, json) = outputs(output)?;
    run::tell_lacking(&plan, &messages::say(output.quiet));
    let mut sides = [Contender { plan, before }];
    let RepeatedRuns { results: [results], exit, unsaved, shown: [shown] } =
        carry_out(&mut sides, rounds, live, output.quiet)?;
    let result = RepeatedResult::new(describe::tool(), u64::from(rounds.runs), results);
    files::write_table(
        json.as_ref(),
        |out| render_repeated(&result, format, style, out),
        |out| render_repeated(&result, TableFormat::Json, style, out),
    )?;
    conclude(vec![(String::new(), shown)], unsaved, exit, before.report.as_deref(), output.quiet)
}

/// Writes the page of all runs, in named groups, if one is wanted, and returns the exit code.
pub(crate) fn conclude(
    shown: Vec<(String, Vec<SavedRun>)>,
    unsaved: Option<Failure>,
    exit: Exit,
    page: Option<&Path>,
    quiet: bool,
) -> Result<Exit, Failure> {
    let unwritten = page.and_then(|file| page::write_runs(shown, file, quiet).err());
    match unsaved.or(unwritten) {
        None => Ok(exit),
        Some(failure) => Err(Failure { exit: worse(exit, failure.exit), ..failure }),
    }
}

/// Returns the outputs of several runs: the format of the table on stdout, and the JSON file.
fn outputs(output: &OutputArgs) -> Result<(TableFormat, Option<EndFile>), Failure> {
    let mut problems = Problems::default();
    let hint = "write --json FILE, and use `compare`, or make the runs one by one";
    let files = [("--out", !output.out.is_empty()), ("--step-summary", output.step_summary)];
    for (flag, _) in files.iter().filter(|(_, given)| *given) {
        let message = format!("--repeat and {flag} exclude each other: that is of a single run");
        problems.push(Problem::new(message).with_hint(hint));
    }
    let format = output.format().for_table().unwrap_or_else(|| {
        let message = "--repeat: several runs are written as text, json or csv only";
        problems.push(Problem::new(message).with_hint(hint));
        TableFormat::Text
    });
    if !problems.is_empty() {
        return Err(Failure::usage(problems));
    }
    Ok((format, files::json_file(output.json.as_ref())?))
}

/// How often plans are carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Runs of each.
    pub(crate) runs: u32,
    /// Time between two runs.
    pub(crate) pause: Nanos,
}

/// A plan that takes turns with others.
pub(crate) struct Contender<'a> {
    pub(crate) plan: Plan,
    pub(crate) before: &'a RunPreparation,
}

/// Results of all runs.
pub(crate) struct RepeatedRuns<const SIDES: usize> {
    /// Results of each plan.
    pub(crate) results: [Vec<RunResult>; SIDES],
    /// Exit of the process for these runs.
    pub(crate) exit: Exit,
    /// Failure of the first run that could not be saved.
    pub(crate) unsaved: Option<Failure>,
    /// The runs of each for a page of HTML; empty if none is wanted.
    pub(crate) shown: [Vec<SavedRun>; SIDES],
}

/// Carries out each plan in these rounds. In every other one the last one is first, so that drift does not
/// look like a difference between them.
///
/// All plans are carried out on the backend of the first.
pub(crate) fn carry_out<const SIDES: usize>(
    sides: &mut [Contender<'_>; SIDES],
    Rounds { runs, pause }: Rounds,
    live: &LiveArgs,
    quiet: bool,
) -> Result<RepeatedRuns<SIDES>, Failure> {
    let named = live.watch.named()?;
    let beside = live.watch.descriptors();
    let [first, others @ ..] = sides.as_mut_slice() else { unreachable!("there is a plan") };
    let mut campaign = Campaign::begin(&mut first.plan, quiet, beside)?;
    for other in others {
        campaign.add(&mut other.plan, beside)?;
    }
    let mut campaign = campaign.watching(Watched::Machine(named));
    let say = messages::say(quiet);
    let (results, shown) = ([const { Vec::new() }; SIDES], [const { Vec::new() }; SIDES]);
    let mut made = RepeatedRuns { results, exit: Exit::Success, unsaved: None, shown };
    let turns = (0..runs).flat_map(|round| {
        let turn = move |place| (round, if round % 2 == 0 { place } else { SIDES - 1 - place });
        (0..SIDES).map(turn)
    });
    let all = runs as usize * SIDES;
    for (number, (round, side)) in turns.enumerate() {
        if number > 0 && pause > Nanos::ZERO {
            say(&format!("{} until the next run", figure::nanos(pause)));
            campaign.pause(pause);
            if let Some(signal) = campaign.interrupted() {
                made.exit = worse(made.exit, Exit::Interrupted(signal));
                break;
            }
        }
        let Contender { plan, before } = &sides[side];
        let mut plan = plan.clone();
        plan.seed = plan.seed.wrapping_add(u64::from(round));
        let whose = if SIDES > 1 { format!(" ({})", ["A", "B"][side.min(1)]) } else { String::new() };
        say(&format!("run {} of {all}{whose}, seed {}", number + 1, plan.seed));
        let first = campaign.take_first(side);
        let setup = campaign.setup(side).filter(|_| round == 0).cloned();
        let context = run::with_setup(run::context(&plan, &first, before, all > 1), setup.as_ref());
        let mut saver = before.keep(&plan, &context)?;
        let mut queries = Queries::begin(&plan)?;
        let record = campaign.run_at(side, &plan, &mut |progress| {
            saver.iter_mut().for_each(|saver| saver.note(progress));
            !queries.as_mut().is_some_and(|queries| queries.note(progress))
        });
        let mut record = match record {
            Ok(record) => record,
            Err(failure) => {
                saver.into_iter().for_each(RunSaver::abandon);
                return match campaign.interrupted() {
                    Some(signal) if number == 0 => {
                        Err(Failure { exit: Exit::Interrupted(signal), ..failure })
                    }
                    Some(signal) => Ok(RepeatedRuns { exit: Exit::Interrupted(signal), ..made }),
                    None => Err(failure),
                };
            }
        };
        record.interrupted = campaign.interrupted();
        queries.into_iter().for_each(|queries| queries.finish(&mut record));
        let first = first.iter().flat_map(|contact| &contact.records);
        let is_last = round + 1 == runs || record.interrupted.is_some();
        let torn_down = is_last.then(|| campaign.tear_down(side)).flatten();
        let refreshes = campaign.take_refreshes(side);
        let unmeasured = sent_in_all(first, setup.iter().chain(&torn_down), refreshes.as_ref());
        let context = RunContext {
            refresh: refreshes.map(|refreshes| refreshes.result),
            teardown: torn_down.map(|done| done.result),
            ..context
        };
        let (result, of_run) = run::conclude(&mut record, &plan, unmeasured, context, before, &say);
        let saved = || SavedRun::new(&record, result.clone(), before.plan.clone());
        if before.report.is_some() {
            made.shown[side].push(saved());
        }
        if let Some(saver) = saver {
            made.unsaved = made.unsaved.or(saver.finish(Box::new(saved())).err());
        }
        made.exit = worse(made.exit, of_run);
        made.results[side].push(result);
        if campaign.interrupted().is_some() {
            break;
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_run_decides_how_the_process_ends() {
        let order = [
            Exit::Success,
            Exit::Invalid,
            Exit::NothingSucceeded,
            Exit::Thresholds,
            Exit::Inconsistent,
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
