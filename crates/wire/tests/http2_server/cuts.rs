//! However the bytes of a client are cut, the server does the same.

use proptest::prelude::*;

use plimsoll_wire::http2::{ConnectionError, FieldLimits, PREFACE, Payload, Request, Server, ServerOptions};

use crate::http2_server::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PADDED, block, data, frame, go_away, headers,
    indexed_literal, ping, rst_stream, settings, settings_ack, window_update,
};
use crate::http2_server::link::{GET, POST, ok};

/// Everything that a server did.
#[derive(Debug, PartialEq)]
struct Transcript {
    said: Vec<u8>,
    requests: Vec<(Request, Vec<u8>, Vec<u8>)>,
    result: Result<(), ConnectionError>,
    active: u32,
    cancelled: u64,
}

/// Spans depend on the cuts; their texts do not.
fn without_spans(request: Request) -> Request {
    Request {
        method: Default::default(),
        path: Default::default(),
        id: None,
        status: None,
        timeout: None,
        ..request
    }
}

/// `answers`: by stream, whether it is answered when all has come.
fn course<'p>(options: &ServerOptions, parts: impl Iterator<Item = &'p [u8]>) -> Transcript {
    let (mut server, mut said, mut requests) = (Server::new(options), Vec::new(), Vec::new());
    let (mut heard, mut result) = (Vec::new(), Ok(()));
    server.start(&mut said);
    for part in parts {
        result = server.receive(part, &mut said, &mut requests);
        for request in requests.drain(..) {
            let (method, path) = (server.text(request.method).to_vec(), server.text(request.path).to_vec());
            heard.push((without_spans(request), method, path));
        }
        if result.is_err() {
            break;
        }
    }
    for (request, _, path) in &heard {
        server.reply(request.stream, ok, Payload::Bytes(path), &mut said);
    }
    let (active, cancelled) = (server.active(), server.cancelled());
    Transcript { said, requests: heard, result, active, cancelled }
}

fn same_however_cut(options: &ServerOptions, bytes: &[u8], sizes: &[usize]) {
    let whole = course(options, std::iter::once(bytes));
    assert_eq!(course(options, bytes.chunks(1)), whole);
    let (mut rest, mut sizes) = (bytes, sizes.iter().cycle());
    let parts = std::iter::from_fn(|| {
        let (part, later) = rest.split_at(rest.len().min(*sizes.next()?));
        rest = later;
        (!part.is_empty()).then_some(part)
    });
    assert_eq!(course(options, parts), whole);
}

fn opening() -> Vec<u8> {
    [PREFACE, &settings(&[(4, 3)]), &settings_ack()].concat()
}

fn narrow() -> ServerOptions {
    ServerOptions {
        max_streams: 3,
        stream_window: 20,
        connection_window: 65_535,
        limits: FieldLimits { list_bytes: 300, fields: 8 },
        ..ServerOptions::default()
    }
}

/// A conversation with everything in it that may be.
fn conversation() -> Vec<u8> {
    let block = block(&POST);
    let (first, second) = block.split_at(block.len() / 2);
    [
        opening(),
        headers(1, END_STREAM, &GET),
        frame(HEADERS, 0, 3, first),
        frame(CONTINUATION, 0, 3, &[]),
        frame(CONTINUATION, END_HEADERS, 3, second),
        data(3, 0, b"0123456789"),
        ping(0, 7),
        frame(0, PADDED, 3, b"\x03abc\0\0\0"),
        frame(0x77, 0xff, 9, b"unknown"),
        headers(5, END_STREAM, &GET[1..]),
        data(5, END_STREAM, b"late"),
        headers(7, END_STREAM, &GET),
        headers(9, END_STREAM, &GET),
        rst_stream(7, 8),
        window_update(1, 2),
        settings(&[(4, 1), (1, 0)]),
        headers(3, END_STREAM, &[("trailer", "1")]),
        go_away(0, 0),
        frame(HEADERS, END_HEADERS, 11, &indexed_literal("no", "method")),
        headers(13, 0, &POST),
        data(13, END_STREAM, b"the end"),
    ]
    .concat()
}

#[test]
fn a_conversation_may_be_cut_at_every_byte() {
    let bytes = conversation();
    let options = narrow();
    let whole = course(&options, std::iter::once(&bytes[..]));
    assert_eq!(whole.result, Ok(()));
    let streams: Vec<_> = whole.requests.iter().map(|(request, ..)| request.stream).collect();
    assert_eq!(streams, [1, 7, 3, 13]);
    for cut in 1..bytes.len() {
        let (front, back) = bytes.split_at(cut);
        assert_eq!(course(&options, [front, back].into_iter()), whole, "cut at {cut}");
    }
    same_however_cut(&options, &bytes, &[2, 5, 11]);
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![4 => (0_u32..8).prop_map(|n| 2 * n + 1), 1 => 0_u32..4];
    let word = prop_oneof![Just(0_u32), 1_u32..10, Just(65_535), any::<u32>()];
    prop_oneof![
        4 => (stream.clone(), any::<bool>(), any::<bool>()).prop_map(|(stream, end, get)| {
            headers(stream, u8::from(end), if get { &GET } else { &POST })
        }),
        2 => (stream.clone(), 0_u8..2, 0_usize..40).prop_map(|(stream, end, length)| {
            data(stream, end, &vec![b'd'; length])
        }),
        1 => (stream.clone(), word.clone()).prop_map(|(stream, word)| window_update(stream, word)),
        1 => (stream.clone(), 0_u32..16).prop_map(|(stream, code)| rst_stream(stream, code)),
        1 => (0_u16..8, word).prop_map(|(id, value)| settings(&[(id, value)])),
        1 => any::<u64>().prop_map(|payload| ping(0, payload)),
        1 => (0_u8..11, any::<u8>(), stream, prop::collection::vec(any::<u8>(), 0..30))
            .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload)),
    ]
}

proptest! {
    #[test]
    fn frames_may_be_cut_anywhere(
        frames in prop::collection::vec(any_frame(), 0..20),
        sizes in prop::collection::vec(1_usize..40, 1..4),
    ) {
        let bytes = [opening(), frames.concat()].concat();
        same_however_cut(&narrow(), &bytes, &sizes);
    }

    #[test]
    fn garbage_may_be_cut_anywhere(
        garbage in prop::collection::vec(any::<u8>(), 0..200),
        sizes in prop::collection::vec(1_usize..40, 1..4),
        settled in any::<bool>(),
    ) {
        let bytes = if settled { [opening(), garbage].concat() } else { garbage };
        same_however_cut(&narrow(), &bytes, &sizes);
    }

    #[test]
    fn conversations_with_a_wrong_byte_may_be_cut_anywhere(
        at in 24_usize..500,
        byte in any::<u8>(),
        sizes in prop::collection::vec(1_usize..40, 1..4),
    ) {
        let mut bytes = conversation();
        let at = at % bytes.len();
        bytes[at] = byte;
        same_however_cut(&narrow(), &bytes, &sizes);
    }
}
