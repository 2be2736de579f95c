//! Reconciliation: a check that a store has the records that it acknowledged.

use plimsoll_core::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The check whether a cluster takes writes: what does not is all that there is to say.
const WRITABLE: &str = "writable";
/// Checks of how a cluster works, and not of what it has stored.
const OPERATION: [&str; 5] = [WRITABLE, ACKNOWLEDGED, "error_share", "survival", "staleness"];
/// The check that of the writes at least one was acknowledged, of which there is a finding only if not.
pub const ACKNOWLEDGED: &str = "acknowledged";

/// Records that a store has of a run, against those that it acknowledged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciliation {
    /// Name or address of the system that was checked.
    pub store: String,
    /// True if all checks and findings are as they should be.
    pub consistent: bool,
    /// Each part of the load.
    pub checks: Vec<ReconciliationCheck>,
    /// Findings of further checks: whether all nodes have the same, whether it outlives them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ConsistencyFinding>,
}

/// The finding of one check of the system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConsistencyFinding {
    /// Which check: "convergence", "persistence"…
    pub check: String,
    /// True if it is as it should be.
    pub passed: bool,
    /// Duration of the check in seconds.
    pub took_s: f64,
    /// One sentence with figures.
    pub said: String,
    /// The first particular problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// The records of one part of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReconciliationCheck {
    /// The tables that they went to.
    pub tables: String,
    /// Records that the store acknowledged: it has to have them.
    pub acknowledged: u64,
    /// Records of batches that failed, timed out, were under way at the end or not measured: it may have
    /// them.
    pub uncertain: u64,
    /// Records that it has, without those that were there before.
    pub stored: u64,
    /// Acknowledged records that it does not have, at least.
    pub missing: u64,
    /// Records that it has and that were never sent.
    pub surplus: u64,
    /// Records with an id that another one has; null where they have none, or where batches are sent again.
    pub duplicates: Option<u64>,
    /// Records that it has at times that no record of the load has; null where it cannot be asked for them.
    #[serde(default)]
    pub misdated: Option<u64>,
    /// The least and the greatest time of all records of the tables, in milliseconds since the epoch; null
    /// where they were not asked for.
    #[serde(default)]
    pub times_ms: Option<(i64, i64)>,
}

impl ConsistencyFinding {
    /// Makes a finding. Its duration is rounded to the millisecond.
    pub fn new(check: &str, passed: bool, took: Nanos, said: String, evidence: Vec<String>) -> Self {
        let took_s = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
        Self { check: check.to_owned(), passed, took_s, said, evidence }
    }
}

impl Reconciliation {
    /// The whole of these checks.
    pub fn new(store: &str, checks: Vec<ReconciliationCheck>) -> Self {
        let consistent = checks.iter().all(ReconciliationCheck::is_consistent);
        Self { store: store.to_owned(), consistent, checks, findings: Vec::new() }
    }

    /// Returns the problem in a sentence; `None` if there is none. If writes are no longer taken, or
    /// something else in the operation of the cluster has failed, the sentence is that of the finding.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        let failed = || self.findings.iter().filter(|finding| !finding.passed);
        let of_operation = |finding: &&ConsistencyFinding| OPERATION.contains(&finding.check.as_str());
        let stored = self.checks.iter().all(ReconciliationCheck::is_consistent)
            && failed().all(|finding| of_operation(&finding));
        let writable = failed().find(|finding| finding.check == WRITABLE);
        let first = writable.or_else(|| failed().find(|_| stored));
        (!self.consistent).then(|| match first {
            Some(finding) => finding.said.split(';').next().unwrap_or_default().to_owned(),
            None => "the server's contents differ from what it acknowledged".to_owned(),
        })
    }

    /// Adds the findings of further checks.
    #[must_use]
    pub fn with_findings(mut self, findings: Vec<ConsistencyFinding>) -> Self {
        self.consistent &= findings.iter().all(|finding| finding.passed);
        self.findings.extend(findings);
        self
    }
}

impl ReconciliationCheck {
    /// The check of what was `sent` (acknowledged, and uncertain) by what there is.
    pub fn new(
        tables: &str,
        (acknowledged, uncertain): (u64, u64),
        stored: u64,
        duplicates: Option<u64>,
    ) -> Self {
        Self {
            tables: tables.to_owned(),
            acknowledged,
            uncertain,
            stored,
            missing: acknowledged.saturating_sub(stored),
            surplus: stored.saturating_sub(acknowledged + uncertain),
            duplicates,
            misdated: None,
            times_ms: None,
        }
    }

    /// Sets how many records are `misdated`, and the least and the greatest time of all records of the
    /// tables, in milliseconds since the epoch.
    #[must_use]
    pub fn with_times(self, misdated: Option<u64>, times_ms: Option<(i64, i64)>) -> Self {
        Self { misdated, times_ms, ..self }
    }

    /// Returns `true` if no record is missing, none is there that was not sent, none is there twice, and all
    /// have the times that they were sent with.
    pub fn is_consistent(&self) -> bool {
        self.missing == 0
            && self.surplus == 0
            && self.duplicates.unwrap_or(0) == 0
            && self.misdated.unwrap_or(0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_uncertain_may_be_there_or_not() {
        let check = |stored, duplicates| ReconciliationCheck::new("a.b", (100, 20), stored, duplicates);
        for stored in [100, 110, 120] {
            assert!(check(stored, Some(0)).is_consistent(), "{stored}");
        }
        assert_eq!((check(99, None).missing, check(99, None).is_consistent()), (1, false));
        assert_eq!((check(125, None).surplus, check(125, None).is_consistent()), (5, false));
        // As many are lost as there are twice.
        assert!(!check(100, Some(3)).is_consistent());
        // All are there, in another year.
        assert!(check(100, None).with_times(Some(0), Some((5, 9))).is_consistent());
        assert!(!check(100, None).with_times(Some(1), Some((0, 9))).is_consistent());
        let all = Reconciliation::new("arc", vec![check(100, None), check(90, None)]);
        assert!(!all.consistent && all.checks[0].is_consistent());
    }

    #[test]
    fn a_sentence_says_what_is_wrong() {
        let finding = |check: &str, passed, said: &str| {
            ConsistencyFinding::new(check, passed, Nanos::ZERO, said.to_owned(), Vec::new())
        };
        let said = |findings: Vec<ConsistencyFinding>| {
            Reconciliation::new("x", Vec::new()).with_findings(findings).inconsistency()
        };
        let errors = || finding("error_share", false, "3 of 4 requests failed: 75.00 %");
        let lost = || finding("convergence", false, "node 0 has 3 items");
        let writable =
            || finding("writable", false, "takes no writes since 1.0 s into the load; waited for 10 s");
        assert_eq!(said(vec![finding("writable", true, "takes writes")]), None);
        assert_eq!(said(vec![errors()]).as_deref(), Some("3 of 4 requests failed: 75.00 %"));
        let stored = "the server's contents differ from what it acknowledged";
        assert_eq!(said(vec![errors(), lost()]).as_deref(), Some(stored));
        let refused = || finding(ACKNOWLEDGED, false, "0 of 20 writes were acknowledged; nothing was shown");
        assert_eq!(said(vec![refused()]).as_deref(), Some("0 of 20 writes were acknowledged"));
        assert_eq!(said(vec![refused(), lost()]).as_deref(), Some(stored));
        let none = "takes no writes since 1.0 s into the load";
        assert_eq!(said(vec![errors(), lost(), writable()]).as_deref(), Some(none));
    }
}
