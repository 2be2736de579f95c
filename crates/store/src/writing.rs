//! Writing runs: at their beginning, while they go on, and at their end.

use plimsoll_core::Nanos;
use plimsoll_metrics::{Interval, IntervalDownsampler, Slice};
use plimsoll_report::result::{IntervalResult, ModelKind, OutcomeResult, RunResult, Thresholds};
use plimsoll_report::saved::{Beginning, MOST_PARTS, Part, PartKind, tallies_to_bytes};
use plimsoll_report::{Format, ReadError, SavedRun, Searched, Style, rfc3339};
use plimsoll_statistics::Join as _;
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params, params};

use crate::reading::{self, kind_number};
use crate::{Kind, State, Store, StoreError, Tag};

/// The name and the tags of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Name of the run, which other runs may have, too.
    pub name: Option<String>,
    /// Tags of the run; of two with the same word the later one holds.
    pub tags: Vec<Tag>,
}

/// A run under way, in the store. A run that is dropped without an end keeps its last state.
#[derive(Debug)]
pub struct Ongoing {
    store: Store,
    number: i64,
    id: String,
    keeper: IntervalDownsampler,
    /// The intervals that are kept. Each of them is a row.
    intervals: Vec<Interval>,
    /// Number of them whose rows are up to date.
    written: usize,
    parts: [Parts; 3],
}

/// The parts of one kind.
#[derive(Debug, Default)]
struct Parts {
    /// Number of parts.
    count: usize,
    /// Number of intervals that make one part: a power of two.
    intervals_per_part: usize,
    /// Number of intervals that the last part has so far.
    intervals_of_last: usize,
    last: Option<Slice>,
}

impl Store {
    /// Writes that a run begins, of which `keeper` keeps the intervals. `process` identifies its process, in
    /// words that [`settle`](Self::settle) will ask about.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        mut self,
        beginning: &Beginning,
        keeper: IntervalDownsampler,
        labels: &Labels,
        process: &str,
    ) -> Result<Ongoing, StoreError> {
        let number = begin(&mut self.db, beginning, labels, process).map_err(|error| self.failed(error))?;
        let id = beginning.context.run_id.clone();
        let (intervals, written, parts) = (Vec::new(), 0, Default::default());
        Ok(Ongoing { store: self, number, id, keeper, intervals, written, parts })
    }

    /// Keeps the result of a search or a sweep that is over.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is.
    pub fn keep(&mut self, searched: &Searched, labels: &Labels) -> Result<(), StoreError> {
        let mut result = Vec::new();
        let written = searched.render(Format::Json, &Style::PLAIN, &mut result);
        let result = written
            .map_err(|error| error.to_string())
            .and_then(|()| String::from_utf8(result).map_err(|error| error.to_string()));
        let result = result.map_err(|reason| StoreError::Unusable { path: self.path.clone(), reason })?;
        keep(&mut self.db, searched, labels, &result).map_err(|error| self.failed(error))
    }

    /// Removes runs by their numbers. Those that are not there are no error.
    ///
    /// # Errors
    /// If it cannot be written; then none is removed.
    pub fn remove(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        let removed = (|| {
            let step = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for number in numbers {
                step.execute("DELETE FROM runs WHERE number = ?1", [number])?;
            }
            step.commit()
        })();
        removed.map_err(|error| self.failed(error))
    }

    /// Writes the end of run `number`, unless it is written already.
    pub(crate) fn end(&mut self, number: i64, run: &SavedRun, state: State) -> Result<(), StoreError> {
        let written = (run.to_bytes(), serde_json::to_string(&run.result));
        let (saved, result) = match written {
            (Ok(saved), Ok(result)) => (saved, result),
            (saved, result) => {
                let reasons = [saved.err().map(|e| e.to_string()), result.err().map(|e| e.to_string())];
                let reason = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
                return Err(StoreError::Unusable { path: self.path.clone(), reason });
            }
        };
        end(&mut self.db, number, run, state, &saved, &result).map_err(|error| self.failed(error))
    }
}

impl Ongoing {
    /// Returns the id of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Writes what is known of the beginning once more, if more is known by now.
    ///
    /// # Errors
    /// If it cannot be written; then it stays as it was.
    pub fn amend(&mut self, beginning: &Beginning) -> Result<(), StoreError> {
        let text = serde_json::to_string(beginning).unwrap_or_default();
        let sql = "UPDATE runs SET beginning = ?2 WHERE number = ?1";
        let written = self.store.db.execute(sql, params![self.number, text]);
        written.map(drop).map_err(|error| self.store.failed(error))
    }

    /// Writes an interval, in one transaction. `interval` still has its steps.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is.
    pub fn note(&mut self, interval: &Interval, unix: Nanos) -> Result<(), StoreError> {
        let slice = Slice {
            at: interval.at,
            length: interval.length,
            steps: interval.steps.clone(),
            ..Slice::default()
        };
        let part = Part { kind: PartKind::of(interval), slice };
        let Self { store, number, keeper, intervals, written, parts, .. } = self;
        let before = intervals.len();
        keeper.add(intervals, &mut Vec::new(), interval.clone(), None);
        // The last interval may have been joined with the new one; if there are fewer now, all were joined.
        let changed = if intervals.len() < before { 0 } else { before.saturating_sub(1) };
        *written = changed.min(*written);
        let step = store
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| StoreError::of(&store.path, error))?;
        let place = kind_number(part.kind);
        note(&step, *number, intervals, *written, unix)
            .map_err(|error| StoreError::of(&store.path, error))?;
        let kept = add(&step, *number, &parts[place], part, &store.path)?;
        step.commit().map_err(|error| StoreError::of(&store.path, error))?;
        (parts[place], *written) = (kept, intervals.len());
        Ok(())
    }

    /// Writes the finished run.
    ///
    /// # Errors
    /// If it cannot be written; then it stays as it was written last.
    pub fn finish(mut self, run: &SavedRun) -> Result<(), StoreError> {
        self.store.end(self.number, run, State::Finished)
    }

    /// Writes the known part of a run that did not reach its end, as that of a killed one.
    ///
    /// # Errors
    /// If it cannot be written; then it keeps its last state.
    pub fn cut(mut self, run: &SavedRun) -> Result<(), StoreError> {
        self.store.end(self.number, run, State::Killed)
    }

    /// Takes back a run that never came to anything.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn abandon(mut self) -> Result<(), StoreError> {
        self.store.remove(&[self.number])
    }
}

fn begin(
    db: &mut Connection,
    beginning: &Beginning,
    labels: &Labels,
    process: &str,
) -> rusqlite::Result<i64> {
    let context = &beginning.context;
    let (name, plan) = (&labels.name, &beginning.plan);
    let target = context.targets.first().map(|target| target.urls.first().unwrap_or(&target.authority));
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step.execute(
        "INSERT INTO runs (id, name, state, started_at, started_unix_ns, process, heard_unix_ns, tool_version, plan_hash,
             load_checksum, seed, model, target, plan, beginning)
         VALUES (:id, :name, 'running', :started_at, :started, :process, :started, :tool, :plan_hash,
             :load_checksum, :seed, :model, :target, :plan, :beginning)",
        named_params! {
            ":id": context.run_id,
            ":name": name,
            ":started_at": rfc3339(Nanos(beginning.started_unix_ns)),
            ":started": beginning.started_unix_ns.cast_signed(),
            ":process": process,
            ":tool": context.tool_version,
            ":plan_hash": context.plan_hash,
            ":load_checksum": context.load_checksum,
            ":seed": context.seed.cast_signed(),
            ":model": model(beginning.model),
            ":target": target.map_or("", String::as_str),
            ":plan": plan,
            // Without it the run could not be reconstructed if its process is killed.
            ":beginning": serde_json::to_string(beginning).unwrap_or_default(),
        },
    )?;
    let number = step.last_insert_rowid();
    tag(&step, number, labels)?;
    step.commit()?;
    Ok(number)
}

fn tag(step: &Transaction<'_>, number: i64, labels: &Labels) -> rusqlite::Result<()> {
    for Tag { name, value } in &labels.tags {
        step.execute(
            "INSERT OR REPLACE INTO tags (run, tag, value) VALUES (?1, ?2, ?3)",
            params![number, name, value],
        )?;
    }
    Ok(())
}

fn keep(db: &mut Connection, searched: &Searched, labels: &Labels, result: &str) -> rusqlite::Result<()> {
    let (kind, model) = match searched {
        Searched::Capacity(_) => (Kind::Search, ModelKind::Open),
        Searched::Sweep(sweep) if sweep.setting == "rate" => (Kind::Sweep, ModelKind::Open),
        Searched::Sweep(_) => (Kind::Sweep, ModelKind::Closed),
    };
    let circumstances = searched.circumstances();
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step.execute(
        "INSERT INTO runs (id, kind, name, state, started_at, started_unix_ns, tool_version, plan_hash, seed, model,
             target, duration_s, valid, result, answer, outcome)
         VALUES (:id, :kind, :name, 'finished', :started_at, :started, :tool, :plan_hash, :seed, :model,
             :target, :duration_s, :valid, :result, :answer, :outcome)",
        named_params! {
            ":id": circumstances.id,
            ":kind": kind.name(),
            ":name": labels.name,
            ":started_at": circumstances.started_at,
            ":started": circumstances.started_at_unix_ns.cast_signed(),
            ":tool": searched.tool().version,
            ":plan_hash": circumstances.plan_hash,
            ":seed": circumstances.seed.cast_signed(),
            ":model": self::model(model),
            ":target": circumstances.targets.first().map_or("", String::as_str),
            ":duration_s": circumstances.duration_s,
            ":valid": searched.outcome() != OutcomeResult::NoVerdict,
            ":result": result,
            ":answer": searched.headline(),
            ":outcome": searched.outcome().name(),
        },
    )?;
    tag(&step, step.last_insert_rowid(), labels)?;
    step.commit()
}

const fn model(model: ModelKind) -> &'static str {
    match model {
        ModelKind::Open => "open",
        ModelKind::Closed => "closed",
    }
}

fn note(
    step: &Transaction<'_>,
    run: i64,
    intervals: &[Interval],
    written: usize,
    unix: Nanos,
) -> rusqlite::Result<()> {
    let mut row = step.prepare(
        "INSERT INTO intervals (run, number, line) VALUES (?1, ?2, ?3)
         ON CONFLICT (run, number) DO UPDATE SET line = excluded.line",
    )?;
    for (number, interval) in intervals.iter().enumerate().skip(written) {
        let line = serde_json::to_string(&IntervalResult::new(interval)).unwrap_or_default();
        row.execute(params![run, number as i64, line])?;
    }
    if written == 0 {
        let sql = "DELETE FROM intervals WHERE run = ?1 AND number >= ?2";
        step.execute(sql, params![run, intervals.len() as i64])?;
    }
    let heard = unix.0.cast_signed();
    step.execute("UPDATE runs SET heard_unix_ns = ?2 WHERE number = ?1", params![run, heard])?;
    Ok(())
}

/// Adds a part, as [`plimsoll_statistics::SliceKeeper`] does in memory. The kept state is valid once the
/// transaction is committed.
fn add(
    step: &Transaction<'_>,
    run: i64,
    kept: &Parts,
    part: Part,
    path: &std::path::Path,
) -> Result<Parts, StoreError> {
    let failed = |error| StoreError::of(path, error);
    let kind = part.kind;
    let mut whole = kept.intervals_per_part.max(1);
    if let Some(last) = kept.last.as_ref().filter(|_| kept.intervals_of_last < whole) {
        let mut last = last.clone();
        last.join(part.slice);
        write(step, run, kind, kept.count - 1, &last, path)?;
        let intervals_of_last = kept.intervals_of_last + 1;
        return Ok(Parts {
            count: kept.count,
            intervals_per_part: whole,
            intervals_of_last,
            last: Some(last),
        });
    }
    let mut count = kept.count;
    if count == MOST_PARTS {
        let mut all = reading::parts_of(step, run, kind).map_err(failed)?.into_iter();
        step.execute(
            "DELETE FROM parts WHERE run = ?1 AND kind = ?2",
            params![run, kind_number(kind) as i64],
        )
        .map_err(failed)?;
        (count, whole) = (0, whole * 2);
        while let Some(mut part) = all.next() {
            if let Some(later) = all.next() {
                part.join(later);
            }
            write(step, run, kind, count, &part, path)?;
            count += 1;
        }
    }
    write(step, run, kind, count, &part.slice, path)?;
    Ok(Parts { count: count + 1, intervals_per_part: whole, intervals_of_last: 1, last: Some(part.slice) })
}

fn write(
    step: &Transaction<'_>,
    run: i64,
    kind: PartKind,
    number: usize,
    slice: &Slice,
    path: &std::path::Path,
) -> Result<(), StoreError> {
    let tallies = tallies_to_bytes(&slice.steps)
        .map_err(|error| StoreError::Unusable { path: path.to_owned(), reason: error.to_string() })?;
    let (kind, number) = (kind_number(kind) as i64, number as i64);
    let (at, length) = (slice.at.0.cast_signed(), slice.length.0.cast_signed());
    let sql = "INSERT OR REPLACE INTO parts (run, kind, number, at_ns, length_ns, tallies) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    step.execute(sql, params![run, kind, number, at, length, tallies])
        .map_err(|error| StoreError::of(path, error))?;
    Ok(())
}

fn end(
    db: &mut Connection,
    number: i64,
    run: &SavedRun,
    state: State,
    saved: &[u8],
    result: &str,
) -> rusqlite::Result<()> {
    let RunResult { run: circumstances, rate, accounting, verdict, .. } = &run.result;
    let (response, service) = (&run.result.response_time, &run.result.service_time);
    let thresholds = match verdict.thresholds {
        Thresholds::Pass => "pass",
        Thresholds::Fail => "fail",
        Thresholds::None => "none",
    };
    let signed = |value: Option<u64>| value.map(u64::cast_signed);
    let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let changed = step.execute(
        "UPDATE runs SET state = :state, started_at = :started_at, started_unix_ns = :started_unix_ns, process = NULL,
             heard_unix_ns = NULL, beginning = NULL, duration_s = :duration_s, target_per_s = :target_per_s,
             achieved_per_s = :achieved_per_s, started = :started, ok = :ok, failed = :failed,
             timed_out = :timed_out,
             response_time_p50_ns = :rp50, response_time_p90_ns = :rp90, response_time_p99_ns = :rp99,
             response_time_p99_9_ns = :rp99_9, response_time_max_ns = :rmax,
             service_time_p50_ns = :sp50, service_time_p90_ns = :sp90, service_time_p99_ns = :sp99,
             service_time_p99_9_ns = :sp99_9, service_time_max_ns = :smax,
             cpu_us_per_request = :cpu, valid = :valid, invalid_reasons = :reasons, thresholds = :thresholds,
             result = :result, saved = :saved
         WHERE number = :number AND state IN ('running', :replaced)",
        named_params! {
            ":number": number,
            // A run that was taken for killed, and reaches its end after all.
            ":replaced": if state == State::Finished { "killed" } else { "" },
            ":state": state.name(),
            ":started_at": circumstances.started_at,
            ":started_unix_ns": circumstances.started_at_unix_ns.cast_signed(),
            ":duration_s": run.result.duration_s,
            ":target_per_s": rate.target_per_s,
            ":achieved_per_s": rate.achieved_per_s,
            ":started": accounting.started.cast_signed(),
            ":ok": accounting.ok.cast_signed(),
            ":failed": accounting.failed.cast_signed(),
            ":timed_out": accounting.timed_out.cast_signed(),
            ":rp50": signed(response.p.p50),
            ":rp90": signed(response.p.p90),
            ":rp99": signed(response.p.p99),
            ":rp99_9": signed(response.p.p99_9),
            ":rmax": signed(response.max),
            ":sp50": signed(service.p.p50),
            ":sp90": signed(service.p.p90),
            ":sp99": signed(service.p.p99),
            ":sp99_9": signed(service.p.p99_9),
            ":smax": signed(service.max),
            ":cpu": run.result.generator.cpu_us_per_request,
            ":valid": verdict.valid,
            ":reasons": verdict.invalid_reasons.join(" "),
            ":thresholds": thresholds,
            ":result": result,
            ":saved": saved,
        },
    )?;
    if changed > 0 {
        step.execute("DELETE FROM intervals WHERE run = ?1", [number])?;
        step.execute("DELETE FROM parts WHERE run = ?1", [number])?;
    }
    step.commit()
}

impl StoreError {
    pub(crate) fn of_run(id: &str, reason: ReadError) -> Self {
        Self::Run { id: id.to_owned(), reason }
    }
}
