//! Cookies of one session, by RFC 6265.

/// The cookies of one session.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {}

impl CookieJar {
    /// Takes the value of a Set-Cookie field.
    pub fn store(&mut self, set_cookie: &[u8], host: &[u8], path: &[u8], secure: bool, now_unix_s: u64) {
        let _ = (set_cookie, host, path, secure, now_unix_s);
    }

    /// Appends the value of the Cookie field of a request, nothing if there is none.
    pub fn header(&self, host: &[u8], path: &[u8], secure: bool, now_unix_s: u64, out: &mut Vec<u8>) {
        let _ = (host, path, secure, now_unix_s, out);
    }

    /// The value of a cookie.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let _ = name;
        None
    }

    /// Whether there is no cookie.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Forgets all cookies.
    pub fn clear(&mut self) {}
}
