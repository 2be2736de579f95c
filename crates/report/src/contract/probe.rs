//! Figures of a probe beside the load, and by how much the load's own figures exceed them.

use std::collections::BTreeMap;

use plimsoll_metrics::RunRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::assembly::times;
use crate::contract::summary::{PERCENTILES, Summary};

/// Requests beside the load, at a low rate, by a thread with connections of its own and nothing else to do.
/// They are in no other figure of the result but in accounting.unmeasured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// Iterations per second, on average, at random times.
    pub rate_per_s: Option<f64>,
    /// True if the probe itself was on time; if not, it proves nothing.
    pub valid: bool,
    /// Reasons why it is not: one sentence each.
    pub invalid_reasons: Vec<String>,
    /// Requests that it started in the measured part.
    pub started: u64,
    /// Of these, those that ended well.
    pub ok: u64,
    /// Of these, those that failed.
    pub failed: u64,
    /// Of these, those that timed out.
    pub timed_out: u64,
    /// As the run's response_time.
    pub response_time: Summary,
    /// As the run's service_time.
    pub service_time: Summary,
    /// As the run's start_lag.
    pub start_lag: Summary,
    /// By percentile of the service time: the load's time less the probe's, an estimate of what its generator
    /// adds. Percentiles are missing that either does not have.
    pub bias: BTreeMap<String, Bias>,
}

/// One percentile of the service time, as the load and as its probe saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bias {
    /// Figure of the load, in nanoseconds.
    pub load_ns: u64,
    /// Figure of the probe, in nanoseconds.
    pub probe_ns: u64,
    /// The load's above the probe's.
    pub difference_ns: i64,
    /// True if their 95 % intervals do not overlap; null if one is not known.
    pub beyond_noise: Option<bool>,
}

impl ProbeResult {
    /// Compares the record of a probe with the service time of the load that it observed.
    pub(crate) fn new(probe: &RunRecord, load: &Summary) -> Self {
        let (response_time, service_time) = times(&probe.total, probe, None);
        let bias = PERCENTILES
            .iter()
            .zip(load.p.values())
            .zip(service_time.p.values())
            .filter_map(|(((name, _), load_ns), probe_ns)| {
                let (load_ns, probe_ns) = load_ns.zip(probe_ns)?;
                let bounds = load.interval_of(name).zip(service_time.interval_of(name));
                let beyond_noise =
                    bounds.map(|(load, probe)| are_apart((load.low, load.high), (probe.low, probe.high)));
                let difference_ns = load_ns.cast_signed().saturating_sub(probe_ns.cast_signed());
                Some(((*name).to_owned(), Bias { load_ns, probe_ns, difference_ns, beyond_noise }))
            })
            .collect();
        Self {
            rate_per_s: probe.target_per_second,
            valid: probe.verdict.valid,
            invalid_reasons: probe.verdict.reasons.iter().map(|reason| reason.evidence.clone()).collect(),
            started: probe.accounting.started,
            ok: probe.accounting.ok,
            failed: probe.accounting.failed,
            timed_out: probe.accounting.timed_out,
            start_lag: Summary::exact(&probe.total.start_lag),
            response_time,
            service_time,
            bias,
        }
    }
}

/// Returns `true` if two intervals do not overlap. An end that is not known may be anywhere.
fn are_apart(one: (Option<u64>, Option<u64>), other: (Option<u64>, Option<u64>)) -> bool {
    let above = |low: Option<u64>, high: Option<u64>| low.zip(high).is_some_and(|(low, high)| low > high);
    above(one.0, other.1) || above(other.0, one.1)
}

#[cfg(test)]
mod tests {
    use super::are_apart;

    #[test]
    fn intervals_without_a_common_value_are_apart() {
        let cases = [
            ((Some(5), Some(9)), (Some(1), Some(4)), true),
            ((Some(1), Some(4)), (Some(5), Some(9)), true),
            ((Some(1), Some(5)), (Some(5), Some(9)), false),
            ((Some(1), Some(9)), (Some(4), Some(5)), false),
            ((Some(1), None), (Some(5), Some(9)), false),
            ((Some(10), None), (Some(5), Some(9)), true),
            ((None, None), (None, None), false),
        ];
        for (one, other, apart) in cases {
            assert_eq!(are_apart(one, other), apart, "{one:?} and {other:?}");
        }
    }
}
