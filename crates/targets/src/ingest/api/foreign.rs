//! Writes of other protocols, with the answers of their own servers.

use serde_json::json;

use super::super::batch::Decoded;
use super::super::foreign::{self, Bulk, Signal};
use super::super::payload::{Damage, unsnapped};
use super::writes::{Taken, check_database};
use super::{Api, ParsedRequest, text};
use crate::http_reply::HttpReply;

/// The most bytes of a message in a `google.rpc.Status`: with fewer than 128 its length is one byte.
const STATUS_MESSAGE: usize = 120;
/// `INVALID_ARGUMENT` and `UNAVAILABLE` of `google.rpc.Code`.
const INVALID_ARGUMENT: u8 = 3;
const UNAVAILABLE: u8 = 14;

/// A protocol of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// OTLP/HTTP with protobuf: 200 with an empty message, errors as a `google.rpc.Status` ("OTLP
    /// Specification", section OTLP/HTTP Response).
    Otlp(Signal),
    /// Prometheus remote write 1.0: 204 as Prometheus answers, errors in words.
    Prometheus,
    /// Loki's push API: 204, errors in words.
    Loki,
    /// Elasticsearch's bulk API: 200 with a status for each document, 400 if there are none.
    Bulk,
    /// JSON lines as VictoriaLogs takes them: 200.
    JsonLines,
}

impl Foreign {
    /// Returns the protocol whose writes go to this path.
    pub(super) fn of(path: &[u8]) -> Option<Self> {
        Some(match path {
            b"/v1/metrics" => Self::Otlp(Signal::Metrics),
            b"/v1/logs" => Self::Otlp(Signal::Logs),
            b"/v1/traces" => Self::Otlp(Signal::Traces),
            b"/api/v1/write" => Self::Prometheus,
            b"/loki/api/v1/push" => Self::Loki,
            b"/_bulk" => Self::Bulk,
            b"/insert/jsonline" => Self::JsonLines,
            _ => {
                let index = path.strip_prefix(b"/")?.strip_suffix(b"/_bulk")?;
                (!index.is_empty() && !index.contains(&b'/')).then_some(Self::Bulk)?
            }
        })
    }

    const fn database(self) -> &'static str {
        match self {
            Self::Otlp(_) => "otlp",
            Self::Prometheus => "prometheus",
            Self::Loki => "loki",
            Self::Bulk => "elasticsearch",
            Self::JsonLines => "jsonlines",
        }
    }

    /// The reply to a payload that means nothing.
    fn refused(self, status: u16, why: &str) -> HttpReply {
        match self {
            Self::Otlp(_) => rpc_status(status, INVALID_ARGUMENT, why),
            Self::Prometheus | Self::Loki | Self::JsonLines => HttpReply::text(status, format!("{why}\n")),
            Self::Bulk => bulk_problem(status, "illegal_argument_exception", why),
        }
    }

    /// The reply to a payload that cannot be stored.
    pub(super) fn failed(self, why: &str) -> HttpReply {
        match self {
            Self::Otlp(_) => rpc_status(503, UNAVAILABLE, why),
            Self::Prometheus | Self::Loki | Self::JsonLines => HttpReply::text(500, format!("{why}\n")),
            Self::Bulk => bulk_problem(503, "unavailable", why),
        }
    }
}

impl Api {
    /// Reads a payload of another protocol; with its bytes without compression.
    pub(super) fn foreign(
        &mut self,
        form: Foreign,
        asked: &ParsedRequest<'_>,
    ) -> Result<(u64, Taken), HttpReply> {
        let database = asked.field("x-arc-database").unwrap_or_else(|| form.database().to_owned());
        check_database(&database)?;
        let media = asked.field("content-type").unwrap_or_default().to_ascii_lowercase();
        let media_type = media.split(';').next().unwrap_or_default().trim();
        let now = asked.moment.micros();
        let too_large = |damage: &Damage| form.refused(400, &damage.to_string());
        let snappy = match form {
            Foreign::Prometheus => true,
            Foreign::Loki => media_type != "application/json",
            Foreign::Otlp(_) if media_type != "application/x-protobuf" => {
                return Err(form.refused(415, "this target takes application/x-protobuf"));
            }
            Foreign::Bulk if !matches!(media_type, "application/x-ndjson" | "application/json") => {
                let why = format!("Content-Type header [{media}] is not supported");
                return Err(HttpReply::json(406, &json!({"error": why, "status": 406})));
            }
            _ => false,
        };
        if form == Foreign::Prometheus && media.contains("io.prometheus.write.v2") {
            return Err(form.refused(415, "this target takes remote write 1.0"));
        }
        let unpacked;
        let payload = if snappy {
            let most = self.setup.options.max_payload;
            unpacked = unsnapped(asked.body, most).map_err(|why| form.refused(400, &why))?;
            &unpacked
        } else {
            self.plain(asked.body, |_, damage| too_large(damage))?
        };
        let bytes = payload.len() as u64;
        let refused = |why: String| form.refused(400, &why);
        let (decoded, accepted): (Decoded, HttpReply) = match form {
            Foreign::Otlp(signal) => {
                let decoded =
                    foreign::otlp(signal, payload, now).map_err(|broken| refused(broken.to_string()))?;
                // An empty message: everything was taken.
                (decoded, protobuf(200, String::new()))
            }
            Foreign::Prometheus => {
                let decoded = foreign::prometheus(payload).map_err(|broken| refused(broken.to_string()))?;
                (decoded, HttpReply::empty(204))
            }
            Foreign::Loki if snappy => {
                (foreign::loki_packed(payload).map_err(refused)?, HttpReply::empty(204))
            }
            Foreign::Loki => (foreign::loki_json(payload).map_err(refused)?, HttpReply::empty(204)),
            Foreign::Bulk => {
                let path = asked.request.target.split(|byte| *byte == b'?').next().unwrap_or_default();
                let index = path.strip_prefix(b"/").and_then(|path| path.strip_suffix(b"/_bulk")).map(text);
                let Bulk { decoded, items } =
                    foreign::bulk(payload, index.as_deref(), now).map_err(refused)?;
                let told = json!({"took": 0, "errors": false, "items": items});
                (decoded, HttpReply::json(200, &told))
            }
            Foreign::JsonLines => {
                let time = asked.parameter("_time_field");
                let decoded = foreign::lines(payload, time.as_deref(), now).map_err(refused)?;
                (decoded, HttpReply::empty(200))
            }
        };
        Ok((bytes, Taken { database, decoded, accepted }))
    }
}

fn protobuf(status: u16, body: String) -> HttpReply {
    HttpReply { status, content_type: Some("application/x-protobuf"), body, fields: Vec::new() }
}

/// A `google.rpc.Status` of a code and a message.
fn rpc_status(status: u16, code: u8, why: &str) -> HttpReply {
    let message: String = why.chars().filter(char::is_ascii).take(STATUS_MESSAGE).collect();
    // Field 1, a number; field 2, a text.
    let length = message.len() as u8;
    let head = ['\x08', char::from(code), '\x12', char::from(length)];
    protobuf(status, head.into_iter().collect::<String>() + &message)
}

fn bulk_problem(status: u16, kind: &str, why: &str) -> HttpReply {
    let cause = json!({"type": kind, "reason": why});
    let body = json!({"error": {"root_cause": [cause], "type": kind, "reason": why}, "status": status});
    HttpReply::json(status, &body)
}
