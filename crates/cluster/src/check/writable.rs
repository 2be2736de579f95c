//! The check that a cluster takes writes: an item is created at the leader, read back and deleted.

use plimsoll_core::Nanos;
use plimsoll_system::clock;
use serde_json::Value;

use super::{Wrong, asked};
use crate::ask::{self, Answer};
use crate::cluster::Cluster;
use crate::spec::Check;

/// Lower bound of the time limit for one request, however little of the check's time is left.
const LEAST_PATIENCE: Nanos = Nanos::from_secs(1);
/// Between two attempts: those that are answered by an error may have left something all the same.
const AGAIN: Nanos = Nanos::from_millis(500);
/// Advice where the id of an item is not found.
const ID_HINT: &str =
    "say where the id is: `id: /POINTER` of the check `writable`, or `item: none` to leave it out";
/// Characters of an answer that are shown.
const SHOWN: usize = 200;

/// When a cluster is asked to take writes, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    /// Event before it: "the load".
    pub(super) after: &'a str,
    /// Since when it takes none, if it takes none: "the start of the load".
    pub(super) since: &'a str,
}

/// Creates an item at the leader, reads it there and deletes it; at the first node that takes it if the spec
/// does not name the leader.
///
/// # Errors
/// No node takes writes in the time of the check, and since when; or the answer of one that does has no id.
pub(super) fn writable(
    cluster: &Cluster,
    check: &Check,
    gone: &[String],
    Moment { after, since }: Moment<'_>,
) -> Result<String, Wrong> {
    let begun = clock::monotonic();
    loop {
        let now = clock::monotonic();
        let patience = (begun + check.within).since(now).max(LEAST_PATIENCE);
        let refused = match takers(cluster, gone) {
            Err(reason) => vec![format!("no leader: {reason}")],
            Ok(nodes) => {
                let mut refused = Vec::new();
                for node in nodes {
                    let id = &cluster.spec().nodes[node].id;
                    match write(cluster, check, node, patience) {
                        Ok(()) => {
                            let took = (clock::monotonic() - begun).as_secs_f64();
                            return Ok(format!("node {id} takes writes after {after}, in {took:.1} s"));
                        }
                        Err(Unwritten::Refused(reason)) => refused.push(format!("node {id}: {reason}")),
                        // A second attempt would create another item.
                        Err(Unwritten::Unnamed(reason)) => {
                            let said = format!("writes cannot be checked: node {id}: {reason}");
                            return Err(Wrong::with(said, vec![ID_HINT.to_owned()]));
                        }
                    }
                }
                refused
            }
        };
        if clock::monotonic() - begun >= check.within {
            let waited = check.within.as_secs_f64();
            let said = format!("takes no writes since {since}; waited for {waited:.0} s");
            return Err(Wrong::with(said, refused));
        }
        clock::sleep_until(now + AGAIN);
    }
}

/// Whom a write is sent to, in turn.
fn takers(cluster: &Cluster, gone: &[String]) -> Result<Vec<usize>, String> {
    match cluster.spec().leader {
        Some(_) => cluster.leader().map(|leader| vec![leader]),
        None => Ok(asked(cluster, gone)),
    }
}

/// Reason why an item was not created, read back and deleted.
enum Unwritten {
    /// A request was refused, or not answered.
    Refused(String),
    /// The item was created, but its id is unknown.
    Unnamed(String),
}

impl From<String> for Unwritten {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// Creates an item at a node, reads it back and deletes it.
fn write(cluster: &Cluster, check: &Check, node: usize, patience: Nanos) -> Result<(), Unwritten> {
    let content = &check.content;
    let address = cluster.addresses.own_address(node, &content.port);
    let list = content.list.split('?').next().unwrap_or_default();
    let made = ask::post(address, list, &check.item, patience)?;
    good(&format!("POST {list}"), &made)?;
    let item: Option<Value> = serde_json::from_slice(&made.body).ok();
    let Some(id) = item.as_ref().and_then(|item| item.pointer(&content.id)).map(ask::shown) else {
        let (status, id) = (made.status, &content.id);
        let said = format!("POST {list} was answered by {status}, and there is no id at {id} of the answer");
        return Err(Unwritten::Unnamed(said));
    };
    let item = format!("{list}/{id}");
    good(&format!("GET {item}"), &ask::get(address, &item, patience)?)?;
    good(&format!("DELETE {item}"), &ask::delete(address, &item, patience)?)?;
    Ok(())
}

/// Returns `Ok` if the status is 2xx, else the status and the start of the body as the error.
fn good(request: &str, Answer { status, body, .. }: &Answer) -> Result<(), String> {
    if (200..300).contains(status) {
        return Ok(());
    }
    let body: String = String::from_utf8_lossy(body).chars().take(SHOWN).collect();
    Err(format!("{request} was answered by {status} {}", body.trim()).trim_end().to_owned())
}
