//! Output while a run goes on.

pub(crate) mod exports;
pub(crate) mod fault_log;
pub(crate) mod growing_result;
pub(crate) mod interval_teller;
pub(crate) mod progress;
pub(crate) mod request_log;
pub(crate) mod rotation;
pub(crate) mod screen;
mod standing;
pub(crate) mod stats;
pub(crate) mod view;
pub(crate) mod watched_ends;
