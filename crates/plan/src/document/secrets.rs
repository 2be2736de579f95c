//! Parts of a plan file that must not be shown.

use plimsoll_scenario::Redaction;
use plimsoll_scenario::header::is_secret;

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
        let mut search = Search { text: &self.text, redaction, found: Vec::new() };
        let parse = |name: &str| tree::parse(&Document::FORM, name, &self.text, &mut Problems::default());
        // Text that is not strict JSON is mostly YAML; places in it are right in either case.
        match parse(&self.name).or_else(|| parse("plan.yaml")) {
            Some(root) => search.walk(&root, Names::Plan),
            None => search.lines(),
        }
        let in_urls = redaction.places_in_urls(&self.text).into_iter();
        search.found.extend(in_urls.map(|place| Place { start: place.start as u32, end: place.end as u32 }));
        search.found
    }
}

/// Returns `true` if the value of a key or header with this name is a credential.
fn is_credential(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'']);
    is_secret(name)
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
}

impl Search<'_> {
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
                        "tokens" if names == Names::Plan => keys(value, &mut self.found),
                        "headers" if !matches!(value.kind, Kind::Map(_)) => {
                            nameless(value, &mut self.found);
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
            _ => self.found.push(value.place),
        }
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
            }
            return;
        }
        let all = self.redaction.places(value).len();
        if all == 0 {
            return;
        }
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
                    Kind::List(values) => self.found.extend(values.get(index).map(|value| value.place)),
                    _ if columns.len() == 1 => self.found.push(row.place),
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

/// The keys of tokens, in any form.
fn keys(tokens: &Node, found: &mut Vec<Place>) {
    match &tokens.kind {
        Kind::Map(entries) => {
            for entry in entries {
                match entry.name.as_str() {
                    "key" => found.push(entry.value.place),
                    _ => keys(&entry.value, found),
                }
            }
        }
        Kind::List(items) => items.iter().for_each(|item| keys(item, found)),
        Kind::Scalar { .. } => {}
    }
}

/// Headers whose name was forgotten: the rest may be the credential.
fn nameless(node: &Node, found: &mut Vec<Place>) {
    match &node.kind {
        Kind::Scalar { text, .. } if !text.contains(':') => found.push(node.place),
        Kind::List(items) => items.iter().for_each(|item| nameless(item, found)),
        Kind::Scalar { .. } | Kind::Map(_) => {}
    }
}
