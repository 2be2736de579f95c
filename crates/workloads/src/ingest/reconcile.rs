//! Reconciliation: checks that a store has the records that it acknowledged, at the times that they were sent
//! with. Builds the requests to the store and evaluates its answers.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_synth::{Format, Kind, Shape};
use serde_json::{Value, json};

use super::IngestLoad;
use crate::WorkloadError;

/// The store of Arc's API that also lists the acknowledged rows: it takes the formats of other stores, too.
const OWN_STORE: &str = "/plimsoll/acknowledged";
/// The path at which it and Arc take SQL.
pub(super) const SQL: &str = "/api/v1/query";
/// What DuckDB's error for an unknown table says, and so that of our own store. Arc itself shows no rows.
pub const UNKNOWN_TABLE: &str = "Catalog Error: Table with name";
/// The path of the request to make all rows visible.
const FLUSH: &str = "/api/v1/write/line-protocol/flush";
/// Seconds that times of records may be ahead of the clock: batches are made ahead of their turn, and those
/// that are not sent leave a gap.
const AHEAD_S: u64 = 3_600;

/// API of a server, by the differences between stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Arc's API, and the acknowledged rows: our own store.
    Own,
    /// Arc's API.
    Arc,
    /// Neither.
    Other,
}

impl Interface {
    /// The requests that identify the interface, as steps of a plan. They change nothing.
    pub fn steps() -> [Value; 2] {
        [json!({ "get": OWN_STORE }), json!({ "post": SQL, "json": { "sql": "SELECT 1" } })]
    }

    /// Identifies the interface from the answers to [`steps`](Self::steps): status and body. Arc says of
    /// every query whether it was a success, also of one that its token does not allow.
    pub fn of(answers: &[(u16, &[u8])]) -> Self {
        let says_success = |body: &[u8]| {
            serde_json::from_slice::<Value>(body).is_ok_and(|told| told["success"].is_boolean())
        };
        match answers {
            [(200, _), ..] => Self::Own,
            [_, (_, body)] if says_success(body) => Self::Arc,
            _ => Self::Other,
        }
    }
}

/// The times that records of a load may have, in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first of them.
    pub since_s: u64,
    /// The last one.
    pub until_s: u64,
}

/// Query API of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Arc, or our own: SQL, over HTTP.
    Arc,
    /// InfluxDB 1, or a newer one with its compatible query API: InfluxQL.
    InfluxDb,
    /// Prometheus, or a store with its query API: PromQL.
    Prometheus,
}

impl Store {
    /// Returns the name of the store in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arc => "arc",
            Self::InfluxDb => "influxdb",
            Self::Prometheus => "prometheus",
        }
    }

    /// The request that makes all rows visible, as a step of a plan; `None` if it always does. Its success
    /// does not matter: such a store shows the rows after a while, too.
    pub fn flush(self) -> Option<Value> {
        (self == Self::Arc).then(|| json!({ "name": "flush", "post": FLUSH }))
    }
}

/// Tables in which one part of a load has to be found.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The tables, by name.
    pub name: String,
    /// Which streams of the load write to them.
    pub streams: Vec<usize>,
    tables: Vec<Table>,
}

/// One table, measurement or set of series.
#[derive(Clone, Debug, PartialEq)]
struct Table {
    store: Store,
    database: Option<String>,
    name: String,
    /// Names of the series, where the store has no tables.
    series: Vec<String>,
    /// A column that has another value in every record.
    id: Option<&'static str>,
}

/// Contents of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableContents {
    /// Records.
    pub records: u64,
    /// Of those since the beginning, records with an id that another one has, too; `None` where records have
    /// none.
    pub duplicates: Option<u64>,
    /// Records at times that no record of the load has; `None` where these are not counted at all.
    pub misdated: Option<u64>,
    /// The least and the greatest time of all records, in milliseconds since the epoch; `None` where there
    /// are none, or if they were not asked for.
    pub times_ms: Option<(i64, i64)>,
}

impl TableContents {
    fn add(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
        };
        self.records += other.records;
        self.duplicates = sum(self.duplicates, other.duplicates);
        self.misdated = sum(self.misdated, other.misdated);
        self.times_ms = match (self.times_ms, other.times_ms) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }
}

impl IngestLoad {
    /// Returns the query API for the store of this load, whose server answers for this interface.
    ///
    /// # Errors
    /// If a store of this format cannot be queried.
    pub fn store(&self, interface: Interface) -> Result<Store, WorkloadError> {
        let format = self.streams.first().map_or(Format::Columnar, |stream| stream.spec.format);
        match format {
            _ if interface == Interface::Own => Ok(Store::Arc),
            Format::Columnar | Format::Row => Ok(Store::Arc),
            // Arc takes the paths of InfluxDB, too.
            Format::InfluxLine if interface == Interface::Other && self.database_of_url().is_some() => {
                Ok(Store::InfluxDb)
            }
            Format::InfluxLine => Ok(Store::Arc),
            Format::RemoteWrite => Ok(Store::Prometheus),
            other => Err(WorkloadError::new(
                format!("a store has no query for its records of {}", other.name()),
                "leave out --verify, or send to `plimsoll target ingest`, which takes every format",
            )),
        }
    }

    /// The times that its records may have, if this many batches were sent until `now_s`. `since_s` is when
    /// the load began (both seconds since the epoch).
    pub fn window(&self, since_s: u64, now_s: u64, batches: u64) -> Window {
        // Times run ahead of the clock where batches last longer than it takes to send them.
        let longest = self.streams.iter().map(|stream| stream.paced().span()).max().unwrap_or(0);
        let ahead_s = longest.saturating_mul(batches) / 1_000_000_000 + AHEAD_S;
        let since_s = self.starts_ms().map_or(since_s, |start| start / 1_000);
        Window { since_s, until_s: now_s.max(since_s).saturating_add(ahead_s) }
    }

    /// The place in which the records of this load have to be found; `interface` as for
    /// [`store`](Self::store).
    ///
    /// # Errors
    /// As [`store`](Self::store), or a name that the store cannot be asked about.
    pub fn checks(&self, interface: Interface) -> Result<Vec<Check>, WorkloadError> {
        let store = self.store(interface)?;
        let own = interface == Interface::Own;
        let all = || self.streams.iter().flat_map(|stream| stream.spec.measurements());
        if let (Store::Arc, false, Some(name)) = (store, own, all().find(|name| name.contains('-'))) {
            return Err(WorkloadError::new(
                format!("Arc does not find `{name}` in SQL: only names without hyphens"),
                "take another --measurement, or leave out --verify",
            ));
        }
        let mut checks: Vec<Check> = Vec::new();
        for (number, stream) in self.streams.iter().enumerate() {
            let spec = &stream.spec;
            let table = |database: Option<String>, name: &str, id| Table {
                store,
                database,
                name: name.to_owned(),
                series: if store == Store::Prometheus { spec.metric_names() } else { Vec::new() },
                id,
            };
            let tables: Vec<Table> = match (store, place_of_own(spec.format, spec.kind)) {
                (Store::Arc, Some((database, name))) => {
                    let database = stream.database.as_deref().unwrap_or(database);
                    vec![table(Some(database.to_owned()), name, None)]
                }
                _ => {
                    let database = match store {
                        Store::Prometheus => None,
                        Store::Arc | Store::InfluxDb => {
                            let named = stream.database.clone().or_else(|| self.database_of_url());
                            Some(named.unwrap_or_else(|| "default".to_owned()))
                        }
                    };
                    // InfluxQL does not count distinct tags or texts of long runs in reasonable time.
                    let id = match (spec.kind, spec.shape) {
                        _ if store != Store::Arc => None,
                        (Kind::Logs, Shape::Seed) => Some("request_id"),
                        (Kind::Traces, Shape::Seed | Shape::Small) => Some("span_id"),
                        _ => None,
                    };
                    spec.measurements().into_iter().map(|name| table(database.clone(), name, id)).collect()
                }
            };
            match checks.iter_mut().find(|check| check.tables == tables) {
                Some(check) => check.streams.push(number),
                None => {
                    let name = tables.iter().map(Table::shown).collect::<Vec<_>>().join(", ");
                    checks.push(Check { name, streams: vec![number], tables });
                }
            }
        }
        Ok(checks)
    }

    /// The database in the query of the URL, as InfluxDB has it.
    pub fn database_of_url(&self) -> Option<String> {
        let (_, query) = self.url.split_once('?')?;
        let value = |pair: &str| match pair.split_once('=') {
            // A bucket of the compatible API is a database and a retention policy.
            Some(("db", value)) => Some(value.to_owned()),
            Some(("bucket", value)) => Some(value.split('/').next().unwrap_or(value).to_owned()),
            _ => None,
        };
        query.split('&').find_map(value).filter(|name| !name.is_empty())
    }
}

/// The place of records of foreign formats in our own store.
fn place_of_own(format: Format, kind: Kind) -> Option<(&'static str, &'static str)> {
    match (format, kind) {
        (Format::OtlpProtobuf, Kind::Metrics) => Some(("otlp", "metrics")),
        (Format::OtlpProtobuf, Kind::Traces) => Some(("otlp", "spans")),
        (Format::OtlpProtobuf, Kind::Logs | Kind::Events) => Some(("otlp", "logs")),
        (Format::RemoteWrite, _) => Some(("prometheus", "samples")),
        (Format::LokiPush, _) => Some(("loki", "entries")),
        (Format::ElasticBulk, _) => Some(("elasticsearch", "documents")),
        (Format::JsonLines, _) => Some(("jsonlines", "lines")),
        (Format::Columnar | Format::Row | Format::InfluxLine, _) => None,
    }
}

impl Check {
    /// The requests for the contents of the store, as steps of a plan. `window` has the times of the load;
    /// `ids` says whether duplicates are asked for.
    pub fn steps(&self, window: Window, ids: bool) -> Vec<Value> {
        self.tables.iter().map(|table| table.step(window, ids)).collect()
    }

    /// Sums up the answers to [`steps`](Self::steps), in their order: status and body.
    ///
    /// # Errors
    /// The store did not answer as expected; the error has its message.
    pub fn found(&self, answers: &[(u16, &[u8])]) -> Result<TableContents, String> {
        let mut all = TableContents::default();
        for (table, &(status, body)) in self.tables.iter().zip(answers) {
            all.add(table.found(status, body)?);
        }
        Ok(all)
    }
}

impl Table {
    fn shown(&self) -> String {
        match &self.database {
            Some(database) => format!("{database}.{}", self.name),
            None => self.name.clone(),
        }
    }

    fn step(&self, window: Window, ids: bool) -> Value {
        let Window { since_s, until_s } = window;
        let name = format!("count {}", self.shown());
        let database = self.database.as_deref().unwrap_or_default();
        match self.store {
            Store::Arc => json!({
                "name": name,
                "post": SQL,
                "headers": { "x-arc-database": database },
                "json": { "sql": self.sql(window, ids) },
            }),
            Store::InfluxDb => {
                let table = quoted(&self.name);
                // InfluxQL has neither OR between times nor their least and greatest.
                let query = [
                    format!("SELECT COUNT(*) FROM {table}"),
                    format!("SELECT COUNT(*) FROM {table} WHERE time < {since_s}s"),
                    format!("SELECT COUNT(*) FROM {table} WHERE time > {until_s}s"),
                    format!("SELECT * FROM {table} ORDER BY time ASC LIMIT 1"),
                    format!("SELECT * FROM {table} ORDER BY time DESC LIMIT 1"),
                ];
                let query = query.join("; ");
                let (database, query) = (in_query(database), in_query(&query));
                json!({ "name": name, "get": format!("/query?db={database}&epoch=ms&q={query}") })
            }
            Store::Prometheus => {
                let window = until_s.saturating_sub(since_s);
                // It cannot count several names at once: without their names, the series may be the same.
                let counts = self.series.iter().map(|name| {
                    format!("(sum(count_over_time({{__name__=\"{name}\"}}[{window}s])) or vector(0))")
                });
                let query = counts.collect::<Vec<_>>().join(" + ");
                json!({ "name": name, "get": format!("/api/v1/query?time={until_s}&query={}", in_query(&query)) })
            }
        }
    }

    /// All numbers in one row. Values of records of long ago may be null; these count as records.
    fn sql(&self, Window { since_s, until_s }: Window, ids: bool) -> String {
        let (since, until) = (since_s.saturating_mul(1_000), until_s.saturating_mul(1_000));
        let mut columns = vec![
            "COUNT(*)".to_owned(),
            format!("COUNT(CASE WHEN epoch_ms(time) NOT BETWEEN {since} AND {until} THEN 1 END)"),
            "epoch_ms(MIN(time))".to_owned(),
            "epoch_ms(MAX(time))".to_owned(),
        ];
        if let Some(id) = self.id.filter(|_| ids) {
            let recent = format!("CASE WHEN epoch_ms(time) >= {since} THEN {id} END");
            columns.push(format!("COUNT({recent}) - COUNT(DISTINCT {recent})"));
        }
        format!("SELECT {} FROM {}", columns.join(", "), quoted_if_needed(&self.name))
    }

    fn found(&self, status: u16, body: &[u8]) -> Result<TableContents, String> {
        let said = || String::from_utf8_lossy(body).trim().chars().take(300).collect::<String>();
        let refused = || format!("asked for {}, the store answered {status}: {}", self.shown(), said());
        if status != 200 && self.store == Store::Arc && said().contains(UNKNOWN_TABLE) {
            return Ok(TableContents::default());
        }
        if status != 200 {
            return Err(refused());
        }
        let told: Value = serde_json::from_slice(body).map_err(|_| refused())?;
        match self.store {
            Store::Arc => {
                let rows = told.pointer("/data").and_then(Value::as_array).ok_or_else(refused)?;
                // A table that is not there yet gives no row.
                let Some(row) = rows.first() else { return Ok(TableContents::default()) };
                let count = |column: usize| number(row.get(column)).ok_or_else(refused);
                let time = |column: usize| row.get(column).and_then(Value::as_i64);
                Ok(TableContents {
                    records: count(0)?,
                    misdated: Some(count(1)?),
                    times_ms: time(2).zip(time(3)),
                    duplicates: row.get(4).map(|_| count(4)).transpose()?,
                })
            }
            Store::InfluxDb => {
                let result = |number: usize| {
                    let result = told.pointer(&format!("/results/{number}"));
                    result.filter(|result| result.get("error").is_none()).ok_or_else(refused)
                };
                // One column for each field, after the time.
                let row = |number: usize| {
                    let row =
                        |result: &Value| Some(result.pointer("/series/0/values/0")?.as_array()?.clone());
                    result(number).map(|result| row(result).unwrap_or_default())
                };
                let count = |number: usize| {
                    let counts = row(number)?.into_iter().skip(1);
                    Ok::<u64, String>(counts.filter_map(|count| count.as_u64()).max().unwrap_or(0))
                };
                let time = |number: usize| row(number).map(|row| row.first().and_then(Value::as_i64));
                Ok(TableContents {
                    records: count(0)?,
                    misdated: Some(count(1)? + count(2)?),
                    times_ms: time(3)?.zip(time(4)?),
                    duplicates: None,
                })
            }
            Store::Prometheus => {
                let result = told.pointer("/data/result").and_then(Value::as_array).ok_or_else(refused)?;
                let count = result.first().and_then(|sample| sample.pointer("/value/1"));
                // It counts only records within the window: those at other times are missing.
                Ok(TableContents { records: number(count).ok_or_else(refused)?, ..TableContents::default() })
            }
        }
    }
}

/// A count, which may be a text; `None` if it is missing.
fn number(value: Option<&Value>) -> Option<u64> {
    match value {
        None | Some(Value::Null) => Some(0),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A name of letters, digits and underscores stays as it is: Arc knows its tables by it.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Percent-encoded for a query.
fn in_query(text: &str) -> impl fmt::Display {
    /// Everything but the unreserved characters of RFC 3986.
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests;
