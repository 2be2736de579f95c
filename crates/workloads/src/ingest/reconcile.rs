//! Whether a store has the records that it acknowledged: what it is asked, and what its answers say.

use plimsoll_synth::{Format, Kind, Shape};
use serde_json::{Value, json};

use super::IngestLoad;
use crate::WorkloadError;

/// The store of Arc's API that also says what it has acknowledged: it takes the formats of other stores, too.
pub const OWN_STORE: &str = "/plimsoll/acknowledged";
/// Where it and Arc take SQL.
pub(super) const SQL: &str = "/api/v1/query";
/// Where they are told to show what they have.
const FLUSH: &str = "/api/v1/write/line-protocol/flush";
/// Seconds that times of records may be ahead of ours: they may run ahead of the clock.
const AHEAD_S: u64 = 3_600;

/// How a store is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Arc, or our own: SQL, over HTTP.
    Arc,
    /// InfluxDB 1, or a newer one with its compatible query API: InfluxQL.
    InfluxDb,
    /// Prometheus, or whatever has its query API: PromQL.
    Prometheus,
}

impl Store {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arc => "arc",
            Self::InfluxDb => "influxdb",
            Self::Prometheus => "prometheus",
        }
    }

    /// The request that makes it show what it has, as a step of a plan; `None` if it always does. Whether it
    /// succeeds is no matter: such a store shows it after a while, too.
    pub fn flush(self) -> Option<Value> {
        (self == Self::Arc).then(|| json!({ "name": "flush", "post": FLUSH }))
    }
}

/// What one part of a load has to be found in.
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
    /// What its series are called, where the store has no tables.
    series: Vec<String>,
    /// A column that has another value in every record.
    id: Option<&'static str>,
}

/// What a table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Records.
    pub records: u64,
    /// Of those since the beginning, records with an id that another one has, too; `None` where records have
    /// none.
    pub duplicates: Option<u64>,
}

impl IngestLoad {
    /// How the store of this load is asked; `own` says whether it answers for [`OWN_STORE`].
    ///
    /// # Errors
    /// If a store of this format cannot be asked.
    pub fn store(&self, own: bool) -> Result<Store, WorkloadError> {
        let format = self.streams.first().map_or(Format::Columnar, |stream| stream.spec.format);
        match format {
            _ if own => Ok(Store::Arc),
            Format::Columnar | Format::Row => Ok(Store::Arc),
            Format::InfluxLine if self.database_of_url().is_some() => Ok(Store::InfluxDb),
            Format::InfluxLine => Ok(Store::Arc),
            Format::RemoteWrite => Ok(Store::Prometheus),
            other => Err(WorkloadError::new(
                format!("what a store has of {} cannot be asked for", other.name()),
                "leave --verify away, or send to `plimsoll target ingest`, which takes every format",
            )),
        }
    }

    /// Where the records of this load have to be found; `own` as for [`store`](Self::store).
    ///
    /// # Errors
    /// As [`store`](Self::store), or a name that the store cannot be asked about.
    pub fn checks(&self, own: bool) -> Result<Vec<Check>, WorkloadError> {
        let store = self.store(own)?;
        let all = || self.streams.iter().flat_map(|stream| stream.spec.measurements());
        if let (Store::Arc, false, Some(name)) = (store, own, all().find(|name| name.contains('-'))) {
            return Err(WorkloadError::new(
                format!("Arc does not find `{name}` in SQL: only names without hyphens"),
                "take another --measurement, or leave --verify away",
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
                    let database = self.database.as_deref().unwrap_or(database);
                    vec![table(Some(database.to_owned()), name, None)]
                }
                _ => {
                    let database = match store {
                        Store::Prometheus => None,
                        Store::Arc | Store::InfluxDb => {
                            let named = self.database.clone().or_else(|| self.database_of_url());
                            Some(named.unwrap_or_else(|| "default".to_owned()))
                        }
                    };
                    // InfluxQL counts no different tags or texts of long runs in a time worth waiting for.
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
    fn database_of_url(&self) -> Option<String> {
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

/// Where our own store has records of the formats of others.
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
    /// The requests that ask for what there is, as steps of a plan. `since_s` is when the load began, `now_s`
    /// the time now (seconds since the epoch). `ids` says whether duplicates are asked for.
    pub fn steps(&self, since_s: u64, now_s: u64, ids: bool) -> Vec<Value> {
        self.tables.iter().map(|table| table.step(since_s, now_s, ids)).collect()
    }

    /// What the answers to [`steps`](Self::steps), in their order, come to: status and body.
    ///
    /// # Errors
    /// What the store said instead.
    pub fn found(&self, answers: &[(u16, &[u8])]) -> Result<Found, String> {
        let mut all = Found::default();
        for (table, &(status, body)) in self.tables.iter().zip(answers) {
            let found = table.found(status, body)?;
            all.records += found.records;
            if let Some(duplicates) = found.duplicates {
                *all.duplicates.get_or_insert(0) += duplicates;
            }
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

    fn step(&self, since_s: u64, now_s: u64, ids: bool) -> Value {
        let name = format!("count {}", self.shown());
        let database = self.database.as_deref().unwrap_or_default();
        match self.store {
            Store::Arc => json!({
                "name": name,
                "post": SQL,
                "headers": { "x-arc-database": database },
                "json": { "sql": self.sql(since_s, ids) },
            }),
            Store::InfluxDb => {
                let query = format!("SELECT COUNT(*) FROM {}", quoted(&self.name));
                let path = format!("/query?db={}&q={}", escaped(database), escaped(&query));
                json!({ "name": name, "get": path })
            }
            Store::Prometheus => {
                let until = now_s + AHEAD_S;
                let window = until - since_s.min(now_s);
                // Of several names at once it cannot count: what is left of their series may be the same.
                let counts = self.series.iter().map(|name| {
                    format!("(sum(count_over_time({{__name__=\"{name}\"}}[{window}s])) or vector(0))")
                });
                let query = counts.collect::<Vec<_>>().join(" + ");
                json!({ "name": name, "get": format!("/api/v1/query?time={until}&query={}", escaped(&query)) })
            }
        }
    }

    /// Both numbers in one row. Values of records of long ago may be null; these count as records.
    fn sql(&self, since_s: u64, ids: bool) -> String {
        let table = quoted_if_needed(&self.name);
        match self.id.filter(|_| ids) {
            None => format!("SELECT COUNT(*) FROM {table}"),
            Some(id) => format!(
                "SELECT COUNT(*), \
                 COUNT(CASE WHEN epoch_ms(time) >= {since} THEN {id} END) \
                 - COUNT(DISTINCT CASE WHEN epoch_ms(time) >= {since} THEN {id} END) FROM {table}",
                since = since_s * 1_000
            ),
        }
    }

    fn found(&self, status: u16, body: &[u8]) -> Result<Found, String> {
        let said = || String::from_utf8_lossy(body).trim().chars().take(300).collect::<String>();
        let refused = || format!("asked for {}, the store answered {status}: {}", self.shown(), said());
        if status != 200 {
            return Err(refused());
        }
        let told: Value = serde_json::from_slice(body).map_err(|_| refused())?;
        let (records, duplicates) = match self.store {
            // What is not there yet is no row.
            Store::Arc => {
                let row = told.pointer("/data").and_then(Value::as_array).ok_or_else(refused)?.first();
                (row.map(|row| &row[0]), row.and_then(|row| row.get(1)))
            }
            Store::InfluxDb => {
                // One column for each field, after the time.
                let results = told.pointer("/results/0").filter(|result| result.get("error").is_none());
                let row =
                    results.ok_or_else(refused)?.pointer("/series/0/values/0").and_then(Value::as_array);
                let counts = row.into_iter().flatten().skip(1);
                (counts.max_by_key(|count| count.as_u64()), None)
            }
            Store::Prometheus => {
                let result = told.pointer("/data/result").and_then(Value::as_array).ok_or_else(refused)?;
                (result.first().and_then(|sample| sample.pointer("/value/1")), None)
            }
        };
        let number = |value: Option<&Value>| match value {
            None | Some(Value::Null) => Some(0),
            Some(Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64(),
        };
        Ok(Found {
            records: number(records).ok_or_else(refused)?,
            duplicates: duplicates.map(|value| number(Some(value)).ok_or_else(refused)).transpose()?,
        })
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
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests;
