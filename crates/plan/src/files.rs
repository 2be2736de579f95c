//! Files that a plan refers to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Mutex;

use plimsoll_wire::tls::KeyLogSink;

/// Where the files that a plan names are read from: bodies, certificates, keys, credentials.
pub trait Files {
    /// The whole content of `path`.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

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

    /// The names of what is in a folder; none if it cannot be read.
    fn names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }

    /// A sink that appends TLS secrets to `path`, which is created readable by its owner only.
    fn key_log(&self, path: &Path) -> io::Result<KeyLogFile>;
}

/// Kind of file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Something to read.
    File,
    /// A folder.
    Folder,
    /// Something that can be read once, and only while somebody is at its other end: a pipe, a socket, a
    /// device.
    Stream,
}

/// The file system. The path `-` is the standard input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("-") {
            return std::fs::read("/dev/stdin");
        }
        std::fs::read(path)
    }

    fn read_head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        let mut head = Vec::new();
        File::open(path)?.take(limit as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    fn kind(&self, path: &Path) -> Option<FileKind> {
        let found = std::fs::metadata(path).ok()?;
        Some(match found.file_type() {
            kind if kind.is_dir() => FileKind::Folder,
            kind if kind.is_file() => FileKind::File,
            _ => FileKind::Stream,
        })
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let here = if folder == Path::new("") { Path::new(".") } else { folder };
        let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    fn key_log(&self, path: &Path) -> io::Result<KeyLogFile> {
        KeyLogFile::append(path)
    }
}

/// Appends TLS secrets to a file in the NSS key log format, for Wireshark and the like (`SSLKEYLOGFILE`).
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens `path` for appending.
    pub fn append(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        // 0600: whoever reads this file can read the traffic.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        Ok(Self(Mutex::new(file)))
    }
}

impl KeyLogSink for KeyLogFile {
    fn line(&self, line: &str) {
        let mut text = line.trim_end_matches('\n').to_owned();
        text.push('\n');
        if let Ok(mut file) = self.0.lock() {
            // One write per line, so that lines of several processes do not mix. A full disk must not end a
            // load test: the log is an aid for debugging, and its reader sees that it is short.
            let _ = file.write_all(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_log_lines_are_appended_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let path = std::env::temp_dir().join(format!("plimsoll-key-log-{}", std::process::id()));
        for line in ["CLIENT_RANDOM a b", "CLIENT_RANDOM c d\n"] {
            Disk.key_log(&path).unwrap().line(line);
        }
        let read = Disk.read(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read, b"CLIENT_RANDOM a b\nCLIENT_RANDOM c d\n");
        assert_eq!(mode & 0o777, 0o600);
    }
}
