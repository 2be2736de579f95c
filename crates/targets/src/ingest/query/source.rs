//! Data of a query: the chunks that were visible when it began.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::column::Cell;
use super::super::store::{Chunk, Table};

/// All measurements that a query may see.
#[derive(Debug)]
pub(crate) struct Source {
    tables: Vec<Indexed>,
}

/// One measurement, with the way from a row's number to its values.
#[derive(Debug)]
struct Indexed {
    table: Table,
    /// The number of each chunk's first row.
    starts: Vec<u64>,
    /// For each chunk: where each column of the measurement stands in it.
    places: Vec<Arc<[Option<u32>]>>,
    /// The chunk that was read last.
    last: AtomicUsize,
}

impl Source {
    pub(crate) fn new(tables: Vec<Table>) -> Self {
        Self { tables: tables.into_iter().map(Indexed::new).collect() }
    }

    pub(crate) fn databases(&self) -> BTreeSet<&str> {
        self.tables.iter().map(|of| of.table.database.as_str()).collect()
    }

    /// Statements that make a view of each measurement.
    pub(crate) fn views(&self) -> impl Iterator<Item = String> {
        self.tables.iter().enumerate().map(|(number, Indexed { table, .. })| {
            let columns = table.columns.iter().enumerate().map(|(column, (name, _))| {
                format!("plimsoll_cell({number},{column},value) AS {}", identifier(name))
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            let (database, name) = (identifier(&table.database), identifier(&table.name));
            let last = table.rows - 1;
            let view = format!("CREATE VIEW IF NOT EXISTS {database}.{name}");
            format!("{view} AS SELECT {columns} FROM generate_series(0,{last})")
        })
    }

    /// The value of a column in a row, and whether it is shown as text.
    pub(crate) fn cell(&self, table: usize, column: usize, row: u64) -> Option<(Cell<'_>, bool)> {
        let of = self.tables.get(table)?;
        let (_, mixed) = *of.table.columns.get(column)?;
        if row >= of.table.kept {
            // Its values are forgotten.
            return Some((Cell::Null, mixed));
        }
        let chunk = of.chunk(row)?;
        let cell = match of.places[chunk][column] {
            Some(place) => {
                let (_, cells) = &of.table.chunks[chunk].columns[place as usize];
                cells.get((row - of.starts[chunk]) as usize)
            }
            None => Cell::Null,
        };
        Some((cell, mixed))
    }
}

impl Indexed {
    fn new(table: Table) -> Self {
        let mut starts = Vec::with_capacity(table.chunks.len());
        let mut places: Vec<Arc<[Option<u32>]>> = Vec::with_capacity(table.chunks.len());
        let mut next = 0;
        for (number, chunk) in table.chunks.iter().enumerate() {
            starts.push(next);
            next += chunk.rows as u64;
            let same = number > 0 && names(&table.chunks[number - 1]).eq(names(chunk));
            let place = if same { Arc::clone(&places[number - 1]) } else { places_in(&table, chunk) };
            places.push(place);
        }
        Self { table, starts, places, last: AtomicUsize::new(0) }
    }

    /// The number of the chunk that has this row.
    #[inline]
    fn chunk(&self, row: u64) -> Option<usize> {
        // Relaxed: any value will do, it only saves a search.
        let last = self.last.load(Ordering::Relaxed);
        let has = |chunk: usize| {
            let start = *self.starts.get(chunk)?;
            let end = start + self.table.chunks[chunk].rows as u64;
            (start..end).contains(&row).then_some(chunk)
        };
        if let Some(chunk) = has(last) {
            return Some(chunk);
        }
        let chunk = self.starts.partition_point(|start| *start <= row).checked_sub(1)?;
        self.last.store(chunk, Ordering::Relaxed);
        has(chunk)
    }
}

fn names(chunk: &Chunk) -> impl Iterator<Item = &str> {
    chunk.columns.iter().map(|(name, _)| &**name)
}

fn places_in(table: &Table, chunk: &Chunk) -> Arc<[Option<u32>]> {
    let place = |(name, _): &(Box<str>, bool)| names(chunk).position(|known| known == &**name);
    table.columns.iter().map(|column| place(column).map(|place| place as u32)).collect()
}

/// Any name as SQL writes it.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
