//! Carbon's own programs: where they and their flags belong here, and constants of its load test that are
//! typed in place of flags.

use plimsoll_app::{Advice, OtherProgram};
use plimsoll_document::Problem;
use plimsoll_report::result::shell_line;

/// Hints for users of Carbon.
pub(crate) const ADVICE: Advice = Advice {
    programs: &[
        OtherProgram::with_flags(&["load-test-tcp", "carbon"], "Carbon's load test", "plimsoll cache"),
        OtherProgram::plain(
            &["load-test-unique-keys"],
            "Carbon's load test over HTTP",
            "plimsoll cache --compare-http http://127.0.0.1:8080",
        ),
        OtherProgram::plain(
            &["server-tcp", "carbon-server"],
            "a cache to test against",
            "plimsoll target cache",
        ),
    ],
    needless: &[(
        "monitor-memory",
        "not needed on one machine: `plimsoll cache` watches what listens at --server, and --watch-process \
         others",
    )],
    flags: &[
        (&["--target-rps"], "the rate is --rate, for the whole run"),
        (&["--total-requests"], "the number of iterations is -n"),
        (&["--concurrent-connections"], "the number of connections is -c"),
        (&["--server-addr", "--cache-name"], "they are --server and --cache of `plimsoll cache`"),
        (&["--connection-timeout-secs"], "the limit for connecting is --connect-timeout"),
    ],
    translate: |words| translated(words).0,
    problem,
};

/// The constants, each with the flag of `plimsoll cache` for it.
const CONSTANTS: [(&str, &str); 6] = [
    ("TARGET_RPS", "--rate"),
    ("TOTAL_REQUESTS", "-n"),
    ("CONCURRENT_CONNECTIONS", "-c"),
    ("SERVER_ADDR", "--server"),
    ("CACHE_NAME", "--cache"),
    ("CONNECTION_TIMEOUT_SECS", "--connect-timeout"),
];

/// The constant that a word names, and its value, if that is part of the word: `--TARGET_RPS`,
/// `--target-rps=5` and `TARGET_RPS=5`.
fn constant(word: &str) -> Option<(&'static str, &'static str, Option<&str>)> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let is_flag = name.starts_with("--");
    let plain = name.trim_start_matches("--").replace('-', "_").to_ascii_uppercase();
    let (name, flag) = CONSTANTS.into_iter().find(|(known, _)| *known == plain)?;
    (is_flag || value.is_some()).then_some((name, flag, value))
}

/// Words with flags in place of constants, and the names of these.
fn translated(words: &[String]) -> (Vec<String>, Vec<&'static str>) {
    let (mut all, mut names) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some((name, flag, value)) = constant(word) else {
            all.push(word.clone());
            continue;
        };
        names.push(name);
        let value = value.or_else(|| words.next().map(String::as_str)).unwrap_or_default();
        let value = value.trim_matches('"');
        // Rust's numbers have underscores, and its zero is no rate.
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        let value = if is_number { value.replace('_', "") } else { value.to_owned() };
        if name != "TARGET_RPS" || value.bytes().any(|byte| byte != b'0') {
            all.extend([flag.to_owned(), value]);
        }
    }
    (all, names)
}

/// The problem with a `plimsoll cache` that has constants of Carbon's load test; `None` if it has none.
fn problem(words: &[String]) -> Option<Problem> {
    let (command, rest) = words.split_first().filter(|(command, _)| *command == "cache")?;
    let (translated, names) = translated(rest);
    if names.is_empty() {
        return None;
    }
    let (are, constants) = if names.len() > 1 { ("are", "constants") } else { ("is", "a constant") };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let problem = Problem::new(format!("{} {are} {constants} of Carbon's load test", names.join(", ")));
    let command = format!("plimsoll {command} {}", shell_line(&translated));
    Some(problem.with_hint(format!("write `{}`", command.trim_end())))
}
