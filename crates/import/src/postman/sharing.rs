//! Variables that folders share.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// A call that sets a variable: its name.
static SET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = r"\b(?:environment|globals|collectionVariables|variables)\.set";
    let old = r"\bset(?:Environment|Global)Variable";
    Regex::new(&format!(r#"(?:{scopes}|{old})\s*\(\s*['"`]([^'"`]+)['"`]"#)).ok()
});

/// A slot of a text, or a call that reads a variable: the name.
static READ: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = r"\b(?:environment|globals|collectionVariables|variables)\.get";
    let old = r"\bget(?:Environment|Global)Variable";
    Regex::new(&format!(r#"\{{\{{\s*([^{{}}]+?)\s*\}}\}}|(?:{scopes}|{old})\s*\(\s*['"`]([^'"`]+)['"`]"#))
        .ok()
});

/// Returns `true` if a folder of the outermost level, or the requests beside them, read a variable that
/// another one sets.
pub(super) fn is_one_sequence(collection: &Value) -> bool {
    let Some(items) = collection.get("item").and_then(Value::as_array) else { return false };
    let (folders, loose): (Vec<&Value>, Vec<&Value>) =
        items.iter().partition(|item| item.get("item").is_some_and(|inner| !inner.is_null()));
    let parts = folders.into_iter().map(|folder| vec![folder]).chain([loose]);
    let parts: Vec<(BTreeSet<String>, BTreeSet<String>)> = parts
        .map(|items| {
            let (mut sets, mut reads) = (BTreeSet::new(), BTreeSet::new());
            items.into_iter().for_each(|item| look(item, &mut sets, &mut reads));
            (sets, reads)
        })
        .collect();
    let crosses = |one: usize, name: &String| {
        parts.iter().enumerate().any(|(other, (_, reads))| other != one && reads.contains(name))
    };
    parts.iter().enumerate().any(|(index, (sets, _))| sets.iter().any(|name| crosses(index, name)))
}

/// The names of variables that texts within a value set and read. The parser of JSON bounds its depth.
fn look(value: &Value, sets: &mut BTreeSet<String>, reads: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            for (pattern, names) in [(&SET, sets), (&READ, reads)] {
                for found in pattern.iter().flat_map(|pattern| pattern.captures_iter(text)) {
                    names.extend(found.iter().skip(1).flatten().map(|name| name.as_str().to_owned()));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| look(item, sets, reads)),
        Value::Object(members) => {
            // What was answered once, and descriptions, say nothing.
            let says = |key: &str| !matches!(key, "response" | "description");
            members.iter().filter(|(key, _)| says(key)).for_each(|(_, member)| look(member, sets, reads));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
