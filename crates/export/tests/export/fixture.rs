//! Totals of a run of two scenarios with a warm-up, failures and timeouts.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_export::{Gauges, Totals};
use plimsoll_metrics::{
    FileUse, Interval, IntervalMerger, MachineFacts, MachineInterval, MetricRecord, MetricSpec, Outline,
    ProcessUse, Recorder, Sample, ScenarioOutline, SeriesKind, WatchedProcess, WatchedUse,
};

/// The start of the run in Unix time.
pub(crate) const START: Nanos = Nanos::from_secs(1_772_366_400);

fn outline() -> Outline {
    let scenario = |name: &str, steps| ScenarioOutline { name: name.to_owned(), steps };
    Outline {
        scenarios: vec![scenario("buy \"now\"", 0..2), scenario("look", 2..3)],
        steps: ["add", "pay\\cash", "look"].map(str::to_owned).to_vec(),
        awaited: Vec::new(),
        phases: Vec::new(),
        paces_requests: false,
        metrics: Vec::new(),
    }
}

/// Request number `i`: one in ten fails, one in a hundred times out after 2 s.
fn sample(i: u64) -> Sample {
    let (outcome, status) = match i {
        _ if i % 100 == 7 => (Outcome::TimedOut, 0),
        _ if i % 10 == 3 => (Outcome::Failed(ErrorClass::Status5xx), 503),
        _ => (Outcome::Ok, if i.is_multiple_of(4) { 302 } else { 200 }),
    };
    let length = if outcome == Outcome::TimedOut { 2_000_000_000 } else { 900_000 + i * 7_919 % 5_000_000 };
    let intended = Nanos::from_millis(i);
    let sent = intended + Nanos::from_micros(20);
    Sample {
        step: (i % 3) as u32,
        intended,
        started: sent,
        sent,
        first_byte: if outcome == Outcome::TimedOut { Nanos::MAX } else { sent + Nanos(length / 2) },
        done: sent + Nanos(length),
        outcome,
        status,
        bytes_sent: 100,
        bytes_received: if outcome == Outcome::TimedOut { 0 } else { 1_000 },
    }
}

/// A second of warm-up and two of measurement, each of 1,000 requests.
pub(crate) fn totals() -> Totals {
    let facts = vec![("version", "0.1.0".to_owned()), ("plan", "9f86d081".to_owned())];
    let mut totals = Totals::new(outline(), facts);
    let mut recorder = Recorder::new(&outline().steps);
    let mut merger = IntervalMerger::new(1).with_outline(outline());
    for second in 1..=3 {
        for i in 0..1_000 {
            let sample = sample(i);
            recorder.note_started(sample.step);
            recorder.record(&sample);
        }
        merger.add(&recorder.snapshot(plimsoll_metrics::Gauges {
            at: Nanos::from_secs(second),
            warmup: second == 1,
            in_flight: 4,
            connections: 8,
            scheduled: 1_000,
            ..plimsoll_metrics::Gauges::default()
        }));
    }
    for interval in merger.finish() {
        let gauges = Gauges { target_per_second: Some(1_000.0), ..Gauges::default() };
        totals.add(START, &interval, gauges);
        let (facts, seen) = servers();
        totals.watch(&facts, &seen);
    }
    totals
}

/// Two servers with one name, the second of which is another user's.
fn servers() -> (MachineFacts, MachineInterval) {
    let used = ProcessUse {
        cpu: Nanos::from_millis(300),
        system: Nanos::from_millis(100),
        threads: 4,
        rss_bytes: Some(12 << 20),
        descriptors: Some(70),
        files: Some(FileUse { read_bytes: 512, written_bytes: 4_096, ..FileUse::default() }),
        ..ProcessUse::default()
    };
    let foreign = ProcessUse { files: None, descriptors: None, ..used };
    let facts = WatchedProcess { name: "nginx".to_owned(), ..WatchedProcess::default() };
    let facts = MachineFacts { watched: vec![facts; 2], ..MachineFacts::default() };
    let watched =
        [used, foreign].map(|used| WatchedUse { processes: 2, used: Some(used), ..WatchedUse::default() });
    (facts, MachineInterval { watched: watched.into(), ..MachineInterval::default() })
}

/// Totals of a run that has just begun.
pub(crate) fn nothing() -> Totals {
    Totals::new(outline(), Vec::new())
}

/// Requests of a step in the measured part by their end: ok, failed, timed out.
pub(crate) fn ends(step: u64) -> [u64; 3] {
    let mut ends = [0; 3];
    for sample in (0..1_000).filter(|i| i % 3 == step).map(sample) {
        ends[match sample.outcome {
            Outcome::Ok => 0,
            Outcome::Failed(_) => 1,
            Outcome::TimedOut => 2,
        }] += 2;
    }
    ends
}

/// The response times of a step in the measured part, in ascending order, of requests that ended well or
/// timed out.
pub(crate) fn response_times(step: u64) -> Vec<u64> {
    let samples = (0..1_000).filter(|i| i % 3 == step).map(sample);
    let counted = samples.filter(|sample| !matches!(sample.outcome, Outcome::Failed(_)));
    let mut times: Vec<u64> = counted.flat_map(|sample| [sample.response_time().0; 2]).collect();
    times.sort_unstable();
    times
}

/// Totals of two intervals in which a plan recorded metrics of its own, some of them with names that are one
/// for Prometheus, and tags that are called as labels of its own.
pub(crate) fn own_metrics() -> Totals {
    let spec = |name: &str, kind| MetricSpec { name: name.to_owned(), kind, unit: "EUR".to_owned() };
    let metrics = vec![
        spec("cart", SeriesKind::Trend),
        spec("orders_total", SeriesKind::Counter),
        spec("stock.left", SeriesKind::Gauge),
        spec("stock-left", SeriesKind::Gauge),
        spec("found", SeriesKind::Rate),
        spec("nothing", SeriesKind::Trend),
    ];
    let mut totals = Totals::new(Outline { metrics: metrics.clone(), ..outline() }, Vec::new());
    for second in 1..=2 {
        let mut metrics: Vec<_> = metrics.iter().cloned().map(MetricRecord::new).collect();
        let mut add = |metric: usize, value: &str, tags: &[(&str, &str)]| {
            let tags = tags.iter().map(|(name, value)| (*name, value.as_bytes()));
            metrics[metric].record(value.as_bytes(), tags, Nanos::from_secs(second));
        };
        for number in 1..=100 {
            let tags = [("quantile", "x"), ("shop", "north")];
            add(0, &number.to_string(), if number % 2 == 0 { &tags } else { &[] });
            add(1, "1", &[]);
            add(
                4,
                if number == 1 { "false" } else { "true" },
                if number == 7 { &[("value", "mine")] } else { &[] },
            );
        }
        add(0, "dear", &[]);
        add(2, &(2 * second).to_string(), &[]);
        add(3, "7", &[]);
        metrics.retain(|metric| !metric.is_empty());
        let interval = Interval { at: Nanos::from_secs(second), metrics, ..Interval::default() };
        totals.add(START, &interval, Gauges::default());
    }
    totals
}
