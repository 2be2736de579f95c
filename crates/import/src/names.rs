//! Names of variables and data sources.

use std::collections::{BTreeMap, BTreeSet};

/// Words that begin names of functions of templates. What begins with one is not taken for a variable, so
/// that functions which plans get later have their names.
const FAMILIES: [&str; 2] = ["timestamp", "random"];

/// Names that are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    /// For names that were wished for more than once: the last number that was tried. A hostile source wishes
    /// for the same one very often.
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// A name that is like `wish` and not taken yet; it is taken then.
    pub(crate) fn take(&mut self, wish: &str) -> String {
        let mut name = identifier(wish);
        // No number behind a word that is reserved with everything that it begins would end the search.
        if is_reserved(&format!("{name}_2")) {
            name.insert_str(0, "my_");
        }
        let mut candidate = name.clone();
        while is_reserved(&candidate) || self.taken.contains(&candidate) {
            let number = self.numbers.entry(name.clone()).or_insert(1);
            *number += 1;
            candidate = format!("{name}_{number}");
        }
        self.taken.insert(candidate.clone());
        candidate
    }

    /// Takes exactly this name; `false` if that cannot be.
    pub(crate) fn take_exactly(&mut self, name: &str) -> bool {
        name == identifier(name) && !is_reserved(name) && self.taken.insert(name.to_owned())
    }
}

/// Titles of scenarios, steps or phases, which are unique because reports go by them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Titles {
    taken: BTreeSet<String>,
    numbers: BTreeMap<String, u32>,
}

impl Titles {
    /// `wish`, or `wish (2)` if there is one already; it is taken then.
    pub(crate) fn take(&mut self, wish: &str) -> String {
        let mut title = wish.to_owned();
        while !self.taken.insert(title.clone()) {
            let number = self.numbers.entry(wish.to_owned()).or_insert(1);
            *number += 1;
            title = format!("{wish} ({number})");
        }
        title
    }
}

/// `text` as a name: letters, digits and `_`, no digit in front.
fn identifier(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if !(c == '_' && name.ends_with('_')) {
            name.push(c);
        }
    }
    let kept = if text.starts_with('_') || text.ends_with('_') { &name } else { name.trim_matches('_') };
    match kept.chars().next() {
        None => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{kept}"),
        Some(_) => kept.to_owned(),
    }
}

/// Returns `true` if templates already give a meaning to `name`, or to a word that it extends
/// (`timestamp_ms`, `random_int`).
fn is_reserved(name: &str) -> bool {
    let is_of_family =
        |family: &str| name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    plimsoll_document::is_function(name) || FAMILIES.iter().any(|family| is_of_family(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let mut names = Names::default();
        for (wish, name) in [
            ("-USER_ID", "USER_ID"),
            ("USER_ID", "USER_ID_2"),
            ("${imsi}", "imsi"),
            ("uuid", "uuid_2"),
            ("my-id", "my_id"),
            ("2nd", "_2nd"),
            ("", "value"),
            ("ä", "value_2"),
            // Symptom: an import of a variable with such a name did not end.
            ("random_session", "my_random_session"),
            ("random", "my_random"),
            ("timestamp_id", "my_timestamp_id"),
            ("randomly", "randomly"),
            // Symptom: a script with a variable `json` was refused, although it says nothing wrong.
            ("json", "json_2"),
            ("base64", "base64_2"),
            ("lower", "lower_2"),
            ("token", "token"),
        ] {
            assert_eq!(names.take(wish), name, "{wish}");
        }
        assert!(names.take_exactly("fresh"));
        for name in ["fresh", "uuid", "random_int", "my-id", "", "2nd"] {
            assert!(!names.take_exactly(name), "{name}");
        }
    }
}
