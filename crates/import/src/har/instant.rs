//! Instants as ISO 8601 writes them.

use plimsoll_core::calendar;

/// Nanoseconds since 1970 of `2026-01-02T03:04:05.678Z`, with `Z` or a zone such as `+01:00`; `None` for
/// anything else.
pub(super) fn parse(text: &str) -> Option<i128> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-');
    let mut next = |length: usize| number(date.next()?, length);
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len()));
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let mut parts = clock.splitn(3, ':');
    let mut next = || number(parts.next()?, 2);
    let (hour, minute, second) = (next()?, next()?, next()?);
    let seconds = calendar::unix_seconds((year, month, day), (hour, minute, second))? - zone_seconds(zone)?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos(fraction)?))
}

fn number(text: &str, length: usize) -> Option<i64> {
    let digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// Digits behind the point, of which nine count.
fn nanos(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    digits.parse().ok()
}

fn zone_seconds(zone: &str) -> Option<i64> {
    if ["", "Z", "z"].contains(&zone) {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().skip(1).filter(|c| *c != ':').collect();
    let (hours, minutes) = (number(digits.get(..2)?, 2)?, number(digits.get(2..)?, 2)?);
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_count_from_1970() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000000001Z", 1),
            ("2000-02-29T12:00:00.5Z", 951_825_600_500_000_000),
            ("2026-01-02T03:04:05.678+01:00", 1_767_319_445_678_000_000),
            ("2026-01-02T03:04:05.678+0100", 1_767_319_445_678_000_000),
            ("1969-12-31T23:59:59Z", -1_000_000_000),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "now",
            "2026-01-02",
            "2026-13-02T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-01-02T0:00:00Z",
            "26-01-02T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
