//! vegeta's targets, in its HTTP format and in its JSON format.
//!
//! vegeta sends its targets in turn, each for itself: so each becomes a scenario, with as much weight as it
//! is there times. They can be the steps of one scenario instead.

use base64::Engine as _;
use plimsoll_document::{Document, Field, Problems, StepSpec};
use serde_json::Value;

use crate::Unchecked;
use crate::draft::{self, Url, text};
use crate::findings::{Findings, quoted};
use crate::source::{self, Object};

/// Options for reading targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `true` if the targets become the steps of one scenario instead of one scenario each.
    pub steps: bool,
}

/// Reads targets. A file whose first character is `{` is in the JSON format. Files that targets name are
/// relative to the plan.
///
/// # Errors
/// All problems with them.
pub fn import(text: &[u8], options: &Options) -> Result<Unchecked, Problems> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Findings::fail("", "the file is not UTF-8", "vegeta's targets are text"));
    };
    let mut findings = Findings::default();
    let targets = match text.trim_start().starts_with('{') {
        true => json_targets(text, &mut findings),
        false => http_targets(text, &mut findings),
    };
    if targets.is_empty() && !findings.has_problems() {
        findings.hinted("", "there are no targets", "write GET http://host/path on a line of its own");
    }
    let document = document(targets, *options);
    findings.finish_requests(document)
}

/// A target: the origin of its URL, and its request.
type Target = (String, StepSpec);

fn document(targets: Vec<Target>, options: Options) -> Document {
    let mut document = Document::default();
    let steps = draft::place(&mut document, targets);
    if options.steps {
        document.scenarios.push(Field::new(draft::scenario("targets", steps)));
        return document;
    }
    let mut different: Vec<(StepSpec, u64)> = Vec::new();
    for step in steps {
        match different.iter_mut().find(|(known, _)| *known == step) {
            Some((_, count)) => *count += 1,
            None => different.push((step, 1)),
        }
    }
    for (index, (step, count)) in different.into_iter().enumerate() {
        let mut scenario = draft::scenario(&format!("target {}", index + 1), vec![step]);
        if count > 1 {
            scenario.weight = text(count.to_string());
        }
        document.scenarios.push(Field::new(scenario));
    }
    document
}

/// A line `METHOD URL`, then lines `Name: value`, then perhaps `@file`; blank lines and `#` between.
fn http_targets(content: &str, findings: &mut Findings) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    // `true` once a target has begun, to which further lines belong.
    let mut inside = false;
    for (index, line) in content.lines().enumerate() {
        let at = format!("line {}", index + 1);
        let line = line.trim();
        if line.is_empty() {
            inside = false;
        } else if line.starts_with('#') {
        } else if let Some((method, url)) = request_line(line) {
            inside = false;
            if let Some(target) = target(method, url, &at, findings) {
                targets.push(target);
                inside = true;
            }
        } else if let (Some(file), true) = (line.strip_prefix('@'), inside) {
            if let Some((_, step)) = targets.last_mut() {
                step.request_mut().body.body_file = text(file.trim());
            }
        } else if let (Some((name, value)), true) = (line.split_once(':'), inside) {
            if let Some((_, step)) = targets.last_mut() {
                header(step, name.trim(), value.trim(), &at, findings);
            }
        } else {
            let message = format!("`{}` is neither a target nor a part of one", quoted(line));
            findings.hinted(&at, message, "a target is METHOD URL, then Name: value, then @file");
        }
    }
    targets
}

/// `METHOD URL`; a header has a colon behind its first word.
fn request_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(char::is_whitespace)?;
    let named = method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    (named && url.contains("://")).then_some((method, url.trim()))
}

fn target(method: &str, url: &str, at: &str, findings: &mut Findings) -> Option<Target> {
    if !draft::is_token(method) {
        findings.hinted(at, format!("`{method}` is not a method"), "write GET, POST, PUT, …");
        return None;
    }
    match Url::parse(url) {
        Ok(url) => {
            let mut step = draft::request(method, draft::escaped(&url.path));
            if let Some(user) = url.user {
                let encoded = base64::engine::general_purpose::STANDARD.encode(user);
                draft::header(&mut step, "authorization", &format!("Basic {encoded}"), at, findings);
            }
            Some((url.origin, step))
        }
        Err(wrong) => {
            findings.problem(at, format!("`{}` is not a URL: {wrong}", quoted(url)));
            None
        }
    }
}

fn header(step: &mut StepSpec, name: &str, value: &str, at: &str, findings: &mut Findings) {
    if name.eq_ignore_ascii_case("content-length") {
        findings.note(at, value, "the length is always that of the body: it is left out");
    } else {
        draft::header(step, name, &draft::escaped(value), at, findings);
    }
}

/// One object a line: `method`, `url`, `body` in base64, `header` with lists of values.
fn json_targets(content: &str, findings: &mut Findings) -> Vec<Target> {
    let mut targets = Vec::new();
    for (index, line) in content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = format!("line {}", index + 1);
        let value = match source::json(line.as_bytes()) {
            Ok(value) => value,
            Err(problems) => {
                let first = problems.iter().next().map(|problem| problem.message.clone()).unwrap_or_default();
                let message = first.strip_prefix("line 1, ").unwrap_or(&first).to_owned();
                findings.hinted(&at, message, "every line is one JSON object");
                continue;
            }
        };
        if let Some(mut object) = Object::new(&value, at.as_str(), findings) {
            targets.extend(json_target(&mut object, findings));
            object.rest(findings, |_| false);
        }
    }
    targets
}

fn json_target(object: &mut Object<'_>, findings: &mut Findings) -> Option<Target> {
    let method = object.filled("method", findings);
    let url = object.filled("url", findings);
    let body = object.filled("body", findings);
    let headers = object.object("header", findings);
    for key in ["method", "url"] {
        if !object.has(key) {
            findings.problem(&object.at, format!("`{key}` is missing"));
        }
    }
    let (origin, mut step) = target(method?, url?, &object.at, findings)?;
    if let Some(headers) = headers {
        for (name, values) in headers.members() {
            let at = headers.place(name);
            match values {
                Value::String(value) => header(&mut step, name, value, &at, findings),
                Value::Array(values) if values.iter().all(Value::is_string) => {
                    for value in values.iter().filter_map(Value::as_str) {
                        header(&mut step, name, value, &at, findings);
                    }
                }
                _ => findings.problem(&at, "the values of a header have to be a list of texts"),
            }
        }
    }
    if let Some(body) = body {
        let decoded = base64::engine::general_purpose::STANDARD.decode(body);
        match decoded.map(String::from_utf8) {
            Ok(Ok(content)) => step.request_mut().body.body = draft::literal(&content),
            Ok(Err(_)) => {
                let hint = "put the bytes into a file, and name it in the HTTP format: @file";
                findings.hinted(&object.place("body"), "the body is not text", hint);
            }
            Err(error) => {
                findings.problem(&object.place("body"), format!("it is not base64: {error}"));
            }
        }
    }
    Some((origin, step))
}
