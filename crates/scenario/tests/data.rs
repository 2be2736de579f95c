//! Users of a scenario: their next actions, their data and their cookies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cookie;
mod feed;
mod program;
