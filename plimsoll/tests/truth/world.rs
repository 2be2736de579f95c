//! Runs of the whole engine against simulated servers, in virtual time: exact, and the same every time.

use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile};
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, TargetAddress, run};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{ReasonCode, RunRecord};
use plimsoll_plan::{Command, Plan, PlanPatch, PlanSource, Switch};
use plimsoll_testkit::{Behaviour, Concurrency, Law, SimOpen, SimOptions, TruthLog, machine};

pub(crate) const MS: Nanos = Nanos::from_millis(1);
pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

/// The only file there is: the plan.
struct Only(String);

impl Files for Only {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A plan of one request per iteration, with these settings of `run`.
pub(crate) fn plan(settings: &str) -> Plan {
    plan_of_steps(settings, "[{get: /}]")
}

/// A plan with these settings of `run` and these steps.
pub(crate) fn plan_of_steps(settings: &str, steps: &str) -> Plan {
    plan_of_text(format!(
        "run: {{{settings}}}\ntargets: {{api: http://sim.test}}\nscenarios: [{{steps: {steps}}}]"
    ))
}

/// The plan of a file.
pub(crate) fn plan_of_text(text: String) -> Plan {
    let no_preflight = Switch::on("--no-preflight");
    let flags = PlanPatch { default_seed: 7, no_preflight, ..PlanPatch::default() };
    let command =
        Command { plan: Some(PlanSource::File("plan.yaml".to_owned())), flags, ..Command::default() };
    match command.resolve(&Only(text.clone())) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{text}\n{:?}", refused.problems),
    }
}

/// One server of this behaviour, a nanosecond away: measured times are those of the server.
pub(crate) fn near(behaviour: Behaviour) -> SimOptions {
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    SimOptions { latency: Nanos(1), servers: vec![(server, behaviour)], ..SimOptions::default() }
}

/// T1 of the measurement rules: any number of requests at once.
pub(crate) fn infinite(service: Law) -> Behaviour {
    Behaviour { service, ..Behaviour::default() }
}

/// T2: one first-come-first-served queue for all connections.
pub(crate) fn one_queue(service: Law) -> Behaviour {
    Behaviour { service, concurrency: Concurrency::SingleQueue, ..Behaviour::default() }
}

/// Carries out the plan. The accounts balance in every run.
pub(crate) fn simulate(plan: &Plan, options: SimOptions) -> (RunRecord, TruthLog) {
    machine::give_way();
    let open = SimOpen::new(options);
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let addresses: Vec<Arc<[TargetAddress]>> =
        plan.targets.iter().map(|_| vec![server.clone().into()].into()).collect();
    let record = run(plan, &Backends::of(open.clone()), &addresses, &Control::default(), &mut |_| {})
        .expect("the run ends");
    assert_eq!(record.accounting.check(), Ok(()));
    (record, open.truth())
}

/// A percentile in milliseconds.
pub(crate) fn ms(histogram: &Histogram, p: f64) -> f64 {
    histogram.percentile(p).expect("there are values") as f64 / 1e6
}

#[track_caller]
pub(crate) fn assert_close(what: &str, measured: f64, truth: f64, share: f64) {
    assert!((measured - truth).abs() <= share * truth, "{what}: {measured} is not {truth} ± {share} of it");
}

/// The codes of the reasons why a run is invalid.
pub(crate) fn reasons(record: &RunRecord) -> Vec<ReasonCode> {
    record.verdict.reasons.iter().map(|reason| reason.code).collect()
}
