//! Bodies of requests.

use std::io;
use std::sync::Arc;

use plimsoll_document::{Field, Place, Problem, RequestStep, Text};
use plimsoll_scenario::{Body, BodySupply, Judge, Slot, Template};
use serde_json::Value;

use super::Compiler;
use super::known::Known;
use super::scenario::Part;
use super::text::around_slots;
use crate::grants::unreadable;
use crate::parts::body_part;
use crate::{BodyContent, BodyContext};

impl Compiler<'_, '_> {
    /// The body of a step: at most one of its forms.
    pub(super) fn body(
        &mut self,
        request: &RequestStep,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<BodyContent> {
        let spec = &request.body;
        let given = spec.given();
        if let [(one, _), (other, place), ..] = given.as_slice() {
            let problem = Problem::new(format!("`{one}` and `{other}` exclude each other"));
            return self.form(Some(*place), problem.with_hint("a request has one body"));
        }
        let plain = |body| Some(BodyContent { body, headers: Vec::new(), judge: None, stream: None });
        let place = given.first().map(|(_, place)| *place);
        match given.first().map(|(form, _)| *form) {
            None => plain(Body::None),
            Some("body") => {
                let text = self.text(&spec.body)?;
                self.template(&text, place, part, known)?;
                plain(Body::Text(text.into_bytes()))
            }
            Some("body_file") => plain(Body::Raw(Arc::from(self.named_file(&spec.body_file)?))),
            Some("template_file") => {
                let content = self.named_file(&spec.template_file)?;
                let text = self.filled_bytes(&content, place, Template::escape)?;
                let template = self.parsed(&text, place)?;
                let reads = template.variables().into_iter();
                let reads = reads.map(|variable| self.check_read(variable, place, part, known));
                reads.fold(Some(()), Option::and)?;
                plain(Body::Text(text))
            }
            Some("json") => {
                let text = self.json_text(spec.json.get()?, place)?;
                self.template(&text, place, part, known)?;
                let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
                Some(BodyContent { body: Body::Text(text.into_bytes()), headers, judge: None, stream: None })
            }
            Some("multipart") => self.multipart(request, part, known),
            Some(_) => self.added_body(request, part, known),
        }
    }

    /// The body of a key that is no key of this crate.
    fn added_body(
        &mut self,
        request: &RequestStep,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<BodyContent> {
        let added = request.body.added.first()?;
        let (key, place) = (added.key.key(), added.value.place());
        if !request.script.is_absent() {
            let problem = Problem::new(format!("`{key}` and `script` exclude each other"));
            return self.fail(place, problem.with_hint("leave one of them out: a request has one body"));
        }
        let content = body_part(&request.body)?.0.compile(request, place, self)?;
        self.judges.extend(content.judge.iter().map(|judge| Arc::clone(&judge.judge)));
        if let Body::Coded(coded) = &content.body {
            for text in &coded.parts {
                self.template(text, place, part, known)?;
            }
        }
        Some(content)
    }

    /// The content of a file that the plan names.
    pub(super) fn named_file(&mut self, field: &Field<Text>) -> Option<Vec<u8>> {
        let name = self.plain(field)?;
        match self.resolver.content(&self.loaded.path(&name), true) {
            Ok(content) => Some(content),
            Err(error) => self.fail(field.place(), unreadable(&name, &error)),
        }
    }

    /// A value as JSON whose texts are templates, with the environment's values filled in.
    pub(super) fn json_text(&mut self, value: &Value, place: Option<Place>) -> Option<String> {
        let mut text = String::new();
        self.write_json(value, place, &mut text)?;
        Some(text)
    }

    fn write_json(&mut self, value: &Value, place: Option<Place>, text: &mut String) -> Option<()> {
        match value {
            Value::String(string) => self.write_json_text(string, place, text)?,
            Value::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    self.write_json(item, place, text)?;
                }
                text.push(']');
            }
            Value::Object(members) => {
                text.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    self.write_json_text(name, place, text)?;
                    text.push(':');
                    self.write_json(value, place, text)?;
                }
                text.push('}');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        }
        Some(())
    }

    /// A slot whose rendering is escaped for a text of JSON.
    pub(super) fn escaping(&self, slot: &str) -> String {
        let scope = self.scope(&self.variables, &self.constants);
        let Ok(template) = Template::parse_in(slot.as_bytes(), &scope) else { return slot.to_owned() };
        let any_text = |slot: &Slot| matches!(slot, Slot::Variable { .. } | Slot::Call(_) | Slot::Pick(_));
        match template.has_secret() || template.slots().any(any_text) {
            true => format!("${{json({slot})}}"),
            false => slot.to_owned(),
        }
    }

    /// A text in quotes: the text around its slots is escaped, and so are their values.
    fn write_json_text(&mut self, string: &str, place: Option<Place>, text: &mut String) -> Option<()> {
        // Secrets have to be known before their slots are examined.
        self.filled(string, place)?;
        let written = around_slots(string, escaped, |slot| self.escaping(slot));
        let done = self.filled_bytes(written.as_bytes(), place, |value| Template::escape(&escaped(value)))?;
        text.push('"');
        text.push_str(&String::from_utf8_lossy(&done));
        text.push('"');
        Some(())
    }
}

impl BodyContext for Compiler<'_, '_> {
    fn report(&mut self, place: Option<Place>, problem: Problem) {
        Compiler::report(self, place, problem);
    }

    fn report_form(&mut self, place: Option<Place>, problem: Problem) {
        let _: Option<()> = self.form(place, problem);
    }

    fn plain(&mut self, field: &Field<Text>) -> Option<String> {
        Compiler::plain(self, field)
    }

    fn file(&mut self, field: &Field<Text>) -> Option<Vec<u8>> {
        self.named_file(field)
    }

    fn imported(&self, path: &str) -> io::Result<Vec<u8>> {
        self.resolver.content(&self.loaded.path(path), true)
    }

    fn template(&mut self, text: &str, place: Option<Place>) -> Option<(String, Template)> {
        let text = self.filled(text, place)?;
        let template = self.parsed(text.as_bytes(), place)?;
        Some((text, template))
    }

    fn speaks_http2(&self) -> bool {
        self.preference.may_be_http2()
    }

    fn variable(&self, name: &str) -> Option<u16> {
        Compiler::variable(self, name)
    }

    fn judges(&self) -> &[Arc<dyn Judge>] {
        &self.judges
    }

    fn next_supply(&self) -> Option<u16> {
        u16::try_from(self.supplies.len()).ok()
    }

    fn add_supply(&mut self, supply: BodySupply) {
        self.supplies.push(supply);
    }
}

/// A text as JSON writes it between its quotes.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_without_their_quotes() {
        assert_eq!(escaped("a\"b\\\n"), "a\\\"b\\\\\\n");
        assert_eq!(escaped(""), "");
    }
}
