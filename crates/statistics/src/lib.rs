//! What a measurement says, and how surely: intervals of percentiles, steady state, overload, several runs.
//!
//! Pure functions of numbers: no clock, no socket, no histogram. Whoever has the histograms (`metrics`) hands
//! over counts and looks values up; whoever prints (`report`) puts the answers into words. The formulas,
//! where they come from and what was simulated to check them are in `docs/statistics.md`.
#![forbid(unsafe_code)]

mod little;
mod percentile;
mod repeats;
mod slices;
mod steady;
mod student;

pub use little::{Growth, Little, growth, little};
pub use percentile::{FEWEST_SLICES, NoInterval, PercentileInterval, SliceCount, samples_needed};
pub use repeats::{BetweenRuns, FEWEST_RUNS, RunEstimate};
pub use slices::{Join, MOST_SLICES, SliceKeeper};
pub use steady::{FEWEST_STEADY_SLICES, Series, Steady, SteadyPoint, Unsteady, steady};
pub use student::student_quantile;
