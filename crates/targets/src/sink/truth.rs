//! The log of the truth: the real course of every request, on the clock of the driver.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;

use super::options::Truth;
use crate::start_error::StartError;

/// The end of a request that the sink had counted. Every counted request has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The usual reply was sent.
    Replied,
    /// A reply with a status from [`Faults::statuses`](super::Faults::statuses) was sent.
    Status(u16),
    /// The reply was held back on purpose.
    Dropped,
    /// The connection, or the HTTP/2 stream, was reset in its place.
    Reset,
    /// The HTTP/2 stream was refused.
    Refused,
    /// The service has rejected the call; where clients have to ask for its outcome, they learn it then.
    Rejected,
    /// An answer without a meaning was sent.
    Garbage,
    /// No reply could be sent: the client had reset the stream, the connection had ended, or owed a dropped
    /// reply before this one, or the sink was stopped.
    Abandoned,
}

impl Action {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replied => "replied",
            Self::Status(_) => "status",
            Self::Dropped => "dropped",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Garbage => "garbage",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The name of a request in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// The header `x-plimsoll-id` if it is a decimal number, else (without that header) the request's number.
    Number(u64),
    /// The header `x-plimsoll-id` if it is something else.
    Text(Box<str>),
}

impl RequestId {
    /// The name of request `number` whose header `x-plimsoll-id` was `header`.
    pub(crate) fn new(header: Option<&[u8]>, number: u64) -> Self {
        match header {
            None => Self::Number(number),
            Some(value) => Self::from_header(value),
        }
    }

    fn from_header(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value);
        // Only a number that prints as it came is one: `007` and `+7` stay as they are.
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => Self::Number(number),
            _ => Self::Text(text.into()),
        }
    }
}

impl fmt::Display for RequestId {
    /// As a CSV field (RFC 4180).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) if text.contains([',', '"', '\r', '\n']) => {
                write!(f, "\"{}\"", text.replace('"', "\"\""))
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The log entry of one request. Times are on `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRow {
    /// The request's name.
    pub id: RequestId,
    /// The request's number: position in the count of all threads, from 0. Draws and the counter in the reply
    /// go by it.
    pub number: u64,
    /// When its last byte came: the kernel's receive stamp where there is one, else when the sink saw it.
    pub recv: Nanos,
    /// When the end of its reply was handed to the kernel, or to HTTP/2's flow control; none if there was no
    /// reply.
    pub reply: Option<Nanos>,
    /// End of the request.
    pub action: Action,
    /// The status that was sent, if any.
    pub status: Option<u16>,
}

/// First line of the log.
pub(crate) const HEADER: &str = "id,recv_ns,reply_ns,action,status,number\n";

impl fmt::Display for TruthRow {
    /// As a line of CSV without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},", self.id, self.recv.0)?;
        if let Some(reply) = self.reply {
            write!(f, "{}", reply.0)?;
        }
        write!(f, ",{},", self.action.name())?;
        if let Some(status) = self.status {
            write!(f, "{status}")?;
        }
        write!(f, ",{}", self.number)
    }
}

/// One thread's part of the log.
#[derive(Debug, Default)]
pub(crate) enum Sheet<R> {
    #[default]
    Off,
    Memory(Vec<R>),
    File {
        path: PathBuf,
        writer: BufWriter<File>,
        failure: Option<io::Error>,
    },
}

/// Sheets that are complete.
#[derive(Debug)]
pub(crate) struct FinishedSheet<R> {
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
    /// Returns the rows, and makes one file of the parts of the log.
    pub(crate) fn join(self) -> (Vec<R>, io::Result<()>) {
        (self.rows, join(self.parts))
    }
}

impl<R: fmt::Display> Sheet<R> {
    /// The part of thread `thread`, of a log that begins with this line. The first one writes the log
    /// itself, the others write parts beside it.
    pub(crate) fn open(truth: &Truth, thread: u32, header: &str) -> Result<Self, StartError> {
        Ok(match truth {
            Truth::Off => Self::Off,
            Truth::Memory => Self::Memory(Vec::new()),
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
                    Ok(writer) => Self::File { path, writer, failure: None },
                    Err(error) => return Err(StartError::TruthLog { path, error }),
                }
            }
        })
    }

    pub(crate) const fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    pub(crate) fn push(&mut self, row: R) {
        match self {
            Self::Off => {}
            Self::Memory(rows) => rows.push(row),
            // After a failure nothing more is written: a log with a hole in its middle would look whole.
            Self::File { writer, failure, .. } => {
                if failure.is_none() {
                    *failure = writeln!(writer, "{row}").err();
                }
            }
        }
    }

    pub(crate) fn finish(self) -> FinishedSheet<R> {
        match self {
            Self::Off => FinishedSheet::default(),
            Self::Memory(rows) => FinishedSheet { rows, parts: Vec::new() },
            Self::File { path, mut writer, failure } => {
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

    fn row(number: u64, id: Option<&[u8]>) -> TruthRow {
        TruthRow {
            id: RequestId::new(id, number),
            number,
            recv: Nanos(10),
            reply: Some(Nanos(20)),
            action: Action::Status(503),
            status: Some(503),
        }
    }

    #[test]
    fn rows_are_csv() {
        assert_eq!(row(7, None).to_string(), "7,10,20,status,503,7");
        assert_eq!(row(7, Some(b"12")).to_string(), "12,10,20,status,503,7");
        assert_eq!(row(7, Some(b"012")).to_string(), "012,10,20,status,503,7");
        assert_eq!(row(7, Some(b"a,\"b\"")).to_string(), "\"a,\"\"b\"\"\",10,20,status,503,7");
        let dropped = TruthRow { reply: None, status: None, action: Action::Dropped, ..row(1, None) };
        assert_eq!(dropped.to_string(), "1,10,,dropped,,1");
        assert_eq!(HEADER.matches(',').count(), dropped.to_string().matches(',').count());
    }

    #[test]
    fn a_log_that_cannot_be_made_names_its_path() {
        let truth = Truth::File("/nonexistent/truth.csv".into());
        let refused = Sheet::<TruthRow>::open(&truth, 0, HEADER).unwrap_err().to_string();
        assert!(refused.contains("/nonexistent/truth.csv"), "{refused}");
    }
}
