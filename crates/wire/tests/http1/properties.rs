//! Properties over generated exchanges and arbitrary bytes.

use plimsoll_wire::http1::{
    Capture, HeadMemo, LONGEST_QUOTE, Limits, PendingRequest, ResponseClient, write_response_head,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::http1::reading::{GET, HEAD, Memory, OwnedRequest, read_at_once, read_requests, read_responses};

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

fn line_end() -> impl Strategy<Value = &'static str> {
    select(vec!["\r\n", "\r\n", "\r\n", "\n"])
}

/// Fields that say nothing about framing, some of them nearly.
fn harmless_fields() -> impl Strategy<Value = String> {
    let field = select(vec![
        "Server: plimsoll",
        "Date:Sat, 21 Nov 2026 10:00:00 GMT",
        "X-Content-Length: 7",
        "Content-Lengths: 8",
        "connection: keep-alive",
        "Transfer-Encodings: chunked",
        "Empty:",
        "Text: ü \t ü",
    ]);
    (prop::collection::vec(field, 0..4), line_end())
        .prop_map(|(fields, end)| fields.iter().map(|field| format!("{field}{end}")).collect())
}

/// The framing of a generated message's payload.
#[derive(Clone, Debug)]
enum Carried {
    ByLength(Vec<u8>),
    ByChunks { chunks: Vec<Vec<u8>>, extension: &'static str, trailers: &'static str },
}

impl Carried {
    fn payload_bytes(&self) -> u64 {
        match self {
            Self::ByLength(payload) => payload.len() as u64,
            Self::ByChunks { chunks, .. } => chunks.iter().map(|chunk| chunk.len() as u64).sum(),
        }
    }

    fn payload(&self) -> Vec<u8> {
        match self {
            Self::ByLength(payload) => payload.clone(),
            Self::ByChunks { chunks, .. } => chunks.concat(),
        }
    }

    fn field(&self) -> String {
        match self {
            Self::ByLength(payload) => format!("content-length: {}\r\n", payload.len()),
            Self::ByChunks { .. } => "Transfer-Encoding: chunked\r\n".to_owned(),
        }
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::ByLength(payload) => out.extend_from_slice(payload),
            Self::ByChunks { chunks, extension, trailers } => {
                for chunk in chunks {
                    out.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(format!("0{extension}\r\n{trailers}\r\n").as_bytes());
            }
        }
    }
}

/// Payload that looks like framing as often as not.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        select(vec![&b"\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\n\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
            .prop_map(<[u8]>::to_vec),
    ]
}

fn carried() -> impl Strategy<Value = Carried> {
    let chunk = payload().prop_filter("a chunk of no bytes ends the body", |chunk| !chunk.is_empty());
    let extension = select(vec!["", "", ";a", ";a=\"b;c\"", " "]);
    let trailers = select(vec!["", "", "a: b\r\n", "a: b\r\nLast:\r\n"]);
    prop_oneof![
        payload().prop_map(Carried::ByLength),
        (prop::collection::vec(chunk, 0..4), extension, trailers)
            .prop_map(|(chunks, extension, trailers)| Carried::ByChunks { chunks, extension, trailers }),
    ]
}

/// One generated response: its bytes and the expected result.
#[derive(Clone, Debug)]
struct Exchange {
    owed: PendingRequest,
    bytes: Vec<u8>,
    status: u16,
    body_bytes: u64,
    /// The part of the payload that is expected to be kept.
    kept: Vec<u8>,
    keep_alive: bool,
    interim: u32,
}

prop_compose! {
    fn exchange()(
        head_request in prop::bool::weighted(0.2),
        capture in select(vec![
            Capture::Nothing,
            Capture::Nothing,
            Capture::Headers,
            Capture::Body,
            Capture::Whole,
        ]),
        status in select(vec![200_u16, 200, 200, 204, 304, 404, 503]),
        interim in 0_u32..3,
        empty_lines in 0_usize..3,
        fields in harmless_fields(),
        carried in carried(),
        close in prop::bool::weighted(0.2),
        end in line_end(),
    ) -> Exchange {
        let mut bytes = b"\r\n".repeat(empty_lines);
        for _ in 0..interim {
            bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\n");
        }
        let close_field = if close { "connection: close\r\n" } else { "" };
        let head = format!("HTTP/1.1 {status} Some Reason{end}{fields}{}{close_field}{end}", carried.field());
        bytes.extend_from_slice(head.as_bytes());
        let without_body = head_request || status == 204 || status == 304;
        if !without_body {
            carried.append_to(&mut bytes);
        }
        let body_bytes = if without_body { 0 } else { carried.payload_bytes() };
        let owed = PendingRequest { head_request, capture };
        // The beginning of an unsuccessful response is kept in any case.
        let mut kept = if without_body { Vec::new() } else { carried.payload() };
        kept.truncate(match status {
            _ if capture.body() => usize::MAX,
            300.. => LONGEST_QUOTE,
            _ => 0,
        });
        Exchange { owed, bytes, status, body_bytes, kept, keep_alive: !close, interim }
    }
}

/// Exchanges with repetitions, so that heads are recognised.
fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    (prop::collection::vec(exchange(), 1..4), prop::collection::vec(any::<Index>(), 1..8))
        .prop_map(|(kinds, order)| order.iter().map(|index| index.get(&kinds).clone()).collect())
}

#[derive(Clone, Debug)]
struct GeneratedRequest {
    bytes: Vec<u8>,
    expected: OwnedRequest,
}

prop_compose! {
    fn request()(
        method in select(vec!["GET", "HEAD", "POST", "PUT", "X-OWN"]),
        target in "/[a-z0-9/?&=%]{0,12}",
        version_minor in select(vec![1_u8, 1, 1, 0]),
        id in prop::option::of("[0-9a-f]{1,16}"),
        expect in any::<bool>(),
        close in prop::bool::weighted(0.2),
        fields in harmless_fields(),
        carried in carried(),
    ) -> GeneratedRequest {
        // HTTP/1.0 knows no transfer codings.
        let carried = match carried {
            Carried::ByChunks { chunks, .. } if version_minor == 0 => Carried::ByLength(chunks.concat()),
            carried => carried,
        };
        let id_field = id.as_ref().map(|id| format!("X-Plimsoll-Id: {id}\r\n")).unwrap_or_default();
        let expect_field = if expect { "Expect: 100-continue\r\n" } else { "" };
        let connection = if close { "Connection: close\r\n" } else { "Connection: keep-alive\r\n" };
        let mut bytes = format!(
            "{method} {target} HTTP/1.{version_minor}\r\n{fields}{id_field}{expect_field}{connection}{}\r\n",
            carried.field()
        ).into_bytes();
        carried.append_to(&mut bytes);
        let expected = OwnedRequest {
            method: method.into(),
            target,
            version_minor,
            keep_alive: !close,
            head_request: method == "HEAD",
            body_bytes: carried.payload_bytes(),
            expects_continue: expect && version_minor == 1,
            id,
        };
        GeneratedRequest { bytes, expected }
    }
}

/// Bytes that get past the first line now and then: pieces of the grammar, and noise.
fn plausible_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        &b"HTTP/1.1 200 OK\r\n"[..],
        b"HTTP/1.0 200\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 304 x\r\n\r\n",
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.0\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 6\r\n",
        b"content-length:5,5\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Connection: close, keep-alive\r\n",
        b"Expect: 100-continue\r\n",
        b"x-plimsoll-id: 1\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"5\r\nhello\r\n",
        b"hello",
        b"0\r\n\r\n",
        b"0;e\r\nt: u\r\n\r\n",
        b":",
        b"\0",
        b"fffffffffffffffff\r\n",
    ]);
    let noise = prop::collection::vec(any::<u8>(), 1..4);
    prop::collection::vec(prop_oneof![12 => piece.prop_map(<[u8]>::to_vec), 1 => noise], 0..16)
        .prop_map(|pieces| pieces.concat())
}

/// Narrow enough to be reached by generated bytes.
fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        Just(Limits::default()),
        (0_usize..120, 0_usize..5, 0_u32..3).prop_map(|(head_bytes, headers, interim)| Limits {
            head_bytes,
            headers,
            interim
        })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pipelined_responses_are_read_back_however_they_are_cut(all in exchanges(), places in places()) {
        let bytes: Vec<u8> = all.iter().flat_map(|one| one.bytes.clone()).collect();
        let owed: Vec<_> = all.iter().map(|one| one.owed).collect();
        let whole = read_at_once(&owed, &bytes);
        prop_assert_eq!(&whole.end, &Ok(()));
        prop_assert_eq!(whole.consumed, bytes.len() as u64);
        prop_assert_eq!(whole.responses.len(), all.len());
        let kept: Vec<_> = all.iter().map(|one| one.kept.clone()).collect();
        prop_assert_eq!(&whole.bodies, &kept);
        for (response, one) in whole.responses.iter().zip(&all) {
            let read = (response.status, response.body_bytes, response.keep_alive, response.interim);
            prop_assert_eq!(read, (one.status, one.body_bytes, one.keep_alive, one.interim));
            prop_assert_eq!(response.wire_bytes, one.bytes.len() as u64);
        }
        for memory in [Memory::Kept, Memory::FreshEveryTime] {
            prop_assert_eq!(&read_responses(&Limits::default(), memory, &owed, cut(&bytes, &places)), &whole);
            prop_assert_eq!(&read_responses(&Limits::default(), memory, &owed, bytes.chunks(1)), &whole);
        }
    }

    #[test]
    fn pipelined_requests_are_read_back_however_they_are_cut(
        all in prop::collection::vec(request(), 1..6),
        places in places(),
    ) {
        let bytes: Vec<u8> = all.iter().flat_map(|one| one.bytes.clone()).collect();
        let whole = read_requests(&Limits::default(), Memory::Kept, [&bytes[..]]);
        prop_assert_eq!((whole.error, whole.cut), (None, false));
        let expected: Vec<_> = all.iter().map(|one| one.expected.clone()).collect();
        prop_assert_eq!(&whole.requests, &expected);
        for memory in [Memory::Kept, Memory::FreshEveryTime] {
            prop_assert_eq!(&read_requests(&Limits::default(), memory, cut(&bytes, &places)), &whole);
            prop_assert_eq!(&read_requests(&Limits::default(), memory, bytes.chunks(1)), &whole);
        }
    }

    #[test]
    fn any_bytes_give_one_answer_however_they_are_cut(
        bytes in plausible_bytes(),
        places in places(),
        limits in limits(),
    ) {
        let owed = [GET, HEAD, GET];
        let whole = read_responses(&limits, Memory::Kept, &owed, [&bytes[..]]);
        let wire: u64 = whole.responses.iter().map(|response| response.wire_bytes).sum();
        prop_assert!(wire <= whole.consumed && whole.consumed <= bytes.len() as u64);
        let requests = read_requests(&limits, Memory::Kept, [&bytes[..]]);
        for memory in [Memory::Kept, Memory::FreshEveryTime] {
            for pieces in [cut(&bytes, &places), bytes.chunks(1).collect()] {
                // Implementations may differ in how far they consume a broken stream, but not in what they
                // read from it.
                let read = read_responses(&limits, memory, &owed, pieces.iter().copied());
                prop_assert_eq!((&read.responses, read.end), (&whole.responses, whole.end));
                prop_assert_eq!(&read_requests(&limits, memory, pieces), &requests);
            }
        }
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), places in places()) {
        let whole = read_at_once(&[GET], &bytes);
        let read = read_responses(&Limits::default(), Memory::Kept, &[GET], cut(&bytes, &places));
        prop_assert_eq!((read.responses, read.end), (whole.responses, whole.end));
        read_requests(&Limits::default(), Memory::Kept, cut(&bytes, &places));
    }

    /// httparse alone, with the strictest reading, as the oracle: a whole head that it accepts is accepted,
    /// with the same status and length, and its fields are found by name.
    #[test]
    fn what_httparse_accepts_is_read_as_httparse_reads_it(
        status in 200_u16..1000,
        reason in "[ -~]{0,10}",
        fields in prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,8}", "[!-~]([ -~]{0,10}[!-~])?"), 0..6),
    ) {
        let text: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("HTTP/1.1 {status} {reason}\r\n{text}\r\n");
        let mut slots = [httparse::EMPTY_HEADER; 8];
        let mut oracle = httparse::Response::new(&mut slots);
        prop_assert_eq!(oracle.parse(head.as_bytes()), Ok(httparse::Status::Complete(head.len())));

        let owed = PendingRequest { head_request: true, capture: Capture::Headers };
        let mut client = ResponseClient::new();
        let read = client.next(&Limits::default(), &mut HeadMemo::new(), owed, &mut head.as_bytes());
        let response = read.unwrap().unwrap();
        prop_assert_eq!((Some(response.status), response.head_bytes), (oracle.code, head.len() as u64));
        for (name, _) in &fields {
            let expected = oracle.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            prop_assert_eq!(client.header(name), expected.map(|header| header.value));
        }
    }

    #[test]
    fn written_heads_are_read_back(
        status in 200_u16..1000,
        content_type in prop::option::of("[ -~]{0,12}"),
        length in 0_u64..3000,
        close in any::<bool>(),
        extra in prop::collection::vec(("x-[a-z]{1,8}", any::<String>()), 0..4),
    ) {
        // The caller has to keep out controls other than line ends: an encoder cannot guess their meaning.
        let printable = |text: &str| text.chars().filter(|&c| !c.is_control() || "\r\n\0".contains(c)).collect();
        let extra: Vec<(String, String)> =
            extra.iter().map(|(name, value)| (name.clone(), printable(value))).collect();
        let mut bytes = Vec::new();
        write_response_head(&mut bytes, status, content_type.as_deref(), length, close, &extra);
        let head_bytes = bytes.len() as u64;
        let body_bytes = if matches!(status, 204 | 304) { 0 } else { length };
        bytes.resize(bytes.len() + usize::try_from(body_bytes).unwrap(), b'\n');
        let all = read_at_once(&[GET], &bytes);
        prop_assert_eq!(all.end, Ok(()));
        prop_assert_eq!(all.responses.len(), 1);
        let response = all.responses[0];
        prop_assert_eq!((response.status, response.head_bytes), (status, head_bytes));
        prop_assert_eq!((response.body_bytes, response.keep_alive), (body_bytes, !close));
    }
}
