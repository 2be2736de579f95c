//! Looking for runs, and reading them.

use plimsoll_core::Nanos;
use plimsoll_metrics::Slice;
use plimsoll_report::saved::{Cut, PartKind, tallies_from_bytes};
use plimsoll_report::{SavedRun, Searched};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row as SqlRow, params, params_from_iter};

use crate::{Store, StoreError, Tag};

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The run goes on.
    Running,
    /// The run came to its end, planned or not.
    Finished,
    /// The process of the run ended before the run did.
    Killed,
}

impl State {
    /// Returns the name of the state in the store and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Killed => "killed",
        }
    }
}

/// What was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A run.
    Run,
    /// A search for a capacity.
    Search,
    /// A sweep over the levels of a setting.
    Sweep,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Run, Self::Search, Self::Sweep];

    /// Returns the name of the kind in the store and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Search => "search",
            Self::Sweep => "sweep",
        }
    }
}

/// One run in a list. Its figures are those of its result; `None` where it has none yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the run in this store, by which it is read and removed.
    pub number: i64,
    /// Id of the run, which no other run has.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Name of the run.
    pub name: Option<String>,
    /// Tags of the run, by their words.
    pub tags: Vec<Tag>,
    /// Progress of the run.
    pub state: State,
    /// When it began: RFC 3339, UTC.
    pub started_at: String,
    /// When it began: Unix time in nanoseconds.
    pub started_unix_ns: u64,
    /// Hash of the resolved plan.
    pub plan_hash: String,
    /// `open` or `closed`.
    pub model: String,
    /// First URL of the run.
    pub target: String,
    /// Length of the measured part in seconds.
    pub duration_s: Option<f64>,
    /// Iterations per second that were asked for, in the open model.
    pub target_per_s: Option<f64>,
    /// Whole responses per second.
    pub achieved_per_s: Option<f64>,
    /// Requests that were started.
    pub started: Option<u64>,
    /// Requests that failed or timed out.
    pub errors: Option<u64>,
    /// Which time p50 and p99 are of: `response_time` in the open model, `service_time` in the closed one.
    pub time: &'static str,
    /// Median in nanoseconds.
    pub p50_ns: Option<u64>,
    /// Percentile 99 in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Keys of figures of that time that are only lower bounds, as in `at_least` of its result: `50`, `99`.
    pub at_least: Vec<String>,
    /// `true` if its measurement is valid.
    pub valid: Option<bool>,
    /// Codes of the reasons why not.
    pub invalid_reasons: Vec<String>,
    /// `pass`, `fail` or `none`.
    pub thresholds: Option<String>,
    /// Outcome of the run: `pass`, `fail`, `done` or `no_verdict`; `None` for runs of earlier versions.
    pub outcome: Option<String>,
    /// `true` if a threshold, a signal or somebody who steered it ended it before its time.
    pub stopped_early: bool,
    /// The answer of a search or a sweep in a few words.
    pub answer: Option<String>,
}

impl Row {
    /// Returns `true` if this percentile of its time is only a lower bound: `50`, `99`.
    pub fn is_at_least(&self, percentile: &str) -> bool {
        self.at_least.iter().any(|known| known == percentile)
    }
}

/// Which runs are meant. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this name.
    pub name: Option<String>,
    /// With all of these tags; one without a value stands for any.
    pub tags: Vec<Tag>,
    /// Begun at this Unix time in nanoseconds, or later.
    pub since_unix_ns: Option<u64>,
    /// Begun before this Unix time in nanoseconds.
    pub before_unix_ns: Option<u64>,
    /// Maximum number of runs, the latest ones.
    pub limit: Option<u64>,
}

pub(crate) const COLUMNS: &str = "number, id, kind, name, state, started_at, started_unix_ns, plan_hash, model, target, duration_s, \
    target_per_s, achieved_per_s, started, failed + timed_out AS errors, \
    iif(model = 'open', response_time_p50_ns, service_time_p50_ns) AS p50_ns, \
    iif(model = 'open', response_time_p99_ns, service_time_p99_ns) AS p99_ns, \
    iif(model = 'open', result -> '$.response_time.at_least', result -> '$.service_time.at_least') \
    AS at_least, valid, invalid_reasons, \
    thresholds, coalesce(result ->> '$.verdict.outcome', outcome) AS outcome, answer, \
    coalesce(result ->> '$.run.ended_by_threshold', result ->> '$.run.interrupted_by_signal', \
    result ->> '$.run.stopped_by') IS NOT NULL AS stopped_early";

/// Which of several runs is the latest: two may have begun within one nanosecond.
pub(crate) const LATEST_FIRST: &str = "ORDER BY started_unix_ns DESC, number DESC";

impl Store {
    /// The runs that a filter lets through, the latest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let (mut conditions, mut values) = (vec!["TRUE".to_owned()], Vec::<Value>::new());
        if let Some(name) = &filter.name {
            conditions.push("name = ?".to_owned());
            values.push(name.clone().into());
        }
        for Tag { name, value } in &filter.tags {
            let of_value = if value.is_empty() { "" } else { " AND value = ?" };
            conditions.push(format!("EXISTS (SELECT 1 FROM tags WHERE run = number AND tag = ?{of_value})"));
            values.push(name.clone().into());
            values.extend((!value.is_empty()).then(|| value.clone().into()));
        }
        for (sign, limit) in [(">=", filter.since_unix_ns), ("<", filter.before_unix_ns)] {
            if let Some(limit) = limit {
                conditions.push(format!("started_unix_ns {sign} ?"));
                values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
            }
        }
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let conditions = conditions.join(" AND ");
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE {conditions} {LATEST_FIRST} LIMIT {limit}");
        self.rows(&sql, values).map_err(|error| self.failed(error))
    }

    /// The run before which `back` others are the latest: 0 for the latest one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn latest(&self, back: u64) -> Result<Option<Row>, StoreError> {
        let back = i64::try_from(back).unwrap_or(i64::MAX);
        let sql = format!("SELECT {COLUMNS} FROM runs {LATEST_FIRST} LIMIT 1 OFFSET ?");
        let rows = self.rows(&sql, vec![back.into()]).map_err(|error| self.failed(error))?;
        Ok(rows.into_iter().next())
    }

    /// The runs whose id begins like that, the latest first. One that is that id is the only one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn by_id(&self, begin: &str) -> Result<Vec<Row>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE substr(id, 1, length(?1)) = ?1 {LATEST_FIRST}");
        let mut rows = self.rows(&sql, vec![begin.to_owned().into()]).map_err(|error| self.failed(error))?;
        if rows.iter().any(|row| row.id == begin) {
            rows.retain(|row| row.id == begin);
        }
        Ok(rows)
    }

    /// The values of a tag that begin like that, in their order; of several runs with one value it is there
    /// once.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn values_of(&self, tag: &str, begin: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT value FROM tags WHERE tag = ?1 AND substr(value, 1, length(?2)) = ?2 \
                   ORDER BY value";
        let read = || {
            let mut statement = self.db.prepare(sql)?;
            let values = statement.query_map([tag, begin], |row| row.get(0))?;
            values.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// Reads a run that is over, by its number; `None` if it is not there, or goes on.
    ///
    /// # Errors
    /// If the store or the run cannot be read.
    pub fn read(&self, number: i64) -> Result<Option<SavedRun>, StoreError> {
        let sql = "SELECT id, saved FROM runs WHERE number = ?1 AND saved IS NOT NULL";
        let found =
            self.db.query_row(sql, [number], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)));
        let found = found.optional().map_err(|error| self.failed(error))?;
        if let (None, Some(beginning)) = (&found, self.gone.get(&number)) {
            return self.unfinished(number, beginning, Cut::Killed);
        }
        let read = |(id, saved): (String, Vec<u8>)| {
            SavedRun::from_bytes(&saved).map_err(|reason| StoreError::of_run(&id, reason))
        };
        found.map(read).transpose()
    }

    /// Reads a search or a sweep, by its number; `None` if it is not there, or a run.
    ///
    /// # Errors
    /// If the store or the result cannot be read.
    pub fn read_search(&self, number: i64) -> Result<Option<Searched>, StoreError> {
        let sql = "SELECT id, result FROM runs WHERE number = ?1 AND kind != 'run' AND result IS NOT NULL";
        let found =
            self.db.query_row(sql, [number], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
        let found = found.optional().map_err(|error| self.failed(error))?;
        let Some((id, result)) = found else { return Ok(None) };
        Searched::from_json(result.as_bytes()).map_err(|reason| StoreError::of_run(&id, reason))
    }

    pub(crate) fn rows(&self, sql: &str, values: Vec<Value>) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.db.prepare(sql)?;
        let rows =
            statement.query_map(params_from_iter(values), row)?.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut tags = self.db.prepare("SELECT tag, value FROM tags WHERE run = ?1 ORDER BY tag")?;
        let settled = |row: Row| match row.state {
            State::Running if self.gone.contains_key(&row.number) => Row {
                state: State::Killed,
                valid: Some(false),
                invalid_reasons: vec!["unfinished".to_owned()],
                ..row
            },
            _ => row,
        };
        let with_tags = |row: Row| {
            let tags =
                tags.query_map([row.number], |tag| Ok(Tag { name: tag.get(0)?, value: tag.get(1)? }))?;
            Ok(Row { tags: tags.collect::<rusqlite::Result<_>>()?, ..row })
        };
        rows.into_iter().map(settled).map(with_tags).collect()
    }
}

/// The progress that the store has a word for. The table holds no other one.
pub(crate) fn state_of(name: &str) -> State {
    let states = [State::Running, State::Finished, State::Killed];
    states.into_iter().find(|known| known.name() == name).unwrap_or(State::Killed)
}

/// A row without its tags.
fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let unsigned = |column: &str| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
    };
    let model: String = row.get("model")?;
    let reasons: Option<String> = row.get("invalid_reasons")?;
    let at_least: Option<String> = row.get("at_least")?;
    let state: String = row.get("state")?;
    let kind: String = row.get("kind")?;
    Ok(Row {
        number: row.get("number")?,
        id: row.get("id")?,
        // The table holds no other one.
        kind: kind_of(&kind),
        name: row.get("name")?,
        tags: Vec::new(),
        state: state_of(&state),
        started_at: row.get("started_at")?,
        started_unix_ns: unsigned("started_unix_ns")?.unwrap_or(0),
        plan_hash: row.get("plan_hash")?,
        time: if model == "open" { "response_time" } else { "service_time" },
        model,
        target: row.get("target")?,
        duration_s: row.get("duration_s")?,
        target_per_s: row.get("target_per_s")?,
        achieved_per_s: row.get("achieved_per_s")?,
        started: unsigned("started")?,
        errors: unsigned("errors")?,
        p50_ns: unsigned("p50_ns")?,
        p99_ns: unsigned("p99_ns")?,
        // Results without bounds have no such member.
        at_least: at_least.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        valid: row.get("valid")?,
        invalid_reasons: reasons.unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        thresholds: row.get("thresholds")?,
        outcome: row.get("outcome")?,
        stopped_early: row.get("stopped_early")?,
        answer: row.get("answer")?,
    })
}

pub(crate) fn kind_of(name: &str) -> Kind {
    Kind::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Kind::Run)
}

/// The number of a kind of parts in the store.
pub(crate) const fn kind_number(kind: PartKind) -> usize {
    kind as usize
}

/// The parts of one kind of a run under way, in their order.
pub(crate) fn parts_of(db: &Connection, run: i64, kind: PartKind) -> rusqlite::Result<Vec<Slice>> {
    let sql = "SELECT at_ns, length_ns, tallies FROM parts WHERE run = ?1 AND kind = ?2 ORDER BY number";
    let mut statement = db.prepare(sql)?;
    let part = |row: &SqlRow<'_>| {
        let span = |column| row.get::<_, i64>(column).map(|ns| Nanos(ns.cast_unsigned()));
        let damaged = |error| {
            rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Blob, Box::new(error))
        };
        let steps = tallies_from_bytes(&row.get::<_, Vec<u8>>(2)?).map_err(damaged)?;
        Ok(Slice { at: span(0)?, length: span(1)?, steps, ..Slice::default() })
    };
    statement.query_map(params![run, kind_number(kind) as i64], part)?.collect()
}
