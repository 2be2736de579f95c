//! When iterations start, and when the run ends.

use plimsoll_core::{Nanos, Rate};
use plimsoll_document::{Problem, RawValue};
use plimsoll_metrics::{PhaseOutline, RateUnit};
use plimsoll_scenario::Op;
use plimsoll_schedule::{Population, Process, Profile, Stage, parse_duration, parse_rate, parse_stages};

use crate::phases::{LoadProfile, Phased};
use crate::resolve::Resolver;
use crate::trace;
use crate::users::Users;
use crate::{Dealing, End, PlanPatch, Scenario};

/// Length of a run when nothing says otherwise.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);

/// The time side of a plan.
pub(crate) struct Schedule {
    /// The open model's arrivals, with the warm-up in front; `None` for the closed model.
    pub(crate) profile: Option<(Profile, Process)>,
    /// The closed model's users, with the warm-up in front; `None`: those of the connections.
    pub(crate) users: Option<Population>,
    pub(crate) end: End,
    pub(crate) warmup: Nanos,
    pub(crate) phases: Vec<PhaseOutline>,
}

/// The most stages in which connections come.
const MOST_STEPS: u32 = 100;
/// The value of `rate_of` for requests.
const RATE_OF_REQUESTS: &str = "requests";

/// Conversion from requests per connection to iterations of the run.
pub(crate) struct PerConnection {
    pub(crate) connections: u32,
    /// Requests in as many iterations as [`iterations`](Self::iterations) says, at least 1.
    pub(crate) requests: u64,
    /// At least 1; more than one where scenarios of different lengths take turns by their weights.
    pub(crate) iterations: u64,
    /// Rate at which the connections come; `None`: all at once.
    pub(crate) opening: Option<Rate>,
}

impl PerConnection {
    /// Iterations of the run for this many requests per connection; `None` if the numbers get too large.
    fn total(&self, requests: Rate) -> Option<Rate> {
        let count =
            requests.count().checked_mul(u64::from(self.connections))?.checked_mul(self.iterations)?;
        let period = requests.period().0.checked_mul(self.requests)?;
        Rate::new(count, Nanos(period))
    }

    /// Stages of a run of this length in which each connection brings its part of the `total` rate when it
    /// comes; of many connections several come with a stage, which has the mean of their number. `None` if
    /// the numbers get too large.
    fn growth(&self, total: Rate, opening: Rate, length: Nanos) -> Option<Vec<Stage>> {
        let together = self.connections.div_ceil(MOST_STEPS);
        let (mut stages, mut begun, mut open) = (Vec::new(), Nanos::ZERO, 0_u32);
        while begun < length {
            let next = open.saturating_add(together).min(self.connections);
            let (part, end) = match open == next {
                true => (next, length),
                false => ((open + 1 + next) / 2, opening.arrival_at(next.into()).min(length)),
            };
            if end > begun {
                let count = total.count().checked_mul(u64::from(part))?;
                let period = total.period().0.checked_mul(u64::from(self.connections))?;
                stages.push(hold(Rate::new(count, Nanos(period))?, end.since(begun)));
            }
            (begun, open) = (end, next);
        }
        Some(stages)
    }
}

/// Returns the average number of requests of the scenarios, by their weights, as a pair of requests and
/// iterations. `None` if the number depends on the course of the run, or is 0.
pub(crate) fn requests_per_iteration(scenarios: &[Scenario]) -> Option<(u64, u64)> {
    let (mut requests, mut iterations) = (0_u64, 0_u64);
    for scenario in scenarios {
        let weight = u64::from(scenario.weight);
        for op in scenario.program.ops() {
            if op.is_control() {
                return None;
            }
            requests += weight * op.requests();
        }
        iterations += weight;
    }
    (requests > 0).then_some((requests, iterations))
}

/// The highest rate of a Poisson process, in arrivals per second: each worker draws those of all, at some ten
/// nanoseconds each.
const FASTEST_DRAWN: f64 = 10_000_000.0;

impl Resolver<'_> {
    /// Reads the flags about the load over time. `per_connection` is the unit of `--rps`; `phased` and
    /// `users` were read before. The first scenario joins at `joining`.
    pub(crate) fn schedule(
        &mut self,
        patch: &PlanPatch,
        per_connection: Option<&PerConnection>,
        phased: Option<Phased>,
        users: Option<&Users>,
        joining: Nanos,
    ) -> Option<Schedule> {
        if let Some(phased) = phased {
            return self.phased_schedule(patch, phased, users);
        }
        let rate = self.rate(patch, per_connection);
        let stages = self.stages(patch);
        let process = self.read(patch.arrival.as_ref(), parse_process);
        let duration = self.read_duration(patch.duration.as_ref());
        let iterations = self.read_number(patch.iterations.as_ref(), 1..=u64::MAX);
        let warmup = self.read(patch.warmup.as_ref(), parse_duration);

        if let (Some(rate), Some(stages)) = (given_rate(patch), &patch.stages) {
            let message = format!("{} and {} exclude each other", rate.by, stages.by);
            return self.fail(stages.problem(message).with_hint("stages carry their own rates"));
        }
        if let (Some(duration), Some(stages)) = (&patch.duration, &patch.stages) {
            let message = format!("{} and {} exclude each other", duration.by, stages.by);
            let problem = Problem::new(message).at(duration.place.or(stages.place));
            return self.fail(problem.with_hint("the stages fix the length of the run"));
        }
        if given_rate(patch).is_none() && patch.stages.is_none() {
            self.only_open(patch.arrival.as_ref())?;
            let (duration, iterations, warmup) = (duration?, iterations?, warmup?.unwrap_or_default());
            let population = match users {
                None => None,
                Some(users) => Some(self.population(users, warmup, patch)?),
            };
            let duration = users.and_then(Users::length).or(duration);
            // Without any end, the default one; with a number of iterations, that alone.
            let duration = duration.or(if iterations.is_none() { Some(DEFAULT_DURATION) } else { None });
            let end = End { duration, iterations };
            return Some(Schedule { profile: None, users: population, end, warmup, phases: Vec::new() });
        }
        let (rate, stages, process) = (rate?, stages?, process?.unwrap_or(Process::Uniform));
        let (duration, iterations, warmup) = (duration?, iterations?, warmup?.unwrap_or_default());
        // Iterations without a duration are all finished, however long that takes: the profile only has to be
        // long enough for their arrivals.
        let limited = duration.is_some() || iterations.is_none() || rate.is_none();
        let growing = per_connection.and_then(|unit| Some((unit, unit.opening?)));
        let (lead, stages) = match (rate, stages) {
            (Some(rate), _) => {
                // A warm-up may end between two arrivals, and a scenario may join there: then the first one
                // is due in what is left of that gap.
                let late = joining.since(warmup);
                let spare = u64::from(warmup > Nanos::ZERO || late > Nanos::ZERO);
                let all_open = growing
                    .map_or(Nanos::ZERO, |(unit, opening)| opening.arrival_at(unit.connections.into()));
                let needed =
                    || iterations.map(|n| all_open + late + time_for(rate, n.saturating_add(spare), process));
                let length = duration.or_else(needed).unwrap_or(DEFAULT_DURATION);
                match growing {
                    Some((unit, opening)) => match unit.growth(rate, opening, warmup + length) {
                        Some(stages) => split(stages, warmup),
                        None => return self.fail_too_large(patch.rps.as_ref()?),
                    },
                    None => (Vec::new(), vec![hold(rate, length)]),
                }
            }
            (None, stages) => (Vec::new(), stages.unwrap_or_default()),
        };
        let measured = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.duration);
        let profile = self.profile(patch, (lead, stages.clone()), warmup)?;
        self.check_drawn(given_rate(patch).or(patch.stages.as_ref()), &profile, process)?;
        self.check_any_due(given_rate(patch).or(patch.stages.as_ref()), stages)?;
        let end = End { duration: limited.then_some(measured), iterations };
        let (profile, users) = (Some((profile, process)), None);
        Some(Schedule { profile, users, end, warmup, phases: Vec::new() })
    }

    /// Makes the schedule for the phases of a plan file.
    fn phased_schedule(
        &mut self,
        patch: &PlanPatch,
        phased: Phased,
        users: Option<&Users>,
    ) -> Option<Schedule> {
        let by = RawValue { place: phased.place, ..RawValue::new("phases", "") };
        let process = self.read(patch.arrival.as_ref(), parse_process);
        let Phased { phases, course, warmup, .. } = phased;
        let length = phases.last().map_or(Nanos::ZERO, PhaseOutline::end);
        let end = End { duration: Some(length.since(warmup)), iterations: None };
        let (profile, users) = match course {
            LoadProfile::Rates { warmup, measured } => {
                let profile = match Profile::new([warmup, measured.clone()].concat()) {
                    Ok(profile) => profile,
                    Err(error) => return self.fail(by.problem(format!("phases: {error}"))),
                };
                let process = process?.unwrap_or(Process::Uniform);
                self.check_drawn(Some(&by), &profile, process)?;
                self.check_any_due(Some(&by), measured)?;
                (Some((profile, process)), None)
            }
            LoadProfile::Users(_) => {
                self.only_open(patch.arrival.as_ref())?;
                (None, Some(self.population(users?, warmup, patch)?))
            }
        };
        Some(Schedule { profile, users, end, warmup, phases })
    }

    /// Reads the unit that the rate counts. h2loadrunner's `--rps` for the requests `of_crud` counts
    /// requests: where a create fails, the next one takes the place of what would have followed.
    pub(crate) fn rate_of(&mut self, patch: &PlanPatch, open: bool, of_crud: bool) -> Option<RateUnit> {
        let unit = self.read(patch.rate_of.as_ref(), |text| match text {
            "iterations" => Ok(RateUnit::Iterations),
            RATE_OF_REQUESTS => Ok(RateUnit::Requests),
            _ => Err(format!("`{text}` is not one of iterations, requests")),
        });
        if !open {
            self.only_open(patch.rate_of.as_ref())?;
        }
        let counts_requests = of_crud && patch.rps.is_some() && patch.iterations.is_none();
        let unit = unit?.unwrap_or(if counts_requests { RateUnit::Requests } else { RateUnit::Iterations });
        if let (RateUnit::Requests, Some(given), Some(count)) = (unit, &patch.rate_of, &patch.iterations) {
            let message =
                format!("{} counts requests, so {} does not set the length of the run", given.by, count.by);
            let problem = Problem::new(message).at(count.place.or(given.place));
            return self.fail(problem.with_hint("give a duration: the rate sets the number of requests"));
        }
        Some(unit)
    }

    /// Reads the order in which iterations go to scenarios.
    pub(crate) fn dealing(&mut self, patch: &PlanPatch) -> Option<Dealing> {
        let dealing = self.read(patch.deal.as_ref(), |text| match text {
            "even" => Ok(Dealing::Even),
            "shuffled" => Ok(Dealing::Shuffled),
            _ => Err(format!("`{text}` is not one of even, shuffled")),
        });
        Some(dealing?.unwrap_or_default())
    }

    /// Refuses scenarios whose iterations would use up an arrival and send nothing.
    pub(crate) fn check_first_requests(&mut self, patch: &PlanPatch, unit: RateUnit, scenarios: &[Scenario]) {
        let Some(given) = patch.rate_of.as_ref().filter(|_| unit == RateUnit::Requests) else { return };
        for scenario in scenarios {
            let mut before = scenario.program.ops().iter().take_while(|op| op.requests() == 0);
            if before.any(|op| matches!(op, Op::Pause(_) | Op::Pace(_))) {
                let name = &scenario.name;
                let message =
                    format!("{} counts requests, and `{name}` thinks before its first request", given.by);
                let hint = "put the pause behind the request, or let the rate count iterations";
                self.problems.push(given.problem(message).with_hint(hint));
            }
        }
    }

    /// The constant rate of the run, in arrivals.
    fn rate(&mut self, patch: &PlanPatch, per_connection: Option<&PerConnection>) -> Option<Option<Rate>> {
        let rate = self.read(patch.rate.as_ref(), parse_rate);
        let requests = self.read(patch.rps.as_ref(), parse_rate);
        if let (Some(rate), Some(rps)) = (&patch.rate, &patch.rps) {
            let message = format!("{} and {} exclude each other", rate.by, rps.by);
            let hint = "--rps is per connection, in requests; --rate is the total, in iterations";
            return self.fail(Problem::new(message).at(rps.place.or(rate.place)).with_hint(hint));
        }
        let rate = rate?;
        let (Some(requests), Some(given)) = (requests?, &patch.rps) else { return Some(rate) };
        // If the number of connections is unknown, the problem is reported already.
        match per_connection?.total(requests) {
            Some(total) => Some(Some(total)),
            None => self.fail_too_large(given),
        }
    }

    fn fail_too_large<T>(&mut self, given: &RawValue) -> Option<T> {
        self.fail(given.problem(format!("{}: the rate of all connections is too large", given.by)))
    }

    /// Refuses a rate at which the Poisson process could not even be drawn.
    fn check_drawn(&mut self, given: Option<&RawValue>, profile: &Profile, process: Process) -> Option<()> {
        if process == Process::Uniform || profile.peak() <= FASTEST_DRAWN {
            return Some(());
        }
        let message = format!(
            "{}: arrivals of a Poisson process are drawn one by one, up to {FASTEST_DRAWN}/s",
            given.map_or("", |given| &given.by)
        );
        let problem = Problem::new(message).at(given.and_then(|given| given.place));
        self.fail(problem.with_hint("ask for a lower rate, or for --arrival uniform"))
    }

    /// The stages, or those of the trace that is named in their place.
    fn stages(&mut self, patch: &PlanPatch) -> Option<Option<Vec<Stage>>> {
        let named = |given: &&RawValue| given.text.starts_with('@');
        let Some(given) = patch.stages.as_ref().filter(named) else {
            return self.read(patch.stages.as_ref(), parse_stages);
        };
        if let Some(warmup) = &patch.warmup {
            let message =
                format!("{} has no effect with a trace, which says when each request comes", warmup.by);
            return self.fail(warmup.problem(message).with_hint("leave one of them out"));
        }
        let path = &given.text[1..];
        let content = self.file(given, path)?;
        match trace::stages(&content) {
            Ok(stages) => Some(Some(stages)),
            Err(why) => {
                let problem = given.problem(format!("{}: `{path}` is not a trace: {why}", given.by));
                self.fail(problem.with_hint("write lines such as {\"timestamp\": 1500}, in milliseconds"))
            }
        }
    }

    /// The whole profile: a warm-up without stages of its own holds the first rate of the others.
    fn profile(
        &mut self,
        patch: &PlanPatch,
        (lead, mut stages): (Vec<Stage>, Vec<Stage>),
        warmup: Nanos,
    ) -> Option<Profile> {
        if let (Some(given), true) =
            (&patch.stages, stages.iter().all(|s| s.from.is_zero() && s.to.is_zero()))
        {
            return self.fail(given.problem(format!("{}: no stage has a rate above 0", given.by)));
        }
        if let (Some(given), Some(first)) = (&patch.warmup, stages.first()) {
            if warmup > Nanos::ZERO && first.from.is_zero() {
                let message =
                    format!("{}: the first stage starts at rate 0, so nothing would warm up", given.by);
                return self.fail(
                    given.problem(message).with_hint("put a first stage with a constant rate in front"),
                );
            }
            if warmup > Nanos::ZERO && lead.is_empty() {
                stages.insert(0, hold(first.from, warmup));
            }
        }
        stages.splice(0..0, lead);
        match Profile::new(stages) {
            Ok(profile) => Some(profile),
            Err(error) => {
                let given = given_rate(patch).or(patch.stages.as_ref());
                let by = given.map_or("", |given| &given.by);
                let place = given.and_then(|given| given.place);
                self.fail(Problem::new(format!("{by}: {error}")).at(place))
            }
        }
    }

    /// Refuses a measured part in which no iteration is due: a run without samples says nothing.
    fn check_any_due(&mut self, given: Option<&RawValue>, stages: Vec<Stage>) -> Option<()> {
        // Parts of a profile that is sound are sound.
        let measured = Profile::new(stages).ok()?;
        if measured.total() > 0 {
            return Some(());
        }
        let by = given.map_or("", |given| &given.by);
        let message = format!("{by}: no iteration is due within {:?}", measured.duration());
        self.fail(
            Problem::new(message)
                .at(given.and_then(|given| given.place))
                .with_hint("raise the rate or lengthen the run"),
        )
    }

    /// Refuses a flag that only the open model knows.
    pub(crate) fn only_open(&mut self, given: Option<&RawValue>) -> Option<()> {
        match given {
            None => Some(()),
            Some(given) => self.fail(
                given
                    .problem(format!("{} has no effect in the closed model", given.by))
                    .with_hint("add `--rate` or `--stages` for the open model"),
            ),
        }
    }
}

/// The flag of a constant rate.
fn given_rate(patch: &PlanPatch) -> Option<&RawValue> {
    patch.rate.as_ref().or(patch.rps.as_ref())
}

fn hold(rate: Rate, duration: Nanos) -> Stage {
    Stage { duration, from: rate, to: rate }
}

/// Parts of constant stages, before and from an instant on.
fn split(stages: Vec<Stage>, at: Nanos) -> (Vec<Stage>, Vec<Stage>) {
    let (mut before, mut after, mut begun) = (Vec::new(), Vec::new(), Nanos::ZERO);
    for stage in stages {
        let end = begun + stage.duration;
        let first = end.min(at).since(begun);
        let parts = [(&mut before, first), (&mut after, stage.duration.since(first))];
        for (part, duration) in parts {
            if duration > Nanos::ZERO {
                part.push(Stage { duration, ..stage });
            }
        }
        begun = end;
    }
    (before, after)
}

/// Returns the time that `count` arrivals take.
///
/// Uniform: exactly `count` of them are due before `ceil(count * period / per_period)`. Poisson: the number
/// of arrivals in a time T scatters with a standard deviation of sqrt(rate * T), so the time is longer by six
/// of them (and a few more for small counts); the run ends with the last iteration, not with this time.
fn time_for(rate: Rate, count: u64, process: Process) -> Nanos {
    let count = match process {
        Process::Uniform => count,
        Process::Poisson => count.saturating_add(6 * count.isqrt() + 20),
    };
    let nanos = (u128::from(count) * u128::from(rate.period().0)).div_ceil(u128::from(rate.count()));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn parse_process(text: &str) -> Result<Process, String> {
    match text {
        "uniform" => Ok(Process::Uniform),
        "poisson" => Ok(Process::Poisson),
        _ => Err(format!("`{text}` is not one of uniform, poisson")),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_scenario::{Pause, Program};

    use super::*;

    fn scenario(weight: u32, ops: Vec<Op>) -> Scenario {
        let program = Program::new(ops);
        Scenario { name: String::new(), steps: 0..1, program, given: 0, weight, start_after: Nanos::ZERO }
    }

    #[test]
    fn requests_per_connection_become_iterations_by_weight() {
        let pause = || Op::Pause(Pause::Fixed(Nanos::ZERO));
        let scenarios = [
            scenario(3, vec![Op::Send(0), pause(), Op::Send(1)]),
            scenario(1, vec![Op::Send(2), Op::Fork(3..6)]),
        ];
        // 3 × 2 + 1 × 4 requests in 4 iterations.
        let (requests, iterations) = requests_per_iteration(&scenarios).unwrap();
        assert_eq!((requests, iterations), (10, 4));
        let per_connection = PerConnection { connections: 5, requests, iterations, opening: None };
        let total = per_connection.total(Rate::new(2, Nanos::from_secs(1)).unwrap()).unwrap();
        assert_eq!(total.per_second_f64(), 4.0);
        assert_eq!(requests_per_iteration(&[scenario(1, vec![Op::Send(0), Op::Jump(0)])]), None);
        assert_eq!(requests_per_iteration(&[scenario(1, vec![pause()])]), None);
    }
}
