//! Behaviour of backends when file descriptors run out. The test has a process of its own, because it lowers
//! the limit.

use std::fs::File;
use std::net::TcpStream;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_driver::{
    Backend, Close, Endpoint, Event, Open, OpenEpoll, OpenUring, SocketOptions, Wait, uring_available,
};
use plimsoll_system::limits;

const LIMIT: u64 = 64;

fn lower_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing one rlimit.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = LIMIT;
    // SAFETY: `limit` is an initialised rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// Connections wait in the listener's queue while there is no descriptor for them, without keeping the
/// backend busy, and are accepted once there is.
fn a_full_table_is_survived<O: Open>(open: &O) {
    let mut backend = open.open().expect("opens");
    let (listener, bound) =
        backend.listen(&Endpoint::Tcp("127.0.0.1:0".parse().expect("an address")), false).expect("listens");
    let Endpoint::Tcp(address) = bound.clone() else { panic!("a TCP endpoint") };
    let peers: Vec<_> = (0..5).map(|_| TcpStream::connect(address).expect("connects")).collect();
    let ballast: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!ballast.is_empty());

    let error = backend.connect(&bound, &SocketOptions::default()).expect_err("no descriptor");
    assert_eq!(error.class(), ErrorClass::DescriptorsExhausted, "{error}");
    let until = backend.now() + Nanos::from_millis(35);
    let mut waits = 0;
    while backend.now() < until {
        backend.wait(Wait { until, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        assert!(backend.next_event().is_none());
        waits += 1;
    }
    // One try per 10 ms, and the waits that it cuts in two.
    assert!(waits < 20, "{waits} waits in 35 ms");

    drop(ballast);
    let end = backend.now() + Nanos::from_secs(20);
    let mut accepted = 0;
    while accepted < peers.len() {
        assert!(backend.now() < end, "{accepted} accepted");
        backend.wait(Wait { until: end, want: 1, floor: Nanos::ZERO, spin: Nanos::ZERO });
        while let Some(event) = backend.next_event() {
            let Event::Accepted { listener: by, conn, .. } = event else { panic!("{event:?}") };
            assert_eq!(by, listener);
            backend.close(conn, Close::Now);
            accepted += 1;
        }
    }
}

#[test]
fn running_out_of_descriptors() {
    lower_limit();
    a_full_table_is_survived(&OpenEpoll::default());
    if uring_available().is_ok() {
        a_full_table_is_survived(&OpenUring::default());
    }
    assert_eq!(limits::raise_descriptors(LIMIT - 1), Ok(LIMIT));
    assert_eq!(limits::raise_descriptors(LIMIT + 1), Ok(LIMIT + 1));
}
