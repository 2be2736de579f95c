//! A request allocates nothing in the steady state, as long as no script has a hand in it: a worker that
//! carries out twice as many iterations allocates as often.
//!
//! The worker runs on the thread of the test, where its allocations are counted, against a [backend](canned)
//! that allocates nothing per request itself. So only the worker's allocations are counted.

mod canned;

use std::sync::Arc;

use allocation_counter::measure;
use plimsoll_core::{ErrorClass, ErrorRow, Shard};
use plimsoll_document::RawValue;
use plimsoll_driver::{Backend as _, Endpoint};
use plimsoll_engine::worker::{Resources, Worker};
use plimsoll_engine::{Control, TargetAddress};
use plimsoll_metrics::Accounting;
use plimsoll_plan::{Command, Plan, PlanPatch, PlanSource, Switch};
use plimsoll_scenario::{Feeds, Judge, JudgeSpec, Judgement, ReactionSpec, Received, ResponseHandler, Scope};

use canned::Canned;

/// Enough for every buffer to have its size, and so short that no second begins: snapshots may allocate.
const ITERATIONS: u64 = 3_000;

/// Allocations by which two runs may differ: a buffer that grows late.
const TOLERANCE: u64 = 4;

/// Two variables, an extraction and a check, as `bench/plans/scenario.yaml` has them.
const SCENARIO: &str = "
targets: {a: http://sim.test}
variables: {user: 'u-${random_int(1,1000)}', basket: ''}
scenarios:
  - steps:
      - get: /users/${user}
        extract: {basket: {header: x-token}}
      - post: /baskets/${basket}
        headers: {X-User: '${user}'}
        json: {user: '${user}', number: '${sequence}'}
        expect: {json: {/id: '4711'}}
      - get: /baskets/${basket}?user=${user}
";

/// A scenario with more costly features: data, every place of an extraction, conditions, cookies.
const RICH: &str = "
targets: {a: http://sim.test}
variables: {basket: '', id: '', whole: '', found: ''}
data: {number: {range: [1, 100]}}
scenarios:
  - cookies: true
    steps:
      - get: /users/${number}
        extract:
          basket: {header: x-token}
          id: {json: /id}
          whole: {body: true}
          found: {regex: '\"id\":\"([0-9]+)\"'}
      - if: ${id} == 4711
        then:
          - post: /baskets/${basket}
            headers: {X-Hash: '${hash(sha256, ${id})}', X-Id: '${uuid}'}
            body: ${whole}
            expect:
              status: 2xx
              headers: {x-token: {starts: to}}
              body: [id, {contains: error, not: true}]
        else:
          - get: /nowhere
      - get: /baskets/${found}
";

const STATIC: &str = "
targets: {a: http://sim.test}
scenarios:
  - steps:
      - get: /
";

/// The flags of a load of `iterations`.
type Load = fn(&mut PlanPatch, iterations: u64);

fn closed(patch: &mut PlanPatch, iterations: u64) {
    patch.iterations = Some(RawValue::new("-n", iterations.to_string()));
}

fn open(patch: &mut PlanPatch, iterations: u64) {
    patch.rate = Some(RawValue::new("--rate", "20000"));
    patch.duration = Some(RawValue::new("-d", format!("{}us", iterations * 50)));
}

fn plan(text: &str, http2: bool, load: Load, iterations: u64) -> Plan {
    let mut flags = PlanPatch {
        connections: Some(RawValue::new("-c", "8")),
        no_preflight: Switch::on("--no-preflight"),
        default_seed: 7,
        ..PlanPatch::default()
    };
    load(&mut flags, iterations);
    if http2 {
        flags.http2 = Switch::on("--http2");
        flags.max_concurrent_streams.push(RawValue::new("-m", "4"));
    }
    let command =
        Command { plan: Some(PlanSource::File("plan.yaml".to_owned())), environment: Vec::new(), flags };
    match command.resolve(&canned::OneFile(text)) {
        Ok(resolved) => resolved.plan,
        Err(refused) => panic!("{:?}", refused.problems.iter().collect::<Vec<_>>()),
    }
}

/// Carries out `plan`; how often the worker allocated, and how many requests were answered well.
fn carry_out(plan: &Plan) -> (u64, u64) {
    let (allocations, accounting) = count_allocations(plan);
    assert_eq!((accounting.failed, accounting.timed_out), (0, 0));
    (allocations, accounting.ok)
}

/// Carries out `plan`; how often the worker allocated, and the accounts of its requests.
fn count_allocations(plan: &Plan) -> (u64, Accounting) {
    let server = Endpoint::Tcp(([127, 0, 0, 1], 80).into());
    let addresses: Vec<Arc<[TargetAddress]>> = vec![vec![server.into()].into()];
    let feeds = Feeds::open_all(&plan.feeds, &[Shard::WHOLE], plan.seed).expect("the data can be opened");
    let feeds = feeds.into_iter().next().expect("one worker's share");
    let resources = Resources { feeds, ..Resources::default() };
    let shard = Shard { index: 0, of: 1 };
    let io = Canned::new();
    let start = io.now();
    let mut worker = Worker::new(io, plan, &addresses, shard, Control::default(), 0, resources);
    worker.prepare();
    let start = start.max(worker.now());
    let mut report = None;
    let allocations = measure(|| report = Some(worker.run(start, drop)));
    let report = report.expect("the worker reports");
    (allocations.count_total, report.accounting)
}

/// Twice the iterations are twice the requests and no more allocations.
#[track_caller]
fn assert_steady(name: &str, text: &str, requests_per_iteration: u64) {
    for http2 in [false, true] {
        for (model, load) in [("closed", closed as Load), ("open", open)] {
            let [(some, some_ok), (twice, twice_ok)] = [ITERATIONS, 2 * ITERATIONS]
                .map(|iterations| carry_out(&plan(text, http2, load, iterations)));
            let case = format!("{name}, {model}, HTTP/{}", if http2 { "2" } else { "1.1" });
            let more = twice_ok - some_ok;
            // An open run ends while a few iterations are in progress.
            let expected = ITERATIONS * requests_per_iteration;
            assert!(more.abs_diff(expected) <= 100, "{case}: {some_ok} and {twice_ok} requests");
            assert!(
                twice <= some + TOLERANCE,
                "{case}: {} allocations more for {more} requests more ({some} and {twice})",
                twice - some
            );
        }
    }
}

#[test]
fn a_static_request() {
    assert_steady("static", STATIC, 1);
}

#[test]
fn three_steps_with_variables_extraction_and_check() {
    assert_steady("three steps", SCENARIO, 3);
}

#[test]
fn data_conditions_cookies_and_every_extraction() {
    assert_steady("rich", RICH, 3);
}

/// A judge that no answer is good for.
#[derive(Debug)]
struct AlwaysBusy;

impl Judge for AlwaysBusy {
    fn judge(&self, _: &Received<'_>) -> Judgement {
        static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };
        Judgement::Failed(ErrorClass::Other(&BUSY))
    }

    fn needs_id(&self) -> bool {
        false
    }

    fn needs_body(&self) -> bool {
        false
    }

    fn describe(&self, _: &Received<'_>) -> String {
        "busy".to_owned()
    }
}

/// The first failure of a class that an extension has takes memory, and no other.
#[test]
fn failures_of_an_extension() {
    let failing = |iterations: u64| {
        let mut plan = plan(STATIC, false, closed, iterations);
        let judge = JudgeSpec { of: "busy".into(), judge: Arc::new(AlwaysBusy), pending: None };
        let spec = ReactionSpec { judge: Some(judge), ..ReactionSpec::default() };
        plan.steps[0].handler = ResponseHandler::compile(&spec, &Scope::new(&[])).expect("a handler");
        let (allocations, accounting) = count_allocations(&plan);
        assert_eq!((accounting.failed, accounting.ok), (iterations, 0));
        allocations
    };
    let [some, twice] = [ITERATIONS, 2 * ITERATIONS].map(failing);
    assert!(twice <= some + TOLERANCE, "{some} and {twice}");
}

/// Bytes that a worker with so many connections has in use at most, all of which were used.
fn most_bytes(http2: bool, connections: u64) -> i64 {
    let mut plan = plan(STATIC, http2, closed, connections * 8);
    plan.connections.max = connections as u32;
    plan.connections.initial = plan.connections.max;
    let mut answered = 0;
    let allocations = measure(|| answered = carry_out(&plan).1);
    assert_eq!(answered, connections * 8);
    allocations.bytes_max as i64
}

/// By 1,024 connections more, with the backend of this test, and 4 streams on one of HTTP/2: 644 and 2,871
/// bytes. Powers of two, as lists double. Of those of HTTP/2 88 count heads and content.
#[test]
fn a_connection_takes_little_memory() {
    for (http2, limit) in [(false, 708), (true, 2_871)] {
        let [some, twice] = [1_024, 2_048].map(|connections| most_bytes(http2, connections));
        let each = (twice - some) / 1_024;
        assert!(each <= limit, "HTTP/{}: {each} bytes", if http2 { "2" } else { "1.1" });
    }
}

/// The measure measures: a text per request would be seen.
#[test]
fn an_allocation_is_counted() {
    let mut kept = Vec::with_capacity(4);
    let info = measure(|| kept.extend((0..3).map(|number: u32| number.to_string())));
    assert_eq!((info.count_total, kept.len()), (3, 3));
}
