//! Instants as whole numbers of microseconds since 1970, and as RFC 3339 writes them.

use plimsoll_core::calendar;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// The unit of a batch's times, as the real server guesses it from the size of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    /// The unit in which this number is an instant of our days.
    pub(crate) const fn of(first: i64) -> Self {
        match first {
            ..10_000_000_000 => Self::Seconds,
            10_000_000_000..10_000_000_000_000 => Self::Millis,
            10_000_000_000_000..10_000_000_000_000_000 => Self::Micros,
            10_000_000_000_000_000.. => Self::Nanos,
        }
    }

    /// The instant in microseconds.
    #[inline]
    pub(crate) const fn micros(self, number: i64) -> i64 {
        match self {
            Self::Seconds => number.saturating_mul(SECOND),
            Self::Millis => number.saturating_mul(1000),
            Self::Micros => number,
            Self::Nanos => number / 1000,
        }
    }
}

/// An instant as RFC 3339 has it, with six digits of the second always, so that texts are ordered as the
/// instants are (years 0 to 9999; others are written with their sign).
pub(crate) fn written(micros: i64) -> String {
    calendar::rfc3339_of_micros(micros, 6)
}

/// The microseconds of an instant that RFC 3339 could have written, in UTC; the `T` may be a space.
pub(crate) fn parsed(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let time = time.strip_suffix('Z').or_else(|| time.strip_suffix("+00:00")).unwrap_or(time);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut clock = whole.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    if !(0..10_000).contains(&year) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{fraction:0<6}");
    let micros: i64 = micros[..6].parse().ok()?;
    let seconds = calendar::unix_seconds((year, month, day), (hour, minute, second))?;
    Some(seconds * SECOND + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_guessed_from_the_size() {
        for (number, micros) in [
            (1_730_246_400, 1_730_246_400_000_000),
            (1_730_246_400_123, 1_730_246_400_123_000),
            (1_730_246_400_123_456, 1_730_246_400_123_456),
            (1_730_246_400_123_456_789, 1_730_246_400_123_456),
            (9_999_999_999, 9_999_999_999_000_000),
            (10_000_000_000, 10_000_000_000_000),
            (-5, -5_000_000),
        ] {
            assert_eq!(Unit::of(number).micros(number), micros, "{number}");
        }
    }

    #[test]
    fn instants_are_written_and_read() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_730_246_400_123_456, "2024-10-30T00:00:00.123456Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (4_107_542_399_000_000, "2100-02-28T23:59:59.000000Z"),
        ] {
            assert_eq!(written(micros), text);
            assert_eq!(parsed(text), Some(micros), "{text}");
        }
        assert_eq!(parsed("2024-10-30 00:00:00.5"), Some(1_730_246_400_500_000));
        assert_eq!(parsed("2024-10-30T00:00:00+00:00"), Some(1_730_246_400_000_000));
        for bad in
            ["", "2024-10-30", "2024-13-01T00:00:00Z", "2024-01-01T25:00:00Z", "2024-01-01T00:00:00.xZ"]
        {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
