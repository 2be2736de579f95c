//! Hosts that are recorded, by their names.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;
use std::fmt;

use plimsoll_core::text::hex;
use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints};
use rustls_pki_types::ServerName;
use sha2::{Digest as _, Sha256};

/// Bytes of the hash in the name of a file: enough to tell the sets of names of one person apart.
const HASH_BYTES: usize = 6;

/// Hosts that are recorded, and that an authority may sign certificates for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Empty for all hosts.
    names: BTreeSet<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Address(IpAddr),
    Exactly(String),
    /// All names that end with a dot and this one.
    Below(String),
}

impl Hosts {
    /// The hosts of these names: `api.example.test`, `*.example.test` for all names below that domain, or an
    /// IP address. No name stands for all hosts.
    ///
    /// # Errors
    /// In words: one of them is no name of a host.
    pub fn new<'t>(names: impl IntoIterator<Item = &'t str>) -> Result<Self, String> {
        Ok(Self { names: names.into_iter().map(Name::read).collect::<Result<_, _>>()? })
    }

    /// Returns the name for files of the authority of these hosts: every set of names has its own.
    pub fn stem(&self) -> String {
        let mut stem = String::from("ca");
        if !self.names.is_empty() {
            let texts: Vec<String> = self.names.iter().map(Name::to_string).collect();
            stem.push('-');
            stem.push_str(&hex(&Sha256::digest(texts.join("\n").as_bytes())[..HASH_BYTES]));
        }
        stem
    }

    /// Returns `true` if a host, in its [`plain`] form, is one of them.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name.covers(host))
    }

    /// Names that a certificate of the authority may be for; `None` for all.
    ///
    /// X.509 knows no narrower constraint than a domain with all that is below it, so [`has`](Self::has) is
    /// stricter. A kind of names is constrained only if there is a constraint of that kind (RFC 5280 section
    /// 4.2.1.10): kinds that no name is of are excluded.
    pub(crate) fn constraints(&self) -> Option<NameConstraints> {
        if self.names.is_empty() {
            return None;
        }
        let permitted_subtrees: Vec<GeneralSubtree> = self.names.iter().map(Name::subtree).collect();
        let lacks = |is_of_kind: fn(&GeneralSubtree) -> bool| !permitted_subtrees.iter().any(is_of_kind);
        let mut excluded_subtrees = Vec::new();
        if lacks(|tree| matches!(tree, GeneralSubtree::DnsName(_))) {
            excluded_subtrees.push(GeneralSubtree::DnsName(String::new()));
        }
        if lacks(|tree| matches!(tree, GeneralSubtree::IpAddress(CidrSubnet::V4(..)))) {
            let all = CidrSubnet::from_addr_prefix(Ipv4Addr::UNSPECIFIED.into(), 0);
            excluded_subtrees.push(GeneralSubtree::IpAddress(all));
        }
        if lacks(|tree| matches!(tree, GeneralSubtree::IpAddress(CidrSubnet::V6(..)))) {
            let all = CidrSubnet::from_addr_prefix(Ipv6Addr::UNSPECIFIED.into(), 0);
            excluded_subtrees.push(GeneralSubtree::IpAddress(all));
        }
        Some(NameConstraints { permitted_subtrees, excluded_subtrees })
    }
}

/// The names, separated by commas.
impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("all names");
        }
        for (index, name) in self.names.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

impl Name {
    fn read(text: &str) -> Result<Self, String> {
        let host = plain(text);
        let (is_below, name) = match host.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, host.as_str()),
        };
        match (ServerName::try_from(name), is_below) {
            (Ok(ServerName::DnsName(_)), true) => Ok(Self::Below(name.to_owned())),
            (Ok(ServerName::DnsName(_)), false) => Ok(Self::Exactly(name.to_owned())),
            (Ok(ServerName::IpAddress(address)), false) => Ok(Self::Address(IpAddr::from(address))),
            _ => Err(format!("`{text}` is no name of a host")),
        }
    }

    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Address(address) => host.parse() == Ok(*address),
            Self::Exactly(name) => host == name,
            Self::Below(domain) => host
                .strip_suffix(domain.as_str())
                .and_then(|front| front.strip_suffix('.'))
                .is_some_and(|front| !front.is_empty()),
        }
    }

    fn subtree(&self) -> GeneralSubtree {
        match self {
            Self::Address(address) => {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(*address, bits))
            }
            Self::Exactly(name) | Self::Below(name) => GeneralSubtree::DnsName(name.clone()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Exactly(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

/// A host as names are compared: in lower case, without the brackets of an address and the dot of the root.
pub(crate) fn plain(host: &str) -> String {
    let host = host.trim_matches(['[', ']']);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        Hosts::new(names.iter().copied()).expect("names")
    }

    #[test]
    fn hosts_are_those_that_were_named() {
        let some = hosts(&["api.example.test", "*.shop.test", "127.0.0.1", "::1"]);
        for host in
            ["api.example.test", "API.example.test.", "a.shop.test", "a.b.shop.test", "127.0.0.1", "[::1]"]
        {
            assert!(some.has(&plain(host)), "{host}");
        }
        for host in [
            "example.test",
            "x.api.example.test",
            "shop.test",
            "evilshop.test",
            ".shop.test",
            "127.0.0.2",
            "",
            "::",
        ] {
            assert!(!some.has(&plain(host)), "{host}");
        }
        assert!(hosts(&[]).has("any.test") && hosts(&[]).constraints().is_none());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in
            ["", "*", "*.", "a.test:443", "https://a.test", "*.127.0.0.1", "a.*.test", "a b", "10.0.0.0/8"]
        {
            assert_eq!(Hosts::new([text]), Err(format!("`{text}` is no name of a host")));
        }
    }

    #[test]
    fn each_set_of_names_has_files_of_its_own() {
        assert_eq!(hosts(&[]).stem(), "ca");
        let (one, two) = (hosts(&["a.test"]).stem(), hosts(&["b.test", "a.test"]).stem());
        assert!(one.starts_with("ca-") && one.len() == 15 && one != two, "{one} {two}");
        assert_eq!(hosts(&["A.test", "b.test.", "a.test"]).stem(), two);
        assert_ne!(hosts(&["*.a.test"]).stem(), one);
        assert_eq!(hosts(&["b.test", "*.a.test", "::1"]).to_string(), "::1, b.test, *.a.test");
    }
}
