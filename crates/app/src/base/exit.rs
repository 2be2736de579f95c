//! Exit codes.

use std::process::ExitCode;

/// Reason for the end of the process, which sets its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Ran, and the numbers can be believed.
    Success,
    /// The target could not be reached, or the system did not play along.
    Environment,
    /// No request succeeded, and there was no threshold.
    NothingSucceeded,
    /// Bad usage.
    Usage,
    /// The measurement is invalid, or does not show what was asked.
    Invalid,
    /// A comparison found a change for the worse.
    Regression,
    /// A comparison decided nothing, and was asked to.
    Undecided,
    /// The contents of the system under test differ from what it acknowledged.
    Inconsistent,
    /// A fleet has lost an agent.
    AgentLost,
    /// A threshold does not hold.
    Thresholds,
    /// Ended by this signal, after the partial result was written.
    Interrupted(i32),
}

impl Exit {
    /// All codes, each by one that has it, with the signals that are heeded.
    pub(crate) const KINDS: [Self; 12] = [
        Self::Success,
        Self::Environment,
        Self::Usage,
        Self::Invalid,
        Self::Regression,
        Self::Undecided,
        Self::Inconsistent,
        Self::AgentLost,
        Self::Thresholds,
        Self::Interrupted(signal_hook::consts::SIGHUP),
        Self::Interrupted(signal_hook::consts::SIGINT),
        Self::Interrupted(signal_hook::consts::SIGTERM),
    ];

    /// The code that the process ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Environment | Self::NothingSucceeded => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Regression => 4,
            Self::Undecided => 5,
            Self::Inconsistent => 6,
            Self::AgentLost => 7,
            Self::Thresholds => 99,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
        }
    }

    /// Returns its meaning, for the reference.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Success => "ran: thresholds hold, or there are none and requests succeeded",
            Self::Environment | Self::NothingSucceeded => {
                "no request succeeded or the target stopped answering, and no threshold shows it; the target \
                 cannot be reached, or an unexpected error"
            }
            Self::Usage => "bad usage, a plan with errors, or an error in a script",
            Self::Invalid => {
                "no verdict: the measurement is invalid, and not because of the target, or it shows neither that \
                 a threshold holds nor that it does not (too few samples, no data); `find`: the generator or \
                 the time was the limit; `verify`: only another version could compare all of it"
            }
            Self::Regression => "`compare`, `ab`: worse",
            Self::Undecided => "`compare --strict`, `ab --strict`: undecided",
            Self::Inconsistent => {
                "a check failed: the server's contents differ from what it acknowledged, it no longer takes \
                 writes, or evidence does not verify"
            }
            Self::AgentLost => "`--fleet`: an agent was lost, so a part of the load is unaccounted for",
            Self::Thresholds => {
                "a threshold does not hold, and a figure shows that; `find`: no rate that was tried holds, \
                 the capacity is below `--at-least`, or a level of `--sweep` breaks the objective"
            }
            Self::Interrupted(signal_hook::consts::SIGINT) => "interrupted by SIGINT (`^C`)",
            Self::Interrupted(signal_hook::consts::SIGHUP) => "the terminal has gone (SIGHUP)",
            Self::Interrupted(_) => "ended by SIGTERM",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The exit of two runs together. A finding of one is not undone by another without one: a failure goes
/// before an invalid measurement.
pub(crate) fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit: Exit| match exit {
        Exit::Interrupted(_) => 8,
        Exit::Environment => 7,
        Exit::Usage => 6,
        Exit::AgentLost => 5,
        Exit::Inconsistent => 4,
        Exit::Thresholds => 3,
        Exit::NothingSucceeded => 2,
        Exit::Invalid => 1,
        Exit::Success | Exit::Regression | Exit::Undecided => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}
