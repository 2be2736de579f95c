//! The seeded fate of every request.

use plimsoll_core::{Nanos, Random};

use super::options::{Delay, SinkOptions};

/// The intended end of a request when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The usual reply.
    Reply,
    /// A reply with this status.
    Status(u16),
    /// No reply, ever.
    Drop,
    /// A reset: of the connection, or of the HTTP/2 stream.
    Reset,
    /// A refusal, which is a reset on HTTP/1.1.
    Refuse,
    /// A rejection of a call.
    Reject,
    /// An answer without a meaning.
    Garbage,
}

/// The fate drawn for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFate {
    /// Service time.
    pub service: Nanos,
    /// Intended end after that time.
    pub intent: Intent,
}

/// Draws the fate of every request of a sink from its seed and the request's number alone, so that it does
/// not depend on threads, connections or timing, and can be recomputed from a log.
#[derive(Clone, Debug)]
pub struct FaultModel {
    seed: u64,
    delay: Delay,
    faults_are_drawn: bool,
    /// Upper ends of the intervals of `[0, 1)` that belong to each fault.
    faults: Vec<(f64, Intent)>,
}

impl FaultModel {
    /// The law of a sink with these options.
    pub fn new(options: &SinkOptions) -> Self {
        let mut end = 0.0;
        let faults = options.faults.intents().map(|(share, intent)| {
            end += share;
            (end, intent)
        });
        Self {
            seed: options.seed,
            delay: options.delay,
            faults_are_drawn: options.faults.are_drawn(),
            faults: faults.collect(),
        }
    }

    /// The fate of request `number`.
    pub fn fate(&self, number: u64) -> RequestFate {
        if let (false, Some(service)) = (self.faults_are_drawn, self.constant()) {
            return RequestFate { service, intent: Intent::Reply };
        }
        let mut random = Random::new(self.seed, number);
        // The fault is drawn first and always, so that the same seed gives the same delays with and without
        // faults.
        let fault = random.unit();
        let intent =
            self.faults.iter().find(|&&(end, _)| fault < end).map_or(Intent::Reply, |&(_, intent)| intent);
        RequestFate { service: self.service(&mut random), intent }
    }

    /// The service time if it is not a matter of chance.
    fn constant(&self) -> Option<Nanos> {
        match self.delay {
            Delay::None => Some(Nanos::ZERO),
            Delay::Constant(time) => Some(time),
            _ => None,
        }
    }

    fn service(&self, random: &mut Random) -> Nanos {
        self.delay.draw(random)
    }
}

impl Delay {
    /// Draws a time.
    pub fn draw(self, random: &mut Random) -> Nanos {
        match self {
            Self::None => Nanos::ZERO,
            Self::Constant(time) => time,
            Self::Exponential { mean } => whole(random.exponential(mean.0 as f64)),
            Self::Lognormal { median, sigma } => whole(median.0 as f64 * (sigma * random.normal()).exp()),
            Self::Bimodal { first, second, share_of_second } => {
                if random.unit() < share_of_second {
                    second
                } else {
                    first
                }
            }
        }
    }
}

fn whole(nanos: f64) -> Nanos {
    // A float-to-integer `as` saturates.
    Nanos(nanos.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::service::Faults;
    use plimsoll_driver::Endpoint;

    const DRAWS: u64 = 20_000;

    fn law(delay: Delay, faults: Faults) -> FaultModel {
        let listen = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        FaultModel::new(&SinkOptions { delay, faults, seed: 42, ..SinkOptions::new(listen) })
    }

    fn delays(delay: Delay) -> Vec<f64> {
        let law = law(delay, Faults::default());
        let mut drawn: Vec<f64> = (0..DRAWS).map(|n| law.fate(n).service.0 as f64).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    /// Kolmogorov–Smirnov distance between sorted samples and a distribution function.
    fn distance(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
        let n = sorted.len() as f64;
        sorted
            .iter()
            .enumerate()
            .map(|(i, &x)| (cdf(x) - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf(x)).abs()))
            .fold(0.0, f64::max)
    }

    /// Critical value of the two-sided test at the level 0.001: `sqrt(-ln(0.001 / 2) / 2n)`.
    fn critical() -> f64 {
        (-(0.000_5_f64).ln() / (2.0 * DRAWS as f64)).sqrt()
    }

    #[test]
    fn neighbouring_numbers_give_exponential_delays() {
        let drawn = delays(Delay::Exponential { mean: Nanos::from_millis(1) });
        assert!(distance(&drawn, |x| 1.0 - (-x / 1e6).exp()) < critical());
        assert!(distance(&drawn, |x| 1.0 - (-x / 1.1e6).exp()) > critical(), "the test can tell 10 % apart");
    }

    #[test]
    fn a_lognormal_delay_has_its_quantiles() {
        let drawn = delays(Delay::Lognormal { median: Nanos::from_millis(2), sigma: 0.5 });
        // Standard normal quantiles; the sample quantile of 20,000 draws is within 4 % of the true one at all
        // of them (its standard error is below 1.5 % at the 99th percentile).
        for (share, z) in [(0.1, -1.281_55_f64), (0.5, 0.0), (0.9, 1.281_55), (0.99, 2.326_35)] {
            let sample = drawn[(share * DRAWS as f64) as usize];
            let truth = 2e6 * (0.5 * z).exp();
            assert!((sample / truth - 1.0).abs() < 0.05, "p{share}: {sample} against {truth}");
        }
    }

    #[test]
    fn a_bimodal_delay_takes_its_second_time_as_often_as_told() {
        let drawn = delays(Delay::Bimodal { first: Nanos(5), second: Nanos(9), share_of_second: 0.1 });
        let second = drawn.iter().filter(|&&x| x == 9.0).count();
        assert!(drawn.iter().all(|&x| x == 5.0 || x == 9.0));
        // Five standard deviations of the binomial count: 5 * sqrt(20,000 * 0.1 * 0.9) = 212.
        assert!(second.abs_diff(2000) < 212, "{second}");
    }

    #[test]
    fn faults_have_their_shares_and_exclude_each_other() {
        let faults = Faults {
            drop: 0.03,
            reset: 0.05,
            refuse: 0.04,
            statuses: vec![(503, 0.1), (429, 0.2)],
            ..Faults::default()
        };
        let law = law(Delay::None, faults);
        let count = |wanted| (0..DRAWS).filter(|&n| law.fate(n).intent == wanted).count() as f64;
        for (intent, share) in [
            (Intent::Drop, 0.03),
            (Intent::Reset, 0.05),
            (Intent::Refuse, 0.04),
            (Intent::Status(503), 0.1),
            (Intent::Status(429), 0.2),
            (Intent::Reply, 0.58),
        ] {
            let expected = share * DRAWS as f64;
            let five_sigma = 5.0 * (expected * (1.0 - share)).sqrt();
            assert!((count(intent) - expected).abs() < five_sigma, "{intent:?}: {}", count(intent));
        }
    }

    #[test]
    fn a_fate_depends_on_seed_and_number_alone() {
        let delay = Delay::Exponential { mean: Nanos::from_millis(1) };
        let with = law(delay, Faults { drop: 0.5, ..Faults::default() });
        let without = law(delay, Faults::default());
        for number in [0, 1, 77, u64::MAX] {
            assert_eq!(with.fate(number), with.clone().fate(number));
            assert_eq!(
                with.fate(number).service,
                without.fate(number).service,
                "faults do not move the delays"
            );
        }
        assert_ne!(without.fate(0).service, without.fate(1).service);
    }
}
