//! Comparisons, and what `check` makes of them.

use std::rc::Rc;

use super::evaluate::not;
use super::syntax::Span;
use super::typed;
use super::value::{Statuses, Test, Value};
use super::{Importer, Language};
use crate::flow::check::{self as checks, Place};
use crate::flow::in_quotes;

/// A body of JSON without elements.
const EMPTY: &str = r#"^\s*(?:""|\[\s*\]|\{\s*\})\s*$"#;

/// A body of JSON that is as good as false, in Python also one without elements.
const NOTHING: &str = r#"^\s*(?:null|false|-?0(?:\.0+)?|""|\[\s*\]|\{\s*\})\s*$"#;

impl Importer<'_> {
    /// `left operator right`.
    pub(crate) fn compare(
        &mut self,
        operator: &'static str,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> Value {
        if let Some(lost) = left.lost().or_else(|| right.lost()) {
            return Value::Lost(Rc::clone(lost));
        }
        if let (Some(one), Some(other)) = (left.constant(), right.constant()) {
            return Value::Boolean(known(operator, left, &one, right, &other));
        }
        let is_dynamic = |value: &Value| value.constant().is_none();
        if !is_dynamic(left) && is_dynamic(right) {
            let turned = match operator {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                other => other,
            };
            return self.compare(turned, right, left, span);
        }
        match self.compared(operator, left, right, span) {
            Some(test) => Value::Test(test),
            None => Value::Unknown,
        }
    }

    fn compared(&mut self, operator: &str, left: &Value, right: &Value, span: Span) -> Option<Test> {
        let language = self.language;
        if let Value::Body(request, path) = left
            && let Some(test) = typed::compared(language, operator, (*request, path), right)
        {
            return Some(test);
        }
        let operator = match operator {
            "is" => "===",
            "is not" => "!==",
            operator => operator,
        };
        let is_equal = matches!(operator, "===" | "==");
        let is_other = matches!(operator, "!==" | "!=");
        match left {
            Value::Taken(request, Place::Status) => {
                let status = right.number()?;
                return Some(Test::Status(*request, statuses(operator, status)?));
            }
            Value::Facet(request, path) if path.first().is_some_and(|part| part == "timings") => {
                return Some(Test::Time(*request));
            }
            Value::Found(test) => {
                let is_in = match (operator, right.number()?) {
                    (">", -1.0) | ("!==" | "!=", -1.0) | (">=", 0.0) => true,
                    ("===" | "==", -1.0) | ("<", 0.0) => false,
                    _ => return None,
                };
                return Some(if is_in { test.clone() } else { not(test.clone()) });
            }
            Value::Length(of) => {
                if let (Value::Body(request, path), Some(number)) = (of.as_ref(), right.number())
                    && let Some(test) = typed::length(*request, path, operator, number)
                {
                    return Some(test);
                }
                let is_filled = match (operator, right.number()?) {
                    (">", 0.0) | (">=", 1.0) | ("!==" | "!=", 0.0) => true,
                    ("===" | "==", 0.0) | ("<", 1.0) => false,
                    _ => return None,
                };
                let test = match of.as_ref() {
                    Value::Taken(request, Place::Body) => {
                        Test::Value(*request, Place::Body, checks::matches("(?s).".to_owned()))
                    }
                    Value::Body(request, _) if language == Language::Python => {
                        let spec = checks::turned(checks::matches(EMPTY.to_owned()));
                        Test::Value(*request, Place::Body, spec)
                    }
                    Value::Body(request, path) => {
                        let mut path = path.clone();
                        path.push("0".to_owned());
                        Test::Value(*request, Place::Json(checks::json_pointer(&path)), checks::exists())
                    }
                    _ => return None,
                };
                return Some(if is_filled { test } else { not(test) });
            }
            Value::Response(_) if matches!(right, Value::Null | Value::Undefined) => {
                return is_other.then(|| Test::All(Vec::new()));
            }
            _ => {}
        }
        let (request, place) = match left {
            Value::Taken(request, place) => (*request, place.clone()),
            Value::Body(request, path) => (*request, Place::Json(checks::json_pointer(path))),
            _ => return self.plan_condition(operator, left, right, span),
        };
        match right {
            Value::Null | Value::Undefined if is_other => {
                return Some(Test::Value(request, place, checks::exists()));
            }
            Value::Null | Value::Undefined if is_equal => {
                return Some(not(Test::Value(request, place, checks::exists())));
            }
            _ if !(is_equal || is_other) => return self.plan_condition(operator, left, right, span),
            _ => {}
        }
        let text = self.text_of(right, span);
        let template = self.written(&text, super::Writing::Plain);
        let test = Test::Value(request, place, checks::equals(template));
        Some(if is_equal { test } else { not(test) })
    }

    /// A comparison of variables.
    fn plan_condition(&mut self, operator: &str, left: &Value, right: &Value, span: Span) -> Option<Test> {
        let operator = match operator {
            "===" | "==" => "==",
            "!==" | "!=" => "!=",
            other => other,
        };
        let left = self.operand(left, span)?;
        let right = self.operand(right, span)?;
        Some(Test::Plan(format!("{left} {operator} {right}")))
    }

    fn operand(&mut self, value: &Value, span: Span) -> Option<String> {
        match value {
            Value::Unknown
            | Value::Lost(_)
            | Value::Undefined
            | Value::Null
            | Value::Builtin(_)
            | Value::Function(_)
            | Value::Object(_)
            | Value::Test(_)
            | Value::Facet(..)
            | Value::Length(_)
            | Value::Found(_)
            | Value::Response(_) => return None,
            Value::Counter(counter) if counter.is_changed() => return None,
            _ => {}
        }
        let text = self.text_of(value, span);
        let template = self.written(&text, super::Writing::Plain);
        let is_number = matches!(value, Value::Number(_) | Value::Boolean(_)) || text.is_number;
        if is_number { Some(template) } else { in_quotes(&template) }
    }

    /// A value where a condition is asked for.
    pub(crate) fn test(&mut self, value: &Value, span: Span) -> Option<Test> {
        match value {
            Value::Test(test) => Some(test.clone()),
            value => match self.truth(value) {
                Some(true) => Some(Test::All(Vec::new())),
                Some(false) => Some(Test::Any(Vec::new())),
                None => self.exists(value, span),
            },
        }
    }

    /// The test of a value that is there, and neither empty, `false` nor 0.
    pub(crate) fn exists(&mut self, value: &Value, span: Span) -> Option<Test> {
        match value {
            Value::Test(test) => Some(test.clone()),
            Value::Taken(request, Place::Body) => {
                Some(Test::Value(*request, Place::Body, checks::matches("(?s).".to_owned())))
            }
            Value::Taken(_, Place::Status) => Some(Test::All(Vec::new())),
            Value::Taken(request, place) => Some(Test::Value(*request, place.clone(), checks::exists())),
            Value::Body(request, path) if !path.is_empty() => typed::truth(self.language, *request, path),
            Value::Body(request, _) => {
                let spec = checks::turned(checks::matches(NOTHING.to_owned()));
                Some(Test::Value(*request, Place::Body, spec))
            }
            Value::Length(of) => self.compared(">", &Value::Length(of.clone()), &Value::Number(0.0), span),
            Value::Text(_) | Value::Row(..) => {
                let operand = self.operand(value, span)?;
                Some(Test::Plan(format!("not ({operand} == \"\" or {operand} == false or {operand} == 0)")))
            }
            _ => None,
        }
    }

    /// Adds what a check says to its request. `true` if all of it is taken over.
    pub(crate) fn expect(&mut self, test: &Test, span: Span) -> bool {
        let (at, said) = (self.at(span), self.said(span));
        match test {
            Test::Status(request, statuses) => {
                let step = &mut self.requests[*request].step;
                checks::expect_status(step, &statuses.written(), &at, &said, &mut self.findings);
                true
            }
            Test::Value(request, place, spec) => {
                let step = &mut self.requests[*request].step;
                checks::expect(step, place, spec.clone(), &at, &said, &mut self.findings);
                true
            }
            Test::All(all) => {
                let mut taken = true;
                // Each is tried, also behind one that cannot be taken over.
                for test in all {
                    taken &= self.expect(test, span);
                }
                taken
            }
            Test::Checked(_) => true,
            Test::Time(_) => {
                let becomes =
                    "the time of a response is not checked one by one: it is left out; a threshold may do";
                self.findings.note(at, &said, becomes);
                true
            }
            Test::Any(any) => match any_of(any) {
                Some(test) => self.expect(&test, span),
                None => false,
            },
            Test::Not(_) | Test::Plan(_) => false,
        }
    }

    /// A condition of plans for a test. Tests of good answers are taken to hold: then it is empty, with the
    /// requests that they are about.
    pub(crate) fn condition(&mut self, test: &Test) -> Option<Condition> {
        Some(match test {
            Test::Status(request, statuses) if statuses.are_good() => Condition::Good(vec![*request]),
            Test::Status(request, statuses) if statuses.others().are_good() => Condition::Bad(vec![*request]),
            Test::Status(request, statuses) => {
                let name = self.taken(*request, &Place::Status, "status");
                let ranges: Vec<String> = statuses
                    .written()
                    .iter()
                    .map(|range| match (range.strip_suffix("xx"), range.split_once('-')) {
                        (Some(class), _) => format!("${{{name}}} >= {class}00 and ${{{name}}} <= {class}99"),
                        (_, Some((first, last))) => {
                            format!("${{{name}}} >= {first} and ${{{name}}} <= {last}")
                        }
                        _ => format!("${{{name}}} == {range}"),
                    })
                    .collect();
                Condition::Plan(ranges.join(" or "))
            }
            Test::Value(request, place, spec) => {
                let wish = super::wish(place);
                let name = self.taken(*request, place, &wish);
                let not = if spec.not.get() == Some(&true) { "not " } else { "" };
                let quoted = |text: &plimsoll_document::Field<plimsoll_document::Text>| {
                    in_quotes(text.get().map_or("", |text| text.as_str()))
                };
                if spec.exists.get().is_some() {
                    // A value that is missing would end the iteration.
                    self.give_default(*request, &name);
                    Condition::Plan(format!("{not}(not ${{{name}}} == \"\")"))
                } else if !spec.equals.is_absent() {
                    Condition::Plan(format!("{not}${{{name}}} == {}", quoted(&spec.equals)?))
                } else if !spec.contains.is_absent() {
                    Condition::Plan(format!("{not}${{{name}}} contains {}", quoted(&spec.contains)?))
                } else if !spec.starts.is_absent() {
                    Condition::Plan(format!("{not}${{{name}}} starts_with {}", quoted(&spec.starts)?))
                } else if !spec.regex.is_absent() {
                    Condition::Plan(format!("{not}${{{name}}} =~ {}", quoted(&spec.regex)?))
                } else {
                    return None;
                }
            }
            Test::Checked(requests) => Condition::Good(requests.clone()),
            Test::Plan(condition) => Condition::Plan(condition.clone()),
            Test::Not(inner) => match self.condition(inner)? {
                Condition::Good(requests) => Condition::Bad(requests),
                Condition::Bad(requests) => Condition::Good(requests),
                Condition::Plan(condition) => Condition::Plan(format!("not ({condition})")),
            },
            Test::All(all) | Test::Any(all) => {
                let word = if matches!(test, Test::All(_)) { " and " } else { " or " };
                let (mut parts, mut good, mut bad) = (Vec::new(), Vec::new(), Vec::new());
                for one in all {
                    match self.condition(one)? {
                        Condition::Good(requests) => good.extend(requests),
                        Condition::Bad(requests) => bad.extend(requests),
                        Condition::Plan(condition) => parts.push(format!("({condition})")),
                    }
                }
                match (parts.is_empty(), bad.is_empty(), word) {
                    (true, true, _) => Condition::Good(good),
                    (true, false, _) if good.is_empty() => Condition::Bad(bad),
                    (false, true, " and ") => Condition::Plan(parts.join(word)),
                    (false, true, _) if good.is_empty() => Condition::Plan(parts.join(word)),
                    _ => return None,
                }
            }
            Test::Time(_) => return None,
        })
    }

    /// A value that may be missing.
    fn give_default(&mut self, request: usize, name: &str) {
        for (known, _, extract) in &mut self.requests[request].step.extract.0 {
            if known.as_str() == name
                && let plimsoll_document::Field::Given(extract, _) = extract
            {
                extract.default = crate::draft::text("");
            }
        }
    }
}

/// A condition for steps.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// These requests were answered well.
    Good(Vec<usize>),
    Bad(Vec<usize>),
    Plan(String),
}

/// `true` for a test that holds if its requests were answered well, `false` for one that holds if they were
/// not, and `None` for all others.
pub(crate) fn is_only_good(test: &Test) -> Option<bool> {
    match test {
        Test::Status(_, statuses) if statuses.are_good() => Some(true),
        Test::Status(_, statuses) if statuses.others().are_good() => Some(false),
        Test::Checked(_) => Some(true),
        Test::Not(inner) => is_only_good(inner).map(|is_good| !is_good),
        Test::All(all) => all.iter().all(|test| is_only_good(test) == Some(true)).then_some(true),
        _ => None,
    }
}

/// One test for several of which one has to hold.
fn any_of(tests: &[Test]) -> Option<Test> {
    let mut all = tests.iter();
    let Test::Status(request, statuses) = all.next()? else { return None };
    let mut statuses = statuses.clone();
    for test in all {
        match test {
            Test::Status(same, more) if same == request => statuses = statuses.or(more),
            _ => return None,
        }
    }
    Some(Test::Status(*request, statuses))
}

/// All of several tests, with one range of statuses for each request.
pub(crate) fn all_of(tests: Vec<Test>) -> Test {
    let mut all: Vec<Test> = Vec::new();
    for test in tests.into_iter().flat_map(|test| match test {
        Test::All(inner) => inner,
        test => vec![test],
    }) {
        let same = match &test {
            Test::Status(request, _) => {
                all.iter().position(|known| matches!(known, Test::Status(other, _) if other == request))
            }
            _ => None,
        };
        match (same, test) {
            (Some(known), Test::Status(request, statuses)) => {
                if let Test::Status(_, before) = &all[known] {
                    all[known] = Test::Status(request, before.and(&statuses));
                }
            }
            (_, test) => all.push(test),
        }
    }
    match all.len() {
        1 => all.remove(0),
        _ => Test::All(all),
    }
}

/// The statuses that compare so with this one.
fn statuses(operator: &str, status: f64) -> Option<Statuses> {
    if status.fract() != 0.0 || !(0.0..=999.0).contains(&status) {
        return None;
    }
    let status = status as u16;
    Some(match operator {
        "===" | "==" => Statuses::range(status, status),
        "!==" | "!=" => Statuses::range(status, status).others(),
        "<" => Statuses::range(0, status.saturating_sub(1)),
        "<=" => Statuses::range(0, status),
        ">" => Statuses::range(status + 1, 999),
        ">=" => Statuses::range(status, 999),
        _ => return None,
    })
}

/// A comparison of two known values.
fn known(operator: &str, left: &Value, one: &str, right: &Value, other: &str) -> bool {
    let alike = std::mem::discriminant(left) == std::mem::discriminant(right);
    let is_nothing = |value: &Value| matches!(value, Value::Null | Value::Undefined);
    if let (Value::Number(one), Value::Number(other)) = (left, right)
        && (one.is_nan() || other.is_nan())
    {
        return operator.starts_with('!');
    }
    match operator {
        "===" | "is" => alike && one == other,
        "!==" | "is not" => !(alike && one == other),
        "==" => one == other || is_nothing(left) && is_nothing(right),
        "!=" => !(one == other || is_nothing(left) && is_nothing(right)),
        _ => {
            let order = match (left.number(), right.number()) {
                (Some(a), Some(b)) if !(matches!((left, right), (Value::String(_), Value::String(_)))) => {
                    a.partial_cmp(&b)
                }
                _ => Some(one.cmp(other)),
            };
            match operator {
                "<" => order.is_some_and(std::cmp::Ordering::is_lt),
                "<=" => order.is_some_and(std::cmp::Ordering::is_le),
                ">" => order.is_some_and(std::cmp::Ordering::is_gt),
                ">=" => order.is_some_and(std::cmp::Ordering::is_ge),
                _ => false,
            }
        }
    }
}
