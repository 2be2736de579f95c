//! The log on the disk: files of records with sums, the oldest of which are deleted when a snapshot covers
//! them.
//!
//! A record is a head of 24 bytes (a mark, the index of its entry, the length and the sum of the entry, the
//! sum of the head; little-endian) and the entry. A record at the end that is not whole was never
//! acknowledged: the process ended while it was written, and it is cut off. One that is damaged and has whole
//! ones behind it was acknowledged, and the rest cannot be trusted: the node does not start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::consensus::Entry;
use crate::durable::sync_folder;
use crate::error::ReplicaError;

const MARK: [u8; 4] = *b"plim";
/// Bytes of a record before its entry.
const HEAD: usize = 24;
/// A file of this size is followed by a new one.
const LENGTH: u64 = 16 << 20;

/// The files, oldest first; the last one grows.
#[derive(Debug)]
pub(crate) struct Segments {
    folder: PathBuf,
    files: Vec<Segment>,
    /// The last one, for writing.
    file: Option<File>,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    /// Index of its first entry.
    first: u64,
    /// The end of each of its records.
    ends: Vec<u64>,
}

/// Segments and entries recovered from the disk.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) segments: Segments,
    /// In order, without a gap.
    pub(crate) entries: Vec<Entry>,
    /// Bytes at the end that were cut off.
    pub(crate) torn: u64,
}

/// Adds a record of an entry, and says how long it is.
pub(crate) fn push_record(records: &mut Vec<u8>, entry: &Entry) -> io::Result<u64> {
    let from = records.len();
    records.extend_from_slice(&[0; HEAD]);
    *records = postcard::to_extend(entry, std::mem::take(records)).map_err(io::Error::other)?;
    let (head, body) = records[from..].split_at_mut(HEAD);
    let length = u32::try_from(body.len()).map_err(|_| io::Error::other("an entry of 4 GiB"))?;
    head[..4].copy_from_slice(&MARK);
    head[4..12].copy_from_slice(&entry.log_id.index.to_le_bytes());
    head[12..16].copy_from_slice(&length.to_le_bytes());
    head[16..20].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    let sum = crc32fast::hash(&head[..20]);
    head[20..].copy_from_slice(&sum.to_le_bytes());
    Ok((records.len() - from) as u64)
}

impl Segments {
    /// Reads all entries after `purged`, and cuts off a torn record.
    pub(crate) fn open(folder: &Path, purged: Option<u64>) -> Result<Recovered, ReplicaError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(ReplicaError::file(folder))? {
            let path = entry.map_err(ReplicaError::file(folder))?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".log"));
            if let Some(first) = name.and_then(|name| name.parse::<u64>().ok()) {
                paths.push((first, path));
            }
        }
        paths.sort_unstable();
        let from = purged.map_or(0, |purged| purged + 1);
        let mut found = Recovered {
            segments: Self { folder: folder.to_owned(), files: Vec::new(), file: None },
            entries: Vec::new(),
            torn: 0,
        };
        let last = paths.len().saturating_sub(1);
        for (number, (first, path)) in paths.into_iter().enumerate() {
            found.read(first, path, from, number == last)?;
        }
        Ok(found)
    }

    /// Adds records of entries from the index `first` on, of these lengths. They may not be on the disk
    /// before [`Segments::sync`].
    pub(crate) fn append(&mut self, first: u64, records: &[u8], lengths: &[u64]) -> io::Result<()> {
        let fits = |segment: &Segment| segment.next() == first && segment.length() < LENGTH;
        if !self.files.last().is_some_and(fits) {
            self.begin(first)?;
        }
        let segment = self.files.last_mut().expect("there is one now");
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().append(true).open(&segment.path)?);
        }
        self.file.as_mut().expect("it was opened").write_all(records)?;
        for length in lengths {
            segment.ends.push(segment.length() + length);
        }
        Ok(())
    }

    /// Syncs the written bytes to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Takes back the entries from this index on.
    pub(crate) fn truncate(&mut self, from: u64) -> io::Result<()> {
        self.file = None;
        while let Some(segment) = self.files.last_mut() {
            if segment.first < from {
                let kept = (from - segment.first).min(segment.ends.len() as u64) as usize;
                segment.ends.truncate(kept);
                let file = OpenOptions::new().write(true).open(&segment.path)?;
                file.set_len(segment.length())?;
                file.sync_all()?;
                break;
            }
            fs::remove_file(&segment.path)?;
            self.files.pop();
        }
        sync_folder(&self.folder)
    }

    /// Removes files all of whose entries are up to this index.
    pub(crate) fn purge(&mut self, upto: u64) -> io::Result<()> {
        let gone = self.files.iter().take_while(|segment| segment.next() <= upto + 1).count();
        if gone == self.files.len() {
            self.file = None;
        }
        for segment in self.files.drain(..gone) {
            fs::remove_file(&segment.path)?;
        }
        if gone > 0 { sync_folder(&self.folder) } else { Ok(()) }
    }

    fn begin(&mut self, first: u64) -> io::Result<()> {
        // The records of the file before must be durable once this one exists.
        self.sync()?;
        let path = self.folder.join(format!("{first:020}.log"));
        self.file = Some(OpenOptions::new().create_new(true).append(true).open(&path)?);
        self.files.push(Segment { path, first, ends: Vec::new() });
        sync_folder(&self.folder)
    }
}

impl Segment {
    /// Index of the entry after its last one.
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    fn length(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl Recovered {
    /// Reads one file. Entries from the index `from` on are kept; only the last file may be torn.
    fn read(&mut self, first: u64, path: PathBuf, from: u64, is_last: bool) -> Result<(), ReplicaError> {
        let content = fs::read(&path).map_err(ReplicaError::file(&path))?;
        let mut segment = Segment { path, first, ends: Vec::new() };
        let mut at = 0;
        while at < content.len() {
            let begin = at as u64;
            let damaged = |why| ReplicaError::Corrupt { path: segment.path.clone(), at: begin, why };
            let Some((index, body)) = record(&content[at..]).filter(|(index, _)| *index == segment.next())
            else {
                if !is_last || has_record(&content[at + 1..]) {
                    return Err(damaged("what follows was acknowledged"));
                }
                self.torn = (content.len() - at) as u64;
                cut(&segment.path, at as u64).map_err(ReplicaError::file(&segment.path))?;
                break;
            };
            at += HEAD + body.len();
            if index >= from {
                if self.entries.last().map_or(from, |last| last.log_id.index + 1) != index {
                    return Err(damaged("entries before it are missing"));
                }
                let entry = postcard::from_bytes(body).map_err(|_| damaged("it holds something else"))?;
                self.entries.push(entry);
            }
            segment.ends.push(at as u64);
        }
        self.segments.files.push(segment);
        Ok(())
    }
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// The index and the entry of the record that these bytes begin with; `None` if it is not whole.
fn record(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (index, length, sum) = head(bytes)?;
    let body = bytes.get(HEAD..HEAD.checked_add(length as usize)?)?;
    (crc32fast::hash(body) == sum).then_some((index, body))
}

/// The index, the length and the sum in a head.
fn head(bytes: &[u8]) -> Option<(u64, u32, u32)> {
    let head = bytes.first_chunk::<HEAD>()?;
    let word = |at: usize| u32::from_le_bytes(*head[at..].first_chunk().expect("it is within the head"));
    if head[..4] != MARK || crc32fast::hash(&head[..20]) != word(20) {
        return None;
    }
    let index = u64::from(word(4)) | u64::from(word(8)) << 32;
    Some((index, word(12), word(16)))
}

/// Returns `true` if there is a whole record anywhere in these bytes.
fn has_record(bytes: &[u8]) -> bool {
    let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.into_iter().any(|(at, _)| record(&bytes[at..]).is_some())
}

#[cfg(test)]
mod tests {
    use openraft::{CommittedLeaderId, EntryPayload};

    use super::*;
    use crate::consensus::{Batch, LogId};
    use crate::durable::tests::Folder;

    fn entry(index: u64) -> Entry {
        let log_id = LogId::new(CommittedLeaderId::new(1, 0), index);
        // Holds the mark, which must not be taken for a head.
        let text = format!("plim{index}plim").repeat(10);
        Entry { log_id, payload: EntryPayload::Normal(Batch(text.into())) }
    }

    /// Writes entries, each on its own.
    fn write(segments: &mut Segments, indices: std::ops::Range<u64>) {
        for index in indices {
            let mut records = Vec::new();
            let length = push_record(&mut records, &entry(index)).unwrap();
            segments.append(index, &records, &[length]).unwrap();
        }
        segments.sync().unwrap();
    }

    fn open(folder: &Folder, purged: Option<u64>) -> Result<(Segments, Vec<u64>, u64), ReplicaError> {
        let Recovered { segments, entries, torn } = Segments::open(&folder.0, purged)?;
        for found in &entries {
            let EntryPayload::Normal(batch) = &found.payload else { panic!("{found:?}") };
            let EntryPayload::Normal(written) = entry(found.log_id.index).payload else { panic!() };
            assert_eq!(batch.0, written.0);
        }
        Ok((segments, entries.iter().map(|entry| entry.log_id.index).collect(), torn))
    }

    fn written(indices: std::ops::Range<u64>) -> (Folder, PathBuf) {
        let folder = Folder::new();
        let mut segments = open(&folder, None).unwrap().0;
        write(&mut segments, indices);
        let path = segments.files[0].path.clone();
        (folder, path)
    }

    fn indices(folder: &Folder, purged: Option<u64>) -> Vec<u64> {
        open(folder, purged).unwrap().1
    }

    #[test]
    fn what_was_written_is_read_and_gone_on_with() {
        let (folder, _) = written(0..10);
        let (mut segments, found, torn) = open(&folder, None).unwrap();
        assert_eq!((found, torn), ((0..10).collect(), 0));
        write(&mut segments, 10..12);
        segments.truncate(8).unwrap();
        write(&mut segments, 8..9);
        assert_eq!(indices(&folder, None), (0..9).collect::<Vec<_>>());
        assert_eq!(indices(&folder, Some(5)), [6, 7, 8]);
    }

    #[test]
    fn a_record_that_is_not_whole_is_cut_off_at_any_byte() {
        let (folder, path) = written(0..3);
        let whole = fs::read(&path).unwrap();
        let second = whole.len() * 2 / 3;
        for length in second + 1..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut segments, found, torn) = open(&folder, None).unwrap();
            assert_eq!((found, torn), (vec![0, 1], (length - second) as u64));
            write(&mut segments, 2..3);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        // Space that the system had reserved, but not written.
        fs::write(&path, [&whole[..second + 9], &[0; 100]].concat()).unwrap();
        assert_eq!(open(&folder, None).unwrap().2, 109);
    }

    #[test]
    fn damage_before_whole_records_is_refused_wherever_it_is() {
        let (folder, path) = written(0..3);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() * 2 / 3 {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            let error = open(&folder, None).unwrap_err();
            assert!(matches!(error, ReplicaError::Corrupt { .. }), "{at}: {error}");
            assert_eq!(fs::read(&path).unwrap(), damaged, "it is left as it was");
        }
    }

    #[test]
    fn files_end_and_go() {
        let folder = Folder::new();
        let mut segments = open(&folder, None).unwrap().0;
        let big = |index| {
            let log_id = LogId::new(CommittedLeaderId::new(1, 0), index);
            Entry { log_id, payload: EntryPayload::Normal(Batch(vec![0; LENGTH as usize].into())) }
        };
        for index in 0..3 {
            let mut records = Vec::new();
            let length = push_record(&mut records, &big(index)).unwrap();
            segments.append(index, &records, &[length]).unwrap();
        }
        assert_eq!(segments.files.len(), 3);
        segments.purge(1).unwrap();
        assert_eq!((segments.files.len(), fs::read_dir(&folder.0).unwrap().count()), (1, 1));
        segments.purge(2).unwrap();
        // A snapshot may be ahead of the log.
        write(&mut segments, 9..11);
        assert_eq!(indices(&folder, Some(8)), [9, 10]);
        assert!(open(&folder, Some(3)).unwrap_err().to_string().contains("missing"));
    }

    #[test]
    fn a_file_in_the_middle_must_be_whole() {
        let (folder, path) = written(0..2);
        let mut segments = open(&folder, None).unwrap().0;
        segments.begin(2).unwrap();
        write(&mut segments, 2..3);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(matches!(open(&folder, None), Err(ReplicaError::Corrupt { .. })));
    }
}
