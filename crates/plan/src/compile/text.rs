//! Values from outside in the texts of a plan file.

use std::path::Path;

use plimsoll_document::{Field, Place, Problem, Text, unescaped};
use plimsoll_scenario::slot::slot_end;
use plimsoll_scenario::{Constants, Template};

use super::Compiler;

impl Compiler<'_, '_> {
    /// The text of a field, with the environment's values in place of `${env(NAME)}`.
    pub(super) fn text(&mut self, field: &Field<Text>) -> Option<String> {
        let text = field.get()?;
        self.filled(text.as_str(), field.place())
    }

    /// A text that is not a template: a name, a number, a file. It may only refer to the environment.
    pub(super) fn plain(&mut self, field: &Field<Text>) -> Option<String> {
        let text = field.get()?;
        self.filled_plain(text.as_str(), field.place())
    }

    /// Reports a name that is not one line of signs: reports and messages show names within lines of theirs.
    pub(super) fn check_name(&mut self, name: &str, place: Option<Place>) {
        if name.chars().any(char::is_control) {
            let problem = Problem::new(format!("`{}` has more than one line", name.escape_debug()));
            self.form::<()>(
                place,
                problem.with_hint(
                    "names are shown within lines: leave line ends and other control characters out",
                ),
            );
        }
    }

    /// A text, with the environment's values in place of `${env(NAME)}`. Secrets keep their names: they are
    /// filled in when the text is compiled.
    pub(super) fn filled(&mut self, text: &str, place: Option<Place>) -> Option<String> {
        let bytes = self.filled_bytes(text.as_bytes(), place, Template::escape)?;
        // Inserting text into text gives valid UTF-8.
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Fills the environment's values into a text whose slots are not filled in later.
    pub(super) fn filled_plain(&mut self, text: &str, place: Option<Place>) -> Option<String> {
        let bytes = self.filled_bytes(text.as_bytes(), place, Template::escape)?;
        Some(unescaped(&String::from_utf8_lossy(&bytes)))
    }

    /// Fills the environment's values, as `write` writes them, into the content of a file or another text.
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
            let Some(argument) = slot.environment() else {
                complete &= self.know_constants(slot.whole, place).is_some();
                filled.extend_from_slice(slot.whole);
                continue;
            };
            match self.environment_value(argument, place) {
                // A `$` in front of a `{` would begin a slot that is not in the source.
                Some(value)
                    if value.ends_with('$') && rest.first().is_some_and(|next| b"${".contains(next)) =>
                {
                    let message = format!("the value of `{argument}` ends with `$`, and a slot follows it");
                    self.report(place, Problem::new(message));
                    complete = false;
                }
                Some(value) => filled.extend_from_slice(write(&value).as_bytes()),
                None => complete = false,
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
            if names_of(slot.whole, "secret").next().is_some() {
                let problem = Problem::new(format!("a secret is not allowed in {what}: it would be shown"));
                return self
                    .fail(place, problem.with_hint("secrets belong in headers, bodies and variables"));
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
        let value = self.resolver.environment.get(name).or_else(|| default.map(str::to_owned));
        if let Some(value) = value.or_else(|| self.around.unset()) {
            return Some(value);
        }
        let problem = Problem::new(format!("`{name}` is not set in the environment"));
        self.fail(place, problem.with_hint(format!("set it, or give a default: ${{env({name}, value)}}")))
    }

    /// Looks up the secrets and, within functions, the variables of the environment that a slot names.
    fn know_constants(&mut self, slot: &[u8], place: Option<Place>) -> Option<()> {
        let before = self.secrets.len() + self.environment.len();
        for name in names_of(slot, "env") {
            let value = self.environment_value(name, place)?;
            self.environment.insert(name.to_owned(), value);
        }
        for name in names_of(slot, "secret") {
            self.know_secret(name, place)?;
        }
        if self.secrets.len() + self.environment.len() > before {
            self.constants = Constants::new(self.environment.clone(), self.secrets.clone());
        }
        Some(())
    }

    /// Looks a secret up: in the environment under its name, or in the file that `NAME_FILE` names there.
    fn know_secret(&mut self, name: &str, place: Option<Place>) -> Option<()> {
        if self.secrets.contains_key(name) {
            return Some(());
        }
        let environment = self.resolver.environment;
        let value = match (environment.get(name), environment.get(&format!("{name}_FILE"))) {
            (Some(value), _) => value,
            (None, Some(file)) => match self.resolver.files.secret(Path::new(&file)) {
                Ok(content) => first_line(&content),
                Err(error) => {
                    let message = format!("`{name}_FILE` in the environment: cannot read `{file}`: {error}");
                    return self.fail(place, Problem::new(message));
                }
            },
            (None, None) if let Some(value) = self.around.unset() => value,
            (None, None) => {
                let problem = Problem::new(format!("the secret `{name}` is not set in the environment"));
                let hint = format!("set {name}, or {name}_FILE to the name of a file that holds it");
                return self.fail(place, problem.with_hint(hint));
            }
        };
        self.secrets.insert(name.to_owned(), value);
        Some(())
    }
}

fn first_line(content: &[u8]) -> String {
    String::from_utf8_lossy(content).lines().next().unwrap_or_default().trim_end().to_owned()
}

/// `${…}` in a text, and the text around it.
struct FoundSlot<'a> {
    before: &'a [u8],
    whole: &'a [u8],
    after: &'a [u8],
}

impl FoundSlot<'_> {
    /// Returns the argument of `${env(…)}`.
    fn environment(&self) -> Option<&str> {
        let inner = std::str::from_utf8(self.whole.strip_prefix(b"${")?.strip_suffix(b"}")?).ok()?;
        let (name, rest) = inner.trim().split_once('(')?;
        (name.trim() == "env").then_some(rest.strip_suffix(')')?.trim())
    }
}

/// Returns the arguments of `function` in a slot, including calls within other functions.
fn names_of<'a>(slot: &'a [u8], function: &str) -> impl Iterator<Item = &'a str> {
    // A slot that is not a text is reported where it is parsed.
    let mut rest = std::str::from_utf8(slot).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let (before, after) = rest.split_once(function)?;
            let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            rest = after;
            let argument = after.trim_start().strip_prefix('(').and_then(|after| after.split_once(')'));
            if let (true, Some((name, _))) = (is_word, argument) {
                return Some(name.trim().trim_matches(['"', '\'']));
            }
        }
    })
}

/// The slots of a text, with `${` and `}`.
pub(super) fn slots(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let slot = next_slot(rest)?;
        rest = slot.after;
        // Cutting text at ASCII characters gives valid UTF-8.
        Some(std::str::from_utf8(slot.whole).unwrap_or_default())
    })
}

/// A template whose literal texts are written by `literal`, and its slots by `escaping`: values must not
/// split what is around them.
pub(super) fn around_slots(
    text: &str,
    literal: impl Fn(&str) -> String,
    escaping: impl Fn(&str) -> String,
) -> String {
    let mut written = String::new();
    let mut rest = text;
    for slot in slots(text) {
        let (before, after) = rest.split_once(slot).unwrap_or((rest, ""));
        written.push_str(&literal(before));
        written.push_str(&escaping(slot));
        rest = after;
    }
    written.push_str(&literal(rest));
    written
}

/// The first slot of a template, passing over `$${`.
fn next_slot(text: &[u8]) -> Option<FoundSlot<'_>> {
    let mut from = 0;
    loop {
        let at = from + text[from..].iter().position(|&byte| byte == b'$')?;
        if text[at..].starts_with(b"$${") {
            from = at + 3;
        } else if text[at..].starts_with(b"${") {
            let inner = at + 2;
            let end = inner + slot_end(&text[inner..])? + 1;
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
        assert_eq!(slot.environment(), Some("A, http://x/(1)"));
        assert_eq!(next_slot(b"${uuid}").unwrap().environment(), None);
    }

    #[test]
    fn what_is_escaped_is_itself_in_texts_that_are_no_templates() {
        for text in ["GET /items/${id}", "a$${b", "$$", "${", "$"] {
            assert_eq!(unescaped(&Template::escape(text)), text);
        }
    }

    #[test]
    fn names_within_functions_are_found() {
        let names = |text: &'static str| names_of(text.as_bytes(), "secret").collect::<Vec<_>>();
        assert_eq!(names("${secret(A)}"), ["A"]);
        assert_eq!(names("${base64(me:${secret( \"B\" )}${json(secret(C))})}"), ["B", "C"]);
        assert_eq!(names("${my_secret(A)} ${secret}"), Vec::<&str>::new());
    }
}
