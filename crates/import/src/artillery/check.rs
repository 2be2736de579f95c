//! Values that a step takes from its response, and expectations of it.

use plimsoll_document::{Field, StepSpec};
use serde_json::Value;

use super::{Importer, is_extension, plain};
use crate::draft::text;
use crate::flow::Writing;
use crate::flow::check::{self, Place};
use crate::source::{Object, below, shown};

impl Importer<'_> {
    /// The objects of a member that may be one or several.
    fn each<'v>(&mut self, object: &mut Object<'v>, key: &'static str) -> Vec<Object<'v>> {
        let at = object.place(key);
        let items: Vec<(&Value, String)> = match object.value(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| (item, below(&at, index))).collect()
            }
            Some(one) => vec![(one, at)],
        };
        items.into_iter().filter_map(|(item, at)| Object::new(item, at, &mut self.findings)).collect()
    }

    pub(super) fn captures(&mut self, request: &mut Object<'_>, step: &mut StepSpec) {
        for mut capture in self.each(request, "capture") {
            self.capture(&mut capture, step);
            capture.rest(&mut self.findings, is_extension);
        }
    }

    fn capture(&mut self, capture: &mut Object<'_>, step: &mut StepSpec) {
        let keys = ["json", "xpath", "regexp", "header", "selector"];
        let Some(kind) = keys.into_iter().find(|key| capture.has(key)) else {
            let becomes = "it names no place of the value: it is left out";
            self.findings.note(capture.at.as_str(), "capture", becomes);
            return;
        };
        let at = capture.place(kind);
        let written = capture.value(kind).map(plain).unwrap_or_default();
        let name = capture.value("as").map(plain).unwrap_or_default();
        let strict = capture.flag("strict", &mut self.findings) != Some(false);
        let group = capture.value("group");
        let flags = capture.value("flags").map(plain).unwrap_or_default();
        if capture.value("transform").is_some() {
            let becomes = "expressions in JavaScript are not carried out: the value is taken as it is";
            self.findings.note(capture.place("transform"), "transform", becomes);
        }
        capture.skip(&["attr", "index", "value"]);
        if name.is_empty() {
            self.findings.note(at, &written, "it has no name (`as`): it is left out");
            return;
        }
        let mut spec = match kind {
            "json" => match check::json_path(&written) {
                Some(path) => check::extract(&Place::Json(path)),
                None => {
                    self.findings.note(
                        at,
                        &written,
                        "plans do not take this JSONPath: the value is not taken",
                    );
                    return;
                }
            },
            "xpath" => check::extract(&Place::Xpath(written.clone())),
            "header" => check::extract(&Place::Header(written.to_ascii_lowercase())),
            "regexp" => {
                let number = match group {
                    None => Some(0),
                    Some(group) => group.as_u64().and_then(|group| usize::try_from(group).ok()),
                };
                let expression = if flags.contains('i') { format!("(?i){written}") } else { written.clone() };
                match number.and_then(|number| check::only_group(&expression, number)) {
                    Some(expression) => {
                        let mut spec = check::extract(&Place::Body);
                        spec.body = Field::Absent;
                        spec.regex = text(expression);
                        spec
                    }
                    None => {
                        let becomes =
                            "plans do not take this regular expression or its group: the value is not taken";
                        self.findings.note(at, &written, becomes);
                        return;
                    }
                }
            }
            _ => {
                let becomes = "plans have no CSS selectors: use `regex` or `xpath`; the value is not taken";
                self.findings.note(at, &written, becomes);
                return;
            }
        };
        if !strict {
            spec.default = text("");
        }
        if kind == "json" {
            self.typed.insert(name.clone());
        }
        let name = self.variables.name(&name);
        if step.extract.0.iter().any(|(known, ..)| known.as_str() == name) {
            self.findings.note(at, &written, "the variable is taken already: the first value is");
            return;
        }
        step.extract.push(name, Field::new(spec));
    }

    pub(super) fn expectations(&mut self, request: &mut Object<'_>, step: &mut StepSpec) {
        for expect in self.each(request, "expect") {
            let members: Vec<(String, Value)> =
                expect.members().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            for (key, value) in members {
                let at = expect.place(&key);
                self.expectation(&key, &value, &at, step);
            }
        }
        // The older form: a value of the JSON, and what it has to be.
        for mut wanted in self.each(request, "match") {
            let path = wanted.value("json").map(plain).unwrap_or_default();
            let value = wanted.value("value").map(plain).unwrap_or_default();
            let at = wanted.at.clone();
            wanted.skip(&["strict"]);
            wanted.rest(&mut self.findings, is_extension);
            match check::json_path(&path) {
                Some(path) => {
                    let value = self.variables.template(&value, Writing::Plain, &at, &mut self.findings);
                    let place = Place::Json(path);
                    check::expect(step, &place, check::equals(value), &at, "match", &mut self.findings);
                }
                None => self.findings.note(at, &path, "plans do not take this JSONPath: it is left out"),
            }
        }
    }

    fn expectation(&mut self, key: &str, value: &Value, at: &str, step: &mut StepSpec) {
        let said = shown(value);
        let template = |importer: &mut Self, value: &Value| {
            importer.variables.template(&plain(value), Writing::Plain, at, &mut importer.findings)
        };
        let json = |importer: &mut Self, written: &str| {
            let path = check::json_path(written);
            if path.is_none() {
                importer.findings.note(at, written, "plans do not take this JSONPath: it is left out");
            }
            path.map(Place::Json)
        };
        match (key, value) {
            ("statusCode", Value::Array(items)) => {
                let statuses: Vec<String> = items.iter().map(plain).collect();
                check::expect_status(step, &statuses, at, &said, &mut self.findings);
            }
            ("statusCode", value) => {
                check::expect_status(step, &[plain(value)], at, &said, &mut self.findings);
            }
            ("notStatusCode", value) => match plain(value).parse() {
                Ok(status) => {
                    check::expect_status(step, &check::other_than(status), at, &said, &mut self.findings);
                }
                Err(_) => self.findings.note(at, &said, "only one status can be excluded: it is left out"),
            },
            ("contentType", value) => {
                let place = Place::Header("content-type".to_owned());
                let wanted = template(self, value);
                check::expect(step, &place, check::contains(wanted), at, &said, &mut self.findings);
            }
            ("hasProperty" | "notHasProperty", Value::String(path)) => {
                if let Some(place) = json(self, path) {
                    let spec =
                        if key == "hasProperty" { check::exists() } else { check::turned(check::exists()) };
                    check::expect(step, &place, spec, at, &said, &mut self.findings);
                }
            }
            ("hasHeader", Value::String(name)) => {
                let place = Place::Header(name.to_ascii_lowercase());
                check::expect(step, &place, check::exists(), at, &said, &mut self.findings);
            }
            ("headerEquals", Value::Array(pair)) if pair.len() == 2 => {
                let place = Place::Header(plain(&pair[0]).to_ascii_lowercase());
                let wanted = template(self, &pair[1]);
                check::expect(step, &place, check::equals(wanted), at, &said, &mut self.findings);
            }
            ("matchesRegexp", Value::String(expression)) if check::is_regex(expression) => {
                let spec = check::matches(expression.clone());
                check::expect(step, &Place::Body, spec, at, expression, &mut self.findings);
            }
            ("equals", Value::Array(sides)) if sides.len() == 2 => self.equals(sides, at, step),
            _ => {
                let becomes = "plans have no such expectation: it is left out";
                self.findings.note(at, &format!("{key}: {said}"), becomes);
            }
        }
    }

    /// Two texts, of which one is a value that this step has taken from its response.
    fn equals(&mut self, sides: &[Value], at: &str, step: &mut StepSpec) {
        let texts: Vec<String> = sides.iter().map(plain).collect();
        for (one, other) in [(0, 1), (1, 0)] {
            let name = texts[one].trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
            let Some(name) = name.map(str::trim) else { continue };
            let ours = self.variables.name(name);
            let taken = step.extract.0.iter().find(|(known, ..)| known.as_str() == ours);
            let Some(spec) = taken.and_then(|(_, _, spec)| spec.get()) else { continue };
            let place = match (spec.json.get(), spec.header.get()) {
                (Some(path), _) => Place::Json(path.as_str().to_owned()),
                (_, Some(name)) => Place::Header(name.as_str().to_owned()),
                _ => continue,
            };
            let wanted = self.variables.template(&texts[other], Writing::Plain, at, &mut self.findings);
            check::expect(step, &place, check::equals(wanted), at, "equals", &mut self.findings);
            return;
        }
        let becomes = "only values that the same step takes by JSON or a header are compared: it is left out";
        self.findings.note(at, &texts.join(", "), becomes);
    }
}
