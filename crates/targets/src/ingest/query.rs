//! SQL over the visible rows: a fresh SQLite in memory for every query, in which the databases that the query
//! names are attached, and every measurement is a view.
//!
//! No row is copied. The view of a measurement is a series of row numbers with one call of a function for
//! each column that is asked for, which looks the value up in the columns as they came. SQLite skips columns
//! that are not needed, so that a count is a walk over numbers; that of a whole measurement is known.

mod functions;
mod source;
mod words;

use std::sync::Arc;

use plimsoll_core::Nanos;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, Statement};

use rusqlite::limits::Limit;

use super::column::Cell;
use super::store::{Acknowledged, Store, Table};
use source::Source;
use words::{Statements, Words};

/// The database of acknowledged rows.
pub(crate) const OWN_DATABASE: &str = "plimsoll";
/// SQLite's instructions between two checks of whether to go on: some tenths of a millisecond.
const INSTRUCTIONS: i32 = 10_000;
/// The most bytes of a query.
pub(crate) const LONGEST_SQL: usize = 1 << 20;
/// The most bytes of a result.
const MOST_BYTES: usize = 64 << 20;
/// The most bytes of one value, and of one row while it is sorted: the size of the longest payload.
const LONGEST_VALUE: i32 = 16 << 20;
/// The most bytes of a pattern of LIKE and GLOB, which are matched without a look at the time.
const LONGEST_PATTERN: i32 = 256;
/// Memory limit of SQLite for all queries of this process together, in bytes: rows that are sorted or
/// grouped.
const SQLITE_BYTES: u64 = 512 << 20;

/// Error for a time to which a number is added. The real server refuses it as well.
const NO_SUM: &str = "Binder Error: a number cannot be added to a time: write epoch_ms(e.time) + 300000, \
                      which this target and Arc take, or for Arc alone e.time + INTERVAL 5 MINUTE";

/// Beginning of the error for an unknown table, in DuckDB's words.
const UNKNOWN_TABLE: &str = "Catalog Error: Table with name";
/// Tables that are named in place of an unknown one.
const MOST_NAMED: usize = 12;

/// The result of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryResult {
    /// The names of the columns, and
    pub(crate) columns: Vec<String>,
    /// the rows, as JSON: `[[1,"a"],[2,"b"]]`.
    pub(crate) data: String,
    pub(crate) rows: u64,
    /// Rows of the measurements that were examined whose values are forgotten: they were counted, and every
    /// value of theirs was null.
    pub(crate) forgotten: u64,
}

/// Reason why a query was not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The query would change something.
    Dangerous,
    /// The query is more than one statement.
    Multiple,
    /// The query is wrong, or took too long; with the message.
    Failed(String),
}

/// Runs a query; measurements without a database are looked for in `database`. `goes_on` is asked now and
/// then whether to.
pub(crate) fn run(
    store: &Store,
    sql: &str,
    database: &str,
    now: Nanos,
    mut goes_on: impl FnMut() -> bool + Send + 'static,
) -> Result<QueryResult, Refused> {
    let words = Words::of(sql);
    match words.statements() {
        Statements::One => {}
        Statements::Several => return Err(Refused::Multiple),
        Statements::Dangerous => return Err(Refused::Dangerous),
    }
    if words.adds_to_a_time() {
        return Err(Refused::Failed(NO_SUM.to_owned()));
    }
    if let Some(found) = whole_count(store, &words, database, now) {
        return Ok(found);
    }
    if let Some(found) = whole_times(store, &words, database, now) {
        return Ok(found);
    }
    let is_named = |of: &str, name: &str| words.names(name) && (of == database || words.names(of));
    let tables = store.tables(is_named, now);
    let acknowledged = words.names(OWN_DATABASE).then(|| store.acknowledged(now));
    let sql = words::with_quantiles(&words.quoted(sql));
    let forgotten = tables.iter().map(|table| table.rows - table.kept).sum();
    let failed = |error: Error| Refused::Failed(told(&error));
    let mut sqlite = Connection::open_in_memory().map_err(failed)?;
    prepare(&sqlite, tables, acknowledged.as_deref(), database).map_err(failed)?;
    sqlite.progress_handler(INSTRUCTIONS, Some(move || !goes_on())).map_err(failed)?;
    // After the views, whose text is ours.
    sqlite.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE).map_err(failed)?;
    sqlite.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN).map_err(failed)?;
    let found = match sqlite.prepare(&sql) {
        Ok(statement) if !statement.readonly() => Err(Refused::Dangerous),
        Ok(statement) => read(statement),
        Err(error) if error.to_string().contains("no such table:") => {
            unknown_table(store, &error, database, now)
        }
        Err(Error::MultipleStatement) => Err(Refused::Multiple),
        Err(error) => Err(failed(error)),
    };
    found.map(|found| QueryResult { forgotten, ..found })
}

/// The result of a query for a table that shows no row. The real server finds no files for it, and returns
/// nothing; so does this one for rows that are not visible yet, and as long as there is no table at all.
/// Otherwise the name is a mistake.
fn unknown_table(store: &Store, error: &Error, database: &str, now: Nanos) -> Result<QueryResult, Refused> {
    let text = told(error);
    let named = text.rsplit("no such table: ").next().unwrap_or_default();
    let named = named.split(' ').next().unwrap_or_default();
    let (of, table) = named.rsplit_once('.').unwrap_or((database, named));
    let there = store.acknowledged(now);
    let is_same = |known: &str, name: &str| known.eq_ignore_ascii_case(name);
    if there.is_empty()
        || there.iter().any(|one| is_same(&one.database, of) && is_same(&one.measurement, table))
    {
        return Ok(QueryResult { data: "[]".to_owned(), ..QueryResult::default() });
    }
    let (mut names, others): (Vec<_>, Vec<_>) =
        there.iter().partition(|one| is_same(&one.measurement, table) || is_same(&one.database, of));
    names.extend(others);
    let more = names.len().saturating_sub(MOST_NAMED);
    let mut list: Vec<String> = names.iter().take(MOST_NAMED).map(|one| full_name(one)).collect();
    list.extend((more > 0).then(|| format!("and {more} more")));
    Err(Refused::Failed(format!(
        "{UNKNOWN_TABLE} {table} does not exist in the database {of}: there is {}",
        list.join(", ")
    )))
}

/// A table with its database, as it stands in SQL.
fn full_name(table: &Acknowledged) -> String {
    format!("{}.{}", table.database, table.measurement)
}

/// The number of all rows of a measurement, if that is all that is asked for and there is such a measurement.
fn whole_count(store: &Store, words: &Words, database: &str, now: Nanos) -> Option<QueryResult> {
    let (column, named, measurement) = words.whole_count()?;
    let (rows, forgotten) = store.rows(named.unwrap_or(database), measurement, now)?;
    Some(QueryResult { columns: vec![column], data: format!("[[{rows}]]"), rows: 1, forgotten })
}

/// The number of all rows of a measurement and the range of their times, if the query asks for nothing else
/// and there is such a measurement. Rows whose values are forgotten have no time.
fn whole_times(store: &Store, words: &Words, database: &str, now: Nanos) -> Option<QueryResult> {
    let (named, measurement, [since, until]) = words.whole_times()?;
    let database = named.unwrap_or(database);
    let table = store.tables(|of, name| of == database && name == measurement, now).pop()?;
    let (mut outside, mut times) = (0_u64, None);
    for chunk in &table.chunks {
        let Some((_, column)) = chunk.columns.iter().find(|(name, _)| &**name == "time") else { continue };
        for row in 0..chunk.rows {
            let Cell::Time(micros) = column.get(row) else { continue };
            let ms = micros.div_euclid(1_000);
            outside += u64::from(!(since..=until).contains(&ms));
            let (least, greatest) = times.unwrap_or((ms, ms));
            times = Some((ms.min(least), ms.max(greatest)));
        }
    }
    let [least, greatest] = times.map_or([None; 2], |(least, greatest)| [Some(least), Some(greatest)]);
    Some(QueryResult {
        columns: ["rows", "outside", "least", "greatest"].map(str::to_owned).to_vec(),
        data: serde_json::json!([[table.rows, outside, least, greatest]]).to_string(),
        rows: 1,
        forgotten: table.rows - table.kept,
    })
}

/// Attaches the databases, that without a name first, and makes the views.
fn prepare(
    sqlite: &Connection,
    tables: Vec<Table>,
    acknowledged: Option<&[Acknowledged]>,
    first: &str,
) -> Result<(), Error> {
    sqlite.execute_batch("PRAGMA temp_store = MEMORY")?;
    // It is that of the process. SQLite has no limit for one connection.
    sqlite.query_row(&format!("PRAGMA hard_heap_limit = {SQLITE_BYTES}"), [], |_| Ok(()))?;
    rusqlite::vtab::series::load_module(sqlite)?;
    let source = Arc::new(Source::new(tables));
    functions::register(sqlite, &source)?;
    let mut attached: Vec<&str> = Vec::new();
    let attach = |database: &str| match database {
        // These two always exist.
        "main" | "temp" => Ok(()),
        _ => sqlite.execute("ATTACH ':memory:' AS ?1", [database]).map(drop),
    };
    let databases = source.databases();
    let in_order = databases.iter().filter(|name| **name == first);
    for database in in_order.chain(databases.iter().filter(|name| **name != first)) {
        attach(database)?;
        attached.push(database);
    }
    if let Some(acknowledged) = acknowledged {
        if !attached.contains(&OWN_DATABASE) {
            attach(OWN_DATABASE)?;
        }
        tell(sqlite, acknowledged)?;
    }
    for view in source.views() {
        sqlite.execute_batch(&view)?;
    }
    Ok(())
}

/// The table of acknowledged rows.
fn tell(sqlite: &Connection, acknowledged: &[Acknowledged]) -> Result<(), Error> {
    sqlite.execute_batch(
        "CREATE TABLE plimsoll.acknowledged (\"database\" TEXT, measurement TEXT, batches INT, rows INT, \
         visible INT, buffered INT, kept INT, lost INT, duplicated INT, late INT, unacknowledged INT)",
    )?;
    let mut insert = sqlite.prepare("INSERT INTO plimsoll.acknowledged VALUES (?,?,?,?,?,?,?,?,?,?,?)")?;
    for of in acknowledged {
        let counts = [
            of.batches,
            of.rows,
            of.visible,
            of.buffered,
            of.kept,
            of.lost,
            of.duplicated,
            of.late,
            of.unacknowledged,
        ];
        insert.raw_bind_parameter(1, &of.database)?;
        insert.raw_bind_parameter(2, &of.measurement)?;
        for (place, count) in counts.iter().enumerate() {
            insert.raw_bind_parameter(place + 3, *count as i64)?;
        }
        insert.raw_execute()?;
    }
    Ok(())
}

/// Reads all rows.
fn read(mut statement: Statement<'_>) -> Result<QueryResult, Refused> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let (mut data, mut count) = ("[".to_owned(), 0);
    let failed = |error: Error| Refused::Failed(told(&error));
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        data.push_str(if count == 0 { "[" } else { ",[" });
        for column in 0..columns.len() {
            if column > 0 {
                data.push(',');
            }
            write_value(&mut data, row.get_ref(column).map_err(failed)?);
        }
        data.push(']');
        count += 1;
        if data.len() > MOST_BYTES {
            return Err(Refused::Failed("the result is too large for this target: ask for less".to_owned()));
        }
    }
    data.push(']');
    Ok(QueryResult { columns, data, rows: count, forgotten: 0 })
}

/// A value as JSON; numbers as the real server writes them: 3.0 is `3`.
fn write_value(out: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.push_str("null"),
        ValueRef::Integer(int) => out.push_str(&int.to_string()),
        // JSON has no number for infinity and NaN.
        ValueRef::Real(float) if !float.is_finite() => out.push_str("null"),
        ValueRef::Real(float) => out.push_str(&float.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            out.push_str(&serde_json::Value::from(String::from_utf8_lossy(text)).to_string());
        }
    }
}

/// Returns SQLite's message. A word before it names the kind of the error, as the real server does.
fn told(error: &Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            return "the query was interrupted: this target gives a query 30 s, and ends it when it is stopped"
                .to_owned();
        }
        Some(ErrorCode::OutOfMemory) => {
            return format!(
                "Out of Memory Error: the queries of this target take at most {} MiB together: sort, group or \
                 join less",
                SQLITE_BYTES >> 20
            );
        }
        Some(ErrorCode::TooBig) => {
            return format!(
                "Out of Memory Error: a value or a row of this target has at most {} MiB",
                LONGEST_VALUE >> 20
            );
        }
        _ => {}
    }
    let text = match error {
        Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        other => other.to_string(),
    };
    if text.contains("syntax error")
        || text.contains("incomplete input")
        || text.contains("unrecognized token")
    {
        format!("Parser Error: {text}")
    } else if text.contains("no such") || text.contains("ambiguous") {
        format!("Binder Error: {text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
