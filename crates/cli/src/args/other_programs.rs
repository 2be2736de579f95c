//! Names of other load generators, their files and their flags: where they belong here.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory as _;
use plimsoll_plan::Problem;

use crate::args::cli::Cli;
use crate::args::workload;

/// The problem with a command line that begins with another program, or with a script of one; `None` if it
/// does not. `args` starts with the name of this program.
pub(crate) fn problem(args: &[OsString]) -> Option<Problem> {
    let words = || args.iter().skip(1).map(|arg| arg.to_string_lossy());
    let word = words().find(|word| word != "run")?;
    if word.starts_with('-') || word.contains("://") {
        return None;
    }
    let name = Path::new(&*word).file_name()?.to_str()?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let of_program = program(stem).filter(|_| ["", "rs", "py", "sh"].contains(&ending));
    let hint = of_program.or_else(|| script(&word, ending))?;
    let what = if ending.is_empty() { "the name of another program" } else { "neither a plan nor a URL" };
    Some(Problem::new(format!("`{}` is {what}", word.escape_debug())).with_hint(hint))
}

/// Hint for the name of another program, or of a script that comes with one, without its ending.
fn program(name: &str) -> Option<String> {
    if let Some((_, whose, command)) = workload::OF_OTHERS.iter().find(|(names, ..)| names.contains(&name)) {
        return Some(format!("{whose} is `{command}` here: `{command} --help`"));
    }
    if ["k6", "locust", "artillery", "jmeter", "gatling", "vegeta", "ghz"].contains(&name) {
        return Some(format!("its files are imported: `plimsoll import {name} FILE > plan.yaml`"));
    }
    let hint = match name {
        "bench_1000_crud_parallel" => {
            "`plimsoll crud` has its loads, with flags for its variables (--mode, --concurrency, \
             --create-pct, --read-path, --preseed); `plimsoll cluster run` has its cluster and suites"
        }
        "h2loadrunner" | "h2load" => {
            "write the URL and the flags without the name, and --http2: `plimsoll --http2 URL -c 10 -d \
             10s`; a configuration is `plimsoll --h2loadrunner FILE`"
        }
        "hey" | "oha" | "wrk" | "wrk2" | "bombardier" | "autocannon" => {
            "write the URL and the flags without the name: `plimsoll http://127.0.0.1:8080/ -c 50 -d 10s`"
        }
        "attack" => "vegeta's `attack` is `plimsoll http://127.0.0.1:8080/ --rate 50 -d 10s` here",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Hint for a script of another program that does not exist, by its ending. Existing files are recognised by
/// their content when they are read. `.py` ends names of hosts, too.
fn script(word: &str, ending: &str) -> Option<String> {
    if Path::new(word).exists() {
        return None;
    }
    let is_path = || word.starts_with(['.', '/', '~']);
    let format = match ending {
        "js" | "ts" | "mjs" => "k6",
        "jmx" => "jmeter",
        "har" => "har",
        "scala" | "kt" => "gatling",
        "py" if is_path() => "locust",
        _ => return None,
    };
    Some(format!("`plimsoll import {format} {word} > plan.yaml` makes a plan of it"))
}

/// Hint for a flag that writes a document, typed at a command that lacks the flag.
fn instead(flag: &str, command: &str) -> Option<&'static str> {
    Some(match (command, flag) {
        ("ab" | "compare", "--evidence") => {
            "evidence is of a run or a search: `plimsoll run --evidence FILE`, and `plimsoll verify FILE` checks it"
        }
        (_, "--poisson") => "arrivals at random: --arrival poisson",
        ("compare", "--report" | "--html") => "`plimsoll report A B` draws both groups and compares them",
        ("show" | "export" | "runs", "--report" | "--html") => "`plimsoll report RUN` writes its page",
        ("compare" | "history", "--json" | "--out") => "-o json writes it to stdout: `> comparison.json`",
        ("ab", "--save" | "--name" | "--tag") => {
            "a comparison is kept in a file: --json FILE, which `plimsoll show` and `report` take"
        }
        ("ab", "--out" | "--step-summary") => {
            "it has -o text, json or markdown on stdout, --json and --report"
        }
        _ => return None,
    })
}

/// The ready-made loads that have a flag which the command of the command line lacks, or what to do in its
/// place, as a hint.
pub(crate) fn owner(flag: &str, args: &[OsString]) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let typed = args.get(1).map(|word| word.to_string_lossy().into_owned());
    if let Some(hint) = instead(flag, typed.as_deref().unwrap_or_default()) {
        return Some(hint.to_owned());
    }
    let has = |command: &clap::Command| {
        command.get_arguments().any(|argument| {
            argument.get_long() == Some(name)
                || argument.get_all_aliases().unwrap_or_default().contains(&name)
        })
    };
    let root = Cli::command();
    let owners: Vec<&str> = workload::NAMES
        .iter()
        .copied()
        .filter(|command| typed.as_deref() != Some(command))
        .filter(|command| root.find_subcommand(command).is_some_and(has))
        .collect();
    match *owners {
        [one] => Some(format!("it is a flag of `plimsoll {one}`")),
        [one, other] => Some(format!("it is a flag of `plimsoll {one}` and of `plimsoll {other}`")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Vec<OsString> {
        std::iter::once("plimsoll").chain(line.split(' ')).map(OsString::from).collect()
    }

    /// Symptom: names of programs and of their scripts were taken for those of hosts.
    #[test]
    fn other_programs_and_their_scripts_are_known_by_name() {
        for (line, hint) in [
            ("http_loadgen_demo --leader http://a", "`plimsoll crud --preset lithair`"),
            ("./target/release/http_loadgen_demo", "`plimsoll crud --preset lithair`"),
            ("./examples/raft_replication_demo/bench_1000_crud_parallel.sh 3000", "`plimsoll crud`"),
            ("ic-workload-generator -n 2", "the Internet Computer's workload generator is"),
            ("load-sink", "`plimsoll sink`"),
            ("load-test-tcp.rs", "`plimsoll cache`"),
            ("load-test-unique-keys.rs", "--compare-http"),
            ("run ./scripts/load-test-tcp.rs", "`plimsoll cache`"),
            ("metrics_load_test.py --token T", "`plimsoll ingest metrics --preset arc`"),
            ("./scripts/synthetic_logs_load_test.py", "`plimsoll ingest logs --preset arc`"),
            ("demo_scenario_marketing_campaign.py", "`plimsoll ingest demo`"),
            ("h2loadrunner http://a -c 2", "--http2"),
            ("hey -z 2s http://a", "without the name"),
            ("attack -rate 50", "--rate 50"),
            ("k6 run x.js", "plimsoll import k6 FILE"),
            ("script.js", "`plimsoll import k6 script.js > plan.yaml`"),
            ("run plan.jmx", "`plimsoll import jmeter plan.jmx > plan.yaml`"),
            ("./flows/locustfile.py", "plimsoll import locust"),
        ] {
            let problem = problem(&typed(line)).unwrap_or_else(|| panic!("{line}"));
            let said = problem.hint.as_deref().unwrap_or_default();
            assert!(said.contains(hint), "{line}: {problem:?}");
        }
        for line in ["http://a/x.js", "example.py", "run plan.yaml", "-c 8 http://a", "sink", "a.test/x"] {
            assert!(problem(&typed(line)).is_none(), "{line}");
        }
    }

    /// Symptom: "`--help` lists the flags" of everything that one command has and another does not.
    #[test]
    fn what_a_command_has_no_flag_for_is_told() {
        for (line, flag, hint) in [
            ("ab http://a http://b --evidence x", "--evidence", "evidence is of a run or a search"),
            ("ab http://a http://b --name x", "--name", "--json FILE"),
            ("ab http://a http://b --step-summary", "--step-summary", "-o text, json or markdown"),
            ("compare a b --report x", "--report", "`plimsoll report A B`"),
            ("compare a b --json x", "--json", "-o json"),
            ("history a --json x", "--json", "-o json"),
            ("show a --report x", "--report", "`plimsoll report RUN`"),
        ] {
            let said = owner(flag, &typed(line)).unwrap_or_default();
            assert!(said.contains(hint), "{line}: {said}");
        }
    }

    /// Symptom: `--leader` was said to mean `--header`, and `--total` `--trial`.
    #[test]
    fn flags_of_ready_made_loads_are_known_elsewhere() {
        for (flag, command) in [("--leader", "crud"), ("--read-pct", "crud"), ("--token", "ingest")] {
            let hint = owner(flag, &typed("run http://a")).unwrap_or_default();
            assert_eq!(hint, format!("it is a flag of `plimsoll {command}`"), "{flag}");
            assert_eq!(owner(flag, &typed(command)), None, "{flag}");
        }
        assert_eq!(owner("--print-plan-of-all", &typed("run")), None);
        assert_eq!(owner("--print-plan", &typed("find")), None, "many have it");
    }
}
