//! Cookies of one session, by RFC 6265.

mod date;
mod parse;

use std::cmp::Reverse;
use std::ops::Range;

use crate::header;
use parse::SetCookie;

/// The cookies of one session, by RFC 6265. Its memory is used again.
///
/// There is no list of public suffixes (section 5.3, step 5): a domain of one label, `com`, counts as one.
/// When there are too many cookies, the first that were made go first: when one was last sent is not kept.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    /// In the order of the Cookie field: longer paths first, then the earlier made.
    cookies: Vec<Cookie>,
    /// Their names, values, domains and paths, and those of cookies that are gone.
    bytes: Vec<u8>,
    /// Room to put the bytes in order.
    spare: Vec<u8>,
    /// Cookies made so far.
    made: u64,
}

#[derive(Clone, Debug)]
struct Cookie {
    name: Range<usize>,
    value: Range<usize>,
    /// In lower case.
    domain: Range<usize>,
    path: Range<usize>,
    /// `true` if the cookie is for this host only, not for hosts below it.
    host_only: bool,
    /// `true` if the cookie is sent over TLS only.
    secure: bool,
    /// `true` if the cookie was received over TLS.
    came_secure: bool,
    /// Seconds since 1970.
    expires: u64,
    /// Number among the cookies made; one that is set again keeps it.
    made: u64,
}

impl Cookie {
    fn len(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }
}

impl CookieJar {
    /// Bytes of a Set-Cookie field at most, as of all bounds the least that RFC 6265 section 6.1 asks for.
    pub const LONGEST: usize = 4096;
    /// Cookies of one domain at most.
    pub const MOST_PER_HOST: usize = 50;
    /// Cookies at most.
    pub const MOST: usize = 3000;

    /// Takes the value of a Set-Cookie field (sections 5.2 and 5.3) out of the response to a request for
    /// `path` (the query is ignored) of `host` (the port is ignored), over TLS if `secure`. A cookie
    /// that has expired removes the one that it replaces.
    ///
    /// Returns whether the jar took it. It does not if the value is not a cookie, is too long, is for a
    /// domain that the host does not belong to, has control characters (which could split a request), or came
    /// without TLS to replace a Secure one that came over TLS (RFC 6265bis).
    pub fn store(
        &mut self,
        set_cookie: &[u8],
        host: &[u8],
        path: &[u8],
        secure: bool,
        now_unix_s: u64,
    ) -> bool {
        if set_cookie.len() > Self::LONGEST || !header::is_value(set_cookie) {
            return false;
        }
        let Some(cookie) = parse::parse(set_cookie, now_unix_s) else { return false };
        let host = without_port(host);
        let (domain, host_only) = match cookie.domain {
            None => (host, true),
            Some(domain) if domain.eq_ignore_ascii_case(host) && is_suffix(domain) => (host, true),
            Some(domain) if !is_suffix(domain) && domain_matches(host, domain) => (domain, false),
            Some(_) => return false,
        };
        let path = cookie.path.unwrap_or_else(|| default_path(path));
        self.remove_expired(now_unix_s);
        let old = self.cookies.iter().position(|old| {
            self.bytes[old.name.clone()] == *cookie.name
                && self.bytes[old.domain.clone()].eq_ignore_ascii_case(domain)
                && self.bytes[old.path.clone()] == *path
        });
        if let Some(old) = old
            && self.cookies[old].secure
            && self.cookies[old].came_secure
            && !secure
        {
            return false;
        }
        let made = match old {
            Some(old) => self.cookies.remove(old).made,
            None => self.made,
        };
        if cookie.expires.is_none_or(|expires| expires > now_unix_s) {
            self.made += u64::from(old.is_none());
            self.insert(&cookie, domain, path, host_only, secure, made);
            self.keep_bounds();
        }
        self.compact();
        true
    }

    /// Appends the value of the Cookie field (section 5.4) of a request for `path` (the query is ignored)
    /// of `host` (the port is ignored), over TLS if `secure`: `a=b; c=d`, nothing if no cookie applies.
    /// The value is valid in a header.
    pub fn header(&self, host: &[u8], path: &[u8], secure: bool, now_unix_s: u64, out: &mut Vec<u8>) {
        let (host, path) = (without_port(host), without_query(path));
        let start = out.len();
        for cookie in &self.cookies {
            let domain = &self.bytes[cookie.domain.clone()];
            let is_host = if cookie.host_only {
                domain.eq_ignore_ascii_case(host)
            } else {
                domain_matches(host, domain)
            };
            let belongs = is_host
                && (secure || !cookie.secure)
                && cookie.expires > now_unix_s
                && path_matches(path, &self.bytes[cookie.path.clone()]);
            if belongs {
                if out.len() > start {
                    out.extend_from_slice(b"; ");
                }
                out.extend_from_slice(&self.bytes[cookie.name.clone()]);
                out.push(b'=');
                out.extend_from_slice(&self.bytes[cookie.value.clone()]);
            }
        }
    }

    /// The value of the cookie of this name, for any host and path. Of several, it is the one that would be
    /// sent first: with the longest path, and of those the first that was made.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let cookie = self.cookies.iter().find(|cookie| self.bytes[cookie.name.clone()] == *name)?;
        Some(&self.bytes[cookie.value.clone()])
    }

    /// Returns `true` if there is no cookie.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Forgets all cookies and keeps the memory.
    pub fn clear(&mut self) {
        self.cookies.clear();
        self.bytes.clear();
        self.made = 0;
    }

    fn insert(
        &mut self,
        cookie: &SetCookie<'_>,
        domain: &[u8],
        path: &[u8],
        host_only: bool,
        came_secure: bool,
        made: u64,
    ) {
        let mut push = |text: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(text);
            start..self.bytes.len()
        };
        let new = Cookie {
            name: push(cookie.name),
            value: push(cookie.value),
            domain: push(domain),
            path: push(path),
            host_only,
            secure: cookie.secure,
            came_secure,
            expires: cookie.expires.unwrap_or(u64::MAX),
            made,
        };
        self.bytes[new.domain.clone()].make_ascii_lowercase();
        let rank = |cookie: &Cookie| (Reverse(cookie.path.len()), cookie.made);
        let place = self.cookies.partition_point(|other| rank(other) < rank(&new));
        self.cookies.insert(place, new);
    }

    fn remove_expired(&mut self, now_unix_s: u64) {
        self.cookies.retain(|cookie| cookie.expires > now_unix_s);
    }

    /// Removes surplus cookies after one was added: of its domain, then of all.
    fn keep_bounds(&mut self) {
        let Some(newest) = self.cookies.iter().max_by_key(|cookie| cookie.made) else { return };
        let domain = newest.domain.clone();
        let bytes = &self.bytes;
        let is_same = |cookie: &Cookie| bytes[cookie.domain.clone()] == bytes[domain.clone()];
        let of_domain = self.cookies.iter().filter(|cookie| is_same(cookie)).count();
        let oldest = if of_domain > Self::MOST_PER_HOST {
            self.cookies.iter().filter(|cookie| is_same(cookie)).map(|cookie| cookie.made).min()
        } else if self.cookies.len() > Self::MOST {
            self.cookies.iter().map(|cookie| cookie.made).min()
        } else {
            None
        };
        if let Some(oldest) = oldest {
            self.cookies.retain(|cookie| cookie.made != oldest);
        }
    }

    /// Gives back the room of cookies that are gone when it is more than that of the others, and more than
    /// one cookie can take.
    fn compact(&mut self) {
        let used: usize = self.cookies.iter().map(Cookie::len).sum();
        if self.bytes.len() - used <= used.max(Self::LONGEST) {
            return;
        }
        self.spare.clear();
        for cookie in &mut self.cookies {
            for range in [&mut cookie.name, &mut cookie.value, &mut cookie.domain, &mut cookie.path] {
                let start = self.spare.len();
                self.spare.extend_from_slice(&self.bytes[range.clone()]);
                *range = start..self.spare.len();
            }
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
    }
}

/// `host[:port]` without the port; an IPv6 address stays in its brackets.
fn without_port(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|&byte| byte == b':') {
        Some(colon) if !authority[colon..].contains(&b']') => &authority[..colon],
        _ => authority,
    }
}

fn without_query(path: &[u8]) -> &[u8] {
    &path[..path.iter().position(|&byte| byte == b'?').unwrap_or(path.len())]
}

/// Returns `true` if a domain is like a public suffix: a single label.
fn is_suffix(domain: &[u8]) -> bool {
    !is_address(domain) && !domain.contains(&b'.')
}

/// Returns `true` if a host is an IP address: an IPv6 address in brackets, or four numbers.
fn is_address(host: &[u8]) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    host.starts_with(b"[")
        || (host.split(|&byte| byte == b'.').all(is_number)
            && host.iter().filter(|&&b| b == b'.').count() == 3)
}

/// Section 5.1.3: whether the host is the domain, or below it.
fn domain_matches(host: &[u8], domain: &[u8]) -> bool {
    let Some(at) = host.len().checked_sub(domain.len()) else { return false };
    host[at..].eq_ignore_ascii_case(domain) && (at == 0 || (host[at - 1] == b'.' && !is_address(host)))
}

/// Section 5.1.4: the path of a cookie that names none: the request's up to its last slash.
fn default_path(path: &[u8]) -> &[u8] {
    let path = without_query(path);
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) if slash > 0 && path.starts_with(b"/") => &path[..slash],
        _ => b"/",
    }
}

/// Section 5.1.4: whether a request's path is the cookie's, or below it.
fn path_matches(path: &[u8], of_cookie: &[u8]) -> bool {
    let path = if path.starts_with(b"/") { path } else { b"/" };
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_while_cookies_change() {
        let mut jar = CookieJar::default();
        for number in 0..10_000 {
            let value = format!("a={number:0100}; Path=/{}", number % 3);
            assert!(jar.store(value.as_bytes(), b"h", b"/", false, 0));
            let used: usize = jar.cookies.iter().map(Cookie::len).sum();
            assert!(jar.bytes.len() <= 2 * used + CookieJar::LONGEST + 200, "{}", jar.bytes.len());
        }
        let mut out = Vec::new();
        jar.header(b"h", b"/0", false, 0, &mut out);
        assert_eq!(out, format!("a={:0100}", 9_999).as_bytes());
    }

    #[test]
    fn hosts_and_ports() {
        for (authority, host) in
            [("a.com:80", "a.com"), ("a.com", "a.com"), ("[::1]:8080", "[::1]"), ("[::1]", "[::1]"), ("", "")]
        {
            assert_eq!(without_port(authority.as_bytes()), host.as_bytes(), "{authority}");
        }
        for (host, expected) in [("1.2.3.4", true), ("[::1]", true), ("1.2.3", false), ("1.2.3.x", false)] {
            assert_eq!(is_address(host.as_bytes()), expected, "{host}");
        }
    }
}
