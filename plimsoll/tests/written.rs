//! Tests of outputs: without secrets, without characters that act on a terminal, and never lost without a
//! message.

mod hostile;
mod lost;
mod secrets;
mod server;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_testkit::machine;

/// A folder of a test's own, with the history in it. It goes with this.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-written-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), content).expect("the folder can be written");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A command in this folder.
    fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null()).env("XDG_DATA_HOME", &self.0);
        for name in ["PLIMSOLL_STORE", "PLIMSOLL_SAVE", "PLIMSOLL_REDACT", "SSLKEYLOGFILE", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    fn output(&self, args: &[impl AsRef<OsStr>]) -> Output {
        self.command(args).output().expect("the program was built")
    }

    /// Returns the output of a command that gave a result, good or bad.
    fn result(&self, args: &[&str]) -> Output {
        let _turn = machine::load();
        let output = self.output(args);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 3 | 99)), "{args:?}: {code:?} {}", text(&output.stderr));
        output
    }

    /// A line for the shell, in which `PLIMSOLL` is the program.
    fn shell(&self, line: &str) -> Output {
        let _turn = machine::load();
        let line = line.replace("PLIMSOLL", env!("CARGO_BIN_EXE_plimsoll"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&self.0).stdin(Stdio::null()).env("XDG_DATA_HOME", &self.0);
        shell.output().expect("there is a shell")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The system cleans up files that cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
