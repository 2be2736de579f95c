//! From a command line to a plan, with the plan file that it names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::document::{Document, LoadedDocument, Source};
use crate::{Files, Layered, Plan, PlanPatch, Problem, Problems};

/// Everything that a plan is made of.
#[derive(Clone, Default)]
pub struct Command {
    /// The plan file.
    pub plan: Option<String>,
    /// Variables of the environment, by name: settings, and what plan files name by `${env(NAME)}`.
    pub environment: Vec<(String, String)>,
    /// The flags.
    pub flags: PlanPatch,
}

/// A command that makes sense.
#[derive(Debug)]
pub struct Resolved {
    /// What it asks for.
    pub plan: Plan,
    /// Where its settings come from.
    pub layered: Layered,
}

/// A command that makes none.
#[derive(Debug)]
pub struct Refused {
    /// Everything that is wrong, in the order of the plan file.
    pub problems: Problems,
    /// The plan file that their places are in, if it could be read.
    pub source: Option<Source>,
}

impl Command {
    /// Reads the plan file, puts the layers together and resolves them to a plan.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with all of it, at once.
    pub fn resolve(self, files: &dyn Files) -> Result<Resolved, Refused> {
        let mut problems = Problems::default();
        let mut document = None;
        let mut text = None;
        if let Some(name) = &self.plan {
            match read(name, files) {
                Ok(source) => {
                    document = Document::read(&source, &mut problems).map(|document| {
                        let folder = Path::new(name).parent().map(Path::to_path_buf).unwrap_or_default();
                        Arc::new(LoadedDocument { document, source: source.clone(), folder })
                    });
                    text = Some(source);
                }
                Err(problem) => problems.push(problem),
            }
            if document.is_none() {
                return Err(Refused { problems, source: text });
            }
        }
        let layered = Layered::new(document, &self.environment, self.flags, &mut problems);
        let environment: BTreeMap<String, String> = self.environment.into_iter().collect();
        match Plan::resolve_in(layered.patch.clone(), files, &environment) {
            Ok(plan) if problems.is_empty() => return Ok(Resolved { plan, layered }),
            Ok(_) => {}
            Err(more) => problems.extend(more),
        }
        problems.sort();
        Err(Refused { problems, source: text })
    }
}

/// Without the values of the environment: some are secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("plan", &self.plan)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// Whether an argument names a plan file and not a URL: by its ending, or `-` for the standard input.
pub fn is_plan_name(text: &str) -> bool {
    let ending = text.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let is_plan = matches!(ending.as_deref(), Some("yaml" | "yml" | "json"));
    text == "-" || is_plan && !text.contains("://") && !text.contains(['?', '#'])
}

fn read(name: &str, files: &dyn Files) -> Result<Source, Problem> {
    let content = files.read(Path::new(name)).map_err(|error| {
        let problem = Problem::new(format!("cannot read the plan `{name}`: {error}"));
        match error.kind() {
            std::io::ErrorKind::NotFound => problem.with_hint("a URL begins with http://"),
            _ => problem,
        }
    })?;
    let shown = if name == "-" { "<stdin>" } else { name };
    match String::from_utf8(content) {
        Ok(text) => Ok(Source { name: shown.to_owned(), text }),
        Err(_) => Err(Problem::new(format!("the plan `{shown}` is not text in UTF-8"))),
    }
}
