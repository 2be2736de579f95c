//! Rates, stages, counts and durations as people type them.

use std::fmt;

use plimsoll_core::{Nanos, Rate};

use crate::{Stage, UserStage};

/// Digits of a number, without the zeros around it: 10^18 is the last power of ten that leaves room for the
/// suffixes in 128 bits.
const DIGITS_MAX: usize = 18;

/// Units of time and their lengths in ns, the largest first.
const UNITS: &[(&str, u64)] = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// A text that is not a rate, stage, count or duration. Its `Display` suggests a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// A rate of zero, where load was asked for.
    ZeroRate,
    /// A number below zero.
    Negative(String),
    /// Not a rate.
    NotARate(String),
    /// Not a count.
    NotACount(String),
    /// Not a duration.
    NotADuration(String),
    /// An item of a list of stages without its `@`, or an empty one.
    NotAStage(String),
    /// A stage whose duration is zero.
    EmptyStage(String),
    /// More than 64 bits, or more digits, than can be kept exactly.
    OutOfRange(String),
    /// A rate above [`FASTEST_PER_SECOND`].
    TooFast(String),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRate => f.write_str(
                "a rate of 0 never starts anything: write one above 0, such as 100, or leave it out",
            ),
            Self::Negative(text) => write!(f, "`{text}` is negative: write a number above 0"),
            Self::NotARate(text) => {
                write!(f, "`{text}` is not a rate: write 5000 (per second), 0.5, 5k/s, 300/m or 50/10s")
            }
            Self::NotACount(text) => write!(f, "`{text}` is not a count: write 500, 10k or 1.5m"),
            Self::NotADuration(text) => {
                write!(f, "`{text}` is not a duration: write 10 (seconds), 1.5s, 100ms, 2h or 1m30s")
            }
            Self::NotAStage(text) => write!(
                f,
                "`{text}` is not a stage: write duration@rate, such as 30s@1000,1m@5000, \
                 or duration@=rate to step to the rate at once"
            ),
            Self::EmptyStage(text) => write!(f, "the stage `{text}` has no length: write a duration above 0"),
            Self::OutOfRange(text) => {
                write!(f, "`{text}` is too large or too finely divided to be kept exactly")
            }
            Self::TooFast(text) => write!(
                f,
                "`{text}` is a rate that no machine sends: at most {FASTEST_PER_SECOND}/s can be asked for (`m` \
                 is a million, and `/m` is per minute)"
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}

/// The highest rate that may be asked for, in arrivals per second: some hundred times the rate of a core.
/// Above it a figure is a slip of the pen, such as `m` for one per minute.
pub const FASTEST_PER_SECOND: u64 = 100_000_000;

/// Parses a rate above zero: `5000` (per second), `5k`, `0.5`, `5k/s`, `300/m`, `50/10s`, `1/3s`.
///
/// The value is exact: `0.1` is one in ten seconds.
///
/// # Errors
/// [`ScheduleError::ZeroRate`] for zero, [`ScheduleError::Negative`] below it, else the problem with the
/// text.
pub fn parse_rate(text: &str) -> Result<Rate, ScheduleError> {
    match parse_rate_or_zero(text)? {
        rate if rate.is_zero() => Err(ScheduleError::ZeroRate),
        rate => Ok(rate),
    }
}

/// Parses stages, as in `30s@1000,1m@5000,10s@=200,5s@=0`.
///
/// - `duration@rate`: the rate goes linearly from that of the stage before to this one. The first stage,
///   which has none before it, holds its rate.
/// - `duration@=rate`: the rate steps to this one at once and stays there.
///
/// So the example holds 1,000/s for 30 s, climbs from 1,000/s to 5,000/s within a minute, falls to 200/s at
/// once, stays there for 10 s and rests for 5 s. To hold a rate, name it again: `10s@100,10s@100`. To start
/// from nothing write a short stage of rate 0 before the ramp: `1ms@0,30s@1000`.
///
/// # Errors
/// The problem with the first item that cannot be read.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, ScheduleError> {
    parse_stages_after(None, text)
}

/// Parses stages that go on from a rate, in the notation of [`parse_stages`]: the first one goes linearly
/// from `before`, if there is one.
///
/// # Errors
/// As [`parse_stages`].
pub fn parse_stages_after(before: Option<Rate>, text: &str) -> Result<Vec<Stage>, ScheduleError> {
    let stages = levels(before, text, parse_rate_or_zero)?;
    Ok(stages.into_iter().map(|(duration, from, to)| Stage { duration, from, to }).collect())
}

/// Parses stages of users, as in `10s@5,1m@50,10s@=20,5s@0`: [`parse_stages`] with numbers of users in the
/// place of rates. The first one goes linearly from `before`, if there is one.
///
/// # Errors
/// The problem with the first item that cannot be read.
pub fn parse_user_stages_after(before: Option<u32>, text: &str) -> Result<Vec<UserStage>, ScheduleError> {
    let stages = levels(before, text, parse_users)?;
    Ok(stages.into_iter().map(|(duration, from, to)| UserStage { duration, from, to }).collect())
}

/// Stages of levels that `parse_level` reads: their lengths, and the levels at their starts and ends.
fn levels<L: Copy>(
    mut before: Option<L>,
    text: &str,
    parse_level: impl Fn(&str) -> Result<L, ScheduleError>,
) -> Result<Vec<(Nanos, L, L)>, ScheduleError> {
    let mut stages = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (duration, level) =
            item.split_once('@').ok_or_else(|| ScheduleError::NotAStage(item.to_owned()))?;
        let (steps, level) = match level.trim_start().strip_prefix('=') {
            Some(level) => (true, level),
            None => (false, level),
        };
        let duration = parse_duration(duration)?;
        if duration == Nanos::ZERO {
            return Err(ScheduleError::EmptyStage(item.to_owned()));
        }
        let to = parse_level(level)?;
        let from = before.filter(|_| !steps).unwrap_or(to);
        before = Some(to);
        stages.push((duration, from, to));
    }
    Ok(stages)
}

/// Parses a number of users, which may be zero.
fn parse_users(text: &str) -> Result<u32, ScheduleError> {
    let count = parse_count(text)?;
    u32::try_from(count).map_err(|_| ScheduleError::OutOfRange(text.trim().to_owned()))
}

/// Parses a whole number: `500`, `10k`, `1.5m` (millions), `2g`.
///
/// # Errors
/// The problem with the text.
pub fn parse_count(text: &str) -> Result<u64, ScheduleError> {
    let text = text.trim();
    refuse_negative(text)?;
    let not_a_count = || ScheduleError::NotACount(text.to_owned());
    let (number, rest) = Decimal::leading(text).ok_or_else(not_a_count)?;
    let number = number.map_err(|TooLong| ScheduleError::OutOfRange(text.to_owned()))?;
    let scaled = number.digits * u128::from(thousands(rest).ok_or_else(not_a_count)?);
    if !scaled.is_multiple_of(number.divisor) {
        return Err(not_a_count());
    }
    u64::try_from(scaled / number.divisor).map_err(|_| ScheduleError::OutOfRange(text.to_owned()))
}

/// Parses a duration: `100ms`, `1.5s`, `2h`, `1m30s`; a bare number means seconds. The units are d, h, m or
/// min, s, ms, us or µs, ns, the larger before the smaller.
///
/// # Errors
/// The problem with the text.
pub fn parse_duration(text: &str) -> Result<Nanos, ScheduleError> {
    let text = text.trim();
    refuse_negative(text)?;
    let not_a_duration = || ScheduleError::NotADuration(text.to_owned());
    let out_of_range = || ScheduleError::OutOfRange(text.to_owned());
    let (mut total, mut rest, mut smallest) = (0_u64, text, u64::MAX);
    loop {
        let (number, after) = Decimal::leading(rest).ok_or_else(not_a_duration)?;
        let number = number.map_err(|TooLong| out_of_range())?;
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let bare = rest.len() == text.len() && name.is_empty() && after.is_empty();
        let unit = if bare { 1_000_000_000 } else { unit_ns(name).ok_or_else(not_a_duration)? };
        if unit >= smallest {
            return Err(not_a_duration());
        }
        let scaled = number.digits * u128::from(unit);
        if !scaled.is_multiple_of(number.divisor) {
            return Err(out_of_range());
        }
        let part = u64::try_from(scaled / number.divisor).map_err(|_| out_of_range())?;
        total = total.checked_add(part).ok_or_else(out_of_range)?;
        (rest, smallest) = (after.trim_start(), unit);
        if rest.is_empty() {
            return Ok(Nanos(total));
        }
    }
}

/// Parses a rate that may be zero.
fn parse_rate_or_zero(text: &str) -> Result<Rate, ScheduleError> {
    let text = text.trim();
    refuse_negative(text)?;
    let not_a_rate = || ScheduleError::NotARate(text.to_owned());
    let out_of_range = || ScheduleError::OutOfRange(text.to_owned());
    let (number, rest) = Decimal::leading(text).ok_or_else(not_a_rate)?;
    let number = number.map_err(|TooLong| out_of_range())?;
    let (suffix, per) = rest.split_once('/').unwrap_or((rest, "s"));
    let factor = thousands(suffix).ok_or_else(not_a_rate)?;
    let period = match unit_ns(per.trim()) {
        Some(unit) => Nanos(unit),
        None => match parse_duration(per) {
            Ok(Nanos::ZERO) | Err(ScheduleError::NotADuration(_) | ScheduleError::Negative(_)) => {
                return Err(not_a_rate());
            }
            Err(_) => return Err(out_of_range()),
            Ok(period) => period,
        },
    };
    // Below 10^18 * 10^9 and 2^64 * 10^18: both fit in 128 bits.
    let count = number.digits * u128::from(factor);
    let nanos = u128::from(period.0) * number.divisor;
    let divisor = greatest_common_divisor(count, nanos);
    match (u64::try_from(count / divisor), u64::try_from(nanos / divisor)) {
        (Ok(count), Ok(nanos)) => {
            let rate = Rate::new(count, Nanos(nanos)).ok_or_else(not_a_rate)?;
            let is_absurd = rate.per_second_f64() > FASTEST_PER_SECOND as f64;
            if is_absurd { Err(ScheduleError::TooFast(text.to_owned())) } else { Ok(rate) }
        }
        _ => Err(out_of_range()),
    }
}

fn refuse_negative(text: &str) -> Result<(), ScheduleError> {
    match text.strip_prefix(['-', '−']) {
        Some(rest) if Decimal::leading(rest).is_some() => Err(ScheduleError::Negative(text.to_owned())),
        _ => Ok(()),
    }
}

/// The factor of `k`, `m` or `g` (in either case), or 1 of nothing.
fn thousands(suffix: &str) -> Option<u64> {
    match suffix.trim() {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "m" | "M" => Some(1_000_000),
        "g" | "G" => Some(1_000_000_000),
        _ => None,
    }
}

fn unit_ns(name: &str) -> Option<u64> {
    UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, length)| *length)
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A decimal number, exactly: `digits / divisor`, the divisor a power of ten.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    /// Below 10^18.
    digits: u128,
    /// At most 10^18.
    divisor: u128,
}

/// A decimal number with too many digits.
#[derive(Debug, PartialEq, Eq)]
struct TooLong;

impl Decimal {
    /// The number that `text` begins with, and the rest; `None` if it begins with none.
    fn leading(text: &str) -> Option<(Result<Self, TooLong>, &str)> {
        let digits_of = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = text.split_at(digits_of(text));
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => after.split_at(digits_of(after)),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = [whole, fraction].concat();
        let significant = digits.trim_start_matches('0');
        if significant.len() > DIGITS_MAX || fraction.len() > DIGITS_MAX {
            return Some((Err(TooLong), rest));
        }
        let digits = significant.bytes().fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
        let divisor = 10_u128.pow(fraction.len() as u32);
        Some((Ok(Self { digits, divisor }), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(count: u64, period: Nanos) -> Rate {
        Rate::new(count, period).unwrap()
    }

    #[test]
    fn rates() {
        let second = Nanos::from_secs(1);
        for (text, expected) in [
            ("5000", Rate::per_second(5000)),
            (" 5000 ", Rate::per_second(5000)),
            ("5k", Rate::per_second(5000)),
            ("5K/s", Rate::per_second(5000)),
            ("1.5m", Rate::per_second(1_500_000)),
            ("10m/s", Rate::per_second(10_000_000)),
            ("100m", Rate::per_second(100_000_000)),
            ("0.5", rate(1, Nanos::from_secs(2))),
            (".5", rate(1, Nanos::from_secs(2))),
            ("5.", Rate::per_second(5)),
            ("0.1", rate(1, Nanos::from_secs(10))),
            ("0.000000001", rate(1, second * 1_000_000_000)),
            ("300/m", Rate::per_second(5)),
            ("300/min", Rate::per_second(5)),
            ("1/h", rate(1, Nanos::from_secs(3600))),
            ("50/1s", Rate::per_second(50)),
            ("1/3s", rate(1, Nanos::from_secs(3))),
            ("7 / 100ms", Rate::per_second(70)),
            ("1/1m30s", rate(1, Nanos::from_secs(90))),
            ("00012.500", rate(25, Nanos::from_secs(2))),
            ("999999999999/d", rate(999_999_999_999, Nanos::from_secs(86_400))),
        ] {
            assert_eq!(parse_rate(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_says_what_to_write() {
        use ScheduleError::{Negative, NotARate, OutOfRange, TooFast, ZeroRate};
        for text in ["0", "0.0", "0/s", "0k", "00"] {
            assert_eq!(parse_rate(text), Err(ZeroRate), "{text}");
        }
        for text in ["-5", "-0.5/s", "−3", "-0"] {
            assert_eq!(parse_rate(text), Err(Negative(text.to_owned())), "{text}");
        }
        // It was 17 s of nothing, and then no record.
        for text in ["1000m", "100000000000", "100000001", "0.2g/s", "6001m/min"] {
            assert_eq!(parse_rate(text), Err(TooFast(text.to_owned())), "{text}");
        }
        for text in [
            "",
            " ",
            ".",
            "-",
            "fast",
            "5 thousand",
            "5kk",
            "5/",
            "/s",
            "5/x",
            "5/0s",
            "5/-1s",
            "1e3",
            "1,000",
            "0x10",
            "5/s/s",
            "+5",
            "NaN",
            "inf",
            "5@3",
            "1.2.3",
            "٣",
        ] {
            assert_eq!(parse_rate(text), Err(NotARate(text.trim().to_owned())), "{text}");
        }
        for text in
            ["1234567890123456789", "0.1234567890123456789", "1/999999999999h", "0.000000000001/20000000000s"]
        {
            assert_eq!(parse_rate(text), Err(OutOfRange(text.to_owned())), "{text}");
        }
        assert_eq!(
            parse_rate("fast").unwrap_err().to_string(),
            "`fast` is not a rate: write 5000 (per second), 0.5, 5k/s, 300/m or 50/10s"
        );
        assert!(parse_rate("0").unwrap_err().to_string().contains("above 0"));
        assert!(parse_rate("-5").unwrap_err().to_string().contains("`-5` is negative"));
    }

    #[test]
    fn counts() {
        for (text, expected) in [
            ("0", 0),
            ("500", 500),
            ("10k", 10_000),
            ("1m", 1_000_000),
            ("1.5k", 1500),
            ("2G", 2_000_000_000),
        ] {
            assert_eq!(parse_count(text), Ok(expected), "{text}");
        }
        for text in ["", "many", "1.5", "0.0001k", "10 000", "1_000", "10kb", "+1"] {
            assert_eq!(parse_count(text), Err(ScheduleError::NotACount(text.to_owned())), "{text}");
        }
        assert_eq!(parse_count("-1"), Err(ScheduleError::Negative("-1".to_owned())));
        for text in ["99999999999999999999", "99999999999g"] {
            assert_eq!(parse_count(text), Err(ScheduleError::OutOfRange(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("10", Nanos::from_secs(10)),
            ("0", Nanos::ZERO),
            ("0.25", Nanos::from_millis(250)),
            ("1.5s", Nanos::from_millis(1500)),
            ("100ms", Nanos::from_millis(100)),
            ("7us", Nanos::from_micros(7)),
            ("7µs", Nanos::from_micros(7)),
            ("3ns", Nanos(3)),
            ("1m30s", Nanos::from_secs(90)),
            ("1m 30s", Nanos::from_secs(90)),
            ("1min", Nanos::from_secs(60)),
            ("1d2h3m4s5ms6us7ns", Nanos(93_784_005_006_007)),
            ("213503d", Nanos::from_secs(213_503 * 86_400)),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
        for text in [
            "", "soon", "1x", "30s1m", "1s1s", "1m1min", "1m30", "10 20", "s", "1 s", "1e3s", "1:30",
            "1m-30s",
        ] {
            assert_eq!(parse_duration(text), Err(ScheduleError::NotADuration(text.to_owned())), "{text}");
        }
        assert_eq!(parse_duration("-1s"), Err(ScheduleError::Negative("-1s".to_owned())));
        for text in ["213504d", "0.5ns", "1.0000000001s", "99999999999999999999s"] {
            assert_eq!(parse_duration(text), Err(ScheduleError::OutOfRange(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn stages_hold_ramp_step_and_rest() {
        let stage = |seconds, from, to| Stage {
            duration: Nanos::from_secs(seconds),
            from: Rate::per_second(from),
            to: Rate::per_second(to),
        };
        assert_eq!(parse_stages("30s@1000"), Ok(vec![stage(30, 1000, 1000)]));
        assert_eq!(
            parse_stages("30s@1000, 1m@5k/s ,10s@=200,5s@=0,5s@0,20@100"),
            Ok(vec![
                stage(30, 1000, 1000),
                stage(60, 1000, 5000),
                stage(10, 200, 200),
                stage(5, 0, 0),
                stage(5, 0, 0),
                stage(20, 0, 100),
            ])
        );
        assert_eq!(parse_stages("1s@= 7"), Ok(vec![stage(1, 7, 7)]));
        let before = Some(Rate::per_second(50));
        assert_eq!(parse_stages_after(before, "2s@100,1s@=5"), Ok(vec![stage(2, 50, 100), stage(1, 5, 5)]));
    }

    #[test]
    fn stages_of_users_are_written_like_those_of_rates() {
        let stage = |seconds, from, to| UserStage { duration: Nanos::from_secs(seconds), from, to };
        assert_eq!(
            parse_user_stages_after(None, "10s@5, 1m@1k,10s@=20,5s@0"),
            Ok(vec![stage(10, 5, 5), stage(60, 5, 1000), stage(10, 20, 20), stage(5, 20, 0)])
        );
        assert_eq!(parse_user_stages_after(Some(3), "1s@5"), Ok(vec![stage(1, 3, 5)]));
        for (text, expected) in [
            ("5", ScheduleError::NotAStage("5".to_owned())),
            ("1s@5/s", ScheduleError::NotACount("5/s".to_owned())),
            ("1s@0.5", ScheduleError::NotACount("0.5".to_owned())),
            ("1s@5g", ScheduleError::OutOfRange("5g".to_owned())),
            ("0s@5", ScheduleError::EmptyStage("0s@5".to_owned())),
        ] {
            assert_eq!(parse_user_stages_after(None, text), Err(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_stage_says_what_to_write() {
        use ScheduleError::{EmptyStage, Negative, NotADuration, NotARate, NotAStage};
        for (text, expected) in [
            ("", NotAStage(String::new())),
            ("nonsense", NotAStage("nonsense".to_owned())),
            ("30s@1000,", NotAStage(String::new())),
            ("30s:1000", NotAStage("30s:1000".to_owned())),
            ("1s@5,0s@9", EmptyStage("0s@9".to_owned())),
            ("@5", NotADuration(String::new())),
            ("5@", NotARate(String::new())),
            ("1s@-5", Negative("-5".to_owned())),
            ("-1s@5", Negative("-1s".to_owned())),
            ("1s@5@6", NotARate("5@6".to_owned())),
            ("1s@==6", NotARate("=6".to_owned())),
        ] {
            assert_eq!(parse_stages(text), Err(expected), "{text}");
        }
    }
}
