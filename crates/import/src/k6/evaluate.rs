//! Values of expressions, as far as they are known before the run.

use std::rc::Rc;

use super::check::{all_of, is_only_good};
use super::lost::{Lost, RUN_DECIDES, merged};
use super::syntax::{Element, Expression, Kind, Pattern, Property, Span, Target};
use super::value::{Closure, Counter, Part, Test, Text, Uniform, Value, Writing};
use super::{Draw, Importer, Item, LONGEST_TEXT, Language, MOST_EVALUATED, MOST_ITEMS, Scope};
use crate::flow::check::Place;

/// Deepest nesting of expressions, blocks and calls that is followed.
pub(crate) const DEEPEST: usize = 96;

/// Bytes of values that count as one expression.
const BYTES_OF_ONE: usize = 1024;

/// Members of an object that is copied that count as one expression.
const MEMBERS_OF_ONE: usize = 16;

/// Most tests in one.
const MOST_TESTS: usize = 100;

/// Names that k6 and JavaScript provide without an import.
const GLOBALS: [&str; 26] = [
    "Math",
    "JSON",
    "Date",
    "String",
    "Number",
    "Boolean",
    "Object",
    "Array",
    "console",
    "open",
    "__ENV",
    "__VU",
    "__ITER",
    "parseInt",
    "parseFloat",
    "encodeURIComponent",
    "encodeURI",
    "decodeURIComponent",
    "crypto",
    "URL",
    "URLSearchParams",
    "setTimeout",
    "setInterval",
    "Promise",
    "Error",
    "globalThis",
];

impl Importer<'_> {
    /// The variable's scope.
    pub(crate) fn scope_of(&self, name: &str, scope: usize) -> Option<usize> {
        let mut next = Some(scope);
        while let Some(scope) = next {
            if self.scopes[scope].names.contains_key(name) {
                return Some(scope);
            }
            next = self.scopes[scope].parent;
        }
        None
    }

    /// A new scope within another.
    pub(crate) fn open_scope(&mut self, parent: Option<usize>) -> usize {
        self.scopes.push(Scope { parent, ..Scope::default() });
        self.scopes.len() - 1
    }

    pub(crate) fn evaluate(&mut self, expression: &Expression, scope: usize) -> Value {
        self.evaluated += 1;
        if self.evaluated > MOST_EVALUATED || self.depth > DEEPEST {
            self.too_long(expression.span);
            return Value::Unknown;
        }
        self.depth += 1;
        let value = self.evaluated(expression, scope);
        self.depth -= 1;
        let length = value.text_length();
        if length > LONGEST_TEXT {
            self.note(expression.span, "the text is too long: it is left out");
            return Value::Unknown;
        }
        let is_made = !matches!(expression.kind, Kind::Name(_) | Kind::Member(..) | Kind::Index(..));
        self.evaluated += (if is_made { value.size() } else { length }) / BYTES_OF_ONE;
        value
    }

    /// Reports the end of what is followed, once.
    pub(crate) fn too_long(&mut self, span: Span) {
        if !std::mem::replace(&mut self.is_too_long, true) {
            let at = self.at(span);
            let hint = "calls may be nested too deeply, or loops have too many turns: import a part of \
            the script";
            self.findings.hinted(&at, "the script goes on too long here to be followed", hint);
        }
    }

    fn evaluated(&mut self, expression: &Expression, scope: usize) -> Value {
        let span = expression.span;
        match &expression.kind {
            Kind::Null => Value::Null,
            Kind::Boolean(flag) => Value::Boolean(*flag),
            Kind::Number(number) => Value::Number(*number),
            Kind::String(text) => Value::String(text.clone()),
            Kind::Regex(pattern, flags) => {
                let flags: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
                Value::Regex(if flags.is_empty() { pattern.clone() } else { format!("(?{flags}){pattern}") })
            }
            Kind::Name(name) => self.name(name, scope, span),
            Kind::Template(texts, slots) => self.template(texts, slots, scope),
            Kind::Tagged(tag, texts, slots) => {
                let tag = self.evaluate(tag, scope);
                let url = self.template(texts, slots, scope);
                if matches!(&tag, Value::Builtin(path) if path == "http.url") {
                    let name = Value::String(texts.join("${}"));
                    return Value::object(vec![("url".to_owned(), url), ("name".to_owned(), name)]);
                }
                self.note(span, "the tag is not carried out");
                url
            }
            Kind::Array(elements) => Value::list(self.elements(elements, scope)),
            Kind::Object(properties) => self.object(properties, scope),
            Kind::Keywords(properties) => match self.object(properties, scope) {
                Value::Object(members) => Value::Keywords(members),
                other => other,
            },
            Kind::Function(function) => {
                Value::Function(Rc::new(Closure { function: std::sync::Arc::clone(function), scope }))
            }
            Kind::Unary("delete", of) => self.delete(of, scope, span),
            Kind::Unary(operator, operand) => {
                let operand = self.evaluate(operand, scope);
                self.unary(operator, operand, span)
            }
            Kind::Binary(operator, left, right) => self.binary(operator, left, right, scope, span),
            Kind::Sum(terms) => {
                let mut sum: Option<Value> = None;
                for term in terms {
                    let value = self.evaluate(term, scope);
                    sum = Some(match sum {
                        None => value,
                        Some(sum) => self.sum(sum, value, term.span),
                    });
                }
                sum.unwrap_or(Value::Undefined)
            }
            Kind::Conditional(test, then, otherwise) => self.conditional(test, then, otherwise, scope),
            Kind::Assign(target, operator, value) => self.assign(target, operator, value, scope, span),
            Kind::Call(callee, arguments) => self.call(callee, arguments, scope, span),
            Kind::New(callee, arguments) => self.construct(callee, arguments, scope, span),
            Kind::Member(object, name) => {
                let object = self.evaluate(object, scope);
                self.member(&object, name)
            }
            Kind::Index(object, index) => {
                let wish = match &object.kind {
                    Kind::Name(name) | Kind::Member(_, name) => name.clone(),
                    _ => "row".to_owned(),
                };
                let (object, index) = (self.evaluate(object, scope), self.evaluate(index, scope));
                match (&object, &index) {
                    (Value::Lost(lost), _) | (_, Value::Lost(lost)) => Value::Lost(Rc::clone(lost)),
                    (Value::Array(items), Value::Number(number)) => {
                        // Python counts from the end below 0.
                        let number = match self.language {
                            Language::Python if *number < 0.0 => *number + items.len() as f64,
                            _ => *number,
                        };
                        let known = (number >= 0.0).then(|| items.get(number as usize)).flatten();
                        known.cloned().unwrap_or(Value::Undefined)
                    }
                    (Value::Csv(_), Value::Number(_)) => {
                        self.note(span, "each iteration takes the next row of the file");
                        self.row(&object, &wish, &index, span)
                    }
                    (Value::Array(items), _) if items.is_empty() => Value::Undefined,
                    (Value::Array(_) | Value::Csv(_), _) => self.row(&object, &wish, &index, span),
                    (_, index) => match self.settled(index, span) {
                        Some(name) => self.member(&object, &name),
                        None => Value::Unknown,
                    },
                }
            }
            Kind::Await(inner) => self.evaluate(inner, scope),
            Kind::Sequence(all) => {
                let mut last = Value::Undefined;
                for one in all {
                    last = self.evaluate(one, scope);
                }
                last
            }
            Kind::Other => {
                self.note(span, "it is not carried out: it is left out");
                Value::Unknown
            }
        }
    }

    fn name(&mut self, name: &str, scope: usize, span: Span) -> Value {
        if let Some(scope) = self.scope_of(name, scope) {
            return self.scopes[scope].names[name].clone();
        }
        match name {
            "undefined" => Value::Undefined,
            "NaN" => Value::Number(f64::NAN),
            "Infinity" => Value::Number(f64::INFINITY),
            name if self.language == Language::Python => self.python_name(name, span),
            "__VU" => Value::Counter(Counter::of_users()),
            "__ITER" => Value::Counter(Counter::of_iterations(false)),
            name if GLOBALS.contains(&name) => Value::Builtin(name.to_owned()),
            _ => {
                self.note(span, "nothing in the script has this name");
                Value::Unknown
            }
        }
    }

    fn template(&mut self, texts: &[String], slots: &[Expression], scope: usize) -> Value {
        let mut sum = Value::String(texts.first().cloned().unwrap_or_default());
        for (index, slot) in slots.iter().enumerate() {
            let value = self.evaluate(slot, scope);
            sum = self.joined(sum, value, slot.span);
            let behind = texts.get(index + 1).cloned().unwrap_or_default();
            if !behind.is_empty() {
                sum = self.joined(sum, Value::String(behind), slot.span);
            }
        }
        sum
    }

    pub(crate) fn elements(&mut self, elements: &[Element], scope: usize) -> Vec<Value> {
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.evaluate(&element.value, scope);
            match value {
                Value::Array(items) if element.is_spread && values.len() + items.len() <= MOST_ITEMS => {
                    values.extend(items.iter().cloned());
                }
                _ if element.is_spread => {
                    self.note(
                        element.value.span,
                        "its elements are not known before the run, or too many: they are left out",
                    );
                }
                value => values.push(value),
            }
        }
        values
    }

    pub(crate) fn object(&mut self, properties: &[Property], scope: usize) -> Value {
        let mut members: Vec<(String, Value)> = Vec::with_capacity(properties.len());
        let put = |members: &mut Vec<(String, Value)>, key: String, value: Value| match members
            .iter_mut()
            .find(|(known, _)| *known == key)
        {
            Some((_, known)) => *known = value,
            None => members.push((key, value)),
        };
        for property in properties {
            match property {
                Property::Pair(key, value) => {
                    let span = key.span;
                    let key = self.evaluate(key, scope);
                    let value = self.evaluate(value, scope);
                    match key.constant() {
                        Some(key) => put(&mut members, key, value),
                        None => self
                            .note(span, "the name of the member is not known before the run: it is left out"),
                    }
                }
                Property::Spread(value) => match self.evaluate(value, scope) {
                    Value::Object(more) => {
                        more.iter().for_each(|(key, value)| put(&mut members, key.clone(), value.clone()));
                    }
                    Value::Undefined | Value::Null => {}
                    _ => self.note(value.span, "its members are not known before the run: they are left out"),
                },
            }
        }
        Value::object(members)
    }

    /// `true` or `false`, where requests that were answered well are taken to be.
    pub(crate) fn truth(&mut self, value: &Value) -> Option<bool> {
        match value {
            Value::Response(_) => Some(true),
            // Lists and objects without elements are false in Python.
            Value::Array(items) if self.language == Language::Python => Some(!items.is_empty()),
            Value::Object(members) if self.language == Language::Python => Some(!members.is_empty()),
            Value::Text(text) => match text.parts.as_slice() {
                [Part::Environment(_, Some(given))] if !given.is_empty() => Some(true),
                _ => None,
            },
            value => value.truth(),
        }
    }

    /// The side of `test ? then : otherwise` that is known, or what both have in common.
    fn conditional(
        &mut self,
        test: &Expression,
        then: &Expression,
        otherwise: &Expression,
        scope: usize,
    ) -> Value {
        let value = self.evaluate(test, scope);
        if let Some(flag) = self.truth(&value) {
            return self.evaluate(if flag { then } else { otherwise }, scope);
        }
        if let Value::Test(tested) = &value
            && let Some(is_good) = is_only_good(tested)
        {
            self.note(
                test.span,
                "what follows a request needs a good response: the condition is taken to hold",
            );
            return self.evaluate(if is_good { then } else { otherwise }, scope);
        }
        if let Value::Text(text) = &value
            && let [Part::Environment(name, None)] = text.parts.as_slice()
        {
            self.note(test.span, format!("`{name}` has no value (--env): the other side is taken"));
            return self.evaluate(otherwise, scope);
        }
        let lost = value.lost().cloned().unwrap_or_else(|| Lost::new(test.span, RUN_DECIDES));
        self.in_part(&lost, |importer| {
            let one = importer.evaluate(then, scope);
            let other = importer.evaluate(otherwise, scope);
            merged(&one, &other, &lost)
        })
    }

    /// The text of a value that is known, or that the environment has; the latter is noted.
    pub(crate) fn settled(&mut self, value: &Value, span: Span) -> Option<String> {
        let Value::Text(text) = value else { return value.constant() };
        let part = |part: &Part| match part {
            Part::Literal(text) | Part::Environment(_, Some(text)) => Some(text.clone()),
            _ => None,
        };
        let settled = text.parts.iter().map(part).collect::<Option<String>>()?;
        if text.parts.iter().all(|part| matches!(part, Part::Literal(_))) {
            return Some(settled);
        }
        self.note(span, format!("the value that the environment has now is taken: `{settled}`"));
        Some(settled)
    }

    /// `delete object.name`
    fn delete(&mut self, of: &Expression, scope: usize, span: Span) -> Value {
        let (object, key) = match &of.kind {
            Kind::Member(object, name) => (object, Some(name.clone())),
            Kind::Index(object, index) => {
                let index = self.evaluate(index, scope);
                (object, index.constant())
            }
            _ => return Value::Undefined,
        };
        let whole = self.evaluate(object, scope);
        let new = match (&whole, key, self.course.lost()) {
            (Value::Object(members), Some(key), None) => {
                Value::object(members.iter().filter(|(known, _)| *known != key).cloned().collect())
            }
            (_, _, Some(lost)) => Value::Lost(Rc::clone(lost)),
            _ => Value::Lost(Lost::new(span, "it is not carried out")),
        };
        self.change(Some(object), &whole, &new, scope, span);
        Value::Boolean(true)
    }

    fn unary(&mut self, operator: &str, operand: Value, span: Span) -> Value {
        if let (Value::Lost(_), true) = (&operand, operator != "void") {
            return operand;
        }
        match (operator, &operand) {
            ("!", Value::Test(test)) => Value::Test(not(test.clone())),
            ("!", value) => match self.truth(value) {
                Some(flag) => Value::Boolean(!flag),
                None => match self.exists(value, span) {
                    Some(test) => Value::Test(not(test)),
                    None => Value::Unknown,
                },
            },
            ("-", value) if value.number().is_some() => Value::Number(-value.number().unwrap_or_default()),
            ("+", Value::Number(_)) => operand,
            ("+", value) if value.number().is_some() => Value::Number(value.number().unwrap_or_default()),
            ("+", Value::Builtin(_)) => Value::Unknown,
            ("+", _) => operand,
            ("void", _) => Value::Undefined,
            ("typeof", value) => match value {
                Value::String(_) | Value::Text(_) | Value::Json(_) => Value::text("string"),
                Value::Number(_) => Value::text("number"),
                Value::Boolean(_) => Value::text("boolean"),
                Value::Undefined => Value::text("undefined"),
                Value::Function(_) => Value::text("function"),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    fn binary(
        &mut self,
        operator: &'static str,
        left: &Expression,
        right: &Expression,
        scope: usize,
        span: Span,
    ) -> Value {
        let first = self.evaluate(left, scope);
        match operator {
            "&&" | "||" => {
                let is_and = operator == "&&";
                if let Some(truth) = self.truth(&first) {
                    return if truth == is_and { self.evaluate(right, scope) } else { first };
                }
                // `__ENV.X || 'default'`
                if let (Value::Text(text), false) = (&first, is_and)
                    && let [Part::Environment(name, given)] = text.parts.as_slice()
                {
                    if given.as_ref().is_some_and(|given| !given.is_empty()) {
                        return first;
                    }
                    let name = name.clone();
                    return match self.evaluate(right, scope).constant() {
                        Some(default) => Value::Text(Text::of(environment(name, default))),
                        None => first,
                    };
                }
                let second = self.behind(&first, is_and, left, right, scope);
                if let Value::Lost(_) = first {
                    return first;
                }
                let (Some(one), Some(other)) = (self.test(&first, span), self.test(&second, span)) else {
                    return if is_and { Value::Unknown } else { first };
                };
                let test = if is_and { all_of(vec![one, other]) } else { Test::Any(vec![one, other]) };
                if test.count() > MOST_TESTS { Value::Unknown } else { Value::Test(test) }
            }
            "??" => match first {
                Value::Undefined | Value::Null => self.evaluate(right, scope),
                Value::Text(text) if matches!(text.parts.as_slice(), [Part::Environment(_, None)]) => {
                    let [Part::Environment(name, _)] = text.parts.as_slice() else {
                        return Value::Text(text);
                    };
                    match self.evaluate(right, scope).constant() {
                        Some(default) => Value::Text(Text::of(environment(name.clone(), default))),
                        None => Value::Text(text),
                    }
                }
                known => known,
            },
            "===" | "!==" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is not" => {
                let second = self.evaluate(right, scope);
                self.compare(operator, &first, &second, span)
            }
            _ => {
                let second = self.evaluate(right, scope);
                self.arithmetic(operator, &first, &second)
            }
        }
    }

    /// The right side of `&&` or `||`, of which the run decides whether it is carried out.
    fn behind(
        &mut self,
        first: &Value,
        is_and: bool,
        left: &Expression,
        right: &Expression,
        scope: usize,
    ) -> Value {
        if let Value::Test(test) = first
            && is_only_good(test) == Some(is_and)
        {
            return self.evaluate(right, scope);
        }
        let lost = first.lost().cloned().unwrap_or_else(|| Lost::new(left.span, RUN_DECIDES));
        self.in_part(&lost, |importer| importer.evaluate(right, scope))
    }

    pub(crate) fn sum(&mut self, left: Value, right: Value, span: Span) -> Value {
        if let Some(lost) = left.lost().or_else(|| right.lost()) {
            return Value::Lost(Rc::clone(lost));
        }
        let is_number = |value: &Value| {
            matches!(
                value,
                Value::Number(_) | Value::Boolean(_) | Value::Null | Value::Uniform(_) | Value::Counter(_)
            )
        };
        if is_number(&left) && is_number(&right) {
            return self.arithmetic("+", &left, &right);
        }
        let may_be_number =
            |value: &Value| is_number(value) || matches!(value, Value::Text(Text { is_number: true, .. }));
        if may_be_number(&left) && may_be_number(&right) {
            return Value::Unknown;
        }
        self.joined(left, right, span)
    }

    /// Two values as one text.
    pub(crate) fn joined(&mut self, left: Value, right: Value, span: Span) -> Value {
        if let (Value::Array(one), Value::Array(other), Language::Python) = (&left, &right, self.language)
            && one.len() + other.len() <= MOST_ITEMS
        {
            return Value::list(one.iter().chain(other.iter()).cloned().collect());
        }
        if let Some(lost) = left.lost().or_else(|| right.lost()) {
            return Value::Lost(Rc::clone(lost));
        }
        if let (Some(one), Some(other)) = (self.language.shown(&left), self.language.shown(&right)) {
            return Value::String(one + &other);
        }
        let mut text = self.text_of(&left, span);
        text.is_number = false;
        let right = self.text_of(&right, span);
        text.append(right);
        Value::Text(text)
    }

    fn arithmetic(&self, operator: &str, left: &Value, right: &Value) -> Value {
        if let Some(lost) = left.lost().or_else(|| right.lost()) {
            return Value::Lost(Rc::clone(lost));
        }
        let calculated = |a: f64, b: f64| match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "%" => a % b,
            "**" => a.powf(b),
            _ => f64::NAN,
        };
        match (left, right, operator) {
            (Value::Uniform(uniform), other, "+" | "-" | "*" | "/") if other.number().is_some() => {
                let number = other.number().unwrap_or_default();
                scaled(*uniform, |x| calculated(x, number), matches!(operator, "+" | "-"))
            }
            (other, Value::Uniform(uniform), "+" | "*") if other.number().is_some() => {
                let number = other.number().unwrap_or_default();
                scaled(*uniform, |x| calculated(x, number), operator == "+")
            }
            (Value::Counter(counter), other, "+" | "-")
                if other.number().is_some_and(|n| n.fract() == 0.0) =>
            {
                let number = other.number().unwrap_or_default() as i64;
                let shift = if operator == "+" { number } else { -number };
                Value::Counter(Counter { shift: counter.shift.saturating_add(shift), ..*counter })
            }
            (Value::Counter(counter), by, "%") => {
                let wraps = by.number().map_or(0, |by| by as usize);
                Value::Counter(Counter { wraps: Some(wraps), ..*counter })
            }
            _ => match (left.number(), right.number()) {
                (Some(a), Some(b)) if ["+", "-", "*", "/", "%", "**"].contains(&operator) => {
                    Value::Number(calculated(a, b))
                }
                _ => Value::Unknown,
            },
        }
    }

    fn assign(
        &mut self,
        target: &Target,
        operator: &'static str,
        value: &Expression,
        scope: usize,
        span: Span,
    ) -> Value {
        let mut new = self.evaluate(value, scope);
        let target = match target {
            Target::Expression(target) => target,
            Target::Pattern(pattern) => {
                self.bind(pattern, new.clone(), scope, false, span);
                return new;
            }
        };
        if operator == "="
            && let Kind::Name(name) | Kind::Member(_, name) = &target.kind
            && (self.language == Language::Python || matches!(target.kind, Kind::Name(_)) || new.is_drawn())
        {
            new = self.kept(name, new, span);
        }
        if operator != "=" {
            let old = self.evaluate(target, scope);
            new = match operator {
                "+=" => self.sum(old, new, span),
                "-=" | "*=" | "/=" | "%=" => self.arithmetic(&operator[..1], &old, &new),
                _ => Value::Unknown,
            };
        }
        new = self.assigned(new);
        self.put(target, new.clone(), scope, span);
        new
    }

    /// Gives a variable, or a member of one, another value.
    pub(crate) fn put(&mut self, target: &Expression, value: Value, scope: usize, span: Span) {
        let (object, key) = match &target.kind {
            Kind::Name(name) => {
                match self.scope_of(name, scope) {
                    Some(owner) => self.set_name(owner, name, value),
                    None => {
                        self.scopes[scope].names.insert(name.clone(), value);
                    }
                }
                return;
            }
            Kind::Member(object, name) => (object, Some(name.clone())),
            Kind::Index(object, index) => {
                let index = self.evaluate(index, scope);
                (object, index.constant())
            }
            _ => {
                self.note(span, "it is not carried out: it is left out");
                return;
            }
        };
        let whole = self.evaluate(object, scope);
        let new = match (&whole, key) {
            (Value::Object(members), Some(key)) => {
                self.evaluated += members.len() / MEMBERS_OF_ONE;
                let mut members = members.to_vec();
                members.retain(|(known, _)| *known != key);
                members.push((key, value));
                Value::object(members)
            }
            (Value::Array(items), Some(key)) if key.parse().is_ok_and(|index: usize| index < items.len()) => {
                let mut items = items.to_vec();
                if let Ok(index) = key.parse::<usize>()
                    && let Some(item) = items.get_mut(index)
                {
                    *item = value;
                }
                Value::list(items)
            }
            (Value::Object(_) | Value::Array(_), _) => {
                Value::Lost(Lost::new(span, "it is not known before the run which member changes"))
            }
            (Value::Lost(_), _) => return,
            (Value::Builtin(path), _) if path == "http.request" => return,
            (Value::Builtin(path), Some(key)) if self.language == Language::Python => {
                let path = path.clone();
                self.set_client(&path, &key, value, span);
                return;
            }
            (Value::Class(class), Some(key)) => {
                let lost = Value::Lost(Lost::new(span, super::lost::KEPT));
                let values = &mut self.classes[*class].values;
                values.retain(|(known, _)| *known != key);
                values.push((key, lost));
                return;
            }
            _ => {
                self.note(span, "it is not carried out: it is left out");
                return;
            }
        };
        self.change(Some(object), &whole, &new, scope, span);
    }

    /// Binds a value to the names of a pattern: new ones if `is_new`.
    pub(crate) fn bind(&mut self, pattern: &Pattern, value: Value, scope: usize, is_new: bool, span: Span) {
        match pattern {
            Pattern::Name(name) if is_new => {
                let value = self.kept(name, value, span);
                self.scopes[scope].names.insert(name.clone(), value);
            }
            Pattern::Name(name) => {
                let target = Expression { span, kind: Kind::Name(name.clone()) };
                let value = self.assigned(value);
                self.put(&target, value, scope, span);
            }
            Pattern::Default(pattern, default) => {
                let value = match value {
                    Value::Undefined => self.evaluate(default, scope),
                    value => value,
                };
                self.bind(pattern, value, scope, is_new, span);
            }
            Pattern::Object(members, rest) => {
                for (key, pattern) in members {
                    let member = self.member(&value, key);
                    self.bind(pattern, member, scope, is_new, span);
                }
                if let Some(rest) = rest {
                    let left = match &value {
                        Value::Object(all) => Value::object(
                            all.iter()
                                .filter(|(key, _)| !members.iter().any(|(known, _)| known == key))
                                .cloned()
                                .collect(),
                        ),
                        _ => Value::Unknown,
                    };
                    self.scopes[scope].names.insert(rest.clone(), left);
                }
            }
            Pattern::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let Some(pattern) = item else { continue };
                    let member = match &value {
                        Value::Array(items) => items.get(index).cloned().unwrap_or(Value::Undefined),
                        _ => self.member(&value, &index.to_string()),
                    };
                    self.bind(pattern, member, scope, is_new, span);
                }
            }
            Pattern::Other => self.note(span, "it is not carried out: it is left out"),
        }
    }

    /// A value that a variable keeps: one that is drawn is drawn once, and a value of a response has the name
    /// of the variable.
    pub(crate) fn kept(&mut self, name: &str, value: Value, span: Span) -> Value {
        if self.is_first && matches!(value, Value::Uniform(_) | Value::Text(_)) && value.is_drawn() {
            self.note_first_draw(span);
        }
        match &value {
            Value::Taken(request, place) if !matches!(place, Place::Status | Place::Body) => {
                self.wish(*request, place.clone(), name);
            }
            Value::Body(request, path) if !path.is_empty() => {
                let place = Place::Json(crate::flow::check::json_pointer(path));
                self.wish(*request, place, name);
            }
            _ => {}
        }
        match value {
            Value::Uniform(uniform) => {
                self.draws.push(Draw {
                    uniform,
                    wish: name.to_owned(),
                    variable: None,
                    is_first: self.is_first,
                });
                let draw = self.draws.len() - 1;
                if !self.is_first {
                    self.push(Item::Draw(draw));
                }
                Value::Uniform(Uniform { draw: Some(draw), ..uniform })
            }
            Value::Text(text) if text.is_drawn => {
                let template = self.written(&text, Writing::Plain);
                let ours = self.variable(name, template);
                Value::Text(Text { is_number: text.is_number, ..Text::slot(ours) })
            }
            Value::Test(test) if test.is_drawn() => {
                Value::Lost(Lost::new(span, "a condition on a drawn value is not kept"))
            }
            value if !value.is_drawn() => value,
            Value::Object(members) => {
                let kept =
                    |(key, value): &(String, Value)| (key.clone(), self.kept(key, value.clone(), span));
                Value::object(members.iter().map(kept).collect())
            }
            Value::Array(items) => {
                Value::list(items.iter().map(|item| self.kept(name, item.clone(), span)).collect())
            }
            Value::Json(value) => Value::in_json(self.kept(name, Value::clone(&value), span)),
            value => value,
        }
    }

    /// Notes that a file draws a value before its iterations, which a plan does in each of them.
    pub(crate) fn note_first_draw(&mut self, span: Span) {
        self.note(
            span,
            match self.language {
                Language::JavaScript => "each user draws it once there, and each iteration here",
                Language::Python => "it is drawn once for the run there, and by each iteration here",
            },
        );
    }

    /// Lets a value of a response have this name, should it be taken.
    fn wish(&mut self, request: usize, place: Place, name: &str) {
        let wishes = &mut self.wishes;
        wishes.entry(request).or_default().retain(|(known, _)| *known != place);
        wishes.entry(request).or_default().push((place, name.to_owned()));
    }

    /// A member of a value.
    pub(crate) fn member(&mut self, object: &Value, name: &str) -> Value {
        match object {
            Value::Lost(_) => object.clone(),
            Value::Object(_) if self.language == Language::Python => self.attribute(object, name),
            Value::Object(_) => object.member(name).cloned().unwrap_or(Value::Undefined),
            Value::Array(items) if name == "length" => Value::Number(items.len() as f64),
            Value::Array(items) => {
                let index = name.parse::<usize>().ok();
                index.and_then(|index| items.get(index).cloned()).unwrap_or(Value::Undefined)
            }
            Value::String(text) if name == "length" => Value::Number(text.encode_utf16().count() as f64),
            Value::Csv(file) => match name {
                "data" => object.clone(),
                "length" => Value::Number(self.csv_files[*file].rows as f64),
                _ => Value::Unknown,
            },
            Value::Row(source, path) => {
                let mut path = path.clone();
                path.push(name.to_owned());
                Value::Row(*source, path)
            }
            Value::Response(request) => match name {
                "status" => Value::Taken(*request, Place::Status),
                "body" => Value::Taken(*request, Place::Body),
                name if self.language == Language::Python => self.part_of(*request, name),
                name => Value::Facet(*request, vec![name.to_owned()]),
            },
            Value::Facet(request, path) => {
                let mut path = path.clone();
                path.push(name.to_owned());
                let of: Vec<&str> = path.iter().map(String::as_str).collect();
                match of.as_slice() {
                    ["headers", header] => Value::Taken(*request, Place::Header((*header).to_owned())),
                    ["cookies", cookie] if self.language == Language::Python => {
                        Value::Taken(*request, Place::Cookie((*cookie).to_owned()))
                    }
                    ["cookies", cookie, "0", "value"] => {
                        Value::Taken(*request, Place::Cookie((*cookie).to_owned()))
                    }
                    _ => Value::Facet(*request, path),
                }
            }
            Value::Body(..) | Value::Taken(..) if name == "length" => Value::Length(Rc::new(object.clone())),
            Value::Body(request, path) => {
                let mut path = path.clone();
                path.push(name.to_owned());
                Value::Body(*request, path)
            }
            Value::Builtin(path) => self.provided(path, name),
            Value::Class(class) => self.of_class(*class, name).cloned().unwrap_or(Value::Unknown),
            Value::Function(_) | Value::Null | Value::Undefined => Value::Undefined,
            _ => Value::Unknown,
        }
    }

    /// A member of something that k6 provides.
    fn provided(&mut self, path: &str, name: &str) -> Value {
        match (path, name) {
            ("os.environ", "get") => Value::Builtin("os.environ.get".to_owned()),
            ("__ENV" | "os.environ", name) => {
                let given = self.environment.get(name).map(|value| (value, true));
                let given = given.or_else(|| self.options.environment.get(name).map(|value| (value, false)));
                match given {
                    // A scenario's own values are constants.
                    Some((value, true)) => Value::String(value.clone()),
                    Some((value, false)) => {
                        Value::Text(Text::of(environment(name.to_owned(), value.clone())))
                    }
                    None => Value::Text(Text::of(Part::Environment(name.to_owned(), None))),
                }
            }
            ("exec.vu", "idInTest" | "idInInstance") => Value::Counter(Counter::of_users()),
            ("exec.vu", "iterationInInstance" | "iterationInScenario") => {
                Value::Counter(Counter::of_iterations(false))
            }
            ("exec.scenario", "iterationInTest" | "iterationInInstance") => {
                Value::Counter(Counter::of_iterations(true))
            }
            ("exec.scenario", "name") => Value::String(self.scenario.clone()),
            ("Math", "PI") => Value::Number(std::f64::consts::PI),
            ("string", "ascii_lowercase") => Value::String(('a'..='z').collect()),
            ("string", "ascii_uppercase") => Value::String(('A'..='Z').collect()),
            ("string", "ascii_letters") => Value::String(('a'..='z').chain('A'..='Z').collect()),
            ("string", "digits") => Value::String(('0'..='9').collect()),
            ("string", "hexdigits") => Value::text("0123456789abcdefABCDEF"),
            ("globalThis", name) => Value::Builtin(name.to_owned()),
            _ => Value::Builtin(format!("{path}.{name}")),
        }
    }

    /// The text of a number that k6 counts.
    pub(crate) fn counter(&mut self, counter: Counter, span: Span) -> Text {
        if counter.is_changed() {
            return self.empty(span);
        }
        self.note(
            span,
            if counter.is_user {
                "users have no numbers: it is the number of the iteration in the whole run, from 0"
            } else {
                "it is the number of the iteration in the whole run, from 0"
            },
        );
        Text { is_number: true, ..Text::slot("sequence") }
    }
}

/// A variable of the environment; a default that would end the slot is a literal.
pub(crate) fn environment(name: String, default: String) -> Part {
    if default.contains(['{', '}', '"', '\'', '\n', '\r', '$']) || default.trim() != default {
        return Part::Literal(default);
    }
    Part::Environment(name, Some(default))
}

/// A number that is drawn, after a calculation; whole ones stay whole if they are only moved.
fn scaled(uniform: Uniform, calculated: impl Fn(f64) -> f64, is_moved: bool) -> Value {
    if uniform.is_whole && !is_moved {
        return Value::Unknown;
    }
    let (one, other) = (calculated(uniform.low), calculated(uniform.high));
    if !(one.is_finite() && other.is_finite()) {
        return Value::Unknown;
    }
    let is_whole = uniform.is_whole && one.fract() == 0.0 && other.fract() == 0.0;
    Value::Uniform(Uniform { low: one.min(other), high: one.max(other), is_whole, draw: None })
}

/// The opposite of a test.
pub(crate) fn not(test: Test) -> Test {
    match test {
        Test::Not(inner) => *inner,
        Test::Status(request, statuses) => Test::Status(request, statuses.others()),
        Test::Value(request, place, spec) => Test::Value(request, place, crate::flow::check::turned(spec)),
        other => Test::Not(Box::new(other)),
    }
}
