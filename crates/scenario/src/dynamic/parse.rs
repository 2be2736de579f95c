//! Requests in the bytes of HTTP/1.1, as scripts for wrk make them.

use httparse::{EMPTY_HEADER, Request, Status};
use plimsoll_wire::http1::{Limits, RequestMemo, RequestServer};

use super::{DynamicRequest, shown};

/// Header fields of one request, at most.
const FIELDS_MAX: usize = 256;

/// See [`DynamicRequest::count_http1`].
pub(super) fn count(raw: &[u8]) -> Result<u32, String> {
    let (mut server, mut memo) = (RequestServer::new(), RequestMemo::default());
    let limits = limits();
    let (mut rest, mut count) = (raw, 0);
    loop {
        match server.next(&limits, &mut memo, &mut rest) {
            Ok(Some(_)) => count += 1,
            Ok(None) => break,
            Err(error) => return Err(format!("the request is not HTTP/1.1: {error}: `{}`", shown(raw))),
        }
    }
    match (server.in_request(), count) {
        (true, _) => Err(format!("the request ends in its middle: `{}`", shown(raw))),
        (false, 0) => Err("the request is empty".to_owned()),
        (false, count) => Ok(count),
    }
}

/// See [`DynamicRequest::first_http1`].
pub(super) fn first(raw: &[u8]) -> usize {
    let (mut server, mut memo) = (RequestServer::new(), RequestMemo::default());
    let mut rest = raw;
    match server.next(&limits(), &mut memo, &mut rest) {
        Ok(Some(_)) => raw.len() - rest.len(),
        Ok(None) | Err(_) => raw.len(),
    }
}

/// See [`DynamicRequest::parse_http1`].
pub(super) fn parse(raw: &[u8]) -> Result<DynamicRequest, String> {
    let count = count(raw)?;
    if count != 1 {
        return Err(format!(
            "the script gives {count} requests at once, and HTTP/2 or a proxy takes one after the other"
        ));
    }
    let start = raw.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    let mut fields = vec![EMPTY_HEADER; FIELDS_MAX];
    let mut head = Request::new(&mut fields);
    let end = match head.parse(&raw[start..]) {
        Ok(Status::Complete(len)) => start + len,
        Ok(Status::Partial) => return Err(format!("the request ends in its middle: `{}`", shown(raw))),
        Err(error) => return Err(format!("the request is not HTTP/1.1: {error}: `{}`", shown(raw))),
    };
    let mut request = DynamicRequest::default();
    request.method.extend_from_slice(head.method.unwrap_or_default().as_bytes());
    let target = head.path.unwrap_or_default();
    let (authority, path) = split_target(target);
    request.path.extend_from_slice(path.as_bytes());
    for field in head.headers.iter() {
        if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err("the request has a body in chunks, which HTTP/2 and proxies are not given".to_owned());
        }
        if field.name.eq_ignore_ascii_case("host") {
            request.authority.clear();
            request.authority.extend_from_slice(field.value);
        } else if !field.name.eq_ignore_ascii_case("content-length") {
            request.fields.push(field.name.as_bytes(), field.value);
        }
    }
    // RFC 9112 section 3.2.2: an absolute target takes precedence.
    if let Some(authority) = authority {
        request.authority.clear();
        request.authority.extend_from_slice(authority.as_bytes());
    }
    request.body.extend_from_slice(&raw[end..]);
    request.check()?;
    Ok(request)
}

/// The authority of an absolute target, and the path and query.
fn split_target(target: &str) -> (Option<&str>, &str) {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let Some(scheme) = scheme else { return (None, target) };
    let rest = &target[scheme.len()..];
    match rest.find('/') {
        Some(slash) => (Some(&rest[..slash]), &rest[slash..]),
        None => (Some(rest), "/"),
    }
}

fn limits() -> Limits {
    Limits { headers: FIELDS_MAX, ..Limits::default() }
}
