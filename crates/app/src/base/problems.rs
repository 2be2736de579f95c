//! Rendering of problems: `error: …`, then `hint: …`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use plimsoll_core::Redaction;
use plimsoll_core::suggest;
use plimsoll_document::{Problem, Problems, Source};
use serde_json::{Value, json};

use crate::base::advice;
use crate::base::diagnostics::{Excerpts, Position};
use crate::base::failure::Failure;
use crate::base::foreign_flags::foreign;
use crate::base::foreign_text::{in_lines, visible_beginning};
use crate::base::stdout;

/// All problems as text, each with its place in the plan file and its advice below it.
pub(crate) fn render(problems: &Problems, source: Option<&Source>, color: bool) -> String {
    let mut text = String::new();
    let excerpts = source.map(|source| Excerpts::new(source, &Redaction::default(), color));
    for problem in problems {
        // Colour stands beside the words, never for them.
        let (red, cyan, reset) = if color { ("\x1b[1;31m", "\x1b[1;36m", "\x1b[0m") } else { ("", "", "") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{red}error:{reset} {}", in_lines(&visible_beginning(&problem.message)));
        if let (Some(excerpts), Some(place)) = (&excerpts, problem.place) {
            text.push_str(&excerpts.show(place));
            if let Some(others) = excerpts.others(&problem.also) {
                text.push_str(&others);
            }
        }
        if let Some(hint) = &problem.hint {
            let _ = writeln!(text, "{cyan}hint:{reset} {}", in_lines(&visible_beginning(hint)));
        }
    }
    text
}

/// Writes the problems of a plan as JSON to stdout, for editors: each with its place, if it has one.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn to_stdout_as_json(failure: &Failure) -> Result<(), Failure> {
    let report = json!({
        "ok": false,
        "name": failure.source.as_ref().map(|source| &source.name),
        "problems": failure.problems.into_iter().map(|problem| located(problem, failure)).collect::<Vec<_>>(),
    });
    stdout::to_stdout(|out| writeln!(out, "{report:#}"))
}

/// A problem with the place of the value that it is about: lines and columns from 1, in characters.
fn located(problem: &Problem, failure: &Failure) -> Value {
    let place = failure.source.as_deref().zip(problem.place).map(|(source, place)| {
        let Position { line, column, text, start } = Position::of(source, place.start);
        // Only the part on this line is marked.
        let end = (place.end as usize).min(start + text.len());
        let marked = source.text.get(place.start as usize..end).unwrap_or_default();
        (line, column, marked.chars().count().max(1))
    });
    json!({
        "severity": "error",
        "message": visible_beginning(&problem.message),
        "hint": problem.hint.as_ref().map(|hint| visible_beginning(hint)),
        "file": failure.source.as_ref().map(|source| &source.name),
        "line": place.map(|(line, ..)| line),
        "column": place.map(|(_, column, _)| column),
        "length": place.map(|(.., length)| length),
    })
}

/// A mistake that the command line's parser found, in our words; `None` if it is not a mistake but a page of
/// help or the version. `args` is that command line, the name of the command second, and `root` has all
/// commands; `makes_run` says that the result of the command is that of a run, which has many formats, and
/// `owner_of` says which command has a flag that this one lacks.
pub(crate) fn from_clap(
    error: &clap::Error,
    args: &[OsString],
    root: &clap::Command,
    makes_run: bool,
    owner_of: impl Fn(&str) -> Option<String>,
) -> Option<Problem> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        _ => None,
    };
    let argument = || text(ContextKind::InvalidArg).unwrap_or_default();
    // `--rate <RATE>` is how the parser names a flag with a value.
    let flag = || argument().split([' ', '=']).next().unwrap_or_default().to_owned();
    let command = command_of(root, args);
    let problem = match error.kind() {
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_none_or(|value| value.is_empty()) => {
            without_value(&argument(), &text(ContextKind::ValidValue).unwrap_or_default())
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
        ErrorKind::UnknownArgument if !flag().starts_with('-') => {
            Problem::new(format!("unexpected argument `{}`", flag()))
        }
        ErrorKind::UnknownArgument if is_curl(args) => {
            Problem::new(format!("unknown flag `{}`", flag())).with_hint(CURL_WORDS)
        }
        ErrorKind::UnknownArgument if is_number(&flag()) => below_zero(&flag(), args),
        ErrorKind::UnknownArgument => {
            unknown_flag(&flag(), text(ContextKind::SuggestedArg).as_deref(), owner_of)
        }
        ErrorKind::InvalidValue => {
            let value = text(ContextKind::InvalidValue).unwrap_or_default();
            let known = text(ContextKind::ValidValue).unwrap_or_default();
            invalid_value(&flag(), &value, &known, makes_run)
        }
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg).unwrap_or_default();
            if other == argument() {
                given_twice(&flag(), args)
            } else {
                let other = other.split(' ').next().unwrap_or_default();
                Problem::new(format!("{} and {other} exclude each other", flag()))
            }
        }
        ErrorKind::MissingRequiredArgument => missing(&argument(), &values(&argument(), command)),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if is_import(error) =>
        {
            Problem::new("no format is given").with_hint(formats())
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if args.len() > 1 && !inner(command).is_empty() =>
        {
            let names = inner(command).join(", ");
            Problem::new(format!("`{}` needs the name of one", command.get_name()))
                .with_hint(format!("one of {names}"))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Problem::new("no command is given").with_hint(format!("{EXAMPLE}, or `plimsoll --help`"))
        }
        // Commands themselves are checked before the parser runs: this is an argument of one.
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let noun = if is_import(error) { "format" } else { "target" };
            let problem = Problem::new(format!("unknown {noun} `{name}`"));
            match text(ContextKind::SuggestedSubcommand) {
                Some(near) => {
                    // The parser names all that are similar, the most similar one last.
                    let nearest = near.rsplit(", ").next().unwrap_or(&near);
                    problem.with_hint(format!("did you mean `{nearest}`?"))
                }
                None if is_import(error) => problem.with_hint(formats()),
                None => problem.with_hint(format!("{noun}s: {}", inner(command).join(", "))),
            }
        }
        ErrorKind::TooManyValues => Problem::new(format!("{} takes no value", flag())),
        _ => {
            let rendered = error.to_string();
            let first = rendered.lines().next().unwrap_or_default();
            Problem::new(first.trim_start_matches("error: "))
        }
    };
    Some(if problem.hint.is_some() { problem } else { problem.with_hint("`-h` lists the flags") })
}

/// A flag or an argument with a value that is not one of those known.
fn invalid_value(flag: &str, value: &str, known: &str, makes_run: bool) -> Problem {
    let name = flag.replace(['<', '>', '[', ']'], "");
    let problem = Problem::new(format!("{name}: `{value}` is not one of {known}"));
    match (&*name, value) {
        ("--mode", perf) if perf.starts_with("perf-") => problem.with_hint(perf_mode(perf)),
        ("--call", mix) if MIXES.iter().any(|known| known.eq_ignore_ascii_case(mix)) => problem
            .with_hint("a mix of calls is several steps of a plan: --print-plan writes one to begin with"),
        ("KIND", "demo") => problem.with_hint("write the flags of `ingest demo` behind `demo`"),
        ("--output", _) => problem.with_hint(output_hint(value, known, makes_run)),
        _ => problem,
    }
}

/// A flag that stands at the end of the line, or before another one: `--rate <RATE>`.
fn without_value(argument: &str, known: &str) -> Problem {
    let flag = argument.split([' ', '=']).next().unwrap_or_default();
    let value = argument.split_once('<').map_or("", |(_, name)| name.trim_end_matches(['>', '.', ']']));
    let example = match value {
        "N" => "64",
        "RATE" => "100",
        "TIME" => "10s",
        "SIZE" => "64KiB",
        "SHARE" | "PERCENT" => "1%",
        "THRESHOLD" => "'p99<50ms'",
        "STAGES" => "10s@50,20s@100",
        "HEADER" => "'accept: text/html'",
        "ADDRESS" | "ADDR" => "127.0.0.1:8080",
        "LAW" => "10ms",
        other if known.is_empty() => other,
        _ => known.split(", ").next().unwrap_or_default(),
    };
    Problem::new(format!("{flag} needs a value"))
        .with_hint(format!("such as {flag} {example}; `-h` lists the flags"))
}

/// The command of a command line, as far as its words are names of commands.
fn command_of<'c>(root: &'c clap::Command, args: &[OsString]) -> &'c clap::Command {
    let mut command = root;
    for word in args.iter().skip(1) {
        let Some(inner) = command.find_subcommand(word) else { break };
        command = inner;
    }
    command
}

/// The names of the commands below a command.
fn inner(command: &clap::Command) -> Vec<&str> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(clap::Command::get_name).collect()
}

/// The values that an argument of a command can have, if they are known: `<SHELL>`.
fn values(argument: &str, command: &clap::Command) -> Vec<String> {
    let known = command.get_arguments().find(|known| known.to_string() == argument);
    let values = known.map(clap::Arg::get_possible_values).unwrap_or_default();
    values.iter().map(|value| value.get_name().to_owned()).collect()
}

fn given_twice(flag: &str, args: &[OsString]) -> Problem {
    let problem = Problem::new(format!("{flag} is given twice"));
    let is_duration = flag == "--duration" || flag == "-d";
    if is_duration && args.iter().any(|arg| arg.to_string_lossy().starts_with("-D")) {
        return problem.with_hint("-d and -D are the duration; h2load's -d FILE is `--body @FILE` here");
    }
    problem
}

/// An argument that a command needs.
fn missing(argument: &str, values: &[String]) -> Problem {
    let missing = argument.replace(['<', '>'], "").replace("...", "");
    let problem = Problem::new(format!("{missing} is missing"));
    match missing.as_str() {
        "KIND" => problem.with_hint(
            "write `plimsoll ingest metrics`, logs, traces, events or unified; --preset arc has the \
             settings of Arc's scripts",
        ),
        "SPEC" => problem.with_hint(SPEC_EXAMPLE),
        "PLAN|URL" => problem.with_hint(EXAMPLE),
        _ if !values.is_empty() => problem.with_hint(format!("one of {}", values.join(", "))),
        _ => problem,
    }
}

const CURL_WORDS: &str =
    "flags of curl stand behind `--`: `plimsoll import curl -- -X POST URL`; or the whole command in quotes";

/// Returns `true` if the command line is one of `plimsoll import curl`.
fn is_curl(args: &[OsString]) -> bool {
    let mut words = args.iter().skip(1).filter(|word| !word.to_string_lossy().starts_with('-'));
    words.next().is_some_and(|word| word == "import") && words.next().is_some_and(|word| word == "curl")
}

/// Returns true for negative numbers, such as the start of `-5s`, which the parser takes for flags.
fn is_number(flag: &str) -> bool {
    flag.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// `-d -5s`: the parser takes a value that begins with `-` for a flag.
fn below_zero(flag: &str, args: &[OsString]) -> Problem {
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let at = args.iter().position(|arg| arg.starts_with(flag));
    let value = at.map_or(flag, |at| &args[at]);
    let before = at.and_then(|at| args.get(at.checked_sub(1)?)).filter(|before| before.starts_with('-'));
    let problem = match before {
        Some(before) => Problem::new(format!("{before}: `{value}` is negative")),
        None => Problem::new(format!("unknown flag `{value}`")),
    };
    problem.with_hint("times, rates and numbers are 0 or more")
}

/// The hint for an unknown value of `--output`: a file name, or a format that only other commands have.
fn output_hint(value: &str, known: &str, makes_run: bool) -> String {
    let known: Vec<&str> = known.split(", ").collect();
    let ending = Path::new(value).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_file = !ending.is_empty() || value.contains('/');
    let meant = match if is_file { ending } else { value } {
        "md" => "markdown",
        "xml" => "junit",
        "jsonl" => "ndjson",
        "txt" => "text",
        other => other,
    };
    match (is_file, makes_run) {
        (true, true) if meant == "html" => format!("the page of HTML is --report {value}"),
        (true, true) if meant == "json" => format!("a file is written with --json {value}"),
        (true, true) if known.contains(&meant) => format!("a file is written with --out {meant}={value}"),
        (true, true) => format!("a file is written with --json {value}, or --out FORMAT={value}"),
        (true, false) => {
            let format = known.iter().find(|format| **format == meant).unwrap_or(&known[0]);
            format!("-o is the format on stdout: write `-o {format} > {value}`")
        }
        (false, true) if meant == "html" => "a page of HTML is a file: --report FILE".to_owned(),
        (false, _) if meant == "html" => "`plimsoll report RUN` writes a page of HTML".to_owned(),
        (false, _) if known.contains(&meant) => format!("write -o {meant}"),
        (false, _) => match suggest::closest(value, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("write -o {}; a file is named with --json or --out, where there is one", known[0])
            }
        },
    }
}

/// The formats of `plimsoll import`, those of extensions behind the others.
fn formats() -> String {
    const OF_CORE: &str =
        "formats: h2loadrunner, curl, har, openapi, vegeta, postman, artillery, jmeter, k6, gatling, locust";
    advice::formats().fold(OF_CORE.to_owned(), |all, name| format!("{all}, {name}"))
}

/// Returns `true` if a mistake was made below `plimsoll import`.
fn is_import(error: &clap::Error) -> bool {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => error.to_string(),
    };
    // Its own line, and not one of the examples of all commands.
    usage.lines().any(|line| line.trim_start().starts_with("Usage: plimsoll import"))
}

/// Kinds of calls of the Internet Computer's generator that mix several methods.
const MIXES: [&str; 2] = ["StateSyncA", "CowSafetyA"];

/// The hint for a mode of Lithair's generator that asks one path again and again: the command to write.
fn perf_mode(mode: &str) -> String {
    let request = match mode {
        "perf-json" => "'URL/perf/json?bytes=1024'",
        "perf-bytes" => "'URL/perf/bytes?n=1024'",
        "perf-echo" => "URL/perf/echo -b @FILE",
        _ => "URL/status",
    };
    format!("it asks one path again and again: `plimsoll run {request} -n 20000 -c 64`")
}

/// A spec that works as it is typed.
const SPEC_EXAMPLE: &str = "a spec says how its servers start and what load they get: \
    echo '{nodes: {command: \"${plimsoll}\", arguments: [sink, --listen, \"${address.http}\"], ports: {http: 0}}, \
    workload: {run: {duration: 3s}, targets: {node: \"http://${node.0.http}\"}, \
    scenarios: [{steps: [{get: /}]}]}}' > spec.yaml; plimsoll cluster run spec.yaml";

const EXAMPLE: &str = "write `plimsoll run http://127.0.0.1:8080/`";

fn unknown_flag(flag: &str, suggested: Option<&str>, owner_of: impl Fn(&str) -> Option<String>) -> Problem {
    let problem = Problem::new(format!("unknown flag `{flag}`"));
    let hint = foreign(flag).map(str::to_owned).or_else(|| owner_of(flag));
    match (hint, suggested) {
        (Some(hint), _) => problem.with_hint(hint),
        // The parser's idea of similar is generous: `--nonsense` would be `--connections`.
        (None, Some(near)) if suggest::closest(flag, [near]).is_some() => {
            problem.with_hint(format!("did you mean `{near}`?"))
        }
        (None, _) => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_one_block_and_colour_adds_nothing_to_read() {
        let mut problems = Problems::from(Problem::new("a").with_hint("b"));
        problems.push(Problem::new("c"));
        assert_eq!(render(&problems, None, false), "error: a\nhint: b\nerror: c\n");
        let coloured = render(&problems, None, true);
        let plain = coloured.replace("\x1b[1;31m", "").replace("\x1b[1;36m", "").replace("\x1b[0m", "");
        assert_eq!(plain, render(&problems, None, false));
        assert_ne!(coloured, plain);
    }

    /// Symptom: the error text of a cache server set the terminal's colours and title.
    #[test]
    fn what_a_server_said_has_no_effect_on_the_terminal() {
        let said = Problem::new("no answer: \x1b[31m\x1b]0;pwned\x07").with_hint("\x1b[2J");
        let text = render(&Problems::from(said), None, false);
        assert_eq!(text, "error: no answer: \u{fffd}[31m\u{fffd}]0;pwned\u{fffd}\nhint: \u{fffd}[2J\n");
    }
}
