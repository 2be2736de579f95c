//! Short processes of the program: its commands that answer a question.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::refusal::Refusal;

/// Processes that answer at the same time. They take turns on the processors with the load of a run.
const MOST_AT_ONCE: usize = 4;
/// Longest time for an answer, waiting included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest output, in bytes. The largest page of HTML has a few megabytes.
const LONGEST_OUTPUT: u64 = 64 << 20;
/// Longest messages, in bytes.
const LONGEST_MESSAGES: u64 = 1 << 20;
/// Longest argument, in bytes (MAX_ARG_STRLEN of Linux, with the zero at its end).
const LONGEST_ARGUMENT: usize = (128 << 10) - 1;
/// Exit code of a command that makes no sense as it was given.
pub(crate) const USAGE: i32 = 2;

/// Variables for a process.
pub(crate) type Variables = Vec<(&'static str, String)>;

/// A command of the program with everything that it is given.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) args: Vec<OsString>,
    /// Text for its stdin.
    pub(crate) input: Option<String>,
    /// Working folder of the command.
    pub(crate) folder: PathBuf,
    /// Variables beside those of the server's environment.
    pub(crate) variables: Variables,
}

impl Call {
    /// A command in a folder.
    pub(crate) fn new<A: Into<OsString>>(args: impl IntoIterator<Item = A>, folder: &Path) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { args, folder: folder.to_owned(), ..Self::default() }
    }

    /// Sets the text for the command's stdin.
    pub(crate) fn with_input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Adds variables to the environment of the command.
    pub(crate) fn with_variables(mut self, variables: Variables) -> Self {
        self.variables.extend(variables);
        self
    }
}

/// The variable that confines files which flags name to the current folder, the one that is open. A flag of a
/// page such as `--bearer=@FILE` would name any file.
pub const CONFINED: &str = "PLIMSOLL_CONFINED";

/// The variable that has the number of the process which a server ends with: the server of a page must not be
/// survived by those that it has started, however it ends.
pub const ENDS_WITH: &str = "PLIMSOLL_ENDS_WITH";

/// The variable by which a search tells each trial that it begins, for its page. A terminal has a line that
/// is renewed instead.
pub const TELL_TRIALS: &str = "PLIMSOLL_TELL_TRIALS";

/// Outcome of a command.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: Vec<u8>,
    pub(crate) messages: String,
}

impl Finished {
    /// Returns the first error of the command as an answer.
    pub(crate) fn refusal(&self) -> Refusal {
        let (error, hint) = said(&self.messages);
        let status = match self.code {
            Some(USAGE | 1) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let error = error.unwrap_or_else(|| format!("the command ended with code {:?}", self.code));
        Refusal::new(status, error, hint.unwrap_or_else(|| "try it on the command line".to_owned()))
    }
}

/// The first error among the messages of a command, and its hint.
pub(crate) fn said(messages: &str) -> (Option<String>, Option<String>) {
    let mut lines = messages.lines().skip_while(|line| !line.starts_with("error: "));
    let mut error = lines.next().map(|line| line.trim_start_matches("error: ").to_owned());
    let mut hint = None;
    for line in lines {
        if line.starts_with("error: ") {
            break;
        }
        if let Some(text) = line.trim_start().strip_prefix("hint: ") {
            hint = Some(text.to_owned());
            break;
        }
        // Lines that draw the place in a plan, which the page shows in another way.
        let margin = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        if margin.starts_with("-->") || margin.starts_with('|') {
            continue;
        }
        if let Some(error) = &mut error
            && !line.trim().is_empty()
        {
            error.push('\n');
            error.push_str(line);
        }
    }
    (error, hint)
}

/// The program, as it is asked.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    turns: Semaphore,
}

impl Program {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, turns: Semaphore::new(MOST_AT_ONCE) }
    }

    /// A command of the program that is yet to be started, with no streams.
    pub(crate) fn command(&self, args: &[OsString], folder: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(folder).env(CONFINED, "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A command that serves until this process ends, and is yet to be started.
    pub(crate) fn server(&self, args: &[OsString], folder: &Path) -> Command {
        let mut command = self.command(args, folder);
        command.env(ENDS_WITH, std::process::id().to_string());
        command
    }

    /// Carries out a command. It is killed if the caller no longer waits.
    ///
    /// # Errors
    /// It cannot be started, or takes too long or says too much. A failed command is not an error here.
    pub(crate) async fn call(&self, call: Call) -> Result<Finished, Refusal> {
        let name = call.args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let late = || {
            let error = format!("`plimsoll {name}` did not end within {} s", PATIENCE.as_secs());
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, error, "try it on the command line")
        };
        timeout(PATIENCE, self.carry_out(call, &name)).await.map_err(|_| late())?
    }

    async fn carry_out(&self, call: Call, name: &str) -> Result<Finished, Refusal> {
        if let Some(long) = call.args.iter().find(|arg| arg.len() >= LONGEST_ARGUMENT) {
            let error = format!("an argument of `plimsoll {name}` has {} bytes", long.len());
            return Err(Refusal::unprocessable(error, "the longest has 128 KiB: put the text into a file"));
        }
        if call.args.iter().any(|arg| arg.as_encoded_bytes().contains(&0)) {
            return Err(Refusal::unprocessable("an argument contains a zero byte", "leave it out"));
        }
        let failed = |error: std::io::Error| {
            Refusal::failed(
                format!("`plimsoll {name}` cannot be carried out: {error}"),
                "start `plimsoll ui` again",
            )
        };
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await.map_err(std::io::Error::other).map_err(failed)?;
        let mut command = self.command(&call.args, &call.folder);
        command.stdin(if call.input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.envs(call.variables);
        let mut child = command.spawn().map_err(failed)?;
        let (input, output, messages) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let (Some(mut input), Some(text)) = (input, call.input) {
                // A command that ends early does not read to the end.
                let _ = input.write_all(text.as_bytes()).await;
            }
        };
        let (read, said, ()) =
            tokio::join!(bounded(output, LONGEST_OUTPUT), bounded(messages, LONGEST_MESSAGES), write);
        let (output, messages) = (read.map_err(failed)?, said.map_err(failed)?);
        let (Some(output), Some(messages)) = (output, messages) else {
            let error = format!("`plimsoll {name}` printed more than fits into an answer");
            return Err(Refusal::failed(error, "try it on the command line"));
        };
        let code = child.wait().await.map_err(failed)?.code();
        Ok(Finished { code, output, messages: String::from_utf8_lossy(&messages).into_owned() })
    }
}

/// Reads to the end; `None` if there is more than `most`.
async fn bounded(from: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut read = Vec::new();
    if let Some(from) = from {
        from.take(most + 1).read_to_end(&mut read).await?;
    }
    Ok((read.len() as u64 <= most).then_some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_and_its_hint_are_found() {
        let both = "note: x\nerror: bad rate\n  --> a.yaml:3\nhint: write 5k\nerror: more\nhint: else\n";
        let (error, hint) = said(both);
        assert_eq!(error.as_deref(), Some("bad rate"));
        assert_eq!(hint.as_deref(), Some("write 5k"));
        assert_eq!(said("error: one\nerror: two\nhint: of two\n"), (Some("one".to_owned()), None));
        assert_eq!(said("nothing"), (None, None));
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn shell() -> Program {
        Program::new("/bin/sh".into())
    }

    #[test]
    fn a_process_is_given_its_input_and_its_output_is_bounded() {
        let call = |script: &str| Call::new(["-c", script], Path::new("/"));
        let finished =
            block_on(shell().call(call("cat; pwd; echo error: x >&2; exit 2").with_input("in "))).unwrap();
        assert_eq!(
            (finished.code, &*finished.output, &*finished.messages),
            (Some(2), &b"in /\n"[..], "error: x\n")
        );
        // A command that reads nothing does not block the call.
        let text = "x".repeat(1 << 20);
        assert_eq!(block_on(shell().call(call("exit 0").with_input(text))).unwrap().code, Some(0));
        let refusal = block_on(shell().call(call("yes"))).unwrap_err();
        assert!(refusal.error.contains("more than fits"), "{refusal:?}");
        let long = "x".repeat(LONGEST_ARGUMENT);
        assert!(block_on(shell().call(call(&long))).is_err());
        assert!(block_on(shell().call(call("a\0b"))).is_err());
    }

    /// Without this, a process whose caller has gone would go on beside the next one.
    #[test]
    fn a_process_ends_with_the_request_that_asked_for_it() {
        let folder = std::env::temp_dir().join(format!("plimsoll-web-call-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pid: u32 = block_on(async {
            let program = shell();
            let call = Call::new(["-c", "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000"], &folder);
            let begun = async {
                loop {
                    if let Ok(pid) = std::fs::read_to_string(folder.join("pid")) {
                        return pid.trim().parse().unwrap();
                    }
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = program.call(call) => panic!("it sleeps"),
                pid = begun => pid,
            }
        });
        std::fs::remove_dir_all(&folder).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // The process is killed at once, and its pid is free once it was waited for.
        while let Ok(stat) = stat() {
            if stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim().starts_with('Z')) {
                break;
            }
        }
    }
}
