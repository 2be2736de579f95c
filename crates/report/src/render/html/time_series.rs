//! The course of a run over time, in a bounded number of points.

use std::iter;

use plimsoll_core::{Nanos, figure};
use serde::Serialize;

use crate::contract::result::{IntervalResult, RunResult};
use crate::contract::watched::ADDRESS;
use crate::render::document::seconds;

/// Points of each series at most: more than a chart has columns.
const MOST_POINTS: usize = 1_200;
/// Marks at most; the tables beside the charts have more.
const MOST_MARKS: usize = 200;
/// The shortest interval that has rates, as a part of the longest.
const SHORTEST: f64 = 0.1;
/// Worker threads with a series of their own.
const MOST_WORKERS: usize = 16;

/// Figures of one run over time.
#[derive(Debug, Serialize)]
pub(super) struct TimeSeries {
    /// The beginning of the first interval.
    from_s: f64,
    /// Intervals for which two points stand, the smallest and the largest value of each series; 1: each point
    /// is an interval.
    joined: usize,
    /// The ends of the intervals.
    at_s: Vec<f64>,
    series: Vec<Series>,
}

#[derive(Debug, Serialize)]
struct Series {
    name: String,
    values: Vec<Option<f64>>,
}

/// A part of a run.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Span {
    from_s: f64,
    to_s: f64,
    /// "warmup", "phase", "settling", "drain", or "silent": requests were in flight, and not one response
    /// came.
    kind: &'static str,
    name: String,
}

/// Something that happened.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Annotation {
    at_s: f64,
    /// Length of the event in seconds.
    length_s: f64,
    /// "change", "fault", "stall" or "threshold".
    kind: &'static str,
    text: String,
}

/// A series: its name, and its value in an interval.
type Column = (String, Box<dyn Fn(&IntervalResult) -> Option<f64>>);

impl TimeSeries {
    pub(super) fn new(result: &RunResult) -> Self {
        let intervals: Vec<&IntervalResult> =
            result.intervals.iter().filter(|interval| interval.length_s > 0.0).collect();
        let columns = columns(result);
        let from_s = intervals.first().map_or(0.0, |first| first.at_s - first.length_s);
        if intervals.len() <= MOST_POINTS {
            let series = columns.into_iter().map(|(name, of)| Series {
                name,
                values: intervals.iter().map(|interval| of(interval)).collect(),
            });
            let at_s = intervals.iter().map(|interval| interval.at_s).collect();
            return Self { from_s, joined: 1, at_s, series: series.collect() };
        }
        let joined = intervals.len().div_ceil(MOST_POINTS / 2);
        let groups = || intervals.chunks(joined);
        let at_s =
            groups().flat_map(|group| [group[(group.len() - 1) / 2].at_s, group[group.len() - 1].at_s]);
        let series = columns.into_iter().map(|(name, of)| Series {
            name,
            values: groups().flat_map(|group| extremes(group.iter().map(|interval| of(interval)))).collect(),
        });
        Self { from_s, joined, at_s: at_s.collect(), series: series.collect() }
    }
}

/// The smallest and the largest value, in the order in which they came.
fn extremes(values: impl Iterator<Item = Option<f64>>) -> [Option<f64>; 2] {
    let mut found: Option<[(usize, f64); 2]> = None;
    for (index, value) in values.enumerate() {
        let Some(value) = value else { continue };
        let [low, high] = found.get_or_insert([(index, value); 2]);
        if value < low.1 {
            *low = (index, value);
        }
        if value > high.1 {
            *high = (index, value);
        }
    }
    let Some([low, high]) = found else { return [None, None] };
    if low.0 <= high.0 { [Some(low.1), Some(high.1)] } else { [Some(high.1), Some(low.1)] }
}

fn columns(result: &RunResult) -> Vec<Column> {
    fn column(name: &str, of: impl Fn(&IntervalResult) -> Option<f64> + 'static) -> Column {
        (name.to_owned(), Box::new(of))
    }
    // A single response in a hundredth of a second would look like a peak.
    let usual = result.intervals.iter().map(IntervalResult::plan_length_s).fold(0.0, f64::max);
    let rate = |of: fn(&IntervalResult) -> Option<f64>| {
        move |i: &IntervalResult| of(i).filter(|_| i.length_s >= SHORTEST * usual)
    };
    let time = |of: fn(&IntervalResult) -> Option<u64>| move |i: &IntervalResult| of(i).map(|ns| ns as f64);
    let mut columns = vec![
        column("achieved_per_s", rate(|i| i.achieved_per_s)),
        column("failed_per_s", rate(|i| Some(i.failed as f64 / i.length_s))),
        column("timed_out_per_s", rate(|i| Some(i.timed_out as f64 / i.length_s))),
        column("in_flight", |i| Some(i.in_flight as f64)),
        column("connections", |i| Some(i.connections as f64)),
        column("p50", time(|i| i.response_time.p.p50)),
        column("p90", time(|i| i.response_time.p.p90)),
        column("p99", time(|i| i.response_time.p.p99)),
        column("p99.9", time(|i| i.response_time.p.p99_9)),
        column("max", time(|i| i.response_time.max)),
    ];
    if result.rate.target_per_s.is_some() {
        let scheduled = rate(|i| (!i.drain).then_some(i.scheduled as f64 / i.length_s));
        columns.insert(0, column("scheduled_per_s", scheduled));
    }
    let machines = || result.intervals.iter().filter_map(|interval| interval.machine.as_ref());
    let workers = machines().map(|machine| machine.workers.len()).max().unwrap_or(0);
    for worker in 0..workers.min(MOST_WORKERS) {
        let share = move |i: &IntervalResult| Some(i.machine.as_ref()?.workers.get(worker)?.cpu_share);
        columns.push(column(&format!("worker {worker}"), share));
    }
    if machines().any(|machine| machine.target.is_some()) {
        columns.push(column("target", |i| Some(i.machine.as_ref()?.target?.cpus)));
    }
    columns.extend(watched(result));
    columns
}

/// The figures of the servers that were watched; the CPU time of the target is among those of the threads.
fn watched(result: &RunResult) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (number, server) in result.generator.watched.iter().enumerate() {
        let used = move |i: &IntervalResult| i.machine.as_ref()?.watched.get(number)?.used;
        let name = server.title();
        if !server.is_target {
            columns.push((format!("server {name}"), Box::new(move |i| Some(used(i)?.cpus))));
        }
        let memory = move |i: &IntervalResult| Some(used(i)?.rss_bytes? as f64);
        columns.push((format!("memory {name}"), Box::new(memory)));
        if server.found_by == ADDRESS {
            continue;
        }
        let per_s = |bytes: Option<u64>, i: &IntervalResult| {
            let length = i.machine.as_ref()?.length_s;
            Some(bytes? as f64 / length).filter(|_| length > 0.0)
        };
        let written = move |i: &IntervalResult| per_s(used(i)?.disk_written_bytes, i);
        let read = move |i: &IntervalResult| per_s(used(i)?.disk_read_bytes, i);
        columns.push((format!("disk {name} written"), Box::new(written)));
        columns.push((format!("disk {name} read"), Box::new(read)));
        let descriptors = move |i: &IntervalResult| Some(used(i)?.descriptors? as f64);
        columns.push((format!("open {name} descriptors"), Box::new(descriptors)));
        let threads = move |i: &IntervalResult| Some(used(i)?.threads as f64);
        columns.push((format!("open {name} threads"), Box::new(threads)));
    }
    columns
}

impl Span {
    pub(super) fn of_run(result: &RunResult) -> Vec<Self> {
        let span = |from_s, to_s, kind, name: &str| Self { from_s, to_s, kind, name: name.to_owned() };
        let mut spans: Vec<Self> = result
            .phases
            .iter()
            .filter(|phase| phase.duration_s > 0.0)
            .map(|phase| {
                let kind = if phase.measured { "phase" } else { "warmup" };
                span(phase.at_s, phase.at_s + phase.duration_s, kind, &phase.name)
            })
            .collect();
        if spans.is_empty() && result.warmup_s > 0.0 {
            spans.push(span(0.0, result.warmup_s, "warmup", "warm-up"));
        }
        spans.extend(joined(result, "settling", "settling", |interval| interval.settling));
        spans.extend(joined(result, "drain", "drain", |interval| interval.drain));
        spans.extend(joined(result, "silent", "no responses", |interval| {
            interval.in_flight > 0 && interval.achieved_per_s == Some(0.0) && interval.failed == 0
        }));
        spans
    }
}

/// Parts in which consecutive intervals are of a kind.
fn joined(
    result: &RunResult,
    kind: &'static str,
    name: &str,
    is: impl Fn(&IntervalResult) -> bool,
) -> Vec<Span> {
    let intervals = || result.intervals.iter().filter(|interval| interval.length_s > 0.0);
    let mut spans: Vec<Span> = Vec::new();
    let earlier = iter::once(false).chain(intervals().map(&is));
    for (interval, continues) in intervals().zip(earlier) {
        match spans.last_mut() {
            _ if !is(interval) => {}
            Some(last) if continues => last.to_s = interval.at_s,
            _ => spans.push(Span {
                from_s: interval.at_s - interval.length_s,
                to_s: interval.at_s,
                kind,
                name: name.to_owned(),
            }),
        }
    }
    spans.truncate(MOST_MARKS);
    spans
}

impl Annotation {
    pub(super) fn of_run(result: &RunResult) -> Vec<Self> {
        let mut marks: Vec<Self> = Vec::new();
        for change in &result.rate.changes {
            let to = change.to_per_s.map_or(String::new(), |to| format!(" to {}", figure::per_second(to)));
            let text = format!("{}{to}, by {}", change.what, change.by);
            marks.push(Self { at_s: change.at_s, length_s: 0.0, kind: "change", text });
        }
        for fault in &result.faults {
            let not_done = fault.error.as_ref().map_or(String::new(), |error| format!(", not done: {error}"));
            let length_s = fault.until_s.map_or(0.0, |until| (until - fault.at_s).max(0.0));
            let text = format!("{}{not_done}", fault.title());
            marks.push(Self { at_s: fault.at_s, length_s, kind: "fault", text });
        }
        for (number, worker) in result.generator.workers.iter().enumerate() {
            for stall in &worker.stalls {
                let length = Nanos(stall.length_ns);
                let text = format!("worker {number} of the generator stalled for {}", figure::nanos(length));
                let length_s = length.as_secs_f64();
                marks.push(Self { at_s: stall.at_s, length_s, kind: "stall", text });
            }
        }
        for interval in result.intervals.iter().filter(|interval| interval.thresholds_failed > 0) {
            let text = match interval.thresholds_failed {
                1 => "a threshold did not hold".to_owned(),
                several => format!("{several} thresholds did not hold"),
            };
            let begin = interval.at_s - interval.length_s;
            marks.push(Self { at_s: begin, length_s: interval.length_s, kind: "threshold", text });
        }
        if let Some(at) = result.thresholds.iter().find_map(|threshold| threshold.windows?.first_failed_at_s)
            && marks.iter().all(|mark| mark.kind != "threshold")
        {
            let text = format!("a threshold did not hold in the window that ended at {}", seconds(at));
            marks.push(Self { at_s: at, length_s: 0.0, kind: "threshold", text });
        }
        // The longest marks are kept, and those that were asked for.
        marks.sort_by(|a, b| b.length_s.total_cmp(&a.length_s));
        let (asked, mut others): (Vec<_>, Vec<_>) =
            marks.into_iter().partition(|mark| matches!(mark.kind, "change" | "fault"));
        others.truncate(MOST_MARKS);
        others.extend(asked.into_iter().take(MOST_MARKS));
        others.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_and_the_largest_value_stay_in_their_order() {
        let of = |values: &[Option<f64>]| extremes(values.iter().copied());
        assert_eq!(of(&[Some(2.0), None, Some(9.0), Some(1.0)]), [Some(9.0), Some(1.0)]);
        assert_eq!(of(&[Some(1.0), Some(3.0), Some(2.0)]), [Some(1.0), Some(3.0)]);
        assert_eq!(of(&[None, None]), [None, None]);
    }
}
