//! Response times counted by classes.

use plimsoll_metrics::Tally;

/// Classes of a decade, and decades from [`LOWEST`] on.
pub(super) const PER_DECADE: usize = 16;

pub(super) const DECADES: usize = 8;

/// Nanoseconds where the first class begins: shorter times belong to it.
pub(super) const LOWEST: f64 = 1e3;

pub(super) const CLASSES: usize = PER_DECADE * DECADES;

/// Response times by classes that are equally wide on a logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeClasses(pub(super) [u32; CLASSES]);

impl Default for TimeClasses {
    fn default() -> Self {
        Self([0; CLASSES])
    }
}

impl TimeClasses {
    /// The times of an interval.
    pub(super) fn of(tally: &Tally) -> Self {
        let mut spread = Self::default();
        for (value, count) in tally.response_time.values() {
            let place = (value as f64 / LOWEST).max(1.0).log10() * PER_DECADE as f64;
            let class = &mut spread.0[(place as usize).min(CLASSES - 1)];
            *class = class.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        spread
    }

    /// Adds those of another interval.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine = mine.saturating_add(theirs));
    }

    /// The first and the last class that has any.
    pub(super) fn range(&self) -> Option<(usize, usize)> {
        let first = self.0.iter().position(|count| *count > 0)?;
        Some((first, self.0.iter().rposition(|count| *count > 0)?))
    }
}
