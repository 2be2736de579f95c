//! Free ports of this machine.

use std::net::{SocketAddr, TcpListener};
use std::{fs, io};

/// The first port that is given: those below are of services that systems are known for.
const FIRST: u16 = 15_000;

/// Returns `count` TCP ports of `127.0.0.1` that are not in use. The search starts at a port that depends on
/// `seed`.
///
/// The ports lie below the system's range of ephemeral ports, so a server that is restarted on its port finds
/// it free. If that range begins so low that there is no room below it, all ports from 15,000 on are
/// candidates.
///
/// # Errors
/// If fewer than `count` ports are free.
pub fn free_ports(count: usize, seed: u64) -> io::Result<Vec<u16>> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
    // The kernel's default, in case the file is hidden; all ports, in case the range begins low.
    let end: u16 = end.unwrap_or(32_768);
    let (first, end) = if end > FIRST + 1_000 { (FIRST, end) } else { (FIRST, u16::MAX) };
    let room = u64::from(end - first);
    // Kept open until all are found, so that each is found once.
    let mut found = Vec::new();
    for offset in 0..room {
        if found.len() == count {
            break;
        }
        let port = first + ((seed.wrapping_add(offset)) % room) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            found.push((port, listener));
        }
    }
    match found.len() == count {
        true => Ok(found.into_iter().map(|(port, _)| port).collect()),
        false => Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port is left")),
    }
}

/// Returns `true` if this address of this machine is not in use now. Another process may take it a moment
/// later.
pub fn is_free(address: SocketAddr) -> bool {
    let bound = TcpListener::bind(address);
    !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_each_is_another() {
        let mut ports = free_ports(20, u64::from(std::process::id()) * 100).expect("there are some");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
        let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = taken.local_addr().expect("it has one");
        assert!(!ports.contains(&address.port()) && !is_free(address));
        drop(taken);
        assert!(is_free(address));
    }
}
