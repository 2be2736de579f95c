//! The comparison of what was reported with what follows.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Error, Value};

use super::{Contradiction, NotCompared, Why};
use crate::ReadError;

/// Statements that are judgements. Their rules were others in evidence of earlier versions: of percentiles
/// until 1, of what a run shows, and of who is its limit, until 2.
const JUDGED: [&str; 4] = ["/thresholds", "/verdict", "record/thresholds", "record/verdict"];

/// Parts of a result that come from outside of the record: exporters, servers that were asked afterwards,
/// agents, faults that were injected, and notes of a workload.
const FROM_OUTSIDE: [&str; 5] = ["/exports", "/reconciliation", "/agents", "/faults", "/notes"];

/// Objects whose keys are data, such as statuses: one that is missing is a count that is missing.
const COUNTED: [&str; 9] = [
    "protocols",
    "tls_versions",
    "statuses",
    "errors",
    "error_examples",
    "failed",
    "resets",
    "go_aways",
    "violations",
];

/// Notes that are made of the record.
const OWN_NOTES: [&str; 3] = ["one_run", "intervals_joined", "address_family"];

/// Fields with sentences, by their names, and objects with nothing but sentences.
const SENTENCES: [&str; 7] =
    ["summary", "evidence", "hint", "reason", "unreached", "statement", "usl_missing"];
const OF_SENTENCES: [&str; 3] = ["methods", "p_missing", "interval_missing"];

/// The most characters of a value that are shown.
const SHOWN: usize = 60;

/// A comparison of two values, place by place.
pub(super) struct Comparing {
    /// `true` if both were made by the same version of this program.
    pub(super) same_program: bool,
    /// `true` if the run was judged by the rules of today.
    pub(super) same_rules: bool,
    /// Texts that the evidence has apart from its result: whatever the version, they are copied.
    pub(super) copied: HashSet<String>,
    pub(super) compared: u64,
    pub(super) contradictions: Vec<Contradiction>,
    pub(super) open: BTreeMap<Why, NotCompared>,
}

impl Comparing {
    /// Compares a part with the same part as it was made again.
    pub(super) fn made_again(
        &mut self,
        place: &str,
        claimed: Result<Value, Error>,
        follows: Result<Value, Error>,
    ) {
        match (claimed, follows) {
            (Ok(claimed), Ok(follows)) => self.compare(place, Some(&claimed), Some(&follows)),
            (Err(error), _) | (_, Err(error)) => self.contradictions.push(Contradiction {
                place: place.to_owned(),
                reason: format!("the record has figures that no result can have: {error}"),
            }),
        }
    }

    /// Compares the values at a place; `None` where there is no such field.
    pub(super) fn compare(&mut self, place: &str, claimed: Option<&Value>, follows: Option<&Value>) {
        if place == "/notes" {
            return self.notes(claimed, follows);
        }
        if FROM_OUTSIDE.contains(&place) {
            if !is_nothing(claimed) {
                self.leave_open(Why::FromOutside, place, claimed);
            }
            return;
        }
        if claimed == follows && !place.is_empty() {
            self.compared += claimed.map_or(0, leaves);
            return;
        }
        if !self.same_rules && JUDGED.contains(&place) {
            return self.leave_open(Why::OtherRules, place, claimed);
        }
        // Figures that could say nothing are not made any more.
        if !self.same_rules && matches!(follows, None | Some(Value::Null)) {
            return self.leave_open(Why::OtherRules, place, claimed);
        }
        match (claimed, follows) {
            (Some(Value::Object(claimed)), Some(Value::Object(follows))) => {
                let inner = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
                for (name, value) in claimed {
                    self.field(&inner(name), Some(value), follows.get(name));
                }
                for (name, value) in follows.iter().filter(|(name, _)| !claimed.contains_key(*name)) {
                    self.field(&inner(name), None, Some(value));
                }
            }
            (Some(Value::Array(claimed)), Some(Value::Array(follows))) if claimed.len() == follows.len() => {
                for (number, (claimed, follows)) in claimed.iter().zip(follows).enumerate() {
                    self.compare(&format!("{place}/{number}"), Some(claimed), Some(follows));
                }
            }
            // Remarks of a search, of which another version may have more.
            _ if place == "/capacity/notes" && !self.same_program => {
                self.leave_open(Why::Words, place, claimed);
            }
            _ if self.is_sentence(place, claimed, follows) => self.leave_open(Why::Words, place, claimed),
            _ => {
                self.compared += 1;
                self.contradict(place, claimed, follows);
            }
        }
    }

    /// Compares a field of an object, which another version may not have.
    fn field(&mut self, place: &str, claimed: Option<&Value>, follows: Option<&Value>) {
        let is_counted = || place.rsplit('/').nth(1).is_some_and(|parent| COUNTED.contains(&parent));
        match (claimed, follows) {
            _ if FROM_OUTSIDE.contains(&place) || self.same_program || is_counted() => {
                self.compare(place, claimed, follows);
            }
            (None, Some(_)) => self.leave_open(Why::Missing, place, follows),
            (Some(_), None) => self.leave_open(Why::Additional, place, claimed),
            _ => self.compare(place, claimed, follows),
        }
    }

    /// Compares notes. Those of the record follow from it; the others are of a workload.
    fn notes(&mut self, claimed: Option<&Value>, follows: Option<&Value>) {
        let list = |notes: Option<&Value>| notes.and_then(Value::as_array).cloned().unwrap_or_default();
        let (claimed, mut follows) = (list(claimed), list(follows));
        for (number, note) in claimed.iter().enumerate() {
            let place = format!("/notes/{number}");
            match follows.iter().position(|own| own["code"] == note["code"]) {
                Some(own) => self.compare(&place, Some(note), Some(&follows.remove(own))),
                None if OWN_NOTES.iter().any(|own| note["code"] == *own) => {
                    self.field(&place, Some(note), None);
                }
                None => self.leave_open(Why::FromOutside, &place, Some(note)),
            }
        }
        for (number, missing) in (claimed.len()..).zip(&follows) {
            self.field(&format!("/notes/{number}"), None, Some(missing));
        }
    }

    /// Returns `true` if a text is in the words of the program, and the evidence is of another version of it.
    fn is_sentence(&self, place: &str, claimed: Option<&Value>, follows: Option<&Value>) -> bool {
        let is_text = |value: Option<&Value>| matches!(value, None | Some(Value::Null | Value::String(_)));
        if self.same_program || !is_text(claimed) || !is_text(follows) {
            return false;
        }
        let mut names = place.rsplit('/');
        let is_named = names.next().is_some_and(|name| SENTENCES.contains(&name))
            || names.next().is_some_and(|name| OF_SENTENCES.contains(&name));
        let is_of_note =
            place.starts_with("/notes/") && place.ends_with("/text") || place.starts_with("/capacity/notes/");
        let follows = follows.and_then(Value::as_str).unwrap_or_default();
        (is_named || is_of_note || place.ends_with("/observed/text"))
            && (follows.is_empty() || !self.copied.contains(follows))
    }

    fn contradict(&mut self, place: &str, claimed: Option<&Value>, follows: Option<&Value>) {
        let (claimed, follows) = (shown(claimed), shown(follows));
        let reason = format!("{claimed} is stated, and {follows} follows from the record");
        self.contradictions.push(Contradiction { place: place.to_owned(), reason });
    }

    /// Notes that a value was not compared.
    pub(super) fn leave_open(&mut self, why: Why, place: &str, value: Option<&Value>) {
        let places = self.open.entry(why).or_insert_with(|| NotCompared {
            why,
            reason: why.words().to_owned(),
            ..NotCompared::default()
        });
        if places.places.is_empty() {
            places.example = shown(value);
        }
        places.places.push(place.to_owned());
    }
}

/// Adds all texts within a value, but for those of histograms.
pub(super) fn texts(value: Value, found: &mut HashSet<String>) {
    match value {
        Value::String(text) => _ = found.insert(text),
        Value::Array(values) => values.into_iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => {
            for (_, value) in fields.into_iter().filter(|(name, _)| name != "hdr") {
                texts(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Number of single values within a value.
fn leaves(value: &Value) -> u64 {
    match value {
        Value::Array(values) => values.iter().map(leaves).sum(),
        Value::Object(fields) => fields.values().map(leaves).sum(),
        _ => 1,
    }
}

fn is_nothing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(values)) => values.is_empty(),
        Some(_) => false,
    }
}

/// A value in one line, cut short.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(value) => cut(&value.to_string()),
    }
}

/// A text, cut short.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Differences between a text of evidence and what this version has read of it, by their places.
///
/// # Errors
/// Either is no JSON.
pub(super) fn unread(text: &[u8], read: &impl Serialize) -> Result<Vec<String>, ReadError> {
    let mut found = Vec::new();
    // Written again it is the same text, unless a version has other fields.
    if serde_json::to_vec(read).is_ok_and(|again| again != text) {
        let text = serde_json::from_slice(text).map_err(ReadError::Broken)?;
        let read = serde_json::to_value(read).map_err(ReadError::Broken)?;
        differing(&text, &read, "", &mut found);
    }
    Ok(found)
}

fn differing(text: &Value, read: &Value, place: &str, found: &mut Vec<String>) {
    match (text, read) {
        _ if text == read => {}
        (Value::Object(text), Value::Object(read)) => {
            let inner =
                |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
            for (name, value) in text {
                match read.get(name) {
                    Some(read) => differing(value, read, &inner(name), found),
                    None => found.push(inner(name)),
                }
            }
            found.extend(read.keys().filter(|name| !text.contains_key(*name)).map(|name| inner(name)));
        }
        (Value::Array(text), Value::Array(read)) if text.len() == read.len() => {
            for (number, (text, read)) in text.iter().zip(read).enumerate() {
                differing(text, read, &format!("{place}/{number}"), found);
            }
        }
        _ => found.push(place.to_owned()),
    }
}
