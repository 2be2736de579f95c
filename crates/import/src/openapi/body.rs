//! Bodies of operations.

use plimsoll_document::{Field, StepSpec};
use serde_json::Value;

use super::{Api, is_extension};
use crate::draft;
use crate::source::{Object, below};

impl<'a> Api<'a> {
    /// Puts the body of an operation into its step.
    pub(super) fn body(&mut self, operation: &mut Object<'a>, step: &mut StepSpec) {
        let at = operation.place("requestBody");
        let Some(value) = operation.value("requestBody") else { return };
        let Some(value) = self.resolve(value, &at) else { return };
        let Some(mut body) = Object::new(value, at, &mut self.findings) else { return };
        body.skip(&["description", "required"]);
        let content = body.object("content", &mut self.findings);
        body.rest(&mut self.findings, is_extension);
        let Some(content) = content else { return };
        let Some((media_type, place)) = preferred(&content) else {
            self.findings.problem(&content.at, "there is no media type");
            return;
        };
        let at = content.place(media_type);
        let Some(mut media) = Object::new(place, at, &mut self.findings) else { return };
        media.skip(&["encoding"]);
        let schema = media.value("schema");
        let example = match self.given_example(&mut media) {
            Some(example) => example,
            None => match schema {
                Some(schema) => self.made_up(schema, &below(&media.at, "schema"), 0),
                None => Value::Null,
            },
        };
        media.rest(&mut self.findings, is_extension);
        self.put_body(media_type, example, &media.at, step);
    }

    fn put_body(&mut self, media_type: &str, example: Value, at: &str, step: &mut StepSpec) {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if essence == "application/json" {
            step.request_mut().body.json = Field::new(escaped(example));
            return;
        }
        let text = match &example {
            _ if essence.starts_with("multipart/") => None,
            Value::Object(members) if essence == "application/x-www-form-urlencoded" => {
                let texts: Vec<(&str, String)> =
                    members.iter().map(|(name, value)| (name.as_str(), plain(value))).collect();
                Some(draft::form(texts.iter().map(|(name, value)| (*name, value.as_str()))))
            }
            value if essence.ends_with("+json") => Some(value.to_string()),
            Value::String(text) => Some(text.clone()),
            _ => None,
        };
        match text {
            Some(text) => {
                draft::header(step, "content-type", &draft::escaped(media_type), at, &mut self.findings);
                step.request_mut().body.body = draft::literal(&text);
            }
            None => {
                let becomes = "no body can be made up for this media type: none is sent";
                self.findings.note(at, media_type, becomes);
            }
        }
    }
}

/// The media type to send: JSON if there is one, else the first.
fn preferred<'a>(content: &Object<'a>) -> Option<(&'a str, &'a Value)> {
    let members = content.members();
    let json = members.iter().find(|(name, _)| {
        name.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    });
    json.or_else(|| members.iter().next()).map(|(name, media)| (name.as_str(), media))
}

/// Returns `value` with texts that templates give back as they are.
fn escaped(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(draft::escaped(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(escaped).collect()),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (draft::escaped(&name), escaped(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
