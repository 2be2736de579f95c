//! One share of a run, as the coordinator sees the agent that has it.

use std::collections::BTreeSet;

use plimsoll_core::Nanos;

use super::{CLOCK_AGAIN, Notice, SUSPECT};
use crate::clock_estimate::ClockEstimate;
use crate::fabric::Now;
use crate::intervals::IntervalInbox;
use crate::message::{End, Line, Steer, TOO_LATE, Unsteered};
use crate::parts::PartInbox;

/// One agent, as the coordinator sees it.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: String,
    /// First shard of the agent, and the number of its shards.
    pub(super) shard: u32,
    pub(super) held: u32,
    pub(super) version: String,
    pub(super) cores: u32,
    pub(super) heard: Nanos,
    /// When its process last gave a sign of its own, as the agent says.
    pub(super) stirred: Nanos,
    pub(super) is_claimed: bool,
    pub(super) is_ready: bool,
    pub(super) armed: Option<u64>,
    pub(super) ordered: Option<Nanos>,
    /// The exchange under way: its number, and when it was sent on both clocks.
    pub(super) exchange: Option<(u32, Now)>,
    pub(super) next_exchange: u32,
    /// Exchanges that were answered.
    pub(super) exchanges: u32,
    pub(super) clock: Option<ClockEstimate>,
    pub(super) latest_clock: Option<ClockEstimate>,
    pub(super) next_clock: Nanos,
    pub(super) line: Option<Line>,
    pub(super) inbox: PartInbox,
    pub(super) intervals: IntervalInbox,
    /// Orders that it did not carry out.
    pub(super) unsteered: BTreeSet<u64>,
    /// Number of the values of the setup that its process has, and of those that it could not take.
    pub(super) values: u64,
    pub(super) outdated: u64,
    /// When it is sent those that it lacks.
    pub(super) next_values: Nanos,
    /// Set once the agent has ended without the latest values of the setup.
    pub(super) is_outdated: bool,
    /// `true` if the agent has sent parts or intervals since the last acknowledgement.
    pub(super) is_owed: bool,
    pub(super) is_suspect: bool,
    pub(super) is_lost: bool,
    /// Another agent has its share, or was asked to take it over: it is not leased any more.
    pub(super) is_ceded: bool,
    /// The agent was told to end, and stops.
    pub(super) is_leaving: bool,
    /// The share that it takes over, if it does.
    pub(super) takeover: Option<Takeover>,
}

/// Progress of an agent that takes over a share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takeover {
    /// Place of the share that it takes over.
    pub(super) of: usize,
    pub(super) asked: Nanos,
    /// When it has the share, since the start, once it was told.
    pub(super) from: Option<Nanos>,
    /// Set once the agent could not take the share over.
    pub(super) is_refused: bool,
}

impl Side {
    /// Returns `true` if its process was killed, or ended because it hung.
    pub(super) fn has_died(&self) -> bool {
        self.inbox.end().is_some_and(|end| end.exit.is_none())
    }

    /// Returns `true` if its process ended by itself and left nothing: one that has begun leaves a result.
    pub(super) fn is_unbegun(&self) -> bool {
        self.inbox.end().is_some_and(|end| end.exit.is_some()) && self.inbox.part().is_empty()
    }

    pub(super) fn is_done(&self) -> bool {
        let is_refused = self.takeover.is_some_and(|takeover| takeover.is_refused);
        is_refused
            || self.is_lost
            || self.inbox.end().is_some_and(|end| self.intervals.seen() >= end.intervals)
    }
}

/// Orders that a process did not carry out, and those that had not reached it when it ended. A stop that
/// comes too late changes nothing.
pub(super) fn missed_by(end: &End, orders: &[Steer]) -> Vec<Unsteered> {
    let is_missed =
        |steer: &&Steer| steer.number > end.steered && steer.at_ns < end.at_ns && !steer.command.is_stop();
    let missed = orders.iter().filter(is_missed);
    let missed = missed.map(|steer| Unsteered { number: steer.number, error: TOO_LATE.to_owned() });
    end.unsteered.iter().cloned().chain(missed).collect()
}

impl Side {
    /// The share of an agent that has not answered yet: its first shard, and their number.
    pub(super) fn new(name: String, (shard, held): (u32, u32), now: Now) -> Self {
        Self {
            name,
            shard,
            held,
            version: String::new(),
            cores: 0,
            heard: now.monotonic,
            stirred: now.monotonic,
            is_claimed: false,
            is_ready: false,
            armed: None,
            ordered: None,
            exchange: None,
            next_exchange: 0,
            exchanges: 0,
            clock: None,
            latest_clock: None,
            next_clock: now.monotonic + CLOCK_AGAIN,
            line: None,
            inbox: PartInbox::default(),
            intervals: IntervalInbox::default(),
            unsteered: BTreeSet::new(),
            values: 0,
            outdated: 0,
            next_values: Nanos::ZERO,
            is_outdated: false,
            is_owed: false,
            is_suspect: false,
            is_lost: false,
            is_ceded: false,
            is_leaving: false,
            takeover: None,
        }
    }

    /// Notes a message of the agent, and when its process last gave a sign of its own, if the message says
    /// that. Returns the news if the agent was silent until now.
    pub(super) fn note_sign(&mut self, stirred: Option<Nanos>, now: Now) -> Option<Notice> {
        self.heard = now.monotonic;
        self.stirred = self.stirred.max(stirred.unwrap_or_default());
        let is_idle = now.monotonic.since(self.stirred) > SUSPECT;
        let is_back = self.is_lost || self.is_suspect && !is_idle;
        if is_back {
            (self.is_suspect, self.is_lost) = (false, false);
        }
        is_back.then(|| Notice::Back(self.name.clone()))
    }

    /// Notes an order that it did not carry out. Returns the news if it was not known.
    pub(super) fn note_unsteered(&mut self, Unsteered { number, error }: Unsteered) -> Option<Notice> {
        let is_new = self.unsteered.insert(number);
        is_new.then(|| Notice::Unsteered { agent: self.name.clone(), error })
    }

    /// Notes that its process has the values of the setup with this number, or could not take them. Returns
    /// the news of that, once for each number.
    pub(super) fn note_values(&mut self, number: u64, error: Option<String>) -> Option<Notice> {
        let Some(error) = error else {
            self.values = self.values.max(number);
            return None;
        };
        let is_new = self.outdated < number;
        self.outdated = self.outdated.max(number);
        is_new.then(|| Notice::Outdated { agent: self.name.clone(), error })
    }

    /// Takes the answer to the exchange under way. Duplicate and late answers are ignored.
    pub(super) fn note_clock(&mut self, exchange: u32, there: Nanos, now: Now, is_before_start: bool) {
        let Some((_, sent)) = self.exchange.take_if(|(number, _)| *number == exchange) else { return };
        let estimate = ClockEstimate::of_exchange(sent.unix, now.monotonic.since(sent.monotonic), there);
        self.exchanges += 1;
        if is_before_start {
            self.clock = Some(self.clock.map_or(estimate, |best| best.better(estimate)));
        }
        self.latest_clock = Some(estimate);
    }
}
