//! Requests in flight of an open run: whether they grew, and whether the run can show that.

use plimsoll_core::{Nanos, figure};

use super::Judge;
use crate::course::{self, rise, slow_answer};
use crate::{Interval, Model};

/// By how much the time that is owed to requests in flight may grow per time in a run that is stable. At
/// ρ = 1.05 it is 5 %; at ρ = 0.9 chance makes 0.2 % in 10 s (M/M/1, μ = 1,000/s).
const GROWTH_SHARE: f64 = 0.006;
/// Intervals that a slope takes.
const FEWEST: usize = 4;
/// Standard deviations by which the mean number in flight has to differ from the first third to the last.
const CHANCE: f64 = 4.0;
/// Requests in flight that are none to speak of, at any rate.
const FEW: u64 = 3;
/// Share of the started requests that is [`FEW`] at a high rate.
const FEW_SHARE: f64 = 0.01;
/// Requests in flight that have piled up: fewer are a matter of chance.
const PILED: u64 = 10;
/// Share of the started requests from which those in flight have piled up at a high rate.
const PILED_SHARE: f64 = 0.05;
/// While requests piled up, the median of their times was this multiple of the least one.
const BULGE_FACTOR: u64 = 3;

/// Result of the test of requests in flight. In a closed run their number is that of the users, and level.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Backlog {
    /// Requests in flight grew to the end of the load.
    Grew {
        /// Growth per second.
        per_second: f64,
        /// Number at the end of the load.
        to: u64,
    },
    /// Requests in flight grew, and fell again.
    Bulged {
        /// Largest number at the end of an interval.
        most: u64,
        /// End of that interval, since the start of the run.
        at: Nanos,
        /// Number at the end of the load.
        left: u64,
    },
    /// Requests in flight did not grow.
    Level,
    /// The run does not show whether they grew; the reason as the end of a sentence.
    Unknown(String),
}

impl Judge<'_> {
    /// Tests whether the requests in flight grew.
    ///
    /// A rate that rises has more in flight, too. So the quantity that is fitted by least squares is the time
    /// that those in flight will take at the interval's own rate of responses (Little's law): level in a
    /// stable run. Growth within the time that the slowest answers take is filling up, and shows nothing,
    /// unless the median of the times rises with it: then requests wait for one another.
    ///
    /// The test of [`course::growth`] is not a substitute. It asks whether a warning is due, at a known share
    /// of false ones: for that it needs ten whole intervals of a constant load. Here surer evidence was asked
    /// for before, a run of four intervals or a ramp wants an answer too, and a false alarm only names the
    /// target where no other cause is left. Where that warning is due, this agrees with it.
    pub(super) fn backlog(&self) -> Backlog {
        if self.record.model == Model::Closed {
            return Backlog::Level;
        }
        if let Some(share) = self.record.awaits_pushes() {
            let share = figure::share(share);
            return Backlog::Unknown(format!(
                "{share} of the time in requests was spent in waiting for messages that come by themselves"
            ));
        }
        let cells: Vec<&Interval> = self.record.measured_cells().collect();
        let started = cells.iter().map(|cell| cell.started).sum::<u64>();
        let share = |share: f64| (started as f64 * share) as u64;
        let most = cells.iter().max_by_key(|cell| cell.in_flight);
        let (Some(last), Some(most)) = (cells.last(), most) else {
            return Backlog::Unknown("there is no interval".to_owned());
        };
        let answered: Vec<&Interval> = cells.iter().copied().filter(|cell| cell.completed > 0).collect();
        let filled = self.filled();
        let settled: Vec<&Interval> =
            answered.iter().copied().filter(|cell| cell.at.since(cell.length) >= filled).collect();
        let piled = PILED.max(share(PILED_SHARE));
        let warned = || course::growth(self.record).map(|growth| growth.per_second);
        if let Some(per_second) = growth(&settled).or_else(warned) {
            return Backlog::Grew { per_second, to: last.in_flight };
        }
        let load: Vec<&Interval> = self.record.load_cells().filter(|cell| cell.completed > 0).collect();
        if rise(&load).is_some() && last.in_flight >= piled && last.in_flight == most.in_flight {
            let first = load[0];
            let time = last.at.since(first.at).as_secs_f64();
            let grown = last.in_flight.saturating_sub(first.in_flight) as f64;
            return Backlog::Grew { per_second: grown / time, to: last.in_flight };
        }
        // A target that gets slower all the time has more in flight with each interval, however few.
        let slower = rise(&load).filter(|_| settled.len() >= FEWEST && last.in_flight == most.in_flight);
        if let Some((from, to)) = slower {
            return Backlog::Unknown(format!(
                "the median of the times rose from {} to {}",
                figure::nanos(from),
                figure::nanos(to)
            ));
        }
        if most.in_flight <= FEW.max(share(FEW_SHARE)) {
            return Backlog::Level;
        }
        let medians = || answered.iter().filter_map(|cell| cell.response_time.map(|[p50, ..]| p50));
        let (least, largest) = (medians().min().unwrap_or(0), medians().max().unwrap_or(0));
        if most.in_flight >= piled
            && last.in_flight < most.in_flight / 2
            && largest >= least.saturating_mul(BULGE_FACTOR)
        {
            return Backlog::Bulged { most: most.in_flight, at: most.at, left: last.in_flight };
        }
        if settled.len() >= FEWEST {
            return Backlog::Level;
        }
        Backlog::Unknown(match slow_answer(self.record) {
            Some(slow) if answered.len() >= FEWEST => {
                format!(
                    "the p99 of the answers is {}, too long for a run of this length",
                    figure::nanos(Nanos(slow))
                )
            }
            _ => match answered.len() {
                1 => "1 interval with answers is too few".to_owned(),
                count => format!("{count} intervals with answers are too few"),
            },
        })
    }

    /// From when on the requests in flight show what the target carries, since the start of the run: nearly
    /// all answers to the first requests could have come.
    fn filled(&self) -> Nanos {
        Nanos(slow_answer(self.record).unwrap_or(0)).max(self.record.warmup)
    }
}

/// By how much the requests in flight grew per second; `None` if they did not, or it does not show.
fn growth(cells: &[&Interval]) -> Option<f64> {
    if cells.len() < FEWEST {
        return None;
    }
    let owed = |cell: &&Interval| {
        let owed = cell.in_flight as f64 * cell.length.as_secs_f64();
        (cell.at.as_secs_f64(), owed / cell.completed as f64)
    };
    let points: Vec<(f64, f64)> = cells.iter().map(owed).collect();
    // A single outlier at the end makes a slope, too, so half of the steps have to go up.
    let rises = points.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
    if slope(&points) <= GROWTH_SHARE || rises * 2 < points.len() - 1 {
        return None;
    }
    // Where nothing waits the number in flight has the variance of its mean, whatever the times are (M/G/∞).
    let third = cells.len().div_ceil(3);
    let mean =
        |part: &[&Interval]| part.iter().map(|cell| cell.in_flight as f64).sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&cells[..third]), mean(&cells[cells.len() - third..]));
    if last - first <= CHANCE * (first.max(1.0) * 2.0 / third as f64).sqrt() {
        return None;
    }
    let in_flight: Vec<(f64, f64)> =
        cells.iter().map(|cell| (cell.at.as_secs_f64(), cell.in_flight as f64)).collect();
    Some(slope(&in_flight)).filter(|growth| *growth > 0.0)
}

/// The slope of the line through some points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (mut along, mut squares) = (0.0, 0.0);
    for point in points {
        along += (point.0 - x) * (point.1 - y);
        squares += (point.0 - x).powi(2);
    }
    if squares > 0.0 { along / squares } else { 0.0 }
}
