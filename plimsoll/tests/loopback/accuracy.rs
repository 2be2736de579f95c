//! Accuracy of the figures, by the sink's log of the same run and by queueing theory.

use plimsoll_core::{Nanos, Rate, Shard};
use plimsoll_schedule::{Arrivals, Process, Profile};
use serde_json::Value;

use crate::loopback::backends::on_each_alone;
use crate::loopback::process::run;
use crate::loopback::sink::Sink;
use plimsoll_testkit::sink_log::{account, assert_balance, count, delivered, percentile_ms, reported_ms};

/// The header that carries the index of the arrival to the sink's log.
const ID: &str = "-H x-plimsoll-id:${sequence}";

/// Arrivals per second and seconds of the freeze test: a tenth of the time is frozen.
const FREEZE_RATE: u64 = 1_000;
const FREEZE_RUN_S: u64 = 4;

/// When arrivals at a constant rate are due, in nanoseconds after the start: `floor(n / rate)`.
fn uniform(rate: u64, seconds: u64) -> Vec<u64> {
    (0..rate * seconds).map(|n| n * 1_000_000_000 / rate).collect()
}

fn assert_within(what: &str, reported: f64, truth: f64, margin: f64) {
    assert!((reported - truth).abs() <= margin, "{what}: {reported} ms, in truth {truth} ms (± {margin} ms)");
}

/// Asserts p50 within 0.5 ms, p99 and p99.9 within 2 % of the truth.
///
/// p99.9 rests on the four replies that end a freeze, which are read in one go: a machine that holds the
/// generator up in that moment makes all of them late. The result says by how much at most, from the kernel's
/// stamps.
fn assert_true(result: &Value, truth: &[u64], what: &str) {
    let reported = |p| reported_ms(result, "response_time", p);
    let true_ms = |p| percentile_ms(truth, p);
    assert_within(&format!("{what} p50"), reported("50"), true_ms(50.0), 0.5);
    assert_within(&format!("{what} p99"), reported("99"), true_ms(99.0), 0.02 * true_ms(99.0));
    let read_late = count(result, "/generator/receive_lag/max") as f64 / 1e6;
    let margin = 0.02 * true_ms(99.9) + read_late;
    assert_within(&format!("{what} p99.9"), reported("99.9"), true_ms(99.9), margin);
}

/// A run over a freeze of 400 ms. The sink's time starts when it starts, a little before the run.
fn frozen_run(backend: &str, connections: &str) -> Value {
    let sink = Sink::start(&format!("--freeze 1s+400ms --backend {backend}"));
    let load = format!("--rate {FREEZE_RATE} -d {FREEZE_RUN_S}s {connections} {ID}");
    let result = run(&format!("{} {load} -o json --backend {backend}", sink.url())).result();
    assert_balance(&result);
    assert_eq!(account(&result, "ok"), FREEZE_RATE * FREEZE_RUN_S);
    let saw = sink.stop();
    assert_eq!(saw.requests, delivered(&result));
    let truth = saw.truth.response_times(&result, &uniform(FREEZE_RATE, FREEZE_RUN_S));
    // The freeze lay within the run as a whole: the requests at its beginning waited for all of it.
    assert!(percentile_ms(&truth, 100.0) > 380.0, "{} ms", percentile_ms(&truth, 100.0));
    assert_true(&result, &truth, &format!("{backend} {connections}"));
    result
}

#[test]
fn a_freeze_is_seen_whole() {
    on_each_alone(|backend| {
        let result = frozen_run(backend, "");
        // A connection for every arrival: then the service time sees the freeze as well.
        let (response, service) =
            (reported_ms(&result, "response_time", "99"), reported_ms(&result, "service_time", "99"));
        assert_within("service time p99", service, response, 0.1 * response);
    });
}

#[test]
fn a_freeze_is_seen_whole_through_a_few_connections() {
    on_each_alone(|backend| {
        let result = frozen_run(backend, "-c 10");
        // Ten requests of 4,000 met the freeze in flight; the four hundred that were due meanwhile waited
        // here. A tool that looks at the service time alone does not see them.
        let (response, service) =
            (reported_ms(&result, "response_time", "99"), reported_ms(&result, "service_time", "99"));
        assert!(service < response / 5.0, "service time {service} ms, response time {response} ms");
        assert!(reported_ms(&result, "start_lag", "99") > 0.9 * response, "the wait was the generator's");
        let verdict = &result["verdict"];
        assert!(verdict.to_string().contains("connection_limit"), "{verdict}");
        assert!(count(&result, "/connections/peak_open") <= 10);
    });
}

/// Rates of the single queue, per second, and its length.
const SERVED: f64 = 1_000.0;
const ARRIVING: u64 = 800;
const QUEUE_RUN_S: u64 = 8;
/// A start lag of this many milliseconds at its 99th percentile means a machine that does not let its threads
/// run: on a quiet one it is 0.2 ms or less.
const HELD_UP_MS: f64 = 1.0;
/// By how much queueing inflates the variance of the share of requests above a percentile. MEASUREMENT R10
/// found that intervals which take requests for independent cover the truth in 18 % of the cases at p99 and a
/// load of 0.8: P(|Z| < 1.96 / √VIF) = 0.18 gives 74. (At p50, with 30 %, it is 26; 74 is taken for both.)
const VIF: f64 = 74.0;
/// Half width of the interval in standard deviations: 99.7 %. With fixed seeds the draws are the same in
/// every run, so this is not the chance of a false alarm, but how far these draws may be from the mean.
const SIGMAS: f64 = 3.0;

/// The interval of percentile `p` in milliseconds. The time in an M/M/1 system is exponential with mean 1 /
/// (μ - λ), so t = -mean · ln(1 - p). The standard deviation of its estimate from n values is, by the delta
/// method, √(p (1 - p) · VIF / n) divided by the density (1 - p) / mean.
fn theory(p: f64) -> (f64, f64) {
    let mean_ms = 1e3 / (SERVED - ARRIVING as f64);
    let n = (ARRIVING * QUEUE_RUN_S) as f64;
    let deviation = (p * (1.0 - p) * VIF / n).sqrt() / ((1.0 - p) / mean_ms);
    (-mean_ms * (1.0 - p).ln(), SIGMAS * deviation)
}

fn poisson(seed: u64) -> Vec<u64> {
    let profile = Profile::constant(Rate::per_second(ARRIVING), Nanos::from_secs(QUEUE_RUN_S));
    let mut arrivals = Arrivals::new(&profile, Process::Poisson, seed, Shard::WHOLE);
    std::iter::from_fn(|| arrivals.next()).map(|arrival| arrival.at.0).collect()
}

/// A run against the single queue. The result is right about it, whatever happens on the machine.
fn queued_run(backend: &str) -> Value {
    let sink = Sink::start(&format!("--delay exponential:1ms --queue --seed 1 --backend {backend}"));
    let load = format!("--rate {ARRIVING} --arrival poisson --seed 1 -d {QUEUE_RUN_S}s {ID}");
    let result = run(&format!("{} {load} -o json --backend {backend}", sink.url())).result();
    assert_balance(&result);
    let saw = sink.stop();
    assert_eq!(saw.requests, delivered(&result));
    assert_true(&result, &saw.truth.response_times(&result, &poisson(1)), backend);
    result
}

/// Returns the distance of the worst percentile from theory, in half widths of its interval.
fn distance_from_theory(result: &Value) -> f64 {
    let distance = |(name, p)| {
        let (expected, margin) = theory(p);
        (reported_ms(result, "response_time", name) - expected).abs() / margin
    };
    [("50", 0.50), ("99", 0.99)].map(distance).into_iter().fold(0.0, f64::max)
}

#[test]
fn a_single_queue_behaves_as_theory_says() {
    on_each_alone(|backend| {
        // A machine that is held up really makes the queue longer: such a run proves nothing about theory,
        // and its start lag tells it apart. (The truth of the report is asserted in any case.) The draws are
        // the same in each, so a defect of the program shows in all three.
        let mut quiet = 0;
        for _ in 0..3 {
            let result = queued_run(backend);
            if distance_from_theory(&result) <= 1.0 {
                return;
            }
            quiet += u32::from(reported_ms(&result, "start_lag", "99") < HELD_UP_MS);
        }
        assert_eq!(quiet, 0, "{backend}: all runs were outside of the interval, these on a quiet machine");
    });
}

#[test]
fn theory_is_that_of_the_textbook() {
    assert!((theory(0.50).0 - 3.47).abs() < 0.01, "{:?}", theory(0.50));
    assert!((theory(0.99).0 - 23.03).abs() < 0.01, "{:?}", theory(0.99));
}

#[test]
fn every_arrival_of_a_rate_is_started() {
    on_each_alone(|backend| {
        let sink = Sink::start(&format!("--backend {backend}"));
        let load = format!("--rate 5k -d 2s {ID} -o json --backend {backend}");
        let result = run(&format!("{} {load}", sink.url())).result();
        assert_balance(&result);
        assert_eq!(account(&result, "scheduled"), 10_000);
        assert_eq!(account(&result, "started"), 10_000);
        let saw = sink.stop();
        assert_eq!(saw.requests, delivered(&result));
        // Every index once: no arrival was left out and made up for by another.
        assert_eq!(saw.truth.response_times(&result, &uniform(5_000, 2)).len(), 10_000);
        let starts = |interval: &Value| interval["scheduled"].as_u64().expect("a count");
        let per_second: Vec<u64> =
            result["intervals"].as_array().expect("a list").iter().map(starts).filter(|n| *n > 0).collect();
        assert_eq!(per_second.iter().sum::<u64>(), 10_000, "{per_second:?}");
    });
}

#[test]
fn a_ramp_is_the_integral_of_its_rate() {
    let sink = Sink::start("");
    // 1,000/s for a second; then up to 3,000/s within another, 2,000/s on average; then a rest.
    let result = run(&format!("{} --stages 1s@1000,1s@3000,500ms@=0 -t 2 -o json", sink.url())).result();
    assert_balance(&result);
    assert_eq!((account(&result, "scheduled"), account(&result, "started")), (3_000, 3_000));
    let per_second: Vec<u64> =
        result["intervals"].as_array().expect("a list").iter().map(|i| count(i, "/scheduled")).collect();
    // Intervals end with the loop that handles them, so an arrival at a seam may count before or after it.
    assert!(per_second[0].abs_diff(1_000) <= 20 && per_second[1].abs_diff(2_000) <= 60, "{per_second:?}");
}
