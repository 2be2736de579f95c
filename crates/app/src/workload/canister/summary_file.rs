//! The summary as the JSON that the Internet Computer's generator writes with `--summary-file`.

use plimsoll_core::Nanos;
use plimsoll_histogram::Histogram;
use plimsoll_report::{RunResult, SavedRun};
use plimsoll_workloads::canister::{CanisterNotes, QUERY, SUBMIT, WAIT};
use serde_json::{Map, Value, json};

use crate::workload::canister::summary::{Outcomes, Tally, step_named};

/// Seconds of one entry of the histogram of answers over time.
const SECONDS: u64 = 5;
/// Percentiles, and classes of the histogram of times.
const PARTS: usize = 100;

/// The summary of a run: a list with one entry for queries, and two for updates, of the submission and of
/// the wait for the outcome.
pub(super) fn document(run: &SavedRun, tally: &Tally, notes: &CanisterNotes) -> Value {
    let result = &run.result;
    let times = |name: &str| {
        let mut steps = result.by_step.iter().zip(&run.steps);
        steps.find(|(step, _)| step.step == name).map(|(_, saved)| &saved.response_time)
    };
    let counts = Counts {
        outcomes: &tally.outcomes,
        content_length: notes.payload(),
        good_by_time: good_by_time(result),
    };
    let first = if step_named(result, SUBMIT).is_some() { SUBMIT } else { QUERY };
    let mut entries = vec![entry(first, times(first), counts)];
    if let Some(wait) = step_named(result, WAIT) {
        let outcomes = Outcomes::of(wait);
        let counts = Counts { outcomes: &outcomes, content_length: 0, good_by_time: Map::new() };
        entries.push(entry(WAIT, times(WAIT), counts));
    }
    entries.into()
}

/// Everything of an entry that is counted.
struct Counts<'a> {
    outcomes: &'a Outcomes,
    content_length: u64,
    good_by_time: Map<String, Value>,
}

fn entry(step: &str, times: Option<&Histogram>, counts: Counts<'_>) -> Value {
    let empty = Histogram::new();
    let times = times.unwrap_or(&empty);
    let of_mean = |value: Option<f64>| value.map(|ns| duration(ns.round() as u64));
    let percentile = |part: usize| match part {
        0 => times.min(),
        part => times.percentile(part as f64 * 100.0 / PARTS as f64),
    };
    let Counts { outcomes, content_length, good_by_time } = counts;
    let by_code = outcomes.0.iter().map(|(code, count)| (code.to_string(), (*count).into()));
    json!({
        "step": step,
        "average": of_mean(times.mean()),
        "median": times.percentile(50.0).map(duration),
        "max": times.max().map(duration),
        "min": times.min().map(duration),
        "stddev": of_mean(times.stdev()),
        "count": outcomes.0.values().sum::<u64>(),
        "content_length": content_length,
        "percentiles": (0..PARTS).filter_map(percentile).map(duration).collect::<Vec<_>>(),
        "latency_histogram": classes(times),
        "succ_rate_histogram": good_by_time,
        "status_counts": by_code.collect::<Map<_, _>>(),
    })
}

/// A time in the form in which programs in Rust write one.
fn duration(ns: u64) -> Value {
    const SECOND: u64 = Nanos::from_secs(1).0;
    json!({ "secs": ns / SECOND, "nanos": ns % SECOND })
}

/// Values in classes of equal width, from 0 to the longest one.
fn classes(times: &Histogram) -> Vec<u64> {
    let mut classes = vec![0; PARTS];
    let longest = times.max().unwrap_or_default().max(1) as f64;
    for bucket in times.buckets() {
        let class = (bucket.highest as f64 / longest * PARTS as f64) as usize;
        classes[class.min(PARTS - 1)] += bucket.count;
    }
    classes
}

/// Good answers by the second since the start, in steps of five.
fn good_by_time(result: &RunResult) -> Map<String, Value> {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for interval in result.intervals.iter().filter(|interval| interval.ok > 0) {
        let begin = (interval.at_s - interval.length_s).max(0.0);
        *counts.entry(begin as u64 / SECONDS * SECONDS).or_default() += interval.ok;
    }
    counts.into_iter().map(|(second, count)| (second.to_string(), count.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_classes_of_the_longest_one_and_written_as_rust_does() {
        let mut times = Histogram::new();
        (1..=1_000_u64).for_each(|ms| times.record(ms * 1_000_000));
        let outcomes = Outcomes([(200, 1_000), (44, 3)].into());
        let counts = Counts { outcomes: &outcomes, content_length: 4_000, good_by_time: Map::new() };
        let entry = entry(QUERY, Some(&times), counts);
        assert_eq!(entry["max"], json!({ "secs": 1, "nanos": 0 }));
        assert_eq!(entry["min"], json!({ "secs": 0, "nanos": 1_000_000 }));
        assert_eq!(entry["count"], 1_003);
        assert_eq!(entry["status_counts"], json!({ "200": 1_000, "44": 3 }));
        let classes: Vec<u64> = serde_json::from_value(entry["latency_histogram"].clone()).unwrap();
        assert_eq!((classes.len(), classes.iter().sum::<u64>()), (100, 1_000));
        assert!(classes.iter().all(|count| (5..=15).contains(count)), "{classes:?}");
        assert_eq!(entry["percentiles"].as_array().map(Vec::len), Some(100));
    }

    #[test]
    fn without_an_answer_there_are_no_times() {
        let outcomes = Outcomes([(44, 3)].into());
        let counts = Counts { outcomes: &outcomes, content_length: 0, good_by_time: Map::new() };
        let entry = entry(QUERY, None, counts);
        assert_eq!((&entry["average"], &entry["percentiles"]), (&Value::Null, &json!([])));
    }
}
