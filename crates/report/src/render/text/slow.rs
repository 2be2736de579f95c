//! Slow clients beside the load, as text.

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;

use crate::contract::result::RunResult;
use crate::render::layout::Page;

/// Writes the figures of the slow clients.
pub(super) fn slow_clients(page: &mut Page<'_>, result: &RunResult) {
    let Some(slow) = &result.slow_clients else { return };
    let count = figure::count;
    page.heading(&format!(
        "{} slow clients beside the load, {} B/s each",
        count(slow.clients),
        slow.bytes_per_s
    ));
    let under_way = format!("{} under way at the end", count(slow.in_flight_at_stop));
    let (started, ok, failed) = (count(slow.started), count(slow.ok), count(slow.failed));
    page.field("requests", &format!("{started} started = {ok} ok + {failed} failed + {under_way}"));
    if let Some(median) = slow.service_time.p.p50 {
        page.field("time", &format!("p50 {}", figure::nanos(Nanos(median))));
    }
    for (class, failed) in &slow.errors {
        let example = slow.error_examples.get(class).map_or(String::new(), |example| format!(": {example}"));
        page.field("", &format!("{} {class}{example}", count(*failed)));
    }
    page.field("connections", &format!("{} opened", count(slow.connections)));
    page.blank();
}
