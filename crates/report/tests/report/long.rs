//! Runs of days: the size of their records, and the details that remain.

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;
use plimsoll_metrics::interval::{MOST_INTERVALS, MOST_PIECES};
use plimsoll_metrics::{
    CoreUse, Interval, IntervalDownsampler, MachineInterval, Outline, ProcessUse, RunRecord, Tally,
    ThreadUse, WatchedProcess, WatchedUse,
};
use plimsoll_report::fault::{FaultEffect, FaultMark, effects};
use plimsoll_report::{Format, SavedRun};

use crate::fixture::{context, quiet_record, result_with};
use crate::{TERMINAL, rendered};

const TICK: Nanos = Nanos::from_millis(200);
/// Intervals of 72 hours.
const TICKS: u64 = 72 * 3_600 * 5;
/// Interval after which requests stand still for a second and then fail for four; a fault made them.
const OUTAGE: u64 = 1_000_003;
/// With three watched servers, eight processors and four workers in every interval.
const LARGEST_JSON: usize = 20 << 20;
const LARGEST_PAGE: usize = 2 << 20;

/// Memory of watched servers, which grows by a MiB per hour and goes up and down meanwhile.
fn rss(tick: u64) -> u64 {
    (100 << 20) + (tick << 20) / (5 * 3_600) + (tick * 7_919 % 1_000) * 1_024
}

fn tick(number: u64) -> Interval {
    let ok = if (OUTAGE + 1..=OUTAGE + 25).contains(&number) { 0 } else { 100 };
    let failed = if (OUTAGE + 6..=OUTAGE + 25).contains(&number) { 3 } else { 0 };
    let times = Delta::of(1_000_000 + number % 977 * 1_000, ok);
    let step = Tally { ok, failed, response_time: times, ..Tally::default() };
    Interval {
        at: TICK * number,
        length: TICK,
        started: ok + failed,
        ok,
        failed,
        completed: ok,
        in_flight: 4,
        connections: 8,
        marked: number == OUTAGE + 1,
        steps: vec![step],
        ..Interval::default()
    }
}

fn machine(number: u64) -> MachineInterval {
    let used = |bytes| ProcessUse {
        cpu: TICK,
        threads: 4,
        last_threads: 4,
        rss_bytes: Some(bytes),
        last_rss_bytes: Some(bytes),
        descriptors: Some(70),
        last_descriptors: Some(70),
        ..ProcessUse::default()
    };
    let server = WatchedUse { processes: 1, used: Some(used(rss(number))), ..WatchedUse::default() };
    MachineInterval {
        at: TICK * number,
        length: TICK,
        workers: vec![ThreadUse::default(); 4],
        generator: Some(used(20 << 20)),
        watched: vec![server; 3],
        cores: vec![CoreUse::default(); 8],
        ..MachineInterval::default()
    }
}

fn record() -> RunRecord {
    let length = TICK * TICKS;
    let mut downsampler = IntervalDownsampler::new(TICK, Some(length), Vec::new(), Outline::default());
    let mut record = RunRecord { duration: length, intervals: Vec::new(), ..quiet_record() };
    record.machine.facts.watched = vec![WatchedProcess::default(); 3];
    for number in 1..=TICKS {
        let parts = &mut record.machine.intervals;
        downsampler.add(&mut record.intervals, parts, tick(number), Some(machine(number)));
    }
    record
}

#[test]
fn three_days_of_fifths_of_a_second_are_a_result_of_bounded_size() {
    let record = record();
    let most = (MOST_INTERVALS + MOST_PIECES) as usize;
    assert!(record.intervals.len() <= most && record.machine.intervals.len() <= most);
    let result = result_with(record.clone(), context(&["open: 500/s for 72 h"]));
    assert_eq!(result.intervals.iter().map(|one| one.ok).sum::<u64>(), 100 * (TICKS - 25));
    assert_eq!(result.intervals.iter().map(|one| one.failed).sum::<u64>(), 60);
    assert_eq!(result.intervals.iter().map(|one| u64::from(one.joined) + 1).sum::<u64>(), TICKS);
    assert!(result.intervals.iter().all(|one| one.machine.is_some()));
    let note = result.notes.iter().find(|note| note.code == "intervals_joined").expect("it is said");
    assert!(note.text.contains("72.0 s") && note.text.contains("360"), "{}", note.text);
    let json = rendered(&result, Format::Json, &TERMINAL);
    assert!(json.len() < LARGEST_JSON, "{}", json.len());
    let run = SavedRun::new(&record, result, None);
    let mut page = Vec::new();
    plimsoll_report::html::render(
        &[plimsoll_report::html::NamedRun { name: "soak", run: &run }],
        &[],
        &mut page,
    )
    .expect("writing to memory does not fail");
    assert!(page.len() < LARGEST_PAGE, "{}", page.len());
    assert!(run.to_bytes().expect("it can be saved").len() < LARGEST_JSON);
}

#[test]
fn in_three_days_an_outage_and_a_leak_are_seen_as_exactly_as_in_an_hour() {
    let record = record();
    let result = result_with(record.clone(), context(&["open: 500/s for 72 h"]));
    // The true slope is 1 MiB per hour, and batches of hours leave little of the ups and downs.
    let found = result.generator.watched[1].trends.rss_bytes_per_h.expect("it was seen throughout");
    let mib = f64::from(1 << 20);
    assert!((found.slope - mib).abs() <= 0.01 * mib && found.error < 0.01 * mib, "{found:?}");
    let own = result.generator.trends.rss_bytes_per_h.expect("it was seen throughout");
    assert_eq!((own.slope, own.error), (0.0, 0.0));
    let at_s = (TICK * OUTAGE).as_secs_f64() + 0.05;
    let fault =
        FaultMark { fault: "kill".to_owned(), nodes: vec!["1".to_owned()], at_s, until_s: None, error: None };
    let effect = effects(&SavedRun::new(&record, result, None), vec![fault]).remove(0);
    assert_eq!(effect.effect, FaultEffect::Recovered);
    let near = |found: Option<f64>, truth: f64| found.is_some_and(|found| (found - truth).abs() < 0.002);
    // It stood still for one second; the sixth interval is the first with a failure, the 25th the last.
    assert!(near(effect.first_failure_s, 1.15) && near(effect.recovery_s, 4.95), "{effect:?}");
    assert_eq!((effect.resolution_s, effect.failed, effect.ok), (0.2, 60, 0));
}
