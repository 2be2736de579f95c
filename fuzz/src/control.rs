//! Requests to the control port: however they are cut, the same comes of them; and nothing is let in
//! without a token that a web page could have sent, as another reader of heads (`httparse`) sees it.

use core::net::IpAddr;

use plimsoll_http::serve::{Access, CONTROL_FIELD, Reading, Request, RequestReader};
use plimsoll_wire::http1::RequestMemo;

use crate::Cutting;

/// Requests that were let in, and how often something was refused.
type Told = (Vec<Request>, Option<u16>);

/// Requests that were let in, and the status of the refusal, if one was refused.
fn told<'p>(access: &Access, pieces: impl Iterator<Item = &'p [u8]>) -> Told {
    let (mut reader, mut memo, mut let_in) = (RequestReader::default(), RequestMemo::new(), Vec::new());
    for piece in pieces {
        match reader.take(piece, access, &mut memo) {
            Reading::Pending { .. } => {}
            Reading::Request { request, stays } => {
                let_in.push(request);
                if !stays {
                    break;
                }
            }
            Reading::Refused { reply, .. } => {
                assert!((400..500).contains(&reply.status));
                return (let_in, Some(reply.status));
            }
        }
    }
    (let_in, None)
}

/// Fields of a head as another reader sees them; `None` if it takes the bytes for no head.
fn fields(data: &[u8]) -> Option<(String, Vec<(String, String)>)> {
    let mut headers = [httparse::EMPTY_HEADER; 256];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(data) {
        Ok(httparse::Status::Complete(_)) => {}
        _ => return None,
    }
    let fields = request.headers.iter();
    let fields = fields.map(|header| {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        (header.name.to_ascii_lowercase(), value)
    });
    Some((request.method?.to_owned(), fields.collect()))
}

/// Returns `true` if a Host is an IP address or `localhost`, the name that cannot be redirected.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some(cutting) = Cutting::new(data) else { return };
    let stream = cutting.stream;
    let (whole, status) = told(&Access::Local, std::iter::once(stream));
    // An accepted request is the same when it comes in pieces; bytes after it are refused in both cases.
    let cut = told(&Access::Local, cutting.pieces());
    if let [request] = &whole[..] {
        assert_eq!((cut.0.first(), status), (Some(request), None));
        assert_eq!(told(&Access::Local, stream.chunks(1)).0.first(), Some(request));
        assert_eq!(told(&Access::Anyone, std::iter::once(stream)).0.first(), Some(request));
        may_be_let_in(stream, request);
    }
    let bearer = told(&Access::Token("secret".to_owned()), std::iter::once(stream));
    for request in &bearer.0 {
        let authorization = request.authorization.as_deref().unwrap_or_default();
        assert!(
            authorization.to_ascii_lowercase().starts_with("bearer ") && authorization.ends_with("secret")
        );
    }
}

fn may_be_let_in(stream: &[u8], request: &Request) {
    // Empty lines may stand before a request.
    let begin = stream.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(0);
    let Some((method, fields)) = fields(&stream[begin..]) else { return };
    assert_eq!(method, request.method);
    for (name, value) in &fields {
        match name.as_str() {
            "origin" => panic!("a page of {value} was let in"),
            "sec-fetch-site" => assert!(matches!(value.as_str(), "none" | "same-origin"), "{value}"),
            "host" => assert!(is_here(value), "by the name {value}"),
            _ => {}
        }
    }
    let changes = !matches!(method.as_str(), "GET" | "HEAD");
    assert!(!changes || fields.iter().any(|(name, _)| name == CONTROL_FIELD));
}
