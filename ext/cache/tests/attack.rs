//! The program against the hostile servers of this folder.

use std::path::Path;

use plimsoll_testkit::hostile::{barrage, check, counted};
use plimsoll_testkit::program::Server;

use crate::hostile::{requests, suite};
use crate::program::{PROGRAM, plimsoll};

#[test]
fn hostile_caches() {
    check(Path::new(PROGRAM), &[suite()]);
}

/// A new server has to be added to the page, too.
#[test]
fn the_page_of_assurance_counts_the_servers() {
    let row = counted(&[suite()], "ext/cache/hostile.rs");
    assert!(include_str!("../../../docs/assurance.md").contains(&row), "{row}");
}

#[test]
fn damaged_requests_are_survived() {
    let server = Server::start(plimsoll("target cache --listen 127.0.0.1:0 --http off"));
    let address = server.address.parse().expect("an address");
    let made = barrage(address, &requests(), 1, 3_000).expect("every good request is answered well");
    assert_eq!(made.sent, 3_000);
    assert!(made.answered > 300, "{made:?}");
}
