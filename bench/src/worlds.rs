//! Simulated worlds in any number, with seeds that were not tried before: the tests of the engine in virtual
//! time, with all of their assertions, on all cores with the lowest priority.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child::{Running, Usage};
use crate::failure::{Failure, Result};
use crate::ledger::{self, Ledger};
use crate::machine;
use crate::session::{Directory, target_directory};

/// The table of the ledger.
const TABLE: &str = "Simulated worlds";
/// Environment that keeps the C library from giving memory back to the system. Histograms of 300 KB come and
/// go, and getting each one anew from the kernel took six tenths of the time of a small world.
const MEMORY: [(&str, &str); 2] =
    [("MALLOC_TRIM_THRESHOLD_", "1000000000"), ("MALLOC_MMAP_THRESHOLD_", "1000000000")];
/// Sum of the shares of all kinds.
const WHOLE: u64 = 1_000;
/// Worlds of one process: so many that its start costs nothing beside them, and so few that all cores have
/// something to do until the end.
const BATCH: u64 = 500;
/// For how long a look at a batch waits for its end.
const LOOK: Duration = Duration::from_millis(20);
/// A batch that is still there after so many looks, half an hour at least, will not end. One takes some 10 s.
const LOOKS_MAX: u32 = 30 * 60 * 50;
/// After so many findings a test is broken, and more of it tells nothing.
const FINDINGS_MAX: usize = 20;

/// A test that simulates one world for each of its seeds.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Name of the test in the program of the tests.
    test: &'static str,
    /// Every test run has the seeds from 0 to below this.
    usual: u64,
    /// Number of worlds of this kind in a thousand.
    share: u64,
}

/// Worlds of HTTP/2 and of pools cost thirty times as much as the small ones of plans, those of HTTP/1.1 six
/// times: all kinds have some, and most are of the cheapest kind.
const KINDS: [Kind; 4] = [
    Kind { test: "plans::whatever_goes_wrong_plans_balance", usual: 300, share: 970 },
    Kind { test: "http1::whatever_goes_wrong_the_accounts_balance", usual: 300, share: 20 },
    Kind { test: "http2::whatever_goes_wrong_the_accounts_balance", usual: 300, share: 5 },
    Kind { test: "plans::a_server_of_a_pool_that_is_there_again_gets_its_part", usual: 20, share: 5 },
];

/// Result of the worlds of one test.
#[derive(Debug, Default)]
struct Outcome {
    worlds: u64,
    cpu_us: f64,
    /// Seeds, or batches, that failed.
    findings: Vec<String>,
}

/// Simulates `worlds` worlds, a share of each kind, with the tests as `profile` builds them, and adds a row
/// for each kind to the ledger. `print` gets each row, and the output of a failing world. Returns how many
/// findings there were.
///
/// # Errors
/// The tests cannot be built or started, or the ledger cannot be written.
pub(crate) fn simulate(worlds: u64, profile: &str, print: &mut dyn FnMut(&str)) -> Result<usize> {
    let ledger = Ledger::open(ledger::page())?;
    // Before the first row changes the page.
    let commit = machine::commit();
    let program = build(profile)?;
    let directory = Directory::create()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut findings = 0;
    for (kind, share) in KINDS.iter().zip(shares(worlds)) {
        if share == 0 {
            continue;
        }
        let from = next_seed(&ledger.rows(TABLE)?, *kind)?;
        let seeds = from..from + share;
        let mut campaign = Campaign::new(&program, directory.path(), kind.test, seeds.clone());
        let outcome = campaign.carry_out(cores, print)?;
        let row = row(&machine::date(), &commit, kind.test, &seeds, &outcome);
        ledger.append(TABLE, &row)?;
        print(&format!("{}\n", row.join(" | ")));
        findings += outcome.findings.len();
    }
    Ok(findings)
}

/// Returns the number of worlds of each kind. The first kind gets the remainder.
fn shares(worlds: u64) -> [u64; KINDS.len()] {
    let mut shares = KINDS.map(|kind| worlds * kind.share / WHOLE);
    shares[0] += worlds - shares.iter().sum::<u64>();
    shares
}

/// The first seed of a kind that no row has.
fn next_seed(rows: &[Vec<String>], kind: Kind) -> Result<u64> {
    let name = format!("`{}`", kind.test);
    let mut next = kind.usual;
    for row in rows.iter().filter(|row| row.get(2) == Some(&name)) {
        let end = row.get(4).map(|cell| cell.replace(',', ""));
        let end: u64 = end
            .and_then(|cell| cell.parse().ok())
            .ok_or_else(|| Failure::new(format!("no seed in the row `{}`", row.join(" | "))))?;
        next = next.max(end);
    }
    Ok(next)
}

fn row(date: &str, commit: &str, test: &str, seeds: &Range<u64>, outcome: &Outcome) -> Vec<String> {
    let findings = match outcome.findings.len() {
        0 => "none".to_owned(),
        count => format!("{count}: {}", outcome.findings.join(", ")),
    };
    let cpu_s = outcome.cpu_us / 1e6;
    let rate = if cpu_s > 0.0 { outcome.worlds as f64 / cpu_s } else { 0.0 };
    vec![
        date.to_owned(),
        commit.to_owned(),
        format!("`{test}`"),
        seeds.start.to_string(),
        seeds.end.to_string(),
        outcome.worlds.to_string(),
        findings,
        format!("{cpu_s:.0}"),
        format!("{rate:.0}"),
    ]
}

/// Builds the tests and finds their program.
fn build(profile: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let built = Command::new(cargo)
        .args(["test", "--no-run", "--profile", profile, "-p", "plimsoll-engine", "--test", "simulation"])
        .args(["--message-format", "json", "--manifest-path", manifest, "--target-dir"])
        .arg(target_directory()?)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::because("cannot start cargo", error))?;
    if !built.status.success() {
        return Err(Failure::new(format!("the simulations could not be built (profile {profile})")));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "simulation");
    let program = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.ok_or_else(|| Failure::new("cargo does not say where the simulations are"))
}

/// The worlds of one test, in batches.
#[derive(Debug)]
struct Campaign<'a> {
    program: &'a Path,
    directory: &'a Path,
    test: &'static str,
    left: VecDeque<Range<u64>>,
    started: u64,
    outcome: Outcome,
}

/// Some of them, in a process.
#[derive(Debug)]
struct Batch {
    seeds: Range<u64>,
    running: Running,
    /// Number of times that its end was polled.
    looks: u32,
    output: PathBuf,
}

impl<'a> Campaign<'a> {
    fn new(program: &'a Path, directory: &'a Path, test: &'static str, seeds: Range<u64>) -> Self {
        let begins = seeds.clone().step_by(BATCH as usize);
        let left = begins.map(|from| from..(from + BATCH).min(seeds.end)).collect();
        Self { program, directory, test, left, started: 0, outcome: Outcome::default() }
    }

    /// Simulates all of them, as many at once as there are cores.
    fn carry_out(&mut self, cores: usize, print: &mut dyn FnMut(&str)) -> Result<Outcome> {
        let mut batches: Vec<Batch> = Vec::new();
        loop {
            while batches.len() < cores
                && self.outcome.findings.len() < FINDINGS_MAX
                && let Some(seeds) = self.left.pop_front()
            {
                batches.push(self.start(seeds)?);
            }
            if batches.is_empty() {
                return Ok(std::mem::take(&mut self.outcome));
            }
            for number in (0..batches.len()).rev() {
                let batch = &mut batches[number];
                batch.looks += 1;
                let ended = batch.running.ends_within(LOOK).map_err(of_batch)?;
                if ended || batch.looks > LOOKS_MAX {
                    self.end(batches.swap_remove(number), print)?;
                }
            }
        }
    }

    fn start(&mut self, seeds: Range<u64>) -> Result<Batch> {
        self.started += 1;
        let output = self.directory.join(format!("batch-{}", self.started));
        let file = File::create(&output).map_err(of_batch)?;
        let copy = file.try_clone().map_err(of_batch)?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(self.program).args([self.test, "--exact", "--nocapture"]);
        command.envs(MEMORY).env("PLIMSOLL_SEEDS", format!("{}..{}", seeds.start, seeds.end));
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let running = Running::start(&mut command).map_err(of_batch)?;
        Ok(Batch { seeds, running, looks: 0, output })
    }

    /// Takes the outcome of a batch; the rest of one with a failing world is tried later.
    fn end(&mut self, batch: Batch, print: &mut dyn FnMut(&str)) -> Result<()> {
        let Batch { seeds, running, output, .. } = batch;
        let usage: Option<Usage> = running.finish(Duration::ZERO).ok();
        let text = fs::read_to_string(&output).unwrap_or_default();
        fs::remove_file(&output).map_err(of_batch)?;
        self.outcome.cpu_us += usage.map_or(0.0, |usage| usage.user_us + usage.sys_us);
        if usage.is_some_and(|usage| usage.code == 0) && text.contains("1 passed") {
            self.outcome.worlds += seeds.end - seeds.start;
            return Ok(());
        }
        print(&text);
        match failing_seed(&text).filter(|seed| seeds.contains(seed)) {
            Some(seed) => {
                self.outcome.worlds += seed + 1 - seeds.start;
                self.outcome.findings.push(format!("seed {seed}"));
                if seed + 1 < seeds.end {
                    self.left.push_back(seed + 1..seeds.end);
                }
            }
            None => {
                let ended = usage.map_or("did not end".to_owned(), |usage| format!("exit {}", usage.code));
                self.outcome.findings.push(format!("seeds {}..{}: {ended}", seeds.start, seeds.end));
            }
        }
        Ok(())
    }
}

/// The seed that a failing test names (`testkit::seeds`).
fn failing_seed(output: &str) -> Option<u64> {
    let (before, _) = output.split_once(" fails: repeat it with PLIMSOLL_SEEDS=")?;
    before.rsplit_once("seed ")?.1.parse().ok()
}

fn of_batch(error: std::io::Error) -> Failure {
    Failure::because("a batch of worlds", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_has_a_kind() {
        for worlds in [0, 1, 3, 4, 300_001] {
            assert_eq!(shares(worlds).iter().sum::<u64>(), worlds);
        }
        assert_eq!(KINDS.map(|kind| kind.share).iter().sum::<u64>(), WHOLE);
        assert_eq!(shares(1_050), [1_019, 21, 5, 5]);
    }

    #[test]
    fn seeds_go_on_where_the_ledger_ends() {
        let outcome = Outcome { worlds: 700, cpu_us: 7e6, findings: Vec::new() };
        let first = row("2026-01-01", "abc", KINDS[0].test, &(300..1_000), &outcome);
        assert_eq!(first[5..], ["700", "none", "7", "100"]);
        let outcome = Outcome { findings: vec!["seed 1001".to_owned(), "seed 1005".to_owned()], ..outcome };
        let second = row("2026-01-01", "abc", KINDS[0].test, &(1_000..1_700), &outcome);
        assert_eq!(second[6], "2: seed 1001, seed 1005");
        let rows = [second, first];
        assert_eq!(next_seed(&rows, KINDS[0]), Ok(1_700));
        assert_eq!(next_seed(&rows, KINDS[3]), Ok(20));
        let broken = [["", "", &format!("`{}`", KINDS[1].test), "0", "x"].map(str::to_owned).to_vec()];
        assert!(next_seed(&broken, KINDS[1]).is_err());
    }

    /// A program that behaves as the tests do, and fails at two seeds.
    #[test]
    fn a_failing_world_is_named_and_the_others_are_tried() {
        let directory = std::env::temp_dir().join(format!("plimsoll-worlds-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let program = directory.join("simulation");
        let script = "#!/bin/sh\nfrom=${PLIMSOLL_SEEDS%..*}; to=${PLIMSOLL_SEEDS#*..}\nwhile [ $from -lt $to ]; do\n\
                      case $from in 7|1203) echo \"thread 'x' panicked\n seed $from fails: repeat it with \
                      PLIMSOLL_SEEDS=$from..\"; exit 101;; esac\nfrom=$((from+1)); done\necho '1 passed'\n";
        fs::write(&program, script).unwrap();
        let chmod = Command::new("chmod").arg("+x").arg(&program).status().unwrap();
        assert!(chmod.success());
        let mut campaign = Campaign::new(&program, &directory, "a::b", 0..1_700);
        let mut printed = String::new();
        let outcome = campaign.carry_out(2, &mut |text| printed.push_str(text)).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(outcome.worlds, 1_700);
        let mut findings = outcome.findings;
        findings.sort();
        assert_eq!(findings, ["seed 1203", "seed 7"]);
        assert!(printed.contains("seed 7 fails"), "{printed}");
    }
}
