//! Profiles that change while their arrivals are taken.

use plimsoll_core::{Arrival, Nanos, Rate, Shard};
use plimsoll_schedule::{Arrivals, Process, Profile, Stage};
use proptest::prelude::*;

use crate::{arrivals, hold, stage, uniform};

const SECOND: Nanos = Nanos::from_secs(1);

fn per_second(count: u64) -> Rate {
    Rate::per_second(count)
}

fn times(profile: &Profile) -> Vec<Nanos> {
    uniform(profile).map(|arrival| arrival.at).collect()
}

#[test]
fn the_integral_goes_on_where_it_was() {
    let tenth = Rate::new(1, SECOND * 10).unwrap();
    let planned = Profile::constant(tenth, SECOND * 100);
    // 0.9 of an arrival before, 0.1 after.
    let changed = planned.changed(SECOND * 9, per_second(1)).unwrap();
    assert_eq!(times(&changed)[..3], [Nanos::ZERO, Nanos(9_100_000_000), Nanos(10_100_000_000)]);
    // 0.9 + 91
    assert_eq!((changed.total(), changed.duration()), (91, SECOND * 100));
    assert_eq!((changed.rate_at(SECOND * 8), changed.rate_at(SECOND * 9)), (0.1, 1.0));
    assert_eq!((changed.peak(), changed.peak_from(SECOND * 9)), (1.0, 1.0));
    assert_eq!(changed.stages(), planned.stages());
}

#[test]
fn the_rate_is_exact_however_often_it_is_set() {
    let planned = Profile::constant(per_second(7), SECOND * 60);
    let often = (1..600).try_fold(planned.clone(), |profile, tenth| {
        profile.changed(Nanos::from_millis(tenth * 100), per_second(7))
    });
    assert_eq!(times(&often.unwrap()), times(&planned));
}

#[test]
fn a_pause_shifts_what_follows_and_its_end_takes_up_the_old_profile() {
    let planned = Profile::constant(per_second(4), SECOND * 10);
    let paused = planned.changed(Nanos(1_100_000_000), per_second(0)).unwrap();
    // Due arrivals stay due: at 0, 0.25, 0.5, 0.75 and 1 s.
    assert_eq!(paused.total(), 5);
    let resumed = paused.spliced(Nanos(3_100_000_000), &planned).unwrap();
    let shifted = planned.spliced(SECOND * 8, &Profile::constant(per_second(0), SECOND * 10)).unwrap();
    let shift = |at: Nanos| if at.0 < 1_100_000_000 { at } else { at + SECOND * 2 };
    let expected: Vec<Nanos> = times(&shifted).into_iter().map(shift).collect();
    assert_eq!(times(&resumed), expected);
    // A resumed ramp is where it would have been.
    let ramp = Profile::new(vec![stage(SECOND * 10, per_second(0), per_second(100))]).unwrap();
    let resumed = ramp.changed(SECOND * 2, per_second(0)).unwrap().spliced(SECOND * 6, &ramp).unwrap();
    assert_eq!([3, 6, 9].map(|at| resumed.rate_at(SECOND * at)), [0.0, 60.0, 90.0]);
    // 500 in all, less those of the second 2 to 6: 5 * (36 - 4).
    assert_eq!(resumed.total(), 500 - 160);
}

/// Of 1.5 arrivals one is whole. The other becomes so by a change, and is due then, not before.
#[test]
fn what_becomes_whole_by_a_change_is_not_due_before_it() {
    let tenth = Rate::new(1, SECOND * 10).unwrap();
    let planned = Profile::constant(tenth, SECOND * 15);
    assert_eq!(times(&planned), [Nanos::ZERO]);
    let changed = planned.changed(SECOND * 12, per_second(1)).unwrap();
    // Λ(12) = 1.2: the next whole number comes 0.8 s later.
    assert_eq!(times(&changed), [Nanos::ZERO, SECOND * 12, Nanos(12_800_000_000), Nanos(13_800_000_000)]);
    let before = |ms| uniform(&changed).count_before(Nanos::from_millis(ms));
    assert_eq!([11_000, 12_000, 12_001, 12_800, 12_801].map(before), [1, 1, 2, 2, 3]);
}

#[test]
fn a_change_beyond_the_end_changes_nothing() {
    let planned = Profile::constant(per_second(5), SECOND * 3);
    for at in [SECOND * 3, SECOND * 4, Nanos::MAX] {
        assert_eq!(planned.changed(at, per_second(9)).unwrap(), planned);
    }
}

#[test]
fn rates_that_have_no_common_unit_are_refused_and_change_nothing() {
    let primes = [4_294_967_291, 4_294_967_279, 4_294_967_231];
    let [one, other, third] = primes.map(|period| Rate::new(1, Nanos(period)).unwrap());
    let profile = Profile::constant(one, SECOND * 100).changed(SECOND, other).unwrap();
    assert!(profile.changed(SECOND * 2, third).is_err());
}

#[test]
fn indices_end_where_64_bits_do() {
    let fastest = Rate::new(u64::MAX, Nanos(1)).unwrap();
    let planned = Profile::constant(fastest, Nanos(10));
    let shard = Shard { index: 1, of: u32::MAX };
    let mut stream = Arrivals::new(&planned, Process::Uniform, 0, shard);
    stream.change(&planned);
    assert_eq!(stream.next(), Some(Arrival { index: 1, at: Nanos::ZERO }));
}

/// A change of a test: when it is made known, after which it applies.
#[derive(Clone, Copy, Debug)]
enum Change {
    To(Rate),
    Pause,
    Resume,
}

/// The profiles after each change, each with its instant; those that do not fit are left out.
fn history(planned: &Profile, changes: &[(u64, Change)]) -> Vec<(Nanos, Profile)> {
    let mut changes = changes.to_vec();
    changes.sort_by_key(|(at, _)| *at);
    let (mut base, mut present, mut all) = (planned.clone(), planned.clone(), Vec::new());
    for (at, change) in changes {
        let at = Nanos(planned.duration().0 * at / 1000);
        let next = match change {
            Change::To(rate) => {
                let next = present.changed(at, rate);
                if next.is_ok() {
                    base = Profile::constant(rate, planned.duration());
                }
                next
            }
            Change::Pause => present.changed(at, Rate::per_second(0)),
            Change::Resume => present.spliced(at, &base),
        };
        if let Ok(next) = next {
            present = next;
            all.push((at, present.clone()));
        }
    }
    all
}

/// Returns the arrivals that a shard takes if it learns of each change after taking everything due until
/// `early` before it.
fn taken(mut stream: Arrivals, history: &[(Nanos, Profile)], early: Nanos) -> Vec<Arrival> {
    let mut all = Vec::new();
    for (at, profile) in history {
        while let Some(arrival) = stream.peek().filter(|arrival| arrival.at + early < *at) {
            all.push(arrival);
            stream.next();
        }
        stream.change(profile);
    }
    all.extend(stream);
    all
}

fn planned() -> impl Strategy<Value = Profile> {
    let rate = || prop_oneof![Just(0_u64), 1_u64..9, 0_u64..3000];
    let ramp = (1_u64..40, rate(), rate(), prop::bool::ANY, 1_u64..1000);
    prop::collection::vec(ramp, 1..4).prop_map(|parts| {
        let stages: Vec<Stage> = parts
            .into_iter()
            .map(|(hundredths, from, to, constant, odd)| {
                let length = Nanos::from_millis(hundredths * 10) + Nanos(odd);
                if constant {
                    hold(length, Rate::new(from, Nanos::from_secs(3)).unwrap())
                } else {
                    stage(length, Rate::per_second(from), Rate::per_second(to))
                }
            })
            .collect();
        Profile::new(stages).unwrap()
    })
}

fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let rate = prop_oneof![
        (0_u64..5000).prop_map(Rate::per_second),
        (1_u64..5000, 1_u64..200)
            .prop_map(|(count, period)| { Rate::new(count, Nanos::from_millis(period * 5)).unwrap() }),
    ];
    let change = prop_oneof![
        4 => rate.prop_map(Change::To),
        1 => Just(Change::Pause),
        1 => Just(Change::Resume),
    ];
    prop::collection::vec((0_u64..1100, change), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Shards that learn of each change at different moments take together the same arrivals as a single
    /// machine that knew everything from the start.
    #[test]
    fn shards_that_change_unite_to_the_whole(
        planned in planned(), changes in changes(), of in 1_u32..9, seed: u64, poisson: bool,
        early in 0_u64..90,
    ) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let history = history(&planned, &changes);
        let last = history.last().map_or(&planned, |(_, profile)| profile);
        let whole: Vec<Arrival> = arrivals(last, process, seed, 0, 1).collect();
        prop_assert!((0..).zip(&whole).all(|(index, arrival)| arrival.index == index));
        prop_assert!(whole.windows(2).all(|pair| pair[0].at <= pair[1].at));
        prop_assert!(whole.iter().all(|arrival| arrival.at < planned.duration()));
        let mut all: Vec<Arrival> = (0..of)
            .flat_map(|index| {
                let early = Nanos::from_millis(early * u64::from(index));
                taken(arrivals(&planned, process, seed, index, of), &history, early)
            })
            .collect();
        all.sort_unstable_by_key(|arrival| arrival.index);
        prop_assert_eq!(all, whole);
    }

    /// An arrival that is due before a change is due at the same time after it.
    #[test]
    fn a_change_leaves_the_past_alone(
        planned in planned(), changes in changes(), seed: u64, poisson: bool,
    ) {
        let process = if poisson { Process::Poisson } else { Process::Uniform };
        let mut before = planned.clone();
        for (at, after) in history(&planned, &changes) {
            let of = |profile: &Profile| -> Vec<Arrival> {
                let stream = arrivals(profile, process, seed, 0, 1);
                stream.take_while(|arrival| arrival.at < at).collect()
            };
            let (old, new) = (of(&before), of(&after));
            prop_assert_eq!(&old, &new);
            let counted = |profile| arrivals(profile, process, seed, 0, 1).count_before(at);
            prop_assert_eq!(counted(&before), counted(&after));
            prop_assert_eq!(counted(&after), new.len() as u64);
            before = after;
        }
    }

    /// Constant rates: the integral is the sum of rate times length, as a fraction, and nothing else.
    #[test]
    fn counts_are_the_exact_integral(
        rates in prop::collection::vec((0_u64..5000, 1_u64..1000), 1..9),
    ) {
        let window = Nanos(100_000_007);
        let rates: Vec<Rate> =
            rates.into_iter().map(|(count, ms)| Rate::new(count, Nanos::from_millis(ms)).unwrap()).collect();
        let mut profile = Profile::constant(rates[0], window * rates.len() as u64);
        for (number, rate) in (0..).zip(&rates).skip(1) {
            let Ok(changed) = profile.changed(window * number, *rate) else { return Ok(()) };
            profile = changed;
        }
        // In millionths of a millionth, rounded down and up.
        let (mut low, mut high) = (0_u128, 0_u128);
        for (number, rate) in (1..).zip(&rates) {
            let area = u128::from(rate.count()) * u128::from(window.0) * 1_000_000_000_000;
            low += area / u128::from(rate.period().0);
            high += area.div_ceil(u128::from(rate.period().0));
            let before = u128::from(uniform(&profile).count_before(window * number));
            let (least, most) = (low.div_ceil(1_000_000_000_000), high.div_ceil(1_000_000_000_000));
            // At the end only whole units count; and an arrival that was less than a whole unit when it was
            // due does not become due in the past by a change.
            let least = if number as usize == rates.len() { low / 1_000_000_000_000 } else { least };
            let least = least.saturating_sub(1);
            prop_assert!((least..=most).contains(&before), "{} not in {}..={}", before, least, most);
        }
    }
}
