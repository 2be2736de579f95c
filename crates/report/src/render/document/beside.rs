//! Runs beside the load, a probe and slow clients; and the agents that carried the load out.

use plimsoll_core::{Nanos, figure};

use super::{Fact, Line, Section, Shown, Span, Table, line};
use crate::contract::agent::{AgentResult, AgentState};
use crate::contract::probe::{Bias, ProbeResult};
use crate::contract::result::RunResult;
use crate::contract::slow::SlowClientsResult;
use crate::render::layout::Emphasis;
use crate::saved::shards_of;

pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let beside = result.probe.iter().map(probe).chain(result.slow_clients.iter().map(slow_clients));
    beside.chain((!result.agents.is_empty()).then(|| agents(result))).collect()
}

/// The agents of a fleet, and how near their clocks were to the coordinator's.
fn agents(result: &RunResult) -> Section {
    let all = &result.agents;
    let heads = ["", "shard", "started", "failed", "rate", "start lag p99", "CPU", "clock", "limited by", ""];
    let table = Table::new("Agents", heads.map(|title| (title, Shown::Everywhere)), all.iter().map(agent));
    let mut facts = Vec::new();
    if let Some(bound) = all.iter().map(|agent| agent.clock_bound_ns).max().flatten() {
        let text = format!("each within {} of the common instant", figure::nanos(Nanos(bound)));
        facts.push(Fact::new("start", text));
    }
    let unknown = result.accounting.unknown;
    if unknown > 0 {
        let share = unknown as f64 / result.accounting.scheduled.max(1) as f64;
        let text = format!("{} arrivals ({}) of lost agents", figure::count(unknown), figure::share(share));
        facts.push(Fact::new("unknown", line![Span::emphasised(Emphasis::Bad, text)]));
    }
    Section { heading: format!("{} agents", figure::count(all.len() as u64)), table, facts }
}

fn agent(agent: &AgentResult) -> Vec<Line> {
    let dash = || "-".to_owned();
    let nanos = |ns: u64| figure::nanos(Nanos(ns));
    let clock = agent.clock_ahead_ns.zip(agent.clock_bound_ns).map_or_else(dash, |(ahead, bound)| {
        let sign = if ahead < 0 { "-" } else { "+" };
        format!("{sign}{} ± {}", nanos(ahead.unsigned_abs()), nanos(bound))
    });
    let state = match (agent.state, agent.valid) {
        (AgentState::Lost, _) => Span::emphasised(Emphasis::Bad, "lost"),
        (AgentState::Left, _) => Span::emphasised(Emphasis::Bad, "left"),
        (AgentState::Running, _) => Span::from("running"),
        (AgentState::Silent, _) => Span::emphasised(Emphasis::Doubtful, "silent"),
        (AgentState::Finished, false) => Span::emphasised(Emphasis::Doubtful, "invalid"),
        (AgentState::Finished, true) => Span::from("ok"),
    };
    vec![
        agent.name.clone().into(),
        shard(agent).into(),
        figure::count(agent.started).into(),
        figure::count(agent.failed).into(),
        agent.rate_per_s.map_or_else(dash, figure::per_second).into(),
        agent.start_lag_p99_ns.map_or_else(dash, nanos).into(),
        agent.cpu_cores.map_or_else(dash, |cores| format!("{cores:.2} cores")).into(),
        clock.into(),
        agent.limited_by.clone().into(),
        line![state],
    ]
}

/// The shards of an agent, with their share of the load, and from when on it has them.
fn shard(agent: &AgentResult) -> String {
    let name = &agent.shard;
    let share = shards_of(name).map(|(numbers, of)| numbers.count() as f64 / f64::from(of));
    let share = share.map_or_else(String::new, |share| format!(" ({})", figure::share(share)));
    let from = agent.from_s.map_or_else(String::new, |from| format!(" from {from} s"));
    format!("{name}{share}{from}")
}

/// The percentiles of the probe, and by how much those of the load exceed them.
fn probe(probe: &ProbeResult) -> Section {
    let rate = probe.rate_per_s.map_or_else(String::new, |rate| format!(", {}", figure::per_second(rate)));
    let mut facts = Vec::new();
    if probe.bias.is_empty() {
        facts.push(Fact::new("", "too few samples on either side to compare any percentile"));
    }
    if probe.failed > 0 || probe.timed_out > 0 {
        let (failed, timed_out) = (figure::count(probe.failed), figure::count(probe.timed_out));
        facts.push(Fact::new("", format!("{failed} of the probe's requests failed, {timed_out} timed out")));
    }
    if !probe.valid {
        let late = Span::emphasised(Emphasis::Doubtful, "the probe was not on time");
        let reasons = format!(": {}; nothing follows from it", probe.invalid_reasons.join("; "));
        facts.push(Fact::new("", line![late, reasons]));
    }
    let heads = ["", "probe", "load", "difference", "beyond noise"].map(|title| (title, Shown::TextAndPage));
    let table = Table::new("Probe and load", heads, probe.bias.iter().map(bias));
    Section { heading: format!("service time by a probe beside the load{rate}"), table, facts }
}

fn bias((name, bias): (&String, &Bias)) -> Vec<Line> {
    let sign = if bias.difference_ns < 0 { "-" } else { "+" };
    let difference = figure::nanos(Nanos(bias.difference_ns.unsigned_abs()));
    let noise = match bias.beyond_noise {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    };
    vec![
        format!("p{name}").into(),
        figure::nanos(Nanos(bias.probe_ns)).into(),
        figure::nanos(Nanos(bias.load_ns)).into(),
        format!("{sign}{difference}").into(),
        noise.into(),
    ]
}

fn slow_clients(slow: &SlowClientsResult) -> Section {
    let count = figure::count;
    let under_way = format!("{} under way at the end", count(slow.in_flight_at_stop));
    let (started, ok, failed) = (count(slow.started), count(slow.ok), count(slow.failed));
    let requests = format!("{started} started = {ok} ok + {failed} failed + {under_way}");
    let mut facts = vec![Fact::new("requests", requests)];
    if let Some(median) = slow.service_time.p.p50 {
        facts.push(Fact::new("time", format!("p50 {}", figure::nanos(Nanos(median)))));
    }
    for (class, failed) in &slow.errors {
        let example = slow.error_examples.get(class).map_or(String::new(), |example| format!(": {example}"));
        facts.push(Fact::new("", format!("{} {class}{example}", count(*failed))));
    }
    facts.push(Fact::new("connections", format!("{} opened", count(slow.connections))));
    let (clients, pace) = (count(slow.clients), slow.bytes_per_s);
    let heading = format!("{clients} slow clients beside the load, {pace} B/s each");
    Section { heading, facts, ..Section::default() }
}
