//! Recorded numbers: decimals with six places, so that sums of them are exact in any order.

use serde::{Deserialize, Serialize};

/// Parts of one: a number is kept as a whole number of them.
const PARTS: f64 = 1e6;
/// Largest magnitude of a number: its millionths fit into 63 bits.
pub(super) const LARGEST: f64 = 9e12;

/// A number as it is kept, in millionths: from −9 · 10^12 to 9 · 10^12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millionths(pub i64);

/// Reason why a value is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The text is no number, or none that is finite.
    NoNumber,
    /// The magnitude is above [`LARGEST`].
    TooLarge,
    /// The number is not zero, and nearer to zero than to the smallest number that is kept.
    TooSmall,
    /// A counter was to go down.
    Negative,
    /// The text is neither `true` nor `false`, and neither 1 nor 0.
    NoTruth,
    /// A tag is no text, or a long one.
    Tag,
}

impl Unfit {
    /// The reason in words, behind the value.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoNumber => "is no number",
            Self::TooLarge => "is beyond the numbers that are kept, 9 · 10^12 on both sides of 0",
            Self::TooSmall => "is nearer to 0 than 0.000001, the smallest number that is kept",
            Self::Negative => "is negative, and a counter only goes up",
            Self::NoTruth => "is neither true (1) nor false (0)",
            Self::Tag => "has a tag that is not a text of at most 200 bytes",
        }
    }
}

impl Millionths {
    /// Reads a number: `12`, `-0.5`, `1e3`, with spaces around it or without. Digits beyond the sixth place
    /// are rounded.
    ///
    /// # Errors
    /// The reason why it is not kept.
    pub fn parse(text: &[u8]) -> Result<Self, Unfit> {
        let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| Unfit::NoNumber)?;
        let number: f64 = text.parse().map_err(|_| Unfit::NoNumber)?;
        if !number.is_finite() {
            // Of words, only that of an overflow is a number: 1e999.
            let is_digits = text.bytes().any(|byte| byte.is_ascii_digit());
            return Err(if is_digits { Unfit::TooLarge } else { Unfit::NoNumber });
        }
        if number.abs() > LARGEST {
            return Err(Unfit::TooLarge);
        }
        let parts = (number * PARTS).round() as i64;
        if parts == 0 && (number != 0.0 || has_digit_above_zero(text)) {
            return Err(Unfit::TooSmall);
        }
        Ok(Self(parts))
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / PARTS
    }
}

/// Returns `true` if a number that is read as zero is none: `1e-999`.
fn has_digit_above_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
}

/// The number that a sum of millionths is.
pub(super) fn of_sum(sum: i128) -> f64 {
    sum as f64 / PARTS
}

/// Reads a truth: `true` or 1, `false` or 0.
pub(super) fn truth(text: &[u8]) -> Result<bool, Unfit> {
    match text.trim_ascii() {
        b"true" | b"1" => Ok(true),
        b"false" | b"0" => Ok(false),
        _ => Err(Unfit::NoTruth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_six_places() {
        for (text, parts) in [
            ("0", 0),
            ("-0.0", 0),
            ("12", 12_000_000),
            (" -0.5\n", -500_000),
            ("0.1", 100_000),
            ("1e3", 1_000_000_000),
            ("+.25", 250_000),
            ("0.0000015", 2),
            ("0.000001", 1),
            ("9e12", 9_000_000_000_000_000_000),
            ("-9000000000000", -9_000_000_000_000_000_000),
        ] {
            assert_eq!(Millionths::parse(text.as_bytes()), Ok(Millionths(parts)), "{text}");
        }
        assert_eq!(Millionths(-1_500_000).to_f64(), -1.5);
    }

    #[test]
    fn what_is_no_number_is_never_a_zero() {
        for (text, reason) in [
            ("", Unfit::NoNumber),
            (" ", Unfit::NoNumber),
            ("EUR 5", Unfit::NoNumber),
            ("5 EUR", Unfit::NoNumber),
            ("1,5", Unfit::NoNumber),
            ("true", Unfit::NoNumber),
            ("null", Unfit::NoNumber),
            ("NaN", Unfit::NoNumber),
            ("inf", Unfit::NoNumber),
            ("-Infinity", Unfit::NoNumber),
            ("0x10", Unfit::NoNumber),
            ("\u{ff}", Unfit::NoNumber),
            ("1e999", Unfit::TooLarge),
            ("9.1e12", Unfit::TooLarge),
            ("-1e13", Unfit::TooLarge),
            ("1e-7", Unfit::TooSmall),
            ("-0.0000001", Unfit::TooSmall),
            ("1e-999", Unfit::TooSmall),
        ] {
            assert_eq!(Millionths::parse(text.as_bytes()), Err(reason), "{text}");
        }
        assert_eq!(Millionths::parse(&[0xff, b'1']), Err(Unfit::NoNumber));
        assert_eq!([truth(b"true"), truth(b" 0 ")], [Ok(true), Ok(false)]);
        assert_eq!([truth(b"yes"), truth(b""), truth(b"2")], [Err(Unfit::NoTruth); 3]);
    }
}
