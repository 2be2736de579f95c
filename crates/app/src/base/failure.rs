//! Problems that end a command.

use plimsoll_document::{Problem, Problems, Source};
use plimsoll_plan::Refused;
use plimsoll_targets::StartError;

use super::exit::Exit;

/// Problems that end a command, and how the process ends for them.
#[derive(Debug)]
pub struct Failure {
    pub(crate) problems: Problems,
    /// The plan file that their places are in.
    pub(crate) source: Option<Box<Source>>,
    pub(crate) exit: Exit,
}

impl Failure {
    /// The command makes no sense as it was given.
    pub fn usage(problems: impl Into<Problems>) -> Self {
        Self { problems: problems.into(), source: None, exit: Exit::Usage }
    }

    /// The contents of the system under test differ from what it acknowledged.
    pub(crate) fn inconsistent(problem: Problem) -> Self {
        Self { problems: problem.into(), source: None, exit: Exit::Inconsistent }
    }

    /// The command makes sense, but could not be carried out here and now.
    pub fn environment(problem: Problem) -> Self {
        Self { problems: problem.into(), source: None, exit: Exit::Environment }
    }

    /// A server could not start. The hint is given where another address would help.
    pub fn start(error: &StartError, elsewhere: &str) -> Self {
        let problem = Problem::new(error.to_string());
        Self::environment(match error {
            StartError::Listen { .. } => problem.with_hint(elsewhere),
            _ => problem,
        })
    }

    /// There is no thread to be had.
    pub(crate) fn no_thread(error: &std::io::Error) -> Self {
        Self::environment(Problem::new(format!("cannot start a thread: {error}")))
    }
}

impl From<Refused> for Failure {
    fn from(Refused { problems, source }: Refused) -> Self {
        Self { problems, source: source.map(Box::new), exit: Exit::Usage }
    }
}
