//! Measurement of how far reads are behind: one item is changed at the leader over and over, and every node
//! is asked for it.
//!
//! The item has a number that grows with each change. A node is behind if it answers with a number below one
//! that was acknowledged before the question. Its lag is the time since the acknowledgement of the number
//! that follows its answer. A node has gone back in time if it answers with a number below one that it has
//! shown before. No lag explains that.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use plimsoll_core::Nanos;
use plimsoll_http::{Answer, Client, Deadline, KeptClient, Origin};
use plimsoll_report::reconciliation::ConsistencyFinding;
use plimsoll_system::clock;
use serde_json::{Value, json};

use crate::ask;
use crate::cluster::Cluster;
use crate::spec::Check;
use crate::timeline::CancelSignal;

/// Between two changes.
const CHANGE: Nanos = Nanos::from_millis(10);
/// Between two questions to a node.
const READ: Nanos = Nanos::from_millis(5);
/// Time limit for one request.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// The largest answer that is read, in bytes: it is one item.
const LARGEST_ITEM: usize = 10 << 20;
/// Changes whose time is remembered: the last sixteen minutes of them.
const CHANGES: usize = 100_000;
/// Reads behind whose lag is remembered for percentiles.
const LAGS: usize = 1_000_000;

/// A probe under way.
#[derive(Debug)]
pub struct Staleness {
    check: Check,
    cancel: Arc<CancelSignal>,
    begun: Nanos,
    writer: JoinHandle<u64>,
    readers: Vec<(String, JoinHandle<Seen>)>,
}

/// When numbers were acknowledged, each or one above it.
#[derive(Default)]
struct Acknowledged {
    /// The number of the first that is remembered.
    first: u64,
    at: VecDeque<Nanos>,
}

impl Acknowledged {
    /// Notes that a number was acknowledged. Unacknowledged ones below it count as known with it.
    fn note(&mut self, number: u64, at: Nanos) {
        while self.first + (self.at.len() as u64) <= number {
            self.at.push_back(at);
        }
        while self.at.len() > CHANGES {
            self.at.pop_front();
            self.first += 1;
        }
    }

    /// Returns the lag of a read that was sent at `sent` and saw the number `seen`; `None` if it is not
    /// behind.
    fn lag(&self, seen: u64, sent: Nanos) -> Option<Nanos> {
        // The change after the one that was seen, or the first that is remembered.
        let next = (seen + 1).saturating_sub(self.first) as usize;
        let at = *self.at.get(next)?;
        (at < sent).then(|| sent - at)
    }
}

/// Figures of the reads from one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    reads: u64,
    behind: u64,
    /// Of the first of those that were behind.
    lags: Vec<Nanos>,
    longest: Nanos,
    /// Answers below the highest value that the node had shown before.
    back: u64,
    /// The first of them.
    steps_back: Vec<String>,
    /// Questions without an answer.
    unanswered: u64,
    newest: u64,
}

impl Seen {
    /// Notes an answer.
    fn note(&mut self, number: u64, lag: Option<Nanos>) {
        self.reads += 1;
        if let Some(lag) = lag {
            self.behind += 1;
            self.longest = self.longest.max(lag);
            if self.lags.len() < LAGS {
                self.lags.push(lag);
            }
        }
        if number < self.newest {
            self.back += 1;
            if self.steps_back.len() < 5 {
                self.steps_back.push(format!("change {number} was read after change {}", self.newest));
            }
        }
        self.newest = self.newest.max(number);
    }

    /// Notes that there was no answer: a node that was killed and is back starts from another state.
    fn note_silence(&mut self) {
        self.unanswered += 1;
        self.newest = 0;
    }

    /// A percentile of the lags of stale reads.
    fn percentile(&self, percent: usize) -> Nanos {
        let mut lags = self.lags.clone();
        lags.sort_unstable();
        let rank = (lags.len() * percent).div_ceil(100).max(1) - 1;
        lags.get(rank).copied().unwrap_or_default()
    }

    fn said(&self) -> String {
        let Self { reads, behind, longest, back, unanswered, .. } = self;
        let ms = |time: Nanos| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        let mut said = format!("{reads} reads, {behind} of them behind");
        if *behind > 0 {
            let (p50, p99) = (ms(self.percentile(50)), ms(self.percentile(99)));
            said.push_str(&format!(", p50 {p50}, p99 {p99}, longest {}", ms(*longest)));
        }
        if *unanswered > 0 {
            said.push_str(&format!(", {unanswered} unanswered"));
        }
        if *back > 0 {
            said.push_str(&format!("; {back} went back in time"));
        }
        said
    }
}

impl Staleness {
    /// Creates the item that is changed, and begins to change and to read it.
    ///
    /// # Errors
    /// The reason why that is not possible.
    pub fn begin(cluster: &Arc<Cluster>, check: &Check) -> Result<Self, String> {
        let address = |node: usize| cluster.addresses.own_address(node, &check.content.port);
        let list = &check.content.list;
        let item =
            json!({ "name": format!("plimsoll_{}", clock::unix().0), "price": 1, "category": "staleness" });
        let made = send(&mut client(address(leading(cluster))), ("POST", list), &item)?;
        let id = made.pointer(&check.content.id).and_then(Value::as_str);
        let id =
            id.ok_or_else(|| format!("the item that was created has no text at {}", check.content.id))?;
        let path = format!("{list}/{id}");
        let addresses: Vec<SocketAddr> = (0..cluster.spec().nodes.len()).map(address).collect();
        let (cancel, acknowledged) =
            (Arc::new(CancelSignal::default()), Arc::new(Mutex::new(Acknowledged::default())));
        let spawn_error = |error: std::io::Error| format!("cannot start a thread: {error}");
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let writer = {
            let (cluster, cancel, acknowledged) = (cluster.clone(), cancel.clone(), acknowledged.clone());
            let (addresses, path) = (addresses.clone(), path.clone());
            thread("staleness").spawn(move || write(&cluster, &cancel, (&addresses, &path), &acknowledged))
        };
        let writer = writer.map_err(spawn_error)?;
        let mut readers = Vec::new();
        for (node, address) in cluster.spec().nodes.iter().zip(addresses) {
            let (cancel, acknowledged, path) = (cancel.clone(), acknowledged.clone(), path.clone());
            let reader = thread("staleness").spawn(move || read(&cancel, (address, &path), &acknowledged));
            readers.push((node.id.clone(), reader.map_err(spawn_error)?));
        }
        Ok(Self { check: check.clone(), cancel, begun: clock::monotonic(), writer, readers })
    }

    /// Ends it, and returns the findings about each node.
    pub fn end(self) -> Vec<ConsistencyFinding> {
        self.cancel.ring();
        let took = clock::monotonic() - self.begun;
        let changes = self.writer.join().unwrap_or_default();
        let mut found = Vec::new();
        for (id, reader) in self.readers {
            let seen = reader.join().unwrap_or_default();
            let within = self.check.within;
            let mut said = format!("node {id}: {}", seen.said());
            let mut evidence = seen.steps_back.clone();
            let late = seen.longest > within;
            if late {
                let limit = within.as_secs_f64();
                evidence.push(format!("a read was further behind than the {limit} s that are allowed"));
            }
            let idle = changes == 0 || seen.reads == 0;
            if idle {
                said.push_str(&format!("; {changes} changes were acknowledged: no result"));
            }
            let passed = seen.back == 0 && !late && !idle;
            found.push(ConsistencyFinding::new(self.check.kind.name(), passed, took, said, evidence));
        }
        found
    }
}

/// Returns the leader, or the first node if no node knows it.
fn leading(cluster: &Cluster) -> usize {
    cluster.leader().unwrap_or(0)
}

/// Changes the item until the cancel signal rings; how many changes were acknowledged.
fn write(
    cluster: &Cluster,
    cancel: &CancelSignal,
    (addresses, path): (&[SocketAddr], &str),
    acknowledged: &Mutex<Acknowledged>,
) -> u64 {
    let (mut leader, mut count, mut number) = (client(addresses[leading(cluster)]), 0, 1);
    let mut next = clock::monotonic();
    while cancel.goes_on_until(next) {
        number += 1;
        match send(&mut leader, ("PATCH", path), &json!({ "price": number })) {
            Ok(_) => {
                let now = clock::monotonic();
                acknowledged.lock().unwrap_or_else(PoisonError::into_inner).note(number, now);
                count += 1;
            }
            Err(_) => leader = client(addresses[leading(cluster)]),
        }
        next = (next + CHANGE).max(clock::monotonic());
    }
    count
}

/// Reads the item of one node until the cancel signal rings.
fn read(
    cancel: &CancelSignal,
    (address, path): (SocketAddr, &str),
    acknowledged: &Mutex<Acknowledged>,
) -> Seen {
    let (mut client, mut seen) = (client(address), Seen::default());
    let mut next = clock::monotonic();
    while cancel.goes_on_until(next) {
        let sent = clock::monotonic();
        // It may be there as 5 and as 5.0.
        let item = send(&mut client, ("GET", path), &Value::Null).ok();
        let number = item.and_then(|item| item["price"].as_f64());
        match number {
            Some(number) => {
                let number = number as u64;
                let lag = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).lag(number, sent);
                seen.note(number, lag);
            }
            None => seen.note_silence(),
        }
        next = (next + READ).max(clock::monotonic());
    }
    seen
}

/// A client of one node, which keeps its connection: hundreds of requests per second follow each other.
fn client(address: SocketAddr) -> KeptClient {
    Client::plain(Origin::from(address), LARGEST_ITEM).keeping()
}

/// The answer to a request with this JSON, or without a body, if its status is a good one.
fn send(client: &mut KeptClient, (method, path): (&str, &str), body: &Value) -> Result<Value, String> {
    let json = (!body.is_null()).then(|| body.to_string());
    let answer = client.ask(&ask::request(method, path, json.as_deref()), Deadline::within(PATIENCE));
    let Answer { status, body, .. } = answer.map_err(|error| ask::told(method, path, &error))?;
    if status >= 300 {
        return Err(format!("{method} {path}: status {status}"));
    }
    serde_json::from_slice(&body).map_err(|error| format!("{method} {path}: no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    #[test]
    fn a_read_is_behind_by_what_was_acknowledged_before_it() {
        let mut acknowledged = Acknowledged::default();
        acknowledged.note(2, MS * 20);
        // The change 3 was not acknowledged, and came with 4.
        acknowledged.note(4, MS * 40);
        for (seen, sent, lag) in [
            (4, 50, None),
            (5, 50, None),
            (2, 50, Some(10)),
            (1, 50, Some(30)),
            (2, 35, None),
            (1, 35, Some(15)),
            (1, 15, None),
        ] {
            assert_eq!(acknowledged.lag(seen, MS * sent), lag.map(|lag| MS * lag), "{seen} at {sent}");
        }
        let many = CHANGES as u64 + 10;
        (5..many).for_each(|number| acknowledged.note(number, MS * (number * 10)));
        assert_eq!(acknowledged.at.len(), CHANGES);
        // The lag of older ones is limited to the remembered changes.
        assert_eq!(acknowledged.lag(1, MS * 200), Some(MS * (200 - 10 * acknowledged.first)));
    }

    #[test]
    fn going_back_is_seen_unless_the_node_was_away() {
        let mut seen = Seen::default();
        for number in [1, 2, 5] {
            seen.note(number, None);
        }
        seen.note(3, Some(MS * 7));
        seen.note_silence();
        seen.note(2, Some(MS * 90));
        assert_eq!((seen.reads, seen.behind, seen.back, seen.unanswered), (5, 2, 1, 1));
        assert_eq!((seen.percentile(50), seen.percentile(99), seen.longest), (MS * 7, MS * 90, MS * 90));
        assert_eq!(seen.steps_back, ["change 3 was read after change 5"]);
        let said = seen.said();
        assert_eq!(
            said,
            "5 reads, 2 of them behind, p50 7.0 ms, p99 90.0 ms, longest 90.0 ms, 1 unanswered; 1 went back in time"
        );
    }
}
