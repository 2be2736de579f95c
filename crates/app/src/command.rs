//! The other commands.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod cluster_run;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod guard;
pub(crate) mod history;
pub(crate) mod import;
pub mod inspect;
pub(crate) mod record;
pub(crate) mod reference;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod try_once;
pub(crate) mod ui;
pub(crate) mod verify;
