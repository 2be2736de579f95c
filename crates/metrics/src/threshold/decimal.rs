//! Decimal numbers as they are typed: 0.1 is one tenth.

use std::cmp::Ordering;
use std::fmt;

/// Digits behind the point at most: the limit for products in 128 bits.
const PLACES: u32 = 9;
/// Digits in all at most, for the same reason.
const DIGITS: u64 = 1_000_000_000_000_000;

/// A decimal number that is not negative: `digits / 10^places`, with as few places as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u64,
    places: u32,
}

impl Decimal {
    /// Returns `true` if it is 0.
    pub(super) const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Parses digits with at most one point among them. `None` for anything else, and for more digits than
    /// are kept exactly: 15, and 9 behind the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let pointless = !text.contains('.') || !fraction.is_empty();
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !pointless || !digits(whole) || !digits(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= PLACES)?;
        let digits = [whole, fraction].concat().parse().ok()?;
        Some(Self::new(digits, places)).filter(|number| number.digits < DIGITS)
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.digits as f64 / 10_f64.powi(self.places as i32)
    }

    fn new(mut digits: u64, mut places: u32) -> Self {
        while places > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            places -= 1;
        }
        Self { digits, places }
    }

    /// `units / 10^places`.
    pub(super) fn of_units(units: u64, places: u32) -> Self {
        Self::new(units, places)
    }

    /// This number times `factor`, if that is still kept exactly.
    pub(super) fn times(self, factor: u64) -> Option<Self> {
        let product = self.digits.checked_mul(factor)?;
        Some(Self::new(product, self.places)).filter(|number| number.digits < DIGITS)
    }

    /// This number times `factor`, if that is a whole number of 64 bits.
    pub(super) fn whole_times(self, factor: u64) -> Option<u64> {
        let product = u128::from(self.digits) * u128::from(factor);
        let divisor = 10_u128.pow(self.places);
        u64::try_from(product / divisor).ok().filter(|_| product.is_multiple_of(divisor))
    }

    /// A hundredth of this number.
    pub(super) fn hundredth(self) -> Option<Self> {
        Some(Self::new(self.digits, self.places + 2)).filter(|number| number.places <= PLACES)
    }

    /// This number in units of 10^-places, if that is a whole number.
    pub(super) fn scaled(self, places: u32) -> Option<u64> {
        let missing = places.checked_sub(self.places)?;
        self.digits.checked_mul(10_u64.checked_pow(missing)?)
    }

    /// Returns `true` if the number is at most this whole number.
    pub(super) fn is_at_most(self, limit: u64) -> bool {
        compare(u128::from(limit), 1, self) != Ordering::Less
    }
}

/// `part / whole` against a decimal number, exactly as long as `part` is below 10^29 and `whole` below 10^23.
pub(super) fn compare(part: u128, whole: u128, number: Decimal) -> Ordering {
    let left = part.saturating_mul(10_u128.pow(number.places));
    left.cmp(&whole.saturating_mul(u128::from(number.digits)))
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.places == 0 {
            return write!(f, "{}", self.digits);
        }
        let power = 10_u64.pow(self.places);
        let width = self.places as usize;
        write!(f, "{}.{:0width$}", self.digits / power, self.digits % power)
    }
}
