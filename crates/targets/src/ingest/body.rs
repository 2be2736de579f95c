//! Bodies of writes, read without a server.

use plimsoll_wire::http1::LONGEST_KEPT_BODY;

use super::batch::{self, Decoded};
use super::foreign::{self, Bulk, Signal};
use super::line_protocol::{self, Precision};
use super::payload::{Compression, Decompressor, unsnapped};

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// MessagePack: columns, rows, or lists of either.
    MessagePack,
    /// InfluxDB's line protocol.
    LineProtocol,
    /// Metrics of OTLP, in protobuf.
    OtlpMetrics,
    /// Logs of OTLP, in protobuf.
    OtlpLogs,
    /// Traces of OTLP, in protobuf.
    OtlpTraces,
    /// Prometheus remote write: protobuf in snappy's block format.
    RemoteWrite,
    /// Loki's push API: protobuf in snappy's block format.
    LokiProtobuf,
    /// Loki's push API in JSON.
    LokiJson,
    /// Elasticsearch's bulk API, with an index in the path.
    Bulk,
    /// JSON lines.
    JsonLines,
}

/// The content of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyContent {
    /// Bytes of the body without compression.
    pub bytes: u64,
    /// Measurements of the body, in the order in which they are stored, each with the number of its rows.
    pub rows: Vec<(String, u64)>,
    /// Lines and items of lists that mean nothing and are passed over.
    pub skipped: u64,
}

impl BodyForm {
    /// Reads a body as the server does with its default options: for tests of code that makes such bodies,
    /// and for hostile ones.
    ///
    /// # Errors
    /// The server's answer to it.
    pub fn read(self, body: &[u8]) -> Result<BodyContent, String> {
        let most = LONGEST_KEPT_BODY as u64;
        let mut decompressor = Decompressor::default();
        let unpacked;
        let payload = match self {
            Self::RemoteWrite | Self::LokiProtobuf => {
                unpacked = unsnapped(body, most)?;
                &unpacked[..]
            }
            _ => {
                let plain = decompressor.plain(Compression::of(body), body, most);
                plain.map_err(|damage| damage.to_string())?
            }
        };
        let decoded = self.decode(payload)?;
        if let Some(conflict) = decoded.conflict {
            return Err(conflict);
        }
        let rows = decoded.batches.into_iter().map(|batch| (batch.measurement, batch.rows as u64)).collect();
        Ok(BodyContent { bytes: payload.len() as u64, rows, skipped: decoded.skipped })
    }

    fn decode(self, payload: &[u8]) -> Result<Decoded, String> {
        let otlp = |signal| foreign::otlp(signal, payload, 0).map_err(|broken| broken.to_string());
        match self {
            Self::MessagePack => batch::decode(payload, 0),
            Self::LineProtocol => Ok(line_protocol::decode(payload, Precision::Nanos, 0)),
            Self::OtlpMetrics => otlp(Signal::Metrics),
            Self::OtlpLogs => otlp(Signal::Logs),
            Self::OtlpTraces => otlp(Signal::Traces),
            Self::RemoteWrite => foreign::prometheus(payload).map_err(|broken| broken.to_string()),
            Self::LokiProtobuf => foreign::loki_packed(payload),
            Self::LokiJson => foreign::loki_json(payload),
            Self::Bulk => foreign::bulk(payload, Some("index"), 0).map(|Bulk { decoded, .. }| decoded),
            Self::JsonLines => foreign::lines(payload, None, 0),
        }
    }
}
