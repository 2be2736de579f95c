//! Secrets by their names, and their replacement.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Replacement for a secret.
pub const HIDDEN: &str = "***";

/// Names of secrets, in lower case, without `-` and `_`. Mostly those that Sentry's data scrubber, Rails'
/// `filter_parameters` and the convention of OpenTelemetry for `url.query` have.
const NAMES: [&str; 22] = [
    "auth",
    "authorization",
    "awsaccesskeyid",
    "bearer",
    "clientassertion",
    "code",
    "cookie",
    "csrf",
    "jsessionid",
    "jwt",
    "key",
    "otp",
    "pass",
    "phpsessid",
    "proxyauthorization",
    "pwd",
    "samlresponse",
    "session",
    "sessionid",
    "setcookie",
    "sig",
    "xsrf",
];

/// Ends of such names, as in `access_token`, `X-Amz-Signature` and `clientSecret`.
const ENDS: [&str; 11] = [
    "accesskey",
    "apikey",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signature",
    "token",
];

/// The longest name that is examined, in bytes.
const LONGEST_NAME: usize = 128;

/// Which names are those of secrets: the known ones, and more that were given. Case, `-` and `_` make no
/// difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    /// In lower case, without `-` and `_`.
    more: Arc<[String]>,
}

impl Redaction {
    /// The known names and `more`.
    pub fn new<'n>(more: impl IntoIterator<Item = &'n str>) -> Self {
        Self { more: more.into_iter().map(plain).collect() }
    }

    /// Returns `true` if the value of this query parameter, header or field of a body is a secret. Of
    /// `user[password]` the last part counts.
    pub fn hides(&self, name: &str) -> bool {
        if name.len() > LONGEST_NAME {
            return false;
        }
        let name = name.replace("%5B", "[").replace("%5b", "[").replace("%5D", "]").replace("%5d", "]");
        let parts = || name.split(['[', ']', '.']).filter(|part| !part.is_empty());
        let last = parts().next_back().map(plain).unwrap_or_default();
        NAMES.contains(&last.as_str())
            || ENDS.iter().any(|end| last.ends_with(end))
            || self.more.iter().any(|more| *more == last || *more == plain(&name))
    }

    /// Returns `true` if the value of this header is a secret.
    pub fn hides_header(&self, name: &str) -> bool {
        is_secret_header(name) || self.hides(name)
    }

    /// A header `Name: value` without its secret: the whole value, or the secret part of a URL.
    pub fn in_header<'t>(&self, line: &'t str) -> Cow<'t, str> {
        // The name of a field of HTTP/2 may begin with a colon.
        match line.char_indices().skip(1).find(|(_, c)| *c == ':') {
            // A request line may have a colon, too.
            Some((at, _)) if !line[..at].contains(' ') => match line[at + 1..].trim() {
                value if !value.is_empty() && self.hides_header(&line[..at]) => {
                    format!("{}: {HIDDEN}", &line[..at]).into()
                }
                _ => self.in_text(line),
            },
            _ => self.in_text(line),
        }
    }

    /// A text without the users and the secret parameters of the URLs in it.
    pub fn in_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Vec::new();
        self.find_in_urls(text.as_bytes(), &mut found);
        replaced(text, found)
    }

    /// The content of a request without secrets: those of URLs, members of JSON, and fields of a form. The
    /// content may be cut.
    pub fn in_body<'t>(&self, body: &'t str) -> Cow<'t, str> {
        replaced(body, self.find(body))
    }

    /// The places of users and secret parameters of URLs in a text: ranges of bytes, in ascending order.
    pub fn places_in_urls(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.find_in_urls(text.as_bytes(), &mut found);
        sorted(found).into_iter().map(|secret| secret.place).collect()
    }

    /// The places of secrets in a text, as [`in_body`](Self::in_body) replaces them: ranges of bytes, in
    /// ascending order.
    pub fn places(&self, body: &str) -> Vec<Range<usize>> {
        sorted(self.find(body)).into_iter().map(|secret| secret.place).collect()
    }

    fn find(&self, body: &str) -> Vec<Secret> {
        let mut found = Vec::new();
        let bytes = body.as_bytes();
        self.find_in_urls(bytes, &mut found);
        self.find_members(bytes, &mut found);
        self.find_fields(body, &mut found);
        found
    }

    /// Users in front of a host, and parameters behind `?`, `&`, `#` and `;`.
    fn find_in_urls(&self, text: &[u8], found: &mut Vec<Secret>) {
        let end_of = |from: usize, ends: &dyn Fn(u8) -> bool| {
            text[from..].iter().position(|&byte| ends(byte)).map_or(text.len(), |length| from + length)
        };
        for at in 0..text.len() {
            match text[at] {
                b':' if text[at..].starts_with(b"://") => {
                    let from = at + 3;
                    let end = end_of(from, &|byte| b"/?#".contains(&byte) || ends_url(byte));
                    if let Some(user) = text[from..end].iter().rposition(|&byte| byte == b'@') {
                        found.extend(Secret::of(text, from..from + user));
                    }
                }
                b'?' | b'&' | b'#' | b';' => {
                    let equals = end_of(at + 1, &|byte| !is_in_name(byte));
                    if text.get(equals) != Some(&b'=') || !self.hides_bytes(&text[at + 1..equals]) {
                        continue;
                    }
                    let end = end_of(equals + 1, &|byte| b"&#".contains(&byte) || ends_url(byte));
                    found.extend(Secret::of(text, equals + 1..end));
                }
                _ => {}
            }
        }
    }

    /// Values of members of JSON, wherever there are some.
    fn find_members(&self, text: &[u8], found: &mut Vec<Secret>) {
        let mut at = 0;
        // Any quote may begin a name: in truncated text, or text that is not JSON, quotes do not pair.
        while let Some(quote) = text[at..].iter().position(|&byte| byte == b'"') {
            let name = at + quote + 1;
            at = name;
            let longest = &text[name..text.len().min(name + LONGEST_NAME + 1)];
            let Some(length) = longest.iter().position(|&byte| byte == b'"') else { continue };
            let end = name + length;
            let colon = skip_space(text, end + 1);
            if text.get(colon) != Some(&b':') || !self.hides_bytes(&text[name..end]) {
                continue;
            }
            let from = skip_space(text, colon + 1);
            match text.get(from) {
                Some(b'"') => {
                    let end = end_of_string(text, from + 1);
                    found.extend(Secret::of(text, from + 1..end));
                    at = (end + 1).min(text.len());
                }
                // The header is missing, or a template gives it.
                None | Some(b'$' | b'n') => {}
                Some(_) => {
                    at = end_of_value(text, from);
                    found.extend(Secret::of(text, from..at).map(|secret| Secret { bare: true, ..secret }));
                }
            }
        }
    }

    /// Values of a form: `name=value&name=value`, and nothing in front of it.
    fn find_fields(&self, text: &str, found: &mut Vec<Secret>) {
        let mut from = 0;
        for field in text.split('&') {
            let Some((name, value)) = field.split_once('=') else { return };
            if name.is_empty() || !name.bytes().all(is_in_name) {
                return;
            }
            if self.hides(name) {
                let start = from + name.len() + 1;
                let value = value.trim_end_matches(['\r', '\n']);
                found.extend(Secret::of(text.as_bytes(), start..start + value.len()));
            }
            from += field.len() + 1;
        }
    }

    fn hides_bytes(&self, name: &[u8]) -> bool {
        !name.is_empty() && std::str::from_utf8(name).is_ok_and(|name| self.hides(name))
    }
}

/// Returns `true` if the value of this header is a credential, which must not appear in names, messages or
/// hashes.
pub fn is_secret_header(name: &str) -> bool {
    ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"]
        .iter()
        .any(|secret| secret.eq_ignore_ascii_case(name))
}

/// A secret in a text.
#[derive(Debug)]
struct Secret {
    place: Range<usize>,
    /// `true` if there are no quotes around the secret: it is a value of JSON, and no string.
    bare: bool,
}

impl Secret {
    /// The secret at a place, unless it is empty, already replaced, or only a slot of a template.
    fn of(text: &[u8], place: Range<usize>) -> Option<Self> {
        let value = &text[place.clone()];
        let is_slot =
            value.starts_with(b"${") && value.iter().position(|&byte| byte == b'}') == Some(value.len() - 1);
        let is_hidden = value.is_empty() || value == HIDDEN.as_bytes();
        (!is_slot && !is_hidden).then_some(Self { place, bare: false })
    }
}

/// In the order of their places; one within another is left out.
fn sorted(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_by_key(|secret| (secret.place.start, std::cmp::Reverse(secret.place.end)));
    let mut end = 0;
    found.retain(|secret| {
        let is_apart = secret.place.start >= end;
        end = end.max(secret.place.end);
        is_apart
    });
    found
}

fn replaced(text: &str, found: Vec<Secret>) -> Cow<'_, str> {
    if found.is_empty() {
        return text.into();
    }
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for Secret { place, bare } in sorted(found) {
        let quote = if bare { "\"" } else { "" };
        out.push_str(&text[from..place.start]);
        out.extend([quote, HIDDEN, quote]);
        from = place.end;
    }
    out.push_str(&text[from..]);
    out.into()
}

/// As names are compared.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

const fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'[' | b']' | b'%' | b'$' | b'~')
}

/// Returns `true` for a byte that cannot stand in a URL (RFC 3986), and so ends it.
const fn ends_url(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>')
}

fn skip_space(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().position(|byte| !byte.is_ascii_whitespace()).map_or(text.len(), |length| from + length)
}

/// The closing quote of a string that begins behind its opening one; the end of the text if it is cut.
fn end_of_string(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the end of a JSON value that is not a string.
fn end_of_value(text: &[u8], from: usize) -> usize {
    let (mut depth, mut at) = (0_usize, from);
    while at < text.len() {
        match text[at] {
            b'"' => at = end_of_string(text, at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_secrets_are_known_however_they_are_written() {
        let redaction = Redaction::new(["pin", "Trace-Id", "deep.member"]);
        for name in [
            "token",
            "access_token",
            "id_token",
            "refreshToken",
            "API_KEY",
            "apikey",
            "x-api-key",
            "key",
            "secret",
            "client_secret",
            "password",
            "Passwd",
            "pwd",
            "sig",
            "signature",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "X-Amz-Security-Token",
            "AWSAccessKeyId",
            "auth",
            "code",
            "session",
            "user[password]",
            "user%5Bpassword%5D",
            "login.password",
            "X-Custom-Secret",
            "PIN",
            "traceid",
            "trace_id",
            "deep.member",
        ] {
            assert!(redaction.hides(name), "{name}");
        }
        for name in ["", "keyboard", "monkey", "Idempotency-Key", "codec", "author", "page", "tokens", "pins"]
        {
            assert!(!redaction.hides(name), "{name}");
        }
        assert!(!Redaction::default().hides("pin") && Redaction::default().hides_header("Cookie"));
    }

    #[test]
    fn urls_keep_everything_but_their_secrets() {
        let redaction = Redaction::default();
        for (text, shown) in [
            (
                "http://a/?token=x1&b=2&Sig=x2#access_token=x3",
                "http://a/?token=***&b=2&Sig=***#access_token=***",
            ),
            ("GET /a?b=1&api_key=x HTTP/1.1", "GET /a?b=1&api_key=*** HTTP/1.1"),
            ("a redirect to `http://u:p@h:1/?code=x`", "a redirect to `http://***@h:1/?code=***`"),
            ("/a;jsessionid=x?b=1", "/a;jsessionid=***"),
            ("/?token=${token}&key=${env(KEY)}", "/?token=${token}&key=${env(KEY)}"),
            ("/?token=${a}x", "/?token=***"),
            ("/?token=&key", "/?token=&key"),
            ("/?token=***", "/?token=***"),
            ("http://a@b/c", "http://***@b/c"),
            ("mail@example.org: 1", "mail@example.org: 1"),
            ("/?ünï=1&token=ß", "/?ünï=1&token=***"),
        ] {
            assert_eq!(redaction.in_text(text), shown);
        }
        assert!(matches!(redaction.in_text("/?a=1"), Cow::Borrowed(_)));
    }

    #[test]
    fn headers_that_say_so_are_secrets() {
        let redaction = Redaction::new(["X-Mine"]);
        for (line, shown) in [
            ("X-Custom-Secret: x", "X-Custom-Secret: ***"),
            ("authorization:Bearer x", "authorization: ***"),
            ("x-mine: x", "x-mine: ***"),
            ("Cookie:", "Cookie:"),
            ("Location: http://h/?token=x", "Location: http://h/?token=***"),
            (":path: /?token=x", ":path: /?token=***"),
            ("Accept: */*", "Accept: */*"),
            ("GET /secret:x HTTP/1.1", "GET /secret:x HTTP/1.1"),
        ] {
            assert_eq!(redaction.in_header(line), shown);
        }
    }

    #[test]
    fn bodies_keep_everything_but_their_secrets() {
        let redaction = Redaction::new(["pin"]);
        for (body, shown) in [
            (r#"{"user":"a","password":"x\"y"}"#, r#"{"user":"a","password":"***"}"#),
            (r#"{"pin" : 12, "b": 1}"#, r#"{"pin" : "***", "b": 1}"#),
            (r#"{"session":{"a":[1,"}"]},"b":1}"#, r#"{"session":"***","b":1}"#),
            (r#"{"token":null,"key":${key},"b":"${c}"}"#, r#"{"token":null,"key":${key},"b":"${c}"}"#),
            (r#"[{"token":true},{"token":"cut"#, r#"[{"token":"***"},{"token":"***"#),
            (r#"{"url":"http://h/?token=x"}"#, r#"{"url":"http://h/?token=***"}"#),
            ("user=a&password=my secret&x=1\n", "user=a&password=***&x=1\n"),
            ("password=x\n", "password=***\n"),
            ("1 = 2 & password=x", "1 = 2 & password=x"),
            (r#"it"s {"password":"x"}"#, r#"it"s {"password":"***"}"#),
            ("", ""),
        ] {
            assert_eq!(redaction.in_body(body), shown);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_looked_at_and_is_left_as_it_is_the_second_time(
            text in r#"([?&#;]?(token|a|"key"|é)[=:]?|[{}\["\\,: @]|://|\PC){0,24}"#,
        ) {
            let redaction = Redaction::default();
            let once = redaction.in_text(&text).into_owned();
            prop_assert_eq!(redaction.in_text(&once), once.as_str());
            for place in redaction.places(&text) {
                prop_assert!(text.get(place).is_some());
            }
            let _ = (redaction.in_header(&text), redaction.in_body(&text));
        }

        #[test]
        fn no_value_of_a_secret_is_left(value in "[a-z0-9%+/~.-]{1,20}zebra") {
            let redaction = Redaction::default();
            for text in [
                format!("http://h/a?b=1&token={value}&c=2"),
                format!("{{\"password\": \"{value}\", \"b\": 1}}"),
                format!("a=1&secret={value}"),
            ] {
                prop_assert!(!redaction.in_body(&text).contains("zebra"));
            }
        }
    }
}
