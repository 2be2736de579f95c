//! Comparisons and histories, as users see them.

use plimsoll_report::comparison::{Comparison, Group, Incomparable, Member, Question, Word};
use plimsoll_report::history::Newest;
use plimsoll_report::measure::Measure;
use plimsoll_report::result::Tool;
use plimsoll_report::{History, ReadError, RunResult, Style, TableFormat, results_from_json};

use crate::{TERMINAL, fixture};

fn tool() -> Tool {
    Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() }
}

/// Distances of the runs of a group from its centre, in thousandths.
const NOISE: [i64; 6] = [3, -5, 7, -2, 0, -4];

/// A run that is slower than the fixture by this many thousandths.
fn slower(thousandths: i64, number: u64) -> RunResult {
    let mut result = fixture::open();
    let p = &mut result.response_time.p;
    for time in
        [&mut p.p50, &mut p.p75, &mut p.p90, &mut p.p95, &mut p.p99, &mut p.p99_9].into_iter().flatten()
    {
        *time = time.saturating_add_signed(*time as i64 * thousandths / 1_000);
    }
    result.rate.achieved_per_s = Some(1_000.0 + number as f64 / 100.0);
    result.run.id = format!("run{number}");
    result.run.started_at_unix_ns += number * 60_000_000_000;
    result.run.started_at = format!("2026-03-01T12:{number:02}:00.000Z");
    (result.verdict.valid, result.verdict.invalid_reasons) = (true, Vec::new());
    result
}

/// Returns `runs` runs around a centre, numbered from `first`.
fn group(name: &str, runs: usize, centre: i64, first: u64) -> Group {
    let member = |(number, noise): (u64, &i64)| Member {
        file: format!("{name}/{number}.json"),
        result: slower(centre + noise, number),
    };
    Group {
        name: name.to_owned(),
        members: (first..).zip(NOISE.iter().cycle().take(runs)).map(member).collect(),
    }
}

fn compared(a: &Group, b: &Group, question: &Question) -> Comparison {
    Comparison::new(tool(), a, b, question).expect("the runs are alike")
}

/// Written as JSON and read again it is the same comparison.
pub(crate) fn is_read_again(comparison: &Comparison) {
    let mut json = Vec::new();
    comparison.write_json(&mut json).expect("writing to memory does not fail");
    assert_eq!(Comparison::from_json(&json).expect("it is one").as_ref(), Some(comparison));
    let error = results_from_json(&json).expect_err("it is no run");
    assert!(error.to_string().contains("of a comparison or a suite, and a run is wanted"), "{error}");
}

fn text(comparison: &Comparison) -> String {
    comparison.text(&TERMINAL)
}

fn word(comparison: &Comparison, metric: &str) -> Option<Word> {
    let found = comparison.metrics.iter().find(|found| found.metric == metric);
    found.unwrap_or_else(|| panic!("{metric} is not among them")).verdict
}

#[test]
fn text_of_a_regression() {
    let mut b = group("new", 6, 80, 20);
    b.members.iter_mut().for_each(|member| "beta".clone_into(&mut member.result.run.host.hostname));
    let comparison = compared(&group("base", 6, 0, 1), &b, &Question::default());
    assert_eq!(comparison.verdict, Word::Worse);
    is_read_again(&comparison);
    insta::assert_snapshot!(text(&comparison));
    insta::assert_snapshot!("markdown_of_a_regression", comparison.markdown());
}

#[test]
fn text_of_single_runs() {
    let comparison = compared(&group("a", 1, 0, 1), &group("b", 1, 80, 20), &Question::default());
    assert_eq!(comparison.verdict, Word::Undecided);
    insta::assert_snapshot!(text(&comparison));
}

#[test]
fn text_of_invalid_runs() {
    let mut b = group("b", 5, 80, 20);
    b.members[2].result.verdict.valid = false;
    b.members[2].result.verdict.invalid_reasons = vec!["rate_not_met".to_owned()];
    let (a, allow_invalid) = (group("a", 5, 0, 1), true);
    let comparison = compared(&a, &b, &Question::default());
    assert!(comparison.metrics.iter().all(|metric| metric.verdict.is_none()));
    insta::assert_snapshot!(text(&comparison));
    let comparison = compared(&a, &b, &Question { allow_invalid, ..Question::default() });
    assert_eq!((comparison.verdict, comparison.refused), (Word::Worse, None));
}

/// Symptom: one run of ten that the generator spoiled left nothing judged.
#[test]
fn runs_that_the_generator_spoiled_are_left_out_if_enough_others_are_there() {
    let spoiled = |numbers: &[usize], reason: &str| {
        let mut b = group("b", 5, 80, 20);
        for &number in numbers {
            let verdict = &mut b.members[number].result.verdict;
            (verdict.valid, verdict.invalid_reasons) = (false, vec![reason.to_owned()]);
        }
        compared(&group("a", 5, 0, 1), &b, &Question::default())
    };
    for reason in ["start_lag", "stall", "cpu_saturation"] {
        let comparison = spoiled(&[2], reason);
        assert_eq!((comparison.verdict, &comparison.refused), (Word::Worse, &None), "{reason}");
        assert_eq!(comparison.notes[0].code, "left_out");
        assert!(comparison.notes[0].text.contains("1 of 5 runs of B ("), "{:?}", comparison.notes[0]);
        assert!(comparison.notes[0].text.contains(reason), "{:?}", comparison.notes[0]);
        assert_eq!(comparison.b.runs.iter().filter(|run| !run.valid).count(), 1, "all runs are listed");
        assert!(text(&comparison).contains("left out"), "{}", text(&comparison));
    }
    // Most of a side, or a run that the target may have spoiled: without it, a slow target would look fast.
    for (numbers, reason) in [(&[0, 1, 2][..], "stall"), (&[2], "rate_not_met"), (&[2], "ports_exhausted")] {
        let comparison = spoiled(numbers, reason);
        assert!(comparison.refused.is_some(), "{numbers:?} {reason}");
    }
}

#[test]
fn every_number_of_runs_has_its_method() {
    for (runs, method, verdict) in [
        (1, "none", Word::Undecided),
        (2, "means", Word::Worse),
        (4, "means", Word::Worse),
        (5, "ranks", Word::Worse),
    ] {
        let (a, b) = (group("a", runs, 0, 1), group("b", runs, 80, 20));
        let comparison = compared(&a, &b, &Question::default());
        let p99 = comparison.metrics.iter().find(|m| m.metric == "response_time.p99").unwrap();
        let change = p99.change.as_ref().unwrap();
        assert_eq!((change.method.as_str(), comparison.verdict), (method, verdict), "{runs} runs");
        assert!((change.estimate - 0.08).abs() < 0.01, "{change:?}");
        assert_eq!(word(&comparison, "cpu"), None, "what the generator costs is not judged");
    }
}

#[test]
fn the_same_and_the_better_are_found_too() {
    let a = group("a", 6, 0, 1);
    let same = compared(&a, &group("b", 6, 2, 20), &Question::default());
    assert_eq!(same.verdict, Word::Same);
    let better = compared(&a, &group("b", 6, -100, 20), &Question::default());
    assert_eq!((better.verdict, word(&better, "errors")), (Word::Better, Some(Word::Same)));
    // A change of 2 % matters if the question asks for it.
    let asked = Question { effect: 0.01, measures: vec!["p99".parse().unwrap()], ..Question::default() };
    assert_eq!(compared(&a, &group("b", 6, 20, 20), &asked).verdict, Word::Worse);
    assert_eq!(compared(&a, &group("b", 6, 20, 20), &Question::default()).verdict, Word::Same);
}

#[test]
fn errors_are_compared_by_their_difference() {
    let a = group("a", 5, 0, 1);
    let mut b = group("b", 5, 0, 20);
    for (member, failed) in b.members.iter_mut().zip([100, 110, 90, 120, 105]) {
        member.result.accounting.failed = failed;
    }
    let comparison = compared(&a, &b, &Question::default());
    assert_eq!((word(&comparison, "errors"), comparison.verdict), (Some(Word::Worse), Word::Worse));
    let lenient = compared(&a, &b, &Question { error_effect: 0.05, ..Question::default() });
    assert_eq!(word(&lenient, "errors"), Some(Word::Same));
}

#[test]
fn what_is_missing_or_only_a_bound_is_said() {
    let (a, mut b) = (group("a", 5, 0, 1), group("b", 5, 80, 20));
    b.members[0].result.response_time.p.p99 = None;
    b.members[0]
        .result
        .response_time
        .p_missing
        .insert("99".to_owned(), "needs 299 samples, has 7".to_owned());
    b.members[1].result.response_time.at_least = vec!["90".to_owned()];
    b.members[3].result.response_time.p.p99_9 = None;
    let comparison = compared(&a, &b, &Question::default());
    assert_eq!(word(&comparison, "response_time.p99"), Some(Word::Undecided));
    let page = text(&comparison);
    assert!(page.contains("a run of B has none: needs 299 samples, has 7"), "{page}");
    assert!(page.contains("only lower bounds, because of") && page.contains("response_time.p90"), "{page}");
    assert!(!page.contains("p99.9"), "{page}");
}

#[test]
fn runs_that_say_nothing_about_each_other_are_refused() {
    let (a, mut b) = (group("a", 5, 0, 1), group("b", 5, 0, 20));
    b.members.iter_mut().for_each(|member| member.result.protocols = [("h2".to_owned(), 1)].into());
    let refused = Comparison::new(tool(), &a, &b, &Question::default());
    assert_eq!(refused, Err(Incomparable(vec!["protocols differ: A http/1.1, B h2".to_owned()])));
    let forced = compared(&a, &b, &Question { force: true, ..Question::default() });
    assert_eq!(forced.notes[0].code, "forced");
    // Open and closed differ in more than one way.
    let mut b = group("b", 5, 0, 20);
    b.members[4].result = fixture::closed();
    let refused = Comparison::new(tool(), &a, &b, &Question::default());
    assert!(
        refused.is_err_and(|Incomparable(reasons)| reasons[0] == "models differ: A open, B closed | open")
    );
}

#[test]
fn another_rate_asked_for_is_no_gain() {
    let (a, mut b) = (group("a", 5, 0, 1), group("b", 5, 0, 20));
    for member in &mut b.members {
        member.result.rate.target_per_s = Some(2_000.0);
        member.result.rate.achieved_per_s = Some(2_000.0);
    }
    let comparison = compared(&a, &b, &Question::default());
    assert_eq!((word(&comparison, "rate"), comparison.verdict), (None, Word::Same));
    assert!(text(&comparison).contains("the rates asked for differ"));
}

#[test]
fn the_newest_run_is_judged_by_those_since_the_last_change() {
    let measure: Measure = "p99".parse().unwrap();
    let newest = |groups: &[(&str, usize, i64, u64)]| {
        let members =
            groups.iter().map(|&(name, runs, slower, from)| group(name, runs, slower, from).members);
        let members: Vec<_> = members.flatten().collect();
        History::new(tool(), members, measure, 0.05, false).newest
    };
    let word = |newest: &Newest| newest.verdict;
    let before = |newest: &Newest| newest.predecessors;
    assert_eq!(newest(&[]), None);
    let few = newest(&[("a", 5, 0, 1)]).unwrap();
    assert_eq!((word(&few), before(&few), few.expected), (Word::Undecided, 4, None));
    // A run that is slower by a tenth is worse at once, before there is a second one that makes a change.
    let slow = newest(&[("a", 12, 0, 1), ("b", 1, 100, 13)]).unwrap();
    assert_eq!((word(&slow), before(&slow)), (Word::Worse, 12));
    let fast = newest(&[("a", 12, 100, 1), ("b", 1, 0, 13)]).unwrap();
    assert_eq!(word(&fast), Word::Better);
    // After a change the runs before it are of another kind.
    let after = newest(&[("a", 12, 0, 1), ("b", 7, 100, 13)]).unwrap();
    assert_eq!((word(&after), before(&after)), (Word::Same, 6));
    let back = newest(&[("a", 12, 0, 1), ("b", 7, 100, 13), ("c", 1, 0, 20)]).unwrap();
    assert_eq!((word(&back), before(&back)), (Word::Better, 7));
}

#[test]
fn text_of_a_history() {
    let mut members = [group("h", 12, 0, 1), group("h", 9, 100, 13)].map(|group| group.members).concat();
    members[4].result.verdict.valid = false;
    members[4].result.verdict.invalid_reasons = vec!["stall".to_owned()];
    members.reverse();
    let measure: Measure = "p99".parse().unwrap();
    let history = History::new(tool(), members.clone(), measure, 0.05, false);
    assert_eq!(history.changes.iter().map(|change| change.at).collect::<Vec<_>>(), [12]);
    let rendered = |history: &History, format| {
        let mut out = Vec::new();
        history.render(format, &Style::PLAIN, &mut out).expect("writing to memory does not fail");
        String::from_utf8(out).expect("text is UTF-8")
    };
    insta::assert_snapshot!(rendered(&history, TableFormat::Text));
    assert_eq!(rendered(&history, TableFormat::Csv).lines().count(), 22);
    let newest = history.newest.expect("there are runs");
    assert_eq!((newest.at, newest.predecessors, newest.verdict), (20, 8, Word::Same));
    // Symptom: what may be more was told as if it were known.
    let mut late = members.clone();
    late[0].result.response_time.at_least = vec!["99".to_owned()];
    let late = History::new(tool(), late, measure, 0.05, false);
    assert_eq!(late.runs.iter().filter(|point| point.at_least).count(), 1);
    assert_eq!(rendered(&late, TableFormat::Text).matches(">= ").count(), 2, "the newest, and its row");
    assert!(rendered(&late, TableFormat::Csv).trim_end().ends_with(",true"));
    let calm = History::new(tool(), members, measure, 0.2, true);
    assert!(calm.changes.is_empty() && rendered(&calm, TableFormat::Text).contains("none of 20 % and more"));
}

#[test]
fn results_are_read_back_and_other_files_are_not() {
    let result = fixture::open();
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(RunResult::from_json(json.as_bytes()).unwrap(), result);
    let later = json.replacen("\"schema_version\":1", "\"schema_version\":7", 1);
    assert!(matches!(RunResult::from_json(later.as_bytes()), Err(ReadError::TooNew { found: 7, .. })));
    assert!(matches!(RunResult::from_json(b"{\"run\": {\"rate\": 1}}"), Err(ReadError::NotAResult)));
    assert!(matches!(RunResult::from_json(b"scenarios: []"), Err(ReadError::NotJson(_))));
    assert!(matches!(RunResult::from_json(&json.as_bytes()[..500]), Err(ReadError::NotJson(_))));
    assert!(matches!(RunResult::from_json(b"{\"schema_version\":1,\"run\":{}}"), Err(ReadError::Broken(_))));
}

/// Every name of the output is in its schema, which has a description of it.
#[test]
fn schemas_describe_what_is_written() {
    let comparison = compared(&group("a", 5, 0, 1), &group("b", 5, 80, 20), &Question::default());
    let history = History::new(tool(), group("h", 5, 0, 1).members, "rate".parse().unwrap(), 0.05, false);
    for (value, schema) in [
        (serde_json::to_value(&comparison), plimsoll_report::schema_comparison()),
        (serde_json::to_value(&history), plimsoll_report::schema_history()),
    ] {
        let value = value.expect("it is JSON");
        for (name, _) in value.as_object().expect("an object") {
            assert!(schema["properties"][name]["description"].is_string(), "{name}");
        }
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

/// Symptom: `compare --allow-invalid` of runs that prove nothing said so in no format.
#[test]
fn invalid_runs_that_were_judged_all_the_same_are_told_in_every_format() {
    let (a, mut b) = (group("a", 5, 0, 1), group("b", 5, 0, 6));
    for member in &mut b.members {
        (member.result.verdict.valid, member.result.verdict.invalid_reasons) =
            (false, vec!["start_lag".to_owned()]);
    }
    let comparison = compared(&a, &b, &Question { allow_invalid: true, ..Question::default() });
    assert_eq!(comparison.refused, None);
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut json = Vec::new();
    comparison.write_json(&mut json).expect("memory is enough");
    let mut page = Vec::new();
    plimsoll_report::html::render_comparison_page(&comparison, &mut page).expect("memory is enough");
    let written = [json, page].map(|bytes| String::from_utf8(bytes).expect("text"));
    for page in [text(&comparison), comparison.markdown()].into_iter().chain(written) {
        let page = flat(page);
        assert!(page.contains("5 of 5 runs of B invalid") && page.contains("allow-invalid asks"), "{page}");
    }
}

/// Symptom: a target that never answered 40 % of its requests had "errors 0.0 % / 0.0 %, same".
#[test]
fn requests_without_an_answer_may_be_errors() {
    let asked = || Question { measures: vec![Measure::Errors], ..Question::default() };
    let silent = |name: &str, runs, first, share: u64| {
        let mut group = group(name, runs, 0, first);
        for member in &mut group.members {
            let accounting = &mut member.result.accounting;
            let all = accounting.ok;
            accounting.in_flight_at_stop = all * share / 100;
            accounting.ok -= accounting.in_flight_at_stop;
        }
        group
    };
    for runs in [1, 3, 6] {
        let (a, b) = (silent("a", runs, 1, 0), silent("b", runs, 10, 40));
        let comparison = compared(&a, &b, &asked());
        assert_eq!(comparison.verdict, Word::Undecided, "{runs}: {}", text(&comparison));
        let [errors] = &*comparison.metrics else { panic!("one was asked for") };
        assert_eq!((errors.a_at_least, errors.b_at_least), (false, true));
        assert!(comparison.notes.iter().any(|note| note.code == "lower_bounds"), "{:?}", comparison.notes);
        if runs > 1 {
            let reason = errors.reason.as_deref().unwrap_or_default();
            assert!(reason.ends_with("requests without an answer may have failed, or not"), "{reason}");
            let change = errors.change.as_ref().expect("both have a share");
            assert!(change.low.is_some_and(|low| low <= 0.0), "{change:?}");
            assert!(change.high.is_some_and(|high| high >= 0.4), "{change:?}");
        }
    }
    // Whatever became of those without an answer, B has more errors.
    let (a, mut b) = (silent("a", 6, 1, 0), silent("b", 6, 10, 1));
    for member in &mut b.members {
        let accounting = &mut member.result.accounting;
        accounting.failed = accounting.ok / 2;
        accounting.ok -= accounting.failed;
    }
    assert_eq!(compared(&a, &b, &asked()).verdict, Word::Worse);
    // As many of both: nobody knows.
    let (a, b) = (silent("a", 6, 1, 10), silent("b", 6, 10, 10));
    assert_eq!(compared(&a, &b, &asked()).verdict, Word::Undecided);
}

/// Symptom: at 80 columns the verdict of each figure was cut to `...`.
#[test]
fn the_verdict_of_each_figure_fits_a_terminal() {
    let few = compared(&group("A", 1, 0, 1), &group("B", 1, 300, 50), &Question::default());
    let many = compared(&group("A", 6, 0, 1), &group("B", 6, 300, 50), &Question::default());
    for comparison in [few, many] {
        let words = ["worse", "better", "same", "undecided", "not judged"];
        let ends = |text: &str| -> Vec<usize> {
            words
                .map(|word| text.lines().filter(|line| line.ends_with(&format!("   {word}"))).count())
                .to_vec()
        };
        let whole = comparison.text(&Style { unicode: true, ..Style::PLAIN });
        assert!(ends(&whole).iter().sum::<usize>() >= 5, "{whole}");
        for width in [60, 70, 80, 100] {
            let text = comparison.text(&Style { width, ..TERMINAL });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert_eq!(ends(&text), ends(&whole), "{width}: {text}");
        }
    }
}
