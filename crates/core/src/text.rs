//! Small pieces of text that many crates write.

use std::fmt::Write as _;

/// Digits of hexadecimal numbers, in lower case.
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Bytes as hexadecimal digits in lower case, two for each.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(HEX[usize::from(half & 0xf)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
    text
}

/// A noun for this many: `request`, `requests`.
pub fn noun(count: u64, one: &str) -> String {
    let mut noun = one.to_owned();
    if count != 1 {
        noun.push('s');
    }
    noun
}

/// A count and its noun: `1 request`, `12 requests`.
pub fn plural(count: u64, one: &str) -> String {
    format!("{count} {}", noun(count, one))
}

/// A share in percent with at most so many decimals, without zeros at their end and without the sign.
pub fn percent(share: f64, decimals: usize) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{:.decimals$}", share * 100.0);
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        for (bytes, digits) in
            [(&[][..], ""), (&[0][..], "00"), (&[0, 0x1f, 0xa0, 0xff][..], "001fa0ff"), (b"az", "617a")]
        {
            assert_eq!(hex(bytes), digits);
        }
    }

    #[test]
    fn only_one_is_singular() {
        for (count, text) in [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (11, "11 rows")] {
            assert_eq!(plural(count, "row"), text);
        }
    }

    #[test]
    fn shares_have_no_needless_digits() {
        for (share, decimals, text) in [
            (0.0, 4, "0"),
            (1.0, 6, "100"),
            (1.0, 0, "100"),
            (0.29, 4, "29"),
            (0.1 + 0.2, 6, "30"),
            (0.000_123, 4, "0.0123"),
            (0.000_123_456_7, 4, "0.0123"),
            (-0.015, 2, "-1.5"),
        ] {
            assert_eq!(percent(share, decimals), text, "{share}");
        }
    }
}
