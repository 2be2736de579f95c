//! Rules for the fields of a message (RFC 9113 section 8.2).

/// Reason why a message is malformed: a stream error (RFC 9113 section 8.1.1).
pub(super) type Malformed = &'static str;

/// Bytes that a name may have: no control, no space, no upper case, nothing from 0x7f on (RFC 9113 section
/// 8.2.1); and no colon, which only begins the name of a pseudo-header.
const NAME_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        allowed[byte] = !(byte as u8).is_ascii_uppercase() && byte != b':' as usize;
        byte += 1;
    }
    allowed
};

/// Checks a field that is not a pseudo-header: the bytes of name and value, and that it belongs to the
/// message and not to an HTTP/1.1 connection. [`content_length`] parses the value of a `content-length`.
#[inline]
pub(super) fn check_field(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    if name.is_empty() || !name.iter().fold(true, |good, &byte| good & NAME_BYTES[byte as usize]) {
        return Err("a field name has a byte that is not allowed");
    }
    check_value(value)?;
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err("a field belongs to HTTP/1.1 connections only")
        }
        b"te" if !value.eq_ignore_ascii_case(b"trailers") => Err("te has another value than trailers"),
        _ => Ok(()),
    }
}

/// The value of a `content-length`, which has to agree with an earlier one (RFC 9110 section 8.6).
pub(super) fn content_length(value: &[u8], earlier: Option<u64>) -> Result<u64, Malformed> {
    let length = read_length(value).ok_or("content-length is not a number")?;
    match earlier {
        Some(other) if other != length => Err("there are several content-lengths that differ"),
        _ => Ok(length),
    }
}

/// Checks a value: no NUL, CR or LF, and no white space at its ends (RFC 9113 section 8.2.1).
#[inline]
pub(super) fn check_value(value: &[u8]) -> Result<(), Malformed> {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if blank(value.first()) || blank(value.last()) {
        return Err("a field value begins or ends with white space");
    }
    // Without a way out in the middle: sixteen bytes at a time.
    if value.iter().fold(false, |bad, &byte| bad | (byte == 0) | (byte == b'\r') | (byte == b'\n')) {
        return Err("a field value has a byte that is not allowed");
    }
    Ok(())
}

/// Digits only (RFC 9110 section 8.6), up to 2^64 - 1.
fn read_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<(), Malformed> {
        check_field(name.as_bytes(), value.as_bytes())
    }

    #[test]
    fn names_are_tokens_in_lower_case() {
        for name in ["a", "x-y_z", "!#$%&'*+-.^_`|~09az"] {
            assert_eq!(check(name, ""), Ok(()), "{name}");
        }
        for name in ["", "A", "x-Y", "a b", ":a", "a:", "a\0", "a\u{7f}", "ä"] {
            assert!(check(name, "").is_err(), "{name:?}");
        }
    }

    #[test]
    fn values_have_neither_line_ends_nor_outer_white_space() {
        for value in ["", "a", "a b\tc", "ä\u{1}"] {
            assert_eq!(check("a", value), Ok(()), "{value:?}");
        }
        for value in [" a", "a ", "\t", "a\nb", "a\r", "\0"] {
            assert!(check("a", value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn fields_of_http1_connections_are_refused() {
        for name in ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"] {
            assert!(check(name, "close").is_err(), "{name}");
        }
        assert!(check("te", "gzip").is_err());
        assert_eq!(check("te", "trailers"), Ok(()));
    }

    #[test]
    fn lengths_are_numbers_and_agree() {
        assert_eq!(content_length(b"18446744073709551615", None), Ok(u64::MAX));
        for value in ["", "-1", "+1", "1 2", "0x1", "18446744073709551616", "1,1"] {
            assert!(content_length(value.as_bytes(), None).is_err(), "{value}");
        }
        assert_eq!(content_length(b"7", Some(7)), Ok(7));
        assert!(content_length(b"8", Some(7)).is_err());
    }
}
