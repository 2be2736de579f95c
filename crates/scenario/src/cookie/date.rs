//! Dates in cookies.

use plimsoll_core::calendar;

/// The time of a cookie's date, in seconds since 1970, by the algorithm of RFC 6265 section 5.1.1;
/// times before 1970 are zero. `None` if it is not a date.
pub(super) fn parse(text: &[u8]) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|&byte| is_delimiter(byte)).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = parse_time(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = digits(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = parse_month(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = digits(token, 2, 4)
        {
            year = Some(found);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        year @ 70..=99 => 1900 + year,
        year @ 0..=69 => 2000 + year,
        year => year,
    };
    if year < 1601 || second > 59 {
        return None;
    }
    let seconds = calendar::unix_seconds((year, month, day), (hour, minute, second))?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// `least` to `most` digits in front, with no further one behind them.
fn digits(token: &[u8], least: usize, most: usize) -> Option<i64> {
    let (number, rest) = cut_number(token, least, most)?;
    rest.first().is_none_or(|byte| !byte.is_ascii_digit()).then_some(number)
}

/// The number in front, of as many digits as there are but at most `most`, and the rest.
fn cut_number(token: &[u8], least: usize, most: usize) -> Option<(i64, &[u8])> {
    let count = token.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = token.split_at(count);
    let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    (count >= least).then_some((number, rest))
}

/// `hh:mm:ss`, one or two digits each, and anything but a digit behind it.
fn parse_time(token: &[u8]) -> Option<(i64, i64, i64)> {
    let (hour, rest) = cut_number(token, 1, 2)?;
    let (minute, rest) = cut_number(rest.strip_prefix(b":")?, 1, 2)?;
    Some((hour, minute, digits(rest.strip_prefix(b":")?, 1, 2)?))
}

/// The month, from 1, that the first three letters name.
fn parse_month(token: &[u8]) -> Option<i64> {
    const NAMES: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let name = token.get(..3)?;
    NAMES.chunks_exact(3).zip(1..).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, month)| month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_in_all_their_forms() {
        for (text, expected) in [
            ("Wed, 09 Jun 2021 10:18:14 GMT", Some(1_623_233_894)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("08:49:37 1994 november 6", Some(784_111_777)),
            ("6x Novx 1994x 8:49:37x", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("1 jan 1969 0:0:0", Some(0)),
            ("29 Feb 2000 23:59:59", Some(951_868_799)),
            ("1 mar 69 00:00:00", Some(3_129_321_600)),
            ("31 Dec 9999 23:59:59", Some(253_402_300_799)),
            // The zone is ignored.
            ("06 Nov 1994 08:49:37 +0900", Some(784_111_777)),
            ("", None),
            ("Sun, 06 Nov 1994", None),
            ("06 Nov 08:49:37", None),
            ("1994 08:49:37 Nov", None),
            ("29 Feb 2001 00:00:00", None),
            ("31 Apr 2001 00:00:00", None),
            ("0 Apr 2001 00:00:00", None),
            ("1 Apr 1600 00:00:00", None),
            ("1 Apr 2001 24:00:00", None),
            ("1 Apr 2001 00:60:00", None),
            ("1 Apr 2001 00:00:60", None),
            ("1 Apr 20011 00:00:00", None),
            ("123 Apr 2001 00:00:00", None),
            ("1 Apr 2001 000:00:00", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_date_or_not(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }
    }
}
