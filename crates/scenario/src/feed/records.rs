//! A text file as records, read in blocks.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes that are read at once.
pub(super) const BLOCK: usize = 64 << 10;
/// Bytes of a record at most, so that a quote that is never closed does not read the whole file into memory.
pub(super) const LONGEST_RECORD: usize = 4 << 20;

/// Rule for the ends of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// At every line feed.
    Lines,
    /// At every line feed that is not between quotes (RFC 4180).
    Quoted,
}

/// One record in the reader's [buffer](Records::bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Without the line feed, and without a carriage return before it.
    pub(super) range: Range<usize>,
    /// Number of the record's first line, from 1.
    pub(super) line: u64,
    /// Offset of the record's first byte from the start of the file.
    pub(super) offset: u64,
}

/// Reads records one after the other. Empty ones are skipped, and so is a byte order mark in front.
#[derive(Debug)]
pub(super) struct Records<R> {
    source: R,
    ends: Ends,
    buffer: Vec<u8>,
    /// Range of the bytes that were read and not given out yet.
    pending: Range<usize>,
    /// Line of the first pending byte, from 1.
    line: u64,
    /// Offset of the first pending byte.
    offset: u64,
    at_end: bool,
}

/// Reason why there is no record: the line of the problem, and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) line: u64,
    pub(super) reason: String,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: Read> Records<R> {
    pub(super) fn new(source: R, ends: Ends) -> Self {
        Self { source, ends, buffer: vec![0; BLOCK], pending: 0..0, line: 1, offset: 0, at_end: false }
    }

    /// Returns the buffer in which the range of a record lies.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The next record; it is in the buffer until the next call. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Broken> {
        loop {
            if self.offset == 0 && self.pending.is_empty() && !self.at_end {
                self.begin()?;
            }
            let pending = &self.buffer[self.pending.clone()];
            let found = find_end(pending, self.ends);
            let (length, taken) = match found.feed {
                Some(feed) => (feed, feed + 1),
                None if !self.at_end => {
                    self.read()?;
                    continue;
                }
                None if pending.is_empty() => return Ok(None),
                None if found.in_quotes => {
                    return Err(self.broken("a quote that begins in this record is never closed"));
                }
                None => (pending.len(), pending.len()),
            };
            let carriage_return = usize::from(pending[..length].ends_with(b"\r"));
            let start = self.pending.start;
            let record = Record {
                range: start..start + length - carriage_return,
                line: self.line,
                offset: self.offset,
            };
            self.pending.start += taken;
            self.line += found.lines + 1;
            self.offset += taken as u64;
            if !record.range.is_empty() {
                return Ok(Some(record));
            }
        }
    }

    /// Bytes of the file up to where the next record is looked for.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Begins again with the first record, after the source was sought to its start.
    pub(super) fn rewind(&mut self, seek: impl FnOnce(&mut R) -> io::Result<()>) -> Result<(), Broken> {
        seek(&mut self.source).map_err(|error| self.broken(error))?;
        (self.pending, self.line, self.offset, self.at_end) = (0..0, 1, 0, false);
        Ok(())
    }

    /// Reads the first block, and leaves the mark out.
    fn begin(&mut self) -> Result<(), Broken> {
        while self.pending.len() < BYTE_ORDER_MARK.len() && !self.at_end {
            self.read()?;
        }
        if self.buffer[self.pending.clone()].starts_with(BYTE_ORDER_MARK) {
            self.pending.start += BYTE_ORDER_MARK.len();
            self.offset += BYTE_ORDER_MARK.len() as u64;
        }
        Ok(())
    }

    /// Reads on behind the pending bytes, which move to the front.
    fn read(&mut self) -> Result<(), Broken> {
        if self.pending.len() > LONGEST_RECORD {
            let hint = if self.ends == Ends::Quoted { " (is a quote not closed?)" } else { "" };
            return Err(self.broken(format_args!("a record of more than {} MiB{hint}", LONGEST_RECORD >> 20)));
        }
        self.buffer.copy_within(self.pending.clone(), 0);
        self.pending = 0..self.pending.len();
        if self.pending.len() * 2 > self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = loop {
            match self.source.read(&mut self.buffer[self.pending.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| self.broken(error))?,
            }
        };
        self.pending.end += read;
        self.at_end = read == 0;
        Ok(())
    }

    fn broken(&self, reason: impl std::fmt::Display) -> Broken {
        Broken { line: self.line, reason: reason.to_string() }
    }
}

/// The end of the first record of some bytes.
#[derive(Debug)]
struct End {
    /// Position of the record's line feed, if it is there.
    feed: Option<usize>,
    /// Line feeds within quotes before it.
    lines: u64,
    /// `true` if the bytes end between quotes.
    in_quotes: bool,
}

/// A quote within quotes is doubled, so the second one reopens the text that the first one ended: counting
/// quotes is enough. A file with quotes elsewhere is cut somewhere; splitting the record finds them.
fn find_end(bytes: &[u8], ends: Ends) -> End {
    let (mut lines, mut in_quotes) = (0, false);
    if ends == Ends::Lines {
        return End { feed: memchr::memchr(b'\n', bytes), lines, in_quotes };
    }
    for at in memchr::memchr2_iter(b'\n', b'"', bytes) {
        if bytes[at] == b'"' {
            in_quotes = !in_quotes;
        } else if in_quotes {
            lines += 1;
        } else {
            return End { feed: Some(at), lines, in_quotes };
        }
    }
    End { feed: None, lines, in_quotes }
}

/// The first record of bytes that begin with one.
pub(super) fn first_record(bytes: &[u8], ends: Ends) -> &[u8] {
    let record = &bytes[..find_end(bytes, ends).feed.unwrap_or(bytes.len())];
    record.strip_suffix(b"\r").unwrap_or(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads at most this many bytes at once.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn records(text: &[u8], ends: Ends, at_once: usize) -> Result<Vec<(u64, u64, String)>, Broken> {
        let mut records = Records::new(Slowly(text, at_once), ends);
        let mut found = Vec::new();
        while let Some(record) = records.next()? {
            let bytes = &records.bytes()[record.range.clone()];
            assert_eq!(first_record(&text[usize::try_from(record.offset).unwrap()..], ends), bytes);
            found.push((record.line, record.offset, String::from_utf8_lossy(bytes).into_owned()));
        }
        assert_eq!(records.next(), Ok(None));
        Ok(found)
    }

    fn texts(text: &str, ends: Ends) -> Vec<(u64, String)> {
        let found = records(text.as_bytes(), ends, 7).unwrap();
        found.into_iter().map(|(line, _, text)| (line, text)).collect()
    }

    #[test]
    fn lines_and_quoted_records() {
        for (text, expected) in [
            ("", vec![]),
            ("\n\r\n\n", vec![]),
            ("a", vec![(1, "a")]),
            ("a\nb\r\n\r\nc\r", vec![(1, "a"), (2, "b"), (4, "c")]),
            ("\u{feff}a\n\u{feff}b", vec![(1, "a"), (2, "\u{feff}b")]),
            ("\u{feff}", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(line, text)| (line, text.to_owned())).collect();
            assert_eq!(texts(text, Ends::Lines), expected, "{text:?}");
            assert_eq!(texts(text, Ends::Quoted), expected, "{text:?}");
        }
        let text = "a,\"b\nc\"\"\n\",d\ne";
        let expected = vec![(1, "a,\"b\nc\"\"\n\",d".to_owned()), (4, "e".to_owned())];
        assert_eq!(texts(text, Ends::Quoted), expected);
        assert_eq!(texts(text, Ends::Lines).len(), 4);
    }

    #[test]
    fn records_longer_than_a_block_are_whole_and_endless_ones_are_not_read() {
        let long = "x".repeat(BLOCK * 5 + 3);
        let text = format!("a\n{long}\nb\n");
        let found = records(text.as_bytes(), Ends::Quoted, 50_000).unwrap();
        assert_eq!(found[1], (2, 2, long));
        assert_eq!(found[2].2, "b");
        let endless = format!("a\n\"{}", "b\n".repeat(LONGEST_RECORD));
        let broken = records(endless.as_bytes(), Ends::Quoted, usize::MAX).unwrap_err();
        assert_eq!(broken.line, 2);
        assert_eq!(broken.reason, "a record of more than 4 MiB (is a quote not closed?)");
        let open = records(b"a\nb\n\"c\n", Ends::Quoted, 3).unwrap_err();
        assert_eq!(
            (open.line, open.reason.as_str()),
            (3, "a quote that begins in this record is never closed")
        );
    }

    #[test]
    fn a_file_is_read_again_from_its_begin() {
        let text = b"\xef\xbb\xbfa\nb";
        let mut records = Records::new(io::Cursor::new(text), Ends::Lines);
        for _ in 0..3 {
            let first = records.next().unwrap().unwrap();
            assert_eq!((first.line, first.offset, &records.bytes()[first.range]), (1, 3, &b"a"[..]));
            records.next().unwrap().unwrap();
            assert_eq!(records.next(), Ok(None));
            records
                .rewind(|source| {
                    source.set_position(0);
                    Ok(())
                })
                .unwrap();
        }
    }

    proptest! {
        #[test]
        fn records_do_not_depend_on_how_they_are_read(text in "[ab\n\r\",]{0,60}", at_once in 1..10_usize) {
            for ends in [Ends::Lines, Ends::Quoted] {
                let whole = records(text.as_bytes(), ends, usize::MAX);
                prop_assert_eq!(records(text.as_bytes(), ends, at_once), whole);
            }
        }
    }
}
