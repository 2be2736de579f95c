//! Simulations of Gatling, in Java, Scala, JavaScript or TypeScript.
//!
//! A simulation is read and not carried out. Its language is reduced to a [tree] of calls, and the
//! calls of Gatling's own words become a plan: populations become scenarios, their injection profiles the
//! load, and what they carry out steps. Functions of a session and other parts of a program are noted with
//! their lines.

mod assertion;
mod check;
mod feeder;
mod injection;
mod java;
mod protocol;
mod request;
mod scala;
mod script;
mod steps;
mod tree;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use plimsoll_document::{
    Document, Field, Files, Problem, Problems, ScenarioSpec, Settings, StepSpec, ThresholdSpec,
};

use crate::Unchecked;
use crate::course::Load;
use crate::draft::{self, text};
use crate::findings::Findings;
use crate::flow::{self, Headed, Variables};
use crate::names::Titles;
use crate::proxy::Proxies;
use protocol::Protocol;
use tree::{Expression, Kind, Link, Span, Statement, StatementKind};

/// Most links, arguments and terms of a simulation that are followed: functions that call each other would be
/// followed without an end.
const MOST_FOLLOWED: usize = 1_000_000;

/// Names of a simulation that stand for others, in a row, at most.
const MOST_NAMES: usize = 64;

/// Largest simulation that is read, in bytes.
const LARGEST: usize = 1 << 20;

/// Settings of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The name of the file, as notes have it; its ending tells the language, unless the text does.
    pub name: String,
}

/// A language that simulations are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Java,
    Scala,
    Script,
    Kotlin,
}

/// The language of a simulation; `None` if it is none.
fn language(name: &str, text: &str) -> Option<Language> {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending {
        "kt" | "kts" => return Some(Language::Kotlin),
        "java" => return Some(Language::Java),
        "scala" | "sc" => return Some(Language::Scala),
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => return Some(Language::Script),
        _ => {}
    }
    if text.contains("@gatling.io/") {
        Some(Language::Script)
    } else if text.contains(": Simulation()") {
        Some(Language::Kotlin)
    } else if text.contains("io.gatling.javaapi") {
        Some(Language::Java)
    } else if text.contains("io.gatling") {
        Some(Language::Scala)
    } else {
        None
    }
}

/// Reads a simulation. Files that it names are looked for in `folder`, which the plan file has to be in as
/// well, and in the folder `resources` beside those above it.
///
/// # Errors
/// All problems with it.
pub fn import(
    text: &[u8],
    options: &Options,
    folder: &Path,
    files: &dyn Files,
) -> Result<Unchecked, Problems> {
    let name = if options.name.is_empty() { "simulation" } else { options.name.as_str() };
    let hint = "the file has to be a simulation of Gatling in Java, Scala, JavaScript or TypeScript";
    let wrong = |line: usize, message: &str| -> Problems {
        Problem::new(format!("{name}:{line}: {message}")).with_hint(hint).into()
    };
    if text.len() > LARGEST {
        return Err(wrong(1, "it is longer than 1 MiB"));
    }
    let Ok(text) = std::str::from_utf8(text) else { return Err(wrong(1, "it is not UTF-8")) };
    let text = text.trim_start_matches('\u{feff}');
    let refused = |refused: crate::syntax::Refused| wrong(refused.line, &refused.message);
    let statements = match language(name, text) {
        Some(Language::Java) => java::parse(text).map_err(refused)?,
        Some(Language::Scala) => scala::parse(text).map_err(refused)?,
        Some(Language::Script) => script::parse(name, text)?,
        Some(Language::Kotlin) => {
            let message = "simulations in Kotlin are not read";
            let hint =
                "write it in Java, which has the same words, or convert a recording: plimsoll import har";
            return Err(Problem::new(format!("{name}: {message}")).with_hint(hint).into());
        }
        None => return Err(wrong(1, "it is not a simulation of Gatling")),
    };
    let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut importer = Importer {
        name: name.to_owned(),
        text,
        lines,
        findings: Findings::default(),
        variables: Variables::new(value::SYNTAX),
        document: Document::default(),
        settings: Settings::default(),
        thresholds: Vec::new(),
        definitions: BTreeMap::new(),
        set_ups: Vec::new(),
        protocol: Protocol::default(),
        followed: 0,
        depth: 0,
        steps: 0,
        titles: Titles::default(),
        requests: Vec::new(),
        follows: Vec::new(),
        proxies: Proxies::default(),
        counters: Vec::new(),
        fed: BTreeSet::new(),
        optional: BTreeSet::new(),
        headed: Headed::default(),
        folder,
        files,
    };
    importer.collect(&statements, "");
    importer.simulation();
    importer.finish()
}

/// A request that became a step.
#[derive(Clone, Debug)]
struct Made {
    scenario: String,
    step: String,
    /// The groups and the name as assertions have them.
    path: Vec<String>,
}

/// A simulation on its way to a document.
struct Importer<'a> {
    name: String,
    text: &'a str,
    /// Places of the beginnings of lines.
    lines: Vec<usize>,
    findings: Findings,
    variables: Variables,
    document: Document,
    settings: Settings,
    thresholds: Vec<ThresholdSpec>,
    /// Values and functions by their names, and by those of their class or object and a point in front.
    definitions: BTreeMap<String, Expression>,
    set_ups: Vec<Expression>,
    protocol: Protocol,
    followed: usize,
    depth: usize,
    steps: usize,
    /// Names of scenarios.
    titles: Titles,
    requests: Vec<Made>,
    /// For each request: where it is, and `true` if redirects are followed.
    follows: Vec<(String, bool)>,
    proxies: Proxies,
    /// Counters of loops that are written out, with their values.
    counters: Vec<(String, String)>,
    /// Feeders that are sources of data already, by what is written there.
    fed: BTreeSet<String>,
    headed: Headed,
    /// Variables of responses that may lack the value, and are empty then.
    optional: BTreeSet<String>,
    folder: &'a Path,
    files: &'a dyn Files,
}

impl Importer<'_> {
    /// `BasicSimulation.java:12`.
    fn at(&self, span: Span) -> String {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        format!("{}:{line}", self.name)
    }

    fn said(&self, span: Span) -> String {
        self.text.get(span.start..span.end).unwrap_or_default().to_owned()
    }

    fn note(&mut self, span: Span, becomes: &str) {
        let (at, said) = (self.at(span), self.said(span));
        self.findings.note(at, &said, becomes);
    }

    /// A note about a call, without what it is called with.
    fn note_call(&mut self, link: Span, name: &str, becomes: &str) {
        let at = self.at(link);
        self.findings.note(at, name, becomes);
    }

    /// Returns `false` once too much has been followed, which is reported.
    fn goes_on(&mut self, more: usize, span: Span) -> bool {
        let before = self.followed;
        self.followed = before.saturating_add(more);
        if self.followed <= MOST_FOLLOWED {
            return true;
        }
        if before <= MOST_FOLLOWED {
            let at = self.at(span);
            let message = format!("there are more than {MOST_FOLLOWED} calls and values to follow");
            self.findings.problem(&at, message);
        }
        false
    }

    /// Keeps the names of definitions, and the calls of `setUp`.
    fn collect(&mut self, statements: &[Statement], owner: &str) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Within(name, inner) => self.collect(inner, name),
                StatementKind::Define(name, value) => {
                    if let (Kind::Lambda(hook), "before" | "after") = (&value.kind, name.as_str()) {
                        if !hook.body.is_empty() {
                            self.note_hook(value.span, name);
                        }
                        continue;
                    }
                    if !owner.is_empty() {
                        self.definitions.insert(format!("{owner}.{name}"), value.clone());
                    }
                    self.definitions.insert(name.clone(), value.clone());
                }
                StatementKind::Expression(value) => match value.chain() {
                    Some(("setUp", _)) => self.set_ups.push(value.clone()),
                    Some(("simulation", [Link { arguments: Some(arguments), .. }])) => {
                        if let [Expression { kind: Kind::Lambda(function), .. }] = &arguments[..] {
                            self.collect(&function.body, owner);
                        }
                    }
                    Some((hook @ ("before" | "after"), _)) => self.note_hook(value.span, hook),
                    _ => self.note(value.span, "it is a part of a program: it is left out"),
                },
                StatementKind::Return(_) => {}
                StatementKind::Other => {
                    self.note(statement.span, "it is a part of a program: it is left out");
                }
            }
        }
    }

    fn note_hook(&mut self, span: Span, name: &str) {
        self.note_call(
            span,
            name,
            "what is done before and after the load is left out: do it beside the run",
        );
    }

    /// The expression with the values of names in their places, as far as they are defined here.
    fn resolved(&mut self, expression: &Expression) -> Expression {
        let mut current = expression.clone();
        for _ in 0..MOST_NAMES {
            let Some((name, links)) = current.chain() else { break };
            if !self.goes_on(1 + links.len(), current.span) {
                break;
            }
            let span = current.span;
            let member = links.first().filter(|link| link.name != "new" && !link.name.is_empty());
            // Packages, and classes that only hold Gatling's words.
            let is_owner = ["this", "super", "CoreDsl", "HttpDsl", "Predef"].contains(&name);
            let is_package = ["java", "io", "scala"].contains(&name);
            if let (true, Some(link)) = (is_owner || is_package, member) {
                let head = Expression::name(&link.name, span);
                let called = link.arguments.clone().map(|arguments| Link {
                    span: link.span,
                    name: String::new(),
                    arguments: Some(arguments),
                });
                let rest: Vec<Link> = called.into_iter().chain(links[1..].iter().cloned()).collect();
                if is_package && head_is_package(&link.name) {
                    // The next part of the name takes the place of the package.
                    current = Expression::name("io", span).followed(&rest);
                    if rest.is_empty() {
                        break;
                    }
                } else {
                    current = head.followed(&rest);
                }
                continue;
            }
            // `new Search().flow` is `Search.flow`.
            if links.first().is_some_and(|link| link.name == "new") && links.len() > 1 {
                current = Expression::name(name, span).followed(&links[1..]);
                continue;
            }
            let qualified = member.map(|link| format!("{name}.{}", link.name));
            let (value, rest) = match qualified.and_then(|name| self.definitions.get(&name)) {
                Some(value) => {
                    let link = &links[0];
                    let called = link.arguments.clone().map(|arguments| Link {
                        span: link.span,
                        name: String::new(),
                        arguments: Some(arguments),
                    });
                    let rest: Vec<Link> = called.into_iter().chain(links[1..].iter().cloned()).collect();
                    (value.clone(), rest)
                }
                None => match self.definitions.get(name) {
                    // A word of Gatling that has its own name here: `val pause = pause(1)`.
                    Some(value) if is_word(value, name, links) => break,
                    Some(value) => (value.clone(), links.to_vec()),
                    None => break,
                },
            };
            match self.applied(value, &rest, span) {
                Some(next) => current = next,
                None => break,
            }
        }
        current
    }

    /// A value with links behind it: functions are called, and members of objects are taken.
    fn applied(&mut self, value: Expression, links: &[Link], span: Span) -> Option<Expression> {
        match (&value.kind, links.first()) {
            (Kind::Lambda(function), first) => {
                let call = first.filter(|link| link.name.is_empty());
                if call.is_none() && !function.parameters.is_empty() {
                    return None;
                }
                let arguments = call.and_then(|link| link.arguments.clone()).unwrap_or_default();
                let function = Arc::clone(function);
                let result = self.result(&function, &arguments, span)?;
                Some(result.followed(&links[usize::from(call.is_some())..]))
            }
            (Kind::Pairs(pairs), Some(link)) if link.arguments.is_none() => {
                let is = |key: &Expression| matches!(&key.kind, Kind::String(key) if *key == link.name);
                let (_, member) = pairs.iter().find(|(key, _)| is(key))?;
                Some(member.clone().followed(&links[1..]))
            }
            _ => Some(value.followed(links)),
        }
    }

    /// The value of a function for these arguments, if its statements give names to values and nothing more.
    fn result(
        &mut self,
        function: &tree::Function,
        arguments: &[Expression],
        span: Span,
    ) -> Option<Expression> {
        let mut values = BTreeMap::new();
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            values.insert(parameter.clone(), argument.clone());
        }
        let mut size = 0;
        let mut result = None;
        for statement in &function.body {
            match &statement.kind {
                StatementKind::Define(name, value) => {
                    let value = value.with(&values, &mut size);
                    values.insert(name.clone(), value);
                }
                StatementKind::Return(value) => {
                    result = Some(value.with(&values, &mut size));
                    break;
                }
                _ => self.note(statement.span, "it is a part of a program: it is left out"),
            }
            if !self.goes_on(size, span) {
                return None;
            }
        }
        if self.goes_on(size, span) { result } else { None }
    }

    fn simulation(&mut self) {
        let set_ups = std::mem::take(&mut self.set_ups);
        let Some(set_up) = set_ups.first() else {
            let at = self.at(Span::default());
            let hint = "a simulation calls `setUp` with its scenarios and their injection profiles";
            self.findings.hinted(&at, "there is no `setUp`", hint);
            return;
        };
        for further in &set_ups[1..] {
            self.note_call(further.span, "setUp", "there is one already: this one is left out");
        }
        self.set_up(set_up);
        let is_empty = self.document.scenarios.is_empty();
        if is_empty && !self.findings.has_problems() {
            let at = self.at(set_up.span);
            let hint = "a scenario carries out requests, `http(\"name\").get(\"/path\")`";
            self.findings.without_requests(&at, hint);
        }
    }

    fn load(&mut self, at: &str, courses: &[crate::course::Course]) {
        let mut load = Load {
            document: &mut self.document,
            settings: &mut self.settings,
            findings: &mut self.findings,
            at,
        };
        load.put(courses);
    }

    fn finish(mut self) -> Result<Unchecked, Problems> {
        let most = self.protocol.most_redirects.clone().unwrap_or_else(|| "20".to_owned());
        let follows = std::mem::take(&mut self.follows);
        let said = "disableFollowRedirect";
        flow::follow(&follows, (&most, said), &mut self.settings, &mut self.findings);
        self.proxies.settle("proxy", &mut self.settings, &mut self.findings);
        self.document.thresholds = std::mem::take(&mut self.thresholds).into_iter().map(Field::new).collect();
        flow::settle(&mut self.document, self.variables, &mut self.findings);
        self.headed.release(&mut self.document);
        self.document.run = flow::run(self.settings);
        self.findings.finish_whole(self.document)
    }
}

/// Returns `true` if the name is a word of Gatling, although a value has it here, too: it is called, or the
/// value is no call of that word.
fn is_word(value: &Expression, name: &str, links: &[Link]) -> bool {
    let is_call = |links: &[Link]| links.first().is_some_and(|link| link.name.is_empty());
    value.chain().is_some_and(|(head, rest)| head == name && (is_call(links) || !is_call(rest)))
}

/// Returns `true` for a part of a package's name.
fn head_is_package(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// A scenario with these headers.
fn scenario(title: &str, steps: Vec<StepSpec>, headers: &[(String, String)]) -> Field<ScenarioSpec> {
    let mut drafted = draft::scenario(title, steps);
    drafted.cookies = Field::new(true);
    for (name, value) in headers {
        drafted.headers.push(name.as_str(), text(value.as_str()));
    }
    Field::new(drafted)
}
