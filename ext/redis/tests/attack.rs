//! The program against the hostile servers of this folder.

use std::path::Path;

use plimsoll_testkit::hostile::{check, counted};

use crate::hostile::suite;
use crate::program::PROGRAM;

#[test]
fn hostile_servers_of_redis() {
    check(Path::new(PROGRAM), &[suite()]);
}

/// A new server has to be added to the page, too.
#[test]
fn the_page_of_assurance_counts_the_servers() {
    let row = counted(&[suite()], "ext/redis/hostile.rs");
    assert!(include_str!("../../../docs/assurance.md").contains(&row), "{row}");
}
