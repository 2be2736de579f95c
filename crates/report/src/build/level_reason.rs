//! Reasons for the findings of the rates of a search, in words.

use std::collections::BTreeMap;

use plimsoll_core::{Nanos, figure};
use plimsoll_statistics::Doubt;

use crate::capacity::{LevelResult, ShareResult};
use crate::contract::trial::TrialFigures;

/// Everything that the finding of a rate follows from.
pub(crate) struct Reasons<'a> {
    /// The finding, and the shares of bad requests by objective.
    pub(crate) level: &'a LevelResult,
    /// The reason why the rate is not the end of the capacity that its finding suggests.
    pub(crate) doubt: Option<Doubt>,
    /// Requests that were counted for each objective.
    pub(crate) counts: Vec<u64>,
    /// Trials that the finding rests on.
    pub(crate) trials: usize,
    /// Requests that failed in them, if some did.
    pub(crate) failures: Option<Failures>,
    /// Length of the shortest trial.
    pub(crate) unit: Nanos,
}

/// Failed requests of some trials.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failures {
    /// Their share of the requests that ended.
    pub(crate) share: f64,
    /// Commonest end of these requests: `status 429`, `no answer in time`.
    pub(crate) mostly: String,
}

impl Failures {
    /// Failures that make up this part of the requests that break an objective are why it breaks.
    const MOST: f64 = 0.5;

    /// The failed requests of these trials, and their commonest end; `None` if none failed.
    pub(crate) fn of<'f>(trials: impl Iterator<Item = &'f TrialFigures>) -> Option<Self> {
        let (mut kinds, mut statuses) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
        let mut ended = 0.0;
        for figures in trials {
            let failed = figures.errors.values().sum::<u64>() + figures.timed_out;
            ended += match figures.error_rate > 0.0 {
                true => failed as f64 / figures.error_rate,
                false => figures.achieved_per_s * figures.measured_s,
            };
            let timed_out = Some(("no answer in time", figures.timed_out));
            let classes = figures.errors.iter().map(|(class, count)| (class.as_str(), *count));
            for (kind, count) in classes.chain(timed_out) {
                *kinds.entry(kind).or_default() += count;
            }
            for (status, count) in &figures.statuses {
                *statuses.entry(status).or_default() += count;
            }
        }
        let failed: u64 = kinds.values().sum();
        let (kind, count) =
            kinds.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)?;
        // Of a class of statuses the commonest is told, unless answers of that class were allowed as well.
        let of_class = kind.strip_prefix("status_").and_then(|class| class.strip_suffix("xx"));
        let status = of_class.and_then(|first| {
            statuses.retain(|status, _| status.starts_with(first));
            let is_all = statuses.values().sum::<u64>() <= count;
            let commonest = statuses.iter().max_by_key(|(_, count)| **count).filter(|_| is_all);
            commonest.map(|(status, _)| format!("status {status}"))
        });
        let mostly = status.unwrap_or_else(|| kind.replace('_', " "));
        (ended > 0.0).then(|| Self { share: (failed as f64 / ended).min(1.0), mostly })
    }

    /// The failures in words, if they are most of the requests that break an objective on other figures.
    fn behind(&self, share: &ShareResult) -> Option<String> {
        // Objectives on failures say so themselves.
        let is_of_errors = ["error", "status_", "timed_out"].iter().any(|name| share.slo.starts_with(name));
        let is_most = self.share >= share.share.unwrap_or_default() * Self::MOST;
        (is_most && !is_of_errors)
            .then(|| format!("{} failed, mostly with {}", figure::share(self.share), self.mostly))
    }
}

impl Reasons<'_> {
    /// The reason for the finding, where the figures of the longest trial or the answer of the search suggest
    /// another one.
    pub(crate) fn in_words(&self) -> Option<String> {
        let doubt = self.doubt.map(|doubt| self.doubted(doubt));
        let shares = match self.level.finding.as_str() {
            "unclear" if doubt.is_none() => Some(self.undecided()),
            "breaks" => self.broken(),
            _ => None,
        };
        doubt.into_iter().chain(shares).reduce(|one, other| format!("{one}; {other}"))
    }

    fn doubted(&self, doubt: Doubt) -> String {
        let held = figure::nanos(Nanos::from_secs_f64(self.level.measured_s));
        match doubt {
            Doubt::TooShort(needed) => {
                let needed = figure::nanos(Nanos::from_secs_f64(needed * self.unit.as_secs_f64()));
                format!("held for {held}: not long enough to count ({needed} are)")
            }
            Doubt::NotSure => format!("held for {held}, and not surely enough to count (99.9 %)"),
            Doubt::LowerBreaks(rate) => format!("held for {held}, but {} breaks", figure::per_second(rate)),
            Doubt::Disputed => "broke once, and not in a later trial".to_owned(),
            Doubt::Outvoted if self.level.finding == "holds" => {
                format!("held for {held}, but all trials together put the capacity below it")
            }
            Doubt::Outvoted => "broke, but all trials together may put the capacity above it".to_owned(),
        }
    }

    /// The first share that shows neither that its objective holds nor that it does not.
    fn undecided(&self) -> String {
        let open = |(share, count): (&ShareResult, &u64)| {
            let (bad, limit) = (share.in_words(), figure::share(share.limit));
            let count = figure::count(*count);
            let is_open = share.holds().is_none();
            is_open.then(|| format!("{bad} of {count} requests broke {} (limit {limit})", share.slo))
        };
        // What few requests do not tell of one objective, they mostly do not of the others.
        let first = self.level.shares.iter().zip(&self.counts).find_map(open);
        first.map_or_else(
            || "too few requests to tell".to_owned(),
            |first| format!("too few requests to tell: {first}"),
        )
    }

    /// The objective that a rate breaks, by all of its trials: the figures are those of one.
    fn broken(&self) -> Option<String> {
        let failed = |share: &ShareResult| self.failures.as_ref().and_then(|failures| failures.behind(share));
        let fails =
            self.level.shares.iter().any(|share| share.holds() == Some(false) && failed(share).is_some());
        if self.trials < 2 && self.doubt.is_none() && !fails {
            return None;
        }
        let of = if self.trials < 2 { String::new() } else { format!("in its {} trials ", self.trials) };
        let broken = |(share, count): (&ShareResult, &u64)| {
            let is_broken = share.holds() == Some(false);
            let count = figure::count(*count);
            let why = failed(share).map(|why| format!(" ({why})")).unwrap_or_default();
            is_broken
                .then(|| format!("{of}{} of {count} requests broke {}{why}", share.in_words(), share.slo))
        };
        let broken = self.level.shares.iter().zip(&self.counts).find_map(broken);
        broken.or_else(|| {
            self.level.is_overloaded().then(|| format!("{of}requests came faster than they were answered"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: "11.3 % of 337 requests broke p99<50ms" of a server whose p90 was 4 ms, and which refused.
    #[test]
    fn failures_behind_a_limit_of_times_are_told() {
        let share = |slo: &str, share: f64| ShareResult {
            slo: slo.to_owned(),
            limit: 0.01,
            share: Some(share),
            low: Some(share * 0.9),
            high: Some(share * 1.1),
            variance_inflation: Some(1.0),
        };
        let said = |slo: &str, failed: f64| {
            let level = LevelResult {
                rate_per_s: 300.0,
                finding: "breaks".to_owned(),
                reason: None,
                measured_s: 2.0,
                shares: vec![share(slo, 0.113)],
            };
            let failures = Some(Failures { share: failed, mostly: "status 429".to_owned() });
            let (doubt, counts) = (None, vec![337]);
            Reasons { level: &level, doubt, counts, trials: 1, failures, unit: Nanos::from_secs(2) }
                .in_words()
        };
        let words = said("p99<50ms", 0.11).expect("a reason");
        assert!(words.ends_with("broke p99<50ms (11.0 % failed, mostly with status 429)"), "{words}");
        // Few of them failed, and an objective of failures says so itself.
        assert_eq!((said("p99<50ms", 0.02), said("errors<1%", 0.113)), (None, None));
    }
    /// Symptom: answers with 404 that a plan allows counted as failures.
    #[test]
    fn answers_that_are_allowed_are_no_failures() {
        let trial = |errors: serde_json::Value, timed_out: u64, error_rate: f64| -> TrialFigures {
            serde_json::from_value(serde_json::json!({
                "measured_s": 2.0, "achieved_per_s": 500.0, "in_flight": 1.0, "p50": null, "p90": null,
                "p99": null, "p99_9": null, "error_rate": error_rate,
                "statuses": {"200": 500, "404": 400, "429": 60, "503": 5}, "errors": errors,
                "timed_out": timed_out, "limited_by": "none", "findings": [],
            }))
            .unwrap()
        };
        let of = |trials: &[TrialFigures]| Failures::of(trials.iter());
        let none = serde_json::json!({});
        assert_eq!(of(&[trial(none.clone(), 0, 0.0)]), None);
        let refused = serde_json::json!({"status_5xx": 5, "connection_reset": 3});
        let found = of(&[trial(refused.clone(), 0, 0.008), trial(refused, 0, 0.008)]).expect("some failed");
        assert_eq!((found.share, found.mostly.as_str()), (0.008, "status 503"));
        let limited = of(&[trial(serde_json::json!({"status_4xx": 60}), 0, 0.06)]).expect("some failed");
        assert_eq!(limited.mostly, "status 4xx", "404 is more frequent, and allowed");
        let late = of(&[trial(none, 100, 0.1)]).expect("some were late");
        assert_eq!((late.share, late.mostly.as_str()), (0.1, "no answer in time"));
    }
}
