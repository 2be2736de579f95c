//! Locustfiles, in Python.
//!
//! As with scripts of k6, a file is read and not carried out: its Python becomes the tree that those are read
//! from, and is followed in the same way ([`crate::k6`]). Each task becomes a scenario: what a user does when
//! it starts, the task, the wait after it, and what the user does when it stops. What a program would have to
//! decide is noted with its place.

mod call;
mod class;
mod client;
mod load;
mod python;
mod verdict;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use plimsoll_document::{Field, Files, Problems};

use crate::Unchecked;
use crate::amount::{self, Ratio};
use crate::draft;
use crate::findings::Findings;
use crate::flow;
use crate::k6::syntax::{Function, Script, Span};
use crate::k6::value::{Closure, Uniform, Value};
use crate::k6::{self, Importer, Item, Language, MOST_EVALUATED, title};
use crate::names::Titles;

pub(crate) use call::method_name;
pub(crate) use class::Defined;
use class::{ClassKind, Task, interrupts};
pub(crate) use client::Session;

/// Tasks of one session, if a user makes requests when it starts or stops: there it has as many as fit into
/// the run.
const TASKS: u64 = 10;

/// Most scenarios that the tasks of a file become.
const MOST_SCENARIOS: usize = 1_000;

/// Deepest nesting of classes of tasks.
const DEEPEST_SETS: usize = 16;

/// A class of tasks that is looked at counts as so many expressions.
const VISIT: usize = 1_000;

/// Choices of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the file, for notes and for the modules beside it.
    pub name: String,
    /// Values of the environment.
    pub environment: BTreeMap<String, String>,
    /// The server, in the place of the classes' `host`.
    pub host: Option<String>,
    /// Number of users, as `--users` of Locust has it.
    pub users: Option<u64>,
    /// Users that start per second, as `--spawn-rate` has it; 1 without it.
    pub spawn_rate: Option<f64>,
    /// Length of the run, as `--run-time` has it: `300s`, `1h30m`, or seconds.
    pub run_time: Option<String>,
    /// Tasks that an iteration carries out after `on_start` if that makes requests; 10 without it.
    pub tasks: Option<u64>,
}

/// Reads a locustfile. Files that it names are looked for in `folder`, which the plan file has to be in as
/// well.
///
/// # Errors
/// All problems with it.
pub fn import(
    source: &[u8],
    options: &Options,
    folder: &Path,
    files: &dyn Files,
) -> Result<Unchecked, Problems> {
    let name = if options.name.is_empty() { "locustfile.py" } else { &options.name };
    let shared =
        k6::Options { name: name.to_owned(), environment: options.environment.clone(), scenario: None };
    let mut importer = Importer::new(&shared, folder, files);
    importer.language = Language::Python;
    importer.most_redirects = "30".to_owned();
    // `self` is the same in all files.
    let root = importer.open_scope(None);
    importer.scopes[root].names.insert("self".to_owned(), Value::Unknown);
    let scope = importer.file(name, source)?;
    importer.is_first = false;
    importer.users(scope, options);
    importer.finish()
}

/// One scenario on its way: the tasks that are carried out in it, and the classes around them.
struct Leaf {
    name: String,
    /// The user, and the sets of tasks within it, from outside to inside.
    chain: Vec<usize>,
    tasks: Vec<Task>,
    /// How often it is carried out, beside those of the same user.
    share: Ratio,
}

/// A scenario that is done.
struct Done {
    user: usize,
    share: Ratio,
    /// Seconds that its waits take.
    wait: f64,
    /// Times that an iteration carries out its tasks.
    turns: u64,
}

impl Importer<'_> {
    /// Reads a file, and carries out its statements. Returns its scope.
    fn file(&mut self, name: &str, source: &[u8]) -> Result<usize, Problems> {
        let Ok(text) = std::str::from_utf8(source) else {
            return Err(Findings::fail(name, "it is not a text in UTF-8", "the file has to be a locustfile"));
        };
        let text = text.trim_start_matches('\u{feff}');
        let number = self.scripts.len();
        let body = python::read(name, text, number)?;
        let script = Arc::new(Script::new(name, text.to_owned(), body));
        self.scripts.push(Arc::clone(&script));
        self.exports.push(BTreeMap::new());
        let scope = self.open_scope(Some(0));
        self.scopes[scope].names.insert("__name__".to_owned(), Value::text("locustfile"));
        self.block(&script.body, scope);
        Ok(scope)
    }

    /// Takes over the classes of users in a file.
    fn users(&mut self, scope: usize, options: &Options) {
        let mut classes: Vec<usize> = self.scopes[scope]
            .names
            .values()
            .filter_map(|value| match value {
                Value::Class(number) => Some(*number),
                _ => None,
            })
            .collect();
        classes.sort_unstable();
        classes.dedup();
        let users: Vec<usize> = classes.iter().copied().filter(|class| self.is_user(*class)).collect();
        let mut leaves: Vec<Leaf> = Vec::new();
        for user in &users {
            let chain = vec![*user];
            let before = leaves.len();
            self.leaves(*user, &chain, Ratio::whole(1), &mut leaves);
            if leaves.len() == before {
                let span = self.classes[*user].class.span;
                self.note(span, "it has no tasks: it is left out");
            }
        }
        let before = self.before();
        let owner = |leaf: &Leaf| leaf.chain.last().copied();
        let has_several = leaves.iter().any(|leaf| owner(leaf) != owner(&leaves[0]));
        let mut titles = Titles::default();
        let mut done = Vec::new();
        for leaf in leaves {
            // What one scenario did to variables of the file is nothing to the others.
            self.restore(&before);
            let class = leaf.chain.last().map(|class| self.classes[*class].class.name.clone());
            let name = match class {
                Some(class) if has_several && class != leaf.name => format!("{class}.{}", leaf.name),
                _ => leaf.name.clone(),
            };
            let name = titles.take(&title(&name));
            done.extend(self.scenario_of_task(&leaf, &name, options));
        }
        if self.document.scenarios.is_empty() && !self.findings.has_problems() {
            let at = self.at(Span::default());
            let hint = "a locustfile has a class that extends HttpUser, with tasks that make requests with \
                        `self.client`";
            self.findings.without_requests(&at, hint);
            return;
        }
        self.weigh_users(&users, &done);
        let shape = classes.iter().copied().find(|class| {
            self.classes[*class].kind == Some(ClassKind::Shape)
                && !self.classes[*class].lineage.is_empty()
                && self.own(*class, "abstract").and_then(Value::truth) != Some(true)
        });
        self.course(shape, options);
    }

    /// An attribute that the class itself has.
    fn own(&self, class: usize, name: &str) -> Option<&Value> {
        self.classes[class].values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn is_user(&mut self, class: usize) -> bool {
        let defined = &self.classes[class];
        match defined.kind {
            Some(ClassKind::User { .. } | ClassKind::OtherUser) => {}
            _ => return false,
        }
        let (span, kind) = (defined.class.span, defined.kind);
        if self.own(class, "abstract").and_then(Value::truth) == Some(true) {
            return false;
        }
        if kind == Some(ClassKind::OtherUser) {
            self.note(span, "only clients of HTTP are taken over: it is left out");
            return false;
        }
        // A class of which others are made, and which has no tasks, is not started.
        let is_base = self
            .classes
            .iter()
            .any(|other| other.lineage.contains(&class) && other.lineage.last() != Some(&class));
        !(is_base && self.classes[class].tasks.is_empty())
    }

    /// The scenarios of a class: one for each task, and one for a sequence.
    fn leaves(&mut self, class: usize, chain: &[usize], share: Ratio, leaves: &mut Vec<Leaf>) {
        let span = self.classes[class].class.span;
        self.evaluated += VISIT;
        if chain.len() > DEEPEST_SETS || leaves.len() > MOST_SCENARIOS || self.evaluated > MOST_EVALUATED {
            self.note(span, "there are too many tasks, or they are nested too deeply: it is left out");
            return;
        }
        let tasks = self.classes[class].tasks.clone();
        if self.classes[class].kind == Some(ClassKind::Sequence) {
            let mut all = Vec::new();
            self.in_order(&tasks, 0, &mut all);
            let name = self.classes[class].class.name.clone();
            if !all.is_empty() {
                leaves.push(Leaf { name, chain: chain.to_vec(), tasks: all, share });
            }
            return;
        }
        let mut joined: Vec<(Task, u64)> = Vec::new();
        for (task, weight) in tasks {
            let same = joined.iter_mut().find(|(known, _)| is_same(known, &task));
            match same {
                Some((_, known)) => *known = known.saturating_add(weight),
                None => joined.push((task, weight)),
            }
        }
        // Inside of a set, tasks that leave it say how many the others are for each visit.
        let is_inner = chain.len() > 1;
        let leaving: u64 =
            joined.iter().filter(|(task, _)| self.leaves_set(task) == Some(true)).map(|(_, n)| *n).sum();
        let all: u64 = joined.iter().map(|(_, weight)| *weight).sum();
        if is_inner && leaving == 0 && self.classes[chain[chain.len() - 2]].tasks.len() > 1 {
            let becomes = "a user that begins it stays in it there, since no task ends with \
                           `self.interrupt()`; \
                           here its tasks share its weight";
            self.note(span, becomes);
        }
        let per = match (is_inner, leaving) {
            (true, 0) => all,
            (true, leaving) => leaving,
            (false, _) => 1,
        };
        for (task, weight) in joined {
            let part = Ratio::new(u128::from(weight), u128::from(per)).and_then(|part| share.times(part));
            let Some(part) = part else { continue };
            match task {
                Task::Set(inner) => {
                    let chain: Vec<usize> = chain.iter().copied().chain([inner]).collect();
                    self.leaves(inner, &chain, part, leaves);
                }
                task => {
                    let name = self.task_name(&task);
                    leaves.push(Leaf { name, chain: chain.to_vec(), tasks: vec![task], share: part });
                }
            }
        }
    }

    fn leaves_set(&mut self, task: &Task) -> Option<bool> {
        let (Task::Method(closure) | Task::Function(closure)) = task else { return Some(false) };
        let leaves = interrupts(&closure.function);
        if leaves.is_none() {
            let span = closure.function.span;
            self.note(span, "it is not known how often it leaves its set of tasks: it counts as never");
        }
        leaves
    }

    /// The tasks of a sequence, also those of sequences in it.
    fn in_order(&mut self, tasks: &[(Task, u64)], depth: usize, all: &mut Vec<Task>) {
        for (task, weight) in tasks {
            for _ in 0..*weight {
                self.evaluated += 1;
                if all.len() >= MOST_SCENARIOS || depth > DEEPEST_SETS || self.evaluated > MOST_EVALUATED {
                    let span = closure_span(task).unwrap_or_default();
                    self.note(
                        span,
                        "there are too many tasks, or they are nested too deeply: it is left out",
                    );
                    return;
                }
                let Task::Set(inner) = task else {
                    all.push(task.clone());
                    continue;
                };
                let defined = &self.classes[*inner];
                let (span, kind, tasks) = (defined.class.span, defined.kind, defined.tasks.clone());
                if kind != Some(ClassKind::Sequence) {
                    self.note(span, "in a sequence, each task of a set is carried out once");
                }
                for method in ["on_start", "on_stop"] {
                    if self.of_class(*inner, method).is_some() {
                        let at = self.at(span);
                        let becomes = "in a sequence, a set of tasks is not begun and ended: it is left out";
                        self.findings.note(at, method, becomes);
                    }
                }
                self.in_order(&tasks, depth + 1, all);
            }
        }
    }

    fn scenario_of_task(&mut self, leaf: &Leaf, name: &str, options: &Options) -> Option<Done> {
        self.scenario = name.to_owned();
        self.titles = Titles::default();
        self.begin(leaf, options);
        let chain = &leaf.chain;
        let start = self.items_of(|importer| {
            if let Some(Value::Function(closure)) = importer.of_class(chain[0], "__init__").cloned() {
                importer.invoke(&closure, Vec::new(), closure.function.span);
            }
            for class in chain {
                importer.carry_out(*class, "on_start");
            }
        });
        let mut wait = 0.0;
        self.lose_kept_by_tasks(chain);
        let body = self.items_of(|importer| {
            for task in &leaf.tasks {
                importer.session.class = chain.last().copied().unwrap_or_default();
                match task {
                    Task::Method(closure) => {
                        importer.invoke(closure, Vec::new(), closure.function.span);
                    }
                    Task::Function(closure) => {
                        let own = importer.scopes[0].names.get("self").cloned().unwrap_or(Value::Unknown);
                        importer.invoke(closure, vec![own], closure.function.span);
                    }
                    Task::Set(_) => {}
                }
                importer.is_ending = false;
                // What ends a task does not end the wait behind it, and the next one.
                importer.begin_course();
                wait += importer.wait(chain);
            }
        });
        let stop = self.items_of(|importer| {
            for class in chain.iter().rev() {
                importer.carry_out(*class, "on_stop");
            }
        });
        let mut steps = self.steps_of(start);
        let starts = flow::has_request(&steps);
        let body = self.steps_of(body);
        let stop = self.steps_of(stop);
        let user = &self.classes[chain[0]].class;
        let span = leaf.tasks.iter().find_map(closure_span).unwrap_or(user.span);
        if !flow::has_request(&body) {
            if !self.findings.has_problems() && !leaf.tasks.iter().all(is_only_interrupt) {
                let at = self.at(span);
                self.findings.note(at, &leaf.name, "there is no request in it: it is left out");
            }
            return None;
        }
        let has_sides = starts || flow::has_request(&stop);
        let turns = if has_sides { options.tasks.unwrap_or(TASKS).max(1) } else { 1 };
        if has_sides {
            self.note_sides(chain, turns);
        }
        match turns {
            1 => steps.extend(body),
            turns => steps.push(flow::repeat(turns.to_string(), body)),
        }
        steps.extend(stop);
        let mut scenario = draft::scenario(name, steps);
        scenario.cookies = Field::new(true);
        self.document.scenarios.push(Field::new(scenario));
        self.scenarios += 1;
        Some(Done { user: chain[0], share: leaf.share, wait, turns })
    }

    /// The meaning of what is done at the start and the end of a user.
    fn note_sides(&mut self, chain: &[usize], turns: u64) {
        for class in chain {
            for method in ["on_start", "on_stop"] {
                let Some(Value::Function(closure)) = self.of_class(*class, method) else { continue };
                let at = self.at(closure.function.span);
                let becomes = match turns {
                    1 => "it is carried out once for a user there; here in each iteration".to_owned(),
                    turns => format!(
                        "it is carried out once for a user there; here in each iteration, which carries out \
                         its task {turns} times (--tasks)"
                    ),
                };
                self.findings.note(at, method, becomes);
            }
        }
    }

    /// Loses what tasks leave to those that come after them.
    fn lose_kept_by_tasks(&mut self, chain: &[usize]) {
        let tasks = chain.iter().flat_map(|class| &self.classes[*class].tasks);
        let tasks = tasks.filter_map(|(task, _)| match task {
            Task::Method(closure) | Task::Function(closure) => Some(Closure::clone(closure)),
            Task::Set(_) => None,
        });
        let tasks: Vec<Closure> = tasks.collect();
        self.lose_kept(&tasks);
    }

    fn items_of(&mut self, follow: impl FnOnce(&mut Self)) -> Vec<Item> {
        self.begin_course();
        self.items.push(Vec::new());
        follow(self);
        self.is_ending = false;
        self.items.pop().unwrap_or_default()
    }

    /// Calls a method of a class that needs no argument, if it has one.
    fn carry_out(&mut self, class: usize, method: &str) {
        self.session.class = class;
        if let Some(Value::Function(closure)) = self.of_class(class, method).cloned() {
            self.invoke(&closure, Vec::new(), closure.function.span);
            self.is_ending = false;
            self.begin_course();
        }
    }

    /// A user as it is before it starts.
    fn begin(&mut self, leaf: &Leaf, options: &Options) {
        self.session = Session::default();
        let user = leaf.chain[0];
        let at = self.at(self.classes[user].class.span);
        let mut members: Vec<(String, Value)> = Vec::new();
        for name in ["client", "environment", "interrupt"] {
            members.push((name.to_owned(), Value::Builtin(name.to_owned())));
        }
        members.push(("rest".to_owned(), Value::Builtin("client.rest".to_owned())));
        let mut known: HashMap<String, usize> = HashMap::new();
        for part in leaf.chain.iter().flat_map(|class| self.classes[*class].lineage.iter()) {
            for (name, value) in &self.classes[*part].values {
                match known.get(name) {
                    Some(index) => members[*index].1 = value.clone(),
                    None => {
                        known.insert(name.clone(), members.len());
                        members.push((name.clone(), value.clone()));
                    }
                }
            }
        }
        let host = match &options.host {
            Some(host) => Some(Value::text(host.as_str())),
            None => self.of_class(user, "host").cloned(),
        };
        let is_encrypted =
            host.as_ref().and_then(Value::constant).is_some_and(|host| host.starts_with("https"));
        if self.classes[user].kind == Some(ClassKind::User { is_fast: true }) && is_encrypted {
            // Its certificates are not verified unless `insecure = False`.
            self.settings.insecure = Field::new(true);
        }
        let settings: Vec<(String, Value)> =
            self.classes[user].lineage.iter().flat_map(|class| self.classes[*class].values.clone()).collect();
        for (name, value) in settings {
            if self.client_setting(&name, &value, &at) {
                continue;
            }
            if ["fixed_count", "stop_timeout", "client_pool", "pool_manager", "concurrency"]
                .contains(&name.as_str())
            {
                let said = value.constant().map_or(name.clone(), |value| format!("{name} = {value}"));
                self.findings.note(at.as_str(), &said, "plans have no such setting: it is left out");
            }
        }
        self.session.host = host;
        self.scopes[0].names.insert("self".to_owned(), Value::object(members));
    }

    /// The wait after a task. Returns its mean, in seconds.
    fn wait(&mut self, chain: &[usize]) -> f64 {
        let found = chain.iter().rev().find_map(|class| {
            let own = self.of_class(*class, "wait_time").cloned();
            let numbers = |name: &str| self.of_class(*class, name).and_then(Value::number);
            // Milliseconds, in old files.
            let old = numbers("min_wait").zip(numbers("max_wait")).map(|(low, high)| {
                Value::Uniform(Uniform { low: low / 1e3, high: high / 1e3, is_whole: false, draw: None })
            });
            own.or(old).map(|wait| (*class, wait))
        });
        let Some((class, wait)) = found else { return 0.0 };
        let span = match &wait {
            Value::Function(closure) => closure.function.span,
            _ => self.classes[class].class.span,
        };
        let wait = match wait {
            Value::Function(closure) => {
                let own = self.scopes[0].names.get("self").cloned().unwrap_or(Value::Unknown);
                let value = self.invoke(&closure, vec![own], span);
                self.is_ending = false;
                value
            }
            wait => wait,
        };
        if let Some(seconds) = wait.member(call::PACE).and_then(Value::number) {
            if seconds > 0.0 {
                self.push(Item::Step(flow::pause(flow::pace(amount::nanos(seconds)))));
            }
            return seconds.max(0.0);
        }
        let mean = match &wait {
            Value::Uniform(uniform) => (uniform.low + uniform.high) / 2.0,
            wait => wait.number().unwrap_or_default(),
        };
        let wait = match wait {
            Value::Uniform(uniform) => Value::Uniform(Uniform { is_whole: false, ..uniform }),
            wait => wait,
        };
        if mean > 0.0 || wait.number().is_none() {
            self.sleep(&wait, span);
        }
        mean.max(0.0)
    }
}

fn is_same(one: &Task, other: &Task) -> bool {
    match (one, other) {
        (Task::Set(one), Task::Set(other)) => one == other,
        (Task::Method(one) | Task::Function(one), Task::Method(other) | Task::Function(other)) => {
            Arc::ptr_eq(&one.function, &other.function)
        }
        _ => false,
    }
}

/// The place of a task that is a function.
fn closure_span(task: &Task) -> Option<Span> {
    match task {
        Task::Method(closure) | Task::Function(closure) => Some(closure.function.span),
        Task::Set(_) => None,
    }
}

/// Returns `true` if the task does nothing but leave its set.
fn is_only_interrupt(task: &Task) -> bool {
    let is_only = |function: &Function| interrupts(function) == Some(true) && function.body.len() == 1;
    match task {
        Task::Method(closure) | Task::Function(closure) => is_only(&closure.function),
        Task::Set(_) => false,
    }
}
