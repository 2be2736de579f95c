//! Load profiles: rates over time.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Nanos, Rate};

use crate::curve::Curve;

/// One segment of a load curve: the rate goes linearly from `from` to `to`; equal rates hold, zero rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Length of the stage.
    pub duration: Nanos,
    /// Rate at its start.
    pub from: Rate,
    /// Rate that it has reached at its end.
    pub to: Rate,
}

impl Stage {
    pub(crate) fn is_constant(&self) -> bool {
        self.from == self.to
    }
}

/// Stages one after another, each in `[begin, end)`, the first from 0; and the changes that were made to
/// them since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    stages: Vec<Stage>,
    curve: Arc<Curve>,
}

impl Profile {
    /// One rate for the whole of `duration`.
    pub fn constant(rate: Rate, duration: Nanos) -> Self {
        let stage = Stage { duration, from: rate, to: rate };
        Self { curve: Arc::new(Curve::constant(rate, duration)), stages: vec![stage] }
    }

    /// Several stages.
    ///
    /// # Errors
    /// If there is no stage, one has no length, or the numbers do not fit: an approximation is never made.
    pub fn new(stages: Vec<Stage>) -> Result<Self, ProfileError> {
        let curve = Arc::new(Curve::new(&stages)?);
        Ok(Self { stages, curve })
    }

    /// This profile up to `at`, and one rate from there to its end; zero pauses.
    ///
    /// The crate documentation describes the arrivals.
    ///
    /// # Errors
    /// If the numbers do not fit: see [`ProfileError`].
    pub fn changed(&self, at: Nanos, rate: Rate) -> Result<Self, ProfileError> {
        self.spliced(at, &Self::constant(rate, self.duration()))
    }

    /// This profile up to `at`, and `rest`, which counts its time from the same start, from there to its own
    /// end. With the profile that was in force before a pause, this ends the pause. From the end of either of
    /// them on, nothing changes any more.
    ///
    /// # Errors
    /// If the numbers do not fit: see [`ProfileError`].
    pub fn spliced(&self, at: Nanos, rest: &Self) -> Result<Self, ProfileError> {
        if at >= self.duration().min(rest.duration()) {
            return Ok(self.clone());
        }
        let curve = Arc::new(self.curve.spliced(at.0, &rest.curve)?);
        Ok(Self { stages: self.stages.clone(), curve })
    }

    /// Length of all stages together.
    pub fn duration(&self) -> Nanos {
        Nanos(self.curve.duration())
    }

    /// The stages in their order as they were planned, without later changes; at least one.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The integral of the rate, rounded down: the exact number of arrivals of the uniform process, and the
    /// mean number of a Poisson process. May be 0 for a short or slow profile. (A constant profile of more
    /// than 2^64 arrivals, which only rates beyond 1e9/s can have, ends after that many.)
    pub fn total(&self) -> u64 {
        self.curve.total()
    }

    /// The rate at one instant, in arrivals per second; 0 from the end on. Where two stages meet it is the
    /// rate of the later one.
    pub fn rate_at(&self, at: Nanos) -> f64 {
        self.curve.rate_at(at.0)
    }

    /// The highest rate, in arrivals per second.
    pub fn peak(&self) -> f64 {
        self.peak_from(Nanos::ZERO)
    }

    /// The highest rate from `at` on, in arrivals per second.
    pub fn peak_from(&self, at: Nanos) -> f64 {
        self.curve.peak_from(at.0)
    }

    /// The mean rate over `from..to`, in arrivals per second: the integral over that time by its length. 0
    /// for no length; nothing is due from the end of the profile on.
    pub fn mean_rate(&self, from: Nanos, to: Nanos) -> f64 {
        if to <= from {
            return 0.0;
        }
        let before = |at: Nanos| self.curve.units_before(at.min(self.duration()));
        let units = before(to).saturating_sub(before(from));
        units as f64 / self.curve.unit() as f64 / (to - from).as_secs_f64()
    }

    pub(crate) fn curve(&self) -> &Arc<Curve> {
        &self.curve
    }
}

/// Stages that make no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// There is no stage.
    NoStages,
    /// The stage with this number, from 1, has no length.
    EmptyStage(usize),
    /// All stages together are longer than 2^64 ns (584 years).
    TooLong,
    /// The integral of the rate is 2^64 or more.
    TooMany,
    /// The rates have no common denominator of 64 bits (63 with a ramp), such as `1/1234567891ns` and
    /// `1/1234567907ns` and a third of that kind: their sum could not be exact.
    TooFine,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStages => f.write_str("there is no stage: write at least one, such as 30s@1000"),
            Self::EmptyStage(number) => {
                write!(f, "stage {number} has no length: write a duration above 0, such as 30s@1000")
            }
            Self::TooLong => f.write_str("the stages are longer than 584 years together"),
            Self::TooMany => f.write_str("the stages have more than 2^64 arrivals"),
            Self::TooFine => f.write_str(
                "the rates are too finely divided to be added up exactly: \
                 write rates with fewer digits or rounder periods, such as 0.25 or 100/3s",
            ),
        }
    }
}

impl std::error::Error for ProfileError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(seconds: u64, from: u64, to: u64) -> Stage {
        let (from, to) = (Rate::per_second(from), Rate::per_second(to));
        Stage { duration: Nanos::from_secs(seconds), from, to }
    }

    #[test]
    fn totals_are_the_integral_rounded_down() {
        let total = |stages| Profile::new(stages).unwrap().total();
        assert_eq!(total(vec![ramp(10, 0, 100)]), 500);
        assert_eq!(total(vec![ramp(10, 100, 0)]), 500);
        assert_eq!(total(vec![ramp(3, 0, 1)]), 1);
        assert_eq!(total(vec![ramp(1, 0, 1)]), 0);
        // Halves of two stages make a whole.
        assert_eq!(total(vec![ramp(1, 0, 1), ramp(1, 1, 0)]), 1);
        assert_eq!(total(vec![ramp(30, 1000, 1000), ramp(60, 1000, 5000), ramp(5, 0, 0)]), 210_000);
        assert_eq!(total(vec![ramp(36_000, 10_000_000, 10_000_000)]), 360_000_000_000);

        let third = Rate::new(1, Nanos::from_secs(3)).unwrap();
        assert_eq!(Profile::constant(third, Nanos::from_secs(10)).total(), 3);
        assert_eq!(Profile::constant(third, Nanos::from_secs(9)).total(), 3);
        assert_eq!(Profile::constant(third, Nanos(8_999_999_999)).total(), 2);
        assert_eq!(Profile::constant(Rate::per_second(0), Nanos::MAX).total(), 0);
        assert_eq!(Profile::constant(Rate::per_second(5), Nanos::ZERO).total(), 0);
    }

    #[test]
    fn extremes_saturate_or_are_refused() {
        let fastest = Rate::new(u64::MAX, Nanos(1)).unwrap();
        assert_eq!(Profile::constant(fastest, Nanos::MAX).total(), u64::MAX);
        assert_eq!(Profile::constant(fastest, Nanos(1)).total(), u64::MAX);
        let hold = |rate, duration| Stage { duration, from: rate, to: rate };
        let refusal = |stages| Profile::new(stages).unwrap_err();
        assert_eq!(refusal(vec![]), ProfileError::NoStages);
        assert_eq!(refusal(vec![ramp(1, 1, 1), ramp(0, 1, 1)]), ProfileError::EmptyStage(2));
        assert_eq!(
            refusal(vec![hold(Rate::per_second(1), Nanos::MAX), ramp(1, 1, 1)]),
            ProfileError::TooLong
        );
        assert_eq!(refusal(vec![hold(fastest, Nanos(2))]), ProfileError::TooMany);
        assert_eq!(
            refusal(vec![Stage { duration: Nanos(9), from: fastest, to: Rate::per_second(1) }]),
            ProfileError::TooFine
        );
        let primes = [4_294_967_291, 4_294_967_279, 4_294_967_231];
        let fine = primes.map(|period| hold(Rate::new(1, Nanos(period)).unwrap(), Nanos(5)));
        assert_eq!(refusal(fine.to_vec()), ProfileError::TooFine);
        assert!(Profile::new(fine[..2].to_vec()).is_ok());
    }

    #[test]
    fn rates_between_stages() {
        let profile = Profile::new(vec![ramp(10, 100, 100), ramp(10, 100, 300), ramp(5, 0, 0)]).unwrap();
        let rate = |seconds| profile.rate_at(Nanos::from_secs(seconds));
        assert_eq!(
            [rate(0), rate(9), rate(10), rate(15), rate(20), rate(25)],
            [100., 100., 100., 200., 0., 0.]
        );
        assert_eq!(profile.peak(), 300.0);
        let mean = |from, to| profile.mean_rate(Nanos::from_secs(from), Nanos::from_secs(to));
        assert_eq!([mean(0, 10), mean(10, 20), mean(5, 15), mean(15, 25)], [100.0, 200.0, 125.0, 125.0]);
        assert_eq!([mean(20, 30), mean(15, 35), mean(7, 7), mean(40, 50)], [0.0, 62.5, 0.0, 0.0]);
        assert_eq!(profile.duration(), Nanos::from_secs(25));
        assert_eq!(profile.stages().len(), 3);
    }
}
