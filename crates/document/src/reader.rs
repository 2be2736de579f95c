//! From the tree of a plan file to its types, with everything that is wrong.
//!
//! A serde deserializer that knows places and goes on after mistakes. [`Field`](super::Field) and
//! [`Keyed`](super::Keyed) ask for their place by the names of newtypes that nothing else has; where the
//! value of a field is wrong, the problem is recorded, the field gets no value, and
//! reading continues behind it. A key that a type does not have is a problem, too, and left out.

use std::cell::RefCell;

use plimsoll_core::suggest;
use serde::de::value::{StrDeserializer, U64Deserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::field::{FIELD, KEYED};
use super::tree::{Entry, Kind, Node};
use super::{Document, DocumentFormat, Source, StepSpec};
use crate::{DocumentParts, Place, Problem, Problems};

/// Most keys that are listed beside an unknown one.
const LISTED: usize = 16;

impl Document {
    /// Reads a plan file, YAML or JSON, whose keys are those of this crate and of these parts, and reports
    /// everything that is wrong with its form. `None`: nothing could be read. A document that was read
    /// despite problems may lack some of its values ([`Field::Bad`]).
    ///
    /// [`Field::Bad`]: super::Field::Bad
    pub fn read(source: &Source, parts: DocumentParts, problems: &mut Problems) -> Option<Self> {
        parts.within(|| Self::FORM.read(source, problems))
    }
}

/// Error that describes the problem with one value.
#[derive(Debug)]
pub(super) struct Wrong(pub(super) Problem);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(Problem::new(message.to_string()))
    }
}

/// One value that is to be read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'n> {
    pub(super) node: &'n Node,
    /// Name of the value in messages.
    pub(super) name: &'n str,
    pub(super) problems: &'n RefCell<Problems>,
    pub(super) form: &'n DocumentFormat,
}

impl<'n> Reader<'n> {
    fn to(self, node: &'n Node, name: &'n str) -> Self {
        Self { node, name, ..self }
    }

    fn report(self, problem: Problem, place: Place) {
        self.problems.borrow_mut().push(problem.at(Some(place)));
    }

    /// The error that this is not of the wanted type.
    fn not(self, wanted: &str) -> Wrong {
        let name = self.name.escape_debug();
        let problem = match self.node.noun() {
            "nothing" => Problem::new(format!("`{name}` has no value"))
                .with_hint("give it one, or leave it out; an empty text is \"\""),
            found => {
                let problem = Problem::new(format!("`{name}` has to be {wanted}, and is {found}"));
                match (wanted, found, self.name) {
                    ("a mapping", "a list", _) => {
                        problem.with_hint("write `NAME: VALUE` on a line each, without dashes in front")
                    }
                    ("a single value", "a mapping" | "a list", "body") => {
                        problem.with_hint("a body of JSON that is written as YAML is `json`")
                    }
                    _ => problem,
                }
            }
        };
        Wrong(problem.at(Some(self.node.place)))
    }

    /// Recovers from a wrong value.
    fn recover<T>(self, value: Result<T, Wrong>) -> Option<T> {
        value
            .map_err(|Wrong(problem)| {
                let place = problem.place.unwrap_or(self.node.place);
                self.report(problem, place);
            })
            .ok()
    }

    /// Reports a key that is not known.
    fn unknown(self, entry: &Entry, known: &[&'static str], added: DocumentParts) {
        let name = entry.name.escape_debug();
        let problem = Problem::new(format!("unknown key `{name}`"));
        let known = known.iter().copied().chain(added.step_keys());
        let known: Vec<&str> = known.filter(|name| !name.starts_with('(')).collect();
        let spelt = entry.name.replace('-', "_").to_ascii_lowercase();
        let near = foreign(&spelt, &known).or_else(|| suggest::closest(&spelt, known.iter().copied()));
        if let Some(hint) = as_threshold(entry, &known).or_else(|| as_scenario(entry, &known)) {
            self.report(problem.with_hint(hint), entry.place);
            return;
        }
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.len() <= LISTED => format!("known here: {}", known.join(", ")),
            None => format!("`plimsoll schema {}` lists the keys", self.form.schema),
        };
        self.report(problem.with_hint(hint), entry.place);
    }
}

/// Hint for a limit that was written as a mapping, where a threshold has keys of its own.
fn as_threshold(entry: &Entry, known: &[&str]) -> Option<String> {
    let Kind::Scalar { text, .. } = &entry.value.kind else { return None };
    let parts = DocumentParts::current();
    let is_condition = |text: &String| (parts.is_condition)(text, parts.errors);
    let name = &entry.name;
    // A limit is an upper one, but for rates.
    let guesses = [format!("{name}{text}"), format!("{name}<{text}"), format!("{name}>{text}")];
    let guess = guesses.into_iter().find(is_condition).filter(|_| known.contains(&"abort_on_fail"))?;
    Some(format!("a threshold is a text in a list: thresholds: [\"{guess}\"]"))
}

/// Hint for a scenario that was written below its name, where scenarios are a list.
fn as_scenario(entry: &Entry, known: &[&str]) -> Option<String> {
    let Kind::Map(entries) = &entry.value.kind else { return None };
    let is_scenario = known.contains(&"start_after") && entries.iter().any(|entry| entry.name == "steps");
    is_scenario.then(|| {
        let name = entry.name.escape_debug();
        format!("scenarios are a list, each with its name: `- name: {name}`, and `steps:` below it")
    })
}

/// The way to write a part of a plan that has a mapping, for who wrote a single value.
fn example(part: &str, name: &str, node: &Node) -> Option<String> {
    let Kind::Scalar { text, .. } = &node.kind else { return None };
    let text = text.escape_debug();
    match part {
        "ExpectSpec" if text.clone().all(|letter| letter.is_ascii_digit() || letter == 'x') => {
            Some(format!("write {name}: {{status: {text}}}"))
        }
        "ExpectSpec" => Some(format!("write {name}: {{body: \"{text}\"}} for a text that is in the body")),
        "ExtractSpec" if node_is_place(node) => Some(format!("write {name}: {{json: \"{text}\"}}")),
        "ExtractSpec" => Some(format!(
            "write where it is, as {name}: {{json: /data/{name}}}, {{header: {name}}} or {{regex: '…(.*)…'}}"
        )),
        _ => None,
    }
}

/// Returns `true` of a JSON Pointer or a JSONPath.
fn node_is_place(node: &Node) -> bool {
    matches!(&node.kind, Kind::Scalar { text, .. } if text.starts_with(['/', '$']))
}

/// Returns our name for a key that other tools call `name`, if it is known here.
fn foreign(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let ours: &[&'static str] = match name {
        "vus" | "virtual_users" => &["users", "connections"],
        "users" | "clients" | "concurrency" => &["connections"],
        "requests" | "flow" | "actions" | "exec" => &["steps", "iterations"],
        "total_requests" | "count" | "number" => &["iterations", "repeat"],
        "warm_up_time" | "warm_up" | "rampup" => &["warmup"],
        "qps" | "tps" | "throughput" | "arrival_rate" | "request_per_second" => &["rate"],
        "pause" | "sleep" | "wait" | "delay" | "think_time" => &["think"],
        "assert" | "asserts" | "assertions" | "check" | "checks" | "validate" | "response_match" => {
            &["expect"]
        }
        "capture" | "captures" | "save" | "extractors" | "value_pickers" => &["extract"],
        "url" | "uri" | "path" => &["url", "get"],
        "base_url" | "host" | "hosts" => &["url", "targets", "target"],
        "payload" | "content" => &["body"],
        "vars" | "defaults" | "env" => &["variables"],
        "config" | "options" | "settings" | "load" => &["run"],
        "loop" | "times" | "foreach" => &["repeat"],
        "lua" | "luascript" => &["script"],
        "protocol" => &["http2", "alpn"],
        "condition" => &["if", "that"],
        "header" => &["headers", "header"],
        "streams" => &["max_concurrent_streams"],
        "equal" | "eq" | "is" => &["equals"],
        "matches" | "match" | "pattern" => &["regex"],
        "starts_with" | "prefix" => &["starts"],
        "ends_with" | "suffix" => &["ends"],
        "includes" => &["contains"],
        "jsonpath" | "json_path" | "json_pointer" | "pointer" => &["json"],
        "file" => &["csv", "body_file"],
        _ => return None,
    };
    ours.iter().copied().find(|ours| known.contains(ours))
}

impl<'n> Deserializer<'n> for Reader<'n> {
    type Error = Wrong;

    /// For JSON in a plan: plain numbers and truth values keep their types, everything else is text.
    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.kind {
            _ if self.node.is_null() => visitor.visit_unit(),
            Kind::Scalar { text, plain: true } => match text.as_str() {
                "true" => visitor.visit_bool(true),
                "false" => visitor.visit_bool(false),
                text => match serde_json::from_str::<serde_json::Number>(text) {
                    Ok(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                        (Some(number), ..) => visitor.visit_u64(number),
                        (_, Some(number), _) => visitor.visit_i64(number),
                        (.., Some(_)) if text.contains(['.', 'e', 'E']) => {
                            // The standard library reads every digit; serde_json, as it is built here, does
                            // not.
                            visitor.visit_f64(text.parse().unwrap_or_default())
                        }
                        _ => Err(Wrong(
                            Problem::new(format!("the number {text} does not fit into 64 bits"))
                                .with_hint("put it in quotes to send it as a text")
                                .at(Some(self.node.place)),
                        )),
                    },
                    Err(_) => visitor.visit_str(text),
                },
            },
            Kind::Scalar { text, .. } => visitor.visit_str(text),
            Kind::List(items) => visitor.visit_seq(Items { reader: self, items: items.iter() }),
            Kind::Map(entries) => {
                visitor.visit_map(Entries { reader: self, entries: entries.iter(), value: None })
            }
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.kind {
            Kind::Scalar { text, plain: true } if text == "true" => visitor.visit_bool(true),
            Kind::Scalar { text, plain: true } if text == "false" => visitor.visit_bool(false),
            Kind::Scalar { text, plain } if !self.node.is_null() => {
                let name = self.name.escape_debug();
                let found = if *plain { format!("`{}`", text.escape_debug()) } else { "a text".to_owned() };
                let problem = Problem::new(format!("`{name}` has to be true or false, and is {found}"));
                let problem = if *plain { problem } else { problem.with_hint("write it without quotes") };
                Err(Wrong(problem.at(Some(self.node.place))))
            }
            _ => Err(self.not("true or false")),
        }
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.kind {
            Kind::Scalar { text, .. } if !self.node.is_null() => visitor.visit_borrowed_str(text),
            _ => Err(self.not("a single value")),
        }
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    /// A list, or one value in its place.
    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.kind {
            _ if self.node.is_null() => {
                self.recover::<()>(Err(self.not("a list")));
                visitor.visit_seq(Items { reader: self, items: [].iter() })
            }
            Kind::List(items) if items.is_empty() => {
                let problem = Problem::new(format!("`{}` is an empty list", self.name.escape_debug()));
                self.report(problem.with_hint("leave it out"), self.node.place);
                visitor.visit_seq(Items { reader: self, items: [].iter() })
            }
            Kind::List(items) => visitor.visit_seq(Items { reader: self, items: items.iter() }),
            _ => visitor.visit_seq(Items { reader: self, items: std::slice::from_ref(self.node).iter() }),
        }
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.kind {
            Kind::Map(entries) => {
                visitor.visit_map(Entries { reader: self, entries: entries.iter(), value: None })
            }
            _ => Err(self.not("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let short = self.form.short_forms.iter().find(|(of, _)| *of == name);
        let added = match name {
            StepSpec::NAME => DocumentParts::current(),
            _ => DocumentParts::NONE,
        };
        if matches!(&self.node.kind, Kind::Map(entries) if entries.is_empty()) {
            let problem = Problem::new("this mapping is empty");
            self.report(problem.with_hint("leave it out, or give it keys"), self.node.place);
        }
        match (&self.node.kind, short) {
            (Kind::Map(entries), _) => {
                let entries = entries.iter();
                visitor.visit_map(Members { reader: self, entries, known, added, value: None })
            }
            (Kind::Scalar { .. }, Some((_, field))) if !self.node.is_null() => {
                visitor.visit_map(Short { reader: self, field: Some(field) })
            }
            (_, Some(_)) => Err(self.not("a single value or a mapping")),
            (_, None) => {
                let Wrong(problem) = self.not("a mapping");
                let hint = example(name, &self.name.escape_debug().to_string(), self.node);
                Err(Wrong(match hint.filter(|_| problem.hint.is_none()) {
                    Some(hint) => problem.with_hint(hint),
                    None => problem,
                }))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match (name, &self.node.kind) {
            (FIELD, _) => visitor.visit_seq(FieldParts { reader: self, next: 0 }),
            (KEYED, kind) => {
                let entries = match kind {
                    Kind::Map(entries) if entries.is_empty() => {
                        let name = self.name.escape_debug();
                        let problem = Problem::new(format!("`{name}` is an empty mapping"));
                        self.report(problem.with_hint("leave it out"), self.node.place);
                        &[][..]
                    }
                    Kind::Map(entries) => entries,
                    _ => {
                        self.recover::<()>(Err(self.not("a mapping")));
                        &[]
                    }
                };
                visitor.visit_seq(KeyedParts { reader: self, entries: entries.iter(), entry: None, next: 0 })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        <W: Visitor<'n>>
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf option unit unit_struct tuple
        tuple_struct enum identifier ignored_any
    }
}

/// Both ends of a place in one number.
fn packed(place: Place) -> U64Deserializer<Wrong> {
    (u64::from(place.start) << 32 | u64::from(place.end)).into_deserializer()
}

/// The values of a list.
struct Items<'n> {
    reader: Reader<'n>,
    items: std::slice::Iter<'n, Node>,
}

impl<'n> SeqAccess<'n> for Items<'n> {
    type Error = Wrong;
    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.items.next() else { return Ok(None) };
        seed.deserialize(self.reader.to(item, self.reader.name)).map(Some)
    }
}

/// The entries of a mapping in JSON.
struct Entries<'n> {
    reader: Reader<'n>,
    entries: std::slice::Iter<'n, Entry>,
    value: Option<&'n Entry>,
}

impl<'n> MapAccess<'n> for Entries<'n> {
    type Error = Wrong;
    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.value = Some(entry);
        seed.deserialize(StrDeserializer::new(&entry.name)).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let entry = self.value.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        seed.deserialize(self.reader.to(&entry.value, &entry.name))
    }
}

/// The fields of one of the plan's types; others are reported and left out.
struct Members<'n> {
    reader: Reader<'n>,
    entries: std::slice::Iter<'n, Entry>,
    known: &'static [&'static str],
    /// Keys of other crates that the type has, too.
    added: DocumentParts,
    value: Option<&'n Entry>,
}

impl<'n> MapAccess<'n> for Members<'n> {
    type Error = Wrong;
    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        for entry in self.entries.by_ref() {
            let name = entry.name.as_str();
            let is_known = self.known.contains(&name) || self.added.step_keys().any(|key| key == name);
            if is_known && !name.starts_with('(') {
                self.value = Some(entry);
                return seed.deserialize(StrDeserializer::new(&entry.name)).map(Some);
            }
            self.reader.unknown(entry, self.known, self.added);
        }
        Ok(None)
    }
    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let entry = self.value.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        seed.deserialize(self.reader.to(&entry.value, &entry.name))
    }
}

/// A type that is written short: the one field.
struct Short<'n> {
    reader: Reader<'n>,
    field: Option<&'static str>,
}

impl<'n> MapAccess<'n> for Short<'n> {
    type Error = Wrong;
    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some(field) = self.field.take() else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(field)).map(Some)
    }
    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        seed.deserialize(self.reader)
    }
}

/// A field: its place, then its value, unless that is wrong.
struct FieldParts<'n> {
    reader: Reader<'n>,
    next: u8,
}

impl<'n> SeqAccess<'n> for FieldParts<'n> {
    type Error = Wrong;
    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        self.next += 1;
        match self.next {
            1 => seed.deserialize(packed(self.reader.node.place)).map(Some),
            _ => Ok(self.reader.recover(seed.deserialize(self.reader))),
        }
    }
}

/// A mapping with places: of each entry the name, its place and the value.
struct KeyedParts<'n> {
    reader: Reader<'n>,
    entries: std::slice::Iter<'n, Entry>,
    entry: Option<&'n Entry>,
    next: u8,
}

impl<'n> SeqAccess<'n> for KeyedParts<'n> {
    type Error = Wrong;
    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        if self.next == 0 {
            self.entry = self.entries.next();
        }
        let Some(entry) = self.entry else { return Ok(None) };
        let part = self.next;
        self.next = (part + 1) % 3;
        match part {
            0 => seed.deserialize(StrDeserializer::new(&entry.name)),
            1 => seed.deserialize(packed(entry.place)),
            _ => seed.deserialize(self.reader.to(&entry.value, &entry.name)),
        }
        .map(Some)
    }
}
