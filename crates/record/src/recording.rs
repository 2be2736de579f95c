//! Recorded exchanges, as HAR 1.2.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::HeaderMap;
use plimsoll_core::{Nanos, calendar};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a recording at most, those of exchanges that are under way included: as much as is imported of a
/// file.
pub(crate) const MOST_RECORDED: usize = 256 << 20;
/// Bytes that an exchange takes beside its texts and bodies.
const UPKEEP: usize = 1 << 10;

/// Memory that all exchanges share, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Takes some of it, until the share is dropped; `None` if there is not as much left.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// A body that was read while it passed: all of it or, if that would be too much, nothing.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    /// All bytes that passed: more than are kept where it was too long.
    pub(crate) passed: u64,
    is_cut: bool,
    share: Option<OwnedSemaphorePermit>,
}

impl Kept {
    /// A body of which nothing is kept.
    pub(crate) fn cut() -> Self {
        Self { is_cut: true, ..Self::default() }
    }

    /// Adds bytes that pass. More than `most`, or than there is room for, are no body any more: half of one
    /// is none.
    pub(crate) fn add(&mut self, data: &[u8], most: usize, room: &Room) {
        let passed = self.passed + data.len() as u64;
        let share = (!self.is_cut && passed <= most as u64).then(|| room.take(data.len())).flatten();
        let Some(share) = share else {
            *self = Self { passed, ..Self::cut() };
            return;
        };
        match &mut self.share {
            Some(all) => all.merge(share),
            none => *none = Some(share),
        }
        self.bytes.extend_from_slice(data);
        self.passed = passed;
    }
}

/// One exchange.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Time since 1970.
    pub(crate) started: Nanos,
    /// From the request to the head of the response: what a page does next may begin with it.
    pub(crate) waited: Nanos,
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
    /// The body.
    pub content: Bytes,
}

impl Exchange {
    /// Bytes of its memory, without the bodies.
    fn size(&self) -> usize {
        let fields = self.sent.iter().chain(&self.received);
        let fields: usize = fields.map(|(name, value)| name.as_str().len() + value.len()).sum();
        UPKEEP + self.method.len() + self.url.len() + fields
    }
}

/// Exchanges in the order of their ends.
#[derive(Debug)]
pub struct Recording {
    exchanges: Vec<(Exchange, OwnedSemaphorePermit)>,
    room: Room,
    left_out: u64,
}

impl Recording {
    pub(crate) const fn new(room: Room) -> Self {
        Self { exchanges: Vec::new(), room, left_out: 0 }
    }

    /// Adds an exchange, if there is room for it.
    pub(crate) fn push(&mut self, exchange: Exchange) {
        match self.room.take(exchange.size()) {
            Some(share) => self.exchanges.push((exchange, share)),
            None => self.left_out += 1,
        }
    }

    /// Returns the number of exchanges for which there was no room.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn iter(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().map(|(exchange, _)| exchange)
    }

    /// Returns the number of exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns `true` if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// URLs of requests whose bodies were too long to keep, or for which there was no room: the recording has
    /// them without a body.
    pub fn without_body(&self) -> impl Iterator<Item = &str> {
        let cut = |each: &&Exchange| each.request.passed > 0 && each.request.bytes.is_empty();
        self.iter().filter(cut).map(|each| each.url.as_str())
    }

    /// The recording in the format HAR 1.2, by `version` of this program, and bodies of requests that are not
    /// text: their names begin with `stem`, and the recording refers to them as `_file`.
    pub fn to_har(&self, version: &str, stem: &str) -> (Value, Vec<BodyFile>) {
        let mut exchanges: Vec<&Exchange> = self.iter().collect();
        exchanges.sort_by_key(|exchange| exchange.started);
        let mut files = Vec::new();
        let entries: Vec<Value> = exchanges.iter().map(|each| entry(each, stem, &mut files)).collect();
        let creator = json!({"name": "plimsoll", "version": version});
        (json!({"log": {"version": "1.2", "creator": creator, "entries": entries}}), files)
    }
}

fn entry(exchange: &Exchange, stem: &str, files: &mut Vec<BodyFile>) -> Value {
    let [waited, received] =
        [exchange.waited, exchange.took.since(exchange.waited)].map(|time| time.0 as f64 / 1e6);
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
        "time": waited + received,
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
        "timings": {"send": 0, "wait": waited, "receive": received},
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

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(request: Kept, response: Kept) -> Exchange {
        Exchange {
            started: Nanos(0),
            waited: Nanos(0),
            took: Nanos(0),
            method: "POST".to_owned(),
            url: "http://a.test/".to_owned(),
            sent: HeaderMap::new(),
            request,
            version: "HTTP/1.1",
            status: 200,
            reason: String::new(),
            received: HeaderMap::new(),
            response,
        }
    }

    #[test]
    fn of_a_body_that_is_too_long_nothing_is_kept_and_all_of_it_counted() {
        let room = Room::new(100);
        let mut kept = Kept::default();
        kept.add(&[1; 30], 40, &room);
        kept.add(&[2; 10], 40, &room);
        assert_eq!((kept.bytes.len(), kept.passed, room.0.available_permits()), (40, 40, 60));
        kept.add(&[3; 1], 40, &room);
        assert_eq!((kept.bytes.capacity(), kept.passed, room.0.available_permits()), (0, 41, 100));
        kept.add(&[3; 1], 100, &room);
        assert_eq!((kept.bytes.len(), kept.passed), (0, 42));
    }

    #[test]
    fn a_recording_has_a_bound() {
        let room = Room::new(3 * UPKEEP);
        let mut recording = Recording::new(room.clone());
        let mut kept = Kept::default();
        kept.add(&[1; UPKEEP], MOST_RECORDED, &room);
        recording.push(exchange(kept, Kept::default()));
        assert_eq!((recording.len(), recording.left_out(), recording.without_body().count()), (1, 0, 0));
        // Bodies are left out first, and then exchanges.
        let mut kept = Kept::default();
        kept.add(&[1; UPKEEP], MOST_RECORDED, &room);
        assert_eq!((kept.bytes.len(), kept.passed), (0, UPKEEP as u64));
        recording.push(exchange(kept, Kept::default()));
        assert_eq!((recording.len(), recording.left_out()), (1, 1));
        drop(recording);
        assert_eq!(room.0.available_permits(), 3 * UPKEEP);
    }
}
