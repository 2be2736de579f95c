//! Classes of errors that an extension has: counted, merged, written, read, judged and told as those of the
//! core.

use plimsoll_core::{ErrorClass, ErrorRow, Nanos, Outcome, error_row};
use plimsoll_metrics::{
    Gauges, Model, Outline, Recorder, RunFacts, RunRecord, Sample, StepRecord, Tally, Threshold,
    ThresholdSpec, judge_thresholds,
};

/// An answer that says that the server is busy.
pub(crate) static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };
/// A failure that the generator may have brought about.
pub(crate) static LOST: ErrorRow = ErrorRow { name: "sample_lost", is_answer: false, is_of_server: false };

/// Classes of the core and of the extension.
pub(crate) fn all_classes() -> Vec<ErrorClass> {
    let rows = [&BUSY, &LOST].map(ErrorClass::Other);
    ErrorClass::CORE.iter().copied().chain(rows).collect()
}

/// A step in which this many requests failed with each class.
fn recorded(failures: &[(ErrorClass, u64)]) -> (StepRecord, Tally) {
    let mut recorder = Recorder::new(&["step".to_owned()]);
    for (class, count) in failures {
        for _ in 0..*count {
            recorder.record(&Sample {
                step: 0,
                intended: Nanos(0),
                started: Nanos(0),
                sent: Nanos(0),
                first_byte: Nanos(1),
                done: Nanos(1),
                outcome: Outcome::Failed(*class),
                status: 200,
                bytes_sent: 1,
                bytes_received: 1,
            });
        }
    }
    let tally = recorder.snapshot(Gauges::default()).total();
    (recorder.finish().swap_remove(0), tally)
}

#[test]
fn shards_with_rows_add_up() {
    let (busy, lost) = (ErrorClass::Other(&BUSY), ErrorClass::Other(&LOST));
    let (mut one, mut tally) = recorded(&[(busy, 3), (ErrorClass::Reset, 1)]);
    let (other, other_tally) = recorded(&[(lost, 2), (busy, 4)]);
    one.merge(&other);
    tally.merge(&other_tally);
    for errors in [&one.errors, &tally.errors] {
        assert_eq!((errors[busy], errors[lost], errors[ErrorClass::Reset], errors.total()), (7, 2, 1, 10));
    }
    assert_eq!((one.failed, tally.failed), (10, 10));
}

#[test]
fn rows_are_written_and_read_by_name() {
    error_row::install([&BUSY, &LOST]);
    let (record, tally) = recorded(&[(ErrorClass::Other(&BUSY), 3), (ErrorClass::Reset, 1)]);
    let text = serde_json::to_string(&record).expect("it is written");
    assert!(text.contains(r#""errors":{"reset":1,"sample_busy":3}"#), "{text}");
    assert_eq!(serde_json::from_str::<StepRecord>(&text).expect("it is read"), record);
    let text = serde_json::to_string(&tally).expect("it is written");
    let read: Tally = serde_json::from_str(&text).expect("it is read");
    assert_eq!(read, tally);
    let class = read.errors.iter().map(|(class, _)| class).last().expect("a class");
    assert!(class.is_answer() && class.is_of_server());
}

/// A program without the extension could not read the run at all.
#[test]
fn names_of_extensions_that_are_missing_keep_their_counts() {
    let (record, _) = recorded(&[(ErrorClass::Other(&LOST), 5)]);
    let text = serde_json::to_string(&record).expect("it is written");
    let text = text.replace("sample_lost", "elsewhere_lost");
    let mut read: StepRecord = serde_json::from_str(&text).expect("it is read");
    read.merge(&read.clone());
    let [(class, count)] = read.errors.iter().collect::<Vec<_>>()[..] else { panic!("{:?}", read.errors) };
    assert_eq!((class.name(), count, read.failed), ("elsewhere_lost", 10, 10));
    // Nothing is known about them.
    assert!(!class.is_answer() && !class.is_of_server() && !class.is_connect());
    let again = serde_json::to_string(&read).expect("it is written");
    assert!(again.contains(r#""errors":{"elsewhere_lost":10}"#), "{again}");
    let broken = text.replace("elsewhere_lost", "Else where");
    let error = serde_json::from_str::<StepRecord>(&broken).expect_err("no name");
    assert!(error.to_string().contains("`Else where` is not the name of a class of errors"), "{error}");
}

#[test]
fn thresholds_name_the_rows_that_are_given() {
    const ROWS: &[&ErrorRow] = &[&BUSY, &LOST];
    let text = "sample_busy<1%";
    let threshold = Threshold::parse_with(text, ROWS).expect("a threshold");
    assert_eq!(threshold.to_string(), text);
    // A plan without the extension has a word that is none.
    assert_eq!(Threshold::parse(text).expect_err("no figure").message, "`sample_busy` is not a figure");
    let near = Threshold::parse_with("sample_bsy<1%", ROWS).expect_err("no figure");
    assert_eq!(near.hint, "write sample_busy");
    // A run that had one is read with it.
    let saved = Threshold::of_saved("absent_busy<1%").expect("a threshold");
    assert_eq!(saved.to_string(), "absent_busy<1%");
    assert_eq!(Threshold::of_saved("p99<10ms"), Threshold::parse("p99<10ms"));
    assert!(Threshold::of_saved("no figure<1").is_err());
    let written = serde_json::to_string(&saved).expect("it is written");
    assert_eq!(serde_json::from_str::<Threshold>(&written).expect("it is read"), saved);
}

#[test]
fn thresholds_and_headlines_count_rows() {
    let mut record = RunRecord::empty(Model::Open);
    let (step, _) = recorded(&[(ErrorClass::Other(&BUSY), 60), (ErrorClass::Other(&LOST), 40)]);
    record.duration = Nanos::from_secs(1);
    (record.accounting.started, record.accounting.failed) = (100, 100);
    (record.total, record.steps) = (step.clone(), vec![step]);
    let outline = Outline { steps: vec!["step".to_owned()], ..Outline::default() };
    for (text, holds) in [("sample_busy<=60", true), ("sample_busy<60%", false), ("sample_lost==40", true)] {
        let spec = ThresholdSpec::new(Threshold::parse_with(text, &[&BUSY, &LOST]).expect("a threshold"));
        let results = judge_thresholds(&[spec], &outline, &record);
        assert_eq!(results[0].passed, holds, "{text}");
    }
    let facts = RunFacts::of(&record);
    let expected = "none of 100 requests succeeded, most of them sample_busy";
    assert_eq!(facts.failure().as_deref(), Some(expected));
}
