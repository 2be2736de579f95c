//! Records that were sent in batches, as text.

use plimsoll_metrics::figure;

use crate::layout::{Emphasis, Page};
use crate::result::RunResult;

/// From these shares of what was asked for on a store keeps up, or nearly: Arc's guide to load tests.
const EXCELLENT: f64 = 0.95;
const GOOD: f64 = 0.80;

/// How many records were acknowledged, and what share of those that were asked for that is.
pub(super) fn records(page: &mut Page<'_>, result: &RunResult) {
    let Some(records) = &result.records else { return };
    let rate = records.acknowledged_per_s.map(|rate| format!(", {}", figure::per_second(rate)));
    let line = format!("{} acknowledged{}", figure::count(records.acknowledged), rate.unwrap_or_default());
    page.field("records", &line);
    if records.failed > 0 {
        let line = format!(
            "{} in batches that failed; the store may have them or not",
            figure::count(records.failed)
        );
        page.field("", &line);
    }
    if let (Some(target), Some(achieved)) = (records.target_per_s, records.achievement()) {
        let (emphasis, meaning) = meaning(achieved);
        let share = format!("{:.1} %", achieved * 100.0);
        let rest = format!(" of {} that were asked for: {meaning}", figure::per_second(target));
        match emphasis {
            Some(emphasis) => page.emphasised_field("", emphasis, &share, &rest),
            None => page.field("", &format!("{share}{rest}")),
        }
    }
}

fn meaning(achieved: f64) -> (Option<Emphasis>, &'static str) {
    match achieved {
        share if share > EXCELLENT => (None, "excellent, the store keeps up"),
        share if share >= GOOD => (None, "good, with a small bottleneck"),
        _ => (
            Some(Emphasis::Doubtful),
            "look at the verdict, then at the store's CPU, disk and network (--watch-process NAME)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::RecordsResult;

    #[test]
    fn shares_mean_what_the_guide_says() {
        assert!(meaning(0.96).1.starts_with("excellent"));
        assert!(meaning(0.95).1.starts_with("good") && meaning(0.80).1.starts_with("good"));
        assert!(matches!(meaning(0.79).0, Some(Emphasis::Doubtful)));
    }

    #[test]
    fn without_a_rate_there_is_no_share() {
        let records =
            RecordsResult { acknowledged: 5, failed: 0, acknowledged_per_s: Some(5.0), target_per_s: None };
        assert_eq!(records.achievement(), None);
        let asked = RecordsResult { target_per_s: Some(10.0), ..records };
        assert_eq!(asked.achievement(), Some(0.5));
    }
}
