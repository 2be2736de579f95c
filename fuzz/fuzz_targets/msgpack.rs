//! A MessagePack payload of the ingest server: rows are no more than its bytes, and what stands behind a
//! whole payload changes nothing of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_targets::ingest::rows_of;

fuzz_target!(|data: &[u8]| {
    let told = rows_of(data);
    if let Ok(batches) = &told {
        let rows: u64 = batches.iter().map(|(_, rows)| rows).sum();
        // A row of a list is a map, which has a byte; so has each value of a column.
        assert!(rows <= data.len() as u64, "{rows} rows of {} bytes", data.len());
        assert_eq!(rows_of(&[data, b"\xc1behind"].concat()), told);
    }
});
