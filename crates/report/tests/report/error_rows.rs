//! Classes of errors that an extension has, in results and in runs that a program without it reads.

use std::io::{Read as _, Write as _};

use plimsoll_core::{ErrorClass, ErrorRow, Outcome};
use plimsoll_metrics::{
    ErrorExample, Model, Outline, RunRecord, Sample, Threshold, ThresholdSpec, judge_thresholds,
};
use plimsoll_report::{Format, RunResult, SavedRun, Style, render};

use crate::fixture;

static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };
static ODD: ErrorRow = ErrorRow { name: "sample_odd", is_answer: true, is_of_server: false };

/// 1,000 requests, of which 100 failed as busy and 200 as odd, and a threshold on each class.
fn record() -> RunRecord {
    let sample = |i: u64| {
        let outcome = match i % 10 {
            0 => Outcome::Failed(ErrorClass::Other(&BUSY)),
            1 | 2 => Outcome::Failed(ErrorClass::Other(&ODD)),
            _ => Outcome::Ok,
        };
        Sample { outcome, ..fixture::quiet(i) }
    };
    let mut record = fixture::recorded(&["GET /"], Model::Open, (0..1_000).map(sample));
    let example = ErrorExample { reason: "come back later".to_owned(), ..ErrorExample::default() };
    record.error_examples = [("sample_busy".to_owned(), example.reason)].into();
    let specs = ["sample_busy<=10%", "sample_odd<100"]
        .map(|text| ThresholdSpec::new(Threshold::parse_with(text, &[&BUSY, &ODD]).expect("a threshold")));
    let outline = Outline { steps: vec!["GET /".to_owned()], ..Outline::default() };
    record.thresholds = judge_thresholds(&specs, &outline, &record);
    record
}

fn short_report(result: &RunResult) -> String {
    let mut out = Vec::new();
    render(result, Format::Summary, &Style::PLAIN, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The bytes of a saved run with other words in it.
fn with_words(run: &SavedRun, from: &str, to: &str) -> Vec<u8> {
    let mut text = String::new();
    let bytes = run.to_bytes().expect("it can be written");
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("it is compressed text");
    assert!(text.contains(from), "{text}");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.replace(from, to).as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn reports_name_classes_of_an_extension_with_those_of_the_server_first() {
    plimsoll_core::error_row::install([&BUSY, &ODD]);
    let result = fixture::result(record(), &["open"]);
    assert_eq!((result.errors["sample_busy"], result.errors["sample_odd"]), (100, 200));
    let text = short_report(&result);
    let [busy, odd] = ["sample_busy: 100, the first: come back later", "sample_odd: 200"]
        .map(|words| text.find(words).unwrap_or_else(|| panic!("{words} is not in: {text}")));
    assert!(busy < odd, "{text}");
    let passed: Vec<bool> = result.thresholds.iter().map(|outcome| outcome.passed).collect();
    assert_eq!(passed, [true, false]);
}

/// A program without the extension could not read such a run.
#[test]
fn a_run_with_classes_that_nobody_has_here_is_read_merged_and_judged() {
    let record = record();
    let run = SavedRun::new(&record, fixture::result(record.clone(), &["open"]), None);
    let read = SavedRun::from_bytes(&with_words(&run, "sample_", "foreign_")).expect("it is read");
    assert_eq!((read.result.errors["foreign_busy"], read.result.errors["foreign_odd"]), (100, 200));
    let counted = read.total().errors;
    let counted: Vec<(&str, u64)> = counted.iter().map(|(class, count)| (class.name(), count)).collect();
    assert_eq!(counted, [("foreign_busy", 100), ("foreign_odd", 200)]);
    assert_eq!(SavedRun::from_bytes(&read.to_bytes().expect("it is written")).expect("it is read"), read);

    let shard = |number: u32| {
        let mut shard = read.clone();
        shard.result.run.shard = Some(format!("{number}/2"));
        shard.result.run.load_checksum = Some("same".to_owned());
        shard
    };
    let merged = SavedRun::merge_shards(&[shard(1), shard(2)]).expect("they are merged").result;
    assert_eq!((merged.errors["foreign_busy"], merged.errors["foreign_odd"]), (200, 400));
    assert_eq!(merged.by_step[0].errors["foreign_odd"], 400);
    // By the merged counts: `foreign_odd<100` holds for neither.
    let judged: Vec<(&str, bool, f64)> = merged
        .thresholds
        .iter()
        .map(|outcome| (&*outcome.text, outcome.passed, outcome.observed.as_ref().expect("a value").value))
        .collect();
    assert_eq!(judged[1], ("foreign_odd<100", false, 400.0));
    assert!(judged[0].0 == "foreign_busy<=10%" && judged[0].1, "{judged:?}");
    let text = short_report(&merged);
    assert!(text.contains("foreign_odd: 400") && text.contains("foreign_busy: 200"), "{text}");
}
