//! Standstills of a target: times in which it owed answers and gave none.

use plimsoll_core::{ErrorClass, Nanos, figure};

use crate::course::{answered, longest_answer};
use crate::{AnswerPause, AnswerTimes, Interval, Model, RunRecord};

/// The shortest silence that is a standstill.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// A silence is so many times as long as the usual longest wait for an answer.
const LONGER: u64 = 2;
/// Requests that have to be without an answer: a single one may hang by itself.
const ASKED: u64 = 3;
/// Requests that have to be without an answer where other answers are slow, too: chance makes several slow
/// ones follow each other. Where answers take exponential times, one in three million takes this many times
/// the mean.
const ASKED_OF_SLOW: u64 = 15;
/// Share of the time for which an answer is waited that one takes which comes nearly too late.
const NEARLY: f64 = 0.8;
/// Factor between such an answer and the median: where a queue grows evenly until its answers come too late,
/// the last one takes twice the median.
const LONGER_THAN_MEDIAN: f64 = 1.4;
/// Share of the users whose requests a standstill leaves without an answer, in the closed model: of fewer the
/// others may have had nothing left to ask.
const OF_USERS: f64 = 0.9;

/// A time in which a target owed answers and gave none.
///
/// In the closed model users that wait send nothing more, so that a target which stands still leaves few
/// requests without an answer. Their share says nothing of the time for which nobody was served.
///
/// A standstill of at least a second crosses an edge between intervals, and its begin and end are those of
/// the [answers](crate::AnswerTimes) on both sides. Only in a plan with longer intervals may one lie within
/// an interval, and is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// The last answer before it, since the start of the run. Where none of the requests before it waited for
    /// one, the end of the last interval without a request in flight.
    pub since: Nanos,
    /// The first answer after it; the end of the run without any.
    pub until: Nanos,
    /// Largest number of requests in flight, at the end of an interval or just before the first answer.
    pub in_flight: u64,
    /// `true` if it lasted to the end of the run, drain included.
    pub to_the_end: bool,
    /// The time after which its requests were given up; `None` if they were waited for to its end.
    pub patience: Option<Nanos>,
    /// `true` if answers before it had come to take as long as they were waited for. A target with a queue
    /// that grows then looks as one that stands still, and need not be one: its answers come too late.
    pub outgrown: bool,
}

impl Standstill {
    /// The standstill at the end of a run; `None` if there was none, or nothing was answered before.
    pub fn at_end(record: &RunRecord) -> Option<Self> {
        if record.awaits_pushes().is_some() {
            return None;
        }
        let cells: Vec<&Interval> = record.cells().collect();
        let last = silences(&cells).pop().filter(|silence| silence.is_last)?;
        let shortest = longest_answer(record)?.saturating_mul(LONGER);
        let in_flight = is_standstill(record, &cells, &last, Nanos(shortest))?;
        Some(Self { to_the_end: true, ..Self::new(record, &cells, &last, in_flight) })
    }

    /// The longest standstill of the measured part, the one [at the end](Self::at_end) before any other;
    /// `None` if there was none.
    pub fn longest(record: &RunRecord) -> Option<Self> {
        let longest = || Self::all(record).into_iter().max_by_key(|one| one.until.since(one.since));
        Self::at_end(record).or_else(longest)
    }

    /// The standstills of the measured part, in their order: times without an answer, though several requests
    /// were owed one, that took longer than answers usually do. None where requests mostly wait for messages
    /// that come by themselves: nobody owes those.
    pub fn all(record: &RunRecord) -> Vec<Self> {
        if record.awaits_pushes().is_some() {
            return Vec::new();
        }
        let cells: Vec<&Interval> = record.cells().collect();
        let Some(usual) = usual_longest(&cells) else { return Vec::new() };
        let shortest = Nanos(usual.saturating_mul(LONGER));
        let found = silences(&cells).into_iter().filter_map(|silence| {
            let in_flight = is_standstill(record, &cells, &silence, shortest)?;
            Some(Self::new(record, &cells, &silence, in_flight))
        });
        found.collect()
    }

    fn new(record: &RunRecord, cells: &[&Interval], silence: &Silence, in_flight: u64) -> Self {
        let timed_out = cells.iter().any(|cell| cell.timed_out > 0 && silence.share_of(cell) > 0.0);
        let patience = usual_patience(record).filter(|_| timed_out);
        Self {
            since: silence.since,
            until: silence.until,
            in_flight,
            to_the_end: false,
            patience,
            outgrown: patience.is_some_and(|patience| is_outgrown(record, silence.took, patience)),
        }
    }

    /// Returns a sentence that blames nobody: when no answer came, and the requests in flight.
    pub fn fact(&self) -> String {
        let since = figure::nanos(self.since);
        let until = match self.to_the_end {
            true => "on".to_owned(),
            false => format!("to {}", figure::nanos(self.until)),
        };
        format!("no answer from {since} {until}, with {}", self.in_flight_words())
    }

    fn in_flight_words(&self) -> String {
        let requests = if self.in_flight == 1 { "request" } else { "requests" };
        format!("{} {requests} in flight", figure::count(self.in_flight))
    }

    /// Returns a sentence with the begin, the end and the requests in flight.
    pub fn words(&self) -> String {
        let (since, until) = (figure::nanos(self.since), figure::nanos(self.until));
        let they = if self.in_flight == 1 { "it was" } else { "they were" };
        let in_flight = self.in_flight_words();
        let patience = self.patience.map(figure::nanos);
        match (self.to_the_end, patience) {
            (true, Some(patience)) if self.outgrown => format!(
                "the target is overloaded: answers took longer and longer, and from {since} on none came within \
                 the {patience} that each was waited for, with {in_flight}"
            ),
            (false, Some(patience)) if self.outgrown => format!(
                "answers took longer and longer, and from {since} to {until} none came within the {patience} that \
                 each was waited for, with {in_flight}"
            ),
            (true, Some(patience)) => format!(
                "the target stopped answering: no answer from {since} on, to the end at {until}, with {in_flight}, \
                 each waited for {patience}"
            ),
            (true, None) => {
                format!("the target stopped answering: {}; {they} waited for until {until}", self.fact())
            }
            (false, _) => self.fact(),
        }
    }
}

/// Failures of connections to a server that is gone, or behind a proxy that is left without one.
const GONE: [(ErrorClass, &str); 3] = [
    (ErrorClass::ConnectRefused, "every connection was refused"),
    (ErrorClass::Reset, "every connection was reset"),
    (ErrorClass::ClosedBeforeResponse, "every connection was closed without an answer"),
];

/// Returns a sentence on a target that is gone: from an instant on it refused every connection, or broke it
/// off, to the end of the load, after it had answered well before; `None` if it did not.
pub(crate) fn gone(record: &RunRecord) -> Option<String> {
    let cells: Vec<&Interval> = record.load_cells().collect();
    let last = cells.iter().rposition(|cell| cell.ok > 0)?;
    let failed =
        |cells: &[&Interval]| cells.iter().filter(|cell| !cell.warmup).map(|cell| cell.failed).sum::<u64>();
    let refused = failed(&cells[last + 1..]);
    let of = |class: ErrorClass| record.total.errors[class];
    let all: u64 = GONE.iter().map(|(class, _)| of(*class)).sum();
    let length = cells.last()?.at.since(cells[last].at);
    // Intervals do not tell classes apart: all failures after that instant, and no more than those before it
    // are others.
    let others = record.total.failed.saturating_sub(all);
    let is_gone = refused >= ASKED && length >= SHORTEST && others <= failed(&cells[..=last]);
    let whole = GONE.iter().find(|(class, _)| of(*class) == all);
    let what = whole.map_or("every connection was refused or broken off", |(_, words)| words);
    is_gone.then(|| {
        format!(
            "the target stopped answering: the last good answer came between {} and {}, and then {what} to the \
             end, for {} requests",
            figure::nanos(begin(cells[last])),
            figure::nanos(cells[last].at),
            // Some of them in the interval of that answer.
            figure::count(all),
        )
    })
}

/// A time without an answer, in which requests were in flight.
struct Silence {
    since: Nanos,
    until: Nanos,
    /// Requests in flight just before the first answer after it; zero where that was not noted.
    waiting: u64,
    /// The time that the last answer before it took; zero where that was not noted.
    took: Nanos,
    /// `true` if no answer came after it.
    is_last: bool,
}

impl Silence {
    /// The part of an interval's length that lies in it, from 0 to 1.
    fn share_of(&self, cell: &Interval) -> f64 {
        let part = self.until.min(cell.at).since(self.since.max(begin(cell)));
        if cell.length == Nanos::ZERO { 0.0 } else { part.0 as f64 / cell.length.0 as f64 }
    }
}

/// The times without an answer of some intervals that follow each other, in their order. None begins before
/// the last edge at which nothing was in flight.
fn silences(cells: &[&Interval]) -> Vec<Silence> {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return Vec::new() };
    let is_noted = cells.iter().any(|cell| cell.answers.is_some());
    let mut all = Vec::new();
    let mut note = |since: Nanos, until: Nanos, waiting: u64, took: Nanos, is_last: bool| {
        if until > since {
            all.push(Silence { since, until, waiting, took, is_last });
        }
    };
    let (mut since, mut took) = (begin(first), Nanos::ZERO);
    let mut gave_up = false;
    for cell in cells {
        if let Some(answers) = answers(cell, is_noted) {
            note(since, answers.first, answers.waiting, took, false);
            if let Some(AnswerPause { since, until, waiting }) = answers.pause {
                note(since, until, waiting, Nanos::ZERO, false);
            }
            (since, took, gave_up) = (answers.last, answers.took, false);
        }
        // Who timed out was owed an answer, too.
        gave_up |= cell.timed_out > 0;
        if cell.in_flight == 0 && !gave_up {
            since = since.max(cell.at);
        }
    }
    note(since, last.at, 0, took, true);
    all
}

/// Returns the number of requests in flight in a time without an answer, if that is a standstill.
fn is_standstill(record: &RunRecord, cells: &[&Interval], silence: &Silence, shortest: Nanos) -> Option<u64> {
    let in_load = cells.iter().filter(|cell| !cell.drain && silence.share_of(cell) > 0.0);
    let in_load: Vec<&Interval> = in_load.copied().collect();
    let end_of_load = in_load.last()?.at;
    // After the load nobody asks any more: what is left then may be a few requests that hang.
    let asked_for = silence.until.min(end_of_load).since(silence.since);
    let length = silence.until.since(silence.since);
    if in_load.iter().all(|cell| cell.warmup) || length < shortest.max(SHORTEST) || asked_for < shortest {
        return None;
    }
    let edges = cells.iter().filter(|cell| (silence.since..silence.until).contains(&cell.at));
    let in_flight = edges.map(|cell| cell.in_flight).fold(silence.waiting, u64::max);
    if in_flight == 0 {
        return None;
    }
    let enough = match is_calm_beside(cells, silence, shortest) {
        true => ASKED,
        false => ASKED_OF_SLOW,
    };
    let stands_still = match record.model {
        Model::Open => {
            let due = |cell: &&Interval| cell.started.max(cell.scheduled) as f64 * silence.share_of(cell);
            in_load.iter().map(due).sum::<f64>() >= enough as f64 || in_flight >= places(record)
        }
        // Users who wait ask no more: so many answers would have come meanwhile. At the end of a run that the
        // slowest answer is compared with, the number of those who wait is enough.
        Model::Closed => {
            // In a counted run users may have ended before the first edge.
            let at_first = |cell: &&Interval| cell.answers.map_or(0, |answers| answers.waiting);
            let most = cells.iter().map(|cell| cell.in_flight.max(at_first(cell))).max().unwrap_or(0);
            let missing = answers_per_second(cells, silence) * asked_for.as_secs_f64();
            in_flight as f64 >= most as f64 * OF_USERS && (silence.is_last || missing >= enough as f64)
        }
    };
    stands_still.then_some(in_flight)
}

/// The time after which requests without an answer were given up: the median of what they waited; `None` if
/// every request was answered.
fn usual_patience(record: &RunRecord) -> Option<Nanos> {
    let (times, answered) = (&record.total.service_time, answered(record));
    let unanswered = times.count().saturating_sub(answered);
    let median = (unanswered > 0).then(|| times.value_at(answered + unanswered.div_ceil(2)))?;
    median.map(Nanos)
}

/// Returns `true` if the last answer before a silence took nearly as long as requests are waited for, and
/// longer than answers do as a rule: a target that freezes stops between answers like all others.
fn is_outgrown(record: &RunRecord, took: Nanos, patience: Nanos) -> bool {
    let median = record.total.service_time.value_at(answered(record).div_ceil(2)).unwrap_or(0);
    took.0 as f64 >= patience.0 as f64 * NEARLY && took.0 as f64 >= median as f64 * LONGER_THAN_MEDIAN
}

/// Returns `true` if every answer was fast beside a time without any, and before and after its consequences.
fn is_calm_beside(cells: &[&Interval], silence: &Silence, shortest: Nanos) -> bool {
    let slow = shortest.max(SHORTEST).0 / LONGER;
    let after = silence.until + silence.until.since(silence.since);
    let beside = cells.iter().filter(|cell| cell.at <= silence.since || begin(cell) > after);
    beside.filter_map(|cell| cell.response_time).all(|[.., longest]| longest < slow)
}

/// Answers per second of the load outside of a time without any.
fn answers_per_second(cells: &[&Interval], silence: &Silence) -> f64 {
    let load = || cells.iter().filter(|cell| !cell.drain);
    let answers: u64 = load().map(|cell| cell.completed + cell.failed).sum();
    let time = |cell: &&Interval| cell.length.as_secs_f64() * (1.0 - silence.share_of(cell));
    answers as f64 / load().map(time).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// Requests that may be in flight at once.
fn places(record: &RunRecord) -> u64 {
    record.connections.limit.saturating_mul(record.connections.depth.max(1).into()).max(1)
}

/// The begin of an interval, since the start of the run.
const fn begin(interval: &Interval) -> Nanos {
    interval.at.since(interval.length)
}

/// When answers came in an interval. Where no interval `is_noted`, one with answers had them from its begin
/// to its end.
fn answers(interval: &Interval, is_noted: bool) -> Option<AnswerTimes> {
    let none = interval.completed == 0 && interval.failed == 0 && interval.content_events == 0;
    match interval.answers {
        None if is_noted || none => None,
        None => Some(AnswerTimes { last: interval.at, ..AnswerTimes::at(begin(interval), 0) }),
        noted => noted,
    }
}

/// The longest time of an answer in an interval, as three in four intervals with answers exceed it: those of
/// the intervals that follow a standstill do not hide the next one.
fn usual_longest(cells: &[&Interval]) -> Option<u64> {
    let answered = cells.iter().filter(|cell| cell.completed > 0);
    let mut longest: Vec<u64> =
        answered.filter_map(|cell| cell.response_time.map(|[.., longest]| longest)).collect();
    longest.sort_unstable();
    longest.get(longest.len() / 4).copied()
}
