//! Files that a plan refers to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// The source of files that a plan names: bodies, certificates, keys, credentials.
pub trait Files {
    /// The whole content of `path`.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The content of a file that holds a secret: it stays on this machine.
    fn secret(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }

    /// The first bytes of `path`, at most `limit`: data files may be larger than memory.
    fn read_head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut content = self.read(path)?;
        content.truncate(limit);
        Ok(content)
    }

    /// Returns the kind of file at `path`, if there is one.
    fn kind(&self, path: &Path) -> Option<FileKind> {
        self.read_head(path, 1).is_ok().then_some(FileKind::File)
    }

    /// The path from the root, with all links followed; the empty path is the folder in which the command
    /// runs.
    ///
    /// # Errors
    /// There is nothing at `path`.
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(absolute(path))
    }

    /// Checks that somebody else's text may take the place of what is at `path`.
    ///
    /// # Errors
    /// There is a link that leads nowhere, a pipe, a device or a program.
    fn replaceable(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    /// The names of the entries of a folder; none if it cannot be read.
    fn names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }

    /// A sink that appends TLS secrets to `path`, which is created readable by its owner only.
    fn key_log(&self, path: &Path) -> io::Result<KeyLogFile>;
}

/// Files of which some may be refused, which are remembered.
pub trait ConfinedFiles: Files {
    /// Returns the files that were refused so far, and how many more there were.
    fn refused(&self) -> (Vec<RefusedFile>, u64);
}

/// A file that was there and was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// Name, as seen from the folder of the import.
    pub name: String,
    /// The reason, as a clause.
    pub reason: String,
    /// Advice, if there is something to do about it.
    pub hint: Option<&'static str>,
}

/// Kind of file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Something to read.
    File,
    /// A folder.
    Folder,
    /// Something that can be read once, and only while its other end is open: a pipe, a socket, a
    /// device.
    Stream,
}

/// Appends TLS secrets to a file in the NSS key log format, for Wireshark and the like (`SSLKEYLOGFILE`).
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens `path` for appending.
    pub fn append(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        // 0600: a reader of this file can decrypt the traffic.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends a line.
    pub fn line(&self, line: &str) {
        let mut text = line.trim_end_matches('\n').to_owned();
        text.push('\n');
        if let Ok(mut file) = self.0.lock() {
            // One write per line, so that lines of several processes do not mix. A full disk must not end a
            // load test: the log is an aid for debugging, and a short one is easy to notice.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

/// The path without `.` and `..`, from the root: for [`Files`] that know no links.
fn absolute(path: &Path) -> PathBuf {
    let mut whole = PathBuf::from("/here");
    for part in path.components() {
        match part {
            Component::RootDir => whole = PathBuf::from("/"),
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(name) => whole.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_from_the_root() {
        for (path, whole) in [
            ("", "/here"),
            ("a/./b", "/here/a/b"),
            ("../a", "/a"),
            ("a/../../..", "/"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(absolute(Path::new(path)), Path::new(whole), "{path}");
        }
    }

    #[test]
    fn key_log_lines_are_appended_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("plimsoll-key-log-{}", std::process::id()));
        for line in ["CLIENT_RANDOM a b", "CLIENT_RANDOM c d\n"] {
            KeyLogFile::append(&path).unwrap().line(line);
        }
        let read = std::fs::read(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read, b"CLIENT_RANDOM a b\nCLIENT_RANDOM c d\n");
        assert_eq!(mode & 0o777, 0o600);
    }
}
