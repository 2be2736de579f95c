//! Calendar time in UTC, by the proleptic Gregorian calendar.

use time::{Date, Month, UtcDateTime};

use crate::Nanos;

/// A Unix time in RFC 3339 with this many digits of the second, up to nine:
/// `2026-03-01T12:00:00.250Z` with three.
pub fn rfc3339(unix: Nanos, digits: usize) -> String {
    written(i128::from(unix.0), digits)
}

/// Formats microseconds since 1970, which may be negative, in RFC 3339 with this many digits of the second,
/// up to nine.
pub fn rfc3339_of_micros(micros: i64, digits: usize) -> String {
    written(i128::from(micros) * 1_000, digits)
}

fn written(nanos: i128, digits: usize) -> String {
    // With `large-dates` the calendar is larger than either unit.
    let at = UtcDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(UtcDateTime::UNIX_EPOCH);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, nanos) = at.as_hms_nano();
    let fraction = format!("{nanos:09}");
    let fraction = &fraction[..digits.min(fraction.len())];
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction}Z", u8::from(month))
}

/// Seconds from 1970 to the time of a day of 24 hours; `None` if there is no such day or time. The second 60
/// of a leap second is the first one after it.
pub fn unix_seconds(
    (year, month, day): (i64, i64, i64),
    (hour, minute, second): (i64, i64, i64),
) -> Option<i64> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    let of_day = hour * 3_600 + minute * 60 + second;
    is_time.then(|| date.midnight().assume_utc().unix_timestamp() + of_day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_instants_are_written_and_counted() {
        for (seconds, date, clock, text) in [
            (0, (1970, 1, 1), (0, 0, 0), "1970-01-01T00:00:00.000Z"),
            (951_827_696, (2000, 2, 29), (12, 34, 56), "2000-02-29T12:34:56.000Z"),
            (1_767_225_599, (2025, 12, 31), (23, 59, 59), "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, (2100, 3, 1), (0, 0, 0), "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Nanos::from_secs(seconds), 3), text);
            assert_eq!(unix_seconds(date, clock), Some(seconds as i64), "{text}");
        }
        assert_eq!(rfc3339(Nanos(1_250_000_789), 3), "1970-01-01T00:00:01.250Z");
        assert_eq!(rfc3339(Nanos(1_250_000_789), 9), "1970-01-01T00:00:01.250000789Z");
        assert_eq!(rfc3339_of_micros(-1, 6), "1969-12-31T23:59:59.999999Z");
        assert_eq!(unix_seconds((1969, 12, 31), (23, 59, 59)), Some(-1));
        assert_eq!(unix_seconds((2016, 12, 31), (23, 59, 60)), Some(1_483_228_800));
    }

    #[test]
    fn days_and_times_that_there_are_not_have_no_seconds() {
        for (date, clock) in [
            ((2001, 2, 29), (0, 0, 0)),
            ((2001, 4, 31), (0, 0, 0)),
            ((2001, 0, 1), (0, 0, 0)),
            ((2001, 13, 1), (0, 0, 0)),
            ((2001, 4, 0), (0, 0, 0)),
            ((i64::MAX, 4, 1), (0, 0, 0)),
            ((2001, 4, 1), (24, 0, 0)),
            ((2001, 4, 1), (0, 60, 0)),
            ((2001, 4, 1), (0, 0, 61)),
            ((2001, 4, 1), (0, -1, 0)),
        ] {
            assert_eq!(unix_seconds(date, clock), None, "{date:?} {clock:?}");
        }
    }

    proptest! {
        #[test]
        fn every_instant_can_be_written(micros: i64, unix: u64) {
            let text = rfc3339_of_micros(micros, 6);
            prop_assert!(text.ends_with('Z') && (micros == 0) == (text == "1970-01-01T00:00:00.000000Z"), "{text}");
            prop_assert_eq!(rfc3339(Nanos(unix), 0).len(), 21);
        }
    }
}
