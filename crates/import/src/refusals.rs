//! Files that a source names and an import may not read.

use plimsoll_document::{ConfinedFiles, Files, Problem, Problems, RefusedFile};

use crate::findings::plain;
use crate::{Imported, Note};

/// Has `import` read the files that a source names through `files`, and tells which were refused: by notes
/// of what was imported, or beside the problems of what was not.
///
/// # Errors
/// The problems of `import`, behind the refusals that caused them.
pub fn confined(
    files: &dyn ConfinedFiles,
    import: impl FnOnce(&dyn Files) -> Result<Imported, Problems>,
) -> Result<Imported, Problems> {
    let done = import(files);
    let (refused, unnamed) = files.refused();
    let mut imported = done.map_err(|problems| explained(&problems, &refused))?;
    let mut note = |at: &str, becomes: String| {
        imported.notes.push(Note { at: plain(at), said: String::new(), becomes });
    };
    for RefusedFile { name, reason, hint } in &refused {
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        note(name, format!("the file is not read: {reason}{hint}"));
    }
    if unnamed > 0 {
        note("files", format!("{unnamed} more refusals to read one are not listed"));
    }
    Ok(imported)
}

/// The problems behind the refusals that caused them. Some importers tell a refusal by themselves, without
/// the advice that helps.
fn explained(problems: &Problems, refused: &[RefusedFile]) -> Problems {
    let message = |file: &RefusedFile| format!("cannot read `{}`: {}", plain(&file.name), file.reason);
    let hint = |file: &RefusedFile| file.hint.map(str::to_owned);
    let mut all = Problems::default();
    for file in refused {
        let message = message(file);
        if !problems.iter().any(|problem| problem.message.contains(&message)) {
            all.push(Problem { hint: hint(file), ..Problem::new(message) });
        }
    }
    for problem in problems {
        let mut problem = problem.clone();
        let cause = refused.iter().find(|file| problem.message.contains(&message(file)));
        problem.hint = cause.and_then(hint).or(problem.hint);
        all.push(problem);
    }
    all.with_notes(problems.notes().to_vec())
}
