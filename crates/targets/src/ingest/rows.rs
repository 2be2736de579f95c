//! Rows that come one after the other, turned into columns.

use std::collections::HashMap;

use super::batch::{Batch, note};
use super::column::{Builder, Column, Value};
use super::msgpack::Item;

/// The most bytes of memory that the rows of one payload may take. A value that occurs once in a payload may
/// belong to each of its rows, such as the attributes of a resource, and each column has a cell in each row:
/// a payload of 16 MiB could ask for terabytes.
const MOST_BYTES: usize = 256 << 20;
/// The answer to one that asks for more.
pub(crate) const TOO_LARGE: &str = "the rows of the payload take more than 256 MiB of memory";
/// Bytes of a cell without the bytes of a text: its value, and whether there is one.
const CELL: usize = 9;
/// About the bytes that a column or a measurement takes for itself.
const FRAME: usize = 256;

/// Rows by measurement.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    groups: Vec<Group>,
    /// Their places: a request may have as many measurements as lines.
    places: HashMap<String, usize>,
    /// The place of the last one.
    last: usize,
}

/// The rows of one measurement.
#[derive(Debug)]
pub(crate) struct Group {
    measurement: String,
    times: Vec<i64>,
    columns: Vec<(Box<str>, Builder)>,
    /// Their places: a line may have any number of them.
    places: HashMap<Box<str>, usize>,
    /// The position of the next column if this row has those of the one before, in their order.
    next: usize,
    /// Bytes of memory that rows may still take, as far as this is the group that was begun last; `None` if
    /// the values would have taken more.
    room: Option<usize>,
}

impl Rows {
    /// Begins a row of this instant (microseconds); set its values on the result.
    pub(crate) fn begin(&mut self, measurement: &str, time: i64) -> &mut Group {
        let mut room = self.groups.get(self.last).map_or(Some(MOST_BYTES), |group| group.room);
        // Rows of one measurement mostly stand together.
        let is_last = self.groups.get(self.last).is_some_and(|group| group.measurement == measurement);
        if !is_last {
            self.last = self.places.get(measurement).copied().unwrap_or_else(|| {
                self.places.insert(measurement.to_owned(), self.groups.len());
                self.groups.push(Group::new(measurement));
                room = take(room, FRAME + 2 * measurement.len());
                self.groups.len() - 1
            });
        }
        let group = &mut self.groups[self.last];
        group.room = take(room, size_of_val(&time));
        group.times.push(time);
        group.next = 0;
        group
    }

    /// Makes batches of all of them.
    pub(crate) fn finish(self, batches: &mut Vec<Batch>, conflict: &mut Option<String>) {
        // Columns that end before the last row get nulls.
        let mut room = self.groups.get(self.last).map_or(Some(MOST_BYTES), |group| group.room);
        for group in &self.groups {
            let rows = group.times.len();
            let due =
                group.columns.iter().map(|(_, column)| rows - column.len()).fold(0, usize::saturating_add);
            room = take(room, due.saturating_mul(CELL));
        }
        if room.is_none() {
            conflict.get_or_insert_with(|| TOO_LARGE.to_owned());
            return;
        }
        for Group { measurement, times, columns, .. } in self.groups {
            let rows = times.len();
            let mut finished: Vec<(Box<str>, Column)> = Vec::with_capacity(columns.len() + 1);
            finished.push(("time".into(), Column::times(times)));
            for (name, mut builder) in columns {
                builder.pad(rows);
                match builder.finish() {
                    Ok(Some(column)) => finished.push((name, column)),
                    Ok(None) => {}
                    Err(what) => note(conflict, &name, what),
                }
            }
            batches.push(Batch { measurement, rows, columns: finished });
        }
    }
}

impl Group {
    fn new(measurement: &str) -> Self {
        Self {
            measurement: measurement.to_owned(),
            times: Vec::new(),
            columns: Vec::new(),
            places: HashMap::new(),
            next: 0,
            room: None,
        }
    }

    /// Returns `true` if the rows of the payload had no room for a value that was set: the rest of the
    /// payload need not be read.
    pub(crate) const fn is_full(&self) -> bool {
        self.room.is_none()
    }

    /// Sets a value of the present row.
    pub(crate) fn set(&mut self, name: &[u8], item: Item<'_>) {
        let name = String::from_utf8_lossy(name);
        match item {
            Item::Value(value, go_type) => {
                self.put(&name, value.bytes(), |column| column.push(value, go_type, 0));
            }
            other => self.put(&name, 0, |column| column.refuse(other.go_type())),
        }
    }

    /// Sets a value of the present row that came in no MessagePack.
    pub(crate) fn set_value(&mut self, name: &str, value: Value<'_>) {
        self.put(name, value.bytes(), |column| column.push(value, value.go_type(), 0));
    }

    /// Sets a text of the present row.
    pub(crate) fn set_text(&mut self, name: &[u8], text: &str) {
        let name = String::from_utf8_lossy(name);
        self.put(&name, text.len(), |column| column.push(Value::Text(text.as_bytes()), "string", 0));
    }

    /// Sets a value of the present row that takes this many bytes besides its cell.
    fn put(&mut self, name: &str, bytes: usize, set: impl FnOnce(&mut Builder)) {
        let row = self.times.len() - 1;
        // The column `time` is the row's own.
        let name = if name == "time" { "time_" } else { name };
        let here = self.columns.get(self.next).is_some_and(|(known, _)| **known == *name);
        let place = if here { Some(self.next) } else { self.places.get(name).copied() };
        let nulls = row - place.map_or(0, |place| self.columns[place].1.len().min(row));
        let frame = if place.is_none() { FRAME + 2 * name.len() } else { 0 };
        self.room = take(self.room, frame + bytes + nulls.saturating_add(1).saturating_mul(CELL));
        if self.room.is_none() {
            return;
        }
        let place = place.unwrap_or_else(|| {
            self.places.insert(name.into(), self.columns.len());
            self.columns.push((name.into(), Builder::default()));
            self.columns.len() - 1
        });
        self.next = place + 1;
        let column = &mut self.columns[place].1;
        column.pad(row);
        // If a name occurs twice in a row, the first one counts.
        if column.len() == row {
            set(column);
        }
    }
}

/// The room that is left when this many bytes are taken from it; `None` if it has fewer.
fn take(room: Option<usize>, bytes: usize) -> Option<usize> {
    room?.checked_sub(bytes)
}
