//! Parts of a plan file, as importers put them together.

use plimsoll_document::{Document, Field, PauseSpec, RequestStep, ScenarioSpec, StepSpec, TargetSpec, Text};

use crate::amount;
use crate::findings::Findings;

/// A text that is there.
pub fn text(text: impl Into<String>) -> Field<Text> {
    Field::new(Text(text.into()))
}

/// `text`, written so that a template gives it back as it is.
pub fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

/// A template that always gives `literal`.
pub fn literal(literal: &str) -> Field<Text> {
    text(escaped(literal))
}

/// A step that sends `method` to `url`, which is a template.
pub fn request(method: &str, url: impl Into<String>) -> StepSpec {
    RequestStep::new(method, text(url)).into()
}

/// Returns `true` if `text` is a token of RFC 9110 section 5.6.2, so that it can be sent as a method or a
/// header name.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Adds a header; `value` is a template. A name that is there already gets both values in one field (RFC 9110
/// section 5.3; cookies by RFC 6265 section 5.4).
pub fn header(step: &mut StepSpec, name: &str, value: &str, at: &str, findings: &mut Findings) {
    if !is_token(name) {
        findings.problem(at, format!("`{name}` is not the name of a header"));
        return;
    }
    if value.contains(['\r', '\n', '\0']) {
        findings.problem(at, format!("the header `{name}` has a line break in its value"));
        return;
    }
    if value.is_empty() {
        findings.note(at, name, "a header without a value cannot be sent: it is left out");
        return;
    }
    let headers = &mut step.request_mut().headers;
    let known = headers.0.iter_mut().find(|(known, ..)| known.as_str().eq_ignore_ascii_case(name));
    let Some((_, _, Field::Given(before, _))) = known else {
        headers.push(name, text(value));
        return;
    };
    let between = if name.eq_ignore_ascii_case("cookie") { "; " } else { ", " };
    before.0.push_str(between);
    before.0.push_str(value);
    findings.note(
        at,
        name,
        format!("the header is there twice: its values go into one field, with `{between}`"),
    );
}

/// Adds to a list of settings.
pub(crate) fn add(list: &mut Field<Vec<Field<Text>>>, value: &str) {
    match list {
        Field::Given(values, _) => values.push(text(value)),
        _ => *list = Field::new(vec![text(value)]),
    }
}

/// A think time of this many nanoseconds.
pub(crate) fn think(nanos: u64) -> Field<PauseSpec> {
    let mut pause = PauseSpec::default();
    pause.fixed = text(amount::time(nanos));
    Field::new(pause)
}

/// A scenario of these steps.
pub fn scenario(name: &str, steps: Vec<StepSpec>) -> ScenarioSpec {
    let mut scenario = ScenarioSpec::default();
    scenario.name = text(name);
    scenario.steps = steps.into_iter().map(Field::new).collect();
    scenario
}

/// An absolute URL of the web, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `http://host:port`, scheme and host in lower case.
    pub origin: String,
    /// `host:port`.
    pub authority: String,
    /// `user:password`, if there is one; percent-encoded.
    pub user: Option<String>,
    /// Path and query, from the `/` on.
    pub path: String,
}

impl Url {
    /// Takes a URL apart; the fragment, which is never sent, is left out. An error is one readable line.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| "it has no scheme".to_owned())?;
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(format!("the scheme `{scheme}` is not http or https"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()), authority),
            None => (None, authority),
        };
        if authority.is_empty() || authority.starts_with(':') {
            return Err("it has no host".to_owned());
        }
        if let Some(wrong) = rest.chars().find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
            return Err(format!("`{}` has to be percent-encoded", wrong.escape_debug()));
        }
        let authority = authority.to_ascii_lowercase();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { origin: format!("{scheme}://{authority}"), authority, user, path })
    }
}

/// The one target of a document, if all its requests have the same origin: then steps have paths only.
/// `requests` are the steps with the origins of their URLs; steps have paths so far.
pub(crate) fn place(document: &mut Document, mut requests: Vec<(String, StepSpec)>) -> Vec<StepSpec> {
    let first = requests.first().map(|(origin, _)| origin.clone()).unwrap_or_default();
    if requests.iter().all(|(origin, _)| *origin == first) {
        if !requests.is_empty() {
            let mut target = TargetSpec::default();
            target.url = text(first);
            document.targets.push("server", target);
        }
    } else {
        for (origin, step) in &mut requests {
            if let Some(url) = step.request_mut().address.url_mut() {
                url.0.insert_str(0, origin);
            }
        }
    }
    requests.into_iter().map(|(_, step)| step).collect()
}

/// Percent-encodes everything but unreserved characters (RFC 3986 section 2.3) and those in `but`.
pub(crate) fn percent_encoded(text: &str, but: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || but.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Takes percent-encoding away.
pub(crate) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        match (first, number.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                bytes = &rest[2..];
            }
            _ => {
                decoded.push(*first);
                bytes = rest;
            }
        }
    }
    decoded
}

/// A form as `application/x-www-form-urlencoded` writes it.
pub(crate) fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let encoded = |text: &str| percent_encoded(text, b"*").replace("%20", "+").replace('~', "%7E");
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, origin, path) in [
            ("http://a", "http://a", "/"),
            ("HTTPS://Host:8443/x?y#z", "https://host:8443", "/x?y"),
            ("http://[::1]:80?q", "http://[::1]:80", "/?q"),
            ("http://me:pw@a/@b", "http://a", "/@b"),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!((parsed.origin.as_str(), parsed.path.as_str()), (origin, path), "{url}");
        }
        assert_eq!(Url::parse("http://me:pw@a/").unwrap().user.as_deref(), Some("me:pw"));
        for (url, wrong) in [
            ("a/b", "it has no scheme"),
            ("ftp://a", "the scheme `ftp` is not http or https"),
            ("http://", "it has no host"),
            ("http://:80/", "it has no host"),
            ("http://a/b c", "` ` has to be percent-encoded"),
            ("http://a/ä", "`ä` has to be percent-encoded"),
        ] {
            assert_eq!(Url::parse(url).unwrap_err(), wrong, "{url}");
        }
    }

    #[test]
    fn forms_are_encoded_as_browsers_do() {
        assert_eq!(form([("a b", "1&2"), ("ä", "~*-._")]), "a+b=1%262&%C3%A4=%7E*-._");
    }

    #[test]
    fn one_origin_becomes_the_target() {
        let steps = |origins: &[&str]| {
            let mut document = Document::default();
            let requests = origins.iter().map(|&o| (o.to_owned(), request("GET", "/x"))).collect();
            let steps = place(&mut document, requests);
            (document.targets.0.len(), steps[0].request().unwrap().address.get.get().unwrap().0.clone())
        };
        assert_eq!(steps(&["http://a", "http://a"]), (1, "/x".to_owned()));
        assert_eq!(steps(&["http://a", "http://b"]), (0, "http://a/x".to_owned()));
    }

    #[test]
    fn percent_encoding_is_taken_away() {
        assert_eq!(percent_decoded("a%40b%2"), b"a@b%2");
        assert_eq!(percent_decoded("%zz%"), b"%zz%");
    }
}
