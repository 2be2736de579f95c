//! Comparisons of two targets in one run, as users see them.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_histogram::Delta;
use plimsoll_metrics::{Interval, Model, RunRecord, StepRecord, Tally};
use plimsoll_report::comparison::{Comparison, Question, Word};
use plimsoll_report::html::render_comparison_page;
use plimsoll_report::interleaved::{Broken, InterleavedResult, Interleaving, brief};
use plimsoll_report::result::{ModelKind, Tool};

use crate::TERMINAL;
use crate::comparison::is_read_again;

/// A block with 100 requests of each side, of which A's take 1 ms, B's `factor` times as long, and each
/// spread over 10 %.
fn block(factor: f64, failed_of_b: u64) -> Interval {
    let tally = |factor: f64, failed| {
        let mut times = Delta::default();
        (0..100).for_each(|i| times.merge(&Delta::of((factor * (1e6 + 1e3 * f64::from(i))) as u64, 1)));
        Tally {
            ok: 100,
            failed,
            response_time: times,
            response_time_sum: (factor * 1.0495e8) as u128,
            ..Tally::default()
        }
    };
    Interval {
        length: Nanos::from_millis(250),
        steps: vec![tally(1.0, 0), tally(factor, failed_of_b), Tally::default()],
        ..Interval::default()
    }
}

fn interleaving(question: Question, blocks: usize, factor: f64, failed_of_b: u64) -> Interleaving {
    let mut interleaving = Interleaving::new(question, ModelKind::Open, vec![false, true, true])
        .expect("figures that there are");
    for number in 0..blocks {
        interleaving.add(&Interval { warmup: true, ..block(3.0, 7) });
        // A hundredth to and fro.
        let factor = factor * if number % 2 == 0 { 1.01 } else { 0.99 };
        interleaving.add(&block(factor, failed_of_b));
        if number % 4 == 3 && blocks == 120 {
            interleaving.look();
        }
    }
    interleaving
}

fn question() -> Question {
    Question { effect: 0.01, ..Question::default() }
}

fn compared(interleaving: &Interleaving, refused: Option<&str>) -> Comparison {
    let run = InterleavedResult {
        ended: "decided".to_owned(),
        id: "17".to_owned(),
        started_at: "2026-03-01T12:00:00.000Z".to_owned(),
        seed: 7,
        plan_hash: "abc".to_owned(),
        load: "open: 800/s".to_owned(),
        block_s: 0.25,
        ..interleaving.result(&RunRecord::empty(Model::Open))
    };
    let names = ["http://a/", "http://b/"].map(str::to_owned);
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    Comparison::of_interleaving(tool, names, interleaving, run, refused.map(str::to_owned))
}

fn statement(comparison: &Comparison) -> &str {
    &comparison.interleaved.as_ref().expect("it is one run").statement
}

#[test]
fn text_of_a_slower_target() {
    let slower = interleaving(question(), 120, 1.1, 0);
    let comparison = compared(&slower, None);
    assert_eq!(comparison.verdict, Word::Worse);
    is_read_again(&comparison);
    insta::assert_snapshot!("text_of_a_slower_target", comparison.text(&TERMINAL));
    insta::assert_snapshot!("markdown_of_a_slower_target", comparison.markdown());
    let run = comparison.interleaved.as_ref().expect("it is one run");
    assert_eq!(
        (run.after_s, run.blocks, run.a.ok, run.b.ok, run.looks.len()),
        (30.0, 120, 12_000, 12_000, 30)
    );
    let widths: Vec<f64> = [10, 29]
        .into_iter()
        .filter_map(|look: usize| run.looks[look].changes[1])
        .filter_map(|change| Some(change.high? - change.low?))
        .collect();
    assert!(widths.len() == 2 && widths[1] < widths[0], "{widths:?}");
}

#[test]
fn sentences_say_what_is_known() {
    let of = |factor, failed, blocks| {
        statement(&compared(&interleaving(question(), blocks, factor, failed), None)).to_owned()
    };
    assert!(of(1.1, 0, 120).starts_with("B is slower by 11.0 % at p99 ["), "{}", of(1.1, 0, 120));
    let faster = of(1.0 / 1.1, 0, 120);
    assert!(
        faster.starts_with("B is faster by 8.3 % at p99 [") && faster.ends_with("], after 30 s"),
        "{faster}"
    );
    assert!(of(1.0, 0, 400).starts_with("B is the same as A: p99 "), "{}", of(1.0, 0, 400));
    // The slower half of its blocks has the slowest hundredth: 1 % more than the factor.
    assert!(of(1.01, 0, 48).starts_with("B is slower by 1.9 % at p99 ["), "{}", of(1.01, 0, 48));
    assert_eq!(of(1.0, 0, 24), "undecided after 6 s: p99 is not known yet");
    assert!(of(1.0, 0, 0).starts_with("nothing is known"), "{}", of(1.0, 0, 0));
    let errors = of(1.0, 10, 400);
    assert!(errors.starts_with("B has more errors: +9.09 points ["), "{errors}");
    let both = of(1.1, 10, 120);
    assert!(
        both.starts_with("B is slower by 11.0 % at p99 [") && both.contains("], and has more errors: +"),
        "{both}"
    );
    let undecided = interleaving(question(), 8, 1.1, 0);
    let short = undecided.metrics();
    assert!(!undecided.is_decided(&short) && brief(&short).starts_with("p50 ?  p99 ?"), "{}", brief(&short));
    let decided = interleaving(question(), 120, 1.1, 0);
    let long = decided.metrics();
    assert!(decided.is_decided(&long[..2]) && brief(&long).starts_with("p50 +10.0 % [+"), "{}", brief(&long));
    // A later look may take the word back.
    assert!(brief(&long).contains(" worse so far"), "{}", brief(&long));
}

#[test]
fn an_invalid_measurement_is_no_verdict_unless_asked_for() {
    let slower = interleaving(question(), 120, 1.1, 0);
    let refused = compared(&slower, Some("the measurement is invalid (start_lag)"));
    assert_eq!((refused.verdict, refused.metrics[0].verdict), (Word::Undecided, None));
    assert!(refused.text(&TERMINAL).contains("NOT JUDGED") && statement(&refused).starts_with("no verdict"));
    let question = Question { allow_invalid: true, ..question() };
    let judged =
        compared(&interleaving(question, 120, 1.1, 0), Some("the measurement is invalid (start_lag)"));
    assert_eq!((judged.verdict, judged.refused.is_none()), (Word::Worse, true));
    assert!(!judged.b.runs[0].valid);
}

#[test]
fn the_page_has_the_answer_and_the_course_of_each_interval() {
    let page = |interleaving: &Interleaving| {
        let mut page = Vec::new();
        render_comparison_page(&compared(interleaving, None), &mut page).expect("memory is enough");
        String::from_utf8(page).expect("text")
    };
    let slower = page(&interleaving(question(), 120, 1.1, 0));
    for expected in
        ["Worse", "B is slower by 11.0 % at p99 [", "p50 from A to B", "p99 from A to B", "errors from A"]
    {
        assert!(slower.contains(expected), "{expected}");
    }
    // Of the 30 looks, those from the tenth second on have an interval: 21 lower ends and 21 upper ones.
    let area = slower.split("<polygon points=\"").nth(1).and_then(|rest| rest.split('"').next());
    assert_eq!(area.map(|points| points.split(' ').count()), Some(42));
    // Without a look there is nothing to draw.
    let short = page(&interleaving(question(), 8, 1.1, 0));
    assert!(short.contains("Undecided") && !short.contains("<svg"), "no chart");
}

/// A block of which all requests of one side fail, or of both.
fn failing(a: bool, b: bool) -> Interval {
    let mut block = block(1.0, 0);
    for (tally, fails) in block.steps.iter_mut().zip([a, b]) {
        tally.started = 100;
        if fails {
            *tally = Tally { started: 100, failed: 100, ..Tally::default() };
        }
    }
    block
}

/// The comparison of sides of which some answer everything with an error, and the number of the block after
/// which that was known.
fn compared_failing(a: bool, b: bool, measures: &[&str], doubt: Option<&str>) -> (Comparison, usize) {
    let measures = measures.iter().map(|name| name.parse().expect("a figure")).collect();
    let question = Question { measures, ..question() };
    let mut interleaving =
        Interleaving::new(question, ModelKind::Open, vec![false, true]).expect("figures that there are");
    let mut record = RunRecord::empty(Model::Open);
    record.verdict.valid = doubt.is_none();
    record.steps = [a, b]
        .map(|fails| {
            let mut step = StepRecord { ok: if fails { 0 } else { 6_000 }, ..StepRecord::default() };
            if fails {
                step.failed = 6_000;
                step.errors[ErrorClass::Status5xx] = 6_000;
            }
            step
        })
        .to_vec();
    let mut known = 0;
    for number in 1..=60 {
        interleaving.add(&failing(a, b));
        if known == 0 && interleaving.is_decided(&interleaving.metrics()) {
            known = number;
        }
    }
    let run = interleaving.result(&record);
    let names = ["http://a/", "http://b/"].map(str::to_owned);
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    (Comparison::of_interleaving(tool, names, &interleaving, run, doubt.map(str::to_owned)), known)
}

/// Both failed everything, and the answer was "nothing is known", after the longest time that there was.
#[test]
fn a_side_that_fails_everything_is_broken() {
    let none = "none of 6,000 requests succeeded, all of them status_5xx";
    for (sides, verdict, broken, expected) in [
        (
            [true, true],
            Word::Undecided,
            Broken::Both,
            format!("neither answered well. A: {none}; B: {none}, after 15 s"),
        ),
        (
            [true, false],
            Word::Undecided,
            Broken::A,
            format!("A is broken: {none}, after 15 s; there is nothing to compare B with"),
        ),
        ([false, true], Word::Worse, Broken::B, format!("B is broken: {none}, after 15 s")),
    ] {
        for measures in [&[][..], &["p50"]] {
            for doubt in [None, Some("the measurement is invalid (start_lag)")] {
                let (comparison, known) = compared_failing(sides[0], sides[1], measures, doubt);
                assert_eq!(comparison.verdict, verdict, "{sides:?} {measures:?} {doubt:?}");
                assert_eq!((comparison.broken(), &comparison.refused), (Some(broken), &None));
                assert_eq!(statement(&comparison), expected);
                assert_eq!(known, 40);
                assert!(
                    comparison.metrics.iter().all(|one| one.metric == "errors" || one.verdict.is_none()),
                    "{comparison:?}"
                );
                assert!(comparison.text(&TERMINAL).contains("FAIL: "));
            }
        }
    }
    let (comparison, _) = compared_failing(false, true, &[], None);
    insta::assert_snapshot!("text_of_a_broken_target", comparison.text(&TERMINAL));
    insta::assert_snapshot!("markdown_of_a_broken_target", comparison.markdown());
    assert_eq!(compared_failing(false, false, &[], None).0.broken(), None);
}

/// Times of the requests that succeed say little if a good part of the others fails.
#[test]
fn shares_of_errors_that_differ_are_told() {
    let measures = vec!["p50".parse().expect("a figure")];
    let of = |failed| {
        let question = Question { measures: measures.clone(), ..question() };
        compared(&interleaving(question, 120, 1.0 / 1.1, failed), None)
    };
    let told = of(10);
    assert_eq!(told.verdict, Word::Better);
    let [note] = &told.notes[..] else { panic!("one note: {:?}", told.notes) };
    assert_eq!(note.code, "errors");
    assert!(note.text.starts_with("0.0 % of A's requests failed, and 9.1 % of B's; "), "{}", note.text);
    assert!(told.text(&TERMINAL).contains("9.1 % of B's"), "{}", told.text(&TERMINAL));
    assert_eq!(of(0).notes, []);
}

#[test]
fn figures_that_one_run_does_not_have_are_refused() {
    let asked = |name: &str, model| {
        let measures = vec![name.parse().expect("a figure")];
        Interleaving::new(Question { measures, ..question() }, model, vec![false, true]).err()
    };
    for (name, model) in [
        ("p90", ModelKind::Open),
        ("mean", ModelKind::Closed),
        ("errors", ModelKind::Open),
        ("response_time.p99.9", ModelKind::Open),
        ("rate", ModelKind::Closed),
    ] {
        assert_eq!(asked(name, model), None, "{name}");
    }
    for (name, model) in
        [("rate", ModelKind::Open), ("cpu", ModelKind::Closed), ("service_time.p99", ModelKind::Open)]
    {
        assert!(asked(name, model).is_some(), "{name}");
    }
}

#[test]
fn looks_are_bounded() {
    let errors = Question { measures: vec!["errors".parse().expect("a figure")], ..question() };
    let mut interleaving =
        Interleaving::new(errors, ModelKind::Open, vec![false, true]).expect("a figure of such runs");
    for _ in 0..600 {
        interleaving.add(&block(1.0, 0));
        interleaving.look();
    }
    let looks = interleaving.result(&RunRecord::empty(Model::Open)).looks;
    assert!((120..=240).contains(&looks.len()), "{}", looks.len());
    assert!(looks.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
}

/// Symptom: B's process ended in the middle of a run, half of its requests failed, and the gate passed:
/// "undecided", errors +46.78 points [-100, +100].
#[test]
fn a_side_that_dies_halfway_is_worse_and_says_when() {
    let mut interleaving = Interleaving::new(question(), ModelKind::Open, vec![false, true, true])
        .expect("figures that there are")
        .dealing(1);
    for number in 0..120 {
        interleaving.add(&failing(false, number >= 60));
    }
    let comparison = compared(&interleaving, None);
    assert_eq!(comparison.verdict, Word::Worse, "{}", comparison.text(&TERMINAL));
    let run = comparison.interleaved.as_ref().expect("it is one run");
    assert_eq!((run.b.broke_at_s, run.b.failed_since, run.a.broke_at_s), (Some(15.0), 6_000, None));
    let said = statement(&comparison);
    assert!(said.starts_with("B broke at 15 s: none of 6,000 requests since then succeeded; "), "{said}");
    assert!(said.contains("B has more errors: +50.00 points [+4"), "{said}");
    assert!(comparison.markdown().contains("B broke at 15 s"), "{}", comparison.markdown());
}

/// Symptom: that invalid runs were judged all the same was in no format.
#[test]
fn what_was_allowed_is_told() {
    let question = Question { allow_invalid: true, ..question() };
    let judged =
        compared(&interleaving(question, 120, 1.1, 0), Some("the measurement is invalid (start_lag)"));
    let said = "judged all the same, as --allow-invalid asks: the measurement is invalid (start_lag)";
    assert_eq!((judged.notes[0].code.as_str(), judged.notes[0].text.as_str()), ("allow_invalid", said));
}
