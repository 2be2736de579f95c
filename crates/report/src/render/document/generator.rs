//! The cost of the generator, its timeliness, and the machine and processes beside it.

use std::iter;

use plimsoll_core::{figure, text::noun};

use super::{
    Fact, Line, Section, Shown, Span, Table, Unit, bytes, count, length, line, nanos, seconds, share, words,
};
use crate::contract::calibration::CalibrationUse;
use crate::contract::machine::{MachineSummary, ProcessResult};
use crate::contract::result::{CpuOfKind, Generator, LogResult, RunResult, Worker};
use crate::contract::watched::{ADDRESS, WatchedResult, rate};

/// Workers that have a row of their own, and processors that have a figure.
const MOST_WORKERS: usize = 64;
/// Share of a core from which on polling is worth a word.
const POLLED: f64 = 0.05;
/// From this length of a run on the report shows how the generator's own resources grew: in shorter ones its
/// buffers and histograms fill up.
const OWN_TRENDS_FROM_S: f64 = 600.0;

pub(super) fn sections(result: &RunResult) -> Vec<Section> {
    let generator = &result.generator;
    let own = Section { facts: facts(result), table: workers(&generator.workers), ..Section::default() };
    let target = generator.target_process.as_ref().map(|target| Section {
        heading: format!("The target's process, {}", target.name),
        facts: process(&target.used, "/generator/target_process"),
        ..Section::default()
    });
    let watched = generator.watched.iter().enumerate().map(watched);
    iter::once(own).chain(generator.machine.as_ref().map(machine)).chain(target).chain(watched).collect()
}

/// Facts of the generator, its log and exports.
fn facts(result: &RunResult) -> Vec<Fact> {
    let generator = &result.generator;
    let mut facts = vec![Fact::new("generator", cost(generator)).on(Shown::TextAndPage)];
    let short = generator.cpu_us_per_request;
    let short = short.map_or(String::new(), |cost| format!(", {cost:.2} µs CPU per request"));
    let threads = noun(generator.threads, "thread");
    let short = format!("{}, {} {threads}{short}", generator.backend, generator.threads);
    facts.push(Fact::new("generator", short).on(Shown::Markdown));
    let mut more = |line: Line| facts.push(Fact::new("", line).on(Shown::TextAndPage));
    by_kind(&generator.cpu_by_kind).into_iter().for_each(|parts| more(parts.into()));
    let trends = generator.trends.line().filter(|_| result.duration_s >= OWN_TRENDS_FROM_S);
    trends.into_iter().for_each(|trends| more(trends.into()));
    generator.calibration.iter().for_each(|calibration| more(calibrated(calibration).into()));
    if let Some(turnaround) = generator.turnaround_mean_ns {
        let share = result.service_time.mean.map_or_else(String::new, |service| {
            let share = turnaround as f64 / (service + turnaround).max(1) as f64;
            format!(", {} of a user's cycle", figure::share(share))
        });
        let span = nanos(turnaround, "/generator/turnaround_mean_ns");
        more(line![span, " from a response to the next request of its user", share]);
    }
    if generator.send_time_uncertain > 0 {
        let uncertain = generator.send_time_uncertain;
        let requests = noun(uncertain, "request");
        let share = figure::share(uncertain as f64 / result.accounting.started.max(1) as f64);
        more(line![
            "interrupted while it sent ",
            count(uncertain, "/generator/send_time_uncertain"),
            format!(" {requests} ({share}): uncertain service times"),
        ]);
    }
    if let Some(log) = &result.log {
        facts.push(Fact::new("log", logged(log)).on(Shown::TextAndPage));
    }
    for export in &result.exports {
        let mut line = format!("{} {}: {} times", export.kind, export.to, figure::count(export.sent));
        if let Some(error) = &export.last_error {
            line.push_str(&format!(", {} failed, the last one: {error}", figure::count(export.failed)));
        }
        facts.push(Fact::new("exports", line).on(Shown::TextAndPage));
    }
    let mut more = |line: Line| facts.push(Fact::new("", line).on(Shown::TextAndPage));
    if generator.bodies > 0 {
        let mut line = line![
            "made ",
            count(generator.bodies, "/generator/bodies"),
            " bodies while the run went on, ",
            count(generator.bodies_late, "/generator/bodies_late"),
            " of them when they were due",
        ];
        if generator.bodies_expired > 0 {
            line.push("; ");
            line.push(count(generator.bodies_expired, "/generator/bodies_expired"));
            line.push(" more had expired and were never sent");
        }
        more(line);
    }
    let responses = generator.stamped.saturating_add(generator.unstamped);
    if responses > 0 {
        let share = figure::share(generator.stamped as f64 / responses as f64);
        let mut line = line![format!("arrival stamped by the kernel for {share} of the responses")];
        if let Some((p50, max)) = generator.receive_lag.as_ref().and_then(|lag| lag.p.p50.zip(lag.max)) {
            line.push(", which were read ");
            line.push(nanos(p50, "/generator/receive_lag/p/50"));
            line.push(" later (at most ");
            line.push(nanos(max, "/generator/receive_lag/max"));
            line.push(")");
        }
        more(line);
    }
    facts
}

/// Backend, threads, CPU time and memory of the generator.
fn cost(generator: &Generator) -> Line {
    let mut line = line![
        words(&generator.backend, "/generator/backend"),
        format!(", {} {}, ", generator.threads, noun(generator.threads, "thread")),
    ];
    let total = generator.cpu_user_s + generator.cpu_sys_s;
    match generator.cpu_us_per_request {
        Some(cpu) if total > 0.0 => {
            let user = cpu * generator.cpu_user_s / total;
            let system = cpu - user;
            line.push(format!("{cpu:.2} µs CPU per request (user {user:.2}, system {system:.2})"));
        }
        _ => line.push(format!("{} CPU", seconds(total))),
    }
    let busiest =
        generator.workers.iter().filter_map(|worker| Some((worker.cpu_share?, worker.polled_share)));
    if let Some((busiest, polled)) = busiest.reduce(|one, other| if other.0 > one.0 { other } else { one }) {
        line.push(format!(", busiest thread {} of its core", figure::share(busiest)));
        if polled >= POLLED {
            line.push(format!(" ({} to start on time)", figure::share(polled)));
        }
    }
    if let Some(peak) = generator.rss_peak_bytes {
        line.push(", ");
        line.push(bytes(peak, "/generator/rss_peak_bytes"));
        line.push(" memory at most");
    }
    line
}

/// Returns the CPU cost of each kind of thread, if there are others than the workers.
fn by_kind(kinds: &[CpuOfKind]) -> Option<String> {
    let part = |part: &CpuOfKind| {
        let threads = noun(part.threads, "thread");
        let cost = part.cpu_us_per_request.map_or_else(|| seconds(part.cpu_s), |cpu| format!("{cpu:.2} µs"));
        format!("{} {cost} ({} {threads})", part.kind, part.threads)
    };
    (kinds.len() > 1).then(|| format!("of that {}", kinds.iter().map(part).collect::<Vec<_>>().join(", ")))
}

/// Returns the share of the calibrated limit that the run used: `31.0 % of this machine's calibrated limit of
/// 182,000/s for HTTP/1.1, 64 connections; at half of it, it adds 120 µs …`
fn calibrated(calibration: &CalibrationUse) -> String {
    let of = if calibration.of_this_plan {
        "this plan's requests".to_owned()
    } else {
        calibration.load.describe()
    };
    let mut line = format!(
        "{} of this machine's calibrated limit of {} for {of}",
        figure::share(calibration.used_share),
        figure::per_second(calibration.limit_per_s),
    );
    if let (Some(p50), Some(p99)) = (calibration.added_p50_ns, calibration.added_p99_ns) {
        let [p50, p99] = [p50, p99].map(|time| figure::nanos(plimsoll_core::Nanos(time)));
        line.push_str(&format!("; at half of it, it adds {p50} (p99 {p99})"));
    }
    line
}

fn logged(log: &LogResult) -> String {
    let mut parts = Vec::new();
    let mut part = |kept: u64, dropped: u64, what: &str, why: &str| {
        if kept > 0 || dropped > 0 {
            let lost =
                if dropped > 0 { format!(", {} {why}", figure::count(dropped)) } else { String::new() };
            parts.push(format!("{} {what}{lost}", figure::count(kept)));
        }
    };
    part(log.entries, log.dropped, "requests", "given up: the disk could not keep up");
    part(log.failed, log.failed_dropped, "failed requests with their messages", "more are not kept");
    parts.join("; ")
}

fn workers(workers: &[Worker]) -> Table {
    let row = |(index, worker): (usize, &Worker)| {
        let at = |key: &str| format!("/generator/workers/{index}/{key}");
        let cpu = worker.cpu_share.map_or("-".to_owned(), figure::share);
        let delay = worker.run_delay_s.map_or("-".to_owned(), seconds);
        vec![
            Line::from(index.to_string()).with_note(if worker.absent { "did not come back" } else { "" }),
            Span::figure(cpu, at("cpu_share"), Unit::Share).into(),
            Span::figure(delay, at("run_delay_s"), Unit::Seconds).into(),
            nanos(worker.longest_pass_ns, at("longest_pass_ns")).into(),
            count(worker.involuntary_switches, at("involuntary_switches")).into(),
            figure::count(worker.stalls.len() as u64).into(),
        ]
    };
    let heads = ["worker", "CPU", "waited for a processor", "longest pass", "switched out", "stalls"];
    let heads = heads.map(|title| (title, Shown::Page));
    let rows = workers.iter().enumerate().map(row);
    Table::new("Workers: threads of the generator", heads, rows).of_first(MOST_WORKERS)
}

fn page(label: &'static str, value: impl Into<Line>) -> Fact {
    Fact::new(label, value).on(Shown::Page)
}

fn machine(machine: &MachineSummary) -> Section {
    let used = &machine.used;
    let at = |key: &str| format!("/generator/machine/{key}");
    let busy = used.cores_busy_share.iter().take(MOST_WORKERS).copied().map(figure::share);
    let mut facts = vec![
        page("processors busy", busy.collect::<Vec<_>>().join(", ")),
        page("interrupts", share(used.softirq_share, at("softirq_share"))),
        page("taken by the hypervisor", share(used.steal_share, at("steal_share"))),
    ];
    let network = &used.network;
    let (queue, own) = (used.target_queue, used.own_segments);
    let counts = [
        ("segments of the load sent again", "own_segments/resent", own.map(|own| own.resent)),
        ("segments of the load out of order", "own_segments/out_of_order", own.map(|own| own.out_of_order)),
        ("turned away by the target", "target_queue/drops", queue.map(|queue| queue.drops)),
        ("accept queue of the target at most", "target_queue/length", queue.map(|queue| queue.length)),
        ("its room", "target_queue/limit", queue.map(|queue| queue.limit)),
        ("TCP segments sent again, of all programs", "network/retransmitted", network.retransmitted),
        (
            "turned away by full accept queues, of all programs",
            "network/listen_overflows",
            network.listen_overflows,
        ),
        ("dropped by network devices", "network/device_drops", network.device_drops),
        ("sockets in TIME_WAIT at most", "network/tcp_time_wait", network.tcp_time_wait),
    ];
    let known = counts.into_iter().filter_map(|(label, key, value)| Some((label, key, value?)));
    facts.extend(known.map(|(label, key, value)| page(label, count(value, at(key)))));
    facts.extend(machine.missing.iter().map(|missing| page("not read", missing.as_str())));
    Section { heading: "The machine in the measured part".to_owned(), facts, ..Section::default() }
}

/// Resources that processes used together, from the object at this pointer.
fn process(used: &ProcessResult, at: &str) -> Vec<Fact> {
    let at = |key: &str| format!("{at}/{key}");
    let counted = |value: Option<u64>, key: &str| value.map(|value| count(value, at(key)));
    let sized = |value: Option<u64>, key: &str| value.map(|value| bytes(value, at(key)));
    let shared = |value: Option<f64>, key: &str| value.map(|value| share(value, at(key)));
    let facts = [
        ("CPU, of one processor", shared(Some(used.cpus), "cpus")),
        ("threads", counted(Some(used.threads), "threads")),
        ("its busiest thread", shared(used.busiest_thread_share, "busiest_thread_share")),
        ("a thread waited for a processor", used.run_delay_s.map(|delay| length(delay, at("run_delay_s")))),
        ("memory at most", sized(used.rss_bytes, "rss_bytes")),
        ("descriptors at most", counted(used.descriptors, "descriptors")),
        ("read from disk", sized(used.disk_read_bytes, "disk_read_bytes")),
        ("written to disk", sized(used.disk_written_bytes, "disk_written_bytes")),
        ("write calls", counted(used.write_calls, "write_calls")),
        ("periods in which it was throttled", shared(used.throttled_share, "throttled_share")),
    ];
    facts.into_iter().filter_map(|(label, value)| Some(page(label, value?))).collect()
}

/// A server that was watched. Other facts about the target's process stand above.
fn watched((number, server): (usize, &WatchedResult)) -> Section {
    let at = format!("/generator/watched/{number}");
    let labels = iter::once("watched").chain(iter::repeat(""));
    let lines = server.lines().into_iter().zip(labels);
    let mut facts: Vec<Fact> = lines.map(|(line, label)| Fact::new(label, line).on(Shown::Text)).collect();
    match &server.used {
        Some(used) if server.found_by != ADDRESS => {
            facts.push(page("processes", figure::count(server.processes)));
            facts.extend(process(used, &format!("{at}/used")));
        }
        Some(_) => {}
        None => facts.push(page("processes", "none in the measured part")),
    }
    let memory = &server.memory;
    let sizes = [
        ("memory at first", "first_bytes", memory.first_bytes),
        ("memory at last", "last_bytes", memory.last_bytes),
    ];
    for (label, key, value) in sizes {
        facts.extend(value.map(|value| page(label, bytes(value, format!("{at}/memory/{key}")))));
    }
    facts.extend(memory.growth_bytes_per_min.map(|growth| page("memory over time", rate(growth))));
    facts.extend(server.ends().into_iter().map(|line| page("ended", line)));
    facts.extend(server.missing.iter().map(|reason| page("not read", reason.as_str())));
    Section { heading: format!("Watched: {}", server.title()), facts, ..Section::default() }
}
