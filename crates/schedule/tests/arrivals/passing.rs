//! Arrivals that are taken at once are those that would have been taken one by one.

use plimsoll_core::{Nanos, Rate};
use plimsoll_schedule::{Process, Profile};

use super::{arrivals, hold, stage};

#[test]
fn passing_over_arrivals_is_taking_each() {
    let (slow, fast) = (Rate::per_second(700), Rate::per_second(9_000));
    let second = Nanos::from_secs(1);
    let stages = vec![hold(second, slow), stage(second, slow, fast), hold(second, fast)];
    let profile = Profile::new(stages).expect("a profile");
    for process in [Process::Uniform, Process::Poisson] {
        for at in
            [0, 1, 999_999_999, 1_000_000_000, 1_500_000_001, 2_300_000_000, 3_000_000_000, 9_000_000_000]
        {
            for taken in [0, 1, 300] {
                let mut one_by_one = arrivals(&profile, process, 3, 1, 3);
                (0..taken).for_each(|_| _ = one_by_one.next());
                let mut at_once = one_by_one.clone();
                while one_by_one.peek().is_some_and(|arrival| arrival.at < Nanos(at)) {
                    one_by_one.next();
                }
                at_once.pass_before(Nanos(at));
                let rest = |arrivals: plimsoll_schedule::Arrivals| arrivals.take(50).collect::<Vec<_>>();
                assert_eq!(rest(at_once), rest(one_by_one), "{process:?} {at} {taken}");
            }
        }
    }
}

#[test]
fn what_is_to_be_expected_is_the_integral_of_the_rate() {
    let profile = Profile::constant(Rate::per_second(1_000), Nanos::from_secs(100));
    for process in [Process::Uniform, Process::Poisson] {
        let arrivals = arrivals(&profile, process, 3, 0, 1);
        assert_eq!(arrivals.expected_before(Nanos::from_secs(70)), 70_000);
        assert_eq!(arrivals.expected_before(Nanos::MAX), 100_000);
        let counted = arrivals.count_before(Nanos::from_secs(70));
        assert!(counted.abs_diff(70_000) < 1_500, "{counted}");
    }
}
