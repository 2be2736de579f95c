//! `bench fuzz`: builds the fuzz targets, runs each of them for some time, and says how much was executed.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::child::{Running, Usage};
use crate::failure::{Failure, Result};
use crate::ledger::{self, Ledger};
use crate::{machine, report, session};

/// The table of the ledger.
const TABLE: &str = "Fuzzing";
/// The most bytes of an input: what all targets read has its whole grammar in fewer.
const MOST_BYTES: u32 = 4096;
/// Seconds that one input may take. Inputs take microseconds; hours are what this looks for.
const INPUT_SECONDS: u32 = 20;
/// The most memory of a target, in MiB: inputs have 4 KiB.
const MEMORY_MIB: u32 = 2048;
/// A target that was waited for so much longer than its time is killed.
const GRACE: Duration = Duration::from_secs(60);
/// Interval at which running targets are polled for their end.
const POLL: Duration = Duration::from_millis(50);

/// Options of a fuzzing campaign.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    /// Targets [default: all]
    pub(crate) targets: Vec<String>,
    /// Length of the run of each target
    #[arg(long, value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Targets that run at the same time [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Sanitizer that checks every memory access
    #[arg(long, value_enum, default_value_t = Sanitizer::None)]
    pub(crate) sanitizer: Sanitizer,
    /// The profile of the build, as cargo names it; that of tests shares their dependencies
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub(crate) profile: String,
    /// Throw away inputs of the corpus that others cover, before the runs
    #[arg(long)]
    pub(crate) minimise: bool,
    /// Leave the ledger in docs/assurance.md as it is
    #[arg(long)]
    pub(crate) no_ledger: bool,
}

/// A sanitizer that checks every memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    /// Nothing: several times as fast
    None,
    /// AddressSanitizer, which needs a nightly toolchain
    Address,
}

/// Result of fuzzing one target.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    target: String,
    executions: u64,
    cpu_seconds: f64,
    peak_mib: u64,
    /// Inputs that it failed with: a run ends with the first one.
    findings: Vec<PathBuf>,
    /// Why it did not end as it should, without an input to show for it.
    broken: Option<String>,
}

/// The targets, as they are built and run.
struct Targets {
    root: PathBuf,
    programs: Vec<(String, PathBuf)>,
}

/// Builds and runs what was asked for, prints what came of it, and adds it to the ledger. How many findings
/// there were.
///
/// # Errors
/// A target that is not known, cannot be built, or ended in another way than by its time or a finding.
pub(crate) fn run(options: &FuzzOptions, print: &mut dyn FnMut(&str)) -> Result<usize> {
    let ledger = match options.no_ledger {
        true => None,
        false => Some((Ledger::open(ledger::page())?, machine::commit())),
    };
    let targets = Targets::build(options, print)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(cores).max(1);
    if options.minimise {
        targets.minimise(print)?;
    }
    let outcomes = targets.run(options, jobs, print)?;
    if let Some((ledger, commit)) = ledger {
        for outcome in &outcomes {
            ledger.append(TABLE, &outcome.row(&machine::date(), &commit))?;
        }
    }
    print(&table(&outcomes));
    let failures: Vec<String> = outcomes.iter().flat_map(Outcome::failures).collect();
    failures.iter().for_each(|failure| print(&format!("{failure}\n")));
    if let Some(broken) = outcomes.iter().find(|outcome| outcome.broken.is_some()) {
        return Err(Failure::new(format!("{} ended in no known way", broken.target)));
    }
    Ok(outcomes.iter().map(|outcome| outcome.findings.len()).sum())
}

impl Targets {
    fn build(options: &FuzzOptions, print: &mut dyn FnMut(&str)) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().map_err(|error| Failure::because("the repository", error))?;
        let names = names(&root, &options.targets)?;
        let target = session::target_directory()?;
        let mut cargo = Command::new("cargo");
        let mut folder = target.clone();
        if options.sanitizer == Sanitizer::Address {
            let host = "x86_64-unknown-linux-gnu";
            folder = folder.join("address");
            cargo.args(["+nightly", "--config", "build.rustflags=['-Zsanitizer=address']"]);
            cargo.args(["build", "--target", host, "--target-dir"]).arg(&folder);
            folder = folder.join(host);
        } else {
            cargo.args(["build", "--target-dir"]).arg(&folder);
        }
        let profile = options.profile.as_str();
        folder = folder.join(if profile == "dev" { "debug" } else { profile }).join("examples");
        // The whole workspace, and examples instead of programs: with these cargo resolves features as for
        // the tests of the workspace, and dependencies are the same.
        cargo.args(["--quiet", "--workspace", "--features", "plimsoll-fuzz/libfuzzer", "--profile", profile]);
        names.iter().for_each(|name| {
            cargo.args(["--example", name]);
        });
        cargo.current_dir(&root).env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/rustc-with-coverage"));
        // The fuzz build uses another toolchain than the one that started this program.
        for variable in ["RUSTUP_TOOLCHAIN", "RUSTC", "CARGO", "RUSTFLAGS"] {
            cargo.env_remove(variable);
        }
        print(&format!("building {} fuzz targets…\n", names.len()));
        let built = cargo.status().map_err(|error| Failure::because("cannot start cargo", error))?;
        if !built.success() {
            return Err(Failure::new("the fuzz targets could not be built"));
        }
        print("built\n");
        let programs = names.into_iter().map(|name| (name.clone(), folder.join(name))).collect();
        Ok(Self { root, programs })
    }

    fn corpus(&self, target: &str) -> Result<PathBuf> {
        made(self.root.join("fuzz/corpus").join(target))
    }

    /// A process of a target at the lowest priority, with what it says in a file.
    fn start(&self, (name, program): &(String, PathBuf), args: &[String], log: &Path) -> Result<Running> {
        let said = File::create(log).map_err(|error| Failure::because(log.display(), error))?;
        let twice = said.try_clone().map_err(|error| Failure::because(log.display(), error))?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program).args(args).stdout(said).stderr(twice);
        command.current_dir(&self.root);
        Running::start(&mut command).map_err(|error| Failure::because(format!("cannot start {name}"), error))
    }

    fn log(&self, name: &str) -> Result<PathBuf> {
        Ok(made(self.root.join("fuzz/artifacts").join(name))?.join("log"))
    }

    fn run(&self, options: &FuzzOptions, jobs: usize, print: &mut dyn FnMut(&str)) -> Result<Vec<Outcome>> {
        let mut waiting: VecDeque<&(String, PathBuf)> = self.programs.iter().collect();
        let mut running: Vec<(&str, Duration, PathBuf, Running)> = Vec::new();
        let mut outcomes = Vec::new();
        let limit = Duration::from_secs(options.seconds.into()) + GRACE;
        while !(waiting.is_empty() && running.is_empty()) {
            while running.len() < jobs
                && let Some(target) = waiting.pop_front()
            {
                let log = self.log(&target.0)?;
                let args = self.args(&target.0, options.seconds)?;
                running.push((&target.0, Duration::ZERO, log.clone(), self.start(target, &args, &log)?));
            }
            let mut going = Vec::new();
            for (name, waited, log, child) in running {
                let ended = child.ends_within(POLL).map_err(|error| Failure::because(name, error))?;
                if !ended && waited < limit {
                    going.push((name, waited + POLL, log, child));
                    continue;
                }
                let usage = child.finish(Duration::ZERO);
                let said = fs::read(&log).map_err(|error| Failure::because(log.display(), error))?;
                let outcome = Outcome::of(name, usage.ok(), &String::from_utf8_lossy(&said));
                print(&outcome.line());
                outcomes.push(outcome);
            }
            running = going;
        }
        Ok(outcomes)
    }

    fn args(&self, name: &str, seconds: u32) -> Result<Vec<String>> {
        let artifacts = made(self.root.join("fuzz/artifacts").join(name))?;
        Ok(vec![
            format!("-max_total_time={seconds}"),
            format!("-max_len={MOST_BYTES}"),
            format!("-timeout={INPUT_SECONDS}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".to_owned(),
            // Inputs grow with the code that they cover, and not with time.
            "-len_control=100".to_owned(),
            self.corpus(name)?.display().to_string(),
            self.root.join("fuzz/seeds").join(name).display().to_string(),
        ])
    }

    /// Leaves those inputs of each corpus that cover something no other does.
    fn minimise(&self, print: &mut dyn FnMut(&str)) -> Result<()> {
        for target in &self.programs {
            let (name, corpus) = (&target.0, self.corpus(&target.0)?);
            let less = made(corpus.with_file_name(format!("{name}.less")))?;
            let args = ["-merge=1".to_owned(), less.display().to_string(), corpus.display().to_string()];
            let log = self.log(name)?;
            let merged = self.start(target, &args, &log)?.finish(Duration::from_secs(600));
            if !merged.is_ok_and(|usage| usage.code == 0) {
                return Err(Failure::new(format!(
                    "the corpus of {name} could not be minimised: {}",
                    log.display()
                )));
            }
            let count = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
            print(&format!("{name}: {} inputs of {}\n", count(&less), count(&corpus)));
            fs::remove_dir_all(&corpus)
                .and_then(|()| fs::rename(&less, &corpus))
                .map_err(|error| Failure::because(corpus.display(), error))?;
        }
        Ok(())
    }
}

/// Creates a folder if it is not there.
fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).map_err(|error| Failure::because(folder.display(), error))?;
    Ok(folder)
}

/// The targets that were asked for, or all.
fn names(root: &Path, asked: &[String]) -> Result<Vec<String>> {
    let folder = root.join("fuzz/seeds");
    let entries = fs::read_dir(&folder).map_err(|error| Failure::because(folder.display(), error))?;
    let mut known: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    known.sort_unstable();
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        return Err(Failure::new(format!(
            "there is no fuzz target `{unknown}`: there are {}",
            known.join(", ")
        )));
    }
    if !asked.is_empty() {
        known.retain(|name| asked.contains(name));
    }
    Ok(known)
}

impl Outcome {
    /// Reads the result of a target from the final lines that libFuzzer prints.
    fn of(target: &str, usage: Option<Usage>, said: &str) -> Self {
        let figure = |name: &str| {
            let line = said.lines().rev().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
            line.and_then(|line| line.strip_prefix(':')?.trim().parse::<u64>().ok())
        };
        let artifact =
            |line: &str| line.split_once("Test unit written to ").map(|(_, path)| PathBuf::from(path.trim()));
        let findings: Vec<PathBuf> = said.lines().filter_map(artifact).collect();
        let executions = figure("number_of_executed_units");
        let ended = usage.is_some_and(|usage| usage.code == 0) && executions.is_some();
        let last = said.lines().rev().find(|line| !line.is_empty()).unwrap_or("it said nothing");
        Self {
            target: target.to_owned(),
            executions: executions.unwrap_or(0),
            cpu_seconds: usage.map_or(0.0, |usage| (usage.user_us + usage.sys_us) / 1e6),
            peak_mib: figure("peak_rss_mb").unwrap_or(0),
            broken: (!ended && findings.is_empty()).then(|| last.to_owned()),
            findings,
        }
    }

    /// Executions in a second of CPU time.
    fn per_core(&self) -> f64 {
        if self.cpu_seconds > 0.0 { self.executions as f64 / self.cpu_seconds } else { 0.0 }
    }

    /// The row of the ledger.
    fn row(&self, date: &str, commit: &str) -> [String; 7] {
        let findings = self.findings.iter().filter_map(|path| path.file_name()?.to_str());
        let findings: Vec<&str> = findings.map(|name| name.get(..18).unwrap_or(name)).collect();
        [
            date.to_owned(),
            commit.to_owned(),
            self.target.clone(),
            self.executions.to_string(),
            format!("{:.0}", self.cpu_seconds),
            if findings.is_empty() { "0".to_owned() } else { findings.join(", ") },
            format!("{:.0}", self.per_core()),
        ]
    }

    fn line(&self) -> String {
        format!(
            "{}: {} executions in {:.0} s of CPU time, {:.0}/s per core, {} MiB, {} findings\n",
            self.target,
            self.executions,
            self.cpu_seconds,
            self.per_core(),
            self.peak_mib,
            self.findings.len()
        )
    }

    fn failures(&self) -> Vec<String> {
        let run_again =
            |path: &PathBuf| format!("{} fails with {}; its log lies beside it", self.target, path.display());
        let broken = self.broken.iter().map(|why| format!("{} did not end as it should: {why}", self.target));
        self.findings.iter().map(run_again).chain(broken).collect()
    }
}

fn table(outcomes: &[Outcome]) -> String {
    let row = |outcome: &Outcome| {
        vec![
            outcome.target.clone(),
            outcome.executions.to_string(),
            format!("{:.0}", outcome.cpu_seconds),
            format!("{:.0}", outcome.per_core()),
            outcome.peak_mib.to_string(),
            outcome.findings.len().to_string(),
        ]
    };
    let mut rows: Vec<Vec<String>> = outcomes.iter().map(row).collect();
    rows.sort_unstable();
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    let cpu: f64 = outcomes.iter().map(|outcome| outcome.cpu_seconds).sum();
    let findings: usize = outcomes.iter().map(|outcome| outcome.findings.len()).sum();
    let rate = if cpu > 0.0 { executions as f64 / cpu } else { 0.0 };
    rows.push(vec![
        "all".to_owned(),
        executions.to_string(),
        format!("{cpu:.0}"),
        format!("{rate:.0}"),
        String::new(),
        findings.to_string(),
    ]);
    let head = ["target", "executions", "CPU seconds", "executions/s per core", "peak MiB", "findings"];
    report::table(&head, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage { code: 0, user_us: 1_500_000.0, sys_us: 500_000.0, rss_peak_bytes: 0 };

    #[test]
    fn what_libfuzzer_says_at_the_end_is_read() {
        let said = "#2 INITED cov: 5\nDone 4000 runs in 2 second(s)\nstat::number_of_executed_units: 4000\n\
                    stat::average_exec_per_sec:     2000\nstat::peak_rss_mb:              44\n";
        let outcome = Outcome::of("plan", Some(USAGE), said);
        assert_eq!((outcome.executions, outcome.peak_mib), (4000, 44));
        assert_eq!((outcome.per_core(), outcome.failures()), (2000.0, vec![]));
        assert!(table(&[outcome]).contains("| all | 4000 | 2 | 2000 |"));
    }

    #[test]
    fn findings_and_broken_runs_are_failures() {
        let said = "thread panicked\nartifact_prefix='a/'; Test unit written to a/crash-12\n\
                    stat::number_of_executed_units: 7\n";
        let usage = Usage { code: 128 + 6, ..USAGE };
        let outcome = Outcome::of("plan", Some(usage), said);
        assert_eq!((outcome.executions, outcome.broken.clone()), (7, None));
        assert_eq!(outcome.failures(), ["plan fails with a/crash-12; its log lies beside it"]);
        for (usage, said) in
            [(Some(usage), "ld.so: no such library\n"), (Some(USAGE), ""), (None, "#2 INITED\n")]
        {
            let outcome = Outcome::of("plan", usage, said);
            assert_eq!(outcome.failures().len(), 1, "{said}");
        }
    }

    #[test]
    fn targets_are_those_with_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(names(&root, &[]).unwrap().len() > 20);
        assert_eq!(names(&root, &["plan".to_owned()]).unwrap(), ["plan"]);
        assert!(
            names(&root, &["plans".to_owned()])
                .unwrap_err()
                .to_string()
                .starts_with("there is no fuzz target")
        );
    }
}
