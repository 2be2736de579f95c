//! The Mann–Whitney test, exact for small groups with ties or without.

use statrs::distribution::{ContinuousCDF, Normal};

/// Values of both groups together up to which the distribution is counted out: 30 against 30 takes some seven
/// million additions. Beyond, the normal approximation is good to the third digit.
const EXACT_TOTAL: usize = 60;

/// The result of a Mann–Whitney test of two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Pairs of a value of the second group and one of the first in which the second is larger; ties count
    /// one half.
    pub u: f64,
    /// Probability of ranks at least as far from their mean, on either side, if the groups do not differ.
    pub p: f64,
    /// The smallest such probability that values of these sizes and with these ties can have at all.
    pub smallest_p: f64,
    /// `true` if the distribution was counted out instead of approximated.
    pub exact: bool,
}

/// Compares the ranks of two groups of independent values (per-run figures, never single requests, which
/// depend on each other); `None` if one is empty or has a value that is not a number.
///
/// Mann and Whitney (1947), "On a test of whether one of two random variables is stochastically larger than
/// the other". Up to 60 values the probability is that of all assignments of the pooled midranks to groups,
/// which is exact with ties, too (a permutation test); beyond, the normal approximation with corrections for
/// ties and continuity. The test of `statrs` 0.19 is not used: it cannot count where there are ties, and
/// where it counts, its result for a smaller first group is not a two-sided probability (0.5 against 1.5 and
/// 4.5 gives 1, not 2/3).
pub fn rank_test(a: &[f64], b: &[f64]) -> Option<RankTest> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let doubled = doubled_midranks(a, b);
    let sum: usize = doubled[a.len()..].iter().sum();
    // Twice the rank sum of `b` is between twice that of the smallest ranks and of the largest.
    let u = sum as f64 / 2.0 - (b.len() * (b.len() + 1)) as f64 / 2.0;
    if a.len() + b.len() > EXACT_TOTAL {
        let p = approximate(&doubled, a.len(), u);
        return Some(RankTest { u, p, smallest_p: 0.0, exact: false });
    }
    let distribution = sum_distribution(&doubled, b.len());
    // Twice the mean of the rank sum is n(N + 1), a whole number: distances are exact.
    let mean = b.len() * (doubled.len() + 1);
    let beyond = |distance: usize| -> f64 {
        let outside = distribution.iter().enumerate().filter(|(sum, _)| sum.abs_diff(mean) >= distance);
        outside.map(|(_, share)| share).sum::<f64>().min(1.0)
    };
    let possible = distribution.iter().enumerate().filter(|(_, share)| **share > 0.0);
    let farthest = possible.map(|(sum, _)| sum.abs_diff(mean)).max().unwrap_or(0);
    let p = beyond(sum.abs_diff(mean));
    Some(RankTest { u, p, smallest_p: beyond(farthest), exact: true })
}

/// The two-sided probability by the normal approximation.
fn approximate(doubled: &[usize], first: usize, u: f64) -> f64 {
    let (total, pairs) = (doubled.len() as f64, (first * (doubled.len() - first)) as f64);
    let mut sorted = doubled.to_vec();
    sorted.sort_unstable();
    let ties = sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64).map(|t| t.powi(3) - t);
    let variance = pairs / 12.0 * (total + 1.0 - ties.sum::<f64>() / (total * (total - 1.0)));
    // A continuity of one half, since U has whole numbers.
    let distance = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
    if variance <= 0.0 { 1.0 } else { (2.0 * Normal::standard().sf(distance / variance.sqrt())).min(1.0) }
}

/// The largest `k` such that U without ties is below `k` with a probability of at most `tail`; 0 if there is
/// none. The `k`-th smallest and largest of all differences bound the shift (see
/// [`shift`](crate::shift::shift)).
pub(crate) fn lower_critical(first: usize, second: usize, tail: f64) -> usize {
    let total = first + second;
    if total > EXACT_TOTAL {
        let pairs = (first * second) as f64;
        let deviation = (pairs * (total + 1) as f64 / 12.0).sqrt();
        let z = Normal::standard().inverse_cdf(1.0 - tail);
        return (pairs / 2.0 - z * deviation).max(0.0).floor() as usize;
    }
    let ranks: Vec<usize> = (1..=total).map(|rank| 2 * rank).collect();
    let distribution = sum_distribution(&ranks, second);
    let smallest = second * (second + 1);
    let mut below = 0.0;
    for k in 0..=first * second {
        below += distribution.get(smallest + 2 * k).copied().unwrap_or(0.0);
        if below > tail {
            return k;
        }
    }
    0
}

/// Twice the rank of each value among all, those of `a` first; equal values share the mean of their ranks.
fn doubled_midranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..pooled.len()).collect();
    order.sort_by(|&i, &j| pooled[i].total_cmp(&pooled[j]));
    let mut ranks = vec![0; pooled.len()];
    let mut from = 0;
    while from < order.len() {
        let tied = order[from..].iter().take_while(|&&i| pooled[i] == pooled[order[from]]).count();
        for &i in &order[from..from + tied] {
            // Ranks from + 1 to from + tied.
            ranks[i] = 2 * from + tied + 1;
        }
        from += tied;
    }
    ranks
}

/// The probability of each sum of `chosen` of these ranks, all choices being equally likely.
fn sum_distribution(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<usize>() + 1;
    // ways[k * width + s]: choices of k ranks with the sum s.
    let mut ways = vec![0.0; (chosen + 1) * width];
    ways[0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for k in (0..chosen.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut((k + 1) * width);
            let fewer = &fewer[k * width..];
            for (to, from) in more[rank..width].iter_mut().zip(fewer) {
                *to += from;
            }
        }
    }
    let mut of_chosen = ways.split_off(chosen * width);
    let all: f64 = of_chosen.iter().sum();
    of_chosen.iter_mut().for_each(|ways| *ways /= all);
    of_chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // R: wilcox.test(c(0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46),
        //                c(1.15, 0.88, 0.90, 0.74, 1.21)): W = 35, p = 0.2544 (Hollander & Wolfe, 1973, p.
        // 69).
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        let test = rank_test(&x, &y).unwrap();
        assert_eq!((test.u, test.exact), (15.0, true));
        assert!((test.p - 0.2544).abs() < 5e-5, "{test:?}");
        // Five against five that do not overlap: 2 of 252 assignments.
        let test = rank_test(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]).unwrap();
        assert!((test.p - 2.0 / 252.0).abs() < 1e-12 && test.p == test.smallest_p, "{test:?}");
    }

    #[test]
    fn what_does_not_vary_cannot_differ() {
        let test = rank_test(&[3.0; 5], &[3.0; 5]).unwrap();
        assert_eq!((test.p, test.smallest_p), (1.0, 1.0));
        let test = rank_test(&[3.0; 50], &[3.0; 50]).unwrap();
        assert_eq!(test.p, 1.0);
        assert_eq!(rank_test(&[], &[1.0]), None);
        assert_eq!(rank_test(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn the_approximation_goes_on_where_counting_ends() {
        let b: Vec<f64> = (0..30).map(|i| f64::from(i % 20)).collect();
        for shift in [0.0, 2.0, 4.0, 8.0] {
            let a: Vec<f64> = (0..30).map(|i| f64::from(i % 18) - shift).collect();
            let test = rank_test(&a, &b).unwrap();
            let approximate = approximate(&doubled_midranks(&a, &b), a.len(), test.u);
            assert!(test.exact && (approximate - test.p).abs() < 0.003, "{approximate} {test:?}");
        }
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Two-sided 5 %: reject at U ≤ 2 for 5 against 5, ≤ 23 for 10 against 10, never for 3 against 3.
        assert_eq!(lower_critical(5, 5, 0.025), 3);
        assert_eq!(lower_critical(10, 10, 0.025), 24);
        assert_eq!(lower_critical(4, 4, 0.025), 1);
        assert_eq!(lower_critical(3, 3, 0.025), 0);
        // The approximation goes on where the counting ends.
        assert!(lower_critical(31, 30, 0.025).abs_diff(lower_critical(30, 30, 0.025)) < 25);
    }
}
