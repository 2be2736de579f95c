//! By how much one group of runs differs from another: the Hodges–Lehmann shift.

use crate::rank::lower_critical;

/// An estimate with its interval. A side without a bound is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The estimate.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Shift {
    /// Converts the estimate and its interval to another scale: `scale` must not fall.
    #[must_use]
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Self {
        Self { estimate: scale(self.estimate), low: scale(self.low), high: scale(self.high) }
    }
}

/// By how much the values of `b` are larger than those of `a`: the median of all differences, and an interval
/// that holds the shift with at least this confidence (in (0, 1)) if the groups differ by a shift only. It
/// has no bounds where so few values cannot give that confidence: see [`runs_needed`]. `None` if a group is
/// empty or a value is not a number.
///
/// Hodges and Lehmann (1963), "Estimates of location based on rank tests"; the interval holds the shifts that
/// the Mann–Whitney test would not reject (Moses), with its exact distribution up to 60 values. With ties it
/// is wider than need be.
pub fn shift(a: &[f64], b: &[f64], confidence: f64) -> Option<Shift> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let pairs = differences.len();
    let estimate = f64::midpoint(differences[(pairs - 1) / 2], differences[pairs / 2]);
    let (low, high) = match lower_critical(a.len(), b.len(), (1.0 - confidence) / 2.0) {
        0 => (f64::NEG_INFINITY, f64::INFINITY),
        critical => (differences[critical - 1], differences[pairs - critical]),
    };
    Some(Shift { estimate, low, high })
}

/// The relative shift of `b` against `a`: 0.05 where `b` is larger by 5 %. It is the shift of the logarithms,
/// so that comparing the groups the other way round gives the reciprocal ratio. `None` also if a value is not
/// positive.
pub fn relative_shift(a: &[f64], b: &[f64], confidence: f64) -> Option<Shift> {
    let logarithms = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|&value| (value > 0.0).then(|| value.ln())).collect()
    };
    Some(shift(&logarithms(a)?, &logarithms(b)?, confidence)?.map(f64::exp_m1))
}

/// Runs on each side that it takes for an interval of this confidence to have bounds: 4 for 95 %.
pub fn runs_needed(confidence: f64) -> usize {
    (1..30).find(|&runs| lower_critical(runs, runs, (1.0 - confidence) / 2.0) > 0).unwrap_or(30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // R: wilcox.test(y, x, conf.int = TRUE) of the example in `rank`: estimate -0.305, interval of 95 %
        // from -0.76 to 0.15.
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = shift(&x, &y, 0.95).unwrap();
        assert!((found.estimate - -0.305).abs() < 1e-9, "{found:?}");
        assert!((found.low - -0.76).abs() < 1e-9 && (found.high - 0.15).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn relative_shifts_are_ratios() {
        let a = [100.0, 101.0, 102.0, 103.0, 104.0];
        let b = a.map(|value| value * 1.05);
        let there = relative_shift(&a, &b, 0.95).unwrap();
        let back = relative_shift(&b, &a, 0.95).unwrap();
        assert!((there.estimate - 0.05).abs() < 1e-12, "{there:?}");
        assert!(((1.0 + there.low) * (1.0 + back.high) - 1.0).abs() < 1e-12, "{there:?} {back:?}");
        assert_eq!(relative_shift(&[0.0, 1.0], &b, 0.95), None);
    }

    #[test]
    fn too_few_values_give_no_bounds() {
        let found = shift(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0], 0.95).unwrap();
        assert_eq!((found.estimate, found.low, found.high), (10.0, f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!([runs_needed(0.9), runs_needed(0.95), runs_needed(0.99)], [4, 4, 5]);
    }
}
