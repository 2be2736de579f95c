//! Runs that this server has not started: those of terminals, and those of other servers of the page, also of
//! the one before a restart.

use std::path::Path;

use plimsoll_store::{Outline, State};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use super::{FOLDER, over, stopping};
use crate::answer::Json;
use crate::options::Process;
use crate::refusal::Refusal;
use crate::router::{Ui, blocking};

/// Flag of a run of a page, whose value names a file in the folder of its server.
const TOKEN_FLAG: &str = "--control-token=@";

/// Origin of a run that this server has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// A terminal, in which it is steered.
    Terminal,
    /// A server of the page, this one before a restart or another one. There may be nobody else to stop it.
    Page,
}

impl Elsewhere {
    /// The origin of a run of the history that goes on, by the command line of its process: the history keeps
    /// no names of files with secrets.
    pub(super) fn of(outline: &Outline, process: Process) -> Self {
        let found = outline.process.as_deref().and_then(process);
        if found.is_some_and(|(_, args)| is_page(&args)) { Self::Page } else { Self::Terminal }
    }

    /// Returns the word for the origin, as the page reads it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Page => "page",
        }
    }
}

/// Returns `true` if this is the command line of a run of a server of the page.
fn is_page(args: &[String]) -> bool {
    let mut files = args.iter().filter_map(|arg| arg.strip_prefix(TOKEN_FLAG));
    files.any(|file| {
        let folder = Path::new(file).parent().and_then(Path::file_name);
        folder.is_some_and(|name| name.as_encoded_bytes().starts_with(FOLDER.as_bytes()))
    })
}

/// Stops a run of another server of the page, as `^C` does; the second time at once.
///
/// # Errors
/// `unknown` if it is none, or does not go on; the run has ended, or is on another machine.
pub(super) async fn stop(ui: &Ui, id: String, now: bool, unknown: Refusal) -> Result<Json<Value>, Refusal> {
    let history = ui.history.clone();
    let Ok(outline) = blocking(move || history.outline(&id)).await else { return Err(unknown) };
    let number = || {
        let words = outline.process.as_deref().filter(|_| outline.state == State::Running)?;
        let (number, args) = (ui.options.process)(words)?;
        is_page(&args).then_some(number)
    };
    let Some(pid) = number().and_then(|number| Pid::from_raw(number.cast_signed())) else {
        return Err(unknown);
    };
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| over())?;
    // The number may have become that of another process before it was opened, and not after.
    if number() != Some(pid.as_raw_nonzero().get().cast_unsigned()) {
        return Err(over());
    }
    match pidfd_send_signal(process, Signal::INT) {
        Ok(()) => Ok(stopping(now)),
        Err(error) => Err(Refusal::failed(error.to_string(), "try it again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_another_server_is_known_by_the_file_of_its_token() {
        let is_page = |args: &[&str]| is_page(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>());
        assert!(is_page(&["plimsoll", "run", "-", "--control-token=@/tmp/plimsoll-ui-0af3/12.token"]));
        for args in [
            &["plimsoll", "run", "a.yaml"][..],
            &["run", "--control-token=@/home/a/token"],
            &["run", "--name=--control-token=@/tmp/plimsoll-ui-1/a"],
            &["run", "--control-token=plimsoll-ui-1/a"],
        ] {
            assert!(!is_page(args), "{args:?}");
        }
    }
}
