//! The shards of a fleet's agents as one run, those of lost agents as far as they are known.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::{Nanos, figure};
use plimsoll_metrics::{Reason, ReasonCode, SteeredBy};

use super::SavedRun;
use super::merging::MergeError;
use super::shards::check;
use crate::contract::agent::{AgentResult, AgentState};
use crate::contract::context::{OnceResult, RefreshResult};
use crate::contract::result::{Finding, LimitedByResult, VerdictResult};
use crate::contract::trial::TrialFigures;

/// The reason for which the result of a fleet that has lost an agent is invalid.
const AGENT_LOST: &str = "agent_lost";
/// The reason for which it is invalid if an agent was told to end, and has ended its part.
const AGENT_LEFT: &str = "agent_left";
/// The reason for which it is invalid if an agent did not follow a live change of the rate.
const CHANGE_MISSED: &str = "change_missed";

/// One agent and the result of its shard.
#[derive(Clone, Debug)]
pub struct FleetShare {
    /// The agent: its name, shard, version, processors, state, clock, and the arrivals of its shard after the
    /// last that is known (`unknown`), or that it left out (`left_out`). Its figures are filled in.
    pub agent: AgentResult,
    /// Run of the agent, or as much as had come of it; `None` if nothing had.
    pub run: Option<SavedRun>,
}

impl SavedRun {
    /// The run of a fleet: that of all agents together, as [`merge_shards`](Self::merge_shards) has it. Where
    /// an agent was lost, arrivals of unknown outcome have an account of their own, and the result is
    /// invalid. So it is if an agent left, which leaves arrivals unstarted, or missed a change of the rate.
    ///
    /// # Errors
    /// As `merge_shards`; shards of lost agents may be missing, but not all.
    pub fn merge_fleet(shares: Vec<FleetShare>) -> Result<Self, MergeError> {
        // Those that are whole first: facts of the load as a whole are taken from there.
        let mut order: Vec<&FleetShare> = shares.iter().collect();
        order.sort_by_key(|share| matches!(share.agent.state, AgentState::Lost | AgentState::Left));
        let mut runs: Vec<Self> = order.into_iter().filter_map(|share| share.run.clone()).collect();
        if let ([run], [share]) = (&mut *runs, &*shares) {
            // The only agent has the whole load, which a run does not call a shard.
            run.result.run.shard.get_or_insert_with(|| share.agent.shard.clone());
        }
        // One that took a shard over has another part of the same.
        let mut shards = BTreeSet::new();
        let firsts = runs.iter().filter(|run| shards.insert(run.result.run.shard.clone()));
        let firsts: Vec<Self> = firsts.cloned().collect();
        check(&firsts)?;
        let silent = shares.iter().filter(|share| share.run.is_none());
        let missing: Vec<String> = silent
            .filter(|share| share.agent.state != AgentState::Lost)
            .map(|share| share.agent.shard.clone())
            .collect();
        if !missing.is_empty() {
            return Err(MergeError::Missing { shards: missing });
        }
        let mut merged = Self::merge_some_shards(&runs)?;
        let result = &mut merged.result;
        if firsts.len() < runs.len() {
            // Runs of one shard share its target: the one that took part for the longest has the whole of it.
            let mut targets: BTreeMap<Option<&String>, f64> = BTreeMap::new();
            for run in &runs {
                let target = targets.entry(run.result.run.shard.as_ref()).or_default();
                *target = target.max(run.result.rate.target_per_s.unwrap_or(0.0));
            }
            result.rate.target_per_s = result.rate.target_per_s.map(|_| targets.values().sum());
        }
        // All were steered by the same orders; of those that missed some, others have the whole list.
        let changes = runs.iter().map(|run| &run.result.rate.changes).max_by_key(|changes| changes.len());
        result.rate.changes = changes.cloned().unwrap_or_default();
        let unknown: u64 = shares.iter().map(|share| share.agent.unknown).sum();
        result.accounting.scheduled = result.accounting.scheduled.saturating_add(unknown);
        result.accounting.unknown = result.accounting.unknown.saturating_add(unknown);
        let left_out: u64 = shares.iter().map(|share| share.agent.left_out).sum();
        result.accounting.scheduled = result.accounting.scheduled.saturating_add(left_out);
        result.accounting.never_started = result.accounting.never_started.saturating_add(left_out);
        // Only this is known of their machines: the limit of one was that of all.
        let limited = shares.iter().find_map(|share| {
            let limit = &share.run.as_ref()?.result.verdict.limited_by;
            (limit.what == "generator").then(|| LimitedByResult {
                evidence: format!("agent {}: {}", share.agent.name, limit.evidence),
                ..limit.clone()
            })
        });
        if let Some(limited) = limited {
            result.verdict.limited_by = limited;
        }
        result.verdict.evidence = findings(&shares, |verdict| &verdict.evidence);
        result.verdict.warnings = findings(&shares, |verdict| &verdict.warnings);
        let agents = || shares.iter().map(|share| &share.agent);
        let lost = agents().filter(|agent| agent.state == AgentState::Lost).map(lost);
        let has_left = |share: &&FleetShare| share.agent.state == AgentState::Left;
        let left = shares.iter().filter(has_left).map(left);
        let missed = agents().filter(|agent| agent.missed_changes > 0).map(change_missed);
        let was_orphaned =
            |run: &&Self| run.result.run.stopped_by.as_deref() == Some(SteeredBy::Orphaned.name());
        let unfinished = runs.iter().find(was_orphaned).map(|run| orphaned(run.result.duration_s));
        for finding in lost.chain(left).chain(missed).chain(unfinished) {
            result.verdict.valid = false;
            if !result.verdict.invalid_reasons.contains(&finding.code) {
                result.verdict.invalid_reasons.push(finding.code.clone());
            }
            result.verdict.evidence.push(finding);
        }
        result.agents = shares.into_iter().map(described).collect();
        result.restate();
        Ok(merged)
    }
}

impl SavedRun {
    /// Adds the setup, the refreshes and the teardown, which the coordinator has carried out: its agents know
    /// nothing of them. `sent` are the requests of all of them that reached a server, and `outdated` the
    /// agents that have ended without the latest values.
    pub fn add_around(
        &mut self,
        (setup, refresh, teardown): (Option<OnceResult>, Option<RefreshResult>, Option<OnceResult>),
        sent: u64,
        outdated: &[&str],
    ) {
        let result = &mut self.result;
        if !outdated.is_empty() {
            result.verdict.warnings.push(Finding::of(&Reason {
                code: ReasonCode::RefreshFailed,
                evidence: format!(
                    "agents without the last refreshed values at their end: {}",
                    outdated.join(", ")
                ),
                hint: "their requests went on with the values before; see whether they were refused"
                    .to_owned(),
            }));
        }
        let refreshed = refresh.as_ref().and_then(RefreshResult::warning);
        let torn_down = teardown.as_ref().and_then(OnceResult::warning);
        result.verdict.warnings.extend(refreshed.iter().chain(&torn_down).map(Finding::of));
        (result.run.setup, result.run.refresh, result.run.teardown) = (setup, refresh, teardown);
        result.accounting.unmeasured += sent;
        result.restate();
    }

    /// The figures of the run as one of several that are compared. Where the generator was its limit, the
    /// first finding says so: of a fleet it names the agent.
    pub fn as_trial(&self) -> TrialFigures {
        let (verdict, connections) = (&self.result.verdict, &self.result.connections);
        let limit = &verdict.limited_by;
        let limit = (limit.what == "generator").then(|| Finding {
            code: "limited_by".to_owned(),
            evidence: limit.evidence.clone(),
            hint: limit.hint.clone(),
        });
        let others = verdict.evidence.iter().chain(&verdict.warnings).cloned();
        TrialFigures {
            connections_opened: connections.opened,
            limited_by: verdict.limited_by.what.clone(),
            findings: limit.into_iter().chain(others).collect(),
            ..TrialFigures::new(&self.as_record())
        }
    }
}

fn lost(agent: &AgentResult) -> Finding {
    let unknown = match agent.unknown {
        0 => String::new(),
        unknown => format!("; {} arrivals of its shard are unaccounted for", figure::count(unknown)),
    };
    Finding {
        code: AGENT_LOST.to_owned(),
        evidence: format!("agent {} was lost while the load went on{unknown}", agent.name),
        hint: "see why on its machine; `plimsoll fleet collect` collects its saved parts, once it is back"
            .to_owned(),
    }
}

fn left(share: &FleetShare) -> Finding {
    let FleetShare { agent, run } = share;
    let length = run.as_ref().map_or(0.0, |run| run.result.warmup_s + run.result.duration_s);
    let at = Nanos::from_secs_f64(agent.from_s.unwrap_or(0.0) + length);
    let left_out = match agent.left_out {
        0 => String::new(),
        arrivals => format!("; {} arrivals of its shard were never started", figure::count(arrivals)),
    };
    Finding {
        code: AGENT_LEFT.to_owned(),
        evidence: format!(
            "agent {} was told to end, and stopped its part of the load at {}{left_out}",
            agent.name,
            figure::nanos(at)
        ),
        hint:
            "keep the machines of agents for the whole run, and make the run again; --on-loss takeover gives \
               the rest to another agent"
                .to_owned(),
    }
}

/// The finding about a load whose agents ended it by themselves.
fn orphaned(duration_s: f64) -> Finding {
    Finding {
        code: ReasonCode::Unfinished.name().to_owned(),
        evidence: format!(
            "the coordinator was silent, so that the agents ended the load by themselves, after {}",
            figure::nanos(Nanos::from_secs_f64(duration_s))
        ),
        hint: "see why the coordinator ended or was cut off, and make the run again".to_owned(),
    }
}

fn change_missed(agent: &AgentResult) -> Finding {
    let changes = match agent.missed_changes {
        1 => "a change of the rate".to_owned(),
        changes => format!("{} changes of the rate", figure::count(changes)),
    };
    Finding {
        code: CHANGE_MISSED.to_owned(),
        evidence: format!(
            "agent {} heard of {changes} too late, and sent what was planned before",
            agent.name
        ),
        hint: "see whether its network or its machine was overloaded".to_owned(),
    }
}

/// Findings of the agents by their names. One that several have is there once, as the first of them has it.
fn findings(shares: &[FleetShare], of: impl Fn(&VerdictResult) -> &[Finding]) -> Vec<Finding> {
    let mut all: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for FleetShare { agent, run } in shares {
        let name = agent.name.as_str();
        for finding in run.iter().flat_map(|run| of(&run.result.verdict)) {
            // An agent may have several of one kind.
            let same =
                all.iter_mut().find(|(first, names)| first.code == finding.code && !names.contains(&name));
            match same {
                Some((_, names)) => names.push(name),
                None => all.push((finding, vec![name])),
            }
        }
    }
    let told = |(finding, names): (&Finding, Vec<&str>)| {
        let others = match &names[1..] {
            [] => String::new(),
            [other] => format!("; also agent {other}, with figures of its own"),
            [one, other] => format!("; also agents {one} and {other}, with figures of their own"),
            [one, rest @ ..] => {
                format!("; also agent {one} and {} others, with figures of their own", rest.len())
            }
        };
        Finding { evidence: format!("agent {}: {}{others}", names[0], finding.evidence), ..finding.clone() }
    };
    all.into_iter().map(told).collect()
}

/// An agent with the figures of its run.
fn described(share: FleetShare) -> AgentResult {
    let FleetShare { agent, run } = share;
    let Some(run) = run else { return AgentResult { limited_by: "unknown".to_owned(), ..agent } };
    let result = &run.result;
    let length = result.warmup_s + result.duration_s + result.drain_s;
    let cpu = result.generator.cpu_user_s + result.generator.cpu_sys_s;
    AgentResult {
        started: result.accounting.started,
        ok: result.accounting.ok,
        failed: result.accounting.failed.saturating_add(result.accounting.timed_out),
        rate_per_s: result.rate.achieved_per_s,
        start_lag_p99_ns: result.start_lag.p.p99,
        cpu_cores: (length > 0.0 && cpu > 0.0).then(|| cpu / length),
        valid: result.verdict.valid && agent.state == AgentState::Finished,
        limited_by: result.verdict.limited_by.what.clone(),
        ..agent
    }
}
