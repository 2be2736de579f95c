//! Several tests at once, without more false alarms than one: the method of Holm.

/// The probabilities of several tests, each raised so that, compared with one level, at most that share of
/// all comparisons has any false alarm, however the tests depend on each other. In the order given.
///
/// Holm (1979), "A simple sequentially rejective multiple test procedure": the k-th smallest of m is
/// multiplied by m − k + 1, and none is smaller than one before it.
///
/// A test that cannot reject with any groups (all values are equal) need not be among them (Tarone,
/// 1990).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (before, &i) in order.iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - before) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[0.04]), [0.04]);
    }
}
