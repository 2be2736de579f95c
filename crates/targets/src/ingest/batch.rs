//! The payloads of the MessagePack endpoint: columnar, rows, batches of either, arrays of either.

use super::column::{Builder, Cell, Column, Value};
use super::msgpack::{Item, Malformed, Reader};
use super::rows::Rows;
use super::time::Unit;

/// The most columns of one batch. The real server has no such bound.
const MOST_COLUMNS: usize = 4096;

/// The rows of one measurement in a payload, column by column. The column `time` is always there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) measurement: String,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(Box<str>, Column)>,
}

/// The content of a payload.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) batches: Vec<Batch>,
    /// Names of all measurements, also of those without a row.
    pub(crate) measurements: Vec<String>,
    /// The first value that could not be converted to its column's kind, in the words of the real server,
    /// which refuses the whole payload for it.
    pub(crate) conflict: Option<String>,
    /// Items of a list that the real server passes over without a word.
    pub(crate) skipped: u64,
}

/// Reason why a map is not a batch.
#[derive(Debug)]
enum Problem {
    /// Nothing of the payload can be read.
    Payload(Malformed),
    /// This map means nothing; in a list the others do.
    Shape(String),
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        Self::Payload(malformed)
    }
}

fn shape<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Shape(text.into()))
}

/// Reads a payload; rows without a time are of `now` (microseconds).
///
/// # Errors
/// The text of the real server after `Invalid MessagePack payload: `.
pub(crate) fn decode(payload: &[u8], now: i64) -> Result<Decoded, String> {
    let mut decoder = Decoder { now, decoded: Decoded::default(), rows: Rows::default() };
    match decoder.payload(&mut Reader::new(payload)) {
        Ok(()) => Ok(decoder.finish()),
        Err(Problem::Payload(malformed)) => Err(format!("failed to unmarshal msgpack: {malformed}")),
        Err(Problem::Shape(text)) => Err(text),
    }
}

struct Decoder {
    now: i64,
    decoded: Decoded,
    rows: Rows,
}

/// The parts of one map, in any order.
#[derive(Default)]
struct Parts<'a> {
    measurement: Option<Item<'a>>,
    columns: Option<Vec<(&'a [u8], Builder)>>,
    time: Option<Item<'a>>,
    host: Option<Item<'a>>,
    /// The beginnings of `fields`, `f`, `tags` and `batch`.
    fields: Option<Reader<'a>>,
    compact: Option<Reader<'a>>,
    tags: Option<Reader<'a>>,
    batch: Option<Reader<'a>>,
}

impl Decoder {
    fn payload(&mut self, reader: &mut Reader<'_>) -> Result<(), Problem> {
        match reader.item()? {
            Item::Map(pairs) => self.map(reader, pairs),
            Item::Array(items) => self.list(reader, items),
            other => shape(format!("unsupported msgpack payload type: {}", other.go_type())),
        }
    }

    /// A list of maps; the real server passes over those of them that mean nothing.
    fn list(&mut self, reader: &mut Reader<'_>, items: usize) -> Result<(), Problem> {
        for _ in 0..items {
            match reader.item()? {
                Item::Map(pairs) => match self.map(reader, pairs) {
                    Err(Problem::Shape(_)) => self.decoded.skipped += 1,
                    other => other?,
                },
                other => {
                    reader.pass_over(&other)?;
                    self.decoded.skipped += 1;
                }
            }
        }
        Ok(())
    }

    /// Reads a map to its end, also where it means nothing.
    fn map(&mut self, reader: &mut Reader<'_>, pairs: usize) -> Result<(), Problem> {
        let mut parts = Parts::default();
        for _ in 0..pairs {
            let key = reader.key()?;
            let start = *reader;
            match key {
                b"columns" => {
                    let item = reader.item()?;
                    if let Item::Map(columns) = item {
                        parts.columns = Some(columns_of(reader, columns)?);
                    } else {
                        reader.pass_over(&item)?;
                    }
                }
                b"m" => parts.measurement = Some(reader.whole()?),
                b"t" => parts.time = Some(reader.whole()?),
                b"h" => parts.host = Some(reader.whole()?),
                b"fields" => parts.fields = matches!(reader.whole()?, Item::Map(_)).then_some(start),
                b"tags" => parts.tags = matches!(reader.whole()?, Item::Map(_)).then_some(start),
                b"batch" => parts.batch = matches!(reader.whole()?, Item::Array(_)).then_some(start),
                b"f" => {
                    let item = reader.whole()?;
                    let is_null = matches!(item, Item::Value(Value::Null, _));
                    parts.compact = (!is_null).then_some(start);
                }
                _ => {
                    reader.whole()?;
                }
            }
        }
        if let Some(mut batch) = parts.batch
            && let Item::Array(items) = batch.item()?
        {
            return self.list(&mut batch, items);
        }
        match parts.columns.take() {
            Some(columns) => self.columnar(&parts, columns),
            None => self.row(&parts),
        }
    }

    fn columnar(&mut self, parts: &Parts<'_>, columns: Vec<(&[u8], Builder)>) -> Result<(), Problem> {
        let measurement = measurement(parts.measurement)?;
        let Some((_, first)) = columns.first() else {
            return shape("columnar format requires non-empty 'columns' dict");
        };
        let rows = first.len();
        for (name, column) in &columns {
            if column.len() != rows {
                let (got, name) = (column.len(), String::from_utf8_lossy(name));
                return shape(format!(
                    "columnar format: array length mismatch (expected {rows}, got {got} for '{name}')"
                ));
            }
        }
        let mut finished = Vec::with_capacity(columns.len() + 1);
        let mut has_time = false;
        for (name, builder) in columns {
            if name == b"time" && rows > 0 {
                finished.push(("time".into(), times(builder)?));
                has_time = true;
                continue;
            }
            let name: Box<str> = String::from_utf8_lossy(name).into();
            match builder.finish() {
                Ok(Some(column)) => finished.push((name, column)),
                // A column of nulls only does not exist.
                Ok(None) => {}
                Err(conflict) => note(&mut self.decoded.conflict, &name, conflict),
            }
        }
        if !has_time {
            finished.insert(0, ("time".into(), Column::times(vec![self.now; rows])));
        }
        self.decoded.measurements.push(measurement.clone());
        if rows > 0 {
            self.decoded.batches.push(Batch { measurement, rows, columns: finished });
        }
        Ok(())
    }

    fn row(&mut self, parts: &Parts<'_>) -> Result<(), Problem> {
        let measurement = measurement(parts.measurement)?;
        let time = match parts.time {
            None | Some(Item::Value(Value::Null, _)) => self.now,
            Some(Item::Value(Value::Int(number), _)) => Unit::of(number).micros(number),
            // A float-to-integer `as` saturates.
            Some(Item::Value(Value::Float(number), _)) => Unit::of(number as i64).micros(number as i64),
            Some(other) => return shape(format!("invalid timestamp type: {}", other.go_type())),
        };
        if parts.fields.is_none() && parts.compact.is_none() {
            return shape("missing required field 'fields' or 'f'");
        }
        let row = self.rows.begin(&measurement, time);
        match (parts.fields, parts.compact) {
            (Some(mut fields), _) => pairs(&mut fields, |name, item| row.set(name, item))?,
            (None, Some(mut compact)) => {
                if let Item::Array(items) = compact.item()? {
                    for number in 0..items {
                        let item = compact.whole()?;
                        row.set(format!("field_{number}").as_bytes(), item);
                    }
                }
            }
            (None, None) => {}
        }
        if let Some(mut tags) = parts.tags {
            pairs(&mut tags, |name, item| row.set_text(name, &written(item)))?;
        }
        match parts.host {
            Some(Item::Value(Value::Text(host), _)) => row.set_text(b"host", &String::from_utf8_lossy(host)),
            Some(Item::Value(Value::Int(host), _)) => row.set_text(b"host", &format!("host_{host}")),
            _ => row.set_text(b"host", "unknown"),
        }
        // Rows of one measurement mostly stand together.
        if self.decoded.measurements.last() != Some(&measurement) {
            self.decoded.measurements.push(measurement);
        }
        Ok(())
    }

    fn finish(mut self) -> Decoded {
        self.rows.finish(&mut self.decoded.batches, &mut self.decoded.conflict);
        self.decoded.measurements.sort_unstable();
        self.decoded.measurements.dedup();
        self.decoded
    }
}

/// Remembers the first value that could not be converted.
pub(crate) fn note(conflict: &mut Option<String>, name: &str, what: super::column::Conflict) {
    conflict.get_or_insert_with(|| format!("cannot convert {} to {} in column '{name}'", what.from, what.to));
}

/// The columns of a map; other values are skipped.
fn columns_of<'a>(reader: &mut Reader<'a>, pairs: usize) -> Result<Vec<(&'a [u8], Builder)>, Problem> {
    let mut columns: Vec<(&[u8], Builder)> = Vec::with_capacity(pairs.min(64));
    if pairs > MOST_COLUMNS {
        return shape(format!("{pairs} columns, and this target takes at most {MOST_COLUMNS}"));
    }
    for _ in 0..pairs {
        let name = reader.key()?;
        let item = reader.item()?;
        let Item::Array(items) = item else {
            reader.pass_over(&item)?;
            continue;
        };
        let column = column(reader, items)?;
        // If a name occurs twice, the last one counts.
        match columns.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = column,
            None => columns.push((name, column)),
        }
    }
    Ok(columns)
}

#[inline]
fn column(reader: &mut Reader<'_>, items: usize) -> Result<Builder, Malformed> {
    let mut builder = Builder::default();
    // No more of them can follow than there are bytes.
    let expected = items.min(reader.left());
    loop {
        builder.run(reader, items - builder.len());
        if builder.len() == items {
            return Ok(builder);
        }
        match reader.item()? {
            Item::Value(value, go_type) => builder.push(value, go_type, expected),
            other => {
                builder.refuse(other.go_type());
                reader.pass_over(&other)?;
            }
        }
    }
}

/// The instants of a column `time`.
fn times(builder: Builder) -> Result<Column, Problem> {
    let refused = |go_type: &str| {
        shape(format!("failed to normalize timestamps: invalid timestamp type in columnar format: {go_type}"))
    };
    let column = match builder.finish() {
        Ok(Some(column)) => column,
        Ok(None) => return refused("<nil>"),
        Err(conflict) => return refused(conflict.from),
    };
    let mut numbers = Vec::with_capacity(column.len());
    for row in 0..column.len() {
        match column.get(row) {
            Cell::Int(number) => numbers.push(number),
            Cell::Float(number) => numbers.push(number as i64),
            Cell::Null => return refused("<nil>"),
            Cell::Bool(_) => return refused("bool"),
            Cell::Text(_) | Cell::Time(_) => return refused("string"),
        }
    }
    let unit = numbers.first().map_or(Unit::Micros, |first| Unit::of(*first));
    for number in &mut numbers {
        *number = unit.micros(*number);
    }
    Ok(Column::times(numbers))
}

fn measurement(item: Option<Item<'_>>) -> Result<String, Problem> {
    match item {
        None | Some(Item::Value(Value::Null, _)) => shape("missing required field 'm' (measurement)"),
        Some(Item::Value(Value::Text(name), _)) => Ok(String::from_utf8_lossy(name).into_owned()),
        Some(Item::Value(Value::Int(number), _)) => Ok(format!("measurement_{number}")),
        Some(Item::Value(Value::Large(number), _)) => Ok(format!("measurement_{number}")),
        Some(other) => shape(format!("invalid measurement type: {}", other.go_type())),
    }
}

/// Passes each pair of a map that was read once already.
fn pairs<'a>(reader: &mut Reader<'a>, mut each: impl FnMut(&'a [u8], Item<'a>)) -> Result<(), Malformed> {
    if let Item::Map(pairs) = reader.item()? {
        for _ in 0..pairs {
            let name = reader.key()?;
            each(name, reader.whole()?);
        }
    }
    Ok(())
}

/// A tag as text.
fn written(item: Item<'_>) -> String {
    match item {
        Item::Value(Value::Text(text), _) => String::from_utf8_lossy(text).into_owned(),
        Item::Value(Value::Null, _) => "<nil>".to_owned(),
        Item::Value(Value::Bool(bool), _) => bool.to_string(),
        Item::Value(Value::Int(int), _) => int.to_string(),
        Item::Value(Value::Large(int), _) => int.to_string(),
        Item::Value(Value::Float(float), _) => float.to_string(),
        other => other.go_type().to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
