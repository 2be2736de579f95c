//! Whoever waits counts: a request without an answer is in the times and in the shares, in every model, with
//! every end. What hangs never holds a threshold.

use plimsoll_metrics::judge_thresholds;
use plimsoll_testkit::{Faults, Law, Pause};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

const LOADS: &[(&str, Flags)] = &[
    ("uniform", &[("--rate", "200"), ("-d", "2s")]),
    ("poisson", &[("--rate", "200"), ("-d", "2s"), ("--arrival", "poisson")]),
    ("stages", &[("--stages", "1s@100,1s@300")]),
    ("shared", &[("--rate", "4000"), ("-d", "2s"), ("--pacing", "shared")]),
    ("precise", &[("--rate", "200"), ("-d", "2s"), ("--precise", "")]),
    ("few connections", &[("--rate", "200"), ("-d", "2s"), ("-c", "4"), ("--overload", "queue")]),
    ("dropping", &[("--rate", "200"), ("-d", "2s"), ("-c", "4"), ("--overload", "drop")]),
    ("closed", &[("-c", "8"), ("-d", "2s")]),
    ("two workers", &[("-c", "8"), ("-d", "2s"), ("-t", "2")]),
    ("warm-up", &[("-c", "8"), ("-d", "2s"), ("--warmup", "500ms")]),
    ("h2", &[("-c", "2"), ("-m", "10"), ("-d", "2s"), ("--http2", "")]),
    ("h2 open", &[("--rate", "200"), ("-d", "2s"), ("--http2", "")]),
];

const ENDS: &[(&str, Flags)] = &[
    ("default", &[]),
    ("short timeout", &[("--timeout", "300ms")]),
    ("short drain", &[("--drain", "500ms")]),
    ("no drain", &[("--drain", "0s")]),
];

fn base() -> Behaviour {
    Behaviour { service: Law::Constant(MS), ..Behaviour::default() }
}

/// A server that stands still from 1 s on, for so long.
fn frozen(length: Nanos) -> Behaviour {
    // The clock of a world does not begin at zero.
    let at = SimOptions::default().start + Nanos::from_secs(1);
    Behaviour { pauses: vec![Pause { at, length }], ..base() }
}

fn dropping(drop_reply: f64) -> Behaviour {
    Behaviour { faults: Faults { drop_reply, ..Faults::default() }, ..base() }
}

#[test]
fn what_hangs_holds_no_threshold() {
    let behaviours: [(&str, Behaviour); 4] = [
        ("frozen for good", frozen(Nanos::from_secs(3_600))),
        ("half hangs", dropping(0.5)),
        ("a twentieth hangs", dropping(0.05)),
        ("nothing is answered", dropping(1.0)),
    ];
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for (behaviour, of) in &behaviours {
        for (load, flags) in LOADS {
            for (end, more) in ENDS {
                cells += 1;
                let mut flags: Vec<_> = flags.iter().chain(*more).copied().collect();
                // A closed loop sends little to a server that stands still: few of its requests wait.
                let is_open = flags.iter().any(|(flag, _)| matches!(*flag, "--rate" | "--stages"));
                let time = if is_open { "p99<20ms" } else { "max<20ms" };
                flags.extend(["error_rate<0.1%", "ok>99.9%", time].map(|text| ("--threshold", text)));
                let plan = plan(&flags);
                let (record, _) = carry_out(&plan, world(of.clone()));
                let name = format!("{behaviour}, {load}, {end}");
                let account = &record.accounting;
                let waited = account.timed_out + account.in_flight_at_stop;
                // In the warm-up all users may have met a request that hangs.
                if waited == 0 && account.started > 0 {
                    wrong.push(format!("{name}: nobody waited: {account:?}"));
                }
                let total = &record.total;
                // Who has waited for less than the fastest response is in no time: some, without a drain.
                let censored = total.censored_response.count;
                if censored > waited
                    || (*end != "no drain" && censored < waited)
                    || total.response_time.count() != account.ok + censored
                {
                    wrong.push(format!("{name}: {:?} of {waited} are in the times", total.censored_response));
                }
                for judged in judge_thresholds(&plan.thresholds, &plan.outline(), &record) {
                    if judged.passed {
                        wrong.push(format!(
                            "{name}: {} holds, {:?}, {account:?}",
                            judged.spec, judged.observed
                        ));
                    }
                }
            }
        }
    }
    assert_eq!(cells, behaviours.len() * LOADS.len() * ENDS.len());
    assert!(wrong.is_empty(), "{} in {cells} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A few requests under way when a healthy run is cut off hide nothing: figures that they could not move are
/// exact, and thresholds hold.
#[test]
fn a_healthy_run_without_a_drain_holds_its_thresholds() {
    for (load, flags) in LOADS {
        let mut flags = flags.to_vec();
        flags.push(("--drain", "0s"));
        flags.extend(["error_rate<5%", "p90<20ms"].map(|text| ("--threshold", text)));
        let plan = plan(&flags);
        let (record, _) = carry_out(&plan, world(base()));
        for judged in judge_thresholds(&plan.thresholds, &plan.outline(), &record) {
            assert!(
                judged.passed,
                "{load}: {} of {:?}: {:?}",
                judged.spec, record.accounting, judged.observed
            );
        }
    }
}
