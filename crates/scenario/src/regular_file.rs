//! Regular files: what somebody else names may be a pipe that nobody writes to, or a device without an end.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file for reading. Anything else is not opened, nor waited for.
///
/// # Errors
/// The reason why it cannot be read, for example that it is a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening some devices has an effect.
    check(std::fs::metadata(path)?.file_type())?;
    // Another one may have taken its place since: a pipe is then opened without waiting for its other end.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// The reason why it cannot be read; one of the kind [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it has
/// more bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_large(most));
    }
    // The length of a file in `/proc` is 0, and others grow.
    bounded(file, most)
}

/// Reads `source` to its end, which comes after at most `most` bytes.
///
/// # Errors
/// The reason why it cannot be read; one of the kind [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it has
/// more bytes.
pub fn bounded(source: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One byte more reveals that there is more.
    source.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 <= most { Ok(content) } else { Err(too_large(most)) }
}

fn too_large(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {} MiB", most >> 20))
}

fn check(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))
    } else {
        Err(io::Error::other("it is a pipe, a socket or a device"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    /// Kinds of files × what is read of them.
    #[test]
    fn regular_files_are_read_up_to_a_bound_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("plimsoll-regular-file-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("folder")).unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::write(at("file"), "content").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        // It takes no place on the disk.
        File::create(at("large")).unwrap().set_len(3 << 40).unwrap();
        // Neither has another end, so nothing may wait for one.
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _listener = UnixListener::bind(at("socket")).unwrap();
        let stream = Err("it is a pipe, a socket or a device".to_owned());
        let large = Err("it has more than 1 MiB".to_owned());
        for (name, expected) in [
            ("file", Ok(7)),
            ("link", Ok(7)),
            ("folder", Err("it is a folder".to_owned())),
            ("pipe", stream.clone()),
            ("socket", stream.clone()),
            ("zero", stream.clone()),
            ("/dev/null", stream),
            ("large", large.clone()),
            ("/proc/self/status", Ok(0)),
        ] {
            let read = read(&at(name), 1 << 20).map_err(|error| error.to_string());
            let length = read.map(|content| if name.starts_with("/proc") { 0 } else { content.len() });
            assert_eq!(length, expected, "{name}");
        }
        for (length, expected) in [(1 << 20, Ok(1 << 20)), ((1 << 20) + 1, large)] {
            File::create(at("large")).unwrap().set_len(length).unwrap();
            let read = read(&at("large"), 1 << 20).map_err(|error| error.to_string());
            assert_eq!(read.map(|content| content.len()), expected);
        }
        let none = read(&at("none"), 1 << 20).map_err(|error| error.kind());
        assert_eq!(none, Err(io::ErrorKind::NotFound));
        assert_eq!(read(Path::new("/proc/self/status"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
