//! Calls: of functions of the script, of those that are provided, and of methods.

use std::rc::Rc;

use plimsoll_document::Field;

use super::kept::changes;
use super::lost::{Lost, Methods};
use super::statement::LEFT_OUT;
use super::syntax::{Element, Expression, Kind, Span};
use super::typed;
use super::value::{Closure, Part, Statuses, Test, Text, Tree, Value, Writing};
use super::{Importer, Item, LONGEST_TEXT, Language, MOST_ITEMS, title};
use crate::amount::nanos;
use crate::flow::check::{self as checks, Place};
use crate::flow::{self, MOST_WRITTEN_OUT};

/// Libraries whose functions do not change what they are given.
const PURE: [&str; 25] = [
    "copy",
    "crypto",
    "encoding",
    "utils",
    "JSON",
    "Math",
    "Array",
    "String",
    "Number",
    "Date",
    "papaparse",
    "url",
    "decodeURIComponent",
    "py",
    "json",
    "math",
    "os",
    "sys",
    "time",
    "datetime",
    "uuid",
    "base64",
    "urllib",
    "re",
    "hashlib",
];

impl Importer<'_> {
    pub(crate) fn call(
        &mut self,
        callee: &Expression,
        arguments: &[Element],
        scope: usize,
        span: Span,
    ) -> Value {
        let (object, name) = match &callee.kind {
            Kind::Member(object, name) => (Some(object), name.clone()),
            Kind::Name(name) => (None, name.clone()),
            _ => (None, String::new()),
        };
        if let Some(object) = object {
            let owner = self.evaluate(object, scope);
            if (name == "push" || name == "append" && self.language == Language::Python)
                && let Value::Array(items) = &owner
            {
                let wish = match &object.kind {
                    Kind::Name(name) | Kind::Member(_, name) => name.as_str(),
                    _ => "item",
                };
                let mut items = items.to_vec();
                for item in self.elements(arguments, scope) {
                    items.push(self.kept(wish, item, span));
                }
                let new = match items.len() {
                    ..=MOST_WRITTEN_OUT => Value::list(items),
                    _ => Value::Lost(Lost::new(span, "the list is too long")),
                };
                let new = self.assigned(new);
                self.change(Some(object), &owner, &new, scope, span);
                return Value::Undefined;
            }
            let member = match &owner {
                Value::Object(_) | Value::Builtin(_) => self.member(&owner, &name),
                _ => Value::Undefined,
            };
            let values = self.elements(arguments, scope);
            return match member {
                Value::Function(closure) => self.invoke(&closure, values, span),
                Value::Builtin(path) => self.provided_call(&path, values, span),
                Value::Lost(lost) => self.call_of_lost(&lost, &values, span),
                _ => self.method(&owner, &name, values, span),
            };
        }
        match self.evaluate(callee, scope) {
            Value::Function(closure) => {
                let values = self.elements(arguments, scope);
                self.invoke(&closure, values, span)
            }
            Value::Builtin(path) => {
                let values = self.elements(arguments, scope);
                self.provided_call(&path, values, span)
            }
            Value::Lost(lost) => {
                let values = self.elements(arguments, scope);
                self.call_of_lost(&lost, &values, span)
            }
            _ => {
                let values = self.elements(arguments, scope);
                self.not_followed(&values, span)
            }
        }
    }

    /// A call of a function that is lost: it may send requests.
    fn call_of_lost(&mut self, lost: &Rc<Lost>, values: &[Value], span: Span) -> Value {
        self.refuse(span, lost);
        self.lose_arguments(values, span);
        Value::Lost(Rc::clone(lost))
    }

    /// A call that is not carried out.
    pub(crate) fn not_followed(&mut self, values: &[Value], span: Span) -> Value {
        self.lose_arguments(values, span);
        self.unknown_call(span)
    }

    /// A call of a function that is provided, and is not carried out.
    pub(crate) fn not_provided(&mut self, path: &str, values: &[Value], span: Span) -> Value {
        let is_pure = PURE.contains(&path.split('.').next().unwrap_or_default());
        let is_kept = |value: &&Value| !is_pure || !matches!(value, Value::Array(_) | Value::Object(_));
        let values: Vec<Value> = values.iter().filter(is_kept).cloned().collect();
        self.not_followed(&values, span)
    }

    pub(crate) fn construct(
        &mut self,
        callee: &Expression,
        arguments: &[Element],
        scope: usize,
        span: Span,
    ) -> Value {
        let callee = self.evaluate(callee, scope);
        let values = self.elements(arguments, scope);
        match &callee {
            Value::Builtin(path) => match (path.as_str(), values.as_slice()) {
                ("data.SharedArray", [_, Value::Function(make)]) => {
                    let make = Rc::clone(make);
                    self.invoke(&make, Vec::new(), span)
                }
                ("Date", []) => Value::Builtin("now".to_owned()),
                ("Error", _) => Value::Unknown,
                ("Array", _) => Value::list(Vec::new()),
                (path, _) if path.starts_with("metrics.") => {
                    self.note(span, "plans have no metrics of their own: it is left out");
                    Value::Builtin("metric".to_owned())
                }
                _ => self.not_followed(&values, span),
            },
            Value::Lost(_) => callee.clone(),
            _ => self.not_followed(&values, span),
        }
    }

    /// A function that is provided, in the language of the script.
    fn provided_call(&mut self, path: &str, values: Vec<Value>, span: Span) -> Value {
        if !acts(path)
            && let Some(lost) = values.iter().find_map(Value::lost)
        {
            return Value::Lost(Rc::clone(lost));
        }
        match self.language {
            Language::JavaScript => self.builtin(path, values, span),
            Language::Python => self.python(path, values, span),
        }
    }

    pub(crate) fn unknown_call(&mut self, span: Span) -> Value {
        self.left_out(span, LEFT_OUT);
        Value::Unknown
    }

    pub(super) fn check(&mut self, values: &[Value], span: Span) -> Value {
        self.refuse_in_course(span);
        if let Some(lost) = values.get(1).and_then(Value::lost) {
            self.refuse(span, lost);
        }
        let Some(Value::Object(checks)) = values.get(1) else {
            self.note(span, "the checks are not known before the run: they are left out");
            return Value::Unknown;
        };
        let subject = values.first().cloned().unwrap_or(Value::Undefined);
        if !self.has_checks {
            self.has_checks = true;
            let at = self.at(span);
            let becomes = "a check that does not hold makes its request fail here";
            self.findings.note(at, "check", becomes);
        }
        let mut requests = Vec::new();
        for (name, check) in checks.iter() {
            let (value, span) = match check {
                Value::Function(closure) => {
                    let closure = Rc::clone(closure);
                    (self.invoke(&closure, vec![subject.clone()], span), closure.function.span)
                }
                value => (value.clone(), span),
            };
            if let Some(lost) = value.lost() {
                self.refuse(span, lost);
            }
            let taken = match self.test(&value, span) {
                Some(test) => {
                    requests_of(&test, &mut requests);
                    self.expect(&test, span)
                }
                None => false,
            };
            if !taken {
                let at = self.at(span);
                let becomes =
                    format!("nothing in a plan is the same as the check \"{name}\": it is left out");
                let said = self.said(span);
                self.findings.note(at, &said, becomes);
            }
        }
        if let Value::Response(request) = subject
            && !requests.contains(&request)
        {
            requests.push(request);
        }
        Value::Test(Test::Checked(requests))
    }

    pub(super) fn group(&mut self, values: &[Value], span: Span) -> Value {
        let (Some(name), Some(Value::Function(body))) =
            (values.first().and_then(Value::constant), values.get(1))
        else {
            return self.not_followed(values, span);
        };
        self.groups.push(title(&name));
        let value = self.invoke(&Rc::clone(body), Vec::new(), span);
        self.groups.pop();
        value
    }

    pub(crate) fn sleep(&mut self, value: &Value, span: Span) {
        self.refuse_in_course(span);
        let pause = match value {
            Value::Lost(lost) => {
                self.refuse(span, lost);
                return;
            }
            Value::Uniform(uniform) => {
                if uniform.is_whole {
                    self.note(span, "the pause is any time between these seconds");
                }
                flow::uniform(nanos(uniform.low), nanos(uniform.high))
            }
            Value::Text(text) => match text.parts.as_slice() {
                [Part::Environment(_, Some(default))] if default.parse::<f64>().is_ok() => {
                    self.note(span, format!("pauses have a fixed time: {default} s are taken"));
                    let seconds = nanos(default.parse().unwrap_or_default());
                    flow::uniform(seconds, seconds)
                }
                _ => {
                    self.note(span, "the length of the pause is not known before the run: it is left out");
                    return;
                }
            },
            value => match value.number() {
                Some(seconds) if seconds > 0.0 => flow::uniform(nanos(seconds), nanos(seconds)),
                Some(_) => return,
                None => {
                    self.note(span, "the length of the pause is not known before the run: it is left out");
                    return;
                }
            },
        };
        let last = self.items.last().and_then(|items| items.last());
        if let Some(Item::Request(request)) = last
            && self.requests[*request].step.think.is_absent()
        {
            self.requests[*request].step.think = Field::new(pause);
            return;
        }
        self.push(Item::Step(flow::pause(pause)));
    }

    /// A method of a value.
    pub(crate) fn method(&mut self, owner: &Value, name: &str, values: Vec<Value>, span: Span) -> Value {
        if let Value::Lost(lost) = owner {
            let sends = match lost.methods {
                Methods::Unknown => may_send(name, &values),
                Methods::OfLibrary => false,
                Methods::OfClass => true,
            };
            if sends {
                self.refuse(span, lost);
            }
            let functions: Vec<Value> =
                values.into_iter().filter(|value| matches!(value, Value::Function(_))).collect();
            self.lose_arguments(&functions, span);
            return owner.clone();
        }
        if let Some(lost) = values.iter().find_map(Value::lost) {
            return Value::Lost(Rc::clone(lost));
        }
        let mut name = name;
        if self.language == Language::Python {
            if let Some(value) = self.python_method(owner, name, &values, span) {
                return value;
            }
            name = crate::locust::method_name(name);
        }
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        match owner {
            Value::Response(request) => return self.of_response(*request, name, &first, span),
            Value::Array(items) => {
                if let Some(value) = self.of_list(items, name, &values, span) {
                    return value;
                }
            }
            Value::Taken(..) | Value::Body(..) => {
                if let Some(value) = self.of_taken(owner, name, &first, span) {
                    return value;
                }
            }
            Value::Regex(expression) if name == "test" => {
                if let Some((request, place)) = place_of(&first)
                    && checks::is_regex(expression)
                {
                    return Value::Test(Test::Value(request, place, checks::matches(expression.clone())));
                }
            }
            Value::Builtin(path) if path == "now" => {
                return match name {
                    "getTime" | "valueOf" => {
                        Value::Text(Text { is_number: true, is_drawn: true, ..Text::slot("timestamp_ms") })
                    }
                    _ => self.unknown_call(span),
                };
            }
            Value::Json(_) if matches!(name, "toString" | "trim") => return owner.clone(),
            _ => {}
        }
        if let (Some(text), Value::String(_) | Value::Number(_) | Value::Boolean(_) | Value::Json(_)) =
            (owner.constant(), owner)
            && let Some(value) = of_text(&text, name, &values)
        {
            return value;
        }
        match (owner, name) {
            (
                Value::Text(_) | Value::Uniform(_) | Value::Counter(_) | Value::Row(..),
                "toString" | "trim" | "toFixed",
            ) => owner.clone(),
            (Value::Text(_) | Value::Row(..), "toUpperCase" | "toLowerCase") => {
                self.function_of(if name == "toUpperCase" { "upper" } else { "lower" }, owner, span)
            }
            (Value::Array(_) | Value::Object(_), _) if changes(name, self.language) => {
                self.lose(owner, &Lost::new(span, format!("`{name}` changes it, and is not carried out")));
                self.not_followed(&values, span)
            }
            _ => self.not_followed(&values, span),
        }
    }

    fn of_response(&mut self, request: usize, name: &str, first: &Value, span: Span) -> Value {
        match (name, first) {
            ("json", Value::Undefined) => Value::Body(request, Vec::new()),
            ("json", first) => match first.constant().as_deref().and_then(selector) {
                Some(path) => Value::Body(request, path),
                None => {
                    self.note(span, "plans have no such selector: it is left out");
                    Value::Unknown
                }
            },
            ("submitForm" | "clickLink", _) => {
                self.note(
                    span,
                    "a request that is found in a page is not sent: write it as a step of its own",
                );
                Value::Unknown
            }
            _ => self.unknown_call(span),
        }
    }

    fn of_taken(&mut self, owner: &Value, name: &str, first: &Value, span: Span) -> Option<Value> {
        let (request, place) = place_of(owner)?;
        let spec = match (name, first) {
            ("match" | "search", Value::Regex(expression)) if checks::is_regex(expression) => {
                checks::matches(expression.clone())
            }
            ("includes" | "startsWith" | "endsWith" | "indexOf", text) => {
                let text = self.text_of(text, span);
                let template = self.written(&text, Writing::Plain);
                let mut spec = checks::contains(template.clone());
                if name == "startsWith" || name == "endsWith" {
                    spec = Default::default();
                    let part = if name == "startsWith" { &mut spec.starts } else { &mut spec.ends };
                    *part = crate::draft::text(template);
                }
                spec
            }
            ("toString" | "trim", _) => return Some(owner.clone()),
            _ => return None,
        };
        let test = Test::Value(request, place, spec);
        Some(if matches!(name, "indexOf" | "search") { Value::Found(test) } else { Value::Test(test) })
    }

    /// A method of a list.
    fn of_list(
        &mut self,
        items: &Rc<Tree<Vec<Value>>>,
        name: &str,
        values: &[Value],
        span: Span,
    ) -> Option<Value> {
        let items = Rc::clone(items);
        if let Some(Value::Function(function)) = values.first() {
            return self.of_each(&items, name, function, span);
        }
        Some(match name {
            "join" => self.list_joined(&items, values.first(), span)?,
            "includes" => match values.first()? {
                Value::Taken(request, Place::Status) => {
                    let mut statuses = Statuses::range(1, 0);
                    for item in items.iter() {
                        let status = item.number()? as u16;
                        statuses = statuses.or(&Statuses::range(status, status));
                    }
                    Value::Test(Test::Status(*request, statuses))
                }
                Value::Body(request, path) => {
                    Value::Test(typed::one_of(self.language, *request, path, &items)?)
                }
                value => {
                    let wanted = value.constant()?;
                    Value::Boolean(items.iter().any(|item| item.constant().as_ref() == Some(&wanted)))
                }
            },
            "concat" => {
                let mut all = items.to_vec();
                if all.len() > MOST_ITEMS {
                    return None;
                }
                for value in values {
                    match value {
                        Value::Array(more) => all.extend(more.iter().cloned()),
                        value => all.push(value.clone()),
                    }
                }
                Value::list(all)
            }
            "slice" => {
                let at = |index: usize, otherwise: usize| match values.get(index).and_then(Value::number) {
                    Some(number) if number < 0.0 => (items.len() as f64 + number).max(0.0) as usize,
                    Some(number) => (number as usize).min(items.len()),
                    None => otherwise,
                };
                let (from, to) = (at(0, 0), at(1, items.len()));
                Value::list(items.get(from..to.max(from)).unwrap_or_default().to_vec())
            }
            "reverse" => {
                let reversed = self.assigned(Value::list(items.iter().rev().cloned().collect()));
                self.replace(&Value::Array(items), &reversed);
                reversed
            }
            "keys" => Value::list((0..items.len()).map(|index| Value::Number(index as f64)).collect()),
            _ => return None,
        })
    }

    /// A method of a list that calls a function for each item.
    fn of_each(&mut self, items: &[Value], name: &str, function: &Closure, span: Span) -> Option<Value> {
        match name {
            "forEach" | "map" => {
                if items.len() > MOST_WRITTEN_OUT {
                    self.note(span, format!("at most {MOST_WRITTEN_OUT} turns are taken over"));
                }
                let mut all = Vec::new();
                for (index, item) in items.iter().take(MOST_WRITTEN_OUT).enumerate() {
                    let arguments = vec![item.clone(), Value::Number(index as f64)];
                    all.push(self.invoke(function, arguments, span));
                }
                Some(if name == "map" { Value::list(all) } else { Value::Undefined })
            }
            "filter" | "find" | "some" | "every" => {
                let mut kept = Vec::new();
                for item in items.iter().take(MOST_WRITTEN_OUT) {
                    let value = self.invoke(function, vec![item.clone()], span);
                    if self.truth(&value)? {
                        kept.push(item.clone());
                    }
                }
                Some(match name {
                    "filter" => Value::list(kept),
                    "find" => kept.into_iter().next().unwrap_or(Value::Undefined),
                    "some" => Value::Boolean(!kept.is_empty()),
                    _ => Value::Boolean(kept.len() == items.len()),
                })
            }
            _ => None,
        }
    }

    /// The items of a list as one text. `None` if that is too long.
    fn list_joined(&mut self, items: &[Value], separator: Option<&Value>, span: Span) -> Option<Value> {
        let separator = separator.and_then(Value::constant).unwrap_or_else(|| ",".to_owned());
        if separator.len().saturating_mul(items.len()) > LONGEST_TEXT {
            return None;
        }
        let mut joined = Text::default();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                joined.push(Part::Literal(separator.clone()));
            }
            // JavaScript joins nothing as an empty text.
            if !matches!(item, Value::Null | Value::Undefined) {
                let item = self.text_of(item, span);
                joined.append(item);
            }
        }
        Some(match joined.parts.as_slice() {
            [] => Value::text(""),
            [Part::Literal(text)] => Value::String(text.clone()),
            _ => Value::Text(joined),
        })
    }
}

/// Returns `true` for functions that do something, which refuse what is lost themselves.
fn acts(path: &str) -> bool {
    let is_group = |group: &str| path.starts_with(group);
    ["http.", "client.", "console.", "metric", "logging", "exec."].into_iter().any(is_group)
        || matches!(
            path,
            "k6.check" | "k6.group" | "k6.sleep" | "time.sleep" | "gevent.sleep" | "py.print" | "py.assert"
        )
}

/// Methods of values that are no clients.
const OF_DATA: [&str; 72] = [
    "at",
    "append",
    "charAt",
    "clear",
    "concat",
    "copy",
    "count",
    "decode",
    "encode",
    "endsWith",
    "endswith",
    "entries",
    "every",
    "extend",
    "fill",
    "filter",
    "find",
    "findIndex",
    "flat",
    "flatMap",
    "forEach",
    "format",
    "getTime",
    "group",
    "groups",
    "has",
    "hasOwnProperty",
    "includes",
    "index",
    "indexOf",
    "insert",
    "isdigit",
    "items",
    "join",
    "json",
    "keys",
    "lastIndexOf",
    "localeCompare",
    "lower",
    "lstrip",
    "map",
    "match",
    "padEnd",
    "padStart",
    "pop",
    "push",
    "reduce",
    "remove",
    "repeat",
    "replace",
    "replaceAll",
    "reverse",
    "rstrip",
    "search",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "split",
    "startsWith",
    "startswith",
    "strip",
    "substr",
    "substring",
    "test",
    "toFixed",
    "toISOString",
    "toLowerCase",
    "toString",
    "toUpperCase",
    "trim",
];

/// More of them, whose names clients have as well: then they are given a path or a URL.
const OF_DATA_AND_CLIENTS: [&str; 9] =
    ["add", "delete", "get", "set", "update", "upper", "values", "valueOf", "unshift"];

/// Returns `true` if a call of this method may send a request, whatever it is called on.
fn may_send(name: &str, values: &[Value]) -> bool {
    let is_path = |text: &str| text.starts_with('/') || text.starts_with("http");
    match values.first() {
        _ if OF_DATA.contains(&name) => false,
        _ if !OF_DATA_AND_CLIENTS.contains(&name) => true,
        Some(Value::String(text)) => is_path(text),
        Some(Value::Text(text)) => match text.parts.first() {
            Some(Part::Literal(text)) => is_path(text),
            _ => true,
        },
        Some(Value::Lost(_) | Value::Unknown) => true,
        _ => false,
    }
}

/// The requests that a test is about.
pub(crate) fn requests_of(test: &Test, requests: &mut Vec<usize>) {
    match test {
        Test::Status(request, _) | Test::Value(request, ..) | Test::Time(request) => {
            if !requests.contains(request) {
                requests.push(*request);
            }
        }
        Test::Checked(more) => {
            let new: Vec<usize> = more.iter().copied().filter(|one| !requests.contains(one)).collect();
            requests.extend(new);
        }
        Test::All(all) | Test::Any(all) => all.iter().for_each(|test| requests_of(test, requests)),
        Test::Not(inner) => requests_of(inner, requests),
        Test::Plan(_) => {}
    }
}

/// The place of a value in a response.
pub(crate) fn place_of(value: &Value) -> Option<(usize, Place)> {
    match value {
        Value::Taken(request, place) => Some((*request, place.clone())),
        Value::Body(request, path) if path.is_empty() => Some((*request, Place::Body)),
        Value::Body(request, path) => Some((*request, Place::Json(checks::json_pointer(path)))),
        _ => None,
    }
}

/// The parts of a selector of `Response.json`: `a.b.0.c`.
fn selector(selector: &str) -> Option<Vec<String>> {
    let parts: Vec<String> = selector.split('.').map(str::to_owned).collect();
    let is_part =
        |part: &String| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c));
    parts.iter().all(is_part).then_some(parts)
}

/// Methods of a text that is known.
fn of_text(text: &str, name: &str, values: &[Value]) -> Option<Value> {
    let first = values.first().and_then(Value::constant);
    let count =
        |index: usize| values.get(index).and_then(Value::number).map(|number| number.max(0.0) as usize);
    let chars: Vec<char> = text.chars().collect();
    Some(match (name, first.as_deref()) {
        ("toString" | "valueOf", None) => Value::text(text),
        ("toUpperCase", _) => Value::String(text.to_uppercase()),
        ("toLowerCase", _) => Value::String(text.to_lowercase()),
        ("trim", _) => Value::text(text.trim()),
        ("includes", Some(part)) => Value::Boolean(text.contains(part)),
        ("startsWith", Some(part)) => Value::Boolean(text.starts_with(part)),
        ("endsWith", Some(part)) => Value::Boolean(text.ends_with(part)),
        ("concat", Some(more)) if values.len() == 1 => Value::String(format!("{text}{more}")),
        ("split", Some(separator)) if !separator.is_empty() => {
            Value::list(text.split(separator).map(Value::text).collect())
        }
        ("replace", Some(from)) if matches!(values.first(), Some(Value::String(_))) => {
            Value::String(text.replacen(from, &values.get(1)?.constant()?, 1))
        }
        ("replaceAll", Some(from)) if matches!(values.first(), Some(Value::String(_))) => {
            let to = values.get(1)?.constant()?;
            let longest = text.matches(from).count().saturating_mul(to.len());
            if longest > LONGEST_TEXT {
                return None;
            }
            Value::String(text.replace(from, &to))
        }
        ("repeat", Some(_)) => {
            let times = count(0)?;
            if text.len().saturating_mul(times) > LONGEST_TEXT {
                return None;
            }
            Value::String(text.repeat(times))
        }
        ("slice" | "substring", _) => {
            let from = count(0).unwrap_or(0).min(chars.len());
            let to = count(1).unwrap_or(chars.len()).min(chars.len()).max(from);
            if values.iter().any(|value| value.number().is_some_and(|number| number < 0.0)) {
                return None;
            }
            Value::String(chars[from..to].iter().collect())
        }
        ("padStart", Some(_)) => {
            let (length, with) =
                (count(0)?, values.get(1).and_then(Value::constant).unwrap_or_else(|| " ".to_owned()));
            if length > LONGEST_TEXT || with.chars().count() != 1 {
                return None;
            }
            Value::String(format!("{}{text}", with.repeat(length.saturating_sub(chars.len()))))
        }
        ("toFixed", _) => {
            Value::String(format!("{:.*}", count(0).unwrap_or(0).min(20), text.parse::<f64>().ok()?))
        }
        ("indexOf", Some(part)) => Value::Number(text.find(part).map_or(-1.0, |at| at as f64)),
        _ => return None,
    })
}

/// A time in nanoseconds: `10s`, `1m30s`, or a number of milliseconds.
pub(crate) fn duration(value: &Value) -> Option<u64> {
    if let Value::Number(number) = value {
        return (*number >= 0.0).then(|| (number * 1e6).round() as u64);
    }
    let text = value.constant()?;
    let mut rest = text.trim();
    if let Ok(number) = rest.parse::<f64>() {
        return (number >= 0.0).then(|| (number * 1e6).round() as u64);
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        nanos += number
            * match rest[..end].trim() {
                "ns" => 1.0,
                "us" | "µs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                "d" => 86_400e9,
                _ => return None,
            };
        rest = &rest[end..];
    }
    (0.0..1.8e19).contains(&nanos).then(|| nanos.round() as u64)
}
