//! Growth of a quantity over time, with its certainty.

use crate::student_quantile;

/// Batches into which points are joined before a line is fitted: neighbours that are alike for a short time,
/// as memory is between two collections, count as one.
const BATCHES: usize = 20;
/// Fewer say nothing about how well a line fits.
const FEWEST: usize = 5;

/// A slope, with half the width of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Change of the quantity per unit of time.
    pub slope: f64,
    /// The true slope lies within `slope ± error`, with the confidence that was asked for.
    pub error: f64,
}

impl Trend {
    /// Returns `true` if the slope differs from zero at that confidence.
    pub fn is_sure(&self) -> bool {
        self.slope.abs() > self.error
    }
}

/// The line of least squares through points (time, quantity) in the order of time; `None` where there are too
/// few, or all are of one time.
///
/// Points are first joined to at most 20 batches of equally many neighbours, by their means. The interval is
/// `t(n − 2) · s / √Sxx` with the residual standard deviation s of the batches (Draper and Smith, Applied
/// Regression Analysis, 1.4). It takes the distances of batches from the line as independent: for a quantity
/// that wanders over a large part of the run, it is too narrow.
pub fn trend(points: &[(f64, f64)], confidence: f64) -> Option<Trend> {
    let batches = points.len().min(BATCHES);
    if batches < FEWEST {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64, points: &[(f64, f64)]| {
        points.iter().map(of).sum::<f64>() / points.len() as f64
    };
    let batch = |number: usize| {
        let part = &points[number * points.len() / batches..(number + 1) * points.len() / batches];
        (mean(|point| point.0, part), mean(|point| point.1, part))
    };
    let means: Vec<(f64, f64)> = (0..batches).map(batch).collect();
    let (middle, level) = (mean(|point| point.0, &means), mean(|point| point.1, &means));
    let spread: f64 = means.iter().map(|(x, _)| (x - middle).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = means.iter().map(|(x, y)| (x - middle) * (y - level)).sum::<f64>() / spread;
    let rest: f64 = means.iter().map(|(x, y)| (y - level - slope * (x - middle)).powi(2)).sum();
    let degrees = (batches - 2) as f64;
    let error = student_quantile(confidence, degrees) * (rest / degrees / spread).sqrt();
    Some(Trend { slope, error })
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Random;

    use super::*;

    #[test]
    fn an_exact_line_is_found_and_a_flat_one_has_no_slope() {
        let line: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
        let found = trend(&line, 0.95).expect("there are enough");
        assert!((found.slope - 2.0).abs() < 1e-9 && found.error < 1e-9 && found.is_sure(), "{found:?}");
        let flat: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 7.0)).collect();
        assert_eq!(trend(&flat, 0.95), Some(Trend { slope: 0.0, error: 0.0 }));
        assert!(!trend(&flat, 0.95).expect("there are enough").is_sure());
        assert_eq!(trend(&line[..4], 0.95), None);
        assert_eq!(trend(&[(1.0, 2.0); 9], 0.95), None);
    }

    /// The textbook's own figures: x 1..5, y 1, 1, 2, 2, 4 have b = 0.7 and s² = 0.367 of 3 degrees.
    #[test]
    fn the_interval_is_that_of_the_textbook() {
        let points = [(1.0, 1.0), (2.0, 1.0), (3.0, 2.0), (4.0, 2.0), (5.0, 4.0)];
        let found = trend(&points, 0.95).expect("there are enough");
        assert!((found.slope - 0.7).abs() < 1e-12);
        assert!((found.error - 3.182 * (0.366_667_f64 / 10.0).sqrt()).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut random = Random::new(5, 0);
        let covered = (0..400)
            .filter(|_| {
                let points: Vec<(f64, f64)> =
                    (0..200).map(|x| (f64::from(x), 0.5 * f64::from(x) + 10.0 * random.normal())).collect();
                let found = trend(&points, 0.95).expect("there are enough");
                (found.slope - 0.5).abs() <= found.error
            })
            .count();
        assert!((360..=395).contains(&covered), "{covered} of 400");
    }
}
