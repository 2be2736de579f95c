//! The phases of a run in the report.

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;

use super::seconds;
use crate::contract::phase::{PhaseResult, PhaseTimes};
use crate::contract::result::RunResult;
use crate::render::layout::{Page, Row};

/// One line per phase.
pub(super) fn phases(page: &mut Page<'_>, result: &RunResult) {
    if result.phases.is_empty() {
        return;
    }
    let rows: Vec<Row> =
        (1_u32..).zip(&result.phases).map(|(number, phase)| row(number, phase, result)).collect();
    page.table(&["achieved", "ok", "failed", "timed out", "p50", "p99"], &rows);
    page.field("", "p50 and p99 are of the response time of what ended in the phase");
    page.blank();
}

fn row(number: u32, phase: &PhaseResult, result: &RunResult) -> Row {
    let times = &phase.response_time;
    let mut note = format!("{}, {}", phase.name, seconds(phase.duration_s));
    if let Some(asked) = result.pace_of(phase).asked_text() {
        note.push_str(&format!(" of {asked}"));
    }
    if !phase.measured {
        note.push_str(", not measured");
    }
    Row {
        label: format!("phase {number}"),
        cells: vec![
            phase.achieved_per_s.map_or("-".to_owned(), figure::per_second),
            figure::count(phase.ok),
            figure::count(phase.failed),
            figure::count(phase.timed_out),
            cell(times, "50", times.p.p50),
            cell(times, "99", times.p.p99),
        ],
        note,
    }
}

/// A figure of a phase, by its name.
pub(crate) fn cell(times: &PhaseTimes, name: &str, value: Option<u64>) -> String {
    let bound = if times.is_at_least(name) { "≥ " } else { "" };
    value.map_or("-".to_owned(), |value| format!("{bound}{}", figure::nanos(Nanos(value))))
}
