//! InfluxDB's line protocol as the ingest server reads it: each line is a row, or is passed over and counted,
//! and earlier lines do not change the result of later ones.

use plimsoll_targets::ingest::{BodyContent, BodyForm};

fn read(body: &[u8]) -> Result<BodyContent, String> {
    BodyForm::LineProtocol.read(body)
}

fn rows(content: &BodyContent) -> u64 {
    content.rows.iter().map(|(_, rows)| rows).sum()
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(content) = read(data) else { return };
    // A compressed body, or one that resembles the line below.
    if content.bytes != data.len() as u64 || data.windows(7).any(|part| part == b"unheard") {
        return;
    }
    let lines = data.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64;
    // A line break within quotes ends no line.
    assert!(rows(&content) + content.skipped <= lines, "{content:?} of {lines} lines");
    assert_eq!(content.rows.iter().filter(|(_, rows)| *rows == 0).count(), 0);
    let behind = read(&[b"# a comment\n\nno line\nunheard\\ of,a=b v=1 1\n", data].concat());
    let behind = behind.expect("no column of the line before is in it");
    assert_eq!((rows(&behind), behind.skipped), (rows(&content) + 1, content.skipped + 1));
}
