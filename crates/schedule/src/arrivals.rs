//! The arrivals of one shard of a profile.

use std::sync::Arc;

use plimsoll_core::{Arrival, Nanos, Shard};

use crate::Profile;
use crate::curve::{Curve, Wide};
use crate::poisson::OperationalTime;

/// Distribution of arrivals over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Evenly: one whenever the integral of the rate reaches the next whole number.
    Uniform,
    /// Independently of each other, as those of many users are: a Poisson process with the profile's rate.
    Poisson,
}

/// The arrivals of one shard of a profile, in the order of time, from the start of the run to the profile's
/// end (exclusive).
///
/// The indices count over the whole run; this shard has those with the remainder `shard.index` modulo
/// `shard.of`. The uniform process steps from one of them to its next directly, with an addition and a
/// carried remainder where the rate is constant. The Poisson process draws the gaps of all shards, since
/// there is one sequence for the run.
///
/// The profile may change while the arrivals are taken: see [`change`](Self::change).
#[derive(Clone, Debug)]
pub struct Arrivals {
    curve: Arc<Curve>,
    /// Indices between two arrivals of this shard.
    stride: u64,
    /// Index of the next arrival, if the profile has it; never, if it has more than 64 bits.
    next: Option<u64>,
    source: Source,
    upcoming: Option<Arrival>,
}

#[derive(Clone, Debug)]
enum Source {
    Uniform(Uniform),
    Poisson(Poisson),
}

impl Arrivals {
    /// The arrivals of `shard`. `seed` matters to the Poisson process only.
    pub fn new(profile: &Profile, process: Process, seed: u64, shard: Shard) -> Self {
        let curve = profile.curve().clone();
        let (stride, first) = (u64::from(shard.of.max(1)), u64::from(shard.index));
        let mut source = match process {
            Process::Uniform => Source::Uniform(Uniform::new(&curve, stride)),
            Process::Poisson => Source::Poisson(Poisson::new(seed)),
        };
        let upcoming = match &mut source {
            Source::Uniform(uniform) => uniform.seek(&curve, first),
            Source::Poisson(poisson) => poisson.skip_to(&curve, first),
        };
        Self { curve, stride, next: Some(first), source, upcoming }
    }

    /// Goes on by `profile`, which must be the old one up to some instant ([`Profile::changed`]). Arrivals
    /// that were taken stay taken; those that were due before that instant keep their times, and the indices
    /// go on.
    ///
    /// Immediate for the uniform process. The Poisson process goes on with the sum of its gaps; if the rate
    /// was raised, it draws the missing ones.
    pub fn change(&mut self, profile: &Profile) {
        self.curve = profile.curve().clone();
        let next = self.next;
        self.upcoming = match &mut self.source {
            Source::Uniform(uniform) => {
                let stride = self.stride;
                *uniform = Uniform::new(&self.curve, stride);
                next.and_then(|index| uniform.seek(&self.curve, index))
            }
            Source::Poisson(poisson) => {
                poisson.rescale(&self.curve);
                next.and_then(|index| poisson.skip_to(&self.curve, index))
            }
        };
    }

    /// The next arrival, without taking it.
    pub fn peek(&self) -> Option<Arrival> {
        self.upcoming
    }

    /// Returns the number of arrivals of the whole run, not only of this shard, that are intended before
    /// `at`; exact.
    ///
    /// Immediate for the uniform process. The Poisson process is replayed on a copy, from here or from its
    /// start, at a few tens of nanoseconds for each arrival.
    pub fn count_before(&self, at: Nanos) -> u64 {
        match &self.source {
            Source::Uniform(_) => self.curve.due_before(at),
            Source::Poisson(poisson) => poisson.count_below(&self.curve, self.curve.units_before(at)),
        }
    }

    /// Returns the number of arrivals of the whole run to be expected before `at`: the integral of the rate,
    /// rounded down. Immediate for both processes.
    pub fn expected_before(&self, at: Nanos) -> u64 {
        let whole = self.curve.units_before(at) / u128::from(self.curve.unit());
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// Returns `true` if [`count_before`](Self::count_before) and [`pass_before`](Self::pass_before) take the
    /// same time regardless of the number of arrivals.
    pub const fn is_immediate(&self) -> bool {
        matches!(self.source, Source::Uniform(_))
    }

    /// Takes all arrivals of this shard that are intended before `at`, at once.
    pub fn pass_before(&mut self, at: Nanos) {
        let Source::Uniform(uniform) = &mut self.source else {
            while self.upcoming.is_some_and(|arrival| arrival.at < at) {
                self.next();
            }
            return;
        };
        let due = self.curve.due_before(at);
        let Some(next) = self.next.filter(|next| *next < due) else { return };
        self.next = (due - next)
            .div_ceil(self.stride)
            .checked_mul(self.stride)
            .and_then(|more| next.checked_add(more));
        self.upcoming = self.next.and_then(|index| uniform.seek(&self.curve, index));
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.upcoming?;
        self.next = arrival.index.checked_add(self.stride);
        self.upcoming = self.next.and_then(|index| match &mut self.source {
            Source::Uniform(uniform) => uniform.step(&self.curve, arrival.at, index),
            Source::Poisson(poisson) => poisson.skip_to(&self.curve, index),
        });
        Some(arrival)
    }
}

/// Steps through the uniform process.
///
/// On a constant segment arrival n is `(n * unit - first) / rate` into it, rounded down, so that the next of
/// the shard is later by `stride * unit / rate`: the quotient is added, the remainder carried, and nothing
/// divided.
#[derive(Clone, Debug)]
struct Uniform {
    /// Units between two arrivals of the shard.
    stride_units: u128,
    /// Segment of the last arrival.
    segment: usize,
    /// Arrivals from this index on need another look at the curve: they are in a later segment, or on a ramp.
    stop: u64,
    /// Units per ns of this constant segment.
    rate: u64,
    /// Units from the last arrival's nanosecond to the arrival itself, below `rate`.
    rest: u64,
    /// `stride_units` divided by `rate`.
    quotient: u64,
    remainder: u64,
}

impl Uniform {
    fn new(curve: &Curve, stride: u64) -> Self {
        let stride_units = u128::from(stride) * u128::from(curve.unit());
        Self { stride_units, segment: 0, stop: 0, rate: 1, rest: 0, quotient: 0, remainder: 0 }
    }

    /// The arrival `index`, which follows the one at `last` in this shard.
    #[inline]
    fn step(&mut self, curve: &Curve, last: Nanos, index: u64) -> Option<Arrival> {
        if index >= self.stop {
            return self.seek(curve, index);
        }
        let mut at = last.0 + self.quotient;
        // rest + remainder < rate, or carry: compared such that nothing overflows.
        let room = self.rate - self.remainder;
        if self.rest >= room {
            self.rest -= room;
            at += 1;
        } else {
            self.rest += self.remainder;
        }
        Some(Arrival { index, at: Nanos(at) })
    }

    /// The arrival `index`, not before any that was asked for earlier.
    fn seek(&mut self, curve: &Curve, index: u64) -> Option<Arrival> {
        if index >= curve.total() {
            return None;
        }
        let unit = u128::from(curve.unit());
        let level = u128::from(index) * unit;
        let number = curve.segment_of(level, self.segment)?;
        let segment = curve.segment(number);
        if let Some(rate) = segment.constant() {
            // A stride that takes more than 2^64 ns leaves the segment, so it is never added.
            self.quotient = u64::try_from(self.stride_units / u128::from(rate)).unwrap_or(u64::MAX);
            self.remainder = (self.stride_units % u128::from(rate)) as u64;
            self.rest = ((level - segment.first()) % u128::from(rate)) as u64;
            self.rate = rate;
            let stop = segment.end().div_ceil(unit).min(u128::from(curve.total()));
            // At most the total, which has 64 bits.
            self.stop = curve.next_late(index).unwrap_or(u64::MAX).min(stop as u64);
        }
        self.segment = number;
        let mut at = segment.last_at(level);
        if let Some(late) = curve.not_before(index).filter(|late| *late > at) {
            // The next arrival is not computed from this one.
            (at, self.stop) = (late, 0);
        }
        Some(Arrival { index, at: Nanos(at) })
    }
}

/// Draws the Poisson process.
#[derive(Clone, Debug)]
struct Poisson {
    seed: u64,
    time: OperationalTime,
    /// Number of arrivals drawn so far: the index of the next one.
    drawn: u64,
    /// Level of the last one in units; meaningless before the first.
    level: u128,
    /// Segment of the last one.
    segment: usize,
}

impl Poisson {
    fn new(seed: u64) -> Self {
        Self { seed, time: OperationalTime::new(seed), drawn: 0, level: 0, segment: 0 }
    }

    /// Draws one arrival, and gives its level in units.
    fn draw(&mut self, curve: &Curve) -> u128 {
        // Operational time is in 2^-64 arrivals.
        self.level = Wide::product(self.time.next(), curve.unit()).high();
        self.drawn += 1;
        self.level
    }

    /// Takes up another curve.
    fn rescale(&mut self, curve: &Curve) {
        self.level = Wide::product(self.time.elapsed(), curve.unit()).high();
        self.segment = 0;
    }

    /// The arrival `index`, which was not drawn yet or is the last that was.
    fn skip_to(&mut self, curve: &Curve, index: u64) -> Option<Arrival> {
        // The last one may lie beyond the end of a curve that has changed since.
        while self.drawn == 0 || self.level < curve.end() {
            if self.drawn > index {
                break;
            }
            self.draw(curve);
        }
        self.segment = curve.segment_of(self.level, self.segment)?;
        Some(Arrival { index, at: Nanos(curve.segment(self.segment).last_at(self.level)) })
    }

    /// Returns the number of arrivals whose level is below `units`, which is at most the curve's end.
    fn count_below(&self, curve: &Curve, units: u128) -> u64 {
        let ahead = self.drawn > 0 && self.level < units;
        let mut replay = if ahead { self.clone() } else { Self::new(self.seed) };
        while replay.draw(curve) < units {}
        replay.drawn - 1
    }
}
