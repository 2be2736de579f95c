//! The folder of a cluster: data, logs and addresses of its nodes.
//!
//! ```text
//! DIRECTORY/state.json          the nodes that run
//! DIRECTORY/ID/.made-by-plimsoll   says that the data folder may be removed
//! DIRECTORY/ID/data             the data of a node, unless the spec names another folder
//! DIRECTORY/ID/log              what it wrote to stdout and stderr
//! ```

use core::net::Ipv4Addr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{ClusterError, of_file};
use crate::process_tag::ProcessTag;
use crate::spec::NodePlan;

/// The file that says that a folder was made by us.
const MARKER: &str = ".made-by-plimsoll";
/// Content of the marker file.
const MARKED: &str =
    "Plimsoll has made this folder, and may remove the data in it when it starts the cluster again.\n";
/// The file with the running nodes.
const STATE: &str = "state.json";

/// The running nodes, as stored in the state file for later commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The cluster's own name in the mark of its processes.
    pub id: String,
    /// Name of the cluster in its spec.
    pub name: String,
    /// The process that made it, if it ends with that one.
    pub owner: Option<u32>,
    /// The nodes.
    pub nodes: Vec<NodeState>,
}

/// One node that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Id of the node.
    pub id: String,
    /// The number of its first process.
    pub pid: u32,
    /// When that began, in ticks since the boot.
    pub began: Option<u64>,
    /// Address of the node.
    #[serde(default = "loopback")]
    pub host: Ipv4Addr,
    /// Ports of the node by name.
    pub ports: Vec<(String, u16)>,
    /// Data folder of the node.
    pub data: PathBuf,
    /// The file of its log.
    pub log: PathBuf,
    /// Time between SIGTERM and SIGKILL, in nanoseconds.
    pub grace_ns: u64,
}

/// The default address of nodes.
const fn loopback() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

/// The folder of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// The folder at this path, which need not be there.
    pub(crate) fn at(directory: &Path) -> Result<Self, ClusterError> {
        let root = std::path::absolute(directory).map_err(of_file("find", directory))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn of_node(&self, node: &NodePlan) -> PathBuf {
        self.root.join(&node.id)
    }

    pub(crate) fn data(&self, node: &NodePlan) -> PathBuf {
        self.of_node(node).join(&node.data)
    }

    pub(crate) fn log(&self, node: &NodePlan) -> PathBuf {
        self.of_node(node).join("log")
    }

    /// Where the marker of a node's data is: in the folder that we make, which is the node's own unless the
    /// spec names another one.
    fn marker(&self, node: &NodePlan) -> PathBuf {
        let data = self.data(node);
        if data.starts_with(self.of_node(node)) { self.of_node(node).join(MARKER) } else { data.join(MARKER) }
    }

    /// Returns the state of the cluster that runs here; `None` if none does.
    pub(crate) fn running(&self) -> Result<Option<State>, ClusterError> {
        let path = self.root.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(of_file("read", path)(error)),
        };
        let state: State =
            serde_json::from_slice(&text).map_err(|error| of_file("read", path)(error.into()))?;
        // A cluster that was killed leaves only the file.
        Ok((!ProcessTag::of_cluster(&state.id).processes().is_empty()).then_some(state))
    }

    /// Records the running nodes. Replaces the file as a whole, so that a reader never sees half of it.
    pub(crate) fn note(&self, state: &State) -> Result<(), ClusterError> {
        let (path, new) = (self.root.join(STATE), self.root.join("state.json.new"));
        let text = serde_json::to_vec_pretty(state).map_err(|error| of_file("write", &path)(error.into()))?;
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(of_file("write", path))
    }

    /// Records that no node runs here any more.
    pub(crate) fn forget(&self) {
        // A stale file is recognized without this.
        let _ = fs::remove_file(self.root.join(STATE));
    }

    /// Makes the folders of the nodes. With `clean`, data of earlier runs are removed; `named` are folders
    /// that may be removed even if other programs made them. Returns those that were.
    pub(crate) fn prepare(
        &self,
        nodes: &[NodePlan],
        clean: bool,
        named: &[PathBuf],
    ) -> Result<Vec<PathBuf>, ClusterError> {
        let mut removed = Vec::new();
        for node in nodes {
            let data = self.data(node);
            if clean && !is_empty(&data) {
                let is_named =
                    named.iter().any(|path| std::path::absolute(path).is_ok_and(|path| path == data));
                if !is_named && !self.marker(node).is_file() {
                    return Err(ClusterError::NotOurs(data));
                }
                fs::remove_dir_all(&data).map_err(of_file("remove", &data))?;
                removed.push(data.clone());
            }
            // An existing folder with content is not ours to remove.
            let is_ours = is_empty(&data) || self.marker(node).is_file();
            for folder in [&self.of_node(node), &data] {
                fs::create_dir_all(folder).map_err(of_file("make", folder))?;
            }
            if is_ours {
                fs::write(self.marker(node), MARKED).map_err(of_file("write", self.marker(node)))?;
            }
            if clean {
                // Each log belongs to one start of the cluster.
                fs::write(self.log(node), "").map_err(of_file("write", self.log(node)))?;
            }
        }
        Ok(removed)
    }

    /// Removes the data of the nodes that were made by us.
    pub(crate) fn remove_data(&self, nodes: &[NodePlan]) -> Result<(), ClusterError> {
        for node in nodes {
            let data = self.data(node);
            if self.marker(node).is_file() && data.is_dir() {
                fs::remove_dir_all(&data).map_err(of_file("remove", data))?;
            }
        }
        Ok(())
    }
}

/// Returns `true` if a folder has nothing in it but the marker, or does not exist.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder)
        .map_or(true, |mut entries| entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == MARKER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Nanos;

    fn node(data: &str) -> NodePlan {
        NodePlan {
            id: "0".to_owned(),
            command: String::new(),
            arguments: Vec::new(),
            per_peer: Vec::new(),
            environment: Vec::new(),
            data: data.into(),
            ports: Vec::new(),
            ready: Vec::new(),
            ready_within: Nanos::ZERO,
            delay: Nanos::ZERO,
            wait: false,
            grace: Nanos::ZERO,
        }
    }

    #[test]
    fn data_are_removed_only_if_they_are_ours_or_named() {
        let root = std::env::temp_dir().join(format!("plimsoll-home-{}", std::process::id()));
        let foreign = root.join("foreign");
        fs::create_dir_all(&foreign).unwrap();
        fs::write(foreign.join("precious"), "x").unwrap();
        let state_dir = StateDir::at(&root.join("cluster")).unwrap();
        let own = [node("data")];
        // A folder that we made is removed the next time.
        assert!(state_dir.prepare(&own, true, &[]).unwrap().is_empty());
        fs::write(state_dir.data(&own[0]).join("log"), "x").unwrap();
        assert_eq!(state_dir.prepare(&own, true, &[]).unwrap(), [state_dir.data(&own[0])]);
        assert!(is_empty(&state_dir.data(&own[0])));
        // A folder that we did not make is kept, unless it is named.
        let other = [node(foreign.to_str().unwrap())];
        let error = state_dir.prepare(&other, true, &[]).unwrap_err();
        assert!(matches!(&error, ClusterError::NotOurs(path) if *path == foreign), "{error}");
        assert!(foreign.join("precious").is_file());
        state_dir.prepare(&other, false, &[]).unwrap();
        state_dir.remove_data(&other).unwrap();
        assert!(foreign.join("precious").is_file(), "what is used as it is does not become ours");
        let named = std::slice::from_ref(&foreign);
        assert_eq!(state_dir.prepare(&other, true, named).unwrap(), named);
        assert!(!foreign.join("precious").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
