//! The network of our namespace.

use plimsoll_metrics::NetworkUse;

use crate::kept::{Buffer, ProcFile};
use crate::parse::network as parse;
use crate::sampler::Tree;

/// Files about the network.
#[derive(Debug)]
pub(crate) struct Network {
    /// The counters of the standards.
    standard: Option<ProcFile>,
    /// Counters that Linux has beside them.
    extended: Option<ProcFile>,
    sockets: Option<ProcFile>,
    devices: Option<ProcFile>,
    last: NetworkUse,
}

impl Network {
    pub(crate) fn open(tree: &Tree, buffer: &mut Buffer, missing: &mut Vec<String>) -> Self {
        let mut open = |name| ProcFile::open(&tree.at("/proc/self/net").join(name), missing);
        let mut network = Self {
            standard: open("snmp"),
            extended: open("netstat"),
            sockets: open("sockstat"),
            devices: open("dev"),
            last: NetworkUse::default(),
        };
        network.last = network.read(buffer);
        network
    }

    /// Returns the activity since the last call.
    pub(crate) fn sample(&mut self, buffer: &mut Buffer) -> NetworkUse {
        let now = self.read(buffer);
        let last = std::mem::replace(&mut self.last, now);
        let since = |of: fn(&NetworkUse) -> Option<u64>| Some(of(&now)?.saturating_sub(of(&last)?));
        NetworkUse {
            segments_sent: since(|all| all.segments_sent),
            retransmitted: since(|all| all.retransmitted),
            timeouts: since(|all| all.timeouts),
            listen_overflows: since(|all| all.listen_overflows),
            listen_drops: since(|all| all.listen_drops),
            receive_drops: since(|all| all.receive_drops),
            datagram_drops: since(|all| all.datagram_drops),
            device_drops: since(|all| all.device_drops),
            tcp_in_use: now.tcp_in_use,
            tcp_time_wait: now.tcp_time_wait,
        }
    }

    /// Since the namespace was made.
    fn read(&self, buffer: &mut Buffer) -> NetworkUse {
        let mut found = NetworkUse::default();
        if let Some(bytes) = self.standard.as_ref().and_then(|file| file.read(buffer)) {
            found.segments_sent = parse::figure(bytes, b"Tcp:", b"OutSegs");
            found.retransmitted = parse::figure(bytes, b"Tcp:", b"RetransSegs");
            found.datagram_drops = parse::figure(bytes, b"Udp:", b"RcvbufErrors");
            // `OutSegs` does not include retransmitted segments (RFC 4022, tcpOutSegs).
            found.segments_sent =
                found.segments_sent.zip(found.retransmitted).map(|(sent, again)| sent + again);
        }
        if let Some(bytes) = self.extended.as_ref().and_then(|file| file.read(buffer)) {
            let figure = |name| parse::figure(bytes, b"TcpExt:", name);
            found.timeouts = figure(b"TCPTimeouts");
            found.listen_overflows = figure(b"ListenOverflows");
            found.listen_drops = figure(b"ListenDrops");
            found.receive_drops = figure(b"TCPRcvQDrop");
        }
        if let Some(bytes) = self.sockets.as_ref().and_then(|file| file.read(buffer)) {
            found.tcp_in_use = parse::sockets(bytes, b"TCP:", b"inuse");
            found.tcp_time_wait = parse::sockets(bytes, b"TCP:", b"tw");
        }
        found.device_drops =
            self.devices.as_ref().and_then(|file| file.read(buffer)).and_then(parse::device_drops);
        found
    }
}
