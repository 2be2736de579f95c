//! Which processes are watched: those of the target, found by where it listens, and those that were named.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::parse::{lines, network};
use crate::sampler::Tree;

/// Processes of one target that are watched: the workers of a server with one per processor.
const PROCESSES: usize = 32;

/// Which processes are watched beside the generator's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// TCP ports of this machine that the target listens on.
    pub ports: Vec<u16>,
    /// Unix sockets that the target listens on.
    pub sockets: Vec<PathBuf>,
    /// Servers that were named, each of them one.
    pub named: Vec<Named>,
}

/// A server that was named. Its descendants belong to it, those too that begin while it is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The process with this number.
    Pid(u32),
    /// All processes with this name: by `/proc/PID/comm`, or by the file name of the program.
    Name(String),
    /// All processes that have this entry (`NAME=VALUE`) in their environment when they begin.
    Marked {
        /// Name of the server.
        name: String,
        /// The entry.
        entry: String,
    },
}

/// The numbers of the processes that listen on the target's ports and sockets, in their order.
pub(crate) fn find(tree: &Tree, watch: &Watch, missing: &mut Vec<String>) -> Vec<u32> {
    let Watch { ports, sockets, .. } = watch;
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
        let Ok(file) = File::open(tree.at("/proc/self/net").join(name)) else { continue };
        // The kernel lists the listening sockets first (Documentation/networking/proc_net_tcp.rst). After a
        // load there are thousands of others: to read 2,200 of them was a sixth of the CPU time of a run of 4
        // requests (perf).
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let listening = lines.skip(1).take_while(|line| network::is_listening(line));
        found.extend(listening.filter_map(|line| network::listener(&line, ports)));
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
