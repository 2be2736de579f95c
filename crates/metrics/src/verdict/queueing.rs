//! Requests that wait for one another in the target, told from a target that would answer more at once.
//!
//! One number of requests in flight shows little: answers that differ in length and answers behind a queue
//! may take the same times. Two things tell them apart. Requests that came while the target had nothing else
//! to do, such as the first of a run, took the time of the service alone. And while a queue fills, answers
//! take longer and longer and are no more per second, where independent answers keep their times.

use std::borrow::Cow;

use plimsoll_core::{Nanos, figure};
use plimsoll_histogram::{Delta, Histogram};
use plimsoll_statistics::student_quantile;

use super::attribution::TARGET_HINT;
use super::{Claim, Judge, Limitation};
use crate::course::mean_in_flight;
use crate::{Awaited, Model, Slice, Tally};

/// A target that queues serves most requests in at least this multiple of the fastest time...
const QUEUE_FACTOR: f64 = 5.0;
/// ...and nearly all of them alike, as each waits for as many others: the p10 is at least this share of the
/// p50. Times that only vary do not have both: lognormal ones with a p10 of 0.7 p50 (σ = 0.28)
/// have a fastest of a million of 0.26 p50; exponential ones have a p10 of 0.15. In one queue, 16 users have
/// 0.71 and 64 have 0.84.
const QUEUE_SHARE: f64 = 0.7;
/// With times that are all the same, fewer times the fastest are enough.
const ALIKE_SHARE: f64 = 0.9;
/// Times that are all the same, and longer than the fastest by this factor, may be those of two or three
/// users of a target that serves one at a time, whatever their number is: more users would not be answered
/// as fast.
const FEW_FACTOR: f64 = 1.5;
/// From here on the same may be a queue of few users or times that vary: 5 users in one queue have a p10 of
/// 0.52 p50, by chance a tenth less in a short run; lognormal times of σ = 0.4 have 0.6. One number of users
/// does not distinguish them.
const PERHAPS_FACTOR: f64 = 3.0;
const PERHAPS_SHARE: f64 = 0.4;
/// Below [`PERHAPS_FACTOR`], the fastest of times that only vary is as far below the median as their p10
/// lets expect of a lognormal law, and less than this factor farther. Eight users of a pool of four have
/// times whose fastest is farther.
const OUTLYING: f64 = 1.25;
/// Standard deviations of a normal law between its p10 and its median.
const P10: f64 = 1.2816;
/// Degrees of freedom from which Student's law is the normal one.
const NORMAL: f64 = 1e6;

/// Answers took longer and longer if half of them took at least this multiple of what they once took...
const FILLED_FACTOR: u64 = 2;
/// ...and were no more per second if their rate rose by less than this share, beside what chance makes of it.
const NO_MORE: f64 = 0.1;
/// More was asked of a target than it answered if so much more was started than was answered.
const ASKED_MORE: f64 = 1.05;
/// Answers from which the rate of a part of the run says something.
const FEWEST_ANSWERS: u64 = 50;
/// A part of a run has the times of what was started in it if it is so many times longer than these.
const LONGER: u64 = 2;
/// Standard deviations that chance may make of a number of answers.
const CHANCE: f64 = 3.0;

/// Parts of a run whose answers took about as long.
struct Part {
    /// Answers per second.
    rate: f64,
    answers: u64,
    /// Requests started per second.
    started: f64,
    median: Nanos,
}

impl Judge<'_> {
    /// Requests that waited for one another, by their times or by the course of an open run; perhaps, where
    /// neither shows it for certain.
    pub(super) fn waiting(&self, open: bool) -> Option<Limitation> {
        let by_times = self.queue();
        if by_times.as_ref().is_some_and(|limit| limit.claim == Claim::Queue) || !open {
            return by_times;
        }
        match self.filled_queue() {
            Some(limit) if limit.claim == Claim::Queue || by_times.is_none() => Some(limit),
            _ => by_times,
        }
    }

    /// Nearly all requests took many times the time of the fastest: they waited for one another.
    pub(super) fn queue(&self) -> Option<Limitation> {
        let (times, streams) = self.owed_times();
        let (p10, p50) = (times.percentile(10.0)?, times.percentile(50.0)?);
        let fastest = self.fastest(&times, streams)?;
        let is_queue = |factor: f64, share: f64| {
            p50 as f64 >= fastest as f64 * factor && p10 as f64 >= p50 as f64 * share
        };
        let outlies = || {
            let share = p10 as f64 / p50.max(1) as f64;
            is_queue(FEW_FACTOR.max(OUTLYING * expected_factor(share, times.count())), PERHAPS_SHARE)
        };
        if !is_queue(PERHAPS_FACTOR, PERHAPS_SHARE) && !is_queue(FEW_FACTOR, ALIKE_SHARE) && !outlies() {
            return None;
        }
        // Users that think have none.
        let mut in_flight = (mean_in_flight(self.record).round() as u64).max(1);
        if self.record.model == Model::Closed {
            // Answers that came after the end are in the mean.
            in_flight = in_flight.min(self.record.connections.peak_open * self.depth());
        }
        let carried = self.record.completed_in_window as f64 / self.record.duration.as_secs_f64();
        let [half, fastest_took] = match streams {
            true => ["half of the streams began after", "the first began after"],
            false => ["half of them in", "the fastest took"],
        };
        let in_warmup = if times.min() > Some(fastest) { ", in the warm-up" } else { "" };
        let evidence = format!(
            "with {} in flight on average the target served {}, {half} {} or more; {fastest_took} {}{in_warmup}",
            figure::count(in_flight),
            figure::per_second(carried),
            figure::nanos(Nanos(p50)),
            figure::nanos(Nanos(fastest)),
        );
        if !is_queue(QUEUE_FACTOR, QUEUE_SHARE) && !is_queue(PERHAPS_FACTOR, ALIKE_SHARE) {
            return Some(self.perhaps(&evidence));
        }
        let evidence = format!("{evidence}: they wait for one another");
        Some(Claim::Queue.by(evidence, TARGET_HINT))
    }

    /// A limit that may be a queue in the target, or answers that only differ in their times.
    fn perhaps(&self, evidence: &str) -> Limitation {
        let load = if self.speaks_http() { "URL" } else { "PLAN" };
        let hint = format!(
            "try other numbers of connections: if the rate stays, it is the target's, and if it rises with \
             them, it was theirs (plimsoll find {load} --sweep connections=8,16,32)"
        );
        Claim::PerhapsQueue.by(format!("{evidence}: they may wait for one another, or only vary"), hint)
    }

    /// The fastest of the times that the target owes. It may be one of the warm-up, which had the target to
    /// itself at first.
    fn fastest(&self, times: &Histogram, streams: bool) -> Option<u64> {
        let of = |tally: &Tally| if streams { tally.ttft.lowest() } else { tally.service_time.lowest() };
        let before = self.record.timeline.warmup.iter().filter_map(|slice| of(&slice.total));
        before.chain(times.min()).min()
    }

    /// A queue that filled in the course of an open run: answers took longer and longer, and were no more per
    /// second, though more was asked for from the beginning.
    pub(super) fn filled_queue(&self) -> Option<Limitation> {
        let timeline = &self.record.timeline;
        let slices: Vec<(&Slice, u64)> = timeline
            .warmup
            .iter()
            .chain(&timeline.measured)
            .filter_map(|slice| Some((slice, median(&slice.total.service_time)?)))
            .collect();
        let slowest = slices.iter().map(|(_, median)| *median).max()?;
        let is_early = |median: u64| median.saturating_mul(FILLED_FACTOR) <= slowest;
        // Those before the queue was half full, and those in which it was nearly so.
        let early = Part::of(slices.iter().filter(|(_, median)| is_early(*median)))?;
        let late = Part::of(slices.iter().filter(|(_, median)| *median >= slowest / 5 * 4))?;
        let chance = CHANCE * f64::sqrt(1.0 / early.answers as f64 + 1.0 / late.answers as f64);
        let change = late.rate / early.rate - 1.0;
        if change > NO_MORE + chance || early.started < early.rate * ASKED_MORE {
            return None;
        }
        let evidence = format!(
            "the target served {} while half of them took {} or less, and {} when they took {}, with more in \
             flight",
            figure::per_second(early.rate),
            figure::nanos(early.median),
            figure::per_second(late.rate),
            figure::nanos(late.median),
        );
        let length = slices.iter().map(|(slice, _)| slice.length.0).max()?;
        let is_shown = change.abs() <= NO_MORE
            && early.answers.min(late.answers) >= FEWEST_ANSWERS
            && length >= slowest.saturating_mul(LONGER);
        match is_shown {
            true => Some(Claim::Queue.by(format!("{evidence}: they wait for one another"), TARGET_HINT)),
            false => Some(self.perhaps(&evidence)),
        }
    }

    /// The times that the target owes: of answers to their end, of streams to their first content. `true` if
    /// there are streams.
    fn owed_times(&self) -> (Cow<'_, Histogram>, bool) {
        let steps = &self.record.steps;
        if steps.iter().all(|step| step.awaited != Awaited::Stream) {
            return (Cow::Borrowed(&self.record.total.service_time), false);
        }
        let mut times = Histogram::new();
        for step in steps {
            match (step.awaited, &step.event_streams) {
                (Awaited::Stream, Some(streams)) => times.merge(&streams.ttft),
                (Awaited::Answer, _) => times.merge(&step.service_time),
                _ => {}
            }
        }
        (Cow::Owned(times), true)
    }

    /// Advice where the service time is mostly that of a queue in the target, which grows with the requests
    /// in flight: no number of connections follows from it by Little's law. `None` if the times are not those
    /// of a queue.
    pub(super) fn queue_words(&self) -> Option<String> {
        let times = &self.record.total.service_time;
        let fastest = self.fastest(times, false)?;
        let (few, usual) = (times.percentile(10.0)?, times.percentile(50.0)?);
        let is_queue =
            usual as f64 >= fastest as f64 * PERHAPS_FACTOR && few as f64 >= usual as f64 * PERHAPS_SHARE;
        (is_queue || self.filled_queue().is_some()).then(|| {
            format!(
                "ask for a lower rate: more connections do not help if the target is saturated, as half of \
                 its replies took {} or more and the fastest {}",
                figure::nanos(Nanos(usual)),
                figure::nanos(Nanos(fastest)),
            )
        })
    }
}

impl Part {
    /// Adds slices up; `None` if nothing was answered in them.
    fn of<'a>(slices: impl Iterator<Item = &'a (&'a Slice, u64)>) -> Option<Self> {
        let mut times = Histogram::new();
        let (mut answers, mut started, mut length) = (0, 0, Nanos::ZERO);
        for (slice, _) in slices {
            times.add(&slice.total.service_time);
            answers += slice.total.completed + slice.total.carried;
            started += slice.total.started;
            length += slice.length;
        }
        let seconds = length.as_secs_f64();
        let median = Nanos(times.percentile(50.0)?);
        (answers > 0 && seconds > 0.0).then(|| Self {
            rate: answers as f64 / seconds,
            answers,
            started: started as f64 / seconds,
            median,
        })
    }
}

/// The median of the times of a slice; `None` if it has none.
fn median(times: &Delta) -> Option<u64> {
    let mut all = Histogram::new();
    all.add(times);
    all.percentile(50.0)
}

/// The multiple of the fastest that the median of so many lognormal times is, by their p10 as a share of the
/// median.
fn expected_factor(share: f64, count: u64) -> f64 {
    let deviations = student_quantile(1.0 - 2.0 / (count.max(4) as f64), NORMAL);
    share.powf(-deviations / P10)
}
