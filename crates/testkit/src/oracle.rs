//! Expected results: closed formulas and test statistics.

use plimsoll_core::{Nanos, Rate};

use crate::behaviour::Pause;

/// The M/M/1 queue: Poisson arrivals, exponential service, one server, first come first served.
///
/// Its response time is exponential with rate μ − λ (Kleinrock, *Queueing Systems* I, section 5.1), so every
/// quantile is closed: `q(p) = −ln(1 − p) / (μ − λ)`. Rates per second, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mm1 {
    /// Arrival rate λ.
    pub arrivals_per_s: f64,
    /// Service rate μ, greater than λ.
    pub services_per_s: f64,
}

impl Mm1 {
    fn slack(self) -> f64 {
        self.services_per_s - self.arrivals_per_s
    }

    /// Mean response time in seconds.
    pub fn mean(self) -> f64 {
        1.0 / self.slack()
    }

    /// The response time in seconds below which a share `p` of the requests ends.
    pub fn quantile(self, p: f64) -> f64 {
        -(-p).ln_1p() / self.slack()
    }

    /// The share of requests that end within `seconds`.
    pub fn cdf(self, seconds: f64) -> f64 {
        -(-self.slack() * seconds.max(0.0)).exp_m1()
    }
}

/// The exact response times, sorted, of the first `count` arrivals of a constant `rate` at a server that
/// works on any number of requests at once for `service` each, and that stands still during `pause` (relative
/// to the start). Network latency is not in it.
///
/// Four cases: done before the pause; come after it; come during it and served after it; caught at work by
/// it.
pub fn pause_truth(rate: Rate, count: u64, service: Nanos, pause: Pause) -> Vec<Nanos> {
    let mut truth: Vec<Nanos> = (0..count)
        .map(|index| {
            let at = rate.arrival_at(index);
            if at + service <= pause.at || at >= pause.end() {
                service
            } else if at >= pause.at {
                pause.end() - at + service
            } else {
                service + pause.length
            }
        })
        .collect();
    truth.sort_unstable();
    truth
}

/// The nearest-rank quantile: the smallest value such that a share of at least `p` is not above it. `None` of
/// nothing.
pub fn nearest_rank(sorted: &[Nanos], p: f64) -> Option<Nanos> {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The Kolmogorov–Smirnov statistic: the largest distance between the empirical distribution of `samples` and
/// `cdf`. Sorts the samples.
pub fn ks_statistic(samples: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let n = samples.len() as f64;
    let distances = samples.iter().enumerate().map(|(index, &sample)| {
        let expected = cdf(sample);
        (expected - index as f64 / n).max((index + 1) as f64 / n - expected)
    });
    distances.fold(0.0, f64::max)
}

/// The value that the statistic of `n` independent samples of the right distribution exceeds with probability
/// `alpha`: `sqrt(−ln(α/2) / 2n)`, the first term of Kolmogorov's limit, good from n = 35 on.
pub fn ks_critical(n: usize, alpha: f64) -> f64 {
    (-(alpha / 2.0).ln() / (2.0 * n as f64)).sqrt()
}

/// Variance over mean of counts per window: 1 for Poisson arrivals, near 0 for uniform ones, above 1 for
/// bursts. Not a number for fewer than two windows or without any count.
pub fn index_of_dispersion(counts: &[u64]) -> f64 {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / n;
    let squares: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    squares / (n - 1.0) / mean
}

/// Counts how many of `times` fall into each of the whole windows of `[0, span)`.
pub fn counts_per_window(times: impl IntoIterator<Item = Nanos>, window: Nanos, span: Nanos) -> Vec<u64> {
    let mut counts = vec![0; (span.0 / window.0) as usize];
    for at in times {
        if let Some(count) = counts.get_mut((at.0 / window.0) as usize) {
            *count += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Random;

    #[test]
    fn mm1_at_80_percent_has_the_textbook_quantiles() {
        let queue = Mm1 { arrivals_per_s: 800.0, services_per_s: 1_000.0 };
        assert!((queue.mean() - 0.005).abs() < 1e-12);
        for (p, ms) in [(0.5, 3.466), (0.99, 23.026), (0.999, 34.539)] {
            assert!((queue.quantile(p) * 1e3 - ms).abs() < 0.001, "{p}");
            assert!((queue.cdf(queue.quantile(p)) - p).abs() < 1e-12);
        }
        assert_eq!(queue.cdf(-1.0), 0.0);
    }

    #[test]
    fn a_pause_of_a_second_in_half_a_minute_gives_the_known_percentiles() {
        let pause = Pause { at: Nanos::from_secs(10), length: Nanos::from_secs(1) };
        let truth = pause_truth(Rate::per_second(1_000), 30_000, Nanos::from_millis(1), pause);
        let at = |p| nearest_rank(&truth, p).unwrap();
        assert_eq!(at(0.5), Nanos::from_millis(1));
        // 1,000 of 30,000 arrivals come in the pause; the one at its start waits for all of it.
        assert_eq!(at(1.0), Nanos::from_millis(1_001));
        assert_eq!(at(0.99), Nanos::from_millis(701));
        assert_eq!(at(0.999), Nanos::from_millis(971));
        assert_eq!(truth.iter().filter(|&&time| time > Nanos::from_millis(1)).count(), 1_000);
    }

    #[test]
    fn work_that_a_pause_interrupts_is_longer_by_the_pause() {
        let pause = Pause { at: Nanos(10), length: Nanos(100) };
        let every_eight = Rate::new(1, Nanos(8)).unwrap();
        // Arrivals at 0 (done at 5), 8 (caught), 16 … 104 (waiting), 112 (after).
        let truth = pause_truth(every_eight, 15, Nanos(5), pause);
        assert_eq!(truth.iter().filter(|&&time| time == Nanos(5)).count(), 2);
        assert_eq!(truth.last(), Some(&Nanos(105)));
        assert!(truth.contains(&Nanos(110 - 104 + 5)));
    }

    #[test]
    fn nearest_rank_is_an_element_that_was_measured() {
        let sorted: Vec<Nanos> = (1..=10).map(Nanos).collect();
        assert_eq!(nearest_rank(&sorted, 0.5), Some(Nanos(5)));
        assert_eq!(nearest_rank(&sorted, 0.51), Some(Nanos(6)));
        assert_eq!(nearest_rank(&sorted, 0.0), Some(Nanos(1)));
        assert_eq!(nearest_rank(&sorted, 1.0), Some(Nanos(10)));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }

    #[test]
    fn kolmogorov_smirnov_accepts_the_right_law_and_refuses_a_wrong_one() {
        let mut random = Random::new(3, 0);
        let mut samples: Vec<f64> = (0..2_000).map(|_| random.exponential(1.0)).collect();
        let right = ks_statistic(&mut samples, |t| -(-t).exp_m1());
        let wrong = ks_statistic(&mut samples, |t| -(-t * 1.2).exp_m1());
        let critical = ks_critical(2_000, 0.01);
        assert!(right < critical && wrong > critical, "{right} {wrong} {critical}");
        // Table value for n = 100 at 5 %: 1.358 / 10.
        assert!((ks_critical(100, 0.05) - 0.1358).abs() < 1e-4);
    }

    #[test]
    fn dispersion_tells_poisson_from_uniform_from_bursts() {
        let (window, span) = (Nanos::from_millis(10), Nanos::from_secs(20));
        let uniform = (0..20_000).map(|index| Rate::per_second(1_000).arrival_at(index));
        assert!(index_of_dispersion(&counts_per_window(uniform, window, span)) < 1e-9);
        let mut random = Random::new(5, 0);
        let mut at = 0.0;
        let mut poisson = Vec::new();
        while at < 20.0 {
            poisson.push(Nanos::from_secs_f64(at));
            at += random.exponential(0.001);
        }
        let dispersion = index_of_dispersion(&counts_per_window(poisson.iter().copied(), window, span));
        assert!((dispersion - 1.0).abs() < 0.1, "{dispersion}");
        let doubled = poisson.iter().flat_map(|&at| [at, at]);
        assert!(index_of_dispersion(&counts_per_window(doubled, window, span)) > 1.8);
    }
}
