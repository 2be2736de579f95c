//! Functions and methods of Python and its libraries.

use plimsoll_document::Field;

use crate::flow::MOST_WRITTEN_OUT;
use crate::flow::check::{self as checks, Place};
use crate::k6::evaluate::environment;
use crate::k6::syntax::Span;
use crate::k6::typed;
use crate::k6::value::{self, Counter, Part, Statuses, Test, Text, Uniform, Value, Writing};
use crate::k6::{Importer, MOST_ITEMS};

/// Names that Python provides without an import.
const BUILTINS: [&str; 32] = [
    "str",
    "int",
    "float",
    "bool",
    "len",
    "range",
    "open",
    "print",
    "list",
    "dict",
    "tuple",
    "set",
    "enumerate",
    "round",
    "min",
    "max",
    "abs",
    "sum",
    "sorted",
    "zip",
    "map",
    "filter",
    "any",
    "all",
    "next",
    "iter",
    "format",
    "assert",
    "super",
    "isinstance",
    "hasattr",
    "getattr",
];

/// The only member of a wait that keeps a pace: its seconds.
pub(super) const PACE: &str = "pace";

/// A wait from the beginning of a task.
fn pace(seconds: f64) -> Value {
    Value::object(vec![(PACE.to_owned(), Value::Number(seconds))])
}

/// The name of a method in the tree that scripts share.
pub(crate) fn method_name(name: &str) -> &str {
    match name {
        "lower" => "toLowerCase",
        "upper" => "toUpperCase",
        "strip" => "trim",
        "startswith" => "startsWith",
        "endswith" => "endsWith",
        "replace" => "replaceAll",
        "find" => "indexOf",
        "__contains__" => "includes",
        name => name,
    }
}

/// The argument of this name.
fn keyword(named: &[(String, Value)], name: &str) -> Option<Value> {
    named.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

impl Importer<'_> {
    /// A name that nothing in the file has.
    pub(crate) fn python_name(&mut self, name: &str, span: Span) -> Value {
        if BUILTINS.contains(&name) {
            return Value::Builtin(format!("py.{name}"));
        }
        self.note(span, "nothing in the file has this name");
        Value::Unknown
    }

    /// An attribute of an object, or a value of a dictionary. A user and its task sets are one object.
    pub(crate) fn attribute(&self, object: &Value, name: &str) -> Value {
        match object.member(name) {
            Some(value) => value.clone(),
            None if object.member("interrupt").is_some() => match name {
                "user" | "parent" => object.clone(),
                _ => Value::Unknown,
            },
            None => Value::Undefined,
        }
    }

    /// A part of a response.
    pub(crate) fn part_of(&self, request: usize, name: &str) -> Value {
        match name {
            "status_code" => Value::Taken(request, Place::Status),
            "text" | "content" => Value::Taken(request, Place::Body),
            "js" => Value::Body(request, Vec::new()),
            "ok" => Value::Test(Test::Status(request, Statuses::range(200, 399))),
            "elapsed" => Value::Facet(request, vec!["timings".to_owned()]),
            name => Value::Facet(request, vec![name.to_owned()]),
        }
    }

    /// A function that Python, one of its libraries or Locust provides.
    pub(crate) fn python(&mut self, path: &str, mut values: Vec<Value>, span: Span) -> Value {
        let named = match values.last() {
            Some(Value::Keywords(named)) => named.to_vec(),
            _ => Vec::new(),
        };
        values.retain(|value| !matches!(value, Value::Keywords(_)));
        let value = match path.split_once('.') {
            Some(("client", function)) => Some(self.client(function, &values, &named, span)),
            Some(("super", _)) => {
                let method = path.rsplit('.').next().unwrap_or_default();
                return self.inherited(method, values, span);
            }
            Some(("py", function)) => self.of_python(function, &values, &named, span),
            Some(("random", function)) => self.of_random(function, &values, &named, span),
            _ => self.of_library(path, &values, &named, span),
        };
        value.unwrap_or_else(|| self.not_provided(path, &values, span))
    }

    /// A function that Python provides without an import.
    fn of_python(
        &mut self,
        function: &str,
        values: &[Value],
        named: &[(String, Value)],
        span: Span,
    ) -> Option<Value> {
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        let second = values.get(1);
        let one = |value: Value| vec![value];
        Some(match function {
            "str" => match self.language.shown(&first) {
                Some(text) => Value::String(text),
                None => self.builtin("String", one(first), span),
            },
            "int" => match first {
                Value::Uniform(uniform) if !uniform.is_whole => self.builtin("Math.floor", one(first), span),
                first => self.builtin("parseInt", one(first), span),
            },
            "float" => self.builtin("parseFloat", one(first), span),
            "bool" => self.builtin("Boolean", one(first), span),
            "len" => match &first {
                Value::Object(members) => Value::Number(members.len() as f64),
                first => self.member(first, "length"),
            },
            "range" => self.range(values, span),
            "list" | "tuple" | "set" | "iter" => match &first {
                Value::Undefined => Value::list(Vec::new()),
                Value::Object(_) => self.builtin("Object.keys", one(first), span),
                Value::Array(items) => Value::list(items.to_vec()),
                _ => first,
            },
            "dict" => match &first {
                Value::Undefined => Value::object(named.to_vec()),
                Value::Object(_) => {
                    let parts = vec![Value::object(Vec::new()), first, Value::object(named.to_vec())];
                    self.builtin("Object.assign", parts, span)
                }
                _ => self.unknown_call(span),
            },
            "enumerate" => match &first {
                Value::Array(items) => {
                    let start = second.and_then(Value::number).unwrap_or_default();
                    let pair = |(index, item): (usize, &Value)| {
                        Value::list(vec![Value::Number(start + index as f64), item.clone()])
                    };
                    Value::list(items.iter().enumerate().map(pair).collect())
                }
                _ => self.unknown_call(span),
            },
            "round" => match (first.number(), second.and_then(Value::number)) {
                (Some(number), digits) => {
                    let scale = 10_f64.powf(digits.unwrap_or_default());
                    Value::Number((number * scale).round() / scale)
                }
                (None, None) => self.builtin("Math.round", one(first), span),
                (None, Some(_)) => first,
            },
            "min" | "max" | "abs" => self.builtin(&format!("Math.{function}"), values.to_vec(), span),
            "format" => self.formatted(&first, second.unwrap_or(&Value::Undefined), span),
            "print" => self.builtin("console.log", values.to_vec(), span),
            "open" => self.builtin("open", one(first), span),
            "assert" => {
                self.assert(&first, span);
                Value::Undefined
            }
            "super" => Value::Builtin("super".to_owned()),
            _ => return None,
        })
    }

    /// A function of `random`.
    fn of_random(
        &mut self,
        function: &str,
        values: &[Value],
        named: &[(String, Value)],
        span: Span,
    ) -> Option<Value> {
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        let bounds = (first.number(), values.get(1).and_then(Value::number));
        Some(match function {
            "random" => self.builtin("Math.random", Vec::new(), span),
            "randint" => self.builtin("utils.randomIntBetween", values.to_vec(), span),
            "randrange" => match bounds {
                (Some(end), None) if values.len() == 1 => self.between(0.0, end - 1.0, span),
                (Some(start), Some(end)) if values.len() == 2 => self.between(start, end - 1.0, span),
                _ => self.unknown_call(span),
            },
            "uniform" => match bounds {
                (Some(low), Some(high)) => {
                    let (low, high) = (low.min(high), low.max(high));
                    Value::Uniform(Uniform { low, high, is_whole: false, draw: None })
                }
                _ => self.unknown_call(span),
            },
            "choice" => {
                let list = match &first {
                    Value::String(text) if text.len() <= MOST_WRITTEN_OUT => {
                        Value::list(text.chars().map(|c| Value::String(c.to_string())).collect())
                    }
                    _ => first,
                };
                match self.builtin("utils.randomItem", vec![list], span) {
                    Value::Unknown => self.unknown_call(span),
                    value => value,
                }
            }
            "choices" => self.choices(&first, keyword(named, "k"), keyword(named, "weights"), span),
            _ => return None,
        })
    }

    /// A function of another library of Python, or of Locust.
    fn of_library(
        &mut self,
        path: &str,
        values: &[Value],
        named: &[(String, Value)],
        span: Span,
    ) -> Option<Value> {
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        let second = values.get(1);
        let last = path.rsplit('.').next().unwrap_or_default();
        let drawn = |slot: &str| Value::Text(Text { is_number: true, is_drawn: true, ..Text::slot(slot) });
        let one = |value: Value| vec![value];
        Some(match path {
            "math.floor" | "math.ceil" | "math.sqrt" | "math.pow" => {
                self.builtin(&format!("Math.{last}"), values.to_vec(), span)
            }
            "os.getenv" | "os.environ.get" => {
                let default = second.cloned().or_else(|| keyword(named, "default"));
                self.environment_variable(&first, default, span)
            }
            "time.time" => drawn("timestamp_s"),
            "time.time_ns" => drawn("timestamp_ns"),
            "time.sleep" | "gevent.sleep" => {
                self.sleep(&first, span);
                Value::Undefined
            }
            "json.dumps" => self.builtin("JSON.stringify", one(first), span),
            "json.loads" | "json.load" => self.builtin("JSON.parse", one(first), span),
            "copy.copy" | "copy.deepcopy" => first.copied(),
            "uuid.uuid4" | "uuid.uuid1" => self.builtin("utils.uuidv4", Vec::new(), span),
            "urllib.parse.quote" | "urllib.parse.quote_plus" => {
                self.builtin("encodeURIComponent", one(first), span)
            }
            "base64.b64encode" => self.builtin("encoding.b64encode", one(first), span),
            "base64.urlsafe_b64encode" => {
                self.builtin("encoding.b64encode", vec![first, Value::text("url")], span)
            }
            "re.search" | "re.match" => match (first.constant(), second) {
                (Some(expression), Some(Value::Taken(request, Place::Body))) => {
                    self.found_by(*request, &expression, "found", span)
                }
                _ => self.unknown_call(span),
            },
            "csv.DictReader" | "csv.reader" => match &first {
                Value::File(path) => {
                    let delimiter = keyword(named, "delimiter").and_then(|value| value.constant());
                    let delimiter = delimiter.unwrap_or_else(|| ",".to_owned());
                    self.csv(path, last == "DictReader", delimiter, span)
                }
                _ => self.unknown_call(span),
            },
            "interrupt" => {
                self.is_ending = true;
                Value::Undefined
            }
            _ if path.starts_with("logging") => match last {
                "getLogger" => Value::Builtin("logging.logger".to_owned()),
                _ => self.builtin("console.log", values.to_vec(), span),
            },
            _ if path.starts_with("locust") => self.of_locust(last, &first, second, span),
            _ if last == "HTTPBasicAuth" => Value::list(values.to_vec()),
            _ => return None,
        })
    }

    /// A variable of the environment, with a value for runs in which it is not set.
    fn environment_variable(&mut self, name: &Value, default: Option<Value>, span: Span) -> Value {
        let Some(name) = name.constant() else { return self.unknown_call(span) };
        let given = self.member(&Value::Builtin("os.environ".to_owned()), &name);
        match (&given, default.and_then(|value| value.constant())) {
            (Value::Text(text), Some(default))
                if matches!(text.parts.as_slice(), [Part::Environment(_, None)]) =>
            {
                Value::Text(Text::of(environment(name, default)))
            }
            _ => given,
        }
    }

    fn between(&mut self, low: f64, high: f64, span: Span) -> Value {
        self.builtin("utils.randomIntBetween", vec![Value::Number(low), Value::Number(high)], span)
    }

    fn range(&mut self, values: &[Value], span: Span) -> Value {
        let numbers: Option<Vec<f64>> = values.iter().map(Value::number).collect();
        let (first, limit, step) = match numbers.as_deref() {
            Some([limit]) => (0.0, *limit, 1.0),
            Some([first, limit]) => (*first, *limit, 1.0),
            Some([first, limit, step]) if *step != 0.0 => (*first, *limit, *step),
            _ => return self.unknown_call(span),
        };
        let count = ((limit - first) / step).ceil().max(0.0);
        if count > MOST_ITEMS as f64 {
            self.note(span, "the list is too long: it is left out");
            return Value::Unknown;
        }
        Value::list((0..count as usize).map(|index| Value::Number(first + step * index as f64)).collect())
    }

    /// A value with a format: whole numbers that are filled up, and decimals.
    fn formatted(&mut self, value: &Value, format: &Value, span: Span) -> Value {
        let format = format.constant().unwrap_or_default();
        let kind = format.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let suffix = &format[kind.len()..];
        let width = |digits: &str| digits.parse::<usize>().ok().filter(|width| *width <= 100);
        if let Some(number) = value.number() {
            match (suffix, kind.split_once('.')) {
                ("f", Some((filled, digits))) if filled.is_empty() || filled.starts_with('0') => {
                    if let (Some(filled), Some(digits)) = (width(&format!("0{filled}")), width(digits)) {
                        return Value::String(format!("{number:0filled$.digits$}"));
                    }
                }
                ("d" | "", None) if kind.starts_with('0') && number.fract() == 0.0 => {
                    if let Some(width) = width(kind) {
                        return Value::String(format!("{:0width$}", number as i64));
                    }
                }
                _ => {}
            }
        }
        if !matches!((kind, suffix), ("", "d" | "s" | "")) {
            self.note(span, format!("the format `{format}` is not taken over: the value is sent as it is"));
        }
        value.clone()
    }

    /// `random.choices(…, k=8)`
    fn choices(&mut self, from: &Value, count: Option<Value>, weights: Option<Value>, span: Span) -> Value {
        let count = count.map_or(Some(1.0), |count| count.number());
        if weights.is_some() {
            self.note(span, "each is drawn as often: the weights are left out");
        }
        match (from, count) {
            (Value::Array(_), Some(count)) if (1.0..=100.0).contains(&count) => {
                let mut drawn = Vec::new();
                for _ in 0..count as usize {
                    drawn.push(self.builtin("utils.randomItem", vec![from.clone()], span));
                }
                Value::list(drawn)
            }
            (Value::String(letters), Some(count)) => {
                if letters.len() < 62 {
                    self.note(span, "its characters are letters and digits");
                }
                self.builtin("utils.randomString", vec![Value::Number(count)], span)
            }
            _ => self.unknown_call(span),
        }
    }

    fn of_locust(&mut self, name: &str, first: &Value, second: Option<&Value>, span: Span) -> Value {
        match (name, first.number(), second.and_then(Value::number)) {
            ("between", Some(low), Some(high)) => {
                Value::Uniform(Uniform { low, high, is_whole: false, draw: None })
            }
            ("constant", Some(seconds), _) => Value::Number(seconds),
            ("constant_pacing", Some(seconds), _) => pace(seconds),
            ("constant_throughput", Some(rate), _) if rate > 0.0 => pace(1.0 / rate),
            ("between" | "constant" | "constant_pacing" | "constant_throughput", ..) => {
                self.note(span, "the wait is not known before the run: it is left out");
                Value::Unknown
            }
            _ => self.unknown_call(span),
        }
    }

    /// A condition that has to hold: what is not as it says ends the task.
    fn assert(&mut self, value: &Value, span: Span) {
        if let Some(lost) = value.lost() {
            self.refuse(span, lost);
        }
        let test = match self.test(value, span) {
            Some(test) => test,
            None => {
                self.note(span, "the condition is not known before the run: it is left out");
                return;
            }
        };
        let mut requests = Vec::new();
        crate::k6::call::requests_of(&test, &mut requests);
        for request in &requests {
            self.requests[*request].step.on_failure = Field::Absent;
        }
        self.demand(&test, span);
        if !requests.is_empty() {
            self.note(span, "a request of which this does not hold has failed here");
        }
    }

    /// Adds what has to hold to the request, or notes that a plan cannot.
    pub(crate) fn demand(&mut self, test: &Test, span: Span) {
        self.refuse_in_course(span);
        if !self.expect(test, span) {
            let becomes = "nothing in a plan is the same as this condition: it is left out";
            self.note(span, becomes);
        }
    }

    /// A method of a value that Python has and JavaScript has not. `None` for others.
    pub(crate) fn python_method(
        &mut self,
        owner: &Value,
        name: &str,
        values: &[Value],
        span: Span,
    ) -> Option<Value> {
        let first = values.first().cloned().unwrap_or(Value::Undefined);
        Some(match (owner, name) {
            (Value::Response(request), "success") => {
                if self.requests[*request].step.expect.is_absent() {
                    self.demand(&Test::Status(*request, Statuses::range(200, 599)), span);
                }
                Value::Undefined
            }
            (Value::Response(_), "failure") => {
                self.note(span, "it is not known when the request has failed: it is left out");
                Value::Undefined
            }
            (Value::Response(request), "raise_for_status") => {
                self.requests[*request].step.on_failure = Field::Absent;
                Value::Undefined
            }
            (Value::Facet(..), "get") => {
                let key = first.constant()?;
                self.member(owner, &key)
            }
            (Value::Facet(..), "total_seconds") => owner.clone(),
            (Value::Object(_), "get") => {
                let key = first.constant()?;
                let otherwise = values.get(1).cloned().unwrap_or(Value::Null);
                owner.member(&key).cloned().unwrap_or(otherwise)
            }
            (Value::Object(members), "copy") => Value::object(members.to_vec()),
            (Value::Array(items), "copy") => Value::list(items.to_vec()),
            (Value::Object(_), "update") if matches!(first, Value::Object(_)) => {
                self.builtin("Object.assign", vec![owner.clone(), first], span);
                Value::Null
            }
            (Value::Array(items), "extend") => {
                let Value::Array(more) = &first else { return None };
                if items.len() + more.len() > MOST_WRITTEN_OUT {
                    return None;
                }
                let all = Value::list(items.iter().chain(more.iter()).cloned().collect());
                let all = self.assigned(all);
                self.replace(owner, &all);
                Value::Null
            }
            (Value::Object(_), "items") => self.builtin("Object.entries", vec![owner.clone()], span),
            (Value::Object(_), "keys") => self.builtin("Object.keys", vec![owner.clone()], span),
            (Value::Object(_), "values") => self.builtin("Object.values", vec![owner.clone()], span),
            (Value::Object(_), "__contains__") => Value::Boolean(owner.member(&first.constant()?).is_some()),
            (Value::Body(..), "get") => {
                let key = first.constant()?;
                if values.len() > 1 {
                    self.note(span, "a response without the value has failed here: the default is left out");
                }
                self.member(owner, &key)
            }
            (Value::Body(request, path), "__contains__") if !path.is_empty() => {
                Value::Test(typed::contains(*request, path, &first)?)
            }
            (Value::Body(request, path), "__contains__") => {
                let mut path = path.clone();
                path.push(first.constant()?);
                Value::Test(Test::Value(*request, Place::Json(checks::json_pointer(&path)), checks::exists()))
            }
            (Value::Array(_) | Value::Csv(_), "pop") => {
                let turn = Counter { wraps: self.rows_of(owner), ..Counter::of_iterations(true) };
                self.note(span, "each iteration takes the next row, and begins anew after the last one");
                self.row(owner, "row", &Value::Counter(turn), span)
            }
            (Value::String(separator), "join") => match &first {
                Value::Array(_) => self.method(&first, "join", vec![Value::text(separator.as_str())], span),
                Value::Text(_) => first,
                _ => return None,
            },
            (Value::Text(_), "group") => owner.clone(),
            (
                Value::String(_) | Value::Text(_) | Value::Json(_) | Value::Taken(..) | Value::Row(..),
                "encode" | "decode" | "strip" | "rstrip",
            ) if owner.constant().is_none() || matches!(name, "encode" | "decode") => owner.clone(),
            _ => return None,
        })
    }

    /// The text of a value in a URL or a form, percent-encoded.
    pub(crate) fn encoded_text(&mut self, value: &Value, span: Span) -> Text {
        let text = self.text_of(value, span);
        let mut encoded = Text { is_drawn: text.is_drawn, ..Text::default() };
        for part in text.parts {
            encoded.push(match part {
                Part::Literal(text) => Part::Literal(value::literal(&text, Writing::Form)),
                other => other,
            });
        }
        encoded
    }
}
