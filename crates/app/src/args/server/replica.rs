//! The flags of `plimsoll target crud-node` and `plimsoll target crud-cluster`.

use core::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_core::Nanos;
use plimsoll_document::Problems;
use plimsoll_driver::Endpoint;
use plimsoll_plan::parse_size;
use plimsoll_replica::{Fsync, Lie, LieKind, Peer, ReplicaOptions};

use crate::args::server::sink::parse_seed;
use crate::args::server::sink_values::{Reader, parse_endpoint, parse_positive, parse_share, whole};

/// Share of what a node is asked for that is treated wrongly unless `--lie-share` says otherwise.
const LIES: f64 = 0.01;
/// From the port of a node's API to that of its raft.
pub(crate) const RAFT_OFFSET: u16 = 1000;

/// Flags that a node and a cluster of nodes share.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// When the log is on the disk: always (before a write is acknowledged), never, or every 100ms or the
    /// like
    ///
    /// With `never` or a time an acknowledged write outlives the process, and not a machine that loses power.
    #[arg(long, value_name = "WHEN", default_value = "always", help_heading = "Storage")]
    fsync: String,
    /// Length of log after which a snapshot is taken
    #[arg(long, value_name = "SIZE", default_value = "64MiB", help_heading = "Storage")]
    snapshot_every: String,
    /// Interval between two heartbeats of the leader
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = "Consensus")]
    heartbeat: String,
    /// A follower becomes a candidate after a silence of two to four times this
    #[arg(long, value_name = "TIME", default_value = "400ms", help_heading = "Consensus")]
    election_timeout: String,
    /// Answer 503 to a write that no majority has by then; it may still be carried out
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Consensus")]
    commit_timeout: String,
    /// Share of lies, such as 5% or 0.05 [default: 1%]
    #[arg(long, value_name = "SHARE", help_heading = "Faults")]
    lie_share: Option<String>,
    /// Age of stale answers
    #[arg(long, value_name = "TIME", default_value = "500ms", help_heading = "Faults")]
    stale_by: String,
    /// Seed of the choice of requests that are handled wrongly
    #[arg(long, value_name = "SEED", default_value = "0", help_heading = "Faults")]
    seed: String,
    /// Stop after this time
    #[arg(short, long, value_name = "TIME", allow_negative_numbers = true)]
    duration: Option<String>,
    /// No messages on stderr
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CrudNodeArgs {
    /// Number of the node, unique in its cluster
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    id: String,
    /// Address of the API; port 0 takes a free one
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Address for the other nodes; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    raft: String,
    /// Another node, as this one reaches it; repeatable
    ///
    /// Such as 1=127.0.0.1:8081/127.0.0.1:9081. The first address is where clients are sent to when that node
    /// leads, the second is its --raft; either may be that of a proxy. All nodes need the same numbers.
    #[arg(long = "peer", value_name = "ID=API/RAFT")]
    peers: Vec<String>,
    /// Folder of the log and the snapshots; made if it is missing
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Treat a share of requests wrongly: lose, diverge, stale, duplicate or resurrect
    ///
    /// `lose` acknowledges creates and updates that no node carries out, `resurrect` deletes; `duplicate`
    /// stores a second item with an id of its own; `diverge` stores another value on this node alone; `stale`
    /// answers reads of this node from its items --stale-by ago. GET /_lies lists each.
    #[arg(long, value_name = "KIND", help_heading = "Faults")]
    lie: Option<String>,
    /// Read `peer ID=API/RAFT` lines from stdin up to `start`, and end when stdin does
    #[arg(long)]
    with_parent: bool,
    /// Remove the data at the end.
    #[arg(long, hide = true)]
    temporary: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CrudClusterArgs {
    /// Nodes: 1, 3, 5 or 7
    #[arg(short, long, value_name = "N", default_value = "3", allow_negative_numbers = true)]
    nodes: String,
    /// Port of the first node's API, the others follow; raft has those 1000 above; 0 takes free ones
    #[arg(short, long, value_name = "PORT", default_value = "8080", allow_negative_numbers = true)]
    port: String,
    /// Folder of the nodes' folders, which is kept [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Treat a share of requests wrongly, as crud-node does
    ///
    /// lose, diverge, stale, duplicate or resurrect. diverge@1 is for node 1. Without a node, diverge and
    /// stale are for the last one, and the others for the leader.
    #[arg(long, value_name = "KIND[@NODE]", help_heading = "Faults")]
    lie: Option<String>,
    #[command(flatten)]
    node: NodeArgs,
}

/// Settings of a node.
#[derive(Debug)]
pub(crate) struct CrudNodeSpec {
    pub(crate) options: ReplicaOptions,
    pub(crate) peers: Vec<Peer>,
    pub(crate) with_parent: bool,
    pub(crate) temporary: bool,
    pub(crate) duration: Option<Nanos>,
    pub(crate) quiet: bool,
}

/// Settings of a cluster.
#[derive(Debug)]
pub(crate) struct CrudClusterSpec {
    pub(crate) nodes: u64,
    pub(crate) port: u16,
    pub(crate) data: Option<PathBuf>,
    /// Kind of lie, its text for the flag of a node, and the id of the only node that lies; without an id all
    /// do.
    pub(crate) lie: Option<(LieKind, String, Option<u64>)>,
    /// Flags that every node gets.
    pub(crate) flags: Vec<String>,
    pub(crate) duration: Option<Nanos>,
    pub(crate) quiet: bool,
}

impl NodeArgs {
    fn read(&self, reader: &mut Reader, options: &mut ReplicaOptions) {
        if let Some(fsync) = reader.read("--fsync", &self.fsync, parse_fsync) {
            options.fsync = fsync;
        }
        if let Some(bytes) = reader.read("--snapshot-every", &self.snapshot_every, parse_size) {
            options.snapshot_every = bytes.max(1);
        }
        for (flag, text, field) in [
            ("--heartbeat", &self.heartbeat, &mut options.heartbeat),
            ("--election-timeout", &self.election_timeout, &mut options.election_timeout),
            ("--commit-timeout", &self.commit_timeout, &mut options.commit_timeout),
            ("--stale-by", &self.stale_by, &mut options.stale_by),
        ] {
            if let Some(time) = reader.read(flag, text, parse_positive) {
                *field = time;
            }
        }
        options.seed = reader.read("--seed", &self.seed, parse_seed).unwrap_or(0);
    }

    fn share(&self, reader: &mut Reader) -> f64 {
        reader.maybe("--lie-share", self.lie_share.as_ref(), parse_lie_share).unwrap_or(LIES)
    }

    fn duration(&self, reader: &mut Reader) -> Option<Nanos> {
        reader.maybe("--duration", self.duration.as_ref(), parse_positive)
    }

    /// The flags that a node of a cluster gets.
    fn flags(&self) -> Vec<String> {
        let given = [
            ("fsync", &self.fsync),
            ("snapshot-every", &self.snapshot_every),
            ("heartbeat", &self.heartbeat),
            ("election-timeout", &self.election_timeout),
            ("commit-timeout", &self.commit_timeout),
            ("stale-by", &self.stale_by),
            ("seed", &self.seed),
        ];
        let share = self.lie_share.iter().map(|share| ("lie-share", share));
        given.into_iter().chain(share).map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

impl CrudNodeArgs {
    /// Parses and checks the flags of a node; reports all problems at once.
    pub(crate) fn to_spec(&self) -> Result<CrudNodeSpec, Problems> {
        let mut reader = Reader::default();
        let id = reader.read("--id", &self.id, |text| whole(text, 0..=u64::from(u32::MAX)));
        let mut options = ReplicaOptions::new(id.unwrap_or(0), self.data.clone());
        if let Some(listen) = reader.read("--listen", &self.listen, parse_address) {
            options.http = listen;
        }
        if let Some(raft) = reader.read("--raft", &self.raft, parse_address) {
            options.raft = raft;
        }
        self.node.read(&mut reader, &mut options);
        let share = self.node.share(&mut reader);
        let kind = reader.maybe("--lie", self.lie.as_ref(), parse_kind);
        options.lie = kind.map(|kind| Lie { kind, share });
        let peers: Vec<_> = self.peers.iter().map(|text| reader.read("--peer", text, parse_peer)).collect();
        let peers: Vec<Peer> = peers.into_iter().flatten().collect();
        let duration = self.node.duration(&mut reader);
        reader.conclude(Some(()), || [options.problems(), twice(options.id, &peers)].concat())?;
        let (with_parent, temporary, quiet) = (self.with_parent, self.temporary, self.node.quiet);
        Ok(CrudNodeSpec { options, peers, with_parent, temporary, duration, quiet })
    }
}

impl CrudClusterArgs {
    /// Parses and checks the flags of a cluster; reports all problems at once.
    pub(crate) fn to_spec(&self) -> Result<CrudClusterSpec, Problems> {
        let mut reader = Reader::default();
        let nodes = reader.read("--nodes", &self.nodes, parse_nodes).unwrap_or(7);
        let most = u16::MAX - RAFT_OFFSET - 8;
        let port = reader.read("--port", &self.port, |text| whole(text, 0..=u64::from(most)));
        let lie = reader.maybe("--lie", self.lie.as_ref(), |text| parse_lie_of(text, nodes));
        let mut options = ReplicaOptions::new(0, PathBuf::new());
        self.node.read(&mut reader, &mut options);
        self.node.share(&mut reader);
        let duration = self.node.duration(&mut reader);
        reader.conclude(Some(()), || options.problems())?;
        Ok(CrudClusterSpec {
            nodes,
            port: port.unwrap_or(0) as u16,
            data: self.data.clone(),
            lie,
            flags: self.node.flags(),
            duration,
            quiet: self.node.quiet,
        })
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    match parse_endpoint(text)? {
        Endpoint::Tcp(address) => Ok(address),
        Endpoint::Unix(_) => Err("must be IP:PORT".to_owned()),
    }
}

fn parse_nodes(text: &str) -> Result<u64, String> {
    match whole(text, 1..=7)? {
        nodes if nodes % 2 == 1 => Ok(nodes),
        _ => Err("must be 1, 3, 5 or 7: an even number bears no more failures than one less".to_owned()),
    }
}

/// `always`, `never`, `100ms`.
fn parse_fsync(text: &str) -> Result<Fsync, String> {
    match text {
        "always" => Ok(Fsync::Always),
        "never" => Ok(Fsync::Never),
        text => parse_positive(text)
            .map(Fsync::Every)
            .map_err(|_| format!("`{text}` is not always, never or a time such as 100ms")),
    }
}

const KINDS: [(&str, LieKind); 5] = [
    ("lose", LieKind::Lose),
    ("diverge", LieKind::Diverge),
    ("stale", LieKind::Stale),
    ("duplicate", LieKind::Duplicate),
    ("resurrect", LieKind::Resurrect),
];

fn parse_kind(text: &str) -> Result<LieKind, String> {
    let found = KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| format!("`{text}` is not one of lose, diverge, stale, duplicate and resurrect"))
}

/// `diverge`, `diverge@1`, in a cluster of `nodes` nodes.
fn parse_lie_of(text: &str, nodes: u64) -> Result<(LieKind, String, Option<u64>), String> {
    let (name, node) = match text.split_once('@') {
        Some((name, node)) => {
            (name, Some(whole(node, 0..=nodes - 1).map_err(|why| format!("the node {why}"))?))
        }
        None => (text, None),
    };
    let kind = parse_kind(name)?;
    let is_local = matches!(kind, LieKind::Diverge | LieKind::Stale);
    Ok((kind, name.to_owned(), node.or_else(|| is_local.then_some(nodes - 1))))
}

/// `5%`, or `0.05`; what has neither sign nor point could be either.
fn parse_lie_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if text.contains('.') && (0.0..=1.0).contains(&share) => Ok(share),
        _ => parse_share(text),
    }
}

/// `1=127.0.0.1:8081/127.0.0.1:9081`.
pub(crate) fn parse_peer(text: &str) -> Result<Peer, String> {
    let parts = text.split_once('=').and_then(|(id, rest)| Some((id.parse().ok()?, rest.split_once('/')?)));
    let parts = parts
        .and_then(|(id, (http, raft))| Some(Peer { id, http: http.parse().ok()?, raft: raft.parse().ok()? }));
    parts.ok_or_else(|| format!("`{text}` is not ID=API/RAFT, such as 1=127.0.0.1:8081/127.0.0.1:9081"))
}

/// Numbers that more than one node has.
pub(crate) fn twice(id: u64, peers: &[Peer]) -> Vec<String> {
    let mut ids: Vec<u64> = peers.iter().map(|peer| peer.id).chain([id]).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).filter(|pair| pair[0] == pair[1]);
    twice.map(|pair| format!("--peer: more than one node has the number {}", pair[0])).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plimsoll_plan::Disk;

    use super::*;
    use crate::args::cli::Cli;
    use crate::args::cli::Command;
    use crate::args::server::target::TargetSpec;

    fn spec(args: &[&str]) -> Result<TargetSpec, Problems> {
        let args = ["plimsoll", "target"].iter().chain(args);
        let Command::Target(target) = Cli::try_parse_from(args).unwrap().command else {
            panic!("not a target")
        };
        target.to_spec(&Disk)
    }

    fn node(args: &[&str]) -> Result<CrudNodeSpec, Problems> {
        spec(&[&["crud-node", "--data=d"], args].concat()).map(|spec| match spec {
            TargetSpec::CrudNode(spec) => spec,
            other => panic!("not a node: {other:?}"),
        })
    }

    fn cluster(args: &[&str]) -> Result<CrudClusterSpec, Problems> {
        spec(&[&["crud-cluster"], args].concat()).map(|spec| match spec {
            TargetSpec::CrudCluster(spec) => spec,
            other => panic!("not a cluster: {other:?}"),
        })
    }

    #[test]
    fn a_node_takes_what_it_is_given() {
        let plain = node(&[]).unwrap();
        assert_eq!((plain.options.id, plain.options.fsync, plain.options.lie), (0, Fsync::Always, None));
        assert_eq!(plain.options.http.port(), 8080);
        let given = node(&[
            "--id=2",
            "--peer=1=127.0.0.1:1/127.0.0.1:2",
            "--peer",
            "0=[::1]:3/127.0.0.1:4",
            "--fsync=50ms",
            "--lie=stale",
            "--lie-share=0.5",
            "--stale-by=2s",
            "--with-parent",
        ])
        .unwrap();
        assert_eq!(
            given.peers.iter().map(|peer| (peer.id, peer.raft.port())).collect::<Vec<_>>(),
            [(1, 2), (0, 4)]
        );
        assert_eq!(given.options.fsync, Fsync::Every(Nanos::from_millis(50)));
        assert_eq!(given.options.lie, Some(Lie { kind: LieKind::Stale, share: 0.5 }));
        assert!(given.with_parent && given.options.stale_by == Nanos::from_secs(2));
    }

    #[test]
    fn a_cluster_tells_its_nodes() {
        let plain = cluster(&[]).unwrap();
        assert_eq!((plain.nodes, plain.port, plain.lie), (3, 8080, None));
        let given = cluster(&["-n1", "-p0", "--lie=lose", "--lie-share=2%", "--fsync=never"]).unwrap();
        assert_eq!(given.lie, Some((LieKind::Lose, "lose".to_owned(), None)));
        assert!(
            given.flags.contains(&"--lie-share=2%".to_owned())
                && given.flags.contains(&"--fsync=never".to_owned())
        );
        let who = |lie: &str| cluster(&[lie]).unwrap().lie.unwrap().2;
        assert_eq!(
            (who("--lie=diverge"), who("--lie=stale@0"), who("--lie=lose@1")),
            (Some(2), Some(0), Some(1))
        );
    }

    #[test]
    fn problems_are_told_at_once() {
        let bad = [
            "--id=x",
            "--peer=1",
            "--fsync=often",
            "--lie=white",
            "--lie-share=1",
            "--heartbeat=0",
            "--seed=s",
        ];
        assert_eq!(node(&bad).unwrap_err().iter().count(), 7);
        assert_eq!(node(&["--peer=0=127.0.0.1:1/127.0.0.1:2"]).unwrap_err().iter().count(), 1);
        assert_eq!(node(&["--heartbeat=300ms"]).unwrap_err().iter().count(), 1);
        assert_eq!(cluster(&["--nodes=2", "--port=70000", "--lie=lose@9"]).unwrap_err().iter().count(), 3);
    }
}
