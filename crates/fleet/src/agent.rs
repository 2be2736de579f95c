//! The agent as a state machine: one run at a time, on the orders of its coordinator.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_core::{Nanos, text::hex};
use sha2::{Digest as _, Sha256};

use crate::fabric::{Delivery, Now};
use crate::intervals::IntervalOutbox;
use crate::message::{
    Beat, BeatStage, End, FromAgent, Here, Line, MessageError, Order, Prepare, Steer, SteerCommand, ToAgent,
    Unsteered, WIRE_VERSION, Word, decode, encode,
};
use crate::parts::PartOutbox;
use crate::subject::{self, Subject, parse};

/// Interval between two signs of life.
const HERE: Nanos = Nanos::from_secs(1);
/// Interval between two parts of a result.
const PART: Nanos = Nanos::from_secs(5);
/// Time after which a piece of a file is asked for again.
const ASK_AGAIN: Nanos = Nanos::from_millis(500);
/// Longest interval that is sent, in bytes. A NATS server takes messages of up to a megabyte.
const LONGEST_INTERVAL: usize = 768 << 10;
/// Silence of the process of a run after which it counts as hung, and is ended. A machine without a processor
/// to spare lets a process wait for some seconds; one that has not answered for a minute will not.
const HUNG: Nanos = Nanos::from_secs(60);
/// Length of a lease, from when the sign of life was sent that it answers. It ends before the coordinator,
/// which heard that sign later, has waited for ten seconds, and so before anyone else has the share.
const LEASE: Nanos = Nanos::from_secs(8);
/// Silence after which an agent that has not begun is free. Coordinators repeat themselves every second.
const FREE_AGAIN: Nanos = Nanos::from_secs(15);

/// Properties of an agent that it announces.
#[derive(Clone, Debug, Default)]
pub struct AgentIdentity {
    /// Name of the agent.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
    /// Requests per second that one of its threads can make, if that was measured.
    pub thread_per_s: Option<u64>,
}

/// An action of the agent, for its host to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Publish a message.
    Publish {
        /// Subject of the message.
        subject: String,
        /// Content of the message.
        payload: Vec<u8>,
    },
    /// Start the process of a run, which then waits for its start. Answered by [`HostEvent::Ready`] or
    /// [`HostEvent::Refused`].
    Spawn {
        /// The name of its run: that of the fleet's run, with a number for a share that was taken over.
        run: String,
        /// The run to prepare.
        prepare: Box<Prepare>,
        /// Content of its files, by their hashes.
        files: BTreeMap<String, Vec<u8>>,
    },
    /// Start the load of the process at an instant of this machine's Unix time.
    Start {
        /// The process, by the name of its run.
        run: String,
        /// The instant in nanoseconds.
        at_unix_ns: u64,
        /// Instant since then from which on the process takes part.
        from_ns: u64,
    },
    /// Let the process send until this instant of the machine's monotonic clock, and not longer.
    Lease {
        /// The process, by the name of its run.
        run: String,
        /// The instant in nanoseconds.
        until_ns: u64,
    },
    /// Pass an order on to the process.
    Steer {
        /// The process, by the name of its run.
        run: String,
        /// The order.
        steer: Steer,
    },
    /// Give the process other values of the setup. Answered by [`HostEvent::Values`].
    Values {
        /// The process, by the name of its run.
        run: String,
        /// Number of the values.
        number: u64,
        /// The values, as the coordinator sent them.
        values: Vec<u8>,
    },
    /// Take a part of the result. Answered by [`HostEvent::Part`].
    TakePart {
        /// The process, by the name of its run.
        run: String,
    },
    /// End the process at once, and take what it has saved as its result. Answered by [`HostEvent::Ended`].
    Kill {
        /// The process, by the name of its run.
        run: String,
    },
    /// End the process at once, and drop its result.
    Discard {
        /// The process, by the name of its run.
        run: String,
    },
    /// Look for the saved parts of a run and of the shares that were taken over. Answered by
    /// [`HostEvent::Collected`].
    Collect {
        /// The run.
        run: String,
    },
}

/// An event of the host of an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEvent {
    /// The process waits for its start.
    Ready,
    /// There is no process, or it ended before it was ready.
    Refused {
        /// The reason.
        error: String,
        /// Remedy, if there is one.
        hint: Option<String>,
        /// `true` if the run itself is wrong, and not this machine.
        is_usage: bool,
    },
    /// The process has answered, or written a message: it is not hung.
    Alive,
    /// Figures of the last second.
    Line(Line),
    /// The next interval, as bytes.
    Interval(Vec<u8>),
    /// The result so far, as bytes of a saved run.
    Part(Vec<u8>),
    /// An order was not carried out.
    Unsteered(Unsteered),
    /// The process has the values of the setup with this number, or could not take them.
    Values {
        /// Their number.
        number: u64,
        /// The reason why it does not have them.
        error: Option<String>,
    },
    /// The process has ended, with the bytes of the saved run if it has saved one.
    Ended {
        /// Exit of its process.
        end: End,
        /// The saved run; empty if there is none.
        saved: Vec<u8>,
    },
    /// The saved parts of a run.
    Collected {
        /// The run.
        run: String,
        /// The saved runs by the numbers of their shares.
        saved: BTreeMap<u32, Vec<u8>>,
    },
}

/// Carries out shards of loads, of one load at a time.
#[derive(Debug)]
pub struct Agent {
    identity: AgentIdentity,
    next_here: Nanos,
    /// The shares that it has of one run: the one that it began with, and those that it has taken over.
    sessions: Vec<Session>,
    /// Whoever holds it between two runs, and until when.
    held: Option<(String, Nanos)>,
    /// Runs that were asked for after their end, with the results of their shares.
    collected: BTreeMap<String, BTreeMap<u32, PartOutbox>>,
    /// The agent was told to end.
    is_leaving: bool,
}

/// A share of the run that the agent is claimed by.
#[derive(Debug)]
struct Session {
    run: String,
    share: u32,
    /// Name of the run of its process.
    name: String,
    /// Until when the share may be sent, if it is leased. Without another lease nothing is sent after that.
    lease: Option<Nanos>,
    orphan: Nanos,
    /// Holder of the agent after the run.
    hold: Option<String>,
    /// When the coordinator was last heard.
    heard: Nanos,
    stage: Stage,
    /// Files that are still missing, and those that are there.
    missing: VecDeque<(String, u64)>,
    files: BTreeMap<String, Vec<u8>>,
    asked: Option<Nanos>,
    prepare: Option<Box<Prepare>>,
    /// The start of the run as Unix time, once the load goes on.
    start: Nanos,
    /// Number of the last order that was passed on.
    steered: u64,
    /// Orders that the process did not carry out.
    unsteered: Vec<Unsteered>,
    /// Number of the values of the setup that the process has, and `true` while it is being given later ones.
    values: u64,
    is_being_given: bool,
    outbox: PartOutbox,
    intervals: IntervalOutbox,
    next_part: Nanos,
    is_taking_part: bool,
    told: Nanos,
    /// When the process last gave a sign of its own, or begins.
    stirred: Nanos,
    /// The process was ended because it gave none.
    is_killed: bool,
    /// The process was told to stop because the agent is to end.
    is_stopped: bool,
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
        from_ns: u64,
    },
    Begun,
    /// The coordinator is gone, and the process is stopping.
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
        Self {
            identity,
            next_here: Nanos::ZERO,
            sessions: Vec::new(),
            held: None,
            collected: BTreeMap::new(),
            is_leaving: false,
        }
    }

    /// Prepares for the end of the agent: from now on it takes no run, gives back what has not begun, and
    /// stops in order what goes on. It is to be served until [`may_end`](Self::may_end), so that the results
    /// arrive.
    pub fn leave(&mut self, now: Now) -> Vec<AgentAction> {
        self.is_leaving = true;
        // Told at once, and before anything ends: the coordinator has another agent take over.
        self.next_here = Nanos::ZERO;
        let mut actions = Vec::new();
        self.held = None;
        self.sessions.iter_mut().for_each(|session| session.turn_down(&mut actions));
        [self.tick(now), actions].concat()
    }

    /// Returns `true` once an agent that [leaves](Self::leave) has nothing left that a coordinator waits for.
    pub fn may_end(&self) -> bool {
        self.is_leaving && self.sessions.iter().all(Session::has_arrived) && self.collected.is_empty()
    }

    /// Subjects to subscribe to.
    pub fn subscriptions(&self) -> [String; 2] {
        subject::of_agent(&self.identity.name).1
    }

    /// The run that it is claimed by.
    pub fn run(&self) -> Option<&str> {
        self.sessions.first().map(|session| session.run.as_str())
    }

    /// Returns `true` if a share that it is claimed for has a process of this name.
    pub fn has(&self, name: &str) -> bool {
        self.sessions.iter().any(|session| session.name == name)
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
                        actions.push(self.say((&run, 0), word, &[]));
                    }
                    // A message without a run has no coordinator to answer to.
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

    /// Takes an event of its host about the process of this name.
    pub fn note(&mut self, name: &str, event: HostEvent, now: Now) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        if let HostEvent::Collected { run, saved } = event {
            actions.push(self.say((&run, 0), Word::Saved { shares: saved.keys().copied().collect() }, &[]));
            for (share, saved) in saved {
                let outboxes = self.collected.entry(run.clone()).or_default();
                outboxes.entry(share).or_default().offer(saved, Some(End::default()));
            }
            self.send_parts(now, &mut actions);
            return actions;
        }
        let Some(place) = self.sessions.iter().position(|session| session.name == name) else {
            return actions;
        };
        let session = &mut self.sessions[place];
        if matches!(event, HostEvent::Alive | HostEvent::Line(_) | HostEvent::Interval(_)) {
            session.stirred = session.stirred.max(now.monotonic);
        }
        let word = match event {
            HostEvent::Ready if session.stage == Stage::Preparing => {
                session.stage = Stage::Ready;
                Some(Word::Ready)
            }
            HostEvent::Refused { error, hint, is_usage } if session.stage == Stage::Preparing => {
                let word = Word::Refused { error, hint, is_usage };
                session.stage = Stage::Refused(word.clone());
                Some(word)
            }
            HostEvent::Line(line) if session.stage == Stage::Begun => {
                session.told = now.monotonic;
                Some(Word::Line(line))
            }
            HostEvent::Interval(interval) if matches!(session.stage, Stage::Begun | Stage::Orphaned) => {
                // An interval that is too long for a message is missing from the live figures only.
                let is_short = interval.len() <= LONGEST_INTERVAL;
                session.intervals.offer(if is_short { interval } else { Vec::new() });
                None
            }
            HostEvent::Part(part) => {
                session.is_taking_part = false;
                if session.stage == Stage::Begun && !part.is_empty() {
                    session.outbox.offer(part, None);
                }
                None
            }
            HostEvent::Unsteered(unsteered) => {
                session.unsteered.push(unsteered.clone());
                Some(Word::Unsteered(unsteered))
            }
            HostEvent::Values { number, error } => {
                session.is_being_given = false;
                if error.is_none() {
                    session.values = session.values.max(number);
                }
                Some(Word::Values { number, error })
            }
            HostEvent::Ended { .. } if session.stage == Stage::Orphaned => {
                // It stays in the history, and can be collected.
                self.sessions.remove(place);
                self.send_parts(now, &mut actions);
                return actions;
            }
            HostEvent::Ended { end, saved } if session.stage.has_process() => {
                session.stage = Stage::Ended;
                let intervals = session.intervals.last();
                let mut messages = end.messages;
                if session.is_killed {
                    let silence = HUNG.as_secs_f64();
                    messages
                        .push(format!("it gave no sign of its own for {silence} s, and its agent ended it"));
                }
                let unsteered = std::mem::take(&mut session.unsteered);
                let (steered, at_ns) = (session.steered, now.unix.since(session.start).0);
                let is_left = self.is_leaving;
                let end = End { intervals, messages, unsteered, steered, at_ns, is_left, ..end };
                session.outbox.offer(saved, Some(end));
                None
            }
            _ => None,
        };
        let (run, share) = (session.run.clone(), session.share);
        actions.extend(word.map(|word| self.say((&run, share), word, &[])));
        self.send_parts(now, &mut actions);
        actions
    }

    /// Lets time pass. Call it at least every 100 ms.
    pub fn tick(&mut self, now: Now) -> Vec<AgentAction> {
        let mut actions = Vec::new();
        if now.monotonic >= self.next_here {
            self.next_here = now.monotonic + HERE;
            let AgentIdentity { name, version, cores, thread_per_s } = self.identity.clone();
            let holder = self.held.as_ref().map(|(holder, _)| holder.as_str());
            let run = self.run().or(holder).map(str::to_owned);
            let silence = self.sessions.iter().map(|session| session.silence(now)).max();
            let here = Here {
                wire: WIRE_VERSION,
                agent: name,
                version,
                cores,
                run,
                silent_ns: silence.unwrap_or_default().0,
                thread_per_s,
                at_ns: now.monotonic.0,
                is_leaving: self.is_leaving,
            };
            let subject = subject::here(&here.agent);
            actions.push(AgentAction::Publish { subject, payload: encode(&here, &[]) });
        }
        self.held.take_if(|(_, until)| now.monotonic >= *until);
        self.sessions.retain_mut(|session| session.outlives(now, &mut actions));
        for place in 0..self.sessions.len() {
            let session = &mut self.sessions[place];
            session.look_after(now, &mut actions);
            if self.is_leaving {
                session.leave(now, &mut actions);
            }
            let is_asked = session.asked.is_some_and(|asked| now.monotonic.since(asked) < ASK_AGAIN);
            if session.stage == Stage::Fetching && !is_asked {
                actions.extend(self.ask(place, now));
            }
            let session = &mut self.sessions[place];
            if session.stage == Stage::Preparing && now.monotonic.since(session.told) >= HERE {
                session.told = now.monotonic;
                let (run, share) = (session.run.clone(), session.share);
                actions.push(self.say((&run, share), Word::Preparing, &[]));
            }
        }
        self.send_parts(now, &mut actions);
        actions
    }

    /// Ends the run on order of its coordinator. The holder of the agent keeps it until it is an orphan.
    fn release(&mut self, run: &str, now: Now, actions: &mut Vec<AgentAction>) {
        let mut hold = None;
        self.sessions.retain_mut(|session| {
            if session.run != run {
                return true;
            }
            hold = hold.take().or_else(|| Some((session.hold.take()?, session.orphan)));
            session.discard(actions);
            false
        });
        self.held = hold.map(|(holder, orphan)| (holder, now.monotonic + orphan));
    }

    /// Carries out an order that is for this agent alone.
    fn obey(&mut self, message: ToAgent, body: &[u8], now: Now, actions: &mut Vec<AgentAction>) {
        let ToAgent { run, share, order, .. } = message;
        if subject::check_name(&run).is_err() {
            return;
        }
        if order == Order::Collect {
            return self.collect(run, actions);
        }
        if let Order::Claim { orphan_ns, hold } = order {
            return self.claim((&run, share), (Nanos(orphan_ns), hold), now, actions);
        }
        if order == Order::Release {
            self.held.take_if(|(holder, _)| *holder == run);
        }
        if let Order::Arrived { part, interval } = order {
            return self.note_arrived((&run, share), part, interval, now);
        }
        let is_it = |session: &Session| session.run == run && session.share == share;
        let Some(place) = self.sessions.iter().position(is_it) else {
            // A share that is taken over is not waited for if its agent does not know of it.
            if share > 0 && order != Order::Release {
                actions.push(self.say((&run, share), Word::Nothing, &[]));
            }
            return;
        };
        let session = &mut self.sessions[place];
        session.heard = now.monotonic;
        let answer = match order {
            Order::Prepare(prepare) => match &session.stage {
                Stage::Claimed => {
                    session.begin_fetching(prepare);
                    actions.extend(self.ask(place, now));
                    Some(Word::Preparing)
                }
                Stage::Refused(word) => Some(word.clone()),
                Stage::Fetching | Stage::Preparing => Some(Word::Preparing),
                _ => Some(Word::Ready),
            },
            Order::Piece { sha256, offset } => {
                let is_wanted = session.take_piece(&sha256, offset, body);
                if is_wanted {
                    actions.extend(self.ask(place, now));
                }
                None
            }
            Order::Clock { exchange } => Some(Word::Clock { exchange, unix_ns: now.unix.0 }),
            Order::Arm { start_at_unix_ns, from_ns, orders } => match session.stage {
                Stage::Ready | Stage::Armed { .. } => {
                    session.stage = Stage::Armed { start_at_unix_ns, from_ns };
                    if from_ns > 0 {
                        // Before the start: the process skips what is due before by its schedule.
                        session.steer(&orders, actions);
                        session.begin(now, actions);
                    }
                    Some(Word::Armed { start_at_unix_ns })
                }
                Stage::Refused(ref word) => Some(word.clone()),
                // The command came again because the answer was lost.
                _ if from_ns > 0 => Some(Word::Armed { start_at_unix_ns }),
                _ => None,
            },
            Order::Lease { at_ns } => {
                session.extend_lease(Nanos(at_ns), actions);
                None
            }
            Order::Values { number } => session.take_values(number, body, actions),
            Order::Cede if matches!(session.stage, Stage::Begun | Stage::Orphaned | Stage::Ended) => {
                session.stop(SteerCommand::Stop, actions);
                None
            }
            Order::Cede => {
                session.discard(actions);
                self.sessions.remove(place);
                Some(Word::Nothing)
            }
            Order::Release => {
                self.release(&run, now, actions);
                None
            }
            Order::Claim { .. } | Order::Collect | Order::Arrived { .. } => None,
        };
        actions.extend(answer.map(|word| self.say((&run, share), word, &[])));
    }

    fn claim(
        &mut self,
        (run, share): (&str, u32),
        (orphan, hold): (Nanos, Option<String>),
        now: Now,
        actions: &mut Vec<AgentAction>,
    ) {
        let other = self.sessions.iter().find(|session| session.run != run);
        let holder = self.held.as_ref().map(|(holder, _)| holder);
        let word = match (other, holder) {
            (Some(session), _) => Word::Busy { run: session.run.clone() },
            _ if self.is_leaving && !self.has(&name_of(run, share)) => leaving(),
            (None, Some(holder)) if self.sessions.is_empty() && hold.as_ref() != Some(holder) => {
                Word::Busy { run: holder.clone() }
            }
            // A share is taken over beside another of the same run.
            _ if share > 0 && self.sessions.is_empty() => Word::Nothing,
            _ => {
                let known = self.sessions.iter().position(|session| session.share == share);
                let place = known.unwrap_or_else(|| {
                    self.sessions.push(Session::new((run, share), orphan));
                    self.sessions.len() - 1
                });
                let session = &mut self.sessions[place];
                session.hold = hold;
                session.heard = now.monotonic;
                let AgentIdentity { version, cores, .. } = self.identity.clone();
                Word::Claimed { version, cores }
            }
        };
        actions.push(self.say((run, share), word, &[]));
    }

    fn collect(&mut self, run: String, actions: &mut Vec<AgentAction>) {
        if self.run() == Some(&run) {
            let word = Word::Busy { run: run.clone() };
            return actions.push(self.say((&run, 0), word, &[]));
        }
        match self.collected.get(&run) {
            // Parts that did not arrive are repeated anyway.
            Some(outboxes) => {
                let word = Word::Saved { shares: outboxes.keys().copied().collect() };
                actions.push(self.say((&run, 0), word, &[]));
            }
            None => actions.push(AgentAction::Collect { run }),
        }
    }

    /// Asks for the next piece of a file, or starts the process if all are there.
    fn ask(&mut self, place: usize, now: Now) -> Vec<AgentAction> {
        let session = &mut self.sessions[place];
        if session.stage != Stage::Fetching {
            return Vec::new();
        }
        session.asked = Some(now.monotonic);
        if let Some((sha256, _)) = session.missing.front() {
            let offset = session.files.get(sha256).map_or(0, |file| file.len() as u64);
            let word = Word::Want { sha256: sha256.clone(), offset };
            let (run, share) = (session.run.clone(), session.share);
            return vec![self.say((&run, share), word, &[])];
        }
        let Some(prepare) = session.prepare.clone() else { return Vec::new() };
        session.stage = Stage::Preparing;
        session.told = now.monotonic;
        let (run, files) = (session.name.clone(), std::mem::take(&mut session.files));
        vec![AgentAction::Spawn { run, prepare, files }]
    }

    /// Forgets what has arrived: parts and intervals up to these numbers.
    fn note_arrived(&mut self, (run, share): (&str, u32), part: u64, interval: u64, now: Now) {
        if let Some(outboxes) = self.collected.get_mut(run) {
            outboxes.get_mut(&share).into_iter().for_each(|outbox| outbox.note_arrived(part));
            if outboxes.values().all(PartOutbox::is_finished) {
                self.collected.remove(run);
            }
        }
        for session in self.sessions.iter_mut().filter(|session| session.run == run && session.share == share)
        {
            session.heard = now.monotonic;
            session.outbox.note_arrived(part);
            session.intervals.note_arrived(interval, now.monotonic);
        }
    }

    /// Follows a message of the coordinator to all of its agents.
    fn heed(&mut self, beat: &Beat, now: Now, actions: &mut Vec<AgentAction>) {
        if beat.stage == BeatStage::Over {
            self.collected.remove(&beat.run);
        }
        if beat.stage == BeatStage::Over && self.run() == Some(&beat.run) {
            return self.release(&beat.run, now, actions);
        }
        for session in self.sessions.iter_mut().filter(|session| session.run == beat.run) {
            session.heard = now.monotonic;
            match (beat.stage, &session.stage) {
                // It was only away. The load has stopped, but its result is wanted.
                (BeatStage::Begun, Stage::Orphaned) => session.stage = Stage::Begun,
                (BeatStage::Begun, Stage::Armed { .. }) => session.begin(now, actions),
                _ => {}
            }
            if session.stage == Stage::Begun {
                session.steer(&beat.orders, actions);
            }
        }
    }

    fn send_parts(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        let (mut told, mut due) = (Vec::new(), Vec::new());
        for session in &mut self.sessions {
            let intervals = session.intervals.due(now.monotonic);
            let (first, of) = (session.intervals.first(), (session.run.clone(), session.share));
            let word = |(number, bytes)| (of.clone(), Word::Interval { number, first }, bytes);
            told.extend(intervals.into_iter().map(word));
            let pieces = session.outbox.due(now.monotonic);
            due.extend(pieces.into_iter().map(|piece| (of.clone(), piece)));
        }
        for (run, outboxes) in &mut self.collected {
            for (share, outbox) in outboxes {
                let pieces = outbox.due(now.monotonic);
                due.extend(pieces.into_iter().map(|piece| ((run.clone(), *share), piece)));
            }
        }
        // Intervals first: a coordinator that has them all is done with the last part.
        for ((run, share), word, bytes) in told {
            actions.push(self.say((&run, share), word, &bytes));
        }
        for ((run, share), (piece, bytes)) in due {
            actions.push(self.say((&run, share), Word::Part(piece), &bytes));
        }
    }

    fn say(&self, (run, share): (&str, u32), word: Word, body: &[u8]) -> AgentAction {
        let agent = self.identity.name.clone();
        let subject = subject::word(run, &agent, word.kind());
        let message = FromAgent { wire: WIRE_VERSION, agent, run: run.to_owned(), share, word };
        AgentAction::Publish { subject, payload: encode(&message, body) }
    }
}

/// The refusal of an agent that was told to end.
fn leaving() -> Word {
    Word::Refused {
        error: "it was told to end, and takes no run any more".to_owned(),
        hint: Some("`plimsoll fleet list` shows which agents there are".to_owned()),
        is_usage: false,
    }
}

/// Name of the run of the process that has a share: that of the fleet's run, with a number for a share that
/// was taken over.
fn name_of(run: &str, share: u32) -> String {
    if share == 0 { run.to_owned() } else { format!("{run}-{share}") }
}

/// The share of a run whose process has a run of this name: the inverse of [`name_of`].
pub(crate) fn share_of(run: &str, name: &str) -> Option<u32> {
    let number = name.strip_prefix(run)?;
    if number.is_empty() {
        Some(0)
    } else {
        number.strip_prefix('-')?.parse().ok().filter(|share| *share > 0)
    }
}

impl Session {
    fn new((run, share): (&str, u32), orphan: Nanos) -> Self {
        Self {
            run: run.to_owned(),
            share,
            name: name_of(run, share),
            lease: None,
            orphan,
            hold: None,
            heard: Nanos::ZERO,
            stage: Stage::Claimed,
            missing: VecDeque::new(),
            files: BTreeMap::new(),
            asked: None,
            prepare: None,
            start: Nanos::MAX,
            steered: 0,
            unsteered: Vec::new(),
            values: 0,
            is_being_given: false,
            outbox: PartOutbox::default(),
            intervals: IntervalOutbox::default(),
            next_part: Nanos::ZERO,
            is_taking_part: false,
            told: Nanos::ZERO,
            stirred: Nanos::ZERO,
            is_killed: false,
            is_stopped: false,
        }
    }

    /// Gives back a share whose load has not begun and will not. One whose start is agreed begins, and is
    /// stopped then.
    fn turn_down(&mut self, actions: &mut Vec<AgentAction>) {
        if matches!(self.stage, Stage::Claimed | Stage::Fetching | Stage::Preparing | Stage::Ready) {
            self.discard(actions);
            self.stage = Stage::Refused(leaving());
        }
    }

    /// Stops a load that goes on, since its agent is to end.
    fn leave(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        if self.stage == Stage::Begun && now.monotonic >= self.stirred && !self.is_stopped {
            self.is_stopped = true;
            self.stop(SteerCommand::StopLeaving, actions);
        }
    }

    /// Returns `true` if there is no process, and everything that it has left has arrived.
    fn has_arrived(&self) -> bool {
        match self.stage {
            Stage::Ended => self.outbox.is_finished() && self.intervals.is_empty(),
            // The coordinator of a run that has begun has another agent for it.
            Stage::Refused(_) => self.share > 0,
            _ => false,
        }
    }

    /// Time for which the process has given no sign of its own; zero unless its load goes on.
    fn silence(&self, now: Now) -> Nanos {
        match self.stage {
            Stage::Begun | Stage::Orphaned => now.monotonic.since(self.stirred),
            _ => Nanos::ZERO,
        }
    }

    /// Begins the load at the instant that was agreed.
    fn begin(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        let Stage::Armed { start_at_unix_ns, from_ns } = self.stage else { return };
        self.stage = Stage::Begun;
        self.next_part = now.monotonic + PART;
        self.start = Nanos(start_at_unix_ns);
        self.stirred = now.monotonic + (self.start + Nanos(from_ns)).since(now.unix);
        let run = self.name.clone();
        actions.extend(self.lease.map(|until| AgentAction::Lease { run: run.clone(), until_ns: until.0 }));
        actions.push(AgentAction::Start { run, at_unix_ns: start_at_unix_ns, from_ns });
    }

    /// Passes those orders on that the process has not got yet.
    fn steer(&mut self, orders: &[Steer], actions: &mut Vec<AgentAction>) {
        let new = orders.iter().filter(|steer| steer.number > self.steered);
        actions.extend(new.map(|steer| AgentAction::Steer { run: self.name.clone(), steer: *steer }));
        let last = orders.iter().map(|steer| steer.number).max().unwrap_or(0);
        self.steered = self.steered.max(last);
    }

    /// Gives the process other values of the setup, unless it has them or is being given some. Returns the
    /// answer if it has them.
    fn take_values(&mut self, number: u64, values: &[u8], actions: &mut Vec<AgentAction>) -> Option<Word> {
        if self.values >= number {
            return Some(Word::Values { number, error: None });
        }
        let can_take = matches!(self.stage, Stage::Ready | Stage::Armed { .. } | Stage::Begun);
        if can_take && !self.is_being_given {
            self.is_being_given = true;
            let (run, values) = (self.name.clone(), values.to_vec());
            actions.push(AgentAction::Values { run, number, values });
        }
        None
    }

    /// Takes a lease that counts from an instant.
    fn extend_lease(&mut self, from: Nanos, actions: &mut Vec<AgentAction>) {
        let until = from + LEASE;
        if let Some(lease) = self.lease.as_mut().filter(|lease| **lease < until) {
            *lease = until;
            if self.stage == Stage::Begun {
                actions.push(AgentAction::Lease { run: self.name.clone(), until_ns: until.0 });
            }
        }
    }

    /// Stops the load. Its result is sent as that of any other end.
    fn stop(&mut self, command: SteerCommand, actions: &mut Vec<AgentAction>) {
        if self.stage == Stage::Begun {
            let steer = Steer { number: u64::MAX, at_ns: 0, command };
            actions.push(AgentAction::Steer { run: self.name.clone(), steer });
        }
    }

    /// Ends a process that hangs, and takes parts of the result of one that goes on.
    fn look_after(&mut self, now: Now, actions: &mut Vec<AgentAction>) {
        if self.silence(now) > HUNG && !self.is_killed {
            self.is_killed = true;
            actions.push(AgentAction::Kill { run: self.name.clone() });
        }
        if self.stage == Stage::Begun && now.monotonic >= self.next_part {
            self.next_part = now.monotonic + PART;
            // One at a time: the next contains everything of this one.
            if self.outbox.is_idle() && !self.is_taking_part {
                self.is_taking_part = true;
                actions.push(AgentAction::TakePart { run: self.name.clone() });
            }
        }
    }

    /// Stops a run whose coordinator is silent: without one the load has no end, and its result no reader.
    /// Returns `false` if the agent is free of it.
    fn outlives(&mut self, now: Now, actions: &mut Vec<AgentAction>) -> bool {
        let silence = now.monotonic.since(self.heard);
        match self.stage {
            Stage::Begun if silence > self.orphan => {
                self.stop(SteerCommand::StopOrphaned, actions);
                self.stage = Stage::Orphaned;
                true
            }
            Stage::Begun | Stage::Orphaned => true,
            Stage::Ended => silence <= self.orphan,
            _ if silence > FREE_AGAIN.min(self.orphan) => {
                self.discard(actions);
                false
            }
            _ => true,
        }
    }

    fn discard(&self, actions: &mut Vec<AgentAction>) {
        if self.stage.has_process() {
            actions.push(AgentAction::Discard { run: self.name.clone() });
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
        self.lease = prepare.is_leased.then_some(Nanos::ZERO);
        self.prepare = Some(prepare);
        self.stage = Stage::Fetching;
    }

    /// Takes a piece of a file; `false` if it is not the one that was asked for. A file that does not match
    /// its hash is fetched again.
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
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_process_is_in_its_name() {
        for (share, name) in [(0, "r1"), (3, "r1-3"), (12, "r1-12")] {
            assert_eq!((name_of("r1", share), share_of("r1", name)), (name.to_owned(), Some(share)));
        }
        for other in ["r", "r12", "r1-", "r1-0", "r1-x", "r1-3-4", "x1"] {
            assert_eq!(share_of("r1", other), None, "{other}");
        }
    }
}
