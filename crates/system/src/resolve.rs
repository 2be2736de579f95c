//! Names to addresses, before a run: this blocks.

use core::net::{IpAddr, SocketAddr};
use std::fmt;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use plimsoll_core::Nanos;

/// Which addresses are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Both.
    #[default]
    Any,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
}

impl Family {
    const fn takes(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// Reason why a name has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The resolver found nothing, or could not ask.
    NotFound {
        /// The name.
        host: String,
        /// The resolver's error message.
        reason: String,
    },
    /// There are addresses, but none of the wanted family.
    OtherFamily {
        /// The name.
        host: String,
        /// The family that was asked for.
        family: Family,
        /// An address that there is.
        found: IpAddr,
    },
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { host, reason } => write!(f, "cannot resolve host `{host}`: {reason}"),
            Self::OtherFamily { host, family, found } => {
                let wanted = if *family == Family::V4 { "IPv4" } else { "IPv6" };
                write!(f, "host `{host}` has no {wanted} address, only others such as {found}")
            }
        }
    }
}

impl std::error::Error for ResolveError {}

/// Every address of `host` in the resolver's order (`getaddrinfo`: hosts file, DNS…), each once. A literal
/// address, IPv6 with or without brackets, is its own answer.
///
/// # Errors
/// When there is no address, or none of `family`.
pub fn resolve(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, ResolveError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let not_found = |reason: String| ResolveError::NotFound { host: host.to_owned(), reason };
    if bare.is_empty() {
        return Err(not_found("the name is empty".to_owned()));
    }
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    built_in::use_alone();
    let all = (bare, port).to_socket_addrs().map_err(|error| not_found(reason(&error)))?;
    let mut found = None;
    let mut addresses = Vec::new();
    for address in all {
        found.get_or_insert(address.ip());
        if family.takes(address.ip()) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    match found {
        _ if !addresses.is_empty() => Ok(addresses),
        Some(found) => Err(ResolveError::OtherFamily { host: host.to_owned(), family, found }),
        None => Err(not_found("the resolver gave no address".to_owned())),
    }
}

/// Name resolution of a static program. Its C library would load the shared objects that `/etc/nsswitch.conf`
/// names, which only fit the very version of glibc that it was built with: elsewhere they may crash it.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod built_in {
    use std::ffi::{CStr, c_char, c_int};
    use std::sync::Once;

    unsafe extern "C" {
        /// Decides where a database is looked up, before the configuration of the system does.
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }

    const HOSTS: &CStr = c"hosts";
    /// The sources that are in the C library itself since 2.34.
    const SOURCES: &CStr = c"files dns";

    /// Has names looked up in the hosts file and by DNS only.
    pub(super) fn use_alone() {
        static ONCE: Once = Once::new();
        // SAFETY: both are strings that end with zero and live for ever. It only fails for a database that it
        // does not know, and then changes nothing.
        ONCE.call_once(|| unsafe {
            __nss_configure_lookup(HOSTS.as_ptr(), SOURCES.as_ptr());
        });
    }
}

/// The resolver's words without the standard library's preamble.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").map_or(text.clone(), str::to_owned)
}

/// Returns `true` if a TCP connection to this address can be opened within `limit`. The connection is closed
/// again.
pub fn can_connect(address: SocketAddr, limit: Nanos) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_nanos(limit.0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_their_own_answer() {
        let v4 = resolve("127.0.0.1", 80, Family::Any).expect("a literal");
        assert_eq!(v4, ["127.0.0.1:80".parse().unwrap()]);
        for host in ["::1", "[::1]"] {
            assert_eq!(resolve(host, 443, Family::V6).expect("a literal"), ["[::1]:443".parse().unwrap()]);
        }
    }

    #[test]
    fn addresses_are_given_once() {
        let all = resolve("localhost", 1, Family::Any).expect("localhost");
        for (index, address) in all.iter().enumerate() {
            assert!(address.ip().is_loopback());
            assert!(!all[..index].contains(address), "{all:?}");
        }
    }

    #[test]
    fn the_family_is_kept_to() {
        let error = resolve("127.0.0.1", 80, Family::V6).expect_err("no IPv6");
        assert_eq!(error.to_string(), "host `127.0.0.1` has no IPv6 address, only others such as 127.0.0.1");
        assert!(resolve("::1", 80, Family::V4).is_err());
    }

    #[test]
    fn a_name_that_is_none_is_an_error_that_names_it() {
        for host in ["", "no such host", "[]"] {
            let error = resolve(host, 80, Family::Any).expect_err("not a name").to_string();
            assert!(error.starts_with(&format!("cannot resolve host `{host}`: ")), "{error}");
        }
    }
}
