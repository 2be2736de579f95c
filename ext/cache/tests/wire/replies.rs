//! Replies, byte by byte.

use plimsoll_cache::wire::{
    Answer, LONGEST_ERROR_TEXT, LONGEST_FRAME, MISSING_TEXT, Operation, PendingRequest, ProtocolError, Reply,
    ReplyClient, ServerReply, Truncated, write_reply,
};
use plimsoll_core::ErrorClass;

use crate::wire::reading::{DELETE, GET, PING, PUT, Told, frame, read_replies};

/// The one reply in `bytes`; whole, and byte by byte.
fn only(owed: PendingRequest, bytes: &[u8]) -> Told {
    let (mut told, end) = read_replies(&[owed], [bytes]);
    assert_eq!(end, Ok(false));
    assert_eq!(read_replies(&[owed], bytes.chunks(1)), (told.clone(), end));
    assert_eq!(told.len(), 1);
    told.remove(0)
}

fn error(owed: PendingRequest, bytes: &[u8]) -> ProtocolError {
    let (told, end) = read_replies(&[owed], [bytes]);
    assert_eq!(told, []);
    assert_eq!(read_replies(&[owed], bytes.chunks(1)), (told, end));
    end.expect_err("the stream is broken")
}

/// An error reply of this text.
fn refused(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a test text is short");
    frame(&[&[4][..], &length.to_be_bytes(), text].concat())
}

#[test]
fn every_kind_of_reply_is_read() {
    let plain = |answer| (Reply { answer, wire_bytes: 5, body_bytes: 0 }, vec![], None);
    assert_eq!(only(PING, &[0, 0, 0, 1, 0]), plain(Answer::Pong));
    assert_eq!(only(PUT, &[0, 0, 0, 1, 1]), plain(Answer::Done));
    assert_eq!(only(DELETE, &[0, 0, 0, 1, 1]), plain(Answer::Done));
    assert_eq!(only(GET, &[0, 0, 0, 1, 3]), plain(Answer::Missing));
    assert_eq!(only(DELETE, &[0, 0, 0, 1, 3]), plain(Answer::Missing));
    let value = only(GET, b"\0\0\0\x0A\x02\0\0\0\x05hello");
    let reply = Reply { answer: Answer::Value, wire_bytes: 14, body_bytes: 5 };
    assert_eq!(value, (reply, b"hello".to_vec(), None));
    let empty = only(GET, b"\0\0\0\x05\x02\0\0\0\0");
    assert_eq!(empty, (Reply { answer: Answer::Value, wire_bytes: 9, body_bytes: 0 }, vec![], None));
    let text = b"Cache not found: perf-test";
    for owed in [PING, PUT, GET, DELETE] {
        let reply = Reply { answer: Answer::Refused, wire_bytes: 35, body_bytes: 26 };
        assert_eq!(only(owed, &refused(text)), (reply, text.to_vec(), Some(text.to_vec())));
    }
}

#[test]
fn the_error_text_of_a_missing_key_is_a_miss_of_a_get_only() {
    let bytes = refused(MISSING_TEXT.as_bytes());
    let missing = Reply { answer: Answer::Missing, wire_bytes: 30, body_bytes: 0 };
    assert_eq!(only(GET, &bytes), (missing, vec![], None));
    assert_eq!(only(DELETE, &bytes).0.answer, Answer::Refused);
    let other = b"Get failed: not_found";
    let refused = only(GET, &refused(other));
    assert_eq!(refused.0.answer, Answer::Refused);
    assert_eq!((refused.1, refused.2), (other.to_vec(), Some(other.to_vec())), "of the same length");
}

#[test]
fn of_a_long_error_the_front_is_remembered_and_all_of_it_kept() {
    let text = b"0123456789".repeat(100);
    let (reply, kept, told) = only(GET, &refused(&text));
    assert_eq!((reply.answer, reply.body_bytes), (Answer::Refused, 1000));
    assert_eq!(kept, text);
    assert_eq!(told.unwrap(), text[..LONGEST_ERROR_TEXT]);
}

#[test]
fn an_error_text_is_told_until_the_next_one() {
    let (mut client, mut kept) = (ReplyClient::new(), Vec::new());
    let bytes = [refused(b"one"), frame(&[1]), refused(b"two")].concat();
    let mut input = &bytes[..];
    for expected in [&b"one"[..], b"one", b"two"] {
        let reply = client.next_into(PUT, &mut input, &mut kept).unwrap();
        assert!(reply.is_some());
        assert_eq!(client.error_text(), expected);
    }
    client.reset();
    assert_eq!(client.error_text(), b"");
}

#[test]
fn nothing_is_kept_that_is_not_asked_for() {
    let bytes = [b"\0\0\0\x06\x02\0\0\0\x01v".to_vec(), refused(b"no"), refused(MISSING_TEXT.as_bytes())];
    let (told, _) = read_replies(&[PendingRequest { keep: false, ..GET }], [&bytes.concat()[..]]);
    let answers: Vec<_> = told.iter().map(|(reply, kept, _)| (reply.answer, kept.len())).collect();
    assert_eq!(answers, [(Answer::Value, 0), (Answer::Refused, 0), (Answer::Missing, 0)]);
}

#[test]
fn pipelined_replies_are_told_apart() {
    let bytes = [frame(&[1]), frame(b"\x02\0\0\0\x01v"), frame(&[1]), frame(&[3])].concat();
    let (told, end) = read_replies(&[PUT, GET], [&bytes[..]]);
    assert_eq!(end, Ok(false));
    let answers: Vec<_> = told.iter().map(|(reply, ..)| reply.answer).collect();
    assert_eq!(answers, [Answer::Done, Answer::Value, Answer::Done, Answer::Missing]);
}

#[test]
fn the_longest_value_is_read_and_one_byte_more_is_not() {
    let mut longest = Vec::new();
    write_reply(ServerReply::Value(&vec![7; LONGEST_FRAME - 5]), &mut longest);
    let (told, end) = read_replies(&[GET], longest.chunks(100_000));
    assert_eq!(end, Ok(false));
    assert_eq!(told[0].0.wire_bytes, longest.len() as u64);
    assert_eq!(told[0].1.len(), LONGEST_FRAME - 5);
    let bytes = u32::try_from(LONGEST_FRAME).unwrap() + 1;
    assert_eq!(error(GET, &bytes.to_be_bytes()), ProtocolError::FrameTooLong(bytes));
}

#[test]
fn a_broken_stream_is_told_by_what_is_wrong() {
    let lengths = |reply, frame, content| ProtocolError::LengthsDisagree { reply, frame, content };
    for (owed, bytes, expected) in [
        (PUT, &b"\0\0\0\0"[..], ProtocolError::EmptyFrame),
        (PUT, b"\0\0\0\x01\x05", ProtocolError::UnknownReply(5)),
        (GET, b"\0\0\0\x01\x00", ProtocolError::WrongReply { operation: Operation::Get, reply: 0 }),
        (GET, b"\0\0\0\x01\x01", ProtocolError::WrongReply { operation: Operation::Get, reply: 1 }),
        (
            PUT,
            b"\0\0\0\x06\x02\0\0\0\x01v",
            ProtocolError::WrongReply { operation: Operation::Put, reply: 2 },
        ),
        (PING, b"\0\0\0\x01\x03", ProtocolError::WrongReply { operation: Operation::Ping, reply: 3 }),
        (PUT, b"\0\0\0\x02\x01\x01", lengths(1, 2, 0)),
        (GET, b"\0\0\0\x02\x02\xFF\xFF\xFF\xFD", lengths(2, 2, 0)),
        (GET, b"\0\0\0\x06\x02\0\0\0\x00v", lengths(2, 6, 0)),
        (GET, b"\0\0\0\x06\x02\0\0\0\x02v", lengths(2, 6, 2)),
        (GET, b"\0\0\0\x06\x04\xFF\xFF\xFF\xFFv", lengths(4, 6, u32::MAX)),
        (GET, b"HTTP/1.1 400 Bad Request\r\n", ProtocolError::SpeaksHttp),
    ] {
        assert_eq!(error(owed, bytes), expected, "{bytes:?}");
    }
}

#[test]
fn errors_are_sentences_with_a_class() {
    assert_eq!(ProtocolError::SpeaksHttp.class(), ErrorClass::WrongProtocol);
    let errors = [
        ProtocolError::SpeaksHttp,
        ProtocolError::EmptyFrame,
        ProtocolError::FrameTooLong(9_000_000),
        ProtocolError::UnknownReply(0x7F),
        ProtocolError::WrongReply { operation: Operation::Get, reply: 0 },
        ProtocolError::LengthsDisagree { reply: 2, frame: 6, content: 7 },
    ];
    let sentences: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        sentences,
        [
            "this port speaks HTTP, not the cache protocol",
            "the server sent a frame of no bytes",
            "the server announced a frame of 9000000 bytes; the cache protocol allows 8388608",
            "the server sent a reply of unknown kind 0x7F",
            "the server answered PONG to a GET",
            "the server sent VALUE with lengths that disagree: 7 bytes in a frame of 6",
        ]
    );
    assert!(errors[1..].iter().all(|error| error.class() == ErrorClass::Protocol));
}

#[test]
fn a_connection_that_ends_in_a_reply_is_truncated() {
    let bytes = frame(b"\x02\0\0\0\x02vw");
    for end in 0..bytes.len() {
        let mut client = ReplyClient::new();
        assert_eq!(client.next_into(GET, &mut &bytes[..end], &mut Vec::new()), Ok(None));
        assert_eq!(client.finish(), if end == 0 { Ok(()) } else { Err(Truncated) });
        let reply = client.next_into(GET, &mut &bytes[..], &mut Vec::new());
        assert!(reply.unwrap().is_some(), "as after a reset");
    }
    assert_eq!(Truncated.class(), ErrorClass::ClosedInResponse);
}
