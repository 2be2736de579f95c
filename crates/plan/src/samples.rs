//! Samples that the requests of a plan make, and those that its thresholds need.

use plimsoll_core::{Nanos, Shard, figure};
use plimsoll_histogram::samples_needed;
use plimsoll_metrics::ThresholdSpec;
use plimsoll_metrics::threshold::{Figure, Metric, TimeKind};
use plimsoll_schedule::{Arrivals, Process};

use crate::{Load, Plan};

impl Plan {
    /// Returns a sentence for each threshold whose percentile has too few requests in this plan to be shown
    /// to hold, with what would do. Where the number of requests depends on the course of the run there is
    /// none.
    pub fn lacking_samples(&self) -> Vec<String> {
        self.thresholds.iter().filter_map(|spec| self.lacking(spec)).collect()
    }

    fn lacking(&self, spec: &ThresholdSpec) -> Option<String> {
        let Metric::Time(kind, Figure::Percentile(percentile), _) = spec.threshold.metric else {
            return None;
        };
        let is_of_requests =
            matches!(kind, TimeKind::Response | TimeKind::Service | TimeKind::StartLag | TimeKind::FirstByte);
        let needed = samples_needed(percentile.p());
        if !is_of_requests || needed == u64::MAX {
            return None;
        }
        let share = self.requests_of(spec)? / f64::from(self.shard.of.max(1));
        let (arrivals, scope) = self.arrivals_of(spec)?;
        let due = (arrivals as f64 * share).floor() as u64;
        if due >= needed {
            return None;
        }
        let requests = if due == 1 { "request is" } else { "requests are" };
        let enough = self.enough(spec, needed, share).map(|enough| format!("; {enough} would do"));
        Some(format!(
            "{spec} will not be shown to hold: it needs {} samples, and {} {requests} due{scope}{}",
            figure::count(needed),
            figure::count(due),
            enough.unwrap_or_default(),
        ))
    }

    /// Requests that the threshold is about, of one arrival on average.
    fn requests_of(&self, spec: &ThresholdSpec) -> Option<f64> {
        let per_arrival = self.requests_per_arrival()?;
        if spec.scenario.is_none() && spec.step.is_none() {
            return Some(per_arrival);
        }
        // Weights share out iterations, or requests if the rate is one of these.
        if self.paces_requests() && self.scenarios.len() > 1 {
            return None;
        }
        let chosen = self.outline().select(spec.scenario.as_deref(), spec.step.as_deref());
        let (mut requests, mut all, mut iterations) = (0_u64, 0_u64, 0_u64);
        for scenario in &self.scenarios {
            let weight = u64::from(scenario.weight);
            iterations += weight;
            for op in scenario.program.ops() {
                let steps = op.sends();
                all += weight * steps.len() as u64;
                requests += weight * steps.filter(|step| chosen.contains(step)).count() as u64;
            }
        }
        let whole = if self.paces_requests() { all } else { iterations };
        (whole > 0).then(|| requests as f64 / whole as f64)
    }

    /// Arrivals of the time that the threshold looks at, of all shards, and the words for that time.
    fn arrivals_of(&self, spec: &ThresholdSpec) -> Option<(u64, String)> {
        let (Load::Open { profile, .. }, limit) = (&self.load, self.end.iterations) else {
            let whole = spec.window.is_none() && spec.phase.is_none();
            return self.end.iterations.filter(|_| whole).map(|limit| (limit, String::new()));
        };
        let arrivals = Arrivals::new(profile, Process::Uniform, self.seed, Shard::WHOLE);
        let between = |from: Nanos, to: Nanos| {
            let count = arrivals.count_before(to).saturating_sub(arrivals.count_before(from));
            limit.map_or(count, |limit| count.min(limit))
        };
        let from = self.warmup.max(self.first_joining());
        if let Some(window) = spec.window {
            let most = profile.peak_from(from) * window.as_secs_f64();
            return Some((most.ceil() as u64, " in a window".to_owned()));
        }
        if let Some(name) = &spec.phase {
            let phase = self.phases.iter().find(|phase| phase.name == *name)?;
            return Some((between(phase.at.max(from), phase.end()), " in the phase".to_owned()));
        }
        Some((between(from, profile.duration()), String::new()))
    }

    /// What would make enough requests, if that is one thing to change.
    fn enough(&self, spec: &ThresholdSpec, needed: u64, share: f64) -> Option<String> {
        let needed = needed as f64 / share;
        if let (Some(_), None, None) = (self.end.iterations, spec.window, &spec.phase) {
            return Some(format!("-n {}", needed.ceil() as u64));
        }
        let Load::Open { profile, process, .. } = &self.load else { return None };
        // The warm-up has stages of its own.
        let mut end = Nanos::ZERO;
        let measured = profile.stages().iter().filter(|stage| {
            end += stage.duration;
            end > self.warmup
        });
        let rates: Vec<_> = measured.flat_map(|stage| [stage.from, stage.to]).collect();
        let first = rates.first()?;
        if rates.iter().any(|rate| rate != first) {
            return None;
        }
        // The number of random arrivals varies by its root: three times as much is hardly ever exceeded.
        let slack = if *process == Process::Poisson { 3.0 * needed.sqrt() } else { 0.0 };
        let seconds = ((needed + slack) / profile.peak_from(self.warmup)).ceil();
        match (spec.window, &spec.phase) {
            (Some(_), _) => Some(format!("a window of {seconds}s")),
            (None, Some(_)) => None,
            (None, None) => Some(format!("-d {seconds}s")),
        }
    }
}
