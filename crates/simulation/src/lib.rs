//! Tables of simulated runs for protocols: shapes × behaviours × loads. Each run of the engine is compared
//! with the servers' own log.
//!
//! A protocol is tested by a list of [`Shape`]s: [`agreement`] runs each under every behaviour and load, and
//! [`times`] compares measured times with those of the servers.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_document::{Files, KeyLogFile};
use plimsoll_driver::Endpoint;
use plimsoll_engine::{Backends, Control, TargetAddress, run};
use plimsoll_metrics::RunRecord;
use plimsoll_plan::{Command, Plan, PlanParts, PlanPatch, PlanSource, Switch};
use plimsoll_testkit::{
    Action, Behaviour, Concurrency, Faults, Law, Pause, SimOpen, SimOptions, SlowAccept, Speaks, Truth,
    TruthLog,
};

const MS: Nanos = Nanos::from_millis(1);

/// A protocol, and the steps of an iteration in it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name in complaints.
    pub name: &'static str,
    /// URL of the target; its host and port are `sim.test:80`.
    pub target: &'static str,
    /// The steps, as a plan has them.
    pub steps: &'static str,
    /// Keys and protocols of plans.
    pub parts: PlanParts,
    /// The servers.
    pub speaks: fn() -> Speaks,
    /// Requests of an iteration that the server's log does not have.
    pub unlogged: u64,
}

/// A file system whose every path is this text.
#[derive(Clone, Debug)]
pub struct Only(pub String);

impl Files for Only {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn server() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 80).into())
}

fn plan(text: &str, parts: PlanParts) -> Plan {
    let flags = PlanPatch {
        default_seed: 7,
        no_preflight: Switch::on("--no-preflight"),
        parts,
        ..PlanPatch::default()
    };
    let command =
        Command { plan: Some(PlanSource::File("plan.yaml".to_owned())), flags, ..Command::default() };
    match command.resolve(&Only(text.to_owned())) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{text}\n{:?}", refused.problems),
    }
}

/// Requests of which the report says that at least their first byte was handed to the target.
fn delivered(record: &RunRecord) -> u64 {
    let a = &record.accounting;
    a.started - a.undelivered + a.unmeasured + a.redirects_followed + a.polls + a.resent
}

/// Carries out the load on servers of this behaviour, which speak the protocol of the shape.
///
/// # Panics
/// The plan is wrong, the run fails, or its accounts do not balance.
pub fn run_of(shape: &Shape, load: &str, behaviour: Behaviour) -> (RunRecord, TruthLog) {
    run_in(shape, load, behaviour, SimOptions::default())
}

fn run_in(shape: &Shape, load: &str, behaviour: Behaviour, options: SimOptions) -> (RunRecord, TruthLog) {
    let behaviour = Behaviour { speaks: Some((shape.speaks)()), ..behaviour };
    let options = SimOptions { servers: vec![(server(), behaviour)], ..options };
    let text = format!(
        "run: {{{load}, timeout: 200ms, connect_timeout: 200ms}}\ntargets: {{api: '{}'}}\n\
         scenarios: [{{steps: [{}]}}]",
        shape.target, shape.steps
    );
    let plan = plan(&text, shape.parts);
    let addresses: Vec<Arc<[TargetAddress]>> = vec![vec![server().into()].into()];
    let open = SimOpen::new(options);
    let control = Control::default().in_detail();
    let record =
        run(&plan, &Backends::of(open.clone()), &addresses, &control, &mut |_| ()).expect("the run ends");
    assert_eq!(record.accounting.check(), Ok(()));
    (record, open.truth())
}

/// The loads of the tables, as settings of a plan.
pub const LOADS: [&str; 8] = [
    "rate: 50, duration: 1s",
    "rate: 50, duration: 1s, arrival: poisson, pacing: shared",
    "rate: 150, rate_of: requests, duration: 1s",
    "stages: '500ms@20,500ms@80'",
    "rate: 50, warmup: 500ms, duration: 1s",
    "connections: 4, duration: 500ms",
    "connections: 4, iterations: 60, threads: 2",
    "rate: 50, duration: 1s, overload: drop, connections: 12",
];

/// Servers that need this time.
pub fn of(service: Law) -> Behaviour {
    Behaviour { service, ..Behaviour::default() }
}

fn failing(faults: Faults) -> Behaviour {
    Behaviour { faults, ..of(Law::Constant(MS)) }
}

/// Behaviours, each with the share of its requests that may end badly.
fn behaviours() -> Vec<(&'static str, Behaviour, f64)> {
    let none = Faults::default;
    let stands_still = |at: u64, length: Nanos| Behaviour {
        pauses: vec![Pause { at: Nanos::from_secs(1_000) + Nanos::from_millis(at), length }],
        ..of(Law::Constant(MS))
    };
    vec![
        ("constant", of(Law::Constant(MS)), 0.0),
        ("exponential", of(Law::Exponential { mean: MS * 2 }), 0.0),
        (
            "a queue",
            Behaviour { concurrency: Concurrency::SingleQueue, ..of(Law::Exponential { mean: MS }) },
            0.0,
        ),
        ("refusals", failing(Faults { statuses: vec![(503, 0.2)], ..none() }), 0.9),
        ("silence", failing(Faults { drop_reply: 0.1, ..none() }), 0.9),
        ("resets", failing(Faults { reset: 0.1, ..none() }), 0.9),
        ("closes", failing(Faults { close_before_reply: 0.1, ..none() }), 0.9),
        ("cut answers", failing(Faults { truncated_body: 0.1, ..none() }), 0.9),
        ("answers twice", failing(Faults { excess_body: 0.1, ..none() }), 0.9),
        ("garbage", failing(Faults { garbage: 0.1, ..none() }), 0.9),
        ("a close after each fifth answer", failing(Faults { close_after: Some(5), ..none() }), 0.9),
        ("refused connections", failing(Faults { refuse_connect: 0.2, ..none() }), 0.9),
        ("silent connections", failing(Faults { silent_connect: 0.1, ..none() }), 0.9),
        (
            "late accepts",
            failing(Faults { slow_accept: Some(SlowAccept { probability: 0.3, delay: MS * 20 }), ..none() }),
            0.0,
        ),
        ("a freeze", stands_still(300, MS * 100), 0.0),
        ("frozen for good", stands_still(300, Nanos::from_secs(3_600)), 1.0),
    ]
}

/// Returns the differences between a record and the servers' log.
fn compare(shape: &Shape, share: f64, record: &RunRecord, truth: &TruthLog) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let entries = truth.entries();
    let closes: u64 = match shape.unlogged {
        0 => 0,
        _ => record.steps.last().map_or(0, |step| step.ok + step.failed + step.timed_out),
    };
    let (sent, logged) = (delivered(record), entries.len() as u64);
    let accounting = &record.accounting;
    // Requests whose connection had ended, or ended meanwhile, may have been read by nobody. What became of
    // those of the warm-up is not told.
    let lost =
        accounting.failed + accounting.timed_out + accounting.in_flight_at_stop + accounting.resent_closed;
    let unknown = if share > 0.0 || shape.unlogged > 0 { accounting.unmeasured } else { 0 };
    check(logged <= sent, format!("{sent} were sent, the server has {logged}"));
    check(
        logged + closes + lost + unknown >= sent,
        format!("{sent} were sent, of which {closes} are closes, the server has {logged}"),
    );
    // A second answer to a message may be that to the next one, which has the same text; where any message
    // is an answer, a refusal is one, too.
    let answers = |entry: &Truth| match entry.action {
        Action::Reply(200) => 1,
        Action::Excess => 2,
        Action::Reply(_) if shape.steps.contains("any") => 1,
        _ => 0,
    };
    let replied = entries.iter().filter(|entry| entry.replied.is_some());
    let (answered, ok) = (replied.map(answers).sum::<u64>(), accounting.ok.saturating_sub(closes));
    check(ok <= answered, format!("{ok} are ok, the server has answered {answered}"));
    let bad = accounting.failed + accounting.timed_out;
    check(
        bad as f64 <= share * accounting.started as f64,
        format!("{bad} of {} ended badly: {:?}", accounting.started, record.error_examples),
    );
    check(share == 1.0 || accounting.ok > 20, format!("only {} are ok", accounting.ok));
    let ends = accounting.ok + bad + accounting.in_flight_at_stop;
    check(ends == accounting.started, format!("{ends} of {} have an end", accounting.started));
    wrong
}

/// Returns what differs between the record and the servers' log, in any cell of shapes × behaviours × loads ×
/// ways in which bytes arrive, and the number of cells.
pub fn agreement(shapes: &[Shape]) -> (usize, Vec<String>) {
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for shape in shapes {
        for (name, behaviour, share) in behaviours() {
            for load in LOADS {
                for (coalesce, segment_bytes, partial_write) in [(true, usize::MAX, 0.0), (false, 1, 0.3)] {
                    let options =
                        SimOptions { coalesce, segment_bytes, partial_write, ..SimOptions::default() };
                    let (record, truth) = run_in(shape, load, behaviour.clone(), options);
                    cells += 1;
                    let found = compare(shape, share, &record, &truth);
                    let cell = format!("{}, {name}, {load}, {segment_bytes}", shape.name);
                    wrong.extend(found.into_iter().map(|what| format!("{cell}: {what}")));
                }
            }
        }
    }
    (cells, wrong)
}

/// Cells of [`agreement`] for each shape.
pub const CELLS: usize = 16 * 8 * 2;

/// Asserts that measured times are those of the servers and of the network.
///
/// # Panics
/// A time is another one.
pub fn times(shapes: &[Shape]) {
    for shape in shapes {
        for load in LOADS {
            let (record, _) = run_of(shape, load, of(Law::Constant(MS)));
            let step = record.steps.iter().find(|step| step.ok > 0 && step.service_time.count() > 0);
            let step = step.expect("a step has answers");
            let truth = MS + Nanos::from_micros(100);
            let cell = format!("{}, {load}", shape.name);
            for p in [50.0, 99.0] {
                let shown = Nanos(step.service_time.percentile(p).expect("there are answers"));
                let most = truth + Nanos::from_micros(20) + Nanos(truth.0 / 100);
                assert!((truth..most).contains(&shown), "{cell}: p{p} is {shown:?}");
            }
            // In the open model a request of the first step counts from its arrival; it waits for the
            // connection of its WebSocket.
            let connect = if shape.target.starts_with("ws") { Nanos::from_micros(100) } else { Nanos::ZERO };
            let response = Nanos(step.response_time.percentile(50.0).expect("there are answers"));
            let most = truth + connect + Nanos::from_micros(120);
            assert!(response < most, "{cell}: {response:?}");
            let all = record.total.response_time.percentile(50.0).expect("there are answers");
            assert!(Nanos(all) < most, "{cell}");
        }
    }
}
