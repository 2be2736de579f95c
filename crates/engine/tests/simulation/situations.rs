//! Situations, and the sentence that an expert would write about each: by its cause, by the figures that
//! prove it, and without what was not tested.

use plimsoll_metrics::{Headline, LimitedBy, RunFacts, RunOutcome, judge_thresholds};
use plimsoll_testkit::{Concurrency, Faults, Law, Pause};

use super::*;

type Flags = &'static [(&'static str, &'static str)];

/// A situation and what is to be said of it.
struct Situation {
    name: &'static str,
    server: fn() -> Behaviour,
    flags: Flags,
    limited_by: LimitedBy,
    /// Words of the evidence.
    words: &'static [&'static str],
    outcome: RunOutcome,
    /// `false` where HTTP/2 makes another situation of it.
    on_http2: bool,
}

const SECOND: Nanos = Nanos::from_secs(1);

fn constant(service: Nanos) -> Behaviour {
    Behaviour { service: Law::Constant(service), ..Behaviour::default() }
}

fn bimodal(slow: Nanos, probability: f64) -> Behaviour {
    let service = Law::Bimodal { fast: MS * 2, slow, slow_share: probability };
    Behaviour { service, ..Behaviour::default() }
}

/// One that answers 100 requests per second, or so many.
fn capacity(per_second: u64) -> Behaviour {
    let service = Law::Constant(Nanos(1_000_000_000 / per_second));
    Behaviour { service, concurrency: Concurrency::SingleQueue, ..Behaviour::default() }
}

/// One that stands still from `at` on for `length`, in milliseconds since the start of the load.
fn freezing(at: u64, length: u64) -> Behaviour {
    // The load begins a moment after the clock of its world.
    let at = SimOptions::default().start + MS * at + MS * 5;
    Behaviour { pauses: vec![Pause { at, length: MS * length }], ..constant(MS * 2) }
}

fn faulty(faults: Faults) -> Behaviour {
    Behaviour { faults, ..constant(MS * 2) }
}

fn statuses(status: u16, probability: f64) -> Behaviour {
    faulty(Faults { statuses: vec![(status, probability)], ..Faults::default() })
}

fn dropping(drop_reply: f64) -> Behaviour {
    faulty(Faults { drop_reply, ..Faults::default() })
}

const BASE: Situation = Situation {
    name: "",
    server: || constant(MS * 2),
    flags: &[],
    limited_by: LimitedBy::None,
    words: &["was delivered on time, and requests in flight did not grow"],
    outcome: RunOutcome::Done,
    on_http2: true,
};

const TARGET: Situation = Situation { limited_by: LimitedBy::Target, ..BASE };
const UNKNOWN: Situation = Situation {
    limited_by: LimitedBy::Unknown,
    words: &["was delivered on time", "whether requests in flight grew does not show"],
    ..BASE
};
const OVERLOADED: Situation = Situation { words: &["fewer than arrive"], ..TARGET };

const SITUATIONS: &[Situation] = &[
    // Nothing is wrong.
    Situation { name: "healthy, 1 s", flags: &[("--rate", "200"), ("-d", "1s")], ..BASE },
    Situation { name: "healthy, 3 s", flags: &[("--rate", "200"), ("-d", "3s")], ..BASE },
    Situation { name: "healthy, 10 s", flags: &[("--rate", "200"), ("-d", "10s")], ..BASE },
    Situation { name: "healthy, counted", flags: &[("--rate", "50"), ("-n", "100")], ..BASE },
    Situation {
        name: "healthy, poisson",
        flags: &[("--rate", "200"), ("-d", "5s"), ("--arrival", "poisson")],
        ..BASE
    },
    Situation { name: "healthy, rare", flags: &[("--rate", "1"), ("-d", "20s")], ..BASE },
    Situation {
        name: "half busy queue",
        server: || Behaviour {
            service: Law::Exponential { mean: MS * 2 },
            concurrency: Concurrency::SingleQueue,
            ..Behaviour::default()
        },
        flags: &[("--rate", "250"), ("-d", "10s"), ("--arrival", "poisson")],
        ..BASE
    },
    Situation {
        name: "slow answers that come",
        server: || constant(SECOND * 2),
        flags: &[("--rate", "100"), ("-d", "12s")],
        ..BASE
    },
    Situation {
        name: "a ramp",
        server: || constant(MS * 100),
        flags: &[("--stages", "5s@500,5s@1000")],
        ..BASE
    },
    Situation {
        name: "some slow answers",
        server: || bimodal(SECOND, 0.1),
        flags: &[("--rate", "100"), ("-d", "10s")],
        ..BASE
    },
    Situation {
        name: "an outage in the warm-up",
        server: || freezing(500, 1_500),
        flags: &[("--rate", "100"), ("--warmup", "4s"), ("-d", "5s")],
        ..BASE
    },
    Situation {
        name: "some 404",
        server: || statuses(404, 0.3),
        flags: &[("--rate", "100"), ("-d", "5s")],
        ..BASE
    },
    // What a run cannot show.
    Situation {
        name: "answers slower than the run",
        server: || constant(SECOND * 3),
        flags: &[("--rate", "100"), ("-d", "2s")],
        ..UNKNOWN
    },
    Situation {
        name: "filling up",
        server: || bimodal(SECOND * 5, 0.1),
        flags: &[("--rate", "200"), ("-d", "6s")],
        ..UNKNOWN
    },
    Situation {
        name: "too short",
        server: || constant(MS * 200),
        flags: &[("--rate", "200"), ("-d", "1s")],
        ..UNKNOWN
    },
    Situation {
        name: "nothing answered",
        server: || dropping(1.0),
        flags: &[("--rate", "50"), ("-d", "2s"), ("--drain", "2s")],
        limited_by: LimitedBy::Unknown,
        words: &["no request was answered"],
        outcome: RunOutcome::Fail,
        ..BASE
    },
    // Overload.
    Situation {
        name: "twice the capacity, 2 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "2s")],
        ..OVERLOADED
    },
    Situation {
        name: "twice the capacity, 3 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "3s")],
        ..OVERLOADED
    },
    Situation {
        name: "four times the capacity, 3 s",
        server: || capacity(100),
        flags: &[("--rate", "400"), ("-d", "3s")],
        ..OVERLOADED
    },
    Situation {
        name: "twice the capacity, 10 s",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("-d", "10s")],
        ..OVERLOADED
    },
    Situation {
        name: "a tenth above the capacity",
        server: || capacity(100),
        flags: &[("--rate", "110"), ("-d", "10s")],
        ..OVERLOADED
    },
    Situation {
        name: "overload after a warm-up",
        server: || capacity(100),
        flags: &[("--rate", "200"), ("--warmup", "3s"), ("-d", "4s")],
        ..OVERLOADED
    },
    Situation {
        name: "overload, then calm",
        server: || capacity(150),
        flags: &[("--stages", "2s@300,1ms@50,4s@50")],
        words: &["grew to 302 until 2.00 s", "and fell to 0 again", "fewer than arrived"],
        ..TARGET
    },
    Situation {
        name: "few connections before a queue",
        server: || capacity(500),
        flags: &[("--rate", "1000"), ("-c", "5"), ("-d", "3s")],
        words: &["wait for one another"],
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
        ..TARGET
    },
    // Standstills.
    Situation {
        name: "frozen at the end, thawed in the drain",
        server: || freezing(6_000, 6_000),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 7.00 s to 10.0 s, with 399 requests in flight"],
        ..TARGET
    },
    Situation {
        name: "frozen in the middle",
        server: || freezing(4_000, 3_500),
        flags: &[("--rate", "100"), ("-d", "12s")],
        words: &["no answer from 5.00 s to 7.00 s, with 300 requests in flight"],
        ..TARGET
    },
    Situation {
        name: "frozen for most of the run",
        server: || freezing(2_000, 7_500),
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 3.00 s to 9.00 s"],
        ..TARGET
    },
    Situation {
        name: "frozen from the start",
        server: || freezing(0, 3_500),
        flags: &[("--rate", "100"), ("-d", "12s")],
        words: &["no answer from 1.00 s to 3.00 s"],
        ..TARGET
    },
    Situation {
        name: "frozen twice",
        server: || {
            let again = freezing(8_000, 2_500).pauses;
            let once = freezing(3_000, 3_500);
            Behaviour { pauses: [once.pauses, again].concat(), ..constant(MS * 2) }
        },
        flags: &[("--rate", "100"), ("-d", "14s")],
        words: &["no answer from 4.00 s to 6.00 s", ", and once more"],
        ..TARGET
    },
    Situation {
        name: "frozen for good",
        server: || freezing(2_000, 900_000),
        flags: &[("--rate", "100"), ("-d", "6s"), ("--drain", "5s")],
        words: &["the target stopped answering: no answer from 3.00 s to 11.0 s"],
        outcome: RunOutcome::Fail,
        ..TARGET
    },
    Situation {
        name: "frozen for good, few connections",
        server: || freezing(1_500, 900_000),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "5s")],
        words: &["the target stopped answering"],
        outcome: RunOutcome::Fail,
        ..TARGET
    },
    Situation {
        name: "frozen for good, dropping",
        server: || freezing(1_500, 900_000),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "5s"), ("--overload", "drop")],
        words: &["the target stopped answering"],
        outcome: RunOutcome::Fail,
        ..TARGET
    },
    Situation {
        name: "frozen, closed",
        server: || freezing(3_000, 3_500),
        flags: &[("-c", "8"), ("-d", "10s")],
        words: &["no answer from 4.00 s to 6.00 s, with 8 requests in flight"],
        on_http2: false,
        ..TARGET
    },
    Situation {
        name: "frozen for good, closed",
        server: || freezing(3_000, 900_000),
        flags: &[("-c", "8"), ("-d", "8s"), ("--drain", "5s")],
        words: &["the target stopped answering: no answer from 4.00 s to 13.0 s"],
        outcome: RunOutcome::Fail,
        on_http2: false,
        ..TARGET
    },
    Situation {
        name: "frozen, one user",
        server: || freezing(3_000, 3_500),
        flags: &[("-c", "1"), ("-d", "10s")],
        words: &["no answer from 4.00 s to 6.00 s, with 1 request in flight"],
        on_http2: false,
        ..TARGET
    },
    // What hangs.
    Situation {
        name: "some are never answered",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--drain", "2s")],
        words: &["of the requests were never answered", "took 2.10 ms at most"],
        ..TARGET
    },
    Situation {
        name: "some hang, few connections",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-c", "8"), ("-d", "5s"), ("--drain", "2s")],
        words: &["the target stopped answering", "with 8 requests in flight"],
        on_http2: false,
        outcome: RunOutcome::Fail,
        ..TARGET
    },
    Situation {
        name: "some time out",
        server: || dropping(0.05),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--timeout", "500ms")],
        words: &["not served, most of them: timed out"],
        ..TARGET
    },
    Situation {
        name: "some time out, few connections",
        server: || dropping(0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "5s"), ("--timeout", "500ms")],
        words: &["not served, most of them: timed out"],
        on_http2: false,
        ..TARGET
    },
    // What is refused, or fails.
    Situation {
        name: "a limiter",
        server: || statuses(429, 0.74),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["the target refused ", "with 429"],
        ..TARGET
    },
    Situation {
        name: "a limiter, closed",
        server: || statuses(429, 0.74),
        flags: &[("-c", "4"), ("-d", "2s")],
        words: &["the target refused ", "with 429"],
        ..TARGET
    },
    Situation {
        name: "load shedding",
        server: || statuses(503, 0.3),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["the target refused ", "with 503"],
        ..TARGET
    },
    Situation {
        name: "errors",
        server: || statuses(500, 0.1),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["were not served, most of them: status_5xx"],
        ..TARGET
    },
    Situation {
        name: "resets",
        server: || faulty(Faults { reset: 0.1, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "5s"), ("--no-resend", "")],
        words: &["were not served"],
        ..TARGET
    },
    Situation {
        name: "truncated bodies",
        server: || faulty(Faults { truncated_body: 0.25, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "5s")],
        words: &["were not served"],
        ..TARGET
    },
    Situation {
        name: "refused connections",
        server: || faulty(Faults { refuse_connect: 1.0, ..Faults::default() }),
        flags: &[("--rate", "100"), ("-d", "2s")],
        words: &["were not served, most of them: connect_refused"],
        outcome: RunOutcome::Fail,
        ..TARGET
    },
    // Too little was asked with.
    Situation {
        name: "few connections",
        server: || constant(MS * 10),
        flags: &[("--rate", "1000"), ("-c", "5"), ("-d", "3s")],
        limited_by: LimitedBy::ConnectionLimit,
        words: &["carry at most 495/s of the 1,000/s asked for"],
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
    },
    Situation {
        name: "few connections for some slow answers",
        server: || bimodal(MS * 500, 0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "4s")],
        limited_by: LimitedBy::ConnectionLimit,
        words: &["4 connections"],
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
    },
    Situation {
        name: "few connections, dropping",
        server: || bimodal(MS * 500, 0.2),
        flags: &[("--rate", "100"), ("-c", "4"), ("-d", "4s"), ("--overload", "drop")],
        limited_by: LimitedBy::ConnectionLimit,
        words: &["4 connections"],
        outcome: RunOutcome::NoVerdict,
        on_http2: false,
    },
    Situation {
        name: "few users",
        server: || constant(MS * 10),
        flags: &[("-c", "32"), ("-d", "2s")],
        limited_by: LimitedBy::ConnectionLimit,
        words: &["32 users"],
        on_http2: false,
        ..BASE
    },
    Situation {
        name: "users before a queue",
        server: || capacity(1_000),
        flags: &[("-c", "32"), ("-d", "2s")],
        words: &["wait for one another"],
        on_http2: false,
        ..TARGET
    },
    // Two causes at once: the one that explains more comes first.
    Situation {
        name: "errors and a standstill",
        server: || Behaviour { pauses: freezing(3_000, 3_500).pauses, ..statuses(500, 0.1) },
        flags: &[("--rate", "100"), ("-d", "10s")],
        words: &["no answer from 4.00 s to 6.00 s"],
        ..TARGET
    },
    Situation {
        name: "a limiter before a queue",
        server: || Behaviour { faults: statuses(429, 0.3).faults, ..capacity(100) },
        flags: &[("--rate", "200"), ("-d", "5s")],
        words: &["the target refused"],
        ..TARGET
    },
];

/// The seeds of each situation. `PLIMSOLL_SITUATION_SEEDS` sets another number.
const SEEDS: u64 = 3;

fn seeds() -> u64 {
    std::env::var("PLIMSOLL_SITUATION_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

/// Returns what is wrong with what is said of a run of the situation.
fn misjudged(situation: &Situation, flags: &[(&'static str, &str)], seed: u64) -> Option<String> {
    let seed_text = seed.to_string();
    let flags = [flags, &[("--seed", seed_text.as_str())]].concat();
    let plan = plan(&flags);
    let options = SimOptions { seed, ..world((situation.server)()) };
    let (mut record, _) = carry_out(&plan, options);
    record.thresholds = judge_thresholds(&plan.thresholds, &plan.outline(), &record);
    let limit = &record.verdict.limited_by;
    let headline = Headline::of(&RunFacts::of(&record));
    let said = situation.words.iter().all(|words| limit.evidence.contains(words));
    if limit.what == situation.limited_by && said && headline.outcome == situation.outcome {
        return None;
    }
    let reasons: Vec<&str> = record.verdict.reasons.iter().map(|reason| reason.evidence.as_str()).collect();
    let in_flight: Vec<u64> = record.intervals.iter().map(|interval| interval.in_flight).collect();
    Some(format!(
        "seed {seed}: {:?} \"{}\", {:?} {reasons:?}, in flight {in_flight:?}",
        limit.what, limit.evidence, headline.outcome
    ))
}

#[test]
fn each_situation_is_called_what_it_is() {
    let (mut wrong, mut runs) = (Vec::new(), 0);
    for situation in SITUATIONS {
        let protocols: &[&[(&'static str, &str)]] =
            if situation.on_http2 { &[&[], &[("--http2", "")]] } else { &[&[]] };
        for more in protocols {
            let flags = [situation.flags, more].concat();
            for seed in 1..=seeds() {
                runs += 1;
                if let Some(what) = misjudged(situation, &flags, seed) {
                    let http2 = if more.is_empty() { "" } else { ", HTTP/2" };
                    wrong.push(format!("{}{http2}: {what}", situation.name));
                }
            }
        }
    }
    assert!(SITUATIONS.len() >= 50, "{}", SITUATIONS.len());
    assert!(wrong.is_empty(), "{} of {runs} runs are misjudged:\n{}", wrong.len(), wrong.join("\n"));
}

/// A server whose backlog is full answers no connect. Arrivals for it waited for a connection until the end
/// and were never started, which was called the generator's fault, or that of too few connections.
#[test]
fn a_target_that_takes_no_connections_makes_no_run_invalid() {
    let full = || faulty(Faults { silent_connect: 1.0, ..Faults::default() });
    let other = Endpoint::Tcp(([127, 0, 0, 2], 80).into());
    let loads: [Flags; 6] = [
        &[("--timeout", "300ms")],
        &[("-c", "16")],
        &[("-c", "16"), ("-t", "2")],
        &[("-c", "16"), ("--connect-timeout", "300ms")],
        &[("-c", "16"), ("--overload", "drop")],
        &[("-c", "16"), ("--http2", ""), ("-m", "1")],
    ];
    for load in loads {
        for is_alone in [true, false] {
            let second = if is_alone { vec![] } else { vec![("--url", "http://other.test/")] };
            let flags = [&second[..], &[("--rate", "100"), ("-d", "3s")], load].concat();
            let servers = vec![(server(), full()), (other.clone(), constant(MS * 2))];
            let addresses = [server(), other.clone()].map(|endpoint| vec![endpoint.into()].into());
            let targets = if is_alone { &addresses[..1] } else { &addresses[..] };
            let options = SimOptions { servers, ..SimOptions::default() };
            let (record, _) = carry_out_at(&plan(&flags), options, targets, &Control::default());
            let verdict = &record.verdict;
            assert!(verdict.valid, "{flags:?}: {:?} {:?}", verdict.reasons, record.accounting);
            assert_eq!(verdict.limited_by.what, LimitedBy::Target, "{flags:?}: {:?}", verdict.limited_by);
        }
    }
}
