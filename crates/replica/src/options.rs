//! Settings of a node.

use std::path::PathBuf;

use core::net::SocketAddr;
use plimsoll_core::Nanos;

use crate::lies::Lie;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Number of the node; no other node of the cluster has it.
    pub id: u64,
    /// Address to listen on for its API; port 0 takes a free one.
    pub http: SocketAddr,
    /// Address to listen on for the other nodes; port 0 takes a free one.
    pub raft: SocketAddr,
    /// The folder with its log and its snapshots, made if it is missing.
    pub data: PathBuf,
    /// When writes are synced to the disk.
    pub fsync: Fsync,
    /// Between two heartbeats of the leader.
    pub heartbeat: Nanos,
    /// Without a word of the leader for about twice this time a follower wants to lead.
    pub election_timeout: Nanos,
    /// A write that no majority has by then is answered 503, and may still be carried out.
    pub commit_timeout: Nanos,
    /// Bytes of log after which a snapshot is taken, and the log before it dropped; at least as many as the
    /// snapshot before has.
    pub snapshot_every: u64,
    /// Fault to inject on purpose.
    pub lie: Option<Lie>,
    /// Age of the state that stale answers show.
    pub stale_by: Nanos,
    /// Seed of the choice of the cases that are treated wrongly.
    pub seed: u64,
}

impl ReplicaOptions {
    /// A node with this number and folder, on free ports of this machine, that tells the truth.
    pub fn new(id: u64, data: PathBuf) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            id,
            http: anywhere,
            raft: anywhere,
            data,
            fsync: Fsync::Always,
            heartbeat: Nanos::from_millis(100),
            election_timeout: Nanos::from_millis(400),
            commit_timeout: Nanos::from_secs(5),
            snapshot_every: 64 << 20,
            lie: None,
            stale_by: Nanos::from_millis(500),
            seed: 0,
        }
    }

    /// Returns the conflicts between settings, one message for each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.heartbeat.0.saturating_mul(3) > self.election_timeout.0 {
            problems.push("--election-timeout must be at least three times --heartbeat".to_owned());
        }
        if self.heartbeat < Nanos::from_millis(1) {
            problems.push("--heartbeat must be at least 1ms".to_owned());
        }
        problems
    }
}

/// Another node, as this one reaches it: the addresses may be those of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Number of the node.
    pub id: u64,
    /// The address that clients are sent to when it leads.
    pub http: SocketAddr,
    /// The address for other nodes.
    pub raft: SocketAddr,
}

/// When the log is brought to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Before a write counts as stored.
    Always,
    /// When the system does it: the data outlive a killed process, but not a machine without power.
    Never,
    /// At this interval; in between as with `Never`.
    Every(Nanos),
}
