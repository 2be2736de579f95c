//! The run of a fleet: shards of agents, some of which are lost.

use plimsoll_report::agent::{AgentResult, AgentState};
use plimsoll_report::result::{Finding, RateChangeResult};
use plimsoll_report::saved::{FleetShare, MergeError};
use plimsoll_report::{Format, SavedRun, Style, render_saved};

use crate::fixture;

/// A share of an agent, with the run of 1,000 requests that it made.
fn share(number: u32, of: u32, state: AgentState, unknown: u64) -> FleetShare {
    let record = fixture::quiet_record();
    let mut result = fixture::result(record.clone(), &[]);
    result.run.shard = Some(format!("{number}/{of}"));
    result.run.load_checksum = Some("same".to_owned());
    let run = SavedRun::new(&record, result, None);
    let agent = AgentResult {
        name: format!("agent-{number}"),
        shard: format!("{number}/{of}"),
        state,
        unknown,
        clock_ahead_ns: Some(-1_500_000),
        clock_bound_ns: Some(40_000 * u64::from(number)),
        ..AgentResult::default()
    };
    FleetShare { agent, run: Some(run) }
}

fn text(run: &SavedRun) -> String {
    let mut out = Vec::new();
    render_saved(run, Format::Text, &Style::PLAIN, &mut out).expect("it can be written");
    String::from_utf8(out).expect("it is text")
}

#[test]
fn agents_are_merged_and_each_has_its_line() {
    let shares: Vec<FleetShare> = (1..=3).map(|number| share(number, 3, AgentState::Finished, 0)).collect();
    let one = shares[0].run.clone().expect("it has a run");
    let merged = SavedRun::merge_fleet(shares).unwrap();
    let result = &merged.result;
    assert_eq!(result.accounting.scheduled, 3 * one.result.accounting.scheduled);
    assert_eq!((result.accounting.unknown, result.accounting.check()), (0, Ok(())));
    assert_eq!(result.verdict.valid, one.result.verdict.valid);
    assert_eq!(result.agents.len(), 3);
    assert_eq!(result.agents[1].started, one.result.accounting.started);
    let text = text(&merged);
    for part in ["3 agents", "agent-2", "2/3", "-1.50 ms +- 80.0 us", "within 120 us of the common instant"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert_eq!(SavedRun::from_bytes(&merged.to_bytes().unwrap()).unwrap(), merged);
}

/// Symptom: a fleet of one agent had no result, because a run of the whole load calls itself no shard.
#[test]
fn the_only_agent_has_the_whole_load() {
    let mut only = share(1, 1, AgentState::Finished, 0);
    let run = only.run.as_mut().expect("it has a run");
    run.result.run.shard = None;
    let started = run.result.accounting.started;
    let merged = SavedRun::merge_fleet(vec![only]).unwrap();
    assert_eq!((merged.result.accounting.started, merged.result.agents[0].started), (started, started));
    assert_eq!(merged.result.run.shard, None);
}

#[test]
fn of_a_lost_agent_its_parts_count_and_the_rest_is_unknown() {
    let silent = FleetShare { run: None, ..share(3, 3, AgentState::Lost, 900) };
    // The first shard is a lost one: what the whole load was is taken from another.
    let shares = vec![share(1, 3, AgentState::Lost, 77), share(2, 3, AgentState::Finished, 0), silent];
    let one = shares[1].run.clone().expect("it has a run").result.accounting;
    let merged = SavedRun::merge_fleet(shares).unwrap();
    let result = &merged.result;
    assert_eq!(result.accounting.unknown, 977);
    assert_eq!(result.accounting.scheduled, 2 * one.scheduled + 977);
    assert_eq!(result.accounting.check(), Ok(()));
    assert!(!result.verdict.valid && result.verdict.invalid_reasons.contains(&"agent_lost".to_owned()));
    let lost: Vec<&str> = result.verdict.evidence.iter().map(|finding| finding.evidence.as_str()).collect();
    assert!(lost.iter().any(|text| text.contains("agent agent-1 was lost")), "{lost:?}");
    assert!(lost.iter().any(|text| text.contains("900 arrivals of its shard")), "{lost:?}");
    assert_eq!(result.agents[2].started, 0);
    let text = text(&merged);
    assert!(text.contains("unknown") && text.contains("977"), "{text}");
}

/// A shard that was taken over is one shard of the load, carried out in two runs.
#[test]
fn a_shard_that_was_taken_over_is_there_once() {
    let mut taker = share(2, 2, AgentState::Finished, 0);
    taker.agent.name = "agent-1".to_owned();
    taker.agent.from_s = Some(15.0);
    let rate = |share: &mut FleetShare, target| {
        share.run.as_mut().expect("it has a run").result.rate.target_per_s = Some(target);
    };
    let mut shares = vec![share(1, 2, AgentState::Finished, 0), share(2, 2, AgentState::Lost, 70), taker];
    for (share, target) in shares.iter_mut().zip([100.0, 100.0, 25.0]) {
        rate(share, target);
    }
    let one = shares[0].run.clone().expect("it has a run").result.accounting;
    let merged = SavedRun::merge_fleet(shares).unwrap();
    let result = &merged.result;
    assert_eq!((result.accounting.scheduled, result.accounting.unknown), (3 * one.scheduled + 70, 70));
    assert_eq!((result.accounting.check(), result.rate.target_per_s), (Ok(()), Some(200.0)));
    let text = text(&merged);
    assert!(text.contains("2/2 (50.0 %) from 15 s") && text.contains("lost"), "{text}");
}

#[test]
fn an_agent_that_was_the_limit_is_named() {
    let mut shares: Vec<FleetShare> =
        (1..=2).map(|number| share(number, 2, AgentState::Finished, 0)).collect();
    let run = shares[1].run.as_mut().expect("it has a run");
    run.result.verdict.limited_by.what = "generator".to_owned();
    run.result.verdict.limited_by.evidence = "its threads had no time".to_owned();
    let merged = SavedRun::merge_fleet(shares).unwrap();
    let limited = &merged.result.verdict.limited_by;
    assert_eq!(limited.what, "generator");
    assert_eq!(limited.evidence, "agent agent-2: its threads had no time");
}

/// Symptom: "start lag p99 is 2 ms" stood there once for each agent, and not of which machine it was.
#[test]
fn findings_name_their_agents_and_are_told_once() {
    for (agents, warned, expected) in [
        (2, 1..=1, "agent agent-1: lag 1"),
        (2, 1..=2, "agent agent-1: lag 1; also agent agent-2, with figures of its own"),
        (4, 2..=4, "agent agent-2: lag 2; also agents agent-3 and agent-4, with figures of their own"),
        (9, 1..=9, "agent agent-1: lag 1; also agent agent-2 and 7 others, with figures of their own"),
    ] {
        let shares = (1..=agents).map(|number| {
            let mut share = share(number, agents, AgentState::Finished, 0);
            let verdict = &mut share.run.as_mut().expect("it has a run").result.verdict;
            verdict.warnings = Vec::new();
            if warned.contains(&number) {
                let (code, evidence) = ("start_lag".to_owned(), format!("lag {number}"));
                verdict.warnings.push(Finding { code, evidence, hint: "use a lower rate".to_owned() });
            }
            share
        });
        let merged = SavedRun::merge_fleet(shares.collect()).unwrap();
        let [warning] = &*merged.result.verdict.warnings else { panic!("{:?}", merged.result.verdict) };
        assert_eq!((warning.evidence.as_str(), warning.hint.as_str()), (expected, "use a lower rate"));
    }
}

/// The list of changes is that of the load, also if the first agent does not have all of them.
#[test]
fn an_agent_that_missed_a_change_of_the_rate_makes_the_run_invalid() {
    let mut shares: Vec<FleetShare> =
        (1..=2).map(|number| share(number, 2, AgentState::Finished, 0)).collect();
    shares[0].agent.missed_changes = 1;
    let (from_per_s, to_per_s) = (Some(50.0), Some(100.0));
    let (what, by) = ("rate".to_owned(), "http".to_owned());
    let change = RateChangeResult { at_s: 3.0, what, from_per_s, to_per_s, by };
    shares[1].run.as_mut().expect("it has a run").result.rate.changes.push(change.clone());
    let merged = SavedRun::merge_fleet(shares).unwrap();
    let (verdict, changes) = (&merged.result.verdict, &merged.result.rate.changes);
    assert_eq!(changes, &[change]);
    assert!(!verdict.valid && verdict.invalid_reasons.contains(&"change_missed".to_owned()), "{verdict:?}");
    let evidence = &verdict.evidence.last().expect("there is evidence").evidence;
    assert!(evidence.contains("agent agent-1 heard of a change of the rate too late"), "{evidence}");
    assert_eq!(merged.result.agents[0].missed_changes, 1);
}

#[test]
fn a_shard_that_is_not_there_belongs_to_a_lost_agent_or_is_an_error() {
    let missing = || FleetShare { run: None, ..share(2, 2, AgentState::Finished, 0) };
    let merged = SavedRun::merge_fleet(vec![share(1, 2, AgentState::Finished, 0), missing()]);
    assert_eq!(merged, Err(MergeError::Missing { shards: vec!["2/2".to_owned()] }));
    let nobody = FleetShare { run: None, ..share(1, 1, AgentState::Lost, 5) };
    assert_eq!(SavedRun::merge_fleet(vec![nobody]), Err(MergeError::Nothing));
}

/// Symptom: what `fleet collect` made of a run whose coordinator was killed was DONE and valid.
#[test]
fn a_load_that_its_agents_ended_by_themselves_is_unfinished() {
    let shares = (1..=2).map(|number| {
        let mut share = share(number, 2, AgentState::Finished, 0);
        share.run.as_mut().expect("it has a run").result.run.stopped_by = Some("orphaned".to_owned());
        share
    });
    let merged = SavedRun::merge_fleet(shares.collect()).unwrap();
    let verdict = &merged.result.verdict;
    assert_eq!((verdict.valid, verdict.outcome.word()), (false, "NO VERDICT"));
    assert!(verdict.invalid_reasons.contains(&"unfinished".to_owned()), "{verdict:?}");
    let page = text(&merged);
    assert!(page.contains("the coordinator was silent"), "{page}");
}
