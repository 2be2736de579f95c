//! Results of thresholds over a whole run.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_histogram::Delta;
use plimsoll_metrics::threshold::{Observed, Unit};
use plimsoll_metrics::{
    Accounting, Interval, Model, Outline, RunRecord, ScenarioOutline, StepRecord, Tally, Threshold,
    ThresholdResult, ThresholdSpec, ThresholdWatch, judge_thresholds,
};

const MS: u64 = 1_000_000;

fn spec(text: &str) -> ThresholdSpec {
    ThresholdSpec::new(Threshold::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn outline() -> Outline {
    let scenario = |name: &str, steps| ScenarioOutline { name: name.to_owned(), steps };
    Outline {
        scenarios: vec![scenario("buy", 0..2), scenario("look", 2..3)],
        steps: ["login", "pay", "login"].map(str::to_owned).to_vec(),
        awaited: Vec::new(),
        phases: Vec::new(),
        paces_requests: false,
        metrics: Vec::new(),
    }
}

/// Good responses of this many milliseconds each, timeouts after the largest of them, and failures.
fn step(good: std::ops::RangeInclusive<u64>, timed_out: u64, failed: u64) -> StepRecord {
    let mut step = StepRecord { name: "step".to_owned(), ..StepRecord::default() };
    for ms in good.clone() {
        step.ok += 1;
        step.response_time.record(ms * MS);
        step.service_time.record(ms * MS / 2);
        step.start_lag.record(0);
    }
    for _ in 0..timed_out {
        let least = Nanos::from_millis(*good.end());
        step.timed_out += 1;
        step.response_time.record(least.0);
        step.censored_response.note(least);
        step.start_lag.record(0);
    }
    for _ in 0..failed {
        step.failed += 1;
        step.errors[ErrorClass::Status5xx] += 1;
        step.failed_response_time.record(MS);
        step.start_lag.record(0);
    }
    step.bytes_received = 100 * step.ok;
    step
}

/// Failures alone.
fn failures(failed: u64) -> StepRecord {
    step(std::ops::RangeInclusive::new(1, 0), 0, failed)
}

fn record(steps: Vec<StepRecord>) -> RunRecord {
    let mut total = StepRecord::default();
    steps.iter().for_each(|step| total.merge(step));
    let started = total.start_lag.count();
    RunRecord {
        duration: Nanos::from_secs(10),
        completed_in_window: total.completed(),
        target_per_second: Some((started + 10) as f64 / 10.0),
        accounting: Accounting { scheduled: started + 10, started, dropped: 10, ..Accounting::default() },
        total,
        steps,
        backend: "simulated".into(),
        ..RunRecord::empty(Model::Open)
    }
}

fn judged(record: &RunRecord, spec: ThresholdSpec) -> ThresholdResult {
    judge_thresholds(&[spec], &outline(), record).swap_remove(0)
}

#[track_caller]
fn assert_judged(record: &RunRecord, table: &[(&str, bool, Option<&str>)]) {
    for (text, passed, reason) in table {
        let result = judged(record, spec(text));
        assert_eq!((result.passed, result.reason.as_deref()), (*passed, *reason), "{text}: {result:?}");
    }
}

#[test]
fn figures_of_a_run_are_compared() {
    let record = record(vec![step(1..=990, 0, 10)]);
    let open = Some("10 arrivals were due and were never started");
    assert_judged(
        &record,
        &[
            // The 505th of 1,010 that were due: 10 failed, and 10 were dropped.
            ("p50<506ms", true, None),
            ("p50<505ms", false, None),
            ("p50{ok}<497ms", true, None),
            ("p50{ok}<495ms", false, None),
            ("p98<=1s", true, None),
            ("p99<=1s", false, None),
            ("min==1ms", true, None),
            ("max!=990ms", false, None),
            ("max>=990ms", true, None),
            ("max>990ms", false, None),
            ("mean<=495500us", true, None),
            ("mean<495500us", false, None),
            ("stdev>280ms", true, None),
            ("service_time.max<=495ms", true, None),
            ("start_lag.p99==0ms", true, None),
            ("failed_response_time.max<=1ms", true, None),
            // 10 of 1,000 ended, and nobody knows how those that were dropped would have.
            ("error_rate<=1%", false, open),
            ("error_rate<2%", true, None),
            ("error_rate<1%", false, None),
            ("error_rate>0.999999%", true, None),
            ("timeout_rate==0", false, open),
            ("errors<=1%", false, open),
            ("errors<1%", false, None),
            ("errors==10", false, open),
            ("failed<=20", true, None),
            ("status_5xx<10", false, None),
            ("status_5xx<1.1%", false, open),
            ("ok>989", true, None),
            ("started<1000", false, None),
            ("dropped<=10", true, None),
            ("dropped<1%", true, None),
            ("dropped<0.99%", false, None),
            ("bytes_received==99kB", true, None),
            // 1,000 responses in 10 s, of 1,010 that were due.
            ("rate>=100", true, None),
            ("rate>100/s", false, None),
            ("rate==6000/m", true, None),
            ("rate>=0.99*target", true, None),
            ("rate>=0.991*target", false, None),
        ],
    );
    let observed = |value, unit| Some(Observed { value, unit, at_least: false });
    assert_eq!(judged(&record, spec("error_rate<1%")).observed, observed(1.0, Unit::Percent));
    assert_eq!(judged(&record, spec("rate<1")).observed, observed(100.0, Unit::PerSecond));
    assert_eq!(judged(&record, spec("max<1s")).observed, observed(990e6, Unit::Nanos));
}

/// `failed_by_answers` is set if a limit of errors is broken even when every failure that the target did not
/// answer counts as a success.
#[test]
fn answers_alone_may_break_a_limit_of_errors() {
    // 970 good, 20 × 500, 10 timeouts.
    let record = record(vec![step(1..=970, 10, 20)]);
    for (text, passed, by_answers) in [
        ("error_rate<2%", false, true),
        ("error_rate<=2%", false, false),
        ("error_rate<1%", false, true),
        ("error_rate<=5%", true, false),
        ("failed<20", false, true),
        ("failed<=19", false, true),
        ("failed==0", false, true),
        ("failed==21", false, false),
        ("failed>20", false, false),
        ("failed!=20", false, false),
        ("status_5xx<2%", false, true),
        ("status_5xx==0", false, true),
        ("ok>98%", false, true),
        ("ok>=98%", false, false),
        ("ok>=1000", false, false),
        ("timeout_rate<1%", false, false),
        ("timed_out==0", false, false),
        ("p50<1ms", false, false),
        ("rate>1000", false, false),
    ] {
        let result = judged(&record, spec(text));
        assert_eq!((result.passed, result.failed_by_answers), (passed, by_answers), "{text}");
    }
    let nothing = judged(&self::record(vec![StepRecord::default()]), spec("error_rate<1%"));
    assert!(!nothing.passed && !nothing.failed_by_answers, "{nothing:?}");
    // A reset is not an answer: a generator that stood still may have met a peer that gave up.
    let mut reset = step(1..=970, 0, 0);
    (reset.failed, reset.errors[ErrorClass::Reset]) = (30, 30);
    assert!(!judged(&self::record(vec![reset]), spec("error_rate<1%")).failed_by_answers);
}

#[test]
fn errors_are_failed_and_timed_out_requests() {
    let mut record = record(vec![step(1..=90, 4, 6)]);
    record.accounting.dropped = 0;
    assert_judged(
        &record,
        &[("errors==10", true, None), ("errors<=10%", true, None), ("failed==6", true, None)],
    );
    let (share, rate) = (judged(&record, spec("errors<5%")), judged(&record, spec("error_rate<5%")));
    assert_eq!((share.passed, share.observed), (rate.passed, rate.observed));
}

/// Symptom: `errors<0.1%` held where a frozen server had held all connections, and half of the arrivals were
/// never started. Nobody knows how those would have ended.
#[test]
fn arrivals_that_never_started_keep_a_limit_of_errors_open() {
    let mut half = record(vec![step(1..=996, 0, 4)]);
    (half.accounting.never_started, half.accounting.dropped) = (1_000, 0);
    let open = Some("1,000 arrivals were due and were never started");
    assert_judged(
        &half,
        &[
            ("errors<1%", false, open),
            ("error_rate<1%", false, open),
            ("timeout_rate<1%", false, open),
            ("failed<10", false, open),
            ("status_5xx<1%", false, open),
            ("ok>99%", false, open),
            // They hold whatever would have become of them.
            ("errors<51%", true, None),
            ("errors<1100", true, None),
            ("ok>=996", true, None),
            ("errors>0.1%", true, None),
            // Those that did start show that it does not hold.
            ("errors<0.4%", false, None),
            ("failed<4", false, None),
        ],
    );
    // Dropped ones are no others, and those without data were not due.
    (half.accounting.never_started, half.accounting.dropped) = (0, 1);
    assert_judged(
        &half,
        &[("errors<0.5%", true, None), ("errors<=4", false, Some("1 arrival was due and was never started"))],
    );
    (half.accounting.never_started, half.accounting.without_data, half.accounting.dropped) = (9, 9, 0);
    assert_judged(&half, &[("errors<=4", true, None)]);
}

#[test]
fn without_data_a_threshold_is_not_met() {
    let nothing = Some("no data");
    assert_judged(
        &record(vec![StepRecord::default()]),
        &[
            // 10 were dropped, which is too many of 299.
            ("p99<10ms", false, None),
            ("p99{ok}<10ms", false, nothing),
            ("max<10ms", false, nothing),
            ("error_rate<1%", false, nothing),
            ("failed==0", false, nothing),
            ("status_5xx<1%", false, nothing),
            ("checks==0", false, nothing),
            ("rate<10", false, nothing),
        ],
    );
    // And 10 that were dropped.
    let record = record(vec![step(1..=288, 0, 0)]);
    assert_judged(
        &record,
        &[
            ("p95<1s", true, None),
            // 10 were never answered, which is too many of 299.
            ("p99<1s", false, None),
            ("p99>1ms", false, Some("needs 299 samples, has 298: at this rate 11s would do")),
            ("p99{ok}<1s", false, Some("needs 299 samples, has 288: at this rate 11s would do")),
            ("connect_time.p99<1s", false, nothing),
            ("failed_response_time.p50<1s", false, nothing),
        ],
    );
}

#[test]
fn timeouts_are_lower_bounds_and_never_show_that_something_was_fast() {
    // 1 to 980 ms, and 20 that took at least 980.
    let record = record(vec![step(1..=980, 20, 0)]);
    let may = Some("20 requests without an answer may have taken longer");
    assert_judged(
        &record,
        &[
            ("p95<1s", true, None),
            ("p99<1s", false, may),
            ("p99<500ms", false, None),
            ("p99<=500ms", false, None),
            ("p99==500ms", false, None),
            ("p99==2s", false, may),
            ("p99>500ms", true, None),
            ("p99>=500ms", true, None),
            ("p99!=500ms", true, None),
            ("p99>2s", false, may),
            ("p99!=2s", false, may),
            ("mean<1s", false, may),
            ("mean<1ms", false, None),
            ("max<2s", false, may),
            ("min<2ms", true, None),
            ("stdev<10s", false, Some("20 requests without an answer have no exact time")),
            // They were not even sent.
            ("service_time.p99<1s", false, may),
            ("service_time.p99{ok}<1s", true, None),
            ("timeout_rate<=2%", false, Some("10 arrivals were due and were never started")),
            ("timeout_rate<3%", true, None),
        ],
    );
    assert!(judged(&record, spec("p99<1s")).observed.is_some_and(|observed| observed.at_least));
}

#[test]
fn a_scenario_and_a_step_are_judged_alone() {
    let record = record(vec![step(1..=1, 0, 0), step(10..=10, 0, 9), step(100..=100, 0, 0)]);
    for (scenario, step, text, passed) in [
        (None, None, "max<100ms", false),
        (Some("buy"), None, "max<100ms", true),
        (Some("buy"), None, "max<10ms", false),
        (Some("look"), None, "failed==0", true),
        (None, Some("login"), "min<=1ms", true),
        (None, Some("login"), "max<100ms", false),
        (Some("buy"), Some("login"), "max<=1ms", true),
        (Some("buy"), Some("pay"), "error_rate<90%", false),
    ] {
        let spec = ThresholdSpec {
            scenario: scenario.map(str::to_owned),
            step: step.map(str::to_owned),
            ..spec(text)
        };
        assert_eq!(judged(&record, spec).passed, passed, "{scenario:?} {step:?} {text}");
    }
}

#[test]
fn what_is_not_known_in_a_part_or_a_window_is_refused() {
    let interval = Nanos::from_secs(1);
    let check = |change: fn(&mut ThresholdSpec), text: &str| {
        let mut spec = spec(text);
        change(&mut spec);
        spec.check(&outline(), interval).map_err(|error| error.message)
    };
    let window = |spec: &mut ThresholdSpec| spec.window = Some(Nanos::from_secs(5));
    let abort = |spec: &mut ThresholdSpec| spec.abort_on_fail = true;
    let part = |spec: &mut ThresholdSpec| spec.scenario = Some("buy".to_owned());
    for text in ["p99<1s", "failed==0", "error_rate<1%", "rate>5", "checks==0", "bytes_sent>5"] {
        assert_eq!(check(window, text), Ok(()), "{text}");
        assert_eq!(check(abort, text), Ok(()), "{text}");
        assert_eq!(check(part, text), Ok(()), "{text}");
    }
    for text in ["service_time.p99<1s", "start_lag.max<1s", "dropped==0", "rate>=0.9*target"] {
        assert_eq!(check(|_| {}, text), Ok(()), "{text}");
        assert_eq!(check(window, text), Err(format!("`{text}` is known over the whole run only")));
        assert_eq!(check(abort, text), Err(format!("`{text}` is known at the end only")));
    }
    for text in ["connect_time.p99<1s", "dropped==0", "rate>=0.9*target"] {
        assert_eq!(check(part, text), Err(format!("`{text}` is known of the whole run only")));
    }
    let wrong = check(|spec| spec.window = Some(Nanos::from_millis(1_500)), "p99<1s");
    assert_eq!(wrong, Err("a window of 1.50 s is not made of intervals of 1.00 s".to_owned()));
    let wrong = check(|spec| spec.step = Some("paid".to_owned()), "p99<1s");
    assert_eq!(wrong, Err("there is no step \"paid\"".to_owned()));
    let wrong = check(|spec| spec.scenario = Some("sell".to_owned()), "p99<1s");
    assert_eq!(wrong, Err("there is no scenario \"sell\"".to_owned()));
}

/// One second in which this many requests ended well, and this many failed.
fn second(number: u64, ok: u64, failed: u64) -> Interval {
    let length = Nanos::from_secs(1);
    let tally = Tally { started: ok + failed, ok, failed, completed: ok, ..Tally::default() };
    Interval { at: length * number, length, steps: vec![tally], ..Interval::default() }
}

#[test]
fn the_run_ends_when_a_threshold_is_shown_to_fail_and_not_before() {
    let abort = |text: &str, delay: u64| ThresholdSpec {
        abort_on_fail: true,
        delay: Nanos::from_secs(delay),
        ..spec(text)
    };
    let outline = Outline { steps: vec!["only".to_owned()], ..Outline::default() };
    for (spec, seconds, ends) in [
        // Over the run so far: 1 of 100, then 2 of 200, then 6 of 300.
        (abort("error_rate<=1%", 0), vec![(99, 1), (99, 1), (96, 4)], Some(3)),
        (abort("error_rate<=1%", 5), vec![(0, 9), (0, 9), (0, 9), (0, 9), (0, 9)], Some(5)),
        // Only more load can reach the limit.
        (abort("ok>=1000", 0), vec![(10, 0), (10, 0)], None),
        (abort("failed<3", 0), vec![(9, 2), (9, 0), (9, 1)], Some(3)),
        // No request ended, which shows nothing.
        (abort("error_rate<=1%", 0), vec![(0, 0), (0, 0)], None),
        (abort("p99<1s", 0), vec![(10, 0), (10, 0)], None),
    ] {
        let mut watch = ThresholdWatch::new(std::slice::from_ref(&spec), &outline, Nanos::from_secs(1));
        let ended =
            (1..).zip(&seconds).find(|(number, (ok, failed))| watch.look(&mut second(*number, *ok, *failed)));
        assert_eq!(ended.map(|(number, _)| number), ends, "{spec}");
        assert_eq!(watch.ended_by().is_some(), ends.is_some());
        let result = watch.finish(&record(vec![step(1..=500, 0, 0)])).swap_remove(0);
        assert_eq!(result.ended_run, ends.is_some(), "{spec}");
        // A threshold that ended the run has failed, whatever the drain made of its figure.
        assert!(!result.ended_run || !result.passed, "{spec}");
    }
}

/// A percentile of what was due is not reached where more requests than it leaves out failed, were dropped or
/// never started, however fast; of the good answers, and of all that ended, it is a value.
#[test]
fn a_percentile_is_of_what_was_due() {
    // 980 good ones of 1 to 980 ms, 20 of 1 ms that failed, and 10 that were dropped.
    let mut all = record(vec![step(1..=980, 0, 20)]);
    for (text, passed) in [
        ("p97<1s", true),
        ("p98<1s", false),
        ("p99<1h", false),
        ("p99{due}<1h", false),
        ("p99>=1h", true),
        ("p99{ok}<972ms", true),
        ("p99{ok}<971ms", false),
        // 990 of 1,000: the failures are fast.
        ("p99{all}<972ms", true),
        ("p99{all}<969ms", false),
        ("p2{all}<1100us", true),
        ("mean{all}<482ms", true),
        ("mean{all}>480ms", true),
        ("mean>490ms", true),
        ("max{all}<=980ms", true),
        ("service_time.p99<1h", false),
        ("service_time.p99{ok}<490ms", true),
    ] {
        let result = judged(&all, spec(text));
        assert_eq!((result.passed, &result.reason), (passed, &None), "{text}: {result:?}");
    }
    let unreached = judged(&all, spec("p99<1h"));
    assert_eq!(unreached.observed, None);
    assert_eq!(
        unreached.unreached.as_deref(),
        Some("not reached: 2.0 % failed, 1.0 % dropped (p99{ok}: 972 ms)")
    );
    assert!(unreached.failed_by_answers, "20 of 1,010 are answers of the target");
    assert!(!judged(&all, spec("p98<1s")).failed_by_answers, "the dropped ones decide");
    assert_eq!(judged(&all, spec("p97<1s")).unreached, None);

    // A step has no dropped arrivals.
    let of_step = ThresholdSpec { step: Some("login".to_owned()), ..spec("p98<1s") };
    assert!(judged(&all, of_step).passed);
    all.accounting.never_started = 40;
    let never = judged(&all, spec("p95<1s"));
    assert_eq!(
        never.unreached.as_deref(),
        Some("not reached: 1.9 % failed, 1.0 % dropped, 3.8 % never started (p95{ok}: 931 ms)")
    );
    // Without data nothing was due.
    all.accounting.without_data = 40;
    assert!(judged(&all, spec("p97<1s")).passed);
    let few = record(vec![step(1..=20, 0, 20)]);
    assert_judged(&few, &[("p99<1h", false, None), ("p50<1h", false, None)]);
}

/// Symptom: a run of 50 requests of 4 ms failed by `p95<200ms`, as if they had been slow, for want of 9 more.
/// Of few samples a percentile is shown not to hold where 9 more could not change that.
#[test]
fn too_few_samples_show_a_failure_only_where_more_could_not_undo_it() {
    let times = |slow: u64, good: u64| {
        let mut step = failures(0);
        for ms in std::iter::repeat_n(4, good as usize).chain(std::iter::repeat_n(900, slow as usize)) {
            step.ok += 1;
            step.response_time.record(ms * MS);
            step.service_time.record(ms * MS);
            step.start_lag.record(0);
        }
        step
    };
    let few = "needs 59 samples, has 50: at this rate 12s would do";
    for model in [Model::Open, Model::Closed] {
        let made = |step: StepRecord| {
            let mut record = record(vec![step]);
            (record.model, record.accounting.dropped, record.accounting.scheduled) = (model, 0, 50);
            record
        };
        for (step, text, shown, reason) in [
            (times(0, 50), "p95<200ms", false, Some(few)),
            (times(2, 48), "p95<200ms", false, Some(few)),
            // Three of 59 are slow at least.
            (times(3, 47), "p95<200ms", true, None),
            (times(50, 0), "p95<200ms", true, None),
            (times(3, 0), "p95<200ms", true, None),
            (times(2, 0), "p95<200ms", false, Some("needs 59 samples, has 2: at this rate 295s would do")),
            (times(3, 47), "p95<=900ms", false, Some(few)),
            (times(3, 47), "p95{ok}<200ms", true, None),
            (times(3, 47), "service_time.p95<200ms", true, None),
            // Nine more may be slower than all of these, and then the 57th of 59 is.
            (times(0, 50), "p95>200ms", false, Some(few)),
            (times(0, 4), "p50>200ms", true, None),
            (times(0, 2), "p50>200ms", false, Some("needs 5 samples, has 2: at this rate 25s would do")),
            (times(0, 50), "p95==4ms", false, Some(few)),
            (times(0, 50), "p95!=4ms", false, Some(few)),
            // Failures and timeouts count as slow, and a timeout may be slower than it seems.
            (step(1..=40, 0, 10), "p95<200ms", true, None),
            (step(1..=48, 0, 2), "p95<200ms", false, Some(few)),
            (step(1..=40, 10, 0), "p95<30ms", true, None),
            (step(1..=3, 1, 0), "p50>1s", false, Some("needs 5 samples, has 4: at this rate 13s would do")),
            (failures(3), "p95<200ms", true, None),
            (failures(2), "p95<200ms", false, Some("no data")),
            // Other figures need no number of samples.
            (times(0, 50), "max<1ms", true, None),
            (times(0, 1), "mean<1ms", true, None),
            (times(0, 1), "error_rate>1%", true, None),
            (failures(0), "error_rate<1%", false, Some("no data")),
        ] {
            let result = judged(&made(step), spec(text));
            let said = (result.passed, result.is_shown(), result.reason.as_deref());
            assert_eq!(said, (false, shown, reason), "{text} {model:?}: {result:?}");
        }
        for text in ["max<5ms", "mean<5ms", "min>1ms", "error_rate<1%", "ok==50", "p90<5ms"] {
            assert!(judged(&made(times(0, 50)), spec(text)).passed, "{text}");
        }
        assert!(judged(&made(times(0, 59)), spec("p95<200ms")).passed);
        let least = judged(&made(times(3, 47)), spec("p95<200ms")).observed;
        assert!(least.is_some_and(|least| least.at_least && least.unit == Unit::Nanos), "{least:?}");
    }
}

/// A threshold that may end the run waits for the samples that it needs.
#[test]
fn a_few_slow_requests_at_the_start_do_not_end_a_run() {
    let abort = ThresholdSpec { abort_on_fail: true, ..spec("p99<1s") };
    let outline = Outline { steps: vec!["only".to_owned()], ..Outline::default() };
    let mut watch = ThresholdWatch::new(&[abort], &outline, Nanos::from_secs(1));
    let mut slow = second(1, 50, 0);
    for (ms, count) in [(2_000, 3), (1, 47)] {
        slow.steps[0].response_time.merge(&Delta::of(ms * MS, count));
    }
    slow.steps[0].limits = Some((MS, 2_000 * MS));
    assert!(!watch.look(&mut slow));
    assert_eq!(slow.thresholds_failed, 0);
}

/// A request that still waits, or waited for less than the fastest answer took, holds no percentile of what
/// was due.
#[test]
fn a_percentile_of_what_was_due_holds_whatever_becomes_of_who_waits() {
    let mut waiting = record(vec![step(1..=985, 0, 0)]);
    for _ in 0..15 {
        waiting.total.start_lag.record(0);
    }
    waiting.accounting.started += 15;
    waiting.accounting.scheduled += 5;
    waiting.accounting.dropped = 0;
    for (text, passed, open) in [
        ("p97<1s", true, false),
        ("p99<1s", false, true),
        ("p99{ok}<1s", true, false),
        ("p99>1ms", true, false),
    ] {
        let result = judged(&waiting, spec(text));
        assert_eq!((result.passed, result.reason.is_some()), (passed, open), "{text}: {result:?}");
    }
}

/// A sum of tallies has the same figures of all that ended as the record of the run.
#[test]
fn windows_know_the_times_of_failures() {
    let outline = outline();
    let texts = ["p50{all}<40ms", "p99{all}<300ms", "mean{all}<60ms", "p95<1h", "p60<1h", "p90{ok}<11ms"];
    let specs = texts.map(|text| ThresholdSpec { window: Some(Nanos::from_secs(1)), ..spec(text) });
    let mut watch = ThresholdWatch::new(&specs, &outline, Nanos::from_secs(1));
    let mut recorder = plimsoll_metrics::Recorder::new(&outline.steps);
    for number in 0..1_000_u64 {
        let failed = number % 4 == 0;
        let outcome = match failed {
            true => plimsoll_core::Outcome::Failed(ErrorClass::Status5xx),
            false => plimsoll_core::Outcome::Ok,
        };
        recorder.note_started(0);
        recorder.record(&plimsoll_metrics::Sample {
            step: 0,
            intended: Nanos(0),
            started: Nanos(0),
            sent: Nanos(0),
            first_byte: Nanos(5 * MS),
            done: Nanos(if failed { 200 * MS } else { 10 * MS }),
            outcome,
            status: if failed { 500 } else { 200 },
            bytes_sent: 1,
            bytes_received: 1,
        });
    }
    let snapshot =
        recorder.snapshot(plimsoll_metrics::Gauges { at: Nanos::from_secs(1), ..Default::default() });
    let second = Nanos::from_secs(1);
    let mut interval = Interval { at: second, length: second, steps: snapshot.steps, ..Interval::default() };
    watch.look(&mut interval);
    let results = watch.finish(&RunRecord::empty(Model::Open));
    let seen: Vec<_> = results.iter().map(|one| (one.passed, one.reason.clone())).collect();
    assert_eq!(
        seen,
        [(true, None), (true, None), (true, None), (false, None), (true, None), (true, None)],
        "{results:?}"
    );
    assert_eq!(results[3].unreached.as_deref(), Some("not reached: 25.0 % failed (p95{ok}: 10.0 ms)"));
}

/// Counts of a file need not fit together.
#[test]
fn a_file_with_more_requests_since_the_warm_up_than_there_were_is_judged() {
    let mut broken = record(vec![step(1..=980, 0, 20)]);
    broken.accounting.since_warmup = u64::MAX;
    broken.paces_requests = true;
    assert_judged(&broken, &[("rate>=0.99*target", false, Some("there is no target rate"))]);
    assert_eq!((broken.arrivals(), broken.started_arrivals()), (0, 0));
}

/// Symptom: `5.1875 %` beside shares of `5.0 %`.
#[test]
fn shares_have_one_digit_unless_they_would_read_as_their_limit() {
    let text = |value: f64, threshold: &str| {
        let observed = Observed { value, unit: Unit::Percent, at_least: false };
        observed.beside(spec(threshold).threshold.limit)
    };
    assert_eq!(text(5.1875, "error_rate<5%"), "5.2 %");
    assert_eq!(text(5.0, "error_rate<5%"), "5.0 %");
    assert_eq!(text(5.02, "error_rate<5%"), "5.02 %");
    assert_eq!(text(4.9996, "error_rate<0.05"), "4.9996 %");
    assert_eq!(text(0.0213, "error_rate<0.05%"), "0.02 %");
    assert_eq!(text(0.0, "error_rate<0.05%"), "0.0 %");
    assert_eq!(text(100.0, "error_rate<1%"), "100.0 %");
}
