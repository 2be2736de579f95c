//! Thresholds on metrics of the plan's own.

use plimsoll_core::Nanos;
use plimsoll_metrics::{
    MetricRecord, MetricSpec, Model, Outline, RunRecord, SeriesKind, Threshold, ThresholdSpec,
    judge_thresholds,
};
use proptest::prelude::*;

fn metrics() -> Vec<MetricSpec> {
    let kinds = [("cart_total", SeriesKind::Trend), ("logins", SeriesKind::Counter)];
    let more = [("stock", SeriesKind::Gauge), ("found", SeriesKind::Rate), ("never", SeriesKind::Trend)];
    let spec = |(name, kind): (&str, _)| MetricSpec { name: name.to_owned(), kind, unit: String::new() };
    kinds.into_iter().chain(more).map(spec).collect()
}

/// Ten seconds: totals of 1 to 100, of which the even ones are of shop a; 60 logins; stock from 9 down to 5;
/// three of four found.
fn record() -> RunRecord {
    let mut metrics: Vec<_> = metrics().into_iter().map(MetricRecord::new).collect();
    let mut add = |metric: usize, text: String, tags: &[(&str, &str)], at| {
        let tags = tags.iter().map(|(name, value)| (*name, value.as_bytes()));
        metrics[metric].record(text.as_bytes(), tags, Nanos(at));
    };
    for total in 1..=100 {
        add(0, total.to_string(), &[("shop", if total % 2 == 0 { "a" } else { "b" })], total);
    }
    (0..60).for_each(|at| add(1, "1".to_owned(), &[("zone", "eu, west")], at));
    (0..5).for_each(|at| add(2, (9 - at).to_string(), &[], at));
    ["true", "1", "0", "true"].iter().for_each(|text| add(3, (*text).to_owned(), &[], 0));
    RunRecord { duration: Nanos::from_secs(10), metrics, ..RunRecord::empty(Model::Open) }
}

fn spec(text: &str) -> ThresholdSpec {
    ThresholdSpec::new(Threshold::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

#[test]
fn texts_have_one_canonical_spelling() {
    for (text, canonical) in [
        ("metric(cart_total).p95<100", "metric(cart_total).p95<100"),
        ("metric(cart_total) p95 < 100", "metric(cart_total).p95<100"),
        (" metric ( cart_total { shop : a } ) . max <= -1.50e3", "metric(cart_total{shop:a}).max<=-1500"),
        ("metric(x{b:2,a:<1>=}).count>=1", "metric(x{a:<1>=,b:2}).count>=1"),
        ("metric(logins).rate>5/s", "metric(logins).rate>5"),
        ("metric(found) rate>=99.5%", "metric(found).rate>=99.5%"),
        ("metric(x{}).p99.9!=0", "metric(x).p99.9!=0"),
    ] {
        let threshold = Threshold::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(threshold.to_string(), canonical, "{text}");
        assert_eq!(Threshold::parse(canonical), Ok(threshold.clone()), "{text}");
        assert_eq!(Threshold::of_saved(canonical), Ok(threshold), "{text}");
    }
}

#[test]
fn wrong_texts_say_what_to_write() {
    for (text, message) in [
        ("metric(cart_total)<5", "`` is not a figure of a metric"),
        ("metric(cart_total).median<5", "`median` is not a figure of a metric"),
        ("metric(cart_total).p100<5", "`p100` is not a figure of a metric"),
        ("metric(cart_total.p95<5", "`metric(cart_total.p95` is not a figure of a metric"),
        ("metric().p95<5", "`metric().p95` is not a figure of a metric"),
        ("metric(a{shop}).p95<5", "`metric(a{shop}).p95` is not a figure of a metric"),
        ("metric(a{shop:1,shop:2}).p95<5", "`metric(a{shop:1,shop:2}).p95` is not a figure of a metric"),
        ("metric(a{shop:1).p95<5", "`metric(a{shop:1).p95` is not a figure of a metric"),
        ("metric(a).p95", "`metric(a).p95` compares nothing"),
        ("metric(a).p95<", "the limit is missing"),
        ("metric(a).p95<NaN", "`NaN` is not a limit for metric(a).p95"),
        ("metric(a).p95<inf", "`inf` is not a limit for metric(a).p95"),
        ("metric(a).p95<5ms", "`5ms` is not a limit for metric(a).p95"),
        ("metric(a).sum<5%", "`5%` is not a limit for metric(a).sum"),
        ("metric(a).rate<101%", "`101%` is not a limit for metric(a).rate"),
    ] {
        let error = Threshold::parse(text).expect_err(text);
        assert_eq!(error.message, message, "{text}");
        assert!(error.hint.contains("write"), "{text}: {}", error.hint);
    }
}

#[test]
fn figures_are_compared() {
    let record = record();
    let outline = Outline { metrics: metrics(), ..Outline::default() };
    for (text, passed, reason) in [
        ("metric(cart_total).p95<=95.05", true, None),
        ("metric(cart_total).p95<95", false, None),
        ("metric(cart_total).max==100", true, None),
        ("metric(cart_total).min>1", false, None),
        ("metric(cart_total).mean==50.5", true, None),
        ("metric(cart_total).stdev>28", true, None),
        ("metric(cart_total).count==100", true, None),
        ("metric(cart_total{shop:a}).max==100", true, None),
        ("metric(cart_total{shop:b}).max<100", true, None),
        ("metric(cart_total{shop:b}).count==50", true, None),
        ("metric(cart_total{shop:c}).max<100", false, Some("no data")),
        ("metric(cart_total).p99<101", false, Some("needs 299 samples, has 100: at this rate 30s would do")),
        ("metric(never).p50<5", false, Some("no data")),
        ("metric(logins).sum==60", true, None),
        ("metric(logins).rate==6", true, None),
        ("metric(logins).rate>6/s", false, None),
        // Nothing to count is a count of 0.
        ("metric(logins{zone:us}).sum==0", true, None),
        ("metric(stock).last==5", true, None),
        ("metric(stock).max<9", false, None),
        ("metric(found).rate>=75%", true, None),
        ("metric(found).rate>0.75", false, None),
        ("metric(missing).sum==0", false, Some("no data")),
    ] {
        let result = judge_thresholds(&[spec(text)], &outline, &record).swap_remove(0);
        assert_eq!((result.passed, result.reason.as_deref()), (passed, reason), "{text}: {result:?}");
    }
}

#[test]
fn what_a_metric_does_not_have_is_refused_before_the_run() {
    let outline = Outline { metrics: metrics(), steps: vec!["step".to_owned()], ..Outline::default() };
    let interval = Nanos::from_secs(1);
    for (text, message, hint) in [
        ("metric(cart_totl).p95<5", "there is no metric `cart_totl`", "did you mean `cart_total`?"),
        ("metric(x).p95<5", "there is no metric `x`", "write one of cart_total, logins, stock, found, never"),
        (
            "metric(logins).p95<5",
            "`logins` is a counter, which has no p95",
            "a counter has count, sum and rate (per second)",
        ),
        (
            "metric(found).sum<5",
            "`found` is a rate, which has no sum",
            "a rate has count and rate (the share that is true)",
        ),
        (
            "metric(logins).rate<5%",
            "`logins` is a counter, and no share",
            "write a number per second, such as 5",
        ),
    ] {
        let error = spec(text).check(&outline, interval).expect_err(text);
        assert_eq!((error.message.as_str(), error.hint.as_str()), (message, hint), "{text}");
    }
    let whole = spec("metric(cart_total).p95<5");
    assert!(whole.check(&outline, interval).is_ok());
    for part in [
        ThresholdSpec { step: Some("step".to_owned()), ..whole.clone() },
        ThresholdSpec { window: Some(interval), ..whole.clone() },
        ThresholdSpec { abort_on_fail: true, ..whole.clone() },
    ] {
        assert!(part.check(&outline, interval).is_err(), "{part:?}");
    }
}

proptest! {
    /// Whatever is written, nothing panics, and what is accepted is printed so that it is read again.
    #[test]
    fn any_text(
        inside in "[a-z{}(),:<=.%0-9 ]{0,30}",
        behind in "[.a-z0-9]{0,6}",
        limit in "[-0-9e.%/s]{0,8}",
    ) {
        if let Ok(threshold) = Threshold::parse(&format!("metric({inside}){behind}<{limit}")) {
            prop_assert_eq!(Threshold::parse(&threshold.to_string()), Ok(threshold));
        }
    }
}
