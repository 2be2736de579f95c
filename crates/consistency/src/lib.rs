//! What servers acknowledged, held against what they have.
//!
//! A [`Ledger`] is told of every write that a load has made, with its answer, and remembers of each item what
//! has to hold of it. An [`Audit`] is shown all items of a server and finds those that are missing,
//! different, there again or never sent. A write whose answer was lost may have happened or not: neither is a
//! finding.
#![forbid(unsafe_code)]

mod audit;
mod content;
mod key;
mod ledger;

pub use audit::{Audit, Evidence, Findings};
pub use ledger::{Counts, Ledger, Resource, Write};
