//! One cause, one hint, and the processes that compete for the processors are named.

use plimsoll_core::Nanos;
use plimsoll_histogram::Delta;
use plimsoll_metrics::{
    CoreUse, LimitedBy, MachineInterval, Model, OtherUse, ProcessUse, ReasonCode, RunRecord, Slice, Stall,
    TargetProcess, judge,
};

use crate::verdict::{codes, filled, good, limited, ms};

fn other(name: &str, pid: u32, processes: u64, cpu_ms: u64) -> OtherUse {
    OtherUse { name: name.to_owned(), pid, most: ms(cpu_ms), processes, cpu: ms(cpu_ms) }
}

/// An open run on a machine with two busy cores beside a build, in which a worker lacked the CPU for a fifth
/// of the time and was late.
fn beside_a_build() -> RunRecord {
    let mut record = good(Model::Open);
    record.machine.intervals = (2..=11)
        .map(|second| MachineInterval {
            at: Nanos::from_secs(second),
            length: Nanos::from_secs(1),
            cores: vec![CoreUse { busy: ms(990), ..CoreUse::default() }; 2],
            others: vec![other("rustc", 40 + second as u32, 3, 1_100), other("cargo", 39, 1, 300)],
            ..MachineInterval::default()
        })
        .collect();
    record.workers[0].run_delay = Some(ms(2_000));
    record.total.start_lag = filled(&[(ms(30), 1_000)]);
    record
}

/// The advice against them.
const STOP: &str =
    "stop rustc (3 processes) and cargo (pid 39), or use a machine of its own for the generator";

#[test]
fn a_competing_process_is_named() {
    let mut record = beside_a_build();
    let verdict = judge(&record);
    let found =
        verdict.reasons.iter().find(|reason| reason.code == ReasonCode::CpuSaturation).expect("it is");
    assert_eq!(
        found.evidence,
        "worker 0 was ready to run but had no CPU for 20.0 % of the time: rustc (3 processes) used 1.10 cores, \
         cargo (pid 39) 0.30"
    );
    // Symptom: "stop that work", before or without a word on which.
    assert_eq!(found.hint, STOP);
    assert_eq!(verdict.limited_by.what, LimitedBy::Generator);
    assert_eq!(verdict.limited_by.evidence, found.evidence);
    // The target itself uses the processors.
    record.machine.facts.target =
        Some(TargetProcess { name: "nginx".to_owned(), ..TargetProcess::default() });
    for part in &mut record.machine.intervals {
        part.target = Some(ProcessUse { cpu: ms(1_500), ..ProcessUse::default() });
        part.others.truncate(1);
        part.others[0].cpu = ms(40);
    }
    let found = judge(&record).limited_by;
    assert!(found.evidence.ends_with(": the target (nginx) used 1.50 cores"), "{found:?}");
    assert_eq!(found.hint, "put the target (nginx) on another machine");
    // No process is visible, as from within a container.
    record.machine.intervals.iter_mut().for_each(|part| (part.target, part.others) = (None, Vec::new()));
    assert!(judge(&record).limited_by.evidence.ends_with("another process competes for it"));
    // Then the hypervisor was the cause.
    record.machine.intervals.iter_mut().for_each(|part| part.cores[0].steal = ms(300));
    let found = judge(&record).limited_by;
    assert!(found.evidence.ends_with("the hypervisor took 15.0 % of all CPU time away"), "{found:?}");
}

#[test]
fn nobody_is_told_to_use_more_and_fewer_threads() {
    let mut record = beside_a_build();
    record.workers[1].cpu_user = ms(7_900);
    record.workers[0].stalls.push(Stall { worker: 0, at: ms(3_000), length: ms(500) });
    record.iterations.started = 9_000;
    record.accounting.dropped = 1_000;
    assert_eq!(codes(&record), "stall rate_not_met start_lag cpu_saturation cpu_saturation");
    let verdict = judge(&record);
    let hints: Vec<&str> = verdict.reasons.iter().map(|reason| reason.hint.as_str()).collect();
    assert_eq!(hints, ["", "", "", STOP, ""]);
}

#[test]
fn threads_are_recommended_where_there_are_processors_for_them() {
    let hint = |cores: usize, threads: usize| {
        let mut record = good(Model::Closed);
        record.workers.resize(threads, record.workers[0].clone());
        record.workers[0].cpu_user = ms(7_900);
        record.machine.intervals = vec![MachineInterval {
            at: ms(11_000),
            length: ms(10_000),
            cores: vec![CoreUse::default(); cores],
            ..MachineInterval::default()
        }];
        judge(&record).reasons[0].hint.clone()
    };
    assert_eq!(hint(4, 2), "use more threads (-t) or another machine for the generator");
    assert_eq!(hint(2, 2), "use another machine, or one with more CPUs, for the generator");
    let mut record = beside_a_build();
    record.workers.resize(4, record.workers[0].clone());
    let found = judge(&record).limited_by;
    assert!(found.evidence.ends_with("of the time: 4 threads share 2 CPUs"), "{found:?}");
    assert_eq!(found.hint, "use at most 1 thread (-t), or a machine with more CPUs");
}

#[test]
fn who_is_late_for_no_other_reason_is_helped_by_what_is_known_of_the_processors() {
    let hint = |change: fn(&mut RunRecord)| {
        let mut record = beside_a_build();
        record.workers.iter_mut().for_each(|worker| worker.run_delay = None);
        change(&mut record);
        judge(&record).reasons[0].hint.clone()
    };
    assert_eq!(
        hint(|_| {}),
        format!("rustc (3 processes) used 1.10 cores, cargo (pid 39) 0.30: {STOP}, or use a lower rate")
    );
    let idle: fn(&mut RunRecord) = |record| {
        for part in &mut record.machine.intervals {
            part.cores = vec![CoreUse { busy: ms(400), ..CoreUse::default() }; 4];
        }
    };
    assert_eq!(hint(idle), "use a lower rate, or an idle machine; --precise paces more exactly");
    assert_eq!(
        hint(|record| {
            record.machine.intervals.clear();
            record.workers[0].cpu_user = ms(6_000);
        }),
        "use more threads (-t) or a lower rate"
    );
}

/// Symptom: nothing told those whose machine was too small for load and target that a third of it was spent
/// on being on time.
#[test]
fn what_sharing_wake_ups_would_give_back_is_said_where_cpu_time_is_short() {
    let sharing = "; --pacing shared gives back 34.0 % of a core, polled away to start requests on time, for a \
                   start lag of up to 1 ms";
    let hints = |change: fn(&mut RunRecord)| {
        let mut record = beside_a_build();
        record.workers[0].polled = ms(3_400);
        change(&mut record);
        judge(&record).reasons.into_iter().map(|reason| reason.hint).collect::<String>()
    };
    assert_eq!(hints(|_| {}), format!("{STOP}{sharing}"));
    let late = hints(|record| record.workers.iter_mut().for_each(|worker| worker.run_delay = None));
    assert!(late.ends_with(&format!(", or use a lower rate{sharing}")), "{late:?}");
    for change in
        [(|record| record.precise = true) as fn(&mut RunRecord), |record| record.workers[0].polled = ms(900)]
    {
        assert_eq!(hints(change), STOP);
    }
}

/// Symptom: a generator without time at 300,000/s advised "look at the target in its slow moments:
/// 17,373 connections would be needed" beside the CPU that it lacked.
#[test]
fn connections_are_no_remedy_for_a_generator_without_time() {
    let mut record = beside_a_build();
    record.target_per_second = Some(300_000.0);
    record.connections.limit = 10_000;
    record.connections.blocked_at_limit = ms(8_000);
    record.connections.blocked = ms(8_000);
    record.total.service_time = filled(&[(ms(57), 1_000)]);
    let hint_of_connections = |record: &RunRecord| {
        let verdict = judge(record);
        let found = verdict.reasons.iter().find(|reason| reason.code == ReasonCode::ConnectionLimit);
        found.expect("it is").hint.clone()
    };
    assert_eq!(hint_of_connections(&record), "");
    record.connections.limit = 1_000;
    record.total.service_time = filled(&[(ms(20), 1_000)]);
    assert!(hint_of_connections(&record).starts_with("use -c 6"), "few are a cause of their own");
}

/// Symptom: a server that answers one request after the other, 200 in a second, was to get "-c 23 or more",
/// with 23 connections "-c 51 or more", and with 68 "-c 122 or more", while its throughput stayed.
#[test]
fn a_queue_in_the_target_asks_for_no_number_of_connections() {
    let hint_of = |record: &RunRecord| {
        let found =
            judge(record).reasons.into_iter().find(|reason| reason.code == ReasonCode::ConnectionLimit);
        found.expect("it is").hint
    };
    let mut record = good(Model::Open);
    limited(&mut record, ms(19_600), 5_000);
    assert!(hint_of(&record).starts_with("use -c 20 or more"), "all replies are as fast: {record:?}");
    // The first reply waited for none, and each of the others for those before it.
    let queued = |places: u64| filled(&[(ms(5), 1), (ms(5 * places - 5), 4), (ms(5 * places), 995)]);
    for places in [12, 23, 68] {
        (record.connections.limit, record.target_per_second) = (places, Some(400.0));
        record.total.service_time = queued(places);
        let hint = hint_of(&record);
        assert!(hint.starts_with("ask for a lower rate: more connections do not help"), "{places}: {hint}");
        assert!(hint.contains("and the fastest 5.0"), "{hint}");
    }
    // The fastest one came in the warm-up.
    record.total.service_time = filled(&[(ms(340), 1_000)]);
    assert!(hint_of(&record).starts_with("use -c "), "{}", hint_of(&record));
    let mut first = Slice::default();
    first.total.service_time = Delta::of_all(&queued(68));
    record.timeline.warmup.push(first);
    assert!(hint_of(&record).contains("more connections do not help"), "{}", hint_of(&record));
    // Times that only vary are no queue: exponential ones have a p10 of 0.15 of their median.
    record.connections.limit = 4;
    record.total.service_time = filled(&[(ms(1), 150), (ms(5), 350), (ms(20), 500)]);
    assert!(hint_of(&record).starts_with("use -c "), "{}", hint_of(&record));
}
