//! The memory of a whole run does not grow with the sent bytes, nor with its length: the bytes that all of
//! its threads have in use while it goes on in virtual time.

#[path = "../allocations/canned.rs"]
mod canned;

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use plimsoll_core::Nanos;
use plimsoll_document::RawValue;
use plimsoll_driver::{Endpoint, Open, SystemError};
use plimsoll_engine::{Backends, Control, Progress, TargetAddress, run};
use plimsoll_plan::{Command, Plan, PlanPatch, PlanSource, Switch};
use plimsoll_scenario::{Bodies, BodyMaker, BodySource, BodySupply};
use plimsoll_workloads::PARTS;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use canned::{Canned, OneFile};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Records of a batch, batches of a second, and seconds: 300 million records.
const RECORDS: u32 = 1_000;
const RATE: u64 = 10_000;
const SECONDS: u64 = 30;

/// Seconds by which workers may be ahead of their reports: they do not measure how many messages of theirs
/// wait to be read.
const AHEAD: u64 = 3;
/// Attempts to go on: seconds, where milliseconds are enough.
const ATTEMPTS: usize = 10_000_000;

/// Bytes that may come and go during a run.
const SPARE: usize = 100_000;
/// Bytes that a second of the run may leave behind: its line of the report. A second has 10,000 batches.
const SECOND: usize = 1_000;

/// Hours of the long runs, unless `PLIMSOLL_MEMORY_HOURS` has another number of them: `ci/nightly` has 72.
const HOURS: u64 = 8;
/// Requests of a second of the long runs.
const SLOW_RATE: u64 = 4;
/// Bytes that the days may add after their first hour: 3,600 intervals, and the machine's figures in them.
const OF_DAYS: usize = 2 << 20;

/// The bytes in use are those of the whole process: one run at a time.
static TURN: Mutex<()> = Mutex::new(());

const PLAN: &str = "
targets: {a: http://sim.test}
scenarios: [{steps: [{post: /write, batch: {kind: logs}}]}]
";

/// Bodies that cost next to nothing to make.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// Seconds of the run that were reported.
    told: Arc<AtomicU64>,
    /// Bodies of a second.
    rate: u64,
}

impl BodySource for Numbers {
    fn open(&self, _: u64) -> Box<dyn BodyMaker> {
        Box::new(self.clone())
    }

    fn span_ns(&self) -> u64 {
        1_000_000
    }
}

impl BodyMaker for Numbers {
    fn make(&mut self, number: u64, unix_ns: u64, out: &mut Vec<u8>) {
        let is_heard = || number / self.rate <= self.told.load(Ordering::Relaxed) + AHEAD;
        let mut attempts = std::iter::repeat_with(thread::yield_now).take(ATTEMPTS);
        assert!(is_heard() || attempts.any(|()| is_heard()), "nothing is told of the run");
        out.clear();
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&unix_ns.to_le_bytes());
    }
}

/// Opens backends that answer at once.
#[derive(Clone, Copy, Debug)]
struct OpenCanned;

impl Open for OpenCanned {
    type Backend = Canned;

    fn open(&self) -> Result<Canned, SystemError> {
        Ok(Canned::new())
    }

    /// The name of backends whose time is virtual.
    fn name(&self) -> &'static str {
        "simulated"
    }
}

fn in_use() -> usize {
    let stats = MEMORY.stats();
    // Read one after another, so that what came in between may be missing from the first.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// A plan that ends after this many seconds, or as many requests as they have.
fn plan(numbers: Numbers, seconds: u64, is_counted: bool) -> Plan {
    let (count, length) = (numbers.rate * seconds, format!("{seconds}s"));
    let flags = PlanPatch {
        connections: Some(RawValue::new("-c", "8")),
        threads: Some(RawValue::new("-t", "2")),
        rate: Some(RawValue::new("--rate", numbers.rate.to_string())),
        duration: (!is_counted).then(|| RawValue::new("-d", length)),
        iterations: is_counted.then(|| RawValue::new("-n", count.to_string())),
        no_preflight: Switch::on("--no-preflight"),
        // All requests take the same time: histograms do not fill up during the run, as far as they can.
        precise: Switch::on("--precise"),
        default_seed: 7,
        parts: PARTS,
        ..PlanPatch::default()
    };
    let command =
        Command { plan: Some(PlanSource::File("plan.yaml".to_owned())), environment: Vec::new(), flags };
    let mut plan = match command.resolve(&OneFile(PLAN)) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}", refused.problems.iter().collect::<Vec<_>>()),
    };
    plan.supplies =
        vec![BodySupply { records: RECORDS, bodies: Bodies::Fresh(Arc::new(numbers)), stock: Arc::from([]) }];
    plan
}

#[test]
fn the_second_half_of_millions_of_records_takes_no_more_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let addresses: Vec<Arc<[TargetAddress]>> = vec![vec![server.into()].into()];
    // Before the run, so that it does not count.
    let mut seen = Vec::with_capacity(2 * SECONDS as usize);
    let numbers = Numbers { rate: RATE, ..Numbers::default() };
    let told = Arc::clone(&numbers.told);
    let plan = plan(numbers, SECONDS, false);
    let mut look = |_: Progress<'_>| {
        seen.push(in_use());
        told.fetch_add(1, Ordering::Relaxed);
    };
    let record = run(&plan, &Backends::of(OpenCanned), &addresses, &Control::default(), &mut look)
        .expect("the run ends");
    assert_eq!(record.accounting.check(), Ok(()));
    assert_eq!(record.accounting.ok * u64::from(RECORDS), 300_000_000, "{:?}", record.accounting);
    assert_eq!(record.workers.iter().map(|worker| worker.bodies).sum::<u64>(), record.accounting.ok);
    assert!(seen.len() as u64 >= SECONDS, "{seen:?}");
    // In the last seconds workers may already be writing their reports.
    let (first, second) = seen[..(SECONDS - AHEAD - 2) as usize].split_at(SECONDS as usize / 2);
    let most = |seen: &[usize]| seen.iter().copied().max().expect("there are some");
    let allowed = SPARE + second.len() * SECOND;
    assert!(most(second) <= most(first) + allowed, "{} bytes, then {}: {seen:?}", most(first), most(second));
}

/// A run of days ends with as much memory as it had after an hour, but for its bounded report; so does one of
/// which it is not known before how long it will take.
#[test]
fn hours_take_no_more_memory_than_the_first() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let hours = std::env::var("PLIMSOLL_MEMORY_HOURS").map_or(HOURS, |hours| hours.parse().expect("hours"));
    let days = hours * 3_600;
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let addresses: Vec<Arc<[TargetAddress]>> = vec![vec![server.into()].into()];
    for is_counted in [false, true] {
        let mut seen = Vec::with_capacity(2 * days as usize);
        let numbers = Numbers { rate: SLOW_RATE, ..Numbers::default() };
        let told = Arc::clone(&numbers.told);
        let plan = plan(numbers, days, is_counted);
        let mut look = |_: Progress<'_>| {
            seen.push(in_use());
            told.fetch_add(1, Ordering::Relaxed);
        };
        let record = run(&plan, &Backends::of(OpenCanned), &addresses, &Control::default(), &mut look)
            .expect("the run ends");
        assert_eq!(record.accounting.check(), Ok(()));
        assert_eq!(record.accounting.ok, SLOW_RATE * days, "{:?}", record.accounting);
        let (mut ok, mut length) = (0, Nanos::ZERO);
        for interval in &record.intervals {
            (ok, length) = (ok + interval.ok, length + interval.length);
        }
        assert_eq!(ok, record.accounting.ok);
        assert!(length.0.abs_diff(Nanos::from_secs(days).0) < Nanos::from_secs(1).0, "{length:?}");
        assert!(record.intervals.len() <= 3_601, "{}", record.intervals.len());
        let most = |seen: &[usize]| seen.iter().copied().max().expect("there are some");
        let told_of = seen.len() - (AHEAD + 2) as usize;
        assert!(told_of as u64 >= days - AHEAD - 2, "{told_of}");
        let (hour, rest) = seen[..told_of].split_at(3_600);
        assert!(most(rest) <= most(hour) + OF_DAYS, "{} bytes, then {}", most(hour), most(rest));
        // The second half adds only intervals, and half as many.
        let (half, last) = seen[..told_of].split_at(told_of / 2);
        assert!(most(last) <= most(half) + OF_DAYS / 2, "{} bytes, then {}", most(half), most(last));
    }
}
