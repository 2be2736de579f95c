//! The endpoints for SQL queries.

use serde_json::{Value, json};

use super::super::queries::{MOST_RUNNING, MOST_WAITING, Question};
use super::super::query::{LONGEST_SQL, QueryResult, Refused};
use super::super::time;
use super::{Answer, Api, ParsedRequest, denied, is_database, is_measurement};
use crate::http_reply::HttpReply;

/// Rows of a measurement if the request names no number: the default of the real server.
const USUAL_ROWS: &str = "100";

impl Api {
    /// `POST /api/v1/query`.
    pub(super) fn query(&mut self, asked: &ParsedRequest<'_>) -> Answer {
        if !asked.may.read {
            return denied("read").into();
        }
        let media_type = asked.request.header("content-type").unwrap_or_default();
        let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !media_type.eq_ignore_ascii_case(b"application/json") {
            return refused("Invalid request body: Unprocessable Entity", asked);
        }
        let body: Value = match serde_json::from_slice(asked.body) {
            Ok(body) => body,
            Err(error) => return refused(&format!("Invalid request body: {error}"), asked),
        };
        let sql = body.get("sql").and_then(Value::as_str).unwrap_or_default();
        if sql.trim().is_empty() {
            return refused("SQL query is required", asked);
        }
        let database = asked.field("x-arc-database").unwrap_or_else(|| "default".to_owned());
        self.run(sql, &database, asked)
    }

    /// `GET /api/v1/query/MEASUREMENT?database=`.
    pub(super) fn measurement(&mut self, asked: &ParsedRequest<'_>, measurement: &str) -> Answer {
        if !asked.may.read {
            return denied("read").into();
        }
        let database = asked.parameter("database").unwrap_or_else(|| "default".to_owned());
        if !is_database(&database) {
            return refused("Invalid database name: it is not an identifier", asked);
        }
        if !is_measurement(measurement) {
            return refused("Invalid measurement name: it is not an identifier", asked);
        }
        let mut numbers = [("limit", USUAL_ROWS), ("offset", "0")].map(|(name, usual)| {
            asked.parameter(name).unwrap_or_else(|| usual.to_owned()).parse::<u32>().map_err(|_| name)
        });
        numbers.sort_by_key(Result::is_ok);
        if let Err(name) = numbers[0] {
            return refused(&format!("Invalid {name} parameter"), asked);
        }
        let [limit, offset] = [("limit", 100), ("offset", 0)].map(|(name, usual)| {
            asked.parameter(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(usual)
        });
        for unknown in ["where", "order_by"] {
            if asked.parameter(unknown).is_some() {
                let why = format!("this target has no `{unknown}`: ask POST /api/v1/query in SQL");
                return refused(&why, asked);
            }
        }
        let sql = format!(
            "SELECT * FROM \"{database}\".\"{measurement}\" ORDER BY time DESC LIMIT {limit} OFFSET {offset}"
        );
        self.run(&sql, &database, asked)
    }

    /// Has a query run.
    fn run(&mut self, sql: &str, database: &str, asked: &ParsedRequest<'_>) -> Answer {
        self.counts.queries += 1;
        if sql.len() > LONGEST_SQL {
            return refused(&format!("this target takes at most {LONGEST_SQL} bytes of SQL"), asked);
        }
        Answer::Query(Question {
            sql: sql.to_owned(),
            database: database.to_owned(),
            at: asked.moment.at,
            timestamp: timestamp(asked),
        })
    }
}

/// The reply to a query that was run.
pub(crate) fn tell(found: Result<QueryResult, Refused>, millis: u64, timestamp: &str) -> HttpReply {
    match found {
        Ok(found) => told(found, millis, timestamp),
        Err(Refused::Dangerous) => failed(400, "Dangerous SQL operation not allowed", timestamp),
        Err(Refused::Multiple) => failed(400, "Multiple SQL statements are not allowed", timestamp),
        Err(Refused::Failed(why)) => failed(500, &format!("arrow query failed: {why}"), timestamp),
    }
}

/// The reply to a query for which there is no room.
pub(crate) fn overloaded(timestamp: &str) -> HttpReply {
    let why = format!(
        "this target runs {MOST_RUNNING} queries at once, and {MOST_WAITING} wait already: ask again later"
    );
    failed(503, &why, timestamp).with_field("retry-after", "1")
}

fn told(found: QueryResult, millis: u64, timestamp: &str) -> HttpReply {
    let (columns, rows) = (json!(found.columns), found.rows);
    // The rows may be long, so they are moved, and not copied.
    let mut body = found.data;
    body.insert_str(0, &format!(r#"{{"success":true,"columns":{columns},"data":"#));
    body.push_str(&format!(
        r#","row_count":{rows},"execution_time_ms":{millis},"timestamp":"{timestamp}"}}"#
    ));
    let reply = HttpReply { body, ..HttpReply::json(200, &Value::Null) };
    match found.forgotten {
        0 => reply,
        forgotten => reply.with_field("x-plimsoll-forgotten-rows", &forgotten.to_string()),
    }
}

/// The answer to a query that cannot be run.
fn refused(why: &str, asked: &ParsedRequest<'_>) -> Answer {
    failed(400, why, &timestamp(asked)).into()
}

fn failed(status: u16, why: &str, timestamp: &str) -> HttpReply {
    let body = json!({
        "success": false, "columns": [], "data": [], "row_count": 0, "execution_time_ms": 0,
        "timestamp": timestamp, "error": why,
    });
    HttpReply::json(status, &body)
}

/// When a request came, in whole seconds.
pub(super) fn timestamp(asked: &ParsedRequest<'_>) -> String {
    let written = time::written(asked.moment.micros());
    format!("{}Z", written.split('.').next().unwrap_or_default())
}
