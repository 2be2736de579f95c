//! OTLP in protobuf, as the ingest server reads it, against `prost`: messages that `prost` reads and writes
//! again have a row for each data point, log record or span. The first byte chooses the kind of export.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use plimsoll_targets::ingest::BodyForm;
use prost::Message;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&choice, payload)) = data.split_first() else { return };
    match choice % 3 {
        0 => check(BodyForm::OtlpMetrics, payload, |request: &ExportMetricsServiceRequest| {
            let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
            scopes.flat_map(|scope| &scope.metrics).map(|metric| metric.data.as_ref().map_or(0, points)).sum()
        }),
        1 => check(BodyForm::OtlpLogs, payload, |request: &ExportLogsServiceRequest| {
            let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
            scopes.map(|scope| scope.log_records.len()).sum()
        }),
        _ => check(BodyForm::OtlpTraces, payload, |request: &ExportTraceServiceRequest| {
            let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
            scopes.map(|scope| scope.spans.len()).sum()
        }),
    }
}

fn points(data: &Data) -> usize {
    match data {
        Data::Gauge(gauge) => gauge.data_points.len(),
        Data::Sum(sum) => sum.data_points.len(),
        Data::Histogram(histogram) => histogram.data_points.len(),
        Data::ExponentialHistogram(histogram) => histogram.data_points.len(),
        Data::Summary(summary) => summary.data_points.len(),
    }
}

/// Compares the rows of a body with the count of a message.
pub(crate) fn check<M: Message + Default>(form: BodyForm, payload: &[u8], count: impl Fn(&M) -> usize) {
    let read = form.read(payload).map(rows_of);
    if let Ok(rows) = read {
        // A row has a message of its own, which has a tag and a length.
        assert!(2 * rows <= payload.len() as u64, "{rows} rows of {} bytes", payload.len());
    }
    let Ok(message) = M::decode(payload) else { return };
    let canonical = message.encode_to_vec();
    // Bytes that begin like a compressed body are taken for one.
    if canonical.starts_with(&[0x1f, 0x8b]) || canonical.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return;
    }
    assert_eq!(form.read(&canonical).map(rows_of), Ok(count(&message) as u64), "{form:?}");
}

fn rows_of(content: plimsoll_targets::ingest::BodyContent) -> u64 {
    content.rows.iter().map(|(_, rows)| rows).sum()
}
