//! Watching the sockets of a load by the system's list of them: the accept queue of the target where it
//! listens in this network, and the segments of the connections to it.
//!
//! Other programs have full queues and lose segments, too, and the counters of a machine do not tell whose
//! they are.

use core::net::SocketAddr;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;

use plimsoll_core::Nanos;
use plimsoll_driver::Endpoint;
use plimsoll_driver::sock_diag::{ConnectedSocket, SegmentCounts, SocketList, is_own, own_inodes};
use plimsoll_metrics::{AcceptQueue, OwnSegments};
use plimsoll_system::clock;

use crate::addresses::TargetAddress;

/// Ports that are asked for at most, since each is a question of its own.
const MOST_PORTS: usize = 8;
/// A look at the connections that took longer is only repeated when the machine has sent segments again.
const CHEAP: Nanos = Nanos::from_millis(2);

/// The sockets of a load, look by look.
#[derive(Debug)]
pub(crate) struct SocketWatch {
    list: SocketList,
    /// Addresses of the targets.
    targets: Vec<SocketAddr>,
    /// Their ports.
    ports: BTreeSet<u16>,
    /// Ports of the targets in this network.
    own_ports: BTreeSet<u16>,
    /// Drops of each listener at the last look, by its cookie.
    drops: HashMap<u64, u32>,
    /// The ends of connections at the last look, by their cookies.
    known: HashMap<u64, Known>,
    last_took: Nanos,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
struct Known {
    is_ours: bool,
    segments: SegmentCounts,
}

impl SocketWatch {
    /// Takes the first look. The reason where there is nothing to look at, or the system does not let us.
    pub(crate) fn open(addresses: &[Arc<[TargetAddress]>]) -> Result<Self, Option<String>> {
        let endpoints = addresses.iter().flat_map(|list| list.iter()).map(|one| &one.endpoint);
        let tcp = |endpoint: &Endpoint| match endpoint {
            Endpoint::Tcp(address) => Some(SocketAddr::new(address.ip().to_canonical(), address.port())),
            Endpoint::Unix(_) => None,
        };
        let targets: Vec<SocketAddr> = endpoints.filter_map(tcp).collect();
        let ports: BTreeSet<u16> = targets.iter().map(SocketAddr::port).collect();
        if targets.is_empty() {
            return Err(None);
        }
        if ports.len() > MOST_PORTS {
            return Err(Some(format!("sockets of the load: it goes to more than {MOST_PORTS} ports")));
        }
        let of_own = targets.iter().filter(|target| is_own(target.ip())).map(SocketAddr::port);
        let own_ports = of_own.collect();
        let list = SocketList::open().map_err(|error| Some(reason(&error)))?;
        let mut watch = Self {
            list,
            targets,
            ports,
            own_ports,
            drops: HashMap::new(),
            known: HashMap::new(),
            last_took: Nanos::ZERO,
        };
        watch.queue().map_err(|error| Some(reason(&error)))?;
        Ok(watch)
    }

    /// Returns the target's accept queue, with the drops since the last look; `None` if it does not listen in
    /// this network.
    pub(crate) fn queue(&mut self) -> io::Result<Option<AcceptQueue>> {
        let mut queue = None;
        for &port in &self.own_ports {
            for listener in self.list.listeners(port)? {
                let serves = |target: &SocketAddr| {
                    let bound = listener.local.ip();
                    target.port() == port && (bound.is_unspecified() || bound == target.ip())
                };
                let Some(drops) = listener.drops.filter(|_| self.targets.iter().any(serves)) else {
                    continue;
                };
                // What a listener has dropped before the first look is not the load's.
                let before = self.drops.insert(listener.cookie, drops).unwrap_or(drops);
                let queue = queue.get_or_insert(AcceptQueue::default());
                queue.length += u64::from(listener.queued);
                queue.limit += u64::from(listener.limit);
                queue.drops += u64::from(drops.wrapping_sub(before));
            }
        }
        Ok(queue)
    }

    /// Returns the segments of our connections since the last look; `None` if that look would cost more than
    /// it may show, as the machine has `resent` none.
    pub(crate) fn segments(&mut self, resent: Option<u64>) -> io::Result<Option<OwnSegments>> {
        if self.last_took > CHEAP && resent == Some(0) {
            return Ok(None);
        }
        let began = clock::monotonic();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for &port in &self.ports {
            ours.extend(self.list.connections_to(port)?);
        }
        for &port in &self.own_ports {
            theirs.extend(self.list.connections_of(port)?);
        }
        ours.retain(|socket| self.targets.contains(&socket.remote));
        let found = self.add(&ours, &theirs, own_inodes);
        self.last_took = clock::monotonic().since(began);
        Ok(Some(found))
    }

    /// Adds up the segments of the ends of our connections since the last look: `ours` if this process has
    /// them, and those of `theirs` that are the other ends. `inodes` are the sockets that this process has.
    fn add(
        &mut self,
        ours: &[ConnectedSocket],
        theirs: &[ConnectedSocket],
        inodes: impl FnOnce() -> HashSet<u64>,
    ) -> OwnSegments {
        let is_new = |socket: &ConnectedSocket| !self.known.contains_key(&socket.cookie);
        let inodes = if ours.iter().any(is_new) { inodes() } else { HashSet::new() };
        let mut now = HashMap::with_capacity(ours.len() + theirs.len());
        let mut sum = OwnSegments::default();
        let mut ends = HashSet::with_capacity(ours.len());
        for socket in ours {
            let before = self.known.get(&socket.cookie);
            let is_ours = before.map_or_else(|| inodes.contains(&socket.inode), |known| known.is_ours);
            if is_ours {
                let news = since(socket, before);
                sum.segments += news.sent + news.received;
                sum.resent += news.resent;
                ends.insert((socket.local, socket.remote));
                // Of a target in this network its own end says what it has sent again.
                if !self.own_ports.contains(&socket.remote.port()) {
                    sum.out_of_order += news.out_of_order;
                }
            }
            now.insert(socket.cookie, Known { is_ours, segments: socket.segments });
        }
        for socket in theirs {
            let is_ours = ends.contains(&(socket.remote, socket.local));
            if is_ours {
                sum.resent += since(socket, self.known.get(&socket.cookie)).resent;
            }
            now.insert(socket.cookie, Known { is_ours, segments: socket.segments });
        }
        self.known = now;
        sum
    }
}

/// The segments of an end of a connection since an earlier look.
fn since(socket: &ConnectedSocket, before: Option<&Known>) -> SegmentCounts {
    let (now, last) = (socket.segments, before.map_or(SegmentCounts::default(), |known| known.segments));
    SegmentCounts {
        sent: now.sent.saturating_sub(last.sent),
        received: now.received.saturating_sub(last.received),
        resent: now.resent.saturating_sub(last.resent),
        out_of_order: now.out_of_order.saturating_sub(last.out_of_order),
    }
}

/// The reason why sockets were not read, as a report shows it.
pub(crate) fn reason(error: &io::Error) -> String {
    format!("sockets of the load (sock_diag): {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: ([u8; 4], u16) = ([127, 0, 0, 1], 80);

    /// A connection from a port, with segments sent and received, and some of them sent again.
    fn end(cookie: u64, port: u16, counts: [u64; 3]) -> ConnectedSocket {
        let [sent, received, resent] = counts;
        ConnectedSocket {
            local: SocketAddr::from(([127, 0, 0, 1], port)),
            remote: SocketAddr::from(TARGET),
            cookie,
            inode: cookie,
            segments: SegmentCounts { sent, received, resent, out_of_order: 2 },
        }
    }

    fn other_end(cookie: u64, port: u16, counts: [u64; 3]) -> ConnectedSocket {
        let mine = end(cookie, port, counts);
        ConnectedSocket { local: mine.remote, remote: mine.local, ..mine }
    }

    #[test]
    fn only_our_connections_count_and_only_since_the_last_look() {
        let Ok(mut watch) = SocketWatch::open(&[vec![Endpoint::Tcp(TARGET.into()).into()].into()]) else {
            return plimsoll_testkit::skip::on_this_machine("the list of sockets cannot be asked for");
        };
        let inodes = || HashSet::from([1]);
        let (ours, others) = (end(1, 5_001, [100, 90, 3]), end(2, 5_002, [700, 700, 70]));
        let servers = [other_end(3, 5_001, [90, 99, 4]), other_end(4, 5_002, [700, 700, 70])];
        let first = watch.add(&[ours, others], &servers, inodes);
        assert_eq!(first, OwnSegments { segments: 190, resent: 7, out_of_order: 0 });
        let later = watch.add(&[end(1, 5_001, [110, 95, 4]), others], &servers, inodes);
        assert_eq!(later, OwnSegments { segments: 15, resent: 1, out_of_order: 0 });
        // What a target elsewhere sends again is seen by its order alone.
        watch.own_ports.clear();
        let apart =
            watch.add(&[end(1, 5_001, [110, 95, 4]), end(9, 5_009, [1, 1, 0])], &[], || HashSet::from([9]));
        assert_eq!(apart, OwnSegments { segments: 2, resent: 0, out_of_order: 2 });
    }
}
