//! The machine: its description, and the use of its cores.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};

/// Length of the ticks in which the kernel reports CPU times in `/proc`: `USER_HZ` is 100 on every Linux.
const TICK_US: f64 = 10_000.0;

/// CPU model, cores and kernel.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) cpu_model: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
}

impl Machine {
    pub(crate) fn read() -> Self {
        let cpuinfo = text("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            cpu_model: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned()),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory_bytes: kib(&text("/proc/meminfo"), "MemTotal").unwrap_or(0),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// The three load averages: processes that want a CPU.
pub(crate) fn load_averages() -> String {
    text("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the version that a program prints, on either stream and with any exit code.
pub(crate) fn version(program: &Path, flag: &str) -> String {
    let Ok(output) = Command::new(program).arg(flag).output() else { return "unknown".to_owned() };
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let line = printed.iter().flat_map(|text| text.lines()).next().unwrap_or("unknown");
    bare_version(line, &program.file_name().unwrap_or_default().to_string_lossy())
}

fn bare_version(line: &str, program: &str) -> String {
    let line = line.strip_prefix(program).unwrap_or(line).trim_start();
    let line = line.strip_prefix("version: ").unwrap_or(line);
    // wrk and openssl go on with a copyright notice and with their library.
    let end = [" Copyright", " (Library"].iter().filter_map(|tail| line.find(tail)).min();
    line[..end.unwrap_or(line.len())].trim().to_owned()
}

/// The commit of the checkout that this program was built from, and whether something else was changed since
/// than the ledger.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let output = Command::new("git").args(["-C", root]).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(described) = git(&["describe", "--always"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "-uno", "--", ".", ":(exclude)docs/assurance.md"]) {
        Some(changes) if changes.is_empty() => described,
        _ => format!("{described}-dirty"),
    }
}

/// Today, in UTC.
pub(crate) fn date() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map_or_else(|_| "unknown".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

/// Time of one core since boot, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreTime {
    pub(crate) busy_us: f64,
    pub(crate) total_us: f64,
}

impl CoreTime {
    pub(crate) fn read(core: usize) -> Result<Self> {
        Self::parse(&text("/proc/stat"), core)
            .ok_or_else(|| Failure::new(format!("/proc/stat knows no core {core}")))
    }

    fn parse(stat: &str, core: usize) -> Option<Self> {
        let name = format!("cpu{core} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
        // user nice system idle iowait irq softirq steal; guest times are part of user and nice.
        let ticks: Vec<f64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let total: f64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(Self { busy_us: (total - idle) * TICK_US, total_us: total * TICK_US })
    }

    /// Returns the CPU time between `earlier` and this reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { busy_us: self.busy_us - earlier.busy_us, total_us: self.total_us - earlier.total_us }
    }

    /// Share of the core, from 0 to 1, that something other than the process which used `own_us` had.
    pub(crate) fn foreign_share(self, own_us: f64) -> f64 {
        ((self.busy_us - own_us).max(0.0) / self.total_us.max(TICK_US)).min(1.0)
    }
}

/// CPU time of a running process with all its threads, in microseconds.
pub(crate) fn process_cpu_us(pid: u32) -> Result<f64> {
    parse_process_cpu(&text(format!("/proc/{pid}/stat")))
        .ok_or_else(|| Failure::new(format!("process {pid} is gone")))
}

fn parse_process_cpu(stat: &str) -> Option<f64> {
    // The name in parentheses may contain anything; utime and stime are the 14th and 15th fields of all.
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> =
        after_name.split_whitespace().skip(11).take(2).map_while(|word| word.parse().ok()).collect();
    (ticks.len() == 2).then(|| (ticks[0] + ticks[1]) * TICK_US)
}

/// Resident memory of a running process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    kib(&text(format!("/proc/{pid}/status")), "VmRSS")
        .ok_or_else(|| Failure::new(format!("process {pid} is gone")))
}

/// A field `name:  123 kB`, in bytes.
fn kib(table: &str, name: &str) -> Option<u64> {
    let value = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_names_and_notices() {
        for (program, line, version) in [
            (
                "wrk",
                "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer",
                "debian/4.1.0-3+b2 [epoll]",
            ),
            ("nginx", "nginx version: nginx/1.22.1", "nginx/1.22.1"),
            ("h2load", "h2load nghttp2/1.52.0", "nghttp2/1.52.0"),
            ("nghttpd", "nghttpd nghttp2/1.52.0", "nghttp2/1.52.0"),
            ("openssl", "OpenSSL 3.0.19 27 Jan 2026 (Library: OpenSSL 3.0.19)", "OpenSSL 3.0.19 27 Jan 2026"),
        ] {
            assert_eq!(bare_version(line, program), version);
        }
    }

    #[test]
    fn time_of_a_core() {
        let stat = "cpu  66 4 2 63 4 0 1 1 0 0\ncpu0 1 1 1 1 1 1 1 1 9 9\ncpu1 30 5 15 40 2 1 4 3 0 0\n";
        assert_eq!(CoreTime::parse(stat, 0).map(|time| time.busy_us), Some(60_000.0));
        let earlier = CoreTime::parse(stat, 1).unwrap();
        assert_eq!(earlier, CoreTime { busy_us: 580_000.0, total_us: 1_000_000.0 });
        assert_eq!(CoreTime::parse(stat, 2), None);
        let later = CoreTime { busy_us: 780_000.0, total_us: 2_000_000.0 };
        let passed = later.since(earlier);
        assert_eq!(passed, CoreTime { busy_us: 200_000.0, total_us: 1_000_000.0 });
        assert_eq!(passed.foreign_share(150_000.0), 0.05);
        // The kernel counts the two differently, so the process may seem to have used more than its core.
        assert_eq!(passed.foreign_share(210_000.0), 0.0);
    }

    #[test]
    fn time_of_a_process_with_a_strange_name() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 0 0 0 0 123 45 6 7 20 0 1 0 9 0 0";
        assert_eq!(parse_process_cpu(stat), Some(1_680_000.0));
        assert_eq!(parse_process_cpu(""), None);
        assert!(process_cpu_us(std::process::id()).is_ok());
    }

    #[test]
    fn memory_is_given_in_kib() {
        assert_eq!(kib("VmHWM:\t  9 kB\nVmRSS:\t 7424 kB\n", "VmRSS"), Some(7424 * 1024));
        assert_eq!(kib("VmRSSx: 1 kB", "VmRSS"), None);
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
    }
}
