//! Records that were sent in batches: their counts, and the records that the store has.

use plimsoll_core::{Nanos, figure};

use super::{Fact, Span, line};
use crate::build::fault::FaultResult;
use crate::contract::reconciliation::ReconciliationCheck;
use crate::contract::result::RunResult;
use crate::contract::timestamp::rfc3339;
use crate::render::layout::Emphasis;

/// Shares of the wanted rate from which a store keeps up, or nearly: Arc's guide to load tests.
const EXCELLENT: f64 = 0.95;
const GOOD: f64 = 0.80;

/// Returns the records that were acknowledged, their share of those that were asked for, checks of the store,
/// and faults. Empty where requests carry no records and nothing was checked.
pub(super) fn facts(result: &RunResult) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(records) = &result.records {
        let rate = records.acknowledged_per_s.map(|rate| format!(", {}", figure::per_second(rate)));
        let acknowledged = figure::count(records.acknowledged);
        let rate = rate.unwrap_or_default();
        facts.push(Fact::new("records", format!("{acknowledged} acknowledged{rate}")));
        if records.failed > 0 {
            let failed = figure::count(records.failed);
            let text = format!("{failed} in batches that failed; the store may have them or not");
            facts.push(Fact::new("", text));
        }
        if let (Some(target), Some(achieved)) = (records.target_per_s, records.achievement()) {
            // The rate of an invalid run says nothing about the store.
            let (emphasis, meaning) = match result.verdict.valid {
                true => meaning(achieved),
                false => (Emphasis::Plain, "the run is invalid, which says nothing of the store"),
            };
            let share = Span::emphasised(emphasis, format!("{:.1} %", achieved * 100.0));
            let rest = format!(" of {} that were asked for: {meaning}", figure::per_second(target));
            facts.push(Fact::new("", line![share, rest]));
        }
    }
    for check in result.reconciliation.iter().flat_map(|reconciliation| &reconciliation.checks) {
        let stored = format!("{} in {}", figure::count(check.stored), check.tables);
        let said = said(check);
        facts.push(match check.is_consistent() {
            true => Fact::new("stored", format!("{stored}: {said}")),
            false => {
                let word = Span::emphasised(Emphasis::Bad, "INCONSISTENT");
                Fact::new("stored", line![word, format!(": {stored}, {said}")])
            }
        });
    }
    for finding in result.reconciliation.iter().flat_map(|reconciliation| &reconciliation.findings) {
        let (emphasis, word) =
            if finding.passed { (Emphasis::Good, "PASS") } else { (Emphasis::Bad, "FAIL") };
        let rest = format!(" {}: {}", finding.check, finding.said);
        facts.push(Fact::new("checks", line![Span::emphasised(emphasis, word), rest]));
        facts.extend(finding.evidence.iter().map(|evidence| Fact::new("", evidence.as_str())));
    }
    let fault = |fault: &FaultResult| Fact::new("fault", format!("{}: {}", fault.heading(), fault.said()));
    facts.extend(result.faults.iter().map(fault));
    facts
}

/// Describes the difference between the contents of a store and the acknowledged records.
pub(crate) fn said(check: &ReconciliationCheck) -> String {
    let found = [
        (check.missing, "acknowledged and missing"),
        (check.surplus, "stored but never sent"),
        (check.duplicates.unwrap_or(0), "stored more than once"),
        (check.misdated.unwrap_or(0), "at times that were never sent"),
    ];
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", figure::count(*count)))
        .collect();
    if let (1.., Some((least, greatest))) = (check.misdated.unwrap_or(0), check.times_ms) {
        // Stores have times before 1970, which no client sends.
        let [least, greatest] =
            [least, greatest].map(|ms| rfc3339(Nanos::from_millis(u64::try_from(ms).unwrap_or(0))));
        wrong.push(format!("all stored records from {least} to {greatest}"));
    }
    if !wrong.is_empty() {
        return wrong.join(", ");
    }
    let once = if check.duplicates.is_some() { ", each once" } else { "" };
    match check.stored.saturating_sub(check.acknowledged) {
        0 => format!("all that were acknowledged{once}"),
        more => format!(
            "all that were acknowledged, and {} of the {} of unknown fate{once}",
            figure::count(more),
            figure::count(check.uncertain)
        ),
    }
}

fn meaning(achieved: f64) -> (Emphasis, &'static str) {
    match achieved {
        share if share > EXCELLENT => (Emphasis::Plain, "excellent, the store keeps up"),
        share if share >= GOOD => (Emphasis::Plain, "good, with a small bottleneck"),
        _ => (
            Emphasis::Doubtful,
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
        assert_eq!(meaning(0.79).0, Emphasis::Doubtful);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check =
            |stored, duplicates| said(&ReconciliationCheck::new("a.b", (1_000, 200), stored, duplicates));
        assert_eq!(check(1_000, None), "all that were acknowledged");
        assert_eq!(
            check(1_100, Some(0)),
            "all that were acknowledged, and 100 of the 200 of unknown fate, each once"
        );
        assert_eq!(check(900, Some(7)), "100 acknowledged and missing, 7 stored more than once");
        assert_eq!(check(1_300, None), "100 stored but never sent");
        let misdated = ReconciliationCheck::new("a.b", (1_000, 0), 1_000, None)
            .with_times(Some(1_000), Some((1_795_000, 1_796_500)));
        assert_eq!(
            said(&misdated),
            "1,000 at times that were never sent, all stored records from 1970-01-01T00:29:55.000Z to \
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
