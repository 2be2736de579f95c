//! Accounts and sessions of the HTTP port.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_core::Nanos;
use subtle::ConstantTimeEq as _;

/// Lifetime of a session in seconds: the value of the real server.
pub(crate) const SESSION_SECONDS: u64 = 3600;
/// Sessions at once; beyond them those that end first make room.
const SESSIONS: usize = 10_000;

/// The one user of a server, and the sessions that are open.
///
/// Unlike the real server it looks at the password of every Basic request, also while a session is open.
#[derive(Debug)]
pub(crate) struct Accounts {
    user: String,
    password: String,
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// When each of them ends, by token.
    ends: HashMap<String, Nanos>,
    /// The one of Basic requests.
    basic: Option<String>,
}

/// A user of the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiUser {
    /// Of a Basic request: the token of its session, and whether that was open before.
    pub(crate) session: Option<(String, bool)>,
}

impl Accounts {
    pub(crate) fn new(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned(), sessions: Mutex::default() }
    }

    /// Opens a session; `None`: the name or the password is wrong.
    pub(crate) fn log_in(&self, user: &str, password: &str, now: Nanos) -> Option<String> {
        self.knows(user, password).then(|| self.sessions().open(now))
    }

    /// Returns the user if the sender of this Authorization field may use the port, else the message for
    /// them.
    pub(crate) fn admit(&self, authorization: Option<&[u8]>, now: Nanos) -> Result<ApiUser, &'static str> {
        let text = authorization.ok_or("Missing Authorization header")?;
        let (scheme, given) = str::from_utf8(text)
            .ok()
            .and_then(|text| text.split_once(' '))
            .ok_or("Invalid Authorization header format")?;
        let given = given.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            let ends = self.sessions().ends.get(given).copied();
            let open = ends.is_some_and(|ends| now < ends);
            return open.then_some(ApiUser { session: None }).ok_or("Invalid or expired session token");
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err("Invalid Authorization header format");
        }
        let pair = BASE64_STANDARD.decode(given).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let (user, password) =
            pair.as_deref().and_then(|pair| pair.split_once(':')).ok_or("Invalid credentials")?;
        if !self.knows(user, password) {
            return Err("Invalid credentials");
        }
        Ok(ApiUser { session: Some(self.sessions().of_basic(now)) })
    }

    fn knows(&self, user: &str, password: &str) -> bool {
        // The time of the comparison does not reveal where a wrong user begins to differ.
        let user = user.as_bytes().ct_eq(self.user.as_bytes());
        bool::from(user & password.as_bytes().ct_eq(self.password.as_bytes()))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        // Every call leaves the data sound: no thread could leave them half done.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn open(&mut self, now: Nanos) -> String {
        if self.ends.len() >= SESSIONS {
            let mut ends: Vec<Nanos> = self.ends.values().copied().collect();
            ends.sort_unstable();
            let until = ends[ends.len() / 2];
            self.ends.retain(|_, ends| *ends > until.max(now));
        }
        // Keyed like the system's hash tables, so that one token does not help to guess another.
        let [high, low] = [RandomState::new(), RandomState::new()].map(|keys| keys.hash_one(now.0));
        let token = format!("{high:016x}{low:016x}");
        self.ends.insert(token.clone(), now + Nanos::from_secs(SESSION_SECONDS));
        token
    }

    fn of_basic(&mut self, now: Nanos) -> (String, bool) {
        if let Some(token) = &self.basic
            && self.ends.get(token).is_some_and(|ends| now < *ends)
        {
            return (token.clone(), true);
        }
        let token = self.open(now);
        self.basic = Some(token.clone());
        (token, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Nanos = Nanos::from_secs(SESSION_SECONDS);

    fn basic(pair: &str) -> Vec<u8> {
        format!("Basic {}", BASE64_STANDARD.encode(pair)).into_bytes()
    }

    #[test]
    fn who_has_the_password_or_a_token_is_admitted() {
        let accounts = Accounts::new("admin", "ad:min");
        assert_eq!(accounts.log_in("admin", "wrong", Nanos(0)), None);
        let token = accounts.log_in("admin", "ad:min", Nanos(0)).unwrap();
        let bearer = format!("bearer {token}");
        assert!(accounts.admit(Some(bearer.as_bytes()), Nanos(0)).is_ok());
        let expired = Err("Invalid or expired session token");
        assert_eq!(accounts.admit(Some(bearer.as_bytes()), LATER), expired);
        let first = accounts.admit(Some(&basic("admin:ad:min")), Nanos(0)).unwrap().session.unwrap();
        let second = accounts.admit(Some(&basic("admin:ad:min")), Nanos(1)).unwrap().session.unwrap();
        assert_eq!((first.1, second.1), (false, true));
        assert!(first.0 == second.0 && first.0 != token && first.0.len() == 32);
        let later = accounts.admit(Some(&basic("admin:ad:min")), LATER).unwrap().session.unwrap();
        assert!(later.0 != first.0 && !later.1);
    }

    #[test]
    fn others_are_told_why_not() {
        let accounts = Accounts::new("admin", "admin123");
        let why = |field: &[u8]| accounts.admit(Some(field), Nanos(0)).unwrap_err();
        assert_eq!(accounts.admit(None, Nanos(0)).unwrap_err(), "Missing Authorization header");
        for field in [&b"Basic"[..], b"Digest x", b"\xFF x", b""] {
            assert_eq!(why(field), "Invalid Authorization header format", "{field:?}");
        }
        assert_eq!(why(b"Bearer nobody"), "Invalid or expired session token");
        for pair in ["admin:wrong", "nobody:admin123", "admin", "admin:admin123 "] {
            assert_eq!(why(&basic(pair)), "Invalid credentials", "{pair}");
        }
        assert_eq!(why(b"Basic !"), "Invalid credentials");
    }

    #[test]
    fn sessions_are_bounded() {
        let accounts = Accounts::new("a", "b");
        let mut last = String::new();
        for number in 0..2 * SESSIONS as u64 {
            last = accounts.log_in("a", "b", Nanos(number)).unwrap();
        }
        assert!(accounts.sessions().ends.len() <= SESSIONS);
        assert!(accounts.admit(Some(format!("Bearer {last}").as_bytes()), Nanos(0)).is_ok());
    }
}
