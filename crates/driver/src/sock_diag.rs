//! The system's own list of TCP sockets (`NETLINK_SOCK_DIAG`), which needs no privileges: the accept queue of
//! a listener, and what `TCP_INFO` says of connections.
//!
//! Messages are as in `linux/inet_diag.h`, `linux/sock_diag.h` and `linux/tcp.h`. Only sockets of one port
//! are asked for at a time, so that those of others cost the system a look at each and this process nothing.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::net::UdpSocket;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Protocol of netlink (`NETLINK_SOCK_DIAG`).
const NETLINK_SOCK_DIAG: i32 = 4;
/// Message by which sockets of a family are asked for.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Flags of a message that asks for all of them: `NLM_F_REQUEST | NLM_F_DUMP`.
const ASK_FOR_ALL: u16 = 0x301;
/// Messages that end a list, well or not.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Attributes of a socket, and the bits by which they are asked for.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
const WITH_INFO: u8 = 1 << (INET_DIAG_INFO - 1);
const WITH_MEMORY: u8 = 1 << (INET_DIAG_SKMEMINFO - 1);
/// States of a socket, as bits: `TCP_LISTEN`; and those of a connection that has a `TCP_INFO`: established,
/// SYN sent, FIN wait 1 and 2, close wait, last ACK, closing.
const LISTENING: u32 = 1 << 10;
const CONNECTED: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Bytes of a header of netlink, and of what follows it in an answer (`inet_diag_msg`).
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// Bytes that are read at once; the system fills up to 32 KiB.
const READ: usize = 64 << 10;
/// The system answers at once.
const PATIENCE: Duration = Duration::from_millis(200);

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListeningSocket {
    /// The address that it is bound to.
    pub local: SocketAddr,
    /// Number of the socket that no other one has.
    pub cookie: u64,
    /// Connections that wait to be accepted.
    pub queued: u32,
    /// Connections that may wait.
    pub limit: u32,
    /// Attempts to connect that were turned away since it listens; `None` on systems that do not say.
    pub drops: Option<u32>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectedSocket {
    /// Address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// Number of the socket that no other one has.
    pub cookie: u64,
    /// Number of its inode; zero if no process has it open any more.
    pub inode: u64,
    /// Segments since it began.
    pub segments: SegmentCounts,
}

/// TCP segments of one end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    /// Segments sent.
    pub sent: u64,
    /// Segments received.
    pub received: u64,
    /// Segments sent again.
    pub resent: u64,
    /// Segments received after later ones.
    pub out_of_order: u64,
}

/// A connection to the system's list of sockets.
#[derive(Debug)]
pub struct SocketList {
    socket: Socket,
    buffer: Vec<u8>,
}

/// The port by which sockets are asked for.
#[derive(Clone, Copy)]
enum By {
    Local(u16),
    Remote(u16),
}

impl SocketList {
    /// Opens the list.
    ///
    /// # Errors
    /// Where the system, or a sandbox, does not let this process ask.
    pub fn open() -> io::Result<Self> {
        let protocol = Protocol::from(NETLINK_SOCK_DIAG);
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW.cloexec(), Some(protocol))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket, buffer: vec![0; READ] })
    }

    /// Returns the sockets that listen on a port.
    ///
    /// # Errors
    /// Where the system does not answer.
    pub fn listeners(&mut self, port: u16) -> io::Result<Vec<ListeningSocket>> {
        let mut found = Vec::new();
        self.ask(By::Local(port), LISTENING, WITH_MEMORY, |message| {
            found.push(ListeningSocket {
                local: message.local,
                cookie: message.cookie,
                queued: message.receive_queue,
                limit: message.send_queue,
                // The ninth of the figures about memory is the number of drops (SK_MEMINFO_DROPS).
                drops: message.attribute(INET_DIAG_SKMEMINFO).and_then(|memory| word(memory, 32)),
            });
        })?;
        Ok(found)
    }

    /// Returns the ends of connections whose other end has a port.
    ///
    /// # Errors
    /// Where the system does not answer.
    pub fn connections_to(&mut self, port: u16) -> io::Result<Vec<ConnectedSocket>> {
        self.connections(By::Remote(port))
    }

    /// Returns the ends of connections that have a port of their own.
    ///
    /// # Errors
    /// Where the system does not answer.
    pub fn connections_of(&mut self, port: u16) -> io::Result<Vec<ConnectedSocket>> {
        self.connections(By::Local(port))
    }

    fn connections(&mut self, by: By) -> io::Result<Vec<ConnectedSocket>> {
        let mut found = Vec::new();
        self.ask(by, CONNECTED, WITH_INFO, |message| {
            let Some(info) = message.attribute(INET_DIAG_INFO) else { return };
            // Offsets in `struct tcp_info`; older systems end it earlier.
            let at = |offset: usize| word(info, offset).unwrap_or(0).into();
            found.push(ConnectedSocket {
                local: message.local,
                remote: message.remote,
                cookie: message.cookie,
                inode: message.inode,
                segments: SegmentCounts {
                    sent: at(136),
                    received: at(140),
                    resent: at(100),
                    out_of_order: at(224),
                },
            });
        })?;
        Ok(found)
    }

    /// Asks for the sockets of both families, and hands each to `take`.
    fn ask(&mut self, by: By, states: u32, with: u8, mut take: impl FnMut(Message<'_>)) -> io::Result<()> {
        for family in [libc::AF_INET, libc::AF_INET6] {
            self.socket.send(&question(family as u8, by, states, with))?;
            while self.read_answer(&mut take)? {}
        }
        Ok(())
    }

    /// Reads a part of the answer. Returns `false` if it was the last.
    fn read_answer(&mut self, take: &mut impl FnMut(Message<'_>)) -> io::Result<bool> {
        let length = self.socket.read(&mut self.buffer)?;
        let mut rest = &self.buffer[..length];
        while rest.len() >= HEADER {
            let length = word(rest, 0).map_or(0, |length| length as usize);
            let kind = u16::from_ne_bytes([rest[4], rest[5]]);
            let broken = || io::Error::new(io::ErrorKind::InvalidData, "a message of another length");
            let body = rest.get(HEADER..length).ok_or_else(broken)?;
            match kind {
                NLMSG_DONE => return Ok(false),
                NLMSG_ERROR => {
                    let errno = word(body, 0).map_or(0, |errno| (errno as i32).wrapping_neg());
                    return Err(io::Error::from_raw_os_error(errno));
                }
                SOCK_DIAG_BY_FAMILY => Message::read(body).into_iter().for_each(&mut *take),
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(true)
    }
}

/// Returns `true` if an address is one of this network: something can be bound to it.
pub fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The inodes of the sockets that this process has open.
pub fn own_inodes() -> HashSet<u64> {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return HashSet::new() };
    let inode = |entry: std::fs::DirEntry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    open.filter_map(|entry| inode(entry.ok()?)).collect()
}

/// The message that asks for the sockets of a family, a port and some states.
fn question(family: u8, by: By, states: u32, with: u8) -> [u8; HEADER + 56] {
    let mut message = [0; HEADER + 56];
    message[..4].copy_from_slice(&(HEADER as u32 + 56).to_ne_bytes());
    message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message[6..8].copy_from_slice(&ASK_FOR_ALL.to_ne_bytes());
    message[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    let body = &mut message[HEADER..];
    (body[0], body[1], body[2]) = (family, libc::IPPROTO_TCP as u8, with);
    body[4..8].copy_from_slice(&states.to_ne_bytes());
    let (at, port) = match by {
        By::Local(port) => (8, port),
        By::Remote(port) => (10, port),
    };
    body[at..at + 2].copy_from_slice(&port.to_be_bytes());
    message
}

/// A socket as the system describes it.
struct Message<'a> {
    local: SocketAddr,
    remote: SocketAddr,
    cookie: u64,
    receive_queue: u32,
    send_queue: u32,
    inode: u64,
    attributes: &'a [u8],
}

impl<'a> Message<'a> {
    fn read(body: &'a [u8]) -> Option<Self> {
        let (fixed, attributes) = body.split_at_checked(MESSAGE)?;
        let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let address = |at: usize| match i32::from(fixed[0]) {
            libc::AF_INET => <[u8; 4]>::try_from(&fixed[at..at + 4]).ok().map(|ip| Ipv4Addr::from(ip).into()),
            // A socket of IPv6 that carries IPv4 is the same as one of IPv4.
            _ => <[u8; 16]>::try_from(&fixed[at..at + 16]).ok().map(|ip| Ipv6Addr::from(ip).to_canonical()),
        };
        Some(Self {
            local: SocketAddr::new(address(8)?, port(4)),
            remote: SocketAddr::new(address(24)?, port(6)),
            cookie: u64::from(word(fixed, 44)?) | u64::from(word(fixed, 48)?) << 32,
            receive_queue: word(fixed, 56)?,
            send_queue: word(fixed, 60)?,
            inode: word(fixed, 68)?.into(),
            attributes,
        })
    }

    /// The content of an attribute.
    fn attribute(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.attributes;
        while rest.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
            let content = rest.get(4..length)?;
            if u16::from_ne_bytes([rest[2], rest[3]]) == wanted {
                return Some(content);
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        None
    }
}

/// The number of four bytes at a place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A listener with this backlog, and its address.
    fn listener(backlog: i32) -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        socket.listen(backlog).expect("it listens");
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("its address");
        (socket, address)
    }

    /// Connects without waiting for it.
    fn knock(address: SocketAddr) -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_nonblocking(true).expect("it does not block");
        _ = socket.connect(&address.into());
        socket
    }

    #[test]
    fn a_full_queue_is_that_of_its_own_listener_and_of_no_other() {
        // A sandbox may forbid it.
        let Ok(mut list) = SocketList::open() else { return };
        let ((_full, full), (_other, other)) = (listener(1), listener(64));
        let knocks: Vec<Socket> = (0..6).map(|_| knock(full)).chain([knock(other)]).collect();
        let [of_full, of_other] = [full, other].map(|address| {
            let found = list.listeners(address.port()).expect("the system answers");
            let [one] = found[..] else { panic!("{found:?}") };
            assert_eq!(one.local, address);
            one
        });
        // The system lets one more in than the backlog says.
        assert_eq!((of_full.queued, of_full.limit, of_other.queued, of_other.limit), (2, 1, 1, 64));
        assert!(of_full.drops.is_some_and(|drops| drops >= 4), "{of_full:?}");
        assert_eq!(of_other.drops, Some(0));
        drop(knocks);
        assert_eq!(list.listeners(1).expect("the system answers"), []);
    }

    #[test]
    fn both_ends_of_a_connection_are_told_with_their_segments() {
        // A sandbox may forbid it.
        let Ok(mut list) = SocketList::open() else { return };
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        let mut client = TcpStream::connect(address).expect("it connects");
        let (mut server, from) = listener.accept().expect("it accepts");
        client.write_all(b"ping").expect("it writes");
        server.read_exact(&mut [0; 4]).expect("it reads");
        let [mine] = list.connections_to(address.port()).expect("the system answers")[..] else {
            panic!("one")
        };
        let [theirs] = list.connections_of(address.port()).expect("the system answers")[..] else {
            panic!("one")
        };
        assert_eq!((mine.local, mine.remote, theirs.remote), (from, address, from));
        assert!(own_inodes().contains(&mine.inode) && own_inodes().contains(&theirs.inode));
        assert!(mine.segments.sent >= 3 && theirs.segments.received >= 2, "{mine:?} {theirs:?}");
        assert_eq!((mine.segments.resent, theirs.segments.out_of_order), (0, 0));
        assert!(is_own(address.ip()) && !is_own([192, 0, 2, 1].into()));
    }
}
