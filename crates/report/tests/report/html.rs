//! The page of HTML: its text without a script, content that tries to break out of it, and one of a very
//! large run.

use std::path::Path;

use plimsoll_core::Outcome;
use plimsoll_metrics::{Model, RunRecord, Tally};
use plimsoll_report::html::{NamedRun, render};
use plimsoll_report::{Format, RunResult, SavedRun, Style, render as render_result};

use crate::fixture::{context, quiet, recorded, result, result_with};

pub(crate) fn page_of(runs: &[(&str, &SavedRun)]) -> String {
    let named: Vec<NamedRun<'_>> = runs.iter().map(|&(name, run)| NamedRun { name, run }).collect();
    let mut page = Vec::new();
    render(&named, &[], &mut page).expect("writing to memory does not fail");
    String::from_utf8(page).expect("a page is text")
}

/// Returns the parts of a page that can be read without JavaScript.
pub(crate) fn without_scripts(page: &str) -> String {
    let mut text = String::new();
    for part in page.split("<script") {
        text.push_str(part.split_once("</script>").map_or(part, |(_, after)| after));
    }
    text
}

fn open() -> RunRecord {
    recorded(&["GET /"], Model::Open, (0..20_000).map(quiet))
}

#[test]
fn every_figure_of_the_text_report_can_be_read_without_a_script() {
    let result = result(open(), &["open: 1,000/s uniform for 20 s"]);
    let mut text = Vec::new();
    let style = Style { unicode: true, ..Style::PLAIN };
    render_result(&result, Format::Text, &style, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let page = without_scripts(&page_of(&[("one", &SavedRun::of_result(result))]));
    let times: Vec<&str> =
        text.lines().filter(|line| line.starts_with('p') || line.starts_with("max")).collect();
    assert!(times.len() >= 8, "{text}");
    for line in times {
        for figure in line.split("  ").skip(1).map(str::trim).filter(|cell| !cell.is_empty()) {
            assert!(page.contains(&format!(">{figure}<")), "`{figure}` of `{line}`");
        }
    }
    assert!(
        page.contains(">DONE<")
            && page.contains(">measurement valid · ")
            && page.contains("open: 1,000/s uniform for 20 s")
    );
}

#[test]
fn nothing_that_a_server_or_a_plan_says_becomes_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x <!-- \u{202e}";
    let mut made = result(open(), &[evil]);
    made.error_examples.insert("bad_response".to_owned(), evil.to_owned());
    made.errors.insert("bad_response".to_owned(), 3);
    made.statuses.insert(evil.to_owned(), 7);
    made.run.args = vec![evil.to_owned()];
    made.run.targets[0].authority = evil.to_owned();
    made.by_step[0].step = evil.to_owned();
    let mut saved = SavedRun::of_result(made);
    saved.plan = Some(evil.to_owned());
    let harmless = page_of(&[("one", &SavedRun::of_result(result(open(), &[])))]);
    for page in [page_of(&[("one", &saved)]), page_of(&[(evil, &saved), ("two", &saved)])] {
        assert!(!page.contains("<script>alert") && !page.contains("<img") && !page.contains("\u{202e}"));
        assert!(!page.contains("\" onload=\""), "an attribute was left");
        assert_eq!(page.matches("<script").count(), harmless.matches("<script").count());
        assert_eq!(page.matches("</script>").count(), harmless.matches("</script>").count());
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    }
}

#[test]
fn a_run_without_a_response_has_a_page() {
    let silent = |i| {
        let mut sample = quiet(i);
        sample.outcome = Outcome::TimedOut;
        sample.status = 0;
        sample
    };
    for record in
        [recorded(&["GET /"], Model::Closed, []), recorded(&["GET /"], Model::Open, (0..50).map(silent))]
    {
        let page = without_scripts(&page_of(&[("none", &SavedRun::of_result(result(record, &[])))]));
        assert!(page.contains("Not one response came."), "{page}");
        assert!(!page.contains("NaN") && !page.contains(">inf"));
    }
}

/// Doubles the counts, as merging a run with its like does.
fn doubled(record: &mut RunRecord) {
    let twice = |tally: &mut Tally| tally.merge(&tally.clone());
    for step in record.steps.iter_mut().chain([&mut record.total]) {
        step.merge(&step.clone());
    }
    for interval in &mut record.intervals {
        for count in
            [&mut interval.started, &mut interval.ok, &mut interval.completed, &mut interval.scheduled]
        {
            *count *= 2;
        }
    }
    record.slices.iter_mut().for_each(|slice| twice(&mut slice.total));
    record.timeline.measured.iter_mut().for_each(|slice| twice(&mut slice.total));
    let accounting = &mut record.accounting;
    for count in [&mut accounting.scheduled, &mut accounting.started, &mut accounting.ok] {
        *count *= 2;
    }
    record.iterations.started *= 2;
    record.iterations.completed *= 2;
    record.completed_in_window *= 2;
    record.target_per_second = record.target_per_second.map(|rate| rate * 2.0);
}

/// A hundred million requests in nearly an hour: the page stays small. It is written where the tests of the
/// script find it, together with the result that it has to agree with.
#[test]
fn a_page_of_a_hundred_million_requests_is_small() {
    let mut record = recorded(&["GET /"], Model::Open, (0..3_200_000).map(quiet));
    (0..5).for_each(|_| doubled(&mut record));
    let result: RunResult = result_with(record.clone(), context(&["open: 32,000/s uniform for 53m20s"]));
    assert_eq!(result.accounting.ok, 102_400_000);
    assert_eq!(result.intervals.len(), 3_200);
    let saved = SavedRun::new(&record, result, Some("run:\n  rate: 32000\n".to_owned()));
    let page = page_of(&[("merged", &saved)]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(without_scripts(&page).contains(">102,400,000<"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("merged.html"), page).unwrap();
    std::fs::write(folder.join("merged.json"), serde_json::to_vec(&saved.result).unwrap()).unwrap();
}
