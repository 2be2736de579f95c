//! The first failed request of each class and step, in words.

use std::sync::Arc;

use plimsoll_core::{ErrorClass, ErrorRow};
use plimsoll_metrics::{ErrorExample, RunRecord, TIMED_OUT};
use plimsoll_scenario::{Judge, JudgeSpec, Judgement, ReactionSpec, Received, ResponseHandler, Scope};
use plimsoll_testkit::{Answer, Behaviour, Faults, Framing, SimOptions};

use super::plans::{answering, plan};
use super::{MS, simulate, world};

const BODY: &str = "no such item\u{1b}[2J\nat line 7";

fn refusing(framing: Framing) -> Behaviour {
    answering(Answer { status: 404, framing, ..Answer::with_body(BODY) })
}

fn example<'r>(record: &'r RunRecord, step: usize, class: &str) -> &'r ErrorExample {
    let all = &record.steps[step].error_examples;
    all.get(class).unwrap_or_else(|| panic!("step {step} has no example of {class}: {all:?}"))
}

/// A judge that fails every answer with a class of an extension.
#[derive(Debug)]
struct AlwaysFailing(&'static ErrorRow);

impl Judge for AlwaysFailing {
    fn judge(&self, _: &Received<'_>) -> Judgement {
        Judgement::Failed(ErrorClass::Other(self.0))
    }

    fn needs_id(&self) -> bool {
        false
    }

    fn describe(&self, _: &Received<'_>) -> String {
        format!("said {}", self.0.name)
    }
}

#[test]
fn classes_of_an_extension_are_counted_and_told_by_step() {
    static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };
    static LOST: ErrorRow = ErrorRow { name: "sample_lost", is_answer: false, is_of_server: false };
    let mut plan = plan(
        "connections: 4, iterations: 30",
        "scenarios: [{steps: [{get: /a, on_failure: continue}, {get: /b, on_failure: continue}, {get: /c}]}]",
    );
    for (step, row) in [(0, &BUSY), (1, &LOST)] {
        let judge = JudgeSpec { of: row.name.into(), judge: Arc::new(AlwaysFailing(row)), pending: None };
        let spec = ReactionSpec { judge: Some(judge), ..ReactionSpec::default() };
        plan.steps[step].handler = ResponseHandler::compile(&spec, &Scope::new(&[])).expect("a handler");
    }
    let (record, _) = simulate(&plan, world(answering(Answer::with_body("hello"))));
    for (step, row) in [(0, &BUSY), (1, &LOST)] {
        assert_eq!((record.steps[step].failed, record.steps[step].errors[ErrorClass::Other(row)]), (30, 30));
        let first = example(&record, step, row.name);
        assert_eq!(first.reason, format!("said {}", row.name));
        assert_eq!(record.steps[step].error_examples.len(), 1);
    }
    assert_eq!((record.steps[2].ok, record.steps[2].failed), (30, 0));
    let all = record.total.errors.iter().map(|(class, count)| (class.name(), count));
    assert!(all.eq([("sample_busy", 30), ("sample_lost", 30)]), "{:?}", record.total.errors);
}

#[test]
fn a_status_is_told_with_the_first_line_of_its_body() {
    let steps = "scenarios: [{steps: [{get: /a}]}, {steps: [{get: /b, expect: {status: 200}}]}, \
                 {steps: [{get: /c, expect: {status: 404, body: found}}]}]";
    for protocol in ["", ", http2: true"] {
        for framing in [Framing::ContentLength, Framing::Chunked(3)] {
            for segment_bytes in [usize::MAX, 7] {
                let settings = format!("connections: 1, iterations: 6{protocol}");
                let options = SimOptions { segment_bytes, segment_gap: MS, ..world(refusing(framing)) };
                let (record, _) = simulate(&plan(&settings, steps), options);
                let named = format!("{protocol} {framing:?} {segment_bytes}");
                for (step, class) in [(0, "status_4xx"), (1, "status_4xx"), (2, "check")] {
                    let first = example(&record, step, class);
                    assert_eq!((first.status, first.body.as_str()), (404, "no such item [2J"), "{named}");
                    assert_eq!((first.worker, first.connection), (0, 1), "{named}");
                    assert_eq!(first.address, "127.0.0.1:80", "{named}");
                    assert_eq!(record.steps[step].error_examples.len(), 1, "{named}");
                }
                let [first, second] = [0, 1].map(|step| example(&record, step, "status_4xx"));
                assert!(first.at > MS && second.at > first.at + MS, "{named}: {first:?} {second:?}");
                assert_eq!(first.reason, "status 404, expected below 400: no such item [2J", "{named}");
                assert_eq!(example(&record, 2, "check").reason, "body does not contain `found`", "{named}");
                let example = &record.error_examples["status_4xx"];
                assert!(example.contains("no such item [2J"), "{named}: {example}");
            }
        }
    }
}

#[test]
fn what_failed_without_a_response_is_told_by_step() {
    let faults = Faults { drop_reply: 0.2, reset: 0.2, close_before_reply: 0.2, ..Faults::default() };
    let unwell = Behaviour { faults, ..answering(Answer::default()) };
    let settings = "connections: 3, iterations: 200, timeout: 50ms, warmup: 100ms";
    let scenarios = "scenarios: [{steps: [{get: /a}]}, {steps: [{get: /b}]}]";
    let (record, _) = simulate(&plan(settings, scenarios), world(unwell));
    for step in 0..2 {
        assert_eq!(example(&record, step, TIMED_OUT).reason, "no whole response within 50ms");
        assert!(example(&record, step, "reset").reason.contains("reset by peer"));
        let closed = example(&record, step, "closed_before_response");
        assert_eq!(closed.reason, "the server closed before its response");
        for example in record.steps[step].error_examples.values() {
            assert_eq!((example.status, example.body.as_str()), (0, ""), "{example:?}");
            assert!(example.at > record.warmup && example.connection > 0, "{example:?}");
        }
    }
    assert_eq!(record.total.error_examples.len(), 3, "the first of each class: {:?}", record.total);
}
