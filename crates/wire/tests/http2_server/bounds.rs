//! Bounds on the work that a client can make a server do for nothing.

use plimsoll_wire::http2::{ErrorCode, Payload, ServerOptions};

use crate::http2_server::frames::{
    ACK, CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, SETTINGS, data, frame, headers,
    indexed_literal, ping, rst_stream, settings, window_update,
};
use crate::http2_server::link::{GET, Link, POST, Word, ok};

/// Returns the number of times that `bytes` may come, up to 20,000, and the error code that ends it.
fn flood(link: &mut Link, mut bytes: impl FnMut(u32) -> Vec<u8>) -> (u32, Option<ErrorCode>) {
    for round in 0..20_000 {
        if let Err(error) = link.receive(&bytes(round)) {
            return (round, Some(error.code));
        }
    }
    (20_000, None)
}

const CALM: Option<ErrorCode> = Some(ErrorCode::EnhanceYourCalm);

#[test]
fn frames_that_carry_nothing_are_bounded() {
    type Case = (&'static str, Vec<u8>, fn(u32) -> Vec<u8>);
    let none = Vec::new;
    let table: [Case; 9] = [
        ("SETTINGS", none(), |_| settings(&[(4, 1)])),
        ("acknowledgements", none(), |_| frame(SETTINGS, ACK, 0, &[])),
        ("PING", none(), |_| ping(0, 1)),
        ("PING answers", none(), |_| frame(PING, ACK, 0, &[0; 8])),
        ("PRIORITY", none(), |round| frame(PRIORITY, 0, 2 * round + 1, &[0; 5])),
        ("unknown frames", none(), |_| frame(0x77, 0, 0, b"?")),
        ("empty DATA", headers(1, 0, &POST), |_| data(1, 0, b"")),
        ("RST_STREAM on a closed stream", [headers(1, 0, &POST), rst_stream(1, 8)].concat(), |_| {
            rst_stream(1, 8)
        }),
        ("DATA on a reset stream", headers(1, END_STREAM, &GET[1..]), |_| data(1, 0, b"a")),
    ];
    for (what, before, bytes) in table {
        let mut link = Link::usual();
        link.hear(&before);
        let (rounds, code) = flood(&mut link, bytes);
        assert_eq!(code, CALM, "{what}");
        assert!((9_000..=10_000).contains(&rounds), "{what}: {rounds}");
    }
}

#[test]
fn rapid_resets_are_bounded() {
    let mut link = Link::usual();
    let (rounds, code) = flood(&mut link, |round| {
        let stream = 2 * round + 1;
        [headers(stream, END_STREAM, &GET), rst_stream(stream, 8)].concat()
    });
    assert_eq!(code, CALM);
    assert!(rounds <= 10_000, "{rounds}");
    assert_eq!(link.server.active(), 0);
}

#[test]
fn who_waits_before_a_reset_is_no_flood() {
    let mut link = Link::usual();
    for round in 0..20_000 {
        let stream = 2 * round + 1;
        // Some have content, and some replies have begun.
        if round % 2 == 0 {
            link.hear(&headers(stream, END_STREAM, &GET));
        } else {
            link.hear(&headers(stream, 0, &POST));
            link.hear(&data(stream, END_STREAM, b"a"));
        }
        if round % 3 == 0 {
            assert!(link.server.reply_head(stream, ok, &mut Vec::new()));
        }
        link.hear(&rst_stream(stream, 8));
        assert_eq!(link.streams(), [stream]);
    }
    assert_eq!((link.server.cancelled(), link.server.active()), (20_000, 0));
}

#[test]
fn resets_of_requests_that_are_not_whole_or_just_became_so_are_bounded() {
    for end in [0, END_STREAM] {
        let mut link = Link::usual();
        let (rounds, code) = flood(&mut link, |round| {
            // The head of this one, and the content and the reset of the one before.
            let (last, next) = ((2 * round).wrapping_sub(1), headers(2 * round + 1, 0, &POST));
            if round == 0 { next } else { [data(last, end, b"a"), rst_stream(last, 8), next].concat() }
        });
        assert_eq!(code, CALM);
        assert!((9_000..=10_001).contains(&rounds), "{rounds}");
    }
}

#[test]
fn refused_and_malformed_streams_are_bounded() {
    let mut link = Link::new(&ServerOptions { max_streams: 0, ..ServerOptions::default() }, &[]);
    assert_eq!(flood(&mut link, |round| headers(2 * round + 1, END_STREAM, &GET)).1, CALM);
    let mut link = Link::usual();
    assert_eq!(flood(&mut link, |round| headers(2 * round + 1, END_STREAM, &GET[1..])).1, CALM);
}

#[test]
fn a_client_that_gets_replies_may_go_on() {
    let mut link = Link::usual();
    for round in 0..50_000 {
        let stream = 4 * round + 1;
        let bytes = [
            ping(0, 1),
            headers(stream, END_STREAM, &GET),
            headers(stream + 2, END_STREAM, &GET),
            rst_stream(stream + 2, 8),
        ];
        link.hear(&bytes.concat());
        link.requests.clear();
        assert!(link.reply(stream, Payload::Bytes(b"ok")).is_some());
        link.hear(&window_update(0, 2));
    }
}

#[test]
fn small_windows_are_no_flood() {
    let mut link = Link::new(&ServerOptions::default(), &[(4, 0)]);
    link.hear(&headers(1, END_STREAM, &GET));
    link.reply(1, Payload::Bytes(&[0; 30_000]));
    for _ in 0..30_000 {
        assert_eq!(link.hear(&window_update(1, 1)).len(), 1);
    }
    assert!(!link.server.is_open(1));
}

#[test]
fn endless_heads_are_cut_off() {
    let start = frame(HEADERS, END_STREAM, 1, &[0x82]);
    for fragment in [&b""[..], &[0x82; 16_384]] {
        let mut link = Link::usual();
        link.hear(&start);
        let (rounds, code) = flood(&mut link, |_| frame(CONTINUATION, 0, 1, fragment));
        assert_eq!(code, CALM);
        assert!(rounds <= 128, "{rounds}");
    }
}

#[test]
fn a_bomb_of_references_ends_its_stream() {
    let mut link = Link::usual();
    let value = "b".repeat(120);
    let mut bomb = indexed_literal("bomb", &value);
    bomb.resize(16_000, 0xbe);
    for stream in [1, 3] {
        let frames = link.hear(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &bomb));
        assert_eq!(frames[0].word(), ErrorCode::EnhanceYourCalm.value());
    }
    link.hear(&headers(5, END_STREAM, &GET));
    assert_eq!(link.streams(), [5]);
}
