//! JSON as a tree in which every value has its place.
//!
//! As strict as RFC 8259: text that other programs refuse is refused here, too, so that a plan in JSON can be
//! read by all of them. Numbers keep the text as it was typed.

use std::collections::HashSet;

use super::tree::{DEEPEST, Entry, Kind, Node, ValueCount, too_deep};
use crate::{Place, Problem, Problems};

/// Returns `true` if a plan file is JSON: by the ending of its name, or, if that says nothing, by its first
/// characters. YAML has mappings in braces, too, but hardly ever with its first key in quotes.
pub(crate) fn is_json(name: &str, text: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is = |known: &str| ending.eq_ignore_ascii_case(known);
    let inner = text.trim_start_matches('\u{feff}').trim_start().strip_prefix('{').map(str::trim_start);
    is("json") || !is("yaml") && !is("yml") && inner.is_some_and(|inner| inner.starts_with(['"', '}']))
}

/// Reads a text. `None`: it is not JSON, and the problem is reported.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Node> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut reader = Reader { text, at: start, depth: 0, values: ValueCount::default(), problems };
    let whole = reader.value().and_then(|root| match reader.peek() {
        None => Ok(root),
        Some(_) => Err(reader.wrong("something follows the plan").with_hint("one file holds one plan")),
    });
    whole.map_err(|problem| problems.push(problem)).ok()
}

struct Reader<'t, 'p> {
    text: &'t str,
    /// Offset of the next byte.
    at: usize,
    depth: usize,
    values: ValueCount,
    problems: &'p mut Problems,
}

impl Reader<'_, '_> {
    /// The next character behind white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        rest[rest.len() - (self.text.len() - self.at)..].chars().next()
    }

    /// Reads over this character, if it is the next.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += if is_next { wanted.len_utf8() } else { 0 };
        is_next
    }

    fn place(&self, start: usize, end: usize) -> Place {
        // Plans of more bytes are refused before.
        Place { start: start as u32, end: end as u32 }
    }

    /// A problem with the next character; at the end of the text, with the last one.
    fn wrong(&mut self, message: impl Into<String>) -> Problem {
        let message = format!("this is not JSON: {}", message.into());
        let (start, next) = match self.peek() {
            Some(next) => (self.at, Some(next)),
            None => {
                let text = self.text.trim_end();
                let last = text.chars().next_back();
                (text.len() - last.map_or(0, char::len_utf8), last)
            }
        };
        let end = start + next.map_or(1, char::len_utf8);
        Problem::new(message).at(Some(self.place(start, end)))
    }

    /// Creates the problem for unexpected text where `wanted` has to be.
    fn expected(&mut self, wanted: &str) -> Problem {
        let rest = self.peek().map(|_| &self.text[self.at..]);
        match rest {
            None => self.wrong(format!("expected {wanted}, found the end of the text")),
            Some(rest) if rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#') => {
                let problem = self.wrong("comments are not allowed");
                problem
                    .with_hint("use `description`, or write the plan in YAML, in a file that ends in .yaml")
            }
            Some(rest) => {
                let found = rest.chars().next().unwrap_or_default();
                let found = if found.is_control() { found.escape_debug().to_string() } else { found.into() };
                self.wrong(format!("expected {wanted}, found `{found}`"))
            }
        }
    }

    fn value(&mut self) -> Result<Node, Problem> {
        let next = self.peek();
        self.values.add().map_err(|problem| problem.at(Some(self.place(self.at, self.at))))?;
        match next {
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"') => {
                let (text, place) = self.string()?;
                Ok(Node { place, kind: Kind::Scalar { text, plain: false } })
            }
            Some(first) if first.is_ascii_alphanumeric() || "-+.".contains(first) => self.word(),
            Some('\'') => {
                Err(self.wrong("a text is in single quotes").with_hint("JSON has double quotes only"))
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Kind, Problem>) -> Result<Node, Problem> {
        let start = self.at;
        if self.depth == DEEPEST {
            return Err(too_deep().at(Some(self.place(start, start + 1))));
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(Node { place: self.place(start, self.at), kind })
    }

    fn object(&mut self) -> Result<Kind, Problem> {
        let mut entries = Vec::new();
        let mut names = HashSet::new();
        if self.take('}') {
            return Ok(Kind::Map(entries));
        }
        loop {
            if self.peek() != Some('"') {
                return Err(match self.peek() {
                    Some(first) if first.is_alphanumeric() || "_'".contains(first) => {
                        self.wrong("a name is not in quotes").with_hint("put every name in double quotes")
                    }
                    _ => self.expected("a name"),
                });
            }
            let (name, place) = self.string()?;
            if !self.take(':') {
                return Err(self.expected("`:`"));
            }
            let value = self.value()?;
            if names.insert(name.clone()) {
                entries.push(Entry { name, place, value });
            } else {
                let problem = Problem::new(format!("`{}` is there twice", name.escape_debug()));
                self.problems.push(problem.at(Some(place)));
            }
            if !self.goes_on('}')? {
                return Ok(Kind::Map(entries));
            }
        }
    }

    fn array(&mut self) -> Result<Kind, Problem> {
        let mut items = Vec::new();
        if self.take(']') {
            return Ok(Kind::List(items));
        }
        loop {
            items.push(self.value()?);
            if !self.goes_on(']')? {
                return Ok(Kind::List(items));
            }
        }
    }

    /// Skips the character after a value: a comma, or the end.
    fn goes_on(&mut self, end: char) -> Result<bool, Problem> {
        if self.take(end) {
            return Ok(false);
        }
        if !self.take(',') {
            return Err(self.expected(&format!("`,` or `{end}`")));
        }
        let comma = self.at - 1;
        if self.peek() == Some(end) {
            let problem = Problem::new(format!("this is not JSON: a comma is in front of `{end}`"));
            return Err(problem.at(Some(self.place(comma, comma + 1))).with_hint("leave the comma out"));
        }
        Ok(true)
    }

    /// A text in quotes, and its place with them.
    fn string(&mut self) -> Result<(String, Place), Problem> {
        let start = self.at;
        let mut bytes = self.text.as_bytes()[start + 1..].iter().enumerate();
        let end = loop {
            match bytes.next() {
                Some((_, b'\\')) => drop(bytes.next()),
                Some((length, b'"')) => break start + 1 + length + 1,
                Some(_) => {}
                None => {
                    let problem = Problem::new("this is not JSON: the text has no closing quote");
                    return Err(problem.at(Some(self.place(start, start + 1))));
                }
            }
        };
        let place = self.place(start, end);
        match serde_json::from_str(&self.text[start..end]) {
            Ok(text) => {
                self.at = end;
                Ok((text, place))
            }
            Err(_) => Err(Problem::new("this is not JSON: the text has a line break or a wrong escape")
                .at(Some(place))
                .with_hint("write a line break as \\n, a backslash as \\\\")),
        }
    }

    /// A number, a truth value or nothing.
    fn word(&mut self) -> Result<Node, Problem> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && !"+-._".contains(c)).unwrap_or(rest.len());
        let word = &rest[..length];
        let place = self.place(start, start + length);
        let is_known = ["true", "false", "null"].contains(&word);
        if !is_known && serde_json::from_str::<serde_json::Number>(word).is_err() {
            let problem = Problem::new(format!("this is not JSON: `{}`", word.escape_debug()));
            return Err(problem.at(Some(place)).with_hint("put texts in double quotes"));
        }
        self.at += length;
        Ok(Node { place, kind: Kind::Scalar { text: word.to_owned(), plain: true } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (String, String) {
        let mut problems = Problems::default();
        assert_eq!(parse(text, &mut problems), None, "{text}");
        let problem = problems.iter().next().unwrap();
        let place = problem.place.unwrap();
        (problem.message.clone(), text[place.start as usize..place.end as usize].to_owned())
    }

    #[test]
    fn what_json_does_not_have_is_refused_where_it_stands() {
        for (text, message, at) in [
            ("{\"a\": 1,}", "this is not JSON: a comma is in front of `}`", ","),
            ("{\"a\": [1, ]}", "this is not JSON: a comma is in front of `]`", ","),
            ("{\"a\": 1 // b\n}", "this is not JSON: comments are not allowed", "/"),
            ("# a\n{}", "this is not JSON: comments are not allowed", "#"),
            ("{a: 1}", "this is not JSON: a name is not in quotes", "a"),
            ("{\"a\": b}", "this is not JSON: `b`", "b"),
            ("{\"a\": 007}", "this is not JSON: `007`", "007"),
            ("{\"a\": 'b'}", "this is not JSON: a text is in single quotes", "'"),
            ("{\"a\" 1}", "this is not JSON: expected `:`, found `1`", "1"),
            ("{\"a\": 1 \"b\": 2}", "this is not JSON: expected `,` or `}`, found `\"`", "\""),
            ("{\"a\": \"b", "this is not JSON: the text has no closing quote", "\""),
            ("{\"a\": \"\\x\"}", "this is not JSON: the text has a line break or a wrong escape", "\"\\x\""),
            ("{\"a\":", "this is not JSON: expected a value, found the end of the text", ":"),
            ("{} {}", "this is not JSON: something follows the plan", "{"),
        ] {
            assert_eq!(wrong(text), (message.to_owned(), at.to_owned()), "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
        assert!(wrong(&deep).0.contains("nested deeper than 64"));
    }

    #[test]
    fn texts_are_what_they_are_in_json() {
        let mut problems = Problems::default();
        let root = parse("\u{feff}{\"a\": [\"\\ud83d\\ude00\\/\", 1.10, null], \"<<\": {}}", &mut problems);
        let Some(Node { kind: Kind::Map(entries), place: Place { start: 3, end: 50 } }) = root else {
            panic!("{root:?}")
        };
        let scalar = |text: &str, plain| Kind::Scalar { text: text.to_owned(), plain };
        let Kind::List(items) = &entries[0].value.kind else { panic!("{entries:?}") };
        let kinds: Vec<&Kind> = items.iter().map(|item| &item.kind).collect();
        assert_eq!(kinds, [&scalar("\u{1f600}/", false), &scalar("1.10", true), &scalar("null", true)]);
        assert_eq!((entries[1].name.as_str(), problems.len()), ("<<", 0));
    }

    #[test]
    fn files_are_told_apart_by_name_and_then_by_their_begin() {
        for (name, text, json) in [
            ("a.json", "a: 1", true),
            ("A.JSON", "", true),
            ("a.yaml", "{\"a\": 1}", false),
            ("a.yml", "{}", false),
            ("<stdin>", " {\n \"a\": 1}", true),
            ("<stdin>", "{a: 1}", false),
            ("<stdin>", "a: 1", false),
        ] {
            assert_eq!(is_json(name, text), json, "{name} {text}");
        }
    }
}
