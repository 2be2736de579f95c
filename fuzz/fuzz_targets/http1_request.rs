//! `plimsoll_fuzz::http1_request::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::http1_request::run(data));
