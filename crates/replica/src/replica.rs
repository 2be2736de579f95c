//! A node from its start to its end.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use core::net::SocketAddr;
use openraft::{Config, SnapshotPolicy};
use plimsoll_core::Nanos;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

use crate::api::Api;
use crate::consensus::{Raft, SnapshotMeta};
use crate::durable;
use crate::error::ReplicaError;
use crate::identifier::Identifiers;
use crate::lies::FaultInjector;
use crate::log::{Log, Writer};
use crate::machine::Machine;
use crate::network::Addresses;
use crate::node_status::NodeStatus;
use crate::options::{Peer, ReplicaOptions};
use crate::proposer::{self, Proposal};
use crate::snapshot::Snapshots;
use crate::views::Views;
use crate::{http, peers};

/// Writes that may wait for a place in an entry.
const WAITING: usize = 16 << 10;
/// Entries that are kept after a snapshot covers them, for followers that are a little behind.
const KEPT_ENTRIES: u64 = 64;

/// A node that has its folder and its ports, and waits for the addresses of the others.
#[derive(Debug)]
pub struct Bound {
    options: ReplicaOptions,
    folder: Folder,
    http: Stage,
    raft: Stage,
}

/// A running node.
#[derive(Debug)]
pub struct Replica {
    stopper: Stopper,
    api: JoinHandle<()>,
    consensus: JoinHandle<Result<(), ReplicaError>>,
    writer: Writer,
    /// Held as long as the node runs.
    _lock: File,
}

/// Ends a node from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    /// Ends it. A write that no majority has is not waited for.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Contents of the node's folder, opened.
#[derive(Debug)]
struct Folder {
    lock: File,
    log: Log,
    writer: Writer,
    torn: u64,
    snapshots: Snapshots,
    meta: Option<SnapshotMeta>,
    views: Arc<Views>,
}

/// A thread to be: a runtime, and its listener.
#[derive(Debug)]
struct Stage {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Reads the folder and takes the ports. Then [`Bound::start`].
    ///
    /// # Errors
    ///
    /// A folder that is in use, of another node or damaged; a port that is taken.
    pub fn new(options: ReplicaOptions) -> Result<Self, ReplicaError> {
        let folder = Folder::open(&options)?;
        let (http, raft) = (Stage::new(options.http)?, Stage::new(options.raft)?);
        Ok(Self { options, folder, http, raft })
    }

    /// The address of its API.
    pub const fn http(&self) -> SocketAddr {
        self.http.address
    }

    /// The address for the other nodes.
    pub const fn raft(&self) -> SocketAddr {
        self.raft.address
    }

    /// Bytes of a record that was not whole at the end of the log, and was cut off.
    pub const fn torn(&self) -> u64 {
        self.folder.torn
    }

    /// Starts it, with these other nodes. `heard` gets its status whenever the leader changes; it must not
    /// block.
    ///
    /// # Errors
    ///
    /// The system gives no threads.
    pub fn start(
        self,
        peers: &[Peer],
        heard: impl FnMut(&NodeStatus) + Send + 'static,
    ) -> Result<Replica, ReplicaError> {
        let Self { options, folder, http, raft } = self;
        let Folder { lock, log, writer, snapshots, meta, views, .. } = folder;
        let stopper = Stopper(Arc::new(watch::Sender::new(false)));
        let (stand, node_status) = watch::channel(NodeStatus::default());
        let (propose, proposals) = mpsc::channel(WAITING);
        let api = Arc::new(Api {
            id: options.id,
            http: http.address,
            peers: peers.iter().map(|peer| (peer.id, peer.http)).collect(),
            views: views.clone(),
            node_status,
            proposals: propose,
            commit_timeout: duration(options.commit_timeout),
            // Other numbers than those of the values that diverge.
            injector: FaultInjector::new(options.lie, options.seed),
            ids: Identifiers::new(),
        });
        let addresses: HashMap<u64, SocketAddr> = peers.iter().map(|peer| (peer.id, peer.raft)).collect();
        let node = Node {
            members: addresses.keys().copied().chain([options.id]).collect(),
            machine: Machine::new(views, snapshots.clone(), meta.as_ref()),
            snapshots,
            addresses: Addresses(Arc::new(addresses)),
            options,
            log,
            proposals,
            stand,
        };
        let (stop_api, stop_node) = (stopper.0.subscribe(), stopper.clone());
        let api = http.run("api", move |listener| async move {
            tokio::select! {
                () = http::serve(listener, api) => {}
                () = stopped(stop_api) => {}
            }
        })?;
        let consensus = raft.run("consensus", move |listener| async move {
            let ended = node.run(listener, stop_node.0.subscribe(), heard).await;
            stop_node.stop();
            ended
        })?;
        Ok(Replica { stopper, api, consensus, writer, _lock: lock })
    }
}

impl Replica {
    /// Ends it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// It could not go on, such as with a disk that is full.
    pub fn wait(self) -> Result<(), ReplicaError> {
        let ended = self.consensus.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.stopper.stop();
        self.api.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.writer.wait();
        ended
    }
}

impl Folder {
    fn open(options: &ReplicaOptions) -> Result<Self, ReplicaError> {
        let data = &options.data;
        fs::create_dir_all(data).map_err(ReplicaError::file(data))?;
        let path = data.join("lock");
        let lock = File::create(&path).map_err(ReplicaError::file(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ReplicaError::InUse(data.clone())),
            Err(TryLockError::Error(error)) => return Err(ReplicaError::File(path, error)),
        }
        let path = data.join("node");
        match durable::load::<u64>(&path)? {
            Some(id) if id != options.id => return Err(ReplicaError::OtherNode(data.clone(), id)),
            Some(_) => {}
            None => durable::save(&path, &options.id).map_err(ReplicaError::file(&path))?,
        }
        let snapshots = Snapshots::open(&data.join("snapshot"))?;
        let (meta, state) =
            snapshots.load()?.map_or_else(Default::default, |(meta, state)| (Some(meta), state));
        let (log, writer, torn) = Log::open(&data.join("log"), options.fsync)?;
        let views = Arc::new(Views::new(options, state));
        Ok(Self { lock, log, writer, torn, snapshots, meta, views })
    }
}

impl Stage {
    fn new(address: SocketAddr) -> Result<Self, ReplicaError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ReplicaError::Thread)?;
        let bound = runtime.block_on(TcpListener::bind(address));
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| ReplicaError::Listen(address, error))?;
        Ok(Self { runtime, listener, address })
    }

    /// Runs until the future of `begin` has ended, and ends all of its tasks with it.
    fn run<T: Send + 'static, F: Future<Output = T>>(
        self,
        name: &str,
        begin: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> Result<JoinHandle<T>, ReplicaError> {
        let Self { runtime, listener, .. } = self;
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || runtime.block_on(begin(listener))).map_err(ReplicaError::Thread)
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, which counts as a stop.
    drop(stop.wait_for(|stop| *stop).await);
}

const fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.0)
}

/// Parts of a node that the consensus thread runs.
struct Node {
    options: ReplicaOptions,
    members: BTreeSet<u64>,
    addresses: Addresses,
    log: Log,
    snapshots: Snapshots,
    machine: Machine,
    proposals: mpsc::Receiver<Proposal>,
    stand: watch::Sender<NodeStatus>,
}

impl Node {
    async fn run(
        self,
        listener: TcpListener,
        stop: watch::Receiver<bool>,
        mut heard: impl FnMut(&NodeStatus),
    ) -> Result<(), ReplicaError> {
        let Self { options, members, addresses, log, snapshots, machine, proposals, stand } = self;
        let config = config(&options, &members)?;
        let lease = 2 * config.election_timeout_max;
        let is_new = log.is_new();
        let raft = Raft::new(options.id, Arc::new(config), addresses, log.clone(), machine).await;
        let raft = raft.map_err(|error| ReplicaError::Stopped(error.to_string()))?;
        tokio::spawn(peers::serve(listener, raft.clone()));
        tokio::spawn(proposer::propose(proposals, raft.clone(), duration(options.commit_timeout)));
        if is_new {
            tokio::spawn(begin(raft.clone(), members, options.id, duration(options.election_timeout)));
        }
        let watched = watch(&raft, &log, (&snapshots, options.snapshot_every), lease, &stand, &mut heard);
        let ended = tokio::select! {
            ended = watched => ended,
            () = stopped(stop) => Ok(()),
        };
        // The core has reported its own panic.
        drop(raft.shutdown().await);
        ended
    }
}

/// Timers: nodes with higher numbers wait longer, so that they do not all want to lead at once.
fn config(options: &ReplicaOptions, members: &BTreeSet<u64>) -> Result<Config, ReplicaError> {
    let millis = |span: Nanos| (span.0 / 1_000_000).max(1);
    let rank = members.range(..options.id).count() as u64;
    let election = millis(options.election_timeout);
    let election_timeout_min = election + rank * election * 3 / 10;
    let config = Config {
        cluster_name: "plimsoll".to_owned(),
        heartbeat_interval: millis(options.heartbeat),
        election_timeout_min,
        election_timeout_max: election_timeout_min + (election / 5).max(1),
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: KEPT_ENTRIES,
        ..Config::default()
    };
    config.validate().map_err(|error| ReplicaError::Stopped(error.to_string()))
}

/// Forms the cluster of nodes without a log: the first one does it, or another if that one does not.
async fn begin(raft: Raft, members: BTreeSet<u64>, id: u64, patience: Duration) {
    let rank = members.range(..id).count() as u32;
    tokio::time::sleep(patience * 4 * rank).await;
    // A node that has heard of a leader, or was asked for its vote, refuses: then there is a cluster already.
    drop(raft.initialize(members).await);
}

/// Reports the status of the node, and triggers snapshots, until the core ends.
async fn watch(
    raft: &Raft,
    log: &Log,
    (snapshots, snapshot_every): (&Snapshots, u64),
    lease: u64,
    stand: &watch::Sender<NodeStatus>,
    heard: &mut impl FnMut(&NodeStatus),
) -> Result<(), ReplicaError> {
    let mut metrics = raft.metrics();
    let mut snapshot_from = log.written();
    loop {
        let (node_status, state) = {
            let metrics = metrics.borrow_and_update();
            (NodeStatus::of(&metrics, lease), metrics.running_state.clone())
        };
        state.map_err(|error| ReplicaError::Stopped(error.to_string()))?;
        let before = stand.borrow().leader;
        stand.send_replace(node_status.clone());
        if before != node_status.leader {
            heard(&node_status);
        }
        // A snapshot that is longer than the log since the last one would cost more than it saves.
        if log.written() - snapshot_from >= snapshot_every.max(snapshots.length()) {
            snapshot_from = log.written();
            raft.trigger().snapshot().await.map_err(|error| ReplicaError::Stopped(error.to_string()))?;
        }
        if metrics.changed().await.is_err() {
            return Err(ReplicaError::Stopped("the core has ended".to_owned()));
        }
    }
}
