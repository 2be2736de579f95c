//! A MessagePack body of the ingest server, columnar or in rows: there are no more rows than bytes, and bytes
//! behind a whole payload do not change it. A body may be compressed.

use plimsoll_targets::ingest::BodyForm;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(content) = BodyForm::MessagePack.read(data) else { return };
    let rows: u64 = content.rows.iter().map(|(_, rows)| rows).sum();
    // A row of a list is a map, which has a byte; so has each value of a column.
    assert!(rows <= content.bytes, "{rows} rows of {} bytes", content.bytes);
    if content.bytes == data.len() as u64 {
        let longer = BodyForm::MessagePack.read(&[data, b"\xc1behind"].concat()).map(|content| content.rows);
        assert_eq!(longer.as_ref(), Ok(&content.rows));
    }
}
