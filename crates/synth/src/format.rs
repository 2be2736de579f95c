//! Formats of batches, and their compression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Arc's MessagePack, a list of values for each column.
    #[default]
    Columnar,
    /// Arc's MessagePack, one map for each record.
    Row,
    /// InfluxDB's line protocol.
    InfluxLine,
    /// OpenTelemetry over HTTP, as protobuf.
    OtlpProtobuf,
    /// Prometheus remote write 1.0.
    RemoteWrite,
    /// Loki's push API, as JSON.
    LokiPush,
    /// Elasticsearch's bulk API.
    ElasticBulk,
    /// One JSON object on each line.
    JsonLines,
}

impl Format {
    /// All of them, in the order in which they are listed anywhere.
    pub const ALL: [Self; 8] = [
        Self::Columnar,
        Self::Row,
        Self::InfluxLine,
        Self::OtlpProtobuf,
        Self::RemoteWrite,
        Self::LokiPush,
        Self::ElasticBulk,
        Self::JsonLines,
    ];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columnar => "columnar",
            Self::Row => "row",
            Self::InfluxLine => "influx-line",
            Self::OtlpProtobuf => "otlp-protobuf",
            Self::RemoteWrite => "remote-write",
            Self::LokiPush => "loki-push",
            Self::ElasticBulk => "elastic-bulk",
            Self::JsonLines => "json-lines",
        }
    }

    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Columnar | Self::Row => "application/msgpack",
            Self::InfluxLine => "text/plain; charset=utf-8",
            Self::OtlpProtobuf | Self::RemoteWrite => "application/x-protobuf",
            Self::LokiPush => "application/json",
            Self::ElasticBulk | Self::JsonLines => "application/x-ndjson",
        }
    }

    /// The kinds whose data it can carry.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Self::RemoteWrite => &[Kind::Metrics],
            Self::LokiPush => &[Kind::Logs, Kind::Events],
            _ => &Kind::ALL,
        }
    }

    /// Returns `true` if times in this format can be in a unit other than milliseconds, or be rounded to one.
    pub fn has_unit(self) -> bool {
        !matches!(self, Self::RemoteWrite | Self::ElasticBulk)
    }

    /// The compressions that its receivers take, by their names.
    pub fn compressions(self) -> &'static [&'static str] {
        match self {
            // InfluxDB takes gzip alone; Arc's endpoint for the same lines takes zstd, too.
            Self::Columnar | Self::Row | Self::InfluxLine | Self::JsonLines | Self::OtlpProtobuf => {
                &["none", "gzip", "zstd"]
            }
            Self::LokiPush | Self::ElasticBulk => &["none", "gzip"],
            Self::RemoteWrite => &["snappy"],
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Compression of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Compression {
    /// Not at all. For remote write, which knows nothing else, it means Snappy.
    #[default]
    None,
    /// gzip (RFC 1952).
    Gzip {
        /// From 1 (fast) to 9 (small).
        level: u8,
    },
    /// Zstandard (RFC 8878).
    Zstd {
        /// From -7 (fast) to 19 (small); 0 is the default of the library, 3.
        level: i8,
    },
    /// One block of Snappy, without frames.
    Snappy,
}

impl Compression {
    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip { .. } => "gzip",
            Self::Zstd { .. } => "zstd",
            Self::Snappy => "snappy",
        }
    }
}
