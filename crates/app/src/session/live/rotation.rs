//! Files that are written while a run goes on, cut into several where one would become too long.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_document::Problem;
use plimsoll_system::clock;

use crate::args::rotate::Rotation;
use crate::base::failure::Failure;

/// A file of records that is rotated. A reader finds the newest records under its name; earlier ones are in
/// files beside it with ascending numbers, and a number that is taken by another file is left out.
#[derive(Debug)]
pub(crate) struct RecordFile {
    out: BufWriter<File>,
    path: PathBuf,
    /// First bytes of each file.
    header: Vec<u8>,
    rotation: Rotation,
    /// Bytes of the file so far, and when it was begun.
    written: u64,
    begun: Nanos,
    /// Ends of records that may still be in the buffer, as bytes of this file.
    ends: VecDeque<u64>,
    /// Records that were taken, of all files.
    taken: u64,
    /// The number that the next renamed file gets, if it is free.
    number: u64,
    /// Files that were renamed and are kept, the oldest first, each with its identity for the system.
    kept: VecDeque<(PathBuf, Identity)>,
}

/// Device and number of a file: they distinguish it from another file that has taken its name.
type Identity = (u64, u64);

impl RecordFile {
    /// Creates the file, or empties it, and writes the header.
    ///
    /// # Errors
    /// It cannot be written, or it is to be rotated and is not a regular file.
    pub(crate) fn create(path: &Path, header: &str, rotation: Rotation) -> Result<Self, Failure> {
        let failed = |error: io::Error| unwritable(path, &error);
        let rotates = rotation.size.is_some() || rotation.every.is_some();
        // Checked before the file is opened: opening a pipe would wait for its reader.
        if rotates && fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let problem = Problem::new(format!("cannot rotate {}: it is not a regular file", path.display()));
            return Err(Failure::usage(problem.with_hint("name a file, or leave out --rotate-…")));
        }
        let out = BufWriter::new(File::create(path).map_err(failed)?);
        let mut this = Self {
            out,
            path: path.to_owned(),
            header: header.as_bytes().to_vec(),
            rotation,
            written: 0,
            ends: VecDeque::new(),
            taken: 0,
            begun: clock::monotonic(),
            number: 1,
            kept: VecDeque::new(),
        };
        this.begin().map_err(failed)?;
        Ok(this)
    }

    /// Writes one record, or several that belong together. It may stay in the buffer.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if self.is_over(record.len() as u64) {
            self.rotate()?;
        }
        self.out.write_all(record)?;
        self.written += record.len() as u64;
        self.taken += 1;
        self.forget_written();
        self.ends.push_back(self.written);
        Ok(())
    }

    /// Returns the number of records taken so far, including those in the buffer.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Gives the file up after an error: how many of the records that were taken have not reached it whole.
    pub(crate) fn give_up(mut self) -> u64 {
        self.forget_written();
        // Skips the last attempt to write the buffer.
        let _ = self.out.into_parts();
        self.ends.len() as u64
    }

    fn forget_written(&mut self) {
        let safe = self.written - (self.out.buffer().len() as u64).min(self.written);
        while self.ends.front().is_some_and(|end| *end <= safe) {
            self.ends.pop_front();
        }
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if a record of `more` bytes belongs to the next file. A file has one record at least.
    fn is_over(&self, more: u64) -> bool {
        let Rotation { size, every, .. } = self.rotation;
        let has_records = self.written > self.header.len() as u64;
        has_records
            && (size.is_some_and(|size| self.written.saturating_add(more) > size)
                || every.is_some_and(|every| clock::monotonic().since(self.begun) >= every))
    }

    fn begin(&mut self) -> io::Result<()> {
        self.out.write_all(&self.header)?;
        self.out.flush()?;
        (self.written, self.begun) = (self.header.len() as u64, clock::monotonic());
        self.ends.clear();
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.out.flush()?;
        let mine = identity(&self.out.get_ref().metadata()?);
        // Another process may have moved the file away and put another one there: that one is not ours.
        if fs::metadata(&self.path).is_ok_and(|found| identity(&found) == mine) {
            let aside = self.free_name();
            // Unlike a rename, a link never replaces what is there.
            fs::hard_link(&self.path, &aside).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                // The file system has no links.
                _ => fs::rename(&self.path, &aside),
            })?;
            if fs::metadata(&self.path).is_ok_and(|found| identity(&found) == mine) {
                fs::remove_file(&self.path)?;
            }
            self.kept.push_back((aside, mine));
        }
        self.out = BufWriter::new(File::options().write(true).create_new(true).open(&self.path)?);
        self.begin()?;
        self.clear()
    }

    /// `stats.1.csv` beside `stats.csv`: the first free name from the next number on.
    fn free_name(&mut self) -> PathBuf {
        loop {
            let number = self.number;
            self.number += 1;
            let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
            let extension = self.path.extension().map(|extension| extension.to_string_lossy());
            let name = match extension {
                Some(extension) => format!("{stem}.{number}.{extension}"),
                None => format!("{stem}.{number}"),
            };
            let aside = self.path.with_file_name(name);
            if fs::symlink_metadata(&aside).is_err() {
                return aside;
            }
        }
    }

    /// Deletes the files beyond those that are kept, if they are still ours.
    fn clear(&mut self) -> io::Result<()> {
        let Some(keep) = self.rotation.keep else { return Ok(()) };
        while self.kept.len() > keep {
            let Some((old, mine)) = self.kept.pop_front() else { break };
            if fs::symlink_metadata(&old).is_ok_and(|found| identity(&found) == mine) {
                fs::remove_file(&old)?;
            }
        }
        Ok(())
    }
}

fn identity(found: &fs::Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// The failure of a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let problem = Problem::new(format!("cannot write {}: {error}", path.display()));
    Failure::environment(problem.with_hint("name a file in a folder that exists and may be written"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::rotate::RotateArgs;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("plimsoll-rotation-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.0.join(name)).ok()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // The system cleans up files that cannot be removed.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn rotation(size: u64, keep: Option<usize>) -> Rotation {
        Rotation { size: Some(size), every: None, keep }
    }

    #[test]
    fn each_file_is_whole_and_nothing_is_lost_at_the_border() {
        let folder = Folder::new("whole");
        let mut file = RecordFile::create(&folder.0.join("a.csv"), "n,text\n", rotation(50, None)).unwrap();
        let records: Vec<String> =
            (0..100).map(|number| format!("{number},{}\n", "x".repeat(number % 23))).collect();
        records.iter().for_each(|record| file.write(record.as_bytes()).unwrap());
        file.flush().unwrap();
        let names = (1..).map(|number| format!("a.{number}.csv"));
        let mut texts: Vec<String> = names.map_while(|name| folder.read(&name)).collect();
        assert!(texts.len() > 10, "{}", texts.len());
        texts.push(folder.read("a.csv").unwrap());
        assert!(texts.iter().all(|text| text.len() <= 50 && text.ends_with('\n')));
        let bare: Vec<&str> = texts.iter().filter_map(|text| text.strip_prefix("n,text\n")).collect();
        assert_eq!((bare.len(), bare.concat()), (texts.len(), records.concat()));
        assert!(bare.iter().all(|text| !text.is_empty()));
    }

    #[test]
    fn records_that_did_not_reach_the_file_are_counted() {
        let create = || RecordFile::create(Path::new("/dev/full"), "", Rotation::default()).unwrap();
        let mut file = create();
        (0..3).for_each(|_| file.write(b"record\n").unwrap());
        assert!(file.flush().is_err());
        assert_eq!((file.taken(), file.give_up()), (3, 3));
        // A record that the buffer has no room for makes it write, and is not taken.
        let mut file = create();
        file.write(b"small\n").unwrap();
        assert!(file.write(&[b'x'; 100_000]).is_err());
        assert_eq!((file.taken(), file.give_up()), (1, 1));
        let folder = Folder::new("counted");
        let mut file = RecordFile::create(&folder.0.join("log"), "head\n", rotation(20, None)).unwrap();
        (0..10).for_each(|_| file.write(b"7 bytes").unwrap());
        // Two records of the last file are in the buffer; those before have been handed over.
        assert_eq!((file.taken(), file.give_up()), (10, 2));
        assert_eq!(folder.read("log").as_deref(), Some("head\n"));
    }

    #[test]
    fn only_what_we_have_written_is_deleted() {
        let folder = Folder::new("ours");
        fs::write(folder.0.join("log.2"), "somebody's").unwrap();
        let path = folder.0.join("log");
        let mut file = RecordFile::create(&path, "", rotation(10, Some(2))).unwrap();
        let mut write = |text: &str| file.write(text.as_bytes()).unwrap();
        ["first 10 b", "second 10b", "third 10 b"].into_iter().for_each(&mut write);
        // Two were renamed: 1, and 3, because 2 belongs to another process, which now takes 3, too.
        assert_eq!(folder.read("log.1").as_deref(), Some("first 10 b"));
        assert_eq!(folder.read("log.3").as_deref(), Some("second 10b"));
        fs::write(folder.0.join("other"), "somebody's").unwrap();
        fs::rename(folder.0.join("other"), folder.0.join("log.3")).unwrap();
        ["fourth 10b", "fifth 10 b", "sixth 10 b"].into_iter().for_each(&mut write);
        assert_eq!(folder.read("log.1"), None);
        for name in ["log.2", "log.3"] {
            assert_eq!(folder.read(name).as_deref(), Some("somebody's"), "{name}");
        }
        assert_eq!(folder.read("log.4"), None);
        assert_eq!(folder.read("log.5").as_deref(), Some("fourth 10b"));
        assert_eq!(folder.read("log.6").as_deref(), Some("fifth 10 b"));
        // Somebody moves the file away that is written to.
        file.flush().unwrap();
        fs::rename(&path, folder.0.join("moved")).unwrap();
        file.write(b"seventh 10").unwrap();
        file.flush().unwrap();
        assert_eq!(folder.read("moved").as_deref(), Some("sixth 10 b"));
        assert_eq!(folder.read("log").as_deref(), Some("seventh 10"));
    }

    #[test]
    fn what_is_no_file_is_not_rotated() {
        let error = RecordFile::create(Path::new("/dev/null"), "", rotation(9_000, None)).unwrap_err();
        assert!(format!("{error:?}").contains("not a regular file"), "{error:?}");
        assert!(RecordFile::create(Path::new("/dev/null"), "", Rotation::default()).is_ok());
    }

    #[test]
    fn flags_say_what_is_wrong_with_them() {
        let args = |size: &str, every: &str, keep: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            RotateArgs { rotate_size: some(size), rotate_every: some(every), rotate_keep: some(keep) }
        };
        let rotation =
            Rotation { size: Some(100 << 20), every: Some(Nanos::from_secs(3_600)), keep: Some(24) };
        assert_eq!(args("100MiB", "1h", "24").rotation(true).ok(), Some(rotation));
        assert_eq!(args("", "", "").rotation(false).ok(), Some(Rotation::default()));
        for (size, every, keep, writes) in [
            ("1k", "", "", true),
            ("many", "", "", true),
            ("", "10ms", "", true),
            ("", "1h", "-1", true),
            ("", "", "3", true),
            ("1MiB", "", "", false),
        ] {
            assert!(args(size, every, keep).rotation(writes).is_err(), "{size} {every} {keep} {writes}");
        }
    }
}
