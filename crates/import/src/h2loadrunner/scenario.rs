//! Scenarios.

use plimsoll_document::{Field, ParallelStep, StepSpec};

use super::Importer;
use super::load::Share;
use super::variables::Variables;
use crate::draft::{self, text};
use crate::source::{self, Object};

/// Weight of a scenario that names none.
const WEIGHT: u64 = 100;

/// Largest weight. The schema of the format says 65,535, its program and examples know no such limit.
const LARGEST_WEIGHT: u64 = u32::MAX as u64;

impl Importer<'_> {
    /// Reads all scenarios into the document. Gives their shares of the load, in the same order. It is no
    /// problem of a source of the old format that there are none.
    pub(super) fn scenarios(&mut self, top: &mut Object<'_>, is_old: bool) -> Vec<Share> {
        let scenarios = top.objects("Scenarios", &mut self.findings);
        if !is_old && scenarios.is_empty() && top.members().get("Scenarios").is_none_or(is_empty) {
            let hint = "`Scenarios` is a list of objects with a `name` and `Requests`";
            self.findings.hinted("", "there are no scenarios", hint);
        }
        let count = scenarios.len();
        let never = |scenario: &&Object<'_>| {
            scenario.members().get("weight").and_then(serde_json::Value::as_u64) == Some(0)
        };
        // Until its interval is over, the weight of a scenario counts as 0: nothing to an only one.
        let is_only = count - scenarios.iter().filter(never).count() <= 1;
        let mut shares = Vec::new();
        for mut scenario in scenarios {
            if let Some(share) = self.scenario(&mut scenario, is_only) {
                shares.push(share);
            }
            scenario.rest(&mut self.findings, super::is_comment);
        }
        if count > 0 && shares.is_empty() && self.document.scenarios.is_empty() {
            let hint = "give one of them a weight above 0, and requests";
            self.findings.hinted("/Scenarios", "no scenario ever begins", hint);
        }
        shares
    }

    fn scenario(&mut self, scenario: &mut Object<'_>, is_only: bool) -> Option<Share> {
        let name = scenario.filled("name", &mut self.findings).unwrap_or_default();
        if !scenario.has("name") {
            self.findings.problem(&scenario.at, "`name` is missing");
        }
        self.refuse_old_variables(scenario);
        let weight = self.weight(scenario);
        let start_after = self.time(scenario, "interval-to-wait-before-start", 1000);
        let parallel = scenario.flag("run-requests-in-parallel", &mut self.findings) == Some(true);
        let requests = scenario.objects("Requests", &mut self.findings);
        if requests.is_empty() {
            let hint = "`Requests` is a list of objects with a `uri` and a `method`";
            self.findings.hinted(&scenario.at, "the scenario has no requests", hint);
        }
        let known = self.document.data.0.len();
        let (mut variables, sources) = self.data(scenario, requests.len());
        let count = requests.len();
        let steps = self.steps(requests, parallel, &mut variables);
        if weight == 0 {
            let becomes = "a scenario of weight 0 never begins: it is left out";
            self.findings.note(scenario.place("weight"), name, becomes);
            self.document.data.0.truncate(known);
            return None;
        }
        let name = self.scenario_name(scenario, name);
        let mut spec = draft::scenario(&name, steps);
        // h2loadrunner always keeps the cookies of servers.
        spec.cookies = Field::new(true);
        // h2loadrunner sends no header that is not in the file.
        spec.headers.push("user-agent", text(""));
        spec.start_after = start_after.filter(|_| !is_only).unwrap_or_default();
        spec.data = sources.into_iter().map(text).collect();
        if let Some(dollar) = variables.dollar {
            spec.variables.push(dollar, text("$"));
        }
        self.document.scenarios.push(Field::new(spec));
        Some(Share { at: scenario.place("weight"), weight, requests: count.max(1) as u64 })
    }

    /// The name of a scenario, of which there is but one in a plan.
    fn scenario_name(&mut self, scenario: &Object<'_>, wish: &str) -> String {
        let is_taken = |name: &str| {
            let mut others = self.document.scenarios.iter().filter_map(Field::get);
            others.any(|other| other.name.get().is_some_and(|other| other.as_str() == name))
        };
        let names = (2..).map(|number: u32| format!("{wish} {number}"));
        let name = std::iter::once(wish.to_owned()).chain(names).find(|name| !is_taken(name));
        let name = name.unwrap_or_default();
        if name != wish {
            let becomes = format!("another scenario has this name: this one is called `{name}`");
            self.findings.note(scenario.place("name"), wish, becomes);
        }
        name
    }

    fn weight(&mut self, scenario: &mut Object<'_>) -> u64 {
        let weight = scenario.count("weight", &mut self.findings).unwrap_or(WEIGHT);
        if weight > LARGEST_WEIGHT {
            let message = format!("`{weight}` is above {LARGEST_WEIGHT}");
            self.findings.problem(&scenario.place("weight"), message);
        }
        weight.min(LARGEST_WEIGHT)
    }

    /// The requests of a scenario as steps.
    fn steps(
        &mut self,
        mut requests: Vec<Object<'_>>,
        parallel: bool,
        variables: &mut Variables,
    ) -> Vec<StepSpec> {
        // The steps that pick variables must be known before the texts of later requests are read.
        let picked = self.pickers(&mut requests, parallel, variables);
        let mut steps: Vec<StepSpec> = Vec::with_capacity(requests.len());
        for (position, (request, picked)) in requests.iter_mut().zip(picked).enumerate() {
            let (before, this) = self.step(request, position, parallel, &steps, variables);
            if let (Some((name, extract)), Some(last)) = (before, steps.last_mut()) {
                last.extract.push(name, extract);
            }
            steps.push(this);
            if let Some(step) = steps.last_mut() {
                step.extract.0.extend(picked.0);
                // In h2loadrunner, a request that fails does not end its scenario.
                step.on_failure = text("continue");
            }
            request.rest(&mut self.findings, super::is_comment);
        }
        if parallel && steps.len() > 1 {
            return vec![ParallelStep::new(steps).into()];
        }
        steps
    }
}

fn is_empty(value: &serde_json::Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns the name of a request in messages.
pub(super) fn number(at: &str) -> String {
    let index = at.rsplit('/').next().and_then(|index| index.parse::<u64>().ok());
    index.map_or_else(|| source::below(at, ""), |index| format!("request {}", index + 1))
}
