//! Every rule of the verdict, on both sides of its limit.

mod attribution;
mod causes;
mod own_lag;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::course::{Steadiness, little, steadiness};
use plimsoll_metrics::{
    Accounting, ConnectionRecord, Http2Record, Interval, IterationRecord, LimitedBy, Model, Peer, RunRecord,
    Stall, StepRecord, Verdict, WorkerRecord, judge,
};

const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// `count` samples of each value.
fn filled(values: &[(Nanos, u64)]) -> Histogram {
    let mut histogram = Histogram::new();
    for (value, count) in values {
        for _ in 0..*count {
            histogram.record(value.0);
        }
    }
    histogram
}

/// 10 s at 1,000/s over one worker, each request served in 1 ms, each started 10 µs late: nothing to complain
/// of.
fn good(model: Model) -> RunRecord {
    let count = 10_000;
    RunRecord {
        duration: ms(10_000),
        warmup: ms(1_000),
        completed_in_window: count,
        target_per_second: (model == Model::Open).then_some(1_000.0),
        accounting: Accounting { scheduled: count, started: count, ok: count, ..Accounting::default() },
        iterations: IterationRecord { started: count, completed: count, ..IterationRecord::default() },
        total: StepRecord {
            ok: count,
            response_time: filled(&[(us(1_010), count)]),
            service_time: filled(&[(us(1_000), count)]),
            start_lag: filled(&[(us(10), count)]),
            ..StepRecord::default()
        },
        connections: ConnectionRecord { limit: 64, ..ConnectionRecord::default() },
        workers: vec![
            WorkerRecord {
                wall: ms(10_000),
                cpu_user: ms(1_000),
                cpu_system: ms(2_000),
                ..WorkerRecord::default()
            };
            2
        ],
        backend: "simulated".into(),
        ..RunRecord::empty(model)
    }
}

/// A step of a scenario whose requests took 60 µs, with this start lag.
fn timed(scenario: &str, lag: Nanos) -> StepRecord {
    StepRecord {
        scenario: scenario.to_owned(),
        ok: 5_000,
        start_lag: filled(&[(lag, 5_000)]),
        response_time: filled(&[(us(60), 5_000)]),
        ..StepRecord::default()
    }
}

/// A run of both workers with this many supplied bodies each, this many of them late.
fn supplied(bodies: u64, late: u64) -> RunRecord {
    let mut record = good(Model::Open);
    for worker in &mut record.workers {
        (worker.bodies, worker.bodies_late) = (bodies, late);
    }
    record
}

#[test]
fn uncertain_instants_of_sending_make_a_run_invalid() {
    for model in [Model::Open, Model::Closed] {
        let mut record = good(model);
        record.workers[1].send_time_uncertain = 100;
        assert_eq!(codes(&record), "valid");
        record.workers[0].send_time_uncertain = 1;
        assert_eq!(codes(&record), "send_time_uncertain");
        let reason = &judge(&record).reasons[0];
        assert!(reason.evidence.contains("101 of the requests (1.0 %)"), "{}", reason.evidence);
    }
}

#[test]
fn the_hint_for_a_start_lag_follows_its_cause() {
    let hint = |change: fn(&mut RunRecord)| {
        let mut record = good(Model::Open);
        record.total.start_lag = filled(&[(us(990), 10_000)]);
        change(&mut record);
        let verdict = judge(&record);
        let all = verdict.reasons.into_iter().chain(verdict.warnings);
        let mut of_lag = all.filter(|reason| reason.code.name() == "start_lag");
        of_lag.next().expect("a reason or a warning").hint
    };
    assert!(hint(|r| r.workers[0].cpu_user = ms(7_000)).contains("more threads"));
    assert!(hint(|r| r.pacing_budget = us(800)).contains("--pacing shared"));
    assert!(hint(|_| {}).contains("--precise"));
    // Another process that takes the CPU is the cause, and has the hint.
    assert_eq!(hint(|r| r.workers[0].run_delay = Some(ms(2_000))), "");
}

#[test]
fn bodies_that_are_made_late_are_told() {
    assert_eq!(codes(&supplied(1_000, 10)), "valid");
    assert_eq!(codes(&supplied(1_000, 11)), "valid, warns bodies_late");
    assert_eq!(codes(&supplied(0, 0)), "valid");
}

/// `"start_lag stall"`, `"valid"`, `"valid, warns start_lag"`: the codes of a verdict in one line.
fn codes(record: &RunRecord) -> String {
    let verdict = judge(record);
    let names = |reasons: &[plimsoll_metrics::Reason]| {
        reasons.iter().map(|reason| reason.code.name()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(verdict.valid, verdict.reasons.is_empty());
    let found = || verdict.reasons.iter().chain(&verdict.warnings);
    assert!(found().all(|reason| !reason.evidence.is_empty()), "{verdict:?}");
    // A finding that follows from another one, or from the limit, has no hint of its own; each cause has one.
    let mut hints = found().map(|reason| &reason.hint).chain([&verdict.limited_by.hint]);
    assert!(found().next().is_none() || hints.any(|hint| !hint.is_empty()), "{verdict:?}");
    let threads = |hint: &str| hint.contains("more threads") || hint.contains("fewer threads");
    assert!(found().filter(|reason| threads(&reason.hint)).count() <= 1, "{verdict:?}");
    let mut line = if verdict.valid { "valid".to_owned() } else { names(&verdict.reasons) };
    if !verdict.warnings.is_empty() {
        line = format!("{line}, warns {}", names(&verdict.warnings));
    }
    line
}

/// Starts the requests of a run that takes a millisecond to serve each so much later.
fn delay(record: &mut RunRecord, lags: &[(Nanos, u64)]) {
    let late: Vec<_> = lags.iter().map(|(lag, count)| (us(1_000) + *lag, *count)).collect();
    (record.total.start_lag, record.total.response_time) = (filled(lags), filled(&late));
}

/// A change to a good run and the codes that it must lead to.
type Case = (&'static str, fn(&mut RunRecord), &'static str);

fn check(model: Model, cases: &[Case]) {
    for (name, change, expected) in cases {
        let mut record = good(model);
        change(&mut record);
        assert_eq!(codes(&record), *expected, "{name}");
    }
}

fn limited(record: &mut RunRecord, blocked: Nanos, started: u64) {
    record.connections.limit = 5;
    record.connections.blocked = blocked;
    record.connections.blocked_at_limit = blocked;
    record.total.service_time = filled(&[(ms(10), 1_000)]);
    (record.accounting.started, record.iterations.started) = (started, started);
    record.accounting.never_started = record.accounting.scheduled - started;
}

#[test]
fn a_run_has_not_been_judged_by_default() {
    assert!(!Verdict::default().valid);
}

#[test]
fn what_nobody_had_asked_for_is_a_warning() {
    fn unsolicited(record: &mut RunRecord) {
        (record.connections.opened, record.connections.unsolicited) = (3_000, 1_200);
    }
    for model in [Model::Open, Model::Closed] {
        check(model, &[("responses", unsolicited, "valid, warns unsolicited_data")]);
    }
    let mut record = good(Model::Closed);
    unsolicited(&mut record);
    assert_eq!(
        judge(&record).warnings[0].evidence,
        "1,200 of 3,000 connections had responses or bytes that nobody had asked for, and were given up: \
         times of requests on them may be those of others"
    );
}

#[test]
fn good_runs_are_valid() {
    check(Model::Open, &[("open", |_| {}, "valid")]);
    check(Model::Closed, &[("closed", |_| {}, "valid")]);
}

#[test]
fn start_lag() {
    check(
        Model::Open,
        &[
            // One arrival interval is 1 ms here.
            ("10 % late", |r| delay(r, &[(us(10), 9_000), (us(1_010), 1_000)]), "valid, warns start_lag"),
            (
                "more than 10 % late",
                |r| r.total.start_lag = filled(&[(us(10), 8_999), (us(1_010), 1_001)]),
                "start_lag",
            ),
            (
                "all late by less than an interval, which is most of the response time",
                |r| r.total.start_lag = filled(&[(us(990), 10_000)]),
                "start_lag",
            ),
            (
                "the same where wake-ups are shared on purpose",
                |r| {
                    r.pacing_budget = us(800);
                    r.total.start_lag = filled(&[(us(790), 10_000)]);
                },
                "valid, warns start_lag",
            ),
            (
                "a median lag of a tenth of the response time",
                |r| {
                    r.total.response_time = filled(&[(ms(10), 10_000)]);
                    r.total.start_lag = filled(&[(us(990), 10_000)]);
                },
                "valid, warns start_lag",
            ),
            (
                "a median lag of more than a tenth of the response time",
                |r| {
                    r.total.response_time = filled(&[(ms(9), 10_000)]);
                    r.total.start_lag = filled(&[(us(990), 10_000)]);
                },
                "start_lag",
            ),
            (
                "a median lag that an idle core with a good timer has",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(19), 10_000)]);
                },
                "valid",
            ),
            (
                "one that it does not have",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(21), 10_000)]);
                },
                "start_lag",
            ),
            (
                "one of the requests behind an answer, whose arrivals are on time",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(1), 4_900), (us(27), 5_100)]);
                    r.steps = vec![timed("", us(1)), timed("", us(27))];
                },
                "valid, warns start_lag",
            ),
            (
                "arrivals that lag as much as the requests behind them",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(27), 10_000)]);
                    r.steps = vec![timed("", us(27)), timed("", us(27))];
                },
                "start_lag",
            ),
            (
                "arrivals of several scenarios, most of which lag",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(27), 10_000)]);
                    r.steps =
                        vec![timed("a", us(1)), timed("a", us(27)), timed("b", us(27)), timed("c", us(27))];
                },
                "start_lag",
            ),
            (
                "a first step that was never sent",
                |r| {
                    r.total.response_time = filled(&[(us(60), 10_000)]);
                    r.total.start_lag = filled(&[(us(1), 4_900), (us(27), 5_100)]);
                    r.steps = vec![StepRecord::default(), timed("", us(1)), timed("", us(27))];
                },
                "valid, warns start_lag",
            ),
            (
                "a fast rate, of which some arrivals share wake-ups",
                |r| {
                    r.target_per_second = Some(50_000.0);
                    r.total.start_lag = filled(&[(us(1), 600), (us(99), 400)]);
                },
                "valid",
            ),
            (
                "the same, more than a tenth of them too late",
                |r| {
                    r.target_per_second = Some(50_000.0);
                    r.total.start_lag = filled(&[(us(1), 600), (us(103), 400)]);
                },
                "start_lag",
            ),
            (
                "the same with precise pacing, which was asked for to avoid it",
                |r| {
                    r.precise = true;
                    r.total.start_lag = filled(&[(us(990), 10_000)]);
                },
                "start_lag",
            ),
            (
                "p99 at 5 % of the service time",
                |r| {
                    r.total.service_time = filled(&[(ms(10), 100)]);
                    r.total.response_time = filled(&[(ms(10), 100)]);
                    r.total.start_lag = filled(&[(us(499), 100)]);
                },
                "valid",
            ),
            (
                "p99 above 5 % of the service time, which changes no figure by a tenth",
                |r| {
                    r.total.service_time = filled(&[(ms(10), 100)]);
                    r.total.response_time = filled(&[(us(10_503), 100)]);
                    r.total.start_lag = filled(&[(us(503), 100)]);
                },
                "valid",
            ),
            ("p99 within the pacing's slack", |r| r.total.start_lag = filled(&[(us(99), 100)]), "valid"),
            (
                "p99 beyond the pacing's slack, less than a tenth of any figure",
                |r| delay(r, &[(us(10), 9_800), (us(108), 200)]),
                "valid",
            ),
            (
                "more than a tenth of the p99",
                |r| delay(r, &[(us(10), 9_800), (us(125), 200)]),
                "valid, warns start_lag",
            ),
            ("a p99 that too few requests do not have", |r| delay(r, &[(us(10), 98), (us(125), 2)]), "valid"),
            (
                "a target that stood still has a p99 of its own",
                |r| {
                    r.total.service_time = filled(&[(ms(1), 9_800), (ms(1_400), 200)]);
                    r.total.response_time = filled(&[(ms(1), 9_800), (ms(1_402), 200)]);
                    r.total.start_lag = filled(&[(us(10), 9_800), (ms(8), 200)]);
                },
                "valid",
            ),
            (
                "within the pacing budget, which is chosen, and told",
                |r| {
                    r.pacing_budget = us(500);
                    r.total.start_lag = filled(&[(us(599), 100)]);
                },
                "valid, warns start_lag",
            ),
            (
                "one in a hundred is not the p99",
                |r| r.total.start_lag = filled(&[(us(10), 99), (us(900), 1)]),
                "valid",
            ),
            (
                "a fast rate, late by less than the budget and 100 µs",
                |r| {
                    r.target_per_second = Some(1e6);
                    r.pacing_budget = us(200);
                    r.total.start_lag = filled(&[(us(10), 90), (us(299), 10)]);
                },
                "valid",
            ),
            (
                "a fast rate, late by more",
                |r| {
                    r.target_per_second = Some(1e6);
                    r.pacing_budget = us(200);
                    r.total.start_lag = filled(&[(us(305), 100)]);
                },
                "start_lag",
            ),
        ],
    );
    let late = |r: &mut RunRecord| r.total.start_lag = filled(&[(ms(100), 100)]);
    let mut closed = good(Model::Closed);
    late(&mut closed);
    assert_eq!(codes(&closed), "valid", "in the closed model nothing is due");
}

#[test]
fn stalls() {
    fn stall(record: &mut RunRecord, worker: u32, at: Nanos, length: Nanos) {
        record.workers[worker as usize].stalls.push(Stall { worker, at, length });
    }
    let cases: [Case; 6] = [
        ("99 ms", |r| stall(r, 0, ms(2_000), ms(99)), "valid"),
        ("100 ms", |r| stall(r, 1, ms(2_000), ms(100)), "stall"),
        (
            "100 ms in two parts",
            |r| {
                stall(r, 0, ms(2_000), ms(50));
                stall(r, 0, ms(3_000), ms(50));
            },
            "stall",
        ),
        (
            "the same 60 ms on both workers",
            |r| {
                stall(r, 0, ms(2_000), ms(60));
                stall(r, 1, ms(2_000), ms(60));
            },
            "valid",
        ),
        ("in the warm-up, but for 99 ms", |r| stall(r, 0, ms(0), ms(1_099)), "valid"),
        ("in the drain, but for 99 ms", |r| stall(r, 0, ms(10_901), ms(5_000)), "valid"),
    ];
    check(Model::Open, &cases);
    check(Model::Closed, &cases);
}

/// Symptom: "had no CPU for 105.2 % of the time", of a run of two requests.
#[test]
fn no_share_of_the_time_is_more_than_all_of_it() {
    let mut record = good(Model::Closed);
    for worker in &mut record.workers {
        (worker.wall, worker.cpu_user, worker.run_delay) = (ms(1), ms(300), Some(ms(20)));
    }
    let found = judge(&record);
    let evidence: Vec<&str> = found.reasons.iter().map(|reason| reason.evidence.as_str()).collect();
    assert!(evidence.iter().any(|text| text.contains("used 100.0 % of its core")), "{evidence:?}");
    assert!(evidence.iter().any(|text| text.contains("no CPU for 100.0 % of the time")), "{evidence:?}");
}

/// Symptom: "stood still for 3.03 s", of many stalls of which the longest was 238 ms.
#[test]
fn several_stalls_are_no_single_one() {
    let mut record = good(Model::Open);
    for (at, length) in [(2_000, 58), (2_500, 238), (3_000, 100)] {
        record.workers[0].stalls.push(Stall { worker: 0, at: ms(at), length: ms(length) });
    }
    assert_eq!(
        judge(&record).reasons[0].evidence,
        "the generator itself stood still 3 times, for 396 ms in all and 238 ms at the longest (worker 0, first \
         at 2.00 s of the run)"
    );
}

/// Symptom: a script that held the worker up was told as other work on the machine.
#[test]
fn own_work_that_holds_a_worker_up_is_named() {
    let held_up = |stalled: Nanos, calls: &[Nanos]| {
        let mut record = good(Model::Open);
        record.steps = vec![StepRecord { name: "GET /search".to_owned(), ..record.total.clone() }];
        if stalled > Nanos::ZERO {
            record.workers[1].stalls.push(Stall { worker: 1, at: ms(2_000), length: stalled });
        }
        calls.iter().for_each(|length| record.workers[1].long_calls.note(0, *length));
        judge(&record)
    };
    let one = held_up(ms(70), &[ms(60)]);
    assert!(one.valid, "{one:?}");
    let expected =
        "the generator itself stood still for its own work on a request of `GET /search` (60.0 ms)";
    assert_eq!(one.warnings[0].evidence, expected);
    let many = held_up(ms(300), &[ms(60), ms(100), ms(60)]);
    assert_eq!(
        many.reasons[0].evidence,
        "the generator itself stood still for 300 ms (worker 1, at 2.00 s of the run), most of it for its \
         own work on a request of `GET /search` (100 ms, the longest of 3)"
    );
    for verdict in [&one.warnings[0], &many.reasons[0]] {
        assert!(verdict.hint.contains("a script, or the search of a large body"), "{verdict:?}");
    }
    // Most of it had another cause.
    let other = held_up(ms(300), &[ms(60)]);
    assert!(other.reasons[0].hint.contains("keep other work off this machine"), "{other:?}");
}

#[test]
fn workers_that_do_not_come_back_make_a_run_invalid() {
    let cases: [Case; 1] = [("one of two", |r| r.workers[1].absent = true, "worker_missing")];
    check(Model::Open, &cases);
    check(Model::Closed, &cases);
    let mut record = good(Model::Closed);
    record.workers.iter_mut().for_each(|worker| worker.absent = true);
    assert!(judge(&record).reasons[0].evidence.starts_with("workers 0, 1 of 2 did not come back"));
}

/// Symptom: a server that destroyed the connection of every fifth request looked as if nothing was wrong.
#[test]
fn many_requests_that_are_sent_again_are_a_warning() {
    fn resent(record: &mut RunRecord, all: u64, closed: u64) {
        (record.accounting.resent, record.accounting.resent_closed) = (all, closed);
    }
    for model in [Model::Open, Model::Closed] {
        check(
            model,
            &[
                ("one of a hundred", |r| resent(r, 100, 100), "valid"),
                ("more", |r| resent(r, 101, 101), "valid, warns sent_again"),
                ("more, none of a closed connection", |r| resent(r, 101, 0), "valid, warns sent_again"),
            ],
        );
    }
    let mut record = good(Model::Open);
    let closed = "since the target had closed the connection without an answer";
    let refused = "since the target had not processed them (GOAWAY, REFUSED_STREAM)";
    for (all, of_closed, expected) in [
        (2_000, 2_000, format!("2,000 requests were sent again, {closed} (20.0 % of all)")),
        (200, 0, format!("200 requests were sent again, {refused} (2.0 % of all)")),
        (
            300,
            100,
            format!("300 requests were sent again: 100 {closed}, the others {refused} (3.0 % of all)"),
        ),
    ] {
        resent(&mut record, all, of_closed);
        let [warning] = &judge(&record).warnings[..] else { panic!("{:?}", judge(&record).warnings) };
        assert_eq!(warning.evidence, expected);
        assert_eq!(warning.hint.contains("may have processed them twice"), of_closed > 0, "{warning:?}");
    }
}

#[test]
fn arrivals_without_data_are_no_fault_of_the_generator() {
    fn without_data(record: &mut RunRecord, without: u64, waiting: u64) {
        let started = record.accounting.scheduled - without - waiting;
        (record.accounting.started, record.iterations.started) = (started, started);
        (record.accounting.never_started, record.accounting.without_data) = (without + waiting, without);
    }
    check(
        Model::Open,
        &[
            ("one", |r| without_data(r, 1, 0), "valid, warns data_ended"),
            ("most", |r| without_data(r, 9_000, 0), "valid, warns data_ended"),
            ("others wait", |r| without_data(r, 5_000, 51), "rate_not_met, warns data_ended"),
        ],
    );
}

#[test]
fn the_rate_and_the_limit_of_connections() {
    fn started(record: &mut RunRecord, started: u64) {
        (record.accounting.started, record.iterations.started) = (started, started);
        record.accounting.dropped = record.accounting.scheduled - started;
    }
    check(
        Model::Open,
        &[
            ("99 %", |r| started(r, 9_900), "valid"),
            ("less than 99 %", |r| started(r, 9_899), "rate_not_met"),
            (
                "less than 99 % because of the limit",
                |r| limited(r, ms(9_800), 5_000),
                "rate_not_met connection_limit",
            ),
            // The workers' wall time is 20 s in all.
            ("1 % of the time at the limit", |r| limited(r, ms(200), 10_000), "valid"),
            ("more than that", |r| limited(r, ms(202), 10_000), "valid, warns connection_limit"),
            (
                "late starts at the limit are the limit's fault",
                |r| {
                    limited(r, ms(202), 10_000);
                    r.total.start_lag = filled(&[(ms(40), 100)]);
                },
                "connection_limit",
            ),
            (
                "late starts below the limit are not",
                |r| {
                    limited(r, ms(200), 10_000);
                    r.total.start_lag = filled(&[(ms(40), 100)]);
                },
                "start_lag",
            ),
        ],
    );
}

#[test]
fn the_limit_of_connections_states_what_it_carries_and_what_is_needed() {
    let mut record = good(Model::Open);
    limited(&mut record, ms(19_600), 5_000);
    let verdict = judge(&record);
    let evidence = &verdict.reasons[1].evidence;
    assert_eq!(
        evidence,
        "5 connections with a mean service time of 10.0 ms per reply carry at most 500/s of the 1,000/s asked for; \
         due arrivals waited for a free connection during 98.0 % of the time"
    );
    // Ten in flight on average, and sometimes as many more by chance.
    assert_eq!(verdict.reasons[1].hint, "use -c 20 or more, or a lower rate");
    // Two requests at once on each connection carry twice as much.
    record.connections.depth = 2;
    let verdict = judge(&record);
    assert!(verdict.reasons[1].evidence.contains("at most 1,000/s of the 1,000/s"), "{verdict:?}");
    assert_eq!(verdict.reasons[1].hint, "use -c 10 or more, or a lower rate");
}

/// 100 connections for 20,000/s, a little of the time all of them taken; replies take 563 µs on average.
fn hundred_connections(record: &mut RunRecord, slow: Nanos) {
    record.target_per_second = Some(20_000.0);
    (record.connections.limit, record.connections.blocked_at_limit) = (100, ms(600));
    record.total.service_time = filled(&[(us(563), 9_900), (slow, 100)]);
    record.total.start_lag = filled(&[(us(10), 8_000), (ms(30), 2_000)]);
}

#[test]
fn connections_that_carry_more_than_is_asked_for_are_no_limit() {
    // The generator did not run, and 600 arrivals were due at once: that is a stall, and nothing else.
    let mut record = good(Model::Open);
    hundred_connections(&mut record, ms(1));
    record.workers[0].stalls.push(Stall { worker: 0, at: ms(3_000), length: ms(300) });
    assert_eq!(codes(&record), "stall");
    // If nothing else shows it, the lag does.
    record.workers[0].stalls.clear();
    assert_eq!(codes(&record), "start_lag");
    let verdict = judge(&record);
    assert_eq!(
        verdict.reasons[0].evidence,
        "start lag p99 is 30.0 ms: all connections were taken during 3.0 % of the time, though replies took \
         1.00 ms at most, and the generator read replies late"
    );
    assert_eq!(verdict.limited_by.what, LimitedBy::Generator);
    // The target was slow for a moment: the connections are too few for a while, and the suggested number is
    // enough for that.
    hundred_connections(&mut record, ms(20));
    assert_eq!(codes(&record), "connection_limit");
    let verdict = judge(&record);
    assert_eq!(
        verdict.reasons[0].evidence,
        "replies took 20.0 ms at times (on average 757 µs), which at the 20,000/s asked for is 400 requests in \
         flight on 100 connections; due arrivals waited for a free connection during 3.0 % of the time"
    );
    assert_eq!(verdict.reasons[0].hint, "use -c 400 or more, or a lower rate");
    // A single slow reply is not a slow moment of the target.
    record.total.service_time = filled(&[(us(563), 9_990), (ms(2_000), 10)]);
    assert_eq!(codes(&record), "start_lag");
    // If it stands still once, that is its own doing, and the measurement is none the worse.
    record.total.service_time = filled(&[(us(563), 100_000), (ms(1_000), 60)]);
    assert_eq!(codes(&record), "valid, warns connection_limit");
    // No number of connections helps if it does so again and again.
    record.total.service_time = filled(&[(us(563), 100_000), (ms(600), 60)]);
    record.connections.blocked_at_limit = ms(4_000);
    let hint = &judge(&record).reasons[0].hint;
    assert_eq!(hint, "look at the target in its slow moments: 12,000 connections would be needed");
}

#[test]
fn no_limit_of_connections_is_blamed_for_less_than_it_carries() {
    let per_second = |text: &str, behind: &str| {
        let (_, rest) = text.split_once(behind)?;
        rest.split('/').next()?.replace(',', "").parse::<f64>().ok()
    };
    for limit in [5, 9, 10, 11, 15, 19, 20, 21, 40] {
        let mut record = good(Model::Open);
        limited(&mut record, ms(19_600), 5_000);
        record.connections.limit = limit;
        for reason in judge(&record).reasons {
            let said = per_second(&reason.evidence, "carry at most ");
            let asked = per_second(&reason.evidence, "of the ");
            assert!(said.is_none_or(|said| Some(said) <= asked), "{limit}: {reason:?}");
            let wanted = per_second(&reason.hint.replace(" or", "/"), "use -c ");
            assert!(wanted.is_none_or(|wanted| wanted > limit as f64), "{limit}: {reason:?}");
        }
    }
}

/// Iterations of three requests: `started` of 10,000 within 10 s, the others dropped.
fn of_three_steps(record: &mut RunRecord, started: u64) {
    record.steps = ["create", "update", "delete"]
        .map(|name| StepRecord {
            name: name.to_owned(),
            scenario: "crud".to_owned(),
            ..StepRecord::default()
        })
        .to_vec();
    record.iterations = IterationRecord { started, completed: started, ..IterationRecord::default() };
    let (requests, dropped) = (started * 3, 10_000 - started);
    record.accounting = Accounting {
        scheduled: requests + dropped,
        started: requests,
        dropped,
        ok: requests,
        ..Accounting::default()
    };
    record.accounting.check().expect("the accounts balance");
}

#[test]
fn the_rate_is_one_of_iterations() {
    check(
        Model::Open,
        &[
            ("99 %", |r| of_three_steps(r, 9_900), "valid"),
            ("less than 99 %, but of the requests more", |r| of_three_steps(r, 9_710), "rate_not_met"),
        ],
    );
    let mut record = good(Model::Open);
    of_three_steps(&mut record, 9_710);
    assert_eq!(record.arrivals(), 10_000);
    assert_eq!(
        judge(&record).reasons[0].evidence,
        "9,710 of 10,000 scheduled iterations were started (97.1 %): 290 dropped, 0 never started"
    );
    let mut record = good(Model::Open);
    limited(&mut record, Nanos::ZERO, 9_710);
    assert_eq!(
        judge(&record).reasons[0].evidence,
        "9,710 of 10,000 scheduled arrivals were started (97.1 %): 0 dropped, 290 never started",
        "with one step each"
    );
}

#[test]
fn every_request_of_an_iteration_needs_a_connection() {
    let mut record = good(Model::Open);
    limited(&mut record, ms(19_600), 5_000);
    of_three_steps(&mut record, 5_000);
    let verdict = judge(&record);
    assert_eq!(
        verdict.reasons[1].evidence,
        "5 connections with a mean service time of 10.0 ms per reply carry at most 500/s of the 3,000/s asked for \
         (1,000 iterations/s of 3 requests); due arrivals waited for a free connection during 98.0 % of the time"
    );
    assert_eq!(verdict.reasons[1].hint, "use -c 47 or more, or a lower rate");
}

#[test]
fn the_requests_of_an_iteration_are_counted_by_scenario() {
    let per_iteration = |steps: &[(&str, &str)]| {
        let mut record = good(Model::Open);
        record.steps = steps
            .iter()
            .map(|(scenario, name)| StepRecord {
                name: (*name).to_owned(),
                scenario: (*scenario).to_owned(),
                ..StepRecord::default()
            })
            .collect();
        record.requests_per_arrival()
    };
    assert_eq!(per_iteration(&[]), 1.0);
    assert_eq!(per_iteration(&[("", "a")]), 1.0);
    assert_eq!(per_iteration(&[("", "a"), ("", "b")]), 1.0, "one step each");
    assert_eq!(per_iteration(&[("x", "a"), ("x", "b"), ("x", "c")]), 3.0);
    assert_eq!(per_iteration(&[("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")]), 2.0);
    assert_eq!(per_iteration(&[("x", "a"), ("x", "b"), ("x", "a"), ("x", "b")]), 2.0, "the same URL twice");
    assert_eq!(per_iteration(&[("x", "a"), ("x", "b"), ("x", "c"), ("", "d")]), 2.0);
}

#[test]
fn the_use_of_the_other_family_is_a_warning() {
    fn switched(record: &mut RunRecord) {
        record.connections.family_switches = 2;
        let addresses = vec!["[::1]:80".to_owned(), "127.0.0.1:80".to_owned()];
        record.peers = vec![Peer { addresses, ..Peer::default() }];
    }
    for model in [Model::Open, Model::Closed] {
        check(model, &[("addresses", switched, "valid, warns address_family")]);
    }
    let mut record = good(Model::Closed);
    switched(&mut record);
    assert_eq!(
        judge(&record).warnings[0].evidence,
        "no connection could be made to the addresses of one family, IPv4 or IPv6, and those of the other \
         were used (2 times, over all threads; [::1]:80, 127.0.0.1:80)"
    );
}

/// Addresses that one worker has used were used.
#[test]
fn addresses_of_all_workers_count_as_used() {
    let peer = |protocol: &str, used: &[&str], unused: &[&str]| {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Peer {
            protocol: protocol.to_owned(),
            addresses: texts(used),
            unused_addresses: texts(unused),
            ..Peer::default()
        }
    };
    let mut all = vec![peer("", &["a"], &["b", "c"])];
    Peer::merge_all(&mut all, [peer("h2", &["a", "b"], &["c"])]);
    Peer::merge_all(&mut all, [peer("http/1.1", &["a"], &["b", "c"])]);
    assert_eq!(all, [peer("h2", &["a", "b"], &["c"])]);
}

#[test]
fn fewer_streams_than_asked_for_are_a_warning_in_the_closed_model() {
    fn allow(record: &mut RunRecord, limit: Option<u32>) {
        record.connections.depth = 100;
        record.connections.http2 =
            Http2Record { connections: 4, streams_asked: 100, stream_limit: limit, ..Http2Record::default() };
    }
    let cases: [Case; 3] = [
        ("no limit", |r| allow(r, None), "valid"),
        ("as many", |r| allow(r, Some(100)), "valid"),
        ("fewer", |r| allow(r, Some(99)), "valid, warns connection_limit"),
    ];
    check(Model::Closed, &cases);
    check(Model::Open, &[("in the open model only what waits tells", |r| allow(r, Some(99)), "valid")]);
    let mut record = good(Model::Closed);
    allow(&mut record, Some(1));
    let warning = |record: &RunRecord| judge(record).warnings[0].evidence.clone();
    assert_eq!(
        warning(&record),
        "the server allows 1 stream on each connection, 100 were asked for: fewer requests were in flight than \
         asked for"
    );
    record.peers = vec![Default::default(); 2];
    assert!(warning(&record).starts_with("a server allows 1 stream on"), "{}", warning(&record));
}

/// A server that lets nothing in: neither late starts nor missing ones are the generator's.
#[test]
fn a_server_that_allows_no_streams_is_no_fault_of_the_generator() {
    fn barred(record: &mut RunRecord, blocked: Nanos) {
        limited(record, blocked, 5_000);
        record.connections.blocked_at_limit = Nanos::ZERO;
        record.total.start_lag = filled(&[(ms(500), 1_000)]);
        record.connections.http2 = Http2Record {
            connections: 5,
            streams_asked: 100,
            barred: 5,
            blocked_while_barred: blocked,
            ..Http2Record::default()
        };
    }
    let cases: [Case; 2] = [
        ("it let nothing in", |r| barred(r, ms(10_000)), "valid"),
        ("for a moment", |r| barred(r, ms(150)), "rate_not_met start_lag"),
    ];
    check(Model::Open, &cases);
    let mut record = good(Model::Open);
    barred(&mut record, ms(10_000));
    let limited_by = judge(&record).limited_by;
    assert_eq!(limited_by.what, LimitedBy::Target);
    assert_eq!(
        limited_by.evidence,
        "the target allows no streams (SETTINGS_MAX_CONCURRENT_STREAMS was 0 on 5 of 5 connections): \
         due arrivals waited for one during 50.0 % of the time"
    );
    // In the closed model nothing is due; requests time out.
    let mut record = good(Model::Closed);
    record.connections.http2 = Http2Record { connections: 2, barred: 1, ..Http2Record::default() };
    assert!(!judge(&record).limited_by.evidence.contains("no streams"));
    record.total.timed_out = record.accounting.started / 2;
    let evidence = judge(&record).limited_by.evidence;
    assert!(evidence.contains("was 0 on 1 of 2 connections): 50.0 % of the requests were not"), "{evidence}");
}

#[test]
fn with_http2_the_limit_is_one_of_streams() {
    let mut record = good(Model::Open);
    limited(&mut record, ms(19_600), 5_000);
    record.connections.depth = 2;
    record.connections.http2 =
        Http2Record { connections: 5, streams_asked: 2, stream_limit: Some(100), ..Http2Record::default() };
    let verdict = judge(&record);
    let reason = &verdict.reasons[1];
    assert_eq!(
        reason.evidence,
        "5 connections of 2 streams each with a mean service time of 10.0 ms per reply carry at most 1,000/s of \
         the 1,000/s asked for; due arrivals waited for a free stream during 98.0 % of the time"
    );
    assert_eq!(reason.hint, "use -c 10 or more, more streams on each (-m), or a lower rate");
    // Asking for more does not help beyond the limit of the server.
    record.connections.depth = 100;
    record.connections.http2.streams_asked = 100;
    record.connections.http2.stream_limit = Some(1);
    let verdict = judge(&record);
    let reason = &verdict.reasons[1];
    assert!(
        reason.evidence.starts_with(
            "5 connections of 1 stream each (the server allows 1 on each, 100 were asked for) with a mean \
             service time of 10.0 ms per reply carry at most 500/s of the 1,000/s asked for; "
        ),
        "{reason:?}"
    );
    assert_eq!(reason.hint, "use -c 20 or more, or a lower rate");
    // The smallest limit of several servers says nothing about what all of them carry.
    record.peers = vec![Default::default(); 2];
    let verdict = judge(&record);
    assert!(
        verdict.reasons[1].evidence.starts_with("the limit of 5 connections of 100 streams"),
        "{verdict:?}"
    );
    // Without a single response there is no service time to reckon with.
    record.total.service_time = Histogram::new();
    let verdict = judge(&record);
    assert_eq!(
        verdict.reasons[1].evidence,
        "the limit of 5 connections of 100 streams each (the server allows 1 on each, 100 were asked for) was \
         reached; due arrivals waited for a free stream during 98.0 % of the time"
    );
    assert_eq!(verdict.reasons[1].hint, "use more connections (-c) or a lower rate");
}

#[test]
fn a_late_start_says_what_it_waited_for() {
    let mut record = good(Model::Open);
    record.total.start_lag = filled(&[(ms(40), 100)]);
    record.connections.blocked = ms(3);
    assert!(judge(&record).reasons[0].evidence.ends_with("waited 3.00 ms in all for a free connection"));
    record.connections.http2.connections = 1;
    assert!(judge(&record).reasons[0].evidence.ends_with("waited 3.00 ms in all for a free stream"));
}

#[test]
fn cpu() {
    fn use_cpu(record: &mut RunRecord, millis: u64) {
        record.workers[1].cpu_user = ms(millis - 4_000);
        record.workers[1].cpu_system = ms(4_000);
    }
    check(
        Model::Open,
        &[
            ("under 95 %", |r| use_cpu(r, 9_499), "valid"),
            ("95 % and on time", |r| use_cpu(r, 9_500), "valid, warns cpu_saturation"),
            (
                "95 % and late",
                |r| {
                    use_cpu(r, 9_500);
                    r.total.start_lag = filled(&[(ms(40), 100)]);
                },
                "start_lag cpu_saturation",
            ),
            (
                "95 % and a little late",
                |r| {
                    use_cpu(r, 9_500);
                    r.total.start_lag = filled(&[(us(10), 95), (us(400), 5)]);
                },
                "cpu_saturation",
            ),
            (
                "all of it, a part of which was polled away",
                |r| {
                    use_cpu(r, 10_000);
                    r.workers[1].polled = ms(501);
                },
                "valid",
            ),
            (
                "all of it, hardly any of which was polled away",
                |r| {
                    use_cpu(r, 10_000);
                    r.workers[1].polled = ms(500);
                },
                "valid, warns cpu_saturation",
            ),
            (
                "all of it and late, although a part was polled away",
                |r| {
                    use_cpu(r, 10_000);
                    r.workers[1].polled = ms(501);
                    r.total.start_lag = filled(&[(us(400), 100)]);
                },
                "start_lag",
            ),
            (
                "all of it and late with precise pacing, without time to poll",
                |r| {
                    r.precise = true;
                    use_cpu(r, 10_000);
                    r.total.start_lag = filled(&[(us(400), 100)]);
                },
                "start_lag cpu_saturation",
            ),
            (
                "95 % and too few started",
                |r| {
                    use_cpu(r, 9_500);
                    (r.iterations.started, r.accounting.dropped) = (9_000, 1_000);
                },
                "rate_not_met cpu_saturation",
            ),
        ],
    );
    check(
        Model::Closed,
        &[("under 95 %", |r| use_cpu(r, 9_499), "valid"), ("95 %", |r| use_cpu(r, 9_500), "cpu_saturation")],
    );
    let delays: [Case; 2] = [
        ("10 % without a CPU", |r| r.workers[0].run_delay = Some(ms(1_000)), "valid"),
        ("more than that", |r| r.workers[0].run_delay = Some(ms(1_001)), "cpu_saturation"),
    ];
    check(Model::Open, &delays);
    check(Model::Closed, &delays);
}

#[test]
fn nothing_to_measure() {
    // A target that fails every request, or that never answers those of the warm-up, has been measured.
    let cases: [Case; 4] = [
        ("one good", |r| r.total.ok = 1, "valid"),
        ("none good", |r| r.total.ok = 0, "valid"),
        (
            "all held up",
            |r| {
                r.accounting.started = 0;
                r.intervals = vec![Interval { in_flight: 8, ..Interval::default() }];
            },
            "valid",
        ),
        (
            "none started",
            |r| {
                r.accounting.started = 0;
                r.intervals = vec![Interval::default()];
            },
            "too_few_samples",
        ),
    ];
    check(Model::Open, &cases);
    check(Model::Closed, &cases);
    let mut empty = good(Model::Closed);
    (empty.accounting, empty.total) = (Accounting::default(), StepRecord::default());
    (empty.workers, empty.duration) = (Vec::new(), Nanos::ZERO);
    assert_eq!(codes(&empty), "too_few_samples");
}

#[test]
fn ports_and_descriptors() {
    fn lack(record: &mut RunRecord, class: ErrorClass, attempts: u64, requests: u64) {
        record.connections.failed[class] = attempts;
        record.total.errors[class] = requests;
    }
    check(
        Model::Closed,
        &[
            (
                "1 % of the requests",
                |r| lack(r, ErrorClass::PortsExhausted, 100, 100),
                "valid, warns ports_exhausted",
            ),
            ("more", |r| lack(r, ErrorClass::PortsExhausted, 101, 101), "ports_exhausted"),
            (
                "attempts alone",
                |r| lack(r, ErrorClass::DescriptorsExhausted, 9_000, 0),
                "valid, warns descriptors_exhausted",
            ),
            ("descriptors", |r| lack(r, ErrorClass::DescriptorsExhausted, 0, 101), "descriptors_exhausted"),
        ],
    );
}

#[test]
fn responses_without_a_stamp() {
    fn stamps(record: &mut RunRecord, stamped: u64, unstamped: u64, gather: Nanos) {
        let worker = &mut record.workers[0];
        (worker.stamped, worker.unstamped, worker.gather_time) = (stamped, unstamped, gather);
    }
    check(
        Model::Closed,
        &[
            ("1 % unstamped", |r| stamps(r, 9_900, 100, ms(1)), "valid"),
            ("more than that", |r| stamps(r, 9_899, 101, ms(1)), "valid, warns unstamped_coalescing"),
            ("read late by no more than 5 % of the service time", |r| stamps(r, 0, 10_000, us(50)), "valid"),
            ("read late by more", |r| stamps(r, 0, 10_000, us(52)), "valid, warns unstamped_coalescing"),
        ],
    );
}

#[test]
fn events_that_share_a_time() {
    fn events(record: &mut RunRecord, together: u64, uncertain: u64) {
        let streams = record.total.event_streams.get_or_insert_default();
        (streams.content_events, streams.shared_content_events) = (10_000, together);
        streams.uncertain_events = uncertain;
    }
    for model in [Model::Open, Model::Closed] {
        check(
            model,
            &[
                ("1 % of the events", |r| events(r, 100, 100), "valid"),
                ("the server's doing", |r| events(r, 101, 100), "valid, warns events_together"),
                ("the generator's", |r| events(r, 5_000, 101), "event_time_uncertain"),
            ],
        );
    }
}

#[test]
fn counts_of_tokens_that_cannot_be() {
    fn counts(record: &mut RunRecord, disbelieved: u64) {
        record.total.event_streams.get_or_insert_default().disbelieved = disbelieved;
    }
    check(
        Model::Closed,
        &[("none", |r| counts(r, 0), "valid"), ("one", |r| counts(r, 1), "valid, warns usage_not_believed")],
    );
}

/// A minute of intervals with that p50 and this many requests in flight at their ends.
fn course(record: &mut RunRecord, p50: impl Fn(u64) -> Nanos, in_flight: impl Fn(u64) -> u64) {
    let second = Nanos::from_secs(1);
    record.warmup = Nanos::ZERO;
    let interval = |number: u64| Interval {
        at: second * (number + 1),
        length: second,
        scheduled: 1_000,
        started: 1_000,
        ok: 1_000,
        completed: 1_000,
        in_flight: in_flight(number),
        response_time: Some([p50(number).0; 5]),
        ..Interval::default()
    };
    record.intervals = (0..60).map(interval).collect();
}

#[test]
fn a_course_that_has_no_end_is_warned_of() {
    let cases: [Case; 4] = [
        ("level", |r| course(r, |_| us(1_000), |_| 3), "valid"),
        ("settles", |r| course(r, |n| us(if n < 9 { 5_000 } else { 1_000 }), |_| 3), "valid"),
        ("drifts", |r| course(r, |n| us(1_000 + 20 * n), |_| 3), "valid, warns not_steady"),
        (
            "jumps late",
            |r| course(r, |n| us(if n < 40 { 5_000 } else { 1_000 }), |_| 3),
            "valid, warns not_steady",
        ),
    ];
    check(Model::Open, &cases);
    check(Model::Closed, &cases);
    let piles: Case =
        ("piles up", |r| course(r, |n| us(1_000 + 50 * n), |n| 10 + 50 * n), "valid, warns overloaded");
    check(Model::Open, &[piles]);
    // Requests cannot pile up if each waits for the one before.
    let closed: Case =
        ("piles up", |r| course(r, |n| us(1_000 + 50 * n), |n| 10 + 50 * n), "valid, warns not_steady");
    check(Model::Closed, &[closed]);
    // If the load changes, no steady state is to be expected.
    let ramp: Case = (
        "ramp",
        |r| {
            course(r, |n| us(1_000 + 20 * n), |n| 5 * n);
            (0_u64..).zip(&mut r.intervals).for_each(|(n, interval)| interval.scheduled = 100 * (n + 1));
        },
        "valid",
    );
    check(Model::Open, &[ramp]);
}

#[test]
fn a_cut_is_told_as_a_time_of_the_run() {
    let mut record = good(Model::Open);
    course(&mut record, |n| us(if n < 9 { 5_000 } else { 1_000 }), |_| 3);
    assert_eq!(steadiness(&record), Steadiness::From(Nanos::from_secs(9)));
    record.intervals.truncate(9);
    let reason = "takes 10 whole intervals with responses, there are 9".to_owned();
    assert_eq!(steadiness(&record), Steadiness::Unknown { reason });
    course(&mut record, |n| us(1_000 + 20 * n), |_| 3);
    let Steadiness::Never { evidence } = steadiness(&record) else { panic!("{:?}", steadiness(&record)) };
    assert!(evidence.starts_with("never steady: its p"), "{evidence}");
}

#[test]
fn little_compares_the_counts_in_flight_with_the_times() {
    let mut record = good(Model::Open);
    // 1,000 requests per second that take 50 ms from their start are 50 at a time.
    record.total.response_time = filled(&[(ms(50) + us(10), 10_000)]);
    course(&mut record, |_| ms(50), |n| 49 + n % 3);
    let check = little(&record).unwrap();
    assert!(check.holds && (check.product - 50.0).abs() < 1e-9, "{check:?}");
    course(&mut record, |_| ms(50), |_| 60);
    assert!(!little(&record).unwrap().holds);
    record.model = Model::Closed;
    assert_eq!(little(&record), None);
}
