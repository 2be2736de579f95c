//! A cluster that runs: its nodes, its links, and the operations on them.

use core::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::Nanos;
use plimsoll_system::{child, clock, ports::is_free};
use rustix::process::Signal;

use crate::address_book::{AddressBook, Surroundings};
use crate::ask;
use crate::error::{ClusterError, of_file};
use crate::node::{Launch, Node};
use crate::process_tag::{self, ProcessTag};
use crate::readiness::{self, ProbeContext, QUESTION};
use crate::spec::{Clean, Spec};
use crate::state_dir::{NodeState, State, StateDir};

/// Pause between two checks of whether something is ready.
const LOOK: Nanos = Nanos::from_millis(20);

/// Settings for the start of a cluster, beside its spec.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Name of this cluster in the tag of its processes, which no other cluster has.
    pub id: String,
    /// A number that places of free ports depend on.
    pub seed: u64,
    /// Values of template names that come from outside the spec.
    pub surroundings: Surroundings,
    /// The profile, if it is not that of the spec.
    pub profile: Option<String>,
    /// Data folders that may be removed even if other programs made them.
    pub clean: Vec<PathBuf>,
    /// The process that ends the cluster, and whether there are links through the fault proxy, which live in
    /// it. `None` if the nodes go on without us.
    pub owner: Option<u32>,
}

/// A cluster that runs. Nodes go on when it is dropped, unless it was [ended](Self::end): the owner has a
/// guard for that.
#[derive(Debug)]
pub struct Cluster {
    spec: Spec,
    state_dir: StateDir,
    id: String,
    owner: Option<u32>,
    pub(crate) addresses: AddressBook,
    note: Option<String>,
    nodes: Vec<Mutex<Node>>,
}

impl Cluster {
    /// Prepares folders and ports, starts the nodes, and waits until all are ready. The started nodes are
    /// ended again if one does not become ready. `say` gets messages about the progress.
    ///
    /// # Errors
    /// The reason why it does not run.
    pub fn start(spec: &Spec, setting: &Setting, say: &dyn Fn(&str)) -> Result<Self, ClusterError> {
        let state_dir = StateDir::at(&spec.directory)?;
        if state_dir.running()?.is_some() {
            return Err(ClusterError::Runs(state_dir.root().to_owned()));
        }
        let removed = state_dir.prepare(&spec.nodes, spec.clean != Clean::Never, &setting.clean)?;
        removed.iter().for_each(|path| say(&format!("removed {}", path.display())));
        child::survive_file_limits();
        let is_owned = setting.owner.is_some();
        let (addresses, note) =
            AddressBook::new(spec, &state_dir, &setting.surroundings, setting.seed, is_owned)?;
        note.iter().for_each(|note| say(note));
        let profile = setting.profile.as_ref().or(spec.profile.as_ref());
        let launch =
            |index| Mutex::new(Node::new(launch(spec, &state_dir, &addresses, profile, index), &setting.id));
        let nodes: Vec<Mutex<Node>> = (0..spec.nodes.len()).map(launch).collect();
        let (id, owner) = (setting.id.clone(), setting.owner);
        let cluster = Self { spec: spec.clone(), state_dir, id, owner, addresses, note, nodes };
        match cluster.start_all(say) {
            Ok(()) => Ok(cluster),
            Err(error) => {
                // The error of the start matters more than one of the cleanup.
                let _ = cluster.end();
                Err(error)
            }
        }
    }

    fn start_all(&self, say: &dyn Fn(&str)) -> Result<(), ClusterError> {
        let begun = clock::monotonic();
        let starts: Vec<u64> =
            self.spec.nodes.iter().map(|node| readiness::length(&self.state_dir.log(node))).collect();
        self.ports_are_free()?;
        for (index, node) in self.spec.nodes.iter().enumerate() {
            clock::sleep_until(clock::monotonic() + node.delay);
            self.start_node(&mut self.node(index), index)?;
            self.note()?;
            if node.wait {
                self.await_ready(index, starts[index])?;
            }
        }
        for (index, node) in self.spec.nodes.iter().enumerate() {
            if !node.wait {
                self.await_ready(index, starts[index])?;
            }
        }
        let took = (clock::monotonic() - begun).as_secs_f64();
        let nodes = if self.nodes.len() == 1 { "node is" } else { "nodes are" };
        say(&format!("{} {nodes} ready after {took:.1} s", self.nodes.len()));
        Ok(())
    }

    /// Checks that no process listens on the ports of the nodes yet: its answers would be taken for theirs.
    fn ports_are_free(&self) -> Result<(), ClusterError> {
        for (index, node) in self.spec.nodes.iter().enumerate() {
            for (name, number) in self.addresses.ports(index) {
                let address = self.addresses.own_address(index, name);
                let is_free = self.addresses.network.at(index, || is_free(address));
                let no_network =
                    |error| ClusterError::System { what: "cannot enter the network of a node", error };
                if !is_free.map_err(no_network)? {
                    let (node, port, number) = (node.id.clone(), name.clone(), *number);
                    return Err(ClusterError::PortTaken { node, port, number });
                }
            }
        }
        Ok(())
    }

    /// Starts a node in its network.
    fn start_node(&self, node: &mut Node, index: usize) -> Result<(), ClusterError> {
        let begun = self.addresses.network.at(index, || node.start());
        begun.map_err(|error| ClusterError::System { what: "cannot enter the network of a node", error })?
    }

    /// Waits until a node is ready. `before` is how long its log was when it was started.
    pub(crate) fn await_ready(&self, index: usize, before: u64) -> Result<(), ClusterError> {
        let plan = &self.spec.nodes[index];
        let log = self.state_dir.log(plan);
        let until = clock::monotonic() + plan.ready_within;
        let failed = |reason: String| ClusterError::NotReady {
            node: plan.id.clone(),
            reason,
            said: readiness::told_lines(&log, before),
            log: log.clone(),
        };
        let asked = self.asked(index, &log, before);
        loop {
            if let Some(status) = self.node(index).ended() {
                return Err(failed(format!("it has ended with {status}")));
            }
            match plan.ready.iter().try_for_each(|probe| asked.look(probe)) {
                Ok(()) => return Ok(()),
                Err(reason) if clock::monotonic() >= until => return Err(failed(reason)),
                Err(_) => clock::sleep_until(clock::monotonic() + LOOK),
            }
        }
    }

    fn asked<'a>(&'a self, index: usize, log: &'a Path, before: u64) -> ProbeContext<'a> {
        // Boxed once per wait, so that it may know the node.
        let port: Box<dyn Fn(&str) -> SocketAddr + 'a> =
            Box::new(move |name: &str| self.addresses.own_address(index, name));
        ProbeContext { port, log, before }
    }

    /// A node. Each is locked for as long as something is done to it.
    pub(crate) fn node(&self, index: usize) -> MutexGuard<'_, Node> {
        // A panic with this lock can at worst hide that the process has ended.
        self.nodes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spec that it was started by.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Reason why the network is another one than was asked for first; `None` if it is that one.
    pub fn network_note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The folder of the cluster.
    pub fn directory(&self) -> &Path {
        self.state_dir.root()
    }

    /// Returns the id of each node with the environment entry that its processes carry.
    pub fn marks(&self) -> Vec<(String, String)> {
        let of = |index| {
            let node = self.node(index);
            (node.launch.id.clone(), node.mark.entry().to_owned())
        };
        (0..self.nodes.len()).map(of).collect()
    }

    /// Returns the nodes that run, in the form that is written to the state file.
    pub fn state(&self) -> State {
        let nodes = self.spec.nodes.iter().enumerate().filter_map(|(index, plan)| {
            let node = self.node(index);
            Some(NodeState {
                id: plan.id.clone(),
                pid: node.pid()?,
                began: node.began(),
                host: self.addresses.network.host(index),
                ports: self.addresses.ports(index).to_vec(),
                data: self.state_dir.data(plan),
                log: self.state_dir.log(plan),
                grace_ns: plan.grace.0,
            })
        });
        let nodes = nodes.collect();
        State { id: self.id.clone(), name: self.spec.name.clone(), owner: self.owner, nodes }
    }

    fn note(&self) -> Result<(), ClusterError> {
        self.state_dir.note(&self.state())
    }

    /// A text of the load with its values; those of the leader, if there is one.
    pub fn of_load(&self, text: &str, leader: Option<usize>) -> String {
        self.addresses.of_load(text, leader)
    }

    /// Returns the current leader, as reported by the first node that knows it.
    ///
    /// # Errors
    /// The reason why no node knows it.
    pub fn leader(&self) -> Result<usize, String> {
        let Some(question) = &self.spec.leader else { return Err("the spec has no `leader`".to_owned()) };
        let mut reason = "there are no nodes".to_owned();
        for (index, plan) in self.spec.nodes.iter().enumerate() {
            if self.addresses.own_port(index, &question.port).is_none() {
                continue;
            }
            let address = self.addresses.own_address(index, &question.port);
            // Asked from within the node's own network: links to the load may be broken.
            let asked = self.addresses.network.at(index, || ask::json(address, &question.path, QUESTION));
            let answer = asked.map_err(|error| error.to_string());
            let found = answer.flatten().and_then(|answer| {
                let said = answer.pointer(&question.pointer).cloned().unwrap_or_default();
                match &said {
                    serde_json::Value::Bool(true) => Ok(index),
                    said => self
                        .addresses
                        .node(&ask::shown(said))
                        .ok_or_else(|| format!("{} is at {}", said, question.pointer)),
                }
            });
            match found {
                // Nodes may still name a leader that has died.
                Ok(leader) if self.node(leader).runs() => return Ok(leader),
                Ok(leader) => reason = format!("node {} names {leader}, which does not run", plan.id),
                Err(why) => reason = format!("node {}: {why}", plan.id),
            }
        }
        Err(reason)
    }

    /// Waits for a leader, for as long as the spec allows; `None` if the spec does not say how to find it.
    ///
    /// # Errors
    /// There is no leader in that time.
    pub fn await_leader(&self) -> Result<Option<usize>, ClusterError> {
        let Some(question) = &self.spec.leader else { return Ok(None) };
        let until = clock::monotonic() + question.within;
        loop {
            match self.leader() {
                Ok(leader) => return Ok(Some(leader)),
                Err(reason) if clock::monotonic() >= until => return Err(ClusterError::NoLeader(reason)),
                Err(_) => clock::sleep_until(clock::monotonic() + LOOK),
            }
        }
    }

    /// Kills a node.
    ///
    /// # Errors
    /// Some of its processes cannot be killed.
    pub fn kill(&self, index: usize) -> Result<(), ClusterError> {
        self.node(index).kill()
    }

    /// Stops a node (SIGSTOP), or lets it go on.
    pub fn halt(&self, index: usize, halted: bool) {
        self.node(index).signal(if halted { Signal::STOP } else { Signal::CONT });
    }

    /// Starts a node again that has ended.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_again(&self, index: usize) -> Result<(), ClusterError> {
        {
            let mut node = self.node(index);
            if node.runs() {
                return Ok(());
            }
            self.start_node(&mut node, index)?;
        }
        self.note()
    }

    /// Returns the length of a node's log, in bytes.
    pub(crate) fn log_length(&self, index: usize) -> u64 {
        readiness::length(&self.state_dir.log(&self.spec.nodes[index]))
    }

    /// Ends a node by SIGTERM, and starts it again.
    ///
    /// # Errors
    /// It cannot be ended or started.
    pub fn restart(&self, index: usize) -> Result<(), ClusterError> {
        self.node(index).end()?;
        self.start_again(index)
    }

    /// Returns `true` if the first process of a node runs.
    pub fn runs(&self, index: usize) -> bool {
        self.node(index).runs()
    }

    /// Limits how large the files of a node may become; `None` lifts the limit.
    pub fn limit_files(&self, index: usize, largest: Option<u64>) {
        self.node(index).limit_files(largest);
    }

    /// The data folder of a node.
    pub fn data(&self, index: usize) -> PathBuf {
        self.state_dir.data(&self.spec.nodes[index])
    }

    /// Ends all nodes, each by SIGTERM first, and the processes that they have left. Data that are to be
    /// removed then are.
    ///
    /// # Errors
    /// Some of their processes cannot be ended.
    pub fn end(&self) -> Result<(), ClusterError> {
        // All at once: the graces run in parallel, not one after the other.
        for index in 0..self.nodes.len() {
            let mut node = self.node(index);
            node.signal(Signal::TERM);
            node.signal(Signal::CONT);
        }
        let ended = (0..self.nodes.len()).map(|index| self.node(index).end());
        ended.collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, _>>()?;
        self.state_dir.forget();
        if self.spec.clean == Clean::Both {
            self.state_dir.remove_data(&self.spec.nodes)?;
        }
        Ok(())
    }
}

fn launch(
    spec: &Spec,
    state_dir: &StateDir,
    addresses: &AddressBook,
    profile: Option<&String>,
    index: usize,
) -> Launch {
    let plan = &spec.nodes[index];
    let profile = spec.profiles.iter().find(|known| Some(&known.name) == profile);
    let of = |text: &String| addresses.of_node(text, index, None);
    let mut arguments: Vec<String> = plan.arguments.iter().map(of).collect();
    for peer in (0..spec.nodes.len()).filter(|peer| *peer != index) {
        arguments.extend(plan.per_peer.iter().map(|text| addresses.of_node(text, index, Some(peer))));
    }
    arguments.extend(profile.iter().flat_map(|profile| &profile.arguments).map(of));
    let above = profile.iter().flat_map(|profile| &profile.environment);
    let environment = plan.environment.iter().chain(above);
    Launch {
        id: plan.id.clone(),
        command: of(&plan.command),
        arguments,
        environment: environment.map(|(name, value)| (name.clone(), of(value))).collect(),
        folder: state_dir.of_node(plan),
        log: state_dir.log(plan),
        grace: plan.grace,
    }
}

/// A text of the load with provisional ports, so that a plan can be checked before anything is started.
///
/// # Errors
/// The folder of the cluster cannot be named.
pub fn provisional(spec: &Spec, surroundings: &Surroundings, text: &str) -> Result<String, ClusterError> {
    let state_dir = StateDir::at(&spec.directory)?;
    let addresses = AddressBook::provisional(spec, &state_dir, surroundings)
        .map_err(of_file("find", state_dir.root()))?;
    Ok(addresses.of_load(text, Some(0)))
}

/// Returns the state of the cluster that runs in a folder.
///
/// # Errors
/// No cluster runs there, or its state file cannot be read.
pub fn running(directory: &Path) -> Result<State, ClusterError> {
    let state_dir = StateDir::at(directory)?;
    state_dir.running()?.ok_or_else(|| ClusterError::Nothing(state_dir.root().to_owned()))
}

/// Ends a cluster that another process has started: by SIGTERM to the first process of each node, and after
/// their grace by SIGKILL to all.
///
/// # Errors
/// Some of its processes cannot be ended.
pub fn end_running(directory: &Path, state: &State) -> Result<(), ClusterError> {
    let all = ProcessTag::of_cluster(&state.id);
    all.signal(Signal::TERM);
    all.signal(Signal::CONT);
    let grace = state.nodes.iter().map(|node| node.grace_ns).max().unwrap_or(0);
    let until = clock::monotonic() + Nanos(grace);
    while !all.processes().is_empty() && clock::monotonic() < until {
        clock::sleep_until(clock::monotonic() + LOOK);
    }
    all.kill().map_err(|left| ClusterError::System {
        what: "cannot kill the processes of the cluster",
        error: std::io::Error::other(format!("{left} are left")),
    })?;
    StateDir::at(directory)?.forget();
    Ok(())
}

/// Returns `true` if the first process of a node still runs.
pub fn is_running(node: &NodeState) -> bool {
    node.began.is_some() && process_tag::began(node.pid) == node.began
}
