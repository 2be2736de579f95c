//! Response heads, written by the server's half.

/// Appends a response head: status line, `content-type` if given, `content-length` unless this status never
/// has one (1xx and 204, RFC 9110 section 8.6), `connection: close` if `close`, the `extra` fields, and the
/// empty line.
///
/// There is no Date field: a server with a clock gives it among `extra` (RFC 9110 section 6.6.1). Line ends
/// and NUL in names and values are written as spaces, so that no value can end the head (section 5.5).
pub fn write_response_head(
    out: &mut Vec<u8>,
    status: u16,
    content_type: Option<&str>,
    content_length: u64,
    close: bool,
    extra: &[(String, String)],
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    // A status code has three digits, whatever number is given.
    let status = status.clamp(100, 999);
    push_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    if let Some(content_type) = content_type {
        push_field(out, "content-type", content_type);
    }
    if status >= 200 && status != 204 {
        out.extend_from_slice(b"content-length: ");
        push_decimal(out, content_length);
        out.extend_from_slice(b"\r\n");
    }
    if close {
        out.extend_from_slice(b"connection: close\r\n");
    }
    for (name, value) in extra {
        push_field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &str) {
    push_text(out, name);
    out.extend_from_slice(b": ");
    push_text(out, value);
    out.extend_from_slice(b"\r\n");
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let breaks_out = |byte: u8| matches!(byte, b'\r' | b'\n' | 0);
    out.extend(text.bytes().map(|byte| if breaks_out(byte) { b' ' } else { byte }));
}

fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    // 20 digits hold any u64.
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The reason phrase of a status code (IANA HTTP Status Code Registry); `"Unknown"` for others.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        status: u16,
        content_type: Option<&str>,
        length: u64,
        close: bool,
        extra: &[(&str, &str)],
    ) -> String {
        let extra: Vec<_> = extra.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut out = Vec::new();
        write_response_head(&mut out, status, content_type, length, close, &extra);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads() {
        assert_eq!(written(200, None, 0, false, &[]), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(
            written(503, Some("text/plain"), u64::MAX, true, &[("retry-after", "1"), ("a", "b")]),
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
             content-length: 18446744073709551615\r\nconnection: close\r\nretry-after: 1\r\na: b\r\n\r\n"
        );
        assert_eq!(written(204, None, 0, false, &[]), "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(written(100, None, 0, false, &[]), "HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(
            written(304, None, 12, false, &[]),
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 12\r\n\r\n"
        );
        assert_eq!(written(799, None, 10, false, &[]), "HTTP/1.1 799 Unknown\r\ncontent-length: 10\r\n\r\n");
        assert_eq!(written(7, None, 0, false, &[]), "HTTP/1.1 100 Continue\r\n\r\n");
    }

    #[test]
    fn no_value_can_end_the_head() {
        assert_eq!(
            written(200, Some("a\r\nb: c"), 0, false, &[("x\n", "\r\n\r\n\0HTTP/1.1")]),
            "HTTP/1.1 200 OK\r\ncontent-type: a  b: c\r\ncontent-length: 0\r\nx :      HTTP/1.1\r\n\r\n"
        );
    }
}
