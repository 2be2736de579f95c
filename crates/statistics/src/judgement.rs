//! From an interval to a word: better, worse, same or undecided.

use crate::shift::Shift;

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// Smaller is better: times, errors.
    Lower,
    /// Larger is better: rates.
    Higher,
}

/// Judgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// There is a change for the better that may matter.
    Better,
    /// There is a change for the worse that may matter.
    Worse,
    /// If there is a change, it is too small to matter.
    Same,
    /// Both no change and one that matters agree with the measurement.
    Undecided,
}

/// Judges a change by its interval and by the probability of a test for no change (already adjusted for
/// other tests beside it, see [`holm`](crate::holm::holm)).
///
/// * *Same*: the interval lies within ± `effect`, the smallest change that matters (in the units of the
///   change).
/// * *Better* or *worse*: the interval does not hold zero, and `p` is at most `level`. A part of it lies
///   beyond `effect`, so that the change may be one that matters; a change of exactly `effect` is found as
///   often as the test has power.
/// * *Undecided*: anything else. The interval holds zero and changes that matter.
pub fn judge(change: Shift, p: f64, level: f64, effect: f64, orientation: Orientation) -> Judgement {
    if change.low > -effect && change.high < effect {
        return Judgement::Same;
    }
    let (falls, rises) = (change.high < 0.0, change.low > 0.0);
    match orientation {
        _ if p > level || !(falls || rises) => Judgement::Undecided,
        Orientation::Lower if falls => Judgement::Better,
        Orientation::Higher if rises => Judgement::Better,
        Orientation::Lower | Orientation::Higher => Judgement::Worse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judgements_follow_the_interval() {
        use Judgement::{Better, Same, Undecided, Worse};
        use Orientation::{Higher, Lower};
        let infinite = f64::INFINITY;
        for (low, high, p, orientation, expected) in [
            (-0.01, 0.02, 0.5, Lower, Same),
            // Certain, and irrelevant.
            (0.01, 0.02, 0.001, Lower, Same),
            (0.02, 0.08, 0.001, Lower, Worse),
            (0.02, 0.08, 0.001, Higher, Better),
            (-0.30, -0.20, 0.001, Lower, Better),
            (-0.30, -0.20, 0.001, Higher, Worse),
            // Not certain in view of the other tests.
            (0.02, 0.08, 0.06, Lower, Undecided),
            (-0.02, 0.08, 0.2, Lower, Undecided),
            (-infinite, infinite, 0.1, Lower, Undecided),
            // A change that reaches the limit is not within it.
            (-0.05, 0.01, 0.2, Lower, Undecided),
        ] {
            let change = Shift { estimate: f64::midpoint(low, high), low, high };
            let found = judge(change, p, 0.05, 0.05, orientation);
            assert_eq!(found, expected, "[{low}, {high}] {orientation:?}");
        }
    }
}
