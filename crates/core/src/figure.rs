//! Figures for people: durations with a fitting unit, counts with separators, shares and rates.

use crate::Nanos;

/// A whole number with separators: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A duration with three significant digits and a fitting unit: `850 ns`, `1.23 ms`, `12.3 s`, `2m05s`.
pub fn nanos(value: Nanos) -> String {
    nanos_f64(value.0 as f64)
}

/// As [`nanos`], for means and deviations.
pub fn nanos_f64(value: f64) -> String {
    // From this on the next smaller unit would show four digits: 999.5 rounds to 1000.
    const NEXT_UNIT: f64 = 999.5;
    if value < NEXT_UNIT {
        return format!("{} ns", value.round());
    }
    if value < NEXT_UNIT * 1e3 {
        return format!("{} µs", three_digits(value / 1e3));
    }
    if value < NEXT_UNIT * 1e6 {
        return format!("{} ms", three_digits(value / 1e6));
    }
    let seconds = (value / 1e9).round() as u64;
    match seconds {
        0..100 => format!("{} s", three_digits(value / 1e9)),
        100..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Three significant digits of a value below a thousand; large ones keep all of their whole digits.
fn three_digits(value: f64) -> String {
    // The limits lie where rounding would add a digit: 9.995 is 10.0.
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A share of one as a percentage: `99.9 %`. Not rounded up to a whole that it is not.
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent > 0.0 && percent < 0.05 {
        return "< 0.1 %".to_owned();
    }
    if (99.95..100.0).contains(&percent) {
        return "> 99.9 %".to_owned();
    }
    format!("{percent:.1} %")
}

/// A rate: `12.5/s`, `48,120/s`.
pub fn per_second(value: f64) -> String {
    if value >= 999.5 {
        format!("{}/s", count(value.round() as u64))
    } else {
        format!("{}/s", three_digits(value))
    }
}

/// A rate of something: `12.5 requests/s`.
pub fn per_second_of(noun: &str, value: f64) -> String {
    per_second(value).replace('/', &format!(" {noun}/"))
}

/// A number of any sign with six significant digits: `1,234.5`, `-0.25`, `12,345,678`. The part before the
/// point keeps all of its digits.
pub fn number(value: f64) -> String {
    const DIGITS: i32 = 6;
    let magnitude = value.abs();
    let whole_digits = if magnitude < 1.0 { 0 } else { magnitude.log10().floor() as i32 + 1 };
    let decimals = (DIGITS - whole_digits).clamp(0, DIGITS) as usize;
    let text = format!("{magnitude:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    let sign = if value < 0.0 && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// A number of bytes: `512 B`, `3.42 MiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(scaled), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (0.1, "0.1"),
            (-0.25, "-0.25"),
            (0.000_001, "0.000001"),
            (-0.000_000_1, "0"),
            (12.345_678_9, "12.3457"),
            (1_234.5, "1,234.5"),
            (999_999.9, "1,000,000"),
            (-12_345_678.9, "-12,345,679"),
            (9e12, "9,000,000,000,000"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn durations_keep_three_digits_and_change_units_where_rounding_does() {
        for (value, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (999_400, "999 µs"),
            (999_600, "1.00 ms"),
            (1_234_567, "1.23 ms"),
            (999_600_000, "1.00 s"),
            (59_900_000_000, "59.9 s"),
            (125_000_000_000, "2m05s"),
            (86_400_000_000_000, "24h00m"),
        ] {
            assert_eq!(nanos(Nanos(value)), text, "{value}");
        }
    }

    #[test]
    fn counts_and_rates_have_separators() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(value), text);
        }
        assert_eq!(per_second(0.5), "0.50/s");
        assert_eq!(per_second(48_119.7), "48,120/s");
        assert_eq!(per_second_of("requests", 48_119.7), "48,120 requests/s");
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_the_whole() {
        assert_eq!(share(0.0), "0.0 %");
        assert_eq!(share(0.000_1), "< 0.1 %");
        assert_eq!(share(0.999_9), "> 99.9 %");
        assert_eq!(share(1.0), "100.0 %");
        assert_eq!(share(0.123), "12.3 %");
    }

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(3_586_129), "3.42 MiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
    }
}
