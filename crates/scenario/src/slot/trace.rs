//! The identity of requests in the traces of their servers: W3C Trace Context.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use plimsoll_core::Random;

use super::write::HEX;

/// Bytes of a value of `traceparent` (W3C Trace Context, level 1, section 3.2).
pub(super) const TRACEPARENT_LEN: usize = 55;

/// Random part of trace ids, one for each sender. The default key is for requests that nobody sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceKey([u64; 2]);

impl TraceKey {
    /// Returns a random key.
    pub fn random() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self([random(), random()])
    }

    /// Returns the trace id of a request of this step in the iteration with this index, under which its
    /// server's traces are found: `${traceparent}` sends it.
    ///
    /// Requests that an iteration repeats in one step share a trace, and each is a span of its own.
    pub const fn id_of(self, index: u64, step: u32) -> u128 {
        let [front, back] = self.0;
        let low = mixed(index ^ (step as u64).rotate_right(24) ^ back);
        // A trace id of zeros is invalid.
        ((front | 1) as u128) << 64 | low as u128
    }
}

/// A bijection that spreads each bit over all others: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
const fn mixed(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns `true` if the trace is one of the share that is to be recorded: `most` of 2^32, and all for the
/// largest number. An id always has the same answer.
pub(super) const fn is_sampled(id: u128, most: u32) -> bool {
    most == u32::MAX || (mixed(id as u64) >> 32) < most as u64
}

/// Appends a value of `traceparent` for a trace, with a random span.
pub(super) fn write_traceparent(id: u128, most: u32, random: &mut Random, out: &mut Vec<u8>) {
    // A span of zeros is invalid.
    let span = random.bits() | 1;
    out.extend_from_slice(b"00-");
    write_hex(id, 32, out);
    out.push(b'-');
    write_hex(u128::from(span), 16, out);
    out.extend_from_slice(if is_sampled(id, most) { b"-01" } else { b"-00" });
}

fn write_hex(number: u128, digits: u32, out: &mut Vec<u8>) {
    out.extend((0..digits).rev().map(|digit| HEX[(number >> (digit * 4)) as usize & 0xf]));
}
