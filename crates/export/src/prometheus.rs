//! Expositions that a Prometheus server reads: text, OpenMetrics, or protocol buffers with native histograms.
//!
//! - text: <https://prometheus.io/docs/instrumenting/exposition_formats/>
//! - OpenMetrics 1.0: <https://prometheus.io/docs/specs/om/open_metrics_spec/>
//! - protocol buffers: `io.prometheus.client.MetricFamily`, each behind its length. Only there a histogram
//!   has exponential buckets, beside the fixed ones: a server that does not want them leaves them.

use std::fmt::Write as _;

use plimsoll_metrics::exemplar::BOUNDS;
use plimsoll_metrics::{Distribution, Exemplar};

use crate::family::{Family, Labels, Points, Unit, families, plain, quantiles};
use crate::protobuf::Message;
use crate::times::{SCALE, Times};
use crate::totals::Totals;

/// Values up to this count as zero in a native histogram: the value of the official clients.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// Formats in which metrics are exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Text, version 0.0.4.
    Text,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
    /// Delimited messages, with native histograms.
    Protobuf,
}

impl Exposition {
    /// The one that an `Accept` field prefers, by its weights (RFC 9110 section 12.5.1); text without one.
    pub fn negotiated(accept: Option<&str>) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<(String, &str)> = parts
                .filter_map(|part| part.split_once('='))
                .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
                .collect();
            let of = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let offered = match kind.as_str() {
                "application/vnd.google.protobuf"
                    if of("proto") == Some("io.prometheus.client.MetricFamily")
                        && of("encoding") == Some("delimited") =>
                {
                    Self::Protobuf
                }
                "application/openmetrics-text" if of("version").is_none_or(|version| version == "1.0.0") => {
                    Self::OpenMetrics
                }
                "text/plain" if of("version").is_none_or(|version| version == "0.0.4") => Self::Text,
                _ => continue,
            };
            let weight = of("q").and_then(|q| q.parse::<f64>().ok()).unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, offered);
            }
        }
        best.1
    }

    /// Returns the media type of the exposition.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The figures of a run.
    pub fn render(self, totals: &Totals) -> Vec<u8> {
        let mut families = families(totals);
        families.insert(0, info(totals));
        match self {
            Self::Text | Self::OpenMetrics => text(&families, self == Self::OpenMetrics).into_bytes(),
            Self::Protobuf => {
                let mut out = Vec::new();
                families.iter().for_each(|family| message(family).delimited(&mut out));
                out
            }
        }
    }
}

/// Returns a metric that is always 1 and whose labels identify this run.
fn info(totals: &Totals) -> Family<'_> {
    let labels = totals.facts.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let points = Points::Gauges(vec![(labels, 1.0)]);
    Family::new("plimsoll.run_info", "Identity of this run.", Unit::None, points)
}

/// The name of a family with its unit, without the suffix of its kind.
fn name(family: &Family<'_>) -> String {
    let unit = match family.unit {
        // A name ends in its unit, which one for people may be no part of.
        Unit::None | Unit::Own(_) => "",
        Unit::Seconds => "_seconds",
        Unit::Bytes => "_bytes",
        Unit::PerSecond => "_per_second",
    };
    let name = plain(&family.name);
    let name = match family.points {
        Points::Counts(_) | Points::Sums(_) => name.strip_suffix("_total").unwrap_or(&name),
        Points::Gauges(_) | Points::Times(_) | Points::Summaries(_) => &name,
    };
    format!("{name}{unit}")
}

fn text(families: &[Family<'_>], open_metrics: bool) -> String {
    let mut out = String::new();
    for family in families {
        let name = name(family);
        let (kind, suffix) = match family.points {
            Points::Counts(_) | Points::Sums(_) => ("counter", "_total"),
            Points::Gauges(_) => ("gauge", ""),
            Points::Times(_) => ("histogram", ""),
            Points::Summaries(_) => ("summary", ""),
        };
        // OpenMetrics names the family, the older format the samples.
        let family_name = if open_metrics { name.clone() } else { format!("{name}{suffix}") };
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "# HELP {family_name} {}\n# TYPE {family_name} {kind}\n", family.help);
        if open_metrics && matches!(family.unit, Unit::Seconds | Unit::Bytes) {
            let unit = if family.unit == Unit::Seconds { "seconds" } else { "bytes" };
            let _ = writeln!(out, "# UNIT {family_name} {unit}");
        }
        match &family.points {
            Points::Counts(points) => points.iter().for_each(|(labels, value)| {
                let _ = writeln!(out, "{name}_total{} {value}", braces(labels, LIMIT, None));
            }),
            Points::Sums(points) | Points::Gauges(points) => points.iter().for_each(|(labels, value)| {
                let _ = writeln!(out, "{name}{suffix}{} {value}", braces(labels, LIMIT, None));
            }),
            Points::Times(points) => points.iter().for_each(|(labels, times)| {
                buckets(&mut out, &name, labels, times, open_metrics);
            }),
            Points::Summaries(points) => points.iter().for_each(|(labels, numbers)| {
                for (share, value) in quantiles(numbers) {
                    let labels = braces(labels, QUANTILE, Some(&canonical(share)));
                    let _ = writeln!(out, "{name}{labels} {value}");
                }
                let labels = braces(labels, QUANTILE, None);
                let _ = writeln!(out, "{name}_sum{labels} {}", numbers.sum());
                let _ = writeln!(out, "{name}_count{labels} {}", numbers.count());
            }),
        }
    }
    if open_metrics {
        out.push_str("# EOF\n");
    }
    out
}

fn buckets(out: &mut String, name: &str, labels: &Labels<'_>, times: &Times, open_metrics: bool) {
    let finite = times.cumulative().map(|(bound, count)| (canonical(bound), count));
    let all = finite.chain([("+Inf".to_owned(), times.count())]);
    for (number, (bound, count)) in all.enumerate() {
        let _ = write!(out, "{name}_bucket{} {count}", braces(labels, LIMIT, Some(&bound)));
        // The older format has none.
        if let Some(exemplar) = times.exemplar(number).filter(|_| open_metrics) {
            let Exemplar { trace_id, response_time, done } = exemplar;
            let (value, at) = (response_time.as_secs_f64(), done.as_secs_f64());
            let _ = write!(out, " # {{trace_id=\"{trace_id:032x}\"}} {value} {at:.3}");
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{name}_sum{} {}", braces(labels, LIMIT, None), times.sum_s());
    let _ = writeln!(out, "{name}_count{} {}", braces(labels, LIMIT, None), times.count());
}

/// A limit as OpenMetrics wants it: a number with a point.
fn canonical(bound: f64) -> String {
    let text = bound.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// The label with the limit of a bucket.
const LIMIT: &str = "le";
/// The label with the share of values that a percentile is not below.
const QUANTILE: &str = "quantile";

/// The labels, with that of the format among them if it has a value; nothing if there are none.
fn braces(labels: &Labels<'_>, of_format: &str, value: Option<&str>) -> String {
    let names = label_names(labels, of_format);
    let named = names.iter().map(String::as_str).zip(labels.iter().map(|(_, value)| *value));
    let of_format = value.map(|value| (of_format, value));
    let all: Vec<String> = (named.chain(of_format))
        .map(|(name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        })
        .collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// The names of labels, each of them once, as Prometheus has them: names of tags may have other characters,
/// or be those of a label that the format has for itself.
fn label_names(labels: &Labels<'_>, of_format: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(labels.len());
    for (name, _) in labels {
        let mut plain = plain(name);
        // Names that begin with two of them are the server's.
        if plain.starts_with(|c: char| c.is_ascii_digit()) || plain.starts_with("__") {
            plain.insert_str(0, "tag_");
        }
        let mut free = plain.clone();
        let mut number = 1;
        while names.contains(&free) || of_format == free {
            number += 1;
            free = format!("{plain}_{number}");
        }
        names.push(free);
    }
    names
}

/// Kinds of metrics in messages.
const COUNTER: u64 = 0;
const GAUGE: u64 = 1;
const SUMMARY: u64 = 2;
const HISTOGRAM: u64 = 4;

/// A `MetricFamily`.
fn message(family: &Family<'_>) -> Message {
    let mut message = Message::new();
    let counted = matches!(family.points, Points::Counts(_) | Points::Sums(_));
    message.text(1, &format!("{}{}", name(family), if counted { "_total" } else { "" }));
    message.text(2, &family.help);
    let (kind, metrics): (u64, Vec<Message>) = match &family.points {
        Points::Counts(points) => {
            let value = |(labels, value): &(Labels<'_>, u64)| metric(labels, 3, &single(*value as f64));
            (COUNTER, points.iter().map(value).collect())
        }
        Points::Sums(points) => {
            (COUNTER, points.iter().map(|(labels, value)| metric(labels, 3, &single(*value))).collect())
        }
        Points::Gauges(points) => {
            (GAUGE, points.iter().map(|(labels, value)| metric(labels, 2, &single(*value))).collect())
        }
        Points::Times(points) => {
            (HISTOGRAM, points.iter().map(|(labels, times)| metric(labels, 7, &histogram(times))).collect())
        }
        Points::Summaries(points) => {
            (SUMMARY, points.iter().map(|(labels, numbers)| metric(labels, 4, &summary(numbers))).collect())
        }
    };
    message.varint(3, kind);
    metrics.iter().for_each(|metric| message.message(4, metric));
    message
}

/// A `Metric` with its value in a field.
fn metric(labels: &Labels<'_>, field: u32, value: &Message) -> Message {
    let mut metric = Message::new();
    // A server makes a label of what is a field here.
    let of_format = if field == 4 { QUANTILE } else { LIMIT };
    for (name, (_, value)) in label_names(labels, of_format).iter().zip(labels) {
        let mut pair = Message::new();
        pair.text(1, name);
        pair.text(2, value);
        metric.message(1, &pair);
    }
    metric.message(field, value);
    metric
}

/// A `Gauge` or a `Counter`.
fn single(value: f64) -> Message {
    let mut message = Message::new();
    message.double(1, value);
    message
}

/// A `Summary`.
fn summary(numbers: &Distribution) -> Message {
    let mut message = Message::new();
    message.varint(1, numbers.count());
    message.double(2, numbers.sum());
    for (share, value) in quantiles(numbers) {
        let mut quantile = Message::new();
        quantile.double(1, share);
        quantile.double(2, value);
        message.message(3, &quantile);
    }
    message
}

/// An `Exemplar`.
fn exemplar(Exemplar { trace_id, response_time, done }: &Exemplar) -> Message {
    let (mut message, mut pair, mut at) = (Message::new(), Message::new(), Message::new());
    pair.text(1, "trace_id");
    pair.text(2, &format!("{trace_id:032x}"));
    at.varint(1, done.0 / NANOS);
    at.varint(2, done.0 % NANOS);
    message.message(1, &pair);
    message.double(2, response_time.as_secs_f64());
    message.message(3, &at);
    message
}

/// A `Histogram`: fixed buckets for all, exponential ones for servers that keep native histograms.
fn histogram(times: &Times) -> Message {
    let mut message = Message::new();
    message.varint(1, times.count());
    message.double(2, times.sum_s());
    // An infinite limit is left out unless it has an exemplar.
    let infinite = times.exemplar(BOUNDS.len()).map(|_| (f64::INFINITY, times.count()));
    for (number, (bound, count)) in times.cumulative().chain(infinite).enumerate() {
        let mut bucket = Message::new();
        bucket.varint(1, count);
        bucket.double(2, bound);
        if let Some(one) = times.exemplar(number) {
            bucket.message(3, &exemplar(one));
        }
        message.message(3, &bucket);
    }
    message.signed(5, SCALE.into());
    message.double(6, ZERO_THRESHOLD);
    message.varint(7, times.zeros);
    // Spans of consecutive buckets: how far each is from the one before, and how long it is.
    let mut spans: Vec<(i32, u32)> = Vec::new();
    let mut next = 0;
    for &number in times.exponential.keys() {
        match spans.last_mut() {
            Some((_, length)) if number == next => *length += 1,
            _ => spans.push((number - next, 1)),
        }
        next = number + 1;
    }
    // A histogram without a span would be one of fixed buckets.
    let none = spans.is_empty().then_some((0, 0));
    for (offset, length) in spans.into_iter().chain(none) {
        let mut span = Message::new();
        span.signed(1, offset.into());
        span.varint(2, length.into());
        message.message(12, &span);
    }
    let mut before = 0;
    let deltas = times.exponential.values().map(|count| {
        let count = *count as i64;
        count - std::mem::replace(&mut before, count)
    });
    message.packed_signed(13, deltas);
    message
}
