//! Which scenario an iteration runs.

use plimsoll_core::{Nanos, Random};

use crate::feed::permutation::Permutation;

/// Deals iterations to scenarios by their weights: deterministic, evenly mixed, and exact over every round.
///
/// Scenarios join at their times; between two of these the deal is a table that is gone through in turn. A
/// round of it gives each scenario exactly its share. If the weights, divided by their greatest common
/// divisor, sum up to more than [`LONGEST`](Self::LONGEST), the table has that length, and each scenario a
/// number of places that differs from its exact share by less than one: its share of the iterations is off by
/// less than 1 / 10,000. (Only where more than that would be left with no place, each of these has one, and
/// those with the most places give it.)
///
/// Within a round of length `T` the turns of a scenario with `w` places are spread: number `j` of them lies
/// within `floor(j·T/w)` and `ceil((j+1)·T/w) - 1`. So two of them are less than `2·T/w + 1` turns apart.
/// (The windows are those of Baruah et al., *Proportionate progress*, 1996; earliest deadline first keeps
/// them on one processor.)
///
/// [Shuffled](Self::shuffled), the turns of each round come in a random order instead.
#[derive(Clone, Debug, Default)]
pub struct WeightedRoundRobin {
    /// By time, which is different in each.
    epochs: Vec<Epoch>,
    /// Draws the order of each round, if they are shuffled.
    seed: Option<u64>,
}

/// The deal from one joining to the next.
#[derive(Clone, Debug)]
struct Epoch {
    from: Nanos,
    /// Scenarios, turn by turn. Empty if those that have joined have no weight.
    table: Vec<u32>,
}

impl Epoch {
    /// The scenario of a turn; `None` if there is nothing to deal.
    fn scenario(&self, turn: u64, seed: Option<u64>) -> Option<u32> {
        let length = self.table.len() as u64;
        let place = turn.checked_rem(length)?;
        let place = match seed {
            Some(seed) if length > 1 => {
                Permutation::new(length, &mut Random::new(seed, turn / length)).at(place)
            }
            _ => place,
        };
        self.table.get(place as usize).copied()
    }
}

impl WeightedRoundRobin {
    /// Turns of a round at most.
    pub const LONGEST: u64 = 10_000;

    /// Deals to scenarios of these weights, which join at these times after the start of the run. One without
    /// weight gets nothing.
    pub fn new(scenarios: &[(u32, Nanos)]) -> Self {
        let mut times: Vec<Nanos> = scenarios.iter().map(|&(_, start_after)| start_after).collect();
        times.sort_unstable();
        times.dedup();
        let epoch = |from| {
            let joined = |&(weight, start_after)| if start_after <= from { u64::from(weight) } else { 0 };
            Epoch { from, table: spread(&places(&scenarios.iter().map(joined).collect::<Vec<_>>())) }
        };
        Self { epochs: times.into_iter().map(epoch).collect(), seed: None }
    }

    /// Puts the turns of each round into a random order, which `seed` draws.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The scenario of an iteration that is due at `at`, since the start of the run; `turn` is its number
    /// among those of one worker, from 0. `None` if no scenario has joined yet.
    ///
    /// Its cost does not depend on the weights, and on the joinings to come only.
    pub fn scenario(&self, turn: u64, at: Nanos) -> Option<u32> {
        let epoch = self.epochs.iter().rev().find(|epoch| epoch.from <= at)?;
        epoch.scenario(turn, self.seed)
    }

    /// Counts the turns of `sequence` that go to scenarios for which `is_meant` holds. The turns are due
    /// between the joining before `at` and the next one. Takes as many steps as a round has, however many
    /// turns there are.
    pub fn count(&self, sequence: std::ops::Range<u64>, at: Nanos, is_meant: impl Fn(u32) -> bool) -> u64 {
        let Some(epoch) = self.epochs.iter().rev().find(|epoch| epoch.from <= at) else { return 0 };
        let round = epoch.table.len() as u64;
        if round == 0 || sequence.is_empty() {
            return 0;
        }
        let meant = |range: std::ops::Range<u64>| {
            range.filter(|turn| epoch.scenario(*turn, self.seed).is_some_and(&is_meant)).count() as u64
        };
        // Every whole round has the same turns, in whichever order; those at the ends are looked at.
        let first = sequence.start.next_multiple_of(round).min(sequence.end);
        let rounds = (sequence.end - first) / round;
        let whole = if rounds == 0 { 0 } else { rounds * meant(0..round) };
        meant(sequence.start..first) + whole + meant(first + rounds * round..sequence.end)
    }

    /// When scenarios join, in the order of time, each instant once.
    pub fn joinings(&self) -> impl Iterator<Item = Nanos> {
        self.epochs.iter().map(|epoch| epoch.from)
    }
}

/// Returns the number of turns of a round that each scenario has.
fn places(weights: &[u64]) -> Vec<u64> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let total = weights.iter().sum::<u64>() / divisor;
    if total <= WeightedRoundRobin::LONGEST {
        return weights.iter().map(|weight| weight / divisor).collect();
    }
    // Largest remainders (Hamilton's method), with at least one place for each positive weight. The products
    // are below 2^32 · 10^4.
    let exact = |weight: u64| {
        (
            weight / divisor * WeightedRoundRobin::LONGEST / total,
            weight / divisor * WeightedRoundRobin::LONGEST % total,
        )
    };
    let mut places: Vec<u64> =
        weights.iter().map(|&weight| exact(weight).0.max(u64::from(weight > 0))).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).filter(|&at| exact(weights[at]).0 > 0).collect();
    by_remainder.sort_by_key(|&at| std::cmp::Reverse(exact(weights[at]).1));
    let given: u64 = places.iter().sum();
    for at in by_remainder.into_iter().take(WeightedRoundRobin::LONGEST.saturating_sub(given) as usize) {
        places[at] += 1;
    }
    for _ in WeightedRoundRobin::LONGEST..given {
        if let Some(most) = places.iter_mut().max().filter(|most| **most > 1) {
            *most -= 1;
        }
    }
    places
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A round in which each scenario has its number of places, evenly spread: of those whose next turn may come,
/// it is always that whose window ends first, and of these the one whose window began first.
fn spread(places: &[u64]) -> Vec<u32> {
    let total: u64 = places.iter().sum();
    let mut dealt = vec![0_u64; places.len()];
    let turn = |turn: u64| {
        let begin = |at: usize| dealt[at] * total / places[at];
        let end = |at: usize| ((dealt[at] + 1) * total).div_ceil(places[at]);
        // There always is one: up to this turn windows for at least `turn + 1` turns have begun.
        let may_come = (0..places.len()).filter(|&at| dealt[at] < places[at] && begin(at) <= turn);
        let next = may_come.min_by_key(|&at| (end(at), begin(at))).unwrap_or_default();
        dealt[next] += 1;
        next as u32
    };
    (0..total).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dealt(
        round_robin: &WeightedRoundRobin,
        sequence: std::ops::Range<u64>,
        at: Nanos,
    ) -> Vec<Option<u32>> {
        sequence.map(|turn| round_robin.scenario(turn, at)).collect()
    }

    fn of_weights(weights: &[u32]) -> WeightedRoundRobin {
        WeightedRoundRobin::new(&weights.iter().map(|&weight| (weight, Nanos::ZERO)).collect::<Vec<_>>())
    }

    fn counts(round: &[u32], scenarios: usize) -> Vec<u64> {
        let mut counts = vec![0; scenarios];
        round.iter().for_each(|&scenario| counts[scenario as usize] += 1);
        counts
    }

    #[test]
    fn sequence_are_counted_as_they_are_dealt() {
        let weights = [(3, Nanos::ZERO), (2, Nanos::ZERO), (5, Nanos(100))];
        let even = WeightedRoundRobin::new(&weights);
        for (round_robin, at) in
            [(even.clone(), Nanos::ZERO), (even.clone(), Nanos(100)), (even.clone().shuffled(3), Nanos(100))]
        {
            for sequence in [0..0, 0..1, 3..4, 7..29, 5..1_000, 12_345..12_350] {
                for scenario in 0..3 {
                    let one_by_one = dealt(&round_robin, sequence.clone(), at)
                        .iter()
                        .filter(|s| **s == Some(scenario))
                        .count();
                    let counted = round_robin.count(sequence.clone(), at, |other| other == scenario);
                    assert_eq!(counted, one_by_one as u64, "{sequence:?} {at:?} {scenario}");
                }
            }
        }
        assert_eq!(even.joinings().collect::<Vec<_>>(), [Nanos::ZERO, Nanos(100)]);
    }

    #[test]
    fn shuffled_rounds_are_exact_and_come_in_any_order() {
        let shuffled = |seed: u64| of_weights(&[1, 1]).shuffled(seed);
        let dealt = |seed| -> Vec<u32> {
            (0..2_000).filter_map(|turn| shuffled(seed).scenario(turn, Nanos::ZERO)).collect()
        };
        let found = dealt(7);
        assert!(found.chunks(2).all(|pair| pair[0] != pair[1]));
        let first = found.chunks(2).filter(|pair| pair[0] == 0).count();
        // Of 1,000 fair coins, four standard deviations.
        assert!((437..=563).contains(&first), "{first}");
        assert_eq!(found, dealt(7));
        assert_ne!(found, dealt(8));
    }

    #[test]
    fn small_weights_make_small_rounds() {
        for (weights, expected) in [
            (&[1][..], &[0][..]),
            (&[7, 7], &[0, 1]),
            (&[2, 1], &[0, 1, 0]),
            (&[100, 300], &[1, 1, 0, 1]),
            (&[0, 5, 0], &[1]),
            (&[4, 2, 1], &[0, 1, 0, 0, 2, 1, 0]),
        ] {
            assert_eq!(of_weights(weights).epochs[0].table, expected, "{weights:?}");
        }
    }

    #[test]
    fn scenarios_join_at_their_times() {
        let second = Nanos::from_secs(1);
        let round_robin =
            WeightedRoundRobin::new(&[(1, second * 2), (3, second), (0, Nanos::ZERO), (2, second * 2)]);
        assert_eq!(dealt(&round_robin, 0..3, Nanos::ZERO), [None; 3]);
        assert_eq!(dealt(&round_robin, 0..3, second - Nanos(1)), [None; 3]);
        assert_eq!(dealt(&round_robin, 5..8, second), [Some(1); 3]);
        let round: Vec<u32> = dealt(&round_robin, 600..606, second * 2).into_iter().flatten().collect();
        assert_eq!(counts(&round, 4), [1, 3, 0, 2]);
        assert_eq!(
            dealt(&round_robin, 600..606, Nanos::MAX).into_iter().flatten().collect::<Vec<_>>(),
            round
        );
        assert_eq!(WeightedRoundRobin::new(&[]).scenario(0, Nanos::MAX), None);
    }

    #[test]
    fn the_smallest_of_weights_has_its_turn() {
        let round = &of_weights(&[u32::MAX, 1, 1]).epochs[0].table;
        assert_eq!(counts(round, 3), [9_998, 1, 1]);
        let many: Vec<u32> = std::iter::once(u32::MAX).chain([1; 500]).collect();
        let found = counts(&of_weights(&many).epochs[0].table, 501);
        assert_eq!((found[0], found.iter().min()), (9_500, Some(&1)));
    }

    proptest! {
        #[test]
        fn shares_are_exact_and_sequence_are_spread(weights in prop::collection::vec(0..40_u32, 1..8)) {
            let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            prop_assume!(total > 0);
            let round = &of_weights(&weights).epochs[0].table;
            let length = round.len() as u64;
            for (scenario, &weight) in weights.iter().enumerate() {
                // Two rounds, for the distance between them.
                let sequence: Vec<u64> = (0..2 * length)
                    .filter(|&turn| round[(turn % length) as usize] == scenario as u32)
                    .collect();
                let count = sequence.len() as u64 / 2;
                prop_assert_eq!(count * total, u64::from(weight) * length);
                for (number, &turn) in (0..).zip(sequence.iter().take(count as usize)) {
                    prop_assert!(number * length / count <= turn);
                    prop_assert!(turn < ((number + 1) * length).div_ceil(count));
                }
                for pair in sequence.windows(2) {
                    prop_assert!((pair[1] - pair[0] - 1) * count < 2 * length);
                }
            }
        }

        #[test]
        fn large_weights_are_off_by_less_than_one_place(
            weights in prop::collection::vec(1_000..u32::MAX, 1..6),
        ) {
            let places = places(&weights.iter().map(|&weight| u64::from(weight)).collect::<Vec<_>>());
            let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            prop_assert!(places.iter().sum::<u64>() <= WeightedRoundRobin::LONGEST);
            for (&places_of_it, &weight) in places.iter().zip(&weights) {
                let exact = f64::from(weight) / total as f64 * places.iter().sum::<u64>() as f64;
                prop_assert!((places_of_it as f64 - exact).abs() < 1.0 + 1e-6, "{} {}", places_of_it, exact);
            }
        }
    }
}
