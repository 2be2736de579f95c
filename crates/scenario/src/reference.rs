//! References to resources, resolved against the request that they came in answer to (RFC 3986 section 5.2).

/// Appends the path and query that `reference` leads to from the resource `base` (path and query of a request
/// target; anything that does not start with `/`, such as `*`, counts as `/`).
///
/// All forms of RFC 3986 section 4.2 are understood, and absolute ones of http and https: `http://host/a`,
/// `//host/a`, `/a`, `a`, `../a`, `?a`, and the empty one, which is the resource itself. Scheme and authority
/// are dropped, and so is a fragment.
///
/// Returns false if the result would be no legal request target (origin form, RFC 9112 section 3.2.1): bytes
/// other than visible ASCII characters, another scheme, a URL without a host. The appended bytes then mean
/// nothing.
pub fn resolve(reference: &[u8], base: &[u8], into: &mut Vec<u8>) -> bool {
    let start = into.len();
    let (reference, _fragment) = cut(reference, |byte| byte == b'#');
    let (is_http, rest) = match scheme(reference) {
        None => (false, reference),
        Some((scheme, rest)) if is_http(scheme) => (true, rest),
        Some(_) => return false,
    };
    if let Some(rest) = rest.strip_prefix(b"//") {
        let (authority, rest) = cut(rest, |byte| matches!(byte, b'/' | b'?'));
        if !has_host(authority) {
            return false;
        }
        let (path, query) = cut(rest, |byte| byte == b'?');
        push_path(b"", if path.is_empty() { b"/" } else { path }, into);
        into.extend_from_slice(query);
    } else if is_http {
        // RFC 9110 section 4.2.1: an http URL without a host is invalid.
        return false;
    } else {
        let base = if base.starts_with(b"/") { base } else { b"/" };
        let (base_path, base_query) = cut(base, |byte| byte == b'?');
        let (path, query) = cut(rest, |byte| byte == b'?');
        if path.is_empty() {
            into.extend_from_slice(base_path);
            into.extend_from_slice(if query.is_empty() { base_query } else { query });
        } else if path.starts_with(b"/") {
            push_path(b"", path, into);
            into.extend_from_slice(query);
        } else {
            let end = base_path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            push_path(&base_path[..end], path, into);
            into.extend_from_slice(query);
        }
    }
    is_origin_form(&into[start..])
}

/// Scheme and authority, which identify a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// `true` if the scheme is https, `false` if it is http.
    pub https: bool,
    /// `host[:port]`.
    pub authority: &'a [u8],
}

impl Origin<'_> {
    /// Appends `scheme://host[:port]`.
    pub fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(if self.https { b"https://" } else { b"http://" });
        into.extend_from_slice(self.authority);
    }
}

/// A requested resource, and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource<'a> {
    /// Scheme and authority.
    pub origin: Origin<'a>,
    /// Path and query of the request target.
    pub path: &'a [u8],
}

/// The origin of a URL of http or https, and the rest: empty, or from its `/`, `?` or `#` on. `None` if the
/// text is not such a URL, for example a path.
pub fn origin(url: &[u8]) -> Option<(Origin<'_>, &[u8])> {
    let (scheme, rest) = scheme(url)?;
    let rest = rest.strip_prefix(b"//").filter(|_| is_http(scheme))?;
    let (authority, rest) = cut(rest, |byte| matches!(byte, b'/' | b'?' | b'#'));
    Some((Origin { https: scheme.len() == b"https".len(), authority }, rest))
}

/// The path and query of a request target, which may be a whole URL.
pub fn path_of(target: &[u8]) -> &[u8] {
    origin(target).map_or(target, |(_, path)| path)
}

/// Appends the whole URL that `reference` leads to from `base`, as [`resolve`] does for path and query. The
/// scheme is that of the reference or else of `base`, and so is the authority.
///
/// A reference with a user or password is refused, too: RFC 9110 section 4.2.4 asks for that where a URL is
/// from elsewhere.
pub fn resolve_url(reference: &[u8], base: Resource<'_>, into: &mut Vec<u8>) -> bool {
    let (scheme, rest) = match scheme(reference) {
        Some((scheme, rest)) if is_http(scheme) => (Some(scheme), rest),
        _ => (None, reference),
    };
    let https = scheme.map_or(base.origin.https, |scheme| scheme.len() == b"https".len());
    let authority = match rest.strip_prefix(b"//") {
        Some(rest) => cut(rest, |byte| matches!(byte, b'/' | b'?' | b'#')).0,
        None => base.origin.authority,
    };
    if !authority.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'@') {
        return false;
    }
    Origin { https, authority }.write(into);
    resolve(reference, base.path, into)
}

/// RFC 9112 section 3.2.1, leniently: visible characters that have no place in a URL are the server's own
/// choice, and cannot be mistaken for the end of the target.
fn is_origin_form(target: &[u8]) -> bool {
    target.starts_with(b"/") && target.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#')
}

/// `text` up to the first byte that `is_end`, and the rest from there.
fn cut(text: &[u8], is_end: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&byte| is_end(byte)).unwrap_or(text.len()))
}

/// RFC 3986 section 3.1: the scheme and the part behind its colon, if there is one.
fn scheme(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let (scheme, rest) = cut(reference, |byte| !in_scheme(byte));
    let rest = rest.strip_prefix(b":")?;
    scheme.first()?.is_ascii_alphabetic().then_some((scheme, rest))
}

fn is_http(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

/// Returns `true` if `[user@]host[:port]` has a host that is not empty.
fn has_host(authority: &[u8]) -> bool {
    let host = authority.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with(b":")
}

/// Appends `directory`, `/` and `path`, without dot segments (RFC 3986 section 5.2.4). `directory` is empty
/// or starts with `/`, and lacks the `/` at its end; a `path` that starts with `/` stands alone.
fn push_path(directory: &[u8], path: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    if let Some(inner) = directory.strip_prefix(b"/") {
        for segment in inner.split(|&byte| byte == b'/') {
            push_segment(segment, start, into);
        }
    }
    let path = path.strip_prefix(b"/").unwrap_or(path);
    for segment in path.split(|&byte| byte == b'/') {
        push_segment(segment, start, into);
    }
    // `a/.` and `a/..` mean directories.
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if matches!(last, b"." | b"..") {
        into.push(b'/');
    }
}

/// Appends `/segment`; a dot stands for nothing, and two take the segment before away, down to `start`.
fn push_segment(segment: &[u8], start: usize, into: &mut Vec<u8>) {
    match segment {
        b"." => {}
        b".." => {
            let kept = into[start..].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            into.truncate(start + kept);
        }
        _ => {
            into.push(b'/');
            into.extend_from_slice(segment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(reference: &str, base: &str) -> Option<String> {
        let mut into = b"before".to_vec();
        resolve(reference.as_bytes(), base.as_bytes(), &mut into)
            .then(|| String::from_utf8(into[6..].to_vec()).unwrap())
    }

    #[test]
    fn the_examples_of_rfc_3986_section_5_4() {
        // The base is http://a/b/c/d;p?q.
        for (reference, path) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("//g", "/"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d;p?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x", "/b/c/g;x"),
            ("g;x?y#s", "/b/c/g;x?y"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("../../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            (".g", "/b/c/.g"),
            ("g..", "/b/c/g.."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/./x", "/b/c/g?y/./x"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("g#s/./x", "/b/c/g"),
            ("g#s/../x", "/b/c/g"),
        ] {
            assert_eq!(resolved(reference, "/b/c/d;p?q").as_deref(), Some(path), "{reference:?}");
        }
        // `http:g` is `http:g` for strict parsers, which is nothing to ask for.
        for reference in ["g:h", "http:g"] {
            assert_eq!(resolved(reference, "/b/c/d;p?q"), None, "{reference:?}");
        }
    }

    #[test]
    fn absolute_ones_lose_their_authority_and_fragment() {
        for (reference, path) in [
            ("http://host/a/1", "/a/1"),
            ("HTTPS://user@host:81/a/./b/../1?x=/../y#z", "/a/1?x=/../y"),
            ("http://host", "/"),
            ("http://host?q", "/?q"),
            ("http://[::1]:8080/x", "/x"),
            ("//host:81/a?b", "/a?b"),
            ("http://host//a", "//a"),
            ("/a?to=http://other/#x", "/a?to=http://other/"),
        ] {
            assert_eq!(resolved(reference, "/b").as_deref(), Some(path), "{reference:?}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for reference in [
            "ftp://host/a",
            "mailto:a@b",
            "urn:x:/y",
            "http:",
            "http:/a",
            "http://",
            "http:///a",
            "http://:80/a",
            "http://me@/a",
            "///a",
            "/a b",
            "/ä",
            "/a\u{7f}",
            "/a\r\nx",
            "a\0",
        ] {
            assert_eq!(resolved(reference, "/b"), None, "{reference:?}");
        }
        assert_eq!(resolved("", "/b c"), None);
    }

    #[test]
    fn unusual_bases() {
        for (reference, base, path) in [
            ("a", "*", "/a"),
            ("", "*", "/"),
            ("?q", "", "/?q"),
            ("a", "/", "/a"),
            ("a", "/?x=/y/", "/a"),
            ("a", "//", "//a"),
            ("../a", "//x/", "//a"),
            ("a", "/b/../c/d", "/c/a"),
            ("..", "/", "/"),
            ("a:b/1", "/c/d", ""),
            ("./a:b/1", "/c/d", "/c/a:b/1"),
            ("12:30", "/c/d", "/c/12:30"),
        ] {
            let expected = (!path.is_empty()).then_some(path);
            assert_eq!(resolved(reference, base).as_deref(), expected, "{reference:?} from {base:?}");
        }
    }

    /// RFC 3986 section 5.2.4, step by step as it is written there.
    fn without_dot_segments(path: &str) -> String {
        let (mut input, mut output) = (path.to_owned(), String::new());
        while !input.is_empty() {
            if let Some(rest) = input.strip_prefix("../").or_else(|| input.strip_prefix("./")) {
                input = rest.to_owned();
            } else if input.starts_with("/./") {
                input = input[2..].to_owned();
            } else if input == "/." {
                input = "/".to_owned();
            } else if input.starts_with("/../") || input == "/.." {
                input = if input == "/.." { "/".to_owned() } else { input[3..].to_owned() };
                output.truncate(output.rfind('/').unwrap_or(0));
            } else if input == "." || input == ".." {
                input.clear();
            } else {
                let end = input[1..].find('/').map_or(input.len(), |at| at + 1);
                output.push_str(&input[..end]);
                input = input[end..].to_owned();
            }
        }
        output
    }

    proptest! {
        #[test]
        fn dot_segments_go_as_the_rfc_has_it(reference in "[a./]{1,12}", base in "/[a./]{0,12}") {
            prop_assume!(!reference.starts_with("//"));
            let merged = if reference.starts_with('/') {
                reference.clone()
            } else {
                format!("{}{reference}", &base[..=base.rfind('/').unwrap()])
            };
            prop_assert_eq!(resolved(&reference, &base), Some(without_dot_segments(&merged)));
        }

        #[test]
        fn any_bytes_are_resolved_or_refused(
            reference in proptest::collection::vec(any::<u8>(), 0..40),
            base in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut into = Vec::new();
            if resolve(&reference, &base, &mut into) {
                prop_assert!(is_origin_form(&into));
            }
        }
    }
}
