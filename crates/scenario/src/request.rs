//! Whole HTTP/1.1 requests, compiled.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::Random;

use crate::header::{compile_value, is_secret, is_token};
use crate::slot::write_decimal;
use crate::{Context, Fingerprint, Template, TemplateError};

/// What a request is compiled from.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// Method, as it goes on the wire.
    pub method: String,
    /// Path and query; a template.
    pub target: String,
    /// `host[:port]` for the Host header.
    pub authority: String,
    /// Names and values; values are templates. An empty value leaves a default header (Host, User-Agent,
    /// Content-Length, Connection) out, and sends nothing.
    pub headers: Vec<(String, String)>,
    /// Payload.
    pub body: Body,
    /// Whether the connection is used again; if not, the request says so.
    pub keep_alive: bool,
}

/// Payload of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// None.
    #[default]
    None,
    /// A template.
    Text(Vec<u8>),
    /// Bytes as they are.
    Raw(Arc<[u8]>),
}

/// One request, compiled: rendering a static request is one copy.
///
/// A request whose length is the same for all renderings carries it as a literal; otherwise the body is
/// rendered first and its length written into the head.
#[derive(Clone)]
pub struct RequestTemplate {
    /// The head, and the body if that is fixed in length and small; up to the value of content-length if
    /// there is a `measured` body.
    front: Template,
    /// A body whose length is known only once it is rendered.
    measured: Option<Template>,
    shared: Option<Arc<[u8]>>,
    head_request: bool,
    is_static: bool,
    fingerprint: Fingerprint,
    /// What it was compiled from: a redirect is compiled anew.
    pub(crate) spec: Arc<RequestSpec>,
}

/// Static bodies above this many bytes are shared instead of copied: below, one copy is cheaper than a second
/// buffer in the system call.
const LARGEST_COPIED_BODY: usize = 16 * 1024;

/// Room for the digits of a content-length, in bytes.
const LENGTH_DIGITS: usize = 20;

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

impl RequestTemplate {
    /// Compiles and validates one request.
    pub fn http1(spec: &RequestSpec) -> Result<Self, TemplateError> {
        let headers = spec
            .headers
            .iter()
            .map(|(name, value)| compile_value(name, value).map(|value| Header { name, value }))
            .collect::<Result<Vec<_>, _>>()?;
        check_framing(&headers)?;
        let mut front = request_line(spec)?;
        push_headers(&mut front, spec, &headers)?;

        let body = match &spec.body {
            Body::None => Template::default(),
            Body::Text(text) => Template::parse(text).map_err(|error| error.at("body"))?,
            Body::Raw(bytes) if bytes.len() > LARGEST_COPIED_BODY => Template::default(),
            Body::Raw(bytes) => Template::literal(bytes),
        };
        let mut measured = None;
        let mut shared = None;
        match (&spec.body, body.fixed_len()) {
            (Body::Raw(bytes), _) if bytes.len() > LARGEST_COPIED_BODY => {
                push_length(&mut front, spec, &headers, Some(bytes.len()))?;
                shared = Some(Arc::clone(bytes));
            }
            (_, Some(len)) if len > LARGEST_COPIED_BODY && body.is_static() => {
                push_length(&mut front, spec, &headers, Some(len))?;
                shared = Some(Arc::from(body.literals()));
            }
            (_, Some(len)) => {
                push_length(&mut front, spec, &headers, Some(len))?;
                front.push(&body);
            }
            (_, None) => {
                push_length(&mut front, spec, &headers, None)?;
                measured = Some(body);
            }
        }
        Ok(Self {
            is_static: front.is_static() && measured.is_none(),
            front,
            measured,
            shared,
            head_request: spec.method == "HEAD",
            fingerprint: fingerprint(spec),
            spec: Arc::new(spec.clone()),
        })
    }

    /// Appends the head, and the body unless it is [shared](Self::shared_body). `scratch` is for bodies whose
    /// length is not known ahead; its content is overwritten. Allocates only when a buffer has to grow.
    pub fn render(&self, context: &Context, random: &mut Random, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        if self.is_static {
            out.extend_from_slice(self.front.literals());
            return;
        }
        self.front.render(context, random, out);
        if let Some(body) = &self.measured {
            scratch.clear();
            body.render(context, random, scratch);
            write_decimal(scratch.len() as u64, out);
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(scratch);
        }
    }

    /// A large static body, to be sent after what [`render`](Self::render) wrote.
    pub fn shared_body(&self) -> Option<&Arc<[u8]>> {
        self.shared.as_ref()
    }

    /// Whether the method is HEAD: the response has no body, whatever its headers say.
    pub fn head_request(&self) -> bool {
        self.head_request
    }

    /// Whether every rendering is the same.
    pub fn is_static(&self) -> bool {
        self.is_static
    }

    /// Whether a rendering reads the time of the [`Context`].
    pub fn needs_clock(&self) -> bool {
        self.front.needs_clock() || self.measured.as_ref().is_some_and(Template::needs_clock)
    }

    /// Most bytes that [`render`](Self::render) appends.
    pub fn len_hint(&self) -> usize {
        let measured = self.measured.as_ref().map_or(0, |body| body.longest() + LENGTH_DIGITS + 4);
        self.front.longest() + measured
    }

    /// Identifies what is sent, without the values of secret headers: a new token is not a new plan.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// Without the bytes: they may contain a secret.
impl fmt::Debug for RequestTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTemplate")
            .field("fingerprint", &self.fingerprint)
            .field("is_static", &self.is_static)
            .field("len_hint", &self.len_hint())
            .field("shared_body_len", &self.shared.as_ref().map(|body| body.len()))
            .finish()
    }
}

/// Without the values of secret headers and the bytes of the body.
impl fmt::Debug for RequestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name, shown(name, value))).collect();
        let body_len = match &self.body {
            Body::None => None,
            Body::Text(text) => Some(text.len()),
            Body::Raw(bytes) => Some(bytes.len()),
        };
        f.debug_struct("RequestSpec")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("authority", &self.authority)
            .field("headers", &headers)
            .field("body_len", &body_len)
            .field("keep_alive", &self.keep_alive)
            .finish()
    }
}

fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret(name) && !value.is_empty() { "<secret>" } else { value }
}

fn fingerprint(spec: &RequestSpec) -> Fingerprint {
    let mut hash = Fingerprint::EMPTY
        .with_field(spec.method.as_bytes())
        .with_field(spec.authority.as_bytes())
        .with_field(spec.target.as_bytes())
        .with(&[u8::from(spec.keep_alive)]);
    for (name, value) in &spec.headers {
        hash = hash.with_field(name.as_bytes()).with_field(shown(name, value).as_bytes());
    }
    match &spec.body {
        Body::None => hash.with(&[0]),
        Body::Text(text) => hash.with(&[1]).with_field(text),
        Body::Raw(bytes) => hash.with(&[2]).with_field(bytes),
    }
}

/// Checks that `method` is one that load can be made of.
pub fn check_method(method: &str) -> Result<(), TemplateError> {
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(TemplateError::new(format!("`{}` is not a method", method.escape_debug()))
            .with_hint("a method is one word, such as GET or POST"));
    }
    if method == "CONNECT" {
        return Err(TemplateError::new("the method CONNECT opens a tunnel and cannot be used for load"));
    }
    let upper = method.to_ascii_uppercase();
    if upper != method && REGISTERED_METHODS.contains(&upper.as_str()) {
        return Err(TemplateError::new(format!("`{method}` is not a method"))
            .with_hint(format!("methods are case-sensitive: write {upper}")));
    }
    Ok(())
}

/// The methods of RFC 9110 and PATCH (RFC 5789).
const REGISTERED_METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

struct Header<'a> {
    name: &'a str,
    value: Template,
}

impl Header<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn is_empty(&self) -> bool {
        self.value.longest() == 0
    }
}

/// The framing of a request is ours: a second Host or a foreign length would make the server wait or guess.
fn check_framing(headers: &[Header<'_>]) -> Result<(), TemplateError> {
    if headers.iter().any(|header| header.is("transfer-encoding") && !header.is_empty()) {
        return Err(TemplateError::new("the header `Transfer-Encoding` cannot be set")
            .with_hint("bodies are sent with a content-length"));
    }
    for name in ["host", "content-length"] {
        if headers.iter().filter(|header| header.is(name) && !header.is_empty()).count() > 1 {
            return Err(TemplateError::new(format!("the header `{name}` is given twice")));
        }
    }
    Ok(())
}

fn request_line(spec: &RequestSpec) -> Result<Template, TemplateError> {
    let method = spec.method.as_str();
    check_method(method)?;
    let target = Template::parse(spec.target.as_bytes()).map_err(|error| error.at("URL"))?;
    let visible = |byte: &u8| byte.is_ascii_graphic();
    if let Some(byte) = target.literals().iter().find(|&byte| !visible(byte)) {
        return Err(TemplateError::new(format!("`{}` is not allowed in a URL", byte.escape_ascii()))
            .with_hint(format!("write %{byte:02X}")));
    }
    let asterisk = spec.target == "*" && method == "OPTIONS";
    if !spec.target.starts_with('/') && !asterisk {
        return Err(TemplateError::new(format!("the path `{}` does not start with `/`", spec.target)));
    }
    if let Some(byte) = spec.authority.bytes().find(|byte| !visible(byte)) {
        return Err(TemplateError::new(format!("`{}` is not allowed in a host", byte.escape_ascii())));
    }
    let mut line = Template::literal(method.as_bytes());
    line.push_literal(b" ");
    line.push(&target);
    line.push_literal(b" HTTP/1.1\r\n");
    Ok(line)
}

/// Everything but the content-length, which [`push_length`] writes last.
fn push_headers(
    front: &mut Template,
    spec: &RequestSpec,
    headers: &[Header<'_>],
) -> Result<(), TemplateError> {
    let given = |name: &str| headers.iter().any(|header| header.is(name));
    if !given("host") {
        push_header(front, "Host", &Template::literal(spec.authority.as_bytes()));
    }
    if !given("user-agent") {
        push_header(front, "User-Agent", &Template::literal(USER_AGENT.as_bytes()));
    }
    for header in headers {
        if !header.is_empty() && !header.is("content-length") {
            push_header(front, header.name, &header.value);
        }
    }
    if !spec.keep_alive && !given("connection") {
        push_header(front, "Connection", &Template::literal(b"close"));
    }
    Ok(())
}

fn push_header(front: &mut Template, name: &str, value: &Template) {
    front.push_literal(name.as_bytes());
    front.push_literal(b": ");
    front.push(value);
    front.push_literal(b"\r\n");
}

/// Ends the head with the content-length `len`, or up to its value if it is not known (`None`).
fn push_length(
    front: &mut Template,
    spec: &RequestSpec,
    headers: &[Header<'_>],
    len: Option<usize>,
) -> Result<(), TemplateError> {
    let given = headers.iter().find(|header| header.is("content-length"));
    let has_body = spec.body != Body::None;
    let removed = given.is_some_and(Header::is_empty) && !has_body;
    if let Some(header) = given.filter(|header| !header.is_empty()) {
        // A true one is harmless (people paste it from a capture); a false one makes the server wait.
        let expected = len.map(|len| len.to_string());
        let is_true = header.value.is_static()
            && expected.as_deref().is_some_and(|len| len.as_bytes() == header.value.literals());
        if !is_true {
            return Err(TemplateError::new("the header `Content-Length` does not match the body")
                .with_hint("leave it out: it is computed"));
        }
    }
    // RFC 9110 section 8.6: methods that define a meaning for content say so even when there is none.
    let expects_body = matches!(spec.method.as_str(), "POST" | "PUT" | "PATCH");
    if (has_body || expects_body || given.is_some()) && !removed {
        front.push_literal(b"Content-Length: ");
        match len {
            Some(len) => {
                front.push_literal(len.to_string().as_bytes());
                front.push_literal(b"\r\n\r\n");
            }
            None => return Ok(()),
        }
    } else {
        front.push_literal(b"\r\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn get() -> RequestSpec {
        RequestSpec {
            method: "GET".to_owned(),
            target: "/".to_owned(),
            authority: "example.test:8080".to_owned(),
            headers: Vec::new(),
            body: Body::None,
            keep_alive: true,
        }
    }

    fn post(body: Body) -> RequestSpec {
        RequestSpec { method: "POST".to_owned(), body, ..get() }
    }

    fn with_headers(spec: RequestSpec, headers: &[(&str, &str)]) -> RequestSpec {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        RequestSpec { headers, ..spec }
    }

    fn rendered(spec: &RequestSpec, index: u64) -> Vec<u8> {
        let request = RequestTemplate::http1(spec).unwrap();
        let (mut scratch, mut out) = (b"left over".to_vec(), Vec::new());
        let context = Context { index, worker: 2, unix_ns: 1_700_000_000_000_000_000 };
        request.render(&context, &mut Random::new(index, 0), &mut scratch, &mut out);
        assert!(out.len() <= request.len_hint());
        out
    }

    /// Request line, headers and body, read back strictly.
    fn parsed(bytes: &[u8]) -> (String, Vec<(String, String)>, Vec<u8>) {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head ends");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap().to_owned();
        assert_eq!(first.split(' ').count(), 3, "{first}");
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").expect("name: value");
                assert!(name.bytes().all(is_token) && !name.is_empty());
                assert!(!value.contains(['\r', '\n', '\0']));
                (name.to_owned(), value.to_owned())
            })
            .collect();
        (first, headers, bytes[end + 4..].to_vec())
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_plain_get_is_as_short_as_it_can_be() {
        let expected =
            format!("GET / HTTP/1.1\r\nHost: example.test:8080\r\nUser-Agent: {USER_AGENT}\r\n\r\n");
        assert_eq!(text(&rendered(&get(), 0)), expected);
        let request = RequestTemplate::http1(&get()).unwrap();
        assert!(request.is_static() && !request.needs_clock() && !request.head_request());
        assert_eq!(request.len_hint(), expected.len());
    }

    #[test]
    fn default_headers_can_be_replaced_and_left_out() {
        let spec = with_headers(get(), &[("user-agent", ""), ("host", "other"), ("X-A", "b")]);
        assert_eq!(text(&rendered(&spec, 0)), "GET / HTTP/1.1\r\nhost: other\r\nX-A: b\r\n\r\n");
        let closing = RequestSpec { keep_alive: false, ..with_headers(get(), &[("user-agent", "")]) };
        assert!(text(&rendered(&closing, 0)).ends_with("\r\nConnection: close\r\n\r\n"));
        let told = RequestSpec { keep_alive: false, ..with_headers(get(), &[("connection", "upgrade")]) };
        assert!(!text(&rendered(&told, 0)).contains("close"));
    }

    #[test]
    fn the_content_length_is_there_when_it_means_something() {
        for (method, body, expected) in [
            ("GET", Body::None, None),
            ("DELETE", Body::None, None),
            ("POST", Body::None, Some("0")),
            ("PUT", Body::None, Some("0")),
            ("PATCH", Body::Text(Vec::new()), Some("0")),
            ("GET", Body::Text(b"abc".to_vec()), Some("3")),
            ("POST", Body::Raw(Arc::from(&b"${uuid}"[..])), Some("7")),
            ("POST", Body::Text(b"${uuid}".to_vec()), Some("36")),
            ("POST", Body::Text(b"n=${sequence}".to_vec()), Some("5")),
        ] {
            let spec = RequestSpec { method: method.to_owned(), body: body.clone(), ..get() };
            let (_, headers, sent) = parsed(&rendered(&spec, 100));
            let found = headers.iter().find(|(name, _)| name == "Content-Length").map(|(_, v)| v.as_str());
            assert_eq!(found, expected, "{method} {body:?}");
            assert_eq!(sent.len().to_string(), expected.unwrap_or("0"), "{method} {body:?}");
        }
        let bare = with_headers(post(Body::None), &[("content-length", "")]);
        assert!(!text(&rendered(&bare, 0)).contains("ontent-"));
    }

    #[test]
    fn only_a_true_content_length_is_accepted() {
        let body = || Body::Text(b"abc".to_vec());
        let good = with_headers(post(body()), &[("Content-Length", "3")]);
        assert_eq!(text(&rendered(&good, 0)).matches("ontent-").count(), 1);
        for bad in [
            with_headers(post(body()), &[("Content-Length", "4")]),
            with_headers(post(body()), &[("content-length", "${sequence}")]),
            with_headers(post(Body::Text(b"${sequence}".to_vec())), &[("Content-Length", "1")]),
            with_headers(post(body()), &[("Content-Length", "3"), ("content-length", "3")]),
            with_headers(post(body()), &[("Transfer-Encoding", "chunked")]),
            with_headers(get(), &[("Host", "a"), ("host", "b")]),
        ] {
            assert!(RequestTemplate::http1(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn large_static_bodies_are_shared_and_small_ones_copied() {
        let large: Arc<[u8]> = vec![b'x'; LARGEST_COPIED_BODY + 1].into();
        for body in [Body::Raw(Arc::clone(&large)), Body::Text(large.to_vec())] {
            let spec = post(body);
            let request = RequestTemplate::http1(&spec).unwrap();
            assert_eq!(request.shared_body().unwrap(), &large);
            assert!(request.is_static());
            let (_, headers, inline) = parsed(&rendered(&spec, 0));
            assert!(inline.is_empty());
            assert!(headers.contains(&("Content-Length".to_owned(), large.len().to_string())));
        }
        let shared = post(Body::Raw(Arc::clone(&large)));
        assert!(Arc::ptr_eq(RequestTemplate::http1(&shared).unwrap().shared_body().unwrap(), &large));
        let small = post(Body::Raw(large[1..].into()));
        assert!(RequestTemplate::http1(&small).unwrap().shared_body().is_none());
        assert_eq!(parsed(&rendered(&small, 0)).2, &large[1..]);
    }

    #[test]
    fn a_templated_head_with_a_shared_body() {
        let spec = RequestSpec {
            target: "/${sequence}".to_owned(),
            ..post(Body::Raw(vec![0; LARGEST_COPIED_BODY + 1].into()))
        };
        assert!(text(&rendered(&spec, 17)).starts_with("POST /17 HTTP/1.1\r\n"));
        assert!(!RequestTemplate::http1(&spec).unwrap().is_static());
    }

    #[test]
    fn rendering_reuses_its_buffers() {
        let spec = with_headers(
            RequestSpec {
                target: "/a?q=${random_string(20)}".to_owned(),
                ..post(Body::Text(b"${sequence} ${timestamp_ns} ${random_int(-5,5)}".to_vec()))
            },
            &[("X-Request-Id", "${uuid}")],
        );
        let request = RequestTemplate::http1(&spec).unwrap();
        assert!(request.needs_clock());
        let mut out = Vec::with_capacity(request.len_hint());
        let mut scratch = Vec::with_capacity(request.len_hint());
        let before = (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity());
        let mut random = Random::new(1, 0);
        for index in 0..1000 {
            out.clear();
            let context = Context { index, worker: 0, unix_ns: u64::MAX - index };
            request.render(&context, &mut random, &mut scratch, &mut out);
        }
        assert_eq!(before, (out.as_ptr(), out.capacity(), scratch.as_ptr(), scratch.capacity()));
    }

    #[test]
    fn malformed_requests_are_refused() {
        let method = |method: &str| RequestSpec { method: method.to_owned(), ..get() };
        let target = |target: &str| RequestSpec { target: target.to_owned(), ..get() };
        for (bad, message) in [
            (method(""), "`` is not a method"),
            (method("GE T"), "`GE T` is not a method"),
            (method("get"), "`get` is not a method"),
            (method("GET\r\n"), "`GET\\r\\n` is not a method"),
            (method("CONNECT"), "the method CONNECT opens a tunnel and cannot be used for load"),
            (target("a"), "the path `a` does not start with `/`"),
            (target("/a b"), "` ` is not allowed in a URL"),
            (target("/\r\nX: y"), "`\\r` is not allowed in a URL"),
            (target("/ü"), "`\\xc3` is not allowed in a URL"),
            (target("/${uid}"), "URL: unknown template slot `${uid}`"),
            (post(Body::Text(b"${".to_vec())), "body: `${` without a closing `}`"),
            (with_headers(get(), &[("A", "${b}")]), "header `A`: unknown template slot `${b}`"),
            (with_headers(get(), &[("A", "b\nc")]), "the value of the header `A` contains `\\n`"),
            (with_headers(get(), &[("A", "b\0c")]), "the value of the header `A` contains `\\x00`"),
            (with_headers(get(), &[("A b", "c")]), "` ` is not allowed in the header's name `A b`"),
        ] {
            assert_eq!(RequestTemplate::http1(&bad).unwrap_err().message(), message);
        }
        let options = RequestSpec { method: "OPTIONS".to_owned(), ..target("*") };
        assert!(rendered(&options, 0).starts_with(b"OPTIONS * HTTP/1.1\r\n"));
    }

    #[test]
    fn secrets_are_in_neither_debug_nor_fingerprint() {
        let token = |token: &str| with_headers(get(), &[("Authorization", token), ("X-A", "shown")]);
        let (one, two) = (token("Bearer topsecret"), token("Bearer another"));
        let request = RequestTemplate::http1(&one).unwrap();
        for debug in [format!("{one:?}"), format!("{request:?}")] {
            assert!(!debug.contains("topsecret"), "{debug}");
        }
        assert!(format!("{one:?}").contains("shown"));
        let print = |spec: &RequestSpec| RequestTemplate::http1(spec).unwrap().fingerprint();
        assert_eq!(print(&one), print(&two));
        assert_ne!(print(&one), print(&get()));
        assert_ne!(print(&post(Body::Text(b"a".to_vec()))), print(&post(Body::Raw(b"a"[..].into()))));
    }

    const PIECES: &[&str] = &[
        "${sequence}",
        "${worker}",
        "${uuid}",
        "${timestamp_s}",
        "${timestamp_ns}",
        "${random_int(-100,1000)}",
        "${random_int(10,99)}",
        "${random_hex(5)}",
        "${random_string(33)}",
        "plain",
        "$${",
        "$;",
        "",
    ];

    proptest! {
        #[test]
        fn every_rendering_is_a_request_whose_length_is_true(
            in_target in proptest::collection::vec(0..PIECES.len(), 0..4),
            in_header in proptest::collection::vec(0..PIECES.len(), 0..4),
            in_body in proptest::collection::vec(0..PIECES.len(), 0..8),
            index in any::<u64>(), keep_alive in any::<bool>(),
        ) {
            let join = |picked: &[usize]| picked.iter().map(|&i| PIECES[i]).collect::<String>();
            let spec = RequestSpec {
                target: format!("/{}", join(&in_target)),
                keep_alive,
                ..with_headers(
                    post(Body::Text(join(&in_body).into_bytes())),
                    &[("X-Header", &format!("v{}", join(&in_header)))],
                )
            };
            let (first, headers, body) = parsed(&rendered(&spec, index));
            prop_assert!(first.starts_with("POST /") && first.ends_with(" HTTP/1.1"));
            let value = |name: &str| {
                headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(value("Content-Length"), [body.len().to_string()]);
            prop_assert_eq!(value("Host"), ["example.test:8080"]);
            prop_assert_eq!(value("X-Header").len(), 1);
            prop_assert_eq!(value("Connection").len(), usize::from(!keep_alive));
            if in_body.contains(&0) {
                prop_assert!(text(&body).contains(&index.to_string()));
            }
        }
    }
}
