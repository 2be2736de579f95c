//! Functions that queries have: those by which views read, and those of DuckDB that correlations need.

use std::sync::Arc;

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

use super::super::column::Cell;
use super::super::time;
use super::source::Source;

/// Always the same for the same arguments, and allowed in views.
const PURE: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

pub(crate) fn register(sqlite: &Connection, source: &Arc<Source>) -> Result<()> {
    let source = Arc::clone(source);
    sqlite.create_scalar_function("plimsoll_cell", 3, PURE, move |context| {
        let number =
            |place: usize| context.get_raw(place).as_i64().ok().and_then(|number| u64::try_from(number).ok());
        let (Some(table), Some(column), Some(row)) = (number(0), number(1), number(2)) else {
            return Ok(Value::Null);
        };
        Ok(source.cell(table as usize, column as usize, row).map_or(Value::Null, shown))
    })?;
    sqlite.create_scalar_function("epoch_ms", 1, PURE, |context| instant(context, 1000))?;
    sqlite.create_scalar_function("epoch_us", 1, PURE, |context| instant(context, 1))?;
    sqlite.create_aggregate_function(
        "quantile_cont",
        2,
        PURE,
        Quantile { fixed: None, most: MOST_NUMBERS },
    )?;
    sqlite.create_aggregate_function("median", 1, PURE, Quantile { fixed: Some(0.5), most: MOST_NUMBERS })
}

/// A value as SQLite has it. It has no truth values: they are 1 and 0.
fn shown((cell, as_text): (Cell<'_>, bool)) -> Value {
    if as_text {
        return cell.text().map_or(Value::Null, |text| Value::Text(text.into_owned()));
    }
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(bool) => Value::Integer(i64::from(bool)),
        Cell::Int(int) => Value::Integer(int),
        Cell::Float(float) => Value::Real(float),
        Cell::Text(text) => Value::Text(text.to_owned()),
        Cell::Time(micros) => Value::Text(time::written(micros)),
    }
}

/// DuckDB's `epoch_ms` and `epoch_us`: the number of an instant, or the instant of a number, at this many
/// microseconds each.
fn instant(context: &Context<'_>, micros_each: i64) -> Result<Value> {
    let user_error = |text: String| Error::UserFunctionError(text.into());
    match context.get_raw(0) {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Text(time::written(number.saturating_mul(micros_each)))),
        ValueRef::Real(number) => Ok(Value::Text(time::written((number * micros_each as f64) as i64))),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            let micros =
                time::parsed(&text).ok_or_else(|| user_error(format!("`{text}` is not an instant")))?;
            Ok(Value::Integer(micros.div_euclid(micros_each)))
        }
    }
}

/// DuckDB's `quantile_cont(x, q)`: the value at place `q · (n − 1)` of the sorted numbers, with the line
/// between the two that are next to it. With a fixed `q` the argument is not there.
struct Quantile {
    fixed: Option<f64>,
    /// Numbers at most.
    most: usize,
}

/// The most numbers of which a quantile is made: 128 MiB of them.
const MOST_NUMBERS: usize = 16 << 20;

/// The numbers that came, and the quantile that is asked for.
#[derive(Debug, Default)]
struct Sample {
    numbers: Vec<f64>,
    quantile: f64,
}

impl Aggregate<Sample, Option<f64>> for Quantile {
    fn init(&self, context: &mut Context<'_>) -> Result<Sample> {
        let quantile = match self.fixed {
            Some(quantile) => quantile,
            None => context.get(1)?,
        };
        if !(0.0..=1.0).contains(&quantile) {
            return Err(Error::UserFunctionError(format!("{quantile} is not a quantile from 0 to 1").into()));
        }
        Ok(Sample { numbers: Vec::new(), quantile })
    }

    fn step(&self, context: &mut Context<'_>, sample: &mut Sample) -> Result<()> {
        if let Some(number) = context.get::<Option<f64>>(0)? {
            if sample.numbers.len() == self.most {
                let why = format!("a quantile of this target is one of at most {} numbers", self.most);
                return Err(Error::UserFunctionError(why.into()));
            }
            sample.numbers.push(number);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sample: Option<Sample>) -> Result<Option<f64>> {
        let Some(Sample { mut numbers, quantile }) = sample else { return Ok(None) };
        numbers.sort_by(f64::total_cmp);
        let place = quantile * numbers.len().saturating_sub(1) as f64;
        let below = place.floor() as usize;
        let Some(&low) = numbers.get(below) else { return Ok(None) };
        let high = numbers.get(below + 1).copied().unwrap_or(low);
        Ok(Some(low + (high - low) * (place - place.floor())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_a_bounded_number() {
        let sqlite = Connection::open_in_memory().unwrap();
        sqlite.create_aggregate_function("q", 1, PURE, Quantile { fixed: Some(0.5), most: 3 }).unwrap();
        let ask = |sql: &str| sqlite.query_row(sql, [], |row| row.get::<_, f64>(0));
        assert_eq!(ask("SELECT q(column1) FROM (VALUES (1), (NULL), (2), (9))"), Ok(2.0));
        let refused = ask("SELECT q(column1) FROM (VALUES (1), (2), (3), (4))").unwrap_err().to_string();
        assert_eq!(refused, "a quantile of this target is one of at most 3 numbers");
    }
}
