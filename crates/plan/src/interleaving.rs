//! Two plans as one: their scenarios share one load, which is dealt to both at random.

use plimsoll_core::{Nanos, gcd};
use plimsoll_document::{Problem, Problems};
use plimsoll_metrics::MetricSpec;
use plimsoll_scenario::Shift;
use plimsoll_schedule::Population;

use crate::plan::Step;
use crate::{Dealing, Plan, Scenario};

const ALIKE: &str = "give both plans the same `run`, or give the setting as a flag, which both take";

impl Plan {
    /// Returns the plan whose iterations are those of this plan and of `other`, half of them each, dealt in
    /// random order: the scenarios of this plan come first, as many as it has. It judges no thresholds.
    ///
    /// Load, connections and all other settings are those of both, which have to be the same. Data, rows that
    /// are kept and tokens are shared if they are the same in both.
    ///
    /// # Errors
    /// All differences that keep the plans from being one.
    pub fn interleaved(self, other: Self) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        self.check_same_load(&other, &mut problems);
        let joins_at_once = |plan: &Self| plan.scenarios.iter().all(|one| one.start_after == Nanos::ZERO);
        if !joins_at_once(&self) || !joins_at_once(&other) {
            let problem = Problem::new("scenarios that join later (`start_after`) cannot be compared");
            problems
                .push(problem.with_hint("leave `start_after` out: both sides have the same load throughout"));
        }
        if [&self, &other].iter().any(|plan| plan.setup.is_some() || plan.teardown.is_some()) {
            let problem = Problem::new("plans with `setup` or `teardown` cannot share one load");
            problems
                .push(problem.with_hint("compare them by runs in turn: `plimsoll compare a.yaml b.yaml`"));
        }
        for (what, of_both) in [
            ("scripts", self.scripts.is_some() && other.scripts.is_some()),
            ("bodies that are made ahead", !self.supplies.is_empty() && !other.supplies.is_empty()),
            ("tokens", !same_tokens(&self, &other)),
        ] {
            if of_both {
                let problem =
                    Problem::new(format!("both plans have {what} of their own, which one run cannot have"));
                problems.push(
                    problem.with_hint("compare them by runs in turn: `plimsoll compare a.yaml b.yaml`"),
                );
            }
        }
        let weights = match (self.weights_against(&other), other.weights_against(&self)) {
            (Some(a), Some(b)) => [a, b],
            _ => {
                let problem =
                    Problem::new("the weights of the scenarios are too large to be divided in halves");
                problems
                    .push(problem.with_hint("use smaller weights, such as 3 and 1 for 300000 and 100000"));
                return Err(problems);
            }
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(self.merged(other, weights))
    }

    /// Returns the plan with users of their own for the scenarios before the one of this number and for those
    /// from it on, half of all each, and with targets of their own. Call it for the closed model.
    ///
    /// # Errors
    /// The number of users is odd.
    pub fn with_users_apart(mut self, second: usize) -> Result<Self, Problem> {
        let users = match self.users.take() {
            Some(users) => users,
            None => Population::constant((self.lasting_users() as u32).next_multiple_of(2)),
        };
        let first = users.at(Nanos::ZERO);
        if !first.is_multiple_of(2) {
            let problem = Problem::new(format!("A and B have as many users each, and {first} is odd"));
            return Err(problem.with_hint(format!("write --users {}", first + 1)));
        }
        let begin =
            self.scenarios.get(second).map_or(self.steps.len(), |scenario| scenario.steps.start as usize);
        let (a, b) = self.steps.split_at_mut(begin);
        for target in 0..self.targets.len() {
            let is_of = |steps: &[Step]| steps.iter().any(|step| step.target == target);
            if is_of(a) && is_of(b) {
                let own = self.targets.len();
                self.targets.push(self.targets[target].clone());
                b.iter_mut().filter(|step| step.target == target).for_each(|step| step.target = own);
            }
        }
        let least = self.targets.len() as u32;
        self.connections.initial = self.connections.initial.max(least);
        self.connections.max = self.connections.max.max(self.connections.initial);
        Ok(Self { users: Some(users), dealing: Dealing::Apart(second as u32), ..self })
    }

    /// Returns the weights of the scenarios for which both plans have as many iterations. `None` if one would
    /// be too large.
    fn weights_against(&self, other: &Self) -> Option<Vec<u32>> {
        let sum = |plan: &Self| plan.scenarios.iter().map(|one| u64::from(one.weight)).sum::<u64>();
        let (mine, theirs) = (sum(self), sum(other));
        let factor = theirs / gcd(mine, theirs).max(1);
        self.scenarios
            .iter()
            .map(|one| u32::try_from(u64::from(one.weight).checked_mul(factor)?).ok())
            .collect()
    }

    /// Reports the first setting of the load in which the plans differ.
    fn check_same_load(&self, other: &Self, problems: &mut Problems) {
        let (mine, theirs) = (self.canonical_load(), other.canonical_load());
        let differs = mine.lines().zip(theirs.lines()).find(|(mine, theirs)| mine != theirs);
        if let Some((mine, theirs)) = differs {
            let message = format!("the plans ask for different loads: `{mine}` and `{theirs}`");
            problems.push(Problem::new(message).with_hint(ALIKE));
        } else if mine != theirs {
            problems.push(
                Problem::new("the plans ask for different loads: one has more stages").with_hint(ALIKE),
            );
        }
        if self.phases != other.phases {
            problems.push(Problem::new("the phases of the plans differ").with_hint(ALIKE));
        }
    }

    fn merged(mut self, other: Self, [mine, theirs]: [Vec<u32>; 2]) -> Self {
        let shift = Shift {
            steps: self.steps.len() as u32,
            feeds: shared_or_behind(&mut self.feeds, other.feeds),
            pools: shared_or_behind(&mut self.pools, other.pools),
            metrics: apart(&mut self.metrics, other.metrics),
        };
        let targets = self.targets.len();
        for (scenario, weight) in self.scenarios.iter_mut().zip(mine) {
            scenario.weight = weight;
        }
        let others = other.scenarios.into_iter().zip(theirs);
        self.scenarios
            .extend(others.map(|(scenario, weight)| Scenario { weight, ..shifted(scenario, shift) }));
        self.steps.extend(other.steps.into_iter().map(|mut step| {
            step.target += targets;
            step
        }));
        self.targets.extend(other.targets);
        // An iteration belongs to one of the plans, so their variables use the same places.
        if other.variables.len() > self.variables.len() {
            self.variables = other.variables;
        }
        if self.tokens.is_empty() {
            self.tokens = other.tokens;
        }
        if self.supplies.is_empty() {
            self.supplies = other.supplies;
        }
        let least = self.targets.len() as u32;
        self.connections.initial = self.connections.initial.max(least);
        self.connections.max = self.connections.max.max(self.connections.initial);
        Self {
            logic: self.logic.with(other.logic.to_string().as_bytes()),
            scripts: self.scripts.or(other.scripts),
            dynamic_origins: self.dynamic_origins.or(other.dynamic_origins),
            dealing: Dealing::Shuffled,
            thresholds: Vec::new(),
            ..self
        }
    }
}

fn same_tokens(a: &Plan, b: &Plan) -> bool {
    let specs =
        |plan: &Plan| plan.tokens.iter().map(|signer| format!("{:?}", signer.spec())).collect::<Vec<_>>();
    a.tokens.is_empty() || b.tokens.is_empty() || specs(a) == specs(b)
}

/// Puts the later ones behind the others, unless they are the same ones. Returns by how much their positions
/// grow.
fn shared_or_behind<T: PartialEq>(all: &mut Vec<T>, later: Vec<T>) -> u16 {
    if *all == later {
        return 0;
    }
    let before = all.len() as u16;
    all.extend(later);
    before
}

/// Puts the later metrics behind the others; names tell those of A from those of B. Returns by how much their
/// positions grow.
fn apart(all: &mut Vec<MetricSpec>, later: Vec<MetricSpec>) -> u16 {
    let of =
        |side: &str, metric: MetricSpec| MetricSpec { name: format!("{side}.{}", metric.name), ..metric };
    let before = all.len() as u16;
    let mine = std::mem::take(all).into_iter().map(|metric| of("A", metric));
    *all = mine.chain(later.into_iter().map(|metric| of("B", metric))).collect();
    before
}

/// The scenario in a plan that comes behind another one.
fn shifted(scenario: Scenario, by: Shift) -> Scenario {
    let program = scenario.program.map(|op| op.shifted(by));
    Scenario { steps: by.range(scenario.steps), program, ..scenario }
}
