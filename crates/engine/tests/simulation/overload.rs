//! More arrivals than can be started, and connections that grow with need alone.

use plimsoll_core::{Nanos, Random, Rate, Shard};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{Headline, LimitedBy, RunFacts, RunOutcome, RunRecord};
use plimsoll_schedule::{Arrivals, Process, Profile};
use plimsoll_testkit::{Answer, Behaviour, Law, Pause, SimOptions};

use super::plans::{self, answering};
use super::{MS, carry_out, plan, simulate, world};

/// Symptom: the run ended after 17 s with "no worker came back": arrivals that could not be started were
/// counted one by one.
#[test]
fn arrivals_beyond_all_means_are_counted_at_once() {
    // Virtual time goes from arrival to arrival where those are dropped.
    for (overload, rate, due) in
        [("grow", "100m", 20_000_000), ("queue", "100m", 20_000_000), ("drop", "1m", 200_000)]
    {
        for threads in ["1", "3"] {
            let flags =
                [("--rate", rate), ("-d", "200ms"), ("-c", "4"), ("-t", threads), ("--overload", overload)];
            let slow = Behaviour { service: Law::Constant(MS), ..answering(Answer::default()) };
            let (record, _) = carry_out(&plan(&flags), world(slow));
            let accounts = &record.accounting;
            assert_eq!(accounts.scheduled, due, "{overload} {threads}: {accounts:?}");
            let lost = accounts.dropped + accounts.never_started;
            assert_eq!(accounts.started + lost, due, "{overload} {threads}: {accounts:?}");
            assert_eq!(accounts.dropped > 0, overload == "drop", "{accounts:?}");
        }
    }
}

/// Symptom: the intervals of 500/s on connections that carried 210/s had 210 due in each, as the chart of the
/// run and its CSV showed.
#[test]
fn intervals_have_the_arrivals_that_fell_due_in_them() {
    let second = Nanos::from_secs(1);
    for overload in ["grow", "queue", "drop"] {
        for (arrival, process) in [("uniform", Process::Uniform), ("poisson", Process::Poisson)] {
            for (rate, warmup, threads) in [(150, 0, "1"), (500, 0, "1"), (500, 2, "2"), (150, 1, "3")] {
                let (rate_flag, warmup_flag) = (rate.to_string(), format!("{warmup}s"));
                let flags = [
                    ("--rate", &*rate_flag),
                    ("-d", "4s"),
                    ("-c", "3"),
                    ("-t", threads),
                    ("--warmup", &*warmup_flag),
                    ("--arrival", arrival),
                    ("--overload", overload),
                ];
                let plan = plan(&flags);
                // 300/s on three connections, which no more are added to but by `grow`.
                let slow = Behaviour { service: Law::Constant(MS * 10), ..answering(Answer::default()) };
                let (record, _) = carry_out(&plan, world(slow));
                let case = format!("{overload} {arrival} {rate}/s, warm-up {warmup_flag}, {threads} threads");
                let profile = Profile::constant(Rate::per_second(rate), second * (4 + warmup));
                let due: Vec<Nanos> = Arrivals::new(&profile, process, plan.seed, Shard::WHOLE)
                    .map(|arrival| arrival.at)
                    .collect();
                let within = |from: Nanos, to: Nanos| due.iter().filter(|at| (from..to).contains(at)).count();
                for interval in record.intervals.iter().filter(|interval| !interval.warmup && !interval.drain)
                {
                    // The pass that ends an interval may have taken an arrival of the next one before.
                    let expected = within(interval.at - interval.length, interval.at) as u64;
                    let slack = threads.parse().expect("a number");
                    assert!(
                        interval.scheduled.abs_diff(expected) <= slack,
                        "{case}: {expected}: {interval:?}"
                    );
                }
                let measured = record.intervals.iter().filter(|interval| !interval.warmup);
                let accounts = &record.accounting;
                let all = measured.map(|interval| interval.scheduled).sum::<u64>();
                assert_eq!(all, accounts.scheduled - accounts.since_warmup, "{case}: {accounts:?}");
            }
        }
    }
}

/// Lost arrivals, which the uniform process counts all at once, still add up to the schedule.
#[test]
fn what_is_lost_is_counted_by_scenario_and_part() {
    let mut random = Random::new(7, 1);
    for case in 0..30 {
        let drops = if random.below(2) == 0 { "drop" } else { "queue" };
        let rate = 2_000 + random.below(30_000);
        let (warmup, join) = (random.below(60), random.below(120));
        let settings = format!(
            "rate: {rate}, duration: 200ms, warmup: {warmup}ms, overload: {drops}, connections: 3, threads: {}",
            1 + random.below(3)
        );
        let rest = format!(
            "data: {{n: {{range: [0, 20], at_end: stop}}}}\nscenarios:\n  - {{weight: 3, steps: [{{get: /a}}]}}\n  \
             - {{weight: 2, start_after: {join}ms, steps: [{{get: /b}}]}}\n  \
             - {{weight: 1, steps: [{{get: \"/c?n=${{n}}\"}}]}}\n"
        );
        let (record, _) = carry_out(&plans::plan(&settings, &rest), world(answering(Answer::default())));
        let accounts = &record.accounting;
        let lost = accounts.dropped + accounts.never_started;
        assert_eq!(accounts.scheduled, accounts.started + lost, "{case}: {settings}");
        assert!(accounts.without_data <= accounts.never_started, "{case}: {accounts:?}");
        // All arrivals that are due, except for those before the second scenario joins: they belong to no
        // scenario. There are none if other scenarios take their places.
        let due = rate as f64 * 0.2;
        assert!((accounts.scheduled as f64 - due).abs() <= 4.0, "{case}: {settings} {join}: {accounts:?}");
    }
}

fn open_at(rate: &str, options: SimOptions) -> RunRecord {
    carry_out(&plan(&[("--rate", rate), ("-d", "4s")]), options).0
}

/// The longest start lag, in nanoseconds.
fn longest_lag(record: &RunRecord) -> u64 {
    record.total.start_lag.max().unwrap_or_default()
}

fn fast() -> Behaviour {
    Behaviour { service: Law::Constant(Nanos::from_micros(100)), ..answering(Answer::default()) }
}

/// A stall of 300 ms at 30,000/s opened 9,000 connections, and the handshakes were the load.
#[test]
fn a_stall_of_the_generator_opens_no_thousands_of_connections() {
    let stalls = vec![Pause { at: Nanos::from_secs(1_002), length: Nanos::from_millis(300) }];
    let record = open_at("30k", SimOptions { stalls, ..world(fast()) });
    assert_eq!(record.accounting.ok, 120_000, "{:?}", record.accounting);
    assert!(record.connections.peak_open <= 200, "{}", record.connections.peak_open);
    // The stall shows in the lag.
    assert!(longest_lag(&record) >= Nanos::from_millis(250).0, "{}", longest_lag(&record));
}

/// A target that stands still gets a connection for each request that falls due, on time.
#[test]
fn a_target_that_stands_still_gets_the_connections_that_it_needs() {
    let pauses = vec![Pause { at: Nanos::from_secs(1_002), length: Nanos::from_millis(250) }];
    let record = open_at("20k", world(Behaviour { pauses, ..fast() }));
    assert_eq!(record.accounting.ok, 80_000, "{:?}", record.accounting);
    assert!(record.connections.peak_open >= 4_900, "{}", record.connections.peak_open);
    assert!(longest_lag(&record) <= Nanos::from_millis(2).0, "{}", longest_lag(&record));
}

/// A target that is slower by far needs more connections, and gets them.
#[test]
fn a_slower_target_gets_more_connections() {
    let slow = Behaviour { service: Law::Constant(Nanos::from_millis(80)), ..fast() };
    let record = open_at("10k", world(slow));
    assert_eq!(record.accounting.started, 40_000, "{:?}", record.accounting);
    assert!((790..=1_700).contains(&record.connections.peak_open), "{}", record.connections.peak_open);
    assert!(longest_lag(&record) <= Nanos::from_millis(3).0, "{}", longest_lag(&record));
}

/// A machine that stands still, target and all, had its connections grow by the length of the stall.
#[test]
fn a_stall_of_the_whole_machine_opens_no_thousands_of_connections() {
    let stalls = vec![Pause { at: Nanos::from_secs(1_002), length: Nanos::from_millis(400) }];
    let behaviour = Behaviour { pauses: stalls.clone(), ..fast() };
    let record = open_at("10k", SimOptions { stalls, ..world(behaviour) });
    assert_eq!(record.accounting.ok, 40_000, "{:?}", record.accounting);
    assert!(record.connections.peak_open <= 200, "{}", record.connections.peak_open);
}

/// Connections that a stall or a slow target once needed were kept to the end of a soak.
#[test]
fn connections_that_are_not_needed_any_more_are_closed() {
    let pauses = vec![Pause { at: Nanos::from_secs(1_005), length: Nanos::from_secs(1) }];
    let plan = plan(&[("--rate", "500"), ("-d", "120s"), ("-t", "1")]);
    let (record, _) = simulate(&plan, world(Behaviour { pauses, ..fast() }));
    let accounts = &record.accounting;
    assert_eq!((accounts.ok, accounts.started), (60_000, 60_000), "{accounts:?}");
    assert!(record.connections.peak_open >= 500, "{}", record.connections.peak_open);
    let open: Vec<u64> = record.intervals.iter().map(|interval| interval.connections).collect();
    let last = *open.last().expect("there are intervals");
    let planned = u64::from(plan.connections.initial);
    assert!((planned..=planned.max(33)).contains(&last), "{planned} of {open:?}");
    // Connections stay open for at least half a minute, and close gradually.
    assert!(open[..35].iter().skip(7).all(|open| *open >= 500), "{open:?}");
    assert!(open.windows(2).all(|pair| pair[0].saturating_sub(pair[1]) <= 64), "{open:?}");
    assert!(record.connections.failed.total() == 0, "{:?}", record.connections);
}

/// A healthy server, and a generator that comes late to a few arrivals: that is not the server's failure.
#[test]
fn a_generator_that_is_late_fails_no_server() {
    let stall = |number: u64| Pause {
        at: Nanos::from_millis(1_000_003 + 100 * number),
        length: Nanos::from_millis(6),
    };
    let stalls: Vec<Pause> = (0..20).map(stall).collect();
    let judged = |limit: &str, behaviour: Behaviour| {
        let load =
            [("--rate", "500"), ("-d", "2s"), ("-c", "5"), ("--overload", "queue"), ("--threshold", limit)];
        let (record, _) = simulate(&plan(&load), SimOptions { stalls: stalls.clone(), ..world(behaviour) });
        let headline = Headline::of(&RunFacts::of(&record));
        (headline.outcome, record)
    };
    let (outcome, late) = judged("p99<1ms", fast());
    let p99 = |times: &Histogram| times.percentile(99.0).expect("samples");
    assert!(p99(&late.total.response_time) > 1_000_000 && p99(&late.total.service_time) < 300_000);
    assert_eq!(outcome, RunOutcome::NoVerdict, "{:?}", late.verdict);
    assert_eq!(late.verdict.codes(), ["start_lag"], "{:?}", late.verdict);
    assert_eq!(late.verdict.limited_by.what, LimitedBy::Generator);
    // A limit that holds in spite of the lag holds; one that the service times break is broken.
    assert_eq!(judged("p99<10ms", fast()).0, RunOutcome::Pass);
    assert_eq!(judged("p99<50us", fast()).0, RunOutcome::Fail);
    // Start lag while the server stood still is the server's, not ours.
    let pauses = vec![Pause { at: Nanos::from_millis(1_001_000), length: Nanos::from_millis(300) }];
    let (_, frozen) = judged("p99<50ms", Behaviour { pauses, ..fast() });
    assert!(frozen.thresholds[0].own_lag.is_none(), "{:?}", frozen.thresholds);
    assert_eq!(frozen.verdict.limited_by.what, LimitedBy::Target, "{:?}", frozen.verdict);
}

#[test]
fn stalls_beyond_a_hundred_are_not_listed() {
    let stall = |number: u64| Pause {
        at: Nanos::from_millis(1_000_500 + 200 * number),
        length: Nanos::from_millis(60),
    };
    let stalls: Vec<Pause> = (0..120).map(stall).collect();
    let plan = plan(&[("--rate", "100"), ("-d", "30s"), ("-t", "1")]);
    let (record, _) = simulate(&plan, SimOptions { stalls, ..world(fast()) });
    assert_eq!(record.workers[0].stalls.len(), 100);
    assert_eq!(record.accounting.ok, 3_000, "{:?}", record.accounting);
}
