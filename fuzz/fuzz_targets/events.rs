//! `plimsoll_fuzz::events::run`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::events::run(data));
