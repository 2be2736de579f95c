//! Variants of a plan: the same requests to the same servers, under another load.

use plimsoll_core::{Nanos, Rate, Shard};
use plimsoll_metrics::RateUnit;
use plimsoll_scenario::{Op, Program, ResponseHandler};
use plimsoll_schedule::{Process, Profile, ProfileError, Stage};
use serde::{Deserialize, Serialize};

use crate::load::requests_per_iteration;
use crate::{Connections, End, Load, Overload, Pacing, Plan};

/// Intervals that a trial is cut into: enough to see whether one depends on the one before.
const INTERVALS: u64 = 20;
/// No interval of a trial is shorter: it would mostly measure its own edges.
const SHORTEST_INTERVAL: Nanos = Nanos::from_millis(50);

/// Length of a [probe](Plan::as_probe), or of slow clients, beside a run of unknown length.
const LONGEST_PROBE: Nanos = Nanos::from_secs(86_400);
/// Connections that a probe may open to each target, when responses are slower than its requests come.
const PROBE_CONNECTIONS: u32 = 16;
/// Sets the random numbers of slow clients apart from those of their run.
const SLOW_SEED: u64 = 0x73_6c_6f_77;
/// Sets a probe's random numbers apart from those of its run.
const PROBE_SEED: u64 = 0x70_72_6f_62_65;

/// The load of one of several runs of a plan, as a search asks for it: on this machine, or as JSON on the
/// agents of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLoad {
    /// Unmeasured stages before it: iterations per second, and how long they last.
    pub lead: Vec<(f64, Nanos)>,
    /// Iterations per second, of which the thousandths count.
    pub rate: f64,
    /// Length of the measured part.
    pub duration: Nanos,
    /// Length of the shortest run.
    pub unit: Nanos,
    /// Most connections of a load that opens as many as it needs; `None` if the plan's limit applies.
    pub connections: Option<u32>,
    /// Longest wait for owed responses after the load.
    pub drain: Nanos,
}

impl TrialLoad {
    /// The argument that makes the plan of an agent's run this trial of it.
    ///
    /// # Errors
    /// It cannot be written as JSON, which no trial causes.
    pub fn argument(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|text| format!("--trial={text}"))
    }
}

/// A rate to the thousandth of an iteration per second.
fn exact(rate: f64) -> Rate {
    let count = (rate * 1_000.0).round().max(1.0) as u64;
    Rate::new(count, Nanos::from_secs(1_000)).unwrap_or_else(|| Rate::per_second(rate.ceil() as u64))
}

impl Plan {
    /// Returns this plan with the load of a trial.
    ///
    /// # Errors
    /// If the numbers of its stages do not fit: see [`ProfileError`].
    pub fn as_trial(&self, trial: &TrialLoad) -> Result<Self, ProfileError> {
        let lead: Vec<(Rate, Nanos)> = trial.lead.iter().map(|(rate, time)| (exact(*rate), *time)).collect();
        let mut plan = self.at_rate(&lead, exact(trial.rate), trial.duration, trial.unit)?;
        plan.drain = plan.drain.min(trial.drain);
        if let (Load::Open { overload: Overload::Grow, .. }, Some(most)) = (&plan.load, trial.connections) {
            let connections = &mut plan.connections;
            connections.max = connections.max.min(most);
            connections.initial = connections.initial.min(connections.max);
        }
        Ok(plan)
    }

    /// Requests of one arrival on average, if that does not depend on the course of the run.
    pub fn requests_per_arrival(&self) -> Option<f64> {
        if self.paces_requests() {
            return Some(1.0);
        }
        let (requests, iterations) = requests_per_iteration(&self.scenarios)?;
        Some(requests as f64 / iterations as f64)
    }

    /// Makes a plan that sends these requests as fast as they go: in the closed model, for `duration` after
    /// `warmup`, without think times, loops and conditions. Responses, which may be another server's, are not
    /// looked at. The plan judges no thresholds and tries no request first.
    pub fn at_full_speed(&self, warmup: Nanos, duration: Nanos) -> Self {
        let mut plan = Self {
            load: Load::Closed,
            users: None,
            phases: Vec::new(),
            end: End { duration: Some(duration), iterations: None },
            warmup,
            preflight: false,
            setup: None,
            refresh: None,
            teardown: None,
            thresholds: Vec::new(),
            ..self.clone()
        };
        plan.connections.max = plan.connections.initial;
        for step in &mut plan.steps {
            step.handler = ResponseHandler::default();
            step.check_script = None;
        }
        for scenario in &mut plan.scenarios {
            let sends = |op: &&Op| matches!(op, Op::Send(_) | Op::Fork(_) | Op::Set { .. } | Op::Draw(_));
            scenario.program = Program::new(scenario.program.ops().iter().filter(sends).cloned().collect());
            scenario.start_after = Nanos::ZERO;
        }
        plan
    }

    /// Makes a plan that sends these requests as an observer of a run of this plan, at a low constant `rate`.
    /// Warm-up and run are as long as in this plan, or a day where its length is not known. One thread wakes
    /// up for each request. Requests come at random times (Poisson), and do not keep step with the load: they
    /// see the server as it is on average over time (Wolff, "Poisson Arrivals See Time Averages", 1982). The
    /// observer judges no thresholds and tries no request first.
    ///
    /// # Errors
    /// If the rate does not fit: see [`ProfileError`].
    pub fn as_probe(&self, rate: Rate) -> Result<Self, ProfileError> {
        let duration = self.end.duration.unwrap_or(LONGEST_PROBE);
        let hold = Stage { duration: self.warmup + duration, from: rate, to: rate };
        let profile = Profile::new(vec![hold])?;
        let mut plan = Self {
            load: Load::Open {
                profile,
                process: Process::Poisson,
                rate_of: RateUnit::Iterations,
                overload: Overload::Grow,
            },
            end: End { duration: Some(duration), iterations: None },
            users: None,
            phases: Vec::new(),
            threads: 1,
            shard: Shard::WHOLE,
            held: 1,
            pacing: Pacing::Adaptive,
            preflight: false,
            setup: None,
            refresh: None,
            teardown: None,
            thresholds: Vec::new(),
            client_faults: None,
            // The trial has a stream of random numbers of its own, apart from the load's workers.
            seed: self.seed ^ PROBE_SEED,
            ..self.clone()
        };
        plan.connections.initial = plan.targets.len() as u32;
        plan.connections.max = plan.connections.initial * PROBE_CONNECTIONS;
        plan.connections.rate = None;
        Ok(plan)
    }

    /// Makes a plan that sends these requests from this many slow clients beside a run of this plan. The
    /// clients stay for as long as the run, or for a day where its length is not known. In the closed model,
    /// each has a connection of its own, which it gives up as little as its requests, however long they take.
    /// Clients come within the first second. The plan judges no thresholds and tries no request first.
    pub fn as_slow_clients(&self, clients: u32) -> Self {
        let mut plan = Self {
            load: Load::Closed,
            end: End { duration: Some(self.length_or_a_day()), iterations: None },
            users: None,
            phases: Vec::new(),
            warmup: Nanos::ZERO,
            drain: Nanos::ZERO,
            threads: 1,
            shard: Shard::WHOLE,
            held: 1,
            timeout: LONGEST_PROBE,
            connect_timeout: LONGEST_PROBE,
            client_faults: None,
            preflight: false,
            setup: None,
            refresh: None,
            teardown: None,
            thresholds: Vec::new(),
            seed: self.seed ^ SLOW_SEED,
            ..self.clone()
        };
        // Each target has at least one.
        let clients = clients.max(plan.targets.len() as u32);
        let Connections { initial, max, depth, streams, rate, lifetime, inactivity, .. } =
            &mut plan.connections;
        (*initial, *max, *depth, *streams) = (clients, clients, 1, 1);
        *rate = Some(Rate::per_second(clients.into()));
        (*lifetime, *inactivity) = (None, None);
        for step in &mut plan.steps {
            (step.timeout, step.deadline) = (None, None);
        }
        for scenario in &mut plan.scenarios {
            scenario.start_after = Nanos::ZERO;
        }
        plan
    }

    /// From the start of the warm-up to the end of the load.
    fn length_or_a_day(&self) -> Nanos {
        self.end.duration.map_or(LONGEST_PROBE, |duration| self.warmup + duration)
    }

    /// Makes a plan that sends these requests at a constant rate for `duration`, after unmeasured stages. The
    /// plan judges no thresholds and tries no request first. Intervals are a twentieth of `unit`, the length
    /// of the shortest of several such runs, which are to be compared.
    ///
    /// # Errors
    /// If the numbers of the stages do not fit: see [`ProfileError`].
    pub fn at_rate(
        &self,
        lead: &[(Rate, Nanos)],
        rate: Rate,
        duration: Nanos,
        unit: Nanos,
    ) -> Result<Self, ProfileError> {
        let hold = |&(rate, duration): &(Rate, Nanos)| Stage { duration, from: rate, to: rate };
        let stages = lead.iter().chain(&[(rate, duration)]).map(hold).collect();
        let (process, rate_of, overload) = match self.load {
            Load::Open { process, rate_of, overload, .. } => (process, rate_of, overload),
            Load::Closed => (Process::Uniform, RateUnit::Iterations, Overload::Queue),
        };
        let interval = Nanos(unit.0 / INTERVALS).max(SHORTEST_INTERVAL);
        Ok(Self {
            load: Load::Open { profile: Profile::new(stages)?, process, rate_of, overload },
            end: End { duration: Some(duration), iterations: None },
            users: None,
            phases: Vec::new(),
            warmup: lead.iter().fold(Nanos::ZERO, |sum, (_, length)| sum + *length),
            preflight: false,
            setup: None,
            refresh: None,
            teardown: None,
            thresholds: Vec::new(),
            interval,
            statistics: interval,
            ..self.clone()
        })
    }
}
