//! What is asked in SQL.

use plimsoll_core::Nanos;
use plimsoll_driver::clock;
use serde_json::{Value, json};

use super::super::query::{self, Found, Refused};
use super::super::time;
use super::{Api, Asked, denied, is_database, is_measurement};
use crate::http_reply::HttpReply;

/// A query is ended after this time: it keeps its thread from everything else.
const PATIENCE: Nanos = Nanos::from_secs(30);
/// Rows of a measurement if the request names no number: what the real server gives.
const USUAL_ROWS: &str = "100";

impl Api {
    /// `POST /api/v1/query`.
    pub(super) fn query(&mut self, asked: &Asked<'_>) -> HttpReply {
        if !asked.may.read {
            return denied("read");
        }
        let media_type = asked.request.header("content-type").unwrap_or_default();
        let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !media_type.eq_ignore_ascii_case(b"application/json") {
            return failed(400, "Invalid request body: Unprocessable Entity", asked);
        }
        let body: Value = match serde_json::from_slice(asked.body) {
            Ok(body) => body,
            Err(error) => return failed(400, &format!("Invalid request body: {error}"), asked),
        };
        let sql = body.get("sql").and_then(Value::as_str).unwrap_or_default();
        if sql.trim().is_empty() {
            return failed(400, "SQL query is required", asked);
        }
        let database = asked.field("x-arc-database").unwrap_or_else(|| "default".to_owned());
        self.run(sql, &database, asked)
    }

    /// `GET /api/v1/query/MEASUREMENT?database=`.
    pub(super) fn measurement(&mut self, asked: &Asked<'_>, measurement: &str) -> HttpReply {
        if !asked.may.read {
            return denied("read");
        }
        let database = asked.parameter("database").unwrap_or_else(|| "default".to_owned());
        if !is_database(&database) {
            return failed(400, "Invalid database name: it is no identifier", asked);
        }
        if !is_measurement(measurement) {
            return failed(400, "Invalid measurement name: it is no identifier", asked);
        }
        let mut numbers = [("limit", USUAL_ROWS), ("offset", "0")].map(|(name, usual)| {
            asked.parameter(name).unwrap_or_else(|| usual.to_owned()).parse::<u32>().map_err(|_| name)
        });
        numbers.sort_by_key(Result::is_ok);
        if let Err(name) = numbers[0] {
            return failed(400, &format!("Invalid {name} parameter"), asked);
        }
        let [limit, offset] = [("limit", 100), ("offset", 0)].map(|(name, usual)| {
            asked.parameter(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(usual)
        });
        for unknown in ["where", "order_by"] {
            if asked.parameter(unknown).is_some() {
                let why = format!("this target has no `{unknown}`: ask POST /api/v1/query in SQL");
                return failed(400, &why, asked);
            }
        }
        let sql = format!(
            "SELECT * FROM \"{database}\".\"{measurement}\" ORDER BY time DESC LIMIT {limit} OFFSET {offset}"
        );
        self.run(&sql, &database, asked)
    }

    fn run(&mut self, sql: &str, database: &str, asked: &Asked<'_>) -> HttpReply {
        self.counts.queries += 1;
        let began = clock::monotonic();
        let stopper = self.setup.stopper.clone();
        let goes_on = move || !stopper.is_stopped() && clock::monotonic().since(began) < PATIENCE;
        let found = query::run(&self.setup.store, sql, database, asked.moment.at, goes_on);
        let millis = clock::monotonic().since(began).0 / 1_000_000;
        match found {
            Ok(found) => told(&found, millis, asked),
            Err(Refused::Dangerous) => failed(400, "Dangerous SQL operation not allowed", asked),
            Err(Refused::Multiple) => failed(400, "Multiple SQL statements are not allowed", asked),
            Err(Refused::Failed(why)) => failed(500, &format!("arrow query failed: {why}"), asked),
        }
    }
}

fn told(found: &Found, millis: u64, asked: &Asked<'_>) -> HttpReply {
    let (columns, rows, data) = (json!(found.columns), found.rows, &found.data);
    let timestamp = timestamp(asked);
    let body = format!(r#"{{"success":true,"columns":{columns},"data":{data},"row_count":{rows},"#)
        + &format!(r#""execution_time_ms":{millis},"timestamp":"{timestamp}"}}"#);
    let reply = HttpReply { body, ..HttpReply::json(200, &Value::Null) };
    match found.forgotten {
        0 => reply,
        forgotten => reply.with_field("x-plimsoll-forgotten-rows", &forgotten.to_string()),
    }
}

fn failed(status: u16, why: &str, asked: &Asked<'_>) -> HttpReply {
    let timestamp = timestamp(asked);
    let body = json!({
        "success": false, "columns": [], "data": [], "row_count": 0, "execution_time_ms": 0,
        "timestamp": timestamp, "error": why,
    });
    HttpReply::json(status, &body)
}

/// When a request came, in whole seconds.
pub(super) fn timestamp(asked: &Asked<'_>) -> String {
    let written = time::written(asked.moment.micros());
    format!("{}Z", written.split('.').next().unwrap_or_default())
}
