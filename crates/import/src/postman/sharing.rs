//! Variables that folders share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::script::{Part, parts};
use super::source_of;

/// A call that sets a variable: its name. The object may have a name of its own, as in
/// `const env = pm.environment`.
static SET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = r"\b\w+\s*\.\s*set";
    let old = r"\bset(?:Environment|Global)Variable";
    Regex::new(&format!(r#"(?:{scopes}|{old})\s*\(\s*['"`]([^'"`]+)['"`]"#)).ok()
});

/// A slot of a text, or a call that reads a variable: the name.
static READ: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = r"\b(?:environment|globals|collectionVariables|variables|iterationData)\s*\.\s*(?:get|has)";
    let old = r"\bget(?:Environment|Global)Variable";
    Regex::new(&format!(r#"\{{\{{\s*([^{{}}]+?)\s*\}}\}}|(?:{scopes}|{old})\s*\(\s*['"`]([^'"`]+)['"`]"#))
        .ok()
});

/// A call that sets a variable whose name is computed.
static SETS_ANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = r"\b(?:environment|globals|collectionVariables)\s*\.\s*set";
    let old = r"\bset(?:Environment|Global)Variable";
    Regex::new(&format!(r#"(?:{scopes}|{old})\s*\(\s*[^'"`\s]|(?:{scopes}|{old})\s*\(\s*`[^`]*\$\{{"#)).ok()
});

/// A script that looks at the cookies of its session.
static COOKIES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bpm\s*\.\s*cookies\b|\bgetResponseCookie\b").ok());

/// Returns `true` if a collection shows that its server sets cookies: by a saved response with one, or by a
/// script that looks at one. The parser of JSON bounds the depth.
pub(super) fn has_cookies(item: &Value) -> bool {
    let is_set = |header: &Value| {
        let key = header.get("key").and_then(Value::as_str).unwrap_or_default();
        key.eq_ignore_ascii_case("set-cookie")
    };
    let is_saved = list(item, "response")
        .any(|response| list(response, "cookie").next().is_some() || list(response, "header").any(is_set));
    let looks = |event: &Value| {
        let source = source_of(event.pointer("/script/exec"));
        parts(&source).into_iter().any(|(_, part)| match part {
            Part::Statement(text) | Part::Open(text) => {
                COOKIES.as_ref().is_some_and(|pattern| pattern.is_match(&text))
            }
            Part::Close => false,
        })
    };
    is_saved || events(item).any(looks) || list(item, "item").any(has_cookies)
}

/// Returns `true` if a folder of the outermost level, or the requests beside them, read a variable that
/// another one sets. `environment` has the variables around the collection.
pub(super) fn is_one_sequence(collection: &Value, environment: Option<&Value>) -> bool {
    let Some(items) = collection.get("item").and_then(Value::as_array) else { return false };
    let (folders, loose): (Vec<&Value>, Vec<&Value>) = items.iter().partition(|item| is_folder(item));
    let parts = folders.into_iter().map(|folder| vec![folder]).chain([loose]).filter(|part| !part.is_empty());
    let whole = Uses::of_whole(collection);
    let mut defined = BTreeMap::new();
    for list in [collection.get("variable"), collection.get("variables"), environment] {
        define(list, &mut defined);
    }
    let parts: Vec<Uses> = parts
        .map(|items| {
            let mut uses = whole.clone();
            items.into_iter().for_each(|item| uses.item(item, own_auth(collection)));
            uses.resolve(&defined);
            uses
        })
        .collect();
    let crosses = |one: usize, name: &String| {
        parts.iter().enumerate().any(|(other, uses)| other != one && uses.reads.contains(name))
    };
    let crosses_any = parts.len() > 1 && parts.iter().any(|uses| uses.sets_any);
    crosses_any
        || parts.iter().enumerate().any(|(index, uses)| uses.sets.iter().any(|name| crosses(index, name)))
}

pub(super) fn is_folder(item: &Value) -> bool {
    item.get("item").is_some_and(|inner| !inner.is_null())
}

/// Variables that a part of a collection sets and reads.
#[derive(Clone, Default)]
struct Uses {
    sets: BTreeSet<String>,
    reads: BTreeSet<String>,
    /// A variable is set whose name is computed.
    sets_any: bool,
}

impl Uses {
    /// Reads and writes of variables by the scripts of the collection itself, around each request.
    fn of_whole(collection: &Value) -> Self {
        let mut uses = Self::default();
        uses.scripts(collection);
        // A variable that is set in front of each request has its value in every part.
        let mut before = Self::default();
        for event in events(collection).filter(|event| listens(event) == "prerequest") {
            before.script(event);
        }
        uses.sets.retain(|name| !before.sets.contains(name));
        uses.reads.retain(|name| !before.sets.contains(name));
        uses
    }

    /// Adds those of a folder or of a request, which has the credentials around it unless it has its own.
    fn item(&mut self, item: &Value, around: Option<&Value>) {
        self.scripts(item);
        if let Some(inner) = item.get("item").and_then(Value::as_array) {
            let auth = own_auth(item).or(around);
            inner.iter().for_each(|item| self.item(item, auth));
        }
        for list in ["variable", "variables"].iter().filter_map(|key| item.get(key)) {
            self.texts(list);
        }
        let Some(request) = item.get("request") else { return };
        match request {
            Value::Object(members) => {
                let sent = |key: &str| !matches!(key, "auth" | "description");
                members.iter().filter(|(key, _)| sent(key)).for_each(|(_, member)| self.texts(member));
            }
            url => self.texts(url),
        }
        // A kind of credentials may lie beside the one that is used.
        let auth = own_auth(request).or(around);
        let used = auth.and_then(|auth| auth.get(auth.get("type")?.as_str()?));
        used.into_iter().for_each(|parameters| self.texts(parameters));
    }

    fn scripts(&mut self, object: &Value) {
        events(object).for_each(|event| self.script(event));
    }

    /// Adds those of a script, without its comments.
    fn script(&mut self, event: &Value) {
        let source = source_of(event.pointer("/script/exec"));
        for (_, part) in parts(&source) {
            match part {
                Part::Statement(text) | Part::Open(text) => self.text(&text),
                Part::Close => {}
            }
        }
    }

    /// Adds those of all texts within a value that are in use. The parser of JSON bounds its depth.
    fn texts(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.texts(item)),
            Value::Object(members) if !is_disabled(value) => {
                let says = members.iter().filter(|(key, _)| *key != "description");
                says.for_each(|(_, member)| self.texts(member));
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.sets_any |= SETS_ANY.as_ref().is_some_and(|pattern| pattern.is_match(text));
        for (pattern, names) in [(&SET, &mut self.sets), (&READ, &mut self.reads)] {
            for found in pattern.iter().flat_map(|pattern| pattern.captures_iter(text)) {
                names.extend(found.iter().skip(1).flatten().map(|name| name.as_str().to_owned()));
            }
        }
    }

    /// Adds the variables that the values of the variables read.
    fn resolve(&mut self, defined: &BTreeMap<&str, &Value>) {
        let mut open: Vec<String> = self.reads.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let Some(value) = defined.get(name.as_str()) else { continue };
            let mut inner = Self::default();
            inner.texts(value);
            open.extend(inner.reads.into_iter().filter(|name| self.reads.insert(name.clone())));
        }
    }
}

fn list<'v>(of: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn events(object: &Value) -> impl Iterator<Item = &Value> {
    list(object, "event").filter(|event| !is_disabled(event))
}

fn listens(event: &Value) -> &str {
    event.get("listen").and_then(Value::as_str).unwrap_or_default()
}

/// Credentials that are not those around: with a kind, which may be none.
fn own_auth(object: &Value) -> Option<&Value> {
    object.get("auth").filter(|auth| auth.get("type").is_some_and(Value::is_string))
}

fn is_disabled(value: &Value) -> bool {
    let flag = |key: &str| value.get(key).and_then(Value::as_bool);
    flag("disabled") == Some(true) || flag("enabled") == Some(false)
}

/// Adds the variables of a list; a later one of a name wins.
fn define<'v>(list: Option<&'v Value>, defined: &mut BTreeMap<&'v str, &'v Value>) {
    for variable in list.and_then(Value::as_array).into_iter().flatten() {
        let name = ["key", "id"].iter().find_map(|key| variable.get(key)?.as_str());
        if let (Some(name), Some(value)) = (name, variable.get("value")) {
            defined.insert(name, value);
        }
    }
}
