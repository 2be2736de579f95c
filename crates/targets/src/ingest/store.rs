//! Storage of everything written: databases of measurements, each with its batches, which are first in a
//! buffer and then visible.
//!
//! Rows are kept as the columns that they came in. Of every measurement the last [`keep`](Limits::keep) rows
//! are kept with their values; of the others only the number is known, so that counts stay exact however long
//! a load lasts.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;

use super::batch::Batch;
use super::column::{Column, Kind};
use super::fault_injector::Fate;

/// The most measurements over all databases: a client that makes a new one of each batch is stopped here.
const MOST_MEASUREMENTS: usize = 10_000;
/// The most databases: each of those measurements may have one of its own.
const MOST_DATABASES: usize = 10_000;
/// Most columns of a measurement.
const MOST_COLUMNS: usize = 10_000;
/// The most bytes of the names of all columns, which are never forgotten; including their overhead.
const MOST_NAME_BYTES: u64 = 64 << 20;
/// Bytes of a name beside itself, roughly: its place and its allocation.
const NAME_UPKEEP: u64 = 64;
/// Bytes of a batch, and of each of its columns, beside names and values, roughly: small batches are mostly
/// that.
const CHUNK_UPKEEP: usize = 160;
const COLUMN_UPKEEP: usize = 128;

/// When rows are seen, and how many of them are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rows are seen this long after the first of their buffer came,
    pub(crate) flush_delay: Nanos,
    /// or as soon as the buffer has this many.
    pub(crate) flush_rows: u64,
    /// Rows of a measurement whose values are kept: at least this many, as far as there are, and at most a
    /// batch more.
    pub(crate) keep: u64,
    /// Bytes that all values may take.
    pub(crate) max_memory: u64,
    /// Payload bytes after which the disk is full.
    pub(crate) full_after: Option<u64>,
}

/// Everything that was written. Shared by the threads.
#[derive(Debug)]
pub(crate) struct Store {
    limits: Limits,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    databases: BTreeMap<String, BTreeMap<String, Measurement>>,
    /// Bytes of all values that are kept.
    bytes: u64,
    /// Bytes of the names of all columns.
    name_bytes: u64,
    /// Payload bytes that were taken.
    taken: u64,
}

/// Reason why something is not stored, in the words that are answered.
pub(crate) type Refusal = String;

/// The acknowledged rows of one measurement, and their fates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The database.
    pub database: String,
    /// The measurement.
    pub measurement: String,
    /// Batches that were acknowledged: one for each measurement of a request.
    pub batches: u64,
    /// Rows that were acknowledged.
    pub rows: u64,
    /// Rows that a query sees.
    pub visible: u64,
    /// Rows in the buffer, to be seen later.
    pub buffered: u64,
    /// Rows that are seen with their values.
    pub kept: u64,
    /// Rows that were acknowledged and thrown away, on purpose,
    pub lost: u64,
    /// that were stored once more than they were sent,
    pub duplicated: u64,
    /// and that are never flushed.
    pub late: u64,
    /// Rows that were stored and not acknowledged, on purpose. They are not among the rows.
    pub unacknowledged: u64,
}

#[derive(Debug, Default)]
struct Measurement {
    /// All columns that it ever had, and whether their kinds differed.
    columns: Vec<Known>,
    visible: VecDeque<Arc<Chunk>>,
    buffer: Vec<Arc<Chunk>>,
    /// When the first batch of the buffer came.
    buffered_since: Nanos,
    counts: Acknowledged,
    bytes: u64,
    /// Bytes of the names of its columns.
    name_bytes: u64,
}

#[derive(Clone, Debug)]
struct Known {
    name: Box<str>,
    kind: Kind,
    mixed: bool,
}

/// The rows of one batch.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(Box<str>, Column)>,
    bytes: u64,
}

/// A query's view of one measurement.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) database: String,
    pub(crate) name: String,
    /// Names, and whether their values are shown as text because their kind has changed.
    pub(crate) columns: Vec<(Box<str>, bool)>,
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Rows of the chunks.
    pub(crate) kept: u64,
    /// All rows.
    pub(crate) rows: u64,
}

impl Store {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, inner: Mutex::default() }
    }

    /// Stores the batches of one request of `bytes` payload bytes, all or nothing.
    pub(crate) fn write(
        &self,
        database: &str,
        batches: Vec<Batch>,
        bytes: u64,
        fate: Fate,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let mut inner = self.inner();
        inner.taken += bytes;
        if self.limits.full_after.is_some_and(|most| inner.taken > most) {
            inner.taken -= bytes;
            return Err("write data: no space left on device".to_owned());
        }
        inner.make_room(database, &batches)?;
        for batch in batches {
            let tables = inner.databases.get_mut(database).expect("there is room for it");
            let table = tables.get_mut(&batch.measurement).expect("there is room for it");
            let (bytes, name_bytes) = (table.bytes, table.name_bytes);
            table.write(batch, fate, now, &self.limits);
            let (now_bytes, new_names) = (table.bytes, table.name_bytes - name_bytes);
            inner.bytes = inner.bytes + now_bytes - bytes;
            inner.name_bytes += new_names;
        }
        inner.give_way(self.limits.max_memory);
        Ok(())
    }

    /// Makes everything in all buffers visible.
    pub(crate) fn flush(&self) {
        let mut inner = self.inner();
        let Inner { databases, bytes, .. } = &mut *inner;
        for table in databases.values_mut().flat_map(BTreeMap::values_mut) {
            *bytes -= table.bytes;
            table.flush();
            table.forget_surplus(self.limits.keep);
            *bytes += table.bytes;
        }
    }

    /// Makes a database; `false`: there is one of that name.
    ///
    /// # Errors
    /// If there are as many as there may be.
    pub(crate) fn create(&self, database: &str) -> Result<bool, Refusal> {
        let mut inner = self.inner();
        if inner.databases.contains_key(database) {
            return Ok(false);
        }
        inner.make_database(database)?;
        Ok(true)
    }

    /// Returns a view of each wanted measurement with visible rows. `wanted` is asked by database and name.
    pub(crate) fn tables(&self, wanted: impl Fn(&str, &str) -> bool, now: Nanos) -> Vec<Table> {
        let mut inner = self.inner();
        let mut tables = Vec::new();
        for (database, measurements) in &mut inner.databases {
            for (name, measurement) in measurements.iter_mut().filter(|(name, _)| wanted(database, name)) {
                measurement.flush_if_due(&self.limits, now);
                if measurement.counts.visible > 0 {
                    tables.push(measurement.table(database, name));
                }
            }
        }
        tables
    }

    /// Rows of a measurement that a query sees, and those of them whose values are forgotten; `None`: there
    /// are none.
    pub(crate) fn rows(&self, database: &str, measurement: &str, now: Nanos) -> Option<(u64, u64)> {
        let mut inner = self.inner();
        let measurement = inner.databases.get_mut(database)?.get_mut(measurement)?;
        measurement.flush_if_due(&self.limits, now);
        let Acknowledged { visible, kept, .. } = measurement.counts;
        (visible > 0).then_some((visible, visible - kept))
    }

    /// Databases and their measurements, those that have something to see.
    pub(crate) fn names(&self, now: Nanos) -> Vec<(String, Vec<String>)> {
        let mut inner = self.inner();
        let limits = &self.limits;
        let databases = inner.databases.iter_mut().map(|(database, measurements)| {
            let seen = measurements.iter_mut().filter_map(|(name, measurement)| {
                measurement.flush_if_due(limits, now);
                (measurement.counts.visible > 0).then(|| name.clone())
            });
            (database.clone(), seen.collect())
        });
        databases.collect()
    }

    /// Returns the acknowledged rows, by database and measurement.
    pub(crate) fn acknowledged(&self, now: Nanos) -> Vec<Acknowledged> {
        let mut inner = self.inner();
        let mut all = Vec::new();
        for (database, measurements) in &mut inner.databases {
            for (name, measurement) in measurements {
                measurement.flush_if_due(&self.limits, now);
                let (database, measurement) = (database.clone(), (name.clone(), &measurement.counts));
                all.push(Acknowledged { database, measurement: measurement.0, ..measurement.1.clone() });
            }
        }
        all
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A thread that panics ends the server; only its report reads what was left.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Creates missing measurements, up to the limit on their number.
    fn make_room(&mut self, database: &str, batches: &[Batch]) -> Result<(), Refusal> {
        let known = self.databases.get(database);
        let is_new = |batch: &&Batch| known.is_none_or(|tables| !tables.contains_key(&batch.measurement));
        let new: Vec<&Batch> = batches.iter().filter(is_new).collect();
        if !new.is_empty() {
            let there: usize = self.databases.values().map(BTreeMap::len).sum();
            if there + new.len() > MOST_MEASUREMENTS {
                return Err(format!("this target takes at most {MOST_MEASUREMENTS} measurements"));
            }
        }
        self.make_room_for_names(database, batches)?;
        let tables = self.make_database(database)?;
        for batch in batches {
            let table = tables.entry(batch.measurement.clone()).or_default();
            if table.columns.len() + batch.columns.len() > MOST_COLUMNS {
                return Err(format!("this target takes at most {MOST_COLUMNS} columns of a measurement"));
            }
        }
        Ok(())
    }

    /// The measurements of a database, which is made if there is none.
    fn make_database(&mut self, name: &str) -> Result<&mut BTreeMap<String, Measurement>, Refusal> {
        if self.databases.len() >= MOST_DATABASES && !self.databases.contains_key(name) {
            return Err(format!("this target takes at most {MOST_DATABASES} databases"));
        }
        Ok(self.databases.entry(name.to_owned()).or_default())
    }

    /// Looks whether there is room for the names of columns that are new.
    fn make_room_for_names(&self, database: &str, batches: &[Batch]) -> Result<(), Refusal> {
        let all = batches.iter().flat_map(|batch| &batch.columns).map(|(name, _)| name_bytes(name));
        // As long as all of them fit, it does not matter which are new.
        if self.name_bytes + all.sum::<u64>() <= MOST_NAME_BYTES {
            return Ok(());
        }
        let known = self.databases.get(database);
        let new = batches.iter().map(|batch| {
            let table = known.and_then(|tables| tables.get(&batch.measurement));
            let names = table.iter().flat_map(|table| &table.columns).map(|known| &*known.name);
            let names: HashSet<&str> = names.collect();
            let new = batch.columns.iter().filter(|(name, _)| !names.contains(&**name));
            new.map(|(name, _)| name_bytes(name)).sum::<u64>()
        });
        if self.name_bytes + new.sum::<u64>() > MOST_NAME_BYTES {
            return Err(format!(
                "this target takes at most {} MiB of names of columns",
                MOST_NAME_BYTES >> 20
            ));
        }
        Ok(())
    }

    /// Drops the oldest values of the table that has most of them until there is room.
    fn give_way(&mut self, most: u64) {
        while self.bytes > most {
            let tables = self.databases.values_mut().flat_map(BTreeMap::values_mut);
            let Some(largest) = tables.max_by_key(|table| table.bytes).filter(|table| table.bytes > 0) else {
                return;
            };
            if largest.visible.is_empty() {
                largest.flush();
            }
            self.bytes -= largest.forget_oldest();
        }
    }
}

/// Bytes that the name of a column takes.
const fn name_bytes(name: &str) -> u64 {
    name.len() as u64 + NAME_UPKEEP
}

impl Measurement {
    fn write(&mut self, batch: Batch, fate: Fate, now: Nanos, limits: &Limits) {
        let rows = batch.rows as u64;
        if fate == Fate::Unacknowledged {
            self.counts.unacknowledged += rows;
        } else {
            self.counts.batches += 1;
            self.counts.rows += rows;
        }
        match fate {
            Fate::Lost => {
                self.counts.lost += rows;
                return;
            }
            Fate::Late => {
                self.counts.late += rows;
                return;
            }
            Fate::Duplicated => self.counts.duplicated += rows,
            Fate::Stored | Fate::Unacknowledged => {}
        }
        self.flush_if_due(limits, now);
        // The real server writes its buffer when the columns change.
        if self.learn(&batch) {
            self.flush();
        }
        if self.buffer.is_empty() {
            self.buffered_since = now;
        }
        let columns = batch.columns.iter();
        let of_columns = columns.map(|(name, column)| name.len() + column.bytes() + COLUMN_UPKEEP);
        let bytes = (CHUNK_UPKEEP + of_columns.sum::<usize>()) as u64;
        let chunk = Arc::new(Chunk { rows: batch.rows, columns: batch.columns, bytes });
        let copies = if fate == Fate::Duplicated { 2 } else { 1 };
        for _ in 0..copies {
            self.bytes += bytes;
            self.counts.buffered += rows;
            self.buffer.push(Arc::clone(&chunk));
        }
        if self.counts.buffered >= limits.flush_rows {
            self.flush();
        }
        self.forget_surplus(limits.keep);
    }

    /// Takes note of the columns of a batch; whether they are others than those of the last one.
    fn learn(&mut self, batch: &Batch) -> bool {
        for (name, column) in &batch.columns {
            match self.columns.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.mixed |= known.kind != column.kind(),
                None => {
                    self.name_bytes += name_bytes(name);
                    self.columns.push(Known { name: name.clone(), kind: column.kind(), mixed: false });
                }
            }
        }
        let same = |one: &(Box<str>, Column), other: &(Box<str>, Column)| {
            one.0 == other.0 && one.1.kind() == other.1.kind()
        };
        self.buffer.last().is_some_and(|last| {
            let mut pairs = last.columns.iter().zip(&batch.columns);
            last.columns.len() != batch.columns.len() || !pairs.all(|(one, other)| same(one, other))
        })
    }

    fn flush_if_due(&mut self, limits: &Limits, now: Nanos) {
        if !self.buffer.is_empty() && now.since(self.buffered_since) >= limits.flush_delay {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.counts.visible += self.counts.buffered;
        self.counts.kept += self.counts.buffered;
        self.counts.buffered = 0;
        self.visible.extend(self.buffer.drain(..));
    }

    /// Forgets the oldest values as long as enough are left.
    fn forget_surplus(&mut self, keep: u64) {
        while let Some(oldest) = self.visible.front()
            && self.counts.kept - oldest.rows as u64 >= keep
        {
            self.forget_oldest();
        }
    }

    /// Forgets the values of the oldest chunk; gives the bytes that this frees.
    fn forget_oldest(&mut self) -> u64 {
        let Some(oldest) = self.visible.pop_front() else { return 0 };
        self.counts.kept -= oldest.rows as u64;
        self.bytes -= oldest.bytes;
        oldest.bytes
    }

    fn table(&self, database: &str, name: &str) -> Table {
        Table {
            database: database.to_owned(),
            name: name.to_owned(),
            columns: self.columns.iter().map(|known| (known.name.clone(), known.mixed)).collect(),
            chunks: self.visible.iter().map(Arc::clone).collect(),
            kept: self.counts.kept,
            rows: self.counts.visible,
        }
    }
}

#[cfg(test)]
mod tests;
