//! The first word of the command line: a command, or a URL, for which `run` is implied.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;

use clap::CommandFactory as _;
use plimsoll_core::suggest;
use plimsoll_document::{Problem, Problems};

use crate::args::cli::Cli;
use crate::args::extension::LoadGroup;
use crate::args::{extension, other_programs, single_dash, workload};

/// The commands of this crate in the groups in which help shows them, the hidden one last.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Run", &["run", "check", "explain", "try", "find", "ab", "calibrate", "import", "record", "ui"]),
    ("Look at results", &["runs", "show", "report", "compare", "history", "export", "verify", "merge", "rm"]),
    ("Servers to test against", &["sink", "target", "cluster", "demo"]),
    ("Several machines", &["fleet", "agent"]),
    (PROTOCOLS, &workload::PROTOCOLS),
    (READY_MADE, &workload::READY_MADE),
    ("This program", &["schema", "completions", "man"]),
    ("", &["reference"]),
];

/// Heading of the commands for other protocols, with those of extensions at their front.
const PROTOCOLS: &str = "Other protocols";

/// Heading of the requests of other load generators, with those of extensions at their front.
const READY_MADE: &str = "Ready-made loads";

/// The commands in the groups in which help shows them, the hidden one last.
fn groups() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    GROUPS.iter().map(|(heading, names)| {
        let heading_of = |group| match group {
            LoadGroup::Protocol => PROTOCOLS,
            LoadGroup::ReadyMade => READY_MADE,
        };
        let added =
            extension::loads().filter(|load| heading_of(load.group) == *heading).map(|load| load.name);
        (*heading, added.chain(names.iter().copied()).collect())
    })
}

/// Columns of a page of help at most, as of all others.
const WIDTH: usize = 100;

/// The commands, for suggestions.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    groups().flat_map(|(_, names)| names)
}

/// Returns `true` if the command of a command line makes a run, whose result has many formats.
pub(crate) fn makes_run(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "run" || workload::names().any(|name| word == name))
}

/// The command line, with the commands in groups in its help.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let mut page = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let column = 2 + commands().map(str::len).max().unwrap_or_default() + 2;
    for (heading, names) in groups().filter(|(heading, _)| !heading.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n{header}{heading}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let padding = " ".repeat(column - 2 - name.len());
            let _ = write!(page, "  {literal}{name}{literal:#}{padding}");
            let mut used = column;
            for (index, word) in about.split(' ').enumerate() {
                if index > 0 && used + 1 + word.chars().count() > WIDTH {
                    let _ = write!(page, "\n{}", " ".repeat(column));
                    used = column;
                } else if index > 0 {
                    page.push(' ');
                    used += 1;
                }
                page.push_str(word);
                used += word.chars().count();
            }
            page.push('\n');
        }
    }
    let _ = write!(page, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(page)
}

/// Words of a command line up to `--`.
struct Words<'a>(Vec<Cow<'a, str>>);

impl Words<'_> {
    fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|word| word.split('=').next() == Some(flag))
    }

    /// The value of a flag by its short name, and by its long one unless that is empty.
    fn value(&self, short: &str, long: &str) -> Option<String> {
        self.0.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(short) {
            Some("") => self.0.get(at + 1).map(ToString::to_string),
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => Some(rest.to_owned()),
            _ if !long.is_empty() && word == long => self.0.get(at + 1).map(ToString::to_string),
            _ => None,
        })
    }

    /// Returns `true` if the number of connections is not the default: there is a rate, or a number of users.
    fn says_load(&self) -> bool {
        let flags = ["--rate", "-R", "--qps", "--users", "--user-stages", "--stages", "--rate-file"];
        flags.into_iter().any(|flag| self.has(flag)) || self.value("-R", "").is_some()
    }

    /// Returns `true` if there is a flag that hey does not have, or has for something else.
    fn is_ours(&self) -> bool {
        let is_flag = |word: &Cow<'_, str>| word.starts_with("--") || word.starts_with("-R");
        self.0.iter().any(is_flag) || ["-d", "-D"].into_iter().any(|flag| self.value(flag, "").is_some())
    }

    /// Notes on what h2loadrunner and h2load do differently with this command line.
    fn habits_of_h2loadrunner(&self) -> Vec<String> {
        let is_crud = self.0.iter().any(|word| word.starts_with("--crud-"));
        let others = ["--http2", "--http2-prior-knowledge", "--http1.1", "--h2loadrunner", "--alpn"];
        let is_http1 = !others.into_iter().any(|flag| self.has(flag))
            && !self.0.iter().any(|word| word.starts_with("https:"));
        let mut habits = Vec::new();
        // hey's and oha's -D is a file.
        let has_time =
            || self.value("-D", "").is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
        if (is_crud || has_time()) && is_http1 {
            let note = "h2loadrunner and h2load speak HTTP/2 by default: --http2; this load is HTTP/1.1";
            habits.push(note.to_owned());
        }
        if !is_crud {
            return habits;
        }
        if self.value("-c", "--connections").is_none() {
            let note = "h2loadrunner has one connection where -c is not given, and Plimsoll 64: -c 1; --rps \
                        counts for each";
            habits.push(note.to_owned());
        }
        let steps = 1 + ["--crud-update-method", "--crud-delete-method"]
            .into_iter()
            .map(|flag| u64::from(self.has(flag)))
            .sum::<u64>();
        let count = self.value("-n", "--iterations").and_then(|count| count.parse::<u64>().ok());
        if let Some(count) = count.filter(|_| steps > 1) {
            habits.push(format!(
                "-n {count} is {count} iterations of {steps} requests; h2loadrunner's -n counts requests: -n {} is \
                 that load",
                count.div_ceil(steps)
            ));
        }
        habits
    }
}

/// Notes about flags that are valid here and mean something else in another tool.
///
/// hey's `-q` is the rate of each of its `-c` workers, of which it has 50, and ours that of the whole run, as
/// oha's. Its `-z` and oha's go with 50 connections; with a rate there are as many here as it needs.
/// h2loadrunner's `--rps` is the rate of each connection, here as there, and other generators' that of all;
/// its `-n` counts requests.
pub(crate) fn habits(args: &[OsString]) -> Vec<String> {
    let words = args.iter().map(|arg| arg.to_string_lossy()).take_while(|arg| arg != "--");
    let words = Words(words.collect());
    if words.has("--quiet") {
        return Vec::new();
    }
    let of_h2loadrunner = match words.0.get(1) {
        Some(command) if command == "run" => words.habits_of_h2loadrunner(),
        _ => Vec::new(),
    };
    of_h2loadrunner.into_iter().chain(habit(&words)).collect()
}

/// The note about a flag of any other tool; `None` if there is none.
fn habit(words: &Words<'_>) -> Option<String> {
    let command = words.0.get(1)?;
    let connections = words.value("-c", "--connections");
    let is_of_arc = || {
        let is_demo = words.0.get(2).is_some_and(|kind| kind == "demo");
        (words.has("--rps") || words.has("--token")) && !words.has("--preset") && !is_demo
    };
    if let Some(load) = extension::loads().find(|load| load.name == command) {
        let words: Vec<&str> = words.0[2..].iter().map(|word| &**word).collect();
        if let Some(note) = (load.note)(&words) {
            return Some(note.to_owned());
        }
    }
    let note = match &**command {
        "run" if words.value("-q", "").is_some() => return rate_of_hey(words, connections.as_deref()),
        "run" if words.value("-z", "").is_some() && connections.is_none() && !words.says_load() => {
            "hey and oha have 50 connections where -c is not given, and Plimsoll 64: -c 50"
        }
        command if workload::is_of_other(command, &words.0[2..]) => {
            return workload::differences(command, &words.0[2..]);
        }
        "ingest" if is_of_arc() => {
            "Arc's scripts have settings that --preset arc has here, too: rate, length, format, batches, \
             workers, gzip, and a database for each kind"
        }
        // The rate of `ingest` has this name, too.
        command
            if command != "ingest" && workload::names().any(|name| name == command) && words.has("--rps") =>
        {
            "--rps is the rate of each connection, as h2loadrunner's; that of all is --rate"
        }
        _ => return None,
    };
    Some(note.to_owned())
}

/// The note about hey's rate, which is that of each worker. Without `-c` a command line with flags in our
/// words is none of hey's.
fn rate_of_hey(words: &Words<'_>, connections: Option<&str>) -> Option<String> {
    let rate = words.value("-q", "")?;
    let each: f64 = rate.parse().ok()?;
    let of: u64 = connections.unwrap_or(WORKERS_OF_HEY).parse().ok()?;
    let all = each * of as f64;
    match connections {
        Some(_) if of > 1 => Some(format!(
            "-q {rate} is {rate}/s for the whole run; hey's -q is for each connection: -R {all} is that load"
        )),
        None if !words.is_ours() => Some(format!(
            "-q {rate} is {rate}/s for the whole run, as oha's; hey's is for each of its {of} connections where \
             -c is not given: -R {all} -c {of} is that load"
        )),
        _ => None,
    }
}

/// Connections of hey where `-c` is not given.
const WORKERS_OF_HEY: &str = "50";

/// Names the flags at the beginning of messages as they were typed: by an alias, and `-m, --streams` where
/// the short name is on the command line and the long one is not.
pub(crate) fn as_typed(problems: &Problems, args: &[OsString]) -> Problems {
    let words: Vec<_> =
        args.iter().skip(1).map(|arg| arg.to_string_lossy()).take_while(|arg| arg != "--").collect();
    let root = Cli::command();
    let mut command = &root;
    for word in &words {
        let Some(inner) = command.find_subcommand(&**word) else { break };
        command = inner;
    }
    let mut renamed = Problems::default();
    for problem in problems {
        let message =
            (problem.place.is_none()).then(|| typed_name(&problem.message, command, &words)).flatten();
        let message = message.unwrap_or_else(|| problem.message.clone());
        renamed.push(Problem { message, ..problem.clone() });
    }
    renamed
}

/// A message with the name of its flag as it was typed; `None` if the message has that already, or is about
/// something else.
fn typed_name(message: &str, command: &clap::Command, words: &[impl AsRef<str>]) -> Option<String> {
    let rest = message.strip_prefix("--")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let is_typed = |long: &str| {
        let mut values = words.iter().filter_map(|word| word.as_ref().strip_prefix("--")?.strip_prefix(long));
        values.any(|value| value.is_empty() || value.starts_with('='))
    };
    let flag =
        command.get_arguments().find(|flag| flag.get_long() == Some(name)).filter(|_| !is_typed(name))?;
    if let Some(alias) = flag.get_all_aliases().unwrap_or_default().into_iter().find(|alias| is_typed(alias))
    {
        return Some(format!("--{alias}{rest}"));
    }
    let short = flag.get_short()?;
    let typed =
        words.iter().any(|word| word.as_ref().strip_prefix('-').is_some_and(|word| word.starts_with(short)));
    typed.then(|| format!("-{short}, {message}"))
}

/// Number of commands at the end of the list that are for developers of the program, and not shown.
const HIDDEN: usize = 1;

/// Inserts `run` where it was left out: `plimsoll URL` and `plimsoll -c 8 URL`. `args` starts with the
/// program's name.
pub(crate) fn with_command(mut args: Vec<OsString>) -> Result<Vec<OsString>, Problem> {
    let Some(first) = args.get(1).map(|first| first.to_string_lossy().into_owned()) else {
        return Ok(args);
    };
    // `help COMMAND` and `version`, as git and cargo have them.
    if first == "help" || first == "version" {
        args.remove(1);
        args.push(format!("--{first}").into());
        return Ok(args);
    }
    let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(problem) = other_programs::problem(&args).or_else(|| single_dash::problem(&words)) {
        return Err(problem);
    }
    let about_program = ["-h", "--help", "-V", "--version"].contains(&first.as_str());
    if commands().any(|command| command == first) || about_program || first.starts_with("--color") {
        return Ok(args);
    }
    // A word that could only be a command is not taken for a host name: `plimsoll snk` must not send load.
    let address = first == "localhost" || first.contains([':', '/', '.']);
    if !first.starts_with('-') && !address {
        let hint = match suggest::closest(&first, commands()) {
            Some(near) => format!("did you mean `plimsoll {near}`?"),
            None => format!(
                "commands: {}; for a host write http://{first}/",
                commands().take(commands().count() - HIDDEN).collect::<Vec<_>>().join(", ")
            ),
        };
        let message = format!("unknown command `{}`", first.escape_debug());
        return Err(Problem::new(message).with_hint(hint));
    }
    args.insert(1, "run".into());
    Ok(args)
}
