//! For any cookies of servers and any requests, a jar sends values that fit a header, and forgets expired
//! cookies.
//!
//! Each line is one Set-Cookie field, with a first byte that chooses its origin and the time.

use plimsoll_scenario::{CookieJar, header};

const HOSTS: [&[u8]; 4] = [b"a.example.com:80", b"example.com", b"localhost", b"127.0.0.1"];
const PATHS: [&[u8]; 4] = [b"/", b"/x/y?z", b"/x", b"*"];

fn sent(jar: &CookieJar, host: &[u8], path: &[u8], secure: bool, now: u64) -> Vec<u8> {
    let mut value = Vec::new();
    jar.header(host, path, secure, now, &mut value);
    assert!(header::is_value(&value));
    assert!(value.len() <= CookieJar::MOST_PER_HOST * 3 * (CookieJar::LONGEST + 2));
    value
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut jar = CookieJar::default();
    let mut now = 1_000_000_000;
    for line in data.split(|&byte| byte == b'\n') {
        let Some((&choice, set_cookie)) = line.split_first() else { continue };
        let host = HOSTS[usize::from(choice & 3)];
        let path = PATHS[usize::from(choice >> 2 & 3)];
        let secure = choice & 0x10 != 0;
        now += u64::from(choice >> 5);
        let before = jar.clone();
        let taken = jar.store(set_cookie, host, path, secure, now);
        for host in HOSTS {
            for path in PATHS {
                let over_tls = sent(&jar, host, path, true, now);
                // Cookies that are sent without TLS are sent with it, too.
                assert!(sent(&jar, host, path, false, now).len() <= over_tls.len());
                if !taken {
                    assert_eq!(over_tls, sent(&before, host, path, true, now));
                }
            }
        }
    }
    jar.clear();
    assert!(jar.is_empty() && sent(&jar, HOSTS[0], PATHS[0], true, now).is_empty());
}
