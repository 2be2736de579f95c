//! Identifiers that come only once in a run.

/// A numbered sequence of identifiers without repetition.
///
/// `mix(number + start)` is a permutation of the 64-bit numbers (SplitMix64's finalizer, Steele, Lea and
/// Flood 2014: every step of it can be undone), so that different numbers have different identifiers, which
/// look random all the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unique {
    start: u64,
}

impl Unique {
    /// The sequence of `seed` for one `purpose`; those of different purposes have nothing to do with each
    /// other.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self { start: mix(seed ^ mix(purpose)) }
    }

    /// The identifier number `number`. Zero, which means none, is one of 2^64: it becomes the largest
    /// instead.
    #[inline]
    pub(crate) fn id(self, number: u64) -> u64 {
        let id = mix(number.wrapping_add(self.start));
        if id == 0 { u64::MAX } else { id }
    }
}

/// SplitMix64's finalizer.
#[inline]
pub(crate) const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_ids_are_all_different() {
        let ids = Unique::new(1, 2);
        let mut drawn: Vec<u64> = (0..1_000_000).map(|number| ids.id(number)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 1_000_000);
        assert_ne!(Unique::new(1, 3).id(0), ids.id(0));
        assert_ne!(Unique::new(2, 2).id(0), ids.id(0));
    }
}
