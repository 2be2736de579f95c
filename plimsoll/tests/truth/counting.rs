//! R7 to R9: nothing is lost, nothing is rounded away, and nothing is said that the samples do not carry.

use plimsoll_core::{ErrorClass, Nanos, Random};
use plimsoll_histogram::Histogram;
use plimsoll_testkit::oracle::nearest_rank;
use plimsoll_testkit::{Action, Answer, Behaviour, Faults, Law};

use crate::truth::stage::{Needs, play};
use crate::truth::world::{MS, near, plan, simulate};

/// R7: with all faults at once, every class has the count of the target's log, and the sums are whole.
#[test]
fn r07_every_class_is_what_the_target_did() {
    let faults = Faults {
        statuses: vec![(503, 0.05), (404, 0.04)],
        drop_reply: 0.01,
        reset: 0.03,
        close_before_reply: 0.03,
        truncated_body: 0.03,
        garbage: 0.02,
        endless_head: 0.005,
        refuse_connect: 0.15,
        ..Faults::default()
    };
    // A request that is sent again ends in the class of its last attempt.
    for load in [
        "connections: 8, iterations: 6000, no_resend: true",
        "rate: 2000, duration: 3s, connections: 500, no_resend: true",
    ] {
        let behaviour = Behaviour {
            service: Law::Constant(MS),
            answer: Answer::with_body("hello"),
            faults: faults.clone(),
            ..Behaviour::default()
        };
        let (record, truth) = simulate(&plan(&format!("{load}, timeout: 200ms")), near(behaviour));
        let did = |action: Action| truth.count(|done| done == action) as u64;
        let class = |class: ErrorClass| record.total.errors[class];
        let of = &record.accounting;
        assert_eq!(of.scheduled, 6_000);
        assert_eq!(of.scheduled, of.started + of.dropped + of.never_started);
        assert_eq!(of.started, of.ok + of.failed + of.timed_out + of.in_flight_at_stop);
        for (kind, counted, seen) in [
            ("ok", of.ok, did(Action::Reply(200))),
            ("timeout", of.timed_out, did(Action::Drop)),
            ("503", class(ErrorClass::Status5xx), did(Action::Reply(503))),
            ("404", class(ErrorClass::Status4xx), did(Action::Reply(404))),
            ("reset", class(ErrorClass::Reset), did(Action::Reset)),
            ("close", class(ErrorClass::ClosedBeforeResponse), did(Action::Close)),
            ("half a body", class(ErrorClass::ClosedInResponse), did(Action::Truncate)),
            ("garbage", class(ErrorClass::Protocol), did(Action::Garbage)),
            ("endless head", class(ErrorClass::HeadTooLarge), did(Action::EndlessHead)),
            ("refused", class(ErrorClass::ConnectRefused), of.undelivered),
        ] {
            assert!(seen > 10, "{load}: {kind} has to occur, {seen}");
            assert_eq!(counted, seen, "{load}: {kind}");
        }
        assert_eq!(truth.len() as u64, of.started - of.undelivered, "{load}");
        // Requests that timed out count in the response times, as at least the timeout. Failed ones have
        // figures of their own.
        let total = &record.total;
        assert_eq!(total.response_time.count(), of.ok + of.timed_out);
        assert_eq!(total.censored_response.count, of.timed_out);
        assert!(total.response_time.max().expect("there are some") >= 200_000_000);
        assert_eq!(total.failed_response_time.count(), of.failed);
    }
}

/// R8: ten million values each, and every percentile within a thousandth.
#[test]
fn r08_percentiles_are_within_a_thousandth_up_to_the_last_sample() {
    const VALUES: usize = 10_000_000;
    let mut random = Random::new(11, 0);
    // Median 1 ms, and a tail over five decades; Pareto from 100 µs, with an infinite variance.
    let lognormal = (0..VALUES).map(|_| (1e6 * (1.5 * random.normal()).exp()) as u64 + 1).collect();
    assert_precise(lognormal);
    let pareto = |unit: f64| (1e5 / (1.0 - unit).powf(1.0 / 1.3)) as u64;
    assert_precise((0..VALUES).map(|_| pareto(random.unit())).collect());
}

fn assert_precise(values: Vec<u64>) {
    let recorded = |values: &[u64]| {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    };
    let whole = recorded(&values);
    let (a, b) = values.split_at(values.len() / 3);
    let mut merged = recorded(a);
    merged.merge(&recorded(b));
    assert_eq!(merged, whole, "two workers are one");
    let mut sorted: Vec<Nanos> = values.into_iter().map(Nanos).collect();
    sorted.sort_unstable();
    for p in [1.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999] {
        let truth = nearest_rank(&sorted, p / 100.0).expect("there are values").0 as f64;
        let error = (whole.percentile(p).expect("there are values") as f64 - truth) / truth;
        assert!((0.0..=0.001).contains(&error), "p{p}: {error}");
    }
    assert_eq!(whole.max(), sorted.last().map(|value| value.0));
}

/// R9: the 299th request makes the p99; without it there is a reason and no number.
#[test]
fn r09_a_percentile_needs_its_samples() {
    for (requests, shown) in [(298, false), (299, true)] {
        let Some(result) = play(Needs::Nothing, &format!("sink; load -n {requests} -c 1")) else { return };
        let time = &result["response_time"];
        assert_eq!(time["count"], requests);
        assert_eq!(time["p"]["99"].is_u64(), shown, "{time}");
        assert_eq!(time["p"]["99"].is_null(), !shown, "{time}");
        let reason = time["p_missing"]["99"].as_str();
        assert_eq!(reason, (!shown).then_some("needs 299 samples, has 298"));
    }
}
