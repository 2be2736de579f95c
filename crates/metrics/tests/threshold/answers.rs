//! Thresholds on queries: every kind of answer against a limit.

use plimsoll_core::Nanos;
use plimsoll_metrics::threshold::{Answer, SeriesValue};
use plimsoll_metrics::{
    Model, Outline, RunRecord, ScenarioOutline, Threshold, ThresholdFacts, ThresholdResult, ThresholdSpec,
    judge_thresholds,
};

fn asked(text: &str) -> ThresholdResult {
    let spec = ThresholdSpec::new(Threshold::parse(text).expect("it is a threshold"));
    judge_thresholds(&[spec], &Outline::default(), &RunRecord::empty(Model::Open))
        .pop()
        .expect("one was judged")
}

/// Series `up{job="0"}`, `up{job="1"}` and so on with these values.
fn answer(values: &[&str]) -> Answer {
    let series = values.iter().enumerate().map(|(number, text)| SeriesValue {
        labels: [("__name__", "up".to_owned()), ("job", number.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        text: (*text).to_owned(),
        value: text.parse().expect("a number"),
    });
    Answer { series: series.collect(), warning: None }
}

#[test]
fn every_series_has_to_hold_and_what_has_no_number_shows_nothing() {
    let warned = |values: &[&str]| Answer { warning: Some("a shard is away".to_owned()), ..answer(values) };
    let (holds, fails, open) = ((true, false), (false, true), (false, false));
    for (threshold, answer, expected, seen) in [
        ("prom(x)<1", answer(&["0.5"]), holds, "0.5 of up{job=\"0\"}"),
        ("prom(x)<1", answer(&["0.25", "0.5", "-7"]), holds, "0.5 of up{job=\"1\"}, the worst of 3 series"),
        (
            "prom(x)<1",
            answer(&["0", "16.933333333333334", "1"]),
            fails,
            "16.9333 of up{job=\"1\"}, the worst of 3 series",
        ),
        ("prom(x)<1", answer(&["1"]), fails, "1 of up{job=\"0\"}"),
        ("prom(x)<=1", answer(&["1"]), holds, "1 of up{job=\"0\"}"),
        ("prom(x)>1", answer(&["2", "0.5"]), fails, "0.5 of up{job=\"1\"}, the worst of 2 series"),
        ("prom(x)>=1", answer(&["2", "1.5"]), holds, "1.5 of up{job=\"1\"}, the worst of 2 series"),
        ("prom(x)==1", answer(&["1", "1"]), holds, "1 of up{job=\"1\"}, the worst of 2 series"),
        ("prom(x)==1", answer(&["1", "3", "0"]), fails, "3 of up{job=\"1\"}, the worst of 3 series"),
        ("prom(x)!=1", answer(&["5", "1"]), fails, "1 of up{job=\"1\"}, the worst of 2 series"),
        ("prom(x)<1", answer(&["+Inf", "0"]), fails, "+Inf of up{job=\"0\"}, the worst of 2 series"),
        ("prom(x)>1", answer(&["+Inf"]), holds, "+Inf of up{job=\"0\"}"),
        ("prom(x)>1", answer(&["-Inf"]), fails, "-Inf of up{job=\"0\"}"),
        ("prom(x)<1", answer(&[]), open, "the query has no series: the answer is empty"),
        ("prom(x)<1", answer(&["NaN"]), open, "the value of up{job=\"0\"} is NaN, no number"),
        (
            "prom(x)!=1",
            answer(&["NaN", "5"]),
            open,
            "5 of up{job=\"1\"}, the worst of 2 series, the value of up{job=\"0\"} is NaN, no number",
        ),
        // A fact is a fact, whatever is missing beside it.
        ("prom(x)<1", answer(&["NaN", "5"]), fails, "5 of up{job=\"1\"}, the worst of 2 series"),
        ("prom(x)<1", warned(&["0"]), open, "0 of up{job=\"0\"}, the server warns: a shard is away"),
        ("prom(x)<1", warned(&["2"]), fails, "2 of up{job=\"0\"}"),
    ] {
        let mut result = asked(threshold);
        assert!(!result.passed && !result.is_shown(), "{threshold}: it was not asked yet");
        result.answer(Ok(&answer));
        let found = ((result.passed, result.is_shown()), &*ThresholdFacts::of(&result).seen);
        assert_eq!(found, (expected, seen), "{threshold}: {answer:?}");
    }
}

#[test]
fn a_single_number_has_no_series_and_no_answer_has_a_reason() {
    let mut result = asked("prom(scalar(up))<1");
    let number = SeriesValue { labels: [].into(), text: "1e-9".to_owned(), value: 1e-9 };
    result.answer(Ok(&Answer { series: vec![number], warning: None }));
    assert_eq!((result.passed, &*ThresholdFacts::of(&result).seen), (true, "1e-9"));
    result.answer(Err("the server answered 502"));
    assert!(!result.passed && !result.is_shown(), "{result:?}");
    assert_eq!(ThresholdFacts::of(&result).seen, "the server answered 502");
    assert_eq!((result.observed, result.series), (None, None));
    // A figure of the run is no server's.
    let mut own = asked("p99<1s");
    own.answer(Ok(&answer(&["0"])));
    assert!(!own.passed, "{own:?}");
}

#[test]
fn labels_are_bounded() {
    let long = "\u{e9}".repeat(1_000);
    let labels = (0..100).map(|number| (format!("{number:03}{long}"), long.clone())).collect();
    let mut result = asked("prom(x)<1");
    let series = vec![SeriesValue { labels, text: "0".to_owned(), value: 0.0 }];
    result.answer(Ok(&Answer { series, warning: None }));
    let series = result.series.expect("it has one");
    assert_eq!(series.labels.len(), 32);
    let longest = series.labels.iter().map(|(name, value)| name.chars().count().max(value.chars().count()));
    assert_eq!(longest.max(), Some(129));
}

#[test]
fn a_query_is_about_the_whole_run() {
    let outline = Outline {
        scenarios: vec![ScenarioOutline { name: "buy".to_owned(), steps: 0..1 }],
        steps: vec!["pay".to_owned()],
        ..Outline::default()
    };
    let whole = ThresholdSpec::new(Threshold::parse("prom(up)<1").expect("it is a threshold"));
    let name = |text: &str| Some(text.to_owned());
    for (spec, is_sound) in [
        (whole.clone(), true),
        (ThresholdSpec { abort_on_fail: true, delay: Nanos::from_secs(5), ..whole.clone() }, true),
        (ThresholdSpec { scenario: name("buy"), ..whole.clone() }, false),
        (ThresholdSpec { step: name("pay"), ..whole.clone() }, false),
        (ThresholdSpec { phase: name("peak"), ..whole.clone() }, false),
        (ThresholdSpec { window: Some(Nanos::from_secs(1)), ..whole }, false),
    ] {
        let checked = spec.check(&outline, Nanos::from_secs(1));
        assert_eq!(checked.is_ok(), is_sound, "{spec:?}: {checked:?}");
    }
}
