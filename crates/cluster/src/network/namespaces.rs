//! A network of namespaces: each node in one of its own, with a router between them and the load.
//!
//! ```text
//! the load's network          the router's                     those of the nodes
//! plimsoll18-77 ─────────── load        n0 ─────────────────── eth0 (198.18.77.1)
//! (198.18.77.254)                       n1 ─────────────────── eth0 (198.18.77.2)
//! ```
//!
//! The packet filter of the router drops and answers packets, and queues of its devices hold them back.
//! None of the namespaces has a name: with this process and the last one of the nodes, all of it is gone.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use plimsoll_system::namespace::NetworkNamespace;

use super::rules::{Packets, Range, Rules, Wrong, device, sockets};
use super::{Extent, Ports};
use crate::error::ClusterError;
use crate::fault::Impairment;
use crate::proxy::LinkName;

/// Folders of system programs that are not on everyone's path.
const FOLDERS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// The networks of a cluster's nodes. They go when this is dropped and the nodes have ended.
#[derive(Debug)]
pub(crate) struct Namespaces {
    range: Range,
    router: NetworkNamespace,
    nodes: Vec<NetworkNamespace>,
    /// The links that something may happen to. None: everything between the nodes.
    links: Vec<LinkName>,
    ports: Ports,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    wrong: Vec<Wrong>,
    /// The queues that there are, by device.
    queues: BTreeMap<String, String>,
}

impl Namespaces {
    /// Makes a network for nodes with these ports. Where its addresses are depends on `seed`.
    pub(crate) fn open(links: Vec<LinkName>, ports: Ports, seed: u64) -> Result<Self, ClusterError> {
        let make = || {
            NetworkNamespace::new()
                .map_err(|error| ClusterError::Network(format!("no network namespace can be made: {error}")))
        };
        let router = make()?;
        let nodes = ports.iter().map(|_| make()).collect::<Result<Vec<_>, _>>()?;
        let range = join_load(&router, seed)?;
        let network = Self { range, router, nodes, links, ports, state: Mutex::default() };
        network.connect().map_err(ClusterError::Network)?;
        Ok(network)
    }

    /// Connects router and nodes. The load's end is connected first: a later failure removes it again.
    fn connect(&self) -> Result<(), String> {
        let Self { range, router, .. } = self;
        let (own, prefix) = (range.router(), range.prefix());
        let mut of_router = format!(
            "link set lo up\n\
             link set load up\n\
             address add {own} peer {} dev load\n",
            range.of(None)
        );
        for (index, node) in self.nodes.iter().enumerate() {
            let (device, path) = (device(Some(index)), node.path());
            of_router.push_str(&format!(
                "link add {device} type veth peer name eth0 netns {}\n\
                 link set {device} up\n\
                 address add {own} peer {} dev {device}\n",
                path.display(),
                range.of(Some(index)),
            ));
        }
        let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        within(router, || batch("ip", &of_router))?;
        within(router, || forward().map_err(|error| format!("packets cannot be forwarded: {error}")))?;
        for (index, node) in self.nodes.iter().enumerate() {
            // Without segmentation offload, so that one loss is one packet and not forty.
            let of_node = format!(
                "link set lo up\n\
                 link set eth0 gso_max_segs 1 up\n\
                 address add {} peer {own} dev eth0\n\
                 route add {prefix} via {own} dev eth0\n",
                range.of(Some(index)),
            );
            within(node, || batch("ip", &of_node))?;
        }
        // A first, empty set of rules reveals missing programs before they are needed.
        self.apply(&mut State::default())
    }

    pub(crate) fn host(&self, node: usize) -> Ipv4Addr {
        self.range.of(Some(node))
    }

    pub(crate) fn at<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.nodes[node].within(work)
    }

    pub(crate) fn begin(&self, number: u64, impairment: Impairment, extent: &Extent) -> Result<(), String> {
        let mut packets = self.packets(extent);
        if impairment == Impairment::HalfOpen {
            // A half-open node receives packets, but none of its own arrive.
            packets.retain(|packets| packets.source.is_some_and(|node| extent.nodes.contains(&node)));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_beginning = impairment == Impairment::Reset;
        state.wrong.push(Wrong { number, impairment, packets: packets.clone(), is_beginning });
        let mut done = self.apply(&mut state);
        if is_beginning && done.is_ok() {
            done = self.reset(&packets);
            state.wrong.iter_mut().for_each(|wrong| wrong.is_beginning = false);
            done = done.and_then(|()| self.apply(&mut state));
        }
        done.inspect_err(|_| {
            state.wrong.pop();
            // The error of the fault matters more than one of the cleanup.
            let _ = self.apply(&mut state);
        })
    }

    pub(crate) fn end(&self, number: u64) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wrong.retain(|wrong| wrong.number != number);
        self.apply(&mut state)
    }

    /// Resets the connections that send such packets. The filter would only reach a side that sends: a side
    /// that waits for an answer would not notice.
    fn reset(&self, packets: &[Packets]) -> Result<(), String> {
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(sockets) = sockets(index, packets, self.range) else { continue };
            let mut arguments = vec!["-K", "-t", "state", "connected"];
            arguments.extend(sockets.iter().map(String::as_str));
            within(node, || told("ss", &arguments, ""))?;
        }
        Ok(())
    }

    /// The packets of the links in an extent.
    fn packets(&self, extent: &Extent) -> Vec<Packets> {
        let port = |node: usize, name: &str| {
            self.ports[node].iter().find(|(known, _)| known == name).map(|(_, port)| *port)
        };
        if !self.links.is_empty() {
            let links = self.links.iter().filter(|link| extent.has(link));
            return links
                .flat_map(|link| Packets::between(link.from, link.to, port(link.to, &link.port)))
                .collect();
        }
        let count = self.nodes.len();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to && extent.is_between(Some(*from), *to));
        let of_pair = |(from, to): (usize, usize)| {
            let packets = match &extent.port {
                None => Some(None),
                // A node without such a port is not affected.
                Some(name) => port(to, name).map(Some),
            };
            packets.map(|port| Packets::between(Some(from), to, port)).into_iter().flatten()
        };
        pairs.flat_map(of_pair).collect()
    }

    /// Applies the rules for all current impairments to the router.
    fn apply(&self, state: &mut State) -> Result<(), String> {
        let rules = Rules::new(&state.wrong, self.range);
        let mut script = String::new();
        for device in
            state.queues.keys().filter(|device| rules.queues.get(*device) != state.queues.get(*device))
        {
            script.push_str(&format!("qdisc del dev {device} root\n"));
        }
        let new = rules.queues.iter().filter(|(device, made)| state.queues.get(*device) != Some(*made));
        new.for_each(|(_, made)| script.push_str(made));
        if !script.is_empty() {
            let old = std::mem::take(&mut state.queues);
            if let Err(reason) = within(&self.router, || batch("tc", &script)) {
                // A part of it may exist already, and all of it has to go.
                for device in old.keys().chain(rules.queues.keys()) {
                    let arguments = ["qdisc", "delete", "dev", device, "root"];
                    let _ = within(&self.router, || told("tc", &arguments, ""));
                }
                return Err(reason);
            }
            state.queues = rules.queues;
        }
        within(&self.router, || told("nft", &["-f", "-"], &rules.filter))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // The router's namespace would remove it as well, a little later.
        let _ = told("ip", &["link", "delete", &self.range.device()], "");
    }
}

/// Connects the load's network with the router, over a range of addresses that is unused here.
fn join_load(router: &NetworkNamespace, seed: u64) -> Result<Range, ClusterError> {
    let mut reason = "all addresses for it are taken".to_owned();
    for range in Range::all(seed) {
        if !is_free(range).map_err(ClusterError::Network)? {
            continue;
        }
        let (device, path) = (range.device(), router.path());
        let path = path.display().to_string();
        // Only one cluster can create a device of this name, which decides who has the range.
        let made =
            told("ip", &["link", "add", &device, "type", "veth", "peer", "name", "load", "netns", &path], "");
        match made {
            Err(error) if error.contains("File exists") => continue,
            Err(error) => return Err(ClusterError::Network(error)),
            Ok(()) => {}
        }
        let (own, router, prefix) = (range.of(None), range.router(), range.prefix());
        let script = format!(
            "link set {device} gso_max_segs 1 up\n\
             address add {own} peer {router} dev {device}\n\
             route add {prefix} via {router} dev {device} src {own}\n"
        );
        match batch("ip", &script) {
            Ok(()) => return Ok(range),
            Err(error) => reason = error,
        }
        // The route may have belonged to another program.
        let _ = told("ip", &["link", "delete", &device], "");
    }
    Err(ClusterError::Network(reason))
}

/// Returns `true` if only the default route covers a range.
fn is_free(range: Range) -> Result<bool, String> {
    let prefix = range.prefix();
    let routes = |how: &str| output("ip", &["-4", "-o", "route", "show", "table", "all", how, &prefix], "");
    let covering = routes("match")?;
    let mut covering = covering.lines().filter(|line| !line.trim().is_empty());
    Ok(covering.all(|line| line.starts_with("default")) && routes("root")?.trim().is_empty())
}

/// Lets a program of iproute2 carry out a command per line.
fn batch(program: &str, script: &str) -> Result<(), String> {
    told(program, &["-batch", "-"], script)
}

fn told(program: &str, arguments: &[&str], input: &str) -> Result<(), String> {
    output(program, arguments, input).map(|_| ())
}

/// Runs a program on an input. Returns its output, or why it failed.
fn output(program: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    let failed = |error: io::Error| format!("{program}: {error}");
    let begin = |folder: &str| {
        let mut command = Command::new(format!("{folder}{program}"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let mut begun = begin(FOLDERS[0]);
    for folder in &FOLDERS[1..] {
        if begun.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            begun = begin(folder);
        }
    }
    let mut child = begun.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no program `{program}`"),
        _ => failed(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that stops reading reports the reason itself, see below.
        let _ = stdin.write_all(input.as_bytes());
    }
    let ended = child.wait_with_output().map_err(failed)?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it failed");
    Err(format!("{program}: {}", line.strip_prefix("Error: ").unwrap_or(line)))
}

/// Does something within a namespace that can fail.
fn within<T: Send>(
    namespace: &NetworkNamespace,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    namespace.within(work).map_err(|error| format!("a network namespace cannot be entered: {error}"))?
}
