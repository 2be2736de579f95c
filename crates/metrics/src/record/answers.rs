//! When answers came within an interval.

use plimsoll_core::{Nanos, is_zero};
use serde::{Deserialize, Serialize};

/// When the first and the last answer of an interval came, since the start of the run. Whole responses,
/// failures that the target caused and the content of streams are answers; a timeout is none.
///
/// Workers note them once per pass of their loop, so that the first is late by a pass at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerTimes {
    /// The first answer.
    pub first: Nanos,
    /// Requests in flight just before the first answer: of each worker before its own first one.
    pub waiting: u64,
    /// The last answer.
    pub last: Nanos,
    /// The time that the last whole answer took since its request was sent; zero where that was not noted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took: Nanos,
    /// Of joined intervals: the longest time without an answer across one of the edges between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<AnswerPause>,
}

/// A time without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerPause {
    /// The last answer before it, since the start of the run.
    pub since: Nanos,
    /// The first answer after it.
    pub until: Nanos,
    /// Requests in flight just before that.
    pub waiting: u64,
}

impl AnswerTimes {
    /// A single answer, while so many requests were in flight.
    pub const fn at(at: Nanos, waiting: u64) -> Self {
        Self { first: at, waiting, last: at, took: Nanos::ZERO, pause: None }
    }

    /// Adds the answers to another worker, or another process, in the same interval.
    pub fn merge(mine: &mut Option<Self>, theirs: Option<Self>) {
        let Some(theirs) = theirs else { return };
        *mine = Some(match *mine {
            // A pause of one of them need not be one of both.
            Some(mine) => Self {
                first: mine.first.min(theirs.first),
                waiting: mine.waiting + theirs.waiting,
                last: mine.last.max(theirs.last),
                took: if theirs.last > mine.last { theirs.took } else { mine.took },
                pause: None,
            },
            None => theirs,
        });
    }

    /// Adds the answers of the interval that follows.
    pub fn join(mine: &mut Option<Self>, next: Option<Self>) {
        let Some(next) = next else { return };
        *mine = Some(match *mine {
            Some(mine) => {
                let between = AnswerPause { since: mine.last, until: next.first, waiting: next.waiting };
                let all = [mine.pause, Some(between), next.pause].into_iter().flatten();
                let pause = all.max_by_key(|pause| pause.until.since(pause.since));
                let took = if next.last >= mine.last { next.took } else { mine.took };
                Self { last: mine.last.max(next.last), took, pause, ..mine }
            }
            None => next,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of which the last one took as many nanoseconds as were waiting.
    fn between(first: u64, last: u64, waiting: u64) -> Option<AnswerTimes> {
        let took = Nanos(waiting);
        Some(AnswerTimes { first: Nanos(first), waiting, last: Nanos(last), took, pause: None })
    }

    #[test]
    fn workers_answer_together_and_intervals_in_turn() {
        let mut both = between(5, 9, 40);
        AnswerTimes::merge(&mut both, between(3, 7, 2));
        AnswerTimes::merge(&mut both, None);
        assert_eq!(both, between(3, 9, 42).map(|both| AnswerTimes { took: Nanos(40), ..both }));
        let mut joined = None;
        for next in [between(1, 2, 3), None, between(12, 19, 30), between(21, 30, 5)] {
            AnswerTimes::join(&mut joined, next);
        }
        let pause = Some(AnswerPause { since: Nanos(2), until: Nanos(12), waiting: 30 });
        let took = Nanos(5);
        assert_eq!(joined, Some(AnswerTimes { first: Nanos(1), waiting: 3, last: Nanos(30), took, pause }));
    }
}
