//! Requests of HTTP.

use plimsoll_document::{FormPartSpec, StepSpec};

use super::protocol::header_of;
use super::steps::{In, Operation, grouped, titled};
use super::tree::{Expression, Span};
use super::{Importer, Made};
use crate::amount;
use crate::draft::{self, text};
use crate::flow::{self, Writing};

/// Methods of HTTP, as Gatling's words for them.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Gatling's words for the parts of a form of several.
const OF_PARTS: [&str; 4] = ["asMultipartForm", "bodyPart", "bodyParts", "formUpload"];

/// A body that is being put together.
#[derive(Default)]
struct Body {
    /// Pairs of a form, encoded.
    form: Vec<String>,
    /// Parts of a form of several.
    parts: Vec<FormPartSpec>,
    is_multipart: bool,
    kind: Option<&'static str>,
    given: bool,
}

/// A request that is being put together.
struct Draft {
    step: StepSpec,
    body: Body,
    checks: Vec<Expression>,
    /// Steps of the resources of its page.
    resources: Vec<StepSpec>,
    /// Redirects are followed.
    follows: bool,
}

impl Importer<'_> {
    /// `http("name").get("/path")` with all that is behind it; resources of a page are steps of their own.
    pub(super) fn request(&mut self, operations: &[Operation], within: &mut In<'_>) -> Vec<StepSpec> {
        let [first, call, rest @ ..] = operations else {
            let span = operations.first().map(|one| one.span).unwrap_or_default();
            self.note(span, "it has no method and no URL: it is left out");
            return Vec::new();
        };
        if !self.counts_step(call.span) {
            return Vec::new();
        }
        let title = first.first().first().cloned().and_then(|name| self.text_of(&name));
        let title = titled(title.as_deref().unwrap_or("request"), &self.counters);
        let Some((method, url)) = self.method_and_url(call) else { return Vec::new() };
        let url = self.with_query(&url, rest);
        let at = self.at(call.span);
        let base = self.protocol.base.clone();
        let hint = "the server has to be written as `baseUrl`, or in the URL";
        let address = self.variables.address(&url, base.as_deref(), &at, hint, &mut self.findings);
        let Some(address) = address else { return Vec::new() };
        let mut step = address.request(&method, !within.ends);
        if let Some(user) = &address.user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            let value = flow::basic(name, password);
            flow::put_header(&mut step, "authorization", &value, &at, &mut self.findings);
        }
        let mut path = within.groups.clone();
        path.push(title.clone());
        let name = within.names.take(&grouped(&within.groups, title.trim()));
        step.name = text(name.as_str());
        self.requests.push(Made { scenario: within.scenario.to_owned(), step: name.clone(), path });
        let is_multipart = rest.iter().any(|operation| OF_PARTS.contains(&operation.name.as_str()));
        let mut draft = Draft {
            step,
            body: Body { is_multipart, ..Body::default() },
            checks: self.protocol.checks.clone(),
            resources: Vec::new(),
            follows: !self.protocol.without_redirects,
        };
        for operation in rest {
            self.word(operation, &mut draft, within);
        }
        let Draft { mut step, body, checks, resources, follows } = draft;
        self.put_body(body, &mut step, call.span);
        self.proxies.push(&at, self.protocol.proxy.clone());
        self.follows.push((at, follows));
        self.checks(&checks, &mut step, within.scenario, &name);
        let mut steps = vec![step];
        steps.extend(self.at_once(resources));
        steps
    }

    /// The method and the URL of `get("/path")` or `httpRequest("GET", "/path")`. `None` if they are not known,
    /// which is reported.
    fn method_and_url(&mut self, call: &Operation) -> Option<(String, String)> {
        let given = call.first().to_vec();
        let (method, url) = match (call.name.as_str(), given.as_slice()) {
            (name, [url, ..]) if METHODS.contains(&name) => (name.to_ascii_uppercase(), url),
            ("httpRequest", [method, url]) => {
                let method = self.text_of(method).filter(|method| draft::is_token(method));
                let Some(method) = method else {
                    self.note(call.span, "its method is not known before the run: it is left out");
                    return None;
                };
                (method, url)
            }
            _ => {
                self.note(call.span, "plans have no such request: it is left out");
                return None;
            }
        };
        let Some(url) = self.text_of(url) else {
            self.note(call.span, "its URL is not known before the run: the request is left out");
            return None;
        };
        Some((method, url))
    }

    /// A word behind a request.
    fn word(&mut self, operation: &Operation, draft: &mut Draft, within: &mut In<'_>) {
        let given = operation.first().to_vec();
        match operation.name.as_str() {
            // They are in the URL already.
            "queryParam" | "queryParamMap" | "queryParamSeq" | "multivaluedQueryParam" => {}
            "header" | "headers" | "basicAuth" | "asJson" | "asXml" => {
                self.headers(operation, &mut draft.step);
            }
            "asFormUrlEncoded" => draft.body.kind = Some("application/x-www-form-urlencoded"),
            "formParam" | "formParamMap" | "formParamSeq" | "multivaluedFormParam" => {
                self.form(operation, &mut draft.body);
            }
            "body" => self.body(&given, &mut draft.step, &mut draft.body, operation.span),
            "check" => draft.checks.extend(given),
            "ignoreProtocolChecks" => {
                let ours = self.protocol.checks.len();
                draft.checks.drain(..ours.min(draft.checks.len()));
            }
            "resources" => {
                for resource in &self.listed(given) {
                    draft.resources.extend(self.steps(resource, within));
                }
            }
            "disableFollowRedirect" => draft.follows = false,
            "requestTimeout" => match given.first().and_then(|time| self.time(time)) {
                Some(nanos) if nanos > 0 => draft.step.timeout = text(amount::time(nanos)),
                _ => self.note(operation.span, "it is not a time: it is left out"),
            },
            "notSilent" | "disableUrlEncoding" | "asMultipartForm" => {}
            "silent" => {
                let becomes = "it counts as any other request";
                self.note_call(operation.span, "silent", becomes);
            }
            "checkIf" => {
                let becomes = "checks hold for every response here, and not under conditions: it is left out";
                self.note(operation.span, becomes);
            }
            "bodyPart" | "bodyParts" => {
                for part in &self.listed(given) {
                    let part = self.part(part, operation.span);
                    draft.body.parts.extend(part);
                }
            }
            "formUpload" => match given.as_slice() {
                [name, path] => {
                    let part = self.file_part(name, path, operation.span);
                    draft.body.parts.extend(part);
                }
                _ => self.note(operation.span, "it is not known before the run: it is left out"),
            },
            name => match header_of(name) {
                Some(header) => {
                    if let Some(value) = given.first().and_then(|value| self.template(value, Writing::Plain))
                    {
                        self.header(&mut draft.step, header, &value, operation.span);
                    }
                }
                None => self.note(operation.span, "plans have nothing like it: it is left out"),
            },
        }
    }

    /// The arguments, or the items of the one list that they are.
    fn listed(&mut self, given: Vec<Expression>) -> Vec<Expression> {
        match given.as_slice() {
            [one] => self.items(one).unwrap_or(given),
            _ => given,
        }
    }

    /// Takes over a word for headers.
    fn headers(&mut self, operation: &Operation, step: &mut StepSpec) {
        let span = operation.span;
        match operation.name.as_str() {
            "asJson" => {
                for name in ["accept", "content-type"] {
                    if !flow::has_header(step, name) {
                        self.header(step, name, "application/json", span);
                    }
                }
            }
            "asXml" => {
                self.header(step, "accept", "application/xml,text/xml;q=0.9,*/*;q=0.8", span);
                self.header(step, "content-type", "application/xml", span);
            }
            _ => {
                for (name, value) in self.headers_of(operation) {
                    self.header(step, &name, &value, span);
                }
            }
        }
    }

    /// Puts the body into its step, with its kind unless a header says another one.
    fn put_body(&mut self, body: Body, step: &mut StepSpec, span: Span) {
        const ANOTHER: &str = "a request has one body: the form is left out";
        let Body { form, parts, mut kind, given, .. } = body;
        if !form.is_empty() {
            if given {
                self.note(span, ANOTHER);
            } else {
                step.request_mut().body.body = text(form.join("&"));
                kind = Some("application/x-www-form-urlencoded");
            }
        }
        if !parts.is_empty() {
            if given {
                self.note(span, ANOTHER);
            } else {
                flow::put_form(step, parts);
                kind = None;
            }
        }
        if let Some(kind) = kind
            && !flow::has_header(step, "content-type")
        {
            self.header(step, "content-type", kind, span);
        }
    }

    fn header(&mut self, step: &mut StepSpec, name: &str, value: &str, span: Span) {
        if flow::is_own_header(name) {
            self.note_call(span, name, "the header belongs to the connection: it is left out");
            return;
        }
        let at = self.at(span);
        flow::put_header(step, name, value, &at, &mut self.findings);
    }

    /// The URL with the pairs of its query.
    fn with_query(&mut self, url: &str, operations: &[Operation]) -> String {
        let mut url = url.to_owned();
        for operation in operations {
            let given = operation.first().to_vec();
            let pairs = match (operation.name.as_str(), given.as_slice()) {
                ("queryParam", [name, value]) => self.text_of(name).map(|name| vec![(name, value.clone())]),
                ("queryParamMap" | "queryParamSeq", [all]) => self.pairs(all),
                ("multivaluedQueryParam", [name, values]) => {
                    let name = self.text_of(name);
                    let values = self.items(values);
                    name.zip(values)
                        .map(|(name, values)| values.into_iter().map(|value| (name.clone(), value)).collect())
                }
                (name, _) if name.starts_with("queryParam") || name.starts_with("multivaluedQuery") => None,
                _ => continue,
            };
            let Some(pairs) = pairs else {
                self.note(operation.span, "it is not known before the run: it is left out");
                continue;
            };
            for (name, value) in pairs {
                let Some(value) = self.text_of(&value) else {
                    self.note(operation.span, "it is not known before the run: it is left out");
                    continue;
                };
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(&format!("{}={}", encoded(&name), encoded(&value)));
            }
        }
        url
    }

    fn form(&mut self, operation: &Operation, body: &mut Body) {
        let given = operation.first().to_vec();
        let pairs = match (operation.name.as_str(), given.as_slice()) {
            ("formParam", [name, value]) => self.text_of(name).map(|name| vec![(name, value.clone())]),
            ("formParamMap" | "formParamSeq", [all]) => self.pairs(all),
            ("multivaluedFormParam", [name, values]) => {
                let name = self.text_of(name);
                let values = self.items(values);
                name.zip(values)
                    .map(|(name, values)| values.into_iter().map(|value| (name.clone(), value)).collect())
            }
            _ => None,
        };
        let Some(pairs) = pairs else {
            self.note(operation.span, "it is not known before the run: it is left out");
            return;
        };
        let writing = if body.is_multipart { Writing::Plain } else { Writing::Form };
        for (name, value) in pairs {
            let name = self.written(&name, writing, operation.span);
            let Some(value) = self.template(&value, writing) else { continue };
            if body.is_multipart {
                body.parts.push(flow::value_part(name, value));
            } else {
                body.form.push(format!("{name}={value}"));
            }
        }
    }

    /// `StringBodyPart("name", "value").contentType("text/plain")` and the like: a part of a form.
    fn part(&mut self, given: &Expression, span: Span) -> Option<FormPartSpec> {
        const UNKNOWN: &str = "the part is not known before the run: it is left out";
        let resolved = self.resolved(given);
        let Some((kind, [first, more @ ..])) = resolved.chain() else {
            self.note(span, UNKNOWN);
            return None;
        };
        let arguments = first.arguments.clone().unwrap_or_default();
        let mut part = match (kind, &arguments[..]) {
            ("StringBodyPart" | "PebbleStringBodyPart", [name, value]) => {
                if kind == "PebbleStringBodyPart" {
                    self.note_call(span, kind, "templates of Pebble are sent as they are written");
                }
                let name = self.template(name, Writing::Plain)?;
                flow::value_part(name, self.template(value, Writing::Plain)?)
            }
            ("RawFileBodyPart", [name, path]) => self.file_part(name, path, span)?,
            _ => {
                self.note(span, UNKNOWN);
                return None;
            }
        };
        for link in more {
            let value = link.arguments.as_deref().and_then(<[_]>::first).cloned();
            let value = value.and_then(|value| self.template(&value, Writing::Plain));
            match (link.name.as_str(), value) {
                ("contentType", Some(value)) => part.content_type = text(value),
                ("fileName", Some(value)) => part.filename = text(value),
                ("charset", Some(value)) if value.eq_ignore_ascii_case("utf-8") => {}
                (name, _) => {
                    self.note_call(span, name, "parts of forms have nothing like it here: it is left out");
                }
            }
        }
        Some(part)
    }

    /// A part with a file among Gatling's resources.
    fn file_part(&mut self, name: &Expression, path: &Expression, span: Span) -> Option<FormPartSpec> {
        let name = self.template(name, Writing::Plain)?;
        let Some(path) = self.text_of(path).filter(|path| !path.contains("#{")) else {
            self.note(span, "the name of the file is not known before the run: the part is left out");
            return None;
        };
        let (path, at) = (self.resource(&path, span), self.at(span));
        Some(flow::file_part(name, &path, (self.folder, self.files), &at, &mut self.findings))
    }

    fn body(&mut self, given: &[Expression], step: &mut StepSpec, body: &mut Body, span: Span) {
        let resolved = given.first().map(|body| self.resolved(body));
        let chain = resolved.as_ref().and_then(Expression::chain);
        let (Some((kind, [link])), true) = (chain, !body.given) else {
            self.note(span, "its body is not known before the run: it is left out");
            return;
        };
        let arguments = link.arguments.clone().unwrap_or_default();
        let Some(first) = arguments.first() else { return };
        body.given = true;
        match kind {
            "StringBody" | "PebbleStringBody" => {
                if kind == "PebbleStringBody" {
                    let becomes = "templates of Pebble are sent as they are written";
                    self.note_call(span, kind, becomes);
                }
                if let Some(template) = self.template(first, Writing::Plain)
                    && !template.is_empty()
                {
                    step.request_mut().body.body = text(template);
                }
            }
            "RawFileBody" | "ElFileBody" | "PebbleFileBody" => {
                let Some(path) = self.text_of(first).filter(|path| !path.contains("#{")) else {
                    self.note(span, "the name of the file is not known before the run: it is left out");
                    return;
                };
                let path = self.resource(&path, span);
                if kind == "RawFileBody" {
                    step.request_mut().body.body_file = text(draft::escaped(&path));
                    return;
                }
                if kind == "PebbleFileBody" {
                    self.note_call(span, kind, "templates of Pebble are sent as they are written");
                }
                // The file has Gatling's slots: its text becomes a template here.
                let content = self.files.read(&self.folder.join(&path)).ok();
                match content.and_then(|content| String::from_utf8(content).ok()) {
                    Some(content) => {
                        let content = super::value::expressions(&content);
                        let template = self.written(&content, Writing::Plain, span);
                        step.request_mut().body.body = text(template);
                    }
                    None => {
                        let at = self.at(span);
                        let hint = "the file has to be beside the simulation, or in `resources` above it";
                        self.findings.hinted(&at, format!("`{path}` cannot be read"), hint);
                    }
                }
            }
            _ => {
                body.given = false;
                self.note(span, "its body is not known before the run: it is left out");
            }
        }
    }

    /// The path of a file that Gatling finds among its resources, seen from the folder of the simulation.
    pub(super) fn resource(&mut self, path: &str, span: Span) -> String {
        /// Folders above the simulation in which `resources` is looked for.
        const ABOVE: usize = 12;
        let path = path.trim_start_matches("classpath:").trim_start_matches("./");
        let there = |path: &str| flow::is_file(self.folder, path, self.files);
        if there(path) {
            return path.to_owned();
        }
        let above = (0..ABOVE).map(|levels| format!("{}resources/{path}", "../".repeat(levels)));
        match above.into_iter().find(|path| there(path)) {
            Some(found) => found,
            None => {
                let at = self.at(span);
                let becomes = "the file is neither beside the simulation nor in `resources` above it: put it \
                               beside the plan";
                self.findings.note(at, path, becomes);
                path.to_owned()
            }
        }
    }
}

/// Separators of pairs are escaped in a query, but not in slots.
fn encoded(text: &str) -> String {
    if text.contains("#{") { text.to_owned() } else { draft::percent_encoded(text, b",:/@!$'()*;") }
}
