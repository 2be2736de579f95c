//! Laws of service times.

use plimsoll_core::{Nanos, Random};

/// The law of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Always the same.
    Constant(Nanos),
    /// Exponential: the M of M/M/1.
    Exponential {
        /// Mean, the reciprocal of the service rate μ.
        mean: Nanos,
    },
    /// `median * exp(sigma * N(0, 1))`: the long right tail of real services.
    LogNormal {
        /// Median.
        median: Nanos,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Two constants: hits and misses of a cache.
    Bimodal {
        /// The usual time.
        fast: Nanos,
        /// The unusual time.
        slow: Nanos,
        /// Probability of the unusual time.
        slow_share: f64,
    },
}

impl Law {
    /// One service time.
    pub fn draw(self, random: &mut Random) -> Nanos {
        match self {
            Self::Constant(time) => time,
            Self::Exponential { mean } => Nanos(random.exponential(mean.0 as f64).round() as u64),
            Self::LogNormal { median, sigma } => {
                Nanos((median.0 as f64 * (sigma * random.normal()).exp()).round() as u64)
            }
            Self::Bimodal { fast, slow, slow_share } => {
                if random.unit() < slow_share {
                    slow
                } else {
                    fast
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(law: Law) -> Vec<u64> {
        let mut random = Random::new(11, 0);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| law.draw(&mut random).0).collect();
        drawn.sort_unstable();
        drawn
    }

    fn assert_near(got: f64, expected: f64, relative: f64) {
        assert!((got / expected - 1.0).abs() < relative, "{got} is not within {relative} of {expected}");
    }

    #[test]
    fn each_law_has_its_moments() {
        let exponential = draws(Law::Exponential { mean: Nanos(1_000_000) });
        assert_near(exponential.iter().sum::<u64>() as f64 / 1e5, 1e6, 0.01);
        assert_near(exponential[50_000] as f64, 1e6 * std::f64::consts::LN_2, 0.02);
        let lognormal = draws(Law::LogNormal { median: Nanos(1_000_000), sigma: 0.5 });
        assert_near(lognormal[50_000] as f64, 1e6, 0.01);
        // The 97.72th percentile is two standard deviations up.
        assert_near(lognormal[97_725] as f64, 1e6 * 1.0_f64.exp(), 0.02);
        let bimodal = draws(Law::Bimodal { fast: Nanos(10), slow: Nanos(1_000), slow_share: 0.05 });
        assert_near(bimodal.iter().filter(|&&time| time == 1_000).count() as f64, 5_000.0, 0.05);
        assert!(bimodal.iter().all(|&time| time == 10 || time == 1_000));
        assert!(draws(Law::Constant(Nanos(7))).iter().all(|&time| time == 7));
    }
}
