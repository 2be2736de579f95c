//! `plimsoll verify`: makes results again from their evidence.

use plimsoll_document::{Problem, Problems};

use crate::args::verify::VerifyArgs;
use crate::base::exit::{self, Exit};
use crate::base::failure::Failure;
use crate::base::stdout::to_stdout;
use crate::session::evidence::{self, Signed, Statement};

/// Contradictions that are shown; all are counted.
const SHOWN: usize = 10;

pub(crate) fn command(args: &VerifyArgs) -> Result<Exit, Failure> {
    let mut problems = Problems::default();
    let mut all = Exit::Success;
    for file in &args.files {
        let signed = match evidence::read(file) {
            Ok(signed) => signed,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if let Some(key) = args.signed_by.as_ref().filter(|key| **key != signed.key) {
            let message = format!("{}: signed by {}, and not by {key}", file.display(), signed.key);
            problems.push(
                Problem::new(message).with_hint("compare the key with the one that its author publishes"),
            );
            continue;
        }
        let (text, exit) = outcome(&signed);
        to_stdout(|out| writeln!(out, "{}: {text}", file.display()))?;
        all = exit::worse(all, exit);
    }
    match problems.is_empty() {
        true => Ok(all),
        false => Err(Failure { exit: exit::worse(all, Exit::Inconsistent), ..Failure::usage(problems) }),
    }
}

/// The outcome in words, and how the command ends for it.
fn outcome(signed: &Signed) -> (String, Exit) {
    let verified = signed.verify();
    let statement = &verified.result;
    let compared = verified.compared;
    let record = if statement.kind == "run" { "the record" } else { "the records of its trials" };
    let (first, exit) = match (verified.contradictions.len(), verified.of_other_version()) {
        (0, 0) => (format!("verified: {compared} values follow from {record}"), Exit::Success),
        (0, others) => (
            format!("PARTLY VERIFIED: {compared} values follow from {record}, {others} not compared"),
            Exit::Invalid,
        ),
        (1, _) => ("NOT VERIFIED: 1 statement does not follow".to_owned(), Exit::Inconsistent),
        (broken, _) => (format!("NOT VERIFIED: {broken} statements do not follow"), Exit::Inconsistent),
    };
    let mut lines = vec![first];
    lines.push(format!("  signed by {}", signed.key));
    let Statement { kind, id, started_at, tool, outcome, summary } = statement;
    let [id, started_at, name, version] =
        [id, started_at, &tool.name, &tool.version].map(|text| text.escape_debug().to_string());
    lines.push(format!("  {kind} {id} of {started_at}, by {name} {version}"));
    lines.push(format!("  {}  {summary}", outcome.word()));
    for one in verified.contradictions.iter().take(SHOWN) {
        let place = if one.place.is_empty() { "the result" } else { &one.place };
        lines.push(format!("  ! {place}: {}", one.reason));
    }
    if verified.contradictions.len() > SHOWN {
        lines.push(format!("  ! and {} more", verified.contradictions.len() - SHOWN));
    }
    lines.extend(verified.open.iter().map(|open| format!("  ? {}", open.in_words())));
    (lines.join("\n"), exit)
}
