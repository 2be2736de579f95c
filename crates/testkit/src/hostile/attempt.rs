//! The program against one hostile server, and the outcome.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Case, Ends, Load, Server, Suite, authority_pem};
use crate::machine;
use crate::program::Folder;

/// Much longer than any of these runs takes: a program that needs more has hung.
const LIMIT: Duration = Duration::from_secs(60);
/// The most memory that a run may have had. One against a good server has 20 MB, with the pages of a program
/// that is not optimized 50 MB; a connection of TLS some 100 KB more. A message of 20 MiB is there twice
/// while it is judged, and once more while its buffer grows.
const MOST_MEMORY: u64 = 160 << 20;

/// Runs of [`attack`] at a time. Most of them wait for a timeout.
const AT_ONCE: usize = 8;

/// Runs the program with four requests on two connections against every case of these suites, on every
/// [backend that works](backends) here.
///
/// # Panics
/// A case does not hold, or a server or the program cannot be started.
pub fn check(program: &Path, suites: &[Suite]) {
    let folder = Folder::new();
    let authority = folder.write("authority.pem", authority_pem());
    let complaints = attack(program, Path::new(&authority), backends(program), suites);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Returns the backends that work on this machine. Containers often forbid `io_uring`.
///
/// # Panics
/// The program cannot be started, or sends a request to a port on which nothing listens.
pub fn backends(program: &Path) -> &'static [&'static str] {
    static WORKING: OnceLock<&[&str]> = OnceLock::new();
    WORKING.get_or_init(|| {
        // Nothing listens on port 1, so that this ends with a refusal of one kind or the other.
        let words = ["run", "http://127.0.0.1:1/", "-n", "1", "-c", "1", "--backend", "uring"];
        let tried = machine::beside(program).args(words).output().expect("the program was built");
        let said = String::from_utf8_lossy(&tried.stderr);
        assert_eq!(tried.status.code(), Some(1), "{said}");
        if said.contains("io_uring does not work here") { &["epoll"] } else { &["epoll", "uring"] }
    })
}

/// Runs the program against every case of these suites, on each of the backends. Returns everything that did
/// not hold.
fn attack(program: &Path, authority: &Path, backends: &[&str], suites: &[Suite]) -> Vec<String> {
    let jobs: Vec<_> = suites
        .iter()
        .flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)))
        .flat_map(|(suite, case)| backends.iter().map(move |backend| (suite, case, *backend)))
        .collect();
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((suite, case, backend)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = Run { program, backend, authority, requests: 4, connections: 2 };
                    let made = attempt(run, suite, case).expect("server and program start");
                    let bad = made.breaches.iter().chain(&made.unexpected);
                    let bad = bad.map(|text| format!("{}, {}, {backend}: {text}", suite.name, case.name));
                    complaints.lock().unwrap_or_else(PoisonError::into_inner).extend(bad);
                }
            });
        }
    });
    complaints.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A run: the program, and how much it sends.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The program.
    pub program: &'a Path,
    /// Backend of the program.
    pub backend: &'a str,
    /// A file with the [authority](super::authority_pem) that it trusts.
    pub authority: &'a Path,
    /// Requests of a run.
    pub requests: u32,
    /// Connections.
    pub connections: u32,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Requests by outcome, without zeros.
    pub ends: BTreeMap<String, u64>,
    /// From the start of the process to its end.
    pub took: Duration,
    /// The largest resident memory of the program, in bytes; 0 if it did not say.
    pub rss_peak_bytes: u64,
    /// Everything that did not hold, in words. The first three are about any run: it ended in time, without
    /// a panic, with accounts that balance.
    pub breaches: Vec<String>,
    /// Ends that the case does not allow.
    pub unexpected: Vec<String>,
}

impl Attempt {
    /// The program held, regardless of the outcome of the requests.
    pub fn held(&self) -> bool {
        self.breaches.is_empty()
    }

    /// Every request ended as the case says.
    pub fn as_expected(&self) -> bool {
        self.unexpected.is_empty()
    }
}

/// Runs the program against the server of a case.
///
/// # Errors
/// If there is no port for the server, or the program cannot be started.
// The length of a whole process is measured, from outside.
#[allow(clippy::disallowed_methods)]
pub fn attempt(run: Run<'_>, suite: &Suite, case: &Case) -> io::Result<Attempt> {
    let server = Server::start(suite, case)?;
    let address = server.address().to_string();
    let mut process = machine::beside(run.program);
    process.args(arguments(suite, case, &address, run)).args(["--backend", run.backend]);
    for word in case.args.split_ascii_whitespace() {
        match word {
            "{ca}" => process.arg(run.authority),
            word => process.arg(word),
        };
    }
    let begin = Instant::now();
    let mut child = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let texts = text(&stdout, begin).zip(text(&stderr, begin));
    let took = begin.elapsed();
    let code = end(&mut child, texts.is_none())?;
    let mut made = Attempt {
        ends: BTreeMap::new(),
        took,
        rss_peak_bytes: 0,
        breaches: Vec::new(),
        unexpected: Vec::new(),
    };
    match texts {
        None => made.breaches.push(format!("it was still there after {LIMIT:?}")),
        Some((stdout, stderr)) => made.judge(case, run, code, &stdout, &stderr),
    }
    Ok(made)
}

/// The command line without the additions of the case. Nothing is asked before the load but by the commands
/// that cannot do without.
fn arguments(suite: &Suite, case: &Case, address: &str, run: Run<'_>) -> Vec<String> {
    let Run { requests, connections, .. } = run;
    // Where no timeout is expected a busy machine must not bring one about.
    let timeout = if case.ends.contains(&Ends::TimedOut) { "0.4" } else { "20" };
    let load = (suite.command)(Load { address, requests, connections, timeout });
    let common = ["--no-preflight", "--quiet", "-t", "1", "-o", "json"];
    load.split_ascii_whitespace().chain(common).map(str::to_owned).collect()
}

/// Everything that comes, in a thread of its own.
fn read(from: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, text) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut bytes);
        }
        // If the process was killed, the receiver has gone.
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

fn text(of: &Receiver<String>, begin: Instant) -> Option<String> {
    of.recv_timeout(LIMIT.saturating_sub(begin.elapsed())).ok()
}

/// The exit code, if there is one. A program that hangs is killed.
fn end(child: &mut Child, hangs: bool) -> io::Result<Option<i32>> {
    if hangs {
        child.kill()?;
    }
    Ok(child.wait()?.code())
}

impl Attempt {
    fn judge(&mut self, case: &Case, run: Run<'_>, code: Option<i32>, stdout: &str, stderr: &str) {
        if stderr.contains("panicked at") {
            self.breaches.push(format!("it panicked: {stderr}"));
        }
        let Ok(result) = serde_json::from_str::<Value>(stdout) else {
            self.breaches.push(format!("it ended with {code:?} and no result: {stderr}"));
            return;
        };
        // 3 where the machine was too busy to measure on.
        if !matches!(code, Some(0 | 1 | 3)) {
            self.breaches.push(format!("it ended with {code:?}: {stderr}"));
        }
        self.balance(&result, run);
        self.rss_peak_bytes = figure(&result, "/generator/rss_peak_bytes");
        if self.rss_peak_bytes > MOST_MEMORY {
            self.breaches.push(format!("it had {} MiB", self.rss_peak_bytes >> 20));
        }
        let outcome = result.pointer("/verdict/outcome").and_then(Value::as_str).unwrap_or_default();
        let valid = result.pointer("/verdict/valid") == Some(&Value::Bool(true));
        let good = self.ends.get("ok").copied().unwrap_or(0);
        if good == 0 && outcome != "fail" && (valid || outcome != "no_verdict") {
            self.breaches.push(format!("nothing was answered well, and the outcome is `{outcome}`"));
        }
        let allowed: Vec<&str> = case.ends.iter().copied().map(Ends::name).collect();
        let others = self.ends.iter().filter(|(name, _)| !allowed.contains(&name.as_str()));
        self.unexpected = others.map(|(name, count)| format!("{name}: {count}")).collect();
        if let Some(example) = self.unexpected.first().and_then(|_| result.get("error_examples")) {
            self.unexpected.push(format!("expected {}; {example}", allowed.join(" or ")));
        }
    }

    /// Takes the accounts, which have to balance.
    fn balance(&mut self, result: &Value, run: Run<'_>) {
        let of = |name: &str| figure(result, &format!("/accounting/{name}"));
        let classes = result["errors"].as_object().into_iter().flatten();
        let classes: Vec<(String, u64)> =
            classes.map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(u64::MAX))).collect();
        let failed: u64 = classes.iter().map(|(_, count)| count).sum();
        let begun = of("started") + of("dropped") + of("never_started");
        let ended = of("ok") + of("failed") + of("timed_out") + of("in_flight_at_stop");
        for (name, left, right) in [
            ("scheduled", of("scheduled"), begun),
            ("started", of("started"), ended),
            ("failed", of("failed"), failed),
        ] {
            if left != right {
                self.breaches.push(format!("{name}: {left}, and its parts: {right}"));
            }
        }
        let (timed, whole) = (figure(result, "/response_time/count"), of("ok") + of("timed_out"));
        if !(whole..=whole + of("in_flight_at_stop")).contains(&timed) {
            self.breaches.push(format!("{timed} response times of {whole}"));
        }
        // An iteration of several requests ends with the first that fails.
        if of("started") < u64::from(run.requests) {
            self.breaches.push(format!("{} of {} requests were started", of("started"), run.requests));
        }
        let accounts = ["ok", "timed_out", "in_flight_at_stop"].map(|name| (name.to_owned(), of(name)));
        self.ends = accounts.into_iter().chain(classes).filter(|(_, count)| *count > 0).collect();
    }
}

fn figure(result: &Value, pointer: &str) -> u64 {
    result.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}
