//! Requests: their addresses and contents.

use plimsoll_document::{ExtractSpec, Field, RequestStep, StepSpec};

use super::Importer;
use super::old_format;
use super::variables::Variables;
use crate::draft::{self, Url, text};
use crate::source::Object;

/// A value that the step before has to take, and the variable that it goes into.
type Before = Option<(String, Field<ExtractSpec>)>;

/// Functions that scripts have in h2loadrunner's program mode only.
const PROGRAM_MODE: &[&str] = &["send_http_request_and_await_response", "resolve_hostname"];

impl Importer<'_> {
    /// One request as a step, and the values that the step before has to extract for it.
    pub(super) fn step(
        &mut self,
        request: &mut Object<'_>,
        position: usize,
        parallel: bool,
        before: &[StepSpec],
        variables: &mut Variables,
    ) -> (Before, StepSpec) {
        let method = self.method(request);
        let script = self.script(request);
        let (extract, mut step) =
            self.uri(request, method, position, parallel, before, script.is_some(), variables);
        let judged = script.as_ref().is_some_and(|(_, source)| source.contains("validate_response"));
        if let Some((script, _)) = script {
            step.request_mut().script = text(script);
        }
        self.headers(request, &mut step, position, variables);
        self.payload(request, &mut step, position, variables);
        self.expectation(request, &mut step, judged);
        if request.flag("clear-old-cookies", &mut self.findings) == Some(true) {
            step.request_mut().clear_cookies = Field::new(true);
        }
        if let Some(pause) = request.number("delay-before-executing-next", &mut self.findings) {
            let nanos = pause.nanos().map(|nanos| nanos / 1000).unwrap_or(u64::MAX);
            if nanos > 0 && parallel {
                let at = request.place("delay-before-executing-next");
                self.findings.note(at, "", "requests of a parallel scenario do not wait for each other");
            } else if nanos > 0 {
                step.think = draft::think(nanos);
            }
        }
        (extract, step)
    }

    fn method<'v>(&mut self, request: &mut Object<'v>) -> &'v str {
        let method = request.filled("method", &mut self.findings).unwrap_or("GET");
        if !draft::is_token(method) {
            self.findings.hinted(
                &request.place("method"),
                format!("`{method}` is not a method"),
                "write GET, POST, PUT, PATCH, DELETE or HEAD",
            );
        }
        method
    }

    #[expect(clippy::too_many_arguments, reason = "all of it decides where a request goes")]
    fn uri(
        &mut self,
        request: &mut Object<'_>,
        method: &str,
        position: usize,
        parallel: bool,
        before: &[StepSpec],
        scripted: bool,
        variables: &mut Variables,
    ) -> (Before, StepSpec) {
        let plain = || (None, draft::request(method, "/"));
        let Some(mut uri) = request.object("uri", &mut self.findings) else {
            if !request.has("uri") {
                let path = request.value("path").cloned().unwrap_or_else(|| "/path".into());
                let hint = format!("write {}", old_format::in_new_form(&path));
                self.findings.hinted(&request.at, "`uri` is missing", hint);
            }
            return plain();
        };
        if let Some(old) = request.members().get("uri").filter(|uri| old_format::is_old(uri)) {
            let hint = format!("write {}", old_format::in_new_form(old));
            self.findings.hinted(&uri.at, "the address is in the form of an old format", hint);
            return plain();
        }
        let action = uri.text("typeOfAction", &mut self.findings).unwrap_or("input");
        let input = uri.text("input", &mut self.findings).unwrap_or_default();
        uri.rest(&mut self.findings, super::is_comment);
        let at = uri.place("input");
        let taken = match action {
            "input" => return (None, self.literal_uri(method, input, position, &at, variables)),
            "fromLuaScript" => {
                if !scripted {
                    let message = "the script that sets the path is missing";
                    self.findings.hinted(&uri.at, message, "give the request a `luaScript`");
                }
                return plain();
            }
            "sameWithLastOne" => return (None, self.same_uri(method, parallel, &uri.at, before)),
            "fromResponseHeader" => header_source(input),
            "fromJsonPointer" => {
                let mut extract = ExtractSpec::default();
                extract.json = text(input);
                Ok(extract)
            }
            "fromXPath" => {
                let mut extract = ExtractSpec::default();
                extract.xpath = text(input);
                Ok(extract)
            }
            other => {
                let hint = "write input, sameWithLastOne, fromResponseHeader, fromJsonPointer, fromXPath or \
                            fromLuaScript";
                let message = format!("`{other}` is not an action");
                self.findings.hinted(&uri.place("typeOfAction"), message, hint);
                return plain();
            }
        };
        if before.is_empty() || parallel {
            let message = format!("there is no response before it that `{action}` could read");
            self.findings.hinted(&uri.at, message, "write the URI with the action `input`");
            return plain();
        }
        match taken {
            Ok(mut extract) => {
                // The setting decides whether another server may be asked for a resource.
                match self.follows_authority {
                    true => extract.as_url = Field::new(true),
                    false => extract.as_path = Field::new(true),
                }
                let wish = if action == "fromResponseHeader" { input } else { "resource" };
                let variable = variables.names.take(&wish.to_ascii_lowercase());
                (
                    Some((variable.clone(), Field::new(extract))),
                    draft::request(method, format!("${{{variable}}}")),
                )
            }
            Err(message) => {
                let hint = "`input` is the name of the header, such as location";
                self.findings.hinted(&at, message, hint);
                plain()
            }
        }
    }

    /// A URI that is written out: a path, or a whole URL.
    fn literal_uri(
        &mut self,
        method: &str,
        input: &str,
        position: usize,
        at: &str,
        variables: &mut Variables,
    ) -> StepSpec {
        let input = input.trim();
        if input.is_empty() {
            self.findings.hinted(at, "the URI is empty", "write a path, such as /");
            return draft::request(method, "/");
        }
        if !input.contains("://") {
            let mut path = variables.template(input, position, at, &mut self.findings);
            // A variable in front is a whole path, as a server named it.
            if !path.starts_with(['/', '*']) && !path.starts_with("${") {
                path.insert(0, '/');
            }
            return draft::request(method, path);
        }
        let url = match Url::parse(input) {
            Ok(url) => url,
            Err(wrong) => {
                self.findings.problem(at, format!("`{input}` is not a URL: {wrong}"));
                return draft::request(method, "/");
            }
        };
        let path = variables.template(&url.path, position, at, &mut self.findings);
        let here = url.authority == self.authority
            || self.authority.strip_suffix(":80") == Some(&url.authority) && self.scheme == "http"
            || self.authority.strip_suffix(":443") == Some(&url.authority) && self.scheme == "https";
        if here {
            return draft::request(method, path);
        }
        if self.follows_authority {
            self.others.insert(url.origin.clone());
            return draft::request(method, format!("{}{path}", draft::escaped(&url.origin)));
        }
        let mut step = draft::request(method, path);
        step.request_mut().headers.push("host", draft::literal(&url.authority));
        step
    }

    fn same_uri(&mut self, method: &str, parallel: bool, at: &str, before: &[StepSpec]) -> StepSpec {
        let step = draft::request(method, "/");
        let Some(last) = before.last() else {
            self.findings.problem(at, "there is no request before it whose URI could be used again");
            return step;
        };
        if !parallel {
            // The method has to be said beside it.
            let mut same = RequestStep::default();
            same.address.same_url = Field::new(true);
            same.address.method = text(method);
            return same.into();
        }
        let address = last.request().map(|request| &request.address);
        match address.and_then(|address| address.urls().into_iter().find_map(|(_, url)| url.get())) {
            Some(url) => draft::request(method, url.0.as_str()),
            None => step,
        }
    }

    fn headers(
        &mut self,
        request: &mut Object<'_>,
        step: &mut StepSpec,
        position: usize,
        variables: &mut Variables,
    ) {
        for (line, at) in request.list("additonalHeaders", &mut self.findings) {
            let Some(line) = line.as_str() else {
                self.findings.problem(&at, "a header has to be a text, `name: value`");
                continue;
            };
            // The colon in front of a pseudo-header is a part of its name.
            let colon = line.char_indices().skip(1).find(|(_, c)| *c == ':').map(|(colon, _)| colon);
            let Some(colon) = colon else {
                self.findings.note(at, line, "a header is `name: value`: it is left out, as there");
                continue;
            };
            let (name, value) = (line[..colon].trim(), line[colon + 1..].trim());
            let value = variables.header_template(value, position, &at, &mut self.findings);
            match name.to_ascii_lowercase().as_str() {
                ":authority" | "host" => draft::header(step, "host", &value, &at, &mut self.findings),
                "content-length" => {
                    self.findings.note(at, &value, "the length is always that of the body: it is left out");
                }
                pseudo if pseudo.starts_with(':') => {
                    let becomes = "the field is made from the method and the URI: it is left out";
                    self.findings.note(at, pseudo, becomes);
                }
                _ => draft::header(step, name, &value, &at, &mut self.findings),
            }
        }
    }

    /// The body: a text, or the content of a file of that name.
    fn payload(
        &mut self,
        request: &mut Object<'_>,
        step: &mut StepSpec,
        position: usize,
        variables: &mut Variables,
    ) {
        let Some(payload) = request.filled("payload", &mut self.findings) else { return };
        let at = request.place("payload");
        let Some(content) = self.file(payload) else {
            if is_like_a_file(payload) {
                self.findings.note(at.as_str(), payload, "there is no such file: it is sent as text");
            }
            step.request_mut().body.body =
                text(variables.template(payload, position, &at, &mut self.findings));
            return;
        };
        match String::from_utf8(content) {
            Ok(content) if variables.changes(&content) => {
                let template = variables.template(&content, position, &at, &mut self.findings);
                if template == content {
                    step.request_mut().body.template_file = text(payload);
                } else {
                    step.request_mut().body.body = text(template);
                }
            }
            _ => step.request_mut().body.body_file = text(payload),
        }
    }

    /// The script: its form in the plan, and its source.
    fn script(&mut self, request: &mut Object<'_>) -> Option<(String, String)> {
        let script = request.filled("luaScript", &mut self.findings).filter(|s| !s.trim().is_empty())?;
        let at = request.place("luaScript");
        let source = match self.file(script) {
            Some(content) => String::from_utf8_lossy(&content).into_owned(),
            None if is_like_a_file(script) => {
                let hint = self.looked_for();
                self.findings.hinted(&at, format!("there is no file `{script}`"), hint);
                return None;
            }
            None => script.to_owned(),
        };
        for name in PROGRAM_MODE.iter().filter(|name| source.contains(**name)) {
            self.findings.note(at.as_str(), name, "the function is not there: a script that calls it fails");
        }
        if let Some(error) = (self.syntax_error)(source.as_bytes()) {
            let becomes = format!("the script is left out, as there: {error}");
            self.findings.note(at.as_str(), script, becomes);
            return None;
        }
        if !source.contains("make_request") && !source.contains("validate_response") {
            let becomes = "the script defines neither make_request nor validate_response: it is left out";
            self.findings.note(at.as_str(), script, becomes);
            return None;
        }
        // A plan knows files of scripts by their ending.
        let written = if script.ends_with(".lua") { script } else { &source };
        Some((written.to_owned(), source))
    }
}

/// The source of a field of a response.
pub(super) fn header_source(name: &str) -> Result<ExtractSpec, String> {
    let mut extract = ExtractSpec::default();
    let name = name.trim();
    match name.strip_prefix(':') {
        Some("status") => extract.status = Field::new(true),
        None if draft::is_token(name) => extract.header = text(name.to_ascii_lowercase()),
        _ => return Err(format!("`{name}` is not a header of a response")),
    }
    Ok(extract)
}

/// Returns `true` if a text looks like the name of a file more than like anything else.
fn is_like_a_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    !text.contains(|c: char| c.is_whitespace() || "{}()[]<>\"'=;,".contains(c))
        && extension.is_some_and(|e| ["lua", "json", "txt", "xml", "bin", "dat", "csv"].contains(&e))
}
