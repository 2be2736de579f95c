//! Paths, operations and their parameters.

use plimsoll_document::StepSpec;
use serde_json::Value;

use super::{Api, METHODS, is_extension, is_required};
use crate::draft;
use crate::source::{Object, below};

/// Part of the request that holds a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

/// A parameter with its value.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    location: Location,
    /// One value; several for a list that is written item by item.
    values: Vec<String>,
    /// `true` if it is sent: it is required, or has an example.
    sent: bool,
}

impl<'a> Api<'a> {
    /// The operations of one path.
    pub(super) fn path(
        &mut self,
        path: &str,
        item: &'a Value,
        at: &str,
        base: &str,
        secured: bool,
    ) -> Vec<StepSpec> {
        let Some(item) = self.resolve(item, at) else { return Vec::new() };
        let Some(mut item) = Object::new(item, at, &mut self.findings) else { return Vec::new() };
        item.skip(&["summary", "description", "$ref"]);
        let shared = self.parameters(&mut item);
        if item.value("servers").is_some() {
            self.note_servers(&item.place("servers"));
        }
        let mut steps = Vec::new();
        for method in METHODS {
            let Some(mut operation) = item.object(method, &mut self.findings) else { continue };
            steps.extend(self.operation(path, method, &mut operation, &shared, base, secured));
            operation.rest(&mut self.findings, is_extension);
        }
        item.rest(&mut self.findings, is_extension);
        steps
    }

    fn note_servers(&mut self, at: &str) {
        let becomes = "all operations are asked of the first server of the description";
        self.findings.note(at, "", becomes);
    }

    fn operation(
        &mut self,
        path: &str,
        method: &str,
        operation: &mut Object<'a>,
        shared: &[Parameter],
        base: &str,
        secured: bool,
    ) -> Option<StepSpec> {
        operation.skip(&["tags", "summary", "description", "externalDocs", "responses", "deprecated"]);
        let name = operation.filled("operationId", &mut self.findings);
        let own = self.parameters(operation);
        if operation.value("servers").is_some() {
            self.note_servers(&operation.place("servers"));
        }
        if operation.value("callbacks").is_some() {
            let becomes = "requests that the server sends are not answered: they are left out";
            self.findings.note(operation.place("callbacks"), "", becomes);
        }
        if operation.value("security").map_or(secured, is_required) {
            let becomes = "it needs credentials: give them with --basic, --bearer or --header";
            let own = operation.has("security");
            let at = if own { operation.place("security") } else { "/security".to_owned() };
            self.findings.note(at, "", becomes);
        }
        // A parameter of the operation replaces that of the path with the same name and place.
        let replaced = |one: &&Parameter| {
            !own.iter().any(|other| other.name == one.name && other.location == one.location)
        };
        let parameters: Vec<Parameter> =
            shared.iter().filter(replaced).chain(&own).filter(|one| one.sent).cloned().collect();
        let url = self.url(path, &parameters, base, &operation.at)?;
        let mut step = draft::request(&method.to_ascii_uppercase(), url);
        if let Some(name) = name {
            step.name = draft::text(name);
        }
        self.put_headers(&mut step, &parameters, &operation.at);
        self.body(operation, &mut step);
        Some(step)
    }

    fn parameters(&mut self, object: &mut Object<'a>) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        for (value, at) in object.list("parameters", &mut self.findings) {
            let Some(value) = self.resolve(value, &at) else { continue };
            let Some(mut parameter) = Object::new(value, at, &mut self.findings) else { continue };
            parameters.extend(self.parameter(&mut parameter));
            parameter.rest(&mut self.findings, is_extension);
        }
        parameters
    }

    fn parameter(&mut self, parameter: &mut Object<'a>) -> Option<Parameter> {
        parameter.skip(&["description", "deprecated", "allowEmptyValue", "allowReserved", "content"]);
        let name = parameter.filled("name", &mut self.findings).unwrap_or_default().to_owned();
        let location = match parameter.text("in", &mut self.findings) {
            Some("path") => Location::Path,
            Some("query") => Location::Query,
            Some("header") => Location::Header,
            Some("cookie") => Location::Cookie,
            other => {
                let message = format!("`{}` is not a place of a parameter", other.unwrap_or_default());
                self.findings.hinted(&parameter.place("in"), message, "write path, query, header or cookie");
                return None;
            }
        };
        let required = parameter.flag("required", &mut self.findings) == Some(true);
        let style = parameter.text("style", &mut self.findings);
        let explode = parameter.flag("explode", &mut self.findings);
        let schema = parameter.value("schema");
        let example =
            self.given_example(parameter).or_else(|| schema.and_then(|schema| self.schema_example(schema)));
        let sent = required || location == Location::Path || example.is_some();
        let usual = match location {
            Location::Path | Location::Header => "simple",
            Location::Query | Location::Cookie => "form",
        };
        if let Some(style) = style.filter(|style| *style != usual) {
            let becomes = format!("values are written in the style `{usual}`");
            self.findings.note(parameter.place("style"), style, becomes);
        }
        let value = match example {
            Some(value) => value,
            None if !sent => Value::Null,
            None => match schema {
                Some(schema) => self.made_up(schema, &parameter.place("schema"), 0),
                None => Value::String("value".to_owned()),
            },
        };
        let by_item = location == Location::Query && explode != Some(false);
        Some(Parameter { name, location, values: written(&value, by_item), sent })
    }

    /// The URL of an operation, with all of its parameters.
    fn url(&mut self, path: &str, parameters: &[Parameter], base: &str, at: &str) -> Option<String> {
        let mut url = format!("{base}{path}");
        for parameter in parameters.iter().filter(|one| one.location == Location::Path) {
            let value = draft::percent_encoded(&parameter.values.join(","), b",:@!$&'()*+;=");
            url = url.replace(&format!("{{{}}}", parameter.name), &value);
        }
        if let Some((_, open)) = url.split_once('{') {
            let name = open.split('}').next().unwrap_or_default();
            let hint = "describe it with `in: path`";
            self.findings.hinted(at, format!("the path has no parameter `{name}`"), hint);
            return None;
        }
        let pairs = parameters.iter().filter(|one| one.location == Location::Query).flat_map(|one| {
            let encoded = |text: &str| draft::percent_encoded(text, b",:/");
            one.values.iter().map(move |value| format!("{}={}", encoded(&one.name), encoded(value)))
        });
        let query: Vec<String> = pairs.collect();
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.join("&"));
        }
        Some(draft::escaped(&url))
    }

    fn put_headers(&mut self, step: &mut StepSpec, parameters: &[Parameter], at: &str) {
        for parameter in parameters {
            let value = parameter.values.join(",");
            // These three are described elsewhere in the specification, and ignored here by it.
            let described = ["accept", "content-type", "authorization"];
            match parameter.location {
                Location::Header
                    if !described.iter().any(|name| parameter.name.eq_ignore_ascii_case(name)) =>
                {
                    draft::header(step, &parameter.name, &draft::escaped(&value), at, &mut self.findings);
                }
                Location::Cookie => {
                    let pair = format!("{}={value}", parameter.name);
                    match step.request_mut().headers.0.iter_mut().find(|(name, ..)| name.as_str() == "cookie")
                    {
                        Some((_, _, plimsoll_document::Field::Given(cookies, _))) => {
                            cookies.0.push_str(&format!("; {}", draft::escaped(&pair)));
                        }
                        _ => draft::header(step, "cookie", &draft::escaped(&pair), at, &mut self.findings),
                    }
                }
                _ => {}
            }
        }
    }

    /// The example of a parameter or of a media type: `example`, or the first of `examples`.
    pub(super) fn given_example(&mut self, object: &mut Object<'a>) -> Option<Value> {
        let example = object.value("example").cloned();
        let at = object.place("examples");
        let first = object.value("examples").and_then(Value::as_object).and_then(|all| all.iter().next());
        if example.is_some() {
            return example;
        }
        let (name, first) = first?;
        let first = self.resolve(first, &below(&at, name))?;
        first.get("value").cloned()
    }
}

/// A value as parameters are written: a list item by item, or with commas; an object as a list of names and
/// values.
fn written(value: &Value, by_item: bool) -> Vec<String> {
    let scalar = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    match value {
        Value::Array(items) if by_item => items.iter().map(scalar).collect(),
        Value::Array(items) => vec![items.iter().map(scalar).collect::<Vec<_>>().join(",")],
        Value::Object(members) => {
            let parts = members.iter().flat_map(|(name, value)| [name.clone(), scalar(value)]);
            vec![parts.collect::<Vec<_>>().join(",")]
        }
        other => vec![scalar(other)],
    }
}
