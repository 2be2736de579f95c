//! Names of agents and runs, and the subjects that contain them.

use std::fmt;

/// Longest name, in characters.
const LONGEST_NAME: usize = 64;

/// A name that a subject cannot contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a valid name: write up to {LONGEST_NAME} letters, digits, `-` and `_`",
            self.0.escape_debug()
        )
    }
}

impl std::error::Error for NameError {}

/// Checks the name of an agent or a run: one word of a subject, without wildcards, so that permissions hold.
///
/// # Errors
/// It is empty, too long, or has other characters than ASCII letters, digits, `-` and `_`.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_word) {
        return Ok(());
    }
    Err(NameError(name.chars().take(LONGEST_NAME).collect()))
}

/// Signs of life of all agents.
pub(crate) const ALL_HERE: &str = "plim.here.*";
/// Beats of all runs.
pub(crate) const ALL_BEATS: &str = "plim.run.*.all";

/// Sign of life of an agent.
pub(crate) fn here(agent: &str) -> String {
    format!("plim.here.{agent}")
}

/// Orders to an agent.
pub(crate) fn orders(agent: &str) -> String {
    format!("plim.to.{agent}")
}

/// Beats of a run, to all of its agents.
pub(crate) fn beats(run: &str) -> String {
    format!("plim.run.{run}.all")
}

/// Messages of an agent about a run, of this kind.
pub(crate) fn word(run: &str, agent: &str, kind: &str) -> String {
    format!("plim.run.{run}.a.{agent}.{kind}")
}

/// Messages of all agents about a run.
pub(crate) fn words(run: &str) -> String {
    format!("plim.run.{run}.a.>")
}

/// Kind of message that a subject carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Here(&'a str),
    Orders(&'a str),
    Beats(&'a str),
    Word { run: &'a str, agent: &'a str },
}

/// Parses a subject; `None` if it is not one of a fleet.
pub(crate) fn parse(subject: &str) -> Option<Subject<'_>> {
    let words: Vec<&str> = subject.split('.').collect();
    match *words.as_slice() {
        ["plim", "here", agent] => Some(Subject::Here(agent)),
        ["plim", "to", agent] => Some(Subject::Orders(agent)),
        ["plim", "run", run, "all"] => Some(Subject::Beats(run)),
        ["plim", "run", run, "a", agent, _] => Some(Subject::Word { run, agent }),
        _ => None,
    }
}

/// Subjects that an agent may publish on, and subscribe to. A name `*` stands for every agent.
pub(crate) fn of_agent(name: &str) -> ([String; 2], [String; 2]) {
    ([here(name), format!("plim.run.*.a.{name}.*")], [orders(name), ALL_BEATS.to_owned()])
}

/// Subjects that a coordinator may publish on, and subscribe to.
pub(crate) fn of_coordinator() -> ([String; 2], [String; 2]) {
    ([orders("*"), ALL_BEATS.to_owned()], [ALL_HERE.to_owned(), "plim.run.*.a.>".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_as_they_are_made() {
        assert_eq!(parse(&here("a-1")), Some(Subject::Here("a-1")));
        assert_eq!(parse(&orders("a")), Some(Subject::Orders("a")));
        assert_eq!(parse(&beats("r")), Some(Subject::Beats("r")));
        assert_eq!(parse(&word("r", "a", "line")), Some(Subject::Word { run: "r", agent: "a" }));
        for other in ["", "plim", "plim.here", "plim.here.a.b", "plim.run.r.a.b", "other.here.a"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_is_one_word_of_a_subject() {
        for good in ["a", "load-3", "eu_west_1", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a.b", "a b", "*", ">", "é", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
