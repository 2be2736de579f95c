//! The intervals of a run as a table, for spreadsheets and plots.

use std::fmt::Write as _;

use crate::result::{IntervalResult, RunResult};

/// Times in nanoseconds; a figure that does not exist, for want of samples, is an empty cell.
const HEADER: &str = "at_s,length_s,warmup,scheduled,started,ok,failed,timed_out,in_flight,connections,\
                      achieved_per_s,p50_ns,p90_ns,p99_ns,p99.9_ns,max_ns,drain,thresholds_failed\n";

/// One header line and one row per interval. All cells are figures or `true` and `false`: nothing is quoted.
pub(crate) fn intervals(result: &RunResult) -> String {
    let mut out = HEADER.to_owned();
    for interval in &result.intervals {
        row(&mut out, interval);
    }
    out
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
    let _ = writeln!(
        out,
        "{at_s:.3},{length_s:.3},{warmup},{scheduled},{started},{ok},{failed},{timed_out},{in_flight},{connections},\
         {achieved},{times},{drain},{thresholds_failed}"
    );
}
