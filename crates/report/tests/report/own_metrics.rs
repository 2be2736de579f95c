//! Metrics of a plan's own in every format, in saved runs and in comparisons.

use plimsoll_core::Nanos;
use plimsoll_metrics::{Interval, MetricRecord, MetricSpec, MetricSum, RunRecord, SeriesKind};
use plimsoll_report::comparison::{Comparison, Group, Member, Question};
use plimsoll_report::result::Tool;
use plimsoll_report::{Format, RunResult, SavedRun};
use serde_json::Value;

use crate::{TERMINAL, fixture, rendered};

/// Totals of two shops in steps of a quarter, of which one is no number; logins; stock; found ones. `factor`
/// multiplies all numbers.
fn metrics(factor: f64) -> Vec<MetricRecord> {
    let spec = |name: &str, kind, unit: &str| {
        MetricRecord::new(MetricSpec { name: name.to_owned(), kind, unit: unit.to_owned() })
    };
    let mut all = vec![
        spec("cart_total", SeriesKind::Trend, "EUR"),
        spec("logins", SeriesKind::Counter, ""),
        spec("stock_left", SeriesKind::Gauge, ""),
        spec("found", SeriesKind::Rate, ""),
        spec("nothing", SeriesKind::Trend, ""),
    ];
    let mut add = |metric: usize, text: &str, tags: &[(&str, &str)], at| {
        let tags = tags.iter().map(|(name, value)| (*name, value.as_bytes()));
        all[metric].record(text.as_bytes(), tags, Nanos(at));
    };
    for number in 1..=400 {
        let shop = if number % 4 == 0 { "north" } else { "south" };
        add(0, &(factor * f64::from(number) / 4.0).to_string(), &[("shop", shop)], 0);
        add(1, &factor.to_string(), &[], 0);
        add(3, if number % 10 == 0 { "false" } else { "true" }, &[], 0);
    }
    add(0, "<b>free</b> | of charge", &[], 7);
    [5, -3].iter().zip(1..).for_each(|(stock, at)| add(2, &stock.to_string(), &[], at));
    all
}

fn record(factor: f64) -> RunRecord {
    RunRecord { metrics: metrics(factor), ..fixture::quiet_record() }
}

fn result(factor: f64) -> RunResult {
    fixture::result(record(factor), &["open: 1,000/s uniform for 1 s"])
}

#[test]
fn text_and_markdown_have_a_table_for_each_kind() {
    let text = rendered(&result(1.0), Format::Text, &TERMINAL);
    let from = text.find("own metrics: trends").expect("the metrics are shown");
    let to = text.find("own metrics: rates").expect("all kinds are") + 200;
    insta::assert_snapshot!(text[from..to.min(text.len())].to_owned());
    let brief = rendered(&result(1.0), Format::Summary, &TERMINAL);
    for line in [
        "cart_total (EUR): mean 50.125, p50 50.0",
        ", max 100 of 400 values; 1 not recorded",
        "logins: sum 400, 400/s of 400 values",
        "stock_left: last -3, min -3, max 5 of 2 values",
        "found: 90.0 % true of 400 values",
    ] {
        assert!(brief.contains(line), "{line}: {brief}");
    }
    assert!(brief.contains("1 more metric") && !brief.contains("nothing:"), "{brief}");
    let markdown = rendered(&result(1.0), Format::Markdown, &TERMINAL);
    let rows: Vec<&str> = markdown.lines().filter(|line| line.contains("shop:north")).collect();
    assert_eq!(rows.len(), 1, "{markdown}");
    assert!(markdown.contains("&lt;b&gt;free") || markdown.contains("\\<b\\>free"), "{markdown}");
}

/// Every figure on the page is the value at its pointer.
#[test]
fn figures_of_the_page_lead_to_their_values() {
    let result = result(1.0);
    let json: Value = serde_json::from_str(&rendered(&result, Format::Json, &TERMINAL)).expect("JSON");
    let saved = SavedRun::new(&record(1.0), result.clone(), None);
    let page = crate::html::page_of(&[("own", &saved)]);
    assert!(!page.contains("<b>free"), "texts of servers are escaped");
    let pointers = page.split("data-of=\"/metrics/").skip(1);
    let pointers: Vec<String> =
        pointers.map(|rest| format!("/metrics/{}", rest.split('"').next().unwrap_or_default())).collect();
    assert!(pointers.len() > 30, "{pointers:?}");
    for pointer in &pointers {
        // Percentiles of too few values are null, and figures without values are left away.
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        assert!(json.pointer(parent).is_some(), "{pointer}");
    }
    let at = |pointer: &str| json.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(at("/metrics/0/all/max"), 100.0);
    assert_eq!(at("/metrics/0/tagged/0/tags/shop"), "north");
    assert_eq!(at("/metrics/0/tagged/0/figures/count"), 100);
    assert_eq!(at("/metrics/0/unfit_example"), "`<b>free</b> | of charge` is no number");
    assert_eq!(at("/metrics/1/all/sum"), 400.0);
    assert_eq!(
        (at("/metrics/2/all/last"), at("/metrics/3/all/share")),
        (Value::from(-3.0), Value::from(0.9))
    );
    assert_eq!((at("/metrics/4/all/count"), at("/metrics/4/all/p/50")), (Value::from(0), Value::Null));
}

/// The first of two intervals has the values of a shop, the second those of both with the factor 2.
fn with_intervals(factor: f64) -> RunRecord {
    let second = |number: u64, metrics: &[MetricRecord]| Interval {
        at: Nanos::from_secs(number),
        length: Nanos::from_secs(1),
        metric_sums: metrics.iter().map(MetricSum::new).filter(|sum| sum.count > 0).collect(),
        ..Interval::default()
    };
    let (first, other) = (metrics(factor), metrics(2.0 * factor));
    let intervals = vec![second(1, &first[..2]), second(2, &other)];
    let mut whole = first[..2].to_vec();
    MetricRecord::merge_all(&mut whole, &other);
    RunRecord { intervals, metrics: whole, ..fixture::quiet_record() }
}

#[test]
fn a_table_of_intervals_has_columns_for_each_metric() {
    let result = fixture::result(with_intervals(1.0), &["open: 1,000/s uniform for 1 s"]);
    let csv = rendered(&result, Format::Csv, &TERMINAL);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let from = rows[0].iter().position(|column| *column == "metric_cart_total_count").expect("a column");
    let columns = [
        "metric_cart_total_count,metric_cart_total_min,metric_cart_total_mean,metric_cart_total_max",
        "metric_logins_count,metric_logins_sum,metric_logins_per_s",
        "metric_stock_left_count,metric_stock_left_last,metric_stock_left_min,metric_stock_left_max",
        "metric_found_count,metric_found_hits,metric_found_share",
        "metric_nothing_count,metric_nothing_min,metric_nothing_mean,metric_nothing_max",
    ];
    assert_eq!(rows[0][from..].join(","), columns.join(","));
    assert_eq!(rows[1][from..].join(","), "400,0.25,50.125,100,400,400,400,0,,,,0,,,0,,,");
    assert_eq!(rows[2][from..].join(","), "400,0.5,100.25,200,400,800,800,2,-3,-3,5,400,360,0.9,0,,,");
    let json: Value = serde_json::from_str(&rendered(&result, Format::Json, &TERMINAL)).expect("JSON");
    assert_eq!(json.pointer("/intervals/1/metrics/1/per_s"), Some(&Value::from(800.0)));
    assert_eq!(json.pointer("/intervals/0/metrics/2"), None);
}

#[test]
fn intervals_of_shards_have_the_values_of_all() {
    let saved = |factor: f64, shard: &str| {
        let context = plimsoll_report::RunContext { shard: Some(shard.to_owned()), ..fixture::context(&[]) };
        let record = with_intervals(factor);
        SavedRun::new(&record, fixture::result_with(record.clone(), context), None)
    };
    let merged = SavedRun::merge(&[saved(1.0, "1/2"), saved(2.0, "2/2")]).expect("they are two shards");
    let [first, second] = &merged.result.intervals[..] else { panic!("there are two") };
    let [cart, logins] = &first.metrics[..] else { panic!("{:?}", first.metrics) };
    assert_eq!((cart.count, cart.min, cart.max), (800, Some(0.25), Some(200.0)));
    assert_eq!(cart.mean, Some((50.125 + 100.25) / 2.0));
    assert_eq!((logins.sum, logins.per_s), (Some(1_200.0), Some(1_200.0)));
    let [.., stock, found] = &second.metrics[..] else { panic!("{:?}", second.metrics) };
    // Which of the shards had the last value is not known.
    assert_eq!((stock.count, stock.last, stock.min, stock.max), (4, None, Some(-3.0), Some(5.0)));
    assert_eq!((found.hits, found.share), (Some(720), Some(0.9)));
}

#[test]
fn shards_are_merged_as_if_one_process_had_recorded_all() {
    let saved = |factor: f64, shard: &str| {
        let context = plimsoll_report::RunContext { shard: Some(shard.to_owned()), ..fixture::context(&[]) };
        let record = record(factor);
        SavedRun::new(&record, fixture::result_with(record.clone(), context), None)
    };
    let parts = [saved(1.0, "1/2"), saved(2.0, "2/2")];
    for part in &parts {
        let bytes = part.to_bytes().expect("it can be written");
        assert_eq!(&SavedRun::from_bytes(&bytes).expect("it can be read"), part);
    }
    let merged = SavedRun::merge_shards(&parts).expect("both are there");
    let mut whole = metrics(1.0);
    MetricRecord::merge_all(&mut whole, &metrics(2.0));
    assert_eq!(merged.metrics, whole);
    let [trend, counter, ..] = &merged.result.metrics[..] else { panic!("there are five") };
    assert_eq!((trend.all.count, trend.all.max, trend.unfit), (800, Some(200.0), 2));
    assert_eq!((trend.tagged.len(), trend.tagged[1].figures.count), (2, 600));
    assert_eq!(counter.all.sum, Some(1_200.0));
    // A run that was saved without any is read.
    let without = SavedRun { metrics: Vec::new(), ..parts[0].clone() };
    let bytes = without.to_bytes().expect("it can be written");
    assert!(SavedRun::from_bytes(&bytes).expect("it can be read").metrics.is_empty());
}

#[test]
fn a_comparison_shows_them_and_judges_none() {
    let group = |name: &str, factor: f64| Group {
        name: name.to_owned(),
        members: (0..5)
            .map(|number| {
                let mut result = result(factor * (1.0 + f64::from(number) / 1e4));
                (result.verdict.valid, result.verdict.invalid_reasons) = (true, Vec::new());
                Member { file: format!("{name}/{number}.json"), result }
            })
            .collect(),
    };
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    let (a, b) = (group("a", 1.0), group("b", 2.0));
    let comparison = Comparison::new(tool, &a, &b, &Question::default()).expect("the runs are alike");
    crate::comparison::is_read_again(&comparison);
    let metric = |name: &str| {
        comparison.metrics.iter().find(|metric| metric.metric == name).unwrap_or_else(|| panic!("{name}"))
    };
    let mean = metric("metric(cart_total).mean");
    let change = mean.change.as_ref().expect("both have values");
    assert!((change.estimate - 1.0).abs() < 0.01, "{change:?}");
    assert_eq!((mean.judged, mean.verdict, mean.better.as_str()), (false, None, "none"));
    assert_eq!(metric("metric(found).rate").change.as_ref().map(|change| change.estimate), Some(0.0));
    assert_eq!(metric("metric(nothing).mean").change, None);
    let text = comparison.text(&TERMINAL);
    let row = text.lines().find(|line| line.contains("metric(logins).rate")).expect("it is shown");
    assert!(row.contains("400/s") && row.contains("800/s") && row.contains("+100"), "{row}");
}
