//! The sampler: everything that is watched during a run, read once per interval.

use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_metrics::{MachineFacts, MachineInterval, TargetProcess, WatchedProcess, WatchedUse};

use crate::kept::{Buffer, text};
use crate::machine::Machine;
use crate::network::Network;
use crate::others::OtherProcesses;
use crate::parse;
use crate::process::{self, Process, THREADS_WATCHED, Thread};
use crate::server::{ProcessTable, Server};
use crate::target::{self, Watch};

/// The root of the files: that of the system, or of a captured one in tests.
#[derive(Clone, Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn system() -> Self {
        Self::of(Path::new("/"))
    }

    pub(crate) fn of(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// The place of an absolute path.
    pub(crate) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Everything that is watched during a run: this machine, our process with its worker threads, the target's
/// processes, and those of servers that were named.
///
/// Open it when the workers run, and call [`sample`](Self::sample) once per interval, from a thread that is
/// none of them. A look takes some tenths of a millisecond and allocates the lists of the interval, nothing
/// else. Where servers were named, or others use the processors, it looks at all processes of the system,
/// some ten microseconds for each.
#[derive(Debug)]
pub struct Sampler {
    tree: Tree,
    buffer: Buffer,
    last: Nanos,
    workers: Vec<Thread>,
    generator: Option<Process>,
    /// In the order of those of the facts.
    servers: Vec<Server>,
    others: OtherProcesses,
    machine: Machine,
    network: Network,
    facts: MachineFacts,
}

impl Sampler {
    /// Takes the first look, at `now`. Worker threads are those whose names are `worker_prefix` and a number.
    pub fn open(worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        Self::open_in(&Tree::system(), worker_prefix, watch, now)
    }

    /// Takes the first look, at `now`, below another root than the system's: that of a captured `/proc`.
    pub fn open_below(root: &Path, worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        Self::open_in(&Tree::of(root), worker_prefix, watch, now)
    }

    fn open_in(tree: &Tree, worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        let (mut buffer, mut missing) = (Buffer::new(), Vec::new());
        let own = tree.at("/proc/self");
        let generator = Process::open(tree, &own, THREADS_WATCHED, &mut buffer, &mut missing);
        let mut facts = facts(tree);
        facts.limits = generator.as_ref().map(|process| process.groups.limits).unwrap_or_default();
        let (servers, watched) = servers(tree, watch, &mut buffer, &mut missing);
        facts.target = watched.iter().find(|server| server.is_target).map(|server| TargetProcess {
            pids: server.pids.clone(),
            name: server.name.clone(),
            limits: server.limits,
        });
        facts.watched = watched;
        let machine = Machine::open(tree, &mut buffer, &mut missing);
        let network = Network::open(tree, &mut buffer, &mut missing);
        let workers = process::workers(tree, worker_prefix, &mut buffer);
        facts.missing = missing;
        let others = OtherProcesses::open(ProcessTable::take(tree, &mut buffer));
        let tree = tree.clone();
        Self { tree, buffer, last: now, workers, generator, servers, others, machine, network, facts }
    }

    /// Returns the facts that do not change. Their list of unreadable files may grow.
    pub fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    /// Adds the reason why something was not read that others than this sampler read.
    pub fn note_missing(&mut self, reason: String) {
        if !self.facts.missing.contains(&reason) {
            self.facts.missing.push(reason);
        }
    }

    /// Returns the activity since the last look. `now` is on the same clock as that of [`open`](Self::open).
    /// The caller sets when the interval of the run ended, and whether it was warm-up.
    pub fn sample(&mut self, now: Nanos) -> MachineInterval {
        let (buffer, facts) = (&mut self.buffer, &mut self.facts);
        let length = now.since(std::mem::replace(&mut self.last, now));
        let mut cores = Vec::new();
        self.machine.cores(buffer, &mut cores);
        let is_asked = self.servers.iter().any(Server::comes_and_goes);
        let census = is_asked.then(|| ProcessTable::take(&self.tree, buffer));
        let servers = self.servers.iter_mut().zip(&mut facts.watched);
        let watched: Vec<WatchedUse> = servers
            .map(|(server, facts)| server.sample(&self.tree, census.as_ref(), buffer, facts))
            .collect();
        let target = facts.watched.iter().position(|server| server.is_target);
        let workers = self.workers.iter_mut().map(|thread| thread.sample(buffer)).collect();
        let generator =
            self.generator.as_mut().and_then(|process| process.sample(buffer, &mut facts.missing));
        let known = watched.iter().filter_map(|server| server.used).chain(generator);
        let known = known.fold(Nanos::ZERO, |sum, process| sum + process.cpu);
        let busy = cores.iter().fold(Nanos::ZERO, |sum, core| sum + core.busy);
        let (servers, tree) = (&self.servers, &self.tree);
        let others = self.others.sample(
            busy.since(known),
            length,
            |pid| servers.iter().any(|server| server.has(pid)),
            || census.unwrap_or_else(|| ProcessTable::take(tree, buffer)),
        );
        MachineInterval {
            at: now,
            length,
            warmup: false,
            workers,
            generator,
            target: target.and_then(|number| watched[number].used),
            watched,
            others,
            cores,
            pressure: self.machine.pressure(buffer),
            load_hundredths: self.machine.load_hundredths(buffer),
            network: self.network.sample(buffer),
            target_queue: None,
            own_segments: None,
        }
    }
}

/// The servers that are watched, and the constant facts about each. The target's is the one that listens on
/// its address, or, if none was found, the first that was named.
fn servers(
    tree: &Tree,
    watch: &Watch,
    buffer: &mut Buffer,
    missing: &mut Vec<String>,
) -> (Vec<Server>, Vec<WatchedProcess>) {
    let census =
        if watch.named.is_empty() { ProcessTable::default() } else { ProcessTable::take(tree, buffer) };
    let (mut servers, mut watched): (Vec<Server>, Vec<WatchedProcess>) =
        watch.named.iter().map(|named| Server::named(tree, named, &census, buffer)).unzip();
    let listening = target::find(tree, watch, missing);
    let known = servers.iter().position(|server| server.has_all(&listening));
    if known.is_none() || servers.is_empty() {
        let (server, facts) = Server::of(tree, &listening, buffer);
        if !server.is_nobody() {
            servers.insert(0, server);
            watched.insert(0, facts);
        }
    }
    if let Some(target) = watched.get_mut(known.unwrap_or(0)) {
        target.is_target = true;
    }
    (servers, watched)
}

fn facts(tree: &Tree) -> MachineFacts {
    let ports = text(&tree.at("/proc/sys/net/ipv4/ip_local_port_range"));
    let limits = text(&tree.at("/proc/self/limits")).unwrap_or_default();
    let descriptors = parse::process::limit(limits.as_bytes(), b"Max open files");
    MachineFacts {
        ports: ports.and_then(|range| parse::machine::port_count(range.as_bytes())),
        soft_descriptors: descriptors.and_then(|[soft, _]| soft),
        ..MachineFacts::default()
    }
}
