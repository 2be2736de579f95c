//! Every rule of the attribution, on both sides of its limit, on records made by hand.

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_metrics::{
    AcceptQueue, Claim, CoreUse, Interval, LimitedBy, MachineInterval, Model, NetworkUse, OwnSegments, Peer,
    ProcessUse, RunRecord, Stall, TargetProcess, Throttling, judge,
};

use crate::error_rows::BUSY;
use crate::verdict::{filled, good, limited, ms, us};

/// A change to a good run, the limit then, and words of the evidence.
type Case = (&'static str, fn(&mut RunRecord), LimitedBy, &'static str);

fn check(model: Model, cases: &[Case]) {
    for (name, change, expected, words) in cases {
        let mut record = good(model);
        watched(&mut record);
        change(&mut record);
        let found = judge(&record).limited_by;
        assert_eq!(found.what, *expected, "{name}: {found:?}");
        assert!(found.evidence.contains(words), "{name}: {}", found.evidence);
        assert_eq!(found.hint.is_empty(), *expected == LimitedBy::None, "{name}: {found:?}");
    }
}

/// Ten seconds of a quiet machine with four cores and the target on it, which has half of its core left.
fn watched(record: &mut RunRecord) {
    let process = ProcessUse {
        cpu: ms(500),
        busiest_thread: Some(ms(500)),
        run_delay: Some(ms(1)),
        threads: 1,
        ..ProcessUse::default()
    };
    record.machine.facts.target = Some(TargetProcess { name: "sink".to_owned(), ..TargetProcess::default() });
    record.machine.intervals = (2..=11)
        .map(|second| MachineInterval {
            at: Nanos::from_secs(second),
            length: Nanos::from_secs(1),
            generator: Some(process),
            target: Some(process),
            cores: vec![CoreUse { busy: ms(300), ..CoreUse::default() }; 4],
            network: NetworkUse {
                segments_sent: Some(4_000),
                retransmitted: Some(1),
                timeouts: Some(0),
                listen_overflows: Some(0),
                listen_drops: Some(0),
                ..NetworkUse::default()
            },
            ..MachineInterval::default()
        })
        .collect();
    record.connections.peak_open = 64;
    let times = Some([us(1_000).0, us(1_300).0, us(2_000).0, us(2_000).0, us(2_000).0]);
    record.intervals = (2..=11)
        .map(|second| Interval {
            at: Nanos::from_secs(second),
            length: Nanos::from_secs(1),
            completed: 1_000,
            in_flight: 2 + second % 2,
            response_time: times,
            ..Interval::default()
        })
        .collect();
}

fn every_second(record: &mut RunRecord, change: fn(&mut MachineInterval)) {
    record.machine.intervals.iter_mut().for_each(change);
}

fn target_of(part: &mut MachineInterval) -> &mut ProcessUse {
    part.target.as_mut().expect("there is one")
}

/// 5 connections of 10 ms each for 1,000/s: half of it.
fn five_connections(record: &mut RunRecord) {
    limited(record, ms(9_000), 5_000);
    record.connections.peak_open = 5;
    record.completed_in_window = 5_000;
}

/// All places taken, and most requests waiting for the others.
fn queueing(record: &mut RunRecord) {
    five_connections(record);
    record.total.service_time = filled(&[(us(100), 1), (ms(50), 100), (ms(60), 900)]);
}

#[test]
fn a_run_that_got_what_it_asked_for_is_limited_by_nothing() {
    check(Model::Open, &[("quiet", |_| {}, LimitedBy::None, "on time")]);
    // Without the machine as well.
    let mut record = good(Model::Open);
    watched(&mut record);
    record.machine = plimsoll_metrics::MachineRecord::default();
    assert_eq!(judge(&record).limited_by.what, LimitedBy::None);
    // Without intervals there is nothing to tell growth by.
    let limit = judge(&good(Model::Open)).limited_by;
    assert_eq!(limit.what, LimitedBy::Unknown);
    assert!(limit.evidence.ends_with("does not show: there is no interval"), "{limit:?}");
}

/// Symptom: "limited by nothing" stood beside 404s and a group of answers of 200 ms, as if all were well.
#[test]
fn a_load_that_was_delivered_acquits_neither_errors_nor_slow_answers() {
    let said = |change: fn(&mut RunRecord)| {
        let mut record = good(Model::Open);
        watched(&mut record);
        change(&mut record);
        let found = judge(&record).limited_by;
        assert_eq!((found.claim, found.what.words()), (Claim::Delivered, "not limited at this rate"));
        found.evidence
    };
    let level = "the load that was asked for was delivered on time, and requests in flight did not grow at \
                 that rate (1.0 on average)";
    assert_eq!(said(|_| {}), level);
    let failed = said(|r| {
        r.total.errors[ErrorClass::Status4xx] = 3_000;
        r.total.failed = 3_000;
    });
    assert_eq!(failed, format!("{level}; 30.0 % of the requests failed"));
    let slow = said(|r| r.total.service_time = filled(&[(ms(1), 9_500), (ms(200), 500)]));
    let (words, slow_words) = slow.split_at(level.len());
    assert_eq!(words, level);
    assert!(
        slow_words.starts_with("; 5.0 % of the answers took more than 10.0 ms, up to 200 ms"),
        "{slow_words}"
    );
    // One in two hundred is no group.
    assert_eq!(said(|r| r.total.service_time = filled(&[(ms(1), 9_950), (ms(200), 50)])), level);
}

/// Symptom: at about 1 % of errors chance decided whether the target was the limit.
#[test]
fn few_errors_limit_a_load_only_if_they_depend_on_it() {
    /// Answers with this status class, in these numbers by seconds.
    fn fail(r: &mut RunRecord, class: ErrorClass, failed: [u64; 10]) {
        for (cell, failed) in r.intervals.iter_mut().zip(failed) {
            (cell.ok, cell.failed) = (1_000 - failed, failed);
        }
        let all = failed.iter().sum();
        (r.total.failed, r.total.errors[class]) = (all, all);
    }
    const EVEN: [u64; 10] = [22, 17, 25, 19, 20, 14, 23, 18, 26, 16];
    type Change = fn(&mut RunRecord);
    let cases: [(&str, Change, Claim); 9] = [
        ("at any time", |r| fail(r, ErrorClass::Status5xx, EVEN), Claim::Delivered),
        ("in a class of an extension", |r| fail(r, ErrorClass::Other(&BUSY), EVEN), Claim::Delivered),
        ("more", |r| fail(r, ErrorClass::Status5xx, EVEN.map(|few| 3 * few)), Claim::NotServed),
        (
            "from some time on",
            |r| fail(r, ErrorClass::Status5xx, [0, 0, 0, 0, 0, 40, 44, 38, 41, 37]),
            Claim::NotServed,
        ),
        ("no connection", |r| fail(r, ErrorClass::ConnectRefused, EVEN), Claim::NotServed),
        ("no answer", |r| fail(r, ErrorClass::Reset, EVEN), Claim::NotServed),
        (
            "timeouts beside them",
            |r| {
                fail(r, ErrorClass::Status5xx, EVEN);
                r.total.timed_out = 1;
            },
            Claim::NotServed,
        ),
        (
            "they wait for one another",
            |r| {
                fail(r, ErrorClass::Status5xx, EVEN);
                r.total.service_time = filled(&[(ms(1), 10), (ms(9), 9_990)]);
            },
            Claim::NotServed,
        ),
        (
            "a busy thread",
            |r| {
                fail(r, ErrorClass::Status5xx, EVEN);
                every_second(r, |part| target_of(part).busiest_thread = Some(ms(990)));
            },
            Claim::NotServed,
        ),
    ];
    for (name, change, claim) in cases {
        let mut record = good(Model::Open);
        watched(&mut record);
        change(&mut record);
        let found = judge(&record).limited_by;
        assert_eq!(found.claim, claim, "{name}: {found:?}");
        assert_eq!(
            found.evidence.ends_with("% of the requests failed"),
            claim == Claim::Delivered,
            "{found:?}"
        );
    }
}

/// Symptom: "users pause for most of the time" of a plan that has no pause.
#[test]
fn users_pause_only_if_the_plan_says_so() {
    for (pause, end, words) in [
        (true, false, ", with 1.0 requests in flight on average: users pause for most of the time"),
        (true, true, ": users pause, or have ended, for most of the time"),
        (false, true, ": users ended before the last answers came, which took up to 1.00 ms"),
        (false, false, ", with 1.0 requests in flight on average"),
    ] {
        let mut record = good(Model::Closed);
        record.connections.peak_open = 64;
        (record.users_pause, record.users_end) = (pause, end);
        let found = judge(&record).limited_by;
        assert_eq!(found.claim, Claim::FewUsers, "{found:?}");
        assert!(found.evidence.ends_with(words), "{pause}, {end}: {found:?}");
        assert_eq!(found.hint.contains("`think`"), pause, "{found:?}");
        assert_eq!(found.hint.contains("(-n)"), end && !pause, "{found:?}");
    }
}

/// Symptom: "most of them" of failures that were all of one kind.
#[test]
fn failures_of_one_kind_are_all_of_them() {
    let said = |refused: u64, broken: u64| {
        let mut record = good(Model::Open);
        watched(&mut record);
        record.total.errors[ErrorClass::ConnectRefused] = refused;
        record.total.errors[ErrorClass::Protocol] = broken;
        judge(&record).limited_by.evidence
    };
    assert_eq!(said(500, 0), "5.0 % of the requests were not served, all of them connect_refused");
    assert_eq!(said(300, 200), "5.0 % of the requests were not served, most of them connect_refused");
    assert_eq!(said(250, 250).matches("250 of them").count(), 1);
}

/// Symptom: `42.6 % of the requests were not served` of a run in which none was: the others were given up.
#[test]
fn requests_without_an_answer_at_the_end_are_named_beside_those_that_failed() {
    let said = |timed_out: u64, open: u64| {
        let mut record = good(Model::Open);
        watched(&mut record);
        record.total.timed_out = timed_out;
        record.accounting.in_flight_at_stop = open;
        judge(&record).limited_by.evidence
    };
    let timed_out = "40.0 % of the requests were not served, all of them timed out";
    assert_eq!(said(4_000, 100), timed_out, "a few are usual");
    assert_eq!(said(4_000, 6_000), format!("{timed_out}, and 60.0 % had no answer"));
}

/// Symptom: the lag of a run whose target stood still was told with "use a lower rate".
#[test]
fn a_start_lag_is_told_by_the_figure_that_it_changed() {
    let mut record = good(Model::Open);
    record.total.start_lag = filled(&[(us(10), 9_800), (ms(5), 200)]);
    record.total.response_time = filled(&[(us(1_010), 9_800), (ms(6), 200)]);
    let [warning] = &judge(&record).warnings[..] else { panic!("{:?}", judge(&record).warnings) };
    let words =
        "start lag p99 is 5.00 ms: the response time p99 is 6.00 ms, and without that lag it is 1.00 ms";
    assert_eq!(warning.evidence, words);
    // As much lag, and it is lost in the time for which the target stood still.
    record.total.service_time = filled(&[(ms(1), 9_000), (ms(900), 1_000)]);
    record.total.response_time = filled(&[(us(1_010), 9_000), (ms(905), 1_000)]);
    assert_eq!(judge(&record).warnings, []);
}

#[test]
fn what_is_wrong_with_the_generator_comes_first() {
    let stall: fn(&mut RunRecord) = |r| {
        every_second(r, |part| target_of(part).busiest_thread = Some(ms(1_000)));
        r.workers[0].stalls.push(Stall { worker: 0, at: ms(3_000), length: ms(500) });
    };
    let busy: fn(&mut RunRecord) = |r| r.workers[0].cpu_user = ms(7_900);
    let delayed: fn(&mut RunRecord) = |r| r.workers[1].run_delay = Some(ms(2_000));
    let held_up: fn(&mut RunRecord) = |r| {
        r.machine.facts.limits.cpus = Some(0.5);
        every_second(r, |part| {
            let throttling = Throttling { periods: 10, throttled: 2, time: ms(80) };
            part.generator.as_mut().expect("there is one").throttling = Some(throttling);
        });
    };
    check(
        Model::Closed,
        &[
            ("stopped", stall, LimitedBy::Generator, "stood still for 500 ms"),
            ("its core used up", busy, LimitedBy::Generator, "99.0 % of its core"),
            ("a hog beside it", delayed, LimitedBy::Generator, "had no CPU for 20.0 % of the time"),
            ("its control group", held_up, LimitedBy::Generator, "0.50 CPUs in 20.0 % of the periods"),
        ],
    );
    check(
        Model::Open,
        &[
            ("stopped", stall, LimitedBy::Generator, "stood still"),
            ("busy, but on time", busy, LimitedBy::None, ""),
            ("held up, but on time", held_up, LimitedBy::None, ""),
            (
                "late, and nobody knows why",
                |r| r.total.start_lag = filled(&[(ms(5), 1_000)]),
                LimitedBy::Generator,
                "start lag",
            ),
            (
                "no ports",
                |r| {
                    r.connections.failed[ErrorClass::PortsExhausted] = 500;
                    r.total.errors[ErrorClass::PortsExhausted] = 500;
                },
                LimitedBy::Generator,
                "local port",
            ),
        ],
    );
}

#[test]
fn connections_are_the_limit_if_a_request_takes_as_long_alone() {
    check(
        Model::Open,
        &[
            ("too few", five_connections, LimitedBy::ConnectionLimit, "carry at most 500/s"),
            (
                "for want of descriptors",
                |r| {
                    five_connections(r);
                    r.machine.facts.soft_descriptors = Some(69);
                },
                LimitedBy::ConnectionLimit,
                "carry at most 500/s",
            ),
            ("a queue behind them", queueing, LimitedBy::Target, "wait for one another"),
            (
                "one freeze",
                |r| {
                    five_connections(r);
                    r.connections.blocked_at_limit = ms(1_900);
                    r.total.service_time = filled(&[(us(100), 10_000), (ms(1_000), 5)]);
                },
                LimitedBy::Target,
                "kept requests for up to 1.00 s",
            ),
            (
                "more than one freeze explains",
                |r| {
                    five_connections(r);
                    r.connections.blocked_at_limit = ms(3_100);
                    r.total.ok = 10_005;
                    r.total.service_time = filled(&[(us(100), 10_000), (ms(1_000), 5)]);
                },
                LimitedBy::ConnectionLimit,
                "5 connections",
            ),
            (
                "the target's thread is busy",
                |r| {
                    five_connections(r);
                    every_second(r, |part| target_of(part).busiest_thread = Some(ms(960)));
                },
                LimitedBy::Target,
                "96.0 % of its core",
            ),
            (
                "the target's thread is nearly busy",
                |r| {
                    five_connections(r);
                    every_second(r, |part| target_of(part).busiest_thread = Some(ms(940)));
                },
                LimitedBy::ConnectionLimit,
                "",
            ),
        ],
    );
}

#[test]
fn who_has_few_descriptors_is_told_to_get_more_of_them() {
    let hint = |descriptors| {
        let mut record = good(Model::Open);
        five_connections(&mut record);
        record.machine.facts.soft_descriptors = Some(descriptors);
        judge(&record).limited_by.hint
    };
    assert!(hint(69).ends_with("may open 69 files: raise that first (ulimit -n)"), "{}", hint(69));
    assert!(!hint(70).contains("ulimit"), "{}", hint(70));
}

#[test]
fn a_closed_run_is_always_limited_by_something() {
    check(
        Model::Closed,
        &[
            ("users", |_| {}, LimitedBy::ConnectionLimit, "busiest thread had 50.0 % of its core left"),
            ("a queue", queueing, LimitedBy::Target, "the fastest took 100 µs: they wait"),
            (
                "the target's CPU",
                |r| every_second(r, |part| target_of(part).busiest_thread = Some(ms(990))),
                LimitedBy::Target,
                "(sink) used 99.0 % of its core",
            ),
            (
                "a hog beside the target",
                |r| {
                    every_second(r, |part| target_of(part).run_delay = Some(ms(450)));
                    r.total.service_time = filled(&[(us(500), 1_000), (us(1_010), 200)]);
                },
                LimitedBy::Target,
                "ready to run but had no CPU for 45.0 % of the time",
            ),
            (
                "the same where no request took longer for it",
                |r| {
                    every_second(r, |part| target_of(part).run_delay = Some(ms(450)));
                    r.total.service_time = filled(&[(us(500), 1_000), (us(990), 200)]);
                },
                LimitedBy::ConnectionLimit,
                "",
            ),
            (
                "the target's control group",
                |r| {
                    every_second(r, |part| {
                        let throttling = Throttling { periods: 10, throttled: 6, time: ms(300) };
                        target_of(part).throttling = Some(throttling);
                    });
                },
                LimitedBy::Target,
                "60.0 % of the periods",
            ),
            (
                "all cores",
                |r| {
                    every_second(r, |part| {
                        part.cores.iter_mut().for_each(|core| core.busy = ms(990));
                        target_of(part).cpu = ms(2_400);
                    });
                },
                LimitedBy::Target,
                "used 60.0 % of them",
            ),
            (
                "bandwidth",
                |r| {
                    r.total.bytes_received = r.total.ok * 100_000;
                    r.total.first_byte_time = filled(&[(us(400), 10_000)]);
                },
                LimitedBy::Unknown,
                "60.0 % of the median service time",
            ),
            (
                "bandwidth of a target here",
                |r| {
                    r.total.bytes_received = r.total.ok * 100_000;
                    r.total.first_byte_time = filled(&[(us(400), 10_000)]);
                    let addresses = ["127.0.0.1:80", "[::1]:80", "unix:/run/a"].map(str::to_owned).to_vec();
                    r.peers = vec![Peer { addresses, ..Peer::default() }];
                },
                LimitedBy::Target,
                "60.0 % of the median service time",
            ),
            (
                "small responses in pieces",
                |r| {
                    r.total.bytes_received = r.total.ok * 10_000;
                    r.total.first_byte_time = filled(&[(us(400), 10_000)]);
                },
                LimitedBy::ConnectionLimit,
                "",
            ),
        ],
    );
}

/// Segments of our own connections in every second.
fn own(record: &mut RunRecord, resent: u64, out_of_order: u64) {
    for part in &mut record.machine.intervals {
        part.own_segments = Some(OwnSegments { segments: 4_000, resent, out_of_order });
    }
}

#[test]
fn lost_segments_of_our_own_are_the_networks() {
    check(
        Model::Open,
        &[
            (
                "1 % all the time",
                |r| own(r, 25, 15),
                LimitedBy::Network,
                "1.0 % of the TCP segments of our own connections were sent again, or came out of order (250 and 150",
            ),
            ("less than that", |r| own(r, 25, 14), LimitedBy::None, ""),
            (
                "a cut",
                |r| {
                    own(r, 0, 0);
                    let cut = OwnSegments { segments: 100, resent: 30, out_of_order: 0 };
                    r.machine.intervals[4].own_segments = Some(cut);
                },
                LimitedBy::Network,
                "30.0 % of the TCP segments of our own connections were sent again, or came out of order in the \
                 interval that ended at 6.00 s",
            ),
            (
                "nine segments are chance",
                |r| {
                    own(r, 0, 0);
                    let cut = OwnSegments { segments: 100, resent: 9, out_of_order: 0 };
                    r.machine.intervals[4].own_segments = Some(cut);
                },
                LimitedBy::None,
                "",
            ),
            (
                "those of other programs",
                |r| {
                    own(r, 0, 0);
                    every_second(r, |part| part.network.retransmitted = Some(400));
                },
                LimitedBy::None,
                "",
            ),
            (
                "ours were not read",
                |r| every_second(r, |part| part.network.retransmitted = Some(400)),
                LimitedBy::None,
                "",
            ),
        ],
    );
}

#[test]
fn a_full_queue_counts_if_it_is_the_targets_and_was_felt() {
    let slow: fn(&mut RunRecord) = |r| r.connections.connect_time = filled(&[(us(50), 90), (ms(1_040), 10)]);
    let full = |drops: u64| Some(AcceptQueue { length: 129, limit: 128, drops });
    let with = |change: &dyn Fn(&mut RunRecord)| {
        let mut record = good(Model::Open);
        watched(&mut record);
        change(&mut record);
        judge(&record).limited_by
    };
    let queue = |drops: u64| {
        move |r: &mut RunRecord| {
            slow(r);
            r.machine.intervals.iter_mut().for_each(|part| part.target_queue = full(drops));
        }
    };
    let found = with(&queue(5));
    assert_eq!(found.claim, Claim::AcceptQueue, "{found:?}");
    let words = "of the 128 that it holds, up to 129 waited, 50 were turned away, and ours took up to 1.04 s";
    assert!(found.evidence.ends_with(words), "{found:?}");
    assert_eq!(with(&queue(0)).claim, Claim::Delivered);
    // Connections of others were turned away.
    let unfelt = with(&|r| {
        queue(5)(r);
        r.connections.connect_time = filled(&[(us(50), 100)]);
    });
    assert_eq!(unfelt.claim, Claim::Delivered);
    // Of a server of this machine, whichever it is.
    let others = with(&|r| {
        slow(r);
        every_second(r, |part| part.network.listen_drops = Some(50));
    });
    assert_eq!(others.claim, Claim::Delivered);
}

#[test]
fn a_target_that_falls_behind_is_the_limit() {
    check(
        Model::Open,
        &[
            (
                "5 % more than it carries",
                |r| {
                    for (number, interval) in (1..).zip(&mut r.intervals) {
                        interval.in_flight = 50 * number;
                    }
                },
                LimitedBy::Target,
                "grew by 50.0/s to 500",
            ),
            (
                "a rate that rises",
                |r| {
                    for (number, interval) in (1..).zip(&mut r.intervals) {
                        (interval.in_flight, interval.completed) = (50 * number, 500 * number);
                        interval.scheduled = 500 * number;
                    }
                },
                LimitedBy::None,
                "",
            ),
            (
                "a second in which everything waited",
                |r| {
                    let times = r.intervals[5].response_time.as_mut().expect("there were some");
                    times[1] = ms(700).0;
                },
                LimitedBy::Target,
                "in 1 of 10 intervals, first in the one that ended at 7.00 s, the p90 was up to 700 ms",
            ),
            (
                "a second that was slow",
                |r| {
                    let times = r.intervals[5].response_time.as_mut().expect("there were some");
                    times[1] = ms(12).0;
                },
                LimitedBy::None,
                "",
            ),
            (
                "2 % of errors",
                |r| {
                    r.total.errors[ErrorClass::Status5xx] = 100;
                    r.total.timed_out = 101;
                },
                LimitedBy::Target,
                "2.0 % of the requests were not served, most of them timed out",
            ),
            (
                "wrong requests are not a limit",
                |r| r.total.errors[ErrorClass::Status4xx] = 900,
                LimitedBy::None,
                "",
            ),
        ],
    );
}

#[test]
fn a_target_that_closes_connections_without_a_word_has_a_hint_of_its_own() {
    let with_lost = |class, lost_on_kept| {
        let mut record = good(Model::Closed);
        watched(&mut record);
        record.total.errors[class] = 900;
        record.connections.lost_on_kept = lost_on_kept;
        judge(&record).limited_by.hint
    };
    for class in [ErrorClass::ClosedBeforeResponse, ErrorClass::Reset] {
        assert!(with_lost(class, 890).contains("--disable-keepalive"));
        assert!(with_lost(class, 40).contains("the target's own log"));
    }
    assert!(with_lost(ErrorClass::ClosedInResponse, 890).contains("the target's own log"));
    // A target that aborts a third of the requests does so with the first of a connection, too.
    let mut record = good(Model::Closed);
    watched(&mut record);
    let started = record.accounting.started;
    record.total.errors[ErrorClass::Reset] = started * 3 / 10;
    record.connections.opened = started * 3 / 10;
    record.connections.lost_on_kept = started * 21 / 100;
    let hint = judge(&record).limited_by.hint;
    assert!(hint.contains("the target's own log"), "{hint}");
}

#[test]
fn what_nothing_shows_is_unknown() {
    // Whoever throws needs a whole core for it, and the generator is not to blame.
    let throws: fn(&mut RunRecord) = |r| {
        r.workers[0].cpu_user = ms(7_900);
        r.total.errors[ErrorClass::Script] = 9_000;
        r.total.ok = 0;
    };
    check(
        Model::Closed,
        &[(
            "a script that throws",
            throws,
            LimitedBy::Unknown,
            "90.0 % of the requests failed in the plan's own",
        )],
    );
    check(
        Model::Open,
        &[
            (
                "dropped, though there was room",
                |r| (r.iterations.started, r.accounting.dropped) = (9_000, 1_000),
                LimitedBy::Unknown,
                "neither",
            ),
            ("no answer", |r| r.total.ok = 0, LimitedBy::Unknown, "no request was answered"),
            (
                "nothing good",
                |r| (r.total.ok, r.accounting.failed) = (0, 20),
                LimitedBy::Unknown,
                "nothing ended well",
            ),
            ("a script that throws", throws, LimitedBy::Unknown, "failed in the plan's own script"),
        ],
    );
}

/// The failures of a run of ten seconds are placed where they were, also where nothing at all was answered.
#[test]
fn failures_are_placed_in_time() {
    for (failed, words) in [
        ([0, 0, 0, 0, 0, 100, 100, 100, 100, 50], "all of them after 5.00 s of the run"),
        ([100, 100, 50, 0, 0, 0, 0, 0, 0, 0], "all of them before 3.00 s of the run"),
        ([0, 0, 0, 100, 100, 0, 0, 0, 0, 0], "all of them between 3.00 s and 5.00 s of the run"),
        ([0, 0, 0, 100, 100, 50, 0, 0, 0, 0], "all of them between 3.00 s and 6.00 s of the run"),
        ([10; 10], "throughout the run"),
        ([50, 0, 0, 0, 50, 0, 0, 0, 0, 50], "in some parts of the run and not in others"),
    ] {
        let mut record = good(Model::Open);
        record.intervals = (1..)
            .zip(failed)
            .map(|(second, failed)| Interval {
                at: Nanos::from_secs(second),
                length: Nanos::from_secs(1),
                scheduled: 100,
                started: 100,
                completed: 100 - failed,
                ok: 100 - failed,
                failed,
                ..Interval::default()
            })
            .collect();
        record.total.failed = failed.iter().sum();
        record.total.ok = 1_000 - record.total.failed;
        record.total.errors[ErrorClass::ConnectRefused] = record.total.failed;
        record.accounting.started = 1_000;
        let evidence = judge(&record).limited_by.evidence;
        assert!(evidence.ends_with(words), "{failed:?}: {evidence}");
    }
}

/// Symptom: "try one request with curl" of a target that speaks Redis' protocol.
#[test]
fn hints_go_by_the_protocol() {
    let hint = |protocol: &str, ok: u64| {
        let mut record = good(Model::Open);
        record.peers = vec![Peer { protocol: protocol.to_owned(), ..Peer::default() }];
        record.total.ok = ok;
        record.connections.unsolicited = 1;
        let verdict = judge(&record);
        let of_warnings = verdict.warnings.into_iter().map(|warning| warning.hint);
        of_warnings.chain([verdict.limited_by.hint]).collect::<Vec<_>>().join("; ")
    };
    for http in ["", "http/1.1", "h2"] {
        assert_eq!(hint(http, 0).matches("curl").count(), 2, "{http}: {}", hint(http, 0));
    }
    let other = hint("redis", 0);
    assert!(!other.contains("curl") && other.contains("plimsoll try PLAN"), "{other}");
}

/// Symptom: the generator's processor was named as the limit of 50 users who each waited for an answer at
/// 300,000 requests per second, and the number of users was not.
#[test]
fn a_busy_generator_does_not_hide_that_all_connections_are_in_use() {
    let said = |in_flight: Nanos| {
        let mut record = good(Model::Closed);
        record.connections.peak_open = 50;
        record.workers.iter_mut().for_each(|worker| worker.cpu_user = ms(9_000));
        record.total.service_time = filled(&[(in_flight, 10_000)]);
        record.total.response_time = record.total.service_time.clone();
        judge(&record).limited_by
    };
    // Of 10,000 requests in 10 s, each for 50 ms, 50 are under way.
    let both = said(ms(50));
    assert_eq!(both.claim, Claim::Generator, "{both:?}");
    assert!(both.evidence.contains("all 50 connections were in use, too"), "{both:?}");
    assert!(both.hint.contains("more connections (-c)"), "{both:?}");
    // Users who pause are not the limit.
    let one = said(ms(5));
    assert!(!one.evidence.contains("in use") && !one.hint.contains("-c"), "{one:?}");
}
