//! Rows in files.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use plimsoll_core::Shard;

use super::records::{BLOCK, Broken, Ends, LONGEST_RECORD, Record, Records, first_record};
use super::{AtEnd, FeedError, Rows, Share, csv, json};
use crate::regular_file;

/// Largest file that is read into memory to be shuffled or drawn from, in bytes.
const IN_MEMORY: u64 = 64 << 20;
/// Rows of a file to be shuffled or drawn from: the place of each takes 8 bytes, so these take 1 GiB.
const MOST_INDEXED: usize = 1 << 27;

/// A file, and how its rows are written.
#[derive(Clone, Debug)]
pub(super) struct Format {
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Csv { delimiter: u8, header: bool },
    JsonLines { members: Vec<String> },
}

/// The destinations of the values of a row.
#[derive(Debug)]
pub(super) struct Destination<'r> {
    /// The variable of each column.
    pub(super) columns: &'r [Option<u16>],
    /// Room for which of them the row has.
    pub(super) found: &'r mut Vec<bool>,
    pub(super) variables: &'r mut [Vec<u8>],
    pub(super) known: &'r mut [bool],
}

impl Destination<'_> {
    /// Has `write` put a value into the variable of the column.
    pub(super) fn set(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(Some(variable)) = self.columns.get(column).copied() {
            let value = &mut self.variables[usize::from(variable)];
            value.clear();
            write(value);
            self.known[usize::from(variable)] = true;
        }
    }

    /// Has `write` put a value into the variable of the column.
    fn put(
        &mut self,
        column: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(Some(variable)) = self.columns.get(column).copied() else { return Ok(()) };
        let value = &mut self.variables[usize::from(variable)];
        write(value)?;
        self.known[usize::from(variable)] = true;
        Ok(())
    }
}

impl Format {
    /// `None` for rows that are in no file.
    pub(super) fn of(rows: &Rows) -> Option<Self> {
        let (path, kind) = match rows {
            Rows::Csv { path, delimiter, header } => {
                (path, Kind::Csv { delimiter: *delimiter, header: *header })
            }
            Rows::JsonLines { path, members } => (path, Kind::JsonLines { members: members.clone() }),
            Rows::Range { .. } | Rows::List(_) => return None,
        };
        Some(Self { path: path.clone(), kind })
    }

    fn ends(&self) -> Ends {
        match self.kind {
            Kind::Csv { .. } => Ends::Quoted,
            Kind::JsonLines { .. } => Ends::Lines,
        }
    }

    fn open(&self) -> Result<File, String> {
        regular_file::open(&self.path).map_err(|error| self.refused(error))
    }

    /// An error of the whole file.
    fn refused(&self, reason: impl std::fmt::Display) -> String {
        format!("{}: {reason}", self.path.display())
    }

    /// An error in a line.
    fn broken(&self, Broken { line, reason }: Broken) -> String {
        format!("{}:{line}: {reason}", self.path.display())
    }

    /// Reads over the names of the columns. If the number of columns is known, it has to be theirs.
    fn skip_header<R: Read>(&self, records: &mut Records<R>, columns: Option<usize>) -> Result<(), String> {
        let Kind::Csv { delimiter, header: true } = self.kind else { return Ok(()) };
        let Some(record) = records.next().map_err(|broken| self.broken(broken))? else { return Ok(()) };
        let names = csv::split(&records.bytes()[record.range], delimiter, |_, _| Ok(()));
        let reason = match (names, columns) {
            (Err(reason), _) => reason,
            (Ok(names), Some(columns)) if names != columns => {
                format!("{names} names of columns, but {columns} are expected")
            }
            _ => return Ok(()),
        };
        Err(self.broken(Broken { line: record.line, reason }))
    }

    /// Takes one record apart.
    fn read(&self, record: &[u8], into: &mut Destination<'_>) -> Result<(), String> {
        match &self.kind {
            Kind::Csv { delimiter, .. } => {
                let count = csv::split(record, *delimiter, |column, value| {
                    let written = into.put(column, |variable| {
                        value.write(variable);
                        Ok(())
                    });
                    written.map_err(|reason| format!("value {} {reason}", column + 1))
                })?;
                let columns = into.columns.len();
                if count == columns { Ok(()) } else { Err(format!("{count} values, but {columns} columns")) }
            }
            Kind::JsonLines { members } => {
                into.found.clear();
                into.found.resize(members.len(), false);
                json::members(record, members, &mut |column, value| {
                    into.found[column] = true;
                    let written = into.put(column, |variable| json::write(value, variable));
                    written.map_err(|reason| format!("`{}` {reason}", members[column]))
                })?;
                match into.found.iter().position(|found| !found) {
                    None => Ok(()),
                    Some(column) => Err(format!("no member `{}`", members[column])),
                }
            }
        }
    }
}

/// The rows that begin within the first bytes of a file.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Problems, each with its line.
    pub(super) problems: Vec<String>,
    pub(super) rows: u64,
    /// `true` if there are no rows behind them.
    pub(super) is_whole: bool,
}

impl Head {
    /// Reads every row that begins within `length` bytes, as a run would, until there are this many problems.
    pub(super) fn read(format: &Format, length: usize, most: usize, into: &mut Destination<'_>) -> Self {
        let mut head = Self::default();
        if let Err(problem) = head.read_all(format, length, most, into) {
            head.problems.push(problem);
        }
        head
    }

    fn read_all(
        &mut self,
        format: &Format,
        length: usize,
        most: usize,
        into: &mut Destination<'_>,
    ) -> Result<(), String> {
        // The last row may be as long as any.
        let source = format.open()?.take((length + LONGEST_RECORD + 2 * BLOCK) as u64);
        let mut records = Records::new(source, format.ends());
        format.skip_header(&mut records, Some(into.columns.len()))?;
        while self.problems.len() < most {
            let Some(record) = records.next().map_err(|broken| format.broken(broken))? else {
                self.is_whole = true;
                return if self.rows == 0 { Err(format.refused("there are no rows")) } else { Ok(()) };
            };
            if record.offset >= length as u64 {
                return Ok(());
            }
            self.rows += 1;
            if let Err(reason) = format.read(&records.bytes()[record.range], into) {
                self.problems.push(format.broken(Broken { line: record.line, reason }));
            }
        }
        Ok(())
    }
}

/// The names of the columns: those in the first record.
pub(super) fn names(rows: &Rows) -> Result<Vec<String>, String> {
    let Some(format) = Format::of(rows) else { return Ok(Vec::new()) };
    let mut records = Records::new(format.open()?, format.ends());
    let Some(record) = records.next().map_err(|broken| format.broken(broken))? else {
        return Err(format.refused("the file is empty"));
    };
    let bytes = &records.bytes()[record.range];
    let mut names = Vec::new();
    let read = match format.kind {
        Kind::Csv { delimiter, .. } => csv::split(bytes, delimiter, |_, value| {
            let mut name = Vec::new();
            value.write(&mut name);
            names.push(String::from_utf8(name).map_err(|_| "the name of a column is not UTF-8")?);
            Ok(())
        })
        .map(|_| ()),
        Kind::JsonLines { .. } => {
            let object = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes);
            object
                .map(|object| names.extend(object.into_iter().map(|(name, _)| name)))
                .map_err(|_| "not a JSON object".to_owned())
        }
    };
    read.map_err(|reason| format.broken(Broken { line: record.line, reason }))?;
    Ok(names)
}

/// A file that is read from its start to its end, of which a worker takes every n-th row.
#[derive(Debug)]
pub(super) struct Stream {
    format: Format,
    records: Records<File>,
    /// The worker's first row, from 0, and the distance to its next.
    first: u64,
    step: u64,
    /// The worker's first row, which was read when the file was opened.
    ahead: Option<Record>,
}

impl Stream {
    /// Reads up to the worker's first row; it may have none.
    pub(super) fn open(format: Format, columns: usize, share: Share, worker: Shard) -> Result<Self, String> {
        let records = Records::new(format.open()?, format.ends());
        let (first, step) = match share {
            Share::Whole => (0, 1),
            Share::Split => (u64::from(worker.index), u64::from(worker.of)),
        };
        let mut stream = Self { format, records, first, step, ahead: None };
        stream.format.skip_header(&mut stream.records, Some(columns))?;
        match stream.advance(0)? {
            None => return Err(stream.format.refused("there are no rows")),
            some if first == 0 => stream.ahead = some,
            Some(_) => stream.ahead = stream.advance(first - 1)?,
        }
        Ok(stream)
    }

    /// Returns `true` if the worker has any row. Only valid before the first row is taken.
    pub(super) fn has_rows(&self) -> bool {
        self.ahead.is_some()
    }

    /// Returns `true` if there are at least this many further rows after the first one; reads past them.
    pub(super) fn has_more(mut self, further: u64) -> Result<bool, String> {
        match further {
            0 => Ok(self.has_rows()),
            further => Ok(self.advance(further - 1)?.is_some()),
        }
    }

    /// Returns the number of rows, up to `most`; reads past them.
    pub(super) fn count_up_to(mut self, most: u64) -> Result<u64, String> {
        let mut rows = u64::from(self.has_rows()).min(most);
        while 0 < rows && rows < most && self.advance(0)?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    /// Skips this many records, and reads the next one.
    fn advance(&mut self, skipped: u64) -> Result<Option<Record>, String> {
        let mut record = None;
        for _ in 0..=skipped {
            record = self.records.next().map_err(|broken| self.format.broken(broken))?;
            if record.is_none() {
                break;
            }
        }
        Ok(record)
    }

    /// Takes the next row.
    pub(super) fn draw(&mut self, at_end: AtEnd, into: &mut Destination<'_>) -> Result<(), FeedError> {
        let record = match self.ahead.take() {
            Some(record) => Some(record),
            None => self.advance(self.step - 1).map_err(FeedError::Failed)?,
        };
        let record = match record {
            Some(record) => record,
            None if at_end == AtEnd::Wrap => self.begin_again().map_err(FeedError::Failed)?,
            None => return Err(FeedError::Ended),
        };
        let read = self.format.read(&self.records.bytes()[record.range], into);
        read.map_err(|reason| FeedError::Failed(self.format.broken(Broken { line: record.line, reason })))
    }

    fn begin_again(&mut self) -> Result<Record, String> {
        self.records.rewind(File::rewind).map_err(|broken| self.format.broken(broken))?;
        self.format.skip_header(&mut self.records, None)?;
        let record = self.advance(self.first)?;
        record.ok_or_else(|| self.format.refused("the file has become shorter while it was read"))
    }
}

/// A file whose rows are read in any order; the part that workers share.
#[derive(Debug)]
pub(super) struct Indexed {
    format: Format,
    content: Content,
    /// The beginning of each row, and an upper bound of the end of the last one.
    offsets: Vec<u64>,
}

#[derive(Debug)]
enum Content {
    Memory(Vec<u8>),
    File(File),
}

impl Indexed {
    /// Reads the whole file to find its rows.
    pub(super) fn open(format: Format, columns: usize) -> Result<Self, String> {
        Self::open_with(format, columns, IN_MEMORY, MOST_INDEXED)
    }

    fn open_with(format: Format, columns: usize, in_memory: u64, most: usize) -> Result<Self, String> {
        let mut file = format.open()?;
        let length = file.metadata().map_err(|error| format.refused(error))?.len();
        let (content, offsets) = if length <= in_memory {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(|error| format.refused(error))?;
            let offsets = offsets(&format, bytes.as_slice(), columns, most)?;
            (Content::Memory(bytes), offsets)
        } else {
            let offsets = offsets(&format, &file, columns, most)?;
            (Content::File(file), offsets)
        };
        if offsets.len() == 1 {
            return Err(format.refused("there are no rows"));
        }
        Ok(Self { format, content, offsets })
    }

    /// Returns the number of rows.
    pub(super) fn count(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }

    /// Reads one of them, by way of `buffer` if it is not in memory.
    pub(super) fn read(
        &self,
        row: u64,
        buffer: &mut Vec<u8>,
        into: &mut Destination<'_>,
    ) -> Result<(), String> {
        let row = row as usize;
        let (start, end) = (self.offsets[row], self.offsets[row + 1]);
        let bytes = match &self.content {
            Content::Memory(bytes) => &bytes[start as usize..end as usize],
            Content::File(file) => {
                buffer.resize((end - start) as usize, 0);
                file.read_exact_at(buffer, start).map_err(|error| self.format.refused(error))?;
                buffer.as_slice()
            }
        };
        let read = self.format.read(first_record(bytes, self.format.ends()), into);
        read.map_err(|reason| match self.line(start) {
            Ok(line) => self.format.broken(Broken { line, reason }),
            Err(_) => self.format.refused(format_args!("row {}: {reason}", row + 1)),
        })
    }

    /// The line of a byte; reads everything before it.
    fn line(&self, offset: u64) -> std::io::Result<u64> {
        let mut line = 1;
        let count = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count() as u64;
        match &self.content {
            Content::Memory(bytes) => line += count(&bytes[..offset as usize]),
            Content::File(file) => {
                let mut block = vec![0; 64 << 10];
                let mut at = 0;
                while at < offset {
                    let length = block.len().min((offset - at) as usize);
                    file.read_exact_at(&mut block[..length], at)?;
                    line += count(&block[..length]);
                    at += length as u64;
                }
            }
        }
        Ok(line)
    }
}

/// The beginning of each row, and an upper bound of the end of the last one.
fn offsets(format: &Format, source: impl Read, columns: usize, most: usize) -> Result<Vec<u64>, String> {
    let mut records = Records::new(source, format.ends());
    format.skip_header(&mut records, Some(columns))?;
    let mut offsets = Vec::new();
    while let Some(record) = records.next().map_err(|broken| format.broken(broken))? {
        if offsets.len() == most {
            return Err(format.refused(format_args!(
                "more than {most} rows, which is the most that can be shuffled or drawn at random; take them \
                 in order, or shuffle the file beforehand"
            )));
        }
        offsets.push(record.offset);
    }
    offsets.push(records.offset());
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\u{feff}id,name\r\n1,\"a\nb\"\r\n\r\n2,\"c,\"\"d\"\"\"\n3,e";

    /// A CSV file in a place of its own, which goes when this does.
    struct Written(PathBuf);

    impl Written {
        fn new(name: &str, text: &str) -> Self {
            let path = std::env::temp_dir().join(format!("plimsoll-{}-{name}.csv", std::process::id()));
            std::fs::write(&path, text).unwrap();
            Self(path)
        }

        fn format(&self) -> Format {
            Format { path: self.0.clone(), kind: Kind::Csv { delimiter: b',', header: true } }
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn row(indexed: &Indexed, row: u64) -> Result<Vec<Vec<u8>>, String> {
        let mut variables = vec![Vec::new(); 2];
        let mut into = Destination {
            columns: &[Some(0), Some(1)],
            found: &mut Vec::new(),
            variables: &mut variables,
            known: &mut [false; 2],
        };
        indexed.read(row, &mut Vec::new(), &mut into)?;
        Ok(variables)
    }

    #[test]
    fn rows_are_found_in_memory_and_in_the_file_alike() {
        let written = Written::new("indexed", TEXT);
        for in_memory in [0, IN_MEMORY] {
            let indexed = Indexed::open_with(written.format(), 2, in_memory, 3).unwrap();
            assert_eq!(matches!(indexed.content, Content::File(_)), in_memory == 0);
            assert_eq!(indexed.count(), 3);
            assert_eq!(row(&indexed, 2).unwrap(), [b"3".to_vec(), b"e".to_vec()]);
            assert_eq!(row(&indexed, 1).unwrap(), [b"2".to_vec(), b"c,\"d\"".to_vec()]);
            assert_eq!(row(&indexed, 0).unwrap(), [b"1".to_vec(), b"a\nb".to_vec()]);
        }
    }

    #[test]
    fn lines_of_errors_are_counted_over_blocks() {
        let text = format!("id,name\n{}4,5,6\n", "1,2\n".repeat(40_000));
        let written = Written::new("lines", &text);
        let indexed = Indexed::open_with(written.format(), 2, 0, 100_000).unwrap();
        let error = row(&indexed, 40_000).unwrap_err();
        assert!(error.ends_with("lines.csv:40002: 3 values, but 2 columns"), "{error}");
    }

    #[test]
    fn too_many_rows_are_refused() {
        let written = Written::new("many", TEXT);
        let error = Indexed::open_with(written.format(), 2, 0, 2).unwrap_err();
        assert!(error.contains("many.csv: more than 2 rows, which is the most"), "{error}");
    }
}
