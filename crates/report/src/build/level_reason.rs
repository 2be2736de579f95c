//! Reasons for the findings of the rates of a search, in words.

use plimsoll_core::{Nanos, figure};
use plimsoll_statistics::Doubt;

use crate::capacity::{LevelResult, ShareResult};

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
    /// What most of them ended with: `status 429`, `timed out`.
    pub(crate) mostly: String,
}

impl Failures {
    /// Failures that make up this part of the requests that break an objective are why it breaks.
    const MOST: f64 = 0.5;

    /// The failures in words, if they are most of the requests that break an objective on other figures.
    fn behind(&self, share: &ShareResult) -> Option<String> {
        let is_of_errors = share.slo.starts_with("errors") || share.slo.starts_with(self.mostly.as_str());
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
}
