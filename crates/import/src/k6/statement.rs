//! Statements of functions, whose requests become steps.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::check::Condition;
use super::evaluate::DEEPEST;
use super::syntax::{Element, Expression, Kind, Pattern, Property, Span, Statement, StatementKind, Target};
use super::value::{Closure, Test, Value};
use super::{Importer, Item, Language};
use crate::flow::MOST_WRITTEN_OUT;

/// The way in which a block ends.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time")]
pub(crate) enum End {
    /// With its last statement.
    Open,
    Returned(Value),
    /// The iteration ends.
    Ended,
    /// `break` or `continue`.
    Broken,
}

/// Note for what is done after failures.
pub(crate) const AFTER_FAILURE: &str = "it is done after a failure only: it is left out";

pub(crate) const LEFT_OUT: &str = "it is not carried out: it is left out";

impl Importer<'_> {
    /// Calls a function of the script.
    pub(crate) fn invoke(&mut self, closure: &Closure, arguments: Vec<Value>, span: Span) -> Value {
        self.called.insert(closure.function.span);
        let scope = self.open_scope(Some(closure.scope));
        let mut arguments = arguments;
        let named = match arguments.last() {
            Some(Value::Keywords(named)) => named.to_vec(),
            _ => Vec::new(),
        };
        arguments.retain(|argument| !matches!(argument, Value::Keywords(_)));
        let mut arguments = arguments.into_iter();
        for parameter in &closure.function.parameters {
            let of_name = |(name, _): &&(String, Value)| parameter.name() == Some(name.as_str());
            let by_name = named.iter().find(of_name).map(|(_, value)| value.clone());
            let value = by_name.or_else(|| arguments.next()).unwrap_or(Value::Undefined);
            self.bind(parameter, value, scope, true, span);
        }
        match self.block(&closure.function.body, scope) {
            End::Returned(value) => value,
            End::Ended => {
                self.is_ending = true;
                Value::Undefined
            }
            End::Open | End::Broken => Value::Undefined,
        }
    }

    /// Statements in a scope.
    pub(crate) fn block(&mut self, statements: &[Statement], scope: usize) -> End {
        if self.depth > DEEPEST {
            if let Some(first) = statements.first() {
                self.too_long(first.span);
            }
            return End::Open;
        }
        self.depth += 1;
        let end = self.all(statements, scope);
        self.depth -= 1;
        end
    }

    fn all(&mut self, statements: &[Statement], scope: usize) -> End {
        for statement in statements {
            if let StatementKind::Function(name, function) = &statement.kind {
                let closure = Closure { function: std::sync::Arc::clone(function), scope };
                self.scopes[scope].names.insert(name.clone(), Value::Function(Rc::new(closure)));
            }
        }
        for (index, statement) in statements.iter().enumerate() {
            if let StatementKind::If(test, then, otherwise) = &statement.kind {
                match self.branch(test, then, otherwise, &statements[index + 1..], scope) {
                    Some(End::Open) => {}
                    Some(end) => return end,
                    // The rest was carried out on the other side.
                    None => return End::Open,
                }
                continue;
            }
            match self.statement(statement, scope) {
                End::Open => {}
                end => return end,
            }
            if std::mem::take(&mut self.is_ending) {
                return End::Ended;
            }
        }
        End::Open
    }

    pub(crate) fn inner(&mut self, statements: &[Statement], scope: usize) -> End {
        let scope = self.open_scope(Some(scope));
        self.block(statements, scope)
    }

    fn statement(&mut self, statement: &Statement, scope: usize) -> End {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Expression(expression) => {
                self.evaluate(expression, scope);
            }
            StatementKind::Declare(declared) => {
                for (pattern, value) in declared {
                    let value = value.as_ref().map_or(Value::Undefined, |value| self.evaluate(value, scope));
                    self.bind(pattern, value, scope, true, span);
                }
            }
            StatementKind::Return(value) => {
                let value = value.as_ref().map_or(Value::Undefined, |value| self.evaluate(value, scope));
                return End::Returned(value);
            }
            StatementKind::If(test, then, otherwise) => {
                return self.branch(test, then, otherwise, &[], scope).unwrap_or(End::Open);
            }
            StatementKind::For { before, test, update, body } => {
                return self.counted(before.as_deref(), test.as_ref(), update.as_ref(), body, span, scope);
            }
            StatementKind::ForOf(pattern, list, body) => {
                let list_span = list.span;
                let list = self.evaluate(list, scope);
                match list {
                    Value::Array(items) => return self.over(pattern, &items, body, span, scope),
                    _ => {
                        let becomes =
                            "the list is not known before the run: the statements in it are carried out once";
                        self.note(list_span, becomes);
                        return self.uncertain(body, scope, |importer, inner| {
                            importer.bind(pattern, Value::Unknown, inner, true, span);
                        });
                    }
                }
            }
            StatementKind::While(test, body) => {
                let becomes = "a loop with a condition is carried out once; `while` of a plan may do";
                self.note(test.span, becomes);
                self.uncertain(body, scope, |_, _| {});
            }
            StatementKind::Block(body) => return self.inner(body, scope),
            StatementKind::Try(body, handler, finally) => {
                if let Some(handler) = handler {
                    self.note(*handler, "nothing is thrown here: what is done after an error is left out");
                }
                let end = self.inner(body, scope);
                if !matches!(end, End::Open) {
                    return end;
                }
                return self.inner(finally, scope);
            }
            StatementKind::Throw(_) => {
                self.note(span, "errors are not thrown: the iteration ends here");
                return End::Ended;
            }
            StatementKind::Break | StatementKind::Continue => return End::Broken,
            StatementKind::Import { from, names } if self.language == Language::Python => {
                self.provide(from, names, scope, span);
            }
            StatementKind::Class(class) => {
                let number = self.class(class, scope);
                self.scopes[scope].names.insert(class.name.clone(), Value::Class(number));
            }
            StatementKind::Function(..)
            | StatementKind::Empty
            | StatementKind::Import { .. }
            | StatementKind::Export(_) => {}
            StatementKind::ExportDefault(value) => {
                let value = self.evaluate(value, scope);
                self.scopes[scope].names.insert("default".to_owned(), value);
            }
            StatementKind::Other => self.note(span, LEFT_OUT),
        }
        End::Open
    }

    /// A condition. `None` if the statements behind it were carried out already.
    fn branch(
        &mut self,
        test: &Expression,
        then: &[Statement],
        otherwise: &[Statement],
        rest: &[Statement],
        scope: usize,
    ) -> Option<End> {
        let value = self.evaluate(test, scope);
        if self.language == Language::Python
            && let Some(end) = self.verdict(&value, test.span, then, otherwise, scope)
        {
            return Some(end);
        }
        if let Some(flag) = self.truth(&value) {
            return Some(self.inner(if flag { then } else { otherwise }, scope));
        }
        let tested = self.test(&value, test.span);
        match tested.and_then(|tested: Test| self.condition(&tested)) {
            Some(Condition::Good(_)) => {
                if !otherwise.is_empty() {
                    self.leave_out(otherwise, AFTER_FAILURE);
                }
                if !is_check(test) {
                    self.note(
                        test.span,
                        "what follows a request needs a good response: the condition is taken to hold",
                    );
                }
                Some(self.inner(then, scope))
            }
            Some(Condition::Bad(requests)) => {
                if ends(then) {
                    for request in requests {
                        self.requests[request].step.on_failure = plimsoll_plan::document::Field::Absent;
                    }
                }
                self.leave_out(then, AFTER_FAILURE);
                Some(self.inner(otherwise, scope))
            }
            Some(Condition::Plan(condition)) => self.both(condition, then, otherwise, rest, scope),
            None => {
                let becomes = "the condition is not known before the run: it is taken to hold";
                self.note(test.span, becomes);
                self.leave_out(otherwise, "it is on the other side of that condition: it is left out");
                Some(self.uncertain(then, scope, |_, _| {}))
            }
        }
    }

    /// Both sides of a condition that the run decides.
    fn both(
        &mut self,
        condition: String,
        then: &[Statement],
        otherwise: &[Statement],
        rest: &[Statement],
        scope: usize,
    ) -> Option<End> {
        let (ours, end) = self.side(then, &[], scope);
        if matches!(end, End::Open) {
            let (theirs, _) = self.side(otherwise, &[], scope);
            self.push(Item::Branch(condition, ours, theirs));
            return Some(End::Open);
        }
        let (theirs, _) = self.side(otherwise, rest, scope);
        self.push(Item::Branch(condition, ours, theirs));
        None
    }

    /// The items of one side. Variables that it changes are not known afterwards.
    fn side(&mut self, statements: &[Statement], rest: &[Statement], scope: usize) -> (Vec<Item>, End) {
        self.items.push(Vec::new());
        self.blocks.push((self.scopes.len(), BTreeSet::new()));
        let mut end = self.inner(statements, scope);
        if matches!(end, End::Open) && !rest.is_empty() {
            end = self.inner(rest, scope);
        }
        self.close_block();
        (self.items.pop().unwrap_or_default(), end)
    }

    fn close_block(&mut self) {
        let (_, assigned) = self.blocks.pop().unwrap_or_default();
        for (scope, name) in assigned {
            self.scopes[scope].names.insert(name, Value::Unknown);
        }
    }

    /// Statements that are carried out once in the place of none or several times.
    fn uncertain(&mut self, body: &[Statement], scope: usize, prepare: impl FnOnce(&mut Self, usize)) -> End {
        self.forget(body, scope);
        let inner = self.open_scope(Some(scope));
        prepare(self, inner);
        match self.block(body, inner) {
            End::Broken => End::Open,
            end => end,
        }
    }

    /// Variables that statements change have values there that are not known.
    fn forget(&mut self, body: &[Statement], scope: usize) {
        let mut names = BTreeSet::new();
        each_expression(body, &mut |expression| {
            if let Kind::Assign(target, ..) = &expression.kind {
                assigned(target, &mut names);
            }
        });
        for name in names {
            if let Some(owner) = self.scope_of(&name, scope) {
                self.scopes[owner].names.insert(name, Value::Unknown);
            }
        }
    }

    /// `for (let i = 0; i < 3; i++)`.
    fn counted(
        &mut self,
        before: Option<&Statement>,
        test: Option<&Expression>,
        update: Option<&Expression>,
        body: &[Statement],
        span: Span,
        scope: usize,
    ) -> End {
        let around = self.open_scope(Some(scope));
        if let Some(before) = before {
            self.statement(before, around);
        }
        let counter = update.and_then(counter_of);
        let mut reads = false;
        let mut changes = BTreeSet::new();
        each_expression(body, &mut |expression| match &expression.kind {
            Kind::Name(name) if Some(name.as_str()) == counter => reads = true,
            Kind::Assign(target, ..) => assigned(target, &mut changes),
            _ => {}
        });
        let changes_outside = changes.iter().any(|name| self.scope_of(name, scope).is_some());
        let mut turns = 0;
        while turns <= MOST_WRITTEN_OUT {
            let holds = test.map(|test| {
                let value = self.evaluate(test, around);
                self.truth(&value)
            });
            match holds {
                Some(Some(false)) => break,
                Some(Some(true)) => {}
                _ => return self.unknown_count(test, body, span, around),
            }
            if (reads || changes_outside) && matches!(self.inner(body, around), End::Returned(_) | End::Ended)
            {
                return End::Open;
            }
            turns += 1;
            if let Some(update) = update {
                self.evaluate(update, around);
            }
        }
        if turns > MOST_WRITTEN_OUT {
            self.note(span, format!("at most {MOST_WRITTEN_OUT} turns are taken over"));
        }
        if !(reads || changes_outside) && turns > 0 {
            self.repeat(turns.to_string(), body, around);
        }
        End::Open
    }

    /// A loop whose number of turns the run knows: `i < count`.
    fn unknown_count(
        &mut self,
        test: Option<&Expression>,
        body: &[Statement],
        span: Span,
        scope: usize,
    ) -> End {
        if let Some(Expression { kind: Kind::Binary("<" | "<=", _, limit), .. }) = test {
            let value = self.evaluate(limit, scope);
            if matches!(value, Value::Uniform(_) | Value::Text(_) | Value::Body(..) | Value::Row(..)) {
                let text = self.text_of(&value, limit.span);
                let template = self.written(&text, super::Writing::Plain);
                let name = self.variable("turns", template);
                self.forget(body, scope);
                let names: Vec<String> = self.scopes[scope].names.keys().cloned().collect();
                for name in names {
                    self.scopes[scope].names.insert(name, Value::Unknown);
                }
                self.repeat(format!("${{{name}}}"), body, scope);
                return End::Open;
            }
        }
        self.note(
            span,
            "the number of turns is not known before the run: the statements in it are carried out once",
        );
        self.uncertain(body, scope, |_, _| {})
    }

    fn repeat(&mut self, times: String, body: &[Statement], scope: usize) {
        let (items, _) = self.side(body, &[], scope);
        if !items.is_empty() {
            self.push(Item::Repeat(times, items));
        }
    }

    /// Statements for each element of a list.
    pub(crate) fn over(
        &mut self,
        pattern: &Pattern,
        items: &[Value],
        body: &[Statement],
        span: Span,
        scope: usize,
    ) -> End {
        if items.len() > MOST_WRITTEN_OUT {
            self.note(span, format!("at most {MOST_WRITTEN_OUT} turns are taken over"));
        }
        for item in items.iter().take(MOST_WRITTEN_OUT) {
            let inner = self.open_scope(Some(scope));
            self.bind(pattern, item.clone(), inner, true, span);
            match self.block(body, inner) {
                End::Open | End::Broken => {}
                end => return end,
            }
        }
        End::Open
    }

    /// Notes each of these statements.
    pub(crate) fn leave_out(&mut self, statements: &[Statement], becomes: &str) {
        for statement in statements {
            let is_end = match &statement.kind {
                StatementKind::Return(_) | StatementKind::Empty | StatementKind::Throw(_) => true,
                StatementKind::Expression(expression) => is_fail(expression),
                StatementKind::Block(inner) => {
                    self.leave_out(inner, becomes);
                    true
                }
                _ => false,
            };
            if !is_end {
                self.note(statement.span, becomes);
            }
        }
    }
}

/// The variable that an update of a loop changes.
fn counter_of(update: &Expression) -> Option<&str> {
    match &update.kind {
        Kind::Assign(target, ..) => match target.as_ref() {
            Target::Expression(Expression { kind: Kind::Name(name), .. }) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `true` if the statements end the iteration.
pub(crate) fn ends(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Return(_) | StatementKind::Throw(_) => true,
        StatementKind::Expression(expression) => is_fail(expression),
        StatementKind::Block(inner) => ends(inner),
        _ => false,
    })
}

/// `fail(…)`, `exec.test.abort(…)`.
fn is_fail(expression: &Expression) -> bool {
    match &expression.kind {
        Kind::Call(callee, _) => match &callee.kind {
            Kind::Name(name) => name == "fail",
            Kind::Member(_, name) => name == "abort" || name == "fail",
            _ => false,
        },
        _ => false,
    }
}

/// A condition that is a check, whose expectations say what is a good response.
fn is_check(expression: &Expression) -> bool {
    match &expression.kind {
        Kind::Call(callee, _) => matches!(&callee.kind, Kind::Name(name) if name == "check"),
        Kind::Unary("!", inner) => is_check(inner),
        Kind::Name(_) => true,
        _ => false,
    }
}

/// Names that a target of an assignment has.
fn assigned(target: &Target, names: &mut BTreeSet<String>) {
    match target {
        Target::Expression(expression) => {
            let mut root = expression;
            while let Kind::Member(object, _) | Kind::Index(object, _) = &root.kind {
                root = object;
            }
            if let Kind::Name(name) = &root.kind {
                names.insert(name.clone());
            }
        }
        Target::Pattern(pattern) => bound(pattern, names),
    }
}

fn bound(pattern: &Pattern, names: &mut BTreeSet<String>) {
    match pattern {
        Pattern::Name(name) => {
            names.insert(name.clone());
        }
        Pattern::Default(inner, _) => bound(inner, names),
        Pattern::Object(members, rest) => {
            members.iter().for_each(|(_, member)| bound(member, names));
            names.extend(rest.clone());
        }
        Pattern::Array(items) => items.iter().flatten().for_each(|item| bound(item, names)),
        Pattern::Other => {}
    }
}

/// Every expression in statements, also within others.
pub(crate) fn each_expression(statements: &[Statement], look: &mut dyn FnMut(&Expression)) {
    for statement in statements {
        match &statement.kind {
            StatementKind::Expression(one)
            | StatementKind::Throw(one)
            | StatementKind::ExportDefault(one) => {
                within(one, look);
            }
            StatementKind::Return(value) => value.iter().for_each(|value| within(value, look)),
            StatementKind::Declare(declared) => {
                declared.iter().filter_map(|(_, value)| value.as_ref()).for_each(|value| within(value, look));
            }
            StatementKind::Function(_, function) => each_expression(&function.body, look),
            StatementKind::If(test, then, otherwise) => {
                within(test, look);
                each_expression(then, look);
                each_expression(otherwise, look);
            }
            StatementKind::For { before, test, update, body } => {
                if let Some(before) = before {
                    each_expression(std::slice::from_ref(before), look);
                }
                test.iter().chain(update).for_each(|one| within(one, look));
                each_expression(body, look);
            }
            StatementKind::ForOf(_, list, body) | StatementKind::While(list, body) => {
                within(list, look);
                each_expression(body, look);
            }
            StatementKind::Block(body) => each_expression(body, look),
            StatementKind::Try(body, _, finally) => {
                each_expression(body, look);
                each_expression(finally, look);
            }
            StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Import { .. }
            | StatementKind::Export(_)
            | StatementKind::Class(_)
            | StatementKind::Empty
            | StatementKind::Other => {}
        }
    }
}

fn within(expression: &Expression, look: &mut dyn FnMut(&Expression)) {
    look(expression);
    let elements = |elements: &[Element], look: &mut dyn FnMut(&Expression)| {
        elements.iter().for_each(|element| within(&element.value, look));
    };
    match &expression.kind {
        Kind::Template(_, slots) | Kind::Sequence(slots) | Kind::Sum(slots) => {
            slots.iter().for_each(|slot| within(slot, look));
        }
        Kind::Tagged(tag, _, slots) => {
            within(tag, look);
            slots.iter().for_each(|slot| within(slot, look));
        }
        Kind::Array(items) => elements(items, look),
        Kind::Object(properties) | Kind::Keywords(properties) => {
            properties.iter().for_each(|property| match property {
                Property::Pair(key, value) => {
                    within(key, look);
                    within(value, look);
                }
                Property::Spread(value) => within(value, look),
            });
        }
        Kind::Function(function) => each_expression(&function.body, look),
        Kind::Unary(_, one) | Kind::Member(one, _) | Kind::Await(one) => within(one, look),
        Kind::Binary(_, one, other) | Kind::Index(one, other) => {
            within(one, look);
            within(other, look);
        }
        Kind::Conditional(test, then, otherwise) => {
            [test, then, otherwise].into_iter().for_each(|one| within(one, look));
        }
        Kind::Assign(target, _, value) => {
            if let Target::Expression(target) = target.as_ref() {
                within(target, look);
            }
            within(value, look);
        }
        Kind::Call(callee, arguments) | Kind::New(callee, arguments) => {
            within(callee, look);
            elements(arguments, look);
        }
        Kind::Null
        | Kind::Boolean(_)
        | Kind::Number(_)
        | Kind::String(_)
        | Kind::Regex(..)
        | Kind::Name(_)
        | Kind::Other => {}
    }
}
