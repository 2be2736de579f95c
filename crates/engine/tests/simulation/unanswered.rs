//! Whoever waits counts: a request without an answer is in the times and in the shares, in every model, with
//! every end. What hangs never holds a threshold.

use plimsoll_metrics::{Headline, RunFacts, RunOutcome, Standstill, judge_thresholds};
use plimsoll_testkit::{Concurrency, Faults, Law, Pause};

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

/// Requests that hang from the warm-up to the end are in the figures of the measured part, in every model,
/// whether some of them hang or all. The rate that is asked for leaves them out.
#[test]
fn what_hangs_since_the_warm_up_counts() {
    let loads: &[(&str, Flags, u64)] = &[
        ("closed", &[("-c", "8")], 8),
        ("two workers", &[("-c", "8"), ("-t", "2")], 8),
        ("h2", &[("-c", "1"), ("-m", "8"), ("--http2", "")], 8),
        ("pipelined", &[("-c", "1"), ("--pipeline", "8")], 8),
        ("open", &[("--rate", "100")], 50),
        ("open h2", &[("--rate", "100"), ("--http2", "")], 50),
        ("few connections", &[("--rate", "100"), ("-c", "4"), ("--overload", "queue")], 4),
        ("timeout after the end", &[("--rate", "100"), ("--timeout", "6s"), ("--drain", "9s")], 50),
    ];
    for (load, flags, hung) in loads {
        for all in [true, false] {
            let mut flags = flags.to_vec();
            flags.extend([("--warmup", "1s"), ("-d", "2s")]);
            if !flags.iter().any(|(flag, _)| *flag == "--drain") {
                flags.push(("--drain", "1s"));
            }
            flags.extend([("--threshold", "error_rate<0.1%"), ("--threshold", "max<1s")]);
            let at = SimOptions::default().start + MS * 500;
            // Either everything stands still from the middle of the warm-up on, or half of it is silent.
            let behaviour = match all {
                true => Behaviour { pauses: vec![Pause { at, length: Nanos::from_secs(60) }], ..base() },
                false => dropping(0.5),
            };
            let plan = plan(&flags);
            let (record, _) = carry_out(&plan, world(behaviour));
            let account = record.accounting;
            let name = format!("{load}, {all}: {account:?}");
            if all {
                assert_eq!(account.since_warmup, *hung, "{name}");
            } else {
                assert!(account.since_warmup > 0, "{name}");
            }
            assert_eq!(record.total.start_lag.count(), account.started, "{name}");
            let waited = account.in_flight_at_stop + account.timed_out;
            assert!(waited >= account.since_warmup, "{name}");
            // It has waited for longer than the measured part, and for part of the warm-up.
            let longest = record.total.response_time.max().unwrap();
            assert!(longest >= 3_000_000_000, "{name}: {longest}");
            assert!(record.target_per_second.is_none_or(|rate| (rate - 100.0).abs() < 1.0), "{name}");
            for judged in judge_thresholds(&plan.thresholds, &plan.outline(), &record) {
                assert!(!judged.passed, "{name}: {} holds, {:?}", judged.spec, judged.observed);
            }
        }
    }
}

/// Where users wait they send nothing more, so that few requests are without an answer. A run whose target
/// stood still to its end fails all the same, whatever its thresholds are.
#[test]
fn a_target_that_freezes_for_good_passes_nothing() {
    let thresholds: [&[&str]; 3] = [&[], &["p99<20ms"], &["errors<10%", "rate>1"]];
    for (load, flags) in LOADS {
        for (end, more) in ENDS {
            for texts in thresholds {
                let mut flags: Vec<_> = flags.iter().chain(*more).copied().collect();
                for (flag, value) in &mut flags {
                    match *flag {
                        "-d" => *value = "4s",
                        "--stages" => *value = "2s@100,2s@300",
                        _ => {}
                    }
                }
                flags.extend(texts.iter().map(|text| ("--threshold", *text)));
                let plan = plan(&flags);
                let (mut record, _) = carry_out(&plan, world(frozen(Nanos::from_secs(3_600))));
                record.thresholds = judge_thresholds(&plan.thresholds, &plan.outline(), &record);
                let headline = Headline::of(&RunFacts::of(&record));
                let name = format!("{load}, {end}, {texts:?}: {headline:?}");
                // A worker that drops what it cannot start has lost more than a hundredth of it.
                assert!(matches!(headline.outcome, RunOutcome::Fail | RunOutcome::NoVerdict), "{name}");
                if record.verdict.valid {
                    assert_eq!(headline.outcome, RunOutcome::Fail, "{name}");
                }
            }
        }
    }
}

/// A silence that the target's own times explain, or that nobody asked into, is no standstill.
#[test]
fn a_silence_with_a_reason_is_no_standstill() {
    let slow = Behaviour { service: Law::Constant(Nanos::from_secs(3)), ..Behaviour::default() };
    let thaws = frozen(Nanos::from_millis(2_500));
    let rare = dropping(0.05);
    let cases: [(&str, Flags, Behaviour); 6] = [
        ("slow", &[("-c", "8"), ("-d", "8s")], slow.clone()),
        ("slow open", &[("--rate", "1"), ("-d", "9s")], slow),
        ("thaws", &[("-c", "8"), ("-d", "4s")], thaws.clone()),
        ("thaws in the drain", &[("-c", "8"), ("-d", "3s")], thaws),
        ("one hangs", &[("--rate", "1"), ("-d", "20s")], rare),
        ("think", &[("-c", "4"), ("-n", "20")], base()),
    ];
    for (name, flags, behaviour) in cases {
        let (record, _) = carry_out(&plan(flags), world(behaviour));
        assert_eq!(Standstill::at_end(&record), None, "{name}: {:?}", record.accounting);
    }
}

/// A queue that grows until its answers come later than they are waited for looks as a target that stands
/// still, and is called what it is. A target that freezes is not called overloaded, whatever the time-out is.
///
/// Symptom: "the target stopped answering", of a server that went on answering as many requests as it can.
#[test]
fn answers_that_come_too_late_are_no_standstill() {
    // 200 requests per second, one at a time.
    let slow = Behaviour {
        service: Law::Constant(MS * 5),
        concurrency: Concurrency::SingleQueue,
        ..Behaviour::default()
    };
    let freezes = Behaviour { pauses: frozen(Nanos::from_secs(3_600)).pauses, ..slow.clone() };
    let open: [(&str, &str); 4] =
        [("--rate", "150"), ("--rate", "260"), ("--rate", "600"), ("--rate", "4000")];
    let closed: [(&str, &str); 2] = [("-c", "20"), ("-c", "800")];
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for (load, carried) in
        open.map(|load| (load, load.1 == "150")).into_iter().chain(closed.map(|load| (load, load.1 == "20")))
    {
        for timeout in ["300ms", "1s", "3s"] {
            for (behaviour, freezes) in [(&slow, false), (&freezes, true)] {
                cells += 1;
                let flags = [load, ("-d", "20s"), ("--timeout", timeout)];
                let (record, _) = carry_out(&plan(&flags), world(behaviour.clone()));
                let end = Standstill::at_end(&record);
                let words = end.map(|end| end.words()).unwrap_or_default();
                let limit = &record.verdict.limited_by;
                let name =
                    format!("{load:?}, {timeout}, {freezes}: {words:?}, {limit:?}, {:?}", record.accounting);
                let is_right = match (freezes, carried) {
                    // A queue that grows and a freeze in it are told apart only where the freeze comes first.
                    (true, false) => words.starts_with("the target "),
                    (true, true) => {
                        words.starts_with("the target stopped answering")
                            && words.contains("each waited for ")
                    }
                    (false, true) => end.is_none(),
                    (false, false) => {
                        words.starts_with("the target is overloaded") && limit.hint.contains("lower rate")
                    }
                };
                if !is_right {
                    wrong.push(name);
                }
            }
        }
    }
    assert_eq!(cells, 36);
    assert!(wrong.is_empty(), "{} in {cells} cells are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A threshold that ends the run sees who waits: a target that freezes ends it as soon as enough requests
/// have waited for long enough, and a healthy one does not.
#[test]
fn a_threshold_that_ends_the_run_sees_a_hang() {
    for (load, flags) in [
        ("open", &[("--rate", "200"), ("-d", "9s")][..]),
        ("h2 open", &[("--rate", "200"), ("-d", "9s"), ("--http2", "")][..]),
        ("few connections", &[("--rate", "200"), ("-d", "9s"), ("-c", "20"), ("--overload", "queue")][..]),
        ("closed", &[("-c", "800"), ("-d", "9s")][..]),
    ] {
        let mut flags = flags.to_vec();
        flags.extend([("--threshold", "p99<100ms"), ("--abort-on-fail", ""), ("--drain", "1s")]);
        let slow = Behaviour { service: Law::Constant(MS * 50), ..frozen(Nanos::from_secs(60)) };
        for (behaviour, freezes) in
            [(slow, true), (Behaviour { service: Law::Constant(MS * 50), ..base() }, false)]
        {
            let plan = plan(&flags);
            let (record, _) = carry_out(&plan, world(behaviour));
            let name = format!("{load}, {freezes}");
            // Time is virtual: a run may be over before it is told to end.
            let [ended] = &record.thresholds[..] else { panic!("{name}") };
            assert_eq!((ended.ended_run, ended.passed), (freezes, !freezes), "{name}: {ended:?}");
        }
    }
}
