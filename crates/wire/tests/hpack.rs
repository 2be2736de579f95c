//! Header compression: the examples of its RFC, other implementations, and our own parts.

mod appendix_c;
mod book;
mod decoding;
mod nghttp2;
mod oracle;

use plimsoll_wire::http2::hpack::{Decoder, FieldLimits, HpackError};

/// A name and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// For tests that are not about limits.
const NO_LIMITS: FieldLimits = FieldLimits { list_bytes: u32::MAX, fields: u32::MAX };

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Pair>, HpackError> {
    let mut pairs = Vec::new();
    decoder.decode(block, &NO_LIMITS, |name, value| pairs.push((name.to_vec(), value.to_vec())))?;
    Ok(pairs)
}

/// The dynamic table, the newest entry first. Looking does not change it.
fn dynamic_table(decoder: &mut Decoder) -> Vec<Pair> {
    let mut index = Vec::new();
    let entries = (62..).map_while(|entry| {
        index.clear();
        plimsoll_wire::http2::hpack::put_integer(&mut index, 7, 0x80, entry);
        decode(decoder, &index).ok()
    });
    entries.flatten().collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<Pair> {
    pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

/// Bytes from digits, which may be apart from one another.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
