//! Integers with a prefix (RFC 7541 section 5.1).

use super::HpackError;

/// Appends `value` with a prefix of `prefix_bits` (1 to 8) in its first byte, whose other bits are those of
/// `first`; the prefix bits of `first` have to be 0.
#[inline]
pub fn put_integer(out: &mut Vec<u8>, prefix_bits: u8, first: u8, value: u64) {
    let full = prefix_mask(prefix_bits);
    if value < u64::from(full) {
        out.push(first | value as u8);
        return;
    }
    out.push(first | full);
    let mut rest = value - u64::from(full);
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads an integer with a prefix of `prefix_bits` in `first`, the byte that was in front of `rest`.
#[inline]
pub(super) fn take_integer(first: u8, prefix_bits: u8, rest: &mut &[u8]) -> Result<u32, HpackError> {
    let full = prefix_mask(prefix_bits);
    let prefix = first & full;
    if prefix < full {
        return Ok(u32::from(prefix));
    }
    if let [byte @ 0..0x80, after @ ..] = rest {
        *rest = after;
        return Ok(u32::from(full) + u32::from(*byte));
    }
    take_continuation(full, rest)
}

/// Five bytes hold 35 bits, which is enough for every integer in a block: longer ones are refused, as section
/// 5.1 asks, even if it is only zeros.
const CONTINUATION_BYTES_MAX: usize = 5;

fn take_continuation(full: u8, rest: &mut &[u8]) -> Result<u32, HpackError> {
    let mut value = u64::from(full);
    for (place, &byte) in rest.iter().take(CONTINUATION_BYTES_MAX).enumerate() {
        value += u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            *rest = &rest[place + 1..];
            return u32::try_from(value).map_err(|_| HpackError::Integer);
        }
    }
    if rest.len() < CONTINUATION_BYTES_MAX { Err(HpackError::Truncated) } else { Err(HpackError::Integer) }
}

const fn prefix_mask(prefix_bits: u8) -> u8 {
    0xff >> (8 - prefix_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prefix_bits: u8, bytes: &[u8]) -> Result<(u32, usize), HpackError> {
        let mut rest = &bytes[1..];
        take_integer(bytes[0], prefix_bits, &mut rest).map(|value| (value, rest.len()))
    }

    fn written(prefix_bits: u8, first: u8, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_integer(&mut out, prefix_bits, first, value);
        out
    }

    /// RFC 7541, C.1.
    #[test]
    fn examples_of_the_rfc() {
        assert_eq!(written(5, 0xe0, 10), [0xea]);
        assert_eq!(written(5, 0, 1337), [0x1f, 0x9a, 0x0a]);
        assert_eq!(written(8, 0, 42), [0x2a]);
        assert_eq!(read(5, &[0xea, 0x77]), Ok((10, 1)));
        assert_eq!(read(5, &[0xff, 0x9a, 0x0a, 0x77]), Ok((1337, 1)));
        assert_eq!(read(8, &[0x2a]), Ok((42, 0)));
    }

    #[test]
    fn edges_of_the_prefix_are_read_back() {
        for prefix_bits in 1..=8 {
            let full = u64::from(prefix_mask(prefix_bits));
            for value in
                [0, full - 1, full, full + 1, full + 127, full + 128, full + (1 << 14), u32::MAX.into()]
            {
                let bytes = written(prefix_bits, 0, value);
                assert_eq!(read(prefix_bits, &bytes), Ok((value as u32, 0)), "{value} in {prefix_bits} bits");
                for cut in 1..bytes.len() {
                    assert_eq!(read(prefix_bits, &bytes[..cut]), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_in_32_bits_is_refused() {
        assert_eq!(read(7, &[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f]), Ok((u32::MAX, 0)));
        assert_eq!(read(7, &[0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f]), Err(HpackError::Integer));
        assert_eq!(read(7, &written(7, 0, u64::MAX)), Err(HpackError::Integer));
        assert_eq!(read(7, &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80]), Err(HpackError::Integer));
        // Zeros that change nothing are allowed as far as the bytes go.
        assert_eq!(read(7, &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00]), Ok((127, 0)));
    }
}
