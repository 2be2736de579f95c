//! Faults while a load goes on: each begins and ends at its time.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_core::{Nanos, Random};
use plimsoll_system::clock;

use crate::cluster::Cluster;
use crate::fault::{Action, Calendar, Choice, FaultPlan, Impairment, Occurrence};
use crate::network::Extent;

/// Something that broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Name of the fault.
    pub fault: String,
    /// The ids of the nodes that it hit, and of links those of one side.
    pub nodes: Vec<String>,
    /// The ids of nodes that it has ended, and that were not started again.
    pub gone: Vec<String>,
    /// When it began, since the start of the load.
    pub at: Nanos,
    /// When it ended; `None` if it was over at once, or for good.
    pub until: Option<Nanos>,
    /// Reason why it could not be done.
    pub error: Option<String>,
}

/// Signals the faults that the load is over.
#[derive(Debug, Default)]
pub struct CancelSignal {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl CancelSignal {
    /// The load is over.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until an instant on the driver's clock; whether the load goes on then.
    pub fn goes_on_until(&self, at: Nanos) -> bool {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = clock::monotonic();
            if *rung || now >= at {
                return !*rung;
            }
            let left = Duration::from_nanos(at.since(now).0);
            (rung, _) = self.changed.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A fault that has begun and has to be ended.
struct Active<'a> {
    fault: &'a FaultPlan,
    nodes: Vec<usize>,
    /// Index of the fault's event, which is also the number of the fault at the network.
    event: usize,
    until: Nanos,
}

/// Carries out the faults of a cluster's spec from `start` on, an instant on the driver's clock, until the
/// cancel signal rings; then the remaining faults are ended. A fault that failed says so in its event. `mark`
/// gets the instants of actions, since the start, `say` their descriptions, and `told` all events so far
/// whenever one has begun or ended.
pub fn carry_out(
    cluster: &Cluster,
    start: Nanos,
    cancel: &CancelSignal,
    mark: &dyn Fn(Nanos),
    say: &dyn Fn(&str),
    told: &dyn Fn(&[Event]),
) -> Vec<Event> {
    let spec = cluster.spec();
    let mut calendar = Calendar::new(&spec.faults, spec.fault_seed).peekable();
    let mut course = Playback { cluster, start, events: Vec::new(), active: Vec::new(), mark, say };
    loop {
        let ends = course.active.iter().map(|active| active.until).min();
        let begins = calendar.peek().map(|next| next.at);
        let Some(next) = begins.into_iter().chain(ends).min() else {
            if cancel.goes_on_until(Nanos::MAX) {
                continue;
            }
            break;
        };
        if !cancel.goes_on_until(start + next) {
            break;
        }
        // Faults that end at this instant end before others begin.
        match course.active.iter().position(|active| active.until <= next) {
            Some(over) => {
                let active = course.active.remove(over);
                course.end(&active);
            }
            None => {
                if let Some(occurrence) = calendar.next() {
                    course.begin(occurrence);
                }
            }
        }
        told(&course.events);
    }
    for active in std::mem::take(&mut course.active) {
        course.end(&active);
    }
    course.events
}

struct Playback<'a> {
    cluster: &'a Cluster,
    start: Nanos,
    events: Vec<Event>,
    active: Vec<Active<'a>>,
    mark: &'a dyn Fn(Nanos),
    say: &'a dyn Fn(&str),
}

impl<'a> Playback<'a> {
    fn now(&self) -> Nanos {
        clock::monotonic().since(self.start)
    }

    fn begin(&mut self, occurrence: Occurrence<'a>) {
        let Occurrence { fault, mut random, at, .. } = occurrence;
        let number = self.events.len();
        let nodes = self.chosen(fault, &mut random);
        // `chosen` has asked for the leader before this instant.
        let begun = self.now();
        (self.mark)(begun);
        let done = nodes.and_then(|nodes| {
            self.cluster.break_(fault, &nodes, number as u64)?;
            Ok(nodes)
        });
        let (nodes, error) = match done {
            Ok(nodes) => (nodes, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let plan = |index: &usize| self.cluster.spec().nodes[*index].id.clone();
        let ids: Vec<String> = nodes.iter().map(plan).collect();
        let dies = fault.action == Action::Kill && fault.length.is_none();
        let at_s = begun.as_secs_f64();
        (self.say)(&match &error {
            None => format!("fault at {at_s:.1} s: {} {}", fault.name, whom(&ids)),
            Some(error) => format!("fault at {at_s:.1} s: {} could not be done: {error}", fault.name),
        });
        let gone = if dies { ids.clone() } else { Vec::new() };
        let failed = error.is_some();
        self.events.push(Event {
            fault: fault.name.clone(),
            nodes: ids,
            gone,
            at: begun,
            until: None,
            error,
        });
        if let Some(length) = fault.length.filter(|_| !failed) {
            self.active.push(Active { fault, nodes, event: number, until: begun.max(at) + length });
        }
    }

    fn end(&mut self, active: &Active<'_>) {
        let done = self.cluster.mend(active.fault, &active.nodes, active.event as u64);
        let now = self.now();
        (self.mark)(now);
        let event = &mut self.events[active.event];
        event.until = Some(now);
        if let Err(error) = done {
            (self.say)(&format!("the end of {} at {:.1} s: {error}", event.fault, now.as_secs_f64()));
            event.error = Some(format!("its end: {error}"));
        }
    }

    /// The nodes that a fault hits, each once.
    fn chosen(&self, fault: &FaultPlan, random: &mut Random) -> Result<Vec<usize>, String> {
        let count = self.cluster.spec().nodes.len();
        let of_id =
            |id: &String| self.cluster.addresses.node(id).ok_or_else(|| format!("there is no node {id}"));
        if let Action::Partition { side } = &fault.action {
            return side.iter().map(of_id).collect();
        }
        let mut nodes = Vec::new();
        for choice in &fault.choices {
            match choice {
                Choice::Id(id) => nodes.push(of_id(id)?),
                Choice::Leader => nodes.push(self.cluster.leader()?),
                Choice::All => nodes.extend(0..count),
                Choice::Random => nodes.push(random.below(count as u64) as usize),
                Choice::Follower => {
                    let leader = self.cluster.leader()?;
                    let others: Vec<usize> = (0..count).filter(|node| *node != leader).collect();
                    let drawn = random.below(others.len() as u64) as usize;
                    nodes.push(*others.get(drawn).ok_or("there is only one node")?);
                }
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }
}

/// `node 1`, `nodes 0 and 2`.
fn whom(ids: &[String]) -> String {
    match ids {
        [id] => format!("node {id}"),
        ids => format!("nodes {}", ids.join(", ")),
    }
}

impl Cluster {
    /// Begins a fault on these nodes.
    fn break_(&self, fault: &FaultPlan, nodes: &[usize], number: u64) -> Result<(), String> {
        let each = |work: &dyn Fn(usize) -> Result<(), crate::ClusterError>| {
            nodes.iter().try_for_each(|node| work(*node)).map_err(|error| error.to_string())
        };
        match &fault.action {
            Action::Kill => each(&|node| self.kill(node)),
            Action::Stop => each(&|node| {
                self.halt(node, true);
                Ok(())
            }),
            Action::Restart => each(&|node| self.restart(node)),
            Action::DiskFull { largest } => each(&|node| {
                self.limit_files(node, Some(largest.unwrap_or_else(|| largest_file(&self.data(node)))));
                Ok(())
            }),
            Action::Links(impairment) => {
                self.impair(fault, *impairment, number, (nodes, false))?;
                // An impairment without a length ends at once.
                if fault.length.is_none() { self.addresses.network.end(number) } else { Ok(()) }
            }
            Action::Partition { .. } => self.impair(fault, Impairment::Cut, number, (nodes, true)),
        }
    }

    fn impair(
        &self,
        fault: &FaultPlan,
        impairment: Impairment,
        number: u64,
        (nodes, is_across): (&[usize], bool),
    ) -> Result<(), String> {
        let extent = Extent { nodes: nodes.to_vec(), is_across, port: fault.port.clone() };
        self.addresses.network.begin(number, impairment, &extent)
    }

    /// Ends a fault on these nodes.
    fn mend(&self, fault: &FaultPlan, nodes: &[usize], number: u64) -> Result<(), String> {
        match &fault.action {
            Action::Kill => {
                nodes.iter().try_for_each(|node| self.start_again(*node)).map_err(|error| error.to_string())
            }
            Action::Stop => {
                nodes.iter().for_each(|node| self.halt(*node, false));
                Ok(())
            }
            Action::DiskFull { .. } => {
                nodes.iter().for_each(|node| self.limit_files(*node, None));
                // Many servers end when their disk is full, so they are started again once there is room.
                nodes.iter().try_for_each(|node| self.start_again(*node)).map_err(|error| error.to_string())
            }
            Action::Restart => Ok(()),
            Action::Links(_) | Action::Partition { .. } => self.addresses.network.end(number),
        }
    }
}

/// The size of the largest file in a folder and those in it, in bytes.
fn largest_file(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => largest_file(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |found| found.len()),
        _ => 0,
    });
    sizes.max().unwrap_or(0)
}
