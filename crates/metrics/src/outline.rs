//! The names of a plan's scenarios, steps and phases: the groups of figures.

use std::ops::Range;

use plimsoll_core::Nanos;

use crate::{MetricSpec, RateUnit, StepRecord};
use serde::{Deserialize, Serialize};

/// The names of a plan's scenarios, steps and phases, in the order of their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// The scenarios.
    pub scenarios: Vec<ScenarioOutline>,
    /// Names of the steps of all scenarios.
    pub steps: Vec<String>,
    /// Kind of response that each step awaits; steps beyond the end of the list await an
    /// [answer](Awaited::Answer).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited: Vec<Awaited>,
    /// The phases of the run, in order and without gaps from its start on; empty if the plan names none.
    pub phases: Vec<PhaseOutline>,
    /// Open model: whether arrivals are requests, and not iterations.
    pub paces_requests: bool,
    /// Metrics that steps record values of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
}

/// Kind of response that a step awaits: it says who decides how long the step takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// An answer, which the target owes from the request on.
    #[default]
    Answer,
    /// A stream of events: the target owes its beginning, and its length is that of the content.
    Stream,
    /// A message that comes by itself, when somebody has sent it: nobody owes it.
    Push,
}

impl Awaited {
    /// Returns `true` for an [answer](Self::Answer).
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// One scenario of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioOutline {
    /// Name of the scenario.
    pub name: String,
    /// Steps of the scenario, a range of [`Outline::steps`].
    pub steps: Range<u32>,
}

/// One named part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOutline {
    /// Name of the phase.
    pub name: String,
    /// Start of the phase, since the start of the run.
    pub at: Nanos,
    /// Length of the phase as planned, above zero.
    pub length: Nanos,
    /// `true` if the phase belongs to the measured part, and not to the warm-up.
    pub measured: bool,
}

impl PhaseOutline {
    /// Returns the end of the phase, since the start of the run.
    pub fn end(&self) -> Nanos {
        self.at + self.length
    }
}

impl Outline {
    /// That of a plan without any.
    pub const EMPTY: Self = Self {
        scenarios: Vec::new(),
        steps: Vec::new(),
        awaited: Vec::new(),
        phases: Vec::new(),
        paces_requests: false,
        metrics: Vec::new(),
    };

    /// The name of each step and that of its scenario: empty where the step is alone in it, of which the name
    /// would say nothing.
    pub fn step_names(&self) -> Vec<(String, String)> {
        let mut names: Vec<_> = self.steps.iter().map(|name| (name.clone(), String::new())).collect();
        for scenario in self.scenarios.iter().filter(|scenario| scenario.steps.len() > 1) {
            let range = scenario.steps.start as usize..scenario.steps.end as usize;
            for (_, of) in names.get_mut(range).into_iter().flatten() {
                of.clone_from(&scenario.name);
            }
        }
        names
    }

    /// Tells steps of a record what the plan knows of them.
    pub fn describe(&self, steps: &mut [StepRecord]) {
        for (step, (_, scenario)) in steps.iter_mut().zip(self.step_names()) {
            step.scenario = scenario;
        }
        for (step, awaited) in steps.iter_mut().zip(&self.awaited) {
            step.awaited = *awaited;
        }
    }

    /// Returns the unit in which rates are counted: iterations, if arrivals are iterations and those of some
    /// scenario are not one request each; otherwise requests.
    pub fn rate_unit(&self) -> RateUnit {
        match !self.paces_requests && self.scenarios.iter().any(|scenario| scenario.steps.len() != 1) {
            true => RateUnit::Iterations,
            false => RateUnit::Requests,
        }
    }

    /// The scenario that a step belongs to.
    pub fn scenario_of(&self, step: u32) -> Option<usize> {
        self.scenarios.iter().position(|scenario| scenario.steps.contains(&step))
    }

    /// The steps that are meant by the name of a scenario, of a step, or of both; without any, all.
    pub fn select(&self, scenario: Option<&str>, step: Option<&str>) -> Vec<u32> {
        (0..self.steps.len() as u32)
            .filter(|&index| {
                let of_scenario = scenario.is_none_or(|name| {
                    let mut named = self.scenarios.iter().filter(|scenario| scenario.name == name);
                    named.any(|scenario| scenario.steps.contains(&index))
                });
                of_scenario && step.is_none_or(|name| self.steps[index as usize] == name)
            })
            .collect()
    }
}
