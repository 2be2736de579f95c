//! Ends of loads: by their number of iterations, by the end of their data, by the request of a script, and
//! although a worker does not come back.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Nanos, Shard};
use plimsoll_engine::{Backends, Control, RunError, Stop, run};
use plimsoll_metrics::{EndedBy, ReasonCode, RunRecord, Verdict};
use plimsoll_plan::Plan;
use plimsoll_scenario::{DynamicRequest, Needs, Received, ScriptError, ScriptSource, Scripts, Session};
use plimsoll_testkit::{Behaviour, Law, SimOpen, SimOptions};

use super::plans::{good, iterations, plan};
use super::steering::timed_action;
use super::{MS, carry_out_steered, server, simulate, world};

const STEPS: &str = "scenarios: [{steps: [{get: /, think: 30ms}, {get: /b}, {get: /c, think: 5ms}]}]";

fn reasons(record: &RunRecord) -> Vec<ReasonCode> {
    record.verdict.reasons.iter().map(|reason| reason.code).collect()
}

#[test]
fn all_iterations_of_a_counted_open_run_are_finished() {
    for more in ["", ", threads: 3", ", arrival: poisson", ", warmup: 100ms", ", http2: true", ", drain: 0s"]
    {
        let settings = format!("rate: 200, iterations: 60, connections: 20{more}");
        let (record, _) = simulate(&plan(&settings, STEPS), world(good()));
        assert_eq!((iterations(&record), record.accounting.ok), ([60, 60, 0, 0], 180), "{more}");
        assert!(record.target_per_second.is_some_and(|target| target >= 199.9), "{more}");
    }
}

/// A server that is too slow for the rate does not make the number of iterations smaller.
#[test]
fn iterations_that_wait_are_counted_and_finished() {
    let slow = Behaviour { service: Law::Constant(MS * 10), ..Behaviour::default() };
    let plan = plan("rate: 1000, iterations: 100, connections: 1", "scenarios: [{steps: [{get: /}]}]");
    let (record, _) = simulate(&plan, world(slow));
    assert_eq!((iterations(&record), record.accounting.never_started), ([100, 100, 0, 0], 0));
    assert_eq!(record.target_per_second, Some(1000.0));
    assert!(!record.verdict.valid && record.duration > Nanos::from_secs(1), "{:?}", record.verdict);
}

/// Arrivals that share a wake-up may be more than a worker has connections.
#[test]
fn what_was_due_before_the_end_is_started_although_the_last_wake_up_owes_many() {
    for more in ["", ", arrival: poisson", ", overload: drop"] {
        let settings = format!("rate: 200000, duration: 100ms, connections: 64, threads: 4{more}");
        let plan = plan(&settings, "scenarios: [{steps: [{get: /}]}]");
        for overshoot in [0, 60] {
            let options =
                SimOptions { overshoot: Nanos::from_micros(overshoot), ..world(Behaviour::default()) };
            let (record, _) = simulate(&plan, options);
            let a = &record.accounting;
            assert_eq!((a.never_started, a.dropped), (0, 0), "{more}, {overshoot} µs: {a:?}");
            assert!(record.verdict.valid, "{more}, {overshoot} µs: {:?}", record.verdict);
        }
    }
}

/// A duration that is given beside the iterations is a limit.
#[test]
fn a_duration_limits_the_iterations() {
    let plan = plan("rate: 200, iterations: 60, duration: 100ms, connections: 20", STEPS);
    let (record, _) = simulate(&plan, world(good()));
    assert_eq!((iterations(&record)[0], record.duration), (20, MS * 100));
    assert!(record.iterations.unfinished > 0);
}

#[test]
fn iterations_with_data_are_finished_when_it_ends() {
    let rest = "data: {n: {range: [0, 7], at_end: stop}}\n\
                scenarios: [{steps: [{get: \"/${n}\"}, {get: /b, think: 3ms}]}]";
    for load in ["duration: 10s", "iterations: 100", "rate: 100, duration: 10s", "rate: 100, iterations: 50"]
    {
        for threads in [1, 3] {
            let settings = format!("connections: 3, threads: {threads}, {load}");
            let (record, truth) = simulate(&plan(&settings, rest), world(good()));
            assert_eq!((iterations(&record), truth.len()), ([7, 7, 0, 0], 14), "{settings}");
            assert_eq!(record.accounting.without_data, 0, "{settings}");
            assert!(record.duration < Nanos::from_secs(1), "{settings}: {:?}", record.duration);
        }
    }
}

/// Symptom: a run of 30 rows at 10/s had 10.3/s "asked for", and passed as one of 10 s without a word.
#[test]
fn a_load_whose_data_ends_is_no_load_of_its_planned_length() {
    let rest = "data: {n: {range: [0, 30], at_end: stop}}\nthresholds: [p99<100ms]\n\
                scenarios: [{steps: [{get: \"/${n}\"}]}]";
    for more in ["", ", threads: 3", ", arrival: poisson", ", warmup: 1s", ", http2: true"] {
        let settings = format!("rate: 10, duration: 10s, connections: 9{more}");
        let (record, _) = simulate(&plan(&settings, rest), world(good()));
        assert_eq!(record.total.ok, if more.contains("warmup") { 20 } else { 30 }, "{more}");
        assert_eq!((record.target_per_second, record.planned), (Some(10.0), Some(MS * 10_000)), "{more}");
        let end = record.early_end.as_ref().expect("it ended early");
        assert_eq!(end.by, EndedBy::Data("n".to_owned()), "{more}");
        assert!(record.duration < Nanos::from_secs(5) && end.after <= record.duration, "{more}: {end:?}");
        if more.is_empty() {
            // As many arrivals as its rate makes of that time.
            assert_eq!((record.duration, end.after), (MS * 3_000, MS * 3_000));
        }
        let Verdict { valid, warnings, .. } = &record.verdict;
        let said = warnings.iter().find(|one| one.code == ReasonCode::EndedEarly).expect("a warning");
        assert!(*valid && said.evidence.starts_with("data `n` had no row left after "), "{said:?}");
        // It would not have lasted longer, whatever its samples are.
        let reason = record.thresholds[0].reason.as_deref().unwrap_or_default();
        assert!(reason.contains("needs 299 samples") && !reason.contains("would do"), "{more}: {reason}");
    }
    // One row more than there are arrivals.
    let enough = rest.replace("30]", "101]");
    let (record, _) = simulate(&plan("rate: 10, duration: 10s, connections: 9", &enough), world(good()));
    assert_eq!((record.early_end, record.accounting.ok), (None, 100));
    assert!(record.verdict.warnings.is_empty(), "{:?}", record.verdict);
    assert!(record.thresholds[0].reason.as_ref().is_some_and(|reason| reason.contains(" would do")));
}

/// Symptom: the rate that was asked for was what chance made due, and not what the plan says.
#[test]
fn the_rate_that_is_asked_for_is_that_of_the_plan() {
    let one = "scenarios: [{steps: [{get: /}]}]";
    for more in [", arrival: poisson", ", arrival: poisson, warmup: 1s, threads: 2", ", rate_of: requests"] {
        let (record, _) =
            simulate(&plan(&format!("rate: 37, duration: 5s, connections: 9{more}"), one), world(good()));
        assert_eq!((record.target_per_second, record.planned), (Some(37.0), Some(MS * 5_000)), "{more}");
    }
    // A load that somebody ends has had its own rate until then.
    let control = Control::default();
    let stops = control.clone();
    let timed_actions = vec![timed_action(MS * 2_550, move |_| stops.stop(Stop::Drain))];
    let plan = plan("rate: 37, duration: 10s, connections: 9, arrival: poisson", one);
    let (record, _) = carry_out_steered(&plan, SimOptions { timed_actions, ..world(good()) }, &control);
    assert_eq!((record.target_per_second, &record.early_end), (Some(37.0), &None));
    assert!(record.duration < Nanos::from_secs(3), "{:?}", record.duration);
}

/// One of two scenarios has no data any more: its arrivals are counted and named.
#[test]
fn arrivals_without_data_are_in_the_accounts() {
    let rest = "data: {n: {range: [0, 5], at_end: stop}}\nscenarios:\n\
                \x20 - {name: a, steps: [{get: \"/a?${n}\"}]}\n\
                \x20 - {name: b, weight: 3, steps: [{get: /b, think: 1ms}]}";
    for threads in [1, 3] {
        let settings = format!("rate: 200, duration: 1s, connections: 9, threads: {threads}");
        let (record, _) = simulate(&plan(&settings, rest), world(good()));
        let a = &record.accounting;
        assert_eq!(
            (a.scheduled, a.started, a.never_started, a.without_data),
            (200, 155, 45, 45),
            "{threads}"
        );
        assert!(!reasons(&record).contains(&ReasonCode::RateNotMet), "{:?}", record.verdict);
        let warned = record.verdict.warnings.iter().any(|warning| warning.code == ReasonCode::DataEnded);
        assert!(warned, "{:?}", record.verdict);
    }
}

/// Data that is drawn in the middle of iterations ends the load as well.
#[test]
fn data_that_ends_in_the_middle_ends_the_load() {
    let rest = "data: {n: {range: [0, 4], at_end: stop}}\n\
                scenarios: [{steps: [{get: /}, {think: 2ms}, {get: \"/${n}\"}]}]";
    for load in ["duration: 100s", "rate: 100, duration: 100s"] {
        let (record, _) = simulate(&plan(&format!("connections: 2, {load}"), rest), world(good()));
        assert!(record.duration < Nanos::from_secs(1), "{load}: {:?}", record.duration);
        assert_eq!(record.accounting.never_started, 0, "{load}");
    }
}

/// The script of a worker: its action whenever it makes a request.
enum Script {
    /// Counts down, and wishes to stop when nothing is left.
    Counts { left: u64 },
    /// Stops the run and never returns.
    Sticks(Control),
}

impl Scripts for Script {
    fn make_request(&mut self, _: u32, _: &Session, _: &mut DynamicRequest) -> Result<(), ScriptError> {
        match self {
            Self::Counts { left } => *left = left.saturating_sub(1),
            Self::Sticks(control) => {
                control.stop(Stop::Now);
                loop {
                    std::thread::park();
                }
            }
        }
        Ok(())
    }

    fn validate_response(&mut self, _: u32, _: &Received<'_>) -> Result<bool, ScriptError> {
        Ok(true)
    }

    fn delay(&mut self, _: u32) -> Result<Nanos, ScriptError> {
        Ok(Nanos::ZERO)
    }

    fn wants_to_stop(&self) -> bool {
        matches!(self, Self::Counts { left: 0 })
    }

    fn finish(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// Gives every worker its script.
struct ByWorker<F>(F);

impl<F> fmt::Debug for ByWorker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByWorker")
    }
}

impl<F: Fn(Shard) -> Script + Send + Sync> ScriptSource for ByWorker<F> {
    fn needs(&self, _: u32) -> Needs {
        Needs::default()
    }

    fn makes_requests(&self, _: u32) -> bool {
        true
    }

    fn sees_responses(&self, _: u32) -> bool {
        false
    }

    fn open(&self, worker: Shard, _: &[String]) -> Result<Box<dyn Scripts>, ScriptError> {
        Ok(Box::new(self.0(worker)))
    }
}

/// The plan, whose steps' requests are made by these scripts.
fn scripted(mut plan: Plan, scripts: Arc<dyn ScriptSource>) -> Plan {
    plan.scripts = Some(scripts);
    for step in &mut plan.steps {
        step.make_script = Some(0);
    }
    plan
}

/// A run that has a length keeps it, as in wrk: the rate that it tells is over that.
#[test]
fn a_script_ends_the_load_of_either_model() {
    let loads = [
        ("duration: 100s", Some(100)),
        ("rate: 100, duration: 100s", Some(100)),
        ("iterations: 10000", None),
        ("rate: 100, iterations: 10000", None),
    ];
    for (load, lasts) in loads {
        for threads in [1, 2] {
            let settings = format!("connections: 2, threads: {threads}, {load}");
            let plan = plan(&settings, "scenarios: [{steps: [{get: /}]}]");
            let (record, truth) =
                simulate(&scripted(plan, Arc::new(ByWorker(|_| Script::Counts { left: 12 }))), world(good()));
            assert_eq!(truth.len(), 12 * threads, "{settings}");
            assert_eq!((record.accounting.ok, record.accounting.never_started), (12 * threads as u64, 0));
            assert_eq!(record.accounting.check(), Ok(()), "{settings}");
            match lasts {
                Some(length) => {
                    assert_eq!(record.duration, Nanos::from_secs(length), "{settings}");
                    let of_open = load.contains("rate").then_some(EndedBy::Script);
                    assert_eq!(record.early_end.as_ref().map(|end| end.by.clone()), of_open, "{settings}");
                    assert_eq!(record.target_per_second, of_open.map(|_| 100.0), "{settings}");
                }
                None => {
                    assert!(record.duration < Nanos::from_secs(1), "{settings}: {:?}", record.duration);
                }
            }
        }
    }
}

/// A session that thinks when its thread is stopped does not go on.
#[test]
fn a_script_ends_iterations_that_are_under_way() {
    let rest = "scenarios: [{steps: [{get: /}, {think: 20ms}, {get: /b}]}]";
    let plan = plan("connections: 4, duration: 10s", rest);
    let script = ByWorker(|_| Script::Counts { left: 5 });
    let (record, truth) = simulate(&scripted(plan, Arc::new(script)), world(good()));
    assert_eq!((truth.len(), record.accounting.ok), (5, 5));
    assert_eq!((record.duration, record.accounting.check()), (Nanos::from_secs(10), Ok(())));
}

/// Three workers, of which the first ones get stuck.
fn run_stuck(workers: u32) -> Result<RunRecord, RunError> {
    let control = Control::default();
    let plan = plan("connections: 3, threads: 3, duration: 1000h", "scenarios: [{steps: [{get: /}]}]");
    let stops = control.clone();
    let script = move |worker: Shard| match worker.index < workers {
        true => Script::Sticks(stops.clone()),
        false => Script::Counts { left: u64::MAX },
    };
    let plan = scripted(plan, Arc::new(ByWorker(script)));
    let backends = Backends::of(SimOpen::new(world(good())));
    run(&plan, &backends, &[vec![server().into()].into()], &control, &mut |_| {})
}

/// The run ends without it, and the record says so.
#[test]
fn a_worker_that_does_not_come_back_is_named() {
    let record = run_stuck(1).expect("the others come back");
    assert_eq!(record.workers.iter().map(|worker| worker.absent).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(record.accounting.check(), Ok(()));
    let missing = record.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::WorkerMissing);
    let evidence = &missing.expect("a reason").evidence;
    assert!(!record.verdict.valid && evidence.starts_with("worker 0 of 3 did not"), "{evidence}");
}

#[test]
fn a_run_of_which_no_worker_comes_back_is_an_error() {
    assert!(matches!(run_stuck(3), Err(RunError::Unresponsive)));
}
