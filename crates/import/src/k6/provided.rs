//! Functions that k6, its libraries and JavaScript provide.

use std::rc::Rc;

use base64::Engine as _;
use plimsoll_plan::document::Field;

use super::lost::Lost;
use super::statement::LEFT_OUT;
use super::syntax::Span;
use super::value::{Part, Text, Uniform, Value, Writing, shown};
use super::{Importer, data};
use crate::draft::percent_encoded;
use crate::flow::check::{self as checks, Place};
use crate::flow::{self, MOST_WRITTEN_OUT};

/// Places that hold an argument of a function that is provided: the list of them, and the first of them.
const HELD_HERE: usize = 2;

impl Importer<'_> {
    /// A function that is provided.
    pub(crate) fn builtin(&mut self, path: &str, values: Vec<Value>, span: Span) -> Value {
        if let Some(function) = path.strip_prefix("http.") {
            return self.http(function, &values, span);
        }
        if let Some(function) = path.strip_prefix("Math.") {
            return self.math(function, &values, span);
        }
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        match path {
            "k6.check" => self.check(&values, span),
            "k6.group" => self.group(&values, span),
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
                    Some(seed) if seed >= 0.0 => {
                        self.settings.seed = crate::draft::text(shown(seed));
                    }
                    _ => self.note(span, LEFT_OUT),
                }
                Value::Undefined
            }
            "open" => match self.settled(&first, span) {
                Some(path) => Value::File(data::relative(&path)),
                None => Value::Lost(Lost::new(span, "the name of the file is not known before the run")),
            },
            "JSON.stringify" => match first {
                Value::Unknown => Value::Unknown,
                value => Value::in_json(value),
            },
            "JSON.parse" => self.parsed(&first, span),
            "papaparse.parse" => self.papaparse(&values, span),
            "String" => match first.constant() {
                Some(text) => Value::String(text),
                None => {
                    let mut text = self.text_of(&first, span);
                    text.is_number = false;
                    Value::Text(text)
                }
            },
            "Number" | "parseInt" | "parseFloat" => match (first.number(), &first) {
                (_, Value::String(_)) if values.len() > 1 && values[1].number() != Some(10.0) => {
                    Value::Lost(Lost::new(span, "numbers of other bases are not followed"))
                }
                (None, Value::String(_)) => {
                    Value::Lost(Lost::new(span, "the number in this text is not followed"))
                }
                (Some(number), _) if path == "parseInt" => Value::Number(number.trunc()),
                (Some(number), _) => Value::Number(number),
                (None, Value::Text(text)) => Value::Text(Text { is_number: true, ..text.clone() }),
                (None, Value::Taken(..) | Value::Body(..) | Value::Row(..)) => {
                    let text = self.text_of(&first, span);
                    Value::Text(Text { is_number: true, ..text })
                }
                _ => first,
            },
            "encodeURIComponent" | "encodeURI" => self.encoded(&first, path == "encodeURI", span),
            "Object.freeze" | "Object.assign" if values.len() < 2 => first,
            "Object.assign" => {
                let mut members: Vec<(String, Value)> = Vec::new();
                for value in &values {
                    let Value::Object(more) = value else { continue };
                    for (key, value) in more.iter() {
                        members.retain(|(known, _)| known != key);
                        members.push((key.clone(), value.clone()));
                    }
                }
                let new = self.kept("value", Value::object(members));
                // It is the first one that changes, if anything else holds it.
                if first.holders() > HELD_HERE {
                    let changed = self.assigned(new.clone());
                    self.replace(&first, &changed);
                }
                new
            }
            "Object.keys" | "Object.values" | "Object.entries" => match &first {
                Value::Object(members) => Value::list(
                    members
                        .iter()
                        .map(|(key, value)| match path {
                            "Object.keys" => Value::text(key.as_str()),
                            "Object.values" => value.clone(),
                            _ => Value::list(vec![Value::text(key.as_str()), value.clone()]),
                        })
                        .collect(),
                ),
                _ => Value::Unknown,
            },
            "Array.from" => match (&first, values.get(1)) {
                (Value::Array(items), None) => Value::list(items.to_vec()),
                (Value::Object(_), make) => {
                    let count = first.member("length").and_then(Value::number).unwrap_or_default();
                    let count = (count.max(0.0) as usize).min(MOST_WRITTEN_OUT);
                    let make = match make {
                        Some(Value::Function(make)) => Some(Rc::clone(make)),
                        _ => None,
                    };
                    let item = |importer: &mut Self, index: usize| match &make {
                        Some(make) => {
                            importer.invoke(make, vec![Value::Undefined, Value::Number(index as f64)], span)
                        }
                        None => Value::Undefined,
                    };
                    Value::list((0..count).map(|index| item(self, index)).collect())
                }
                _ => Value::Unknown,
            },
            "Promise.all" => first,
            "Date.now" => Value::Text(Text { is_number: true, is_drawn: true, ..Text::slot("timestamp_ms") }),
            "utils.uuidv4" | "crypto.randomUUID" => {
                Value::Text(Text { is_drawn: true, ..Text::slot("uuid") })
            }
            "utils.randomIntBetween" => match (first.number(), values.get(1).and_then(Value::number)) {
                (Some(low), Some(high)) if low.fract() == 0.0 && high.fract() == 0.0 && low <= high => {
                    Value::Uniform(Uniform { low, high, is_whole: true, draw: None })
                }
                _ => self.unknown_call(span),
            },
            "utils.randomString" => {
                let length = first.number().filter(|length| (1.0..=4096.0).contains(length));
                match length {
                    Some(length) => {
                        if values.len() > 1 {
                            self.note(span, "its characters are letters and digits");
                        }
                        let slot = format!("random_string({})", shown(length));
                        Value::Text(Text { is_drawn: true, ..Text::slot(slot) })
                    }
                    None => self.unknown_call(span),
                }
            }
            "utils.randomItem" => self.random_item(&first, span),
            "utils.findBetween" => match (
                &first,
                values.get(1).and_then(Value::constant),
                values.get(2).and_then(Value::constant),
            ) {
                (Value::Taken(request, Place::Body), Some(left), Some(right)) => {
                    let expression = format!("(?s){}(.*?){}", regex::escape(&left), regex::escape(&right));
                    self.found_by(*request, &expression, "found", span)
                }
                _ => self.unknown_call(span),
            },
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
            "url.URL" | "URL" => first,
            _ if path.starts_with("console.") => {
                self.note(span, "nothing is logged: it is left out");
                Value::Undefined
            }
            _ if path.starts_with("metric") => {
                self.note(span, "plans have no metrics of their own: it is left out");
                Value::Undefined
            }
            _ => self.not_provided(path, &values, span),
        }
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
        let mut extract = plimsoll_plan::document::ExtractSpec::default();
        extract.regex = crate::draft::text(expression);
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

/// Returns `true` if `pick` takes the text as it is.
fn is_pickable(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && !text.contains([',', '"', '\'', '{', '}', '(', ')', '$'])
        && !text.contains(char::is_control)
}
