//! The backends that work here.

use std::path::Path;

use plimsoll_testkit::{hostile, machine};

use crate::loopback::process::run;

/// Every backend that works on this machine. Containers often forbid `io_uring`; where it works it is tested.
pub(crate) fn working() -> &'static [&'static str] {
    hostile::backends(Path::new(env!("CARGO_BIN_EXE_plimsoll")))
}

/// Runs a test on every backend that works, all at once: each run has a server of its own.
pub(crate) fn on_each(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for backend in working() {
            scope.spawn(|| {
                let _turn = machine::load();
                test(backend);
            });
        }
    });
}

/// Runs a test that measures on every backend that works, one after the other.
pub(crate) fn on_each_alone(test: impl Fn(&str)) {
    for backend in working() {
        let _turn = machine::quiet();
        test(backend);
    }
}

#[test]
fn the_one_that_is_asked_for_is_used() {
    let sink = crate::loopback::sink::Sink::start("");
    for (backend, name) in [("epoll", "epoll"), ("uring", "io_uring")] {
        if working().contains(&backend) {
            let result = run(&format!("{} -n 10 -c 1 -o json --backend {backend}", sink.url())).result();
            assert_eq!(result["generator"]["backend"], name);
        }
    }
    drop(sink);
}
