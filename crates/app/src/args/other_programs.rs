//! Names of other load generators, their files and their flags: where they belong here.

mod hey;

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory as _;
use plimsoll_document::Problem;
use plimsoll_report::result::shell_line;

use crate::args::cli::Cli;
use crate::args::workload::{self, bench_variables};
use crate::base::advice::{self, OtherProgram};

/// Programs that run a script whose name follows.
const INTERPRETERS: [&str; 8] = ["bash", "sh", "python", "python3", "rust-script", "uv", "sudo", "time"];

/// The problem with a command line that begins with another program, or with a script of one, or that has
/// names of one in place of flags; `None` if it does not. `args` starts with the name of this program.
pub(crate) fn problem(args: &[OsString]) -> Option<Problem> {
    let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    advice::all().find_map(|advice| (advice.problem)(&words)).or_else(|| named(&words))
}

fn named(words: &[String]) -> Option<Problem> {
    let is_in_front = |word: &&String| *word == "run" || INTERPRETERS.contains(&word.as_str());
    let (word, rest) = words[words.iter().take_while(is_in_front).count()..].split_first()?;
    if word.starts_with('-') || word.contains("://") {
        return None;
    }
    let name = Path::new(word).file_name()?.to_str()?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let of_program = program(stem, rest).filter(|_| ["", "rs", "py", "sh"].contains(&ending));
    let hint = of_program.or_else(|| script(word, ending))?;
    let what = if ending.is_empty() { "the name of another program" } else { "neither a plan nor a URL" };
    Some(Problem::new(format!("`{}` is {what}", word.escape_debug())).with_hint(hint))
}

/// Hint for the name of another program, or of a script that comes with one, without its ending. `typed`
/// follows it on the command line.
fn program(name: &str, typed: &[String]) -> Option<String> {
    let plain = name.replace('_', "-");
    if let Some(other) = workload::of_others().find(|other| other.names.contains(&&*plain)) {
        return Some(of_other(other, typed));
    }
    let is_imported = ["k6", "locust", "artillery", "jmeter", "gatling", "vegeta"].contains(&name);
    if is_imported || advice::formats().any(|known| known == name) {
        return Some(format!("its files are imported: `plimsoll import {name} FILE > plan.yaml`"));
    }
    let hint = match name {
        "bench_1000_crud_parallel" => return Some(bench_script(typed)),
        "cargo" => return Some(cargo(typed)),
        "hey" => return Some(hey::command(typed)),
        "h2loadrunner" | "h2load" => {
            "write the URL and the flags without the name, and --http2: `plimsoll --http2 URL -c 10 -d \
             10s`; a configuration is `plimsoll --h2loadrunner FILE`"
        }
        "oha" | "wrk" | "wrk2" | "bombardier" | "autocannon" => {
            "write the URL and the flags without the name: `plimsoll http://127.0.0.1:8080/ -c 50 -d 10s`"
        }
        "attack" => "vegeta's `attack` is `plimsoll http://127.0.0.1:8080/ --rate 50 -d 10s` here",
        _ => advice::all().flat_map(|advice| advice.needless).find(|(known, _)| *known == name)?.1,
    };
    Some(hint.to_owned())
}

/// The command for a program of others, with the flags that were typed behind its name.
fn of_other(other: &OtherProgram, typed: &[String]) -> String {
    let OtherProgram { whose, command, .. } = other;
    let name = command.trim_start_matches("plimsoll ");
    let differs = |typed: &[String]| {
        workload::differences(name, typed).map_or_else(String::new, |differs| format!("; {differs}"))
    };
    if !other.has_flags || typed.is_empty() {
        return format!("{whose} is `{command}` here: `{command} --help`{}", differs(&[]));
    }
    let typed = advice::all().fold(typed.to_vec(), |words, advice| (advice.translate)(&words));
    let differs = differs(&typed);
    format!(
        "{whose} is `{command} {}` here, and `{command} --help` has its flags{differs}",
        shell_line(&typed)
    )
}

/// Hint for a program that Cargo would build and run: by its name, or by the flags behind `--`.
fn cargo(typed: &[String]) -> String {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let (own, flags) = (&typed[..end], typed.get(end + 1..).unwrap_or_default());
    let named = own.windows(2).filter(|pair| ["--bin", "--example", "-p", "--package"].contains(&&*pair[0]));
    // The package comes before the program in it.
    if let Some(hint) = named.rev().find_map(|pair| program(&pair[1], flags)) {
        return hint;
    }
    let long = |word: &&String| word.starts_with("--");
    let names = flags.iter().filter(long).filter_map(|flag| flag.split('=').next());
    let names: Vec<&str> = names.collect();
    let root = Cli::command();
    let has_all = |command: &&str| {
        root.find_subcommand(command).is_some_and(|command| names.iter().all(|flag| has(command, &flag[2..])))
    };
    match workload::ready_made().find(has_all).filter(|_| !names.is_empty()) {
        Some(command) => {
            let whole = format!("plimsoll {command}");
            let is_it = |other: &&'static OtherProgram| other.has_flags && other.command.starts_with(&whole);
            workload::of_others().find(is_it).map_or(whole.clone(), |other| of_other(other, flags))
        }
        None => {
            let of_each: Vec<String> = workload::of_others()
                .map(|other| format!("{} is `{}`", other.whose, other.command))
                .collect();
            format!("nothing is built here: {}", of_each.join(", "))
        }
    }
}

/// Hint for Lithair's bench script: the command that has its load.
fn bench_script(typed: &[String]) -> String {
    let total = typed.first().filter(|total| total.parse::<u64>().is_ok()).map(String::as_str);
    if let Some(suite) = bench_variables::suite_command(total) {
        return suite;
    }
    format!(
        "with SINGLE_NODE=1 it is `{}`, which has flags for its variables (--create-pct, --read-path, \
         --preseed); of its three nodes each has a generator, so that --total, --concurrency and --preseed \
         are three times its numbers; `plimsoll cluster run` has its cluster and suites",
        bench_variables::crud_command(total.unwrap_or("10000"))
    )
}

/// The problem with a command line, with a hint for who comes from Lithair's bench script and names no spec.
pub(crate) fn led_on(problem: Problem) -> Problem {
    match bench_variables::suite_command(None).filter(|_| problem.message == "SPEC is missing") {
        Some(suite) => problem.with_hint(suite),
        None => problem,
    }
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

/// Returns `true` if a command has a flag with this long name.
pub(crate) fn has(command: &clap::Command, name: &str) -> bool {
    command.get_arguments().any(|argument| {
        argument.get_long() == Some(name) || argument.get_all_aliases().unwrap_or_default().contains(&name)
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
    let root = Cli::command();
    let owners: Vec<&str> = workload::names()
        .filter(|command| typed.as_deref() != Some(command))
        .filter(|command| root.find_subcommand(command).is_some_and(|command| has(command, name)))
        .collect();
    match *owners {
        [one] => Some(format!("it is a flag of `plimsoll {one}`")),
        [one, other] => Some(format!("it is a flag of `plimsoll {one}` and of `plimsoll {other}`")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
