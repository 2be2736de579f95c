//! Single runs, compared by the slices that their results keep.

use plimsoll_core::Nanos;
use plimsoll_metrics::{Model, Sample};
use plimsoll_report::comparison::{Comparison, Group, Member, MetricResult, Question, Word};
use plimsoll_report::result::Tool;
use plimsoll_report::{Format, RunContext, RunResult};

use crate::{TERMINAL, fixture, rendered};

const GET: &[&str] = &["GET http://127.0.0.1:8080/"];

/// A run of 15 s whose requests took this many percent of the usual time.
fn run(id: &str, percent: u64, slices: bool) -> Group {
    let sample = |i: u64| {
        let quiet = fixture::quiet(i);
        Sample { done: quiet.sent + Nanos((quiet.done - quiet.sent).0 * percent / 100), ..quiet }
    };
    let record = fixture::recorded(GET, Model::Open, (0..15_000).map(sample));
    let context = RunContext { slices, run_id: id.to_owned(), ..fixture::context(&["open: 1,000/s"]) };
    let result = fixture::result_with(record, context);
    // As compare gets it.
    let text = rendered(&result, Format::Json, &TERMINAL);
    let result = RunResult::from_json(text.as_bytes()).expect("it is read as it was written");
    Group { name: id.to_owned(), members: vec![Member { file: format!("{id}.json"), result }] }
}

fn compared(a: &Group, b: &Group, single_runs: bool) -> Comparison {
    let tool = Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() };
    let question = Question { single_runs, ..Question::default() };
    Comparison::new(tool, a, b, &question).expect("they are alike")
}

fn p50(comparison: &Comparison) -> &MetricResult {
    &comparison.metrics[0]
}

#[test]
fn single_runs_that_differ_are_undecided_unless_they_are_to_be_judged() {
    let (a, b) = (run("a", 100, true), run("b", 120, true));
    let careful = compared(&a, &b, false);
    let change = p50(&careful).change.as_ref().expect("there is a change");
    assert_eq!((change.method.as_str(), p50(&careful).verdict), ("slices", Some(Word::Undecided)));
    assert!((change.estimate - 0.2).abs() < 0.01, "{change:?}");
    assert!(
        change.low.is_some_and(|low| low > 0.15) && change.high.is_some_and(|high| high < 0.25),
        "{change:?}"
    );
    let reason = p50(&careful).reason.as_deref();
    assert_eq!(reason, Some("different within these runs; 1 run: between-run variation unknown"));
    assert_eq!(careful.verdict, Word::Undecided);
    let judged = compared(&a, &b, true);
    assert_eq!(p50(&judged).verdict, Some(Word::Worse), "{:?}", p50(&judged));
    assert_eq!(p50(&compared(&b, &a, true)).verdict, Some(Word::Better));
}

#[test]
fn single_runs_that_are_alike_are_not_called_different() {
    let alike = compared(&run("a", 100, true), &run("b", 100, true), true);
    assert_eq!(p50(&alike).verdict, Some(Word::Same), "{:?}", p50(&alike));
    assert_eq!(p50(&alike).reason.as_deref(), Some("1 run: between-run variation unknown"));
}

#[test]
fn without_slices_on_both_sides_nothing_bounds_the_change() {
    let bare = compared(&run("a", 100, true), &run("b", 120, false), true);
    let change = p50(&bare).change.as_ref().expect("there is an estimate");
    assert_eq!((change.method.as_str(), change.low, change.p), ("none", None, None));
    assert_eq!(p50(&bare).verdict, Some(Word::Undecided));
}

#[test]
fn a_result_keeps_its_slices_small_and_only_when_asked() {
    let kept = run("a", 100, true);
    let slices = kept.members[0].result.slices.as_ref().expect("they were asked for");
    assert_eq!((slices.time.as_str(), slices.values.len(), &slices.missing), ("response_time", 15, &None));
    let count: u64 = slices
        .values
        .iter()
        .flat_map(|slice| slice.split(' '))
        .map(|pair| pair.split_once(':').expect("a value and its count").1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(count, 15_000);
    assert!(slices.values.iter().map(String::len).sum::<usize>() < 200_000);
    assert_eq!(run("a", 100, false).members[0].result.slices, None);
}
