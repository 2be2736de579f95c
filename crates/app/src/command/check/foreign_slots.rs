//! Slots that are written as other programs have them: `{{user}}`, `$user`, `/items/{item}`. They are sent as
//! they are.

use plimsoll_document::LoadedDocument;
use plimsoll_plan::Resolved;

/// Notes at most: a text with more of them may be meant so.
const MOST: usize = 20;

/// A note for each slot of another program in the plan file and in the URLs, the first of each.
pub(super) fn notes(resolved: &Resolved) -> Vec<String> {
    let patch = &resolved.layered.patch;
    let source = patch.document.as_deref().map(LoadedDocument::source);
    let lines = source.iter().flat_map(|source| {
        let lines = source.text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with('#'));
        lines.map(|(line, number)| (format!("{}:{number}", source.name), line))
    });
    let urls = patch.urls.iter().map(|url| ("the URL".to_owned(), url.text.as_str()));
    let mut found: Vec<(String, Slot<'_>)> = Vec::new();
    for (place, line) in lines.chain(urls) {
        for slot in slots(line, &resolved.plan.variables) {
            if found.iter().all(|(_, known)| *known != slot) && found.len() < MOST {
                found.push((place.clone(), slot));
            }
        }
    }
    let note = |(place, slot): (String, Slot<'_>)| {
        format!("{place}: `{}` is sent as it is written; a slot is `${{{}}}`", slot.whole, slot.name)
    };
    found.into_iter().map(note).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot<'t> {
    whole: &'t str,
    name: &'t str,
}

/// The slots of a line. `$name` is one only of a variable, and `{name}` only in a path: both have other uses.
fn slots<'t>(line: &'t str, variables: &[String]) -> Vec<Slot<'t>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = line[at..].find(['{', '$']) {
        let start = at + offset;
        let (before, text) = line.split_at(start);
        let slot = braced(text, "{{", "}}").or_else(|| match text.strip_prefix('$') {
            Some(rest) => bare(text, rest, variables),
            None => braced(text, "{", "}").filter(|_| before.ends_with('/')),
        });
        // A slot of ours is passed over as a whole.
        at = start + slot.map_or_else(|| if text.starts_with("${") { 2 } else { 1 }, |slot| slot.whole.len());
        found.extend(slot);
    }
    found
}

/// A name between braces.
fn braced<'t>(text: &'t str, open: &str, close: &str) -> Option<Slot<'t>> {
    let inside = text.strip_prefix(open)?;
    let end = inside.find(close)?;
    let name = inside[..end].trim();
    let whole = &text[..open.len() + end + close.len()];
    (name_of(name) == name && !name.is_empty()).then_some(Slot { whole, name })
}

/// The name of a variable behind a `$`.
fn bare<'t>(text: &'t str, rest: &'t str, variables: &[String]) -> Option<Slot<'t>> {
    let name = name_of(rest);
    let is_known = variables.iter().any(|known| known == name);
    is_known.then(|| Slot { whole: &text[..1 + name.len()], name })
}

/// The word that a text begins with.
fn name_of(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.starts_with(begins) { &text[..end] } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_other_programs_are_found() {
        let variables = ["token".to_owned(), "id".to_owned()];
        for (line, wanted) in [
            ("get: /items/{{user}}", &["{{user}}"][..]),
            ("get: /items/{{ user }}/{{b}}", &["{{ user }}", "{{b}}"]),
            ("headers: {Authorization: \"Bearer {{token}}\"}", &["{{token}}"]),
            ("headers: {Authorization: Bearer $token}", &["$token"]),
            ("get: /items/{item}/parts/{part}?a={b}", &["{item}", "{part}"]),
            ("get: http://h/{a}", &["{a}"]),
            // Ours, and texts that have no slots.
            ("get: /items/${id}/${token}", &[]),
            ("get: /items/$${id}", &[]),
            ("body: '$ref $5 $tokens {\"a\": {\"b\": 1}}'", &[]),
            ("steps: [{get: /a}, {get: /b, json: {a: {b: 1}}}]", &[]),
            ("json: {price: $}", &[]),
            ("body: '{{ .Field }} {{#if}} {{}}'", &[]),
        ] {
            let found: Vec<&str> = slots(line, &variables).into_iter().map(|slot| slot.whole).collect();
            assert_eq!(found, wanted, "{line}");
        }
    }
}
