//! The proxy that connections go through: `--proxy`.

use std::sync::Arc;

use plimsoll_document::Problem;
use plimsoll_scenario::ForwardProxy;
use plimsoll_wire::tunnel::{Credentials, Destination, LONGEST_SOCKS_TEXT, TunnelRequest};

use crate::security::basic_authorization;
use crate::url::{decoded, host_and_port};

/// Text in place of a proxy's URL that asks for none, where a lower layer has one.
const NONE: &str = "none";

/// Advice about the form of a proxy's URL.
const EXAMPLE: &str =
    "write --proxy http://127.0.0.1:3128, or socks5://127.0.0.1:1080; `none` is for no proxy";

/// A proxy that connections go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// The protocol that it speaks.
    pub kind: ProxyKind,
    /// Host name or IP literal, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `host:port`, for messages.
    pub authority: String,
    /// User and password, if there are any.
    pub credentials: Option<Credentials>,
    /// Part of the proxy in requests of HTTP/1.1 by `http`, if it is handed those instead of being asked for
    /// a tunnel.
    pub forward: Option<ForwardProxy>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyKind {
    /// HTTP/1.1.
    Http,
    /// SOCKS5, and names are resolved before it is asked.
    Socks5,
    /// SOCKS5, which resolves names itself.
    Socks5Names,
}

impl Proxy {
    /// Returns `true` if it is told the names of hosts, which are not resolved here then.
    pub const fn finds_names(&self) -> bool {
        matches!(self.kind, ProxyKind::Http | ProxyKind::Socks5Names)
    }

    /// The request for a tunnel.
    ///
    /// # Errors
    /// If the proxy's protocol cannot say the name of the host; why.
    pub fn tunnel(&self, to: &Destination) -> Result<TunnelRequest, &'static str> {
        match self.kind {
            ProxyKind::Http => Ok(TunnelRequest::connect(to, self.authorization().as_deref())),
            ProxyKind::Socks5 | ProxyKind::Socks5Names => {
                TunnelRequest::socks5(to, self.credentials.as_ref())
            }
        }
    }

    /// Parses the text of the setting; `None` if it asks for no proxy. `forwards`: an HTTP proxy is handed
    /// requests by `http`.
    pub(crate) fn parse(text: &str, forwards: bool) -> Result<Option<Self>, Problem> {
        if text == NONE {
            return Ok(None);
        }
        // The text is not shown: it may have a password.
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Problem::new("the proxy has no scheme").with_hint(EXAMPLE));
        };
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyKind::Http,
            "socks5" => ProxyKind::Socks5,
            "socks5h" => ProxyKind::Socks5Names,
            "https" => {
                let problem = Problem::new("proxies that are spoken to over TLS are not supported");
                return Err(problem.with_hint(
                    "write http:// if the proxy has a port without TLS: https targets have theirs anyway",
                ));
            }
            _ => {
                let problem = Problem::new("the proxy is none of http://, socks5:// and socks5h://");
                return Err(problem.with_hint(EXAMPLE));
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, rest),
        };
        if authority.contains(['/', '?', '#']) {
            return Err(Problem::new("the proxy has something behind its host and port").with_hint(EXAMPLE));
        }
        let hinted = |problem: Problem| problem.with_hint(EXAMPLE);
        let (host, port) = host_and_port(authority, None).map_err(hinted)?;
        let credentials = user.map(credentials).transpose()?;
        if kind != ProxyKind::Http
            && let Some(Credentials { user, password }) = &credentials
            && (user.is_empty() || user.len().max(password.len()) > LONGEST_SOCKS_TEXT)
        {
            let message =
                format!("SOCKS5 takes a user of 1 to {LONGEST_SOCKS_TEXT} bytes, and no longer password");
            return Err(Problem::new(message));
        }
        let mut proxy =
            Self { kind, host, port, authority: authority.to_owned(), credentials, forward: None };
        if kind == ProxyKind::Http && forwards {
            proxy.forward = Some(ForwardProxy { authorization: proxy.authorization().map(Arc::from) });
        }
        Ok(Some(proxy))
    }

    /// The value of the Proxy-Authorization field, if there are credentials.
    fn authorization(&self) -> Option<String> {
        let Credentials { user, password } = self.credentials.as_ref()?;
        basic_authorization(&format!("{user}:{password}"))
    }
}

/// User and password in front of a host.
fn credentials(text: &str) -> Result<Credentials, Problem> {
    // Where a URL is shown, its user is looked for up to these characters.
    let ends_user = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>".contains(c);
    if text.contains(ends_user) {
        let problem = Problem::new("the user and password of the proxy have a character that no URL has");
        return Err(problem.with_hint("percent-encode it, such as %2F for /"));
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decoded(user)?, decoded(password)?);
    if user.contains(':') {
        // RFC 7617 section 2.
        return Err(Problem::new("the user in the proxy's URL has a `:`"));
    }
    Ok(Credentials { user, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Proxy>, Problem> {
        Proxy::parse(text, true)
    }

    #[test]
    fn proxies_that_are_understood() {
        for (text, kind, authority, host, port) in [
            ("http://127.0.0.1:3128", ProxyKind::Http, "127.0.0.1:3128", "127.0.0.1", 3128),
            ("HTTP://Proxy.Test:80/", ProxyKind::Http, "Proxy.Test:80", "proxy.test", 80),
            ("socks5://[::1]:1080", ProxyKind::Socks5, "[::1]:1080", "::1", 1080),
            ("socks5h://a.test:1080", ProxyKind::Socks5Names, "a.test:1080", "a.test", 1080),
        ] {
            let proxy = parse(text).unwrap().unwrap();
            assert_eq!((proxy.kind, &*proxy.authority), (kind, authority), "{text}");
            assert_eq!((&*proxy.host, proxy.port, proxy.credentials), (host, port, None), "{text}");
            assert_eq!(proxy.forward.is_some(), kind == ProxyKind::Http, "{text}");
        }
        assert_eq!(parse("none").unwrap(), None);
        assert_eq!(Proxy::parse("http://a:1", false).unwrap().unwrap().forward, None);
    }

    #[test]
    fn user_and_password_are_decoded() {
        let proxy = parse("http://me:p%40ss%3a@host:81").unwrap().unwrap();
        let credentials = proxy.credentials.clone().unwrap();
        assert_eq!((&*credentials.user, &*credentials.password), ("me", "p@ss:"));
        // RFC 7617: base64 of `me:p@ss:`.
        let authorization = proxy.forward.as_ref().unwrap().authorization.as_deref();
        assert_eq!(authorization, Some("Basic bWU6cEBzczo="));
        assert!(!format!("{proxy:?}").contains("p@ss"), "{proxy:?}");
        let alone = parse("socks5://me@host:81").unwrap().unwrap().credentials.unwrap();
        assert_eq!((&*alone.user, &*alone.password), ("me", ""));
    }

    #[test]
    fn proxies_that_are_refused() {
        let long = format!("socks5://{}:topsecret@a:1", "u".repeat(256));
        for (text, message) in [
            ("", "the proxy has no scheme"),
            ("me:topsecret@127.0.0.1:3128", "the proxy has no scheme"),
            ("https://a:1", "proxies that are spoken to over TLS are not supported"),
            ("socks4://me:topsecret@a:1", "the proxy is none of http://, socks5:// and socks5h://"),
            ("http://a", "`a` has no port"),
            ("http://me:topsecret@a", "`a` has no port"),
            ("http://a:0", "the port of `a` is not a number from 1 to 65535"),
            ("http://:1", "the URL has no host"),
            ("http://a:1/x", "the proxy has something behind its host and port"),
            (
                "http://me:topsecret%zz@a:1",
                "the user and password in the URL are not percent-encoded correctly",
            ),
            (
                "http://me:top/secret@a:1",
                "the user and password of the proxy have a character that no URL has",
            ),
            ("http://m%3ae:topsecret@a:1", "the user in the proxy's URL has a `:`"),
            ("socks5://:topsecret@a:1", "SOCKS5 takes a user of 1 to 255 bytes, and no longer password"),
            (&long, "SOCKS5 takes a user of 1 to 255 bytes, and no longer password"),
        ] {
            let problem = parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert_eq!(problem.message, message, "{text}");
            assert!(!format!("{problem:?}").contains("secret"), "{problem:?}");
        }
    }
}
