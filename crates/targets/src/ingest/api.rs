//! The HTTP API of the server: the real server's ways to write and to query, the ways of others to write, and
//! administration.

mod administration;
mod foreign;
mod queries;
mod writes;

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_wire::http1::Request;
use serde_json::json;

use super::options::Permissions;
use super::payload::Decompressor;
use super::queries::Question;
use super::setup::{IngestCounts, Setup};
use crate::http_reply::{HttpReply, decoded};

pub(crate) use queries::{overloaded, tell};
use writes::WriteFormat;

/// When a request came: by the clock of the driver, and by the wall's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Nanos,
    pub(crate) unix: Nanos,
}

impl Moment {
    /// Microseconds since 1970.
    pub(crate) const fn micros(self) -> i64 {
        (self.unix.0 / 1000) as i64
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Reply, this long after the request came.
    Reply(HttpReply, Nanos),
    /// Reply with the result of this question.
    Query(Question),
    /// Reset the connection.
    Reset,
}

impl From<HttpReply> for Answer {
    fn from(reply: HttpReply) -> Self {
        Self::Reply(reply, Nanos::ZERO)
    }
}

/// Answers the requests of one thread.
#[derive(Debug)]
pub(crate) struct Api {
    setup: Arc<Setup>,
    decompressor: Decompressor,
    pub(crate) counts: IngestCounts,
}

/// A request, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedRequest<'a> {
    pub(crate) request: &'a Request<'a>,
    /// Query of the URL, without the `?`.
    pub(crate) query: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) moment: Moment,
    pub(crate) may: Permissions,
}

impl ParsedRequest<'_> {
    /// A parameter of the query, as text.
    fn parameter(&self, name: &str) -> Option<String> {
        parameter(self.query, name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// A header field as text; an empty one counts as absent.
    fn field(&self, name: &str) -> Option<String> {
        let value = self.request.header(name).filter(|value| !value.is_empty())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

impl Api {
    pub(crate) fn new(setup: Arc<Setup>) -> Self {
        Self { setup, decompressor: Decompressor::default(), counts: IngestCounts::default() }
    }

    pub(crate) fn answer(&mut self, request: &Request<'_>, body: &[u8], moment: Moment) -> Answer {
        self.counts.requests += 1;
        let (path, query) = split(request.target);
        let mut asked = ParsedRequest { request, query, body, moment, may: Permissions::default() };
        let method = if request.head_request { b"GET" } else { request.method };
        // Paths that need no credentials.
        match (path, method) {
            (b"/ready", b"GET") => return HttpReply::json(200, &json!({"status": "ready"})).into(),
            (b"/health", b"GET") => return HttpReply::json(200, &json!({"status": "ok"})).into(),
            (b"/api/v1/auth/verify", b"GET") => return self.verify(&asked).into(),
            _ => {}
        }
        match self.setup.tokens.permissions(request, query) {
            Ok(may) => asked.may = may,
            Err(stranger) => return refused(401, stranger.told()).into(),
        }
        if let Some(form) = WriteFormat::of(path) {
            return match method {
                b"POST" if asked.may.write => self.write(form, &asked),
                b"POST" => denied("write").into(),
                _ => not_allowed("POST").into(),
            };
        }
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
        self.known(&parts, method, &asked).unwrap_or_else(|| missing(request).into())
    }

    /// Answers a request to a known path; `None` if nothing has this path.
    fn known(&mut self, parts: &[&[u8]], method: &[u8], asked: &ParsedRequest<'_>) -> Option<Answer> {
        let reads = |reply: fn(&mut Self, &ParsedRequest<'_>) -> HttpReply, this: &mut Self| match method {
            b"GET" => reply(this, asked),
            _ => not_allowed("GET, HEAD"),
        };
        let reply = match *parts {
            [b"api", b"v1", b"write", b"line-protocol", b"flush"] => match method {
                b"POST" => self.flush(asked),
                _ => not_allowed("POST"),
            },
            [b"api", b"v1", b"query"] => match method {
                b"POST" => return Some(self.query(asked)),
                _ => not_allowed("POST"),
            },
            [b"api", b"v1", b"query", measurement] => match method {
                b"GET" => return Some(self.measurement(asked, &text(measurement))),
                _ => not_allowed("GET, HEAD"),
            },
            [b"api", b"v1", b"measurements"] => reads(Self::measurements, self),
            [b"api", b"v1", b"databases"] => match method {
                b"GET" => self.databases(asked),
                b"POST" => self.create_database(asked),
                _ => not_allowed("GET, HEAD, POST"),
            },
            [b"api", b"v1", b"databases", name] => match method {
                b"GET" => self.database(asked, &text(name)),
                _ => not_allowed("GET, HEAD"),
            },
            [b"api", b"v1", b"databases", name, b"measurements"] => match method {
                b"GET" => self.measurements_of(asked, &text(name)),
                _ => not_allowed("GET, HEAD"),
            },
            [b"api", b"v1", b"auth", b"tokens"] => match method {
                b"POST" => self.create_token(asked),
                _ => not_allowed("POST"),
            },
            [b"plimsoll", b"acknowledged"] => reads(Self::acknowledged, self),
            _ => return None,
        };
        Some(reply.into())
    }
}

/// The path and the query of a request's target.
fn split(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|byte| *byte == b'?') {
        Some(place) => (&target[..place], &target[place + 1..]),
        None => (target, &[]),
    }
}

/// The first value of a name in a query, decoded as forms are.
pub(crate) fn parameter<'a>(query: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    let pairs = query.split(|byte| *byte == b'&');
    let value = pairs.filter_map(|pair| {
        let place = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (key, value) = pair.split_at(place);
        (*decoded(key) == *name.as_bytes()).then(|| value.strip_prefix(b"=").unwrap_or(value))
    });
    let value = { value }.next()?;
    if value.contains(&b'+') {
        let spaced: Vec<u8> = value.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        return Some(Cow::Owned(decoded(&spaced).into_owned()));
    }
    Some(decoded(value))
}

/// A part of a path as text; invalid UTF-8 matches no name.
fn text(part: &[u8]) -> String {
    String::from_utf8_lossy(&decoded(part)).into_owned()
}

/// Returns `true` if a database may have this name.
fn is_database(name: &str) -> bool {
    is_name(name, 64)
}

/// Returns `true` if a measurement may have this name.
fn is_measurement(name: &str) -> bool {
    is_name(name, 128)
}

fn is_name(name: &str, longest: usize) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.len() <= longest
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(rest)
}

/// An error as most of the real server's have it.
fn problem(status: u16, why: &str) -> HttpReply {
    HttpReply::json(status, &json!({"error": why}))
}

/// An error as those on permissions and administration have it.
fn refused(status: u16, why: &str) -> HttpReply {
    HttpReply::json(status, &json!({"error": why, "success": false}))
}

fn denied(permission: &str) -> HttpReply {
    refused(403, &format!("Permission denied: {permission} required"))
}

fn not_allowed(methods: &str) -> HttpReply {
    HttpReply::text(405, "Method Not Allowed").with_field("allow", methods)
}

fn missing(request: &Request<'_>) -> HttpReply {
    let [method, target] = [request.method, request.target].map(String::from_utf8_lossy);
    HttpReply::text(404, format!("Cannot {method} {target}"))
}

#[cfg(test)]
mod tests;
