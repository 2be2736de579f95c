//! Locations of redirects: any URI reference, resolved as browsers do.

use std::borrow::Cow;

use percent_encoding::{CONTROLS, percent_encode};
use url::{Position, Url};

use crate::reference::{Origin, Resource};

/// The resource that a redirect leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// `true` if the scheme is https, `false` if it is http.
    pub https: bool,
    /// `[user[:password]@]host[:port]`, without a port that is the scheme's own.
    pub authority: String,
    /// Path and query of the request target, percent-encoded.
    pub path: String,
    /// `true` if scheme, host and port are those of the resource that has redirected.
    pub same_origin: bool,
}

impl Location {
    /// Resolves the value of a `location` field (RFC 9110 section 10.2.2) against the resource that was
    /// requested. Every form of RFC 3986 section 4.2 is understood. A fragment is dropped, and characters
    /// that no request target can have are percent-encoded, by the rules of WHATWG URL; bytes that are not
    /// ASCII are encoded as they are, whatever the character set, as curl and Chromium do.
    ///
    /// Returns `None` for a reference that leads to no resource of http or https.
    pub fn resolve(location: &[u8], base: Resource<'_>) -> Option<Self> {
        let mut start = Vec::new();
        base.origin.write(&mut start);
        // The target of `OPTIONS *` and the key of a cache are no paths.
        start.extend_from_slice(if base.path.starts_with(b"/") { base.path } else { b"/" });
        let base = Url::parse(&ascii(&start)).ok()?;
        let url = base.join(&ascii(location)).ok()?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let no_user = url.username().is_empty() && url.password().is_none();
        Some(Self {
            https: url.scheme() == "https",
            authority: url[Position::BeforeUsername..Position::BeforePath].to_owned(),
            path: url[Position::BeforePath..Position::AfterQuery].to_owned(),
            same_origin: no_user && url.origin() == base.origin(),
        })
    }

    /// Scheme and authority.
    pub fn origin(&self) -> Origin<'_> {
        Origin { https: self.https, authority: self.authority.as_bytes() }
    }
}

/// The text with all bytes that are not ASCII percent-encoded, and control characters but those that a URL
/// loses anyway.
fn ascii(text: &[u8]) -> Cow<'_, str> {
    const LOST: &percent_encoding::AsciiSet = &CONTROLS.remove(b'\t').remove(b'\r').remove(b'\n');
    percent_encode(text, LOST).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from(location: &[u8], base: &'static str) -> Option<Location> {
        let (origin, path) = crate::reference::origin(base.as_bytes()).expect("a base");
        Location::resolve(location, Resource { origin, path })
    }

    fn shown(location: &[u8], base: &'static str) -> Option<String> {
        let Location { https, authority, path, .. } = from(location, base)?;
        Some(format!("{}://{authority}{path}", if https { "https" } else { "http" }))
    }

    #[test]
    fn the_examples_of_rfc_3986_section_5_4() {
        for (reference, url) in [
            // Section 5.4.1; `g:h` is below.
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            // Section 5.4.2.
            ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/./x", "http://a/b/c/g"),
            ("g#s/../x", "http://a/b/c/g"),
            // For parsers that are lenient, as browsers are.
            ("http:g", "http://a/b/c/g"),
        ] {
            assert_eq!(
                shown(reference.as_bytes(), "http://a/b/c/d;p?q").as_deref(),
                Some(url),
                "{reference}"
            );
        }
        assert_eq!(from(b"g:h", "http://a/b/c/d;p?q"), None);
    }

    #[test]
    fn whole_urls_and_characters_that_no_target_has() {
        for (reference, url) in [
            (&b"https://Host:443/x?y#z"[..], "https://host/x?y"),
            (b"HTTP://host:81", "http://host:81/"),
            (b"//[::1]:8080/x", "https://[::1]:8080/x"),
            (b"/la nded", "https://a.test:8443/la%20nded"),
            (b"/x?a=b c&d=\"e\"<f>", "https://a.test:8443/x?a=b%20c&d=%22e%22%3Cf%3E"),
            (b"/{a}|`^", "https://a.test:8443/%7Ba%7D|%60^"),
            // As they come: Latin-1 remains Latin-1, and UTF-8 remains UTF-8.
            (b"/\xe9", "https://a.test:8443/%E9"),
            ("/é".as_bytes(), "https://a.test:8443/%C3%A9"),
            (b"/a%20b%2F", "https://a.test:8443/a%20b%2F"),
            (b"  /x\t", "https://a.test:8443/x"),
            (b"/a\x01", "https://a.test:8443/a%01"),
            (b"\\x", "https://a.test:8443/x"),
            ("//ü.test/x".as_bytes(), "https://xn--tda.test/x"),
            (b"https://me:word@a.test:8443/", "https://me:word@a.test:8443/"),
        ] {
            assert_eq!(shown(reference, "https://a.test:8443/d/").as_deref(), Some(url), "{reference:?}");
        }
        for nowhere in ["mailto:a@b", "ftp://h/a", "http://", "//", "//h:99999/", "http://a b/"] {
            assert_eq!(from(nowhere.as_bytes(), "http://a/"), None, "{nowhere}");
        }
    }

    #[test]
    fn an_origin_is_the_same_however_it_is_written() {
        for (reference, same) in [
            ("/x", true),
            ("?x", true),
            ("//A.test", true),
            ("http://a.test:80/x", true),
            ("https://a.test/", false),
            ("http://a.test:81/", false),
            ("http://b.test/", false),
            // Refused where it is used.
            ("http://me@a.test/", false),
        ] {
            let location = from(reference.as_bytes(), "http://a.test/").expect("a resource");
            assert_eq!(location.same_origin, same, "{reference}");
        }
        assert!(from(b"/x", "http://a.test:80/").is_some_and(|location| location.same_origin));
        let base = Resource { origin: Origin { https: false, authority: b"a.test" }, path: b"*" };
        assert_eq!(Location::resolve(b"x", base).map(|location| location.path).as_deref(), Some("/x"));
    }

    proptest! {
        /// Nothing that a server says becomes a second line, or a target that is none.
        #[test]
        fn targets_are_legal(location in prop::collection::vec(any::<u8>(), 0..40), path in "/[ -~é]{0,20}") {
            let base = Resource { origin: Origin { https: false, authority: b"a" }, path: path.as_bytes() };
            if let Some(Location { authority, path, .. }) = Location::resolve(&location, base) {
                prop_assert!(path.starts_with('/'));
                prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{path}");
                prop_assert!(!authority.is_empty() && authority.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
