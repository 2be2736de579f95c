//! A body or a URL that was typed where the name of a file belongs: `--json '{…}'` sends one with curl, and
//! names a file here, as `--json URL` does; so does `-d '{…}'`, which is a duration here.

use std::ffi::OsStr;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command};
use plimsoll_document::Problem;

/// The problem with a command line that has a body as the name of a file; `None` if it has not. The body is
/// in no message: it may have a password.
pub(crate) fn problem(command: &Command, found: &ArgMatches) -> Option<Problem> {
    if let Some((name, found)) = found.subcommand() {
        return problem(command.find_subcommand(name)?, found);
    }
    let has_body = command.get_arguments().any(|arg| arg.get_long() == Some("body"));
    command.get_arguments().filter(|arg| is_time(arg) || takes_file(arg)).find_map(|arg| {
        let mut values = found.try_get_raw(arg.get_id().as_str()).ok()??;
        let flag = arg.get_long()?;
        if !is_time(arg) && values.clone().any(is_url) {
            return Some(taken(flag));
        }
        let has_one = values.any(|value| is_body(flag, value));
        has_one.then(|| if is_time(arg) { no_time() } else { refused(flag, has_body) })
    })
}

/// Returns `true` of a flag whose value is the name of a file, or has one.
fn takes_file(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.get_value_parser().type_id() == ValueParser::path_buf().type_id()
        || names.iter().any(|name| name == "FILE" || name == "FORMAT=FILE")
}

/// Returns `true` of the length of a run, `-d`, which is curl's flag of a body.
fn is_time(arg: &Arg) -> bool {
    arg.get_long() == Some("duration")
}

/// Returns `true` of what is plainly no name of a file: an object or a list of JSON, or curl's `@` before
/// the name of the file that has the body.
fn is_body(flag: &str, value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let name = match flag {
        "out" => value.split_once('=').map_or(&*value, |(_, file)| file),
        _ => &value,
    };
    name.trim_start().starts_with(['{', '['])
        || (["json", "duration"].contains(&flag) && name.starts_with('@'))
}

/// Returns `true` of a URL, which no file is named like.
fn is_url(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    ["http://", "https://"].into_iter().any(|scheme| value.starts_with(scheme))
}

fn taken(flag: &str) -> Problem {
    let problem = Problem::new(format!("--{flag}: this is a URL, and no name of a file"));
    let hint = format!("write `--{flag} FILE URL`");
    problem.with_hint(match flag {
        "json" => format!("{hint}; JSON on stdout is -o json"),
        _ => hint,
    })
}

fn no_time() -> Problem {
    let problem = Problem::new("-d, --duration: this is a body, and no duration");
    problem.with_hint(
        "the duration is written 30s or 1m30s; curl's, hey's and oha's `-d` is -b here: -b '{…}' -H \
         'content-type: application/json', or -b @FILE",
    )
}

fn refused(flag: &str, has_body: bool) -> Problem {
    let problem = Problem::new(format!("--{flag}: this is a body, and no name of a file"));
    problem.with_hint(match has_body {
        true => {
            "a body of JSON is -b '{…}' -H 'content-type: application/json', or -b @FILE; a file of such a name \
             begins with ./"
        }
        false => "a file of such a name begins with ./",
    })
}
