//! The whole engine in virtual time: simulated servers with known behaviour and seeded faults, against which
//! the accounts, the intended times and the measured distributions are checked exactly.

mod attribution;
mod checksum;
mod contact;
mod crews;
mod dynamic_origins;
mod ends;
mod examples;
mod failures;
mod families;
mod growing;
mod http1;
mod http2;
mod line_ends;
mod misbehaving;
mod names;
mod overload;
mod owed;
mod own_share;
mod phases;
mod plans;
mod polling;
mod protocols;
mod request_pace;
mod resending;
mod scenarios;
mod sending;
mod shards;
mod situations;
mod staying;
mod steering;
mod supply;
mod throughput;
mod tokens;
mod unanswered;
mod writes;

use std::sync::Arc;

use plimsoll_core::{Nanos, Random};
use plimsoll_document::{RawValue, Setting, SettingKind};
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, Progress, TargetAddress, run};
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Disk, Plan, PlanPatch, Switch};
use plimsoll_testkit::{Behaviour, SimOpen, SimOptions, TruthLog};

const MS: Nanos = Nanos::from_millis(1);

fn server() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 80).into())
}

/// A plan as its flags would make it, against one URL.
fn plan(flags: &[(&'static str, &str)]) -> Plan {
    resolved(patch(flags))
}

fn resolved(patch: PlanPatch) -> Plan {
    Plan::resolve(patch, &Disk).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn patch(flags: &[(&'static str, &str)]) -> PlanPatch {
    let mut patch = PlanPatch {
        urls: vec![RawValue::new("URL", "http://sim.test/")],
        default_seed: 7,
        no_preflight: Switch::on("--no-preflight"),
        ..PlanPatch::default()
    };
    for &(flag, value) in flags {
        if flag == "--url" {
            patch.urls.push(RawValue::new(flag, value));
            continue;
        }
        let setting = Setting::by_flag(flag).unwrap_or_else(|| panic!("{flag} is no flag"));
        let text = if setting.kind == SettingKind::Switch { "true" } else { value };
        patch.push(setting, RawValue::new(flag, text));
    }
    patch
}

fn world(behaviour: Behaviour) -> SimOptions {
    SimOptions { servers: vec![(server(), behaviour)], ..SimOptions::default() }
}

/// Carries out the plan; the accounts balance, and the servers have received exactly the delivered requests.
fn simulate(plan: &Plan, options: SimOptions) -> (RunRecord, TruthLog) {
    let (record, truth) = carry_out(plan, options);
    assert_eq!(truth.len() as u64, delivered(&record), "{:?}", record.accounting);
    (record, truth)
}

/// Requests of which the report says that at least their first byte was handed to the target.
fn delivered(record: &RunRecord) -> u64 {
    let a = &record.accounting;
    a.started - a.undelivered + a.unmeasured + a.redirects_followed + a.polls + a.resent
}

/// Carries out the plan; the accounts balance in every run.
fn carry_out(plan: &Plan, options: SimOptions) -> (RunRecord, TruthLog) {
    carry_out_steered(plan, options, &Control::default())
}

/// Carries out the plan under a control that something in the world may use; the accounts balance.
fn carry_out_steered(plan: &Plan, options: SimOptions, control: &Control) -> (RunRecord, TruthLog) {
    let addresses: Vec<Arc<[TargetAddress]>> =
        plan.targets.iter().map(|_| vec![server().into()].into()).collect();
    carry_out_at(plan, options, &addresses, control)
}

/// Carries out the plan at other addresses than that of [`server`].
fn carry_out_at(
    plan: &Plan,
    options: SimOptions,
    addresses: &[Arc<[TargetAddress]>],
    control: &Control,
) -> (RunRecord, TruthLog) {
    let open = SimOpen::new(options);
    let mut growing = growing::begin(plan);
    let mut grow = |progress: Progress<'_>| growing.add(progress.interval, None);
    let record = run(plan, &Backends::of(open.clone()), addresses, &control.clone().in_detail(), &mut grow)
        .expect("the run ends");
    growing.set_changes(record.rate_changes.clone());
    growing::assert_same(&growing, &record);
    assert_eq!(record.accounting.check(), Ok(()));
    assert_eq!(record.total.start_lag.count(), record.accounting.started);
    assert_intervals_add_up(&record);
    (record, open.truth())
}

/// Asserts that the intervals without the warm-up add up to the accounts.
fn assert_intervals_add_up(record: &RunRecord) {
    let measured = || record.intervals.iter().filter(|interval| !interval.warmup);
    let sums = [
        measured().map(|interval| interval.started).sum::<u64>(),
        measured().map(|interval| interval.ok).sum(),
        measured().map(|interval| interval.failed).sum(),
        measured().map(|interval| interval.timed_out).sum(),
    ];
    let a = &record.accounting;
    assert_eq!(sums, [a.started, a.ok, a.failed, a.timed_out], "{:?}", record.intervals);
    assert_slices_add_up(record);
}

/// Asserts that the slices together hold the counts of the histograms, and that they cover the measured part.
fn assert_slices_add_up(record: &RunRecord) {
    let values =
        |histogram: &Histogram| histogram.buckets().map(|b| (b.highest, b.count)).collect::<Vec<_>>();
    let (mut response, mut service) = (Delta::default(), Delta::default());
    for slice in &record.slices {
        response.merge(&slice.total.response_time);
        service.merge(&slice.total.service_time);
    }
    assert_eq!(response.values().collect::<Vec<_>>(), values(&record.total.response_time));
    assert_eq!(service.values().collect::<Vec<_>>(), values(&record.total.service_time));
    let measured = record.intervals.iter().filter(|interval| !interval.warmup && !interval.drain);
    let length = |lengths: &mut dyn Iterator<Item = Nanos>| lengths.fold(Nanos::ZERO, |sum, l| sum + l);
    let sliced = length(&mut record.slices.iter().map(|slice| slice.length));
    assert_eq!(sliced, length(&mut measured.map(|interval| interval.length)));
    assert!(record.slices.len() <= 30, "{}", record.slices.len());
}

/// Carries out the plan with these flags in a world that a seed made: a panic names the seed.
fn carry_out_or_name(
    seed: u64,
    flags: &[(&'static str, &str)],
    options: SimOptions,
) -> (RunRecord, TruthLog) {
    let plan = plan(flags);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| carry_out(&plan, options)));
    outcome.unwrap_or_else(|_| panic!("seed {seed}: {flags:?}"))
}

/// One of the kinds of load, drawn: counted with `iterations`, timed after a warm-up, or open.
fn some_load<'a>(random: &mut Random, iterations: &'a str) -> Vec<(&'static str, &'a str)> {
    match random.below(4) {
        0 => vec![("-n", iterations)],
        1 => vec![("-d", "300ms"), ("--warmup", "100ms")],
        2 => vec![("--rate", "2000"), ("-d", "300ms"), ("--overload", "drop")],
        _ => vec![("--rate", "3000"), ("-d", "300ms"), ("--arrival", "poisson")],
    }
}

fn percentile(record: &RunRecord, p: f64) -> Nanos {
    Nanos(record.total.response_time.percentile(p).expect("there are responses"))
}

#[track_caller]
fn assert_close(measured: Nanos, truth: Nanos, tolerance: f64) {
    let difference = (measured.0 as f64 - truth.0 as f64).abs();
    assert!(difference <= truth.0 as f64 * tolerance, "{measured:?} is not {truth:?} within {tolerance}");
}
