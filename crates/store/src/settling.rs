//! Runs whose process ended before they did.

use plimsoll_core::Nanos;
use plimsoll_report::SavedRun;
use plimsoll_report::result::IntervalResult;
use plimsoll_report::saved::{Beginning, Cut, Part, PartKind};
use rusqlite::OptionalExtension as _;

use crate::reading::parts_of;
use crate::{Filter, State, Store, StoreError, Tag};

impl Store {
    /// Makes killed runs of those that go on only in the store. `lives` returns whether the process that was
    /// given to [`begin`](Self::begin) is still there; its second argument is when it wrote last. Returns how
    /// many there were. Where they cannot be written (the disk is full, or may only be read), this store
    /// lists and reads them as killed ones all the same.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn settle(&mut self, lives: impl Fn(&str, Nanos) -> bool) -> Result<usize, StoreError> {
        let running = self.running().map_err(|error| self.failed(error))?;
        let mut settled = 0;
        for Running { number, process, heard, beginning } in running {
            if lives(&process, heard) {
                continue;
            }
            settled += 1;
            let written = match self.unfinished(number, &beginning, Cut::Killed)? {
                Some(run) => self.end(number, &run, State::Killed),
                // A version with another form of the beginning: only that it was killed is known.
                None => self.give_up(number).map_err(|error| self.failed(error)),
            };
            match written {
                Err(error) if error.is_of_place() => drop(self.gone.insert(number, beginning)),
                written => written?,
            }
        }
        Ok(settled)
    }

    /// The run with this tag that began last, as far as it is written: the saved run if it is over, else what
    /// it has written so far, as if its process were killed now. `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn latest_so_far(&self, tag: &Tag) -> Result<Option<SavedRun>, StoreError> {
        let filter = Filter { tags: vec![tag.clone()], limit: Some(1), ..Filter::default() };
        let Some(row) = self.list(&filter)?.into_iter().next() else { return Ok(None) };
        if let Some(run) = self.read(row.number)? {
            return Ok(Some(run));
        }
        let sql = "SELECT beginning FROM runs WHERE number = ?1";
        let beginning = self.db.query_row(sql, [row.number], |row| row.get::<_, String>(0));
        self.unfinished(row.number, &beginning.map_err(|error| self.failed(error))?, Cut::Killed)
    }

    /// Rebuilds the result of a run without an end from the intervals and parts that it had written, and from
    /// `beginning`. `None` if `beginning` cannot be read.
    pub(crate) fn unfinished(
        &self,
        number: i64,
        beginning: &str,
        cut: Cut,
    ) -> Result<Option<SavedRun>, StoreError> {
        let Ok(beginning) = serde_json::from_str::<Beginning>(beginning) else { return Ok(None) };
        let (intervals, parts) = self.told(number).map_err(|error| self.failed(error))?;
        Ok(Some(SavedRun::unfinished(beginning, intervals, parts, cut)))
    }

    /// Reads a run that goes on, by its number, as far as it has written; `None` if it does not go on, or has
    /// written nothing that can be read.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn so_far(&self, number: i64) -> Result<Option<SavedRun>, StoreError> {
        let sql = "SELECT beginning FROM runs WHERE number = ?1 AND state = 'running'";
        let beginning = self.db.query_row(sql, [number], |row| row.get::<_, String>(0)).optional();
        match beginning.map_err(|error| self.failed(error))? {
            Some(beginning) => self.unfinished(number, &beginning, Cut::Ongoing),
            None => Ok(None),
        }
    }

    fn running(&self) -> rusqlite::Result<Vec<Running>> {
        let sql = "SELECT number, process, heard_unix_ns, beginning FROM runs WHERE state = 'running'";
        let mut statement = self.db.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(Running {
                number: row.get(0)?,
                process: row.get(1)?,
                heard: Nanos(row.get::<_, i64>(2)?.cast_unsigned()),
                beginning: row.get(3)?,
            })
        })?;
        rows.collect()
    }

    /// Marks a run as killed of which nothing can be read.
    fn give_up(&self, run: i64) -> rusqlite::Result<()> {
        let sql = "UPDATE runs SET state = 'killed', valid = FALSE, invalid_reasons = 'unfinished' WHERE number = ?1 AND \
                   state = 'running'";
        self.db.execute(sql, [run]).map(drop)
    }

    /// Returns the intervals and parts that a run has written.
    fn told(&self, run: i64) -> rusqlite::Result<(Vec<IntervalResult>, Vec<Part>)> {
        let mut statement = self.db.prepare("SELECT line FROM intervals WHERE run = ?1 ORDER BY number")?;
        let lines = statement.query_map([run], |row| row.get::<_, String>(0))?;
        let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
        // A line that cannot be read comes from another version: the parts have the figures.
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
    process: String,
    heard: Nanos,
    beginning: String,
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use plimsoll_histogram::Histogram;
    use plimsoll_histogram::{Cursor, Delta};
    use plimsoll_metrics::interval::MOST_INTERVALS;
    use plimsoll_metrics::{Interval, IntervalDownsampler, Outline, Tally};
    use plimsoll_report::RunContext;
    use plimsoll_report::agent::TakenOver;
    use plimsoll_report::result::ModelKind;
    use plimsoll_report::saved::MOST_PARTS;

    use super::*;
    use crate::{Labels, Ongoing, Origin, Row};

    /// A file of a test's own. It goes with this.
    struct File(PathBuf);

    impl File {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("plimsoll-store-{}-{name}", std::process::id()));
            Self(folder.join("history.db"))
        }

        fn open(&self) -> Store {
            let (store, aside) = Store::open(&self.0, Origin::Named, 7).unwrap();
            assert_eq!(aside, None);
            store
        }

        fn begin(&self, id: &str) -> Ongoing {
            let tag = |text: &str| text.parse::<Tag>().unwrap();
            let labels = Labels { name: Some("nightly".to_owned()), tags: vec![tag("a=b"), tag("a=c")] };
            let interval = Nanos::from_secs(1);
            let keeper = IntervalDownsampler::new(interval, None, vec![interval * 2], Outline::default());
            self.open().begin(&beginning(id), keeper, &labels, "maker").unwrap()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            // The system cleans up files that cannot be removed.
            let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
        }
    }

    fn beginning(id: &str) -> Beginning {
        Beginning {
            context: RunContext { run_id: id.to_owned(), ..RunContext::default() },
            model: ModelKind::Open,
            started_unix_ns: 1_772_366_400_250_000_000,
            warmup_ns: 2_000_000_000,
            steps: vec![("one".to_owned(), String::new()), ("two".to_owned(), String::new())],
            plan: Some("run: {}".to_owned()),
        }
    }

    /// The interval of a second: two steps, the first with as many requests as its number.
    fn interval(second: u64) -> Interval {
        let tally = |count: u64| {
            let mut histogram = Histogram::new();
            (0..count).for_each(|i| histogram.record(1_000_000 + second * 1_000 + i));
            let mut delta = Delta::default();
            Cursor::new().advance(&histogram, &mut delta);
            let limits = histogram.min().zip(histogram.max());
            let sum = histogram.sum();
            let (started, ok, completed) = (count, count, count);
            Tally {
                started,
                ok,
                completed,
                response_time: delta,
                response_time_sum: sum,
                limits,
                ..Tally::default()
            }
        };
        Interval {
            at: Nanos::from_secs(second),
            length: Nanos::from_secs(1),
            warmup: second <= 2,
            ok: second + 1,
            steps: vec![tally(second), tally(1)],
            ..Interval::default()
        }
    }

    fn count(store: &Store, table: &str) -> usize {
        let sql = format!("SELECT count(*) FROM {table}");
        store.db.query_one(&sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize
    }

    #[test]
    fn what_a_killed_process_had_told_is_a_run_and_takes_bounded_room() {
        let file = File::new("killed");
        let mut ongoing = file.begin("9e3779b97f4a7c15");
        let last = 2 * MOST_PARTS as u64 + 9;
        (1..=last).for_each(|second| ongoing.note(&interval(second), Nanos(second)).unwrap());
        drop(ongoing);
        let mut store = file.open();
        assert_eq!(count(&store, "intervals"), last as usize);
        assert!(count(&store, "parts") <= MOST_PARTS + 2);
        // The process of this run lives, so the run goes on.
        let asked = |process: &str, heard: Nanos| process == "maker" && heard == Nanos(last);
        assert_eq!(store.settle(asked).unwrap(), 0);
        assert_eq!(store.list(&Filter::default()).unwrap()[0].state, State::Running);
        assert_eq!(store.settle(|process, heard| !asked(process, heard)).unwrap(), 1);
        assert_eq!(store.settle(|_, _| false).unwrap(), 0);
        let row = store.list(&Filter::default()).unwrap().remove(0);
        assert_eq!(
            (row.state, row.valid, row.name.as_deref()),
            (State::Killed, Some(false), Some("nightly"))
        );
        assert_eq!(row.tags.iter().map(Tag::to_string).collect::<Vec<_>>(), ["a=c"]);
        let run = store.read(row.number).unwrap().unwrap();
        let measured: u64 = (3..=last).sum();
        assert_eq!((run.steps[0].ok, run.steps[1].ok), (measured, last - 2));
        assert_eq!(run.steps[0].response_time.count(), measured);
        let whole: u128 =
            (3..=last).flat_map(|s| (0..s).map(move |i| u128::from(1_000_000 + s * 1_000 + i))).sum();
        assert_eq!(run.steps[0].response_time.sum(), whole);
        assert_eq!((run.result.duration_s, run.result.intervals.len()), ((last - 2) as f64, last as usize));
        assert_eq!((count(&store, "intervals"), count(&store, "parts")), (0, 0));
        store.remove(&[row.number]).unwrap();
        assert_eq!((count(&store, "runs"), count(&store, "tags")), (0, 0));
    }

    /// Symptom: of a killed process that had taken a shard over, nobody knew from when on it had it.
    #[test]
    fn what_is_known_later_of_a_beginning_is_in_the_run_of_a_killed_process() {
        let file = File::new("amended");
        let mut ongoing = file.begin("7a4e");
        let taken_over = Some(TakenOver { from_s: 15.0, arrivals_before: 1_500 });
        let mut beginning = beginning("7a4e");
        beginning.context.taken_over = taken_over;
        ongoing.amend(&beginning).unwrap();
        ongoing.note(&interval(3), Nanos(3)).unwrap();
        drop(ongoing);
        let store = file.open();
        let tag = Tag { name: "a".to_owned(), value: "c".to_owned() };
        let run = store.latest_so_far(&tag).unwrap().unwrap();
        assert_eq!((run.result.run.taken_over, run.result.accounting.started), (taken_over, 4));
        assert_eq!(store.values_of("a", "").unwrap(), ["c"]);
        assert!(
            store.values_of("a", "b").unwrap().is_empty() && store.values_of("b", "").unwrap().is_empty()
        );
    }

    #[test]
    fn a_run_that_goes_on_is_read_as_far_as_it_has_come() {
        let file = File::new("going");
        let mut ongoing = file.begin("60a1");
        let store = file.open();
        let outline = store.outline("60a1").unwrap().unwrap();
        let number = outline.number;
        assert_eq!(outline.process.as_deref(), Some("maker"));
        let mut seen = Vec::new();
        for second in 1..=6 {
            ongoing.note(&interval(second), Nanos(second)).unwrap();
            let run = store.so_far(number).unwrap().unwrap();
            seen.push((run.result.intervals.len(), run.result.accounting.ok, run.result.verdict.valid));
        }
        // Two seconds of warm-up, after which there is something to judge.
        assert_eq!(
            seen,
            [(1, 0, false), (2, 0, false), (3, 4, true), (4, 9, true), (5, 15, true), (6, 22, true)]
        );
        let verdict = store.so_far(number).unwrap().unwrap().result.verdict;
        assert!(verdict.warnings[0].evidence.starts_with("the run goes on: "), "{:?}", verdict.warnings);
        let mut whole = store.so_far(number).unwrap().unwrap();
        // Symptom: the iterations of a run that goes on were 0/s.
        assert_eq!(whole.result.rate.iterations_started_per_s, None);
        whole.result.response_time.at_least = vec!["99".to_owned()];
        ongoing.finish(&whole).unwrap();
        assert_eq!(store.so_far(number).unwrap(), None);
        assert_eq!(store.outline("60a1").unwrap().unwrap().process, None);
        let row = store.latest(0).unwrap().unwrap();
        assert_eq!((row.is_at_least("50"), row.is_at_least("99")), (false, true));
        assert_eq!(store.so_far(99).unwrap(), None);
    }

    #[test]
    fn a_killed_run_does_not_stay_running_where_nothing_can_be_written() {
        let file = File::new("full");
        let mut ongoing = file.begin("f1");
        (1..=9).for_each(|second| ongoing.note(&interval(second), Nanos(second)).unwrap());
        drop(ongoing);
        drop(file.begin("f2"));
        let mut store = file.open();
        store.db.pragma_update(None, "query_only", true).unwrap();
        assert_eq!(store.settle(|_, _| false).unwrap(), 2);
        let rows = store.list(&Filter::default()).unwrap();
        assert!(rows.iter().all(|row| row.state == State::Killed && row.valid == Some(false)), "{rows:?}");
        assert_eq!(store.latest(0).unwrap().unwrap().state, State::Killed);
        let first = store.by_id("f1").unwrap().remove(0);
        assert_eq!((first.state, &*first.invalid_reasons), (State::Killed, &["unfinished".to_owned()][..]));
        assert_eq!(store.read(first.number).unwrap().unwrap().steps[0].ok, (3..=9).sum::<u64>());
        // With room again they are written.
        let mut store = file.open();
        assert_eq!(store.list(&Filter::default()).unwrap()[0].state, State::Running);
        assert_eq!(store.settle(|_, _| false).unwrap(), 2);
        assert_eq!(file.open().list(&Filter::default()).unwrap()[0].state, State::Killed);
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let file = File::new("kinds");
        let folder = file.0.parent().unwrap();
        std::fs::create_dir_all(folder).unwrap();
        let (pipe, socket) = (folder.join("pipe"), folder.join("socket"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, kind) in [
            (folder, "a folder"),
            (&pipe, "a pipe"),
            (&socket, "a socket"),
            (std::path::Path::new("/dev/null"), "a device"),
        ] {
            for error in [Store::open(path, Origin::Named, 7).err(), Store::open_existing(path).err()] {
                let error = error.expect("it is refused");
                assert!(!error.is_of_place() && error.to_string().contains(kind), "{error}");
            }
        }
        drop(listener);
    }

    #[test]
    fn the_rows_of_a_long_run_are_bounded_and_nothing_is_lost() {
        let file = File::new("long");
        let mut ongoing = file.begin("l1");
        let last = 2 * MOST_INTERVALS + 11;
        let bare = |second| Interval { steps: Vec::new(), ..interval(second) };
        (1..=last).for_each(|second| ongoing.note(&bare(second), Nanos(second)).unwrap());
        drop(ongoing);
        let mut store = file.open();
        let rows = count(&store, "intervals") as u64;
        assert!(rows <= MOST_INTERVALS + 1, "{rows}");
        store.settle(|_, _| false).unwrap();
        let intervals = store.read(1).unwrap().unwrap().result.intervals;
        assert_eq!(intervals.len() as u64, rows);
        assert_eq!(intervals.iter().map(|one| one.ok).sum::<u64>(), (2..=last + 1).sum::<u64>());
        assert!(intervals.is_sorted_by(|a, b| a.at_s < b.at_s));
        assert_eq!(intervals.iter().map(|one| u64::from(one.joined) + 1).sum::<u64>(), last);
    }

    #[test]
    fn a_run_that_was_given_up_too_early_comes_to_its_end() {
        let file = File::new("early");
        let mut ongoing = file.begin("a1");
        ongoing.note(&interval(3), Nanos(3)).unwrap();
        assert_eq!(file.open().settle(|_, _| false).unwrap(), 1);
        let store = file.open();
        let run = store.read(1).unwrap().unwrap();
        ongoing.note(&interval(4), Nanos(4)).unwrap();
        let mut longer = run;
        longer.result.duration_s = 7.0;
        ongoing.finish(&longer).unwrap();
        let row = store.list(&Filter::default()).unwrap().remove(0);
        assert_eq!((row.state, row.duration_s), (State::Finished, Some(7.0)));
        assert_eq!(store.read(1).unwrap(), Some(longer));
    }

    #[test]
    fn ids_are_found_by_their_begins() {
        let file = File::new("ids");
        for id in ["ab", "abc", "b_"] {
            drop(file.begin(id));
        }
        let store = file.open();
        let found =
            |begin: &str| store.by_id(begin).unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>();
        assert_eq!(
            (found("a"), found("ab"), found("abc")),
            (vec!["abc".to_owned(), "ab".to_owned()], vec!["ab".to_owned()], vec!["abc".to_owned()])
        );
        assert_eq!((found("x"), found("b%"), found("__")), (vec![], vec![], vec![]));
        file.begin("c1").abandon().unwrap();
        // None of them has written an interval, and one not even its beginning.
        store.db.execute("UPDATE runs SET beginning = '{}' WHERE id = 'ab'", []).unwrap();
        assert_eq!(file.open().settle(|_, _| false).unwrap(), 3);
        let runs = store.list(&Filter::default()).unwrap();
        assert!(runs.iter().all(|row| row.state == State::Killed && row.valid == Some(false)), "{runs:?}");
        let read = |row: &Row| store.read(row.number).unwrap().map(|run| run.result.accounting.started);
        assert_eq!(runs.iter().map(read).collect::<Vec<_>>(), [Some(0), Some(0), None]);
        assert_eq!(store.latest(0).unwrap().map(|row| row.id).as_deref(), Some("b_"));
        assert_eq!(store.latest(3).unwrap(), None);
    }

    #[test]
    fn a_store_of_a_later_version_is_not_touched() {
        let file = File::new("later");
        drop(file.open());
        let db = rusqlite::Connection::open(&file.0).unwrap();
        db.pragma_update(None, "user_version", 99).unwrap();
        drop(db);
        let error = Store::open(&file.0, Origin::Usual, 7).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { found: 99, .. }), "{error}");
        assert!(!error.is_of_place() && error.hint().contains("a later one"));
        // Nor is another program's database changed.
        let other = File::new("other");
        std::fs::create_dir_all(other.0.parent().unwrap()).unwrap();
        let db = rusqlite::Connection::open(&other.0).unwrap();
        db.execute_batch("CREATE TABLE bookmarks (url)").unwrap();
        drop(db);
        let error = Store::open(&other.0, Origin::Usual, 7).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    }
}
