//! The coordinator of one run as a state machine: from the claims to the results of all agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::Nanos;

use crate::agent::hash;
use crate::clock_estimate::ClockEstimate;
use crate::fabric::{Delivery, Now};
use crate::message::{
    Beat, BeatStage, End, FileReference, FromAgent, Line, MessageError, Order, Piece, Prepare, Steer,
    SteerCommand, ToAgent, WIRE_VERSION, Word, decode, encode,
};
use crate::parts::{PIECE_BYTES, PartInbox};
use crate::subject::{self, Subject, parse};

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
/// From the order to begin to the beginning: all have to answer, and to hear of it, in between.
const LEAD: Nanos = Nanos::from_secs(4);
/// Part of the lead that is left when the last answer may come.
const COMMIT: Nanos = Nanos::from_secs(1);
/// Interval between two beats.
const BEAT: Nanos = Nanos::from_secs(1);
/// The same until all have begun.
const FAST_BEAT: Nanos = Nanos::from_millis(100);
/// Silence of an agent that is worth a word.
const SUSPECT: Nanos = Nanos::from_secs(3);
/// Silence after which an agent is taken for lost.
const LOST: Nanos = Nanos::from_secs(10);

/// Policy after the loss of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// All others stop.
    #[default]
    Abort,
    /// All others go on with their shards.
    Continue,
}

/// A run that is to be carried out.
#[derive(Clone, Debug)]
pub struct CoordinatorOptions {
    /// Its name: a word of subjects.
    pub run: String,
    /// Names of its agents. Each has the shard of its place.
    pub agents: Vec<String>,
    /// The run that all agents carry out; the coordinator fills in their shards.
    pub prepare: Prepare,
    /// Files of the run: their names and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// Policy after a loss.
    pub on_loss: OnLoss,
    /// Silence of the coordinator after which agents stop.
    pub orphan: Nanos,
}

/// An action of the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorAction {
    /// Publish a message.
    Publish {
        /// Its subject.
        subject: String,
        /// Its content.
        payload: Vec<u8>,
    },
    /// Tell whoever watches.
    Notice(Notice),
}

/// Something worth a word to whoever watches a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// All agents are ready, and begin at this instant of the coordinator's Unix time.
    Begins {
        /// The instant in nanoseconds.
        at_unix_ns: u64,
    },
    /// An agent has said nothing for a while.
    Suspect(String),
    /// It has said something again.
    Back(String),
    /// It is taken for lost.
    Lost(String),
    /// It did not carry out an order.
    Unsteered {
        /// The agent.
        agent: String,
        /// Why.
        error: String,
    },
    /// It has ended.
    Ended(String),
}

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorStage {
    /// Agents are asked.
    Claiming,
    /// They get ready.
    Preparing,
    /// Their clocks are compared with ours.
    Estimating,
    /// They are told when to begin.
    Arming,
    /// They have begun, or will at the instant that all know.
    Begun,
    /// Every agent has ended or is lost, or nobody has begun: see [`Coordinator::refusals`].
    Over,
}

/// Why an agent did not take part, so that nobody began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The agent.
    pub agent: String,
    /// Why.
    pub error: String,
    /// Remedy, if there is one.
    pub hint: Option<String>,
    /// `true` if the run itself is wrong.
    pub is_usage: bool,
}

/// End of an agent's part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberEnd {
    /// It goes on.
    None,
    /// Its process has ended.
    Ended(End),
    /// Nothing was heard of it any more.
    Lost,
}

/// An agent of a run.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Version of its program.
    pub version: String,
    /// Processors that its process may use.
    pub cores: u32,
    /// Its clock, as it was estimated before the start.
    pub clock: Option<ClockEstimate>,
    /// Its clock, as it was estimated last.
    pub latest_clock: Option<ClockEstimate>,
    /// Its latest figures.
    pub line: Option<Line>,
    /// Its end.
    pub end: MemberEnd,
    /// The last part of its result that has arrived: bytes of a saved run; empty if there is none.
    pub part: Vec<u8>,
    /// Number of that part.
    pub arrived: u64,
}

/// One agent, as the coordinator sees it.
#[derive(Debug)]
struct Side {
    name: String,
    version: String,
    cores: u32,
    heard: Nanos,
    is_claimed: bool,
    is_ready: bool,
    armed: Option<u64>,
    ordered: Option<Nanos>,
    /// The exchange under way: its number, and when it was sent on both clocks.
    exchange: Option<(u32, Now)>,
    next_exchange: u32,
    /// Exchanges that were answered.
    exchanges: u32,
    clock: Option<ClockEstimate>,
    latest_clock: Option<ClockEstimate>,
    next_clock: Nanos,
    line: Option<Line>,
    inbox: PartInbox,
    is_suspect: bool,
    is_lost: bool,
}

impl Side {
    const fn is_done(&self) -> bool {
        self.is_lost || self.inbox.end().is_some()
    }
}

/// One run on several agents.
#[derive(Debug)]
pub struct Coordinator {
    options: CoordinatorOptions,
    files: BTreeMap<String, Arc<Vec<u8>>>,
    stage: CoordinatorStage,
    entered: Nanos,
    sides: Vec<Side>,
    /// The beginning on our own clock.
    start: Option<Nanos>,
    orders: Vec<Steer>,
    next_beat: Nanos,
    refusals: Vec<Refusal>,
    is_stopping: bool,
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
        options.prepare.of = options.agents.len() as u32;
        let side = |name: &String| Side {
            name: name.clone(),
            version: String::new(),
            cores: 0,
            heard: now.monotonic,
            is_claimed: false,
            is_ready: false,
            armed: None,
            ordered: None,
            exchange: None,
            next_exchange: 0,
            exchanges: 0,
            clock: None,
            latest_clock: None,
            next_clock: Nanos::ZERO,
            line: None,
            inbox: PartInbox::default(),
            is_suspect: false,
            is_lost: false,
        };
        Self {
            sides: options.agents.iter().map(side).collect(),
            options,
            files,
            stage: CoordinatorStage::Claiming,
            entered: now.monotonic,
            start: None,
            orders: Vec::new(),
            next_beat: Nanos::ZERO,
            refusals: Vec::new(),
            is_stopping: false,
        }
    }

    /// Subjects that it has to hear.
    pub fn subscriptions(&self) -> [String; 1] {
        [subject::words(&self.options.run)]
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

    /// Why nobody has begun. Empty if the load has begun, or was given up on request.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// All agents in the order of their shards.
    pub fn members(&self) -> Vec<Member> {
        let member = |side: &Side| Member {
            name: side.name.clone(),
            version: side.version.clone(),
            cores: side.cores,
            clock: side.clock,
            latest_clock: side.latest_clock,
            line: side.line.clone(),
            end: match side.inbox.end() {
                Some(end) => MemberEnd::Ended(end.clone()),
                None if side.is_lost => MemberEnd::Lost,
                None => MemberEnd::None,
            },
            part: side.inbox.part().to_vec(),
            arrived: side.inbox.arrived(),
        };
        self.sides.iter().map(member).collect()
    }

    /// The latest figures of the agents that go on or have ended.
    pub fn lines(&self) -> impl Iterator<Item = (&str, &Line)> {
        self.sides.iter().filter_map(|side| Some((&*side.name, side.line.as_ref()?)))
    }

    /// Gives all agents an order that applies at an instant since the start. Before the load has begun only a
    /// stop is heeded: then nobody begins.
    pub fn steer(&mut self, command: SteerCommand, at: Nanos, now: Now) -> Vec<CoordinatorAction> {
        let is_stop = matches!(command, SteerCommand::Stop | SteerCommand::StopNow);
        match self.stage {
            CoordinatorStage::Over => Vec::new(),
            CoordinatorStage::Begun => {
                self.is_stopping |= is_stop;
                let number = self.orders.len() as u64 + 1;
                self.orders.push(Steer { number, at_ns: at.0, command });
                vec![self.beat(now)]
            }
            _ if is_stop => self.give_up(now),
            _ => Vec::new(),
        }
    }

    /// Takes a message.
    pub fn hear(&mut self, delivery: &Delivery, now: Now) -> Vec<CoordinatorAction> {
        let Some(Subject::Word { run, agent }) = parse(&delivery.subject) else { return Vec::new() };
        let Some(place) = self.sides.iter().position(|side| side.name == agent) else { return Vec::new() };
        // What comes after the end changes nothing any more.
        if run != self.options.run || self.stage == CoordinatorStage::Over {
            return Vec::new();
        }
        match decode::<FromAgent>(&delivery.payload) {
            // The broker has held it to its own subject; its words have to agree.
            Ok((said, body)) if said.agent == agent && said.run == run => {
                self.take(place, said.word, body, now)
            }
            Err(error @ MessageError::WrongWire { .. }) => {
                self.refuse(place, error.to_string(), Some(SAME_VERSION.to_owned()), false);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn take(&mut self, place: usize, word: Word, body: &[u8], now: Now) -> Vec<CoordinatorAction> {
        let mut actions = Vec::new();
        let side = &mut self.sides[place];
        let name = side.name.clone();
        side.heard = now.monotonic;
        let was_silent = side.is_suspect || side.is_lost;
        (side.is_suspect, side.is_lost) = (false, false);
        if was_silent {
            actions.push(CoordinatorAction::Notice(Notice::Back(name.clone())));
        }
        match word {
            Word::Claimed { version, cores } => {
                (side.is_claimed, side.version, side.cores) = (true, version, cores);
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
            Word::Armed { start_at_unix_ns } => side.armed = Some(start_at_unix_ns),
            Word::Line(line) => {
                if side.line.as_ref().is_none_or(|last| last.elapsed_s <= line.elapsed_s) {
                    side.line = Some(line);
                }
            }
            Word::Part(piece) => actions.extend(self.take_part(place, &piece, body, now)),
            Word::Unsteered { error, .. } => {
                actions.push(CoordinatorAction::Notice(Notice::Unsteered { agent: name, error }));
            }
            Word::Preparing | Word::Nothing => {}
        }
        actions.extend(self.advance(now));
        actions
    }

    fn take_part(&mut self, place: usize, piece: &Piece, body: &[u8], now: Now) -> Vec<CoordinatorAction> {
        let side = &mut self.sides[place];
        let was_over = side.inbox.end().is_some();
        let is_whole = side.inbox.take(piece, body);
        let has_ended = side.inbox.end().is_some() && !was_over;
        let notice = has_ended.then(|| CoordinatorAction::Notice(Notice::Ended(side.name.clone())));
        // Said at once, so that nothing is sent twice, and again for those who did not hear it.
        let is_repeated = piece.piece + 1 == piece.pieces;
        let beat = (is_whole || is_repeated).then(|| self.beat(now));
        notice.into_iter().chain(beat).collect()
    }

    /// Lets time pass. Call it at least every 50 ms.
    pub fn tick(&mut self, now: Now) -> Vec<CoordinatorAction> {
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
        actions
    }

    /// Goes on to the next stage where everything for it is there.
    fn advance(&mut self, now: Now) -> Vec<CoordinatorAction> {
        use CoordinatorStage as Stage;
        let waited = now.monotonic.since(self.entered);
        if !matches!(self.stage, Stage::Begun | Stage::Over) {
            self.note_silent(now, waited);
            if !self.refusals.is_empty() {
                return self.give_up(now);
            }
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
                    let error = "it did not answer in time when it was told to begin: nobody began";
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
            side.heard = now.monotonic;
            side.next_clock = now.monotonic + CLOCK_AGAIN;
        }
    }

    /// Refuses for those that do not answer.
    fn note_silent(&mut self, now: Now, waited: Nanos) {
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

    /// Ends before anybody has begun.
    fn give_up(&mut self, now: Now) -> Vec<CoordinatorAction> {
        self.enter(CoordinatorStage::Over, now);
        self.last_words(now)
    }

    /// Says to all that nothing more is wanted. It is worth repeating for some seconds: who does not hear it
    /// waits for a sign of life until it is an orphan.
    pub fn last_words(&mut self, now: Now) -> Vec<CoordinatorAction> {
        let mut actions = vec![self.beat(now)];
        for place in 0..self.sides.len() {
            // One that was lost and is still there would go on for an orphan's time.
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
                Order::Claim { orphan_ns: self.options.orphan.0 }
            }
            CoordinatorStage::Preparing if !side.is_ready => {
                let shard = place as u32;
                Order::Prepare(Box::new(Prepare { shard, ..self.options.prepare.clone() }))
            }
            CoordinatorStage::Arming => {
                let start_at_unix_ns = side.clock?.there(self.start?).0;
                if side.armed == Some(start_at_unix_ns) {
                    return None;
                }
                Order::Arm { start_at_unix_ns }
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

    fn look_for_losses(&mut self, now: Now) -> Vec<CoordinatorAction> {
        let mut actions = Vec::new();
        let mut is_anew = false;
        for side in self.sides.iter_mut().filter(|side| !side.is_done()) {
            let silence = now.monotonic.since(side.heard);
            // Before the start there is nothing to say.
            let silence = match self.start {
                Some(start) if now.unix < start + SUSPECT => Nanos::ZERO,
                _ => silence,
            };
            if silence > LOST {
                side.is_lost = true;
                is_anew = true;
                actions.push(CoordinatorAction::Notice(Notice::Lost(side.name.clone())));
            } else if silence > SUSPECT && !side.is_suspect {
                side.is_suspect = true;
                actions.push(CoordinatorAction::Notice(Notice::Suspect(side.name.clone())));
            }
        }
        if is_anew && self.options.on_loss == OnLoss::Abort && !self.is_stopping {
            actions.extend(self.steer(SteerCommand::Stop, Nanos::ZERO, now));
        }
        if is_anew {
            actions.extend(self.advance(now));
        }
        actions
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
        let arrived = self.sides.iter().map(|side| (side.name.clone(), side.inbox.arrived()));
        let beat = Beat {
            wire: WIRE_VERSION,
            run: self.options.run.clone(),
            stage,
            orders: self.orders.clone(),
            arrived: arrived.collect(),
        };
        let subject = subject::beats(&self.options.run);
        CoordinatorAction::Publish { subject, payload: encode(&beat, &[]) }
    }

    fn order(&self, place: usize, order: Order, body: &[u8]) -> CoordinatorAction {
        let message = ToAgent { wire: WIRE_VERSION, run: self.options.run.clone(), order };
        let subject = subject::orders(&self.sides[place].name);
        CoordinatorAction::Publish { subject, payload: encode(&message, body) }
    }
}

const SAME_VERSION: &str = "install the same version on all machines of the fleet";

impl Side {
    /// Takes the answer to the exchange under way. An answer that comes twice, or too late, is none.
    fn note_clock(&mut self, exchange: u32, there: Nanos, now: Now, is_before_start: bool) {
        let Some((_, sent)) = self.exchange.take_if(|(number, _)| *number == exchange) else { return };
        let estimate = ClockEstimate::of_exchange(sent.unix, now.monotonic.since(sent.monotonic), there);
        self.exchanges += 1;
        if is_before_start {
            self.clock = Some(self.clock.map_or(estimate, |best| best.better(estimate)));
        }
        self.latest_clock = Some(estimate);
    }
}
