//! A capacity search for people: the answer, then the curve it rests on.

use plimsoll_metrics::figure;

use crate::Style;
use crate::contract::capacity::{CapacityResult, LevelResult, TrialResult};
use crate::contract::trial::TrialFigures;
use crate::render::layout::{Emphasis, Page, Row};

/// The whole page.
pub(crate) fn page(result: &CapacityResult, style: &Style) -> String {
    let mut page = Page::new(style);
    let (search, capacity) = (&result.search, &result.capacity);
    page.heading(&format!("{} {} · search {}", result.tool.name, result.tool.version, search.id));
    page.field("slo", &search.slo.join(" and "));
    page.field("load", &search.load);
    let circumstances = format!(
        "{}, seed {}, plan {}, {:.0} s, on {} ({} CPUs, {})",
        search.started_at,
        search.seed,
        search.plan_hash,
        search.duration_s,
        search.host.hostname,
        search.host.cpus,
        search.host.kernel
    );
    page.field("search", &circumstances);
    page.blank();
    let emphasis = match (capacity.low_per_s, capacity.high_per_s) {
        (Some(_), Some(_)) if capacity.confirmed => Emphasis::Good,
        (Some(_), _) => Emphasis::Doubtful,
        _ => Emphasis::Bad,
    };
    page.emphasised_field("capacity", emphasis, &interval(result), &format!(": {}", capacity.statement));
    for note in &capacity.notes {
        page.field("note", note);
    }
    page.blank();
    let rows: Vec<Row> = result.levels.iter().map(|level| row(level, result)).collect();
    let heads: Vec<&str> = ["rate/s"].into_iter().chain(TrialFigures::HEADS).chain(["measured"]).collect();
    page.table(&heads, &rows);
    page.finish()
}

/// `800 to 835.4 /s`, or its known part.
fn interval(result: &CapacityResult) -> String {
    let rate = |rate: f64| figure::per_second_of("iterations", rate);
    let plain = |value: f64| match result.capacity.requests_per_iteration {
        Some(1.0) => figure::per_second(value),
        _ => rate(value),
    };
    match (result.capacity.low_per_s, result.capacity.high_per_s) {
        (Some(low), Some(high)) => format!("{} to {}", plain(low), plain(high)),
        (Some(low), None) => format!("at least {}", plain(low)),
        (None, Some(high)) => format!("less than {}", plain(high)),
        (None, None) => "unknown".to_owned(),
    }
}

/// A level, with the figures of its longest trial.
fn row(level: &LevelResult, result: &CapacityResult) -> Row {
    let of_level = |trial: &&TrialResult| trial.rate_per_s == level.rate_per_s && trial.after_per_s.is_none();
    // A trial that the generator spoiled says something about the generator only.
    let rank = |trial: &TrialResult| (trial.finding != "not_applied", trial.figures.measured_s);
    let longest = result.trials.iter().filter(of_level).max_by(|a, b| {
        let ((a_applied, a), (b_applied, b)) = (rank(a), rank(b));
        a_applied.cmp(&b_applied).then(a.total_cmp(&b))
    });
    let mut cells = vec![figure::per_second(level.rate_per_s)];
    let figures = longest.map(|trial| trial.figures.cells());
    cells.extend(figures.unwrap_or_else(|| vec![String::new(); TrialFigures::HEADS.len()]));
    cells.push(format!("{:.1} s", level.measured_s));
    Row { label: level.finding.replace('_', " "), cells, note: String::new() }
}
