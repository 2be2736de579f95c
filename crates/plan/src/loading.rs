//! From a command line to a plan, with the plan file that it names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::suggest;
use plimsoll_document::{
    Document, DocumentOrigin, DocumentParts, FileKind, Files, LARGEST_TEXT, LoadedDocument, MadeDocument,
    Problem, Problems, Source, too_large,
};

use crate::{Layered, Plan, PlanPatch};

/// Everything that a plan is made of.
#[derive(Clone, Default)]
pub struct Command {
    /// The plan file or text.
    pub plan: Option<PlanSource>,
    /// Variables of the environment, by name: settings, and the values for `${env(NAME)}` in plan files.
    pub environment: Vec<(String, String)>,
    /// The flags.
    pub flags: PlanPatch,
}

/// The plan of a command: a file, a text that was made from another description, or a document that was made
/// from flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanSource {
    /// The name of a file; `-` is the standard input.
    File(String),
    /// A text with the name that it has in messages. Names of files in it are relative to the folder of that
    /// name.
    Text(Source),
    /// A document that nothing is read from. Its problems are those of its flags.
    Made(Arc<MadeDocument>),
}

impl From<MadeDocument> for PlanSource {
    fn from(made: MadeDocument) -> Self {
        Self::Made(Arc::new(made))
    }
}

impl PlanSource {
    /// Returns the name of the plan in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::File(name) => name,
            Self::Text(source) => &source.name,
            Self::Made(made) => &made.name,
        }
    }

    /// Returns the document, and reports everything that is wrong with its form. `None` for the document: it
    /// could not be read. The text is there if the problems have places in it.
    fn load(
        &self,
        files: &dyn Files,
        parts: DocumentParts,
        problems: &mut Problems,
    ) -> (Option<LoadedDocument>, Option<Source>) {
        let source = match self {
            Self::File(name) => read(name, files),
            Self::Text(source) => Ok(source.clone()),
            Self::Made(made) => {
                let MadeDocument { name, document, flags: _ } = &**made;
                let origin = DocumentOrigin::Flags(name.clone());
                let folder = PathBuf::new();
                return (Some(LoadedDocument { document: document.clone(), origin, folder }), None);
            }
        };
        let source = match source {
            Ok(source) => source,
            Err(problem) => {
                problems.push(problem);
                return (None, None);
            }
        };
        let loaded = Document::read(&source, parts, problems).map(|document| {
            let folder = Path::new(self.name()).parent().map(Path::to_path_buf).unwrap_or_default();
            LoadedDocument { document, origin: DocumentOrigin::Text(source.clone()), folder }
        });
        (loaded, Some(source))
    }
}

/// A command that makes sense.
#[derive(Debug)]
pub struct Resolved {
    /// The plan that the command describes.
    pub plan: Plan,
    /// The origin of its settings.
    pub layered: Layered,
}

/// A command that makes none.
#[derive(Debug)]
pub struct Refused {
    /// Everything that is wrong, in the order of the plan file.
    pub problems: Problems,
    /// The text that their places are in, if there is one.
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
        let (mut document, mut text) = (None, None);
        if let Some(plan) = &self.plan {
            (document, text) = plan.load(files, self.flags.parts.document(), &mut problems);
            if document.is_none() {
                return Err(Refused { problems, source: text });
            }
        }
        let layered = Layered::new(document.map(Arc::new), &self.environment, self.flags, &mut problems);
        let environment: BTreeMap<String, String> = self.environment.into_iter().collect();
        match Plan::resolve_in(layered.patch.clone(), files, &environment) {
            Ok(plan) if problems.is_empty() => return Ok(Resolved { plan, layered }),
            Ok(_) => {}
            Err(more) => problems.extend(more),
        }
        problems.sort();
        if let Some(PlanSource::Made(made)) = &self.plan {
            problems = made.flags.translated(&problems);
        }
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

/// Plans that are listed if the named one does not exist.
const PLANS_SHOWN: usize = 5;

/// Returns `true` if an argument names a plan file and not a URL: by its ending, or `-` for the standard
/// input.
pub fn is_plan_name(text: &str) -> bool {
    let ending = text.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let is_plan = matches!(ending.as_deref(), Some("yaml" | "yml" | "json"));
    text == "-" || is_plan && !text.contains("://") && !text.contains(['?', '#'])
}

/// Returns the problem with an argument in place of a URL that names a folder or a file, or looks like a
/// path.
pub(crate) fn not_a_url(text: &str, files: &dyn Files) -> Option<Problem> {
    if text.contains("://") {
        return None;
    }
    let (path, shown) = (Path::new(text), text.escape_debug());
    let looks_like_path = text.starts_with(['.', '/', '~']);
    match files.kind(path) {
        Some(FileKind::Folder) => {
            let hint = match plans(path, files).first() {
                Some(plan) => format!("name a plan in it, such as {}", path.join(plan).display()),
                None => "it has no plan: the names of plans end with .yaml, .yml or .json".to_owned(),
            };
            Some(Problem::new(format!("`{shown}` is a folder, not a plan or a URL")).with_hint(hint))
        }
        Some(FileKind::File | FileKind::Stream) if looks_like_path || !text.contains([':', '/']) => {
            let problem = Problem::new(format!("`{shown}` is a file, not a URL"));
            Some(
                problem
                    .with_hint("the names of plans end with .yaml, .yml or .json; a URL begins with http://"),
            )
        }
        None if looks_like_path => {
            let problem = Problem::new(format!("`{shown}` is neither a file nor a URL"));
            Some(problem.with_hint("a URL begins with http://"))
        }
        _ => None,
    }
}

/// The plan beside a missing one that is most like it: by its name, or by its name except for the ending.
fn like(name: &str, files: &dyn Files) -> Option<String> {
    let path = Path::new(name);
    let (file, folder) = (path.file_name()?.to_str()?, path.parent().unwrap_or(Path::new("")));
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let plans = plans(folder, files);
    let stems: Vec<String> = plans.iter().map(|plan| stem(plan)).collect();
    let near = suggest::closest(&stem(file), stems.iter().map(String::as_str))?;
    let near = plans.iter().find(|plan| stem(plan) == near)?;
    Some(folder.join(near).display().to_string())
}

/// The names of the plans in a folder. JSON has other uses, too, such as results of runs.
fn plans(folder: &Path, files: &dyn Files) -> Vec<String> {
    let mut plans = files.names(folder);
    plans.retain(|name| {
        let is_json = || name.to_ascii_lowercase().ends_with(".json");
        let head = || files.read_head(&folder.join(name), JSON_HEAD).unwrap_or_default();
        is_plan_name(name) && (!is_json() || is_json_plan(&String::from_utf8_lossy(&head())))
    });
    plans
}

/// Bytes of a JSON file that tell whether it may be a plan.
const JSON_HEAD: usize = 16 << 10;

/// Returns `true` if JSON begins with a key of plans, and has targets or scenarios.
fn is_json_plan(head: &str) -> bool {
    let first = head.trim_start().strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix('"'));
    let first = first.and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let known = [
        "$schema",
        "name",
        "description",
        "run",
        "phases",
        "targets",
        "variables",
        "data",
        "tokens",
        "setup",
        "refresh",
        "scenarios",
        "teardown",
        "thresholds",
        "scripts",
    ];
    known.contains(&first) && ["\"targets\"", "\"scenarios\""].into_iter().any(|key| head.contains(key))
}

fn read(name: &str, files: &dyn Files) -> Result<Source, Problem> {
    // One byte more reveals a file that is too large.
    let content = files.read_head(Path::new(name), LARGEST_TEXT + 1).map_err(|error| {
        let problem = Problem::new(format!("cannot read the plan `{name}`: {error}"));
        match (error.kind(), files.kind(Path::new(name))) {
            (std::io::ErrorKind::NotFound, _) => match like(name, files) {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => {
                    let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty());
                    let plans = plans(folder.unwrap_or(Path::new("")), files);
                    let whose = folder.map_or("this folder".to_owned(), |f| format!("`{}`", f.display()));
                    let shown = plans.iter().take(PLANS_SHOWN).map(|plan| format!("`{plan}`"));
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    let more = if plans.len() > PLANS_SHOWN { " and more" } else { "" };
                    problem.with_hint(match plans.is_empty() {
                        true => format!(
                            "no plan in {whose}; `plimsoll URL` needs none, and docs/plans.md shows how to \
                             write one"
                        ),
                        false => format!("plans in {whose}: {shown}{more}"),
                    })
                }
            },
            (_, Some(FileKind::Folder)) => Problem::new(format!("the plan `{name}` is a folder")),
            _ => problem,
        }
    })?;
    let shown = if name == "-" { "<stdin>" } else { name };
    if content.len() > LARGEST_TEXT {
        return Err(too_large("plan"));
    }
    match String::from_utf8(content) {
        Ok(text) => Ok(Source { name: shown.to_owned(), text }),
        Err(_) => Err(Problem::new(format!("the plan `{shown}` is not text in UTF-8"))),
    }
}
