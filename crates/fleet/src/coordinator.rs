//! The coordinator of one run as a state machine: from the claims to the results of all agents.

mod side;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_core::Nanos;
use serde::Deserialize;

use crate::agent::hash;
use crate::clock_estimate::ClockEstimate;
use crate::fabric::{Delivery, Now};
use crate::message::{
    Beat, BeatStage, End, FileReference, FromAgent, Here, Line, MessageError, Order, Piece, Prepare, Steer,
    SteerCommand, ToAgent, WIRE_VERSION, Word, decode, encode,
};
use crate::parts::PIECE_BYTES;
use crate::subject::{self, Subject, parse};
use side::{Side, Takeover, missed_by};

/// Time after which an order without an answer is repeated.
const REPEAT: Nanos = Nanos::from_millis(300);
/// Exchanges by which the clock of an agent is estimated.
const EXCHANGES: u32 = 16;
/// Interval between two exchanges with an agent once the load has begun, which show the drift of its clock.
const CLOCK_AGAIN: Nanos = Nanos::from_secs(10);
/// Longest wait for the answer to a claim.
const CLAIMING: Nanos = Nanos::from_secs(5);
/// Longest silence of an agent before the load has begun.
const SILENCE: Nanos = Nanos::from_secs(10);
/// Longest time for an agent to get ready. Names of targets and large files take some.
const PREPARING: Nanos = Nanos::from_secs(180);
/// Longest time for the exchanges by which clocks are estimated.
const ESTIMATING: Nanos = Nanos::from_secs(10);
/// Time from the order to begin to the start: within it all agents answer and hear the confirmation.
const LEAD: Nanos = Nanos::from_secs(4);
/// Part of the lead that remains after the deadline for answers.
const COMMIT: Nanos = Nanos::from_secs(1);
/// Interval between two beats.
const BEAT: Nanos = Nanos::from_secs(1);
/// Interval between two beats until all agents have begun.
const FAST_BEAT: Nanos = Nanos::from_millis(100);
/// Silence after which an agent is suspect.
const SUSPECT: Nanos = Nanos::from_secs(3);
/// Silence after which an agent is considered lost.
const LOST: Nanos = Nanos::from_secs(10);
/// Grid of the instants at which shares are taken over, since the start.
const BOUNDARY: Nanos = Nanos::from_secs(5);
/// Least time from the order to take a share over to the instant at which it applies.
const TAKEOVER_LEAD: Nanos = Nanos::from_secs(3);
/// Longest time for an agent to get ready for a share that it takes over.
const JOINING: Nanos = Nanos::from_secs(60);
/// Most attempts to have shares taken over, for each agent of the run.
const MOST_TAKEOVERS: usize = 8;
/// Interval between two ticks after which the coordinator itself was held up: what came meanwhile is still
/// to be read, so that agents were not silent.
const HELD_UP: Nanos = Nanos::from_secs(1);

/// Policy after the loss of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLoss {
    /// All others stop.
    #[default]
    Abort,
    /// All others go on with their shards.
    Continue,
    /// All others go on, and one of them takes its shards over.
    Takeover,
}

impl OnLoss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Abort, Self::Continue, Self::Takeover];

    /// The word for it, in flags and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Continue => "continue",
            Self::Takeover => "takeover",
        }
    }
}

/// A run that is to be carried out.
#[derive(Clone, Debug)]
pub struct CoordinatorOptions {
    /// Name of the run: a word of subjects.
    pub run: String,
    /// Names of its agents, and the number of shards of each, which is at least one. They have them in this
    /// order.
    pub agents: Vec<(String, u32)>,
    /// Threads of each shard.
    pub threads: u32,
    /// The run that all agents carry out; the coordinator fills in their shards.
    pub prepare: Prepare,
    /// Files of the run: their names and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// Policy after a loss.
    pub on_loss: OnLoss,
    /// Silence of the coordinator after which agents stop.
    pub orphan: Nanos,
    /// Name under which agents stay claimed after the run, for as long as `orphan` without another one of
    /// the same name: [`released`] frees them. `None` if they are free after it.
    pub hold: Option<String>,
}

/// Messages that free agents which are held under a name.
pub fn released(holder: &str, agents: &[String]) -> Vec<Delivery> {
    let free = |agent: &String| {
        let message = ToAgent { wire: WIRE_VERSION, run: holder.to_owned(), share: 0, order: Order::Release };
        Delivery { subject: subject::orders(agent), payload: encode(&message, &[]) }
    };
    agents.iter().map(free).collect()
}

/// An action of the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorAction {
    /// Publish a message.
    Publish {
        /// Subject of the message.
        subject: String,
        /// Content of the message.
        payload: Vec<u8>,
    },
    /// The next interval of an agent, as its process reported it. Each comes once, and those of one agent in
    /// order.
    Interval {
        /// Place of the agent among those of the run.
        place: usize,
        /// Bytes of the interval.
        interval: Vec<u8>,
    },
    /// Notify the user.
    Notice(Notice),
}

/// An event that the user of a run sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// All agents are ready, and begin at this instant of the coordinator's Unix time.
    Begins {
        /// The instant in nanoseconds.
        at_unix_ns: u64,
    },
    /// An agent has been silent for a while.
    Suspect(String),
    /// A suspect or lost agent has sent a message again.
    Back(String),
    /// The agent is considered lost.
    Lost(String),
    /// The process of the agent was killed, or hung, and its shard is lost.
    Died(String),
    /// The process of the agent ended before it had begun, mostly because it was too late for the start.
    Unbegun(String),
    /// The agent was told to end, and stops its part of the load.
    Leaves(String),
    /// The agent did not carry out an order.
    Unsteered {
        /// The agent.
        agent: String,
        /// The reason.
        error: String,
    },
    /// The process of the agent has not taken the latest values of the setup, and so far goes on with others.
    Outdated {
        /// The agent.
        agent: String,
        /// The reason.
        error: String,
    },
    /// The agent has ended.
    Ended(String),
    /// An agent is asked to take over what a lost one had.
    Asked {
        /// Place of its new share among those of the run.
        place: usize,
        /// The agent.
        agent: String,
        /// The lost one.
        lost: String,
        /// First of its shards.
        shard: u32,
    },
    /// An agent has the shards of a lost one from this instant on.
    TakesOver {
        /// Place of its new share.
        place: usize,
        /// The agent.
        agent: String,
        /// The instant since the start.
        from: Nanos,
    },
    /// No agent takes over what a lost one had.
    NotTaken {
        /// The lost one.
        lost: String,
        /// The reason.
        reason: &'static str,
    },
}

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorStage {
    /// Agents are being claimed.
    Claiming,
    /// Agents get ready.
    Preparing,
    /// Their clocks are compared with ours.
    Estimating,
    /// Agents receive the instant of the start.
    Arming,
    /// Agents have begun, or will at the agreed instant.
    Begun,
    /// Every agent has ended or is lost, or none has begun: see [`Coordinator::refusals`].
    Over,
}

/// Reason why an agent did not take part; no agent begins then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The agent.
    pub agent: String,
    /// The reason.
    pub error: String,
    /// Remedy, if there is one.
    pub hint: Option<String>,
    /// `true` if the run itself is wrong.
    pub is_usage: bool,
}

/// End of an agent's part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberEnd {
    /// The agent's part has not ended.
    None,
    /// The process of the run has ended.
    Ended(End),
    /// The process of the run was killed, was ended because it hung, or stopped because another agent has its
    /// share. The part that it had saved is all there is.
    Died(End),
    /// The agent was told to end, and has stopped its process: the part has everything that was sent.
    Left(End),
    /// The agent fell silent.
    Lost,
}

/// State of an agent while the load goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStanding {
    /// The agent is running.
    GoingOn,
    /// The agent has been silent for a while.
    Suspect,
    /// The agent is considered lost.
    Lost,
    /// The agent has ended, and all of its result has arrived.
    Ended,
}

/// An agent of a run.
#[derive(Clone, Debug)]
pub struct Member {
    /// Name of the agent.
    pub name: String,
    /// Version of its program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
    /// First shard of the agent, counted from zero, and the number of its shards.
    pub shards: (u32, u32),
    /// When it has them, since the start: from when, if it has taken them over, and until when, if another
    /// one has. [`Nanos::MAX`] stands for never: it was asked to take them over, and did not.
    pub span: (Nanos, Option<Nanos>),
    /// Clock of the agent, as it was estimated before the start.
    pub clock: Option<ClockEstimate>,
    /// Clock of the agent, as it was estimated last.
    pub latest_clock: Option<ClockEstimate>,
    /// Latest figures of the agent.
    pub line: Option<Line>,
    /// Changes of the load that it did not carry out.
    pub missed_changes: u64,
    /// End of the agent's part of the run.
    pub end: MemberEnd,
    /// The last part of its result that has arrived: bytes of a saved run; empty if there is none.
    pub part: Vec<u8>,
    /// Number of that part.
    pub arrived: u64,
}

/// One run on several agents.
#[derive(Debug)]
pub struct Coordinator {
    options: CoordinatorOptions,
    files: BTreeMap<String, Arc<Vec<u8>>>,
    stage: CoordinatorStage,
    entered: Nanos,
    sides: Vec<Side>,
    /// Place of each agent, by its name.
    places: HashMap<String, usize>,
    /// The beginning on our own clock.
    start: Option<Nanos>,
    orders: Vec<Steer>,
    /// The latest values of the setup, if they are not those of its files, and their number.
    values: Vec<u8>,
    values_number: u64,
    values_set: Nanos,
    next_beat: Nanos,
    /// When agents are told next what has arrived of them.
    next_arrived: Nanos,
    refusals: Vec<Refusal>,
    is_stopping: bool,
    ticked: Nanos,
}

impl Coordinator {
    /// A run that begins with the claims of its agents.
    pub fn new(options: CoordinatorOptions, now: Now) -> Self {
        let mut options = options;
        let mut files = BTreeMap::new();
        for (name, content) in std::mem::take(&mut options.files) {
            let (sha256, bytes) = (hash(&content), content.len() as u64);
            options.prepare.files.push(FileReference { name, sha256: sha256.clone(), bytes });
            files.insert(sha256, Arc::new(content));
        }
        options.prepare.of = options.agents.iter().map(|(_, held)| held).sum();
        options.prepare.threads = options.threads;
        options.prepare.is_leased = options.on_loss == OnLoss::Takeover;
        let mut first = 0;
        let mut side = |(name, held): &(String, u32)| {
            first += held;
            Side::new(name.clone(), (first - held, *held), now)
        };
        Self {
            sides: options.agents.iter().map(&mut side).collect(),
            places: options.agents.iter().map(|(name, _)| name.clone()).zip(0..).collect(),
            options,
            files,
            stage: CoordinatorStage::Claiming,
            entered: now.monotonic,
            start: None,
            orders: Vec::new(),
            values: Vec::new(),
            values_number: 0,
            values_set: Nanos::ZERO,
            next_beat: Nanos::ZERO,
            next_arrived: Nanos::ZERO,
            refusals: Vec::new(),
            is_stopping: false,
            ticked: now.monotonic,
        }
    }

    /// Subjects to subscribe to.
    pub fn subscriptions(&self) -> [String; 2] {
        [subject::words(&self.options.run), subject::ALL_HERE.to_owned()]
    }

    /// Returns the stage of the run.
    pub const fn stage(&self) -> CoordinatorStage {
        self.stage
    }

    /// The beginning of the load in Unix time, once it is known.
    pub const fn start(&self) -> Option<Nanos> {
        self.start
    }

    /// Returns `true` once all agents were told to stop.
    pub const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Reasons why no agent has begun. Empty if the load has begun, or was given up on request.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// All agents in the order of their shards.
    pub fn members(&self) -> Vec<Member> {
        let parts = self.sides.iter().map(|side| side.inbox.part().to_vec());
        self.sketches().into_iter().zip(parts).map(|(member, part)| Member { part, ..member }).collect()
    }

    /// Returns all agents in the order of their shards, without the parts of their results, which may be
    /// large.
    pub fn sketches(&self) -> Vec<Member> {
        let member = |side: &Side| Member {
            name: side.name.clone(),
            version: side.version.clone(),
            cores: side.cores,
            shards: (side.shard, side.held),
            span: (Nanos::ZERO, None),
            clock: side.clock,
            latest_clock: side.latest_clock,
            line: side.line.clone(),
            missed_changes: self.missed_changes(side),
            end: match side.inbox.end() {
                Some(end) if end.is_left && end.exit.is_some() => MemberEnd::Left(end.clone()),
                Some(end) if end.exit.is_none() || side.is_ceded => MemberEnd::Died(end.clone()),
                Some(end) => MemberEnd::Ended(end.clone()),
                None if side.is_lost => MemberEnd::Lost,
                None => MemberEnd::None,
            },
            part: Vec::new(),
            arrived: side.inbox.arrived(),
        };
        let spans = (0..self.sides.len()).map(|place| self.span(place));
        self.sides.iter().zip(spans).map(|(side, span)| Member { span, ..member(side) }).collect()
    }

    /// Number of changes of the load that a side did not carry out.
    fn missed_changes(&self, side: &Side) -> u64 {
        let changes = self.orders.iter().filter(|steer| !steer.command.is_stop());
        changes.filter(|steer| side.unsteered.contains(&steer.number)).count() as u64
    }

    /// When a side has its shards: from when, and until when if another one has them after it.
    fn span(&self, place: usize) -> (Nanos, Option<Nanos>) {
        let from = match self.sides[place].takeover {
            Some(takeover) => takeover.from.unwrap_or(Nanos::MAX),
            None => Nanos::ZERO,
        };
        let (mut last, mut until) = (place, None);
        while let (None, Some(next)) = (until, self.taker_of(last)) {
            until = self.sides[next].takeover.and_then(|takeover| takeover.from);
            last = next;
        }
        (from, until)
    }

    /// Place of the side that takes over from this one.
    fn taker_of(&self, place: usize) -> Option<usize> {
        self.sides.iter().position(|side| side.takeover.is_some_and(|takeover| takeover.of == place))
    }

    /// State of each agent, in the order of their shards.
    pub fn standings(&self) -> impl Iterator<Item = (&str, AgentStanding)> {
        self.sides.iter().map(|side| {
            let standing = match () {
                () if (side.has_died() || side.is_ceded) && side.is_done() => AgentStanding::Lost,
                () if side.inbox.end().is_some() && side.is_done() => AgentStanding::Ended,
                () if side.is_lost => AgentStanding::Lost,
                () if side.is_suspect => AgentStanding::Suspect,
                () => AgentStanding::GoingOn,
            };
            (&*side.name, standing)
        })
    }

    /// Names of agents that have ended without the latest values of the setup, though they had time to take
    /// them.
    pub fn outdated(&self) -> Vec<&str> {
        self.sides.iter().filter(|side| side.is_outdated).map(|side| &*side.name).collect()
    }

    /// Names of agents whose process ended before it had begun, so that their shards were missing from the
    /// start.
    pub fn unbegun(&self) -> impl Iterator<Item = &str> {
        self.sides.iter().filter(|side| side.is_unbegun()).map(|side| &*side.name)
    }

    /// Number of intervals that agents dropped, because they were not taken in time.
    pub fn missing_intervals(&self) -> u64 {
        self.sides.iter().map(|side| side.intervals.missing()).sum()
    }

    /// Gives all agents an order that applies at an instant since the start. Before the load has begun only a
    /// stop has an effect: no agent begins.
    pub fn steer(&mut self, command: SteerCommand, at: Nanos, now: Now) -> Vec<CoordinatorAction> {
        match self.stage {
            CoordinatorStage::Over => Vec::new(),
            CoordinatorStage::Begun => {
                self.is_stopping |= command.is_stop();
                let number = self.orders.len() as u64 + 1;
                self.orders.push(Steer { number, at_ns: at.0, command });
                vec![self.beat(now)]
            }
            _ if command.is_stop() => self.give_up(now),
            _ => Vec::new(),
        }
    }

    /// Gives the process of every agent other values of the setup, as soon as it can take some. Agents that
    /// join later get them, too.
    pub fn set_values(&mut self, values: Vec<u8>, now: Now) {
        (self.values, self.values_set) = (values, now.monotonic);
        self.values_number += 1;
        self.sides.iter_mut().for_each(|side| side.next_values = Nanos::ZERO);
    }

    /// Takes a message.
    pub fn hear(&mut self, delivery: &Delivery, now: Now) -> Vec<CoordinatorAction> {
        let (run, agent) = match parse(&delivery.subject) {
            Some(Subject::Word { run, agent }) => (run, agent),
            Some(Subject::Here(_)) => {
                return Here::read(delivery).map_or_else(Vec::new, |here| self.meet(&here, now));
            }
            _ => return Vec::new(),
        };
        if !self.places.contains_key(agent) {
            return Vec::new();
        }
        // Messages after the end change nothing.
        if run != self.options.run || self.stage == CoordinatorStage::Over {
            return Vec::new();
        }
        match decode::<FromAgent>(&delivery.payload) {
            // The broker restricts each agent to its own subject; the message has to agree with it.
            Ok((said, body)) if said.agent == agent && said.run == run => {
                match self.side_of(agent, said.share) {
                    Some(place) => self.take(place, said.word, body, now),
                    None => Vec::new(),
                }
            }
            Err(error @ MessageError::WrongWire { .. }) => {
                let place = self.places[agent];
                self.refuse(place, error.to_string(), Some(SAME_VERSION.to_owned()), false);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Place of the share of an agent with this number: the one that it began with has the number zero, those
    /// that were taken over have their place.
    fn side_of(&self, agent: &str, share: u32) -> Option<usize> {
        match share {
            0 => self.places.get(agent).copied(),
            share => Some(share as usize).filter(|&place| {
                self.sides.get(place).is_some_and(|side| side.takeover.is_some() && side.name == agent)
            }),
        }
    }

    /// Takes the sign of life of an agent, which counts while it is claimed by this run, for all of its
    /// shares.
    fn meet(&mut self, here: &Here, now: Now) -> Vec<CoordinatorAction> {
        let mut actions = Vec::new();
        if here.run.as_ref() != Some(&self.options.run) || self.stage == CoordinatorStage::Over {
            return actions;
        }
        let stirred = Nanos(now.monotonic.0.saturating_sub(here.silent_ns));
        for place in 0..self.sides.len() {
            let side = &mut self.sides[place];
            if side.name != here.agent {
                continue;
            }
            actions.extend(side.note_sign(Some(stirred), now).map(CoordinatorAction::Notice));
            if here.is_leaving {
                actions.extend(self.note_leaving(place, now));
            }
            let side = &self.sides[place];
            if self.options.on_loss != OnLoss::Takeover || side.is_done() {
                continue;
            }
            // A share that was ceded is never leased again.
            let order = if side.is_ceded { Order::Cede } else { Order::Lease { at_ns: here.at_ns } };
            actions.push(self.order(place, order, &[]));
        }
        actions
    }

    /// Notes that an agent was told to end. Its part of the load is as that of a lost one from now on, except
    /// that all of what it has sent is told.
    fn note_leaving(&mut self, place: usize, now: Now) -> Vec<CoordinatorAction> {
        let has_begun = self.stage == CoordinatorStage::Begun;
        let side = &mut self.sides[place];
        if side.is_done() || side.inbox.end().is_some() || std::mem::replace(&mut side.is_leaving, true) {
            return Vec::new();
        }
        if !has_begun {
            let hint = Some("name other agents: --agents A,B".to_owned());
            self.refuse(place, "it was told to end".to_owned(), hint, false);
            return Vec::new();
        }
        let notice = CoordinatorAction::Notice(Notice::Leaves(side.name.clone()));
        [self.follow_loss(place, now), vec![notice]].concat()
    }

    fn take(&mut self, place: usize, word: Word, body: &[u8], now: Now) -> Vec<CoordinatorAction> {
        let side = &mut self.sides[place];
        let name = side.name.clone();
        let is_of_process = matches!(word, Word::Line(_) | Word::Interval { .. });
        let back = side.note_sign(is_of_process.then_some(now.monotonic), now);
        let mut actions: Vec<CoordinatorAction> = back.into_iter().map(CoordinatorAction::Notice).collect();
        match word {
            Word::Claimed { version, cores } => {
                (side.is_claimed, side.version, side.cores) = (true, version, cores);
            }
            // A refusal ends the takeover, not the run.
            Word::Busy { .. } | Word::Refused { .. } | Word::Nothing if side.takeover.is_some() => {
                actions.extend(self.give_back(place, now));
            }
            Word::Busy { run } => {
                let hint = "wait for its end, or name other agents: --agents A,B".to_owned();
                self.refuse(place, format!("it is busy with run {run}"), Some(hint), false);
            }
            Word::WrongWire { version } => {
                let error = format!("it is Plimsoll {version}, which speaks another version of the wire");
                self.refuse(place, error, Some(SAME_VERSION.to_owned()), false);
            }
            Word::Refused { error, hint, is_usage } => self.refuse(place, error, hint, is_usage),
            Word::Want { sha256, offset } => {
                if let Some(file) = self.files.get(&sha256) {
                    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
                    let until = (from + PIECE_BYTES).min(file.len());
                    let file = Arc::clone(file);
                    actions.push(self.order(place, Order::Piece { sha256, offset }, &file[from..until]));
                }
            }
            Word::Ready => side.is_ready = true,
            Word::Clock { exchange, unix_ns } => {
                let is_estimating = self.stage == CoordinatorStage::Estimating;
                side.note_clock(exchange, Nanos(unix_ns), now, is_estimating);
                if is_estimating {
                    actions.extend(self.exchange(place, now));
                }
            }
            Word::Armed { start_at_unix_ns } => {
                let is_first = side.armed.replace(start_at_unix_ns).is_none();
                if let Some(from) = side.takeover.and_then(|takeover| takeover.from).filter(|_| is_first) {
                    side.stirred = now.monotonic;
                    actions.push(CoordinatorAction::Notice(Notice::TakesOver { place, agent: name, from }));
                }
            }
            Word::Line(line) => {
                if side.line.as_ref().is_none_or(|last| last.elapsed_s <= line.elapsed_s) {
                    side.line = Some(line);
                }
            }
            Word::Interval { number, first } => {
                side.is_owed = true;
                if side.intervals.take(number, first) {
                    actions.push(CoordinatorAction::Interval { place, interval: body.to_vec() });
                }
            }
            Word::Part(piece) => actions.extend(self.take_part(place, &piece, body, now)),
            Word::Unsteered(unsteered) => {
                actions.extend(side.note_unsteered(unsteered).map(CoordinatorAction::Notice));
            }
            Word::Values { number, error } => {
                actions.extend(side.note_values(number, error).map(CoordinatorAction::Notice));
            }
            Word::Preparing | Word::Nothing | Word::Saved { .. } => {}
        }
        actions.extend(self.advance(now));
        actions
    }

    fn take_part(&mut self, place: usize, piece: &Piece, body: &[u8], now: Now) -> Vec<CoordinatorAction> {
        // The sign of life that says so may have been lost.
        let is_left = piece.end.as_ref().is_some_and(|end| end.is_left);
        let left = if is_left { self.note_leaving(place, now) } else { Vec::new() };
        let side = &mut self.sides[place];
        side.is_owed = true;
        let was_over = side.inbox.end().is_some();
        let is_whole = side.inbox.take(piece, body);
        let has_ended = side.inbox.end().is_some() && !was_over;
        let is_unbegun = side.is_unbegun();
        // What follows from a share that was ceded or left was done then.
        let is_loss = has_ended && (side.has_died() || is_unbegun) && !side.is_ceded && !side.is_leaving;
        let notice = match () {
            () if is_loss && is_unbegun => Notice::Unbegun,
            () if is_loss => Notice::Died,
            () => Notice::Ended,
        };
        let notice = has_ended.then(|| CoordinatorAction::Notice(notice(side.name.clone())));
        let had_time = now.monotonic.since(self.values_set) > SUSPECT;
        side.is_outdated |= has_ended && had_time && side.values < self.values_number;
        let missed = side.inbox.end().filter(|_| has_ended).map(|end| missed_by(end, &self.orders));
        let missed = missed.unwrap_or_default().into_iter();
        let unsteered: Vec<Notice> = missed.filter_map(|missed| side.note_unsteered(missed)).collect();
        // Confirmed at once, so that nothing is sent twice, and again in case the confirmation is lost.
        let is_repeated = piece.piece + 1 == piece.pieces;
        let arrived = (is_whole || is_repeated).then(|| self.acknowledge(place));
        let followed = if is_loss { self.follow_loss(place, now) } else { Vec::new() };
        let unsteered = unsteered.into_iter().map(CoordinatorAction::Notice);
        left.into_iter().chain(followed).chain(unsteered).chain(notice).chain(arrived).collect()
    }

    /// Tells an agent which of its parts and intervals have arrived. If that is lost, they come again, and it
    /// is owed again.
    fn acknowledge(&mut self, place: usize) -> CoordinatorAction {
        let side = &mut self.sides[place];
        side.is_owed = false;
        let arrived = Order::Arrived { part: side.inbox.arrived(), interval: side.intervals.seen() };
        self.order(place, arrived, &[])
    }

    /// Lets time pass. Call it at least every 50 ms.
    pub fn tick(&mut self, now: Now) -> Vec<CoordinatorAction> {
        if !matches!(self.stage, CoordinatorStage::Begun | CoordinatorStage::Over) {
            self.note_silent(now);
        }
        let held_up = now.monotonic.since(std::mem::replace(&mut self.ticked, now.monotonic));
        if held_up > HELD_UP {
            for side in &mut self.sides {
                side.heard = (side.heard + held_up).min(now.monotonic);
                side.stirred = (side.stirred + held_up).min(now.monotonic);
            }
        }
        let mut actions = self.advance(now);
        match self.stage {
            CoordinatorStage::Claiming | CoordinatorStage::Preparing | CoordinatorStage::Arming => {
                for place in 0..self.sides.len() {
                    actions.extend(self.repeat_order(place, now));
                }
            }
            CoordinatorStage::Estimating => {
                for place in 0..self.sides.len() {
                    actions.extend(self.exchange(place, now));
                }
            }
            CoordinatorStage::Begun => {
                actions.extend(self.look_for_losses(now));
                for place in 0..self.sides.len() {
                    actions.extend(self.hand_over(place, now));
                }
                for place in 0..self.sides.len() {
                    actions.extend(self.give_values(place, now));
                    if !self.sides[place].is_done() && now.monotonic >= self.sides[place].next_clock {
                        self.sides[place].next_clock = now.monotonic + CLOCK_AGAIN;
                        actions.extend(self.exchange(place, now));
                    }
                }
            }
            CoordinatorStage::Over => {}
        }
        if now.monotonic >= self.next_beat && self.stage != CoordinatorStage::Over {
            actions.push(self.beat(now));
        }
        if now.monotonic >= self.next_arrived && self.stage == CoordinatorStage::Begun {
            self.next_arrived = now.monotonic + BEAT;
            let owed: Vec<usize> = (0..self.sides.len()).filter(|&place| self.sides[place].is_owed).collect();
            actions.extend(owed.into_iter().map(|place| self.acknowledge(place)));
        }
        actions
    }

    /// Enters the next stage once everything that it needs is there.
    fn advance(&mut self, now: Now) -> Vec<CoordinatorAction> {
        use CoordinatorStage as Stage;
        let waited = now.monotonic.since(self.entered);
        if !matches!(self.stage, Stage::Begun | Stage::Over) && !self.refusals.is_empty() {
            return self.give_up(now);
        }
        let all = |is: &dyn Fn(&Side) -> bool| self.sides.iter().all(is);
        match self.stage {
            Stage::Claiming if all(&|side| side.is_claimed) => self.enter(Stage::Preparing, now),
            Stage::Preparing if all(&|side| side.is_ready) => self.enter(Stage::Estimating, now),
            Stage::Estimating
                if all(&|side| side.exchanges >= EXCHANGES)
                    || waited > ESTIMATING && all(&|side| side.clock.is_some()) =>
            {
                self.start = Some(now.unix + LEAD);
                self.enter(Stage::Arming, now);
            }
            Stage::Arming => {
                let start = self.start.unwrap_or(now.unix);
                let is_armed = |side: &Side| side.armed == side.clock.map(|clock| clock.there(start).0);
                if all(&is_armed) && waited <= LEAD - COMMIT {
                    self.enter(Stage::Begun, now);
                    let notice = Notice::Begins { at_unix_ns: start.0 };
                    return vec![self.beat(now), CoordinatorAction::Notice(notice)];
                }
                if waited > LEAD - COMMIT {
                    let silent = self.sides.iter().position(|side| !is_armed(side)).unwrap_or(0);
                    let error = "it did not acknowledge the start in time, so no agent began";
                    self.refuse(silent, error.to_owned(), None, false);
                    return self.give_up(now);
                }
            }
            Stage::Begun if all(&Side::is_done) => {
                self.enter(Stage::Over, now);
                return self.last_words(now);
            }
            _ => {}
        }
        Vec::new()
    }

    fn enter(&mut self, stage: CoordinatorStage, now: Now) {
        (self.stage, self.entered) = (stage, now.monotonic);
        for side in &mut self.sides {
            side.ordered = None;
            (side.heard, side.stirred) = (now.monotonic, now.monotonic);
            side.next_clock = now.monotonic + CLOCK_AGAIN;
        }
    }

    /// Refuses for those that do not answer.
    fn note_silent(&mut self, now: Now) {
        let waited = now.monotonic.since(self.entered);
        for place in 0..self.sides.len() {
            let side = &self.sides[place];
            let silence = now.monotonic.since(side.heard);
            let error = match self.stage {
                CoordinatorStage::Claiming if !side.is_claimed && waited > CLAIMING => {
                    "there is no such agent, or it does not answer"
                }
                CoordinatorStage::Preparing if !side.is_ready && silence > SILENCE => {
                    "it does not answer any more"
                }
                CoordinatorStage::Preparing if !side.is_ready && waited > PREPARING => {
                    "it does not get ready: names of targets are resolved, connections opened and data read"
                }
                CoordinatorStage::Estimating if silence > SILENCE => "it does not answer any more",
                _ => continue,
            };
            let hint = "`plimsoll fleet list` shows which agents there are".to_owned();
            self.refuse(place, error.to_owned(), Some(hint), false);
        }
    }

    fn refuse(&mut self, place: usize, error: String, hint: Option<String>, is_usage: bool) {
        let agent = self.sides[place].name.clone();
        let has_begun = matches!(self.stage, CoordinatorStage::Begun | CoordinatorStage::Over);
        if !has_begun && self.refusals.iter().all(|refusal| refusal.agent != agent) {
            self.refusals.push(Refusal { agent, error, hint, is_usage });
        }
    }

    /// Ends before any agent has begun.
    fn give_up(&mut self, now: Now) -> Vec<CoordinatorAction> {
        self.enter(CoordinatorStage::Over, now);
        self.last_words(now)
    }

    /// Releases all agents. Repeat it for some time: an agent that misses it
    /// waits for a sign of life until it is an orphan.
    pub fn last_words(&mut self, now: Now) -> Vec<CoordinatorAction> {
        let mut actions = vec![self.beat(now)];
        for place in 0..self.sides.len() {
            // A lost agent that is still running would otherwise go on until it is an orphan.
            actions.push(self.order(place, Order::Release, &[]));
        }
        actions
    }

    /// The order of this stage, if it is time for it.
    fn repeat_order(&mut self, place: usize, now: Now) -> Option<CoordinatorAction> {
        let side = &mut self.sides[place];
        if side.ordered.is_some_and(|ordered| now.monotonic.since(ordered) < REPEAT) {
            return None;
        }
        let order = match self.stage {
            CoordinatorStage::Claiming if !side.is_claimed => {
                Order::Claim { orphan_ns: self.options.orphan.0, hold: self.options.hold.clone() }
            }
            CoordinatorStage::Preparing if !side.is_ready => {
                let Side { shard, held, .. } = *side;
                Order::Prepare(Box::new(Prepare { shard, held, ..self.options.prepare.clone() }))
            }
            CoordinatorStage::Arming => {
                let start_at_unix_ns = side.clock?.there(self.start?).0;
                if side.armed == Some(start_at_unix_ns) {
                    return None;
                }
                Order::Arm { start_at_unix_ns, from_ns: 0, orders: Vec::new() }
            }
            _ => return None,
        };
        side.ordered = Some(now.monotonic);
        Some(self.order(place, order, &[]))
    }

    /// Begins an exchange with an agent, unless one is under way.
    fn exchange(&mut self, place: usize, now: Now) -> Option<CoordinatorAction> {
        let side = &mut self.sides[place];
        let is_under_way =
            side.exchange.is_some_and(|(_, sent)| now.monotonic.since(sent.monotonic) < REPEAT);
        let is_enough = self.stage == CoordinatorStage::Estimating && side.exchanges >= EXCHANGES;
        if is_under_way || is_enough {
            return None;
        }
        let exchange = side.next_exchange;
        side.next_exchange += 1;
        side.exchange = Some((exchange, now));
        Some(self.order(place, Order::Clock { exchange }, &[]))
    }

    /// Sends an agent the latest values of the setup if its process lacks them, and it is time for it.
    fn give_values(&mut self, place: usize, now: Now) -> Option<CoordinatorAction> {
        let side = &mut self.sides[place];
        let lacks_them = side.values < self.values_number && side.is_ready;
        if !lacks_them || side.inbox.end().is_some() || side.is_lost || now.monotonic < side.next_values {
            return None;
        }
        side.next_values = now.monotonic + BEAT;
        Some(self.order(place, Order::Values { number: self.values_number }, &self.values))
    }

    fn look_for_losses(&mut self, now: Now) -> Vec<CoordinatorAction> {
        let mut actions = Vec::new();
        let (mut lost, mut has_given_up) = (Vec::new(), false);
        for (place, side) in self.sides.iter_mut().enumerate().filter(|(_, side)| !side.is_done()) {
            let (silence, idle) = (now.monotonic.since(side.heard), now.monotonic.since(side.stirred));
            // Processes give no sign between the order to begin and the start.
            let idle = match self.start {
                Some(start) if now.unix < start + SUSPECT => Nanos::ZERO,
                _ => idle,
            };
            if silence > LOST && side.inbox.end().is_some() {
                // Its result has arrived; only its last intervals are missing.
                side.is_lost = true;
                has_given_up = true;
            } else if silence > LOST {
                side.is_lost = true;
                lost.push(place);
                actions.push(CoordinatorAction::Notice(Notice::Lost(side.name.clone())));
            } else if silence.max(idle) > SUSPECT && !side.is_suspect {
                side.is_suspect = true;
                actions.push(CoordinatorAction::Notice(Notice::Suspect(side.name.clone())));
            }
        }
        let is_anew = !lost.is_empty();
        for place in lost {
            actions.extend(self.follow_loss(place, now));
        }
        if is_anew || has_given_up {
            actions.extend(self.advance(now));
        }
        actions
    }

    /// Does what is to be done after the loss of a share.
    fn follow_loss(&mut self, place: usize, now: Now) -> Vec<CoordinatorAction> {
        match self.options.on_loss {
            OnLoss::Abort if !self.is_stopping => self.steer(SteerCommand::Stop, Nanos::ZERO, now),
            OnLoss::Takeover if !self.is_stopping && !self.sides[place].is_ceded => {
                self.have_taken_over(place, now)
            }
            _ => Vec::new(),
        }
    }

    /// Asks another agent to take over a share: the one that has the fewest shards for its processors.
    fn have_taken_over(&mut self, place: usize, now: Now) -> Vec<CoordinatorAction> {
        let not_taken = |reason| {
            let lost = self.sides[place].name.clone();
            vec![CoordinatorAction::Notice(Notice::NotTaken { lost, reason })]
        };
        if self.sides.len() > self.options.agents.len() * (1 + MOST_TAKEOVERS) {
            return not_taken("too many agents were lost");
        }
        let shards = |name: &str| {
            let mine = self.sides.iter().filter(|side| side.name == name && !side.is_done());
            mine.map(|side| u64::from(side.held)).sum::<u64>()
        };
        let has_failed = |name: &str| {
            let refused = |side: &Side| side.takeover.is_some_and(|takeover| takeover.is_refused);
            self.sides.iter().any(|side| {
                side.name == name && (side.is_lost || side.is_ceded || side.is_leaving || refused(side))
            })
        };
        let able = self.sides.iter().filter(|side| {
            side.takeover.is_none() && !side.is_done() && !side.is_suspect && !has_failed(&side.name)
        });
        // Compared without fractions: shards per processor.
        let Some(chosen) = able.min_by(|a, b| {
            let load = |of: &Side, other: &Side| (shards(&of.name) + 1) * u64::from(other.cores.max(1));
            load(a, b).cmp(&load(b, a))
        }) else {
            return not_taken("no other agent is able to");
        };
        let (name, version, cores) = (chosen.name.clone(), chosen.version.clone(), chosen.cores);
        let (clock, latest_clock) = (chosen.clock, chosen.latest_clock);
        let lost = &mut self.sides[place];
        lost.is_ceded = true;
        let (shard, held) = (lost.shard, lost.held);
        let notice = Notice::Asked {
            place: self.sides.len(),
            agent: name.clone(),
            lost: self.sides[place].name.clone(),
            shard,
        };
        let takeover = Takeover { of: place, asked: now.monotonic, from: None, is_refused: false };
        self.sides.push(Side {
            version,
            cores,
            clock,
            latest_clock,
            takeover: Some(takeover),
            ..Side::new(name, (shard, held), now)
        });
        vec![CoordinatorAction::Notice(notice)]
    }

    /// Notes that an agent cannot take over a share, and asks another one.
    fn give_back(&mut self, place: usize, now: Now) -> Vec<CoordinatorAction> {
        let side = &mut self.sides[place];
        let Some(takeover) = side.takeover.as_mut().filter(|takeover| !takeover.is_refused) else {
            return Vec::new();
        };
        takeover.is_refused = true;
        let mut actions = self.follow_loss(place, now);
        actions.extend(self.advance(now));
        actions
    }

    /// The next order to an agent that takes over a share, if it is time for it.
    fn hand_over(&mut self, place: usize, now: Now) -> Vec<CoordinatorAction> {
        let (start, is_stopping) = (self.start.unwrap_or(now.unix), self.is_stopping);
        let side = &mut self.sides[place];
        let Some(takeover) = &mut side.takeover else { return Vec::new() };
        if takeover.is_refused || side.is_lost || side.armed.is_some() || side.is_ceded {
            return Vec::new();
        }
        if takeover.from.is_none() && (is_stopping || now.monotonic.since(takeover.asked) > JOINING) {
            return self.give_back(place, now);
        }
        if side.ordered.is_some_and(|ordered| now.monotonic.since(ordered) < REPEAT) {
            return Vec::new();
        }
        let order = match () {
            () if !side.is_claimed => Order::Claim { orphan_ns: self.options.orphan.0, hold: None },
            () if !side.is_ready => {
                let (shard, held) = (side.shard, side.held);
                Order::Prepare(Box::new(Prepare { shard, held, ..self.options.prepare.clone() }))
            }
            () => {
                let Some(clock) = side.clock else { return Vec::new() };
                let earliest = now.unix.since(start) + TAKEOVER_LEAD;
                let from =
                    *takeover.from.get_or_insert_with(|| Nanos(earliest.0.div_ceil(BOUNDARY.0) * BOUNDARY.0));
                let orders = self.orders.clone();
                Order::Arm { start_at_unix_ns: clock.there(start).0, from_ns: from.0, orders }
            }
        };
        side.ordered = Some(now.monotonic);
        vec![self.order(place, order, &[])]
    }

    fn beat(&mut self, now: Now) -> CoordinatorAction {
        let is_fast = match (self.stage, self.start) {
            (CoordinatorStage::Begun, Some(start)) => now.unix < start + BEAT,
            _ => false,
        };
        self.next_beat = now.monotonic + if is_fast { FAST_BEAT } else { BEAT };
        let stage = match self.stage {
            CoordinatorStage::Begun => BeatStage::Begun,
            CoordinatorStage::Over => BeatStage::Over,
            _ => BeatStage::Preparing,
        };
        let beat =
            Beat { wire: WIRE_VERSION, run: self.options.run.clone(), stage, orders: self.orders.clone() };
        let subject = subject::beats(&self.options.run);
        CoordinatorAction::Publish { subject, payload: encode(&beat, &[]) }
    }

    fn order(&self, place: usize, order: Order, body: &[u8]) -> CoordinatorAction {
        let side = &self.sides[place];
        let share = if side.takeover.is_some() { place as u32 } else { 0 };
        let message = ToAgent { wire: WIRE_VERSION, run: self.options.run.clone(), share, order };
        let subject = subject::orders(&side.name);
        CoordinatorAction::Publish { subject, payload: encode(&message, body) }
    }
}

const SAME_VERSION: &str = "install the same version on all machines of the fleet";
