//! Parts of a plan file that must not be shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_core::Redaction;
use plimsoll_core::redaction::HIDDEN;
use plimsoll_core::redaction::is_secret_header;

use super::tree::{self, Entry, Kind, Node};
use super::{Document, Source};
use crate::{Place, Problems};

/// Keys below which names are the user's own: those of headers, fields and variables.
const OF_USERS: [&str; 7] = ["headers", "json", "claims", "variables", "set", "keep", "list"];
/// Keys below which variables are named by their sources, which are not secrets.
const EXTRACTIONS: [&str; 2] = ["extract", "collect"];

impl Source {
    /// The places of credentials: values of `basic`, `bearer` and of headers that carry them, users in URLs,
    /// text in place of the name of a file with a key, and all values that `redaction` hides by their names.
    /// A text that is not YAML has them by its lines.
    pub fn secrets(&self, redaction: &Redaction) -> Vec<Place> {
        let mut search = Search::new(&self.text, redaction);
        match self.tree() {
            Some(root) => search.walk(&root, Names::Plan),
            None => search.lines(),
        }
        let in_urls = redaction.places_in_urls(&self.text).into_iter();
        search.found.extend(in_urls.map(|place| Place { start: place.start as u32, end: place.end as u32 }));
        search.found
    }

    /// The text without its secrets, as [`secrets`](Self::secrets) finds them, and those in comments. What
    /// was YAML or JSON still is, with the same structure: each value with a secret in it becomes a text in
    /// double quotes, `"***"` if it is nothing else. In other text there is a star for each character.
    pub fn without_secrets(&self, redaction: &Redaction) -> String {
        let Some(root) = self.tree() else { return self.in_stars(redaction) };
        let mut search = Search::new(&self.text, redaction);
        search.walk(&root, Names::Plan);
        let mut scalars = BTreeMap::new();
        search.scalars(&root, &mut scalars);
        let mut shown = Shown { text: &self.text, redaction, out: String::new(), from: 0 };
        for ((start, end), replacement) in scalars {
            shown.scalar(start as usize, end as usize, replacement.as_deref());
        }
        shown.comments(self.text.len());
        shown.out
    }

    /// The tree of the text. One that is not strict JSON is mostly YAML; places in it are right in either
    /// case.
    fn tree(&self) -> Option<Node> {
        let parse = |name: &str| tree::parse(&Document::FORM, name, &self.text, &mut Problems::default());
        parse(&self.name).or_else(|| parse("plan.yaml"))
    }

    fn in_stars(&self, redaction: &Redaction) -> String {
        let secrets = self.secrets(redaction);
        let is_secret =
            |at: usize| secrets.iter().any(|place| (place.start as usize..place.end as usize).contains(&at));
        let shown = |(at, c): (usize, char)| if is_secret(at) && !c.is_whitespace() { '*' } else { c };
        self.text.char_indices().map(shown).collect()
    }
}

/// Text of a plan that is being written without its secrets.
struct Shown<'s> {
    text: &'s str,
    redaction: &'s Redaction,
    out: String,
    /// Everything before this byte is written.
    from: usize,
}

impl Shown<'_> {
    /// Writes the text up to the end of a scalar, which may have a replacement.
    fn scalar(&mut self, start: usize, end: usize, replacement: Option<&str>) {
        if start < self.from {
            return;
        }
        match replacement {
            // JSON's strings are strings of YAML, too, wherever they stand.
            Some(value) => {
                self.comments(self.header(start).unwrap_or(start));
                self.out.push_str(properties(&self.text[start..end]));
                let _ = write!(self.out, "{}", serde_json::Value::from(value));
            }
            None => {
                self.comments(start);
                self.out.push_str(&self.text[start..end]);
            }
        }
        self.from = end;
    }

    /// The place of the `|` or `>` of a block scalar with this content.
    fn header(&self, content: usize) -> Option<usize> {
        let between = &self.text[self.from..content];
        let before = between.trim_end();
        if !between[before.len()..].contains('\n') {
            return None;
        }
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before[begin..].split_once(" #").map_or(&before[begin..], |(code, _)| code).trim_end();
        let line = line.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
        let is_header = line.ends_with(['|', '>']) && !line.starts_with('#');
        is_header.then(|| self.from + begin + line.len() - 1)
    }

    /// Writes the text between two scalars, in which only comments can have secrets.
    fn comments(&mut self, end: usize) {
        for line in self.text[self.from..end].split_inclusive('\n') {
            let begins =
                |&(at, _): &(usize, &str)| line[..at].chars().next_back().is_none_or(char::is_whitespace);
            let comment = line.match_indices('#').find(begins).map_or(line.len(), |(at, _)| at);
            let (code, comment) = line.split_at(comment);
            self.out.push_str(code);
            self.out.push_str(&in_comment(comment, self.redaction));
        }
        self.from = end;
    }
}

/// The anchor and the tag in front of a scalar, with the space behind them.
fn properties(scalar: &str) -> &str {
    let mut rest = scalar;
    while rest.starts_with(['&', '!']) {
        rest = rest.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
    }
    &scalar[..scalar.len() - rest.len()]
}

/// A comment without the value behind the name of a credential, and without secrets of URLs and bodies.
fn in_comment(comment: &str, redaction: &Redaction) -> String {
    let is_hidden = |name: &str| {
        let name = name.rsplit(['-', '{', ',', ' ', '#', '"', '\'']).find(|part| !part.is_empty());
        name.is_some_and(|name| is_credential(name) || redaction.hides_header(name))
    };
    for (at, _) in comment.match_indices(':') {
        let (name, value) = comment.split_at(at);
        if is_hidden(name) && !is_slot(&value[1..]) && !value[1..].trim().is_empty() {
            let line_end = &comment[comment.trim_end().len()..];
            return format!("{}: {HIDDEN}{line_end}", redaction.in_body(name));
        }
    }
    redaction.in_body(comment).into_owned()
}

/// Returns `true` if the value of a key or header with this name is a credential.
fn is_credential(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'']);
    is_secret_header(name)
        || ["basic", "bearer", "password", "token", "jwt_key"]
            .iter()
            .any(|key| key.eq_ignore_ascii_case(name))
}

/// Whose names the keys of a map are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Plan,
    User,
    Extraction,
}

/// A search for secrets in the text of a plan.
struct Search<'s> {
    text: &'s str,
    redaction: &'s Redaction,
    found: Vec<Place>,
    /// Scalars with secrets, by their places: what is shown instead.
    shown: BTreeMap<(u32, u32), String>,
    /// Scalars with secrets that stand elsewhere, behind an anchor: what is shown instead.
    anchored: BTreeMap<String, String>,
}

impl<'s> Search<'s> {
    const fn new(text: &'s str, redaction: &'s Redaction) -> Self {
        Self { text, redaction, found: Vec::new(), shown: BTreeMap::new(), anchored: BTreeMap::new() }
    }

    /// All scalars of a tree by their places, names among them, each with what is shown instead.
    fn scalars(&self, node: &Node, all: &mut BTreeMap<(u32, u32), Option<String>>) {
        let mut add = |place: Place, text: &str| {
            let key = (place.start, place.end);
            let is_empty = place.start == place.end;
            if is_empty || self.is_alias(place) {
                return;
            }
            let shown = match self.shown.get(&key) {
                Some(shown) => Some(shown.clone()),
                None => self.anchored.get(text).cloned().or_else(|| {
                    Some(self.redaction.in_text(text)).filter(|shown| shown != text).map(Cow::into_owned)
                }),
            };
            all.insert(key, shown);
        };
        match &node.kind {
            Kind::Scalar { text, .. } => add(node.place, text),
            Kind::List(items) => items.iter().for_each(|item| self.scalars(item, all)),
            Kind::Map(entries) => {
                for entry in entries {
                    add(entry.place, &entry.name);
                }
                entries.iter().for_each(|entry| self.scalars(&entry.value, all));
            }
        }
    }

    /// Returns `true` if there is the name of an anchor at a place, and the value stands elsewhere.
    fn is_alias(&self, place: Place) -> bool {
        self.text[place.start as usize..].starts_with('*')
    }

    /// Notes that all scalars of a value are secrets.
    fn conceal(&mut self, value: &Node) {
        match &value.kind {
            Kind::Scalar { text, .. } if text.is_empty() || is_slot(text) => {}
            Kind::Scalar { text, .. } => self.part(text, value.place, HIDDEN.to_owned()),
            Kind::List(items) => items.iter().for_each(|item| self.conceal(item)),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.conceal(&entry.value)),
        }
    }

    fn walk(&mut self, node: &Node, names: Names) {
        match &node.kind {
            Kind::Scalar { text, .. } => self.scalar(text, node.place),
            Kind::List(items) => items.iter().for_each(|item| self.walk(item, names)),
            Kind::Map(entries) => {
                self.rows(entries);
                for entry in entries {
                    let (name, value) = (entry.name.as_str(), &entry.value);
                    let is_hidden = match names {
                        Names::Plan => is_credential(name),
                        Names::User => is_credential(name) || self.redaction.hides_header(name),
                        Names::Extraction => false,
                    };
                    match name {
                        _ if is_hidden => self.hide(value),
                        "tokens" if names == Names::Plan => self.keys(value),
                        "headers" if !matches!(value.kind, Kind::Map(_)) => {
                            self.nameless(value);
                            self.walk(value, Names::User);
                        }
                        _ if OF_USERS.contains(&name) => self.walk(value, Names::User),
                        _ if names == Names::User => self.walk(value, names),
                        _ if EXTRACTIONS.contains(&name) => self.walk(value, Names::Extraction),
                        _ if names == Names::Extraction => self.walk(value, Names::Plan),
                        _ => self.walk(value, names),
                    }
                }
            }
        }
    }

    /// A value whose name is that of a secret, unless it is only a slot.
    fn hide(&mut self, value: &Node) {
        match &value.kind {
            Kind::Scalar { text, .. } if is_slot(text) => {}
            _ => self.whole(value),
        }
    }

    fn whole(&mut self, value: &Node) {
        self.found.push(value.place);
        self.conceal(value);
    }

    fn scalar(&mut self, value: &str, place: Place) {
        let shown = &self.text[place.start as usize..place.end as usize];
        let is_hidden = |name: &str| is_credential(name) || self.redaction.hides_header(name.trim());
        if let Some((name, rest)) = value.split_once(':').filter(|(name, _)| is_hidden(name)) {
            // The value follows the name and its colon, which appear literally in the file unless it has
            // escapes.
            let from = shown.find(name).map_or(0, |at| at + name.len() + 1);
            if !is_slot(rest.trim()) {
                self.found.push(Place { start: place.start + from as u32, end: place.end });
                self.part(value, place, format!("{name}: {HIDDEN}"));
            }
            return;
        }
        let all = self.redaction.places(value).len();
        if all == 0 {
            return;
        }
        self.part(value, place, self.redaction.in_body(value).into_owned());
        let inner = shown.trim_start_matches(['"', '\'']);
        let from = place.start + (shown.len() - inner.len()) as u32;
        let inner = inner.trim_end_matches(['"', '\'']);
        let places = self.redaction.places(inner);
        if places.len() < all {
            // With escapes in front of quotes, the place within the text is unknown.
            self.found.push(place);
            return;
        }
        let at = |place: std::ops::Range<usize>| Place {
            start: from + place.start as u32,
            end: from + place.end as u32,
        };
        self.found.extend(places.into_iter().map(at));
    }

    /// Notes what is shown instead of a scalar. A secret as a whole stays one.
    fn part(&mut self, value: &str, place: Place, instead: String) {
        let shown = match self.is_alias(place) {
            true => self.anchored.entry(value.to_owned()).or_default(),
            false => self.shown.entry((place.start, place.end)).or_default(),
        };
        if shown != HIDDEN {
            *shown = instead;
        }
    }

    /// The keys of tokens, in any form.
    fn keys(&mut self, tokens: &Node) {
        match &tokens.kind {
            Kind::Map(entries) => {
                for entry in entries {
                    match entry.name.as_str() {
                        "key" => self.whole(&entry.value),
                        _ => self.keys(&entry.value),
                    }
                }
            }
            Kind::List(items) => items.iter().for_each(|item| self.keys(item)),
            Kind::Scalar { .. } => {}
        }
    }

    /// Headers whose name was forgotten: the rest may be the credential.
    fn nameless(&mut self, node: &Node) {
        match &node.kind {
            Kind::Scalar { text, .. } if !text.contains(':') => self.whole(node),
            Kind::List(items) => items.iter().for_each(|item| self.nameless(item)),
            Kind::Scalar { .. } | Kind::Map(_) => {}
        }
    }

    /// Rows of a data source whose columns are named beside them.
    fn rows(&mut self, entries: &[Entry]) {
        let list = |name: &str| {
            entries.iter().find(|entry| entry.name == name).and_then(|entry| match &entry.value.kind {
                Kind::List(items) => Some(items),
                _ => None,
            })
        };
        let (Some(columns), Some(rows)) = (list("columns"), list("list")) else { return };
        for (index, column) in columns.iter().enumerate() {
            let Kind::Scalar { text, .. } = &column.kind else { continue };
            if !(is_credential(text) || self.redaction.hides(text)) {
                continue;
            }
            for row in rows {
                match &row.kind {
                    Kind::List(values) => values.get(index).into_iter().for_each(|value| self.whole(value)),
                    _ if columns.len() == 1 => self.whole(row),
                    _ => {}
                }
            }
        }
    }

    /// Everything behind the key of a line that names a credential.
    fn lines(&mut self) {
        let mut start = 0;
        let is_hidden = |name: &str| is_credential(name) || self.redaction.hides(name);
        for line in self.text.split_inclusive('\n') {
            let mut name_start = 0;
            for (at, _) in line.match_indices(':') {
                let name = line[name_start..at]
                    .rsplit(['-', '{', ',', ' ', '"', '\''])
                    .find(|part| !part.is_empty());
                let whole = line[name_start..at].trim_matches([' ', '-', '{', '"', '\'']);
                if name.is_some_and(is_hidden) || is_hidden(whole) {
                    self.found
                        .push(Place { start: (start + at + 1) as u32, end: (start + line.len()) as u32 });
                    break;
                }
                name_start = at + 1;
            }
            start += line.len();
        }
    }
}

/// Returns `true` if a value is a slot of a template and nothing else.
fn is_slot(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("${") && text.find('}') == Some(text.len() - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    fn source(text: &str) -> Source {
        Source { name: "plan.yaml".to_owned(), text: text.to_owned() }
    }

    fn shown(text: &str) -> String {
        source(text).without_secrets(&Redaction::new(["pin"]))
    }

    /// Returns `true` if two trees have the same lists and names.
    fn are_alike(one: &Node, other: &Node) -> bool {
        match (&one.kind, &other.kind) {
            (Kind::Scalar { .. }, Kind::Scalar { .. }) => true,
            (Kind::List(ones), Kind::List(others)) => {
                ones.len() == others.len()
                    && ones.iter().zip(others).all(|(one, other)| are_alike(one, other))
            }
            (Kind::Map(ones), Kind::Map(others)) => {
                let alike = |(one, other): (&Entry, &Entry)| {
                    one.name == other.name && are_alike(&one.value, &other.value)
                };
                ones.len() == others.len() && ones.iter().zip(others).all(alike)
            }
            _ => false,
        }
    }

    #[test]
    fn a_plan_without_its_secrets_is_still_one() {
        for (text, expected) in [
            ("run: {bearer: zebra}", r#"run: {bearer: "***"}"#),
            (
                "run:\n  bearer: zebra # mine\n  timeout: 1s\n",
                "run:\n  bearer: \"***\" # mine\n  timeout: 1s\n",
            ),
            ("run: {basic: 'zebra:zebra', rate: 5}", r#"run: {basic: "***", rate: 5}"#),
            ("bearer: |\n  zebra\n  zebra\nrate: 5\n", "bearer: \"***\"\nrate: 5\n"),
            ("bearer: >-\n  zebra\n\n  zebra\nrate: 5\n", "bearer: \"***\"\nrate: 5\n"),
            ("bearer: zebra\n  zebra\nrate: 5\n", "bearer: \"***\"\nrate: 5\n"),
            ("bearer: \"zebra \\\n  zebra\"\nrate: 5\n", "bearer: \"***\"\nrate: 5\n"),
            ("headers: ['Cookie: zebra', 'A: b']", r#"headers: ["Cookie: ***", 'A: b']"#),
            ("headers: {cookie: zebra, A: b}", r#"headers: {cookie: "***", A: b}"#),
            ("a: &a zebra\nbearer: *a\n", "a: &a \"***\"\nbearer: *a\n"),
            ("bearer: &a zebra\nb: *a\n", "bearer: &a \"***\"\nb: *a\n"),
            ("bearer: &a {b: zebra, c: [zebra]}\nd: *a\n", "bearer: &a {b: \"***\", c: [\"***\"]}\nd: *a\n"),
            (
                "base: &b {bearer: zebra}\nrun: {<<: *b, rate: 5}\n",
                "base: &b {bearer: \"***\"}\nrun: {<<: *b, rate: 5}\n",
            ),
            (
                "# bearer: zebra\nrate: 5 # https://me:zebra@a.test/\n",
                "# bearer: ***\nrate: 5 # https://***@a.test/\n",
            ),
            ("get: http://a.test/?token=zebra&b=1", "get: \"http://a.test/?token=***&b=1\""),
            (
                "json: {'a: b': 1, \"pass: word\": 2, password: zebra}",
                "json: {'a: b': 1, \"pass: word\": 2, password: \"***\"}",
            ),
            (
                "body: |\n  {\"password\": \"zebra\", \"b\": 1}\n",
                "body: \"{\\\"password\\\": \\\"***\\\", \\\"b\\\": 1}\\n\"\n",
            ),
            (
                "{\"json\": {\"pin\": 12, \"b\": [\"läse\"]}}",
                "{\"json\": {\"pin\": \"***\", \"b\": [\"läse\"]}}",
            ),
            ("token: '${token}'\nbearer:\n", "token: '${token}'\nbearer:\n"),
            ("bearer: zebra#zebra\n'b': 'it''s'\n", "bearer: \"***\"\n'b': 'it''s'\n"),
        ] {
            let shown = shown(text);
            assert_eq!(shown, expected);
            let (before, after) = (source(text).tree().expect("YAML"), source(&shown).tree().expect("YAML"));
            assert!(are_alike(&before, &after), "{shown}");
        }
    }

    #[test]
    fn what_is_no_yaml_has_stars() {
        let text = "run: {bearer: zebra\nx: [";
        assert_eq!(shown(text), "run: {bearer: *****\nx: [");
    }

    /// A value of one line or several, as it may stand behind a key of a block at this indent.
    fn value(style: usize, indent: usize, secret: &str) -> String {
        let deep = " ".repeat(indent + 2);
        match style {
            0 => secret.to_owned(),
            1 => format!("'{secret}: it''s'"),
            2 => format!("\"{secret} \\\" # \\u00e4\""),
            3 => format!("|\n{deep}{secret}: 1\n{deep}# {secret}"),
            4 => format!(">-\n{deep}{secret}\n\n{deep}{secret} é"),
            5 => format!("{secret}\n{deep}{secret}"),
            6 => format!("[{secret}, '{secret}', {{a: {secret}}}]"),
            7 => format!("{{a: {secret}, 'b: c': \"{secret}\"}}"),
            8 => format!("\n{deep}- {secret}\n{deep}- a: {secret}\n{deep}  b: |\n{deep}    {secret}"),
            9 => format!("{secret} # bearer: zebra"),
            10 => format!("|2-\n{deep}{secret}\n{deep}  {secret}"),
            _ => format!("'{secret}\n\n{deep}{secret}'"),
        }
    }

    proptest! {
        /// However a secret is written, the rest stays as it was.
        #[test]
        fn redacted_text_has_the_same_structure(
            entries in proptest::collection::vec(
                (select(&["bearer", "password", "token", "plain", "note"][..]), 0..12_usize,
                 any::<bool>(), any::<Index>(), 0..4_usize),
                1..12,
            ),
            is_nested: bool,
        ) {
            let indent = if is_nested { 4 } else { 0 };
            let mut text = if is_nested { "run:\n  headers:\n".to_owned() } else { String::new() };
            let mut anchors = Vec::new();
            for (number, (name, style, is_anchored, from, extra)) in entries.iter().enumerate() {
                let is_secret = !matches!(*name, "plain" | "note");
                let space = " ".repeat(indent);
                let number_of_key = if is_secret { String::new() } else { number.to_string() };
                let key = format!("{space}{name}{number_of_key}");
                if is_secret && text.contains(&format!("{key}:")) {
                    continue;
                }
                if *extra == 0 {
                    text.push_str(&format!("{space}# a comment, `it's`: fine\n"));
                }
                if *extra == 1 && !anchors.is_empty() {
                    let anchor: &usize = from.get(&anchors);
                    text.push_str(&format!("{space}alias{number}: *a{anchor}\n"));
                }
                let content = if is_secret { "zebra" } else { "horse" };
                let anchor = match is_anchored {
                    true => { anchors.push(number); format!("&a{number} ") }
                    false => String::new(),
                };
                text.push_str(&format!("{key}: {anchor}{}\n", value(*style, indent, content)));
            }
            let before = source(&text).tree();
            prop_assume!(before.is_some());
            let shown = shown(&text);
            prop_assert!(!shown.contains("zebra"), "{text}\n{shown}");
            let horses = |text: &str| text.matches("horse").count();
            prop_assert_eq!(horses(&shown), horses(&text), "{}\n{}", text, shown);
            let after = source(&shown).tree();
            prop_assert!(after.is_some_and(|after| are_alike(&before.unwrap(), &after)), "{text}\n{shown}");
        }
    }
}
