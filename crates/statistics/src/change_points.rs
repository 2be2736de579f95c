//! When a figure changed, over many runs: E-divisive with t-tests.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Values that are examined together, and by how far the next ones overlap them: far away values say nothing
/// about a change here (Hunter's default of 50).
const WINDOW: usize = 50;
/// Values that a segment has at least: one alone is an outlier, not a change.
const SEGMENT_MIN: usize = 2;
/// In the first pass changes count that are so much less certain than in the end: a change that is followed
/// by one back is not seen as such before both are known.
const WEAK: f64 = 10.0;

/// Conditions for a change to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// Largest probability of the t-test between the two segments: 0.001 in Hunter. It has to be this small
    /// because the place of the change was chosen from the same data.
    pub p_max: f64,
    /// Smallest change of the mean, relative to that before it, that counts (0.05 for 5 %).
    pub change_min: f64,
}

impl Default for Sensitivity {
    fn default() -> Self {
        Self { p_max: 0.001, change_min: 0.0 }
    }
}

/// A place where the mean of a series changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean from the change before to this one.
    pub before: f64,
    /// Mean from this change to the next one.
    pub after: f64,
    /// Probability of the t-test between both; the largest with and without the most extreme value of a side.
    pub p: f64,
}

impl ChangePoint {
    /// The change relative to the mean before it; infinite where that is zero.
    pub fn relative(&self) -> f64 {
        if self.before == 0.0 { f64::INFINITY } else { (self.after - self.before) / self.before.abs() }
    }
}

/// Finds where the mean of a series changed, in order. Deterministic. All values have to be finite.
///
/// Matteson and James (2014), "A nonparametric approach for multiple change point analysis of multivariate
/// data", propose the split at which the energy distance between both sides is largest; Fleming et al. (ICPE
/// 2023), "Hunter: using change point detection to hunt for performance regressions", replace its random
/// permutations by a t-test, search in overlapping windows with a weaker demand, and then remove the least
/// certain change until all that are left are certain enough, testing each between its neighbours.
pub fn change_points(series: &[f64], sensitivity: Sensitivity) -> Vec<ChangePoint> {
    let weak = (sensitivity.p_max * WEAK).min(0.05).max(sensitivity.p_max);
    let mut places = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = (start + WINDOW).min(series.len());
        let mut found = Vec::new();
        split(series, start, end, weak, &mut found);
        let last = found.iter().max().copied().unwrap_or(0);
        start = last.max(start + WINDOW / 2);
        places.append(&mut found);
    }
    places.sort_unstable();
    places.dedup();
    merge(series, places, sensitivity)
}

/// Splits `start..end` where both sides differ most, as long as the t-test finds them different.
fn split(series: &[f64], start: usize, end: usize, p_max: f64, found: &mut Vec<usize>) {
    let Some(at) = candidate(&series[start..end]).map(|at| start + at) else { return };
    if probability(&series[start..at], &series[at..end]) > p_max {
        return;
    }
    found.push(at);
    split(series, start, at, p_max, found);
    split(series, at, end, p_max, found);
}

/// The index at which the energy distance between the values before it and the values after it, up to any
/// later end, is largest; `None` if there is no difference at all or too few values.
fn candidate(values: &[f64]) -> Option<usize> {
    let count = values.len();
    let (mut best, mut best_at) = (0.0, None);
    let distances_to =
        |value: f64, others: &[f64]| others.iter().map(|other| (value - other).abs()).sum::<f64>();
    let mut among_left = 0.0;
    for at in 1..count {
        among_left += distances_to(values[at - 1], &values[..at - 1]);
        if at < SEGMENT_MIN {
            continue;
        }
        let (mut across, mut among_right) = (0.0, 0.0);
        for end in at + 1..=count {
            let value = values[end - 1];
            across += distances_to(value, &values[..at]);
            among_right += distances_to(value, &values[at..end - 1]);
            let (n, m) = (at as f64, (end - at) as f64);
            if end - at < SEGMENT_MIN {
                continue;
            }
            // mn/(m+n) times twice the mean distance across, less the mean distances within.
            let distance =
                2.0 / (m + n) * (across - m / (n - 1.0) * among_left - n / (m - 1.0) * among_right);
            if distance > best {
                (best, best_at) = (distance, Some(at));
            }
        }
    }
    best_at
}

/// Removes the least certain change, and the smallest one, until all are certain and large enough.
fn merge(series: &[f64], mut places: Vec<usize>, sensitivity: Sensitivity) -> Vec<ChangePoint> {
    loop {
        let points: Vec<ChangePoint> = (0..places.len())
            .map(|index| {
                let from = if index == 0 { 0 } else { places[index - 1] };
                let to = places.get(index + 1).copied().unwrap_or(series.len());
                let (left, right) = (&series[from..places[index]], &series[places[index]..to]);
                ChangePoint {
                    at: places[index],
                    before: mean(left),
                    after: mean(right),
                    p: probability(left, right),
                }
            })
            .collect();
        let weakest = points.iter().enumerate().max_by(|(_, a), (_, b)| a.p.total_cmp(&b.p));
        let smallest = points
            .iter()
            .enumerate()
            .min_by(|(_, a), (_, b)| a.relative().abs().total_cmp(&b.relative().abs()));
        let uncertain = weakest.filter(|(_, point)| point.p > sensitivity.p_max);
        let small = smallest.filter(|(_, point)| point.relative().abs() < sensitivity.change_min);
        match uncertain.or(small) {
            Some((index, _)) => drop(places.remove(index)),
            None => return points,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the probability of the t-test for a change. The change must not rest on a single run, so each side
/// is also tested without the value that is farthest from the other side, and the largest probability counts.
/// (An outlier as the last run would otherwise pass, together with the run before it.)
fn probability(left: &[f64], right: &[f64]) -> f64 {
    let without_extreme = |side: &[f64], other: f64| -> Vec<f64> {
        let distance = |&i: &usize| (side[i] - other).abs();
        let farthest = (0..side.len()).max_by(|i, j| distance(i).total_cmp(&distance(j)));
        (0..side.len()).filter(|&i| Some(i) != farthest).map(|i| side[i]).collect()
    };
    let fewer_left = t_test(&without_extreme(left, mean(right)), right);
    let fewer_right = t_test(left, &without_extreme(right, mean(left)));
    t_test(left, right).max(fewer_left).max(fewer_right)
}

/// Two-sided probability of Student's t-test with a common variance, which allows for short segments.
fn t_test(left: &[f64], right: &[f64]) -> f64 {
    let degrees = (left.len() + right.len()) as f64 - 2.0;
    if left.is_empty() || right.is_empty() || degrees <= 0.0 {
        return 1.0;
    }
    let (before, after) = (mean(left), mean(right));
    let squares = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let pooled = (squares(left, before) + squares(right, after)) / degrees;
    let error = (pooled * (1.0 / left.len() as f64 + 1.0 / right.len() as f64)).sqrt();
    if error == 0.0 {
        return if before == after { 1.0 } else { 0.0 };
    }
    let student = StudentsT::new(0.0, 1.0, degrees).expect("scale and degrees are positive");
    2.0 * student.sf(((after - before) / error).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(series: &[f64], sensitivity: Sensitivity) -> Vec<usize> {
        change_points(series, sensitivity).iter().map(|point| point.at).collect()
    }

    /// The series that the tests of Apache Otava use, with its changes.
    #[test]
    fn the_series_of_otava() {
        let series = [0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1, 148.8, 150.0];
        assert_eq!(places(&series, Sensitivity::default()), [5, 8]);
    }

    #[test]
    fn there_and_back_is_two_changes() {
        let wobble = |index: usize| [0.0, 0.4, -0.3, 0.2, -0.4][index % 5];
        let series: Vec<f64> = (0..60)
            .map(|index| if (20..40).contains(&index) { 110.0 } else { 100.0 } + wobble(index))
            .collect();
        let found = change_points(&series, Sensitivity::default());
        assert_eq!(found.iter().map(|point| point.at).collect::<Vec<_>>(), [20, 40]);
        assert!((found[0].relative() - 0.1).abs() < 0.002 && found[1].relative() < 0.0, "{found:?}");
    }

    #[test]
    fn one_outlier_is_no_change_and_neither_is_a_small_step_where_it_does_not_matter() {
        let wobble = |index: usize| [0.0, 0.4, -0.3, 0.2, -0.4][index % 5];
        let mut series: Vec<f64> = (0..40).map(|index| 100.0 + wobble(index)).collect();
        for outlier in [0, 1, 17, 38, 39] {
            let usual = std::mem::replace(&mut series[outlier], 150.0);
            assert_eq!(places(&series, Sensitivity::default()), [], "run {outlier}");
            series[outlier] = usual;
        }
        // Two runs are the fewest that may be a change.
        (series[38], series[39]) = (149.0, 151.0);
        assert_eq!(places(&series, Sensitivity::default()), [38]);
        let step: Vec<f64> = (0..40).map(|index| [100.0, 102.0][index / 20] + wobble(index)).collect();
        assert_eq!(places(&step, Sensitivity::default()), [20]);
        assert_eq!(places(&step, Sensitivity { change_min: 0.05, ..Sensitivity::default() }), []);
    }

    #[test]
    fn what_does_not_vary_has_its_steps_and_nothing_else() {
        assert_eq!(places(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0], Sensitivity::default()), [3]);
        assert_eq!(places(&[1.0; 200], Sensitivity::default()), []);
        assert_eq!(places(&[], Sensitivity::default()), []);
        assert_eq!(places(&[1.0, 2.0], Sensitivity::default()), []);
    }
}
