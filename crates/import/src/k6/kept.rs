//! Variables that keep their values from one iteration to the next.
//!
//! A plan has none: each iteration begins with the values that the file gives. What the functions of an
//! iteration assign to variables outside of them is [lost](super::lost) where the iteration reads it first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::lost::{KEPT, Lost};
use super::statement::{bound, each_expression};
use super::syntax::{Element, Expression, Function, Kind, Span, Statement, StatementKind, Target};
use super::value::{Closure, Value};
use super::{Importer, Language};
use crate::locust::Defined;

/// Methods that change the list, the object or the set that they are called on.
const CHANGING: [&str; 21] = [
    "push",
    "pop",
    "unshift",
    "shift",
    "splice",
    "sort",
    "reverse",
    "fill",
    "copyWithin",
    "set",
    "add",
    "delete",
    "clear",
    "append",
    "extend",
    "insert",
    "remove",
    "update",
    "setdefault",
    "popitem",
    "discard",
];

/// Returns `true` for a method that changes what it is called on. In Python, `pop` takes a row of a list.
pub(crate) fn changes(method: &str, language: Language) -> bool {
    CHANGING.contains(&method) && !(method == "pop" && language == Language::Python)
}

/// Most functions that one iteration is looked for in.
const MOST_FUNCTIONS: usize = 1_000;

/// Names that are looked at, and count as one expression.
const NAMES_OF_ONE: usize = 16;

/// The values of variables, before something that others do not see.
pub(crate) struct Before {
    names: Vec<HashMap<String, Value>>,
    exports: Vec<BTreeMap<String, Value>>,
    classes: Vec<Defined>,
}

/// A change of a variable outside of a function: the name, the members on the way, and the place.
struct Change {
    scope: usize,
    root: String,
    path: Vec<String>,
    at: Span,
}

impl Importer<'_> {
    /// The variables, to be [restored](Self::restore).
    pub(crate) fn before(&self) -> Before {
        Before {
            names: self.scopes.iter().map(|scope| scope.names.clone()).collect(),
            exports: self.exports.clone(),
            classes: self.classes.clone(),
        }
    }

    /// Gives variables the values that they had.
    pub(crate) fn restore(&mut self, before: &Before) {
        for (scope, names) in self.scopes.iter_mut().zip(&before.names) {
            scope.names.clone_from(names);
        }
        self.exports.clone_from(&before.exports);
        self.classes.clone_from(&before.classes);
    }

    /// Loses the variables that these functions, and those that they call, leave to the next iteration.
    pub(crate) fn lose_kept(&mut self, functions: &[Closure]) {
        for Change { scope, root, path, at } in self.changes_of(functions) {
            let lost = Lost::new(at, KEPT);
            self.lose_within(scope, &root, &path, &lost);
            for (scope, ours) in self.importers_of(scope, &root) {
                self.lose_within(scope, &ours, &path, &lost);
            }
        }
    }

    /// Loses what a path leads to, under all names of the value.
    fn lose_within(&mut self, scope: usize, name: &str, path: &[String], lost: &Rc<Lost>) {
        let Some(value) = self.scopes[scope].names.get(name).cloned() else { return };
        match without(&value, path, lost) {
            Some(new) if value.identity().is_some() => self.replace(&value, &new),
            Some(new) => self.set_name(scope, name, new),
            None => {}
        }
    }

    /// Variables of other modules that are imported under this name: a script sees them change.
    fn importers_of(&self, owner: usize, name: &str) -> Vec<(usize, String)> {
        let imported = |statement: &Statement| match &statement.kind {
            StatementKind::Import { from, names } if from.starts_with('.') => {
                names.iter().find(|one| one.theirs == name).map(|one| one.ours.clone())
            }
            _ => None,
        };
        let names: Vec<String> =
            self.scripts.iter().flat_map(|script| script.body.iter().filter_map(imported)).collect();
        let is_other = |scope: &usize| *scope != owner && self.scopes[*scope].parent.is_none();
        let others = (0..self.scopes.len()).filter(is_other);
        others.flat_map(|scope| names.iter().map(move |name| (scope, name.clone()))).collect()
    }

    fn changes_of(&mut self, functions: &[Closure]) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut open: Vec<Closure> = functions.to_vec();
        let mut known: BTreeSet<Span> = open.iter().map(|closure| closure.function.span).collect();
        while let Some(Closure { function, scope }) = open.pop() {
            let mut walk = Walk::new(self.language);
            walk.function(&function);
            self.evaluated += walk.looked;
            for (root, path, at) in walk.changed {
                if let Some(scope) = self.scope_of(&root, scope) {
                    changes.push(Change { scope, root, path, at });
                }
            }
            for name in walk.named {
                for closure in self.functions_of(&name, scope) {
                    if known.len() < MOST_FUNCTIONS && known.insert(closure.function.span) {
                        open.push(closure);
                    }
                }
            }
        }
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// Functions that this may be the name of.
    fn functions_of(&mut self, name: &str, scope: usize) -> Vec<Closure> {
        let mut functions = Vec::new();
        let mut add = |value: &Value| {
            if let Value::Function(closure) = value {
                functions.push(Closure::clone(closure));
            }
        };
        if let Some(owner) = self.scope_of(name, scope) {
            add(&self.scopes[owner].names[name]);
        }
        let mut next = Some(scope);
        while let Some(scope) = next {
            self.evaluated += self.scopes[scope].names.len() / NAMES_OF_ONE;
            self.scopes[scope].names.values().filter_map(|value| value.member(name)).for_each(&mut add);
            next = self.scopes[scope].parent;
        }
        let values = self.classes.iter().flat_map(|class| &class.values);
        values.filter(|(known, _)| known == name).for_each(|(_, value)| add(value));
        functions
    }
}

/// The value with the member that the path leads to lost. `None` if nothing of it can change.
fn without(value: &Value, path: &[String], lost: &Rc<Lost>) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else {
        return match value {
            Value::Builtin(_) | Value::Unknown | Value::Class(_) | Value::Lost(_) => None,
            _ => Some(Value::Lost(Rc::clone(lost))),
        };
    };
    match value {
        Value::Object(members) => {
            let mut members = members.to_vec();
            match members.iter_mut().find(|(key, _)| key == first) {
                Some((_, member)) => *member = without(member, rest, lost)?,
                None => members.push((first.clone(), Value::Lost(Rc::clone(lost)))),
            }
            Some(Value::object(members))
        }
        value => without(value, &[], lost),
    }
}

/// A search for what a function changes outside of it.
struct Walk {
    language: Language,
    changed: Vec<(String, Vec<String>, Span)>,
    /// Names that it mentions: those of functions that it may call.
    named: BTreeSet<String>,
    looked: usize,
}

impl Walk {
    fn new(language: Language) -> Self {
        Self { language, changed: Vec::new(), named: BTreeSet::new(), looked: 0 }
    }

    fn function(&mut self, function: &Function) {
        let mut own = BTreeSet::new();
        of_function(function, &mut own);
        each_expression(&function.body, &mut |expression| {
            if let Kind::Function(inner) = &expression.kind {
                of_function(inner, &mut own);
            }
        });
        if self.language == Language::Python {
            own.remove("self");
        }
        each_expression(&function.body, &mut |expression| self.expression(expression, &own));
    }

    fn expression(&mut self, expression: &Expression, own: &BTreeSet<String>) {
        self.looked += 1;
        match &expression.kind {
            Kind::Assign(target, ..) => match target.as_ref() {
                Target::Expression(target) => self.change(target, expression.span, own),
                Target::Pattern(pattern) => {
                    let mut names = BTreeSet::new();
                    bound(pattern, &mut names);
                    for name in names.into_iter().filter(|name| !own.contains(name)) {
                        self.changed.push((name, Vec::new(), expression.span));
                    }
                }
            },
            Kind::Unary("delete", of) => self.change(of, expression.span, own),
            Kind::Call(callee, arguments) => {
                let arguments = arguments.iter().map(|Element { value, .. }| value);
                for function in arguments.chain([callee.as_ref()]) {
                    if let Kind::Name(name) | Kind::Member(_, name) = &function.kind {
                        self.named.insert(name.clone());
                    }
                }
                if let Kind::Member(object, method) = &callee.kind
                    && changes(method, self.language)
                {
                    self.change(object, expression.span, own);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, target: &Expression, at: Span, own: &BTreeSet<String>) {
        let mut path = Vec::new();
        let mut root = target;
        loop {
            match &root.kind {
                Kind::Member(object, name) => {
                    path.push(name.clone());
                    root = object;
                }
                Kind::Index(object, index) => {
                    match &index.kind {
                        Kind::String(key) => path.push(key.clone()),
                        // Any member may be the one.
                        _ => path.clear(),
                    }
                    root = object;
                }
                Kind::Name(name) => {
                    if !own.contains(name) {
                        path.reverse();
                        // A user and its sets of tasks are one object.
                        let is_own = |part: &&String| matches!(part.as_str(), "user" | "parent");
                        let skipped = if name == "self" { path.iter().take_while(is_own).count() } else { 0 };
                        self.changed.push((name.clone(), path.split_off(skipped), at));
                    }
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Names that are those of a function: its parameters, and what it declares.
fn of_function(function: &Function, names: &mut BTreeSet<String>) {
    function.parameters.iter().for_each(|parameter| bound(parameter, names));
    declared(&function.body, names);
}

/// Names that statements declare, also within blocks.
fn declared(statements: &[Statement], names: &mut BTreeSet<String>) {
    for statement in statements {
        match &statement.kind {
            StatementKind::Declare(all) => all.iter().for_each(|(pattern, _)| bound(pattern, names)),
            StatementKind::Function(name, function) => {
                names.insert(name.clone());
                of_function(function, names);
            }
            StatementKind::If(_, then, otherwise) => {
                declared(then, names);
                declared(otherwise, names);
            }
            StatementKind::For { before, body, .. } => {
                if let Some(before) = before {
                    declared(std::slice::from_ref(before), names);
                }
                declared(body, names);
            }
            StatementKind::ForOf(pattern, _, body) => {
                bound(pattern, names);
                declared(body, names);
            }
            StatementKind::While(_, body) | StatementKind::Block(body) | StatementKind::Unfollowed(body) => {
                declared(body, names);
            }
            StatementKind::Try(body, _, finally) => {
                declared(body, names);
                declared(finally, names);
            }
            _ => {}
        }
    }
}
