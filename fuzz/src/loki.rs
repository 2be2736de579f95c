//! Loki's push API as the ingest server reads it, in JSON and in protobuf: requests that `prost` reads have a
//! row for each entry if their labels are sound, and the same streams in JSON have as many.

use plimsoll_targets::ingest::BodyForm;
use prost::Message;
use serde_json::{Value, json};

use crate::remote_write::{Label, snapped};

/// The message of grafana/loki `pkg/push/push.proto`.
#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    streams: Vec<Stream>,
}

#[derive(Clone, PartialEq, Message)]
struct Stream {
    #[prost(string, tag = "1")]
    labels: String,
    #[prost(message, repeated, tag = "2")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(message, optional, tag = "1")]
    timestamp: Option<Timestamp>,
    #[prost(string, tag = "2")]
    line: String,
    #[prost(message, repeated, tag = "3")]
    metadata: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let _ = BodyForm::LokiJson.read(data);
    let packed = |payload: &[u8]| BodyForm::LokiProtobuf.read(&snapped(payload)).map(rows_of);
    if let Ok(rows) = packed(data) {
        assert!(2 * rows <= data.len() as u64, "{rows} rows of {} bytes", data.len());
    }
    let Ok(mut request) = PushRequest::decode(data) else { return };
    let entries: usize = request.streams.iter().map(|stream| stream.entries.len()).sum();
    if let Ok(rows) = packed(&request.encode_to_vec()) {
        assert_eq!(rows, entries as u64);
    }
    // Valid labels are never refused.
    for stream in &mut request.streams {
        stream.labels = format!("{{app={:?}}}", stream.labels.escape_default().to_string());
    }
    assert_eq!(packed(&request.encode_to_vec()), Ok(entries as u64));
    let streams: Vec<Value> = request.streams.iter().map(in_json).collect();
    let push = json!({ "streams": streams }).to_string();
    assert_eq!(BodyForm::LokiJson.read(push.as_bytes()).map(rows_of), Ok(entries as u64));
}

fn in_json(stream: &Stream) -> Value {
    let values = stream.entries.iter().map(|entry| {
        let time = entry.timestamp.as_ref().map_or(0, |time| time.seconds).to_string();
        json!([time, entry.line])
    });
    json!({"stream": {"app": stream.labels}, "values": values.collect::<Vec<_>>()})
}

fn rows_of(content: plimsoll_targets::ingest::BodyContent) -> u64 {
    content.rows.iter().map(|(_, rows)| rows).sum()
}
