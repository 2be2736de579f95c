//! Names and tags of runs.

use std::fmt;
use std::str::FromStr;

/// Characters of a name or a tag at most.
const LONGEST: usize = 200;

/// A word on a run, alone or with a value: `nightly`, `branch=main`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The word.
    pub name: String,
    /// Value of the tag for this run; empty if the tag is the word alone.
    pub value: String,
}

/// Reason why a text is not a name, or not a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// The text.
    pub text: String,
    /// The rule that it breaks, in words.
    pub reason: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.text.escape_debug(), self.reason)
    }
}

impl std::error::Error for BadName {}

impl FromStr for Tag {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        check(text)?;
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(BadName { text: text.to_owned(), reason: "has no word in front of `=`" });
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.value {
            "" => f.write_str(&self.name),
            value => write!(f, "{}={value}", self.name),
        }
    }
}

/// Checks that a text can be the name of a run.
///
/// # Errors
/// If it breaks a rule for names, which the error states.
pub fn check_name(text: &str) -> Result<(), BadName> {
    check(text)?;
    let bad = |reason| Err(BadName { text: text.to_owned(), reason });
    match text {
        _ if text.contains('=') => bad("has a `=`, which tags have"),
        _ if text == "latest" || text.starts_with("latest~") => bad("means the latest run already"),
        _ => Ok(()),
    }
}

fn check(text: &str) -> Result<(), BadName> {
    let bad = |reason| Err(BadName { text: text.to_owned(), reason });
    match text {
        _ if text.trim().is_empty() => bad("is empty"),
        _ if text.trim() != text => bad("begins or ends with a space"),
        _ if text.chars().count() > LONGEST => bad("is longer than 200 characters"),
        _ if text.contains(',') => bad("has a comma, which separates runs"),
        _ if text.chars().any(char::is_control) => bad("has characters that cannot be shown"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_words_with_or_without_a_value() {
        for (text, name, value) in [("nightly", "nightly", ""), ("a=b", "a", "b"), ("a=b=c", "a", "b=c")] {
            let tag: Tag = text.parse().unwrap();
            assert_eq!((&*tag.name, &*tag.value, tag.to_string()), (name, value, text.to_owned()));
        }
        for text in ["", "=x", " x", "a,b", "a\nb", &"x".repeat(201)] {
            assert!(text.parse::<Tag>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_told_from_tags_and_from_the_latest_run() {
        assert_eq!(
            check_name("main, before"),
            Err(BadName { text: "main, before".to_owned(), reason: "has a comma, which separates runs" })
        );
        for text in ["main", "a/b", "läse 2", "latest-build"] {
            assert_eq!(check_name(text), Ok(()));
        }
        for text in ["latest", "latest~1", "a=b", "x ", ""] {
            assert!(check_name(text).is_err(), "{text}");
        }
    }
}
