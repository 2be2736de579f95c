//! Phases and the users of the closed model over time: exact counts on any number of workers.

use plimsoll_core::{Nanos, Shard};
use plimsoll_engine::Control;
use plimsoll_metrics::{PhaseRecord, RunRecord, SteeredBy};
use plimsoll_plan::{Load, Plan};
use plimsoll_schedule::Arrivals;
use plimsoll_testkit::{Behaviour, Law, SimOptions, TruthLog};

use super::plans::of_text;
use super::steering::timed_action;
use super::{MS, carry_out_steered, simulate, world};

const REST: &str = "targets: {api: http://sim.test}\nscenarios: [{steps: [{get: /}]}]";

/// On the way to the server in a simulated world, and back.
const WAY: Nanos = Nanos::from_micros(50);

fn phased(settings: &str, phases: &str) -> Plan {
    of_text(format!("run: {{{settings}}}\nphases:\n{phases}{REST}"))
}

fn serving(time: Nanos) -> SimOptions {
    world(Behaviour { service: Law::Constant(time), ..Behaviour::default() })
}

fn names(record: &RunRecord) -> Vec<(&str, bool)> {
    record.phases.iter().map(|phase| (phase.name.as_str(), phase.measured)).collect()
}

fn started(record: &RunRecord) -> Vec<u64> {
    record.phases.iter().map(|phase| phase.tally.started).collect()
}

/// The measured phases are the run.
fn assert_phases_add_up(record: &RunRecord) {
    let sum = |part: fn(&PhaseRecord) -> u64| -> u64 {
        record.phases.iter().filter(|phase| phase.measured).map(part).sum()
    };
    let a = &record.accounting;
    assert_eq!(sum(|phase| phase.tally.started), a.started);
    assert_eq!(sum(|phase| phase.tally.ok), a.ok);
    assert_eq!(sum(|phase| phase.tally.failed), a.failed);
    assert_eq!(sum(|phase| phase.tally.timed_out), a.timed_out);
    let times = record.phases.iter().filter(|phase| phase.measured);
    let merged = times.fold(plimsoll_metrics::Tally::default(), |mut all, phase| {
        all.merge(&phase.tally);
        all
    });
    assert_eq!(merged.response_time.count(), record.total.response_time.count());
    assert_eq!(merged.percentile(99.0), record.total.response_time.percentile(99.0));
    for phase in &record.phases {
        let end = phase.at + phase.length;
        assert!(record.intervals.iter().any(|interval| interval.at == end), "no interval ends at {end:?}");
    }
}

const OPEN: &str = "
  - {name: warm, rate: 100, duration: 500ms, measured: false}
  - {name: low, rate: 200, duration: 1200ms}
  - {name: up, stages: 2s@600}
  - {name: high, rate: 300, duration: 300ms}
";

#[test]
fn phases_of_rates_start_exactly_what_is_due_in_them() {
    for threads in [1, 3] {
        let settings = format!("connections: 30, threads: {threads}");
        let plan = phased(&settings, OPEN);
        assert_eq!((plan.warmup, plan.end.duration), (MS * 500, Some(MS * 3_500)));
        let (record, _) = simulate(&plan, serving(MS));
        assert_eq!(names(&record), [("warm", false), ("low", true), ("up", true), ("high", true)]);
        // The ramp goes on from 200/s, where the phase before ends.
        assert_eq!(started(&record), [50, 240, 800, 90], "{threads} workers");
        let targets: Vec<_> = record.phases.iter().map(|phase| phase.target_per_second.unwrap()).collect();
        assert_eq!(targets, [100.0, 200.0, 400.0, 300.0]);
        // Responses come 1.1 ms after they are due: of the first arrival of a phase within it.
        let ended: Vec<_> = record.phases.iter().map(|phase| phase.tally.ok).collect();
        assert_eq!(ended.iter().sum::<u64>(), 1_180, "{ended:?}");
        assert!(
            ended.iter().zip(started(&record)).all(|(ended, begun)| ended.abs_diff(begun) <= 1),
            "{ended:?}"
        );
        assert_phases_add_up(&record);
    }
}

#[test]
fn phases_of_a_poisson_process_start_exactly_what_is_due_in_them() {
    for threads in [1, 3] {
        let plan = phased(&format!("connections: 200, threads: {threads}, arrival: poisson"), OPEN);
        let Load::Open { profile, process, .. } = &plan.load else { panic!("closed") };
        let before = |at| Arrivals::new(profile, *process, plan.seed, Shard::WHOLE).count_before(at);
        let due: Vec<u64> = plan.phases.iter().map(|phase| before(phase.end()) - before(phase.at)).collect();
        let (record, _) = simulate(&plan, serving(MS * 20));
        assert_eq!(started(&record), due, "{threads} workers");
        assert_phases_add_up(&record);
    }
}

#[test]
fn phases_shorter_than_an_interval_are_told_apart() {
    let phases = "
  - {name: a, rate: 1000, duration: 130ms}
  - {name: b, rate: 100, duration: 50ms}
  - {name: c, rate: 2000, duration: 20ms}
";
    for threads in [1, 3] {
        let plan = phased(&format!("connections: 50, threads: {threads}"), phases);
        let (record, _) = simulate(&plan, serving(MS));
        assert_eq!(started(&record), [130, 5, 40], "{threads} workers");
        assert_phases_add_up(&record);
    }
}

/// The number of users by truth: requests that are on the way or being worked on at an instant.
fn under_way(truth: &TruthLog, record: &RunRecord, at: Nanos) -> u64 {
    let at = record.started_monotonic + at;
    let entries = truth.entries();
    let is = |received: Nanos, replied: Option<Nanos>| {
        received - WAY <= at && replied.is_none_or(|replied| at < replied + WAY)
    };
    entries.iter().filter(|entry| is(entry.received, entry.replied)).count() as u64
}

#[test]
fn users_follow_their_course_and_end_what_they_have_begun() {
    for (threads, settings) in
        [(1, ""), (3, ""), (1, ", http2: true, max_concurrent_streams: 4"), (2, ", pipeline: 3")]
    {
        let settings = format!(
            "threads: {threads}, user_stages: '100ms@4,1s@24,500ms@24,1s@4,200ms@=9,200ms@0'{settings}"
        );
        let plan = of_text(format!("run: {{{settings}}}\n{REST}"));
        let (record, truth) = simulate(&plan, serving(MS * 20));
        assert_eq!((record.accounting.failed, record.accounting.in_flight_at_stop), (0, 0), "{settings}");
        assert_eq!(record.duration, Nanos::from_secs(3), "{settings}");
        let users = plan.users.as_ref().expect("a course");
        for ms in (30..3_000).step_by(7) {
            let (at, cycle) = (MS * ms, MS * 23);
            let seen = under_way(&truth, &record, at);
            let (now, before) = (u64::from(users.at(at)), u64::from(users.at(at.since(cycle))));
            // A user who goes ends the request that has begun; a user who comes opens a connection first.
            assert!(seen <= now.max(before), "{settings}: {seen} of {now} at {ms} ms");
            assert!(seen >= now.min(before), "{settings}: {seen} of {now} at {ms} ms");
        }
    }
}

#[test]
fn phases_of_users_count_what_was_begun_in_them() {
    let phases = "
  - {name: warm, users: 2, duration: 300ms, measured: false}
  - {name: few, users: 6, duration: 700ms}
  - {name: up, user_stages: 1s@12}
  - {name: none, users: 0, duration: 250ms}
  - {name: again, users: 3, duration: 250ms}
";
    for threads in [1, 3] {
        let plan = phased(&format!("threads: {threads}"), phases);
        let (record, truth) = simulate(&plan, serving(MS * 10));
        assert_phases_add_up(&record);
        let sent: Vec<Nanos> =
            truth.entries().iter().map(|entry| entry.received - WAY - record.started_monotonic).collect();
        // A response at the very end of a phase belongs to that phase, with the requests that follow from it.
        let within = |phase: &PhaseRecord| {
            let after = if phase.at == Nanos::ZERO { None } else { Some(phase.at) };
            let end = phase.at + phase.length;
            sent.iter().filter(|sent| after.is_none_or(|after| **sent > after) && **sent <= end).count()
                as u64
        };
        // Requests on a connection that has yet to be opened are sent a little later than they are begun.
        for (phase, begun) in record.phases.iter().zip(started(&record)) {
            let users = plan.users.as_ref().expect("a course");
            let users = u64::from(users.at(phase.at).max(users.at(phase.at + phase.length)));
            assert!(begun.abs_diff(within(phase)) <= users, "{}: {begun}, {}", phase.name, within(phase));
            assert_eq!(phase.target_per_second, None);
        }
        assert_eq!(started(&record)[3], 0, "nobody is there");
        let rates: Vec<f64> =
            record.phases.iter().map(|p| p.completed as f64 / p.length.as_secs_f64() / 99.0).collect();
        // Users by their cycles of 10.1 ms; on the ramp from 6 to 12 there are 6, 7, …, 11 for a sixth each.
        for (rate, users) in rates.iter().zip([2.0, 6.0, 8.5]) {
            assert!((rate - users).abs() < 0.05 * users, "{rates:?}");
        }
    }
}

#[test]
fn a_number_of_users_is_shared_exactly_and_needs_no_connections_of_theirs() {
    for threads in [1, 3] {
        for settings in [
            "users: 7, duration: 500ms",
            "users: 7, duration: 500ms, warmup: 100ms",
            "users: 7, iterations: 350",
        ] {
            let plan = of_text(format!("run: {{threads: {threads}, {settings}}}\n{REST}"));
            let (record, truth) = simulate(&plan, serving(MS * 10));
            assert_eq!(record.connections.opened, 7, "{settings}");
            assert_eq!(under_way(&truth, &record, MS * 205), 7, "{settings}");
            if settings.ends_with("350") {
                assert_eq!(record.accounting.started, 350);
            }
        }
    }
}

#[test]
fn a_run_that_is_stopped_has_phases_as_far_as_it_came() {
    let plan = phased(
        "connections: 30",
        "
  - {name: one, rate: 100, duration: 1s}
  - {name: two, rate: 100, duration: 1s}
  - {name: three, rate: 100, duration: 1s}
",
    );
    let control = Control::default();
    let stopper = control.clone();
    let timed_actions = vec![timed_action(MS * 1_200, move |_| stopper.stop_by(SteeredBy::Key))];
    let options = SimOptions { timed_actions, ..serving(MS * 150) };
    let (record, _) = carry_out_steered(&plan, options, &control);
    assert!(record.duration > MS * 1_000 && record.duration < MS * 1_350, "{:?}", record.duration);
    let lengths: Vec<_> = record.phases.iter().map(|phase| phase.length).collect();
    assert_eq!(lengths, [MS * 1_000, record.duration - MS * 1_000, Nanos::ZERO]);
    assert_eq!(started(&record), [100, record.accounting.started - 100, 0]);
    // Requests that were in flight at the stop ended in the drain.
    assert_eq!(record.phases[1].tally.ok, record.accounting.ok - record.phases[0].tally.ok);
    assert!(record.phases[1].completed < record.phases[1].tally.ok);
    assert_eq!(record.phases[2].target_per_second, None);
}
