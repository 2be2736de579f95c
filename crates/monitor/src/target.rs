//! The process of the target, if it is on this machine: named by its number, or found by where it listens.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::parse::{lines, network};
use crate::sampler::Tree;

/// Processes of one target that are watched: the workers of a server with one per processor.
const PROCESSES: usize = 32;

/// Which process is the target's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The one with this number.
    Process(u32),
    /// Those that listen on one of these TCP ports or unix sockets; with none of either, nothing is watched.
    Listeners {
        /// TCP ports.
        ports: Vec<u16>,
        /// Paths of unix sockets.
        sockets: Vec<PathBuf>,
    },
}

/// The numbers of the target's processes, in their order.
pub(crate) fn find(tree: &Tree, watch: &Watch, missing: &mut Vec<String>) -> Vec<u32> {
    let (ports, sockets) = match watch {
        Watch::Process(pid) => return vec![*pid],
        Watch::Listeners { ports, sockets } => (ports, sockets),
    };
    if ports.is_empty() && sockets.is_empty() {
        return Vec::new();
    }
    let inodes = inodes(tree, ports, sockets);
    if inodes.is_empty() {
        missing.push("the target's process: nothing listens on its address in this network".to_owned());
        return Vec::new();
    }
    let mut pids = holders(tree, &inodes);
    let own = std::process::id();
    if pids.contains(&own) {
        missing.push("the target's process: it is this one".to_owned());
        return Vec::new();
    }
    if pids.is_empty() {
        missing.push("the target's process: it is not visible here, or belongs to another user".to_owned());
    }
    pids.sort_unstable();
    pids.truncate(PROCESSES);
    pids
}

/// The inodes of the listening sockets.
fn inodes(tree: &Tree, ports: &[u16], sockets: &[PathBuf]) -> Vec<u64> {
    let mut found = Vec::new();
    for name in ["tcp", "tcp6"] {
        let Ok(bytes) = std::fs::read(tree.at("/proc/self/net").join(name)) else { continue };
        found.extend(lines(&bytes).filter_map(|line| network::listener(line, ports)));
    }
    if !sockets.is_empty() {
        let bytes = std::fs::read(tree.at("/proc/self/net/unix")).unwrap_or_default();
        for path in sockets {
            let path = path.as_os_str().as_bytes();
            found.extend(lines(&bytes).filter_map(|line| network::unix_listener(line, path)));
        }
    }
    found
}

/// The processes that have one of these sockets open.
fn holders(tree: &Tree, inodes: &[u64]) -> Vec<u32> {
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let Ok(processes) = std::fs::read_dir(tree.at("/proc")) else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let holds = |pid: &u32| {
        let Ok(open) = std::fs::read_dir(tree.at("/proc").join(pid.to_string()).join("fd")) else {
            return false;
        };
        open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .any(|link| link.to_str().is_some_and(|link| names.iter().any(|name| name == link)))
    };
    processes.filter_map(|entry| number(entry.ok()?)).filter(holds).collect()
}
