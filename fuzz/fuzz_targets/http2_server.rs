//! `plimsoll_fuzz::http2_server::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::http2_server::run(data));
