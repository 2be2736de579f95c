//! Exact amounts: ratios, and times as plan files have them.

use std::fmt;

/// A ratio of whole numbers, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    over: u128,
    under: u128,
}

impl Ratio {
    /// `over / under`; `None` if `under` is zero.
    pub(crate) fn new(over: u128, under: u128) -> Option<Self> {
        if under == 0 {
            return None;
        }
        let divisor = gcd(over, under);
        Some(Self { over: over / divisor, under: under / divisor })
    }

    /// A whole number.
    pub(crate) fn whole(number: u128) -> Self {
        Self { over: number, under: 1 }
    }

    /// The number that a text like `0.25` is, with at most nine decimals; `None` for anything else.
    pub(crate) fn decimal(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || fraction.len() > 9 || !digits(whole) || !digits(fraction) {
            return None;
        }
        let scale = 10_u128.pow(fraction.len() as u32);
        let whole = whole.parse::<u128>().ok()?.checked_mul(scale)?;
        let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
        Self::new(whole.checked_add(fraction)?, scale)
    }

    /// Returns `true` for 1 and less.
    pub(crate) fn is_at_most_one(&self) -> bool {
        self.over <= self.under
    }

    /// Returns `true` for nothing.
    pub fn is_zero(&self) -> bool {
        self.over == 0
    }

    pub(crate) fn times(&self, other: Self) -> Option<Self> {
        Self::new(self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?)
    }

    pub(crate) fn times_whole(&self, factor: u128) -> Option<Self> {
        self.times(Self::new(factor, 1)?)
    }

    pub(crate) fn divided_by(&self, other: Self) -> Option<Self> {
        self.times(Self::new(other.under, other.over)?)
    }

    pub(crate) fn plus(&self, other: Self) -> Option<Self> {
        let over = self.over.checked_mul(other.under)?.checked_add(other.over.checked_mul(self.under)?)?;
        Self::new(over, self.under.checked_mul(other.under)?)
    }

    /// The smallest whole number that is not below it.
    pub(crate) fn ceil(&self) -> u128 {
        self.over.div_ceil(self.under)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.under == 1
    }

    /// As a rate per second: `5`, `5/3s`.
    pub fn rate(&self) -> String {
        match self.under {
            1 => self.over.to_string(),
            under => format!("{}/{under}s", self.over),
        }
    }

    /// As nanoseconds, if it is a number of seconds; `None` beyond 64 bits. Rounded down.
    pub(crate) fn nanos(&self) -> Option<u64> {
        u64::try_from(self.over.checked_mul(1_000_000_000)? / self.under).ok()
    }

    /// As nanoseconds, if it is a number of seconds; `None` beyond 64 bits. Rounded up.
    pub(crate) fn nanos_up(&self) -> Option<u64> {
        u64::try_from(self.over.checked_mul(1_000_000_000)?.div_ceil(self.under)).ok()
    }
}

/// For people: `0.25`, rounded to three decimals.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.3}", self.over as f64 / self.under as f64);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Whole numbers in the proportions of `ratios`, as small as possible.
pub(crate) fn proportions(ratios: &[Ratio]) -> Option<Vec<u128>> {
    let mut common = 1_u128;
    for ratio in ratios {
        common = (common / gcd(common, ratio.under)).checked_mul(ratio.under)?;
    }
    let scaled: Option<Vec<u128>> =
        ratios.iter().map(|ratio| ratio.over.checked_mul(common / ratio.under)).collect();
    let scaled = scaled?;
    let divisor = scaled.iter().fold(0, |divisor, &number| gcd(divisor, number)).max(1);
    Some(scaled.iter().map(|number| number / divisor).collect())
}

/// Seconds as nanoseconds, from none to thirty years.
pub(crate) fn nanos(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e9).round() as u64
}

/// A time as it is written in a plan file, in the largest unit that keeps it whole.
pub(crate) fn time(nanos: u64) -> String {
    for (length, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanos.is_multiple_of(length) {
            return format!("{}{unit}", nanos / length);
        }
    }
    format!("{nanos}ns")
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, rate) in [("5", "5"), ("0.5", "1/2s"), ("2.50", "5/2s"), ("0", "0")] {
            assert_eq!(Ratio::decimal(text).unwrap().rate(), rate, "{text}");
        }
        for text in ["", ".5", "-1", "1e3", "1.0000000001", "x"] {
            assert_eq!(Ratio::decimal(text), None, "{text}");
        }
        assert_eq!(Ratio::new(1, 3).unwrap().to_string(), "0.333");
        assert_eq!(Ratio::new(4, 2).unwrap().to_string(), "2");
    }

    #[test]
    fn proportions_are_small_whole_numbers() {
        let ratios = [Ratio::new(100, 1), Ratio::new(100, 3), Ratio::new(50, 2)].map(Option::unwrap);
        assert_eq!(proportions(&ratios).unwrap(), [12, 4, 3]);
        assert_eq!(proportions(&[]).unwrap(), [0; 0]);
    }

    #[test]
    fn times_keep_their_unit() {
        for (nanos, text) in [(5_000_000_000, "5s"), (1_500_000_000, "1500ms"), (7_000, "7us"), (1, "1ns")] {
            assert_eq!(time(nanos), text);
        }
    }
}
