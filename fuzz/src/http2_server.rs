//! However the bytes of a client are cut, the requests are the same, and so is what the server sends.

use crate::Cutting;
use plimsoll_wire::http2::{
    ConnectionError, FieldLimits, Indexing, PREFACE, Payload, Request, Server, ServerOptions,
};

/// Observable result of a conversation.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    requests: Vec<(u32, bool, u64, [Vec<u8>; 4])>,
    sent: Vec<u8>,
    result: Result<(), ConnectionError>,
    cancelled: u64,
}

fn options(cutting: &Cutting<'_>) -> ServerOptions {
    let limits = cutting.limits;
    if limits == plimsoll_wire::http1::Limits::default() {
        return ServerOptions::default();
    }
    ServerOptions {
        max_streams: limits.interim,
        keeps_content: true,
        stream_window: limits.head_bytes as u32,
        connection_window: 0,
        limits: FieldLimits { list_bytes: limits.head_bytes as u32 * 8, fields: limits.headers as u32 + 4 },
        ..ServerOptions::default()
    }
}

fn ok(_: &mut Indexing, out: &mut Vec<u8>) {
    out.push(0x88);
}

fn converse<'p>(cutting: &Cutting<'_>, pieces: impl Iterator<Item = &'p [u8]>) -> Told {
    let (mut server, mut sent, mut requests) = (Server::new(&options(cutting)), Vec::new(), Vec::new());
    server.start(&mut sent);
    // Most inputs would not find the preface and the first SETTINGS by themselves.
    if cutting.choices & 1 == 0 {
        let opening = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
        server.receive(&opening, &mut sent, &mut requests).expect("the opening is all right");
    }
    let (mut told, mut result) = (Vec::new(), Ok(()));
    for piece in pieces {
        result = server.receive(piece, &mut sent, &mut requests);
        for request in requests.drain(..) {
            let Request { stream, method, path, id, head_request, body_bytes, content, .. } = request;
            let id = id.map_or(&b""[..], |id| server.text(id));
            let texts = [server.text(method), server.text(path), id, server.text(content)];
            assert!(!texts[0].is_empty() && !texts[1].is_empty());
            assert!(texts[3].len() as u64 <= body_bytes);
            told.push((stream, head_request, body_bytes, texts.map(<[u8]>::to_vec)));
        }
        if result.is_err() {
            break;
        }
    }
    let body = [b'x'; 100_000];
    for (stream, _, _, texts) in &told {
        let open = server.is_open(*stream);
        let body = if cutting.choices & 2 != 0 { &body[..] } else { &texts[1] };
        assert_eq!(server.reply(*stream, ok, Payload::Bytes(body), &mut sent), open);
    }
    Told { requests: told, sent, result, cancelled: server.cancelled() }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let whole = converse(&cutting, std::iter::once(cutting.stream));
    assert_eq!(converse(&cutting, cutting.pieces()), whole);
    assert_eq!(converse(&cutting, cutting.stream.chunks(1)), whole);
}
