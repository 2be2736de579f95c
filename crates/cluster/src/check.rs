//! Checks of a cluster after a load.

mod content;
mod files;
mod writable;

use std::cell::Cell;

use plimsoll_core::Nanos;
use plimsoll_report::reconciliation::ConsistencyFinding;
use plimsoll_system::clock;

use crate::cluster::Cluster;
use crate::spec::{Check, CheckKind};
use content::{Inventory, differences};
use writable::{Moment, writable};

/// Pause between two checks of whether nodes agree.
const LOOK: Nanos = Nanos::from_millis(200);

/// Returns a finding for each node that was not killed for good and does not run, or does not become ready
/// again after the faults. The result is empty if all do.
pub fn survivors(cluster: &Cluster, gone: &[String]) -> Vec<ConsistencyFinding> {
    let begun = clock::monotonic();
    let mut found = Vec::new();
    for index in asked(cluster, gone) {
        let id = &cluster.spec().nodes[index].id;
        let Err(error) = cluster.await_ready(index, 0) else { continue };
        let text = error.to_string();
        let mut lines = text.lines().map(str::to_owned);
        let said = lines.next().unwrap_or_else(|| format!("node {id} is not ready"));
        let evidence = lines.map(|line| line.trim_start().to_owned()).collect();
        let took = clock::monotonic() - begun;
        found.push(ConsistencyFinding::new("survival", false, took, said, evidence));
    }
    found
}

/// The URLs of the nodes that a check asks. `gone` are the ids of nodes that were killed for good.
pub fn origins(cluster: &Cluster, check: &Check, gone: &[String]) -> Vec<String> {
    let address = |index| cluster.addresses.own_address(index, &check.content.port);
    asked(cluster, gone).into_iter().map(|index| format!("http://{}", address(index))).collect()
}

/// Facts about a load that the checks after it need.
#[derive(Clone, Debug, Default)]
pub struct After {
    /// The ids of nodes that were killed for good, which are not asked.
    pub gone: Vec<String>,
    /// When the last write of the load was acknowledged, in words; `None` if the load has written nothing, so
    /// that it is unknown whether the cluster takes writes at all.
    pub last_write: Option<String>,
}

/// Carries out the checks of a cluster's spec in their order, except for those that [are about the
/// load](CheckKind::is_of_load). After nodes were started again, it is checked once more whether writes are
/// taken.
pub fn carry_out(cluster: &Cluster, after: &After, say: &dyn Fn(&str)) -> Vec<ConsistencyFinding> {
    let After { gone, last_write } = after;
    let is_due = |check: &&Check| !check.is_default || last_write.is_some();
    let checks = || cluster.spec().checks.iter().filter(|check| !check.kind.is_of_load()).filter(is_due);
    let mut found = Vec::new();
    let of_load = Moment { after: "the load", since: last_write.as_deref().unwrap_or("the load") };
    let again = "all nodes were killed and started again";
    let of_restart = Moment { after: again, since: again };
    let restarted = Cell::new(false);
    let mut make = |check: &Check, moment: Moment<'_>| {
        say(&format!("checking {}", check.kind.name()));
        let begun = clock::monotonic();
        let judged = match check.kind {
            CheckKind::Convergence => convergence(cluster, check, gone),
            CheckKind::Persistence => persistence(cluster, check, gone, &restarted),
            CheckKind::Writable => writable(cluster, check, gone, moment),
            CheckKind::Acknowledged | CheckKind::Staleness | CheckKind::ErrorShare => return,
        };
        let took = clock::monotonic() - begun;
        let (passed, said, evidence) = match judged {
            Ok(said) => (true, said, Vec::new()),
            Err(Wrong { said, evidence, .. }) => (false, said, evidence),
        };
        found.push(ConsistencyFinding::new(check.kind.name(), passed, took, said, evidence));
    };
    let mut moment = of_load;
    for check in checks() {
        make(check, moment);
        if check.kind == CheckKind::Persistence && restarted.get() {
            moment = of_restart;
            checks().filter(|check| check.kind == CheckKind::Writable).for_each(|check| make(check, moment));
        }
    }
    found
}

/// A condition that does not hold.
struct Wrong {
    said: String,
    evidence: Vec<String>,
    /// `true` if waiting cannot change it.
    is_final: bool,
}

impl Wrong {
    fn new(said: impl Into<String>) -> Self {
        Self::with(said, Vec::new())
    }

    fn with(said: impl Into<String>, evidence: Vec<String>) -> Self {
        Self { said: said.into(), evidence, is_final: false }
    }

    /// Adds another failure to one that is known already, or returns it alone.
    fn and(before: Option<Self>, said: String, evidence: Vec<String>) -> Self {
        let Some(mut wrong) = before else { return Self::with(said, evidence) };
        wrong.said = format!("{}; {said}", wrong.said);
        wrong.evidence.extend(evidence);
        wrong
    }
}

/// The numbers of the nodes that are asked.
fn asked(cluster: &Cluster, gone: &[String]) -> Vec<usize> {
    let nodes = cluster.spec().nodes.iter().enumerate();
    nodes.filter(|(_, node)| !gone.contains(&node.id)).map(|(index, _)| index).collect()
}

/// All nodes converge to the same content: as many items by their own count, and the same ones.
fn convergence(cluster: &Cluster, check: &Check, gone: &[String]) -> Result<String, Wrong> {
    let nodes = asked(cluster, gone);
    let begun = clock::monotonic();
    loop {
        let now = clock::monotonic();
        let looked = agree(cluster, check, &nodes);
        let took = (now - begun).as_secs_f64();
        match looked {
            Ok(items) => {
                let whom = match nodes.as_slice() {
                    [_] => "1 node has".to_owned(),
                    nodes => format!("{} nodes have the same", nodes.len()),
                };
                return Ok(format!("{whom} {items}, {}", after(took)));
            }
            Err(wrong) if wrong.is_final => return Err(wrong),
            Err(Wrong { said, evidence, .. }) if now - begun >= check.within => {
                let within = check.within.as_secs_f64();
                return Err(Wrong::with(format!("{said}; waited for {within:.0} s"), evidence));
            }
            Err(_) => clock::sleep_until(now + LOOK),
        }
    }
}

/// `at once`, `after 2.1 s`.
fn after(seconds: f64) -> String {
    if seconds < 0.001 { "at once".to_owned() } else { format!("after {seconds:.1} s") }
}

/// Compares the contents of nodes now; returns the number of items, in words.
fn agree(cluster: &Cluster, check: &Check, nodes: &[usize]) -> Result<String, Wrong> {
    let mut seen: Vec<(String, Inventory)> = Vec::new();
    for &index in nodes {
        let id = cluster.spec().nodes[index].id.clone();
        if !cluster.runs(index) {
            let wrong = Wrong::new(format!("node {id} does not run any more"));
            return Err(Wrong { is_final: true, ..wrong });
        }
        let address = cluster.addresses.own_address(index, &check.content.port);
        let inventory = Inventory::read(address, &check.content);
        let inventory = inventory.map_err(|error| Wrong::new(format!("node {id}: {error}")))?;
        inventory.is_consistent().map_err(|said| Wrong::new(format!("node {id}: {said}")))?;
        seen.push((id, inventory));
    }
    let Some(((first, one), others)) = seen.split_first() else {
        return Err(Wrong::new("no node is left to be asked"));
    };
    let hash = one.hash();
    if let Some((id, other)) = others.iter().find(|(_, other)| other.hash() != hash) {
        let said = format!(
            "node {first} has {}, node {id} has {}, and they are not the same",
            one.said(),
            other.said()
        );
        return Err(Wrong::with(
            said,
            differences((&format!("node {first}"), one), (&format!("node {id}"), other)),
        ));
    }
    Ok(one.said())
}

/// Checks that the content outlives the nodes: kills all of them and starts them again on the same data. Sets
/// `restarted` just before the first is killed.
fn persistence(
    cluster: &Cluster,
    check: &Check,
    gone: &[String],
    restarted: &Cell<bool>,
) -> Result<String, Wrong> {
    let nodes = asked(cluster, gone);
    let within = check.within;
    let read = |index: usize| {
        let id = &cluster.spec().nodes[index].id;
        let address = cluster.addresses.own_address(index, &check.content.port);
        Inventory::read(address, &check.content).map_err(|error| Wrong::new(format!("node {id}: {error}")))
    };
    let before: Vec<Inventory> = nodes.iter().map(|index| read(*index)).collect::<Result<_, _>>()?;
    let mut evidence = Vec::new();
    for &index in &nodes {
        let id = &cluster.spec().nodes[index].id;
        evidence.extend(files::missing(&cluster.data(index), &check.files).into_iter().map(|missing| {
            format!("node {id}: no file that is not empty is called {missing} in its data folder")
        }));
    }
    if !evidence.is_empty() {
        return Err(Wrong::with("files are missing", evidence));
    }
    restarted.set(true);
    for &index in &nodes {
        cluster.kill(index).map_err(|error| Wrong::new(error.to_string()))?;
    }
    let told = |error: crate::ClusterError| {
        let text = error.to_string();
        let mut lines = text.lines().map(|line| line.trim_start().to_owned());
        let said = format!("after all were killed: {}", lines.next().unwrap_or_default());
        Wrong::with(said, lines.collect())
    };
    // Only log lines of this start count as a sign of readiness.
    let logs: Vec<u64> = nodes.iter().map(|index| cluster.log_length(*index)).collect();
    // All nodes first: one may wait for the others to be ready.
    nodes.iter().try_for_each(|index| cluster.start_again(*index)).map_err(told)?;
    for (&index, before) in nodes.iter().zip(logs) {
        cluster.await_ready(index, before).map_err(told)?;
    }
    let begun = clock::monotonic();
    loop {
        let now = clock::monotonic();
        let mut kept = Vec::new();
        let mut wrong: Option<Wrong> = None;
        for (&index, before) in nodes.iter().zip(&before) {
            let id = &cluster.spec().nodes[index].id;
            match read(index) {
                Ok(now) if now.hash() == before.hash() => kept.push(format!("node {id} {}", now.said())),
                Ok(now) => {
                    let (had, has) = (before.said(), now.said());
                    let said =
                        format!("node {id} had {had} before all nodes were killed, and has {has} after");
                    let name = |when: &str| format!("node {id} {when}");
                    let evidence = differences((&name("before"), before), (&name("after"), &now));
                    wrong = Some(Wrong::and(wrong, said, evidence));
                }
                Err(unread) => wrong = Some(Wrong::and(wrong, unread.said, unread.evidence)),
            }
        }
        match wrong {
            None => {
                let items = before.first().map_or(String::new(), Inventory::said);
                // One figure where it is that of all.
                let same = before.iter().all(|inventory| inventory.said() == items);
                let items = if same { items } else { kept.join(", ") };
                let took = after((now - begun).as_secs_f64());
                return Ok(format!("{items} outlived the end of all nodes, {took}"));
            }
            Some(wrong) if now - begun >= within => return Err(wrong),
            Some(_) => clock::sleep_until(now + LOOK),
        }
    }
}
