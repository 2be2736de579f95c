//! Metrics as OpenTelemetry sends them: `ExportMetricsServiceRequest` of OTLP 1, in protocol buffers.
//!
//! Everything is cumulative since the start of the run. Times are exponential histograms; they have no
//! smallest and largest value, which the control does not know of all requests while the run goes on.
//! <https://github.com/open-telemetry/opentelemetry-proto>, `metrics/v1/metrics.proto`.

use plimsoll_metrics::Distribution;

use crate::family::{Labels, Points, Unit, families, quantiles};
use crate::protobuf::{Field, Message, fields};
use crate::times::{SCALE, Times};
use crate::totals::Totals;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// The media type of a request and of its reply.
pub const CONTENT_TYPE: &str = "application/x-protobuf";

/// One request with all figures of a run; `resource` names the sender.
pub fn request(totals: &Totals, resource: &[(String, String)]) -> Vec<u8> {
    let mut scope = Message::new();
    scope.text(1, "plimsoll");
    let mut metrics = Message::new();
    metrics.message(1, &scope);
    let stamps = Stamps { start: totals.started_unix.0, now: (totals.started_unix + totals.at).0 };
    for family in families(totals) {
        let mut metric = Message::new();
        metric.text(1, &family.name);
        metric.text(2, &family.help);
        let unit = match family.unit {
            Unit::None => "1",
            Unit::Seconds => "s",
            Unit::Bytes => "By",
            Unit::PerSecond => "1/s",
            Unit::Own(unit) => unit,
        };
        metric.text(3, unit);
        let (field, data) = stamps.data(&family.points);
        metric.message(field, &data);
        metrics.message(2, &metric);
    }
    let mut described = Message::new();
    let facts = totals.facts.iter().map(|(name, value)| (format!("plimsoll.{name}"), value.clone()));
    for (name, value) in resource.iter().cloned().chain(facts) {
        described.message(1, &attribute(&name, &value));
    }
    let mut of_resource = Message::new();
    of_resource.message(1, &described);
    of_resource.message(2, &metrics);
    let mut request = Message::new();
    request.message(1, &of_resource);
    request.into_bytes()
}

/// Returns the points that a receiver rejected although its status is a success: their number, and the
/// reason. `None` if it took everything.
pub fn rejected(reply: &[u8]) -> Option<(u64, String)> {
    let partial = fields(reply).find_map(|(number, field)| match field {
        Field::Bytes(bytes) if number == 1 => Some(bytes),
        _ => None,
    })?;
    let (mut points, mut message) = (0, String::new());
    for field in fields(partial) {
        match field {
            (1, Field::Number(count)) => points = count,
            (2, Field::Bytes(text)) => message = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    (points > 0).then_some((points, message))
}

/// A `KeyValue` with a text.
fn attribute(name: &str, value: &str) -> Message {
    let mut any = Message::new();
    any.text(1, value);
    let mut pair = Message::new();
    pair.text(1, name);
    pair.message(2, &any);
    pair
}

/// The two times of every point, in Unix nanoseconds.
#[derive(Clone, Copy)]
struct Stamps {
    start: u64,
    now: u64,
}

impl Stamps {
    /// The data of a metric, and the field of `Metric` where it belongs.
    fn data(self, points: &Points<'_>) -> (u32, Message) {
        let mut data = Message::new();
        let field = match points {
            Points::Counts(points) => {
                points.iter().for_each(|(labels, value)| data.message(1, &self.number(labels, 6, *value)));
                7
            }
            Points::Sums(points) => {
                let bits = |value: f64| value.to_bits();
                points
                    .iter()
                    .for_each(|(labels, value)| data.message(1, &self.number(labels, 4, bits(*value))));
                7
            }
            Points::Gauges(points) => {
                points
                    .iter()
                    .for_each(|(labels, value)| data.message(1, &self.number(labels, 4, value.to_bits())));
                5
            }
            Points::Times(points) => {
                points.iter().for_each(|(labels, times)| data.message(1, &self.times(labels, times)));
                10
            }
            Points::Summaries(points) => {
                let point = |(labels, numbers): &(Labels<'_>, &Distribution)| self.summary(labels, numbers);
                points.iter().for_each(|one| data.message(1, &point(one)));
                11
            }
        };
        if matches!(field, 7 | 10) {
            data.varint(2, CUMULATIVE);
        }
        if field == 7 {
            // The counter only grows.
            data.varint(3, 1);
        }
        (field, data)
    }

    /// A `NumberDataPoint`; the field says whether the bits are of a double (4) or of an integer (6).
    fn number(self, labels: &Labels<'_>, field: u32, bits: u64) -> Message {
        let mut point = Message::new();
        point.fixed(2, self.start);
        point.fixed(3, self.now);
        point.fixed(field, bits);
        labels.iter().for_each(|(name, value)| point.message(7, &attribute(name, value)));
        point
    }

    /// A `SummaryDataPoint`.
    fn summary(self, labels: &Labels<'_>, numbers: &Distribution) -> Message {
        let mut point = Message::new();
        point.fixed(2, self.start);
        point.fixed(3, self.now);
        point.fixed(4, numbers.count());
        point.double(5, numbers.sum());
        for (share, value) in quantiles(numbers) {
            let mut quantile = Message::new();
            quantile.double(1, share);
            quantile.double(2, value);
            point.message(6, &quantile);
        }
        labels.iter().for_each(|(name, value)| point.message(7, &attribute(name, value)));
        point
    }

    /// An `ExponentialHistogramDataPoint`.
    fn times(self, labels: &Labels<'_>, times: &Times) -> Message {
        let mut point = Message::new();
        labels.iter().for_each(|(name, value)| point.message(1, &attribute(name, value)));
        point.fixed(2, self.start);
        point.fixed(3, self.now);
        point.fixed(4, times.count());
        point.double(5, times.sum_s());
        point.signed(6, SCALE.into());
        point.fixed(7, times.zeros);
        let ends = times.exponential.first_key_value().zip(times.exponential.last_key_value());
        if let Some(((&first, _), (&last, _))) = ends {
            let mut buckets = Message::new();
            // OpenTelemetry numbers a bucket by its lower limit, we by its upper one.
            buckets.signed(1, i64::from(first) - 1);
            let count = |number| times.exponential.get(&number).copied().unwrap_or(0);
            buckets.packed(2, (first..=last).map(count));
            point.message(8, &buckets);
        }
        point
    }
}
