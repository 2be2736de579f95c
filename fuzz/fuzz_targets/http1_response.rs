//! `plimsoll_fuzz::http1_response::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::http1_response::run(data));
