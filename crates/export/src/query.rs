//! Instant queries of a Prometheus server, or of one that speaks its API (Thanos, Mimir, VictoriaMetrics):
//! <https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries>

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_core::Nanos;
use plimsoll_http::{Client, Deadline};
use plimsoll_metrics::threshold::{Answer, SeriesValue};
use plimsoll_wire::tls::TlsConfigError;
use serde::Deserialize;
use serde_json::Value;

use crate::Receiver;
use crate::receiver::GRACE;

/// The path of instant queries, below the base of a server.
pub const PATH: &str = "/api/v1/query";
/// Bytes of an answer that are read: some thousand series with twenty labels each.
const ANSWER_BYTES: usize = 4 << 20;
/// Characters of a server's message that are told.
const MESSAGE: usize = 500;

/// Reason why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The query is wrong, whenever it is asked: in the server's words, or for its kind of result.
    Refused(String),
    /// There is no answer now.
    NoAnswer(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(reason) | Self::NoAnswer(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for QueryError {}

/// Asks a Prometheus server, each time on a connection of its own.
#[derive(Debug)]
pub struct PrometheusClient {
    client: Client,
    receiver: Receiver,
    stop: Arc<AtomicBool>,
}

impl PrometheusClient {
    /// A client of the server with this address, [`PATH`] included. A question that is not the last one is
    /// given up soon after `stop` was set.
    ///
    /// # Errors
    /// No TLS for one that wants it.
    pub fn new(receiver: Receiver, stop: &Arc<AtomicBool>) -> Result<Self, TlsConfigError> {
        Ok(Self { client: receiver.client(ANSWER_BYTES)?, receiver, stop: Arc::clone(stop) })
    }

    /// Asks for the value of a query at an instant in Unix time, and waits no longer than `limit`.
    ///
    /// # Errors
    /// The query is wrong, or there is no answer.
    pub fn ask(&self, query: &str, at: Nanos, limit: Nanos, last: bool) -> Result<Answer, QueryError> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let parameters =
            format!("?query={query}&time={:.3}&timeout={}ms", at.as_secs_f64(), limit.0 / 1_000_000);
        let deadline = match last {
            true => Deadline::within(limit),
            false => Deadline::within(limit).or_after(&self.stop, GRACE),
        };
        let answer = self.receiver.get(&self.client, &parameters, deadline);
        let answer = answer.map_err(|error| QueryError::NoAnswer(error.about("the Prometheus server")))?;
        read(answer.status, &answer.body)
    }
}

/// An answer of the API.
#[derive(Deserialize)]
struct Reply {
    status: String,
    data: Option<Data>,
    #[serde(rename = "errorType", default)]
    kind: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: Value,
}

/// A series of a vector, with a number or a native histogram.
#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
}

/// Reads an answer of the API.
fn read(status: u16, reply: &[u8]) -> Result<Answer, QueryError> {
    let Ok(reply) = serde_json::from_slice::<Reply>(reply) else { return Err(foreign(status)) };
    if reply.status != "success" {
        let (kind, error) = (said(&reply.kind), said(&reply.error));
        // Bad data, and data that the query cannot be carried out on.
        return Err(match status {
            400 | 422 => {
                QueryError::Refused(format!("the Prometheus server refuses the query: {kind}: {error}"))
            }
            _ => QueryError::NoAnswer(format!("the Prometheus server answered {status}: {kind}: {error}")),
        });
    }
    let Some(Data { kind, result }) = reply.data else { return Err(foreign(status)) };
    let series = match &*kind {
        "scalar" => vec![Series { metric: BTreeMap::new(), value: serde_json::from_value(result).ok() }],
        "vector" => serde_json::from_value(result).map_err(|_| foreign(status))?,
        "matrix" => {
            let reason = "the query gives ranges of values, not one for each series: take one of each, as in \
                          max_over_time(…[5m])";
            return Err(QueryError::Refused(reason.to_owned()));
        }
        "string" => return Err(QueryError::Refused("the query gives a text, and no number".to_owned())),
        other => {
            let reason = format!("the query gives a result of the unknown kind `{}`", said(other));
            return Err(QueryError::Refused(reason));
        }
    };
    let warning = reply.warnings.first().map(|warning| said(warning));
    Ok(Answer { series: series.into_iter().map(number).collect::<Result<_, _>>()?, warning })
}

/// The number of a series.
fn number(series: Series) -> Result<SeriesValue, QueryError> {
    let Some((_, text)) = series.value else {
        let reason =
            "the query gives native histograms: take a number of each, as in histogram_quantile(0.99, …)";
        return Err(QueryError::Refused(reason.to_owned()));
    };
    let text = said(&text);
    match text.parse() {
        Ok(value) => Ok(SeriesValue { labels: series.metric, text, value }),
        Err(_) => Err(QueryError::NoAnswer(format!("the Prometheus server gives `{text}` for a number"))),
    }
}

/// The answer of a server that does not speak the API at this path.
fn foreign(status: u16) -> QueryError {
    QueryError::NoAnswer(match status {
        401 | 403 => {
            format!("the server answered {status}: it wants other credentials than those of the URL")
        }
        200 => "the server speaks HTTP, but its answer is not one of Prometheus".to_owned(),
        _ => format!("the server answered {status}, and not as Prometheus does"),
    })
}

/// A message as it is told: in one line, and not endless.
fn said(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    match text.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_an_answer_is_told() {
        let vector = |series: &str| {
            format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)
        };
        let of = |kind: &str, result: &str| {
            format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#)
        };
        let error = |kind: &str, error: &str| {
            format!(r#"{{"status":"error","errorType":"{kind}","error":"{error}"}}"#)
        };
        let long = "x".repeat(9_999);
        for (status, reply, expected) in [
            (
                200,
                vector(r#"{"metric":{"a":"b"},"value":[1.5,"2"]},{"metric":{},"value":[1,"+Inf"]}"#),
                "b=2 =+Inf",
            ),
            (200, vector(r#"{"metric":{},"value":[1,"NaN"]}"#), "=NaN"),
            (200, vector(""), ""),
            (200, of("scalar", r#"[1,"0.5"]"#), "=0.5"),
            (200, of("string", r#"[1,"hello"]"#), "refused: the query gives a text"),
            (200, of("matrix", "[]"), "refused: the query gives ranges of values"),
            (200, of("later", "[]"), "refused: the query gives a result of the unknown kind `later`"),
            (
                200,
                vector(r#"{"metric":{},"histogram":[1,{"count":"1"}]}"#),
                "refused: the query gives native histograms",
            ),
            (
                200,
                vector(r#"{"metric":{},"value":[1,"many"]}"#),
                "no answer: the Prometheus server gives `many`",
            ),
            (200, of("vector", "{}"), "no answer: the server speaks HTTP, but"),
            (200, r#"{"status":"success"}"#.to_owned(), "no answer: the server speaks HTTP, but"),
            (200, "<html>".to_owned(), "no answer: the server speaks HTTP, but"),
            (
                400,
                error("bad_data", r"1:3: parse error:\nunexpected end"),
                "refused: the Prometheus server refuses the query: bad_data: 1:3: parse error: unexpected end",
            ),
            (
                422,
                error("execution", "many-to-many"),
                "refused: the Prometheus server refuses the query: execution: many",
            ),
            (
                503,
                error("timeout", "too slow"),
                "no answer: the Prometheus server answered 503: timeout: too slow",
            ),
            (503, error("timeout", &long), "no answer: the Prometheus server answered 503: timeout: xxx"),
            (302, String::new(), "no answer: the server answered 302, and not as Prometheus does"),
            (404, "404 page not found".to_owned(), "no answer: the server answered 404, and not"),
            (
                401,
                "Unauthorized".to_owned(),
                "no answer: the server answered 401: it wants other credentials",
            ),
        ] {
            let found = match read(status, reply.as_bytes()) {
                Ok(answer) => {
                    let shown = |one: &SeriesValue| {
                        format!("{}={}", one.labels.values().cloned().collect::<String>(), one.text)
                    };
                    answer.series.iter().map(shown).collect::<Vec<_>>().join(" ")
                }
                Err(QueryError::Refused(reason)) => format!("refused: {reason}"),
                Err(QueryError::NoAnswer(reason)) => format!("no answer: {reason}"),
            };
            assert!(found.starts_with(expected) && found.len() < 1_000, "{status} {reply}: {found}");
            assert!(!expected.is_empty() || found.is_empty(), "{found}");
        }
        let warned = r#"{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["half"]}"#;
        assert_eq!(read(200, warned.as_bytes()).expect("an answer").warning.as_deref(), Some("half"));
    }
}
