//! The head of a request, checked, before it takes the form of a protocol.

use crate::header::{compile_value, is_token};
use crate::slot::CookieForm;
use crate::{Body, ForwardProxy, RequestSpec, Scheme, Scope, Slot, Template, TemplateError};

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// Head of a request: everything before the content.
pub(crate) struct Head<'a> {
    spec: &'a RequestSpec,
    /// Path and query.
    pub(crate) target: Template,
    /// As given, those with an empty value included.
    headers: Vec<Header<'a>>,
    length: Length,
}

/// The content-length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// The header is absent.
    Absent,
    /// Always the same.
    Known(usize),
    /// The length of the body, once that is rendered.
    Measured,
}

/// One field of a request.
#[derive(Clone)]
pub(crate) struct HeadField {
    /// In lower case.
    pub(crate) name: String,
    pub(crate) value: FieldText,
    /// `true` if the field is about a connection of HTTP/1.1. HTTP/2 does not send it.
    pub(crate) of_connection: bool,
    /// `true` if the field is only there if the session has cookies.
    pub(crate) only_with_cookies: bool,
}

/// The value of a [`HeadField`].
#[derive(Clone)]
pub(crate) enum FieldText {
    Template(Template),
    /// The length of the body, in decimal.
    Length,
}

impl<'a> Head<'a> {
    /// Checks `spec`, whose body has `body_len` bytes, if they are always as many.
    pub(crate) fn check(
        spec: &'a RequestSpec,
        scope: &Scope<'_>,
        body_len: Option<usize>,
    ) -> Result<Self, TemplateError> {
        let mut headers = spec
            .headers
            .iter()
            .map(|(name, value)| compile_value(name, value, scope).map(|value| Header { name, value }))
            .collect::<Result<Vec<_>, _>>()?;
        let cookie = headers.iter_mut().find(|header| header.is("cookie") && !header.value.is_empty());
        if let (true, Some(header)) = (spec.cookies, cookie) {
            header.value.push_slot(Slot::Cookies(CookieForm::More));
        }
        check_framing(&headers)?;
        let target = target(spec, scope)?;
        let length = length(spec, &headers, body_len)?;
        Ok(Self { spec, target, headers, length })
    }

    /// The whole head as HTTP/1.1 sends it; up to the value of the content-length if that is
    /// [measured](Length::Measured).
    pub(crate) fn http1(&self) -> Template {
        let mut front = Template::literal(self.spec.method.as_bytes());
        front.push_literal(b" ");
        let forward = self.forward();
        if forward.is_some() {
            front.push_literal(b"http://");
            front.push(&self.authority());
        }
        // In the absolute form, the asterisk of OPTIONS is an empty path (RFC 9112 section 3.2.4).
        if forward.is_none() || self.target.starts_with_slash() {
            front.push(&self.target);
        }
        front.push_literal(b" HTTP/1.1\r\n");
        match self.sent().find(|header| header.is("host")) {
            Some(host) => push_header(&mut front, host.name, &host.value),
            None if self.given("host") => {}
            None => push_header(&mut front, "Host", &self.authority()),
        }
        if !self.given("user-agent") {
            push_header(&mut front, "User-Agent", &Template::literal(USER_AGENT.as_bytes()));
        }
        if let Some(ForwardProxy { authorization: Some(value) }) = forward
            && !self.given("proxy-authorization")
        {
            push_header(&mut front, "Proxy-Authorization", &Template::literal(value.as_bytes()));
        }
        for header in self.sent().filter(|header| !header.is("host") && !header.is_of_connection()) {
            push_header(&mut front, header.name, &header.value);
        }
        if self.spec.cookies && !self.given("cookie") {
            front.push_slot(Slot::Cookies(CookieForm::Line));
        }
        for header in self.sent().filter(|header| header.is_of_connection()) {
            push_header(&mut front, header.name, &header.value);
        }
        if !self.spec.keep_alive && !self.given("connection") {
            push_header(&mut front, "Connection", &Template::literal(b"close"));
        }
        match self.length {
            Length::Absent => front.push_literal(b"\r\n"),
            Length::Known(len) => {
                front.push_literal(format!("Content-Length: {len}\r\n\r\n").as_bytes());
            }
            Length::Measured => front.push_literal(b"Content-Length: "),
        }
        front
    }

    /// The fields, with those that HTTP/2 has for the first line (RFC 9113 section 8.3.1). Host becomes
    /// `:authority`.
    ///
    /// Parts with slots come in the order of HTTP/1.1, so that random numbers are drawn in the same order in
    /// every protocol: the path, the host, fields, those about the connection. Parts after the path must not
    /// matter to [`render_path`](crate::RequestTemplate::render_path).
    pub(crate) fn fields(&self) -> Vec<HeadField> {
        let field = |name: &str, value: FieldText| HeadField {
            name: name.to_ascii_lowercase(),
            value,
            of_connection: false,
            only_with_cookies: false,
        };
        let text = |name: &str, value: Template| field(name, FieldText::Template(value));
        let literal = |name: &str, value: &str| text(name, Template::literal(value.as_bytes()));
        let mut fields = vec![
            literal(":method", &self.spec.method),
            literal(":scheme", self.spec.scheme.as_str()),
            text(":path", self.target.clone()),
        ];
        match self.sent().find(|header| header.is("host")) {
            Some(host) => fields.push(text(":authority", host.value.clone())),
            None if self.given("host") => {}
            None => fields.push(text(":authority", self.authority())),
        }
        if !self.given("user-agent") {
            fields.push(literal("user-agent", USER_AGENT));
        }
        let regular = self.sent().filter(|header| !header.is("host") && !header.is_of_connection());
        fields.extend(regular.map(|header| text(header.name, header.value.clone())));
        let of_connection = self.sent().filter(|header| header.is_of_connection());
        fields.extend(
            of_connection
                .map(|header| HeadField { of_connection: true, ..text(header.name, header.value.clone()) }),
        );
        if !self.spec.keep_alive && !self.given("connection") {
            fields.push(HeadField { of_connection: true, ..literal("connection", "close") });
        }
        match self.length {
            Length::Absent => {}
            Length::Known(len) => fields.push(literal("content-length", &len.to_string())),
            Length::Measured => fields.push(field("content-length", FieldText::Length)),
        }
        // The cookie field goes last, so that a block without it has the same variable values in front.
        if self.spec.cookies && !self.given("cookie") {
            let mut value = Template::default();
            value.push_slot(Slot::Cookies(CookieForm::Value));
            fields.push(HeadField { only_with_cookies: true, ..text("cookie", value) });
        }
        fields
    }

    /// The proxy that is told the whole URL, if there is one.
    fn forward(&self) -> Option<&'a ForwardProxy> {
        self.spec.forward.as_ref().filter(|_| self.spec.scheme == Scheme::Http)
    }

    fn authority(&self) -> Template {
        let mut authority = Template::default();
        if self.spec.authority_slot {
            authority.push_slot(Slot::Authority);
        } else {
            authority.push_literal(self.spec.authority.as_bytes());
        }
        authority
    }

    fn given(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.is(name))
    }

    /// The headers that are sent as they were given.
    fn sent(&self) -> impl Iterator<Item = &Header<'a>> {
        self.headers.iter().filter(|header| !header.value.is_empty() && !header.is("content-length"))
    }
}

impl HeadField {
    /// Random numbers that its value takes.
    pub(crate) fn draws(&self) -> u32 {
        match &self.value {
            FieldText::Template(text) => text.draws(),
            FieldText::Length => 0,
        }
    }

    /// Returns `true` if no table of any hop may keep the field (RFC 7541 section 7.1.3).
    pub(crate) fn never_indexed(&self) -> bool {
        matches!(self.name.as_str(), "authorization" | "proxy-authorization")
            || matches!(&self.value, FieldText::Template(text) if text.has_secret() || text.uses_cookies())
    }
}

struct Header<'a> {
    name: &'a str,
    value: Template,
}

impl Header<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// RFC 9113 section 8.2.2: not allowed in HTTP/2, except for a TE that says `trailers`.
    fn is_of_connection(&self) -> bool {
        let trailers = || self.value.is_static() && self.value.literals().eq_ignore_ascii_case(b"trailers");
        ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]
            .iter()
            .any(|name| self.is(name))
            || (self.is("te") && !trailers())
    }
}

fn push_header(front: &mut Template, name: &str, value: &Template) {
    front.push_literal(name.as_bytes());
    front.push_literal(b": ");
    front.push(value);
    front.push_literal(b"\r\n");
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

/// The framing of a request is ours: a second Host or a foreign length would make the server wait or guess.
fn check_framing(headers: &[Header<'_>]) -> Result<(), TemplateError> {
    if headers.iter().any(|header| header.is("transfer-encoding") && !header.value.is_empty()) {
        return Err(TemplateError::new("the header `Transfer-Encoding` cannot be set")
            .with_hint("bodies are sent with a content-length"));
    }
    for name in ["host", "content-length"] {
        if headers.iter().filter(|header| header.is(name) && !header.value.is_empty()).count() > 1 {
            return Err(TemplateError::new(format!("the header `{name}` is given twice")));
        }
    }
    Ok(())
}

fn target(spec: &RequestSpec, scope: &Scope<'_>) -> Result<Template, TemplateError> {
    check_method(&spec.method)?;
    let target = Template::parse_target(spec.target.as_bytes(), scope).map_err(|error| error.at("URL"))?;
    let visible = |byte: &u8| byte.is_ascii_graphic();
    if let Some(byte) = target.literals().iter().find(|&byte| !visible(byte)) {
        return Err(TemplateError::new(format!("`{}` is not allowed in a URL", byte.escape_ascii()))
            .with_hint(format!("write %{byte:02X}")));
    }
    let asterisk = spec.target == "*" && spec.method == "OPTIONS";
    if !target.starts_with_slash() && !asterisk {
        return Err(TemplateError::new(format!("the path `{}` does not start with `/`", spec.target)));
    }
    if let Some(byte) = spec.authority.bytes().find(|byte| !visible(byte)) {
        return Err(TemplateError::new(format!("`{}` is not allowed in a host", byte.escape_ascii())));
    }
    Ok(target)
}

fn length(
    spec: &RequestSpec,
    headers: &[Header<'_>],
    body_len: Option<usize>,
) -> Result<Length, TemplateError> {
    let mut given = headers.iter().filter(|header| header.is("content-length"));
    let first = given.next();
    let has_body = spec.body != Body::None;
    let removed = first.is_some_and(|header| header.value.is_empty()) && !has_body;
    if let Some(header) = first.filter(|header| !header.value.is_empty()) {
        // A correct one is harmless (people paste it from a capture); a wrong one makes the server wait.
        let expected = body_len.map(|len| len.to_string());
        let is_true = header.value.is_static()
            && expected.as_deref().is_some_and(|len| len.as_bytes() == header.value.literals());
        if !is_true {
            return Err(TemplateError::new("the header `Content-Length` does not match the body")
                .with_hint("leave it out: it is computed"));
        }
    }
    // RFC 9110 section 8.6: methods that define a meaning for content say so even when there is none.
    let expects_body = matches!(spec.method.as_str(), "POST" | "PUT" | "PATCH");
    if removed || !(has_body || expects_body || first.is_some()) {
        return Ok(Length::Absent);
    }
    Ok(body_len.map_or(Length::Measured, Length::Known))
}
