//! Scripts of k6, in JavaScript or TypeScript.
//!
//! A script is read, not carried out: constants, functions that are called, loops over lists that are
//! written out and the like are followed, so that the requests of its functions become steps. Everything else
//! is noted with its place. Files of Locust are followed in the same way: their Python becomes the same tree.

pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod data;
pub(crate) mod evaluate;
pub(crate) mod http;
pub(crate) mod kept;
pub(crate) mod load;
pub(crate) mod lost;
mod module;
mod options;
mod parse;
mod provided;
pub(crate) mod statement;
pub(crate) mod syntax;
mod threshold;
pub(crate) mod typed;
pub(crate) mod value;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use plimsoll_document::{
    Document, Field, Files, ParallelStep, Problems, Settings, StepSpec, TargetSpec, ThresholdSpec,
};

use crate::draft::{self, text};
use crate::findings::Findings;
use crate::flow::check::{self as checks, Place};
use crate::flow::{self, Headed, Slot, Syntax, Variables};
use crate::locust::{Defined, Session};
use crate::names::Titles;
use crate::{MOST_STEPS, Unchecked};
use data::{CsvFile, Source};
use lost::{Block, Course};
use syntax::{Script, Span};
use value::{Part, Text, Uniform, Value, Writing};

/// Texts are put together here, without slots of another syntax.
pub(crate) const SYNTAX: Syntax =
    Syntax { open: "\u{0}{", close: "}\u{0}", slot: |inside| Slot::Unknown(inside.to_owned()) };

/// Most expressions that are examined: functions may call each other very often.
pub(crate) const MOST_EVALUATED: usize = 300_000;

/// Longest text that expressions of a script make, in bytes.
const LONGEST_TEXT: usize = 1 << 20;

/// Most bytes of all texts of a plan together.
const MOST_TEXT: usize = 64 << 20;

/// Most elements of a list that is put together.
pub(crate) const MOST_ITEMS: usize = 100_000;

/// Choices of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the script, for notes and for the modules beside it.
    pub name: String,
    /// Values of `__ENV`, as `k6 run -e` gives them.
    pub environment: BTreeMap<String, String>,
    /// Only this scenario of the script's options.
    pub scenario: Option<String>,
}

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    JavaScript,
    Python,
}

impl Language {
    /// The text that the language makes of a value that is known.
    pub(crate) fn shown(self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Python, Value::Boolean(true)) => Some("True".to_owned()),
            (Self::Python, Value::Boolean(false)) => Some("False".to_owned()),
            (Self::Python, Value::Null | Value::Undefined) => Some("None".to_owned()),
            (Self::Python, Value::Array(items)) => {
                let items: Option<Vec<String>> = items.iter().map(represented).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            _ => value.constant(),
        }
    }
}

/// An element of a list as Python shows it (`repr`).
fn represented(item: &Value) -> Option<String> {
    let Value::String(text) = item else { return Language::Python.shown(item) };
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c == quote => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown.push(quote);
    Some(shown)
}

/// Reads a script. Files that it names are looked for in `folder`, which the plan file has to be in as well.
///
/// # Errors
/// All problems with it.
pub fn import(
    source: &[u8],
    options: &Options,
    folder: &Path,
    files: &dyn Files,
) -> Result<Unchecked, Problems> {
    let mut importer = Importer::new(options, folder, files);
    let name = if options.name.is_empty() { "script.js" } else { &options.name };
    match importer.module(name, source) {
        Ok(module) => importer.script(module),
        Err(problems) => return Err(problems),
    }
    importer.finish()
}

/// A request on its way to a step.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) step: StepSpec,
    pub(crate) at: String,
    pub(crate) follows: bool,
    /// `true` if the request is made once for a run, beside the scenarios.
    pub(crate) is_once: bool,
    /// The tag `name`.
    pub(crate) tag: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) scenario: usize,
    /// Variables that are taken from it, by their places.
    pub(crate) taken: Vec<(Place, String)>,
}

/// One part of a scenario, in order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time")]
pub(crate) enum Item {
    Request(usize),
    Step(StepSpec),
    Branch(String, Vec<Item>, Vec<Item>),
    Repeat(String, Vec<Item>),
    Parallel(Vec<usize>),
    /// A variable gets a number that is drawn, if anything reads it.
    Draw(usize),
}

/// A number that is drawn once, and kept by a variable of the script.
#[derive(Debug)]
pub(crate) struct Draw {
    pub(crate) uniform: Uniform,
    /// Name of that variable.
    pub(crate) wish: String,
    /// The variable of the plan.
    pub(crate) variable: Option<String>,
    /// `true` if the number is drawn before anything else.
    pub(crate) is_first: bool,
}

/// Names and their values in a function or a block.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) parent: Option<usize>,
    pub(crate) names: HashMap<String, Value>,
}

/// A script on its way to a document.
pub(crate) struct Importer<'a> {
    pub(crate) findings: Findings,
    pub(crate) variables: Variables,
    pub(crate) document: Document,
    pub(crate) settings: Settings,
    pub(crate) thresholds: Vec<ThresholdSpec>,
    pub(crate) language: Language,
    /// Classes, by their numbers.
    pub(crate) classes: Vec<Defined>,
    /// The settings of the client of one user.
    pub(crate) session: Session,
    pub(crate) options: &'a Options,
    pub(crate) folder: &'a Path,
    pub(crate) files: &'a dyn Files,
    pub(crate) scripts: Vec<Arc<Script>>,
    /// The exports of each script, by their names.
    pub(crate) exports: Vec<BTreeMap<String, Value>>,
    /// Scripts by their paths; `None` while they are read.
    pub(crate) known: BTreeMap<String, Option<usize>>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) requests: Vec<Request>,
    /// Names for values of responses, by the number of the request.
    pub(crate) wishes: BTreeMap<usize, Vec<(Place, String)>>,
    /// Items of the blocks that are open.
    pub(crate) items: Vec<Vec<Item>>,
    pub(crate) sources: Vec<Source>,
    pub(crate) csv_files: Vec<CsvFile>,
    pub(crate) headed: Headed,
    pub(crate) groups: Vec<String>,
    /// Values of `__ENV` of the scenario.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) draws: Vec<Draw>,
    /// A function has ended the iteration.
    pub(crate) is_ending: bool,
    /// The statements outside of functions are read.
    pub(crate) is_first: bool,
    /// The scenario has one user only.
    pub(crate) is_alone: bool,
    /// Iterations of the scenario, if their number ends it.
    pub(crate) iterations: Option<u64>,
    /// `true` while a function is read that is carried out once for a run.
    pub(crate) is_once: bool,
    /// Blocks that are open, and may or may not be carried out.
    pub(crate) blocks: Vec<Block>,
    /// Of the function that is followed.
    pub(crate) course: Course,
    /// Places that were refused, as they depend on something that is not followed.
    pub(crate) refused: BTreeSet<Span>,
    pub(crate) titles: Titles,
    pub(crate) scenario: String,
    /// Scenarios so far.
    pub(crate) scenarios: usize,
    /// URLs of servers, which are templates of the environment at most.
    pub(crate) targets: Vec<String>,
    /// Statuses that all requests expect.
    pub(crate) statuses: Option<Vec<String>>,
    pub(crate) most_redirects: String,
    /// `true` once the meaning of checks in a plan is noted.
    pub(crate) has_checks: bool,
    /// Functions that were called, by their places.
    pub(crate) called: BTreeSet<Span>,
    pub(crate) dollar: Option<String>,
    pub(crate) depth: usize,
    pub(crate) evaluated: usize,
    /// That the script goes on too long was said.
    pub(crate) is_too_long: bool,
    pub(crate) steps: usize,
    /// Bytes of texts so far.
    pub(crate) text: usize,
}

impl<'a> Importer<'a> {
    pub(crate) fn new(options: &'a Options, folder: &'a Path, files: &'a dyn Files) -> Self {
        Self {
            findings: Findings::default(),
            variables: Variables::new(SYNTAX),
            document: Document::default(),
            settings: Settings::default(),
            thresholds: Vec::new(),
            language: Language::JavaScript,
            classes: Vec::new(),
            session: Session::default(),
            options,
            folder,
            files,
            scripts: Vec::new(),
            exports: Vec::new(),
            known: BTreeMap::new(),
            scopes: Vec::new(),
            requests: Vec::new(),
            wishes: BTreeMap::new(),
            items: vec![Vec::new()],
            sources: Vec::new(),
            csv_files: Vec::new(),
            headed: Headed::default(),
            groups: Vec::new(),
            environment: BTreeMap::new(),
            draws: Vec::new(),
            is_ending: false,
            is_first: true,
            is_alone: false,
            iterations: None,
            is_once: false,
            blocks: Vec::new(),
            course: Course::default(),
            refused: BTreeSet::new(),
            titles: Titles::default(),
            scenario: "default".to_owned(),
            scenarios: 0,
            targets: Vec::new(),
            statuses: None,
            most_redirects: "10".to_owned(),
            has_checks: false,
            called: BTreeSet::new(),
            dollar: None,
            depth: 0,
            evaluated: 0,
            is_too_long: false,
            steps: 0,
            text: 0,
        }
    }

    /// `script.js:12`.
    pub(crate) fn at(&self, span: Span) -> String {
        self.scripts.get(span.module).map(|script| script.place(span)).unwrap_or_default()
    }

    pub(crate) fn said(&self, span: Span) -> String {
        self.scripts.get(span.module).map(|script| script.said(span).to_owned()).unwrap_or_default()
    }

    /// A note about the text there.
    pub(crate) fn note(&mut self, span: Span, becomes: impl Into<String>) {
        let (at, said) = (self.at(span), self.said(span));
        self.findings.note(at, &said, becomes);
    }

    /// A note about a call that is left out, and may send requests.
    pub(crate) fn left_out(&mut self, span: Span, becomes: &str) {
        let (at, said) = (self.at(span), self.said(span));
        self.findings.lose(&at, &said, becomes);
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.steps += 1;
        if self.steps == MOST_STEPS + 1 {
            self.findings.problem(&self.scenario, format!("there are more than {MOST_STEPS} steps"));
        }
        if self.steps <= MOST_STEPS
            && let Some(items) = self.items.last_mut()
        {
            items.push(item);
        }
    }

    /// The template of a text.
    pub(crate) fn written(&mut self, text: &Text, writing: Writing) -> String {
        if self.text > MOST_TEXT {
            return String::new();
        }
        let variables = &mut self.variables;
        let dollar = &mut self.dollar;
        let template =
            text.template(writing, || dollar.get_or_insert_with(|| variables.take("dollar")).clone());
        self.text += template.len();
        if self.text > MOST_TEXT {
            self.findings.problem(&self.scenario, "all texts together are too long");
        }
        template
    }

    /// The name of the variable that is taken from there.
    pub(crate) fn taken(&mut self, request: usize, place: &Place, wish: &str) -> String {
        let known = &self.requests[request].taken;
        if let Some((_, name)) = known.iter().find(|(known, _)| known == place) {
            return name.clone();
        }
        let wished = self.wishes.get(&request).and_then(|all| all.iter().find(|(known, _)| known == place));
        let wish = wished.map_or(wish, |(_, name)| name).to_owned();
        let wish = wish.as_str();
        let name = self.variables.fresh(wish, None);
        let extract = checks::extract(place);
        self.requests[request].step.extract.push(name.as_str(), Field::new(extract));
        self.requests[request].taken.push((place.clone(), name.clone()));
        name
    }

    /// A value that has no text before the run: a variable that is empty.
    pub(crate) fn empty(&mut self, span: Span) -> Text {
        let said = self.said(span);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let wish = said.trim_end_matches(|c| !is_name(c)).rsplit(|c| !is_name(c)).next().unwrap_or_default();
        let wish = if wish.is_empty() { "value" } else { wish };
        let name = self.variables.fresh(wish, Some(String::new()));
        let becomes = format!(
            "its value comes from a program, which is not carried out: it is the variable `{name}`, which \
             is empty; give it a value under `variables`"
        );
        self.note(span, becomes);
        Text::slot(name)
    }

    /// The text of a value.
    pub(crate) fn text_of(&mut self, value: &Value, span: Span) -> Text {
        if let Some(text) = self.language.shown(value) {
            let is_number = matches!(value, Value::Number(_) | Value::Boolean(_) | Value::Null);
            let mut known = Text { is_number, ..Text::default() };
            known.push(Part::Literal(text));
            return known;
        }
        match value {
            Value::Lost(lost) => {
                self.refuse(span, lost);
                Text::default()
            }
            Value::Text(text) => text.clone(),
            Value::Json(value) => {
                let template = self.json_text(value, span);
                Text::slot(self.variable("json", template))
            }
            Value::Uniform(Uniform { draw: Some(draw), .. }) => {
                let name = match &self.draws[*draw].variable {
                    Some(name) => name.clone(),
                    None => {
                        let Draw { uniform, wish, is_first, .. } = &self.draws[*draw];
                        let first = is_first.then(|| format!("${{{}}}", uniform.slot()));
                        self.variables.fresh(wish, first)
                    }
                };
                self.draws[*draw].variable = Some(name.clone());
                Text { is_number: true, ..Text::slot(name) }
            }
            Value::Uniform(uniform) => Text { is_number: true, is_drawn: true, ..Text::slot(uniform.slot()) },
            Value::Counter(counter) => self.counter(*counter, span),
            Value::Taken(request, place) => {
                let wish = wish(place);
                Text::slot(self.taken(*request, &place.clone(), &wish))
            }
            Value::Body(request, path) if path.is_empty() => {
                Text::slot(self.taken(*request, &Place::Body, "body"))
            }
            Value::Body(request, path) => {
                let place = Place::Json(checks::json_pointer(path));
                let wish = wish(&place);
                Text::slot(self.taken(*request, &place, &wish))
            }
            Value::Row(source, path) => self.column(*source, path, false, span),
            Value::File(path) => match self.read(path, span) {
                Some(content) => Text::of(Part::Literal(content)),
                None => Text::default(),
            },
            Value::Array(items) => {
                let mut joined = Text::default();
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        joined.push(Part::Literal(",".to_owned()));
                    }
                    let item = self.text_of(item, span);
                    joined.append(item);
                }
                joined
            }
            _ => self.empty(span),
        }
    }

    /// A variable that has this template's text from here on.
    pub(crate) fn variable(&mut self, wish: &str, template: String) -> String {
        if self.is_first {
            return self.variables.fresh(wish, Some(template));
        }
        let name = self.variables.fresh(wish, None);
        self.push(Item::Step(flow::set([(name.clone(), template)])));
        name
    }

    /// The steps of items.
    pub(crate) fn steps_of(&mut self, items: Vec<Item>) -> Vec<StepSpec> {
        let mut steps = Vec::new();
        for item in items {
            match item {
                Item::Request(request) => steps.push(self.requests[request].step.clone()),
                Item::Step(step) => steps.push(step),
                Item::Draw(draw) => {
                    let Draw { uniform, variable, .. } = &self.draws[draw];
                    if let Some(name) = variable {
                        steps.push(flow::set([(name.clone(), format!("${{{}}}", uniform.slot()))]));
                    }
                }
                Item::Branch(condition, then, otherwise) => {
                    let (then, otherwise) = (self.steps_of(then), self.steps_of(otherwise));
                    match (then.is_empty(), otherwise.is_empty()) {
                        (true, true) => {}
                        (true, false) => steps.push(flow::branch(format!("not ({condition})"), otherwise)),
                        (false, is_all) => {
                            let mut step = flow::branch(condition, then);
                            if let plimsoll_document::StepKind::Branch(branch) = &mut step.kind
                                && !is_all
                            {
                                branch.otherwise = flow::fields(otherwise);
                            }
                            steps.push(step);
                        }
                    }
                }
                Item::Repeat(times, inner) => {
                    let inner = self.steps_of(inner);
                    if !inner.is_empty() {
                        steps.push(flow::repeat(times, inner));
                    }
                }
                Item::Parallel(requests) => {
                    let inner: Vec<StepSpec> =
                        requests.iter().map(|request| self.requests[*request].step.clone()).collect();
                    match inner.len() {
                        0 => {}
                        1 => steps.extend(inner),
                        _ => steps.push(ParallelStep::new(inner).into()),
                    }
                }
            }
        }
        steps
    }

    pub(crate) fn finish(mut self) -> Result<Unchecked, Problems> {
        let follows: Vec<(String, bool)> =
            self.requests.iter().map(|request| (request.at.clone(), request.follows)).collect();
        let most = self.most_redirects.clone();
        let said = match self.language {
            Language::JavaScript => "redirects: 0",
            Language::Python => "allow_redirects=False",
        };
        flow::follow(&follows, (&most, said), &mut self.settings, &mut self.findings);
        self.put_sources();
        if let Some(dollar) = self.dollar.take() {
            self.document.variables.push(dollar, text("$"));
        }
        self.put_targets();
        self.document.thresholds = std::mem::take(&mut self.thresholds).into_iter().map(Field::new).collect();
        flow::settle(&mut self.document, self.variables, &mut self.findings);
        self.headed.release(&mut self.document);
        let is_plain = |url: &str| url.starts_with("http://") || url.starts_with("${");
        let all_plain = self
            .document
            .targets
            .0
            .iter()
            .all(|(_, _, target)| target.url.get().is_some_and(|url| is_plain(url.as_str())));
        if all_plain && !self.document.targets.is_empty() && !self.settings.insecure.is_absent() {
            let becomes = "it has no effect without https, and is left out";
            self.findings.note("options", "insecureSkipTLSVerify", becomes);
            self.settings.insecure = Field::Absent;
        }
        self.document.run = flow::run(self.settings);
        self.findings.finish_whole(self.document)
    }

    /// The servers. Steps need no name of the only one.
    pub(crate) fn put_targets(&mut self) {
        if self.targets.len() == 1 {
            for steps in self.document.step_lists_mut() {
                flow::each_request(steps, &mut |step| step.target = Field::Absent);
            }
        }
        for (index, url) in std::mem::take(&mut self.targets).into_iter().enumerate() {
            let mut target = TargetSpec::default();
            target.url = text(url);
            self.document.targets.push(target_name(index), target);
        }
    }
}

/// The name of a server by its number.
pub(crate) fn target_name(index: usize) -> String {
    if index == 0 { "server".to_owned() } else { format!("server_{}", index + 1) }
}

/// A name for a variable with the value there.
pub(crate) fn wish(place: &Place) -> String {
    match place {
        Place::Status => "status".to_owned(),
        Place::Body => "body".to_owned(),
        Place::Header(name) | Place::Cookie(name) | Place::Xpath(name) => name.to_ascii_lowercase(),
        Place::Json(path) if path.starts_with('$') => typed::name(path).to_owned(),
        Place::Json(path) => path
            .rsplit('/')
            .find(|part| !part.is_empty() && !part.bytes().all(|byte| byte.is_ascii_digit()))
            .unwrap_or("value")
            .to_owned(),
    }
}

/// A title without slots.
pub(crate) fn title(wish: &str) -> String {
    flow::title(wish, "request").replace(['\r', '\n'], " ")
}

/// A literal text as a template.
pub(crate) fn escaped(text: &str) -> String {
    draft::escaped(text)
}
