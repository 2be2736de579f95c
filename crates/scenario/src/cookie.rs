//! Cookies of one session, by RFC 6265.

/// The cookies of one session.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {}

impl CookieJar {
    /// Forgets all cookies.
    pub fn clear(&mut self) {}
}
