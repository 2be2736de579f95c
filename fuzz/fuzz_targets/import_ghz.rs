//! `plimsoll_fuzz::grpc::ghz`, with libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plimsoll_fuzz::grpc::ghz(data));
