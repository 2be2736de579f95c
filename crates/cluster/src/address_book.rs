//! Addresses of a cluster's nodes, and the values of `${…}`.

use core::net::SocketAddr;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_system::ports::free_ports;

use crate::error::{ClusterError, of_file};
use crate::network::{Network, Ports};
use crate::proxy::LinkName;
use crate::spec::Spec;
use crate::state_dir::StateDir;
use crate::template::{self, render};

/// Values of template names that come from outside the spec.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// This program.
    pub program: PathBuf,
    /// Values of parameters, above those of the spec.
    pub values: Vec<(String, String)>,
}

/// The ports of all nodes, and the links between them.
#[derive(Debug)]
pub(crate) struct AddressBook {
    ids: Vec<String>,
    /// Of each node, by name.
    ports: Ports,
    pub(crate) network: Network,
    parameters: Vec<(String, String)>,
    program: PathBuf,
    spec_folder: PathBuf,
    state_dir: StateDir,
    data: Vec<PathBuf>,
    logs: Vec<PathBuf>,
}

impl AddressBook {
    /// Chooses the ports that the spec leaves free, and opens the network, or loopback without links.
    /// Returns the reason if it is not the network that the spec prefers.
    pub(crate) fn new(
        spec: &Spec,
        state_dir: &StateDir,
        surroundings: &Surroundings,
        seed: u64,
        with_network: bool,
    ) -> Result<(Self, Option<String>), ClusterError> {
        let no_ports = |error| ClusterError::System { what: "cannot open ports", error };
        let wanted = spec.nodes.iter().flat_map(|node| &node.ports).filter(|(_, port)| *port == 0).count();
        let links = if with_network { links(spec) } else { Vec::new() };
        let mut free = free_ports(wanted + links.len(), seed).map_err(no_ports)?.into_iter();
        let mut next = || free.next().ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse));
        let mut ports = Vec::new();
        for node in &spec.nodes {
            let mut own = Vec::new();
            for (name, port) in &node.ports {
                own.push((name.clone(), if *port == 0 { next().map_err(no_ports)? } else { *port }));
            }
            ports.push(own);
        }
        let (network, note) = match with_network {
            true => Network::open(spec, links, &ports, &mut next, seed)?,
            false => (Network::loopback(), None),
        };
        let addresses = Self::of(spec, state_dir, surroundings, ports, network);
        Ok((addresses.map_err(of_file("find", state_dir.root()))?, note))
    }

    /// Free ports where the spec leaves them open, and no links.
    pub(crate) fn provisional(
        spec: &Spec,
        state_dir: &StateDir,
        surroundings: &Surroundings,
    ) -> io::Result<Self> {
        // Each another one, as it will be.
        let mut next = 0;
        let mut port = |(name, port): &(String, u16)| {
            next += 1;
            (name.clone(), if *port == 0 { next } else { *port })
        };
        let ports = spec.nodes.iter().map(|node| node.ports.iter().map(&mut port).collect()).collect();
        Self::of(spec, state_dir, surroundings, ports, Network::loopback())
    }

    fn of(
        spec: &Spec,
        state_dir: &StateDir,
        surroundings: &Surroundings,
        ports: Ports,
        network: Network,
    ) -> io::Result<Self> {
        let mut parameters = surroundings.values.clone();
        parameters.extend(spec.parameters.iter().cloned());
        let folder = Path::new(&spec.source.name).parent().unwrap_or(Path::new(""));
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        Ok(Self {
            ids: spec.nodes.iter().map(|node| node.id.clone()).collect(),
            ports,
            network,
            parameters,
            program: surroundings.program.clone(),
            spec_folder: std::path::absolute(folder)?,
            state_dir: state_dir.clone(),
            data: spec.nodes.iter().map(|node| state_dir.data(node)).collect(),
            logs: spec.nodes.iter().map(|node| state_dir.log(node)).collect(),
        })
    }

    /// The port that a node itself listens on.
    pub(crate) fn own_port(&self, node: usize, name: &str) -> Option<u16> {
        port_of(self.ports.get(node)?, name)
    }

    /// The address at which it listens; port 0, which is never in use, if it has none of this name.
    pub(crate) fn own_address(&self, node: usize, name: &str) -> SocketAddr {
        self.at(node, self.own_port(node, name).unwrap_or_default())
    }

    fn at(&self, node: usize, port: u16) -> SocketAddr {
        SocketAddr::from((self.network.host(node), port))
    }

    pub(crate) fn ports(&self, node: usize) -> &[(String, u16)] {
        &self.ports[node]
    }

    /// The number of the node with this id.
    pub(crate) fn node(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|known| known == id)
    }

    /// A port of a node as another node, or the load, reaches it.
    fn reached(&self, from: Option<usize>, to: usize, name: &str) -> Option<SocketAddr> {
        let own = || Some(self.at(to, self.own_port(to, name)?));
        self.network.detour(from, to, name).or_else(own)
    }

    /// A text of a node with its values; of one that is for a peer, with those of that one.
    pub(crate) fn of_node(&self, text: &str, node: usize, peer: Option<usize>) -> String {
        render(text, &|name| self.value(name, node, peer).or_else(|| self.shared(name, Some(node))))
    }

    /// A text of the load with its values; `leader` is the leading node.
    pub(crate) fn of_load(&self, text: &str, leader: Option<usize>) -> String {
        let of_leader = |name: &str| {
            let (name, form) = form_of(name);
            let port = match name {
                "leader" => self.ports.get(leader?)?.first()?.0.as_str(),
                name => name.strip_prefix("leader.")?,
            };
            Some(form(self.reached(None, leader?, port)?))
        };
        render(text, &|name| of_leader(name).or_else(|| self.shared(name, None)))
    }

    /// Returns the value of a name that only the texts of a node may use.
    fn value(&self, name: &str, node: usize, peer: Option<usize>) -> Option<String> {
        let path = |path: &Path| Some(path.display().to_string());
        let first = || self.ports[node].first().map(|(_, port)| *port);
        match name {
            "id" => return Some(self.ids[node].clone()),
            "data" => return path(&self.data[node]),
            "log" => return path(&self.logs[node]),
            "port" => return Some(first()?.to_string()),
            "host" => return Some(self.network.host(node).to_string()),
            "address" => return Some(self.at(node, first()?).to_string()),
            "peer.id" => return Some(self.ids[peer?].clone()),
            _ => {}
        }
        if let Some(port) = name.strip_prefix("port.") {
            return Some(self.own_port(node, port)?.to_string());
        }
        if let Some(port) = name.strip_prefix("address.") {
            return Some(self.at(node, self.own_port(node, port)?).to_string());
        }
        let (name, form) = form_of(name);
        if let Some(port) = name.strip_prefix("peers.") {
            let others = (0..self.ids.len()).filter(|other| *other != node);
            let addresses = others.filter_map(|other| self.reached(Some(node), other, port));
            return Some(addresses.map(form).collect::<Vec<_>>().join(","));
        }
        let path = name.strip_prefix("peer.")?;
        match path.split_once('.') {
            Some((id, port)) => Some(form(self.reached(Some(node), self.node(id)?, port)?)),
            None => Some(form(self.reached(Some(node), peer?, path)?)),
        }
    }

    /// Returns the value of a name that every text may use. In the texts of a node, the addresses of nodes
    /// are their own: they do not go through the links of the load.
    fn shared(&self, name: &str, from: Option<usize>) -> Option<String> {
        match name {
            "directory" => return Some(self.state_dir.root().display().to_string()),
            "spec" => return Some(self.spec_folder.display().to_string()),
            "plimsoll" => return Some(self.program.display().to_string()),
            _ => {}
        }
        if let Some(value) = template::of_parameters(name, &self.parameters) {
            return Some(value);
        }
        let (name, form) = form_of(name);
        let address_to = |to: usize, port: &str| match from {
            None => self.reached(None, to, port),
            Some(_) => Some(self.at(to, self.own_port(to, port)?)),
        };
        if let Some(port) = name.strip_prefix("nodes.") {
            let addresses: Vec<String> =
                (0..self.ids.len()).filter_map(|node| address_to(node, port)).map(form).collect();
            return (!addresses.is_empty()).then(|| addresses.join(","));
        }
        let (id, port) = name.strip_prefix("node.")?.split_once('.')?;
        Some(form(address_to(self.node(id)?, port)?))
    }
}

fn port_of(ports: &[(String, u16)], name: &str) -> Option<u16> {
    ports.iter().find(|(known, _)| known == name).map(|(_, port)| *port)
}

/// A name without `.port` or `.host` behind it, and how an address is written: whole, or that part of it.
fn form_of(name: &str) -> (&str, fn(SocketAddr) -> String) {
    let part = |suffix: &str| name.strip_suffix(suffix);
    match (part(".port"), part(".host")) {
        (Some(bare), _) => (bare, |address| address.port().to_string()),
        (None, Some(bare)) => (bare, |address| address.ip().to_string()),
        (None, None) => (name, |address| address.to_string()),
    }
}

/// The links that a spec asks for.
fn links(spec: &Spec) -> Vec<LinkName> {
    let mut links = Vec::new();
    for link in &spec.links {
        for (to, node) in spec.nodes.iter().enumerate() {
            if !node.ports.iter().any(|(name, _)| *name == link.port) {
                continue;
            }
            let name = |from| LinkName { from, to, port: link.port.clone() };
            let peers = (0..spec.nodes.len()).filter(|from| link.peers && *from != to);
            links.extend(peers.map(|from| name(Some(from))));
            links.extend(link.load.then(|| name(None)));
        }
    }
    links
}
