//! Instants as they stand in items.

use plimsoll_core::Nanos;

/// A Unix time in RFC 3339 with microseconds, in UTC: `2026-03-01T12:00:00.250000Z`.
pub(crate) fn rfc3339(unix: Nanos) -> String {
    let micros = unix.0 / 1_000;
    let (days, of_day) = (micros / 86_400_000_000, micros % 86_400_000_000);
    let (year, month, day) = date(days);
    let seconds = of_day / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = of_day % 1_000_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// The date of a day since 1970-01-01, after Howard Hinnant's `civil_from_days`: years begin in March, so
/// that the leap day is the last of its year, and 400 years have 146,097 days.
fn date(days: u64) -> (u64, u64, u64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc() {
        let at = |seconds: u64| rfc3339(Nanos(seconds * 1_000_000_000 + 1_234_567));
        assert_eq!(at(0), "1970-01-01T00:00:00.001234Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.001234Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59.001234Z");
    }
}
