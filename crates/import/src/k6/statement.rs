//! Statements of functions, whose requests become steps.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::check::Condition;
use super::evaluate::DEEPEST;
use super::lost::{End, Exit, IN_LOOP, Lost, RUN_DECIDES};
use super::syntax::{Element, Expression, Kind, Pattern, Property, Span, Statement, StatementKind, Target};
use super::value::{Closure, Test, Value};
use super::{Importer, Item, Language};
use crate::flow::MOST_WRITTEN_OUT;

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
        self.in_function(|importer| importer.block(&closure.function.body, scope))
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
            let (end, is_all) = match &statement.kind {
                StatementKind::If(test, then, otherwise) => {
                    self.branch(test, then, otherwise, &statements[index + 1..], scope)
                }
                _ => (self.statement(statement, scope), false),
            };
            if std::mem::take(&mut self.is_ending) {
                return End::left(Exit::Iteration);
            }
            match end {
                End::Open if is_all => return End::Open,
                End::Open => {}
                end => return end,
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
                return End::Left(Exit::Function, value);
            }
            StatementKind::If(test, then, otherwise) => {
                return self.branch(test, then, otherwise, &[], scope).0;
            }
            StatementKind::For { before, test, update, body } => {
                return self.counted(before.as_deref(), test.as_ref(), update.as_ref(), body, span, scope);
            }
            StatementKind::ForOf(pattern, list, body) => {
                let (at, list) = (list.span, self.evaluate(list, scope));
                return match &list {
                    Value::Array(items) => self.over(pattern, items, body, span, scope),
                    list => {
                        let lost = list.lost().cloned().unwrap_or_else(|| Lost::new(at, IN_LOOP));
                        self.uncertain(&lost, body, scope, |importer, inner| {
                            let item = Value::Lost(Rc::clone(&lost));
                            importer.bind(pattern, item, inner, true, span);
                        })
                    }
                };
            }
            StatementKind::While(test, body) => {
                return self.counted(None, Some(test), None, body, span, scope);
            }
            StatementKind::Unfollowed(body) => {
                let lost = Lost::new(span, "this kind of statement is not followed");
                let end = self.uncertain(&lost, body, scope, |_, _| {});
                if self.course.is_in_loop() && exits(body).contains(&Exit::Turn) {
                    self.may_leave(Exit::Turn, &Value::Undefined, &lost);
                }
                return end;
            }
            StatementKind::Program(name) => {
                let class = Value::Lost(Lost::class(span));
                self.scopes[scope].names.insert(name.clone(), class);
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
                return End::left(Exit::Iteration);
            }
            StatementKind::Break => return End::left(Exit::Loop),
            StatementKind::Continue => return End::left(Exit::Turn),
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

    /// A condition. `true` if the statements behind it were carried out already.
    fn branch(
        &mut self,
        test: &Expression,
        then: &[Statement],
        otherwise: &[Statement],
        rest: &[Statement],
        scope: usize,
    ) -> (End, bool) {
        let value = self.evaluate(test, scope);
        if self.language == Language::Python
            && let Some(end) = self.verdict(&value, test.span, then, otherwise, scope)
        {
            return (end, false);
        }
        if let Some(flag) = self.truth(&value) {
            return (self.inner(if flag { then } else { otherwise }, scope), false);
        }
        let tested = self.test(&value, test.span);
        match tested.and_then(|tested: Test| self.condition(&tested)) {
            Some(Condition::Good(requests)) => {
                if ends(otherwise) {
                    self.end_after_failure(&requests);
                }
                if !otherwise.is_empty() {
                    self.leave_out(otherwise, AFTER_FAILURE);
                }
                if !is_check(test) {
                    self.note(
                        test.span,
                        "what follows a request needs a good response: the condition is taken to hold",
                    );
                }
                (self.taken_to_hold(then, otherwise, test.span, scope), false)
            }
            Some(Condition::Bad(requests)) => {
                if ends(then) {
                    self.end_after_failure(&requests);
                }
                if self.course.is_called() && exits(then).contains(&Exit::Function) {
                    let becomes = "the function ends after a failure there: here the iteration does";
                    self.note(test.span, becomes);
                }
                self.leave_out(then, AFTER_FAILURE);
                (self.taken_to_hold(otherwise, then, test.span, scope), false)
            }
            Some(Condition::Plan(condition)) => self.both(condition, then, otherwise, rest, test.span, scope),
            None => {
                let lost = value.lost().cloned().unwrap_or_else(|| Lost::new(test.span, RUN_DECIDES));
                self.in_part(&lost, |importer| {
                    for side in [then, otherwise] {
                        let end = importer.inner(side, scope);
                        importer.perhaps(&end, &lost);
                    }
                });
                (End::Open, false)
            }
        }
    }

    /// The side of a condition that is carried out unless a request fails. A loop that is left for that
    /// reason, or that goes on for it, is not followed.
    fn taken_to_hold(
        &mut self,
        carried_out: &[Statement],
        left_out: &[Statement],
        span: Span,
        scope: usize,
    ) -> End {
        let end = self.inner(carried_out, scope);
        if !self.course.is_in_loop() {
            return end;
        }
        let lost = Lost::new(span, RUN_DECIDES);
        for exit in exits(left_out) {
            // A failure ends the iteration.
            let is_end = exit == Exit::Iteration || exit == Exit::Function && !self.course.is_called();
            if !is_end {
                self.may_leave(exit, &Value::Undefined, &lost);
            }
        }
        match &end {
            End::Left(Exit::Turn | Exit::Loop | Exit::Function, _) => {
                self.perhaps(&end, &lost);
                End::Open
            }
            _ => end,
        }
    }

    /// Lets the iteration end after a failure of these requests.
    fn end_after_failure(&mut self, requests: &[usize]) {
        for request in requests {
            self.requests[*request].step.on_failure = plimsoll_document::Field::Absent;
        }
    }

    /// Both sides of a condition that the run decides.
    fn both(
        &mut self,
        condition: String,
        then: &[Statement],
        otherwise: &[Statement],
        rest: &[Statement],
        span: Span,
        scope: usize,
    ) -> (End, bool) {
        if !is_left(then) && is_left(otherwise) {
            return self.both(format!("not ({condition})"), otherwise, then, rest, span, scope);
        }
        let lost = Lost::new(span, RUN_DECIDES);
        let mut ours = self.side(|importer| importer.inner(then, scope));
        let is_all = !matches!(ours.end, End::Open);
        let mut theirs = self.side(|importer| {
            let end = importer.inner(otherwise, scope);
            match end {
                // What it declares belongs to the block itself.
                End::Open if is_all => importer.block(rest, scope),
                end => end,
            }
        });
        let (then, otherwise) = (std::mem::take(&mut ours.items), std::mem::take(&mut theirs.items));
        self.push(Item::Branch(condition, then, otherwise));
        (self.join(ours, theirs, &lost), is_all)
    }

    /// Statements that are carried out several times, or not at all.
    pub(crate) fn uncertain(
        &mut self,
        lost: &Rc<Lost>,
        body: &[Statement],
        scope: usize,
        prepare: impl FnOnce(&mut Self, usize),
    ) -> End {
        let inner = self.open_scope(Some(scope));
        self.in_loop(|importer| {
            importer.in_part(lost, |importer| {
                prepare(importer, inner);
                let end = importer.block(body, inner);
                if let End::Left(Exit::Function | Exit::Iteration, _) = &end {
                    importer.perhaps(&end, lost);
                }
            });
            End::Open
        })
    }

    /// Variables that statements change have values there that are not known.
    fn forget(&mut self, body: &[Statement], lost: &Rc<Lost>, scope: usize) {
        let mut names = BTreeSet::new();
        each_expression(body, &mut |expression| {
            if let Kind::Assign(target, ..) = &expression.kind {
                assigned(target, &mut names);
            }
        });
        for name in names {
            if let Some(owner) = self.scope_of(&name, scope) {
                self.set_name(owner, &name, Value::Lost(Rc::clone(lost)));
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
        let is_written_out = reads || changes_outside || update.is_none() || is_left_early(body);
        self.in_loop(|importer| {
            let mut turns = 0;
            while turns <= MOST_WRITTEN_OUT {
                let value = test.map(|test| importer.evaluate(test, around));
                match value.as_ref().map(|value| importer.truth(value)) {
                    Some(Some(false)) => break,
                    Some(Some(true)) => {}
                    _ => {
                        let lost = value.as_ref().and_then(Value::lost).cloned();
                        let lost =
                            lost.unwrap_or_else(|| Lost::new(test.map_or(span, |test| test.span), IN_LOOP));
                        return importer.unknown_count(test, update.is_some(), body, &lost, around);
                    }
                }
                if is_written_out {
                    let is_lost = importer.course.lost().is_some();
                    match importer.inner(body, around) {
                        End::Open | End::Left(Exit::Turn, _) => importer.end_turn(),
                        end => return end,
                    }
                    if is_lost {
                        // All further turns are lost as well.
                        return End::Open;
                    }
                }
                turns += 1;
                if let Some(update) = update {
                    importer.evaluate(update, around);
                }
            }
            if turns > MOST_WRITTEN_OUT && update.is_none() {
                let lost = Lost::new(span, format!("it goes on after {MOST_WRITTEN_OUT} turns"));
                importer.refuse(span, &lost);
            } else if turns > MOST_WRITTEN_OUT {
                importer.note(span, format!("at most {MOST_WRITTEN_OUT} turns are taken over"));
            }
            if is_written_out || turns == 0 {
                return End::Open;
            }
            importer.repeat(turns.to_string(), body, span, around)
        })
    }

    /// A loop whose number of turns the run knows: `i < count`.
    fn unknown_count(
        &mut self,
        test: Option<&Expression>,
        counts: bool,
        body: &[Statement],
        lost: &Rc<Lost>,
        scope: usize,
    ) -> End {
        if let Some(Expression { kind: Kind::Binary("<" | "<=", _, limit), .. }) = test
            && counts
            && !is_left_early(body)
        {
            let value = self.evaluate(limit, scope);
            if matches!(value, Value::Uniform(_) | Value::Text(_) | Value::Body(..) | Value::Row(..)) {
                let text = self.text_of(&value, limit.span);
                let template = self.written(&text, super::Writing::Plain);
                let name = self.variable("turns", template);
                self.forget(body, lost, scope);
                let names: Vec<String> = self.scopes[scope].names.keys().cloned().collect();
                for name in names {
                    self.scopes[scope].names.insert(name, Value::Lost(Rc::clone(lost)));
                }
                return self.repeat(format!("${{{name}}}"), body, limit.span, scope);
            }
        }
        self.uncertain(lost, body, scope, |importer, inner| {
            if let Some(test) = test {
                importer.evaluate(test, inner);
            }
        })
    }

    /// Statements that are the same in each turn.
    fn repeat(&mut self, times: String, body: &[Statement], span: Span, scope: usize) -> End {
        let lost = Lost::new(span, IN_LOOP);
        let mut turn = self.side(|importer| importer.inner(body, scope));
        let (is_left, is_lost) = (!matches!(turn.end, End::Open | End::Left(Exit::Turn, _)), turn.is_lost());
        let items = std::mem::take(&mut turn.items);
        let end = turn.end.clone();
        let nothing = self.side(|_| End::Open);
        self.join(turn, nothing, &lost);
        if is_left || is_lost {
            // It is left in its first turn, or perhaps.
            if is_lost && !items.is_empty() {
                self.refuse(span, &lost);
            }
            for item in items {
                self.push(item);
            }
            return end;
        }
        if !items.is_empty() {
            self.push(Item::Repeat(times, items));
        }
        End::Open
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
        self.in_loop(|importer| {
            for item in items.iter().take(MOST_WRITTEN_OUT) {
                let inner = importer.open_scope(Some(scope));
                importer.bind(pattern, item.clone(), inner, true, span);
                match importer.block(body, inner) {
                    End::Open | End::Left(Exit::Turn, _) => importer.end_turn(),
                    end => return end,
                }
            }
            End::Open
        })
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

/// Returns `true` if the block is left by one of its own statements.
fn is_left(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Break | StatementKind::Continue => true,
        StatementKind::Block(inner) => is_left(inner),
        _ => ends(std::slice::from_ref(statement)),
    })
}

/// Everything that statements may leave, also under conditions.
fn exits(statements: &[Statement]) -> BTreeSet<Exit> {
    let of = |statement: &Statement| match &statement.kind {
        StatementKind::Return(_) => BTreeSet::from([Exit::Function]),
        StatementKind::Throw(_) => BTreeSet::from([Exit::Iteration]),
        StatementKind::Expression(expression) if is_fail(expression) => BTreeSet::from([Exit::Iteration]),
        StatementKind::Break => BTreeSet::from([Exit::Loop]),
        StatementKind::Continue => BTreeSet::from([Exit::Turn]),
        StatementKind::If(_, then, otherwise) => &exits(then) | &exits(otherwise),
        StatementKind::Block(body) | StatementKind::Unfollowed(body) => exits(body),
        StatementKind::Try(body, _, finally) => &exits(body) | &exits(finally),
        StatementKind::For { body, .. }
        | StatementKind::ForOf(_, _, body)
        | StatementKind::While(_, body) => {
            exits(body).into_iter().filter(|exit| *exit > Exit::Loop).collect()
        }
        _ => BTreeSet::new(),
    };
    statements.iter().flat_map(of).collect()
}

/// Returns `true` if a turn may end before its last statement, and the iteration goes on.
fn is_left_early(body: &[Statement]) -> bool {
    exits(body).iter().any(|exit| *exit < Exit::Iteration)
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

/// Names that a pattern binds.
pub(crate) fn bound(pattern: &Pattern, names: &mut BTreeSet<String>) {
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
            StatementKind::Block(body) | StatementKind::Unfollowed(body) => each_expression(body, look),
            StatementKind::Try(body, _, finally) => {
                each_expression(body, look);
                each_expression(finally, look);
            }
            StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Import { .. }
            | StatementKind::Export(_)
            | StatementKind::Class(_)
            | StatementKind::Program(_)
            | StatementKind::Empty
            | StatementKind::Other => {}
        }
    }
}

pub(crate) fn within(expression: &Expression, look: &mut dyn FnMut(&Expression)) {
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
