//! Requests, byte by byte.

use plimsoll_cache::wire::{
    FrameHead, FrameTooLong, FrameWriter, LONGEST_FRAME, MISSING_TEXT, Operation, Refusal, RequestServer,
    ServerReply, TooLong, write_reply, write_request,
};

use crate::wire::reading::{Asked, frame, read_requests};

fn written(operation: Operation, cache: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_request(operation, cache.as_bytes(), key, value, &mut out).expect("it fits a frame");
    out
}

/// The one request in `bytes`; whole, and byte by byte.
fn only(bytes: &[u8]) -> Asked {
    let (mut asked, end) = read_requests([bytes]);
    assert_eq!(end, Ok(false));
    assert_eq!(read_requests(bytes.chunks(1)), (asked.clone(), end));
    assert_eq!(asked.len(), 1);
    asked.remove(0)
}

#[test]
fn requests_are_the_bytes_of_the_protocol() {
    let put = b"\0\0\0\x1A\x01\0\0\0\x09perf_test\0\0\0\x02\0\0\0\x02k1v1";
    let get = b"\0\0\0\x14\x02\0\0\0\x09perf_test\0\0\0\x02k1";
    let delete = b"\0\0\0\x14\x03\0\0\0\x09perf_test\0\0\0\x02k1";
    assert_eq!(written(Operation::Ping, "perf_test", b"k1", b"v1"), b"\0\0\0\x01\0");
    assert_eq!(written(Operation::Put, "perf_test", b"k1", b"v1"), put);
    assert_eq!(written(Operation::Get, "perf_test", b"k1", b"v1"), get);
    assert_eq!(written(Operation::Delete, "perf_test", b"k1", b"v1"), delete);
    let told = |operation, value: &[u8]| Ok((operation, "perf_test".into(), b"k1".into(), value.into()));
    assert_eq!(only(put), told(Operation::Put, b"v1"));
    assert_eq!(only(get), told(Operation::Get, b""));
    assert_eq!(only(delete), told(Operation::Delete, b""));
    assert_eq!(only(b"\0\0\0\x01\0"), Ok((Operation::Ping, String::new(), vec![], vec![])));
}

#[test]
fn keys_and_values_may_be_empty_and_bytes_behind_them_are_ignored() {
    let empty = written(Operation::Put, "c", b"", b"");
    assert_eq!(empty, b"\0\0\0\x0E\x01\0\0\0\x01c\0\0\0\0\0\0\0\0");
    assert_eq!(only(&empty), Ok((Operation::Put, "c".into(), vec![], vec![])));
    assert_eq!(only(&frame(b"\0more")), Ok((Operation::Ping, String::new(), vec![], vec![])));
    let more = frame(b"\x02\0\0\0\x01c\0\0\0\x01kmore");
    assert_eq!(only(&more), Ok((Operation::Get, "c".into(), b"k".into(), vec![])));
}

#[test]
fn a_frame_may_be_written_part_by_part_behind_others() {
    for operation in [Operation::Ping, Operation::Put, Operation::Get, Operation::Delete] {
        let mut out = written(Operation::Get, "other", b"x", b"");
        let before = out.len();
        for prepared in [false, true] {
            out.truncate(before);
            let mut frame = if prepared {
                FrameHead::new(operation, b"cache").begin(&mut out)
            } else {
                FrameWriter::begin(operation, b"cache", &mut out)
            };
            if operation != Operation::Ping {
                out.extend_from_slice(b"a ");
                out.extend_from_slice(b"key");
                frame.key_written(&out);
            }
            if operation == Operation::Put {
                out.extend_from_slice(b"a value");
            }
            let bytes = frame.finish(&mut out).unwrap();
            assert_eq!(out.len(), before + bytes);
            assert_eq!(out[before..], written(operation, "cache", b"a key", b"a value"));
        }
    }
}

#[test]
fn the_longest_put_fits_and_one_byte_more_does_not() {
    let longest = LONGEST_FRAME - 1 - 4 - "perf_test".len() - 8 - "k".len();
    let mut out = written(Operation::Put, "perf_test", b"k", &vec![7; longest]);
    assert_eq!(out.len(), 4 + LONGEST_FRAME);
    let (asked, end) = read_requests(out.chunks(100_000));
    assert_eq!((asked[0].as_ref().unwrap().3.len(), end), (longest, Ok(false)));

    let before = out.clone();
    let result = write_request(Operation::Put, b"perf_test", b"k", &vec![7; longest + 1], &mut out);
    assert_eq!(result, Err(TooLong { bytes: LONGEST_FRAME + 1 }));
    assert!(out == before, "as if it had not been asked for");
    let text = "cache name, key and value make a frame of 8388609 bytes; the cache protocol allows 8388608";
    assert_eq!(result.unwrap_err().to_string(), text);
}

#[test]
fn a_frame_beyond_the_limit_ends_the_connection() {
    let bytes = u32::try_from(LONGEST_FRAME).unwrap() + 1;
    for (stream, bytes) in [(bytes.to_be_bytes(), bytes), (*b"GET ", 0x4745_5420)] {
        assert_eq!(read_requests([&stream[..]]), (vec![], Err(FrameTooLong { bytes })));
        assert_eq!(read_requests(stream.chunks(1)), (vec![], Err(FrameTooLong { bytes })));
    }
    let text = "the client announced a frame of 1195725856 bytes; the cache protocol allows 8388608";
    assert_eq!(FrameTooLong { bytes: 0x4745_5420 }.to_string(), text);
}

#[test]
fn what_is_wrong_with_a_payload_is_told_in_the_words_of_the_real_server() {
    for (payload, text) in [
        (&b""[..], "Empty buffer"),
        (b"\x7F", "Unknown command: 0x7F"),
        (b"\x0Amore", "Unknown command: 0x0A"),
        (b"\x01", "Invalid PUT: missing cache_name length"),
        (b"\x01\0\0\0", "Invalid PUT: missing cache_name length"),
        (b"\x01\0\0\0\x05name", "Invalid PUT: cache_name too short"),
        (b"\x01\xFF\xFF\xFF\xFFname", "Invalid PUT: cache_name too short"),
        (b"\x01\0\0\0\x04name", "Invalid PUT: missing key/value length fields"),
        (b"\x01\0\0\0\x04name\0\0\0\x01\0\0\0", "Invalid PUT: missing key/value length fields"),
        (b"\x01\0\0\0\x04name\0\0\0\x05\0\0\0\x05kv", "Invalid PUT: expected 10 bytes, got 2"),
        (b"\x01\0\0\0\x04name\0\0\0\x01\0\0\0\x05kv", "Invalid PUT: expected 6 bytes, got 2"),
        (
            b"\x01\0\0\0\x04name\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFkv",
            "Invalid PUT: expected 8589934590 bytes, got 2",
        ),
        (b"\x02", "Invalid GET: missing cache_name length"),
        (b"\x02\0\0\0\x04name\0\0\0", "Invalid GET: missing key length field"),
        (b"\x02\0\0\0\x04name\0\0\0\x02k", "Invalid GET: expected 2 bytes, got 1"),
        (b"\x03\0\0\0\x05name", "Invalid DELETE: cache_name too short"),
        (
            b"\x02\0\0\0\x02a\xFF\0\0\0\x01k",
            "Invalid cache_name UTF-8: invalid utf-8 sequence of 1 bytes from index 1",
        ),
    ] {
        let refusal = only(&frame(payload)).unwrap_err();
        assert_eq!(refusal.to_string(), text, "{payload:?}");
    }
}

#[test]
fn a_connection_stays_usable_after_a_refusal() {
    let bytes = [frame(b"\x7F"), frame(b""), written(Operation::Get, "c", b"k", b"")].concat();
    let (asked, end) = read_requests([&bytes[..]]);
    assert_eq!(asked[..2], [Err(Refusal::UnknownCommand(0x7F)), Err(Refusal::Empty)]);
    assert!(asked[2].is_ok());
    assert_eq!(end, Ok(false));
}

#[test]
fn replies_are_the_bytes_of_the_protocol() {
    fn written(reply: ServerReply<'_>) -> Vec<u8> {
        let mut out = b"before".to_vec();
        write_reply(reply, &mut out);
        out.split_off(6)
    }
    assert_eq!(written(ServerReply::Pong), b"\0\0\0\x01\0");
    assert_eq!(written(ServerReply::Ok), b"\0\0\0\x01\x01");
    assert_eq!(written(ServerReply::NotFound), b"\0\0\0\x01\x03");
    assert_eq!(written(ServerReply::Value(b"hello")), b"\0\0\0\x0A\x02\0\0\0\x05hello");
    let missing = written(ServerReply::Error(format_args!("{MISSING_TEXT}")));
    assert_eq!(missing, b"\0\0\0\x1A\x04\0\0\0\x15Get failed: not found");
    let unknown = written(ServerReply::Error(format_args!("Cache not found: {}", "x")));
    assert_eq!(unknown, b"\0\0\0\x17\x04\0\0\0\x12Cache not found: x");
}

#[test]
fn an_error_text_is_cut_where_the_frame_ends_and_no_character_with_it() {
    let name = "ü".repeat(LONGEST_FRAME / 2);
    let mut out = Vec::new();
    write_reply(ServerReply::Error(format_args!("Cache not found: {name}")), &mut out);
    let length = u32::from_be_bytes(*out.first_chunk().unwrap()) as usize;
    assert_eq!(out.len(), 4 + length);
    assert!((LONGEST_FRAME - 1..=LONGEST_FRAME).contains(&length));
    assert!(str::from_utf8(&out[9..]).is_ok());
}

#[test]
fn a_server_can_be_used_again_after_a_reset() {
    let (mut server, bytes) = (RequestServer::new(), written(Operation::Get, "c", b"k", b""));
    assert_eq!(server.next(&mut &bytes[..7]), Ok(None));
    assert!(server.in_request());
    server.reset();
    assert!(!server.in_request());
    assert!(server.next(&mut &bytes[..]).unwrap().is_some());
}
