//! Long flags with one dash, as hey and vegeta have them: `-disable-keepalive` would be a duration of
//! `isable-keepalive`.

use clap::{Arg, CommandFactory as _};
use plimsoll_document::Problem;

use crate::args::cli::Cli;
use crate::args::other_programs::has;

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
pub(crate) fn problem(words: &[String]) -> Option<Problem> {
    let own = words.iter().take_while(|word| *word != "--").enumerate();
    let before = |at: usize| at.checked_sub(1).map_or("", |at| &words[at]);
    let candidates: Vec<(&str, &str)> =
        own.filter_map(|(at, word)| Some((name(word)?, before(at)))).collect();
    // The tree of commands is only made where there may be a problem.
    let first = words.first().filter(|word| !candidates.is_empty() && *word != "import")?;
    let root = Cli::command();
    let command = root.find_subcommand(first).or_else(|| root.find_subcommand("run"))?;
    // A body may be any text.
    let takes = |before: &str, arg: &Arg| {
        let long = before.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
        let short = before
            .strip_prefix('-')
            .is_some_and(|name| arg.get_short().is_some_and(|c| name == c.to_string()));
        arg.is_allow_hyphen_values_set() && (long || short)
    };
    let is_value = |before: &str| command.get_arguments().any(|arg| takes(before, arg));
    candidates.into_iter().filter(|(_, before)| !is_value(before)).find_map(|(name, _)| {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: `-disable-keepalive` was a duration of `isable-keepalive`, and `-h2` printed the help.
    #[test]
    fn long_flags_with_one_dash_are_told() {
        for (line, hint) in [
            ("http://a -disable-keepalive", Some("--disable-keepalive")),
            ("run -disable-keepalive http://a", Some("--disable-keepalive")),
            ("-n 5 -disable-redirects http://a", Some("--follow-redirects only")),
            ("-disable-compression http://a", Some("leave it out")),
            ("-host a.test http://a", Some("-H 'Host: …'")),
            ("-cpus 2 http://a", Some("-t")),
            ("-h2 http://a", Some("--http2")),
            ("-more http://a", Some("--long")),
            ("-duration=5s http://a", Some("--duration")),
            ("-rate 50 http://a", Some("--rate")),
            ("-timeout=2s http://a", Some("--timeout")),
            ("-insecure http://a", Some("--insecure")),
            ("-connections=5 http://a", Some("--connections")),
            ("-header=a:b http://a", Some("--header")),
            ("-body=body.json http://a", Some("-b @FILE")),
            ("-targets=t.txt -rate 5", Some("plimsoll import vegeta")),
            ("-root-certs=ca.pem http://a", Some("--cacert")),
            ("-redirects=3 http://a", Some("--follow-redirects")),
            ("-max-workers=5 http://a", Some("-c")),
            ("-keepalive=false http://a", Some("--disable-keepalive")),
            ("find -duration 5s http://a", Some("--duration")),
            ("-n5 -d5s -c8 -k http://a", None),
            ("-bx=1 -HA:b http://a", None),
            ("http://a -b -host --body -more", None),
            ("-s wrk.lua http://a -- -host", None),
            ("import curl -- -insecure http://a", None),
            ("-d -5s http://a", None),
        ] {
            let problem = problem(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
            let said = problem.as_ref().and_then(|problem| problem.hint.as_deref());
            assert_eq!(said.is_some(), hint.is_some(), "{line}: {problem:?}");
            assert!(
                hint.is_none_or(|hint| said.is_some_and(|said| said.contains(hint))),
                "{line}: {problem:?}"
            );
        }
    }
}
