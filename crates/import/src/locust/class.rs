//! Classes of users and of tasks.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::k6::Importer;
use crate::k6::statement::{LEFT_OUT, each_expression};
use crate::k6::syntax::{
    Class, ClassMember, Expression, Function, Imported, Kind, Property, Span, Statement, StatementKind,
};
use crate::k6::value::{Closure, Value};

/// Most classes that a class is made of.
const MOST_BASES: usize = 100;

/// Most entries of the tasks of a class.
const MOST_TASKS: usize = 300;

/// Libraries whose functions are known, or whose calls are noted one by one.
const LIBRARIES: [&str; 21] = [
    "locust",
    "locust_plugins",
    "random",
    "os",
    "sys",
    "json",
    "time",
    "gevent",
    "math",
    "re",
    "csv",
    "uuid",
    "base64",
    "urllib",
    "logging",
    "string",
    "datetime",
    "requests",
    "typing",
    "collections",
    "copy",
];

/// A kind of class that Locust looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    /// A user with a client of HTTP.
    User {
        is_fast: bool,
    },
    /// A user without one.
    OtherUser,
    Set,
    Sequence,
    Shape,
}

/// A task of a class.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A method of the class.
    Method(Rc<Closure>),
    /// A function, which is given the user.
    Function(Rc<Closure>),
    Set(usize),
}

/// A class that a file defines.
#[derive(Clone, Debug)]
pub(crate) struct Defined {
    pub(crate) class: Arc<Class>,
    pub(crate) kind: Option<ClassKind>,
    /// The classes that it is made of, itself last, by their numbers.
    pub(crate) lineage: Vec<usize>,
    /// Own attributes of the class, also methods and inner classes.
    pub(crate) values: Vec<(String, Value)>,
    /// Tasks of the class with their weights, also those of its bases.
    pub(crate) tasks: Vec<(Task, u64)>,
}

impl Importer<'_> {
    /// Binds what an import of Python gives.
    pub(crate) fn provide(&mut self, from: &str, names: &[Imported], scope: usize, span: Span) {
        let library = from.split('.').next().unwrap_or_default();
        let beside = if LIBRARIES.contains(&library) { None } else { self.beside_file(from, span) };
        if beside.is_none() && !LIBRARIES.contains(&library) {
            self.note(span, "nothing of this library is carried out: calls of it are noted");
        }
        for Imported { theirs, ours } in names {
            let value = match (beside, theirs.as_str()) {
                (Some(module), "*") if ours == "*" => {
                    let all = self.scopes[module].names.clone();
                    self.scopes[scope].names.extend(all);
                    continue;
                }
                (Some(module), "*") => {
                    let all = self.scopes[module].names.iter();
                    Value::object(all.map(|(name, value)| (name.clone(), value.clone())).collect())
                }
                (Some(module), name) => {
                    self.scopes[module].names.get(name).cloned().unwrap_or(Value::Unknown)
                }
                (None, "*") if ours == "*" => {
                    // The names of Locust that files take so.
                    for name in ["HttpUser", "FastHttpUser", "User", "TaskSet", "SequentialTaskSet", "task"]
                        .into_iter()
                        .chain([
                            "between",
                            "constant",
                            "constant_pacing",
                            "constant_throughput",
                            "tag",
                            "events",
                        ])
                        .chain(["LoadTestShape"])
                        .filter(|_| library == "locust")
                    {
                        let value = Value::Builtin(format!("locust.{name}"));
                        self.scopes[scope].names.insert(name.to_owned(), value);
                    }
                    continue;
                }
                (None, "*") => Value::Builtin(from.to_owned()),
                (None, name) => Value::Builtin(format!("{from}.{name}")),
            };
            let scope = self.scope_of(ours, scope).unwrap_or(scope);
            self.scopes[scope].names.insert(ours.clone(), value);
        }
    }

    /// The scope of a module that is a file beside this one.
    fn beside_file(&mut self, from: &str, span: Span) -> Option<usize> {
        let module = from.trim_start_matches('.').replace('.', "/");
        // A module, or a package.
        let paths = [format!("{module}.py"), format!("{module}/__init__.py")];
        if let Some(known) = paths.iter().find_map(|path| self.known.get(path)) {
            return *known;
        }
        let read = paths.into_iter().find_map(|path| {
            let content = self.files.read(&self.folder.join(&path)).ok()?;
            Some((path, content))
        });
        let (path, content) = read?;
        self.known.insert(path.clone(), None);
        let scope = match self.file(&path, &content) {
            Ok(scope) => Some(scope),
            Err(problems) => {
                self.note(span, format!("it cannot be read: {problems}"));
                None
            }
        };
        self.known.insert(path, scope);
        scope
    }

    /// Defines a class. Returns its number.
    pub(crate) fn class(&mut self, class: &Arc<Class>, scope: usize) -> usize {
        let mut lineage: Vec<usize> = Vec::new();
        let mut kind = None;
        let mut tasks: Vec<(Task, u64)> = Vec::new();
        for base in &class.bases {
            match self.evaluate(base, scope) {
                Value::Class(number) => {
                    let base = &self.classes[number];
                    kind = kind.or(base.kind);
                    tasks.extend(base.tasks.iter().cloned());
                    lineage.extend(base.lineage.iter().copied());
                }
                Value::Builtin(path) => kind = kind.or(kind_of(&path)),
                _ => self.note(base.span, "nothing is known of this class: its methods are not carried out"),
            }
        }
        let mut known = HashSet::new();
        lineage.retain(|number| known.insert(*number));
        lineage.truncate(MOST_BASES);
        let inner = self.open_scope(Some(scope));
        let mut values: Vec<(String, Value)> = Vec::new();
        let mut own = Vec::new();
        let mut decorated = Vec::new();
        for member in &class.members {
            let (name, value) = match member {
                ClassMember::Value(name, expression) if name == "tasks" => {
                    own = self.written_tasks(expression, inner);
                    continue;
                }
                ClassMember::Value(name, expression) => (name.clone(), self.evaluate(expression, inner)),
                ClassMember::Method { name, function, decorators } => {
                    let closure = Rc::new(Closure { function: Arc::clone(function), scope });
                    if let Some(weight) = self.weight(decorators, scope) {
                        decorated.push((Value::Function(Rc::clone(&closure)), weight));
                    }
                    (name.clone(), Value::Function(closure))
                }
                ClassMember::Class(defined) => {
                    let number = self.class(defined, scope);
                    if let Some(weight) = self.weight(&defined.decorators, scope) {
                        decorated.push((Value::Class(number), weight));
                    }
                    (defined.name.clone(), Value::Class(number))
                }
                ClassMember::Other(span) => {
                    self.note(*span, LEFT_OUT);
                    continue;
                }
            };
            if self.scopes[inner].names.insert(name.clone(), value.clone()).is_some() {
                values.retain(|(known, _)| *known != name);
            }
            values.push((name, value));
        }
        let methods: HashSet<Span> = values
            .iter()
            .filter_map(|(_, value)| match value {
                Value::Function(known) => Some(known.function.span),
                _ => None,
            })
            .collect();
        for (value, weight) in own.into_iter().chain(decorated) {
            let is_own = |closure: &Rc<Closure>| methods.contains(&closure.function.span);
            match value {
                Value::Function(closure) if is_own(&closure) => tasks.push((Task::Method(closure), weight)),
                Value::Function(closure) => tasks.push((Task::Function(closure), weight)),
                Value::Class(number) => tasks.push((Task::Set(number), weight)),
                _ => {
                    self.note(
                        class.span,
                        "a task is neither a function nor a class of tasks: it is left out",
                    );
                }
            }
        }
        if tasks.len() > MOST_TASKS {
            self.note(class.span, format!("at most {MOST_TASKS} tasks are taken over"));
            tasks.truncate(MOST_TASKS);
        }
        let number = self.classes.len();
        lineage.push(number);
        self.classes.push(Defined { class: Arc::clone(class), kind, lineage, values, tasks });
        number
    }

    /// `tasks = [a, b]` or `tasks = {a: 3, b: 1}`
    fn written_tasks(&mut self, expression: &Expression, scope: usize) -> Vec<(Value, u64)> {
        let mut tasks = Vec::new();
        if let Kind::Object(pairs) = &expression.kind {
            for pair in pairs {
                let Property::Pair(task, weight) = pair else { continue };
                let task = self.evaluate(task, scope);
                let weight = self.evaluate(weight, scope);
                tasks.push((task, self.whole_weight(&weight, expression.span)));
            }
            return tasks;
        }
        match self.evaluate(expression, scope) {
            Value::Array(items) => tasks.extend(items.iter().map(|item| (item.clone(), 1))),
            _ => self.note(expression.span, "the tasks are not known before the run: they are left out"),
        }
        tasks
    }

    fn whole_weight(&mut self, weight: &Value, span: Span) -> u64 {
        match weight.number() {
            Some(number) if number.fract() == 0.0 && (0.0..=1e6).contains(&number) => number as u64,
            _ => {
                self.note(span, "the weight is not a whole number from 0 to 1,000,000: it is 1");
                1
            }
        }
    }

    /// The weight of a task, if decorators make it one. All others are noted.
    fn weight(&mut self, decorators: &[Expression], scope: usize) -> Option<u64> {
        let mut found = None;
        for decorator in decorators {
            let (name, argument) = match &decorator.kind {
                Kind::Call(callee, arguments) => (callee.as_ref(), arguments.first()),
                _ => (decorator, None),
            };
            let name = match &name.kind {
                Kind::Name(name) | Kind::Member(_, name) => name.as_str(),
                _ => "",
            };
            match name {
                "task" => {
                    found = Some(match argument {
                        Some(argument) => {
                            let weight = self.evaluate(&argument.value, scope);
                            self.whole_weight(&weight, decorator.span)
                        }
                        None => 1,
                    });
                }
                "staticmethod" | "classmethod" => {}
                "tag" => {
                    self.note(decorator.span, "plans have no tags: a scenario is chosen by its name");
                }
                _ => self.note(decorator.span, "the decorator is not carried out"),
            }
        }
        found.filter(|weight| *weight > 0)
    }

    /// An attribute of a class, also of one that it is made of.
    pub(crate) fn of_class(&self, number: usize, name: &str) -> Option<&Value> {
        self.classes[number].lineage.iter().rev().find_map(|class| {
            self.classes[*class].values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
        })
    }

    /// The method that `super()` has of this name: the second to last one of the class.
    pub(super) fn inherited(&mut self, name: &str, values: Vec<Value>, span: Span) -> Value {
        let lineage = self.classes.get(self.session.class).map(|class| class.lineage.clone());
        let methods: Vec<Value> = lineage
            .unwrap_or_default()
            .into_iter()
            .rev()
            .filter_map(|class| {
                let mut values = self.classes[class].values.iter();
                values.find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
            .collect();
        match methods.get(1) {
            Some(Value::Function(closure)) => self.invoke(&Rc::clone(closure), values, span),
            // Classes of Locust have methods that do nothing here.
            _ => Value::Undefined,
        }
    }

    /// The name of a task.
    pub(super) fn task_name(&self, task: &Task) -> String {
        match task {
            Task::Set(number) => self.classes[*number].class.name.clone(),
            Task::Method(closure) | Task::Function(closure) => {
                let said = self.said(closure.function.span);
                let name = said.trim_start_matches("async ").trim_start().strip_prefix("def ");
                let name = name.and_then(|rest| rest.split('(').next()).unwrap_or("task");
                name.trim().to_owned()
            }
        }
    }
}

/// The kind of a class by the class of Locust that it extends.
fn kind_of(path: &str) -> Option<ClassKind> {
    Some(match path.rsplit('.').next().unwrap_or_default() {
        "HttpUser" | "HttpLocust" => ClassKind::User { is_fast: false },
        "FastHttpUser" | "FastHttpLocust" => ClassKind::User { is_fast: true },
        "User" | "Locust" => ClassKind::OtherUser,
        "TaskSet" | "MarkovTaskSet" => ClassKind::Set,
        "SequentialTaskSet" | "TaskSequence" => ClassKind::Sequence,
        "LoadTestShape" => ClassKind::Shape,
        _ => return None,
    })
}

/// Returns `true` if a task leaves its set at the end; `None` if that depends on a condition.
pub(super) fn interrupts(function: &Function) -> Option<bool> {
    let is_interrupt = |expression: &Expression| match &expression.kind {
        Kind::Call(callee, _) => matches!(&callee.kind, Kind::Member(_, name) if name == "interrupt"),
        _ => false,
    };
    let is_plain = |statement: &Statement| match &statement.kind {
        StatementKind::Expression(expression) => is_interrupt(expression),
        _ => false,
    };
    if function.body.iter().any(is_plain) {
        return Some(true);
    }
    let mut found = false;
    each_expression(&function.body, &mut |expression| found |= is_interrupt(expression));
    if found { None } else { Some(false) }
}
