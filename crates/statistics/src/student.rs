//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The factor t of a two-sided interval `estimate ± t · standard error` with a given confidence (in (0, 1)):
/// the quantile `(1 + confidence) / 2` of Student's t distribution.
///
/// Degrees of freedom need not be whole: parts of unequal size have fewer than their number says. Infinite
/// when there are none, since one value says nothing about its own variation.
pub fn student_quantile(confidence: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 {
        return f64::INFINITY;
    }
    let student = StudentsT::new(0.0, 1.0, degrees).expect("scale and degrees are positive");
    student.inverse_cdf(f64::midpoint(1.0, confidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of every textbook, two-sided 95 % and 99 %.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        let cases = [
            (0.95, 1.0, 12.706),
            (0.95, 4.0, 2.776),
            (0.95, 9.0, 2.262),
            (0.95, 29.0, 2.045),
            (0.99, 9.0, 3.250),
            (0.95, 100_000.0, 1.960),
        ];
        for (confidence, degrees, expected) in cases {
            let t = student_quantile(confidence, degrees);
            assert!((t - expected).abs() < 1e-3, "{degrees} degrees of freedom: {t}");
        }
        assert_eq!(student_quantile(0.95, 0.0), f64::INFINITY);
    }
}
