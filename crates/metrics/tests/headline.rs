//! The headline of a run: every combination of its inputs, and every wording.

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos};
use plimsoll_histogram::Censored;
use plimsoll_metrics::{
    Cause, Headline, Interval, LimitedBy, MachineInterval, Model, RunFacts, RunOutcome, RunRecord, Stall,
    StepRecord, ThreadUse, ThresholdFacts, WorkerRecord,
};

use crate::error_rows::all_classes;

fn facts() -> RunFacts {
    RunFacts {
        started: 1_000,
        ok: 1_000,
        failed: 0,
        errors: ErrorCounts::default(),
        timed_out: 0,
        unanswered: 0,
        script_errors: 0,
        stuck: None,
        thresholds: Vec::new(),
        valid: true,
        invalid_reasons: Vec::new(),
        limited_by: LimitedBy::None,
        stopped: None,
        is_over: true,
        interrupted: false,
        inconsistent: None,
    }
}

fn threshold(passed: bool, failed_by_answers: bool) -> ThresholdFacts {
    let seen = if passed { "3.20 ms" } else { "27.1 %" };
    let text = if passed { "p99<10ms" } else { "error_rate<0.1%" };
    let shown = !passed;
    ThresholdFacts {
        text: text.to_owned(),
        passed,
        failed_by_answers,
        shown,
        seen: seen.to_owned(),
        by_own_lag: false,
    }
}

/// Fates of the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Requests {
    None,
    AllGood,
    SomeAnswered,
    AllAnswered,
    AllTimedOut,
    NoneEnded,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limits {
    None,
    Hold,
    Broken,
    BrokenByAnswers,
    BrokenByLag,
    NotShown,
    BrokenBesideNotShown,
}

const REQUESTS: [Requests; 6] = [
    Requests::None,
    Requests::AllGood,
    Requests::SomeAnswered,
    Requests::AllAnswered,
    Requests::AllTimedOut,
    Requests::NoneEnded,
];
const LIMITS: [Limits; 7] = [
    Limits::None,
    Limits::Hold,
    Limits::Broken,
    Limits::BrokenByAnswers,
    Limits::BrokenByLag,
    Limits::NotShown,
    Limits::BrokenBesideNotShown,
];

/// A threshold that has too few samples.
fn untested() -> ThresholdFacts {
    let seen = "needs 59 samples, has 50".to_owned();
    ThresholdFacts { text: "p95<200ms".to_owned(), shown: false, seen, ..threshold(false, false) }
}

fn made(requests: Requests, limits: Limits) -> RunFacts {
    let mut facts = facts();
    let (started, ok, failed, timed_out) = match requests {
        Requests::None => (0, 0, 0, 0),
        Requests::AllGood => (1_000, 1_000, 0, 0),
        Requests::SomeAnswered => (1_000, 900, 100, 0),
        Requests::AllAnswered => (1_000, 0, 1_000, 0),
        Requests::AllTimedOut => (1_000, 0, 0, 1_000),
        Requests::NoneEnded => (1_000, 0, 0, 0),
    };
    (facts.started, facts.ok, facts.failed, facts.timed_out) = (started, ok, failed, timed_out);
    facts.errors[ErrorClass::Status5xx] = failed;
    facts.thresholds = match limits {
        Limits::None => Vec::new(),
        Limits::Hold => vec![threshold(true, false)],
        Limits::Broken => vec![threshold(true, false), threshold(false, false)],
        Limits::BrokenByAnswers => vec![threshold(true, false), threshold(false, true)],
        Limits::BrokenByLag => vec![ThresholdFacts { by_own_lag: true, ..threshold(false, false) }],
        Limits::NotShown => vec![threshold(true, false), untested()],
        Limits::BrokenBesideNotShown => vec![untested(), threshold(false, false)],
    };
    facts
}

/// Every combination of requests, thresholds, validity, interruption, scripts, consistency and a target that
/// stopped answering: 1,344 of them.
/// The expectation is written down from the table in the documentation, row by row.
#[test]
fn every_combination_has_the_outcome_of_the_table() {
    let mut seen = Vec::new();
    let all = REQUESTS.into_iter().flat_map(|requests| LIMITS.map(|limits| (requests, limits)));
    for (requests, limits) in all {
        for bits in 0..32_u8 {
            let [valid, interrupted, script, inconsistent, stopped] =
                [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            let mut facts = made(requests, limits);
            (facts.valid, facts.interrupted) = (valid, interrupted);
            facts.inconsistent = inconsistent.then(|| "the server has lost writes".to_owned());
            facts.script_errors = u64::from(script);
            facts.stopped = stopped.then(|| "the target stopped answering".to_owned());
            let broken = match limits {
                Limits::None | Limits::Hold | Limits::BrokenByLag | Limits::NotShown => false,
                Limits::Broken | Limits::BrokenBesideNotShown => valid || requests == Requests::AllAnswered,
                Limits::BrokenByAnswers => true,
            };
            let nothing = match requests {
                Requests::AllAnswered => true,
                Requests::AllTimedOut | Requests::NoneEnded => valid,
                Requests::None | Requests::AllGood | Requests::SomeAnswered => false,
            };
            let unmeasured = requests == Requests::None || (interrupted && requests == Requests::NoneEnded);
            let expected = match () {
                () if inconsistent => (RunOutcome::Fail, Some(Cause::Inconsistent)),
                () if script => (RunOutcome::NoVerdict, Some(Cause::Script)),
                () if unmeasured => (RunOutcome::NoVerdict, Some(Cause::Invalid)),
                () if broken => (RunOutcome::Fail, Some(Cause::Thresholds)),
                () if nothing => (RunOutcome::Fail, Some(Cause::NothingSucceeded)),
                () if !valid || limits == Limits::BrokenByLag => {
                    (RunOutcome::NoVerdict, Some(Cause::Invalid))
                }
                () if stopped => (RunOutcome::Fail, Some(Cause::StoppedAnswering)),
                () if limits == Limits::NotShown => (RunOutcome::NoVerdict, Some(Cause::NotShown)),
                () if limits == Limits::None => (RunOutcome::Done, None),
                () => (RunOutcome::Pass, None),
            };
            let headline = Headline::of(&facts);
            assert_eq!((headline.outcome, headline.cause), expected, "{requests:?} {limits:?} {bits:04b}");
            assert!(!headline.summary.is_empty(), "{headline:?}");
            seen.push(headline.outcome);
        }
    }
    assert_eq!(seen.len(), 1_344);
    assert!(RunOutcome::ALL.iter().all(|outcome| seen.contains(outcome)));
}

#[test]
fn the_first_line_says_what_happened() {
    let cases: &[(Requests, Limits, bool, &str)] = &[
        (Requests::AllGood, Limits::None, true, "DONE no errors in 1,000 requests"),
        (
            Requests::SomeAnswered,
            Limits::None,
            true,
            "DONE 10.0 % errors: 100 of 1,000 requests, all of them status_5xx",
        ),
        (Requests::AllGood, Limits::Hold, true, "PASS p99<10ms holds: 3.20 ms"),
        (Requests::SomeAnswered, Limits::Hold, true, "PASS p99<10ms holds: 3.20 ms; 10.0 % errors"),
        (
            Requests::SomeAnswered,
            Limits::Broken,
            true,
            "FAIL error_rate<0.1% does not hold: 27.1 % (1 of 2 thresholds hold)",
        ),
        (
            Requests::AllAnswered,
            Limits::None,
            true,
            "FAIL none of 1,000 requests succeeded, all of them status_5xx",
        ),
        (
            Requests::AllAnswered,
            Limits::None,
            false,
            "FAIL none of 1,000 requests succeeded, all of them status_5xx",
        ),
        (Requests::NoneEnded, Limits::None, true, "FAIL none of 1,000 requests was answered"),
        (
            Requests::AllTimedOut,
            Limits::None,
            true,
            "FAIL none of 1,000 requests succeeded, all of them timed out",
        ),
        (Requests::AllTimedOut, Limits::None, false, "NO VERDICT the measurement is invalid; 100.0 % errors"),
        (Requests::AllGood, Limits::None, false, "NO VERDICT the measurement is invalid"),
        (
            Requests::AllGood,
            Limits::Hold,
            false,
            "NO VERDICT the measurement is invalid, and proves nothing about thresholds",
        ),
        (
            Requests::SomeAnswered,
            Limits::BrokenByAnswers,
            false,
            "FAIL error_rate<0.1% does not hold: 27.1 %",
        ),
        (Requests::None, Limits::None, false, "NO VERDICT no request was started"),
    ];
    for (requests, limits, valid, expected) in cases {
        let mut facts = made(*requests, *limits);
        facts.valid = *valid;
        let Headline { outcome, summary, .. } = Headline::of(&facts);
        assert_eq!(format!("{} {summary}", outcome.word()), *expected);
    }
    let one = RunFacts { thresholds: vec![threshold(false, false)], ..facts() };
    assert_eq!(Headline::of(&one).summary, "error_rate<0.1% does not hold: 27.1 %");
    // A threshold that a figure shows to be broken goes before one that shows nothing.
    let both = RunFacts { thresholds: vec![untested(), threshold(false, false)], ..facts() };
    let expected = "error_rate<0.1% does not hold: 27.1 % (0 of 2 thresholds hold)";
    assert_eq!(Headline::of(&both).summary, expected);
    let alone = RunFacts { thresholds: vec![untested()], ..facts() };
    let expected = "p95<200ms is not shown to hold, nor not to: needs 59 samples, has 50";
    assert_eq!(Headline::of(&alone).summary, expected);
    let beside = RunFacts { thresholds: vec![threshold(true, false), untested()], ..facts() };
    assert_eq!(Headline::of(&beside).summary, format!("{expected} (1 of 2 thresholds hold)"));
    let two = RunFacts { thresholds: vec![threshold(true, false); 2], ..facts() };
    assert_eq!(Headline::of(&two).summary, "both thresholds hold");
    let three = RunFacts { thresholds: vec![threshold(true, false); 3], ..facts() };
    assert_eq!(Headline::of(&three).summary, "all 3 thresholds hold");
    let lost = RunFacts { inconsistent: Some("the server has lost writes".to_owned()), ..facts() };
    assert_eq!(Headline::of(&lost).summary, "the server has lost writes");
    let script = RunFacts { script_errors: 1_234, ..facts() };
    assert_eq!(Headline::of(&script).summary, "the script failed 1,234 times");
    let stuck = RunFacts { stuck: Some("the data has ended".to_owned()), ..script };
    assert_eq!(Headline::of(&stuck).summary, "1,234 iterations could not go on: the data has ended");
    let once = RunFacts { script_errors: 1, ..stuck };
    assert_eq!(Headline::of(&once).summary, "an iteration could not go on: the data has ended");
    let once = RunFacts { stuck: None, ..once };
    assert_eq!(Headline::of(&once).summary, "the script failed once");
}

/// Failures that a generator which stands still may have brought about prove nothing while it is invalid.
#[test]
fn an_invalid_measurement_is_outweighed_by_answers_only() {
    for class in all_classes().into_iter().filter(|class| *class != ErrorClass::AbortedByUs) {
        let mut facts = RunFacts { ok: 0, failed: 1_000, valid: false, ..facts() };
        facts.errors[class] = 1_000;
        let expected = if class.is_answer() { RunOutcome::Fail } else { RunOutcome::NoVerdict };
        assert_eq!(Headline::of(&facts).outcome, expected, "{class}");
        facts.valid = true;
        assert_eq!(Headline::of(&facts).outcome, RunOutcome::Fail, "{class}");
    }
    // If both kinds occur, the majority decides.
    for (answered, expected) in [(499, RunOutcome::NoVerdict), (501, RunOutcome::Fail)] {
        let timed_out = 1_000 - answered;
        let mut facts = RunFacts { ok: 0, failed: answered, timed_out, valid: false, ..facts() };
        facts.errors[ErrorClass::Status4xx] = answered;
        assert_eq!(Headline::of(&facts).outcome, expected, "{answered}");
    }
}

/// A target that never answers, on a machine that is busy: short stalls do not explain a long silence.
#[test]
fn silence_is_the_targets_where_the_generator_was_ready() {
    let seconds = Nanos::from_secs;
    let hung = |stalled: Nanos, waited: Nanos| {
        let mut record = RunRecord::empty(Model::Closed);
        (record.duration, record.accounting.started) = (seconds(10), 64);
        let worker = WorkerRecord {
            stalls: vec![Stall { worker: 0, at: seconds(1), length: stalled }],
            ..Default::default()
        };
        record.workers = vec![worker];
        record.verdict.valid = false;
        (record, waited)
    };
    let timed_out = |(mut record, waited): (RunRecord, Nanos)| {
        (record.accounting.timed_out, record.total.timed_out) = (64, 64);
        record.total.censored_service = Censored { count: 64, from: waited };
        record
    };
    let in_flight = |(mut record, waited): (RunRecord, Nanos)| {
        (record.accounting.in_flight_at_stop, record.drain) = (64, waited);
        record
    };
    let held_up = |(mut record, waited): (RunRecord, Nanos)| {
        (record.accounting.started, record.duration) = (0, waited);
        record.intervals = vec![Interval { in_flight: 64, length: waited, ..Interval::default() }];
        record
    };
    let outcome = |record: &RunRecord| Headline::of(&RunFacts::of(record)).outcome;
    for made in [&timed_out as &dyn Fn((RunRecord, Nanos)) -> RunRecord, &in_flight, &held_up] {
        assert_eq!(outcome(&made(hung(seconds(1), seconds(5)))), RunOutcome::Fail);
        assert_eq!(outcome(&made(hung(seconds(3), seconds(5)))), RunOutcome::NoVerdict);
        let mut absent = made(hung(seconds(1), seconds(5)));
        absent.workers[0].absent = true;
        assert_eq!(outcome(&absent), RunOutcome::NoVerdict);
    }
    // During the run, requests in flight may still be answered.
    let facts = RunFacts { is_over: false, ..RunFacts::of(&in_flight(hung(seconds(1), seconds(5)))) };
    let headline = Headline::of(&facts);
    assert_eq!((headline.outcome, &*headline.summary), (RunOutcome::NoVerdict, "no request had ended"));
}

/// Of two servers in one run, one that never answers is found beside one that does.
#[test]
fn steps_of_one_server_have_an_outcome_of_their_own() {
    let mut record = RunRecord::empty(Model::Closed);
    (record.duration, record.drain) = (Nanos::from_secs(10), Nanos::from_secs(5));
    record.accounting.started = 900;
    let step = |ok, failed, timed_out| {
        let mut step = StepRecord { ok, failed, timed_out, ..StepRecord::default() };
        step.errors[ErrorClass::Status5xx] = failed;
        step
    };
    record.steps = vec![step(300, 0, 0), step(0, 200, 0), step(0, 60, 40), step(0, 0, 0)];
    record.workers = vec![WorkerRecord::default()];
    let of = |numbers: &[usize], started, held_up| {
        RunFacts::of_steps(&record, |number| numbers.contains(&number), started, held_up).failure()
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(of(&[0], 300, 0), None);
    assert_eq!(of(&[0, 1], 500, 0), None);
    assert_eq!(of(&[1], 200, 0), said("none of 200 requests succeeded, all of them status_5xx"));
    assert_eq!(of(&[1, 2], 300, 0), said("none of 300 requests succeeded, most of them status_5xx"));
    assert_eq!(of(&[3], 8, 4), said("none of 8 requests was answered"));
    assert_eq!(of(&[3], 0, 4), said("none of 4 requests was answered"));
    assert_eq!(of(&[3], 0, 0), None);
    // A failure that may be the generator's fault is none of the server.
    record.verdict.valid = false;
    record.workers[0].stalls = vec![Stall { worker: 0, at: Nanos::ZERO, length: Nanos::from_secs(4) }];
    let of = |number, started| RunFacts::of_steps(&record, |other| other == number, started, 0).failure();
    assert_eq!(of(3, 8), None);
    assert_eq!(of(1, 200), said("none of 200 requests succeeded, all of them status_5xx"));
}

/// Symptom: a server that froze was a FAIL, and one that was killed a DONE with 60 % of errors.
#[test]
fn a_target_that_is_gone_has_stopped_answering() {
    let run_of = |ok: [u64; 6], failed: [u64; 6], errors: &[(ErrorClass, u64)]| {
        let mut record = RunRecord::empty(Model::Open);
        record.duration = Nanos::from_secs(6);
        record.intervals = (1..)
            .zip(ok.into_iter().zip(failed))
            .map(|(second, (ok, failed))| Interval {
                at: Nanos::from_secs(second),
                length: Nanos::from_secs(1),
                started: ok + failed,
                completed: ok,
                ok,
                failed,
                ..Interval::default()
            })
            .collect();
        (record.total.ok, record.total.failed) = (ok.iter().sum(), failed.iter().sum());
        errors.iter().for_each(|(class, count)| record.total.errors[*class] = *count);
        record.accounting.started = record.total.ok + record.total.failed;
        record.verdict.valid = true;
        let headline = Headline::of(&RunFacts::of(&record));
        (headline.outcome, headline.cause, headline.summary)
    };
    let run = |ok: [u64; 6], failed: [u64; 6], refused| {
        run_of(ok, failed, &[(ErrorClass::ConnectRefused, refused)])
    };
    let (outcome, cause, summary) = run([100, 100, 100, 79, 0, 0], [0, 0, 0, 21, 100, 100], 220);
    assert_eq!((outcome, cause), (RunOutcome::Fail, Some(Cause::StoppedAnswering)));
    let words = "the target stopped answering: the last good answer came between 3.00 s and 4.00 s, and then \
                 every connection was refused to the end, for 220 requests";
    assert_eq!(summary, words);
    // A proxy, or what is left of the program, takes connections and breaks them off.
    for (errors, words) in [
        (&[(ErrorClass::Reset, 220)][..], "every connection was reset to the end"),
        (
            &[(ErrorClass::ClosedBeforeResponse, 220)],
            "every connection was closed without an answer to the end",
        ),
        (
            &[(ErrorClass::Reset, 20), (ErrorClass::ConnectRefused, 200)],
            "was refused or broken off to the end",
        ),
    ] {
        let (outcome, cause, summary) = run_of([100, 100, 100, 79, 0, 0], [0, 0, 0, 21, 100, 100], errors);
        assert_eq!((outcome, cause), (RunOutcome::Fail, Some(Cause::StoppedAnswering)));
        assert!(summary.contains(words), "{summary}");
    }
    // It came back, or it was there and failed otherwise.
    assert_eq!(run([100, 100, 0, 0, 0, 50], [0, 0, 100, 100, 100, 50], 350).0, RunOutcome::Done);
    assert_eq!(run([100, 100, 100, 100, 0, 0], [0, 0, 0, 0, 100, 100], 50).0, RunOutcome::Done);
    // Nothing succeeded at all: that says the other rule.
    assert_eq!(run([0; 6], [100; 6], 600).1, Some(Cause::NothingSucceeded));
}

/// Symptom: a server that hangs had no verdict on a busy machine, since the delays of a whole run were held
/// against the wait of a single request.
#[test]
fn silence_is_held_against_the_delays_of_the_same_time() {
    let seconds = Nanos::from_secs;
    // A minute, in each second of which 50 requests time out after one second, beside a build.
    let hung = |delay_ms: fn(u64) -> u64| {
        let mut record = RunRecord::empty(Model::Open);
        (record.duration, record.accounting.started) = (seconds(60), 3_000);
        (record.accounting.timed_out, record.total.timed_out) = (3_000, 3_000);
        record.total.censored_service = Censored { count: 3_000, from: seconds(1) };
        record.verdict.valid = false;
        let delay = |second| Nanos::from_millis(delay_ms(second));
        record.intervals = (1..=60)
            .map(|second| Interval {
                at: seconds(second),
                length: seconds(1),
                timed_out: 50,
                ..Interval::default()
            })
            .collect();
        record.machine.intervals = (1..=60)
            .map(|second| MachineInterval {
                at: seconds(second),
                length: seconds(1),
                workers: vec![ThreadUse { run_delay: Some(delay(second)), ..ThreadUse::default() }],
                ..MachineInterval::default()
            })
            .collect();
        let run_delay = (1..=60).map(delay).fold(Nanos::ZERO, |sum, delay| sum + delay);
        record.workers = vec![WorkerRecord { run_delay: Some(run_delay), ..WorkerRecord::default() }];
        record
    };
    let outcome = |record: &RunRecord| Headline::of(&RunFacts::of(record)).outcome;
    // 12 s in all, of which no request waited through more than 400 ms.
    let busy = hung(|_| 200);
    assert_eq!(RunFacts::of(&busy).unanswered, 3_000);
    assert_eq!(outcome(&busy), RunOutcome::Fail);
    // One bad moment says nothing of the rest.
    let once = hung(|second| if second == 30 { 900 } else { 100 });
    assert_eq!(RunFacts::of(&once).unanswered, 2_900);
    assert_eq!(outcome(&once), RunOutcome::Fail);
    // Beside a generator that lacked its processor for most of the time there is no verdict.
    let late = hung(|_| 600);
    assert_eq!((RunFacts::of(&late).unanswered, outcome(&late)), (0, RunOutcome::NoVerdict));
    // Neither is there one if the delays may have been at any time.
    let mut untold = hung(|_| 200);
    untold.machine.intervals.clear();
    assert_eq!((RunFacts::of(&untold).unanswered, outcome(&untold)), (0, RunOutcome::NoVerdict));
    // A stall counts for those that waited through it.
    let mut stalled = hung(|_| 100);
    stalled.workers[0].stalls = vec![Stall { worker: 0, at: seconds(10), length: seconds(20) }];
    assert_eq!(RunFacts::of(&stalled).unanswered, 3_000 - 21 * 50);
    assert_eq!(outcome(&stalled), RunOutcome::Fail);
}

#[test]
fn the_second_line_is_about_the_instrument() {
    for limit in LimitedBy::ALL {
        let valid = RunFacts { limited_by: limit, ..facts() };
        assert_eq!(Headline::of(&valid).validity, format!("measurement valid · {}", limit.words()));
        assert_eq!(LimitedBy::from_name(limit.name()), Some(limit));
    }
    let reasons = ["stall", "start_lag"].map(str::to_owned).to_vec();
    let invalid =
        RunFacts { valid: false, invalid_reasons: reasons, limited_by: LimitedBy::Generator, ..facts() };
    let expected = "measurement INVALID: stall, start lag · limited by the generator";
    assert_eq!(Headline::of(&invalid).validity, expected);
}

/// Symptom: `none of 115 requests succeeded, all of them timed out` where 66 of them had been given up.
#[test]
fn requests_without_an_answer_are_not_among_those_that_timed_out() {
    let said = |timed_out: u64, refused: u64, open: u64| {
        let mut errors = ErrorCounts::default();
        errors[ErrorClass::ConnectRefused] = refused;
        let started = timed_out + refused + open;
        let facts = RunFacts { started, ok: 0, failed: refused, errors, timed_out, ..facts() };
        Headline::of(&facts).summary
    };
    let none = |all: u64, rest: &str| format!("none of {all} requests succeeded{rest}");
    for (timed_out, refused, open, expected) in [
        (49, 0, 0, none(49, ", all of them timed out")),
        (49, 0, 66, none(115, ": 49 timed out, 66 without an answer at the end")),
        (1, 0, 1, none(2, ": 1 timed out, 1 without an answer at the end")),
        (0, 1, 66, none(67, ": 1 connect_refused, 66 without an answer at the end")),
        (40, 9, 66, none(115, ": 49 errors, most of them timed out, 66 without an answer at the end")),
        (0, 0, 66, "none of 66 requests was answered".to_owned()),
    ] {
        assert_eq!(said(timed_out, refused, open), expected);
    }
}
