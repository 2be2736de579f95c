//! The built-in server that the examples are for, started when it is first wanted.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use crate::child_starter::ChildStarter;
use crate::program::Program;
use crate::refusal::Refusal;

/// Longest time in which it says where it listens.
const START: Duration = Duration::from_secs(10);
/// Longest time for its end. Then it is killed.
const END: Duration = Duration::from_millis(500);
/// Words before its address.
const ANNOUNCEMENT: &str = "listening on ";
/// The variable by which plans of examples find their target.
const VARIABLE: &str = "TARGET";

/// The sink. It is in the process group of the server, so that a terminal that ends the server ends both.
pub(crate) struct ExampleSink {
    program: Arc<Program>,
    starter: ChildStarter,
    folder: PathBuf,
    process: AsyncMutex<Option<Child>>,
    url: Mutex<Option<String>>,
}

impl ExampleSink {
    /// A sink that is not started yet, in a folder.
    pub(crate) fn new(program: Arc<Program>, starter: ChildStarter, folder: PathBuf) -> Self {
        Self { program, starter, folder, process: AsyncMutex::default(), url: Mutex::default() }
    }

    /// Its address, once it was started.
    pub(crate) fn url(&self) -> Option<String> {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The variable by which plans find it.
    pub(crate) fn variable(&self) -> Option<(&'static str, String)> {
        self.url().map(|url| (VARIABLE, url))
    }

    /// Starts it unless it runs, and returns its address.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) async fn start(&self) -> Result<String, Refusal> {
        let mut process = self.process.lock().await;
        let runs = process.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if let Some(url) = self.url().filter(|_| runs) {
            return Ok(url);
        }
        let failed = |error: String| {
            Refusal::failed(
                format!("the built-in server cannot be started: {error}"),
                "start it yourself: `plimsoll sink`",
            )
        };
        let args = ["sink", "--listen", "127.0.0.1:0"].map(OsString::from);
        let mut command = self.program.command(&args, &self.folder);
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = self.starter.start(command).await.map_err(|error| failed(error.to_string()))?;
        let Some(messages) = child.stderr.take() else { return Err(failed("it printed nothing".to_owned())) };
        let mut lines = BufReader::new(messages).lines();
        let announced = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, address)) = line.split_once(ANNOUNCEMENT) {
                    return Some(format!("http://{}", address.trim()));
                }
            }
            None
        };
        let url = timeout(START, announced).await.ok().flatten();
        let url = url.ok_or_else(|| failed("it printed no address".to_owned()))?;
        // The sink would block on a pipe that is not read.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        *self.url.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.clone());
        *process = Some(child);
        Ok(url)
    }

    pub(crate) async fn stop(&self) {
        let Some(mut child) = self.process.lock().await.take() else { return };
        if let Some(process) = child.id().and_then(|process| Pid::from_raw(process.cast_signed())) {
            // It may have ended already.
            let _ = kill_process(process, Signal::TERM);
        }
        if timeout(END, child.wait()).await.is_err() {
            let _ = child.start_kill();
        }
    }
}
