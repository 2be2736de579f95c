//! Properties over generated conversations and arbitrary bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_wire::http2::{
    Client, ClientOptions, ConnectionError, Event, FieldLimits, Payload, StreamFailure, Submit,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::http2_client::frames::*;
use crate::http2_client::link::{ended, request_head};

/// Requests of every kind; the content of some does not fit into the first windows.
fn specs(large: &Arc<[u8]>) -> [Submit<'_>; 6] {
    let spec = |head_request, capture, body| Submit {
        head_request,
        capture,
        keep_body: false,
        tell_content: false,
        body,
    };
    [
        spec(false, false, Payload::None),
        spec(false, true, Payload::None),
        spec(true, false, Payload::None),
        spec(false, false, Payload::Bytes(b"small")),
        spec(false, false, Payload::Bytes(large)),
        spec(false, true, Payload::Shared(large)),
    ]
}

/// Everything that came of a conversation but for `Began`, which is about the pieces.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    events: Vec<String>,
    out: Vec<u8>,
    result: Result<(), ConnectionError>,
    tickets: Vec<u32>,
}

fn tell(client: &Client, event: &Event) -> Option<String> {
    match event {
        Event::Began { .. } => None,
        Event::Head { ticket, fields } => {
            let fields: Vec<_> = client.captured(fields).collect();
            Some(format!("{ticket}: {fields:?}"))
        }
        other => Some(format!("{other:?}")),
    }
}

fn converse<'p>(options: &ClientOptions, pieces: impl Iterator<Item = &'p [u8]>) -> Told {
    let large: Arc<[u8]> = vec![b'x'; 50_000].into();
    let (mut client, mut out, mut events) = (Client::new(options), Vec::new(), Vec::new());
    client.start(&mut out);
    let mut told = Told { events: Vec::new(), out: Vec::new(), result: Ok(()), tickets: Vec::new() };
    for spec in specs(&large) {
        client.submit(spec, request_head, &mut out);
    }
    let mut began = BTreeSet::new();
    for piece in pieces {
        told.result = client.receive(piece, &mut out, &mut events);
        for event in events.drain(..) {
            if let Event::Began { ticket } = event {
                assert!(began.insert(ticket), "{ticket} began twice");
                assert!(client.tickets().any(|open| open == ticket), "{ticket} began and is over");
            }
            told.events.extend(tell(&client, &event));
        }
        if told.result.is_err() {
            break;
        }
    }
    told.tickets = client.tickets().collect();
    assert_eq!(told.tickets.len(), client.active() as usize);
    parse(out.strip_prefix(plimsoll_wire::http2::PREFACE).expect("the preface comes first"));
    told.out = out;
    told
}

fn stream() -> impl Strategy<Value = u32> {
    prop_oneof![20 => select(vec![1_u32, 3, 5, 7, 9, 11]), 1 => 0_u32..16]
}

fn end() -> impl Strategy<Value = u8> {
    select(vec![0, 0, END_STREAM])
}

/// Blocks of heads and trailers, good and bad; some use or change the dynamic table.
fn any_block() -> impl Strategy<Value = Vec<u8>> {
    let status = |status| block(&[(":status", status), ("server", "x")]);
    prop_oneof![
        12 => Just(status("200")),
        3 => Just(vec![0x88]),
        3 => select(vec!["100", "204", "304", "404"]).prop_map(status),
        3 => Just(block(&[(":status", "200"), ("content-length", "5")])),
        3 => Just([vec![0x88], indexed_literal("etag", "abc")].concat()),
        3 => Just(vec![0x88, 0xbe]),
        2 => Just(block(&[("grpc-status", "0")])),
        1 => Just(indexed_literal(":status", "201")),
        1 => Just(vec![0xbe]),
        1 => Just(vec![0x20, 0x88]),
        1 => Just(block(&[(":status", "200"), ("Bad", "x")])),
        1 => Just(block(&[(":status", "200"), ("long", &"x".repeat(600))])),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn head() -> impl Strategy<Value = Vec<u8>> {
    (stream(), end(), any_block(), prop::collection::vec(any::<Index>(), 0..3)).prop_map(
        |(stream, end, block, cuts)| {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(block.len() + 1)).collect();
            places.sort_unstable();
            let mut fragments = Vec::new();
            let mut from = 0;
            for place in places.into_iter().chain([block.len()]) {
                fragments.push(&block[from..place]);
                from = place;
            }
            let last = fragments.len() - 1;
            let frames = fragments.iter().enumerate().map(|(index, fragment)| {
                let kind = if index == 0 { HEADERS } else { CONTINUATION };
                let end = if index == 0 { end } else { 0 };
                let whole = if index == last { END_HEADERS } else { 0 };
                frame(kind, end | whole, stream, fragment)
            });
            frames.collect::<Vec<_>>().concat()
        },
    )
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![4 => 0_usize..12, 1 => 0_usize..9_000];
    (stream(), end(), length, prop::option::of(0_u8..5)).prop_map(|(stream, end, length, padding)| {
        match padding {
            None => data(stream, end, &vec![b'c'; length]),
            Some(padding) => {
                let payload = [vec![padding], vec![b'c'; length], vec![0; usize::from(padding)]].concat();
                frame(DATA, end | PADDED, stream, &payload)
            }
        }
    })
}

fn arbitrary_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..20);
    (0_u8..12, any::<u8>(), 0_u32..16, payload)
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload))
}

fn any_frames() -> impl Strategy<Value = Vec<u8>> {
    let increment = prop_oneof![4 => 1_u32..40_000, 1 => Just(0), 1 => Just((1 << 31) - 1)];
    let setting = (select(vec![1_u16, 3, 4, 5, 6, 9]), select(vec![0_u32, 1, 100, 16_384, 70_000]));
    prop_oneof![
        60 => head(),
        60 => content(),
        10 => (stream(), increment).prop_map(|(stream, increment)| window_update(stream, increment)),
        6 => (0_u32..10_000).prop_map(|increment| window_update(0, increment + 1)),
        4 => (stream(), 0_u32..14).prop_map(|(stream, code)| rst_stream(stream, code)),
        4 => prop::collection::vec(setting, 0..3).prop_map(|values| settings(&values)),
        2 => any::<u64>().prop_map(|payload| ping(0, payload)),
        1 => Just(ping(ACK, 7)),
        1 => Just(settings_ack()),
        1 => (0_u32..14, 0_u32..14).prop_map(|(last, code)| go_away(last, code)),
        2 => (0_usize..300).prop_map(|length| frame(0x77, 0xff, 5, &vec![1; length])),
        2 => arbitrary_frame(),
    ]
}

fn conversation() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any_frames(), 0..40), any::<bool>()).prop_map(|(frames, begins)| {
        let begin = if begins { settings(&[(MAX_CONCURRENT_STREAMS, 50)]) } else { settings(&[]) };
        [begin, frames.concat()].concat()
    })
}

fn options() -> impl Strategy<Value = ClientOptions> {
    let limits = FieldLimits { list_bytes: 500, fields: 4 };
    let narrow = ClientOptions {
        header_table_size: 64,
        stream_window: 3_000,
        connection_window: 65_535,
        limits,
        interim: 1,
        ..ClientOptions::default()
    };
    select(vec![ClientOptions::default(), narrow])
}

fn cut<'b>(bytes: &'b [u8], places: &[Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cuts_change_nothing(
        options in options(),
        bytes in conversation(),
        places in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let whole = converse(&options, std::iter::once(&bytes[..]));
        prop_assert_eq!(&converse(&options, cut(&bytes, &places).into_iter()), &whole);
        prop_assert_eq!(&converse(&options, bytes.chunks(1)), &whole);
    }

    #[test]
    fn every_request_ends_once(options in options(), bytes in conversation()) {
        let large: Arc<[u8]> = vec![b'x'; 50_000].into();
        let (mut client, mut out, mut events) = (Client::new(&options), Vec::new(), Vec::new());
        client.start(&mut out);
        let mut open: BTreeSet<u32> = BTreeSet::new();
        for spec in specs(&large) {
            prop_assert!(open.insert(client.submit(spec, request_head, &mut out)));
        }
        for (step, piece) in bytes.chunks(97).enumerate() {
            let result = client.receive(piece, &mut out, &mut events);
            for event in events.drain(..) {
                if let Some(ticket) = ended(&event) {
                    client.reuse(ticket);
                }
                match event {
                    Event::Response { ticket, response } => {
                        prop_assert!(open.remove(&ticket));
                        prop_assert!((200..1_000).contains(&response.status));
                        prop_assert!(response.wire_bytes > response.head_bytes + response.body_bytes);
                    }
                    Event::Failed { ticket, failure } => {
                        prop_assert!(open.remove(&ticket));
                        prop_assert!(!matches!(failure, StreamFailure::Malformed("")));
                    }
                    Event::Head { ticket, .. }
                    | Event::Began { ticket }
                    | Event::Content { ticket, .. } => {
                        prop_assert!(ticket < 6);
                    }
                    Event::Ready | Event::GoAway { .. } | Event::Pong { .. } => {}
                }
            }
            prop_assert_eq!(client.tickets().collect::<Vec<_>>(), Vec::from_iter(open.iter().copied()));
            if result.is_err() {
                break;
            }
            // The same slots are used again and again; some are given up.
            if client.capacity() > 0 && open.len() < 6 {
                let spec = specs(&large)[step % 6];
                prop_assert!(open.insert(client.submit(spec, request_head, &mut out)));
            }
            if step % 7 == 6 && let Some(first) = open.pop_first() {
                client.cancel(first, &mut out);
            }
        }
    }

    /// Capturing switches the memory of heads off, and must not change responses.
    #[test]
    fn remembered_heads_mean_what_decoded_ones_do(
        heads in prop::collection::vec(any_block(), 1..40),
    ) {
        let statuses = |capture| {
            let (mut client, mut out) = (Client::new(&ClientOptions::default()), Vec::new());
            let mut events = Vec::new();
            let mut result = client.receive(&settings(&[]), &mut out, &mut events);
            for (index, block) in (0..).zip(&heads) {
                let body = Payload::None;
                let spec =
                    Submit { head_request: true, capture, keep_body: false, tell_content: false, body };
                client.submit(spec, request_head, &mut out);
                let bytes = frame(HEADERS, END_HEADERS | END_STREAM, 2 * index + 1, block);
                result = result.and_then(|()| client.receive(&bytes, &mut out, &mut events));
                client.cancel(0, &mut out);
                if result.is_err() {
                    break;
                }
            }
            events.retain(|event| !matches!(event, Event::Head { .. }));
            (events, result)
        };
        prop_assert_eq!(statuses(false), statuses(true));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        is_http2 in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        places in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let begin = if is_http2 { settings(&[]) } else { Vec::new() };
        let bytes = [begin, bytes].concat();
        let options = ClientOptions { max_frame_size: (1 << 24) - 1, ..ClientOptions::default() };
        let whole = converse(&options, std::iter::once(&bytes[..]));
        prop_assert_eq!(&converse(&options, cut(&bytes, &places).into_iter()), &whole);
    }

    /// Short frames of all kinds, flags and streams: arbitrary bytes hardly ever form such frames.
    #[test]
    fn arbitrary_frames_do_no_harm(frames in prop::collection::vec(arbitrary_frame(), 0..60)) {
        for one in &frames {
            let bytes = [settings(&[]), head_200(3, 0), one.clone(), one.clone()].concat();
            let whole = converse(&ClientOptions::default(), std::iter::once(&bytes[..]));
            prop_assert_eq!(&converse(&ClientOptions::default(), bytes.chunks(1)), &whole);
        }
    }
}

/// Heads with everything that may be in them, content, trailers and control frames, cut at every byte.
#[test]
fn every_place_of_a_cut_gives_the_same() {
    let padded = [&[2, 0, 0, 0, 0, 9][..], &block(&[(":status", "200")]), &[0; 2]].concat();
    let whole_head = block(&[(":status", "200"), ("content-length", "6")]);
    let bytes = [
        settings(&[(MAX_CONCURRENT_STREAMS, 9), (INITIAL_WINDOW_SIZE, 70_000)]),
        settings_ack(),
        headers(1, 0, &[(":status", "100")]),
        frame(HEADERS, END_HEADERS | PADDED | WITH_PRIORITY, 1, &padded),
        frame(HEADERS, 0, 3, &whole_head[..3]),
        frame(CONTINUATION, 0, 3, &whole_head[3..8]),
        frame(CONTINUATION, END_HEADERS, 3, &whole_head[8..]),
        frame(DATA, PADDED, 3, &[3, b'a', b'b', b'c', 0, 0, 0]),
        ping(0, 5),
        data(3, END_STREAM, b"def"),
        frame(0x42, 3, 1, b"what is this"),
        data(1, 0, b"some"),
        window_update(0, 40_000),
        headers(1, END_STREAM, &[("trailer", "t")]),
        rst_stream(7, 7),
        go_away(9, 0),
        head_200(9, END_STREAM),
        frame(PUSH_PROMISE, 0, 5, &[0; 4]),
    ]
    .concat();
    let options = ClientOptions::default();
    let whole = converse(&options, std::iter::once(&bytes[..]));
    assert_eq!(whole.events.len(), 8, "{:#?}", whole.events);
    assert!(whole.result.is_err());
    assert_eq!(whole.tickets, [2]);
    for place in 0..=bytes.len() {
        let (front, rest) = bytes.split_at(place);
        assert_eq!(converse(&options, [front, rest].into_iter()), whole, "cut at {place}");
    }
    assert_eq!(converse(&options, bytes.chunks(1)), whole);
}
