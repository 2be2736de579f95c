//! The network of a cluster, which carries and breaks its connections: the fault proxy, or namespaces.

mod namespaces;
mod rules;

use core::net::{Ipv4Addr, SocketAddr};
use std::io;

use crate::error::ClusterError;
use crate::fault::{Action, Impairment};
use crate::proxy::{LinkName, Proxy};
use crate::spec::{NetworkKind, Spec};
use namespaces::Namespaces;

/// The ports of each node by name.
pub(crate) type Ports = Vec<Vec<(String, u16)>>;

/// Which links something happens to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The nodes that are hit.
    pub(crate) nodes: Vec<usize>,
    /// If `true`, only links with exactly one end among these nodes and the other end at another node are
    /// hit; never those of the load.
    pub(crate) is_across: bool,
    /// The links of this port alone.
    pub(crate) port: Option<String>,
}

impl Extent {
    /// Returns `true` if the extent includes the traffic between a client, which is the load or a node, and a
    /// node.
    fn is_between(&self, from: Option<usize>, to: usize) -> bool {
        let of_from = from.map(|from| self.nodes.contains(&from));
        let of_to = self.nodes.contains(&to);
        if self.is_across { of_from == Some(!of_to) } else { of_to || of_from == Some(true) }
    }

    /// Returns `true` if the extent includes a link.
    fn has(&self, link: &LinkName) -> bool {
        self.port.as_ref().is_none_or(|port| *port == link.port) && self.is_between(link.from, link.to)
    }
}

/// The network of a cluster, which carries and breaks its connections.
#[derive(Debug)]
pub(crate) enum Network {
    /// Nodes are on loopback, and some connections go through the proxy.
    Proxy(Proxy),
    /// Each node has a network of its own.
    Namespaces(Namespaces),
}

impl Network {
    /// On loopback, without links.
    pub(crate) fn loopback() -> Self {
        Self::Proxy(Proxy::new())
    }

    /// The network that a spec asks for. If it leaves the choice and there are no namespaces, it is the
    /// proxy, and why is returned. `links` are those that the spec names; `free` gives a proxy its ports.
    pub(crate) fn open(
        spec: &Spec,
        links: Vec<LinkName>,
        ports: &Ports,
        free: &mut dyn FnMut() -> io::Result<u16>,
        seed: u64,
    ) -> Result<(Self, Option<String>), ClusterError> {
        let mut note = None;
        if spec.network != NetworkKind::Proxy {
            match Self::namespaces(spec, &links, ports, seed) {
                Ok(network) => return Ok((network, None)),
                Err(error) if spec.network == NetworkKind::Namespaces => return Err(error),
                Err(error) => note = Some(format!("faults go through the proxy: {error}")),
            }
        }
        let mut proxy = Proxy::new();
        let opened = links.into_iter().try_for_each(|link| {
            let to = ports[link.to].iter().find(|(name, _)| *name == link.port);
            proxy.open(link, free()?, to.map_or(0, |(_, port)| *port), spec.fault_seed).map(|_| ())
        });
        opened.map_err(|error| ClusterError::System { what: "cannot open ports", error })?;
        Ok((Self::Proxy(proxy), note))
    }

    fn namespaces(spec: &Spec, links: &[LinkName], ports: &Ports, seed: u64) -> Result<Self, ClusterError> {
        let network = Self::Namespaces(Namespaces::open(links.to_vec(), ports.clone(), seed)?);
        // Faults that the system cannot cause are reported before anything is started, not in the middle of a
        // load.
        for fault in &spec.faults {
            let impairment = match fault.action {
                Action::Links(impairment) => impairment,
                Action::Partition { .. } => Impairment::Cut,
                _ => continue,
            };
            let everything =
                Extent { nodes: (0..ports.len()).collect(), is_across: false, port: fault.port.clone() };
            let tried = network.begin(0, impairment, &everything).and_then(|()| network.end(0));
            tried.map_err(|reason| ClusterError::Network(format!("`{}`: {reason}", fault.name)))?;
        }
        Ok(network)
    }

    /// The address of a node.
    pub(crate) fn host(&self, node: usize) -> Ipv4Addr {
        match self {
            Self::Proxy(_) => Ipv4Addr::LOCALHOST,
            Self::Namespaces(namespaces) => namespaces.host(node),
        }
    }

    /// The address of a port of a node for another node or the load, if it differs from
    /// the one that the node itself announces.
    pub(crate) fn detour(&self, from: Option<usize>, to: usize, port: &str) -> Option<SocketAddr> {
        match self {
            Self::Proxy(proxy) => {
                proxy.port(from, to, port).map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            }
            Self::Namespaces(_) => None,
        }
    }

    /// Does something to links, until it is [ended](Self::end) by the same number.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub(crate) fn begin(&self, number: u64, impairment: Impairment, extent: &Extent) -> Result<(), String> {
        match self {
            Self::Proxy(proxy) => {
                proxy.begin(number, impairment, |link| extent.has(link));
                Ok(())
            }
            Self::Namespaces(namespaces) => namespaces.begin(number, impairment, extent),
        }
    }

    /// Ends the impairment with this number.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub(crate) fn end(&self, number: u64) -> Result<(), String> {
        match self {
            Self::Proxy(proxy) => {
                proxy.end(number);
                Ok(())
            }
            Self::Namespaces(namespaces) => namespaces.end(number),
        }
    }

    /// Runs code in the network of a node, without broken links in between. Processes that are started there
    /// have the network of the node.
    ///
    /// # Errors
    /// No thread can be started there.
    pub(crate) fn at<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self {
            Self::Proxy(_) => Ok(work()),
            Self::Namespaces(namespaces) => namespaces.at(node, work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_has_the_links_of_its_nodes_or_those_across() {
        let of = |is_across, port: Option<&str>| Extent {
            nodes: vec![0, 1],
            is_across,
            port: port.map(str::to_owned),
        };
        let link = |from, to| LinkName { from, to, port: "raft".to_owned() };
        for (from, to, around, across) in [
            (None, 0, true, false),
            (None, 2, false, false),
            (Some(0), 1, true, false),
            (Some(0), 2, true, true),
            (Some(2), 1, true, true),
            (Some(2), 3, false, false),
        ] {
            assert_eq!(of(false, None).has(&link(from, to)), around, "{from:?} {to}");
            assert_eq!(of(true, Some("raft")).has(&link(from, to)), across, "{from:?} {to}");
            assert!(!of(false, Some("http")).has(&link(from, to)));
        }
    }
}
