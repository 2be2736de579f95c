//! Figures of a load on a cache beside those of every load.

use plimsoll_app::{Note, hits_note};
use plimsoll_report::RunResult;

use crate::load::{CARBON_AVERAGE_MS, GET, Targets};

/// Returns the notes of a result: the average as Carbon computes it, where its targets are asked for, and
/// hits and misses.
pub(crate) fn notes(targets: Targets, result: &RunResult) -> Vec<Note> {
    let mut notes = Vec::new();
    let (good, mean) = (result.accounting.ok, result.response_time.mean);
    if let (Targets::Carbon, 1.., Some(mean)) = (targets, good, mean) {
        let text = averages(result.duration_s * 1e3 / good as f64, mean);
        notes.push(Note { code: "average", text, is_told: true });
    }
    notes.extend(hits_note(result, GET, "values are stored by --mix put, or --mix put+get"));
    notes
}

/// The wall time by the operations in milliseconds, which is the average as Carbon computes it, and the mean
/// response time in nanoseconds.
fn averages(wall_ms: f64, mean_ns: u64) -> String {
    let verdict = if wall_ms < CARBON_AVERAGE_MS { "PASS" } else { "FAIL" };
    format!(
        "average: {wall_ms:.4} ms by Carbon's formula, wall time / operations (target {CARBON_AVERAGE_MS} ms: \
         {verdict}); {:.4} ms is the mean of the response times",
        mean_ns as f64 / 1e6
    )
}
