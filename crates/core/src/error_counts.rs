//! Counts of errors by class.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::{ErrorClass, ErrorRow};

/// Classes of the core.
const CORE: usize = ErrorClass::CORE.len();

/// Counts of errors by class: `counts[class]`.
///
/// Classes of the core are an array, so that counting one costs no search. Rows of extensions are a list of
/// those that occurred, with memory for each when it occurs first; there are as many as extensions have, and
/// as [`ErrorClass::read`] makes.
#[derive(Clone)]
pub struct ErrorCounts {
    core: [u64; CORE],
    /// By name.
    rows: Vec<(&'static ErrorRow, u64)>,
}

impl ErrorCounts {
    /// Returns the classes that occurred: first those of the core in their order, then rows by name.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorClass, u64)> + Clone + '_ {
        let core = ErrorClass::CORE.iter().copied().zip(self.core);
        let rows = self.rows.iter().map(|(row, count)| (ErrorClass::Other(row), *count));
        core.chain(rows).filter(|(_, count)| *count > 0)
    }

    /// Returns the sum over all classes.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Adds the counts of another worker, step or time.
    pub fn merge(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| mine + theirs);
    }

    /// Adds counts that may come from a file, where sums need not have room.
    pub fn merge_saturating(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// Subtracts counts that were added before.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, |mine, theirs| mine - theirs);
    }

    fn combine(&mut self, other: &Self, sum: fn(u64, u64) -> u64) {
        for (mine, theirs) in self.core.iter_mut().zip(other.core) {
            *mine = sum(*mine, theirs);
        }
        for (row, count) in &other.rows {
            let mine = self.row_mut(row);
            *mine = sum(*mine, *count);
        }
    }

    #[inline(never)]
    fn row_mut(&mut self, row: &'static ErrorRow) -> &mut u64 {
        let place = match self.rows.binary_search_by(|(known, _)| known.cmp(&row)) {
            Ok(place) => place,
            Err(place) => {
                self.rows.insert(place, (row, 0));
                place
            }
        };
        &mut self.rows[place].1
    }
}

impl Default for ErrorCounts {
    fn default() -> Self {
        Self { core: [0; CORE], rows: Vec::new() }
    }
}

impl Index<ErrorClass> for ErrorCounts {
    type Output = u64;

    fn index(&self, class: ErrorClass) -> &u64 {
        match (class.index(), class) {
            (Some(index), _) => &self.core[index],
            (None, ErrorClass::Other(row)) => {
                self.rows.iter().find(|(known, _)| *known == row).map_or(&0, |(_, count)| count)
            }
            (None, _) => &0,
        }
    }
}

impl IndexMut<ErrorClass> for ErrorCounts {
    #[inline]
    fn index_mut(&mut self, class: ErrorClass) -> &mut u64 {
        match class {
            ErrorClass::Other(row) => self.row_mut(row),
            class => &mut self.core[class.index().unwrap_or_default()],
        }
    }
}

/// Sums of counts by class.
impl FromIterator<(ErrorClass, u64)> for ErrorCounts {
    fn from_iter<I: IntoIterator<Item = (ErrorClass, u64)>>(counts: I) -> Self {
        let mut all = Self::default();
        for (class, count) in counts {
            all[class] += count;
        }
        all
    }
}

/// A class without a count, and one that was never counted, are the same.
impl PartialEq for ErrorCounts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ErrorCounts {}

impl fmt::Debug for ErrorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(class, count)| (class.name(), count))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BUSY: ErrorRow = ErrorRow { name: "sample_busy", is_answer: true, is_of_server: true };
    static ABSENT: ErrorRow = ErrorRow { name: "sample_absent", is_answer: true, is_of_server: false };

    fn counts(all: &[(ErrorClass, u64)]) -> ErrorCounts {
        all.iter().copied().collect()
    }

    #[test]
    fn every_class_is_counted_apart() {
        let rows = [ErrorClass::Other(&ABSENT), ErrorClass::Other(&BUSY)];
        let all: Vec<ErrorClass> = ErrorClass::CORE.iter().copied().chain(rows).collect();
        let counted = counts(&(1..).zip(&all).map(|(count, class)| (*class, count)).collect::<Vec<_>>());
        for (count, class) in (1..).zip(&all) {
            assert_eq!(counted[*class], count, "{class}");
        }
        assert!(counted.iter().map(|(class, _)| class).eq(all.iter().copied()));
        assert_eq!(counted.total(), (all.len() * (all.len() + 1) / 2) as u64);
    }

    #[test]
    fn a_row_is_one_class_wherever_it_stands() {
        static TWIN: ErrorRow = ErrorRow { name: "sample_busy", is_answer: false, is_of_server: false };
        let twice = counts(&[(ErrorClass::Other(&BUSY), 2), (ErrorClass::Other(&TWIN), 3)]);
        assert_eq!(twice[ErrorClass::Other(&TWIN)], 5);
        assert_eq!(twice.iter().count(), 1);
    }

    #[test]
    fn merging_is_recording_in_one_place_and_subtracting_takes_it_back() {
        let (busy, absent) = (ErrorClass::Other(&BUSY), ErrorClass::Other(&ABSENT));
        let one = counts(&[(ErrorClass::Reset, 1), (busy, 2)]);
        let other = counts(&[(absent, 3), (busy, 4), (ErrorClass::Io, 5)]);
        let whole = counts(&[(ErrorClass::Reset, 1), (ErrorClass::Io, 5), (absent, 3), (busy, 6)]);
        for (mut first, second) in [(one.clone(), &other), (other.clone(), &one)] {
            let before = first.clone();
            first.merge(second);
            assert_eq!(first, whole);
            first.subtract(second);
            assert_eq!(first, before);
        }
        let mut most = counts(&[(busy, u64::MAX)]);
        most.merge_saturating(&other);
        assert_eq!((most[busy], most[absent]), (u64::MAX, 3));
        assert_eq!(format!("{other:?}"), r#"{"io": 5, "sample_absent": 3, "sample_busy": 4}"#);
    }
}
