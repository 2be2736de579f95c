//! Ramps against the definition, with rational arithmetic that is written down independently.

use plimsoll_core::{Nanos, Rate};
use plimsoll_schedule::{Process, Profile, Stage};
use proptest::prelude::*;

use crate::{arrivals, hold, stage, uniform, union};

/// A stage of small numbers: `from` and `to` in arrivals per `period` ns.
#[derive(Clone, Copy, Debug)]
struct Small {
    duration: u64,
    period: u64,
    from: u64,
    to: u64,
}

impl Small {
    fn stage(self) -> Stage {
        let rate = |count| Rate::new(count, Nanos(self.period)).unwrap();
        stage(Nanos(self.duration), rate(self.from), rate(self.to))
    }

    /// The integral up to t as a fraction: from*t + (to - from) t² / (2 duration), all over the period.
    fn integral(self, t: u64) -> (i128, i128) {
        let [t, duration, period, from, to] =
            [t, self.duration, self.period, self.from, self.to].map(i128::from);
        (2 * duration * from * t + (to - from) * t * t, 2 * duration * period)
    }
}

/// The integral of all stages up to `at`, as a fraction.
fn integral(stages: &[Small], at: u64) -> (i128, i128) {
    let (mut sum, mut begin) = ((0, 1), 0);
    for stage in stages {
        let (n, d) = stage.integral((at - begin).min(stage.duration));
        sum = (sum.0 * d + n * sum.1, sum.1 * d);
        begin += stage.duration;
        if begin > at {
            break;
        }
    }
    sum
}

/// The schedule by its definition: arrival n at the last t with Λ(t) ≤ n, found by looking at every
/// nanosecond.
fn by_definition(stages: &[Small]) -> Vec<Nanos> {
    let end: u64 = stages.iter().map(|stage| stage.duration).sum();
    let (n, d) = integral(stages, end);
    let total = n / d;
    let mut times = Vec::new();
    for t in 0..end {
        let (n, d) = integral(stages, t + 1);
        // Λ(t + 1) is greater than the index of every arrival at t.
        while (times.len() as i128) < total && (times.len() as i128) * d < n {
            times.push(Nanos(t));
        }
    }
    times
}

fn small() -> impl Strategy<Value = Small> {
    let rate = || prop_oneof![Just(0_u64), 1_u64..9, 0_u64..300];
    (
        1_u64..300,
        prop::sample::select(vec![1_u64, 2, 3, 7, 10, 64, 100, 999]),
        rate(),
        rate(),
        prop::bool::ANY,
    )
        .prop_map(|(duration, period, from, to, constant)| Small {
            duration,
            period,
            from,
            to: if constant { from } else { to },
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn small_profiles_are_their_definition(stages in prop::collection::vec(small(), 1..5)) {
        let profile = Profile::new(stages.iter().map(|stage| stage.stage()).collect()).unwrap();
        let expected = by_definition(&stages);
        let got: Vec<Nanos> = uniform(&profile).map(|arrival| arrival.at).collect();
        prop_assert_eq!(&got, &expected);
        prop_assert_eq!(profile.total(), expected.len() as u64);
        for at in 0..=profile.duration().0 + 1 {
            let before = expected.iter().filter(|due| due.0 < at).count() as u64;
            prop_assert_eq!(uniform(&profile).count_before(Nanos(at)), before, "at {}", at);
        }
    }

    #[test]
    fn long_ramps_satisfy_the_definition(
        seconds in 1_u64..86_400,
        from in 0_u64..10_000_000,
        to in 0_u64..10_000_000,
        shares in prop::array::uniform16(0_u64..10_000),
    ) {
        prop_assume!(from != to);
        let profile = Profile::new(vec![second_ramp(seconds, from, to)]).unwrap();
        prop_assert_eq!(profile.total(), (from + to) * seconds / 2);
        for share in shares {
            let index = (u128::from(profile.total()) * u128::from(share) / 10_000) as u64;
            if index < profile.total() {
                prop_assert!(is_last_instant(&profile, seconds, from, to, index), "arrival {}", index);
            }
        }
        // The end of a ramp to or from zero is where floating point alone would fail.
        for index in [0, profile.total() / 2, profile.total().saturating_sub(1)] {
            prop_assert!(profile.total() == 0 || is_last_instant(&profile, seconds, from, to, index));
        }
    }

    #[test]
    fn shards_of_ramps_unite_to_the_whole(
        parts in prop::collection::vec((1_u64..30, 0_u64..2000, 0_u64..2000), 1..4), of in 1_u32..=64,
    ) {
        let stages = parts.into_iter().map(|(tenths, from, to)| {
            stage(Nanos::from_millis(tenths * 10), Rate::per_second(from), Rate::per_second(to))
        });
        let profile = Profile::new(stages.collect()).unwrap();
        let whole: Vec<_> = uniform(&profile).collect();
        prop_assert_eq!(whole.len() as u64, profile.total());
        prop_assert_eq!(&union(&profile, Process::Uniform, 0, of), &whole);
        prop_assert!(whole.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}

fn second_ramp(seconds: u64, from: u64, to: u64) -> Stage {
    stage(Nanos::from_secs(seconds), Rate::per_second(from), Rate::per_second(to))
}

/// Checks that Λ(t) ≤ index < Λ(t + 1) for the time t of that arrival, in units of 1 / (2 * 10^9 * duration)
/// arrivals: at most 2^47 * 2^24 * 2^48 for a day at 1e7/s.
fn is_last_instant(profile: &Profile, seconds: u64, from: u64, to: u64, index: u64) -> bool {
    let duration = i128::from(seconds) * 1_000_000_000;
    let (from, to) = (i128::from(from), i128::from(to));
    let integral = |t: i128| 2 * duration * from * t + (to - from) * t * t;
    let wanted = i128::from(index) * 2 * 1_000_000_000 * duration;
    // As many shards as there can be: the arrival is one of the first of its own.
    let of = u32::MAX;
    let mut stream = arrivals(profile, Process::Uniform, 0, (index % u64::from(of)) as u32, of);
    let arrival = stream.find(|arrival| arrival.index == index).unwrap();
    let at = i128::from(arrival.at.0);
    integral(at) <= wanted && wanted < integral(at + 1)
}

#[test]
fn a_ramp_joins_the_stages_around_it() {
    let second = Nanos::from_secs(1);
    let (slow, fast) = (Rate::per_second(1000), Rate::per_second(5000));
    let profile =
        Profile::new(vec![hold(second * 30, slow), stage(second * 60, slow, fast), hold(second * 10, fast)])
            .unwrap();
    assert_eq!(profile.total(), 30_000 + 180_000 + 50_000);
    let times: Vec<Nanos> = uniform(&profile).map(|arrival| arrival.at).collect();
    assert_eq!(times.len(), 260_000);
    assert_eq!((times[0], times[30_000], times[210_000]), (Nanos::ZERO, second * 30, second * 90));
    // No gap and no double: every distance lies between those of the two rates.
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!((200_000 - 1..=1_000_000 + 1).contains(&gap.0), "{pair:?}");
    }
}

#[test]
fn a_ramp_from_nothing_is_a_square_root() {
    let profile = Profile::new(vec![second_ramp(10, 0, 2000)]).unwrap();
    // Λ(t) = 100 t²: arrival n at sqrt(n)/10 s.
    for arrival in uniform(&profile) {
        let expected = (u128::from(arrival.index) * 10_u128.pow(16)).isqrt() as u64;
        assert_eq!(arrival.at, Nanos(expected));
    }
}
