//! Test plans of JMeter (`.jmx`).
//!
//! Thread groups become scenarios, and their threads users. Elements that apply to all requests below a place
//! of the tree there (headers, defaults, timers, assertions and extractors) are written to each of them here.

mod check;
mod function;
mod load;
mod sampler;
mod scope;
mod stepped;
mod tree;

use std::path::Path;

use plimsoll_document::{Document, Field, Files, ParallelStep, Problems, Settings, StepSpec, ThresholdSpec};

use self::load::Group;
use self::scope::Scope;
use self::tree::{Node, nodes};
use crate::course::Course;
use crate::draft::{self, text};
use crate::findings::Findings;
use crate::flow::{self, Headed, Syntax, Variables};
use crate::names::Titles;
use crate::proxy::Proxies;
use crate::{MOST_STEPS, Unchecked, xml};

/// A controller of a plugin, which carries out its steps at once.
const PARALLEL: &str = "ParallelSampler";

/// JMeter's way of writing slots.
const SYNTAX: Syntax = Syntax { open: "${", close: "}", slot: function::slot };

const HINT: &str = "the file has to be a test plan of JMeter, as it saves it (.jmx)";

/// The most work for elements that apply to all requests around them, in settings and parts of their texts:
/// each element of a group is written to each of its requests.
const MOST_WRITTEN: usize = 10_000_000;

/// Reads a test plan. Files that it names are looked for in `folder`, which the plan file has to be in as
/// well.
///
/// # Errors
/// All problems with it.
pub fn import(text: &[u8], folder: &Path, files: &dyn Files) -> Result<Unchecked, Problems> {
    let root = xml::parse(text)?;
    let mut importer = Importer {
        findings: Findings::default(),
        variables: Variables::new(SYNTAX),
        document: Document::default(),
        settings: Settings::default(),
        thresholds: Vec::new(),
        headed: Headed::default(),
        groups: Vec::new(),
        throughput: None,
        shaped: None,
        steps: 0,
        written: 0,
        follows: Vec::new(),
        proxies: Proxies::default(),
        https: None,
        titles: Titles::default(),
        names: Titles::default(),
        names_once: [Titles::default(), Titles::default()],
        folder,
        files,
    };
    if root.name != "jmeterTestPlan" {
        return Err(Findings::fail("", "the outermost element is no `jmeterTestPlan`", HINT));
    }
    let plans = nodes(root.child("hashTree"), "");
    importer.plans(&plans);
    importer.finish()
}

/// A test plan on its way to a document.
struct Importer<'a> {
    findings: Findings,
    variables: Variables,
    document: Document,
    settings: Settings,
    thresholds: Vec<ThresholdSpec>,
    headed: Headed,
    groups: Vec<Group>,
    /// Requests per minute that a timer asks for, `true` if each thread has as many, and its place.
    throughput: Option<(crate::amount::Ratio, bool, String)>,
    /// Requests per second over time that a timer asks for.
    shaped: Option<Course>,
    /// Steps so far.
    steps: usize,
    /// Settings that were written to requests so far.
    written: usize,
    /// For each request: where it is, and `true` if redirects are followed.
    follows: Vec<(String, bool)>,
    /// The proxies of requests.
    proxies: Proxies,
    /// The first request over TLS.
    https: Option<String>,
    /// Names of scenarios, and those of steps of the scenario that is read.
    titles: Titles,
    names: Titles,
    /// Names of the steps that are carried out once: after the load, and before it.
    names_once: [Titles; 2],
    folder: &'a Path,
    files: &'a dyn Files,
}

/// Surroundings of a step.
#[derive(Clone, Copy)]
struct Within<'s> {
    scenario: &'s str,
    /// `true` if the iteration goes on after a request that has failed.
    continues: bool,
}

impl Importer<'_> {
    fn plans(&mut self, plans: &[Node<'_>]) {
        for plan in plans {
            if plan.kind() != "TestPlan" {
                self.left_out(plan);
                continue;
            }
            if let Some(name) = plan.element.attribute("testname").filter(|name| !name.trim().is_empty()) {
                self.document.name = draft::text(draft::escaped(name));
            }
            if let Some(variables) = plan.inner("TestPlan.user_defined_variables") {
                self.define(plan, variables);
            }
            if plan.flag("TestPlan.serialize_threadgroups") {
                let becomes =
                    "groups go on at the same time here: run them one by one, each from a file of its own";
                self.findings.note(plan.at(), "TestPlan.serialize_threadgroups", becomes);
            }
            let mut scope = Scope::default();
            self.enter(&plan.below, &mut scope);
            let groups: Vec<&Node<'_>> = plan
                .below
                .iter()
                .filter(|node| node.enabled && node.kind().ends_with("ThreadGroup"))
                .collect();
            for group in &groups {
                self.group(group, &scope);
            }
            for node in plan.below.iter().filter(|node| node.enabled && !is_known_here(node)) {
                self.left_out(node);
            }
        }
        if self.groups.is_empty() && !self.findings.has_problems() {
            self.findings.hinted("", "there is no thread group with a request of HTTP that is enabled", HINT);
        }
    }

    /// A thread group, which becomes a scenario.
    fn group(&mut self, group: &Node<'_>, outer: &Scope<'_>) {
        let kind = group.kind();
        let (course, load) = if stepped::PLAIN.contains(&kind) {
            (None, self.group_load(group))
        } else {
            (self.course(group), self.stepped_load(group))
        };
        let Some(load) = load else { return };
        let mut scope = outer.clone();
        self.enter(&group.below, &mut scope);
        if ["SetupThreadGroup", "PostThreadGroup"].contains(&kind) {
            return self.once(group, &load, &scope, kind == "SetupThreadGroup");
        }
        let name = self.titles.take(&flow::title(group.name(), "scenario"));
        // Headers of the whole group are those of the scenario.
        let headers = std::mem::take(&mut scope.headers);
        self.names = Titles::default();
        let mut steps = Vec::new();
        let within = Within { scenario: &name, continues: load.continues };
        self.children(&group.below, &scope, within, &mut steps);
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                self.findings.note(group.at(), "", "there is no request of HTTP in it: it is left out");
            }
            return;
        }
        let mut scenario = draft::scenario(&name, steps);
        if scope.cookies {
            scenario.cookies = Field::new(true);
        }
        for (name, value) in headers {
            scenario.headers.push(name, text(value));
        }
        self.groups.push(Group { course, ..load });
        self.document.scenarios.push(Field::new(scenario));
    }

    /// A group before or after the others, whose steps are carried out once.
    fn once(&mut self, group: &Node<'_>, load: &Group, scope: &Scope<'_>, is_first: bool) {
        if !load.is_once() {
            let becomes = "it is carried out once here, by one user";
            self.findings.note(group.at(), "ThreadGroup.num_threads", becomes);
        }
        let name = if is_first { "setup" } else { "teardown" };
        self.names = std::mem::take(&mut self.names_once[usize::from(is_first)]);
        let mut steps = Vec::new();
        self.children(&group.below, scope, Within { scenario: name, continues: load.continues }, &mut steps);
        self.names_once[usize::from(is_first)] = std::mem::take(&mut self.names);
        if !flow::has_request(&steps) {
            if !self.findings.has_problems() {
                self.findings.note(group.at(), "", "there is no request of HTTP in it: it is left out");
            }
            return;
        }
        let becomes = "values that it takes are there in all groups, which have their own in JMeter";
        if is_first && flow::takes_values(&steps) {
            self.findings.note(group.at(), "", becomes);
        }
        let all = if is_first { &mut self.document.setup } else { &mut self.document.teardown };
        all.extend(flow::fields(steps));
    }

    /// The steps of samplers and controllers.
    fn children(
        &mut self,
        below: &[Node<'_>],
        scope: &Scope<'_>,
        within: Within<'_>,
        steps: &mut Vec<StepSpec>,
    ) {
        for node in below {
            if !node.enabled || scope::is_config(node.kind()) {
                continue;
            }
            self.steps += 1;
            if self.steps > MOST_STEPS || self.written > MOST_WRITTEN {
                if !self.findings.has_problems() {
                    self.findings.problem(&node.at(), "there are too many steps, or elements around them");
                }
                return;
            }
            self.child(node, scope, within, steps);
        }
    }

    fn child(&mut self, node: &Node<'_>, scope: &Scope<'_>, within: Within<'_>, steps: &mut Vec<StepSpec>) {
        let at = node.at();
        match node.kind() {
            "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => self.sampler(node, scope, within, steps),
            "TestAction" => self.action(node, steps),
            kind if kind.ends_with("Sampler") && kind != PARALLEL => self.left_out(node),
            kind if kind.ends_with("Controller")
                || kind == PARALLEL
                || kind == "InterleaveControl"
                || kind == "CriticalSectionController" =>
            {
                self.written += scope.size();
                let mut inner = scope.clone();
                self.enter(&node.below, &mut inner);
                let mut own = Vec::new();
                self.children(&node.below, &inner, within, &mut own);
                self.controller(node, &at, own, steps);
            }
            _ => self.left_out(node),
        }
    }

    fn controller(&mut self, node: &Node<'_>, at: &str, mut own: Vec<StepSpec>, steps: &mut Vec<StepSpec>) {
        let kind = node.kind();
        match kind {
            "GenericController" | "RecordingController" => steps.append(&mut own),
            "TransactionController" => {
                let becomes =
                    "its requests have figures of their own, and the transaction as a whole has none";
                self.findings.note(at, kind, becomes);
                steps.append(&mut own);
            }
            "LoopController" => {
                let written = node.value("LoopController.loops").unwrap_or_default();
                match self.number(&written, at) {
                    Some(1) => steps.append(&mut own),
                    Some(0) => self.findings.note(at, "0", "a loop of no turns is left out"),
                    Some(turns) if !own.is_empty() => steps.push(flow::repeat(turns.to_string(), own)),
                    Some(_) => {}
                    None if own.is_empty() => {}
                    None if written.trim().starts_with("${") => {
                        let template = self.template(&written, at);
                        steps.push(flow::repeat(template, own));
                    }
                    None => {
                        let becomes =
                            "a loop without an end is carried out once: iterations follow each other anyway";
                        self.findings.note(at, &written, becomes);
                        steps.append(&mut own);
                    }
                }
            }
            PARALLEL if own.len() > 1 && own.iter().all(|step| step.request().is_some()) => {
                steps.push(ParallelStep::new(own).into());
            }
            PARALLEL if own.len() <= 1 => steps.append(&mut own),
            "OnceOnlyController" => {
                let becomes = "its steps are carried out in every iteration: users have no values from \
                               iterations before";
                self.findings.note(at, kind, becomes);
                steps.append(&mut own);
            }
            "IfController" => {
                let written = node.value("IfController.condition").unwrap_or_default();
                let variables = &mut self.variables;
                match function::condition(&written, |name| variables.name(name)) {
                    Some(condition) if !own.is_empty() => {
                        let sets = |step: &StepSpec| {
                            let mut names = step.extract.0.iter().map(|(name, ..)| name.as_str());
                            names.any(|name| condition.contains(&format!("${{{name}}}")))
                        };
                        if flow::has_step(&own, &sets) {
                            let becomes = "its steps set the variable that it reads, which a thread keeps for its \
                                           next iteration: here each iteration begins with the first value";
                            self.findings.note(at, &written, becomes);
                        }
                        steps.push(flow::branch(condition, own));
                    }
                    Some(_) => {}
                    None => {
                        let becomes = "plans compare two sides: its steps are carried out in any case";
                        self.findings.note(at, &written, becomes);
                        steps.append(&mut own);
                    }
                }
            }
            kind => {
                let becomes = match kind {
                    "WhileController" => "its steps are carried out once; `while` of a plan may do",
                    "RandomController"
                    | "RandomOrderController"
                    | "InterleaveControl"
                    | "SwitchController" => {
                        "it chooses among its steps there: all of them are carried out, in order"
                    }
                    "ForeachController" => "plans have no lists in variables: its steps are carried out once",
                    "ThroughputController" => {
                        "its steps are carried out in every iteration; weights of scenarios may do"
                    }
                    _ => "plans have no such controller: its steps are carried out once, in order",
                };
                self.findings.note(at, kind, becomes);
                steps.append(&mut own);
            }
        }
    }

    /// An element that nothing in a plan is like.
    fn left_out(&mut self, node: &Node<'_>) {
        let kind = node.kind();
        let becomes = if ["ResultCollector", "Summariser"].contains(&kind) || kind.ends_with("Visualizer") {
            self.findings.note("listeners", "", "results are in the report: they are left out");
            return;
        } else if kind == "BackendListener" {
            "figures go elsewhere with --export: it is left out"
        } else if kind.starts_with("JSR223") || kind.starts_with("BeanShell") || kind.starts_with("BSF") {
            "scripts are not carried out: it is left out; a step's `script` in Lua may do"
        } else if kind.ends_with("Sampler") {
            "only requests of HTTP are taken over: it is left out"
        } else {
            "plans have nothing like it: it is left out"
        };
        self.findings.note(node.at(), kind, becomes);
    }

    /// A text as a template.
    fn template(&mut self, written: &str, at: &str) -> String {
        self.variables.template(written, flow::Writing::Plain, at, &mut self.findings)
    }

    /// A whole number, with the values of variables and the defaults of properties in their places.
    fn number(&mut self, written: &str, at: &str) -> Option<u64> {
        let expanded = self.variables.expanded(written.trim());
        let number = expanded.trim().parse().ok()?;
        if written.contains("${__P(") || written.contains("${__property(") {
            self.findings.note(at, written, format!("the default of the property is taken: {number}"));
        }
        Some(number)
    }

    fn finish(mut self) -> Result<Unchecked, Problems> {
        self.load();
        flow::follow(
            &self.follows,
            ("20", "follow_redirects: false"),
            &mut self.settings,
            &mut self.findings,
        );
        self.proxies.settle("HTTPSampler.proxyHost", &mut self.settings, &mut self.findings);
        self.document.thresholds = self.thresholds.into_iter().map(Field::new).collect();
        flow::settle(&mut self.document, self.variables, &mut self.findings);
        self.headed.release(&mut self.document);
        if let Some(at) = &self.https {
            self.settings.insecure = Field::new(true);
            self.findings.note(
                at.as_str(),
                "https",
                "certificates are not verified, as there: `insecure` says so",
            );
        }
        self.document.run = flow::run(self.settings);
        self.findings.finish_whole(self.document)
    }
}

/// Returns `true` for elements beside the groups of a test plan that are read elsewhere.
fn is_known_here(node: &Node<'_>) -> bool {
    node.kind().ends_with("ThreadGroup") || scope::is_config(node.kind())
}
