//! Converts impairments of links into rules of the packet filter (`nft`) and of queues (`tc`).

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_core::Nanos;

use crate::fault::Impairment;
use crate::link_impairment::LinkImpairment;

/// The first two bytes of all addresses: those for tests of networks (RFC 2544), which are not routed, so
/// that they do not collide with a network of this machine.
const FIRST: [u8; 2] = [198, 18];
/// The last byte of the router between the nodes.
const ROUTER: u8 = 253;
/// The last byte of the load.
const LOAD: u8 = 254;
/// Limit of a queue that only delays, in packets: a gigabit per second over a tenth of a second.
const DELAYED: u32 = 10_000;
/// Bytes that a queue may send at a time before others may.
const QUANTUM: u32 = 60_000;

/// One end of a link: a node, or `None` for the load.
pub(super) type LinkEnd = Option<usize>;

/// The addresses of a cluster: 256 that are neighbours, one of the 512 such ranges of RFC 2544.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range(u16);

impl Range {
    /// All of them, from one on that a seed determines.
    pub(super) fn all(seed: u64) -> impl Iterator<Item = Self> {
        (0..512).map(move |offset| Self((seed.wrapping_add(offset) % 512) as u16))
    }

    fn address(self, last: u8) -> Ipv4Addr {
        let [second, third] = self.0.to_be_bytes();
        Ipv4Addr::new(FIRST[0], FIRST[1] + second, third, last)
    }

    /// The address of a node or the load.
    pub(super) fn of(self, site: LinkEnd) -> Ipv4Addr {
        // There are a hundred nodes at most.
        self.address(site.map_or(LOAD, |node| node as u8 + 1))
    }

    pub(super) fn router(self) -> Ipv4Addr {
        self.address(ROUTER)
    }

    /// As routes have it.
    pub(super) fn prefix(self) -> String {
        format!("{}/24", self.address(0))
    }

    /// Returns the name of the device through which the load reaches this range, in the load's network. The
    /// device claims the range: no two clusters can create the same one.
    pub(super) fn device(self) -> String {
        let [_, second, third, _] = self.address(0).octets();
        format!("plimsoll{second}-{third}")
    }
}

/// The router's device towards this end of a link.
pub(super) fn device(site: LinkEnd) -> String {
    site.map_or_else(|| "load".to_owned(), |node| format!("n{node}"))
}

/// At which end of a packet a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Source,
    Destination,
}

/// The packets from one to another, or those of them from or to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packets {
    pub(super) source: LinkEnd,
    pub(super) destination: LinkEnd,
    pub(super) port: Option<(End, u16)>,
}

impl Packets {
    /// Returns the packets of a client's connections to a node, or to one port of it, in both directions.
    pub(super) fn between(client: LinkEnd, node: usize, port: Option<u16>) -> [Self; 2] {
        let server = Some(node);
        let at = |end| port.map(|port| (end, port));
        [
            Self { source: client, destination: server, port: at(End::Destination) },
            Self { source: server, destination: client, port: at(End::Source) },
        ]
    }

    /// Returns `true` if all packets of `other` are among these.
    fn have(&self, other: &Self) -> bool {
        (self.source, self.destination) == (other.source, other.destination)
            && (self.port.is_none() || self.port == other.port)
    }

    /// Returns the match expression of a filter rule for these packets, or for the TCP packets among them.
    fn matched(&self, range: Range, of_tcp: bool) -> String {
        let mut rule = format!("ip saddr {} ip daddr {}", range.of(self.source), range.of(self.destination));
        if let Some((end, port)) = self.port {
            let side = if end == End::Source { "sport" } else { "dport" };
            // It cannot fail for a text.
            let _ = match of_tcp {
                true => write!(rule, " tcp {side} {port}"),
                false => write!(rule, " meta l4proto {{ tcp, udp }} th {side} {port}"),
            };
        } else if of_tcp {
            rule.push_str(" meta l4proto tcp");
        }
        rule
    }
}

/// The sockets of a node that send packets, as a filter of `ss`; `None` if they send none of these.
pub(super) fn sockets(node: usize, packets: &[Packets], range: Range) -> Option<Vec<String>> {
    let own = packets.iter().filter(|packets| packets.source == Some(node));
    let of = |packets: &Packets| {
        let port = packets.port.map_or(String::new(), |(end, port)| {
            let side = if end == End::Source { "sport" } else { "dport" };
            format!(" and {side} = :{port}")
        });
        format!("( dst {}{port} )", range.of(packets.destination))
    };
    let filter = own.map(of).collect::<Vec<_>>().join(" or ");
    (!filter.is_empty()).then(|| filter.split(' ').map(str::to_owned).collect())
}

/// Something that is wrong with packets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    /// Number that identifies the impairment when it is ended.
    pub(super) number: u64,
    pub(super) impairment: Impairment,
    pub(super) packets: Vec<Packets>,
    /// Of resets: packets of nodes are dropped and not answered yet, so that connections are there that the
    /// nodes end.
    pub(super) is_beginning: bool,
}

/// The rules for everything that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Script for `nft` that replaces the packet filter.
    pub(super) filter: String,
    /// The lines that make the queues of each device: a script for `tc`.
    pub(super) queues: BTreeMap<String, String>,
}

impl Rules {
    pub(super) fn new(wrong: &[Wrong], range: Range) -> Self {
        // Each set of packets gets one place with all of its impairments.
        let cells: BTreeSet<Packets> = wrong.iter().flat_map(|wrong| wrong.packets.iter().copied()).collect();
        let mut rules = Vec::new();
        let mut queues: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Packets of a port are a subset of all packets, so their rules come first: an accepted packet is not
        // looked at again.
        let (of_ports, all): (Vec<_>, Vec<_>) = cells.into_iter().partition(|cell| cell.port.is_some());
        for cell in of_ports.into_iter().chain(all) {
            let has = |wrong: &&Wrong| wrong.packets.iter().any(|packets| packets.have(&cell));
            let link_impairment = LinkImpairment::of(wrong.iter().filter(has).map(|wrong| wrong.impairment));
            let begins = wrong.iter().filter(has).any(|wrong| wrong.is_beginning);
            let found = cell.matched(range, false);
            if link_impairment.is_cut || link_impairment.is_half_open || link_impairment.loss >= 1.0 {
                rules.push(format!("{found} drop"));
                continue;
            }
            if link_impairment.resets {
                // Resets themselves get through: the side that resets has notified the other one.
                let of_tcp = cell.matched(range, true);
                rules.push(format!("{of_tcp} tcp flags & rst == rst accept"));
                if cell.source.is_none() || !begins {
                    rules.push(format!("{of_tcp} reject with tcp reset"));
                }
                rules.push(format!("{found} drop"));
                continue;
            }
            if link_impairment.loss > 0.0 {
                let millionth = (link_impairment.loss * 1e6) as u32;
                rules.push(format!("{found} numgen random mod 1000000 < {millionth} drop"));
            }
            if link_impairment.delay > Nanos::ZERO
                || link_impairment.spread > Nanos::ZERO
                || link_impairment.bandwidth.is_some()
            {
                let device = device(cell.destination);
                let of_device = queues.entry(device.clone()).or_default();
                let class = of_device.len() + 1;
                of_device.push(queue(&device, class, &link_impairment));
                rules.push(format!("{found} meta priority set 1:{class:x}"));
            }
            rules.push(format!("{found} accept"));
        }
        let table = "table ip plimsoll";
        let chain = "chain faults {\ntype filter hook forward priority 0\n";
        // Declared, so that it can be deleted: all of this is carried out at once, or nothing.
        let filter = format!("{table}\ndelete {table}\n{table} {{\n{chain}{}\n}}\n}}\n", rules.join("\n"));
        let of_device = |(device, classes): (String, Vec<String>)| {
            let root = format!("qdisc add dev {device} root handle 1: htb\n");
            (device, format!("{root}{}", classes.concat()))
        };
        Self { filter, queues: queues.into_iter().map(of_device).collect() }
    }
}

/// A queue for packets that have its class as priority.
fn queue(device: &str, class: usize, link_impairment: &LinkImpairment) -> String {
    // The unit `bps` of tc is bytes per second (tc(8)).
    let rate = link_impairment.bandwidth.map_or("100gbit".to_owned(), |bytes| format!("{bytes}bps"));
    let mut lines =
        format!("class add dev {device} parent 1: classid 1:{class:x} htb rate {rate} quantum {QUANTUM}\n");
    if link_impairment.delay > Nanos::ZERO || link_impairment.spread > Nanos::ZERO {
        // It draws evenly from as much before the delay as behind it (tc-netem(8)).
        let half = link_impairment.spread.0 / 2_000;
        let middle = link_impairment.delay.0 / 1_000 + half;
        let spread = if half > 0 { format!(" {half}us") } else { String::new() };
        let handle = class + 1;
        lines.push_str(&format!(
            "qdisc add dev {device} parent 1:{class:x} handle {handle:x}: \
             netem limit {DELAYED} delay {middle}us{spread}\n"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> Range {
        Range::all(258).next().expect("there are some")
    }

    fn wrong(number: u64, impairment: Impairment, packets: &[Packets]) -> Wrong {
        Wrong { number, impairment, packets: packets.to_vec(), is_beginning: false }
    }

    #[test]
    fn ranges_are_told_apart_and_wrap_around() {
        let all: BTreeSet<String> = Range::all(u64::MAX).map(Range::device).collect();
        assert_eq!(all.len(), 512);
        // The limit of Linux is 15 bytes.
        assert!(all.iter().all(|name| name.len() <= 15));
        let range = range();
        assert_eq!((range.prefix().as_str(), range.device().as_str()), ("198.19.2.0/24", "plimsoll19-2"));
        assert_eq!(range.of(Some(99)).to_string(), "198.19.2.100");
        assert_eq!((range.router().octets()[3], range.of(None).octets()[3]), (253, 254));
    }

    #[test]
    fn nothing_wrong_is_an_empty_filter_and_no_queue() {
        let rules = Rules::new(&[], range());
        assert!(rules.queues.is_empty() && !rules.filter.contains("ip saddr"), "{rules:?}");
    }

    #[test]
    fn each_packet_meets_all_that_is_wrong_with_it() {
        let all = Packets::between(Some(0), 1, None);
        let raft = Packets::between(Some(0), 1, Some(900));
        let rules = Rules::new(
            &[
                wrong(1, Impairment::Loss(0.05), &all),
                wrong(2, Impairment::Bandwidth(5_000), &raft[..1]),
                wrong(3, Impairment::Cut, &Packets::between(None, 1, Some(80))),
            ],
            range(),
        );
        let found: Vec<&str> = rules.filter.lines().filter(|line| line.starts_with("ip ")).collect();
        let (load, node, other) = ("198.19.2.254", "198.19.2.2", "198.19.2.1");
        let with = |side: &str, port| format!("meta l4proto {{ tcp, udp }} th {side} {port}");
        let lost = "numgen random mod 1000000 < 50000 drop";
        let expected = [
            format!("ip saddr {load} ip daddr {node} {} drop", with("dport", 80)),
            // All that is wrong with these, before the rules for all packets.
            format!("ip saddr {other} ip daddr {node} {} {lost}", with("dport", 900)),
            format!("ip saddr {other} ip daddr {node} {} meta priority set 1:1", with("dport", 900)),
            format!("ip saddr {other} ip daddr {node} {} accept", with("dport", 900)),
            format!("ip saddr {node} ip daddr {load} {} drop", with("sport", 80)),
            format!("ip saddr {other} ip daddr {node} {lost}"),
            format!("ip saddr {other} ip daddr {node} accept"),
            format!("ip saddr {node} ip daddr {other} {lost}"),
            format!("ip saddr {node} ip daddr {other} accept"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            rules.queues.into_iter().collect::<Vec<_>>(),
            [(
                "n1".to_owned(),
                "qdisc add dev n1 root handle 1: htb\n\
                 class add dev n1 parent 1: classid 1:1 htb rate 5000bps quantum 60000\n"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn delays_are_drawn_around_their_middle_and_resets_are_answers() {
        let delay = Impairment::Delay { time: Nanos::from_millis(50), spread: Nanos::from_millis(20) };
        let to_load = Packets::between(None, 0, None);
        let rules = Rules::new(
            &[wrong(1, delay, &to_load[1..]), wrong(2, Impairment::Reset, &to_load[..1])],
            range(),
        );
        assert!(rules.queues["load"].contains("netem limit 10000 delay 60000us 10000us\n"), "{rules:?}");
        assert!(rules.filter.contains(" meta l4proto tcp reject with tcp reset\n"), "{rules:?}");
        let of_raft = [to_load, Packets::between(Some(0), 1, Some(9))].concat();
        let found = sockets(0, &of_raft, range()).map(|words| words.join(" "));
        let expected = "( dst 198.19.2.254 ) or ( dst 198.19.2.2 and dport = :9 )";
        assert_eq!((found.as_deref(), sockets(2, &of_raft, range())), (Some(expected), None));
    }
}
