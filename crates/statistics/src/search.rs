//! The search for a server's capacity: the rates to try, the lengths of trials, and the conclusions.
//!
//! A [`Search`] knows no server and no clock. It names the next trial, takes the counts of the
//! trial, and ends with an interval of rates that holds the capacity, the rate from which on a condition
//! breaks. The caller carries the trials out.
//!
//! 1. *Ramp*: rates grow fourfold in short trials until one breaks.
//! 2. *Bisection* in short trials, until the capacity is known to a few percent. A rate that broke early is
//!    tried again once a lower one holds, and once it was last tried long ago: a server that was only
//!    starting has become faster by then.
//! 3. *Estimation*: trials at the likeliest capacity and beside it, until the interval of where the share of
//!    bad samples [crosses](crate::crossing()) its limit is as narrow as was asked for. Rates are not decided
//!    one by one: all of them are evidence of the same capacity.
//! 4. *Confirmation*: the lower end is tried once more.
//! 5. *From above*: the same rate is tried right after an overload. A server that recovers slowly, or not
//!    at all, holds less than one that never was overloaded (hysteresis).
//!
//! The goal is a set of conditions, each "fewer bad samples than this share" (see [`share`](crate::share)).

use crate::SliceCount;
use crate::crossing::{Crossing, RatedBatches, crossing, log_odds};
use crate::share::share_interval;
use crate::spread::join;

mod hindsight;
mod standing;

pub use self::standing::Doubt;

/// Parameters of a search. Rates are per second, in the caller's unit.
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
    /// Two-sided confidence of the interval, and of what is known of one rate.
    pub confidence: f64,
    /// The estimation may take this long in total, in trials of the shortest length that has
    /// enough samples; at least 1.
    pub longest: u32,
    /// Length of the shortest trial in the unit of time of the rates: with them, how many samples it has.
    pub unit: f64,
    /// Unmeasured time before a shortest trial, as a share of its length.
    pub lead: f64,
    /// Samples that each condition has of one arrival, at least 1; where it says nothing, 1.
    pub samples: Vec<f64>,
    /// The rate of which alone it is asked whether it holds: the search ends once it is shown not to.
    pub asked: Option<f64>,
}

/// Factor between two rates of the ramp.
const GROWTH: f64 = 4.0;
/// Rates this much apart, in units of the precision (logarithms), are near enough to begin the estimation.
const NEAR: f64 = 2.6;
/// Trials within this distance of the likeliest capacity count for its estimate, in the same unit. Over wider
/// ranges the log-odds need not be linear.
const WINDOW: f64 = 2.5;
/// Rates within this distance of another one are that one, in the same unit.
const SAME: f64 = 0.3;
/// The rate beside the likeliest capacity that shows how steep the share is: above it, where bad samples are
/// frequent, or below it where a rate above would break down.
const ASIDE_ABOVE: f64 = 1.75;
/// See [`ASIDE_ABOVE`].
const ASIDE_BELOW: f64 = 0.9;
/// Rates beyond this distance are aside.
const ASIDE: f64 = 0.8;
/// Time aside above, as a share of the time at the likeliest capacity. The rest is best spent there.
const SHARE_ABOVE: f64 = 0.15;
/// Time aside below. Less is known from as much time there.
const SHARE_BELOW: f64 = 0.4;
/// Length of a trial of the estimation. A short lead-in before each should not take most of the time.
const BLOCK: u32 = 5;
/// Length of a trial of the estimation at least, where there is no time for a longer one.
const SHORTEST_BLOCK: u32 = 3;
/// Length of a trial below the estimate for a lower end, where there is no time for more.
const FLOOR: u32 = 2;
/// Such trials of a search, each at a rate lower than the one before by [`FAR`].
const FLOORS: usize = 2;
/// Part of the time of a search that is kept for the confirmation at most.
const KEPT: f64 = 1.0 / 3.0;
/// Length of a trial aside above.
const BLOCK_ABOVE: u32 = 3;
/// Samples of a trial of the shortest length that may be bad by the strictest limit.
const BAD_SAMPLES: f64 = 15.0;
/// A trial of the shortest length takes no more units than this: waiting for more samples would take too
/// long.
const LARGEST_SCALE: u32 = 1_000;
/// The estimation takes as long at least. An interval that is examined after every trial is narrow by
/// chance sooner or later: the dispersion of few bursts of bad samples is underestimated more often than not.
const SHORTEST_ESTIMATION: f64 = 60.0;
/// A rate has to hold for this time to be the lower end by itself, next to one that breaks down or where the
/// estimation was cut short.
const SHORTEST_HOLD: f64 = 10.0;
/// Log-odds beyond those of the limit from which on a rate is no longer near the capacity: at a limit of 1 %
/// these are shares above 30 %.
const BREAKDOWN: f64 = 3.75;
/// Log-odds beyond the limit's that are taken at most from one rate when the next one is guessed.
const HEARSAY: f64 = 2.0;
/// Confidence of the interval of an estimation that was cut short.
const CUT_SHORT: f64 = 0.98;
/// Largest distance of an end of the estimate from the centre, in widths of the precision.
const REACH: f64 = 3.0;
/// Largest such distance where the next rate that was tried says even less.
const FARTHEST_REACH: f64 = 10.0;
/// Confidence at which a rate counts as the end that holds, by its own trials.
const PLAIN: f64 = 0.999;
/// A rate that holds counts as an end without such confidence, if the capacity is at least this multiple of
/// it.
const FAR: f64 = 1.2;
/// See [`FAR`], for a rate that was tried because it is that far from the estimate of the time.
const FLOOR_FAR: f64 = 1.1;
/// Length of the confirmation and of a trial from above.
const CONFIRMATION: u32 = 3;
/// Confirmations that break, or have more bad samples than may be, after which the lower end is not
/// confirmed.
const REFUSALS: u32 = 2;
/// The rate before a trial from above, by the upper end: a real overload, not a rate that only breaks a
/// condition.
const OVERLOAD: f64 = 1.5;
/// Rates below the confirmed one that are tried from above, each lower by the precision.
const DESCENTS: u32 = 3;
/// Trials in a row that the generator could not carry out, after which it is the limit.
const ACCIDENTS: u32 = 3;
/// Conditions whose numbers of samples differ by no more than this factor take as many: the first is named.
const ALIKE: f64 = 1.01;
/// Trials in which a rate that was asked for has to break for that to be the answer.
const SURE_TRIALS: u32 = 2;
/// Times that a rate which the generator could not apply is tried again, before it counts as out of reach.
const SECOND_THOUGHTS: u32 = 2;

impl Settings {
    /// A search from a rate upward for conditions with these limits.
    pub const fn new(from: f64, limits: Vec<f64>) -> Self {
        Self {
            from,
            to: f64::INFINITY,
            precision: 0.05,
            limits,
            confidence: 0.95,
            longest: 300,
            unit: 2.0,
            lead: 0.5,
            samples: Vec::new(),
            asked: None,
        }
    }

    /// The condition that takes the most arrivals to be judged, by its number, and how many of them a trial
    /// of the shortest length has to have; `None` without conditions.
    pub fn strictest(&self) -> Option<(usize, f64)> {
        let samples = self.samples.iter().copied().chain(std::iter::repeat(1.0));
        let needed = self.limits.iter().zip(samples).map(|(limit, samples)| BAD_SAMPLES / (limit * samples));
        needed.enumerate().reduce(|most, other| if other.1 > most.1 * ALIKE { other } else { most })
    }

    /// Returns the least number of units of a trial: as many as it takes for enough samples to be bad by the
    /// strictest limit. A server that serves a tenth needs ten times as long to come to rest, too.
    fn scale(&self, rate: f64) -> u32 {
        let arrivals = self.strictest().map_or(BAD_SAMPLES, |(_, arrivals)| arrivals);
        (arrivals / (rate * self.unit)).ceil().clamp(1.0, f64::from(LARGEST_SCALE)) as u32
    }

    /// The precision as a distance of logarithms of rates.
    fn distance(&self) -> f64 {
        (1.0 + self.precision).ln()
    }
}

/// One trial: a run at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The rate.
    pub rate: f64,
    /// Length, in units of the shortest trial.
    pub length: u32,
    /// Least number of units of a trial at this rate, for enough samples. The unmeasured time before the
    /// trial should be longer by the same factor.
    pub scale: u32,
    /// A rate that is put on the server right before, unmeasured, for as long as a shortest trial.
    pub after: Option<f64>,
    /// Purpose of the trial.
    pub purpose: Purpose,
}

/// Purposes of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that breaks.
    Ramp,
    /// To come near the capacity.
    Bisection,
    /// To estimate it.
    Estimation,
    /// To be sure of its lower end.
    Confirmation,
    /// To see whether it holds after an overload.
    FromAbove,
}

impl Purpose {
    /// Returns true for the trials that follow the estimation and confirm its lower end.
    pub const fn is_closing(self) -> bool {
        matches!(self, Self::Confirmation | Self::FromAbove)
    }
}
/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The generator kept its schedule: for each condition the slices of the trial, in the order of
    /// [`Settings::limits`].
    Measured(Vec<Vec<SliceCount>>),
    /// The server cannot keep up with this rate at all: the requests in flight grow without end.
    Overloaded,
    /// The generator could not put this rate on the server: nothing follows for the server.
    NotApplied,
}

/// The state of knowledge of a rate.
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
    /// The finding of all its trials, those from above aside.
    pub finding: Finding,
    /// Length of these trials together, as far as they were carried out, in units of the shortest.
    pub length: f64,
    portions: Vec<Vec<SliceCount>>,
    /// The counts of the estimation's trials for each condition, in batches of a trial of the shortest length
    /// that has enough samples.
    batches: Vec<Vec<SliceCount>>,
    /// The server could not keep up in its last trial.
    overloaded: bool,
    /// The samples of its last trial, by condition, and what they show by themselves.
    latest: (Vec<SliceCount>, Finding),
    /// Earlier trials were worse than the last one, which did not break a condition.
    disputed: bool,
    /// The number of trials.
    trials: u32,
    /// When the last of them ended, in units of the shortest trial since the begin of the search.
    tried_at: f64,
}

/// The end of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The lower end: the capacity is above it; `None` if nothing was shown to hold.
    pub low: Option<f64>,
    /// The upper end: the capacity is below it; `None` if nothing was shown to break.
    pub high: Option<f64>,
    /// `true` if the lower end was tried once more and did not break.
    pub confirmed: bool,
    /// The highest rate, at most the lower end, that did not break right after an overload; `None` if none
    /// was found, or the search did not get there.
    pub from_above: Option<f64>,
    /// Reason why the search ended.
    pub end: End,
}

/// Reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The interval is as narrow as was asked for.
    Narrow,
    /// The estimation took as long as allowed, or [`conclude`](Search::conclude) ended it.
    Unclear,
    /// The highest rate that may be tried does not break.
    Highest,
    /// The generator cannot apply a higher rate.
    Generator,
    /// The first rate breaks, and so do all below it that were tried.
    Lowest,
    /// The rate that was [asked for](Settings::asked) was shown not to hold.
    Answered,
    /// The caller ended it.
    Stopped,
}

/// Result of the estimation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decision {
    low: Option<f64>,
    high: Option<f64>,
    end: End,
}

/// Next action of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    Try(Trial),
    End(End),
}

/// The estimate of the capacity by all levels together, as far as they differ.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// The logarithm of the likeliest rate, if there are rates on both sides of it.
    guess: f64,
    /// The logarithm of the highest rate below it.
    below: Option<f64>,
    /// The logarithm of the lowest rate above it.
    above: Option<f64>,
}

/// A search that is under way. Take [`next`](Self::next), carry it out, [`note`](Self::note) its outcome,
/// until there is no next trial; then ask for the [`answer`](Self::answer).
#[derive(Clone, Debug)]
pub struct Search {
    settings: Settings,
    /// By rate, ascending.
    levels: Vec<Level>,
    /// The logarithm of the likeliest capacity, once the estimation has begun.
    centre: Option<f64>,
    /// The lowest rate that the generator could not apply, above all that it could, and how often it was
    /// tried.
    out_of_reach: Option<(f64, u32)>,
    /// Trials that were not applied, in a row.
    accidents: u32,
    /// Both ends and why, once they are as narrow as was asked for or the time is over.
    decided: Option<Decision>,
    confirmed: Option<f64>,
    /// The rate whose confirmations are summed up, and their samples by condition.
    confirming: (f64, Vec<SliceCount>),
    refusals: u32,
    descents: u32,
    from_above: Option<f64>,
    /// Time of all trials so far, in units of the shortest.
    passed: f64,
    /// `true` if the search has gone below all rates that it had tried, and none of these was tried since.
    descended: bool,
    unfitting: Option<[f64; 2]>,
    /// Rates that were tried for a lower end where there was no time for the estimation.
    floors: Vec<f64>,
    aim: Aim,
}

impl Level {
    /// For each condition the slices of its trials.
    pub fn portions(&self) -> &[Vec<SliceCount>] {
        &self.portions
    }

    fn x(&self) -> f64 {
        self.rate.ln()
    }

    /// Samples of its last trial, of the condition that has most of them.
    fn samples(&self) -> u64 {
        self.latest.0.iter().map(|sum| sum.count).max().unwrap_or(0)
    }

    /// The length of its trials of the estimation, in trials of the shortest length that has enough samples.
    fn estimated(&self) -> f64 {
        self.batches.first().map_or(0.0, |batches| batches.len() as f64)
    }
}

impl Search {
    /// A search that has tried nothing yet.
    pub fn new(settings: Settings) -> Self {
        let first = Trial {
            rate: settings.from.min(settings.to),
            length: 1,
            scale: 1,
            after: None,
            purpose: Purpose::Ramp,
        };
        Self {
            settings,
            levels: Vec::new(),
            centre: None,
            out_of_reach: None,
            accidents: 0,
            decided: None,
            confirmed: None,
            confirming: (0.0, Vec::new()),
            refusals: 0,
            descents: 0,
            from_above: None,
            passed: 0.0,
            descended: false,
            unfitting: None,
            floors: Vec::new(),
            aim: Aim::Try(first),
        }
    }

    /// Returns the parameters of the search.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The rates that were tried, ascending.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the finding from these slices, one list for each condition.
    pub fn finding(&self, portions: &[Vec<SliceCount>]) -> Finding {
        self.finding_at(portions, self.settings.confidence)
    }

    /// Returns the same at another confidence.
    fn finding_at(&self, portions: &[Vec<SliceCount>], confidence: f64) -> Finding {
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

    /// Returns `true` if a trial with these counts so far may end before its time. The `confidence` has to be
    /// strict enough for a question that is asked after every slice. Trials on the way to the capacity end
    /// once they break. Trials that estimate it end only when they break down, since to stop at a burst of
    /// bad samples, and never at their absence, would bend the estimate.
    pub fn is_clear(&self, trial: &Trial, portions: &[Vec<SliceCount>], confidence: f64) -> bool {
        self.finding_at(portions, confidence) == Finding::Breaks
            && (matches!(trial.purpose, Purpose::Ramp | Purpose::Bisection) || self.breaks_down(portions))
    }

    /// The next trial of a search that has this much time left of `most`, both in units; `None` if it is
    /// over, or there is no time for another one.
    ///
    /// Time is kept for the confirmation, but no more than a part of `most`. Trials of the estimation and
    /// after it are shorter where less is left than they would take. Where the estimation has to end without
    /// a lower end near it, a lower rate is tried, to have one.
    pub fn next_within(&mut self, left: f64, most: f64) -> Option<Trial> {
        while let Aim::Try(trial) = self.aim {
            // As long as nothing breaks there is nothing to confirm.
            let breaks = self.levels.iter().any(|level| self.is_breaking(level));
            let is_free = trial.purpose.is_closing() || !breaks;
            let kept = if is_free { 0.0 } else { self.closing_time().min(KEPT * most) };
            let wanted = trial.length / trial.scale;
            let fewest = if trial.purpose == Purpose::Estimation { wanted.min(SHORTEST_BLOCK) } else { 1 };
            if let Some(shorter) = self.shortened(trial, left - kept, fewest) {
                return Some(shorter);
            }
            if let Some(floor) = self.floor(left) {
                self.floors.push(floor.rate);
                return Some(floor);
            }
            // Without a lower end there is nothing to confirm.
            let spare = if self.ends(true).0.is_none() { left } else { left - kept };
            if let Some(hurried) = self.hurried(trial, spare) {
                return Some(hurried);
            }
            self.unfitting.get_or_insert([self.time_of(trial, fewest), kept]);
            if trial.purpose.is_closing() {
                self.end();
                return None;
            }
            self.conclude();
        }
        None
    }

    /// Time of a trial of so many shortest lengths that have enough samples, with what comes before it.
    fn time_of(&self, trial: Trial, lengths: u32) -> f64 {
        let before = if trial.after.is_some() { 1.0 } else { 0.0 };
        (self.settings.lead + before + f64::from(lengths)) * f64::from(trial.scale)
    }

    /// The trial as long as there is time for, in whole lengths that have enough samples; `None` if these are
    /// less than `fewest`.
    fn shortened(&self, trial: Trial, left: f64, fewest: u32) -> Option<Trial> {
        let lengths = (fewest..=trial.length / trial.scale).rev();
        // Times are sums of parts of a second.
        let length = lengths.into_iter().find(|lengths| self.time_of(trial, *lengths) <= left + 1e-6)?;
        Some(Trial { length: length * trial.scale, ..trial })
    }

    /// The trial with as many samples as there is time for, while the capacity is not being estimated: that a
    /// rate breaks takes fewer of them than that it holds, and what stays unclear is no end. `None` if there
    /// is no time for one of the shortest length.
    fn hurried(&self, trial: Trial, left: f64) -> Option<Trial> {
        let is_estimated = self.levels.iter().any(|level| level.estimated() > 0.0);
        if trial.purpose.is_closing() || is_estimated {
            return None;
        }
        let mut shorter = (1..trial.scale).rev().map(|scale| Trial {
            scale,
            length: scale,
            purpose: Purpose::Bisection,
            ..trial
        });
        shorter.find(|trial| self.time_of(*trial, 1) <= left + 1e-6)
    }

    /// A trial below the estimate, for the rate to be the lower end, if none that was tried near it can be,
    /// and there is time.
    fn floor(&self, left: f64) -> Option<Trial> {
        if self.floors.len() >= FLOORS || self.decided.is_some() {
            return None;
        }
        let breaks = self.levels.iter().find(|level| self.is_breaking(level))?;
        let most = self.around().guess.min(breaks.x());
        let below = (self.floors.len() + 1) as f64 * FAR.ln() + SAME * self.settings.distance();
        let rate = rounded(most - below, f64::NEG_INFINITY, most);
        let (low, _) = self.ends(true);
        let is_near = |low: f64| low.ln() > rate.ln() - SAME * self.settings.distance();
        if low.is_some_and(is_near) {
            return None;
        }
        let Aim::Try(trial) = self.attempt(rate, FLOOR, Purpose::Bisection) else { return None };
        // A lower end that there is should be confirmed in any case.
        let kept = if low.is_some() { self.time_of(trial, 1) } else { 0.0 };
        self.shortened(trial, left - kept, 1)
    }

    /// The time that the first trial would have taken for which there was none, and the time that was kept
    /// for the confirmation, in units; `None` if there was time for all.
    pub const fn unfitting(&self) -> Option<[f64; 2]> {
        self.unfitting
    }

    /// The next trial; `None` when the search is over.
    pub const fn next(&self) -> Option<Trial> {
        match self.aim {
            Aim::Try(trial) => Some(trial),
            Aim::End(_) => None,
        }
    }

    /// Ends the estimation with the present knowledge, since there is no time for more: the confirmation
    /// follows. Its ends are those of a stricter interval, because the dispersion of few bursts of bad
    /// samples is mostly underestimated.
    pub fn conclude(&mut self) {
        if self.decided.is_none() {
            let (low, high) = self.ends(true);
            self.aim = self.decide(low, high, End::Unclear);
        }
    }

    /// Ends a search in which nothing was shown to hold, and of which the caller knows that no lower rate
    /// can.
    pub fn give_up(&mut self) {
        if self.decided.is_none() {
            self.aim = Aim::End(End::Lowest);
        }
    }

    /// Ends the search, even if something has not been confirmed.
    pub fn end(&mut self) {
        self.conclude();
        if let (Aim::Try(_), Some(decided)) = (self.aim, self.decided) {
            self.aim = Aim::End(decided.end);
        }
        self.give_up_contradicted();
    }

    /// Replaces a lower end that its own trials contradict, and for which there is no time or no trial left:
    /// by the highest rate below it that was shown to hold, or by none.
    fn give_up_contradicted(&mut self) {
        let Some(decided) = self.decided else { return };
        let Some(low) = decided.low.filter(|low| self.refusals > 0 && self.confirmed != Some(*low)) else {
            return;
        };
        let lower = self.levels.iter().rev().find(|level| {
            level.rate < low && level.finding == Finding::Holds && !self.breaks_below(level.rate)
        });
        self.decided = Some(Decision { low: lower.map(|level| level.rate), ..decided });
    }

    fn breaks_below(&self, rate: f64) -> bool {
        self.levels.iter().any(|level| level.rate < rate && self.is_breaking(level))
    }

    /// Time that the confirmation and the trial from above take, in units.
    fn closing_time(&self) -> f64 {
        let breaks = self.levels.iter().find(|level| self.is_breaking(level));
        let rate = self.centre.map(f64::exp).or(breaks.map(|level| level.rate)).unwrap_or(f64::INFINITY);
        let trials = f64::from(2 * CONFIRMATION + 1) + 2.0 * self.settings.lead;
        trials * f64::from(self.settings.scale(rate))
    }

    /// Takes the outcome of a trial, of whose length the share `carried_out`, 1 at most, has passed when it
    /// ended: a trial that was ended early weighs less. Returns the present finding for its rate; for a trial
    /// from above, for its rate after an overload.
    pub fn note(&mut self, trial: &Trial, carried_out: f64, outcome: Outcome) -> Finding {
        let length = f64::from(trial.length) * carried_out.clamp(0.0, 1.0);
        self.passed += self.time_of(*trial, 0) + length;
        let finding = self.take(trial, length, outcome);
        // What held the generator up once may be over.
        let is_first_accident = finding == Finding::NotApplied && self.accidents == 1;
        self.aim = if is_first_accident { Aim::Try(*trial) } else { self.next_aim() };
        finding
    }

    fn take(&mut self, trial: &Trial, length: f64, outcome: Outcome) -> Finding {
        if outcome == Outcome::NotApplied {
            self.accidents += 1;
            let is_highest = self.levels.last().is_none_or(|level| level.rate < trial.rate);
            if is_highest && trial.after.is_none() {
                self.out_of_reach = match self.out_of_reach {
                    Some((rate, times)) if rate == trial.rate => Some((rate, times + 1)),
                    Some(lower) if lower.0 < trial.rate => Some(lower),
                    _ => Some((trial.rate, 1)),
                };
            }
            return Finding::NotApplied;
        }
        self.accidents = 0;
        self.out_of_reach = self.out_of_reach.filter(|(rate, _)| *rate > trial.rate);
        let own = self.own_finding(&outcome);
        match trial.purpose {
            Purpose::FromAbove => {
                match own {
                    Finding::Breaks => self.descents += 1,
                    _ => self.from_above = Some(trial.rate),
                }
                return own;
            }
            // Trials at other rates have led to this lower end: its own trial must not contradict them.
            Purpose::Confirmation if own == Finding::Breaks => {
                self.refusals += 1;
                if self.refusals < REFUSALS {
                    self.decided = None;
                }
            }
            // Evidence of the capacity as any other, if there is time; else one more trial, which counts
            // together with this one.
            Purpose::Confirmation if self.contradicts(trial.rate, &outcome) => {
                self.refusals += 1;
                let has_time = self.decided.is_some_and(|decided| decided.end == End::Narrow);
                if self.refusals < REFUSALS && has_time {
                    self.decided = None;
                }
            }
            Purpose::Confirmation => self.confirmed = Some(trial.rate),
            Purpose::Ramp | Purpose::Bisection | Purpose::Estimation => {}
        }
        self.add(trial, length, outcome)
    }

    /// The finding of a trial by itself.
    fn own_finding(&self, outcome: &Outcome) -> Finding {
        match outcome {
            Outcome::Measured(portions) => self.finding(portions),
            Outcome::Overloaded => Finding::Breaks,
            Outcome::NotApplied => Finding::NotApplied,
        }
    }

    /// The lowest rate, at most the one that was asked for, that broke in its only trial: once more, and it
    /// is the answer.
    fn doubted_answer(&self) -> Option<f64> {
        let asked = self.settings.asked?;
        let mut tried = self.levels.iter().filter(|level| level.rate <= asked);
        tried.find(|level| self.may_be_accident(level)).map(|level| level.rate)
    }

    /// The lowest rate, at most the one that was asked for, that was shown to break in two trials at least,
    /// the last of them included, and beyond any doubt.
    fn refuted(&self) -> Option<f64> {
        let asked = self.settings.asked?;
        let is_sure = |level: &&Level| {
            level.trials >= SURE_TRIALS
                && level.latest.1 == Finding::Breaks
                && !self.holds_above(level.rate)
                && (self.is_beyond(level) || self.finding_at(&level.portions, PLAIN) == Finding::Breaks)
        };
        self.levels.iter().filter(|level| level.rate <= asked).find(is_sure).map(|level| level.rate)
    }

    /// Returns `true` if more samples are bad in the confirmations of this rate, with this one, than may be,
    /// by whatever margin.
    fn contradicts(&mut self, rate: f64, outcome: &Outcome) -> bool {
        let Outcome::Measured(portions) = outcome else { return false };
        if self.confirming.0 != rate {
            self.confirming = (rate, vec![SliceCount { count: 0, marked: 0 }; portions.len()]);
        }
        let sums = &mut self.confirming.1;
        sums.iter_mut().zip(portions).for_each(|(sum, slices)| sum.merge(SliceCount::sum(slices)));
        let mut all = sums.iter().zip(&self.settings.limits);
        all.any(|(SliceCount { count, marked }, limit)| *marked as f64 > *limit * *count as f64)
    }

    /// Returns the answer so far. Set `stopped` if the caller ends the search while there still is a next
    /// trial.
    pub fn answer(&self, stopped: bool) -> Answer {
        let (low, high) =
            self.decided.map_or_else(|| self.ends(false), |decided| (decided.low, decided.high));
        Answer {
            low,
            high,
            confirmed: low.is_some() && self.confirmed == low,
            from_above: self.from_above,
            end: match self.aim {
                Aim::End(end) if !stopped => end,
                _ => End::Stopped,
            },
        }
    }

    /// Decides on the next action from all trials so far.
    fn next_aim(&mut self) -> Aim {
        if self.accidents >= ACCIDENTS {
            return Aim::End(End::Generator);
        }
        if let Some(decided) = self.decided {
            return self.after(decided);
        }
        if let Some(high) = self.refuted() {
            let (low, _) = self.ends(true);
            self.decided = Some(Decision { low, high: Some(high), end: End::Answered });
            return Aim::End(End::Answered);
        }
        if let Some(doubted) = self.doubted_answer() {
            return self.ramp(doubted);
        }
        if self.levels.is_empty() {
            return self.upward();
        }
        let Around { guess, below, above } = self.around();
        match (below, above) {
            (None, _) => {
                let highest = self.levels.last().map_or(0.0, |level| level.rate);
                if let Some(asked) = self.settings.asked.filter(|asked| highest < *asked) {
                    return self.ramp(asked);
                }
                if let Some(rate) = self.past_above_a_short_one() {
                    self.descended = false;
                    return self.ramp(rate);
                }
                if let Some(again) = self.before_going_down() {
                    return again;
                }
                let next = self.levels[0].rate / GROWTH;
                if next < self.settings.from / 1_000.0 {
                    return Aim::End(End::Lowest);
                }
                self.descended = true;
                self.ramp(next)
            }
            (Some(_), None) => self.upward(),
            (Some(below), Some(above)) if self.centre.is_none() => {
                let distance = self.settings.distance();
                let upper = self.levels.iter().find(|level| level.x() == above);
                let mut past = self.levels.iter().filter(|level| level.x() >= above);
                if let Some(rate) = past.find(|level| self.may_be_past(level)).map(|level| level.rate) {
                    self.descended = false;
                    return self.ramp(rate);
                }
                let upper =
                    upper.filter(|level| self.may_be_accident(level)).map(|level| (level.rate, level.length));
                // One short trial has ended the ramp, soon if the server is overloaded.
                if let Some((rate, ..=1.0)) = upper {
                    return self.ramp(rate);
                }
                let gap = above - below;
                if gap <= NEAR * distance {
                    // A single time may be an accident.
                    if let Some((rate, 1..=SECOND_THOUGHTS)) = self.out_of_reach
                        && rate.ln() <= above
                    {
                        return self.attempt(rate, 1, Purpose::Bisection);
                    }
                    if let Some((rate, _)) = upper {
                        return self.attempt(rate, 1, Purpose::Bisection);
                    }
                    self.centre = Some(guess);
                    return self.estimate(guess);
                }
                // Not next to either end, however sure the guess: shares there may be due to chance.
                let margin = 0.25 * gap.min(8.0 * distance);
                let rate = rounded(guess.clamp(below + margin, above - margin), below, above);
                self.attempt(rate, 1, Purpose::Bisection)
            }
            (Some(_), Some(_)) => self.estimate(guess),
        }
    }

    /// The next trial of the estimation, or the one after it; `guess` is the present estimate of the
    /// capacity's logarithm.
    fn estimate(&mut self, guess: f64) -> Aim {
        let distance = self.settings.distance();
        let mut centre = self.centre.unwrap_or(guess);
        let measured: f64 = self.levels.iter().map(Level::estimated).sum();
        if let Some((low, high)) = self.hard_ends() {
            let gap = high.ln() - low.ln();
            // A rate that the generator cannot reach says nothing about the capacity: no trial narrows that
            // end.
            if self.reach() == Some(high) && gap <= NEAR * distance {
                return self.decide(Some(low), None, End::Generator);
            }
            if gap <= distance * (1.0 + 1e-9) {
                return self.decide(Some(low), Some(high), End::Narrow);
            }
        }
        if let Some(crossing) = self.crossing(centre, self.settings.confidence, REACH) {
            if let (Some(low), Some(high)) = (crossing.low, crossing.high)
                && measured >= SHORTEST_ESTIMATION
                && (high / low).ln() <= distance
            {
                return self.decide(Some(low), Some(high), End::Narrow);
            }
            centre = crossing.estimate.ln().clamp(centre - distance, centre + distance);
            centre = centre.clamp(guess - 3.0 * distance, guess + 3.0 * distance);
        }
        if measured >= f64::from(self.settings.longest) {
            let (low, high) = self.ends(false);
            return self.decide(low, high, End::Unclear);
        }
        let ceiling = self.ceiling().map_or(f64::INFINITY, f64::ln);
        if centre > ceiling - SAME * distance {
            centre = ceiling - 0.5 * distance;
        }
        self.centre = Some(centre);
        let time = |from: f64, to: f64| {
            let within = |level: &&Level| (from..=to).contains(&((level.x() - centre) / distance));
            self.levels.iter().filter(within).map(Level::estimated).sum::<f64>()
        };
        let near = time(-ASIDE, ASIDE);
        let above = (centre + ASIDE_ABOVE * distance).min(f64::midpoint(centre, ceiling));
        let above = above.min(self.settings.to.ln());
        let has_room = above - centre > ASIDE * distance;
        let (x, length) = if has_room && near > 0.0 && time(ASIDE, WINDOW) <= SHARE_ABOVE * near {
            (above, BLOCK_ABOVE)
        } else if !has_room && near > 0.0 && time(-WINDOW, -ASIDE_BELOW + SAME) <= SHARE_BELOW * near {
            (centre - ASIDE_BELOW * distance, BLOCK)
        } else {
            (centre, BLOCK)
        };
        self.attempt(self.known_rate(x), length, Purpose::Estimation)
    }

    fn decide(&mut self, low: Option<f64>, high: Option<f64>, end: End) -> Aim {
        let decided = Decision { low, high, end };
        self.decided = Some(decided);
        self.after(decided)
    }

    /// The trials that follow a decision: of its lower end.
    fn after(&mut self, Decision { low, high, end }: Decision) -> Aim {
        let Some(low) = low else { return Aim::End(end) };
        if self.confirmed != Some(low) && self.refusals < REFUSALS {
            return self.attempt(low, CONFIRMATION, Purpose::Confirmation);
        }
        if self.confirmed != Some(low) {
            self.give_up_contradicted();
            return Aim::End(end);
        }
        let Some(high) = high else { return Aim::End(end) };
        if self.from_above.is_some() || self.descents > DESCENTS {
            return Aim::End(end);
        }
        let lower = (1.0 + self.settings.precision).powf(-f64::from(self.descents));
        let scale = self.settings.scale(low * lower);
        Aim::Try(Trial {
            rate: low * lower,
            length: CONFIRMATION * scale,
            scale,
            after: Some((high * OVERLOAD).min(self.settings.to)),
            purpose: Purpose::FromAbove,
        })
    }

    /// Upward until something breaks. An unknown rate is not an obstacle.
    fn upward(&mut self) -> Aim {
        let Settings { to, longest, .. } = self.settings;
        self.centre = None;
        let Some(last) = self.levels.last() else { return self.ramp(self.settings.from.min(to)) };
        let (rate, finding, length) = (last.rate, last.finding, last.length);
        if rate < to {
            return self.ramp((rate * GROWTH).min(to));
        }
        let longest = f64::from(longest) * f64::from(self.settings.scale(rate));
        if finding == Finding::Unclear && length < longest {
            return self.attempt(rate, BLOCK, Purpose::Bisection);
        }
        let (low, high) = self.ends(false);
        self.decide(low, high, End::Highest)
    }

    fn ramp(&self, rate: f64) -> Aim {
        self.attempt(rate, 1, Purpose::Ramp)
    }

    fn attempt(&self, rate: f64, length: u32, purpose: Purpose) -> Aim {
        // On the ramp only clear findings count.
        let rate = rate.min(self.settings.to);
        let scale = if purpose == Purpose::Ramp { 1 } else { self.settings.scale(rate) };
        Aim::Try(Trial { rate, length: length.saturating_mul(scale), scale, after: None, purpose })
    }

    /// The capacity by all trials: their shares are made to grow with the rate, by joining neighbours
    /// that do not (Ayer et al., "An empirical distribution function for sampling with incomplete
    /// information", 1955), and between two of these by the line of their log-odds.
    fn around(&self) -> Around {
        let reach = self.reach().map(f64::ln);
        let guesses = (0..self.settings.limits.len()).map(|condition| {
            let mut groups: Vec<Group> = Vec::new();
            let known =
                self.levels.iter().filter(|level| !self.is_too_short(level) && !self.is_superseded(level));
            let of_levels = known.filter_map(|level| level.group(condition));
            for group in of_levels.chain(reach.map(|x| Group { time: 1.0, bad: 1.0, x })) {
                groups.push(group);
                while let [.., before, last] = groups.as_mut_slice()
                    && before.bad > last.bad
                {
                    before.join(*last);
                    groups.pop();
                }
            }
            let level = log_odds(self.settings.limits[condition]);
            let beyond = |group: &Group| group.log_odds_beyond(level);
            match groups.iter().position(|group| beyond(group) >= 0.0) {
                None => f64::INFINITY,
                Some(0) => f64::NEG_INFINITY,
                Some(first) => {
                    let (good, bad) = (&groups[first - 1], &groups[first]);
                    good.x + (bad.x - good.x) * -beyond(good) / (beyond(bad) - beyond(good))
                }
            }
        });
        let guess = guesses.fold(f64::INFINITY, f64::min);
        let rates = || self.levels.iter().map(Level::x).chain(reach);
        Around { guess, below: rates().rfind(|x| *x <= guess), above: rates().find(|x| *x > guess) }
    }

    /// The crossing of all trials of the estimation together, for all conditions. Its interval is looked for
    /// as far as `reach` widths of the precision from the centre.
    fn crossing(&self, centre: f64, confidence: f64, reach: f64) -> Option<Crossing> {
        let distance = self.settings.distance();
        let within = ((centre - reach * distance).exp(), (centre + reach * distance).exp());
        let near: Vec<&Level> = self
            .levels
            .iter()
            .filter(|level| level.estimated() > 0.0 && !self.is_beyond(level))
            .filter(|level| (level.x() - centre).abs() <= WINDOW * distance)
            .collect();
        let of_condition = |condition: usize| {
            let rated =
                |level: &&Level| RatedBatches { rate: level.rate, batches: level.batches[condition].clone() };
            let rated: Vec<RatedBatches> = near.iter().map(rated).collect();
            crossing(&rated, self.settings.limits[condition], confidence, within)
        };
        // The first condition to break is the capacity.
        (0..self.settings.limits.len()).filter_map(of_condition).reduce(|one, other| Crossing {
            estimate: one.estimate.min(other.estimate),
            low: one.low.zip(other.low).map(|(one, other)| one.min(other)),
            high: match (one.high, other.high) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            dispersion: one.dispersion.max(other.dispersion),
        })
    }

    /// Both ends as far as they are known.
    fn ends(&self, cut_short: bool) -> (Option<f64>, Option<f64>) {
        let own = self.settings.confidence;
        let confidence = if cut_short { own.max(CUT_SHORT) } else { own };
        let within = |reach| self.centre.and_then(|centre| self.crossing(centre, confidence, reach));
        let crossing = within(REACH);
        let (low, high) = crossing.map_or((None, None), |crossing| (crossing.low, crossing.high));
        let estimate = crossing.map(|crossing| crossing.estimate);
        let breaking = |level: &&Level| self.is_breaking(level);
        // A rate is not taken as an end by its own trials if all trials together put it on the wrong side, or
        // if a lower rate breaks.
        let least = estimate.or(low).unwrap_or(0.0);
        let most = estimate.or(high).unwrap_or(f64::INFINITY);
        let most = self.levels.iter().find(breaking).map_or(most, |level| level.rate.min(most));
        let high = high.or_else(|| {
            self.levels.iter().filter(breaking).find(|level| level.rate > least).map(|level| level.rate)
        });
        let low = low.or_else(|| {
            let holds = |level: &&Level| {
                level.rate < most
                    && level.finding == Finding::Holds
                    // Short trials begin on an idle server, and hold more than its capacity.
                    && (!cut_short
                        || (self.holds_long(level)
                            && self.finding_at(&level.portions, PLAIN) == Finding::Holds))
            };
            // Few bad samples at one rate may be chance where its neighbours have many.
            let guess = self.around().guess.exp();
            let far = |level: &&Level| {
                // The estimate, which a floor was a sixth below, moves with the trial there.
                let factor = if self.floors.contains(&level.rate) { FLOOR_FAR } else { FAR };
                level.finding == Finding::Holds && level.rate * factor < most.min(guess)
            };
            let held = self.levels.iter().rev().find(holds);
            let held = held.or_else(|| self.levels.iter().rev().find(far)).map(|level| level.rate);
            // The next rate that holds may be half of the capacity: the line is more precise if it ends
            // above.
            let line = within(FARTHEST_REACH).filter(|_| cut_short).and_then(|crossing| crossing.low);
            held.into_iter().chain(line).reduce(f64::max)
        });
        (low, high)
    }

    /// The lowest rate that breaks down or that the generator cannot apply, and the highest one below it that
    /// was shown to hold for long: ends that need no estimate.
    fn hard_ends(&self) -> Option<(f64, f64)> {
        let high = self.ceiling()?;
        let low = self.levels.iter().rev().find(|level| level.rate < high && self.holds_long(level))?;
        Some((low.rate, high))
    }

    /// Returns `true` if a rate was shown to hold, and for long: a queue near its capacity has few bursts of
    /// bad samples, and may have none for many times as long as it remembers.
    fn holds_long(&self, level: &Level) -> bool {
        let scale = f64::from(self.settings.scale(level.rate));
        level.finding == Finding::Holds && level.length >= SHORTEST_HOLD * scale
    }

    /// The lowest rate that breaks down, or that the generator cannot apply.
    fn ceiling(&self) -> Option<f64> {
        let beyond = self.levels.iter().find(|level| self.is_beyond(level)).map(|level| level.rate);
        match (beyond, self.reach()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn reach(&self) -> Option<f64> {
        self.out_of_reach.map(|(rate, _)| rate)
    }

    fn is_beyond(&self, level: &Level) -> bool {
        level.overloaded || self.breaks_down(&level.portions)
    }

    /// Returns `true` if the share of bad samples is too large for the rate to be near the capacity.
    fn breaks_down(&self, portions: &[Vec<SliceCount>]) -> bool {
        portions.iter().zip(&self.settings.limits).any(|(slices, limit)| {
            let SliceCount { count, marked } = SliceCount::sum(slices);
            count > 0 && log_odds(marked as f64 / count as f64) > log_odds(*limit) + BREAKDOWN
        })
    }

    /// The rate that was tried near this one, given by its logarithm, if there is one: it knows more already.
    fn known_rate(&self, x: f64) -> f64 {
        let distance = |level: &&Level| (level.x() - x).abs();
        let near = SAME * self.settings.distance();
        let known = self.levels.iter().filter(|level| distance(level) <= near && !self.is_beyond(level));
        let nearest = known.min_by(|one, other| distance(one).total_cmp(&distance(other)));
        nearest.map_or_else(|| rounded(x, x - near, x + near), |level| level.rate)
    }

    fn add(&mut self, trial: &Trial, length: f64, outcome: Outcome) -> Finding {
        let index = self.levels.partition_point(|level| level.rate < trial.rate);
        if self.levels.get(index).is_none_or(|level| level.rate != trial.rate) {
            let none = vec![Vec::new(); self.settings.limits.len()];
            self.levels.insert(
                index,
                Level {
                    rate: trial.rate,
                    finding: Finding::Unclear,
                    length: 0.0,
                    portions: none.clone(),
                    batches: none,
                    overloaded: false,
                    latest: (Vec::new(), Finding::Unclear),
                    disputed: false,
                    trials: 0,
                    tried_at: 0.0,
                },
            );
        }
        let own = self.own_finding(&outcome);
        let level = &mut self.levels[index];
        level.length += length;
        let was_worse = match own {
            Finding::Holds => matches!(level.finding, Finding::Unclear | Finding::Breaks),
            Finding::Unclear => level.overloaded || level.latest.1 == Finding::Breaks,
            Finding::Breaks | Finding::NotApplied => false,
        };
        level.disputed = own != Finding::Breaks && (level.disputed || (was_worse && level.trials > 0));
        level.overloaded = matches!(outcome, Outcome::Overloaded);
        level.latest.1 = own;
        level.trials += 1;
        level.tried_at = self.passed;
        if let Outcome::Measured(portions) = outcome {
            level.latest.0 = portions.iter().map(|slices| SliceCount::sum(slices)).collect();
            let is_estimate = matches!(trial.purpose, Purpose::Estimation | Purpose::Confirmation);
            for ((mine, batches), new) in level.portions.iter_mut().zip(&mut level.batches).zip(portions) {
                if is_estimate && !new.is_empty() {
                    let parts = ((length / f64::from(trial.scale)).round() as usize).max(1);
                    batches.extend(join(&new, (new.len() / parts).max(1)));
                }
                mine.extend(new);
            }
        }
        let finding = match self.levels[index].overloaded {
            true => Finding::Breaks,
            false => self.finding(&self.levels[index].portions),
        };
        self.levels[index].finding = finding;
        finding
    }
}

/// Neighbouring rates as one.
#[derive(Clone, Copy)]
struct Group {
    time: f64,
    /// The share of bad samples, by the time.
    bad: f64,
    /// The mean logarithm of the rates, by the time.
    x: f64,
}

impl Level {
    /// `None` if nothing ended: that says nothing.
    fn group(&self, condition: usize) -> Option<Group> {
        // What an earlier trial broke, and the last one did not, may have been an accident.
        let SliceCount { count, marked } = match self.latest.0.get(condition) {
            Some(latest) if self.disputed => *latest,
            _ => SliceCount::sum(&self.portions[condition]),
        };
        let bad = match (self.overloaded, count) {
            (true, _) => 1.0,
            (false, 0) => return None,
            (false, _) => marked as f64 / count as f64,
        };
        Some(Group { time: self.length, bad, x: self.x() })
    }
}

impl Group {
    fn join(&mut self, other: Self) {
        let time = self.time + other.time;
        let mean = |mine: f64, others: f64| (mine * self.time + others * other.time) / time;
        *self = Self { time, bad: mean(self.bad, other.bad), x: mean(self.x, other.x) };
    }

    /// Returns the distance of the log-odds above a level, limited, so that no single rate counts too much.
    fn log_odds_beyond(&self, level: f64) -> f64 {
        (log_odds(self.bad) - level).clamp(-HEARSAY, HEARSAY)
    }
}

/// A rate, given by its logarithm, to four digits if that still lies between two others: people will read it.
fn rounded(x: f64, low: f64, high: f64) -> f64 {
    let rate = x.exp();
    let unit = 10_f64.powf(rate.log10().floor() - 3.0);
    let round = (rate / unit).round() * unit;
    if low < round.ln() && round.ln() < high { round } else { rate }
}
