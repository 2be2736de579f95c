//! What users of a scenario do next, with which data and cookies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cookie;
mod feed;
mod program;
