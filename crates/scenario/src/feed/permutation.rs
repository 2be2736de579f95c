//! A random order of any number of rows that takes no memory.

use plimsoll_core::Random;

/// A seeded permutation of `0..count`.
///
/// A Feistel network over the smallest power of two that is not below the count, with cycle walking: values
/// outside are permuted again until they are inside (Black and Rogaway, *Ciphers with Arbitrary Finite
/// Domains*, 2002). That takes less than two turns on average. It mixes well, but is not a cipher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    /// Bits of the upper half, and of the lower half, which is as wide or wider by one.
    bits: [u32; 2],
    keys: [u64; ROUNDS],
}

/// Twice as many as make a Feistel network of good rounds a pseudorandom permutation (Luby and Rackoff,
/// 1988).
const ROUNDS: usize = 8;

impl Permutation {
    /// One of `count` numbers, at least 1; `random` chooses it.
    pub(crate) fn new(count: u64, random: &mut Random) -> Self {
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(2);
        Self { count, bits: [bits / 2, bits - bits / 2], keys: std::array::from_fn(|_| random.bits()) }
    }

    /// The image of `index`, which is below the count.
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut index = index;
        loop {
            index = self.turn(index);
            if index < self.count {
                return index;
            }
        }
    }

    /// The halves change each other in turn, so each round can be undone: no two numbers lead to one.
    fn turn(&self, index: u64) -> u64 {
        let [upper_mask, lower_mask] = self.bits.map(|bits| (1 << bits) - 1);
        let (mut upper, mut lower) = (index >> self.bits[1], index & lower_mask);
        for keys in self.keys.chunks_exact(2) {
            upper ^= mix(lower ^ keys[0]) & upper_mask;
            lower ^= mix(upper ^ keys[1]) & lower_mask;
        }
        upper << self.bits[1] | lower
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_orders_of_three_are_about_as_frequent() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..6_000 {
            let order = Permutation::new(3, &mut Random::new(seed, 0));
            *counts.entry([order.at(0), order.at(1), order.at(2)]).or_insert(0_u32) += 1;
        }
        // Chi-squared with 5 degrees of freedom: above 20.5 once in a thousand. The seeds are fixed.
        let chi: f64 = counts.values().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(counts.len() == 6 && chi < 20.5, "{counts:?}");
    }

    #[test]
    fn neighbours_are_far_apart_afterwards() {
        let order = Permutation::new(1_000_000, &mut Random::new(4, 0));
        let steps: u64 = (1..10_000).map(|index| order.at(index).abs_diff(order.at(index - 1))).sum();
        // The mean distance of two uniform numbers is a third of the range.
        let mean = steps as f64 / 9_999.0;
        assert!((mean / 333_333.0 - 1.0).abs() < 0.03, "{mean}");
    }

    proptest! {
        #[test]
        fn every_number_comes_once(count in 1..3_000_u64, seed in any::<u64>()) {
            let order = Permutation::new(count, &mut Random::new(seed, 0));
            let mut seen: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn large_ranges_stay_inside_and_apart(
            count in 1_u64 << 40..,
            from in any::<u64>(),
            seed in any::<u64>(),
        ) {
            let order = Permutation::new(count, &mut Random::new(seed, 0));
            let mut seen = std::collections::BTreeSet::new();
            for index in 0..50 {
                let index = (from % (count - 50)) + index;
                prop_assert!(order.at(index) < count);
                prop_assert!(seen.insert(order.at(index)));
            }
        }
    }
}
