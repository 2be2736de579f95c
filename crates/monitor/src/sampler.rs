//! The sampler: everything that is watched during a run, read once per interval.

use std::path::{Path, PathBuf};

use plimsoll_core::Nanos;
use plimsoll_metrics::{MachineFacts, MachineInterval, TargetProcess};

use crate::kept::{Buffer, text};
use crate::machine::Machine;
use crate::network::Network;
use crate::parse;
use crate::process::{self, Process, Thread};
use crate::target::{self, Watch};

/// Where the files are: below the root of the system, or of a captured one in tests.
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

/// What is watched during a run: this machine, our process with its worker threads, the target's.
///
/// Open it when the workers run, and call [`sample`](Self::sample) once per interval, from a thread that is
/// none of them. A look takes some tenths of a millisecond and allocates the lists of the interval, nothing
/// else.
#[derive(Debug)]
pub struct Sampler {
    buffer: Buffer,
    last: Nanos,
    workers: Vec<Thread>,
    generator: Option<Process>,
    target: Vec<Process>,
    machine: Machine,
    network: Network,
    facts: MachineFacts,
}

impl Sampler {
    /// Takes the first look, at `now`. Worker threads are those whose names are `worker_prefix` and a number.
    pub fn open(worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        Self::open_in(&Tree::system(), worker_prefix, watch, now)
    }

    /// The same below another root than the system's: that of a captured `/proc`.
    pub fn open_below(root: &Path, worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        Self::open_in(&Tree::of(root), worker_prefix, watch, now)
    }

    fn open_in(tree: &Tree, worker_prefix: &str, watch: &Watch, now: Nanos) -> Self {
        let (mut buffer, mut missing) = (Buffer::new(), Vec::new());
        let own = tree.at("/proc/self");
        let generator = Process::open(tree, &own, &mut buffer, &mut missing);
        let pids = target::find(tree, watch, &mut missing);
        let mut target = Vec::new();
        for pid in &pids {
            let folder = tree.at("/proc").join(pid.to_string());
            target.extend(Process::open(tree, &folder, &mut buffer, &mut missing));
        }
        let mut facts = facts(tree);
        facts.limits = generator.as_ref().map(|process| process.groups.limits).unwrap_or_default();
        facts.target = target.first().zip(pids.first()).map(|(process, pid)| TargetProcess {
            pids: pids.clone(),
            name: text(&tree.at("/proc").join(pid.to_string()).join("comm")).unwrap_or_default(),
            limits: process.groups.limits,
        });
        let machine = Machine::open(tree, &mut buffer, &mut missing);
        let network = Network::open(tree, &mut buffer, &mut missing);
        let workers = process::workers(tree, worker_prefix, &mut buffer);
        facts.missing = missing;
        Self { buffer, last: now, workers, generator, target, machine, network, facts }
    }

    /// What does not change.
    pub fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    /// What happened since the last look; `now` is on the same clock as that of [`open`](Self::open). When
    /// the interval of the run ended, and whether it was warm-up, is left to the caller.
    pub fn sample(&mut self, now: Nanos) -> MachineInterval {
        let buffer = &mut self.buffer;
        let length = now.since(std::mem::replace(&mut self.last, now));
        let mut cores = Vec::new();
        self.machine.cores(buffer, &mut cores);
        MachineInterval {
            at: now,
            length,
            warmup: false,
            workers: self.workers.iter_mut().map(|thread| thread.sample(buffer)).collect(),
            generator: self.generator.as_mut().and_then(|process| process.sample(buffer)),
            target: process::together(&mut self.target, buffer),
            cores,
            pressure: self.machine.pressure(buffer),
            load_hundredths: self.machine.load_hundredths(buffer),
            network: self.network.sample(buffer),
        }
    }
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
