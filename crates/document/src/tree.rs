//! YAML as a tree in which every value has its place.
//!
//! Scalars keep the text as it was typed, because `007`, `5k/s` and `1.10` are not numbers here. JSON is
//! nearly a subset of YAML 1.2, but has a reader of its own, which takes nothing that is not JSON.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::{DocumentFormat, json};
use crate::{Place, Problem, Problems};

/// Largest plan file, in bytes. Data belongs into files of its own, which are read as they are needed.
pub const LARGEST_TEXT: usize = 16 * 1024 * 1024;
/// Deepest nesting of lists and mappings: deeper than any plan, and shallow enough for every stack.
pub(super) const DEEPEST: usize = 64;
/// Most values of a file, all together: a single character each, they would take a hundred times its bytes.
const MOST_VALUES: usize = 1_000_000;
/// Most values that aliases may repeat, all together: a few lines of aliases of aliases could otherwise be
/// billions of values.
const MOST_REPEATED: usize = 100_000;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

/// Content of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A text, number, truth value or nothing, as typed. `plain`: without quotes.
    Scalar { text: String, plain: bool },
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in order; names are unique.
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Returns `true` if it is nothing: `key:` without a value, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        match &self.kind {
            Kind::Scalar { text, plain: true } => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// Returns a noun for the value, for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self.kind {
            _ if self.is_null() => "nothing",
            Kind::Scalar { .. } => "a single value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// Returns the number of values that it consists of, itself included.
    fn size(&self) -> usize {
        match &self.kind {
            Kind::Scalar { .. } => 1,
            Kind::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Kind::Map(entries) => 1 + entries.iter().map(|entry| entry.value.size()).sum::<usize>(),
        }
    }
}

/// Reads a plan file. `None`: it is neither YAML nor JSON, or nothing is in it; the problem is reported then.
pub(crate) fn parse(form: &DocumentFormat, name: &str, text: &str, problems: &mut Problems) -> Option<Node> {
    let noun = form.noun;
    if text.len() > LARGEST_TEXT {
        problems.push(too_large(noun));
        return None;
    }
    let root = match json::is_json(name, text) && !text.trim().is_empty() {
        true => Some(json::parse(text, problems)?),
        false => yaml(form, text, problems)?,
    };
    match root {
        Some(root) if !root.is_null() => Some(root),
        _ => {
            let problem = Problem::new(format!("the {noun} is empty"));
            let hint = format!("`plimsoll schema {}` describes its contents", form.schema);
            problems.push(problem.with_hint(hint));
            None
        }
    }
}

/// The problem of a file of more than [`LARGEST_TEXT`] bytes.
pub fn too_large(noun: &str) -> Problem {
    Problem::new(format!("the {noun} has more than {} MiB", LARGEST_TEXT >> 20))
        .with_hint("put data into CSV or JSON lines files, which are read piece by piece")
}

/// Reads YAML; `Some(None)`: nothing is in it.
fn yaml(form: &DocumentFormat, text: &str, problems: &mut Problems) -> Option<Option<Node>> {
    let mut builder = Builder::new(form, text, problems);
    for event in Parser::new_from_str(text) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let at = builder.offsets.byte(error.marker().index());
                // A place behind the end could not be shown.
                let start = (at as usize).min(text.trim_end().len());
                let tab = tab_behind(error.info(), text, start);
                let (start, info) = tab.map_or((start, error.info()), |at| (at, TABS));
                let width = text[start..].chars().next().map_or(1, char::len_utf8);
                let place = Place { start: start as u32, end: (start + width) as u32 };
                builder.report(from_scan(info, text, start), place);
                return None;
            }
        };
        builder.take(event)?;
    }
    Some(builder.root)
}

/// A list or mapping that is not complete yet.
struct Open {
    start: u32,
    anchor: usize,
    /// `true` if it is written in brackets, so that it ends with the closing one.
    flow: bool,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Mapping),
}

#[derive(Default)]
struct Mapping {
    entries: Vec<Entry>,
    names: HashSet<String>,
    /// The name whose value comes next.
    name: Option<(String, Place)>,
    /// Entries that `<<` adds.
    merged: Vec<Entry>,
}

struct Builder<'t, 'p> {
    noun: &'static str,
    text: &'t str,
    offsets: Offsets,
    problems: &'p mut Problems,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    repeated: usize,
    values: ValueCount,
}

/// Number of values that were read.
#[derive(Default)]
pub(super) struct ValueCount(usize);

impl ValueCount {
    /// Counts one.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add(&mut self) -> Result<(), Problem> {
        self.0 += 1;
        match self.0 > MOST_VALUES {
            true => Err(Problem::new(format!("there are more than {MOST_VALUES} values"))
                .with_hint("put data into CSV or JSON lines files, which are read piece by piece")),
            false => Ok(()),
        }
    }
}

impl<'t, 'p> Builder<'t, 'p> {
    fn new(form: &DocumentFormat, text: &'t str, problems: &'p mut Problems) -> Self {
        Self {
            noun: form.noun,
            text,
            offsets: Offsets::new(text),
            problems,
            open: Vec::new(),
            root: None,
            documents: 0,
            anchors: HashMap::new(),
            repeated: 0,
            values: ValueCount::default(),
        }
    }

    fn report(&mut self, problem: Problem, place: Place) {
        self.problems.push(problem.at(Some(place)));
    }

    /// Takes the next event; `None` if the rest makes no sense any more.
    fn take(&mut self, (event, span): (Event<'_>, Span)) -> Option<()> {
        let place = self.offsets.place(span);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem = Problem::new(format!("a second {} begins here", self.noun));
                    self.report(problem.with_hint(format!("one file holds one {}", self.noun)), place);
                    return None;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let mut plain = style == ScalarStyle::Plain;
                self.check_tag(tag.as_deref(), &mut plain, place);
                let node = Node {
                    place: self.trimmed(place),
                    kind: Kind::Scalar { text: text.into_owned(), plain },
                };
                self.add(node, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &mut false, place);
                self.begin(place, anchor, Content::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &mut false, place);
                self.begin(place, anchor, Content::Map(Mapping::default()))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(place)?,
            Event::Alias(anchor) => self.alias(anchor, place)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn begin(&mut self, place: Place, anchor: usize, content: Content) -> Option<()> {
        if self.open.len() >= DEEPEST {
            self.report(too_deep(), place);
            return None;
        }
        let flow = self.text[place.start as usize..].starts_with(['[', '{']);
        self.open.push(Open { start: place.start, anchor, flow, content });
        Some(())
    }

    fn end(&mut self, place: Place) -> Option<()> {
        let Open { start, anchor, flow, content } = self.open.pop()?;
        let (kind, last) = match content {
            Content::List(items) => {
                let last = items.last().map(|item| item.place);
                (Kind::List(items), last)
            }
            Content::Map(Mapping { mut entries, mut names, merged, .. }) => {
                let last = entries.last().map(|entry| entry.value.place.max(entry.place));
                entries.extend(merged.into_iter().filter(|entry| names.insert(entry.name.clone())));
                (Kind::Map(entries), last)
            }
        };
        let end = match last {
            Some(last) if !flow => last.end,
            _ => place.end,
        };
        let node = Node { place: self.trimmed(Place { start, end: end.max(start) }), kind };
        self.add(node, anchor)
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Option<()> {
        let Some(known) = self.anchors.get(&anchor) else {
            self.report(Problem::new("a value cannot contain itself"), place);
            return None;
        };
        let mut node = known.clone();
        self.repeated += node.size();
        if self.repeated > MOST_REPEATED {
            let message = format!("aliases repeat more than {MOST_REPEATED} values");
            self.report(Problem::new(message), place);
            return None;
        }
        if self.open.len() + deepest(&node) > DEEPEST {
            self.report(too_deep(), place);
            return None;
        }
        node.place = place;
        self.add(node, 0)
    }

    /// Adds a complete value to the list or mapping that it is in.
    fn add(&mut self, node: Node, anchor: usize) -> Option<()> {
        if let Err(problem) = self.values.add() {
            self.report(problem, node.place);
            return None;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(map) => match map.name.take() {
                None => match node.kind {
                    Kind::Scalar { text, .. } => map.name = Some((text, node.place)),
                    _ => {
                        let problem = Problem::new(format!("{} cannot be a key", node.noun()));
                        // Such a key is usually a template without its quotes: `{${a}: 1}`.
                        let problem = problem.with_hint("put a key with braces or brackets in quotes");
                        map.name = Some((String::new(), node.place));
                        self.problems.push(problem.at(Some(node.place)));
                    }
                },
                Some((text, _)) if text == "<<" => match merge(node, &mut map.merged) {
                    Ok(()) => {}
                    Err(place) => {
                        let problem = Problem::new("`<<` takes a mapping, or a list of mappings");
                        self.problems.push(problem.at(Some(place)));
                    }
                },
                Some((text, place)) => {
                    if map.names.insert(text.clone()) {
                        map.entries.push(Entry { name: text, place, value: node });
                    } else {
                        let problem = Problem::new(format!("`{}` is there twice", text.escape_debug()));
                        self.problems.push(problem.at(Some(place)));
                    }
                }
            },
        }
        Some(())
    }

    /// Refuses types that YAML leaves to programs. Those of YAML itself are redundant, except for `!!str`,
    /// which works as quotes do.
    fn check_tag(&mut self, tag: Option<&Tag>, plain: &mut bool, place: Place) {
        match tag {
            None => {}
            Some(tag) if tag.is_yaml_core_schema() => *plain &= tag.suffix != "str",
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => *plain = false,
            Some(tag) => {
                let problem = Problem::new(format!("the tag `{tag}` has no meaning here"));
                self.report(problem.with_hint("leave it out"), place);
            }
        }
    }

    /// A place without the white space at its end, which block scalars have.
    fn trimmed(&self, place: Place) -> Place {
        let text = &self.text[place.start as usize..place.end as usize];
        Place { start: place.start, end: place.start + text.trim_end().len() as u32 }
    }
}

/// The begin of the parser's complaint about a line that is indented by a tab.
const TABS: &str = "tabs disallowed";

/// The byte behind the tab that ended a value without quotes, where it indents a later line: the parser
/// complains of the value.
fn tab_behind(info: &str, text: &str, at: usize) -> Option<usize> {
    if !info.ends_with("found a tab") {
        return None;
    }
    let later = text[at..].match_indices('\n').map(|(index, _)| at + index + 1);
    let indented = later.filter_map(|line| {
        let rest = text[line..].trim_start_matches(' ');
        rest.starts_with('\t').then(|| text.len() - rest.len() + 1)
    });
    indented.min()
}

/// Translates the parser's complaint about this byte into a problem, in our words where they say more.
fn from_scan(info: &str, text: &str, at: usize) -> Problem {
    const BLOCK: &str = "while parsing a block ";
    const FLOW: &str = "while parsing a flow ";
    let problem = |what: &str| Problem::new(format!("this is not YAML: {what}"));
    match info {
        "recursion limit exceeded" => too_deep(),
        _ if info.starts_with(BLOCK) && is_first_of_line(text, at) => {
            let (own, others) = indents(text, at);
            let others: Vec<String> = others.iter().map(ToString::to_string).collect();
            let others = match others.split_last() {
                Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
                _ => others.concat(),
            };
            let problem = problem(&format!("this line is indented by {own}, unlike the entries around it"));
            problem.with_hint(format!(
                "entries of one list or mapping begin in the same column; here that is an indent of {others}"
            ))
        }
        _ if info.starts_with(TABS) => problem("the line is indented by a tab")
            .with_hint("indent by spaces: editors can be set to insert them for the tab key"),
        "mapping values are not allowed in this context" => problem("no `key: value` is allowed here")
            .with_hint(
                "a key begins in the same column as those beside it; a text with `: ` in it needs quotes",
            ),
        _ if info.starts_with(FLOW) => {
            let (open, close) = if info.contains("sequence") { ('[', ']') } else { ('{', '}') };
            if let Some(slot) = slot_within(text, at) {
                let problem = problem(&format!("a text with `${{…}}` within `{open}…{close}` needs quotes"));
                return problem.with_hint(format!("write the whole value as \"…{}…\"", slot.escape_debug()));
            }
            problem(&format!("`,` or `{close}` is missing before this"))
                .with_hint(format!("look for a `{open}` above that is not closed"))
        }
        _ => problem(info),
    }
}

/// The `${…}` whose brace this byte is, in a value without quotes within braces or brackets: the value ends
/// there.
fn slot_within(text: &str, at: usize) -> Option<&str> {
    let (before, after) = text.split_at_checked(at)?;
    let begin = before.strip_suffix('$').filter(|_| after.starts_with('{'))?.len();
    let end = after.find('}').filter(|end| !after[..*end].contains('\n'))?;
    Some(&text[begin..=at + end])
}

/// Returns `true` if only spaces precede a byte on its line.
fn is_first_of_line(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with('\n') || indent_of_last(before).is_some())
}

/// The spaces of the last line, if it has nothing else.
fn indent_of_last(text: &str) -> Option<usize> {
    let line = text.rsplit('\n').next().unwrap_or_default();
    line.bytes().all(|byte| byte == b' ').then_some(line.len())
}

/// The indent of the line of a byte, and those of the entries around it, the outer ones first.
fn indents(text: &str, at: usize) -> (usize, Vec<usize>) {
    let before = text.get(..at).unwrap_or_default();
    let mut others = Vec::new();
    let mut inner = usize::MAX;
    // The last line is the one itself.
    for line in before.lines().rev().skip(usize::from(!before.ends_with('\n'))) {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') || indent >= inner {
            continue;
        }
        inner = indent;
        // A key behind a dash counts as an entry of its own.
        if let Some(entry) = content.strip_prefix("- ").filter(|entry| entry.contains(':')) {
            others.push(line.len() - entry.trim_start().len());
        }
        others.push(indent);
    }
    others.sort_unstable();
    others.dedup();
    (indent_of_last(before).unwrap_or_default(), others)
}

pub(super) fn too_deep() -> Problem {
    Problem::new(format!("lists and mappings are nested deeper than {DEEPEST}"))
}

/// Returns the depth to which a value is nested.
fn deepest(node: &Node) -> usize {
    match &node.kind {
        Kind::Scalar { .. } => 0,
        Kind::List(items) => 1 + items.iter().map(deepest).max().unwrap_or(0),
        Kind::Map(entries) => 1 + entries.iter().map(|entry| deepest(&entry.value)).max().unwrap_or(0),
    }
}

/// Adds the entries of `<<: value`; earlier entries have precedence.
fn merge(node: Node, merged: &mut Vec<Entry>) -> Result<(), Place> {
    match node.kind {
        Kind::Map(entries) => {
            merged.extend(entries);
            Ok(())
        }
        Kind::List(items) => items.into_iter().try_for_each(|item| match item.kind {
            Kind::Map(_) => merge(item, merged),
            _ => Err(item.place),
        }),
        Kind::Scalar { .. } => Err(node.place),
    }
}

/// From characters, which the parser counts, to bytes.
struct Offsets {
    /// The byte of each character and of the end; empty for a text of ASCII.
    bytes: Vec<u32>,
    len: u32,
}

impl Offsets {
    fn new(text: &str) -> Self {
        let len = text.len() as u32;
        let bytes = match text.is_ascii() {
            true => Vec::new(),
            false => text.char_indices().map(|(at, _)| at as u32).chain([len]).collect(),
        };
        Self { bytes, len }
    }

    fn byte(&self, character: usize) -> u32 {
        match self.bytes.is_empty() {
            true => u32::try_from(character).unwrap_or(self.len).min(self.len),
            false => self.bytes.get(character).copied().unwrap_or(self.len),
        }
    }

    fn place(&self, span: Span) -> Place {
        let start = self.byte(span.start.index());
        Place { start, end: self.byte(span.end.index()).max(start) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    /// Symptom: `{Authorization: Bearer ${token}}` looked for a brace that is not closed.
    #[test]
    fn a_slot_without_quotes_within_braces_needs_quotes() {
        for (text, slot) in [
            ("{a: Bearer ${token}}", Some("${token}")),
            ("{a: ${token}}", Some("${token}")),
            ("{a: b, c: ${token}/x/${other}}", Some("${token}")),
            ("{a: {b: x${token}y}}", Some("${token}")),
            ("[a, ${token}]", Some("${token}")),
            ("- {get: /items/${id}}", Some("${id}")),
            ("{a: \"${token}\"}", None),
            ("a: Bearer ${token}", None),
        ] {
            let mut problems = Problems::default();
            let tree = parse(&Document::FORM, "plan.yaml", text, &mut problems);
            let said: Vec<String> =
                problems.iter().map(|one| format!("{}; {:?}", one.message, one.hint)).collect();
            let said = said.join("\n");
            match slot {
                Some(slot) => assert!(said.contains("needs quotes") && said.contains(slot), "{text}: {said}"),
                None => assert!(tree.is_some() && said.is_empty(), "{text}: {said}"),
            }
        }
        let mut problems = Problems::default();
        parse(&Document::FORM, "plan.yaml", "a: {b: c\nd: e", &mut problems);
        let hints: Vec<&str> = problems.iter().filter_map(|one| one.hint.as_deref()).collect();
        assert!(hints.iter().all(|hint| !hint.contains("whole value")), "{hints:?}");
    }
}
