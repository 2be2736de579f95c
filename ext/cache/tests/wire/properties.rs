//! Properties over generated exchanges and arbitrary bytes.

use plimsoll_cache::wire::{
    Answer, MISSING_TEXT, Operation, PendingRequest, RequestServer, ServerReply, write_reply, write_request,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::wire::reading::{frame, read_replies, read_requests};

fn cut<'b>(bytes: &'b [u8], places: &[Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces.push(&bytes[from..]);
    pieces
}

fn places() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 0..12)
}

fn operation() -> impl Strategy<Value = Operation> {
    select(vec![Operation::Ping, Operation::Put, Operation::Get, Operation::Delete])
}

fn owed() -> impl Strategy<Value = Vec<PendingRequest>> {
    prop::collection::vec(
        (operation(), any::<bool>()).prop_map(|(operation, keep)| PendingRequest { operation, keep }),
        1..4,
    )
}

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..longest)
}

/// A stream that is nearly right: frames of small kinds with lengths near the right ones, and garbage.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let content = prop_oneof![bytes(24), Just(MISSING_TEXT.as_bytes().to_vec())];
    let frame = prop_oneof![
        3 => select(vec![&b"\0"[..], b"\x01", b"\x02", b"\x03", b"\x04"]).prop_map(frame),
        6 => (0_u8..6, content, select(vec![0, 0, 0, 0, 0, 0, 0, 1, u32::MAX])).prop_map(
            |(kind, content, off)| {
                let length = u32::try_from(content.len()).expect("it is short").wrapping_add(off);
                frame(&[&[kind][..], &length.to_be_bytes(), &content].concat())
            }
        ),
        2 => (0_u8..5, bytes(6), bytes(6), bytes(6)).prop_map(|(code, name, key, value)| {
            let length = |part: &[u8]| u32::try_from(part.len()).expect("it is short").to_be_bytes();
            let lengths = [&length(&key)[..], &length(&value)].concat();
            frame(&[&[code][..], &length(&name), &name, &lengths, &key, &value].concat())
        }),
        1 => bytes(16),
    ];
    prop::collection::vec(frame, 0..6).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn replies_do_not_depend_on_cuts(owed in owed(), stream in stream(), places in places()) {
        let whole = read_replies(&owed, [&stream[..]]);
        prop_assert_eq!(&read_replies(&owed, cut(&stream, &places)), &whole);
        prop_assert_eq!(read_replies(&owed, stream.chunks(1)), whole);
    }

    #[test]
    fn requests_do_not_depend_on_cuts(stream in stream(), places in places()) {
        let whole = read_requests([&stream[..]]);
        prop_assert_eq!(&read_requests(cut(&stream, &places)), &whole);
        prop_assert_eq!(read_requests(stream.chunks(1)), whole);
    }

    #[test]
    fn a_reply_takes_the_bytes_of_its_frame_and_no_more(owed in owed(), stream in stream()) {
        let (told, _) = read_replies(&owed, [&stream[..]]);
        let mut rest = &stream[..];
        for (reply, kept, _) in told {
            let length = u32::from_be_bytes(*rest.first_chunk().expect("a reply has a length"));
            prop_assert_eq!(reply.wire_bytes, u64::from(length) + 4);
            prop_assert!(kept.is_empty() || kept.len() as u64 == reply.body_bytes);
            rest = &rest[4 + length as usize..];
        }
    }

    #[test]
    fn what_is_asked_is_what_arrives(
        requests in prop::collection::vec((operation(), ".{0,8}", bytes(40), bytes(400)), 0..8),
        places in places(),
    ) {
        let mut stream = Vec::new();
        for (operation, cache, key, value) in &requests {
            write_request(*operation, cache.as_bytes(), key, value, &mut stream).expect("it is short");
        }
        let (asked, end) = read_requests(cut(&stream, &places));
        prop_assert_eq!(end, Ok(false));
        let expected: Vec<_> = requests.into_iter().map(|(operation, cache, key, value)| {
            let (cache, key) = if operation == Operation::Ping { Default::default() } else { (cache, key) };
            let value = if operation == Operation::Put { value } else { vec![] };
            Ok((operation, cache, key, value))
        }).collect();
        prop_assert_eq!(asked, expected);
    }

    /// A server that stores one value, and says that it is missing in either way, or refuses.
    #[test]
    fn what_a_server_answers_is_what_a_client_is_told(
        asked in prop::collection::vec((operation(), any::<bool>(), any::<bool>(), 0_u8..4), 0..10),
        value in bytes(300),
        cuts in (places(), places()),
    ) {
        let mut requests = Vec::new();
        for (operation, ..) in &asked {
            write_request(*operation, b"c", b"k", &value, &mut requests).expect("it is short");
        }
        let (mut server, mut replies, mut expected) = (RequestServer::new(), Vec::new(), Vec::new());
        for mut input in cut(&requests, &cuts.0) {
            while let Some(request) = server.next(&mut input).expect("the stream is right") {
                let request = request.expect("the payload is right");
                let (operation, keep, text, choice) = asked[expected.len()];
                let (reply, answer, body) = match (request.operation, choice) {
                    (_, 3) => (
                        ServerReply::Error(format_args!("no {choice}")), Answer::Refused, b"no 3".to_vec(),
                    ),
                    (Operation::Ping, _) => (ServerReply::Pong, Answer::Pong, vec![]),
                    (Operation::Put | Operation::Delete, _) => (ServerReply::Ok, Answer::Done, vec![]),
                    (Operation::Get, 0) if text => {
                        (ServerReply::Error(format_args!("{MISSING_TEXT}")), Answer::Missing, vec![])
                    }
                    (Operation::Get, 0) => (ServerReply::NotFound, Answer::Missing, vec![]),
                    (Operation::Get, _) => (ServerReply::Value(&value), Answer::Value, value.clone()),
                };
                write_reply(reply, &mut replies);
                let bytes = body.len() as u64;
                let refused = (answer == Answer::Refused).then(|| body.clone());
                let kept = if keep { body } else { vec![] };
                expected.push((PendingRequest { operation, keep }, answer, bytes, kept, refused));
            }
        }
        let mut owed: Vec<_> = expected.iter().map(|(owed, ..)| *owed).collect();
        owed.push(PendingRequest { operation: Operation::Ping, keep: false });
        let (told, end) = read_replies(&owed, cut(&replies, &cuts.1));
        prop_assert_eq!(end, Ok(false));
        prop_assert_eq!(told.iter().map(|(reply, ..)| reply.wire_bytes).sum::<u64>(), replies.len() as u64);
        let told: Vec<_> = told.into_iter().zip(owed).map(|((reply, kept, text), owed)| {
            (owed, reply.answer, reply.body_bytes, kept, text)
        }).collect();
        prop_assert_eq!(told, expected);
    }
}
