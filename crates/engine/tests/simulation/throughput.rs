//! Throughput is of the answers that come in the measured part, whoever asked for them.

use plimsoll_metrics::judge_thresholds;
use plimsoll_testkit::{Concurrency, Law};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// One way.
const LATENCY: Nanos = Nanos::from_micros(50);

const LOADS: &[(&str, Flags)] = &[
    ("uniform", &[("--rate", "100")]),
    ("poisson", &[("--rate", "100"), ("--arrival", "poisson")]),
    ("fast", &[("--rate", "2000")]),
    ("closed", &[("-c", "50")]),
    ("two workers", &[("-c", "50"), ("-t", "2")]),
    ("h2", &[("--rate", "100"), ("--http2", "")]),
    ("h2 closed", &[("-c", "2"), ("-m", "10"), ("--http2", "")]),
    ("ends early", &[("--rate", "100"), ("--drain", "0s")]),
];

const PARTS: &[(&str, &str)] = &[("0s", "4s"), ("500ms", "4s"), ("2s", "4s"), ("2s", "500ms"), ("5s", "8s")];

/// Instants of answers that reached the generator, since the start.
fn answers(record: &RunRecord, truth: &TruthLog) -> Vec<Nanos> {
    let replied = truth.entries().into_iter().filter_map(|request| request.replied);
    replied.map(|at| (at + LATENCY).since(record.started_monotonic)).collect()
}

#[test]
fn what_ends_in_the_measured_part_is_achieved() {
    let behaviours = [
        ("1 ms", Law::Constant(MS), Concurrency::Infinite),
        ("1 s", Law::Constant(MS * 1_000), Concurrency::Infinite),
        ("3 s", Law::Constant(MS * 3_000), Concurrency::Infinite),
        ("100/s", Law::Constant(MS * 10), Concurrency::SingleQueue),
    ];
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for (behaviour, service, concurrency) in behaviours {
        let behaviour_of = || Behaviour { service, concurrency, ..Behaviour::default() };
        for (load, flags) in LOADS {
            for (warmup, length) in PARTS {
                cells += 1;
                let mut flags = flags.to_vec();
                flags.extend([("--warmup", *warmup), ("-d", *length), ("--threshold", "rate>=1/s")]);
                let plan = plan(&flags);
                let options = SimOptions { latency: LATENCY, ..world(behaviour_of()) };
                let (record, truth) = carry_out(&plan, options);
                let name = format!("{behaviour}, {load}, {warmup} and {length}");
                let (from, until) = (plan.warmup, plan.warmup + record.duration);
                let at = answers(&record, &truth);
                let within = at.iter().filter(|at| from <= **at && **at <= until).count() as u64;
                // An answer at the border itself is on either side.
                let borders = [from, until];
                let near = |at: &&Nanos| borders.iter().any(|border| at.0.abs_diff(border.0) < LATENCY.0 * 2);
                let open = at.iter().filter(near).count() as u64;
                if record.completed_in_window.abs_diff(within) > open {
                    wrong.push(format!("{name}: {} of {within}", record.completed_in_window));
                }
                let intervals = record.intervals.iter().filter(|one| !one.warmup && !one.drain);
                let sum: u64 = intervals.map(|interval| interval.completed).sum();
                if sum.abs_diff(within) > open {
                    wrong.push(format!("{name}: the intervals have {sum} of {within}"));
                }
                let seconds = record.duration.as_secs_f64();
                for judged in judge_thresholds(&plan.thresholds, &plan.outline(), &record) {
                    if judged.passed != (record.completed_in_window as f64 / seconds >= 1.0) {
                        wrong.push(format!("{name}: {:?} of {within} answers", judged.observed));
                    }
                }
            }
        }
    }
    assert_eq!(cells, behaviours.len() * LOADS.len() * PARTS.len());
    assert!(wrong.is_empty(), "{} in {cells} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
