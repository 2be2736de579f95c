//! A coordinator of a thousand agents, whose recorded messages are replayed: all of their counts arrive, by
//! intervals as well as by results, and what each agent is sent does not depend on how many there are.
//!
//! `cargo test --release -- --nocapture` prints the cost in CPU time, memory and bytes.
//! `PLIMSOLL_FLEET_AGENTS=N` replays N agents only.
use plimsoll_core::Nanos;
use plimsoll_fleet::{
    Coordinator, CoordinatorAction, CoordinatorOptions, CoordinatorStage, Delivery, End, FromAgent,
    MemberEnd, Now, OnLoss, Piece, Prepare, WIRE_VERSION, Word,
};
use plimsoll_metrics::interval::{IntervalDownsampler, ProcessMerger};
use plimsoll_metrics::{Interval, Outline, Recorder, Sample, ScenarioOutline};
use plimsoll_report::agent::AgentResult;
use plimsoll_report::result::ModelKind;
use plimsoll_report::saved::{
    Beginning, Cut, FleetShare, LiveRecord, interval_from_bytes, interval_line_to_bytes, interval_to_line,
};
use plimsoll_report::{RunContext, SavedRun};

const SECONDS: u64 = 3;
const RUN: &str = "r1";
const EPOCH: Nanos = Nanos::from_secs(1_800_000_000);
const SECOND: Nanos = Nanos::from_secs(1);

fn name(agent: usize) -> String {
    format!("agent-{agent}")
}

fn outline() -> Outline {
    Outline {
        scenarios: vec![ScenarioOutline { name: String::new(), steps: 0..1 }],
        steps: vec!["step".to_owned()],
        awaited: Vec::new(),
        phases: Vec::new(),
        paces_requests: true,
        metrics: Vec::new(),
    }
}

/// Requests of an agent in a second.
fn requests(agent: usize, second: u64) -> u64 {
    (agent as u64 + second) % 17
}

/// The seconds of an agent, as its process records them.
fn intervals(agent: usize) -> Vec<Interval> {
    let mut recorder = Recorder::new(&["step".to_owned()]);
    let mut intervals = Vec::new();
    for second in 1..=SECONDS {
        for number in 0..requests(agent, second) {
            recorder.note_started(0);
            let done = Nanos::from_micros(100 + number * 37 + agent as u64);
            recorder.record(&Sample {
                step: 0,
                intended: Nanos::ZERO,
                started: Nanos::ZERO,
                sent: Nanos::ZERO,
                first_byte: done,
                done,
                outcome: plimsoll_core::Outcome::Ok,
                status: 200,
                bytes_sent: 10,
                bytes_received: 20,
            });
        }
        let gauges = plimsoll_metrics::Gauges {
            at: SECOND * second,
            scheduled: requests(agent, second),
            ..Default::default()
        };
        let mut merger = plimsoll_metrics::IntervalMerger::new(1).with_outline(outline());
        merger.add(&recorder.snapshot(gauges));
        intervals.push(Interval { length: SECOND, ..merger.finish().remove(0) });
    }
    intervals
}

fn saved(agent: usize, agents: usize, intervals: &[Interval]) -> SavedRun {
    let downsampler = IntervalDownsampler::new(SECOND, None, vec![SECOND * SECONDS], outline());
    let mut record = LiveRecord::new(downsampler);
    intervals.iter().for_each(|interval| record.note(interval));
    let context = RunContext {
        run_id: RUN.to_owned(),
        shard: Some(format!("{}/{agents}", agent + 1)),
        plan_hash: "p".to_owned(),
        load_checksum: "c".to_owned(),
        ..RunContext::default()
    };
    let beginning = Beginning {
        context,
        model: ModelKind::Open,
        started_unix_ns: EPOCH.0,
        warmup_ns: 0,
        steps: vec![("step".to_owned(), String::new())],
        plan: None,
    };
    record.into_run(beginning, Cut::Killed)
}

fn said(agent: usize, word: Word, body: &[u8]) -> Delivery {
    let kind = match &word {
        Word::Interval { .. } => "line",
        Word::Part(_) => "part",
        _ => "word",
    };
    let subject = format!("plim.run.{RUN}.a.{}.{kind}", name(agent));
    let said = FromAgent { wire: WIRE_VERSION, agent: name(agent), run: RUN.to_owned(), share: 0, word };
    let mut payload = serde_json::to_vec(&said).expect("it is JSON");
    payload.push(b'\n');
    payload.extend_from_slice(body);
    Delivery { subject, payload }
}

/// The number of the clock exchange that an order asks for.
fn exchange(payload: &[u8]) -> Option<u32> {
    let order: serde_json::Value = serde_json::from_slice(payload).ok()?;
    order["order"]["clock"]["exchange"].as_u64().map(|number| number as u32)
}

/// The cost of a coordinator.
struct Cost {
    /// Bytes that it receives in a second, from all agents.
    received: usize,
    /// Bytes that the broker delivers to all agents for it in a second.
    delivered: usize,
    /// The cost in words.
    told: String,
}

/// CPU time of this thread.
fn cpu_time() -> Nanos {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Nanos(told.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or_default())
}

/// Memory of this process in KiB: a field of its status.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.and_then(|value| value.trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}

/// Bytes that agents get of what a coordinator publishes: a beat goes to each.
fn delivered(actions: &[CoordinatorAction], agents: usize) -> usize {
    let bytes = |action: &CoordinatorAction| match action {
        CoordinatorAction::Publish { subject, payload } if subject.ends_with(".all") => {
            (subject.len() + payload.len()) * agents
        }
        CoordinatorAction::Publish { subject, payload } => subject.len() + payload.len(),
        _ => 0,
    };
    actions.iter().map(bytes).sum()
}

/// Replays a run of `agents` agents. All of their counts arrive.
fn replay(agents: usize) -> Cost {
    let now = |ms: u64| Now { monotonic: Nanos::from_millis(ms), unix: EPOCH + Nanos::from_millis(ms) };
    let options = CoordinatorOptions {
        run: RUN.to_owned(),
        agents: (0..agents).map(|agent| (name(agent), 1)).collect(),
        threads: 2,
        prepare: Prepare::default(),
        files: Vec::new(),
        on_loss: OnLoss::Abort,
        orphan: Nanos::from_secs(30),
        hold: None,
    };
    let mut coordinator = Coordinator::new(options, now(0));
    let mut orders: Vec<(usize, u32)> = Vec::new();
    let note = |actions: Vec<CoordinatorAction>, orders: &mut Vec<(usize, u32)>| {
        for action in actions {
            if let CoordinatorAction::Publish { subject, payload } = action
                && let Some(agent) = subject.strip_prefix("plim.to.agent-")
                && let Some(exchange) = exchange(&payload)
            {
                orders.push((agent.parse().expect("a number"), exchange));
            }
        }
    };
    let claimed = || Word::Claimed { version: "0".to_owned(), cores: 2 };
    (0..agents).for_each(|agent| drop(coordinator.hear(&said(agent, claimed(), b""), now(1))));
    (0..agents).for_each(|agent| drop(coordinator.hear(&said(agent, Word::Ready, b""), now(2))));
    note(coordinator.tick(now(3)), &mut orders);
    while coordinator.stage() == CoordinatorStage::Estimating {
        for (agent, exchange) in std::mem::take(&mut orders) {
            let word = Word::Clock { exchange, unix_ns: now(4).unix.0 };
            note(coordinator.hear(&said(agent, word, b""), now(5)), &mut orders);
        }
    }
    let members = coordinator.sketches();
    let start = coordinator.start().expect("the clocks are known");
    for (agent, member) in members.iter().enumerate() {
        let there = member.clock.expect("it was estimated").there(start);
        coordinator.hear(&said(agent, Word::Armed { start_at_unix_ns: there.0 }, b""), now(6));
    }
    assert_eq!(coordinator.stage(), CoordinatorStage::Begun);

    let recorded: Vec<Vec<Interval>> = (0..agents).map(intervals).collect();
    let mut seconds: Vec<Vec<Delivery>> = Vec::new();
    for second in 1..=SECONDS {
        let message = |(agent, intervals): (usize, &Vec<Interval>)| {
            let line = interval_to_line(&intervals[second as usize - 1]).expect("it is written");
            let word = Word::Interval { number: second, first: 1 };
            said(agent, word, &interval_line_to_bytes(&line).expect("it is a line"))
        };
        seconds.push(recorded.iter().enumerate().map(message).collect());
    }
    let received: usize = seconds.iter().flatten().map(|message| message.payload.len()).sum();
    let first_workers: Vec<u32> = (0..agents as u32).map(|agent| agent * 2).collect();
    let mut merger = ProcessMerger::new(&first_workers, SECOND, outline(), Vec::new());
    let before = memory("VmRSS");
    let begun = cpu_time();
    let (mut merged, mut sent) = (Vec::new(), 0);
    for (second, messages) in (1..).zip(&seconds) {
        let at = 5_000 + second * 1_000;
        for message in messages {
            let actions = coordinator.hear(message, now(at));
            sent += delivered(&actions, agents);
            for action in actions {
                if let CoordinatorAction::Interval { place, interval } = action {
                    merger.add(place, &interval_from_bytes(&interval).expect("it is read"));
                }
            }
        }
        merged.extend(std::iter::from_fn(|| merger.next_complete()));
        // As often as the command does.
        for tick in 0..50 {
            let actions = coordinator.tick(now(at + tick * 20));
            sent += delivered(&actions, agents);
        }
    }
    let cpu = Nanos(cpu_time().since(begun).0 / SECONDS);
    let during = memory("VmRSS").saturating_sub(before) >> 10;
    let per_second = |bytes: usize| bytes / SECONDS as usize;
    let (received, sent) = (per_second(received), per_second(sent));
    let due = |second: u64| (0..agents).map(|agent| requests(agent, second)).sum::<u64>();
    let counts: Vec<(u64, u64)> = merged.iter().map(|one| (one.scheduled, one.ok)).collect();
    let expected: Vec<(u64, u64)> = (1..=SECONDS).map(|second| (due(second), due(second))).collect();
    assert_eq!(counts, expected);

    for (agent, intervals) in recorded.iter().enumerate() {
        let end = End { exit: Some(0), intervals: SECONDS, ..End::default() };
        let piece = Piece { part: 1, piece: 0, pieces: 1, end: Some(end) };
        let bytes = saved(agent, agents, intervals).to_bytes().expect("it is written");
        let actions = coordinator.hear(&said(agent, Word::Part(piece), &bytes), now(9_000));
        // The last one of all ends the run for each of them.
        if coordinator.stage() == CoordinatorStage::Begun {
            assert!(delivered(&actions, agents) < LARGEST_ANSWER, "agent {agent}");
        }
    }
    assert_eq!(coordinator.stage(), CoordinatorStage::Over);
    let begun = cpu_time();
    let share = |(number, member): (usize, plimsoll_fleet::Member)| {
        assert!(matches!(member.end, MemberEnd::Ended(_)));
        let shard = format!("{}/{agents}", number + 1);
        let agent = AgentResult { name: member.name, shard, ..AgentResult::default() };
        FleetShare { agent, run: Some(SavedRun::from_bytes(&member.part).expect("it is read")) }
    };
    let result = SavedRun::merge_fleet(coordinator.members().into_iter().enumerate().map(share).collect());
    let merging = cpu_time().since(begun);
    let result = result.expect("they are shards of one load");
    let all: u64 = (1..=SECONDS).map(due).sum();
    assert_eq!((result.result.accounting.ok, result.total().response_time.count()), (all, all));
    assert_eq!(result.result.agents.len(), agents);
    let peak = memory("VmHWM").saturating_sub(before) >> 10;
    let told = format!(
        "{agents} agents: in each second {:.2} ms of CPU, {} KiB received, {} KiB delivered ({} bytes for each \
         agent), {during} MiB of memory; {:.1} ms and {peak} MiB for the result of all",
        cpu.0 as f64 / 1e6,
        received >> 10,
        sent >> 10,
        sent / agents,
        merging.0 as f64 / 1e6,
    );
    Cost { received, delivered: sent, told }
}

/// Largest answer to a part of a result, in bytes.
const LARGEST_ANSWER: usize = 200;
/// Bytes that an agent is sent in a second: a beat, an acknowledgement, and now and then the question what
/// time it is.
const PER_AGENT: usize = 400;

/// Symptom: each beat had the watermarks of all agents, so that the traffic grew with their square: 28 KB
/// in a beat to each of a thousand.
#[test]
fn the_counts_of_a_thousand_agents_are_exact_and_each_is_sent_as_much_as_one_of_three() {
    if let Ok(agents) = std::env::var("PLIMSOLL_FLEET_AGENTS") {
        eprintln!("{}", replay(agents.parse().expect("a number of agents")).told);
        return;
    }
    let [few, many] = [3, 1_000].map(|agents| {
        let cost = replay(agents);
        eprintln!("{}", cost.told);
        assert!(cost.received > 0);
        cost.delivered / agents
    });
    // Names of agents have up to three digits.
    assert!(many <= few + 8 && many <= PER_AGENT, "{few} and {many} bytes per second");
}
