//! Instants as whole numbers of microseconds since 1970, and as RFC 3339 writes them.

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;
/// Seconds of a day.
const DAY: i64 = 86_400;

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
    let (seconds, fraction) = (micros.div_euclid(SECOND), micros.rem_euclid(SECOND));
    let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
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
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..61).contains(&second);
    if !in_range || !(0..10_000).contains(&year) || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{fraction:0<6}");
    let micros: i64 = micros[..6].parse().ok()?;
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(seconds * SECOND + micros)
}

/// Days since 1970 to a date of the Gregorian calendar: the algorithm `civil_from_days` of Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms" (2013).
const fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + (month <= 2) as i64, month, day)
}

/// The other way: `days_from_civil`.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in -146_097..146_097 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
