//! Runs that are steered while they go on: rates, pauses, ends, at instants of virtual time.

use std::sync::{Arc, Once};

use plimsoll_core::{Nanos, Rate, Shard};
use plimsoll_engine::{Control, RateCommand};
use plimsoll_metrics::{ReasonCode, SteeredBy, Steering};
use plimsoll_schedule::{Arrivals, Process, Profile};
use plimsoll_testkit::{Behaviour, Law, SimOptions, TimedAction};

use super::{MS, carry_out_steered, plan, world};

const SECOND: Nanos = Nanos::from_secs(1);
/// From a command to when it applies.
const NOTICE: Nanos = Nanos::from_millis(200);

/// Does something once, at this time after the start of the worlds' clocks.
pub(super) fn timed_action(after: Nanos, run: impl Fn(Nanos) + Send + Sync + 'static) -> TimedAction {
    let once = Once::new();
    let run = move |at| once.call_once(|| run(at));
    TimedAction { at: SimOptions::default().start + after, run: Arc::new(run) }
}

/// Wishes at times after the start of the worlds' clocks.
fn timed_actions(control: &Control, commands: &[(Nanos, RateCommand)]) -> Vec<TimedAction> {
    let timed_actions = commands.iter().map(|&(after, command)| {
        let control = control.clone();
        timed_action(after, move |at| {
            control.set_rate_at(command, SteeredBy::File, || at).expect("the run is under way");
        })
    });
    timed_actions.collect()
}

fn to(rate: u64) -> RateCommand {
    RateCommand::To(Rate::per_second(rate))
}

/// All workers take up a change at the same instant of the schedule: together they send the requests of a
/// single machine that knew of it, to the nanosecond.
#[test]
fn arrivals_follow_the_changes_exactly_on_any_number_of_workers() {
    let commands = [
        (SECOND * 2, to(1000)),
        (SECOND * 4, RateCommand::Pause),
        (SECOND * 6, RateCommand::Resume),
        (SECOND * 8, to(37)),
    ];
    for (arrival, process) in [("uniform", Process::Uniform), ("poisson", Process::Poisson)] {
        for threads in ["1", "3"] {
            let flags =
                [("--rate", "100"), ("-d", "10s"), ("-c", "30"), ("-t", threads), ("--arrival", arrival)];
            let plan = plan(&flags);
            let control = Control::default();
            let options = SimOptions {
                timed_actions: timed_actions(&control, &commands),
                ..world(Behaviour::default())
            };
            let (clock, latency) = (options.start, options.latency);
            let (record, truth) = carry_out_steered(&plan, options, &control);
            let start = record.started_monotonic;
            let times = commands.map(|(after, _)| (clock + after).since(start) + NOTICE);
            let made: Vec<_> = record.rate_changes.iter().map(|change| (change.at, change.what)).collect();
            let what = [Steering::Rate, Steering::Pause, Steering::Resume, Steering::Rate];
            assert_eq!(made, times.into_iter().zip(what).collect::<Vec<_>>());
            let rates: Vec<_> =
                record.rate_changes.iter().filter_map(|change| change.to_per_second).collect();
            assert_eq!(rates, [1000.0, 0.0, 1000.0, 37.0]);

            let fast = Profile::constant(Rate::per_second(1000), SECOND * 10);
            let expected = Profile::constant(Rate::per_second(100), SECOND * 10)
                .spliced(times[0], &fast)
                .and_then(|profile| profile.changed(times[1], Rate::per_second(0)))
                .and_then(|profile| profile.spliced(times[2], &fast))
                .and_then(|profile| profile.changed(times[3], Rate::per_second(37)))
                .expect("it fits");
            let asked = expected.mean_rate(Nanos::ZERO, SECOND * 10);
            let expected: Vec<Nanos> = Arrivals::new(&expected, process, plan.seed, Shard::WHOLE)
                .map(|arrival| arrival.at)
                .collect();
            let mut received: Vec<Nanos> =
                truth.entries().iter().map(|entry| entry.received.since(start + latency)).collect();
            received.sort_unstable();
            assert_eq!(received, expected, "{arrival}, {threads} threads");
            // The arrivals that were asked for are those that were due, and all of them were started.
            assert_eq!(record.accounting.scheduled, expected.len() as u64);
            assert_eq!(record.target_per_second, Some(asked));
            assert!(record.verdict.valid, "{:?}", record.verdict);
            let due: u64 = record.intervals.iter().map(|interval| interval.scheduled).sum();
            assert_eq!(due, expected.len() as u64);
        }
    }
}

/// A rate that is raised beyond the limit of the connections is missed, by the arrivals that were due.
#[test]
fn a_missed_rate_is_judged_by_the_changed_schedule() {
    let plan = plan(&[("--rate", "100"), ("-d", "10s"), ("-c", "2"), ("--overload", "drop")]);
    let behaviour = Behaviour { service: Law::Constant(MS * 10), ..Behaviour::default() };
    let control = Control::default();
    control.limit_rate(Rate::per_second(2000));
    let timed_actions = timed_actions(&control, &[(SECOND * 5, to(2000))]);
    let (record, _) = carry_out_steered(&plan, SimOptions { timed_actions, ..world(behaviour) }, &control);
    let at = record.rate_changes[0].at;
    let due = 100.0 * at.as_secs_f64() + 2000.0 * (10.0 - at.as_secs_f64());
    assert!((record.accounting.scheduled as f64 - due).abs() < 1.0, "{} {due}", record.accounting.scheduled);
    assert!(record.accounting.dropped > 8000, "{:?}", record.accounting);
    let reasons: Vec<_> = record.verdict.reasons.iter().map(|reason| reason.code).collect();
    assert!(reasons.contains(&ReasonCode::RateNotMet), "{reasons:?}");
}

#[test]
fn a_backlog_is_not_lost_to_a_change() {
    // 50/s at most: half of the arrivals wait.
    let plan = plan(&[("--rate", "100"), ("-d", "4s"), ("-c", "1"), ("--drain", "0s")]);
    let behaviour = Behaviour { service: Law::Constant(MS * 20), ..Behaviour::default() };
    let control = Control::default();
    let timed_actions = timed_actions(&control, &[(SECOND, RateCommand::Pause)]);
    let (record, _) = carry_out_steered(&plan, SimOptions { timed_actions, ..world(behaviour) }, &control);
    // The arrivals of the first 1.2 s were due, and all of them were started in the pause.
    let due = (record.rate_changes[0].at.0).div_ceil(10_000_000);
    assert_eq!((record.accounting.scheduled, record.accounting.started), (due, due));
    assert_eq!(record.accounting.ok, due);
}

#[test]
fn users_of_the_closed_model_rest_in_a_pause() {
    for threads in ["1", "2"] {
        let plan = plan(&[("-c", "8"), ("-d", "3s"), ("-t", threads)]);
        let behaviour = Behaviour { service: Law::Constant(MS), ..Behaviour::default() };
        let control = Control::default();
        let commands = [(SECOND, RateCommand::Pause), (SECOND * 2, RateCommand::Resume)];
        // With clocks of their own, worlds that lag behind hear of the end of the pause before its start.
        let commands = if threads == "1" { &commands[..] } else { &commands[..1] };
        let options = SimOptions { timed_actions: timed_actions(&control, commands), ..world(behaviour) };
        let clock = options.start;
        let (record, truth) = carry_out_steered(&plan, options, &control);
        assert_eq!(record.rate_changes.len(), commands.len());
        assert_eq!(record.rate_changes[0].to_per_second, None);
        let entries = truth.entries();
        let between = |from: Nanos, to: Nanos| {
            entries.iter().filter(|e| e.received >= clock + from && e.received < clock + to).count()
        };
        if threads == "1" {
            // 8 users, 1.1 ms each.
            assert!(between(Nanos::ZERO, SECOND) > 7000);
            assert_eq!(between(SECOND + MS, SECOND * 2), 0);
            assert!(between(SECOND * 2, SECOND * 3) > 6000, "{}", between(SECOND * 2, SECOND * 3));
        }
        assert_eq!(between(SECOND * 2 + MS * 900, SECOND * 3 - MS * 5) > 0, threads == "1");
        assert!(record.verdict.valid, "{:?}", record.verdict);
    }
}

#[test]
fn who_stops_a_run_is_in_its_record() {
    let plan = plan(&[("--rate", "100"), ("-d", "100s")]);
    let control = Control::default();
    let stopper = control.clone();
    let timed_actions = vec![timed_action(SECOND * 3, move |_| stopper.stop_by(SteeredBy::Key))];
    let options = SimOptions { timed_actions, ..world(Behaviour::default()) };
    let (record, _) = carry_out_steered(&plan, options, &control);
    assert_eq!(record.stopped_by, Some(SteeredBy::Key));
    assert!(
        record.duration > SECOND * 2 && record.duration < Nanos::from_millis(3200),
        "{:?}",
        record.duration
    );
    assert_eq!(record.accounting.scheduled, record.accounting.ok);
}

/// One that joins later has the arrivals of its shard from there on, and together with the one before it
/// those of the whole load.
#[test]
fn a_process_that_joins_leaves_the_arrivals_before_to_another() {
    for model in ["uniform", "poisson"] {
        let plan = plan(&[("--rate", "100"), ("-d", "10s"), ("--seed", "3"), ("--arrival", model)]);
        let plimsoll_plan::Load::Open { profile, process, .. } = &plan.load else { panic!("it has a rate") };
        let whole = Arrivals::new(profile, *process, plan.seed, Shard::WHOLE);
        let due = whole.count_before(SECOND * 10) - whole.count_before(SECOND * 4);
        let control = Control::default();
        control.join_at(SECOND * 4);
        let (record, truth) = carry_out_steered(&plan, world(Behaviour::default()), &control);
        assert_eq!(record.accounting.scheduled, due, "{model}");
        assert!(due > 500 && truth.len() as u64 == record.accounting.scheduled);
        let early = record.intervals.iter().filter(|one| one.at <= SECOND * 4);
        assert_eq!(early.map(|one| one.scheduled).sum::<u64>(), 0, "{model}");
        assert!(record.intervals.iter().all(|one| one.length == SECOND), "{model}");
    }
}

/// One that joins after changes of the rate has the schedule with all of them.
#[test]
fn a_process_that_joins_knows_the_changes_that_were_made_before() {
    for model in ["uniform", "poisson"] {
        let plan = plan(&[("--rate", "100"), ("-d", "10s"), ("--seed", "3"), ("--arrival", model)]);
        let plimsoll_plan::Load::Open { process, .. } = &plan.load else { panic!("it has a rate") };
        let control = Control::default();
        control.expect(&plan);
        let faster = RateCommand::To(Rate::per_second(170));
        let changes =
            [(1, faster), (2, RateCommand::Pause), (3, RateCommand::Resume), (6, RateCommand::Pause)];
        for (at, command) in changes {
            let change = control.set_rate_from(command, SteeredBy::Http, SECOND * at);
            assert!(change.is_ok_and(|change| change.is_some()), "{command:?}");
        }
        let profile = control.profile().expect("it has a rate");
        let whole = Arrivals::new(&profile, *process, plan.seed, Shard::WHOLE);
        let due = whole.count_before(SECOND * 10) - whole.count_before(SECOND * 4);
        control.join_at(SECOND * 4);
        let (record, truth) = carry_out_steered(&plan, world(Behaviour::default()), &control);
        assert!((250..450).contains(&due), "two seconds at 170/s: {due}");
        assert_eq!((record.accounting.scheduled, truth.len() as u64), (due, due), "{model}");
    }
}

/// Nothing is sent from a fence on. If it is lifted, what was due is made up for; if it is not, the load has
/// ended there, and another may have the rest.
#[test]
fn nothing_is_sent_beyond_a_fence() {
    for is_lifted in [false, true] {
        let plan = plan(&[("--rate", "100"), ("-d", "10s")]);
        let control = Control::default();
        let (fenced, lifts) = (control.clone(), control.clone());
        let mut options = world(Behaviour::default());
        let clock = options.start;
        let mut timed_actions = vec![timed_action(SECOND * 2, move |_| fenced.fence(clock + SECOND * 3))];
        if is_lifted {
            timed_actions.push(timed_action(SECOND * 6, move |_| lifts.fence(Nanos::MAX)));
        }
        options.timed_actions = timed_actions;
        let (record, truth) = carry_out_steered(&plan, options, &control);
        let entries = truth.entries();
        let between = |from: u64, to: u64| {
            let (from, to) = (clock + SECOND * from, clock + SECOND * to);
            // A little later on the wire than at the worker.
            entries.iter().filter(|entry| (from + MS * 5..to).contains(&entry.received)).count()
        };
        assert!(between(0, 3) > 250 && between(3, 6) == 0, "{} {}", between(0, 3), between(3, 6));
        let scheduled = record.accounting.scheduled;
        assert_eq!(scheduled, record.accounting.started);
        match is_lifted {
            true => assert_eq!(scheduled, 1_000),
            // The load begins shortly after the clock.
            false => assert!((295..=300).contains(&scheduled), "{scheduled}"),
        }
    }
}
