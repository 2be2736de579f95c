//! Servers that the plan does not name: they come up while the run goes on, in a URL that a response, a
//! variable or a script has.

use std::fmt;
use std::sync::OnceLock;

use plimsoll_wire::http2::HeaderBlockCache;
use plimsoll_wire::tls::{ClientConfig, ClientOptions};

use crate::protocol::ProtocolPreference;
use crate::route::Routes;
use crate::url::Url;
use crate::{Fingerprint, Target, TlsTarget};

/// A server that came up while the run goes on, as its URL has it.
#[derive(Clone, PartialEq, Eq)]
pub struct DynamicOrigin {
    url: Url,
}

impl DynamicOrigin {
    /// Reads the text between `http://` or `https://` and the path.
    ///
    /// # Errors
    /// The problem with it. A user or password is: RFC 9110 section 4.2.4 asks to take that for an error
    /// where a URL is from elsewhere.
    pub fn read(https: bool, authority: &[u8]) -> Result<Self, String> {
        let Ok(authority) = std::str::from_utf8(authority) else {
            return Err(format!("`{}` is not a host", authority.escape_ascii()));
        };
        if authority.contains('@') {
            return Err("a URL that comes up during the run cannot have a user or password".to_owned());
        }
        let scheme = if https { "https" } else { "http" };
        match Url::parse(&format!("{scheme}://{authority}/"), |tail| Ok(tail.to_owned())) {
            Ok(url) => Ok(Self { url }),
            Err(problem) => Err(problem.message),
        }
    }

    /// Returns `true` if scheme, host and port are the same.
    pub fn is(&self, other: &Self) -> bool {
        self.url.same_server(&other.url)
    }

    /// Returns `true` if its connections use TLS.
    pub fn https(&self) -> bool {
        self.url.is_secure()
    }

    /// `host[:port]` as in the URL.
    pub fn authority(&self) -> &str {
        &self.url.authority
    }

    /// Returns the URL of the server without a path: `scheme://host[:port]`.
    pub fn origin(&self) -> String {
        let scheme = self.url.scheme.scheme;
        format!("{scheme}://{}", self.url.authority)
    }
}

impl fmt::Debug for DynamicOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Newcomer({})", self.origin())
    }
}

/// Settings for servers that the plan does not name: the flags and settings that hold for all servers.
pub struct DynamicOrigins {
    pub(crate) routes: Routes,
    pub(crate) preference: ProtocolPreference,
    /// The name that TLS uses instead of the host's.
    pub(crate) sni: Option<String>,
    /// The configuration that the plan's own targets have, if one of them speaks TLS.
    pub(crate) tls: Option<(ClientConfig, Fingerprint)>,
    /// Options that the configuration is built from when it is first needed: reading the system's authorities
    /// takes a while.
    pub(crate) options: ClientOptions,
    pub(crate) built: OnceLock<Result<ClientConfig, String>>,
}

impl DynamicOrigins {
    /// Most servers of this kind in one run. Each may have as many connections as the plan allows, and there
    /// is hardly a reason to have more; a chain of redirects that names new hosts for ever has an end here.
    pub const MOST: usize = 64;

    /// Returns a target for the server, with an address that is still to be resolved and without steps of its
    /// own. The first call for https may read the system's authorities: this may block.
    ///
    /// # Errors
    /// If TLS is needed and cannot be set up.
    pub fn target(&self, dynamic_origin: &DynamicOrigin) -> Result<Target, String> {
        let mut target = self.outline(dynamic_origin);
        if dynamic_origin.https() {
            let (config, settings) = self.tls()?;
            let server_name = self.sni.clone().unwrap_or_else(|| dynamic_origin.url.host.clone());
            target.tls = Some(TlsTarget { config, server_name, settings });
        }
        Ok(target)
    }

    /// Returns the same target without TLS, whether it is needed or not: everything that is known at once.
    pub fn outline(&self, dynamic_origin: &DynamicOrigin) -> Target {
        let protocol = self.preference.protocol(&dynamic_origin.url);
        let mut book = HeaderBlockCache::new();
        book.seal();
        Target {
            authority: dynamic_origin.authority().to_owned(),
            urls: vec![dynamic_origin.origin()],
            address: self.routes.lead(&dynamic_origin.url),
            proxy: self.routes.proxy.clone(),
            pool: Vec::new(),
            fail_over: true,
            fail_back: false,
            tls: None,
            protocol,
            opening: None,
            book: protocol.may_be_http2().then_some(book),
        }
    }

    fn tls(&self) -> Result<(ClientConfig, Fingerprint), String> {
        if let Some((config, settings)) = &self.tls {
            return Ok((config.clone(), *settings));
        }
        let build = || ClientConfig::new(&self.options).map_err(|error| format!("TLS: {error}"));
        self.built.get_or_init(build).clone().map(|config| (config, Fingerprint::EMPTY))
    }
}

impl fmt::Debug for DynamicOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere")
            .field("wish", &self.preference)
            .field("sni", &self.sni)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_the_same_by_scheme_host_and_port() {
        let read = |https, authority: &str| DynamicOrigin::read(https, authority.as_bytes()).unwrap();
        assert!(read(false, "Host").is(&read(false, "host:80")));
        assert!(read(true, "host").is(&read(true, "host:443")));
        assert!(!read(true, "host:80").is(&read(false, "host:80")));
        assert!(!read(false, "host:81").is(&read(false, "host")));
        assert_eq!(read(true, "[::1]:8443").origin(), "https://[::1]:8443");
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for (authority, said) in [
            (&b"me:secret@host"[..], "cannot have a user"),
            (b"", "has no host"),
            (b"host:0", "port"),
            (b"a b", "is not a host"),
            (b"\xff", "is not a host"),
        ] {
            let error = DynamicOrigin::read(false, authority).unwrap_err();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }
}
