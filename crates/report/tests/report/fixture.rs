//! Records of runs, built in code: the same in every run of the tests, by integer arithmetic alone.

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_histogram::Histogram;
use plimsoll_metrics::{
    AcceptQueue, Accounting, CoreUse, FileUse, FoundBy, Gauges, GroupLimits, Http2Record, Http2Traffic,
    Interval, IntervalMerger, IterationRecord, LogRecord, MachineFacts, MachineInterval, Model, NetworkUse,
    Outline, OwnSegments, Peer, PhaseMerger, PhaseOutline, ProcessEvent, ProcessUse, RateChange, Recorder,
    RunRecord, Sample, ScenarioOutline, Slicer, Stall, SteeredBy, Steering, StepRecord, TargetProcess,
    ThreadUse, Threshold, ThresholdSpec, ThresholdWatch, Throttling, TimelineDownsampler, WatchedProcess,
    WatchedUse, WorkerRecord, judge,
};
use plimsoll_report::{Host, ModelContext, Preflight, RunContext, RunResult, TargetContext};

pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

pub(crate) const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// Returns request number `i` of a quiet server: started 5 to 20 µs late, served in 0.8 to 1.3 ms, one in a
/// hundred in 6 ms more.
pub(crate) fn quiet(i: u64) -> Sample {
    let intended = Nanos(i * 1_000_000);
    let started = intended + Nanos(5_000 + i * 7_919 % 15_000);
    let sent = started + us(2);
    let slow = if i % 100 == 7 { us(6_000) } else { Nanos::ZERO };
    let done = sent + Nanos(800_000 + i * 104_729 % 500_000) + slow;
    Sample {
        step: 0,
        intended,
        started,
        sent,
        first_byte: done - us(30),
        done,
        outcome: Outcome::Ok,
        status: 200,
        bytes_sent: 84,
        bytes_received: 161,
    }
}

/// The record of one worker that saw these samples in order of their ends, with one interval per 1,000 of
/// them.
pub(crate) fn recorded(steps: &[&str], model: Model, samples: impl IntoIterator<Item = Sample>) -> RunRecord {
    let steps = steps.iter().map(|&name| name.to_owned()).collect();
    recorded_as(&Outline { steps, ..Outline::default() }, model, samples)
}

/// Makes the record of one worker that saw these samples, with the steps and scenarios of an outline.
fn recorded_as(outline: &Outline, model: Model, samples: impl IntoIterator<Item = Sample>) -> RunRecord {
    let mut recorder = Recorder::new(&outline.steps);
    let mut merger = IntervalMerger::new(1).with_outline(outline.clone());
    let (mut second, mut since, mut completed) = (0, 0, 0);
    for sample in samples {
        recorder.note_started(sample.step);
        recorder.record(&sample);
        since += 1;
        completed += u64::from(sample.is_complete());
        if since == 1_000 {
            second += 1;
            let gauges = Gauges {
                at: SECOND * second,
                warmup: false,
                drain: false,
                scheduled: if model == Model::Open { since } else { 0 },
                in_flight: 2,
                connections: 64,
                ..Gauges::default()
            };
            merger.add(&recorder.snapshot(gauges));
            since = 0;
        }
    }
    if since > 0 {
        let gauges = Gauges { at: SECOND * second + us(7_000), drain: true, ..Gauges::default() };
        merger.add(&recorder.snapshot(gauges));
    }
    let connections = std::mem::take(&mut recorder.connections);
    let steps = recorder.finish();
    let mut total = StepRecord { name: "all".to_owned(), ..StepRecord::default() };
    steps.iter().for_each(|step| total.merge(step));
    let intervals = merger.finish();
    let mut slicer = Slicer::new();
    intervals.iter().for_each(|interval| slicer.add(interval));
    let mut timeline = TimelineDownsampler::new();
    intervals.iter().for_each(|interval| timeline.add(interval));
    let duration = SECOND * second.max(1);
    let started = total.start_lag.count();
    let mut record = RunRecord {
        duration,
        drain: Nanos::from_millis(7),
        started_unix: Nanos::from_millis(1_772_366_400_250),
        started_monotonic: SECOND * 1_234,
        completed_in_window: completed,
        target_per_second: (model == Model::Open).then_some(1_000.0),
        accounting: Accounting {
            scheduled: started,
            started,
            ok: total.ok,
            failed: total.failed,
            timed_out: total.timed_out,
            unmeasured: 1,
            ..Accounting::default()
        },
        iterations: IterationRecord {
            started,
            completed: total.ok,
            failed: total.failed + total.timed_out,
            unfinished: 0,
        },
        total,
        steps,
        connections,
        peers: vec![Peer {
            authority: "127.0.0.1:8080".to_owned(),
            origin: String::new(),
            addresses: vec!["127.0.0.1:8080".to_owned()],
            unused_addresses: vec!["[2001:db8::1]:8080".to_owned()],
            protocol: "http/1.1".to_owned(),
            tls_version: None,
            tls_cipher: None,
        }],
        protocols: [("http/1.1".to_owned(), completed)].into(),
        intervals,
        slices: slicer.finish(),
        timeline: timeline.finish(),
        workers: vec![WorkerRecord {
            wall: duration,
            cpu_user: Nanos(started * 900),
            cpu_system: Nanos(started * 1_600),
            run_delay: Some(us(250)),
            involuntary_switches: 3,
            passes: started / 2,
            longest_pass: us(180),
            stamped: completed,
            ..WorkerRecord::default()
        }],
        backend: "io_uring".into(),
        rss_peak_bytes: Some(12_345_678),
        ..RunRecord::empty(model)
    };
    record.connections.opened = 64;
    record.connections.peak_open = 64;
    record.connections.limit = 64;
    for i in 0..64 {
        record.connections.connect_time.record(70_000 + i * 1_000);
    }
    record
}

/// The result of a record, judged.
pub(crate) fn result(record: RunRecord, description: &[&str]) -> RunResult {
    result_with(record, context(description))
}

pub(crate) fn result_with(mut record: RunRecord, context: RunContext) -> RunResult {
    record.accounting.check().expect("the identities hold");
    record.iterations.check().expect("the identity of iterations holds");
    record.verdict = judge(&record);
    RunResult::new(&record, context)
}

pub(crate) fn target(authority: &str, urls: &[&str]) -> TargetContext {
    TargetContext { urls: urls.iter().map(|&url| url.to_owned()).collect(), authority: authority.to_owned() }
}

pub(crate) fn context(description: &[&str]) -> RunContext {
    RunContext {
        name: None,
        tool_name: "plimsoll".to_owned(),
        tool_version: "0.1.0".to_owned(),
        run_id: "20260301-120000-2a".to_owned(),
        shard: None,
        taken_over: None,
        seed: 42,
        args: vec!["plimsoll".to_owned(), "run".to_owned(), "http://127.0.0.1:8080/".to_owned()],
        plan_hash: "9f86d081884c7d65".to_owned(),
        trace_link: None,
        load_checksum: "2c26b46b68ffc68f".to_owned(),
        targets: vec![target("127.0.0.1:8080", &["http://127.0.0.1:8080/"])],
        model: ModelContext {
            description: description.iter().map(|&line| line.to_owned()).collect(),
            arrivals: Some("uniform".to_owned()),
            connections: 64,
            depth: 1,
        },
        host: Host {
            hostname: "bench-1".to_owned(),
            kernel: "Linux 6.12.1".to_owned(),
            cpu_model: "Example CPU".to_owned(),
            cpus: 4,
            governor: Some("performance".to_owned()),
            memory_bytes: 16 << 30,
            soft_descriptors: 1_048_576,
            ..Host::default()
        },
        preflight: Some(Preflight {
            request: Some("GET /".to_owned()),
            status: Some(200),
            protocol: "http/1.1".to_owned(),
            tls_version: None,
            cipher: None,
            address: "127.0.0.1:8080".to_owned(),
            passed_over: Vec::new(),
        }),
        setup: None,
        refresh: None,
        teardown: None,
        calibration: None,
        repeated: false,
        records: Vec::new(),
        slices: false,
        probe: None,
        slow: None,
        unmeasured: 0,
    }
}

const OPEN: &[&str] = &["open: 1,000/s uniform for 10 s; 64 connections, 1 thread"];
const CLOSED: &[&str] = &["closed: 64 users for 40 s; 64 connections, 1 thread"];
const GET: &[&str] = &["GET http://127.0.0.1:8080/"];

/// The record of an open run of 1 s that kept its schedule.
pub(crate) fn quiet_record() -> RunRecord {
    recorded(GET, Model::Open, (0..1_000).map(quiet))
}

/// An open run of 10 s that kept its schedule.
pub(crate) fn open() -> RunResult {
    result(recorded(GET, Model::Open, (0..10_000).map(quiet)), OPEN)
}

/// Makes an open run of 10 s that kept its schedule, with its slices.
pub(crate) fn with_slices() -> RunResult {
    let record = recorded(GET, Model::Open, (0..10_000).map(quiet));
    result_with(record, RunContext { slices: true, ..context(OPEN) })
}

/// Makes an open run of 10 s beside a probe, whose responses came 100 us sooner.
pub(crate) fn with_probe() -> RunResult {
    let record = recorded(GET, Model::Open, (0..10_000).map(quiet));
    let sooner = |i: u64| {
        let sample = quiet(10 * i);
        Sample { done: Nanos(sample.done.0 - 100_000), ..sample }
    };
    let mut probe = recorded(GET, Model::Open, (0..1_000).map(sooner));
    probe.verdict = judge(&probe);
    result_with(record, RunContext { probe: Some(Box::new(probe)), ..context(OPEN) })
}

/// A run whose requests carry a thousand records each.
pub(crate) fn with_records() -> RunResult {
    let mut record = recorded(GET, Model::Open, (0..10_000).map(quiet));
    record.target_per_second = Some(1_200.0);
    record.steps[0].failed = 3;
    result_with(record, RunContext { records: vec![1_000], ..context(OPEN) })
}

/// A closed run over TLS and two steps, long enough for every percentile, on a saturated generator.
pub(crate) fn closed() -> RunResult {
    let sample = |i: u64| {
        let sample = quiet(i);
        Sample { step: (i % 2) as u32, intended: sample.started, ..sample }
    };
    let steps = &["GET https://example.test/", "POST https://example.test/items?sort=name"];
    let mut record = recorded(steps, Model::Closed, (0..40_000).map(sample));
    record.peers[0].authority = "example.test".to_owned();
    record.peers[0].addresses = vec!["192.0.2.1:443".to_owned(), "[2001:db8::1]:443".to_owned()];
    record.peers[0].tls_version = Some("TLSv1.3".to_owned());
    record.peers[0].tls_cipher = Some("TLS13_AES_128_GCM_SHA256".to_owned());
    record.tls_versions = [("TLSv1.3".to_owned(), 64)].into();
    record.connections.tls_resumed = 60;
    (record.workers[0].turnaround, record.workers[0].turnarounds) = (us(84) * 39_936, 39_936);
    for i in 0..64 {
        record.connections.tls_time.record(900_000 + i * 11_000);
    }
    record.workers[0].cpu_system = record.workers[0].wall - record.workers[0].cpu_user - us(400_000);
    let urls = ["https://example.test/", "https://example.test/items?sort=name"];
    result_with(record, RunContext { targets: vec![target("example.test", &urls)], ..context(CLOSED) })
}

/// There is no server: every request is refused within 60 µs.
pub(crate) fn all_failed() -> RunResult {
    let refused = |i: u64| Sample {
        sent: Nanos::MAX,
        first_byte: Nanos::MAX,
        done: quiet(i).started + us(60),
        outcome: Outcome::Failed(ErrorClass::ConnectRefused),
        status: 0,
        bytes_sent: 0,
        bytes_received: 0,
        ..quiet(i)
    };
    let mut record = recorded(GET, Model::Open, (0..2_000).map(refused));
    record.accounting.undelivered = 2_000;
    record.connections = Default::default();
    record.connections.limit = 64;
    record.connections.failed[ErrorClass::ConnectRefused] = 2_000;
    record.peers.clear();
    record.protocols.clear();
    record.error_examples =
        [("connect_refused".to_owned(), "Connection refused (os error 111)".to_owned())].into();
    result(record, OPEN)
}

/// Interrupted before anything was started.
pub(crate) fn empty() -> RunResult {
    let mut record = recorded(GET, Model::Closed, []);
    record.duration = Nanos::ZERO;
    record.workers.clear();
    record.rss_peak_bytes = None;
    record.interrupted = Some(2);
    record.protocols.clear();
    result(record, CLOSED)
}

/// Steered from all sides, and ended by a key.
pub(crate) fn steered() -> RunResult {
    let mut record = quiet_record();
    let what = [Steering::Rate, Steering::Pause, Steering::Resume];
    let by = [SteeredBy::File, SteeredBy::Http, SteeredBy::Key];
    let rates = [Some(500.0), Some(1500.0), Some(0.0), Some(1500.0)];
    // More than are listed in the text.
    record.rate_changes = (0..9)
        .map(|number| RateChange {
            at: us(100_000) * (1 + number as u64),
            what: what[number % 3],
            from_per_second: rates[number % 3],
            to_per_second: rates[number % 3 + 1],
            by: by[number % 3],
        })
        .collect();
    record.stopped_by = Some(SteeredBy::Key);
    result(record, OPEN)
}

/// An open run of 40 s whose first 6 s are slow.
pub(crate) fn settling() -> RunResult {
    let sample = |i: u64| {
        let sample = quiet(i);
        if i < 6_000 { Sample { done: sample.done + us(4_000), ..sample } } else { sample }
    };
    result(recorded(GET, Model::Open, (0..40_000).map(sample)), OPEN)
}

/// An open run of 20 s whose requests take longer and longer, because more of them come than are answered.
pub(crate) fn overloaded() -> RunResult {
    let sample = |i: u64| {
        let sample = quiet(i);
        Sample { done: sample.done + us(50 * i), ..sample }
    };
    let mut record = recorded(GET, Model::Open, (0..20_000).map(sample));
    (0..).zip(&mut record.intervals).for_each(|(number, interval)| interval.in_flight = 2 + 50 * number);
    result(record, OPEN)
}

/// A store that grows, and one of whose two processes ends; it belongs to another user.
fn store(second: u64) -> WatchedUse {
    let rss = Some((100 + 2 * second) << 20);
    let used = ProcessUse {
        cpu: us(120_000),
        system: us(20_000),
        threads: 4,
        last_threads: 4,
        rss_bytes: rss,
        last_rss_bytes: rss,
        descriptors: Some(70),
        last_descriptors: Some(70),
        ..ProcessUse::default()
    };
    let event = ProcessEvent { at: SECOND * 2, pid: 91, name: "redis-rdb-bgsav".to_owned(), ended: true };
    let events = if second == 2 { vec![event] } else { Vec::new() };
    let (processes, ended) = if second == 2 { (1, 1) } else { (2, 0) };
    WatchedUse { processes, used: Some(used), ended, events, ..WatchedUse::default() }
}

/// A run on a machine that was watched, whose generator was stopped for a while, beside the target's process.
pub(crate) fn machine() -> RunResult {
    let mut record = recorded(GET, Model::Open, (0..2_000).map(quiet));
    record.machine.facts = MachineFacts {
        ports: Some(28_232),
        soft_descriptors: Some(1_024),
        limits: GroupLimits { cpus: Some(1.5), memory_bytes: Some(1 << 30) },
        target: Some(TargetProcess {
            pids: vec![77, 78],
            name: "nginx".to_owned(),
            ..TargetProcess::default()
        }),
        watched: vec![
            WatchedProcess {
                name: "nginx".to_owned(),
                is_target: true,
                pids: vec![77, 78],
                descriptor_limit: Some(1_024),
                first_rss_bytes: Some(9 << 20),
                ..WatchedProcess::default()
            },
            WatchedProcess {
                name: "redis-server".to_owned(),
                found_by: FoundBy::Name("redis-server".to_owned()),
                pids: vec![90],
                descriptor_limit: Some(10_000),
                first_rss_bytes: Some(100 << 20),
                missing: vec!["/proc/90/io: Permission denied".to_owned()],
                ..WatchedProcess::default()
            },
        ],
        missing: vec!["/proc/pressure/cpu: not found".to_owned()],
    };
    let process = ProcessUse {
        cpu: us(350_000),
        busiest_thread: Some(us(340_000)),
        run_delay: Some(us(1_500)),
        threads: 3,
        last_threads: 3,
        rss_bytes: Some(9 << 20),
        last_rss_bytes: Some(9 << 20),
        descriptors: Some(80),
        last_descriptors: Some(80),
        system: us(200_000),
        files: Some(FileUse { written_bytes: 3 << 20, write_calls: 1_200, ..FileUse::default() }),
        throttling: Some(Throttling { periods: 10, throttled: 1, time: us(20_000) }),
        group_memory_bytes: Some(50 << 20),
    };
    for second in 1..=2 {
        record.machine.intervals.push(MachineInterval {
            at: SECOND * second,
            length: SECOND,
            workers: vec![ThreadUse {
                cpu: us(340_000),
                system: us(200_000),
                run_delay: Some(us(1_500)),
                voluntary_switches: Some(900),
                involuntary_switches: Some(7),
            }],
            generator: Some(process),
            target: Some(process),
            watched: vec![
                WatchedUse { processes: 2, used: Some(process), ..WatchedUse::default() },
                store(second),
            ],
            cores: vec![CoreUse { busy: us(700_000), softirq: us(50_000), steal: us(10_000) }; 2],
            load_hundredths: Some(125),
            network: NetworkUse {
                segments_sent: Some(4_000),
                retransmitted: Some(2),
                tcp_in_use: Some(130),
                ..NetworkUse::default()
            },
            target_queue: Some(AcceptQueue { length: 3, limit: 128, drops: 0 }),
            own_segments: Some(OwnSegments { segments: 3_900, resent: 1, out_of_order: 0 }),
            ..MachineInterval::default()
        });
    }
    let stall = Stall { worker: 0, at: us(700_000), length: us(150_000) };
    record.workers[0].stalls.push(stall);
    for i in 0..300 {
        record.total.response_time.record(us(i * 500).0);
        record.total.response_in_stall.record(us(i * 500).0);
    }
    result(record, OPEN)
}

/// One request in fifty gets no answer within 2 s; the first of them are never sent.
pub(crate) fn timeouts() -> RunResult {
    let sample = |i: u64| match i % 50 {
        3 => Sample {
            sent: if i < 500 { Nanos::MAX } else { quiet(i).sent },
            first_byte: Nanos::MAX,
            done: quiet(i).started + SECOND * 2,
            outcome: Outcome::TimedOut,
            status: 0,
            bytes_received: 0,
            ..quiet(i)
        },
        4 => Sample { outcome: Outcome::Failed(ErrorClass::Status5xx), status: 503, ..quiet(i) },
        _ => quiet(i),
    };
    let mut record = recorded(GET, Model::Open, (0..10_000).map(sample));
    record.error_examples = [("status_5xx".to_owned(), "503 Service Unavailable".to_owned())].into();
    result(record, OPEN)
}

/// Figures as large as they get, a generator that kept nothing, and a hostile name.
pub(crate) fn huge() -> RunResult {
    let sample = |i: u64| {
        let sample = quiet(i);
        let lag = SECOND * (i * 40);
        Sample {
            started: sample.started + lag,
            sent: sample.sent + lag,
            done: sample.done + lag * 2,
            ..sample
        }
    };
    let mut record = recorded(GET, Model::Open, (0..3_000).map(sample));
    record.duration = SECOND * 86_400 * 30;
    record.target_per_second = Some(10_000_000.0);
    record.accounting = Accounting {
        scheduled: 25_920_000_000_000,
        started: 12_960_000_000_000,
        dropped: 960_000_000_000,
        never_started: 12_000_000_000_000,
        without_data: 3_000_000_000_000,
        unknown: 0,
        since_warmup: 0,
        ok: 12_900_000_000_000,
        failed: 59_000_000_000,
        timed_out: 900_000_000,
        aborted: 0,
        cut_short: 0,
        in_flight_at_stop: 100_000_000,
        undelivered: 12_345_678,
        unmeasured: 1_000_000_000,
        redirects_followed: 7_000_000_000,
        polls: 41,
        resent: 1_234,
        resent_closed: 1_200,
        incomplete: false,
    };
    record.iterations = IterationRecord {
        started: 12_960_000_000_000,
        completed: 12_900_000_000_000,
        failed: 59_900_000_000,
        unfinished: 100_000_000,
    };
    record.completed_in_window = 12_959_000_000_000;
    record.total.bytes_received = u64::MAX;
    record.total.bytes_sent = 1_088_640_000_000_000;
    record.total.statuses = [(200, 12_900_000_000_000), (500, 59_000_000_000)].into();
    record.connections.limit = 1_000_000;
    record.connections.peak_open = 1_000_000;
    record.connections.blocked = SECOND * 2_000_000;
    record.connections.blocked_at_limit = SECOND * 2_000_000;
    let worker = &mut record.workers[0];
    worker.wall = record.duration;
    worker.cpu_user = record.duration - SECOND * 1_000;
    worker.run_delay = Some(SECOND * 400_000);
    worker.stalls = vec![Stall { worker: 0, at: SECOND * 7_200, length: SECOND * 3 }];
    worker.unstamped = 4_000_000_000;
    worker.gather_time = Nanos::from_millis(40);
    record.error_examples = [("io".to_owned(), "never seen".to_owned())].into();
    let mut result = result(record, OPEN);
    result.run.targets[0].addresses = vec!["evil\x1b[31m\n:80".to_owned()];
    result
}

/// Iterations of three steps over HTTP/2: one in ten fails in its second step, and the last one is cut off
/// before its third. The server allows fewer streams than were asked for, and does not behave.
pub(crate) fn http2() -> RunResult {
    let fails = |iteration: u64| iteration % 10 == 9;
    let sample = |i: u64| {
        let (iteration, step) = (i / 3, i % 3);
        let sample = Sample { step: step as u32, ..quiet(i) };
        match step {
            0 if iteration % 20 == 4 => Sample { first_byte: Nanos::MAX, ..sample },
            1 if fails(iteration) => {
                let (class, status) = match iteration % 20 {
                    9 => (ErrorClass::Extraction, 201),
                    _ => (ErrorClass::StreamRefused, 0),
                };
                Sample { outcome: Outcome::Failed(class), status, ..sample }
            }
            _ => sample,
        }
    };
    let reached = |i: &u64| i % 3 < 2 || !fails(i / 3);
    let steps = &[
        "create POST http://127.0.0.1:8080/v1/items",
        "read GET http://127.0.0.1:8080/v1/items",
        "delete DELETE http://127.0.0.1:8080/v1/items",
    ];
    // 3,000 iterations, without the last request of the last but one, which is not one that fails.
    let samples = (0..9_000_u64).filter(reached).filter(|i| *i != 2_998 * 3 + 2).map(sample);
    let mut record = recorded(steps, Model::Open, samples);
    for step in &mut record.steps {
        step.scenario = "http://127.0.0.1:8080/v1/items".to_owned();
    }
    record.iterations = IterationRecord { started: 3_000, completed: 2_699, failed: 300, unfinished: 1 };
    record.duration = Nanos::from_millis(9_000);
    record.target_per_second = Some(3_000.0 / 9.0);
    record.protocols = [("h2".to_owned(), 8_548), ("http/1.1".to_owned(), 1)].into();
    record.peers[0].protocol = "h2".to_owned();
    record.connections.depth = 100;
    record.connections.limit = 4;
    (record.connections.opened, record.connections.peak_open) = (12, 4);
    record.connections.blocked = us(30_000);
    record.connections.blocked_at_limit = us(20_000);
    record.connections.blocked_unreached = us(5_000);
    let mut ping_time = Histogram::new();
    (0..40).for_each(|i| ping_time.record(90_000 + i * 500));
    record.connections.http2 = Http2Record {
        connections: 12,
        stream_limit: Some(32),
        streams_asked: 100,
        barred: 1,
        blocked_while_barred: us(5_000),
        resets: [("CANCEL".into(), 2), ("REFUSED_STREAM".into(), 150)].into(),
        go_aways: [("NO_ERROR".into(), 7), ("ENHANCE_YOUR_CALM".into(), 1)].into(),
        violations: [("FLOW_CONTROL_ERROR".into(), 1), ("PROTOCOL_ERROR".into(), 2)].into(),
        cancelled: 1_234,
        traffic: Http2Traffic {
            heads_sent: 210_000,
            heads_received: 95_000,
            fields_received: 1_900_000,
            content_received: 5_400_000,
        },
        ping_time,
    };
    for rate in [196_000, 199_500, 200_000, 204_500] {
        record.connections.request_rates.record(rate);
    }
    record.error_examples =
        [("extraction".to_owned(), "the response has no header location".to_owned())].into();
    let mut context = context(OPEN);
    context.targets = vec![target("127.0.0.1:8080", &["http://127.0.0.1:8080/v1/items"])];
    result_with(record, context)
}

/// An open run of 10 s in two scenarios, with thresholds of every kind: met, not met, not known, in windows.
pub(crate) fn thresholds() -> RunResult {
    let spec = |text: &str| ThresholdSpec::new(Threshold::parse(text).expect("it is a threshold"));
    let scenarios = ["buy", "look around"].into_iter().zip([0..1, 1..2]);
    let outline = Outline {
        scenarios: scenarios.map(|(name, steps)| ScenarioOutline { name: name.to_owned(), steps }).collect(),
        steps: ["pay", "search"].map(str::to_owned).to_vec(),
        awaited: Vec::new(),
        phases: Vec::new(),
        paces_requests: false,
        metrics: Vec::new(),
    };
    let two = Some(SECOND * 2);
    let specs = [
        spec("p99<10ms"),
        spec("p99.99{ok}<10ms"),
        spec("error_rate<0.1%"),
        spec("rate>=0.99*target"),
        ThresholdSpec { window: two, ..spec("max<=7.5ms") },
        ThresholdSpec {
            window: two,
            scenario: Some("buy".to_owned()),
            abort_on_fail: true,
            ..spec("failed<1%")
        },
        ThresholdSpec { step: Some("search".to_owned()), ..spec("p50<1ms") },
    ];
    let sample = |i: u64| {
        let failed = Outcome::Failed(ErrorClass::Status5xx);
        let sample = Sample { step: u32::from(i.is_multiple_of(4)), ..quiet(i) };
        let fails = i > 8_000 && i % 50 == 1;
        if fails { Sample { outcome: failed, status: 503, ..sample } } else { sample }
    };
    let mut record = recorded_as(&outline, Model::Open, (0..10_000).map(sample));
    let mut watch = ThresholdWatch::new(&specs, &outline, SECOND);
    for interval in &mut record.intervals {
        watch.look(interval);
        interval.steps.clear();
    }
    record.thresholds = watch.finish(&record);
    record.log = LogRecord { entries: 98_000, dropped: 2_000, failed: 40, failed_dropped: 0 };
    result(record, OPEN)
}

/// An open run of two phases after a warm-up, and of one that was not reached.
pub(crate) fn phases() -> RunResult {
    let mut record = recorded(&["GET http://127.0.0.1:8080/"], Model::Open, (0..3_000).map(quiet));
    let lengths = [("warm-up", 1, false), ("low", 2, true), ("high, and long", 4, true), ("never", 5, true)];
    let mut at = Nanos::ZERO;
    let outline: Vec<PhaseOutline> = (lengths.into_iter())
        .map(|(name, seconds, measured)| {
            let phase = PhaseOutline { name: name.to_owned(), at, length: SECOND * seconds, measured };
            at = phase.end();
            phase
        })
        .collect();
    let mut phases = PhaseMerger::new(&outline);
    let tally = |seconds: u64, timed_out: bool| {
        let mut recorder = Recorder::new(&["only".to_owned()]);
        for i in 0..seconds * 1_000 {
            recorder.note_started(0);
            let late = timed_out && i.is_multiple_of(50);
            let timeout = Sample { outcome: Outcome::TimedOut, status: 0, ..quiet(i) };
            recorder.record(&if late { timeout } else { quiet(i) });
        }
        recorder.snapshot(Gauges::default()).steps
    };
    for (at, drain, seconds, late) in [(1, false, 1, false), (3, false, 2, false), (6, false, 3, true)] {
        let completed = seconds * 1_000;
        let steps = tally(seconds, late);
        phases.add(&Interval { at: SECOND * at, drain, completed, steps, ..Interval::default() });
    }
    record.phases = phases.finish(SECOND * 6, |_, _| Some(1_000.0));
    result(record, OPEN)
}

/// Every fixture with its name.
pub(crate) fn all() -> [(&'static str, RunResult); 13] {
    [
        ("phases", phases()),
        ("open", open()),
        ("closed", closed()),
        ("all_failed", all_failed()),
        ("empty", empty()),
        ("timeouts", timeouts()),
        ("huge", huge()),
        ("http2", http2()),
        ("thresholds", thresholds()),
        ("steered", steered()),
        ("settling", settling()),
        ("overloaded", overloaded()),
        ("machine", machine()),
    ]
}
