//! Formats of other tools, read as these read them.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use junit_parser::TestStatus;
use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;
use plimsoll_metrics::headline::validity;
use plimsoll_metrics::{Claim, Gauges, IntervalMerger, Recorder, Sample, StepRecord, TimelineDownsampler};
use plimsoll_report::html::{NamedRun, render as render_page};
use plimsoll_report::reconciliation::{Reconciliation, ReconciliationCheck};
use plimsoll_report::records::RecordsResult;
use plimsoll_report::result::{CauseResult, OutcomeResult, ThresholdOutcome};
use plimsoll_report::{
    Format, NoHistograms, RunResult, SavedRun, Style, render, render_saved, schema_ndjson,
};
use serde_json::Value;

use crate::contract::assert_described;
use crate::{fixture, rendered};

fn written(result: &RunResult, format: Format) -> String {
    rendered(result, format, &Style::PLAIN)
}

/// Symptom: suites of several plans against one server had the same name.
#[test]
fn the_suite_of_a_plan_has_its_name() {
    let mut result = fixture::open();
    result.run.name = None;
    assert!(!written(&result, Format::Junit).contains("name=\"checkout\""));
    result.run.name = Some("checkout".to_owned());
    assert!(
        written(&result, Format::Junit)
            .contains("<testsuite package=\"plimsoll\" id=\"0\" name=\"checkout\"")
    );
}

#[test]
fn markdown_of_an_open_run() {
    insta::assert_snapshot!(written(&fixture::open(), Format::Markdown));
}

#[test]
fn markdown_of_thresholds() {
    insta::assert_snapshot!(written(&fixture::thresholds(), Format::Markdown));
}

#[test]
fn markdown_of_a_run_in_which_everything_failed() {
    insta::assert_snapshot!(written(&fixture::all_failed(), Format::Markdown));
}

#[test]
fn markdown_of_iterations_over_http2() {
    insta::assert_snapshot!(written(&fixture::http2(), Format::Markdown));
}

#[test]
fn every_row_of_a_table_in_markdown_has_as_many_cells_as_its_head() {
    for (name, result) in fixture::all() {
        let page = written(&result, Format::Markdown);
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut last = None;
        for line in page.lines() {
            let is_row = line.starts_with('|');
            let expected = last.filter(|_| is_row).unwrap_or(cells(line));
            assert_eq!(cells(line), expected, "{name}: {line}");
            last = is_row.then_some(expected);
        }
        let (opened, closed) = (page.matches("<details>").count(), page.matches("</details>").count());
        assert_eq!(opened, closed, "{name}");
    }
}

#[test]
fn what_a_target_sends_is_no_markup() {
    let mut result = fixture::all_failed();
    let hostile = "</code></details><script>alert(1)</script>|`x`\n### @everyone <img src=x>";
    result.error_examples.insert("connect_refused".to_owned(), hostile.to_owned());
    result.run.args = vec![hostile.to_owned()];
    let page = written(&result, Format::Markdown);
    for bad in ["<script", "<img", "@everyone", "\n###  "] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    // In XML it is data, whatever it looks like.
    assert!(junit(&result).system_out.is_some_and(|page| page.contains("<script>alert(1)</script>")));
}

/// The only suite of a report, as a reader of JUnit finds it.
fn junit(result: &RunResult) -> junit_parser::TestSuite {
    let xml = written(result, Format::Junit);
    let mut report =
        junit_parser::from_reader(xml.as_bytes()).unwrap_or_else(|error| panic!("{error}: {xml}"));
    assert_eq!(report.suites.len(), 1);
    report.suites.swap_remove(0)
}

#[test]
fn junit_of_thresholds() {
    insta::assert_snapshot!(written(&fixture::thresholds(), Format::Junit));
}

#[test]
fn thresholds_are_test_cases() {
    let result = fixture::thresholds();
    assert!(result.verdict.valid);
    let suite = junit(&result);
    assert_eq!(suite.cases.len(), result.thresholds.len() + 1);
    assert!(suite.cases[0].status.is_success(), "the measurement is valid");
    for (case, threshold) in suite.cases[1..].iter().zip(&result.thresholds) {
        assert!(
            case.original_name.contains(&threshold.text),
            "{} is not {}",
            case.original_name,
            threshold.text
        );
        match &case.status {
            TestStatus::Success => assert!(threshold.passed, "{}", threshold.text),
            TestStatus::Failure(failure) => {
                assert!(!threshold.passed, "{}", threshold.text);
                let said = threshold.observed.as_ref().map(|observed| observed.text.clone());
                let said = said.expect("the figure is there");
                assert!(failure.message.contains(&said), "{} lacks {said}", failure.message);
                assert_eq!((&threshold.reason, threshold.proven), (&None, true));
            }
            // It has too few samples: it neither holds nor does it not.
            TestStatus::Error(error) => {
                assert_eq!(Some(&error.message), threshold.reason.as_ref());
                assert_eq!((&*error.error_type, threshold.proven), ("not_shown", false));
            }
            other => panic!("{}: {other:?}", threshold.text),
        }
    }
    let failed = result.thresholds.iter().filter(|threshold| !threshold.passed).count() as u64 - 1;
    assert_eq!((suite.tests, suite.failures, suite.errors, suite.skipped), (8, failed, 1, 0));
    assert!(failed > 0 && failed < 7, "{failed}");
}

/// Of a store that has lost some of one table, and all of the other.
fn reconciled() -> RunResult {
    let checks = vec![
        ReconciliationCheck::new("load.logs", (1_000, 0), 1_000, Some(0)),
        ReconciliationCheck::new("load.<b>|spans", (2_000, 100), 1_900, None),
    ];
    let records = RecordsResult {
        acknowledged: 3_000,
        failed: 100,
        acknowledged_per_s: Some(1_500.0),
        target_per_s: Some(2_000.0),
    };
    let mut result = RunResult { records: Some(records), ..fixture::open() };
    result.reconcile(Reconciliation::new("arc", checks));
    result
}

#[test]
fn what_a_store_has_lost_is_in_every_report() {
    let result = reconciled();
    let text = written(&result, Format::Text);
    assert!(text.contains("stored      INCONSISTENT: 1,900 in load.<b>|spans, 100 acknowledged"), "{text}");
    assert!(text.contains("1,000 in load.logs: all that were acknowledged, each once"), "{text}");
    let markdown = written(&result, Format::Markdown);
    assert!(
        markdown.starts_with("### FAIL: the server's contents differ from what it acknowledged\n"),
        "{markdown}"
    );
    assert!(markdown.contains("| stored | **INCONSISTENT: 1,900 in load.&lt;b&gt;\\|spans"), "{markdown}");
    let saved = SavedRun::of_result(result.clone());
    let mut page = Vec::new();
    render_page(&[NamedRun { name: "one", run: &saved }], &[], &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("INCONSISTENT: 1,900 in load.&lt;b&gt;|spans"), "{page}");
    assert!(page.contains("75.0 % of 2,000/s that were asked for"), "{page}");
    let suite = junit(&result);
    let of = |name: &str| suite.cases.iter().find(|case| case.name.ends_with(name)).expect("a test case");
    assert!(matches!(of("load.logs").status, TestStatus::Success));
    let TestStatus::Failure(failure) = &of("spans").status else { panic!("{:?}", of("spans").status) };
    assert_eq!(failure.message, "100 acknowledged and missing");
    assert_eq!((suite.tests, suite.failures), (suite.cases.len() as u64, 1));
}

/// The result as one of an earlier version, which had no headline, is read.
fn restated(mut result: RunResult) -> RunResult {
    result.verdict.summary.clear();
    RunResult::from_json(written(&result, Format::Json).as_bytes()).expect("it is a result")
}

#[test]
fn a_result_of_an_earlier_version_gets_its_headline_when_it_is_read() {
    for (name, result) in fixture::all() {
        let read = restated(result.clone()).verdict;
        assert_eq!((read.outcome, read.cause), (result.verdict.outcome, result.verdict.cause), "{name}");
        // The accounts of the huge run are not those of its record.
        assert!(read.summary == result.verdict.summary || name == "huge", "{name}: {}", read.summary);
    }
}

/// An answer of the target is a fact even if the generator stalled; a slow response is not.
#[test]
fn errors_that_the_target_answered_fail_an_invalid_run() {
    let mut result = fixture::all_failed();
    result.verdict.valid = false;
    result.verdict.invalid_reasons = vec!["stall".to_owned()];
    let result = restated(result);
    assert_eq!(result.verdict.outcome, OutcomeResult::Fail, "{:?}", result.verdict);
    let suite = junit(&result);
    assert_eq!((suite.errors, suite.failures, suite.skipped, suite.tests), (0, 1, 1, 2));
    // A measurement that is not valid has not passed.
    let measured = &suite.cases[0];
    assert!(
        measured.name.ends_with("the measurement is valid") && measured.status.is_skipped(),
        "{measured:?}"
    );
    assert!(suite.cases[1].status.is_failure(), "{:?}", suite.cases);
    let text = written(&result, Format::Summary);
    assert!(text.starts_with("FAIL  none of 2,000 requests succeeded"), "{text}");
    assert!(text.contains("measurement INVALID: stall"), "{text}");
}

#[test]
fn an_invalid_run_is_an_error_and_proves_nothing_about_thresholds() {
    let mut result = fixture::thresholds();
    let invalid = fixture::huge();
    assert!(!invalid.verdict.valid);
    result.verdict = invalid.verdict;
    result.thresholds.iter_mut().for_each(|threshold| threshold.proven = false);
    let result = restated(result);
    let suite = junit(&result);
    assert!(suite.cases[0].status.is_error(), "{:?}", suite.cases[0]);
    let message = &suite.cases[0].status.error_as_ref().message;
    assert!(result.verdict.invalid_reasons.iter().all(|reason| message.contains(reason)), "{message}");
    assert!(suite.cases[1..].iter().all(|case| case.status.is_skipped()));
    assert_eq!((suite.errors, suite.failures, suite.skipped), (1, 0, 7));
}

/// Symptom: a threshold with too few samples was a failure of the target in every format.
#[test]
fn a_threshold_that_is_not_shown_is_told_in_every_format() {
    let mut result = fixture::thresholds();
    result.thresholds.retain(|threshold| threshold.passed || threshold.reason.is_some());
    let result = restated(result);
    let verdict = &result.verdict;
    assert_eq!((verdict.outcome, verdict.cause), (OutcomeResult::NoVerdict, Some(CauseResult::NotShown)));
    let said = "p99.99{ok}<10ms is not shown to hold, nor not to: needs 29,956 samples, has 9,960";
    assert!(verdict.summary.starts_with(said), "{}", verdict.summary);
    for format in [Format::Summary, Format::Text] {
        let page = written(&result, format).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.starts_with(&format!("NO VERDICT {said}")), "{page}");
        assert!(page.contains("NOT SHOWN p99.99{ok}<10ms: needs 29,956 samples"), "{page}");
        assert!(page.contains("measurement valid"), "{page}");
    }
    let page = written(&result, Format::Markdown);
    assert!(page.contains("| not shown | needs 29,956 samples"), "{page}");
    // Symptom: k6's summary had it as crossed.
    let page = written(&result, Format::K6);
    assert!(page.contains("\"p99.99{ok}<10ms\": false"), "{page}");
    let mut page = Vec::new();
    let saved = SavedRun::of_result(result.clone());
    render_page(&[NamedRun { name: "one", run: &saved }], &[], &mut page).expect("it is written");
    assert!(String::from_utf8_lossy(&page).contains("? not shown"), "the page lacks it");
    let suite = junit(&result);
    assert!(suite.cases[0].status.is_success(), "the measurement is valid");
    assert_eq!((suite.errors, suite.failures, suite.skipped), (1, 0, 0));
    let json: Value = serde_json::from_str(&written(&result, Format::Json)).expect("JSON");
    assert_eq!(json["verdict"]["cause"], "not_shown");
}

/// Symptom: JUnit of an interrupted run was green, while the exit code was 130.
#[test]
fn junit_of_an_interrupted_run_has_an_error() {
    let mut result = fixture::thresholds();
    let before = junit(&result);
    result.run.interrupted_by_signal = Some(2);
    let suite = junit(&result);
    assert_eq!((suite.errors, suite.tests), (before.errors + 1, before.tests + 1));
    assert_eq!(suite.failures, before.failures);
}

/// The headline of a run, and the sentence about its limit, are the same wherever they stand: for every claim
/// that a verdict makes, over runs with every outcome.
#[test]
fn every_format_says_the_same() {
    let mut passing = fixture::thresholds();
    passing.thresholds.retain(|threshold| threshold.passed);
    let all = [&fixture::all()[..], &[("passing", restated(passing))]].concat();
    let runs = || all.iter().filter(|(name, _)| *name != "huge");
    let outcomes = runs().map(|(_, result)| result.verdict.outcome).collect::<Vec<_>>();
    for outcome in [OutcomeResult::Pass, OutcomeResult::Fail, OutcomeResult::Done, OutcomeResult::NoVerdict] {
        assert!(outcomes.contains(&outcome), "no run is {outcome:?}");
    }
    // Plain text is ASCII, and its lines end where the terminal does.
    let squeezed = |text: &str| {
        let text = text.replace('·', "-").replace('≥', ">=").replace('µ', "u");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let unescaped = |text: &str| {
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        text.replace("&#39;", "'").replace("&amp;", "&")
    };
    for (claim, (name, result)) in Claim::ALL.iter().zip(runs().cycle()) {
        let mut result = result.clone();
        let limit = &mut result.verdict.limited_by;
        limit.what = claim.limited_by().name().to_owned();
        limit.evidence = format!("{} figures of {claim:?}", name.len());
        limit.hint = format!("a remedy for {claim:?}");
        let result = restated(result);
        let verdict = &result.verdict;
        let (evidence, hint) = (&verdict.limited_by.evidence, &verdict.limited_by.hint);
        let validity = validity(verdict.valid, &verdict.invalid_reasons, claim.limited_by());
        let said = [verdict.outcome.word().to_owned(), squeezed(&verdict.summary), squeezed(&validity)];
        assert!(said[2].ends_with(claim.limited_by().words()), "{claim:?}: {said:?}");
        let mut html = Vec::new();
        let saved = SavedRun::of_result(result.clone());
        render_page(&[NamedRun { name: "one", run: &saved }], &[], &mut html).expect("it is written");
        let unmarked = |text: String| {
            let mut plain = String::new();
            let mut inside = false;
            for letter in text.chars() {
                inside = letter == '<' || (inside && letter != '>');
                plain.push(if inside || letter == '>' { ' ' } else { letter });
            }
            unescaped(&plain)
        };
        let junit = junit(&result).system_out.expect("a page");
        let pages = [
            ("short", written(&result, Format::Summary)),
            ("long", written(&result, Format::Text)),
            ("Markdown", unescaped(&written(&result, Format::Markdown)).replace(['\\', '`'], "")),
            ("JUnit", junit),
            ("HTML", unmarked(String::from_utf8(html).expect("text"))),
        ];
        for (format, page) in pages {
            let page = squeezed(&page);
            // Half a screen has one hint, that of the first finding.
            let hint = (format != "short").then_some(hint);
            for words in said.iter().chain([evidence]).chain(hint) {
                assert!(page.contains(words.as_str()), "{name}, {claim:?}, {format} lacks {words:?}: {page}");
            }
            // One wording: the page said "Limited by: none" below "not limited at this rate".
            assert!(!page.contains("Limited by: "), "{name}, {claim:?}, {format}: {page}");
        }
        // The live page and the screen of others are made of this.
        let json: Value = serde_json::from_str(&written(&result, Format::Json)).expect("JSON");
        let json = &json["verdict"];
        assert_eq!(json["summary"], verdict.summary.as_str(), "{name}, {claim:?}");
        assert_eq!(json["limited_by"]["what"], claim.limited_by().name(), "{name}, {claim:?}");
        assert_eq!(json["limited_by"]["evidence"], evidence.as_str(), "{name}, {claim:?}");
        assert_eq!(json["limited_by"]["hint"], hint.as_str(), "{name}, {claim:?}");
    }
}

#[test]
fn every_run_is_a_report_of_junit_with_the_page_for_people() {
    for (name, result) in fixture::all() {
        let suite = junit(&result);
        let open = |one: &&ThresholdOutcome| result.verdict.valid && !one.proven && one.reason.is_some();
        let open = result.thresholds.iter().filter(open).count() as u64;
        let unmeasured = result.verdict.outcome == OutcomeResult::NoVerdict
            && result.verdict.cause != Some(CauseResult::NotShown);
        let interrupted = result.run.interrupted_by_signal.is_some();
        assert_eq!(suite.errors, open + u64::from(unmeasured) + u64::from(interrupted), "{name}");
        let page = rendered(&result, Format::Text, &Style { unicode: true, ..Style::PLAIN });
        let page: String = page.chars().map(|c| if c < ' ' && c != '\n' { '\u{fffd}' } else { c }).collect();
        assert_eq!(suite.system_out.as_deref().map(str::trim), Some(page.trim()), "{name}");
    }
}

#[test]
fn lines_of_json_are_the_intervals_and_then_the_result() {
    let schema = schema_ndjson();
    for (name, result) in fixture::all() {
        let text = written(&result, Format::Ndjson);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        lines.iter().for_each(|line| assert_described(line, &schema, &schema, name));
        let (last, intervals) = lines.split_last().expect("there is a result");
        assert_eq!(intervals.len(), result.intervals.len(), "{name}");
        let ok: u64 = intervals.iter().map(|line| line["ok"].as_u64().expect("a number")).sum();
        assert_eq!(ok, result.intervals.iter().map(|interval| interval.ok).sum::<u64>(), "{name}");
        assert!(intervals.iter().all(|line| line["run_id"] == result.run.id.as_str()), "{name}");
        let read = RunResult::from_json(last.to_string().as_bytes()).expect("the last line is a result");
        assert_eq!(read, RunResult { intervals: Vec::new(), ..result }, "{name}");
    }
}

#[test]
fn k6_of_thresholds() {
    insta::assert_snapshot!(written(&fixture::thresholds(), Format::K6));
}

/// Kinds of k6's metrics by the keys that it writes (its `summary.js`), and the kind of each metric.
const K6_TREND: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];
const K6_METRICS: [(&str, &[&str]); 14] = [
    ("checks", &["passes", "fails", "value"]),
    ("data_received", &["count", "rate"]),
    ("data_sent", &["count", "rate"]),
    ("dropped_iterations", &["count", "rate"]),
    ("http_req_duration", &K6_TREND),
    ("http_req_duration{expected_response:true}", &K6_TREND),
    ("http_req_failed", &["passes", "fails", "value"]),
    ("http_req_waiting", &K6_TREND),
    ("http_reqs", &["count", "rate"]),
    ("iterations", &["count", "rate"]),
    ("vus", &["value", "min", "max"]),
    ("vus_max", &["value", "min", "max"]),
    // Ours, of a kind that scripts can add.
    ("plimsoll_response_time", &K6_TREND),
    ("plimsoll_unanswered", &["count", "rate"]),
];

#[test]
fn every_metric_of_a_summary_is_one_of_k6() {
    for (name, result) in fixture::all() {
        let summary: Value = serde_json::from_str(&written(&result, Format::K6)).expect("JSON");
        assert!(summary["root_group"]["groups"].is_object(), "{name}");
        for (metric, fields) in summary["metrics"].as_object().expect("an object") {
            let (_, keys) = K6_METRICS.iter().find(|(known, _)| known == metric).expect(metric);
            for (key, value) in fields.as_object().expect("an object") {
                if key == "thresholds" {
                    let all = value.as_object().expect("an object");
                    assert!(all.values().all(Value::is_boolean), "{name} {metric}: {value}");
                } else {
                    assert!(keys.contains(&key.as_str()), "{name} {metric}: {key}");
                    assert!(value.is_number(), "{name} {metric} {key}: {value}");
                }
            }
        }
        let of = |pointer: &str| summary.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let accounting = &result.accounting;
        let bad = accounting.failed + accounting.timed_out;
        assert_eq!(of("/metrics/http_reqs/count"), accounting.ok + bad, "{name}");
        assert_eq!(of("/metrics/http_req_failed/passes"), bad, "{name}");
        assert_eq!(of("/metrics/data_sent/count"), result.bytes.sent, "{name}");
        let p95 = |metric: &str| summary["metrics"][metric]["p(95)"].as_f64();
        let known = result.service_time.p.p95.map(|p| p as f64 / 1e6);
        assert_eq!(p95("http_req_duration{expected_response:true}"), known, "{name}");
        // Those of k6 have the failed ones among them.
        assert_eq!(p95("http_req_duration"), known.filter(|_| bad == 0), "{name}");
    }
}

#[test]
fn every_threshold_is_in_the_summary_of_k6_and_true_means_crossed() {
    let result = fixture::thresholds();
    let summary: Value = serde_json::from_str(&written(&result, Format::K6)).expect("JSON");
    let metrics = summary["metrics"].as_object().expect("an object");
    let all: Vec<(&String, &Value)> =
        metrics.values().filter_map(|metric| metric["thresholds"].as_object()).flatten().collect();
    assert_eq!(all.len(), result.thresholds.len());
    for threshold in &result.thresholds {
        let found = all.iter().find(|(text, _)| text.starts_with(&threshold.text)).expect(&threshold.text);
        assert_eq!(found.1, threshold.proven && !threshold.passed, "{}", threshold.text);
    }
    let p99 = &metrics["plimsoll_response_time"]["thresholds"]["p99<10ms"];
    assert_eq!(p99, false, "it holds");
}

#[test]
fn formats_of_histograms_are_refused_of_a_result() {
    for format in Format::ALL {
        let mut out = Vec::new();
        let error = render(&fixture::open(), format, &Style::PLAIN, &mut out).err();
        assert_eq!(error.is_some(), format.needs_histograms(), "{}", format.name());
        if let Some(error) = error {
            let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<NoHistograms>());
            assert_eq!(reason, Some(&NoHistograms(format)));
            assert!(out.is_empty());
        }
    }
}

/// A run of two scenarios with a warm-up and a drain, as it is saved.
fn saved() -> SavedRun {
    let mut record = fixture::quiet_record();
    let mut merger = IntervalMerger::new(1);
    let mut recorder = Recorder::new(&["a, b".to_owned(), "c".to_owned()]);
    let mut timeline = TimelineDownsampler::new();
    for second in 1..=4 {
        for i in 0..1_000 {
            recorder.note_started((i % 2) as u32);
            recorder.record(&Sample { step: (i % 2) as u32, ..fixture::quiet(second * 1_000 + i) });
        }
        let at = fixture::SECOND * second;
        let gauges = Gauges { at, warmup: second == 1, drain: second == 4, ..Gauges::default() };
        if second == 1 {
            // The record excludes requests of the warm-up.
            merger.add(&recorder.snapshot(gauges));
            recorder = Recorder::new(&["a, b".to_owned(), "c".to_owned()]);
        } else {
            merger.add(&recorder.snapshot(gauges));
        }
    }
    merger.finish().iter().for_each(|interval| timeline.add(interval));
    record.timeline = timeline.finish();
    record.steps = recorder.finish();
    record.total = StepRecord::default();
    record.steps.iter().for_each(|step| record.total.merge(step));
    record.warmup = fixture::SECOND;
    let result = RunResult::new(&record, fixture::context(&["open"]));
    SavedRun::new(&record, result, None)
}

fn written_saved(run: &SavedRun, format: Format) -> String {
    let mut out = Vec::new();
    render_saved(run, format, &Style::PLAIN, &mut out).expect("writing to memory does not fail");
    String::from_utf8(out).expect("every format is UTF-8")
}

/// The buckets of a histogram of HdrHistogram, as ours are told.
fn buckets(histogram: &hdrhistogram::Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
}

fn ours(histogram: &Histogram) -> Vec<(u64, u64)> {
    histogram.buckets().map(|bucket| (bucket.highest, bucket.count)).collect()
}

#[test]
fn an_interval_log_is_read_by_hdrhistogram_and_adds_up_to_the_run() {
    let run = saved();
    let log = written_saved(&run, Format::Hlog);
    let mut by_tag: BTreeMap<String, hdrhistogram::Histogram<u64>> = BTreeMap::new();
    let (mut starts, mut last) = (0, Duration::ZERO);
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        let interval = match entry.unwrap_or_else(|error| panic!("{error:?}: {log}")) {
            LogEntry::Interval(interval) => interval,
            LogEntry::StartTime(at) | LogEntry::BaseTime(at) => {
                starts += 1;
                assert_eq!(at.as_millis(), u128::from(run.result.run.started_at_unix_ns / 1_000_000));
                continue;
            }
        };
        assert!(interval.start_timestamp() >= last, "they ascend");
        last = interval.start_timestamp();
        let bytes = STANDARD.decode(interval.encoded_histogram()).expect("it is Base64");
        let histogram: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).expect("it is a histogram");
        assert!((histogram.max() as f64 / 1e6 - interval.max()).abs() < 0.001 * interval.max() + 0.001);
        let tag = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
        match by_tag.get_mut(&tag) {
            Some(sum) => sum.add(&histogram).expect("the bounds are the same"),
            None => assert!(by_tag.insert(tag, histogram).is_none()),
        }
    }
    assert_eq!(starts, 2);
    let total = run.total();
    assert_eq!(buckets(&by_tag[""]), ours(&total.response_time), "lines without a tag add up");
    assert_eq!(buckets(&by_tag["service_time"]), ours(&total.service_time));
    assert_eq!(by_tag["warmup"].len(), 1_000);
    for (step, name) in run.steps.iter().zip(["default/a__b", "default/c"]) {
        assert_eq!(buckets(&by_tag[name]), ours(&step.response_time), "{name}");
        assert_eq!(buckets(&by_tag[&format!("{name}:service_time")]), ours(&step.service_time), "{name}");
    }
    assert_eq!(by_tag.len(), 7, "{:?}", by_tag.keys());
}

#[test]
fn a_spectrum_tells_the_percentiles_of_the_run() {
    let run = saved();
    let text = written_saved(&run, Format::Hgrm);
    let times = run.total().response_time;
    let rows: Vec<Vec<f64>> = (text.lines())
        .filter(|line| !line.starts_with('#') && !line.contains("Value") && !line.is_empty())
        .map(|line| line.split_whitespace().map(|word| word.parse().expect(line)).collect())
        .collect();
    assert!(rows.len() > 20, "{text}");
    for row in &rows {
        let [value, share, count, rest @ ..] = row.as_slice() else { panic!("{row:?}") };
        // The bucket counts values up to the limit, within the digits that are written.
        let limit = (value * 1e6 + 500.0) as u64;
        assert!(times.count() - times.count_above(limit) >= *count as u64, "{row:?}");
        assert!(*count >= share * times.count() as f64 - 1e-3, "{row:?}");
        if let [inverse] = rest {
            assert!((inverse - 1.0 / (1.0 - share)).abs() < 0.01 * inverse, "{row:?}");
        }
    }
    assert!(rows.is_sorted_by(|a, b| a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]));
    let last = rows.last().expect("there are rows");
    assert_eq!((last.len(), last[1], last[2]), (3, 1.0, times.count() as f64));
    assert_eq!(format!("{:.3}", last[0]), format!("{:.3}", times.max().expect("values") as f64 / 1e6));
    let footer = format!("Total count    = {:>12}]", times.count());
    assert!(text.contains(&footer) && text.contains("#[Mean    = "), "{text}");
    let empty = written_saved(&SavedRun { steps: vec![StepRecord::default()], ..saved() }, Format::Hgrm);
    assert!(empty.contains("Total count    =            0]"), "{empty}");
}

#[test]
fn a_saved_run_has_every_format_and_one_without_histograms_the_others() {
    let run = saved();
    for format in Format::ALL {
        let text = written_saved(&run, format);
        assert!(!text.is_empty());
        if !format.needs_histograms() {
            assert_eq!(text, written(&run.result, format), "{}", format.name());
        }
        let bare = SavedRun::of_result(run.result.clone());
        let refused = render_saved(&bare, format, &Style::PLAIN, &mut Vec::new()).is_err();
        assert_eq!(refused, format.needs_histograms(), "{}", format.name());
    }
}

/// Symptom: 20 answers of a wait of 6.5 ms after the load were 3,081/s.
#[test]
fn a_short_drain_has_no_rate() {
    let mut record = fixture::quiet_record();
    for (length, has_rate) in [(7, false), (99, false), (100, true)] {
        let last = record.intervals.last_mut().expect("it has intervals");
        (last.drain, last.completed, last.length) = (true, 20, Nanos::from_millis(length));
        let result = fixture::result(record.clone(), &[]);
        let drain = result.intervals.last().expect("it has intervals");
        assert_eq!(drain.achieved_per_s.is_some(), has_rate, "{length} ms");
    }
}

/// Symptom: "600 requests in 3.00 s" beside "199/s achieved" looked like an error of arithmetic.
#[test]
fn answers_that_came_after_the_load_are_named_beside_its_rate() {
    let mut result = fixture::open();
    result.warmup_s = 0.0;
    (result.rate.achieved_per_s, result.rate.started_per_s) = (Some(199.3), Some(200.0));
    let mut drain = result.intervals.last().expect("it has intervals").clone();
    (drain.drain, drain.ok) = (true, 2);
    result.intervals.retain(|interval| !interval.drain);
    result.intervals.push(drain);
    let page = |result: &RunResult| {
        written(result, Format::Summary).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(page(&result).contains("; 2 answers came after the end of the load"), "{}", page(&result));
    result.rate.achieved_per_s = Some(199.7);
    assert!(!page(&result).contains("after the end of the load"), "{}", page(&result));
}
