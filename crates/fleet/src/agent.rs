//! The agent as a state machine: one run at a time, by the orders of its coordinator.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_core::Nanos;
use sha2::{Digest as _, Sha256};

use crate::fabric::{Delivery, Now};
use crate::message::{
    Beat, BeatStage, End, FromAgent, Here, Line, MessageError, Order, Prepare, Steer, SteerCommand, ToAgent,
    WIRE_VERSION, Word, decode, encode,
};
use crate::parts::PartOutbox;
use crate::subject::{self, Subject, parse};

/// Interval between two signs of life.
const HERE: Nanos = Nanos::from_secs(1);
/// Interval between two parts of a result.
const PART: Nanos = Nanos::from_secs(5);
/// Time after which a piece of a file is asked for again.
const ASK_AGAIN: Nanos = Nanos::from_millis(500);
/// Silence after which an agent that has not begun is free. Coordinators repeat themselves every second.
const FREE_AGAIN: Nanos = Nanos::from_secs(15);

/// Properties of an agent that others are told.
#[derive(Clone, Debug, Default)]
pub struct AgentIdentity {
    /// Its name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
}

/// An action of the agent, for its host to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Publish a message.
    Publish {
        /// Its subject.
        subject: String,
        /// Its content.
        payload: Vec<u8>,
    },
    /// Start the process of a run, which then waits for its start. Answered by [`HostEvent::Ready`] or
    /// [`HostEvent::Refused`].
    Spawn {
        /// The run.
        run: String,
        /// The run to prepare.
        prepare: Box<Prepare>,
        /// Content of its files, by their hashes.
        files: BTreeMap<String, Vec<u8>>,
    },
    /// Let the process begin at an instant of this machine's Unix time.
    Start {
        /// The instant in nanoseconds.
        at_unix_ns: u64,
    },
    /// Give the process an order.
    Steer(Steer),
    /// Take a part of the result. Answered by [`HostEvent::Part`].
    TakePart,
    /// End the process at once; nothing of it is wanted.
    Discard,
    /// Look for what was saved of a run. Answered by [`HostEvent::Collected`].
    Collect {
        /// The run.
        run: String,
    },
}

/// News from the host of an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEvent {
    /// The process waits for its start.
    Ready,
    /// There is no process, or it ended before it was ready.
    Refused {
        /// Why.
        error: String,
        /// Remedy, if there is one.
        hint: Option<String>,
        /// `true` if the run itself is wrong, and not this machine.
        is_usage: bool,
    },
    /// Figures of the last second.
    Line(Line),
    /// The result so far, as bytes of a saved run.
    Part(Vec<u8>),
    /// An order was not carried out.
    Unsteered {
        /// Its number.
        number: u64,
        /// Why.
        error: String,
    },
    /// The process has ended, with the bytes of the saved run if it has saved one.
    Ended {
        /// Exit of its process.
        end: End,
        /// The saved run; empty if there is none.
        saved: Vec<u8>,
    },
    /// The saved part of a run; empty if nothing was saved.
    Collected {
        /// The run.
        run: String,
        /// The saved run; empty if there is none.
        saved: Vec<u8>,
    },
}

/// One that carries out a shard of a load at a time.
#[derive(Debug)]
pub struct Agent {
    identity: AgentIdentity,
    next_here: Nanos,
    session: Option<Session>,
    /// Runs that were asked for after their end, with their results.
    collected: BTreeMap<String, PartOutbox>,
}

/// The run that the agent is claimed by.
#[derive(Debug)]
struct Session {
    run: String,
    orphan: Nanos,
    /// When the coordinator was last heard.
    heard: Nanos,
    stage: Stage,
    /// Files that are still missing, and those that are there.
    missing: VecDeque<(String, u64)>,
    files: BTreeMap<String, Vec<u8>>,
    asked: Option<Nanos>,
    prepare: Option<Box<Prepare>>,
    /// Number of the last order that was carried out.
    steered: u64,
    outbox: PartOutbox,
    next_part: Nanos,
    is_taking_part: bool,
    told: Nanos,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Claimed,
    Fetching,
    Preparing,
    Ready,
    Refused(Word),
    Armed {
        start_at_unix_ns: u64,
    },
    Begun,
    /// The coordinator has gone, and the process was told to stop.
    Orphaned,
    Ended,
}

impl Stage {
    /// Returns `true` if there is a process.
    const fn has_process(&self) -> bool {
        matches!(self, Self::Preparing | Self::Ready | Self::Armed { .. } | Self::Begun | Self::Orphaned)
    }
}

impl Agent {
    /// An agent that has no run.
    pub fn new(identity: AgentIdentity) -> Self {
        Self { identity, next_here: Nanos::ZERO, session: None, collected: BTreeMap::new() }
    }

    /// Subjects that it has to hear.
    pub fn subscriptions(&self) -> [String; 2] {
        subject::of_agent(&self.identity.name).1
    }

    /// The run that it is claimed by.
    pub fn run(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.run.as_str())
    }

    /// Takes a message.
    pub fn hear(&mut self, delivery: &Delivery, now: Now) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        match parse(&delivery.subject) {
            Some(Subject::Orders(name)) if name == self.identity.name => {
                match decode::<ToAgent>(&delivery.payload) {
                    Ok((message, body)) => self.obey(message, body, now, &mut actions),
                    Err(MessageError::WrongWire { run: Some(run), .. })
                        if subject::check_name(&run).is_ok() =>
                    {
                        let word = Word::WrongWire { version: self.identity.version.clone() };
                        actions.push(self.say(&run, word, &[]));
                    }
                    // Nobody is there to be told.
                    Err(_) => {}
                }
            }
            Some(Subject::Beats(_)) => {
                if let Ok((beat, _)) = decode::<Beat>(&delivery.payload) {
                    self.heed(&beat, now, &mut actions);
                }
            }
            _ => {}
        }
        actions
    }

    /// Takes news from its host.
    pub fn note(&mut self, event: HostEvent, now: Now) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        if let HostEvent::Collected { run, saved } = event {
            if saved.is_empty() {
                actions.push(self.say(&run, Word::Nothing, &[]));
            } else {
                let outbox = self.collected.entry(run).or_default();
                outbox.offer(saved, Some(End::default()));
            }
            self.send_parts(now, &mut actions);
            return actions;
        }
        let Some(session) = &mut self.session else { return actions };
        let run = session.run.clone();
        match event {
            HostEvent::Ready if session.stage == Stage::Preparing => {
                session.stage = Stage::Ready;
                actions.push(self.say(&run, Word::Ready, &[]));
            }
            HostEvent::Refused { error, hint, is_usage } if session.stage == Stage::Preparing => {
                let word = Word::Refused { error, hint, is_usage };
                session.stage = Stage::Refused(word.clone());
                actions.push(self.say(&run, word, &[]));
            }
            HostEvent::Line(line) if session.stage == Stage::Begun => {
                session.told = now.monotonic;
                actions.push(self.say(&run, Word::Line(line), &[]));
            }
            HostEvent::Part(part) => {
                session.is_taking_part = false;
                if session.stage == Stage::Begun && !part.is_empty() {
                    session.outbox.offer(part, None);
                }
            }
            HostEvent::Unsteered { number, error } => {
                actions.push(self.say(&run, Word::Unsteered { number, error }, &[]));
            }
            HostEvent::Ended { end, saved } if session.stage == Stage::Orphaned => {
                // It stays in the history, and can be collected.
                let _ = (end, saved);
                self.session = None;
            }
            HostEvent::Ended { end, saved } if session.stage.has_process() => {
                session.stage = Stage::Ended;
                session.outbox.offer(saved, Some(end));
            }
            _ => {}
        }
        self.send_parts(now, &mut actions);
        actions
    }

    /// Lets time pass. Call it at least every 100 ms.
    pub fn tick(&mut self, now: Now) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        if now.monotonic >= self.next_here {
            self.next_here = now.monotonic + HERE;
            let AgentIdentity { name, version, cores } = self.identity.clone();
            let run = self.run().map(str::to_owned);
            let here = Here { wire: WIRE_VERSION, agent: name, version, cores, run };
            let subject = subject::here(&here.agent);
            actions.push(AgentAction::Publish { subject, payload: encode(&here, &[]) });
        }
        self.stop_if_orphaned(now, &mut actions);
        if let Some(session) = &mut self.session {
            let run = session.run.clone();
            if session.stage == Stage::Begun && now.monotonic >= session.next_part {
                session.next_part = now.monotonic + PART;
                // One at a time: the next has everything of this one.
                if session.outbox.is_idle() && !session.is_taking_part {
                    session.is_taking_part = true;
                    actions.push(AgentAction::TakePart);
                }
            }
            let is_asked = session.asked.is_some_and(|asked| now.monotonic.since(asked) < ASK_AGAIN);
            if session.stage == Stage::Fetching && !is_asked {
                actions.extend(self.ask(now));
            }
            let is_preparing = self.session.as_ref().is_some_and(|session| session.stage == Stage::Preparing);
            if is_preparing {
                let session = self.session.as_mut();
                let due = session.filter(|session| now.monotonic.since(session.told) >= HERE);
                if let Some(session) = due {
                    session.told = now.monotonic;
                    actions.push(self.say(&run, Word::Preparing, &[]));
                }
            }
        }
        self.send_parts(now, &mut actions);
        actions
    }

    /// Without a coordinator nobody would end the load, nor take its result.
    fn stop_if_orphaned(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        let Some(session) = &mut self.session else { return };
        let silence = now.monotonic.since(session.heard);
        match session.stage {
            Stage::Begun if silence > session.orphan => {
                session.stage = Stage::Orphaned;
                let steer = Steer { number: u64::MAX, at_ns: 0, command: SteerCommand::Stop };
                actions.push(AgentAction::Steer(steer));
            }
            Stage::Begun | Stage::Orphaned => {}
            Stage::Ended if silence > session.orphan => self.session = None,
            Stage::Ended => {}
            _ if silence > FREE_AGAIN.min(session.orphan) => self.discard(actions),
            _ => {}
        }
    }

    fn discard(&mut self, actions: &mut Vec<AgentAction>) {
        if let Some(session) = self.session.take()
            && session.stage.has_process()
        {
            actions.push(AgentAction::Discard);
        }
    }

    /// Carries out an order that is for this agent alone.
    fn obey(&mut self, message: ToAgent, body: &[u8], now: Now, actions: &mut Vec<AgentAction>) {
        let ToAgent { run, order, .. } = message;
        if subject::check_name(&run).is_err() {
            return;
        }
        if order == Order::Collect {
            return self.collect(run, actions);
        }
        if let Order::Claim { orphan_ns } = order {
            return self.claim(&run, Nanos(orphan_ns), now, actions);
        }
        let Some(session) = self.session.as_mut().filter(|session| session.run == run) else { return };
        session.heard = now.monotonic;
        let answer = match order {
            Order::Prepare(prepare) => match &session.stage {
                Stage::Claimed => {
                    session.begin_fetching(prepare);
                    actions.extend(self.ask(now));
                    Some(Word::Preparing)
                }
                Stage::Refused(word) => Some(word.clone()),
                Stage::Fetching | Stage::Preparing => Some(Word::Preparing),
                _ => Some(Word::Ready),
            },
            Order::Piece { sha256, offset } => {
                let is_wanted = session.take_piece(&sha256, offset, body);
                if is_wanted {
                    actions.extend(self.ask(now));
                }
                None
            }
            Order::Clock { exchange } => Some(Word::Clock { exchange, unix_ns: now.unix.0 }),
            Order::Arm { start_at_unix_ns } => match session.stage {
                Stage::Ready | Stage::Armed { .. } => {
                    session.stage = Stage::Armed { start_at_unix_ns };
                    Some(Word::Armed { start_at_unix_ns })
                }
                _ => None,
            },
            Order::Release => {
                self.discard(actions);
                None
            }
            Order::Claim { .. } | Order::Collect => None,
        };
        actions.extend(answer.map(|word| self.say(&run, word, &[])));
    }

    fn claim(&mut self, run: &str, orphan: Nanos, now: Now, actions: &mut Vec<AgentAction>) {
        let word = match &mut self.session {
            Some(session) if session.run != run => Word::Busy { run: session.run.clone() },
            session => {
                let session = session.get_or_insert_with(|| Session::new(run, orphan));
                session.heard = now.monotonic;
                let AgentIdentity { version, cores, .. } = self.identity.clone();
                Word::Claimed { version, cores }
            }
        };
        actions.push(self.say(run, word, &[]));
    }

    fn collect(&mut self, run: String, actions: &mut Vec<AgentAction>) {
        if self.run() == Some(&run) {
            let word = Word::Busy { run: run.clone() };
            return actions.push(self.say(&run, word, &[]));
        }
        // A part that did not arrive is sent again by itself.
        if self.collected.get(&run).is_none_or(PartOutbox::is_idle) {
            actions.push(AgentAction::Collect { run });
        }
    }

    /// Asks for the next piece of a file, or starts the process if all are there.
    fn ask(&mut self, now: Now) -> Vec<AgentAction> {
        let Some(session) = self.session.as_mut().filter(|session| session.stage == Stage::Fetching) else {
            return Vec::new();
        };
        let run = session.run.clone();
        session.asked = Some(now.monotonic);
        if let Some((sha256, _)) = session.missing.front() {
            let offset = session.files.get(sha256).map_or(0, |file| file.len() as u64);
            let word = Word::Want { sha256: sha256.clone(), offset };
            return vec![self.say(&run, word, &[])];
        }
        let Some(prepare) = session.prepare.clone() else { return Vec::new() };
        session.stage = Stage::Preparing;
        session.told = now.monotonic;
        vec![AgentAction::Spawn { run, prepare, files: std::mem::take(&mut session.files) }]
    }

    /// Heeds what the coordinator tells all of its agents.
    fn heed(&mut self, beat: &Beat, now: Now, actions: &mut Vec<AgentAction>) {
        let arrived = beat.arrived.get(&self.identity.name).copied().unwrap_or(0);
        if let Some(outbox) = self.collected.get_mut(&beat.run) {
            outbox.note_arrived(arrived);
            if outbox.is_finished() || beat.stage == BeatStage::Over {
                self.collected.remove(&beat.run);
            }
        }
        let Some(session) = self.session.as_mut().filter(|session| session.run == beat.run) else { return };
        session.heard = now.monotonic;
        session.outbox.note_arrived(arrived);
        match (beat.stage, &session.stage) {
            (BeatStage::Over, _) => return self.discard(actions),
            // It was only away. The load has stopped, but its result is wanted.
            (BeatStage::Begun, Stage::Orphaned) => session.stage = Stage::Begun,
            (BeatStage::Begun, &Stage::Armed { start_at_unix_ns }) => {
                session.stage = Stage::Begun;
                session.next_part = now.monotonic + PART;
                actions.push(AgentAction::Start { at_unix_ns: start_at_unix_ns });
            }
            _ => {}
        }
        if session.stage == Stage::Begun {
            for steer in beat.orders.iter().filter(|steer| steer.number > session.steered) {
                actions.push(AgentAction::Steer(*steer));
            }
            let last = beat.orders.iter().map(|steer| steer.number).max().unwrap_or(0);
            session.steered = session.steered.max(last);
        }
    }

    fn send_parts(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        let mut due = Vec::new();
        if let Some(session) = &mut self.session {
            let pieces = session.outbox.due(now.monotonic);
            due.extend(pieces.into_iter().map(|piece| (session.run.clone(), piece)));
        }
        for (run, outbox) in &mut self.collected {
            due.extend(outbox.due(now.monotonic).into_iter().map(|piece| (run.clone(), piece)));
        }
        for (run, (piece, bytes)) in due {
            actions.push(self.say(&run, Word::Part(piece), &bytes));
        }
    }

    fn say(&self, run: &str, word: Word, body: &[u8]) -> AgentAction {
        let agent = self.identity.name.clone();
        let subject = subject::word(run, &agent, word.kind());
        let message = FromAgent { wire: WIRE_VERSION, agent, run: run.to_owned(), word };
        AgentAction::Publish { subject, payload: encode(&message, body) }
    }
}

impl Session {
    fn new(run: &str, orphan: Nanos) -> Self {
        Self {
            run: run.to_owned(),
            orphan,
            heard: Nanos::ZERO,
            stage: Stage::Claimed,
            missing: VecDeque::new(),
            files: BTreeMap::new(),
            asked: None,
            prepare: None,
            steered: 0,
            outbox: PartOutbox::default(),
            next_part: Nanos::ZERO,
            is_taking_part: false,
            told: Nanos::ZERO,
        }
    }

    fn begin_fetching(&mut self, prepare: Box<Prepare>) {
        for file in &prepare.files {
            let is_known = self.missing.iter().any(|(sha256, _)| *sha256 == file.sha256);
            if file.bytes == 0 {
                self.files.insert(file.sha256.clone(), Vec::new());
            } else if !is_known {
                self.missing.push_back((file.sha256.clone(), file.bytes));
            }
        }
        self.prepare = Some(prepare);
        self.stage = Stage::Fetching;
    }

    /// Takes a piece of a file; `false` if it is not the one that was asked for. A file that is not what its
    /// hash says is fetched again.
    fn take_piece(&mut self, sha256: &str, offset: u64, bytes: &[u8]) -> bool {
        let Some((wanted, length)) = self.missing.front().cloned() else { return false };
        let file = self.files.entry(wanted.clone()).or_default();
        if wanted != sha256 || offset != file.len() as u64 || bytes.is_empty() {
            return false;
        }
        file.extend_from_slice(bytes);
        if (file.len() as u64) < length {
            return true;
        }
        if hash(file) == wanted {
            self.missing.pop_front();
        } else {
            file.clear();
        }
        true
    }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
