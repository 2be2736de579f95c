//! The formats of the files, as pure functions from bytes: other content is `None`, and nothing panics.

pub mod cgroup;
pub mod machine;
pub mod network;
pub mod process;

use plimsoll_core::Nanos;

/// Length of a tick in which `/proc` counts CPU time: `USER_HZ` is 100 on all architectures that this is
/// built for.
pub const TICK: Nanos = Nanos::from_millis(10);

/// The lines, without their ends.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A whole number.
pub fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// A whole number in hexadecimal digits.
pub fn hexadecimal(word: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(word).ok()?;
    // The library's parser would take a sign.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// The number behind a name at the start of a line: `VmRSS:   1234 kB`, `nr_periods 5`.
pub fn named(bytes: &[u8], name: &[u8]) -> Option<u64> {
    let behind = |line| -> Option<&[u8]> {
        let rest = <[u8]>::strip_prefix(line, name)?;
        rest.first().is_some_and(u8::is_ascii_whitespace).then_some(rest)
    };
    number(words(lines(bytes).find_map(behind)?).next()?)
}

/// Converts a number of ticks to a time.
pub fn ticks(count: u64) -> Nanos {
    Nanos(count.saturating_mul(TICK.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_fit() {
        for (text, value) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(number(text.as_bytes()), value, "{text}");
        }
        assert_eq!(hexadecimal(b"1F90"), Some(8080));
        assert_eq!((hexadecimal(b"+1"), hexadecimal(b""), hexadecimal(b"g")), (None, None, None));
    }

    #[test]
    fn a_name_is_the_whole_name() {
        let text = b"VmRSSX: 1 kB\nVmRSS:\t  12 kB\n";
        assert_eq!(named(text, b"VmRSS:"), Some(12));
        assert_eq!(named(b"nr_throttled_x 4\nnr_throttled 5\n", b"nr_throttled"), Some(5));
        assert_eq!(named(b"nr_periods 5", b"nr_periods"), Some(5));
        assert_eq!(named(b"nr_periods", b"nr_periods"), None);
    }
}
