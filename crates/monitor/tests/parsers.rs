//! No parser panics, for any content.

use std::path::Path;

use plimsoll_monitor::parse::{cgroup, machine, network, process};
use proptest::prelude::*;

/// Everything that reads bytes, on the same bytes.
fn read_all(bytes: &[u8]) {
    let _ = process::stat(bytes);
    let _ = process::name(bytes);
    let _ = process::files(bytes);
    let _ = process::schedule(bytes);
    let _ = process::switches(bytes);
    let _ = process::resident(bytes);
    let _ = process::limit(bytes, b"Max open files");
    machine::cores(bytes).for_each(drop);
    let _ = machine::pressure(bytes);
    let _ = machine::load_hundredths(bytes);
    let _ = machine::port_count(bytes);
    let _ = network::figure(bytes, b"Tcp:", b"OutSegs");
    let _ = network::sockets(bytes, b"TCP:", b"tw");
    let _ = network::device_drops(bytes);
    let _ = network::listener(bytes, &[80]);
    let _ = network::unix_listener(bytes, b"/x");
    let _ = cgroup::throttling(bytes);
    let _ = cgroup::cpu_max(bytes);
    let _ = cgroup::cfs_quota(bytes, bytes);
    let _ = cgroup::memory_limit(bytes);
    let text = String::from_utf8_lossy(bytes);
    if let Some(mount) = cgroup::mount(&text, None).or_else(|| cgroup::mount(&text, Some("cpu"))) {
        let group = cgroup::group(&text, None).unwrap_or(Path::new("/"));
        assert!(cgroup::folder(&mount, group).starts_with(&mount.at));
    }
}

/// Words of these files, huge and broken numbers, and separators.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "cpu0 ",
            "cpu",
            "Tcp: ",
            "OutSegs ",
            "TCP: ",
            "tw ",
            "some ",
            "total=",
            "(a) ",
            ")",
            "VmRSS: ",
            "nr_periods ",
            "nr_throttled ",
            "throttled_usec ",
            "throttled_time ",
            "eth0:",
            "0A ",
            ":0050 ",
            "\n",
            " ",
            "max ",
            "- cgroup2 x y",
            "0::/a",
            "/ ",
            "voluntary_ctxt_switches: ",
            "Max open files ",
            "unlimited ",
            "-1 ",
            ".",
            "18446744073709551615 ",
            "99999999999999999999 ",
        ])
        .prop_map(str::to_owned),
        any::<u64>().prop_map(|value| format!("{value} ")),
        "\\PC{0,4}",
    ]
}

proptest! {
    #[test]
    fn broken_files_are_read(pieces in prop::collection::vec(piece(), 0..40)) {
        read_all(pieces.concat().as_bytes());
    }

    #[test]
    fn anything_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn a_line_of_a_thread_is_read_back(user in 0..u64::MAX / 10_000_000, threads: u64, name in "\\PC{0,16}") {
        let line = format!("1 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} 3 0 0 20 0 {threads} 0 1 2 3");
        let stat = process::stat(line.as_bytes()).expect("it is whole");
        prop_assert_eq!((stat.user.0, stat.threads), (user * 10_000_000, threads));
    }
}
