//! `plimsoll_fuzz::redis::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::redis::run(data));
