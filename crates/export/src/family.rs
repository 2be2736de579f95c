//! The figures of a run as families of metrics, in no format yet.

mod own;

use std::borrow::Cow;

use plimsoll_metrics::Distribution;

pub(crate) use self::own::{plain, quantiles};
use crate::times::Times;
use crate::totals::{ServerTotals, StepTotals, Totals};

/// Labels of a point.
pub(crate) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// A metric with all of its points.
pub(crate) struct Family<'a> {
    /// With dots between words, as OpenTelemetry has it.
    pub(crate) name: Cow<'a, str>,
    pub(crate) help: Cow<'a, str>,
    pub(crate) unit: Unit<'a>,
    pub(crate) points: Points<'a>,
}

/// The unit of a family's values, in the notation of UCUM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit<'a> {
    None,
    Seconds,
    Bytes,
    PerSecond,
    /// As a plan writes it, for people.
    Own(&'a str),
}

/// The points of a family, of one kind.
pub(crate) enum Points<'a> {
    /// Counters with whole values.
    Counts(Vec<(Labels<'a>, u64)>),
    /// Counters with fractional values.
    Sums(Vec<(Labels<'a>, f64)>),
    /// Gauges: values as they were read last.
    Gauges(Vec<(Labels<'a>, f64)>),
    /// Histograms of times.
    Times(Vec<(Labels<'a>, &'a Times)>),
    /// Numbers with some of their percentiles.
    Summaries(Vec<(Labels<'a>, &'a Distribution)>),
}

impl<'a> Family<'a> {
    /// A family of this program's own figures.
    pub(crate) const fn new(
        name: &'static str,
        help: &'static str,
        unit: Unit<'a>,
        points: Points<'a>,
    ) -> Self {
        Self { name: Cow::Borrowed(name), help: Cow::Borrowed(help), unit, points }
    }
}

impl Points<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Counts(points) => points.is_empty(),
            Self::Sums(points) | Self::Gauges(points) => points.is_empty(),
            Self::Times(points) => points.is_empty(),
            Self::Summaries(points) => points.is_empty(),
        }
    }
}

/// Status classes, in the order of [`StepTotals::statuses`].
const STATUSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// All families that have points.
pub(crate) fn families(totals: &Totals) -> Vec<Family<'_>> {
    let mut families = requests(totals);
    families.extend(load(totals));
    families.extend(generator(totals));
    families.extend(servers(totals));
    families.extend(own::families(totals));
    families.retain(|family| !family.points.is_empty());
    families
}

/// Every step of the measured part, and of the warm-up if anything was started in it.
fn steps(totals: &Totals) -> impl Iterator<Item = (Labels<'_>, &StepTotals)> {
    let warmup = totals.warmup.iter().enumerate().filter(|(_, step)| step.started > 0);
    let parts = warmup.map(|step| ("warmup", step));
    let parts = parts.chain(totals.measured.iter().enumerate().map(|step| ("measured", step)));
    parts.map(|(phase, (index, step))| {
        let (scenario, name) = totals.names(index);
        (vec![("scenario", scenario), ("step", name), ("phase", phase)], step)
    })
}

fn with<'a>(labels: &Labels<'a>, name: &'a str, value: &'a str) -> Labels<'a> {
    labels.iter().copied().chain([(name, value)]).collect()
}

/// One number of every step.
fn counts<'a>(totals: &'a Totals, count: fn(&StepTotals) -> u64) -> Points<'a> {
    Points::Counts(steps(totals).map(|(labels, step)| (labels, count(step))).collect())
}

fn requests(totals: &Totals) -> Vec<Family<'_>> {
    let (mut ended, mut statuses, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut response, mut service) = (Vec::new(), Vec::new());
    let (mut tokens, mut ttft) = (Vec::new(), Vec::new());
    for (labels, step) in steps(totals) {
        for (outcome, count) in [("ok", step.ok), ("failed", step.failed), ("timed_out", step.timed_out)] {
            ended.push((with(&labels, "outcome", outcome), count));
        }
        for (status, count) in STATUSES.into_iter().zip(step.statuses).filter(|(_, count)| *count > 0) {
            statuses.push((with(&labels, "status", status), count));
        }
        errors.extend(step.errors.iter().map(|(class, count)| (with(&labels, "class", class.name()), count)));
        response.push((labels.clone(), &step.response_time));
        // Steps without streams of events have neither.
        if step.content_events > 0 || step.ttft.count > 0 {
            tokens.push((labels.clone(), step.content_events));
            ttft.push((labels.clone(), &step.ttft));
        }
        service.push((labels, &step.service_time));
    }
    vec![
        Family::new(
            "plimsoll.requests_started",
            "Requests that were started.",
            Unit::None,
            counts(totals, |step| step.started),
        ),
        Family::new(
            "plimsoll.requests",
            "Requests that ended, by how they did.",
            Unit::None,
            Points::Counts(ended),
        ),
        Family::new(
            "plimsoll.responses",
            "Whole responses, by the class of their status.",
            Unit::None,
            Points::Counts(statuses),
        ),
        Family::new("plimsoll.errors", "Failed requests, by class.", Unit::None, Points::Counts(errors)),
        Family::new(
            "plimsoll.sent",
            "Bytes of requests on the wire, without TLS framing.",
            Unit::Bytes,
            counts(totals, |step| step.bytes_sent),
        ),
        Family::new(
            "plimsoll.received",
            "Bytes of responses on the wire, without TLS framing.",
            Unit::Bytes,
            counts(totals, |step| step.bytes_received),
        ),
        Family::new(
            "plimsoll.response_time",
            "From when a request should have started until its last byte came; timeouts as lower bounds.",
            Unit::Seconds,
            Points::Times(response),
        ),
        Family::new(
            "plimsoll.service_time",
            "From when a request was sent until its last byte came; timeouts as lower bounds.",
            Unit::Seconds,
            Points::Times(service),
        ),
        Family::new(
            "plimsoll.content_events",
            "Events with content of streams, as they came: tokens, where each has an event of its own.",
            Unit::None,
            Points::Counts(tokens),
        ),
        Family::new(
            "plimsoll.time_to_first_token",
            "From when a request should have started until its first content came; timeouts as lower bounds.",
            Unit::Seconds,
            Points::Times(ttft),
        ),
    ]
}

/// A gauge without labels; without a value it has no point.
fn gauge(name: &'static str, help: &'static str, unit: Unit<'static>, value: Option<f64>) -> Family<'static> {
    let points = value.map(|value| (Vec::new(), value)).into_iter().collect();
    Family::new(name, help, unit, Points::Gauges(points))
}

fn load(totals: &Totals) -> Vec<Family<'_>> {
    let gauges = &totals.gauges;
    let number = |value: u64| Some(value as f64);
    vec![
        gauge(
            "plimsoll.target_rate",
            "Iterations per second that are asked for now (open model).",
            Unit::PerSecond,
            gauges.target_per_second,
        ),
        gauge(
            "plimsoll.achieved_rate",
            "Whole responses per second in the last interval.",
            Unit::PerSecond,
            gauges.achieved_per_second,
        ),
        gauge("plimsoll.paused", "Whether the run is paused.", Unit::None, number(gauges.paused.into())),
        gauge("plimsoll.in_flight", "Requests in flight.", Unit::None, number(gauges.in_flight)),
        gauge("plimsoll.connections", "Open connections.", Unit::None, number(gauges.connections)),
        gauge(
            "plimsoll.thresholds_failed",
            "Thresholds that do not hold now.",
            Unit::None,
            number(gauges.thresholds_failed.into()),
        ),
        gauge(
            "plimsoll.valid",
            "Whether the figures of the run can be believed; from its end on.",
            Unit::None,
            totals.valid.map(|valid| f64::from(u8::from(valid))),
        ),
    ]
}

fn generator(totals: &Totals) -> Vec<Family<'_>> {
    let gauges = &totals.gauges;
    let cpu = gauges.cpu.map(|(user, system)| [("user", user), ("system", system)]);
    let cpu = cpu.into_iter().flatten().map(|(mode, time)| (vec![("mode", mode)], time.as_secs_f64()));
    vec![
        Family::new(
            "plimsoll.generator_cpu",
            "CPU time of the generator's process.",
            Unit::Seconds,
            Points::Sums(cpu.collect()),
        ),
        gauge(
            "plimsoll.generator_memory",
            "Resident memory of the generator's process.",
            Unit::Bytes,
            gauges.memory_bytes.map(|bytes| bytes as f64),
        ),
    ]
}

/// Returns the families of the watched servers: CPU time, memory, threads, descriptors, processes and storage
/// traffic.
fn servers(totals: &Totals) -> Vec<Family<'_>> {
    let (mut cpu, mut disk) = (Vec::new(), Vec::new());
    for server in &totals.servers {
        let labels = labels_of(server);
        for (mode, time) in [("user", server.user), ("system", server.system)] {
            cpu.push((with(&labels, "mode", mode), time.as_secs_f64()));
        }
        if let Some(files) = server.files {
            disk.push((with(&labels, "direction", "read"), files.read_bytes));
            disk.push((with(&labels, "direction", "written"), files.written_bytes));
        }
    }
    let read = |name, help, unit, of: fn(&ServerTotals) -> Option<u64>| {
        let known = totals.servers.iter().filter_map(|server| Some((labels_of(server), of(server)? as f64)));
        Family::new(name, help, unit, Points::Gauges(known.collect()))
    };
    vec![
        Family::new("plimsoll.server_cpu", "CPU time of a watched server.", Unit::Seconds, Points::Sums(cpu)),
        read("plimsoll.server_memory", "Resident memory of a watched server.", Unit::Bytes, |server| {
            server.now?.rss_bytes
        }),
        read("plimsoll.server_threads", "Threads of a watched server.", Unit::None, |server| {
            Some(server.now?.threads)
        }),
        read("plimsoll.server_descriptors", "Open descriptors of a watched server.", Unit::None, |server| {
            server.now?.descriptors
        }),
        read("plimsoll.server_processes", "Processes of a watched server.", Unit::None, |server| {
            Some(server.processes)
        }),
        Family::new(
            "plimsoll.server_disk",
            "Bytes that a watched server moved from and to storage.",
            Unit::Bytes,
            Points::Counts(disk),
        ),
    ]
}

fn labels_of(server: &ServerTotals) -> Labels<'_> {
    vec![("server", server.name.as_str()), ("number", server.number.as_str())]
}
