//! Numbers of which few are frequent and most are rare, as the keys of a cache are.

use plimsoll_core::Random;

/// The Zipf distribution over the ranks 0 to `count − 1`: rank k has a probability in proportion to
/// (k + 1)⁻ˢ.
///
/// Drawn by rejection-inversion: Hörmann and Derflinger (1996), "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3). That takes a number of random numbers which is not
/// known ahead (1.0 to 1.2 in the mean), so those after the first come from a stream of their own, which that
/// one begins: a slot takes always as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zipf {
    count: u64,
    /// s, in thousandths.
    thousandths: u32,
    /// H(1.5) − 1, H(count + 0.5) and the width of the range that is accepted at once: bits of floating point
    /// numbers.
    low: u64,
    high: u64,
    width: u64,
}

impl Zipf {
    /// Over `count` ranks, at least 1, with an exponent in thousandths, at least 1.
    pub fn new(count: u64, thousandths: u32) -> Self {
        let s = f64::from(thousandths) / 1000.0;
        let width = 2.0 - inverse(s, integral(s, 2.5) - 2.0_f64.powf(-s));
        Self {
            count,
            thousandths,
            low: (integral(s, 1.5) - 1.0).to_bits(),
            high: integral(s, count as f64 + 0.5).to_bits(),
            width: width.to_bits(),
        }
    }

    /// The number of ranks.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// One rank, from 0. Takes one random number.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let first = random.clone();
        let mut unit = random.unit();
        let s = f64::from(self.thousandths) / 1000.0;
        let [low, high, width] = [self.low, self.high, self.width].map(f64::from_bits);
        // Few draws need it, and its beginning costs as much as a draw.
        let mut more: Option<Random> = None;
        loop {
            let u = high + unit * (low - high);
            let x = inverse(s, u);
            let k = (x + 0.5).floor().clamp(1.0, self.count as f64);
            if k - x <= width || u >= integral(s, k + 0.5) - k.powf(-s) {
                return k as u64 - 1;
            }
            unit = more.get_or_insert_with(|| Random::new(first.clone().bits(), 0)).unit();
        }
    }
}

/// H(x), an integral of x⁻ˢ: (x¹⁻ˢ − 1) / (1 − s), or ln x for s = 1.
fn integral(s: f64, x: f64) -> f64 {
    let log = x.ln();
    exp_m1_by((1.0 - s) * log) * log
}

/// The inverse of [`integral`].
fn inverse(s: f64, y: f64) -> f64 {
    // Rounding may put it a little below −1, where the logarithm is undefined.
    let t = (y * (1.0 - s)).max(-1.0);
    (ln_1p_by(t) * y).exp()
}

/// (eˣ − 1) / x, also near 0.
fn exp_m1_by(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, also near 0.
fn ln_1p_by(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the first ranks are those of the law, within five standard errors.
    #[test]
    fn ranks_have_the_probabilities_of_the_law() {
        const DRAWS: u64 = 200_000;
        for (count, thousandths) in [(1, 1_000), (2, 500), (10, 1_000), (1_000, 990), (1_000_000, 1_500)] {
            let zipf = Zipf::new(count, thousandths);
            let mut random = Random::new(7, 0);
            let mut seen = vec![0_u64; count.min(8) as usize];
            for _ in 0..DRAWS {
                let rank = zipf.draw(&mut random);
                assert!(rank < count, "{rank} of {count}");
                if let Some(times) = seen.get_mut(rank as usize) {
                    *times += 1;
                }
            }
            let weight = |rank: u64| ((rank + 1) as f64).powf(-f64::from(thousandths) / 1000.0);
            let all: f64 = (0..count).map(weight).sum();
            for (rank, &times) in seen.iter().enumerate() {
                let p = weight(rank as u64) / all;
                let expected = p * DRAWS as f64;
                let error = (expected * (1.0 - p)).sqrt();
                let off = (times as f64 - expected).abs();
                assert!(
                    off <= 5.0 * error + 1e-6,
                    "{rank} of {count}, {thousandths}: {times} for {expected}"
                );
            }
        }
    }

    #[test]
    fn a_draw_takes_one_random_number() {
        let (zipf, mut drawn, mut plain) = (Zipf::new(100, 1_200), Random::new(3, 1), Random::new(3, 1));
        for _ in 0..100 {
            zipf.draw(&mut drawn);
            plain.bits();
            assert_eq!(drawn.clone().bits(), plain.clone().bits());
        }
    }
}
