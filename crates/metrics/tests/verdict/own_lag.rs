//! Thresholds that a healthy server misses only for the generator's own start lag.

use plimsoll_core::Nanos;
use plimsoll_metrics::{
    Headline, LimitedBy, Model, Objective, Outline, RunFacts, RunOutcome, RunRecord, Threshold,
    ThresholdSpec, judge, judge_thresholds,
};

use super::{codes, filled, good, ms, us};

/// The record with its thresholds and verdict, as the engine leaves it.
fn judged(mut record: RunRecord, thresholds: &[&str]) -> RunRecord {
    let spec = |text: &&str| ThresholdSpec::new(Threshold::parse(text).expect("a threshold"));
    let specs: Vec<_> = thresholds.iter().map(spec).collect();
    record.thresholds = judge_thresholds(&specs, &Outline::default(), &record);
    record.verdict = judge(&record);
    record
}

fn outcome(record: &RunRecord) -> (RunOutcome, bool) {
    (Headline::of(&RunFacts::of(record)).outcome, record.verdict.valid)
}

/// A server that needs 100 µs, of which a generator that is late for 2 % of the requests makes 2.46 ms.
fn lagging() -> RunRecord {
    let mut record = good(Model::Open);
    record.total.service_time = filled(&[(us(100), 9_950), (us(147), 50)]);
    record.total.start_lag = filled(&[(us(10), 9_800), (us(2_360), 200)]);
    record.total.response_time = filled(&[(us(110), 9_800), (us(2_460), 200)]);
    record
}

#[test]
fn a_healthy_server_does_not_fail_for_our_own_lag() {
    assert_eq!(codes(&lagging()), "valid, warns start_lag");
    let record = judged(lagging(), &["p99<1ms"]);
    assert_eq!(codes(&record), "start_lag");
    let reason = &record.verdict.reasons[0].evidence;
    for part in ["p99<1ms fails by the generator's own lag", "p99 of the start lag 2.36 ms", "100 µs"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(record.verdict.limited_by.what, LimitedBy::Generator);
    let headline = Headline::of(&RunFacts::of(&record));
    assert_eq!(headline.outcome, RunOutcome::NoVerdict);
    assert!(headline.summary.starts_with("p99<1ms is not judged: 2.46 ms"), "{}", headline.summary);
    assert_eq!(headline.validity, "measurement INVALID: start lag · limited by the generator");
    // The verdict of a run that goes on does not know its thresholds, and the words are the same.
    let live = RunFacts { is_over: false, ..RunFacts::with_verdict(&record, &judge(&lagging())) };
    assert!(live.valid);
    assert_eq!(Headline::of(&live), headline);
    // The largest time and the mean are treated like other figures.
    for text in ["max<2ms", "mean<150us", "p99<=1ms", "p99.9<2ms"] {
        assert_eq!(outcome(&judged(lagging(), &[text])), (RunOutcome::NoVerdict, false), "{text}");
    }
    // A threshold that holds with the lag holds all the more without it.
    assert_eq!(outcome(&judged(lagging(), &["p99<3ms"])), (RunOutcome::Pass, true));
}

#[test]
fn a_limit_that_service_times_break_alone_is_broken() {
    for text in ["p99<90us", "p50<50us", "max<147us", "mean<99us"] {
        assert_eq!(outcome(&judged(lagging(), &[text])), (RunOutcome::Fail, true), "{text}");
    }
    // Beside a threshold that is broken without the lag, the failure is a result all the same.
    let both = judged(lagging(), &["p99<1ms", "p50<50us"]);
    assert_eq!(outcome(&both), (RunOutcome::Fail, true));
    let summary = Headline::of(&RunFacts::of(&both)).summary;
    assert!(summary.starts_with("p50<50us does not hold"), "{summary}");
    assert_eq!(codes(&both), "valid, warns start_lag");
    // Lower limits and limits of the lag itself are not about the server's speed.
    for text in ["p99>10ms", "start_lag.p99<1ms"] {
        assert_eq!(outcome(&judged(lagging(), &[text])), (RunOutcome::Fail, true), "{text}");
    }
}

/// The freeze: arrivals wait for connections that the server keeps, and their service times look well.
#[test]
fn a_server_that_kept_the_connections_fails() {
    let frozen = |blocked: Nanos, delayed: Nanos| {
        let mut record = lagging();
        record.workers[0].run_delay = Some(delayed);
        record.connections.blocked = blocked;
        judged(record, &["p99<1ms"])
    };
    // 2 % of the 20 s of both workers, or 200 arrivals.
    assert_eq!(outcome(&frozen(ms(400), ms(0))), (RunOutcome::Fail, true));
    assert_eq!(outcome(&frozen(ms(2), ms(0))), (RunOutcome::NoVerdict, false));
    // A generator without a processor could not have used a connection.
    assert_eq!(outcome(&frozen(ms(400), ms(399))), (RunOutcome::NoVerdict, false));
}

#[test]
fn nothing_is_called_on_time_that_was_late() {
    let evidence = judge(&lagging()).limited_by.evidence;
    assert!(evidence.contains("with a start lag of up to 2.36 ms (p99)"), "{evidence}");
    assert!(judge(&good(Model::Open)).limited_by.evidence.contains("was delivered on time"));
}

/// A search dropped trials for a start lag of 30 µs where the limit was 25 ms.
#[test]
fn a_lag_far_inside_a_limit_decides_nothing_about_it() {
    let bears = |limit: &str, lag: Nanos| {
        let spec = ThresholdSpec::new(Threshold::parse(limit).expect("a threshold"));
        let objective = Objective::new(&spec, &Outline::default()).expect("it can be searched for");
        // Only requests beyond the judged percentile may take longer.
        objective.bears(&filled(&[(lag, 9_900), (ms(100), 100)]))
    };
    assert!(bears("p99<25ms", us(31)) && bears("p99<25ms", us(2_490)));
    assert!(!bears("p99<25ms", us(2_510)) && !bears("p99.9<25ms", us(31)) && !bears("p99<300us", us(31)));
    assert!(!bears("error_rate<1%", us(31)), "its limit is not a time");
}
