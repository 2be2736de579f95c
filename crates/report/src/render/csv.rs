//! The intervals of a run as a table, for spreadsheets and plots.

use std::fmt::Write as _;

use crate::contract::machine::ProcessResult;
use crate::contract::metric::IntervalMetric;
use crate::contract::result::{IntervalResult, RunResult};
use crate::contract::watched::WatchedInterval;

/// Times in nanoseconds; a figure that does not exist, for lack of samples, is an empty cell.
const HEADER: &str = "at_s,length_s,warmup,scheduled,started,ok,failed,timed_out,in_flight,connections,\
                      achieved_per_s,p50_ns,p90_ns,p99_ns,p99.9_ns,max_ns,drain,thresholds_failed\n";

/// Columns of each server that was watched, behind its number from 1 on and in the order of
/// `generator.watched`. Bytes and calls are those of the interval.
const WATCHED: [&str; 10] = [
    "processes",
    "cpus",
    "system_cpus",
    "rss_bytes",
    "threads",
    "descriptors",
    "disk_read_bytes",
    "disk_written_bytes",
    "read_calls",
    "write_calls",
];

/// One header line and one row per interval. All cells are figures or `true` and `false`: nothing is quoted.
pub(crate) fn intervals(result: &RunResult) -> String {
    let mut out = HEADER.trim_end().to_owned();
    let servers = result.generator.watched.len();
    for number in 1..=servers {
        WATCHED.iter().for_each(|name| out.push_str(&format!(",watched_{number}_{name}")));
    }
    for metric in &result.metrics {
        IntervalMetric::columns(&metric.name, metric.kind).for_each(|column| {
            out.push(',');
            out.push_str(&column);
        });
    }
    out.push('\n');
    for interval in &result.intervals {
        row(&mut out, interval);
        let machine = interval.machine.as_ref();
        for number in 0..servers {
            watched(&mut out, machine.and_then(|machine| machine.watched.get(number)));
        }
        for metric in &result.metrics {
            let seen = interval.metrics.iter().find(|one| one.name == metric.name);
            IntervalMetric::cells(seen, metric.kind).for_each(|cell| {
                out.push(',');
                out.push_str(&cell);
            });
        }
        out.push('\n');
    }
    out
}

/// The cells of a server; unknown ones are empty.
fn watched(out: &mut String, seen: Option<&WatchedInterval>) {
    let used = seen.and_then(|seen| seen.used);
    let count = |of: fn(&ProcessResult) -> Option<u64>| used.as_ref().and_then(of);
    let share = |of: fn(&ProcessResult) -> Option<f64>| used.as_ref().and_then(of);
    let text = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let cells = [
        text(seen.map(|seen| seen.processes)),
        number(share(|used| Some(used.cpus))),
        number(share(|used| used.system_cpus)),
        text(count(|used| used.rss_bytes)),
        text(count(|used| Some(used.threads))),
        text(count(|used| used.descriptors)),
        text(count(|used| used.disk_read_bytes)),
        text(count(|used| used.disk_written_bytes)),
        text(count(|used| used.read_calls)),
        text(count(|used| used.write_calls)),
    ];
    cells.iter().for_each(|cell| {
        out.push(',');
        out.push_str(cell);
    });
}

fn row(out: &mut String, interval: &IntervalResult) {
    let IntervalResult { at_s, length_s, warmup, scheduled, started, ok, failed, timed_out, .. } = interval;
    let IntervalResult { in_flight, connections, response_time, drain, thresholds_failed, .. } = interval;
    let achieved = interval.achieved_per_s.map_or(String::new(), |rate| format!("{rate:.3}"));
    let times = [
        response_time.p.p50,
        response_time.p.p90,
        response_time.p.p99,
        response_time.p.p99_9,
        response_time.max,
    ]
    .map(|time| time.map_or(String::new(), |time| time.to_string()))
    .join(",");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{at_s:.3},{length_s:.3},{warmup},{scheduled},{started},{ok},{failed},{timed_out},{in_flight},{connections},\
         {achieved},{times},{drain},{thresholds_failed}"
    );
}
