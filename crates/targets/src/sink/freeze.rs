//! The timed freezes of a sink (T3).

use plimsoll_core::Nanos;

use super::options::Freeze;

/// The freezes on the driver's clock, in order, those that touch merged into one.
#[derive(Clone, Debug)]
pub(crate) struct Freezes {
    /// Begin and end, the latest first.
    ahead: Vec<(Nanos, Nanos)>,
}

impl Freezes {
    /// The freezes of a sink that started at `start`.
    pub(crate) fn new(freezes: &[Freeze], start: Nanos) -> Self {
        let mut sorted: Vec<_> = freezes.iter().map(|f| (start + f.at, start + f.at + f.length)).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(Nanos, Nanos)> = Vec::new();
        for (begin, end) in sorted {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        merged.reverse();
        Self { ahead: merged }
    }

    /// When the next freeze begins, or the present one began; never if there is none.
    pub(crate) fn next(&self) -> Nanos {
        self.ahead.last().map_or(Nanos::MAX, |freeze| freeze.0)
    }

    /// The end of the freeze that `now` lies in. Freezes that are over by `now` are forgotten.
    pub(crate) fn until(&mut self, now: Nanos) -> Option<Nanos> {
        while let Some(&(begin, end)) = self.ahead.last() {
            if now < begin {
                return None;
            }
            if now < end {
                return Some(end);
            }
            self.ahead.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freezes_are_met_in_order_and_merged() {
        let freeze = |at, length| Freeze { at: Nanos(at), length: Nanos(length) };
        let mut freezes = Freezes::new(&[freeze(50, 10), freeze(10, 5), freeze(12, 8)], Nanos(100));
        assert_eq!(freezes.next(), Nanos(110));
        assert_eq!(freezes.until(Nanos(109)), None);
        assert_eq!(freezes.until(Nanos(110)), Some(Nanos(120)));
        assert_eq!(freezes.until(Nanos(119)), Some(Nanos(120)));
        assert_eq!(freezes.until(Nanos(120)), None);
        assert_eq!(freezes.next(), Nanos(150));
        assert_eq!(freezes.until(Nanos(160)), None);
        assert_eq!(freezes.next(), Nanos::MAX);
    }
}
