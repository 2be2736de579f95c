//! Readiness of a node.

use core::net::SocketAddr;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use plimsoll_core::Nanos;
use plimsoll_system::resolve::can_connect;

use crate::ask;
use crate::spec::{Condition, Probe};

/// Time limit for one request.
pub(crate) const QUESTION: Nanos = Nanos::from_secs(2);
/// Lines of a log that are shown where a node does not become ready.
const LINES_SHOWN: usize = 5;
/// Bytes of a log that are examined for the first error, from where a start begins.
const FRONT: u64 = 1 << 20;
/// Bytes of a log that are examined for the last lines.
const TAIL: u64 = 16 << 10;
/// Bytes of a log that are read at a time where a text is looked for.
const PIECE: usize = 64 << 10;

/// Everything needed to look for a sign of readiness.
pub(crate) struct ProbeContext<'a> {
    /// Returns the address of a port, by its name.
    pub(crate) port: Box<dyn Fn(&str) -> SocketAddr + 'a>,
    pub(crate) log: &'a Path,
    /// Bytes of the log that were written before this start.
    pub(crate) before: u64,
}

impl ProbeContext<'_> {
    /// Looks for a sign.
    ///
    /// # Errors
    /// The missing sign.
    pub(crate) fn look(&self, probe: &Probe) -> Result<(), String> {
        match probe {
            Probe::Http { port, path, status, json } => {
                let answer = ask::get((self.port)(port), path, QUESTION)?;
                if answer.status != *status {
                    return Err(format!("GET {path}: status {}, not {status}", answer.status));
                }
                json.as_ref().map_or(Ok(()), |condition| holds(condition, path, &answer.body))
            }
            Probe::Tcp { port } => {
                let address = (self.port)(port);
                let message = || format!("no process listens on its port {port} ({address})");
                can_connect(address, QUESTION).then_some(()).ok_or_else(message)
            }
            Probe::Log(text) => {
                let found = says(self.log, self.before, text.as_bytes()).unwrap_or(false);
                found.then_some(()).ok_or_else(|| format!("no line of its log has `{text}`"))
            }
        }
    }
}

fn holds(condition: &Condition, path: &str, body: &[u8]) -> Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| format!("GET {path}: no JSON: {error}"))?;
    let pointer = &condition.pointer;
    let found = value.pointer(pointer).ok_or_else(|| format!("GET {path}: no value at {pointer}"))?;
    let found = ask::shown(found);
    if condition.equals.as_ref().is_some_and(|equals| *equals != found) {
        let wanted = condition.equals.as_deref().unwrap_or_default();
        return Err(format!("GET {path}: {found} is at {pointer}, not {wanted}"));
    }
    match &condition.not {
        Some(not) if *not == found => Err(format!("GET {path}: {found} is at {pointer}")),
        _ => Ok(()),
    }
}

/// Returns at most `most` bytes of a file after its first `before`.
fn part(path: &Path, before: u64, most: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(before)).ok()?;
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Reports whether a text is in a file after its first `before` bytes. The file is read piece by piece, as
/// far as it goes now: a log may be large, and grow faster than it is read.
fn says(path: &Path, before: u64, text: &[u8]) -> std::io::Result<bool> {
    let mut file = File::open(path)?;
    let mut left = file.metadata()?.len().saturating_sub(before);
    file.seek(SeekFrom::Start(before))?;
    let mut window = Vec::new();
    while left > 0 {
        let count = file.by_ref().take(left.min(PIECE as u64)).read_to_end(&mut window)?;
        if text.is_empty() || window.windows(text.len()).any(|bytes| bytes == text) {
            return Ok(true);
        }
        if count == 0 {
            break;
        }
        left -= count as u64;
        // The rest may be the beginning of the text.
        let done = window.len().saturating_sub(text.len() - 1);
        window.drain(..done);
    }
    Ok(false)
}

/// The length of a file; zero if there is none.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Returns the log lines that explain a failed start: the first line that reads like an error, and the last
/// lines. `before` is the length of the log before that start.
pub(crate) fn told_lines(path: &Path, before: u64) -> Vec<String> {
    let start = part(path, before, FRONT).unwrap_or_default();
    let error = start.lines().position(is_error);
    // A short log was only just begun.
    let tail = part(path, length(path).saturating_sub(TAIL).max(before), TAIL).unwrap_or_default();
    let lines: Vec<&str> = tail.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
    let first = error.and_then(|at| start.lines().nth(at)).filter(|line| !last.contains(line));
    let told = first.into_iter().chain(last.iter().copied());
    told.map(str::to_owned).collect()
}

/// Returns `true` if a line of a log contains one of the words that programs use for errors.
fn is_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ["error", "panic", "fatal", "failed", "cannot", "could not"].iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_start_is_told_before_its_last_lines() {
        let path = std::env::temp_dir().join(format!("plimsoll-log-{}", std::process::id()));
        let old = "Error: of an earlier start\n";
        let trace: String = (0..20).map(|frame| format!("  {frame}: __libc_start_main\n")).collect();
        std::fs::write(&path, format!("{old}starting\nError: Address already in use\n{trace}")).unwrap();
        let told = told_lines(&path, old.len() as u64);
        assert_eq!((told.len(), told[0].as_str()), (LINES_SHOWN + 1, "Error: Address already in use"));
        std::fs::write(&path, format!("{old}starting\nready\n")).unwrap();
        assert_eq!(told_lines(&path, old.len() as u64), ["starting", "ready"]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn of_a_long_log_the_front_and_the_end_are_told_and_all_of_it_is_searched() {
        let path = std::env::temp_dir().join(format!("plimsoll-long-log-{}", std::process::id()));
        let line = "all is well, and nobody needs to know it\n";
        let many = line.repeat(2 * FRONT as usize / line.len());
        let last: String = (0..LINES_SHOWN).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&path, format!("old\n{many}Error: late\n{last}")).unwrap();
        let told = told_lines(&path, 4);
        // An error behind the front is not looked for.
        assert_eq!(told, last.lines().collect::<Vec<_>>());
        assert!(says(&path, 4, b"Error: late\nline 0").unwrap());
        assert!(!says(&path, 4, b"old").unwrap(), "it is of an earlier start");
        // The text is found at any cut between pieces.
        for at in PIECE - 12..PIECE + 2 {
            std::fs::write(&path, format!("{}listening{}", "-".repeat(at), "-".repeat(100))).unwrap();
            assert!(says(&path, 0, b"listening").unwrap(), "{at}");
            assert!(!says(&path, at as u64 + 1, b"listening").unwrap(), "{at}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn conditions_hold_or_say_what_is_there() {
        let body = br#"{"raft":{"leader_port":0,"state":"ready"}}"#;
        let of = |pointer: &str, equals: Option<&str>, not: Option<&str>| {
            let condition = Condition {
                pointer: pointer.to_owned(),
                equals: equals.map(str::to_owned),
                not: not.map(str::to_owned),
            };
            holds(&condition, "/s", body).err()
        };
        assert_eq!(of("/raft/state", Some("ready"), None), None);
        assert_eq!(of("/raft/leader_port", None, Some("8080")), None);
        let zero = of("/raft/leader_port", None, Some("0"));
        assert_eq!(zero.as_deref(), Some("GET /s: 0 is at /raft/leader_port"));
        let other = of("/raft/state", Some("up"), None);
        assert_eq!(other.as_deref(), Some("GET /s: ready is at /raft/state, not up"));
        assert_eq!(of("/no", None, None).as_deref(), Some("GET /s: no value at /no"));
    }
}
