//! What has to hold of a run, and how often its figures are told.

use plimsoll_core::Nanos;
use plimsoll_metrics::threshold::{Limit, Metric};
use plimsoll_metrics::{Threshold, ThresholdError, ThresholdSpec};

use crate::resolve::Resolver;
use crate::{Load, Plan, PlanPatch, Problem};

/// Length of an interval, unless a flag asks for a shorter one: longer ones are put together from these.
pub(crate) const DEFAULT_INTERVAL: Nanos = Nanos::from_secs(1);
/// Shortest interval: what a snapshot costs is small beside it, about 0.1 ms per step.
const SHORTEST_INTERVAL: Nanos = Nanos::from_millis(100);

impl Resolver<'_> {
    /// The thresholds, and how often statistics are told.
    pub(crate) fn judging(&mut self, patch: &PlanPatch) -> Option<(Vec<ThresholdSpec>, Nanos)> {
        let interval = self.read_duration(patch.interval.as_ref());
        let interval = self.check(patch.interval.as_ref(), interval, |&interval| {
            let broken = interval > DEFAULT_INTERVAL && !interval.0.is_multiple_of(DEFAULT_INTERVAL.0);
            match interval {
                short if short < SHORTEST_INTERVAL => Some("must be at least 100ms".to_owned()),
                _ if broken => Some("must be whole seconds, or less than one".to_owned()),
                _ => None,
            }
        });
        if patch.abort_on_fail && patch.thresholds.is_empty() {
            let problem = Problem::new("--abort-on-fail has no effect without --threshold");
            self.problems.push(problem.with_hint("name what has to hold, as in --threshold 'p99<10ms'"));
        }
        let mut thresholds = Some(Vec::new());
        for given in &patch.thresholds {
            match Threshold::parse(given.text.trim()) {
                Ok(threshold) => {
                    if let Some(list) = &mut thresholds {
                        let abort_on_fail = patch.abort_on_fail;
                        list.push(ThresholdSpec { abort_on_fail, ..ThresholdSpec::new(threshold) });
                    }
                }
                Err(error) => {
                    thresholds = None;
                    self.problems.push(threshold_problem(&given.by, &error));
                }
            }
        }
        Some((thresholds?, interval?.unwrap_or(DEFAULT_INTERVAL)))
    }

    /// Reports thresholds that make no sense in this plan.
    pub(crate) fn check_thresholds(&mut self, patch: &PlanPatch, plan: &Plan) {
        let outline = plan.outline();
        for (spec, given) in plan.thresholds.iter().zip(&patch.thresholds) {
            if let Err(error) = spec.check(&outline, plan.interval) {
                self.problems.push(threshold_problem(&given.by, &error));
            }
            let of_target =
                matches!((spec.threshold.metric, spec.threshold.limit), (Metric::Rate, Limit::OfTarget(_)));
            if of_target && matches!(plan.load, Load::Closed) {
                let message = format!(
                    "{}: `{}` needs a target, and the closed model has none",
                    given.by, spec.threshold
                );
                self.problems
                    .push(Problem::new(message).with_hint("name a rate, as in rate>=5000/s, or use --rate"));
            }
        }
    }
}

/// The problem that an error of a threshold describes.
pub(crate) fn threshold_problem(by: &str, error: &ThresholdError) -> Problem {
    Problem::new(format!("{by}: {}", error.message)).with_hint(error.hint.clone())
}
