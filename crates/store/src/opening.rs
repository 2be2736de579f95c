//! Opening a store, and the handling of a damaged one.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::schema::{self, APPLICATION_ID, MIGRATIONS, VERSION};
use crate::{Store, StoreError};

/// Longest wait for another process that writes. Each of them holds the file for milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// A store up to this size is read through when it is opened, which takes some ten milliseconds.
const LOOKED_THROUGH: u64 = 64 << 20;
/// The files that SQLite keeps beside a database, by the ends of their names.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Origin of the name of a store's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By default: it is the usual path, and no other file can be there.
    Usual,
    /// By the user, who may have meant another file.
    Named,
}

impl Store {
    /// Opens the store in this file for writing, creates it if it does not exist, and brings it to this
    /// version. One that is damaged is renamed to `FILE.corrupt-NOW` (`unix_s` is the time in seconds since
    /// 1970), and a new one is begun: then that name is returned, too. A file that is something else is left
    /// alone, unless it is the usual one.
    ///
    /// # Errors
    /// If it cannot be used, is something else, or of a later version.
    pub fn open(path: &Path, origin: Origin, unix_s: u64) -> Result<(Self, Option<PathBuf>), StoreError> {
        let unusable =
            |error: io::Error| StoreError::Unusable { path: path.to_owned(), reason: error.to_string() };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(unusable)?;
        }
        check_kind(path)?;
        make(path)?;
        let damaged = fs::metadata(path).map_err(unusable)?.ino();
        match connect(path, origin) {
            Ok(db) => Ok((Self::new(db, path), None)),
            Err(StoreError::Corrupt { .. }) => {
                let aside = set_aside(path, damaged, unix_s).map_err(unusable)?;
                make(path)?;
                Ok((Self::new(connect(path, origin)?, path), Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the store in this file; `None` if the file does not exist.
    ///
    /// # Errors
    /// If it cannot be used, is damaged, something else, or of a later version.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        check_kind(path)?;
        match fs::metadata(path) {
            Ok(found) if found.len() > 0 => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(StoreError::Unusable { path: path.to_owned(), reason: error.to_string() });
            }
        }
        Ok(Some(Self::new(connect(path, Origin::Named)?, path)))
    }
}

/// Refuses an existing path that is not a regular file. To open a pipe would wait for somebody at its other
/// end, and no signal ends that.
fn check_kind(path: &Path) -> Result<(), StoreError> {
    let Ok(kind) = fs::metadata(path).map(|found| found.file_type()) else { return Ok(()) };
    let kind = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(StoreError::NotAFile { path: path.to_owned(), kind })
}

/// Makes the store where there is no file. It gets its name when it is whole: another process that makes it
/// at the same time finds either none or all of it, and the first one stays.
fn make(path: &Path) -> Result<(), StoreError> {
    let unusable =
        |error: io::Error| StoreError::Unusable { path: path.to_owned(), reason: error.to_string() };
    // The file has plans, so only its owner may read it.
    let open = |path: &Path| OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    if fs::metadata(path).is_ok() {
        // An existing file has to be writable.
        return open(path).map(|_| ()).map_err(unusable);
    }
    let new = with_end(path, &format!(".new-{}", std::process::id()));
    open(&new).map_err(unusable)?;
    let made = connect(&new, Origin::Usual).map(drop).map_err(|error| error.at(path));
    let named = made.and_then(|()| match fs::hard_link(&new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Where files have one name only.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) =>
        {
            open(path).map(|_| ()).map_err(unusable)
        }
        linked => linked.map_err(unusable),
    });
    let removed = fs::remove_file(&new).map_err(unusable);
    named.and(removed)
}

/// A path with something more at its end.
fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// A connection to a file that is there, empty or a store.
fn connect(path: &Path, origin: Origin) -> Result<Connection, StoreError> {
    let failed = |error| StoreError::of(path, error);
    let unusable =
        |error: io::Error| StoreError::Unusable { path: path.to_owned(), reason: error.to_string() };
    let mut begin = Vec::new();
    let file = fs::File::open(path).map_err(unusable)?;
    let size = file.metadata().map_err(unusable)?.len();
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).map_err(unusable)?;
    if !begin.is_empty() && begin != MAGIC {
        let (path, reason) = (path.to_owned(), "it does not begin as a database does".to_owned());
        return Err(match origin {
            Origin::Usual => StoreError::Corrupt { path, reason },
            Origin::Named => StoreError::NotAStore { path },
        });
    }
    let mut db = Connection::open(path).map_err(failed)?;
    db.busy_timeout(PATIENCE).map_err(failed)?;
    let (version, application, tables) = outline(&db).map_err(failed)?;
    if version > VERSION {
        return Err(StoreError::TooNew { path: path.to_owned(), found: version, known: VERSION });
    }
    // A database with tables that are not ours belongs to another program. One without tables is about to
    // become a store.
    if tables > 0 && application != APPLICATION_ID {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    if (1..=LOOKED_THROUGH).contains(&size) {
        look_through(&db, path)?;
    }
    // The committing process writes the log, and a process that is killed has lost nothing of it.
    let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(failed)?;
    if journal != "wal" {
        db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    }
    db.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    db.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    schema::migrate(&mut db, MIGRATIONS).map_err(failed)?;
    Ok(db)
}

/// The version of a file's schema, whose it is, and how many tables it has; all at one time, since another
/// process may be making the store.
fn outline(db: &Connection) -> rusqlite::Result<(u32, u32, u32)> {
    let moment = db.unchecked_transaction()?;
    let tables = moment.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application = moment.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = schema::version(&moment)? as u32;
    moment.commit()?;
    Ok((version, application, tables))
}

fn look_through(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let found: String = db
        .query_one("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| StoreError::of(path, error))?;
    match &*found {
        "ok" => Ok(()),
        // Several lines, of which the first says that there is something.
        _ => Err(StoreError::Corrupt { path: path.to_owned(), reason: found.replace('\n', " ") }),
    }
}

/// Renames a damaged store, with the files beside it. If another process has done so meanwhile, the file is
/// another one, and is left alone.
fn set_aside(path: &Path, damaged: u64, unix_s: u64) -> io::Result<PathBuf> {
    let mut aside = with_end(path, &format!(".corrupt-{unix_s}"));
    // Two within one second are both kept.
    let mut number = 1;
    while aside.exists() {
        aside = with_end(path, &format!(".corrupt-{unix_s}-{number}"));
        number += 1;
    }
    if fs::metadata(path)?.ino() == damaged {
        for end in COMPANIONS {
            match fs::rename(with_end(path, end), with_end(&aside, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(path, &aside)?;
    }
    Ok(aside)
}
