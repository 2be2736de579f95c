//! Data sources: rows of values, one for each iteration.

mod csv;
mod file;
mod json;
pub(crate) mod permutation;
mod records;
mod turn;

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Random, Shard};

use crate::Session;
use crate::pool::{Pool, PoolSpec, Row, pool_of};
use file::{Destination, Format, Head, Indexed, Stream};
use turn::Turn;

/// The data sources of a plan, as one worker draws from them.
///
/// Nothing is shared that could change, so no draw takes a lock; files are read in blocks of 64 KiB as their
/// rows are taken. Of files that are [shuffled](Order::Shuffled) or [drawn from](Order::Random) the places of
/// all rows are in memory, 8 bytes each; the rows themselves, too, if the file has at most 64 MiB, else each
/// draw reads its row from the file.
#[derive(Debug, Default)]
pub struct Feeds {
    feeds: Vec<Feed>,
    /// Rows that iterations keep for each other.
    pools: Vec<Pool>,
}

/// Specification of a data source, before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSpec {
    /// Name of the source in the plan.
    pub name: String,
    /// The source of its rows.
    pub rows: Rows,
    /// The variable (its position) that each column of a row goes into; `None`: it is not used. A range has
    /// one column.
    pub columns: Vec<Option<u16>>,
    /// In which order rows are taken.
    pub order: Order,
    /// Behaviour after the last row.
    pub at_end: AtEnd,
    /// Which rows a worker has.
    pub share: Share,
    /// Lifetime of a row.
    pub per: Per,
}

/// A source of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The whole numbers from `start` up to, not including, `end`, with leading zeros up to `width` digits.
    Range {
        /// The first.
        start: u64,
        /// Behind the last.
        end: u64,
        /// Digits.
        width: u8,
    },
    /// Rows in memory. Every value is fit for a header.
    List(std::sync::Arc<[Vec<Vec<u8>>]>),
    /// A CSV file (RFC 4180), streamed. Empty lines are skipped, and so is a byte order mark in front of
    /// it. Values need not be UTF-8.
    Csv {
        /// The file.
        path: std::path::PathBuf,
        /// Between values.
        delimiter: u8,
        /// `true` if the first row has names.
        header: bool,
    },
    /// A file of JSON objects, one a line, streamed; a column is a member of the object. Strings are values
    /// without their quotes and escapes, anything else is one as it is written. Empty lines are skipped.
    JsonLines {
        /// The file.
        path: std::path::PathBuf,
        /// Names of the members, in the order of the columns.
        members: Vec<String>,
    },
}

/// In which order rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// Drawn, with replacement: there is no end.
    Random,
    /// Each once, in a random order that the seed of the plan chooses. After the end it is the same again.
    Shuffled,
    /// From this many parts of equal length in turn, at least 1: the first row of each, then the second of
    /// each. If the rows do not divide evenly, the first parts have one more. With [`AtEnd::Wrap`] each part
    /// begins again behind its own last row, so that every n-th row stays one of the same part. There are no
    /// more parts than rows.
    Slices(u32),
}

/// Behaviour after the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// From the first one of the worker again.
    Wrap,
    /// No more iterations are begun.
    Stop,
    /// Iterations fail.
    Fail,
}

/// Which rows a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A part of its own: no row is given out by two workers. Of `W` workers, number `w` has the rows `w`, `w
    /// + W` and so on, of those in a random order if they are shuffled.
    Split,
    /// All of them.
    Whole,
}

/// Lifetime of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Every iteration takes one.
    Iteration,
    /// Every user of the closed model takes one, with its first iteration, and has it for all of them.
    User,
}

/// Reason why a row is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// The source has ended ([`AtEnd::Stop`]).
    Ended,
    /// The source has ended ([`AtEnd::Fail`]), or could not be read; the reason in words.
    Failed(String),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the data has ended"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for FeedError {}

impl Rows {
    /// The names in the file: the first row of a CSV file, the members of the first object of JSON lines.
    /// None for rows that are in no file.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or its first record is malformed.
    pub fn names(&self) -> Result<Vec<String>, String> {
        file::names(self)
    }
}

impl FeedSpec {
    /// Finds problems before the run: settings that do not fit together, a file that cannot be read or has no
    /// rows, malformed rows that begin within its first `length` bytes, each with its line, and a file of at
    /// most that length that has too few of them for so many workers. Stops at the 20th problem. The messages
    /// do not name the source.
    pub fn problems(&self, length: usize, workers: u32) -> Vec<String> {
        if let Err(problem) = self.check_shape() {
            return vec![problem];
        }
        let Some(format) = Format::of(&self.rows) else { return Vec::new() };
        let mut head = self.with_no_destination(|into| Head::read(&format, length, MOST_PROBLEMS, into));
        let is_short = head.is_whole && self.share == Share::Split && head.rows < u64::from(workers);
        if head.problems.is_empty() && is_short && self.gives_for_ever() {
            head.problems.push(too_few(workers));
        }
        head.problems
    }

    /// Returns `true` if there is neither an end of the rows nor an error that may show later.
    fn gives_for_ever(&self) -> bool {
        self.at_end == AtEnd::Wrap || self.order == Order::Random
    }

    /// Checks everything that can be known without reading files.
    fn check_shape(&self) -> Result<(), String> {
        let columns = self.columns.len();
        match &self.rows {
            Rows::Range { start, end, .. } if start >= end => {
                Err(format!("the range from {start} to {end} is empty; its end is excluded"))
            }
            Rows::Range { .. } if columns != 1 => Err(format!("a range has one column, not {columns}")),
            Rows::List(rows) if rows.is_empty() => Err("there are no rows".to_owned()),
            Rows::List(rows) => {
                (1..).zip(rows.iter()).try_for_each(|(number, row)| match row.len() == columns {
                    true => Ok(()),
                    false => Err(format!("row {number}: {} values, but {columns} columns", row.len())),
                })
            }
            Rows::Csv { delimiter: b'"' | b'\r' | b'\n' | 0, .. } => {
                Err("the delimiter of a CSV file cannot be a quote, a line break or NUL".to_owned())
            }
            Rows::JsonLines { members, .. } if members.len() != columns => {
                Err(format!("{} members, but {columns} columns", members.len()))
            }
            Rows::Range { .. } | Rows::Csv { .. } | Rows::JsonLines { .. } => Ok(()),
        }
    }

    /// Returns the number of rows; `None` if that takes reading a file to its end.
    pub fn count(&self) -> Option<u64> {
        match &self.rows {
            Rows::Range { start, end, .. } => Some(end.saturating_sub(*start)),
            Rows::List(rows) => Some(rows.len() as u64),
            Rows::Csv { .. } | Rows::JsonLines { .. } => None,
        }
    }

    /// Returns the number of rows, up to `most`; reads that many rows of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed in these rows.
    pub fn count_up_to(&self, most: u64) -> Result<u64, String> {
        match Format::of(&self.rows) {
            None => Ok(self.count().unwrap_or(most).min(most)),
            Some(format) => {
                Stream::open(format, self.columns.len(), Share::Whole, Shard::WHOLE)?.count_up_to(most)
            }
        }
    }

    /// Returns `true` if there are enough rows for this many users to take one each; reads that many rows of
    /// a file. Where rows are given out again, there are always enough.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed in these rows.
    pub fn suffices(&self, users: u64) -> Result<bool, String> {
        if users == 0 || self.at_end == AtEnd::Wrap || self.order == Order::Random {
            return Ok(true);
        }
        match Format::of(&self.rows) {
            None => Ok(self.count().is_none_or(|count| count >= users)),
            Some(format) => {
                Stream::open(format, self.columns.len(), Share::Whole, Shard::WHOLE)?.has_more(users - 1)
            }
        }
    }

    /// Reads the first row of a file, into nowhere that lasts.
    fn check_first(&self, mut stream: Stream) -> Result<(), String> {
        self.with_no_destination(|into| stream.draw(AtEnd::Stop, into)).map_err(|error| error.to_string())
    }

    /// Reads rows into variables that do not last.
    fn with_no_destination<T>(&self, read: impl FnOnce(&mut Destination<'_>) -> T) -> T {
        let variables = self.columns.iter().flatten().max().map_or(0, |&last| usize::from(last) + 1);
        read(&mut Destination {
            columns: &self.columns,
            found: &mut Vec::new(),
            variables: &mut vec![Vec::new(); variables],
            known: &mut vec![false; variables],
        })
    }
}

/// One data source, as one worker draws from it.
#[derive(Debug)]
struct Feed {
    name: String,
    columns: Vec<Option<u16>>,
    at_end: AtEnd,
    per: Per,
    source: Source,
    /// Which columns a row has had.
    found: Vec<bool>,
    /// A row of a file that is not in memory.
    row: Vec<u8>,
}

#[derive(Debug)]
enum Source {
    Stream(Stream),
    Range(Turn, u64, u8),
    List(Turn, Arc<[Vec<Vec<u8>>]>),
    Indexed(Turn, Arc<Indexed>),
}

/// Problems of one source that are told at once.
const MOST_PROBLEMS: usize = 20;

/// The streams of random numbers that shuffle, one for each source: apart from those of the workers, which
/// are small numbers.
const SHUFFLES: u64 = 0x6665_6564 << 32;

impl Feeds {
    /// Opens the sources for one worker. `seed` is the plan's: with it, all workers shuffle alike.
    ///
    /// # Errors
    /// The first source that cannot be opened, is malformed at its start, or has no row for this worker
    /// although it is to give out rows for ever.
    pub fn open(specs: &[FeedSpec], worker: Shard, seed: u64) -> Result<Self, FeedError> {
        Self::open_with(specs, &index_all(specs)?, worker, seed)
    }

    /// Opens the sources for all workers, in their order. Shared parts are in memory once, and are found
    /// once.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_all(specs: &[FeedSpec], workers: &[Shard], seed: u64) -> Result<Vec<Self>, FeedError> {
        let indexed = index_all(specs)?;
        workers.iter().map(|worker| Self::open_with(specs, &indexed, *worker, seed)).collect()
    }

    fn open_with(
        specs: &[FeedSpec],
        indexed: &[Option<Arc<Indexed>>],
        worker: Shard,
        seed: u64,
    ) -> Result<Self, FeedError> {
        let feeds = specs.iter().zip(indexed).zip(0..).map(|((spec, indexed), number)| {
            let mut shuffle = Random::new(seed, SHUFFLES | number);
            Feed::open(spec, indexed.as_ref(), worker, &mut shuffle)
                .map_err(|reason| named(&spec.name, &reason))
        });
        Ok(Self { feeds: feeds.collect::<Result<_, _>>()?, pools: Vec::new() })
    }

    /// Adds the pools of one worker.
    #[must_use]
    pub fn with_pools(self, specs: &[PoolSpec], worker: Shard) -> Self {
        let pools = specs.iter().zip(0..).map(|(spec, number)| Pool::new(spec, number, worker)).collect();
        Self { pools, ..self }
    }

    /// The rows of a pool of the plan, by its position: the values in the order of its columns.
    ///
    /// # Panics
    /// If there is no such pool.
    pub fn rows(&self, pool: u16) -> Vec<Row> {
        self.pools[usize::from(pool)].rows().collect()
    }

    /// An iteration is over: its rows of pools may be taken by others.
    pub fn release(&mut self, session: &mut Session) {
        for number in session.picked.drain(..) {
            self.pool(pool_of(number)).release(number);
        }
    }

    /// A pool of the plan, by its position.
    ///
    /// # Panics
    /// If there is no such pool.
    pub(crate) fn pool(&mut self, pool: u16) -> &mut Pool {
        &mut self.pools[usize::from(pool)]
    }

    /// Takes the next row of a source into the variables; marks them as known. Takes no lock, and allocates
    /// nothing in steady state (except for names of JSON members that have escapes).
    ///
    /// # Errors
    /// The source has ended, or its next row cannot be read: then the variables may have been changed.
    ///
    /// # Panics
    /// If there is no such source, or a variable of its columns is not there.
    pub fn draw(
        &mut self,
        feed: u16,
        random: &mut Random,
        variables: &mut [Vec<u8>],
        known: &mut [bool],
    ) -> Result<(), FeedError> {
        let Feed { name, columns, at_end, source, found, row, per: _ } = &mut self.feeds[usize::from(feed)];
        let mut into = Destination { columns, found, variables, known };
        let drawn = match source {
            Source::Stream(stream) => stream.draw(*at_end, &mut into),
            Source::Range(turn, start, width) => next(turn, *at_end, random).map(|position| {
                into.set(0, |value| write_padded(*start + position, *width, value));
            }),
            Source::List(turn, rows) => next(turn, *at_end, random).map(|position| {
                for (column, value) in rows[position as usize].iter().enumerate() {
                    into.set(column, |variable| variable.extend_from_slice(value));
                }
            }),
            Source::Indexed(turn, file) => next(turn, *at_end, random)
                .and_then(|position| file.read(position, row, &mut into).map_err(FeedError::Failed)),
        };
        drawn.map_err(|error| match error {
            FeedError::Ended if *at_end == AtEnd::Fail => named(name, "its rows have ended"),
            FeedError::Ended => FeedError::Ended,
            FeedError::Failed(reason) => named(name, &reason),
        })
    }
}

impl Feeds {
    /// The variables that a user keeps the values of; `None` if each iteration takes a row of its own.
    pub(crate) fn kept(&self, feed: u16) -> Option<impl Iterator<Item = u16> + '_> {
        let feed = &self.feeds[usize::from(feed)];
        (feed.per == Per::User).then(|| feed.columns.iter().copied().flatten())
    }
}

fn next(turn: &mut Turn, at_end: AtEnd, random: &mut Random) -> Result<u64, FeedError> {
    turn.next(at_end, random).ok_or(FeedError::Ended)
}

fn too_few(workers: u32) -> String {
    format!(
        "fewer rows than the {workers} workers that each need some of their own; let each have the whole \
         (`share: whole`), or use fewer threads"
    )
}

fn named(name: &str, reason: &str) -> FeedError {
    FeedError::Failed(format!("data source `{name}`: {reason}"))
}

/// Finds the rows of files that are not read in order.
fn index_all(specs: &[FeedSpec]) -> Result<Vec<Option<Arc<Indexed>>>, FeedError> {
    let index = |spec: &FeedSpec| {
        spec.check_shape()?;
        let format = Format::of(&spec.rows).filter(|_| spec.order != Order::Sequential);
        format.map(|format| Indexed::open(format, spec.columns.len()).map(Arc::new)).transpose()
    };
    specs.iter().map(|spec| index(spec).map_err(|reason| named(&spec.name, &reason))).collect()
}

impl Feed {
    fn open(
        spec: &FeedSpec,
        indexed: Option<&Arc<Indexed>>,
        worker: Shard,
        shuffle: &mut Random,
    ) -> Result<Self, String> {
        let mut turn = |count| Turn::new(count, spec.order, spec.share, worker, shuffle);
        let (source, has_rows) = match (&spec.rows, indexed) {
            (Rows::Range { start, end, width }, _) => {
                let turn = turn(end - start);
                let has_rows = turn.own() > 0;
                (Source::Range(turn, *start, *width), has_rows)
            }
            (Rows::List(rows), _) => {
                let turn = turn(rows.len() as u64);
                let has_rows = turn.own() > 0;
                (Source::List(turn, Arc::clone(rows)), has_rows)
            }
            (_, Some(file)) => {
                let turn = turn(file.count());
                let has_rows = turn.own() > 0;
                (Source::Indexed(turn, Arc::clone(file)), has_rows)
            }
            (rows, None) => {
                let open = |share, worker| match Format::of(rows) {
                    Some(format) => Stream::open(format, spec.columns.len(), share, worker),
                    None => Err("rows that are neither in memory nor in a file".to_owned()),
                };
                spec.check_first(open(Share::Whole, worker)?)?;
                let stream = open(spec.share, worker)?;
                let has_rows = stream.has_rows();
                (Source::Stream(stream), has_rows)
            }
        };
        if !has_rows && spec.gives_for_ever() {
            return Err(too_few(worker.of));
        }
        Ok(Self {
            name: spec.name.clone(),
            columns: spec.columns.clone(),
            at_end: spec.at_end,
            per: spec.per,
            source,
            found: Vec::new(),
            row: Vec::new(),
        })
    }
}

/// Appends `number` with leading zeros up to `width` digits.
fn write_padded(number: u64, width: u8, into: &mut Vec<u8>) {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let start = into.len();
    into.resize(start + digits.max(usize::from(width)), b'0');
    let mut rest = number;
    for digit in into[start..].iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}
