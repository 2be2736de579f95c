//! Comparison of the writes that servers acknowledged with their contents.
//!
//! A [`Ledger`] records every write of a load, with its answer. For each item it remembers the state that
//! has to hold. An [`Audit`] is shown all items of a server. It finds items that are missing, different,
//! there again after their deletion, or never sent. A write whose answer was lost may have happened or not:
//! neither is a finding.
#![forbid(unsafe_code)]

mod audit;
mod content;
mod key;
mod ledger;

pub use audit::{Audit, Evidence, Findings};
pub use ledger::{Counts, Ledger, Resource, Write};
