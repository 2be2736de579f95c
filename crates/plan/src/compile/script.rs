//! Scripts: their texts, and the interface to the host of scripts.

use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, ScriptSettings, Text};
use plimsoll_metrics::MetricSpec;
use plimsoll_scenario::{Scheme, ScriptLimits, ScriptSource, ScriptText as StepText, StepScript};
use plimsoll_schedule::parse_duration;

use super::Compiler;
use super::around::Role;
use crate::draft::ScenarioDraft;
use crate::grants::unreadable;
use crate::script::ScriptHost;
use crate::{PlanPatch, parse_size};

/// The text of a step's script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptText {
    /// The file, as the plan calls it, or `inline`.
    pub(crate) name: String,
    /// The text.
    pub(crate) source: Vec<u8>,
    /// The step that it belongs to.
    pub(crate) step: String,
    /// Place of the script in the plan file.
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

    /// Returns `true` if a script may record values of a metric: it has the name in its text, or loads
    /// modules, which may have it.
    pub(super) fn script_may_record(&self, metric: &str) -> bool {
        self.scripts.iter().any(|script| {
            let source = String::from_utf8_lossy(&script.source);
            source.contains(metric) || source.contains("require")
        })
    }

    pub(super) fn load_scripts(
        &mut self,
        patch: &PlanPatch,
        scenarios: &[ScenarioDraft],
        metrics: &[MetricSpec],
    ) -> Option<Arc<dyn ScriptSource>> {
        let settings = self.loaded.document.scripts.get().cloned().unwrap_or_default();
        self.around.has_scripts |= !self.scripts.is_empty();
        if let (false, Some(place)) = (self.around.has_scripts, self.loaded.document.scripts.place())
            && self.around.role == Role::Load
            && self.resolver.problems.is_empty()
        {
            let problem = Problem::new("`scripts` has no effect: no step has a script");
            self.report(Some(place), problem.with_hint("give a step a `script`, or leave it out"));
        }
        if self.scripts.is_empty() {
            return None;
        }
        let Some(ScriptHost(language)) = &patch.script_host else {
            return self.fail(None, Problem::new("scripts cannot be run here"));
        };
        let names = metrics.iter().map(|metric| metric.name.clone());
        let limits = ScriptLimits { metrics: names.collect(), ..self.script_limits(patch, &settings)? };
        let scheme_of = |script: u32| {
            let draft = scenarios.iter().flat_map(|s| &s.drafts).find(|d| d.script == Some(script));
            match draft.map(|draft| self.servers.get(draft.server).url.is_secure()) {
                Some(true) => Scheme::Https,
                _ => Scheme::Http,
            }
        };
        let folder = Some(self.loaded.folder.clone());
        let scripts = (0..).zip(&self.scripts).map(|(number, script)| StepScript {
            step: script.step.clone(),
            text: match script.name.as_str() {
                "inline" => StepText::inline(&String::from_utf8_lossy(&script.source), folder.clone()),
                name => StepText::file(&self.loaded.folder.join(name), &script.source),
            },
            scheme: scheme_of(number),
        });
        match language.load_steps(scripts.collect(), limits) {
            Ok(scripts) => Some(scripts),
            Err(errors) => {
                let place = self.scripts.first().and_then(|script| script.place);
                for error in errors {
                    self.report(place, Problem::new(error.message));
                }
                None
            }
        }
    }

    fn script_limits(&mut self, patch: &PlanPatch, settings: &ScriptSettings) -> Option<ScriptLimits> {
        let time_limit = self.read(&settings.time_limit, parse_duration)?;
        let memory_limit = self.read(&settings.memory_limit, parse_size)?;
        let seed = self.resolver.seed(patch)?;
        let allow_system = self.resolver.grants.system_scripts;
        if settings.allow_system.get() == Some(&true) && !allow_system {
            let problem = Problem::new("the plan's scripts ask for the system: files, processes and names");
            let hint =
                "a plan cannot permit that to itself; for one that you trust, add --script-allow-system";
            self.report(settings.allow_system.place(), problem.with_hint(hint));
        }
        let mut path = Vec::new();
        for field in &settings.path {
            let Some(name) = field.get() else { continue };
            let folder = self.loaded.folder.join(name.as_str());
            match self.resolver.permitted(&folder, true) {
                Ok(()) => path.push(folder),
                Err(error) => self.report(field.place(), unreadable(name.as_str(), &error)),
            }
        }
        Some(ScriptLimits {
            allow_system,
            only_syntax: patch.only_read_scripts,
            time_limit: time_limit.unwrap_or(ScriptLimits::TIME_LIMIT),
            memory_limit: memory_limit.map_or(ScriptLimits::MEMORY_LIMIT, |bytes| bytes as usize),
            path,
            lua_path: patch.lua_path.clone(),
            seed,
            metrics: Vec::new(),
        })
    }
}
