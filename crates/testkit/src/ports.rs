//! Addresses that servers can come back to.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::eventually::eventually;

/// Returns free addresses below the range of ephemeral ports: a client could take one of those before a
/// server has come back to it. They are other ones each time.
///
/// # Panics
/// No port is free.
pub fn lasting_addresses<const N: usize>() -> [String; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 100) as u16 * 100;
    [(); N].map(|()| {
        let mut ports = std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed)).take(1_000);
        let free = ports.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok());
        format!("127.0.0.1:{}", free.expect("a free port"))
    })
}

/// Waits until one can listen at these addresses: the kernel closes the sockets of a ring a little after the
/// end of the process that had it.
///
/// # Panics
/// An address is still taken after a minute.
pub fn await_free(addresses: &[&String]) {
    let free = || addresses.iter().all(|address| TcpListener::bind(address.as_str()).is_ok());
    assert!(eventually(free), "{addresses:?} are still in use");
}
