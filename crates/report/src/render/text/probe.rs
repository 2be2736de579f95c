//! A probe beside the load, as text.

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;

use crate::contract::probe::Bias;
use crate::contract::result::RunResult;
use crate::render::layout::{Emphasis, Page, Row};

/// Writes the percentiles of the probe, and by how much those of the load exceed them.
pub(super) fn probe(page: &mut Page<'_>, result: &RunResult) {
    let Some(probe) = &result.probe else { return };
    let rate = probe.rate_per_s.map_or_else(String::new, |rate| format!(", {}", figure::per_second(rate)));
    page.heading(&format!("service time by a probe beside the load{rate}"));
    let rows: Vec<Row> = probe.bias.iter().map(|(name, bias)| row(name, bias)).collect();
    page.table(&["probe", "load", "difference", "beyond noise"], &rows);
    if rows.is_empty() {
        page.field("", "too few samples on either side to compare any percentile");
    }
    if probe.failed + probe.timed_out > 0 {
        let (failed, timed_out) = (figure::count(probe.failed), figure::count(probe.timed_out));
        page.field("", &format!("{failed} of the probe's requests failed, {timed_out} timed out"));
    }
    if !probe.valid {
        let reasons = format!(": {}; nothing follows from it", probe.invalid_reasons.join("; "));
        page.emphasised_field("", Emphasis::Doubtful, "the probe was not on time", &reasons);
    }
    page.blank();
}

fn row(name: &str, bias: &Bias) -> Row {
    let sign = if bias.difference_ns < 0 { "-" } else { "+" };
    let difference = figure::nanos(Nanos(bias.difference_ns.unsigned_abs()));
    let noise = match bias.beyond_noise {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    };
    Row {
        label: format!("p{name}"),
        cells: vec![
            figure::nanos(Nanos(bias.probe_ns)),
            figure::nanos(Nanos(bias.load_ns)),
            format!("{sign}{difference}"),
            noise.to_owned(),
        ],
        note: String::new(),
    }
}
