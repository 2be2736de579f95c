//! Prometheus remote write as the ingest server reads it: any bytes as a body in snappy's format, and any
//! bytes as its packed content, against `prost`: a row for each sample and each histogram.

use plimsoll_targets::ingest::BodyForm;
use prost::Message;

/// The message of prometheus/prometheus `prompb/remote.proto`, as far as rows come of it.
#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(int64, tag = "15")]
    timestamp: i64,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let form = BodyForm::RemoteWrite;
    // Bytes that were not packed.
    let _ = form.read(data);
    let packed = snapped(data);
    if let Ok(content) = form.read(&packed) {
        assert_eq!(content.bytes, data.len() as u64);
        let rows: u64 = content.rows.iter().map(|(_, rows)| rows).sum();
        assert!(2 * rows <= data.len() as u64, "{rows} rows of {} bytes", data.len());
    }
    let Ok(request) = WriteRequest::decode(data) else { return };
    let expected: usize =
        request.timeseries.iter().map(|series| series.samples.len() + series.histograms.len()).sum();
    let content = form.read(&snapped(&request.encode_to_vec())).expect("it is what a client sends");
    assert_eq!(content.rows.iter().map(|(_, rows)| rows).sum::<u64>(), expected as u64);
}

/// A payload in snappy's block format.
pub(crate) fn snapped(payload: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(payload).expect("it is short")
}
