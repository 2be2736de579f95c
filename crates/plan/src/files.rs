//! The file system as the source of files that a plan refers to.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plimsoll_document::{FileKind, Files, KeyLogFile, LARGEST_TEXT};
use plimsoll_scenario::regular_file;
use plimsoll_wire::tls::KeyLogSink;

/// ENXIO: what `/dev/stdin` gives where it is a socket.
const NO_SUCH_DEVICE: i32 = 6;

/// The file system. The path `-` is the standard input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// A file from its beginning, or the standard input. By its path the latter can be read several times if it
/// is a file; a socket cannot be opened by one, and is read as it is.
fn open(path: &Path) -> io::Result<Box<dyn io::Read>> {
    let is_stdin = path == Path::new("-");
    let opened = File::open(if is_stdin { Path::new("/dev/stdin") } else { path });
    match opened {
        Err(error) if is_stdin && error.raw_os_error() == Some(NO_SUCH_DEVICE) => Ok(Box::new(io::stdin())),
        opened => Ok(Box::new(opened?)),
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        open(path)?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn read_head(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        open(path)?.take(limit as u64).read_to_end(&mut head)?;
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

    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(if path == Path::new("") { Path::new(".") } else { path })
    }

    fn replaceable(&self, path: &Path) -> io::Result<()> {
        if std::fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        let found =
            std::fs::metadata(path).map_err(|_| io::Error::other("it is a link that leads nowhere"))?;
        match found.is_file() {
            false => Err(io::Error::other("it is a pipe, a device or a folder")),
            true if found.permissions().mode() & 0o111 != 0 => Err(io::Error::other("it is a program")),
            true => Ok(()),
        }
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

/// Reads the text of a file that a flag or a cluster spec names: a plan, a payload, a token, a key. Such
/// files are as large as a plan file at most.
///
/// # Errors
/// The reason why it cannot be read, for example that it is not a file, is too large, or is not text in
/// UTF-8.
pub fn named_text(path: &Path) -> io::Result<String> {
    let most = LARGEST_TEXT as u64;
    let content = match path == Path::new("-") {
        true => regular_file::bounded(open(path)?, most)?,
        false => regular_file::read(path, most)?,
    };
    String::from_utf8(content).map_err(|_| io::Error::other("it is not text in UTF-8"))
}

/// A log of TLS secrets as the clients of TLS know it.
#[derive(Debug)]
pub(crate) struct KeyLog(pub(crate) KeyLogFile);

impl KeyLogSink for KeyLog {
    fn line(&self, line: &str) {
        self.0.line(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_texts_are_bounded_and_no_pipes() {
        use std::process::Command;
        let path = std::env::temp_dir().join(format!("plimsoll-named-text-{}", std::process::id()));
        let said = || named_text(&path).map_err(|error| error.to_string());
        assert!(said().is_err(), "there is none yet");
        // It takes no place on the disk.
        let file = File::create(&path).unwrap();
        for (length, expected) in [
            (LARGEST_TEXT, Ok(LARGEST_TEXT)),
            (LARGEST_TEXT + 1, Err("it has more than 16 MiB")),
            (300 << 20, Err("it has more than 16 MiB")),
        ] {
            file.set_len(length as u64).unwrap();
            let read = said();
            assert_eq!(read.as_ref().map(String::len).map_err(String::as_str), expected);
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(said(), Err("it is not text in UTF-8".to_owned()));
        std::fs::remove_file(&path).unwrap();
        // The pipe has no other end, so nothing may wait for it.
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let pipe = said();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(pipe, Err("it is a pipe, a socket or a device".to_owned()));
    }
}
