//! Two plans in turn, and whether one is better: `plimsoll compare A.yaml B.yaml`, and loads of extensions
//! that can be made in another way.

use std::path::PathBuf;

use plimsoll_document::{Problem, Problems};
use plimsoll_plan::Resolved;
use plimsoll_report::Style;
use plimsoll_report::comparison::{Comparison, Group, Member, Question, Word};

use crate::args::compare::ComparisonFormat;
use crate::args::control::ControlSpec;
use crate::args::live::LiveArgs;
use crate::args::output::OutputArgs;
use crate::args::save::Saving;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::files::{EndFile, json_file, write_table};
use crate::base::messages;
use crate::experiment::comparison;
use crate::experiment::repeat::{self, Contender, RepeatedRuns, Rounds};
use crate::session::run::RunPreparation;
use crate::session::{describe, page};

/// Settings of a comparison of two plans.
pub(crate) struct Pairing<'a> {
    /// The plans and their names, A and B.
    pub(crate) sides: [(&'a str, Resolved); 2],
    /// The flag that asks for it, for messages.
    pub(crate) flag: &'a str,
    /// Runs of each plan.
    pub(crate) rounds: Rounds,
    /// Flags of live outputs beside the runs.
    pub(crate) live: LiveArgs,
    /// Flags that steer a run, of which none is allowed here.
    pub(crate) control: ControlSpec,
    /// The place to save the runs in, if they are saved.
    pub(crate) saving: Option<Saving>,
    /// The file of the page of HTML, if one is wanted.
    pub(crate) report: Option<PathBuf>,
    /// Outputs at the end.
    pub(crate) outputs: Outputs,
    /// Nothing but results and errors is written.
    pub(crate) quiet: bool,
}

/// Outputs at the end of a comparison.
pub(crate) struct Outputs {
    pub(crate) stdout: ComparisonFormat,
    pub(crate) json: Option<EndFile>,
}

impl Outputs {
    /// Returns the outputs that the flags of a single run ask for.
    ///
    /// # Errors
    /// A file cannot be written, or there is no such format of a comparison.
    pub(crate) fn of(flag: &str, args: &OutputArgs) -> Result<Self, Failure> {
        let mut problems = Problems::default();
        let hint = "a comparison is written as text, json or markdown on stdout, and as JSON by --json FILE";
        let mut refuse = |message: String| problems.push(Problem::new(message).with_hint(hint));
        let files = [("--out", !args.out.is_empty()), ("--step-summary", args.step_summary)];
        for (other, _) in files.iter().filter(|(_, given)| *given) {
            refuse(format!("{flag} and {other} exclude each other: that is of a single run"));
        }
        let stdout = args.format().for_comparison().unwrap_or_else(|| {
            refuse(format!("{flag}: there is no comparison in this format"));
            ComparisonFormat::Text
        });
        if !problems.is_empty() {
            return Err(Failure::usage(problems));
        }
        Ok(Self { stdout, json: json_file(args.json.as_ref())? })
    }
}

/// Carries out two plans in turn and writes how they compare. Returns the exit code and the verdict;
/// `None` if a signal came before there was a run of each.
pub(crate) fn command(
    pairing: Pairing<'_>,
    question: &Question,
    style: &Style,
) -> Result<(Exit, Option<Word>), Failure> {
    let Pairing { sides, flag, rounds, live, control, saving, report: page, outputs, quiet } = pairing;
    let mut problems = Problems::default();
    for (_, resolved) in &sides {
        problems.extend(repeat::admit(flag, &resolved.plan, &live, Some(&control)).err().unwrap_or_default());
    }
    if page.is_some() {
        problems.extend(page::admit(2 * rounds.runs as usize).err().unwrap_or_default());
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems));
    }
    let names = [sides[0].0, sides[1].0];
    let befores = [&sides[0], &sides[1]].map(|(_, resolved)| RunPreparation {
        command_line: describe::redacted(std::env::args(), &resolved.plan.redaction),
        saving: saving.clone(),
        plan: (resolved.layered.patch.document.as_ref())
            .map(|file| file.source().without_secrets(&resolved.plan.redaction)),
        report: page.clone(),
        ..RunPreparation::default()
    });
    let [(_, a), (_, b)] = sides;
    let mut sides =
        [Contender { plan: a.plan, before: &befores[0] }, Contender { plan: b.plan, before: &befores[1] }];
    let RepeatedRuns { results, exit, unsaved, shown } = repeat::carry_out(&mut sides, rounds, &live, quiet)?;
    let mut verdict = None;
    if results.iter().all(|results| !results.is_empty()) {
        let mut groups = names.into_iter().zip(results).map(|(name, results)| {
            let member = |(number, result)| Member { file: format!("{name}, run {number}"), result };
            Group { name: name.to_owned(), members: (1..).zip(results).map(member).collect::<Vec<_>>() }
        });
        let (a, b) = (groups.next().expect("there are two"), groups.next().expect("there are two"));
        let comparison =
            Comparison::new(describe::tool(), &a, &b, question).map_err(comparison::incomparable)?;
        write_table(
            outputs.json.as_ref(),
            |out| outputs.stdout.write(&comparison, style, out),
            |out| comparison.write_json(out),
        )?;
        verdict = Some(comparison.verdict);
    } else {
        messages::say(quiet)("note: it ended before there was a run of each; nothing was compared");
    }
    let shown = names.into_iter().zip(shown).map(|(name, runs)| (name.to_owned(), runs)).collect();
    let exit = repeat::conclude(shown, unsaved, exit, page.as_deref(), quiet)?;
    Ok((exit, verdict))
}
