//! The setup, the refresh and the teardown of a plan: steps that are carried out as a plan of one user and
//! one iteration.

use std::sync::Arc;

use plimsoll_core::{Nanos, Shard};
use plimsoll_scenario::{Op, SharedText, Template};
use plimsoll_schedule::Population;

use crate::draft::Requests;
use crate::{Connections, End, Load, Plan, StartTime};

/// Connections to each server at most: as many as the requests of one `parallel` may need at once.
const MOST_CONNECTIONS: u32 = 16;

impl Plan {
    /// The plan that carries these requests out once, with the settings of this one where they are not about
    /// the load.
    pub(crate) fn once(&self, requests: Requests) -> Self {
        let targets = requests.targets.len().max(1) as u32;
        Self {
            scenarios: requests.scenarios,
            steps: requests.steps,
            variables: requests.variables,
            feeds: requests.feeds,
            pools: requests.pools,
            metrics: requests.metrics,
            leaves: requests.leaves,
            setup: None,
            refresh: None,
            teardown: None,
            supplies: requests.supplies,
            tokens: requests.tokens,
            scripts: requests.scripts,
            wrk: None,
            logic: requests.logic,
            targets: requests.targets,
            dynamic_origins: requests.dynamic_origins,
            load: Load::Closed,
            users: Some(Population::constant(1)),
            phases: Vec::new(),
            end: End { duration: None, iterations: Some(1) },
            warmup: Nanos::ZERO,
            threads: 1,
            shard: Shard::WHOLE,
            held: 1,
            start: StartTime::WhenReady,
            connections: Connections {
                initial: targets,
                max: targets * MOST_CONNECTIONS,
                depth: 1,
                rate: None,
                lifetime: None,
                inactivity: None,
                ..self.connections.clone()
            },
            client_faults: None,
            preflight: false,
            thresholds: Vec::new(),
            goodput: None,
            ..self.clone()
        }
    }

    /// Names of the variables whose values the run [leaves](Self::leaves) to its caller, in their order.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        let columns = self.leaves.map_or(&[][..], |pool| &self.pools[usize::from(pool)].columns);
        columns.iter().map(|variable| &*self.variables[usize::from(*variable)])
    }

    /// Gives the values that the setup has set to everything that reads them: to each iteration as first
    /// values, to the refresh and to the teardown.
    pub fn give(&mut self, values: &[(String, GivenValue)]) {
        for scenario in &mut self.scenarios {
            let mut left = scenario.given;
            scenario.program = scenario.program.map(|op| {
                let is_given = left > 0;
                left = left.saturating_sub(1);
                let Op::Set { variable, value } = op else { return op };
                let name = &self.variables[usize::from(variable)];
                match values.iter().find(|(known, _)| is_given && known == name) {
                    Some((_, given)) => Op::Set { variable, value: given.template() },
                    None => Op::Set { variable, value },
                }
            });
        }
        let refresh = self.refresh.as_mut().map(|refresh| &mut refresh.steps);
        for steps in refresh.into_iter().chain(&mut self.teardown) {
            Arc::make_mut(steps).give(values);
        }
    }
}

/// A value that the setup has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenValue {
    /// A value that stays for the whole run.
    Fixed(Vec<u8>),
    /// The refresh of the plan replaces it.
    Refreshed(SharedText),
}

impl GivenValue {
    fn template(&self) -> Template {
        match self {
            Self::Fixed(value) => Template::literal(value),
            Self::Refreshed(text) => Template::shared(text),
        }
    }
}

/// Steps that are carried out again and again beside the load, and replace values of the setup.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// Time from the end of the setup, or of one refresh, to the next.
    pub every: Nanos,
    /// The steps as a plan of their own.
    pub steps: Arc<Plan>,
}
