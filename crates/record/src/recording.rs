//! Recorded exchanges, as HAR 1.2.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::HeaderMap;
use plimsoll_core::{Nanos, calendar};
use serde_json::{Value, json};

/// A body that was read while it passed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    /// All bytes that passed: more than are kept where it was too long.
    pub(crate) passed: u64,
}

/// One exchange.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Time since 1970.
    pub(crate) started: Nanos,
    /// From the request to the end of the response.
    pub(crate) took: Nanos,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) sent: HeaderMap,
    pub(crate) request: Kept,
    pub(crate) version: &'static str,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) received: HeaderMap,
    pub(crate) response: Kept,
}

/// The body of a request that is not text: HAR has no place for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyFile {
    /// The name by which the recording refers to it.
    pub name: String,
    /// Its content.
    pub content: Bytes,
}

/// Exchanges in the order of their ends.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    exchanges: Vec<Exchange>,
}

impl Recording {
    pub(crate) fn push(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
    }

    /// Returns the number of exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns `true` if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// URLs of requests whose bodies were too long to keep: the recording has them without a body.
    pub fn without_body(&self) -> impl Iterator<Item = &str> {
        let cut = |each: &&Exchange| each.request.passed > 0 && each.request.bytes.is_empty();
        self.exchanges.iter().filter(cut).map(|each| each.url.as_str())
    }

    /// The recording in the format HAR 1.2, by `version` of this program, and bodies of requests that are not
    /// text: their names begin with `stem`, and the recording refers to them as `_file`.
    pub fn to_har(&self, version: &str, stem: &str) -> (Value, Vec<BodyFile>) {
        let mut exchanges: Vec<&Exchange> = self.exchanges.iter().collect();
        exchanges.sort_by_key(|exchange| exchange.started);
        let mut files = Vec::new();
        let entries: Vec<Value> = exchanges.iter().map(|each| entry(each, stem, &mut files)).collect();
        let creator = json!({"name": "plimsoll", "version": version});
        (json!({"log": {"version": "1.2", "creator": creator, "entries": entries}}), files)
    }
}

fn entry(exchange: &Exchange, stem: &str, files: &mut Vec<BodyFile>) -> Value {
    let milliseconds = exchange.took.0 as f64 / 1e6;
    let mut request = json!({
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": exchange.version,
        "cookies": [],
        "headers": headers(&exchange.sent),
        "queryString": [],
        "headersSize": -1,
        "bodySize": exchange.request.passed,
    });
    if !exchange.request.bytes.is_empty() {
        let media_type = media_type(&exchange.sent);
        request["postData"] = match std::str::from_utf8(&exchange.request.bytes) {
            Ok(text) => json!({"mimeType": media_type, "text": text}),
            Err(_) => {
                let name = format!("{stem}-body-{}.bin", files.len() + 1);
                let content = Bytes::copy_from_slice(&exchange.request.bytes);
                files.push(BodyFile { name: name.clone(), content });
                json!({"mimeType": media_type, "text": "", "_file": name})
            }
        };
    }
    let mut content = json!({"size": exchange.response.passed, "mimeType": media_type(&exchange.received)});
    match std::str::from_utf8(&exchange.response.bytes) {
        Ok(text) => content["text"] = json!(text),
        Err(_) => {
            content["text"] = json!(STANDARD.encode(&exchange.response.bytes));
            content["encoding"] = json!("base64");
        }
    }
    let redirect = exchange.received.get("location").map(|url| String::from_utf8_lossy(url.as_bytes()));
    json!({
        "startedDateTime": calendar::rfc3339(exchange.started, 6),
        "time": milliseconds,
        "request": request,
        "response": {
            "status": exchange.status,
            "statusText": exchange.reason,
            "httpVersion": exchange.version,
            "cookies": [],
            "headers": headers(&exchange.received),
            "content": content,
            "redirectURL": redirect.unwrap_or_default(),
            "headersSize": -1,
            "bodySize": exchange.response.passed,
        },
        "cache": {},
        "timings": {"send": 0, "wait": milliseconds, "receive": 0},
    })
}

fn headers(fields: &HeaderMap) -> Vec<Value> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let fields = fields.iter();
    fields.map(|(name, value)| json!({"name": name.as_str(), "value": text(value.as_bytes())})).collect()
}

fn media_type(fields: &HeaderMap) -> String {
    let field =
        fields.get("content-type").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    field.unwrap_or_default()
}
