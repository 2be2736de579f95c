//! Runs whose process ended before they did.

use plimsoll_core::Nanos;
use plimsoll_report::SavedRun;
use plimsoll_report::result::IntervalResult;
use plimsoll_report::saved::{Beginning, Part, PartKind};

use crate::reading::parts_of;
use crate::{State, Store, StoreError};

impl Store {
    /// Makes killed runs of those that go on only in the store. `lives` says of a process, as
    /// [`begin`](Self::begin) was told of it, whether it is still there; `heard` is when it wrote last.
    /// Returns how many there were.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn settle(&mut self, lives: impl Fn(&str, Nanos) -> bool) -> Result<usize, StoreError> {
        let running = self.running().map_err(|error| self.failed(error))?;
        let mut settled = 0;
        for Running { number, id, process, heard, beginning } in running {
            if lives(&process, heard) {
                continue;
            }
            let beginning: Beginning = serde_json::from_str(&beginning)
                .map_err(|error| StoreError::of_run(&id, plimsoll_report::ReadError::Broken(error)))?;
            let (intervals, parts) = self.told(number).map_err(|error| self.failed(error))?;
            self.end(number, &SavedRun::unfinished(beginning, intervals, parts), State::Killed)?;
            settled += 1;
        }
        Ok(settled)
    }

    fn running(&self) -> rusqlite::Result<Vec<Running>> {
        let sql = "SELECT number, id, process, heard_unix_ns, beginning FROM runs WHERE state = 'running'";
        let mut statement = self.db.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(Running {
                number: row.get(0)?,
                id: row.get(1)?,
                process: row.get(2)?,
                heard: Nanos(row.get::<_, i64>(3)?.cast_unsigned()),
                beginning: row.get(4)?,
            })
        })?;
        rows.collect()
    }

    /// What a run has told of itself.
    fn told(&self, run: i64) -> rusqlite::Result<(Vec<IntervalResult>, Vec<Part>)> {
        let mut statement = self.db.prepare("SELECT line FROM intervals WHERE run = ?1 ORDER BY number")?;
        let lines = statement.query_map([run], |row| row.get::<_, String>(0))?;
        let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
        // A line that cannot be read is of another version: the parts have the figures.
        let intervals = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut parts = Vec::new();
        for kind in [PartKind::Warmup, PartKind::Measured, PartKind::Drain] {
            parts.extend(parts_of(&self.db, run, kind)?.into_iter().map(|slice| Part { kind, slice }));
        }
        Ok((intervals, parts))
    }
}

/// A run that goes on, as far as the store knows.
struct Running {
    number: i64,
    id: String,
    process: String,
    heard: Nanos,
    beginning: String,
}
