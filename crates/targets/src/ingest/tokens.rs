//! Tokens and their permissions: as requests bring them and as the API makes them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_wire::http1::Request;

use super::options::{Permissions, Token};

/// Tokens at once: those that the API made are not forgotten.
const MOST_TOKENS: usize = 10_000;

/// All tokens of a server. Without any from the start, every request is permitted.
#[derive(Debug)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<String, Permissions>>,
    everybody: bool,
}

/// Reason why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailure {
    NoToken,
    /// The request has an unknown token.
    Unknown,
}

impl AuthFailure {
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::NoToken => "Authentication required",
            Self::Unknown => "Invalid or expired token",
        }
    }
}

impl Tokens {
    pub(crate) fn new(from_start: &[Token]) -> Self {
        let known = from_start.iter().map(|of| (of.token.clone(), of.permissions)).collect();
        Self { known: Mutex::new(known), everybody: from_start.is_empty() }
    }

    /// Returns the permissions of a request's sender.
    pub(crate) fn permissions(
        &self,
        request: &Request<'_>,
        query: &[u8],
    ) -> Result<Permissions, AuthFailure> {
        if self.everybody {
            return Ok(Permissions::ALL);
        }
        let token = token(request, query).ok_or(AuthFailure::NoToken)?;
        let token = str::from_utf8(&token).map_err(|_| AuthFailure::Unknown)?;
        self.known().get(token).copied().ok_or(AuthFailure::Unknown)
    }

    /// Makes a token; `None`: there are too many of them.
    pub(crate) fn make(&self, permissions: Permissions) -> Option<String> {
        // Keyed like the system's hash tables, so that one token does not help to guess another.
        let [high, low] = [RandomState::new(), RandomState::new()].map(|keys| keys.hash_one(0));
        let token = format!("{high:016x}{low:016x}");
        let mut known = self.known();
        if known.len() >= MOST_TOKENS {
            return None;
        }
        known.insert(token.clone(), permissions);
        Some(token)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Permissions>> {
        // Every call leaves the data sound: no thread could leave them half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token of a request, where the real server looks for it, in its order: Authorization with `Bearer`,
/// with `Token` or bare, `x-api-key`, and `p=` of the query.
fn token<'a>(request: &Request<'a>, query: &'a [u8]) -> Option<std::borrow::Cow<'a, [u8]>> {
    if let Some(authorization) = request.header("authorization").filter(|value| !value.is_empty()) {
        let bare = [&b"Bearer "[..], b"Token "].iter().find_map(|scheme| authorization.strip_prefix(*scheme));
        return Some(bare.unwrap_or(authorization).into());
    }
    let key = request.header("x-api-key").filter(|value| !value.is_empty());
    key.map(Into::into).or_else(|| super::api::parameter(query, "p"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_made_up_to_a_bound() {
        let first = Token { token: "first".to_owned(), permissions: Permissions::ALL };
        let tokens = Tokens::new(&[first]);
        let made = (0..2 * MOST_TOKENS).map_while(|_| tokens.make(Permissions::default())).count();
        assert_eq!((made, tokens.known().len()), (MOST_TOKENS - 1, MOST_TOKENS));
    }
}
