//! `plimsoll_fuzz::import::locust`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::import::locust(data));
