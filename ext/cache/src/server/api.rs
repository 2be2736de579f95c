//! The API of the HTTP port: the part of the real server's that loads of it use.

use std::num::NonZero;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_targets::http_reply::{HttpReply, decoded};
use plimsoll_wire::http1::Request;
use serde_json::{Map, Value, json};

use super::accounts::{ApiUser, SESSION_SECONDS};
use super::catalogue::Finder;
use super::options::{SMALLEST_CACHE, is_name};
use super::setup::Setup;
use super::store::Store;

/// The ways to make room, as errors name them.
const EVICTIONS: &str = "'ttl', 'size', or 'storage'";

/// Answers requests of one thread.
#[derive(Debug)]
pub(crate) struct Api {
    finder: Finder,
    setup: Arc<Setup>,
}

impl Api {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self { finder: Finder::new(Arc::clone(&setup.catalogue)), setup }
    }

    pub(crate) fn answer(&mut self, request: &Request<'_>, body: &[u8], now: Nanos) -> HttpReply {
        let path = request.target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let parts: Vec<_> = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').collect();
        // Paths that need no credentials.
        match (parts.as_slice(), request.method) {
            ([b"health"], b"GET" | b"HEAD") => return HttpReply::text(200, "OK"),
            ([b"health"], _) => return not_allowed("GET,HEAD"),
            ([b"auth", b"login"], b"POST") => return self.log_in(request, body, now),
            ([b"auth", b"login"], _) => return not_allowed("POST"),
            ([b"auth", ..], _) => return HttpReply::empty(404),
            _ => {}
        }
        match self.setup.accounts.admit(request.header("authorization"), now) {
            Ok(ApiUser { session: None }) => self.admitted(request, &parts, body, now),
            Ok(ApiUser { session: Some((token, reused)) }) => self
                .admitted(request, &parts, body, now)
                .with_field("x-session-token", &token)
                .with_field("x-session-reused", if reused { "true" } else { "false" }),
            Err(why) => problem(401, why),
        }
    }

    fn admitted(&mut self, request: &Request<'_>, parts: &[&[u8]], body: &[u8], now: Nanos) -> HttpReply {
        match *parts {
            [b"admin", b"caches"] => match request.method {
                b"POST" => self.create(request, body),
                b"GET" | b"HEAD" => self.list(),
                _ => not_allowed("GET,HEAD,POST"),
            },
            [b"admin", b"caches", name] => self.administer(request.method, &text(name)),
            [b"cache", name, key] => self.value(request, &text(name), &decoded(key), body, now),
            _ => HttpReply::empty(404),
        }
    }

    fn log_in(&self, request: &Request<'_>, body: &[u8], now: Nanos) -> HttpReply {
        let fields = match object(request, body) {
            Ok(fields) => fields,
            Err(reply) => return reply,
        };
        let (user, password) = match (word(&fields, "username"), word(&fields, "password")) {
            (Ok(user), Ok(password)) => (user, password),
            (Err(reply), _) | (_, Err(reply)) => return reply,
        };
        match self.setup.accounts.log_in(user, password, now) {
            Some(token) => {
                let body = json!({"token": token, "expires_in": SESSION_SECONDS, "username": user});
                HttpReply::json(200, &body)
            }
            None => problem(401, "Invalid username or password"),
        }
    }

    fn create(&self, request: &Request<'_>, body: &[u8]) -> HttpReply {
        let fields = match object(request, body) {
            Ok(fields) => fields,
            Err(reply) => return reply,
        };
        let name = match word(&fields, "name") {
            Ok(name) => name,
            Err(reply) => return reply,
        };
        if let Some(field) = ["backend", "backend_type"].into_iter().find(|field| fields.contains_key(*field))
        {
            return problem(
                400,
                &format!("Unknown field `{field}`. The backend type is `eviction`: {EVICTIONS}"),
            );
        }
        // As its documents have it: there, a cache without the field is one of `max_capacity` values. The
        // server itself takes it for one of a kind that it refuses.
        let eviction = match fields.get("eviction").map_or(Some("ttl"), Value::as_str) {
            Some("ttl") => "ttl",
            Some("size") => "size",
            Some("storage") => "storage",
            Some(other) => {
                let why = format!("Invalid backend type '{other}' in `eviction`. Must be {EVICTIONS}");
                return problem(400, &why);
            }
            None => return wrong_shape("eviction", "a string"),
        };
        let max_values = match fields.get("max_capacity") {
            None | Some(Value::Null) => None,
            Some(given) => match given.as_u64().and_then(NonZero::new) {
                Some(most) => Some(most),
                None => return wrong_shape("max_capacity", "a number of values above 0"),
            },
        };
        if !is_name(name) {
            return problem(400, "Invalid cache name. Use letters, digits, '-' and '_'");
        }
        let max_bytes = match (eviction, fields.get("mem_bytes")) {
            ("ttl", None | Some(Value::Null)) => self.setup.options.max_bytes,
            (_, given) => match given.and_then(Value::as_u64) {
                Some(bytes) if bytes >= SMALLEST_CACHE => bytes,
                _ => {
                    let why =
                        format!("mem_bytes must be at least {SMALLEST_CACHE} for `eviction` '{eviction}'");
                    return problem(400, &why);
                }
            },
        };
        if eviction == "storage" && fields.get("disk_path").and_then(Value::as_str).is_none() {
            return problem(400, "disk_path is required for 'storage'");
        }
        let store = || self.setup.store(eviction, max_bytes, max_values);
        let Some(created) = self.setup.catalogue.create(name, store) else {
            return problem(503, "this target has as many caches as it takes: delete one");
        };
        let message = if created { "created successfully" } else { "already exists" };
        HttpReply::json(200, &json!({"created": created, "message": format!("Cache '{name}' {message}")}))
    }

    fn list(&self) -> HttpReply {
        let all = self.setup.catalogue.all();
        let caches: Vec<_> = all.iter().map(|(name, store)| described(name, store)).collect();
        HttpReply::json(200, &json!({"caches": caches}))
    }

    /// One cache as a whole.
    fn administer(&self, method: &[u8], name: &str) -> HttpReply {
        match method {
            b"GET" | b"HEAD" => match self.setup.catalogue.find(name) {
                Some(store) => HttpReply::json(200, &described(name, &store)),
                None => HttpReply::empty(404),
            },
            b"DELETE" if self.setup.catalogue.remove(name) => HttpReply::json(200, &json!({"deleted": true})),
            b"DELETE" => HttpReply::empty(404),
            _ => not_allowed("GET,HEAD,DELETE"),
        }
    }

    /// One value of a cache.
    fn value(&mut self, request: &Request<'_>, name: &str, key: &[u8], body: &[u8], now: Nanos) -> HttpReply {
        if !matches!(request.method, b"GET" | b"HEAD" | b"PUT" | b"DELETE") {
            return not_allowed("GET,HEAD,PUT,DELETE");
        }
        let Some(store) = self.finder.find(name) else { return HttpReply::empty(404) };
        let answer = match request.method {
            b"PUT" => {
                let fields = match object(request, body) {
                    Ok(fields) => fields,
                    Err(reply) => return reply,
                };
                match word(&fields, "value") {
                    Ok(value) => store.put(key, value.as_bytes(), now),
                    Err(reply) => return reply,
                }
                json!({"ok": true})
            }
            b"DELETE" => json!({"deleted": store.remove(key, now)}),
            _ => match store.get(key, now) {
                // The real server says 0 of every value.
                Some(value) => {
                    let value = String::from_utf8_lossy(&value);
                    json!({"found": true, "value": value, "ttl_ms_remaining": 0})
                }
                None => json!({"found": false, "ttl_ms_remaining": 0}),
            },
        };
        HttpReply::json(200, &answer)
    }
}

fn described(name: &str, store: &Store) -> Value {
    json!({
        "name": name,
        "eviction": store.eviction,
        "mem_bytes": store.max_bytes,
        "keys_estimate": store.len(),
    })
}

fn problem(status: u16, why: &str) -> HttpReply {
    HttpReply::json(status, &json!({"error": why}))
}

fn not_allowed(methods: &str) -> HttpReply {
    // RFC 9110 15.5.6: a 405 has to name what is allowed.
    HttpReply::empty(405).with_field("allow", methods)
}

/// The object in a body, or the reply to an error.
fn object(request: &Request<'_>, body: &[u8]) -> Result<Map<String, Value>, HttpReply> {
    let media_type = request.header("content-type").unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !media_type.eq_ignore_ascii_case(b"application/json") {
        let why = "Expected request with `Content-Type: application/json`";
        return Err(HttpReply::text(415, why));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong_shape("the body", "an object")),
        Err(error) => Err(HttpReply::text(400, format!("Failed to parse the request body as JSON: {error}"))),
    }
}

/// A field that has to be there and to be a string, or the reply to an error.
fn word<'f>(fields: &'f Map<String, Value>, name: &str) -> Result<&'f str, HttpReply> {
    fields.get(name).and_then(Value::as_str).ok_or_else(|| wrong_shape(name, "a string"))
}

fn wrong_shape(what: &str, expected: &str) -> HttpReply {
    let why = "Failed to deserialize the JSON body into the target type";
    HttpReply::text(422, format!("{why}: {what} has to be {expected}"))
}

/// A part of a path as text; invalid UTF-8 matches no name.
fn text(part: &[u8]) -> String {
    String::from_utf8_lossy(&decoded(part)).into_owned()
}
