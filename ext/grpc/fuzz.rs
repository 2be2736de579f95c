//! The framing of gRPC, as both of its readers see it; the values of its fields; and answers to a call,
//! judged.

use std::sync::OnceLock;

use plimsoll_grpc::fields::{
    CODES, read_status, read_status_message, read_timeout, write_status_message, write_timeout,
};
use plimsoll_grpc::{PARTS, Schema, judge};
use plimsoll_plan::{ImportCheck, PlanPatch};
use plimsoll_scenario::{FieldList, Judge, Received};
use plimsoll_wire::events::{EventFormat, EventReader, LONGEST_MESSAGE};
use plimsoll_wire::length_prefixed::{Messages, PREFIX};

use crate::Cutting;
use crate::import::check_with;

const PROTO: &[u8] = b"syntax = \"proto3\"; package a;
import \"google/protobuf/struct.proto\";
service S { rpc M(T) returns (T); }
message T { string text = 1; repeated T inner = 2; map<string, sint64> all = 3; google.protobuf.Struct any = 4; }";

/// A judge of the answers to a method.
fn of_method() -> &'static dyn Judge {
    static JUDGE: OnceLock<std::sync::Arc<dyn Judge>> = OnceLock::new();
    let made = JUDGE.get_or_init(|| {
        let schema = Schema::of_proto("a.proto", &|_| Ok(PROTO.to_vec())).expect("a schema");
        judge(&schema, "/a.S/M").expect("a method")
    });
    &**made
}

/// A configuration of ghz.
pub fn ghz(data: &[u8]) {
    let flags = PlanPatch { parts: PARTS, ..PlanPatch::default() };
    check_with(data, plimsoll_grpc::ghz::import(data), &ImportCheck::with(&flags));
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let stream = cutting.stream;
    let all: Vec<_> = Messages::new(stream).allow_compressed(true).collect();
    let whole: Vec<&[u8]> = all.iter().filter_map(|message| message.ok()).collect();
    // A fault is the last one, and without it nothing is missing.
    assert!(all.iter().rev().skip(1).all(Result::is_ok));
    let bytes: usize = whole.iter().map(|message| PREFIX + message.len()).sum();
    assert_eq!(bytes == stream.len(), all.iter().all(Result::is_ok));
    // The reader of streams sees the same, up to a message that is too long for it.
    let (mut reader, mut told) = (EventReader::new(EventFormat::LengthPrefixed), Vec::new());
    for piece in cutting.pieces() {
        if reader.feed(piece, |event| told.push(event.data[PREFIX..].to_vec())).is_err() {
            break;
        }
    }
    let short: Vec<&[u8]> =
        whole.iter().copied().take_while(|message| message.len() <= LONGEST_MESSAGE).collect();
    assert_eq!(told, short);
    assert!(read_status(stream).is_none_or(|code| code < CODES.len()));
    let text = read_status_message(stream);
    let mut value = Vec::new();
    write_status_message(&text, &mut value);
    assert_eq!(read_status_message(&value), text);
    if let Some(ns) = read_timeout(stream) {
        assert!(read_timeout(write_timeout(ns).as_bytes()).is_some_and(|again| again >= ns));
    }
    let mut fields = FieldList::default();
    fields.push(b"grpc-status", if cutting.choices & 1 == 0 { b"0" } else { &stream[..stream.len().min(3)] });
    fields.push(b"grpc-message", stream);
    let received = Received::new(200, &fields, stream);
    let judge = of_method();
    let _ = (judge.judge(&received), judge.describe(&received));
    let mut json = Vec::new();
    if judge.write_json(stream, &mut json) && !json.is_empty() {
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    }
}
