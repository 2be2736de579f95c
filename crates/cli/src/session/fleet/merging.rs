//! Merges the results of a run's agents into one.

use plimsoll_core::{Nanos, Shard};
use plimsoll_fleet::{Member, MemberEnd};
use plimsoll_plan::{Load, Plan, Problem};
use plimsoll_report::SavedRun;
use plimsoll_report::agent::{AgentResult, AgentState};
use plimsoll_report::saved::FleetShare;
use plimsoll_schedule::{Arrivals, Profile};

use crate::base::exit::Exit;
use crate::base::failure::Failure;

/// The load that was asked for, as far as accounts of lost agents need it.
pub(crate) struct AskedLoad<'a> {
    pub(crate) plan: &'a Plan,
    /// Threads of each agent.
    pub(crate) threads: u32,
    /// The profile with all changes; `None` in the closed model.
    pub(crate) profile: Option<Profile>,
    /// When the load was stopped, since the start, if it was before its end.
    pub(crate) stopped: Option<Nanos>,
}

impl AskedLoad<'_> {
    /// Arrivals of one of `of` agents in the measured part. The closed model has none that are scheduled.
    fn arrivals(&self, shard: u32, of: u32) -> u64 {
        let Load::Open { profile, process, .. } = &self.plan.load else { return 0 };
        let profile = self.profile.as_ref().unwrap_or(profile);
        let end = self.stopped.unwrap_or(Nanos::MAX).min(profile.duration());
        let whole = Arrivals::new(profile, *process, self.plan.seed, Shard::WHOLE);
        let (first, last) = (whole.count_before(self.plan.warmup), whole.count_before(end));
        let of_worker = |worker: u32| {
            let shard = Shard { index: shard * self.threads + worker, of: of * self.threads };
            of_shard(last, shard).saturating_sub(of_shard(first, shard))
        };
        (0..self.threads).map(of_worker).sum()
    }
}

/// Arrivals of a shard among the first `count` of the whole load.
fn of_shard(count: u64, shard: Shard) -> u64 {
    count.saturating_sub(u64::from(shard.index)).div_ceil(u64::from(shard.of.max(1)))
}

/// The run of all agents. Those that were lost, or left nothing, have what is known of them.
///
/// # Errors
/// Nothing is known of any of them, or they are no shards of one load.
pub(crate) fn merged(members: &[Member], load: &AskedLoad<'_>) -> Result<SavedRun, Failure> {
    let of = members.len() as u32;
    let shares = (0..).zip(members).map(|(shard, member)| share(member, (shard, of), load));
    SavedRun::merge_fleet(shares.collect()).map_err(|error| Failure {
        exit: Exit::AgentLost,
        ..Failure::environment(
            Problem::new(format!("the agents have no result together: {error}"))
                .with_hint("see what they say on their machines; `plimsoll fleet list` shows who is there"),
        )
    })
}

fn share(member: &Member, (shard, of): (u32, u32), load: &AskedLoad<'_>) -> FleetShare {
    let run = SavedRun::from_bytes(&member.part).ok();
    let is_whole = matches!(member.end, MemberEnd::Ended(_)) && run.is_some();
    let state = if is_whole { AgentState::Finished } else { AgentState::Lost };
    let known = run.as_ref().map_or(0, |run| run.result.accounting.scheduled);
    let unknown = if is_whole { 0 } else { load.arrivals(shard, of).saturating_sub(known) };
    let drift = member.clock.zip(member.latest_clock);
    let agent = AgentResult {
        name: member.name.clone(),
        shard: format!("{}/{of}", shard + 1),
        version: member.version.clone(),
        cores: member.cores,
        state,
        clock_ahead_ns: member.clock.map(|clock| clock.ahead_ns),
        clock_bound_ns: member.clock.map(|clock| clock.bound_ns),
        clock_drift_ns: drift.map(|(first, last)| {
            let drift = last.ahead_ns.saturating_sub(first.ahead_ns);
            // What both estimates allow for is none.
            if drift.unsigned_abs() <= first.bound_ns.saturating_add(last.bound_ns) { 0 } else { drift }
        }),
        unknown,
        ..AgentResult::default()
    };
    FleetShare { agent, run }
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::{Disk, PlanPatch, RawValue};

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
                let sum: u64 = (0..3).map(|shard| load.arrivals(shard, 3)).sum();
                let end = stopped.unwrap_or(Nanos::from_secs(12));
                assert_eq!(sum, before(end) - before(Nanos::from_secs(2)), "{model} {stopped:?}");
            }
        }
    }
}
