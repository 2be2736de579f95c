//! The text of a Set-Cookie field.

use super::date;

/// Contents of a Set-Cookie field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetCookie<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Without the dot in front. `None`: none, or an empty one.
    pub(super) domain: Option<&'a [u8]>,
    /// `None`: absent, or not an absolute path.
    pub(super) path: Option<&'a [u8]>,
    pub(super) secure: bool,
    /// When it ends, in seconds since 1970; `None`: with the session.
    pub(super) expires: Option<u64>,
}

/// Parses by RFC 6265 section 5.2. `None` if there is no cookie in it.
pub(super) fn parse(text: &[u8], now_unix_s: u64) -> Option<SetCookie<'_>> {
    let (pair, mut attributes) = cut(text, b';');
    let at = pair.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (trim(&pair[..at]), trim(&pair[at + 1..]));
    if name.is_empty() {
        return None;
    }
    let mut cookie = SetCookie { name, value, domain: None, path: None, secure: false, expires: None };
    let mut max_age = None;
    // The last attribute of a name counts. HttpOnly is for browsers, which have scripts to keep out.
    while let Some(rest) = attributes {
        let (attribute, after) = cut(rest, b';');
        attributes = after;
        let (name, value) = cut(attribute, b'=');
        let (name, value) = (trim(name), trim(value.unwrap_or_default()));
        if name.eq_ignore_ascii_case(b"expires") {
            cookie.expires = date::parse(value).or(cookie.expires);
        } else if name.eq_ignore_ascii_case(b"max-age") {
            max_age = parse_age(value).or(max_age);
        } else if name.eq_ignore_ascii_case(b"domain") {
            let domain = value.strip_prefix(b".").unwrap_or(value);
            if !value.is_empty() {
                cookie.domain = Some(domain).filter(|domain| !domain.is_empty());
            }
        } else if name.eq_ignore_ascii_case(b"path") {
            cookie.path = Some(value).filter(|path| path.starts_with(b"/"));
        } else if name.eq_ignore_ascii_case(b"secure") {
            cookie.secure = true;
        }
    }
    cookie.expires = match max_age {
        Some(0) => Some(0),
        Some(age) => Some(now_unix_s.saturating_add(age)),
        None => cookie.expires,
    };
    Some(cookie)
}

/// Section 5.2.2: seconds; zero for a negative number. `None` if it is not a number.
fn parse_age(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() < text.len() {
        return Some(0);
    }
    Some(
        digits
            .iter()
            .fold(0_u64, |age, digit| age.saturating_mul(10).saturating_add(u64::from(digit - b'0'))),
    )
}

/// Splits a text at the first `at`: the part before it, and the part after it if there is one.
fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == at) {
        Some(end) => (&text[..end], Some(&text[end + 1..])),
        None => (text, None),
    }
}

/// Without spaces and tabs around it.
fn trim(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = text.iter().position(|byte| !is_space(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_space(byte)).unwrap_or(start);
    &text[start..=end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000;

    fn parsed(text: &str) -> Option<SetCookie<'_>> {
        parse(text.as_bytes(), NOW)
    }

    #[test]
    fn names_and_values() {
        for (text, name, value) in [
            ("a=b", "a", "b"),
            (" a \t= \tb ; Path=/", "a", "b"),
            ("a=", "a", ""),
            ("a=b=c", "a", "b=c"),
            ("a=\"b c\"", "a", "\"b c\""),
            ("a=b, c=d", "a", "b, c=d"),
            ("a b=c d", "a b", "c d"),
            ("a=b;;; ;", "a", "b"),
        ] {
            let cookie = parsed(text).unwrap();
            assert_eq!((cookie.name, cookie.value), (name.as_bytes(), value.as_bytes()), "{text}");
        }
        for text in ["", "a", ";", "=b", " = b", "a; b=c"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn attributes() {
        let plain = parsed("a=b").unwrap();
        for (text, expected) in [
            ("HttpOnly; SameSite=Lax; Unknown", plain),
            ("SECURE", SetCookie { secure: true, ..plain }),
            ("secure=no", SetCookie { secure: true, ..plain }),
            ("domain=.Example.com", SetCookie { domain: Some(b"Example.com"), ..plain }),
            ("Domain=a.com; Domain=", SetCookie { domain: Some(b"a.com"), ..plain }),
            ("Domain=a.com; Domain=.", plain),
            ("Path = /x ", SetCookie { path: Some(b"/x"), ..plain }),
            ("Path=/x; path=y", plain),
            ("Max-Age=20", SetCookie { expires: Some(NOW + 20), ..plain }),
            ("Max-Age=-1", SetCookie { expires: Some(0), ..plain }),
            ("Max-Age=0", SetCookie { expires: Some(0), ..plain }),
            ("Max-Age=99999999999999999999", SetCookie { expires: Some(u64::MAX), ..plain }),
            ("Max-Age=2x; Max-Age=; Max-Age=-", plain),
            ("Expires=Thu, 01 Jan 1970 00:00:09 GMT", SetCookie { expires: Some(9), ..plain }),
            ("Expires=soon", plain),
            (
                "Max-Age=20; Expires=Thu, 01 Jan 1970 00:00:09 GMT",
                SetCookie { expires: Some(1_020), ..plain },
            ),
            ("Max-Age=20; Max-Age=30", SetCookie { expires: Some(NOW + 30), ..plain }),
        ] {
            let text = format!("a=b; {text}");
            assert_eq!(parsed(&text).unwrap(), expected, "{text}");
        }
    }
}
