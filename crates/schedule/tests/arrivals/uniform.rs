//! Constant rates, rests and seams.

use plimsoll_core::{Arrival, Nanos, Rate};
use plimsoll_schedule::{Process, Profile};
use proptest::prelude::*;

use crate::{arrivals, hold, uniform, union};

#[test]
fn a_constant_rate_is_the_closed_formula() {
    for (count, period, duration) in [
        (1, 3_000_000_000, 10_000_000_000),
        (1, 10_000_000_000, 100_000_000_000),
        (700_000, 1_000_000_000, 100_000_000),
        (10_000_000, 1_000_000_000, 10_000_000),
        (999_983, 1_000_000_000, 1_000_000_000),
        (7, 3, 1000),
        (u64::MAX, u64::MAX - 1, 1000),
    ] {
        let (rate, duration) = (Rate::new(count, Nanos(period)).unwrap(), Nanos(duration));
        let profile = Profile::constant(rate, duration);
        let integral = u128::from(count) * u128::from(duration.0) / u128::from(period);
        assert_eq!(u128::from(profile.total()), integral);
        let all: Vec<Arrival> = uniform(&profile).collect();
        assert_eq!(all.len() as u64, profile.total());
        for (index, arrival) in (0..).zip(&all) {
            assert_eq!(*arrival, Arrival { index, at: rate.arrival_at(index) }, "{count}/{period}");
            assert!(arrival.at < duration);
        }
    }
}

#[test]
fn nothing_drifts_over_hours_and_shards_reach_the_end_without_the_others() {
    let rate = Rate::per_second(9_999_991);
    let profile = Profile::constant(rate, Nanos::from_secs(10 * 3600));
    assert_eq!(profile.total(), 9_999_991 * 36_000);
    // With this many shards, ten hours take this one a few thousand steps.
    let of = 50_000_017;
    let (mut count, mut last) = (0, None);
    for arrival in arrivals(&profile, Process::Uniform, 0, 12_345, of) {
        assert_eq!(arrival.at, rate.arrival_at(arrival.index));
        assert_eq!(arrival.index % u64::from(of), 12_345);
        (count, last) = (count + 1, Some(arrival));
    }
    assert_eq!(count, profile.total().div_ceil(u64::from(of)));
    assert!(last.unwrap().index + u64::from(of) >= profile.total());
}

#[test]
fn peeking_takes_nothing_and_the_end_stays_the_end() {
    let profile = Profile::constant(Rate::per_second(2), Nanos::from_secs(1));
    for process in [Process::Uniform, Process::Poisson] {
        let mut stream = arrivals(&profile, process, 3, 0, 1);
        while let Some(shown) = stream.peek() {
            assert_eq!(stream.peek(), Some(shown));
            assert_eq!(stream.next(), Some(shown));
        }
        assert_eq!((stream.next(), stream.peek(), stream.next()), (None, None, None));
    }
}

#[test]
fn an_empty_schedule_has_no_arrivals() {
    let rest = Profile::constant(Rate::per_second(0), Nanos::from_secs(5));
    let short = Profile::constant(Rate::per_second(5), Nanos::ZERO);
    for profile in [rest, short] {
        for process in [Process::Uniform, Process::Poisson] {
            let mut stream = arrivals(&profile, process, 1, 0, 2);
            assert_eq!(stream.next(), None);
            assert_eq!(stream.count_before(Nanos::MAX), 0);
        }
    }
}

#[test]
fn a_rest_delays_what_falls_on_it_to_its_end() {
    let second = Nanos::from_secs(1);
    let (one, zero) = (Rate::per_second(1), Rate::per_second(0));
    let profile =
        Profile::new(vec![hold(second, zero), hold(second * 2, one), hold(second, zero), hold(second, one)]);
    let profile = profile.unwrap();
    let times: Vec<Nanos> = uniform(&profile).map(|arrival| arrival.at).collect();
    // Arrival 2 is due when the integral reaches 2 and goes on: after the rest.
    assert_eq!(times, [second, second * 2, second * 4]);
    let before = |seconds| uniform(&profile).count_before(second * seconds);
    assert_eq!([before(0), before(1), before(2), before(3), before(4), before(5)], [0, 0, 1, 2, 2, 3]);
    assert_eq!(uniform(&profile).count_before(Nanos(1_000_000_001)), 1);
}

#[test]
fn fractions_are_carried_over_the_seams() {
    // Half an arrival in each of 7 stages: 3 whole ones.
    let (half, stages) = (Rate::new(1, Nanos(200)).unwrap(), 7);
    let profile = Profile::new(vec![hold(Nanos(100), half); stages]).unwrap();
    assert_eq!(uniform(&profile).collect::<Vec<_>>(), {
        let whole = Profile::constant(half, Nanos(700));
        uniform(&whole).collect::<Vec<_>>()
    });
    assert_eq!(profile.total(), 3);
}

/// Rates from 0.1/s to 1e7/s, most with an odd denominator.
fn rates() -> impl Strategy<Value = Rate> {
    let decimal = (-1_i32..=7, 100_u64..1000).prop_map(|(magnitude, digits)| {
        Rate::new(digits * 10_u64.pow((magnitude + 1) as u32), Nanos::from_secs(1000))
    });
    let rational = (1_u64..100_000, 1_u64..1_000_000).prop_map(|(n, d)| Rate::new(n, Nanos(d * 10)));
    prop_oneof![decimal, rational].prop_map(|rate| rate.unwrap())
}

proptest! {
    #[test]
    fn shards_unite_to_the_whole(
        parts in prop::collection::vec((rates(), 1_u64..4_000, prop::bool::ANY), 1..6), of in 1_u32..=64,
    ) {
        let stages = parts.into_iter().map(|(rate, arrivals, rests)| {
            // About as many arrivals, so that fast and slow stages cost the same.
            let duration = Nanos(rate.arrival_at(arrivals % 800).0 + arrivals);
            hold(duration, if rests { Rate::per_second(0) } else { rate })
        });
        let Ok(profile) = Profile::new(stages.collect()) else { return Ok(()) };
        let whole: Vec<Arrival> = uniform(&profile).collect();
        prop_assert_eq!(whole.len() as u64, profile.total());
        prop_assert_eq!(&union(&profile, Process::Uniform, 0, of), &whole);
        prop_assert!(whole.windows(2).all(|pair| pair[0].at <= pair[1].at));
        prop_assert!(whole.iter().all(|arrival| arrival.at < profile.duration()));
        prop_assert!((0..).zip(&whole).all(|(index, arrival)| arrival.index == index));
    }

    #[test]
    fn counts_are_those_of_the_sequence(
        rate in rates(),
        arrivals in 1_u64..300,
        probes in prop::array::uniform8(0_u64..1100),
    ) {
        let duration = Nanos(rate.arrival_at(arrivals).0 + 1);
        let profile = Profile::constant(rate, duration);
        let whole: Vec<Arrival> = uniform(&profile).collect();
        for per_mille in probes {
            let at = Nanos((u128::from(duration.0) * u128::from(per_mille) / 1000) as u64);
            let expected = whole.iter().filter(|arrival| arrival.at < at).count() as u64;
            prop_assert_eq!(uniform(&profile).count_before(at), expected);
        }
    }
}
