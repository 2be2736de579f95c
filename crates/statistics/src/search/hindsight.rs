//! Which trials still count in the light of later ones: accidents, servers that were slow to start, and rates
//! with too few samples.

use super::{Aim, BAD_SAMPLES, Finding, Level, Purpose, Search};
use crate::SliceCount;

/// Part of the samples that it takes to show something, which make a claim plausible.
const SOME: f64 = 0.25;
/// Trials of a rate that breaks after which it is not tried again for having been tried long ago.
const MOST_RECALLS: u32 = 4;
/// A rate was last tried long ago if that was before this part of the time of the search.
const LONG_AGO: f64 = 0.5;
/// Share of bad samples from which even a few samples are more than chance.
const MOSTLY_BAD: f64 = 0.5;

impl Search {
    /// Returns `true` if a level breaks a condition, and not only in an earlier trial than one that did not.
    pub(super) fn is_breaking(&self, level: &Level) -> bool {
        level.finding == Finding::Breaks && !(level.disputed && self.holds_above(level.rate))
    }

    /// Returns `true` if a higher rate holds, or seems to.
    pub(super) fn holds_above(&self, rate: f64) -> bool {
        let holds = |level: &Level| level.finding == Finding::Holds || self.seems_to_hold(level);
        self.levels.iter().any(|level| level.rate > rate && holds(level))
    }

    /// Returns `true` if the last trial of a level had some of the samples that it takes to show that the
    /// rate holds, and no more of them were bad than may be.
    pub(super) fn seems_to_hold(&self, level: &Level) -> bool {
        level.samples() as f64 >= self.some_samples() && self.is_bearable(level)
    }

    /// A part of the samples that it takes to show that a rate holds.
    pub(super) fn some_samples(&self) -> f64 {
        self.settings.strictest().map_or(BAD_SAMPLES, |(_, needed)| needed) * SOME
    }

    /// Returns `true` if no more samples of the last trial of a level were bad than may be.
    pub(super) fn is_bearable(&self, level: &Level) -> bool {
        let bearable = |(sum, limit): (&SliceCount, &f64)| sum.marked as f64 <= sum.count as f64 * limit;
        !level.overloaded && level.latest.0.iter().zip(&self.settings.limits).all(bearable)
    }

    /// Returns `true` if a level says nothing any more: few samples of it were bad, and of more samples of a
    /// higher rate, that came later, no more than may be.
    pub(super) fn is_superseded(&self, level: &Level) -> bool {
        let samples = level.samples();
        let is_better = |other: &Level| {
            other.rate > level.rate
                && other.tried_at > level.tried_at
                && other.samples() as f64 * SOME >= samples as f64
                && self.is_bearable(other)
        };
        (samples as f64) < self.some_samples()
            && !self.is_bearable(level)
            && self.levels.iter().any(|other| other.samples() > 0 && is_better(other))
    }

    /// Returns `true` if a level broke in the only trial of it, which may be an accident: of the server or of
    /// its machine.
    pub(super) fn may_be_accident(&self, level: &Level) -> bool {
        level.trials == 1 && level.finding == Finding::Breaks
    }

    /// Returns `true` if a level that breaks may hold by now: it was tried before a lower one was found that
    /// holds, or long ago.
    pub(super) fn may_be_past(&self, level: &Level) -> bool {
        let is_old = level.tried_at < LONG_AGO * self.passed && level.trials < MOST_RECALLS;
        level.finding == Finding::Breaks && level.trials > 1 && (self.descended || is_old)
    }

    /// The lowest rate that breaks and may hold by now, if a lower one had too few samples to say anything.
    pub(super) fn past_above_a_short_one(&self) -> Option<f64> {
        let first = self.levels.iter().position(|level| !self.is_too_short(level))?;
        let upper = self.levels[first..].iter().find(|level| self.is_breaking(level))?;
        (first > 0 && self.may_be_past(upper)).then_some(upper.rate)
    }

    /// A trial before lower rates than all that were tried, where it would tell more: of a rate below the
    /// lowest that breaks that had too few samples, or of that rate itself if it was tried once.
    pub(super) fn before_going_down(&self) -> Option<Aim> {
        let first = self.levels.iter().position(|level| !self.is_too_short(level))?;
        if let Some(short) = self.levels[..first].last() {
            return Some(self.attempt(short.rate, 1, Purpose::Bisection));
        }
        let first = &self.levels[first];
        self.may_be_accident(first).then(|| self.ramp(first.rate))
    }

    /// Returns `true` if a level says nothing yet about where the capacity is: more of its samples are bad
    /// than may be, but they are too few for that to be more than chance.
    pub(super) fn is_too_short(&self, level: &Level) -> bool {
        let share = |sum: &SliceCount| sum.marked as f64 / sum.count as f64;
        let bad = level.latest.0.iter().zip(&self.settings.limits).map(|(sum, limit)| (share(sum), *limit));
        !level.overloaded
            && level.finding == Finding::Unclear
            && level.length < f64::from(self.settings.scale(level.rate))
            && bad.clone().any(|(share, limit)| share > limit)
            && bad.into_iter().all(|(share, _)| share < MOSTLY_BAD)
    }
}
