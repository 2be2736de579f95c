//! Records that were sent in batches, as text.

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;

use crate::contract::reconciliation::ReconciliationCheck;
use crate::contract::result::RunResult;
use crate::contract::timestamp::rfc3339;
use crate::render::layout::{Emphasis, Page};

/// From these shares of what was asked for on a store keeps up, or nearly: Arc's guide to load tests.
const EXCELLENT: f64 = 0.95;
const GOOD: f64 = 0.80;

/// One line about records.
pub(crate) struct Line {
    /// Topic; empty for more about the same.
    pub(crate) label: &'static str,
    /// A word in front that should be seen.
    pub(crate) word: Option<(Emphasis, String)>,
    /// The rest of it.
    pub(crate) rest: String,
}

impl Line {
    fn plain(label: &'static str, rest: String) -> Self {
        Self { label, word: None, rest }
    }

    /// The whole of it, without its label.
    pub(crate) fn text(&self) -> String {
        let word = self.word.as_ref().map_or("", |(_, word)| word);
        format!("{word}{}", self.rest)
    }
}

/// Returns lines on the records that were acknowledged, their share of those that were asked for, and whether
/// the store has them. Empty where requests carry none.
pub(crate) fn lines(result: &RunResult) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(records) = &result.records {
        let rate = records.acknowledged_per_s.map(|rate| format!(", {}", figure::per_second(rate)));
        let acknowledged = figure::count(records.acknowledged);
        lines
            .push(Line::plain("records", format!("{acknowledged} acknowledged{}", rate.unwrap_or_default())));
        if records.failed > 0 {
            let failed = figure::count(records.failed);
            let line = format!("{failed} in batches that failed; the store may have them or not");
            lines.push(Line::plain("", line));
        }
        if let (Some(target), Some(achieved)) = (records.target_per_s, records.achievement()) {
            // What cannot be believed says nothing of the store.
            let (emphasis, meaning) = match result.verdict.valid {
                true => meaning(achieved),
                false => (None, "the run is invalid, which says nothing of the store"),
            };
            let share = format!("{:.1} %", achieved * 100.0);
            let rest = format!(" of {} that were asked for: {meaning}", figure::per_second(target));
            lines.push(match emphasis {
                Some(emphasis) => Line { label: "", word: Some((emphasis, share)), rest },
                None => Line::plain("", format!("{share}{rest}")),
            });
        }
    }
    for check in result.reconciliation.iter().flat_map(|reconciliation| &reconciliation.checks) {
        let stored = format!("{} in {}", figure::count(check.stored), check.tables);
        let said = said(check);
        lines.push(match check.is_consistent() {
            true => Line::plain("stored", format!("{stored}: {said}")),
            false => Line {
                label: "stored",
                word: Some((Emphasis::Bad, "INCONSISTENT".to_owned())),
                rest: format!(": {stored}, {said}"),
            },
        });
    }
    for finding in result.reconciliation.iter().flat_map(|reconciliation| &reconciliation.findings) {
        let label = "checks";
        let rest = format!(" {}: {}", finding.check, finding.said);
        let (emphasis, word) =
            if finding.passed { (Emphasis::Good, "PASS") } else { (Emphasis::Bad, "FAIL") };
        lines.push(Line { label, word: Some((emphasis, word.to_owned())), rest });
        lines.extend(finding.evidence.iter().map(|evidence| Line::plain("", evidence.clone())));
    }
    for fault in &result.faults {
        let line = format!("{}: {}", fault.heading(), fault.said());
        lines.push(Line::plain("fault", line));
    }
    lines
}

/// The same on a page.
pub(super) fn records(page: &mut Page<'_>, result: &RunResult) {
    write(page, &lines(result));
}

/// Writes such lines.
pub(super) fn write(page: &mut Page<'_>, lines: &[Line]) {
    for Line { label, word, rest } in lines {
        match word {
            Some((emphasis, word)) => page.emphasised_field(label, *emphasis, word, rest),
            None => page.field(label, rest),
        }
    }
}

/// Describes the difference between the contents of a store and what it acknowledged.
pub(crate) fn said(check: &ReconciliationCheck) -> String {
    let found = [
        (check.missing, "acknowledged and not there"),
        (check.surplus, "there and never sent"),
        (check.duplicates.unwrap_or(0), "there more than once"),
        (check.misdated.unwrap_or(0), "at times that nobody sent"),
    ];
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", figure::count(*count)))
        .collect();
    if let (1.., Some((least, greatest))) = (check.misdated.unwrap_or(0), check.times_ms) {
        // Stores have times before 1970, and nobody sends them.
        let [least, greatest] =
            [least, greatest].map(|ms| rfc3339(Nanos::from_millis(u64::try_from(ms).unwrap_or(0))));
        wrong.push(format!("all that is there from {least} to {greatest}"));
    }
    if !wrong.is_empty() {
        return wrong.join(", ");
    }
    let once = if check.duplicates.is_some() { ", each once" } else { "" };
    match check.stored - check.acknowledged {
        0 => format!("all that were acknowledged{once}"),
        more => format!(
            "all that were acknowledged, and {} of the {} whose fate was not known{once}",
            figure::count(more),
            figure::count(check.uncertain)
        ),
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
    use crate::contract::records::RecordsResult;

    #[test]
    fn shares_mean_what_the_guide_says() {
        assert!(meaning(0.96).1.starts_with("excellent"));
        assert!(meaning(0.95).1.starts_with("good") && meaning(0.80).1.starts_with("good"));
        assert!(matches!(meaning(0.79).0, Some(Emphasis::Doubtful)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check =
            |stored, duplicates| said(&ReconciliationCheck::new("a.b", (1_000, 200), stored, duplicates));
        assert_eq!(check(1_000, None), "all that were acknowledged");
        assert_eq!(
            check(1_100, Some(0)),
            "all that were acknowledged, and 100 of the 200 whose fate was not known, each once"
        );
        assert_eq!(check(900, Some(7)), "100 acknowledged and not there, 7 there more than once");
        assert_eq!(check(1_300, None), "100 there and never sent");
        let misdated = ReconciliationCheck::new("a.b", (1_000, 0), 1_000, None)
            .with_times(Some(1_000), Some((1_795_000, 1_796_500)));
        assert_eq!(
            said(&misdated),
            "1,000 at times that nobody sent, all that is there from 1970-01-01T00:29:55.000Z to \
             1970-01-01T00:29:56.500Z"
        );
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
