//! What a measurement says, and how surely: intervals of percentiles, steady state, overload, several runs.
//!
//! Pure functions of numbers: no clock, no socket, no histogram. Whoever has the histograms (`metrics`) hands
//! over counts and looks values up; whoever prints (`report`) puts the answers into words. The formulas,
//! where they come from and what was simulated to check them are in `docs/statistics.md`.
#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod change_points;
pub mod holm;
pub mod judgement;
mod percentile;
pub mod rank;
mod search;
mod share;
pub mod shift;
mod slices;
mod student;
pub mod usl;

pub use percentile::{FEWEST_SLICES, NoInterval, PercentileInterval, SliceCount, samples_needed};
pub use search::{Answer, End, Finding, Level, Outcome, Purpose, Search, Settings, Trial};
pub use share::{Portion, ShareInterval, share_interval};
pub use slices::{Join, MOST_SLICES, SliceKeeper};
pub use student::student_quantile;
