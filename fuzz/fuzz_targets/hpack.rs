//! `plimsoll_fuzz::hpack::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::hpack::run(data));
