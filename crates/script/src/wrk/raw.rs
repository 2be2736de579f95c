//! Counts the requests in the bytes that a script gives.

use memchr::memchr;

/// Whole requests in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawRequests {
    pub(crate) count: u32,
    /// The method of the first.
    pub(crate) method: Vec<u8>,
}

/// Reads whole requests of HTTP/1.1 (RFC 9112), as far as it takes to find where they end.
///
/// # Errors
/// The problem, in words that follow "returned".
pub(crate) fn read(bytes: &[u8], found: &mut RawRequests) -> Result<(), String> {
    found.count = 0;
    found.method.clear();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (head, after) = head(rest)?;
        if found.count == 0 {
            found.method.extend_from_slice(head.method);
        } else if (found.method == b"HEAD") != (head.method == b"HEAD") {
            return Err("HEAD among other requests: their responses cannot be distinguished".to_owned());
        }
        found.count += 1;
        rest = match head.body {
            Body::Length(length) => after.get(length..).ok_or_else(|| {
                let (wrong, there) = (length, after.len());
                format!("a request whose body has {there} bytes, not the {wrong} of its Content-Length")
            })?,
            Body::Chunked => chunked(after)?,
        };
    }
    if found.count == 0 { Err("an empty string, not a request".to_owned()) } else { Ok(()) }
}

enum Body {
    Length(usize),
    Chunked,
}

struct Head<'a> {
    method: &'a [u8],
    body: Body,
}

fn no_request(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(&line[..line.len().min(60)]);
    format!("a text that is not an HTTP/1.1 request: `{}`", line.escape_debug())
}

/// The next line, without its end, and the rest.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b'\n', bytes)?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

fn head(bytes: &[u8]) -> Result<(Head<'_>, &[u8]), String> {
    let (first, mut rest) = line(bytes).ok_or_else(|| no_request(bytes))?;
    let mut words = first.split(|&byte| byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let method = method.filter(|method| !method.is_empty()).ok_or_else(|| no_request(first))?;
    let is_known = version.is_some_and(|version| version.starts_with(b"HTTP/1."));
    if !is_known || target.is_none_or(<[u8]>::is_empty) || words.next().is_some() {
        return Err(no_request(first));
    }
    let mut body = Body::Length(0);
    loop {
        let Some((field, after)) = line(rest) else {
            return Err("a request without an empty line behind its headers".to_owned());
        };
        rest = after;
        if field.is_empty() {
            return Ok((Head { method, body }, rest));
        }
        // Both names by their length first: most fields are neither.
        let value = |name: &[u8]| match field.split_at_checked(name.len() + 1) {
            Some((start, value))
                if start[..name.len()].eq_ignore_ascii_case(name) && start.ends_with(b":") =>
            {
                Some(value.trim_ascii())
            }
            _ => None,
        };
        if let Some(length) = value(b"content-length") {
            let text = std::str::from_utf8(length).ok();
            let length = text.and_then(|text| text.parse().ok());
            body = Body::Length(length.ok_or("a request with a Content-Length that is not a number")?);
        } else if let Some(coding) = value(b"transfer-encoding")
            && coding.to_ascii_lowercase().ends_with(b"chunked")
        {
            body = Body::Chunked;
        }
    }
}

/// Skips a chunked body and returns the bytes after it (RFC 9112 section 7.1).
fn chunked(mut rest: &[u8]) -> Result<&[u8], String> {
    let wrong = || "a request with a broken chunked body".to_owned();
    loop {
        let (size, after) = line(rest).ok_or_else(wrong)?;
        let digits = size.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        let size = usize::from_str_radix(digits, 16).map_err(|_| wrong())?;
        rest = after;
        if size == 0 {
            loop {
                let (trailer, after) = line(rest).ok_or_else(wrong)?;
                rest = after;
                if trailer.is_empty() {
                    return Ok(rest);
                }
            }
        }
        let end = after.get(size..).ok_or_else(wrong)?;
        let (empty, after) = line(end).ok_or_else(wrong)?;
        if !empty.is_empty() {
            return Err(wrong());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(bytes: &str) -> Result<(u32, String), String> {
        let mut found = RawRequests::default();
        read(bytes.as_bytes(), &mut found)?;
        Ok((found.count, String::from_utf8(found.method).unwrap()))
    }

    #[test]
    fn whole_requests_are_counted() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST /x HTTP/1.1\r\ncontent-Length: 3\r\n\r\na\r\n";
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: x\r\n\r\n";
        assert_eq!(count(get), Ok((1, "GET".to_owned())));
        assert_eq!(count(&format!("{post}{get}{chunked}{get}")), Ok((4, "POST".to_owned())));
        let head = "HEAD / HTTP/1.1\r\n\r\n";
        assert_eq!(count(&head.repeat(2)), Ok((2, "HEAD".to_owned())));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let get = "GET / HTTP/1.1\r\n\r\n";
        let table = [
            ("", "an empty string"),
            ("hello", "not an HTTP/1.1 request: `hello`"),
            ("GET /a b HTTP/1.1\r\n\r\n", "not an HTTP/1.1 request"),
            ("GET / HTTP/1.1\r\nHost: a\r\n", "without an empty line"),
            ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", "3 bytes, not the 9"),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "not a number"),
            ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", "chunked"),
            (&format!("{get}HEAD / HTTP/1.1\r\n\r\n"), "HEAD among other"),
            (&format!("{get}rest"), "not an HTTP/1.1 request: `rest`"),
        ];
        for (bytes, expected) in table {
            let error = count(bytes).unwrap_err();
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
    }
}
