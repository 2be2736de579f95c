//! Prediction intervals: the range in which the next value of a series is expected.

use crate::shift::Shift;
use crate::student_quantile;

/// Fewest values from which the next one is predicted.
pub const FEWEST_PREDECESSORS: usize = 5;

/// The interval in which the next value is expected, from those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Mean of the predecessors.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Prediction {
    /// Predicts the value after these, with a confidence in (0, 1); `None` below [`FEWEST_PREDECESSORS`].
    ///
    /// The interval is `mean ± t · s · √(1 + 1/n)`, with the standard deviation `s` of the `n` predecessors
    /// and Student's t with `n − 1` degrees of freedom (Hahn and Meeker, "Statistical Intervals", 1991,
    /// chapter 4): it has the variation of the next value and the error of the mean. The values are taken
    /// to vary about one mean, without a trend and independently of each other.
    pub fn of(predecessors: &[f64], confidence: f64) -> Option<Self> {
        if predecessors.len() < FEWEST_PREDECESSORS {
            return None;
        }
        let n = predecessors.len() as f64;
        let mean = predecessors.iter().sum::<f64>() / n;
        let squares: f64 = predecessors.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        let half = student_quantile(confidence, n - 1.0) * deviation * (1.0 + 1.0 / n).sqrt();
        Some(Self { mean, low: mean - half, high: mean + half })
    }

    /// Returns the change to this value relative to the mean, with its interval; infinite where the mean is
    /// zero and the value is not.
    pub fn change_to(&self, value: f64) -> Shift {
        let relative = |difference: f64| if difference == 0.0 { 0.0 } else { difference / self.mean.abs() };
        Shift {
            estimate: relative(value - self.mean),
            low: relative(value - self.high),
            high: relative(value - self.low),
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    #[test]
    fn an_interval_is_that_of_the_formula() {
        assert_eq!(Prediction::of(&[1.0, 2.0, 3.0, 4.0], 0.95), None);
        // Mean 3, s = √2.5, t = 2.776 with four degrees of freedom.
        let prediction = Prediction::of(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let half = 2.7764 * 2.5_f64.sqrt() * 1.2_f64.sqrt();
        assert!((prediction.high - (3.0 + half)).abs() < 1e-3, "{prediction:?}");
        assert!((prediction.low - (3.0 - half)).abs() < 1e-3, "{prediction:?}");
        let change = prediction.change_to(6.0);
        assert!((change.estimate - 1.0).abs() < 1e-9, "{change:?}");
        assert!((change.low - (6.0 - prediction.high) / 3.0).abs() < 1e-9, "{change:?}");
        assert!((change.high - (6.0 - prediction.low) / 3.0).abs() < 1e-9, "{change:?}");
    }

    #[test]
    fn values_that_never_varied_expect_the_same() {
        let zero = Prediction::of(&[0.0; 5], 0.99).unwrap();
        assert_eq!(zero.change_to(0.0), Shift { estimate: 0.0, low: 0.0, high: 0.0 });
        assert_eq!(zero.change_to(0.01).low, f64::INFINITY);
    }

    #[test]
    fn the_next_value_lies_in_the_interval_as_often_as_stated() {
        let mut random = Random::new(29, 0);
        for predecessors in [5, 10, 40] {
            let held = (0..4_000).filter(|_| {
                let mut value = || 1.0 + 0.05 * random.normal();
                let before: Vec<f64> = (0..predecessors).map(|_| value()).collect();
                let prediction = Prediction::of(&before, 0.99).unwrap();
                let next = value();
                prediction.low <= next && next <= prediction.high
            });
            let share = held.count() as f64 / 4_000.0;
            assert!((0.984..0.996).contains(&share), "{share} after {predecessors}");
        }
    }
}
