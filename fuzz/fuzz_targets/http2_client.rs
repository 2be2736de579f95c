//! `plimsoll_fuzz::http2_client::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::http2_client::run(data));
