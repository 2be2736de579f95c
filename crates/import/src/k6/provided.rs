//! Functions that k6, its libraries and JavaScript provide.

use std::rc::Rc;

use base64::Engine as _;
use plimsoll_document::Field;

use super::lost::Lost;
use super::statement::LEFT_OUT;
use super::syntax::Span;
use super::value::{Part, Text, Uniform, Value, Writing, shown};
use super::{Importer, data};
use crate::draft::{self, percent_encoded};
use crate::flow::check::{self as checks, Place};
use crate::flow::{self, MOST_WRITTEN_OUT};

/// Places that hold an argument of a function that is provided: the list of them, and the first of them.
const HELD_HERE: usize = 2;

impl Importer<'_> {
    /// A function that is provided.
    pub(crate) fn builtin(&mut self, path: &str, values: Vec<Value>, span: Span) -> Value {
        let value = match path.split_once('.') {
            Some(("http", function)) => Some(self.http(function, &values, span)),
            Some(("Math", function)) => Some(self.math(function, &values, span)),
            Some(("Object", function)) => self.of_object(function, &values, span),
            Some(("utils", function)) => self.of_utils(function, &values, span),
            Some(("console", _)) => {
                self.note(span, "nothing is logged: it is left out");
                Some(Value::Undefined)
            }
            _ if path.starts_with("metric") => {
                self.note(span, "plans have no metrics of their own: it is left out");
                Some(Value::Undefined)
            }
            _ => self.of_k6(path, &values, span).or_else(|| self.of_javascript(path, &values, span)),
        };
        value.unwrap_or_else(|| self.not_provided(path, &values, span))
    }

    /// A function of k6 or its modules.
    fn of_k6(&mut self, path: &str, values: &[Value], span: Span) -> Option<Value> {
        let first = argument(values);
        Some(match path {
            "k6.check" => self.check(values, span),
            "k6.group" => self.group(values, span),
            "k6.sleep" => {
                self.sleep(&first, span);
                Value::Undefined
            }
            "k6.fail" => {
                self.note(span, "the iteration ends here");
                self.is_ending = true;
                Value::Undefined
            }
            "k6.randomSeed" => {
                match first.number() {
                    Some(seed) if seed >= 0.0 => self.settings.seed = draft::text(shown(seed)),
                    _ => self.note(span, LEFT_OUT),
                }
                Value::Undefined
            }
            "open" => match self.settled(&first, span) {
                Some(path) => Value::File(data::relative(&path)),
                None => Value::Lost(Lost::new(span, "the name of the file is not known before the run")),
            },
            "papaparse.parse" => self.papaparse(values, span),
            "encoding.b64encode" => match first.constant() {
                Some(text) => {
                    let engine = match values.get(1).and_then(Value::constant).as_deref() {
                        Some("url") => base64::engine::general_purpose::URL_SAFE,
                        _ => base64::engine::general_purpose::STANDARD,
                    };
                    Value::String(engine.encode(text))
                }
                None => self.function_of("base64", &first, span),
            },
            "crypto.sha256" => self.function_of("hash(sha256, ", &first, span),
            "crypto.randomUUID" => drawn("uuid"),
            _ => return None,
        })
    }

    /// A function of `k6-utils`, the library of small functions beside k6.
    fn of_utils(&mut self, function: &str, values: &[Value], span: Span) -> Option<Value> {
        let first = argument(values);
        Some(match function {
            "uuidv4" => drawn("uuid"),
            "randomIntBetween" => match (first.number(), values.get(1).and_then(Value::number)) {
                (Some(low), Some(high)) if low.fract() == 0.0 && high.fract() == 0.0 && low <= high => {
                    Value::Uniform(Uniform { low, high, is_whole: true, draw: None })
                }
                _ => self.unknown_call(span),
            },
            "randomString" => match first.number().filter(|length| (1.0..=4096.0).contains(length)) {
                Some(length) => {
                    if values.len() > 1 {
                        self.note(span, "its characters are letters and digits");
                    }
                    drawn(format!("random_string({})", shown(length)))
                }
                None => self.unknown_call(span),
            },
            "randomItem" => self.random_item(&first, span),
            "findBetween" => {
                let end = |index: usize| values.get(index).and_then(Value::constant);
                match (&first, end(1), end(2)) {
                    (Value::Taken(request, Place::Body), Some(left), Some(right)) => {
                        let expression =
                            format!("(?s){}(.*?){}", regex::escape(&left), regex::escape(&right));
                        self.found_by(*request, &expression, "found", span)
                    }
                    _ => self.unknown_call(span),
                }
            }
            _ => return None,
        })
    }

    /// A function of JavaScript itself, those of `Math` and `Object` aside.
    fn of_javascript(&mut self, path: &str, values: &[Value], span: Span) -> Option<Value> {
        let first = argument(values);
        Some(match path {
            "JSON.stringify" => match first {
                Value::Unknown => Value::Unknown,
                value => Value::in_json(value),
            },
            "JSON.parse" => self.parsed(&first, span),
            "String" => match first.constant() {
                Some(text) => Value::String(text),
                None => Value::Text(Text { is_number: false, ..self.text_of(&first, span) }),
            },
            "Boolean" => match (self.truth(&first), self.test(&first, span)) {
                (Some(flag), _) => Value::Boolean(flag),
                (None, Some(test)) => Value::Test(test),
                (None, None) => return None,
            },
            "Number" | "parseFloat" => self.number_of(first, values.get(1), span),
            "parseInt" => match self.number_of(first, values.get(1), span) {
                Value::Number(number) => Value::Number(number.trunc()),
                value => value,
            },
            "encodeURIComponent" | "encodeURI" => self.encoded(&first, path == "encodeURI", span),
            "Array.from" => self.list_from(&first, values.get(1), span),
            "Promise.all" | "url.URL" | "URL" => first,
            "Date.now" => Value::Text(Text { is_number: true, is_drawn: true, ..Text::slot("timestamp_ms") }),
            _ => return None,
        })
    }

    /// The number that a value is, or has in its text.
    fn number_of(&mut self, value: Value, base: Option<&Value>, span: Span) -> Value {
        match (value.number(), &value) {
            (_, Value::String(_)) if base.is_some_and(|base| base.number() != Some(10.0)) => {
                Value::Lost(Lost::new(span, "numbers of other bases are not followed"))
            }
            (None, Value::String(_)) => {
                Value::Lost(Lost::new(span, "the number in this text is not followed"))
            }
            (Some(number), _) => Value::Number(number),
            (None, Value::Text(text)) => Value::Text(Text { is_number: true, ..text.clone() }),
            (None, Value::Taken(..) | Value::Body(..) | Value::Row(..)) => {
                Value::Text(Text { is_number: true, ..self.text_of(&value, span) })
            }
            _ => value,
        }
    }

    /// A list of the items of another, or of as many as an object says: `Array.from({length: 3}, make)`.
    fn list_from(&mut self, source: &Value, make: Option<&Value>, span: Span) -> Value {
        match (source, make) {
            (Value::Array(items), None) => Value::list(items.to_vec()),
            (Value::Object(_), make) => {
                let count = source.member("length").and_then(Value::number).unwrap_or_default();
                let count = (count.max(0.0) as usize).min(MOST_WRITTEN_OUT);
                let item = |index: usize| match make {
                    Some(Value::Function(make)) => {
                        let arguments = vec![Value::Undefined, Value::Number(index as f64)];
                        self.invoke(&Rc::clone(make), arguments, span)
                    }
                    _ => Value::Undefined,
                };
                Value::list((0..count).map(item).collect())
            }
            _ => Value::Unknown,
        }
    }

    /// A function of `Object`.
    fn of_object(&mut self, function: &str, values: &[Value], span: Span) -> Option<Value> {
        let first = argument(values);
        Some(match function {
            "freeze" | "assign" if values.len() < 2 => first,
            "assign" => {
                let mut members: Vec<(String, Value)> = Vec::new();
                for value in values {
                    let Value::Object(more) = value else { continue };
                    for (key, value) in more.iter() {
                        members.retain(|(known, _)| known != key);
                        members.push((key.clone(), value.clone()));
                    }
                }
                let new = self.kept("value", Value::object(members), span);
                // It is the first one that changes, if anything else holds it.
                if first.holders() > HELD_HERE {
                    let changed = self.assigned(new.clone());
                    self.replace(&first, &changed);
                }
                new
            }
            "keys" | "values" | "entries" => {
                let Value::Object(members) = &first else { return Some(Value::Unknown) };
                let item = |(key, value): &(String, Value)| match function {
                    "keys" => Value::text(key.as_str()),
                    "values" => value.clone(),
                    _ => Value::list(vec![Value::text(key.as_str()), value.clone()]),
                };
                Value::list(members.iter().map(item).collect())
            }
            _ => return None,
        })
    }

    fn math(&mut self, function: &str, values: &[Value], span: Span) -> Value {
        let numbers: Option<Vec<f64>> = values.iter().map(Value::number).collect();
        match (function, values, numbers.as_deref()) {
            ("random", ..) => Value::Uniform(Uniform { low: 0.0, high: 1.0, is_whole: false, draw: None }),
            ("floor" | "trunc" | "round" | "ceil", [Value::Uniform(uniform)], _) if !uniform.is_whole => {
                // Neither end is drawn, so that only the numbers in between can come out.
                let (low, high) = match function {
                    "floor" | "trunc" => (uniform.low.floor(), uniform.high.ceil() - 1.0),
                    "ceil" => (uniform.low.floor() + 1.0, uniform.high.ceil()),
                    _ => {
                        self.note(span, "both ends are drawn as often as the numbers in between");
                        (uniform.low.round(), uniform.high.round())
                    }
                };
                Value::Uniform(Uniform { low, high: high.max(low), is_whole: true, draw: None })
            }
            ("floor" | "trunc" | "round" | "ceil", [Value::Uniform(_) | Value::Counter(_)], _) => {
                values[0].clone()
            }
            ("floor" | "round" | "trunc", [Value::Text(_)], _) => values[0].clone(),
            ("floor", _, Some([number])) => Value::Number(number.floor()),
            ("ceil", _, Some([number])) => Value::Number(number.ceil()),
            ("round", _, Some([number])) => Value::Number((number + 0.5).floor()),
            ("trunc", _, Some([number])) => Value::Number(number.trunc()),
            ("abs", _, Some([number])) => Value::Number(number.abs()),
            ("sqrt", _, Some([number])) => Value::Number(number.sqrt()),
            ("pow", _, Some([base, exponent])) => Value::Number(base.powf(*exponent)),
            ("min", _, Some(numbers)) => Value::Number(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
            ("max", _, Some(numbers)) => {
                Value::Number(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            }
            _ => self.unknown_call(span),
        }
    }

    fn parsed(&mut self, value: &Value, span: Span) -> Value {
        match value {
            Value::File(path) => {
                let path = path.clone();
                let Some(content) = self.read(&path, span) else { return Value::Unknown };
                match serde_json::from_str(content.trim_start_matches('\u{feff}')) {
                    Ok(json) => Value::of_json(&json),
                    Err(wrong) => {
                        let at = self.at(span);
                        let message = format!("`{}` is not JSON: {wrong}", crate::findings::quoted(&path));
                        self.findings.problem(&at, message);
                        Value::Unknown
                    }
                }
            }
            Value::Taken(request, Place::Body) => Value::Body(*request, Vec::new()),
            Value::Json(inner) => inner.copied(),
            value => match value.constant().and_then(|text| serde_json::from_str(&text).ok()) {
                Some(json) => Value::of_json(&json),
                None => self.unknown_call(span),
            },
        }
    }

    fn papaparse(&mut self, values: &[Value], span: Span) -> Value {
        let Some(Value::File(path)) = values.first() else { return self.unknown_call(span) };
        let options = values.get(1).cloned().unwrap_or(Value::Undefined);
        let has_head = options.member("header").and_then(Value::truth).unwrap_or(false);
        let delimiter =
            options.member("delimiter").and_then(Value::constant).unwrap_or_else(|| ",".to_owned());
        let path = path.clone();
        self.csv(&path, has_head, if delimiter.is_empty() { ",".to_owned() } else { delimiter }, span)
    }

    fn random_item(&mut self, list: &Value, span: Span) -> Value {
        let Value::Array(items) = list else { return self.random_row(list, span) };
        let texts: Option<Vec<String>> = items
            .iter()
            .map(|item| match item {
                Value::String(_) | Value::Number(_) => item.constant().filter(|text| is_pickable(text)),
                _ => None,
            })
            .collect();
        match texts {
            Some(texts) if !texts.is_empty() => {
                let is_number = items.iter().all(|item| matches!(item, Value::Number(_)));
                let slot = format!("pick({})", texts.join(", "));
                Value::Text(Text { is_number, is_drawn: true, ..Text::slot(slot) })
            }
            _ => self.random_row(list, span),
        }
    }

    /// A value in the body that a regular expression finds.
    pub(crate) fn found_by(&mut self, request: usize, expression: &str, wish: &str, span: Span) -> Value {
        if !checks::is_regex(expression) {
            return self.unknown_call(span);
        }
        let name = self.variables.fresh(wish, None);
        let mut extract = plimsoll_document::ExtractSpec::default();
        extract.regex = draft::text(expression);
        self.requests[request].step.extract.push(name.as_str(), Field::new(extract));
        Value::Text(Text::slot(name))
    }

    /// A function of plans of a text.
    pub(super) fn function_of(&mut self, function: &str, value: &Value, span: Span) -> Value {
        let text = self.text_of(value, span);
        let template = self.written(&text, Writing::Plain);
        let Some(quoted) = flow::in_quotes(&template) else { return self.unknown_call(span) };
        let call = match function.strip_suffix(", ") {
            Some(begun) => format!("{begun}, {quoted})"),
            None => format!("{function}({quoted})"),
        };
        Value::Text(Text { is_drawn: text.is_drawn, ..Text::slot(call) })
    }

    fn encoded(&mut self, value: &Value, is_whole: bool, span: Span) -> Value {
        let kept: &[u8] = if is_whole { b"!*'();/?:@&=+$,#" } else { b"!*'()" };
        if let Some(text) = value.constant() {
            return Value::String(percent_encoded(&text, kept));
        }
        let text = self.text_of(value, span);
        let mut encoded = Text { is_drawn: text.is_drawn, ..Text::default() };
        for part in text.parts {
            encoded.push(match part {
                Part::Literal(text) => Part::Literal(percent_encoded(&text, kept)),
                Part::Slot(inside) => Part::Encoded(inside),
                other => other,
            });
        }
        Value::Text(encoded)
    }
}

/// The first argument.
fn argument(values: &[Value]) -> Value {
    values.first().cloned().unwrap_or(Value::Undefined)
}

/// A text that is drawn anew each time.
fn drawn(slot: impl Into<String>) -> Value {
    Value::Text(Text { is_drawn: true, ..Text::slot(slot) })
}

/// Returns `true` if `pick` takes the text as it is.
fn is_pickable(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && !text.contains([',', '"', '\'', '{', '}', '(', ')', '$'])
        && !text.contains(char::is_control)
}
