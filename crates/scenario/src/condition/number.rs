//! Texts that are numbers.

use std::cmp::Ordering;

/// Compares two texts as numbers; `None` if one of them is not a number.
///
/// A number is one of JSON (RFC 8259 section 6), perhaps with leading zeros or a `+`. Whole numbers are
/// compared digit by digit, however large they are; with a fraction or an exponent, as 64-bit floats, where
/// one that is too large for a float is not a number.
pub(super) fn compare(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let (left, right) = (Number::parse(left)?, Number::parse(right)?);
    if left.is_whole && right.is_whole {
        return Some(left.signed_order(right));
    }
    left.float()?.partial_cmp(&right.float()?)
}

#[derive(Clone, Copy)]
struct Number<'a> {
    text: &'a [u8],
    negative: bool,
    /// Digits before the point, without leading zeros.
    digits: &'a [u8],
    is_whole: bool,
}

impl<'a> Number<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        let (digits, rest) = cut_digits(unsigned)?;
        let (after, is_whole) = match rest.strip_prefix(b".") {
            Some(fraction) => (cut_digits(fraction)?.1, false),
            None => (rest, true),
        };
        let exponent = after.strip_prefix(b"e").or_else(|| after.strip_prefix(b"E"));
        let (end, is_whole) = match exponent {
            Some(exponent) => {
                let sign = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+"));
                (cut_digits(sign.unwrap_or(exponent))?.1, false)
            }
            None => (after, is_whole),
        };
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let number = Self { text, negative: text[0] == b'-', digits: &digits[zeros..], is_whole };
        end.is_empty().then_some(number)
    }

    /// The order of whole numbers.
    fn signed_order(self, other: Self) -> Ordering {
        let sign = |number: Self| match (number.digits, number.negative) {
            ([], _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let size = |number: Self| (number.digits.len(), number.digits);
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal if self.negative => size(other).cmp(&size(self)),
            Ordering::Equal => size(self).cmp(&size(other)),
            order => order,
        }
    }

    fn float(self) -> Option<f64> {
        // Parsed numbers are ASCII.
        let float: f64 = std::str::from_utf8(self.text).ok()?.parse().ok()?;
        float.is_finite().then_some(float)
    }
}

/// The digits in front, at least one, and the rest.
fn cut_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(left: &str, right: &str) -> Option<Ordering> {
        compare(left.as_bytes(), right.as_bytes())
    }

    #[test]
    fn numbers_compare_by_value() {
        use Ordering::{Equal, Greater, Less};
        for (left, right, expected) in [
            ("0", "-0", Equal),
            ("007", "+7", Equal),
            ("-000", "0", Equal),
            ("-1", "0", Less),
            ("-10", "-9", Less),
            ("10", "9", Greater),
            ("1.5", "1", Greater),
            ("1e3", "1000", Equal),
            ("1E-1", "0.1", Equal),
            // Neither a float nor an i64 distinguishes these.
            ("9223372036854775808", "9223372036854775809", Less),
            ("-100000000000000000000000000000001", "-100000000000000000000000000000000", Less),
        ] {
            assert_eq!(order(left, right), Some(expected), "{left} {right}");
            assert_eq!(order(right, left), Some(expected.reverse()), "{right} {left}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "", "-", "+", ".", "1.", ".5", "1e", "1e+", "e1", "--1", "0x10", "1_000", "1,5", " 1", "1 ",
            "inf", "NaN", "1.5.2", "1e5e5", "12a", "٣", "1e999",
        ] {
            assert_eq!(order(text, "1.5"), None, "{text}");
            assert_eq!(order("1.5", text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_compare_as_integers(a in any::<i128>(), b in any::<i128>(), zeros in 0..3_usize) {
            let padded = |n: i128| {
                let sign = if n < 0 { "-" } else { "" };
                format!("{sign}{}{}", "0".repeat(zeros), n.unsigned_abs())
            };
            prop_assert_eq!(order(&a.to_string(), &padded(b)), Some(a.cmp(&b)));
            prop_assert_eq!(order(&padded(a), &padded(a)), Some(Ordering::Equal));
        }

        #[test]
        fn floats_compare_as_floats(a in -1e9..1e9_f64, b in -1e9..1e9_f64) {
            prop_assert_eq!(order(&format!("{a:e}"), &format!("{b:.6}")), {
                let b: f64 = format!("{b:.6}").parse().unwrap();
                a.partial_cmp(&b)
            });
        }
    }
}
