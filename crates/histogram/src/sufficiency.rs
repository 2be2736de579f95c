//! The number of values that a statement needs.

/// The number of independent samples from which a 95 % upper confidence bound exists for percentile `p` (0 to
/// 100).
///
/// Free of any assumption on the distribution: all `n` samples lie below the true quantile `q = p / 100` with
/// probability `q^n`, so the largest sample bounds it with 95 % confidence once `q^n <= 0.05`, hence
/// `n >= ln(0.05) / ln(q)` (Hahn & Meeker, *Statistical Intervals*, order-statistic bounds). That is 299 for
/// p99, 2,995 for p99.9 and 29,956 for p99.99. No number is enough for p100.
pub fn samples_needed(p: f64) -> u64 {
    let q = p / 100.0;
    if q <= 0.0 {
        return 1;
    }
    if q >= 1.0 {
        return u64::MAX;
    }
    (0.05_f64.ln() / q.ln()).ceil() as u64
}
