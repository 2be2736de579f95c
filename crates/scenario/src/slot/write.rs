//! Writing of values.

use plimsoll_core::Random;

use super::Writing;
use crate::header::is_in_value;
use crate::reference::origin;

pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";
/// RFC 3986 section 2.1: percent-encodings are written with capitals.
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
pub(super) const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Hexadecimal digits that 64 random bits give.
pub(super) const HEX_OF_ONE_DRAW: usize = 16;
/// Letters and digits that 64 random bits give: see [`write_random_string`].
pub(super) const CHARACTERS_OF_ONE_DRAW: usize = 8;

/// Appends `number` in decimal.
pub fn write_decimal(number: u64, out: &mut Vec<u8>) {
    write_padded(number, 1, out);
}

/// Appends `number` in decimal, with leading zeros up to `width` digits, of which there are at most 20.
pub(super) fn write_padded(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start.min(digits.len().saturating_sub(width))..]);
}

/// Digits of `number` in decimal.
pub(super) fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Characters of `number` in decimal, with its sign.
pub(super) fn decimal_len(number: i64) -> usize {
    digits(number.unsigned_abs()) + usize::from(number < 0)
}

/// Characters of `number` with a point in front of its last `places` digits, and its sign.
pub(super) fn fraction_len(number: i64, places: u8) -> usize {
    digits(number.unsigned_abs()).max(usize::from(places) + 1) + 1 + usize::from(number < 0)
}

/// Appends a text in the way that its place needs.
pub(super) fn write_text(value: &[u8], writing: Writing, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(value);
    encode_from(start, writing, out);
}

/// Encodes the text in `out` from `start` on for its place.
pub(crate) fn encode_from(start: usize, writing: Writing, out: &mut Vec<u8>) {
    match writing {
        Writing::AsIs => return,
        Writing::Line => {
            for byte in &mut out[start..] {
                *byte = if is_in_value(*byte) { *byte } else { b' ' };
            }
            return;
        }
        _ => {}
    }
    if matches!(writing, Writing::Resource | Writing::Base)
        && cut_origin(start, out)
        && writing == Writing::Base
    {
        if out[start..].ends_with(b"/") {
            out.pop();
        }
        if out.len() == start {
            return;
        }
    }
    if writing.is_start() && !out[start..].starts_with(b"/") {
        out.insert(start, b'/');
    }
    percent_encode(start, |byte| byte.is_ascii_graphic() && byte != b'#', out);
}

/// Leaves path and query of a URL that stands in `out` from `start` on; whether there is one.
fn cut_origin(start: usize, out: &mut Vec<u8>) -> bool {
    let url = &out[start..];
    let Some(from) = origin(url).map(|(_, rest)| url.len() - rest.len()) else { return false };
    let end = url.iter().position(|&byte| byte == b'#').unwrap_or(url.len());
    out.truncate(start + end);
    out.drain(start..start + from);
    true
}

/// Percent-encodes the text in `out` from `start` on, except for the bytes that `fit`.
pub(super) fn percent_encode(start: usize, fit: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    let digit = |nibble: u8| UPPER_HEX[usize::from(nibble)];
    expand(
        start,
        |byte| if fit(byte) { 1 } else { 3 },
        |byte, place| match place {
            [only] => *only = byte,
            _ => place.copy_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]),
        },
        out,
    );
}

/// Escapes the text in `out` from `start` on for the inside of a JSON string (RFC 8259 section 7).
pub(super) fn json_escape(start: usize, out: &mut Vec<u8>) {
    let short = |byte: u8| match byte {
        b'"' | b'\\' => Some(byte),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        _ => None,
    };
    expand(
        start,
        |byte| match short(byte) {
            Some(_) => 2,
            None if byte < 0x20 => 6,
            None => 1,
        },
        |byte, place| match (place.len(), short(byte)) {
            (2, Some(letter)) => place.copy_from_slice(&[b'\\', letter]),
            (6, _) => {
                let digit = |nibble: u8| HEX[usize::from(nibble)];
                place.copy_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
            }
            _ => place.fill(byte),
        },
        out,
    );
}

/// Replaces each byte from `start` on by `len` bytes that `write` writes, in place: from the end to the
/// start, so that nothing is overwritten before it was read. `len` is at least 1.
fn expand(start: usize, len: impl Fn(u8) -> usize, write: impl Fn(u8, &mut [u8]), out: &mut Vec<u8>) {
    let mut from = out.len();
    let mut to = start + out[start..].iter().map(|&byte| len(byte)).sum::<usize>();
    if to == from {
        return;
    }
    out.resize(to, 0);
    // If both are at the same place, the bytes in front stay as they are.
    while to > from {
        from -= 1;
        let byte = out[from];
        let end = to;
        to -= len(byte);
        write(byte, &mut out[to..end]);
    }
}

/// Appends bytes as hexadecimal digits.
pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
    }
}

/// Uniform from `low` to `high`, both included.
fn random_between(low: i64, high: i64, random: &mut Random) -> i64 {
    // The number of values is 2^64 for the whole range of i64, which wraps to 0: then any 64 bits will do.
    let values = high.wrapping_sub(low).cast_unsigned().wrapping_add(1);
    let offset = if values == 0 { random.bits() } else { random.below(values) };
    low.wrapping_add_unsigned(offset)
}

pub(super) fn write_random_int(low: i64, high: i64, random: &mut Random, out: &mut Vec<u8>) {
    let number = random_between(low, high, random);
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(number.unsigned_abs(), out);
}

pub(super) fn write_random_float(low: i64, high: i64, places: u8, random: &mut Random, out: &mut Vec<u8>) {
    let number = random_between(low, high, random);
    if number < 0 {
        out.push(b'-');
    }
    let unit = 10_u64.pow(u32::from(places));
    write_decimal(number.unsigned_abs() / unit, out);
    out.push(b'.');
    write_padded(number.unsigned_abs() % unit, usize::from(places), out);
}

/// RFC 9562 section 5.4: 122 random bits, version 4, variant 10.
pub(super) fn write_uuid(random: &mut Random, out: &mut Vec<u8>) {
    let high = random.bits() & !0xf000 | 0x4000;
    let low = random.bits() & !(0b11 << 62) | 0b10 << 62;
    let mut text = [b'-'; 36];
    let mut nibbles = (u128::from(high) << 64) | u128::from(low);
    for (position, byte) in text.iter_mut().enumerate() {
        if !matches!(position, 8 | 13 | 18 | 23) {
            *byte = HEX[(nibbles >> 124) as usize];
            nibbles <<= 4;
        }
    }
    out.extend_from_slice(&text);
}

pub(crate) fn write_random_hex(n: usize, random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + n, 0);
    for chunk in out[start..].chunks_mut(HEX_OF_ONE_DRAW) {
        let mut bits = random.bits();
        for byte in chunk {
            *byte = HEX[(bits >> 60) as usize];
            bits <<= 4;
        }
    }
}

pub(super) fn write_random_string(n: usize, random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + n, 0);
    // 64 bits as a fraction, multiplied by 62, give a digit in base 62 and the next fraction. Eight digits
    // from one draw keep the bias below 62^8 / 2^64, about 1e-5.
    for chunk in out[start..].chunks_mut(CHARACTERS_OF_ONE_DRAW) {
        let mut fraction = random.bits();
        for byte in chunk {
            let product = u128::from(fraction) * 62;
            *byte = ALPHANUMERIC[(product >> 64) as usize];
            fraction = product as u64;
        }
    }
}
