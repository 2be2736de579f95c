//! Rates whose own finding and the answer of the whole search differ, and why.

use super::{Answer, Finding, Level, PLAIN, SHORTEST_HOLD, Search};

/// Reason why a rate is not the end of the interval that its finding suggests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Held for less than this time, in units of the shortest trial: a queue near its capacity may have no
    /// burst of bad samples for longer.
    TooShort(f64),
    /// Held at the confidence of the search, and not at the one that counts next to the capacity.
    NotSure,
    /// Held, and this lower rate breaks.
    LowerBreaks(f64),
    /// Broke in a trial, and not in a later one.
    Disputed,
    /// All trials together put the capacity on the other side.
    Outvoted,
}

impl Doubt {
    /// Returns `true` if the rate has not been shown to hold by the rule for rates next to the capacity.
    pub const fn is_unproven(self) -> bool {
        matches!(self, Self::TooShort(_) | Self::NotSure)
    }
}

impl Search {
    /// The reason why a rate that holds lies above the lower end of an answer, or one that breaks below its
    /// upper end; `None` if it does not.
    pub fn doubt(&self, level: &Level, answer: &Answer) -> Option<Doubt> {
        match level.finding {
            Finding::Holds if answer.low.is_none_or(|low| low < level.rate) => Some(self.why_not_low(level)),
            Finding::Breaks if answer.high.is_none_or(|high| level.rate < high) => {
                Some(if level.disputed { Doubt::Disputed } else { Doubt::Outvoted })
            }
            _ => None,
        }
    }

    fn why_not_low(&self, level: &Level) -> Doubt {
        if !self.holds_long(level) {
            return Doubt::TooShort(SHORTEST_HOLD * f64::from(self.settings.scale(level.rate)));
        }
        if self.finding_at(&level.portions, PLAIN) != Finding::Holds {
            return Doubt::NotSure;
        }
        let lower = self.levels.iter().find(|lower| lower.rate < level.rate && self.is_breaking(lower));
        lower.map_or(Doubt::Outvoted, |lower| Doubt::LowerBreaks(lower.rate))
    }
}
