//! Statuses and deadlines of gRPC in the header fields and trailers of HTTP/2 ("gRPC over HTTP2",
//! grpc/doc/PROTOCOL-HTTP2.md). The messages are [`length_prefixed`](plimsoll_wire::length_prefixed).

/// Units of `grpc-timeout`, each with its nanoseconds, from the finest on.
const UNITS: [(char, u64); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60 * 1_000_000_000),
    ('H', 3_600 * 1_000_000_000),
];

/// Digits that the number of a `grpc-timeout` has at most.
const TIMEOUT_DIGITS: u64 = 100_000_000;

/// Returns the value of `grpc-timeout` for a time in nanoseconds: in the finest unit that holds it, rounded
/// up.
pub fn write_timeout(ns: u64) -> String {
    let units = UNITS.iter().map(|(unit, size)| (unit, ns.div_ceil(*size)));
    // The longest time that a u64 can say has seven digits in hours.
    let (unit, number) = { units }.find(|(_, number)| *number < TIMEOUT_DIGITS).unwrap_or((&'H', 0));
    format!("{number}{unit}")
}

/// Reads a value of `grpc-timeout`: nanoseconds, at most those that a `u64` holds. `None`: it is none.
pub fn read_timeout(value: &[u8]) -> Option<u64> {
    let (unit, digits) = value.split_last()?;
    let (_, size) = UNITS.iter().find(|(known, _)| *known == char::from(*unit))?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(number.saturating_mul(*size))
}

/// The names of the status codes, from `OK` on (grpc/doc/statuscodes.md).
pub const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The code of `UNKNOWN`: that of a status that has another code than those of [`CODES`], or none.
pub const UNKNOWN: usize = 2;

/// Reads the value of `grpc-status`: an index into [`CODES`], [`UNKNOWN`] for any other number. `None`: it is
/// no number.
pub fn read_status(value: &[u8]) -> Option<usize> {
    let digits = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    match digits.parse::<usize>() {
        Ok(code) if code < CODES.len() => Some(code),
        _ if digits.is_empty() => None,
        _ => Some(UNKNOWN),
    }
}

/// Decodes the value of `grpc-message`, which is percent-encoded. Text that is not stays as it is.
pub fn read_status_message(value: &[u8]) -> String {
    let digit = |at: usize| value.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut text = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                text.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                text.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends a message of a status as the value of `grpc-message`.
pub fn write_status_message(message: &str, out: &mut Vec<u8>) {
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_codes() {
        for (value, code) in [
            ("0", Some(0)),
            ("16", Some(16)),
            ("17", Some(UNKNOWN)),
            ("99999999999999999999999", Some(UNKNOWN)),
            ("", None),
            ("-1", None),
            ("OK", None),
        ] {
            assert_eq!(read_status(value.as_bytes()), code, "{value}");
        }
    }

    #[test]
    fn timeouts_are_written_in_the_finest_unit_that_holds_them() {
        for (ns, text) in [
            (0, "0n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (1_500_000_001, "1500001u"),
            (3_600_000_000_000, "3600000m"),
            (u64::MAX, "5124096H"),
        ] {
            assert_eq!(write_timeout(ns), text);
            assert!(
                read_timeout(text.as_bytes()).is_some_and(|read| read >= ns && read - ns < ns / 1_000 + 1)
            );
        }
        assert_eq!(read_timeout(b"99999999H"), Some(u64::MAX));
        for none in ["", "5", "m", "-1m", "5x", "123456789m"] {
            assert_eq!(read_timeout(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn messages_of_statuses_survive_their_encoding() {
        for message in ["", "plain", "100 % sure", "line\nline", "Grüße, 世界", "%41"] {
            let mut value = Vec::new();
            write_status_message(message, &mut value);
            assert!(value.iter().all(|byte| (b' '..=b'~').contains(byte)));
            assert_eq!(read_status_message(&value), message);
        }
        // Of peers that do not encode.
        assert_eq!(read_status_message(b"50% off %"), "50% off %");
    }
}
