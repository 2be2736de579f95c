//! The course of a fleet's run: its agents' intervals as those of the whole load, judged and shown as on one
//! machine.

use plimsoll_core::{Nanos, Shard};
use plimsoll_engine::{Control, Progress, Stop};
use plimsoll_fleet::{AgentStanding, Member, MemberEnd};
use plimsoll_metrics::interval::ProcessMerger;
use plimsoll_metrics::{Interval, MachineFacts, Outline, Pace, ThresholdWatch};
use plimsoll_plan::{Plan, shard_name};
use plimsoll_report::agent::{AgentResult, AgentState};
use plimsoll_report::saved::interval_from_bytes;

use crate::session::fleet::merging::{has_shards, shards_in_all, taken_from};

/// The run from its beginning on.
pub(crate) struct Course {
    merger: ProcessMerger,
    watch: ThresholdWatch,
    outline: Outline,
    /// When the load ends, since the start, if that is known.
    end: Option<Nanos>,
    started_unix: Nanos,
    /// Empty: nothing is known here about the machines of a fleet.
    facts: MachineFacts,
    agents: Vec<AgentFigures>,
    /// When agents have their shards, since the start: never, if they were only asked to take them over.
    begins: Vec<Nanos>,
    /// Intervals that cannot be read.
    unreadable: u64,
}

/// Sums of the intervals of one agent.
#[derive(Clone, Copy, Debug, Default)]
struct AgentFigures {
    started: u64,
    ok: u64,
    failed: u64,
    rate_per_s: Option<f64>,
}

impl Course {
    /// A run of agents whose workers have numbers from these on. `started_unix` is its start in Unix time.
    pub(crate) fn new(plan: &Plan, first_workers: &[u32], started_unix: Nanos) -> Self {
        let outline = plan.outline();
        Self {
            merger: ProcessMerger::new(first_workers, plan.interval, outline.clone(), plan.cuts()),
            watch: ThresholdWatch::new(&plan.thresholds, &outline, plan.interval),
            outline,
            end: plan.end.duration.map(|duration| plan.warmup + duration),
            started_unix,
            facts: MachineFacts::default(),
            agents: vec![AgentFigures::default(); first_workers.len()],
            begins: vec![Nanos::ZERO; first_workers.len()],
            unreadable: 0,
        }
    }

    /// Takes in an agent that was asked to take shards over, whose workers have numbers from this one on.
    pub(crate) fn join(&mut self, first_worker: u32) {
        self.merger.join(first_worker);
        self.agents.push(AgentFigures::default());
        self.begins.push(Nanos::MAX);
    }

    /// Waits for the intervals of an agent that has shards from this instant on.
    pub(crate) fn begin(&mut self, place: usize, from: Nanos) {
        self.merger.begin(place, from);
        self.begins.get_mut(place).into_iter().for_each(|begin| *begin = from);
    }

    /// Takes the next interval of an agent, by its place.
    pub(crate) fn add(&mut self, place: usize, bytes: &[u8]) {
        let Ok(interval) = interval_from_bytes(bytes) else {
            self.unreadable += 1;
            return;
        };
        // Before it takes part, there is nothing in them.
        if self.begins.get(place).is_some_and(|begin| interval.at <= *begin && *begin > Nanos::ZERO) {
            return;
        }
        if let Some(agent) = self.agents.get_mut(place).filter(|_| !interval.warmup) {
            agent.started += interval.started;
            agent.ok += interval.ok;
            agent.failed += interval.failed + interval.timed_out;
            let seconds = interval.length.as_secs_f64();
            agent.rate_per_s = (seconds > 0.0).then(|| interval.completed as f64 / seconds);
        }
        self.merger.add(place, &interval);
    }

    /// Notes the state of the agents: intervals of lost and ended ones are not waited for.
    pub(crate) fn note<'s>(&mut self, standings: impl Iterator<Item = (&'s str, AgentStanding)>) {
        for (place, (_, standing)) in standings.enumerate() {
            if matches!(standing, AgentStanding::Lost | AgentStanding::Ended) {
                self.merger.leave(place);
            }
        }
    }

    /// Shows each interval that has become complete. A threshold that ends the run stops it by `control`.
    pub(crate) fn tell(&mut self, control: &Control, mut show: impl FnMut(&Progress<'_>)) {
        while let Some(mut interval) = self.merger.next_complete() {
            if self.watch.look(&mut interval) {
                control.stop(Stop::Drain);
            }
            show(&self.progress(&interval, control));
        }
    }

    fn progress<'i>(&'i self, interval: &'i Interval, control: &Control) -> Progress<'i> {
        let begin = interval.at.since(interval.length);
        let asked = control.profile().map(|profile| profile.mean_rate(begin, interval.at));
        Progress {
            elapsed: interval.at,
            started_unix: self.started_unix,
            end: self.end,
            target_per_second: control.target_at(interval.at),
            pace: Pace::of_interval(interval, &self.outline, asked),
            paused: control.status().paused,
            interval,
            machine: None,
            facts: &self.facts,
        }
    }

    /// The thresholds, as they were watched.
    pub(crate) const fn watch(&self) -> &ThresholdWatch {
        &self.watch
    }

    /// Number of intervals of agents that are missing from those of the run, `dropped` ones included.
    pub(crate) const fn missing(&self, dropped: u64) -> u64 {
        self.merger.late() + self.unreadable + dropped
    }

    /// The agents with their figures so far.
    pub(crate) fn agents<'s>(
        &self,
        members: &[Member],
        standings: impl Iterator<Item = (&'s str, AgentStanding)>,
    ) -> Vec<AgentResult> {
        let of = shards_in_all(members);
        let agent = |((member, figures), (_, standing))| {
            let (member, figures): (&Member, &AgentFigures) = (member, figures);
            let cpu = member.line.as_ref().and_then(|line| line.cpu);
            AgentResult {
                name: member.name.clone(),
                shard: shard_name(Shard { index: member.shards.0, of }, member.shards.1),
                version: member.version.clone(),
                cores: member.cores,
                state: match (standing, &member.end) {
                    (AgentStanding::Lost | AgentStanding::Ended, MemberEnd::Left(_)) => AgentState::Left,
                    (AgentStanding::Lost, MemberEnd::Lost | MemberEnd::Died(_) | MemberEnd::None) => {
                        AgentState::Lost
                    }
                    (AgentStanding::Suspect, _) => AgentState::Silent,
                    (AgentStanding::GoingOn, _) => AgentState::Running,
                    _ => AgentState::Finished,
                },
                clock_ahead_ns: member.clock.map(|clock| clock.ahead_ns),
                clock_bound_ns: member.clock.map(|clock| clock.bound_ns),
                started: figures.started,
                ok: figures.ok,
                failed: figures.failed,
                rate_per_s: figures.rate_per_s,
                cpu_cores: cpu.map(|share| share * f64::from(member.cores)),
                valid: standing != AgentStanding::Lost && !matches!(member.end, MemberEnd::Left(_)),
                limited_by: "unknown".to_owned(),
                from_s: taken_from(member),
                missed_changes: member.missed_changes,
                ..AgentResult::default()
            }
        };
        let all = members.iter().zip(&self.agents).zip(standings);
        all.filter(|((member, _), _)| has_shards(member)).map(agent).collect()
    }
}
