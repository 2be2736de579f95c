//! Specification of the data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draw::TYPE_NAMES;
use crate::format::{Compression, Format};
use crate::kind::Kind;

/// Data of one kind, and their format. [`Spec::default`] is columnar metrics as the scripts of Arc make them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// Kind of data.
    pub kind: Kind,
    /// Format of a batch.
    pub format: Format,
    /// Compression of a batch.
    pub compression: Compression,
    /// The measurement (table, index) that the records go to; without it that of the kind's scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurement: Option<String>,
    /// Records of one batch, from 1 to a million.
    pub batch_size: u32,
    /// Which columns a record has.
    pub shape: Shape,
    /// Services that write logs (50 without it) or spans (20).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<u32>,
    /// Hosts that metrics are of; without it 100 (1,000 of the shape `host`), or as many as the cardinality
    /// needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// Different series of the metrics at any one time; without it every metric of every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cardinality: Option<u32>,
    /// The share of the series that new ones take the place of, per second of the time that the data say,
    /// from 0 to 1. Hosts are replaced, one after another, each with all of its series.
    pub churn: f64,
    /// The unit of times where the format leaves it open.
    pub time_unit: TimeUnit,
    /// Time from one record of a batch to the next, in nanoseconds; without it as little as keeps the points
    /// of a series apart, where the format's receivers know them by series and time, else 100 ns. The batches
    /// of a run follow each other in time: with steps longer than a second divided by the records of a second
    /// times run ahead of the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ns: Option<u64>,
    /// When the times of a run begin, in milliseconds since 1970; without it they are those of the clock.
    /// From there on they follow each other by their steps alone, so that the same seed makes the same
    /// batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Spans of a trace, from 1 to 255. The last trace of a batch may have fewer.
    pub spans_per_trace: u8,
    /// The share of spans that have a parent, of all but the first of their trace, from 0 to 1. The scripts
    /// have 0.3.
    pub parents: f64,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            kind: Kind::Metrics,
            format: Format::Columnar,
            compression: Compression::None,
            measurement: None,
            batch_size: 1_000,
            shape: Shape::Seed,
            services: None,
            hosts: None,
            cardinality: None,
            churn: 0.0,
            time_unit: TimeUnit::Ms,
            step_ns: None,
            start_ms: None,
            spans_per_trace: 10,
            parents: 0.3,
        }
    }
}

/// Which columns a record has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Columns that Arc's guide to load tests describes: for metrics seven types, one value for each record.
    #[default]
    Seed,
    /// For metrics: what the script sends, three shares of use of a host's processor, memory or disk, one of
    /// the three measurements for each batch.
    Host,
    /// Fewer columns, for several kinds at once.
    Small,
}

impl Shape {
    /// All of them, in the order in which they are listed anywhere.
    pub const ALL: [Self; 3] = [Self::Seed, Self::Host, Self::Small];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::Host => "host",
            Self::Small => "small",
        }
    }
}

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    /// Seconds.
    S,
    /// Milliseconds.
    #[default]
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    /// All of them, from the longest.
    pub const ALL: [Self; 4] = [Self::S, Self::Ms, Self::Us, Self::Ns];

    /// The name by which users, and InfluxDB, call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
            Self::Ns => "ns",
        }
    }

    /// The unit that receivers of line protocol call so: InfluxDB 1 has names of its own for two of them.
    pub fn of_precision(name: &str) -> Option<Self> {
        match name {
            "n" => Some(Self::Ns),
            "u" => Some(Self::Us),
            name => Self::ALL.into_iter().find(|unit| unit.name() == name),
        }
    }

    /// Returns the name of the unit for receivers of line protocol at this path. InfluxDB 1 takes `us`, and
    /// any other name that it does not know, for nanoseconds, without an error.
    pub fn precision_at(self, path: &str) -> &'static str {
        if self == Self::Us && is_of_influxdb_1(path) { "u" } else { self.name() }
    }

    /// Returns the length of the unit in nanoseconds.
    pub fn nanos(self) -> u64 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
        }
    }
}

/// Returns `true` if a path, or a whole URL, is InfluxDB 1's endpoint for writes.
fn is_of_influxdb_1(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.ends_with("/write") && !path.ends_with("/api/v2/write")
}

/// Returns the unit of times that a path, or a whole URL, names.
pub fn precision_in(path: &str) -> Option<&str> {
    let (_, query) = path.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("precision="))
}

/// Something that is wrong with a spec, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field of the spec that it is about.
    pub field: &'static str,
    /// Description of the problem; one line, no full stop.
    pub message: String,
    /// Factors of the lengths before, during and after the campaign, in hundredths.
    pub hint: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

/// Metric types of the shape `seed`, and measurements of the shape `host`: series that a host has.
pub(crate) const SEED_METRICS: u32 = 7;
pub(crate) const HOST_METRICS: u32 = HOST_MEASUREMENTS.len() as u32;
const HOST_MEASUREMENTS: [&str; 3] = ["cpu", "mem", "disk"];
/// Entries of one table of words: what they take is held in memory.
const HOSTS_MAX: u32 = 2_000_000;
const SERVICES_MAX: u32 = 100_000;
const BATCH_MAX: u32 = 1_000_000;

impl Spec {
    /// The measurements that records go to. If they are several, batch number `n` is of the one number `n`
    /// modulo how many they are.
    pub fn measurements(&self) -> Vec<&str> {
        match (self.shape, &self.measurement) {
            (Shape::Host, None) => HOST_MEASUREMENTS.to_vec(),
            _ => vec![self.measurement()],
        }
    }

    /// When the times of a run begin, in nanoseconds since 1970; `None` for the clock's.
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ms.map(|millis| millis.saturating_mul(1_000_000))
    }

    /// The names of metrics where they are not a column but what series are called, as in Prometheus. That is
    /// so of the shapes whose metrics have one value.
    pub fn metric_names(&self) -> Vec<String> {
        TYPE_NAMES.iter().map(|name| format!("{}_{name}", self.measurement())).collect()
    }

    /// The measurement that records go to, unless they are several.
    fn measurement(&self) -> &str {
        self.measurement.as_deref().unwrap_or(self.kind.measurement())
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> &'static str {
        self.format.content_type()
    }

    /// The value of `Content-Encoding`, if there has to be one. Arc looks at the first bytes instead, and
    /// does not mind.
    pub fn content_encoding(&self) -> Option<&'static str> {
        match self.compression_used() {
            Compression::None => None,
            other => Some(other.name()),
        }
    }

    /// Further header fields that the format's receivers require.
    pub fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.format {
            Format::RemoteWrite => &[("X-Prometheus-Remote-Write-Version", "0.1.0")],
            _ => &[],
        }
    }

    /// Checks that receivers at this path read times in the unit in which they are written. Receivers of line
    /// protocol assume nanoseconds unless the path names another unit; all other formats carry the unit.
    ///
    /// # Errors
    /// The receivers read another unit.
    pub fn check_path(&self, path: &str) -> Result<(), Problem> {
        if self.format != Format::InfluxLine {
            return Ok(());
        }
        let unit = self.time_unit.precision_at(path);
        let (message, hint) = match precision_in(path) {
            // The value of a variable is not known yet.
            Some(name) if name.contains("${") => return Ok(()),
            Some("us") if is_of_influxdb_1(path) => {
                let message = "InfluxDB 1 does not know `precision=us`, and reads such times in ns";
                (message.to_owned(), "write precision=u, or send to /api/v2/write".to_owned())
            }
            Some(name) if TimeUnit::of_precision(name) == Some(self.time_unit) => return Ok(()),
            None if self.time_unit == TimeUnit::Ns || path.contains("${") => return Ok(()),
            Some(name) => {
                let message =
                    format!("times are written in {unit}, and `precision={name}` says another unit");
                (message, format!("precision={unit}"))
            }
            None => {
                let message =
                    format!("times are written in {unit}, and without `precision` they are read in ns");
                (message, format!("add precision={unit} to the path, or write them in ns"))
            }
        };
        Err(Problem { field: "time_unit", message, hint })
    }

    /// The path, with the unit of times if the format's receivers need it and it lacks one.
    pub fn path_with_precision(&self, path: &str) -> String {
        if self.format != Format::InfluxLine || precision_in(path).is_some() {
            return path.to_owned();
        }
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("{path}{sign}precision={}", self.time_unit.precision_at(path))
    }

    /// The path where the format's receivers take it. What says where the records go (a database, a bucket, a
    /// token) is the receiver's own and not in it.
    pub fn default_path(&self) -> String {
        match self.format {
            Format::Columnar | Format::Row => "/api/v1/write/msgpack".to_owned(),
            Format::InfluxLine => self.path_with_precision("/api/v2/write"),
            Format::OtlpProtobuf => match self.kind {
                Kind::Metrics => "/v1/metrics".to_owned(),
                Kind::Logs | Kind::Events => "/v1/logs".to_owned(),
                Kind::Traces => "/v1/traces".to_owned(),
            },
            Format::RemoteWrite => "/api/v1/write".to_owned(),
            Format::LokiPush => "/loki/api/v1/push".to_owned(),
            Format::ElasticBulk => "/_bulk".to_owned(),
            // VictoriaLogs needs the names of the fields of time and message.
            Format::JsonLines if self.kind == Kind::Logs => {
                "/insert/jsonline?_time_field=time&_msg_field=message&_stream_fields=service".to_owned()
            }
            Format::JsonLines => "/insert/jsonline?_time_field=time".to_owned(),
        }
    }

    /// The compression that is carried out: remote write has one of its own.
    pub(crate) fn compression_used(&self) -> Compression {
        match (self.format, self.compression) {
            (Format::RemoteWrite, Compression::None) => Compression::Snappy,
            (_, compression) => compression,
        }
    }

    /// Series that a host has.
    pub(crate) fn metrics_of_a_host(&self) -> u32 {
        if self.shape == Shape::Host { HOST_METRICS } else { SEED_METRICS }
    }

    /// Hosts that metrics are of.
    pub(crate) fn host_count(&self) -> u32 {
        let default = if self.shape == Shape::Host { 1_000 } else { 100 };
        let needed = self.cardinality.map(|series| series.div_ceil(self.metrics_of_a_host()));
        self.hosts.or(needed).unwrap_or(default)
    }

    /// Different series of the metrics at any one time.
    pub(crate) fn series_count(&self) -> u32 {
        self.cardinality.unwrap_or(self.host_count().saturating_mul(self.metrics_of_a_host()))
    }

    /// Services that logs or spans are of.
    pub(crate) fn service_count(&self) -> u32 {
        self.services.unwrap_or(if self.kind == Kind::Traces { 20 } else { 50 })
    }

    /// Everything that is wrong with it, in the order of the fields.
    ///
    /// # Errors
    ///
    /// All problems at once, each with a hint.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Problems::default();
        self.check_format(&mut problems);
        self.check_sizes(&mut problems);
        self.check_series(&mut problems);
        self.check_traces(&mut problems);
        if problems.0.is_empty() { Ok(()) } else { Err(problems.0) }
    }

    fn check_format(&self, problems: &mut Problems) {
        let Self { kind, format, compression, .. } = self;
        if !format.kinds().contains(kind) {
            let fitting: Vec<_> = Format::ALL.iter().filter(|format| format.kinds().contains(kind)).collect();
            let fitting: Vec<_> = fitting.iter().map(|format| format.name()).collect();
            problems.add("format", format!("{format} has no {kind}"), one_of("format", &fitting));
        }
        let takes = format.compressions();
        if !takes.contains(&compression.name()) && self.compression_used() == *compression {
            let message = format!("{format} is not sent with {}", compression.name());
            problems.add("compression", message, one_of("compression", takes));
        }
        let bad_level = match *compression {
            Compression::Gzip { level } if !(1..=9).contains(&level) => {
                Some(("gzip", i64::from(level), "1 to 9"))
            }
            Compression::Zstd { level } if !(-7..=19).contains(&level) => {
                Some(("zstd", i64::from(level), "-7 to 19"))
            }
            _ => None,
        };
        if let Some((name, level, range)) = bad_level {
            let message = format!("{name} has no level {level}");
            problems.add("compression", message, format!("a level is from {range}"));
        }
        if !format.has_unit() && self.time_unit != TimeUnit::Ms {
            let message = format!("{format} has times in ms, not in {}", self.time_unit.name());
            problems.add("time_unit", message, "time_unit: ms".to_owned());
        }
        if self.shape == Shape::Host && *kind != Kind::Metrics {
            let hint = one_of("shape", &["seed", "small"]);
            problems.add("shape", format!("the shape host is one of metrics, not of {kind}"), hint);
        }
        if self.shape == Shape::Host && matches!(format, Format::OtlpProtobuf | Format::RemoteWrite) {
            let message = format!("a record of the shape host has three values, and one of {format} has one");
            problems.add("shape", message, one_of("shape", &["seed", "small"]));
        }
    }

    fn check_sizes(&self, problems: &mut Problems) {
        if !(1..=BATCH_MAX).contains(&self.batch_size) {
            let message = format!("a batch cannot have {} records", self.batch_size);
            problems.add("batch_size", message, format!("batch_size is from 1 to {BATCH_MAX}"));
        }
        // Arc's rule for databases and measurements, which is within that of the others.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = self.measurement();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic())
            || !name.chars().all(is_word)
            || name.len() > 64
        {
            let hint = "a name begins with a letter and has letters, digits, `_` and `-`, at most 64";
            problems.add("measurement", format!("`{name}` is not a measurement"), hint.to_owned());
        } else if self.format == Format::ElasticBulk && name.chars().any(|c| c.is_ascii_uppercase()) {
            let message = format!("Elasticsearch has no index `{name}`");
            problems.add("measurement", message, format!("measurement: {}", name.to_ascii_lowercase()));
        } else if self.format == Format::RemoteWrite && name.contains('-') {
            let message = format!("Prometheus has no metrics that begin with `{name}`");
            problems.add("measurement", message, format!("measurement: {}", name.replace('-', "_")));
        }
        if self.start_ms.is_some_and(|start| start > MAX_START_MS) {
            let message = format!("{} ms is not a time", self.start_ms.unwrap_or(0));
            problems.add("start_ms", message, "a run begins in the year 2200 at the latest".to_owned());
        }
        let span = u64::from(self.batch_size).checked_mul(self.step());
        if span.is_none_or(|span| span > MAX_SPAN_NS) {
            let message =
                format!("a batch of {} records {} ns apart is too long", self.batch_size, self.step());
            problems.add("step_ns", message, "a batch spans a day at most".to_owned());
        }
    }

    fn check_series(&self, problems: &mut Problems) {
        if !(0.0..=1.0).contains(&self.churn) {
            let message = format!("a churn of {} is not a share", self.churn);
            problems.add("churn", message, "churn is from 0 to 1".to_owned());
        }
        if let Some(services) = self.services {
            if !matches!(self.kind, Kind::Logs | Kind::Traces) {
                let hint = "services are those of logs and traces".to_owned();
                problems.add("services", format!("{} have no services", self.kind), hint);
            }
            if !(1..=SERVICES_MAX).contains(&services) {
                let message = format!("there cannot be {services} services");
                problems.add("services", message, format!("services are from 1 to {SERVICES_MAX}"));
            }
        }
        if self.kind != Kind::Metrics {
            let given = [
                ("hosts", self.hosts.is_some()),
                ("cardinality", self.cardinality.is_some()),
                ("churn", self.churn > 0.0),
            ];
            for (field, _) in given.into_iter().filter(|&(_, is_given)| is_given) {
                let hint = format!("{field} is about series, which are metrics");
                problems.add(field, format!("{} have no {field}", self.kind), hint);
            }
            return;
        }
        let hosts = self.host_count();
        if !(1..=HOSTS_MAX).contains(&hosts) {
            let message = format!("there cannot be {hosts} hosts");
            problems.add("hosts", message, format!("hosts are from 1 to {HOSTS_MAX}"));
        }
        let metrics = self.metrics_of_a_host();
        let Some(series) = self.cardinality else { return };
        let most = hosts.saturating_mul(metrics);
        let least = if self.shape == Shape::Host { HOST_METRICS } else { 1 };
        if series < least {
            let message = format!("a cardinality of {series} is too small");
            problems.add("cardinality", message, format!("cardinality is at least {least}"));
        } else if series > most {
            let message = format!("{hosts} hosts of {metrics} metrics have {most} series, not {series}");
            problems.add("cardinality", message, format!("hosts: {}", series.div_ceil(metrics)));
        }
    }

    fn check_traces(&self, problems: &mut Problems) {
        if !(0.0..=1.0).contains(&self.parents) {
            let message = format!("{} is not a share of spans", self.parents);
            problems.add("parents", message, "parents is from 0 to 1".to_owned());
        }
        if self.spans_per_trace == 0 {
            let hint = "spans_per_trace is from 1 to 255".to_owned();
            problems.add("spans_per_trace", "a trace cannot have 0 spans".to_owned(), hint);
        }
    }
}

/// The start of the year 2200: from there on 64 bits of nanoseconds are not far from their end.
const MAX_START_MS: u64 = 7_258_118_400_000;
/// A day.
const MAX_SPAN_NS: u64 = 86_400_000_000_000;

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, field: &'static str, message: String, hint: String) {
        self.0.push(Problem { field, message, hint });
    }
}

/// `field: a, b or c`.
fn one_of(field: &str, names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("{field}: {one}"),
        [others @ .., last] => format!("{field}: {} or {last}", others.join(", ")),
    }
}
