//! `--rate-file`: a file whose first line is the rate.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_engine::{RateCommand, SteerError};
use plimsoll_metrics::SteeredBy;

use crate::base::messages::Notify;
use crate::session::control::rate::{RateController, parse_preference, told};

/// Time between two reads of the file. It is read each time: it is small, and a file system may note times
/// more coarsely than it is written.
const PERIOD: Duration = Duration::from_millis(100);
/// The most bytes of a first line.
const LINE_BYTES: u64 = 256;

/// Watches the file, as long as it lives.
#[derive(Debug)]
pub(crate) struct RateFile {
    /// Dropped, it ends the thread.
    _stop: Sender<()>,
}

impl RateFile {
    /// Begins to watch. The file may appear later, and disappear; its content at the start of the run is the
    /// first change. Its rate is `per_connection` in requests, or else that of the run.
    pub(crate) fn watch(
        path: PathBuf,
        controller: RateController,
        per_connection: bool,
        say: Notify,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        thread::Builder::new().name("rate-file".to_owned()).spawn(move || {
            Watch { path, controller, per_connection, say, done: String::new() }.run(&stopped);
        })?;
        Ok(Self { _stop: stop })
    }
}

struct Watch {
    path: PathBuf,
    controller: RateController,
    per_connection: bool,
    say: Notify,
    /// The line that was dealt with last.
    done: String,
}

impl Watch {
    fn run(mut self, stopped: &Receiver<()>) {
        loop {
            if let Some(line) = first_line(&self.path) {
                self.heed(line);
            }
            match stopped.recv_timeout(PERIOD) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Parses the command on a line.
    fn command(&self, line: &str) -> Result<RateCommand, String> {
        match parse_preference(line)? {
            RateCommand::To(requests) if self.per_connection => {
                let total = self.controller.per_connection.total(requests).map(RateCommand::To);
                total.ok_or_else(|| format!("`{}` on all connections is too large", line.escape_debug()))
            }
            command => Ok(command),
        }
    }

    /// Deals with a line once, whether it is good or bad.
    fn heed(&mut self, line: String) {
        if line == self.done {
            return;
        }
        let outcome = match self.command(&line) {
            Ok(command) => match self.controller.control.set_rate(command, SteeredBy::File) {
                // Again with the next look.
                Err(SteerError::NotYet) => return,
                // At the end of a run the file has no effect, and that needs no message.
                Err(SteerError::Over) => None,
                Err(error) => Some(format!("`{}` is ignored: {error}", line.escape_debug())),
                Ok(change) => change.map(|change| told(Some(change))),
            },
            Err(problem) => Some(format!("ignored: {problem}")),
        };
        if let Some(outcome) = outcome {
            (self.say)(&format!("{}: {outcome}", self.path.display()));
        }
        self.done = line;
    }
}

/// The first line, without the blanks around it; `None` if there is none, or no file.
fn first_line(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LINE_BYTES).read_to_end(&mut bytes).ok()?;
    let line = String::from_utf8_lossy(bytes.split(|byte| *byte == b'\n').next()?).trim().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_counts() {
        let folder = std::env::temp_dir().join(format!("plimsoll-rate-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("rate");
        assert_eq!(first_line(&path), None);
        for (content, line) in [
            ("5000", Some("5000")),
            (" 5k/s \r\n100\n", Some("5k/s")),
            ("", None),
            ("\n100\n", None),
            ("pause\n", Some("pause")),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(first_line(&path).as_deref(), line, "{content:?}");
        }
        std::fs::write(&path, "9".repeat(1000)).unwrap();
        assert_eq!(first_line(&path).map(|line| line.len() as u64), Some(LINE_BYTES));
        assert_eq!(first_line(&folder), None, "a folder has no line");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
