//! The integral of a profile's rate, and its inverse, in exact arithmetic.
//!
//! One arrival is [`Curve::unit`] units, chosen such that every rate of the profile is a whole number of
//! units per nanosecond and every stage has a whole number of units: with P the least common multiple of the
//! rates' periods, a unit is 1/P of an arrival, or 1/(2P) if there is a ramp, whose area is (from + to) *
//! duration / 2.
//!
//! A curve can be put together from parts of others ([`Curve::spliced`]), each a part of a stage that keeps
//! the stage's shape. The area of a ramp up to a cut is a whole number of units only by chance. There it is
//! rounded up, by less than a unit. That changes nothing before the cut, where arrivals are due at whole
//! units, and "the number of arrivals before" does so anyway. Each part keeps counting in the units that it
//! was made with ([`Segment::grain`]), so that a later change with a finer unit moves nothing that lies
//! before it.
//!
//! Bounds, which [`Curve::new`] establishes and [`Curve::spliced`] keeps: rates and `unit` are below 2^64,
//! times below 2^64, and so whole areas are below 2^128. With a ramp `from` and `to` are even, their halves
//! below 2^63.

use plimsoll_core::{Nanos, Rate};

use crate::{ProfileError, Stage};

/// One stage, or the part of one between two changes, in units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Begin and length of the whole stage in ns: its shape.
    begin: u64,
    length: u64,
    /// Units per ns at the start and at the end of the whole stage.
    from: u64,
    to: u64,
    /// The part that is in force, in ns since `begin`: `since..until`, never empty but in a curve of no
    /// length.
    since: u64,
    until: u64,
    /// Units of the stage before that part, rounded up.
    skipped: u128,
    /// Units of the curve in one of those that the part was made with.
    grain: u64,
    /// Units of the curve before the part, and before its end.
    first: u128,
    end: u128,
}

/// The integral of a rate over time, Λ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    unit: u64,
    segments: Vec<Segment>,
    total: u64,
    /// Arrivals of the uniform process that became whole by a change, with the instant of that change, before
    /// which they were not known. Empty except for changes in the last gap of a profile.
    late: Vec<(u64, u64)>,
}

impl Curve {
    pub(crate) fn constant(rate: Rate, duration: Nanos) -> Self {
        let end = u128::from(rate.count()) * u128::from(duration.0);
        let (from, to) = (rate.count(), rate.count());
        let (length, until) = (duration.0, duration.0);
        let (since, skipped, grain) = (0, 0, 1);
        let segment = Segment { begin: 0, length, from, to, since, until, skipped, grain, first: 0, end };
        let unit = rate.period().0;
        let total = u64::try_from(end / u128::from(unit)).unwrap_or(u64::MAX);
        Self { unit, segments: vec![segment], total, late: Vec::new() }
    }

    pub(crate) fn new(stages: &[Stage]) -> Result<Self, ProfileError> {
        if stages.is_empty() {
            return Err(ProfileError::NoStages);
        }
        if let Some(empty) = stages.iter().position(|stage| stage.duration == Nanos::ZERO) {
            return Err(ProfileError::EmptyStage(empty + 1));
        }
        let unit = common_unit(stages).ok_or(ProfileError::TooFine)?;
        let mut segments = Vec::with_capacity(stages.len());
        let (mut begin, mut first) = (0_u64, 0_u128);
        for stage in stages {
            let from = units_per_ns(stage.from, unit).ok_or(ProfileError::TooFine)?;
            let to = units_per_ns(stage.to, unit).ok_or(ProfileError::TooFine)?;
            let length = stage.duration.0;
            // Even if the stage is a ramp, and below 2^128: the mean of two numbers of 64 bits, times 64
            // bits.
            let area = if from == to {
                u128::from(from) * u128::from(length)
            } else {
                (u128::from(from) + u128::from(to)) / 2 * u128::from(length)
            };
            let end = first.checked_add(area).ok_or(ProfileError::TooMany)?;
            let (since, until, skipped, grain) = (0, length, 0, 1);
            segments.push(Segment { begin, length, from, to, since, until, skipped, grain, first, end });
            begin = begin.checked_add(length).ok_or(ProfileError::TooLong)?;
            first = end;
        }
        let total = u64::try_from(first / u128::from(unit)).map_err(|_| ProfileError::TooMany)?;
        Ok(Self { unit, segments, total, late: Vec::new() })
    }

    /// This curve up to `at`, and `rest` from there to its end, both on the same time; `rest` has to reach
    /// beyond `at`.
    pub(crate) fn spliced(&self, at: u64, rest: &Self) -> Result<Self, ProfileError> {
        let unit = common_multiple(self.unit, rest.unit).ok_or(ProfileError::TooFine)?;
        let kept = self.segments.iter().filter_map(|segment| segment.within(0, at));
        let later = rest.segments.iter().filter_map(|segment| segment.within(at, u64::MAX));
        let parts = kept.map(|part| (part, self.unit)).chain(later.map(|part| (part, rest.unit)));
        let (mut segments, mut first) = (Vec::with_capacity(self.segments.len() + 2), 0_u128);
        for (mut part, old) in parts {
            part.scale(unit / old)?;
            let area = part.shape_before(part.until) - part.skipped;
            part.first = first;
            part.end = first.checked_add(area).ok_or(ProfileError::TooMany)?;
            first = part.end;
            segments.push(part);
        }
        let total = u64::try_from(first / u128::from(unit)).map_err(|_| ProfileError::TooMany)?;
        // Arrivals that were due before stay due, even if no later units complete the last one.
        let due = self.units_before(Nanos(at)).div_ceil(u128::from(self.unit));
        let mut late = self.late.clone();
        if due > u128::from(self.total) {
            late.push((self.total, at));
        }
        let total = total.max(due.min(u128::from(self.total)) as u64);
        Ok(Self { unit, segments, total, late })
    }

    /// The instant before which the arrival `index` of the uniform process cannot be due, if there is one.
    pub(crate) fn not_before(&self, index: u64) -> Option<u64> {
        self.late.iter().filter(|late| late.0 == index).map(|late| late.1).max()
    }

    /// The first arrival after `index` that has such an instant.
    pub(crate) fn next_late(&self, index: u64) -> Option<u64> {
        self.late.iter().map(|late| late.0).filter(|late| *late > index).min()
    }

    /// Arrivals of the uniform process before `at`.
    pub(crate) fn due_before(&self, at: Nanos) -> u64 {
        let whole = self.units_before(at).div_ceil(u128::from(self.unit));
        let due = u64::try_from(whole).unwrap_or(u64::MAX).min(self.total);
        let last = due.checked_sub(1).and_then(|last| self.not_before(last));
        if last.is_some_and(|late| late >= at.0) { due - 1 } else { due }
    }

    /// The end in ns.
    pub(crate) fn duration(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.begin + segment.until)
    }

    /// Arrivals per second at one instant; 0 from the end on.
    pub(crate) fn rate_at(&self, at: u64) -> f64 {
        self.segments[self.number_at(at)..]
            .first()
            .map_or(0.0, |segment| self.rate_of(segment, at - segment.begin))
    }

    /// The highest rate from `at` on, in arrivals per second.
    pub(crate) fn peak_from(&self, at: u64) -> f64 {
        let rates = self.segments[self.number_at(at)..].iter().flat_map(|segment| {
            let since = at.saturating_sub(segment.begin).max(segment.since);
            [self.rate_of(segment, since), self.rate_of(segment, segment.until)]
        });
        rates.fold(0.0, f64::max)
    }

    /// The number of the segment in force at an instant.
    fn number_at(&self, at: u64) -> usize {
        self.segments.partition_point(|segment| segment.begin + segment.until <= at)
    }

    /// Arrivals per second of a segment at the time `t` since its start.
    fn rate_of(&self, segment: &Segment, t: u64) -> f64 {
        let per_second = |units: u64| units as f64 * 1e9 / self.unit as f64;
        let (from, to) = (per_second(segment.from), per_second(segment.to));
        from + (to - from) * (t as f64 / segment.length.max(1) as f64)
    }

    /// Units of one arrival.
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// Whole arrivals in the whole curve.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Units of the whole curve.
    pub(crate) fn end(&self) -> u128 {
        self.segments.last().map_or(0, |segment| segment.end)
    }

    /// The segment in which Λ grows beyond `level`, looked for from segment number `from` on; `None` if Λ
    /// never does.
    pub(crate) fn segment_of(&self, level: u128, from: usize) -> Option<usize> {
        let number = from + self.segments.get(from..)?.partition_point(|segment| segment.end <= level);
        (number < self.segments.len()).then_some(number)
    }

    pub(crate) fn segment(&self, number: usize) -> &Segment {
        &self.segments[number]
    }

    /// Λ(at) in units, rounded up.
    pub(crate) fn units_before(&self, at: Nanos) -> u128 {
        let number = self.segments.partition_point(|segment| segment.begin + segment.since <= at.0);
        let Some(segment) = number.checked_sub(1).map(|last| &self.segments[last]) else { return 0 };
        segment.first + segment.shape_before((at.0 - segment.begin).min(segment.until)) - segment.skipped
    }
}

impl Segment {
    /// The part of this one that lies in `from..to` of the run, if there is any. The fields that depend on
    /// earlier parts are left to the caller.
    fn within(&self, from: u64, to: u64) -> Option<Self> {
        let since = self.since.max(from.saturating_sub(self.begin));
        let until = self.until.min(to.saturating_sub(self.begin));
        if since >= until {
            return None;
        }
        Some(Self { since, until, skipped: self.shape_before(since), ..self.clone() })
    }

    /// Counts in units that are smaller by `factor`.
    fn scale(&mut self, factor: u64) -> Result<(), ProfileError> {
        self.from = self.from.checked_mul(factor).ok_or(ProfileError::TooFine)?;
        self.to = self.to.checked_mul(factor).ok_or(ProfileError::TooFine)?;
        self.grain = self.grain.checked_mul(factor).ok_or(ProfileError::TooFine)?;
        self.skipped = self.skipped.checked_mul(u128::from(factor)).ok_or(ProfileError::TooMany)?;
        Ok(())
    }

    /// Units before the start.
    pub(crate) fn first(&self) -> u128 {
        self.first
    }

    /// Units before the end.
    pub(crate) fn end(&self) -> u128 {
        self.end
    }

    /// Units per ns, if it is the same all the time.
    pub(crate) fn constant(&self) -> Option<u64> {
        (self.from == self.to).then_some(self.from)
    }

    /// The last whole nanosecond t of the run with Λ(t) ≤ `level`, which has to be in `first..end`.
    pub(crate) fn last_at(&self, level: u128) -> u64 {
        let area = level - self.first + self.skipped;
        let into = match self.constant() {
            // The area is below from * length, so the quotient fits and `from` is not zero.
            Some(rate) => (area / u128::from(rate)) as u64,
            // Both are whole numbers of the units that the part was made with, except for levels of the
            // Poisson process.
            None => self.last_on_ramp(area - area % u128::from(self.grain)),
        };
        self.begin + into
    }

    /// The bracket in the area of a ramp, with a = from / 2 and b = to / 2:
    ///
    /// ```text
    /// area(t) = from * t + (to - from) * t² / (2 * length) = t * [a * (2 * length - t) + b * t] / length
    /// ```
    ///
    /// It is at most max(a, b) * 2 * length, below 2^128.
    fn bracket(&self, t: u64) -> u128 {
        let (a, b) = (u128::from(self.from / 2), u128::from(self.to / 2));
        a * (2 * u128::from(self.length) - u128::from(t)) + b * u128::from(t)
    }

    /// Units of the whole stage between its start and `t` after it, rounded up.
    fn shape_before(&self, t: u64) -> u128 {
        if let Some(rate) = self.constant() {
            return u128::from(rate) * u128::from(t);
        }
        let area = Wide::product(self.bracket(t), t).div_ceil(self.length);
        // At most that of the whole stage, which is such a multiple.
        area.next_multiple_of(u128::from(self.grain))
    }

    /// The last t with area(t) ≤ `area`, for a ramp: a guess in floating point, then exact comparisons until
    /// t satisfies it and t + 1 does not.
    fn last_on_ramp(&self, area: u128) -> u64 {
        let limit = Wide::product(area, self.length);
        let fits = |t: u64| Wide::product(self.bracket(t), t) <= limit;
        // `low` fits (there the area is 0, or what was skipped) and `high` does not (`area` is less than what
        // the ramp has there, rounded up, and a whole number).
        let (mut low, mut high) = (self.since, self.until);
        let (mut probe, mut step) = (self.guess(area).min(high.saturating_sub(1)).max(low + 1), 1_u64);
        while high - low > 1 {
            let fit = fits(probe);
            if fit {
                low = probe;
            } else {
                high = probe;
            }
            // Gallop from the guess towards the other side; in the middle once that would leave the bracket.
            let next = if fit { probe.saturating_add(step) } else { probe.saturating_sub(step) };
            step = step.saturating_mul(2);
            probe = if low < next && next < high { next } else { low + (high - low) / 2 };
        }
        low
    }

    /// Solves the quadratic equation of the ramp, within rounding. A falling ramp is solved from its end,
    /// where it is a rising one: then nothing cancels out, and the guess is off by a few units in the last
    /// place.
    fn guess(&self, area: u128) -> u64 {
        let (length, falling) = (self.length as f64, self.to < self.from);
        let (low, high, area) = if falling {
            (self.to as f64, self.from as f64, (self.bracket(self.length) - area) as f64)
        } else {
            (self.from as f64, self.to as f64, area as f64)
        };
        let slope = (high - low) / length;
        let into = 2.0 * area / (low + (low * low + 2.0 * slope * area).sqrt());
        (if falling { length - into } else { into }) as u64
    }
}

/// An unsigned number of 192 bits: a product of 128 and 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wide {
    high: u128,
    low: u64,
}

impl Wide {
    pub(crate) fn product(a: u128, b: u64) -> Self {
        let b = u128::from(b);
        let low = (a & u128::from(u64::MAX)) * b;
        Self { high: (a >> 64) * b + (low >> 64), low: low as u64 }
    }

    /// This number divided by 2^64, rounded down.
    pub(crate) fn high(self) -> u128 {
        self.high
    }

    /// The quotient, rounded up, which has to be below 2^128.
    fn div_ceil(self, divisor: u64) -> u128 {
        let divisor = u128::from(divisor);
        let rest = ((self.high % divisor) << 64) | u128::from(self.low);
        ((self.high / divisor) << 64) + rest.div_ceil(divisor)
    }
}

/// Units of one arrival: the least common multiple of all periods, doubled if there is a ramp; `None` if it
/// has more than 64 bits.
fn common_unit(stages: &[Stage]) -> Option<u64> {
    let mut unit = if stages.iter().all(Stage::is_constant) { 1 } else { 2 };
    let factor = unit;
    for rate in stages.iter().flat_map(|stage| [stage.from, stage.to]) {
        unit = common_multiple(unit, rate.period().0.checked_mul(factor)?)?;
    }
    Some(unit)
}

/// The least common multiple; `None` if it has more than 64 bits.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    (a / greatest_common_divisor(a, b)).checked_mul(b)
}

fn units_per_ns(rate: Rate, unit: u64) -> Option<u64> {
    rate.count().checked_mul(unit / rate.period().0)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_products_carry_and_divide() {
        let all = Wide::product(u128::MAX, u64::MAX);
        // (2^128 - 1)(2^64 - 1) = 2^192 - 2^128 - 2^64 + 1
        assert_eq!((all.high, all.low), (u128::MAX - (1 << 64), 1));
        assert_eq!(all.div_ceil(u64::MAX), u128::MAX);
        assert_eq!(Wide::product(7, 3).div_ceil(2), 11);
        assert_eq!(Wide::product(7, 3).div_ceil(3), 7);
        assert!(Wide::product(1 << 64, 1) > Wide::product(u128::from(u64::MAX), 1));
    }

    #[test]
    fn an_instant_and_its_area_are_inverse_on_the_largest_ramp() {
        let steep = Rate::new((1 << 62) - 1, Nanos(1)).unwrap();
        let rest = Rate::per_second(0);
        for (from, to) in [(rest, steep), (steep, rest)] {
            // The largest area below 2^64 arrivals.
            let segment = Curve::new(&[Stage { duration: Nanos(7), from, to }]).unwrap().segments.remove(0);
            for t in 0..7 {
                let area = segment.shape_before(t);
                assert_eq!(segment.last_at(area), t, "{t}");
                assert!(area == 0 || segment.last_at(area - 1) < t, "{t}");
            }
        }
    }
}
