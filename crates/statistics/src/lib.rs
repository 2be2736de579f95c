//! Statistics of measurements, with their certainty: intervals of percentiles, steady state, overload,
//! several runs.
//!
//! Pure functions of numbers: no clock, no socket, no histogram. `metrics`, which has the histograms, hands
//! over counts and looks values up; `report` puts the answers into words. The formulas, their sources and the
//! simulations that check them are in `docs/statistics.md`.
#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod change_points;
mod crossing;
pub mod holm;
pub mod judgement;
mod little;
mod percentile;
pub mod prediction;
pub mod rank;
mod repeats;
mod search;
pub mod sequential;
mod share;
pub mod shift;
mod slices;
mod spread;
mod steady;
mod student;
mod trend;
pub mod usl;

pub use crossing::{Crossing, RatedBatches, crossing};
pub use little::{Growth, Little, growth, little};
pub use percentile::{FEWEST_SLICES, NoInterval, PercentileInterval};
pub use repeats::{BetweenRuns, FEWEST_RUNS, RunEstimate};
pub use search::{Answer, Doubt, End, Finding, Level, Outcome, Purpose, Search, Settings, Trial};
pub use share::{ShareInterval, share_interval};
pub use slices::{Join, MOST_SLICES, SliceKeeper};
pub use spread::SliceCount;
pub use steady::{FEWEST_STEADY_SLICES, Series, Steady, SteadyPoint, Unsteady, steady};
pub use student::student_quantile;
pub use trend::{Trend, trend};
