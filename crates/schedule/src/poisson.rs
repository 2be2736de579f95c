//! The gaps of a Poisson process of rate 1, the same on every machine.

use plimsoll_core::Random;

/// The stream of [`Random`] that the schedule draws from; other parts of a run take other streams of its
/// seed.
const STREAM: u64 = 0;

/// The part of a double that holds its digits.
const MANTISSA_BITS: u64 = (1 << 52) - 1;

/// Sums of exponential gaps of mean 1: the arrivals of a Poisson process of rate 1 ("operational time").
#[derive(Clone, Debug)]
pub(crate) struct OperationalTime {
    random: Random,
    /// In 2^-64: a sum in floating point would lose precision as it grows.
    elapsed: u128,
}

impl OperationalTime {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed, STREAM), elapsed: 0 }
    }

    /// The time of the next arrival, in 2^-64.
    pub(crate) fn next(&mut self) -> u128 {
        // Exact: a power of two. Below 37 * 2^64, so the cast does not saturate.
        let gap = exponential(self.random.bits()) * 18_446_744_073_709_551_616.0;
        self.elapsed = self.elapsed.saturating_add(gap as u128);
        self.elapsed
    }

    /// The time of the last arrival, in 2^-64.
    pub(crate) const fn elapsed(&self) -> u128 {
        self.elapsed
    }
}

/// An exponentially distributed number of mean 1: -ln(u) for u uniform in `{1..2^53} / 2^53`.
///
/// The logarithm is made of additions, multiplications and one division alone, which IEEE 754 defines to the
/// last bit, because those of the platforms' libraries differ in it, and then a seed would not give the same
/// schedule everywhere. Argument reduction and polynomial are those of fdlibm's `e_log.c` (Sun Microsystems,
/// 1993): with u = 2^k * (1 + f), sqrt(1/2) < 1 + f < sqrt(2), s = f / (2 + f),
///
/// ```text
/// ln(u) = k * ln(2) + f - (f²/2 - s * (f²/2 + R(s²)))       |error of R| < 2^-58.45
/// ```
fn exponential(bits: u64) -> f64 {
    let numerator = (bits >> 11) + 1;
    // Exact up to 2^53. The mantissa, in [1, 2), keeps its bits and gets the exponent of 1.
    let whole = (numerator as f64).to_bits();
    let mut mantissa = f64::from_bits(whole & MANTISSA_BITS | 1.0_f64.to_bits());
    let mut halvings = numerator.leading_zeros() as i32 - (63 - 53);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        halvings -= 1;
    }
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even =
        w * (3.999_999_999_940_942e-1 + w * (2.222_219_843_214_978_4e-1 + w * 1.531_383_769_920_937_3e-1));
    let odd = z
        * (6.666_666_666_666_735e-1
            + w * (2.857_142_874_366_239e-1
                + w * (1.818_357_216_161_805e-1 + w * 1.479_819_860_511_658_6e-1)));
    let half_square = 0.5 * f * f;
    let logarithm = f - (half_square - s * (half_square + (even + odd)));
    f64::from(halvings) * std::f64::consts::LN_2 - logarithm
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The random bits that make u = `numerator` / 2^53.
    fn bits(numerator: u64) -> u64 {
        (numerator - 1) << 11
    }

    #[test]
    fn the_logarithm_agrees_with_the_platform() {
        let mut random = Random::new(5, 1);
        let top = 1_u64 << 53;
        let chosen = [1, 2, 3, top / 2 - 1, top / 2, top / 2 + 1, top - 1, top];
        let drawn = std::iter::repeat_with(|| 1 + (random.bits() >> 11)).take(100_000);
        for numerator in chosen.into_iter().chain(drawn) {
            let expected = -(numerator as f64 / top as f64).ln();
            let got = exponential(bits(numerator));
            assert!((got - expected).abs() <= 4e-16 * expected, "{numerator}: {got} {expected}");
        }
    }

    #[test]
    fn the_first_gaps_of_a_seed_never_change() {
        let mut time = OperationalTime::new(42);
        let got: [u128; 4] = std::array::from_fn(|_| time.next());
        // A change of the last bit would break the repetition of old runs.
        let fixed = [
            3_789_332_234_908_701_696,
            24_876_272_762_600_834_048,
            25_175_791_446_316_752_000,
            31_725_381_262_297_834_624,
        ];
        assert_eq!(got, fixed);
        // The same from xoshiro256++ and a logarithm with 45 digits, written in another language.
        let exact: [u128; 4] = [
            3_789_332_234_908_701_698,
            24_876_272_762_600_835_461,
            25_175_791_446_316_753_442,
            31_725_381_262_297_836_472,
        ];
        for (got, exact) in got.into_iter().zip(exact) {
            // The resolution of a gap of about 1.
            assert!(got.abs_diff(exact) < 1 << 12, "{got} {exact}");
        }
    }
}
