//! Permission to ask: every request passes here before anything is done for it.
//!
//! The browser of the user opens pages of others, too, and other users have accounts on the machine. So a
//! request has to come for one of our own names ([`Names`]), from our own page (`Origin`, `Sec-Fetch-Site`,
//! and for a POST a field that no page of another site can send), and from a client with the token that the
//! program printed. The token is exchanged for a cookie once, so that it stands in no address that a browser
//! keeps or passes on. The word of the cookie is drawn; of a token that is given, and so is that of the next
//! start, too, it has a signature by the token, which the next server knows. Nobody can make one without the
//! token, and the token does not follow from it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hmac;
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use plimsoll_core::text::hex;

use crate::address::Names;
use crate::refusal::Refusal;
use crate::secret::{SECRET_BYTES, is_same, random_hex};

/// The field that every POST has, which a page of another site can send only if we allow it.
pub(crate) const UI_FIELD: &str = "x-plimsoll-ui";
/// Sessions at most. Of more, the oldest one ends.
const MOST_SESSIONS: usize = 64;
/// The path at which the token is exchanged for a cookie.
pub(crate) const SESSION_PATH: &str = "/api/session";

/// Access rules: names of the server, its token, and the sessions that were begun with it.
#[derive(Debug)]
pub(crate) struct Access {
    names: Names,
    token: String,
    /// Name of the cookie. Cookies know no ports, so that each server needs a name of its own.
    cookie: String,
    is_tls: bool,
    /// The words of the sessions, the latest one last.
    sessions: Mutex<VecDeque<String>>,
    /// Signs the words of sessions which outlast the server, as its token does.
    key: Option<hmac::Key>,
}

/// What signatures are about, so that they are those of nothing else.
const SIGNED: &str = "session of plimsoll ui ";

impl Access {
    /// Lets in clients with the token.
    pub(crate) fn new(names: Names, token: String, port: Option<u16>, is_tls: bool) -> Self {
        let cookie = port.map_or("plimsoll-ui".to_owned(), |port| format!("plimsoll-ui-{port}"));
        Self { names, token, cookie, is_tls, sessions: Mutex::default(), key: None }
    }

    /// Sessions hold as long as the token does, which the next server has, too.
    #[must_use]
    pub(crate) fn with_lasting_sessions(mut self) -> Self {
        self.key = Some(hmac::Key::new(hmac::HMAC_SHA256, self.token.as_bytes()));
        self
    }

    /// Decides if a request may be carried out.
    ///
    /// # Errors
    /// The reason why it may not, and advice.
    pub(crate) fn admit(&self, head: &Parts) -> Result<(), Refusal> {
        let host = self.host(head)?;
        self.check_site(head)?;
        self.check_origin(head, host)?;
        let path = head.uri.path();
        if head.method == Method::POST {
            check_post(&head.headers)?;
        }
        if path.starts_with("/api/") && path != SESSION_PATH && !self.knows(&head.headers) {
            return Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "this browser has no session",
                "open the address that `plimsoll ui` printed",
            ));
        }
        Ok(())
    }

    /// The name by which the server was asked.
    fn host<'r>(&self, head: &'r Parts) -> Result<&'r str, Refusal> {
        let unknown = |host: &str| {
            let shown: String = host.chars().take(100).collect();
            Refusal::forbidden(
                format!("`{}` is not the name of this server", shown.escape_debug()),
                "open the address that `plimsoll ui` printed; --host adds a name",
            )
        };
        let host = only(&head.headers, &HOST)?.unwrap_or_default();
        // The whole address in the request line is for proxies. It counts like the field.
        let named = head.uri.authority().map_or(host, |authority| authority.as_str());
        match [host, named].into_iter().find(|name| !self.names.has(name)) {
            Some(name) => Err(unknown(name)),
            None => Ok(host),
        }
    }

    /// Refuses requests that a browser attributes to another site. An address that is typed is `none`.
    fn check_site(&self, head: &Parts) -> Result<(), Refusal> {
        let site = only(&head.headers, &HeaderName::from_static("sec-fetch-site"))?;
        match site {
            None | Some("same-origin") => Ok(()),
            Some("none") if head.method != Method::POST => Ok(()),
            Some(_) => Err(from_elsewhere()),
        }
    }

    fn check_origin(&self, head: &Parts, host: &str) -> Result<(), Refusal> {
        match only(&head.headers, &ORIGIN)? {
            Some(origin) if self.names.is_origin(origin, host) => Ok(()),
            Some(_) => Err(from_elsewhere()),
            // A browser says where a POST is from.
            None if head.method == Method::POST => Err(Refusal::forbidden(
                "the request does not say which page it is from",
                "send the field `origin` with the address of this server",
            )),
            None => Ok(()),
        }
    }

    /// Returns `true` if a request has the cookie of a session.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let given = pairs.filter(|(name, _)| *name == self.cookie).map(|(_, word)| word);
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = false;
        for word in given.take(MOST_SESSIONS) {
            // Compares all of them, so that the time reveals nothing.
            known |= sessions.iter().fold(false, |known, session| known | is_same(session, word));
            known |= self.is_signed(word);
        }
        known
    }

    /// Returns `true` if the word of a session was signed with the token.
    fn is_signed(&self, word: &str) -> bool {
        let (Some(key), Some((drawn, signature))) = (&self.key, word.split_once('.')) else { return false };
        is_same(&signature_of(key, drawn), signature)
    }

    /// Exchanges the token for the cookie of a new session; `None` if it is another one.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn begin(&self, token: &str) -> io::Result<Option<HeaderValue>> {
        if !is_same(&self.token, token) {
            return Ok(None);
        }
        let drawn = random_hex(SECRET_BYTES)?;
        let word = match &self.key {
            Some(key) => format!("{drawn}.{}", signature_of(key, &drawn)),
            None => drawn,
        };
        let secure = if self.is_tls { "; Secure" } else { "" };
        let cookie = format!("{}={word}; HttpOnly; SameSite=Strict; Path=/{secure}", self.cookie);
        let cookie = HeaderValue::try_from(cookie).map(Some).map_err(io::Error::other);
        if self.key.is_some() {
            return cookie;
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() == MOST_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(word);
        cookie
    }
}

/// The signature of a drawn word, as hexadecimal digits.
fn signature_of(key: &hmac::Key, drawn: &str) -> String {
    hex(hmac::sign(key, format!("{SIGNED}{drawn}").as_bytes()).as_ref())
}

fn check_post(headers: &HeaderMap) -> Result<(), Refusal> {
    if only(headers, &HeaderName::from_static(UI_FIELD))? != Some("1") {
        let error = format!("the field `{UI_FIELD}` is missing");
        return Err(Refusal::forbidden(error, format!("send `{UI_FIELD}: 1`, as the page does")));
    }
    let media = only(headers, &CONTENT_TYPE)?.unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let error = "the body of a request is JSON here";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error, "send `content-type: application/json`"))
}

fn from_elsewhere() -> Refusal {
    Refusal::forbidden(
        "the request is from a page of another site",
        "open the address that `plimsoll ui` printed",
    )
}

/// The value of a field that may be there once.
fn only<'r>(headers: &'r HeaderMap, name: &HeaderName) -> Result<Option<&'r str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(HeaderValue::to_str);
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => {
            let error = format!("the field `{name}` is there twice, or is not a text");
            Err(Refusal::bad_request(error, "send it once"))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn access() -> Access {
        let names = Names::of_tcp("127.0.0.1:7450".parse().unwrap(), false, &[]);
        Access::new(names, "secret".to_owned(), Some(7450), false)
    }

    fn word(cookie: &HeaderValue) -> String {
        cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    fn status(access: &Access, cookie: &str) -> Option<StatusCode> {
        let request = Request::get("/api/about").header(HOST, "localhost:7450").header(COOKIE, cookie);
        let (head, ()) = request.body(()).unwrap().into_parts();
        access.admit(&head).err().map(|refusal| refusal.status)
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_one_ends() {
        let access = access();
        let cookies: Vec<String> =
            (0..=MOST_SESSIONS).map(|_| word(&access.begin("secret").unwrap().unwrap())).collect();
        assert_eq!(access.sessions.lock().unwrap().len(), MOST_SESSIONS);
        assert_eq!(status(&access, &cookies[0]), Some(StatusCode::UNAUTHORIZED));
        for cookie in &cookies[1..] {
            assert_eq!(status(&access, cookie), None);
        }
        assert_eq!(status(&access, &format!("other=1; {}; plimsoll-ui-7450=no", cookies[1])), None);
    }

    /// Symptom: with the token of before, the page that was open had to be signed in again after a restart.
    #[test]
    fn a_token_that_is_given_keeps_its_sessions_over_a_restart() {
        let lasting = || access().with_lasting_sessions();
        let cookie = word(&lasting().begin("secret").unwrap().unwrap());
        assert_eq!(status(&lasting(), &cookie), None);
        // One that is drawn ends with its server, and another token signs in another way.
        assert_eq!(status(&access(), &cookie), Some(StatusCode::UNAUTHORIZED));
        let names = Names::of_tcp("127.0.0.1:7450".parse().unwrap(), false, &[]);
        let other = Access::new(names, "secrets".to_owned(), Some(7450), false).with_lasting_sessions();
        assert_eq!(status(&other, &cookie), Some(StatusCode::UNAUTHORIZED));
        let drawn = word(&access().begin("secret").unwrap().unwrap());
        let (begin, signature) = cookie.split_once('.').unwrap();
        let moved = format!("{}.{signature}", begin.replace(['0', '1'], "2"));
        for forged in [
            drawn.as_str(),
            begin,
            &format!("{begin}."),
            &moved,
            "plimsoll-ui-7450=.",
            &cookie[..cookie.len() - 1],
        ] {
            assert_eq!(status(&lasting(), forged), Some(StatusCode::UNAUTHORIZED), "{forged}");
        }
        assert!(!cookie.contains("secret"));
    }

    #[test]
    fn only_the_whole_token_begins_a_session() {
        let access = access();
        for token in ["", "secre", "secrets", "Secret", "secret "] {
            assert!(access.begin(token).unwrap().is_none(), "{token}");
        }
        for cookie in ["", "plimsoll-ui-7450=", "plimsoll-ui-7450=secret", "plimsoll-ui=1"] {
            assert_eq!(status(&access, cookie), Some(StatusCode::UNAUTHORIZED), "{cookie}");
        }
    }
}
