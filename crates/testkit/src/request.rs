//! The simulation's own recognition of HTTP/1.1 requests.
//!
//! Deliberately simple and deliberately not the parser of the product: an error that both sides of a test
//! shared would stay unseen. A head ends at the first empty line, a body has a content-length or is empty.

/// A whole request at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// Bytes of head and body together.
    pub length: usize,
    /// Bytes of the body.
    pub body: usize,
    /// `true` if the method is HEAD, so that the response has no body.
    pub head_request: bool,
    /// `true` if the client wants the connection closed after the response.
    pub close: bool,
}

/// A head that is not an HTTP/1.1 request, or a body whose length is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARequest;

/// The request at the front of `input`, `None` while it is incomplete.
///
/// # Errors
/// If there is something else at the front.
pub fn recognise(input: &[u8]) -> Result<Option<Recognised>, NotARequest> {
    let Some(end) = input.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&input[..end]).map_err(|_| NotARequest)?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(_target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(NotARequest);
    };
    let mut recognised =
        Recognised { length: end + 4, body: 0, head_request: method == "HEAD", close: false };
    let mut has_host = false;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(NotARequest)?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "host" => has_host = true,
            "content-length" => recognised.body = value.parse().map_err(|_| NotARequest)?,
            "connection" => recognised.close = value.eq_ignore_ascii_case("close"),
            "transfer-encoding" => return Err(NotARequest),
            _ => {}
        }
    }
    if !has_host {
        return Err(NotARequest);
    }
    recognised.length += recognised.body;
    Ok((input.len() >= recognised.length).then_some(recognised))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const POST: &[u8] = b"POST /x?y HTTP/1.1\r\nhost:a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";

    #[test]
    fn requests_end_where_their_bodies_end() {
        let get = recognise(GET).unwrap().unwrap();
        assert_eq!(get, Recognised { length: GET.len(), body: 0, head_request: false, close: false });
        let both = [POST, GET].concat();
        let post = recognise(&both).unwrap().unwrap();
        assert_eq!(post, Recognised { length: POST.len(), body: 3, head_request: false, close: true });
        for cut in 0..POST.len() {
            assert_eq!(recognise(&POST[..cut]), Ok(None), "{cut}");
        }
    }

    #[test]
    fn other_things_are_no_requests() {
        let bad: [&[u8]; 5] = [
            b"hello\r\n\r\n",
            b"GET / HTTP/1.0\r\nhost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n",
        ];
        for input in bad {
            assert_eq!(recognise(input), Err(NotARequest), "{}", String::from_utf8_lossy(input));
        }
    }
}
