//! Expectations and places of values, as they are put together.

use plimsoll_document::{ExpectSpec, ExtractSpec, Field, MatchSpec, StepSpec, Text, ThresholdSpec};
use regex::Regex;

use crate::amount;
use crate::draft::text;
use crate::findings::Findings;
use crate::json_path::is_json_path;

/// A comparison with a text, which is a template.
pub(crate) fn equals(value: String) -> MatchSpec {
    let mut spec = MatchSpec::default();
    spec.equals = text(value);
    spec
}

/// A text that has to be in it.
pub(crate) fn contains(value: String) -> MatchSpec {
    let mut spec = MatchSpec::default();
    spec.contains = text(value);
    spec
}

/// A regular expression that has to match.
pub(crate) fn matches(expression: String) -> MatchSpec {
    let mut spec = MatchSpec::default();
    spec.regex = text(expression);
    spec
}

/// Something that has to be there.
pub(crate) fn exists() -> MatchSpec {
    let mut spec = MatchSpec::default();
    spec.exists = Field::new(true);
    spec
}

/// The opposite of a comparison.
pub(crate) fn turned(mut spec: MatchSpec) -> MatchSpec {
    spec.not = match spec.not.get() {
        Some(true) => Field::Absent,
        _ => Field::new(true),
    };
    spec
}

/// A place of a value in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Status,
    Body,
    Header(String),
    Json(String),
    Cookie(String),
    Xpath(String),
}

/// The extraction of the value there.
pub(crate) fn extract(place: &Place) -> ExtractSpec {
    let mut spec = ExtractSpec::default();
    match place {
        Place::Status => spec.status = Field::new(true),
        Place::Body => spec.body = Field::new(true),
        Place::Header(name) => spec.header = text(name.as_str()),
        Place::Json(path) => spec.json = text(path.as_str()),
        Place::Cookie(name) => spec.cookie = text(name.as_str()),
        Place::Xpath(path) => spec.xpath = text(path.as_str()),
    }
    spec
}

/// The expectations of a step, which are empty at first.
pub(crate) fn expectations(step: &mut StepSpec) -> &mut ExpectSpec {
    if step.expect.get().is_none() {
        step.expect = Field::new(ExpectSpec::default());
    }
    match &mut step.expect {
        Field::Given(expect, _) => expect,
        Field::Absent | Field::Bad(_) => unreachable!("it was just given"),
    }
}

/// Adds an expectation on a value. A place of one name has one expectation: another is noted.
pub(crate) fn expect(
    step: &mut StepSpec,
    place: &Place,
    spec: MatchSpec,
    at: &str,
    said: &str,
    findings: &mut Findings,
) {
    let expect = expectations(step);
    let (list, name) = match place {
        Place::Body => {
            expect.body.push(Field::new(spec));
            return;
        }
        Place::Header(name) => (&mut expect.headers, name),
        Place::Json(path) => (&mut expect.json, path),
        Place::Status | Place::Cookie(_) | Place::Xpath(_) => {
            findings.note(at, said, "nothing can be expected of this: it is left out");
            return;
        }
    };
    match list.0.iter().find(|(known, ..)| known.as_str().eq_ignore_ascii_case(name)) {
        None => list.push(name.as_str(), Field::new(spec)),
        Some((_, _, Field::Given(known, _))) if *known == spec => {}
        // To be there is a part of every other expectation.
        Some((_, _, Field::Given(known, _))) if !known.exists.is_absent() && spec.exists.is_absent() => {
            list.0.retain(|(known, ..)| !known.as_str().eq_ignore_ascii_case(name));
            list.push(name.as_str(), Field::new(spec));
        }
        Some(_) if !spec.exists.is_absent() => {}
        Some(_) => {
            findings.note(at, said, "a value has one expectation in a plan: this further one is left out");
        }
    }
}

/// Adds accepted statuses; all of a list are accepted.
pub(crate) fn expect_status(
    step: &mut StepSpec,
    statuses: &[String],
    at: &str,
    said: &str,
    findings: &mut Findings,
) {
    let wrong = |status: &String| !is_status(status);
    if statuses.is_empty() || statuses.iter().any(wrong) {
        findings.note(at, said, "these are not statuses from 200 to 599: the expectation is left out");
        return;
    }
    let expect = expectations(step);
    let new: Vec<Field<Text>> = statuses.iter().map(|status| text(status.as_str())).collect();
    if expect.status.is_empty() {
        expect.status = new;
    } else if expect.status != new {
        findings.note(at, said, "the statuses are said already: this further expectation is left out");
    }
}

/// Returns `true` for `200`, `2xx` and `200-204`.
fn is_status(text: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().is_ok_and(|number| (200..=599).contains(&number));
    match (text.strip_suffix("xx"), text.split_once('-')) {
        (Some(class), _) => ["2", "3", "4", "5"].contains(&class),
        (_, Some((first, last))) => number(first) && number(last) && first <= last,
        _ => number(text),
    }
}

/// All statuses but this one.
pub(crate) fn other_than(status: u16) -> Vec<String> {
    match status {
        200 => vec!["201-599".to_owned()],
        599 => vec!["200-598".to_owned()],
        status => vec![format!("200-{}", status - 1), format!("{}-599", status + 1)],
    }
}

/// A JSONPath that plans accept: `$.a[0].b`. `None` if there is no equivalent.
pub(crate) fn json_path(path: &str) -> Option<String> {
    let path = path.trim();
    let path = match path.chars().next()? {
        '$' => path.to_owned(),
        '[' => format!("${path}"),
        '.' => format!("${path}"),
        _ => format!("$.{path}"),
    };
    if path == "$" {
        return Some(String::new());
    }
    (is_simple(&path) || is_json_path(&path)).then_some(path)
}

/// Returns `true` for names and numbers of elements only, which need no second look.
fn is_simple(path: &str) -> bool {
    path.strip_prefix("$.").is_some_and(|rest| {
        rest.split('.').all(|part| {
            let (name, index) =
                part.split_once('[').map_or((part, None), |(name, index)| (name, Some(index)));
            let is_index = |index: &str| {
                let number = index.strip_suffix(']').unwrap_or_default();
                (1..6).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
            };
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_name && index.is_none_or(is_index)
        })
    })
}

/// A JSON Pointer for members and elements, one within the other.
pub(crate) fn json_pointer(parts: &[String]) -> String {
    parts.iter().fold(String::new(), |pointer, part| crate::source::below(&pointer, part))
}

/// Returns `true` if plans take the regular expression.
pub(crate) fn is_regex(expression: &str) -> bool {
    Regex::new(expression).is_ok()
}

/// The expression with its `group`-th group alone, and with none for 0: plans take the first group, or the
/// whole match. `None` if there is no such group, or plans do not take the expression.
pub(crate) fn only_group(expression: &str, group: usize) -> Option<String> {
    let mut only = String::with_capacity(expression.len() + 8);
    let (mut found, mut in_class, mut escaped) = (0_usize, false, false);
    let mut rest = expression.chars().peekable();
    while let Some(c) = rest.next() {
        only.push(c);
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && rest.peek() != Some(&'?') => {
                found += 1;
                if found != group {
                    only.push_str("?:");
                }
            }
            _ => {}
        }
    }
    (group <= found && is_regex(&only)).then_some(only)
}

/// A limit for all response times of a step.
pub(crate) fn slowest(scenario: &str, step: &str, nanos: u64) -> ThresholdSpec {
    let mut threshold = ThresholdSpec::default();
    threshold.that = text(format!("max<{}", amount::time(nanos)));
    threshold.scenario = text(scenario);
    threshold.step = text(step);
    threshold
}
