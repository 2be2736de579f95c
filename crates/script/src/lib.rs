//! Lua scripts: those of steps, as h2loadrunner calls them, and wrk's.
//!
//! A script is loaded once while the plan is made ([`StepScripts::load`], [`WrkScript::load`]), which finds
//! its errors and its inputs; that gives a [`ScriptSource`](plimsoll_scenario::ScriptSource). Every worker
//! then opens a Lua state of its own from it, in its own thread: no lock is shared, except for `store_value`.
//!
//! # Order of calls
//!
//! ```text
//! plan   StepScripts::load / WrkScript::load       problems; needs; what the request of the URL becomes
//! app    WrkScript::setup(workers, addresses)      wrk only: runs `setup` for each worker, gives a WrkMain
//! worker ScriptSource::open(shard, addresses)      runs the script, and wrk's `init`
//!        for each request of a step:
//!          Scripts::delay        if the program says ScriptPause
//!          Scripts::make_request if the step has a make_script: `request` is what the template renders,
//!                                the session has the last response. With DynamicRequest::raw: send those
//!                                bytes, and expect raw_count responses
//!          Scripts::validate_response if it has a check_script, once the whole response is there
//!          Scripts::wants_to_stop after each of these: no more load from this worker
//!        Scripts::finish         after the last response
//! app    WrkMain::done(leftovers, &summary)        wrk only: runs `done`; returns what it printed
//! ```
//!
//! An error of any call is a [`ScriptError`](plimsoll_scenario::ScriptError) that names file and line. The
//! state can be called again after it, unless it was one of time or memory, which
//! [ends the run](plimsoll_scenario::ScriptError::ends_run).
//!
//! # Limits
//!
//! A call has a time limit and a worker's state a memory limit, see [`ScriptOptions`]. LuaJIT's compiler is
//! on if its code can be stopped, which is how the workspace builds it. The cost of calls is in
//! `tests/cost.rs`.
#![deny(unsafe_code)]

mod alarm;
mod analysis;
mod fault;
mod functions;
mod guard;
mod headers;
mod json;
mod language;
mod library;
mod machine;
mod metrics;
mod modules;
mod options;
mod output;
mod pattern;
mod portable;
mod step;
mod strings;
mod text;
mod wrk;

pub use language::LuaScripts;
pub use options::{Host, ScriptOptions};
pub use step::StepScripts;
pub use wrk::{WrkErrors, WrkMain, WrkScript, WrkStats, WrkSummary};
