//! Sliding windows against a definition by brute force: every window recorded anew.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_metrics::{
    Accounting, Gauges, Interval, IntervalMerger, Model, Outline, PhaseOutline, Recorder, RunRecord, Sample,
    StepRecord, Threshold, ThresholdSpec, ThresholdWatch, judge_thresholds,
};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::from_secs(1);

fn outline() -> Outline {
    Outline { steps: vec!["a".to_owned(), "b".to_owned()], ..Outline::default() }
}

fn sample(step: u32, span: u64, kind: u8) -> Sample {
    let outcome = match kind {
        0 => Outcome::Failed(ErrorClass::Status5xx),
        1 => Outcome::TimedOut,
        _ => Outcome::Ok,
    };
    Sample {
        step,
        intended: Nanos::ZERO,
        started: Nanos::ZERO,
        sent: Nanos::ZERO,
        first_byte: Nanos::MAX,
        done: Nanos(span),
        outcome,
        status: if kind == 0 { 503 } else { 200 },
        bytes_sent: 1,
        bytes_received: 2,
    }
}

/// Records these seconds as one run.
fn recorded(seconds: &[Vec<Sample>]) -> (Vec<StepRecord>, Vec<Interval>) {
    let mut recorder = Recorder::new(&outline().steps);
    let mut merger = IntervalMerger::new(1);
    for (number, samples) in (1..).zip(seconds) {
        for sample in samples {
            recorder.note_started(sample.step);
            recorder.record(sample);
        }
        merger.add(&recorder.snapshot(Gauges { at: SECOND * number, ..Gauges::default() }));
    }
    (recorder.finish(), merger.finish())
}

fn as_record(seconds: &[Vec<Sample>]) -> RunRecord {
    let (steps, _) = recorded(seconds);
    let mut total = StepRecord::default();
    steps.iter().for_each(|step| total.merge(step));
    RunRecord {
        duration: SECOND * seconds.len() as u64,
        completed_in_window: total.completed(),
        accounting: Accounting { started: total.start_lag.count(), ..Accounting::default() },
        total,
        steps,
        backend: "simulated".into(),
        ..RunRecord::empty(Model::Closed)
    }
}

/// A span that is no nearer to a limit below than a bucket is wide, unless it is 5 ms: the largest value of a
/// window is read from its bucket, and that of a run is exact.
fn apart_from_limits(span: u64) -> u64 {
    let is_near = |limit: &u64| span.abs_diff(*limit) <= limit / 500 && span != 5_000_000;
    let limits = [2_000_000, 5_000_000, 6_000_000, 18_000_000, 20_000_000_u64];
    limits.into_iter().find(is_near).map_or(span, |limit| limit - limit / 100)
}

fn seconds() -> impl Strategy<Value = Vec<Vec<Sample>>> {
    let span = prop_oneof![1_u64..2_000, 1_000_000..20_000_000_u64, Just(5_000_000)];
    let span = span.prop_map(apart_from_limits);
    let sample = (0_u32..2, span, 0_u8..12).prop_map(|(step, span, kind)| sample(step, span, kind));
    prop::collection::vec(prop::collection::vec(sample, 0..40), 1..9)
}

proptest! {
    #[test]
    fn every_window_is_judged_as_if_it_had_been_recorded_alone(
        seconds in seconds(),
        length in 1_usize..4,
        delay in 0_usize..3,
        step in prop::option::of(prop::sample::select(&["a", "b"][..])),
        text in prop::sample::select(&[
            "p50<5ms", "p90<=18ms", "p75>2ms", "max<20ms", "min<=2us", "min>1us", "mean<6ms", "stdev<5ms",
            "error_rate<10%", "timeout_rate==0", "failed<4", "ok>=10", "status_5xx<5%", "bytes_received>40",
            "started>=20", "rate>=12/s", "rate<900/m",
        ][..]),
    ) {
        let threshold = Threshold::parse(text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let whole = ThresholdSpec { step: step.map(str::to_owned), ..ThresholdSpec::new(threshold) };
        let spec = ThresholdSpec {
            window: Some(SECOND * length as u64),
            delay: SECOND * delay as u64,
            ..whole.clone()
        };
        let (_, intervals) = recorded(&seconds);
        let mut watch = ThresholdWatch::new(&[spec], &outline(), SECOND);
        let mut expected = Vec::new();
        for (end, mut interval) in (1_usize..).zip(intervals) {
            watch.look(&mut interval);
            let Some(begin) = end.checked_sub(length).filter(|begin| *begin >= delay) else {
                prop_assert_eq!(interval.thresholds_failed, 0);
                continue;
            };
            // A rate of one step is made from intervals alone: then the window is a run of its own.
            let window = &seconds[begin..end];
            let mut alone = ThresholdWatch::new(std::slice::from_ref(&whole), &outline(), SECOND);
            for mut interval in recorded(window).1 {
                alone.look(&mut interval);
            }
            let record = as_record(window);
            let truth = if text.starts_with("rate") {
                alone.finish(&record).swap_remove(0)
            } else {
                judge_thresholds(std::slice::from_ref(&whole), &outline(), &record).swap_remove(0)
            };
            prop_assert_eq!(interval.thresholds_failed, u32::from(truth.is_shown()), "{} of {:?}", text, begin..end);
            expected.push((end, truth));
        }
        let result = watch.finish(&as_record(&seconds)).swap_remove(0);
        let windows = result.windows.expect("it has windows");
        let failed = expected.iter().filter(|(_, truth)| truth.is_shown());
        let open = expected.iter().filter(|(_, truth)| !truth.passed && !truth.is_shown());
        prop_assert_eq!(windows.judged, expected.len() as u64);
        prop_assert_eq!(windows.failed, failed.clone().count() as u64);
        prop_assert_eq!(windows.open, open.clone().count() as u64);
        let first = failed.clone().next();
        prop_assert_eq!(windows.first_failed_at, first.map(|(end, _)| SECOND * *end as u64));
        // A failure that a figure shows goes before a window that shows nothing.
        let first = first.or(open.clone().next());
        prop_assert_eq!(result.passed, !expected.is_empty() && first.is_none());
        if let Some((_, truth)) = first {
            prop_assert_eq!(result.is_shown(), truth.is_shown());
            // What would do is told of windows, and of a run of their length.
            let why = |reason: &Option<String>| {
                reason.as_ref().map(|reason| reason.split(": ").next().unwrap_or_default().to_owned())
            };
            prop_assert_eq!(why(&result.reason), why(&truth.reason));
            match (result.observed, truth.observed) {
                // The largest and smallest values of a window are read from buckets.
                (Some(seen), Some(known)) => {
                    prop_assert!((seen.value - known.value).abs() <= known.value / 1e3, "{} {}", seen, known);
                    prop_assert_eq!(seen.at_least, known.at_least);
                }
                (seen, known) => prop_assert_eq!(seen, known),
            }
        }
    }
}

#[test]
fn a_threshold_of_a_phase_is_judged_by_what_ended_in_it() {
    let phase = |name: &str, from: u64, to: u64| PhaseOutline {
        name: name.to_owned(),
        at: SECOND * from,
        length: SECOND * (to - from),
        measured: from > 0,
    };
    let phases = vec![phase("warm", 0, 1), phase("calm", 1, 3), phase("peak", 3, 5), phase("never", 5, 9)];
    let outline = Outline { phases, ..outline() };
    let spec = |text: &str, name: &str| {
        let spec = ThresholdSpec::new(Threshold::parse(text).expect("a threshold"));
        ThresholdSpec { phase: Some(name.to_owned()), ..spec }
    };
    let ms = 1_000_000;
    let specs = [
        spec("max<3ms", "calm"),
        spec("ok==40", "calm"),
        spec("rate==20/s", "calm"),
        spec("max<3ms", "peak"),
        spec("max<31ms", "peak"),
        spec("rate==10/s", "peak"),
        ThresholdSpec { window: Some(SECOND), ..spec("max<3ms", "peak") },
        spec("ok==0", "never"),
        spec("max<1s", "never"),
    ];
    for spec in &specs {
        assert_eq!(spec.check(&outline, SECOND), Ok(()), "{spec}");
    }
    let seconds: Vec<Vec<Sample>> = [(9, 9), (20, 1), (20, 2), (10, 5), (10, 2), (7, 30)]
        .map(|(count, span)| vec![sample(0, span * ms, 5); count])
        .to_vec();
    let (_, mut intervals) = recorded(&seconds);
    intervals[0].warmup = true;
    // The last one is the drain of a run that was ended in its third phase.
    intervals[5].drain = true;
    let mut watch = ThresholdWatch::new(&specs, &outline, SECOND);
    for interval in &mut intervals {
        assert!(!watch.look(interval));
    }
    let passed: Vec<bool> = watch.finish(&as_record(&seconds)).iter().map(|result| result.passed).collect();
    assert_eq!(passed, [true, true, true, false, true, true, false, false, false]);
}
