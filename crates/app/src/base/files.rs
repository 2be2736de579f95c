//! Results in files, beside the one on stdout.
//!
//! A file is tried before the load begins, as far as that leaves no trace: an hour of load is not to end with
//! a folder that does not exist. Later errors are reported after the result was written to stdout.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use plimsoll_document::{Files as _, Problem};
use plimsoll_plan::{Confined, PlanPatch, named_text};
use plimsoll_scenario::regular_file;
use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::base::environment;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::stdout::to_stdout;

/// Permissions of a file for its owner alone.
const PRIVATE: u32 = 0o600;

/// A file that is to be written when the result is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndFile {
    pub(crate) path: PathBuf,
    /// `true` if the file's content is kept: the summary of a job belongs to all its steps.
    pub(crate) append: bool,
    /// `true` if it is for its owner alone: it has tokens and the like.
    pub(crate) is_private: bool,
    /// `true` if it takes the place of no other file.
    pub(crate) is_new: bool,
}

impl EndFile {
    /// A file that a flag names, tried.
    ///
    /// # Errors
    /// It cannot be written, or is not a file.
    pub(crate) fn new(flag: &str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let problem = Problem::new(format!("{flag}: stdout has the report, and nothing else"));
            let hint = "choose the format of stdout by --output, and name a file here";
            return Err(Failure::usage(problem.with_hint(hint)));
        }
        attempt(path).map_err(|error| {
            let problem = Problem::new(format!("{flag}: cannot write {}: {error}", path.display()));
            let hint = "name a file in a folder that exists and may be written";
            Failure::environment(problem.with_hint(hint))
        })?;
        Ok(Self { path: path.to_owned(), append: false, is_private: false, is_new: false })
    }

    /// A file that a flag names, tried, which must not be there yet.
    ///
    /// # Errors
    /// There is one, or it cannot be written.
    pub(crate) fn fresh(flag: &str, path: &Path) -> Result<Self, Failure> {
        let file = Self::new(flag, path)?;
        // A link that leads nowhere is there, too.
        if std::fs::symlink_metadata(path).is_ok() {
            let problem = Problem::new(format!("{flag}: {} is there already", path.display()));
            let hint = "name a file that is not: this one never takes the place of another";
            return Err(Failure::environment(problem.with_hint(hint)));
        }
        Ok(Self { is_new: true, ..file })
    }

    /// The file for its owner alone.
    pub(crate) fn private(self) -> Self {
        Self { is_private: true, ..self }
    }

    /// Writes it in one go.
    pub(crate) fn write(&self, content: &[u8]) -> Result<(), Problem> {
        // A full disk may report its error only with the last part.
        let into = |mut file: File| file.write_all(content).and_then(|()| file.sync_data_if_regular());
        let written = if self.is_new {
            OpenOptions::new().write(true).create_new(true).open(&self.path).and_then(into)
        } else if self.append {
            open(&self.path, true).and_then(into)
        } else {
            replace(&self.path, content, self.is_private)
        };
        written.map_err(|error| {
            let problem = Problem::new(format!("cannot write {}: {error}", self.path.display()));
            problem.with_hint("choose another path, or make room; stdout does not depend on it")
        })
    }
}

/// Reads the text of a file that a flag of a workload names, within the
/// [confinement](environment::confinement) of this process.
///
/// # Errors
/// As [`named_text`], and that it lies elsewhere.
pub(crate) fn typed_text(path: &Path) -> io::Result<String> {
    if environment::confinement().is_some() {
        Confined::new(Path::new(""), &PlanPatch::default()).read_head(path, 1)?;
    }
    named_text(path)
}

/// Writes a whole file for its owner alone, whatever was there.
///
/// # Errors
/// `path` cannot be written.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, true)
}

/// Writes a whole file: beside the place, and then in place of what is there, which a full disk leaves as it
/// was. A pipe, a device, a file of somebody else, and one in a folder that is read-only, is written as it
/// is.
///
/// # Errors
/// `path` cannot be written.
fn replace(path: &Path, content: &[u8], is_private: bool) -> io::Result<()> {
    // A link stays, and what it leads to is replaced.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = std::fs::metadata(&place).ok();
    let is_ours = there.as_ref().is_none_or(|found| {
        found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
    });
    let Some(name) = place.file_name().filter(|_| is_ours && access(folder, Access::WRITE_OK).is_ok()) else {
        let mut file = open(path, false)?;
        if is_private && file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(PRIVATE))?;
        }
        return file.write_all(content).and_then(|()| file.sync_data_if_regular());
    };
    let beside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let mode = if is_private { PRIVATE } else { 0o666 };
    // The rest of a process of this number, or a link that somebody put there, would keep its permissions.
    let _ = std::fs::remove_file(&beside);
    let written =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside).and_then(|mut file| {
            if let Some(there) = there.filter(|_| !is_private) {
                file.set_permissions(there.permissions())?;
            }
            // A full disk may report its error only with the last part.
            file.write_all(content)?;
            file.sync_data()?;
            std::fs::rename(&beside, &place)
        });
    if written.is_err() {
        // Otherwise its rest would stay on the full disk.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Errors of a disk that come late.
trait SyncIfRegular {
    fn sync_data_if_regular(&self) -> io::Result<()>;
}

impl SyncIfRegular for File {
    fn sync_data_if_regular(&self) -> io::Result<()> {
        if self.metadata()?.is_file() { self.sync_data() } else { Ok(()) }
    }
}

/// Opens a file to be written, from its beginning or behind its content.
///
/// # Errors
/// It cannot be opened, or is a pipe without a reader: opening it would block, and no signal ends that.
fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(append).write(!append).truncate(!append).create(true);
    if !std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return options.open(path);
    }
    match options.truncate(false).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path) {
        Ok(pipe) => {
            // Writes may block, since the reader may be slow.
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
            Ok(pipe)
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            Err(io::Error::other("no process reads the pipe"))
        }
        Err(error) => Err(error),
    }
}

/// Finds out whether a file can be written, without writing it.
fn attempt(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !std::fs::metadata(folder)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Writes a result that has a table: to stdout, and as JSON to a file if one was named.
///
/// # Errors
/// Everything that could not be written.
pub(crate) fn write_table(
    json: Option<&EndFile>,
    to: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    as_json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let stdout = to_stdout(to);
    let written = json.map(|file| {
        let mut content = Vec::new();
        as_json(&mut content).map_err(|error| Problem::new(error.to_string()))?;
        file.write(&content)
    });
    together(stdout, written.into_iter())
}

/// Reads a file of at most `most` bytes that the person has named, a pipe perhaps; `None` if it has more.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read_within(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    match regular_file::bounded(File::open(path)?, most) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(None),
        read => read.map(Some),
    }
}

/// Writes a file in one go.
///
/// # Errors
/// It cannot be written.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut content = Vec::new();
    let written = write(&mut content).and_then(|()| replace(path, &content, false));
    written.map_err(|error| {
        Failure::environment(Problem::new(format!("cannot write {}: {error}", path.display())))
    })
}

/// The file of `--json`, tried.
///
/// # Errors
/// It cannot be written.
pub(crate) fn json_file(path: Option<&PathBuf>) -> Result<Option<EndFile>, Failure> {
    path.map(|path| EndFile::new("--json", path)).transpose()
}

pub(crate) fn together(
    stdout: Result<(), Failure>,
    files: impl Iterator<Item = Result<(), Problem>>,
) -> Result<(), Failure> {
    let mut problems = stdout.err().map(|failure| failure.problems).unwrap_or_default();
    files.filter_map(Result::err).for_each(|problem| problems.push(problem));
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure { problems, source: None, exit: Exit::Environment })
}
