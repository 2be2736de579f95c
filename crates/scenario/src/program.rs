//! Scenarios as programs: the next actions of a session.

mod bounds;

use std::ops::Range;

use plimsoll_core::{Nanos, Random};

pub use self::bounds::RequestBounds;
use crate::condition::{Condition, variables_of};
use crate::feed::{FeedError, Feeds};
use crate::pause::Pause;
use crate::recording::{RecordedValue, Recording, ValueSink};
use crate::session::KeptRow;
use crate::token::Tokens;
use crate::{Context, Session, Template};

/// One instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// Send the request of this step of the plan; go on when its response was good.
    Send(u32),
    /// Send the requests of these steps at once; go on when all responses were good.
    Fork(Range<u32>),
    /// Think. A pause of zero length does nothing.
    Pause(Pause),
    /// Think until this long after the end of the pace before it, or after the iteration began; not at all,
    /// if that has passed.
    Pace(Nanos),
    /// Ask the script (an index into the plan's) for how long to think: wrk's `delay`.
    ScriptPause(u32),
    /// Set a variable to the rendered text, which may name the variable itself: the value before. A text that
    /// is not fit for a header fails the iteration.
    Set {
        /// Position of the variable.
        variable: u16,
        /// New value of the variable.
        value: Template,
    },
    /// Record a value of a metric.
    Record(Box<Recording>),
    /// Take the next row of a data source (an index into the plan's): sets its variables.
    Draw(u16),
    /// Keep the values of some variables as a row of a pool (an index into the plan's).
    Keep(u16),
    /// Set these variables to a row of a pool; without one they are not set any more.
    Pick {
        /// An index into the plan's pools.
        pool: u16,
        /// `true` if the row leaves the pool.
        leaves: bool,
    },
    /// Forget all cookies.
    ClearCookies,
    /// Go on at this instruction.
    Jump(u32),
    /// Go on at this instruction unless the condition holds.
    Unless(Condition, u32),
    /// Begin a loop: its counter becomes the number that the text renders to. Anything but a whole number
    /// from 0 to 2^64 - 1 fails the iteration.
    Repeat {
        /// Which counter of the session.
        counter: u16,
        /// A whole number.
        times: Template,
    },
    /// Go on at `end` if the counter is zero; else count down and fall through.
    CountDown {
        /// Which counter of the session.
        counter: u16,
        /// The instruction after the loop.
        end: u32,
    },
}

/// By how much positions in a plan grow when another one comes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// Positions of steps.
    pub steps: u32,
    /// Positions of data sources.
    pub feeds: u16,
    /// Positions of pools.
    pub pools: u16,
    /// Positions of metrics.
    pub metrics: u16,
}

impl Shift {
    /// Steps behind those before them.
    pub const fn range(self, steps: Range<u32>) -> Range<u32> {
        steps.start + self.steps..steps.end + self.steps
    }
}

impl Op {
    /// The steps whose requests it sends.
    pub fn sends(&self) -> Range<u32> {
        match self {
            Self::Send(step) => *step..*step + 1,
            Self::Fork(steps) => steps.clone(),
            _ => 0..0,
        }
    }

    /// Number of the requests that it sends.
    pub fn requests(&self) -> u64 {
        self.sends().len() as u64
    }

    /// Where it may lead to, if that is elsewhere than to the next instruction.
    pub const fn leads_to(&self) -> Option<u32> {
        match self {
            Self::Jump(to) | Self::Unless(_, to) | Self::CountDown { end: to, .. } => Some(*to),
            _ => None,
        }
    }

    /// The place of [where it leads to](Self::leads_to).
    pub const fn leads_to_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Jump(to) | Self::Unless(_, to) | Self::CountDown { end: to, .. } => Some(to),
            _ => None,
        }
    }

    /// Returns `true` for the instructions of loops and branches: those that decide on what comes next.
    pub const fn is_control(&self) -> bool {
        matches!(self, Self::Jump(_) | Self::Unless(..) | Self::Repeat { .. } | Self::CountDown { .. })
    }

    /// The instruction in a plan that comes behind another one. Scripts keep their positions.
    #[must_use]
    pub fn shifted(self, by: Shift) -> Self {
        match self {
            Self::Send(step) => Self::Send(step + by.steps),
            Self::Fork(steps) => Self::Fork(by.range(steps)),
            Self::Draw(feed) => Self::Draw(feed + by.feeds),
            Self::Keep(pool) => Self::Keep(pool + by.pools),
            Self::Pick { pool, leaves } => Self::Pick { pool: pool + by.pools, leaves },
            Self::Record(mut recording) => {
                recording.metric += by.metrics;
                Self::Record(recording)
            }
            Self::Pause(_)
            | Self::Pace(_)
            | Self::ScriptPause(_)
            | Self::Set { .. }
            | Self::ClearCookies
            | Self::Jump(_)
            | Self::Unless(..)
            | Self::Repeat { .. }
            | Self::CountDown { .. } => self,
        }
    }

    /// The variables whose values it reads; one may come more than once. Requests read variables, too, and so
    /// does a [`Keep`](Self::Keep): those are not among them.
    pub fn reads(&self) -> impl Iterator<Item = u16> + '_ {
        let template = match self {
            Self::Set { value, .. } => Some(value),
            Self::Repeat { times, .. } => Some(times),
            _ => None,
        };
        let condition = match self {
            Self::Unless(condition, _) => Some(condition),
            _ => None,
        };
        let in_condition = condition.into_iter().flat_map(Condition::variables);
        let recorded = self.recording().into_iter().flat_map(Recording::templates);
        template.into_iter().chain(recorded).flat_map(variables_of).chain(in_condition)
    }

    fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Record(recording) => Some(recording),
            _ => None,
        }
    }

    /// The variable that it sets itself. Those of a [`Draw`](Self::Draw) or a [`Pick`](Self::Pick) are the
    /// columns of its source or pool, and those of a response are set by its step.
    pub fn writes(&self) -> Option<u16> {
        match self {
            Self::Set { variable, .. } => Some(*variable),
            _ => None,
        }
    }

    /// Returns `true` if the instruction reads the time.
    pub fn needs_clock(&self) -> bool {
        match self {
            Self::Set { value: template, .. } | Self::Repeat { times: template, .. } => {
                template.needs_clock()
            }
            Self::Unless(condition, _) => condition.needs_clock(),
            Self::Record(recording) => recording.templates().any(Template::needs_clock),
            _ => false,
        }
    }

    /// Returns `true` if the instruction may take numbers of the worker's random stream, from which requests
    /// are rendered, too.
    pub fn draws(&self) -> bool {
        match self {
            Self::Pause(pause) => !matches!(pause, Pause::Fixed(_)),
            Self::Set { value: template, .. } | Self::Repeat { times: template, .. } => template.draws() > 0,
            Self::Unless(condition, _) => condition.draws(),
            Self::Record(recording) => recording.templates().any(|template| template.draws() > 0),
            // The order of rows follows from the seed.
            Self::Draw(_) | Self::Keep(_) | Self::Pick { .. } | Self::ScriptPause(_) => true,
            Self::Send(_)
            | Self::Fork(_)
            | Self::Pace(_)
            | Self::ClearCookies
            | Self::Jump(_)
            | Self::CountDown { .. } => false,
        }
    }
}

/// Longest text that a variable is set to, in bytes: as long as a body of which a value is taken.
pub const LONGEST_VALUE: usize = 16 << 20;

/// Next action of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the request of this step.
    Send(u32),
    /// Send the requests of these steps at once.
    Fork(Range<u32>),
    /// Wait for this time, then ask again.
    Pause(Nanos),
    /// Ask this script for how long to wait, then ask again.
    ScriptPause(u32),
    /// The iteration is complete.
    End,
    /// This data source has ended, and its plan says that nothing more is to be begun. The iteration has not
    /// sent anything and does not count. (Where a source ends later in an iteration, that fails: it has been
    /// begun and cannot be completed.)
    Exhausted(u16),
    /// This variable was to be set to a text of more than [`LONGEST_VALUE`] bytes, and the iteration cannot
    /// go on.
    Overgrown(u16),
    /// The iteration cannot go on.
    Fail(String),
}

/// Inputs of a program, besides its session.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Index of the iteration, unique in the run.
    pub index: u64,
    /// Index of the worker.
    pub worker: u32,
    /// Wall-clock time, nanoseconds since 1970.
    pub unix_ns: u64,
    /// Time since the iteration began.
    pub elapsed: Nanos,
    /// The worker's random stream.
    pub random: &'a mut Random,
    /// The worker's share of the data sources.
    pub feeds: &'a mut Feeds,
    /// The worker's tokens.
    pub tokens: Option<&'a Tokens>,
    /// Receiver of the values that steps record; `None` to forget them.
    pub values: Option<&'a mut dyn ValueSink>,
}

impl<'a> Surroundings<'a> {
    /// Returns the inputs of a template, besides [`random`](Self::random).
    pub(crate) fn context<'v>(&self, variables: &'v [Vec<u8>]) -> Context<'v>
    where
        'a: 'v,
    {
        Context {
            index: self.index,
            worker: self.worker,
            unix_ns: self.unix_ns,
            variables,
            tokens: self.tokens,
            ..Context::default()
        }
    }
}

/// A scenario, compiled.
///
/// It is the same for all sessions and is not changed by them; where one is, is in the [`Session`]. Every
/// worker has to have a clone of its own, for the sake of the regular expressions in [conditions](Condition).
#[derive(Clone, Debug, Default)]
pub struct Program {
    ops: Vec<Op>,
    requests: RequestBounds,
}

impl Program {
    /// Instructions that are carried out at most before a program sends, thinks or ends: more are a loop
    /// without a request.
    pub const MOST_AT_ONCE: u32 = 10_000;

    /// A program of these instructions. It ends where a jump leads behind the last one. Nothing is known of
    /// the number of its requests if it has loops or branches.
    pub fn new(ops: Vec<Op>) -> Self {
        let requests = match ops.iter().any(Op::is_control) {
            true => RequestBounds::ANY,
            false => RequestBounds::exactly(ops.iter().map(Op::requests).sum()),
        };
        Self { ops, requests }
    }

    /// A program of these instructions, which make so many requests.
    pub const fn with_requests(ops: Vec<Op>, requests: RequestBounds) -> Self {
        Self { ops, requests }
    }

    /// The program with another instruction in the place of each, which makes as many requests.
    #[must_use]
    pub fn map(&self, of: impl FnMut(Op) -> Op) -> Self {
        Self { ops: self.ops.iter().cloned().map(of).collect(), requests: self.requests }
    }

    /// Bounds of the number of its requests.
    pub const fn requests(&self) -> RequestBounds {
        self.requests
    }

    /// Returns the instructions of the program.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The only step of a program that does nothing else: it needs no session.
    pub fn single(&self) -> Option<u32> {
        match self.ops.as_slice() {
            [Op::Send(step)] => Some(*step),
            _ => None,
        }
    }

    /// Returns `true` if one of the instructions reads the time.
    pub fn needs_clock(&self) -> bool {
        self.ops.iter().any(Op::needs_clock)
    }

    /// Returns `true` if one of the instructions [draws](Op::draws).
    pub fn draws(&self) -> bool {
        self.ops.iter().any(Op::draws)
    }

    /// Carries out instructions up to the next that is not done at once. Allocates nothing in steady state.
    ///
    /// After [`Next::End`], [`Next::Exhausted`], [`Next::Overgrown`] and [`Next::Fail`] the session has to be
    /// [reset](Session::reset).
    ///
    /// # Panics
    /// If the session has fewer variables than the instructions name.
    pub fn next(&self, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Next {
        for _ in 0..Self::MOST_AT_ONCE {
            let Some(op) = self.ops.get(session.position as usize) else { return Next::End };
            session.position += 1;
            if let Some(next) = carry_out(op, session, surroundings) {
                session.has_sent |= matches!(next, Next::Send(_) | Next::Fork(_));
                return next;
            }
        }
        Next::Fail(format!(
            "a loop that never sends: {} instructions without a request, a pause or the end",
            Self::MOST_AT_ONCE
        ))
    }
}

/// Carries out one instruction; returns the next action of the session unless it is done at once.
fn carry_out(op: &Op, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Option<Next> {
    match op {
        Op::Send(step) => return Some(Next::Send(*step)),
        Op::Fork(steps) if steps.is_empty() => {}
        Op::Fork(steps) => return Some(Next::Fork(steps.clone())),
        Op::Pause(pause) => match pause.draw(surroundings.random) {
            Nanos::ZERO => {}
            time => return Some(Next::Pause(time)),
        },
        Op::Pace(time) => {
            let due = session.paced + *time;
            // One that was missed is not made up for.
            session.paced = due.max(surroundings.elapsed);
            match due.since(surroundings.elapsed) {
                Nanos::ZERO => {}
                left => return Some(Next::Pause(left)),
            }
        }
        Op::ScriptPause(script) => return Some(Next::ScriptPause(*script)),
        Op::Set { variable, value } => return set(*variable, value, session, surroundings),
        Op::Record(recording) => return record(recording, session, surroundings),
        Op::Draw(feed) => return draw(*feed, session, surroundings),
        Op::Keep(pool) => surroundings.feeds.pool(*pool).keep(surroundings.random, &session.variables),
        Op::Pick { pool, leaves } => {
            let Session { variables, known, picked, .. } = session;
            let feeds = &mut *surroundings.feeds;
            let number = feeds.pool(*pool).give(*leaves, picked, surroundings.random, variables, known);
            picked.extend(number);
        }
        Op::ClearCookies => session.cookies.clear(),
        Op::Jump(to) => session.position = *to,
        Op::Unless(condition, to) => match condition.holds(session, surroundings) {
            Ok(true) => {}
            Ok(false) => session.position = *to,
            Err(reason) => return Some(Next::Fail(reason)),
        },
        Op::Repeat { counter, times } => return begin_loop(*counter, times, session, surroundings),
        Op::CountDown { counter, end } => match session.counters.get_mut(usize::from(*counter)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => session.position = *end,
        },
    }
    None
}

fn set(
    variable: u16,
    value: &Template,
    session: &mut Session,
    surroundings: &mut Surroundings<'_>,
) -> Option<Next> {
    // Before it is rendered, for many long values make a text that no memory holds; and behind it, for
    // characters that become several.
    let len_of = |index: u16| session.variables.get(usize::from(index)).map_or(0, Vec::len);
    if value.len_of_variables(&len_of) > LONGEST_VALUE {
        return Some(Next::Overgrown(variable));
    }
    render(value, session, surroundings);
    if session.scratch.len() > LONGEST_VALUE {
        session.scratch = Vec::new();
        return Some(Next::Overgrown(variable));
    }
    // The value takes the buffer, and the buffer that it had is the next room to render into.
    std::mem::swap(&mut session.variables[usize::from(variable)], &mut session.scratch);
    session.known[usize::from(variable)] = true;
    None
}

fn record(recording: &Recording, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Option<Next> {
    let len_of = |index: u16| session.variables.get(usize::from(index)).map_or(0, Vec::len);
    let len = recording.templates().map(|template| template.len_of_variables(&len_of));
    if len.fold(0, usize::saturating_add) > LONGEST_VALUE {
        let most = LONGEST_VALUE >> 20;
        return Some(Next::Fail(format!("a value to be recorded has more than {most} MiB")));
    }
    session.scratch.clear();
    session.ends.clear();
    for template in recording.templates() {
        let context = surroundings.context(&session.variables);
        template.render(&context, surroundings.random, &mut session.scratch);
        session.ends.push(session.scratch.len());
    }
    if let Some(values) = &mut surroundings.values {
        values.record(RecordedValue { recording, texts: &session.scratch, ends: &session.ends });
    }
    None
}

fn draw(feed: u16, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Option<Next> {
    let Session { variables, known, has_sent, kept, .. } = session;
    if let Some(row) = kept.iter().find(|row| row.feed == feed) {
        row.give(variables, known);
        return None;
    }
    match surroundings.feeds.draw(feed, surroundings.random, variables, known) {
        Ok(()) => {
            // Once for each user, with its first iteration.
            let values = surroundings.feeds.kept(feed).map(|columns| {
                columns.map(|variable| (variable, variables[usize::from(variable)].clone())).collect()
            });
            kept.extend(values.map(|values| KeptRow { feed, values }));
            None
        }
        Err(FeedError::Ended) if !*has_sent => Some(Next::Exhausted(feed)),
        Err(error) => Some(Next::Fail(error.to_string())),
    }
}

fn begin_loop(
    counter: u16,
    times: &Template,
    session: &mut Session,
    surroundings: &mut Surroundings<'_>,
) -> Option<Next> {
    render(times, session, surroundings);
    let Some(times) = whole_number(&session.scratch) else {
        return Some(Next::Fail(format!(
            "a loop is to be repeated `{}` times, which is not a whole number from 0 to {}",
            excerpt(&session.scratch),
            u64::MAX
        )));
    };
    let counter = usize::from(counter);
    if session.counters.len() <= counter {
        session.counters.resize(counter + 1, 0);
    }
    session.counters[counter] = times;
    None
}

/// Renders into the session's scratch buffer, and nothing else is in it.
fn render(template: &Template, session: &mut Session, surroundings: &mut Surroundings<'_>) {
    session.scratch.clear();
    let context = surroundings.context(&session.variables);
    template.render(&context, surroundings.random, &mut session.scratch);
}

fn whole_number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// The beginning of a value, for a message: it may be anything that a server sent, and as long.
pub(crate) fn excerpt(value: &[u8]) -> String {
    const LONGEST: usize = 20;
    match value.get(..LONGEST) {
        Some(begin) if value.len() > LONGEST => format!("{}…", begin.escape_ascii()),
        _ => value.escape_ascii().to_string(),
    }
}
