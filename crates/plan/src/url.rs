//! URLs as people type them.

use http::uri::{Authority, PathAndQuery};
use plimsoll_document::Problem;
use plimsoll_scenario::slot::slot_end;

use crate::protocol::{HTTP, Opening, Protocol, ProtocolRow, ServerUrl, rows};

/// One parsed URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// Scheme, which determines the protocol spoken with the host.
    pub scheme: &'static ProtocolRow,
    /// `host[:port]` as typed, without user and password.
    pub authority: String,
    /// Host name or IP literal, without brackets, in lower case.
    pub host: String,
    /// Port, the scheme's default if none was typed.
    pub port: u16,
    /// Path and query, starting with `/`; a template.
    pub target: String,
    /// `user:password` that the URL carried, decoded.
    pub user_info: Option<String>,
}

impl Url {
    /// Returns `true` if the scheme uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.scheme.is_secure
    }

    /// Returns `true` if scheme, host and port are the same, and connections begin alike.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
            && self.opening() == other.opening()
    }

    /// Looks for what its protocol does not have.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        (self.scheme.check)(&self.parts())
    }

    /// Returns what begins each connection to its server.
    pub(crate) fn opening(&self) -> Option<Opening> {
        match self.scheme.protocol {
            Some(Protocol::InTurn(protocol)) => (protocol.opening)(&self.parts()),
            _ => None,
        }
    }

    fn parts(&self) -> ServerUrl<'_> {
        ServerUrl { path: &self.target, user_info: self.user_info.as_deref() }
    }

    /// The URL without user and password, for names and messages.
    pub(crate) fn shown(&self) -> String {
        format!("{}://{}{}", self.scheme.scheme, self.authority, self.target)
    }

    /// Parses `text`; the text after the host first goes through `fill`. Without a scheme it is http. A
    /// fragment is dropped: it is for browsers and never sent.
    pub(crate) fn parse(
        text: &str,
        fill: impl FnOnce(&str) -> Result<String, Problem>,
    ) -> Result<Self, Problem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Problem::new("the URL is empty").with_hint(EXAMPLE));
        }
        let (scheme, rest) = scheme(text)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        // Resolvers take it for an address: 20 is 0.0.0.20.
        let is_number = !authority.is_empty() && authority.bytes().all(|byte| byte.is_ascii_digit());
        if rest.len() == text.len() && is_number {
            return Err(Problem::new(format!("`{}` is a number, not a URL", text.escape_debug())).with_hint(
                format!(
                    "a value that a flag can do without follows it after `=`, as in --probe={text}; {EXAMPLE}"
                ),
            ));
        }
        let (user_info, authority) = match authority.rsplit_once('@') {
            Some((user_info, authority)) => (Some(decoded(user_info)?), authority),
            None => (None, authority),
        };
        let (host, port) = host_and_port(authority, Some(scheme.port))?;
        Ok(Self {
            scheme,
            authority: authority.to_owned(),
            host,
            port,
            target: target(&fill(tail)?)?,
            user_info,
        })
    }
}

const EXAMPLE: &str = "write it like http://127.0.0.1:8080/path";

/// The scheme, and the rest.
fn scheme(text: &str) -> Result<(&'static ProtocolRow, &str), Problem> {
    let Some((scheme, rest)) = text.split_once("://") else {
        // `http:/host` would otherwise be a host named `http` without a port.
        if let Some((word @ ("http" | "https"), _)) = text.split_once(':') {
            return Err(Problem::new(format!("`{word}:` without `//` in the URL"))
                .with_hint(format!("write `{word}://`")));
        }
        return Ok((&HTTP, text));
    };
    let lower = scheme.to_ascii_lowercase();
    if let Some(known) = rows().find(|known| known.scheme == lower) {
        return Ok((known, rest));
    }
    match lower.as_str() {
        // A `://` further on belongs to a query: `host/?to=http://other`.
        _ if scheme.contains(['/', '?', '#']) => Ok((&HTTP, text)),
        other => {
            let near = plimsoll_core::suggest::closest(other, rows().map(|known| known.scheme));
            let hint = match near {
                Some(near) => format!("did you mean `{near}://`?"),
                None => "use http:// or https://".to_owned(),
            };
            Err(Problem::new(format!("unknown scheme `{}`", scheme.escape_debug())).with_hint(hint))
        }
    }
}

/// Host, without brackets and in lower case, and port of `host[:port]`. Without a `default`, there has to be
/// a port.
pub(crate) fn host_and_port(authority: &str, default: Option<u16>) -> Result<(String, u16), Problem> {
    let shown = authority.escape_debug();
    if authority.matches(':').count() > 1 && !authority.starts_with('[') {
        return Err(Problem::new("the host has more than one `:`")
            .with_hint("write an IPv6 address in brackets: http://[::1]:8080/"));
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(Problem::new("the URL has no host").with_hint(EXAMPLE));
    }
    if authority.contains("${") {
        return Err(Problem::new(format!("`{shown}`: a template cannot stand for the host or the port"))
            .with_hint("give several URLs to share the load between hosts"));
    }
    if !authority.is_ascii() {
        return Err(Problem::new(format!("the host `{shown}` is not ASCII"))
            .with_hint("write an international name in its encoded form (xn--…)"));
    }
    let invalid = || Problem::new(format!("`{shown}` is not a host")).with_hint(EXAMPLE);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    // The `http` crate has the last word on what may stand in a host.
    let parsed: Authority = host.parse().map_err(|_| invalid())?;
    let bare = match parsed.host().strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(literal) => {
            literal
                .parse::<core::net::Ipv6Addr>()
                .map_err(|_| Problem::new(format!("`{}` is not an IPv6 address", literal.escape_debug())))?;
            literal
        }
        None => parsed.host(),
    };
    if bare.is_empty() || bare.contains(['$', '{', '}', '[', ']', '%']) {
        return Err(invalid());
    }
    let port = match port {
        None => default.ok_or_else(|| Problem::new(format!("`{bare}` has no port")).with_hint(EXAMPLE))?,
        Some(port) => parse_port(port).ok_or_else(|| {
            // Not quoted: in a URL whose password contains a `/`, it is the start of the password.
            Problem::new(format!("the port of `{bare}` is not a number from 1 to 65535")).with_hint(EXAMPLE)
        })?,
    };
    Ok((bare.to_ascii_lowercase(), port))
}

/// A port that can be connected to.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|&port| port != 0)
}

/// Path and query of `tail`, which is empty or starts with `/`, `?` or `#`. Slots are left as they are.
pub(crate) fn target(tail: &str) -> Result<String, Problem> {
    let mut target = String::new();
    // The same with a letter in place of every slot: `${…}` is not legal in a URL.
    let mut plain = String::new();
    if !tail.starts_with('/') {
        target.push('/');
        plain.push('/');
    }
    let mut rest = tail;
    while !rest.is_empty() {
        if let Some(slot) = slot_at_start(rest) {
            target.push_str(slot);
            plain.push('x');
            rest = &rest[slot.len()..];
            continue;
        }
        let mut characters = rest.chars();
        let Some(character) = characters.next().filter(|&character| character != '#') else { break };
        rest = characters.as_str();
        // RFC 3987 section 3.1: characters beyond ASCII become the percent-encoded bytes of their UTF-8.
        if character.is_ascii() {
            target.push(character);
            plain.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                target.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    if let Some(bad) = plain.chars().find(|&c| c == ' ' || c.is_control()) {
        return Err(Problem::new(format!("`{}` is not allowed in a URL", bad.escape_debug()))
            .with_hint(format!("write %{:02X}", bad as u32)));
    }
    plain.parse::<PathAndQuery>().map_err(|error| {
        Problem::new(format!("the path of the URL is not valid: {error}"))
            .with_hint("percent-encode characters that a URL cannot have, such as %3C for <")
    })?;
    Ok(target)
}

/// `${…}` at the start of a text. One that is not closed takes all of it: the template's own check names it.
fn slot_at_start(text: &str) -> Option<&str> {
    if let Some(literal) = text.strip_prefix("$${") {
        return Some(&text[..text.len() - literal.len()]);
    }
    let inner = text.strip_prefix("${")?;
    let end = slot_end(inner.as_bytes()).map_or(text.len(), |end| end + "${}".len());
    text.get(..end)
}

/// Percent-decodes user and password. Text that cannot be decoded is not shown: it may be the password.
pub(crate) fn decoded(text: &str) -> Result<String, Problem> {
    let invalid = || Problem::new("the user and password in the URL are not percent-encoded correctly");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(invalid());
        };
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Url, Problem> {
        Url::parse(text, |tail| Ok(tail.to_owned()))
    }

    fn parts(text: &str) -> (bool, String, u16, String, String) {
        let url = parse(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
        (url.is_secure(), url.host.clone(), url.port, url.authority.clone(), url.target)
    }

    /// The value of a flag that can do without one, behind a space: the load went to 0.0.0.20.
    #[test]
    fn a_number_is_no_host() {
        for text in ["20", " 20 ", "100/s", "8080?a"] {
            let problem = parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert_eq!(problem.message, format!("`{}` is a number, not a URL", text.trim()));
            let hint = problem.hint.unwrap_or_default();
            assert!(hint.contains(&format!("as in --probe={};", text.trim())), "{hint}");
        }
        for text in ["http://20/", "20.test", "2a", "20:80", "127.0.0.1"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn urls_that_are_understood() {
        for (text, https, host, port, authority, target) in [
            ("http://a/", false, "a", 80, "a", "/"),
            ("http://a", false, "a", 80, "a", "/"),
            ("HTTPS://Example.Test/x?y=1#frag", true, "example.test", 443, "Example.Test", "/x?y=1"),
            ("127.0.0.1:8080/", false, "127.0.0.1", 8080, "127.0.0.1:8080", "/"),
            ("localhost", false, "localhost", 80, "localhost", "/"),
            ("localhost:3000?q", false, "localhost", 3000, "localhost:3000", "/?q"),
            ("http://[::1]:8080/a", false, "::1", 8080, "[::1]:8080", "/a"),
            ("https://[fe80::1]", true, "fe80::1", 443, "[fe80::1]", "/"),
            ("http://a:80/", false, "a", 80, "a:80", "/"),
            (
                "http://a/${uuid}/b?n=${random_int(1,9)}",
                false,
                "a",
                80,
                "a",
                "/${uuid}/b?n=${random_int(1,9)}",
            ),
            ("http://a/${pick(a b, ü)}#x", false, "a", 80, "a", "/${pick(a b, ü)}"),
            ("http://a/ü?ö", false, "a", 80, "a", "/%C3%BC?%C3%B6"),
            ("a/?to=http://b/", false, "a", 80, "a", "/?to=http://b/"),
            ("http://a_b.svc.local/", false, "a_b.svc.local", 80, "a_b.svc.local", "/"),
        ] {
            let expected = (https, host.to_owned(), port, authority.to_owned(), target.to_owned());
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn user_and_password_are_taken_out_and_decoded() {
        let url = parse("http://me:p%40ss%3A@host:81/x").unwrap();
        assert_eq!(url.user_info.as_deref(), Some("me:p@ss:"));
        assert_eq!(url.authority, "host:81");
        assert_eq!(url.shown(), "http://host:81/x");
        for bad in [
            "http://me:topsecret%zz@host/",
            "http://me:topsecret%ff@host/",
            "http://me:topsecret@/",
            "http://me:topsecret/x@host/",
        ] {
            let problem = parse(bad).err().unwrap();
            assert!(!format!("{problem:?}").contains("topsecret"), "{problem:?}");
        }
    }

    #[test]
    fn only_what_follows_the_host_is_filled_in() {
        let url = Url::parse("http://ID:ID@ID.test/ID#ID", |tail| Ok(tail.replace("ID", "${uuid}"))).unwrap();
        assert_eq!(url.shown(), "http://ID.test/${uuid}");
        assert_eq!(url.user_info.as_deref(), Some("ID:ID"));
        assert!(Url::parse("http://a/", |_| Err(Problem::new("no"))).is_err());
    }

    #[test]
    fn urls_that_are_refused() {
        for (text, message) in [
            ("", "the URL is empty"),
            ("htp://a/", "unknown scheme `htp`"),
            ("ftp://a/", "unknown scheme `ftp`"),
            ("http:/a/", "`http:` without `//` in the URL"),
            ("http:///x", "the URL has no host"),
            ("http://:80/", "the URL has no host"),
            ("http://a:0/", "the port of `a` is not a number from 1 to 65535"),
            ("http://a:/", "the port of `a` is not a number from 1 to 65535"),
            ("http://a:99999/", "the port of `a` is not a number from 1 to 65535"),
            ("http://a:+80/", "the port of `a` is not a number from 1 to 65535"),
            ("http://::1/", "the host has more than one `:`"),
            ("http://[::zz]/", "`::zz` is not an IPv6 address"),
            ("http://[1.2.3.4]/", "`1.2.3.4` is not an IPv6 address"),
            ("http://a b/", "`a b` is not a host"),
            ("http://${worker}.a/", "`${worker}.a`: a template cannot stand for the host or the port"),
            ("http://ü.test/", "the host `ü.test` is not ASCII"),
            ("http://a/b c", "` ` is not allowed in a URL"),
            ("http://a/\u{7}", "`\\u{7}` is not allowed in a URL"),
            ("http://a/<b>", "the path of the URL is not valid: invalid uri character"),
        ] {
            let problem = parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert_eq!(problem.message, message, "{text}");
        }
    }
}
