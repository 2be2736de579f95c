//! However the bytes of a server are cut, and whatever heads are remembered, the responses are the same, and
//! so is what the client sends.

use crate::Cutting;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{
    Client, ClientOptions, ConnectionError, Event, FieldLimits, Indexing, Payload, Submit,
};

/// Requests that are open from the beginning.
const REQUESTS: u32 = 8;

/// Observable result of a conversation, except `Began` events, which depend on how the input is cut.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    events: Vec<String>,
    sent: Vec<u8>,
    result: Result<(), ConnectionError>,
}

fn options(limits: plimsoll_wire::http1::Limits) -> ClientOptions {
    let limits_of_fields =
        FieldLimits { list_bytes: limits.head_bytes as u32, fields: limits.headers as u32 };
    let narrow = limits != plimsoll_wire::http1::Limits::default();
    let window = if narrow { 4_000 } else { ClientOptions::default().stream_window };
    ClientOptions {
        stream_window: window,
        connection_window: window,
        limits: limits_of_fields,
        interim: limits.interim,
        ..ClientOptions::default()
    }
}

fn head(_: &mut Indexing, out: &mut Vec<u8>) {
    put_literal(out, b":method", b"POST", false);
    put_literal(out, b":path", b"/", false);
}

fn converse<'p>(cutting: &Cutting<'_>, pieces: impl Iterator<Item = &'p [u8]>) -> Told {
    let options = options(cutting.limits);
    let (mut client, mut sent, mut events) = (Client::new(&options), Vec::new(), Vec::new());
    client.start(&mut sent);
    let large = [b'x'; 20_000];
    for request in 0..REQUESTS {
        let body = if cutting.choices & 8 != 0 { Payload::Bytes(&large) } else { Payload::None };
        let spec = Submit {
            head_request: cutting.choices & 1 != 0 && request % 2 == 0,
            capture: cutting.choices & 4 != 0,
            keep_body: cutting.choices & 16 != 0,
            tell_content: false,
            body,
        };
        assert_eq!(client.submit(spec, head, &mut sent), request);
    }
    let (mut told, mut result) = (Vec::new(), Ok(()));
    let mut open = REQUESTS;
    for piece in pieces {
        result = client.receive(piece, &mut sent, &mut events);
        for event in events.drain(..) {
            match &event {
                Event::Began { ticket } => assert!(client.tickets().any(|open| open == *ticket)),
                Event::Head { ticket, fields } => {
                    let fields: Vec<_> = client.captured(fields).collect();
                    told.push(format!("{ticket}: {fields:?}"));
                }
                Event::Response { .. } | Event::Failed { .. } => {
                    open -= 1;
                    told.push(format!("{event:?}"));
                }
                _ => told.push(format!("{event:?}")),
            }
        }
        assert_eq!(client.active(), open);
        if result.is_err() {
            break;
        }
    }
    Told { events: told, sent, result }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let whole = converse(&cutting, std::iter::once(cutting.stream));
    assert_eq!(converse(&cutting, cutting.pieces()), whole);
    assert_eq!(converse(&cutting, cutting.stream.chunks(1)), whole);
}
