//! The search for a server's capacity: which rates to try, for how long, and what follows from it.
//!
//! A [`Search`] knows no server and no clock. It says which trial comes next, is told what the trial counted,
//! and ends with an interval: rates below it were shown to hold what was asked for, rates above it were shown
//! not to. The caller carries the trials out.
//!
//! 1. *Ramp*: rates grow geometrically until one breaks.
//! 2. *Bisection* between the highest rate that holds and the lowest that breaks. A rate at which neither is
//!    shown is tried again, each time for as long as before in total, up to a limit; if it stays unclear the
//!    search goes on on both sides of it.
//! 3. *Confirmation*: the highest rate that holds is tried three times as long.
//! 4. *From above*: the same rate is tried right after an overload. A server that recovers slowly, or not
//!    at all, holds less than one that never was overloaded (hysteresis).
//!
//! What was asked for is a set of conditions, each "fewer bad samples than this share" (see
//! [`share`](crate::share)). A decision is made at [`Settings::confidence`] on each side.

use crate::SliceCount;
use crate::share::share_interval;

/// How a search goes about it. Rates are per second, in whatever unit the caller counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Rate of the first trial; above 0.
    pub from: f64,
    /// No rate above this one is tried.
    pub to: f64,
    /// Width of the answer that is aimed at, as a share of its lower end: 0.05 is 5 %.
    pub precision: f64,
    /// The largest bearable share of bad samples of each condition.
    pub limits: Vec<f64>,
    /// Two-sided confidence of one decision.
    pub confidence: f64,
    /// Trials of one rate may be so long in total, in units of the shortest trial; at least 1.
    pub longest: u32,
}

/// Factor between two rates of the ramp.
const GROWTH: f64 = 2.0;
/// How many times longer than all trials of a rate its confirmation is.
const CONFIRMATION: f64 = 3.0;
/// The rate before a trial from above, by the lowest one that breaks: one that is too much, not one that only
/// breaks what was asked for.
const OVERLOAD: f64 = 1.25;
/// Rates below the confirmed one that are tried from above, each lower by the precision.
const DESCENTS: u32 = 3;

impl Settings {
    /// A search from a rate upward for conditions with these limits.
    pub fn new(from: f64, limits: Vec<f64>) -> Self {
        Self { from, to: f64::INFINITY, precision: 0.05, limits, confidence: 0.95, longest: 32 }
    }
}

/// One trial: a run at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The rate.
    pub rate: f64,
    /// How long, in units of the shortest trial.
    pub length: u32,
    /// A rate that is put on the server right before, unmeasured, for as long as a shortest trial.
    pub after: Option<f64>,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that breaks.
    Ramp,
    /// To narrow the interval.
    Bisection,
    /// To be sure of its lower end.
    Confirmation,
    /// To see whether it holds after an overload.
    FromAbove,
}

/// What a trial has shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The generator kept its schedule: for each condition the slices of the trial, in the order of
    /// [`Settings::limits`].
    Measured(Vec<Vec<SliceCount>>),
    /// The server cannot keep up with this rate at all: what is in flight grows without end.
    Overloaded,
    /// The generator could not put this rate on the server: nothing follows for the server.
    NotApplied,
}

/// What is known of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All conditions were shown to hold.
    Holds,
    /// One was shown not to hold.
    Breaks,
    /// Neither was shown.
    Unclear,
    /// The generator could not apply it.
    NotApplied,
}

/// A rate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The rate.
    pub rate: f64,
    /// What is known of it by all its trials, those from above aside.
    pub finding: Finding,
    /// Length of these trials together, as far as they were carried out, in units of the shortest.
    pub length: f64,
    portions: Vec<Vec<SliceCount>>,
    overloaded: bool,
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The highest rate that was shown to hold, with none below it that breaks; `None` if there is none.
    pub low: Option<f64>,
    /// The lowest rate that was shown to break; `None` if there is none.
    pub high: Option<f64>,
    /// Whether the lower end held for the length of the confirmation.
    pub confirmed: bool,
    /// The highest rate, at most the lower end, that holds right after an overload; `None` if none was found,
    /// or the search did not come to it.
    pub from_above: Option<f64>,
    /// Why the search ended.
    pub end: End,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The interval is as narrow as was asked for.
    Narrow,
    /// Rates between its ends were tried for as long as allowed and stayed unclear.
    Unclear,
    /// The highest rate that may be tried does not break.
    Highest,
    /// The generator cannot apply a higher rate.
    Generator,
    /// The first rate breaks, and so do all below it that were tried.
    Lowest,
    /// The caller ended it.
    Stopped,
}

/// A search that is under way. Take [`next`](Self::next), carry it out, [`note`](Self::note) what came of it,
/// until there is no next trial; then ask for the [`answer`](Self::answer).
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// By rate, ascending.
    levels: Vec<Level>,
    confirmed: Option<f64>,
    descents: u32,
    from_above: Option<f64>,
    /// The evidence of trials from above at the rate that is tried now.
    above: Option<(f64, f64, Vec<Vec<SliceCount>>)>,
}

impl Level {
    /// For each condition the slices of its trials.
    pub fn portions(&self) -> &[Vec<SliceCount>] {
        &self.portions
    }
}

impl Search {
    /// A search that has tried nothing yet.
    pub const fn new(settings: Settings) -> Self {
        Self { settings, levels: Vec::new(), confirmed: None, descents: 0, from_above: None, above: None }
    }

    /// How it goes about it.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The rates that were tried, ascending.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// What is known by these slices, one list for each condition.
    pub fn finding(&self, portions: &[Vec<SliceCount>]) -> Finding {
        self.finding_at(portions, self.settings.confidence)
    }

    /// The same at another confidence: a caller who asks again and again while a trial is under way, to end
    /// one whose outcome is plain, has to be stricter.
    pub fn finding_at(&self, portions: &[Vec<SliceCount>], confidence: f64) -> Finding {
        let mut finding = Finding::Holds;
        for (portions, limit) in portions.iter().zip(&self.settings.limits) {
            match share_interval(portions, confidence) {
                Some(share) if share.low > *limit => return Finding::Breaks,
                Some(share) if share.high < *limit => {}
                _ => finding = Finding::Unclear,
            }
        }
        finding
    }

    /// The next trial; `None` when the search is over.
    pub fn next(&self) -> Option<Trial> {
        let plain = |rate, length, purpose| Some(Trial { rate, length, after: None, purpose });
        match self.aim() {
            Aim::Try(rate, purpose) => plain(rate, self.next_length(rate), purpose),
            Aim::End(_) => {
                let low = self.low()?;
                if self.confirmed != Some(low.rate) {
                    return plain(low.rate, units(CONFIRMATION * low.length), Purpose::Confirmation);
                }
                let high = self.high()?.rate * OVERLOAD;
                if self.from_above.is_some() || self.descents > DESCENTS {
                    return None;
                }
                let rate = self.descended(low.rate);
                let length = self.above.as_ref().map_or(1, |(_, length, _)| units(*length));
                Some(Trial { rate, length, after: Some(high), purpose: Purpose::FromAbove })
            }
        }
    }

    /// Takes what a trial has shown, of whose length the share `carried_out`, 1 at most, has passed when it
    /// ended: one that was ended early weighs no more than what there was of it. Tells what is known now of
    /// its rate; for a trial from above, of its rate after an overload.
    pub fn note(&mut self, trial: &Trial, carried_out: f64, outcome: Outcome) -> Finding {
        let length = f64::from(trial.length) * carried_out.clamp(0.0, 1.0);
        match trial.purpose {
            Purpose::FromAbove => self.note_from_above(trial, length, outcome),
            Purpose::Confirmation => {
                // What the shorter trials said counts no more: they were chosen among others.
                let finding = match &outcome {
                    Outcome::Measured(portions) => self.finding(portions),
                    Outcome::Overloaded => Finding::Breaks,
                    Outcome::NotApplied => Finding::NotApplied,
                };
                let level = self.add(trial, length, outcome);
                // The level as a whole decides, but a confirmation that breaks is none.
                if matches!(finding, Finding::Breaks | Finding::NotApplied) {
                    level.finding = finding;
                }
                let known = level.finding;
                if known == Finding::Holds {
                    self.confirmed = Some(trial.rate);
                }
                known
            }
            Purpose::Ramp | Purpose::Bisection => self.add(trial, length, outcome).finding,
        }
    }

    /// What is known so far; `stopped` if the caller ends the search before there is no next trial.
    pub fn answer(&self, stopped: bool) -> Answer {
        let low = self.low().map(|level| level.rate);
        let end = match self.aim() {
            _ if stopped => End::Stopped,
            Aim::End(end) => end,
            Aim::Try(..) => End::Stopped,
        };
        Answer {
            low,
            high: self.high().map(|level| level.rate),
            confirmed: low.is_some() && self.confirmed == low,
            from_above: self.from_above,
            end,
        }
    }

    /// Where the search stands.
    fn aim(&self) -> Aim {
        let Settings { from, .. } = self.settings;
        let Some(high) = self.ceiling() else { return self.ramp() };
        let low = self.low().map(|level| level.rate);
        if self.is_narrow(low, high.rate) {
            return Aim::End(match high.finding {
                Finding::NotApplied => End::Generator,
                _ => End::Narrow,
            });
        }
        let Some(low) = low else {
            // Nothing holds yet: downward in the steps of the ramp, unless there is an unclear one to settle.
            if let Some(unclear) = self.to_settle(0.0, high.rate) {
                return Aim::Try(unclear, Purpose::Bisection);
            }
            let lowest = self.levels.first().map_or(from, |level| level.rate);
            let next = lowest / GROWTH;
            return if next < from / 1_000.0 { Aim::End(End::Lowest) } else { Aim::Try(next, Purpose::Ramp) };
        };
        if let Some(unclear) = self.to_settle(low, high.rate) {
            return Aim::Try(unclear, Purpose::Bisection);
        }
        // Bisect the widest gap that leads away from an end: between an end and the unclear rates next to it.
        let inner: Vec<f64> = self.inside(low, high.rate).map(|level| level.rate).collect();
        let Some((first, last)) = inner.first().zip(inner.last()) else {
            return Aim::Try(between(low, high.rate), Purpose::Bisection);
        };
        let (below, above) = (first / low, high.rate / last);
        let finest = 1.0 + self.settings.precision / 4.0;
        if below.max(above) <= finest {
            return Aim::End(End::Unclear);
        }
        let middle = if below >= above { between(low, *first) } else { between(*last, high.rate) };
        Aim::Try(middle, Purpose::Bisection)
    }

    /// Upward until something breaks. An unclear rate is no obstacle: it is settled when there is a ceiling.
    fn ramp(&self) -> Aim {
        let Settings { from, to, .. } = self.settings;
        let Some(last) = self.levels.last() else { return Aim::Try(from.min(to), Purpose::Ramp) };
        if last.rate < to {
            return Aim::Try((last.rate * GROWTH).min(to), Purpose::Ramp);
        }
        if last.finding == Finding::Unclear && self.may_be_longer(last.length) {
            return Aim::Try(last.rate, Purpose::Bisection);
        }
        Aim::End(End::Highest)
    }

    /// The highest rate that may still be tried again between two others, if there is one.
    fn to_settle(&self, low: f64, high: f64) -> Option<f64> {
        let open = self.inside(low, high).filter(|level| self.may_be_longer(level.length));
        open.last().map(|level| level.rate)
    }

    fn inside(&self, low: f64, high: f64) -> impl Iterator<Item = &Level> {
        self.levels.iter().filter(move |level| level.rate > low && level.rate < high)
    }

    fn is_narrow(&self, low: Option<f64>, high: f64) -> bool {
        low.is_some_and(|low| high / low - 1.0 <= self.settings.precision)
    }

    /// The lowest rate that breaks or could not be applied.
    fn ceiling(&self) -> Option<&Level> {
        self.levels.iter().find(|level| matches!(level.finding, Finding::Breaks | Finding::NotApplied))
    }

    /// The lowest rate that breaks.
    fn high(&self) -> Option<&Level> {
        self.levels.iter().find(|level| level.finding == Finding::Breaks)
    }

    /// The highest rate that holds below the ceiling.
    fn low(&self) -> Option<&Level> {
        let ceiling = self.ceiling().map_or(f64::INFINITY, |level| level.rate);
        self.levels.iter().rev().find(|level| level.rate < ceiling && level.finding == Finding::Holds)
    }

    /// As long as all trials of this rate before: their number grows with the logarithm of their length.
    fn next_length(&self, rate: f64) -> u32 {
        let tried = self.index_of(rate).map_or(0.0, |index| self.levels[index].length);
        units(tried).min(units(f64::from(self.settings.longest) - tried))
    }

    /// Whether trials of this length together may still be followed by another one.
    fn may_be_longer(&self, length: f64) -> bool {
        length < f64::from(self.settings.longest)
    }

    fn index_of(&self, rate: f64) -> Option<usize> {
        self.levels.iter().position(|level| level.rate == rate)
    }

    fn add(&mut self, trial: &Trial, length: f64, outcome: Outcome) -> &mut Level {
        let index = self.index_of(trial.rate).unwrap_or_else(|| {
            let index = self.levels.partition_point(|level| level.rate < trial.rate);
            let portions = vec![Vec::new(); self.settings.limits.len()];
            let level = Level {
                rate: trial.rate,
                finding: Finding::Unclear,
                length: 0.0,
                portions,
                overloaded: false,
            };
            self.levels.insert(index, level);
            index
        });
        let level = &mut self.levels[index];
        level.length += length;
        match outcome {
            Outcome::Measured(portions) => {
                for (mine, new) in level.portions.iter_mut().zip(portions) {
                    mine.extend(new);
                }
            }
            Outcome::Overloaded => level.overloaded = true,
            Outcome::NotApplied => {
                level.finding = Finding::NotApplied;
                return &mut self.levels[index];
            }
        }
        let finding = match level.overloaded {
            true => Finding::Breaks,
            false => self.finding(&self.levels[index].portions),
        };
        let level = &mut self.levels[index];
        level.finding = finding;
        level
    }

    fn note_from_above(&mut self, trial: &Trial, length: f64, outcome: Outcome) -> Finding {
        let (_, before, mut portions) = self.above.take().unwrap_or((trial.rate, 0.0, Vec::new()));
        let length = before + length;
        let finding = match outcome {
            Outcome::Measured(new) => {
                portions.resize(new.len(), Vec::new());
                portions.iter_mut().zip(new).for_each(|(mine, new)| mine.extend(new));
                self.finding(&portions)
            }
            Outcome::Overloaded => Finding::Breaks,
            Outcome::NotApplied => Finding::NotApplied,
        };
        match finding {
            Finding::Holds => self.from_above = Some(trial.rate),
            Finding::Unclear if self.may_be_longer(length) => {
                self.above = Some((trial.rate, length, portions));
            }
            _ => self.descents += 1,
        }
        finding
    }

    /// The rate to try from above after the descents so far.
    fn descended(&self, rate: f64) -> f64 {
        (0..self.descents).fold(rate, |rate, _| rate / (1.0 + self.settings.precision))
    }
}

/// A length in whole units of the shortest trial, 1 at least.
fn units(length: f64) -> u32 {
    (length.round() as u32).max(1)
}

/// The geometric mean of two rates, to four digits if that still lies between them: people will read it.
fn between(low: f64, high: f64) -> f64 {
    let mean = (low * high).sqrt();
    let unit = 10_f64.powf(mean.log10().floor() - 3.0);
    let round = (mean / unit).round() * unit;
    if low < round && round < high { round } else { mean }
}

/// What a search wants to do next.
enum Aim {
    Try(f64, Purpose),
    End(End),
}
