//! A log of the truth in parts: one for each thread, joined at the end.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use crate::sink::Truth;
use crate::start_error::StartError;

/// One thread's part of a log.
#[derive(Debug)]
pub struct Sheet<R>(Place<R>);

/// Where rows go.
#[derive(Debug)]
enum Place<R> {
    Off,
    Memory(Vec<R>),
    File { path: PathBuf, writer: BufWriter<File>, failure: Option<io::Error> },
}

impl<R> Default for Sheet<R> {
    /// A part of no log: rows are dropped.
    fn default() -> Self {
        Self(Place::Off)
    }
}

/// Parts of a log that are complete.
#[derive(Debug)]
pub struct FinishedSheet<R> {
    rows: Vec<R>,
    /// The parts of the log and how writing them ended.
    parts: Vec<(PathBuf, io::Result<()>)>,
}

impl<R> Default for FinishedSheet<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), parts: Vec::new() }
    }
}

impl<R> AddAssign for FinishedSheet<R> {
    fn add_assign(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.parts.extend(other.parts);
    }
}

impl<R> FinishedSheet<R> {
    /// Returns the rows that were kept in memory, and makes one file of the parts of the log.
    ///
    /// # Errors
    /// Beside the rows: a part could not be written, or not be joined to the first.
    pub fn join(self) -> (Vec<R>, io::Result<()>) {
        (self.rows, join(self.parts))
    }
}

impl<R: fmt::Display> Sheet<R> {
    /// Opens the part of thread `thread`, of a log that begins with this line. The first one writes the log
    /// itself, the others write parts beside it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(truth: &Truth, thread: u32, header: &str) -> Result<Self, StartError> {
        Ok(Self(match truth {
            Truth::Off => Place::Off,
            Truth::Memory => Place::Memory(Vec::new()),
            Truth::File(log) => {
                let path = part(log, thread);
                let open = || -> io::Result<_> {
                    let mut writer = BufWriter::with_capacity(1 << 16, File::create(&path)?);
                    if thread == 0 {
                        writer.write_all(header.as_bytes())?;
                    }
                    Ok(writer)
                };
                match open() {
                    Ok(writer) => Place::File { path, writer, failure: None },
                    Err(error) => return Err(StartError::TruthLog { path, error }),
                }
            }
        }))
    }

    /// Returns `true` if rows are kept.
    pub const fn is_on(&self) -> bool {
        !matches!(self.0, Place::Off)
    }

    /// Returns the rows so far, if they are kept in memory.
    pub fn rows(&self) -> &[R] {
        if let Place::Memory(rows) = &self.0 { rows } else { &[] }
    }

    /// Adds a row. A failure to write is kept for [`finish`](Self::finish).
    pub fn push(&mut self, row: R) {
        match &mut self.0 {
            Place::Off => {}
            Place::Memory(rows) => rows.push(row),
            // After a failure nothing more is written: a log with a hole in its middle would look whole.
            Place::File { writer, failure, .. } => {
                if failure.is_none() {
                    *failure = writeln!(writer, "{row}").err();
                }
            }
        }
    }

    /// Completes the part.
    pub fn finish(self) -> FinishedSheet<R> {
        match self.0 {
            Place::Off => FinishedSheet::default(),
            Place::Memory(rows) => FinishedSheet { rows, parts: Vec::new() },
            Place::File { path, mut writer, failure } => {
                let written = failure.map_or_else(|| writer.flush(), Err);
                FinishedSheet { rows: Vec::new(), parts: vec![(path, written)] }
            }
        }
    }
}

/// Appends the parts of a log to its first one, in order, and removes them.
fn join(mut parts: Vec<(PathBuf, io::Result<()>)>) -> io::Result<()> {
    // The log itself has the shortest name.
    parts.sort_by_key(|(path, _)| (path.as_os_str().len(), path.clone()));
    let mut parts = parts.into_iter();
    let Some((log, written)) = parts.next() else { return Ok(()) };
    written?;
    let mut log = File::options().append(true).open(log)?;
    for (path, written) in parts {
        written?;
        io::copy(&mut File::open(&path)?, &mut log)?;
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

fn part(log: &Path, thread: u32) -> PathBuf {
    if thread == 0 {
        return log.to_owned();
    }
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".part{thread}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_made_names_its_path() {
        let truth = Truth::File("/nonexistent/truth.csv".into());
        let refused = Sheet::<u64>::open(&truth, 0, "number\n").unwrap_err().to_string();
        assert!(refused.contains("/nonexistent/truth.csv"), "{refused}");
    }
}
