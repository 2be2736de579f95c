//! What a result says of itself, by rules that hold in every version.

use std::collections::BTreeSet;

use plimsoll_metrics::LimitedBy;
use serde::Deserialize as _;
use serde_json::Value;

use super::Contradiction;
use crate::RunResult;
use crate::result::Thresholds;

/// Statements of a result that contradict others in it: its outcome, the cause, the codes of its findings,
/// and the thresholds together.
pub(super) fn broken(result: &Value) -> Vec<Contradiction> {
    let Ok(result) = RunResult::deserialize(result) else {
        let reason = "it has not the fields of a result".to_owned();
        return vec![Contradiction { place: String::new(), reason }];
    };
    let mut broken = Vec::new();
    let mut check = |place: &str, stated: &str, follows: &str| {
        if stated != follows {
            let reason = format!("{stated} is stated, and {follows} follows from the rest of the result");
            broken.push(Contradiction { place: place.to_owned(), reason });
        }
    };
    let verdict = &result.verdict;
    let thresholds = match &*result.thresholds {
        [] => Thresholds::None,
        all if all.iter().all(|one| one.passed) => Thresholds::Pass,
        _ => Thresholds::Fail,
    };
    check("/verdict/thresholds", &format!("{:?}", verdict.thresholds), &format!("{thresholds:?}"));
    check("/verdict/valid", &verdict.valid.to_string(), &verdict.invalid_reasons.is_empty().to_string());
    let codes: BTreeSet<&str> = verdict.evidence.iter().map(|finding| finding.code.as_str()).collect();
    let reasons: BTreeSet<&str> = verdict.invalid_reasons.iter().map(String::as_str).collect();
    check("/verdict/invalid_reasons", &format!("{reasons:?}"), &format!("{codes:?}"));
    let limit = LimitedBy::from_name(&verdict.limited_by.what).unwrap_or_default().name();
    check("/verdict/limited_by/what", &verdict.limited_by.what, limit);
    // Results of the first versions have no headline.
    if !verdict.summary.is_empty() {
        let mut again = result.clone();
        again.restate();
        let cause = |result: &RunResult| result.verdict.cause.map_or("none", |cause| cause.name());
        check("/verdict/outcome", verdict.outcome.word(), again.verdict.outcome.word());
        check("/verdict/cause", cause(&result), cause(&again));
    }
    broken
}
