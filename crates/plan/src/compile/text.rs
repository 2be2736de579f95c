//! Values from outside in the texts of a plan file.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_scenario::{Constants, Template};

use super::Compiler;
use crate::document::{Field, Text};
use crate::{Place, Problem};

/// Characters that JSON escapes in a text: `"`, `\` and control characters.
fn escaped_in_json(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

impl Compiler<'_, '_> {
    /// The text of a field, with the environment's values in place of `${env(NAME)}`.
    pub(super) fn text(&mut self, field: &Field<Text>) -> Option<String> {
        let text = field.get()?;
        self.filled(text.as_str(), field.place())
    }

    /// A text that is no template: a name, a number, a file. Nothing else than the environment stands in it.
    pub(super) fn plain(&mut self, field: &Field<Text>) -> Option<String> {
        let text = field.get()?;
        self.filled_plain(text.as_str(), field.place())
    }

    /// A text, with the environment's values in place of `${env(NAME)}`. Secrets keep their names: they are
    /// filled in when the text is compiled.
    pub(super) fn filled(&mut self, text: &str, place: Option<Place>) -> Option<String> {
        let bytes = self.filled_bytes(text.as_bytes(), place, Template::escape)?;
        // Text with text put in between is text.
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The same for a text whose slots nobody fills in later.
    pub(super) fn filled_plain(&mut self, text: &str, place: Option<Place>) -> Option<String> {
        let bytes = self.filled_bytes(text.as_bytes(), place, str::to_owned)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The same for the content of a file.
    pub(super) fn filled_bytes(
        &mut self,
        text: &[u8],
        place: Option<Place>,
        write: impl Fn(&str) -> String,
    ) -> Option<Vec<u8>> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = text;
        let mut complete = true;
        while let Some(slot) = next_slot(rest) {
            filled.extend_from_slice(slot.before);
            rest = slot.after;
            let Some((function, argument)) = slot.function() else {
                filled.extend_from_slice(slot.whole);
                continue;
            };
            match function {
                "env" => match self.environment_value(argument, place) {
                    // A `$` in front of a `{` would begin a slot that nobody wrote.
                    Some(value) if value.ends_with('$') && rest.starts_with(b"{") => {
                        self.report(place, Problem::new(format!(
                            "the value of `{argument}` ends with `$`, and `{{` follows it"
                        )));
                        complete = false;
                    }
                    Some(value) => filled.extend_from_slice(write(&value).as_bytes()),
                    None => complete = false,
                },
                _ => {
                    complete &= self.know_secret(argument, place).is_some();
                    filled.extend_from_slice(slot.whole);
                }
            }
        }
        filled.extend_from_slice(rest);
        complete.then_some(filled)
    }

    /// Refuses secrets in a text in which their values would be shown, or stored.
    pub(super) fn without_secrets(&mut self, text: &str, place: Option<Place>, what: &str) -> Option<()> {
        let mut rest = text.as_bytes();
        while let Some(slot) = next_slot(rest) {
            rest = slot.after;
            if slot.function().is_some_and(|(function, _)| function == "secret") {
                let problem = Problem::new(format!("a secret has no place in {what}: it would be shown"));
                return self.fail(place, problem.with_hint("secrets belong into headers, bodies and variables"));
            }
        }
        Some(())
    }

    /// Refuses secrets in JSON that would have to be written differently there.
    pub(super) fn check_json_secrets(&mut self, text: &str, place: Option<Place>) -> Option<()> {
        let mut rest = text.as_bytes();
        while let Some(slot) = next_slot(rest) {
            rest = slot.after;
            let Some(("secret", name)) = slot.function() else { continue };
            if self.secrets.get(name).is_some_and(|value| value.bytes().any(escaped_in_json)) {
                let message = format!("the secret `{name}` has characters that have to be escaped in JSON");
                return self.fail(place, Problem::new(message));
            }
        }
        Some(())
    }

    /// `NAME`, or `NAME, value if it is not set`.
    fn environment_value(&mut self, argument: &str, place: Option<Place>) -> Option<String> {
        let (name, default) = match argument.split_once(',') {
            Some((name, default)) => (name.trim(), Some(default.trim())),
            None => (argument, None),
        };
        if let Some(value) = self.resolver.environment.get(name).or_else(|| default.map(str::to_owned)) {
            return Some(value);
        }
        let problem = Problem::new(format!("`{name}` is not set in the environment"));
        self.fail(place, problem.with_hint(format!("set it, or say what it is otherwise: ${{env({name}, value)}}")))
    }

    /// Looks a secret up: in the environment under its name, or in the file that `NAME_FILE` names there.
    fn know_secret(&mut self, name: &str, place: Option<Place>) -> Option<()> {
        if self.secrets.contains_key(name) {
            return Some(());
        }
        let environment = self.resolver.environment;
        let value = match (environment.get(name), environment.get(&format!("{name}_FILE"))) {
            (Some(value), _) => value,
            (None, Some(file)) => match self.resolver.files.read(Path::new(&file)) {
                Ok(content) => first_line(&content),
                Err(error) => {
                    let message = format!("`{name}_FILE` in the environment: cannot read `{file}`: {error}");
                    return self.fail(place, Problem::new(message));
                }
            },
            (None, None) => {
                let problem = Problem::new(format!("the secret `{name}` is not set in the environment"));
                let hint = format!("set {name}, or {name}_FILE to the name of a file that holds it");
                return self.fail(place, problem.with_hint(hint));
            }
        };
        self.secrets.insert(name.to_owned(), value);
        self.constants = Constants::new(BTreeMap::new(), self.secrets.clone());
        Some(())
    }
}

fn first_line(content: &[u8]) -> String {
    String::from_utf8_lossy(content).lines().next().unwrap_or_default().trim_end().to_owned()
}

/// `${…}` in a text, and what is around it.
struct FoundSlot<'a> {
    before: &'a [u8],
    whole: &'a [u8],
    after: &'a [u8],
}

impl FoundSlot<'_> {
    /// `env` or `secret` and what stands in its parentheses.
    fn function(&self) -> Option<(&str, &str)> {
        let inner = std::str::from_utf8(self.whole.strip_prefix(b"${")?.strip_suffix(b"}")?).ok()?;
        let (name, rest) = inner.trim().split_once('(')?;
        let argument = rest.strip_suffix(')')?;
        matches!(name.trim(), "env" | "secret").then_some((name.trim(), argument.trim()))
    }
}

/// The slots of a text, with `${` and `}`.
pub(super) fn slots(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let slot = next_slot(rest)?;
        rest = slot.after;
        // Cut at ASCII characters, text is text.
        Some(std::str::from_utf8(slot.whole).unwrap_or_default())
    })
}

/// The first slot of a template, passing over `$${`.
fn next_slot(text: &[u8]) -> Option<FoundSlot<'_>> {
    let mut from = 0;
    loop {
        let at = from + text[from..].iter().position(|&byte| byte == b'$')?;
        if text[at..].starts_with(b"$${") {
            from = at + 3;
        } else if text[at..].starts_with(b"${") {
            let end = at + text[at..].iter().position(|&byte| byte == b'}')? + 1;
            return Some(FoundSlot { before: &text[..at], whole: &text[at..end], after: &text[end..] });
        } else {
            from = at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_as_templates_find_them() {
        let found = |text| slots(text).collect::<Vec<_>>();
        assert_eq!(found("a${b}c$${d}${ env(E) }$"), ["${b}", "${ env(E) }"]);
        assert_eq!(found("$$${a} ${open"), Vec::<&str>::new());
        let slot = next_slot(b"${ env(A, http://x/(1)) }").unwrap();
        assert_eq!(slot.function(), Some(("env", "A, http://x/(1)")));
        assert_eq!(next_slot(b"${uuid}").unwrap().function(), None);
    }
}
