//! Forms with files (RFC 7578).

use plimsoll_document::{Field, FormPartSpec, Keyed, Place, Problem, RequestStep, Text};
use plimsoll_scenario::{Body, Template};

use super::Compiler;
use super::known::Known;
use super::scenario::Part;
use super::text::around_slots;
use crate::BodyContent;

/// The beginning of the line between parts.
const BOUNDARY: &str = "plimsoll-7d1a4c9be0f24563";

/// A part whose content is read.
struct FormPart {
    /// Lines before the content, a template.
    head: Vec<u8>,
    /// The content, a template.
    content: Vec<u8>,
}

impl Compiler<'_, '_> {
    /// A body of parts, with the header that names their boundary. The body is one template, so the values of
    /// parts are filled in as everywhere.
    pub(super) fn multipart(
        &mut self,
        request: &RequestStep,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<BodyContent> {
        let parts = &request.body.multipart;
        let given = self.given_boundary(&request.headers)?;
        let mut compiled = Vec::new();
        for field in parts {
            compiled.push(field.get().and_then(|spec| self.form_part(spec, field.place(), part, known)));
        }
        let compiled: Vec<FormPart> = compiled.into_iter().collect::<Option<_>>()?;
        let boundary = match given {
            Some(boundary) => boundary,
            None => free_boundary(&compiled),
        };
        let mut text = Vec::new();
        for FormPart { head, content } in &compiled {
            let pieces: [&[u8]; 6] = [b"--", boundary.as_bytes(), b"\r\n", head, content, b"\r\n"];
            text.extend(pieces.concat());
        }
        text.extend(format!("--{boundary}--\r\n").into_bytes());
        let header = ("Content-Type".to_owned(), format!("multipart/form-data; boundary={boundary}"));
        Some(BodyContent { body: Body::Text(text), headers: vec![header], judge: None, stream: None })
    }

    /// The boundary in the step's own `content-type`, as recordings have it. `Some(None)`: no such header.
    fn given_boundary(&mut self, headers: &Keyed<Field<Text>>) -> Option<Option<String>> {
        let mut own = headers.0.iter().filter(|(name, ..)| name.0.eq_ignore_ascii_case("content-type"));
        let Some((_, place, field)) = own.next() else { return Some(None) };
        let value = self.plain(field)?;
        let boundary = value.split(';').find_map(|parameter| {
            let (name, value) = parameter.trim().split_once('=')?;
            name.eq_ignore_ascii_case("boundary").then(|| value.trim_matches('"').to_owned())
        });
        let is_boundary = |text: &str| {
            (1..=70).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&byte))
        };
        match boundary.filter(|boundary| is_boundary(boundary)) {
            Some(boundary) => Some(Some(boundary)),
            None => {
                let problem = Problem::new("this `content-type` has no boundary of parts");
                self.fail(Some(*place), problem.with_hint("leave it out: `multipart` sends its own"))
            }
        }
    }

    fn form_part(
        &mut self,
        spec: &FormPartSpec,
        place: Option<Place>,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<FormPart> {
        let is_file = !spec.file.is_absent();
        if is_file != spec.value.is_absent() {
            let message = match is_file {
                true => "`value` and `file` exclude each other",
                false => "a part has a value or a file",
            };
            let problem = Problem::new(message);
            return self.fail(place, problem.with_hint("write {name: N, value: V} or {name: N, file: PATH}"));
        }
        if spec.name.is_absent() {
            let problem = Problem::new("a part of a form has a name");
            return self.fail(place, problem.with_hint("add `name`"));
        }
        let name = self.quoted(&spec.name, part, known)?;
        let mut head = format!("Content-Disposition: form-data; name=\"{name}\"");
        if let Some(filename) = self.filename(spec, part, known)? {
            head.push_str(&format!("; filename=\"{filename}\""));
        }
        let content_type = match spec.content_type.is_absent() {
            true => is_file.then(|| "application/octet-stream".to_owned()),
            false => Some(self.line(&spec.content_type, part, known)?),
        };
        head.extend(content_type.map(|content_type| format!("\r\nContent-Type: {content_type}")));
        head.push_str("\r\n\r\n");
        let content = match is_file {
            true => Template::escape_bytes(&self.named_file(&spec.file)?),
            false => self.template_text(&spec.value, part, known)?.into_bytes(),
        };
        Some(FormPart { head: head.into_bytes(), content })
    }

    /// The name of a part's file, without the folders of ours.
    fn filename(
        &mut self,
        spec: &FormPartSpec,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Option<String>> {
        if !spec.filename.is_absent() {
            return self.quoted(&spec.filename, part, known).map(Some);
        }
        if spec.file.is_absent() {
            return Some(None);
        }
        let path = self.plain(&spec.file)?;
        let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
        Some(Some(in_quotes(&Template::escape(name), str::to_owned)))
    }

    fn template_text(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<String> {
        let text = self.text(field)?;
        self.template(&text, field.place(), part, known)?;
        Some(text)
    }

    /// A template between quotes.
    fn quoted(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<String> {
        let text = self.template_text(field, part, known)?;
        Some(in_quotes(&text, |slot| self.escaping(slot)))
    }

    /// A template that is one line.
    fn line(&mut self, field: &Field<Text>, part: &mut Part<'_>, known: &Known) -> Option<String> {
        let text = self.template_text(field, part, known)?;
        match text.contains(['\r', '\n']) {
            true => self.fail(field.place(), Problem::new("a line break is not allowed in `content_type`")),
            false => Some(around_slots(&text, str::to_owned, |slot| self.escaping(slot))),
        }
    }
}

/// A name as browsers write it between quotes (WHATWG, "multipart/form-data encoding"): its quotes and line
/// breaks are percent-encoded. `escaping` makes slots of those whose values are escaped.
fn in_quotes(text: &str, escaping: impl Fn(&str) -> String) -> String {
    let percent_encoded = |text: &str| text.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22");
    around_slots(text, percent_encoded, escaping)
}

/// A boundary that no file and no literal text of the parts has. It depends on nothing else: the same plan
/// sends the same bytes.
fn free_boundary(parts: &[FormPart]) -> String {
    let taken = |boundary: &str| {
        let needle = boundary.as_bytes();
        parts.iter().any(|part| part.content.windows(needle.len()).any(|window| window == needle))
    };
    let mut boundary = BOUNDARY.to_owned();
    for number in 1_u32.. {
        if !taken(&boundary) {
            break;
        }
        boundary = format!("{BOUNDARY}-{number}");
    }
    boundary
}
