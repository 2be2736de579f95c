//! A run of unknown length as a bounded number of slices of about equal length.

/// Slices that are kept at most. A run that has more parts than this is held in 15 to 30 of them: enough for
/// the variance between them, few enough that each is long against the time for which samples remember each
/// other.
pub const MOST_SLICES: usize = 30;

/// Something of which two neighbours in time can become one.
pub trait Join {
    /// Adds the part that follows immediately.
    fn join(&mut self, later: Self);
}

/// Keeps at most [`MOST_SLICES`] slices, or [another number](Self::keeping), of the parts that are
/// added, each made of equally many parts but the last.
///
/// Parts come in the order of time and are equally long, the last one and the first one may be shorter. When
/// there is no room for another slice, neighbours are joined, two by two. So the memory is bounded, however
/// long the run is, and only the beginnings of parts are lost.
#[derive(Clone, Debug)]
pub struct SliceKeeper<T> {
    slices: Vec<T>,
    most: usize,
    /// Parts of a whole slice: a power of two.
    parts_per_slice: usize,
    /// Parts of the last slice.
    parts_of_last: usize,
}

impl<T> Default for SliceKeeper<T> {
    fn default() -> Self {
        Self::keeping(MOST_SLICES)
    }
}

impl<T> SliceKeeper<T> {
    /// Keeps at most `most` slices, and at least half as many once there were enough parts.
    /// An odd number is taken as the next even one: neighbours are joined two by two.
    pub const fn keeping(most: usize) -> Self {
        Self { slices: Vec::new(), most: most.next_multiple_of(2), parts_per_slice: 1, parts_of_last: 1 }
    }
}

impl<T: Join> SliceKeeper<T> {
    /// Keeps nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next part.
    pub fn add(&mut self, part: T) {
        if self.parts_of_last < self.parts_per_slice {
            self.parts_of_last += 1;
            self.extend_last(part);
            return;
        }
        if self.slices.len() == self.most {
            self.halve();
        }
        self.slices.push(part);
        self.parts_of_last = 1;
    }

    /// Adds values after the end of the last slice to it. Without a slice they
    /// become the first one.
    pub fn extend_last(&mut self, rest: T) {
        match self.slices.last_mut() {
            Some(last) => last.join(rest),
            None => self.slices.push(rest),
        }
    }

    /// The slices until now, in the order of time.
    pub fn so_far(&self) -> &[T] {
        &self.slices
    }

    /// The number of parts of each slice but the last one, which may have fewer.
    pub const fn parts_per_slice(&self) -> usize {
        self.parts_per_slice
    }

    /// The slices, in the order of time.
    pub fn finish(self) -> Vec<T> {
        self.slices
    }

    fn halve(&mut self) {
        let mut whole = std::mem::take(&mut self.slices).into_iter();
        while let Some(mut slice) = whole.next() {
            if let Some(later) = whole.next() {
                slice.join(later);
            }
            self.slices.push(slice);
        }
        self.parts_per_slice *= 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The numbers of the parts that a slice is made of.
    impl Join for Vec<usize> {
        fn join(&mut self, later: Self) {
            self.extend(later);
        }
    }

    fn sliced(parts: usize) -> Vec<Vec<usize>> {
        let mut keeper = SliceKeeper::new();
        (0..parts).for_each(|part| keeper.add(vec![part]));
        keeper.finish()
    }

    #[test]
    fn neighbours_are_joined_when_there_is_no_room() {
        assert_eq!(sliced(0), Vec::<Vec<usize>>::new());
        assert_eq!(sliced(30).len(), 30);
        let slices = sliced(31);
        assert_eq!((slices.len(), &slices[0], &slices[15]), (16, &vec![0, 1], &vec![30]));
        assert_eq!(sliced(61).last(), Some(&vec![60]));
    }

    #[test]
    fn as_many_are_kept_as_was_asked_for() {
        let mut keeper = SliceKeeper::keeping(3);
        (0..9).for_each(|part| keeper.add(vec![part]));
        assert_eq!(keeper.finish(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8]]);
    }

    #[test]
    fn what_comes_after_the_end_belongs_to_the_last_slice() {
        let mut keeper = SliceKeeper::new();
        keeper.extend_last(vec![7]);
        (0..30).for_each(|part| keeper.add(vec![part]));
        keeper.extend_last(vec![99]);
        let slices = keeper.finish();
        assert_eq!((&slices[0], slices.last()), (&vec![7, 0], Some(&vec![29, 99])));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_slices_are_equally_long(parts in 0_usize..3_000) {
            let slices = sliced(parts);
            prop_assert_eq!(slices.concat(), (0..parts).collect::<Vec<_>>());
            prop_assert!(slices.len() <= MOST_SLICES && (slices.len() >= 15 || parts < 15));
            if let Some((last, whole)) = slices.split_last() {
                prop_assert!(whole.iter().all(|slice| slice.len() == slices[0].len()));
                prop_assert!(last.len() <= slices[0].len());
            }
        }
    }
}
