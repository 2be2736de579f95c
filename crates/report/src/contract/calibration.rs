//! Calibration: the most load that a machine can generate, measured against a server that does nothing.

use plimsoll_core::figure;
use plimsoll_metrics::{Reason, ReasonCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Style;
use crate::contract::context::Host;
use crate::contract::result::Tool;
use crate::render::layout::{Page, Row};

/// The version of this contract: raised when a field changes its meaning or goes, not when one is added.
pub const CALIBRATION_SCHEMA_VERSION: u32 = 1;
/// Share of the calibrated limit from which a run is warned about: a client that is busier than half of the
/// time adds its own queueing to what it measures (Treadmill, ISCA'16; `MEASUREMENT.md`, R5).
pub const WARNING_SHARE: f64 = 0.5;
/// Bytes that are added before sizes are compared: below them a message costs what its head costs.
const HEAD_BYTES: f64 = 256.0;

/// The most load that a machine can generate, by kind of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Version of this contract.
    pub schema_version: u32,
    /// The program that was calibrated.
    pub tool: Tool,
    /// When: RFC 3339, UTC.
    pub made_at: String,
    /// The machine.
    pub host: Host,
    /// Backend that drove the sockets: "io_uring" or "epoll".
    pub backend: String,
    /// Measurements, one for each kind of load.
    pub cells: Vec<CalibrationCell>,
}

/// Limit and cost of one kind of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationCell {
    /// The kind of load.
    pub load: LoadKind,
    /// Requests per second that one worker thread can generate.
    pub limit_per_s: f64,
    /// Requests per second that one did generate; null in those of an earlier version.
    #[serde(default)]
    pub reached_per_s: Option<f64>,
    /// True if the thread was busy all the time at that rate. If not, its server was the limit, and the rate
    /// is that of the time for which the thread was busy.
    pub saturated: bool,
    /// CPU time of the generator per request at that rate, in microseconds.
    pub cpu_us_per_request: f64,
    /// At half of the rate that was reached, the median response time of a server that answers at once: what
    /// this machine adds to every response time, with its kernel and the server's own work. In nanoseconds;
    /// null with too few samples, and where that rate was not kept.
    pub added_p50_ns: Option<u64>,
    /// At half of the rate that was reached, the 99th percentile of the response time of a server that
    /// answers at once. In nanoseconds; null with too few samples, and where that rate was not kept.
    pub added_p99_ns: Option<u64>,
}

/// Properties of a load that determine the cost of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadKind {
    /// `http/1.1`, `h2` or `cache`.
    pub protocol: String,
    /// True if it goes over TLS.
    pub tls: bool,
    /// Connections.
    pub connections: u64,
    /// Requests in flight at most on one of them.
    pub depth: u64,
    /// Mean size of a request.
    pub request_bytes: u64,
    /// Mean size of a response.
    pub response_bytes: u64,
    /// True if scripts make requests or judge responses.
    pub script: bool,
}

/// Share of this machine's calibrated limit that a run has used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationUse {
    /// The kind of load that was calibrated and is nearest to that of the run.
    pub load: LoadKind,
    /// When it was calibrated: RFC 3339, UTC.
    pub made_at: String,
    /// True if the requests of this very plan were calibrated, right before the run.
    pub of_this_plan: bool,
    /// Requests per second that all threads of the run can generate of this kind.
    pub limit_per_s: f64,
    /// Requests per second that they did generate, as a share of it.
    pub used_share: f64,
    /// At half of the limit, the median of what this machine adds to response times; null if unknown.
    pub added_p50_ns: Option<u64>,
    /// At half of the limit, the 99th percentile of what this machine adds to response times; null if
    /// unknown.
    pub added_p99_ns: Option<u64>,
}

impl CalibrationUse {
    /// The warning that a run came too close to the limit of the machine to be unaffected, if it did.
    pub fn warning(&self) -> Option<Reason> {
        (self.used_share > WARNING_SHARE).then(|| Reason {
            code: ReasonCode::CalibratedLimit,
            evidence: format!(
                "the generator used {} of the calibrated limit of this machine ({} for {})",
                figure::share(self.used_share),
                figure::per_second(self.limit_per_s),
                if self.of_this_plan { "this plan's requests".to_owned() } else { self.load.describe() },
            ),
            hint: "use a lower rate, or more threads (-t) where there are CPUs for them: beyond half of it, response times hold \
                   queueing of its own"
                .to_owned(),
        })
    }
}

impl LoadKind {
    /// Returns the distance between two kinds of load: the sum of the logarithms of their ratios, since costs
    /// go with the logarithm of most things. `None` if they cannot be compared.
    fn distance(&self, other: &Self) -> Option<f64> {
        if (&self.protocol, self.tls, self.script) != (&other.protocol, other.tls, other.script) {
            return None;
        }
        let factor = |mine: f64, theirs: f64| (mine / theirs).ln().abs();
        let bytes = |bytes: u64| bytes as f64 + HEAD_BYTES;
        let count = |count: u64| count.max(1) as f64;
        Some(
            factor(count(self.connections), count(other.connections))
                + factor(count(self.depth), count(other.depth))
                + factor(bytes(self.request_bytes), bytes(other.request_bytes))
                + factor(bytes(self.response_bytes), bytes(other.response_bytes)),
        )
    }

    /// A description: `HTTP/1.1 over TLS, 64 connections`.
    pub fn describe(&self) -> String {
        let protocol = match self.protocol.as_str() {
            "h2" => "HTTP/2".to_owned(),
            "" | "http/1.1" => "HTTP/1.1".to_owned(),
            other => format!("the {other} protocol"),
        };
        let tls = if self.tls { " over TLS" } else { "" };
        let connections = if self.connections == 1 { "connection" } else { "connections" };
        let depth = if self.depth > 1 { format!(" × {}", self.depth) } else { String::new() };
        let mut text = format!("{protocol}{tls}, {} {connections}{depth}", figure::count(self.connections));
        for (bytes, what) in [(self.request_bytes, "sent"), (self.response_bytes, "received")] {
            if bytes as f64 > 2.0 * HEAD_BYTES {
                text.push_str(&format!(", {} {what}", figure::bytes(bytes)));
            }
        }
        if self.script {
            text.push_str(", scripted");
        }
        text
    }
}

impl Calibration {
    /// Reads one that was written as JSON.
    ///
    /// # Errors
    /// Problems with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let broken = |error: serde_json::Error| format!("it is not a calibration: {error}");
        let calibration: Self = serde_json::from_str(text).map_err(broken)?;
        match calibration.schema_version {
            0..=CALIBRATION_SCHEMA_VERSION => Ok(calibration),
            newer => Err(format!("it has version {newer}, of a later version of this program")),
        }
    }

    /// Checks that it still applies to this machine: same version of the program, kernel, CPU model and
    /// backend.
    ///
    /// # Errors
    /// If one of these has changed since; the error names the first.
    pub fn check(&self, tool: &Tool, host: &Host, backend: &str) -> Result<(), String> {
        let changes = [
            ("version", &self.tool.version, &tool.version),
            ("kernel", &self.host.kernel, &host.kernel),
            ("CPU", &self.host.cpu_model, &host.cpu_model),
            ("backend", &self.backend, &backend.to_owned()),
        ];
        match changes.into_iter().find(|(_, then, now)| then != now) {
            Some((what, then, now)) => {
                Err(format!("the calibration of {} is for another {what}: {then}, now {now}", self.made_at))
            }
            None => Ok(()),
        }
    }

    /// Returns the share of the limit that a run with `threads` threads and `achieved_per_s` requests per
    /// second has used, by the nearest kind of load; `None` if no such kind was calibrated.
    pub fn used(&self, load: &LoadKind, threads: u64, achieved_per_s: f64) -> Option<CalibrationUse> {
        let near = self.cells.iter().filter_map(|cell| Some((cell.load.distance(load)?, cell)));
        let (_, cell) = near.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(cell.used(&self.made_at, threads, achieved_per_s))
    }

    /// For people.
    pub fn to_text(&self, style: &Style) -> String {
        let mut page = Page::new(style);
        page.heading(&format!("{} {} · calibration", self.tool.name, self.tool.version));
        let host = &self.host;
        page.field("machine", &format!("{} ({}, {})", host.hostname, host.cpu_model, host.kernel));
        page.field("made", &format!("{}, {}, one thread", self.made_at, self.backend));
        page.blank();
        let rows: Vec<Row> = self.cells.iter().map(CalibrationCell::row).collect();
        page.table(&["limit", "CPU", "added p50", "added p99"], &rows);
        if self.cells.iter().any(|cell| cell.added_p50_ns.is_none()) {
            page.line("");
            page.line("- not known: a server or a generator that did not keep up shows nothing of it");
        }
        if self.cells.iter().any(|cell| !cell.saturated) {
            page.line("");
            page.line("> the server was the limit: one thread generates more than this");
        }
        page.finish()
    }
}

impl CalibrationCell {
    /// Returns the share of this limit that a run has used.
    pub fn used(&self, made_at: &str, threads: u64, achieved_per_s: f64) -> CalibrationUse {
        let limit_per_s = self.limit_per_s * threads.max(1) as f64;
        CalibrationUse {
            load: self.load.clone(),
            made_at: made_at.to_owned(),
            of_this_plan: false,
            limit_per_s,
            used_share: if limit_per_s > 0.0 { achieved_per_s / limit_per_s } else { 1.0 },
            added_p50_ns: self.added_p50_ns,
            added_p99_ns: self.added_p99_ns,
        }
    }

    /// The limit for people: of one that was not reached, what was.
    pub fn limit_text(&self) -> String {
        match self.reached_per_s.filter(|_| !self.saturated) {
            Some(reached) => format!("> {}", figure::per_second(reached)),
            None if self.saturated => figure::per_second(self.limit_per_s),
            None => "-".to_owned(),
        }
    }

    fn row(&self) -> Row {
        let time = |value: Option<u64>| value.map_or("-".to_owned(), |value| figure::nanos_f64(value as f64));
        Row {
            label: String::new(),
            cells: vec![
                self.limit_text(),
                format!("{:.2} µs", self.cpu_us_per_request),
                time(self.added_p50_ns),
                time(self.added_p99_ns),
            ],
            note: self.load.describe(),
        }
    }
}

/// The JSON Schema of [`Calibration`].
pub fn schema_calibration() -> serde_json::Value {
    crate::contract::schema_of_written::<Calibration>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(protocol: &str, connections: u64, limit_per_s: f64) -> CalibrationCell {
        let load = LoadKind { protocol: protocol.to_owned(), connections, depth: 1, ..LoadKind::default() };
        CalibrationCell {
            load,
            limit_per_s,
            reached_per_s: Some(limit_per_s),
            saturated: true,
            cpu_us_per_request: 1e6 / limit_per_s,
            added_p50_ns: Some(50_000),
            added_p99_ns: None,
        }
    }

    fn calibration() -> Calibration {
        Calibration {
            schema_version: CALIBRATION_SCHEMA_VERSION,
            tool: Tool { name: "plimsoll".to_owned(), version: "1.0.0".to_owned() },
            made_at: "2026-01-01T00:00:00.000Z".to_owned(),
            host: Host { kernel: "Linux 6.1".to_owned(), ..Host::default() },
            backend: "epoll".to_owned(),
            cells: vec![cell("http/1.1", 1, 10_000.0), cell("http/1.1", 64, 100_000.0), cell("h2", 64, 2e5)],
        }
    }

    #[test]
    fn the_nearest_load_of_the_same_kind_counts() {
        let calibration = calibration();
        let asked = |protocol: &str, connections| LoadKind {
            protocol: protocol.to_owned(),
            connections,
            depth: 1,
            ..LoadKind::default()
        };
        let used = calibration.used(&asked("http/1.1", 50), 2, 62_000.0).unwrap();
        assert_eq!((used.limit_per_s, used.used_share, used.load.connections), (200_000.0, 0.31, 64));
        let used = calibration.used(&asked("http/1.1", 3), 1, 5_000.0).unwrap();
        assert_eq!((used.limit_per_s, used.used_share), (10_000.0, 0.5));
        let secure = LoadKind { tls: true, ..asked("h2", 64) };
        assert_eq!(calibration.used(&secure, 1, 1.0), None);
        assert_eq!(calibration.used(&asked("cache", 64), 1, 1.0), None, "it is not HTTP/1.1");
    }

    #[test]
    fn what_was_not_reached_is_not_told() {
        let mut calibration = calibration();
        let unsaturated = &mut calibration.cells[2];
        (unsaturated.limit_per_s, unsaturated.reached_per_s) = (1_811_386.0, Some(289_000.0));
        (unsaturated.saturated, unsaturated.added_p50_ns) = (false, None);
        let text = calibration.to_text(&Style::PLAIN);
        assert!(text.contains("> 289,000/s") && !text.contains("1,811,386"), "{text}");
        assert!(text.contains("> the server was the limit") && text.contains("- not known"), "{text}");
    }

    #[test]
    fn another_machine_is_noticed() {
        let calibration = calibration();
        let (tool, host) = (&calibration.tool, &calibration.host);
        assert_eq!(calibration.check(tool, host, "epoll"), Ok(()));
        assert!(calibration.check(tool, host, "io_uring").unwrap_err().contains("another backend"));
        let newer = Host { kernel: "Linux 7.0".to_owned(), ..host.clone() };
        assert!(calibration.check(tool, &newer, "epoll").unwrap_err().contains("another kernel: Linux 6.1"));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let calibration = calibration();
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(Calibration::read(&text).unwrap(), calibration);
        let newer = text.replace("\"schema_version\":1", "\"schema_version\":9");
        assert!(Calibration::read(&newer).is_err());
        assert!(Calibration::read("{").is_err());
    }
}
