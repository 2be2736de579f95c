//! Merges the results of a run's agents into one.

use plimsoll_core::{Nanos, Shard};
use plimsoll_document::Problem;
use plimsoll_engine::Control;
use plimsoll_fleet::{Member, MemberEnd};
use plimsoll_plan::{Load, Plan, shard_name};
use plimsoll_report::SavedRun;
use plimsoll_report::agent::{AgentResult, AgentState, TakenOver};
use plimsoll_report::saved::FleetShare;
use plimsoll_schedule::{Arrivals, Profile};

use crate::base::exit::Exit;
use crate::base::failure::Failure;

/// The requested load, as far as the accounts of lost agents need it.
pub(crate) struct AskedLoad<'a> {
    pub(crate) plan: &'a Plan,
    /// Threads of each shard.
    pub(crate) threads: u32,
    /// The profile with all changes; `None` in the closed model.
    pub(crate) profile: Option<Profile>,
    /// When the load was stopped, since the start, if it was before its end.
    pub(crate) stopped: Option<Nanos>,
}

impl AskedLoad<'_> {
    /// Scheduled arrivals of neighbouring shards in the measured part, from one instant to another; 0 in the
    /// closed model.
    fn arrivals(
        &self,
        (first_shard, held): (u32, u32),
        of: u32,
        (from, until): (Nanos, Option<Nanos>),
    ) -> u64 {
        let until = self.stopped.unwrap_or(Nanos::MAX).min(until.unwrap_or(Nanos::MAX));
        let of_worker = |worker| Shard { index: first_shard * self.threads + worker, of: of * self.threads };
        let workers = (0..held * self.threads).map(of_worker);
        arrivals_of(self.plan, self.profile.as_ref(), workers, (from, until))
    }
}

/// Scheduled arrivals of workers in the measured part, from one instant to another; 0 in the closed model.
/// `steered` is the profile with all changes, if there are any.
fn arrivals_of(
    plan: &Plan,
    steered: Option<&Profile>,
    workers: impl Iterator<Item = Shard>,
    (from, until): (Nanos, Nanos),
) -> u64 {
    let Load::Open { profile, process, .. } = &plan.load else { return 0 };
    let profile = steered.unwrap_or(profile);
    let whole = Arrivals::new(profile, *process, plan.seed, Shard::WHOLE);
    let first = whole.count_before(from.max(plan.warmup));
    let last = whole.count_before(until.min(profile.duration()));
    workers.map(|shard| of_shard(last, shard).saturating_sub(of_shard(first, shard))).sum()
}

/// From when on this process has its shards, if it has taken them over; with the arrivals that are another's.
pub(crate) fn taken_over(plan: &Plan, control: &Control) -> Option<TakenOver> {
    let from = control.joins_at();
    let workers = (0..plan.threads).map(|worker| plan.worker_shard(worker));
    (from > Nanos::ZERO).then(|| TakenOver {
        from_s: from.as_secs_f64(),
        arrivals_before: arrivals_of(plan, control.profile().as_ref(), workers, (Nanos::ZERO, from)),
    })
}

/// Number of shards of a load: those of the agents that began it.
pub(crate) fn shards_in_all(members: &[Member]) -> u32 {
    members.iter().filter(|member| member.span.0 == Nanos::ZERO).map(|member| member.shards.1).sum()
}

/// Returns `true` unless an agent was only asked to take shards over.
pub(crate) fn has_shards(member: &Member) -> bool {
    member.span.0 < Nanos::MAX
}

/// Seconds since the start from which on an agent has the shards that it has taken over.
pub(crate) fn taken_from(member: &Member) -> Option<f64> {
    (member.span.0 > Nanos::ZERO).then(|| member.span.0.as_secs_f64())
}

/// Arrivals of a shard among the first `count` of the whole load.
fn of_shard(count: u64, shard: Shard) -> u64 {
    count.saturating_sub(u64::from(shard.index)).div_ceil(u64::from(shard.of.max(1)))
}

/// The run of all agents. Those that were lost, or left no result, have their last known figures.
///
/// # Errors
/// No agent has left figures, or they are not shards of one load.
pub(crate) fn merged(members: &[Member], load: &AskedLoad<'_>) -> Result<SavedRun, Failure> {
    let of = shards_in_all(members);
    let shares = members.iter().filter(|member| has_shards(member)).map(|member| share(member, of, load));
    SavedRun::merge_fleet(shares.collect()).map_err(|error| Failure {
        exit: Exit::AgentLost,
        ..Failure::environment(
            Problem::new(format!("the results of the agents cannot be merged: {error}"))
                .with_hint("see their messages on their machines; `plimsoll fleet list` shows the agents"),
        )
    })
}

/// Returns `true` if a run did not come to its own end. An agent that is told to end may be too late to stop
/// it, and a service manager may signal its process, too.
fn was_stopped(run: &SavedRun) -> bool {
    let run = &run.result.run;
    run.stopped_by.is_some() || run.interrupted_by_signal.is_some()
}

fn share(member: &Member, of: u32, load: &AskedLoad<'_>) -> FleetShare {
    let run = SavedRun::from_bytes(&member.part).ok();
    let state = match (&member.end, &run) {
        (MemberEnd::Ended(_), Some(_)) => AgentState::Finished,
        (MemberEnd::Left(_), Some(run)) if was_stopped(run) => AgentState::Left,
        (MemberEnd::Left(_), Some(_)) => AgentState::Finished,
        _ => AgentState::Lost,
    };
    let known = run.as_ref().map_or(0, |run| run.result.accounting.scheduled);
    let rest = || load.arrivals(member.shards, of, member.span).saturating_sub(known);
    let unknown = if state == AgentState::Lost { rest() } else { 0 };
    let left_out = if state == AgentState::Left { rest() } else { 0 };
    let drift = member.clock.zip(member.latest_clock);
    let agent = AgentResult {
        name: member.name.clone(),
        shard: shard_name(Shard { index: member.shards.0, of }, member.shards.1),
        version: member.version.clone(),
        cores: member.cores,
        state,
        clock_ahead_ns: member.clock.map(|clock| clock.ahead_ns),
        clock_bound_ns: member.clock.map(|clock| clock.bound_ns),
        clock_drift_ns: drift.map(|(first, last)| {
            let drift = last.ahead_ns.saturating_sub(first.ahead_ns);
            // A difference within the errors of both estimates is not a drift.
            if drift.unsigned_abs() <= first.bound_ns.saturating_add(last.bound_ns) { 0 } else { drift }
        }),
        unknown,
        left_out,
        from_s: taken_from(member),
        missed_changes: member.missed_changes,
        ..AgentResult::default()
    };
    FleetShare { agent, run }
}

#[cfg(test)]
mod tests {
    use plimsoll_document::RawValue;
    use plimsoll_plan::{Disk, PlanPatch};

    use super::*;

    fn plan(rate: &str, model: &str) -> Plan {
        let given = |flag: &str, text: &str| Some(RawValue::new(flag.to_owned(), text));
        let patch = PlanPatch {
            urls: vec![RawValue::new("URL", "http://a.test/")],
            rate: given("--rate", rate),
            duration: given("-d", "10s"),
            warmup: given("--warmup", "2s"),
            arrival: given("--arrival", model),
            ..PlanPatch::default()
        };
        Plan::resolve(patch, &Disk).unwrap()
    }

    /// The shards of all agents add up to the arrivals of the load: none is missing or counted twice.
    #[test]
    fn the_arrivals_of_all_agents_are_those_of_the_load() {
        for model in ["uniform", "poisson"] {
            let plan = plan("777", model);
            let Load::Open { profile, process, .. } = &plan.load else { panic!("it has a rate") };
            let whole = Arrivals::new(profile, *process, plan.seed, Shard::WHOLE);
            let before = |at: Nanos| whole.count_before(at);
            for stopped in [None, Some(Nanos::from_secs(5))] {
                let load = AskedLoad { plan: &plan, threads: 2, profile: None, stopped };
                // One agent has two of them.
                let of = |shards, from, until| load.arrivals(shards, 4, (from, until));
                let (whole, taken) = ((Nanos::ZERO, None), Nanos::from_secs(4));
                // Another has the last one from four seconds on.
                let parts = [
                    of((0, 1), whole.0, whole.1),
                    of((1, 2), whole.0, whole.1),
                    of((3, 1), Nanos::ZERO, Some(taken)),
                    of((3, 1), taken, None),
                ];
                let sum: u64 = parts.iter().sum();
                let end = stopped.unwrap_or(Nanos::from_secs(12));
                assert_eq!(sum, before(end) - before(Nanos::from_secs(2)), "{model} {stopped:?}");
            }
        }
    }
}
