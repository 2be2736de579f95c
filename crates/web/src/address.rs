//! The addresses and names by which the server may be asked.

use core::net::{IpAddr, SocketAddr};

/// The names that a request may have in its `Host`, and the origin that a page of ours has.
///
/// A page of another site can make its own name lead to our address (DNS rebinding). Its requests come to us
/// then, with that name; so none but the names that are known here are answered.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    scheme: &'static str,
    /// With their ports, in small letters.
    known: Vec<String>,
    /// `None` for a unix socket: a port that is forwarded to it may be any.
    port: Option<u16>,
    /// `true` if the server listens on all addresses of the machine: then any address may be asked for, but
    /// no other name.
    any_address: bool,
}

impl Names {
    /// The names of a server that listens on an address.
    pub(crate) fn of_tcp(address: SocketAddr, is_tls: bool, hosts: &[String]) -> Self {
        let port = address.port();
        let scheme = if is_tls { "https" } else { "http" };
        let loopback = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let own = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let given = hosts.iter().map(|host| host.to_ascii_lowercase());
        let names: Vec<String> = loopback.into_iter().chain([own]).chain(given).collect();
        let usual = if is_tls { 443 } else { 80 };
        // Browsers leave out the port that their scheme has without one.
        let bare = if port == usual { names.clone() } else { Vec::new() };
        let known = names.iter().map(|name| format!("{name}:{port}")).chain(bare).collect();
        Self { scheme, known, port: Some(port), any_address: address.ip().is_unspecified() }
    }

    /// The names of a server on a unix socket, which is asked through a forwarded port.
    pub(crate) fn of_unix(hosts: &[String]) -> Self {
        let loopback = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let known = loopback.into_iter().chain(hosts.iter().map(|host| host.to_ascii_lowercase())).collect();
        Self { scheme: "http", known, port: None, any_address: false }
    }

    /// Returns `true` if a request may be for this host.
    pub(crate) fn has(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        if self.known.contains(&host) {
            return true;
        }
        let (name, port) = split(&host);
        match self.port {
            None => self.known.iter().any(|known| known == name) && port.is_none_or(|port| port.is_some()),
            Some(own) => {
                let usual = if self.scheme == "https" { 443 } else { 80 };
                let is_own = port.map_or(own == usual, |port| port == Some(own));
                self.any_address && is_own && is_address(name)
            }
        }
    }

    /// Returns `true` if a page that was asked for as `host` has this origin.
    pub(crate) fn is_origin(&self, origin: &str, host: &str) -> bool {
        let name = origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://"));
        name.is_some_and(|name| name.eq_ignore_ascii_case(host) && self.has(name))
    }
}

/// The name of a host, and its port: `None` without one, `Some(None)` if it is invalid.
fn split(host: &str) -> (&str, Option<Option<u16>>) {
    let port_of = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok());
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port_of(port).flatten())),
        _ => (host, None),
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(name) => name.parse::<core::net::Ipv6Addr>().is_ok(),
        None => name.parse::<core::net::Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_answered() {
        let names = Names::of_tcp("127.0.0.1:7450".parse().unwrap(), false, &[]);
        for host in ["127.0.0.1:7450", "localhost:7450", "LOCALHOST:7450", "[::1]:7450"] {
            assert!(names.has(host), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:7450.evil.test",
            "evil.test:7450",
            "localhost.evil.test:7450",
            "127.0.0.1.nip.io:7450",
            "localhost:7450@evil.test",
            "2130706433:7450",
            "127.1:7450",
            "0.0.0.0:7450",
            "localhost.:7450",
            "localhost:07450",
            " localhost:7450",
        ] {
            assert!(!names.has(host), "{host}");
        }
        assert!(names.is_origin("http://localhost:7450", "localhost:7450"));
        for origin in [
            "null",
            "",
            "https://localhost:7450",
            "http://localhost",
            "http://127.0.0.1:7450",
            "localhost:7450",
        ] {
            assert!(!names.is_origin(origin, "localhost:7450"), "{origin}");
        }
    }

    #[test]
    fn the_usual_port_is_left_out_and_other_names_are_given() {
        let hosts = ["Load.Example.test".to_owned()];
        let names = Names::of_tcp("0.0.0.0:443".parse().unwrap(), true, &hosts);
        for host in ["load.example.test", "load.example.test:443", "192.0.2.7:443", "192.0.2.7", "localhost"]
        {
            assert!(names.has(host), "{host}");
        }
        for host in ["evil.test", "evil.test:443", "192.0.2.7:444", "192.0.2.7.evil.test:443"] {
            assert!(!names.has(host), "{host}");
        }
        assert!(names.is_origin("https://load.example.test", "load.example.test"));
    }

    #[test]
    fn a_unix_socket_may_be_forwarded_to_any_port() {
        let names = Names::of_unix(&[]);
        for host in ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:9000"] {
            assert!(names.has(host), "{host}");
        }
        for host in ["evil.test", "evil.test:8000", "localhost:x", "localhost:99999", "[::2]:9000"] {
            assert!(!names.has(host), "{host}");
        }
    }
}
