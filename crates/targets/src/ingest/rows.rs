//! Rows that come one after the other, turned into columns.

use std::collections::HashMap;

use super::batch::{Batch, note};
use super::column::{Builder, Column, Value};
use super::msgpack::Item;

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
    /// Where the next column stands if this row has those of the one before, in their order.
    next: usize,
}

impl Rows {
    /// Begins a row of this instant (microseconds); its values are set on what is given.
    pub(crate) fn begin(&mut self, measurement: &str, time: i64) -> &mut Group {
        // Rows of one measurement mostly stand together.
        let is_last = self.groups.get(self.last).is_some_and(|group| group.measurement == measurement);
        if !is_last {
            self.last = self.places.get(measurement).copied().unwrap_or_else(|| {
                self.places.insert(measurement.to_owned(), self.groups.len());
                self.groups.push(Group::new(measurement));
                self.groups.len() - 1
            });
        }
        let group = &mut self.groups[self.last];
        group.times.push(time);
        group.next = 0;
        group
    }

    /// Makes batches of all of them.
    pub(crate) fn finish(self, batches: &mut Vec<Batch>, conflict: &mut Option<String>) {
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
        }
    }

    /// Sets a value of the present row.
    pub(crate) fn set(&mut self, name: &[u8], item: Item<'_>) {
        let name = String::from_utf8_lossy(name);
        match item {
            Item::Value(value, go_type) => self.put(&name, |column| column.push(value, go_type, 0)),
            other => self.put(&name, |column| column.refuse(other.go_type())),
        }
    }

    /// Sets a value of the present row that came in no MessagePack.
    pub(crate) fn set_value(&mut self, name: &str, value: Value<'_>) {
        self.put(name, |column| column.push(value, value.go_type(), 0));
    }

    /// Sets a text of the present row.
    pub(crate) fn set_text(&mut self, name: &[u8], text: &str) {
        let name = String::from_utf8_lossy(name);
        self.put(&name, |column| column.push(Value::Text(text.as_bytes()), "string", 0));
    }

    fn put(&mut self, name: &str, set: impl FnOnce(&mut Builder)) {
        let row = self.times.len() - 1;
        // The column `time` is the row's own.
        let name = if name == "time" { "time_" } else { name };
        let here = self.columns.get(self.next).is_some_and(|(known, _)| **known == *name);
        let place = if here { Some(self.next) } else { self.places.get(name).copied() };
        let place = place.unwrap_or_else(|| {
            self.places.insert(name.into(), self.columns.len());
            self.columns.push((name.into(), Builder::default()));
            self.columns.len() - 1
        });
        self.next = place + 1;
        let column = &mut self.columns[place].1;
        column.pad(row);
        // Of two of one name in a row the first one counts.
        if column.len() == row {
            set(column);
        }
    }
}
