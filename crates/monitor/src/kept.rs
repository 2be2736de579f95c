//! Files that stay open and are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Initial size of a read buffer: more than any file here has on a small machine.
const FIRST_SIZE: usize = 64 << 10;
/// Beyond this a file is cut: `/proc/stat` of a machine with thousands of processors is smaller.
const LARGEST: usize = 4 << 20;

/// A buffer for files, which are read one after the other.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; FIRST_SIZE])
    }
}

/// A file of `/proc` or `/sys`, which is made again when it is read from its beginning.
#[derive(Debug)]
pub(crate) struct ProcFile(File);

impl ProcFile {
    /// Opens it; a failure is noted in `missing`.
    pub(crate) fn open(path: &Path, missing: &mut Vec<String>) -> Option<Self> {
        Self::noted(path, File::open(path), missing)
    }

    /// Opens the file and reads from it once: files of other users' processes can be opened, but not read. A
    /// failure is noted in `missing`.
    pub(crate) fn open_readable(path: &Path, missing: &mut Vec<String>) -> Option<Self> {
        let read = |file: File| file.read_at(&mut [0; 64], 0).map(|_| file);
        Self::noted(path, File::open(path).and_then(read), missing)
    }

    fn noted(path: &Path, opened: io::Result<File>, missing: &mut Vec<String>) -> Option<Self> {
        opened.map_err(|error| note(missing, format!("{}: {error}", path.display()))).ok().map(Self)
    }

    /// Opens it if it is there.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        File::open(path).ok().map(Self)
    }

    /// Returns the present content; `None` if it can no longer be read, as when its process has ended.
    /// Allocates only if the content is larger than any before.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        let Buffer(bytes) = buffer;
        let mut filled = 0;
        loop {
            match self.0.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => return Some(&bytes[..filled]),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if filled == bytes.len() {
                if filled >= LARGEST {
                    return Some(&bytes[..filled]);
                }
                bytes.resize(filled * 2, 0);
            }
        }
    }
}

/// Notes a reason once.
pub(crate) fn note(missing: &mut Vec<String>, reason: String) {
    if !missing.contains(&reason) {
        missing.push(reason);
    }
}

/// Returns the content of a small file, without white space around it; `None` if it is not there or empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_cut() {
        let path = std::env::temp_dir().join(format!("plimsoll-kept-{}", std::process::id()));
        // It takes no place on the disk.
        File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let file = ProcFile::find(&path).unwrap();
        let mut buffer = Buffer::new();
        assert_eq!(file.read(&mut buffer).map(<[u8]>::len), Some(LARGEST));
        std::fs::remove_file(path).unwrap();
    }
}
