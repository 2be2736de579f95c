//! Arrivals at given instants, as a profile.

use plimsoll_core::{Nanos, Rate};

use crate::Stage;

/// The time in which arrivals of one instant begin, and to which instants are rounded down: that of traces.
const GRAIN: Nanos = Nanos::from_millis(1);

/// Returns stages that have one arrival at each of these instants, counted from the first of them: in the
/// whole millisecond that it lies in, at its begin, or, if there are several in one, evenly over it. `None`
/// if there is no instant, or one lies before the one in front of it.
///
/// Between two instants the rate is 0; all rates have the same denominator, so that the profile is exact
/// however many there are.
pub fn stages_at(instants: impl IntoIterator<Item = Nanos>) -> Option<Vec<Stage>> {
    let mut instants = instants.into_iter().map(|at| at.0 / GRAIN.0).peekable();
    let first = *instants.peek()?;
    let (mut stages, mut end) = (Vec::new(), first);
    while let Some(at) = instants.next() {
        let mut count = 1;
        while instants.next_if_eq(&at).is_some() {
            count += 1;
        }
        let rest = at.checked_sub(end)?;
        if rest > 0 {
            stages.push(hold(0, GRAIN * rest)?);
        }
        stages.push(hold(count, GRAIN)?);
        end = at + 1;
    }
    Some(stages)
}

/// Arrivals per millisecond over a time.
fn hold(count: u64, duration: Nanos) -> Option<Stage> {
    let rate = Rate::new(count, GRAIN)?;
    Some(Stage { duration, from: rate, to: rate })
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Shard;

    use super::*;
    use crate::{Arrivals, Process, Profile};

    fn arrivals(ms: &[f64]) -> Option<Vec<u64>> {
        let stages = stages_at(ms.iter().map(|ms| Nanos((ms * 1e6) as u64)))?;
        let profile = Profile::new(stages).expect("it fits");
        let all = Arrivals::new(&profile, Process::Uniform, 0, Shard::WHOLE);
        Some(all.map(|arrival| arrival.at.0 / 1_000).collect())
    }

    #[test]
    fn each_instant_has_its_arrival() {
        assert_eq!(arrivals(&[0.0, 7.0, 8.0, 3_000.0]).unwrap(), [0, 7_000, 8_000, 3_000_000]);
        // From the first one, to the millisecond, and several in one.
        assert_eq!(arrivals(&[27_482.9, 27_483.2, 30_535.0]).unwrap(), [0, 1_000, 3_053_000]);
        assert_eq!(arrivals(&[5.0, 5.0, 5.0, 5.5, 9.0]).unwrap(), [0, 250, 500, 750, 4_000]);
        assert_eq!(arrivals(&[]), None);
        assert_eq!(arrivals(&[2.0, 1.0]), None);
    }

    #[test]
    fn a_long_trace_is_exact() {
        let ms: Vec<f64> = (0..20_000).map(|n| f64::from(n * 37 % 11 + n * 13)).collect();
        let mut sorted = ms;
        sorted.sort_by(f64::total_cmp);
        let all = arrivals(&sorted).unwrap();
        assert_eq!(all.len(), sorted.len());
        assert!(all.iter().zip(&sorted).all(|(at, ms)| at / 1_000 == (*ms - sorted[0]) as u64));
    }
}
