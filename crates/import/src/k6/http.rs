//! Requests of `k6/http`.

use plimsoll_document::{Field, StepSpec};

use super::call::duration;
use super::syntax::Span;
use super::value::{Part, Statuses, Test, Text, Value, Writing};
use super::{Importer, Item, Language, Request, escaped, title, value};
use crate::amount;
use crate::draft::{self, Url, percent_decoded, text};
use crate::flow::{self, check as checks};

/// A request as a script makes it.
pub(crate) struct Made<'v> {
    pub(crate) method: String,
    pub(crate) url: Value,
    pub(crate) body: Value,
    pub(crate) parameters: &'v Value,
    pub(crate) span: Span,
}

/// Facts about a request that are not in its step.
struct Effects {
    follows: bool,
    /// A name that the script gives it.
    tag: Option<String>,
}

impl Importer<'_> {
    /// A function of `k6/http`.
    pub(crate) fn http(&mut self, function: &str, values: &[Value], span: Span) -> Value {
        let value = |index: usize| values.get(index).cloned().unwrap_or(Value::Undefined);
        let none = Value::Undefined;
        let made = match function {
            "get" | "head" => Made {
                method: function.to_ascii_uppercase(),
                url: value(0),
                body: Value::Undefined,
                parameters: values.get(1).unwrap_or(&none),
                span,
            },
            "post" | "put" | "patch" | "del" | "options" => Made {
                method: if function == "del" { "DELETE".to_owned() } else { function.to_ascii_uppercase() },
                url: value(0),
                body: value(1),
                parameters: values.get(2).unwrap_or(&none),
                span,
            },
            "request" | "asyncRequest" => {
                if let Some(lost) = values.first().and_then(Value::lost) {
                    self.refuse(span, lost);
                }
                let Some(method) = value(0).constant() else {
                    self.left_out(span, "its method is not known before the run: the request is left out");
                    return Value::Unknown;
                };
                Made {
                    method: method.to_ascii_uppercase(),
                    url: value(1),
                    body: value(2),
                    parameters: values.get(3).unwrap_or(&none),
                    span,
                }
            }
            "batch" => return self.batch(&value(0), span),
            "expectedStatuses" => return self.expected_statuses(values, span),
            "setResponseCallback" => {
                match values.first() {
                    Some(Value::Test(Test::Status(_, statuses))) => self.statuses = Some(statuses.written()),
                    _ => self.note(
                        span,
                        "requests without expected statuses have those below 400: it is left out",
                    ),
                }
                return Value::Undefined;
            }
            "file" => return Value::FormFile,
            _ => return self.not_followed(values, span),
        };
        match self.made(made) {
            Some(request) => {
                self.push(Item::Request(request));
                Value::Response(request)
            }
            None => Value::Unknown,
        }
    }

    /// `http.expectedStatuses(200, {min: 300, max: 304})`.
    fn expected_statuses(&mut self, values: &[Value], span: Span) -> Value {
        let mut statuses = Statuses::range(1, 0);
        for value in values {
            let (first, last) = match value {
                Value::Object(_) => (value.member("min"), value.member("max")),
                value => (Some(value), Some(value)),
            };
            let number = |value: Option<&Value>| value.and_then(Value::number).map(|number| number as u16);
            match (number(first), number(last)) {
                (Some(first), Some(last)) => statuses = statuses.or(&Statuses::range(first, last)),
                _ => self.note(span, "the statuses are not known before the run: they are left out"),
            }
        }
        Value::Test(Test::Status(usize::MAX, statuses))
    }

    /// Requests that are sent at once.
    fn batch(&mut self, requests: &Value, span: Span) -> Value {
        if let Value::Lost(lost) = requests {
            self.refuse(span, lost);
        }
        let named: Vec<(String, Value)> = match requests {
            Value::Array(items) => {
                items.iter().enumerate().map(|(index, item)| (index.to_string(), item.clone())).collect()
            }
            Value::Object(members) => members.to_vec(),
            _ => {
                self.note(span, "the requests are not known before the run: they are left out");
                return Value::Unknown;
            }
        };
        let is_list = matches!(requests, Value::Array(_));
        let (mut all, mut responses) = (Vec::new(), Vec::new());
        for (name, item) in named {
            let part = |index: usize| match &item {
                Value::Array(parts) => parts.get(index).cloned().unwrap_or(Value::Undefined),
                _ => Value::Undefined,
            };
            let member = |name: &str| item.member(name).cloned().unwrap_or(Value::Undefined);
            let (method, url, body, parameters) = match &item {
                Value::Array(_) => (part(0), part(1), part(2), part(3)),
                Value::Object(_) if item.member("name").is_none() => {
                    (member("method"), member("url"), member("body"), member("params"))
                }
                url => (Value::text("GET"), url.clone(), Value::Undefined, Value::Undefined),
            };
            let Some(method) = method.constant().filter(|method| method != "undefined") else {
                self.note(span, "a method is not known before the run: its request is left out");
                continue;
            };
            let made = Made { method: method.to_ascii_uppercase(), url, body, parameters: &parameters, span };
            let request = self.made(made);
            all.extend(request);
            responses.push((name, request.map_or(Value::Unknown, Value::Response)));
        }
        self.push(Item::Parallel(all));
        if is_list {
            Value::list(responses.into_iter().map(|(_, response)| response).collect())
        } else {
            Value::object(responses)
        }
    }

    /// The number of a request. `None` if it cannot be sent, which is reported.
    pub(crate) fn made(&mut self, made: Made<'_>) -> Option<usize> {
        let Made { method, url, body, parameters, span } = made;
        let at = self.at(span);
        self.refuse_in_course(span);
        if let Some(lost) = [&url, &body, parameters].into_iter().find_map(Value::lost) {
            self.refuse(span, lost);
        }
        if let Value::Lost(_) = url {
            return None;
        }
        if !draft::is_token(&method) {
            self.findings.problem(&at, format!("`{}` is not a method", crate::findings::quoted(&method)));
            return None;
        }
        let (url, tag) = match &url {
            Value::Object(_) => (
                url.member("url").cloned().unwrap_or(Value::Undefined),
                url.member("name").and_then(Value::constant),
            ),
            _ => (url, None),
        };
        if matches!(url, Value::Unknown | Value::Undefined | Value::Null) {
            self.left_out(span, "its URL is not known before the run: the request is left out");
            return None;
        }
        let address = self.text_of(&url, span);
        let mut step = self.addressed(&method, address, span)?;
        let mut effects = Effects { follows: true, tag };
        match parameters {
            Value::Object(members) => self.parameters(members, &mut step, &mut effects, span),
            Value::Undefined | Value::Null => {}
            _ => {
                let becomes = "the parameters of the request are not known before the run: they are left out";
                self.note(span, becomes);
            }
        }
        self.body(body, &mut step, span);
        if let Some(statuses) = &self.statuses
            && step.expect.is_absent()
        {
            let expect = checks::expectations(&mut step);
            expect.status = statuses.iter().map(|status| text(status.as_str())).collect();
        }
        Some(self.add(step, &method, at, effects))
    }

    /// Takes over the parameters of a request.
    fn parameters(
        &mut self,
        parameters: &[(String, Value)],
        step: &mut StepSpec,
        effects: &mut Effects,
        span: Span,
    ) {
        let at = self.at(span);
        for (name, value) in parameters {
            match name.as_str() {
                "headers" => self.headers(value, step, span),
                "cookies" => self.cookies(value, step, span),
                "tags" => {
                    let Value::Object(tags) = value else { continue };
                    for (key, value) in tags.iter() {
                        match (key.as_str(), value.constant()) {
                            ("name", Some(name)) => effects.tag = Some(name),
                            _ => {
                                let becomes = "plans have no tags but the names of steps: it is left out";
                                self.findings.note(at.as_str(), &format!("tags.{key}"), becomes);
                            }
                        }
                    }
                }
                "timeout" => match duration(value).filter(|nanos| *nanos > 0) {
                    Some(nanos) => step.timeout = text(amount::time(nanos)),
                    None => self.findings.note(at.as_str(), "timeout", "it is not a time: it is left out"),
                },
                "redirects" => match value.number() {
                    Some(0.0) => effects.follows = false,
                    Some(number) => {
                        let number = value::shown(number);
                        if number != self.most_redirects {
                            let becomes = "a plan has one number of redirects for all requests";
                            self.findings.note(at.as_str(), &format!("redirects: {number}"), becomes);
                        }
                    }
                    None => {
                        self.findings.note(at.as_str(), "redirects", "it is not a number: it is left out");
                    }
                },
                "responseCallback" => match value {
                    Value::Test(Test::Status(_, statuses)) => {
                        let becomes = "responseCallback";
                        let statuses = statuses.written();
                        checks::expect_status(step, &statuses, &at, becomes, &mut self.findings);
                    }
                    _ => {
                        let becomes = "a status below 400 is good: it is left out";
                        self.findings.note(at.as_str(), "responseCallback", becomes);
                    }
                },
                "auth" if value.constant().as_deref() == Some("basic") => {}
                "jar" => {}
                other => {
                    let said = match value.constant() {
                        Some(value) => format!("{other}: {value}"),
                        None => other.to_owned(),
                    };
                    let becomes = "a request of a plan has no such setting: it is left out";
                    self.findings.note(at.as_str(), &said, becomes);
                }
            }
        }
        if parameters.iter().any(|(name, _)| name == "jar") {
            let becomes = "cookies are kept for an iteration, in one jar: it is left out";
            self.findings.note(at.as_str(), "jar", becomes);
        }
    }

    fn add(&mut self, mut step: StepSpec, method: &str, at: String, effects: Effects) -> usize {
        let Effects { follows, tag } = effects;
        let group = (!self.groups.is_empty()).then(|| self.groups.join(" / "));
        let named = match (&group, &tag) {
            (_, Some(tag)) => Some(tag.replace("${}", "…")),
            (Some(group), None) => {
                let url = step.request_mut().address.url_mut().map(|url| url.0.clone()).unwrap_or_default();
                let path = url.split('?').next().unwrap_or_default();
                Some(format!("{group}: {method} {path}"))
            }
            (None, None) => None,
        };
        if let Some(named) = named {
            step.name = text(self.titles.take(&title(&named)));
        }
        let (scenario, is_once) = (self.scenarios, self.is_once);
        self.requests.push(Request { step, at, follows, is_once, tag, group, scenario, taken: Vec::new() });
        self.requests.len() - 1
    }

    /// The step of a request to this URL.
    fn addressed(&mut self, method: &str, url: Text, span: Span) -> Option<StepSpec> {
        let at = self.at(span);
        let (origin, path) = match cut(&url) {
            Ok(parts) => parts,
            Err(wrong) => {
                let said = crate::findings::quoted(&self.said(span));
                let hint = match self.language {
                    Language::JavaScript => {
                        "the server has to be known before the run; --env NAME=VALUE gives a value of `__ENV`"
                    }
                    Language::Python => {
                        "the server has to be known before the run: --host URL, or --env NAME=VALUE for a \
                         variable of the environment"
                    }
                };
                let wrong = match self.language {
                    Language::JavaScript => wrong,
                    Language::Python => wrong.replace("__ENV.", ""),
                };
                self.findings.hinted(&at, format!("`{said}`: {wrong}"), hint);
                return None;
            }
        };
        let Some(origin) = origin else {
            let path = self.written(&path, Writing::Target);
            return Some(continuing(draft::request(method, path)));
        };
        let path = without_fragment(path);
        let begins_with_slot = matches!(path.parts.first(), Some(Part::Slot(_) | Part::Encoded(_)));
        let mut path = self.written(&path, Writing::Target);
        if !path.starts_with('/') && !begins_with_slot {
            path.insert(0, '/');
        }
        let mut user = None;
        let server = match origin.parts.as_slice() {
            [Part::Literal(origin)] => match Url::parse(origin) {
                Ok(parsed) => {
                    user = parsed.user;
                    parsed.origin
                }
                Err(wrong) => {
                    let message = format!("`{}` is not a URL: {wrong}", crate::findings::quoted(origin));
                    self.findings.hinted(&at, message, "write the URL of a server: http://127.0.0.1:8080");
                    return None;
                }
            },
            _ => self.written(&origin, Writing::Plain),
        };
        let mut step = continuing(draft::request(method, path));
        if let Some(user) = user {
            let user = String::from_utf8_lossy(&percent_decoded(&user)).into_owned();
            let (name, password) = user.split_once(':').unwrap_or((&user, ""));
            let value = flow::basic(&escaped(name), &escaped(password));
            flow::put_header(&mut step, "authorization", &value, &at, &mut self.findings);
        }
        let known = self.targets.iter().position(|known| *known == server);
        let target = known.unwrap_or_else(|| {
            self.targets.push(server);
            self.targets.len() - 1
        });
        step.target = text(super::target_name(target));
        Some(step)
    }

    fn headers(&mut self, headers: &Value, step: &mut StepSpec, span: Span) {
        let at = self.at(span);
        let Value::Object(members) = headers else {
            if !matches!(headers, Value::Undefined | Value::Null) {
                self.findings.note(at, "headers", "they are not known before the run: they are left out");
            }
            return;
        };
        for (name, value) in members.iter() {
            if flow::is_own_header(name) {
                self.findings.note(at.as_str(), name, "the header belongs to the connection: it is left out");
                continue;
            }
            let text = self.text_of(value, span);
            let template = self.written(&text, Writing::Plain);
            flow::put_header(step, name, &template, &at, &mut self.findings);
        }
    }

    fn cookies(&mut self, cookies: &Value, step: &mut StepSpec, span: Span) {
        let at = self.at(span);
        let Value::Object(members) = cookies else {
            self.findings.note(at, "cookies", "they are not known before the run: they are left out");
            return;
        };
        let mut pairs = Vec::new();
        for (name, value) in members.iter() {
            let value = value.member("value").unwrap_or(value);
            let text = self.text_of(value, span);
            pairs.push(format!("{}={}", escaped(name), self.written(&text, Writing::Plain)));
        }
        if !pairs.is_empty() {
            draft::header(step, "cookie", &pairs.join("; "), &at, &mut self.findings);
        }
    }

    fn body(&mut self, body: Value, step: &mut StepSpec, span: Span) {
        let at = self.at(span);
        match body {
            Value::Undefined | Value::Null | Value::Lost(_) => {}
            Value::Unknown => self.note(span, "its body is not known before the run: it is sent without one"),
            Value::File(path) => {
                step.request_mut().body.body_file = text(escaped(&path));
            }
            Value::Json(value) => self.json_body(&value, step, span),
            Value::Object(members) => {
                if members.iter().any(|(_, value)| matches!(value, Value::FormFile)) {
                    let becomes =
                        "a form with files is not taken over: put it into a file, and name it as `body_file`";
                    self.note(span, becomes);
                    return;
                }
                let mut members = members.to_vec();
                // k6 writes a form in the order of its names.
                if self.language == Language::JavaScript {
                    members.sort_by(|(one, _), (other, _)| one.cmp(other));
                }
                let mut pairs = Vec::new();
                for (name, value) in &members {
                    let text = self.text_of(value, span);
                    let value = self.written(&text, Writing::Form);
                    pairs.push(format!("{}={value}", value::literal(name, Writing::Form)));
                }
                if !flow::has_header(step, "content-type") {
                    let kind = "application/x-www-form-urlencoded";
                    flow::put_header(step, "content-type", kind, &at, &mut self.findings);
                }
                if !pairs.is_empty() {
                    step.request_mut().body.body = text(pairs.join("&"));
                }
            }
            value => {
                let written = self.text_of(&value, span);
                let template = self.written(&written, Writing::Plain);
                if !template.is_empty() {
                    step.request_mut().body.body = text(template);
                }
            }
        }
    }

    fn json_body(&mut self, value: &Value, step: &mut StepSpec, span: Span) {
        let is_json = step.request().is_some_and(|request| {
            request.headers.0.iter().any(|(name, _, value)| {
                name.as_str().eq_ignore_ascii_case("content-type")
                    && value.get().is_some_and(|value| value.as_str() == "application/json")
            })
        });
        if is_json && let Some(tree) = self.json_tree(value, span) {
            let headers = &mut step.request_mut().headers.0;
            headers.retain(|(name, ..)| !name.as_str().eq_ignore_ascii_case("content-type"));
            step.request_mut().body.json = Field::new(tree);
            return;
        }
        let template = self.json_text(value, span);
        step.request_mut().body.body = text(template);
    }

    /// JSON whose texts are templates; `None` if a part of it is a number with a slot.
    fn json_tree(&mut self, value: &Value, span: Span) -> Option<serde_json::Value> {
        use serde_json::Value as Json;
        Some(match value {
            Value::Null | Value::Undefined | Value::Boolean(_) | Value::Number(_) => value.json()?,
            Value::String(text) => Json::from(escaped(text)),
            Value::Array(items) => {
                let items = items.to_vec();
                Json::Array(items.iter().map(|item| self.json_tree(item, span)).collect::<Option<_>>()?)
            }
            Value::Object(members) => {
                let mut object = serde_json::Map::new();
                for (key, member) in members.iter() {
                    if !matches!(member, Value::Undefined) {
                        object.insert(escaped(key), self.json_tree(member, span)?);
                    }
                }
                Json::Object(object)
            }
            Value::Uniform(_) | Value::Counter(_) => return None,
            Value::Text(text) if text.is_number => return None,
            Value::Row(source, path) if self.has_parts(*source, path) => return None,
            Value::Row(source, path) => {
                let column = self.column(*source, path, false, span);
                if column.is_number {
                    return None;
                }
                Json::from(self.written(&column, Writing::Plain))
            }
            Value::Json(_) => return None,
            value => {
                self.note_typed(value, span);
                let text = self.text_of(value, span);
                Json::from(self.written(&text, Writing::Plain))
            }
        })
    }

    fn note_typed(&mut self, value: &Value, span: Span) {
        if matches!(value, Value::Body(..)) {
            let becomes = "values of responses are sent as texts in JSON: write the `body` without quotes \
                           around a \
                           slot that has to be a number";
            let at = self.at(span);
            self.findings.note(at, "JSON.stringify", becomes);
        }
    }

    /// The template of a value in JSON.
    pub(crate) fn json_text(&mut self, value: &Value, span: Span) -> String {
        match value {
            Value::Array(items) => {
                let items = items.to_vec();
                let items: Vec<String> = items.iter().map(|item| self.json_text(item, span)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(members) => {
                let mut pairs = Vec::new();
                for (key, member) in members.iter() {
                    if !matches!(member, Value::Undefined) {
                        let key = value::literal(key, Writing::Json);
                        pairs.push(format!("\"{key}\":{}", self.json_text(member, span)));
                    }
                }
                format!("{{{}}}", pairs.join(","))
            }
            Value::Row(source, path) => {
                let text = self.column(*source, path, true, span);
                self.written(&text, Writing::Plain)
            }
            Value::Json(inner) => {
                let template = self.json_text(inner, span);
                let name = self.variable("json", template);
                format!("\"${{json(${{{name}}})}}\"")
            }
            value => match value.json() {
                Some(json) => escaped(&json.to_string()),
                None => {
                    self.note_typed(value, span);
                    let text = self.text_of(value, span);
                    let template = self.written(&text, Writing::Json);
                    if text.is_number { template } else { format!("\"{template}\"") }
                }
            },
        }
    }
}

/// A step that goes on after a failure, as scripts do.
fn continuing(mut step: StepSpec) -> StepSpec {
    step.on_failure = text("continue");
    step
}

/// A URL without the part behind `#`.
fn without_fragment(url: Text) -> Text {
    let mut kept = Text { is_drawn: url.is_drawn, ..Text::default() };
    for part in url.parts {
        match part {
            Part::Literal(text) => match text.split_once('#') {
                Some((before, _)) => {
                    kept.push(Part::Literal(before.to_owned()));
                    break;
                }
                None => kept.push(Part::Literal(text)),
            },
            other => kept.push(other),
        }
    }
    kept
}

/// The server of a URL, and its path. There is no server if the URL begins with a value of a response: that
/// says which one it is.
fn cut(url: &Text) -> Result<(Option<Text>, Text), String> {
    let mut origin = Text::default();
    let mut parts = url.parts.iter();
    match url.parts.first() {
        Some(Part::Slot(_) | Part::Encoded(_)) => return Ok((None, url.clone())),
        Some(Part::Environment(name, None)) => {
            return Err(format!("`__ENV.{name}`, with which the URL begins, has no value"));
        }
        Some(Part::Environment(_, Some(default))) => {
            // The environment has a whole URL, perhaps with a path, or a scheme and a name alone.
            let rest = default.split_once("://").map_or(default.as_str(), |(_, rest)| rest);
            if !default.contains("://") {
                return Err(format!("`{}` names no server", crate::findings::quoted(default)));
            }
            let part = parts.next().cloned();
            origin.parts.extend(part);
            if rest.contains('/') {
                let mut path = Text { is_drawn: url.is_drawn, ..Text::default() };
                parts.for_each(|part| path.push(part.clone()));
                if let Some(Part::Environment(_, Some(default))) = origin.parts.first_mut() {
                    *default = default.trim_end_matches('/').to_owned();
                }
                return Ok((Some(origin), path));
            }
        }
        Some(Part::Literal(text)) if text.contains("://") => {}
        _ => return Err("it names no server".to_owned()),
    }
    let mut path = Text { is_drawn: url.is_drawn, ..Text::default() };
    let mut begun = !origin.parts.is_empty();
    let mut in_path = false;
    for part in parts {
        if in_path {
            path.push(part.clone());
            continue;
        }
        match part {
            Part::Literal(text) => {
                let from = if begun { 0 } else { text.find("://").map_or(0, |at| at + 3) };
                begun = true;
                match text[from..].find(['/', '?', '#']) {
                    Some(end) => {
                        if from + end > 0 {
                            origin.push(Part::Literal(text[..from + end].to_owned()));
                        }
                        path.push(Part::Literal(text[from + end..].to_owned()));
                        in_path = true;
                    }
                    None => origin.push(Part::Literal(text.clone())),
                }
            }
            Part::Environment(_, Some(_)) => origin.push(part.clone()),
            Part::Environment(name, None) => {
                return Err(format!("`__ENV.{name}`, a part of the server's name, has no value"));
            }
            // The path is a value that begins with its slash.
            Part::Slot(_) if begun && !origin.parts.is_empty() && !ends_with_scheme(&origin) => {
                path.push(part.clone());
                in_path = true;
            }
            Part::Slot(inside) | Part::Encoded(inside) => {
                return Err(format!(
                    "a part of the server's name is not known before the run: ${{{inside}}}"
                ));
            }
        }
    }
    Ok((Some(origin), path))
}

/// Returns `true` if the name of the server is still to come.
fn ends_with_scheme(origin: &Text) -> bool {
    matches!(origin.parts.last(), Some(Part::Literal(text)) if text.ends_with(['/', '.', ':', '-']))
}
