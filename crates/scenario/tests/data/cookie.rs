//! Cookies: which are kept, and which are sent where.

use plimsoll_scenario::{CookieJar, header};
use proptest::prelude::*;

const NOW: u64 = 1_700_000_000;

/// Splits `http://host/path` or `https://host/path`.
fn parts(url: &str) -> (&[u8], &[u8], bool) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (host.as_bytes(), path.as_bytes(), scheme == "https")
}

fn store(jar: &mut CookieJar, set_cookie: &str, url: &str) -> bool {
    let (host, path, secure) = parts(url);
    jar.store(set_cookie.as_bytes(), host, path, secure, NOW)
}

fn sent_at(jar: &CookieJar, url: &str, now: u64) -> String {
    let (host, path, secure) = parts(url);
    let mut out = b"kept ".to_vec();
    jar.header(host, path, secure, now, &mut out);
    String::from_utf8(out).unwrap().strip_prefix("kept ").unwrap().to_owned()
}

fn sent(jar: &CookieJar, url: &str) -> String {
    sent_at(jar, url, NOW)
}

/// Returns the cookies that a user sends to `to` after `from` has set one cookie.
fn one(set_cookie: &str, from: &str, to: &str) -> String {
    let mut jar = CookieJar::default();
    store(&mut jar, set_cookie, from);
    sent(&jar, to)
}

#[test]
fn domains() {
    let from = "http://www.example.com/";
    for (set_cookie, to, is_sent) in [
        ("a=b", "http://www.example.com/", true),
        ("a=b", "http://WWW.example.COM:8080/x?y", true),
        ("a=b", "http://example.com/", false),
        ("a=b", "http://x.www.example.com/", false),
        ("a=b; Domain=example.com", "http://example.com/", true),
        ("a=b; Domain=.EXAMPLE.com", "http://x.y.example.com/", true),
        ("a=b; Domain=example.com", "http://badexample.com/", false),
        ("a=b; Domain=www.example.com", "http://x.www.example.com/", true),
        ("a=b; Domain=", "http://www.example.com/", true),
        ("a=b; Domain=", "http://x.www.example.com/", false),
        // The server may not set this cookie.
        ("a=b; Domain=x.www.example.com", "http://x.www.example.com/", false),
        ("a=b; Domain=other.com", "http://other.com/", false),
        ("a=b; Domain=ww.example.com", from, false),
        ("a=b; Domain=com", from, false),
        ("a=b; Domain=.com", "http://com/", false),
        // The last one counts.
        ("a=b; Domain=other.com; Domain=example.com", from, true),
        ("a=b; Domain=example.com; Domain=other.com", from, false),
    ] {
        assert_eq!(one(set_cookie, from, to), if is_sent { "a=b" } else { "" }, "{set_cookie} {to}");
    }
}

#[test]
fn single_labels_and_addresses_are_hosts_of_their_own() {
    for (set_cookie, from, to, is_sent) in [
        ("a=b", "http://localhost:80/", "http://localhost:81/", true),
        ("a=b; Domain=localhost", "http://localhost/", "http://localhost/", true),
        ("a=b; Domain=localhost", "http://localhost/", "http://x.localhost/", false),
        ("a=b; Domain=127.0.0.1", "http://127.0.0.1:80/", "http://127.0.0.1/", true),
        ("a=b; Domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", false),
        ("a=b; Domain=0.0.1", "http://127.0.0.1/", "http://5.0.0.1/", false),
        ("a=b; Domain=[::1]", "http://[::1]:80/", "http://[::1]/", true),
        ("a=b", "http://[::1]:80/", "http://[::2]/", false),
    ] {
        assert_eq!(one(set_cookie, from, to), if is_sent { "a=b" } else { "" }, "{set_cookie} {from} {to}");
    }
}

#[test]
fn paths() {
    for (set_cookie, from, to, is_sent) in [
        ("a=b", "/", "/x/y", true),
        ("a=b", "/x", "/", true),
        ("a=b", "/x/y", "/x", true),
        ("a=b", "/x/y", "/x/z/z", true),
        ("a=b", "/x/y", "/", false),
        ("a=b", "/x/y", "/xy", false),
        ("a=b", "/x/?y/z", "/x/", true),
        ("a=b", "/?x/y/z", "/", true),
        ("a=b", "", "/x", true),
        ("a=b; Path=/x", "/", "/x?y", true),
        ("a=b; Path=/x", "/", "/x/y", true),
        ("a=b; Path=/x", "/", "/xy", false),
        ("a=b; Path=/x", "/", "/", false),
        ("a=b; Path=/x/", "/", "/x", false),
        ("a=b; Path=/x/", "/", "/x/y", true),
        ("a=b; Path=/X", "/", "/x", false),
        ("a=b; Path=x", "/y/z", "/y/x", true),
        ("a=b; Path=", "/y/z", "/x", false),
        ("a=b; Path=/x; Path=/y", "/", "/y", true),
    ] {
        let found = one(set_cookie, &format!("http://h{from}"), &format!("http://h{to}"));
        assert_eq!(found, if is_sent { "a=b" } else { "" }, "{set_cookie} {from} {to}");
    }
}

#[test]
fn longer_paths_come_first_and_then_earlier_cookies() {
    let mut jar = CookieJar::default();
    for set_cookie in ["a=1", "b=1; Path=/x", "c=1", "d=1; Path=/x/y", "e=1; Path=/x"] {
        assert!(store(&mut jar, set_cookie, "http://h/"));
    }
    assert_eq!(sent(&jar, "http://h/x/y"), "d=1; b=1; e=1; a=1; c=1");
    // Set anew, they keep their places; other paths and hosts make other cookies.
    assert!(store(&mut jar, "a=2", "http://h/"));
    assert!(store(&mut jar, "b=2; Path=/x", "http://h/"));
    assert!(store(&mut jar, "c=2; Path=/x", "http://h/"));
    assert!(store(&mut jar, "a=3", "http://i/"));
    assert_eq!(sent(&jar, "http://h/x/y"), "d=1; b=2; e=1; c=2; a=2; c=1");
    assert_eq!(jar.get(b"c"), Some(&b"2"[..]));
    assert_eq!(jar.get(b"x"), None);
    assert!(!jar.is_empty());
    jar.clear();
    assert!(jar.is_empty() && sent(&jar, "http://h/x/y").is_empty());
}

#[test]
fn cookies_end_with_their_time() {
    let mut jar = CookieJar::default();
    for set_cookie in [
        "a=1; Max-Age=10",
        "b=1; Expires=Tue, 14 Nov 2023 22:13:25 GMT",
        "c=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "d=1",
        "e=1; Max-Age=0",
        "f=1; Expires=Tue, 14 Nov 2023 22:13:20 GMT",
    ] {
        assert!(store(&mut jar, set_cookie, "http://h/"));
    }
    assert_eq!(sent(&jar, "http://h/"), "a=1; b=1; c=1; d=1");
    assert_eq!(sent_at(&jar, "http://h/", NOW + 4), "a=1; b=1; c=1; d=1");
    assert_eq!(sent_at(&jar, "http://h/", NOW + 5), "a=1; c=1; d=1");
    assert_eq!(sent_at(&jar, "http://h/", NOW + 10), "d=1");
    assert!(store(&mut jar, "d=; Max-Age=-1", "http://h/"));
    assert_eq!(sent(&jar, "http://h/"), "a=1; b=1; c=1");
    assert!(jar.store(b"x=1; Max-Age=0", b"h", b"/", false, NOW + 10));
    assert!(jar.is_empty());
}

#[test]
fn secure_cookies_go_over_tls_only() {
    let mut jar = CookieJar::default();
    assert!(store(&mut jar, "a=1; Secure", "https://h/"));
    assert!(store(&mut jar, "b=1; Secure", "http://h/"));
    assert_eq!(sent(&jar, "http://h/"), "");
    assert_eq!(sent(&jar, "https://h/"), "a=1; b=1");
    assert!(!store(&mut jar, "a=2", "http://h/"));
    assert!(!store(&mut jar, "a=2; Max-Age=0", "http://h/"));
    assert!(store(&mut jar, "b=2", "http://h/"));
    assert_eq!(sent(&jar, "https://h/"), "a=1; b=2");
    assert!(store(&mut jar, "a=3", "https://h/"));
    assert_eq!(sent(&jar, "http://h/"), "a=3; b=2");
}

#[test]
fn what_could_split_a_request_or_is_no_cookie_is_refused() {
    let mut jar = CookieJar::default();
    for set_cookie in ["", "a", "=b", "a=b\r\nX: y", "a=b\0", "a=b; Path=/\n", "a\x7f=b"] {
        assert!(!store(&mut jar, set_cookie, "http://h/"), "{set_cookie:?}");
    }
    assert!(!store(&mut jar, &format!("a={}", "b".repeat(4095)), "http://h/"));
    assert!(jar.is_empty());
    assert!(store(&mut jar, &format!("a={}", "b".repeat(4094)), "http://h/"));
}

#[test]
fn there_are_only_so_many() {
    let mut jar = CookieJar::default();
    for number in 0..CookieJar::MOST_PER_HOST + 2 {
        assert!(store(&mut jar, &format!("c{number}=1; Path=/{}", number % 2), "http://h/"));
    }
    // A cookie that is set anew does not take another one's place.
    assert!(store(&mut jar, "c2=2; Path=/0", "http://h/"));
    let sent_there = sent(&jar, "http://h/0") + "; " + &sent(&jar, "http://h/1");
    let names: Vec<&str> = sent_there.split("; ").collect();
    assert_eq!(names.len(), CookieJar::MOST_PER_HOST);
    assert!(names.contains(&"c2=2") && !names.contains(&"c0=1") && !names.contains(&"c1=1"));
    jar.clear();
    for number in 0..=CookieJar::MOST {
        assert!(store(&mut jar, "a=1", &format!("http://h{number}/")));
    }
    assert_eq!(sent(&jar, "http://h0/"), "");
    assert_eq!(sent(&jar, "http://h1/"), "a=1");
}

/// A Set-Cookie field by its parts, and where it comes from.
#[derive(Clone, Debug)]
struct Setting {
    name: &'static str,
    value: u8,
    domain: Option<&'static str>,
    path: Option<&'static str>,
    secure: bool,
    max_age: Option<i64>,
    host: &'static str,
    from_path: &'static str,
}

impl Setting {
    fn text(&self) -> String {
        let mut text = format!("{}={}", self.name, self.value);
        let mut attribute = |name: &str, value: Option<String>| {
            text.extend(value.map(|value| format!("; {name}={value}")));
        };
        attribute("domain", self.domain.map(str::to_owned));
        attribute("path", self.path.map(str::to_owned));
        attribute("max-age", self.max_age.map(|age| age.to_string()));
        text + if self.secure { "; secure" } else { "" }
    }

    /// Returns the name, domain and path that identify the cookie; `None` if it is refused.
    fn identity(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let domain = self.domain.unwrap_or(self.host);
        let is_known = self.domain.is_none_or(|domain| is_below(self.host, domain) && domain != "com");
        let default = if self.from_path == "/x/y" { "/x" } else { "/" };
        is_known.then_some((self.name, domain, self.path.unwrap_or(default)))
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host == domain || host.ends_with(&format!(".{domain}"))
}

const HOSTS: [&str; 3] = ["e.com", "a.e.com", "f.com"];
const PATHS: [&str; 3] = ["/", "/x", "/x/y"];

fn setting() -> impl Strategy<Value = Setting> {
    let name = prop::sample::select(&["a", "b", "c"][..]);
    let domain = prop::option::of(prop::sample::select(&["e.com", "a.e.com", "com"][..]));
    let path = prop::option::of(prop::sample::select(&PATHS[..]));
    let (host, from_path) = (prop::sample::select(&HOSTS[..]), prop::sample::select(&PATHS[..]));
    let max_age = prop::option::of(-1..8_i64);
    (name, any::<u8>(), domain, path, any::<bool>(), max_age, host, from_path).prop_map(
        |(name, value, domain, path, secure, max_age, host, from_path)| Setting {
            name,
            value,
            domain,
            path,
            secure,
            max_age,
            host,
            from_path,
        },
    )
}

proptest! {
    /// The model is a list of all settings in force, which is searched for every question.
    #[test]
    fn the_jar_is_as_good_as_a_list(settings in prop::collection::vec((setting(), 0..3_u64), 0..40)) {
        let (mut jar, mut list, mut now) = (CookieJar::default(), Vec::<(Setting, u64)>::new(), NOW);
        for (setting, pause) in settings {
            now += pause;
            let taken = jar.store(
                setting.text().as_bytes(), setting.host.as_bytes(), setting.from_path.as_bytes(), true, now,
            );
            prop_assert_eq!(taken, setting.identity().is_some());
            list.retain(|(_, end)| *end > now);
            if taken {
                let end = setting.max_age.map_or(u64::MAX, |age| now.saturating_add_signed(age.max(0)));
                match list.iter_mut().find(|(old, _)| old.identity() == setting.identity()) {
                    Some(old) => *old = (setting, end),
                    None => list.push((setting, end)),
                }
                list.retain(|(_, end)| *end > now);
            }
            prop_assert!(!taken || jar.is_empty() == list.is_empty());
        }
        let urls = HOSTS.iter().flat_map(|host| PATHS.map(|path| [(host, path, true), (host, path, false)]));
        for (host, path, secure) in urls.flatten() {
            let mut expected: Vec<&Setting> = list.iter().map(|(setting, _)| setting).filter(|setting| {
                let (_, domain, of_cookie) = setting.identity().unwrap();
                let is_host = if setting.domain.is_some() { is_below(host, domain) } else { *host == domain };
                is_host && (secure || !setting.secure) && path.starts_with(of_cookie)
            }).collect();
            // A stable sort: earlier ones stay first.
            expected.sort_by_key(|setting| std::cmp::Reverse(setting.identity().unwrap().2.len()));
            let expected: Vec<String> = expected.iter().map(|s| format!("{}={}", s.name, s.value)).collect();
            let url = format!("http{}://{host}{path}", if secure { "s" } else { "" });
            prop_assert_eq!(sent_at(&jar, &url, now), expected.join("; "));
        }
    }

    #[test]
    fn whatever_servers_say_a_request_stays_one(
        settings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..8),
        ascii in prop::collection::vec("[a=;, \t\r\n\u{0}\u{7f}]{0,20}", 0..8),
    ) {
        let mut jar = CookieJar::default();
        for text in settings.iter().map(Vec::as_slice).chain(ascii.iter().map(String::as_bytes)) {
            jar.store(text, b"h", b"/", true, NOW);
        }
        let mut out = Vec::new();
        jar.header(b"h", b"/", true, NOW, &mut out);
        prop_assert!(header::is_value(&out));
        prop_assert_eq!(out.is_empty(), jar.is_empty());
    }
}
