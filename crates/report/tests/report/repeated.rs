//! Repeated runs: statements about them together, and that they are read back as they were written.

use plimsoll_report::repeated::RepeatedResult;
use plimsoll_report::result::{CauseResult, OutcomeResult, Thresholds, Tool};
use plimsoll_report::{
    Format, ReadError, RunResult, TableFormat, render_repeated, results_from_json, schema_repeated,
};
use serde_json::Value;

use crate::{TERMINAL, fixture};

/// Runs of a target whose times are multiplied at each of its starts (R12).
fn runs(factors: &[f64]) -> Vec<RunResult> {
    let run = |(number, factor): (usize, &f64)| {
        let mut run = fixture::open();
        run.run.id = format!("run-{number}");
        run.run.seed += number as u64;
        run.notes.clear();
        for summary in [&mut run.response_time, &mut run.service_time] {
            let scaled = |value: u64| (value as f64 * factor) as u64;
            summary.p.p50 = summary.p.p50.map(scaled);
            summary.p.p99 = summary.p.p99.map(scaled);
            for bounds in summary.interval.values_mut().flatten() {
                (bounds.low, bounds.high) = (bounds.low.map(scaled), bounds.high.map(scaled));
            }
        }
        run
    };
    factors.iter().enumerate().map(run).collect()
}

fn repeated(runs: Vec<RunResult>) -> RepeatedResult {
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    RepeatedResult::new(tool, runs.len() as u64, runs)
}

fn rendered(result: &RepeatedResult, format: TableFormat) -> String {
    let mut out = Vec::new();
    render_repeated(result, format, &TERMINAL, &mut out).expect("writing to memory does not fail");
    String::from_utf8(out).expect("every format is UTF-8")
}

/// R12: the target's mode, 1 ms or 1.3 ms, is drawn at each of its starts.
#[test]
fn a_mode_that_is_drawn_per_start_shows_between_the_runs() {
    let modes = repeated(runs(&[1.0, 1.3, 1.3, 1.0, 1.0, 1.3]));
    let p50 = &modes.between_runs[0];
    assert_eq!(p50.metric, "response_time.p50");
    let (spread, within) = (p50.spread.unwrap(), p50.within.unwrap());
    let between = p50.between.unwrap();
    assert!(spread > 10.0 * within, "{p50:?}");
    // Six values, half of them 1.3 times the others: the standard deviation is 0.3 / 2 · √(6 / 5).
    let one = modes.runs[0].response_time.p.p50.unwrap() as f64;
    assert!((between / one - 0.164).abs() < 0.002, "{p50:?}");
    assert!(p50.low.unwrap() < p50.mean.unwrap() && p50.mean.unwrap() < p50.high.unwrap(), "{p50:?}");
    insta::assert_snapshot!(rendered(&modes, TableFormat::Text));
}

#[test]
fn runs_that_are_alike_have_nothing_between_them() {
    let alike = repeated(runs(&[1.0; 5]));
    assert_eq!(alike.between_runs[0].between, Some(0.0));
    let text = rendered(&alike, TableFormat::Text);
    assert!(!text.contains("runs differ"), "{text}");
}

#[test]
fn few_runs_have_no_interval_and_one_says_that_it_knows_nothing() {
    let few = repeated(runs(&[1.0, 1.1, 1.0, 1.1]));
    assert_eq!((few.between_runs[0].low, few.between_runs[0].high), (None, None));
    assert_eq!(few.between_runs[0].reason.as_deref(), Some("4 runs: an interval over runs takes 5"));
    let one = repeated(runs(&[1.0]));
    assert_eq!(one.between_runs[0].reason.as_deref(), Some("1 run: between-run variation unknown"));
    let alone = fixture::open();
    assert!(alone.notes.iter().any(|note| note.text.contains("1 run: between-run variation unknown")));
}

#[test]
fn the_verdict_is_that_of_the_worst_and_what_was_cut_short_is_left_out() {
    let mut all = runs(&[1.0; 6]);
    (all[1].verdict.valid, all[1].verdict.outcome) = (false, OutcomeResult::NoVerdict);
    (all[3].verdict.thresholds, all[3].verdict.outcome) = (Thresholds::Fail, OutcomeResult::Fail);
    all[3].verdict.summary = "p99<1ms does not hold: 1.32 ms".to_owned();
    all[5].run.interrupted_by_signal = Some(2);
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    let result = RepeatedResult::new(tool, 9, all);
    let verdict = &result.verdict;
    assert_eq!(
        (verdict.valid, &verdict.invalid_runs[..], &verdict.cut_short[..]),
        (false, &[2][..], &[6][..])
    );
    assert_eq!(verdict.thresholds, Thresholds::Fail);
    assert!(result.between_runs.iter().all(|figure| figure.values.len() == 5));
    insta::assert_snapshot!(rendered(&result, TableFormat::Text));
    let none = repeated(Vec::new());
    assert!(!none.verdict.valid && rendered(&none, TableFormat::Text).contains("no run was made"));
}

/// Symptom: "NO VERDICT all 5 runs, the first: the measurement is invalid", where the others had too few
/// samples.
#[test]
fn runs_without_a_verdict_are_told_by_their_reasons() {
    let mut all = runs(&[1.0; 5]);
    for run in &mut all {
        let mut threshold = fixture::thresholds().thresholds.swap_remove(0);
        (threshold.passed, threshold.proven) = (false, false);
        threshold.reason = Some("needs 299 samples, has 250".to_owned());
        run.thresholds = vec![threshold];
        (run.verdict.outcome, run.verdict.cause) = (OutcomeResult::NoVerdict, Some(CauseResult::NotShown));
        run.verdict.summary = "p99<50ms is not shown: needs 299 samples, has 250".to_owned();
    }
    all[0].verdict.cause = Some(CauseResult::Invalid);
    all[0].verdict.summary = "the measurement is invalid".to_owned();
    let result = repeated(all.clone());
    assert_eq!(result.verdict.summary, "all 5 runs: 1 invalid, 4 too short");
    let text = rendered(&result, TableFormat::Text);
    assert!(text.contains("run 1: the measurement is invalid"), "{text}");
    assert!(text.contains("runs 2, 3, 4, 5: p99<50ms is not shown: needs 299"), "{text}");
    let alike = repeated(all.split_off(1));
    assert_eq!(alike.verdict.summary, "all 4 runs: p99<50ms is not shown: needs 299 samples, has 250");
}

#[test]
fn they_are_read_back_as_they_were_written() {
    let result = repeated(runs(&[1.0, 1.3]));
    let text = rendered(&result, TableFormat::Json);
    assert_eq!(results_from_json(text.as_bytes()).unwrap(), result.runs);
    let single = crate::rendered(&result.runs[0], Format::Json, &TERMINAL);
    assert_eq!(results_from_json(single.as_bytes()).unwrap(), [result.runs[0].clone()]);
    let later = text.replacen("\"schema_version\": 1", "\"schema_version\": 9", 1);
    assert!(matches!(results_from_json(later.as_bytes()), Err(ReadError::TooNew { found: 9, known: 1 })));
    assert!(matches!(results_from_json(b"{\"schema_version\": 1}"), Err(ReadError::NotAResult)));
}

#[test]
fn the_schema_describes_them() {
    let (schema, result) = (schema_repeated(), repeated(runs(&[1.0; 5])));
    let json: Value = serde_json::from_str(&rendered(&result, TableFormat::Json)).unwrap();
    crate::contract::assert_described(&json, &schema, &schema, "repeated");
}

#[test]
fn the_table_of_intervals_names_the_run() {
    let table = rendered(&repeated(runs(&[1.0, 1.0])), TableFormat::Csv);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("run,at_s,")).count(), 1);
    assert!(lines[0].starts_with("run,") && lines[1].starts_with("1,"), "{table}");
    assert!(lines.last().is_some_and(|line| line.starts_with("2,")), "{table}");
}

/// Symptom: "PASS all 3 runs: p99<50ms holds: 23.0 ms" named the first run; the worst had 25.1 ms.
#[test]
fn the_figure_of_several_runs_is_that_of_the_worst() {
    let of = |text: &str, values: [f64; 3]| {
        let mut all = runs(&[1.0; 3]);
        for (run, value) in all.iter_mut().zip(values) {
            let mut threshold = fixture::thresholds().thresholds.swap_remove(0);
            let observed = threshold.observed.as_mut().expect("a figure");
            (observed.value, observed.text) = (value, format!("{value}"));
            text.clone_into(&mut threshold.text);
            run.thresholds = vec![threshold];
            run.verdict.outcome = OutcomeResult::Pass;
            run.verdict.summary = format!("{text} holds: {value}");
        }
        repeated(all).verdict.summary
    };
    assert_eq!(of("p99<50ms", [23.0, 25.1, 24.0]), "all 3 runs, the worst: p99<50ms holds: 25.1");
    assert_eq!(of("rate>10/s", [23.0, 25.1, 22.0]), "all 3 runs, the worst: rate>10/s holds: 22");
}

/// A run with these requests and failures, and the line that its figures make.
fn counted(started: u64, failed: u64, is_valid: bool, thresholds: usize) -> RunResult {
    let mut run = fixture::open();
    run.accounting.started = started;
    (run.accounting.ok, run.accounting.failed) = (started - failed, failed);
    (run.accounting.timed_out, run.accounting.aborted) = (0, 0);
    run.errors = [("status_5xx".to_owned(), failed)].into_iter().filter(|(_, count)| *count > 0).collect();
    run.thresholds = vec![fixture::thresholds().thresholds.swap_remove(0); thresholds];
    run.thresholds.iter_mut().for_each(|one| (one.passed, one.proven, one.reason) = (true, is_valid, None));
    run.verdict.valid = is_valid;
    if !is_valid {
        run.verdict.invalid_reasons = vec!["cpu_saturation".to_owned()];
    }
    run.verdict.cause = None;
    // Without one, a reader makes the line from the figures.
    run.verdict.summary.clear();
    let json = serde_json::to_vec(&run).expect("every result is JSON");
    results_from_json(&json).expect("it is a result").swap_remove(0)
}

/// Symptom: "DONE both runs: 2.5 % errors: 5 of 200 requests" was the first run; the second had 7.5 %, and
/// "all 5 runs: no errors in 750 requests" were 3,750.
#[test]
fn requests_of_several_runs_are_their_sum() {
    let of = |requests: &[(u64, u64)], is_valid, thresholds| {
        let all = requests.iter().map(|(started, failed)| counted(*started, *failed, is_valid, thresholds));
        let result = repeated(all.collect());
        let json: Value = serde_json::from_str(&rendered(&result, TableFormat::Json)).expect("it is JSON");
        assert_eq!(json["verdict"]["summary"], result.verdict.summary.as_str());
        let text = rendered(&result, TableFormat::Text);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(&result.verdict.summary), "{text}");
        format!("{:?} {}", result.verdict.outcome, result.verdict.summary)
    };
    let (clean, some) = ([(750, 0); 5], [(200, 5), (200, 15)]);
    for (requests, is_valid, thresholds, line) in [
        (&clean[..], true, 0, "Done all 5 runs: no errors in 3,750 requests"),
        (&some, true, 0, "Done both runs: 5.0 % errors: 20 of 400 requests, all of them status_5xx"),
        (&some, true, 2, "Pass both runs: both thresholds hold; 5.0 % errors"),
        (&some, false, 0, "NoVerdict both runs: the measurement is invalid; 5.0 % errors"),
        (
            &some,
            false,
            2,
            "NoVerdict both runs: the measurement is invalid, and proves nothing about thresholds; 5.0 % errors",
        ),
        (
            &[(100, 100), (60, 60)],
            true,
            0,
            "Fail both runs: none of 160 requests succeeded, all of them status_5xx",
        ),
        // Of those with the worst outcome alone.
        (
            &[(100, 0), (60, 60), (40, 40)],
            true,
            0,
            "Fail 2 of 3 runs: none of 100 requests succeeded, all of them status_5xx",
        ),
        (
            &[(100, 0), (60, 60)],
            true,
            0,
            "Fail 1 of 2 runs: none of 60 requests succeeded, all of them status_5xx",
        ),
    ] {
        assert_eq!(of(requests, is_valid, thresholds), line);
    }
}

/// A line that no sum can make says which run it is of.
#[test]
fn the_figure_of_one_of_several_runs_is_not_that_of_all() {
    let of = |summaries: [&str; 3]| {
        let mut all = runs(&[1.0; 3]);
        for (run, summary) in all.iter_mut().zip(summaries) {
            (run.verdict.outcome, run.verdict.cause) =
                (OutcomeResult::Fail, Some(CauseResult::StoppedAnswering));
            summary.clone_into(&mut run.verdict.summary);
        }
        repeated(all).verdict.summary
    };
    let same = "nothing was answered";
    assert_eq!(of([same; 3]), format!("all 3 runs: {same}"));
    assert_eq!(of(["silent for 3 s", "silent for 9 s", same]), "all 3 runs, the first: silent for 3 s");
}
