//! Requests in the system: Little's law as a self-check, and whether their number grows without end.

use crate::student_quantile;

/// Fewest counts that distinguish growth from chance.
const FEWEST_COUNTS: usize = 11;
/// Growth counts if chance alone makes as much in fewer than one of ten random walks. That is lenient for a
/// random walk; a stable queue is not one, and stays far below (`docs/statistics.md`).
const GROWTH_CONFIDENCE: f64 = 0.80;
/// Growth of fewer requests than this from end to end is not an overload.
const LEAST_GROWTH: f64 = 10.0;
/// Share of the growth that the second half must have: a system that only fills up at the beginning stays
/// full.
const SECOND_HALF: f64 = 0.1;
/// Growth of less than this share of the arrivals is not an overload.
const LEAST_SHARE: f64 = 0.002;

/// Growth of the number of requests in the system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Requests at the beginning.
    pub from: f64,
    /// Requests at the end.
    pub to: f64,
    /// Growth in requests per second.
    pub per_second: f64,
}

/// Returns the growth of the number of requests that came and have not ended (in flight, or still waiting to
/// be started), if it grows without end: requests come faster than they are served, and every percentile
/// depends on how long the run was.
///
/// `counts` are taken at equal distances of `spacing` seconds, the first one at the beginning; `rate` is that
/// of the arrivals per second. `None` if there is no such growth, or there are fewer than 11 counts.
///
/// Above its capacity the number is a random walk upwards: the mean of its steps, against their own spread,
/// is tested with Student's t, one-sided. Below capacity the steps cancel out, since each way up is followed
/// by one down.
pub fn growth(counts: &[f64], spacing: f64, rate: f64) -> Option<Growth> {
    let (&[from, ..], &[.., to]) = (counts, counts) else { return None };
    if counts.len() < FEWEST_COUNTS || to - from < LEAST_GROWTH {
        return None;
    }
    let steps: Vec<f64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let n = steps.len() as f64;
    let mean = (to - from) / n;
    let variance = steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let per_second = mean / spacing;
    let goes_on = to - counts[counts.len() / 2] > SECOND_HALF * (to - from);
    let grows = mean > student_quantile(GROWTH_CONFIDENCE, n - 1.0) * (variance / n).sqrt();
    (grows && goes_on && per_second > LEAST_SHARE * rate).then_some(Growth { from, to, per_second })
}

/// Little's law, L = λ · W, for one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Little {
    /// L: the mean number of requests in flight, as counted at the ends of intervals.
    pub in_flight: f64,
    /// Half the width of its 95 % interval.
    pub in_flight_error: f64,
    /// λ · W: started requests per second times the mean time that they were in flight.
    pub product: f64,
    /// `true` if both agree.
    pub holds: bool,
}

/// Share by which L and λ · W may differ beyond chance: requests that were in flight at the beginning and at
/// the end of the window.
const LITTLE_TOLERANCE: f64 = 0.01;
/// Requests by which they may differ: an arrival that falls on the instant of counting is in or not.
const LITTLE_GRAIN: f64 = 1.0;

/// Share of the count that its error may be: with a larger one hardly anything would break the law.
const LITTLE_POWER: f64 = 0.1;

/// Checks Little's law (Little 1961) on counts of requests in flight, `started` requests per second and
/// the mean time in seconds from the start of a request to its end, however it ended.
///
/// The integral of the number in flight, made of the same times, would equal λ · W by definition, and check
/// nothing. The counts come from elsewhere: from the engine's own bookkeeping at instants that do not depend
/// on requests. So a request that is lost, counted twice or timed from the wrong instant makes them differ.
/// `None` for fewer than 5 counts, and where chance alone may make as large a difference as a loss would: if
/// the error of the mean count is above a tenth of it, and above one request.
pub fn little(counts: &[f64], started: f64, mean_time: f64) -> Option<Little> {
    if counts.len() < 5 {
        return None;
    }
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
    let neighbours: f64 = counts.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let lag = if squares > 0.0 { (neighbours / squares).clamp(0.0, 0.9) } else { 0.0 };
    let variance = squares / (n - 1.0) * (1.0 + lag) / (1.0 - lag);
    let in_flight_error = student_quantile(0.95, n - 1.0) * (variance / n).sqrt();
    if in_flight_error > (LITTLE_POWER * mean).max(LITTLE_GRAIN) {
        return None;
    }
    let product = started * mean_time;
    let allowed = in_flight_error + LITTLE_TOLERANCE * product + LITTLE_GRAIN;
    Some(Little { in_flight: mean, in_flight_error, product, holds: (mean - product).abs() <= allowed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_holds_within_the_interval_and_a_leak_breaks_it() {
        let counts: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i % 5) - 2.0).collect();
        let check = little(&counts, 1_000.0, 0.1).unwrap();
        assert!(check.holds && check.in_flight == 100.0, "{check:?}");
        // A tenth of the requests has no end in the records, but is in flight.
        assert!(!little(&counts, 900.0, 0.1).unwrap().holds);
        assert_eq!(little(&counts[..4], 1_000.0, 0.1), None);
    }

    /// Symptom: "241 ± 324 in flight, 184 by rate and time: holds", which nothing could have broken.
    #[test]
    fn a_check_that_could_not_fail_is_none() {
        let wild = [1.0, 1.0, 900.0, 20.0, 300.0, 5.0];
        assert_eq!(little(&wild, 1_000.0, 0.184), None);
        // Less than one request is the grain of counting.
        let few = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0];
        assert!(little(&few, 10.0, 0.05).is_some_and(|little| little.in_flight_error < 1.0));
    }

    #[test]
    fn growth_is_told_from_standing_still_and_from_one_jump_back() {
        let steady: Vec<f64> = (0..60).map(|i| 20.0 + f64::from(i * 7 % 13)).collect();
        assert_eq!(growth(&steady, 1.0, 1_000.0), None);
        let growing: Vec<f64> = (0..60).map(|i| f64::from(i * 5 + i * 7 % 13)).collect();
        let growth_found = growth(&growing, 1.0, 1_000.0).unwrap();
        assert!((growth_found.per_second - 5.0).abs() < 0.3, "{growth_found:?}");
        assert_eq!(growth(&growing[..10], 1.0, 1_000.0), None);
        // Three seconds of service time fill up and stay.
        let full: Vec<f64> = (0..11).map(|i| 1_000.0 * f64::from(i.min(3)) + f64::from(i % 2)).collect();
        assert_eq!(growth(&full, 1.0, 1_000.0), None);
        // 5 per second of 10,000 per second is within what a queue does.
        assert_eq!(growth(&growing, 1.0, 10_000.0), None);
    }
}
