//! `plimsoll compare`: whether one group of runs is better or worse than another.

use std::path::Path;

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, Problems};
use plimsoll_plan::{Command, Disk, PlanPatch, PlanSource};
use plimsoll_report::Style;
use plimsoll_report::comparison::{Comparison, Group};

use crate::args::compare::CompareArgs;
use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::plan_parts::plan_parts;
use crate::base::{environment, stdout};
use crate::experiment::comparison;
use crate::experiment::paired::{self, Pairing};
use crate::experiment::repeat::Rounds;
use crate::session::saved_runs::History;
use crate::session::{describe, result_files};

pub(crate) fn command(args: &CompareArgs, style: &Style) -> Result<Exit, Failure> {
    if let [a, b] = args.groups.as_slice()
        && (is_plan(a) || is_plan(b))
    {
        return match is_plan(a) && is_plan(b) {
            true => in_turn([a, b], args, style),
            false => Err(Failure::usage(
                Problem::new("a plan and results of runs cannot be compared")
                    .with_hint("name two plans, which are run in turn, or two groups of results"),
            )),
        };
    }
    let question = args.to_question();
    let groups = groups(&args.groups, &mut History::at(&args.place)?);
    let (question, [a, b]) = match (question, groups) {
        (Ok(question), Ok(groups)) => (question, groups),
        (question, groups) => {
            // All problems at once.
            let mut problems = question.err().unwrap_or_default();
            problems.extend(groups.err().unwrap_or_default());
            return Err(Failure::usage(problems));
        }
    };
    let comparison =
        Comparison::new(describe::tool(), &a, &b, &question).map_err(comparison::incomparable)?;
    stdout::to_stdout(|out| args.output.write(&comparison, style, out))?;
    Ok(match comparison.refused {
        Some(_) => Exit::Invalid,
        None => comparison::exit_of(comparison.verdict, args.strict),
    })
}

/// Carries out two plan files in turn, and compares them.
fn in_turn(files: [&str; 2], args: &CompareArgs, style: &Style) -> Result<Exit, Failure> {
    let question = args.to_question().map_err(Failure::usage)?;
    let resolve = |file: &str| {
        let command = Command {
            plan: Some(PlanSource::File(file.to_owned())),
            environment: environment::surroundings().settings,
            flags: PlanPatch { parts: plan_parts(), ..PlanPatch::default() },
        };
        Ok::<_, Failure>(command.resolve(&Disk)?)
    };
    let pairing = Pairing {
        sides: [(files[0], resolve(files[0])?), (files[1], resolve(files[1])?)],
        flag: "--runs",
        rounds: Rounds { runs: args.runs, pause: Nanos::ZERO },
        live: LiveArgs::default(),
        control: ControlSpec::default(),
        saving: None,
        report: None,
        outputs: paired::Outputs { stdout: args.output, json: None },
        quiet: args.quiet,
    };
    let (exit, verdict) = paired::command(pairing, &question, style)?;
    // With --allow-invalid, the judgement decides the exit code, even for invalid runs.
    let exit = if exit == Exit::Invalid && question.allow_invalid { Exit::Success } else { exit };
    let of_verdict = verdict.map_or(Exit::Success, |verdict| comparison::exit_of(verdict, args.strict));
    Ok(exit::worse(of_verdict, exit))
}

/// Returns `true` if this is the name of a plan rather than of results.
fn is_plan(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["yaml", "yml"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn groups(names: &[String], history: &mut History) -> Result<[Group; 2], Problems> {
    let [a, b] = names else {
        let problem = Problem::new(format!("two groups of runs are compared, {} given", names.len()))
            .with_hint("name a group by a folder, a quoted pattern ('base/*.json') or a list with commas");
        return Err(problem.into());
    };
    let mut read = result_files::read(&[a, b], history)?.into_iter();
    let mut group = |name: &String| Group { name: name.clone(), members: read.next().unwrap_or_default() };
    Ok([group(a), group(b)])
}
