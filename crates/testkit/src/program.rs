//! Programs as processes that are read line by line and never outlive their test.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::{machine, verdict};

/// Longest time without a line from a process that is waited for: three times the longest run of these tests.
/// A process that is silent for longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of one output of a process, as they come.
#[derive(Debug)]
pub struct Lines {
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn read(from: impl Read + Send + 'static) -> Self {
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { lines, seen: Vec::new() }
    }

    /// The next line; `None` at the end.
    fn next(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came for {PATIENCE:?} after {:#?}", self.seen),
        }
    }

    /// Reads up to a line that contains `text`; `None` if there is none up to the end.
    pub fn find(&mut self, text: &str) -> Option<String> {
        std::iter::from_fn(|| self.next()).find(|line| line.contains(text))
    }

    /// Reads up to a line that contains `text`, and returns it.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.find(text).unwrap_or_else(|| panic!("it ended without `{text}` after {:#?}", self.seen))
    }

    fn rest(&mut self) -> String {
        while self.next().is_some() {}
        self.seen.join("\n")
    }
}

/// A running process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The lines of stdout.
    pub stdout: Lines,
    /// The lines of stderr.
    pub stderr: Lines,
}

impl Process {
    /// Starts a command with both outputs captured; `None` if there is no such program.
    pub fn try_start(command: &mut Command) -> Option<Self> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("{command:?}: {error}"),
        };
        let stdout = Lines::read(child.stdout.take().expect("it is piped"));
        let stderr = Lines::read(child.stderr.take().expect("it is piped"));
        Some(Self { child, stdout, stderr })
    }

    /// Starts a command with both outputs captured.
    ///
    /// # Panics
    /// There is no such program.
    pub fn start(mut command: Command) -> Self {
        Self::try_start(&mut command).unwrap_or_else(|| panic!("{command:?}: no such program"))
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id();
        let sent = Command::new("sh").args(["-c", &format!("kill -s {name} {pid}")]).status();
        assert!(sent.expect("there is a shell").success(), "{name} to {pid}");
    }

    /// The most bytes of memory that it had so far.
    pub fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        kib << 10
    }

    /// Returns the number of its threads.
    pub fn threads(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.map_or(0, |tasks| tasks.filter_map(Result::ok).count())
    }

    /// Returns the number of threads whose names begin with `name` and that wait in the system call `read`.
    pub fn threads_in_read(&self, name: &str) -> usize {
        // The number of the call comes first; 0 on x86-64, 63 on others.
        let read = if cfg!(target_arch = "x86_64") { "0 " } else { "63 " };
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = std::fs::read_dir(tasks).expect("it runs").filter_map(Result::ok);
        let waits = |task: &PathBuf| {
            // A thread may have ended meanwhile.
            let comm = std::fs::read_to_string(task.join("comm")).unwrap_or_default();
            let syscall = std::fs::read_to_string(task.join("syscall")).unwrap_or_default();
            comm.starts_with(name) && syscall.starts_with(read)
        };
        tasks.map(|task| task.path()).filter(waits).count()
    }

    /// Returns `true` if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// Waits for its end, of any kind.
    pub fn wait(&mut self) {
        self.child.wait().expect("it is our child");
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Finished {
        // Both pipes are drained by threads of their own, so their order does not matter.
        let stdout = self.stdout.rest();
        let stderr = self.stderr.rest();
        let status = self.child.wait().expect("it is our child");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Finished { code: status.code(), stdout, stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command of a program with the words of `args` as its arguments, and with the usual handling of
/// signals: the shell that runs the tests may have told them to ignore some (`nohup`, `&`), and children
/// inherit that.
pub fn command(program: &str, args: &str) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT").arg(program);
    command.args(args.split_whitespace()).env_remove("SSLKEYLOGFILE");
    command
}

/// Exit code and output of a process that has ended.
#[derive(Debug)]
pub struct Finished {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl Finished {
    /// The result on stdout. The run may have been judged invalid, for the machine may be busy, and its
    /// target may have failed every request, but it must have come to a result.
    pub fn result(&self) -> Value {
        assert!(matches!(self.code, Some(0 | 1 | 3 | 129 | 130)), "{:?}: {}", self.code, self.stderr);
        let result: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout carries the result only: {error}: {self:?}"));
        verdict::of_result(self.code, &result);
        let cause = result["verdict"]["cause"].as_str();
        let is_gone = matches!(cause, Some("nothing_succeeded" | "stopped_answering"));
        assert!(self.code != Some(1) || is_gone, "{}", result["verdict"]);
        result
    }

    /// Asserts that it ended as a refusal: this code, nothing on stdout, an `error:` that has `message`, and
    /// a hint, if the reason is not plain from the command line (code 1).
    pub fn assert_refused(&self, code: i32, message: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "stdout carries the result only");
        // What differs from another program is told before anything is looked at.
        let first = self.stderr.lines().find(|line| !line.starts_with("note: ")).unwrap_or_default();
        assert!(first.starts_with("error: "), "{}", self.stderr);
        let (error, hint) = self.stderr.split_once("\nhint: ").unwrap_or((&self.stderr, ""));
        assert!(error.contains(message), "`{message}` is not in: {error}");
        assert!(code == 2 || !hint.is_empty(), "no hint: {error}");
    }
}

/// Runs a command to its end, beside no measurement.
pub fn run(command: Command) -> Finished {
    let _turn = machine::load();
    Process::start(command).finish()
}

/// A server that is a process, and the address at which it listens.
#[derive(Debug)]
pub struct Server {
    /// The process.
    pub process: Process,
    /// `address:port`.
    pub address: String,
}

impl Server {
    /// Starts a command, and waits for the line on stderr that ends with the address.
    ///
    /// # Panics
    /// The command ends without such a line.
    pub fn start(command: Command) -> Self {
        let mut process = Process::start(command);
        let line = process.stderr.wait_for(": listening on ");
        let address = line.rsplit(' ').next().unwrap_or_default().to_owned();
        Self { process, address }
    }

    /// Stops it as the terminal does.
    pub fn stop(self) -> Finished {
        self.process.signal("INT");
        self.process.finish()
    }
}

/// A folder of a test's own, with a short path (that of a unix socket has at most 107 bytes). It goes with
/// this.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// Makes an empty folder.
    ///
    /// # Panics
    /// The folder of temporary files cannot be written.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in it, as text.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file in it and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), content).expect("the folder can be written");
        self.file(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans up files that cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
