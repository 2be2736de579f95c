//! One figure against its limit, within the limits of statistics and timeouts.

use std::cmp::Ordering;

use plimsoll_core::{ErrorClass, ErrorCounts, Nanos, figure};
use plimsoll_histogram::{Bucket, Censored, Histogram, Sliding, floor_of, rank_of, samples_needed};

use super::answer::{NOT_ASKED, write_number};
use super::decimal::{Decimal, compare};
use super::text::{
    Among, Counted, Figure, Limit, Metric, Number, Operator, Shown, Threshold, TimeKind, Total,
};
use crate::headline::answered;
use crate::{NeverGood, StepRecord, Tally};
use serde::{Deserialize, Serialize};

/// The value of a figure, and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The value.
    pub value: f64,
    /// Unit of the value.
    pub unit: Unit,
    /// `true` if the value is only a lower bound, because of timeouts.
    pub at_least: bool,
}

/// Units of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    Nanos,
    /// Percent.
    Percent,
    /// A number.
    Count,
    /// Bytes.
    Bytes,
    /// Per second.
    PerSecond,
    /// A number without a unit.
    Number,
}

impl Unit {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Percent => "percent",
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::PerSecond => "per_s",
            Self::Number => "number",
        }
    }
}

/// For people: `1.23 ms`, `≥ 2.00 s`, `0.1 %`.
impl std::fmt::Display for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at_least {
            f.write_str("≥ ")?;
        }
        match self.unit {
            Unit::Nanos => f.write_str(&figure::nanos_f64(self.value)),
            Unit::Percent => f.write_str(&figure::share(self.value / 100.0)),
            Unit::Count => f.write_str(&figure::count(self.value as u64)),
            Unit::Bytes => f.write_str(&figure::bytes(self.value as u64)),
            Unit::PerSecond => f.write_str(&figure::per_second(self.value)),
            Unit::Number => write_number(self.value, f),
        }
    }
}

/// Digits of a percentage behind the point, at most.
const MOST_DECIMALS: usize = 4;

impl Observed {
    /// The figure beside a limit of it. A share has one digit behind the point, as all shares have, and more
    /// only where it would read as the limit that it is not: `5.0 %`, and `4.98 %` beside 5 %.
    pub fn beside(&self, limit: Limit) -> String {
        let limit = match limit {
            Limit::Percent(limit) => limit.to_f64(),
            Limit::Number(Number(limit)) => limit * 100.0,
            _ => return self.to_string(),
        };
        let reads = |decimals: usize| format!("{:.decimals$}", self.value);
        let is_limit = |text: &str| text.parse() == Ok(limit);
        let is_near = |share: f64| !(0.1..=99.9).contains(&share);
        if self.unit != Unit::Percent || self.value == limit || !(is_limit(&reads(1)) || is_near(limit)) {
            return self.to_string();
        }
        let tells = |decimals: &usize| {
            let text = reads(*decimals);
            !is_limit(&text) && text.parse() != Ok(0.0) && text.parse() != Ok(100.0)
        };
        match (2..=MOST_DECIMALS).find(tells).filter(|_| self.value > 0.0 && self.value < 100.0) {
            Some(decimals) => {
                let at_least = if self.at_least { "≥ " } else { "" };
                format!("{at_least}{} %", reads(decimals))
            }
            None => self.to_string(),
        }
    }
}

/// The result of comparing a figure with its limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) passed: bool,
    pub(super) observed: Option<Observed>,
    /// Reason why it failed, if the value does not say it.
    pub(super) reason: Option<String>,
    /// `true` if errors that the target itself answered are enough to fail the threshold.
    pub(super) by_answers: bool,
    /// Of a percentile, the number of values that may lie beyond the limit.
    pub(super) beyond: Option<u64>,
    /// Set where a percentile lies among the requests that were due and were not answered well: how many
    /// these are, in words.
    pub(super) unreached: Option<String>,
    /// Set where a percentile has too few samples to be shown to hold.
    pub(super) lacking: Option<Lacking>,
}

/// Samples of a percentile where these are too few to show that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lacking {
    pub(super) needed: u64,
    pub(super) present: u64,
}

impl Judgement {
    /// Makes the judgement of a threshold of which it cannot be said whether it holds: it is not met.
    pub(super) fn unknown(observed: Option<Observed>, reason: impl Into<String>) -> Self {
        Self { observed, reason: Some(reason.into()), ..Self::failed() }
    }

    /// A figure says whether it holds.
    pub(super) fn told(passed: bool, observed: Option<Observed>) -> Self {
        Self { passed, observed, ..Self::failed() }
    }

    fn failed() -> Self {
        Self {
            passed: false,
            observed: None,
            reason: None,
            by_answers: false,
            beyond: None,
            unreached: None,
            lacking: None,
        }
    }

    /// Returns `true` if the data show that the threshold is not met. A failed threshold without it merely
    /// could not be shown to hold.
    pub(super) const fn is_shown(&self) -> bool {
        !self.passed && self.reason.is_none()
    }
}

/// The values of one kind of time.
pub(super) struct Times<'a> {
    pub(super) values: Values<'a>,
    pub(super) censored: Censored,
}

impl Times<'_> {
    /// The smallest value that is a lower bound, as it is read from its bucket.
    fn censored_from(&self) -> u64 {
        match self.values {
            Values::Recorded(_) => self.censored.from.0,
            Values::Windowed(..) => floor_of(self.censored.from.0),
        }
    }

    /// Returns `true` if a figure with this value is only a lower bound.
    fn may_be_more(&self, value: f64) -> bool {
        let censored = Censored { from: Nanos(self.censored_from()), ..self.censored };
        let (value, count) = (value as u64, self.values.count());
        match self.values {
            Values::Recorded(recorded) => recorded.is_at_least(value, censored),
            Values::Windowed(sliding, _) => {
                censored.may_hide(value, count, sliding.count_above(value), |rank| sliding.value_at(rank))
            }
        }
    }

    /// The largest value that a percentile can have, whose place is `rank` at most: that of a rank as many
    /// places higher as there are lower bounds, if these reach down to it. `None` if nothing bounds it.
    fn most(&self, rank: u64) -> Option<u64> {
        let count = self.values.count();
        if rank > count {
            return None;
        }
        let value = self.values.value_at(rank)?;
        if self.censored.count == 0 || value < self.censored_from() {
            return Some(value);
        }
        let rank = rank.saturating_add(self.censored.count);
        if rank > count { None } else { self.values.value_at(rank) }
    }
}

/// The source of values.
pub(super) enum Values<'a> {
    Recorded(&'a Histogram),
    Windowed(&'a Sliding, &'a Tally),
}

impl Values<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Recorded(histogram) => histogram.count(),
            Self::Windowed(sliding, _) => sliding.count(),
        }
    }

    /// The value of a rank, from 1; that of the largest beyond the last.
    fn value_at(&self, rank: u64) -> Option<u64> {
        match self {
            Self::Recorded(recorded) => recorded.value_at(rank),
            Self::Windowed(sliding, tally) => {
                let value = sliding.value_at(rank.min(sliding.count()))?;
                Some(tally.limits.map_or(value, |(low, high)| value.clamp(low, high)))
            }
        }
    }

    fn figure(&self, figure: Figure) -> Option<f64> {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        match (self, figure) {
            (Self::Recorded(histogram), Figure::Percentile(p)) => whole(histogram.percentile(p.p())),
            (Self::Recorded(histogram), Figure::Min) => whole(histogram.min()),
            (Self::Recorded(histogram), Figure::Max) => whole(histogram.max()),
            (Self::Recorded(histogram), Figure::Mean) => histogram.mean(),
            (Self::Recorded(histogram), Figure::Stdev) => histogram.stdev(),
            (Self::Windowed(sliding, tally), Figure::Mean) => {
                (sliding.count() > 0).then(|| tally.response_time_sum as f64 / sliding.count() as f64)
            }
            (Self::Windowed(sliding, _), Figure::Stdev) => sliding.stdev(),
            (Self::Windowed(sliding, tally), figure) => {
                let (low, high) = tally.limits?;
                let value = match figure {
                    Figure::Percentile(p) => sliding.percentile(p.p()),
                    Figure::Min => sliding.buckets().next().map(|Bucket { lowest, .. }| lowest),
                    _ => sliding.percentile(100.0),
                };
                whole(value.map(|value| value.clamp(low, high)))
            }
        }
    }
}

/// Everything that thresholds read, over one time and for some steps.
pub(super) struct View<'a> {
    pub(super) started: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) timed_out: u64,
    /// Requests without an answer so far: nobody knows how they would have ended.
    pub(super) unanswered: u64,
    /// Requests that count for goodput, and those of them that held its bounds.
    pub(super) judged: u64,
    pub(super) good: u64,
    /// Whole responses, and the time in which they came.
    pub(super) completed: u64,
    pub(super) length: Nanos,
    /// Arrivals that were given up; known of the whole run only.
    pub(super) dropped: Option<u64>,
    /// Requests that fell due; known of the whole run only.
    pub(super) scheduled: Option<u64>,
    pub(super) errors: &'a ErrorCounts,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// Arrivals that were never started, for want of anything but data; 0 where they are not known.
    pub(super) never_started: u64,
    /// By `TimeKind as usize`; those that are not known have none.
    pub(super) times: [Option<Times<'a>>; TimeKind::ALL.len()],
}

impl<'a> View<'a> {
    /// Returns the view of one step, or of several, over the whole run.
    pub(super) fn of_record(record: &'a StepRecord, started: u64, completed: u64, length: Nanos) -> Self {
        let exact = Censored::default();
        let times = |values: &'a Histogram, censored: Censored| {
            Some(Times { values: Values::Recorded(values), censored })
        };
        let streams = record.event_streams.as_deref();
        Self {
            started,
            ok: record.ok,
            failed: record.failed,
            timed_out: record.timed_out,
            unanswered: started
                .saturating_sub(record.ok + record.failed + record.timed_out + record.aborted()),
            judged: streams.map_or(0, |streams| streams.judged),
            good: streams.map_or(0, |streams| streams.good),
            completed,
            length,
            dropped: None,
            scheduled: None,
            never_started: 0,
            errors: &record.errors,
            bytes_sent: record.bytes_sent,
            bytes_received: record.bytes_received,
            times: [
                times(&record.response_time, record.censored_response),
                times(&record.service_time, record.censored_service),
                times(&record.start_lag, exact),
                times(&record.first_byte_time, exact),
                None,
                None,
                times(&record.failed_response_time, exact),
                streams.and_then(|streams| times(&streams.ttft, streams.censored_ttft)),
                streams.and_then(|streams| times(&streams.ttft_from_sent, streams.censored_ttft_from_sent)),
                streams.and_then(|streams| times(&streams.ttfa, streams.censored_ttfa)),
                streams.and_then(|streams| times(&streams.gap, exact)),
                streams.and_then(|streams| times(&streams.tpot, exact)),
                streams.and_then(|streams| times(&streams.ntpot, exact)),
                times(&record.lag, exact),
            ],
        }
    }

    /// Returns the view of a window.
    pub(super) fn of_window(tally: &'a Tally, sliding: &'a Sliding, length: Nanos) -> Self {
        let response = Times { values: Values::Windowed(sliding, tally), censored: tally.censored };
        let mut times = [const { None }; TimeKind::ALL.len()];
        times[TimeKind::Response as usize] = Some(response);
        Self {
            started: tally.started,
            ok: tally.ok,
            failed: tally.failed,
            timed_out: tally.timed_out,
            // Requests that were started in a window may end in a later one.
            unanswered: 0,
            judged: tally.judged,
            good: tally.good,
            completed: tally.answers(),
            length,
            dropped: None,
            scheduled: None,
            never_started: 0,
            errors: &tally.errors,
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            times,
        }
    }

    /// Requests that were due and were not answered well.
    fn never_good(&self) -> NeverGood {
        let dropped = self.dropped.unwrap_or(0);
        NeverGood { failed: self.failed, dropped, never_started: self.never_started }
    }

    fn ended(&self) -> u64 {
        // Requests that we aborted have ended, too, and are not failures.
        self.ok + self.failed + self.timed_out + self.errors[ErrorClass::AbortedByUs]
    }

    /// The number, and its base; `None` if there is nothing to count.
    fn counted(&self, counted: Counted) -> Option<(u64, u64)> {
        let ended = Some(self.ended()).filter(|ended| *ended > 0);
        let due = self.scheduled.unwrap_or(self.started);
        let due = Some(due).filter(|due| *due > 0);
        let errors = |class: ErrorClass| self.errors[class];
        match counted {
            Counted::Errors(class) => Some((errors(class), ended?)),
            Counted::Total(total) => match total {
                Total::Started => Some((self.started, due?)),
                Total::Dropped => Some((self.dropped?, due?)),
                Total::Ok => Some((self.ok, ended?)),
                Total::Failed => Some((self.failed, ended?)),
                Total::TimedOut => Some((self.timed_out, ended?)),
                Total::Errors => Some((self.failed + self.timed_out, ended?)),
                Total::Checks => Some((errors(ErrorClass::Check), ended?)),
                Total::Goodput => (self.judged > 0).then_some((self.good, self.judged)),
                Total::BytesSent => Some((self.bytes_sent, ended?)),
                Total::BytesReceived => Some((self.bytes_received, ended?)),
            },
        }
    }
}

pub(super) const NO_DATA: &str = "no data";

/// Judges one figure.
///
/// A threshold that the data do not show is not met: without data, with too few values for a percentile (see
/// [`samples_needed`]), and where timeouts leave the value open. A timed-out request took at least this long:
/// a figure among such values is a lower bound, which can be above a limit for certain, but never below one.
/// Too few values show that a percentile does not hold where it would not even if all of the others that it
/// needs were on the right side.
pub(super) fn judge(threshold: &Threshold, view: &View<'_>) -> Judgement {
    let judgement = with_never_started(threshold, view, compared(threshold, view));
    let by_answers =
        !judgement.passed && (fails_by_answers(threshold, view) || is_unreached_by_answers(threshold, view));
    Judgement { by_answers, ..judgement }
}

/// Returns the judgement, unless it is an upper limit of errors that would not hold if arrivals that fell due
/// and were never started had failed: nobody knows how those would have ended.
fn with_never_started(threshold: &Threshold, view: &View<'_>, judgement: Judgement) -> Judgement {
    let never = view.never_started.saturating_add(view.dropped.unwrap_or(0));
    let is_upper = matches!(threshold.operator, Operator::Less | Operator::AtMost | Operator::Equal);
    let may_break = match (&threshold.metric, threshold.limit) {
        (Metric::ErrorRate | Metric::TimeoutRate, _) => is_upper,
        (Metric::Count(Counted::Total(Total::Ok)), Limit::Percent(_)) => {
            matches!(threshold.operator, Operator::Greater | Operator::AtLeast | Operator::Equal)
        }
        // So many have succeeded, whatever became of others.
        (Metric::Count(Counted::Total(Total::Ok)), _) => false,
        (Metric::Count(counted), _) => is_upper && counted.is_of_ended(),
        _ => false,
    };
    if never == 0 || !judgement.passed || !may_break {
        return judgement;
    }
    let unanswered = view.unanswered.saturating_add(never);
    let open = View { unanswered, times: [const { None }; TimeKind::ALL.len()], ..*view };
    if compared(threshold, &open).passed {
        return judgement;
    }
    let arrivals = if never == 1 { "arrival was due and was" } else { "arrivals were due and were" };
    Judgement::unknown(judgement.observed, format!("{} {arrivals} never started", figure::count(never)))
}

/// Returns `true` if a percentile of what was due lies among the errors that the target answered, whatever
/// became of the other requests.
fn is_unreached_by_answers(threshold: &Threshold, view: &View<'_>) -> bool {
    let Metric::Time(kind, Figure::Percentile(percentile), Among::Due) = threshold.metric else {
        return false;
    };
    let Some(times) = &view.times[kind as usize] else { return false };
    let answered = answered(view.errors);
    let due = times.values.count().saturating_add(view.never_good().sum());
    let is_upper = matches!(threshold.operator, Operator::Less | Operator::AtMost);
    let whole = due.max(samples_needed(percentile.p()));
    is_upper && answered > 0 && rank_of(percentile.p(), whole) > whole.saturating_sub(answered)
}

/// Returns `true` if a limit of errors is broken even when every failure that the target did not answer
/// counts as a success. A limit of anything else, times and rates above all, is never broken by answers.
fn fails_by_answers(threshold: &Threshold, view: &View<'_>) -> bool {
    let operator = match (&threshold.metric, threshold.operator) {
        (Metric::Count(Counted::Total(Total::Ok)), Operator::Greater | Operator::AtLeast)
            if matches!(threshold.limit, Limit::Percent(_)) =>
        {
            threshold.operator
        }
        (
            Metric::ErrorRate
            | Metric::Count(Counted::Errors(_) | Counted::Total(Total::Failed | Total::Checks)),
            operator,
        ) => match operator {
            Operator::Less | Operator::AtMost => operator,
            // Fewer failures could still be equal; more cannot.
            Operator::Equal => Operator::AtMost,
            Operator::Greater | Operator::AtLeast | Operator::Unequal => return false,
        },
        _ => return false,
    };
    let is_certain = |class: ErrorClass| class.is_answer() || class == ErrorClass::AbortedByUs;
    let errors: ErrorCounts = view.errors.iter().filter(|(class, _)| is_certain(*class)).collect();
    let answered = errors.total() - errors[ErrorClass::AbortedByUs];
    let favourable = View {
        ok: view.ok + (view.failed + view.timed_out).saturating_sub(answered),
        failed: answered,
        timed_out: 0,
        errors: &errors,
        times: [const { None }; TimeKind::ALL.len()],
        ..*view
    };
    compared(&Threshold { operator, ..threshold.clone() }, &favourable).is_shown()
}

fn compared(threshold: &Threshold, view: &View<'_>) -> Judgement {
    match (&threshold.metric, threshold.limit) {
        (&Metric::Time(kind, figure, among), Limit::Time(limit)) => {
            let Some(times) = &view.times[kind as usize] else { return Judgement::unknown(None, NO_DATA) };
            match figure {
                Figure::Percentile(percentile) => {
                    let metric = (&threshold.metric, threshold.operator);
                    self::percentile(metric, (percentile.p(), limit), times, among, view)
                }
                _ => time(threshold, times, figure, limit),
            }
        }
        (Metric::ErrorRate, Limit::Percent(limit)) => {
            share(threshold, view.failed + view.timed_out, view.ended(), view.unanswered, limit)
        }
        (Metric::TimeoutRate, Limit::Percent(limit)) => {
            share(threshold, view.timed_out, view.ended(), view.unanswered, limit)
        }
        (&Metric::Count(counted), Limit::Percent(limit)) => match view.counted(counted) {
            Some((part, whole)) => {
                let open = if counted.is_of_ended() { view.unanswered } else { 0 };
                share(threshold, part, whole, open, limit)
            }
            // Nothing has ended, and what has not may end in any way.
            None if counted.is_of_ended() && view.unanswered > 0 => {
                share(threshold, 0, 0, view.unanswered, limit)
            }
            None => Judgement::unknown(None, NO_DATA),
        },
        (&Metric::Count(counted), Limit::Count(limit)) => {
            let open = if counted.is_of_ended() { view.unanswered } else { 0 };
            let Some((count, _)) = view.counted(counted).or((open > 0).then_some((0, 0))) else {
                return Judgement::unknown(None, NO_DATA);
            };
            let bytes = matches!(counted, Counted::Total(Total::BytesSent | Total::BytesReceived));
            let unit = if bytes { Unit::Bytes } else { Unit::Count };
            let observed = Observed { value: count as f64, unit, at_least: open > 0 };
            let ends = [count, count.saturating_add(open)].map(|count| count.cmp(&limit));
            between(threshold.operator, ends, open, observed)
        }
        (Metric::Rate, limit) => rate(threshold, view, limit),
        (Metric::Query(_), _) => Judgement::unknown(None, NOT_ASKED),
        // Metrics of the plan's own are judged by the record of a run.
        (Metric::Own(_), _) => Judgement::unknown(None, NO_DATA),
        // Parsing pairs every figure with a limit of its kind.
        _ => Judgement::unknown(None, format!("{} has no such limit", Shown(&threshold.metric))),
    }
}

/// Judges a percentile. Of what was due, it may lie among the requests that were not answered well.
fn percentile(
    (metric, operator): (&Metric, Operator),
    (p, limit): (f64, Nanos),
    times: &Times<'_>,
    among: Among,
    view: &View<'_>,
) -> Judgement {
    let count = times.values.count();
    let is_of_due = among == Among::Due;
    let never = if is_of_due { view.never_good().sum() } else { 0 };
    // Some have no time: who has waited for less than the fastest answer took, who timed out before it was
    // sent, and whose first byte did not come. They may have any.
    let waiting = view.unanswered.saturating_add(view.timed_out);
    let open = if is_of_due { waiting.saturating_sub(times.censored.count) } else { 0 };
    let due = count.saturating_add(never);
    let needed = samples_needed(p);
    if due == 0 {
        return Judgement::unknown(None, NO_DATA);
    }
    if due < needed {
        let lacking = Lacking { needed, present: due };
        let judgement = of_few((metric, operator), (p, limit), times, (never, open), view, lacking);
        // Without any value there is nothing to multiply.
        let present = if count == 0 { 0 } else { due };
        return Judgement { lacking: Some(Lacking { present, ..lacking }), ..judgement };
    }
    let ordering = |value: u64| value.cmp(&limit.0);
    let rank = rank_of(p, due);
    if rank > count && rank <= count.saturating_add(open) {
        return Judgement::unknown(None, may_be_longer(open));
    }
    if rank > count {
        // The figure that readers know from the report, under the name that asks for it.
        let good = times.values.value_at(rank_of(p, count)).filter(|_| count >= needed);
        let good = good.map(|good| format!(" ({}: {})", Shown(&of_good(metric)), figure::nanos(Nanos(good))));
        let unreached =
            Some(format!("not reached: {}{}", view.never_good().why(due), good.unwrap_or_default()));
        let passed = operator.holds(Ordering::Greater);
        return Judgement { passed, unreached, ..Judgement::failed() };
    }
    let Some(value) = times.values.value_at(rank) else { return Judgement::unknown(None, NO_DATA) };
    let at_least = times.may_be_more(value as f64);
    let observed = Observed { value: value as f64, unit: Unit::Nanos, at_least };
    let beyond = Some((due - rank).saturating_sub(never));
    let most = rank_of(p, due.saturating_add(open));
    if let Some(most) = times.most(most)
        && operator.holds(ordering(value)) == operator.holds(ordering(most))
        && (ordering(value) == ordering(most) || !operator.is_of_equality())
    {
        return Judgement { beyond, ..decided(operator, ordering(value), observed) };
    }
    let known =
        if at_least || open > 0 { of_least(operator, ordering(value)) } else { Some(ordering(value)) };
    let judgement = match known {
        Some(ordering) => decided(operator, ordering, observed),
        None => Judgement::unknown(Some(observed), may_be_longer(times.censored.count.max(open))),
    };
    Judgement { beyond, ..judgement }
}

/// Judges a percentile that has too few samples to be shown to hold, of which `never` were not answered well
/// and `open` more may have had any time.
fn of_few(
    (metric, operator): (&Metric, Operator),
    (p, limit): (f64, Nanos),
    times: &Times<'_>,
    (never, open): (u64, u64),
    view: &View<'_>,
    lacking: Lacking,
) -> Judgement {
    let count = times.values.count();
    let whole = lacking.needed.max(lacking.present.saturating_add(open));
    let rank = rank_of(p, whole);
    let beyond = Some((whole - rank).saturating_sub(never));
    let at_least = |value: u64| Observed { value: value as f64, unit: Unit::Nanos, at_least: true };
    match operator {
        // As if all that are lacking had been the fastest.
        Operator::Less | Operator::AtMost => {
            let rank = rank.saturating_sub(whole - lacking.present);
            if rank > count {
                let unreached = Some(format!("not reached: {}", view.never_good().why(lacking.present)));
                return Judgement { unreached, ..Judgement::failed() };
            }
            if let Some(value) = times.values.value_at(rank).filter(|_| rank > 0)
                && !operator.holds(value.cmp(&limit.0))
            {
                return Judgement { beyond, ..decided(operator, value.cmp(&limit.0), at_least(value)) };
            }
        }
        // As if they had been the slowest. Those without an answer so far may yet be slower than they seem.
        Operator::Greater | Operator::AtLeast if times.censored.count == 0 && rank <= count => {
            if let Some(value) = times.values.value_at(rank)
                && !operator.holds(value.cmp(&limit.0))
            {
                let observed = Observed { at_least: false, ..at_least(value) };
                return Judgement { beyond, ..decided(operator, value.cmp(&limit.0), observed) };
            }
        }
        _ => {}
    }
    if count == 0 {
        return Judgement::unknown(None, NO_DATA);
    }
    let present = figure::count(lacking.present);
    let reason = match lacking.needed {
        u64::MAX => format!("no number of samples shows {}", Shown(metric)),
        needed => format!("needs {} samples, has {present}", figure::count(needed)),
    };
    Judgement::unknown(None, reason)
}

/// The figure of the good answers alone.
fn of_good(metric: &Metric) -> Metric {
    match metric {
        Metric::Time(kind, figure, _) => Metric::Time(*kind, *figure, Among::Good),
        other => other.clone(),
    }
}

/// Judges a figure of times that is no percentile.
fn time(threshold: &Threshold, times: &Times<'_>, figure: Figure, limit: Nanos) -> Judgement {
    let Some(value) = times.values.figure(figure) else { return Judgement::unknown(None, NO_DATA) };
    let censored = times.censored.count > 0;
    if censored && figure == Figure::Stdev {
        let unanswered = figure::count(times.censored.count);
        let reason = format!("{unanswered} requests without an answer have no exact time");
        return Judgement::unknown(None, reason);
    }
    let at_least = match figure {
        Figure::Min => times.may_be_more(value),
        Figure::Mean | Figure::Max => censored,
        Figure::Percentile(_) | Figure::Stdev => false,
    };
    let observed = Observed { value, unit: Unit::Nanos, at_least };
    let ordering = value.total_cmp(&(limit.0 as f64));
    let known = if at_least { of_least(threshold.operator, ordering) } else { Some(ordering) };
    match known {
        Some(ordering) => decided(threshold.operator, ordering, observed),
        None => Judgement::unknown(Some(observed), may_be_longer(times.censored.count)),
    }
}

/// How a value lies to its limit, of which only a lower bound is known that lies so; `None` if it may lie on
/// both sides.
const fn of_least(operator: Operator, least: Ordering) -> Option<Ordering> {
    match (operator, least) {
        (_, Ordering::Greater) => Some(Ordering::Greater),
        // The value is the limit or more.
        (Operator::AtLeast | Operator::Less, Ordering::Equal) => Some(Ordering::Equal),
        _ => None,
    }
}

fn may_be_longer(unanswered: u64) -> String {
    format!("{} requests without an answer may have taken longer", figure::count(unanswered))
}

/// Judges a share of what has ended. `open` more requests are part of the whole, and may be part of the
/// share.
fn share(threshold: &Threshold, part: u64, ended: u64, open: u64, limit: Decimal) -> Judgement {
    let whole = ended.saturating_add(open);
    if whole == 0 {
        return Judgement::unknown(None, NO_DATA);
    }
    let value = part as f64 * 100.0 / whole as f64;
    let observed = Observed { value, unit: Unit::Percent, at_least: open > 0 };
    let ends = [part, part.saturating_add(open)];
    let ends = ends.map(|part| compare(u128::from(part) * 100, u128::from(whole), limit));
    between(threshold.operator, ends, open, observed)
}

/// Judges a figure that lies between two ends, whose order with the limit is known: it has the first if none
/// of the `open` requests counts, and the second if all of them do.
fn between(operator: Operator, [least, most]: [Ordering; 2], open: u64, observed: Observed) -> Judgement {
    // Between two ends on one side of the limit there is nothing on the other; equality is told at both.
    if operator.holds(least) == operator.holds(most) && (least == most || !operator.is_of_equality()) {
        return decided(operator, least, observed);
    }
    let requests = if open == 1 { "request" } else { "requests" };
    Judgement::unknown(Some(observed), format!("{} {requests} without an answer", figure::count(open)))
}

fn rate(threshold: &Threshold, view: &View<'_>, limit: Limit) -> Judgement {
    if view.length == Nanos::ZERO || (view.started == 0 && view.ended() == 0) {
        return Judgement::unknown(None, NO_DATA);
    }
    let value = view.completed as f64 / view.length.as_secs_f64();
    let observed = Observed { value, unit: Unit::PerSecond, at_least: false };
    let completed = u128::from(view.completed);
    let ordering = match limit {
        Limit::Rate(count, span) => {
            let part = completed * 1_000_000_000 * u128::from(span.seconds());
            compare(part, u128::from(view.length.0), count)
        }
        Limit::OfTarget(share) => match view.scheduled.filter(|scheduled| *scheduled > 0) {
            Some(scheduled) => compare(completed, u128::from(scheduled), share),
            None => return Judgement::unknown(Some(observed), "there is no target rate"),
        },
        _ => return Judgement::unknown(Some(observed), "it is not a rate"),
    };
    decided(threshold.operator, ordering, observed)
}

pub(super) fn decided(operator: Operator, ordering: Ordering, observed: Observed) -> Judgement {
    Judgement::told(operator.holds(ordering), Some(observed))
}

impl Counted {
    /// Returns `true` if its share is one of the requests that have ended.
    const fn is_of_ended(self) -> bool {
        matches!(
            self,
            Self::Errors(_)
                | Self::Total(Total::Ok | Total::Failed | Total::TimedOut | Total::Errors | Total::Checks)
        )
    }
}

impl Operator {
    /// Returns `true` if it asks whether a figure is its limit.
    const fn is_of_equality(self) -> bool {
        matches!(self, Self::Equal | Self::Unequal)
    }

    /// Returns `true` if the comparison holds between a figure and its limit that are so ordered.
    pub(crate) const fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
            Self::Equal => ordering.is_eq(),
            Self::Unequal => ordering.is_ne(),
        }
    }
}
