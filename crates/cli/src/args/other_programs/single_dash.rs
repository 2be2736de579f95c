//! Long flags with one dash, as hey and vegeta have them: `-disable-keepalive` would be a duration of
//! `isable-keepalive`.

use clap::CommandFactory as _;
use plimsoll_plan::Problem;

use super::has;
use crate::args::cli::Cli;
use crate::args::command_word::commands;

/// Flags of hey and vegeta whose place here has another name, and what to write.
const ELSEWHERE: [(&str, &str); 13] = [
    ("disable-compression", "leave it out: nothing is asked to be compressed unless a header says so"),
    ("disable-redirects", "leave it out: redirects are followed with --follow-redirects only"),
    ("host", "write -H 'Host: …'"),
    ("cpus", "the number of threads is -t"),
    ("more", "write --long"),
    ("h2", "write --http2"),
    ("h2c", "write --http2"),
    ("body", "vegeta's `-body=FILE` is -b @FILE here"),
    ("targets", "`plimsoll import vegeta FILE > plan.yaml` makes a plan of them"),
    ("root-certs", "write --cacert FILE"),
    ("redirects", "write --follow-redirects=N; without it they are not followed"),
    ("max-workers", "the number of connections is -c"),
    ("keepalive", "vegeta's `-keepalive=false` is --disable-keepalive here"),
];

/// Fewest letters of a long flag: `-h2` is one of hey's.
const SHORTEST: usize = 2;

/// The problem with the first long flag that has one dash; `None` if there is none. `words` follow the name
/// of this program.
pub(super) fn problem(words: &[String]) -> Option<Problem> {
    let own = words.iter().take_while(|word| *word != "--");
    let candidates: Vec<&str> = own.filter_map(|word| name(word)).collect();
    // The tree of commands is only made where there may be a problem.
    let first = words.first().filter(|_| !candidates.is_empty())?;
    let command = commands().find(|command| *command == first).unwrap_or("run");
    if command == "import" {
        return None;
    }
    let root = Cli::command();
    let command = root.find_subcommand(command)?;
    candidates.into_iter().find_map(|name| {
        let elsewhere =
            ELSEWHERE.iter().find(|(known, _)| *known == name).map(|(_, hint)| (*hint).to_owned());
        let hint =
            elsewhere.or_else(|| has(command, name).then(|| format!("write --{name}, with two dashes")))?;
        Some(Problem::new(format!("unknown flag `-{name}`")).with_hint(hint))
    })
}

/// The name of what may be a long flag with one dash.
fn name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('-')?.split('=').next()?;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_letter);
    (is_name && name.len() >= SHORTEST).then_some(name)
}
