//! Instants of sending, where the thread is interrupted in the middle of a flush.

use plimsoll_core::Nanos;
use plimsoll_metrics::{ReasonCode, RunRecord};
use plimsoll_testkit::oracle::nearest_rank;
use plimsoll_testkit::{Behaviour, Law, SimOptions, TruthLog};

use super::{assert_close, plan, simulate, world};

const LATENCY: Nanos = Nanos::from_micros(20);

/// A server whose times are spread, and a thread that is interrupted for 3 ms after this many of its sends.
fn interrupted(probability: f64, coalesce: bool) -> SimOptions {
    let service = Law::LogNormal { median: Nanos::from_micros(200), sigma: 0.4 };
    SimOptions {
        latency: LATENCY,
        send_time: Nanos::from_micros(4),
        interruption: (probability, Nanos::from_millis(3)),
        coalesce,
        ..world(Behaviour { service, ..Behaviour::default() })
    }
}

/// The service times of the truth log, ascending.
fn true_service_times(truth: &TruthLog) -> Vec<Nanos> {
    let whole = |entry: &plimsoll_testkit::Truth| Some(entry.replied? - entry.received + LATENCY * 2);
    let mut times: Vec<Nanos> = truth.entries().iter().filter_map(whole).collect();
    times.sort_unstable();
    times
}

fn assert_service_times(record: &RunRecord, truth: &TruthLog) {
    let times = true_service_times(truth);
    for p in [1.0, 50.0, 90.0, 99.0] {
        let measured = record.total.service_time.percentile(p).map(Nanos).expect("there are samples");
        assert_close(measured, nearest_rank(&times, p / 100.0).expect("there are samples"), 0.02);
    }
    let least = record.total.service_time.min().map(Nanos).expect("there are samples");
    assert!(least > LATENCY * 2, "{least:?}");
}

fn uncertain(record: &RunRecord) -> u64 {
    record.workers.iter().map(|worker| worker.send_time_uncertain).sum()
}

fn says_so(record: &RunRecord) -> bool {
    record.verdict.reasons.iter().any(|reason| reason.code == ReasonCode::SendTimeUncertain)
}

#[test]
fn an_interruption_in_a_flush_makes_no_service_time_impossible() {
    let closed: &[(&str, &str)] = &[("-c", "64"), ("-n", "40000")];
    let open: &[(&str, &str)] = &[("--rate", "40000"), ("-n", "40000"), ("-c", "200")];
    let http2: &[(&str, &str)] = &[("-c", "4"), ("-m", "16"), ("-n", "40000"), ("--http2", "")];
    // Responses that are read together have one stamp, that of the last: with HTTP/2 their times depend on
    // the stamp, and not on the sends.
    for (coalesce, all) in [(false, &[closed, open, http2][..]), (true, &[closed, open])] {
        for &flags in all {
            let (record, truth) = simulate(&plan(flags), interrupted(0.003, coalesce));
            assert_service_times(&record, &truth);
            let share = uncertain(&record) as f64 / 40_000.0;
            assert!(share > 0.002 && share < 0.1, "{flags:?}: {share}");
            assert_eq!(says_so(&record), share > 0.01, "{flags:?}: {share}");
        }
    }
}

#[test]
fn sends_without_an_interruption_are_sure() {
    let (record, truth) = simulate(&plan(&[("-c", "64"), ("-n", "20000")]), interrupted(0.0, false));
    assert_service_times(&record, &truth);
    assert_eq!(uncertain(&record), 0);
    assert!(!says_so(&record));
}

#[test]
fn a_response_before_its_request_takes_no_time_away() {
    // The clock of the stamps is ahead of that of the sends by more than the whole exchange: nothing is zero.
    let service = Law::Constant(Nanos::from_micros(100));
    let servers = world(Behaviour { service, ..Behaviour::default() }).servers;
    let options = SimOptions { stamp_error: Nanos::from_micros(500), servers, ..interrupted(0.0, false) };
    let (record, _) = simulate(&plan(&[("-c", "1"), ("-n", "500")]), options);
    let least = record.total.service_time.min().map(Nanos).expect("there are samples");
    assert!(least > LATENCY * 2, "{least:?}");
    assert!(says_so(&record));
    // The worker does not use the stamp.
    let worker = &record.workers[0];
    assert_eq!((worker.stamped, worker.unstamped, worker.receive_lag.count()), (0, 500, 0));
}
