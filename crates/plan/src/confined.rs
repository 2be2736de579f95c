//! Files that an import names.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use plimsoll_document::{ConfinedFiles, FileKind, Files, KeyLogFile, RefusedFile};
use plimsoll_scenario::regular_file;

use crate::grants::{Grants, is_not_granted};
use crate::{Disk, PlanPatch};

/// Largest file that is imported, in bytes, and largest that it names. Both are read as a whole.
pub const LARGEST_IMPORT: u64 = 256 << 20;

/// Most bytes that are read of all files that an import names, one that is read twice counted twice. Two of
/// the largest, since the check of a plan reads the files that the import has read.
const MOST_READ: u64 = 512 << 20;

/// Most files that are remembered as refused: a script can name any number.
const MOST_REFUSED: usize = 100;

/// The file system as an import sees it, which may be hostile: regular files below the folder of what is
/// imported and below those that flags permit, as far as they are not too large. Whatever else it asks for
/// is refused and remembered. No path stands for the standard input.
#[derive(Debug)]
pub struct Confined {
    grants: Grants,
    own: PathBuf,
    /// Bytes that may still be read.
    left: Cell<u64>,
    /// By the path as it was named.
    refused: RefCell<BTreeMap<PathBuf, Reason>>,
    /// Refusals beyond those that are remembered.
    unnamed: Cell<u64>,
}

#[derive(Clone, Debug)]
struct Reason {
    text: String,
    is_grantable: bool,
}

impl Confined {
    /// The files for what lies in the folder `own`, with the permissions of these flags.
    pub fn new(own: &Path, flags: &PlanPatch) -> Self {
        Self {
            grants: Grants::of(flags),
            own: own.to_owned(),
            left: Cell::new(MOST_READ),
            refused: RefCell::default(),
            unnamed: Cell::default(),
        }
    }

    /// Returns the path of a file that may be read, with all links followed.
    fn permitted(&self, path: &Path) -> io::Result<PathBuf> {
        // Elsewhere this one stands for the standard input.
        let path = if path == Path::new("-") { Path::new("./-") } else { path };
        if std::fs::metadata(path)?.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        // A pipe of a process has no path.
        let real = Disk.real(path).unwrap_or_else(|_| path.to_owned());
        self.grants.importing(&Disk, &self.own, &real)?;
        Ok(real)
    }

    /// Remembers a refusal. What is not there, or can be no name of a file, is none.
    fn remembered<T>(&self, path: &Path, done: io::Result<T>) -> io::Result<T> {
        use ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound};
        if let Err(error) = &done
            && !matches!(
                error.kind(),
                NotFound | NotADirectory | IsADirectory | InvalidFilename | InvalidInput
            )
        {
            let mut refused = self.refused.borrow_mut();
            let name = path.strip_prefix(&self.own).unwrap_or(path);
            if refused.len() < MOST_REFUSED {
                let reason = Reason { text: error.to_string(), is_grantable: is_not_granted(error) };
                refused.insert(name.to_owned(), reason);
            } else if !refused.contains_key(name) {
                self.unnamed.set(self.unnamed.get() + 1);
            }
        }
        done
    }

    /// Takes bytes from those that may still be read.
    fn spend(&self, content: &[u8]) {
        self.left.set(self.left.get().saturating_sub(content.len() as u64));
    }

    fn whole(&self, path: &Path) -> io::Result<Vec<u8>> {
        let real = self.permitted(path)?;
        let left = self.left.get();
        let content = regular_file::read(&real, LARGEST_IMPORT.min(left)).map_err(|error| {
            match error.kind() == ErrorKind::FileTooLarge && left < LARGEST_IMPORT {
                true => too_much(),
                false => error,
            }
        })?;
        self.spend(&content);
        Ok(content)
    }

    fn head(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let file: File = regular_file::open(&self.permitted(path)?)?;
        let (left, mut head) = (self.left.get(), Vec::new());
        // One byte more reveals that too much is asked for.
        file.take(limit.min(left + 1)).read_to_end(&mut head)?;
        if head.len() as u64 > left {
            return Err(too_much());
        }
        self.spend(&head);
        Ok(head)
    }
}

fn too_much() -> io::Error {
    let message = format!("with it, the files of the import have more than {} MiB", MOST_READ >> 20);
    io::Error::new(ErrorKind::FileTooLarge, message)
}

impl Files for Confined {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.remembered(path, self.whole(path))
    }

    fn read_head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        self.remembered(path, self.head(path, limit as u64))
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        match self.permitted(path).and_then(|real| regular_file::open(&real)) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => Some(FileKind::Folder),
            opened => self.remembered(path, opened).ok().map(|_| FileKind::File),
        }
    }

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        Disk.real(path)
    }

    fn replaceable(&self, path: &Path) -> io::Result<()> {
        Disk.replaceable(path)
    }

    fn key_log(&self, _: &Path) -> io::Result<KeyLogFile> {
        Err(ErrorKind::Unsupported.into())
    }
}

impl ConfinedFiles for Confined {
    fn refused(&self) -> (Vec<RefusedFile>, u64) {
        let refused = self.refused.borrow();
        let files = refused.iter().map(|(path, reason)| RefusedFile {
            name: path.display().to_string(),
            reason: reason.text.clone(),
            hint: reason.is_grantable.then_some(
                "files that an import names lie below its own folder; for one that you trust, --allow-files \
                 DIR permits those below DIR, too",
            ),
        });
        (files.collect(), self.unnamed.get())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;
    use plimsoll_document::RawValue;

    /// A folder of an import with one beside it; it goes with this.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let place = std::env::temp_dir().join(format!("plimsoll-confined-{name}-{}", std::process::id()));
            std::fs::create_dir_all(place.join("own")).unwrap();
            std::fs::create_dir_all(place.join("beside")).unwrap();
            Self(place)
        }

        fn own(&self) -> PathBuf {
            self.0.join("own")
        }

        /// A file of this length that takes no place on the disk.
        fn long(&self, name: &str, length: u64) {
            File::create(self.own().join(name)).unwrap().set_len(length).unwrap();
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Shapes of names × permissions: what is read, whichever way, and what is told.
    #[test]
    fn an_import_reads_regular_files_of_its_folder_and_tells_what_it_refuses() {
        let place = Place::new("names");
        let own = place.own();
        std::fs::create_dir(own.join("sub")).unwrap();
        for file in [own.join("a"), own.join("-"), place.0.join("beside/c")] {
            std::fs::write(file, "content").unwrap();
        }
        symlink("../beside/c", own.join("link")).unwrap();
        symlink("a", own.join("inner")).unwrap();
        symlink("/dev/zero", own.join("zero")).unwrap();
        assert!(Command::new("mkfifo").arg(own.join("pipe")).status().unwrap().success());
        place.long("large", LARGEST_IMPORT + 1);
        let absolute = place.0.join("beside/c").display().to_string();
        let beside = RawValue::new("--allow-files", place.0.join("beside").display().to_string());
        let nothing = PlanPatch::default();
        let granted = PlanPatch { allow_files: vec![beside], ..PlanPatch::default() };
        let typed = PlanPatch { is_plan_of_flags: true, ..PlanPatch::default() };
        let elsewhere = Some("it is not below the folder of the import");
        let stream = Some("it is a pipe, a socket or a device");
        let large = Some("it has more than 256 MiB");
        for (name, refusals) in [
            ("a", [None; 3]),
            ("-", [None; 3]),
            ("sub/../inner", [None; 3]),
            ("link", [elsewhere, None, None]),
            ("../beside/c", [elsewhere, None, None]),
            (&absolute, [elsewhere, None, None]),
            ("pipe", [stream; 3]),
            ("large", [large; 3]),
            ("zero", [elsewhere, elsewhere, stream]),
            ("/dev/zero", [elsewhere, elsewhere, stream]),
        ] {
            for (flags, refusal) in [&nothing, &granted, &typed].into_iter().zip(refusals) {
                let path = own.join(name);
                let ways: [fn(&Confined, &Path) -> io::Result<usize>; 3] = [
                    |files, path| files.read(path).map(|content| content.len()),
                    |files, path| files.read_head(path, 7).map(|head| head.len()),
                    |files, path| files.kind(path).map(|_| 7).ok_or_else(|| io::Error::other("no kind")),
                ];
                for (number, read) in ways.into_iter().enumerate() {
                    // The beginning of a large file is not.
                    let refusal = refusal.filter(|_| number == 0 || name != "large");
                    let files = Confined::new(&own, flags);
                    assert_eq!(read(&files, &path).ok(), refusal.is_none().then_some(7), "{name} {number}");
                    let (told, unnamed) = files.refused();
                    let told: Vec<_> =
                        told.iter().map(|file| (file.name.as_str(), file.reason.as_str())).collect();
                    let expected: Vec<_> = refusal.into_iter().map(|reason| (name, reason)).collect();
                    assert_eq!((told, unnamed), (expected, 0), "{name} {number}");
                    let is_hinted = files.refused().0.iter().any(|file| file.hint.is_some());
                    assert_eq!(is_hinted, refusal == elsewhere, "{name} {number}");
                }
            }
        }
        // Nothing was refused of what is not there, or is no file.
        let files = Confined::new(&own, &nothing);
        for (name, kind) in [
            ("missing", ErrorKind::NotFound),
            ("a/b", ErrorKind::NotADirectory),
            ("sub", ErrorKind::IsADirectory),
            ("/", ErrorKind::IsADirectory),
            ("\0", ErrorKind::InvalidInput),
            (&"x".repeat(300), ErrorKind::InvalidFilename),
        ] {
            assert_eq!(files.read(&own.join(name)).unwrap_err().kind(), kind, "{name}");
        }
        assert_eq!(files.kind(&own.join("sub")), Some(FileKind::Folder));
        assert_eq!(files.kind(&own.join("missing")), None);
        assert_eq!(files.refused(), (Vec::new(), 0));
    }

    #[test]
    fn all_files_of_an_import_are_bounded_together() {
        let place = Place::new("sum");
        place.long("half", MOST_READ / 2 - 1);
        place.long("small", 3);
        let files = Confined::new(&place.own(), &PlanPatch::default());
        let lengths = |name: &str| {
            let read = files.read(&place.own().join(name));
            read.map(|content| content.len() as u64).map_err(|error| error.to_string())
        };
        let too_much = Err("with it, the files of the import have more than 512 MiB".to_owned());
        for _ in 0..2 {
            assert_eq!(lengths("half"), Ok(MOST_READ / 2 - 1));
        }
        assert_eq!(lengths("half"), too_much);
        assert_eq!(lengths("small"), too_much);
        let head = |limit| files.read_head(&place.own().join("half"), limit).map(|head| head.len()).ok();
        assert_eq!([head(3), head(1), head(2), head(1)], [None, Some(1), None, Some(1)]);
        assert_eq!([head(0), head(1)], [Some(0), None]);
        assert_eq!(files.refused().0.len(), 2);
    }

    #[test]
    fn a_bounded_number_of_refusals_is_remembered() {
        let place = Place::new("many");
        let files = Confined::new(&place.own(), &PlanPatch::default());
        for number in 0..MOST_REFUSED + 3 {
            let name = format!("{}etc/passwd", "../".repeat(20 + number));
            assert!(files.read(&place.own().join(&name)).is_err());
            assert!(files.read(&place.own().join(&name)).is_err());
        }
        let (told, unnamed) = files.refused();
        assert_eq!((told.len(), unnamed), (MOST_REFUSED, 6));
    }
}
