//! Steps of a `flow`.

use plimsoll_document::{Field, ParallelStep, StepSpec};
use serde_json::{Map, Value};

use super::{Importer, is_extension, named, plain, time};
use crate::MOST_STEPS;
use crate::draft::{self, text};
use crate::flow::{self, MOST_WRITTEN_OUT, Writing, in_quotes};
use crate::names::Titles;
use crate::source::{Object, shown};

/// Most bytes of steps that are written out, all together.
const MOST_WRITTEN: usize = 64 << 20;

/// Methods of steps.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The scenario that a step is in.
pub(super) struct In<'s> {
    /// Names of steps so far.
    pub(super) names: &'s mut Titles,
}

impl Importer<'_> {
    pub(super) fn flow(&mut self, flow: Vec<(&Value, String)>, within: &mut In<'_>) -> Vec<StepSpec> {
        let mut steps: Vec<StepSpec> = Vec::new();
        for (step, at) in flow {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                if self.steps == MOST_STEPS + 1 {
                    self.findings.problem(&at, format!("there are more than {MOST_STEPS} steps"));
                }
                break;
            }
            let Some(mut object) = Object::new(step, at, &mut self.findings) else { continue };
            self.step(&mut object, &mut steps, within);
            object.rest(&mut self.findings, is_extension);
        }
        steps
    }

    fn step(&mut self, object: &mut Object<'_>, steps: &mut Vec<StepSpec>, within: &mut In<'_>) {
        if let Some(method) = METHODS.into_iter().find(|method| object.has(method)) {
            let at = object.place(method);
            let Some(value) = object.value(method) else { return };
            if let Some((step, condition)) = self.request(method, value, &at, within) {
                steps.push(match condition {
                    Some(condition) => flow::branch(condition, vec![step]),
                    None => step,
                });
            }
        } else if let Some(value) = object.value("think") {
            let condition = self.condition(object);
            self.think(value, &object.place("think"), condition, steps);
        } else if object.has("loop") {
            self.repetition(object, steps, within);
        } else if object.has("parallel") {
            let inner = object.list("parallel", &mut self.findings);
            let at = object.place("parallel");
            let mut requests = self.flow(inner, within);
            let count = requests.len();
            requests.retain(|step| step.request().is_some());
            if requests.len() < count {
                let becomes = "only requests are sent at once: the other steps in it are left out";
                self.findings.note(at, "parallel", becomes);
            }
            match requests.len() {
                0 => {}
                1 => steps.append(&mut requests),
                _ => steps.push(ParallelStep::new(requests).into()),
            }
        } else if let Some(value) = object.value("log") {
            self.findings.note(object.place("log"), &named(value), "nothing is logged: it is left out");
        } else if let Some(value) = object.value("function") {
            self.note_function(&object.place("function"), value);
        } else {
            let names: Vec<&str> = object.members().keys().map(String::as_str).collect();
            let becomes = "there is no such step: it is left out";
            self.findings.note(object.at.as_str(), &names.join(", "), becomes);
            object.skip(&["emit", "send", "connect", "namespace", "ifTrue"]);
        }
    }

    /// `ifTrue`, as a condition of plans.
    fn condition(&mut self, object: &mut Object<'_>) -> Option<String> {
        let value = object.value("ifTrue")?;
        let written = plain(value);
        let condition = self.condition_of(&written);
        if condition.is_none() {
            let becomes = "plans compare a variable with a value: the step is carried out in any case";
            self.findings.note(object.place("ifTrue"), &written, becomes);
        }
        condition
    }

    /// `page < 10` as `${page} < 10`; `name` alone has to be set, and neither false nor 0.
    fn condition_of(&mut self, written: &str) -> Option<String> {
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        };
        let written = written.trim();
        if is_name(written) {
            let name = self.variables.name(written);
            // A value of JSON that is `null` is a text here.
            return Some(format!(
                "not (${{{name}}} == \"\" or ${{{name}}} == false or ${{{name}}} == 0 or ${{{name}}} == \"null\")"
            ));
        }
        for (theirs, ours) in [
            ("===", "=="),
            ("!==", "!="),
            ("==", "=="),
            ("!=", "!="),
            ("<=", "<="),
            (">=", ">="),
            ("<", "<"),
            (">", ">"),
        ] {
            let Some((left, right)) = written.split_once(theirs) else { continue };
            let (left, right) = (left.trim(), right.trim());
            if !is_name(left) {
                return None;
            }
            let inside = |quote: char| right.strip_prefix(quote)?.strip_suffix(quote);
            let literal = inside('"').or_else(|| inside('\''));
            let right = match literal {
                Some(literal) if !literal.contains("${") => in_quotes(literal)?,
                None if ["true", "false"].contains(&right)
                    || right.parse::<f64>().is_ok_and(f64::is_finite) =>
                {
                    right.to_owned()
                }
                None if is_name(right) => format!("${{{}}}", self.variables.name(right)),
                _ => return None,
            };
            let left = self.variables.name(left);
            return Some(format!("${{{left}}} {ours} {right}"));
        }
        None
    }

    fn think(&mut self, value: &Value, at: &str, condition: Option<String>, steps: &mut Vec<StepSpec>) {
        let Some(nanos) =
            time(value).or_else(|| time(&Value::String(self.variables.expanded(&plain(value)))))
        else {
            self.findings.note(at, &shown(value), "a pause has a fixed time in a plan: it is left out");
            return;
        };
        if nanos == 0 {
            return;
        }
        let pause = draft::think(nanos);
        match (steps.last_mut(), condition) {
            (Some(last), None) if last.request().is_some() && last.think.is_absent() => last.think = pause,
            (_, condition) => {
                let step = flow::pause(flow::uniform(nanos, nanos));
                steps.push(match condition {
                    Some(condition) => flow::branch(condition, vec![step]),
                    None => step,
                });
            }
        }
    }

    fn repetition(&mut self, object: &mut Object<'_>, steps: &mut Vec<StepSpec>, within: &mut In<'_>) {
        let at = object.place("loop");
        let reads_count =
            object.members().get("loop").is_some_and(|body| body.to_string().contains("$loopCount"));
        let condition = self.condition(object);
        let mut all = Vec::new();
        let count = object.value("count").map(plain);
        let over = object.value("over");
        if let Some(function) = object.value("whileTrue") {
            let becomes = "a function in JavaScript would decide: the steps are carried out once; `while` \
                           of a plan may do";
            self.findings.note(object.place("whileTrue"), &named(function), becomes);
            all = self.body(object, within);
        } else if let Some(over) = over {
            all = self.over(over, object, within);
        } else {
            let count = count.unwrap_or_else(|| "1".to_owned());
            let number: Option<usize> = count.trim().parse().ok();
            let largest = count
                .split_once('-')
                .map(|(low, high)| (low.trim().parse::<u64>(), high.trim().parse::<u64>()));
            match (number, largest) {
                (Some(0), _) => {
                    let becomes =
                        "a loop without a count of turns never ends there: its steps are carried out once";
                    self.findings.note(at, "count: 0", becomes);
                    all = self.body(object, within);
                }
                (Some(turns), _) if reads_count && turns <= MOST_WRITTEN_OUT => {
                    let values: Vec<String> = (1..=turns).map(|turn| turn.to_string()).collect();
                    all = self.written_out("$loopCount", &values, object, within);
                }
                (Some(turns), _) => {
                    if reads_count {
                        let becomes = "the number of the turn is not known here: it is empty";
                        self.findings.note(at, "$loopCount", becomes);
                    }
                    let body = self.body(object, within);
                    if !body.is_empty() {
                        all.push(flow::repeat(turns.to_string(), body));
                    }
                }
                (None, Some((Ok(low), Ok(high)))) if low <= high => {
                    let body = self.body(object, within);
                    let turns = self.variables.take("turns");
                    if !body.is_empty() {
                        all.push(flow::set([(turns.clone(), format!("${{random_int({low}, {high})}}"))]));
                        all.push(flow::repeat(format!("${{{turns}}}"), body));
                    }
                }
                _ => {
                    let template = self.variables.template(
                        &count,
                        Writing::Plain,
                        &object.place("count"),
                        &mut self.findings,
                    );
                    let body = self.body(object, within);
                    if template.starts_with("${") && !body.is_empty() {
                        all.push(flow::repeat(template, body));
                    } else if !body.is_empty() {
                        self.findings.note(
                            object.place("count"),
                            &count,
                            "it is not a number: the steps are carried out once",
                        );
                        all = body;
                    }
                }
            }
        }
        match condition {
            Some(condition) if !all.is_empty() => steps.push(flow::branch(condition, all)),
            _ => steps.append(&mut all),
        }
        object.skip(&["loop", "loopValue"]);
    }

    /// The steps in a loop, once.
    fn body(&mut self, object: &mut Object<'_>, within: &mut In<'_>) -> Vec<StepSpec> {
        let inner = object.list("loop", &mut self.findings);
        self.flow(inner, within)
    }

    fn over(&mut self, over: &Value, object: &mut Object<'_>, within: &mut In<'_>) -> Vec<StepSpec> {
        let at = object.place("over");
        match over {
            Value::Array(items)
                if items.len() <= MOST_WRITTEN_OUT
                    && !items.iter().any(|item| item.is_array() || item.is_object()) =>
            {
                let values: Vec<String> = items.iter().map(plain).collect();
                self.written_out("$loopElement", &values, object, within)
            }
            over => {
                let becomes = "plans have no lists in variables: the steps are carried out once";
                self.findings.note(at, &named(over), becomes);
                self.body(object, within)
            }
        }
    }

    /// The steps of a loop once for each value of a variable.
    fn written_out(
        &mut self,
        variable: &str,
        values: &[String],
        object: &mut Object<'_>,
        within: &mut In<'_>,
    ) -> Vec<StepSpec> {
        let mut all = Vec::new();
        let at = object.place("loop");
        let size = object.members().get("loop").map_or(0, |body| body.to_string().len());
        for value in values {
            self.written += size;
            if self.steps > MOST_STEPS || self.written > MOST_WRITTEN {
                if !self.findings.has_problems() {
                    self.findings.problem(&at, "written out, the steps of this loop are too many");
                }
                break;
            }
            let name = self.variables.name(variable);
            let value = self.variables.template(value, Writing::Plain, &at, &mut self.findings);
            all.push(flow::set([(name, value)]));
            all.extend(self.body(object, within));
        }
        all
    }

    /// A request, and the condition for it.
    fn request(
        &mut self,
        method: &str,
        value: &Value,
        at: &str,
        within: &mut In<'_>,
    ) -> Option<(StepSpec, Option<String>)> {
        let whole;
        let value = match value {
            Value::String(url) => {
                let mut members = Map::new();
                members.insert("url".to_owned(), Value::String(url.clone()));
                whole = Value::Object(members);
                &whole
            }
            value => value,
        };
        let mut request = Object::new(value, at, &mut self.findings)?;
        let url =
            request.value("url").or_else(|| request.members().get("uri")).map(plain).unwrap_or_default();
        request.skip(&["uri"]);
        let url = self.with_query(&url, &mut request);
        let hint = "the server has to be written as `config.target`, or in the URL";
        let target = self.target.clone();
        let base = if target.is_empty() { None } else { Some(target.as_str()) };
        if base.is_none() && !url.contains("://") {
            // The missing target was reported.
            return None;
        }
        let address = self.variables.address(&url, base, &request.place("url"), hint, &mut self.findings)?;
        let mut step = address.request(&method.to_ascii_uppercase(), true);
        if let Some(name) = request.value("name").map(plain).filter(|name| !name.trim().is_empty()) {
            step.name = text(within.names.take(&flow::title(&name, "request")));
        }
        self.headers(&mut request, &mut step);
        self.body_of(&mut request, &mut step);
        let follows = request.flag("followRedirect", &mut self.findings) != Some(false);
        self.follows.push((request.at.clone(), follows));
        if let Some(value) = request.value("timeout") {
            match time(value).filter(|nanos| *nanos > 0) {
                Some(nanos) => step.timeout = text(crate::amount::time(nanos)),
                None => self.findings.note(
                    request.place("timeout"),
                    &shown(value),
                    "it is not a time: it is left out",
                ),
            }
        }
        self.captures(&mut request, &mut step);
        self.expectations(&mut request, &mut step);
        let condition = self.condition(&mut request);
        for key in ["beforeRequest", "afterResponse"] {
            if let Some(function) = request.value(key) {
                self.note_function(&request.place(key), function);
            }
        }
        if request.flag("gzip", &mut self.findings) == Some(true)
            && !flow::has_header(&step, "accept-encoding")
        {
            let at = request.place("gzip");
            flow::put_header(&mut step, "accept-encoding", "gzip", &at, &mut self.findings);
        }
        request.rest(&mut self.findings, is_extension);
        Some((step, condition))
    }

    /// The URL with the pairs of `qs`.
    fn with_query(&mut self, url: &str, request: &mut Object<'_>) -> String {
        let mut url = url.to_owned();
        let Some(pairs) = request.object("qs", &mut self.findings) else { return url };
        for (name, value) in pairs.members() {
            let values: Vec<String> = match value {
                Value::Array(items) => items.iter().map(plain).collect(),
                other => vec![plain(other)],
            };
            for value in values {
                url.push(if url.contains('?') { '&' } else { '?' });
                // Separators of pairs are escaped in values, but not in slots.
                let encoded = |text: &str| {
                    if text.contains("{{") {
                        text.to_owned()
                    } else {
                        draft::percent_encoded(text, b",:/@!$'()*;")
                    }
                };
                url.push_str(&format!("{}={}", encoded(name), encoded(&value)));
            }
        }
        url
    }

    fn headers(&mut self, request: &mut Object<'_>, step: &mut StepSpec) {
        if let Some(headers) = request.object("headers", &mut self.findings) {
            for (name, value) in headers.members() {
                let at = headers.place(name);
                if flow::is_own_header(name) {
                    self.findings.note(at, name, "the header belongs to the connection: it is left out");
                    continue;
                }
                let value = self.variables.template(&plain(value), Writing::Plain, &at, &mut self.findings);
                draft::header(step, name, &value, &at, &mut self.findings);
            }
        }
        if let Some(cookies) = request.object("cookie", &mut self.findings) {
            let mut pairs = Vec::new();
            for (name, value) in cookies.members() {
                let at = cookies.place(name);
                let value = self.variables.template(&plain(value), Writing::Plain, &at, &mut self.findings);
                pairs.push(format!("{}={value}", draft::escaped(name)));
            }
            if !pairs.is_empty() {
                draft::header(step, "cookie", &pairs.join("; "), &cookies.at, &mut self.findings);
            }
        }
        if let Some(mut auth) = request.object("auth", &mut self.findings) {
            let mut read = |key: &'static str, other: &'static str| {
                let value = auth.value(key).or_else(|| auth.value(other)).map(plain).unwrap_or_default();
                self.variables.template(&value, Writing::Plain, &auth.at, &mut self.findings)
            };
            let (user, password) = (read("user", "username"), read("pass", "password"));
            auth.skip(&["user", "username", "pass", "password", "sendImmediately"]);
            flow::put_header(
                step,
                "authorization",
                &flow::basic(&user, &password),
                &auth.at,
                &mut self.findings,
            );
            auth.rest(&mut self.findings, is_extension);
        }
    }

    fn body_of(&mut self, request: &mut Object<'_>, step: &mut StepSpec) {
        let place = |request: &Object<'_>, key: &str| request.place(key);
        if let Some(json) = request.value("json") {
            let at = place(request, "json");
            step.request_mut().body.json = Field::new(self.json(json, &at));
        } else if let Some(form) = request.object("form", &mut self.findings) {
            let mut pairs = Vec::new();
            for (name, value) in form.members() {
                let at = form.place(name);
                let mut encoded =
                    |text: &str| self.variables.template(text, Writing::Form, &at, &mut self.findings);
                pairs.push(format!("{}={}", encoded(name), encoded(&plain(value))));
            }
            if !flow::has_header(step, "content-type") {
                let kind = "application/x-www-form-urlencoded";
                flow::put_header(step, "content-type", kind, &form.at, &mut self.findings);
            }
            step.request_mut().body.body = text(pairs.join("&"));
        } else if let Some(form) = request.object("formData", &mut self.findings) {
            self.form_data(&form, step);
        } else if let Some(body) = request.value("body") {
            let at = place(request, "body");
            let template = self.variables.template(&plain(body), Writing::Plain, &at, &mut self.findings);
            if !template.is_empty() {
                step.request_mut().body.body = text(template);
            }
        }
        request.skip(&["json", "form", "formData", "body"]);
    }

    /// A form of several parts. A value is a text, or an object with the file in `fromFile`.
    fn form_data(&mut self, form: &Object<'_>, step: &mut StepSpec) {
        let mut parts = Vec::new();
        for (name, value) in form.members() {
            let at = form.place(name);
            let mut template =
                |text: &str| self.variables.template(text, Writing::Plain, &at, &mut self.findings);
            let name = template(name);
            let told = |key: &str| value.get(key).map(plain);
            let mut part = match told("fromFile") {
                Some(path) => {
                    flow::file_part(name, &path, (self.folder, self.files), &at, &mut self.findings)
                }
                None => flow::value_part(name, template(&told("value").unwrap_or_else(|| plain(value)))),
            };
            for (key, field) in [("filename", &mut part.filename), ("contentType", &mut part.content_type)] {
                if let Some(written) = told(key) {
                    let written = self.variables.template(&written, Writing::Plain, &at, &mut self.findings);
                    *field = text(written);
                }
            }
            parts.push(part);
        }
        flow::put_form(step, parts);
    }

    /// JSON whose texts are templates.
    fn json(&mut self, value: &Value, at: &str) -> Value {
        match value {
            Value::String(written) => {
                let template = self.variables.template(written, Writing::Plain, at, &mut self.findings);
                let whole = written.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
                let is_typed = |name: &str| self.typed.contains(name) || name.starts_with("$randomNumber");
                if whole.is_some_and(|name| is_typed(name.trim())) {
                    let becomes = "the value is sent as a text: write the JSON as `body`, without quotes \
                                   around it, if it has \
                                   to be a number";
                    self.findings.note(at, written, becomes);
                }
                Value::String(template)
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.json(item, at)).collect()),
            Value::Object(members) => {
                let mut written = Map::new();
                for (name, member) in members {
                    let name = self.variables.template(name, Writing::Plain, at, &mut self.findings);
                    let member = self.json(member, at);
                    written.insert(name, member);
                }
                Value::Object(written)
            }
            other => other.clone(),
        }
    }
}
