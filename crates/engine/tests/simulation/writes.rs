//! Requests that may have changed something: all of them are handed over whole, whatever their outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::Outcome;
use plimsoll_engine::{Backends, Control, TargetAddress, run_logged};
use plimsoll_metrics::{FailedExchange, Log, LogBatch, LogOptions, RunRecord};
use plimsoll_plan::Plan;
use plimsoll_testkit::{Answer, Behaviour, Faults, Law, SimOpen, SimOptions, Truth};

use super::plans::{good, plan};
use super::{MS, server, world};

/// Carries out a plan; returns the exchanges, and the requests that the server saw.
fn written(plan: &Plan, options: SimOptions) -> (RunRecord, Vec<FailedExchange>, Vec<Truth>) {
    let open = SimOpen::new(options);
    let addresses: Vec<Arc<[TargetAddress]>> =
        plan.targets.iter().map(|_| vec![server().into()].into()).collect();
    let options = LogOptions {
        share: 0.0,
        failed: 0,
        good_too: false,
        writes: true,
        streams: false,
        longest: usize::MAX,
        seed: 1,
    };
    let (log, receive) = Log::new(options);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        for batch in receive {
            match batch {
                LogBatch::Writes(writes) => all.extend(writes),
                other => panic!("nothing else was asked for: {other:?}"),
            }
        }
        all
    });
    let record =
        run_logged(plan, &Backends::of(open.clone()), &addresses, &Control::default(), &log, &mut |_| {})
            .expect("it ends");
    drop(log);
    (record, reader.join().expect("it reads"), open.truth().entries())
}

/// Requests of a kind by the number in their body.
fn numbered(texts: impl Iterator<Item = Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for text in texts {
        let start = text.windows(3).position(|part| part == b"<n:").expect("a number in it");
        let rest = &text[start..];
        let end = rest.iter().position(|byte| *byte == b'>').expect("its end");
        let number = String::from_utf8_lossy(&rest[..end]).into_owned();
        assert!(all.insert(number.clone(), text).is_none(), "{number} twice");
    }
    all
}

#[test]
fn every_write_is_handed_over_with_its_fate() {
    let faults = Faults {
        statuses: vec![(503, 0.05), (404, 0.05)],
        drop_reply: 0.05,
        reset: 0.05,
        close_before_reply: 0.05,
        truncated_body: 0.05,
        ..Faults::default()
    };
    let behaviour = Behaviour { faults, service: Law::Constant(MS), ..good() };
    let rest = "scenarios:
  - steps: [{post: /a, body: '<n:${sequence}>'}]
  - steps: [{get: '/b?n=${sequence}'}]
  - steps:
      - post: /long
        headers: {x-long: '${random_string(70000)}'}
        body: '<n:${sequence}>${random_string(70000)}'
";
    for settings in [
        "iterations: 600, connections: 5, timeout: 20ms",
        "rate: 1000, iterations: 600, threads: 3, connections: 40, timeout: 20ms",
        "rate: 1000, iterations: 600, connections: 40, timeout: 20ms, http2: true",
        "duration: 300ms, connections: 7, timeout: 1s, drain: 0s",
    ] {
        let long = settings.contains("http2");
        // HTTP/2 allows no header of that size.
        let rest = if long { rest.replace("70000)}'}", "700)}'}") } else { rest.to_owned() };
        let plan = plan(settings, &rest);
        let options = SimOptions { keep_requests: true, ..world(behaviour.clone()) };
        let (record, exchanges, truth) = written(&plan, options);
        let posted = |truth: &&Truth| {
            !truth.request.starts_with(b"GET") && !truth.request.starts_with(b":method: GET")
        };
        let seen = numbered(truth.iter().filter(posted).map(|truth| truth.request.clone()));
        let told = numbered(exchanges.iter().map(|exchange| exchange.request.body.clone()));
        let unknown: Vec<&String> = seen.keys().filter(|number| !told.contains_key(*number)).collect();
        assert!(unknown.is_empty(), "{settings}: {unknown:?}");
        // Requests that never left were not seen either.
        assert!(told.len() - seen.len() <= record.accounting.undelivered as usize, "{settings}");
        assert!(seen.len() > 100, "{settings}");
        for exchange in &exchanges {
            let whole = exchange.request.body.len();
            assert_eq!((exchange.request.cut, !(100..=70_000).contains(&whole)), (0, true), "{settings}");
            match (exchange.entry.outcome, exchange.entry.status) {
                (Outcome::Ok, 200) => assert_eq!(exchange.response.body, b"{\"id\": 5}"),
                (Outcome::Failed(_), 0 | 404 | 503) | (Outcome::TimedOut, 0) => {}
                other => panic!("{settings}: {other:?}"),
            }
        }
        let ok = exchanges.iter().filter(|exchange| exchange.entry.outcome == Outcome::Ok).count();
        let by_step: u64 = [0, 2].iter().map(|step| record.steps[*step].ok).sum();
        assert_eq!(ok as u64, by_step, "{settings}");
    }
}

#[test]
fn what_is_under_way_at_the_end_is_told_as_well() {
    let slow = Behaviour { service: Law::Constant(MS * 1_000), answer: Answer::default(), ..good() };
    let plan = plan(
        "duration: 50ms, connections: 4, drain: 10ms",
        "scenarios: [{steps: [{put: /a, body: '<n:${sequence}>'}]}]",
    );
    let (record, exchanges, truth) = written(&plan, SimOptions { keep_requests: true, ..world(slow) });
    assert_eq!((record.accounting.in_flight_at_stop, exchanges.len(), truth.len()), (4, 4, 4));
    assert!(exchanges.iter().all(|exchange| exchange.entry.outcome == Outcome::TimedOut));
    let told = numbered(exchanges.iter().map(|exchange| exchange.request.body.clone()));
    assert_eq!(told.len(), 4);
}
