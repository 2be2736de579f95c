//! The one hot loop per worker, and run control.
//!
//! A run is one [`Plan`](plimsoll_plan::Plan) carried out: [`run()`] resolves the targets, starts one thread
//! per worker, starts all of them at one instant, gathers their per-second snapshots and merges their
//! measurements into one [`RunRecord`](plimsoll_metrics::RunRecord). Open or closed, counted or timed, TCP,
//! TLS or unix socket, warm-up or measurement are values that the one loop in [`worker`] reads; there is no
//! second loop.
//!
//! It must not touch a socket or a clock: that is the driver's, so that the same code runs in simulated time.
#![forbid(unsafe_code)]

mod addresses;
mod backends;
mod background;
mod capture;
mod checksum;
mod connection;
mod control;
mod crew;
mod demand;
mod directory;
mod error;
mod event_stream;
mod job;
mod names;
mod once;
mod pacing;
mod preflight;
mod ramp;
mod request;
mod run;
mod send_times;
mod session;
mod shutdown_watchdog;
mod socket_watch;
pub mod supply;
mod target_pool;
mod timers;
mod watch;
mod websocket;
pub mod worker;

pub use addresses::TargetAddress;
pub use backends::Backends;
pub use background::{BackgroundRun, run_accompanied};
pub use checksum::load_checksum;
pub use control::{Control, Progress, RateCommand, Status, SteerError, Stop, Watched};
pub use crew::Crew;
pub use directory::Directory;
pub use error::RunError;
pub use names::resolve_anew;
pub use once::{Once, OnceFailure, SetValue, refresh, run_once, set_up};
pub use preflight::{FirstContact, PassedOver, preflight};
pub use run::{Resolved, check_user_rows, resolve, run, run_logged};
