//! The lines that another process adds to a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at once. Faster output is left out: it could not be read anyway.
const MOST_AT_ONCE: u64 = 256 << 10;
/// Longest line that is passed on, in bytes.
const LONGEST_LINE: usize = 4 << 10;
/// From this size on the file is emptied when it was read. Writers append to it.
const LARGEST_FILE: u64 = 16 << 20;

/// The end of a file that grows.
#[derive(Debug)]
pub(crate) struct LineTail {
    file: File,
    /// Bytes that were read.
    read: u64,
    /// The start of a line.
    begun: Vec<u8>,
}

impl LineTail {
    /// The lines of a file from its start on. It has to be open for writing, too.
    pub(crate) fn new(file: File) -> Self {
        Self { file, read: 0, begun: Vec::new() }
    }

    /// Returns the lines that have become whole, and at the `end` the last one in any case.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn lines(&mut self, end: bool) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        let size = self.file.metadata()?.len();
        if size > self.read + MOST_AT_ONCE {
            let kept = size - MOST_AT_ONCE;
            lines.push(format!("… {} bytes of messages are left out", kept - self.read));
            self.read = kept;
            self.begun.clear();
        }
        let mut buffer = vec![0; (size.saturating_sub(self.read)) as usize];
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], self.read)? {
                0 => break,
                count => {
                    filled += count;
                    self.read += count as u64;
                }
            }
        }
        self.begun.extend_from_slice(&buffer[..filled]);
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        lines.extend(self.begun[..whole].split_inclusive(|byte| *byte == b'\n').map(shown));
        self.begun.drain(..whole);
        if (end || self.begun.len() > LONGEST_LINE) && !self.begun.is_empty() {
            lines.push(shown(&std::mem::take(&mut self.begun)));
        }
        if self.read > LARGEST_FILE {
            self.file.set_len(0)?;
            self.read = 0;
        }
        Ok(lines)
    }
}

/// A line as text, cut where it is too long.
fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let cut = &line[..line.len().min(LONGEST_LINE)];
    let mut text = String::from_utf8_lossy(cut).into_owned();
    if cut.len() < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    fn files(name: &str) -> (File, LineTail) {
        let path = std::env::temp_dir().join(format!("plimsoll-web-tail-{}-{name}", std::process::id()));
        let open = || OpenOptions::new().create(true).append(true).read(true).open(&path).unwrap();
        let (writer, reader) = (open(), open());
        std::fs::remove_file(&path).unwrap();
        (writer, LineTail::new(reader))
    }

    #[test]
    fn lines_are_passed_on_when_they_are_whole() {
        let (mut file, mut tail) = files("whole");
        assert_eq!(tail.lines(false).unwrap(), [""; 0]);
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.lines(false).unwrap(), ["one"]);
        file.write_all(b"o\n\nthr\xff").unwrap();
        assert_eq!(tail.lines(false).unwrap(), ["two", ""]);
        assert_eq!(tail.lines(true).unwrap(), ["thr\u{fffd}"]);
        assert_eq!(tail.lines(true).unwrap(), [""; 0]);
    }

    #[test]
    fn a_flood_takes_bounded_memory_and_room() {
        let (mut file, mut tail) = files("flood");
        let mut most = 0;
        for _ in 0..80 {
            file.write_all(&b"0123456789abcde\n".repeat(65_536)).unwrap();
            let lines = tail.lines(false).unwrap();
            assert!(lines[0].contains("left out"), "{}", lines[0]);
            assert!(lines.len() as u64 <= MOST_AT_ONCE / 16 + 1, "{}", lines.len());
            most = most.max(file.metadata().unwrap().len());
        }
        assert!(most <= LARGEST_FILE + (2 << 20), "{most}");
        file.write_all(&vec![b'x'; 100_000]).unwrap();
        let lines = tail.lines(true).unwrap();
        assert!(lines.iter().all(|line| line.len() <= LONGEST_LINE + 3), "{}", lines.len());
    }
}
