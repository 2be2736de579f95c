//! The time that a message has in it.

use plimsoll_core::Nanos;

use super::ResponseHandler;
use super::budget::Budget;
use super::place::{Exchange, Parsed};
use crate::{Received, Session};

impl ResponseHandler {
    /// Returns `true` if messages have their time in them.
    pub fn has_stamp(&self) -> bool {
        self.stamp.is_some()
    }

    /// Returns the time that a message has in it, since 1970; `None` if it has none.
    pub fn stamp(&self, received: &Received<'_>, session: &mut Session) -> Option<Nanos> {
        let take = self.takes.get(self.stamp?)?;
        let Session { variables, known, cookies, sent, scratch, looked_at, .. } = session;
        let budget = Budget::default();
        let mut parsed = Parsed::new(&budget);
        let mut exchange = Exchange { received, sent, cookies, parsed: &mut parsed, stream: None };
        let is_there = take.apply(&mut exchange, variables, known, looked_at, scratch);
        take.value(variables).filter(|_| is_there).and_then(unix_time)
    }
}

/// Reads a time since 1970 in s, ms, µs or ns: from 2001 to 2286 the number of its digits says which.
/// Decimals may follow.
pub(super) fn unix_time(text: &[u8]) -> Option<Nanos> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let places = match whole.len() {
        10 => 9,
        13 => 6,
        16 => 3,
        19 => 0,
        _ => return None,
    };
    // As many decimals as make nanoseconds.
    let decimals = decimals.bytes().chain(std::iter::repeat(b'0')).take(places);
    let add = |sum: u64, digit: u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    whole.bytes().chain(decimals).try_fold(0, add).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_each_unit() {
        for (text, expected) in [
            ("1732880000", Some(1_732_880_000_000_000_000)),
            ("1732880000.5", Some(1_732_880_000_500_000_000)),
            ("1732880000.1234567891", Some(1_732_880_000_123_456_789)),
            ("1732880000123", Some(1_732_880_000_123_000_000)),
            ("1732880000123.25", Some(1_732_880_000_123_250_000)),
            ("1732880000123456", Some(1_732_880_000_123_456_000)),
            ("1732880000123456789", Some(1_732_880_000_123_456_789)),
            (" 1732880000123 ", Some(1_732_880_000_123_000_000)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("173288000", None),
            ("17328800001", None),
            ("-173288000", None),
            ("1732880000.x", None),
            ("1732880000.1.2", None),
            ("2026-11-29T12:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(unix_time(text.as_bytes()), expected.map(Nanos), "{text}");
        }
    }
}
