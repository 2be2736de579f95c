//! The generator and its machine, and where a result is from.

use plimsoll_core::Nanos;
use plimsoll_metrics::figure;

use super::markup::{Cell, Markup, Unit, pointer};
use super::times::seconds;
use crate::contract::machine::{MachineSummary, ProcessResult};
use crate::contract::result::RunResult;
use crate::contract::watched::{ADDRESS, WatchedResult, rate};
use crate::render::text;

/// Workers that have a row of their own.
const MOST_WORKERS: usize = 64;

/// Writes the cost of the generator, and its timeliness.
pub(super) fn generator(page: &mut Markup, result: &RunResult) {
    let generator = &result.generator;
    let cpu = generator.cpu_us_per_request.map_or("-".to_owned(), |cpu| figure::nanos_f64(cpu * 1e3));
    let mut facts = vec![
        ("backend", Cell::figure(&generator.backend, "/generator/backend", Unit::Text)),
        ("threads", Cell::figure(figure::count(generator.threads), "/generator/threads", Unit::Count)),
        ("CPU time per response", Cell::text(cpu)),
        ("CPU time, user", seconds(generator.cpu_user_s, "/generator/cpu_user_s")),
        ("CPU time, system", seconds(generator.cpu_sys_s, "/generator/cpu_sys_s")),
    ];
    for part in generator.cpu_by_kind.iter().filter(|_| generator.cpu_by_kind.len() > 1) {
        let (label, cpu) = match part.kind.as_str() {
            "workers" => ("of it the workers", part.cpu_us_per_request),
            "bodies" => ("of it making bodies ahead", part.cpu_us_per_request),
            _ => ("of it signing ahead", part.cpu_us_per_request),
        };
        let cpu = cpu.map_or("-".to_owned(), |cpu| figure::nanos_f64(cpu * 1e3));
        facts.push((label, Cell::text(cpu)));
    }
    for (name, label) in [("50", "start lag p50"), ("99", "start lag p99"), ("max", "start lag, largest")] {
        facts.push((label, super::times::figure_of(&result.start_lag, "start_lag", name)));
    }
    if let Some(bytes) = generator.rss_peak_bytes {
        let at = "/generator/rss_peak_bytes";
        facts.push(("memory at most", Cell::figure(figure::bytes(bytes), at, Unit::Bytes)));
    }
    if let Some(turnaround) = generator.turnaround_mean_ns {
        let at = "/generator/turnaround_mean_ns";
        let span = figure::nanos(Nanos(turnaround));
        facts.push(("from a response to its user's next request", Cell::figure(span, at, Unit::Nanos)));
    }
    let responses = generator.stamped + generator.unstamped;
    if responses > 0 {
        let share = figure::share(generator.stamped as f64 / responses as f64);
        facts.push(("arrivals stamped by the kernel", Cell::text(share)));
    }
    page.facts(&facts);
    if let Some(calibration) = &generator.calibration {
        page.element("p", "", &text::calibrated(calibration));
    }
    workers(page, result);
    if let Some(machine) = &generator.machine {
        beside(page, machine);
    }
    if let Some(target) = &generator.target_process {
        page.element("h3", "", &format!("The target's process, {}", target.name));
        page.facts(&process(&target.used, "/generator/target_process"));
    }
    result.generator.watched.iter().enumerate().for_each(|(number, server)| watched(page, number, server));
}

/// A server that was watched. What else is known of the target's process stands above.
fn watched(page: &mut Markup, number: usize, server: &WatchedResult) {
    let at = format!("/generator/watched/{number}");
    let mut facts = Vec::new();
    match &server.used {
        Some(used) if server.found_by != ADDRESS => {
            facts.push(("processes", Cell::text(figure::count(server.processes))));
            facts.extend(process(used, &format!("{at}/used")));
        }
        Some(_) => {}
        None => facts.push(("processes", Cell::text("none in the measured part"))),
    }
    let memory = &server.memory;
    let bytes = [
        ("memory at first", "first_bytes", memory.first_bytes),
        ("memory at last", "last_bytes", memory.last_bytes),
    ];
    for (label, key, value) in bytes {
        if let Some(value) = value {
            let at = format!("{at}/memory/{key}");
            facts.push((label, Cell::figure(figure::bytes(value), at, Unit::Bytes)));
        }
    }
    if let Some(growth) = memory.growth_bytes_per_min {
        facts.push(("memory over time", Cell::text(rate(growth))));
    }
    page.element("h3", "", &format!("Watched: {}", server.title()));
    page.facts(&facts);
    server.ends().iter().for_each(|line| page.element("p", "hint", line));
    server.missing.iter().for_each(|reason| page.element("p", "hint", &format!("not read: {reason}")));
}

fn workers(page: &mut Markup, result: &RunResult) {
    let workers = &result.generator.workers;
    let rows: Vec<Vec<Cell>> = workers
        .iter()
        .enumerate()
        .take(MOST_WORKERS)
        .map(|(index, worker)| {
            let number = index.to_string();
            let at = |key: &str| pointer(&["generator", "workers", &number, key]);
            let absent = if worker.absent { "did not come back" } else { "" };
            let cpu = worker.cpu_share.map_or("-".to_owned(), figure::share);
            let delay = worker.run_delay_s.map_or("-".to_owned(), text::seconds);
            vec![
                Cell::text(&number).with_note(absent),
                Cell::figure(cpu, at("cpu_share"), Unit::Share),
                Cell::figure(delay, at("run_delay_s"), Unit::Seconds),
                Cell::figure(
                    figure::nanos(Nanos(worker.longest_pass_ns)),
                    at("longest_pass_ns"),
                    Unit::Nanos,
                ),
                Cell::figure(
                    figure::count(worker.involuntary_switches),
                    at("involuntary_switches"),
                    Unit::Count,
                ),
                Cell::text(figure::count(worker.stalls.len() as u64)),
            ]
        })
        .collect();
    let head = ["worker", "CPU", "waited for a processor", "longest pass", "switched out", "stalls"];
    page.table("Workers: threads of the generator", &head, &rows);
    if workers.len() > MOST_WORKERS {
        let more = workers.len() - MOST_WORKERS;
        page.element("p", "hint", &format!("and {more} more, in the result in JSON"));
    }
}

fn beside(page: &mut Markup, machine: &MachineSummary) {
    let used = &machine.used;
    let share = |value: f64, key: &str| {
        Cell::figure(figure::share(value), pointer(&["generator", "machine", key]), Unit::Share)
    };
    let busy: Vec<String> =
        used.cores_busy_share.iter().take(MOST_WORKERS).copied().map(figure::share).collect();
    let mut facts = vec![
        ("processors busy", Cell::text(busy.join(", "))),
        ("interrupts", share(used.softirq_share, "softirq_share")),
        ("taken by the hypervisor", share(used.steal_share, "steal_share")),
    ];
    let network = &used.network;
    let counts = [
        ("TCP segments sent again", "retransmitted", network.retransmitted),
        ("turned away by a full accept queue", "listen_overflows", network.listen_overflows),
        ("dropped by network devices", "device_drops", network.device_drops),
        ("sockets in TIME_WAIT at most", "tcp_time_wait", network.tcp_time_wait),
    ];
    for (label, key, value) in counts {
        if let Some(value) = value {
            let at = pointer(&["generator", "machine", "network", key]);
            facts.push((label, Cell::figure(figure::count(value), at, Unit::Count)));
        }
    }
    page.element("h3", "", "The machine in the measured part");
    page.facts(&facts);
    for missing in &machine.missing {
        page.element("p", "hint", missing);
    }
}

fn process(used: &ProcessResult, at: &str) -> Vec<(&'static str, Cell)> {
    let share =
        |value: f64, key: &str| Cell::figure(figure::share(value), format!("{at}/{key}"), Unit::Share);
    let mut facts = vec![
        ("CPU, of one processor", share(used.cpus, "cpus")),
        ("threads", Cell::figure(figure::count(used.threads), format!("{at}/threads"), Unit::Count)),
    ];
    if let Some(busiest) = used.busiest_thread_share {
        facts.push(("its busiest thread", share(busiest, "busiest_thread_share")));
    }
    if let Some(delay) = used.run_delay_s {
        facts.push(("a thread waited for a processor", seconds(delay, &format!("{at}/run_delay_s"))));
    }
    if let Some(bytes) = used.rss_bytes {
        let at = format!("{at}/rss_bytes");
        facts.push(("memory at most", Cell::figure(figure::bytes(bytes), at, Unit::Bytes)));
    }
    let counts = [
        ("descriptors at most", "descriptors", used.descriptors, Unit::Count),
        ("read from disk", "disk_read_bytes", used.disk_read_bytes, Unit::Bytes),
        ("written to disk", "disk_written_bytes", used.disk_written_bytes, Unit::Bytes),
        ("write calls", "write_calls", used.write_calls, Unit::Count),
    ];
    for (label, key, value, unit) in counts {
        if let Some(value) = value {
            let words = if unit == Unit::Bytes { figure::bytes(value) } else { figure::count(value) };
            facts.push((label, Cell::figure(words, format!("{at}/{key}"), unit)));
        }
    }
    if let Some(throttled) = used.throttled_share {
        facts.push(("periods in which it was throttled", share(throttled, "throttled_share")));
    }
    facts
}

/// By what methods the figures were made, and everything that another run needs to be the same.
pub(super) fn provenance(page: &mut Markup, result: &RunResult, plan: Option<&str>) {
    let methods = &result.methods;
    let said = [
        ("response time", &methods.response_time),
        ("percentiles", &methods.percentile),
        ("their intervals", &methods.percentile_interval),
        ("steady state", &methods.steady),
    ];
    let known = said.into_iter().filter(|(_, method)| !method.is_empty());
    let facts: Vec<_> = known.map(|(name, method)| (name, Cell::text(method))).collect();
    if !facts.is_empty() {
        page.element("h3", "", "Methods");
        page.facts(&facts);
    }
    page.element("h3", "", "Load");
    page.within("ul", "notes", |page| {
        result.model.description.iter().for_each(|line| page.element("li", "", line));
    });
    page.element("h3", "", "Origin");
    let (run, host) = (&result.run, &result.run.host);
    let fact = |text: &str, at: &str| Cell::figure(text, at, Unit::Text);
    let mut facts = vec![
        ("program", Cell::text(format!("{} {}", result.tool.name, result.tool.version))),
        ("run", fact(&run.id, "/run/id")),
        ("started", fact(&run.started_at, "/run/started_at")),
        ("seed", Cell::text(run.seed.to_string())),
        ("plan", fact(&run.plan_hash, "/run/plan_hash")),
    ];
    if let Some(checksum) = &run.load_checksum {
        facts.push(("load", fact(checksum, "/run/load_checksum")));
    }
    let mut machine = format!("{}, {} × {}", host.hostname, host.cpus, host.cpu_model);
    if host.memory_bytes > 0 {
        machine.push_str(&format!(", {}", figure::bytes(host.memory_bytes)));
    }
    if let Some(virtualisation) = &host.virtualisation {
        machine.push_str(&format!(", {virtualisation}"));
    }
    facts.push(("machine", Cell::text(machine)));
    let governor = host.governor.as_deref().unwrap_or("unknown");
    facts.push(("system", Cell::text(format!("{}, governor {governor}", host.kernel))));
    page.facts(&facts);
    page.element("h3", "", "Command");
    page.open("pre", &[("tabindex", "0")]);
    page.text(&run.args.join(" "));
    page.close("pre");
    if let Some(plan) = plan {
        page.open("details", &[]);
        page.element("summary", "", "The plan as it was written");
        page.open("pre", &[("tabindex", "0")]);
        page.text(plan);
        page.close("pre");
        page.close("details");
    }
}
