//! Scripts: their texts, and the seam to what carries them out.

use std::sync::Arc;

use plimsoll_scenario::ScriptSource;

use super::Compiler;
use crate::document::{Field, ScriptSettings, Text};
use crate::{Place, Problem};

/// The text of a step's script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptText {
    /// The file, as the plan calls it, or `inline`.
    pub(crate) name: String,
    /// The text.
    pub(crate) source: Vec<u8>,
    /// The step that it belongs to.
    pub(crate) step: String,
    /// Where it stands.
    pub(crate) place: Option<Place>,
}

impl Compiler<'_, '_> {
    /// The number of the step's script, if it has one: the source, or the name of a file.
    pub(super) fn script(&mut self, field: &Field<Text>, step: Option<&str>) -> Option<Option<u32>> {
        if field.is_absent() {
            return Some(None);
        }
        let text = field.get()?.as_str();
        let is_file = text.trim().ends_with(".lua") && !text.trim().contains(char::is_whitespace);
        let (name, source) = match is_file {
            true => (text.trim().to_owned(), self.named_file(field)?),
            false => ("inline".to_owned(), text.as_bytes().to_vec()),
        };
        let script = ScriptText { name, source, step: step?.to_owned(), place: field.place() };
        self.scripts.push(script);
        Some(u32::try_from(self.scripts.len() - 1).ok())
    }

    /// Loads all scripts.
    pub(super) fn load_scripts(&mut self) -> Option<Arc<dyn ScriptSource>> {
        let settings = self.loaded.document.scripts.get().cloned().unwrap_or_default();
        if let (true, Some(place)) = (self.scripts.is_empty(), self.loaded.document.scripts.place())
            && self.resolver.problems.is_empty()
        {
            let problem = Problem::new("`scripts` has no effect: no step has a script");
            self.report(Some(place), problem.with_hint("give a step a `script`, or leave it out"));
        }
        match scripts(&self.scripts, &settings) {
            Ok(scripts) => scripts,
            Err((script, problem)) => {
                let place = self.scripts.get(script).and_then(|script| script.place);
                self.fail(place, problem)
            }
        }
    }
}

/// Loads scripts; script `n` of the source is `texts[n]`. `None` if there are none.
///
/// # Errors
/// The script that is wrong, by its position, and what is.
fn scripts(
    texts: &[ScriptText],
    settings: &ScriptSettings,
) -> Result<Option<Arc<dyn ScriptSource>>, (usize, Problem)> {
    let _ = settings;
    match texts.first() {
        None => Ok(None),
        Some(script) => {
            let ScriptText { name, source, step, .. } = script;
            let message = format!(
                "the script `{name}` ({} bytes) of `{step}` cannot be run by this build",
                source.len()
            );
            Err((0, Problem::new(message).with_hint("build with the scripts of Lua")))
        }
    }
}
