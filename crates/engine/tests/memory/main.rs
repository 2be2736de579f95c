//! The memory of a whole run does not grow with what is sent: the bytes that all of its threads have in use
//! while it goes on in virtual time.

#[path = "../allocations/canned.rs"]
mod canned;

use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use canned::{Canned, OneFile};
use plimsoll_driver::{Endpoint, Open, SystemError};
use plimsoll_engine::{Control, Progress, Site, run};
use plimsoll_plan::{Command, Given, Plan, PlanPatch, Switch};
use plimsoll_scenario::{Bodies, BodyMaker, BodySource, Supply};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Records of a batch, batches of a second, and seconds: a billion records.
const RECORDS: u32 = 1_000;
const RATE: u64 = 10_000;
const SECONDS: u64 = 100;

/// Seconds by which workers may be ahead of what was told of them: they do not measure how many messages of
/// theirs wait to be read.
const AHEAD: u64 = 3;
/// Attempts to go on: seconds, where milliseconds are enough.
const ATTEMPTS: usize = 10_000_000;

/// What may come and go.
const SPARE: usize = 100_000;
/// What a second of the run may leave behind: its line of the report. It has 10,000 batches.
const SECOND: usize = 1_000;

const PLAN: &str = "
targets: {a: http://sim.test}
scenarios: [{steps: [{post: /write, batch: {kind: logs}}]}]
";

/// Bodies that cost next to nothing to make.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// Seconds of the run that were told.
    told: Arc<AtomicU64>,
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
        let is_heard = || number / RATE <= self.told.load(Ordering::Relaxed) + AHEAD;
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

    /// Which is what those are called whose time is virtual.
    fn name(&self) -> &'static str {
        "simulated"
    }
}

fn in_use() -> usize {
    let stats = MEMORY.stats();
    // Read one after another, so that what came in between may be missing from the first.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn plan(numbers: Numbers) -> Plan {
    let flags = PlanPatch {
        connections: Some(Given::new("-c", "8")),
        threads: Some(Given::new("-t", "2")),
        rate: Some(Given::new("--rate", RATE.to_string())),
        duration: Some(Given::new("-d", format!("{SECONDS}s"))),
        no_preflight: Switch::on("--no-preflight"),
        // All requests take the same time: histograms do not fill up during the run, as far as they can.
        precise: Switch::on("--precise"),
        default_seed: 7,
        ..PlanPatch::default()
    };
    let command = Command { plan: Some("plan.yaml".to_owned()), environment: Vec::new(), flags };
    let mut plan = match command.resolve(&OneFile(PLAN)) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}", refused.problems.iter().collect::<Vec<_>>()),
    };
    plan.supplies =
        vec![Supply { records: RECORDS, bodies: Bodies::Fresh(Arc::new(numbers)), stock: Arc::from([]) }];
    plan
}

#[test]
fn a_billion_records_take_no_more_memory_than_half_a_billion() {
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let addresses: Vec<Arc<[Site]>> = vec![vec![server.into()].into()];
    // Before the run, so that it does not count.
    let mut seen = Vec::with_capacity(2 * SECONDS as usize);
    let numbers = Numbers::default();
    let told = Arc::clone(&numbers.told);
    let plan = plan(numbers);
    let mut look = |_: Progress<'_>| {
        seen.push(in_use());
        told.fetch_add(1, Ordering::Relaxed);
    };
    let record = run(&plan, &OpenCanned, &addresses, &Control::default(), &mut look).expect("the run ends");
    assert_eq!(record.accounting.check(), Ok(()));
    assert_eq!(record.accounting.ok * u64::from(RECORDS), 1_000_000_000, "{:?}", record.accounting);
    assert_eq!(record.workers.iter().map(|worker| worker.bodies).sum::<u64>(), record.accounting.ok);
    assert!(seen.len() as u64 >= SECONDS, "{seen:?}");
    // In the last seconds workers may already write their reports.
    let (first, second) = seen[..(SECONDS - AHEAD - 2) as usize].split_at(SECONDS as usize / 2);
    let most = |seen: &[usize]| seen.iter().copied().max().expect("there are some");
    let allowed = SPARE + second.len() * SECOND;
    assert!(most(second) <= most(first) + allowed, "{} bytes, then {}: {seen:?}", most(first), most(second));
}
