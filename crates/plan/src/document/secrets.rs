//! What must not be shown of a plan file.

use plimsoll_scenario::header::is_secret;

use super::tree::{self, Kind, Node};
use super::{Document, Source};
use crate::{Place, Problems};

impl Source {
    /// The places of credentials: values of `basic`, `bearer` and of headers that carry them, users in URLs,
    /// and what stands where the name of a file with a key belongs. A text that is no YAML has them by its
    /// lines.
    pub fn secrets(&self) -> Vec<Place> {
        let mut found = Vec::new();
        let parse = |name: &str| tree::parse(&Document::FORM, name, &self.text, &mut Problems::default());
        // What is no strict JSON is mostly YAML, which says where values are all the same.
        match parse(&self.name).or_else(|| parse("plan.yaml")) {
            Some(root) => walk(&root, &self.text, &mut found),
            None => lines(&self.text, &mut found),
        }
        users(&self.text, &mut found);
        found
    }
}

/// Whether the value of a key, or what follows a header's name, is a credential.
fn is_credential(name: &str) -> bool {
    let name = name.trim().trim_matches(['"', '\'']);
    is_secret(name)
        || ["basic", "bearer", "password", "token", "jwt_key"]
            .iter()
            .any(|key| key.eq_ignore_ascii_case(name))
}

fn walk(node: &Node, text: &str, found: &mut Vec<Place>) {
    match &node.kind {
        Kind::Scalar { text: value, .. } => {
            if let Some((name, _)) = value.split_once(':').filter(|(name, _)| is_credential(name)) {
                // Behind the name and its colon, which stand so in the file unless there are escapes in
                // front.
                let shown = &text[node.place.start as usize..node.place.end as usize];
                let from = shown.find(name).map_or(0, |at| at + name.len() + 1);
                found.push(Place { start: node.place.start + from as u32, end: node.place.end });
            }
        }
        Kind::List(items) => items.iter().for_each(|item| walk(item, text, found)),
        Kind::Map(entries) => {
            for entry in entries {
                if is_credential(&entry.name) {
                    found.push(entry.value.place);
                } else if entry.name == "tokens" {
                    keys(&entry.value, found);
                } else if entry.name == "headers" && !matches!(entry.value.kind, Kind::Map(_)) {
                    nameless(&entry.value, found);
                    walk(&entry.value, text, found);
                } else {
                    walk(&entry.value, text, found);
                }
            }
        }
    }
}

/// The keys of tokens, whatever is written there.
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

/// Headers whose name was forgotten: what is left may be the credential.
fn nameless(node: &Node, found: &mut Vec<Place>) {
    match &node.kind {
        Kind::Scalar { text, .. } if !text.contains(':') => found.push(node.place),
        Kind::List(items) => items.iter().for_each(|item| nameless(item, found)),
        Kind::Scalar { .. } | Kind::Map(_) => {}
    }
}

/// Everything behind the key of a line that names a credential.
fn lines(text: &str, found: &mut Vec<Place>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let mut name_start = 0;
        for (at, _) in line.match_indices(':') {
            let name =
                line[name_start..at].rsplit(['-', '{', ',', ' ', '"', '\'']).find(|part| !part.is_empty());
            let whole = line[name_start..at].trim_matches([' ', '-', '{', '"', '\'']);
            if name.is_some_and(is_credential) || is_credential(whole) {
                found.push(Place { start: (start + at + 1) as u32, end: (start + line.len()) as u32 });
                break;
            }
            name_start = at + 1;
        }
        start += line.len();
    }
}

/// User and password in URLs.
fn users(text: &str, found: &mut Vec<Place>) {
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(rest.len());
        if let Some(user) = rest[..end].rfind('@') {
            found.push(Place { start: (at + 3) as u32, end: (at + 3 + user) as u32 });
        }
    }
}
