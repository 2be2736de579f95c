//! Histograms as HdrHistogram writes them: version 2, deflated, in Base64.
//!
//! Our buckets are those of HdrHistogram with 1 ns as the lowest discernible value and three significant
//! digits ([`crate`]), so only the parts that it does not keep are lost: sum and extremes.

use std::io::{Read as _, Write as _};
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;

use crate as buckets;

/// The largest value in range, as in [`crate`]: 24 hours in nanoseconds.
const RANGE: u64 = 24 * 3600 * 1_000_000_000;
/// Significant digits of our buckets.
const DIGITS: u8 = 3;
/// Cookie at the beginning of an encoded histogram: version 2, with counts of up to nine bytes.
const COOKIE: u32 = 0x1c84_9313;
/// Bytes in front of the counts.
const HEAD: usize = 40;
/// Longest encoded histogram, in bytes: nine for each bucket.
const LONGEST_HISTOGRAM: usize = HEAD + 9 * 40_000;
/// Cookie at the beginning of a deflated one.
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;

/// A histogram of HdrHistogram with these values, each with how often it occurred.
pub fn histogram(values: impl Iterator<Item = (u64, u64)>) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, RANGE, DIGITS).expect("the bounds are in order");
    for (value, count) in values {
        // The last bucket ends beyond the range, but the array goes on to the next power of two.
        histogram.record_n(value, count).expect("the buckets are the same");
    }
    histogram
}

/// The text of these values, deflated, as readers of histogram logs want it; empty without any.
pub fn text(values: impl Iterator<Item = (u64, u64)>) -> String {
    encoded(values).map_or_else(String::new, |bytes| STANDARD.encode(deflated(&bytes)))
}

/// The text of these values without compression, for files that are deflated as a whole; empty without any.
///
/// A run is saved with some hundred histograms. Deflating each took 300 KiB of zeroed state every time, which
/// was most of the cost of saving (`bench -- observers`), and made the whole longer.
pub fn plain(values: impl Iterator<Item = (u64, u64)>) -> String {
    encoded(values).map_or_else(String::new, |bytes| STANDARD.encode(bytes))
}

/// Version 2 as HdrHistogram's `AbstractHistogram.encodeIntoByteBuffer` writes it: a head of 40 bytes, then
/// the counts from the lowest bucket on as zig-zag LEB128, where a negative number stands for that many empty
/// buckets (one alone is written as its count, zero).
///
/// Written from the values alone, without the 300 KiB of counts that a histogram of the library has. The
/// values come in ascending order. `None` without any.
fn encoded(values: impl Iterator<Item = (u64, u64)>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    for word in [COOKIE, 0, 0, u32::from(DIGITS)] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend(RANGE.to_be_bytes());
    bytes.extend(1_f64.to_be_bytes());
    let head = bytes.len();
    let mut next = 0;
    for (value, count) in values {
        let index = buckets::index_of(value);
        match index - next {
            0 => {}
            1 => push_number(&mut bytes, 0),
            empty => push_number(&mut bytes, -(empty as i64)),
        }
        push_number(&mut bytes, count as i64);
        next = index + 1;
    }
    let length = u32::try_from(bytes.len() - head).expect("there are below 40,000 buckets of 9 bytes");
    bytes[4..8].copy_from_slice(&length.to_be_bytes());
    (length > 0).then_some(bytes)
}

/// Appends a number as zig-zag LEB128 in at most nine bytes: the ninth has all eight bits.
fn push_number(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// The compressed form of an encoded histogram: cookie, length, zlib.
fn deflated(encoded: &[u8]) -> Vec<u8> {
    let mut bytes = COMPRESSED_COOKIE.to_be_bytes().to_vec();
    bytes.extend([0; 4]);
    let mut zlib = ZlibEncoder::new(bytes, Compression::default());
    zlib.write_all(encoded).expect("memory takes all bytes");
    let mut bytes = zlib.finish().expect("memory takes all bytes");
    let length = u32::try_from(bytes.len() - 8).expect("there are below 40,000 buckets of 9 bytes");
    bytes[4..8].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The values of a text in ascending order, each the largest of its bucket, with their counts.
///
/// The library's own reader takes as much memory as a text claims to need: 4 GB for 14 KB.
///
/// # Errors
/// The reason why the text is invalid, also that it is not of a histogram with our buckets.
pub fn values(text: &str) -> Result<Vec<(u64, u64)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = STANDARD.decode(text).map_err(|error| format!("a histogram is not Base64: {error}"))?;
    let damaged = |why: &str| format!("a histogram is damaged: {why}");
    match bytes.split_first_chunk() {
        Some((cookie, rest)) if *cookie == COMPRESSED_COOKIE.to_be_bytes() => {
            let deflated = rest.split_first_chunk::<4>().map_or(&[][..], |(_, deflated)| deflated);
            let mut bytes = Vec::new();
            let read = ZlibDecoder::new(deflated).take(LONGEST_HISTOGRAM as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| damaged(&error.to_string()))?;
            decoded(&bytes)
        }
        _ => decoded(&bytes),
    }
    .map_err(damaged)
}

/// The inverse of [`encoded`].
fn decoded(bytes: &[u8]) -> Result<Vec<(u64, u64)>, &'static str> {
    let (head, mut rest) = bytes.split_first_chunk::<HEAD>().ok_or("it is too short")?;
    if bytes.len() > LONGEST_HISTOGRAM || head[4..8] != (rest.len() as u32).to_be_bytes() {
        return Err("it is not as long as it says");
    }
    let like = |range: Range<usize>, bytes: &[u8]| head[range] == *bytes;
    if !(like(0..4, &COOKIE.to_be_bytes())
        && like(12..16, &u32::from(DIGITS).to_be_bytes())
        && like(16..24, &1_u64.to_be_bytes())
        && like(24..32, &RANGE.to_be_bytes()))
    {
        return Err("it has not the buckets of this program");
    }
    let (mut values, mut bucket) = (Vec::new(), 0_u64);
    while !rest.is_empty() {
        let number = take_number(&mut rest).ok_or("it ends within a number")?;
        match u64::try_from(number) {
            Ok(count) => {
                let value = usize::try_from(bucket).ok().and_then(buckets::highest_in_array);
                let value = value.ok_or("it has more buckets than there are")?;
                values.extend((count > 0).then_some((value, count)));
                bucket += 1;
            }
            Err(_) => bucket = bucket.saturating_add(number.unsigned_abs()),
        }
    }
    Ok(values)
}

/// Takes a number in zig-zag LEB128 of at most nine bytes.
fn take_number(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for place in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let is_last = place == 8 || byte < 0x80;
        number |= u64::from(if place == 8 { byte } else { byte & 0x7f }) << (7 * place);
        if is_last {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_bytes_are_those_of_the_library(
            values in prop::collection::btree_map(
                0..RANGE,
                prop_oneof![1..200_u64, any::<u32>().prop_map(u64::from), 1..1_u64 << 61],
                1..60,
            ),
        ) {
            let values = || values.iter().map(|(&value, &count)| (value, count));
            // Two values may share a bucket, and the input has each bucket once.
            let merged = || {
                let mut buckets: Vec<(u64, u64)> = Vec::new();
                for (value, count) in values() {
                    match buckets.last_mut() {
                        Some(last) if buckets::index_of(last.0) == buckets::index_of(value) => {
                            last.1 = (last.1 + count).min(1 << 61);
                        }
                        _ => buckets.push((value, count)),
                    }
                }
                buckets.into_iter()
            };
            let library = histogram(merged());
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&library, &mut bytes).expect("it fits");
            prop_assert_eq!(encoded(merged()).expect("there are values"), bytes);
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(&library, &mut bytes).expect("it fits");
            prop_assert_eq!(text(merged()), STANDARD.encode(bytes));
            let read: Vec<_> = library
                .iter_recorded()
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect();
            prop_assert_eq!(super::values(&plain(merged())), Ok(read.clone()));
            prop_assert_eq!(super::values(&text(merged())), Ok(read));
        }
    }

    /// Lengths and precisions that a text claims take no memory and no time.
    #[test]
    fn hostile_texts_are_refused() {
        let good = encoded([(1_000, 3), (2_000_000, 1)].into_iter()).expect("there are values");
        let changed = |place: usize, to: &[u8]| {
            let mut bytes = good.clone();
            bytes[place..place + to.len()].copy_from_slice(to);
            bytes
        };
        let behind = |numbers: &[i64]| {
            let mut bytes = good[..HEAD].to_vec();
            numbers.iter().for_each(|&number| push_number(&mut bytes, number));
            let length = (bytes.len() - HEAD) as u32;
            bytes[4..8].copy_from_slice(&length.to_be_bytes());
            bytes
        };
        let long = [&good[..], &vec![0; LONGEST_HISTOGRAM]].concat();
        for (bytes, why) in [
            (changed(4, &[0xff; 4]), "it is not as long as it says"),
            (changed(4, &[0; 4]), "it is not as long as it says"),
            (changed(12, &5_u32.to_be_bytes()), "it has not the buckets of this program"),
            (changed(16, &9_u64.to_be_bytes()), "it has not the buckets of this program"),
            (changed(24, &[0xff; 8]), "it has not the buckets of this program"),
            (changed(0, b"0000"), "it has not the buckets of this program"),
            (changed(good.len() - 1, &[0x80]), "it ends within a number"),
            (behind(&[i64::MIN, 1]), "it has more buckets than there are"),
            (behind(&[-50_000, 1]), "it has more buckets than there are"),
            (behind(&[i64::MIN, i64::MIN, 1]), "it has more buckets than there are"),
            (long, "it is not as long as it says"),
            (good[..20].to_vec(), "it is too short"),
            (Vec::new(), "it is too short"),
        ] {
            let text = STANDARD.encode(&bytes);
            if !text.is_empty() {
                assert_eq!(values(&text), Err(format!("a histogram is damaged: {why}")));
            }
            assert_eq!(
                values(&STANDARD.encode(deflated(&bytes))),
                Err(format!("a histogram is damaged: {why}"))
            );
        }
        assert_eq!(
            values("AAAA$"),
            Err("a histogram is not Base64: Invalid symbol 36, offset 4.".to_owned())
        );
        assert!(
            values(&STANDARD.encode([&COMPRESSED_COOKIE.to_be_bytes()[..], b"\0\0\0\0no"].concat())).is_err()
        );
        let bomb = deflated(&vec![0; 100 << 20]);
        assert!(values(&STANDARD.encode(bomb)).is_err());
        assert_eq!(values(&STANDARD.encode(behind(&[-5, 7, 0, 1]))), Ok(vec![(5, 7), (7, 1)]));
    }

    #[test]
    fn no_values_are_no_text() {
        assert_eq!(text(std::iter::empty()), "");
        assert_eq!(plain(std::iter::empty()), "");
    }
}
