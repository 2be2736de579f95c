//! `plimsoll_fuzz::remote_write::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::remote_write::run(data));
