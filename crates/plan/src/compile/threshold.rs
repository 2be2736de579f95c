//! Thresholds: what they are about.

use plimsoll_schedule::parse_duration;

use super::{Compiler, suggestion};
use crate::document::{Field, ThresholdSpec};
use crate::draft::ScenarioDraft;
use crate::Problem;

impl Compiler<'_, '_> {
    /// Checks that the thresholds are about scenarios and steps that there are.
    pub(super) fn check_thresholds(&mut self, scenarios: &[ScenarioDraft]) {
        for spec in self.loaded.document.thresholds.iter().filter_map(Field::get) {
            self.check_threshold(spec, scenarios);
        }
    }

    fn check_threshold(&mut self, spec: &ThresholdSpec, scenarios: &[ScenarioDraft]) {
        let _ = (self.read(&spec.window, parse_duration), self.read(&spec.delay, parse_duration));
        let scenario = match spec.scenario.is_absent() {
            true => None,
            false => self.plain(&spec.scenario),
        };
        let names = || scenarios.iter().map(|scenario| scenario.name.as_str());
        if let Some(name) = &scenario
            && !names().any(|known| known == name)
        {
            let problem = Problem::new(format!("no scenario is called `{name}`"));
            return self.report(spec.scenario.place(), problem.with_hint(suggestion(name, names())));
        }
        let Some(step) = self.plain_given(&spec.step).flatten() else { return };
        let within = scenarios.iter().filter(|known| scenario.as_ref().is_none_or(|name| known.name == *name));
        let steps = within.flat_map(|scenario| scenario.drafts.iter().map(|draft| draft.name.as_str()));
        if !steps.clone().any(|known| known == step) {
            let problem = Problem::new(format!("no step is called `{step}`"));
            self.report(spec.step.place(), problem.with_hint(suggestion(&step, steps)));
        }
    }
}
